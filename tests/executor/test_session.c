// Sessions on the cpu: results, checks, failures, counting, several at once.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <unistd.h>

#include <jansson.h>

#include "artifact/file.h"
#include "base/file.h"
#include "devices/device.h"
#include "devices/registry.h"
#include "executor/session.h"
#include "tests/check.h"
#include "tests/executor/program_builder.h"

static berth_arena *arena;

static void setup(void) {
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
}

static void teardown(void) {
    berth_arena_destroy(arena);
}

TestSuite(session, .init = setup, .fini = teardown);

enum { count = 100 };

// y = 3 * (x + w), w = 0, 1, 2, ...
static berth_program *make_affine(void) {
    builder *b = builder_create(arena, "affine");
    uint32_t cpu = builder_device(b, "cpu", 0);
    float w[count];
    for (int i = 0; i < count; ++i) w[i] = (float)i;
    uint32_t x = builder_input(b, cpu, "x", count);
    uint32_t y = builder_output(b, cpu, "y", count);
    uint32_t sum = builder_tensor(b, cpu, count);
    builder_dispatch(b, cpu, "add", (uint32_t[]){x, builder_constant(b, cpu, w, count), sum}, 3, 0);
    builder_dispatch(b, cpu, "scale", (uint32_t[]){sum, y}, 2, 3);
    return builder_finish(b, NULL);
}

static void run_affine(berth_session *session, float offset) {
    float *x = berth_session_input(session, 0)->data;
    for (int i = 0; i < count; ++i) x[i] = offset;
    assert_ok(berth_session_run(session, -1));
    const float *y = berth_session_output(session, 0)->data;
    for (int i = 0; i < count; ++i) cr_assert_eq(y[i], 3 * (offset + (float)i));
}

Test(session, runs_a_program) {
    berth_session *session = NULL;
    assert_ok(berth_session_open(berth_allocator_system(), make_affine(), NULL, &session));
    cr_assert_str_eq(berth_session_input_name(session, 0), "x");
    cr_assert_str_eq(berth_session_output_name(session, 0), "y");
    cr_assert_null(berth_session_input(session, 1));
    cr_assert_null(berth_session_output_name(session, 7));
    for (int run = 0; run < 5; ++run) run_affine(session, (float)run * 10);
    berth_session_close(session);
    berth_session_close(NULL);
}

Test(session, takes_and_gives_copies_with_checks) {
    berth_session *session = NULL;
    assert_ok(berth_session_open(berth_allocator_system(), make_affine(), NULL, &session));
    float values[count] = {1, 2, 3};
    berth_tensor x = {.dtype = BERTH_DTYPE_F32, .rank = 1, .dims = {count}, .data = values};
    assert_ok(berth_session_set_input(session, "x", &x));
    assert_ok(berth_session_run(session, -1));
    float results[count];
    berth_tensor y = {.dtype = BERTH_DTYPE_F32, .rank = 1, .dims = {count}, .data = results};
    assert_ok(berth_session_get_output(session, "y", &y));
    cr_assert(results[0] == 3 && results[1] == 9 && results[2] == 15);
    assert_fails(berth_session_set_input(session, "z", &x), BERTH_NOT_FOUND,
                 "no input is named \"z\"; there is x");
    assert_fails(berth_session_get_output(session, "x", &y), BERTH_NOT_FOUND,
                 "no output is named \"x\"; there is y");
    x.dims[0] = 3;
    assert_fails(berth_session_set_input(session, "x", &x), BERTH_INCOMPATIBLE,
                 "input \"x\" is f32[100], but f32[3] was given");
    x.dims[0] = count;
    x.dtype = BERTH_DTYPE_I32;
    assert_fails(berth_session_set_input(session, "x", &x), BERTH_INCOMPATIBLE,
                 "but i32[100] was given");
    y.rank = 0;
    assert_fails(berth_session_get_output(session, "y", &y), BERTH_INCOMPATIBLE,
                 "output \"y\" is f32[100], but f32[] was given");
    berth_session_close(session);
}

