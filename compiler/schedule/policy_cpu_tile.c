// Register tiles on CPUs: the nests of a tile and its rests, and what runs in parallel.
#include <string.h>

#include "compiler/schedule/cpu_tile.h"

enum { least_f64_lanes = 4 };

// Of a matrix unit: its tiles, and how many rows of them the sums of one register tile have.
enum { unit_rows = 16, unit_depth = 16, most_unit_tiles = 2 };

static bool in_unit(const berth_cpu_tile *p) {
    return p->intrinsic != BERTH_INTRINSIC_COUNT &&
           berth_intrinsic_is_of_unit(berth_intrinsic_get(p->intrinsic));
}

// ---- building
// -------------------------------------------------------------------------------------------------------

// Nests share the loops around the tile; each is the tile of one kind (whole or rest in rows and
// columns).
static berth_stmt tile_body(berth_cpu_tile *p, berth_nest nest, int tile_loops, int64_t valid) {
    if (p->column_tiles.extent) {  // around the others
        memmove(&nest.loops[1], nest.loops, (size_t)nest.count++ * sizeof(nest.loops[0]));
        nest.loops[0] = p->column_tiles;
    }
    uint16_t lanes = (uint16_t)nest.loops[nest.count - 1].extent;
    berth_status status = BERTH_OK;
    if (p->intrinsic == BERTH_INTRINSIC_COUNT)
        status = berth_schedule_register_tile(p->fn, &nest, tile_loops, lanes, valid);
    else if (!in_unit(p))
        status = berth_schedule_intrinsic_tile(p->fn, &nest, tile_loops, p->intrinsic, valid);
    else if (nest.loops[nest.count - tile_loops].extent % unit_rows == 0)
        status = berth_schedule_unit_tile(p->fn, &nest, tile_loops, p->intrinsic, valid);
    else  // rows that are no whole tile
        status = berth_schedule_intrinsic_tile(p->fn, &nest, tile_loops,
                                               BERTH_INTRINSIC_DOT_U8I8_X16, valid);
    if (status) {
        berth_decisions_refuse(p->fn, status);
        return 0;
    }
    return nest.body;
}

// Tiles of `rows`, in a loop: however many they are, the form is the same.
static berth_stmt loop_of_rows(berth_cpu_tile *p, berth_nest nest, int64_t rows, int64_t valid) {
    int loops = nest.count;
    berth_status status = berth_schedule_split(p->fn, &nest, 0, rows);
    if (status) {
        berth_decisions_refuse(p->fn, status);
        return 0;
    }
    berth_nest_loop row = nest.loops[0];
    berth_stmt body = tile_body(p, nest, loops, valid);
    if (!body) return 0;
    return berth_tfn_for(p->fn, row.var, berth_tfn_index(p->fn, row.extent), BERTH_LOOP_SERIAL,
                         body);
}

// Rows after whole tiles, fewer than one has: in smaller and smaller tiles. Of many sizes those without such rows have the
// loops, too, where others do: one form for all. 0: no size has such rows.
static berth_stmt few_rows(berth_cpu_tile *p, berth_nest nest, int64_t valid) {
    int64_t rows[BERTH_CPU_MOST_REST_TILES];
    berth_stmt parts[BERTH_CPU_MOST_REST_TILES];
    const int count = berth_cpu_tile__rest_tiles(p, rows);
    for (int i = 0; i < count; ++i) {
        berth_nest left = nest;
        const int64_t in_tiles = nest.loops[0].extent / rows[i] * rows[i];
        berth_status status =
            i + 1 < count ? berth_schedule_peel(p->fn, &nest, 0, in_tiles, &left) : BERTH_OK;
        if (status) {
            berth_decisions_refuse(p->fn, status);
            return 0;
        }
        parts[i] = loop_of_rows(p, nest, rows[i], valid);
        if (!parts[i]) return 0;
        nest = left;
    }
    return count > 1 ? berth_tfn_seq(p->fn, parts, (uint32_t)count) : count ? parts[0] : 0;
}

