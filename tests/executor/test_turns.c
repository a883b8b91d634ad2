// Sessions of several programs that run in turns, with one workspace.
#include <criterion/criterion.h>
#include <stdatomic.h>
#include <string.h>
#include <threads.h>
#include <unistd.h>

#include "base/alloc.h"
#include "executor/turns.h"
#include "tests/check.h"
#include "tests/executor/program_builder.h"

static berth_arena *arena;

static void setup(void) {
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
}

static void teardown(void) {
    berth_arena_destroy(arena);
}

TestSuite(turns, .init = setup, .fini = teardown, .timeout = 120);

enum { small_count = 128, large_count = 5000, runs = 200 };

// y = factor * (x + w), w = 0, 1, 2, ..., by way of workspace, which waits `milliseconds` in between.
static berth_program *make_affine(uint32_t count, int64_t factor, int64_t milliseconds) {
    builder *b = builder_create(arena, "affine");
    uint32_t cpu = builder_device(b, "cpu", 0);
    float *w = berth_arena_new_array(arena, float, count);
    for (uint32_t i = 0; i < count; ++i) w[i] = (float)i;
    uint32_t x = builder_input(b, cpu, "x", count), y = builder_output(b, cpu, "y", count);
    uint32_t sum = builder_tensor(b, cpu, count), later = builder_tensor(b, cpu, count);
    builder_dispatch(b, cpu, "add", (uint32_t[]){x, builder_constant(b, cpu, w, count), sum}, 3, 0);
    if (milliseconds)
        builder_dispatch(b, cpu, "sleep", (uint32_t[]){sum, later}, 2, milliseconds);
    else
        builder_dispatch(b, cpu, "scale", (uint32_t[]){sum, later}, 2, 1);
    builder_dispatch(b, cpu, "scale", (uint32_t[]){later, y}, 2, factor);
    return builder_finish(b, NULL);
}

static void set_input(berth_session *session, float value) {
    const berth_tensor *x = berth_session_input(session, 0);
    for (int64_t i = 0; i < x->dims[0]; ++i) ((float *)x->data)[i] = value;
}

static void check_output(berth_session *session, float value, int factor) {
    const berth_tensor *y = berth_session_output(session, 0);
    for (int64_t i = 0; i < y->dims[0]; ++i)
        cr_assert_eq(((const float *)y->data)[i], (float)factor * (value + (float)i));
}

static uint64_t pool_bytes(const berth_program *program, berth_pool_usage usage) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < program->pool_count; ++i)
        if (program->pools[i].usage == usage) bytes += program->pools[i].size_bytes;
    return bytes;
}

static uint64_t peak_bytes(berth_session *session) {
    berth_session_report report;
    berth_session_get_report(session, &report);
    return report.devices[0].peak_bytes - report.devices[0].borrowed_bytes;
}

static void open_two(int64_t milliseconds, berth_session **sessions) {
    const berth_program *programs[] = {make_affine(small_count, 3, milliseconds),
                                       make_affine(large_count, 5, milliseconds)};
    assert_ok(berth_turns_open(berth_allocator_system(), programs, 2, NULL, sessions));
}

// The smaller one is opened first: what there is is the larger one's from the beginning.
Test(turns, one_workspace_of_the_largest_size) {
    berth_session *sessions[2], *alone = NULL;
    open_two(0, sessions);
    uint64_t workspace[2], io = 0;
    for (int i = 0; i < 2; ++i) {
        const berth_program *program = berth_session_program(sessions[i]);
        workspace[i] = pool_bytes(program, BERTH_POOL_WORKSPACE);
        io += pool_bytes(program, BERTH_POOL_IO);
    }
    cr_assert_gt(workspace[1], workspace[0]);
    cr_expect_eq(berth_turns_workspace_bytes(sessions[0]), workspace[1]);
    cr_expect_eq(berth_turns_workspace_bytes(sessions[1]), workspace[1]);
    for (int run = 0; run < 3; ++run) {
        for (int i = 0; i < 2; ++i) set_input(sessions[i], (float)(run + 10 * i));
        for (int i = 0; i < 2; ++i) assert_ok(berth_session_run(sessions[i], -1));
        check_output(sessions[0], (float)run, 3);  // not lost by the other one's run
        check_output(sessions[1], (float)(run + 10), 5);
    }
    // What their device had allocated is that workspace, and what is each one's own.
    assert_ok(berth_session_open(berth_allocator_system(), berth_session_program(sessions[1]), NULL,
                                 &alone));
    uint64_t of_threads = peak_bytes(alone) - workspace[1] -
                          pool_bytes(berth_session_program(sessions[1]), BERTH_POOL_IO);
    cr_expect_leq(peak_bytes(sessions[0]), workspace[1] + io + of_threads);
    cr_expect_eq(berth_turns_workspace_bytes(alone), 0);
    berth_session_close(alone);
    berth_session_close(sessions[0]);
    set_input(sessions[1], 7);
    assert_ok(berth_session_run(sessions[1], -1));
    check_output(sessions[1], 7, 5);
    berth_session_close(sessions[1]);
}

