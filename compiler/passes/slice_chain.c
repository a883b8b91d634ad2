// What runs in slices of channels: the operations and their constants, of some channels.
#include <string.h>

#include "compiler/passes/slice_private.h"
#include "ir/graph/op_params.h"
#include "planner/planner.h"

berth_graph *berth_slice__graph(const berth_slicer *s) {
    return berth_graph_get(s->r.module, s->r.function);
}

const berth_type *berth_slice__type(const berth_slicer *s, berth_value_id value) {
    return berth_type_get(s->r.module, berth_slice__graph(s)->values.data[value].type);
}

const berth_tensor *berth_slice__constant(const berth_slicer *s, berth_value_id value) {
    return value == BERTH_NONE
               ? NULL
               : berth_graph_raw_constant_of(s->r.module, berth_slice__graph(s), value);
}

uint64_t berth_slice__bytes(const berth_slicer *s, berth_value_id value) {
    const berth_type *type = berth_slice__type(s, value);
    uint64_t bytes = berth_dtype_size_bytes(type->dtype);
    for (int i = 0; i < type->rank; ++i) bytes *= (uint64_t)(type->dims[i] > 0 ? type->dims[i] : 1);
    return bytes;
}

bool berth_slice__is_convolution(berth_op_kind kind) {
    return kind == BERTH_OP_CONV || kind == BERTH_OP_CONV_INTEGER;
}

int64_t berth_slice__group(const berth_slicer *s, const berth_op *op) {
    return berth_attrs_int(s->r.module, &op->attrs, "group", 1);
}

uint32_t berth_slice__device(const berth_slicer *s, const berth_slice_chain *c) {
    berth_device_id device = berth_slice__graph(s)->ops.data[c->ops[0]].device;
    return berth_plan_device_of(s->r.module, s->target, device);
}

// ---- constants of some channels -----------------------------------------------------------------

static bool is_product(berth_op_kind kind) {
    return kind == BERTH_OP_MATMUL || kind == BERTH_OP_MATMUL_INTEGER;
}

// Whether a vector among the operands of a (de)quantisation is one of channels.
static bool is_per_channel(const berth_slicer *s, const berth_slice_chain *c, const berth_op *op,
                           int rank) {
    if (op->kind != BERTH_OP_QUANTIZE_LINEAR && op->kind != BERTH_OP_DEQUANTIZE_LINEAR) return true;
    int64_t axis = berth_attrs_int(s->r.module, &op->attrs, "axis", 1);
    return axis == c->axis || axis + rank == c->axis;
}

// The dimension of operand `i` that is the channel: -1 = it has none, -2 = it is none of the forms
// that can be sliced.
static int channel_dim(const berth_slicer *s, const berth_slice_chain *c, const berth_op *op,
                       uint32_t i) {
    const berth_tensor *held = berth_slice__constant(s, op->inputs[i]);
    if (!held) return -2;
    int64_t count = berth_tensor_element_count(held);
    int rank = berth_slice__type(s, op->outputs[0])->rank;
    bool convolution = berth_slice__is_convolution(op->kind), product = is_product(op->kind);
    if (convolution && i == 1) return held->dims[0] == c->channels ? 0 : -2;
    if (product && i == 1) return held->rank == 2 && held->dims[1] == c->channels ? 1 : -2;
    if (count == 1) return -1;
    if (count != c->channels || (product && i == 2)) return -2;  // a zero point of rows
    if (!is_per_channel(s, c, op, rank)) return -2;
    int at = convolution || product ? held->rank - 1 : held->rank - (rank - c->axis);
    return at >= 0 && held->dims[at] == count ? at : -2;
}

bool berth_slice__goes_through(const berth_slicer *s, const berth_slice_chain *c, berth_op_id id,
                               uint32_t *out_operand) {
    const berth_op *op = &berth_slice__graph(s)->ops.data[id];
    uint32_t found = BERTH_NONE;
    if (!berth_op_has(op->kind, BERTH_TRAIT_ELEMENTWISE) || op->output_count != 1) return false;
    for (uint32_t i = 0; i < op->input_count; ++i) {
        if (op->inputs[i] == BERTH_NONE) continue;
        if (!berth_slice__constant(s, op->inputs[i])) {
            if (found != BERTH_NONE) return false;
            found = i;
        } else if (channel_dim(s, c, op, i) == -2) {
            return false;
        }
    }
    if (found == BERTH_NONE) return false;
    const berth_type *x = berth_slice__type(s, op->inputs[found]),
                     *y = berth_slice__type(s, op->outputs[0]);
    *out_operand = found;
    return x->rank == y->rank &&
           memcmp(x->dims, y->dims, (size_t)x->rank * sizeof(x->dims[0])) == 0;
}

