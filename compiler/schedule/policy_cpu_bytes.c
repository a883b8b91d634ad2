// A function of one element of 8 bits has 256 results: what takes several operations for every element (a
// function between dequantise and quantise) is computed once for each of them, into a table that stays in
// the first-level cache, and looked up.
//
//   for i: y[i] = f(x[i])  ->  for t in 256: table[t] = f(t); for i: y[i] = table[x[i]]
#include <string.h>

#include "compiler/schedule/policy_cpu.h"

enum {
    results = 256,
    least_elements = 2 * results,  // that are looked up in one table
    group_elements = 1 << 16       // a group has its own table, which it must be worth
};

typedef struct lookup {
    berth_tfn *fn;
    berth_expr load;    // all that the value depends on; 0 = nothing found
    berth_expr in_use;  // instead of it
    bool other;         // something else, too
    int64_t work;       // operations of a vector
} lookup;

static bool has_8_bits(berth_dtype dtype) {
    return dtype == BERTH_DTYPE_U8 || dtype == BERTH_DTYPE_I8;
}

static int64_t work_of(const berth_expr_node *node) {
    if (node->kind == BERTH_EXPR_UNARY)
        return berth_cpu__is_function((berth_unary)node->op) ? 24 : 2;
    if (node->kind != BERTH_EXPR_BINARY) return 1;
    return node->op == BERTH_BINARY_DIV || node->op == BERTH_BINARY_MOD ? 4 : 1;
}

// depth: 0
static void look(lookup *l, berth_expr id, int depth) {
    enum { most_depth = 64, most_work = 4096 };
    const berth_expr_node node = l->fn->exprs.data[id];
    if (!id || node.kind == BERTH_EXPR_FLOAT || (node.kind == BERTH_EXPR_INT && !node.is_index))
        return;
    if (node.kind == BERTH_EXPR_LOAD && has_8_bits((berth_dtype)node.dtype) &&
        (!l->load || berth_tfn_expr_equal(l->fn, l->load, id))) {
        l->load = id;
        return;
    }
    l->other |= node.is_index || node.kind == BERTH_EXPR_LOAD || node.kind == BERTH_EXPR_VAR ||
                node.lanes > 1 || depth == most_depth || l->work > most_work;
    if (l->other) return;
    l->work += work_of(&node);
    look(l, node.a, depth + 1);
    look(l, node.b, depth + 1);
    look(l, node.c, depth + 1);
}

// Looking up 64 bytes takes four instructions where the target has those that look up in registers
// (codegen/c_lookup.c), else two or three each.
static bool pays(const lookup *l, const berth_cpu_facts *facts) {
    bool in_registers = berth_target_has_feature(facts->target, "avx512vbmi");
    return l->work >= (in_registers ? 4 : 2 * facts->lanes);
}

static berth_expr other_load(berth_tfn *fn, berth_expr load, void *user) {
    const lookup *l = user;
    return berth_tfn_expr_equal(fn, load, l->load) ? l->in_use : 0;
}

static berth_stmt over_results(berth_tfn *fn, berth_buf buf, berth_var t, berth_expr value) {
    berth_expr at = berth_tfn_var_ref(fn, t);
    return berth_tfn_for(fn, t, berth_tfn_index(fn, results), BERTH_LOOP_SIMD,
                         berth_tfn_store(fn, buf, &at, 1, value));
}

// for t in 256: { operand[t] = t, or t - 128; table[t] = f(operand[t]) }, the second in vectors
static void fill(lookup *l, berth_expr value, berth_buf table, const berth_cpu_facts *facts,
                 berth_stmt *out) {
    berth_tfn *fn = l->fn;
    berth_dtype dtype = (berth_dtype)fn->exprs.data[l->load].dtype;
    const int64_t dims[1] = {results};
    berth_buf operand = berth_tfn_buffer(fn, "operand", dtype, 1, dims, BERTH_SCOPE_PRIVATE);
    berth_var t = berth_tfn_var(fn, "t");
    berth_expr lowest = berth_tfn_index(fn, dtype == BERTH_DTYPE_I8 ? -results / 2 : 0);
    berth_expr of = berth_tfn_binary(fn, BERTH_BINARY_ADD, berth_tfn_var_ref(fn, t), lowest);
    out[0] = berth_tfn_alloc(fn, operand);
    out[1] = over_results(fn, operand, t,
                          berth_tfn_cast(fn, dtype, berth_tfn_from_index(fn, BERTH_DTYPE_I32, of)));
    t = berth_tfn_var(fn, "t");
    berth_expr at = berth_tfn_var_ref(fn, t);
    l->in_use = berth_tfn_load(fn, operand, &at, 1);
    value = berth_replace_loads(fn, value, other_load, l);
    out[2] = over_results(fn, table, t, value);
    if (!berth_cpu__has_vector_functions(fn, value, 0)) return;
    berth_nest nest = {.loops = {{t, results, BERTH_LOOP_SERIAL}},
                       .count = 1,
                       .body = berth_tfn_store(fn, table, &at, 1, value)};
    berth_status status = berth_schedule_split(fn, &nest, 0, facts->lanes);
    if (!status) status = berth_schedule_vectorize(fn, &nest);
    if (status)
        berth_decisions_refuse(fn, status);
    else
        out[2] = berth_nest_emit(fn, &nest);
}

