// Operations on f16 that processor cores compute as f32: what these do for convolutions, pools and resampling
// (blocks of channels, Winograd, vectors along rows) they do for f32, so such an operation becomes
// cast(operation(cast(operands))). The sums are f32 either way, and are rounded once.
#include "compiler/passes/layout_private.h"

typedef berth_layout_pass pass;

static bool has_wide_form(berth_op_kind kind) {
    switch (kind) {
    case BERTH_OP_CONV:
    case BERTH_OP_CONV_TRANSPOSE:
    case BERTH_OP_MAX_POOL:
    case BERTH_OP_AVERAGE_POOL:
    case BERTH_OP_GLOBAL_AVERAGE_POOL:
    case BERTH_OP_GLOBAL_MAX_POOL:
    case BERTH_OP_RESIZE:
    case BERTH_OP_GEMM: return true;
    default: return false;
    }
}

static bool is_half(const pass *p, berth_value_id value) {
    return value != BERTH_NONE && type_of(p, value)->dtype == BERTH_DTYPE_F16;
}

bool berth_layout__is_half(const pass *p, berth_op_id id) {
    const berth_op op = graph_of(p)->ops.data[id];
    const berth_target *target = berth_layout__target(p, id);
    bool one = op.output_count == 1 || op.outputs[1] == BERTH_NONE;
    return target && berth_device_kind_is_host(target->kind) && has_wide_form(op.kind) && one &&
           is_half(p, op.inputs[0]) && is_half(p, op.outputs[0]) &&
           berth_type_is_static(type_of(p, op.inputs[0])) &&
           berth_type_is_static(type_of(p, op.outputs[0]));
}

// An operand as f32; one that is shared is converted for each who reads it, mostly while that reads it.
static berth_value_id widened(pass *p, berth_op_id id, berth_value_id value) {
    if (!is_half(p, value)) return value;
    const berth_tensor *half = berth_graph_constant_of(p->module, graph_of(p), value);
    if (!half) return berth_layout__cast(p, id, value, BERTH_DTYPE_F32);
    berth_tensor wide =
        berth_tensor_create(p->module->arena, BERTH_DTYPE_F32, half->rank, half->dims);
    for (int64_t i = 0; i < berth_tensor_element_count(half); ++i)
        berth_tensor_set_f64(&wide, i, berth_tensor_get_f64(half, i));
    return berth_layout__constant(p, id, &wide);
}

berth_op_id berth_layout__widen(pass *p, berth_op_id id) {
    berth_op op = graph_of(p)->ops.data[id];
    berth_value_id *inputs =
        berth_arena_copy(p->module->arena, op.inputs, op.input_count * sizeof(*inputs));
    for (uint32_t i = 0; i < op.input_count; ++i) inputs[i] = widened(p, id, inputs[i]);
    const berth_type out = *type_of(p, op.outputs[0]);
    berth_type_id wide = berth_type_tensor(p->module, BERTH_DTYPE_F32, out.rank, out.dims);
    berth_value_id result = berth_layout__insert(p, id, op.kind, inputs, op.input_count, wide, id);
    berth_op_id made = graph_of(p)->values.data[result].op;
    graph_of(p)->ops.data[made].attrs = op.attrs;
    berth_layout__become_cast(p, id, result, BERTH_DTYPE_F16);
    return made;
}
