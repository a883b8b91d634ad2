// Pools in blocks of channels or along plain rows: what lies around the input as memory, and large
// windows of maxima as windows along one axis after the other.
#include <math.h>
#include <string.h>

#include "compiler/passes/layout_private.h"

typedef berth_layout_pass pass;

static berth_status window_of(const pass *p, berth_op_id id, berth_window *out) {
    const berth_op op = graph_of(p)->ops.data[id];
    const berth_type *x = type_of(p, op.inputs[0]);
    return berth_window_resolve(p->module, &op, x->dims, x->rank, NULL, out);
}

// A maximum of f32 on processor cores.
static bool is_maximum(const pass *p, berth_op_id id) {
    const berth_op op = graph_of(p)->ops.data[id];
    const berth_target *target = berth_layout__target(p, id);
    return op.kind == BERTH_OP_MAX_POOL && target && berth_device_kind_is_host(target->kind) &&
           berth_layout__is_f32(p, op.inputs[0], -1);
}

// A large window reads every element many times: what lies around the input becomes memory once, so
// that no element is asked whether it is there.
static berth_status pad_large_window(pass *p, berth_op_id id) {
    enum { least_reads = 16 };  // of one element
    berth_window w;
    BERTH_TRY(window_of(p, id, &w));
    int64_t end[BERTH_MAX_SPATIAL];
    const int64_t none[2 * BERTH_MAX_SPATIAL] = {0};
    int64_t taps = 1;
    int64_t steps = 1;
    for (int i = 0; i < w.spatial; ++i) {
        end[i] = berth_layout__end_padding(&w, i);
        taps *= w.kernel[i];
        steps *= w.strides[i];
    }
    if (taps < least_reads * steps) return BERTH_OK;
    berth_value_id x = graph_of(p)->ops.data[id].inputs[0];
    berth_layout__set_input(p, id, 0, berth_layout__padded(p, id, x, w.pads_begin, end, -INFINITY));
    berth_layout__set_padding(p, id, none, w.spatial);
    return BERTH_OK;
}

// ---- one axis after the other -------------------------------------------------------------------

// Whether maxima along `axis` first, and of the rest of the window then, compare so much less that
// the result between them is paid for. Measured: at two thirds of the comparisons (5 x 5) it is not.
static bool separates(const berth_window *w, int axis) {
    const double between = 4;  // comparisons, for writing an element of it and reading it again
    double taps = 1;
    double made = 1;  // elements between, for one of the result
    for (int i = 0; i < w->spatial; ++i) {
        taps *= (double)w->kernel[i];
        if (i != axis) made *= (double)w->input[i] / (double)w->output[i];
    }
    double along = (double)w->kernel[axis];
    double both = made * (along + between) + taps / along;
    return w->kernel[axis] > 1 && taps > along && both <= 0.5 * taps;
}

// The attributes of a window that reaches along one axis only (`along`), or along all others.
static berth_attrs part_attrs(pass *p, const berth_window *w, int axis, bool along) {
    berth_attrs attrs = {0};
    int64_t kernel[BERTH_MAX_SPATIAL];
    int64_t strides[BERTH_MAX_SPATIAL];
    int64_t dilations[BERTH_MAX_SPATIAL];
    int64_t pads[2 * BERTH_MAX_SPATIAL] = {0};
    uint32_t n = (uint32_t)w->spatial;
    for (int i = 0; i < w->spatial; ++i) {
        bool in = (i == axis) == along;
        kernel[i] = in ? w->kernel[i] : 1;
        strides[i] = in ? w->strides[i] : 1;
        dilations[i] = in ? w->dilations[i] : 1;
        pads[i] = in ? w->pads_begin[i] : 0;
        pads[w->spatial + i] = in ? berth_layout__end_padding(w, i) : 0;
    }
    berth_attrs_set_ints(p->module, &attrs, "kernel_shape", kernel, n);
    berth_attrs_set_ints(p->module, &attrs, "strides", strides, n);
    berth_attrs_set_ints(p->module, &attrs, "dilations", dilations, n);
    berth_attrs_set_ints(p->module, &attrs, "pads", pads, 2 * n);
    return attrs;
}

