// What patches would do: the largest sum of values that are live at once, and what is computed twice. An
// estimate, from the graph alone, so that hundreds of choices can be compared; the memory plan says in the end.
#include <stdlib.h>
#include <string.h>

#include "compiler/cost/work.h"
#include "compiler/passes/patches_private.h"

// Bytes that are live in [first, end), in half steps: a kernel reads in one and is done in the other.
typedef struct span {
    uint64_t bytes;
    uint32_t first, end;
} span;

typedef struct estimate {
    const berth_patcher *p;
    berth_patch_memory memory;
    BERTH_VEC(span) spans;
    uint32_t
        *held;  // per value: its span + 1, 0 = it has none (constants, parameters, what is fused)
    uint32_t *head;  // per value: the step that its kernel begins with
    uint32_t time;
    bool *stored;  // per value
    const berth_op_id *only_user;
} estimate;

static uint64_t row_bytes(const berth_patcher *p, berth_value_id value) {
    const berth_type *type = berth_patches__type(p, value);
    uint64_t bytes = berth_dtype_size_bytes(type->dtype);
    for (int d = 0; d < type->rank; ++d)
        if (d != 2 || type->rank != 4) bytes *= (uint64_t)(type->dims[d] > 0 ? type->dims[d] : 1);
    return bytes;
}

static int64_t height_of(const berth_patcher *p, berth_value_id value) {
    const berth_type *type = berth_patches__type(p, value);
    return type->rank == 4 ? type->dims[2] : 1;
}

static bool reads_once(berth_op_kind kind) {
    return kind == BERTH_OP_GLOBAL_AVERAGE_POOL || kind == BERTH_OP_GLOBAL_MAX_POOL;
}

// Integers stay in memory, and the one operation that wants them as floats converts them.
static bool converts(const estimate *e, const berth_op *op) {
    if (op->kind != BERTH_OP_DEQUANTIZE_LINEAR || e->p->uses[op->outputs[0]] != 1) return false;
    berth_op_id user = e->only_user[op->outputs[0]];
    if (user == BERTH_NONE) return false;
    berth_op_kind kind = e->p->graph->ops.data[user].kind;
    return reads_once(kind) || berth_op_has(kind, BERTH_TRAIT_ELEMENTWISE);
}

// What one elementwise operation reads is fused with what made it (passes/fuse.h).
static void find_stored(estimate *e) {
    const berth_graph *graph = e->p->graph;
    const berth_region *root = &graph->regions.data[0];
    for (uint32_t v = 0; v < graph->values.count; ++v) e->stored[v] = true;
    for (uint32_t i = 0; i < root->ops.count; ++i) {
        const berth_op *op = &graph->ops.data[root->ops.data[i]];
        if (!berth_op_has(op->kind, BERTH_TRAIT_ELEMENTWISE) || op->output_count != 1) continue;
        if (converts(e, op)) {
            e->stored[op->outputs[0]] = false;
            continue;
        }
        const berth_type *y = berth_patches__type(e->p, op->outputs[0]);
        for (uint32_t k = 0; k < op->input_count; ++k) {
            if (op->inputs[k] == BERTH_NONE || e->p->uses[op->inputs[k]] != 1 ||
                graph->values.data[op->inputs[k]].op == BERTH_NONE || !e->stored[op->inputs[k]])
                continue;
            const berth_type *x = berth_patches__type(e->p, op->inputs[k]);
            if (x->rank != y->rank || memcmp(x->dims, y->dims, sizeof(x->dims)) != 0) continue;
            e->stored[op->inputs[k]] = false;
            break;
        }
    }
    for (uint32_t i = 0; i < root->results.count; ++i) e->stored[root->results.data[i]] = true;
}

static void use(estimate *e, berth_value_id value, uint32_t until) {
    uint32_t at = e->held[value];
    if (at && e->spans.data[at - 1].end < until) e->spans.data[at - 1].end = until;
}

// Whether plain C writes the result over the operand (schedule/plain_in_place.h), or runs both for some
// channels after others.
static bool writes_over(const estimate *e, const berth_op *op) {
    berth_window w;
    if (e->memory == BERTH_PATCH_ANY || !berth_patches__has_window(op->kind) ||
        !berth_patches__window(e->p, op, &w) || op->input_count < 2)
        return false;
    return (w.kernel[0] == 1 && w.kernel[1] == 1) || w.group > 1;
}

