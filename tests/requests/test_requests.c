// Requests of a runner, on programs made by hand: x3 kernels, and one that sleeps.
#include <berth/request.h>
#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/run/program.h"
#include "tests/check.h"
#include "tests/executor/program_builder.h"

enum { count = 96, million = 1000000 };

static void destroy_arena(void *owner) {
    berth_arena_destroy(owner);
}

// y = 3 * (x + w), w = 0, 1, 2, ...; after so many milliseconds. Of the weights the first ones are used.
static berth_program *make_program_of(int sleep_ms, uint32_t weight_count) {
    berth_arena *arena = NULL;
    berth_program *program = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    builder *b = builder_create(arena, "requests");
    uint32_t cpu = builder_device(b, "cpu", 0);
    float *w = berth_arena_new_array(arena, float, weight_count);
    for (uint32_t i = 0; i < weight_count; ++i) w[i] = (float)i;
    uint32_t x = builder_input(b, cpu, "x", count);
    uint32_t y = builder_output(b, cpu, "y", count);
    uint32_t slept = builder_tensor(b, cpu, count), sum = builder_tensor(b, cpu, count);
    builder_dispatch(b, cpu, "sleep", (uint32_t[]){x, slept}, 2, sleep_ms);
    uint32_t weights = builder_constant(b, cpu, w, weight_count);
    builder_dispatch(b, cpu, "add", (uint32_t[]){slept, weights, sum}, 3, 0);
    builder_dispatch(b, cpu, "scale", (uint32_t[]){sum, y}, 2, 3);
    assert_ok(berth_api__program_adopt(builder_finish(b, NULL), destroy_arena, arena, &program));
    return program;
}

static berth_program *make_program(int sleep_ms) {
    return make_program_of(sleep_ms, count);
}

// One request's buffers and what became of it. Some are aligned so that they are used in place.
typedef struct job {
    _Alignas(128) float x[count];
    _Alignas(128) float y[count + 1];
    berth_tensor input, output;
    atomic_int calls;
    berth_code code;
} job;

static void prepare(job *j, float value, int misaligned) {
    for (int i = 0; i < count; ++i) j->x[i] = value;
    memset(j->y, 0, sizeof(j->y));
    j->input = (berth_tensor){BERTH_DTYPE_F32, 1, {count}, j->x};
    j->output = (berth_tensor){BERTH_DTYPE_F32, 1, {count}, j->y + misaligned};
    atomic_store(&j->calls, 0);
}

static void check_result(const job *j) {
    const float *y = j->output.data;
    for (int i = 0; i < count; ++i) cr_assert_eq(y[i], 3 * (j->x[0] + (float)i));
}

static void note(void *user, berth_request *request) {
    job *j = user;
    j->code = berth_request_code(request);
    cr_expect_eq(berth_request_user(request), j);
    atomic_fetch_add(&j->calls, 1);
}

static berth_request_call call_of(job *j) {
    return (berth_request_call){.size_bytes = sizeof(berth_request_call),
                                .inputs = &j->input,
                                .input_count = 1,
                                .outputs = &j->output,
                                .output_count = 1,
                                .user = j};
}

static berth_runner *make_runner(int sleep_ms, uint32_t at_once) {
    berth_program *program = make_program(sleep_ms);
    const berth_session_settings session = {.size_bytes = sizeof(session), .thread_count = 1};
    const berth_runner_settings settings = {
        .size_bytes = sizeof(settings), .at_once = at_once, .session = &session};
    berth_runner *runner = NULL;
    assert_ok(berth_runner_create(program, &settings, &runner));
    berth_program_release(program);  // the runner has a reference
    return runner;
}

static job *make_jobs(int job_count) {
    job *jobs = aligned_alloc(128, (size_t)job_count * sizeof(job));
    for (int i = 0; i < job_count; ++i) prepare(&jobs[i], (float)i, i % 2);
    return jobs;
}

TestSuite(requests, .timeout = 120);

Test(requests, wait) {
    enum { job_count = 40 };
    berth_runner *runner = make_runner(0, 3);
    job *jobs = make_jobs(job_count);
    berth_request *requests[job_count];
    for (int i = 0; i < job_count; ++i) {
        berth_request_call call = call_of(&jobs[i]);
        call.done = note;
        assert_ok(berth_runner_submit(runner, &call, &requests[i]));
    }
    for (int i = 0; i < job_count; ++i) {
        assert_ok(berth_request_wait(requests[i], -1));
        cr_assert(berth_request_is_done(requests[i]));
        cr_assert_eq(berth_request_code(requests[i]), BERTH_CODE_OK);
        cr_assert_str_eq(berth_request_message(requests[i]), "");
        cr_assert_eq(atomic_load(&jobs[i].calls), 1);  // called before the wait is over
        check_result(&jobs[i]);
        berth_request_release(requests[i]);
    }
    cr_assert_null(berth_runner_take(runner));
    berth_runner_destroy(runner);
    free(jobs);
}

