// Register tiles on CPUs: which loops are rows, vectors and lanes of the tile, how large it is, and
// what runs in parallel.
#include <string.h>

#include "compiler/schedule/cpu_panel.h"
#include "compiler/schedule/tensorize.h"

#define MAX_SCALARS 56    // accumulators of a tile without vectors
#define LONG_SUM 8        // terms, beside which storing a result by itself is little
#define FEW_SUMS 8        // that hide how long one takes: two units, four cycles
#define WANTED_GROUPS 16  // so that a few threads are evenly loaded

typedef struct plan {
    berth_tfn *fn;
    const berth_cpu_facts *facts;
    berth_nest nest;  // the plain one
    berth_reduction reduction;
    berth_access_list loads;  // of the update, without the accumulator
    berth_linear store;       // position of the first store of the epilogue
    int64_t lanes;            // of a vector of this nest
    int vec;                  // loop of the lanes (the last one)
    int col;                  // loop of whole vectors, -1 = the vec loop is split for them
    int row;                  // -1 = none
    int64_t columns;          // vectors of a tile
    int64_t rows;
    berth_cpu_panel panel;
    berth_intrinsic intrinsic;  // step of the sum; BERTH_INTRINSIC_COUNT = products one by one
} plan;

// ---- reduction loops
// ------------------------------------------------------------------------------------------------

// The largest block by which an access takes a variable apart: k of (… var …) / k or % k in one of
// its positions; 0 = none.
static int64_t block_of(const berth_tfn *fn, const berth_linear *form, berth_var var) {
    int64_t largest = 0;
    for (int i = 0; i < form->count; ++i) {
        const berth_expr_node *node = &fn->exprs.data[form->terms[i].atom];
        int64_t k = 0;
        if (node->kind != BERTH_EXPR_BINARY ||
            (node->op != BERTH_BINARY_DIV && node->op != BERTH_BINARY_MOD))
            continue;
        if (berth_tfn_uses_var(fn, node->a, var) && berth_tfn_const_value(fn, node->b, &k) &&
            k > largest)
            largest = k;
    }
    return largest;
}

// Splits reduction loops by the blocks of what they read; inner parts go innermost: ic -> ic_o,
// ..., ic_i.
static void split_reduction(berth_tfn *fn, berth_reduction *r, const berth_access_list *loads) {
    for (int i = r->loops.count - 1; i >= 0; --i) {
        int64_t block = 0;
        for (uint32_t k = 0; k < loads->items.count && !block; ++k)
            block = block_of(fn, &loads->items.data[k].at, r->loops.loops[i].var);
        if (block <= 1 || r->loops.loops[i].extent % block || r->loops.loops[i].extent == block)
            continue;
        if (berth_status_code(berth_schedule_split(fn, &r->loops, i, block)) != BERTH_CODE_OK)
            continue;
        // Sums are taken in another order from here on; that is what a reduction allows.
        berth_nest_loop inner = r->loops.loops[i + 1];
        for (int k = i + 1; k + 1 < r->loops.count; ++k) r->loops.loops[k] = r->loops.loops[k + 1];
        r->loops.loops[r->loops.count - 1] = inner;
    }
    r->update = fn->stmts.data[r->loops.body].value;
    int64_t total = 1;
    for (int i = 0; i < r->loops.count; ++i) total *= r->loops.loops[i].extent;
    if (total > 32) return;
    for (int i = 0; i < r->loops.count; ++i) r->loops.loops[i].kind = BERTH_LOOP_UNROLL;
}

// ---- analysis
// -------------------------------------------------------------------------------------------------------

