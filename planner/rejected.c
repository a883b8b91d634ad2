// For every operation the devices that it is not on: why, and what the plan's value would be if the
// operation (with all that must share its device) moved there and nothing else did. One evaluation
// of the plan per group and device where that is affordable; in large modules only the group's own
// time and copies, which are counted from who reads a value where: linear in edges and devices.
#include <math.h>
#include <string.h>

#include "planner/choice.h"

// Evaluations times nodes; about a second.
static const double work_limit = 4e6;

typedef struct rejecter {
    const berth_planner_state *state;
    const berth_planner_choice *choice;
    const berth_place_problem *problem;  // without pins and capacities
    berth_place_problem relaxed;
    bool share;   // the value is a share of capacities
    double unit;  // of the plan's value per the problem's
    double value;
    uint32_t *assignment;  // [node_count] scratch: one group moved
    const uint32_t *placed;
    double *used_bytes;  // [device_count]
    double *capacity;    // [device_count]
    bool exact;          // evaluations are affordable
    uint32_t *readers;   // [node_count * device_count] reads of a value by nodes placed there
    uint32_t *into;      // [node_count] scratch: reads of a value by the group at hand
    uint32_t *around;    // [node_count] scratch: the group's nodes and those that they read
    uint32_t around_count;
    double *bytes;          // [group_count]
    bool *unable;           // [group_count * device_count] one of its nodes does not run there
    double *delta;          // [group_count * device_count] once known
    const char **sentence;  // [group_count * device_count] NULL = not yet made
} rejecter;

static double time_of(const rejecter *r, uint32_t node, uint32_t device) {
    return r->problem
        ->time[(size_t)node * r->problem->kind_count + r->problem->device_kind[device]];
}

static double transfer_of(const rejecter *r, uint32_t node, uint32_t device) {
    return r->problem
        ->transfer[(size_t)node * r->problem->kind_count + r->problem->device_kind[device]];
}

// The copies of one node's value: to host memory once, from there to each device once. The group's
// reads of it come from device `to` instead of `from`.
static double copies_of(const rejecter *r, uint32_t node, uint32_t home, uint32_t from,
                        uint32_t to) {
    const berth_place_problem *problem = r->problem;
    const uint32_t *readers = &r->readers[(size_t)node * problem->device_count];
    bool latency = r->choice->objective == BERTH_PLACE_LATENCY, written = false;
    double total = 0;
    for (uint32_t device = 0; device < problem->device_count; ++device) {
        uint32_t reads = readers[device];
        if (device == from) reads -= r->into[node];
        if (device == to) reads += r->into[node];
        if (device == home || reads == 0) continue;
        double there = transfer_of(r, node, device);
        double direct = berth_place_direct(problem, node, home, device);
        if (latency && direct < transfer_of(r, node, home) + there) {
            total += direct;
            continue;
        }
        if (!written) total += transfer_of(r, node, home);
        written = true;
        total += there;
    }
    return total;
}

static void add_around(rejecter *r, uint32_t node) {
    if (r->into[node] == UINT32_MAX) {
        r->into[node] = 0;
        r->around[r->around_count++] = node;
    }
}

// What all copies of values that a group makes or reads cost more when it moves.
static double copies_by_move(rejecter *r, uint32_t group, uint32_t from, uint32_t to) {
    const berth_place_problem *problem = r->problem;
    double total = 0;
    r->around_count = 0;
    for (uint32_t i = problem->group_start[group]; i < problem->group_start[group + 1]; ++i) {
        uint32_t v = problem->group_nodes[i];
        add_around(r, v);
        for (uint32_t k = problem->pred_start[v]; k < problem->pred_start[v + 1]; ++k) {
            add_around(r, problem->pred[k]);
            r->into[problem->pred[k]]++;
        }
    }
    for (uint32_t i = 0; i < r->around_count; ++i) {
        uint32_t u = r->around[i], home = r->placed[u];
        bool moves = problem->group[u] == group;
        total += copies_of(r, u, moves ? to : home, from, to) - copies_of(r, u, home, from, from);
    }
    for (uint32_t i = 0; i < r->around_count; ++i) r->into[r->around[i]] = UINT32_MAX;
    return total;
}

static void count_readers(rejecter *r) {
    const berth_place_problem *problem = r->problem;
    berth_arena *arena = r->choice->arena;
    uint32_t nodes = problem->node_count;
    r->readers = berth_arena_new_array(arena, uint32_t, (size_t)nodes * problem->device_count);
    r->into = berth_arena_new_array(arena, uint32_t, nodes);
    r->around = berth_arena_new_array(arena, uint32_t, nodes);
    for (uint32_t v = 0; v < nodes; ++v) {
        r->into[v] = UINT32_MAX;  // not around the group at hand
        for (uint32_t i = problem->succ_start[v]; i < problem->succ_start[v + 1]; ++i)
            r->readers[(size_t)v * problem->device_count + r->placed[problem->succ[i]]]++;
    }
}

