// Products of a few rows with operands that were repeated for groups of heads (passes/repeat.h).
#include "compiler/compile.h"
#include "compiler/passes/fold.h"
#include "compiler/passes/repeat.h"
#include "compiler/passes/simplify.h"
#include "ir/eval.h"
#include "ir/text.h"
#include "tests/check.h"

// Queries of 6 heads over keys of 2, each repeated for 3; scaled, masked. %s: rows of queries.
static const char attention[] =
    "module \"m\"\n"
    "graph @main(%%q: f32[2,6,%s,4], %%k: f32[2,2,5,4], %%m: f32[1,1,%s,5]) {\n"
    "  %%axis = constant() {value = i64[1] (2)}\n"
    "  %%u = unsqueeze(%%k, %%axis)\n"
    "  %%times = constant() {value = i64[5] (1, 1, 3, 1, 1)}\n"
    "  %%e = expand(%%u, %%times)\n"
    "  %%shape = constant() {value = i64[4] (2, 6, 5, 4)}\n"
    "  %%r = reshape(%%e, %%shape)\n"
    "  %%t = transpose(%%r) {perm = [0, 1, 3, 2]}\n"
    "  %%p = matmul(%%q, %%t)\n"
    "  %%half = constant() {value = f32[] (0.5)}\n"
    "  %%s = mul(%%p, %%half)\n"
    "  %%y = add(%%s, %%m)\n"
    "  return %%y\n}\n";

// Repeated along another dimension: every row three times, not every matrix.
static const char rows_repeated[] =
    "module \"m\"\n"
    "graph @main(%%q: f32[2,6,1,4], %%k: f32[2,6,4,5], %%m: f32[1,1,1,15]) {\n"
    "  %%axis = constant() {value = i64[1] (4)}\n"
    "  %%u = unsqueeze(%%k, %%axis)\n"
    "  %%times = constant() {value = i64[5] (1, 1, 1, 1, 3)}\n"
    "  %%e = expand(%%u, %%times)\n"
    "  %%shape = constant() {value = i64[4] (2, 6, 4, 15)}\n"
    "  %%r = reshape(%%e, %%shape)\n"
    "  %%p = matmul(%%q, %%r)\n"
    "  %%y = add(%%p, %%m)\n"
    "  return %%y\n}\n";

typedef struct fixture {
    berth_arena *arena;
    berth_module *module;
    berth_func_id main;
} fixture;

static berth_status fold(void *user) {
    const fixture *f = user;
    return berth_pass_fold(f->module, f->main, NULL);
}

static berth_status simplify(void *user) {
    const fixture *f = user;
    return berth_simplify(f->module, f->main, NULL);
}

static fixture begin(const char *format, const char *rows) {
    fixture f = {.arena = NULL};
    assert_ok(berth_arena_create(berth_allocator_system(), &f.arena));
    char *text = format == attention ? berth_arena_printf(f.arena, attention, rows, rows)
                                     : berth_arena_printf(f.arena, rows_repeated);
    assert_ok(berth_module_parse(f.arena, text, strlen(text), "test.txt", &f.module));
    f.main = berth_module_find_function(f.module, "main");
    assert_ok(berth_arena_try(f.arena, fold, &f));
    return f;
}

static uint32_t count(const fixture *f, berth_op_kind kind) {
    const berth_graph *graph = berth_graph_get(f->module, f->main);
    uint32_t found = 0;
    for (uint32_t i = 0; i < graph->regions.data[0].ops.count; ++i)
        found += graph->ops.data[graph->regions.data[0].ops.data[i]].kind == kind;
    return found;
}

static void eval(const fixture *f, berth_tensor *out) {
    const berth_graph *graph = berth_graph_get(f->module, f->main);
    const berth_region *root = &graph->regions.data[0];
    berth_tensor inputs[3];
    for (uint32_t i = 0; i < 3; ++i) {
        const berth_type *type =
            berth_type_get(f->module, graph->values.data[root->params.data[i]].type);
        inputs[i] = berth_tensor_create(f->arena, type->dtype, type->rank, type->dims);
        berth_tensor_fill_random(&inputs[i], i + 1);
    }
    assert_ok(berth_eval_function(f->module, f->main, inputs, 3, out, 1, f->arena));
}

