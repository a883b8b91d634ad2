// Sessions that share the devices, code and constants of another one.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

#include "artifact/family.h"
#include "devices/device.h"
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

TestSuite(base, .init = setup, .fini = teardown, .timeout = 120);

enum { count = 128, session_count = 3, runs = 50 };

// y = 3 * (x + w) with the constant w on `kind`, from memory of the first device, cpu:0.
static berth_program *make_affine(const char *kind) {
    builder *b = builder_create(arena, "affine");
    uint32_t cpu = builder_device(b, "cpu", 0);
    uint32_t other = builder_device(b, kind, kind[0] == 'c');
    float w[count];
    for (int i = 0; i < count; ++i) w[i] = (float)i;
    uint32_t x = builder_input(b, cpu, "x", count), y = builder_output(b, cpu, "y", count);
    uint32_t there = builder_tensor(b, other, count), sum = builder_tensor(b, other, count);
    uint32_t back = builder_tensor(b, cpu, count);
    builder_copy(b, other, x, there);
    builder_dispatch(b, other, "add",
                     (uint32_t[]){there, builder_constant(b, other, w, count), sum}, 3, 0);
    builder_copy(b, other, sum, back);
    builder_dispatch(b, cpu, "scale", (uint32_t[]){back, y}, 2, 3);
    return builder_finish(b, NULL);
}

static int run_many(void *user) {
    berth_session *session = user;
    for (int run = 0; run < runs; ++run) {
        float *x = berth_session_input(session, 0)->data;
        for (int i = 0; i < count; ++i) x[i] = (float)run;
        assert_ok(berth_session_run(session, -1));
        const float *y = berth_session_output(session, 0)->data;
        for (int i = 0; i < count; ++i) cr_assert_eq(y[i], (float)(3 * (run + i)));
    }
    return 0;
}

static void run_at_once(const berth_program *program, const berth_session_options *options) {
    berth_session *sessions[session_count];
    thrd_t threads[session_count];
    assert_ok(berth_session_open(berth_allocator_system(), program, options, &sessions[0]));
    for (int i = 1; i < session_count; ++i) {
        const berth_session_options shares = {.base = sessions[0]};
        assert_ok(berth_session_open(berth_allocator_system(), program, &shares, &sessions[i]));
        berth_session_report report;
        berth_session_get_report(sessions[i], &report);
        cr_assert_eq(report.devices[1].constant_bytes, 4 * count);
        cr_assert_eq(report.devices[1].borrowed_bytes, 4 * count);  // no second time
        cr_assert_eq(report.profiled, options->profile);
    }
    for (int i = 0; i < session_count; ++i)
        cr_assert_eq(thrd_create(&threads[i], run_many, sessions[i]), thrd_success);
    for (int i = 0; i < session_count; ++i) thrd_join(threads[i], NULL);
    for (int i = session_count; i-- > 0;) berth_session_close(sessions[i]);
}

Test(base, sessions_on_the_cpu) {
    static const berth_session_binding binding = {.name = "cpu:1", .ordinal = 0};
    run_at_once(make_affine("cpu"),
                &(berth_session_options){
                    .bindings = &binding, .binding_count = 1, .thread_count = 2, .profile = true});
}

Test(base, sessions_on_opencl) {
    berth_session *session = NULL;
    const berth_program *program = make_affine("opencl");
    if (!device_is_here("opencl", 1)) cr_skip_test("no OpenCL device");
    assert_ok(berth_session_open(berth_allocator_system(), program, NULL, &session));
    berth_session_close(session);
    run_at_once(program, &(berth_session_options){.profile = false});
}

Test(base, only_of_the_same_program) {
    static const berth_session_binding binding = {.name = "cpu:1", .ordinal = 0};
    const berth_session_options options = {.bindings = &binding, .binding_count = 1};
    berth_session *first = NULL, *second = NULL;
    assert_ok(berth_session_open(berth_allocator_system(), make_affine("cpu"), &options, &first));
    assert_fails(berth_session_open(berth_allocator_system(), make_affine("cpu"),
                                    &(berth_session_options){.base = first}, &second),
                 BERTH_INVALID_ARGUMENT, "another program");
    berth_session_close(first);
}

// What a family's member is: the same lists but for those with sizes. It needs no code, devices and constants of
// its own where kernels want as much scratch and constants lie where they did, and else is refused.
Test(base, of_a_program_with_the_same_code) {
    static const berth_session_binding binding = {.name = "cpu:1", .ordinal = 0};
    const berth_session_options options = {.bindings = &binding, .binding_count = 1};
    const berth_program *program = make_affine("cpu");
    berth_program member = *program;
    berth_program_kernel *kernels = berth_arena_copy(
        arena, program->kernels, program->kernel_count * sizeof(*program->kernels));
    berth_program_tensor *tensors = berth_arena_copy(
        arena, program->tensors, program->tensor_count * sizeof(*program->tensors));
    member.kernels = kernels;
    member.tensors = tensors;
    berth_session *first = NULL, *second = NULL;
    assert_ok(berth_session_open(berth_allocator_system(), program, &options, &first));
    const berth_session_options shares = {.base = first};
    assert_ok(berth_session_open(berth_allocator_system(), &member, &shares, &second));
    berth_session_report report;
    berth_session_get_report(second, &report);
    cr_assert_eq(report.devices[1].borrowed_bytes, 4 * count);
    run_many(second);
    berth_session_close(second);
    kernels[0].scratch_bytes += 64;
    assert_fails(berth_session_open(berth_allocator_system(), &member, &shares, &second),
                 BERTH_INVALID_ARGUMENT, "another program");
    kernels[0].scratch_bytes -= 64;
    tensors[program->constants[0].tensor].offset_bytes += 64;
    cr_assert(!berth_vm_family_shares_code(program, &member));
    berth_session_close(first);
}

