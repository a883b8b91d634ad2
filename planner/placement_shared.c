// What devices of the placement problem share: cores, ways to the host's memory, links, the bandwidth and the room of
// memories.
#include <math.h>
#include <string.h>

#include "planner/placement_facts.h"

// After kinds: which devices of the solver take turns.
static void fill_resources(berth_planner__facts *c) {
    const berth_placement *out = c->placement;
    uint32_t devices = c->target->device_count;
    uint32_t *resource = berth_arena_new_array(c->arena, uint32_t, devices);
    bool any = false;
    for (uint32_t d = 0; d < devices; ++d) {
        uint32_t first = berth_multi_target_resource_of(c->target, d);
        resource[out->solver_device[d]] = out->solver_device[first];
        any |= first != d;
    }
    if (any) c->placement->problem.resource = resource;
}

// After kinds: which devices' transfers take turns.
static void fill_buses(berth_planner__facts *c) {
    const berth_placement *out = c->placement;
    uint32_t devices = c->target->device_count;
    uint32_t *bus = berth_arena_new_array(c->arena, uint32_t, devices);
    bool any = false;
    for (uint32_t d = 0; d < devices; ++d) {
        uint32_t first = d;
        for (uint32_t e = 0; e < d && *c->bus[d] && first == d; ++e)
            if (strcmp(c->bus[e], c->bus[d]) == 0) first = e;
        bus[out->solver_device[d]] = out->solver_device[first];
        any |= first != d;
    }
    if (any) c->placement->problem.bus = bus;
}

// Of the links between two devices of these kinds; "" = none.
static const char *direct_bus_name(const berth_planner__facts *c, uint32_t from_kind,
                                   uint32_t to_kind) {
    const berth_placement *out = c->placement;
    const berth_place_problem *problem = &out->problem;
    uint32_t from = berth_place_kind_first(problem, from_kind);
    uint32_t to = berth_place_kind_first(problem, to_kind) + (from_kind == to_kind);
    if (from_kind == to_kind && problem->kinds[to_kind].device_count < 2) return "";
    return c->link_bus[(size_t)out->target_device[from] * c->target->device_count +
                       out->target_device[to]];
}

// After buses: which direct links are one, and one with a way to host memory.
static void fill_direct_buses(berth_planner__facts *c) {
    const berth_placement *out = c->placement;
    berth_place_problem *problem = &c->placement->problem;
    uint32_t kinds = problem->kind_count, devices = c->target->device_count;
    const char **names =
        berth_arena_new_array(c->arena, const char *, (size_t)devices + kinds * kinds);
    uint32_t *bus = berth_arena_new_array(c->arena, uint32_t, (size_t)kinds * kinds);
    uint32_t count = devices;
    for (uint32_t d = 0; d < devices; ++d) names[d] = c->bus[out->target_device[d]];
    for (uint32_t k = 0; k < kinds; ++k)
        for (uint32_t l = 0; l < kinds; ++l) {
            const char *name = direct_bus_name(c, k, l);
            uint32_t at = 0;
            bus[k * kinds + l] = BERTH_PLACE_NONE;
            if (!*name) continue;
            while (at < count && strcmp(names[at], name) != 0) ++at;
            if (at == count) names[count++] = name;
            bus[k * kinds + l] = at < devices && problem->bus ? problem->bus[at] : at;
        }
    problem->direct_bus_count = count - devices;
    for (uint32_t i = 0; i < kinds * kinds; ++i)
        if (bus[i] != BERTH_PLACE_NONE) problem->direct_bus = bus;
}

// Per device of the solver, the first that works in the same memory: a value is there once.
static uint32_t *first_in_memory(const berth_placement *placement, berth_arena *scratch) {
    const berth_multi_target *target = placement->state->options->target;
    uint32_t count = target->device_count;
    uint32_t *first = berth_arena_new_array(scratch, uint32_t, count);
    for (uint32_t d = 0; d < count; ++d)
        while (target->devices[placement->target_device[first[d]]].own_memory !=
               target->devices[placement->target_device[d]].own_memory)
            first[d]++;
    return first;
}

// What copies take of these memories: their bytes at the memory's bandwidth.
static void fill_copies(berth_planner__facts *c) {
    const berth_placement *out = c->placement;
    berth_place_problem *problem = &c->placement->problem;
    uint32_t at = 0;
    problem->hub = problem->memory[out->solver_device[c->target->host]];
    problem->copy_ms =
        berth_arena_new_array(c->arena, double, (size_t)problem->node_count * problem->kind_count);
    for (uint32_t k = 0; k < problem->kind_count; ++k) {
        uint32_t device = out->target_device[at];
        double rate =
            c->target->memories[c->target->devices[device].own_memory].bandwidth_bytes_per_s;
        bool counts = berth_planner__memory_is_wanted(c, device) && rate > 0;
        for (uint32_t v = 0; counts && v < problem->node_count; ++v)
            problem->copy_ms[(size_t)v * problem->kind_count + k] =
                fmin(out->nodes[v].bytes / rate * 1e3, BERTH_PLACE_FIGURE_LIMIT);
        at += problem->kinds[k].device_count;
    }
}

