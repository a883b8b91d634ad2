// What patches would do: the largest sum of values that are live at once, and what is computed twice. An
// estimate, from the graph alone, so that hundreds of choices can be compared; the memory plan says in the end.
#include <stdlib.h>
#include <string.h>

#include "compiler/passes/patches_private.h"

// Bytes that are live in [first, end), in half steps: a kernel reads in one and is done in the other.
typedef struct span {
    uint64_t bytes;
    uint32_t first, end;
} span;

typedef struct estimate {
    const berth_patcher *p;
    berth_arena *arena;  // of this estimate
    berth_patch_memory memory;
    BERTH_VEC(span) spans;
    uint32_t
        *held;  // per value: its span + 1, 0 = it has none (constants, parameters, what is fused)
    uint32_t *head;  // per value: the step that its kernel begins with
    uint32_t time;
    bool *stored;         // per value
    const double *flops;  // per operation
    const berth_op_id *only_user;
    BERTH_VEC(berth_op_id) op_at;  // per step: the operation
} estimate;

static uint64_t area_bytes(const berth_patcher *p, berth_value_id value, berth_patch_area area) {
    const berth_type *type = berth_patches__type(p, value);
    uint64_t bytes = berth_dtype_size_bytes(type->dtype);
    for (int d = 0; d < type->rank; ++d) {
        int64_t extent = type->dims[d];
        if (type->rank == 4 && d >= berth_patch_first_axis)
            extent = berth_patches__extent(area, d - berth_patch_first_axis);
        bytes *= (uint64_t)(extent > 0 ? extent : 1);
    }
    return bytes;
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
    if (e->memory == BERTH_PATCH_ANY || !berth_patches__has_window(op->kind) || op->input_count < 2)
        return false;
    const int64_t *weights = berth_patches__type(e->p, op->inputs[1])->dims;
    return (weights[2] == 1 && weights[3] == 1) ||
           berth_attrs_int(e->p->module, &op->attrs, "group", 1) > 1;
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
    berth_vec_push(e->arena, &e->spans, (span){bytes, first, first + 1});
    e->held[value] = e->spans.count;
}

static void pass_time(estimate *e, berth_op_id id) {
    e->time += 2;
    berth_vec_push(e->arena, &e->op_at, id);
}

// One operation, with an area of its first result; NULL = all of all its results.
static void run_op(estimate *e, berth_op_id id, const berth_patch_area *area) {
    const berth_op *op = &e->p->graph->ops.data[id];
    uint32_t now = e->time, begin = now;
    bool elementwise = berth_op_has(op->kind, BERTH_TRAIT_ELEMENTWISE);
    pass_time(e, id);
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
        uint64_t bytes = area_bytes(e->p, y, area ? *area : berth_patches__whole(e->p, y));
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

// *out_time: the first step with that much.
static uint64_t largest_sum(const estimate *e, uint32_t *out_time) {
    typedef int64_t event[2];
    event *events = berth_arena_new_array(e->arena, event, 2 * e->spans.count + 1);
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
        if (live <= most) continue;
        most = live;
        *out_time = (uint32_t)events[i][0];
    }
    return (uint64_t)most;
}

// What a patch cuts out of values that are there with more rows.
static void run_slices(estimate *e, const berth_op *op) {
    const berth_patcher *p = e->p;
    for (uint32_t k = 0; k < op->input_count; ++k) {
        berth_patch_area needed;
        int64_t pads[2 * berth_patch_axes];
        berth_value_id x = op->inputs[k];
        if (x == BERTH_NONE || berth_patches__is_constant(p, x) ||
            !berth_patches__area_of(p, op, k, p->areas[op->outputs[0]], &needed, pads))
            continue;
        bool inside = berth_patches__made_inside(p, x);
        berth_patch_area there = inside ? p->areas[x] : berth_patches__whole(p, x);
        if (berth_patches__same_area(needed, there)) continue;
        berth_vec_push(e->arena, &e->spans, (span){area_bytes(p, x, needed), e->time, e->time + 1});
    }
}

// How much of an operation an area of its result is.
static double share_of(const berth_patcher *p, berth_value_id value, berth_patch_area made) {
    berth_patch_area whole = berth_patches__whole(p, value);
    double share = 1;
    for (int i = 0; i < berth_patch_axes; ++i)
        share *= (double)berth_patches__extent(made, i) / (double)whole.axes[i].end;
    return share;
}

// One patch. False: it is not possible.
static bool run_patch(estimate *e, berth_patcher *p, berth_value_id cut, berth_patch_area area,
                      double *out_flops) {
    if (!berth_patches__find_areas(p, cut, area)) return false;
    for (uint32_t k = 0; k < p->op_count; ++k) {
        const berth_op *op = &p->graph->ops.data[p->ops[k]];
        const berth_patch_area *made = &p->areas[op->outputs[0]];
        *out_flops += share_of(p, op->outputs[0], *made) * e->flops[p->ops[k]];
        run_slices(e, op);
        run_op(e, p->ops[k], made);
    }
    return true;
}