// The tile for one kind of columns: rows in whole tiles, then the rest of them. `inner` holds [row,
// column, lane] loops (row only when there is one); its body is the reduction.
static berth_stmt row_tiles(berth_cpu_tile *p, berth_nest inner, int64_t valid, berth_var tile_var,
                            int64_t chunk, berth_cpu_tile_shape rows) {
    berth_tfn *fn = p->fn;
    int loops = inner.count;
    berth_nest whole = inner;
    berth_nest rest = inner;
    berth_stmt whole_body = 0;
    berth_stmt rest_body = 0;
    const bool varies = berth_cpu_tile__tiles_vary(p);
    if (berth_cpu_tile__has_rest_of_rows(p)) {
        berth_status status = berth_schedule_peel(fn, &whole, 0, rows.full * p->rows, &rest);
        if (status) {
            berth_decisions_refuse(fn, status);
            return 0;
        }
        rest_body = varies ? few_rows(p, rest, valid) : tile_body(p, rest, loops, valid);
        if (!rest_body) return 0;
    }
    if (rows.full == 0) return rest_body;
    berth_status status = berth_schedule_split(fn, &whole, 0, p->rows);
    if (status) {
        berth_decisions_refuse(fn, status);
        return 0;
    }
    berth_var tile = whole.loops[0].var;
    whole_body = tile_body(p, whole, loops, valid);
    if (!whole_body) return 0;
    // tile = chunk number * tiles of a chunk + step
    int64_t chunks = berth_cpu_tile__ceil_div(rows.full, chunk);
    berth_var step = berth_tfn_var(fn, "tile");
    berth_expr at = berth_tfn_var_ref(fn, step);
    if (chunks > 1 || rest_body || varies) {
        berth_expr first = berth_tfn_binary(fn, BERTH_BINARY_MUL, berth_tfn_var_ref(fn, tile_var),
                                            berth_tfn_index(fn, chunk));
        at = berth_tfn_binary(fn, BERTH_BINARY_ADD, first, at);
    }
    whole_body = berth_replace_var_stmt(fn, whole_body, tile, at);
    whole_body = berth_tfn_for(fn, step, berth_tfn_index(fn, chunk), BERTH_LOOP_SERIAL, whole_body);
    if (!rest_body) return whole_body;
    berth_expr is_whole = berth_tfn_binary(fn, BERTH_BINARY_LT, berth_tfn_var_ref(fn, tile_var),
                                           berth_tfn_index(fn, chunks));
    return berth_tfn_if(fn, is_whole, whole_body, rest_body);
}

// Columns one by one, in a loop: however many they are, the form is the same.
static berth_stmt single_columns(berth_cpu_tile *p, berth_nest rest, int at, berth_var tile_var,
                                 int64_t chunk, berth_cpu_tile_shape rows) {
    berth_status status = berth_schedule_split(p->fn, &rest, at, 1);
    if (status) {
        berth_decisions_refuse(p->fn, status);
        return 0;
    }
    berth_nest_loop column = rest.loops[at];
    rest.loops[at].var = berth_tfn_var(p->fn, "column");
    rest.loops[at].extent = 1;
    berth_stmt body = row_tiles(p, rest, 0, tile_var, chunk, rows);
    if (!body) return 0;
    return berth_tfn_for(p->fn, column.var, berth_tfn_index(p->fn, column.extent),
                         BERTH_LOOP_SERIAL, body);
}