// A maximum of maxima is the same, NaN included, which windows leave out: axes from the last on,
// as far as it pays.
static berth_status separate_axes(pass *p, berth_op_id id) {
    berth_window w;
    BERTH_TRY(window_of(p, id, &w));
    for (int axis = w.spatial - 1; axis > 0; --axis) {
        if (!separates(&w, axis)) continue;
        berth_value_id x = graph_of(p)->ops.data[id].inputs[0];
        berth_type type = *type_of(p, x);
        type.dims[2 + axis] = w.output[axis];
        berth_type_id wanted =
            berth_type_tensor_layout(p->module, type.dtype, type.rank, type.dims, type.layout);
        berth_value_id first = berth_layout__insert(p, id, BERTH_OP_MAX_POOL, &x, 1, wanted, id);
        berth_op_id made = graph_of(p)->values.data[first].op;
        graph_of(p)->ops.data[made].attrs = part_attrs(p, &w, axis, true);
        berth_layout__set_input(p, id, 0, first);
        graph_of(p)->ops.data[id].attrs = part_attrs(p, &w, axis, false);
        BERTH_TRY(window_of(p, id, &w));
    }
    return BERTH_OK;
}

// ---- entry --------------------------------------------------------------------------------------

// Short windows that move along plain rows by a few elements: the compiler's vectors take such rows apart
// (schedule/policy_cpu_window.c) in less time than copies into blocks and out of them take.
static bool moves_along_rows(const berth_window *w) {
    enum { most_terms = 64, most_step = 4, least_row = 8 };
    int64_t terms = 1;
    for (int i = 0; i < w->spatial; ++i) terms *= w->kernel[i];
    int last = w->spatial - 1;
    return terms <= most_terms && w->strides[last] > 1 && w->strides[last] <= most_step &&
           w->output[last] >= least_row;
}

// Channels of whole blocks of `block`; 0: those that fill up the last one are too many.
static int64_t in_blocks(int64_t channels, int64_t block) {
    enum { most_padding = 4 };  // channels for each one that pads the last block
    int64_t padded = (channels + block - 1) / block * block;
    return (padded - channels) * most_padding <= channels ? padded : 0;
}

// Whether maxima read an element so often, and have so much around the input to leave out, that copies into a block that is
// not full, and out of it, are paid for. Measured: 3 x 3 with a border, but not dilated without one, nor averages.
static bool reads_often(const pass *p, berth_op_id id, const berth_window *w) {
    enum { least_reads = 9 };
    int64_t taps = 1;
    int64_t steps = 1;
    bool border = false;
    for (int i = 0; i < w->spatial; ++i) {
        taps *= w->kernel[i];
        steps *= w->strides[i];
        border |= w->pads_begin[i] > 0 || berth_layout__end_padding(w, i) > 0;
    }
    return border && taps >= least_reads * steps && is_maximum(p, id);
}

// Maxima over plain rows whose neighbours are neighbours of the input: vectors go along the rows.
static bool goes_along_rows(const pass *p, berth_op_id id, const berth_window *w) {
    enum { least_row = 8 };
    int last = w->spatial - 1;
    return is_maximum(p, id) && !type_of(p, graph_of(p)->ops.data[id].inputs[0])->layout &&
           w->strides[last] == 1 && w->output[last] >= least_row;
}

// The same with windows that reach over other rows alone: blocks would save nothing for their copies.
static bool stays_in_rows(const pass *p, berth_op_id id, const berth_window *w) {
    return w->kernel[w->spatial - 1] == 1 && goes_along_rows(p, id, w);
}

