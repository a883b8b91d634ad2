// Convolutions in blocks of channels: layouts of activations and weights, explicit padding,
// Winograd.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "compiler/passes/layout_private.h"
#include "compiler/passes/winograd.h"
#include "compiler/schedule/skip_zeros.h"
#include "ir/graph/op_params.h"

#define BLOCK BERTH_LAYOUT_BLOCK
#define WEIGHT_BLOCK 16     // outputs of a block of weights
#define MANY_CHANNELS 64    // of which half an empty block is a small part
#define FEW_OUTPUTS 4       // that a block would leave mostly empty
#define PADDED_DEPTHWISE 4  // channels for each one that pads their last block

typedef berth_layout_pass pass;

// Whether nothing after the value takes its blocks apart or together: then half a block may stay
// empty.
static bool ends_blocked(const pass *p, berth_value_id value) {
    const berth_graph *graph = graph_of(p);
    for (int step = 0; step < 8; ++step) {
        berth_op_id id = value < p->value_count ? p->only_user[value] : BERTH_NONE;
        if (id == BERTH_LAYOUT_MANY_USERS) return false;
        if (id == BERTH_NONE) return true;
        const berth_op *user = &graph->ops.data[id];
        bool follows = berth_op_has(user->kind, BERTH_TRAIT_ELEMENTWISE) && user->input_count == 1;
        if (!follows)
            return user->kind != BERTH_OP_CONV && user->kind != BERTH_OP_CONCAT &&
                   !berth_op_has(user->kind, BERTH_TRAIT_ELEMENTWISE);
        value = user->outputs[0];
    }
    return false;
}

// Whether the value is a result, or becomes one element by element: then its rows are wanted plain.
static bool ends_plain(const pass *p, berth_value_id value) {
    const berth_graph *graph = graph_of(p);
    for (int step = 0; step < 8; ++step) {
        berth_op_id id = value < p->value_count ? p->only_user[value] : BERTH_NONE;
        if (id == BERTH_NONE) return true;
        const berth_op *user = id == BERTH_LAYOUT_MANY_USERS ? NULL : &graph->ops.data[id];
        if (!user || !berth_op_has(user->kind, BERTH_TRAIT_ELEMENTWISE) || user->input_count != 1)
            return false;
        value = user->outputs[0];
    }
    return false;
}

// ---- operands -----------------------------------------------------------------------------------

typedef struct convolution {
    const berth_tensor *weights;  // NULL: the run has them
    const berth_tensor *bias;     // NULL = none
    int rank;
    berth_window w;
    int64_t group_inputs;  // channels of a group
    int64_t group_outputs;
    bool depthwise;
} convolution;

// False: not of f32 operands and static shapes, of which only the weights of a convolution may be no constant.
static berth_status describe(const pass *p, berth_op_id id, convolution *out, bool *out_known) {
    const berth_op op = graph_of(p)->ops.data[id];
    bool has_bias = op.input_count > 2 && op.inputs[2] != BERTH_NONE;
    *out_known = false;
    *out = (convolution){
        .weights = berth_graph_raw_constant_of(p->module, graph_of(p), op.inputs[1]),
        .bias =
            has_bias ? berth_graph_raw_constant_of(p->module, graph_of(p), op.inputs[2]) : NULL};
    if ((!out->weights && op.kind != BERTH_OP_CONV) || (has_bias && !out->bias) ||
        type_of(p, op.inputs[1])->layout || !berth_layout__is_f32(p, op.inputs[0], -1) ||
        !berth_layout__is_f32(p, op.outputs[0], -1))
        return BERTH_OK;
    const berth_type *x = type_of(p, op.inputs[0]), *weights = type_of(p, op.inputs[1]);
    out->rank = x->rank;
    if (!berth_layout__is_f32(p, op.inputs[1], x->rank) || (out->bias && out->bias->rank != 1))
        return BERTH_OK;
    BERTH_TRY(berth_window_resolve(p->module, &op, x->dims, x->rank, weights->dims + 2, &out->w));
    int64_t group = out->w.group;
    out->group_inputs = x->dims[1] / group;
    out->group_outputs = type_of(p, op.outputs[0])->dims[1] / group;
    out->depthwise = group > 1 && out->group_inputs == 1 && out->group_outputs == 1;
    *out_known = true;
    return BERTH_OK;
}

