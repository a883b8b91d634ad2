// Structural equality of tensor functions: the same statements on the same expressions, with
// variables and buffers matched where they are brought into scope.
#include <string.h>

#include "ir/equal.h"
#include "ir/tensor/copies.h"
#include "ir/tensor/type.h"

typedef struct tfns {
    berth_equal *e;
    const berth_tfn *a;
    const berth_tfn *b;
    uint32_t *var_to_b;  // BERTH_NONE = not in scope
    uint32_t *buf_to_b;
    berth_expr *met;  // per expression of a: equal one of b, found last
} tfns;

static bool equal_bufs(tfns *t, berth_buf a, berth_buf b) {
    const berth_buf_info *x = &t->a->bufs.data[a];
    const berth_buf_info *y = &t->b->bufs.data[b];
    t->buf_to_b[a] = b;
    bool same = x->dtype == y->dtype && x->lanes == y->lanes && x->rank == y->rank &&
                x->scope == y->scope && x->role == y->role &&
                berth_equal_str(t->e, x->name, y->name) &&
                berth_equal_str(t->e, x->layout, y->layout) &&
                berth_equal_str(t->e, x->memory_scope, y->memory_scope);
    for (int i = 0; same && i < x->rank; ++i)
        same = berth_dim_is_symbol(x->dims[i]) && berth_dim_is_symbol(y->dims[i])
                   ? berth_equal_str(t->e, berth_dim_symbol_name(x->dims[i]),
                                     berth_dim_symbol_name(y->dims[i]))
                   : x->dims[i] == y->dims[i];
    return same ||
           berth_equal_differ(t->e, "buffer %u \"%s\"", a, berth_module_str(t->e->a, x->name));
}

static bool define_var(tfns *t, berth_var a, berth_var b) {
    const berth_var_info *x = &t->a->vars.data[a];
    const berth_var_info *y = &t->b->vars.data[b];
    t->var_to_b[a] = b;
    return (berth_equal_str(t->e, x->name, y->name) &&
            berth_tfn_type_equal(berth_tfn_type_of_var(t->a, a), berth_tfn_type_of_var(t->b, b))) ||
           berth_equal_differ(t->e, "variable %u \"%s\"", a, berth_module_str(t->e->a, x->name));
}

static bool equal_exprs(tfns *t, berth_expr a, berth_expr b);

static bool equal_indices(tfns *t, const berth_expr *a, const berth_expr *b, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i)
        if (!equal_exprs(t, a[i], b[i])) return false;
    return true;
}

static bool same_double(double a, double b) {
    return (a != a && b != b) || memcmp(&a, &b, sizeof(a)) == 0;
}

static bool equal_leaves(tfns *t, const berth_expr_node *x, const berth_expr_node *y) {
    switch ((berth_expr_kind)x->kind) {
    case BERTH_EXPR_INT: return x->i == y->i;
    case BERTH_EXPR_FLOAT: return same_double(x->f, y->f);
    case BERTH_EXPR_SYMBOL:
        return berth_equal_str(t->e, berth_dim_symbol_name(x->i), berth_dim_symbol_name(y->i));
    case BERTH_EXPR_VAR: return x->var < t->a->vars.count && t->var_to_b[x->var] == y->var;
    default: return true;
    }
}

// Every expression of a is compared once with each expression of b that it meets.
static bool equal_exprs(tfns *t, berth_expr a, berth_expr b) {
    if (a == 0 || b == 0) return a == b || berth_equal_differ(t->e, "a missing expression");
    const berth_expr_node *x = &t->a->exprs.data[a];
    const berth_expr_node *y = &t->b->exprs.data[b];
    bool leaf = x->kind == BERTH_EXPR_INT || x->kind == BERTH_EXPR_FLOAT ||
                x->kind == BERTH_EXPR_VAR || x->kind == BERTH_EXPR_SYMBOL;
    if (!leaf && t->met[a] == b) return true;
    bool same = x->kind == y->kind && x->dtype == y->dtype && x->is_index == y->is_index &&
                x->lanes == y->lanes && x->index_count == y->index_count && x->op == y->op &&
                equal_leaves(t, x, y);
    if (same && x->kind == BERTH_EXPR_LOAD)
        same = x->load.buf < t->a->bufs.count && t->buf_to_b[x->load.buf] == y->load.buf;
    if (!same) return berth_equal_differ(t->e, "expressions %u and %u", a, b);
    if (x->kind == BERTH_EXPR_LOAD) {
        same = equal_indices(t, berth_tfn_load_indices(t->a, a), berth_tfn_load_indices(t->b, b),
                             x->index_count);
    } else if (!leaf) {
        const berth_expr of_a[] = {x->a, x->b, x->c};
        const berth_expr of_b[] = {y->a, y->b, y->c};
        same = equal_indices(t, of_a, of_b, 3);
    }
    if (same) t->met[a] = b;
    return same;
}

static bool equal_stmts(tfns *t, berth_stmt a, berth_stmt b);

static bool equal_seqs(tfns *t, berth_stmt a, berth_stmt b) {
    const berth_stmt_node *x = &t->a->stmts.data[a];
    const berth_stmt_node *y = &t->b->stmts.data[b];
    if (x->count != y->count)
        return berth_equal_differ(t->e, "%u and %u statements in a sequence", x->count, y->count);
    for (uint32_t i = 0; i < x->count; ++i)
        if (!equal_stmts(t, berth_tfn_seq_items(t->a, a)[i], berth_tfn_seq_items(t->b, b)[i]))
            return false;
    return true;
}

