// Programs across cpu and OpenCL devices: results for random graphs and placements, copies all
// ways, failures.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

#include "devices/registry.h"
#include "executor/session.h"
#include "tests/check.h"
#include "tests/device_is_here.h"
#include "tests/executor/program_builder.h"

static berth_arena *arena;

static void setup(void) {
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
}

static void teardown(void) {
    berth_arena_destroy(arena);
}

TestSuite(devices, .init = setup, .fini = teardown, .timeout = 120);

// Skips the test where there are fewer OpenCL devices, unless BERTH_REQUIRE_DRIVERS asks for them.
static void need_opencl(uint32_t count) {
    // Two PoCL devices on any machine. Must be set before the OpenCL library is loaded, which every
    // test does itself.
    setenv("POCL_DEVICES", "pthread pthread", 1);
    if (!device_is_here("opencl", count)) cr_skip("skipped: this needs %u OpenCL devices", count);
}

enum { count = 200 };

// ---- fixed programs ----

// y = 2 * x + 3 * x: scale by 2 on the cpu and by 3 on OpenCL, the sum on the cpu.
static builder *make_diamond(void) {
    builder *b = builder_create(arena, "diamond");
    uint32_t cpu = builder_device(b, "cpu", 0);
    uint32_t gpu = builder_device(b, "opencl", 0);
    uint32_t x = builder_input(b, cpu, "x", count);
    uint32_t y = builder_output(b, cpu, "y", count);
    uint32_t twice = builder_tensor(b, cpu, count), x_gpu = builder_tensor(b, gpu, count);
    uint32_t thrice_gpu = builder_tensor(b, gpu, count), thrice = builder_tensor(b, cpu, count);
    builder_copy(b, gpu, x, x_gpu);
    builder_dispatch(b, gpu, "scale", (uint32_t[]){x_gpu, thrice_gpu}, 2, 3);
    builder_copy(b, gpu, thrice_gpu, thrice);
    builder_dispatch(b, cpu, "scale", (uint32_t[]){x, twice}, 2, 2);
    builder_dispatch(b, cpu, "add", (uint32_t[]){twice, thrice, y}, 3, 0);
    return b;
}

Test(devices, cpu_and_opencl_share_the_work) {
    need_opencl(1);
    berth_counting_allocator counting;
    berth_counting_allocator_init(&counting, berth_allocator_system());
    berth_session *session = NULL;
    assert_ok(berth_session_open(berth_counting_allocator_get(&counting),
                                 builder_finish(make_diamond(), NULL),
                                 &(berth_session_options){.profile = true}, &session));
    int64_t opened = atomic_load(&counting.allocation_count);
    for (int run = 0; run < 50; ++run) {
        float *x = berth_session_input(session, 0)->data;
        for (int i = 0; i < count; ++i) x[i] = (float)(i * run);
        assert_ok(berth_session_run(session, -1));
        const float *y = berth_session_output(session, 0)->data;
        for (int i = 0; i < count; ++i) cr_assert_eq(y[i], (float)(5 * i * run));
    }
    cr_assert_eq(atomic_load(&counting.allocation_count), opened, "%lld allocations while running",
                 (long long)(atomic_load(&counting.allocation_count) - opened));
    berth_session_report report;
    berth_session_get_report(session, &report);
    cr_assert_eq(report.copied_bytes, 2 * count * sizeof(float));
    cr_assert_eq(report.devices[0].kernel_count, 2);
    cr_assert_eq(report.devices[1].kernel_count, 1);
    cr_assert_eq(report.devices[1].copy_count, 2);
    cr_assert_eq(report.devices[1].workspace_bytes, 2 * 896);
    for (uint32_t i = 0; i < report.step_count; ++i) {
        cr_assert_gt(report.steps[i].start_ns, 0);
        cr_assert_geq(report.steps[i].end_ns, report.steps[i].start_ns);
    }
    cr_assert_geq(report.steps[4].start_ns, report.steps[2].end_ns,
                  "the sum began before the copy it needs ended");
    berth_session_close(session);
    cr_assert_eq(atomic_load(&counting.live_count), 0);
}