berth_value_id berth_layout__padded(pass *p, berth_op_id id, berth_value_id x, const int64_t *begin,
                                    const int64_t *end, float fill) {
    berth_type type = *type_of(p, x);
    int64_t pads[2 * BERTH_MAX_RANK] = {0};
    int64_t total = 0;
    for (int d = 2; d < type.rank; ++d) {
        pads[d] = begin[d - 2];
        pads[type.rank + d] = end[d - 2];
        type.dims[d] += begin[d - 2] + end[d - 2];
        total += begin[d - 2] + end[d - 2];
    }
    if (total == 0) return x;
    int64_t dims[] = {2 * type.rank};
    berth_tensor *tensor = berth_arena_new(p->module->arena, berth_tensor);
    *tensor = berth_tensor_create(p->module->arena, BERTH_DTYPE_I64, 1, dims);
    memcpy(tensor->data, pads, (size_t)dims[0] * sizeof(pads[0]));
    const berth_op like = graph_of(p)->ops.data[id];
    berth_value_id amounts = berth_graph_insert_constant(p->module, p->main, id, tensor, like.loc);
    berth_type_id wanted =
        berth_type_tensor_layout(p->module, type.dtype, type.rank, type.dims, type.layout);
    berth_value_id operands[3] = {x, amounts, BERTH_NONE};
    if (fill != 0) {
        tensor = berth_arena_new(p->module->arena, berth_tensor);
        *tensor = berth_tensor_create(p->module->arena, BERTH_DTYPE_F32, 0, NULL);
        memcpy(tensor->data, &fill, sizeof(fill));
        operands[2] = berth_graph_insert_constant(p->module, p->main, id, tensor, like.loc);
    }
    return berth_layout__insert(p, id, BERTH_OP_PAD, operands, fill != 0 ? 3 : 2, wanted, id);
}

// The same with zeros.
static berth_value_id padded_input(pass *p, berth_op_id id, berth_value_id x, const int64_t *begin,
                                   const int64_t *end) {
    return berth_layout__padded(p, id, x, begin, end, 0);
}

// The attributes with other pads (begins, then ends).
void berth_layout__set_padding(pass *p, berth_op_id id, const int64_t *pads, int spatial) {
    berth_attrs attrs = {0};
    const berth_attrs old = graph_of(p)->ops.data[id].attrs;
    for (uint32_t i = 0; i < old.items.count; ++i)
        berth_vec_push(p->module->arena, &attrs.items, old.items.data[i]);
    berth_attrs_set_ints(p->module, &attrs, "pads", pads, 2 * (uint32_t)spatial);
    berth_attrs_set_string(p->module, &attrs, "auto_pad", "NOTSET");
    berth_attrs_remove(p->module, &attrs, "output_shape");  // it would choose the pads itself
    graph_of(p)->ops.data[id].attrs = attrs;
}

// ---- blocks -------------------------------------------------------------------------------------

typedef struct conv_blocks {
    int64_t input;  // 0 = the input must come plain
    int64_t output;
    int64_t weights;  // outputs of a block of weights
    char bias_tag[8];
} conv_blocks;

// Whether the windows of a plain input, copied one beside the other, are much less than a plain result
// that would be made of blocks again: then results are computed row by row.
static bool rows_are_better(const pass *p, berth_op_id id, const convolution *v, int64_t now) {
    enum { least_row = 64 };
    const berth_target *target = berth_layout__target(p, id);
    int64_t taps = v->group_inputs;
    for (int i = 0; i < v->w.spatial; ++i) taps *= v->w.kernel[i];
    return !now && v->w.group == 1 && v->group_inputs % BLOCK && 2 * taps <= v->group_outputs &&
           v->w.output[v->w.spatial - 1] >= least_row && target &&
           berth_device_kind_is_host(target->kind) &&
           ends_plain(p, graph_of(p)->ops.data[id].outputs[0]);
}

