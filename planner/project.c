// Stage 0: a projection of an annotated tuple is the annotated projection, so that only the field
// that is used gets copied.
#include "planner/stages.h"

static void wrap(berth_module *module, berth_func_id function, berth_op_id get,
                 berth_op_id annotation) {
    berth_graph *graph = berth_graph_get(module, function);
    berth_op outer = graph->ops.data[annotation];
    berth_value_id old = graph->ops.data[get].outputs[0];
    berth_op_id inner = berth_graph_insert_op(module, function, get, BERTH_OP_TUPLE_GET,
                                              &outer.inputs[0], 1, 1, graph->ops.data[get].loc);
    graph = berth_graph_get(module, function);
    graph->ops.data[inner].attrs = graph->ops.data[get].attrs;
    berth_value_id field = graph->ops.data[inner].outputs[0];
    graph->values.data[field].type = graph->values.data[old].type;
    graph->values.data[field].name = graph->values.data[old].name;
    // The projection itself turns into the annotation, so that its result and uses stay.
    berth_op *op = &graph->ops.data[get];
    op->kind = BERTH_OP_ON_DEVICE;
    op->inputs[0] = field;
    op->attrs = outer.attrs;
    op->device = outer.device;
    op->loc = outer.loc;
}

static void project_function(berth_module *module, berth_func_id function) {
    // Operations made here lie behind the others, so annotations of annotations are seen, too.
    for (uint32_t i = 0; i < berth_graph_get(module, function)->ops.count; ++i) {
        const berth_graph *graph = berth_graph_get(module, function);
        const berth_op *op = &graph->ops.data[i];
        if (op->region == BERTH_NONE || op->kind != BERTH_OP_TUPLE_GET) continue;
        berth_op_id made = graph->values.data[op->inputs[0]].op;
        if (made == BERTH_NONE || graph->ops.data[made].kind != BERTH_OP_ON_DEVICE) continue;
        const berth_type *type = berth_type_get(module, graph->values.data[op->outputs[0]].type);
        if (type->kind != BERTH_TYPE_FUNCTION) wrap(module, function, i, made);
    }
}

void berth_planner__project(berth_module *module) {
    for (uint32_t i = 0; i < module->functions.count; ++i)
        if (!module->functions.data[i].removed && berth_graph_get(module, i))
            project_function(module, i);
}
