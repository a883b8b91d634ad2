#include "compiler/passes/layout.h"

#include <stdio.h>
#include <string.h>

#include "compiler/passes/layout_private.h"
#include "compiler/passes/winograd.h"
#include "ir/layout.h"
#include "ir/op_params.h"
#include "planner/planner.h"

#define BLOCK 8           // channels of a block of activations,
#define WIDE_BLOCK 16     // where registers hold 16 floats and the channels fill them
#define WEIGHT_BLOCK 16   // outputs of a block of weights
#define MANY_CHANNELS 64  // of which half an empty block is a small part

typedef berth_layout_pass pass;

static void set_layout(pass *p, berth_value_id value, berth_str_id layout) {
    const berth_type type = *type_of(p, value);
    graph_of(p)->values.data[value].type =
        berth_type_tensor_layout(p->module, type.dtype, type.rank, type.dims, layout);
}

static const berth_target *target_of(const pass *p, berth_op_id id) {
    uint32_t device = berth_plan_device_of(p->module, p->target, graph_of(p)->ops.data[id].device);
    return device == BERTH_NO_INDEX ? NULL : p->target->devices[device].target;
}

// Processor cores, also behind OpenCL (where no work-items run in step beside each other).
static bool on_cpu(const pass *p, berth_op_id id) {
    const berth_target *target = target_of(p, id);
    if (!target) return false;
    return target->kind == BERTH_DEVICE_CPU ||
           (target->kind == BERTH_DEVICE_OPENCL && target->subgroup_size == 1);
}

static int64_t lanes_of(const pass *p, berth_op_id id) {
    const berth_target *target = target_of(p, id);
    bool wide = target && target->kind == BERTH_DEVICE_CPU && target->vector_bits >= 512;
    return wide ? WIDE_BLOCK : BLOCK;
}

// Channels per block of a value that operation `id` reads or makes. Blocks of 16 would leave half a
// register empty, and half a block of memory, for what is a multiple of 8 only.
static int64_t block_for(const pass *p, berth_op_id id, int64_t channels) {
    bool fills = channels % WIDE_BLOCK == 0 || channels % BLOCK != 0;
    return fills && channels > BLOCK ? lanes_of(p, id) : BLOCK;
}

static const berth_op_id many_users = BERTH_NONE - 1;

// Per value that the pass begins with: the operation that uses it, `many_users`, or BERTH_NONE.
static berth_op_id *find_only_users(const berth_graph *graph, berth_arena *scratch) {
    berth_op_id *users = berth_arena_new_array(scratch, berth_op_id, graph->values.count + 1);
    memset(users, 0xff, graph->values.count * sizeof(*users));
    for (uint32_t i = 0; i < graph->regions.data[0].ops.count; ++i) {
        berth_op_id id = graph->regions.data[0].ops.data[i];
        const berth_op *op = &graph->ops.data[id];
        for (uint32_t k = 0; k < op->input_count; ++k) {
            if (op->inputs[k] == BERTH_NONE) continue;
            berth_op_id *user = &users[op->inputs[k]];
            *user = *user == BERTH_NONE || *user == id ? id : many_users;
        }
    }
    return users;
}

