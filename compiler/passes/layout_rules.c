// Layouts on devices that have rules of their own: constants are packed, other operands come in the
// layout from the device that they are copied from, since a relayout may be nothing that the device
// itself can do.
#include "compiler/passes/layout_private.h"
#include "compiler/rules.h"

// The copy whose result is `value` onto the operation's device copies what has the layout already.
static bool copy_in_layout(berth_layout_pass *p, berth_value_id value, berth_str_id layout) {
    berth_op_id id = graph_of(p)->values.data[value].op;
    if (id == BERTH_NONE || graph_of(p)->ops.data[id].kind != BERTH_OP_DEVICE_COPY) return false;
    berth_value_id source = graph_of(p)->ops.data[id].inputs[0];
    if (type_of(p, source)->layout != layout) {
        berth_op_id made = graph_of(p)->values.data[source].op;
        if (made == BERTH_NONE) {  // a parameter: on the device where it is
            berth_value_id converted = berth_layout__convert(p, source, layout, id, id);
            berth_op_id relayout = graph_of(p)->values.data[converted].op;
            berth_device_id there = graph_of(p)->values.data[source].device;
            graph_of(p)->ops.data[relayout].device = there;
            graph_of(p)->values.data[converted].device = there;
            source = converted;
        } else {
            source = berth_layout__convert(p, source, layout, id, id);
        }
    }
    berth_layout__set_input(p, id, 0, source);
    berth_layout__set(p, value, layout);
    return true;
}

static void give_operand(berth_layout_pass *p, berth_op_id id, uint32_t operand, const char *tag) {
    berth_value_id value = graph_of(p)->ops.data[id].inputs[operand];
    const berth_tensor *constant = berth_graph_raw_constant_of(p->module, graph_of(p), value);
    berth_str_id layout = berth_module_intern(p->module, tag);
    if (type_of(p, value)->layout == layout) return;
    if (constant) {
        value = berth_layout__packed_constant(p, constant, tag, id);
        if (value != BERTH_NONE) berth_layout__set_input(p, id, operand, value);
    } else if (!copy_in_layout(p, value, layout)) {
        berth_layout__set_input(p, id, operand, berth_layout__convert(p, value, layout, id, id));
    }
}

// What is copied to or from a device that cannot rearrange it keeps its layout on the way.
static bool copies_by_rules(berth_layout_pass *p, berth_op_id id) {
    const berth_op op = graph_of(p)->ops.data[id];
    berth_op_id made = graph_of(p)->values.data[op.inputs[0]].op;
    berth_rules_question question;
    bool there = berth_rules_of(p->module, p->main, id, p->target, p->scratch, &question) != NULL;
    bool here = made != BERTH_NONE &&
                berth_rules_of(p->module, p->main, made, p->target, p->scratch, &question) != NULL;
    if (!there && !here) return false;
    berth_layout__set(p, op.outputs[0], type_of(p, op.inputs[0])->layout);
    return true;
}

bool berth_layout__by_rules(berth_layout_pass *p, berth_op_id id) {
    berth_rules_question question;
    const berth_op op = graph_of(p)->ops.data[id];
    if (op.kind == BERTH_OP_DEVICE_COPY) return copies_by_rules(p, id);
    const berth_kind_rules *rules =
        berth_rules_of(p->module, p->main, id, p->target, p->scratch, &question);
    if (!rules) return false;
    if (!rules->layouts) return true;
    berth_rules_layouts wanted = {
        .operands = berth_arena_new_array(p->scratch, const char *, op.input_count + 1)};
    rules->layouts(&question, &wanted);
    for (uint32_t i = 0; i < op.input_count; ++i)
        if (op.inputs[i] != BERTH_NONE && wanted.operands[i])
            give_operand(p, id, i, wanted.operands[i]);
    if (wanted.result && op.output_count > 0)
        berth_layout__set(p, op.outputs[0], berth_module_intern(p->module, wanted.result));
    return true;
}
