// Values that do not depend on one of the loops, above all places and weights of a resampling, which
// are the same for all channels: computed once into tables, which that loop then reads.
//
//   for c: for w: y[c, w] = f(w) * x[c, g(w)]
//   ->  for w: { t0[w] = f(w), t1[w] = g(w) }; for c: for w: y[c, w] = t0[w] * x[c, t1[w]]
//
// (Loop-invariant code motion with expansion into arrays; Allen and Kennedy, "Optimizing Compilers
// for Modern Architectures", 2001, section 5.3.) The loops that the tables have are taken in parts,
// so that the tables of a part stay in the first-level cache.
#include <string.h>

#include "compiler/schedule/policy_cpu.h"

enum { max_tables = 48, least_iterations = 3, least_gain = 8, least_weight = 2, wanted_parts = 4 };

typedef struct table {
    berth_expr value;
    uint32_t loops;  // those that it uses, a mask: bit i is loop i of the hoist's list
    berth_buf buf;
} table;

typedef struct hoist {
    berth_tfn *fn;
    const berth_cpu_facts *facts;
    berth_nest nest;
    bool is_sum;  // a reduction, else one store
    berth_reduction reduction;
    berth_expr value;  // the store's, or the reduction's update
    int over;          // loop of the nest that the tables do not use
    table tables[max_tables];
    int count;
    int64_t gain;  // operations saved per iteration
    uint8_t *seen;
    uint8_t *always;  // loads that every iteration makes
    berth_ranges ranges;
    uint32_t seen_count;
    berth_expr *done;
} hoist;

// ---- analysis
// -------------------------------------------------------------------------------------------------------

static bool is_leaf(const berth_expr_node *node) {
    return node->kind == BERTH_EXPR_INT || node->kind == BERTH_EXPR_FLOAT ||
           node->kind == BERTH_EXPR_VAR;
}

static int64_t weight_of_node(const berth_tfn *fn, const berth_expr_node *node) {
    int64_t by = 0;
    switch ((berth_expr_kind)node->kind) {
    case BERTH_EXPR_UNARY:
        return node->op == BERTH_UNARY_NEG || node->op == BERTH_UNARY_ABS ? 1 : 4;
    case BERTH_EXPR_BINARY:
        if (node->op != BERTH_BINARY_DIV && node->op != BERTH_BINARY_MOD) return 1;
        if (!node->is_index || !berth_tfn_const_value(fn, node->b, &by)) return 4;
        return (by & (by - 1)) == 0 ? 1 : 4;
    default: return 1;
    }
}

// Operations in an expression, shared ones as often as they are used; at most 64.
static int64_t weight_of(const berth_tfn *fn, berth_expr id, int depth) {
    const berth_expr_node *node = &fn->exprs.data[id];
    if (!id || is_leaf(node)) return 0;
    int64_t weight = weight_of_node(fn, node);
    if (node->kind == BERTH_EXPR_LOAD || depth > 16) return weight;
    const berth_expr operands[3] = {node->a, node->b, node->c};
    for (int i = 0; i < 3 && weight < 64; ++i) weight += weight_of(fn, operands[i], depth + 1);
    return weight;
}

static bool is_division(const berth_expr_node *node) {
    return node->kind == BERTH_EXPR_BINARY &&
           (node->op == BERTH_BINARY_DIV || node->op == BERTH_BINARY_MOD);
}

// Loads and, with `divisions`, divisions: what makes an index or a condition worth more than the
// additions and comparisons that it consists of otherwise. depth: 0.
static bool has_data(const berth_tfn *fn, berth_expr id, bool divisions, int depth) {
    const berth_expr_node *node = &fn->exprs.data[id];
    if (!id || is_leaf(node) || depth > 32) return false;
    if (node->kind == BERTH_EXPR_LOAD || (divisions && is_division(node))) return true;
    return has_data(fn, node->a, divisions, depth + 1) ||
           has_data(fn, node->b, divisions, depth + 1) ||
           has_data(fn, node->c, divisions, depth + 1);
}

