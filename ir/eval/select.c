// Order and selection: outputs whose shape or content depends on comparisons of data.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ir/eval/internal.h"
#include "ir/graph/op_params.h"

// -1, 0, 1 by value; NaN is above everything and equal to itself.
static int compare_elements(const berth_tensor *x, int64_t a, int64_t b) {
    if (x->dtype == BERTH_DTYPE_STRING)
        return berth_string_compare(berth_tensor_strings(x)[a], berth_tensor_strings(x)[b]);
    if (berth_dtype_is_float(x->dtype)) {
        double m = berth_tensor_get_f64(x, a), n = berth_tensor_get_f64(x, b);
        if (isnan(m) || isnan(n)) return (isnan(m) != 0) - (isnan(n) != 0);
        return (m > n) - (m < n);
    }
    uint64_t flip = x->dtype == BERTH_DTYPE_U64 ? (uint64_t)1 << 63 : 0;
    int64_t m = (int64_t)((uint64_t)berth_tensor_get_i64(x, a) ^ flip);
    int64_t n = (int64_t)((uint64_t)berth_tensor_get_i64(x, b) ^ flip);
    return (m > n) - (m < n);
}

typedef int (*order_fn)(const void *user, int64_t a, int64_t b);

// Bottom-up merge sort, stable, O(n log n); `spare` has room for n.
static void sort_indices(int64_t *items, int64_t *spare, int64_t n, order_fn order,
                         const void *user) {
    for (int64_t width = 1; width < n; width *= 2) {
        for (int64_t low = 0; low < n; low += 2 * width) {
            int64_t mid = low + width < n ? low + width : n;
            int64_t high = low + 2 * width < n ? low + 2 * width : n;
            int64_t i = low, j = mid;
            for (int64_t k = low; k < high; ++k) {
                bool left = j >= high || (i < mid && order(user, items[i], items[j]) <= 0);
                spare[k] = left ? items[i++] : items[j++];
            }
        }
        memcpy(items, spare, (size_t)n * sizeof(*items));
    }
}

// ---- top_k

typedef struct line_order {
    const berth_tensor *x;
    int64_t base, inner;
    bool descending;
} line_order;

static int order_line(const void *user, int64_t a, int64_t b) {
    const line_order *o = user;
    int order = compare_elements(o->x, o->base + a * o->inner, o->base + b * o->inner);
    return o->descending ? -order : order;
}

berth_status berth_eval__top_k(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0];
    int axis = 0;
    int64_t dims[BERTH_MAX_RANK];
    BERTH_TRY(berth_eval__need_count(&ctx->inputs[1], "K", 1));
    BERTH_TRY(berth_eval__axis(ctx, -1, x->rank, &axis));
    int64_t k = berth_tensor_get_i64(&ctx->inputs[1], 0), extent = x->dims[axis];
    if (k < 0 || k > extent)
        return berth_status_make(BERTH_OUT_OF_RANGE, "K = %lld of %lld", (long long)k,
                                 (long long)extent);
    memcpy(dims, x->dims, sizeof(dims));
    dims[axis] = k;
    BERTH_TRY(berth_eval__output(ctx, 0, x->dtype, x->rank, dims));
    BERTH_TRY(berth_eval__output(ctx, 1, BERTH_DTYPE_I64, x->rank, dims));
    int64_t *items = berth_eval__indices(ctx, extent), *spare = berth_eval__indices(ctx, extent);
    line_order order = {.x = x,
                        .inner = berth_eval__product(x->dims, axis + 1, x->rank),
                        .descending = berth_eval__int(ctx, "largest", 1) != 0};
    int64_t lines = extent ? berth_tensor_element_count(x) / extent : 0;
    for (int64_t i = 0; i < lines; ++i) {
        order.base = i / order.inner * order.inner * extent + i % order.inner;
        int64_t to = i / order.inner * order.inner * k + i % order.inner;
        for (int64_t j = 0; j < extent; ++j) items[j] = j;
        sort_indices(items, spare, extent, order_line, &order);
        for (int64_t j = 0; j < k; ++j) {
            berth_eval__copy_element(ctx->outputs[0].data, to + j * order.inner, x->data,
                                     order.base + items[j] * order.inner,
                                     berth_dtype_size_bytes(x->dtype));
            berth_tensor_set_i64(&ctx->outputs[1], to + j * order.inner, items[j]);
        }
    }
    return BERTH_OK;
}

// ---- non_zero, compress

