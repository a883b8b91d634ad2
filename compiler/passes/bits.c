#include "compiler/passes/bits.h"

#include "compiler/passes/rewrite.h"
#include "ir/eval.h"
#include "planner/planner.h"

static bool unpacks_on_the_way(const berth_module *module, const berth_multi_target *target,
                               const berth_op *op) {
    uint32_t device = berth_plan_device_of(module, target, op->device);
    return target->executor != BERTH_EXECUTOR_AOT && device != BERTH_NO_INDEX &&
           berth_target_is_cores(target->devices[device].target);
}

static berth_status unpack(berth_rewriter *r, berth_op_id id) {
    berth_op op = berth_graph_get(r->module, r->function)->ops.data[id];
    const berth_tensor *operands[3] = {NULL};
    for (uint32_t i = 1; i < op.input_count; ++i) {
        if (op.inputs[i] == BERTH_NONE) continue;
        operands[i - 1] = berth_rewriter_constant(r, op.inputs[i]);
        if (!operands[i - 1]) return BERTH_OK;
    }
    const berth_graph *graph = berth_graph_get(r->module, r->function);
    const berth_type a = *berth_type_get(r->module, graph->values.data[op.inputs[0]].type);
    berth_tensor weights;
    BERTH_TRY(berth_eval_unpack_bits(r->module, &op, operands, a.dims[a.rank - 1], r->module->arena,
                                     &weights));
    berth_value_id value = berth_rewriter_insert_constant(r, id, &weights, op.loc);
    berth_graph *edited = berth_graph_get(r->module, r->function);
    edited->values.data[value].device = edited->values.data[op.outputs[0]].device;
    berth_op *self = &edited->ops.data[id];
    self->kind = BERTH_OP_MATMUL;
    self->inputs[1] = value;
    self->input_count = 2;
    self->attrs = (berth_attrs){0};
    return BERTH_OK;
}

berth_status berth_pass_unpack_bits(berth_module *module, berth_func_id main,
                                    const berth_multi_target *target) {
    berth_rewriter r;
    const berth_graph *graph = berth_graph_get(module, main);
    uint32_t count = graph->regions.data[0].ops.count;
    berth_op_id *ops =
        berth_arena_copy(module->arena, graph->regions.data[0].ops.data, count * sizeof(*ops));
    berth_rewriter_begin(&r, module, main);
    for (uint32_t i = 0; i < count; ++i) {
        const berth_op *op = &berth_graph_get(module, main)->ops.data[ops[i]];
        if (op->kind == BERTH_OP_MATMUL_BITS && !unpacks_on_the_way(module, target, op))
            BERTH_TRY(unpack(&r, ops[i]));
    }
    berth_rewriter_finish(&r);
    return BERTH_OK;
}
