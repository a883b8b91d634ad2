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

// ---- products with dequantised weights
// ----------------------------------------------------------------------------

// Weights (numbers - zero) * scale, in blocks of rows. Element types: numbers and zero i8 or u8, scale f32.
typedef struct blocked {
    const berth_tensor *numbers, *scale;
    const berth_tensor *zero;  // NULL = 0
    berth_value_id scale_value;
    int64_t block;
} blocked;

static const berth_op *def_of(berth_rewriter *r, berth_value_id value, berth_op_kind kind) {
    const berth_op *op = value == BERTH_NONE ? NULL : berth_rewriter_def(r, value);
    return op && op->kind == kind ? op : NULL;
}

static bool is_cast(berth_rewriter *r, const berth_op *op, berth_dtype to) {
    const berth_attr *attr = op ? berth_attrs_find(r->module, &op->attrs, "to") : NULL;
    return attr && attr->kind == BERTH_ATTR_DTYPE && attr->dtype == to;
}

static bool constant_is(berth_rewriter *r, berth_value_id value, int64_t number) {
    const berth_tensor *tensor = berth_rewriter_constant(r, value);
    return tensor && tensor->rank == 0 && berth_tensor_get_i64(tensor, 0) == number;
}

// What is gathered at range(0, rows, 1) / block along dimension 0; sets the block. BERTH_NONE: it is something else.
static berth_value_id spread_along(berth_rewriter *r, berth_value_id value, int64_t rows,
                                   int64_t *out_block) {
    const berth_op *gather = def_of(r, value, BERTH_OP_GATHER);
    if (!gather || berth_attrs_int(r->module, &gather->attrs, "axis", 0) != 0) return BERTH_NONE;
    const berth_op *places = def_of(r, gather->inputs[1], BERTH_OP_DIV);
    const berth_op *range = places ? def_of(r, places->inputs[0], BERTH_OP_RANGE) : NULL;
    const berth_tensor *block = places ? berth_rewriter_constant(r, places->inputs[1]) : NULL;
    if (!range || !block || block->rank != 0 || !constant_is(r, range->inputs[0], 0) ||
        !constant_is(r, range->inputs[1], rows) || !constant_is(r, range->inputs[2], 1))
        return BERTH_NONE;
    *out_block = berth_tensor_get_i64(block, 0);
    return gather->inputs[0];
}

// A constant of 8-bit integers under a cast to i32.
static const berth_tensor *integers(berth_rewriter *r, berth_value_id value) {
    const berth_op *cast = def_of(r, value, BERTH_OP_CAST);
    const berth_tensor *held =
        is_cast(r, cast, BERTH_DTYPE_I32) ? berth_rewriter_constant(r, cast->inputs[0]) : NULL;
    bool bytes = held && (held->dtype == BERTH_DTYPE_I8 || held->dtype == BERTH_DTYPE_U8);
    return bytes && held->rank == 2 ? held : NULL;
}

static bool find_blocked(berth_rewriter *r, berth_value_id weights, blocked *out) {
    int64_t zero_block = 0;
    const berth_op *product = def_of(r, weights, BERTH_OP_MUL);
    const berth_op *cast = product ? def_of(r, product->inputs[0], BERTH_OP_CAST) : NULL;
    if (!is_cast(r, cast, BERTH_DTYPE_F32)) return false;
    const berth_op *shifted = def_of(r, cast->inputs[0], BERTH_OP_SUB);
    *out = (blocked){.numbers = integers(r, shifted ? shifted->inputs[0] : cast->inputs[0])};
    if (!out->numbers) return false;
    int64_t rows = out->numbers->dims[0], columns = out->numbers->dims[1];
    out->scale_value = spread_along(r, product->inputs[1], rows, &out->block);
    out->scale =
        out->scale_value == BERTH_NONE ? NULL : berth_rewriter_constant(r, out->scale_value);
    if (!out->scale || out->scale->dtype != BERTH_DTYPE_F32 || out->block < 1) return false;
    int64_t count = (rows + out->block - 1) / out->block * columns;
    if (berth_tensor_element_count(out->scale) != count) return false;
    if (!shifted) return true;
    out->zero = integers(r, spread_along(r, shifted->inputs[1], rows, &zero_block));
    return out->zero && out->zero->dtype == out->numbers->dtype && zero_block == out->block &&
           berth_tensor_element_count(out->zero) == count;
}

