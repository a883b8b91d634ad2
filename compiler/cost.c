#include "compiler/cost.h"

#include "compiler/codegen/codegen.h"
#include "compiler/external.h"
#include "compiler/lower/lower.h"

// Fraction of the peak that generated kernels reach on large problems; the rest of the model is a
// lower bound.
static const double usual_efficiency = 0.7;

static double element_count(const berth_type *type) {
    double count = 1;
    for (int i = 0; i < type->rank; ++i)
        count *= berth_dim_is_symbol(type->dims[i]) ? 1 : (double)type->dims[i];
    return count;
}

static double type_bytes(const berth_type *type) {
    return type->kind == BERTH_TYPE_TENSOR && type->rank >= 0
               ? element_count(type) * (double)berth_dtype_size_bytes(type->dtype)
               : 0;
}

static const berth_type *value_type(const berth_module *module, const berth_graph *graph,
                                    berth_value_id value) {
    return berth_type_get(module, value == BERTH_NONE ? 0 : graph->values.data[value].type);
}

// Multiply-adds of matrix products and convolutions; one operation per element read or written
// otherwise.
static double op_flops(const berth_module *module, const berth_graph *graph, const berth_op *op) {
    const berth_type *out = value_type(module, graph, op->outputs[0]);
    const berth_type *a =
        value_type(module, graph, op->input_count > 0 ? op->inputs[0] : BERTH_NONE);
    const berth_type *b =
        value_type(module, graph, op->input_count > 1 ? op->inputs[1] : BERTH_NONE);
    switch (op->kind) {
    case BERTH_OP_CONV:
    case BERTH_OP_CONV_INTEGER: {
        double outputs = b->rank > 0 ? (double)b->dims[0] : 1;
        return 2 * element_count(out) * element_count(b) / (outputs > 0 ? outputs : 1);
    }
    case BERTH_OP_CONV_TRANSPOSE: {
        double inputs = b->rank > 0 ? (double)b->dims[0] : 1;
        return 2 * element_count(a) * element_count(b) / (inputs > 0 ? inputs : 1);
    }
    case BERTH_OP_MATMUL:
    case BERTH_OP_MATMUL_INTEGER:
    case BERTH_OP_GEMM: {
        bool transposed =
            op->kind == BERTH_OP_GEMM && berth_attrs_int(module, &op->attrs, "transA", 0);
        double depth = a->rank > 0 ? (double)a->dims[transposed ? 0 : a->rank - 1] : 1;
        return 2 * element_count(out) * depth;
    }
    default: return element_count(out) + element_count(a);
    }
}

berth_op_work berth_op_work_of(const berth_module *module, berth_func_id function, berth_op_id id) {
    const berth_graph *graph = berth_graph_get(module, function);
    const berth_op *op = &graph->ops.data[id];
    berth_op_work work = {0};
    berth_func_id external = berth_external_called(module, op);
    if (external == BERTH_NONE && berth_op_has(op->kind, BERTH_TRAIT_VIEW | BERTH_TRAIT_STRUCTURE))
        return work;
    if (op->output_count == 0) return work;
    for (uint32_t i = 0; i < op->input_count; ++i)
        work.bytes += type_bytes(value_type(module, graph, op->inputs[i]));
    for (uint32_t i = 0; i < op->output_count; ++i)
        work.bytes += type_bytes(value_type(module, graph, op->outputs[i]));
    work.flops = op_flops(module, graph, op);
    double time_ns = 0;
    if (external != BERTH_NONE)
        berth_external_cost(module, external, &work.flops, &work.bytes, &time_ns);
    return work;
}

// What the model asks of: the target, and the latest answer of the lowering, which is the same for
// every device and is asked for one after the other. A graph's address is never used twice.
typedef struct analytic {
    const berth_multi_target *target;
    berth_arena *arena;        // answers outlive the one that a question comes with
    const berth_graph *graph;  // of `answer`; NULL = none yet
    berth_op_id op;
    const char *answer;
} analytic;

// Bytes of the operands that are constants.
static double constant_bytes(const berth_module *module, const berth_graph *graph,
                             const berth_op *op) {
    double bytes = 0;
    for (uint32_t i = 0; i < op->input_count; ++i)
        if (op->inputs[i] != BERTH_NONE &&
            berth_graph_raw_constant_of(module, graph, op->inputs[i]))
            bytes += (double)berth_type_size_bytes(module, graph->values.data[op->inputs[i]].type);
    return bytes;
}

