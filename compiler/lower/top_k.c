// top_k: the best elements of a line in order, equal ones by their index; NaN is above everything
// (as in the interpreter and in ONNX Runtime). They are kept in a heap whose root is the last of
// them, so that an element costs one comparison unless it is among the best so far, and are then
// taken from the heap in order: O(extent + found * log k) per line (Williams 1964, "Algorithm 232:
// Heapsort", with Floyd's construction).
#include "compiler/lower/families.h"

typedef struct selection {
    const berth_op *op;
    berth_dtype t;
    int axis;
    int64_t extent, k;
    bool largest;
    berth_expr at[BERTH_MAX_RANK];  // of the line
    berth_expr line;
    berth_buf values, indices;  // [line][k]
} selection;

typedef struct item {
    berth_expr value, index;
} item;

static const berth_dtype index_type = BERTH_DTYPE_I64;

static berth_expr is_nan(berth_lower *c, berth_expr x) {
    return x_unary(c, BERTH_UNARY_IS_NAN, x);
}

// Whether value a is before value b.
static berth_expr better(berth_lower *c, const selection *s, berth_expr a, berth_expr b) {
    berth_expr high = s->largest ? a : b;
    berth_expr low = s->largest ? b : a;
    if (!berth_dtype_is_float(s->t)) return x_gt(c, high, low);
    berth_expr not_below = x_unary(c, BERTH_UNARY_NOT, x_le(c, high, low));  // or one is NaN
    return x_and(c, not_below, x_unary(c, BERTH_UNARY_NOT, is_nan(c, low)));
}

static berth_expr before(berth_lower *c, const selection *s, item a, item b) {
    berth_expr equal = x_unary(c, BERTH_UNARY_NOT, better(c, s, b.value, a.value));
    berth_expr earlier = x_and(c, equal, x_lt(c, a.index, b.index));
    return x_or(c, better(c, s, a.value, b.value), earlier);
}

static item element(berth_lower *c, selection *s, berth_expr i) {
    s->at[s->axis] = i;
    return (item){in_at(c, s->op, 0, s->at), berth_tfn_from_index(c->fn, index_type, i)};
}

static item held(berth_lower *c, const selection *s, berth_expr place) {
    berth_expr at[2] = {s->line, place};
    return (item){berth_tfn_load(c->fn, s->values, at, 2),
                  berth_tfn_load(c->fn, s->indices, at, 2)};
}

static void hold(berth_lower *c, const selection *s, berth_expr place, item x) {
    berth_expr at[2] = {s->line, place};
    berth_lower__put(c, s->values, at, x.value);
    berth_lower__put(c, s->indices, at, x.index);
}

static item keep(berth_lower *c, const selection *s, item x) {
    berth_buf value = berth_lower__register(c, "value", s->t);
    berth_buf index = berth_lower__register(c, "index", index_type);
    berth_lower__set(c, value, x.value);
    berth_lower__set(c, index, x.index);
    return (item){berth_lower__get(c, value), berth_lower__get(c, index)};
}

// Item x, whose place is `start` of a heap of `size`, goes down as long as a child comes after it.
static void sift(berth_lower *c, const selection *s, berth_expr start, berth_expr size, item x) {
    int64_t levels = 0;
    while (s->k >> (levels + 1)) levels++;
    if (levels == 0) {
        hold(c, s, start, x);
        return;
    }
    berth_buf hole = berth_lower__register(c, "hole", index_type);
    berth_buf child = berth_lower__register(c, "child", index_type);
    berth_lower__set(c, hole, berth_tfn_from_index(c->fn, index_type, start));
    berth_lower__loop(c, "level", levels, BERTH_LOOP_SERIAL);
    berth_expr at = berth_tfn_to_index(c->fn, berth_lower__get(c, hole));
    berth_expr left = x_addi(c, x_muli(c, at, 2), 1);
    berth_lower__if(c, x_lt(c, left, size));
    berth_expr right = x_min(c, x_addi(c, left, 1), x_addi(c, size, -1));
    berth_expr left_first = before(c, s, held(c, s, left), held(c, s, right));
    berth_lower__set(c, child,
                     berth_tfn_from_index(c->fn, index_type, x_select(c, left_first, right, left)));
    berth_expr to = berth_tfn_to_index(c->fn, berth_lower__get(c, child));
    berth_lower__if(c, before(c, s, x, held(c, s, to)));
    hold(c, s, at, held(c, s, to));
    berth_lower__set(c, hole, berth_lower__get(c, child));
    berth_lower__end_loops(c, 3);
    hold(c, s, berth_tfn_to_index(c->fn, berth_lower__get(c, hole)), x);
}

