// Choices by data that the innermost loop does not change (a mask of whole rows, the exponent of a power) are
// made once before it, and of loads under other choices those that stay the same are read before it: each loop
// is then one that C compilers make vectors of.
//
//   for j: y[i, j] = select(c[i], x[i, j], z[0])
//     ->  if c[i]: for j: y[i, j] = x[i, j]; else: for j: y[i, j] = z[0]
//   for j: y[i, j] = select(c[i, j], w[0], z[0])
//     ->  let a = w[0]; let b = z[0]; for j: y[i, j] = select(c[i, j], a, b)
#include "compiler/schedule/policy_cpu.h"

enum { most_sides = 8, most_choices = 3, most_depth = 64, least_iterations = 3 };

typedef struct asker {
    berth_tfn *fn;
    berth_ranges ranges;
    berth_var var;  // of the innermost loop
    berth_expr loads[most_sides];
    berth_var names[most_sides];
    uint32_t count;
} asker;

static const berth_expr_node *node_of(const asker *p, berth_expr id) {
    return &p->fn->exprs.data[id];
}

static bool is_leaf(const berth_expr_node *node) {
    return node->kind == BERTH_EXPR_INT || node->kind == BERTH_EXPR_FLOAT ||
           node->kind == BERTH_EXPR_VAR || node->kind == BERTH_EXPR_SYMBOL;
}

// Whether a load may be read before the loop: it is one element, always inside its buffer, and not
// written by the nest.
static bool stays(const asker *p, berth_expr load) {
    const berth_expr_node *node = node_of(p, load);
    const berth_buf_info *info = &p->fn->bufs.data[node->load.buf];
    if (node->lanes > 1 || info->lanes > 1 || info->may_alias || info->role != BERTH_ROLE_IN ||
        berth_tfn_uses_var(p->fn, load, p->var))
        return false;
    for (int i = 0; i < node->index_count; ++i) {
        berth_range at = berth_range_of(p->fn, &p->ranges, berth_tfn_load_indices(p->fn, load)[i]);
        if (at.low < 0 || at.high >= info->dims[i]) return false;
    }
    return true;
}

// *loads: whether the expression has some. False where one does not stay, or an index is compared.
static bool is_asked_once(const asker *p, berth_expr id, bool *loads, int depth) {
    const berth_expr_node *node = node_of(p, id);
    if (!id) return true;
    if (is_leaf(node)) return node->kind != BERTH_EXPR_VAR;
    if (node->is_index || depth > most_depth) return false;
    if (node->kind == BERTH_EXPR_LOAD) {
        *loads = true;
        return stays(p, id);
    }
    return is_asked_once(p, node->a, loads, depth + 1) &&
           is_asked_once(p, node->b, loads, depth + 1) &&
           is_asked_once(p, node->c, loads, depth + 1);
}

static berth_expr condition_of(const asker *p, const berth_expr_node *select) {
    const berth_expr_node *condition = node_of(p, select->a);
    return condition->kind == BERTH_EXPR_BROADCAST ? condition->a : select->a;
}

// The first choice in a value that can be made before the loop; 0: there is none.
static berth_expr find_choice(const asker *p, berth_expr id, int depth) {
    const berth_expr_node *node = node_of(p, id);
    bool loads = false;
    if (!id || depth > most_depth || is_leaf(node) || node->is_index ||
        node->kind == BERTH_EXPR_LOAD)
        return 0;
    if (node->kind == BERTH_EXPR_SELECT && is_asked_once(p, condition_of(p, node), &loads, 0) &&
        loads)
        return id;
    berth_expr found = find_choice(p, node->a, depth + 1);
    if (!found) found = find_choice(p, node->b, depth + 1);
    return found ? found : find_choice(p, node->c, depth + 1);
}

// The value with `with` in place of the choice.
static berth_expr chosen(const asker *p, berth_expr id, berth_expr choice, berth_expr with,
                         int depth) {
    if (id == choice) return with;
    const berth_expr_node node = *node_of(p, id);
    if (!id || depth > most_depth || is_leaf(&node) || node.is_index ||
        node.kind == BERTH_EXPR_LOAD)
        return id;
    berth_expr a = chosen(p, node.a, choice, with, depth + 1);
    berth_expr b = chosen(p, node.b, choice, with, depth + 1);
    berth_expr c = chosen(p, node.c, choice, with, depth + 1);
    return berth_tfn_rebuild(p->fn, id, a, b, c);
}

