// The bound by weighted loads. The sum is concave in the weights: pairs of kinds are balanced by
// ternary search, which for two kinds is all there is to do.
#include "planner/solve/load_bound.h"

#include <math.h>

static double weigh_item(const berth_place_problem *problem, const berth_place_nets *nets,
                         const double *weight, uint32_t item) {
    double least = INFINITY;
    for (uint32_t k = 0; k < nets->kind_count; ++k) {
        double time = nets->time[(size_t)item * nets->kind_count + k];
        if (problem->kinds[k].device_count == 0 || isinf(time)) continue;
        double weighted = weight[k] * time;
        if (weighted < least) least = weighted;
    }
    return least;
}

static double weigh_all(const berth_place_problem *problem, const berth_place_nets *nets,
                        const double *weight) {
    double sum = 0;
    for (uint32_t i = 0; i < nets->item_count; ++i) sum += weigh_item(problem, nets, weight, i);
    return sum;
}

// Best split of what the two kinds have together. Returns the sum.
static double balance(const berth_place_problem *problem, const berth_place_nets *nets,
                      double *weight, uint32_t a, uint32_t b) {
    enum { STEPS = 60 };
    double count_a = problem->kinds[a].device_count;
    double count_b = problem->kinds[b].device_count;
    double both = weight[a] * count_a + weight[b] * count_b;
    double low = 0;
    double high = both;
    for (int step = 0; step < STEPS; ++step) {
        double value[2];
        for (int side = 0; side < 2; ++side) {
            double share = low + (high - low) * (side + 1) / 3;
            weight[a] = share / count_a;
            weight[b] = (both - share) / count_b;
            value[side] = weigh_all(problem, nets, weight);
        }
        if (value[0] < value[1]) {
            low += (high - low) / 3;
        } else {
            high -= (high - low) / 3;
        }
    }
    weight[a] = (low + high) / 2 / count_a;
    weight[b] = (both - (low + high) / 2) / count_b;
    return weigh_all(problem, nets, weight);
}

double berth_place__weigh_loads(const berth_place_problem *problem, const berth_place_nets *nets,
                                double *out_weight, double *out_floor) {
    enum { ROUNDS = 8 };
    uint32_t kinds = nets->kind_count;
    double devices = 0;
    for (uint32_t k = 0; k < kinds; ++k) devices += problem->kinds[k].device_count;
    for (uint32_t k = 0; k < kinds; ++k)
        out_weight[k] = problem->kinds[k].device_count > 0 ? 1 / devices : 0;
    double bound = weigh_all(problem, nets, out_weight);
    for (int round = 0; round < ROUNDS && isfinite(bound); ++round) {
        double before = bound;
        for (uint32_t a = 0; a < kinds; ++a) {
            for (uint32_t b = a + 1; b < kinds; ++b) {
                if (problem->kinds[a].device_count == 0 || problem->kinds[b].device_count == 0)
                    continue;
                bound = balance(problem, nets, out_weight, a, b);
            }
        }
        if (bound - before <= 1e-12 * bound) break;
    }
    for (uint32_t i = 0; i < nets->item_count; ++i)
        out_floor[i] = weigh_item(problem, nets, out_weight, i);
    return bound;
}
