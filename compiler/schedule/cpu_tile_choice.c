// Register tiles on CPUs: which loops are rows, vectors and lanes of the tile, and how large it is.
#include <string.h>

#include "compiler/schedule/cpu_tile.h"

#define MOST_POSITIONS 64      // accumulators of any tile (tile.c)
#define MOST_UNROLLED 256      // terms of a sum
#define ANY_SIZE_ROWS 8        // of a tile for many sizes that are not known
#define LONG_SUM 8             // terms, beside which storing a result by itself is little
#define LONG_SUM_IN_HALVES 32  // terms, beside which storing a register in halves is little

// ---- reduction loops
// ------------------------------------------------------------------------------------------------

bool berth_cpu__split_blocks(berth_tfn *fn, const berth_access_list *loads, berth_reduction *r) {
    bool any = false;
    for (int i = r->loops.count - 1; i >= 0; --i) {
        int64_t block = 0;
        for (uint32_t k = 0; k < loads->items.count && !block; ++k)
            block = berth_linear_block(fn, &loads->items.data[k].at, r->loops.loops[i].var);
        if (block <= 1 || r->loops.loops[i].extent % block || r->loops.loops[i].extent == block)
            continue;
        berth_status status = berth_schedule_split(fn, &r->loops, i, block);
        if (status) {
            berth_decisions_refuse(fn, status);
            continue;
        }
        any = true;
        // Sums are taken in another order from here on; that is what a reduction allows.
        berth_nest_loop inner = r->loops.loops[i + 1];
        for (int k = i + 1; k + 1 < r->loops.count; ++k) r->loops.loops[k] = r->loops.loops[k + 1];
        r->loops.loops[r->loops.count - 1] = inner;
    }
    r->update = fn->stmts.data[r->loops.body].value;
    return any;
}

void berth_cpu_tile__split_reduction(berth_cpu_tile *p) {
    berth_tfn *fn = p->fn;
    berth_reduction *r = &p->reduction;
    (void)berth_cpu__split_blocks(fn, &p->loads, r);
    int64_t total = 1;
    for (int i = 0; i < r->loops.count; ++i)
        total *= berth_tfn_most_iterations(fn, r->loops.loops[i].var, r->loops.loops[i].extent);
    int64_t most = p->facts->caps.unroll_terms;
    bool possible = total <= MOST_UNROLLED;
    if (!berth_decide(fn, BERTH_DECISION_UNROLL, total <= most, 0, possible,
                      "a sum of more terms is not unrolled"))
        return;
    for (int i = 0; i < r->loops.count; ++i) r->loops.loops[i].kind = BERTH_LOOP_UNROLL;
}

// ---- analysis
// -------------------------------------------------------------------------------------------------------

