// Integer convolutions and products as dot products of a few 8-bit values, which processor cores
// have instructions for (ir/tensor/intrinsics.def):
//
//   conv_integer(x, w, x_zero, w_zero) = conv_integer(pad(x, x_zero), w - w_zero) - x_zero * sum(w)
//
// where x_zero may be a value that the run finds (dynamic_quantize_linear). Products of u8 weights
// whose w - w_zero leaves the range of i8 take w - 128, and the rest off with the sums of x's rows.
// Activations lie in blocks of channels, weights [outputs / lanes][inputs / block][window][block /
// depth][lanes][depth], where one instruction adds `depth` products in each of `lanes` outputs. The
// channels of an input that fill no block lie together, padded to whole dot products. Convolutions of each channel
// by itself add `depth` neighbours of a row in each lane, weights [channels / lanes][window][width
// / depth][lanes][depth], or, without such an instruction, multiply a channel to a lane. What has
// no form here goes through f32 (layout_integer.c).
#include <stdio.h>
#include <string.h>

#include "compiler/passes/layout_private.h"
#include "compiler/schedule/tensorize.h"

#define BLOCK BERTH_LAYOUT_BLOCK
#define WIDE BERTH_LAYOUT_WIDE_BLOCK

typedef struct dot {
    berth_op op;
    const berth_tensor *w;
    berth_layout_zero x_zero;
    const berth_tensor *w_zero;  // NULL = 0
    berth_type x;
    berth_intrinsic intrinsic;
    int64_t lanes;  // outputs of an instruction
    int64_t depth;
    int64_t missing;   // of a product: terms of 0 behind those that there are
    int64_t channels;  // of the input, with those that pad it
    int64_t block;     // of the input; all channels where they fill no block
    bool last;         // channels are the input's last dimension in memory
    bool depthwise;    // a channel to a lane; depth 1: products one by one
    int64_t width;     // of the window, with what pads it to whole dot products
} dot;

static const berth_tensor *constant_operand(const berth_layout_pass *p, const berth_op *op,
                                            uint32_t i) {
    if (i >= op->input_count || op->inputs[i] == BERTH_NONE) return NULL;
    return berth_graph_constant_of(p->module, graph_of(p), op->inputs[i]);
}

// The zero point of the activations: false where it is more than one number.
bool berth_layout__zero_of(const berth_layout_pass *p, berth_op_id id, berth_layout_zero *out) {
    const berth_op *op = &graph_of(p)->ops.data[id];
    *out = (berth_layout_zero){.value = BERTH_NONE};
    if (op->input_count < 3 || op->inputs[2] == BERTH_NONE) return true;
    const berth_type *type = type_of(p, op->inputs[2]);
    const berth_tensor *known = constant_operand(p, op, 2);
    for (int i = 0; i < type->rank; ++i)
        if (type->dims[i] != 1) return false;
    if (known) out->number = berth_tensor_get_i64(known, 0);
    if (!known || out->number != 0) out->value = op->inputs[2];
    out->known = known != NULL;
    return type->rank <= type_of(p, op->inputs[0])->rank;
}

// The operands; false where the weights or their zero point are not constant.
static bool read_operands(const berth_layout_pass *p, berth_op_id id, dot *d) {
    d->op = graph_of(p)->ops.data[id];
    d->w = constant_operand(p, &d->op, 1);
    d->w_zero = constant_operand(p, &d->op, 3);
    d->x = *type_of(p, d->op.inputs[0]);
    if (!d->w || !berth_type_is_static(&d->x) || type_of(p, d->op.inputs[1])->layout) return false;
    if (d->op.input_count > 3 && d->op.inputs[3] != BERTH_NONE && !d->w_zero) return false;
    return berth_layout__zero_of(p, id, &d->x_zero);
}

