// Integer convolutions and products on processor cores, as sums of f32.
#include "compiler/passes/layout_private.h"

#define BLOCK 8               // channels of a block of activations
#define MAX_EXACT 16777216.0  // whole numbers below are exact in f32
#define MAX_INPUT 255         // |x - zero| of 8-bit types
#define MAX_PARTS 16

// ---- integers
// ------------------------------------------------------------------------------------

// Largest sum over one output of |w - zero| (a bound of |accumulator| per unit of input), and the
// weights less their zero points as f32. False when the zero points are not understood.
static bool shifted_weights(berth_layout_pass *p, const berth_tensor *w, const berth_tensor *zero,
                            berth_tensor *out, double *out_bound) {
    int64_t zeros = zero ? berth_tensor_element_count(zero) : 0;
    int64_t each = berth_tensor_element_count(w) / (w->dims[0] ? w->dims[0] : 1);
    if (zeros > 1 && zeros != w->dims[0]) return false;
    *out = berth_tensor_create(p->module->arena, BERTH_DTYPE_F32, w->rank, w->dims);
    *out_bound = 0;
    for (int64_t o = 0; o < w->dims[0]; ++o) {
        double sum = 0;
        int64_t shift = zeros ? berth_tensor_get_i64(zero, zeros > 1 ? o : 0) : 0;
        for (int64_t i = o * each; i < (o + 1) * each; ++i) {
            double value = (double)(berth_tensor_get_i64(w, i) - shift);
            berth_tensor_set_f64(out, i, value);
            sum += value < 0 ? -value : value;
        }
        if (sum > *out_bound) *out_bound = sum;
    }
    return true;
}

static const berth_tensor *constant_operand(const berth_layout_pass *p, const berth_op *op,
                                            uint32_t i) {
    if (i >= op->input_count || op->inputs[i] == BERTH_NONE) return NULL;
    return berth_graph_constant_of(p->module, graph_of(p), op->inputs[i]);
}

// x - zero as f32
static berth_value_id shifted_input(berth_layout_pass *p, berth_op_id id, berth_value_id x,
                                    const berth_layout_zero *zero) {
    berth_value_id value = berth_layout__cast(p, id, x, BERTH_DTYPE_F32);
    if (zero->value == BERTH_NONE) return value;
    berth_value_id amount = BERTH_NONE;
    if (zero->known) {
        berth_tensor *scalar = berth_arena_new(p->module->arena, berth_tensor);
        *scalar = berth_tensor_create(p->module->arena, BERTH_DTYPE_F32, 0, NULL);
        berth_tensor_set_f64(scalar, 0, (double)zero->number);
        amount = berth_graph_insert_constant(p->module, p->main, id, scalar,
                                             graph_of(p)->ops.data[id].loc);
    } else {
        amount = berth_layout__cast(p, id, zero->value, BERTH_DTYPE_F32);
    }
    return berth_layout__insert(p, id, BERTH_OP_SUB, (berth_value_id[]){value, amount}, 2,
                                graph_of(p)->values.data[value].type, id);
}

void berth_layout__become_cast(berth_layout_pass *p, berth_op_id id, berth_value_id value,
                               berth_dtype dtype) {
    berth_op *self = &graph_of(p)->ops.data[id];
    berth_attrs attrs = {0};
    berth_attrs_set(p->module, &attrs, "to",
                    (berth_attr){.kind = BERTH_ATTR_DTYPE, .dtype = dtype});
    self->kind = BERTH_OP_CAST;
    self->input_count = 1;
    self->inputs[0] = value;
    self->attrs = attrs;
}

// The operation becomes the sum of two values.
static void become_sum(berth_layout_pass *p, berth_op_id id, const berth_value_id *values) {
    berth_op *self = &graph_of(p)->ops.data[id];
    self->kind = BERTH_OP_ADD;
    self->input_count = 2;
    self->inputs[0] = values[0];
    self->inputs[1] = values[1];
    self->attrs = (berth_attrs){0};
}

// ---- convolution --------------------------------------------------------------------------------