// Columns of whole tiles and the rest, as an IF on the column loop.
static berth_stmt column_tiles(berth_cpu_tile *p, berth_nest inner, berth_var column_var,
                               berth_var row_tile_var, int64_t chunk, berth_cpu_tile_shape columns,
                               berth_cpu_tile_shape rows) {
    berth_tfn *fn = p->fn;
    int64_t lanes = p->lanes;
    const int at = 1;  // position of the column loop in inner
    berth_nest whole = inner;
    berth_nest rest = inner;
    berth_stmt whole_body = 0;
    berth_stmt rest_body = 0;
    berth_status status = BERTH_OK;
    bool by_block = p->col >= 0;
    if (columns.rest) {
        BERTH_TRY_GOTO(
            status, berth_schedule_peel(fn, &whole, at,
                                        columns.full * p->columns * (by_block ? 1 : lanes), &rest));
        int64_t vectors = berth_cpu_tile__ceil_div(columns.rest, lanes);
        int64_t computed = by_block ? columns.rest : vectors * lanes;
        // The rest computes whole vectors; what lies after the last column is padding of the
        // weights.
        bool scalars = !by_block && !berth_cpu_tile__rest_is_padded(p, columns.rest);
        bool overlaps = scalars && berth_cpu_tile__rest_overlaps(p);
        if (overlaps) berth_nest_shift(fn, &rest, at, columns.rest - computed);
        if (!scalars || overlaps) rest.loops[at].extent = computed;
        int64_t width = by_block ? lanes : berth_cpu_tile__lanes_of_rest(p, columns.rest);
        if (berth_cpu_tile__varies(p, p->vec) && width == 1) {
            rest_body = single_columns(p, rest, at, row_tile_var, chunk, rows);
        } else {
            if (!by_block) BERTH_TRY_GOTO(status, berth_schedule_split(fn, &rest, at, width));
            rest_body = row_tiles(p, rest, by_block || scalars ? 0 : columns.rest, row_tile_var,
                                  chunk, rows);
        }
        if (!rest_body) return 0;
    }
    if (columns.full == 0) return rest_body;
    BERTH_TRY_GOTO(status,
                   berth_schedule_split(fn, &whole, at, p->columns * (by_block ? 1 : lanes)));
    berth_nest_loop outer = whole.loops[at];
    memmove(&whole.loops[at], &whole.loops[at + 1], (size_t)(whole.count - at - 1) * sizeof(outer));
    whole.count--;
    if (!by_block) BERTH_TRY_GOTO(status, berth_schedule_split(fn, &whole, at, lanes));
    whole.body =
        berth_replace_var_stmt(fn, whole.body, outer.var, berth_tfn_var_ref(fn, column_var));
    p->column_tiles = (berth_nest_loop){column_var, columns.full, BERTH_LOOP_SERIAL};
    whole_body = row_tiles(p, whole, 0, row_tile_var, chunk, rows);
    p->column_tiles.extent = 0;
    if (!whole_body || !rest_body) return whole_body;
    berth_expr is_whole = berth_tfn_binary(fn, BERTH_BINARY_LT, berth_tfn_var_ref(fn, column_var),
                                           berth_tfn_index(fn, columns.full));
    return berth_tfn_if(fn, is_whole, whole_body, rest_body);
done:
    berth_decisions_refuse(fn, status);
    return 0;
}

static berth_nest tile_nest(berth_cpu_tile *p) {
    berth_nest inner = {.body = p->nest.body};
    berth_nest_loop no_row = {.extent = 1, .kind = BERTH_LOOP_SERIAL};
    if (p->row < 0) no_row.var = berth_tfn_var(p->fn, "row");
    inner.loops[inner.count++] = p->row >= 0 ? p->nest.loops[p->row] : no_row;
    if (p->col >= 0) inner.loops[inner.count++] = p->nest.loops[p->col];
    inner.loops[inner.count++] = p->nest.loops[p->vec];
    return inner;
}

// The loops that are not in the tile, around it.
static void add_outer(const berth_cpu_tile *p, berth_nest *outer, int i) {
    outer->loops[outer->count] = p->nest.loops[i];
    outer->loops[outer->count++].kind = BERTH_LOOP_PARALLEL;
}

