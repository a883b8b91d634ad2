// Copies between two devices of one driver that fail: the step and both devices are named, and nothing
// hangs (tests/faults/flaky_driver.c).
#include <berth/device.h>
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "devices/library.h"
#include "devices/registry.h"
#include "executor/session.h"
#include "tests/check.h"
#include "tests/device_is_here.h"
#include "tests/executor/program_builder.h"

enum { count = 96, devices = 2 };

static bool load(const char *fault) {
    const char *kind = NULL;
    setenv("POCL_DEVICES", "pthread pthread", 1);
    setenv(fault, "1", 1);
    assert_ok(berth_driver_load(FLAKY_OPENCL, &kind));
    return device_is_here(kind, devices);
}

// y = 2 x + 3 x, a product on each device, summed on both of them after each got the other's part
// (an all-reduce), and once more.
static berth_program *make_program(berth_arena *arena) {
    builder *b = builder_create(arena, "all-reduce");
    uint32_t cpu = builder_device(b, "cpu", 0), gpu[devices], part[devices], other[devices];
    uint32_t x = builder_input(b, cpu, "x", count), sum[devices];
    uint32_t y[devices] = {builder_output(b, cpu, "y", count), builder_output(b, cpu, "z", count)};
    for (uint32_t d = 0; d < devices; ++d) gpu[d] = builder_device(b, "opencl", d);
    for (uint32_t d = 0; d < devices; ++d) {
        uint32_t there = builder_tensor(b, gpu[d], count);
        part[d] = builder_tensor(b, gpu[d], count);
        builder_copy(b, gpu[d], x, there);
        builder_dispatch(b, gpu[d], "scale", (uint32_t[]){there, part[d]}, 2, 2 + d);
    }
    for (uint32_t d = 0; d < devices; ++d) {
        other[d] = builder_tensor(b, gpu[d], count);
        builder_copy(b, gpu[1 - d], part[1 - d], other[d]);
    }
    for (uint32_t d = 0; d < devices; ++d) {
        sum[d] = builder_tensor(b, gpu[d], count);
        builder_dispatch(b, gpu[d], "add", (uint32_t[]){part[d], other[d], sum[d]}, 3, 0);
        builder_copy(b, gpu[d], sum[d], y[d]);
    }
    return builder_finish(b, NULL);
}

TestSuite(peers, .timeout = 60);

Test(peers, a_device_is_lost_in_the_middle_of_an_all_reduce) {
    if (!load("FLAKY_LOSE_PEERS")) cr_skip("no two opencl devices");
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    berth_session *session = NULL;
    assert_ok(berth_session_open(berth_allocator_system(), make_program(arena), NULL, &session));
    for (int run = 0; run < 2; ++run) {
        berth_status status = berth_session_run(session, -1);
        const char *message = berth_status_message(status);
        cr_assert_eq(berth_status_code(status), BERTH_UNAVAILABLE, "%s", message);
        cr_assert(strstr(message, "device lost") && strstr(message, "copy") &&
                      strstr(message, "\"opencl:0\"") && strstr(message, "\"opencl:1\""),
                  "%s", message);
        berth_status_free(status);
    }
    berth_session_close(session);
    berth_arena_destroy(arena);
}

Test(peers, devices_without_a_way_are_refused_when_a_program_is_opened) {
    if (!load("FLAKY_NO_PEERS")) cr_skip("no two opencl devices");
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    berth_session *session = NULL;
    berth_status status =
        berth_session_open(berth_allocator_system(), make_program(arena), NULL, &session);
    const char *message = berth_status_message(status);
    cr_assert_eq(berth_status_code(status), BERTH_UNSUPPORTED, "%s", message);
    cr_assert(strstr(message, "copy") && strstr(message, "\"opencl:0\"") &&
                  strstr(message, "\"opencl:1\"") && strstr(message, "by way of the host"),
              "%s", message);
    berth_status_free(status);
    berth_arena_destroy(arena);
}

// Without faults it is an all-reduce.
Test(peers, all_devices_get_the_sum) {
    if (!load("FLAKY_NOTHING")) cr_skip("no two opencl devices");
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    berth_session *session = NULL;
    assert_ok(berth_session_open(berth_allocator_system(), make_program(arena), NULL, &session));
    for (int run = 1; run < 20; ++run) {
        float *x = berth_session_input(session, 0)->data;
        for (int i = 0; i < count; ++i) x[i] = (float)(i * run);
        assert_ok(berth_session_run(session, -1));
        for (uint32_t d = 0; d < devices; ++d)
            for (int i = 0; i < count; ++i)
                cr_assert_eq(((const float *)berth_session_output(session, d)->data)[i],
                             (float)(5 * i * run));
    }
    berth_session_close(session);
    berth_arena_destroy(arena);
}
