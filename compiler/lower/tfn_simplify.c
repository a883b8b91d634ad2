#include "compiler/lower/tfn_simplify.h"

// Memo by expression id: shared nodes stay shared.
typedef struct simplifier {
    berth_tfn *fn;
    const berth_ranges *ranges;
    berth_expr *done;
    uint32_t done_count;
} simplifier;

static berth_expr simplify(simplifier *s, berth_expr id);

static bool is_arithmetic(const berth_expr_node *node) {
    return node->kind == BERTH_EXPR_BINARY && node->is_index && node->op <= BERTH_BINARY_MOD;
}

// Simplifies what is not linear below an index expression, keeping the arithmetic as it is.
static berth_expr simplify_atoms(simplifier *s, berth_expr id) {
    berth_expr_node node = s->fn->exprs.data[id];
    if (!is_arithmetic(&node)) return simplify(s, id);
    berth_expr a = simplify_atoms(s, node.a);
    berth_expr b = simplify_atoms(s, node.b);
    if (a == node.a && b == node.b) return id;
    return berth_tfn_binary(s->fn, (berth_binary)node.op, a, b);
}

// Range of a - b, with common terms cancelled.
static berth_range difference(simplifier *s, berth_expr a, berth_expr b) {
    berth_expr minus = berth_tfn_binary(s->fn, BERTH_BINARY_SUB, a, b);
    berth_linear form = berth_linear_of(s->fn, s->ranges, minus);
    return berth_linear_range(s->fn, s->ranges, &form);
}

// -1: always false, 1: always true, 0: not known.
static int decide(berth_binary op, berth_range d) {
    switch (op) {
    case BERTH_BINARY_LT: return d.high < 0 ? 1 : d.low >= 0 ? -1 : 0;
    case BERTH_BINARY_LE: return d.high <= 0 ? 1 : d.low > 0 ? -1 : 0;
    case BERTH_BINARY_GT: return d.low > 0 ? 1 : d.high <= 0 ? -1 : 0;
    case BERTH_BINARY_GE: return d.low >= 0 ? 1 : d.high < 0 ? -1 : 0;
    case BERTH_BINARY_EQ: return d.low == 0 && d.high == 0 ? 1 : d.low > 0 || d.high < 0 ? -1 : 0;
    case BERTH_BINARY_NE: return d.low > 0 || d.high < 0 ? 1 : d.low == 0 && d.high == 0 ? -1 : 0;
    default: return 0;
    }
}

static berth_expr simplify_binary(simplifier *s, berth_expr id, berth_expr_node node) {
    berth_tfn *fn = s->fn;
    bool of_indices =
        fn->exprs.data[node.a].is_index && fn->exprs.data[node.b].is_index && node.lanes == 1;
    if (of_indices && is_arithmetic(&node)) {
        berth_expr atoms = simplify_atoms(s, id);
        berth_linear form = berth_linear_of(fn, s->ranges, atoms);
        return berth_linear_expr(fn, &form);
    }
    berth_expr a = simplify(s, node.a);
    berth_expr b = simplify(s, node.b);
    if (of_indices) {
        berth_range d = difference(s, a, b);
        if (node.op == BERTH_BINARY_MIN && (d.high <= 0 || d.low >= 0)) return d.high <= 0 ? a : b;
        if (node.op == BERTH_BINARY_MAX && (d.high <= 0 || d.low >= 0)) return d.low >= 0 ? a : b;
        int known = decide((berth_binary)node.op, d);
        if (known) return berth_tfn_int(fn, BERTH_DTYPE_BOOL, known > 0);
    }
    if (a == node.a && b == node.b) return id;
    return berth_tfn_binary(fn, (berth_binary)node.op, a, b);
}

static berth_expr simplify_load(simplifier *s, berth_expr id, berth_expr_node node) {
    berth_expr indices[BERTH_MAX_RANK] = {0};
    bool changed = false;
    for (int i = 0; i < node.index_count; ++i) {
        berth_expr old = berth_tfn_load_indices(s->fn, id)[i];
        indices[i] = simplify(s, old);
        changed |= indices[i] != old;
    }
    return changed ? berth_tfn_load(s->fn, node.load.buf, indices, node.index_count) : id;
}

