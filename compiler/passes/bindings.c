#include "compiler/passes/bindings.h"

#include <stdlib.h>

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

static bool is_among(const berth_value_id *values, uint32_t count, berth_value_id value) {
    for (uint32_t i = 0; i < count; ++i)
        if (values[i] == value) return true;
    return false;
}

bool berth_bindings_suffice(const berth_module *module, const berth_graph *graph,
                            const berth_op_id *ops, uint32_t count, uint32_t most) {
    if (count == 0) return true;
    uint32_t results = graph->ops.data[ops[count - 1]].output_count, found = 0;
    berth_value_id values[BERTH_TARGET_MAX_BINDINGS];
    if (most > BERTH_TARGET_MAX_BINDINGS) most = BERTH_TARGET_MAX_BINDINGS;
    if (results > most) return false;
    for (uint32_t i = 0; i < count; ++i) {
        const berth_op *op = &graph->ops.data[ops[i]];
        for (uint32_t k = 0; k < op->input_count; ++k) {
            berth_value_id value = op->inputs[k];
            if (!is_bound(module, graph, op, k) || made_inside(graph, ops, count, value) ||
                is_among(values, found, value))
                continue;
            if (results + found == most) return false;
            values[found++] = value;
        }
    }
    return true;
}

static int compare_values(const void *left, const void *right) {
    const berth_value_id a = *(const berth_value_id *)left, b = *(const berth_value_id *)right;
    return a < b ? -1 : a > b;
}

uint32_t berth_bindings_of(const berth_module *module, const berth_graph *graph, berth_op_id id,
                           berth_arena *arena) {
    const berth_op *op = &graph->ops.data[id];
    berth_value_id *values = berth_arena_new_array(arena, berth_value_id, op->input_count);
    uint32_t count = 0, different = 0;
    for (uint32_t k = 0; k < op->input_count; ++k)
        if (is_bound(module, graph, op, k)) values[count++] = op->inputs[k];
    if (count) qsort(values, count, sizeof(*values), compare_values);
    for (uint32_t k = 0; k < count; ++k) different += k == 0 || values[k] != values[k - 1];
    return op->output_count + different;
}

uint32_t berth_bindings_least(const berth_multi_target *target) {
    uint32_t least = BERTH_TARGET_MAX_BINDINGS;
    for (uint32_t i = 0; target && i < target->device_count; ++i) {
        uint32_t most = berth_target_max_bindings(target->devices[i].target);
        if (!target->devices[i].host_only && most < least) least = most;
    }
    return least;
}
