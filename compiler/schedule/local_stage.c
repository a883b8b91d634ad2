// Staging of operands in local memory. Every work-item loads the same columns in all steps, so that
// where they lie is known before the loop; items beside each other load what lies beside each
// other.
#include "compiler/schedule/local_tile.h"

#include "ir/tensor/copies.h"

static int64_t ceil_div(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

static berth_expr zero(const berth_local_plan *p) {
    return berth_tfn_const(p->fn, p->fn->bufs.data[p->acc].dtype, 0);
}

// `condition` (0 = always) around a statement.
static berth_stmt guard(const berth_local_plan *p, berth_expr condition, berth_stmt body,
                        berth_stmt other) {
    return condition ? berth_tfn_if(p->fn, condition, body, other) : body;
}

static berth_expr both(const berth_local_plan *p, berth_expr a, berth_expr b) {
    if (!a || !b) return a ? a : b;
    return berth_tfn_binary(p->fn, BERTH_BINARY_AND, a, b);
}

static bool is_constant(const berth_local_plan *p, berth_expr id) {
    const berth_expr_node *node = &p->fn->exprs.data[id];
    return node->kind == BERTH_EXPR_INT || node->kind == BERTH_EXPR_FLOAT;
}

// A load where a condition holds, for all lanes, and else a number: as two stores one of which is a copy.
static bool is_padded_copy(const berth_local_plan *p, berth_expr value) {
    const berth_expr_node *node = &p->fn->exprs.data[value];
    return p->copies && node->kind == BERTH_EXPR_SELECT &&
           p->fn->exprs.data[node->b].kind == BERTH_EXPR_LOAD && is_constant(p, node->c) &&
           !berth_tfn_uses_var(p->fn, node->a, p->lane);
}

static bool is_zero(const berth_local_plan *p, berth_expr id) {
    const berth_expr_node *node = &p->fn->exprs.data[id];
    return node->kind == BERTH_EXPR_INT ? node->i == 0
                                        : node->kind == BERTH_EXPR_FLOAT && node->f == 0;
}

// Whether lanes are copied one by one, each with a condition of its own, in place of a branch between whole vectors and these:
// near the ends of lines work-items beside each other take both.
static bool copies_lanes(const berth_local_plan *p, berth_expr value) {
    const berth_expr_node *node = &p->fn->exprs.data[value];
    if (p->row_terms == 1 || !p->copies) return false;
    if (node->kind == BERTH_EXPR_SELECT && is_zero(p, node->c)) node = &p->fn->exprs.data[node->b];
    return node->kind == BERTH_EXPR_LOAD;
}

static berth_stmt store_element(const berth_local_plan *p, berth_buf buf, const berth_expr *at,
                                berth_expr value) {
    const berth_expr_node node = p->fn->exprs.data[value];
    if (!is_padded_copy(p, value) || copies_lanes(p, value))
        return berth_tfn_store(p->fn, buf, at, 2, value);
    return berth_tfn_if(p->fn, node.a, berth_tfn_store(p->fn, buf, at, 2, node.b),
                        berth_tfn_store(p->fn, buf, at, 2, node.c));
}

// i * step + item, the loop over i, and the guard that ends it.
typedef struct share {
    berth_var var;
    int64_t count;
    berth_expr at;
    berth_expr inside;  // 0 = always
} share;

static share share_of(berth_local_plan *p, int64_t extent, berth_expr item, int64_t items) {
    share s = {.var = berth_tfn_var(p->fn, "i"), .count = ceil_div(extent, items)};
    s.at = berth_local__add(p, berth_local__scale(p, berth_local__ref(p, s.var), items), item);
    if (extent % items) s.inside = berth_local__less(p, s.at, extent);
    return s;
}

static berth_stmt share_loop(const berth_local_plan *p, const share *s, berth_stmt body) {
    berth_stmt guarded = guard(p, s->inside, body, 0);
    return berth_tfn_for(p->fn, s->var, berth_tfn_index(p->fn, s->count), BERTH_LOOP_SERIAL,
                         guarded);
}

// Whether term k of a step is one of the sum; 0 where all steps are whole.
static berth_expr in_sum(const berth_local_plan *p, berth_expr step, berth_expr k) {
    if (p->sum.extent % p->depth == 0) return 0;
    berth_expr at = berth_local__add(p, berth_local__scale(p, step, p->depth), k);
    return berth_local__less(p, at, p->sum.extent);
}

// Sets map[loop] for the loops of the sum at term k of a step. A step whose terms are all of the innermost loop differs from them
// in that alone: where it begins is known once for all of them.
static void split_sum(const berth_local_plan *p, berth_expr step, berth_expr k, berth_expr *map) {
    berth_expr first = berth_local__scale(p, step, p->depth);
    berth_nest_loop innermost = p->sum.loops[p->sum.count - 1];
    if (innermost.extent % p->depth) {
        berth_local__split_index(p, &p->sum, berth_local__add(p, first, k), map);
        return;
    }
    berth_local__split_index(p, &p->sum, first, map);
    map[innermost.var] = berth_local__add(p, map[innermost.var], k);
}

// ---- columns ------------------------------------------------------------------------------------

// True when a condition that holds in the first and last lane holds in between: comparisons of
// forms linear in the lane, all of which must hold.
static bool is_convex(const berth_local_plan *p, berth_expr id) {
    const berth_expr_node node = p->fn->exprs.data[id];
    if (node.kind != BERTH_EXPR_BINARY) return false;
    if (node.op == BERTH_BINARY_AND) return is_convex(p, node.a) && is_convex(p, node.b);
    bool ordered = node.op == BERTH_BINARY_LT || node.op == BERTH_BINARY_LE ||
                   node.op == BERTH_BINARY_GT || node.op == BERTH_BINARY_GE;
    if (!ordered || !p->fn->exprs.data[node.a].is_index) return false;
    berth_ranges ranges = berth_ranges_collect(p->fn);
    for (int side = 0; side < 2; ++side) {
        bool linear = false;
        berth_linear form = berth_linear_of(p->fn, &ranges, side ? node.b : node.a);
        (void)berth_linear_stride(p->fn, &form, p->lane, &linear);
        if (!linear) return false;
    }
    return true;
}

static berth_expr at_lane(const berth_local_plan *p, berth_expr id, int64_t lane) {
    return berth_replace_var(p->fn, id, p->lane, berth_tfn_index(p->fn, lane));
}

// The whole vector in one load, and the condition for that (0 = always); 0 when it has no such
// form.
static berth_expr vector_value(const berth_local_plan *p, berth_expr value,
                               berth_expr *out_condition) {
    const berth_expr_node node = p->fn->exprs.data[value];
    *out_condition = 0;
    if (p->lanes == 1) return 0;
    if (node.kind == BERTH_EXPR_SELECT && berth_tfn_uses_var(p->fn, node.a, p->lane)) {
        if (!is_convex(p, node.a)) return 0;
        *out_condition = both(p, at_lane(p, node.a, 0), at_lane(p, node.a, (int64_t)p->lanes - 1));
        value = node.b;
    }
    if (berth_local__is_ragged(p)) {
        int64_t last = p->columns.loops[p->columns.count - 1].extent - p->lanes;
        *out_condition =
            both(p, *out_condition, berth_local__less(p, berth_local__column_block(p), last + 1));
    }
    return berth_vectorize_expr(p->fn, value, p->lane, p->lanes, BERTH_NONE, 0);
}

// Lane by lane; after the last column the last one again.
static berth_stmt scalar_columns(const berth_local_plan *p, const berth_expr *sum_map,
                                 uint32_t sum_count, berth_expr row) {
    berth_tfn *fn = p->fn;
    const berth_nest_loop *last = &p->columns.loops[p->columns.count - 1];
    berth_var lane = berth_tfn_var(fn, "lane");
    berth_expr at = p->lanes > 1 ? berth_local__ref(p, lane) : berth_tfn_index(fn, 0);
    berth_expr *map = berth_local__map(p);
    berth_expr column = berth_local__add(p, berth_local__column_block(p), at);
    if (berth_local__is_ragged(p)) column = berth_local__clamp(p, column, last->extent);
    map[last->var] = column;
    for (uint32_t v = 0; v < sum_count; ++v)
        if (sum_map[v]) map[v] = sum_map[v];
    berth_expr value = berth_tfn_substitute(fn, p->column_value, map, fn->vars.count);
    berth_expr place =
        berth_local__add(p, berth_local__scale(p, berth_local__vector_of_tile(p), p->lanes), at);
    berth_stmt store = store_element(p, p->column_tile, (berth_expr[]){row, place}, value);
    if (p->lanes == 1) return store;
    berth_loop_kind kind = copies_lanes(p, value) ? BERTH_LOOP_UNROLL : BERTH_LOOP_SERIAL;
    return berth_tfn_for(fn, lane, berth_tfn_index(fn, p->lanes), kind, store);
}

static berth_stmt store_all(const berth_local_plan *p, const berth_expr *at, berth_expr number) {
    if (p->lanes > 1) number = berth_tfn_broadcast(p->fn, number, p->lanes);
    return berth_tfn_store(p->fn, p->column_tile, at, 2, number);
}

// Of the current vector.
static void stage_columns(berth_local_plan *p, berth_expr step, berth_expr slot) {
    berth_tfn *fn = p->fn;
    share ks = share_of(p, p->depth, berth_local__ref(p, p->item_y), p->local_y);
    berth_expr inside = in_sum(p, step, ks.at);
    uint32_t count = fn->vars.count;
    berth_expr *map = berth_local__map(p);
    berth_expr *sum_map = berth_arena_new_array(fn->module->arena, berth_expr, count + 1);
    split_sum(p, step, ks.at, map);
    split_sum(p, step, ks.at, sum_map);
    berth_expr value = berth_tfn_substitute(fn, p->column_value, map, count);
    berth_expr column = berth_local__scale(p, berth_local__vector_of_tile(p), p->lanes);
    if (p->lanes > 1) column = berth_tfn_ramp(fn, column, p->lanes);
    berth_expr at[] = {berth_local__row_of(p, slot, p->depth, ks.at), column};
    berth_expr condition = 0, padding = 0, padded = 0;
    if (p->lanes > 1 && is_padded_copy(p, value)) {
        padding = fn->exprs.data[value].a;
        padded = fn->exprs.data[value].c;
        value = fn->exprs.data[value].b;
    }
    berth_expr vector = vector_value(p, value, &condition);
    if (condition && copies_lanes(p, value)) vector = 0;
    berth_stmt body = 0;
    if (!vector || condition) body = scalar_columns(p, sum_map, count, at[0]);
    if (vector)
        body = guard(p, condition, berth_tfn_store(fn, p->column_tile, at, 2, vector), body);
    body = guard(p, padding, body, padding ? store_all(p, at, padded) : 0);
    body = guard(p, inside, body, inside ? store_all(p, at, zero(p)) : 0);
    berth_local__emit(p, share_loop(p, &ks, body));
}

// ---- rows ---------------------------------------------------------------------------------------

// Whether the operand's elements lie beside each other along rows, not along the sum.
static bool runs_along_rows(const berth_local_plan *p) {
    berth_tfn *fn = p->fn;
    const berth_expr_node node = fn->exprs.data[p->row_value];
    if (node.kind != BERTH_EXPR_LOAD) return false;
    berth_expr indices[BERTH_MAX_RANK];
    for (int i = 0; i < node.index_count; ++i)
        indices[i] = berth_tfn_load_indices(fn, p->row_value)[i];
    berth_ranges ranges = berth_ranges_collect(fn);
    berth_linear form = berth_linear_access(fn, &ranges, node.load.buf, indices, node.index_count);
    bool linear = false;
    berth_var var = p->rows.loops[p->rows.count - 1].var;
    return berth_linear_stride(fn, &form, var, &linear) == 1 && linear;
}

// The operand of a row where k is the first of `row_terms` terms of a step, as a vector of them; 0: they do not lie beside each
// other.
static berth_expr row_vector(berth_local_plan *p, berth_expr row, berth_expr step, berth_expr k) {
    berth_tfn *fn = p->fn;
    berth_nest_loop innermost = p->sum.loops[p->sum.count - 1];
    if (innermost.extent % p->row_terms) return 0;
    if (fn->exprs.data[p->row_value].kind != BERTH_EXPR_LOAD) return 0;
    berth_var term = berth_tfn_var(fn, "term"), moved = innermost.var;
    uint32_t count = fn->vars.count;
    berth_expr *map = berth_arena_new_array(fn->module->arena, berth_expr, count + 1);
    split_sum(p, step, k, map);
    berth_local__split_index(p, &p->rows, row, map);
    map[moved] = berth_local__add(p, map[moved], berth_local__ref(p, term));
    berth_expr value = berth_tfn_substitute(fn, p->row_value, map, count);
    return berth_vectorize_expr(fn, value, term, (uint16_t)p->row_terms, BERTH_NONE, 0);
}

// Row of the operand that row `at` of the tile holds; after the last row the last one again.
static berth_expr row_at(const berth_local_plan *p, berth_expr at) {
    int64_t group_rows = p->local_y * p->tile_rows;
    berth_expr row =
        berth_local__add(p, berth_local__scale(p, berth_local__ref(p, p->group_y), group_rows), at);
    return p->rows.extent % group_rows ? berth_local__clamp(p, row, p->rows.extent) : row;
}

// `row_terms` elements of a row at once, where they lie beside each other: by all items of the group, one after another along
// the sum, then along rows.
static bool stage_row_vectors(berth_local_plan *p, berth_expr step, berth_expr slot) {
    berth_tfn *fn = p->fn;
    int64_t vectors = p->depth / p->row_terms, items = p->local_x * p->local_y;
    int64_t group_rows = p->local_y * p->tile_rows;
    if (p->row_terms == 1 || items % vectors) return false;
    berth_expr item =
        berth_local__add(p, berth_local__scale(p, berth_local__ref(p, p->item_y), p->local_x),
                         berth_local__ref(p, p->item_x));
    berth_expr by = berth_tfn_index(fn, vectors);
    share rows =
        share_of(p, group_rows, berth_tfn_binary(fn, BERTH_BINARY_DIV, item, by), items / vectors);
    berth_expr first = berth_tfn_binary(fn, BERTH_BINARY_MOD, item, by);
    first = berth_local__scale(p, first, p->row_terms);
    berth_expr inside = in_sum(p, step, first);
    berth_expr value = row_vector(p, row_at(p, rows.at), step, first);
    if (!value) return false;
    uint16_t lanes = (uint16_t)p->row_terms;
    berth_expr at[] = {berth_local__row_of(p, slot, group_rows, rows.at),
                       berth_tfn_ramp(fn, first, lanes)};
    berth_stmt none = 0, body = berth_tfn_store(fn, p->row_tile, at, 2, value);
    if (inside)
        none = berth_tfn_store(fn, p->row_tile, at, 2, berth_tfn_broadcast(fn, zero(p), lanes));
    berth_local__emit(p, share_loop(p, &rows, guard(p, inside, body, none)));
    return true;
}

static void stage_rows(berth_local_plan *p, berth_expr step, berth_expr slot) {
    berth_tfn *fn = p->fn;
    bool along = runs_along_rows(p);
    if (!along && stage_row_vectors(p, step, slot)) return;
    int64_t group_rows = p->local_y * p->tile_rows;
    berth_expr x = berth_local__ref(p, p->item_x), y = berth_local__ref(p, p->item_y);
    share rows = share_of(p, group_rows, along ? x : y, along ? p->local_x : p->local_y);
    share ks = share_of(p, p->depth, along ? y : x, along ? p->local_y : p->local_x);
    berth_expr inside = in_sum(p, step, ks.at);
    berth_expr row = row_at(p, rows.at);
    uint32_t count = fn->vars.count;
    berth_expr *map = berth_arena_new_array(fn->module->arena, berth_expr, count + 1);
    split_sum(p, step, ks.at, map);
    berth_local__split_index(p, &p->rows, row, map);
    berth_expr value = berth_tfn_substitute(fn, p->row_value, map, count);
    berth_expr at[] = {berth_local__row_of(p, slot, group_rows, rows.at), ks.at};
    berth_stmt body = store_element(p, p->row_tile, at, value);
    body = guard(p, inside, body, inside ? berth_tfn_store(fn, p->row_tile, at, 2, zero(p)) : 0);
    body = share_loop(p, &ks, body);
    berth_local__emit(p, share_loop(p, &rows, body));
}

void berth_local__stage(berth_local_plan *p, berth_expr step, berth_expr slot) {
    for (int64_t v = 0; v < p->vectors; ++v) {
        berth_local__use_vector(p, v);
        stage_columns(p, step, slot);
    }
    stage_rows(p, step, slot);
}

// ---- steps --------------------------------------------------------------------------------------

enum {
    least_for_products = 4
};  // tiles in turns: two that come, one that is computed with, one of the step before

static bool keeps_products(const berth_local_steps *s) {
    return s->copies && s->update_first && s->stages >= least_for_products;
}

static int64_t steps_ahead(const berth_local_steps *s) {
    return s->stages - (keeps_products(s) ? 2 : 1);
}

static void emit_barrier(berth_local_plan *p, const berth_local_steps *s, int64_t products) {
    int64_t ahead = steps_ahead(s), pending = ahead > 1 ? ahead - 1 : 0;
    berth_local__emit(p, s->copies ? berth_tfn_barrier_pending(p->fn, pending, products)
                                   : berth_tfn_barrier(p->fn));
}

void berth_local__steps(berth_local_plan *p, const berth_local_steps *s) {
    berth_tfn *fn = p->fn;
    int64_t ahead = steps_ahead(s);
    for (int64_t i = 0; i < ahead; ++i) {
        s->stage(s->user, berth_tfn_index(fn, i), berth_tfn_index(fn, i));
        if (s->copies || i + 1 == ahead) emit_barrier(p, s, 0);
    }
    berth_var step = berth_tfn_var(fn, "step");
    berth_expr at = berth_local__ref(p, step), stages = berth_tfn_index(fn, s->stages);
    berth_expr next = berth_local__add(p, at, berth_tfn_index(fn, ahead));
    uint32_t first = p->out.count;
    bool update_first = s->update_first && ahead;
    if (update_first) s->update(s->user, berth_tfn_binary(fn, BERTH_BINARY_MOD, at, stages));
    uint32_t behind = p->out.count;
    s->stage(s->user, next, berth_tfn_binary(fn, BERTH_BINARY_MOD, next, stages));
    if (ahead) {
        berth_stmt staged = berth_local__take(p, behind);
        berth_local__emit(p, berth_tfn_if(fn, berth_local__less(p, next, s->count), staged, 0));
    } else {
        emit_barrier(p, s, 0);
    }
    if (!update_first) s->update(s->user, berth_tfn_binary(fn, BERTH_BINARY_MOD, at, stages));
    emit_barrier(p, s, keeps_products(s));
    berth_stmt body = berth_local__take(p, first);
    berth_local__emit(
        p, berth_tfn_for(fn, step, berth_tfn_index(fn, s->count), BERTH_LOOP_SERIAL, body));
    if (keeps_products(s)) berth_local__emit(p, berth_tfn_barrier_pending(fn, 0, 0));
}