static bool reads_registers(const berth_tfn *fn, berth_expr id) {
    const berth_expr_node *node = &fn->exprs.data[id];
    if (!id || is_leaf(node)) return false;
    if (node->kind == BERTH_EXPR_LOAD) {
        if (fn->bufs.data[node->load.buf].scope == BERTH_SCOPE_REGISTER) return true;
        for (int i = 0; i < node->index_count; ++i)
            if (reads_registers(fn, berth_tfn_load_indices(fn, id)[i])) return true;
        return false;
    }
    return reads_registers(fn, node->a) || reads_registers(fn, node->b) ||
           reads_registers(fn, node->c);
}

// The loops inside `over`: those of the nest, then those of the sum.
static int loops_inside(const hoist *h, berth_nest_loop *out) {
    int count = 0;
    for (int i = h->over + 1; i < h->nest.count; ++i) out[count++] = h->nest.loops[i];
    for (int i = 0; h->is_sum && i < h->reduction.loops.count; ++i)
        out[count++] = h->reduction.loops.loops[i];
    return count;
}

static uint32_t loops_used(const hoist *h, berth_expr id) {
    berth_nest_loop inside[2 * BERTH_NEST_MAX_LOOPS];
    int count = loops_inside(h, inside);
    uint32_t used = 0;
    for (int i = 0; i < count; ++i)
        if (berth_tfn_uses_var(h->fn, id, inside[i].var)) used |= 1u << i;
    return used;
}

// Indices become integers of 32 bits.
static bool has_table_type(const hoist *h, berth_expr id) {
    const berth_expr_node *node = &h->fn->exprs.data[id];
    if (!node->is_index) return node->dtype == BERTH_DTYPE_F32 || node->dtype == BERTH_DTYPE_BOOL;
    berth_range range = berth_range_of(h->fn, &h->ranges, id);
    return range.low >= INT32_MIN && range.high <= INT32_MAX;
}

// Marks the loads that are made in every iteration, whatever a selection chooses.
static void mark_always(hoist *h, berth_expr id) {
    if (!id || h->always[id]) return;
    h->always[id] = 1;
    const berth_expr_node node = h->fn->exprs.data[id];
    if (is_leaf(&node)) return;
    if (node.kind == BERTH_EXPR_LOAD) {
        for (int i = 0; i < node.index_count; ++i)
            mark_always(h, berth_tfn_load_indices(h->fn, id)[i]);
        return;
    }
    mark_always(h, node.a);
    if (node.kind == BERTH_EXPR_SELECT) return;
    mark_always(h, node.b);
    mark_always(h, node.c);
}

// Whether an expression under a selection may be computed where the selection chooses another: it
// loads nothing that only the selection makes sure is there.
static bool is_safe(const hoist *h, berth_expr id) {
    const berth_expr_node *node = &h->fn->exprs.data[id];
    if (!id || is_leaf(node) || h->always[id]) return true;
    if (node->kind == BERTH_EXPR_LOAD) return false;
    return is_safe(h, node->a) && is_safe(h, node->b) && is_safe(h, node->c);
}

// A value that is worth a table: some operations, along the innermost loop, or, under a sum, along
// any.
static bool is_worth(const hoist *h, berth_expr id, uint32_t used) {
    const berth_expr_node *node = &h->fn->exprs.data[id];
    if (used == 0 || node->lanes > 1 || !has_table_type(h, id)) return false;
    bool plain = node->dtype != BERTH_DTYPE_F32;
    if (plain && !has_data(h->fn, id, !h->is_sum && node->is_index, 0)) return false;
    bool innermost = berth_tfn_uses_var(h->fn, id, h->nest.loops[h->nest.count - 1].var);
    return (h->is_sum || innermost) && weight_of(h->fn, id, 0) >= least_weight;
}

