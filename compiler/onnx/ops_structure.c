// Constants and control flow.
#include <string.h>

#include "compiler/onnx/ops.h"

// ---- Constant ----

static berth_status located(const onnx_call *call, berth_status status) {
    if (berth_status_code(status) == BERTH_UNSUPPORTED) call->im->refused = call->node;
    return berth_status_prefix(status, "%s",
                               berth_loc_describe(call->im->module, call->loc, call->im->scratch));
}

static berth_tensor list_tensor(onnx_call *call, const onnx_attr *attr, berth_dtype dtype,
                                uint32_t count, int rank) {
    int64_t dims[1] = {count};
    berth_tensor tensor = berth_tensor_create(call->im->arena, dtype, rank, dims);
    for (uint32_t i = 0; i < count; ++i) {
        if (dtype == BERTH_DTYPE_STRING)
            ((berth_string *)tensor.data)[i] =
                berth_string_of(rank ? attr->strings.data[i] : attr->s);
        else if (dtype == BERTH_DTYPE_I64)
            berth_tensor_set_i64(&tensor, i, rank ? attr->ints.data[i] : attr->i);
        else
            berth_tensor_set_f64(&tensor, i, rank ? attr->floats.data[i] : attr->f);
    }
    return tensor;
}

berth_status onnx_build_constant(onnx_call *call) {
    berth_tensor tensor = {0};
    if (call->node->attrs.count != 1)
        return onnx_call_fail(call, BERTH_INVALID_ARGUMENT, "%u attributes, expected one value",
                              call->node->attrs.count);
    const onnx_attr *attr = &call->node->attrs.data[0];
    if (strcmp(attr->name, "value") == 0)
        BERTH_TRY(located(call, onnx_read_constant(call->im, &attr->tensor, &tensor, NULL)));
    else if (strcmp(attr->name, "sparse_value") == 0)
        BERTH_TRY(located(call, onnx_read_sparse_tensor(call->im, &attr->tensor, &tensor, NULL)));
    else if (strcmp(attr->name, "value_int") == 0)
        tensor = list_tensor(call, attr, BERTH_DTYPE_I64, 1, 0);
    else if (strcmp(attr->name, "value_float") == 0)
        tensor = list_tensor(call, attr, BERTH_DTYPE_F32, 1, 0);
    else if (strcmp(attr->name, "value_ints") == 0)
        tensor = list_tensor(call, attr, BERTH_DTYPE_I64, attr->ints.count, 1);
    else if (strcmp(attr->name, "value_floats") == 0)
        tensor = list_tensor(call, attr, BERTH_DTYPE_F32, attr->floats.count, 1);
    else if (strcmp(attr->name, "value_string") == 0)
        tensor = list_tensor(call, attr, BERTH_DTYPE_STRING, 1, 0);
    else
        tensor = list_tensor(call, attr, BERTH_DTYPE_STRING, attr->strings.count, 1);
    // What attributes hold lives as long as the import.
    if (tensor.dtype == BERTH_DTYPE_STRING) tensor = berth_tensor_copy(call->im->arena, &tensor);
    if (!call->output_count) return BERTH_OK;
    call->outputs[0] = onnx_call_literal(call, &tensor);
    if (attr->type == ONNX_ATTR_TENSOR || attr->type == ONNX_ATTR_SPARSE_TENSOR)
        onnx_set_narrow(call->im, call->outputs[0], call->im->element_read);
    return BERTH_OK;
}

// ---- If, Loop: regions ----

static berth_status finish_regions(onnx_call *call, berth_op_id op) {
    for (uint32_t i = 0; i < call->output_count; ++i)
        call->outputs[i] = onnx_call_result(call, op, i);
    return onnx_call_infer(call, op);
}

static berth_status add_region(onnx_call *call, berth_op_id op, const char *name) {
    const onnx_attr *attr = onnx_call_attr(call, name);
    berth_region_id region = berth_graph_add_region(call->im->module, call->im->function, op);
    return onnx_build_subgraph(call->im, attr->graph, region);
}

berth_status onnx_build_if(onnx_call *call) {
    if (!onnx_call_has(call, 0) || call->input_count != 1)
        return onnx_call_fail(call, BERTH_INVALID_ARGUMENT, "one input (the condition) is needed");
    call->output_count = call->node->outputs.count;
    berth_op_id op = onnx_call_op(call, BERTH_OP_IF, call->inputs, 1, call->output_count);
    BERTH_TRY(add_region(call, op, "then_branch"));
    BERTH_TRY(add_region(call, op, "else_branch"));
    return finish_regions(call, op);
}

berth_status onnx_build_loop(onnx_call *call) {
    uint32_t count = call->node->inputs.count;
    if (count < 2)
        return onnx_call_fail(call, BERTH_INVALID_ARGUMENT, "trip count and condition are missing");
    for (uint32_t i = 2; i < count; ++i)
        if (!onnx_call_has(call, i))
            return onnx_call_fail(call, BERTH_UNSUPPORTED,
                                  "a carried value without an initial value");
    call->output_count = call->node->outputs.count;
    // Not through onnx_call_op, which drops trailing operands that are left out: both are counted.
    berth_op_id op =
        berth_graph_add_op(call->im->module, call->im->function, call->im->region, BERTH_OP_LOOP,
                           call->inputs, count, call->output_count, call->loc);
    BERTH_TRY(add_region(call, op, "body"));
    return finish_regions(call, op);
}
