// Copies of functions, and which function a call calls.
#include "planner/stages.h"

berth_func_id berth_planner__callee(const berth_module *module, const berth_op *op) {
    const berth_attr *callee = berth_attrs_find(module, &op->attrs, "callee");
    return callee && callee->kind == BERTH_ATTR_FUNCTION ? callee->function : BERTH_NONE;
}

void berth_planner__set_callee(berth_module *module, berth_op *op, berth_func_id callee) {
    berth_attrs_set(module, &op->attrs, "callee",
                    (berth_attr){.kind = BERTH_ATTR_FUNCTION, .function = callee});
}

static void *copy_array(berth_module *module, const void *data, size_t size_bytes) {
    return size_bytes ? berth_arena_copy(module->arena, data, size_bytes) : NULL;
}

static void copy_attrs(berth_module *module, berth_attrs *out, const berth_attrs *attrs) {
    *out = (berth_attrs){0};
    for (uint32_t i = 0; i < attrs->items.count; ++i)
        berth_vec_push(module->arena, &out->items, attrs->items.data[i]);
}

static berth_op copy_op(berth_module *module, const berth_op *op) {
    berth_op copy = *op;
    copy.inputs = copy_array(module, op->inputs, op->input_count * sizeof(*op->inputs));
    copy.outputs = copy_array(module, op->outputs, op->output_count * sizeof(*op->outputs));
    copy.regions = copy_array(module, op->regions, op->region_count * sizeof(*op->regions));
    copy_attrs(module, &copy.attrs, &op->attrs);
    return copy;
}

berth_func_id berth_planner__clone(berth_module *module, berth_func_id function) {
    const berth_graph *from = berth_graph_get(module, function);
    const berth_function *held = berth_module_function(module, function);
    berth_attrs attrs;
    copy_attrs(module, &attrs, &held->attrs);
    berth_func_id id = berth_graph_create(module, berth_module_str(module, held->name), held->loc);
    berth_module_function(module, id)->attrs = attrs;
    berth_graph *to = berth_graph_get(module, id);
    to->regions.count = 0;
    for (uint32_t i = 0; i < from->values.count; ++i)
        berth_vec_push(module->arena, &to->values, from->values.data[i]);
    for (uint32_t i = 0; i < from->ops.count; ++i)
        berth_vec_push(module->arena, &to->ops, copy_op(module, &from->ops.data[i]));
    for (uint32_t i = 0; i < from->regions.count; ++i) {
        const berth_region *region = &from->regions.data[i];
        berth_region copy = {.parent = region->parent};
        for (uint32_t k = 0; k < region->params.count; ++k)
            berth_vec_push(module->arena, &copy.params, region->params.data[k]);
        for (uint32_t k = 0; k < region->ops.count; ++k)
            berth_vec_push(module->arena, &copy.ops, region->ops.data[k]);
        for (uint32_t k = 0; k < region->results.count; ++k)
            berth_vec_push(module->arena, &copy.results, region->results.data[k]);
        berth_vec_push(module->arena, &to->regions, copy);
    }
    return id;
}