bool berth_slice__has_constant_operands(const berth_slicer *s, const berth_slice_chain *c,
                                        const berth_op *op) {
    for (uint32_t i = 1; i < op->input_count; ++i)
        if (op->inputs[i] != BERTH_NONE && channel_dim(s, c, op, i) == -2) return false;
    return true;
}

void berth_slice__extend(const berth_slicer *s, berth_slice_chain *c) {
    const berth_graph *graph = berth_slice__graph(s);
    while (c->count < BERTH_SLICE_MOST_OPS) {
        berth_value_id at = graph->ops.data[c->ops[c->count - 1]].outputs[0];
        berth_op_id next = s->only_user[at];
        uint32_t operand = 0;
        if (next == BERTH_NONE || !berth_slice__goes_through(s, c, next, &operand)) return;
        c->ops[c->count] = next;
        c->through[c->count++] = operand;
    }
}

// ---- slices ----------------------------------------------------------------------------------------

// Values that are made before the chain and used behind it: what a patch of the image or a skip
// connection keeps. The chain's own operand is not among them.
static uint64_t waiting_bytes(const berth_slicer *s, const berth_slice_chain *c) {
    const berth_graph *graph = berth_slice__graph(s);
    const berth_region *root = &graph->regions.data[0];
    uint32_t first = s->place[c->ops[0]], last = s->place[c->ops[c->count - 1]];
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < first; ++i) {
        const berth_op *op = &graph->ops.data[root->ops.data[i]];
        for (uint32_t k = 0; op->kind != BERTH_OP_CONSTANT && k < op->output_count; ++k) {
            berth_value_id value = op->outputs[k];
            if (s->last_use[value] > last && !s->is_result[value] &&
                value != graph->ops.data[c->ops[0]].inputs[0])
                bytes += berth_slice__bytes(s, value);
        }
    }
    return bytes;
}

uint64_t berth_slice__beside_bytes(const berth_slicer *s, const berth_slice_chain *c) {
    const berth_graph *graph = berth_slice__graph(s);
    berth_value_id x = graph->ops.data[c->ops[0]].inputs[0];
    berth_value_id y = graph->ops.data[c->ops[c->count - 1]].outputs[0];
    uint64_t bytes =
        s->io_bytes + waiting_bytes(s, c) + (s->is_result[y] ? 0 : berth_slice__bytes(s, y));
    return graph->values.data[x].op == BERTH_NONE ? bytes : bytes + berth_slice__bytes(s, x);
}

static void put_on(berth_slicer *s, berth_value_id value, berth_value_id like) {
    berth_graph *graph = berth_slice__graph(s);
    graph->values.data[value].device = graph->values.data[like].device;
}

// The rows of the model's input that a patch reads (patches.h), once more: each slice takes them where
// they are (passes/fuse.h), and they need no place of their own.
static berth_status copy_window(berth_slicer *s, berth_op_id position, berth_value_id *value) {
    const berth_graph *graph = berth_slice__graph(s);
    berth_value_id window = *value;
    berth_op_id id = graph->values.data[window].op;
    if (id == BERTH_NONE || s->only_user[window] == BERTH_NONE) return BERTH_OK;
    const berth_op op = graph->ops.data[id];
    if (op.kind != BERTH_OP_SLICE || graph->values.data[op.inputs[0]].op != BERTH_NONE)
        return BERTH_OK;
    BERTH_TRY(berth_rewriter_insert(&s->r, position, op.kind, op.inputs, op.input_count, &op.attrs,
                                    op.loc, value));
    put_on(s, *value, window);
    return BERTH_OK;
}

