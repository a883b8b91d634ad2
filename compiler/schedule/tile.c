// Register tiles: accumulators of a whole tile of outputs, with the reduction outermost (Goto and
// van de Geijn 2008, "Anatomy of High-Performance Matrix Multiplication", section 4).
#include <string.h>

#include "compiler/schedule/tensorize.h"

#define MAX_POSITIONS 64
#define MAX_PIECES 16  // statements of an epilogue in vectors

typedef struct tiler {
    berth_tfn *fn;
    berth_reduction reduction;
    berth_ranges ranges;     // of all loops of the nest
    berth_nest_loop row;     // extent 1 when there is none
    berth_nest_loop column;  // vectors of a row; extent 1 when there is none
    berth_nest_loop lane;    // extent = lanes
    bool has_row;
    bool has_column;
    uint16_t lanes;
    berth_buf acc;              // vectors, [row * columns + column]
    berth_var marker;           // stands for the accumulator while expressions are vectorised
    berth_intrinsic intrinsic;  // BERTH_INTRINSIC_COUNT: none
    BERTH_VEC(berth_stmt) out;
} tiler;

static berth_status refuse(const char *what) {
    return berth_status_make(BERTH_FAILED_PRECONDITION, "schedule: register tile: %s", what);
}

static void emit(tiler *t, berth_stmt stmt) {
    berth_vec_push(t->fn->module->arena, &t->out, stmt);
}

static berth_stmt take(tiler *t) {
    berth_stmt seq = berth_tfn_seq(t->fn, t->out.data, t->out.count);
    memset(&t->out, 0, sizeof(t->out));
    return seq;
}

static berth_expr position(tiler *t, int64_t row, int64_t column) {
    return berth_tfn_index(t->fn, row * t->column.extent + column);
}

static berth_expr acc_at(tiler *t, int64_t row, int64_t column) {
    berth_expr at = position(t, row, column);
    return berth_tfn_load(t->fn, t->acc, &at, 1);
}

// Map from the tile's variables to one position, for substitution.
static berth_expr *position_map(tiler *t, int64_t row, int64_t column, bool with_row) {
    berth_tfn *fn = t->fn;
    berth_expr *map = berth_arena_new_array(fn->module->arena, berth_expr, fn->vars.count);
    if (t->has_row && with_row) map[t->row.var] = berth_tfn_index(fn, row);
    if (t->has_column) map[t->column.var] = berth_tfn_index(fn, column);
    if (t->lanes == 1) map[t->lane.var] = berth_tfn_index(fn, 0);
    if (with_row) map[t->marker] = acc_at(t, row, column);
    return map;
}

static berth_expr replace_acc(berth_tfn *fn, berth_expr load, void *user) {
    const tiler *t = user;
    return fn->exprs.data[load].load.buf == t->reduction.acc ? berth_tfn_var_ref(fn, t->marker) : 0;
}

// The value with the accumulator as marker, in vectors when lanes > 1; 0 when it has no vector
// form.
static berth_expr widen(tiler *t, berth_expr id) {
    if (t->lanes == 1) return berth_replace_loads(t->fn, id, replace_acc, t);
    berth_expr marker = berth_tfn_var_ref(t->fn, t->marker);
    return berth_vectorize_tile_expr(t->fn, id, t->lane.var, t->lanes, t->reduction.acc, marker);
}

// ---- update
// ---------------------------------------------------------------------------------------------------------

static bool loads_vectors(const berth_tfn *fn, berth_expr id) {
    const berth_expr_node *node = &fn->exprs.data[id];
    if (!id || node->kind == BERTH_EXPR_INT || node->kind == BERTH_EXPR_FLOAT ||
        node->kind == BERTH_EXPR_VAR)
        return false;
    if (node->kind == BERTH_EXPR_LOAD)
        return node->lanes > 1 && fn->bufs.data[node->load.buf].scope != BERTH_SCOPE_REGISTER;
    return loads_vectors(fn, node->a) || loads_vectors(fn, node->b) || loads_vectors(fn, node->c);
}