// Simplified, the function computes the very same: the sums are the same, in the same order.
static void expect_same(fixture *f) {
    berth_tensor before, after;
    eval(f, &before);
    assert_ok(berth_arena_try(f->arena, simplify, f));
    eval(f, &after);
    cr_assert(berth_tensor_same_shape(&before, &after));
    cr_assert_arr_eq(before.data, after.data, berth_tensor_size_bytes(&before));
}

Test(repeat, a_row_reads_shared_heads_in_place) {
    fixture f = begin(attention, "1");
    cr_assert_eq(count(&f, BERTH_OP_EXPAND), 1);
    expect_same(&f);
    cr_assert_eq(count(&f, BERTH_OP_EXPAND), 0);
    // What follows the product stays next to it: the only reshape after it is the last operation.
    const berth_graph *graph = berth_graph_get(f.module, f.main);
    const berth_region *root = &graph->regions.data[0];
    const berth_op *last = &graph->ops.data[root->ops.data[root->ops.count - 1]];
    cr_assert_eq(last->kind, BERTH_OP_RESHAPE);
    cr_assert_eq(graph->ops.data[graph->values.data[last->inputs[0]].op].kind, BERTH_OP_ADD);
    cr_assert_eq(berth_type_get(f.module, graph->values.data[last->inputs[0]].type)->dims[1], 2);
    berth_arena_destroy(f.arena);
}

Test(repeat, a_mask_that_differs_by_row_stays_after_the_reshape) {
    fixture f = begin(attention, "3");
    expect_same(&f);
    cr_assert_eq(count(&f, BERTH_OP_EXPAND), 0);
    berth_arena_destroy(f.arena);
}

Test(repeat, many_rows_make_up_for_the_copies) {
    fixture f = begin(attention, "4");
    cr_assert_eq(BERTH_REPEAT_ROWS, 4);
    expect_same(&f);
    cr_assert_eq(count(&f, BERTH_OP_EXPAND), 1);
    berth_arena_destroy(f.arena);
}

Test(repeat, other_repetitions_stay) {
    fixture f = begin(rows_repeated, "");
    expect_same(&f);
    cr_assert_eq(count(&f, BERTH_OP_EXPAND), 1);
    berth_arena_destroy(f.arena);
}

// Steps of a product of `rows` rows with a transposed operand.
static uint32_t count_steps(const char *target_text, int rows, bool other_sizes,
                            double *out_predicted_ns) {
    fixture f = {.arena = NULL};
    berth_multi_target *target = NULL;
    berth_compile_result result;
    assert_ok(berth_arena_create(berth_allocator_system(), &f.arena));
    char *text = berth_arena_printf(f.arena,
                                    "module \"m\"\n"
                                    "graph @main(%%q: f32[1,2,%d,16], %%k: f32[1,2,40,16]) {\n"
                                    "  %%t = transpose(%%k) {perm = [0, 1, 3, 2]}\n"
                                    "  %%p = matmul(%%q, %%t)\n  return %%p\n}\n",
                                    rows);
    assert_ok(berth_module_parse(f.arena, text, strlen(text), "test.txt", &f.module));
    assert_ok(berth_target_parse(f.arena, target_text, NULL, &target));
    berth_compile_options options = {
        .target = target, .plan_only = true, .verify = true, .other_sizes = other_sizes};
    assert_ok(berth_compile(f.module, &options, &result));
    uint32_t steps = result.program->step_count;
    *out_predicted_ns = result.program->predicted_ns;
    berth_arena_destroy(f.arena);
    return steps;
}

Test(repeat, a_few_rows_read_what_is_transposed_where_it_is) {
    double ns = 0;
    for (int rows = 1; rows < 6; ++rows)
        cr_assert_eq(count_steps("cpu -arch=x86_64 -vector_bits=256", rows, false, &ns),
                     rows < 4 ? 1 : 2, "%d rows", rows);
}

// What is not asked again for other sizes changes nothing but what is predicted.
Test(repeat, other_sizes_of_a_module_are_not_predicted) {
    static const char target[] = "cpu -arch=x86_64 -vector_bits=256";
    double first = 0, again = 0;
    cr_assert_eq(count_steps(target, 5, false, &first), count_steps(target, 5, true, &again));
    cr_assert_gt(first, 0);
    cr_assert_leq(again, 0);
}
