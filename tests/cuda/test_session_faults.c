// What a session says when libcuda fails below it: capture and graphs, launches, a device that is lost, a stream that
// hangs. On the emulated device only.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "devices/device.h"
#include "devices/registry.h"
#include "tests/check.h"
#include "tests/cuda/emulated.h"
#include "tests/leaks.h"
#include "tests/toolkit/loader_faults.h"

static const char *outcome(const faulty_work *w, const char *fault, const char *attributes,
                           berth_code *out_code) {
    berth_session_binding binding = {.name = "cuda:0", .attributes = attributes};
    berth_session_options options = {.bindings = &binding, .binding_count = 1};
    return faulty_outcome(w, "BERTH_EMULATION_FAIL", fault, &options, out_code);
}

// Out of memory in one function, and from its first call on a device that is gone.
Test(cuda_faults, steps_of_a_session, .timeout = 120) {
    static const struct {
        const char *function;
        bool in_a_run;
    } functions[] = {{"cuMemAlloc_v2", false},
                     {"cuModuleLoadDataEx", false},
                     {"cuStreamBeginCapture_v2", false},
                     {"cuStreamEndCapture", false},
                     {"cuGraphInstantiateWithFlags", false},
                     {"cuMemcpyAsync", true},
                     {"cuGraphLaunch", true},
                     {"cuEventRecord", true},
                     {"cuEventQuery", true}};
    if (!berth_test_is_emulated()) cr_skip("the device is not the emulated one");
    faulty_work w = faulty_build("cuda -host=cpu");
    berth_code code = BERTH_INTERNAL;
    cr_expect_str_empty(outcome(&w, "none", NULL, &code));
    for (size_t i = 0; i < 2 * sizeof(functions) / sizeof(functions[0]); ++i) {
        char fault[96];
        bool lost = i % 2;
        snprintf(fault, sizeof(fault), "%s%s:0:%d", lost ? "*" : "", functions[i / 2].function,
                 lost ? 999 : 2);
        const char *message = outcome(&w, fault, NULL, &code);
        cr_expect_eq(code, lost ? BERTH_UNAVAILABLE : BERTH_OUT_OF_MEMORY, "%s: \"%s\"", fault,
                     message);
        cr_expect(strstr(message, lost ? "(999)" : "(2)"), "%s: \"%s\"", fault, message);
        cr_expect(strstr(message, "cuda device 0 (emulated GPU 0"), "%s: \"%s\"", fault, message);
        if (functions[i / 2].in_a_run)
            cr_expect(strstr(message, "steps \"x"), "%s: \"%s\"", fault, message);
        message = outcome(&w, "none", NULL, &code);
        cr_expect_str_empty(message, "%s: nothing stays: \"%s\"", fault, message);
    }
    berth_arena_destroy(w.arena);
}

// The device is given up: the emulation ends the process where it would be waited for once more.
Test(cuda_faults, a_session_that_hangs, .timeout = 60) {
    if (!berth_test_is_emulated()) cr_skip("the device is not the emulated one");
    leave_leaks();  // what the device has stays
    faulty_work w = faulty_build("cuda -host=cpu");
    berth_code code = BERTH_INTERNAL;
    setenv("BERTH_EMULATION_HANG", "1", 1);
    int64_t before_ns = berth_clock_ns();
    const char *message = outcome(&w, "none", "timeout_ms=300", &code);
    double seconds = (double)(berth_clock_ns() - before_ns) * 1e-9;
    cr_expect_eq(code, BERTH_DEADLINE_EXCEEDED, "%s", message);
    cr_expect(strstr(message, "cuda device 0 (emulated GPU 0"), "%s", message);
    cr_expect(strstr(message, "no answer within 0.3 s"), "%s", message);
    cr_expect(strstr(message, "steps \"x"), "%s", message);
    cr_expect_geq(seconds, 0.3);
    unsetenv("BERTH_EMULATION_HANG");
    message = outcome(&w, "none", NULL, &code);
    cr_expect_str_empty(message, "the process goes on: \"%s\"", message);
    berth_arena_destroy(w.arena);
}

// ---- two devices ----

enum { bytes = 16 << 20, fills = 4 };

typedef struct pair {
    berth_driver *driver;
    berth_device *devices[2];
    berth_queue *queues[2];
    berth_buffer *buffers[2];
    berth_semaphore *line;
    berth_command there[fills + 1], back;  // stay until the queues are gone
} pair;

static berth_status open_pair(pair *p) {
    berth_device_options options = {.peers = true};
    BERTH_TRY(berth_driver_open("cuda", berth_allocator_system(), &p->driver));
    for (uint32_t i = 0; i < 2; ++i) {
        BERTH_TRY(berth_device_open(p->driver, i, &options, &p->devices[i]));
        BERTH_TRY(berth_queue_open(p->devices[i], BERTH_QUEUE_COMPUTE, &p->queues[i]));
        BERTH_TRY(berth_buffer_allocate(p->devices[i], 0, bytes, &p->buffers[i]));
    }
    for (int i = 0; i < 2; ++i) BERTH_TRY(berth_device_open_peer(p->devices[i], p->devices[1 - i]));
    return berth_semaphore_create(berth_allocator_system(), 0, &p->line);
}

static void close_pair(pair *p) {
    if (p->line) berth_semaphore_release(p->line);
    for (int i = 0; i < 2; ++i) {
        berth_buffer_free(p->buffers[i]);
        if (p->queues[i]) berth_queue_destroy(p->queues[i]);
    }
    for (int i = 0; i < 2; ++i) berth_device_close(p->devices[i]);
    berth_driver_close(p->driver);
}

