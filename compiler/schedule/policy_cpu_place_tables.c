// Elements at places that data gives, each somewhere else, in a type of which processors gather no vectors: the places go
// into a table first, in vectors, and a second loop copies. In one loop C compilers take the vectors of places
// apart again, or make none (measured: 30,000 elements of 2 bytes took 22 us, 15 so).
//
//   for j: y[i, j] = x[i, max(0, min(p[i, j], 9))]
//     ->  for j: places[j] = max(0, min(p[i, j], 9)); for j: y[i, j] = x[i, places[j]]
#include "compiler/schedule/policy_cpu.h"

enum {
    strip = 256,             // places at a time
    lanes_that_gather = 16,  // targets with so many gather 4 bytes sooner
};

typedef struct place_tables {
    berth_tfn *fn;
    const berth_cpu_facts *facts;
} place_tables;

static bool has_load(const berth_tfn *fn, berth_expr id, bool *out_may_change) {
    const berth_expr_node *node = &fn->exprs.data[id];
    if (!id || node->kind == BERTH_EXPR_INT || node->kind == BERTH_EXPR_FLOAT ||
        node->kind == BERTH_EXPR_VAR)
        return false;
    if (node->kind == BERTH_EXPR_LOAD) {
        *out_may_change |= fn->bufs.data[node->load.buf].may_alias;
        for (int i = 0; i < node->index_count; ++i)
            (void)has_load(fn, berth_tfn_load_indices(fn, id)[i], out_may_change);
        return true;
    }
    bool a = has_load(fn, node->a, out_may_change);
    bool b = has_load(fn, node->b, out_may_change);
    return has_load(fn, node->c, out_may_change) || a || b;
}

// The load under casts (elements of 16 bits are computed with in 32).
static berth_expr loaded(const berth_tfn *fn, berth_expr value) {
    while (fn->exprs.data[value].kind == BERTH_EXPR_CAST) value = fn->exprs.data[value].a;
    return value;
}

static berth_expr replace_load(berth_tfn *fn, berth_expr load, void *user) {
    (void)fn;
    (void)load;  // there is no other
    return *(const berth_expr *)user;
}

// The index of a copied element that data gives; -1: there is none, or several, or it may not be computed before.
static int place_of(const place_tables *p, berth_expr value, berth_var var) {
    berth_tfn *fn = p->fn;
    const berth_expr_node *node = &fn->exprs.data[value];
    int found = -1;
    if (node->kind != BERTH_EXPR_LOAD || node->lanes > 1) return -1;
    size_t size = berth_dtype_size_bytes(fn->bufs.data[node->load.buf].dtype);
    size_t most = p->facts->lanes < lanes_that_gather ? sizeof(float) : sizeof(float) / 2;
    if (size == 0 || size > most) return -1;
    berth_ranges ranges = berth_ranges_collect(fn);
    for (int i = 0; i < node->index_count; ++i) {
        berth_expr at = berth_tfn_load_indices(fn, value)[i];
        bool may_change = false;
        if (!has_load(fn, at, &may_change)) continue;
        berth_range range = berth_range_of(fn, &ranges, at);
        if (found >= 0 || may_change || !berth_tfn_uses_var(fn, at, var) || range.low < 0 ||
            range.high > INT32_MAX)
            return -1;
        found = i;
    }
    return found;
}

