// Functions of the elements of a row that several loops over the row need (the exponentials of a
// softmax: for their sum, and for the results) are computed by the first of them, and kept.
//
//   for i: acc += exp(x[i] - top); ...; for i: y[i] = exp(x[i] - top) * acc
//     ->  for i: { row[i] = exp(x[i] - top); acc += row[i] } ...; for i: y[i] = row[i] * acc
#include "compiler/schedule/policy_cpu.h"

enum { most_items = 32 };

typedef struct kept {
    berth_tfn *fn;
    berth_expr value;  // of an iteration of the first loop
    berth_var var;     // its variable
    int64_t extent;    // of its loop
    berth_buf row;     // BERTH_NONE: nothing has asked for it yet
} kept;

// The loop of an item of the sequence, if it holds only stores; its variable and extent.
static bool is_row_loop(const berth_tfn *fn, berth_stmt id, berth_var *out_var,
                        int64_t *out_extent) {
    const berth_stmt_node *node = &fn->stmts.data[id];
    if (node->kind != BERTH_STMT_FOR || !berth_tfn_const_value(fn, node->value, out_extent))
        return false;
    *out_var = node->var;
    const berth_stmt_node *body = &fn->stmts.data[node->body];
    if (body->kind == BERTH_STMT_STORE) return true;
    for (uint32_t i = 0; body->kind == BERTH_STMT_SEQ && i < body->count; ++i)
        if (fn->stmts.data[fn->lists.data[body->first + i]].kind != BERTH_STMT_STORE) return false;
    return body->kind == BERTH_STMT_SEQ;
}

static bool stores_to_operand(const berth_tfn *fn, berth_stmt id, berth_expr value) {
    const berth_stmt_node *node = &fn->stmts.data[id];
    if (!id) return false;
    if (node->kind == BERTH_STMT_STORE) return berth_cpu__reads(fn, value, node->buf);
    for (uint32_t i = 0; node->kind == BERTH_STMT_SEQ && i < node->count; ++i)
        if (stores_to_operand(fn, fn->lists.data[node->first + i], value)) return true;
    if (node->kind != BERTH_STMT_FOR && node->kind != BERTH_STMT_IF) return false;
    return stores_to_operand(fn, node->body, value) || stores_to_operand(fn, node->other, value);
}

// ---- where a value is -----------------------------------------------------------------------------------

// The first function of an element in a value that is computed whatever conditions say; 0: none.
static berth_expr find_function(const berth_tfn *fn, berth_expr id, berth_var var) {
    const berth_expr_node *node = &fn->exprs.data[id];
    if (!id || node->is_index || node->kind == BERTH_EXPR_INT || node->kind == BERTH_EXPR_FLOAT ||
        node->kind == BERTH_EXPR_VAR || node->kind == BERTH_EXPR_LOAD)
        return 0;
    if (node->kind == BERTH_EXPR_UNARY && berth_cpu__is_function((berth_unary)node->op))
        return node->dtype == BERTH_DTYPE_F32 && node->lanes == 1 && berth_tfn_uses_var(fn, id, var)
                   ? id
                   : 0;
    berth_expr found = find_function(fn, node->a, var);
    bool guards = node->kind == BERTH_EXPR_SELECT ||
                  (node->kind == BERTH_EXPR_BINARY &&
                   (node->op == BERTH_BINARY_AND || node->op == BERTH_BINARY_OR));
    if (!found && !guards) found = find_function(fn, node->b, var);
    return found || guards ? found : find_function(fn, node->c, var);
}

static berth_expr function_of_stores(const berth_tfn *fn, berth_stmt body, berth_var var) {
    const berth_stmt_node node = fn->stmts.data[body];
    if (node.kind == BERTH_STMT_STORE) return find_function(fn, node.value, var);
    berth_expr found = 0;
    for (uint32_t i = 0; i < node.count && !found; ++i)
        found = function_of_stores(fn, fn->lists.data[node.first + i], var);
    return found;
}

// Value `id` with the element of the row in place of what is kept.
static berth_expr with_row(kept *k, berth_expr id) {
    berth_tfn *fn = k->fn;
    const berth_expr_node node = fn->exprs.data[id];
    if (!id || node.is_index || node.kind == BERTH_EXPR_INT || node.kind == BERTH_EXPR_FLOAT ||
        node.kind == BERTH_EXPR_VAR || node.kind == BERTH_EXPR_LOAD)
        return id;
    if (node.kind == BERTH_EXPR_UNARY && berth_tfn_expr_equal(fn, id, k->value)) {
        berth_expr at = berth_tfn_var_ref(fn, k->var);
        if (k->row == BERTH_NONE)
            k->row =
                berth_tfn_buffer(fn, "row", BERTH_DTYPE_F32, 1, &k->extent, BERTH_SCOPE_PRIVATE);
        return berth_tfn_load(fn, k->row, &at, 1);
    }
    berth_expr a = with_row(k, node.a);
    berth_expr b = with_row(k, node.b);
    berth_expr c = with_row(k, node.c);
    return berth_tfn_rebuild(fn, id, a, b, c);
}

