// Inputs whose values are known before the run decide shapes and branches, and only those; a branch
// that is not taken need not fit.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "compiler/compile.h"
#include "compiler/onnx/import.h"
#include "ir/graph/graph.h"
#include "ir/text.h"
#include "tests/check.h"

typedef struct fixture {
    berth_arena *arena;
    berth_module *module;
    berth_compile_result result;
    berth_status status;
} fixture;

static const float values[4] = {3, 0, -1, 0};
static const bool yes[1] = {true};
static const int64_t two[2] = {2, 2};

// Runs the passes up to the planner on a text whose inputs are among these.
static fixture fold(const char *text, bool known) {
    static const char *const passes[] = {"keep-names", "fold-constants", "plan-devices", NULL};
    const berth_input_binding inputs[] = {
        {.name = "x", .tensor = {.dtype = BERTH_DTYPE_F32, .rank = 1, .dims = {4}}},
        {.name = "c", .tensor = {.dtype = BERTH_DTYPE_BOOL, .rank = 1, .dims = {1}}},
        {.name = "s", .tensor = {.dtype = BERTH_DTYPE_I64, .rank = 1, .dims = {2}}},
    };
    berth_input_binding bound[3];
    memcpy(bound, inputs, sizeof(inputs));
    memcpy(&bound[0].tensor.data, &(const void *){values}, sizeof(void *));
    memcpy(&bound[1].tensor.data, &(const void *){yes}, sizeof(void *));
    memcpy(&bound[2].tensor.data, &(const void *){two}, sizeof(void *));
    fixture f = {.arena = NULL};
    berth_multi_target *target = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &f.arena));
    assert_ok(berth_target_parse(f.arena, "cpu", NULL, &target));
    assert_ok(berth_module_parse(f.arena, text, strlen(text), "test.txt", &f.module));
    berth_compile_options options = {.target = target, .known_inputs = bound};
    if (known) options.known_input_count = 3;
    f.status = berth_compile_run_passes(f.module, passes, &options, &f.result);
    return f;
}

static void finish(fixture *f) {
    berth_status_free(f->status);
    berth_arena_destroy(f->arena);
}

static uint32_t count_kind(const fixture *f, berth_op_kind kind) {
    const berth_graph *graph =
        berth_graph_get(f->module, berth_module_find_function(f->module, "main"));
    const berth_region *root = &graph->regions.data[0];
    uint32_t count = 0;
    for (uint32_t i = 0; i < root->ops.count; ++i)
        count += graph->ops.data[root->ops.data[i]].kind == kind;
    return count;
}

static void expect_used(const fixture *f, const char *input) {
    cr_assert_eq(f->result.known_use_count, 1);
    cr_expect_str_eq(f->result.known_uses[0].input, input);
}

// What counts elements needs the values; what only reads them runs.
Test(known, a_shape_that_depends_on_an_input) {
    static const char text[] = "module \"m\"\n"
                               "graph @main(%x: f32[4]) {\n"
                               "  %y = relu(%x)\n"
                               "  %n = non_zero(%x)\n"
                               "  %z = exp(%x)\n"
                               "  return %y, %n, %z\n"
                               "}\n";
    fixture f = fold(text, true);
    assert_ok(f.status);
    expect_used(&f, "x");
    cr_expect_eq(count_kind(&f, BERTH_OP_NON_ZERO), 0);
    cr_expect_eq(count_kind(&f, BERTH_OP_RELU), 1);
    cr_expect_eq(count_kind(&f, BERTH_OP_EXP), 1);
    finish(&f);
    f = fold(text, false);
    assert_fails(f.status, BERTH_UNSUPPORTED, "shapes that depend on the values of inputs");
    f.status = BERTH_OK;
    finish(&f);
}

// Of an operation with a shape operand, only that operand.
Test(known, a_shape_operand) {
    fixture f = fold("module \"m\"\n"
                     "graph @main(%x: f32[4], %s: i64[2]) {\n"
                     "  %twice = add(%x, %x)\n"
                     "  %y = reshape(%twice, %s)\n"
                     "  return %y\n"
                     "}\n",
                     true);
    assert_ok(f.status);
    expect_used(&f, "s");
    cr_expect_eq(count_kind(&f, BERTH_OP_ADD), 1);
    cr_expect_eq(count_kind(&f, BERTH_OP_RESHAPE), 1);
    finish(&f);
}

static const char branches[] = "module \"m\"\n"
                               "graph @main(%x: f32[4], %c: bool[1]) {\n"
                               "  %y = if(%c) {\n"
                               "    %a = relu(%x)\n"
                               "    return %a\n"
                               "  } else {\n"
                               "    %shape = constant() {value = i64[1] (5)}\n"
                               "    %b = reshape(%x, %shape)\n"
                               "    %d = concat(%b, %b) {axis = 7}\n"
                               "    return %d\n"
                               "  }\n"
                               "  %z = neg(%y)\n"
                               "  return %z\n"
                               "}\n";

Test(known, a_condition_chooses_the_branch_and_the_other_need_not_fit) {
    fixture f = fold(branches, true);
    assert_ok(f.status);
    expect_used(&f, "c");
    cr_expect_eq(count_kind(&f, BERTH_OP_IF), 0);
    cr_expect_eq(count_kind(&f, BERTH_OP_RELU), 1);
    cr_expect_eq(count_kind(&f, BERTH_OP_RESHAPE), 0);
    finish(&f);
}

Test(known, a_branch_that_is_taken_must_fit) {
    char text[1024];
    snprintf(text, sizeof(text), "%s", branches);
    memcpy(strstr(text, "relu(%x)"), "det(%x) ", 8);  // of a vector
    fixture f = fold(text, true);
    assert_fails(f.status, BERTH_INVALID_ARGUMENT, "test.txt:4:5: operand 0 has rank 1");
    f.status = BERTH_OK;
    finish(&f);
}

Test(known, a_branch_that_is_open_is_refused) {
    fixture f = fold(branches, false);
    assert_fails(f.status, BERTH_UNSUPPORTED, "this condition is not known then");
    f.status = BERTH_OK;
    finish(&f);
}