// Whether a convolution of single elements is a product of plain matrices, whose rows are all of the space: blocks
// would be made for it alone, and taken apart behind it.
static bool is_plain_product(const pass *p, berth_op_id id, const convolution *v, int64_t now) {
    const berth_target *target = berth_layout__target(p, id);
    int64_t points = 1;
    for (int i = 0; i < v->w.spatial; ++i) {
        if (v->w.kernel[i] != 1 || v->w.strides[i] != 1 || v->w.pads_begin[i] != 0 ||
            v->w.output[i] != v->w.input[i])
            return false;
        points *= v->w.output[i];
    }
    return !now && v->w.group == 1 && points >= 2 * WEIGHT_BLOCK && target &&
           berth_device_kind_is_host(target->kind) &&
           ends_plain(p, graph_of(p)->ops.data[id].outputs[0]);
}

// Whether whole blocks of channels, the last of them padded, are little more than the channels.
static bool nearly_fill(int64_t channels) {
    int64_t rest = (BLOCK - channels % BLOCK) % BLOCK;
    return rest * PADDED_DEPTHWISE <= channels;
}

// Blocks of a convolution; false when it has no blocked form. `now`: block of the input as it is.
static bool choose_blocks(const pass *p, berth_op_id id, const convolution *v, int64_t now,
                          conv_blocks *out) {
    int64_t inputs = v->group_inputs;
    int64_t outputs = v->group_outputs * v->w.group;
    bool whole = inputs % BLOCK == 0;
    if (rows_are_better(p, id, v, now) || is_plain_product(p, id, v, now)) return false;
    *out = (conv_blocks){.output = berth_layout__block_for(p, id, v->group_outputs)};
    if (v->w.group == 1 && outputs >= MANY_CHANNELS && out->output < berth_layout__lanes(p, id) &&
        ends_blocked(p, graph_of(p)->ops.data[id].outputs[0]))
        out->output = berth_layout__lanes(p, id);
    if (v->depthwise) {
        if (!nearly_fill(outputs)) return false;
        bool stays = now && (outputs % now == 0 || outputs % BLOCK);
        out->input = out->output = stays ? now : berth_layout__block_for(p, id, outputs);
    } else if (v->w.group > 1) {
        if (!whole || v->group_outputs % BLOCK) return false;
        out->input = now && inputs % now == 0 ? now : berth_layout__block_for(p, id, inputs);
    } else if (whole) {
        out->input = now && inputs % now == 0 ? now : berth_layout__block_for(p, id, inputs);
    }
    out->weights = out->output;  // two registers of 8 wide where there are that many outputs
    bool two = v->w.group > 1 ? v->group_outputs % WEIGHT_BLOCK == 0 : outputs > BLOCK;
    if (two && !v->depthwise) out->weights = WEIGHT_BLOCK;
    snprintf(out->bias_tag, sizeof(out->bias_tag), "A%da", (int)out->output);
    return true;
}

// Whether weights that the run has are used so often that putting them into blocks is paid for. Their outputs need not
// fill a block: without one, no convolution is a tile of registers.
static bool blocks_pay(const convolution *v, const conv_blocks *blocks) {
    enum { least_uses = 4 };  // of a weight in an image
    int64_t uses = 1;
    for (int i = 0; i < v->w.spatial; ++i) uses *= v->w.output[i];
    bool whole = !blocks->input || v->group_inputs % blocks->input == 0;
    return v->w.group == 1 && whole && v->group_outputs >= BLOCK && uses >= least_uses;
}

// Weights in blocks of outputs, and of inputs where those come in blocks. `transposed`: the inputs
// are their first dimension.
static berth_value_id packed_weights(pass *p, berth_op_id id, const convolution *v,
                                     const conv_blocks *blocks, bool transposed) {
    char tag[BERTH_MAX_RANK + 16] = {0};
    char output = transposed && !v->depthwise ? 'b' : 'a';
    char input = output == 'a' ? 'b' : 'a';
    bool both = !v->depthwise && blocks->input > 0;
    int length = 0;
    tag[length++] = (char)(output - 'a' + 'A');
    tag[length++] = both ? (char)(input - 'a' + 'A') : input;
    for (int d = 2; d < v->rank; ++d) tag[length++] = (char)('a' + d);
    size_t left = sizeof(tag) - (size_t)length;
    if (both)
        snprintf(tag + length, left, "%d%c%d%c", (int)blocks->input, input, (int)blocks->weights,
                 output);
    else
        snprintf(tag + length, left, "%d%c", (int)blocks->weights, output);
    if (v->weights) return berth_layout__packed_constant(p, v->weights, tag, id);
    return berth_layout__convert(p, graph_of(p)->ops.data[id].inputs[1],
                                 berth_module_intern(p->module, tag), id, id);
}

