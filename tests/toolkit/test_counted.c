// Program files of models in which data decides extents: every count that can come has code, and gives what the reference
// interpreter gives for the model as it was.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "artifact/file.h"
#include "artifact/file_form.h"
#include "executor/vm_runner.h"
#include "ir/eval.h"
#include "ir/text.h"
#include "tests/check.h"
#include "tests/device_is_here.h"
#include "toolkit/vm_build.h"

enum { most_inputs = 2, most_outputs = 6, rounds = 40 };

static berth_arena *arena;

static void setup(void) {
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
}

static void teardown(void) {
    berth_arena_destroy(arena);
}

TestSuite(counted, .init = setup, .fini = teardown, .timeout = 600);

typedef struct counted_case {
    const char *name, *text;
    struct counted_input {
        berth_dtype dtype;
        int rank;
        int64_t least[3], most[3];
    } inputs[most_inputs];
    uint32_t input_count, output_count;
} counted_case;

static const counted_case cases[] = {
    {"the places of what is not zero",
     "graph @main(%x: f32[A,B,3]) {bounds = \"A=0..2,B=1..3\"} {\n"
     "  %p = non_zero(%x)\n  %t = transpose(%p) {perm = [1, 0]}\n  %v = gather_nd(%x, %t)\n"
     "  %e = add(%v, %v)\n  %s = reduce_sum(%e) {keepdims = 0}\n  %n = size_of(%e)\n"
     "  return %p, %e, %s, %n\n}\n",
     {{BERTH_DTYPE_F32, 3, {0, 1, 3}, {2, 3, 3}}},
     1,
     4},
    {"a vector of truth values, and a scalar",
     "graph @main(%x: bool[A], %k: i64[]) {bounds = \"A=1..9\"} {\n"
     "  %p = non_zero(%x)\n  %q = non_zero(%k)\n  return %p, %q\n}\n",
     {{BERTH_DTYPE_BOOL, 1, {1}, {9}}, {BERTH_DTYPE_I64, 0, {0}, {0}}},
     2,
     2},
    {"chosen rows, columns and elements",
     "graph @main(%x: f32[A,4], %c: bool[A]) {bounds = \"A=1..6\"} {\n"
     "  %rows = compress(%x, %c) {axis = 0}\n  %zero = constant() {value = f32[] (0)}\n"
     "  %up = greater(%rows, %zero)\n  %first = constant() {value = i64[1] (-1)}\n"
     "  %flags = reshape(%up, %first)\n  %some = compress(%rows, %flags)\n"
     "  %sum = reduce_sum(%rows) {keepdims = 0}\n  return %rows, %some, %sum\n}\n",
     {{BERTH_DTYPE_F32, 2, {1, 4}, {6, 4}}, {BERTH_DTYPE_BOOL, 1, {1}, {6}}},
     2,
     3},
    {"different numbers, by value",
     "graph @main(%x: f32[A,B]) {bounds = \"A=1..3,B=0..4\"} {\n"
     "  %y, %f, %i, %n = unique(%x)\n  %d = add(%y, %y)\n  return %y, %f, %i, %n, %d\n}\n",
     {{BERTH_DTYPE_F32, 2, {1, 0}, {3, 4}}},
     1,
     5},
    {"different numbers, as they come",
     "graph @main(%x: i64[A]) {bounds = \"A=1..12\"} {\n"
     "  %y, %f, %i, %n = unique(%x) {sorted = 0}\n  return %y, %f, %i, %n\n}\n",
     {{BERTH_DTYPE_I64, 1, {1}, {12}}},
     1,
     4},
    {"different columns",
     "graph @main(%x: f32[3,A]) {bounds = \"A=1..8\"} {\n"
     "  %y, %f, %i, %n = unique(%x) {axis = 1}\n  %u, %g = unique(%x) {axis = -1, sorted = 0}\n"
     "  return %y, %f, %i, %n, %u, %g\n}\n",
     {{BERTH_DTYPE_F32, 2, {3, 1}, {3, 8}}},
     1,
     6},
    {"in a branch, and in a loop whose rounds count anew",
     "graph @main(%x: f32[A], %k: i64[]) {bounds = \"A=1..5\"} {\n"
     "  %zero = constant() {value = i64[] (0)}\n  %c = greater(%k, %zero)\n"
     "  %n = if(%c) {\n    %p = non_zero(%x)\n    %a = size_of(%p)\n    return %a\n  } {\n"
     "    %b = size_of(%x)\n    return %b\n  }\n"
     "  %one = constant() {value = f32[] (1)}\n  %three = constant() {value = i64[] (3)}\n"
     "  %s, %all = loop(%three, _, %x) (%i: i64[], %go: bool[], %v: f32[A]) {\n"
     "    %q = non_zero(%v)\n    %m = size_of(%q)\n    %w = sub(%v, %one)\n"
     "    return %go, %w, %m\n  }\n"
     "  return %n, %s, %all\n}\n",
     {{BERTH_DTYPE_F32, 1, {1}, {5}}, {BERTH_DTYPE_I64, 0, {0}, {0}}},
     2,
     3},
};

