// Register tiles on CPUs: what runs in parallel, and in which order.
#include "compiler/schedule/cpu_tile.h"

// Of rows, that read a panel of weights: two unpack the weights for themselves sooner (measured).
#define LEAST_ROW_TILES 3

// Tiles that one group works through: a divisor of their number that leaves enough groups.
static int64_t choose_chunk(const berth_cpu_tile *p, int64_t tiles, int64_t other_groups) {
    int64_t best = 1;
    if (p->facts->any_groups) return best;
    for (int64_t c = 1; c <= tiles && c <= 64; ++c)
        if (tiles % c == 0 && (tiles / c) * other_groups >= BERTH_CPU_WANTED_GROUPS) best = c;
    return best;
}

static int64_t buffer_bytes_moved(const berth_cpu_tile *p, bool vectors) {
    int64_t bytes = 0;
    for (uint32_t i = 0; i < p->loads.items.count; ++i) {
        if (berth_cpu_tile__is_vector(p, i) != vectors) continue;
        const berth_buf_info *info = &p->fn->bufs.data[p->loads.items.data[i].buf];
        int64_t size = (int64_t)berth_dtype_size_bytes(info->dtype);
        for (int d = 0; d < info->rank; ++d) size *= info->dims[d];
        bytes += size;
    }
    return bytes;
}

berth_cpu_tile_shape berth_cpu_tile__columns_of(const berth_cpu_tile *p) {
    if (p->col >= 0)
        return (berth_cpu_tile_shape){p->nest.loops[p->col].extent / p->columns,
                                      p->nest.loops[p->col].extent % p->columns};
    int64_t extent = p->nest.loops[p->vec].extent;
    int64_t width = p->columns * p->lanes;
    return (berth_cpu_tile_shape){extent / width, extent % width};
}

berth_cpu_tile_shape berth_cpu_tile__rows_of(const berth_cpu_tile *p) {
    if (p->row < 0) return (berth_cpu_tile_shape){1, 0};
    return (berth_cpu_tile_shape){p->nest.loops[p->row].extent / p->rows,
                                  p->nest.loops[p->row].extent % p->rows};
}

bool berth_cpu_tile__tiles_vary(const berth_cpu_tile *p) {
    return berth_cpu_tile__varies(p, p->row) && berth_cpu_tile__rows_of(p).full > 0;
}

bool berth_cpu_tile__has_rest_of_rows(const berth_cpu_tile *p) {
    int64_t rows[BERTH_CPU_MOST_REST_TILES];
    if (berth_cpu_tile__rows_of(p).rest > 0) return true;
    return berth_cpu_tile__tiles_vary(p) && berth_cpu_tile__rest_tiles(p, rows) > 0;
}

int64_t berth_cpu_tile__row_groups(const berth_cpu_tile *p) {
    const int64_t full = berth_cpu_tile__rows_of(p).full;
    return full ? full / p->chunk + berth_cpu_tile__has_rest_of_rows(p) : 1;
}

bool berth_cpu_tile__in_tile(const berth_cpu_tile *p, int loop) {
    return loop == p->row || loop == p->col || loop == p->vec;
}

int64_t berth_cpu_tile__groups_around(const berth_cpu_tile *p) {
    int64_t groups = 1;
    for (int i = 0; i < p->nest.count; ++i)
        if (!berth_cpu_tile__in_tile(p, i)) groups *= p->nest.loops[i].extent;
    return groups;
}

bool berth_cpu_tile__reads_panel_again(const berth_cpu_tile *p, int loop) {
    return !berth_cpu_tile__in_tile(p, loop) &&
           !berth_tfn_uses_var(p->fn, p->panel.value, p->nest.loops[loop].var);
}

