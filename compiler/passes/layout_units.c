// Convolutions on matrix units of GPUs: activations in blocks of as many channels as 16 bytes hold, which a copy to
// the memory of a group takes at once ("aBcd8b" of f16, "aBcd16b" of 8-bit integers), weights in the same blocks
// of inputs. The sum goes over blocks, the window, and then the channels of a block
// (schedule/matrix_tile.c): an implicit matrix product whose rows are places of the map.
#include <stdio.h>

#include "compiler/passes/layout_private.h"
#include "compiler/schedule/tensorize.h"
#include "compiler/schedule/work_groups.h"

typedef berth_layout_pass pass;

// Channels of a block of such elements; 0: the target's units do not take them.
static int64_t block_of(const berth_target *target, berth_dtype dtype) {
    switch (dtype) {
    case BERTH_DTYPE_F16:
    case BERTH_DTYPE_BF16:
        return berth_matrix_units_take(target, dtype, dtype) ? BERTH_LAYOUT_BLOCK : 0;
    case BERTH_DTYPE_I8:
    case BERTH_DTYPE_U8:
        return berth_matrix_units_take(target, dtype, BERTH_DTYPE_I8) ? BERTH_LAYOUT_WIDE_BLOCK : 0;
    default: return 0;
    }
}

// Whether copies of whole panels feed the units: weights lie there by 16 bytes of terms, lines beside each other
// (schedule/matrix_panel.c).
static bool takes_panels(const berth_target *target, berth_dtype dtype) {
    berth_intrinsic unit = dtype == BERTH_DTYPE_BF16  ? BERTH_INTRINSIC_WGMMA_BF16_N64
                           : dtype == BERTH_DTYPE_F16 ? BERTH_INTRINSIC_WGMMA_F16_N64
                                                      : BERTH_INTRINSIC_WGMMA_I8_N64;
    return berth_intrinsic_serves(unit, target);
}

bool berth_layout__has_units(const pass *p, berth_op_id id) {
    const berth_target *target = berth_layout__target(p, id);
    return block_of(target, BERTH_DTYPE_F16) || block_of(target, BERTH_DTYPE_I8);
}

typedef struct convolution {
    berth_window w;
    int rank;
    int64_t inputs, outputs;  // channels
    int64_t block;
    const berth_tensor *weights;
    // Of integers with zero points: that of the input, and per output the sum of the weights, which have theirs taken off.
    bool has_zeros;
    berth_layout_zero x_zero;
    int64_t *sums;
} convolution;

static bool has_operand(const berth_op *op, uint32_t i) {
    return i < op->input_count && op->inputs[i] != BERTH_NONE;
}

// ---- bytes of one signedness --------------------------------------------------------------------

// Whether weights are i8 without their zero points: of a convolution one for each output or for all, of a product one for all
// (of which layout_dot.c takes the rest off), or for each column.
static bool fit_signed(const berth_tensor *weights, const berth_tensor *zeros, bool product) {
    int64_t count = berth_tensor_element_count(weights);
    int64_t zero_count = zeros ? berth_tensor_element_count(zeros) : 0;
    if (product && zero_count <= 1) return true;
    if (zero_count > 1 && zero_count != weights->dims[product ? 1 : 0]) return false;
    int64_t each = zero_count ? count / zero_count : count;
    for (int64_t i = 0; i < count; ++i) {
        int64_t which = product ? i % zero_count : i / each;
        int64_t zero = zero_count ? berth_tensor_get_i64(zeros, which) : 0;
        int64_t value = berth_tensor_get_i64(weights, i) - zero;
        if (value < -128 || value > 127) return false;
    }
    return true;
}

