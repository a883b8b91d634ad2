#include "compiler/passes/producer.h"

#include "ir/graph/op_params.h"
#include "planner/planner.h"

#define STAGED_OUTPUTS 64  // that share what one work-group stages
#define COLUMNS 16         // of weights that one register tile covers
#define LEAST_ROWS 8       // of a product whose rows are worth a panel
#define FEW_USES 4         // of an element: fewer than what schedules put in order for a product
#define SLOW_FLOPS 16      // of exp, tanh, ..., and of a division
#define USUAL_EFFICIENCY 0.25  // of the peak, for work between loads
#define USUAL_BANDWIDTH 20e9   // bytes per second, where the target does not say
#define USUAL_L2_BYTES 524288.0

static const berth_type *type_of(const berth_module *module, const berth_graph *graph,
                                 berth_value_id value) {
    return berth_type_get(module, value == BERTH_NONE ? 0 : graph->values.data[value].type);
}

static double element_count(const berth_type *type) {
    double count = 1;
    for (int i = 0; i < type->rank; ++i) count *= (double)type->dims[i];
    return count;
}

static bool is_cheap(berth_op_kind kind) {
    switch (kind) {
    case BERTH_OP_ABS:
    case BERTH_OP_NEG:
    case BERTH_OP_RELU:
    case BERTH_OP_LEAKY_RELU:
    case BERTH_OP_CLIP:
    case BERTH_OP_CAST:
    case BERTH_OP_ADD:
    case BERTH_OP_SUB:
    case BERTH_OP_MUL:
    case BERTH_OP_PRELU:
    case BERTH_OP_MIN:
    case BERTH_OP_MAX:
    case BERTH_OP_SUM:
    case BERTH_OP_WHERE:
    case BERTH_OP_DEQUANTIZE_LINEAR: return true;
    default: return false;
    }
}

void berth_producer_add_work(berth_producer_work *work, const berth_module *module,
                             const berth_graph *graph, const berth_op *op) {
    double elements = element_count(type_of(module, graph, op->outputs[0]));
    work->flops += is_cheap(op->kind) ? 1 : SLOW_FLOPS;
    for (uint32_t i = 0; i < op->input_count; ++i) {
        const berth_type *type = type_of(module, graph, op->inputs[i]);
        if (op->inputs[i] != BERTH_NONE && element_count(type) >= elements) work->extra_operands++;
    }
    work->extra_operands--;
}

// What a reader does with its first operand.
typedef struct reading {
    double times;    // each element is read, before staging
    double outputs;  // that share an element: columns of the weights
    double rows;     // elements of the result per output
    double weights_bytes;
    bool packed;  // weights lie in blocks of columns, or row by row
    bool tiled;   // staged on devices with local memory
} reading;

static bool read_by_convolution(const berth_module *module, const berth_graph *graph,
                                const berth_op *op, reading *out) {
    const berth_type *x = type_of(module, graph, op->inputs[0]);
    const berth_type *w = type_of(module, graph, op->inputs[1]);
    const berth_type *y = type_of(module, graph, op->outputs[0]);
    berth_window window;
    if (x->rank < 3 || w->rank != x->rank) return false;
    berth_status status = berth_window_resolve(module, op, x->dims, x->rank, w->dims + 2, &window);
    if (status || window.group != 1) {
        berth_status_ignore(status);
        return false;
    }
    double positions = 1;
    double inputs = 1;
    for (int i = 0; i < window.spatial; ++i) {
        positions *= (double)(window.output[i] * window.kernel[i]);
        inputs *= (double)window.input[i];
    }
    out->times = inputs > 0 ? positions / inputs : 1;
    out->outputs = (double)w->dims[0];
    out->rows = element_count(y) / out->outputs;
    out->packed = w->layout != 0;
    return true;
}

static bool read_by_product(const berth_module *module, const berth_graph *graph,
                            const berth_op *op, reading *out) {
    const berth_type *a = type_of(module, graph, op->inputs[0]);
    const berth_type *b = type_of(module, graph, op->inputs[1]);
    const berth_type *y = type_of(module, graph, op->outputs[0]);
    bool transposed =
        op->kind == BERTH_OP_GEMM && berth_attrs_int(module, &op->attrs, "transB", 0) != 0;
    if (a->rank < 2 || b->rank < 2) return false;
    if (op->kind == BERTH_OP_GEMM && berth_attrs_int(module, &op->attrs, "transA", 0)) return false;
    out->times = 1;
    out->outputs = (double)b->dims[transposed ? 0 : b->rank - 1];
    out->rows = (double)y->dims[y->rank - 2];
    out->packed = b->layout != 0 || !transposed;
    // Operands that are broadcast over a batch are read once per batch.
    double batch = element_count(y) / (out->rows * out->outputs);
    double own = element_count(a) / (double)(a->dims[a->rank - 1] * a->dims[a->rank - 2]);
    if (own > 0) out->times = batch / own;
    return true;
}