// Vector loads that all rows share are loaded once. A load that a condition guards is made under
// that condition only, so there the choice as a whole is what is shared.
static berth_expr hoist(tiler *t, berth_expr id, berth_expr *done, uint32_t done_count) {
    berth_tfn *fn = t->fn;
    if (!id || (id < done_count && done[id])) return id ? done[id] : 0;
    const berth_expr_node node = fn->exprs.data[id];
    bool plain =
        node.kind == BERTH_EXPR_INT || node.kind == BERTH_EXPR_FLOAT || node.kind == BERTH_EXPR_VAR;
    bool whole = node.kind == BERTH_EXPR_LOAD || node.kind == BERTH_EXPR_SELECT;
    berth_expr result = id;
    if (whole && node.lanes > 1 && loads_vectors(fn, id) &&
        !berth_tfn_uses_var(fn, id, t->row.var) && !berth_tfn_uses_var(fn, id, t->marker)) {
        berth_var var = berth_tfn_let_var(fn, "w", (berth_dtype)node.dtype, node.lanes, false);
        emit(t, berth_tfn_let(fn, var, id));
        result = berth_tfn_var_ref(fn, var);
    } else if (!plain && !whole) {
        berth_expr a = hoist(t, node.a, done, done_count);
        berth_expr b = hoist(t, node.b, done, done_count);
        result = berth_tfn_rebuild(fn, id, a, b, hoist(t, node.c, done, done_count));
    }
    if (id < done_count) done[id] = result;
    return result;
}

static void emit_update(tiler *t, berth_expr update, bool shared) {
    berth_tfn *fn = t->fn;
    berth_expr by_column[MAX_POSITIONS];
    for (int64_t c = 0; c < t->column.extent; ++c) {
        berth_expr *map = position_map(t, 0, c, false);
        by_column[c] = berth_tfn_substitute(fn, update, map, t->marker);
        if (!shared) continue;
        uint32_t count = fn->exprs.count;
        berth_expr *done = berth_arena_new_array(fn->module->arena, berth_expr, count);
        by_column[c] = hoist(t, by_column[c], done, count);
    }
    for (int64_t r = 0; r < t->row.extent; ++r)
        for (int64_t c = 0; c < t->column.extent; ++c) {
            berth_expr *map = position_map(t, r, c, true);
            berth_expr value = berth_tfn_substitute(fn, by_column[c], map, t->marker + 1);
            berth_expr at = position(t, r, c);
            emit(t, berth_tfn_store(fn, t->acc, &at, 1, value));
        }
}

// ---- epilogue
// -------------------------------------------------------------------------------------------------------

// Whether the lanes of a store are one distance apart, not in blocks.
static bool stores_evenly(const tiler *t, berth_stmt store) {
    const berth_stmt_node node = t->fn->stmts.data[store];
    bool linear = false;
    berth_linear at = berth_linear_access(t->fn, &t->ranges, node.buf,
                                          berth_tfn_store_indices(t->fn, store), node.index_count);
    (void)berth_linear_stride(t->fn, &at, t->lane.var, &linear);
    return linear;
}

static bool emit_vector_epilogue(tiler *t) {
    berth_tfn *fn = t->fn;
    berth_stmt stores[8];
    if (t->lanes == 1) return false;
    berth_expr marker = berth_tfn_var_ref(fn, t->marker);
    for (int i = 0; i < t->reduction.epilogue_count; ++i) {
        if (!stores_evenly(t, t->reduction.epilogue[i])) return false;
        stores[i] = berth_vectorize_tile_store(fn, t->reduction.epilogue[i], &t->ranges,
                                               t->lane.var, t->lanes, t->reduction.acc, marker);
        if (!stores[i]) return false;
    }
    for (int64_t r = 0; r < t->row.extent; ++r)
        for (int64_t c = 0; c < t->column.extent; ++c)
            for (int i = 0; i < t->reduction.epilogue_count; ++i) {
                berth_expr *map = position_map(t, r, c, true);
                emit(t, berth_tfn_substitute_stmt(fn, stores[i], map, t->marker + 1));
            }
    return true;
}

typedef struct spill {
    tiler *t;
    berth_buf buf;
    berth_expr at;
} spill;

static berth_expr load_spilled(berth_tfn *fn, berth_expr load, void *user) {
    spill *s = user;
    return fn->exprs.data[load].load.buf == s->t->reduction.acc
               ? berth_tfn_load(fn, s->buf, &s->at, 1)
               : 0;
}

// An epilogue that takes the accumulators from memory.
typedef struct epilogue {
    tiler *t;
    spill s;
    berth_expr row;
    berth_stmt out[MAX_PIECES];  // of one row
    uint32_t count;
} epilogue;

