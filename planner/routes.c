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

uint64_t berth_planner__copy_cost(const berth_planner_state *state, berth_device_id a,
                                  berth_device_id b, berth_type_id type, double *out_time_ns) {
    *out_time_ns = 0;
    if (berth_planner__shared(state, a, b)) return 0;
    uint64_t size_bytes = berth_planner__size_bytes(state, type);
    berth_target_route route = {0};
    if (berth_multi_target_route(state->options->target, berth_planner__memory(state, a),
                                 berth_planner__memory(state, b), size_bytes, &route))
        *out_time_ns = route.time_ns;
    return size_bytes;
}
