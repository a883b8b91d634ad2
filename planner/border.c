// Stage border: @main is bound to the host, what calls it is not. Where the module itself calls @main
// (recursion), its body becomes a function of its own, which all these calls call, and @main only
// calls that: parameters and results of a call agree with the callee's, and the recursion stays on
// the devices that its body is on.
#include "planner/stages.h"

static bool refers_to(const berth_module *module, const berth_op *op, berth_func_id function) {
    return (op->kind == BERTH_OP_CALL || op->kind == BERTH_OP_FUNC_REF) &&
           op->region != BERTH_NONE && berth_planner__callee(module, op) == function;
}

// Every reference to `from` becomes one to `to`; how many there were.
static uint32_t redirect(berth_module *module, berth_func_id from, berth_func_id to) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < module->functions.count; ++i) {
        berth_graph *graph = module->functions.data[i].removed ? NULL : berth_graph_get(module, i);
        for (uint32_t k = 0; graph && k < graph->ops.count; ++k) {
            if (!refers_to(module, &graph->ops.data[k], from)) continue;
            if (from != to) berth_planner__set_callee(module, &graph->ops.data[k], to);
            count++;
        }
    }
    return count;
}

// Gives `function` a body that calls `callee`, with the same parameters and results.
static void make_caller(berth_module *module, berth_func_id function, berth_func_id callee) {
    const berth_graph *inner = berth_graph_get(module, callee);
    const berth_region *root = &inner->regions.data[0];
    berth_function *held = berth_module_function(module, function);
    held->body = berth_graph_new_body(module);
    berth_value_id *values =
        berth_arena_new_array(module->arena, berth_value_id, root->params.count + 1);
    for (uint32_t i = 0; i < root->params.count; ++i) {
        const berth_value *param = &inner->values.data[root->params.data[i]];
        values[i] = berth_graph_add_param(module, function, berth_module_str(module, param->name),
                                          param->type);
    }
    berth_op_id call = berth_graph_add_op(module, function, 0, BERTH_OP_CALL, values,
                                          root->params.count, root->results.count, held->loc);
    berth_graph *outer = berth_graph_get(module, function);
    berth_planner__set_callee(module, &outer->ops.data[call], callee);
    const berth_value_id *results = outer->ops.data[call].outputs;
    for (uint32_t i = 0; i < root->results.count; ++i) {
        const berth_value *result = &inner->values.data[root->results.data[i]];
        outer->values.data[results[i]].name = result->name;
        outer->values.data[results[i]].type = result->type;
    }
    berth_graph_set_results(module, function, results, root->results.count);
}

void berth_planner__separate_border(berth_module *module, berth_func_id main) {
    if (!redirect(module, main, main)) return;
    berth_func_id inner = berth_planner__clone(module, main);
    (void)redirect(module, main, inner);
    make_caller(module, main, inner);
}