static void collect_accesses(plan *p) {
    berth_ranges ranges = berth_ranges_collect(p->fn);
    ranges = berth_ranges_with(p->fn, &ranges, &p->nest);
    ranges = berth_ranges_with(p->fn, &ranges, &p->reduction.loops);
    berth_access_list all = {0};
    berth_cpu__collect_loads(p->fn, &ranges, p->reduction.update, &all);
    memset(&p->loads, 0, sizeof(p->loads));
    for (uint32_t i = 0; i < all.items.count; ++i)
        if (all.items.data[i].buf != p->reduction.acc)
            berth_vec_push(p->fn->module->arena, &p->loads.items, all.items.data[i]);
    berth_stmt store = p->reduction.epilogue[0];
    const berth_stmt_node node = p->fn->stmts.data[store];
    p->store = berth_linear_access(p->fn, &ranges, node.buf, berth_tfn_store_indices(p->fn, store),
                                   node.index_count);
}

static bool load_uses(const plan *p, uint32_t load, int loop) {
    return berth_linear_uses(p->fn, &p->loads.items.data[load].at, p->nest.loops[loop].var);
}

// Loads that move with the lanes ("weights") and those that do not ("broadcast").
static bool is_vector(const plan *p, uint32_t load) {
    return load_uses(p, load, p->vec);
}

// A loop of whole vectors beside the lanes: broadcasts stay, weights move.
static bool serves_as_column(const plan *p, int loop) {
    bool any = false;
    for (uint32_t i = 0; i < p->loads.items.count; ++i) {
        if (!is_vector(p, i) && load_uses(p, i, loop)) return false;
        any |= is_vector(p, i) && load_uses(p, i, loop);
    }
    return any;
}

// A loop of rows: some loads stay (to be used again), others move.
static bool serves_as_row(const plan *p, int loop) {
    bool stays = p->loads.items.count == 1;
    bool moves = false;
    for (uint32_t i = 0; i < p->loads.items.count; ++i)
        *(load_uses(p, i, loop) ? &moves : &stays) = true;
    return stays && moves;
}

static int64_t sum_length(const plan *p) {
    int64_t length = 1;
    for (int i = 0; i < p->reduction.loops.count; ++i) length *= p->reduction.loops.loops[i].extent;
    return length;
}

// Elements from one lane of the weights to the next: those that an instruction adds lie together.
static int64_t lane_stride(const plan *p) {
    return p->intrinsic == BERTH_INTRINSIC_COUNT ? 1 : berth_intrinsic_depth(p->intrinsic);
}

// Whether the lanes are next to each other wherever they are loaded: stride 1 or 0 within one
// vector. Results may lie apart (real and imaginary parts, every other pixel) where the sums are
// long: then they are stored lane by lane.
static bool lanes_are_contiguous(const plan *p) {
    bool linear = false;
    berth_var var = p->nest.loops[p->vec].var;
    int64_t apart = berth_linear_stride(p->fn, &p->store, var, &linear);
    if (!linear || apart == 0 || (apart != 1 && sum_length(p) < LONG_SUM)) return false;
    bool any = false;
    for (uint32_t i = 0; i < p->loads.items.count; ++i) {
        int64_t stride = berth_linear_stride(p->fn, &p->loads.items.data[i].at, var, &linear);
        int64_t block = linear ? 0 : block_of(p->fn, &p->loads.items.data[i].at, var);
        bool next = stride == 1 || stride == lane_stride(p);
        if (linear && stride != 0 && !next) return false;
        if (!linear && (block == 0 || block % p->lanes)) return false;
        any |= !linear || next;
        berth_dtype dtype = p->fn->bufs.data[p->loads.items.data[i].buf].dtype;
        if (!berth_dtype_has_vectors(dtype) && is_vector(p, i)) return false;
    }
    return any;
}

// ---- choice
// ---------------------------------------------------------------------------------------------------------

