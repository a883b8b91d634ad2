// Places that come from data (rows that are gathered, or scattered): what of them stays the same along
// an innermost loop is read and brought into range once before it, so that the loop copies
// neighbouring elements, of which C compilers make vectors.
//
//   for j: y[i, j] = x[max(0, min(p[i], 9)), j]
//     ->  let place = max(0, min(p[i], 9)); for j: y[i, j] = x[place, j]
#include "compiler/schedule/policy_cpu.h"

enum { most_places = 8, most_stores = 8 };

// Of an expression.
enum {
    is_data = 1,     // loaded, or made from what is
    by_data = 2,     // has a load at a place that data gives
    guarded = 4,     // has such a load under a condition: its place may be out of range elsewhere
    may_change = 8,  // reads bytes that the nest may write: a result that lies over an operand
};

typedef struct places {
    berth_tfn *fn;
    BERTH_VEC(uint8_t) facts;  // by expression, as far as they are known
    berth_var var;             // of the innermost loop
    berth_expr values[most_places];
    berth_var names[most_places];
    uint32_t count;
} places;

static uint8_t facts_of_load(const places *p, berth_expr id) {
    const berth_expr_node *node = &p->fn->exprs.data[id];
    uint8_t of_indices = 0;
    for (int i = 0; i < node->index_count; ++i)
        of_indices |= p->facts.data[berth_tfn_load_indices(p->fn, id)[i]];
    if (of_indices & is_data) of_indices |= by_data;
    if (p->fn->bufs.data[node->load.buf].may_alias) of_indices |= may_change;
    return of_indices | is_data;
}

static uint8_t facts_of_node(const places *p, berth_expr id) {
    const berth_expr_node *node = &p->fn->exprs.data[id];
    if (id == 0 || node->kind == BERTH_EXPR_INT || node->kind == BERTH_EXPR_FLOAT ||
        node->kind == BERTH_EXPR_VAR)
        return 0;
    if (node->kind == BERTH_EXPR_LOAD) return facts_of_load(p, id);
    uint8_t later = p->facts.data[node->b] | p->facts.data[node->c];
    bool may_skip = node->kind == BERTH_EXPR_SELECT ||
                    (node->kind == BERTH_EXPR_BINARY &&
                     (node->op == BERTH_BINARY_AND || node->op == BERTH_BINARY_OR));
    if (may_skip && (later & by_data)) later |= guarded;
    return p->facts.data[node->a] | later;
}

// Operands have lower numbers than what is made of them.
static uint8_t facts_of(places *p, berth_expr id) {
    while (p->facts.count <= id) {
        uint8_t facts = facts_of_node(p, p->facts.count);
        berth_vec_push(p->fn->module->arena, &p->facts, facts);
    }
    return p->facts.data[id];
}

static berth_expr name_of(places *p, berth_expr value) {
    for (uint32_t i = 0; i < p->count; ++i)
        if (berth_tfn_expr_equal(p->fn, p->values[i], value))
            return berth_tfn_var_ref(p->fn, p->names[i]);
    if (p->count == most_places) return value;
    p->values[p->count] = value;
    p->names[p->count] = berth_tfn_let_var(p->fn, "place", BERTH_DTYPE_I64, 1, true);
    return berth_tfn_var_ref(p->fn, p->names[p->count++]);
}

// An index with the largest parts that data gives and the loop does not change as names.
static berth_expr with_names(places *p, berth_expr id) {
    const berth_expr_node node = p->fn->exprs.data[id];
    uint8_t facts = facts_of(p, id);
    if (!(facts & is_data)) return id;
    if (node.is_index && node.lanes == 1 && !(facts & may_change) &&
        !berth_tfn_uses_var(p->fn, id, p->var))
        return name_of(p, id);
    if (node.kind != BERTH_EXPR_BINARY || !node.is_index) return id;
    berth_expr a = with_names(p, node.a);
    berth_expr b = with_names(p, node.b);
    return berth_tfn_rebuild(p->fn, id, a, b, 0);
}

static berth_expr name_places(berth_tfn *fn, berth_expr load, void *user) {
    const berth_expr_node node = fn->exprs.data[load];
    berth_expr indices[BERTH_MAX_RANK];
    bool changed = false;
    for (int i = 0; i < node.index_count; ++i) {
        berth_expr old = berth_tfn_load_indices(fn, load)[i];
        indices[i] = with_names(user, old);
        changed |= indices[i] != old;
    }
    return changed ? berth_tfn_load(fn, node.load.buf, indices, node.index_count) : 0;
}

static berth_stmt in_store(places *p, berth_stmt id) {
    berth_tfn *fn = p->fn;
    const berth_stmt_node node = fn->stmts.data[id];
    berth_expr indices[BERTH_MAX_RANK];
    for (int i = 0; i < node.index_count; ++i) {
        berth_expr old = berth_tfn_store_indices(fn, id)[i];
        indices[i] = with_names(p, berth_replace_loads(fn, old, name_places, p));
    }
    berth_expr value = berth_replace_loads(fn, node.value, name_places, p);
    return berth_tfn_store(fn, node.buf, indices, node.index_count, value);
}