berth_status berth_eval__non_zero(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0];
    int64_t total = berth_tensor_element_count(x), count = 0, at = 0;
    int rank = x->rank ? x->rank : 1;
    int64_t index[BERTH_MAX_RANK] = {0};
    for (int64_t i = 0; i < total; ++i) count += berth_tensor_get_f64(x, i) != 0;
    BERTH_TRY(berth_eval__output(ctx, 0, BERTH_DTYPE_I64, 2, (int64_t[]){rank, count}));
    for (int64_t i = 0; i < total; ++i, berth_eval__next(index, x->dims, x->rank)) {
        if (berth_tensor_get_f64(x, i) == 0) continue;
        for (int d = 0; d < rank; ++d)
            berth_tensor_set_i64(&ctx->outputs[0], d * count + at, index[d]);
        ++at;
    }
    return BERTH_OK;
}

berth_status berth_eval__compress(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0], *condition = &ctx->inputs[1];
    bool flat = !berth_attrs_find(ctx->module, &ctx->op->attrs, "axis");
    berth_tensor line = *x;
    int axis = 0;
    if (flat) {
        line.rank = 1;
        line.dims[0] = berth_tensor_element_count(x);
    } else {
        BERTH_TRY(berth_eval__axis(ctx, 0, x->rank, &axis));
    }
    int64_t given = berth_tensor_element_count(condition), count = 0, at = 0;
    if (given > line.dims[axis])
        return berth_status_make(BERTH_INVALID_ARGUMENT, "condition has %lld entries for %lld",
                                 (long long)given, (long long)line.dims[axis]);
    for (int64_t i = 0; i < given; ++i) count += berth_tensor_get_i64(condition, i) != 0;
    int64_t outer = berth_eval__product(line.dims, 0, axis);
    int64_t inner = berth_eval__product(line.dims, axis + 1, line.rank);
    int64_t extent = line.dims[axis];
    line.dims[axis] = count;
    BERTH_TRY(berth_eval__output(ctx, 0, x->dtype, line.rank, line.dims));
    size_t block = (size_t)inner * berth_dtype_size_bytes(x->dtype);
    for (int64_t i = 0; block && i < given; ++i) {
        if (!berth_tensor_get_i64(condition, i)) continue;
        for (int64_t o = 0; o < outer; ++o)
            memcpy((char *)ctx->outputs[0].data + (size_t)(o * count + at) * block,
                   (const char *)x->data + (size_t)(o * extent + i) * block, block);
        ++at;
    }
    return BERTH_OK;
}

// ---- unique

// Slice k of the tensor: elements (o * extent + k) * inner + i.
typedef struct slices {
    const berth_tensor *x;
    int64_t outer, extent, inner;
} slices;

static int order_slices(const void *user, int64_t a, int64_t b) {
    const slices *s = user;
    for (int64_t o = 0; o < s->outer; ++o) {
        for (int64_t i = 0; i < s->inner; ++i) {
            int order = compare_elements(s->x, (o * s->extent + a) * s->inner + i,
                                         (o * s->extent + b) * s->inner + i);
            if (order) return order;
        }
    }
    return 0;
}

static int order_numbers(const void *user, int64_t a, int64_t b) {
    const int64_t *keys = user;
    return (keys[a] > keys[b]) - (keys[a] < keys[b]);
}

// The distinct slices: group[k] of every slice, first and size of every group, in value order or in
// order of appearance.
typedef struct groups {
    int64_t *group, *first, *size, count;
} groups;

static groups find_groups(berth_eval_context *ctx, const slices *s, bool sorted) {
    int64_t n = s->extent;
    int64_t *items = berth_eval__indices(ctx, n), *spare = berth_eval__indices(ctx, n);
    groups g = {.group = berth_eval__indices(ctx, n),
                .first = berth_eval__indices(ctx, n),
                .size = berth_eval__indices(ctx, n)};
    for (int64_t i = 0; i < n; ++i) items[i] = i;
    sort_indices(items, spare, n, order_slices, s);
    for (int64_t i = 0; i < n; ++i) {
        if (i == 0 || order_slices(s, items[i - 1], items[i]) != 0)
            g.first[g.count++] = items[i];  // stable: the first occurrence
        g.group[items[i]] = g.count - 1;
        g.size[g.count - 1]++;
    }
    if (sorted) return g;
    int64_t *order = berth_eval__indices(ctx, n), *place = berth_eval__indices(ctx, n);
    groups by_place = {.group = berth_eval__indices(ctx, n),
                       .first = berth_eval__indices(ctx, n),
                       .size = berth_eval__indices(ctx, n),
                       .count = g.count};
    for (int64_t i = 0; i < g.count; ++i) order[i] = i;
    sort_indices(order, spare, g.count, order_numbers, g.first);
    for (int64_t i = 0; i < g.count; ++i) {
        place[order[i]] = i;
        by_place.first[i] = g.first[order[i]];
        by_place.size[i] = g.size[order[i]];
    }
    for (int64_t i = 0; i < n; ++i) by_place.group[i] = place[g.group[i]];
    return by_place;
}