// Whether units would compute the operation if its activations, which are u8, were i8: those of Vulkan may have bytes of
// one signedness alone.
static bool wants_signed(const pass *p, const berth_op *op, berth_op_id id) {
    bool product = op->kind == BERTH_OP_MATMUL_INTEGER;
    if (!product && op->kind != BERTH_OP_CONV_INTEGER) return false;
    const berth_type *x = type_of(p, op->inputs[0]);
    const berth_target *target = berth_layout__target(p, id);
    const berth_tensor *weights =
        berth_graph_raw_constant_of(p->module, graph_of(p), op->inputs[1]);
    if (x->dtype != BERTH_DTYPE_U8 || !weights || !berth_type_is_static(x) ||
        block_of(target, BERTH_DTYPE_U8) || !block_of(target, BERTH_DTYPE_I8))
        return false;
    if (product ? weights->rank != 2 : berth_attrs_int(p->module, &op->attrs, "group", 1) != 1)
        return false;
    const berth_tensor *zeros = NULL;
    if (has_operand(op, 3)) {
        zeros = berth_graph_constant_of(p->module, graph_of(p), op->inputs[3]);
        if (!zeros) return false;
    }
    return fit_signed(weights, zeros, product);
}

// u8 as i8, each 128 less: the first bit of each is the other one.
static berth_value_id less_128(pass *p, berth_op_id id, berth_value_id value) {
    berth_tensor bit = berth_tensor_create(p->module->arena, BERTH_DTYPE_U8, 0, NULL);
    berth_tensor_set_i64(&bit, 0, 128);
    berth_value_id both[2] = {value, berth_layout__constant(p, id, &bit)};
    berth_type_id type = graph_of(p)->values.data[value].type;
    value = berth_layout__insert(p, id, BERTH_OP_BITWISE_XOR, both, 2, type, id);
    return berth_layout__cast(p, id, value, BERTH_DTYPE_I8);
}

// x - zero is (x - 128) - (zero - 128).
static void make_signed(pass *p, berth_op_id id) {
    const berth_op op = graph_of(p)->ops.data[id];
    if (!wants_signed(p, &op, id)) return;
    uint32_t count = op.input_count > 3 ? op.input_count : 3;
    berth_value_id *inputs = berth_arena_new_array(p->module->arena, berth_value_id, count);
    for (uint32_t i = 0; i < count; ++i) inputs[i] = i < op.input_count ? op.inputs[i] : BERTH_NONE;
    inputs[0] = less_128(p, id, op.inputs[0]);
    berth_layout_zero zero;
    if (berth_layout__zero_of(p, id, &zero) && (zero.known || zero.value == BERTH_NONE)) {
        berth_tensor number = berth_tensor_create(p->module->arena, BERTH_DTYPE_I8, 0, NULL);
        berth_tensor_set_i64(&number, 0, zero.number - 128);
        inputs[2] = berth_layout__constant(p, id, &number);
    } else {
        inputs[2] = less_128(p, id, op.inputs[2]);
    }
    graph_of(p)->ops.data[id].inputs = inputs;
    graph_of(p)->ops.data[id].input_count = count;
}

// ---- convolutions -------------------------------------------------------------------------------

// What a convolution of integers is without zero points (layout_dot.c): units multiply what lies in memory, so that they
// are taken off weights and sums.
static bool take_zeros(pass *p, berth_op_id id, convolution *v) {
    const berth_op op = graph_of(p)->ops.data[id];
    const berth_tensor *w_zero = NULL;
    if (has_operand(&op, 3)) {
        w_zero = berth_graph_constant_of(p->module, graph_of(p), op.inputs[3]);
        if (!w_zero) return false;
    }
    berth_tensor *shifted = berth_arena_new(p->module->arena, berth_tensor);
    v->sums = berth_arena_new_array(p->scratch, int64_t, v->outputs + 1);
    if (!berth_layout__zero_of(p, id, &v->x_zero) ||
        !berth_layout__shift_weights(p, v->weights, w_zero, v->weights->dims[1],
                                     v->weights->dims[v->rank - 1], shifted, v->sums))
        return false;
    v->weights = shifted;
    return true;
}

