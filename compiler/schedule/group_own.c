#include "compiler/schedule/group_own.h"

#define MOST_STORES 16

static bool is_moved_by(const berth_tfn *fn, const berth_nest *loops, berth_expr id) {
    for (int l = 0; l < loops->count; ++l)
        if (berth_tfn_uses_var(fn, id, loops->loops[l].var)) return true;
    return false;
}

static bool counts(const berth_tfn *fn, const berth_nest *loops, berth_expr index, berth_var var) {
    const berth_expr_node *node = &fn->exprs.data[index];
    if (node->kind == BERTH_EXPR_VAR) return node->var == var;
    if (node->kind != BERTH_EXPR_BINARY || node->op != BERTH_BINARY_ADD) return false;
    return (counts(fn, loops, node->a, var) && !is_moved_by(fn, loops, node->b)) ||
           (counts(fn, loops, node->b, var) && !is_moved_by(fn, loops, node->a));
}

bool berth_group_own__is_own_element(const berth_tfn *fn, const berth_nest *loops,
                                     berth_stmt store) {
    const berth_stmt_node *node = &fn->stmts.data[store];
    const berth_expr *indices = berth_tfn_store_indices(fn, store);
    for (int l = 0; l < loops->count; ++l) {
        bool found = loops->loops[l].extent == 1;
        for (uint32_t i = 0; i < node->index_count && !found; ++i)
            found = counts(fn, loops, indices[i], loops->loops[l].var);
        if (!found) return false;
    }
    return true;
}

typedef struct own_query {
    berth_tfn *fn;
    const berth_nest *loops;
    berth_stmt stores[MOST_STORES];  // to what the body does not allocate
    int store_count;
    bool *is_private;  // by buffer
    bool elsewhere;    // something that is written is read at another place
} own_query;

static bool same_place(const berth_tfn *fn, berth_stmt store, const berth_expr *indices,
                       uint32_t count) {
    bool same = fn->stmts.data[store].index_count == count;
    for (uint32_t i = 0; same && i < count; ++i)
        same = berth_tfn_expr_equal(fn, berth_tfn_store_indices(fn, store)[i], indices[i]);
    return same;
}

static bool note_store(own_query *q, berth_stmt stmt) {
    const berth_stmt_node node = q->fn->stmts.data[stmt];
    if (q->is_private[node.buf]) return true;
    if (q->store_count == MOST_STORES || node.index_count == 0 ||
        !berth_group_own__is_own_element(q->fn, q->loops, stmt))
        return false;
    for (int i = 0; i < q->store_count; ++i)
        if (q->fn->stmts.data[q->stores[i]].buf == node.buf &&
            !same_place(q->fn, q->stores[i], berth_tfn_store_indices(q->fn, stmt),
                        node.index_count))
            return false;
    q->stores[q->store_count++] = stmt;
    return true;
}

static berth_expr note_load(berth_tfn *fn, berth_expr load, void *user) {
    own_query *q = user;
    const berth_expr_node node = fn->exprs.data[load];
    for (int i = 0; i < q->store_count; ++i)
        if (fn->stmts.data[q->stores[i]].buf == node.load.buf)
            q->elsewhere |=
                !same_place(fn, q->stores[i], berth_tfn_load_indices(fn, load), node.index_count);
    return 0;
}

// `loads`: looks at what is read; else at what is written.
static bool walk(own_query *q, berth_stmt stmt, bool loads) {
    const berth_stmt_node node = q->fn->stmts.data[stmt];
    if (stmt == 0) return true;
    if (loads && node.value) berth_replace_loads(q->fn, node.value, note_load, q);
    switch (node.kind) {
    case BERTH_STMT_SEQ:
        for (uint32_t i = 0; i < node.count; ++i)
            if (!walk(q, q->fn->lists.data[node.first + i], loads)) return false;
        return true;
    case BERTH_STMT_FOR: return node.loop_kind == BERTH_LOOP_SERIAL && walk(q, node.body, loads);
    case BERTH_STMT_IF: return walk(q, node.body, loads) && walk(q, node.other, loads);
    case BERTH_STMT_ALLOC: q->is_private[node.buf] = true; return true;
    case BERTH_STMT_LET: return true;
    case BERTH_STMT_STORE:
        for (uint32_t i = 0; loads && i < node.index_count; ++i)
            berth_replace_loads(q->fn, berth_tfn_store_indices(q->fn, stmt)[i], note_load, q);
        return loads || note_store(q, stmt);
    default: return false;
    }
}

bool berth_group_own__is_independent(berth_tfn *fn, const berth_nest *loops) {
    own_query q = {.fn = fn, .loops = loops};
    q.is_private = berth_arena_new_array(fn->module->arena, bool, fn->bufs.count + 1);
    return walk(&q, loops->body, false) && walk(&q, loops->body, true) && !q.elsewhere;
}