// guarded: a selection may leave the expression out.
static void look_for_tables(hoist *h, berth_expr id, bool guarded) {
    if (!id || h->seen[id] || h->count > max_tables) return;
    h->seen[id] = 1;
    const berth_expr_node node = h->fn->exprs.data[id];
    if (is_leaf(&node)) return;
    bool varies =
        berth_tfn_uses_var(h->fn, id, h->nest.loops[h->over].var) || reads_registers(h->fn, id);
    uint32_t used = varies ? 0 : loops_used(h, id);
    if (!varies && is_worth(h, id, used) && (!guarded || is_safe(h, id))) {
        h->gain += weight_of(h->fn, id, 0);
        if (h->count < max_tables)
            h->tables[h->count] = (table){.value = id, .loops = used, .buf = BERTH_NONE};
        h->count++;
        return;
    }
    if (node.kind == BERTH_EXPR_LOAD) {
        for (int i = 0; i < node.index_count; ++i)
            look_for_tables(h, berth_tfn_load_indices(h->fn, id)[i], guarded);
        return;
    }
    look_for_tables(h, node.a, guarded);
    guarded |= node.kind == BERTH_EXPR_SELECT;
    look_for_tables(h, node.b, guarded);
    look_for_tables(h, node.c, guarded);
}

static bool try_over(hoist *h, int loop) {
    h->over = loop;
    h->count = 0;
    h->gain = 0;
    h->seen_count = h->fn->exprs.count;
    h->seen = berth_arena_new_array(h->fn->module->arena, uint8_t, h->seen_count);
    h->always = berth_arena_new_array(h->fn->module->arena, uint8_t, h->seen_count);
    berth_ranges ranges = berth_ranges_collect(h->fn);
    h->ranges = berth_ranges_with(h->fn, &ranges, &h->nest);
    if (h->is_sum) h->ranges = berth_ranges_with(h->fn, &h->ranges, &h->reduction.loops);
    mark_always(h, h->value);
    look_for_tables(h, h->value, false);
    return h->count > 0 && h->count <= max_tables && h->gain >= least_gain;
}

// The loop that saves most.
static bool choose_loop(hoist *h) {
    int best = -1;
    int64_t gain = 0;
    int last = h->is_sum ? h->nest.count : h->nest.count - 1;
    for (int i = 0; i < last; ++i) {
        if (h->nest.loops[i].extent < least_iterations || !try_over(h, i) || h->gain <= gain)
            continue;
        gain = h->gain;
        best = i;
    }
    return best >= 0 && try_over(h, best);
}

// ---- building
// -------------------------------------------------------------------------------------------------------

static int64_t table_bytes(const hoist *h) {
    berth_nest_loop inside[2 * BERTH_NEST_MAX_LOOPS];
    int count = loops_inside(h, inside);
    int64_t bytes = 0;
    for (int t = 0; t < h->count; ++t) {
        int64_t size = (int64_t)sizeof(float);
        for (int i = 0; i < count; ++i)
            if (h->tables[t].loops >> i & 1) size *= inside[i].extent;
        bytes += size;
    }
    return bytes;
}

// The first loop inside in parts, each with tables of its own, so that they fit the cache and groups
// can run in parallel. False: they do not fit.
static bool take_in_parts(hoist *h) {
    int at = h->over + 1;
    int64_t outside = 1;
    for (int i = 0; i < h->over; ++i) outside *= h->nest.loops[i].extent;
    bool can_split = at < h->nest.count && (h->is_sum || at + 1 < h->nest.count);
    int64_t bytes = table_bytes(h);
    int64_t parts = 1;
    if (can_split) {
        int64_t extent = h->nest.loops[at].extent;
        while (parts < extent && (extent % parts || parts * outside < wanted_parts ||
                                  bytes / parts > h->facts->l1_bytes / 2))
            parts++;
    }
    if (bytes / parts > h->facts->l2_bytes / 4 || (parts == 1 && outside == 1)) return false;
    if (parts == 1) return true;
    berth_nest whole = h->nest;
    int64_t part = whole.loops[at].extent / parts;
    berth_nest_loop over = whole.loops[h->over];
    berth_status status = berth_schedule_split(h->fn, &h->nest, at, part);
    if (status) {
        berth_decisions_refuse(h->fn, status);
        return false;
    }
    h->nest.loops[h->over] = h->nest.loops[at];  // the parts, and inside them the loop
    h->nest.loops[at] = over;
    h->over = at;
    if (h->is_sum) return berth_reduction_parse(h->fn, h->nest.body, &h->reduction);
    return true;
}