static bool in_unit(const tiler *t) {
    return t->intrinsic != BERTH_INTRINSIC_COUNT &&
           berth_intrinsic_is_of_unit(berth_intrinsic_get(t->intrinsic));
}

static void emit_unit_spill(epilogue *e);

static void emit_spill(epilogue *e) {
    tiler *t = e->t;
    berth_tfn *fn = t->fn;
    int64_t columns = t->column.extent * t->lanes;
    emit(t, berth_tfn_alloc(fn, e->s.buf));
    if (in_unit(t)) {
        emit_unit_spill(e);
        return;
    }
    for (int64_t r = 0; r < t->row.extent; ++r)
        for (int64_t c = 0; c < t->column.extent; ++c) {
            berth_expr at = berth_tfn_index(fn, r * columns + c * t->lanes);
            if (t->lanes > 1) at = berth_tfn_ramp(fn, at, t->lanes);
            emit(t, berth_tfn_store(fn, e->s.buf, &at, 1, acc_at(t, r, c)));
        }
}

// The place of column `column` of the row in the spilled tile.
static berth_expr spilled_at(const epilogue *e, berth_expr column) {
    berth_tfn *fn = e->t->fn;
    berth_expr pitch = berth_tfn_index(fn, e->t->column.extent * e->t->lanes);
    return berth_tfn_binary(fn, BERTH_BINARY_ADD,
                            berth_tfn_binary(fn, BERTH_BINARY_MUL, e->row, pitch), column);
}

// Statement `i` of the epilogue for the row and the lane given; columns as in position_map.
static berth_stmt epilogue_store(const epilogue *e, int i, berth_expr column, berth_expr lane) {
    tiler *t = e->t;
    berth_tfn *fn = t->fn;
    berth_expr *map = berth_arena_new_array(fn->module->arena, berth_expr, fn->vars.count);
    if (t->has_row) map[t->row.var] = e->row;
    if (t->has_column) map[t->column.var] = column;
    map[t->lane.var] = lane;
    return berth_tfn_substitute_stmt(fn, t->reduction.epilogue[i], map, fn->vars.count);
}

// The epilogue for `width` columns from `at` on in vectors of that many lanes; false: it has no
// such form.
static bool emit_piece(epilogue *e, int64_t at, uint16_t width) {
    tiler *t = e->t;
    berth_tfn *fn = t->fn;
    berth_var piece = berth_tfn_var(fn, "piece");
    berth_nest lanes = {.loops = {{piece, width, BERTH_LOOP_SIMD}}, .count = 1};
    berth_ranges ranges = berth_ranges_with(fn, &t->ranges, &lanes);
    berth_expr lane = berth_tfn_binary(fn, BERTH_BINARY_ADD, berth_tfn_var_ref(fn, piece),
                                       berth_tfn_index(fn, at % t->lanes));
    berth_expr column = berth_tfn_index(fn, at / t->lanes);
    berth_var acc = berth_tfn_let_var(fn, "acc", fn->bufs.data[t->acc].dtype, width, false);
    berth_expr from = berth_tfn_ramp(fn, spilled_at(e, berth_tfn_index(fn, at)), width);
    berth_expr sums = berth_tfn_load(fn, e->s.buf, &from, 1);
    if (e->count + (uint32_t)t->reduction.epilogue_count > MAX_PIECES) return false;
    berth_stmt stores[8];
    for (int i = 0; i < t->reduction.epilogue_count; ++i) {
        berth_stmt store = epilogue_store(e, i, column, lane);
        if (!berth_store_is_contiguous(fn, &ranges, store, piece)) return false;
        store = berth_vectorize_tile_store(fn, store, &ranges, piece, width, t->reduction.acc,
                                           berth_tfn_var_ref(fn, acc));
        if (!store) return false;
        stores[i] = berth_replace_var_stmt(fn, store, acc, sums);
    }
    for (int i = 0; i < t->reduction.epilogue_count; ++i) e->out[e->count++] = stores[i];
    return true;
}

// Vectors of the epilogue, from the widest on that fit; how many of `valid` columns they reach.
static int64_t emit_pieces(epilogue *e, int64_t valid) {
    tiler *t = e->t;
    int64_t at = 0;
    if (!berth_dtype_is_float(t->fn->bufs.data[t->acc].dtype) && !in_unit(t)) return 0;
    while (at < valid) {
        int64_t left = t->lanes - at % t->lanes;
        int64_t width = t->lanes;
        if (left > valid - at) left = valid - at;
        while (width > 1 && (width > left || !emit_piece(e, at, (uint16_t)width))) width /= 2;
        if (width <= 1) break;
        at += width;
    }
    return at;
}