// After kinds: what devices of the solver take together of a memory's bandwidth.
static void fill_shared_memories(berth_planner__facts *c) {
    const berth_placement *out = c->placement;
    berth_place_problem *problem = &c->placement->problem;
    uint32_t devices = c->target->device_count, at = 0;
    bool any = false;
    for (uint32_t d = 0; d < devices; ++d) any |= berth_planner__memory_is_wanted(c, d);
    if (!any) return;
    problem->memory = first_in_memory(out, c->arena);
    problem->memory_ms =
        berth_arena_new_array(c->arena, double, (size_t)problem->node_count * problem->kind_count);
    for (uint32_t k = 0; k < problem->kind_count; ++k) {
        const double *of = c->memory_ms[out->target_device[at]];
        for (uint32_t v = 0; v < problem->node_count; ++v)
            problem->memory_ms[(size_t)v * problem->kind_count + k] = of[v];
        at += problem->kinds[k].device_count;
    }
    fill_copies(c);
}

void berth_planner__fill_shared(berth_planner__facts *c) {
    fill_resources(c);
    fill_shared_memories(c);
    fill_buses(c);
    fill_direct_buses(c);
}

// ---- memory -------------------------------------------------------------------------------------

uint64_t berth_planner__constants_budget(const berth_multi_target *target, uint32_t device) {
    const berth_target_memory *memory = &target->memories[target->devices[device].constant_memory];
    // Sources hold constants as const arrays: in flash, of which this target says nothing.
    if (target->executor == BERTH_EXECUTOR_AOT && !memory->holds_constants) return 0;
    return memory->budget_bytes;
}

void berth_planner__placement_capacity(berth_placement *placement, const uint64_t *reserve_bytes) {
    const berth_multi_target *target = placement->state->options->target;
    uint32_t at = 0;
    for (uint32_t k = 0; k < placement->problem.kind_count; ++k) {
        berth_place_kind *kind = &placement->problem.kinds[k];
        kind->capacity_bytes = INFINITY;
        for (uint32_t i = 0; i < kind->device_count; ++i) {
            uint32_t d = placement->target_device[at++];
            uint64_t budget = berth_planner__constants_budget(target, d);
            if (budget == 0) continue;
            double capacity = (double)budget - (reserve_bytes ? (double)reserve_bytes[d] : 0);
            kind->capacity_bytes = fmin(kind->capacity_bytes, fmax(capacity, 0));
        }
    }
}

// A value is at home from its node to its last reader, and elsewhere from its first reader there
// to its last. Nodes are numbered in source order, results last.
void berth_planner__placement_live(const berth_placement *placement, const uint32_t *given,
                                   berth_arena *scratch, uint64_t *out_bytes) {
    const berth_place_problem *problem = &placement->problem;
    const uint32_t *memory = first_in_memory(placement, scratch);
    uint32_t *assignment = berth_arena_new_array(scratch, uint32_t, problem->node_count);
    for (uint32_t v = 0; v < problem->node_count; ++v) assignment[v] = memory[given[v]];
    uint32_t count = problem->node_count, devices = problem->device_count;
    double *change = berth_arena_new_array(scratch, double, (size_t)(count + 1) * devices);
    uint32_t *first = berth_arena_new_array(scratch, uint32_t, devices);
    uint32_t *last = berth_arena_new_array(scratch, uint32_t, devices);
    for (uint32_t u = 0; u < count; ++u) {
        double bytes = placement->nodes[u].bytes;
        uint32_t home = assignment[u], end = u;
        for (uint32_t i = problem->succ_start[u]; i < problem->succ_start[u + 1]; ++i) {
            uint32_t v = problem->succ[i], d = assignment[v];
            if (last[d] == 0 || v < first[d]) first[d] = v;
            if (v > last[d]) last[d] = v;
            if (v > end) end = v;
        }
        first[home] = u < first[home] || last[home] == 0 ? u : first[home];
        last[home] = end + 1;
        for (uint32_t i = problem->succ_start[u]; i <= problem->succ_start[u + 1]; ++i) {
            bool extra = i == problem->succ_start[u + 1];
            uint32_t d = extra ? home : assignment[problem->succ[i]];
            if (last[d] == 0) continue;
            uint32_t gone = d == home ? end + 1 : last[d] + 1;
            change[(size_t)first[d] * devices + d] += bytes;
            change[(size_t)gone * devices + d] -= bytes;
            first[d] = last[d] = 0;
        }
    }
    for (uint32_t d = 0; d < devices; ++d) {
        double live = 0, most = 0;
        for (uint32_t v = 0; v < count; ++v)
            most = fmax(most, live += change[(size_t)v * devices + d]);
        out_bytes[placement->target_device[d]] = (uint64_t)most;
    }
    for (uint32_t d = 0; d < devices; ++d)
        out_bytes[placement->target_device[d]] = out_bytes[placement->target_device[memory[d]]];
}
