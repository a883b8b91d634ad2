// What register tiles of other sizes would cost, by an estimate: what `berth plan --why` shows, and which tile many sizes share.
#include <math.h>

#include "compiler/schedule/cpu_tile.h"

enum { most_shown = 3, most_rows = 16, most_columns = 4 };

// Whether every result loads all operands for itself (depthwise, pools).
static bool shares_nothing(const berth_cpu_tile *p) {
    for (uint32_t i = 0; i < p->loads.items.count; ++i)
        if (!berth_cpu_tile__is_vector(p, i)) return false;
    return true;
}

// Cycles of one term of a tile's sums, on a core with two multiply-adds and two loads a cycle, four cycles until a
// result is there: the model of the tile sizes of Low et al. 2016, "Analytical Modeling Is Enough for
// High-Performance BLIS", section 4.
static double term_cycles(const berth_cpu_tile *p, bool own, int64_t rows, int64_t columns) {
    double high = (double)rows, wide = (double)columns;
    double adds = high * wide / 2, loads = own ? high * wide : (high + wide) / 2;
    // Accumulators beyond the registers are loaded and stored in every step.
    double over = high * wide + wide + 1 - (double)p->facts->registers;
    if (over > 0) loads += over;
    double step = adds > loads ? adds : loads;
    return step > 4 ? step : 4;
}

// The same for all results.
static double cycles(const berth_cpu_tile *p, int64_t rows, int64_t columns, int64_t all_rows,
                     int64_t all_columns) {
    double sum = 0;
    bool own = shares_nothing(p);
    for (int64_t r = 0; r < all_rows; r += rows)
        for (int64_t c = 0; c < all_columns; c += columns)
            sum += term_cycles(p, own, all_rows - r < rows ? all_rows - r : rows,
                               all_columns - c < columns ? all_columns - c : columns);
    return sum;
}

// ---- many sizes ---------------------------------------------------------------------------------

static const int64_t *extents_of_rows(const berth_cpu_tile *p) {
    return p->fn->vars.data[p->nest.loops[p->row].var].extents;
}

// Whether the weights of a tile come from the second-level cache for each tile of rows.
static bool streams_weights(const berth_cpu_tile *p) {
    int64_t bytes = p->columns * p->lanes * (int64_t)sizeof(float);
    for (int i = 0; i < p->reduction.loops.count; ++i) bytes *= p->reduction.loops.loops[i].extent;
    return bytes > p->facts->l1_bytes / 2;
}

typedef struct row_costs {
    double of[most_rows + 1];  // cycles of one term of the sums of so many rows
} row_costs;

// Measured with convolutions of 3 x 3 of AVX-512, 24 of 96 channels (tiles of 14, 10, 8 and 4 rows): weights come at 18 bytes a
// cycle from the second-level cache, beside the sums; the less time one takes, the less it is seen beside the other.
static row_costs costs_of_rows(const berth_cpu_tile *p, int64_t most) {
    static const double bytes_per_cycle = 18, sharpness = 6, loops = 0.3;
    const bool own = shares_nothing(p);
    const double vectors = (double)(p->columns * p->lanes * (int64_t)sizeof(float));
    const double weights = !own && streams_weights(p) ? vectors / bytes_per_cycle : 0;
    row_costs costs = {{0}};
    for (int64_t rows = 1; rows <= most; ++rows) {
        const double sums = term_cycles(p, own, rows, p->columns);
        costs.of[rows] = pow(pow(sums, sharpness) + pow(weights, sharpness), 1 / sharpness) + loops;
    }
    return costs;
}

// Whether each extent of fewer rows has a tile of its own: where these are few, and where smaller tiles would read the weights
// from the second-level cache again.
static bool have_own_tiles(const berth_cpu_tile *p, int64_t rows) {
    enum { most_own = 2 };
    const int64_t *extents = extents_of_rows(p);
    if (streams_weights(p)) return true;
    int64_t seen[most_own];
    int count = 0;
    for (uint32_t i = 0; i < p->fn->size_count; ++i) {
        bool known = extents[i] >= rows;
        for (int k = 0; k < count && !known; ++k) known = seen[k] == extents[i];
        if (known) continue;
        if (count == most_own) return false;
        seen[count++] = extents[i];
    }
    return true;
}

// Of one size, in tiles of `rows`, of rest_rows and of single rows.
static double cycles_in(const row_costs *c, int64_t extent, int64_t rows, int64_t rest_rows,
                        bool own) {
    if (extent < rows && own) return c->of[extent];
    const int64_t left = extent % rows;
    return (double)(extent / rows) * c->of[rows] + (double)(left / rest_rows) * c->of[rest_rows] +
           (double)(left % rest_rows) * c->of[1];
}

static double shared_cycles(const berth_cpu_tile *p, const row_costs *c, int64_t rows,
                            int64_t rest_rows) {
    double sum = 0;
    const bool own = have_own_tiles(p, rows);
    for (uint32_t i = 0; i < p->fn->size_count; ++i)
        sum += cycles_in(c, extents_of_rows(p)[i], rows, rest_rows, own);
    return sum;
}