typedef struct counted {
    atomic_size_t live_bytes, peak_bytes;
} counted;

static void *count_resize(void *state, void *pointer, size_t old_size_bytes,
                          size_t new_size_bytes) {
    counted *c = state;
    void *result = NULL;
    if (new_size_bytes) {
        result = realloc(pointer, new_size_bytes);
        if (!result) return NULL;
    } else {
        free(pointer);
    }
    atomic_fetch_sub(&c->live_bytes, old_size_bytes);
    size_t live = atomic_fetch_add(&c->live_bytes, new_size_bytes) + new_size_bytes;
    size_t peak = atomic_load(&c->peak_bytes);
    while (live > peak && !atomic_compare_exchange_weak(&c->peak_bytes, &peak, live)) continue;
    return result;
}

// Two runners of one program, each with requests in flight that have sessions of their own: all that they allocate
// together is less than the weights, which are where the program has them.
Test(requests, weights_are_in_memory_once) {
    enum { job_count = 12, weight_count = 4 << 20, runner_count = 2 };
    counted bytes = {0};
    const berth_allocator allocator = {count_resize, &bytes};
    berth_program *program = make_program_of(5, weight_count);
    const berth_session_settings session = {
        .size_bytes = sizeof(session), .thread_count = 1, .allocator = &allocator};
    const berth_runner_settings settings = {
        .size_bytes = sizeof(settings), .at_once = 4, .session = &session};
    berth_runner *runners[runner_count];
    for (int i = 0; i < runner_count; ++i)
        assert_ok(berth_runner_create(program, &settings, &runners[i]));
    berth_program_release(program);
    job *jobs = make_jobs(job_count);
    berth_request *requests[job_count];
    for (int i = 0; i < job_count; ++i) {
        berth_request_call call = call_of(&jobs[i]);
        assert_ok(berth_runner_submit(runners[i % runner_count], &call, &requests[i]));
    }
    for (int i = 0; i < job_count; ++i) {
        assert_ok(berth_request_wait(requests[i], -1));
        check_result(&jobs[i]);
        berth_request_release(requests[i]);
    }
    for (int i = 0; i < runner_count; ++i) berth_runner_destroy(runners[i]);
    free(jobs);
    size_t peak = atomic_load(&bytes.peak_bytes);
    cr_assert_gt(peak, 4 * count * sizeof(float));  // it is this allocator that they use
    cr_assert_lt(peak, weight_count * sizeof(float), "%zu bytes", peak);
    cr_assert_eq(atomic_load(&bytes.live_bytes), 0);
}

Test(requests, callbacks_submit_the_next) {
    enum { job_count = 30 };
    berth_runner *runner = make_runner(0, 2);
    job *jobs = make_jobs(job_count);
    for (int i = 0; i < job_count; ++i) {
        berth_request_call call = call_of(&jobs[i]);
        call.done = note;
        assert_ok(berth_runner_submit(runner, &call, NULL));
    }
    for (int i = 0; i < job_count; ++i)
        while (atomic_load(&jobs[i].calls) == 0)
            nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    berth_runner_destroy(runner);
    for (int i = 0; i < job_count; ++i) {
        cr_assert_eq(jobs[i].code, BERTH_CODE_OK);
        check_result(&jobs[i]);
    }
    free(jobs);
}

// poll says when there is something to take, and nothing when there is not.
Test(requests, event) {
    enum { job_count = 20 };
    berth_runner *runner = make_runner(0, 2);
    job *jobs = make_jobs(job_count);
    struct pollfd event = {.fd = berth_runner_event(runner), .events = POLLIN};
    cr_assert_eq(poll(&event, 1, 0), 0);
    for (int i = 0; i < job_count; ++i) {
        berth_request_call call = call_of(&jobs[i]);
        call.to_take = i != 3;
        assert_ok(berth_runner_submit(runner, &call, NULL));
    }
    for (int taken = 0; taken < job_count - 1; ++taken) {
        cr_assert_eq(poll(&event, 1, 60000), 1);
        berth_request *request = berth_runner_take(runner);
        cr_assert_not_null(request);
        cr_assert(berth_request_is_done(request));
        check_result(berth_request_user(request));
        cr_assert_neq(berth_request_user(request), &jobs[3]);
        berth_request_release(request);
    }
    cr_assert_eq(poll(&event, 1, 0), 0);
    cr_assert_null(berth_runner_take(runner));
    berth_runner_destroy(runner);
    free(jobs);
}