static berth_expr simplify_unary(simplifier *s, berth_expr id, berth_expr_node node) {
    berth_expr a = simplify(s, node.a);
    int64_t known = 0;
    if (node.op == BERTH_UNARY_NOT && node.lanes == 1 && berth_tfn_const_value(s->fn, a, &known))
        return berth_tfn_int(s->fn, BERTH_DTYPE_BOOL, !known);
    return a == node.a ? id : berth_tfn_unary(s->fn, (berth_unary)node.op, a);
}

static berth_expr simplify_select(simplifier *s, berth_expr id, berth_expr_node node) {
    berth_expr a = simplify(s, node.a);
    berth_expr b = simplify(s, node.b);
    berth_expr c = simplify(s, node.c);
    if (b == c && s->fn->exprs.data[a].lanes == s->fn->exprs.data[b].lanes) return b;
    if (a == node.a && b == node.b && c == node.c) return id;
    return berth_tfn_select(s->fn, a, b, c);
}

static berth_expr rebuild(simplifier *s, berth_expr id, berth_expr_node node) {
    berth_expr a = node.a ? simplify(s, node.a) : 0;
    berth_expr b = node.b ? simplify(s, node.b) : 0;
    berth_expr c = node.c ? simplify(s, node.c) : 0;
    return berth_tfn_rebuild(s->fn, id, a, b, c);
}

static berth_expr simplify(simplifier *s, berth_expr id) {
    if (id < s->done_count && s->done[id]) return s->done[id];
    berth_expr_node node = s->fn->exprs.data[id];
    berth_expr result = id;
    switch ((berth_expr_kind)node.kind) {
    case BERTH_EXPR_NONE:
    case BERTH_EXPR_INT:
    case BERTH_EXPR_FLOAT:
    case BERTH_EXPR_SYMBOL:
    case BERTH_EXPR_VAR: break;
    case BERTH_EXPR_LOAD: result = simplify_load(s, id, node); break;
    case BERTH_EXPR_UNARY: result = simplify_unary(s, id, node); break;
    case BERTH_EXPR_BINARY: result = simplify_binary(s, id, node); break;
    case BERTH_EXPR_SELECT: result = simplify_select(s, id, node); break;
    default: result = rebuild(s, id, node); break;
    }
    if (id < s->done_count) s->done[id] = result;
    return result;
}

static simplifier make_simplifier(berth_tfn *fn, const berth_ranges *ranges) {
    return (simplifier){.fn = fn,
                        .ranges = ranges,
                        .done =
                            berth_arena_new_array(fn->module->arena, berth_expr, fn->exprs.count),
                        .done_count = fn->exprs.count};
}

berth_expr berth_tfn_simplify(berth_tfn *fn, berth_expr id, const berth_ranges *ranges) {
    simplifier s = make_simplifier(fn, ranges);
    return simplify(&s, id);
}

static void simplify_if(simplifier *s, berth_stmt id);

static void simplify_stmt(simplifier *s, berth_stmt id) {
    if (!id) return;
    berth_stmt_node node = s->fn->stmts.data[id];
    for (uint32_t i = 0; node.kind == BERTH_STMT_STORE && i < node.index_count; ++i) {
        berth_expr index = simplify(s, s->fn->lists.data[node.first + i]);
        s->fn->lists.data[node.first + i] = index;
    }
    for (uint32_t i = 0; node.kind == BERTH_STMT_CALL && i < node.count; ++i)
        for (int d = 0; d < BERTH_MAX_RANK; ++d) {
            berth_expr start = s->fn->regions.data[node.first + i].starts[d];
            if (start) start = simplify(s, start);
            s->fn->regions.data[node.first + i].starts[d] = start;
        }
    if (node.value) {
        berth_expr value = simplify(s, node.value);
        s->fn->stmts.data[id].value = value;
    }
    for (uint32_t i = 0; node.kind == BERTH_STMT_SEQ && i < node.count; ++i)
        simplify_stmt(s, s->fn->lists.data[node.first + i]);
    if (node.kind == BERTH_STMT_IF) simplify_if(s, id);
    if (node.kind == BERTH_STMT_FOR) simplify_stmt(s, node.body);
}