static int64_t ceil_div(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

// Rows that fit beside the columns: accumulators, one register per column of weights, one for a
// broadcast.
static int64_t row_limit(const plan *p, int64_t columns) {
    int64_t limit = (p->facts->registers - 1 - columns) / columns;
    return limit < 1 ? 1 : limit > 14 ? 14 : limit;
}

// Whether the loop decides what is padding, or how much of it: divisions for every element once it
// is fused, and no vectors when it is fused with the lanes.
static bool decides(const plan *p, int loop) {
    berth_var var = p->nest.loops[loop].var;
    if (berth_cpu__used_in_conditions(p->fn, p->reduction.update, var, 0)) return true;
    for (int i = 0; i < p->reduction.epilogue_count; ++i) {
        berth_expr value = p->fn->stmts.data[p->reduction.epilogue[i]].value;
        if (berth_cpu__used_in_conditions(p->fn, value, var, 0)) return true;
    }
    return false;
}

// Loops `loop` and loop + 1 become one where every access of the nest goes on regularly.
static bool try_fuse(plan *p, int loop) {
    if (decides(p, loop) || decides(p, loop + 1)) return false;
    berth_access_list accesses = {0};
    berth_access store = {.buf = 0, .at = p->store};
    for (uint32_t i = 0; i < p->loads.items.count; ++i)
        berth_vec_push(p->fn->module->arena, &accesses.items, p->loads.items.data[i]);
    berth_vec_push(p->fn->module->arena, &accesses.items, store);
    if (!berth_cpu__can_fuse(p->fn, &p->nest, loop, &accesses)) return false;
    p->nest.loops[loop + 1].kind = p->nest.loops[loop].kind;
    berth_status status = berth_schedule_fuse(p->fn, &p->nest, loop);
    if (status) {
        berth_status_ignore(status);
        return false;
    }
    berth_reduction_parse(p->fn, p->nest.body, &p->reduction);
    collect_accesses(p);
    return true;
}

static void fuse_rows(plan *p) {
    while (p->row > 0 && p->row - 1 != p->col && serves_as_row(p, p->row - 1) &&
           try_fuse(p, p->row - 1)) {
        p->row--;
        p->vec--;
        if (p->col > p->row) p->col--;
    }
}

// Weights whose storage ends with the last column cannot be read in whole vectors after it.
static bool rest_is_padded(const plan *p, int64_t rest) {
    if (rest % p->lanes == 0) return true;
    berth_var var = p->nest.loops[p->vec].var;
    for (uint32_t i = 0; i < p->loads.items.count; ++i)
        if (is_vector(p, i) && block_of(p->fn, &p->loads.items.data[i].at, var) == 0) return false;
    return true;
}

// Lanes of columns after the last whole vector, where nothing may be read after them.
static int64_t rest_lanes(const plan *p, int64_t rest) {
    int64_t lanes = p->lanes;
    while (rest % lanes && lanes > BERTH_CPU_LEAST_LANES) lanes /= 2;
    return rest % lanes ? 1 : lanes;
}

// Few whole vectors, and after them more columns one by one than halves of vectors leave.
static bool halves_are_better(const plan *p) {
    int64_t extent = p->nest.loops[p->vec].extent;
    int64_t rest = extent % p->lanes;
    return p->lanes > BERTH_CPU_LEAST_LANES && rest > p->lanes / 2 && !rest_is_padded(p, rest) &&
           extent / p->lanes < p->lanes / 2;
}

// Whole registers, or halves of them for loops (blocks of channels) that are too short.
static bool choose_lanes(plan *p) {
    for (p->lanes = p->facts->lanes;; p->lanes /= 2) {
        bool fits = p->nest.loops[p->vec].extent >= p->lanes && lanes_are_contiguous(p);
        if (fits && !halves_are_better(p)) return true;
        if (p->lanes <= BERTH_CPU_LEAST_LANES) return fits;
    }
}

static bool choose_loops(plan *p) {
    p->vec = p->nest.count - 1;
    p->col = p->row = -1;
    while (p->vec > 0 && try_fuse(p, p->vec - 1)) p->vec--;
    if (!choose_lanes(p)) return false;
    if (p->nest.loops[p->vec].extent == p->lanes)
        for (int i = p->vec - 1; i >= 0 && p->col < 0; --i)
            if (p->nest.loops[i].extent > 1 && serves_as_column(p, i)) p->col = i;
    for (int i = p->vec - 1; i >= 0 && p->row < 0; --i)
        if (i != p->col && p->nest.loops[i].extent > 1 && serves_as_row(p, i)) p->row = i;
    if (p->row >= 0) fuse_rows(p);
    return true;
}

// Rows a multiple of 4 KiB apart share the sets of the first-level cache: more than its ways evict
// each other.
static bool rows_collide(const plan *p) {
    for (uint32_t i = 0; i < p->loads.items.count; ++i) {
        bool linear = false;
        berth_dtype dtype = p->fn->bufs.data[p->loads.items.data[i].buf].dtype;
        int64_t stride = berth_linear_stride(p->fn, &p->loads.items.data[i].at,
                                             p->nest.loops[p->row].var, &linear);
        int64_t bytes = stride * (int64_t)berth_dtype_size_bytes(dtype);
        if (linear && stride && bytes % 4096 == 0) return true;
    }
    return false;
}

// Two columns beside many rows; beside few rows more of them, or every sum would wait for the one
// before it.
static int64_t wanted_columns(const plan *p, int64_t vectors) {
    int64_t rows = p->row < 0 ? 1 : p->nest.loops[p->row].extent;
    int64_t wanted = rows >= FEW_SUMS / 2 ? 2 : FEW_SUMS / rows;
    while (!p->facts->inside && wanted > 2 && vectors < wanted * WANTED_GROUPS) wanted /= 2;
    return vectors ? ceil_div(vectors, ceil_div(vectors, wanted)) : 1;
}

static void choose_sizes(plan *p) {
    int64_t vectors =
        p->col >= 0 ? p->nest.loops[p->col].extent : p->nest.loops[p->vec].extent / p->lanes;
    p->columns = wanted_columns(p, vectors);
    bool all_vectors = true;
    for (uint32_t i = 0; i < p->loads.items.count; ++i) all_vectors &= is_vector(p, i);
    if (all_vectors) p->columns = 1;  // depthwise, pools: nothing is shared between columns
    int64_t rest = p->col >= 0 ? 0 : p->nest.loops[p->vec].extent % (p->columns * p->lanes);
    bool scalar_rest = rest && !rest_is_padded(p, rest);
    while (scalar_rest && rest >= p->lanes && vectors % p->columns) p->columns--;
    rest %= p->lanes;
    p->rows = 1;
    if (p->row < 0) return;
    int64_t extent = p->nest.loops[p->row].extent;
    int64_t limit = row_limit(p, p->columns);
    if (all_vectors && limit > 7) limit = 7;
    if (scalar_rest && rest) rest /= rest_lanes(p, rest);
    if (scalar_rest && rest && limit * rest > MAX_SCALARS) limit = MAX_SCALARS / rest;
    if (rows_collide(p) && limit > 6) limit = 6;
    p->rows = ceil_div(extent, ceil_div(extent, limit));
}

// ---- building
// -------------------------------------------------------------------------------------------------------

// Nests share the loops around the tile; each is the tile of one kind (whole or rest in rows and
// columns).
static berth_stmt tile_body(plan *p, berth_nest nest, int tile_loops, int64_t valid) {
    uint16_t lanes = (uint16_t)nest.loops[nest.count - 1].extent;
    berth_status status =
        p->intrinsic == BERTH_INTRINSIC_COUNT
            ? berth_schedule_register_tile(p->fn, &nest, tile_loops, lanes, valid)
            : berth_schedule_intrinsic_tile(p->fn, &nest, tile_loops, p->intrinsic, valid);
    if (status) {
        berth_status_ignore(status);
        return 0;
    }
    return nest.body;
}

typedef struct shape {
    int64_t full;  // whole tiles along a loop
    int64_t rest;  // iterations after them
} shape;

// The tile for one kind of columns: rows in whole tiles, then the rest of them. `inner` holds [row,
// column, lane] loops (row only when there is one); its body is the reduction.
static berth_stmt row_tiles(plan *p, berth_nest inner, int64_t valid, berth_var tile_var,
                            int64_t chunk, shape rows) {
    berth_tfn *fn = p->fn;
    int loops = inner.count;
    berth_nest whole = inner;
    berth_nest rest = inner;
    berth_stmt whole_body = 0;
    berth_stmt rest_body = 0;
    if (rows.rest) {
        berth_status status = berth_schedule_peel(fn, &whole, 0, rows.full * p->rows, &rest);
        if (status) {
            berth_status_ignore(status);
            return 0;
        }
        rest_body = tile_body(p, rest, loops, valid);
        if (!rest_body) return 0;
    }
    if (rows.full == 0) return rest_body;
    berth_status status = berth_schedule_split(fn, &whole, 0, p->rows);
    if (status) {
        berth_status_ignore(status);
        return 0;
    }
    berth_var tile = whole.loops[0].var;
    whole_body = tile_body(p, whole, loops, valid);
    if (!whole_body) return 0;
    // tile = chunk number * tiles of a chunk + step
    int64_t chunks = ceil_div(rows.full, chunk);
    berth_var step = berth_tfn_var(fn, "tile");
    berth_expr at = berth_tfn_var_ref(fn, step);
    if (chunks > 1 || rows.rest) {
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

// Tiles that one group works through: a divisor of their number that leaves enough groups.
static int64_t choose_chunk(int64_t tiles, int64_t other_groups) {
    int64_t best = 1;
    for (int64_t c = 1; c <= tiles && c <= 64; ++c)
        if (tiles % c == 0 && (tiles / c) * other_groups >= WANTED_GROUPS) best = c;
    return best;
}

static int64_t buffer_bytes_moved(const plan *p, bool vectors) {
    int64_t bytes = 0;
    for (uint32_t i = 0; i < p->loads.items.count; ++i) {
        if (is_vector(p, i) != vectors) continue;
        const berth_buf_info *info = &p->fn->bufs.data[p->loads.items.data[i].buf];
        int64_t size = (int64_t)berth_dtype_size_bytes(info->dtype);
        for (int d = 0; d < info->rank; ++d) size *= info->dims[d];
        bytes += size;
    }
    return bytes;
}

// Columns of whole tiles and the rest, as an IF on the column loop.
static berth_stmt column_tiles(plan *p, berth_nest inner, berth_var column_var,
                               berth_var row_tile_var, int64_t chunk, shape columns, shape rows) {
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
        int64_t vectors = ceil_div(columns.rest, lanes);
        int64_t computed = by_block ? columns.rest : vectors * lanes;
        // The rest computes whole vectors; what lies after the last column is padding of the
        // weights.
        bool scalars = !by_block && !rest_is_padded(p, columns.rest);
        if (!scalars) rest.loops[at].extent = computed;
        int64_t width = scalars ? rest_lanes(p, columns.rest) : lanes;
        if (!by_block) BERTH_TRY_GOTO(status, berth_schedule_split(fn, &rest, at, width));
        rest_body =
            row_tiles(p, rest, by_block || scalars ? 0 : columns.rest, row_tile_var, chunk, rows);
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
    whole_body = row_tiles(p, whole, 0, row_tile_var, chunk, rows);
    if (!whole_body || !rest_body) return whole_body;
    berth_expr is_whole = berth_tfn_binary(fn, BERTH_BINARY_LT, berth_tfn_var_ref(fn, column_var),
                                           berth_tfn_index(fn, columns.full));
    return berth_tfn_if(fn, is_whole, whole_body, rest_body);
done:
    berth_status_ignore(status);
    return 0;
}

// Tiles and rest of the loops that the tile has.
static shape columns_of(const plan *p) {
    if (p->col >= 0)
        return (shape){p->nest.loops[p->col].extent / p->columns,
                       p->nest.loops[p->col].extent % p->columns};
    int64_t extent = p->nest.loops[p->vec].extent;
    int64_t width = p->columns * p->lanes;
    return (shape){extent / width, extent % width};
}

static shape rows_of(const plan *p) {
    if (p->row < 0) return (shape){1, 0};
    return (shape){p->nest.loops[p->row].extent / p->rows, p->nest.loops[p->row].extent % p->rows};
}

static berth_nest tile_nest(plan *p) {
    berth_nest inner = {.body = p->nest.body};
    berth_nest_loop no_row = {.extent = 1, .kind = BERTH_LOOP_SERIAL};
    if (p->row < 0) no_row.var = berth_tfn_var(p->fn, "row");
    inner.loops[inner.count++] = p->row >= 0 ? p->nest.loops[p->row] : no_row;
    if (p->col >= 0) inner.loops[inner.count++] = p->nest.loops[p->col];
    inner.loops[inner.count++] = p->nest.loops[p->vec];
    return inner;
}

// The loops that are not in the tile, around it.
static void add_outer(const plan *p, berth_nest *outer, int i) {
    outer->loops[outer->count] = p->nest.loops[i];
    outer->loops[outer->count++].kind = BERTH_LOOP_PARALLEL;
}

static bool in_tile(const plan *p, int loop) {
    return loop == p->row || loop == p->col || loop == p->vec;
}

static int64_t other_groups(const plan *p) {
    int64_t groups = 1;
    for (int i = 0; i < p->nest.count; ++i)
        if (!in_tile(p, i)) groups *= p->nest.loops[i].extent;
    return groups;
}

// More columns, beside those of the tile: they read the panel again.
static bool reads_panel_again(const plan *p, int loop) {
    return !in_tile(p, loop) && !berth_tfn_uses_var(p->fn, p->panel.value, p->nest.loops[loop].var);
}

// Tiles of a panel: how many rows of tiles it holds. 0: it does not fit.
static int64_t panel_chunk(const plan *p, shape rows) {
    int64_t tile_bytes = p->panel.bytes_per_row * p->rows;
    int64_t groups = 1;
    for (int i = 0; i < p->nest.count; ++i)
        if (!in_tile(p, i) && !reads_panel_again(p, i)) groups *= p->nest.loops[i].extent;
    if (tile_bytes > p->facts->l2_bytes / 4 || rows.full < 1) return 0;
    // Measured: a panel that shares the first level with the weights of a tile is fastest.
    int64_t most = p->facts->l1_bytes / 2 / tile_bytes;
    int64_t chunk = choose_chunk(rows.full, groups);
    while (chunk > 1 && (chunk > most || rows.full % chunk)) chunk--;
    return chunk;
}

// Groups of rows in parallel; each computes its panel and goes through all columns with it. 0: the
// panel does not fit.
static berth_stmt build_with_panel(plan *p) {
    berth_tfn *fn = p->fn;
    shape columns = columns_of(p);
    shape rows = rows_of(p);
    int64_t chunk = panel_chunk(p, rows);
    if (chunk == 0) return 0;
    int64_t chunks = rows.full / chunk + (rows.rest > 0);
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
        if (in_tile(p, i)) continue;
        berth_nest *to = reads_panel_again(p, i) ? &again : &outer;
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

// Something is fused in front of the product, and several tiles of columns would compute it.
static bool wants_panel(plan *p) {
    if (p->row < 0) return false;
    berth_var column = p->col >= 0 ? p->nest.loops[p->col].var : BERTH_NONE;
    p->panel = berth_cpu__panel_of(p->fn, &p->reduction, p->nest.loops[p->row],
                                   p->nest.loops[p->vec].var, column);
    if (!p->panel.value) return false;
    shape columns = columns_of(p);
    int64_t reads = columns.full + (columns.rest > 0);
    for (int i = 0; i < p->nest.count; ++i)
        if (reads_panel_again(p, i)) reads *= p->nest.loops[i].extent;
    return reads > 1;
}

// Many products of small matrices whose rows lie together in memory (Winograd points, tile by
// tile): with a loop of products outside, every row would come from memory again for each of them,
// in pieces. Rows that stay in the cache while all products pass over them; 0 = products outside.
static int64_t rows_outside(const plan *p) {
    int64_t products = 1;
    if (p->row < 0 || buffer_bytes_moved(p, true) > p->facts->l2_bytes * 3 / 4) return 0;
    int64_t bytes = buffer_bytes_moved(p, false);
    if (bytes <= p->facts->l2_bytes / 2) return 0;
    for (int loop = 0; loop < p->nest.count; ++loop) {
        if (in_tile(p, loop)) continue;
        for (uint32_t i = 0; i < p->loads.items.count; ++i) {
            bool linear = false;
            const berth_linear *at = &p->loads.items.data[i].at;
            if (!load_uses(p, i, loop)) return 0;
            int64_t step = berth_linear_stride(p->fn, at, p->nest.loops[loop].var, &linear);
            if (!linear) return 0;
            int64_t row = berth_linear_stride(p->fn, at, p->nest.loops[p->row].var, &linear);
            if (!is_vector(p, i) && (!linear || row < step * p->nest.loops[loop].extent)) return 0;
        }
        products *= p->nest.loops[loop].extent;
    }
    if (products == 1) return 0;
    int64_t per_row = 2 * bytes / p->nest.loops[p->row].extent;  // the results are as many
    int64_t rows = p->facts->l2_bytes / 4 / (per_row ? per_row : 1);
    return rows > p->rows ? rows : p->rows;
}

// The order of the loops around the tiles. What stays in the cache is walked in the inner loop:
// weights when they are small, else the rows.
static berth_nest outer_loops(const plan *p, berth_nest_loop columns, berth_nest_loop rows,
                              bool rows_first) {
    berth_nest outer = {0};
    bool columns_outside = buffer_bytes_moved(p, true) > p->facts->l2_bytes / 2;
    bool placed = false;
    if (rows_first) outer.loops[outer.count++] = rows;
    for (int i = 0; i < p->nest.count; ++i) {
        if (i == p->col) {
            outer.loops[outer.count++] = columns;
            placed = true;
        }
        if (!in_tile(p, i)) add_outer(p, &outer, i);
    }
    if (!placed && columns_outside) outer.loops[outer.count++] = columns;
    if (rows.extent > 1 && !rows_first) outer.loops[outer.count++] = rows;
    if (!placed && !columns_outside) outer.loops[outer.count++] = columns;
    return outer;
}

static berth_stmt build(plan *p) {
    berth_tfn *fn = p->fn;
    berth_nest inner = tile_nest(p);
    shape columns = columns_of(p);
    shape rows = rows_of(p);
    int64_t column_groups = columns.full + (columns.rest > 0);
    int64_t chunk = rows.full ? choose_chunk(rows.full, other_groups(p) * column_groups) : 1;
    int64_t kept = rows.full ? rows_outside(p) : 0;
    while (kept && chunk > 1 && (chunk * p->rows > kept || rows.full % chunk)) chunk--;
    int64_t chunks = rows.full ? rows.full / chunk + (rows.rest > 0) : 1;
    berth_nest_loop column_loop = {berth_tfn_var(fn, "columns"), column_groups,
                                   BERTH_LOOP_PARALLEL};
    berth_nest_loop row_loop = {berth_tfn_var(fn, "rows"), chunks, BERTH_LOOP_PARALLEL};
    berth_nest outer = outer_loops(p, column_loop, row_loop, kept && chunks > 1);
    outer.body = column_tiles(p, inner, column_loop.var, row_loop.var, chunk, columns, rows);
    return outer.body ? berth_nest_emit(fn, &outer) : 0;
}

// Part of one loop of the sum goes innermost: what one instruction adds, as far apart in the
// operands as it takes them.
static bool split_depth(plan *p, int loop, int64_t depth) {
    berth_nest *loops = &p->reduction.loops;
    berth_nest_loop moved = loops->loops[loop];
    if (moved.extent % depth) return false;
    memmove(&loops->loops[loop], &loops->loops[loop + 1],
            (size_t)(loops->count - loop - 1) * sizeof(moved));
    loops->loops[loops->count - 1] = moved;
    if (moved.extent > depth) {
        berth_status status = berth_schedule_split(p->fn, loops, loops->count - 1, depth);
        if (status) {
            berth_status_ignore(status);
            return false;
        }
    }
    p->reduction.update = p->fn->stmts.data[loops->body].value;
    collect_accesses(p);
    for (uint32_t i = 0; i < p->loads.items.count; ++i) {
        bool linear = false;
        int64_t stride = berth_linear_stride(p->fn, &p->loads.items.data[i].at,
                                             loops->loops[loops->count - 1].var, &linear);
        if (!linear || (stride != 1 && stride != berth_intrinsic_step(p->intrinsic))) return false;
    }
    return p->loads.items.count == 2;
}

static bool split_some_depth(plan *p, int64_t depth) {
    for (int i = p->reduction.loops.count - 1; i >= 0; --i) {
        plan attempt = *p;
        if (!split_depth(&attempt, i, depth)) continue;
        *p = attempt;
        return true;
    }
    return false;
}

// The nest with one instruction, or with none; 0 = it has no such form.
static berth_stmt tile_with(plan p, berth_intrinsic intrinsic) {
    bool dot = intrinsic != BERTH_INTRINSIC_COUNT;
    p.intrinsic = intrinsic;
    collect_accesses(&p);
    split_reduction(p.fn, &p.reduction, &p.loads);
    if (dot && !split_some_depth(&p, berth_intrinsic_depth(intrinsic))) return 0;
    p.nest.body = berth_reduction_emit(p.fn, &p.reduction);
    collect_accesses(&p);
    if (!choose_loops(&p)) return 0;
    if (dot && p.lanes != berth_intrinsic_get(intrinsic)->operands[0].lanes) return 0;
    choose_sizes(&p);
    plan with_panel = p;
    berth_stmt tiles = !dot && wants_panel(&with_panel) ? build_with_panel(&with_panel) : 0;
    return tiles ? tiles : build(&p);
}

berth_stmt berth_cpu__tile_reduction(berth_tfn *fn, const berth_nest *nest,
                                     const berth_cpu_facts *facts) {
    plan p = {.fn = fn, .facts = facts, .nest = *nest};
    if (!berth_reduction_parse(fn, nest->body, &p.reduction)) return 0;
    berth_dtype dtype = fn->bufs.data[p.reduction.acc].dtype;
    bool in_registers = dtype == BERTH_DTYPE_F32 || dtype == BERTH_DTYPE_I32 ||
                        dtype == BERTH_DTYPE_I8 || dtype == BERTH_DTYPE_U8;
    if (!in_registers || p.reduction.epilogue_count == 0) return 0;
    for (int i = 0; i < nest->count; ++i)
        if (nest->loops[i].extent <= 0) return 0;
    bool has_intrinsics = dtype == BERTH_DTYPE_I32 && facts->target;
    for (int i = 0; has_intrinsics && i < BERTH_INTRINSIC_COUNT; ++i) {
        if (!berth_intrinsic_serves((berth_intrinsic)i, facts->target)) continue;
        berth_stmt tiles = tile_with(p, (berth_intrinsic)i);
        if (tiles) return tiles;
    }
    return tile_with(p, BERTH_INTRINSIC_COUNT);
}
