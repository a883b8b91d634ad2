// Normalisations by mean and variance: one parallel iteration per group of elements, two passes
// inside.
#include "compiler/lower/families.h"

// The elements that share one mean: dimensions of `mask`, and with channels_per_group > 0 that many
// channels as well.
typedef struct group {
    const berth_op *op;
    int rank;
    const int64_t *dims;
    uint32_t mask;
    int64_t channels_per_group;
    berth_expr index;  // of the group
    berth_dtype t;
    berth_expr at[BERTH_MAX_RANK];
    berth_buf shift;  // the mean as rounding left it
    berth_buf rest;   // the mean is shift + rest
    berth_buf scale;  // 1 / deviation
} group;

static int open_members(berth_lower *c, group *g) {
    int loops = 0;
    if (g->channels_per_group > 0) {
        berth_expr channel = berth_lower__loop(c, "c", g->channels_per_group, BERTH_LOOP_SERIAL);
        g->at[1] = x_add(c, x_muli(c, g->index, g->channels_per_group), channel);
        loops++;
    }
    return loops + berth_lower__inner(c, g->rank, g->dims, g->mask, g->at);
}

static int64_t member_count(const group *g) {
    int64_t count = g->channels_per_group > 0 ? g->channels_per_group : 1;
    for (int d = 0; d < g->rank; ++d)
        if (g->mask >> d & 1u) count *= g->dims[d];
    return count;
}

// Distance of a member from the mean as it was rounded: exact where the two are close.
static berth_expr shifted(berth_lower *c, const group *g) {
    return x_sub(c, in_at(c, g->op, 0, g->at), berth_lower__get(c, g->shift));
}

// Leaves the mean in g->shift and g->rest and the variance in g->scale. Where the mean is large
// beside the deviation, the rounding of its sum is not small beside the deviation: what it was wrong
// by is the mean of the distances (Chan, Golub, LeVeque 1983, the corrected two-pass algorithm).
static void moments(berth_lower *c, group *g) {
    berth_expr count = num(c, g->t, (double)member_count(g));
    g->shift = berth_lower__register(c, "shift", g->t);
    g->rest = berth_lower__register(c, "rest", g->t);
    g->scale = berth_lower__register(c, "scale", g->t);
    berth_lower__set(c, g->shift, num(c, g->t, 0));
    int loops = open_members(c, g);
    berth_expr sum = x_add(c, berth_lower__get(c, g->shift), in_at(c, g->op, 0, g->at));
    berth_lower__set(c, g->shift, sum);
    berth_lower__end_loops(c, loops);
    berth_lower__set(c, g->shift, x_div(c, berth_lower__get(c, g->shift), count));
    berth_lower__set(c, g->rest, num(c, g->t, 0));
    loops = open_members(c, g);
    berth_lower__set(c, g->rest, x_add(c, berth_lower__get(c, g->rest), shifted(c, g)));
    berth_lower__end_loops(c, loops);
    berth_lower__set(c, g->rest, x_div(c, berth_lower__get(c, g->rest), count));
    berth_lower__set(c, g->scale, num(c, g->t, 0));
    loops = open_members(c, g);
    berth_expr distance = x_sub(c, shifted(c, g), berth_lower__get(c, g->rest));
    berth_lower__set(c, g->scale, x_fma(c, distance, distance, berth_lower__get(c, g->scale)));
    berth_lower__end_loops(c, loops);
    berth_lower__set(c, g->scale, x_div(c, berth_lower__get(c, g->scale), count));
}

static void invert_deviation(berth_lower *c, const group *g, double epsilon) {
    berth_expr shifted = x_add(c, berth_lower__get(c, g->scale), num(c, g->t, epsilon));
    berth_lower__set(c, g->scale, x_div(c, num(c, g->t, 1), x_unary(c, BERTH_UNARY_SQRT, shifted)));
}