// The operation on blocked operands: `x` is its input, with padding and layout.
static bool become_blocked(pass *p, berth_op_id id, const convolution *v, const conv_blocks *blocks,
                           berth_value_id x, bool transposed) {
    berth_value_id packed = packed_weights(p, id, v, blocks, transposed);
    if (packed == BERTH_NONE) return false;
    berth_layout__set_input(p, id, 0, x);
    berth_layout__set_input(p, id, 1, packed);
    if (v->bias)
        berth_layout__set_input(p, id, 2,
                                berth_layout__packed_constant(p, v->bias, blocks->bias_tag, id));
    berth_layout__set(p, graph_of(p)->ops.data[id].outputs[0],
                      berth_layout__blocked(p, v->rank, blocks->output));
    return true;
}

// The input in the layout that the blocks ask for.
static berth_value_id blocked_input(pass *p, berth_op_id id, const convolution *v,
                                    const conv_blocks *blocks) {
    berth_str_id layout = blocks->input ? berth_layout__blocked(p, v->rank, blocks->input) : 0;
    return berth_layout__convert(p, graph_of(p)->ops.data[id].inputs[0], layout, id, id);
}

// ---- convolution --------------------------------------------------------------------------------

// A 3 x 3 convolution as Winograd's.
typedef struct winograd {
    int64_t m;
    int64_t points, tiles, rows, columns;  // (m + 2)^2; of the map, and rows and columns of them
    int64_t inputs, outputs;
    berth_value_id weights;  // transformed
    berth_value_id bias;     // or BERTH_NONE
    berth_attrs attrs;       // tile and pads
} winograd;

static winograd describe_winograd(pass *p, berth_op_id id, const convolution *v, int64_t m) {
    const berth_type out = *type_of(p, graph_of(p)->ops.data[id].outputs[0]);
    const berth_window *w = &v->w;
    winograd f = {.m = m,
                  .points = (m + 2) * (m + 2),
                  .rows = (w->output[0] + m - 1) / m,
                  .columns = (w->output[1] + m - 1) / m,
                  .inputs = v->weights->dims[1],
                  .outputs = v->weights->dims[0],
                  .weights = BERTH_NONE,
                  .bias = BERTH_NONE};
    f.tiles = out.dims[0] * f.rows * f.columns;
    berth_attrs_set_int(p->module, &f.attrs, "tile", m);
    berth_attrs_set_ints(
        p->module, &f.attrs, "pads",
        (int64_t[]){w->pads_begin[0], w->pads_begin[1], w->pads_end[0], w->pads_end[1]}, 4);
    return f;
}

static void pack_winograd(pass *p, berth_op_id id, const convolution *v, const conv_blocks *blocks,
                          winograd *f) {
    const int64_t dims[3] = {f->points, f->inputs, f->outputs};
    f->weights = berth_layout__winograd_constant(p, v->weights, f->m, dims, id);
    if (v->bias) f->bias = berth_layout__packed_constant(p, v->bias, blocks->bias_tag, id);
}

// The operation becomes `kind` with the operands given, and the bias.
static void become_winograd(pass *p, berth_op_id id, const winograd *f, berth_op_kind kind,
                            const berth_value_id *operands, uint32_t count, berth_attrs attrs) {
    const berth_type out = *type_of(p, graph_of(p)->ops.data[id].outputs[0]);
    berth_attrs_set_ints(p->module, &attrs, "output_shape", out.dims, 4);
    berth_op *self = &graph_of(p)->ops.data[id];
    self->kind = kind;
    for (uint32_t i = 0; i < count; ++i) self->inputs[i] = operands[i];
    if (f->bias != BERTH_NONE) self->inputs[count++] = f->bias;
    self->input_count = count;
    self->attrs = attrs;
}