// The cpu sleeps in its first step; OpenCL's steps, submitted after it and needing nothing of it,
// must not wait.
Test(devices, devices_work_at_the_same_time) {
    need_opencl(1);
    builder *b = builder_create(arena, "parallel");
    uint32_t cpu = builder_device(b, "cpu", 0);
    uint32_t gpu = builder_device(b, "opencl", 0);
    uint32_t x = builder_input(b, cpu, "x", count);
    uint32_t y = builder_output(b, cpu, "y", count), z = builder_output(b, cpu, "z", count);
    uint32_t x_gpu = builder_tensor(b, gpu, count), y_gpu = builder_tensor(b, gpu, count);
    uint32_t asleep = builder_dispatch(b, cpu, "sleep", (uint32_t[]){x, z}, 2, 300);
    builder_copy(b, gpu, x, x_gpu);
    builder_dispatch(b, gpu, "scale", (uint32_t[]){x_gpu, y_gpu}, 2, 3);
    uint32_t last = builder_copy(b, gpu, y_gpu, y);
    berth_session *session = NULL;
    assert_ok(berth_session_open(berth_allocator_system(), builder_finish(b, NULL),
                                 &(berth_session_options){.profile = true}, &session));
    berth_session_report report;
    for (int run = 0; run < 2;
         ++run) {  // the first one may be slow: the kernel is compiled for its size
        for (int i = 0; i < count; ++i)
            ((float *)berth_session_input(session, 0)->data)[i] = (float)i;
        assert_ok(berth_session_run(session, -1));
    }
    for (int i = 0; i < count; ++i) {
        cr_assert_eq(((const float *)berth_session_output(session, 0)->data)[i], (float)(3 * i));
        cr_assert_eq(((const float *)berth_session_output(session, 1)->data)[i], (float)i);
    }
    berth_session_get_report(session, &report);
    cr_assert_lt(report.steps[last].end_ns, report.steps[asleep].end_ns);
    berth_session_close(session);
}

Test(devices, constants_are_uploaded) {
    need_opencl(1);
    builder *b = builder_create(arena, "upload");
    uint32_t cpu = builder_device(b, "cpu", 0);
    uint32_t gpu = builder_device(b, "opencl", 0);
    float w[count];
    for (int i = 0; i < count; ++i) w[i] = (float)(i * i);
    uint32_t x = builder_input(b, cpu, "x", count), y = builder_output(b, cpu, "y", count);
    uint32_t x_gpu = builder_tensor(b, gpu, count), y_gpu = builder_tensor(b, gpu, count);
    uint32_t first = builder_constant(b, gpu, w, 7), w_gpu = builder_constant(b, gpu, w, count);
    (void)first;
    builder_copy(b, gpu, x, x_gpu);
    builder_dispatch(b, gpu, "add", (uint32_t[]){x_gpu, w_gpu, y_gpu}, 3, 0);
    builder_copy(b, gpu, y_gpu, y);
    berth_session *session = NULL;
    assert_ok(
        berth_session_open(berth_allocator_system(), builder_finish(b, NULL), NULL, &session));
    for (int i = 0; i < count; ++i) ((float *)berth_session_input(session, 0)->data)[i] = (float)-i;
    assert_ok(berth_session_run(session, -1));
    const float *result = berth_session_output(session, 0)->data;
    for (int i = 0; i < count; ++i) cr_assert_eq(result[i], w[i] - (float)i);
    berth_session_close(session);
}

// ---- random graphs on random devices ----

enum { device_limit = 3, value_limit = 40 };

typedef struct graph {
    builder *b;
    uint64_t state;
    uint32_t device_count;  // 0 is the cpu, the rest OpenCL
    bool direct;            // OpenCL devices copy to each other
    uint32_t values;
    uint32_t tensors[value_limit]
                    [device_limit];  // of each value on each device; BERTH_NO_INDEX = not there
    float expected[value_limit];     // all elements of a value are multiples of the element's index
} graph;

static uint32_t pick(graph *g, uint32_t limit) {
    g->state = g->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(g->state >> 33) % limit;
}

// The tensor of a value on a device, copied there when it is not: between OpenCL devices through
// the cpu, or directly, by the queue of either.
static uint32_t on_device(graph *g, uint32_t value, uint32_t device) {
    uint32_t *at = g->tensors[value];
    if (at[device] != BERTH_NO_INDEX) return at[device];
    if (device != 0 && at[0] == BERTH_NO_INDEX && !g->direct) on_device(g, value, 0);
    uint32_t from = g->direct ? pick(g, g->device_count) : 0;
    while (at[from] == BERTH_NO_INDEX || (device != 0 && from != 0 && !g->direct))
        from = (from + 1) % g->device_count;
    at[device] = builder_tensor(g->b, device, count);
    uint32_t queue = device ? device : from;
    if (device && from && pick(g, 2)) queue = from;
    builder_copy(g->b, queue, at[from], at[device]);
    return at[device];
}

