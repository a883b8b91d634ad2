// Transposed blocks (policy_cpu_transpose.c) of channels that do not fill their last block: whole blocks, and the
// rest as one block of its own, whose rows are read whole, since what follows the last channel is memory.
//
//   y[c, s] = x[c / 16, s, c % 16], c < 28  ->  for g < 2: if (g < 1) 16 rows of y, else 12 of them
//
// Results in blocks, whose last one alone asks which of its channels are there, likewise: all others ask nothing.
#include <string.h>

#include "compiler/lower/tfn_simplify.h"
#include "compiler/schedule/policy_cpu.h"

// The first loop over blocks of a layout that does not fill the last of them, and their size. -1: there is none.
static int partly_blocked(berth_tfn *fn, const berth_nest *nest, int64_t *out_block) {
    berth_ranges ranges = berth_ranges_collect(fn);
    ranges = berth_ranges_with(fn, &ranges, nest);
    berth_access_list loads = {0};
    berth_cpu__collect_loads(fn, &ranges, fn->stmts.data[nest->body].value, &loads);
    for (int i = 0; i < nest->count; ++i) {
        int64_t block = 0, extent = nest->loops[i].extent;
        for (uint32_t k = 0; k < loads.items.count && !block; ++k)
            if (fn->bufs.data[loads.items.data[k].buf].layout)
                block = berth_linear_block(fn, &loads.items.data[k].at, nest->loops[i].var);
        *out_block = block;
        if (block >= BERTH_CPU_LEAST_LANES && extent > block && extent % block) return i;
    }
    return -1;
}

// The loops from `first` on.
static berth_nest inner_loops(const berth_nest *nest, int first) {
    berth_nest inner = {.body = nest->body};
    for (int i = first; i < nest->count; ++i) inner.loops[inner.count++] = nest->loops[i];
    return inner;
}

// All blocks along a loop but the last one, and that one; under one loop over both.
typedef struct parts {
    berth_nest around;  // without a body
    berth_nest whole, last;
    int64_t full;  // blocks that are whole
} parts;

static bool take_apart(berth_tfn *fn, const berth_nest *nest, int at, int64_t block, parts *out) {
    berth_nest whole = *nest, last = {0};
    int64_t full = (nest->loops[at].extent - 1) / block;
    berth_status status = berth_schedule_peel(fn, &whole, at, full * block, &last);
    bool split = block == 1 || full > 1;  // the loop over blocks is there
    if (!status && block > 1 && split) status = berth_schedule_split(fn, &whole, at, block);
    if (status) {
        berth_decisions_refuse(fn, status);
        return false;
    }
    *out = (parts){.full = full};
    for (int i = 0; i < at; ++i) out->around.loops[out->around.count++] = whole.loops[i];
    berth_var group = split ? whole.loops[at].var : berth_tfn_var(fn, "group");
    out->around.loops[out->around.count++] = (berth_nest_loop){.var = group, .extent = full + 1};
    for (int i = 0; i < out->around.count; ++i) out->around.loops[i].kind = BERTH_LOOP_PARALLEL;
    out->whole = inner_loops(&whole, at + split);
    out->last = inner_loops(&last, at);
    return true;
}

static berth_stmt together(berth_tfn *fn, parts *p, const berth_cpu_facts *facts) {
    berth_stmt whole = berth_cpu__transposed(fn, &p->whole, &p->around, facts);
    if (!whole) return 0;
    berth_stmt last = berth_cpu__transposed(fn, &p->last, &p->around, facts);
    for (int i = 0; i < p->last.count; ++i) p->last.loops[i].kind = BERTH_LOOP_SERIAL;
    if (!last) last = berth_nest_emit(fn, &p->last);
    berth_expr group = berth_tfn_var_ref(fn, p->around.loops[p->around.count - 1].var);
    berth_expr is_whole =
        berth_tfn_binary(fn, BERTH_BINARY_LT, group, berth_tfn_index(fn, p->full));
    p->around.body = berth_tfn_if(fn, is_whole, whole, last);
    return berth_nest_emit(fn, &p->around);
}

// ---- results in blocks --------------------------------------------------------------------------

// The loop over blocks of results of which the last one alone asks what is there: results lie along a loop that
// conditions on indices use. -1: there is none.
static int asks_in_last_block(berth_tfn *fn, const berth_nest *nest) {
    const berth_stmt_node store = fn->stmts.data[nest->body];
    berth_ranges ranges = berth_ranges_collect(fn);
    ranges = berth_ranges_with(fn, &ranges, nest);
    berth_linear at = berth_linear_access(
        fn, &ranges, store.buf, berth_tfn_store_indices(fn, nest->body), store.index_count);
    bool asks = false;
    for (int i = 0; i < nest->count; ++i) {
        bool linear = false;
        int64_t step = berth_linear_stride(fn, &at, nest->loops[i].var, &linear);
        asks |= linear && step == 1 && nest->loops[i].extent > 1 &&
                berth_cpu__used_in_conditions(fn, store.value, nest->loops[i].var, 0);
    }
    for (int i = 0; asks && i < nest->count; ++i) {
        int64_t low = 0, high = nest->loops[i].extent - 1;
        berth_cpu__narrow(fn, &ranges, store.value, nest->loops[i].var, &low, &high);
        if (low == 0 && high >= 0 && high == nest->loops[i].extent - 2) return i;
    }
    return -1;
}

// The body without what the loops around it decide.
static void decide(berth_tfn *fn, const parts *p, berth_nest *part) {
    berth_ranges ranges = berth_ranges_collect(fn);
    berth_nest around = p->around;
    if (part == &p->whole) around.loops[around.count - 1].extent--;
    ranges = berth_ranges_with(fn, &ranges, &around);
    ranges = berth_ranges_with(fn, &ranges, part);
    const berth_stmt_node node = fn->stmts.data[part->body];
    berth_expr indices[BERTH_MAX_RANK];
    memcpy(indices, berth_tfn_store_indices(fn, part->body), node.index_count * sizeof(berth_expr));
    part->body = berth_tfn_store(fn, node.buf, indices, node.index_count,
                                 berth_tfn_simplify(fn, node.value, &ranges));
}

berth_stmt berth_cpu__transpose_blocks(berth_tfn *fn, const berth_nest *nest,
                                       const berth_cpu_facts *facts) {
    const berth_nest none = {0};
    int64_t block = 1;
    parts p;
    if (fn->stmts.data[nest->body].kind != BERTH_STMT_STORE || nest->count < 2) return 0;
    if (facts->any_size) return berth_cpu__transposed(fn, nest, &none, facts);
    int at = partly_blocked(fn, nest, &block);
    bool results = at < 0;
    if (results) {
        block = 1;
        at = asks_in_last_block(fn, nest);
    }
    berth_stmt made = 0;
    if (at >= 0 && take_apart(fn, nest, at, block, &p)) {
        if (results) decide(fn, &p, &p.whole);
        made = together(fn, &p, facts);
    }
    return made ? made : berth_cpu__transposed(fn, nest, &none, facts);
}