void berth_cpu_tile__collect(berth_cpu_tile *p) {
    berth_ranges ranges = berth_ranges_collect(p->fn);
    ranges = berth_ranges_with(p->fn, &ranges, &p->nest);
    ranges = berth_ranges_with(p->fn, &ranges, &p->reduction.loops);
    p->ranges = ranges;
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

bool berth_cpu_tile__load_uses(const berth_cpu_tile *p, uint32_t load, int loop) {
    return berth_linear_uses(p->fn, &p->loads.items.data[load].at, p->nest.loops[loop].var);
}

// Loads that move with the lanes ("weights") and those that do not ("broadcast").
bool berth_cpu_tile__is_vector(const berth_cpu_tile *p, uint32_t load) {
    return berth_cpu_tile__load_uses(p, load, p->vec);
}

// A loop of whole vectors beside the lanes: broadcasts stay, weights move.
static bool serves_as_column(const berth_cpu_tile *p, int loop) {
    bool any = false;
    for (uint32_t i = 0; i < p->loads.items.count; ++i) {
        if (!berth_cpu_tile__is_vector(p, i) && berth_cpu_tile__load_uses(p, i, loop)) return false;
        any |= berth_cpu_tile__is_vector(p, i) && berth_cpu_tile__load_uses(p, i, loop);
    }
    return any;
}

// A loop of rows: some loads stay (to be used again), others move.
static bool serves_as_row(const berth_cpu_tile *p, int loop) {
    bool stays = p->loads.items.count == 1;
    bool moves = false;
    for (uint32_t i = 0; i < p->loads.items.count; ++i)
        *(berth_cpu_tile__load_uses(p, i, loop) ? &moves : &stays) = true;
    return stays && moves;
}

// Whether rows share what lies in vectors, so that each adds a broadcast only.
static bool shares_vectors(const berth_cpu_tile *p, int loop) {
    for (uint32_t i = 0; i < p->loads.items.count; ++i)
        if (berth_cpu_tile__is_vector(p, i) && berth_cpu_tile__load_uses(p, i, loop)) return false;
    return true;
}

static int find_row(const berth_cpu_tile *p, bool sharing) {
    const int outermost = p->fn->same_tiles ? 1 : 0;  // the loop before that changes
    for (int i = p->vec - 1; i >= outermost; --i)
        if (i != p->col && p->nest.loops[i].extent > 1 && serves_as_row(p, i) &&
            (!sharing || shares_vectors(p, i)))
            return i;
    return -1;
}

static int64_t sum_length(const berth_cpu_tile *p) {
    int64_t length = 1;
    for (int i = 0; i < p->reduction.loops.count; ++i) length *= p->reduction.loops.loops[i].extent;
    return length;
}

// Elements from one lane of the weights to the next: those that an instruction adds lie together.
static int64_t lane_stride(const berth_cpu_tile *p) {
    return p->intrinsic == BERTH_INTRINSIC_COUNT ? 1 : berth_intrinsic_depth(p->intrinsic);
}

// Whether the lanes are next to each other wherever they are loaded: stride 1 or 0 within one
// vector.
static bool loads_lanes(const berth_cpu_tile *p) {
    bool linear = false;
    bool any = false;
    berth_var var = p->nest.loops[p->vec].var;
    for (uint32_t i = 0; i < p->loads.items.count; ++i) {
        int64_t stride = berth_linear_stride(p->fn, &p->loads.items.data[i].at, var, &linear);
        int64_t block = linear ? 0 : berth_linear_block(p->fn, &p->loads.items.data[i].at, var);
        bool next = stride == 1 || stride == lane_stride(p);
        if (linear && stride != 0 && !next) return false;
        if (!linear && (block == 0 || block % p->lanes)) return false;
        any |= !linear || next;
        berth_dtype dtype = p->fn->bufs.data[p->loads.items.data[i].buf].dtype;
        bool has_vectors = berth_dtype_has_vectors(dtype) || dtype == BERTH_DTYPE_F64;
        if (!has_vectors && berth_cpu_tile__is_vector(p, i)) return false;
    }
    return any;
}

// The same, and results are stored so. They may lie apart (real and imaginary parts, every other
// pixel) where the sums are long: then they are stored lane by lane.
static bool lanes_are_contiguous(const berth_cpu_tile *p) {
    bool linear = false;
    berth_var var = p->nest.loops[p->vec].var;
    int64_t apart = berth_linear_stride(p->fn, &p->store, var, &linear);
    if (!linear || apart == 0 || (apart != 1 && sum_length(p) < LONG_SUM)) return false;
    return loads_lanes(p);
}

// ---- choice
// ---------------------------------------------------------------------------------------------------------

// Rows that fit beside the columns: accumulators, one register per column of weights, one for a
// broadcast.
static int64_t row_limit(const berth_cpu_tile *p, int64_t columns) {
    int64_t limit = (p->facts->registers - 1 - columns) / columns;
    int64_t most = p->facts->caps.rows;
    return limit < 1 ? 1 : limit > most ? most : limit;
}

// Whether the loop decides what is padding, or how much of it: divisions for every element once it
// is fused, and no vectors when it is fused with the lanes.
static bool decides(const berth_cpu_tile *p, int loop) {
    berth_var var = p->nest.loops[loop].var;
    if (berth_cpu__used_in_conditions(p->fn, p->reduction.update, var, 0)) return true;
    for (int i = 0; i < p->reduction.epilogue_count; ++i) {
        berth_expr value = p->fn->stmts.data[p->reduction.epilogue[i]].value;
        if (berth_cpu__used_in_conditions(p->fn, value, var, 0)) return true;
    }
    return false;
}

// Loops `loop` and loop + 1 become one where every access of the nest goes on regularly.
static bool try_fuse(berth_cpu_tile *p, int loop) {
    if (decides(p, loop) || decides(p, loop + 1)) return false;
    if (loop == 0 && p->fn->same_tiles) return false;  // it is what changes
    berth_access_list accesses = {0};
    berth_access store = {.buf = 0, .at = p->store};
    for (uint32_t i = 0; i < p->loads.items.count; ++i)
        berth_vec_push(p->fn->module->arena, &accesses.items, p->loads.items.data[i]);
    berth_vec_push(p->fn->module->arena, &accesses.items, store);
    if (!berth_cpu__can_fuse(p->fn, &p->nest, loop, &accesses)) return false;
    p->nest.loops[loop + 1].kind = p->nest.loops[loop].kind;
    berth_status status = berth_schedule_fuse(p->fn, &p->nest, loop);
    if (status) {
        berth_decisions_refuse(p->fn, status);
        return false;
    }
    berth_reduction_parse(p->fn, p->nest.body, &p->reduction);
    berth_cpu_tile__collect(p);
    return true;
}

static void fuse_rows(berth_cpu_tile *p) {
    while (p->row > 0 && p->row - 1 != p->col && serves_as_row(p, p->row - 1) &&
           try_fuse(p, p->row - 1)) {
        p->row--;
        p->vec--;
        if (p->col > p->row) p->col--;
    }
}

bool berth_cpu__reads_inside(berth_tfn *fn, const berth_ranges *ranges, const berth_access *access,
                             int64_t more) {
    const berth_buf_info *info = &fn->bufs.data[access->buf];
    berth_range range = berth_linear_range(fn, ranges, &access->at);
    berth_layout layout;
    berth_status status =
        berth_layout_parse(berth_module_str(fn->module, info->layout), info->rank, &layout);
    if (status) {
        berth_decisions_refuse(fn, status);
        return false;
    }
    return range.high + more < berth_layout_element_count(&layout, info->dims);
}

// Weights whose storage ends with the last column cannot be read in whole vectors after it.
bool berth_cpu_tile__rest_is_padded(const berth_cpu_tile *p, int64_t rest) {
    if (rest % p->lanes == 0) return true;
    berth_var var = p->nest.loops[p->vec].var;
    for (uint32_t i = 0; i < p->loads.items.count; ++i)
        if (berth_cpu_tile__is_vector(p, i) &&
            berth_linear_block(p->fn, &p->loads.items.data[i].at, var) == 0 &&
            !berth_cpu__reads_inside(p->fn, &p->ranges, &p->loads.items.data[i],
                                     p->lanes - rest % p->lanes))
            return false;
    return true;
}

// Whether `more` elements after those that an access reads lie in the same row of a buffer that lies
// row by row.
static bool reads_in_row(berth_cpu_tile *p, const berth_access *access, int64_t more) {
    const berth_buf_info *info = &p->fn->bufs.data[access->buf];
    if (info->layout || info->rank == 0) return false;
    int64_t pitch = info->dims[info->rank - 1];
    berth_linear within = {.constant = access->at.constant % pitch};
    for (int i = 0; i < access->at.count; ++i)
        if (access->at.terms[i].coefficient % pitch)
            within.terms[within.count++] = access->at.terms[i];
    berth_range range = berth_linear_range(p->fn, &p->ranges, &within);
    return range.low >= 0 && range.high + more < pitch;
}

// Columns that are a part of the least vector, in rows that go on to its end.
static bool fill_part_of_vector(berth_cpu_tile *p, int64_t extent) {
    if (p->lanes > BERTH_CPU_LEAST_LANES || extent <= 1) return false;
    for (uint32_t i = 0; i < p->loads.items.count; ++i)
        if (berth_cpu_tile__is_vector(p, i) &&
            !reads_in_row(p, &p->loads.items.data[i], p->lanes - extent))
            return false;
    return true;
}

bool berth_cpu_tile__varies(const berth_cpu_tile *p, int loop) {
    return loop >= 0 && p->facts->any_size && berth_tfn_loop_varies(p->fn, p->nest.loops[loop].var);
}

// Whether the vectors after the last whole tile may begin before it, and so end with the last column: results of some
// columns are stored twice, the same. Not where a result lies over an operand, which would be read after it was
// written. Two operands that lie in rows: panels know whole tiles only.
bool berth_cpu_tile__rest_overlaps(const berth_cpu_tile *p) {
    berth_var var = p->nest.loops[p->vec].var;
    bool linear = false;
    if (p->col >= 0 || p->facts->any_size || p->fn->same_tiles || p->loads.items.count != 2 ||
        p->nest.loops[p->vec].extent < p->lanes ||
        berth_linear_stride(p->fn, &p->store, var, &linear) != 1 || !linear)
        return false;
    if (p->row >= 0 &&
        berth_cpu__weight_panel_of(p->fn, &p->reduction, p->nest.loops[p->row].var, var, p->lanes)
            .count)
        return false;
    for (uint32_t i = 0; i < p->loads.items.count; ++i) {
        int64_t stride = berth_linear_stride(p->fn, &p->loads.items.data[i].at, var, &linear);
        if (!linear || (berth_cpu_tile__is_vector(p, i) && stride != 1)) return false;
    }
    for (int i = 0; i < p->reduction.epilogue_count; ++i)
        if (p->fn->bufs.data[p->fn->stmts.data[p->reduction.epilogue[i]].buf].may_alias)
            return false;
    return true;
}

// Whether columns after the whole tiles are computed in whole vectors.
static bool rest_is_whole(const berth_cpu_tile *p, int64_t rest) {
    return berth_cpu_tile__rest_is_padded(p, rest) || berth_cpu_tile__rest_overlaps(p);
}

// Lanes of columns after the last whole vector, where nothing may be read after them.
int64_t berth_cpu_tile__rest_lanes(const berth_cpu_tile *p, int64_t rest) {
    int64_t least_lanes = berth_cpu_tile__varies(p, p->vec) ? BERTH_CPU_LEAST_LANES : 2;
    int64_t lanes = p->lanes;
    while (rest % lanes && lanes > least_lanes) lanes /= 2;
    return rest % lanes ? 1 : lanes;
}

int64_t berth_cpu_tile__lanes_of_rest(const berth_cpu_tile *p, int64_t rest) {
    return rest_is_whole(p, rest) ? p->lanes : berth_cpu_tile__rest_lanes(p, rest);
}

// Few whole vectors, and after them more columns one by one than halves of vectors leave.
static bool halves_are_better(const berth_cpu_tile *p) {
    int64_t extent = p->nest.loops[p->vec].extent;
    int64_t rest = extent % p->lanes;
    return p->lanes > BERTH_CPU_LEAST_LANES && rest > p->lanes / 2 && !rest_is_whole(p, rest) &&
           extent / p->lanes < p->lanes / 2;
}

// Whole registers, or halves of them for loops (blocks of channels) that are too short. Fewer columns
// are a part of one, where their weights are padded to it.
static bool choose_lanes(berth_cpu_tile *p) {
    int64_t extent = p->nest.loops[p->vec].extent;
    int64_t given = berth_decision_given(p->fn, BERTH_DECISION_LANES, 0);
    for (p->lanes = p->facts->lanes;; p->lanes /= 2) {
        bool fits = lanes_are_contiguous(p) &&
                    (extent >= p->lanes ||
                     (extent > p->lanes / 2 && p->lanes > BERTH_CPU_LEAST_LANES &&
                      berth_cpu_tile__rest_is_padded(p, extent)) ||
                     fill_part_of_vector(p, extent));
        if (fits && given == p->lanes) return true;
        bool narrower = given && given < p->lanes;
        if (fits && !narrower && (berth_cpu_tile__varies(p, p->vec) || !halves_are_better(p)))
            return true;
        if (p->lanes <= BERTH_CPU_LEAST_LANES) return fits;
    }
}

// Results in blocks of half a register whose weights lie in blocks of whole ones: sums in whole
// registers, of which each half is stored by itself. Only where sums are so long that the way of
// the results through memory is little.
static void join_blocks(berth_cpu_tile *p) {
    berth_cpu_tile whole = *p;
    int at = p->vec - 1;
    if (p->intrinsic != BERTH_INTRINSIC_COUNT || p->lanes >= p->facts->lanes ||
        sum_length(p) < LONG_SUM_IN_HALVES || decides(p, p->col) || decides(p, p->vec))
        return;
    berth_status status = BERTH_OK;
    if (p->col != at) status = berth_schedule_reorder(p->fn, &whole.nest, p->col, at);
    whole.nest.loops[at].kind = whole.nest.loops[p->vec].kind;
    if (!status) status = berth_schedule_fuse(p->fn, &whole.nest, at);
    if (status) {
        berth_decisions_refuse(p->fn, status);
        return;
    }
    whole.vec = at;
    whole.col = -1;
    whole.lanes = p->facts->lanes;
    berth_reduction_parse(p->fn, whole.nest.body, &whole.reduction);
    berth_cpu_tile__collect(&whole);
    int64_t extent = whole.nest.loops[at].extent;
    if (!loads_lanes(&whole) || !berth_cpu_tile__rest_is_padded(&whole, extent)) return;
    *p = whole;
}

bool berth_cpu_tile__choose_loops(berth_cpu_tile *p) {
    p->vec = p->nest.count - 1;
    p->col = p->row = -1;
    while (p->vec > 0 && try_fuse(p, p->vec - 1)) p->vec--;
    if (!choose_lanes(p)) return false;
    if (p->nest.loops[p->vec].extent == p->lanes)
        for (int i = p->vec - 1; i >= 0 && p->col < 0; --i)
            if (p->nest.loops[i].extent > 1 && serves_as_column(p, i)) p->col = i;
    if (p->col >= 0 && berth_decision_given(p->fn, BERTH_DECISION_LANES, 0) != p->lanes)
        join_blocks(p);
    berth_decide(p->fn, BERTH_DECISION_LANES, p->lanes, p->lanes, p->lanes,
                 "vectors that the loops and the weights allow");
    p->row = find_row(p, true);
    if (p->row < 0) p->row = find_row(p, false);
    if (p->row >= 0) fuse_rows(p);
    return true;
}

// Rows a multiple of 4 KiB apart share the sets of the first-level cache: more than its ways evict
// each other.
static bool rows_collide(const berth_cpu_tile *p) {
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

// Columns of one row that read its weights by pairs of lines of the cache: by less, every line is fetched again.
static int64_t columns_of_lines(const berth_cpu_tile *p, int64_t rows) {
    enum { pair_bytes = 128, few = 2 };
    int64_t narrowest = sizeof(float);
    for (uint32_t i = 0; i < p->loads.items.count; ++i) {
        int64_t size_bytes =
            (int64_t)berth_dtype_size_bytes(p->fn->bufs.data[p->loads.items.data[i].buf].dtype);
        if (berth_cpu_tile__is_vector(p, i) && size_bytes < narrowest) narrowest = size_bytes;
    }
    int64_t columns = pair_bytes / (p->lanes * narrowest);
    return rows > 1 || columns < few ? few : columns;
}

// Whether each term of a sum reads its weights in another page: few bytes of a page at a time take long to find.
static bool terms_are_pages_apart(const berth_cpu_tile *p) {
    enum { page = 4096 };
    const berth_nest *sum = &p->reduction.loops;
    for (uint32_t i = 0; sum->count && i < p->loads.items.count; ++i) {
        bool linear = false;
        const berth_access *load = &p->loads.items.data[i];
        int64_t stride =
            berth_linear_stride(p->fn, &load->at, sum->loops[sum->count - 1].var, &linear);
        int64_t size_bytes = (int64_t)berth_dtype_size_bytes(p->fn->bufs.data[load->buf].dtype);
        if (berth_cpu_tile__is_vector(p, i) && linear && stride * size_bytes >= page) return true;
    }
    return false;
}

// Two columns beside many rows; beside few rows more of them, or every sum would wait for the one
// before it.
static int64_t wanted_columns(const berth_cpu_tile *p, int64_t vectors) {
    int64_t rows = p->row < 0 ? 1 : p->nest.loops[p->row].extent;
    int64_t sums = p->facts->caps.sums;
    int64_t wanted = rows >= sums / 2 ? 2 : berth_cpu_tile__ceil_div(sums, rows);
    int64_t groups = vectors * berth_cpu_tile__groups_around(p);
    int64_t least = columns_of_lines(p, rows);
    int64_t wanted_groups =
        rows == 1 && terms_are_pages_apart(p) ? BERTH_CPU_LEAST_GROUPS : BERTH_CPU_WANTED_GROUPS;
    while (!p->facts->inside && wanted > least && groups < wanted * wanted_groups)
        wanted = wanted > 2 * least ? wanted / 2 : least;
    return vectors ? berth_cpu_tile__ceil_div(vectors, berth_cpu_tile__ceil_div(vectors, wanted))
                   : 1;
}

// Vectors beside each other: what the policy wants, and how many there are.
static int64_t choose_columns(const berth_cpu_tile *p, bool all_vectors, int64_t *out_vectors) {
    int64_t extent_in_lanes = p->nest.loops[p->vec].extent;
    bool padded = berth_cpu_tile__rest_is_padded(p, extent_in_lanes);
    int64_t vectors = p->col >= 0 ? p->nest.loops[p->col].extent
                      : padded    ? berth_cpu_tile__ceil_div(extent_in_lanes, p->lanes)
                                  : extent_in_lanes / p->lanes;
    int64_t columns = wanted_columns(p, vectors);
    // Depthwise, pools: nothing is shared between columns. Nor is it in long sums over rows that lie beside each other,
    // but these are read by pairs of lines.
    bool is_long = p->loads.items.count == 1 && p->col < 0 && sum_length(p) >= LONG_SUM_IN_HALVES;
    if (all_vectors && !is_long) columns = 1;
    int64_t rest = p->col >= 0 ? 0 : extent_in_lanes % (columns * p->lanes);
    bool scalar_rest = rest && !rest_is_whole(p, rest);
    if (berth_cpu_tile__varies(p, p->vec) && scalar_rest) columns = 1;  // as for the next size
    while (scalar_rest && rest >= p->lanes && vectors % columns) columns--;
    *out_vectors = vectors;
    return columns;
}

// Columns that are computed one by one, or in half vectors, after the whole vectors. 0: none are.
static int64_t single_rest(const berth_cpu_tile *p) {
    int64_t rest = p->col >= 0 ? 0 : p->nest.loops[p->vec].extent % (p->columns * p->lanes);
    if (!rest || rest_is_whole(p, rest)) return 0;
    rest %= p->lanes;
    return rest ? rest / berth_cpu_tile__rest_lanes(p, rest) : 0;
}

// Rows a multiple of 4 KiB apart that stay in a set of the first-level cache. Weights that are computed on the way, or read
// from a panel in the second-level cache, are the dearer the fewer rows share them: so as many as the ways of the cache
// (a page each, as caches that are looked up by virtual addresses have them) less two for the rest.
static int64_t colliding_rows(const berth_cpu_tile *p) {
    enum { page = 4096, other_ways = 2 };
    int64_t most = p->facts->caps.colliding, ways = p->facts->l1_bytes / page - other_ways;
    berth_cpu_weight_panel panel =
        berth_cpu__weight_panel_of(p->fn, &p->reduction, p->nest.loops[p->row].var,
                                   p->nest.loops[p->vec].var, p->columns * p->lanes);
    return panel.count && ways > most ? ways : most;
}

static int64_t choose_rows(berth_cpu_tile *p, bool all_vectors) {
    const berth_cpu_tile_caps *caps = &p->facts->caps;
    int64_t extent = p->nest.loops[p->row].extent;
    int64_t limit = row_limit(p, p->columns);
    int64_t rest = berth_cpu_tile__varies(p, p->vec) ? 0 : single_rest(p);  // they are in a loop
    if (all_vectors && limit > caps->own_vectors) limit = caps->own_vectors;
    if (rest && limit * rest > caps->singles) limit = caps->singles / rest;
    if (rows_collide(p) && limit > colliding_rows(p)) limit = colliding_rows(p);
    // As for the next size, so not by the extent.
    if (berth_cpu_tile__varies(p, p->row)) {
        berth_cpu_tile__share_rows(p, limit < ANY_SIZE_ROWS ? limit : ANY_SIZE_ROWS, limit);
        if (extent >= p->rows) return p->rows;
        const int64_t rows = berth_cpu_tile__few_rows(p);
        p->rest_rows = 1;
        if (rows) return rows;
    }
    return berth_cpu_tile__ceil_div(extent, berth_cpu_tile__ceil_div(extent, limit));
}

void berth_cpu_tile__choose_sizes(berth_cpu_tile *p) {
    int64_t vectors = 0;
    bool all_vectors = true;
    for (uint32_t i = 0; i < p->loads.items.count; ++i)
        all_vectors &= berth_cpu_tile__is_vector(p, i);
    int64_t columns = choose_columns(p, all_vectors, &vectors);
    int64_t most = vectors < 1 ? 1 : vectors < MOST_POSITIONS ? vectors : MOST_POSITIONS;
    p->columns = berth_decide(p->fn, BERTH_DECISION_COLUMNS, columns, 1, most, "vectors of a row");
    p->rows = p->rest_rows = 1;
    if (p->row < 0) return;
    int64_t rows = choose_rows(p, all_vectors);
    most = p->nest.loops[p->row].extent;
    if (most * p->columns > MOST_POSITIONS) most = MOST_POSITIONS / p->columns;
    p->rows = berth_decide(p->fn, BERTH_DECISION_ROWS, rows, 1, most,
                           "iterations of the loop, and 64 accumulators beside these columns");
}