// Input channels [first, first + count) of weights that are f32 already; *out_bound: largest sum
// over one output of |w|.
static berth_tensor *weights_part(berth_layout_pass *p, const berth_tensor *w, int64_t first,
                                  int64_t count, double *out_bound) {
    berth_tensor *part = berth_arena_new(p->module->arena, berth_tensor);
    int64_t dims[4] = {w->dims[0], count, w->dims[2], w->dims[3]};
    *part = berth_tensor_create(p->module->arena, BERTH_DTYPE_F32, 4, dims);
    int64_t window = w->dims[2] * w->dims[3];
    const float *from = w->data;
    float *to = part->data;
    *out_bound = 0;
    for (int64_t o = 0; o < w->dims[0]; ++o) {
        double sum = 0;
        for (int64_t i = 0; i < count * window; ++i) {
            float value = from[(o * w->dims[1] + first) * window + i];
            *to++ = value;
            sum += value < 0 ? -value : value;
        }
        if (sum > *out_bound) *out_bound = sum;
    }
    return part;
}

// In how many groups of input channels each sum is exact; 0 = in none that leave whole blocks.
static int64_t count_parts(berth_layout_pass *p, const berth_tensor *w, double bound,
                           int64_t group) {
    if (bound * MAX_INPUT < MAX_EXACT) return 1;
    for (int64_t parts = 2; parts <= MAX_PARTS && group == 1; ++parts) {
        if (w->dims[1] % (parts * BLOCK)) continue;
        int64_t count = w->dims[1] / parts;
        bool exact = true;
        for (int64_t i = 0; i < parts && exact; ++i) {
            double part_bound = 0;
            weights_part(p, w, i * count, count, &part_bound);
            exact = part_bound * MAX_INPUT < MAX_EXACT;
        }
        if (exact) return parts;
    }
    return 0;
}

static berth_value_id index_constant(berth_layout_pass *p, berth_op_id id, int64_t value) {
    int64_t one = 1;
    berth_tensor *tensor = berth_arena_new(p->module->arena, berth_tensor);
    *tensor = berth_tensor_create(p->module->arena, BERTH_DTYPE_I64, 1, &one);
    berth_tensor_set_i64(tensor, 0, value);
    return berth_graph_insert_constant(p->module, p->main, id, tensor,
                                       graph_of(p)->ops.data[id].loc);
}

static berth_value_id channels_of(berth_layout_pass *p, berth_op_id id, berth_value_id x,
                                  int64_t first, int64_t count) {
    berth_type type = *type_of(p, x);
    if (count == type.dims[1]) return x;
    berth_value_id inputs[4] = {x, index_constant(p, id, first),
                                index_constant(p, id, first + count), index_constant(p, id, 1)};
    type.dims[1] = count;
    berth_type_id wanted =
        berth_type_tensor_layout(p->module, type.dtype, type.rank, type.dims, type.layout);
    return berth_layout__insert(p, id, BERTH_OP_SLICE, inputs, 4, wanted, id);
}

// The sum over some input channels, a whole number in f32.
static berth_status add_part(berth_layout_pass *p, berth_op_id id, berth_value_id x,
                             const berth_tensor *weights, berth_value_id *out_sum) {
    const berth_op op = graph_of(p)->ops.data[id];
    berth_value_id inputs[2] = {x, BERTH_NONE};
    inputs[1] = berth_graph_insert_constant(p->module, p->main, id, weights, op.loc);
    const berth_type out = *type_of(p, op.outputs[0]);
    berth_type_id real = berth_type_tensor(p->module, BERTH_DTYPE_F32, out.rank, out.dims);
    *out_sum = berth_layout__insert(p, id, BERTH_OP_CONV, inputs, 2, real, id);
    berth_op_id conv = graph_of(p)->values.data[*out_sum].op;
    graph_of(p)->ops.data[conv].attrs = op.attrs;
    bool done = false;
    bool winograd = p->winograd;
    p->winograd = false;  // it rounds: sums would no longer be exact
    berth_status status = berth_layout__conv(p, conv, &done);
    p->winograd = winograd;
    return status;
}