berth_status berth_eval__unique(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0];
    bool flat = !berth_attrs_find(ctx->module, &ctx->op->attrs, "axis");
    slices s = {.x = x, .outer = 1, .extent = berth_tensor_element_count(x), .inner = 1};
    int64_t dims[BERTH_MAX_RANK] = {0};
    int axis = 0, rank = flat ? 1 : x->rank;
    if (!flat) {
        BERTH_TRY(berth_eval__axis(ctx, 0, x->rank, &axis));
        memcpy(dims, x->dims, sizeof(dims));
        s.outer = berth_eval__product(x->dims, 0, axis);
        s.extent = x->dims[axis];
        s.inner = berth_eval__product(x->dims, axis + 1, x->rank);
    }
    groups g = find_groups(ctx, &s, berth_eval__int(ctx, "sorted", 1) != 0);
    dims[axis] = g.count;
    BERTH_TRY(berth_eval__output(ctx, 0, x->dtype, rank, dims));
    BERTH_TRY(berth_eval__output(ctx, 1, BERTH_DTYPE_I64, 1, &g.count));
    BERTH_TRY(berth_eval__output(ctx, 2, BERTH_DTYPE_I64, 1, &s.extent));
    BERTH_TRY(berth_eval__output(ctx, 3, BERTH_DTYPE_I64, 1, &g.count));
    size_t block = (size_t)s.inner * berth_dtype_size_bytes(x->dtype);
    for (int64_t o = 0; block && o < s.outer; ++o)
        for (int64_t k = 0; k < g.count; ++k)
            memcpy((char *)ctx->outputs[0].data + (size_t)(o * g.count + k) * block,
                   (const char *)x->data + (size_t)(o * s.extent + g.first[k]) * block, block);
    if (berth_eval__has_output(ctx, 1)) berth_eval__store_i64(&ctx->outputs[1], g.first);
    if (berth_eval__has_output(ctx, 2)) berth_eval__store_i64(&ctx->outputs[2], g.group);
    if (berth_eval__has_output(ctx, 3)) berth_eval__store_i64(&ctx->outputs[3], g.size);
    return BERTH_OK;
}

// ---- non_max_suppression

// Boxes by coordinate, so that many are compared at once; in floats, as the operator's are (other runtimes decide by
// the same rounding).
typedef struct box_list {
    float *low[2], *high[2], *area;
} box_list;

enum { boxes_at_once = 16 };

// Zeroed, to whole steps of boxes_at_once.
static box_list new_boxes(berth_eval_context *ctx, int64_t count) {
    int64_t room = (count / boxes_at_once + 1) * boxes_at_once;
    float *all = berth_arena_new_array(ctx->scratch, float, 5 * room);
    return (box_list){{all, all + room}, {all + 2 * room, all + 3 * room}, all + 4 * room};
}

// Corners are [y1, x1, y2, x2] in any order, centres are [x, y, width, height].
static void read_boxes(const berth_tensor *from, int64_t first, int64_t count, bool center,
                       box_list *out) {
    for (int64_t i = 0; i < count; ++i) {
        float v[4], area = 1;
        for (int k = 0; k < 4; ++k) v[k] = (float)berth_tensor_get_f64(from, first + i * 4 + k);
        for (int d = 0; d < 2; ++d) {
            float one = center ? v[1 - d] - v[3 - d] / 2 : v[d];
            float other = center ? v[1 - d] + v[3 - d] / 2 : v[d + 2];
            out->low[d][i] = fminf(one, other);
            out->high[d][i] = fmaxf(one, other);
            area *= out->high[d][i] - out->low[d][i];
        }
        out->area[i] = area;
    }
}

static void copy_box(const box_list *from, int64_t i, box_list *to, int64_t k) {
    for (int d = 0; d < 2; ++d) {
        to->low[d][k] = from->low[d][i];
        to->high[d][k] = from->high[d][i];
    }
    to->area[k] = from->area[i];
}

