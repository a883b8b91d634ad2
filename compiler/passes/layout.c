#include "compiler/passes/layout.h"

#include <string.h>

#include "compiler/passes/layout_private.h"
#include "compiler/passes/winograd.h"
#include "ir/layout.h"
#include "ir/op_params.h"
#include "planner/planner.h"

#define BLOCK 8          // channels of a block of activations
#define WEIGHT_BLOCK 16  // outputs of a block of weights
#define BLOCKED "aBcd8b"

typedef berth_layout_pass pass;

static void set_layout(pass *p, berth_value_id value, berth_str_id layout) {
    const berth_type type = *type_of(p, value);
    graph_of(p)->values.data[value].type =
        berth_type_tensor_layout(p->module, type.dtype, type.rank, type.dims, layout);
}

// Processor cores, also behind OpenCL (where no work-items run in step beside each other).
static bool on_cpu(const pass *p, berth_op_id id) {
    uint32_t device = berth_plan_device_of(p->module, p->target, graph_of(p)->ops.data[id].device);
    if (device == BERTH_NO_INDEX) return false;
    const berth_target *target = p->target->devices[device].target;
    return target->kind == BERTH_DEVICE_CPU ||
           (target->kind == BERTH_DEVICE_OPENCL && target->subgroup_size == 1);
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
    size_t bytes = (size_t)berth_layout_element_count(&layout, tensor->dims) *
                   berth_dtype_size_bytes(tensor->dtype);
    packed->data = berth_arena_alloc_aligned(p->module->arena, bytes ? bytes : 1, 128);
    berth_layout_pack(&layout, tensor, packed->data);
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

// Tag of the weights, or NULL when this convolution has no blocked form. *out_blocked_input says
// how x must come.
static const char *weights_tag(const berth_window *w, int64_t inputs, int64_t outputs,
                               bool *out_blocked_input) {
    int64_t group_outputs = outputs / w->group;
    *out_blocked_input = true;
    if (w->group > 1 && inputs == 1 && group_outputs == 1)
        return outputs % BLOCK == 0 ? "Abcd8a" : NULL;
    bool blocks = inputs % BLOCK == 0;
    if (w->group > 1) {
        if (!blocks || group_outputs % BLOCK) return NULL;
        return group_outputs % WEIGHT_BLOCK == 0 ? "ABcd8b16a" : "ABcd8b8a";
    }
    bool wide = outputs > BLOCK;
    if (blocks) return wide ? "ABcd8b16a" : "ABcd8b8a";
    *out_blocked_input = false;
    return wide ? "Abcd16a" : "Abcd8a";
}

// Three operations in place of a 3 x 3 convolution: the operation itself becomes the last one.
static void make_winograd(pass *p, berth_op_id id, const berth_tensor *weights,
                          const berth_tensor *bias, const berth_window *w, int64_t m) {
    berth_module *module = p->module;
    const berth_op op = graph_of(p)->ops.data[id];
    const berth_type out = *type_of(p, op.outputs[0]);
    berth_value_id x = in_layout(p, op.inputs[0], p->blocked, id, id);
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
                             .data = berth_winograd_weights(weights, m, module->arena)};
    memcpy(packed->dims, weight_dims, sizeof(weight_dims));
    berth_value_id u = berth_graph_insert_constant(module, p->main, id, packed, op.loc);
    graph_of(p)->values.data[u].type =
        berth_type_tensor_layout(module, BERTH_DTYPE_F32, 3, weight_dims,
                                 berth_module_intern(module, BERTH_WINOGRAD_WEIGHTS_TAG));
    graph_of(p)->values.data[u].device = graph_of(p)->values.data[op.outputs[0]].device;
    berth_value_id sum = berth_layout__insert(
        p, id, BERTH_OP_WINOGRAD_MATMUL, (berth_value_id[]){in, u}, 2,
        berth_type_tensor_layout(module, BERTH_DTYPE_F32, 3, sum_dims, by_tile), id);
    berth_value_id bias_value = bias ? packed_constant(p, bias, "A8a", id) : BERTH_NONE;
    berth_attrs last = {0};
    berth_attrs_set_int(module, &last, "tile", m);
    berth_attrs_set_ints(module, &last, "output_shape", out.dims, 4);
    berth_op *self = &graph_of(p)->ops.data[id];
    self->kind = BERTH_OP_WINOGRAD_OUTPUT;
    self->inputs[0] = sum;
    self->inputs[1] = bias_value;
    self->input_count = bias ? 2 : 1;
    self->attrs = last;
    set_layout(p, op.outputs[0], p->blocked);
}