static berth_expr normalised(berth_lower *c, const group *g) {
    berth_expr distance = x_sub(c, shifted(c, g), berth_lower__get(c, g->rest));
    return x_mul(c, distance, berth_lower__get(c, g->scale));
}

static group describe(berth_lower *c, const berth_op *op, uint32_t mask) {
    const berth_type *x = in_type(c, op, 0);
    return (group){
        .op = op, .rank = x->rank, .dims = x->dims, .mask = mask, .t = in_dtype(c, op, 0)};
}

// Scale (operand 1) and bias (operand 2) at `parameter_at`.
static void store_scaled(berth_lower *c, group *g, berth_expr index) {
    int loops = open_members(c, g);
    berth_expr at = index ? index : g->at[1];
    berth_expr scale = x_cast(c, g->t, in_at(c, g->op, 1, &at));
    berth_expr bias = x_cast(c, g->t, in_at(c, g->op, 2, &at));
    berth_lower__store(c, g->op, 0, g->at, x_add(c, x_mul(c, normalised(c, g), scale), bias));
    berth_lower__end_loops(c, loops);
}

void berth_lower__instance_norm(berth_lower *c, const berth_op *op) {
    group g = describe(c, op, (1u << in_type(c, op, 0)->rank) - 1 - 3u);
    int loops = berth_lower__outer(c, g.rank, g.dims, g.mask, g.at);
    moments(c, &g);
    invert_deviation(c, &g, attr_float(c, op, "epsilon", 1e-5));
    store_scaled(c, &g, 0);
    berth_lower__end_loops(c, loops);
}

void berth_lower__group_norm(berth_lower *c, const berth_op *op) {
    group g = describe(c, op, (1u << in_type(c, op, 0)->rank) - 1 - 3u);
    int64_t groups = attr_int(c, op, "num_groups", 0);
    if (g.rank < 2 || groups < 1 || g.dims[1] % groups != 0) {
        berth_lower__fail(c, op, "num_groups %lld", (long long)groups);
        return;
    }
    g.channels_per_group = g.dims[1] / groups;
    g.at[0] = berth_lower__loop(c, "n", g.dims[0], BERTH_LOOP_PARALLEL);
    g.index = berth_lower__loop(c, "g", groups, BERTH_LOOP_PARALLEL);
    moments(c, &g);
    invert_deviation(c, &g, attr_float(c, op, "epsilon", 1e-5));
    bool per_group = in_type(c, op, 1)->dims[0] != g.dims[1];  // operator version 18
    store_scaled(c, &g, per_group ? g.index : 0);
    berth_lower__end_loops(c, 2);
}

// Element of scale or bias of layer_normalization: broadcast to the dimensions from `axis` on.
static berth_expr layer_parameter(berth_lower *c, const group *g, uint32_t i) {
    return x_cast(c, g->t, berth_lower__in_broadcast(c, g->op, i, g->rank, g->at));
}

void berth_lower__layer_norm(berth_lower *c, const berth_op *op) {
    int axis = berth_lower__axis(c, op, -1, in_type(c, op, 0)->rank);
    if (c->failure) return;
    group g = describe(c, op, ((1u << in_type(c, op, 0)->rank) - 1) & ~((1u << axis) - 1));
    int loops = berth_lower__outer(c, g.rank, g.dims, g.mask, g.at);
    moments(c, &g);
    invert_deviation(c, &g, attr_float(c, op, "epsilon", 1e-5));
    berth_expr stat_at[BERTH_MAX_RANK];
    for (int d = 0; d < g.rank; ++d) stat_at[d] = d < axis ? g.at[d] : ix(c, 0);
    berth_expr mean = x_add(c, berth_lower__get(c, g.shift), berth_lower__get(c, g.rest));
    if (op->output_count > 1) berth_lower__store(c, op, 1, stat_at, mean);
    if (op->output_count > 2) berth_lower__store(c, op, 2, stat_at, berth_lower__get(c, g.scale));
    int inner = open_members(c, &g);
    berth_expr value = x_mul(c, normalised(c, &g), layer_parameter(c, &g, 1));
    if (has_in(op, 2)) value = x_add(c, value, layer_parameter(c, &g, 2));
    berth_lower__store(c, op, 0, g.at, value);
    berth_lower__end_loops(c, loops + inner);
}