static berth_dtype dtype_of_table(const hoist *h, const table *t) {
    const berth_expr_node *node = &h->fn->exprs.data[t->value];
    return node->is_index ? BERTH_DTYPE_I32 : (berth_dtype)node->dtype;
}

static void make_buffers(hoist *h) {
    berth_nest_loop inside[2 * BERTH_NEST_MAX_LOOPS];
    int count = loops_inside(h, inside);
    for (int t = 0; t < h->count; ++t) {
        int64_t dims[BERTH_MAX_RANK];
        int rank = 0;
        for (int i = 0; i < count; ++i)
            if (h->tables[t].loops >> i & 1) dims[rank++] = inside[i].extent;
        h->tables[t].buf = berth_tfn_buffer(h->fn, "table", dtype_of_table(h, &h->tables[t]), rank,
                                            dims, BERTH_SCOPE_PRIVATE);
    }
}

static berth_expr read_table(hoist *h, const table *t) {
    berth_nest_loop inside[2 * BERTH_NEST_MAX_LOOPS];
    int count = loops_inside(h, inside);
    berth_expr at[BERTH_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < count; ++i)
        if (t->loops >> i & 1) at[rank++] = berth_tfn_var_ref(h->fn, inside[i].var);
    bool is_index = h->fn->exprs.data[t->value].is_index;
    berth_expr load = berth_tfn_load(h->fn, t->buf, at, rank);
    return is_index ? berth_tfn_to_index(h->fn, load) : load;
}

// Loops that fill the tables of the same loops.
static berth_stmt fill(hoist *h, int first) {
    berth_tfn *fn = h->fn;
    berth_nest_loop inside[2 * BERTH_NEST_MAX_LOOPS];
    int count = loops_inside(h, inside);
    berth_nest nest = {0};
    berth_expr *map = berth_arena_new_array(fn->module->arena, berth_expr,
                                            fn->vars.count + 2 * BERTH_NEST_MAX_LOOPS);
    berth_expr at[BERTH_MAX_RANK];
    uint32_t loops = h->tables[first].loops;
    for (int i = 0; i < count; ++i) {
        if (!(loops >> i & 1)) continue;
        berth_var var = berth_tfn_var(fn, "k");
        at[nest.count] = map[inside[i].var] = berth_tfn_var_ref(fn, var);
        nest.loops[nest.count++] = (berth_nest_loop){var, inside[i].extent, BERTH_LOOP_SERIAL};
    }
    nest.loops[nest.count - 1].kind = BERTH_LOOP_SIMD;
    berth_stmt stores[max_tables];
    uint32_t n = 0;
    for (int t = first; t < h->count; ++t) {
        if (h->tables[t].loops != loops) continue;
        berth_expr value = berth_tfn_substitute(fn, h->tables[t].value, map, fn->vars.count);
        if (fn->exprs.data[value].is_index)
            value = berth_tfn_from_index(fn, BERTH_DTYPE_I32, value);
        stores[n++] = berth_tfn_store(fn, h->tables[t].buf, at, nest.count, value);
    }
    nest.body = n == 1 ? stores[0] : berth_tfn_seq(fn, stores, n);
    return berth_nest_emit(fn, &nest);
}