// Puts a plain input in blocks where its channels fill them, or nearly so. False: it stays plain.
static bool block_input(pass *p, berth_op_id id, const berth_window *w) {
    const berth_op op = graph_of(p)->ops.data[id];
    int64_t channels = type_of(p, op.inputs[0])->dims[1];
    int64_t block = berth_layout__block_for(p, id, channels);
    bool fills =
        channels % BERTH_LAYOUT_BLOCK == 0 || (in_blocks(channels, block) && reads_often(p, id, w));
    if (moves_along_rows(w) || stays_in_rows(p, id, w) || !fills ||
        type_of(p, op.inputs[0])->layout || !berth_layout__is_f32(p, op.inputs[0], -1))
        return false;
    berth_str_id layout = berth_layout__blocked(p, type_of(p, op.inputs[0])->rank, block);
    berth_layout__set_input(p, id, 0, berth_layout__convert(p, op.inputs[0], layout, id, id));
    return true;
}

berth_status berth_layout__pool(pass *p, berth_op_id id, bool *out_done) {
    *out_done = false;
    const berth_op op = graph_of(p)->ops.data[id];
    bool second = op.output_count > 1 && op.outputs[1] != BERTH_NONE;
    if (second || !berth_layout__has_blocks(p, op.outputs[0]) ||
        !berth_layout__has_blocks(p, op.inputs[0]))
        return BERTH_OK;
    bool blocked = berth_layout__block(p, op.inputs[0]) != 0;
    bool window = op.kind == BERTH_OP_MAX_POOL || op.kind == BERTH_OP_AVERAGE_POOL;
    if (!blocked && !window) return BERTH_OK;
    if (!blocked) {
        berth_window w;
        BERTH_TRY(window_of(p, id, &w));
        blocked = block_input(p, id, &w);
        if (!blocked && !goes_along_rows(p, id, &w)) return BERTH_OK;
    }
    if (is_maximum(p, id)) {
        BERTH_TRY(pad_large_window(p, id));
        BERTH_TRY(separate_axes(p, id));
    }
    berth_value_id x = graph_of(p)->ops.data[id].inputs[0];
    if (blocked) berth_layout__set(p, op.outputs[0], type_of(p, x)->layout);
    *out_done = true;
    return BERTH_OK;
}

// Whether regions read the image so often that copying it into blocks of channels is paid for: a sample
// that reads a vector of channels in each of four places takes a small part of the time of one that reads
// elements, above all where it takes their maximum. Of adaptive samples only the run knows how many there are.
static bool samples_pay(const pass *p, const berth_op *op, int64_t channels, int64_t padded) {
    const berth_type *x = type_of(p, op->inputs[0]), *y = type_of(p, op->outputs[0]);
    int64_t given = berth_attrs_int(p->module, &op->attrs, "sampling_ratio", 0);
    const char *mode = berth_attrs_string(p->module, &op->attrs, "mode", "avg");
    double ratio = given > 0 ? (double)given : 2, worth = strcmp(mode, "max") ? 1 : 2;
    double samples = (double)y->dims[0] * (double)y->dims[2] * (double)y->dims[3] * ratio * ratio;
    return worth * samples * (double)channels >=
           (double)x->dims[0] * (double)x->dims[2] * (double)x->dims[3] * (double)padded;
}

berth_status berth_layout__roi_align(pass *p, berth_op_id id, bool *out_done) {
    const berth_op op = graph_of(p)->ops.data[id];
    *out_done = false;
    if (!berth_layout__is_f32(p, op.inputs[0], 4) || !berth_layout__is_f32(p, op.outputs[0], 4))
        return BERTH_OK;
    berth_str_id layout = type_of(p, op.inputs[0])->layout;
    int64_t channels = type_of(p, op.inputs[0])->dims[1];
    int64_t block = berth_layout__block_for(p, id, channels);
    int64_t padded = in_blocks(channels, block);
    if (!layout && padded && samples_pay(p, &op, channels, padded))
        layout = berth_layout__blocked(p, 4, block);
    else if (!berth_layout__block(p, op.inputs[0]))
        return BERTH_OK;
    for (uint32_t i = 0; i < op.input_count; ++i)
        berth_layout__set_input(p, id, i,
                                berth_layout__convert(p, op.inputs[i], i ? 0 : layout, id, id));
    berth_layout__set(p, op.outputs[0], layout);
    *out_done = true;
    return BERTH_OK;
}
