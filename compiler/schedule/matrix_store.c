// What follows the sum of a tile of matrix units: a work-item has two rows of two or four columns of
// every fragment (ir/tensor/intrinsics.def).
#include <string.h>

#include "compiler/schedule/matrix_tile.h"

typedef struct store_place {
    berth_var row, half, column;  // fragment, its upper or lower row, fragment
    berth_expr row_at, column_at;
    berth_expr sum;  // the first of the elements of that row
} store_place;

static berth_expr flat(const berth_local_plan *p, berth_expr outer, int64_t extent,
                       berth_expr inner) {
    return berth_local__add(p, berth_local__scale(p, outer, extent), inner);
}

static store_place place_of(berth_matrix_plan *m) {
    berth_local_plan *p = &m->p;
    berth_tfn *fn = p->fn;
    store_place at = {.row = berth_tfn_var(fn, "row"),
                      .half = berth_tfn_var(fn, "half"),
                      .column = berth_tfn_var(fn, "column")};
    berth_expr lane = berth_local__ref(p, m->lane);
    berth_expr across = berth_tfn_index(fn, BERTH_MATRIX_ACROSS);
    berth_expr warp =
        flat(p, berth_local__ref(p, p->group_y), m->warp_rows, berth_local__ref(p, m->warp_row));
    berth_expr fragment = flat(p, warp, m->rows, berth_local__ref(p, at.row));
    at.row_at = flat(p, fragment, BERTH_MATRIX_ROWS,
                     flat(p, berth_local__ref(p, at.half), 8,
                          berth_tfn_binary(fn, BERTH_BINARY_DIV, lane, across)));
    warp = flat(p, berth_local__ref(p, p->group_x), m->warp_columns,
                berth_local__ref(p, m->warp_column));
    fragment = flat(p, warp, m->columns, berth_local__ref(p, at.column));
    at.column_at = flat(
        p, fragment, berth_matrix__fragment_columns(m),
        berth_local__scale(p, berth_tfn_binary(fn, BERTH_BINARY_MOD, lane, across), m->beside));
    berth_expr number =
        flat(p, berth_local__ref(p, at.row), m->columns, berth_local__ref(p, at.column));
    at.sum = flat(p, number, 2 * m->beside,
                  berth_local__scale(p, berth_local__ref(p, at.half), m->beside));
    return at;
}

typedef struct sum_load {
    const berth_matrix_plan *plan;
    berth_expr at;
} sum_load;

static berth_expr replace_sum(berth_tfn *fn, berth_expr load, void *user) {
    const sum_load *l = user;
    return fn->exprs.data[load].load.buf == l->plan->p.reduction.acc
               ? berth_tfn_load(fn, l->plan->sums, &l->at, 1)
               : 0;
}

// All columns at once; 0: the store has no such form.
static berth_stmt vector(berth_matrix_plan *m, berth_stmt store, const store_place *at,
                         berth_var lane) {
    berth_local_plan *p = &m->p;
    berth_tfn *fn = p->fn;
    uint16_t lanes = (uint16_t)m->beside;
    if (p->columns.loops[p->columns.count - 1].extent % lanes) return 0;
    berth_expr *map = berth_arena_new_array(fn->module->arena, berth_expr, fn->vars.count + 1);
    uint32_t count = fn->vars.count;
    berth_local__split_index(p, &p->rows, at->row_at, map);
    berth_matrix__split(m, &p->columns, at->column_at, lanes, lane, map);
    berth_expr ramp = berth_tfn_ramp(fn, at->sum, lanes);
    store = berth_tfn_substitute_stmt(fn, store, map, count);
    return berth_vectorize_store(fn, store, lane, lanes, p->reduction.acc,
                                 berth_tfn_load(fn, m->sums, &ramp, 1));
}

// One column after the other; the last ones may not exist.
static berth_stmt singles(berth_matrix_plan *m, berth_stmt store, const store_place *at,
                          berth_var lane) {
    berth_local_plan *p = &m->p;
    berth_tfn *fn = p->fn;
    const berth_stmt_node node = fn->stmts.data[store];
    berth_expr column = berth_local__add(p, at->column_at, berth_local__ref(p, lane));
    sum_load from = {m, berth_local__add(p, at->sum, berth_local__ref(p, lane))};
    berth_expr indices[BERTH_MAX_RANK];
    memcpy(indices, berth_tfn_store_indices(fn, store), node.index_count * sizeof(berth_expr));
    berth_expr value = berth_replace_loads(fn, node.value, replace_sum, &from);
    store = berth_tfn_store(fn, node.buf, indices, node.index_count, value);
    berth_expr *map = berth_arena_new_array(fn->module->arena, berth_expr, fn->vars.count + 1);
    uint32_t count = fn->vars.count;
    berth_local__split_index(p, &p->rows, at->row_at, map);
    berth_local__split_index(p, &p->columns, column, map);
    store = berth_tfn_substitute_stmt(fn, store, map, count);
    if (p->columns.extent % m->beside)
        store = berth_tfn_if(fn, berth_local__less(p, column, p->columns.extent), store, 0);
    return berth_tfn_for(fn, lane, berth_tfn_index(fn, m->beside), BERTH_LOOP_UNROLL, store);
}

static berth_stmt unrolled(const berth_matrix_plan *m, berth_var var, int64_t extent,
                           berth_stmt body) {
    return berth_tfn_for(m->p.fn, var, berth_tfn_index(m->p.fn, extent), BERTH_LOOP_UNROLL, body);
}

// The accumulators to an array whose elements are read one by one or a row at once: in registers, where all loops
// around that are unrolled.
static void emit_sums(berth_matrix_plan *m) {
    berth_local_plan *p = &m->p;
    berth_tfn *fn = p->fn;
    berth_var number = berth_tfn_var(fn, "fragment");
    berth_expr at = berth_local__ref(p, number);
    uint16_t lanes = fn->bufs.data[m->acc].lanes;
    berth_expr ramp = berth_tfn_ramp(fn, berth_local__scale(p, at, lanes), lanes);
    berth_stmt store = berth_tfn_store(fn, m->sums, &ramp, 1, berth_tfn_load(fn, m->acc, &at, 1));
    berth_local__emit(p, berth_tfn_alloc(fn, m->sums));
    berth_local__emit(p, unrolled(m, number, 2 * m->beside * m->rows * m->columns / lanes, store));
}

void berth_matrix__epilogue(berth_matrix_plan *m) {
    berth_local_plan *p = &m->p;
    berth_tfn *fn = p->fn;
    emit_sums(m);
    store_place at = place_of(m);
    uint32_t first = p->out.count;
    for (int i = 0; i < p->reduction.epilogue_count; ++i) {
        berth_var lane = berth_tfn_var(fn, "lane");
        berth_stmt store = vector(m, p->reduction.epilogue[i], &at, lane);
        berth_local__emit(p, store ? store : singles(m, p->reduction.epilogue[i], &at, lane));
    }
    berth_stmt body = berth_local__take(p, first);
    if (p->columns.extent % m->column_side.tile_lines)
        body = berth_tfn_if(fn, berth_local__less(p, at.column_at, p->columns.extent), body, 0);
    if (p->rows.extent % m->row_side.tile_lines)
        body = berth_tfn_if(fn, berth_local__less(p, at.row_at, p->rows.extent), body, 0);
    body = unrolled(m, at.column, m->columns, body);
    body = unrolled(m, at.half, 2, body);
    berth_local__emit(p, unrolled(m, at.row, m->rows, body));
}