// The least number of bits that all numbers and zero points have.
static int64_t bits_of(const blocked *b) {
    const berth_tensor *tensors[2] = {b->numbers, b->zero};
    int64_t low = b->numbers->dtype == BERTH_DTYPE_I8 ? -8 : 0;
    if (b->block % 2) return 8;
    for (int t = 0; t < 2; ++t)
        for (int64_t i = 0; tensors[t] && i < berth_tensor_element_count(tensors[t]); ++i) {
            int64_t value = berth_tensor_get_i64(tensors[t], i);
            if (value < low || value > low + 15) return 8;
        }
    return 4;
}

// Numbers from 0 on: signed ones are moved up by `up`, with their zero point.
static void pack(berth_arena *arena, const blocked *b, int64_t bits, int64_t up,
                 berth_tensor *out_bytes, berth_tensor *out_zero) {
    int64_t rows = b->numbers->dims[0], columns = b->numbers->dims[1], per_byte = 8 / bits;
    int64_t blocks = (rows + b->block - 1) / b->block;
    int64_t dims[2] = {blocks * b->block / per_byte, columns};
    *out_bytes = berth_tensor_create(arena, BERTH_DTYPE_U8, 2, dims);
    for (int64_t k = 0; k < rows; ++k)
        for (int64_t j = 0; j < columns; ++j) {
            int64_t at = k / per_byte * columns + j;
            int64_t number = berth_tensor_get_i64(b->numbers, k * columns + j) + up;
            number = berth_tensor_get_i64(out_bytes, at) | number << (k % per_byte * bits);
            berth_tensor_set_i64(out_bytes, at, number);
        }
    dims[0] = blocks;
    *out_zero = berth_tensor_create(arena, BERTH_DTYPE_U8, 2, dims);
    for (int64_t i = 0; i < blocks * columns; ++i)
        berth_tensor_set_i64(out_zero, i, (b->zero ? berth_tensor_get_i64(b->zero, i) : 0) + up);
}

static void keep(berth_rewriter *r, berth_op_id id, const blocked *b) {
    berth_module *module = r->module;
    int64_t bits = bits_of(b);
    int64_t up = b->numbers->dtype == BERTH_DTYPE_I8 ? (int64_t)1 << (bits - 1) : 0;
    berth_tensor bytes, zero;
    pack(module->arena, b, bits, up, &bytes, &zero);
    berth_loc_id loc = berth_graph_get(module, r->function)->ops.data[id].loc;
    berth_value_id values[2] = {berth_rewriter_insert_constant(r, id, &bytes, loc),
                                berth_rewriter_insert_constant(r, id, &zero, loc)};
    berth_op *self = &berth_graph_get(module, r->function)->ops.data[id];
    berth_value_id inputs[4] = {self->inputs[0], values[0], b->scale_value, values[1]};
    self->kind = BERTH_OP_MATMUL_BITS;
    self->inputs = berth_arena_copy(module->arena, inputs, sizeof(inputs));
    self->input_count =
        !b->zero && up ? 3 : 4;  // the origin of signed numbers is what is meant without one
    berth_attrs_set_int(module, &self->attrs, "bits", bits);
    berth_attrs_set_int(module, &self->attrs, "block_size", b->block);
    r->changed = true;
}

static bool some_unpack_on_the_way(const berth_multi_target *target) {
    if (!target || target->executor == BERTH_EXECUTOR_AOT) return false;
    for (uint32_t i = 0; i < target->device_count; ++i)
        if (berth_target_is_cores(target->devices[i].target)) return true;
    return false;
}

berth_status berth_pass_keep_bits(berth_module *module, berth_func_id main,
                                  const berth_multi_target *target) {
    berth_rewriter r;
    blocked b;
    if (!some_unpack_on_the_way(target)) return BERTH_OK;
    const berth_graph *graph = berth_graph_get(module, main);
    uint32_t count = graph->regions.data[0].ops.count;
    berth_op_id *ops =
        berth_arena_copy(module->arena, graph->regions.data[0].ops.data, count * sizeof(*ops));
    berth_rewriter_begin(&r, module, main);
    for (uint32_t i = 0; i < count; ++i) {
        const berth_op *op = &berth_graph_get(module, main)->ops.data[ops[i]];
        if (op->kind == BERTH_OP_MATMUL && find_blocked(&r, op->inputs[1], &b))
            keep(&r, ops[i], &b);
    }
    berth_rewriter_finish(&r);
    return BERTH_OK;
}
