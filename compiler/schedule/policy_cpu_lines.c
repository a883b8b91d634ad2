// Lanes beside each other: a body with loops of its own (a sum, a maximum, a softmax along some axis,
// a window) that reads and writes memory along the last loop of the nest runs for as many of its
// iterations at once as a register has lanes. Iterations that ask whether they lie in the padding
// are split off, so that those between them ask nothing.
#include <string.h>

#include "compiler/lower/tfn_simplify.h"
#include "compiler/schedule/policy_cpu.h"

enum { least_lanes = 4 };

typedef struct lines {
    berth_tfn *fn;
    const berth_cpu_facts *facts;
    const berth_ranges *ranges;
    berth_var var;
    int64_t low;   // iterations of `var` from here
    int64_t high;  // to here, inclusive, lie outside of any padding
    bool has_loops;
} lines;

static bool is_local(const berth_tfn *fn, berth_buf buf) {
    const berth_buf_info *info = &fn->bufs.data[buf];
    return info->scope == BERTH_SCOPE_REGISTER || info->scope == BERTH_SCOPE_PRIVATE;
}

static bool store_suits(lines *l, berth_stmt id) {
    const berth_stmt_node node = l->fn->stmts.data[id];
    berth_cpu__narrow(l->fn, l->ranges, node.value, l->var, &l->low, &l->high);
    if (is_local(l->fn, node.buf))
        return berth_loads_are_contiguous(l->fn, l->ranges, node.value, l->var);
    return berth_store_is_contiguous(l->fn, l->ranges, id, l->var);
}

// Whether lanes of `var` are next to each other in all memory that a statement uses.
static bool suits(lines *l, berth_stmt id) {
    const berth_stmt_node node = l->fn->stmts.data[id];
    switch ((berth_stmt_kind)node.kind) {
    case BERTH_STMT_ALLOC: return true;
    case BERTH_STMT_STORE: return store_suits(l, id);
    case BERTH_STMT_FOR: l->has_loops = true; return suits(l, node.body);
    case BERTH_STMT_SEQ:
        for (uint32_t i = 0; i < node.count; ++i)
            if (!suits(l, l->fn->lists.data[node.first + i])) return false;
        return true;
    default: return false;
    }
}

// A statement with what the ranges decide decided.
static berth_stmt decided(berth_tfn *fn, berth_stmt id, const berth_ranges *ranges) {
    const berth_stmt_node node = fn->stmts.data[id];
    if (node.kind == BERTH_STMT_FOR)
        return berth_tfn_for(fn, node.var, node.value, (berth_loop_kind)node.loop_kind,
                             decided(fn, node.body, ranges));
    if (node.kind == BERTH_STMT_STORE) {
        berth_expr indices[BERTH_MAX_RANK];
        memcpy(indices, berth_tfn_store_indices(fn, id), node.index_count * sizeof(berth_expr));
        berth_expr value = berth_tfn_simplify(fn, node.value, ranges);
        return berth_tfn_store(fn, node.buf, indices, node.index_count, value);
    }
    if (node.kind != BERTH_STMT_SEQ) return id;
    berth_stmt *items = berth_arena_new_array(fn->module->arena, berth_stmt, node.count + 1);
    for (uint32_t i = 0; i < node.count; ++i)
        items[i] = decided(fn, fn->lists.data[node.first + i], ranges);
    return berth_tfn_seq(fn, items, node.count);
}

static berth_stmt emit_parallel(berth_tfn *fn, berth_nest nest) {
    for (int i = 0; i < nest.count; ++i) nest.loops[i].kind = BERTH_LOOP_PARALLEL;
    return berth_nest_emit(fn, &nest);
}

// The first iterations of the last loop taken off into *first (nothing: count is 0).
static bool take_off(berth_tfn *fn, berth_nest *nest, int64_t iterations, berth_nest *first) {
    berth_nest rest;
    *first = (berth_nest){0};
    if (iterations == 0) return true;
    berth_nest head = *nest;
    berth_status status = berth_schedule_peel(fn, &head, nest->count - 1, iterations, &rest);
    if (status) {
        berth_decisions_refuse(fn, status);
        return false;
    }
    *first = head;
    *nest = rest;
    return true;
}

berth_stmt berth_cpu__in_lanes(berth_tfn *fn, berth_nest nest, int64_t lanes) {
    int last = nest.count - 1;
    int64_t extent = nest.loops[last].extent;
    while (lanes > extent) lanes /= 2;
    if (lanes < least_lanes) return emit_parallel(fn, nest);
    berth_nest whole = nest;
    if (extent % lanes && !take_off(fn, &nest, extent / lanes * lanes, &whole)) return 0;
    berth_status status = BERTH_OK;
    if (whole.loops[last].extent != lanes) status = berth_schedule_split(fn, &whole, last, lanes);
    if (!status) status = berth_schedule_vectorize(fn, &whole);
    if (status) {
        berth_decisions_refuse(fn, status);
        return 0;
    }
    berth_stmt items[2] = {0};
    if (whole.count == 0) {  // one vector is all there is
        whole.loops[whole.count++] =
            (berth_nest_loop){berth_tfn_var(fn, "group"), 1, BERTH_LOOP_PARALLEL};
    }
    items[0] = berth_cpu__beside(fn, &whole);
    if (!items[0]) items[0] = emit_parallel(fn, whole);
    if (extent % lanes == 0) return items[0];
    items[1] = berth_cpu__in_lanes(fn, nest, lanes / 2);
    return items[1] ? berth_tfn_seq(fn, items, 2) : 0;
}