// Tiles of a panel: how many rows of tiles it holds. 0: it does not fit.
static int64_t panel_chunk(const berth_cpu_tile *p, berth_cpu_tile_shape rows) {
    int64_t tile_bytes = p->panel.bytes_per_row * p->rows;
    int64_t groups = 1;
    for (int i = 0; i < p->nest.count; ++i)
        if (!berth_cpu_tile__in_tile(p, i) && !berth_cpu_tile__reads_panel_again(p, i))
            groups *= p->nest.loops[i].extent;
    if (tile_bytes > p->facts->l2_bytes / 4 || rows.full < 1) return 0;
    // Measured: a panel that shares the first level with the weights of a tile is fastest.
    int64_t most = p->facts->l1_bytes / 2 / tile_bytes;
    int64_t chunk = choose_chunk(p, rows.full, groups);
    while (chunk > 1 && (chunk > most || rows.full % chunk)) chunk--;
    return chunk;
}

// What is fused in front of the product, if it can be in a panel.
static bool find_panel(berth_cpu_tile *p) {
    if (p->row < 0) return false;
    berth_var column = p->col >= 0 ? p->nest.loops[p->col].var : BERTH_NONE;
    p->panel = berth_cpu__panel_of(p->fn, &p->reduction, p->nest.loops[p->row],
                                   p->nest.loops[p->vec].var, column);
    return p->panel.value != 0;
}

// Several tiles of columns would compute it; or one, but its functions number by number, of which a panel is
// filled in vectors.
static bool panel_pays(const berth_cpu_tile *p) {
    berth_cpu_tile_shape columns = berth_cpu_tile__columns_of(p);
    int64_t reads = columns.full + (columns.rest > 0);
    for (int i = 0; i < p->nest.count; ++i)
        if (berth_cpu_tile__reads_panel_again(p, i)) reads *= p->nest.loops[i].extent;
    return reads > 1 || berth_cpu__has_vector_functions(p->fn, p->panel.value, 0);
}

// Many products of small matrices whose rows lie together in memory (Winograd points, tile by
// tile): with a loop of products outside, every row would come from memory again for each of them,
// in pieces. Rows that stay in the cache while all products pass over them; 0 = products outside.
static int64_t rows_outside(const berth_cpu_tile *p) {
    int64_t products = 1;
    if (p->row < 0 || buffer_bytes_moved(p, true) > p->facts->l2_bytes * 3 / 4) return 0;
    int64_t bytes = buffer_bytes_moved(p, false);
    if (bytes <= p->facts->l2_bytes / 2) return 0;
    for (int loop = 0; loop < p->nest.count; ++loop) {
        if (berth_cpu_tile__in_tile(p, loop)) continue;
        for (uint32_t i = 0; i < p->loads.items.count; ++i) {
            bool linear = false;
            const berth_linear *at = &p->loads.items.data[i].at;
            if (!berth_cpu_tile__load_uses(p, i, loop)) return 0;
            int64_t step = berth_linear_stride(p->fn, at, p->nest.loops[loop].var, &linear);
            if (!linear) return 0;
            int64_t row = berth_linear_stride(p->fn, at, p->nest.loops[p->row].var, &linear);
            if (!berth_cpu_tile__is_vector(p, i) &&
                (!linear || row < step * p->nest.loops[loop].extent))
                return 0;
        }
        products *= p->nest.loops[loop].extent;
    }
    if (products == 1) return 0;
    int64_t per_row = 2 * bytes / p->nest.loops[p->row].extent;  // the results are as many
    int64_t rows = p->facts->l2_bytes / 4 / (per_row ? per_row : 1);
    return rows > p->rows ? rows : p->rows;
}

static void decide_chunk(berth_cpu_tile *p, int64_t chosen, int64_t most) {
    int64_t tiles = berth_cpu_tile__rows_of(p).full;
    if (most > tiles) most = tiles;
    p->chunk = berth_decide(p->fn, BERTH_DECISION_CHUNK, chosen, 1, most < 1 ? 1 : most,
                            "whole tiles of rows, and the cache of a panel");
    if (tiles && tiles % p->chunk) {
        berth_decision_wrong(p->fn, BERTH_DECISION_CHUNK,
                             berth_arena_printf(p->fn->module->arena,
                                                "it does not divide the %lld tiles of rows",
                                                (long long)tiles));
        p->chunk = chosen;
    }
}

