// Staging of operands of matrix units in the memory of a group, as the bits that they are.
#include "compiler/schedule/matrix_tile.h"

static int64_t ceil_div(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

static berth_expr add(const berth_matrix_plan *m, berth_expr a, berth_expr b) {
    return berth_local__add(&m->p, a, b);
}

static berth_expr times(const berth_matrix_plan *m, berth_expr a, int64_t k) {
    return berth_local__scale(&m->p, a, k);
}

static berth_expr quotient(const berth_matrix_plan *m, berth_expr a, int64_t k) {
    return berth_tfn_binary(m->p.fn, BERTH_BINARY_DIV, a, berth_tfn_index(m->p.fn, k));
}

static berth_expr remainder_of(const berth_matrix_plan *m, berth_expr a, int64_t k) {
    return berth_tfn_binary(m->p.fn, BERTH_BINARY_MOD, a, berth_tfn_index(m->p.fn, k));
}

// ---- operands -----------------------------------------------------------------------------------

// A number as one of another type, where it is exactly that; 0: it is not.
static berth_expr number_as(berth_tfn *fn, berth_expr id, berth_dtype dtype) {
    const berth_expr_node *node = &fn->exprs.data[id];
    if (node->is_index || (node->kind != BERTH_EXPR_INT && node->kind != BERTH_EXPR_FLOAT))
        return 0;
    double value = node->kind == BERTH_EXPR_INT ? (double)node->i : node->f;
    if (dtype == BERTH_DTYPE_F32) return id;
    if (value == 0) return berth_tfn_const(fn, dtype, 0);
    bool fits =
        !berth_dtype_is_float(dtype) &&
        (dtype == BERTH_DTYPE_U8 ? value >= 0 && value <= 255 : value >= -128 && value <= 127);
    return fits ? berth_tfn_const(fn, dtype, value) : 0;
}

static bool is_narrow(berth_dtype dtype) {
    return dtype == BERTH_DTYPE_F16 || dtype == BERTH_DTYPE_BF16 || dtype == BERTH_DTYPE_I8 ||
           dtype == BERTH_DTYPE_U8;
}

// What a cast widens, or f32 as it is; 0: another type.
static berth_expr widened(const berth_tfn *fn, berth_expr id) {
    const berth_expr_node *node = &fn->exprs.data[id];
    bool is_half =
        node->kind == BERTH_EXPR_CAST && is_narrow((berth_dtype)fn->exprs.data[node->a].dtype);
    if (node->dtype == BERTH_DTYPE_F32 && !is_half && node->kind != BERTH_EXPR_SELECT) return id;
    if (node->kind != BERTH_EXPR_CAST || node->is_index || node->lanes != 1) return 0;
    const berth_expr_node *from = &fn->exprs.data[node->a];
    return !from->is_index && is_narrow((berth_dtype)from->dtype) ? node->a : 0;
}

bool berth_matrix__narrow(berth_tfn *fn, berth_expr value, berth_matrix_side *out) {
    berth_expr_node node = fn->exprs.data[value];
    berth_expr inner = widened(fn, value);
    *out = (berth_matrix_side){.value = inner};
    if (!inner && node.kind == BERTH_EXPR_SELECT) {  // a number where the operand is padded
        inner = widened(fn, node.b);
        if (!inner) return false;
        out->dtype = (berth_dtype)fn->exprs.data[inner].dtype;
        out->condition = node.a;
        out->value = inner;
        out->other = number_as(fn, node.c, out->dtype);
        return out->other != 0;
    }
    if (!inner) return false;
    node = fn->exprs.data[inner];
    out->dtype = (berth_dtype)node.dtype;
    berth_expr other = node.kind == BERTH_EXPR_SELECT ? number_as(fn, node.c, out->dtype) : 0;
    if (!other) return true;
    out->condition = node.a;
    out->value = node.b;
    out->other = other;
    return true;
}

// ---- copies -------------------------------------------------------------------------------------

void berth_matrix__split(const berth_matrix_plan *m, const berth_flat_loops *flat, berth_expr index,
                         uint16_t lanes, berth_var lane, berth_expr *map) {
    berth_flat_loops blocks = *flat;
    berth_nest_loop *last = &blocks.loops[blocks.count - 1];
    last->extent /= lanes;
    berth_local__split_index(&m->p, &blocks, lanes > 1 ? quotient(m, index, lanes) : index, map);
    if (lanes > 1)
        map[last->var] = add(m, times(m, map[last->var], lanes), berth_local__ref(&m->p, lane));
}

// Whether `lanes` elements along the last of the loops lie beside each other and become a vector.
static bool has_vectors(berth_matrix_plan *m, const berth_matrix_side *side,
                        const berth_flat_loops *flat, uint16_t lanes) {
    berth_tfn *fn = m->p.fn;
    const berth_nest_loop *last = &flat->loops[flat->count - 1];
    if (last->extent % lanes) return false;
    berth_ranges ranges = berth_ranges_collect(fn);
    ranges = berth_ranges_with(fn, &ranges, &m->p.nest);
    ranges = berth_ranges_with(fn, &ranges, &m->p.reduction.loops);
    if (!berth_tfn_uses_var(fn, side->value, last->var) ||
        !berth_loads_are_contiguous(fn, &ranges, side->value, last->var))
        return false;
    if (lanes == 1) return true;
    if (side->condition && berth_tfn_uses_var(fn, side->condition, last->var)) return false;
    berth_var block = berth_tfn_var(fn, "block"), lane = berth_tfn_var(fn, "lane");
    berth_expr at =
        add(m, times(m, berth_local__ref(&m->p, block), lanes), berth_local__ref(&m->p, lane));
    berth_expr value = berth_replace_var(fn, side->value, last->var, at);
    return berth_vectorize_expr(fn, value, lane, lanes, BERTH_NONE, 0) != 0;
}

void berth_matrix__choose_copies(berth_matrix_plan *m, berth_matrix_side *side) {
    int64_t size = (int64_t)berth_dtype_size_bytes(side->dtype);
    side->across = side->lines_first = side->panels = false;
    side->vector = 1;
    for (uint16_t lanes = (uint16_t)(16 / size); lanes >= 2; lanes /= 2) {
        bool along = has_vectors(m, side, &m->p.sum, lanes);
        bool across = !along && size == 2 && has_vectors(m, side, side->lines, lanes);
        if (!along && !across) continue;
        side->vector = lanes;
        side->across = across;
        return;
    }
    if (has_vectors(m, side, &m->p.sum, 1)) return;
    bool beside = has_vectors(m, side, side->lines, 1);
    side->across = beside && size == 2;
    side->lines_first = beside && size != 2;
}

// Where a copy goes and what it is of.
typedef struct place {
    berth_expr outer, inner;  // in the tile
    berth_expr line, term;    // in the operand
    berth_expr inside;        // 0 = always
} place;

static place place_of(const berth_matrix_plan *m, const berth_matrix_side *s, berth_expr chunk,
                      berth_expr step) {
    const berth_local_plan *p = &m->p;
    int64_t inner = s->across ? s->tile_lines : m->depth;
    int64_t outer = s->across ? m->depth : s->tile_lines, pieces = inner / s->vector;
    place at = {.outer = quotient(m, chunk, pieces),
                .inner = times(m, remainder_of(m, chunk, pieces), s->vector)};
    if (s->lines_first) {
        at.outer = remainder_of(m, chunk, outer);
        at.inner = quotient(m, chunk, outer);
    }
    at.line = add(m, times(m, berth_local__ref(p, s->group), s->tile_lines),
                  s->across ? at.inner : at.outer);
    if (s->lines->extent % s->tile_lines)
        at.line =
            berth_local__clamp(p, at.line, s->lines->extent - (s->across ? s->vector - 1 : 0));
    at.term = add(m, times(m, step, m->depth), s->across ? at.outer : at.inner);
    if (p->sum.extent % m->depth) at.inside = berth_local__less(p, at.term, p->sum.extent);
    return at;
}

static berth_stmt store_to(const berth_matrix_plan *m, const berth_matrix_side *s, const place *at,
                           berth_expr slot, berth_expr value) {
    berth_tfn *fn = m->p.fn;
    berth_expr inner = s->vector > 1 ? berth_tfn_ramp(fn, at->inner, s->vector) : at->inner;
    if (s->vector > 1 && fn->exprs.data[value].lanes == 1)
        value = berth_tfn_broadcast(fn, value, s->vector);
    berth_expr indices[] = {slot, at->outer, inner};
    if (!m->piece) return berth_tfn_store(fn, s->tile, indices, 3, value);
    berth_expr line = s->across ? at->inner : at->outer;
    berth_expr block = quotient(m, line, BERTH_MATRIX_BLOCK);
    berth_expr in_block = remainder_of(m, line, BERTH_MATRIX_BLOCK);
    if (s->across && s->vector > 1) in_block = berth_tfn_ramp(fn, in_block, s->vector);
    berth_expr blocks[] = {slot, block, s->across ? at->outer : in_block,
                           s->across ? in_block : inner};
    return berth_tfn_store(fn, s->tile, blocks, 4, value);
}

berth_stmt berth_matrix__stage(berth_matrix_plan *m, const berth_matrix_side *s, berth_expr step,
                               berth_expr slot) {
    berth_local_plan *p = &m->p;
    berth_tfn *fn = p->fn;
    if (s->panels) return berth_matrix__stage_panel(m, s, step, slot);
    int64_t items = BERTH_MATRIX_WARP * m->warp_rows * m->warp_columns;
    int64_t chunks = s->tile_lines * m->depth / s->vector;
    berth_var i = berth_tfn_var(fn, "i"), lane = berth_tfn_var(fn, "lane");
    berth_expr chunk = add(m, times(m, berth_local__ref(p, i), items), m->item);
    place at = place_of(m, s, chunk, step);
    uint32_t count = fn->vars.count;
    berth_expr *map = berth_arena_new_array(fn->module->arena, berth_expr, count + 1);
    berth_matrix__split(m, s->lines, at.line, s->across ? s->vector : 1, lane, map);
    berth_matrix__split(m, &p->sum, at.term, s->across ? 1 : s->vector, lane, map);
    berth_expr value = berth_tfn_substitute(fn, s->value, map, count);
    if (s->vector > 1) value = berth_vectorize_expr(fn, value, lane, s->vector, BERTH_NONE, 0);
    if (!value) return 0;
    berth_stmt body = store_to(m, s, &at, slot, value);
    if (s->condition)
        body = berth_tfn_if(fn, berth_tfn_substitute(fn, s->condition, map, count), body,
                            store_to(m, s, &at, slot, s->other));
    if (at.inside)
        body = berth_tfn_if(fn, at.inside, body,
                            store_to(m, s, &at, slot, berth_tfn_const(fn, s->dtype, 0)));
    if (chunks % items) body = berth_tfn_if(fn, berth_local__less(p, chunk, chunks), body, 0);
    return berth_tfn_for(fn, i, berth_tfn_index(fn, ceil_div(chunks, items)), BERTH_LOOP_UNROLL,
                         body);
}