// (x - mean) / (deviation + 1e-9), as the operator's function body has it
void berth_lower__mean_variance_norm(berth_lower *c, const berth_op *op) {
    bool given = false;
    uint32_t mask = berth_lower__axes(c, op, 1, "axes", in_type(c, op, 0)->rank, &given);
    if (!given) mask = 1u << 0 | 1u << 2 | 1u << 3;
    group g = describe(c, op, mask);
    int loops = berth_lower__outer(c, g.rank, g.dims, g.mask, g.at);
    moments(c, &g);
    berth_expr deviation = x_unary(c, BERTH_UNARY_SQRT, berth_lower__get(c, g.scale));
    berth_expr shifted = x_add(c, deviation, num(c, g.t, 1e-9));
    berth_lower__set(c, g.scale, x_div(c, num(c, g.t, 1), shifted));
    int inner = open_members(c, &g);
    berth_lower__store(c, op, 0, g.at, normalised(c, &g));
    berth_lower__end_loops(c, loops + inner);
}

// ---- lrn ----------------------------------------------------------------------------------------

// x / base ^ beta; roots for the usual exponents
static berth_expr divide_by_power(berth_lower *c, berth_expr x, berth_expr base, double beta) {
    berth_expr root = x_unary(c, BERTH_UNARY_SQRT, base);
    if (beta == 0.5) return x_div(c, x, root);
    if (beta == 0.75) return x_div(c, x, x_mul(c, root, x_unary(c, BERTH_UNARY_SQRT, root)));
    if (beta == 1) return x_div(c, x, base);
    return x_div(c, x, x_pow(c, base, num(c, dtype_of(c, base), beta)));
}

void berth_lower__lrn(berth_lower *c, const berth_op *op) {
    static const char *const names[BERTH_MAX_RANK] = {"n",  "oc", "oh", "ow",
                                                      "o4", "o5", "o6", "o7"};
    const berth_type *x = in_type(c, op, 0);
    int64_t size = attr_int(c, op, "size", 1);
    double alpha = attr_float(c, op, "alpha", 1e-4) / (double)size;
    berth_lower_grid grid;
    berth_lower__grid(c, op, 0, &(berth_lower_grid_options){.names = names}, &grid);
    if (c->failure) return;
    berth_dtype t = out_dtype(c, op, 0);
    berth_buf acc = berth_lower__register(c, "acc", t);
    berth_lower__set(c, acc, num(c, t, 0));
    berth_expr at[BERTH_MAX_RANK];
    for (int d = 0; d < x->rank; ++d) at[d] = grid.at[d];
    berth_expr k = berth_lower__loop(c, "k", size, BERTH_LOOP_SERIAL);
    at[1] = x_addi(c, x_add(c, grid.at[1], k), -((size - 1) / 2));
    berth_expr inside = x_and(c, x_ge(c, at[1], ix(c, 0)), x_lt(c, at[1], ix(c, x->dims[1])));
    berth_expr value = x_select(c, inside, in_at(c, op, 0, at), num(c, t, 0));
    berth_lower__set(c, acc, x_fma(c, value, value, berth_lower__get(c, acc)));
    berth_lower__end(c);
    berth_expr base = x_mul(c, num(c, t, alpha), berth_lower__get(c, acc));
    base = x_add(c, num(c, t, attr_float(c, op, "bias", 1)), base);
    berth_expr result =
        divide_by_power(c, in_at(c, op, 0, grid.at), base, attr_float(c, op, "beta", 0.75));
    berth_lower__store(c, op, 0, grid.at, result);
    berth_lower__grid_end(c, &grid);
}