enum { case_count = sizeof(cases) / sizeof(cases[0]) };

static berth_module *parse(const char *text) {
    berth_module *module = NULL;
    const char *whole = berth_arena_printf(arena, "module \"m\"\n%s", text);
    assert_ok(berth_module_parse(arena, whole, strlen(whole), "test", &module));
    return module;
}

static berth_status build(const char *text, const char *target_text, const berth_program **out) {
    berth_multi_target *target = NULL;
    assert_ok(berth_target_parse(arena, target_text, NULL, &target));
    const berth_compile_options options = {
        .target = target, .cache_folder = getenv("BERTH_CACHE_DIR"), .search_path = getenv("PATH")};
    return berth_vm_build(arena, parse(text), &options, NULL, 0, out);
}

// As a file has it.
static const berth_program *written(const berth_program *program) {
    const void *data = NULL;
    size_t size_bytes = 0;
    const berth_program *back = NULL;
    assert_ok(berth_program_to_memory(program, arena, &data, &size_bytes));
    void *aligned = berth_arena_alloc_aligned(arena, size_bytes, BERTH_PROGRAM_FILE_ALIGNMENT);
    memcpy(aligned, data, size_bytes);
    assert_ok(berth_program_parse(arena, aligned, size_bytes, &back));
    return back;
}

// Few different numbers, of which `share` in 8 are none of 0; of floats some are NaN.
static berth_tensor draw(const struct counted_input *in, const int64_t *dims, uint32_t share,
                         uint64_t *state) {
    berth_tensor tensor = berth_tensor_create(arena, in->dtype, in->rank, dims);
    for (int64_t i = 0; i < berth_tensor_element_count(&tensor); ++i) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        const uint32_t bits = (uint32_t)(*state >> 40);
        double value = bits % 8 < share ? (double)(bits / 8 % 5) - 2 : 0;
        if (value == 0 && bits % 8 < share) value = 3;
        if (in->dtype == BERTH_DTYPE_BOOL) value = value != 0;
        if (in->dtype == BERTH_DTYPE_F32 && bits / 64 % 16 == 0) value = NAN;
        if (berth_dtype_is_float(in->dtype))
            berth_tensor_set_f64(&tensor, i, value);
        else
            berth_tensor_set_i64(&tensor, i, (int64_t)value);
    }
    return tensor;
}

static void expect_equal(const counted_case *test, int round, uint32_t output,
                         const berth_tensor *got, const berth_tensor *wanted) {
    cr_assert_eq(got->dtype, wanted->dtype);
    cr_assert(berth_tensor_same_shape(got, wanted), "%s: round %d: the shape of result %u",
              test->name, round, output);
    for (int64_t i = 0; i < berth_tensor_element_count(wanted); ++i) {
        const double a = berth_tensor_get_f64(got, i), b = berth_tensor_get_f64(wanted, i);
        cr_assert(a == b || (isnan(a) && isnan(b)),
                  "%s: round %d, result %u, element %lld: %g, expected %g", test->name, round,
                  output, (long long)i, a, b);
    }
}