bool berth_layout__choose_dot(const berth_layout_pass *p, berth_op_id id, berth_dtype activations,
                              int64_t outputs, berth_layout_dot *out) {
    static const berth_intrinsic wanted[] = {
        BERTH_INTRINSIC_DOT_U8I8_X16, BERTH_INTRINSIC_DOT_U8I8_X8, BERTH_INTRINSIC_DOT_I16_X16,
        BERTH_INTRINSIC_DOT_I16_X8};
    const berth_target *target = berth_layout__target(p, id);
    int64_t most = berth_layout__lanes(p, id);
    if (!target || !berth_device_kind_is_host(target->kind)) return false;
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); ++i) {
        const berth_intrinsic_facts *facts = berth_intrinsic_get(wanted[i]);
        bool bytes = facts->operands[1].dtype == BERTH_DTYPE_U8;
        *out = (berth_layout_dot){.intrinsic = wanted[i],
                                  .lanes = facts->operands[0].lanes,
                                  .depth = berth_intrinsic_depth(wanted[i])};
        if (bytes && activations != BERTH_DTYPE_U8) continue;
        if (out->lanes <= most && outputs % out->lanes == 0 &&
            berth_intrinsic_serves(wanted[i], target))
            return true;
    }
    return false;
}

int64_t berth_layout__missing_terms(const berth_layout_pass *p, berth_op_id id,
                                    const berth_layout_dot *form, const berth_type *x) {
    enum { unit_rows = 16, unit_terms = 64 };
    int64_t terms = x->dims[x->rank - 1], whole = form->depth;
    bool unit = form->intrinsic == BERTH_INTRINSIC_DOT_U8I8_X16 && x->rank > 1 &&
                x->dims[x->rank - 2] >= unit_rows && 2 * terms >= unit_terms &&
                berth_intrinsic_serves(BERTH_INTRINSIC_TILE_U8I8, berth_layout__target(p, id));
    if (unit) whole = unit_terms;
    return whole ? (whole - terms % whole) % whole : 0;
}

static bool choose_intrinsic(const berth_layout_pass *p, berth_op_id id, int64_t outputs, dot *d) {
    berth_layout_dot chosen;
    bool found = berth_layout__choose_dot(p, id, d->x.dtype, outputs, &chosen);
    d->intrinsic = chosen.intrinsic;
    d->lanes = chosen.lanes;
    d->depth = chosen.depth;
    if (found) d->missing = berth_layout__missing_terms(p, id, &chosen, &d->x);
    return found;
}

// Block of the input: as it is, or as the channels fill it, or all of them, padded to whole dot products.
static bool choose_input(const berth_layout_pass *p, berth_op_id id, dot *d) {
    int64_t now = berth_layout__block(p, d->op.inputs[0]);
    d->channels = d->x.dims[1];
    d->block = now && d->channels % now == 0 ? now : berth_layout__block_for(p, id, d->channels);
    if (d->channels % BLOCK == 0) return true;
    d->last = true;
    d->block = d->channels = (d->channels + d->depth - 1) / d->depth * d->depth;
    return !now;
}

// Neighbours of a row in one instruction, where the target has it for these blocks.
static void choose_window(const berth_target *target, const berth_window *w, dot *d) {
    d->intrinsic =
        d->lanes == WIDE ? BERTH_INTRINSIC_DOT_WINDOW_U8I8_X16 : BERTH_INTRINSIC_DOT_WINDOW_U8I8_X8;
    int last = w->spatial - 1;
    d->depth = 1;
    if (d->x.dtype != BERTH_DTYPE_U8 || w->dilations[last] != 1 || w->kernel[last] == 1) return;
    if (!berth_intrinsic_serves(d->intrinsic, target)) return;
    d->depth = berth_intrinsic_depth(d->intrinsic);
    d->width = (d->width + d->depth - 1) / d->depth * d->depth;
}