static void add_operation(graph *g) {
    uint32_t device = pick(g, g->device_count);
    uint32_t a = pick(g, g->values), c = pick(g, g->values);
    uint32_t result = g->values;
    uint32_t from_a = on_device(g, a, device);
    for (uint32_t d = 0; d < device_limit; ++d) g->tensors[result][d] = BERTH_NO_INDEX;
    if (pick(g, 2) && g->expected[a] + g->expected[c] < 50000) {
        uint32_t from_c = on_device(g, c, device);
        g->tensors[result][device] = builder_tensor(g->b, device, count);
        builder_dispatch(g->b, device, "add",
                         (uint32_t[]){from_a, from_c, g->tensors[result][device]}, 3, 0);
        g->expected[result] = g->expected[a] + g->expected[c];
    } else {
        int factor = g->expected[a] > 10000 ? -1 : 2;
        g->tensors[result][device] = builder_tensor(g->b, device, count);
        builder_dispatch(g->b, device, "scale", (uint32_t[]){from_a, g->tensors[result][device]}, 2,
                         factor);
        g->expected[result] = g->expected[a] * (float)factor;
    }
    g->values++;
}

static void run_random(uint64_t seed, uint32_t device_count, bool shuffle, bool direct) {
    berth_arena *scratch = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &scratch));
    graph g = {.b = builder_create(scratch, "random"), .state = seed, .device_count = device_count};
    g.direct = direct;
    builder_device(g.b, "cpu", 0);
    for (uint32_t d = 1; d < device_count; ++d) builder_device(g.b, "opencl", d - 1);
    for (uint32_t d = 0; d < device_limit; ++d) g.tensors[0][d] = BERTH_NO_INDEX;
    g.tensors[0][0] = builder_input(g.b, 0, "x", count);
    g.expected[0] = 1;
    g.values = 1;
    uint32_t operations = 5 + pick(&g, 20);
    for (uint32_t i = 0; i < operations; ++i) add_operation(&g);
    uint32_t outputs[3], values[3];
    for (uint32_t i = 0; i < 3; ++i) {
        values[i] = i ? pick(&g, g.values) : g.values - 1;
        uint32_t from = on_device(&g, values[i], 0);
        outputs[i] = builder_output(g.b, 0, (const char *[]){"a", "b", "c"}[i], count);
        builder_dispatch(g.b, 0, "scale", (uint32_t[]){from, outputs[i]}, 2, 1);
    }
    berth_session *session = NULL;
    assert_ok(berth_session_open(berth_allocator_system(), builder_finish(g.b, NULL),
                                 &(berth_session_options){.thread_count = 1 + (uint32_t)(seed % 2)},
                                 &session));
    for (int run = 1; run <= 4; ++run) {
        float *x = berth_session_input(session, 0)->data;
        for (int i = 0; i < count; ++i) x[i] = (float)(i % 8 * run);
        assert_ok(berth_session_run(session, shuffle && run == 2 ? (int64_t)60 * 1000000000 : -1));
        for (uint32_t o = 0; o < 3; ++o)
            for (int i = 0; i < count; ++i)
                cr_assert_eq(((const float *)berth_session_output(session, o)->data)[i],
                             g.expected[values[o]] * (float)(i % 8 * run),
                             "seed %llu run %d output %u element %d", (unsigned long long)seed, run,
                             o, i);
    }
    berth_session_close(session);
    berth_arena_destroy(scratch);
}

Test(devices, random_graphs_on_the_cpu) {
    for (uint64_t seed = 1; seed <= 20; ++seed) run_random(seed, 1, true, false);
}

Test(devices, random_graphs_on_cpu_and_opencl) {
    need_opencl(1);
    for (uint64_t seed = 1; seed <= 15; ++seed) run_random(seed, 2, true, false);
}

Test(devices, random_graphs_on_two_opencl_devices) {
    need_opencl(2);
    for (uint64_t seed = 1; seed <= 15; ++seed) run_random(seed, 3, false, false);
}