// Groups of rows in parallel; each computes its panel and goes through all columns with it.
static berth_stmt build_with_panel(berth_cpu_tile *p) {
    berth_tfn *fn = p->fn;
    berth_cpu_tile_shape columns = berth_cpu_tile__columns_of(p);
    berth_cpu_tile_shape rows = berth_cpu_tile__rows_of(p);
    int64_t chunk = p->chunk;
    int64_t chunks = berth_cpu_tile__row_groups(p);
    berth_nest_loop column_loop = {berth_tfn_var(fn, "columns"), columns.full + (columns.rest > 0),
                                   BERTH_LOOP_SERIAL};
    berth_nest_loop row_loop = {berth_tfn_var(fn, "rows"), chunks, BERTH_LOOP_PARALLEL};
    int64_t dims[2] = {chunk * p->rows, p->panel.pitch};
    berth_buf buf = berth_tfn_buffer(fn, "panel", BERTH_DTYPE_F32, 2, dims, BERTH_SCOPE_PRIVATE);
    berth_expr first = berth_tfn_index(fn, 0);
    if (chunks > 1)
        first = berth_tfn_binary(fn, BERTH_BINARY_MUL, berth_tfn_var_ref(fn, row_loop.var),
                                 berth_tfn_index(fn, dims[0]));
    berth_stmt fill = berth_cpu__panel_fill(fn, &p->panel, buf, first, dims[0]);
    berth_expr update = berth_cpu__panel_read(fn, &p->panel, buf, first, p->reduction.update);
    p->reduction.loops.body = berth_tfn_store(fn, p->reduction.acc, NULL, 0, update);
    p->nest.body = berth_reduction_emit(fn, &p->reduction);
    berth_nest outer = {0};
    berth_nest again = {0};
    for (int i = 0; i < p->nest.count; ++i) {
        if (berth_cpu_tile__in_tile(p, i)) continue;
        berth_nest *to = berth_cpu_tile__reads_panel_again(p, i) ? &again : &outer;
        add_outer(p, to, i);
        if (to == &again) again.loops[again.count - 1].kind = BERTH_LOOP_SERIAL;
    }
    again.loops[again.count++] = column_loop;
    again.body = column_tiles(p, tile_nest(p), column_loop.var, row_loop.var, chunk, columns, rows);
    if (!again.body) return 0;
    berth_stmt steps[] = {berth_tfn_alloc(fn, buf), fill, berth_nest_emit(fn, &again)};
    outer.body = berth_tfn_seq(fn, steps, 3);
    outer.loops[outer.count++] = row_loop;
    return berth_nest_emit(fn, &outer);
}

// Fills tile `tile` of a panel of weights with the columns of tile `column`.
static berth_stmt fill_weights(berth_cpu_tile *p, berth_buf buf, berth_var tile, berth_var column) {
    berth_tfn *fn = p->fn;
    const berth_cpu_weight_panel *panel = &p->weight_panel;
    berth_cpu_tile_shape columns = berth_cpu_tile__columns_of(p);
    berth_expr to = berth_tfn_var_ref(fn, tile);
    berth_expr width = berth_tfn_index(fn, panel->width);
    berth_expr first = berth_tfn_binary(fn, BERTH_BINARY_MUL, berth_tfn_var_ref(fn, column), width);
    berth_stmt whole = 0;
    if (columns.full)
        whole = berth_cpu__weight_panel_fill(fn, panel, buf, to, first, panel->width, p->lanes);
    if (!columns.rest) return whole;
    int64_t lanes = berth_cpu_tile__lanes_of_rest(p, columns.rest);
    int64_t computed = berth_cpu_tile__ceil_div(columns.rest, lanes) * lanes;
    first = berth_tfn_index(fn, columns.full * panel->width);
    berth_stmt rest = berth_cpu__weight_panel_fill(fn, panel, buf, to, first, computed, lanes);
    if (!whole) return rest;
    berth_expr is_whole = berth_tfn_binary(fn, BERTH_BINARY_LT, berth_tfn_var_ref(fn, column),
                                           berth_tfn_index(fn, columns.full));
    return berth_tfn_if(fn, is_whole, whole, rest);
}