// Tensors that a caller filled in wrongly: an error, and nothing outside of them is read.
Test(session, refuses_what_is_no_tensor) {
    berth_session *session = NULL;
    assert_ok(berth_session_open(berth_allocator_system(), make_affine(), NULL, &session));
    float values[count] = {1, 2, 3};
    const berth_tensor good = {
        .dtype = BERTH_DTYPE_F32, .rank = 1, .dims = {count}, .data = values};
    static const int ranks[] = {-1, INT32_MIN, BERTH_MAX_RANK + 1, 1000, INT32_MAX};
    for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); ++i) {
        berth_tensor bad = good;
        bad.rank = ranks[i];
        assert_fails(berth_session_set_input(session, "x", &bad), BERTH_INVALID_ARGUMENT,
                     "input \"x\": rank");
        assert_fails(berth_session_get_output(session, "y", &bad), BERTH_INVALID_ARGUMENT,
                     "output \"y\": rank");
    }
    berth_tensor bad = good;
    bad.dims[0] = -4;
    assert_fails(berth_session_set_input(session, "x", &bad), BERTH_INVALID_ARGUMENT, "negative");
    bad = good;
    bad.dtype = (berth_dtype)77;
    assert_fails(berth_session_set_input(session, "x", &bad), BERTH_INVALID_ARGUMENT,
                 "element type 77");
    bad = good;
    bad.data = NULL;
    assert_fails(berth_session_set_input(session, "x", &bad), BERTH_INVALID_ARGUMENT, "no data");
    assert_fails(berth_session_get_output(session, "y", NULL), BERTH_INVALID_ARGUMENT, "missing");
    berth_session_close(session);
}

Test(session, allocates_nothing_after_open) {
    berth_counting_allocator counting;
    berth_counting_allocator_init(&counting, berth_allocator_system());
    berth_session *session = NULL;
    assert_ok(berth_session_open(berth_counting_allocator_get(&counting), make_affine(),
                                 &(berth_session_options){.profile = true}, &session));
    int64_t before = atomic_load(&counting.allocation_count);
    cr_assert_gt(before, 0);
    for (int run = 0; run < 100; ++run) run_affine(session, (float)run);
    berth_session_report report;
    berth_session_get_report(session, &report);
    cr_assert_eq(atomic_load(&counting.allocation_count), before);
    berth_session_close(session);
    cr_assert_eq(atomic_load(&counting.live_count), 0);
    cr_assert_eq(atomic_load(&counting.live_bytes), 0);
}

Test(session, every_failed_allocation_of_opening_is_clean) {
    const berth_program *program = make_affine();
    for (int64_t at = 1;; ++at) {
        cr_assert_lt(at, 2000);
        berth_counting_allocator counting;
        berth_counting_allocator_init(&counting, berth_allocator_system());
        atomic_store(&counting.fail_at, at);
        berth_session *session = NULL;
        berth_status status =
            berth_session_open(berth_counting_allocator_get(&counting), program, NULL, &session);
        berth_code code = berth_status_code(status);
        berth_status_free(status);
        cr_assert_eq(session == NULL, code != BERTH_CODE_OK);
        berth_session_close(session);
        cr_assert_eq(atomic_load(&counting.live_count), 0, "failing allocation %lld leaks",
                     (long long)at);
        if (code == BERTH_CODE_OK) break;
        cr_assert_eq(code, BERTH_OUT_OF_MEMORY);
    }
}