// Both loops, over `extent` iterations from `first` on (0: from 0), no more than `most`.
static berth_stmt two_loops(berth_tfn *fn, const berth_stmt_node *loop, int place, berth_expr first,
                            berth_expr extent, int64_t most) {
    const berth_stmt_node store = fn->stmts.data[loop->body];
    const berth_expr load_id = loaded(fn, store.value);
    const berth_expr_node load = fn->exprs.data[load_id];
    berth_buf table =
        berth_tfn_buffer(fn, "places", BERTH_DTYPE_I32, 1, &most, BERTH_SCOPE_PRIVATE);
    berth_var fill = berth_tfn_var(fn, "k"), take = berth_tfn_var(fn, "i");
    berth_expr at_fill = berth_tfn_var_ref(fn, fill), at_take = berth_tfn_var_ref(fn, take);
    berth_expr of_fill = at_fill, of_take = at_take;
    if (first) {
        of_fill = berth_tfn_binary(fn, BERTH_BINARY_ADD, first, at_fill);
        of_take = berth_tfn_binary(fn, BERTH_BINARY_ADD, first, at_take);
    }
    berth_expr from[BERTH_MAX_RANK], to[BERTH_MAX_RANK];
    berth_expr value = 0;
    for (int i = 0; i < load.index_count; ++i) {
        berth_expr at = berth_tfn_load_indices(fn, load_id)[i];
        if (i == place) value = berth_replace_var(fn, at, loop->var, of_fill);
        from[i] = i == place ? berth_tfn_to_index(fn, berth_tfn_load(fn, table, &at_take, 1))
                             : berth_replace_var(fn, at, loop->var, of_take);
    }
    for (int i = 0; i < store.index_count; ++i)
        to[i] =
            berth_replace_var(fn, berth_tfn_store_indices(fn, loop->body)[i], loop->var, of_take);
    value = berth_tfn_from_index(fn, BERTH_DTYPE_I32, value);
    berth_stmt places = berth_tfn_store(fn, table, &at_fill, 1, value);
    berth_expr element = berth_tfn_load(fn, load.load.buf, from, load.index_count);
    element = berth_replace_loads(fn, store.value, replace_load, &element);
    berth_stmt copy = berth_tfn_store(fn, store.buf, to, store.index_count, element);
    berth_stmt steps[] = {berth_tfn_alloc(fn, table),
                          berth_tfn_for(fn, fill, extent, BERTH_LOOP_SIMD, places),
                          berth_tfn_for(fn, take, extent, BERTH_LOOP_SERIAL, copy)};
    return berth_tfn_seq(fn, steps, 3);
}

static berth_stmt innermost(void *user, berth_stmt id, const berth_nest *loops) {
    const place_tables *p = user;
    (void)loops;
    berth_tfn *fn = p->fn;
    const berth_stmt_node loop = fn->stmts.data[id];
    int64_t extent = 0;
    bool known = berth_tfn_const_value(fn, loop.value, &extent);
    const berth_stmt_node *store = &fn->stmts.data[loop.body];
    if (store->kind != BERTH_STMT_STORE || (known && extent < BERTH_CPU_LEAST_LANES)) return id;
    int place = place_of(p, loaded(fn, store->value), loop.var);
    if (place < 0) return id;
    if (known && extent <= 2 * strip) return two_loops(fn, &loop, place, 0, loop.value, extent);
    berth_var part = berth_tfn_var(fn, "strip");
    berth_expr size = berth_tfn_index(fn, strip);
    berth_expr first = berth_tfn_binary(fn, BERTH_BINARY_MUL, berth_tfn_var_ref(fn, part), size);
    berth_expr left = berth_tfn_binary(fn, BERTH_BINARY_SUB, loop.value, first);
    berth_expr count = berth_tfn_binary(fn, BERTH_BINARY_MIN, size, left);
    berth_stmt body = two_loops(fn, &loop, place, first, count, strip);
    berth_expr parts =
        berth_tfn_binary(fn, BERTH_BINARY_ADD, loop.value, berth_tfn_index(fn, strip - 1));
    parts = berth_tfn_binary(fn, BERTH_BINARY_DIV, parts, size);
    return berth_tfn_for(fn, part, parts, BERTH_LOOP_SERIAL, body);
}

berth_stmt berth_cpu__tables_of_places(berth_tfn *fn, berth_stmt nest,
                                       const berth_cpu_facts *facts) {
    place_tables p = {fn, facts};
    berth_cpu__innermost walk = {.fn = fn, .rewrite = innermost, .user = &p, .any_extent = true};
    return berth_cpu__each_innermost(&walk, nest);
}