static berth_status fill(pair *p, int device, uint32_t pattern) {
    berth_command command = {.kind = BERTH_COMMAND_FILL, .label = "fill"};
    command.fill.buffer = p->buffers[device];
    command.fill.size_bytes = bytes;
    command.fill.pattern = pattern;
    command.fill.pattern_bytes = 4;
    return berth_queue_run(p->queues[device], &command, 1);
}

// Fills on device 0 for a while and a copy to device 1, and by device 1 a copy back that waits for it.
static berth_status there_and_back(pair *p) {
    berth_command *there = p->there;
    p->back = (berth_command){.kind = BERTH_COMMAND_COPY, .label = "back"};
    for (int i = 0; i < fills; ++i) {
        there[i] = (berth_command){.kind = BERTH_COMMAND_FILL, .label = "fill"};
        there[i].fill.buffer = p->buffers[0];
        there[i].fill.size_bytes = bytes;
        there[i].fill.pattern = 7;
        there[i].fill.pattern_bytes = 4;
    }
    p->back.copy.source = p->buffers[1];
    p->back.copy.destination = p->buffers[0];
    p->back.copy.size_bytes = bytes;
    there[fills] = (berth_command){.kind = BERTH_COMMAND_COPY, .label = "there"};
    there[fills].copy.source = p->buffers[0];
    there[fills].copy.destination = p->buffers[1];
    there[fills].copy.size_bytes = bytes;
    berth_semaphore_point first = {p->line, 1}, second = {p->line, 2};
    BERTH_TRY(berth_queue_submit(p->queues[0], &(berth_submission){.commands = there,
                                                                   .command_count = fills + 1,
                                                                   .signals = &first,
                                                                   .signal_count = 1}));
    BERTH_TRY(berth_queue_submit(p->queues[1], &(berth_submission){.waits = &first,
                                                                   .wait_count = 1,
                                                                   .commands = &p->back,
                                                                   .command_count = 1,
                                                                   .signals = &second,
                                                                   .signal_count = 1}));
    return berth_semaphore_wait(p->line, 2, -1);
}

// "" where all went well.
static const char *outcome_of_pair(const char *fault) {
    static char text[1000];
    pair p = {.driver = NULL};
    void *data = NULL;
    setenv("BERTH_EMULATION_FAIL", fault, 1);
    berth_status status = open_pair(&p);
    if (!status) status = there_and_back(&p);
    if (!status) status = berth_buffer_map(p.buffers[0], 0, bytes, false, &data);
    if (!status) {
        cr_expect_eq(((uint32_t *)data)[bytes / 4 - 1], 7);
        status = berth_buffer_unmap(p.buffers[0], data);
    }
    snprintf(text, sizeof(text), "%s", status ? berth_status_message(status) : "");
    berth_status_free(status);
    close_pair(&p);
    return text;
}

Test(cuda_faults, functions_of_peers, .timeout = 120) {
    static const struct {
        const char *function, *words;
    } faults[] = {{"cuDeviceCanAccessPeer", "look for peers"},
                  {"cuCtxEnablePeerAccess", "open a peer"},
                  {"cuMemcpyPeerAsync", "there: cuda device 0"}};
    if (!berth_test_is_emulated()) cr_skip("the device is not the emulated one");
    cr_expect_str_empty(outcome_of_pair("none"));
    for (int i = 0; i < 6; ++i) {
        char fault[96];
        snprintf(fault, sizeof(fault), "%s%s:0:%d", i % 2 ? "*" : "", faults[i / 2].function,
                 i % 2 ? 999 : 2);
        const char *message = outcome_of_pair(fault);
        cr_expect(strstr(message, i % 2 ? "(999)" : "(2)"), "%s: \"%s\"", fault, message);
        cr_expect(strstr(message, "cuda device 0 (emulated GPU 0"), "%s: \"%s\"", fault, message);
        cr_expect(strstr(message, faults[i / 2].words), "%s: \"%s\"", fault, message);
        cr_expect_str_empty(outcome_of_pair("none"), "nothing stays");
    }
    // The host waits where a stream cannot; where the device is gone with that, the copy says so.
    cr_expect_str_empty(outcome_of_pair("cuStreamWaitEvent:0:2"));
    const char *message = outcome_of_pair("*cuStreamWaitEvent:0:999");
    cr_expect(strstr(message, "(999)"), "%s", message);
    cr_expect(strstr(message, "cuda device "), "%s", message);
    cr_expect_str_empty(outcome_of_pair("none"), "nothing stays");
}

// The second device goes while copies between the two are under way. The first one works on.
Test(cuda_faults, a_peer_that_is_lost, .timeout = 120) {
    if (!berth_test_is_emulated()) cr_skip("the device is not the emulated one");
    pair p = {.driver = NULL};
    assert_ok(open_pair(&p));
    assert_ok(there_and_back(&p));
    berth_semaphore_release(p.line);
    assert_ok(berth_semaphore_create(berth_allocator_system(), 0, &p.line));
    setenv("BERTH_EMULATION_LOST", "1", 1);
    berth_status status = there_and_back(&p);
    const char *message = status ? berth_status_message(status) : "";
    cr_expect_eq(berth_status_code(status), BERTH_UNAVAILABLE);
    cr_expect(strstr(message, "there: cuda device 0 (emulated GPU 0"), "%s", message);
    cr_expect(strstr(message, "copy between devices: CUDA says"), "%s", message);
    berth_status_free(status);
    status = fill(&p, 1, 3);
    message = status ? berth_status_message(status) : "";
    cr_expect(strstr(message, "fill: cuda device 1 (emulated GPU 1"), "%s", message);
    berth_status_free(status);
    assert_ok(fill(&p, 0, 3));
    close_pair(&p);
    unsetenv("BERTH_EMULATION_LOST");
    cr_expect_str_empty(outcome_of_pair("none"), "nothing stays");
}