// A few tiles of columns at a time, in parallel: their weights go into a panel, which all rows read.
static berth_stmt build_with_weight_panel(berth_cpu_tile *p) {
    berth_tfn *fn = p->fn;
    berth_cpu_tile_shape columns = berth_cpu_tile__columns_of(p), rows = berth_cpu_tile__rows_of(p);
    int64_t tiles = columns.full + (columns.rest > 0), chunk = p->chunk;
    berth_nest_loop group = {berth_tfn_var(fn, "columns"), berth_cpu_tile__ceil_div(tiles, chunk),
                             BERTH_LOOP_PARALLEL};
    berth_var row_tile = berth_tfn_var(fn, "rows"), tile = berth_tfn_var(fn, "panel_tile");
    berth_var column = berth_tfn_var(fn, "column_tile");
    berth_expr first_tile = berth_tfn_binary(fn, BERTH_BINARY_MUL, berth_tfn_var_ref(fn, group.var),
                                             berth_tfn_index(fn, chunk));
    berth_expr left =
        berth_tfn_binary(fn, BERTH_BINARY_SUB, berth_tfn_index(fn, tiles), first_tile);
    berth_expr count = tiles % chunk == 0 ? berth_tfn_index(fn, chunk)
                                          : berth_tfn_binary(fn, BERTH_BINARY_MIN,
                                                             berth_tfn_index(fn, chunk), left);
    berth_expr at = berth_tfn_binary(fn, BERTH_BINARY_ADD, first_tile, berth_tfn_var_ref(fn, tile));
    berth_buf buf = berth_cpu__weight_panel_buffer(fn, &p->weight_panel, chunk);
    berth_stmt fill = fill_weights(p, buf, tile, column);
    berth_expr first = berth_tfn_binary(fn, BERTH_BINARY_MUL, berth_tfn_var_ref(fn, column),
                                        berth_tfn_index(fn, p->weight_panel.width));
    berth_expr update = berth_cpu__weight_panel_read(
        fn, &p->weight_panel, buf, berth_tfn_var_ref(fn, tile), first, p->reduction.update);
    p->reduction.loops.body = berth_tfn_store(fn, p->reduction.acc, NULL, 0, update);
    p->nest.body = berth_reduction_emit(fn, &p->reduction);
    berth_stmt body = column_tiles(p, tile_nest(p), column, row_tile, 1, columns, rows);
    if (!body) return 0;
    fill = berth_tfn_for(fn, tile, count, BERTH_LOOP_SERIAL,
                         berth_replace_var_stmt(fn, fill, column, at));
    body = berth_tfn_for(fn, tile, count, BERTH_LOOP_SERIAL,
                         berth_replace_var_stmt(fn, body, column, at));
    body = berth_tfn_for(fn, row_tile, berth_tfn_index(fn, rows.full + (rows.rest > 0)),
                         BERTH_LOOP_SERIAL, body);
    berth_stmt steps[] = {berth_tfn_alloc(fn, buf), fill, body};
    berth_nest outer = {0};
    for (int i = 0; i < p->nest.count; ++i)
        if (!berth_cpu_tile__in_tile(p, i)) add_outer(p, &outer, i);
    outer.loops[outer.count++] = group;
    outer.body = berth_tfn_seq(fn, steps, 3);
    return berth_nest_emit(fn, &outer);
}

// The loops around the tiles, in the order that was decided. Columns that are a loop of their own stay
// in its place unless they come last.
static berth_nest outer_loops(const berth_cpu_tile *p, berth_nest_loop columns,
                              berth_nest_loop rows) {
    berth_nest outer = {0};
    bool placed = false;
    if (p->order == BERTH_TILE_ORDER_ROWS_FIRST) outer.loops[outer.count++] = rows;
    for (int i = 0; i < p->nest.count; ++i) {
        if (i == p->col && p->order != BERTH_TILE_ORDER_ROWS_COLUMNS) {
            outer.loops[outer.count++] = columns;
            placed = true;
        }
        if (!berth_cpu_tile__in_tile(p, i)) add_outer(p, &outer, i);
    }
    bool columns_outside = p->order == BERTH_TILE_ORDER_COLUMNS_ROWS;
    if (!placed && columns_outside) outer.loops[outer.count++] = columns;
    if ((rows.extent > 1 || berth_cpu_tile__tiles_vary(p)) &&
        p->order != BERTH_TILE_ORDER_ROWS_FIRST)
        outer.loops[outer.count++] = rows;
    if (!placed && !columns_outside) outer.loops[outer.count++] = columns;
    return outer;
}

static berth_stmt build(berth_cpu_tile *p) {
    berth_tfn *fn = p->fn;
    berth_nest inner = tile_nest(p);
    berth_cpu_tile_shape columns = berth_cpu_tile__columns_of(p);
    berth_cpu_tile_shape rows = berth_cpu_tile__rows_of(p);
    int64_t column_groups = columns.full + (columns.rest > 0);
    int64_t chunks = berth_cpu_tile__row_groups(p);
    berth_nest_loop column_loop = {berth_tfn_var(fn, "columns"), column_groups,
                                   BERTH_LOOP_PARALLEL};
    berth_nest_loop row_loop = {berth_tfn_var(fn, "rows"), chunks, BERTH_LOOP_PARALLEL};
    berth_nest outer = outer_loops(p, column_loop, row_loop);
    outer.body = column_tiles(p, inner, column_loop.var, row_loop.var, p->chunk, columns, rows);
    return outer.body ? berth_nest_emit(fn, &outer) : 0;
}