Test(session, reports_memory_and_work) {
    berth_session *session = NULL;
    assert_ok(berth_session_open(berth_allocator_system(), make_affine(),
                                 &(berth_session_options){.profile = true}, &session));
    run_affine(session, 1);
    berth_session_report report;
    berth_session_get_report(session, &report);
    cr_assert_eq(report.device_count, 1);
    const berth_session_device_report *cpu = &report.devices[0];
    cr_assert_str_eq(cpu->name, "cpu:0");
    cr_assert_eq(cpu->kernel_count, 2);
    cr_assert_eq(cpu->copy_count, 0);
    cr_assert_eq(cpu->workspace_bytes, 512);  // 100 floats, up to the next multiple of 128
    cr_assert_eq(cpu->constant_bytes, 512);
    cr_assert_eq(cpu->io_bytes, 1024);
    cr_assert_eq(cpu->memory_bytes, 2048);
    cr_assert_eq(cpu->borrowed_bytes, 400);
    cr_assert_eq(report.copied_bytes, 0);
    cr_assert_eq(report.run_count, 1);
    cr_assert(report.profiled);
    int64_t total_ns = 0;
    for (uint32_t i = 0; i < report.step_count; ++i) {
        const berth_session_step_report *step = &report.steps[i];
        cr_assert_geq(step->start_ns, i ? report.steps[i - 1].end_ns : report.run_start_ns);
        cr_assert_geq(step->end_ns, step->start_ns);
        cr_assert_leq(step->end_ns, report.run_end_ns);
        total_ns += step->end_ns - step->start_ns;
    }
    cr_assert_eq(cpu->busy_ns, total_ns);
    berth_session_close(session);
}

Test(session, writes_a_trace) {
    berth_session *session = NULL;
    char path[] = "/tmp/berth-trace-XXXXXX";
    close(mkstemp(path));
    assert_ok(berth_session_open(berth_allocator_system(), make_affine(),
                                 &(berth_session_options){.profile = true}, &session));
    assert_fails(berth_session_write_trace(session, path), BERTH_FAILED_PRECONDITION,
                 "a run that succeeded");
    run_affine(session, 1);
    assert_ok(berth_session_write_trace(session, path));
    berth_session_close(session);
    json_t *trace = json_load_file(path, 0, NULL);
    unlink(path);
    cr_assert_not_null(trace);
    json_t *events = json_object_get(trace, "traceEvents"), *event;
    size_t index;
    int slices = 0, names = 0;
    cr_assert(json_is_array(events));
    cr_assert_str_eq(json_string_value(json_object_get(trace, "displayTimeUnit")), "ns");
    json_array_foreach(events, index, event) {
        const char *phase = json_string_value(json_object_get(event, "ph"));
        if (strcmp(phase, "M") == 0) names++;
        if (strcmp(phase, "X") != 0) continue;
        slices++;
        cr_assert_geq(json_number_value(json_object_get(event, "ts")), 0);
        cr_assert_geq(json_number_value(json_object_get(event, "dur")), 0);
    }
    cr_assert_eq(slices, 3);  // two steps and the run
    cr_assert_eq(names, 3);   // the process and two tracks
    json_decref(trace);
}

Test(session, absent_devices_are_named) {
    berth_session *session = NULL;
    builder *b = builder_create(arena, "far");
    uint32_t given = builder_input(b, builder_device(b, "cpu", 0), "x", 4);
    uint32_t far = builder_device(b, "null", 99);
    builder_copy(b, far, given, builder_tensor(b, far, 4));
    const berth_program *program = builder_finish(b, NULL);
    assert_fails(berth_session_open(berth_allocator_system(), program, NULL, &session),
                 BERTH_UNAVAILABLE,
                 "device \"null:99\" of the program is not here: it needs null device 99");
    cr_assert_null(session);
    // Bound to a device that is here, it opens.
    const berth_session_binding bindings[] = {{.name = "null:99", .ordinal = 0}};
    assert_ok(berth_session_open(berth_allocator_system(), program,
                                 &(berth_session_options){.bindings = bindings, .binding_count = 1},
                                 &session));
    berth_session_close(session);
    const berth_session_binding wrong[] = {{.name = "gpu"}};
    assert_fails(berth_session_open(berth_allocator_system(), program,
                                    &(berth_session_options){.bindings = wrong, .binding_count = 1},
                                    &session),
                 BERTH_INVALID_ARGUMENT, "a binding names \"gpu\"");
    b = builder_create(arena, "warp");
    uint32_t x = builder_input(b, builder_device(b, "cpu", 0), "x", 4);
    uint32_t warp = builder_device(b, "warp", 0);
    builder_copy(b, warp, x, builder_tensor(b, warp, 4));
    assert_fails(
        berth_session_open(berth_allocator_system(), builder_finish(b, NULL), NULL, &session),
        BERTH_UNAVAILABLE, "device \"warp:0\" of the program");
}