// A convolution of each channel by itself, in the input's blocks of channels.
static bool choose_depthwise(const berth_layout_pass *p, berth_op_id id, const berth_window *w,
                             dot *d) {
    const berth_target *target = berth_layout__target(p, id);
    d->depthwise = true;
    d->channels = 1;
    if (!target || !berth_device_kind_is_host(target->kind) || target->vector_bits < 256)
        return false;
    if (d->x.dims[1] != w->group || d->w->dims[0] != w->group || w->group % BLOCK) return false;
    int64_t now = berth_layout__block(p, d->op.inputs[0]);
    d->block = now && w->group % now == 0 ? now : berth_layout__block_for(p, id, w->group);
    d->lanes = d->block;
    choose_window(target, w, d);
    return true;
}

bool berth_layout__shift_weights(berth_layout_pass *p, const berth_tensor *w,
                                 const berth_tensor *w_zero, int64_t channels, int64_t wanted_width,
                                 berth_tensor *out, int64_t *sums) {
    int64_t window = 1;
    int64_t width = w->dims[w->rank - 1];
    int64_t dims[BERTH_MAX_RANK];
    memcpy(dims, w->dims, sizeof(dims));
    dims[1] = channels;
    dims[w->rank - 1] = wanted_width;
    for (int i = 2; i < w->rank; ++i) window *= dims[i];
    int64_t zeros = w_zero ? berth_tensor_element_count(w_zero) : 0;
    if (zeros > 1 && zeros != dims[0]) return false;
    *out = berth_tensor_create(p->module->arena, BERTH_DTYPE_I8, w->rank, dims);
    int64_t each = w->dims[1] * window / wanted_width * width;
    for (int64_t o = 0; o < dims[0]; ++o) {
        int64_t zero = zeros ? berth_tensor_get_i64(w_zero, zeros > 1 ? o : 0) : 0;
        sums[o] = 0;
        for (int64_t i = 0; i < each; ++i) {
            int64_t value = berth_tensor_get_i64(w, o * each + i) - zero;
            if (value < -128 || value > 127) return false;
            int64_t at = i / width * wanted_width + i % width;
            berth_tensor_set_i64(out, o * channels * window + at, value);
            sums[o] += value;
        }
    }
    return true;
}

berth_value_id berth_layout__constant(berth_layout_pass *p, berth_op_id id,
                                      const berth_tensor *tensor) {
    berth_tensor *held = berth_arena_copy(p->module->arena, tensor, sizeof(*tensor));
    berth_loc_id loc = graph_of(p)->ops.data[id].loc;
    berth_value_id value = berth_graph_insert_constant(p->module, p->main, id, held, loc);
    graph_of(p)->values.data[value].device =
        graph_of(p)->values.data[graph_of(p)->ops.data[id].outputs[0]].device;
    return value;
}

// "aBcd16b", or "acdb" for channels that fill no block.
static berth_str_id input_layout(berth_layout_pass *p, const dot *d) {
    char tag[BERTH_MAX_RANK + 8] = "a";
    if (!d->last) return berth_layout__blocked(p, d->x.rank, d->block);
    for (int i = 2; i < d->x.rank; ++i) tag[i - 1] = (char)('a' + i);
    tag[d->x.rank - 1] = 'b';
    return berth_module_intern(p->module, tag);
}

berth_value_id berth_layout__padded_with_zero(berth_layout_pass *p, berth_op_id id,
                                              berth_value_id x, const berth_layout_zero *zero,
                                              const berth_window *w, int64_t more_channels,
                                              berth_str_id layout) {
    berth_type type = *type_of(p, x);
    int64_t pads[2 * BERTH_MAX_RANK] = {0};
    int64_t total = pads[type.rank + 1] = more_channels;
    for (int i = 0; i < w->spatial; ++i) {
        pads[2 + i] = w->pads_begin[i];
        pads[type.rank + 2 + i] = berth_layout__end_padding(w, i);
        type.dims[2 + i] += pads[2 + i] + pads[type.rank + 2 + i];
        total += pads[2 + i] + pads[type.rank + 2 + i];
    }
    type.dims[1] += more_channels;
    if (total == 0) return berth_layout__convert(p, x, layout, id, id);
    int64_t count = 2 * type.rank;
    berth_tensor amounts = berth_tensor_create(p->module->arena, BERTH_DTYPE_I64, 1, &count);
    memcpy(amounts.data, pads, (size_t)count * sizeof(pads[0]));
    berth_value_id inputs[3] = {x, berth_layout__constant(p, id, &amounts), zero->value};
    if (zero->known) {
        berth_tensor number = berth_tensor_create(p->module->arena, type.dtype, 0, NULL);
        berth_tensor_set_i64(&number, 0, zero->number);
        inputs[2] = berth_layout__constant(p, id, &number);
    }
    berth_type_id wanted =
        berth_type_tensor_layout(p->module, type.dtype, type.rank, type.dims, layout);
    return berth_layout__insert(p, id, BERTH_OP_PAD, inputs, 3, wanted, id);
}

