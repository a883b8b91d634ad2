// Kernels on threads of the caller (<berth/threads.h>).
#include <berth/request.h>
#include <criterion/criterion.h>
#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "api/run/program.h"
#include "tests/check.h"
#include "tests/executor/program_builder.h"

enum { count = 1 << 21, most_parts = 64 };

static void destroy_arena(void *owner) {
    berth_arena_destroy(owner);
}

// y = 6 * x, in two kernels that are worth several threads.
static berth_program *make_program(void) {
    berth_arena *arena = NULL;
    berth_program *program = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    builder *b = builder_create(arena, "threads");
    uint32_t cpu = builder_device(b, "cpu", 0);
    uint32_t x = builder_input(b, cpu, "x", count), y = builder_output(b, cpu, "y", count);
    uint32_t part = builder_tensor(b, cpu, count);
    builder_dispatch(b, cpu, "scale", (uint32_t[]){x, part}, 2, 2);
    builder_dispatch(b, cpu, "scale", (uint32_t[]){part, y}, 2, 3);
    assert_ok(berth_api__program_adopt(builder_finish(b, NULL), destroy_arena, arena, &program));
    return program;
}

typedef struct pool {
    atomic_uint calls, parts;
} pool;

// The last one first, and all on the calling thread.
static void backwards(void *user, uint32_t parts, void (*part)(void *, uint32_t), void *data) {
    pool *p = user;
    atomic_fetch_add(&p->calls, 1);
    atomic_fetch_add(&p->parts, parts);
    while (parts-- > 0) part(data, parts);
}

typedef struct one_part {
    void (*part)(void *, uint32_t);
    void *data;
    uint32_t index;
} one_part;

static void *run_part(void *user) {
    const one_part *one = user;
    one->part(one->data, one->index);
    return NULL;
}

// Each on a thread of its own.
static void at_once(void *user, uint32_t parts, void (*part)(void *, uint32_t), void *data) {
    pthread_t threads[most_parts];
    one_part list[most_parts];
    pool *p = user;
    atomic_fetch_add(&p->calls, 1);
    atomic_fetch_add(&p->parts, parts);
    for (uint32_t i = 0; i < parts; ++i) {
        list[i] = (one_part){part, data, i};
        cr_assert_eq(pthread_create(&threads[i], NULL, run_part, &list[i]), 0);
    }
    for (uint32_t i = 0; i < parts; ++i) pthread_join(threads[i], NULL);
}

static int own_threads(void) {
    DIR *tasks = opendir("/proc/self/task");
    int found = -2;  // "." and ".."
    while (readdir(tasks)) found++;
    closedir(tasks);
    return found;
}

static void run_on(berth_session *session) {
    float *x = berth_session_input(session, 0)->data;
    for (int run = 0; run < 6; ++run) {  // the first ones are tried alone
        for (int i = 0; i < count; ++i) x[i] = (float)(run + i % 1000);
        assert_ok(berth_session_run(session, -1));
        const float *y = berth_session_output(session, 0)->data;
        for (int i = 0; i < count; ++i) cr_assert_eq(y[i], 6 * (float)(run + i % 1000));
    }
}

static void use(void (*parallel_for)(void *, uint32_t, void (*)(void *, uint32_t), void *),
                uint32_t parts) {
    berth_program *program = make_program();
    berth_session *session = NULL;
    pool p = {0};
    const berth_caller_threads threads = {sizeof(threads), parts, parallel_for, &p};
    const berth_session_settings settings = {
        .size_bytes = sizeof(settings), .thread_count = 7, .threads = &threads};
    int before = own_threads();
    assert_ok(berth_session_create(program, &settings, &session));
    cr_assert_leq(own_threads(), before + 1);  // no pool: at most the queue's
    run_on(session);
    cr_assert_geq(atomic_load(&p.calls), 4);
    cr_assert_eq(atomic_load(&p.parts), parts * atomic_load(&p.calls));
    berth_session_destroy(session);
    berth_program_release(program);
}

TestSuite(caller_threads, .timeout = 120);

Test(caller_threads, one_after_another) {
    use(backwards, 5);
}

Test(caller_threads, at_the_same_time) {
    use(at_once, 4);
}

// Requests of a runner share them.
Test(caller_threads, of_a_runner) {
    berth_program *program = make_program();
    pool p = {0};
    const berth_caller_threads threads = {sizeof(threads), 3, at_once, &p};
    const berth_session_settings session = {.size_bytes = sizeof(session), .threads = &threads};
    const berth_runner_settings settings = {
        .size_bytes = sizeof(settings), .at_once = 2, .session = &session};
    berth_runner *runner = NULL;
    assert_ok(berth_runner_create(program, &settings, &runner));
    enum { jobs = 8 };
    float *x[jobs], *y[jobs];
    berth_request *requests[jobs];
    for (int k = 0; k < jobs; ++k) {
        x[k] = aligned_alloc(128, count * sizeof(float));
        y[k] = aligned_alloc(128, count * sizeof(float));
        for (int i = 0; i < count; ++i) x[k][i] = (float)(k + i % 100);
        const berth_tensor in = {BERTH_DTYPE_F32, 1, {count}, x[k]};
        const berth_tensor out = {BERTH_DTYPE_F32, 1, {count}, y[k]};
        const berth_request_call call = {sizeof(call), &in, 1, &out, 1, 0, NULL, NULL, 0};
        assert_ok(berth_runner_submit(runner, &call, &requests[k]));
    }
    for (int k = 0; k < jobs; ++k) {
        assert_ok(berth_request_wait(requests[k], -1));
        cr_assert_eq(berth_request_code(requests[k]), BERTH_CODE_OK);
        for (int i = 0; i < count; ++i) cr_assert_eq(y[k][i], 6 * (float)(k + i % 100));
        berth_request_release(requests[k]);
        free(x[k]);
        free(y[k]);
    }
    cr_assert_gt(atomic_load(&p.calls), 0);
    berth_runner_destroy(runner);
    berth_program_release(program);
}

Test(caller_threads, wrong_ones) {
    berth_program *program = make_program();
    berth_session *session = NULL;
    const berth_caller_threads wrong[] = {{sizeof(wrong[0]), 0, backwards, NULL},
                                          {sizeof(wrong[0]), 2, NULL, NULL},
                                          {4, 2, backwards, NULL},
                                          {sizeof(wrong[0]), 100000, backwards, NULL}};
    for (int i = 0; i < 4; ++i) {
        const berth_session_settings settings = {.size_bytes = sizeof(settings),
                                                 .threads = &wrong[i]};
        berth_status status = berth_session_create(program, &settings, &session);
        cr_assert_eq(berth_status_code(status),
                     i == 3 ? BERTH_OUT_OF_RANGE : BERTH_INVALID_ARGUMENT);
        berth_status_free(status);
        cr_assert_null(session);
    }
    berth_program_release(program);
}