// The epilogue for one element, the accumulator of which lies in column `c` of the spilled tile.
static berth_stmt scalar_stores(epilogue *e, berth_expr c, berth_expr column, berth_expr lane) {
    berth_tfn *fn = e->t->fn;
    berth_stmt stores[8];
    e->s.at = spilled_at(e, c);
    for (int i = 0; i < e->t->reduction.epilogue_count; ++i) {
        berth_stmt store = epilogue_store(e, i, column, lane);
        const berth_stmt_node node = fn->stmts.data[store];
        berth_expr indices[BERTH_MAX_RANK];
        memcpy(indices, berth_tfn_store_indices(fn, store), node.index_count * sizeof(berth_expr));
        berth_expr value = berth_replace_loads(fn, node.value, load_spilled, &e->s);
        stores[i] = berth_tfn_store(fn, node.buf, indices, node.index_count, value);
    }
    return berth_tfn_seq(fn, stores, (uint32_t)e->t->reduction.epilogue_count);
}

// Column by column, of which each lies together: what C compilers make vectors of.
static berth_stmt whole_columns(epilogue *e) {
    tiler *t = e->t;
    berth_tfn *fn = t->fn;
    berth_var column = berth_tfn_var(fn, "column"), lane = berth_tfn_var(fn, "lane");
    berth_expr column_ref = berth_tfn_var_ref(fn, column), lane_ref = berth_tfn_var_ref(fn, lane);
    berth_expr c =
        berth_tfn_binary(fn, BERTH_BINARY_MUL, column_ref, berth_tfn_index(fn, t->lanes));
    c = berth_tfn_binary(fn, BERTH_BINARY_ADD, c, lane_ref);
    berth_stmt body = scalar_stores(e, c, column_ref, lane_ref);
    body = berth_tfn_for(fn, lane, berth_tfn_index(fn, t->lanes), BERTH_LOOP_SIMD, body);
    return berth_tfn_for(fn, column, berth_tfn_index(fn, t->column.extent), BERTH_LOOP_SERIAL,
                         body);
}

// The epilogue one by one, for the columns [from, valid).
static berth_stmt scalar_columns(epilogue *e, int64_t from, int64_t valid) {
    tiler *t = e->t;
    berth_tfn *fn = t->fn;
    if (from == 0 && t->lanes > 1 && t->has_column && valid == t->column.extent * t->lanes)
        return whole_columns(e);
    berth_var var = berth_tfn_var(fn, "c");
    berth_expr c = berth_tfn_var_ref(fn, var);
    if (from) c = berth_tfn_binary(fn, BERTH_BINARY_ADD, c, berth_tfn_index(fn, from));
    berth_expr lanes = berth_tfn_index(fn, t->lanes);
    berth_expr column = berth_tfn_binary(fn, BERTH_BINARY_DIV, c, lanes);
    berth_expr lane = t->has_column || t->lanes > 1
                          ? berth_tfn_binary(fn, BERTH_BINARY_MOD, c, lanes)
                          : berth_tfn_index(fn, 0);
    berth_stmt body = scalar_stores(e, c, column, lane);
    return berth_tfn_for(fn, var, berth_tfn_index(fn, valid - from), BERTH_LOOP_SIMD, body);
}

// Accumulators go through memory, and the epilogue, for the columns that exist, is a loop of rows:
// in vectors as wide as it has them, then one by one.
static void emit_spilled_epilogue(tiler *t, int64_t valid) {
    berth_tfn *fn = t->fn;
    int64_t dims[] = {t->row.extent * t->column.extent * t->lanes};
    epilogue e = {.t = t, .s = {.t = t}};
    e.s.buf =
        berth_tfn_buffer(fn, "tile", fn->bufs.data[t->acc].dtype, 1, dims, BERTH_SCOPE_PRIVATE);
    emit_spill(&e);
    berth_var row = berth_tfn_var(fn, "r");
    e.row = berth_tfn_var_ref(fn, row);
    int64_t reached = emit_pieces(&e, valid);
    berth_stmt parts[] = {berth_tfn_seq(fn, e.out, e.count), 0};
    if (reached < valid) parts[1] = scalar_columns(&e, reached, valid);
    berth_stmt body = reached == 0       ? parts[1]
                      : reached == valid ? parts[0]
                                         : berth_tfn_seq(fn, parts, 2);
    emit(t, berth_tfn_for(fn, row, berth_tfn_index(fn, t->row.extent), BERTH_LOOP_SERIAL, body));
}

