#include "compiler/passes/resident.h"

#include "planner/planner.h"

typedef struct resident {
    berth_module *module;
    berth_func_id main;
    const berth_multi_target *target;
    const uint32_t *uses;
    bool any;
} resident;

static berth_graph *graph_of(const resident *r) {
    return berth_graph_get(r->module, r->main);
}

static bool has_scopes(const berth_multi_target *target) {
    for (uint32_t m = 0; m < target->memory_count; ++m) {
        bool own = false;
        for (uint32_t d = 0; d < target->device_count; ++d)
            own |= target->devices[d].own_memory == m;
        if (!own) return true;
    }
    return false;
}

static bool is_data(const resident *r, berth_value_id value) {
    const berth_type *type = berth_type_get(r->module, graph_of(r)->values.data[value].type);
    return type->kind == BERTH_TYPE_TENSOR && !type->layout &&
           !berth_dtype_is_integer(type->dtype) && type->dtype != BERTH_DTYPE_BOOL &&
           type->dtype != BERTH_DTYPE_STRING;
}

// Of another memory than the host's.
static bool is_apart(const resident *r, berth_device_id id) {
    const uint32_t device = berth_plan_device_of(r->module, r->target, id);
    if (device == BERTH_NO_INDEX ||
        berth_virtual_device_get(r->module->devices, id).memory_scope != NULL)
        return false;
    return r->target->devices[device].own_memory != r->target->devices[r->target->host].own_memory;
}

// The parameter takes the place of its only copy.
static void keep_parameter(resident *r, berth_op_id copy) {
    berth_graph *graph = graph_of(r);
    const berth_value_id from = graph->ops.data[copy].inputs[0],
                         to = graph->ops.data[copy].outputs[0];
    const berth_value *param = &graph->values.data[from];
    if (param->op != BERTH_NONE || param->region != 0 || r->uses[from] != 1 || !is_data(r, from) ||
        !is_apart(r, graph->ops.data[copy].device))
        return;
    graph->values.data[from].device = graph->values.data[to].device;
    berth_graph_remove_op(graph, copy);
    berth_graph_replace_value(graph, to, from);
    r->any = true;
}

// What is copied to be a result is the result.
static void keep_result(resident *r, uint32_t index) {
    berth_graph *graph = graph_of(r);
    const berth_value_id result = graph->regions.data[0].results.data[index];
    const berth_op_id copy = graph->values.data[result].op;
    if (copy == BERTH_NONE || graph->ops.data[copy].kind != BERTH_OP_DEVICE_COPY ||
        r->uses[result] != 1 || !is_data(r, result))
        return;
    const berth_value_id from = graph->ops.data[copy].inputs[0];
    const berth_op_id maker = graph->values.data[from].op;
    if (maker == BERTH_NONE || graph->ops.data[maker].kind == BERTH_OP_CONSTANT ||
        graph->ops.data[maker].region != 0 || !is_data(r, from) ||
        !is_apart(r, graph->values.data[from].device) || is_apart(r, graph->ops.data[copy].device))
        return;
    for (uint32_t i = 0; i < graph->regions.data[0].results.count; ++i)
        if (graph->regions.data[0].results.data[i] == from) return;
    berth_graph_remove_op(graph, copy);
    graph->regions.data[0].results.data[index] = from;
    r->any = true;
}

void berth_pass_resident(berth_module *module, berth_func_id main,
                         const berth_multi_target *target) {
    resident r = {.module = module, .main = main, .target = target};
    if (has_scopes(target)) return;
    berth_arena *scratch = berth_arena_create_child(module->arena);
    r.uses = berth_graph_count_uses(graph_of(&r), scratch);
    for (uint32_t i = 0; i < graph_of(&r)->ops.count; ++i) {
        const berth_op *op = &graph_of(&r)->ops.data[i];
        if (op->kind == BERTH_OP_DEVICE_COPY && op->region == 0) keep_parameter(&r, i);
    }
    for (uint32_t i = 0; i < graph_of(&r)->regions.data[0].results.count; ++i) keep_result(&r, i);
    if (r.any)
        berth_attrs_set_int(module, &berth_module_function(module, main)->attrs,
                            BERTH_ATTR_RESIDENT, 1);
    berth_arena_destroy(scratch);
}