typedef struct runner {
    berth_session *session;
    int factor;
} runner;

static int run_many(void *user) {
    const runner *r = user;
    for (int run = 0; run < runs; ++run) {
        set_input(r->session, (float)run);
        assert_ok(berth_session_run(r->session, -1));
        check_output(r->session, (float)run, r->factor);
    }
    return 0;
}

Test(turns, runs_of_threads_wait_for_each_other) {
    berth_session *sessions[2];
    thrd_t thread;
    open_two(1, sessions);
    runner first = {sessions[0], 3}, second = {sessions[1], 5};
    cr_assert_eq(thrd_create(&thread, run_many, &first), thrd_success);
    run_many(&second);
    thrd_join(thread, NULL);
    for (int i = 0; i < 2; ++i) berth_session_close(sessions[i]);
}

static int run_once(void *user) {
    assert_ok(berth_session_run(user, -1));
    return 0;
}

Test(turns, a_timeout_ends_the_wait_for_a_turn) {
    berth_session *sessions[2];
    thrd_t thread;
    open_two(400, sessions);
    set_input(sessions[0], 1);
    cr_assert_eq(thrd_create(&thread, run_once, sessions[0]), thrd_success);
    usleep(100 * 1000);
    assert_fails(berth_session_run(sessions[1], 20 * 1000000), BERTH_DEADLINE_EXCEEDED,
                 "did not begin within 20000 us");
    thrd_join(thread, NULL);
    check_output(sessions[0], 1, 3);
    set_input(sessions[1], 2);
    assert_ok(berth_session_run(sessions[1], 2000000000));
    check_output(sessions[1], 2, 5);
    for (int i = 0; i < 2; ++i) berth_session_close(sessions[i]);
}

// A step that a timeout left running writes to the workspace later; the next run must not begin before.
Test(turns, what_a_timeout_leaves_running_disturbs_nobody) {
    const berth_program *programs[] = {make_affine(small_count, 3, 150),
                                       make_affine(small_count, 5, 300)};
    berth_session *sessions[2];
    assert_ok(berth_turns_open(berth_allocator_system(), programs, 2, NULL, sessions));
    for (int i = 0; i < 2; ++i) set_input(sessions[i], (float)(10 + i));
    assert_fails(berth_session_run(sessions[0], 20 * 1000000), BERTH_DEADLINE_EXCEEDED,
                 "did not end");
    assert_ok(berth_session_run(sessions[1], -1));
    check_output(sessions[1], 11, 5);
    assert_ok(berth_session_run(sessions[0], -1));
    check_output(sessions[0], 10, 3);
    assert_fails(berth_session_run(sessions[0], 0), BERTH_DEADLINE_EXCEEDED, "did not end");
    for (int i = 0; i < 2; ++i) berth_session_close(sessions[i]);
}

Test(turns, what_cannot_be_opened_leaves_nothing) {
    const berth_program *programs[] = {make_affine(small_count, 3, 0),
                                       make_affine(large_count, 5, 0)};
    berth_session *sessions[2];
    const berth_session_binding nobody = {.name = "opencl:7"};
    assert_fails(berth_turns_open(berth_allocator_system(), programs, 2,
                                  &(berth_session_options){.bindings = &nobody, .binding_count = 1},
                                  sessions),
                 BERTH_INVALID_ARGUMENT, "opencl:7");
    assert_fails(berth_turns_open(berth_allocator_system(), programs, 0, NULL, sessions),
                 BERTH_INVALID_ARGUMENT, "no program");
    for (int64_t at = 1;; ++at) {
        cr_assert_lt(at, 2000);
        berth_counting_allocator counting;
        berth_counting_allocator_init(&counting, berth_allocator_system());
        atomic_store(&counting.fail_at, at);
        berth_status status =
            berth_turns_open(berth_counting_allocator_get(&counting), programs, 2, NULL, sessions);
        berth_code code = berth_status_code(status);
        berth_status_free(status);
        for (int i = 0; i < 2; ++i) {
            cr_assert_eq(sessions[i] == NULL, code != BERTH_CODE_OK);
            berth_session_close(sessions[i]);
        }
        cr_assert_eq(atomic_load(&counting.live_count), 0, "failing allocation %lld leaks",
                     (long long)at);
        if (code == BERTH_CODE_OK) break;
        cr_assert_eq(code, BERTH_OUT_OF_MEMORY);
    }
}