// Three operations, whose points are tensors.
static void make_winograd_steps(pass *p, berth_op_id id, berth_value_id x, const winograd *f) {
    berth_module *module = p->module;
    int64_t in_dims[3] = {f->points, f->tiles, f->inputs};
    int64_t sum_dims[3] = {f->points, f->tiles, f->outputs};
    // Points a multiple of 4 KiB apart would share the sets of the caches: then tile by tile.
    bool collide =
        f->tiles >= 64 && (f->tiles * in_dims[2] % 1024 == 0 || f->tiles * sum_dims[2] % 1024 == 0);
    berth_str_id by_tile = collide ? berth_module_intern(module, "bac") : 0;
    berth_value_id in = berth_layout__insert(
        p, id, BERTH_OP_WINOGRAD_INPUT, &x, 1,
        berth_type_tensor_layout(module, BERTH_DTYPE_F32, 3, in_dims, by_tile), id);
    graph_of(p)->ops.data[graph_of(p)->values.data[in].op].attrs = f->attrs;
    berth_value_id sum = berth_layout__insert(
        p, id, BERTH_OP_WINOGRAD_MATMUL, (berth_value_id[]){in, f->weights}, 2,
        berth_type_tensor_layout(module, BERTH_DTYPE_F32, 3, sum_dims, by_tile), id);
    berth_attrs last = {0};
    berth_attrs_set_int(module, &last, "tile", f->m);
    become_winograd(p, id, f, BERTH_OP_WINOGRAD_OUTPUT, &sum, 1, last);
}

static void make_winograd(pass *p, berth_op_id id, const convolution *v, const conv_blocks *blocks,
                          int64_t m) {
    winograd f = describe_winograd(p, id, v, m);
    berth_value_id x = blocked_input(p, id, v, blocks);
    const berth_target *target = berth_layout__target(p, id);
    int64_t batch = type_of(p, graph_of(p)->ops.data[id].outputs[0])->dims[0];
    berth_winograd_map map = {.m = m,
                              .batch = batch,
                              .rows = f.rows,
                              .columns = f.columns,
                              .inputs = f.inputs,
                              .outputs = f.outputs};
    int64_t band = berth_device_kind_is_host(target->kind)
                       ? berth_winograd_band(&map, target->l2_bytes, target->cores)
                       : 0;
    pack_winograd(p, id, v, blocks, &f);
    if (band) {
        berth_attrs_set_int(p->module, &f.attrs, "band", band);
        become_winograd(p, id, &f, BERTH_OP_WINOGRAD_CONV, (berth_value_id[]){x, f.weights}, 2,
                        f.attrs);
    } else {
        make_winograd_steps(p, id, x, &f);
    }
    berth_value_id y = graph_of(p)->ops.data[id].outputs[0];
    berth_layout__set(p, y, berth_layout__blocked(p, 4, blocks->output));
}

int64_t berth_layout__end_padding(const berth_window *w, int i) {
    int64_t reach = (w->output[i] - 1) * w->strides[i] + (w->kernel[i] - 1) * w->dilations[i] + 1;
    int64_t end = reach - w->input[i] - w->pads_begin[i];
    return end < 0 ? 0 : end;
}

// Groups whose channels fill no block stay plain, and vectors go along the rows of the map: zeros
// around it as a step of their own. Only where vectors can: neighbours of the result are neighbours
// of the input.
static bool pad_plain_groups(pass *p, berth_op_id id, const convolution *v) {
    const berth_target *target = berth_layout__target(p, id);
    const berth_window *w = &v->w;
    int last = w->spatial - 1;
    berth_value_id x = graph_of(p)->ops.data[id].inputs[0];
    if (w->group == 1 || v->depthwise || w->strides[last] != 1 || type_of(p, x)->layout ||
        !target || !berth_device_kind_is_host(target->kind))
        return false;
    int64_t begin[BERTH_MAX_SPATIAL];
    int64_t end[BERTH_MAX_SPATIAL];
    const int64_t none[2 * BERTH_MAX_SPATIAL] = {0};
    for (int i = 0; i < w->spatial; ++i) {
        begin[i] = w->pads_begin[i];
        end[i] = berth_layout__end_padding(w, i);
    }
    berth_layout__set_input(p, id, 0, padded_input(p, id, x, begin, end));
    berth_layout__set_padding(p, id, none, w->spatial);
    return true;
}

// Share of the products of a window with the zeros around its input, of those of one dimension.
static double share_of_zeros(const berth_window *w, int i) {
    int64_t zeros = 0;
    for (int64_t k = 0; k < w->kernel[i]; ++k)
        for (int64_t o = 0; o < w->output[i]; ++o) {
            int64_t at = o * w->strides[i] + k * w->dilations[i] - w->pads_begin[i];
            zeros += at < 0 || at >= w->input[i];
        }
    return (double)zeros / (double)(w->kernel[i] * w->output[i]);
}