Test(session, an_unused_device_may_be_absent) {
    berth_session *session = NULL;
    builder *b = builder_create(arena, "spare");
    uint32_t cpu = builder_device(b, "cpu", 0);
    builder_device(b, "cpu", 99);
    builder_device(b, "warp", 0);
    uint32_t tensors[2] = {builder_input(b, cpu, "x", 4), builder_output(b, cpu, "y", 4)};
    builder_dispatch(b, cpu, "scale", tensors, 2, 3);
    const berth_program *program = builder_finish(b, NULL);
    assert_ok(berth_session_open(berth_allocator_system(), program, NULL, &session));
    float *x = berth_session_input(session, 0)->data;
    for (int i = 0; i < 4; ++i) x[i] = (float)i;
    assert_ok(berth_session_run(session, -1));
    cr_assert_eq(((const float *)berth_session_output(session, 0)->data)[2], 6);
    berth_session_report report;
    berth_session_get_report(session, &report);
    cr_assert_str_eq(report.devices[1].physical_name, "not used");
    cr_assert_str_eq(report.devices[2].physical_name, "not used");
    berth_session_close(session);
}

Test(session, broken_code_is_named) {
    berth_session *session = NULL;
    berth_program *program = make_affine();
    berth_program_kernel kernels[2];
    memcpy(kernels, program->kernels, sizeof(kernels));
    kernels[1].entry = "no_such_kernel";
    program->kernels = kernels;
    assert_fails(berth_session_open(berth_allocator_system(), program, NULL, &session),
                 BERTH_NOT_FOUND, "code of \"scale1\" for device \"cpu:0\"");
    program = make_affine();
    berth_executable_image images[2];
    memcpy(images, program->executables, sizeof(images));
    images[0].data = "not an ELF file";
    images[0].size_bytes = 15;
    program->executables = images;
    berth_status status = berth_session_open(berth_allocator_system(), program, NULL, &session);
    cr_assert_not_null(status);
    berth_status_free(status);
    cr_assert_null(session);
    program->executor = "vm";
    assert_fails(berth_session_open(berth_allocator_system(), program, NULL, &session),
                 BERTH_INVALID_ARGUMENT, "\"vm\" without byte code");
    program->executor = "aot";
    assert_fails(berth_session_open(berth_allocator_system(), program, NULL, &session),
                 BERTH_UNSUPPORTED, "\"aot\"");
}

static berth_program *make_sleeper(int64_t milliseconds) {
    builder *b = builder_create(arena, "sleeper");
    uint32_t cpu = builder_device(b, "cpu", 0);
    uint32_t x = builder_input(b, cpu, "x", 4);
    uint32_t y = builder_output(b, cpu, "y", 4);
    builder_dispatch(b, cpu, "sleep", (uint32_t[]){x, y}, 2, milliseconds);
    return builder_finish(b, NULL);
}

Test(session, a_timeout_ends_the_wait_and_the_session_recovers) {
    berth_session *session = NULL;
    assert_ok(berth_session_open(berth_allocator_system(), make_sleeper(150), NULL, &session));
    assert_fails(berth_session_run(session, 10 * 1000000), BERTH_DEADLINE_EXCEEDED, "10000 us");
    assert_ok(berth_session_run(session, -1));
    assert_ok(berth_session_run(session, (int64_t)20 * 1000000000));
    assert_ok(berth_session_run(session, INT64_MAX));  // as long as there is time
    assert_ok(berth_session_run(session, INT64_MAX - 1));
    assert_fails(berth_session_run(session, 0), BERTH_DEADLINE_EXCEEDED, "a limit below 0 is none");
    berth_session_close(session);  // while the step sleeps
}

