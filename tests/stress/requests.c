// Requests under pressure, as a plain program so that it runs under the thread sanitizer too: threads
// that submit, wait, take, cancel and set limits on the runners of two programs, over two queues of a device;
// while steps fail, and when the device is lost.
//
//   stress_requests [rounds]
#include <berth/device.h>
#include <berth/request.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "api/run/program.h"
#include "tests/executor/program_builder.h"

// The loader's own lock is invisible to the sanitizer, which then sees dlclose of one thread race
// with another's.
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void) {
    return "race:_dl_close_worker\n";
}

enum { thread_count = 8, program_count = 2, count = 300, runs = 40 };

static berth_code fault;  // that requests may meet, besides what is done to them

static void check(bool ok, const char *what) {
    if (ok) return;
    fprintf(stderr, "stress_requests: %s\n", what);
    exit(1);
}

static void must(berth_status status) {
    check(!status, berth_status_message(status));
}

static void destroy_arena(void *owner) {
    berth_arena_destroy(owner);
}

// y = 8 * x, or only 4 * x, in parts on two devices of the program.
static berth_program *make_part(int factor) {
    berth_arena *arena = NULL;
    berth_program *program = NULL;
    must(berth_arena_create(berth_allocator_system(), &arena));
    builder *b = builder_create(arena, "stress");
    uint32_t cpu = builder_device(b, "cpu", 0), other = builder_device(b, "cpu", 1);
    uint32_t x = builder_input(b, cpu, "x", count), y = builder_output(b, cpu, "y", count);
    uint32_t twice = builder_tensor(b, cpu, count), there = builder_tensor(b, other, count);
    uint32_t four = builder_tensor(b, other, count);
    builder_dispatch(b, cpu, "scale", (uint32_t[]){x, twice}, 2, 2);
    builder_copy(b, other, twice, there);
    builder_dispatch(b, other, "scale", (uint32_t[]){there, four}, 2, 2);
    if (factor == 8) {
        uint32_t back = builder_tensor(b, cpu, count);
        builder_copy(b, cpu, four, back);
        builder_dispatch(b, cpu, "scale", (uint32_t[]){back, y}, 2, 2);
    } else {
        builder_copy(b, cpu, four, y);
    }
    const berth_program *record = builder_finish(b, NULL);
    if (record->executables[0].size_bytes == 0) {
        puts("skipped: no C compiler for the kernels");
        exit(0);
    }
    must(berth_api__program_adopt(record, destroy_arena, arena, &program));
    return program;
}

// The same for when a device is lost, too.
static berth_program *make_program(int factor) {
    berth_program *program = make_part(factor), *fallback = make_part(factor), *whole = NULL;
    must(berth_program_with_fallbacks(program, &fallback, 1, &whole));
    berth_program_release(program);
    berth_program_release(fallback);
    return whole;
}

typedef struct job {
    _Alignas(128) float x[count];
    _Alignas(128) float y[count];
    berth_tensor input, output;
    atomic_int calls;
} job;

static void note(void *user, berth_request *request) {
    (void)request;
    atomic_fetch_add(&((job *)user)->calls, 1);
}

static berth_request *submit(berth_runner *runner, job *j, int run, int64_t timeout_ns) {
    berth_request *request = NULL;
    for (int i = 0; i < count; ++i) j->x[i] = (float)(run + i);
    j->input = (berth_tensor){BERTH_DTYPE_F32, 1, {count}, j->x};
    j->output = (berth_tensor){BERTH_DTYPE_F32, 1, {count}, j->y};
    const berth_request_call call = {.size_bytes = sizeof(call),
                                     .inputs = &j->input,
                                     .input_count = 1,
                                     .outputs = &j->output,
                                     .output_count = 1,
                                     .timeout_ns = timeout_ns,
                                     .done = note,
                                     .user = j,
                                     .to_take = run % 3 == 0};
    must(berth_runner_submit(runner, &call, &request));
    return request;
}

typedef struct user {
    berth_runner *runner;
    float factor;  // of its program
} user;

