// Linear forms of index expressions have the values of the expressions.
#include <criterion/criterion.h>

#include "compiler/schedule/linear.h"
#include "tests/schedule/support.h"

enum { variables = 3 };

static int64_t floor_div(int64_t a, int64_t b) {
    return a / b - (a % b != 0 && (a ^ b) < 0);
}

static int64_t value_of(const berth_tfn *fn, berth_expr id, const int64_t *vars) {
    const berth_expr_node *node = &fn->exprs.data[id];
    if (node->kind == BERTH_EXPR_INT) return node->i;
    if (node->kind == BERTH_EXPR_VAR) return vars[node->var];
    int64_t a = value_of(fn, node->a, vars);
    int64_t b = value_of(fn, node->b, vars);
    switch ((berth_binary)node->op) {
    case BERTH_BINARY_ADD: return a + b;
    case BERTH_BINARY_SUB: return a - b;
    case BERTH_BINARY_MUL: return a * b;
    case BERTH_BINARY_DIV: return floor_div(a, b);
    case BERTH_BINARY_MOD: return a - floor_div(a, b) * b;
    default: cr_assert_fail("operator %d", node->op);
    }
    return 0;
}

static uint64_t next(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

// Sums of variables, now and then divided, as layouts divide indices.
static berth_expr random_index(berth_tfn *fn, uint64_t *state, int depth) {
    static const int64_t factors[] = {1, 2, 3, 4, 6, 8, 16};
    berth_expr sum = berth_tfn_index(fn, (int64_t)(next(state) % 9));
    for (berth_var v = 0; v < variables; ++v) {
        berth_expr scale = berth_tfn_index(fn, factors[next(state) % 7]);
        berth_expr term = berth_tfn_binary(fn, BERTH_BINARY_MUL, berth_tfn_var_ref(fn, v), scale);
        if (next(state) % 4) sum = berth_tfn_binary(fn, BERTH_BINARY_ADD, sum, term);
    }
    if (depth == 0) return sum;
    berth_binary op = next(state) % 2 ? BERTH_BINARY_DIV : BERTH_BINARY_MOD;
    berth_expr inner = random_index(fn, state, depth - 1);
    inner = berth_tfn_binary(fn, op, inner, berth_tfn_index(fn, factors[1 + next(state) % 6]));
    return berth_tfn_binary(fn, BERTH_BINARY_ADD, sum, inner);
}

Test(linear, forms_have_the_values_of_expressions) {
    bench_case c = support_case_create();
    const int64_t extents[variables] = {4, 2, 5};
    berth_range of_var[variables];
    for (int v = 0; v < variables; ++v) {
        berth_tfn_var(c.fn, "v");
        of_var[v] = (berth_range){0, extents[v] - 1};
    }
    berth_ranges ranges = {of_var, variables};
    uint64_t state = 1;
    for (int i = 0; i < 3000; ++i) {
        berth_expr index = random_index(c.fn, &state, i % 4);
        berth_linear form = berth_linear_of(c.fn, &ranges, index);
        berth_expr again = berth_linear_expr(c.fn, &form);
        berth_range range = berth_linear_range(c.fn, &ranges, &form);
        int64_t v[variables];
        for (v[0] = 0; v[0] < extents[0]; ++v[0])
            for (v[1] = 0; v[1] < extents[1]; ++v[1])
                for (v[2] = 0; v[2] < extents[2]; ++v[2]) {
                    int64_t expected = value_of(c.fn, index, v);
                    cr_assert_eq(value_of(c.fn, again, v), expected, "expression %d", i);
                    cr_assert(expected >= range.low && expected <= range.high, "expression %d", i);
                }
    }
    support_case_destroy(&c);
}

// Blocks inside blocks: what a loop over whole inner blocks counts.
Test(linear, inner_blocks_come_out_of_outer_ones) {
    bench_case c = support_case_create();
    berth_expr o = berth_tfn_var_ref(c.fn, berth_tfn_var(c.fn, "o"));
    berth_expr i = berth_tfn_var_ref(c.fn, berth_tfn_var(c.fn, "i"));
    const berth_range of_var[] = {{0, 7}, {0, 3}};
    berth_ranges ranges = {of_var, 2};
    berth_expr k = berth_tfn_binary(c.fn, BERTH_BINARY_MUL, o, berth_tfn_index(c.fn, 4));
    k = berth_tfn_binary(c.fn, BERTH_BINARY_ADD, k, i);  // o * 4 + i
    bool linear = false;
    berth_expr over = berth_tfn_binary(c.fn, BERTH_BINARY_DIV, k, berth_tfn_index(c.fn, 8));
    berth_linear form = berth_linear_of(c.fn, &ranges, over);
    cr_expect_eq(berth_linear_stride(c.fn, &form, 1, &linear), 0);
    cr_expect(linear);
    berth_expr modulo = berth_tfn_binary(c.fn, BERTH_BINARY_MOD, k, berth_tfn_index(c.fn, 8));
    form = berth_linear_of(c.fn, &ranges, modulo);
    cr_expect_eq(berth_linear_stride(c.fn, &form, 1, &linear), 1);
    cr_expect(linear);
    support_case_destroy(&c);
}

// The digits of a number (places that data gives, taken apart and put together again).
Test(linear, digits_come_together) {
    bench_case c = support_case_create();
    berth_var v = berth_tfn_var(c.fn, "v");
    berth_expr all = berth_tfn_var_ref(c.fn, v);
    const berth_range of_var[] = {{0, 6 * 28 * 56 - 1}};
    berth_ranges ranges = {of_var, 1};
    berth_expr rows = berth_tfn_binary(c.fn, BERTH_BINARY_DIV, all, berth_tfn_index(c.fn, 56));
    berth_expr row = berth_tfn_binary(c.fn, BERTH_BINARY_MOD, rows, berth_tfn_index(c.fn, 28));
    berth_expr column = berth_tfn_binary(c.fn, BERTH_BINARY_MOD, all, berth_tfn_index(c.fn, 56));
    for (int64_t by = 28 * 56 - 1; by <= 28 * 56; ++by) {
        berth_expr plane = berth_tfn_binary(c.fn, BERTH_BINARY_DIV, all, berth_tfn_index(c.fn, by));
        berth_expr parts[3] = {plane, row, column};
        const int64_t scales[3] = {28 * 56, 56, 1};
        berth_expr sum = berth_tfn_index(c.fn, 5);
        for (int i = 0; i < 3; ++i) {
            berth_expr scaled = berth_tfn_binary(c.fn, BERTH_BINARY_MUL, parts[i],
                                                 berth_tfn_index(c.fn, scales[i]));
            sum = berth_tfn_binary(c.fn, BERTH_BINARY_ADD, sum, scaled);
        }
        berth_linear form = berth_linear_of(c.fn, &ranges, sum);
        cr_expect_eq(form.count, by == 28 * 56 ? 1 : 3, "%d parts", form.count);
        cr_expect_eq(form.constant, 5);
        berth_expr again = berth_linear_expr(c.fn, &form);
        for (int64_t i = 0; i < 6 * 28 * 56; i += 13)
            cr_assert_eq(value_of(c.fn, again, &i), value_of(c.fn, sum, &i), "of %d", (int)i);
    }
    support_case_destroy(&c);
}
