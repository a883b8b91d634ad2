// The bound by weighted loads. The sum is concave in the weights: pairs of kinds are balanced by
// golden sections, which for two kinds is all there is to do.
#include "planner/solve/bounds/load_bound.h"

#include <math.h>

static double weigh_item(const berth_place_problem *problem, const berth_place_nets *nets,
                         const double *weight, uint32_t item) {
    double least = INFINITY;
    for (uint32_t k = 0; k < nets->kind_count; ++k) {
        double time = nets->time[(size_t)item * nets->kind_count + k];
        if (problem->kinds[k].device_count == 0 || isinf(time)) continue;
        if (nets->size_bytes[item] > problem->kinds[k].capacity_bytes * (1 + 1e-12)) continue;
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

// Best split of what the two kinds have together, by golden sections (Kiefer 1953). Returns the sum.
static double balance(const berth_place_problem *problem, const berth_place_nets *nets,
                      double *weight, uint32_t a, uint32_t b) {
    enum { STEPS = 50 };
    static const double golden = 0.6180339887498949;
    double count_a = problem->kinds[a].device_count;
    double count_b = problem->kinds[b].device_count;
    double both = weight[a] * count_a + weight[b] * count_b;
    double low = 0, high = both, share[2], value[2];
    bool known[2] = {false, false};
    for (int step = 0; step < STEPS; ++step) {
        share[0] = high - (high - low) * golden;
        share[1] = low + (high - low) * golden;
        for (int side = 0; side < 2; ++side) {
            if (known[side]) continue;
            weight[a] = share[side] / count_a;
            weight[b] = (both - share[side]) / count_b;
            value[side] = weigh_all(problem, nets, weight);
        }
        // One of the two places is one of the next two.
        bool right = value[0] < value[1];
        if (right)
            low = share[0];
        else
            high = share[1];
        value[!right] = value[right];
        known[!right] = true;
        known[right] = false;
    }
    weight[a] = (low + high) / 2 / count_a;
    weight[b] = (both - (low + high) / 2) / count_b;
    return weigh_all(problem, nets, weight);
}

double berth_place__weigh_loads(const berth_place_problem *problem, const berth_place_nets *nets,
                                double *out_weight, double *out_floor) {
    enum { ROUNDS = 8 };
    uint32_t kinds = nets->kind_count, used = 0;
    double devices = 0;
    for (uint32_t k = 0; k < kinds; ++k) {
        devices += problem->kinds[k].device_count;
        used += problem->kinds[k].device_count > 0;
    }
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
        if (used <= 2 || bound - before <= 1e-12 * bound) break;
    }
    for (uint32_t i = 0; i < nets->item_count; ++i)
        out_floor[i] = weigh_item(problem, nets, out_weight, i);
    return bound;
}