// ---- matrix units -------------------------------------------------------------------------------

// Sums of 16 x 16 results each, [row / 16 * columns + column]. The sum's last two loops, of 16 and of 4 terms,
// go into the instruction.
enum { unit_rows = 16, unit_lanes = 256, unit_operand_lanes = 1024 };

// lane / by % extent
static berth_expr digit(berth_tfn *fn, uint16_t lanes, int64_t by, int64_t extent) {
    berth_expr at = berth_tfn_ramp(fn, berth_tfn_index(fn, 0), lanes);
    if (by > 1) at = berth_tfn_binary(fn, BERTH_BINARY_DIV, at, berth_tfn_index(fn, by));
    if (by * extent < lanes)
        at = berth_tfn_binary(fn, BERTH_BINARY_MOD, at, berth_tfn_index(fn, extent));
    return at;
}

// The 16 x 64 activations of rows from `row` on; the 64 x 16 weights of a column of vectors.
static berth_expr unit_operand(tiler *t, berth_expr load, const berth_nest *depth, int64_t row,
                               int64_t column, bool weights) {
    berth_tfn *fn = t->fn;
    berth_expr *map = berth_arena_new_array(fn->module->arena, berth_expr, fn->vars.count + 1);
    map[depth->loops[0].var] = digit(fn, unit_operand_lanes, weights ? 64 : 4, 16);
    map[depth->loops[1].var] = digit(fn, unit_operand_lanes, 1, 4);
    if (weights) map[t->lane.var] = digit(fn, unit_operand_lanes, 4, 16);
    if (weights && t->has_column) map[t->column.var] = berth_tfn_index(fn, column);
    if (!weights)
        map[t->row.var] = berth_tfn_binary(fn, BERTH_BINARY_ADD, berth_tfn_index(fn, row),
                                           digit(fn, unit_operand_lanes, 64, 16));
    return berth_tfn_substitute(fn, load, map, fn->vars.count);
}

// The activations and the weights of acc + i32(x) * i32(w); false: the update is something else.
static bool find_unit_operands(const tiler *t, berth_expr *out_x, berth_expr *out_w) {
    const berth_tfn *fn = t->fn;
    const berth_expr_node sum = fn->exprs.data[t->reduction.update];
    if (sum.kind != BERTH_EXPR_BINARY || sum.op != BERTH_BINARY_ADD) return false;
    bool first = fn->exprs.data[sum.a].kind == BERTH_EXPR_LOAD;
    const berth_expr_node acc = fn->exprs.data[first ? sum.a : sum.b];
    const berth_expr_node product = fn->exprs.data[first ? sum.b : sum.a];
    if (acc.kind != BERTH_EXPR_LOAD || acc.load.buf != t->reduction.acc ||
        product.kind != BERTH_EXPR_BINARY || product.op != BERTH_BINARY_MUL)
        return false;
    *out_x = *out_w = 0;
    const berth_expr sides[2] = {product.a, product.b};
    for (int i = 0; i < 2; ++i) {
        const berth_expr_node cast = fn->exprs.data[sides[i]];
        const berth_expr_node load = fn->exprs.data[cast.a];
        if (cast.kind != BERTH_EXPR_CAST || load.kind != BERTH_EXPR_LOAD) return false;
        bool moves = berth_tfn_uses_var(fn, cast.a, t->lane.var);
        if (moves && load.dtype == BERTH_DTYPE_I8 && !berth_tfn_uses_var(fn, cast.a, t->row.var))
            *out_w = cast.a;
        if (!moves && load.dtype == BERTH_DTYPE_U8 && berth_tfn_uses_var(fn, cast.a, t->row.var))
            *out_x = cast.a;
    }
    return *out_x && *out_w;
}

