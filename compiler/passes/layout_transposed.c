// Transposed convolutions to few outputs as convolutions of stride 1: the outputs between two steps are channels of
// one, which read the same elements, and a copy puts them in order (Shi et al. 2016, "Real-Time Single Image and
// Video Super-Resolution Using an Efficient Sub-Pixel Convolutional Neural Network", section 3).
//
//   y[o, s * n + r] = sum over t: x[n - t] * w[o, s * t + r]
//     ->  c[o * s + r, n] = sum over t: x[n - t] * w[o, s * t + r]; y = depth_to_space(c)
#include <string.h>

#include "compiler/passes/layout_private.h"

typedef berth_layout_pass pass;

// Of one dimension: positions [first, first + count) of the convolution, which are moved by whole steps, and the results of
// them that are left out.
typedef struct steps {
    int64_t taps;
    int64_t first, count;
    int64_t pad_begin, pad_end;
    int64_t left_out, kept;
} steps;

static steps steps_of(const berth_window *w, int i) {
    const int64_t stride = w->strides[i], before = w->pads_begin[i];
    steps s = {.taps = (w->kernel[i] + stride - 1) / stride, .kept = w->output[i]};
    int64_t last = (before + w->output[i] - 1) / stride;
    s.first = before / stride;
    if (s.first > s.taps - 1) s.first = s.taps - 1;
    if (last < w->input[i] - 1) last = w->input[i] - 1;
    s.count = last - s.first + 1;
    s.pad_begin = s.taps - 1 - s.first;
    s.pad_end = last - (w->input[i] - 1);
    s.left_out = before - stride * s.first;
    return s;
}

// Whether it pays: windows of several elements that are read for all outputs of a step at once, and little more products than
// there were (taps that the window lacks are 0).
// `lanes`: of a register; the wider it is, the more of the time reading takes.
static bool pays(const berth_window *w, int64_t inputs, int64_t lanes) {
    const double most_products = lanes >= BERTH_LAYOUT_WIDE_BLOCK ? 1.5 : 1.3;
    const int64_t least_terms = 32;  // of a sum, beside which the copy is little
    double more = 1;
    int64_t taps = 1;
    for (int i = 0; i < 2; ++i) {
        const int64_t stride = w->strides[i], in_window = (w->kernel[i] + stride - 1) / stride;
        if (in_window < 2 || w->dilations[i] != 1) return false;
        more *= (double)(in_window * stride) / (double)w->kernel[i];
        taps *= in_window;
    }
    return more <= most_products && taps * inputs >= least_terms;
}

// [outputs, stride, stride][inputs][taps, taps] of [inputs][outputs][kernel, kernel].
static berth_tensor weights_of_steps(pass *p, const berth_tensor *w, int64_t stride,
                                     const steps *s) {
    const int64_t *old = w->dims, cells = stride * stride;
    const int64_t dims[4] = {old[1] * cells, old[0], s[0].taps, s[1].taps};
    berth_tensor made = berth_tensor_create(p->module->arena, BERTH_DTYPE_F32, 4, dims);
    memset(made.data, 0, berth_tensor_size_bytes(&made));
    for (int64_t at = 0; at < berth_tensor_element_count(w); ++at) {
        const int64_t x = at % old[3], y = at / old[3] % old[2];
        const int64_t output = at / (old[2] * old[3]) % old[1],
                      input = at / (old[1] * old[2] * old[3]);
        const int64_t channel = output * cells + y % stride * stride + x % stride;
        const int64_t row = s[0].taps - 1 - y / stride, column = s[1].taps - 1 - x / stride;
        const int64_t to = ((channel * old[0] + input) * s[0].taps + row) * s[1].taps + column;
        memcpy((char *)made.data + (size_t)to * sizeof(float),
               (const char *)w->data + (size_t)at * sizeof(float), sizeof(float));
    }
    return made;
}

static berth_tensor bias_of_steps(pass *p, const berth_tensor *bias, int64_t cells) {
    const int64_t count = bias->dims[0] * cells;
    berth_tensor made = berth_tensor_create(p->module->arena, BERTH_DTYPE_F32, 1, &count);
    for (int64_t i = 0; i < count; ++i)
        memcpy((char *)made.data + (size_t)i * sizeof(float),
               (const char *)bias->data + (size_t)(i / cells) * sizeof(float), sizeof(float));
    return made;
}

