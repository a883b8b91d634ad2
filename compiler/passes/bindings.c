#include "compiler/passes/bindings.h"

bool berth_bindings_literal(const berth_module *module, const berth_op *op, uint32_t operand,
                            const berth_value *value, const berth_tensor *constant) {
    if (value->type && berth_type_get(module, value->type)->layout) return false;
    if (operand < 32 && (berth_op_facts_get(op->kind)->host_operands >> operand & 1u)) return true;
    return berth_tensor_element_count(constant) == 1;
}

static bool is_bound(const berth_module *module, const berth_graph *graph, const berth_op *op,
                     uint32_t operand) {
    berth_value_id value = op->inputs[operand];
    if (value == BERTH_NONE) return false;
    const berth_tensor *constant = berth_graph_raw_constant_of(module, graph, value);
    return !constant ||
           !berth_bindings_literal(module, op, operand, &graph->values.data[value], constant);
}

static bool made_inside(const berth_graph *graph, const berth_op_id *ops, uint32_t count,
                        berth_value_id value) {
    for (uint32_t i = 0; i < count; ++i)
        if (graph->values.data[value].op == ops[i]) return true;
    return false;
}

// Whether a value is an operand before operand `end` of operation number `index`.
static bool seen_before(const berth_module *module, const berth_graph *graph,
                        const berth_op_id *ops, uint32_t index, uint32_t end,
                        berth_value_id value) {
    for (uint32_t i = 0; i <= index; ++i) {
        const berth_op *op = &graph->ops.data[ops[i]];
        uint32_t count = i == index ? end : op->input_count;
        for (uint32_t k = 0; k < count; ++k)
            if (op->inputs[k] == value && is_bound(module, graph, op, k)) return true;
    }
    return false;
}

uint32_t berth_bindings_of(const berth_module *module, const berth_graph *graph,
                           const berth_op_id *ops, uint32_t count) {
    if (count == 0) return 0;
    uint32_t bindings = graph->ops.data[ops[count - 1]].output_count;
    for (uint32_t i = 0; i < count; ++i) {
        const berth_op *op = &graph->ops.data[ops[i]];
        for (uint32_t k = 0; k < op->input_count; ++k)
            bindings += is_bound(module, graph, op, k) &&
                        !made_inside(graph, ops, count, op->inputs[k]) &&
                        !seen_before(module, graph, ops, i, k, op->inputs[k]);
    }
    return bindings;
}

uint32_t berth_bindings_least(const berth_multi_target *target) {
    uint32_t least = BERTH_TARGET_MAX_BINDINGS;
    for (uint32_t i = 0; target && i < target->device_count; ++i) {
        uint32_t most = berth_target_max_bindings(target->devices[i].target);
        if (!target->devices[i].host_only && most < least) least = most;
    }
    return least;
}