// False: not of constant weights, static shapes and types of the units.
static berth_status describe(const pass *p, berth_op_id id, convolution *out, bool *out_known) {
    const berth_op op = graph_of(p)->ops.data[id];
    const berth_type *x = type_of(p, op.inputs[0]), *y = type_of(p, op.outputs[0]);
    bool integer = op.kind == BERTH_OP_CONV_INTEGER;
    *out_known = false;
    *out =
        (convolution){.rank = x->rank,
                      .x_zero = {.value = BERTH_NONE},
                      .block = block_of(berth_layout__target(p, id), x->dtype),
                      .weights = berth_graph_raw_constant_of(p->module, graph_of(p), op.inputs[1])};
    if (!out->block || !out->weights || type_of(p, op.inputs[1])->layout ||
        !berth_type_is_static(x) || !berth_type_is_static(y) || x->rank < 3 ||
        out->weights->rank != x->rank || (!integer && out->weights->dtype != x->dtype))
        return BERTH_OK;
    BERTH_TRY(
        berth_window_resolve(p->module, &op, x->dims, x->rank, out->weights->dims + 2, &out->w));
    out->inputs = x->dims[1];
    out->outputs = y->dims[1];
    out->has_zeros = integer && (has_operand(&op, 2) || has_operand(&op, 3));
    *out_known = true;
    return BERTH_OK;
}

// "aBcd8b", in panels "Bcda8b"
static berth_value_id packed_weights(pass *p, berth_op_id id, const convolution *v) {
    char tag[BERTH_MAX_RANK + 8] = "";
    if (!takes_panels(berth_layout__target(p, id), v->weights->dtype))
        return berth_layout__packed_constant(
            p, v->weights, berth_module_str(p->module, berth_layout__blocked(p, v->rank, v->block)),
            id);
    for (int d = 1; d < v->rank; ++d) tag[d - 1] = (char)(d == 1 ? 'B' : 'a' + d);
    (void)snprintf(tag + v->rank - 1, sizeof(tag) - (size_t)v->rank + 1, "a%db", (int)v->block);
    return berth_layout__packed_constant(p, v->weights, tag, id);
}

// Whether a plain input becomes blocks for this convolution alone. Places of a map beside each other are copied at
// once as they are where the window is one element and none is left out.
static bool wants_blocks(const convolution *v) {
    for (int i = 0; i < v->w.spatial; ++i)
        if (v->w.kernel[i] > 1 || v->w.strides[i] > 1) return true;
    return false;
}

// Whether the value is a result or goes to another device, or becomes one that does element by element: plain there.
static bool leaves_plain(const pass *p, berth_value_id value) {
    enum { most_steps = 8 };
    for (int step = 0; step < most_steps; ++step) {
        berth_op_id id = value < p->value_count ? p->only_user[value] : BERTH_NONE;
        if (id == BERTH_NONE) return true;
        const berth_op *user = id == BERTH_LAYOUT_MANY_USERS ? NULL : &graph_of(p)->ops.data[id];
        if (user && user->kind == BERTH_OP_DEVICE_COPY) return true;
        if (!user || !berth_op_has(user->kind, BERTH_TRAIT_ELEMENTWISE) || user->input_count != 1)
            return false;
        value = user->outputs[0];
    }
    return false;
}

// Channels that stay apart: in blocks where the input has them.
static bool convert_depthwise(pass *p, berth_op_id id, const convolution *v) {
    const berth_op op = graph_of(p)->ops.data[id];
    if (!berth_layout__block(p, op.inputs[0]) || v->w.group != v->inputs || v->outputs != v->inputs)
        return false;
    berth_layout__set(p, op.outputs[0], type_of(p, op.inputs[0])->layout);
    return true;
}