// Where constants are in a memory of their own, they come from there.
static double memory_seconds(const berth_multi_target *target, uint32_t device, double bytes,
                             const berth_module *module, const berth_graph *graph,
                             const berth_op *op) {
    const berth_target_device *on = &target->devices[device];
    double bandwidth = target->memories[on->own_memory].bandwidth_bytes_per_s;
    double constant_bandwidth = target->memories[on->constant_memory].bandwidth_bytes_per_s;
    double apart = 0;
    if (on->constant_memory != on->own_memory) apart = constant_bytes(module, graph, op);
    if (apart > bytes) apart = bytes;
    return (bandwidth > 0 ? (bytes - apart) / bandwidth : 0) +
           (constant_bandwidth > 0 ? apart / constant_bandwidth : 0);
}

static double time_ns(void *user, const berth_module *module, berth_func_id function,
                      berth_op_id id, uint32_t device) {
    const berth_multi_target *target = ((const analytic *)user)->target;
    berth_op_work work = berth_op_work_of(module, function, id);
    const berth_graph *graph = berth_graph_get(module, function);
    berth_func_id external = berth_external_called(module, &graph->ops.data[id]);
    double flops = 0, bytes = 0, given_ns = -1;
    if (external != BERTH_NONE) berth_external_cost(module, external, &flops, &bytes, &given_ns);
    if (given_ns >= 0) return given_ns;
    if (work.flops == 0 && work.bytes == 0) return 0;
    const berth_target *on = target->devices[device].target;
    berth_dtype dtype = value_type(module, graph, graph->ops.data[id].outputs[0])->dtype;
    double compute_s = work.flops / (berth_target_peak(on, dtype) * usual_efficiency);
    double memory_s =
        memory_seconds(target, device, work.bytes, module, graph, &graph->ops.data[id]);
    return (compute_s > memory_s ? compute_s : memory_s) * 1e9 + (double)on->dispatch_ns;
}

static bool uses_dtype(const berth_module *module, const berth_graph *graph, const berth_op *op,
                       berth_dtype dtype) {
    for (uint32_t i = 0; i < op->input_count; ++i)
        if (value_type(module, graph, op->inputs[i])->dtype == dtype) return true;
    for (uint32_t i = 0; i < op->output_count; ++i)
        if (value_type(module, graph, op->outputs[i])->dtype == dtype) return true;
    return false;
}

static const char *unsupported(void *user, const berth_module *module, berth_func_id function,
                               berth_op_id id, uint32_t device, berth_arena *arena) {
    analytic *model = user;
    const berth_multi_target *target = model->target;
    if (target->devices[device].host_only) return "it only drives other devices";
    const char *kind = berth_device_kind_name(target->devices[device].target->kind);
    if (!berth_codegen_find(kind))
        return berth_arena_printf(arena, "no code generator for devices of kind %s", kind);
    const berth_graph *graph = berth_graph_get(module, function);
    const berth_op *op = &graph->ops.data[id];
    berth_func_id external = berth_external_called(module, op);
    if (external != BERTH_NONE)
        return berth_external_refusal(module, external, target->devices[device].target->kind,
                                      arena);
    if (berth_op_has(op->kind, BERTH_TRAIT_VIEW | BERTH_TRAIT_STRUCTURE)) return NULL;
    if (target->devices[device].target->lacks_f64 && uses_dtype(module, graph, op, BERTH_DTYPE_F64))
        return "the device has no 64-bit floats";
    if (model->graph != graph || model->op != id)
        *model = (analytic){.target = target,
                            .arena = model->arena,
                            .graph = graph,
                            .op = id,
                            .answer = berth_lower_check(module, function, id, model->arena)};
    return model->answer;
}

berth_cost_model berth_cost_model_analytic(berth_arena *arena, const berth_multi_target *target) {
    analytic *model = berth_arena_new(arena, analytic);
    model->target = target;
    model->arena = arena;
    return (berth_cost_model){.unsupported = unsupported, .time_ns = time_ns, .user = model};
}
