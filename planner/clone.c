// Copies of functions, and which function a call calls.
#include "ir/dialect.h"
#include "planner/stages.h"

berth_func_id berth_planner__callee(const berth_module *module, const berth_op *op) {
    const berth_attr *callee = berth_attrs_find(module, &op->attrs, "callee");
    return callee && callee->kind == BERTH_ATTR_FUNCTION ? callee->function : BERTH_NONE;
}

void berth_planner__set_callee(berth_module *module, berth_op *op, berth_func_id callee) {
    berth_attrs_set(module, &op->attrs, "callee",
                    (berth_attr){.kind = BERTH_ATTR_FUNCTION, .function = callee});
}

berth_func_id berth_planner__clone(berth_module *module, berth_func_id function) {
    const berth_function *held = berth_module_function(module, function);
    berth_attrs attrs = held->attrs;
    const char *name = berth_module_str(module, held->name);
    berth_loc_id loc = held->loc;
    berth_graph *body = berth_graph_copy_body(module, berth_graph_get(module, function));
    berth_vec_own(module->arena, &attrs.items);
    berth_func_id id = berth_module_add_function(module, name, &berth_dialect_graph, body, loc);
    berth_module_function(module, id)->attrs = attrs;
    return id;
}
