#include "compiler/passes/slice_channels.h"

#include <string.h>

#include "compiler/passes/slice_private.h"

// Of the budget: private buffers of kernels and the rounding of places.
#define SPARE_BYTES 8192

// ---- chains -------------------------------------------------------------------------------------

static void put_first(berth_slice_chain *c, berth_op_id id, uint32_t operand) {
    memmove(c->ops + 1, c->ops, c->count * sizeof(c->ops[0]));
    memmove(c->through + 1, c->through, c->count * sizeof(c->through[0]));
    c->ops[0] = id;
    c->through[0] = operand;
    c->count++;
    c->depthwise++;
}

static bool find_chain(const berth_slicer *s, berth_op_id id, berth_slice_chain *c) {
    const berth_graph *graph = berth_slice__graph(s);
    const berth_op *op = &graph->ops.data[id];
    if (!berth_slice__is_convolution(op->kind)) return false;
    const berth_type *x = berth_slice__type(s, op->inputs[0]);
    if (x->rank != 4 || x->dims[0] != 1 || !berth_type_is_static(x)) return false;
    *c = (berth_slice_chain){.ops = {id}, .count = 1, .channels = x->dims[1], .axis = 1};
    if (c->channels < 4 || berth_slice__group(s, op) != c->channels ||
        !berth_slice__has_constant_operands(s, c, op))
        return false;
    for (berth_value_id at = op->inputs[0];;) {
        berth_op_id from = graph->values.data[at].op;
        uint32_t operand = 0;
        if (from == BERTH_NONE || s->only_user[at] == BERTH_NONE ||
            c->count == BERTH_SLICE_MOST_OPS)
            return false;
        const berth_op *before = &graph->ops.data[from];
        if (berth_slice__is_convolution(before->kind)) {
            if (berth_slice__group(s, before) != 1 ||
                !berth_slice__has_constant_operands(s, c, before))
                return false;
            put_first(c, from, 0);
            break;
        }
        if (!berth_slice__goes_through(s, c, from, &operand)) return false;
        put_first(c, from, operand);
        at = before->inputs[operand];
    }
    berth_slice__extend(s, c);
    return true;
}

// ---- slices -------------------------------------------------------------------------------------

// The largest value of the chain that is between the convolutions, as it is stored: the last in front
// of the depthwise one.
static uint64_t between_bytes(const berth_slicer *s, const berth_slice_chain *c) {
    return berth_slice__bytes(s, berth_slice__graph(s)->ops.data[c->ops[c->depthwise]].inputs[0]);
}

// The next larger number of slices that are possible; 0 = none.
static int64_t more_slices(const berth_slicer *s, const berth_slice_chain *c, uint32_t device,
                           int64_t than) {
    // A kernel binds all parts and the whole.
    int64_t most = berth_target_max_bindings(s->target->devices[device].target) - 1;
    for (int64_t n = than + 1; n <= c->channels / 2 && n <= most; ++n)
        if (c->channels % n == 0 && c->channels / n % 2 == 0) return n;
    return 0;
}

// As few slices as leave room; 1 = none are needed. Where the budget is less than any plan needs, as many as
// the least one takes: more would be steps for nothing.
static int64_t choose_slices(const berth_slicer *s, const berth_slice_chain *c) {
    uint32_t device = berth_slice__device(s, c);
    if (device == BERTH_NO_INDEX) return 1;
    uint64_t budget = s->target->memories[s->target->devices[device].own_memory].budget_bytes;
    uint64_t other = berth_slice__beside_bytes(s, c) + SPARE_BYTES;
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
static uint64_t operand_bytes(const berth_slicer *s, berth_value_id operand) {
    const berth_graph *graph = berth_slice__graph(s);
    uint64_t least = berth_slice__bytes(s, operand);
    for (berth_value_id at = operand;;) {
        berth_op_id from = graph->values.data[at].op;
        if (from == BERTH_NONE) return 0;
        const berth_op *op = &graph->ops.data[from];
        if (berth_slice__is_convolution(op->kind)) return least;
        if (!berth_op_has(op->kind, BERTH_TRAIT_ELEMENTWISE)) return 0;
        uint32_t i = 0;
        while (i < op->input_count &&
               (op->inputs[i] == BERTH_NONE || berth_slice__constant(s, op->inputs[i])))
            ++i;
        if (i == op->input_count) return 0;
        at = op->inputs[i];
        if (berth_slice__bytes(s, at) < least) least = berth_slice__bytes(s, at);
    }
}

// With as many slices as possible, `between` the convolutions of a chain.
static uint64_t least_between(const berth_slicer *s, const berth_slice_chain *c) {
    uint32_t device = berth_slice__device(s, c);
    int64_t best = 1;
    for (int64_t n = 1; n && device != BERTH_NO_INDEX; n = more_slices(s, c, device, n)) best = n;
    return best > 1 ? between_bytes(s, c) / (uint64_t)best : 0;
}

// A lower bound of what all plans need: the model's inputs, and an operand, or what is between beside it.
static void find_least(berth_slicer *s, const berth_op_id *ids, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
        const berth_op *op = &berth_slice__graph(s)->ops.data[ids[i]];
        berth_slice_chain c;
        uint64_t bytes = 0;
        if (!berth_slice__is_convolution(op->kind)) continue;
        if (find_chain(s, ids[i], &c))
            bytes = operand_bytes(s, berth_slice__graph(s)->ops.data[c.ops[0]].inputs[0]) +
                    least_between(s, &c);
        else
            bytes = operand_bytes(s, op->inputs[0]);
        if (s->input_bytes + bytes > s->least_bytes) s->least_bytes = s->input_bytes + bytes;
    }
}

berth_status berth_pass_slice_channels(berth_module *module, berth_func_id main,
                                       const berth_multi_target *target,
                                       uint64_t least_budget_bytes, const char **out_slices) {
    *out_slices = "";
    if (target->executor != BERTH_EXECUTOR_AOT) return BERTH_OK;
    berth_slicer s;
    berth_slice__begin(&s, module, main, target);
    s.least_bytes = least_budget_bytes;
    const berth_region *root = &berth_slice__graph(&s)->regions.data[0];
    uint32_t count = root->ops.count;
    berth_op_id *ids =
        berth_arena_copy(module->arena, root->ops.data, count * sizeof(*root->ops.data));
    find_least(&s, ids, count);
    berth_strbuf text = berth_strbuf_make(module->arena);
    for (uint32_t i = 0; i < count; ++i) {
        berth_slice_chain c;
        if (!find_chain(&s, ids[i], &c)) continue;
        int64_t slices = choose_slices(&s, &c);
        if (slices <= 1) continue;
        berth_strbuf_addf(&text, "%u:%lld ", ids[i], (long long)slices);
        BERTH_TRY(berth_slice__run(&s, &c, c.channels / slices));
    }
    *out_slices = berth_strbuf_text(&text);
    berth_rewriter_finish(&s.r);
    return BERTH_OK;
}