// Whether one of the first `count` boxes of `held` shares more than `threshold` of its union with box `i`.
static bool overlaps(const box_list *held, int64_t count, const box_list *all, int64_t i,
                     float threshold) {
    float low0 = all->low[0][i], high0 = all->high[0][i], area = all->area[i];
    float low1 = all->low[1][i], high1 = all->high[1][i];
    for (int64_t k = 0; k < count; k += boxes_at_once) {
        int any = 0;
        for (int64_t j = k; j < k + boxes_at_once; ++j) {
            float top = held->low[0][j] > low0 ? held->low[0][j] : low0;
            float left = held->low[1][j] > low1 ? held->low[1][j] : low1;
            float height = (held->high[0][j] < high0 ? held->high[0][j] : high0) - top;
            float width = (held->high[1][j] < high1 ? held->high[1][j] : high1) - left;
            float both = (height > 0 ? height : 0) * (width > 0 ? width : 0);
            float total = held->area[j] + area - both;
            any |= (both > 0) & (total > 0) & (both / total > threshold);
        }
        if (any) return true;
    }
    return false;
}

static berth_status optional_number(const berth_eval_context *ctx, uint32_t index, double fallback,
                                    double *out) {
    const berth_tensor *given = berth_eval__optional(ctx, index);
    *out = fallback;
    if (!given) return BERTH_OK;
    BERTH_TRY(berth_eval__need_count(given, "a limit", 1));
    *out = berth_tensor_get_f64(given, 0);
    return BERTH_OK;
}

typedef struct suppression {
    double most, iou_threshold, score_threshold;
    bool has_score_threshold, center;
    int64_t boxes;
} suppression;

// Greedy by score; fills `kept` and returns how many.
static int64_t suppress(berth_eval_context *ctx, const suppression *p, const box_list *boxes,
                        int64_t score_base, int64_t *kept) {
    const berth_tensor *scores = &ctx->inputs[1];
    int64_t *items = berth_eval__indices(ctx, p->boxes);
    int64_t *spare = berth_eval__indices(ctx, p->boxes), count = 0, candidates = 0;
    line_order order = {.x = scores, .base = score_base, .inner = 1, .descending = true};
    for (int64_t i = 0; i < p->boxes; ++i)
        if (!p->has_score_threshold ||
            berth_tensor_get_f64(scores, score_base + i) > p->score_threshold)
            items[candidates++] = i;
    sort_indices(items, spare, candidates, order_line, &order);
    box_list held = new_boxes(ctx, candidates);
    for (int64_t i = 0; i < candidates && (double)count < p->most; ++i) {
        if (overlaps(&held, count, boxes, items[i], (float)p->iou_threshold)) continue;
        copy_box(boxes, items[i], &held, count);
        kept[count++] = items[i];
    }
    return count;
}

berth_status berth_eval__non_max_suppression(berth_eval_context *ctx) {
    const berth_tensor *boxes = &ctx->inputs[0], *scores = &ctx->inputs[1];
    BERTH_TRY(berth_eval__need_rank(ctx, 0, 3, 3));
    BERTH_TRY(berth_eval__need_rank(ctx, 1, 3, 3));
    suppression p = {.center = berth_eval__int(ctx, "center_point_box", 0) != 0,
                     .has_score_threshold = berth_eval__optional(ctx, 4) != NULL,
                     .boxes = boxes->dims[1]};
    BERTH_TRY(optional_number(ctx, 2, 0, &p.most));
    BERTH_TRY(optional_number(ctx, 3, 0, &p.iou_threshold));
    BERTH_TRY(optional_number(ctx, 4, 0, &p.score_threshold));
    if (boxes->dims[2] != 4 || scores->dims[0] != boxes->dims[0] || scores->dims[2] != p.boxes)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "boxes and scores do not fit");
    int64_t classes = scores->dims[1], total = 0;
    int64_t lines = scores->dims[0] * classes;
    int64_t *kept = berth_eval__indices(ctx, p.boxes);
    int64_t *rows = berth_eval__indices(ctx, lines * p.boxes * 3);
    box_list corners = new_boxes(ctx, p.boxes);
    for (int64_t line = 0; line < lines; ++line) {
        int64_t batch = line / classes;
        if (line % classes == 0)
            read_boxes(boxes, batch * p.boxes * 4, p.boxes, p.center, &corners);
        int64_t count = suppress(ctx, &p, &corners, line * p.boxes, kept);
        for (int64_t k = 0; k < count; ++k, ++total) {
            rows[total * 3] = batch;
            rows[total * 3 + 1] = line % classes;
            rows[total * 3 + 2] = kept[k];
        }
    }
    BERTH_TRY(berth_eval__output(ctx, 0, BERTH_DTYPE_I64, 2, (int64_t[]){total, 3}));
    berth_eval__store_i64(&ctx->outputs[0], rows);
    return BERTH_OK;
}
