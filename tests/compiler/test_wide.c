// Operations of many operands and results become trees (passes/wide.h) that compute the same, and
// graphs of very many operations take linear time.
#include "compiler/lower/lower.h"
#include "compiler/passes/fold.h"
#include "compiler/passes/simplify.h"
#include "compiler/passes/wide.h"
#include "ir/eval.h"
#include "tests/check.h"

enum { parts = 130, rows = 150 };  // the first 20 parts have two rows

typedef struct fixture {
    berth_arena *arena;
    berth_module *module;
    berth_func_id main;
} fixture;

static berth_value_id reduce(const fixture *f, berth_op_kind kind, const berth_value_id *values,
                             uint32_t count) {
    return berth_graph_op1(f->module, f->main, kind, values, count, 0);
}

// x[150, 4] in 130 parts; all of them reversed beside each other, and over the parts of one row:
// the largest, the smallest, the mean.
static berth_status build(void *user) {
    fixture *f = user;
    f->module = berth_module_create(f->arena, "wide");
    f->main = berth_graph_create(f->module, "main", 0);
    berth_tensor sizes = berth_tensor_create(f->arena, BERTH_DTYPE_I64, 1, (int64_t[]){parts});
    for (int i = 0; i < parts; ++i) berth_tensor_set_i64(&sizes, i, i < rows - parts ? 2 : 1);
    berth_value_id inputs[2] = {berth_graph_add_param(f->module, f->main, "x",
                                                      berth_type_tensor(f->module, BERTH_DTYPE_F32,
                                                                        2, (int64_t[]){rows, 4})),
                                berth_graph_constant(f->module, f->main, 0, &sizes, 0)};
    berth_op_id split =
        berth_graph_add_op(f->module, f->main, 0, BERTH_OP_SPLIT, inputs, 2, parts, 0);
    const berth_value_id *outputs = berth_graph_get(f->module, f->main)->ops.data[split].outputs;
    berth_value_id reversed[parts];
    for (int i = 0; i < parts; ++i) reversed[i] = outputs[parts - 1 - i];
    berth_value_id results[4] = {
        reduce(f, BERTH_OP_CONCAT, reversed, parts), reduce(f, BERTH_OP_MAX, outputs + 20, 110),
        reduce(f, BERTH_OP_MIN, outputs + 30, 33), reduce(f, BERTH_OP_MEAN, outputs + 25, 100)};
    berth_op_id concat = berth_graph_get(f->module, f->main)->values.data[results[0]].op;
    berth_attrs_set_int(f->module, &berth_graph_get(f->module, f->main)->ops.data[concat].attrs,
                        "axis", 0);
    berth_graph_set_results(f->module, f->main, results, 4);
    return berth_pass_fold(f->module, f->main, NULL);
}

static berth_status simplify(void *user) {
    fixture *f = user;
    return berth_simplify(f->module, f->main, NULL);
}

static uint32_t widest(const fixture *f) {
    const berth_graph *graph = berth_graph_get(f->module, f->main);
    uint32_t most = 0;
    for (uint32_t i = 0; i < graph->ops.count; ++i) {
        const berth_op *op = &graph->ops.data[i];
        if (op->region == BERTH_NONE) continue;
        if (op->input_count > most) most = op->input_count;
        if (op->output_count > most) most = op->output_count;
    }
    return most;
}

Test(wide, trees_compute_the_same) {
    fixture f = {0};
    berth_tensor before[4], after[4];
    assert_ok(berth_arena_create(berth_allocator_system(), &f.arena));
    assert_ok(berth_arena_try(f.arena, build, &f));
    berth_tensor x = berth_tensor_create(f.arena, BERTH_DTYPE_F32, 2, (int64_t[]){rows, 4});
    berth_tensor_fill_random(&x, 3);
    assert_ok(berth_eval_function(f.module, f.main, &x, 1, before, 4, f.arena));
    cr_assert_eq(widest(&f), parts);
    assert_ok(berth_arena_try(f.arena, simplify, &f));
    cr_assert_leq(widest(&f), BERTH_WIDE_PARTS);
    assert_ok(berth_eval_function(f.module, f.main, &x, 1, after, 4, f.arena));
    for (int r = 0; r < 4; ++r)
        for (int64_t i = 0; i < berth_tensor_element_count(&before[r]); ++i)
            cr_assert_float_eq(berth_tensor_get_f64(&before[r], i),
                               berth_tensor_get_f64(&after[r], i), 1e-6, "result %d, element %d", r,
                               (int)i);
    berth_arena_destroy(f.arena);
}

// A primitive function as only a hand-written module has it: fusion stops much earlier.
static berth_status lower_chain(void *user) {
    fixture *f = user;
    f->module = berth_module_create(f->arena, "chain");
    f->main = berth_graph_create(f->module, "chain", 0);
    berth_value_id value = berth_graph_add_param(
        f->module, f->main, "x", berth_type_tensor(f->module, BERTH_DTYPE_F32, 1, (int64_t[]){4}));
    for (int i = 0; i < 1000; ++i) value = reduce(f, BERTH_OP_NEG, &value, 1);
    berth_graph_set_results(f->module, f->main, &value, 1);
    return berth_pass_fold(f->module, f->main, NULL);
}

Test(wide, chains_in_one_function_are_bounded) {
    fixture f = {0};
    berth_func_id lowered = BERTH_NONE;
    assert_ok(berth_arena_create(berth_allocator_system(), &f.arena));
    assert_ok(berth_arena_try(f.arena, lower_chain, &f));
    assert_fails(berth_lower_function(f.module, f.main, &lowered), BERTH_UNSUPPORTED,
                 "operations in a row in one function");
    berth_arena_destroy(f.arena);
}
