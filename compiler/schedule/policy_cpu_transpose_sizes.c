// Transposed blocks (policy_cpu_transpose.c) along a loop whose extent many sizes have otherwise: groups of whole blocks,
// and a last one of the blocks and then the elements that are left, as many as there are, which may be none. So all sizes
// are one form, however short they are.
#include "compiler/schedule/policy_cpu.h"

static bool some_leave(const berth_tfn *fn, berth_nest_loop loop, int64_t divisor) {
    const int64_t *extents = fn->vars.data[loop.var].extents;
    bool some = !extents || loop.extent % divisor != 0;
    for (uint32_t i = 0; extents && i < fn->size_count && !some; ++i) some = extents[i] % divisor;
    return some;
}

// [along, across] as loops over `count` blocks around one of lanes x lanes. Whatever the extents are, there are four loops,
// or three where `along` is one block.
static berth_status emit_blocks(berth_tfn *fn, berth_nest part, int64_t lanes, int64_t count,
                                berth_stmt *out) {
    const bool several = part.loops[0].extent > lanes;
    part.loops[1].extent = 2 * lanes;  // more than one, so that it is split
    BERTH_TRY(berth_schedule_split(fn, &part, 1, lanes));
    part.loops[1].extent = count;
    if (several) BERTH_TRY(berth_schedule_split(fn, &part, 0, lanes));
    const int first = several ? 2 : 1;  // of those that are not moved
    const berth_nest_loop across = part.loops[first], along = part.loops[first - 1];
    part.loops[first - 1] = across;
    part.loops[first] = along;
    for (int i = 0; i < part.count; ++i)
        part.loops[i].kind = i + 2 < part.count ? BERTH_LOOP_SERIAL : BERTH_LOOP_UNROLL;
    *out = berth_nest_emit(fn, &part);
    return BERTH_OK;
}

static berth_status emit_last(berth_tfn *fn, const berth_nest *pair, int64_t lanes, int64_t first,
                              berth_stmt *out) {
    const int64_t left = pair->loops[1].extent - first, blocks = left / lanes;
    berth_stmt items[2] = {0};
    berth_nest part = *pair;
    berth_nest_shift(fn, &part, 1, first);
    BERTH_TRY(emit_blocks(fn, part, lanes, blocks, &items[0]));
    const bool singles = some_leave(fn, pair->loops[1], lanes);
    if (singles) {
        part = *pair;
        berth_nest_shift(fn, &part, 1, first + blocks * lanes);
        part.loops[1].extent = left % lanes;
        items[1] = berth_nest_emit(fn, &part);
    }
    *out = singles ? berth_tfn_seq(fn, items, 2) : items[0];
    return BERTH_OK;
}

static berth_status emit_groups(berth_tfn *fn, const berth_nest *pair, int64_t lanes, int64_t width,
                                berth_nest_loop *group, berth_stmt *out) {
    const int64_t full = pair->loops[1].extent / width;
    const bool rest = some_leave(fn, pair->loops[1], width);
    berth_nest part = *pair;
    berth_stmt whole = 0, last = 0;
    part.loops[1].extent = 2 * width;
    BERTH_TRY(berth_schedule_split(fn, &part, 1, width));  // [along, group, across]
    *group = part.loops[1];
    group->extent = full + rest;
    part.loops[1] = part.loops[2];
    part.count = 2;
    BERTH_TRY(emit_blocks(fn, part, lanes, width / lanes, &whole));
    *out = whole;
    if (!rest) return BERTH_OK;
    BERTH_TRY(emit_last(fn, pair, lanes, full * width, &last));
    berth_expr is_whole = berth_tfn_binary(fn, BERTH_BINARY_LT, berth_tfn_var_ref(fn, group->var),
                                           berth_tfn_index(fn, full));
    *out = berth_tfn_if(fn, is_whole, whole, last);
    return BERTH_OK;
}

berth_stmt berth_cpu__blocks_of_sizes(berth_tfn *fn, const berth_nest *pair, int64_t lanes,
                                      int64_t width, berth_loop_kind kind, berth_nest *outer) {
    berth_nest_loop group;
    berth_stmt made = 0;
    if (pair->loops[0].extent % lanes || width % lanes ||
        berth_tfn_loop_varies(fn, pair->loops[0].var) ||
        !berth_tfn_loop_varies(fn, pair->loops[1].var))
        return 0;
    berth_status status = emit_groups(fn, pair, lanes, width, &group, &made);
    if (status) {
        berth_decisions_refuse(fn, status);
        return 0;
    }
    group.kind = kind;
    outer->loops[outer->count++] = group;
    return made;
}