// The stores of an innermost loop; 0: it has something else, or a place that must not be moved.
static uint32_t stores_of(places *p, berth_stmt body, berth_stmt out[most_stores]) {
    const berth_tfn *fn = p->fn;
    const berth_stmt_node *node = &fn->stmts.data[body];
    uint32_t count = node->kind == BERTH_STMT_SEQ ? node->count : 1;
    if (count > most_stores) return 0;
    for (uint32_t i = 0; i < count; ++i) {
        out[i] = node->kind == BERTH_STMT_SEQ ? fn->lists.data[node->first + i] : body;
        const berth_stmt_node *store = &fn->stmts.data[out[i]];
        if (store->kind != BERTH_STMT_STORE || (facts_of(p, store->value) & guarded)) return 0;
        for (int d = 0; d < store->index_count; ++d)
            if (facts_of(p, berth_tfn_store_indices(fn, out[i])[d]) & guarded) return 0;
    }
    return count;
}

// An innermost loop, with its places before it where it has some.
static berth_stmt innermost(void *user, berth_stmt id, const berth_nest *loops) {
    places *p = user;
    (void)loops;
    berth_tfn *fn = p->fn;
    const berth_stmt_node loop = fn->stmts.data[id];
    berth_stmt items[most_places + 1];
    berth_stmt stores[most_stores];
    p->var = loop.var;
    p->count = 0;
    uint32_t count = stores_of(p, loop.body, stores);
    for (uint32_t i = 0; i < count; ++i) stores[i] = in_store(p, stores[i]);
    if (p->count == 0) return id;
    for (uint32_t i = 0; i < p->count; ++i) items[i] = berth_tfn_let(fn, p->names[i], p->values[i]);
    berth_stmt body = count == 1 ? stores[0] : berth_tfn_seq(fn, stores, count);
    items[p->count] =
        berth_tfn_for(fn, loop.var, loop.value, (berth_loop_kind)loop.loop_kind, body);
    return berth_tfn_seq(fn, items, p->count + 1);
}

berth_stmt berth_cpu__places_once(berth_tfn *fn, berth_stmt nest) {
    places p = {.fn = fn};
    berth_cpu__innermost walk = {.fn = fn, .rewrite = innermost, .user = &p, .any_extent = true};
    return berth_cpu__each_innermost(&walk, nest);
}

// Whether results, and all that they read but for indices, are next to each other along a loop.
static bool lies_along(berth_tfn *fn, const berth_nest *nest, const berth_access_list *accesses,
                       int loop) {
    for (uint32_t i = 0; i < accesses->items.count; ++i) {
        bool linear = false;
        int64_t stride =
            berth_linear_stride(fn, &accesses->items.data[i].at, nest->loops[loop].var, &linear);
        if (!linear || (stride != 1 && (stride != 0 || i == 0))) return false;
    }
    return true;
}

// Results whose place is data (scattered rows): the last loop jumps about in memory. A parallel loop
// along the rows becomes the innermost one; the loops that were inside it keep their order, so that
// of results with one place the last one stays, and sums are taken in their order.
berth_stmt berth_cpu__scattered_rows(berth_tfn *fn, const berth_nest *plain,
                                     const berth_access_list *accesses) {
    enum { least_row = 64 };  // elements in a group
    berth_nest nest = *plain;
    int last = nest.count - 1;
    bool linear = false;
    berth_linear_stride(fn, &accesses->items.data[0].at, nest.loops[last].var, &linear);
    if (linear) return 0;
    int row = last - 1;
    while (row >= 0 && !(nest.loops[row].kind == BERTH_LOOP_PARALLEL &&
                         nest.loops[row].extent > 1 && lies_along(fn, &nest, accesses, row)))
        row--;
    if (row < 0) return 0;
    int64_t width = nest.loops[row].extent;
    for (int64_t w = least_row; w < width; ++w)
        if (width % w == 0) width = w;
    berth_status status = BERTH_OK;
    if (width < nest.loops[row].extent) status = berth_schedule_split(fn, &nest, row++, width);
    if (!status) status = berth_schedule_reorder(fn, &nest, row, nest.count - 1);
    if (status) {
        berth_decisions_refuse(fn, status);
        return 0;
    }
    nest.loops[nest.count - 1].kind = BERTH_LOOP_SIMD;
    return berth_nest_emit(fn, &nest);
}

berth_stmt berth_cpu__dependent_rows(berth_tfn *fn, const berth_nest *nest) {
    berth_ranges ranges = berth_ranges_collect(fn);
    ranges = berth_ranges_with(fn, &ranges, nest);
    berth_access_list accesses = {0};
    if (!berth_cpu__collect_body(fn, &ranges, nest->body, &accesses)) return 0;
    for (int i = 0; i < nest->count; ++i)
        if (nest->loops[i].extent <= 0) return 0;
    berth_stmt rows = berth_cpu__scattered_rows(fn, nest, &accesses);
    return rows ? berth_cpu__places_once(fn, rows) : 0;
}
