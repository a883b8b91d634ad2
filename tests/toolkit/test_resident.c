// Program files whose values stay on a device: what a loop carries and what is state crosses to the host or from it
// no more often, however long the loop or the text.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/vm/states.h"
#include "devices/registry.h"
#include "executor/vm_runner.h"
#include "ir/text.h"
#include "tests/check.h"
#include "tests/device_is_here.h"
#include "toolkit/vm_build.h"

static berth_arena *arena;

static void setup(void) {
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
}

static void teardown(void) {
    berth_arena_destroy(arena);
}

TestSuite(resident, .init = setup, .fini = teardown, .timeout = 600);

enum { width = 4 };

// c <- c * w + x, n times. The body is computed where c and w are.
static const char loop_text[] =
    "module \"m\"\n"
    "graph @main(%n: i64[], %x: f32[4,4], %w: f32[4,4]) {\n"
    "  %y = loop(%n, _, %x) (%i: i64[], %go: bool[], %c: f32[4,4]) {\n"
    "    %p = matmul(%c, %w)\n    %s = add(%p, %x)\n    return %go, %s\n  }\n"
    "  %z = exp(%y)\n"
    "  return %y, %z\n}\n";

static const char state_text[] =
    "module \"m\"\n"
    "graph @main(%past: f32[2,past,4], %row: f32[2,1,4]) {bounds = \"past=0..7\"} {\n"
    "  %present = concat(%past, %row) {axis = 1}\n"
    "  %across = transpose(%present) {perm = [0, 2, 1]}\n"
    "  %scores = matmul(%row, %across)\n"
    "  %y = matmul(%scores, %present)\n"
    "  return %y, %present\n}\n";

typedef struct built {
    const berth_program *program;
    berth_vm_runner *runner;
} built;

static built build(const char *text, const char *target_text, const char *state,
                   const char *specialisation) {
    berth_module *module = NULL;
    berth_multi_target *target = NULL;
    built b = {0};
    assert_ok(berth_module_parse(arena, text, strlen(text), "test", &module));
    assert_ok(berth_target_parse(arena, target_text, NULL, &target));
    if (state) assert_ok(berth_vm_declare_states(module, &state, 1));
    const berth_compile_options options = {
        .target = target, .cache_folder = getenv("BERTH_CACHE_DIR"), .search_path = getenv("PATH")};
    assert_ok(berth_vm_build(arena, module, &options, &specialisation, specialisation != NULL,
                             &b.program));
    assert_ok(berth_vm_runner_open(b.program, NULL, &b.runner));
    return b;
}

static berth_vm_value *matrix(int seed) {
    const int64_t dims[] = {width, width};
    berth_vm_value *value = NULL;
    assert_ok(berth_vm_value_tensor(berth_allocator_system(), BERTH_DTYPE_F32, 2, dims, &value));
    for (int i = 0; i < width * width; ++i)
        ((float *)value->tensor.data)[i] = (float)((i * 5 + seed) % 3 - 1);
    return value;
}

static void step(const float *c, const float *w, const float *x, float *out) {
    for (int r = 0; r < width; ++r)
        for (int k = 0; k < width; ++k) {
            float sum = x[r * width + k];
            for (int i = 0; i < width; ++i) sum += c[r * width + i] * w[i * width + k];
            out[r * width + k] = sum;
        }
}

// Small integers, so that results are exact.
static berth_vm_traffic run_loop(berth_vm_runner *runner, int64_t count) {
    berth_vm_value *inputs[3] = {NULL, matrix(1), matrix(2)}, *outputs[2];
    float c[width * width], next[width * width];
    assert_ok(
        berth_vm_value_tensor(berth_allocator_system(), BERTH_DTYPE_I64, 0, NULL, &inputs[0]));
    berth_tensor_set_i64(&inputs[0]->tensor, 0, count);
    const float *x = inputs[1]->tensor.data, *w = inputs[2]->tensor.data;
    memcpy(c, x, sizeof(c));
    for (int64_t i = 0; i < count; ++i) {
        step(c, w, x, next);
        memcpy(c, next, sizeof(c));
    }
    assert_ok(berth_vm_runner_run(runner, inputs, outputs));
    cr_assert_arr_eq(outputs[0]->tensor.data, c, sizeof(c), "%d rounds", (int)count);
    for (int i = 0; i < 2; ++i) berth_vm_value_release(outputs[i]);
    for (int i = 0; i < 3; ++i) berth_vm_value_release(inputs[i]);
    return berth_vm_runner_get_report(runner)->traffic;
}