static void move(rejecter *r, uint32_t group, uint32_t device) {
    const berth_place_problem *problem = r->problem;
    for (uint32_t i = problem->group_start[group]; i < problem->group_start[group + 1]; ++i)
        r->assignment[problem->group_nodes[i]] = device;
}

static double group_ms(const rejecter *r, uint32_t group, uint32_t device) {
    const berth_place_problem *problem = r->problem;
    double total = 0;
    for (uint32_t i = problem->group_start[group]; i < problem->group_start[group + 1]; ++i)
        total += time_of(r, problem->group_nodes[i], device);
    return total;
}

// "+0.31 ms", "-12 us".
static const char *duration(const rejecter *r, double ms) {
    bool small = fabs(ms) < 0.1;
    return berth_arena_printf(r->state->arena, small ? "%+.3g us" : "%+.3g ms",
                              small ? ms * 1e3 : ms);
}

static const char *in_unit(const rejecter *r, double value) {
    char bytes[32];
    if (isnan(value)) return "not possible";
    if (r->choice->objective != BERTH_PLACE_MEMORY) return duration(r, value);
    if (r->share)
        return berth_arena_printf(r->state->arena, "%+.2f %% of the capacity", value * 100);
    berth_format_bytes((uint64_t)fabs(value), bytes);
    return berth_arena_printf(r->state->arena, "%s%s", value < 0 ? "-" : "+", bytes);
}

// The group's move: value, and the words for it.
static const char *weigh(rejecter *r, uint32_t group, uint32_t device, double *out_delta) {
    uint32_t home = r->placed[r->problem->group_nodes[r->problem->group_start[group]]];
    double own = group_ms(r, group, device) - group_ms(r, group, home);
    double copies = copies_by_move(r, group, home, device);
    *out_delta = own + copies;
    if (r->exact) {
        move(r, group, device);
        berth_arena *scratch = berth_arena_create_child(r->choice->arena);
        berth_place_value value;
        berth_status status = berth_place_evaluate(scratch, &r->relaxed, r->choice->objective,
                                                   false, r->assignment, &value);
        if (berth_status_code(status) == BERTH_OUT_OF_MEMORY) berth_arena_fail(r->choice->arena);
        *out_delta = status ? NAN : value.value - r->value;
        berth_status_free(status);
        berth_arena_destroy(scratch);
        move(r, group, home);
    }
    return berth_arena_printf(r->state->arena, "%s%s: computing %s, copies %s",
                              in_unit(r, *out_delta), r->exact ? "" : " by itself",
                              duration(r, own), duration(r, copies));
}

static const char *unsupported(const rejecter *r, berth_op_id op, uint32_t device) {
    const berth_planner_state *state = r->state;
    const berth_planner_function *f = &state->functions[state->main];
    const berth_cost_model *cost = &state->options->cost;
    if (!f->able || berth_bits_has(f->able[op], device)) return NULL;
    const char *why =
        cost->unsupported(cost->user, state->module, state->main, op, device, state->arena);
    return berth_arena_printf(state->arena, "unsupported: %s", why ? why : "not by this device");
}

static berth_plan_rejected reject(rejecter *r, const berth_plan_entry *entry, uint32_t node,
                                  uint32_t target_device) {
    uint32_t group = r->problem->group[node];
    uint32_t device = r->choice->placement->solver_device[target_device];
    berth_plan_rejected out = {.device = target_device, .delta = NAN};
    if (entry->host_operation) {
        out.reason = "the host does it";
        return out;
    }
    out.reason = unsupported(r, entry->op, target_device);
    if (out.reason) return out;
    const uint64_t *reserve_bytes = r->state->options->reserve_bytes;
    if (reserve_bytes && reserve_bytes[target_device] == UINT64_MAX) {
        out.reason = "capacity: the memory is too small for values";
        return out;
    }
    size_t cell = (size_t)group * r->problem->device_count + device;
    if (r->unable[cell]) {
        out.reason = r->state->options->target->devices[target_device].host_only
                         ? "unsupported: it only drives other devices"
                         : "unsupported: by what must share the operation's device";
        return out;
    }
    if (!r->sentence[cell]) r->sentence[cell] = weigh(r, group, device, &r->delta[cell]);
    out.delta = r->delta[cell] * r->unit;
    out.reason = r->sentence[cell];
    double over = r->used_bytes[device] + r->bytes[group] - r->capacity[device];
    if (r->problem->pin[node] != BERTH_PLACE_NONE) {
        out.reason = berth_arena_printf(r->state->arena, "%s; %s", entry->reason, out.reason);
    } else if (over > 0) {
        char bytes[32];
        berth_format_bytes((uint64_t)over, bytes);
        out.delta = NAN;
        out.reason = berth_arena_printf(
            r->state->arena, "capacity: its constants need %s more than is free%s", bytes,
            r->choice->reserve_bytes[target_device] ? " beside values" : "");
    }
    return out;
}