berth_status berth_layout__conv(pass *p, berth_op_id id, bool *out_done) {
    berth_op op = graph_of(p)->ops.data[id];
    *out_done = false;
    const berth_tensor *weights = berth_graph_constant_of(p->module, graph_of(p), op.inputs[1]);
    bool has_bias = op.input_count > 2 && op.inputs[2] != BERTH_NONE;
    const berth_tensor *bias =
        has_bias ? berth_graph_constant_of(p->module, graph_of(p), op.inputs[2]) : NULL;
    if (!weights || (has_bias && !bias) || !is_f32(p, op.inputs[0], 4) ||
        !is_f32(p, op.outputs[0], 4))
        return BERTH_OK;
    if (weights->dtype != BERTH_DTYPE_F32 || weights->rank != 4 || type_of(p, op.inputs[1])->layout)
        return BERTH_OK;
    berth_window w;
    BERTH_TRY(berth_window_resolve(p->module, &op, type_of(p, op.inputs[0])->dims, 4,
                                   weights->dims + 2, &w));
    bool blocked_input = false;
    const char *tag = weights_tag(&w, weights->dims[1], weights->dims[0], &blocked_input);
    if (!tag) return BERTH_OK;
    int64_t tile = p->winograd ? berth_winograd_choose(&w, weights->dims[1], weights->dims[0]) : 0;
    if (tile && (!bias || bias->rank == 1)) {
        make_winograd(p, id, weights, bias, &w, tile);
        *out_done = true;
        return BERTH_OK;
    }
    berth_value_id x = in_layout(p, op.inputs[0], blocked_input ? p->blocked : 0, id, id);
    x = padded_input(p, id, x, &w);
    berth_value_id packed = packed_constant(p, weights, tag, id);
    if (packed == BERTH_NONE) return BERTH_OK;
    set_input(p, id, 0, x);
    set_input(p, id, 1, packed);
    if (has_bias && bias->rank == 1) set_input(p, id, 2, packed_constant(p, bias, "A8a", id));
    clear_padding(p, id);
    set_layout(p, op.outputs[0], p->blocked);
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
    return value != BERTH_NONE && type_of(p, value)->layout == p->blocked;
}

// Elementwise on at least one blocked operand: those of the result's shape become blocked, smaller
// ones stay plain.
static bool convert_elementwise(pass *p, berth_op_id id) {
    berth_op op = graph_of(p)->ops.data[id];
    if (op.output_count != 1) return false;
    const berth_type out = *type_of(p, op.outputs[0]);
    bool any = false;
    if (!berth_type_is_static(&out) || out.rank != 4) return false;
    for (uint32_t i = 0; i < op.input_count; ++i) {
        if (op.inputs[i] == BERTH_NONE) continue;
        bool full = same_dims(type_of(p, op.inputs[i]), &out);
        if (is_blocked(p, op.inputs[i]) && !full) return false;
        any |= is_blocked(p, op.inputs[i]);
    }
    if (!any) return false;
    for (uint32_t i = 0; i < op.input_count; ++i)
        if (op.inputs[i] != BERTH_NONE && same_dims(type_of(p, op.inputs[i]), &out))
            set_input(p, id, i, in_layout(p, op.inputs[i], p->blocked, id, id));
    set_layout(p, op.outputs[0], p->blocked);
    return true;
}

static bool convert_pool(pass *p, berth_op_id id) {
    berth_op op = graph_of(p)->ops.data[id];
    bool second = op.output_count > 1 && op.outputs[1] != BERTH_NONE;
    if (!is_blocked(p, op.inputs[0]) || second || !is_f32(p, op.outputs[0], 4)) return false;
    set_layout(p, op.outputs[0], p->blocked);
    return true;
}

// Concatenation of channels in whole blocks.
static bool convert_concat(pass *p, berth_op_id id) {
    berth_op op = graph_of(p)->ops.data[id];
    int64_t axis = berth_attrs_int(p->module, &op.attrs, "axis", 0);
    if ((axis != 1 && axis != -3) || !is_f32(p, op.outputs[0], 4)) return false;
    uint32_t blocked = 0;
    for (uint32_t i = 0; i < op.input_count; ++i) {
        if (type_of(p, op.inputs[i])->dims[1] % BLOCK) return false;
        blocked += is_blocked(p, op.inputs[i]);
    }
    if (blocked * 2 < op.input_count) return false;
    for (uint32_t i = 0; i < op.input_count; ++i)
        set_input(p, id, i, in_layout(p, op.inputs[i], p->blocked, id, id));
    set_layout(p, op.outputs[0], p->blocked);
    return true;
}

// ---- matrices
// -------------------------------------------------------------------------------------------------------

void berth_layout__matrix(pass *p, berth_op_id id) {
    berth_op op = graph_of(p)->ops.data[id];
    const berth_tensor *weights = berth_graph_constant_of(p->module, graph_of(p), op.inputs[1]);
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
                                   const berth_multi_target *target, bool winograd) {
    berth_graph *graph = berth_graph_get(module, main);
    pass p = {.module = module,
              .main = main,
              .target = target,
              .scratch = berth_arena_create_child(module->arena)};
    p.winograd = winograd;
    p.blocked = berth_module_intern(module, BLOCKED);
    p.value_count = graph->values.count;
    p.other = berth_arena_new_array(p.scratch, berth_value_id, p.value_count + 1);
    memset(p.other, 0xff, p.value_count * sizeof(*p.other));
    uint32_t op_count = graph->regions.data[0].ops.count;
    berth_op_id *ops = berth_arena_new_array(p.scratch, berth_op_id, op_count + 1);
    if (op_count) memcpy(ops, graph->regions.data[0].ops.data, op_count * sizeof(*ops));
    berth_status status = BERTH_OK;
    for (uint32_t i = 0; i < op_count && !status; ++i) status = convert(&p, ops[i]);
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