// Part of one loop of the sum goes innermost: what one instruction adds, as far apart in the
// operands as it takes them.
static bool split_depth(berth_cpu_tile *p, int loop, int64_t depth) {
    berth_nest *loops = &p->reduction.loops;
    berth_nest_loop moved = loops->loops[loop];
    if (moved.extent % depth) return false;
    memmove(&loops->loops[loop], &loops->loops[loop + 1],
            (size_t)(loops->count - loop - 1) * sizeof(moved));
    loops->loops[loops->count - 1] = moved;
    if (moved.extent > depth) {
        berth_status status = berth_schedule_split(p->fn, loops, loops->count - 1, depth);
        if (status) {
            berth_decisions_refuse(p->fn, status);
            return false;
        }
    }
    p->reduction.update = p->fn->stmts.data[loops->body].value;
    berth_cpu_tile__collect(p);
    for (uint32_t i = 0; i < p->loads.items.count; ++i) {
        bool linear = false;
        int64_t stride = berth_linear_stride(p->fn, &p->loads.items.data[i].at,
                                             loops->loops[loops->count - 1].var, &linear);
        if (!linear || (stride != 1 && stride != berth_intrinsic_step(p->intrinsic))) return false;
    }
    return p->loads.items.count == 2;
}

static bool split_some_depth(berth_cpu_tile *p, int64_t depth) {
    for (int i = p->reduction.loops.count - 1; i >= 0; --i) {
        berth_cpu_tile attempt = *p;
        if (!split_depth(&attempt, i, depth)) continue;
        *p = attempt;
        return true;
    }
    return false;
}

// 16 times the terms of a dot product before its last ones.
static bool split_unit_depth(berth_cpu_tile *p) {
    berth_nest *loops = &p->reduction.loops;
    int at = loops->count - 2;
    if (at < 0 || loops->loops[at].extent % unit_depth) return false;
    if (loops->loops[at].extent > unit_depth) {
        berth_status status = berth_schedule_split(p->fn, loops, at, unit_depth);
        if (status) {
            berth_decisions_refuse(p->fn, status);
            return false;
        }
    }
    p->reduction.update = p->fn->stmts.data[loops->body].value;
    berth_cpu_tile__collect(p);
    return true;
}

// Whether an operand is the same in all lanes: a product. Sums of f64 alone are faster in plain lines.
static bool shares_an_operand(const berth_cpu_tile *p) {
    for (uint32_t i = 0; i < p->loads.items.count; ++i)
        if (!berth_cpu_tile__is_vector(p, i)) return true;
    return false;
}

// Two tiles of rows by two of columns, for a sum in whole tiles of weights that lie in the order of a tile:
// [columns / 16][terms / 4][16][4]. Rows that no tile of 32 has are in one of 16, or outside the unit.
static bool choose_unit_tiles(berth_cpu_tile *p) {
    berth_nest *loops = &p->reduction.loops;
    int depth = loops->count - 2;
    bool linear[3] = {false};
    if (p->lanes != unit_rows || p->col >= 0 || p->row < 0 || loops->count < 2 ||
        p->nest.loops[p->row].extent < unit_rows || p->loads.items.count != 2 ||
        loops->loops[depth].extent != unit_depth)
        return false;
    int64_t columns = p->nest.loops[p->vec].extent;
    if (!berth_cpu_tile__rest_is_padded(p, columns)) return false;
    for (uint32_t i = 0; i < 2; ++i) {
        const berth_linear *at = &p->loads.items.data[i].at;
        bool weights = berth_cpu_tile__is_vector(p, i);
        int64_t by_term = berth_linear_stride(p->fn, at, loops->loops[depth].var, &linear[0]);
        int64_t by_last = berth_linear_stride(p->fn, at, loops->loops[depth + 1].var, &linear[1]);
        (void)berth_linear_stride(p->fn, at, p->nest.loops[p->row].var, &linear[2]);
        if (!linear[0] || !linear[1] || !linear[2] || by_last != 1 ||
            by_term != (weights ? 4 * unit_rows : 4))
            return false;
    }
    int64_t rows = p->nest.loops[p->row].extent;
    int64_t wanted = rows % (2 * unit_rows) < unit_rows ? 2 : 1;
    int64_t most = berth_cpu_tile__ceil_div(columns, unit_rows);
    if (rows < 2 * unit_rows) wanted = 1;
    if (most > most_unit_tiles) most = most_unit_tiles;
    p->columns = berth_decide(p->fn, BERTH_DECISION_COLUMNS, most, 1, most, "tiles of the unit");
    p->rows = unit_rows * wanted;
    return true;
}

