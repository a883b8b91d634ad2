#include "compiler/passes/outline.h"

#include <string.h>

berth_outliner berth_outliner_make(berth_module *module, berth_func_id from, berth_arena *scratch,
                                   berth_outline_clones clones) {
    berth_outliner o = {.module = module, .from = from, .scratch = scratch, .clones = clones};
    uint32_t count = berth_graph_get(module, from)->values.count;
    o.inner = berth_arena_new_array(scratch, berth_value_id, count + 1);
    memset(o.inner, 0xff, count * sizeof(*o.inner));
    return o;
}

static berth_value_id clone(berth_outliner *o, berth_value_id value) {
    const berth_graph *outer = berth_graph_get(o->module, o->from);
    const berth_op *op = &outer->ops.data[outer->values.data[value].op];
    berth_device_id runs_on = op->device, is_on = outer->values.data[value].device;
    berth_value_id made = berth_graph_constant(
        o->module, o->function, 0, berth_graph_raw_constant_of(o->module, outer, value), op->loc);
    berth_graph *inner = berth_graph_get(o->module, o->function);
    inner->values.data[made].device = is_on;
    inner->ops.data[inner->values.data[made].op].device = runs_on;
    return made;
}

static berth_value_id inner_value(berth_outliner *o, const berth_op *op, uint32_t operand) {
    const berth_graph *graph = berth_graph_get(o->module, o->from);
    berth_value_id value = op->inputs[operand];
    if (value == BERTH_NONE) return BERTH_NONE;
    if (o->inner[value] != BERTH_NONE) return o->inner[value];
    const berth_tensor *constant = berth_graph_raw_constant_of(o->module, graph, value);
    berth_value held = graph->values.data[value];
    if (constant && o->clones(o->module, op, operand, &held, constant)) return clone(o, value);
    o->inner[value] = berth_graph_add_param(o->module, o->function,
                                            berth_module_str(o->module, held.name), held.type);
    berth_vec_push(o->scratch, &o->operands, value);
    return o->inner[value];
}

static void copy_op(berth_outliner *o, berth_op_id id) {
    berth_module *module = o->module;
    berth_op op = berth_graph_get(module, o->from)->ops.data[id];
    berth_value_id *inputs = berth_arena_new_array(o->scratch, berth_value_id, op.input_count + 1);
    for (uint32_t i = 0; i < op.input_count; ++i) inputs[i] = inner_value(o, &op, i);
    berth_op_id copy = berth_graph_add_op(module, o->function, 0, op.kind, inputs, op.input_count,
                                          op.output_count, op.loc);
    berth_graph *inner = berth_graph_get(module, o->function);
    const berth_graph *outer = berth_graph_get(module, o->from);
    inner->ops.data[copy].attrs = op.attrs;
    inner->ops.data[copy].device = op.device;
    for (uint32_t i = 0; i < op.output_count; ++i) {
        berth_value_id result = inner->ops.data[copy].outputs[i];
        const berth_value *value = &outer->values.data[op.outputs[i]];
        inner->values.data[result].type = value->type;
        inner->values.data[result].name = value->name;
        inner->values.data[result].device = value->device;
        o->inner[op.outputs[i]] = result;
    }
}

berth_func_id berth_outline(berth_outliner *o, const char *name, berth_loc_id loc,
                            const berth_outlined *part) {
    o->function = berth_graph_create(o->module, name, loc);
    o->operands.count = 0;
    for (uint32_t i = 0; i < part->op_count; ++i) copy_op(o, part->ops[i]);
    berth_value_id *results =
        berth_arena_new_array(o->scratch, berth_value_id, part->result_count + 1);
    for (uint32_t i = 0; i < part->result_count; ++i) results[i] = o->inner[part->results[i]];
    berth_graph_set_results(o->module, o->function, results, part->result_count);
    // Values seen here must not leak into the next function.
    const berth_graph *graph = berth_graph_get(o->module, o->from);
    for (uint32_t i = 0; i < o->operands.count; ++i) o->inner[o->operands.data[i]] = BERTH_NONE;
    for (uint32_t i = 0; i < part->op_count; ++i) {
        const berth_op *op = &graph->ops.data[part->ops[i]];
        for (uint32_t k = 0; k < op->output_count; ++k) o->inner[op->outputs[k]] = BERTH_NONE;
    }
    return o->function;
}