// An empty sequence or none.
static bool is_empty(const berth_tfn *fn, berth_stmt id) {
    const berth_stmt_node *node = &fn->stmts.data[id];
    return id == 0 || (node->kind == BERTH_STMT_SEQ && node->count == 0);
}

static bool equal_calls(tfns *t, const berth_stmt_node *x, const berth_stmt_node *y) {
    if (x->count != y->count || !berth_equal_functions(t->e, x->callee, y->callee))
        return berth_equal_differ(t->e, "callees or numbers of arguments of calls");
    for (uint32_t i = 0; i < x->count; ++i) {
        const berth_tfn_region *p = &t->a->regions.data[x->first + i];
        const berth_tfn_region *q = &t->b->regions.data[y->first + i];
        if (p->buf >= t->a->bufs.count || t->buf_to_b[p->buf] != q->buf)
            return berth_equal_differ(t->e, "buffers of argument %u of calls", i);
        int rank = t->a->bufs.data[p->buf].rank;
        if (memcmp(p->extents, q->extents, (size_t)rank * sizeof(p->extents[0])) != 0)
            return berth_equal_differ(t->e, "extents of argument %u of calls", i);
        if (!equal_indices(t, p->starts, q->starts, (uint32_t)rank)) return false;
    }
    return true;
}

static bool equal_stmts(tfns *t, berth_stmt a, berth_stmt b) {
    const berth_stmt_node *x = &t->a->stmts.data[a];
    const berth_stmt_node *y = &t->b->stmts.data[b];
    if (is_empty(t->a, a) && is_empty(t->b, b)) return true;
    if (x->kind != y->kind || x->loop_kind != y->loop_kind || x->index_count != y->index_count)
        return berth_equal_differ(t->e, "kinds of statements %u and %u", a, b);
    switch ((berth_stmt_kind)x->kind) {
    case BERTH_STMT_SEQ: return equal_seqs(t, a, b);
    case BERTH_STMT_FOR:
        return equal_exprs(t, x->value, y->value) && define_var(t, x->var, y->var) &&
               equal_stmts(t, x->body, y->body);
    case BERTH_STMT_STORE:
        if (x->buf >= t->a->bufs.count || t->buf_to_b[x->buf] != y->buf)
            return berth_equal_differ(t->e, "buffers of stores %u and %u", a, b);
        return equal_indices(t, berth_tfn_store_indices(t->a, a), berth_tfn_store_indices(t->b, b),
                             x->index_count) &&
               equal_exprs(t, x->value, y->value);
    case BERTH_STMT_LET: return equal_exprs(t, x->value, y->value) && define_var(t, x->var, y->var);
    case BERTH_STMT_IF:
        return equal_exprs(t, x->value, y->value) && equal_stmts(t, x->body, y->body) &&
               equal_stmts(t, x->other, y->other);
    case BERTH_STMT_ALLOC: return equal_bufs(t, x->buf, y->buf);
    case BERTH_STMT_CALL: return equal_calls(t, x, y);
    case BERTH_STMT_BARRIER:
        return x->count == y->count ||
               berth_equal_differ(t->e, "pending copies of barriers %u and %u", a, b);
    default: return true;
    }
}

static uint32_t next_workspace(const berth_tfn *fn, uint32_t at) {
    while (at < fn->bufs.count && fn->bufs.data[at].scope != BERTH_SCOPE_WORKSPACE) at++;
    return at;
}

static bool equal_declared(tfns *t) {
    if (t->a->param_count != t->b->param_count)
        return berth_equal_differ(t->e, "numbers of parameters");
    for (uint32_t i = 0; i < t->a->param_count; ++i)
        if (!equal_bufs(t, i, i)) return false;
    uint32_t x = next_workspace(t->a, t->a->param_count);
    uint32_t y = next_workspace(t->b, t->b->param_count);
    while (x < t->a->bufs.count && y < t->b->bufs.count) {
        if (!equal_bufs(t, x, y)) return false;
        x = next_workspace(t->a, x + 1);
        y = next_workspace(t->b, y + 1);
    }
    return (x == t->a->bufs.count && y == t->b->bufs.count) ||
           berth_equal_differ(t->e, "numbers of workspace buffers");
}

bool berth_equal__tfns(berth_equal *e, berth_func_id a, berth_func_id b) {
    tfns t = {.e = e, .a = berth_tfn_get(e->a, a), .b = berth_tfn_get(e->b, b)};
    t.var_to_b = berth_arena_new_array(e->scratch, uint32_t, t.a->vars.count);
    t.buf_to_b = berth_arena_new_array(e->scratch, uint32_t, t.a->bufs.count);
    t.met = berth_arena_new_array(e->scratch, berth_expr, t.a->exprs.count);
    memset(t.var_to_b, 0xff, t.a->vars.count * sizeof(uint32_t));
    memset(t.buf_to_b, 0xff, t.a->bufs.count * sizeof(uint32_t));
    if (!same_double(t.a->flops, t.b->flops)) return berth_equal_differ(e, "flops");
    if (!berth_equal_locs(e, t.a->loc, t.b->loc))
        return berth_equal_differ(e, "location of the body");
    return equal_declared(&t) && equal_stmts(&t, t.a->body, t.b->body);
}
