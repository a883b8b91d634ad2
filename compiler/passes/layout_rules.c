// Layouts on devices that have rules of their own: constants are packed, other operands come in the
// layout from the device that they are copied from, since a relayout may be nothing that the device
// itself can do.
#include <string.h>

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

// Groups side by side in one: the weights [O, I, ...] become [O, times * I, ...], each output's own in
// its group's place.
static void merge_groups(berth_layout_pass *p, berth_op_id id, uint32_t operand, int64_t groups) {
    const berth_op op = graph_of(p)->ops.data[id];
    int64_t old = berth_attrs_int(p->module, &op.attrs, "group", 1);
    const berth_tensor *weights =
        berth_graph_raw_constant_of(p->module, graph_of(p), op.inputs[operand]);
    if (!weights || weights->rank < 2 || groups < 1 || groups == old || old % groups) return;
    int64_t times = old / groups, outputs = weights->dims[0], inputs = weights->dims[1];
    int64_t dims[BERTH_MAX_RANK];
    memcpy(dims, weights->dims, sizeof(dims));
    dims[1] = times * inputs;
    berth_tensor merged =
        berth_tensor_create(p->module->arena, weights->dtype, weights->rank, dims);
    int64_t row = berth_tensor_element_count(weights) / outputs;
    size_t bytes = (size_t)row * berth_dtype_size_bytes(weights->dtype);
    memset(merged.data, 0, (size_t)(outputs * times) * bytes);
    for (int64_t o = 0; o < outputs; ++o) {
        int64_t place = o / (outputs / old) % times;
        memcpy((char *)merged.data + (size_t)(o * times + place) * bytes,
               (const char *)weights->data + (size_t)o * bytes, bytes);
    }
    berth_value_id value = berth_graph_insert_constant(p->module, p->main, id, &merged, op.loc);
    graph_of(p)->values.data[value].device = graph_of(p)->values.data[op.outputs[0]].device;
    berth_layout__set_input(p, id, operand, value);
    berth_attrs_set_int(p->module, &graph_of(p)->ops.data[id].attrs, "group", groups);
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
    if (wanted.groups) merge_groups(p, id, wanted.weights, wanted.groups);
    for (uint32_t i = 0; i < op.input_count; ++i)
        if (wanted.operands[i] && graph_of(p)->ops.data[id].inputs[i] != BERTH_NONE)
            give_operand(p, id, i, wanted.operands[i]);
    if (wanted.result && op.output_count > 0)
        berth_layout__set(p, op.outputs[0], berth_module_intern(p->module, wanted.result));
    return true;
}