// The sum over an input with its zero point around it, less the zero point times the sum of the weights. The padding is
// read where the tile is staged (passes/fuse.c).
static void convert_with_zero(pass *p, berth_op_id id, const convolution *v, berth_value_id x,
                              berth_value_id weights, berth_str_id layout) {
    const berth_op op = graph_of(p)->ops.data[id];
    const berth_type out = *type_of(p, op.outputs[0]);
    berth_str_id from = type_of(p, x)->layout;
    x = berth_layout__padded_with_zero(p, id, x, &v->x_zero, &v->w, 0, from);
    berth_type_id type =
        berth_type_tensor_layout(p->module, BERTH_DTYPE_I32, out.rank, out.dims, layout);
    berth_value_id sum = berth_layout__insert(p, id, BERTH_OP_CONV_INTEGER,
                                              (berth_value_id[]){x, weights}, 2, type, id);
    berth_op_id conv = graph_of(p)->values.data[sum].op;
    graph_of(p)->ops.data[conv].attrs = op.attrs;
    berth_layout__set_window(p, conv, &v->w);
    if (layout) berth_layout__set(p, op.outputs[0], layout);
    berth_layout__subtract_zero(p, id, &v->x_zero, sum, v->sums, 1);
}

// Of f32, which no units take: constant weights with the inputs of a place of the window beside each other, so that four terms of
// the sum are copied at once (schedule/local_stage.c). The map stays plain.
static berth_status convert_conv_f32(pass *p, berth_op_id id, bool *out_done) {
    enum { copied_at_once = 4 };
    const berth_op op = graph_of(p)->ops.data[id];
    const berth_tensor *weights = berth_graph_raw_constant_of(p->module, graph_of(p), op.inputs[1]);
    if (!weights || type_of(p, op.inputs[1])->layout || weights->dtype != BERTH_DTYPE_F32 ||
        weights->rank < 3 || weights->dims[1] % copied_at_once)
        return BERTH_OK;
    char tag[BERTH_MAX_RANK + 1] = "";
    int64_t window = 1;
    for (int d = 2; d < weights->rank; ++d) window *= weights->dims[d];
    for (int d = 0; d < weights->rank; ++d) tag[d] = (char)('a' + (d == 0 ? 0 : d + 1));
    tag[weights->rank - 1] = 'b';
    if (window == 1) return BERTH_OK;
    berth_value_id packed = berth_layout__packed_constant(p, weights, tag, id);
    if (packed == BERTH_NONE) return BERTH_OK;
    berth_layout__set_input(p, id, 1, packed);
    *out_done = true;
    return BERTH_OK;
}

static berth_status convert_conv(pass *p, berth_op_id id, bool *out_done) {
    convolution v;
    bool known = false;
    if (berth_layout__is_f32(p, graph_of(p)->ops.data[id].inputs[0], -1))
        return berth_target_has_warps(berth_layout__target(p, id))
                   ? convert_conv_f32(p, id, out_done)
                   : BERTH_OK;
    BERTH_TRY(describe(p, id, &v, &known));
    if (!known) return BERTH_OK;
    if (v.w.group > 1) {
        *out_done = convert_depthwise(p, id, &v);
        return BERTH_OK;
    }
    if (v.has_zeros && !take_zeros(p, id, &v)) return BERTH_OK;
    const berth_op op = graph_of(p)->ops.data[id];
    berth_str_id blocked = berth_layout__blocked(p, v.rank, v.block);
    int64_t now = berth_layout__block(p, op.inputs[0]);
    bool in_blocks = v.inputs % v.block == 0 && (now == v.block || wants_blocks(&v));
    bool out_blocks = v.outputs % v.block == 0 && !leaves_plain(p, op.outputs[0]);
    if (!in_blocks && !out_blocks && !v.has_zeros) return BERTH_OK;
    berth_value_id weights = in_blocks     ? packed_weights(p, id, &v)
                             : v.has_zeros ? berth_layout__constant(p, id, v.weights)
                                           : op.inputs[1];
    if (weights == BERTH_NONE) return BERTH_OK;
    berth_value_id x = berth_layout__convert(p, op.inputs[0], in_blocks ? blocked : 0, id, id);
    *out_done = true;
    if (v.x_zero.value != BERTH_NONE) {
        convert_with_zero(p, id, &v, x, weights, out_blocks ? blocked : 0);
        return BERTH_OK;
    }
    berth_layout__set_input(p, id, 0, x);
    berth_layout__set_input(p, id, 1, weights);
    if (v.has_zeros) graph_of(p)->ops.data[id].input_count = 2;
    if (out_blocks) berth_layout__set(p, op.outputs[0], blocked);
    return BERTH_OK;
}