static berth_value_id pair_of(pass *p, berth_op_id id, int64_t a, int64_t b) {
    const int64_t two = 2;
    berth_tensor made = berth_tensor_create(p->module->arena, BERTH_DTYPE_I64, 1, &two);
    berth_tensor_set_i64(&made, 0, a);
    berth_tensor_set_i64(&made, 1, b);
    return berth_layout__constant(p, id, &made);
}

// The convolution: plain, with the zeros around its input as a step of their own, or in blocks of channels.
static berth_status insert_conv(pass *p, berth_op_id id, const berth_layout_transposed *t,
                                const steps *s, berth_value_id *out) {
    const int64_t stride = t->window->strides[0];
    const int64_t begin[2] = {s[0].pad_begin, s[1].pad_begin};
    const int64_t end[2] = {s[0].pad_end, s[1].pad_end};
    const int64_t pads[4] = {begin[0], begin[1], end[0], end[1]}, none[4] = {0};
    berth_value_id inputs[3] = {graph_of(p)->ops.data[id].inputs[0]};
    if (!t->in_blocks) inputs[0] = berth_layout__padded(p, id, inputs[0], begin, end, 0);
    const berth_tensor weights = weights_of_steps(p, t->weights, stride, s);
    inputs[1] = berth_layout__constant(p, id, &weights);
    if (t->bias) {
        const berth_tensor bias = bias_of_steps(p, t->bias, stride * stride);
        inputs[2] = berth_layout__constant(p, id, &bias);
    }
    const int64_t dims[4] = {type_of(p, inputs[0])->dims[0], weights.dims[0], s[0].count,
                             s[1].count};
    *out = berth_layout__insert(p, id, BERTH_OP_CONV, inputs, t->bias ? 3 : 2,
                                berth_type_tensor(p->module, BERTH_DTYPE_F32, 4, dims), id);
    const berth_op_id made = graph_of(p)->values.data[*out].op;
    bool done = false;
    berth_layout__set_padding(p, made, t->in_blocks ? pads : none, 2);
    if (!t->in_blocks) return BERTH_OK;
    BERTH_TRY(berth_layout__conv(p, made, &done));
    *out = berth_layout__convert(p, *out, 0, id, id);
    return BERTH_OK;
}

// The operation becomes the results of all steps in order, without those that are left out.
static void become_order(pass *p, berth_op_id id, berth_value_id conv, const steps *s,
                         int64_t stride) {
    berth_type type = *type_of(p, graph_of(p)->ops.data[id].outputs[0]);
    for (int i = 0; i < 2; ++i) type.dims[2 + i] = stride * s[i].count;
    berth_value_id whole =
        berth_layout__insert(p, id, BERTH_OP_DEPTH_TO_SPACE, &conv, 1,
                             berth_type_tensor(p->module, BERTH_DTYPE_F32, 4, type.dims), id);
    berth_attrs attrs = {0};
    berth_attrs_set_int(p->module, &attrs, "blocksize", stride);
    berth_attrs_set_string(p->module, &attrs, "mode", "CRD");
    graph_of(p)->ops.data[graph_of(p)->values.data[whole].op].attrs = attrs;
    const berth_value_id operands[4] = {
        whole, pair_of(p, id, s[0].left_out, s[1].left_out),
        pair_of(p, id, s[0].left_out + s[0].kept, s[1].left_out + s[1].kept), pair_of(p, id, 2, 3)};
    berth_op *self = &graph_of(p)->ops.data[id];
    self->kind = BERTH_OP_SLICE;
    self->attrs = (berth_attrs){0};
    self->input_count = 4;
    self->inputs = berth_arena_copy(p->module->arena, operands, sizeof(operands));
}

berth_status berth_layout__transposed_in_steps(pass *p, berth_op_id id,
                                               const berth_layout_transposed *t, bool *out_done) {
    const berth_window *w = t->window;
    *out_done = false;
    if (w->spatial != 2 || w->group != 1 || w->strides[0] != w->strides[1] || !t->weights ||
        !pays(w, t->weights->dims[0], berth_layout__lanes(p, id)))
        return BERTH_OK;
    const int64_t stride = w->strides[0];
    const steps s[2] = {steps_of(w, 0), steps_of(w, 1)};
    for (int i = 0; i < 2; ++i)  // output_shape beyond what the input reaches
        if (s[i].count < 1 || s[i].pad_end < 0 || s[i].left_out + s[i].kept > stride * s[i].count)
            return BERTH_OK;
    berth_value_id conv = BERTH_NONE;
    BERTH_TRY(insert_conv(p, id, t, s, &conv));
    become_order(p, id, conv, s, stride);
    *out_done = true;
    return BERTH_OK;
}