// The loops of the nest that groups are of, from the outermost on: a group has enough for its table.
static int loops_of_groups(const berth_nest *nest) {
    int64_t inside = 1;
    int at = nest->count;
    while (at > 0 && inside * nest->loops[at - 1].extent <= group_elements)
        inside *= nest->loops[--at].extent;
    return inside < least_elements ? -1 : at;
}

// The last loop in parts of a group's elements, where it alone has more.
static bool split_last(berth_tfn *fn, berth_nest *nest) {
    int last = nest->count - 1;
    int64_t extent = nest->loops[last].extent;
    int64_t part = group_elements;
    if (extent <= part) return true;
    while (part > least_elements && extent % part) --part;
    if (extent % part) return false;
    berth_status status = berth_schedule_split(fn, nest, last, part);
    if (status) berth_decisions_refuse(fn, status);
    return !status;
}

static berth_stmt build(lookup *l, berth_nest nest, int groups, const berth_cpu_facts *facts) {
    berth_tfn *fn = l->fn;
    const berth_stmt_node store = fn->stmts.data[nest.body];
    const int64_t dims[1] = {results};
    berth_buf table =
        berth_tfn_buffer(fn, "table", fn->bufs.data[store.buf].dtype, 1, dims, BERTH_SCOPE_PRIVATE);
    berth_stmt items[5] = {berth_tfn_alloc(fn, table)};
    fill(l, store.value, table, facts, &items[1]);
    bool is_signed = fn->exprs.data[l->load].dtype == BERTH_DTYPE_I8;
    berth_expr at = berth_tfn_to_index(fn, l->load);
    if (is_signed)
        at = berth_tfn_binary(fn, BERTH_BINARY_ADD, at, berth_tfn_index(fn, results / 2));
    berth_expr indices[BERTH_MAX_RANK];
    memcpy(indices, berth_tfn_store_indices(fn, nest.body), store.index_count * sizeof(berth_expr));
    berth_nest inner = {.body = berth_tfn_store(fn, store.buf, indices, store.index_count,
                                                berth_tfn_load(fn, table, &at, 1))};
    for (int i = groups; i < nest.count; ++i) {
        inner.loops[inner.count] = nest.loops[i];
        inner.loops[inner.count++].kind = BERTH_LOOP_SERIAL;
    }
    inner.loops[inner.count - 1].kind = BERTH_LOOP_SIMD;
    items[4] = berth_nest_emit(fn, &inner);
    berth_nest outer = {.count = groups, .body = berth_tfn_seq(fn, items, 5)};
    memcpy(outer.loops, nest.loops, sizeof(outer.loops));
    for (int i = 0; i < groups; ++i) outer.loops[i].kind = BERTH_LOOP_PARALLEL;
    if (groups == 0)
        outer.loops[outer.count++] =
            (berth_nest_loop){berth_tfn_var(fn, "group"), 1, BERTH_LOOP_PARALLEL};
    return berth_nest_emit(fn, &outer);
}

berth_stmt berth_cpu__byte_table(berth_tfn *fn, const berth_nest *plain,
                                 const berth_cpu_facts *facts) {
    berth_nest nest = *plain;
    const berth_stmt_node store = fn->stmts.data[nest.body];
    if (!facts->target || facts->any_size || facts->inside || nest.count == 0 ||
        store.kind != BERTH_STMT_STORE || !has_8_bits(fn->bufs.data[store.buf].dtype))
        return 0;
    for (int i = 0; i < nest.count; ++i) {
        if (nest.loops[i].extent <= 0) return 0;
        nest.loops[i].kind = BERTH_LOOP_PARALLEL;
    }
    lookup l = {.fn = fn};
    look(&l, store.value, 0);
    if (!l.load || l.other || !pays(&l, facts)) return 0;
    berth_ranges collected = berth_ranges_collect(fn);
    berth_ranges ranges = berth_ranges_with(fn, &collected, &nest);
    berth_cpu__fuse_inwards(fn, &nest, &ranges);
    if (!split_last(fn, &nest)) return 0;
    int groups = loops_of_groups(&nest);
    if (groups < 0) return 0;
    l = (lookup){.fn = fn};
    // Loops that were fused or split have other variables.
    look(&l, fn->stmts.data[nest.body].value, 0);
    return build(&l, nest, groups, facts);
}
