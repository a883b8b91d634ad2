// Whether what a search found is surely better than a simple plan. A search takes the least of very many predictions,
// and so one of those that are too low (the optimizer's curse: Smith and Winkler, Management Science 52(3), 2006):
// it has to gain more than its predictions are unsure of.
#include <math.h>

#include "planner/choice.h"

// Times of kernels are no surer than that, and operations without a time of their own could be anywhere.
static const double least_gain = 0.01;
// A time between measured ones, or by the target's figures, is off by that much of it in the median
// (docs/costs.md, "How far off": shapes). One kernel's error says nothing of another's: their squares add up.
static const double part_unsure = 0.2;

static const double ns_per_ms = 1e6;

typedef struct candidate {
    const uint32_t *assignment;
    const char *found_by;
    double value;      // in the problem's unit; of latency: by the kernels that are made
    double unsure_ms;  // of that
    double guessed;    // square of what kernels that nobody measured make unsure, in ms
} candidate;

// Whether processor cores are at one end of a device's copies, or it is handed its work in the host's memory.
static bool is_by_cores(const berth_multi_target *target, uint32_t device) {
    return berth_target_is_cores(target->devices[device].target) ||
           berth_multi_target_share_memory(target, device, target->host, NULL);
}

// For latency, what a plan takes by the kernels that are made of it, and how unsure that is: a part of the kernels' times
// that nobody measured, and what copies and hand-overs by processor cores take. A border between two devices there costs about as much again in
// what no plan has (docs/costs.md, "Whether auto pays"): the one that hands over is kept from its own work
// meanwhile (a thread is woken, a driver called), and the other finds nothing of it in its caches.
static berth_status look_closer(const berth_planner_state *state, candidate *c) {
    const berth_multi_target *target = state->options->target;
    const berth_placement *placement = state->choice->placement;
    berth_planner_kernels kernels;
    berth_place_value value;
    berth_place_copy *copies = NULL;
    uint32_t count = 0;
    c->unsure_ms = 0;
    if (state->choice->objective != BERTH_PLACE_LATENCY || c->value == INFINITY) return BERTH_OK;
    (void)berth_planner__by_kernels(state, c->assignment, &kernels);
    for (uint32_t i = 0; i < kernels.count; ++i)
        if (kernels.data[i].figure == BERTH_COST_INTERPOLATED ||
            kernels.data[i].figure == BERTH_COST_ANALYTIC)
            c->guessed += pow(part_unsure * kernels.data[i].time_ns / ns_per_ms, 2);
    BERTH_TRY(berth_place_schedule(state->choice->arena, &kernels.problem, c->assignment, &value,
                                   &copies, &count));
    c->value = value.value;
    for (uint32_t i = 0; i < count; ++i)
        if (is_by_cores(target, placement->target_device[copies[i].link]))
            c->unsure_ms += copies[i].end - copies[i].start;
    return BERTH_OK;
}

static bool is_surely_better(const candidate *c, const candidate *than) {
    double unsure_ms = fmax(0, c->unsure_ms - than->unsure_ms);
    unsure_ms += sqrt(fmax(0, c->guessed - than->guessed));
    return c->value * (1 + least_gain) + unsure_ms < than->value;
}

// All that may be there on a device, the rest where the rules have it.
static const uint32_t *all_on(const berth_planner_state *state, uint32_t device,
                              const uint32_t *rules) {
    const berth_place_problem *problem = &state->choice->placement->problem;
    uint32_t kind = problem->device_kind[device];
    uint32_t *out = berth_arena_new_array(state->choice->arena, uint32_t, problem->node_count);
    for (uint32_t g = 0; g < problem->group_count; ++g) {
        const uint32_t *nodes = &problem->group_nodes[problem->group_start[g]];
        uint32_t count = problem->group_start[g + 1] - problem->group_start[g];
        bool able = problem->pin[nodes[0]] == BERTH_PLACE_NONE;
        for (uint32_t i = 0; i < count && able; ++i)
            able = problem->time[(size_t)nodes[i] * problem->kind_count + kind] < INFINITY;
        for (uint32_t i = 0; i < count; ++i) out[nodes[i]] = able ? device : rules[nodes[i]];
    }
    return out;
}

berth_status berth_planner__prefer_simple(const berth_planner_state *state, const uint32_t *rules,
                                          double rules_value, double value,
                                          const uint32_t **assignment) {
    berth_planner_choice *choice = state->choice;
    const berth_place_problem *problem = &choice->placement->problem;
    candidate found = {*assignment, choice->found_by, value, 0, 0};
    candidate best = {rules, "default", rules_value, 0, 0};
    BERTH_TRY(look_closer(state, &found));
    BERTH_TRY(look_closer(state, &best));
    bool latency = choice->objective == BERTH_PLACE_LATENCY;
    for (uint32_t d = 0; latency && d < problem->device_count; ++d) {
        if (d > 0 && problem->device_kind[d] == problem->device_kind[d - 1]) continue;  // alike
        candidate one = {all_on(state, d, rules), "one device", 0, 0, 0};
        BERTH_TRY(berth_planner__value_of(state, one.assignment, &one.value));
        BERTH_TRY(look_closer(state, &one));
        if (!(one.value < best.value)) continue;
        if (is_surely_better(&one, &best)) best = one;
    }
    if (is_surely_better(&found, &best)) return BERTH_OK;
    *assignment = best.assignment;
    choice->found_by = best.found_by;
    return BERTH_OK;
}