static berth_stmt stores_with_row(kept *k, berth_stmt id) {
    berth_tfn *fn = k->fn;
    const berth_stmt_node node = fn->stmts.data[id];
    if (node.kind == BERTH_STMT_STORE) {
        berth_expr indices[BERTH_MAX_RANK];
        berth_expr value = with_row(k, node.value);
        if (value == node.value) return id;
        for (int i = 0; i < node.index_count; ++i) indices[i] = berth_tfn_store_indices(fn, id)[i];
        return berth_tfn_store(fn, node.buf, indices, node.index_count, value);
    }
    berth_stmt items[most_items];
    bool changed = false;
    if (node.count > most_items) return id;
    for (uint32_t i = 0; i < node.count; ++i) {
        berth_stmt old = fn->lists.data[node.first + i];
        items[i] = stores_with_row(k, old);
        changed |= items[i] != old;
    }
    return changed ? berth_tfn_seq(fn, items, node.count) : id;
}

// ---- loops ----------------------------------------------------------------------------------------------

// A later loop over the row that reads what the first one keeps; the loop itself where it has no use
// for it.
static berth_stmt later_loop(kept *k, berth_stmt id) {
    berth_tfn *fn = k->fn;
    berth_var var = 0;
    int64_t own = 0;
    if (!is_row_loop(fn, id, &var, &own) || own != k->extent) return id;
    const berth_stmt_node loop = fn->stmts.data[id];
    berth_stmt body = berth_replace_var_stmt(fn, loop.body, var, berth_tfn_var_ref(fn, k->var));
    berth_stmt with = stores_with_row(k, body);
    if (with == body) return id;
    with = berth_replace_var_stmt(fn, with, k->var, berth_tfn_var_ref(fn, var));
    return berth_tfn_for(fn, var, loop.value, (berth_loop_kind)loop.loop_kind, with);
}

static berth_stmt first_loop(kept *k, berth_stmt id) {
    berth_tfn *fn = k->fn;
    const berth_stmt_node loop = fn->stmts.data[id];
    berth_expr at = berth_tfn_var_ref(fn, k->var);
    berth_stmt both[2] = {berth_tfn_store(fn, k->row, &at, 1, k->value),
                          stores_with_row(k, loop.body)};
    const berth_stmt_node rest = fn->stmts.data[both[1]];
    if (rest.kind != BERTH_STMT_SEQ)
        return berth_tfn_for(fn, loop.var, loop.value, (berth_loop_kind)loop.loop_kind,
                             berth_tfn_seq(fn, both, 2));
    berth_stmt items[most_items + 1] = {both[0]};
    for (uint32_t i = 0; i < rest.count; ++i) items[i + 1] = fn->lists.data[rest.first + i];
    return berth_tfn_for(fn, loop.var, loop.value, (berth_loop_kind)loop.loop_kind,
                         berth_tfn_seq(fn, items, rest.count + 1));
}

// Keeps what loop `at` of `items` computes for the loops after it; whether one of them wants it.
static bool keep_for_later(berth_tfn *fn, berth_stmt *items, uint32_t count, uint32_t at,
                           int64_t most_bytes) {
    kept k = {.fn = fn, .row = BERTH_NONE};
    if (!is_row_loop(fn, items[at], &k.var, &k.extent) || berth_tfn_loop_varies(fn, k.var) ||
        k.extent > most_bytes / (int64_t)sizeof(float))
        return false;
    const berth_stmt_node body = fn->stmts.data[fn->stmts.data[items[at]].body];
    k.value = function_of_stores(fn, fn->stmts.data[items[at]].body, k.var);
    if (!k.value || (body.kind == BERTH_STMT_SEQ && body.count > most_items) ||
        stores_to_operand(fn, items[at], k.value))
        return false;
    for (uint32_t i = at + 1; i < count && !stores_to_operand(fn, items[i], k.value); ++i)
        items[i] = later_loop(&k, items[i]);
    if (k.row == BERTH_NONE) return false;
    berth_stmt first[2] = {berth_tfn_alloc(fn, k.row), first_loop(&k, items[at])};
    items[at] = berth_tfn_seq(fn, first, 2);
    return true;
}

berth_stmt berth_cpu__keep_functions(berth_tfn *fn, berth_stmt body, const berth_cpu_facts *facts) {
    const berth_stmt_node node = fn->stmts.data[body];
    berth_stmt items[most_items];
    bool changed = false;
    if (node.kind != BERTH_STMT_SEQ || node.count > most_items) return body;
    for (uint32_t i = 0; i < node.count; ++i) items[i] = fn->lists.data[node.first + i];
    for (uint32_t i = 0; i + 1 < node.count; ++i)
        changed |= keep_for_later(fn, items, node.count, i, facts->l2_bytes / 4);
    return changed ? berth_tfn_seq(fn, items, node.count) : body;
}
