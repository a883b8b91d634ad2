// Sizes of a tile in local memory (local_tile.h): vectors, rows and terms of the sum, work-items, stages.
#include "compiler/schedule/local_tile.h"

#include "ir/tensor/copies.h"

#define MOST_ROWS 64  // each is a statement for every term of the sum

static int64_t ceil_div(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

berth_local_tile_limits berth_local_tile_limits_of(const berth_target *target) {
    return (berth_local_tile_limits){.lanes = 4,
                                     .rows = target->item_rows,
                                     .group_columns = target->group_columns,
                                     .group_rows = target->group_rows,
                                     .depth = target->tile_depth,
                                     .group_size = target->max_group_size,
                                     .local_memory_bytes = target->local_memory_bytes,
                                     .compute_units = target->compute_units};
}

// The multiple of `terms` near what is wanted that divides the sum; 0: there is none.
static int64_t divisor_near(int64_t sum, int64_t wanted, int64_t terms) {
    int64_t best = 0, first = wanted > 1 ? wanted / 2 : 1;
    for (int64_t d = first; d <= 2 * wanted && d <= sum; ++d) {
        int64_t distance = d > wanted ? d - wanted : wanted - d;
        int64_t known = best > wanted ? best - wanted : wanted - best;
        if (d % terms == 0 && sum % d == 0 && (best == 0 || distance < known)) best = d;
    }
    return best;
}

// A multiple of `terms` at once; what is beyond the end of the sum costs as any term, a step as much as two. 0: a sum of fewer.
static int64_t choose_depth(int64_t sum, int64_t wanted, int64_t terms) {
    enum { terms_of_step = 2 };
    int64_t best = divisor_near(sum, wanted, terms), least = INT64_MAX;
    if (best > 0) return best;
    if (terms == 1) return sum < wanted ? sum : wanted;
    for (int64_t d = terms; d <= wanted && d <= sum; d += terms) {
        int64_t cost = ceil_div(sum, d) * (d + terms_of_step);
        if (cost > least) continue;
        least = cost;
        best = d;
    }
    return best;
}

// Languages have vectors of 32-bit elements (and of narrower ones, which are no sums).
uint16_t berth_local__most_lanes(const berth_local_plan *p, const berth_local_tile_limits *limits) {
    berth_dtype dtype = p->fn->bufs.data[p->reduction.acc].dtype;
    return dtype == BERTH_DTYPE_F32 || dtype == BERTH_DTYPE_I32 ? limits->lanes : 1;
}

static void choose_lanes(berth_local_plan *p, const berth_local_tile_limits *limits) {
    berth_nest_loop *last = &p->columns.loops[p->columns.count - 1];
    int64_t lanes = berth_local__most_lanes(p, limits);
    while (lanes > 1 && ceil_div(last->extent, lanes) * lanes * 3 > last->extent * 4) lanes /= 2;
    lanes = berth_decide(p->fn, BERTH_DECISION_LANES, lanes, 1, berth_local__most_lanes(p, limits),
                         "vectors that a work-item computes with");
    if (lanes & (lanes - 1)) {
        berth_decision_wrong(p->fn, BERTH_DECISION_LANES, "vectors have a power of two of lanes");
        lanes = 1;
    }
    p->lanes = (uint16_t)lanes;
    p->column_blocks = ceil_div(last->extent, p->lanes);
    p->columns.extent = p->columns.extent / last->extent * p->column_blocks;
}

// What the busiest compute unit issues for a term of the sum, in multiplications: the results of its tiles, each with its share
// of the loads of operands from the group's memory, of which those of a row are for `row_terms` terms at once.
static double busiest_unit(const berth_local_plan *p, const berth_local_tile_limits *limits,
                           int64_t vectors, int64_t items_y) {
    int64_t columns = vectors * limits->group_columns, rows = items_y * p->tile_rows;
    double groups = (double)p->batch.extent * (double)ceil_div(p->columns.extent, columns) *
                    (double)ceil_div(p->rows.extent, rows);
    double turns = groups / (double)limits->compute_units;
    if (turns > (double)(int64_t)turns) turns = (double)(int64_t)turns + 1;
    double products = (double)(vectors * p->tile_rows * p->lanes);
    double loads = (double)vectors + (double)p->tile_rows / (double)p->row_terms;
    return turns * (double)(columns * rows) * (1 + loads / products);
}

// Of tiles that the device allows the one with which its busiest unit has least to do; of equals the larger, which reads less
// of the device's memory.
static void choose_shape(berth_local_plan *p, const berth_local_tile_limits *limits,
                         int64_t *out_items_y) {
    p->vectors = 1;
    *out_items_y = limits->group_rows;
    if (limits->vectors <= 1) return;
    bool large = p->row_terms > 1 && limits->compute_units > 0 && p->lanes > 1;
    double least = large ? busiest_unit(p, limits, 1, limits->group_rows) : 0;
    for (int64_t vectors = 2; large && vectors <= limits->vectors; vectors *= 2) {
        for (int64_t items = limits->group_rows; items <= vectors * limits->group_rows;
             items *= 2) {
            if (items * limits->group_columns > limits->group_size) break;
            double work = busiest_unit(p, limits, vectors, items);
            if (work > least) continue;
            least = work;
            p->vectors = vectors;
            *out_items_y = items;
        }
    }
    p->vectors = berth_decide(p->fn, BERTH_DECISION_COLUMNS, p->vectors, 1,
                              BERTH_LOCAL_MOST_VECTORS, "vectors of a work-item");
}

// Several terms of a row are read at once where steps of whole ones serve, in elements of the size that languages have
// vectors of.
static void choose_row_terms(berth_local_plan *p, const berth_local_tile_limits *limits) {
    p->row_terms =
        berth_local__most_lanes(p, limits) > 1 && limits->row_terms > 1 ? limits->row_terms : 1;
    p->depth = choose_depth(p->sum.extent, limits->depth, p->row_terms);
    if (p->depth > 0) return;
    p->row_terms = 1;
    p->depth = choose_depth(p->sum.extent, limits->depth, 1);
}

static void choose_group(berth_local_plan *p, const berth_local_tile_limits *limits) {
    int64_t items_y = 0, blocks = 0;
    choose_shape(p, limits, &items_y);
    blocks = ceil_div(p->columns.extent, p->vectors);
    p->local_x = blocks < limits->group_columns ? blocks : limits->group_columns;
    p->local_y = ceil_div(p->rows.extent, p->tile_rows);
    if (p->local_y > items_y) p->local_y = items_y;
    while (p->local_x * p->local_y > limits->group_size && p->local_x * p->local_y > 1)
        *(p->local_x > p->local_y ? &p->local_x : &p->local_y) /= 2;
    p->local_x = berth_decide(p->fn, BERTH_DECISION_GROUP_COLUMNS, p->local_x, 1,
                              limits->group_size, "work-items of a group");
    int64_t most = limits->group_size / p->local_x;
    int64_t rows = p->local_y < most ? p->local_y : most;
    p->local_y = berth_decide(p->fn, BERTH_DECISION_GROUP_ROWS, rows < 1 ? 1 : rows, 1,
                              most < 1 ? 1 : most, "work-items of a group beside its columns");
}

// Rows begin where `row_terms` elements can be read at once; of single ones each begins in another bank, so that
// neighbours in a column lie in different ones.
int64_t berth_local__row_stride(const berth_local_plan *p) {
    return p->depth + p->row_terms;
}

static int64_t local_bytes(const berth_local_plan *p) {
    int64_t rows = p->local_y * p->tile_rows, columns = p->vectors * p->local_x * p->lanes;
    berth_dtype dtype = p->fn->bufs.data[p->reduction.acc].dtype;
    int64_t element_bytes = (int64_t)berth_dtype_size_bytes(dtype);
    return element_bytes * (rows * berth_local__row_stride(p) + p->depth * columns);
}

static void choose_stages(berth_local_plan *p, const berth_local_tile_limits *limits) {
    int64_t most = limits->local_memory_bytes / local_bytes(p);
    int64_t steps = ceil_div(p->sum.extent, p->depth);
    if (most > steps) most = steps;
    if (most > BERTH_TFN_MOST_PENDING) most = BERTH_TFN_MOST_PENDING;
    if (most < 1) most = 1;
    int64_t wanted = limits->copy_stages > 0 ? limits->copy_stages : 1;
    p->copies = limits->copy_stages > 0;
    p->stages = berth_decide(p->fn, BERTH_DECISION_STAGES, wanted < most ? wanted : most, 1, most,
                             "the memory of a group, and steps of the sum");
}

bool berth_local__choose_sizes(berth_local_plan *p, const berth_local_tile_limits *limits) {
    choose_lanes(p, limits);
    p->tile_rows = ceil_div(p->rows.extent, ceil_div(p->rows.extent, limits->rows));
    p->tile_rows = berth_decide(p->fn, BERTH_DECISION_ROWS, p->tile_rows, 1, MOST_ROWS,
                                "accumulators of a work-item");
    choose_row_terms(p, limits);
    choose_group(p, limits);
    while (p->depth > 0 && local_bytes(p) > limits->local_memory_bytes) p->depth /= 2;
    if (p->depth == 0) {
        berth_decisions_refuse(p->fn, berth_status_make(BERTH_FAILED_PRECONDITION,
                                                        "schedule: local tile: a step of the sum "
                                                        "takes more than the %lld bytes of a "
                                                        "group's memory",
                                                        (long long)limits->local_memory_bytes));
        return false;
    }
    p->depth = berth_decide(p->fn, BERTH_DECISION_DEPTH, p->depth, 1, p->sum.extent, "the sum");
    if (local_bytes(p) > limits->local_memory_bytes)
        berth_decision_wrong(p->fn, BERTH_DECISION_DEPTH,
                             berth_arena_printf(p->fn->module->arena,
                                                "the tiles take %lld bytes, and a group has %lld",
                                                (long long)local_bytes(p),
                                                (long long)limits->local_memory_bytes));
    if (p->depth % p->row_terms) p->row_terms = 1;
    choose_stages(p, limits);
    return true;
}