// Bytes that the sums of one row read of what is broadcast: no more than its share of the buffers.
static int64_t bytes_of_row(const berth_cpu_tile *p) {
    int64_t bytes = 0, terms = 1;
    for (int i = 0; i < p->reduction.loops.count; ++i) terms *= p->reduction.loops.loops[i].extent;
    for (uint32_t i = 0; i < p->loads.items.count; ++i) {
        if (berth_cpu_tile__is_vector(p, i)) continue;
        const berth_buf_info *info = &p->fn->bufs.data[p->loads.items.data[i].buf];
        int64_t elements = 1, rows = 1;
        for (int d = 0; d < info->rank; ++d) elements *= info->dims[d];
        for (int loop = 0; loop < p->nest.count; ++loop)
            if (berth_cpu_tile__load_uses(p, i, loop)) rows *= p->nest.loops[loop].extent;
        int64_t share = elements / (rows ? rows : 1);
        bytes += (share < terms ? share : terms) * (int64_t)berth_dtype_size_bytes(info->dtype);
    }
    return bytes;
}

// Rows over which the tiles of columns pass while the loops outside them stand still.
static int64_t rows_inside(const berth_cpu_tile *p) {
    int64_t rows = 1;
    for (int loop = 0; loop < p->vec; ++loop)
        if (loop == p->row || (p->col >= 0 && loop > p->col)) rows *= p->nest.loops[loop].extent;
    return rows;
}

// Rows that do not stay in the cache come again for every tile of columns, in short pieces that lie
// apart; weights come again for every chunk of rows, in one piece. Measured: 1 x 1 convolutions of
// 256 and more channels take 0.8 of the time where a chunk's rows stay and all columns pass over
// it. 0 = no chunk is better, else how many tiles of rows it has.
static int64_t kept_chunk(const berth_cpu_tile *p, int64_t column_groups, int64_t tiles) {
    int64_t row = bytes_of_row(p), rows = row * rows_inside(p);
    if (p->facts->any_size || tiles < 1 || column_groups < 2 || rows <= p->facts->l2_bytes / 2)
        return 0;
    int64_t tile = row * p->rows, cache = p->facts->l2_bytes;
    int64_t weights = buffer_bytes_moved(p, true);
    bool weights_stay = weights <= cache / 2;
    int64_t most = weights_stay ? cache / 8 : cache / 4, best = 1;
    for (int64_t c = 1; c <= tiles && c * tile <= most; ++c)
        if (tiles % c == 0) best = c;
    if (weights_stay) return best;
    int64_t times = berth_cpu_tile__ceil_div(rows, best * (tile ? tile : 1));
    return best * tile <= cache / 2 && weights * times <= 2 * rows * column_groups ? best : 0;
}

// Short sums keep memory busy with their results: fewer rows, of which the results stay in the cache
// until all columns have passed over them, so that whole lines leave it.
static int64_t results_chunk(const berth_cpu_tile *p, int64_t chunk, int64_t tiles) {
    enum { short_sum = 32 };
    int64_t terms = 1;
    for (int i = 0; i < p->reduction.loops.count; ++i) terms *= p->reduction.loops.loops[i].extent;
    int64_t bytes = p->nest.loops[p->vec].extent * (int64_t)sizeof(float);
    if (p->col >= 0) bytes *= p->nest.loops[p->col].extent;
    while (terms <= short_sum && chunk > 1 &&
           (chunk * p->rows * bytes > p->facts->l2_bytes / 4 || tiles % chunk))
        chunk--;
    return chunk;
}