static int cancel_soon(void *user) {
    usleep(20000);
    berth_session_cancel(user);
    return 0;
}

Test(session, cancel_ends_a_run) {
    berth_session *session = NULL;
    thrd_t thread;
    assert_ok(berth_session_open(berth_allocator_system(), make_sleeper(150), NULL, &session));
    cr_assert_eq(thrd_create(&thread, cancel_soon, session), thrd_success);
    assert_fails(berth_session_run(session, (int64_t)60 * 1000000000), BERTH_CANCELLED,
                 "cancelled");
    thrd_join(thread, NULL);
    assert_ok(berth_session_run(session, -1));
    berth_session_close(session);
}

static int run_many(void *user) {
    berth_session *session = NULL;
    assert_ok(berth_session_open(berth_allocator_system(), user,
                                 &(berth_session_options){.thread_count = 2}, &session));
    for (int run = 0; run < 200; ++run) run_affine(session, (float)run);
    berth_session_close(session);
    return 0;
}

Test(session, several_sessions_of_one_program_at_once) {
    berth_program *program = make_affine();
    thrd_t threads[4];
    for (int i = 0; i < 4; ++i)
        cr_assert_eq(thrd_create(&threads[i], run_many, program), thrd_success);
    for (int i = 0; i < 4; ++i) thrd_join(threads[i], NULL);
}

Test(session, constants_are_used_in_place_or_copied) {
    float *memory = aligned_alloc(128, 512);
    for (int i = 0; i < 128; ++i) memory[i] = (float)i;
    for (int shift = 0; shift < 2; ++shift) {
        berth_program *program = make_affine();
        berth_program_constant constant = {program->constants[0].tensor, memory + shift};
        program->constants = &constant;
        berth_session *session = NULL;
        assert_ok(berth_session_open(berth_allocator_system(), program, NULL, &session));
        float *x = berth_session_input(session, 0)->data;
        for (int i = 0; i < count; ++i) x[i] = 5;
        assert_ok(berth_session_run(session, -1));
        const float *y = berth_session_output(session, 0)->data;
        for (int i = 0; i < count; ++i) cr_assert_eq(y[i], (float)(3 * (5 + i + shift)));
        berth_session_report report;
        berth_session_get_report(session, &report);
        cr_assert_eq(report.devices[0].borrowed_bytes, shift ? 0 : 400);
        berth_session_close(session);
    }
    free(memory);
}

Test(session, runs_from_a_file) {
    char path[] = "/tmp/berth-program-XXXXXX";
    close(mkstemp(path));
    assert_ok(berth_program_write(make_affine(), path));
    const berth_program *program = NULL;
    assert_ok(berth_program_read(arena, path, NULL, &program));
    berth_session *session = NULL;
    assert_ok(berth_session_open(berth_allocator_system(), program, NULL, &session));
    for (int run = 0; run < 3; ++run) run_affine(session, (float)run);
    berth_session_report report;
    berth_session_get_report(session, &report);
    cr_assert_eq(report.devices[0].borrowed_bytes, 400);  // in the mapped file
    berth_session_close(session);
    unlink(path);
}

