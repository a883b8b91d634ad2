// The iterations of a loop between the borders: those in which comparisons of indices hold (padding), or in which no
// index is cut off (repeated and mirrored borders) or begins again (rows that go on with their first elements).
#include "compiler/lower/tfn_simplify.h"
#include "compiler/schedule/policy_cpu.h"

static int64_t ceil_div(int64_t a, int64_t b) {
    return a / b + (a % b > 0);
}

// Narrows [low, high] to the iterations of `var` in which the comparisons of indices in `id` hold
// (a conjunction; what is not understood narrows nothing).
static void narrow(berth_tfn *fn, const berth_ranges *ranges, berth_expr id, berth_var var,
                   int64_t *low, int64_t *high) {
    const berth_expr_node node = fn->exprs.data[id];
    if (node.kind != BERTH_EXPR_BINARY) return;
    if (node.op == BERTH_BINARY_AND) {
        narrow(fn, ranges, node.a, var, low, high);
        narrow(fn, ranges, node.b, var, low, high);
        return;
    }
    if ((node.op != BERTH_BINARY_GE && node.op != BERTH_BINARY_LT) ||
        !fn->exprs.data[node.a].is_index)
        return;
    berth_expr difference = berth_tfn_binary(fn, BERTH_BINARY_SUB, node.a, node.b);
    berth_linear form = berth_linear_of(fn, ranges, difference);
    bool linear = false;
    int64_t step = berth_linear_stride(fn, &form, var, &linear);
    if (!linear || step <= 0) return;
    berth_linear rest = {.constant = form.constant};
    for (int i = 0; i < form.count; ++i) {
        const berth_expr_node *atom = &fn->exprs.data[form.terms[i].atom];
        if (atom->kind != BERTH_EXPR_VAR || atom->var != var)
            rest.terms[rest.count++] = form.terms[i];
    }
    berth_range range = berth_linear_range(fn, ranges, &rest);
    if (node.op == BERTH_BINARY_GE) {  // step * v + rest >= 0
        int64_t first = ceil_div(-range.low, step);
        if (first > *low) *low = first;
    } else {  // step * v + rest < 0
        int64_t past = ceil_div(-range.high, step);
        if (past - 1 < *high) *high = past - 1;
    }
}

// Conditions of the selects of a value.
void berth_cpu__narrow(berth_tfn *fn, const berth_ranges *ranges, berth_expr id, berth_var var,
                       int64_t *low, int64_t *high) {
    const berth_expr_node node = fn->exprs.data[id];
    if (!id || node.kind == BERTH_EXPR_INT || node.kind == BERTH_EXPR_FLOAT ||
        node.kind == BERTH_EXPR_VAR || node.kind == BERTH_EXPR_LOAD)
        return;
    if (node.kind == BERTH_EXPR_SELECT) narrow(fn, ranges, node.a, var, low, high);
    berth_cpu__narrow(fn, ranges, node.b, var, low, high);
    if (node.kind != BERTH_EXPR_SELECT) berth_cpu__narrow(fn, ranges, node.a, var, low, high);
    berth_cpu__narrow(fn, ranges, node.c, var, low, high);
}

// ---- indices that are cut off at the borders
// -----------------------------------------------------------------------------------------

static bool is_clamp(const berth_expr_node *node) {
    return node->kind == BERTH_EXPR_BINARY && node->is_index &&
           (node->op == BERTH_BINARY_MIN || node->op == BERTH_BINARY_MAX);
}

static bool is_remainder(const berth_expr_node *node) {
    return node->kind == BERTH_EXPR_BINARY && node->is_index && node->op == BERTH_BINARY_MOD;
}

// Whether an index of such a kind moves with `var`.
static bool used_in(const berth_tfn *fn, bool (*is_wanted)(const berth_expr_node *), berth_expr id,
                    berth_var var, int depth) {
    const berth_expr_node *node = &fn->exprs.data[id];
    if (!id || depth > 64 || node->kind == BERTH_EXPR_INT || node->kind == BERTH_EXPR_FLOAT ||
        node->kind == BERTH_EXPR_VAR)
        return false;
    if (is_wanted(node)) return berth_tfn_uses_var(fn, id, var);
    if (node->kind == BERTH_EXPR_LOAD) {
        for (int i = 0; i < node->index_count; ++i)
            if (used_in(fn, is_wanted, berth_tfn_load_indices(fn, id)[i], var, depth + 1))
                return true;
        return false;
    }
    return used_in(fn, is_wanted, node->a, var, depth + 1) ||
           used_in(fn, is_wanted, node->b, var, depth + 1) ||
           used_in(fn, is_wanted, node->c, var, depth + 1);
}

