#include "compiler/passes/zero_points.h"

static bool is_zero(const berth_module *module, const berth_graph *graph, berth_value_id value) {
    const berth_tensor *tensor =
        value == BERTH_NONE ? NULL : berth_graph_constant_of(module, graph, value);
    int64_t count = tensor ? berth_tensor_element_count(tensor) : 0;
    for (int64_t i = 0; i < count; ++i)
        if (berth_tensor_get_i64(tensor, i) != 0) return false;
    return count > 0;
}

void berth_pass_drop_zero_points(berth_module *module, berth_func_id main) {
    const berth_graph *graph = berth_graph_get(module, main);
    const berth_region *root = &graph->regions.data[0];
    for (uint32_t i = 0; i < root->ops.count; ++i) {
        berth_op *op = &graph->ops.data[root->ops.data[i]];
        if (op->kind != BERTH_OP_CONV_INTEGER && op->kind != BERTH_OP_MATMUL_INTEGER) continue;
        for (uint32_t k = 2; k < op->input_count; ++k)
            if (is_zero(module, graph, op->inputs[k])) op->inputs[k] = BERTH_NONE;
    }
    berth_graph_remove_dead(module, main);
}