// What was verified before is not verified again: a rule that it breaks is not noticed.
Test(base, a_program_is_verified_once) {
    static const berth_session_binding binding = {.name = "cpu:1", .ordinal = 0};
    berth_session_options options = {.bindings = &binding, .binding_count = 1};
    berth_program broken = *make_affine("cpu");
    berth_session *session = NULL;
    broken.placement_count = 1;
    broken.placements = &(berth_program_placement){.node = NULL};
    assert_fails(berth_session_open(berth_allocator_system(), &broken, &options, &session),
                 BERTH_INVALID_ARGUMENT, "placements[0]");
    options.verified = true;
    assert_ok(berth_session_open(berth_allocator_system(), &broken, &options, &session));
    berth_session_close(session);
}

// Who has inputs in a device's memory gives buffers there, as byte code does; other sessions have the host's only.
Test(base, inputs_in_memory_of_a_device_are_bound) {
    builder *b = builder_create(arena, "apart");
    uint32_t cpu = builder_device(b, "cpu", 0), other = builder_device(b, "opencl", 0);
    uint32_t x = builder_input(b, other, "x", count), y = builder_output(b, cpu, "y", count);
    builder_copy(b, other, x, y);
    const berth_program *program = builder_finish(b, NULL);
    berth_session *session = NULL;
    if (!device_is_here("opencl", 1)) cr_skip_test("no OpenCL device");
    assert_fails(berth_session_open(berth_allocator_system(), program, NULL, &session),
                 BERTH_INCOMPATIBLE, "\"x\" is in m");
    assert_ok(berth_session_open(berth_allocator_system(), program,
                                 &(berth_session_options){.binds = true}, &session));
    berth_buffer *small = NULL, *given = NULL;
    void *data = NULL;
    uint32_t memory = 0;
    berth_device *device = berth_session_io_device(session, &program->inputs[0], &memory);
    cr_assert_not_null(device);
    cr_assert_null(berth_session_io_device(session, &program->outputs[0], &memory));
    assert_ok(berth_buffer_allocate(device, memory, 4, &small));
    assert_ok(berth_buffer_allocate(device, memory, 4 * count, &given));
    assert_fails(berth_session_bind_input(session, 0, small), BERTH_INVALID_ARGUMENT,
                 "\"x\" needs");
    assert_fails(berth_session_bind_output(session, 0, given), BERTH_INVALID_ARGUMENT,
                 "\"y\" needs");
    for (int run = 0; run < 2; ++run) {
        assert_ok(berth_buffer_map(given, 0, 4 * count, true, &data));
        for (int i = 0; i < count; ++i) ((float *)data)[i] = (float)(run + i);
        assert_ok(berth_buffer_unmap(given, data));
        assert_ok(berth_session_bind_input(session, 0, given));
        const berth_tensor input = *berth_session_input(session, 0);
        assert_ok(
            berth_session_run_with(session, &input, 1, berth_session_output(session, 0), 1, -1));
        berth_session_unbind(session);
        const float *out = berth_session_output(session, 0)->data;
        for (int i = 0; i < count; ++i) cr_assert_eq(out[i], (float)(run + i));
    }
    berth_buffer_free(small);
    berth_buffer_free(given);
    berth_session_close(session);
}

// Only the sharing session's allocations fail; the other works on.
Test(base, every_failed_allocation_is_clean) {
    static const berth_session_binding binding = {.name = "cpu:1", .ordinal = 0};
    const berth_program *program = make_affine("cpu");
    berth_session *first = NULL;
    assert_ok(berth_session_open(berth_allocator_system(), program,
                                 &(berth_session_options){.bindings = &binding, .binding_count = 1},
                                 &first));
    const berth_session_options shares = {.base = first};
    for (int64_t at = 1;; ++at) {
        cr_assert_lt(at, 2000);
        berth_counting_allocator counting;
        berth_counting_allocator_init(&counting, berth_allocator_system());
        atomic_store(&counting.fail_at, at);
        berth_session *session = NULL;
        berth_status status =
            berth_session_open(berth_counting_allocator_get(&counting), program, &shares, &session);
        berth_code code = berth_status_code(status);
        berth_status_free(status);
        berth_session_close(session);
        cr_assert_eq(atomic_load(&counting.live_count), 0);
        if (code == BERTH_CODE_OK) break;
        cr_assert_eq(code, BERTH_OUT_OF_MEMORY);
    }
    run_many(first);
    berth_session_close(first);
}