static bool describe(const berth_module *module, const berth_graph *graph, const berth_op *op,
                     reading *out) {
    *out = (reading){.outputs = 1, .tiled = true};
    if (op->kind == BERTH_OP_WINOGRAD_INPUT || op->kind == BERTH_OP_WINOGRAD_CONV) {
        double m = (double)berth_attrs_int(module, &op->attrs, "tile", 0);
        out->times = m > 0 ? (m + 2) * (m + 2) / (m * m) : 0;
        return m > 0;
    }
    bool known = false;
    if (op->kind == BERTH_OP_CONV) known = read_by_convolution(module, graph, op, out);
    if (op->kind == BERTH_OP_MATMUL || op->kind == BERTH_OP_GEMM)
        known = read_by_product(module, graph, op, out);
    if (!known) return false;
    out->weights_bytes = 4 * element_count(type_of(module, graph, op->inputs[1]));
    return true;
}

// Times that the kernel computes each element; 0 = its schedule would compute it for every column.
static double computed_times(const reading *r, const berth_target *on, berth_op_kind kind) {
    if (kind == BERTH_OP_WINOGRAD_INPUT || kind == BERTH_OP_WINOGRAD_CONV) return r->times;
    bool cores = berth_target_is_cores(on);
    if (!cores) {
        double groups = r->outputs / STAGED_OUTPUTS;
        return r->times * (groups > 1 ? groups : 1);
    }
    double l2_bytes = on->l2_bytes > 0 ? (double)on->l2_bytes : USUAL_L2_BYTES;
    bool fits = r->packed && r->rows >= LEAST_ROWS && r->outputs >= COLUMNS &&
                r->weights_bytes <= l2_bytes / 2;
    return fits ? r->times : 0;
}

bool berth_producer_pays(const berth_module *module, const berth_graph *graph,
                         const berth_multi_target *target, berth_op_id reader,
                         const berth_producer_work *work) {
    const berth_op *op = &graph->ops.data[reader];
    reading r;
    // Plain C has no panels: every output would compute what is in front of it.
    if (target && target->executor == BERTH_EXECUTOR_AOT) return false;
    if (!target || op->input_count == 0 || !describe(module, graph, op, &r)) return false;
    uint32_t device = berth_plan_device_of(module, target, op->device);
    if (device == BERTH_NO_INDEX) return false;
    const berth_type *type = type_of(module, graph, op->inputs[0]);
    if (type->dtype != BERTH_DTYPE_F32 || !berth_type_is_static(type)) return false;
    const berth_target *on = target->devices[device].target;
    double times = computed_times(&r, on, op->kind);
    if (times <= 0) return false;
    double bandwidth = target->memories[target->devices[device].own_memory].bandwidth_bytes_per_s;
    double peak = berth_target_peak(on, BERTH_DTYPE_F32) * USUAL_EFFICIENCY;
    if (bandwidth <= 0) bandwidth = USUAL_BANDWIDTH;
    if (peak <= 0) return false;
    double again = times > 1 ? times - 1 : 0;
    double operands = work->extra_operands > 0 ? work->extra_operands : 0;
    double saved_s = 8 / bandwidth;
    double spent_s = again * work->flops / peak + again * operands * 4 / bandwidth;
    return spent_s <= saved_s;
}

bool berth_producer_reads_across(const berth_module *module, const berth_graph *graph,
                                 const berth_multi_target *target, berth_op_id reader,
                                 berth_op_id transposition) {
    const berth_op *op = &graph->ops.data[reader];
    const berth_op *move = &graph->ops.data[transposition];
    if (!target || target->executor == BERTH_EXECUTOR_AOT || op->kind != BERTH_OP_MATMUL ||
        move->kind != BERTH_OP_TRANSPOSE || op->inputs[1] != move->outputs[0])
        return false;
    const berth_type *b = type_of(module, graph, op->inputs[1]);
    const berth_type *y = type_of(module, graph, op->outputs[0]);
    uint32_t device = berth_plan_device_of(module, target, op->device), count = 0;
    const int64_t *perm = berth_attrs_ints(module, &move->attrs, "perm", &count);
    if (device == BERTH_NO_INDEX || !berth_target_is_cores(target->devices[device].target) ||
        b->dtype != BERTH_DTYPE_F32 || b->rank < 2 || !berth_type_is_static(b) || b->layout ||
        type_of(module, graph, move->inputs[0])->layout || count != (uint32_t)b->rank ||
        perm[b->rank - 2] != b->rank - 1 || element_count(b) <= 0)
        return false;
    double uses = element_count(y) * (double)b->dims[b->rank - 2] / element_count(b);
    return uses < FEW_USES;
}