// Of floats, which may lie at any address.
static bool all_finite(const berth_tensor *tensor) {
    int64_t count = berth_tensor_element_count(tensor);
    for (int64_t i = 0; i < count && tensor->dtype == BERTH_DTYPE_F32; ++i) {
        float value;
        memcpy(&value, (const char *)tensor->data + (size_t)i * sizeof(value), sizeof(value));
        if (!isfinite(value)) return false;
    }
    return tensor->dtype == BERTH_DTYPE_F32;
}

// Tells schedules of the zeros that the input now has around it (schedule/skip_zeros.h), where they take
// part in many products: by NaN or infinity, these would not be zero.
static void note_zeros(pass *p, berth_op_id id, const convolution *v, const int64_t *end) {
    enum { least_share = 32 };  // 1 / of the products
    const berth_window *w = &v->w;
    int64_t border[2 * BERTH_MAX_SPATIAL];
    double least = 1;
    for (int i = 0; i < w->spatial; ++i) {
        least *= 1 - share_of_zeros(w, i);
        border[i] = w->pads_begin[i];
        border[w->spatial + i] = end[i];
    }
    if (1 - least < 1.0 / least_share || !v->weights || !all_finite(v->weights)) return;
    berth_attrs_set_ints(p->module, &graph_of(p)->ops.data[id].attrs, BERTH_ATTR_ZERO_BORDER,
                         border, 2 * (uint32_t)w->spatial);
}

berth_status berth_layout__conv(pass *p, berth_op_id id, bool *out_done) {
    convolution v;
    conv_blocks blocks;
    bool known = false;
    *out_done = false;
    BERTH_TRY(describe(p, id, &v, &known));
    berth_value_id x = graph_of(p)->ops.data[id].inputs[0];
    if (!known) return BERTH_OK;
    bool blocked = choose_blocks(p, id, &v, berth_layout__block(p, x), &blocks);
    if (!v.weights && (!blocked || !blocks_pay(&v, &blocks))) return BERTH_OK;
    if (!blocked) {
        *out_done = pad_plain_groups(p, id, &v);
        return BERTH_OK;
    }
    int64_t tile = 0;
    if (p->winograd && v.weights)
        tile = berth_winograd_choose(&v.w, v.group_inputs, v.group_outputs,
                                     berth_layout__lanes(p, id));
    *out_done = true;
    if (tile) {
        make_winograd(p, id, &v, &blocks, tile);
        return BERTH_OK;
    }
    const berth_window *w = &v.w;
    int64_t end[BERTH_MAX_SPATIAL];
    const int64_t none[2 * BERTH_MAX_SPATIAL] = {0};
    for (int i = 0; i < w->spatial; ++i) end[i] = berth_layout__end_padding(w, i);
    x = padded_input(p, id, blocked_input(p, id, &v, &blocks), w->pads_begin, end);
    *out_done = become_blocked(p, id, &v, &blocks, x, false);
    if (!*out_done) return BERTH_OK;
    berth_layout__set_padding(p, id, none, w->spatial);
    note_zeros(p, id, &v, end);
    return BERTH_OK;
}

// Zeros around the input so that no window leaves it: as many more positions of the output are left
// out.
static void transposed_reach(const berth_window *w, int i, int64_t *out_begin, int64_t *out_end) {
    *out_begin = *out_end = 0;
    for (int64_t residue = 0; residue < w->strides[i] && residue < w->output[i]; ++residue) {
        berth_window_phase phase = berth_window_phase_of(w, i, residue);
        int64_t before = (phase.taps - 1) * phase.input_step - phase.shift;
        int64_t behind = phase.count + phase.shift - w->input[i];
        if (phase.taps == 0) continue;
        if (before > *out_begin) *out_begin = before;
        if (behind > *out_end) *out_end = behind;
    }
}