// Whether an elementwise operation is the last to read an operand of the result's size.
static bool ends_operand(const estimate *e, const berth_op *op, uint64_t bytes) {
    for (uint32_t k = 0; k < op->input_count; ++k) {
        berth_value_id x = op->inputs[k];
        if (x != BERTH_NONE && e->held[x] && e->p->uses[x] == 1 &&
            e->spans.data[e->held[x] - 1].bytes >= bytes)
            return true;
    }
    return false;
}

// Between a convolution and a depthwise one there are some channels at a time (slice_channels.h).
static uint64_t sliced_bytes(const estimate *e, berth_value_id value, uint64_t bytes) {
    enum { most_slices = 8 };
    const berth_type *type = berth_patches__type(e->p, value);
    berth_op_id user = e->only_user[value];
    if (e->memory != BERTH_PATCH_SLICED || user == BERTH_NONE || e->p->uses[value] != 1 ||
        type->rank != 4 || type->dims[1] < 4)
        return bytes;
    const berth_op *op = &e->p->graph->ops.data[user];
    bool depthwise = (op->kind == BERTH_OP_CONV || op->kind == BERTH_OP_CONV_INTEGER) &&
                     berth_attrs_int(e->p->module, &op->attrs, "group", 1) == type->dims[1];
    int64_t slices = type->dims[1] / 2;
    return depthwise ? bytes / (uint64_t)(slices < most_slices ? slices : most_slices) : bytes;
}

static void hold(estimate *e, berth_value_id value, uint64_t bytes, uint32_t first) {
    berth_vec_push(e->p->arena, &e->spans, (span){bytes, first, first + 1});
    e->held[value] = e->spans.count;
}

// One operation, with `rows` of its result's rows.
static void run_op(estimate *e, const berth_op *op, int64_t rows) {
    uint32_t now = e->time, begin = now;
    bool elementwise = berth_op_has(op->kind, BERTH_TRAIT_ELEMENTWISE);
    e->time += 2;
    for (uint32_t i = 0; i < op->input_count; ++i) {
        berth_value_id x = op->inputs[i];
        if (x == BERTH_NONE) continue;
        if (elementwise && !e->stored[x] && e->head[x] < begin) begin = e->head[x];
        use(e, x, now + 1);
    }
    for (uint32_t i = 0; i < op->output_count; ++i) {
        berth_value_id y = op->outputs[i];
        if (y == BERTH_NONE) continue;
        e->held[y] = converts(e, op) ? e->held[op->inputs[0]] : 0;
        uint64_t bytes = row_bytes(e->p, y) * (uint64_t)rows;
        if (writes_over(e, op) || (elementwise && ends_operand(e, op, bytes))) begin = now + 1;
        e->head[y] = begin;
        if (e->stored[y] && !berth_op_has(op->kind, BERTH_TRAIT_VIEW | BERTH_TRAIT_STRUCTURE))
            hold(e, y, sliced_bytes(e, y, bytes), begin);
    }
}

static int compare_times(const void *left, const void *right) {
    const int64_t *a = left, *b = right;
    if (a[0] != b[0]) return a[0] < b[0] ? -1 : 1;
    return a[1] < b[1] ? -1 : a[1] > b[1];  // ends before begins
}

static uint64_t largest_sum(const estimate *e) {
    typedef int64_t event[2];
    event *events = berth_arena_new_array(e->p->arena, event, 2 * e->spans.count + 1);
    uint32_t count = 0;
    for (uint32_t i = 0; i < e->spans.count; ++i) {
        const span *s = &e->spans.data[i];
        events[count][0] = s->first;
        events[count++][1] = (int64_t)s->bytes;
        events[count][0] = s->end;
        events[count++][1] = -(int64_t)s->bytes;
    }
    if (count) qsort(events, count, sizeof(*events), compare_times);
    int64_t live = 0, most = 0;
    for (uint32_t i = 0; i < count; ++i) {
        live += events[i][1];
        if (live > most) most = live;
    }
    return (uint64_t)most;
}