// One runs, one waits: both are cancelled, and those around them are done as ever.
Test(requests, cancel_leaves_others_running) {
    enum { job_count = 6 };
    berth_runner *runner = make_runner(60, 2);
    job *jobs = make_jobs(job_count);
    berth_request *requests[job_count];
    for (int i = 0; i < job_count; ++i) {
        berth_request_call call = call_of(&jobs[i]);
        call.done = note;
        assert_ok(berth_runner_submit(runner, &call, &requests[i]));
    }
    nanosleep(&(struct timespec){.tv_nsec = 20 * million}, NULL);  // 0 and 1 run
    berth_request_cancel(requests[5]);
    cr_assert(berth_request_is_done(requests[5]));
    berth_request_cancel(requests[0]);
    for (int i = 0; i < job_count; ++i) {
        bool cancelled = i == 0 || i == 5;
        assert_ok(berth_request_wait(requests[i], -1));
        if (i == 0 && berth_request_code(requests[i]) == BERTH_CODE_OK)
            cancelled = false;  // the only one whose time may have come before
        cr_assert_eq(berth_request_code(requests[i]), cancelled ? BERTH_CANCELLED : BERTH_CODE_OK);
        cr_assert_eq(strstr(berth_request_message(requests[i]), "cancelled") != NULL, cancelled);
        cr_assert_eq(atomic_load(&jobs[i].calls), 1);
        if (!cancelled) check_result(&jobs[i]);
        berth_request_cancel(requests[i]);  // too late: nothing
        berth_request_release(requests[i]);
    }
    berth_runner_destroy(runner);
    free(jobs);
}

// Its time is up while it runs, or before it had its turn; the next runs.
Test(requests, limits) {
    berth_runner *runner = make_runner(80, 1);
    job *jobs = make_jobs(3);
    berth_request *requests[3];
    for (int i = 0; i < 3; ++i) {
        berth_request_call call = call_of(&jobs[i]);
        call.timeout_ns = i < 2 ? 20 * million : 0;
        assert_ok(berth_runner_submit(runner, &call, &requests[i]));
    }
    assert_fails(berth_request_wait(requests[2], 1000), BERTH_DEADLINE_EXCEEDED, "did not end");
    for (int i = 0; i < 3; ++i) {
        assert_ok(berth_request_wait(requests[i], -1));
        cr_assert_eq(berth_request_code(requests[i]),
                     i < 2 ? BERTH_DEADLINE_EXCEEDED : BERTH_CODE_OK);
    }
    cr_assert(strstr(berth_request_message(requests[1]), "waited longer"));
    check_result(&jobs[2]);
    berth_runner_destroy(runner);  // with the requests, which nobody released
    free(jobs);
}

Test(requests, refused) {
    berth_runner *runner = NULL;
    berth_program *program = make_program(50);
    berth_runner_settings settings = {.size_bytes = 3};
    assert_fails(berth_runner_create(program, &settings, &runner), BERTH_INVALID_ARGUMENT,
                 "size_bytes");
    settings = (berth_runner_settings){.size_bytes = sizeof(settings), .at_once = 1000};
    assert_fails(berth_runner_create(program, &settings, &runner), BERTH_OUT_OF_RANGE, "1000");
    settings.at_once = 1;
    settings.most_waiting = 2;
    assert_ok(berth_runner_create(program, &settings, &runner));
    job *jobs = make_jobs(1);
    berth_request_call call = call_of(&jobs[0]);
    call.input_count = 0;
    assert_fails(berth_runner_submit(runner, &call, NULL), BERTH_INVALID_ARGUMENT, "1 input");
    call = call_of(&jobs[0]);
    jobs[0].output.dims[0] = 7;
    assert_fails(berth_runner_submit(runner, &call, NULL), BERTH_INCOMPATIBLE, "\"y\"");
    jobs[0].output.dims[0] = count;
    call.size_bytes = 1;
    assert_fails(berth_runner_submit(runner, &call, NULL), BERTH_INVALID_ARGUMENT, "size_bytes");
    call.size_bytes = sizeof(call);
    berth_status status = BERTH_OK;
    int accepted = 0;
    for (; accepted < 4 && !status; accepted += !status)
        status = berth_runner_submit(runner, &call, NULL);
    cr_assert_geq(accepted, 2);
    assert_fails(status, BERTH_OUT_OF_RANGE, "2 requests wait");
    berth_runner_destroy(runner);
    berth_program_release(program);
    free(jobs);
}

// What waits ends with CANCELLED, and its callback says so before destroy returns.
Test(requests, destroy_ends_what_waits) {
    enum { job_count = 8 };
    berth_runner *runner = make_runner(20, 1);
    job *jobs = make_jobs(job_count);
    for (int i = 0; i < job_count; ++i) {
        berth_request_call call = call_of(&jobs[i]);
        call.done = note;
        assert_ok(berth_runner_submit(runner, &call, NULL));
    }
    berth_runner_destroy(runner);
    int cancelled = 0;
    for (int i = 0; i < job_count; ++i) {
        cr_assert_eq(atomic_load(&jobs[i].calls), 1);
        cancelled += jobs[i].code == BERTH_CANCELLED;
    }
    cr_assert_geq(cancelled, job_count - 2);
    free(jobs);
}