// Every sum to where its results lie in the tile in memory.
static void emit_unit_spill(epilogue *e) {
    tiler *t = e->t;
    berth_tfn *fn = t->fn;
    int64_t pitch = t->column.extent * t->lanes;
    for (int64_t r = 0; r < t->row.extent / unit_rows; ++r)
        for (int64_t c = 0; c < t->column.extent; ++c) {
            berth_expr row = berth_tfn_binary(fn, BERTH_BINARY_MUL, digit(fn, unit_lanes, 16, 16),
                                              berth_tfn_index(fn, pitch));
            berth_expr at =
                berth_tfn_binary(fn, BERTH_BINARY_ADD, row, digit(fn, unit_lanes, 1, 16));
            at = berth_tfn_binary(fn, BERTH_BINARY_ADD, at,
                                  berth_tfn_index(fn, r * unit_rows * pitch + c * t->lanes));
            emit(t, berth_tfn_store(fn, e->s.buf, &at, 1, acc_at(t, r, c)));
        }
}

static berth_status unit_sums(tiler *t) {
    berth_tfn *fn = t->fn;
    berth_nest *loops = &t->reduction.loops;
    berth_expr x = 0;
    berth_expr w = 0;
    int64_t zero = 1;
    bool rows = t->has_row && t->row.extent % unit_rows == 0;
    if (!rows || loops->count < 2 || loops->loops[loops->count - 1].extent != 4 ||
        loops->loops[loops->count - 2].extent != 16 ||
        !berth_tfn_const_value(fn, t->reduction.init, &zero) || zero != 0 ||
        !find_unit_operands(t, &x, &w))
        return refuse("no product of whole tiles of the matrix unit");
    berth_nest depth = {.loops = {loops->loops[loops->count - 2], loops->loops[loops->count - 1]}};
    loops->count -= 2;
    int64_t sums = t->row.extent / unit_rows * t->column.extent;
    t->acc = berth_tfn_buffer(fn, "acc", BERTH_DTYPE_I32, 1, &sums, BERTH_SCOPE_REGISTER);
    fn->bufs.data[t->acc].lanes = unit_lanes;
    berth_expr tiles_x[MAX_POSITIONS];
    berth_expr tiles_w[MAX_POSITIONS];
    for (int64_t r = 0; r < t->row.extent / unit_rows; ++r)
        tiles_x[r] = unit_operand(t, x, &depth, r * unit_rows, 0, false);
    for (int64_t c = 0; c < t->column.extent; ++c)
        tiles_w[c] = unit_operand(t, w, &depth, 0, c, true);
    for (int64_t s = 0; s < sums; ++s) {
        int64_t r = s / t->column.extent;
        int64_t c = s % t->column.extent;
        berth_expr at = berth_tfn_index(fn, s);
        berth_expr sum =
            berth_tfn_intrinsic(fn, t->intrinsic, acc_at(t, r, c), tiles_x[r], tiles_w[c]);
        emit(t, berth_tfn_store(fn, t->acc, &at, 1, sum));
    }
    loops->body = take(t);
    emit(t, berth_tfn_alloc(fn, t->acc));
    for (int64_t s = 0; s < sums; ++s) {
        berth_expr at = berth_tfn_index(fn, s);
        berth_expr none = berth_tfn_broadcast(fn, t->reduction.init, unit_lanes);
        emit(t, berth_tfn_store(fn, t->acc, &at, 1, none));
    }
    emit(t, berth_nest_emit(fn, loops));
    return BERTH_OK;
}

// ---- entry
// ----------------------------------------------------------------------------------------------------------

static berth_status take_loops(tiler *t, const berth_nest *nest, int tile_loops) {
    berth_ranges known = berth_ranges_collect(t->fn);
    t->ranges = berth_ranges_with(t->fn, &known, nest);
    if (tile_loops < 1 || tile_loops > 3 || tile_loops > nest->count)
        return refuse("one to three loops");
    const berth_nest_loop *loops = &nest->loops[nest->count - tile_loops];
    t->row = (berth_nest_loop){.var = BERTH_NONE, .extent = 1};
    t->column = t->row;
    t->has_row = tile_loops >= 2;
    t->has_column = tile_loops == 3;
    if (t->has_row) t->row = loops[0];
    if (t->has_column) t->column = loops[1];
    t->lane = loops[tile_loops - 1];
    if (t->lane.extent != t->lanes)
        return refuse("the last loop must have as many iterations as lanes");
    if (t->row.extent * t->column.extent > MAX_POSITIONS || t->row.extent < 1 ||
        t->column.extent < 1)
        return refuse("the tile does not fit in registers");
    return BERTH_OK;
}