// The first k elements, as a heap.
static void start_heap(berth_lower *c, selection *s) {
    berth_expr i = berth_lower__loop(c, "i", s->k, BERTH_LOOP_SERIAL);
    hold(c, s, i, element(c, s, i));
    berth_lower__end(c);
    if (s->k == 1) return;
    berth_expr p = berth_lower__loop(c, "p", s->k / 2, BERTH_LOOP_SERIAL);
    berth_expr parent = x_sub(c, ix(c, s->k / 2 - 1), p);
    sift(c, s, parent, ix(c, s->k), keep(c, s, held(c, s, parent)));
    berth_lower__end(c);
}

// The others: a better one takes the place of the last.
static void add_others(berth_lower *c, selection *s) {
    if (s->extent == s->k) return;
    berth_expr r = berth_lower__loop(c, "r", s->extent - s->k, BERTH_LOOP_SERIAL);
    item now = element(c, s, x_addi(c, r, s->k));
    berth_buf value = berth_lower__register(c, "x", s->t);
    berth_lower__set(c, value, now.value);
    now.value = berth_lower__get(c, value);
    berth_lower__if(c, better(c, s, now.value, held(c, s, ix(c, 0)).value));
    sift(c, s, ix(c, 0), ix(c, s->k), now);
    berth_lower__end_loops(c, 2);
}

// The last goes after the heap, again and again: in order then.
static void sort_heap(berth_lower *c, selection *s) {
    if (s->k == 1) return;
    berth_expr e = berth_lower__loop(c, "e", s->k - 1, BERTH_LOOP_SERIAL);
    berth_expr end = x_sub(c, ix(c, s->k - 1), e);
    item moved = keep(c, s, held(c, s, end));
    hold(c, s, end, held(c, s, ix(c, 0)));
    sift(c, s, ix(c, 0), end, moved);
    berth_lower__end(c);
}

static void select_best(berth_lower *c, selection *s) {
    start_heap(c, s);
    add_others(c, s);
    sort_heap(c, s);
    berth_expr j = berth_lower__loop(c, "k", s->k, BERTH_LOOP_SERIAL);
    item found = held(c, s, j);
    s->at[s->axis] = j;
    berth_lower__store(c, s->op, 0, s->at, found.value);
    berth_lower__store(c, s->op, 1, s->at, found.index);
    berth_lower__end(c);
}

void berth_lower__top_k(berth_lower *c, const berth_op *op) {
    const berth_type *x = in_type(c, op, 0);
    selection s = {.op = op, .t = in_dtype(c, op, 0)};
    s.axis = berth_lower__axis(c, op, -1, x->rank);
    if (c->failure) return;
    s.largest = attr_int(c, op, "largest", 1) != 0;
    s.extent = x->dims[s.axis];
    s.k = out_type(c, op, 0)->dims[s.axis];
    if (s.k == 0) return;
    int64_t lines[BERTH_MAX_RANK];
    int64_t heaps[2] = {1, s.k};
    for (int d = 0; d < x->rank; ++d) lines[d] = d == s.axis ? 1 : x->dims[d];
    for (int d = 0; d < x->rank; ++d) heaps[0] *= lines[d];
    s.values = berth_tfn_buffer(c->fn, "best", s.t, 2, heaps, BERTH_SCOPE_WORKSPACE);
    s.indices = berth_tfn_buffer(c->fn, "best_index", index_type, 2, heaps, BERTH_SCOPE_WORKSPACE);
    int loops = berth_lower__outer(c, x->rank, x->dims, 1u << s.axis, s.at);
    s.at[s.axis] = ix(c, 0);
    s.line = berth_lower__linearise(c, x->rank, lines, s.at);
    select_best(c, &s);
    berth_lower__end_loops(c, loops);
}
