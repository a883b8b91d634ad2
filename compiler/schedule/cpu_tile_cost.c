// What register tiles of other sizes would cost, by an estimate: what `berth plan --why` shows.
#include "compiler/schedule/cpu_tile.h"

enum { most_shown = 3, most_rows = 16, most_columns = 4 };

// Whether every result loads all operands for itself (depthwise, pools).
static bool shares_nothing(const berth_cpu_tile *p) {
    for (uint32_t i = 0; i < p->loads.items.count; ++i)
        if (!berth_cpu_tile__is_vector(p, i)) return false;
    return true;
}

// Cycles of one term of the sum for all results, on a core with two multiply-adds and two loads a
// cycle, four cycles until a result is there: the model of the tile sizes of Low et al. 2016,
// "Analytical Modeling Is Enough for High-Performance BLIS", section 4.
static double cycles(const berth_cpu_tile *p, int64_t rows, int64_t columns, int64_t all_rows,
                     int64_t all_columns) {
    double sum = 0;
    bool own = shares_nothing(p);
    for (int64_t r = 0; r < all_rows; r += rows)
        for (int64_t c = 0; c < all_columns; c += columns) {
            double high = (double)(all_rows - r < rows ? all_rows - r : rows);
            double wide = (double)(all_columns - c < columns ? all_columns - c : columns);
            double adds = high * wide / 2, loads = own ? high * wide : (high + wide) / 2;
            // Accumulators beyond the registers are loaded and stored in every step.
            double over = high * wide + wide + 1 - (double)p->facts->registers;
            if (over > 0) loads += over;
            double step = adds > loads ? adds : loads;
            sum += step > 4 ? step : 4;
        }
    return sum;
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