// The layout of constant weights of a product that warpgroups compute (schedule/matrix_group.c): panels. NULL: not of that
// kind.
static const char *panels_of(const pass *p, berth_op_id id, const berth_tensor *weights) {
    enum { line_bytes = 128, least = 33 };  // rows, columns
    const berth_type *x = type_of(p, graph_of(p)->ops.data[id].inputs[0]);
    int64_t block = block_of(berth_layout__target(p, id), x->dtype), rows = 1;
    for (int d = 0; d + 1 < x->rank; ++d) rows *= x->dims[d];
    int64_t line = line_bytes / (int64_t)berth_dtype_size_bytes(x->dtype);
    if (!block || !takes_panels(berth_layout__target(p, id), x->dtype) || rows < least ||
        weights->dims[0] % block || weights->dims[0] <= line / 2 || weights->dims[1] < least)
        return NULL;
    return block == BERTH_LAYOUT_BLOCK ? "Ab8a" : "Ab16a";
}

// Products with constant weights. Zero points are taken off where units multiply: two rows or more.
static bool convert_product(pass *p, berth_op_id id) {
    const berth_op op = graph_of(p)->ops.data[id];
    const berth_type *x = type_of(p, op.inputs[0]);
    const berth_tensor *weights = berth_graph_raw_constant_of(p->module, graph_of(p), op.inputs[1]);
    bool integer = op.kind == BERTH_OP_MATMUL_INTEGER;
    if (!weights || weights->rank != 2 || type_of(p, op.inputs[1])->layout || x->layout ||
        x->rank < 2 || !berth_type_is_static(x) || (!integer && weights->dtype != x->dtype) ||
        !block_of(berth_layout__target(p, id), x->dtype))
        return false;
    const char *tag = panels_of(p, id, weights);
    int64_t rows = 1;
    for (int d = 0; d + 1 < x->rank; ++d) rows *= x->dims[d];
    if (integer && (has_operand(&op, 2) || has_operand(&op, 3)))
        return rows > 1 && berth_layout__matmul_without_zeros(p, id, tag);
    berth_value_id packed = tag ? berth_layout__packed_constant(p, weights, tag, id) : BERTH_NONE;
    if (packed != BERTH_NONE) berth_layout__set_input(p, id, 1, packed);
    return packed != BERTH_NONE;
}

// What computes channel by channel stays in the blocks of its input.
static bool convert_pool(pass *p, berth_op_id id) {
    const berth_op op = graph_of(p)->ops.data[id];
    bool second = op.output_count > 1 && op.outputs[1] != BERTH_NONE;
    if (second || !berth_layout__block(p, op.inputs[0]) ||
        !berth_type_is_static(type_of(p, op.outputs[0])))
        return false;
    berth_layout__set(p, op.outputs[0], type_of(p, op.inputs[0])->layout);
    return true;
}

berth_status berth_layout__on_units(pass *p, berth_op_id id, bool *out_done) {
    *out_done = false;
    make_signed(p, id);
    switch (graph_of(p)->ops.data[id].kind) {
    case BERTH_OP_CONV:
    case BERTH_OP_CONV_INTEGER: return convert_conv(p, id, out_done);
    case BERTH_OP_MAX_POOL:
    case BERTH_OP_AVERAGE_POOL:
    case BERTH_OP_GLOBAL_AVERAGE_POOL:
    case BERTH_OP_GLOBAL_MAX_POOL: *out_done = convert_pool(p, id); return BERTH_OK;
    case BERTH_OP_MATMUL:
    case BERTH_OP_MATMUL_INTEGER: *out_done = convert_product(p, id); return BERTH_OK;
    case BERTH_OP_CONCAT: *out_done = berth_layout__concat(p, id); return BERTH_OK;
    default:
        if (berth_op_has(graph_of(p)->ops.data[id].kind, BERTH_TRAIT_ELEMENTWISE))
            *out_done = berth_layout__elementwise(p, id);
        return BERTH_OK;
    }
}