static void simplify_if(simplifier *s, berth_stmt id) {
    berth_stmt_node node = s->fn->stmts.data[id];
    int64_t known = 0;
    if (!berth_tfn_const_value(s->fn, node.value, &known)) {
        simplify_stmt(s, node.body);
        simplify_stmt(s, node.other);
        return;
    }
    berth_stmt branch = known ? node.body : node.other;
    simplify_stmt(s, branch);
    s->fn->stmts.data[id] =
        branch ? s->fn->stmts.data[branch] : (berth_stmt_node){.kind = BERTH_STMT_SEQ, .count = 0};
}

void berth_tfn_simplify_body(berth_tfn *fn) {
    berth_ranges ranges = berth_ranges_collect(fn);
    simplifier s = make_simplifier(fn, &ranges);
    simplify_stmt(&s, fn->body);
}

// ---- operation count ----------------------------------------------------------------------------

typedef struct counter {
    const berth_tfn *fn;
    uint32_t *seen;  // statement that counted an expression last
} counter;

static double count_expr(counter *c, berth_expr id, berth_stmt within) {
    if (!id || c->seen[id] == within) return 0;
    c->seen[id] = within;
    const berth_expr_node *node = &c->fn->exprs.data[id];
    double count = 0;
    if (node->kind == BERTH_EXPR_LOAD)
        for (int i = 0; i < node->index_count; ++i)
            count += count_expr(c, berth_tfn_load_indices(c->fn, id)[i], within);
    if (node->kind < BERTH_EXPR_UNARY) return count;
    bool is_value = !node->is_index && node->dtype != BERTH_DTYPE_BOOL;
    if (is_value && (node->kind == BERTH_EXPR_UNARY || node->kind == BERTH_EXPR_BINARY))
        count += node->lanes;
    if (node->kind == BERTH_EXPR_FMA) count += 2.0 * node->lanes;
    return count + count_expr(c, node->a, within) + count_expr(c, node->b, within) +
           count_expr(c, node->c, within);
}

// External code says by an attribute what a call costs.
static double flops_of_callee(const berth_module *module, berth_func_id callee) {
    const berth_tfn *fn = berth_tfn_get(module, callee);
    if (fn) return fn->flops;
    return berth_attrs_float(module, &berth_module_function(module, callee)->attrs, "flops", 0);
}

static double count_stmt(counter *c, berth_stmt id) {
    if (!id) return 0;
    const berth_stmt_node *node = &c->fn->stmts.data[id];
    double count = 0;
    int64_t extent = 1;
    switch ((berth_stmt_kind)node->kind) {
    case BERTH_STMT_SEQ:
        for (uint32_t i = 0; i < node->count; ++i)
            count += count_stmt(c, c->fn->lists.data[node->first + i]);
        return count;
    case BERTH_STMT_FOR:
        if (!berth_tfn_const_value(c->fn, node->value, &extent)) extent = 1;
        return (double)extent * count_stmt(c, node->body);
    case BERTH_STMT_IF:
        return count_expr(c, node->value, id) + count_stmt(c, node->body) +
               count_stmt(c, node->other);
    case BERTH_STMT_STORE:
    case BERTH_STMT_LET: return count_expr(c, node->value, id);
    case BERTH_STMT_CALL: return flops_of_callee(c->fn->module, node->callee);
    default: return 0;
    }
}

double berth_tfn_count_flops(const berth_tfn *fn) {
    counter c = {fn, berth_arena_new_array(fn->module->arena, uint32_t, fn->exprs.count + 1)};
    return count_stmt(&c, fn->body);
}