// The input `x` of a transposed convolution with zeros around, and pads that leave out what they add.
// BERTH_NONE: its output goes beyond what the input reaches.
static berth_value_id padded_transposed(pass *p, berth_op_id id, const convolution *v,
                                        berth_value_id x, int64_t *pads) {
    const berth_window *w = &v->w;
    int64_t begin[BERTH_MAX_SPATIAL];
    int64_t end[BERTH_MAX_SPATIAL];
    for (int i = 0; i < w->spatial; ++i) {
        transposed_reach(w, i, &begin[i], &end[i]);
        int64_t full = w->strides[i] * (w->input[i] + begin[i] + end[i] - 1) +
                       w->output_padding[i] + (w->kernel[i] - 1) * w->dilations[i] + 1;
        pads[i] = w->pads_begin[i] + w->strides[i] * begin[i];
        pads[w->spatial + i] = full - w->output[i] - pads[i];
        if (pads[w->spatial + i] < 0) return BERTH_NONE;  // output_shape
    }
    return padded_input(p, id, x, begin, end);
}

static bool is_plain_on_cores(const pass *p, berth_op_id id) {
    const berth_target *target = berth_layout__target(p, id);
    return !type_of(p, graph_of(p)->ops.data[id].inputs[0])->layout && target &&
           berth_device_kind_is_host(target->kind);
}

// Outputs that fill no block stay plain, and vectors go along the rows of the map, or along the
// window.
static bool pad_plain_transposed(pass *p, berth_op_id id, const convolution *v) {
    berth_value_id x = graph_of(p)->ops.data[id].inputs[0];
    int64_t pads[2 * BERTH_MAX_SPATIAL];
    if (!is_plain_on_cores(p, id)) return false;
    x = padded_transposed(p, id, v, x, pads);
    if (x == BERTH_NONE) return false;
    berth_layout__set_input(p, id, 0, x);
    berth_layout__set_padding(p, id, pads, v->w.spatial);
    return true;
}

// Outputs that leave a block mostly empty; those that fill half a register at most, where the positions of a row that share
// their weights fill three quarters of theirs.
static bool rows_are_fuller(const pass *p, berth_op_id id, const convolution *v) {
    const int64_t outputs = v->group_outputs, lanes = berth_layout__lanes(p, id);
    const int last = v->w.spatial - 1;
    const int64_t positions = v->w.output[last] / v->w.strides[last];
    const int64_t in_registers = (positions + lanes - 1) / lanes * lanes;
    if (v->depthwise || outputs >= BLOCK) return false;
    return outputs < FEW_OUTPUTS || (2 * outputs <= lanes && 4 * positions >= 3 * in_registers);
}

// Whether the outputs of all steps together fill their blocks much better than those of one, and rows are wanted plain.
static bool steps_are_fuller(const pass *p, berth_op_id id, const convolution *v) {
    const int64_t outputs = v->group_outputs, lanes = berth_layout__lanes(p, id);
    int64_t cells = 1;
    for (int i = 0; i < v->w.spatial; ++i) cells *= v->w.strides[i];
    const int64_t apart = (outputs + lanes - 1) / lanes * lanes * cells;
    const int64_t together = (outputs * cells + lanes - 1) / lanes * lanes;
    return v->w.group == 1 && 5 * together <= 4 * apart &&
           ends_plain(p, graph_of(p)->ops.data[id].outputs[0]);
}

berth_status berth_layout__conv_transpose(pass *p, berth_op_id id, bool *out_done) {
    convolution v;
    conv_blocks blocks;
    bool known = false;
    int64_t pads[2 * BERTH_MAX_SPATIAL];
    *out_done = false;
    BERTH_TRY(describe(p, id, &v, &known));
    berth_value_id x = graph_of(p)->ops.data[id].inputs[0];
    if (!known) return BERTH_OK;
    const bool plain =
        rows_are_fuller(p, id, &v) || !choose_blocks(p, id, &v, berth_layout__block(p, x), &blocks);
    const berth_layout_transposed form = {&v.w, v.weights, v.bias, !plain};
    if (plain ? is_plain_on_cores(p, id) : steps_are_fuller(p, id, &v))
        BERTH_TRY(berth_layout__transposed_in_steps(p, id, &form, out_done));
    if (*out_done) return BERTH_OK;
    if (plain) {
        *out_done = pad_plain_transposed(p, id, &v);
        return BERTH_OK;
    }
    x = padded_transposed(p, id, &v, blocked_input(p, id, &v, &blocks), pads);
    if (x == BERTH_NONE) return BERTH_OK;
    *out_done = become_blocked(p, id, &v, &blocks, x, true);
    if (*out_done) berth_layout__set_padding(p, id, pads, v.w.spatial);
    return BERTH_OK;
}
