#include "compiler/passes/slice_channels.h"

#include <string.h>

#include "compiler/passes/rewrite.h"
#include "ir/graph/op_params.h"
#include "planner/planner.h"

// Of the budget: private buffers of kernels and the rounding of places.
#define SPARE_BYTES 8192

enum { most_ops = 24 };

typedef struct slicer {
    berth_rewriter r;
    const berth_multi_target *target;
    berth_op_id *only_user;      // per value of the graph as it was; BERTH_NONE = none, or several
    bool *is_result;             // per value
    uint32_t *place, *last_use;  // per operation its place in the order; per value the last user's
    uint64_t io_bytes, input_bytes;
    uint64_t least_bytes;  // of the budget: no plan needs less, however many slices there are
} slicer;

// From the convolution to the last elementwise operation behind the depthwise one.
typedef struct chain {
    berth_op_id ops[most_ops];
    uint32_t through[most_ops];  // which operand comes from the one before
    uint32_t count, depthwise;   // index
    int64_t channels;
} chain;

static berth_graph *graph_of(const slicer *s) {
    return berth_graph_get(s->r.module, s->r.function);
}

static const berth_type *type_of(const slicer *s, berth_value_id value) {
    return berth_type_get(s->r.module, graph_of(s)->values.data[value].type);
}

static const berth_tensor *constant_of(const slicer *s, berth_value_id value) {
    return value == BERTH_NONE ? NULL
                               : berth_graph_raw_constant_of(s->r.module, graph_of(s), value);
}

static uint64_t bytes_of(const slicer *s, berth_value_id value) {
    const berth_type *type = type_of(s, value);
    uint64_t bytes = berth_dtype_size_bytes(type->dtype);
    for (int i = 0; i < type->rank; ++i) bytes *= (uint64_t)(type->dims[i] > 0 ? type->dims[i] : 1);
    return bytes;
}

static bool is_convolution(berth_op_kind kind) {
    return kind == BERTH_OP_CONV || kind == BERTH_OP_CONV_INTEGER;
}

static int64_t group_of(const slicer *s, const berth_op *op) {
    return berth_attrs_int(s->r.module, &op->attrs, "group", 1);
}

// ---- constants of some channels -----------------------------------------------------------------

// The dimension of operand `i` that is the channel: -1 = it has none, -2 = it is none of the forms
// that can be sliced.
static int channel_dim(const slicer *s, const chain *c, const berth_op *op, uint32_t i) {
    const berth_tensor *held = constant_of(s, op->inputs[i]);
    if (!held) return -2;
    int64_t count = berth_tensor_element_count(held);
    if (is_convolution(op->kind) && i == 1) return held->dims[0] == c->channels ? 0 : -2;
    if (count == 1) return -1;
    if (count != c->channels) return -2;
    int rank = type_of(s, op->outputs[0])->rank;
    int at = is_convolution(op->kind) ? held->rank - 1 : held->rank - (rank - 1);
    return at >= 0 && held->dims[at] == count ? at : -2;
}

// ---- chains -------------------------------------------------------------------------------------

// The one operand of an elementwise operation that is no constant; false: there are more, or constants
// that are not per channel.
static bool goes_through(const slicer *s, const chain *c, berth_op_id id, uint32_t *out_operand) {
    const berth_op *op = &graph_of(s)->ops.data[id];
    uint32_t found = BERTH_NONE;
    if (!berth_op_has(op->kind, BERTH_TRAIT_ELEMENTWISE) || op->output_count != 1) return false;
    for (uint32_t i = 0; i < op->input_count; ++i) {
        if (op->inputs[i] == BERTH_NONE) continue;
        if (!constant_of(s, op->inputs[i])) {
            if (found != BERTH_NONE) return false;
            found = i;
        } else if (channel_dim(s, c, op, i) == -2) {
            return false;
        }
    }
    if (found == BERTH_NONE) return false;
    const berth_type *x = type_of(s, op->inputs[found]), *y = type_of(s, op->outputs[0]);
    *out_operand = found;
    return x->rank == y->rank &&
           memcmp(x->dims, y->dims, (size_t)x->rank * sizeof(x->dims[0])) == 0;
}

static bool has_constant_operands(const slicer *s, const chain *c, const berth_op *op) {
    for (uint32_t i = 1; i < op->input_count; ++i)
        if (op->inputs[i] != BERTH_NONE && channel_dim(s, c, op, i) == -2) return false;
    return true;
}

static void put_first(chain *c, berth_op_id id, uint32_t operand) {
    memmove(c->ops + 1, c->ops, c->count * sizeof(c->ops[0]));
    memmove(c->through + 1, c->through, c->count * sizeof(c->through[0]));
    c->ops[0] = id;
    c->through[0] = operand;
    c->count++;
    c->depthwise++;
}