// Whether nothing behind the value takes its blocks apart or together: then half a block may stay
// empty.
static bool ends_blocked(const pass *p, berth_value_id value) {
    const berth_graph *graph = graph_of(p);
    for (int step = 0; step < 8; ++step) {
        berth_op_id id = value < p->value_count ? p->only_user[value] : BERTH_NONE;
        if (id == many_users) return false;
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

static berth_str_id blocked_by(const pass *p, int64_t block) {
    return block == WIDE_BLOCK ? p->blocked_wide : p->blocked;
}

int64_t berth_layout__block(const pass *p, berth_value_id value) {
    berth_str_id layout = value == BERTH_NONE ? 0 : type_of(p, value)->layout;
    if (layout == 0) return 0;
    return layout == p->blocked ? BLOCK : layout == p->blocked_wide ? WIDE_BLOCK : 0;
}

static bool is_f32(const pass *p, berth_value_id value, int rank) {
    if (value == BERTH_NONE) return false;
    const berth_type *type = type_of(p, value);
    return berth_type_is_static(type) && type->dtype == BERTH_DTYPE_F32 &&
           (rank < 0 || type->rank == rank);
}

// ---- new operations
// -------------------------------------------------------------------------------------------------

// A value of the given type made by a new operation before `position` (BERTH_NONE: at the end).
berth_value_id berth_layout__insert(pass *p, berth_op_id position, berth_op_kind kind,
                                    const berth_value_id *inputs, uint32_t input_count,
                                    berth_type_id type, berth_op_id like) {
    berth_op model = graph_of(p)->ops.data[like];
    berth_op_id made =
        position == BERTH_NONE
            ? berth_graph_add_op(p->module, p->main, 0, kind, inputs, input_count, 1, model.loc)
            : berth_graph_insert_op(p->module, p->main, position, kind, inputs, input_count, 1,
                                    model.loc);
    berth_graph *graph = graph_of(p);
    berth_value_id result = graph->ops.data[made].outputs[0];
    graph->ops.data[made].device = model.device;
    graph->values.data[result].type = type;
    graph->values.data[result].device = graph->values.data[model.outputs[0]].device;
    return result;
}

static berth_value_id relayout(pass *p, berth_value_id value, berth_str_id layout,
                               berth_op_id position, berth_op_id like) {
    const berth_type type = *type_of(p, value);
    berth_type_id wanted =
        berth_type_tensor_layout(p->module, type.dtype, type.rank, type.dims, layout);
    berth_value_id result =
        berth_layout__insert(p, position, BERTH_OP_RELAYOUT, &value, 1, wanted, like);
    berth_op_id made = graph_of(p)->values.data[result].op;
    berth_attrs attrs = {0};
    berth_attrs_set_string(p->module, &attrs, "layout", berth_module_str(p->module, layout));
    graph_of(p)->ops.data[made].attrs = attrs;
    berth_graph *graph = graph_of(p);
    berth_op_id producer = graph->values.data[value].op;
    if (graph->ops.data[like].kind == BERTH_OP_DEVICE_COPY && producer != BERTH_NONE) {
        // Before the copy, on the device that it copies from.
        graph->ops.data[made].device = graph->ops.data[producer].device;
        graph->values.data[result].device = graph->values.data[value].device;
    }
    return result;
}

// `value` in a layout, for the operation at `position`: itself, or a conversion shared by all who
// want it.
static berth_value_id in_layout(pass *p, berth_value_id value, berth_str_id layout,
                                berth_op_id position, berth_op_id like) {
    if (type_of(p, value)->layout == layout) return value;
    if (value >= p->value_count) return relayout(p, value, layout, position, like);
    if (p->other[value] == BERTH_NONE || type_of(p, p->other[value])->layout != layout)
        p->other[value] = relayout(p, value, layout, position, like);
    return p->other[value];
}

// A constant packed in a layout; the type keeps its logical dimensions.
static berth_value_id packed_constant(pass *p, const berth_tensor *tensor, const char *tag,
                                      berth_op_id position) {
    berth_layout layout;
    berth_status status = berth_layout_parse(tag, tensor->rank, &layout);
    if (status) {
        berth_status_ignore(status);
        return BERTH_NONE;
    }
    berth_tensor *packed = berth_arena_copy(p->module->arena, tensor, sizeof(*tensor));
    packed->data = berth_packing_add_layout(p->packing, &layout, tensor);
    const berth_op like = graph_of(p)->ops.data[position];
    berth_value_id value =
        berth_graph_insert_constant(p->module, p->main, position, packed, like.loc);
    berth_graph *graph = graph_of(p);
    graph->values.data[value].type = berth_type_tensor_layout(
        p->module, tensor->dtype, tensor->rank, tensor->dims, berth_module_intern(p->module, tag));
    graph->values.data[value].device = graph->values.data[like.outputs[0]].device;
    return value;
}

static void set_input(pass *p, berth_op_id id, uint32_t index, berth_value_id value) {
    graph_of(p)->ops.data[id].inputs[index] = value;
}

// ---- convolution
// ----------------------------------------------------------------------------------------------------

// The input with its padding made explicit.
static berth_value_id padded_input(pass *p, berth_op_id id, berth_value_id x,
                                   const berth_window *w) {
    berth_type type = *type_of(p, x);
    int64_t pads[8] = {0, 0, w->pads_begin[0], w->pads_begin[1],
                       0, 0, w->pads_end[0],   w->pads_end[1]};
    // Only as much as the window reaches: strides may leave the end unused.
    for (int i = 0; i < 2; ++i) {
        int64_t reach =
            (w->output[i] - 1) * w->strides[i] + (w->kernel[i] - 1) * w->dilations[i] + 1;
        int64_t end = reach - w->input[i] - w->pads_begin[i];
        pads[6 + i] = end > 0 ? end : 0;
        type.dims[2 + i] += w->pads_begin[i] + pads[6 + i];
    }
    if (pads[2] + pads[3] + pads[6] + pads[7] == 0) return x;
    int64_t dims[] = {8};
    berth_tensor *tensor = berth_arena_new(p->module->arena, berth_tensor);
    *tensor = berth_tensor_create(p->module->arena, BERTH_DTYPE_I64, 1, dims);
    memcpy(tensor->data, pads, sizeof(pads));
    const berth_op like = graph_of(p)->ops.data[id];
    berth_value_id amounts = berth_graph_insert_constant(p->module, p->main, id, tensor, like.loc);
    berth_type_id wanted =
        berth_type_tensor_layout(p->module, type.dtype, 4, type.dims, type.layout);
    return berth_layout__insert(p, id, BERTH_OP_PAD, (berth_value_id[]){x, amounts}, 2, wanted, id);
}

static void clear_padding(pass *p, berth_op_id id) {
    berth_attrs attrs = {0};
    const berth_attrs old = graph_of(p)->ops.data[id].attrs;
    for (uint32_t i = 0; i < old.items.count; ++i)
        berth_vec_push(p->module->arena, &attrs.items, old.items.data[i]);
    berth_attrs_set_ints(p->module, &attrs, "pads", (int64_t[]){0, 0, 0, 0}, 4);
    berth_attrs_set_string(p->module, &attrs, "auto_pad", "NOTSET");
    graph_of(p)->ops.data[id].attrs = attrs;
}

typedef struct conv_blocks {
    int64_t input;  // 0 = the input must come plain
    int64_t output;
    char weights_tag[24];
    char bias_tag[8];
} conv_blocks;

// Blocks of a convolution; false when it has no blocked form. `now`: block of the input as it is.
static bool choose_blocks(const pass *p, berth_op_id id, const berth_window *w, int64_t now,
                          int64_t inputs, int64_t outputs, conv_blocks *out) {
    int64_t group_outputs = outputs / w->group;
    bool depthwise = w->group > 1 && inputs == 1 && group_outputs == 1;
    bool whole = inputs % BLOCK == 0;
    *out = (conv_blocks){.output = block_for(p, id, group_outputs)};
    if (w->group == 1 && outputs >= MANY_CHANNELS && out->output < lanes_of(p, id) &&
        ends_blocked(p, graph_of(p)->ops.data[id].outputs[0]))
        out->output = lanes_of(p, id);
    if (depthwise) {
        if (outputs % BLOCK) return false;
        out->input = out->output = now && outputs % now == 0 ? now : block_for(p, id, outputs);
    } else if (w->group > 1) {
        if (!whole || group_outputs % BLOCK) return false;
        out->input = now && inputs % now == 0 ? now : block_for(p, id, inputs);
    } else if (whole) {
        out->input = now && inputs % now == 0 ? now : block_for(p, id, inputs);
    }
    int64_t weights = out->output;  // two registers of 8 wide where there are that many outputs
    bool two = w->group > 1 ? group_outputs % WEIGHT_BLOCK == 0 : outputs > BLOCK;
    if (two && !depthwise) weights = WEIGHT_BLOCK;
    if (depthwise || out->input == 0)
        snprintf(out->weights_tag, sizeof(out->weights_tag), "Abcd%da", (int)weights);
    else
        snprintf(out->weights_tag, sizeof(out->weights_tag), "ABcd%db%da", (int)out->input,
                 (int)weights);
    snprintf(out->bias_tag, sizeof(out->bias_tag), "A%da", (int)out->output);
    return true;
}

// Three operations in place of a 3 x 3 convolution: the operation itself becomes the last one.
static void make_winograd(pass *p, berth_op_id id, const berth_tensor *weights,
                          const berth_tensor *bias, const berth_window *w,
                          const conv_blocks *blocks, int64_t m) {
    berth_module *module = p->module;
    const berth_op op = graph_of(p)->ops.data[id];
    const berth_type out = *type_of(p, op.outputs[0]);
    berth_value_id x = in_layout(p, op.inputs[0], blocked_by(p, blocks->input), id, id);
    int64_t points = (m + 2) * (m + 2);
    int64_t tiles = out.dims[0] * ((w->output[0] + m - 1) / m) * ((w->output[1] + m - 1) / m);
    int64_t in_dims[3] = {points, tiles, weights->dims[1]};
    int64_t weight_dims[3] = {points, weights->dims[1], weights->dims[0]};
    int64_t sum_dims[3] = {points, tiles, weights->dims[0]};
    // Points a multiple of 4 KiB apart would share the sets of the caches: then tile by tile.
    bool collide =
        tiles >= 64 && (tiles * in_dims[2] % 1024 == 0 || tiles * sum_dims[2] % 1024 == 0);
    berth_str_id by_tile = collide ? berth_module_intern(module, "bac") : 0;
    berth_attrs attrs = {0};
    berth_attrs_set_int(module, &attrs, "tile", m);
    berth_attrs_set_ints(
        module, &attrs, "pads",
        (int64_t[]){w->pads_begin[0], w->pads_begin[1], w->pads_end[0], w->pads_end[1]}, 4);
    berth_value_id in = berth_layout__insert(
        p, id, BERTH_OP_WINOGRAD_INPUT, &x, 1,
        berth_type_tensor_layout(module, BERTH_DTYPE_F32, 3, in_dims, by_tile), id);
    graph_of(p)->ops.data[graph_of(p)->values.data[in].op].attrs = attrs;
    berth_tensor *packed = berth_arena_new(module->arena, berth_tensor);
    *packed = (berth_tensor){.dtype = BERTH_DTYPE_F32,
                             .rank = 3,
                             .data = berth_packing_add_winograd(p->packing, weights, m)};
    memcpy(packed->dims, weight_dims, sizeof(weight_dims));
    berth_value_id u = berth_graph_insert_constant(module, p->main, id, packed, op.loc);
    graph_of(p)->values.data[u].type =
        berth_type_tensor_layout(module, BERTH_DTYPE_F32, 3, weight_dims,
                                 berth_module_intern(module, BERTH_WINOGRAD_WEIGHTS_TAG));
    graph_of(p)->values.data[u].device = graph_of(p)->values.data[op.outputs[0]].device;
    berth_value_id sum = berth_layout__insert(
        p, id, BERTH_OP_WINOGRAD_MATMUL, (berth_value_id[]){in, u}, 2,
        berth_type_tensor_layout(module, BERTH_DTYPE_F32, 3, sum_dims, by_tile), id);
    berth_value_id bias_value = bias ? packed_constant(p, bias, blocks->bias_tag, id) : BERTH_NONE;
    berth_attrs last = {0};
    berth_attrs_set_int(module, &last, "tile", m);
    berth_attrs_set_ints(module, &last, "output_shape", out.dims, 4);
    berth_op *self = &graph_of(p)->ops.data[id];
    self->kind = BERTH_OP_WINOGRAD_OUTPUT;
    self->inputs[0] = sum;
    self->inputs[1] = bias_value;
    self->input_count = bias ? 2 : 1;
    self->attrs = last;
    set_layout(p, op.outputs[0], blocked_by(p, blocks->output));
}

berth_status berth_layout__conv(pass *p, berth_op_id id, bool *out_done) {
    berth_op op = graph_of(p)->ops.data[id];
    *out_done = false;
    const berth_tensor *weights = berth_graph_raw_constant_of(p->module, graph_of(p), op.inputs[1]);
    bool has_bias = op.input_count > 2 && op.inputs[2] != BERTH_NONE;
    const berth_tensor *bias =
        has_bias ? berth_graph_raw_constant_of(p->module, graph_of(p), op.inputs[2]) : NULL;
    if (!weights || (has_bias && !bias) || !is_f32(p, op.inputs[0], 4) ||
        !is_f32(p, op.outputs[0], 4))
        return BERTH_OK;
    if (weights->dtype != BERTH_DTYPE_F32 || weights->rank != 4 || type_of(p, op.inputs[1])->layout)
        return BERTH_OK;
    berth_window w;
    BERTH_TRY(berth_window_resolve(p->module, &op, type_of(p, op.inputs[0])->dims, 4,
                                   weights->dims + 2, &w));
    conv_blocks blocks;
    if (!choose_blocks(p, id, &w, berth_layout__block(p, op.inputs[0]), weights->dims[1],
                       weights->dims[0], &blocks))
        return BERTH_OK;
    int64_t tile = 0;
    if (p->winograd)
        tile = berth_winograd_choose(&w, weights->dims[1], weights->dims[0], lanes_of(p, id));
    if (tile && (!bias || bias->rank == 1)) {
        make_winograd(p, id, weights, bias, &w, &blocks, tile);
        *out_done = true;
        return BERTH_OK;
    }
    berth_str_id layout = blocks.input ? blocked_by(p, blocks.input) : 0;
    berth_value_id x = in_layout(p, op.inputs[0], layout, id, id);
    x = padded_input(p, id, x, &w);
    berth_value_id packed = packed_constant(p, weights, blocks.weights_tag, id);
    if (packed == BERTH_NONE) return BERTH_OK;
    set_input(p, id, 0, x);
    set_input(p, id, 1, packed);
    if (has_bias && bias->rank == 1)
        set_input(p, id, 2, packed_constant(p, bias, blocks.bias_tag, id));
    clear_padding(p, id);
    set_layout(p, op.outputs[0], blocked_by(p, blocks.output));
    *out_done = true;
    return BERTH_OK;
}

// ---- what stays blocked
// ---------------------------------------------------------------------------------------------

static bool same_dims(const berth_type *a, const berth_type *b) {
    return a->rank == b->rank &&
           memcmp(a->dims, b->dims, (size_t)a->rank * sizeof(a->dims[0])) == 0;
}

static bool is_blocked(const pass *p, berth_value_id value) {
    return berth_layout__block(p, value) != 0;
}

// Elementwise on at least one blocked operand: those of the result's shape become blocked, smaller
// ones stay plain.
static bool convert_elementwise(pass *p, berth_op_id id) {
    berth_op op = graph_of(p)->ops.data[id];
    if (op.output_count != 1) return false;
    const berth_type out = *type_of(p, op.outputs[0]);
    int64_t block = 0;  // the largest
    if (!berth_type_is_static(&out) || out.rank != 4) return false;
    for (uint32_t i = 0; i < op.input_count; ++i) {
        if (op.inputs[i] == BERTH_NONE) continue;
        bool full = same_dims(type_of(p, op.inputs[i]), &out);
        int64_t own = berth_layout__block(p, op.inputs[i]);
        if (own && !full) return false;
        if (own > block) block = own;
    }
    if (!block) return false;
    for (uint32_t i = 0; i < op.input_count; ++i)
        if (op.inputs[i] != BERTH_NONE && same_dims(type_of(p, op.inputs[i]), &out))
            set_input(p, id, i, in_layout(p, op.inputs[i], blocked_by(p, block), id, id));
    set_layout(p, op.outputs[0], blocked_by(p, block));
    return true;
}

// A window over plain rows is no work for vectors: its input is put in blocks once.
static bool convert_pool(pass *p, berth_op_id id) {
    berth_op op = graph_of(p)->ops.data[id];
    bool second = op.output_count > 1 && op.outputs[1] != BERTH_NONE;
    if (second || !is_f32(p, op.outputs[0], 4) || !is_f32(p, op.inputs[0], 4)) return false;
    if (!is_blocked(p, op.inputs[0])) {
        int64_t channels = type_of(p, op.inputs[0])->dims[1];
        bool window = op.kind == BERTH_OP_MAX_POOL || op.kind == BERTH_OP_AVERAGE_POOL;
        if (!window || channels % BLOCK || type_of(p, op.inputs[0])->layout) return false;
        berth_str_id layout = blocked_by(p, block_for(p, id, channels));
        set_input(p, id, 0, in_layout(p, op.inputs[0], layout, id, id));
        op = graph_of(p)->ops.data[id];
    }
    set_layout(p, op.outputs[0], type_of(p, op.inputs[0])->layout);
    return true;
}

// Concatenation of channels in whole blocks.
static bool convert_concat(pass *p, berth_op_id id) {
    berth_op op = graph_of(p)->ops.data[id];
    int64_t axis = berth_attrs_int(p->module, &op.attrs, "axis", 0);
    if ((axis != 1 && axis != -3) || !is_f32(p, op.outputs[0], 4)) return false;
    uint32_t blocked = 0;
    int64_t block = WIDE_BLOCK;  // the largest that all parts fill, and that one of them has
    int64_t largest = 0;
    for (uint32_t i = 0; i < op.input_count; ++i) {
        int64_t channels = type_of(p, op.inputs[i])->dims[1];
        int64_t own = berth_layout__block(p, op.inputs[i]);
        if (channels % BLOCK) return false;
        if (channels % WIDE_BLOCK) block = BLOCK;
        if (own > largest) largest = own;
        blocked += own != 0;
    }
    if (blocked * 2 < op.input_count) return false;
    if (block > largest) block = largest;
    for (uint32_t i = 0; i < op.input_count; ++i)
        set_input(p, id, i, in_layout(p, op.inputs[i], blocked_by(p, block), id, id));
    set_layout(p, op.outputs[0], blocked_by(p, block));
    return true;
}

// ---- matrices
// -------------------------------------------------------------------------------------------------------

void berth_layout__matrix(pass *p, berth_op_id id) {
    berth_op op = graph_of(p)->ops.data[id];
    const berth_tensor *weights = berth_graph_raw_constant_of(p->module, graph_of(p), op.inputs[1]);
    if (!weights || weights->dtype != BERTH_DTYPE_F32 || weights->rank != 2 ||
        type_of(p, op.inputs[1])->layout)
        return;
    bool transposed =
        op.kind == BERTH_OP_GEMM && berth_attrs_int(p->module, &op.attrs, "transB", 0) != 0;
    int64_t columns = weights->dims[transposed ? 0 : 1];
    if (columns < BLOCK || !is_f32(p, op.inputs[0], -1)) return;
    berth_value_id packed = packed_constant(p, weights, transposed ? "Ab16a" : "Ba16b", id);
    if (packed != BERTH_NONE) set_input(p, id, 1, packed);
}

// ---- pass
// -----------------------------------------------------------------------------------------------------------

static void make_plain(pass *p, berth_op_id id) {
    for (uint32_t i = 0; i < graph_of(p)->ops.data[id].input_count; ++i) {
        berth_value_id value = graph_of(p)->ops.data[id].inputs[i];
        if (is_blocked(p, value)) set_input(p, id, i, in_layout(p, value, 0, id, id));
    }
}

static berth_status convert(pass *p, berth_op_id id) {
    berth_op_kind kind = graph_of(p)->ops.data[id].kind;
    bool done = false;
    if (kind == BERTH_OP_CONSTANT) return BERTH_OK;
    if (on_cpu(p, id)) {
        if (kind == BERTH_OP_CONV_INTEGER) {
            BERTH_TRY(berth_layout__conv_integer(p, id));
            kind = graph_of(p)->ops.data[id].kind;
        }
        if (kind == BERTH_OP_MATMUL_INTEGER) {
            make_plain(p, id);
            berth_layout__matmul_integer(p, id);
        }
        if (kind == BERTH_OP_CONV)
            BERTH_TRY(berth_layout__conv(p, id, &done));
        else if (kind == BERTH_OP_MAX_POOL || kind == BERTH_OP_AVERAGE_POOL ||
                 kind == BERTH_OP_GLOBAL_AVERAGE_POOL || kind == BERTH_OP_GLOBAL_MAX_POOL)
            done = convert_pool(p, id);
        else if (kind == BERTH_OP_CONCAT)
            done = convert_concat(p, id);
        else if (berth_op_has(kind, BERTH_TRAIT_ELEMENTWISE))
            done = convert_elementwise(p, id);
        else if (kind == BERTH_OP_MATMUL || kind == BERTH_OP_GEMM)
            berth_layout__matrix(p, id);
    }
    if (!done) make_plain(p, id);
    return BERTH_OK;
}

berth_status berth_pass_layout_cpu(berth_module *module, berth_func_id main,
                                   const berth_multi_target *target, bool winograd,
                                   berth_packing *packing) {
    berth_graph *graph = berth_graph_get(module, main);
    pass p = {.module = module,
              .main = main,
              .target = target,
              .scratch = berth_arena_create_child(module->arena)};
    p.winograd = winograd;
    p.packing = packing;
    p.blocked = berth_module_intern(module, "aBcd8b");
    p.blocked_wide = berth_module_intern(module, "aBcd16b");
    p.value_count = graph->values.count;
    p.only_user = find_only_users(graph, p.scratch);
    p.other = berth_arena_new_array(p.scratch, berth_value_id, p.value_count + 1);
    memset(p.other, 0xff, p.value_count * sizeof(*p.other));
    uint32_t op_count = graph->regions.data[0].ops.count;
    berth_op_id *ops = berth_arena_new_array(p.scratch, berth_op_id, op_count + 1);
    if (op_count) memcpy(ops, graph->regions.data[0].ops.data, op_count * sizeof(*ops));
    berth_status status = BERTH_OK;
    berth_graph_begin_edit(graph);
    for (uint32_t i = 0; i < op_count && !status; ++i) status = convert(&p, ops[i]);
    berth_graph_end_edit(graph_of(&p));
    uint32_t results = graph_of(&p)->regions.data[0].results.count;
    for (uint32_t i = 0; i < results && !status; ++i) {
        berth_value_id value = graph_of(&p)->regions.data[0].results.data[i];
        if (!is_blocked(&p, value)) continue;
        berth_value_id plain =
            in_layout(&p, value, 0, BERTH_NONE, graph_of(&p)->values.data[value].op);
        graph_of(&p)->values.data[plain].name = graph_of(&p)->values.data[value].name;
        graph_of(&p)->regions.data[0].results.data[i] = plain;
    }
    berth_arena_destroy(p.scratch);
    if (!status) berth_graph_remove_dead(module, main);
    return status;
}