int64_t berth_cpu_tile__few_rows(const berth_cpu_tile *p) {
    if (!extents_of_rows(p) || have_own_tiles(p, p->rows)) return 0;
    return p->nest.loops[p->row].extent >= p->rest_rows ? p->rest_rows : 1;
}

// Whether numbers of tiles and of single rows are expressions of the rows (compiler/vm/fit.c): a rounded quotient each.
static bool counts_are_plain(const berth_cpu_tile *p, int64_t rows, int64_t rest_rows) {
    if (rows % rest_rows == 0) return true;
    for (uint32_t i = 0; i < p->fn->size_count; ++i)
        if (extents_of_rows(p)[i] % rows % rest_rows) return false;
    return true;
}

void berth_cpu_tile__share_rows(berth_cpu_tile *p, int64_t usual, int64_t limit) {
    const int64_t *extents = extents_of_rows(p);
    p->rows = usual;
    p->rest_rows = extents || usual % 2 ? 1 : usual / 2;
    if (!extents) return;
    if (limit > most_rows) limit = most_rows;
    const row_costs costs = costs_of_rows(p, limit);
    int64_t most = limit;
    // Sizes of fewer rows have forms of their own: no more of them than with the usual tile.
    for (uint32_t i = 0; i < p->fn->size_count; ++i)
        if (extents[i] < most) most = extents[i];
    if (most < usual) most = usual;
    double least = shared_cycles(p, &costs, usual, 1);
    for (int64_t rows = most; rows > 1; --rows)
        for (int64_t rest_rows = rows - 1; rest_rows >= 1; --rest_rows) {
            const double sum = shared_cycles(p, &costs, rows, rest_rows);
            if (sum >= least || !counts_are_plain(p, rows, rest_rows)) continue;
            least = sum;
            p->rows = rows;
            p->rest_rows = rest_rows;
        }
}

static bool some_fill_rest(const berth_cpu_tile *p) {
    const int64_t *extents = extents_of_rows(p);
    bool some = p->nest.loops[p->row].extent % p->rows >= p->rest_rows;
    for (uint32_t i = 0; i < p->fn->size_count && !some; ++i)
        some = extents[i] >= p->rows && extents[i] % p->rows >= p->rest_rows;
    return some;
}

static bool some_are_single(const berth_cpu_tile *p) {
    const int64_t *extents = extents_of_rows(p);
    if (p->rest_rows == 1) return false;
    bool some = p->nest.loops[p->row].extent % p->rows % p->rest_rows > 0;
    for (uint32_t i = 0; i < p->fn->size_count && !some; ++i)
        some = extents[i] >= p->rows && extents[i] % p->rows % p->rest_rows > 0;
    return some;
}

int berth_cpu_tile__rest_tiles(const berth_cpu_tile *p, int64_t rows[BERTH_CPU_MOST_REST_TILES]) {
    int count = 0;
    if (extents_of_rows(p)) {
        if (some_fill_rest(p)) rows[count++] = p->rest_rows;
        if (some_are_single(p)) rows[count++] = 1;
    } else {
        for (int64_t of = p->rest_rows; of > 0; of /= 2) rows[count++] = of;
    }
    return count;
}

typedef struct other_tile {
    int64_t rows, columns;
    double cost;
    bool over;  // more than the registers
} other_tile;

static void keep_best(other_tile *best, other_tile tried) {
    for (int i = 0; i < most_shown; ++i) {
        if (best[i].rows && best[i].cost <= tried.cost) continue;
        other_tile moved = best[i];
        best[i] = tried;
        tried = moved;
        if (!tried.rows) return;
    }
}

void berth_cpu_tile__explain(berth_cpu_tile *p) {
    if (p->row < 0) return;
    int64_t all_rows = p->nest.loops[p->row].extent;
    int64_t all_columns = p->col >= 0
                              ? p->nest.loops[p->col].extent
                              : berth_cpu_tile__ceil_div(p->nest.loops[p->vec].extent, p->lanes);
    // Sizes repeat along long loops.
    if (all_rows > 1000) all_rows = 1000 + all_rows % 1000;
    if (all_columns > 64) all_columns = 64;
    double chosen = cycles(p, p->rows, p->columns, all_rows, all_columns);
    other_tile best[most_shown] = {0};
    for (int64_t r = 1; r <= most_rows && r <= all_rows; ++r)
        for (int64_t c = 1; c <= most_columns && c <= all_columns; ++c) {
            if (r == p->rows && c == p->columns) continue;
            double cost = cycles(p, r, c, all_rows, all_columns) / chosen;
            keep_best(best, (other_tile){r, c, cost, r * c + c + 1 > p->facts->registers});
        }
    for (int i = 0; i < most_shown && best[i].rows; ++i) {
        const char *what = berth_arena_printf(p->fn->module->arena, "columns=%lld rows=%lld",
                                              (long long)best[i].columns, (long long)best[i].rows);
        const char *why = best[i].over           ? "more accumulators than registers"
                          : best[i].cost < 0.995 ? "a rule of the policy is against it"
                          : best[i].cost < 1.005 ? "no better"
                                                 : "slower";
        berth_decisions_add_alternative(p->fn, what, best[i].cost, why);
    }
}