static lines lines_of(berth_tfn *fn, const berth_nest *nest, const berth_ranges *ranges,
                      const berth_cpu_facts *facts) {
    const berth_nest_loop *last = &nest->loops[nest->count - 1];
    return (lines){
        .fn = fn, .facts = facts, .ranges = ranges, .var = last->var, .high = last->extent - 1};
}

// Loops inside others: in order.
static berth_stmt in_order(berth_tfn *fn, berth_stmt id) {
    const berth_stmt_node node = fn->stmts.data[id];
    if (node.kind == BERTH_STMT_FOR && node.loop_kind == BERTH_LOOP_PARALLEL)
        return berth_tfn_for(fn, node.var, node.value, BERTH_LOOP_SERIAL, in_order(fn, node.body));
    if (node.kind != BERTH_STMT_SEQ) return id;
    berth_stmt *items = berth_arena_new_array(fn->module->arena, berth_stmt, node.count + 1);
    for (uint32_t i = 0; i < node.count; ++i)
        items[i] = in_order(fn, fn->lists.data[node.first + i]);
    return berth_tfn_seq(fn, items, node.count);
}

// Lanes that lie in blocks (channels) of which the last one of an outer loop alone has some that are not there: all
// other blocks ask nothing. 0: there is no such loop.
//
//   for g in n: for lane in 16  ->  for g in n: if (g < n - 1) 16 lanes else those that are there
static berth_stmt last_block_apart(berth_tfn *fn, const berth_nest *nest,
                                   const berth_cpu_facts *facts) {
    berth_ranges collected = berth_ranges_collect(fn);
    int64_t lanes = nest->loops[nest->count - 1].extent;
    for (int at = 0; at + 1 < nest->count; ++at) {
        berth_nest fewer = *nest;
        if (--fewer.loops[at].extent < 1) continue;
        berth_ranges ranges = berth_ranges_with(fn, &collected, &fewer);
        lines l = lines_of(fn, nest, &ranges, facts);
        if (!suits(&l, nest->body) || l.low > 0 || l.high + 1 < lanes) continue;
        berth_nest whole = *nest, last = {0}, around = {0}, parts[2];
        memset(parts, 0, sizeof(parts));
        berth_status status = berth_schedule_peel(fn, &whole, at, fewer.loops[at].extent, &last);
        if (status) {
            berth_decisions_refuse(fn, status);
            return 0;
        }
        ranges = berth_ranges_with(fn, &collected, &whole);
        parts[0].body = decided(fn, whole.body, &ranges);
        parts[1].body = last.body;
        for (int i = 0; i <= at; ++i) around.loops[around.count++] = nest->loops[i];
        for (int i = at; i < nest->count; ++i) {
            if (i > at) parts[0].loops[parts[0].count++] = whole.loops[i];
            parts[1].loops[parts[1].count++] = last.loops[i];
        }
        berth_stmt made[2];
        for (int i = 0; i < 2; ++i) {
            made[i] = berth_cpu__lines(fn, &parts[i], facts);
            if (!made[i] && i == 0) return 0;
            made[i] = in_order(fn, made[i] ? made[i] : emit_parallel(fn, parts[i]));
        }
        berth_expr group = berth_tfn_var_ref(fn, nest->loops[at].var);
        berth_expr is_whole = berth_tfn_binary(fn, BERTH_BINARY_LT, group,
                                               berth_tfn_index(fn, fewer.loops[at].extent));
        around.body = berth_tfn_if(fn, is_whole, made[0], made[1]);
        return emit_parallel(fn, around);
    }
    return 0;
}

berth_stmt berth_cpu__lines(berth_tfn *fn, const berth_nest *nest, const berth_cpu_facts *facts) {
    berth_ranges collected = berth_ranges_collect(fn);
    berth_ranges ranges = berth_ranges_with(fn, &collected, nest);
    int last = nest->count - 1;
    if (nest->count == 0 || facts->any_size || !berth_nest_is_independent(fn, nest)) return 0;
    lines l = lines_of(fn, nest, &ranges, facts);
    if (!suits(&l, nest->body) || !l.has_loops) return 0;
    if (l.high + 1 < nest->loops[last].extent) {
        berth_stmt apart = last_block_apart(fn, nest, facts);
        if (apart) return apart;
    }
    if (l.high - l.low + 1 < least_lanes) return 0;
    berth_nest before = {0};
    berth_nest inside = {0};
    berth_nest after = *nest;
    if (!take_off(fn, &after, l.low, &before)) return 0;
    if (l.high + 1 < nest->loops[last].extent) {
        if (!take_off(fn, &after, l.high + 1 - l.low, &inside)) return 0;
    } else {
        inside = after;
        after.count = 0;
    }
    ranges = berth_ranges_with(fn, &collected, &inside);
    inside.body = decided(fn, inside.body, &ranges);
    berth_stmt items[3];
    uint32_t n = 0;
    if (before.count) items[n++] = emit_parallel(fn, before);
    items[n] = berth_cpu__in_lanes(fn, inside, facts->lanes);
    if (!items[n++]) return 0;
    if (after.count) items[n++] = emit_parallel(fn, after);
    return n == 1 ? items[0] : berth_tfn_seq(fn, items, n);
}