// The input with its zero point around it and in the channels that pad it.
static berth_value_id padded(berth_layout_pass *p, berth_op_id id, const dot *d,
                             const berth_window *w) {
    berth_str_id layout = input_layout(p, d);
    berth_value_id x = d->op.inputs[0];
    if (!d->last) x = berth_layout__convert(p, x, layout, id, id);
    return berth_layout__padded_with_zero(p, id, x, &d->x_zero, w,
                                          d->depthwise ? 0 : d->channels - d->x.dims[1], layout);
}

// "ABcd4b16a4b"; of each channel by itself "AbcD16a4d" or "Abcd16a".
static berth_value_id packed_weights(berth_layout_pass *p, berth_op_id id, const dot *d,
                                     const berth_tensor *weights) {
    char tag[BERTH_MAX_RANK + 32] = "AB";
    size_t length = 2;
    for (int i = 2; i < weights->rank; ++i) tag[length++] = (char)('a' + i);
    size_t left = sizeof(tag) - length;
    char last = tag[length - 1];
    if (d->depthwise) tag[1] = 'b';
    if (d->depthwise && d->depth > 1) {
        tag[length - 1] = (char)('A' + weights->rank - 1);
        snprintf(tag + length, left, "%da%d%c", (int)d->lanes, (int)d->depth, last);
    } else if (d->depthwise)
        snprintf(tag + length, left, "%da", (int)d->lanes);
    else if (d->block > d->depth)
        snprintf(tag + length, left, "%db%da%db", (int)(d->block / d->depth), (int)d->lanes,
                 (int)d->depth);
    else
        snprintf(tag + length, left, "%da%db", (int)d->lanes, (int)d->depth);
    return berth_layout__packed_constant(p, weights, tag, id);
}

berth_value_id berth_layout__cast(berth_layout_pass *p, berth_op_id position, berth_value_id value,
                                  berth_dtype dtype) {
    const berth_type type = *type_of(p, value);
    berth_type_id wanted =
        berth_type_tensor_layout(p->module, dtype, type.rank, type.dims, type.layout);
    berth_value_id result =
        berth_layout__insert(p, position, BERTH_OP_CAST, &value, 1, wanted, position);
    berth_attrs attrs = {0};
    berth_attrs_set(p->module, &attrs, "to",
                    (berth_attr){.kind = BERTH_ATTR_DTYPE, .dtype = dtype});
    graph_of(p)->ops.data[graph_of(p)->values.data[result].op].attrs = attrs;
    return result;
}

// One i32 per index of dimension `dim` of `like`, that broadcasts against it.
static berth_tensor per_index(const berth_layout_pass *p, berth_value_id like, int dim) {
    int64_t dims[BERTH_MAX_RANK];
    const berth_type *type = type_of(p, like);
    for (int i = 0; i < type->rank; ++i) dims[i] = i == dim ? type->dims[dim] : 1;
    return berth_tensor_create(p->module->arena, BERTH_DTYPE_I32, type->rank, dims);
}

