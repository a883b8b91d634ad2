// Whole functions: calls, higher-order calls, tuples, if, loop, device annotations.
#include <criterion/criterion.h>

#include "tests/eval/support.h"

static berth_value_id param(eval_case *c, berth_func_id function) {
    return berth_graph_add_param(c->module, function, "x", 0);
}

static berth_value_id number(eval_case *c, berth_func_id function, berth_region_id region,
                             const char *text) {
    berth_tensor tensor = eval_tensor(c, text);
    return berth_graph_constant(c->module, function, region, &tensor, 0);
}

static berth_op_id add(eval_case *c, berth_func_id function, berth_region_id region,
                       berth_op_kind kind, const berth_value_id *inputs, uint32_t count,
                       uint32_t outputs) {
    return berth_graph_add_op(c->module, function, region, kind, inputs, count, outputs, 0);
}

static berth_value_id out(const eval_case *c, berth_func_id function, berth_op_id op,
                          uint32_t index) {
    return berth_graph_get(c->module, function)->ops.data[op].outputs[index];
}

static void set_callee(eval_case *c, berth_func_id function, berth_op_id op, berth_func_id callee) {
    berth_attrs_set(c->module, &berth_graph_get(c->module, function)->ops.data[op].attrs, "callee",
                    (berth_attr){.kind = BERTH_ATTR_FUNCTION, .function = callee});
}

static void expect_run(eval_case *c, const char *arguments, const char *results) {
    berth_tensor given[EVAL_MAX_OPERANDS], wanted[EVAL_MAX_OPERANDS], got[EVAL_MAX_OPERANDS];
    uint32_t given_count = eval_tensors(c, arguments, given);
    uint32_t count = eval_tensors(c, results, wanted);
    berth_status status =
        berth_eval_function(c->module, c->main, given, given_count, got, count, c->arena);
    cr_assert_null(status, "%s", berth_status_message(status));
    for (uint32_t i = 0; i < count; ++i) eval_expect(c, &got[i], &wanted[i], 1e-6, results);
}

// @square(x) = x * x
static berth_func_id make_square(eval_case *c) {
    berth_func_id square = berth_graph_create(c->module, "square", 0);
    berth_value_id x = param(c, square);
    berth_value_id y =
        berth_graph_op1(c->module, square, BERTH_OP_MUL, (berth_value_id[]){x, x}, 2, 0);
    berth_graph_set_results(c->module, square, &y, 1);
    return square;
}

Test(eval_function, calls_references_and_tuples) {
    eval_case c = eval_begin();
    berth_func_id square = make_square(&c);
    berth_value_id x = param(&c, c.main);
    berth_op_id call = add(&c, c.main, 0, BERTH_OP_CALL, &x, 1, 1);
    set_callee(&c, c.main, call, square);
    berth_op_id reference = add(&c, c.main, 0, BERTH_OP_FUNC_REF, NULL, 0, 1);
    set_callee(&c, c.main, reference, square);
    berth_value_id pair[] = {out(&c, c.main, reference, 0), out(&c, c.main, call, 0)};
    berth_op_id tuple = add(&c, c.main, 0, BERTH_OP_TUPLE, pair, 2, 1);
    berth_value_id held = out(&c, c.main, tuple, 0), fields[2];
    for (int64_t i = 0; i < 2; ++i) {
        berth_op_id get = add(&c, c.main, 0, BERTH_OP_TUPLE_GET, &held, 1, 1);
        berth_attrs_set_int(c.module, &berth_graph_get(c.module, c.main)->ops.data[get].attrs,
                            "index", i);
        fields[i] = out(&c, c.main, get, 0);
    }
    berth_op_id again = add(&c, c.main, 0, BERTH_OP_CALL_VALUE, fields, 2, 1);
    berth_value_id y = out(&c, c.main, again, 0);
    berth_op_id moved = add(&c, c.main, 0, BERTH_OP_DEVICE_COPY, &y, 1, 1);
    berth_value_id z = out(&c, c.main, moved, 0);
    berth_graph_set_results(c.module, c.main, &z, 1);
    expect_run(&c, "f32[2] 2 3", "f32[2] 16 81");
    eval_end(&c);
}

Test(eval_function, endless_recursion_is_an_error) {
    eval_case c = eval_begin();
    berth_value_id x = param(&c, c.main);
    berth_op_id call = add(&c, c.main, 0, BERTH_OP_CALL, &x, 1, 1);
    set_callee(&c, c.main, call, c.main);
    berth_value_id y = out(&c, c.main, call, 0);
    berth_graph_set_results(c.module, c.main, &y, 1);
    berth_tensor given = eval_tensor(&c, "f32[] 1"), got;
    berth_status status = berth_eval_function(c.module, c.main, &given, 1, &got, 1, c.arena);
    cr_assert_eq(berth_status_code(status), BERTH_UNSUPPORTED);
    berth_status_free(status);
    eval_end(&c);
}