// The expression with the tables read.
static berth_expr rewrite(hoist *h, berth_expr id) {
    berth_tfn *fn = h->fn;
    const berth_expr_node node = fn->exprs.data[id];
    if (!id || is_leaf(&node)) return id;
    if (id < h->seen_count && h->done[id]) return h->done[id];
    berth_expr result = 0;
    for (int t = 0; t < h->count && !result; ++t)
        if (h->tables[t].value == id) result = read_table(h, &h->tables[t]);
    if (!result && node.kind == BERTH_EXPR_LOAD) {
        berth_expr indices[BERTH_MAX_RANK];
        for (int i = 0; i < node.index_count; ++i)
            indices[i] = rewrite(h, berth_tfn_load_indices(fn, id)[i]);
        result = berth_tfn_load(fn, node.load.buf, indices, node.index_count);
    } else if (!result) {
        berth_expr a = rewrite(h, node.a);
        berth_expr b = rewrite(h, node.b);
        berth_expr c = rewrite(h, node.c);
        result = berth_tfn_rebuild(fn, id, a, b, c);
    }
    if (id < h->seen_count) h->done[id] = result;
    return result;
}

static void rewrite_body(hoist *h) {
    berth_tfn *fn = h->fn;
    h->seen_count = fn->exprs.count;
    h->done = berth_arena_new_array(fn->module->arena, berth_expr, h->seen_count);
    berth_expr value = rewrite(h, h->value);
    if (h->is_sum) {
        h->reduction.update = value;
        h->reduction.loops.body = berth_tfn_store(fn, h->reduction.acc, NULL, 0, value);
        h->nest.body = berth_reduction_emit(fn, &h->reduction);
        return;
    }
    const berth_stmt_node store = fn->stmts.data[h->nest.body];
    berth_expr indices[BERTH_MAX_RANK];
    memcpy(indices, berth_tfn_store_indices(fn, h->nest.body),
           store.index_count * sizeof(berth_expr));
    h->nest.body = berth_tfn_store(fn, store.buf, indices, store.index_count, value);
}

static berth_stmt build(hoist *h) {
    berth_tfn *fn = h->fn;
    berth_stmt items[2 * max_tables + 1];
    uint32_t n = 0;
    make_buffers(h);
    for (int t = 0; t < h->count; ++t) items[n++] = berth_tfn_alloc(fn, h->tables[t].buf);
    for (int t = 0; t < h->count; ++t) {
        bool filled = false;
        for (int i = 0; i < t; ++i) filled |= h->tables[i].loops == h->tables[t].loops;
        if (!filled) items[n++] = fill(h, t);
    }
    rewrite_body(h);
    berth_nest inner = {.body = h->nest.body};
    for (int i = h->over; i < h->nest.count; ++i) {
        inner.loops[inner.count] = h->nest.loops[i];
        inner.loops[inner.count++].kind = BERTH_LOOP_SERIAL;
    }
    if (!h->is_sum) inner.loops[inner.count - 1].kind = BERTH_LOOP_SIMD;
    items[n++] = berth_nest_emit(fn, &inner);
    berth_nest outer = {.count = h->over, .body = berth_tfn_seq(fn, items, n)};
    for (int i = 0; i < h->over; ++i) {
        outer.loops[i] = h->nest.loops[i];
        outer.loops[i].kind = BERTH_LOOP_PARALLEL;
    }
    return outer.count ? berth_nest_emit(fn, &outer) : 0;
}

// What is computed for every element: the value of the one store, or of the update of a sum.
static bool find_value(hoist *h) {
    h->is_sum = berth_reduction_parse(h->fn, h->nest.body, &h->reduction);
    const berth_stmt_node node = h->fn->stmts.data[h->nest.body];
    if (!h->is_sum && node.kind != BERTH_STMT_STORE) return false;
    h->value = h->is_sum ? h->reduction.update : node.value;
    for (int i = 0; i < h->nest.count; ++i)
        if (h->nest.loops[i].extent <= 0) return false;
    return true;
}

berth_stmt berth_cpu__hoist_tables(berth_tfn *fn, const berth_nest *nest,
                                   const berth_cpu_facts *facts) {
    hoist *h = berth_arena_new(fn->module->arena, hoist);
    *h = (hoist){.fn = fn, .facts = facts, .nest = *nest};
    if (!find_value(h) || !choose_loop(h) || !take_in_parts(h)) return 0;
    // Splitting moved variables: the tables are looked for again.
    if (!find_value(h) || !try_over(h, h->over)) return 0;
    return build(h);
}