// Operation `id` becomes the sum of two values.
static void become_sum(berth_layout_pass *p, berth_op_id id, berth_value_id a, berth_value_id b) {
    berth_op *self = &graph_of(p)->ops.data[id];
    self->kind = BERTH_OP_ADD;
    self->input_count = 2;
    self->inputs[0] = a;
    self->inputs[1] = b;
    self->attrs = (berth_attrs){0};
}

void berth_layout__subtract_zero(berth_layout_pass *p, berth_op_id id,
                                 const berth_layout_zero *zero, berth_value_id sum,
                                 const int64_t *sums, int dim) {
    berth_tensor each = per_index(p, sum, dim);
    int64_t factor = zero->known ? -zero->number : -1;
    for (int64_t o = 0; o < each.dims[dim]; ++o) berth_tensor_set_i64(&each, o, factor * sums[o]);
    berth_value_id correction = berth_layout__constant(p, id, &each);
    if (!zero->known) {
        berth_type_id type = graph_of(p)->values.data[correction].type;
        berth_value_id both[2] = {correction,
                                  berth_layout__cast(p, id, zero->value, BERTH_DTYPE_I32)};
        correction = berth_layout__insert(p, id, BERTH_OP_MUL, both, 2, type, id);
    }
    become_sum(p, id, sum, correction);
    int64_t block = berth_layout__block(p, sum);
    const berth_type type = *type_of(p, sum);
    if (block && dim == 1) berth_layout__fill_up_constant(p, id, 1, &type, block);
}

void berth_layout__set_window(berth_layout_pass *p, berth_op_id id, const berth_window *w) {
    const int64_t none[2 * BERTH_MAX_SPATIAL] = {0};
    berth_layout__set_padding(p, id, none, w->spatial);
    berth_attrs_remove(p->module, &graph_of(p)->ops.data[id].attrs, "kernel_shape");
}

berth_status berth_layout__conv_dot(berth_layout_pass *p, berth_op_id id, bool *out_done) {
    dot d = {0};
    berth_window w;
    berth_tensor weights;
    *out_done = false;
    if (!read_operands(p, id, &d) || d.w->rank != d.x.rank || d.x.rank < 3) return BERTH_OK;
    BERTH_TRY(berth_window_resolve(p->module, &d.op, d.x.dims, d.x.rank, d.w->dims + 2, &w));
    d.width = w.kernel[w.spatial - 1];
    if (w.group > 1 && !choose_depthwise(p, id, &w, &d)) return BERTH_OK;
    int64_t outputs = d.w->dims[0];
    if (outputs % BLOCK) outputs = outputs > BLOCK ? WIDE : BLOCK;  // the last ones are padded
    if (w.group == 1 && (!choose_intrinsic(p, id, outputs, &d) || !choose_input(p, id, &d)))
        return BERTH_OK;
    int64_t *sums = berth_arena_new_array(p->scratch, int64_t, d.w->dims[0] + 1);
    if (!berth_layout__shift_weights(p, d.w, d.w_zero, d.channels, d.width, &weights, sums))
        return BERTH_OK;
    w.kernel[w.spatial - 1] = d.width;
    berth_value_id inputs[2] = {padded(p, id, &d, &w), BERTH_NONE};
    inputs[1] = packed_weights(p, id, &d, &weights);
    if (inputs[1] == BERTH_NONE) return BERTH_OK;
    const berth_type out = *type_of(p, d.op.outputs[0]);
    berth_str_id layout = berth_layout__blocked(p, out.rank, d.lanes);
    berth_type_id type =
        berth_type_tensor_layout(p->module, BERTH_DTYPE_I32, out.rank, out.dims, layout);
    *out_done = true;
    berth_layout__set(p, d.op.outputs[0], layout);
    if (d.x_zero.value == BERTH_NONE) {
        berth_op *self = &graph_of(p)->ops.data[id];
        self->inputs[0] = inputs[0];
        self->inputs[1] = inputs[1];
        self->input_count = 2;
        berth_layout__set_window(p, id, &w);
        return BERTH_OK;
    }
    berth_value_id sum = berth_layout__insert(p, id, BERTH_OP_CONV_INTEGER, inputs, 2, type, id);
    berth_op_id conv = graph_of(p)->values.data[sum].op;
    graph_of(p)->ops.data[conv].attrs = d.op.attrs;
    berth_layout__set_window(p, conv, &w);
    berth_layout__subtract_zero(p, id, &d.x_zero, sum, sums, 1);
    return BERTH_OK;
}