// The nest with one instruction, or with none; 0 = it has no such form.
static berth_stmt tile_with(berth_cpu_tile p, berth_intrinsic intrinsic) {
    bool dot = intrinsic != BERTH_INTRINSIC_COUNT;
    p.intrinsic = intrinsic;
    berth_decisions_restart(p.fn);
    berth_decide(p.fn, BERTH_DECISION_INTRINSIC, intrinsic, intrinsic, intrinsic,
                 "instructions of the target that compute the sum");
    berth_cpu_tile__collect(&p);
    berth_cpu_tile__split_reduction(&p);
    if (dot && !split_some_depth(&p, berth_intrinsic_depth(intrinsic))) return 0;
    if (in_unit(&p) && !split_unit_depth(&p)) return 0;
    p.nest.body = berth_reduction_emit(p.fn, &p.reduction);
    berth_cpu_tile__collect(&p);
    bool is_f64 = p.fn->bufs.data[p.reduction.acc].dtype == BERTH_DTYPE_F64;
    if (!berth_cpu_tile__choose_loops(&p) || (is_f64 && !shares_an_operand(&p))) return 0;
    if (in_unit(&p)) {
        if (!choose_unit_tiles(&p)) return 0;
    } else {
        if (dot && p.lanes != berth_intrinsic_get(intrinsic)->operands[0].lanes) return 0;
        berth_cpu_tile__choose_sizes(&p);
    }
    berth_cpu_tile with_panel = p;
    berth_cpu_tile__choose_groups(&with_panel, !dot && !is_f64);  // panels are of f32
    if (berth_decisions_explain(p.fn)) berth_cpu_tile__explain(&with_panel);
    if (!with_panel.uses_panel && !with_panel.uses_weight_panel) return build(&with_panel);
    berth_stmt tiles = with_panel.uses_panel ? build_with_panel(&with_panel)
                                             : build_with_weight_panel(&with_panel);
    if (tiles) return tiles;
    berth_cpu_tile__choose_groups(&p, false);
    return build(&p);
}

berth_stmt berth_cpu__tile_reduction(berth_tfn *fn, const berth_nest *nest,
                                     const berth_cpu_facts *facts) {
    berth_cpu_tile p = {.fn = fn, .facts = facts, .nest = *nest};
    if (!berth_reduction_parse(fn, nest->body, &p.reduction)) return 0;
    berth_dtype dtype = fn->bufs.data[p.reduction.acc].dtype;
    bool in_registers = dtype == BERTH_DTYPE_F32 || dtype == BERTH_DTYPE_I32 ||
                        dtype == BERTH_DTYPE_I8 || dtype == BERTH_DTYPE_U8;
    berth_cpu_facts of_f64 = *facts;
    of_f64.lanes = facts->lanes / 2;
    if (dtype == BERTH_DTYPE_F64 && facts->target && of_f64.lanes >= least_f64_lanes) {
        in_registers = true;
        p.facts = &of_f64;
    }
    if (!in_registers || p.reduction.epilogue_count == 0) return 0;
    for (int i = 0; i < nest->count; ++i)
        if (nest->loops[i].extent <= 0) return 0;
    berth_cpu__clamp_window(fn, nest, &p.reduction);
    bool has_intrinsics = dtype == BERTH_DTYPE_I32 && facts->target;
    for (int i = 0; has_intrinsics && i < BERTH_INTRINSIC_COUNT; ++i) {
        if (berth_decision_given(fn, BERTH_DECISION_INTRINSIC, i) != i ||
            berth_intrinsic_get((berth_intrinsic)i)->operands[0].dtype != dtype ||
            !berth_intrinsic_serves((berth_intrinsic)i, facts->target) ||
            (berth_intrinsic_is_of_unit(berth_intrinsic_get((berth_intrinsic)i)) &&
             (facts->any_size || fn->same_tiles || facts->lanes != unit_rows)))
            continue;
        berth_stmt tiles = tile_with(p, (berth_intrinsic)i);
        if (tiles) return tiles;
    }
    return tile_with(p, BERTH_INTRINSIC_COUNT);
}
