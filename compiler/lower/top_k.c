// top_k: the best elements of a line in order, equal ones by their index; NaN is above everything
// (as in the interpreter and in ONNX Runtime). A few of many are kept in a heap whose root is the last
// of them, so that an element costs one comparison unless it is among the best so far, and are then
// taken from the heap in order: O(extent + found * log k) per line (Williams 1964, "Algorithm 232:
// Heapsort", with Floyd's construction). Where half of a line or more is wanted, all of it is sorted:
// O(extent * log extent), by straight two-way merges (Knuth, "The Art of Computer Programming" 3,
// 5.2.4), each from both ends at once, so that two elements are found at a time, and without a jump
// that depends on the data.
#include "compiler/lower/families.h"

typedef struct selection {
    const berth_op *op;
    berth_dtype t;
    int axis;
    int64_t extent, k;
    bool largest;
    berth_expr at[BERTH_MAX_RANK];  // of the line
    berth_expr line;
    bool sorts;                 // all of a line
    berth_expr half;            // of the buffers, where elements are looked for
    berth_buf values, indices;  // heap: [line][k]; sorts: [line][half][one more on either side]
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

static int position(berth_lower *c, const selection *s, berth_expr half, berth_expr place,
                    berth_expr out[3]) {
    out[0] = s->line;
    if (s->sorts) out[1] = half;
    out[s->sorts ? 2 : 1] = s->sorts ? x_addi(c, place, 1) : place;
    return s->sorts ? 3 : 2;
}

static item held(berth_lower *c, const selection *s, berth_expr place) {
    berth_expr at[3];
    int rank = position(c, s, s->half, place, at);
    return (item){berth_tfn_load(c->fn, s->values, at, rank),
                  berth_tfn_load(c->fn, s->indices, at, rank)};
}

static void hold_in(berth_lower *c, const selection *s, berth_expr half, berth_expr place, item x) {
    berth_expr at[3];
    position(c, s, half, place, at);
    berth_lower__put(c, s->values, at, x.value);
    berth_lower__put(c, s->indices, at, x.index);
}

static void hold(berth_lower *c, const selection *s, berth_expr place, item x) {
    hold_in(c, s, s->half, place, x);
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

// ---- all of a line ------------------------------------------------------------------------------------

static berth_buf number(berth_lower *c, const char *name, berth_expr index) {
    berth_buf buf = berth_lower__register(c, name, index_type);
    berth_lower__set(c, buf, berth_tfn_from_index(c->fn, index_type, index));
    return buf;
}

static berth_expr place_in(berth_lower *c, berth_buf number) {
    return berth_tfn_to_index(c->fn, berth_lower__get(c, number));
}

// Conditions as 0 and 1, so that C compilers make no jumps of them.
static berth_expr bit(berth_lower *c, berth_expr condition) {
    return x_cast(c, index_type, condition);
}

static berth_expr both(berth_lower *c, berth_expr a, berth_expr b) {
    return berth_tfn_binary(c->fn, BERTH_BINARY_BIT_AND, a, b);
}

static berth_expr better_bit(berth_lower *c, const selection *s, berth_expr a, berth_expr b) {
    berth_expr high = s->largest ? a : b;
    berth_expr low = s->largest ? b : a;
    if (!berth_dtype_is_float(s->t)) return bit(c, x_gt(c, high, low));
    berth_expr not_below = bit(c, x_unary(c, BERTH_UNARY_NOT, x_le(c, high, low)));
    return both(c, not_below, bit(c, x_unary(c, BERTH_UNARY_NOT, is_nan(c, low))));
}

// Two sorted runs, [low, middle) and [middle, high), of one half of the buffers.
typedef struct runs {
    berth_expr low, middle, high;
    berth_expr into;  // the other half
} runs;

// An end of both runs from which elements are taken, where one of the right run comes before one of the
// left: the right one's at their beginnings, the left one's at their ends.
typedef struct run_end {
    berth_buf usual, other;             // places
    berth_expr usual_left, other_left;  // whether there are elements at them
    berth_expr turns;                   // 1: the right one is before the left one
    int step;                           // 1: from the beginnings; -1: from the ends
} run_end;

static void take_one(berth_lower *c, const selection *s, const runs *r, const run_end *e,
                     berth_expr to) {
    berth_expr one = berth_tfn_int(c->fn, index_type, 1);
    berth_expr usual_gone = bit(c, x_unary(c, BERTH_UNARY_NOT, e->usual_left));
    berth_expr wanted = berth_tfn_binary(c->fn, BERTH_BINARY_BIT_OR, usual_gone, e->turns);
    berth_buf taken = berth_lower__register(c, "taken", index_type);
    berth_lower__set(c, taken, both(c, bit(c, e->other_left), wanted));
    berth_expr by = berth_lower__get(c, taken);
    berth_expr place = x_select(c, x_eq(c, by, one), place_in(c, e->other), place_in(c, e->usual));
    hold_in(c, s, r->into, to, held(c, s, place));
    berth_expr rest = x_sub(c, one, by);
    berth_expr (*move)(berth_lower *, berth_expr, berth_expr) = e->step > 0 ? x_add : x_sub;
    berth_lower__set(c, e->usual, move(c, berth_lower__get(c, e->usual), rest));
    berth_lower__set(c, e->other, move(c, berth_lower__get(c, e->other), by));
}

// From the first on and from the last back; of an odd number both find the one in the middle. Where a run
// is at its end the element beside it is compared, but not taken.
static void merge_runs(berth_lower *c, const selection *s, const runs *r) {
    berth_buf left = number(c, "left", r->low);
    berth_buf right = number(c, "right", r->middle);
    berth_buf left_end = number(c, "left_end", x_addi(c, r->middle, -1));
    berth_buf right_end = number(c, "right_end", x_addi(c, r->high, -1));
    berth_expr count = x_sub(c, r->high, r->low);
    berth_expr n = berth_lower__loop_to(c, "n", x_div(c, x_addi(c, count, 1), ix(c, 2)));
    berth_expr first[2] = {place_in(c, left), place_in(c, right)};
    run_end front = {.usual = left,
                     .other = right,
                     .usual_left = x_lt(c, first[0], r->middle),
                     .other_left = x_lt(c, first[1], r->high),
                     .turns =
                         better_bit(c, s, held(c, s, first[1]).value, held(c, s, first[0]).value),
                     .step = 1};
    take_one(c, s, r, &front, x_add(c, r->low, n));
    berth_expr last[2] = {place_in(c, left_end), place_in(c, right_end)};
    run_end back = {.usual = right_end,
                    .other = left_end,
                    .usual_left = x_ge(c, last[1], r->middle),
                    .other_left = x_ge(c, last[0], r->low),
                    .turns = better_bit(c, s, held(c, s, last[1]).value, held(c, s, last[0]).value),
                    .step = -1};
    take_one(c, s, r, &back, x_sub(c, x_addi(c, r->high, -1), n));
    berth_lower__end(c);
}

// Runs of one element, of two, of four, ...: each pass from one half of the buffers to the other.
static void sort_line(berth_lower *c, selection *s) {
    int64_t passes = 0;
    while (((int64_t)1 << passes) < s->extent) passes++;
    berth_expr i = berth_lower__loop(c, "i", s->extent, BERTH_LOOP_SERIAL);
    hold(c, s, i, element(c, s, i));
    berth_lower__end(c);
    if (passes == 0) return;
    berth_expr extent = ix(c, s->extent);
    berth_buf width = number(c, "width", ix(c, 1));
    berth_expr pass = berth_lower__loop(c, "pass", passes, BERTH_LOOP_SERIAL);
    s->half = x_mod(c, pass, ix(c, 2));
    berth_expr one_run = place_in(c, width);
    berth_expr two_runs = x_muli(c, one_run, 2);
    berth_expr pairs = x_div(c, x_addi(c, x_add(c, extent, two_runs), -1), two_runs);
    berth_expr pair = berth_lower__loop_to(c, "pair", pairs);
    berth_expr low = x_mul(c, pair, two_runs);
    runs r = {.low = low, .into = x_sub(c, ix(c, 1), s->half)};
    r.middle = place_in(c, number(c, "middle", x_min(c, x_add(c, low, one_run), extent)));
    r.high = place_in(c, number(c, "high", x_min(c, x_add(c, low, two_runs), extent)));
    merge_runs(c, s, &r);
    berth_lower__end(c);
    berth_lower__set(c, width, berth_tfn_from_index(c->fn, index_type, two_runs));
    berth_lower__end(c);
    s->half = ix(c, passes % 2);
}

static void select_best(berth_lower *c, selection *s) {
    if (s->sorts) {
        sort_line(c, s);
    } else {
        start_heap(c, s);
        add_others(c, s);
        sort_heap(c, s);
    }
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
    s.sorts = s.k > 1 && s.extent <= 2 * s.k;
    s.half = ix(c, 0);
    int64_t lines[BERTH_MAX_RANK];
    int64_t count = 1;
    for (int d = 0; d < x->rank; ++d) lines[d] = d == s.axis ? 1 : x->dims[d];
    for (int d = 0; d < x->rank; ++d) count *= lines[d];
    int64_t kept[3] = {count, s.sorts ? 2 : s.k, s.extent + 2};
    int rank = s.sorts ? 3 : 2;
    s.values = berth_tfn_buffer(c->fn, "best", s.t, rank, kept, BERTH_SCOPE_WORKSPACE);
    s.indices =
        berth_tfn_buffer(c->fn, "best_index", index_type, rank, kept, BERTH_SCOPE_WORKSPACE);
    int loops = berth_lower__outer(c, x->rank, x->dims, 1u << s.axis, s.at);
    s.at[s.axis] = ix(c, 0);
    s.line = berth_lower__linearise(c, x->rank, lines, s.at);
    select_best(c, &s);
    berth_lower__end_loops(c, loops);
}