static void check_loop(const char *target) {
    built b = build(loop_text, target, NULL, NULL);
    const berth_vm_traffic two = run_loop(b.runner, 2), nine = run_loop(b.runner, 9);
    cr_assert_eq(nine.to_device_count, two.to_device_count);
    cr_assert_eq(nine.to_host_count, two.to_host_count);
    // x and w cross once each, and the two results.
    const uint64_t matrix_bytes = width * width * sizeof(float);
    cr_assert_eq(nine.to_device_bytes, 2 * matrix_bytes);
    cr_assert_eq(nine.to_host_bytes, 2 * matrix_bytes);
    cr_assert_eq(two.to_device_bytes, 2 * matrix_bytes);
    cr_assert_eq(two.to_host_bytes, 2 * matrix_bytes);
    // Values of nine rounds lie where those of two did, and the next run asks the device for nothing.
    const berth_workspaces *blocks = berth_vm_runner_blocks(b.runner);
    const uint64_t made = blocks->made_count, reserved = blocks->reserved_bytes;
    cr_assert_leq(made, 6, "%d blocks", (int)made);  // x, w, two of c, two results
    cr_assert_geq(reserved, made * matrix_bytes);
    for (int i = 0; i < 5; ++i) run_loop(b.runner, 30);
    cr_assert_eq(blocks->made_count, made);
    cr_assert_eq(blocks->reserved_bytes, reserved);
    berth_vm_runner_close(b.runner);
}

Test(resident, what_a_loop_carries_stays_on_the_device) {
    if (device_is_here("opencl", 1)) check_loop("opencl -host=cpu");
    if (device_is_here("vulkan", 1)) check_loop("vulkan -host=cpu");
    built b = build(loop_text, "cpu", NULL, NULL);
    cr_assert_eq(run_loop(b.runner, 9).to_device_count, 0);
    berth_vm_runner_close(b.runner);
}

static float element(int row, int head, int i) {
    return (float)((row * 5 + head * 3 + i * 2) % 7 - 3);
}

static void check_y(const berth_vm_value *y, int last) {
    for (int h = 0; h < 2; ++h)
        for (int i = 0; i < width; ++i) {
            float sum = 0;
            for (int r = 0; r <= last; ++r) {
                float score = 0;
                for (int k = 0; k < width; ++k) score += element(last, h, k) * element(r, h, k);
                sum += score * element(r, h, i);
            }
            cr_assert_eq(((const float *)y->tensor.data)[h * width + i], sum, "row %d", last);
        }
}

static void check_state(const berth_vm_runner *runner, int last) {
    berth_vm_value *rows = NULL;
    assert_ok(berth_vm_runner_get_state(runner, 0, &rows));
    cr_assert_eq(rows->tensor.dims[1], last + 1);
    for (int h = 0; h < 2; ++h)
        for (int r = 0; r <= last; ++r)
            for (int i = 0; i < width; ++i)
                cr_assert_eq(((const float *)rows->tensor.data)[(h * (last + 1) + r) * width + i],
                             element(r, h, i));
    berth_vm_value_release(rows);
}

static void run_text(built b, int rows) {
    const uint64_t row_bytes = 2 * width * sizeof(float);
    for (int row = 0; row < rows; ++row) {
        const int64_t dims[] = {2, 1, width};
        berth_vm_value *inputs[2] = {NULL, NULL}, *outputs[2];
        assert_ok(
            berth_vm_value_tensor(berth_allocator_system(), BERTH_DTYPE_F32, 3, dims, &inputs[1]));
        for (int h = 0; h < 2; ++h)
            for (int i = 0; i < width; ++i)
                ((float *)inputs[1]->tensor.data)[h * width + i] = element(row, h, i);
        assert_ok(berth_vm_runner_run(b.runner, inputs, outputs));
        const berth_vm_runner_report *report = berth_vm_runner_get_report(b.runner);
        check_y(outputs[0], row);
        cr_assert_null(outputs[1]);
        cr_assert_eq(report->copied_bytes, 0);
        cr_assert_leq(report->traffic.to_device_bytes, row_bytes, "row %d", row);
        cr_assert_leq(report->traffic.to_host_bytes, row_bytes, "row %d", row);
        berth_vm_value_release(outputs[0]);
        berth_vm_value_release(inputs[1]);
    }
    check_state(b.runner, rows - 1);
}

static bool continues_on(const berth_program *program, const char *kind) {
    for (uint32_t v = 0; v < program->vm->variant_count; ++v) {
        const berth_program *p = program->vm->variants[v].program;
        for (uint32_t o = 0; p && o < p->output_count; ++o) {
            const uint32_t pool = p->tensors[p->outputs[o].tensor].pool;
            if (p->outputs[o].continues &&
                strcmp(p->devices[p->pools[pool].device].kind, kind) == 0)
                return true;
        }
    }
    return false;
}

static void check_cache(const char *kind, const char *target) {
    if (!device_is_here(kind, 1)) return;
    built b = build(state_text, target, "past=present", "past=0..7");
    cr_assert(continues_on(b.program, kind), "no cache continues an input in memory of %s", kind);
    assert_ok(berth_vm_runner_keep_states(b.runner));
    run_text(b, 8);
    berth_vm_runner_reset_states(b.runner);
    run_text(b, 3);
    berth_vm_runner_close(b.runner);
}

Test(resident, a_cache_grows_in_the_memory_of_its_device) {
    check_cache("opencl", "opencl -host=cpu");
    check_cache("vulkan", "vulkan -host=cpu");
}