static void run_round(const counted_case *test, const berth_module *model, berth_vm_runner *runner,
                      int round, uint64_t *state) {
    berth_tensor inputs[most_inputs], wanted[most_outputs];
    berth_vm_value *given[most_inputs], *got[most_outputs];
    for (uint32_t i = 0; i < test->input_count; ++i) {
        const struct counted_input *in = &test->inputs[i];
        int64_t dims[3] = {0};
        for (int d = 0; d < in->rank; ++d)
            dims[d] = in->least[d] + round * (3 + d) % (in->most[d] - in->least[d] + 1);
        inputs[i] = draw(in, dims, (uint32_t)round / 2 % 9, state);
        assert_ok(berth_vm_value_borrow(berth_allocator_system(), &inputs[i], &given[i]));
    }
    assert_ok(berth_eval_function(model, berth_module_find_function(model, "main"), inputs,
                                  test->input_count, wanted, test->output_count, arena));
    berth_status status = berth_vm_runner_run(runner, given, got);
    cr_assert_null(status, "%s: round %d: %s", test->name, round, berth_status_message(status));
    for (uint32_t i = 0; i < test->output_count; ++i) {
        expect_equal(test, round, i, &got[i]->tensor, &wanted[i]);
        berth_vm_value_release(got[i]);
    }
    for (uint32_t i = 0; i < test->input_count; ++i) berth_vm_value_release(given[i]);
}

static void check_case(const counted_case *test, const char *target) {
    const berth_program *program = NULL;
    berth_vm_runner *runner = NULL;
    uint64_t state = 7;
    berth_status status = build(test->text, target, &program);
    cr_assert_null(status, "%s: %s", test->name, berth_status_message(status));
    assert_ok(berth_vm_runner_open(written(program), NULL, &runner));
    const berth_module *model = parse(test->text);
    for (int round = 0; round < rounds; ++round) run_round(test, model, runner, round, &state);
    berth_vm_runner_close(runner);
}

Test(counted, every_count_is_there_on_cpu) {
    for (int i = 0; i < case_count; ++i) check_case(&cases[i], "cpu");
}

Test(counted, every_count_is_there_on_opencl) {
    if (!device_is_here("opencl", 1)) return;
    check_case(&cases[0], "opencl -host=cpu");
    check_case(&cases[4], "opencl -host=cpu");
}

static void expect_refused(const char *text, const char *words) {
    const berth_program *program = NULL;
    berth_status status = build(text, "cpu", &program);
    cr_assert_not_null(status, "%s", text);
    cr_expect_eq(berth_status_code(status), BERTH_UNSUPPORTED);
    cr_expect(strstr(berth_status_message(status), words), "%s", berth_status_message(status));
    berth_status_free(status);
}

Test(counted, too_many_counts_are_refused) {
    expect_refused("graph @main(%x: f32[70000]) {\n  %p = non_zero(%x)\n  return %p\n}\n",
                   "how many of 70000 elements");
    expect_refused("graph @main(%x: f32[5000]) {\n  %p = non_zero(%x)\n  %q = neg(%p)\n"
                   "  return %q\n}\n",
                   "more than the 4096");
    expect_refused("graph @main(%x: f32[300], %y: f32[300]) {\n  %p = non_zero(%x)\n"
                   "  %q = non_zero(%y)\n  %r = concat(%p, %q) {axis = 1}\n  return %r\n}\n",
                   "more than 65536 combinations");
}

// Slices that would be sorted by more elements than a few, or by nobody knows how many.
Test(counted, wide_slices_are_refused) {
    expect_refused("graph @main(%x: f32[4,65]) {\n  %y = unique(%x) {axis = 0}\n  return %y\n}\n",
                   "depends on data");
}
