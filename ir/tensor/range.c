#include "ir/tensor/range.h"

static void collect(const berth_tfn *fn, berth_range *of_var, berth_stmt id) {
    if (!id) return;
    const berth_stmt_node *node = &fn->stmts.data[id];
    if (node->kind == BERTH_STMT_SEQ)
        for (uint32_t i = 0; i < node->count; ++i)
            collect(fn, of_var, fn->lists.data[node->first + i]);
    if (node->kind == BERTH_STMT_FOR) {
        int64_t extent = 0;
        berth_range *range = &of_var[node->var];
        if (!berth_tfn_const_value(fn, node->value, &extent))
            *range = (berth_range){0, BERTH_RANGE_UNKNOWN.high};
        else if (range->low != 0 || range->high < extent - 1)
            *range = (berth_range){0, extent > 0 ? extent - 1 : 0};
    }
    if (node->kind == BERTH_STMT_FOR || node->kind == BERTH_STMT_IF) {
        collect(fn, of_var, node->body);
        collect(fn, of_var, node->other);
    }
}

berth_ranges berth_ranges_collect_in(const berth_tfn *fn, berth_arena *arena) {
    berth_range *of_var = berth_arena_new_array(arena, berth_range, fn->vars.count + 1);
    for (uint32_t v = 0; v < fn->vars.count; ++v) of_var[v] = BERTH_RANGE_UNKNOWN;
    collect(fn, of_var, fn->body);
    return (berth_ranges){of_var, fn->vars.count};
}

berth_ranges berth_ranges_collect(const berth_tfn *fn) {
    return berth_ranges_collect_in(fn, fn->module->arena);
}

static int64_t clamp(__int128_t x) {
    if (x < BERTH_RANGE_UNKNOWN.low) return BERTH_RANGE_UNKNOWN.low;
    if (x > BERTH_RANGE_UNKNOWN.high) return BERTH_RANGE_UNKNOWN.high;
    return (int64_t)x;
}

bool berth_range_is_known(berth_range r) {
    return r.low > BERTH_RANGE_UNKNOWN.low && r.high < BERTH_RANGE_UNKNOWN.high;
}

berth_range berth_range_scale(berth_range r, int64_t k) {
    int64_t a = clamp((__int128_t)r.low * k);
    int64_t b = clamp((__int128_t)r.high * k);
    return a < b ? (berth_range){a, b} : (berth_range){b, a};
}

// An end that is unknown stays so.
berth_range berth_range_add(berth_range a, berth_range b) {
    bool low = a.low > BERTH_RANGE_UNKNOWN.low && b.low > BERTH_RANGE_UNKNOWN.low;
    bool high = a.high < BERTH_RANGE_UNKNOWN.high && b.high < BERTH_RANGE_UNKNOWN.high;
    return (berth_range){low ? clamp((__int128_t)a.low + b.low) : BERTH_RANGE_UNKNOWN.low,
                         high ? clamp((__int128_t)a.high + b.high) : BERTH_RANGE_UNKNOWN.high};
}

static berth_range quotient(berth_range a, int64_t k) {
    return (berth_range){a.low > BERTH_RANGE_UNKNOWN.low ? berth_floor_div(a.low, k) : a.low,
                         a.high < BERTH_RANGE_UNKNOWN.high ? berth_floor_div(a.high, k) : a.high};
}

static berth_range range_binary(const berth_tfn *fn, const berth_expr_node *node, berth_range a,
                                berth_range b) {
    int64_t k = 0;
    bool constant = berth_tfn_const_value(fn, node->b, &k);
    switch ((berth_binary)node->op) {
    case BERTH_BINARY_ADD: return berth_range_add(a, b);
    case BERTH_BINARY_SUB: return berth_range_add(a, berth_range_scale(b, -1));
    case BERTH_BINARY_MUL:
        if (constant) return berth_range_scale(a, k);
        if (berth_tfn_const_value(fn, node->a, &k)) return berth_range_scale(b, k);
        if (a.low >= 0 && b.low >= 0) return (berth_range){0, clamp((__int128_t)a.high * b.high)};
        return BERTH_RANGE_UNKNOWN;
    case BERTH_BINARY_DIV:
        if (constant && k > 0) return quotient(a, k);
        return BERTH_RANGE_UNKNOWN;
    case BERTH_BINARY_MOD:
        if (!constant || k <= 0) return BERTH_RANGE_UNKNOWN;
        return a.low >= 0 && a.high < k ? a : (berth_range){0, k - 1};
    case BERTH_BINARY_MIN:
        return (berth_range){a.low < b.low ? a.low : b.low, a.high < b.high ? a.high : b.high};
    case BERTH_BINARY_MAX:
        return (berth_range){a.low > b.low ? a.low : b.low, a.high > b.high ? a.high : b.high};
    default: return BERTH_RANGE_UNKNOWN;
    }
}

berth_range berth_range_of(const berth_tfn *fn, const berth_ranges *ranges, berth_expr id) {
    const berth_expr_node *node = &fn->exprs.data[id];
    switch ((berth_expr_kind)node->kind) {
    case BERTH_EXPR_INT: return (berth_range){node->i, node->i};
    case BERTH_EXPR_VAR:
        return node->var < ranges->count ? ranges->of_var[node->var] : BERTH_RANGE_UNKNOWN;
    case BERTH_EXPR_UNARY:
        if (node->op == BERTH_UNARY_NEG)
            return berth_range_scale(berth_range_of(fn, ranges, node->a), -1);
        return BERTH_RANGE_UNKNOWN;
    case BERTH_EXPR_BINARY:
        if (!node->is_index) return BERTH_RANGE_UNKNOWN;
        return range_binary(fn, node, berth_range_of(fn, ranges, node->a),
                            berth_range_of(fn, ranges, node->b));
    case BERTH_EXPR_SELECT: {
        berth_range a = berth_range_of(fn, ranges, node->b);
        berth_range b = berth_range_of(fn, ranges, node->c);
        return (berth_range){a.low < b.low ? a.low : b.low, a.high > b.high ? a.high : b.high};
    }
    case BERTH_EXPR_RAMP: {
        berth_range a = berth_range_of(fn, ranges, node->a);
        return berth_range_add(a, (berth_range){0, node->lanes - 1});
    }
    case BERTH_EXPR_BROADCAST: return berth_range_of(fn, ranges, node->a);
    default: return BERTH_RANGE_UNKNOWN;
    }
}