// ---- dynamic_quantize_linear --------------------------------------------------------------------

// The smallest or largest of 0 and all elements: a loop each, which is what the schedule has vectors for.
static berth_buf extreme(berth_lower *c, const berth_op *op, const char *name,
                         berth_expr (*combine)(berth_lower *, berth_expr, berth_expr)) {
    const berth_type *x = in_type(c, op, 0);
    berth_expr at[BERTH_MAX_RANK];
    berth_buf acc = berth_lower__register(c, name, BERTH_DTYPE_F32);
    berth_lower__set(c, acc, num(c, BERTH_DTYPE_F32, 0));
    int loops = berth_lower__inner(c, x->rank, x->dims, ~0u, at);
    berth_expr value = x_cast(c, BERTH_DTYPE_F32, in_at(c, op, 0, at));
    berth_lower__set(c, acc, combine(c, berth_lower__get(c, acc), value));
    berth_lower__end_loops(c, loops);
    return acc;
}

// Outputs y (u8), scale, zero point. One kernel finds the range, another quantises; the range is
// found again where only the quantised values are wanted.
void berth_lower__dynamic_quantize(berth_lower *c, const berth_op *op) {
    const berth_type *x = in_type(c, op, 0);
    berth_dtype t = BERTH_DTYPE_F32;
    int64_t one = 1;
    berth_buf state[2] = {berth_tfn_buffer(c->fn, "scale", t, 1, &one, BERTH_SCOPE_WORKSPACE),
                          berth_tfn_buffer(c->fn, "zero", t, 1, &one, BERTH_SCOPE_WORKSPACE)};
    berth_expr first = ix(c, 0);
    berth_buf low = extreme(c, op, "low", x_min);
    berth_buf high = extreme(c, op, "high", x_max);
    berth_expr zero = num(c, t, 0);
    berth_expr width =
        x_div(c, x_sub(c, berth_lower__get(c, high), berth_lower__get(c, low)), num(c, t, 255));
    // In registers here: what loads what it stored to memory is no nest that the schedule arranges.
    berth_buf held[2] = {berth_lower__register(c, "held_scale", t),
                         berth_lower__register(c, "held_zero", t)};
    berth_lower__set(c, held[0], x_select(c, x_eq(c, width, zero), num(c, t, 1), width));
    berth_expr scale = berth_lower__get(c, held[0]);
    berth_expr offset =
        x_unary(c, BERTH_UNARY_ROUND, x_sub(c, zero, x_div(c, berth_lower__get(c, low), scale)));
    berth_lower__set(c, held[1], x_max(c, zero, x_min(c, num(c, t, 255), offset)));
    berth_expr shift = berth_lower__get(c, held[1]);
    berth_expr at[BERTH_MAX_RANK] = {0};
    berth_lower__put(c, state[0], &first, scale);
    berth_lower__put(c, state[1], &first, shift);
    berth_lower__store(c, op, 1, at, scale);
    berth_lower__store(c, op, 2, at, x_cast(c, BERTH_DTYPE_U8, shift));
    if (!berth_lower__wanted(c, 0)) return;
    berth_lower__next_nest(c);
    scale = berth_tfn_load(c->fn, state[0], &first, 1);
    shift = berth_tfn_load(c->fn, state[1], &first, 1);
    int loops = berth_lower__outer(c, x->rank, x->dims, 0, at);
    berth_expr quantised =
        x_unary(c, BERTH_UNARY_ROUND, x_div(c, x_cast(c, t, in_at(c, op, 0, at)), scale));
    quantised = x_max(c, zero, x_min(c, num(c, t, 255), x_add(c, quantised, shift)));
    berth_lower__store(c, op, 0, at, x_cast(c, BERTH_DTYPE_U8, quantised));
    berth_lower__end_loops(c, loops);
}