static bool find_chain(const slicer *s, berth_op_id id, chain *c) {
    const berth_graph *graph = graph_of(s);
    const berth_op *op = &graph->ops.data[id];
    if (!is_convolution(op->kind)) return false;
    const berth_type *x = type_of(s, op->inputs[0]);
    if (x->rank != 4 || x->dims[0] != 1 || !berth_type_is_static(x)) return false;
    *c = (chain){.ops = {id}, .count = 1, .channels = x->dims[1]};
    if (c->channels < 4 || group_of(s, op) != c->channels || !has_constant_operands(s, c, op))
        return false;
    for (berth_value_id at = op->inputs[0];;) {
        berth_op_id from = graph->values.data[at].op;
        uint32_t operand = 0;
        if (from == BERTH_NONE || s->only_user[at] == BERTH_NONE || c->count == most_ops)
            return false;
        const berth_op *before = &graph->ops.data[from];
        if (is_convolution(before->kind)) {
            if (group_of(s, before) != 1 || !has_constant_operands(s, c, before)) return false;
            put_first(c, from, 0);
            break;
        }
        if (!goes_through(s, c, from, &operand)) return false;
        put_first(c, from, operand);
        at = before->inputs[operand];
    }
    for (;;) {
        berth_value_id at = graph->ops.data[c->ops[c->count - 1]].outputs[0];
        berth_op_id next = s->only_user[at];
        uint32_t operand = 0;
        if (next == BERTH_NONE || c->count == most_ops || !goes_through(s, c, next, &operand))
            return true;
        c->ops[c->count] = next;
        c->through[c->count++] = operand;
    }
}

// ---- slices -------------------------------------------------------------------------------------

// The largest value of the chain that is between the convolutions, as it is stored: the last in front
// of the depthwise one.
static uint64_t between_bytes(const slicer *s, const chain *c) {
    return bytes_of(s, graph_of(s)->ops.data[c->ops[c->depthwise]].inputs[0]);
}

// Values that are made before the chain and used behind it: what a patch of the image or a skip
// connection keeps. The chain's own operand is not among them.
static uint64_t waiting_bytes(const slicer *s, const chain *c) {
    const berth_graph *graph = graph_of(s);
    const berth_region *root = &graph->regions.data[0];
    uint32_t first = s->place[c->ops[0]], last = s->place[c->ops[c->count - 1]];
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < first; ++i) {
        const berth_op *op = &graph->ops.data[root->ops.data[i]];
        for (uint32_t k = 0; op->kind != BERTH_OP_CONSTANT && k < op->output_count; ++k) {
            berth_value_id value = op->outputs[k];
            if (s->last_use[value] > last && !s->is_result[value] &&
                value != graph->ops.data[c->ops[0]].inputs[0])
                bytes += bytes_of(s, value);
        }
    }
    return bytes;
}

// The next larger number of slices that are possible; 0 = none.
static int64_t more_slices(const slicer *s, const chain *c, uint32_t device, int64_t than) {
    // A kernel binds all parts and the whole.
    int64_t most = berth_target_max_bindings(s->target->devices[device].target) - 1;
    for (int64_t n = than + 1; n <= c->channels / 2 && n <= most; ++n)
        if (c->channels % n == 0 && c->channels / n % 2 == 0) return n;
    return 0;
}

static uint32_t device_of(const slicer *s, const chain *c) {
    return berth_plan_device_of(s->r.module, s->target, graph_of(s)->ops.data[c->ops[0]].device);
}

// As few slices as leave room; 1 = none are needed. Where the budget is less than any plan needs, as many as
// the least one takes: more would be steps for nothing.
static int64_t choose_slices(const slicer *s, const chain *c) {
    const berth_graph *graph = graph_of(s);
    berth_value_id x = graph->ops.data[c->ops[0]].inputs[0];
    uint32_t device = device_of(s, c);
    if (device == BERTH_NO_INDEX) return 1;
    uint64_t budget = s->target->memories[s->target->devices[device].own_memory].budget_bytes;
    berth_value_id y = graph->ops.data[c->ops[c->count - 1]].outputs[0];
    uint64_t other =
        s->io_bytes + SPARE_BYTES + waiting_bytes(s, c) + (s->is_result[y] ? 0 : bytes_of(s, y));
    if (graph->values.data[x].op != BERTH_NONE) other += bytes_of(s, x);
    uint64_t between = between_bytes(s, c);
    if (budget == 0) return 1;
    if (budget < s->least_bytes) budget = s->least_bytes;
    int64_t best = 1;
    for (int64_t n = 1; n && between / (uint64_t)best + other > budget;
         n = more_slices(s, c, device, n))
        best = n;
    return best;
}

// ---- the least that there is a plan for ---------------------------------------------------------

// Bytes that a convolution certainly finds in memory as its operand: what another one made, in the smallest of
// the types that it has on the way. What comes from the model's input may be read there.
static uint64_t operand_bytes(const slicer *s, berth_value_id operand) {
    const berth_graph *graph = graph_of(s);
    uint64_t least = bytes_of(s, operand);
    for (berth_value_id at = operand;;) {
        berth_op_id from = graph->values.data[at].op;
        if (from == BERTH_NONE) return 0;
        const berth_op *op = &graph->ops.data[from];
        if (is_convolution(op->kind)) return least;
        if (!berth_op_has(op->kind, BERTH_TRAIT_ELEMENTWISE)) return 0;
        uint32_t i = 0;
        while (i < op->input_count &&
               (op->inputs[i] == BERTH_NONE || constant_of(s, op->inputs[i])))
            ++i;
        if (i == op->input_count) return 0;
        at = op->inputs[i];
        if (bytes_of(s, at) < least) least = bytes_of(s, at);
    }
}