// Three requests at a time: one is left alone, one has little time, one is cancelled.
static void *use_runner(void *argument) {
    const user *u = argument;
    berth_runner *runner = u->runner;
    enum { kinds = 3 };
    job *jobs = aligned_alloc(128, kinds * sizeof(job));
    for (int k = 0; k < kinds; ++k) atomic_init(&jobs[k].calls, 0);
    for (int run = 0; run < runs; ++run) {
        berth_request *requests[kinds];
        for (int k = 0; k < kinds; ++k)
            requests[k] = submit(runner, &jobs[k], run, k == 1 ? run * 20000 + 1 : 0);
        if (run % 2) nanosleep(&(struct timespec){.tv_nsec = run * 1000}, NULL);
        berth_request_cancel(requests[2]);
        for (int k = 0; k < kinds; ++k) {
            must(berth_request_wait(requests[k], -1));
            berth_code code = berth_request_code(requests[k]);
            static const berth_code allowed[] = {BERTH_CODE_OK, BERTH_DEADLINE_EXCEEDED,
                                                 BERTH_CANCELLED};
            check(code == BERTH_CODE_OK || code == allowed[k] || code == fault,
                  berth_request_message(requests[k]));
            check(atomic_load(&jobs[k].calls) == run + 1, "a callback did not come, or twice");
            for (int i = 0; !code && i < count; ++i)
                check(jobs[k].y[i] == u->factor * jobs[k].x[i], "a result is wrong");
            berth_request_release(requests[k]);
        }
        for (berth_request *taken; (taken = berth_runner_take(runner));)
            berth_request_release(taken);
    }
    free(jobs);
    return NULL;
}

// What goes wrong in a runner's time (tests/faults/flaky_driver.c).
typedef struct trouble {
    const char *variable, *value;
    berth_code code;  // of requests that it hits
    uint32_t plan;    // that runs in the end
} trouble;

static void put_under_pressure(berth_program *const programs[program_count], const trouble *t) {
    static const berth_device_choice other = {"cpu:1", 0};  // two queues, one device
    const berth_session_settings session = {
        .size_bytes = sizeof(session), .thread_count = 2, .devices = &other, .device_count = 1};
    const berth_runner_settings settings = {
        .size_bytes = sizeof(settings), .at_once = 2, .session = &session};
    user users[program_count] = {{NULL, 8}, {NULL, 4}};
    if (t->variable) setenv(t->variable, t->value, 1);
    fault = t->code;
    for (int p = 0; p < program_count; ++p)
        must(berth_runner_create(programs[p], &settings, &users[p].runner));
    pthread_t threads[thread_count];
    for (int i = 0; i < thread_count; ++i)
        check(pthread_create(&threads[i], NULL, use_runner, &users[i % program_count]) == 0,
              "no thread");
    for (int i = 0; i < thread_count; ++i) pthread_join(threads[i], NULL);
    for (int p = 0; p < program_count; ++p) {
        check(berth_runner_plan(users[p].runner, NULL) == t->plan, "another plan runs than should");
        berth_runner_destroy(users[p].runner);
    }
    if (t->variable) unsetenv(t->variable);
}

int main(int argc, char **argv) {
    static const trouble troubles[] = {{.plan = 0},
                                       {"FLAKY_FAIL_EVERY", "11", BERTH_IO, 0},
                                       {"FLAKY_LOSE_AFTER", "25", BERTH_CODE_OK, 1}};
    int rounds = argc > 1 ? atoi(argv[1]) : 2;
    const char *kind = NULL;
    must(berth_driver_load(FLAKY_CPU, &kind));
    berth_program *programs[program_count] = {make_program(8), make_program(4)};
    for (int round = 0; round < rounds; ++round)
        for (size_t i = 0; i < sizeof(troubles) / sizeof(*troubles); ++i)
            put_under_pressure(programs, &troubles[i]);
    for (int p = 0; p < program_count; ++p) berth_program_release(programs[p]);
    puts("ok");
    return 0;
}