// What every operation of a group asks for, once: a group may be the whole module.
static void fill_groups(rejecter *r) {
    const berth_place_problem *problem = r->problem;
    size_t cells = (size_t)problem->group_count * problem->device_count;
    r->bytes = berth_arena_new_array(r->choice->arena, double, problem->group_count);
    r->unable = berth_arena_new_array(r->choice->arena, bool, cells);
    r->delta = berth_arena_new_array(r->choice->arena, double, cells);
    r->sentence = berth_arena_new_array(r->choice->arena, const char *, cells);
    for (uint32_t i = 0; i < problem->node_count; ++i) {
        uint32_t node = problem->group_nodes[i], group = problem->group[node];
        r->bytes[group] += problem->size_bytes[node];
        for (uint32_t d = 0; d < problem->device_count; ++d)
            if (time_of(r, node, d) == INFINITY)
                r->unable[(size_t)group * problem->device_count + d] = true;
    }
}

static void fill_capacities(rejecter *r) {
    const berth_place_problem *problem = r->problem;
    r->used_bytes = berth_arena_new_array(r->choice->arena, double, problem->device_count);
    r->capacity = berth_arena_new_array(r->choice->arena, double, problem->device_count);
    berth_planner__placement_capacity(r->choice->placement, r->choice->reserve_bytes);
    for (uint32_t v = 0; v < problem->node_count; ++v)
        r->used_bytes[r->placed[v]] += problem->size_bytes[v];
    for (uint32_t d = 0; d < problem->device_count; ++d)
        r->capacity[d] = problem->kinds[problem->device_kind[d]].capacity_bytes;
}

// Pins and limits are for the words only: what they cost is worth knowing.
static void relax(rejecter *r) {
    r->relaxed = *r->problem;
    r->relaxed.pin = NULL;
    r->relaxed.kinds = berth_arena_copy(r->choice->arena, r->problem->kinds,
                                        r->problem->kind_count * sizeof(*r->relaxed.kinds));
    if (r->choice->objective == BERTH_PLACE_MEMORY) return;  // shares are of capacities
    for (uint32_t k = 0; k < r->problem->kind_count; ++k)
        r->relaxed.kinds[k].capacity_bytes = INFINITY;
}

void berth_planner__reject(const berth_planner_state *state, const uint32_t *assignment,
                           berth_plan *plan) {
    const berth_planner_choice *choice = state->choice;
    const berth_place_problem *problem = &choice->placement->problem;
    berth_arena *arena = choice->arena;
    bool memory = choice->objective == BERTH_PLACE_MEMORY;
    size_t cells = (size_t)problem->group_count * problem->device_count;
    rejecter r = {.state = state,
                  .choice = choice,
                  .problem = problem,
                  .share = strcmp(plan->unit, "of capacity") == 0,
                  .unit = memory ? 1 : 1e6,
                  .value = plan->value / (memory ? 1 : 1e6),
                  .placed = assignment,
                  .exact = (double)cells * problem->node_count <= work_limit};
    r.assignment = berth_arena_copy(arena, assignment, problem->node_count * sizeof(uint32_t));
    count_readers(&r);
    fill_groups(&r);
    fill_capacities(&r);
    relax(&r);
    if (!r.exact)
        berth_plan_add_note(plan, state->arena,
                            "a large module: cost differences are those of an operation by itself");
    for (uint32_t i = 0; i < plan->entry_count; ++i) {
        berth_plan_entry *entry = &plan->entries[i];
        uint32_t node = choice->placement->node_of_op[entry->op];
        if (node == BERTH_NONE) continue;
        uint32_t devices = state->options->target->device_count;
        entry->rejected = berth_arena_new_array(state->arena, berth_plan_rejected, devices);
        for (uint32_t d = 0; d < devices; ++d)
            if (d != entry->device)
                entry->rejected[entry->rejected_count++] = reject(&r, entry, node, d);
    }
}