static berth_expr name_of(asker *p, berth_expr load) {
    for (uint32_t i = 0; i < p->count; ++i)
        if (berth_tfn_expr_equal(p->fn, p->loads[i], load))
            return berth_tfn_var_ref(p->fn, p->names[i]);
    if (p->count == most_sides) return load;
    p->loads[p->count] = load;
    p->names[p->count] =
        berth_tfn_let_var(p->fn, "side", (berth_dtype)node_of(p, load)->dtype, 1, false);
    return berth_tfn_var_ref(p->fn, p->names[p->count++]);
}

// The value with names for the loads under its choices that stay.
static berth_expr with_sides(asker *p, berth_expr id, bool under, int depth) {
    const berth_expr_node node = *node_of(p, id);
    if (!id || depth > most_depth || is_leaf(&node) || node.is_index) return id;
    if (node.kind == BERTH_EXPR_LOAD) return under && stays(p, id) ? name_of(p, id) : id;
    bool choice = node.kind == BERTH_EXPR_SELECT;
    berth_expr a = with_sides(p, node.a, under, depth + 1);
    berth_expr b = with_sides(p, node.b, under || choice, depth + 1);
    berth_expr c = with_sides(p, node.c, under || choice, depth + 1);
    return berth_tfn_rebuild(p->fn, id, a, b, c);
}

// The name of a load that has one, wherever it stands: compilers see that two values are the same only where all of both has
// one name.
static berth_expr named(berth_tfn *fn, berth_expr load, void *user) {
    const asker *p = user;
    for (uint32_t i = 0; i < p->count; ++i)
        if (berth_tfn_expr_equal(fn, p->loads[i], load)) return berth_tfn_var_ref(fn, p->names[i]);
    return 0;
}

static berth_stmt loop_of(asker *p, const berth_stmt_node *loop, const berth_stmt_node *store,
                          berth_expr value, int choices) {
    berth_tfn *fn = p->fn;
    berth_expr choice = choices < most_choices ? find_choice(p, value, 0) : 0;
    if (choice) {
        const berth_expr_node select = *node_of(p, choice);
        berth_expr condition = condition_of(p, &select);
        berth_expr first = chosen(p, value, choice, select.b, 0);
        berth_expr second = chosen(p, value, choice, select.c, 0);
        berth_stmt yes = loop_of(p, loop, store, first, choices + 1);
        berth_stmt no = loop_of(p, loop, store, second, choices + 1);
        return berth_tfn_if(fn, condition, yes, no);
    }
    p->count = 0;
    value = with_sides(p, value, false, 0);
    if (p->count) value = berth_replace_loads(fn, value, named, p);
    berth_expr indices[BERTH_MAX_RANK];
    for (int i = 0; i < store->index_count; ++i)
        indices[i] = fn->lists.data[store->first + (uint32_t)i];
    berth_stmt body = berth_tfn_store(fn, store->buf, indices, store->index_count, value);
    berth_stmt items[most_sides + 1];
    for (uint32_t i = 0; i < p->count; ++i) items[i] = berth_tfn_let(fn, p->names[i], p->loads[i]);
    items[p->count] =
        berth_tfn_for(fn, loop->var, loop->value, (berth_loop_kind)loop->loop_kind, body);
    return p->count ? berth_tfn_seq(fn, items, p->count + 1) : items[0];
}

static berth_stmt innermost(void *user, berth_stmt id, const berth_nest *loops) {
    asker *p = user;
    berth_stmt_node loop = p->fn->stmts.data[id];
    const berth_stmt_node store = p->fn->stmts.data[loop.body];
    if (loop.loop_kind == BERTH_LOOP_PARALLEL) loop.loop_kind = BERTH_LOOP_SERIAL;
    int64_t extent = 0;
    bool is_short = berth_tfn_const_value(p->fn, loop.value, &extent) && extent < least_iterations;
    if (store.kind != BERTH_STMT_STORE || is_short) return id;
    berth_ranges all = berth_ranges_collect(p->fn);
    p->ranges = berth_ranges_with(p->fn, &all, loops);
    p->var = loop.var;
    berth_stmt asked = loop_of(p, &loop, &store, store.value, 0);
    const berth_stmt_node *node = &p->fn->stmts.data[asked];
    bool same = node->kind == BERTH_STMT_FOR && p->fn->stmts.data[node->body].value == store.value;
    return same ? id : asked;
}

// A parallel loop of stores has at most a chunk of them: it stays in one piece.
berth_stmt berth_cpu__ask_once(berth_tfn *fn, berth_stmt nest) {
    asker p = {.fn = fn};
    berth_cpu__innermost walk = {
        .fn = fn, .rewrite = innermost, .user = &p, .with_parallel = true, .any_extent = true};
    return berth_cpu__each_innermost(&walk, nest);
}