// The step of the sum in vectors: the intrinsic takes the innermost loop with it. 0: no such form.
static berth_status widen_update(tiler *t, berth_expr *out) {
    berth_nest *loops = &t->reduction.loops;
    *out = 0;
    if (t->intrinsic == BERTH_INTRINSIC_COUNT) {
        *out = widen(t, t->reduction.update);
        return BERTH_OK;
    }
    if (loops->count == 0) return BERTH_OK;
    berth_nest_loop depth = loops->loops[loops->count - 1];
    if (depth.extent != berth_intrinsic_depth(t->intrinsic)) return BERTH_OK;
    loops->count--;
    return berth_tensorize_update(t->fn, t->reduction.update, t->lane.var, depth.var, t->intrinsic,
                                  t->reduction.acc, berth_tfn_var_ref(t->fn, t->marker), out);
}

static berth_status tile(berth_tfn *fn, berth_nest *nest, int tile_loops, uint16_t lanes,
                         int64_t valid, berth_intrinsic intrinsic) {
    tiler t = {.fn = fn, .lanes = lanes, .intrinsic = intrinsic};
    if (!berth_reduction_parse(fn, nest->body, &t.reduction))
        return refuse("the body is not a reduction");
    if (!berth_nest_is_independent(fn, nest)) return refuse("iterations depend on each other");
    BERTH_TRY(take_loops(&t, nest, tile_loops));
    berth_dtype dtype = fn->bufs.data[t.reduction.acc].dtype;
    t.marker = berth_tfn_let_var(fn, "acc", dtype, lanes, false);
    berth_expr init = widen(&t, t.reduction.init);
    berth_expr update = 0;
    BERTH_TRY(widen_update(&t, &update));
    if (!init || !update) return refuse("the reduction has no vector form");
    int64_t dims[] = {t.row.extent * t.column.extent};
    t.acc = berth_tfn_buffer(fn, "acc", dtype, 1, dims, BERTH_SCOPE_REGISTER);
    fn->bufs.data[t.acc].lanes = lanes;
    emit_update(&t, update, lanes > 1 && t.has_row && t.row.extent > 1);
    berth_nest loops = t.reduction.loops;
    loops.body = take(&t);
    emit(&t, berth_tfn_alloc(fn, t.acc));
    for (int64_t r = 0; r < t.row.extent; ++r)
        for (int64_t c = 0; c < t.column.extent; ++c) {
            berth_expr at = position(&t, r, c);
            berth_expr value =
                berth_tfn_substitute(fn, init, position_map(&t, r, c, true), t.marker + 1);
            emit(&t, berth_tfn_store(fn, t.acc, &at, 1, value));
        }
    emit(&t, berth_nest_emit(fn, &loops));
    int64_t columns = t.column.extent * lanes;
    bool partial = valid > 0 && valid < columns;
    if (partial || !emit_vector_epilogue(&t)) emit_spilled_epilogue(&t, partial ? valid : columns);
    nest->body = take(&t);
    nest->count -= tile_loops;
    return BERTH_OK;
}

berth_status berth_schedule_register_tile(berth_tfn *fn, berth_nest *nest, int tile_loops,
                                          uint16_t lanes, int64_t valid) {
    return tile(fn, nest, tile_loops, lanes, valid, BERTH_INTRINSIC_COUNT);
}

berth_status berth_schedule_unit_tile(berth_tfn *fn, berth_nest *nest, int tile_loops,
                                      berth_intrinsic id, int64_t valid) {
    tiler t = {.fn = fn, .lanes = unit_rows, .intrinsic = id};
    if (!berth_reduction_parse(fn, nest->body, &t.reduction))
        return refuse("the body is not a reduction");
    if (!berth_nest_is_independent(fn, nest)) return refuse("iterations depend on each other");
    BERTH_TRY(take_loops(&t, nest, tile_loops));
    BERTH_TRY(unit_sums(&t));
    emit_spilled_epilogue(&t, valid ? valid : t.column.extent * t.lanes);
    nest->body = take(&t);
    nest->count -= tile_loops;
    return BERTH_OK;
}

berth_status berth_schedule_intrinsic_tile(berth_tfn *fn, berth_nest *nest, int tile_loops,
                                           berth_intrinsic id, int64_t valid) {
    return tile(fn, nest, tile_loops, berth_intrinsic_get(id)->operands[0].lanes, valid, id);
}