Test(session, sessions_share_a_device_of_the_caller) {
    berth_driver *driver = NULL;
    berth_device *device = NULL;
    assert_ok(berth_driver_open("cpu", berth_allocator_system(), &driver));
    assert_ok(berth_device_open(driver, 0, &(berth_device_options){.thread_count = 2}, &device));
    const berth_session_binding binding = {.name = "cpu:0", .device = device};
    const berth_session_options options = {.bindings = &binding, .binding_count = 1};
    berth_session *sessions[2];
    berth_program *program = make_affine();
    for (int i = 0; i < 2; ++i)
        assert_ok(berth_session_open(berth_allocator_system(), program, &options, &sessions[i]));
    for (int run = 0; run < 5; ++run) {
        run_affine(sessions[0], (float)run);
        run_affine(sessions[1], (float)run + 7);
    }
    for (int i = 0; i < 2; ++i) berth_session_close(sessions[i]);
    berth_device_close(device);  // still ours
    berth_driver_close(driver);
}

Test(session, empty_tensors_and_programs) {
    builder *b = builder_create(arena, "empty");
    uint32_t cpu = builder_device(b, "cpu", 0);
    uint32_t x = builder_input(b, cpu, "x", 0);
    uint32_t y = builder_output(b, cpu, "y", 0);
    builder_dispatch(b, cpu, "scale", (uint32_t[]){x, y}, 2, 3);
    builder_dispatch(b, cpu, "add", (uint32_t[]){x, builder_constant(b, cpu, NULL, 0), y}, 3, 3);
    berth_session *session = NULL;
    assert_ok(
        berth_session_open(berth_allocator_system(), builder_finish(b, NULL), NULL, &session));
    assert_ok(berth_session_run(session, -1));
    berth_session_close(session);
    b = builder_create(arena, "nothing");
    builder_device(b, "cpu", 0);
    assert_ok(
        berth_session_open(berth_allocator_system(), builder_finish(b, NULL), NULL, &session));
    assert_ok(berth_session_run(session, -1));
    berth_session_close(session);
}

// A copy on a queue of its own goes on while a kernel of the same device still runs, and its trace
// has a row of its own; on the same queue it comes after the kernel.
static void check_beside(bool apart) {
    builder *b = builder_create(arena, "beside");
    uint32_t cpu = builder_device(b, "cpu", 0);
    uint32_t x = builder_input(b, cpu, "x", count);
    uint32_t slow = builder_output(b, cpu, "slow", count);
    uint32_t copied = builder_output(b, cpu, "copied", count);
    uint32_t kernel = builder_dispatch(b, cpu, "sleep", (uint32_t[]){x, slow}, 2, 100);
    uint32_t copy = apart ? builder_transfer(b, builder_transfer_queue(b, cpu), cpu, x, copied)
                          : builder_copy(b, cpu, x, copied);
    berth_session *session = NULL;
    assert_ok(berth_session_open(berth_allocator_system(), builder_finish(b, NULL),
                                 &(berth_session_options){.profile = true}, &session));
    for (int run = 0; run < 2; ++run) {
        float *given = berth_session_input(session, 0)->data;
        for (int i = 0; i < count; ++i) given[i] = (float)(i + run);
        assert_ok(berth_session_run(session, -1));
        for (uint32_t o = 0; o < 2; ++o)
            cr_assert_eq(((const float *)berth_session_output(session, o)->data)[7],
                         (float)(7 + run));
        berth_session_report report;
        berth_session_get_report(session, &report);
        if (apart)
            cr_assert_lt(report.steps[copy].end_ns, report.steps[kernel].end_ns);
        else
            cr_assert_geq(report.steps[copy].start_ns, report.steps[kernel].end_ns);
        cr_assert_eq(report.steps[copy].queue, apart);
    }
    char path[] = "/tmp/berth-trace-XXXXXX";
    close(mkstemp(path));
    assert_ok(berth_session_write_trace(session, path));
    char *text = NULL;
    size_t length = 0;
    assert_ok(berth_file_read(arena, path, 1 << 20, &text, &length));
    unlink(path);
    cr_assert_eq(strstr(text, "cpu:0 transfer") != NULL, apart);
    berth_session_close(session);
}

Test(session, copies_on_a_queue_of_their_own_run_beside_kernels) {
    check_beside(true);
    check_beside(false);
}