// What stays in the cache is walked in the inner loop: weights when they are small, else the rows.
static void choose_without_panel(berth_cpu_tile *p) {
    berth_cpu_tile_shape columns = berth_cpu_tile__columns_of(p), rows = berth_cpu_tile__rows_of(p);
    int64_t column_groups = columns.full + (columns.rest > 0);
    int64_t chunk =
        rows.full ? choose_chunk(p, rows.full, berth_cpu_tile__groups_around(p) * column_groups)
                  : 1;
    int64_t products_first = rows.full ? rows_outside(p) : 0;
    while (products_first && chunk > 1 && (chunk * p->rows > products_first || rows.full % chunk))
        chunk--;
    int64_t kept = products_first ? 0 : kept_chunk(p, column_groups, rows.full);
    if (kept)
        chunk = kept;
    else if (!products_first && rows.full)
        chunk = results_chunk(p, chunk, rows.full);
    decide_chunk(p, chunk, rows.full);
    int64_t chunks = berth_cpu_tile__row_groups(p);
    bool columns_outside = p->col >= 0 || buffer_bytes_moved(p, true) > p->facts->l2_bytes / 2;
    berth_tile_order order = products_first && chunks > 1 ? BERTH_TILE_ORDER_ROWS_FIRST
                             : columns_outside && !kept   ? BERTH_TILE_ORDER_COLUMNS_ROWS
                                                          : BERTH_TILE_ORDER_ROWS_COLUMNS;
    p->order = (berth_tile_order)berth_decide(p->fn, BERTH_DECISION_ORDER, order, 0,
                                              BERTH_TILE_ORDER_COUNT - 1, "orders");
}

// Tiles of columns in a panel of weights. 0: there is no such panel. Unlike other panels it is read from its
// first element to its last by each tile of rows, as weights are that need no panel.
static int64_t weight_panel_chunk(berth_cpu_tile *p) {
    if (p->row < 0 || p->col >= 0 || p->facts->any_size || p->fn->same_tiles) return 0;
    p->weight_panel = berth_cpu__weight_panel_of(p->fn, &p->reduction, p->nest.loops[p->row].var,
                                                 p->nest.loops[p->vec].var, p->columns * p->lanes);
    if (!p->weight_panel.count) return 0;
    int64_t tile_bytes = p->weight_panel.depth * p->weight_panel.width * (int64_t)sizeof(float);
    if (tile_bytes > p->facts->l2_bytes) return 0;
    berth_cpu_tile_shape columns = berth_cpu_tile__columns_of(p);
    int64_t chunk =
        columns.full ? choose_chunk(p, columns.full, berth_cpu_tile__groups_around(p)) : 1;
    while (chunk > 1 && chunk * tile_bytes > p->facts->l2_bytes / 4) chunk--;
    return chunk;
}

void berth_cpu_tile__choose_groups(berth_cpu_tile *p, bool may_panel) {
    berth_cpu_tile_shape rows = berth_cpu_tile__rows_of(p);
    int64_t chunk = may_panel && find_panel(p) ? panel_chunk(p, rows) : 0;
    int64_t weights = may_panel && !chunk ? weight_panel_chunk(p) : 0;
    bool pays =
        weights ? rows.full + (rows.rest > 0) >= LEAST_ROW_TILES : chunk > 0 && panel_pays(p);
    bool used = berth_decide(p->fn, BERTH_DECISION_PANEL, pays, 0, chunk > 0 || weights > 0,
                             "nothing is fused in front of it that fits a panel");
    p->uses_panel = used && chunk > 0;
    p->uses_weight_panel = used && weights > 0;
    if (p->uses_panel)
        decide_chunk(p, chunk, p->facts->l2_bytes / 4 / (p->panel.bytes_per_row * p->rows));
    else if (p->uses_weight_panel)
        p->chunk = berth_decide(p->fn, BERTH_DECISION_CHUNK, weights, 1,
                                weights > 64 ? weights : 64, "tiles of columns");
    else
        choose_without_panel(p);
}
