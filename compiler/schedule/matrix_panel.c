// Operands of warpgroups that lie in panels: 16 bytes of terms of each line, lines beside each other. A piece of a
// panel is copied to the memory of the group as a whole, by one copy, and units read it there as it is
// (matrix_tile.h, ir/tensor/copies.h).
#include "compiler/schedule/linear.h"
#include "compiler/schedule/matrix_tile.h"

static int64_t terms_of(const berth_matrix_side *s) {
    return BERTH_MATRIX_PANEL_BYTES / (int64_t)berth_dtype_size_bytes(s->dtype);
}

// Whether a position moves by `stride` for each step of a flat index of loops.
static bool moves_by(const berth_tfn *fn, const berth_linear *at, const berth_flat_loops *flat,
                     int64_t stride) {
    for (int i = flat->count - 1; i >= 0; --i) {
        bool linear = false;
        if (flat->loops[i].extent > 1 &&
            (berth_linear_stride(fn, at, flat->loops[i].var, &linear) != stride || !linear))
            return false;
        stride *= flat->loops[i].extent;
    }
    return true;
}

bool berth_matrix__in_panels(const berth_matrix_plan *m, const berth_matrix_side *s) {
    const berth_local_plan *p = &m->p;
    const berth_expr_node node = p->fn->exprs.data[s->value];
    int64_t terms = terms_of(s);
    const berth_nest_loop *last = &p->sum.loops[p->sum.count - 1];
    if (node.kind != BERTH_EXPR_LOAD || s->condition || s->across || s->vector != terms ||
        last->extent % terms)
        return false;
    berth_expr indices[BERTH_MAX_RANK];
    for (int i = 0; i < node.index_count; ++i)
        indices[i] = berth_tfn_load_indices(p->fn, s->value)[i];
    berth_ranges ranges = berth_ranges_collect(p->fn);
    ranges = berth_ranges_with(p->fn, &ranges, &p->nest);
    ranges = berth_ranges_with(p->fn, &ranges, &p->reduction.loops);
    berth_linear at = berth_linear_access(p->fn, &ranges, node.load.buf, indices, node.index_count);
    // Every piece begins at a multiple of its 16 bytes of terms.
    if (at.constant % terms) return false;
    for (int i = 0; i < at.count; ++i)
        if (at.terms[i].coefficient % terms &&
            !berth_tfn_uses_var(p->fn, at.terms[i].atom, last->var))
            return false;
    return moves_by(p->fn, &at, s->lines, terms);
}

// Piece `at` of the sum, `lines` of it, to piece `piece` of the tile.
static berth_stmt copy_piece(berth_matrix_plan *m, const berth_matrix_side *s, berth_expr at,
                             int64_t lines, berth_expr slot, berth_expr piece) {
    berth_local_plan *p = &m->p;
    berth_tfn *fn = p->fn;
    int64_t terms = terms_of(s);
    uint16_t elements = (uint16_t)(lines * terms);
    berth_var lane = berth_tfn_var(fn, "lane"), element = berth_tfn_var(fn, "element");
    berth_expr of = berth_local__ref(p, element), width = berth_tfn_index(fn, terms);
    berth_expr line = berth_tfn_binary(fn, BERTH_BINARY_DIV, of, width);
    uint32_t count = fn->vars.count;
    berth_expr *map = berth_arena_new_array(fn->module->arena, berth_expr, count + 1);
    line = berth_local__add(p, berth_local__scale(p, berth_local__ref(p, s->group), s->tile_lines),
                            line);
    berth_local__split_index(p, s->lines, line, map);
    berth_matrix__split(m, &p->sum, berth_local__scale(p, at, terms), (uint16_t)terms, lane, map);
    berth_expr value = berth_tfn_substitute(fn, s->value, map, count);
    value = berth_replace_var(fn, value, lane, berth_tfn_binary(fn, BERTH_BINARY_MOD, of, width));
    value = berth_vectorize_expr(fn, value, element, elements, BERTH_NONE, 0);
    if (!value) return 0;
    berth_expr ramp = berth_tfn_ramp(fn, berth_tfn_index(fn, 0), elements);
    berth_expr indices[] = {slot, piece, berth_tfn_binary(fn, BERTH_BINARY_DIV, ramp, width),
                            berth_tfn_binary(fn, BERTH_BINARY_MOD, ramp, width)};
    return berth_tfn_store(fn, s->tile, indices, 4, value);
}

// Zeros in place of a piece after the end of the sum: each work-item stores its share.
static berth_stmt clear_piece(berth_matrix_plan *m, const berth_matrix_side *s, berth_expr slot,
                              berth_expr piece) {
    berth_local_plan *p = &m->p;
    berth_tfn *fn = p->fn;
    int64_t items = BERTH_MATRIX_WARP * m->warp_rows * m->warp_columns;
    uint16_t terms = (uint16_t)terms_of(s);
    berth_var i = berth_tfn_var(fn, "i");
    berth_expr line =
        berth_local__add(p, berth_local__scale(p, berth_local__ref(p, i), items), m->item);
    berth_expr indices[] = {slot, piece, line, berth_tfn_ramp(fn, berth_tfn_index(fn, 0), terms)};
    berth_expr zero = berth_tfn_broadcast(fn, berth_tfn_const(fn, s->dtype, 0), terms);
    berth_stmt body = berth_tfn_store(fn, s->tile, indices, 4, zero);
    if (s->tile_lines % items)
        body = berth_tfn_if(fn, berth_local__less(p, line, s->tile_lines), body, 0);
    return berth_tfn_for(fn, i, berth_tfn_index(fn, (s->tile_lines + items - 1) / items),
                         BERTH_LOOP_UNROLL, body);
}

berth_stmt berth_matrix__stage_panel(berth_matrix_plan *m, const berth_matrix_side *s,
                                     berth_expr step, berth_expr slot) {
    berth_local_plan *p = &m->p;
    berth_tfn *fn = p->fn;
    int64_t terms = terms_of(s), pieces = m->depth / terms;
    int64_t rest = s->lines->extent % s->tile_lines;
    berth_var number = berth_tfn_var(fn, "piece");
    berth_expr piece = berth_local__ref(p, number);
    berth_expr at = berth_local__add(p, berth_local__scale(p, step, pieces), piece);
    berth_stmt body = copy_piece(m, s, at, s->tile_lines, slot, piece);
    berth_stmt last = rest ? copy_piece(m, s, at, rest, slot, piece) : 0;
    if (!body || (rest && !last)) return 0;
    // Lines after the last are not copied: what is computed with them is not stored.
    if (rest)
        body = berth_tfn_if(
            fn,
            berth_local__less(p, berth_local__ref(p, s->group), s->lines->extent / s->tile_lines),
            body, last);
    if (p->sum.extent % m->depth)
        body = berth_tfn_if(fn, berth_local__less(p, at, p->sum.extent / terms), body,
                            clear_piece(m, s, slot, piece));
    return berth_tfn_for(fn, number, berth_tfn_index(fn, pieces), BERTH_LOOP_SERIAL, body);
}