bool berth_cpu__used_in_clamps(const berth_tfn *fn, berth_expr id, berth_var var) {
    return used_in(fn, is_clamp, id, var, 0);
}

// The larger part of [low, high] in which `difference` keeps its sign.
static void narrow_to_sign(berth_tfn *fn, const berth_ranges *ranges, berth_expr difference,
                           berth_var var, int64_t *low, int64_t *high) {
    berth_linear form = berth_linear_of(fn, ranges, difference);
    bool linear = false;
    int64_t step = berth_linear_stride(fn, &form, var, &linear);
    bool alone = form.count == 1;  // nothing else moves it
    if (!linear || step == 0 || !alone) return;
    // The first iteration with another sign: step * v + constant >= 0, or < 0 where it falls.
    int64_t at = step > 0 ? ceil_div(-form.constant, step) : ceil_div(form.constant + 1, -step);
    if (at <= *low || at > *high) return;
    if (at - *low > *high - at + 1)
        *high = at - 1;
    else
        *low = at;
}

// Whether an index is x % period and x grows by one with `var` alone, by *out_first at iteration 0, so that [low, high] has a
// few periods or parts of them.
static bool wraps(berth_tfn *fn, const berth_ranges *ranges, const berth_expr_node *node,
                  berth_var var, int64_t low, int64_t high, int64_t *out_first,
                  int64_t *out_period) {
    enum { most_parts = 3 };
    if (fn->any_size || !is_remainder(node) || !berth_tfn_const_value(fn, node->b, out_period) ||
        *out_period <= 1)
        return false;
    berth_linear form = berth_linear_of(fn, ranges, node->a);
    bool linear = false;
    if (form.count != 1 || berth_linear_stride(fn, &form, var, &linear) != 1 || !linear)
        return false;
    *out_first = form.constant;
    int64_t parts = berth_floor_div(high + form.constant, *out_period) -
                    berth_floor_div(low + form.constant, *out_period) + 1;
    return parts > 1 && parts <= most_parts;
}

// The largest part of [low, high] within a period.
static void narrow_to_period(int64_t first, int64_t period, int64_t *low, int64_t *high) {
    int64_t best[2] = {*low, *low - 1};
    for (int64_t at = *low; at <= *high;) {
        int64_t past = (berth_floor_div(at + first, period) + 1) * period - first;
        int64_t end = past - 1 < *high ? past - 1 : *high;
        if (end - at > best[1] - best[0]) {
            best[0] = at;
            best[1] = end;
        }
        at = past;
    }
    *low = best[0];
    *high = best[1];
}

static void narrow_clamps(berth_tfn *fn, const berth_ranges *ranges, berth_expr id, berth_var var,
                          int64_t *low, int64_t *high) {
    const berth_expr_node node = fn->exprs.data[id];
    if (!id || node.kind == BERTH_EXPR_INT || node.kind == BERTH_EXPR_FLOAT ||
        node.kind == BERTH_EXPR_VAR)
        return;
    if (node.kind == BERTH_EXPR_LOAD) {
        for (int i = 0; i < node.index_count; ++i)
            narrow_clamps(fn, ranges, berth_tfn_load_indices(fn, id)[i], var, low, high);
        return;
    }
    if (is_clamp(&node))
        narrow_to_sign(fn, ranges, berth_tfn_binary(fn, BERTH_BINARY_SUB, node.a, node.b), var, low,
                       high);
    int64_t first = 0;
    int64_t period = 0;
    if (wraps(fn, ranges, &node, var, *low, *high, &first, &period))
        narrow_to_period(first, period, low, high);
    narrow_clamps(fn, ranges, node.a, var, low, high);
    narrow_clamps(fn, ranges, node.b, var, low, high);
    narrow_clamps(fn, ranges, node.c, var, low, high);
}

// Narrows to iterations in which no index is cut off or begins again, one decision after the other: what is decided
// makes the next one simple.
void berth_cpu__narrow_indices(berth_tfn *fn, const berth_ranges *ranges, berth_expr value,
                               berth_var var, int64_t *low, int64_t *high) {
    if (!used_in(fn, is_clamp, value, var, 0) && !used_in(fn, is_remainder, value, var, 0)) return;
    for (int step = 0; step < 4; ++step) {
        int64_t before[2] = {*low, *high};
        berth_ranges inside = *ranges;
        berth_range *of_var =
            berth_arena_copy(fn->module->arena, ranges->of_var, ranges->count * sizeof(*of_var));
        if (var < ranges->count) of_var[var] = (berth_range){*low, *high};
        inside.of_var = of_var;
        narrow_clamps(fn, &inside, berth_tfn_simplify(fn, value, &inside), var, low, high);
        if (*low == before[0] && *high == before[1]) return;
    }
}
