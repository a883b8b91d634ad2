#include "planner/solve/strategies.h"

static bool applies(const berth_place_problem *problem, const berth_place_options *options) {
    (void)problem;
    (void)options;
    return true;
}

static bool supported(const berth_place_problem *problem, uint32_t device) {
    for (uint32_t v = 0; v < problem->node_count; ++v)
        if (problem->time[(size_t)v * problem->kind_count + problem->device_kind[device]] >
            BERTH_PLACE_FIGURE_LIMIT)
            return false;
    return true;
}

static berth_status run(berth_place_search *search) {
    const berth_place_problem *problem = search->problem;
    uint32_t *assignment = berth_arena_new_array(search->arena, uint32_t, problem->node_count);
    for (uint32_t d = 0; d < problem->device_count; ++d) {
        if (!supported(problem, d)) continue;
        if (problem->kinds[problem->device_kind[d]].capacity_bytes < 1e300) continue;
        for (uint32_t v = 0; v < problem->node_count; ++v) assignment[v] = d;
        berth_place_offer(search, assignment);
    }
    return BERTH_OK;
}

const berth_place_strategy berth_place__greedy = {"greedy", "everything on one device", 100,
                                                  applies, run};