static berth_status copy_op(berth_slicer *s, const berth_slice_chain *c, uint32_t index,
                            berth_op_id position, int64_t first, int64_t count,
                            berth_value_id *at) {
    berth_arena *arena = s->r.module->arena;
    const berth_op op = berth_slice__graph(s)->ops.data[c->ops[index]];
    berth_value_id *inputs = berth_arena_new_array(arena, berth_value_id, op.input_count);
    berth_attrs attrs = {0};
    for (uint32_t i = 0; i < op.attrs.items.count; ++i)
        berth_attrs_set(s->r.module, &attrs,
                        berth_module_str(s->r.module, op.attrs.items.data[i].name),
                        op.attrs.items.data[i]);
    if (index == c->depthwise) berth_attrs_set_int(s->r.module, &attrs, "group", count);
    for (uint32_t i = 0; i < op.input_count; ++i) {
        inputs[i] = op.inputs[i];
        if (inputs[i] == BERTH_NONE || (index > 0 && i == c->through[index])) continue;
        if (index == 0 && i == 0) continue;
        int dim = channel_dim(s, c, &op, i);
        if (dim < 0) continue;
        berth_tensor part =
            berth_rewriter_take(arena, berth_slice__constant(s, op.inputs[i]), dim, first, count);
        inputs[i] = berth_rewriter_insert_constant(
            &s->r, position, berth_arena_copy(arena, &part, sizeof(part)), op.loc);
        put_on(s, inputs[i], op.inputs[i]);
    }
    if (index > 0) inputs[c->through[index]] = *at;
    if (index == 0) BERTH_TRY(copy_window(s, position, &inputs[0]));
    BERTH_TRY(berth_rewriter_insert(&s->r, position, op.kind, inputs, op.input_count, &attrs,
                                    op.loc, at));
    put_on(s, *at, op.outputs[0]);
    return BERTH_OK;
}

berth_status berth_slice__run(berth_slicer *s, const berth_slice_chain *c, int64_t at_once) {
    berth_op_id position = c->ops[c->count - 1];
    berth_value_id result = berth_slice__graph(s)->ops.data[position].outputs[0];
    berth_loc_id loc = berth_slice__graph(s)->ops.data[position].loc;
    int64_t slices = (c->channels + at_once - 1) / at_once;
    berth_value_id *parts =
        berth_arena_new_array(s->r.module->arena, berth_value_id, (size_t)slices);
    for (int64_t i = 0; i < slices; ++i) {
        int64_t first = i * at_once, left = c->channels - first;
        for (uint32_t k = 0; k < c->count; ++k)
            BERTH_TRY(
                copy_op(s, c, k, position, first, left < at_once ? left : at_once, &parts[i]));
    }
    berth_attrs axis = {0};
    berth_attrs_set_int(s->r.module, &axis, "axis", c->axis);
    berth_value_id whole = BERTH_NONE;
    BERTH_TRY(berth_rewriter_insert(&s->r, position, BERTH_OP_CONCAT, parts, (uint32_t)slices,
                                    &axis, loc, &whole));
    put_on(s, whole, result);
    berth_rewriter_replace(&s->r, result, whole);
    return BERTH_OK;
}

static void find_users(berth_slicer *s) {
    const berth_graph *graph = berth_slice__graph(s);
    const berth_region *root = &graph->regions.data[0];
    uint32_t *uses = berth_graph_count_uses(graph, s->r.module->arena);
    s->only_user = berth_arena_new_array(s->r.module->arena, berth_op_id, graph->values.count + 1);
    s->is_result = berth_arena_new_array(s->r.module->arena, bool, graph->values.count + 1);
    memset(s->only_user, 0xff, (graph->values.count + 1) * sizeof(*s->only_user));
    s->place = berth_arena_new_array(s->r.module->arena, uint32_t, graph->ops.count + 1);
    s->last_use = berth_arena_new_array(s->r.module->arena, uint32_t, graph->values.count + 1);
    for (uint32_t i = 0; i < root->ops.count; ++i) {
        const berth_op *op = &graph->ops.data[root->ops.data[i]];
        s->place[root->ops.data[i]] = i;
        for (uint32_t k = 0; k < op->input_count; ++k)
            if (op->inputs[k] != BERTH_NONE) s->last_use[op->inputs[k]] = i;
        for (uint32_t k = 0; k < op->input_count; ++k)
            if (op->inputs[k] != BERTH_NONE && uses[op->inputs[k]] == 1)
                s->only_user[op->inputs[k]] = root->ops.data[i];
    }
    for (uint32_t i = 0; i < root->params.count; ++i)
        s->input_bytes += berth_slice__bytes(s, root->params.data[i]);
    s->io_bytes = s->input_bytes;
    for (uint32_t i = 0; i < root->results.count; ++i) {
        s->only_user[root->results.data[i]] = BERTH_NONE;
        s->is_result[root->results.data[i]] = true;
        s->io_bytes += berth_slice__bytes(s, root->results.data[i]);
    }
}

void berth_slice__begin(berth_slicer *s, berth_module *module, berth_func_id main,
                        const berth_multi_target *target) {
    *s = (berth_slicer){.target = target};
    berth_rewriter_begin(&s->r, module, main);
    find_users(s);
}