// A concatenation of parts, by their spans + 1. What is copied is a value of its own.
static void join(estimate *e, berth_value_id cut, const uint32_t *parts, uint32_t count,
                 uint64_t copied_bytes) {
    for (uint32_t i = 0; i < count; ++i)
        if (parts[i]) e->spans.data[parts[i] - 1].end = e->time + 1;
    if (copied_bytes) hold(e, cut, copied_bytes, e->time);
    pass_time(e, e->p->graph->values.data[cut].op);
}

static bool is_result(const berth_patcher *p, berth_value_id value) {
    const berth_region *root = &p->graph->regions.data[0];
    for (uint32_t i = 0; i < root->results.count; ++i)
        if (root->results.data[i] == value) return true;
    return false;
}

// The region in patches: tiles of a band are joined, then bands. False: a patch is not possible.
static bool run_region(estimate *e, berth_patcher *p, berth_value_id cut, berth_patch_grid grid,
                       double *out_flops) {
    uint32_t *bands = berth_arena_new_array(e->arena, uint32_t, grid.counts[0]);
    uint32_t *tiles = berth_arena_new_array(e->arena, uint32_t, grid.counts[1]);
    berth_patch_area whole = berth_patches__whole(p, cut);
    for (uint32_t row = 0; row < grid.counts[0]; ++row) {
        berth_patch_area band = whole;
        for (uint32_t column = 0; column < grid.counts[1]; ++column) {
            uint32_t index = row * grid.counts[1] + column;
            berth_patch_area area = berth_patches__patch(p, cut, grid, index);
            if (!run_patch(e, p, cut, area, out_flops)) return false;
            band.axes[0] = area.axes[0];
            tiles[column] = e->held[cut];
        }
        if (grid.counts[1] > 1) join(e, cut, tiles, grid.counts[1], area_bytes(p, cut, band));
        bands[row] = e->held[cut];
    }
    bool copied = berth_patches__type(p, cut)->dims[1] > 1 && !is_result(p, cut);
    if (grid.counts[0] > 1)
        join(e, cut, bands, grid.counts[0], copied ? area_bytes(p, cut, whole) : 0);
    return true;
}

// Results are somebody else's memory.
static void forget_results(estimate *e) {
    const berth_region *root = &e->p->graph->regions.data[0];
    for (uint32_t i = 0; i < root->results.count; ++i)
        if (e->held[root->results.data[i]])
            e->spans.data[e->held[root->results.data[i]] - 1].bytes = 0;
}

// Every operation in its place, the region where its last one is. False: a patch is not possible.
static bool run_all(estimate *e, berth_patcher *p, berth_value_id cut, berth_patch_grid grid,
                    double *out_flops) {
    const berth_region *root = &p->graph->regions.data[0];
    berth_op_id last = cut == BERTH_NONE ? BERTH_NONE : p->graph->values.data[cut].op;
    for (uint32_t i = 0; i < root->ops.count; ++i) {
        berth_op_id id = root->ops.data[i];
        const berth_op *op = &p->graph->ops.data[id];
        if (id == last && !run_region(e, p, cut, grid, out_flops)) return false;
        if (cut != BERTH_NONE && p->inside[id]) continue;
        *out_flops += e->flops[id];
        if (op->kind != BERTH_OP_CONSTANT && op->output_count) run_op(e, id, NULL);
    }
    return true;
}

bool berth_patches__estimate(berth_patcher *p, berth_value_id cut, berth_patch_grid grid,
                             berth_patch_memory memory, berth_patch_candidate *out,
                             berth_op_id *out_peak) {
    const berth_region *root = &p->graph->regions.data[0];
    uint32_t values = p->graph->values.count, peak_time = 0;
    berth_arena *arena = berth_arena_create_child(p->arena);
    estimate e = {.p = p,
                  .arena = arena,
                  .memory = memory,
                  .held = berth_arena_new_array(arena, uint32_t, values + 1),
                  .head = berth_arena_new_array(arena, uint32_t, values + 1),
                  .flops = p->flops,
                  .only_user = p->only_user,
                  .stored = berth_arena_new_array(arena, bool, values + 1)};
    double flops = 0, whole_flops = 0;
    for (uint32_t i = 0; i < root->ops.count; ++i) whole_flops += p->flops[root->ops.data[i]];
    find_stored(&e);
    bool possible = run_all(&e, p, cut, grid, &flops);
    if (possible) {
        forget_results(&e);
        out->peak_bytes = largest_sum(&e, &peak_time);
        out->extra_work = whole_flops > 0 ? flops / whole_flops - 1 : 0;
        if (out_peak) *out_peak = e.op_at.count ? e.op_at.data[peak_time / 2] : BERTH_NONE;
    }
    berth_arena_destroy(arena);
    return possible;
}
