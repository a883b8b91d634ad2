// Stage project: a projection of an annotated tuple is the annotated projection, so that only the field
// that is used gets copied. Linear.
#include "planner/stages.h"

// The projections made, by the operation that each stands in front of.
typedef struct projector {
    berth_module *module;
    berth_func_id function;
    BERTH_VEC(berth_op_id) inner;  // per operation; BERTH_NONE = none
    BERTH_VEC(berth_op_id) outer;  // operations that have one
    bool *made;                    // per operation
} projector;

static void wrap(projector *p, berth_op_id get, berth_op_id annotation) {
    berth_graph *graph = berth_graph_get(p->module, p->function);
    berth_op outer = graph->ops.data[annotation];
    berth_value_id old = graph->ops.data[get].outputs[0];
    berth_op_id inner =
        berth_graph_add_op(p->module, p->function, graph->ops.data[get].region, BERTH_OP_TUPLE_GET,
                           &outer.inputs[0], 1, 1, graph->ops.data[get].loc);
    while (p->inner.count <= inner) berth_vec_push(p->module->arena, &p->inner, BERTH_NONE);
    p->inner.data[get] = inner;
    berth_vec_push(p->module->arena, &p->outer, get);
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

// Puts the projections made at the end of a region in front of what they are for.
static void sort_in(const projector *p, berth_region *region) {
    berth_arena *arena = p->module->arena;
    berth_op_id *ops =
        berth_arena_copy(arena, region->ops.data, region->ops.count * sizeof(berth_op_id));
    uint32_t count = region->ops.count, kept = 0;
    for (uint32_t i = 0; i < count; ++i) {
        if (p->made[ops[i]]) continue;
        uint32_t end = kept;
        for (berth_op_id op = ops[i]; op != BERTH_NONE; op = p->inner.data[op]) end++;
        kept = end;
        for (berth_op_id op = ops[i]; op != BERTH_NONE; op = p->inner.data[op])
            region->ops.data[--end] = op;
    }
}

static void project_function(berth_module *module, berth_func_id function) {
    projector p = {.module = module, .function = function};
    berth_graph *graph = berth_graph_get(module, function);
    for (uint32_t i = 0; i < graph->ops.count; ++i)
        berth_vec_push(module->arena, &p.inner, BERTH_NONE);
    // Operations made here lie after the others, so annotations of annotations are seen, too.
    for (uint32_t i = 0; i < graph->ops.count; ++i) {
        const berth_op *op = &graph->ops.data[i];
        if (op->region == BERTH_NONE || op->kind != BERTH_OP_TUPLE_GET) continue;
        berth_op_id made = graph->values.data[op->inputs[0]].op;
        if (made == BERTH_NONE || graph->ops.data[made].kind != BERTH_OP_ON_DEVICE) continue;
        const berth_type *type = berth_type_get(module, graph->values.data[op->outputs[0]].type);
        if (type->kind != BERTH_TYPE_FUNCTION) wrap(&p, i, made);
    }
    if (!p.outer.count) return;
    p.made = berth_arena_new_array(module->arena, bool, p.inner.count);
    for (uint32_t i = 0; i < p.outer.count; ++i) p.made[p.inner.data[p.outer.data[i]]] = true;
    bool *touched = berth_arena_new_array(module->arena, bool, graph->regions.count + 1);
    for (uint32_t i = 0; i < p.outer.count; ++i) {
        berth_region_id region = graph->ops.data[p.outer.data[i]].region;
        if (!touched[region]) sort_in(&p, &graph->regions.data[region]);
        touched[region] = true;
    }
}

void berth_planner__project(berth_module *module) {
    for (uint32_t i = 0; i < module->functions.count; ++i)
        if (!module->functions.data[i].removed && berth_graph_get(module, i))
            project_function(module, i);
}