// if c then x + 1 else -x; both branches see x of the region around them.
Test(eval_function, if_runs_one_branch) {
    eval_case c = eval_begin();
    berth_value_id condition = param(&c, c.main), x = param(&c, c.main);
    berth_op_id branch = add(&c, c.main, 0, BERTH_OP_IF, &condition, 1, 1);
    berth_region_id yes = berth_graph_add_region(c.module, c.main, branch);
    berth_region_id no = berth_graph_add_region(c.module, c.main, branch);
    berth_value_id sides[] = {x, number(&c, c.main, yes, "f32[] 1")};
    berth_value_id sum = out(&c, c.main, add(&c, c.main, yes, BERTH_OP_ADD, sides, 2, 1), 0);
    berth_value_id negative = out(&c, c.main, add(&c, c.main, no, BERTH_OP_NEG, &x, 1, 1), 0);
    berth_graph_set_region_results(c.module, c.main, yes, &sum, 1);
    berth_graph_set_region_results(c.module, c.main, no, &negative, 1);
    berth_value_id y = out(&c, c.main, branch, 0);
    berth_graph_set_results(c.module, c.main, &y, 1);
    expect_run(&c, "bool[] 1; f32[1] 5", "f32[1] 6");
    expect_run(&c, "bool[1] 0; f32[1] 5", "f32[1] -5");
    eval_end(&c);
}

// Fibonacci numbers up to a limit: carried a, b; scan output a; continues while b < limit.
static void make_fibonacci(eval_case *c, bool with_count) {
    berth_value_id count = param(c, c->main), limit = param(c, c->main);
    berth_value_id operands[] = {with_count ? count : BERTH_NONE, number(c, c->main, 0, "bool[] 1"),
                                 number(c, c->main, 0, "i64[] 0"),
                                 number(c, c->main, 0, "i64[] 1")};
    berth_op_id loop = add(c, c->main, 0, BERTH_OP_LOOP, operands, 4, 3);
    berth_region_id body = berth_graph_add_region(c->module, c->main, loop);
    berth_type_id type = berth_type_tensor(c->module, BERTH_DTYPE_I64, 0, NULL);
    berth_value_id in[4];
    for (int i = 0; i < 4; ++i)
        in[i] = berth_graph_add_region_param(c->module, c->main, body, "p", i == 1 ? 0 : type);
    berth_value_id next = out(c, c->main, add(c, c->main, body, BERTH_OP_ADD, &in[2], 2, 1), 0);
    berth_value_id sides[] = {next, limit};
    berth_value_id go_on = out(c, c->main, add(c, c->main, body, BERTH_OP_LESS, sides, 2, 1), 0);
    berth_value_id results[] = {go_on, in[3], next, in[2]};
    berth_graph_set_region_results(c->module, c->main, body, results, 4);
    berth_value_id ends[] = {out(c, c->main, loop, 0), out(c, c->main, loop, 1),
                             out(c, c->main, loop, 2)};
    berth_graph_set_results(c->module, c->main, ends, 3);
}

Test(eval_function, loop_carries_and_scans) {
    eval_case c = eval_begin();
    make_fibonacci(&c, true);
    expect_run(&c, "i64[] 4; i64[] 1000", "i64[] 3; i64[] 5; i64[4] 0 1 1 2");
    expect_run(&c, "i64[] 100; i64[] 5", "i64[] 3; i64[] 5; i64[4] 0 1 1 2");
    expect_run(&c, "i64[] 0; i64[] 5", "i64[] 0; i64[] 1; i64[0]");
    eval_end(&c);
}

Test(eval_function, loop_without_count) {
    eval_case c = eval_begin();
    make_fibonacci(&c, false);
    expect_run(&c, "i64[] 0; i64[] 9", "i64[] 8; i64[] 13; i64[6] 0 1 1 2 3 5");
    eval_end(&c);
}

Test(eval_function, wrong_counts_are_errors) {
    eval_case c = eval_begin();
    berth_value_id x = param(&c, c.main);
    berth_graph_set_results(c.module, c.main, &x, 1);
    berth_tensor got[2];
    berth_status status = berth_eval_function(c.module, c.main, NULL, 0, got, 1, c.arena);
    cr_assert_eq(berth_status_code(status), BERTH_INVALID_ARGUMENT);
    berth_status_free(status);
    eval_end(&c);
}