// Sums of integers below 2^24 are exact in f32, where the fast convolution is: conv_integer(x, w)
// becomes cast(conv(cast(x) - zero, w - zero)); larger ones become several such sums over a part of
// the input channels each.
berth_status berth_layout__conv_integer(berth_layout_pass *p, berth_op_id id) {
    berth_op op = graph_of(p)->ops.data[id];
    const berth_tensor *w = constant_operand(p, &op, 1);
    const berth_tensor *w_zero = constant_operand(p, &op, 3);
    berth_layout_zero x_zero;
    if (!w || w->rank != 4 || !berth_layout__zero_of(p, id, &x_zero)) return BERTH_OK;
    if (op.input_count > 3 && op.inputs[3] != BERTH_NONE && !w_zero) return BERTH_OK;
    const berth_type x = *type_of(p, op.inputs[0]);
    if (!berth_type_is_static(&x) || x.rank != 4 ||
        (x.layout && !berth_layout__block(p, op.inputs[0])))
        return BERTH_OK;
    berth_tensor shifted;
    double bound = 0;
    if (!shifted_weights(p, w, w_zero, &shifted, &bound)) return BERTH_OK;
    int64_t group = berth_attrs_int(p->module, &op.attrs, "group", 1);
    int64_t parts = count_parts(p, &shifted, bound, group);
    if (parts == 0) return BERTH_OK;
    berth_value_id value = shifted_input(p, id, op.inputs[0], &x_zero);
    int64_t count = w->dims[1] / parts;
    berth_value_id total = BERTH_NONE;
    for (int64_t i = 0; i < parts; ++i) {
        double part_bound = 0;
        const berth_tensor *weights = weights_part(p, &shifted, i * count, count, &part_bound);
        berth_value_id part = parts == 1 ? value : channels_of(p, id, value, i * count, count);
        berth_value_id sum = BERTH_NONE;
        BERTH_TRY(add_part(p, id, part, weights, &sum));
        if (i + 1 == parts && total == BERTH_NONE) {
            berth_layout__become_cast(p, id, sum, BERTH_DTYPE_I32);
        } else {
            sum = berth_layout__cast(p, id, sum, BERTH_DTYPE_I32);
            berth_value_id both[2] = {total, sum};
            berth_type_id type = graph_of(p)->values.data[sum].type;
            if (i == 0)
                total = sum;
            else if (i + 1 < parts)
                total = berth_layout__insert(p, id, BERTH_OP_ADD, both, 2, type, id);
            else
                become_sum(p, id, both);
        }
    }
    return BERTH_OK;
}

// ---- product ------------------------------------------------------------------------------------

// The same for matmul_integer(a, w): cast(matmul(cast(a) - zero, w - zero)).
void berth_layout__matmul_integer(berth_layout_pass *p, berth_op_id id) {
    berth_op op = graph_of(p)->ops.data[id];
    const berth_tensor *w = constant_operand(p, &op, 1);
    const berth_tensor *w_zero = constant_operand(p, &op, 3);
    berth_layout_zero zero;
    const berth_type out = *type_of(p, op.outputs[0]);
    if (!w || w->rank != 2 || !berth_type_is_static(&out) || type_of(p, op.inputs[0])->layout)
        return;
    if (op.input_count > 3 && op.inputs[3] != BERTH_NONE && !w_zero) return;
    if (!berth_layout__zero_of(p, id, &zero)) return;
    int64_t columns = w->dims[1];
    int64_t count = w_zero ? berth_tensor_element_count(w_zero) : 0;
    if (count > 1 && (w_zero->rank != 1 || count != columns)) return;
    berth_tensor *shifted = berth_arena_new(p->module->arena, berth_tensor);
    *shifted = berth_tensor_create(p->module->arena, BERTH_DTYPE_F32, 2, w->dims);
    for (int64_t j = 0; j < columns; ++j) {
        int64_t shift = count ? berth_tensor_get_i64(w_zero, count > 1 ? j : 0) : 0;
        double bound = 0;
        for (int64_t i = j; i < w->dims[0] * columns; i += columns) {
            double value = (double)(berth_tensor_get_i64(w, i) - shift);
            berth_tensor_set_f64(shifted, i, value);
            bound += value < 0 ? -value : value;
        }
        if (bound * MAX_INPUT >= MAX_EXACT) return;
    }
    berth_value_id inputs[2] = {shifted_input(p, id, op.inputs[0], &zero)};
    inputs[1] = berth_graph_insert_constant(p->module, p->main, id, shifted, op.loc);
    berth_type_id real = berth_type_tensor(p->module, BERTH_DTYPE_F32, out.rank, out.dims);
    berth_value_id sum = berth_layout__insert(p, id, BERTH_OP_MATMUL, inputs, 2, real, id);
    berth_layout__matrix(p, graph_of(p)->values.data[sum].op);
    berth_layout__become_cast(p, id, sum, BERTH_DTYPE_I32);
}
