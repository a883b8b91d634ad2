// Memories of values, and what a change of device costs.
#include <string.h>

#include "planner/stages.h"

static berth_virtual_device device_get(const berth_planner_state *state, berth_device_id id) {
    return berth_virtual_device_get(state->module->devices, id);
}

uint32_t berth_planner__memory(const berth_planner_state *state, berth_device_id id) {
    const berth_multi_target *target = state->options->target;
    berth_virtual_device device = device_get(state, id);
    uint32_t index = berth_multi_target_resolve(target, device);
    uint32_t memory = BERTH_NO_INDEX;
    if (device.memory_scope)
        memory = berth_multi_target_memory_of(target, index, device.memory_scope);
    return memory == BERTH_NO_INDEX ? target->devices[index].own_memory : memory;
}

static const char *scope_name(berth_virtual_device device) {
    return device.memory_scope ? device.memory_scope : "global";
}

bool berth_planner__shared(const berth_planner_state *state, berth_device_id a, berth_device_id b) {
    const char *scope = scope_name(device_get(state, a));
    if (strcmp(scope, scope_name(device_get(state, b))) != 0) return false;
    if (strcmp(scope, "global") != 0)
        return berth_planner__memory(state, a) == berth_planner__memory(state, b);
    const berth_multi_target *target = state->options->target;
    return berth_multi_target_share_memory(
        target, berth_multi_target_resolve(target, device_get(state, a)),
        berth_multi_target_resolve(target, device_get(state, b)), NULL);
}

uint64_t berth_planner__size_bytes(const berth_planner_state *state, berth_type_id type) {
    struct {
        BERTH_VEC(berth_type_id) items;
    } todo = {{0}};
    const berth_type *held = berth_type_get(state->module, type);
    if (berth_type_is_static(held)) return berth_type_size_bytes(state->module, type);
    uint64_t size_bytes = 0;
    berth_vec_push(state->arena, &todo.items, type);
    while (todo.items.count) {
        type = todo.items.data[--todo.items.count];
        held = berth_type_get(state->module, type);
        if (berth_type_is_static(held)) size_bytes += berth_type_size_bytes(state->module, type);
        for (uint32_t i = 0; held->kind == BERTH_TYPE_TUPLE && i < held->field_count; ++i)
            berth_vec_push(state->arena, &todo.items, held->fields[i]);
    }
    return size_bytes;
}

// What is known better than from the target's links.
static bool measured_ns(const berth_planner_state *state, uint32_t from, uint32_t to,
                        uint64_t size_bytes, double *out_ns) {
    const berth_cost_model *cost = &state->options->cost;
    return cost->copy_ns && cost->copy_ns(cost->user, from, to, size_bytes, out_ns);
}

bool berth_planner__route(const berth_planner_state *state, uint32_t from, uint32_t to,
                          uint64_t size_bytes, berth_target_route *out_route) {
    if (state->routes) return berth_route_memo_get(state->routes, from, to, size_bytes, out_route);
    return berth_multi_target_route(state->options->target, state->arena, from, to, size_bytes,
                                    out_route);
}

bool berth_planner__transfer_ns(const berth_planner_state *state, uint32_t from, uint32_t to,
                                uint64_t size_bytes, double *out_ns) {
    const berth_multi_target *target = state->options->target;
    berth_target_route route = {0};
    if (measured_ns(state, from, to, size_bytes, out_ns)) return true;
    bool found = berth_planner__route(state, target->devices[from].own_memory,
                                      target->devices[to].own_memory, size_bytes, &route);
    *out_ns = route.time_ns;
    return found;
}

bool berth_planner__known_ns(const berth_planner_state *state, uint32_t from, uint32_t to,
                             uint64_t size_bytes, const berth_target_routes *routes,
                             double *out_ns) {
    berth_target_route route = {0};
    if (measured_ns(state, from, to, size_bytes, out_ns)) return true;
    bool found =
        berth_target_routes_get(routes, state->options->target->devices[to].own_memory, &route);
    *out_ns = route.time_ns;
    return found;
}

uint64_t berth_planner__copy_cost(const berth_planner_state *state, berth_device_id a,
                                  berth_device_id b, berth_type_id type, double *out_time_ns) {
    *out_time_ns = 0;
    if (berth_planner__shared(state, a, b)) return 0;
    uint64_t size_bytes = berth_planner__size_bytes(state, type);
    const berth_multi_target *target = state->options->target;
    uint32_t from = berth_multi_target_resolve(target, device_get(state, a));
    uint32_t to = berth_multi_target_resolve(target, device_get(state, b));
    bool global = from != BERTH_NO_INDEX && to != BERTH_NO_INDEX &&
                  berth_planner__memory(state, a) == target->devices[from].own_memory &&
                  berth_planner__memory(state, b) == target->devices[to].own_memory;
    if (global) {
        (void)berth_planner__transfer_ns(state, from, to, size_bytes, out_time_ns);
        return size_bytes;
    }
    berth_target_route route = {0};
    if (berth_planner__route(state, berth_planner__memory(state, a),
                             berth_planner__memory(state, b), size_bytes, &route))
        *out_time_ns = route.time_ns;
    return size_bytes;
}

const char *berth_planner__bus_of(const berth_planner_state *state, berth_device_id a,
                                  berth_device_id b, uint64_t size_bytes,
                                  double *out_bandwidth_bytes_per_s) {
    const berth_multi_target *target = state->options->target;
    berth_target_route route = {0};
    const char *bus = "";
    *out_bandwidth_bytes_per_s = 0;
    if (size_bytes == 0 ||
        !berth_planner__route(state, berth_planner__memory(state, a),
                              berth_planner__memory(state, b), size_bytes, &route))
        return bus;
    for (uint32_t i = 0; i < route.hop_count; ++i) {
        const berth_target_hop *hop = &route.hops[i];
        if (i == 0 || hop->bandwidth_bytes_per_s < *out_bandwidth_bytes_per_s)
            *out_bandwidth_bytes_per_s = hop->bandwidth_bytes_per_s;
        if (hop->link != BERTH_NO_INDEX && !*bus) bus = berth_multi_target_bus(target, hop->link);
    }
    return bus;
}