// With as many slices as possible, `between` the convolutions of a chain.
static uint64_t least_between(const slicer *s, const chain *c) {
    uint32_t device = device_of(s, c);
    int64_t best = 1;
    for (int64_t n = 1; n && device != BERTH_NO_INDEX; n = more_slices(s, c, device, n)) best = n;
    return best > 1 ? between_bytes(s, c) / (uint64_t)best : 0;
}

// A lower bound of what all plans need: the model's inputs, and an operand, or what is between beside it.
static void find_least(slicer *s, const berth_op_id *ids, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
        const berth_op *op = &graph_of(s)->ops.data[ids[i]];
        chain c;
        uint64_t bytes = 0;
        if (!is_convolution(op->kind)) continue;
        if (find_chain(s, ids[i], &c))
            bytes =
                operand_bytes(s, graph_of(s)->ops.data[c.ops[0]].inputs[0]) + least_between(s, &c);
        else
            bytes = operand_bytes(s, op->inputs[0]);
        if (s->input_bytes + bytes > s->least_bytes) s->least_bytes = s->input_bytes + bytes;
    }
}

static void put_on(slicer *s, berth_value_id value, berth_value_id like) {
    berth_graph *graph = graph_of(s);
    graph->values.data[value].device = graph->values.data[like].device;
}

// The rows of the model's input that a patch reads (patches.h), once more: each slice takes them where
// they are (passes/fuse.h), and they need no place of their own.
static berth_status copy_window(slicer *s, berth_op_id position, berth_value_id *value) {
    const berth_graph *graph = graph_of(s);
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

static berth_status copy_op(slicer *s, const chain *c, uint32_t index, berth_op_id position,
                            int64_t first, int64_t count, berth_value_id *at) {
    berth_arena *arena = s->r.module->arena;
    const berth_op op = graph_of(s)->ops.data[c->ops[index]];
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
            berth_rewriter_take(arena, constant_of(s, op.inputs[i]), dim, first, count);
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

static berth_status slice(slicer *s, const chain *c, int64_t slices) {
    berth_op_id position = c->ops[c->count - 1];
    berth_value_id result = graph_of(s)->ops.data[position].outputs[0];
    berth_loc_id loc = graph_of(s)->ops.data[position].loc;
    berth_value_id *parts =
        berth_arena_new_array(s->r.module->arena, berth_value_id, (size_t)slices);
    int64_t count = c->channels / slices;
    for (int64_t i = 0; i < slices; ++i)
        for (uint32_t k = 0; k < c->count; ++k)
            BERTH_TRY(copy_op(s, c, k, position, i * count, count, &parts[i]));
    berth_attrs axis = {0};
    berth_attrs_set_int(s->r.module, &axis, "axis", 1);
    berth_value_id whole = BERTH_NONE;
    BERTH_TRY(berth_rewriter_insert(&s->r, position, BERTH_OP_CONCAT, parts, (uint32_t)slices,
                                    &axis, loc, &whole));
    put_on(s, whole, result);
    berth_rewriter_replace(&s->r, result, whole);
    return BERTH_OK;
}

static void find_users(slicer *s) {
    const berth_graph *graph = graph_of(s);
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
        s->input_bytes += bytes_of(s, root->params.data[i]);
    s->io_bytes = s->input_bytes;
    for (uint32_t i = 0; i < root->results.count; ++i) {
        s->only_user[root->results.data[i]] = BERTH_NONE;
        s->is_result[root->results.data[i]] = true;
        s->io_bytes += bytes_of(s, root->results.data[i]);
    }
}

berth_status berth_pass_slice_channels(berth_module *module, berth_func_id main,
                                       const berth_multi_target *target,
                                       uint64_t least_budget_bytes, const char **out_slices) {
    *out_slices = "";
    if (target->executor != BERTH_EXECUTOR_AOT) return BERTH_OK;
    slicer s = {.target = target, .least_bytes = least_budget_bytes};
    berth_rewriter_begin(&s.r, module, main);
    find_users(&s);
    const berth_region *root = &graph_of(&s)->regions.data[0];
    uint32_t count = root->ops.count;
    berth_op_id *ids =
        berth_arena_copy(module->arena, root->ops.data, count * sizeof(*root->ops.data));
    find_least(&s, ids, count);
    berth_strbuf text = berth_strbuf_make(module->arena);
    for (uint32_t i = 0; i < count; ++i) {
        chain c;
        if (!find_chain(&s, ids[i], &c)) continue;
        int64_t slices = choose_slices(&s, &c);
        if (slices <= 1) continue;
        berth_strbuf_addf(&text, "%u:%lld ", ids[i], (long long)slices);
        BERTH_TRY(slice(&s, &c, slices));
    }
    *out_slices = berth_strbuf_text(&text);
    berth_rewriter_finish(&s.r);
    return BERTH_OK;
}
