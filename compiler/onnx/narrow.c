// Which values are of a narrow element type (base/narrow.h), and which operators may have them.
#include <string.h>

#include "compiler/onnx/importer.h"

// What an operator does with narrow inputs.
typedef struct mover {
    const char *op_type;
    bool reads;   // its builder knows them
    bool result;  // its results hold elements of `from`, unless a builder said otherwise
    int from;
} mover;

// In alphabetical order.
static const mover movers[] = {
    {"BitCast", true, false, 0},        {"Cast", true, false, 0},
    {"CastLike", true, false, 0},       {"Concat", false, true, 0},
    {"DepthToSpace", false, true, 0},   {"DequantizeLinear", true, false, 0},
    {"Expand", false, true, 0},         {"Flatten", false, true, 0},
    {"Gather", false, true, 0},         {"GatherBlockQuantized", true, false, 0},
    {"GatherElements", false, true, 0}, {"GatherND", false, true, 0},
    {"Identity", false, true, 0},       {"QuantizeLinear", true, false, 0},
    {"Reshape", false, true, 0},        {"ScatterElements", false, true, 0},
    {"ScatterND", false, true, 0},      {"Shape", false, false, 0},
    {"Size", false, false, 0},          {"Slice", false, true, 0},
    {"SpaceToDepth", false, true, 0},   {"Split", false, true, 0},
    {"Squeeze", false, true, 0},        {"Tile", false, true, 0},
    {"Transpose", false, true, 0},      {"Unsqueeze", false, true, 0},
    {"Where", false, true, 1},
};

static const mover *find_mover(const onnx_node *node) {
    if (*node->domain && strcmp(node->domain, "com.microsoft")) return NULL;
    for (size_t i = 0; i < sizeof(movers) / sizeof(movers[0]); ++i)
        if (strcmp(movers[i].op_type, node->op_type) == 0) return &movers[i];
    return NULL;
}

const berth_narrow_type *onnx_narrow_of(const onnx_importer *im, berth_value_id value) {
    return value < im->narrow.count ? berth_narrow_type_of(im->narrow.data[value]) : NULL;
}

void onnx_set_narrow(onnx_importer *im, berth_value_id value, int64_t element) {
    if (!berth_narrow_type_of(element) || value == BERTH_NONE) return;
    while (im->narrow.count <= value) berth_vec_push(im->scratch, &im->narrow, 0);
    im->narrow.data[value] = (uint8_t)element;
}

berth_status onnx_check_narrow(const onnx_call *call) {
    const berth_narrow_type *first = NULL;
    berth_dtype bytes = BERTH_DTYPE_NONE;
    const mover *found = find_mover(call->node);
    if (!call->im->narrow.count || (found && found->reads)) return BERTH_OK;
    if (found && found->result && (uint32_t)found->from < call->input_count) {
        first = onnx_narrow_of(call->im, call->inputs[found->from]);
        bytes = first ? first->dtype : BERTH_DTYPE_NONE;
    }
    for (uint32_t i = 0; i < call->input_count; ++i) {
        const berth_narrow_type *type = onnx_narrow_of(call->im, call->inputs[i]);
        if (!type && bytes && onnx_call_type(call, call->inputs[i]).dtype == bytes)
            return onnx_call_fail(call, BERTH_INVALID_ARGUMENT, "input %u is not %s as another is",
                                  i, onnx_element_name(first->onnx));
        if (!type || (found && (!found->result || type == first))) continue;
        return onnx_call_fail(call, BERTH_UNSUPPORTED, "input %u has element type %d of ONNX (%s)",
                              i, type->onnx, onnx_element_name(type->onnx));
    }
    return BERTH_OK;
}

void onnx_pass_narrow(const onnx_call *call) {
    const mover *found = call->im->narrow.count ? find_mover(call->node) : NULL;
    if (!found || !found->result || (uint32_t)found->from >= call->input_count) return;
    const berth_narrow_type *type = onnx_narrow_of(call->im, call->inputs[found->from]);
    for (uint32_t i = 0; type && i < call->output_count; ++i)
        onnx_set_narrow(call->im, call->outputs[i], type->onnx);
}