Test(devices, random_graphs_on_two_devices_that_copy_to_each_other) {
    need_opencl(2);
    for (uint64_t seed = 1; seed <= 15; ++seed) run_random(seed, 3, false, true);
}

// ---- failures ----

Test(devices, a_failed_build_shows_its_log) {
    need_opencl(1);
    berth_session *session = NULL;
    berth_program *program =
        builder_finish(make_diamond(), "kernel void scale(global const float *x, global float *y, "
                                       "long n, long f) { undeclared_name; }");
    berth_status status = berth_session_open(berth_allocator_system(), program, NULL, &session);
    cr_assert_not_null(strstr(berth_status_message(status), "undeclared_name"), "%s",
                       berth_status_message(status));
    cr_assert_not_null(
        strstr(berth_status_message(status), "code of \"scale1\" for device \"opencl:0\""), "%s",
        berth_status_message(status));
    berth_status_free(status);
}

Test(devices, absent_opencl_device_says_what_is_here) {
    need_opencl(1);
    builder *b = builder_create(arena, "far");
    uint32_t tensors[2] = {builder_input(b, builder_device(b, "cpu", 0), "x", 4), 0};
    uint32_t far = builder_device(b, "opencl", 17);
    tensors[1] = builder_tensor(b, far, 4);
    builder_copy(b, far, tensors[0], tensors[1]);
    berth_session *session = NULL;
    assert_fails(
        berth_session_open(berth_allocator_system(), builder_finish(b, NULL), NULL, &session),
        BERTH_UNAVAILABLE, "\"opencl:17\" of the program is not here: it needs opencl device 17");
}

// The null driver copies but refuses to dispatch: a step that fails while the program runs.
Test(devices, a_failing_step_is_named_and_the_session_stays_usable) {
    builder *b = builder_create(arena, "failing");
    uint32_t cpu = builder_device(b, "cpu", 0);
    uint32_t null = builder_device(b, "null", 0);
    uint32_t x = builder_input(b, cpu, "x", count), y = builder_output(b, cpu, "y", count);
    uint32_t x_null = builder_tensor(b, null, count), y_null = builder_tensor(b, null, count);
    builder_dispatch(b, cpu, "scale", (uint32_t[]){x, y}, 2, 1);
    builder_copy(b, null, y, x_null);
    builder_dispatch(b, null, "scale", (uint32_t[]){x_null, y_null}, 2, 3);
    builder_copy(b, null, y_null, y);
    berth_session *session = NULL;
    berth_status status =
        berth_session_open(berth_allocator_system(), builder_finish(b, NULL), NULL, &session);
    if (status) {  // a null driver that refuses code when it is loaded has no failing dispatch to
                   // offer
        cr_assert_not_null(strstr(berth_status_message(status), "scale2"), "%s",
                           berth_status_message(status));
        berth_status_free(status);
        return;
    }
    for (int run = 0; run < 3; ++run) {
        status = berth_session_run(session, -1);
        cr_assert_not_null(status);
        cr_assert_not_null(strstr(berth_status_message(status), "scale2"), "%s",
                           berth_status_message(status));
        cr_assert_not_null(strstr(berth_status_message(status), "null:0"), "%s",
                           berth_status_message(status));
        berth_status_free(status);
    }
    berth_session_close(session);
}

// ---- concurrency ----

static int run_diamond(void *user) {
    berth_session *session = NULL;
    assert_ok(berth_session_open(berth_allocator_system(), user, NULL, &session));
    for (int run = 1; run <= 30; ++run) {
        float *x = berth_session_input(session, 0)->data;
        for (int i = 0; i < count; ++i) x[i] = (float)(i * run);
        assert_ok(berth_session_run(session, -1));
        const float *y = berth_session_output(session, 0)->data;
        for (int i = 0; i < count; ++i) cr_assert_eq(y[i], (float)(5 * i * run));
    }
    berth_session_close(session);
    return 0;
}

Test(devices, sessions_across_devices_run_at_once) {
    need_opencl(1);
    berth_program *program = builder_finish(make_diamond(), NULL);
    thrd_t threads[3];
    for (int i = 0; i < 3; ++i)
        cr_assert_eq(thrd_create(&threads[i], run_diamond, program), thrd_success);
    for (int i = 0; i < 3; ++i) thrd_join(threads[i], NULL);
}
