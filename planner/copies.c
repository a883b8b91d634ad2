// Stage 4: a device_copy for every change of device, once per (value, destination), before the
// first use there. Constants are not copied: each device that uses one gets its own, uploaded when
// the program is opened.
#include <string.h>

#include "planner/stages.h"
#include "target/virtual_device.h"

typedef struct copier {
    berth_planner_state *state;
    uint32_t device_count;
    berth_value_id *at;  // [value * device_count + device] = the value there, BERTH_NONE = not yet
    uint32_t *home;      // per value: device that makes it; BERTH_NO_INDEX for constants
    uint32_t value_count;
} copier;

static berth_device_id device_id(const berth_planner_state *state, uint32_t device) {
    return berth_virtual_device_intern(
        state->module->devices, berth_multi_target_virtual_device(state->options->target, device));
}

static berth_value_id insert_copy(copier *c, berth_value_id value, uint32_t from, uint32_t to,
                                  berth_op_id before) {
    berth_planner_state *state = c->state;
    const berth_multi_target *target = state->options->target;
    berth_graph *graph = berth_graph_get(state->module, state->function);
    berth_value source = graph->values.data[value];
    berth_loc_id loc = source.op == BERTH_NONE ? 0 : graph->ops.data[source.op].loc;
    berth_op_id op = before == BERTH_NONE
                         ? berth_graph_add_op(state->module, state->function, 0,
                                              BERTH_OP_DEVICE_COPY, &value, 1, 1, loc)
                         : berth_graph_insert_op(state->module, state->function, before,
                                                 BERTH_OP_DEVICE_COPY, &value, 1, 1, loc);
    graph->ops.data[op].device = device_id(state, to);
    berth_attrs_set(state->module, &graph->ops.data[op].attrs, "source",
                    (berth_attr){.kind = BERTH_ATTR_DEVICE, .device = device_id(state, from)});
    berth_value_id result = graph->ops.data[op].outputs[0];
    graph->values.data[result].type = source.type;
    graph->values.data[result].name = source.name;
    graph->values.data[result].device = device_id(state, to);
    bool alias = berth_multi_target_share_memory(target, from, to, NULL);
    uint64_t size_bytes = alias ? 0 : berth_type_size_bytes(state->module, source.type);
    berth_target_route route = {0};
    if (!alias)
        (void)berth_multi_target_route(target, target->devices[from].own_memory,
                                       target->devices[to].own_memory, size_bytes, &route);
    berth_vec_push(state->arena, &state->copies,
                   (berth_plan_copy){.op = op,
                                     .before = before,
                                     .from = from,
                                     .to = to,
                                     .size_bytes = size_bytes,
                                     .time_ns = route.time_ns});
    return result;
}

// The value on `device`, copied there on first demand; through the host where two devices share
// nothing with each other.
static berth_value_id value_at(copier *c, berth_value_id value, uint32_t device,
                               berth_op_id before) {
    uint32_t home = c->home[value];
    if (home == BERTH_NO_INDEX || home == device) return value;
    berth_value_id *held = &c->at[(size_t)value * c->device_count + device];
    if (*held != BERTH_NONE) return *held;
    uint32_t host = c->state->options->target->host;
    uint32_t from = home;
    berth_value_id source = value;
    bool direct = home == host || device == host ||
                  berth_multi_target_share_memory(c->state->options->target, home, device, NULL);
    if (!direct) {
        source = value_at(c, value, host, before);
        from = host;
    }
    *held = insert_copy(c, source, from, device, before);
    return *held;
}

static copier make_copier(berth_planner_state *state) {
    const berth_graph *graph = berth_graph_get(state->module, state->function);
    copier c = {.state = state,
                .device_count = state->options->target->device_count,
                .value_count = graph->values.count};
    size_t cells = (size_t)c.value_count * c.device_count;
    c.at = berth_arena_new_array(state->arena, berth_value_id, cells);
    memset(c.at, 0xff, cells * sizeof(*c.at));
    c.home = berth_arena_new_array(state->arena, uint32_t, c.value_count);
    for (uint32_t v = 0; v < c.value_count; ++v) {
        berth_op_id op = graph->values.data[v].op;
        if (op == BERTH_NONE)
            c.home[v] = state->options->target->host;
        else
            c.home[v] =
                graph->ops.data[op].kind == BERTH_OP_CONSTANT ? BERTH_NO_INDEX : state->device[op];
    }
    return c;
}

static void record_devices(berth_planner_state *state, berth_op_id id) {
    berth_graph *graph = berth_graph_get(state->module, state->function);
    berth_op *op = &graph->ops.data[id];
    op->device = device_id(state, state->device[id]);
    for (uint32_t i = 0; i < op->output_count; ++i)
        graph->values.data[op->outputs[i]].device = op->device;
}

berth_status berth_planner__copies(berth_planner_state *state) {
    copier c = make_copier(state);
    berth_graph *graph = berth_graph_get(state->module, state->function);
    uint32_t op_count = graph->regions.data[0].ops.count;
    berth_op_id *order =
        berth_arena_copy(state->arena, graph->regions.data[0].ops.data, op_count * sizeof(*order));
    for (uint32_t i = 0; i < op_count; ++i) {
        if (graph->ops.data[order[i]].kind == BERTH_OP_CONSTANT) continue;
        uint32_t device = state->device[order[i]];
        for (uint32_t j = 0; j < graph->ops.data[order[i]].input_count; ++j) {
            berth_value_id value = graph->ops.data[order[i]].inputs[j];
            if (value == BERTH_NONE || value >= c.value_count) continue;
            berth_value_id there = value_at(&c, value, device, order[i]);
            graph->ops.data[order[i]].inputs[j] = there;
        }
        record_devices(state, order[i]);
    }
    for (uint32_t i = 0; i < graph->regions.data[0].results.count; ++i) {
        berth_value_id value = graph->regions.data[0].results.data[i];
        berth_value_id there = value_at(&c, value, state->options->target->host, BERTH_NONE);
        graph->regions.data[0].results.data[i] = there;
    }
    for (uint32_t i = 0; i < graph->regions.data[0].params.count; ++i)
        graph->values.data[graph->regions.data[0].params.data[i]].device =
            device_id(state, state->options->target->host);
    return BERTH_OK;
}