// ---- products -----------------------------------------------------------------------------------

// Weights of a product as i8: w - shift.
typedef struct columns {
    berth_tensor weights;
    int64_t *sums;  // per column
    // What is still to be subtracted from the weights, one number for all columns: not 0 where w - zero
    // leaves the range of i8.
    int64_t rest;
} columns;

// w - zero per column, or, for u8 with one zero point, w - 128.
static bool shift_columns(berth_layout_pass *p, const dot *d, columns *out) {
    int64_t count = d->w->dims[1];
    int64_t zeros = d->w_zero ? berth_tensor_element_count(d->w_zero) : 0;
    if (zeros > 1 && (d->w_zero->rank != 1 || zeros != count)) return false;
    bool may_rest = d->w->dtype == BERTH_DTYPE_U8 && zeros <= 1;
    int64_t dims[2] = {d->w->dims[0] + d->missing, count};
    *out = (columns){.sums = berth_arena_new_array(p->scratch, int64_t, count)};
    out->weights = berth_tensor_create(p->module->arena, BERTH_DTYPE_I8, 2, dims);
    for (int64_t i = 0; i < d->w->dims[0] * count; ++i) {
        int64_t j = i % count;
        int64_t zero = zeros ? berth_tensor_get_i64(d->w_zero, zeros > 1 ? j : 0) : 0;
        int64_t value = berth_tensor_get_i64(d->w, i) - (out->rest ? 128 : zero);
        if (value < -128 || value > 127) {
            if (!may_rest || out->rest) return false;
            out->rest = zero - 128;  // from the start
            memset(out->sums, 0, (size_t)count * sizeof(*out->sums));
            i = -1;
            continue;
        }
        berth_tensor_set_i64(&out->weights, i, value);
        out->sums[j] += value;
    }
    for (int64_t j = 0; j < count; ++j) out->sums[j] -= d->w->dims[0] * out->rest;
    return true;
}

berth_value_id berth_layout__sums_of_rows(berth_layout_pass *p, berth_op_id id, berth_value_id x) {
    int64_t one = 1;
    berth_tensor axis = berth_tensor_create(p->module->arena, BERTH_DTYPE_I64, 1, &one);
    berth_type type = *type_of(p, x);
    berth_tensor_set_i64(&axis, 0, type.rank - 1);
    type.dims[type.rank - 1] = 1;
    berth_type_id wanted = berth_type_tensor(p->module, BERTH_DTYPE_I32, type.rank, type.dims);
    berth_value_id values[2] = {berth_layout__cast(p, id, x, BERTH_DTYPE_I32),
                                berth_layout__constant(p, id, &axis)};
    return berth_layout__insert(p, id, BERTH_OP_REDUCE_SUM, values, 2, wanted, id);
}

berth_value_id berth_layout__lengthened(berth_layout_pass *p, berth_op_id id, berth_value_id x,
                                        int axis, int64_t more) {
    if (more == 0) return x;
    berth_type type = *type_of(p, x);
    int64_t count = 2 * type.rank;
    berth_tensor amounts = berth_tensor_create(p->module->arena, BERTH_DTYPE_I64, 1, &count);
    berth_tensor_set_i64(&amounts, type.rank + axis, more);
    type.dims[axis] += more;
    berth_value_id inputs[2] = {x, berth_layout__constant(p, id, &amounts)};
    berth_type_id wanted = berth_type_tensor(p->module, type.dtype, type.rank, type.dims);
    return berth_layout__insert(p, id, BERTH_OP_PAD, inputs, 2, wanted, id);
}