// What a patch cuts out of values that are there with more rows.
static void run_slices(estimate *e, const berth_op *op) {
    const berth_patcher *p = e->p;
    for (uint32_t k = 0; k < op->input_count; ++k) {
        berth_patch_rows needed;
        int64_t pads[2];
        berth_value_id x = op->inputs[k];
        if (x == BERTH_NONE || berth_patches__is_constant(p, x) ||
            !berth_patches__rows_of(p, op, k, p->rows[op->outputs[0]], &needed, pads))
            continue;
        berth_op_id maker = p->graph->values.data[x].op;
        bool inside = maker != BERTH_NONE && p->inside[maker];
        int64_t there = inside ? p->rows[x].end - p->rows[x].first : height_of(p, x);
        if (needed.end - needed.first == there) continue;
        berth_vec_push(
            p->arena, &e->spans,
            (span){row_bytes(p, x) * (uint64_t)(needed.end - needed.first), e->time, e->time + 1});
    }
}

// The region in patches, and the concatenation. False: a patch is not possible.
static bool run_region(estimate *e, berth_patcher *p, berth_value_id cut, uint32_t count,
                       double *out_flops) {
    const berth_type *y = berth_patches__type(p, cut);
    uint32_t *parts = berth_arena_new_array(p->arena, uint32_t, count);
    for (uint32_t i = 0; i < count; ++i) {
        berth_patch_rows rows = berth_patches__patch(y->dims[2], count, i);
        if (!berth_patches__find_rows(p, cut, rows)) return false;
        for (uint32_t k = 0; k < p->op_count; ++k) {
            const berth_op *op = &p->graph->ops.data[p->ops[k]];
            berth_patch_rows made = p->rows[op->outputs[0]];
            double share = (double)(made.end - made.first) /
                           (double)berth_patches__type(p, op->outputs[0])->dims[2];
            *out_flops += share * berth_op_work_of(p->module, p->main, p->ops[k]).flops;
            run_slices(e, op);
            run_op(e, op, made.end - made.first);
        }
        parts[i] = e->held[cut];
    }
    for (uint32_t i = 0; i < count; ++i)
        if (parts[i]) e->spans.data[parts[i] - 1].end = e->time + 1;
    bool result = false;
    for (uint32_t i = 0; i < p->graph->regions.data[0].results.count; ++i)
        result |= p->graph->regions.data[0].results.data[i] == cut;
    if (y->dims[1] > 1 && !result) hold(e, cut, row_bytes(p, cut) * (uint64_t)y->dims[2], e->time);
    e->time += 2;
    return true;
}

// Results are somebody else's memory.
static void forget_results(estimate *e) {
    const berth_region *root = &e->p->graph->regions.data[0];
    for (uint32_t i = 0; i < root->results.count; ++i)
        if (e->held[root->results.data[i]])
            e->spans.data[e->held[root->results.data[i]] - 1].bytes = 0;
}

bool berth_patches__estimate(berth_patcher *p, berth_value_id cut, uint32_t count,
                             berth_patch_memory memory, berth_patch_candidate *out) {
    const berth_region *root = &p->graph->regions.data[0];
    uint32_t values = p->graph->values.count;
    estimate e = {.p = p,
                  .memory = memory,
                  .held = berth_arena_new_array(p->arena, uint32_t, values + 1),
                  .head = berth_arena_new_array(p->arena, uint32_t, values + 1),
                  .only_user = p->only_user,
                  .stored = berth_arena_new_array(p->arena, bool, values + 1)};
    double flops = 0, whole_flops = 0;
    find_stored(&e);
    berth_op_id last = cut == BERTH_NONE ? BERTH_NONE : p->graph->values.data[cut].op;
    for (uint32_t i = 0; i < root->ops.count; ++i) {
        berth_op_id id = root->ops.data[i];
        const berth_op *op = &p->graph->ops.data[id];
        double work = berth_op_work_of(p->module, p->main, id).flops;
        whole_flops += work;
        if (id == last && !run_region(&e, p, cut, count, &flops)) return false;
        if (cut != BERTH_NONE && p->inside[id]) continue;
        flops += work;
        if (op->kind != BERTH_OP_CONSTANT && op->output_count)
            run_op(&e, op, height_of(p, op->outputs[0]));
    }
    forget_results(&e);
    out->peak_bytes = largest_sum(&e);
    out->extra_work = whole_flops > 0 ? flops / whole_flops - 1 : 0;
    return true;
}