// `rest` times the sums of x's rows, with the sign that takes it off: (..., rows, 1).
static berth_value_id rest_of_rows(berth_layout_pass *p, berth_op_id id, berth_value_id x,
                                   int64_t rest) {
    berth_tensor factor = berth_tensor_create(p->module->arena, BERTH_DTYPE_I32, 0, NULL);
    berth_tensor_set_i64(&factor, 0, -rest);
    berth_value_id values[2] = {berth_layout__sums_of_rows(p, id, x),
                                berth_layout__constant(p, id, &factor)};
    berth_type_id wanted = graph_of(p)->values.data[values[0]].type;
    return berth_layout__insert(p, id, BERTH_OP_MUL, values, 2, wanted, id);
}

// matmul_integer(a, w) of the given weights, less what zero points and `w.rest` have added.
static void become_product(berth_layout_pass *p, berth_op_id id, const dot *d, const columns *w,
                           berth_value_id weights) {
    berth_value_id x = d->op.inputs[0];  // whose more elements meet weights of 0
    berth_value_id inputs[2] = {
        berth_layout__lengthened(p, id, x, type_of(p, x)->rank - 1, d->missing), weights};
    if (d->x_zero.value == BERTH_NONE && w->rest == 0) {
        berth_op *self = &graph_of(p)->ops.data[id];
        self->inputs[0] = inputs[0];
        self->inputs[1] = inputs[1];
        self->input_count = 2;
        return;
    }
    const berth_type out = *type_of(p, d->op.outputs[0]);
    berth_type_id type = berth_type_tensor(p->module, BERTH_DTYPE_I32, out.rank, out.dims);
    berth_value_id sum = berth_layout__insert(p, id, BERTH_OP_MATMUL_INTEGER, inputs, 2, type, id);
    if (w->rest != 0) {
        berth_value_id both[2] = {sum, rest_of_rows(p, id, x, w->rest)};
        if (d->x_zero.value == BERTH_NONE) {
            become_sum(p, id, both[0], both[1]);
            return;
        }
        sum = berth_layout__insert(p, id, BERTH_OP_ADD, both, 2, type, id);
    }
    berth_layout__subtract_zero(p, id, &d->x_zero, sum, w->sums, out.rank - 1);
}

// Weights [columns / lanes][rows / depth][lanes][depth], the last columns and rows padded.
bool berth_layout__matmul_dot(berth_layout_pass *p, berth_op_id id) {
    dot d = {0};
    columns w;
    char tag[32];
    if (!read_operands(p, id, &d) || d.w->rank != 2 || d.x.layout || d.x.rank < 1) return false;
    int64_t count = d.w->dims[1];
    int64_t wanted = count >= 2 * WIDE || count % WIDE == 0 ? WIDE : BLOCK;
    if (count < BLOCK || !choose_intrinsic(p, id, wanted, &d)) return false;
    if (!shift_columns(p, &d, &w)) return false;
    snprintf(tag, sizeof(tag), "BA%db%da", (int)d.lanes, (int)d.depth);
    berth_value_id weights = berth_layout__packed_constant(p, &w.weights, tag, id);
    if (weights == BERTH_NONE) return false;
    become_product(p, id, &d, &w, weights);
    return true;
}

bool berth_layout__matmul_without_zeros(berth_layout_pass *p, berth_op_id id, const char *tag) {
    dot d = {0};
    columns w;
    if (!read_operands(p, id, &d) || d.w->rank != 2 || d.x.layout || d.x.rank < 2 ||
        !shift_columns(p, &d, &w))
        return false;
    berth_value_id weights = tag ? berth_layout__packed_constant(p, &w.weights, tag, id)
                                 : berth_layout__constant(p, id, &w.weights);
    if (weights == BERTH_NONE) return false;
    become_product(p, id, &d, &w, weights);
    return true;
}
