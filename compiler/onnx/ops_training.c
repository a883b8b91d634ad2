// Losses, and what else models carry from their training.
#include <string.h>

#include "compiler/onnx/compose.h"
#include "compiler/onnx/ops.h"

// ---- losses ----

// The loss of log-probabilities (batch, classes, ...) for targets (batch, ...); `weight` per class
// is optional. Attributes ignore_index and reduction are the node's.
static berth_value_id likelihood_loss(onnx_compose *c, berth_value_id x, berth_value_id target,
                                      berth_value_id weight) {
    const onnx_attr *ignore = onnx_call_attr(c->call, "ignore_index");
    const char *reduction = onnx_call_string(c->call, "reduction", "mean");
    bool mean = strcmp(reduction, "mean") == 0;
    berth_value_id ignored = BERTH_NONE;
    onnx_compose_want_rank(c, x, "the scores", 2, BERTH_MAX_RANK);
    if (!mean && strcmp(reduction, "sum") != 0 && strcmp(reduction, "none") != 0)
        onnx_compose_fail(c, BERTH_INVALID_ARGUMENT,
                          "reduction is \"%.32s\", expected none, sum or mean", reduction);
    target = onnx_cast_to(c, target, BERTH_DTYPE_I64);
    if (ignore) {
        ignored = onnx_make2(c, BERTH_OP_EQUAL, target, onnx_int_list(c, &ignore->i, 1));
        target = onnx_where(c, ignored, onnx_scalar(c, BERTH_DTYPE_I64, 0), target);
    }
    berth_value_id zero = onnx_like(c, x, 0);
    berth_value_id index[2] = {x, onnx_unsqueezed(c, target, 1)};
    onnx_made picked = onnx_start(c, BERTH_OP_GATHER_ELEMENTS, index, 2, 1);
    onnx_set_int(picked, "axis", 1);
    berth_value_id loss = onnx_squeezed(c, onnx_finish(picked), 1);
    loss = onnx_make1(c, BERTH_OP_NEG, loss);
    berth_value_id share = BERTH_NONE;
    if (weight != BERTH_NONE) {
        share = onnx_gathered(c, weight, target, 0);
        loss = onnx_mul(c, loss, share);
    }
    if (ignored != BERTH_NONE) {
        loss = onnx_where(c, ignored, zero, loss);
        if (mean) {
            berth_value_id one = share == BERTH_NONE ? onnx_like(c, x, 1) : share;
            share = onnx_where(c, ignored, zero, one);
        }
    }
    if (strcmp(reduction, "none") == 0) return loss;
    if (mean && share == BERTH_NONE)
        return onnx_reduced(c, BERTH_OP_REDUCE_MEAN, loss, NULL, 0, false);
    loss = onnx_reduced(c, BERTH_OP_REDUCE_SUM, loss, NULL, 0, false);
    if (!mean) return loss;
    return onnx_div(c, loss, onnx_reduced(c, BERTH_OP_REDUCE_SUM, share, NULL, 0, false));
}

berth_status onnx_build_likelihood_loss(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 2, 3);
    onnx_compose_output(&c, 0,
                        likelihood_loss(&c, onnx_compose_input(&c, 0), onnx_compose_input(&c, 1),
                                        onnx_compose_input(&c, 2)));
    return c.status;
}

berth_status onnx_build_cross_entropy(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 2, 3);
    berth_value_id scores = onnx_compose_input(&c, 0);
    onnx_compose_want_rank(&c, scores, "the scores", 2, BERTH_MAX_RANK);
    berth_value_id logs = onnx_softmax_along(&c, BERTH_OP_LOG_SOFTMAX, scores, 1);
    onnx_compose_output(
        &c, 0, likelihood_loss(&c, logs, onnx_compose_input(&c, 1), onnx_compose_input(&c, 2)));
    onnx_compose_output(&c, 1, logs);
    return c.status;
}

// ---- random numbers ----

// The seed of a node: of the attribute, which may be a float, or one after the other for nodes that
// have none.
static int64_t seed_of(onnx_compose *c) {
    const onnx_attr *attr = onnx_call_attr(c->call, "seed");
    if (!attr) return c->call->im->unseeded++;
    if (attr->type == ONNX_ATTR_INT) return attr->i & 0xffffffff;
    double seed = attr->f;
    if (!(seed >= -9e15 && seed <= 9e15)) {
        onnx_compose_fail(c, BERTH_INVALID_ARGUMENT, "seed %g is no seed", seed);
        return 0;
    }
    return (int64_t)seed & 0xffffffff;
}

// Numbers of a shape; a and b are low and high, or mean and scale.
static berth_value_id random_numbers(onnx_compose *c, berth_value_id shape, berth_dtype dtype,
                                     bool normal, double a, double b) {
    onnx_made made = onnx_start(c, BERTH_OP_RANDOM, &shape, 1, 1);
    onnx_set_string(made, "distribution", normal ? "normal" : "uniform");
    onnx_set_float(made, normal ? "mean" : "low", a);
    onnx_set_float(made, normal ? "scale" : "high", b);
    onnx_set_int(made, "seed", seed_of(c));
    onnx_set_dtype(made, "dtype", dtype);
    return onnx_finish(made);
}

// The attribute dtype, else `fallback`.
static berth_dtype wanted_type(onnx_compose *c, berth_dtype fallback) {
    const onnx_attr *attr = onnx_call_attr(c->call, "dtype");
    berth_dtype dtype = attr ? berth_dtype_from_onnx(attr->i) : fallback;
    if (dtype == BERTH_DTYPE_NONE)
        onnx_compose_fail(c, BERTH_UNSUPPORTED, "attribute dtype is element type %lld of ONNX (%s)",
                          attr ? (long long)attr->i : 0, onnx_element_name(attr ? attr->i : 0));
    return dtype;
}

// RandomUniform, RandomNormal and their forms with an input whose shape is taken.
berth_status onnx_build_random(onnx_call *call) {
    const char *op_type = call->node->op_type;
    bool normal = strncmp(op_type, "RandomNormal", 12) == 0;
    bool like = strstr(op_type, "Like") != NULL;
    onnx_compose c = onnx_compose_begin(call, like, like);
    const onnx_attr *dims = onnx_call_attr(call, "shape");
    berth_value_id x = onnx_compose_input(&c, 0), shape = BERTH_NONE;
    berth_dtype dtype = wanted_type(&c, like ? onnx_compose_dtype(&c, x) : BERTH_DTYPE_F32);
    for (uint32_t i = 0; dims && i < dims->ints.count; ++i)
        if (dims->ints.data[i] < 0)
            onnx_compose_fail(&c, BERTH_INVALID_ARGUMENT, "extent %u of shape is negative", i);
    if (c.status) return c.status;
    shape = like ? onnx_shape_of(&c, x) : onnx_int_list(&c, dims->ints.data, dims->ints.count);
    double a = onnx_call_float(call, normal ? "mean" : "low", 0);
    double b = onnx_call_float(call, normal ? "scale" : "high", 1);
    onnx_compose_output(&c, 0, random_numbers(&c, shape, dtype, normal, a, b));
    return c.status;
}

// One where a number in [0, 1) is below the probability.
berth_status onnx_build_bernoulli(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 1, 1);
    berth_value_id p = onnx_compose_input(&c, 0);
    berth_dtype own = onnx_compose_dtype(&c, p), dtype = wanted_type(&c, own);
    berth_value_id u = random_numbers(&c, onnx_shape_of(&c, p), own, false, 0, 1);
    onnx_compose_output(&c, 0, onnx_cast_to(&c, onnx_make2(&c, BERTH_OP_LESS, u, p), dtype));
    return c.status;
}

// Of each row of logarithms of weights, sample_size classes: how many cumulated probabilities a
// number in [0, 1) reaches.
berth_status onnx_build_multinomial(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 1, 1);
    berth_value_id x = onnx_compose_input(&c, 0);
    int64_t size = onnx_call_int(call, "sample_size", 1);
    berth_dtype dtype = wanted_type(&c, BERTH_DTYPE_I32);
    onnx_compose_want_rank(&c, x, "the input", 2, 2);
    int64_t classes = onnx_compose_known_extent(&c, x, "the input", 1);
    if (size < 1 || classes < 1)
        onnx_compose_fail(&c, BERTH_INVALID_ARGUMENT, "%lld samples of %lld classes",
                          (long long)size, (long long)classes);
    if (!c.status && !berth_dtype_is_integer(dtype))
        onnx_compose_fail(&c, BERTH_INVALID_ARGUMENT, "attribute dtype is no integer type");
    berth_value_id rows = onnx_unsqueezed(&c, onnx_extent_of(&c, x, 0), 0);
    berth_value_id shape =
        onnx_concatenated(&c, (berth_value_id[]){rows, onnx_int_list(&c, &size, 1)}, 2, 0);
    berth_value_id weights = onnx_softmax_along(&c, BERTH_OP_SOFTMAX, x, 1);
    berth_value_id sums =
        onnx_make2(&c, BERTH_OP_CUM_SUM, weights, onnx_scalar(&c, BERTH_DTYPE_I64, 1));
    berth_value_id u = random_numbers(&c, shape, onnx_compose_dtype(&c, weights), false, 0, 1);
    berth_value_id reached = onnx_make2(&c, BERTH_OP_LESS_OR_EQUAL, onnx_unsqueezed(&c, sums, 1),
                                        onnx_unsqueezed(&c, u, 2));
    reached = onnx_reduced(&c, BERTH_OP_REDUCE_SUM, onnx_cast_to(&c, reached, BERTH_DTYPE_I32),
                           (int64_t[]){2}, 1, false);
    reached = onnx_make2(&c, BERTH_OP_MIN, reached,
                         onnx_scalar(&c, BERTH_DTYPE_I32, (double)(classes - 1)));
    onnx_compose_output(&c, 0, onnx_cast_to(&c, reached, dtype));
    return c.status;
}

// ---- dropout and batch normalisation in training mode ----

// What is kept is where a number in [0, 1) is not below the ratio, or everything where the mode turns
// out to be off; it is scaled by 1 / (1 - ratio).
berth_status onnx_build_dropout_training(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 1, 3);
    berth_value_id x = onnx_compose_input(&c, 0), ratio = onnx_compose_input(&c, 1);
    berth_value_id training = onnx_compose_input(&c, 2);
    berth_value_id half = onnx_like(&c, x, 0.5), zero = onnx_like(&c, x, 0);
    berth_value_id one = onnx_like(&c, x, 1);
    if (ratio == BERTH_NONE) ratio = half;
    berth_dtype own = onnx_compose_dtype(&c, x), given = onnx_compose_dtype(&c, ratio);
    berth_value_id u = random_numbers(&c, onnx_shape_of(&c, x), BERTH_DTYPE_F64, false, 0, 1);
    berth_value_id none = onnx_like(&c, ratio, 0);
    if (training != BERTH_NONE && given != BERTH_DTYPE_NONE)
        ratio = onnx_where(&c, training, ratio, none);
    berth_value_id kept =
        onnx_make2(&c, BERTH_OP_GREATER_OR_EQUAL, u, onnx_cast_to(&c, ratio, BERTH_DTYPE_F64));
    berth_value_id rest = onnx_sub(&c, one, onnx_cast_to(&c, ratio, own));
    onnx_compose_output(&c, 0, onnx_where(&c, kept, onnx_div(&c, x, rest), zero));
    onnx_compose_output(&c, 1, kept);
    return c.status;
}

// Statistics of the batch normalise it, and move the running ones.
berth_status onnx_build_batch_norm_training(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 5, 5);
    berth_value_id x = onnx_compose_input(&c, 0);
    int rank = onnx_compose_want_rank(&c, x, "the input", 2, BERTH_MAX_RANK);
    double momentum = onnx_call_float(call, "momentum", 0.9);
    int64_t axes[BERTH_MAX_RANK], dims[BERTH_MAX_RANK];
    uint32_t count = 0;
    if (call->output_count > 3 || !onnx_call_int(call, "spatial", 1))
        onnx_compose_fail(&c, BERTH_UNSUPPORTED,
                          "batch normalisation in training mode with saved statistics or not "
                          "spatial");
    if (c.status) return c.status;
    for (int i = 0; i < rank; ++i) {
        dims[i] = i == 1 ? -1 : 1;
        if (i != 1) axes[count++] = i;
    }
    berth_dtype own = onnx_compose_dtype(&c, x);
    berth_dtype inner = own == BERTH_DTYPE_F64 ? own : BERTH_DTYPE_F32;
    berth_value_id wide = onnx_cast_to(&c, x, inner), parts[4];
    berth_value_id mean = onnx_reduced(&c, BERTH_OP_REDUCE_MEAN, wide, axes, count, true);
    berth_value_id from = onnx_sub(&c, wide, mean);
    berth_value_id variance =
        onnx_reduced(&c, BERTH_OP_REDUCE_MEAN, onnx_mul(&c, from, from), axes, count, true);
    for (uint32_t i = 0; i < 4; ++i)
        parts[i] = onnx_cast_to(&c, onnx_compose_input(&c, i + 1), inner);
    berth_value_id deviation = onnx_make1(
        &c, BERTH_OP_SQRT,
        onnx_add(&c, variance, onnx_like(&c, variance, onnx_call_float(call, "epsilon", 1e-5))));
    berth_value_id y = onnx_mul(&c, onnx_div(&c, from, deviation),
                                onnx_reshaped(&c, parts[0], dims, (uint32_t)rank));
    y = onnx_add(&c, y, onnx_reshaped(&c, parts[1], dims, (uint32_t)rank));
    onnx_compose_output(&c, 0, onnx_cast_to(&c, y, own));
    berth_value_id now[2] = {mean, variance};
    for (uint32_t i = 0; i < 2; ++i) {
        berth_dtype type = onnx_compose_dtype(&c, onnx_compose_input(&c, i + 3));
        berth_value_id flat = onnx_reshaped(&c, now[i], (int64_t[]){-1}, 1);
        flat = onnx_add(&c, onnx_mul(&c, parts[i + 2], onnx_scalar(&c, inner, momentum)),
                        onnx_mul(&c, flat, onnx_scalar(&c, inner, 1 - momentum)));
        onnx_compose_output(&c, i + 1, onnx_cast_to(&c, flat, type));
    }
    return c.status;
}

// ---- optimisers (ai.onnx.preview.training) ----

typedef struct optimiser {
    onnx_compose c;
    berth_value_id rate, step;  // R, T (as R's type)
    uint32_t count;             // tensors
} optimiser;

// Inputs: R, T, then `kinds` groups of as many tensors.
static optimiser begin_optimiser(onnx_call *call, uint32_t kinds) {
    optimiser o = {.c = onnx_compose_begin(call, 2 + kinds, UINT32_MAX)};
    uint32_t rest = call->input_count < 2 ? 0 : call->input_count - 2;
    if (rest % kinds)
        onnx_compose_fail(&o.c, BERTH_INVALID_ARGUMENT, "%u tensors in groups of %u", rest, kinds);
    o.count = rest / kinds;
    for (uint32_t i = 0; i < call->input_count; ++i)
        if (!onnx_call_has(call, i))
            onnx_compose_fail(&o.c, BERTH_INVALID_ARGUMENT, "input %u is missing", i);
    o.rate = onnx_compose_input(&o.c, 0);
    if (!o.c.status)
        o.step = onnx_cast_to(&o.c, onnx_compose_input(&o.c, 1), onnx_compose_dtype(&o.c, o.rate));
    return o;
}

static berth_value_id tensor_of(const optimiser *o, uint32_t kind, uint32_t index) {
    return onnx_compose_input(&o->c, 2 + kind * o->count + index);
}

static void give(optimiser *o, uint32_t kind, uint32_t index, berth_value_id value) {
    onnx_compose_output(&o->c, kind * o->count + index, value);
}

static berth_value_id times(onnx_compose *c, berth_value_id value, double factor) {
    return onnx_mul(c, value, onnx_like(c, value, factor));
}

// The gradient with the derivative of norm_coefficient / 2 |x|^2.
static berth_value_id regular_gradient(optimiser *o, berth_value_id x, uint32_t index) {
    double norm = onnx_call_float(o->c.call, "norm_coefficient", 0);
    return onnx_add(&o->c, times(&o->c, x, norm), tensor_of(o, 1, index));
}

berth_status onnx_build_adagrad(onnx_call *call) {
    optimiser o = begin_optimiser(call, 3);
    onnx_compose *c = &o.c;
    berth_value_id decayed = times(c, o.step, onnx_call_float(call, "decay_factor", 0));
    berth_value_id rate = onnx_div(c, o.rate, onnx_add(c, onnx_like(c, o.rate, 1), decayed));
    for (uint32_t i = 0; !c->status && i < o.count; ++i) {
        berth_value_id x = tensor_of(&o, 0, i), g = regular_gradient(&o, x, i);
        berth_value_id h = onnx_add(c, tensor_of(&o, 2, i), onnx_mul(c, g, g));
        berth_value_id root = onnx_make1(c, BERTH_OP_SQRT, h);
        root = onnx_add(c, root, onnx_like(c, root, onnx_call_float(call, "epsilon", 1e-6)));
        give(&o, 0, i, onnx_sub(c, x, onnx_div(c, onnx_mul(c, rate, g), root)));
        give(&o, 1, i, h);
    }
    return c->status;
}

// The rate that makes up for averages that started at zero.
static berth_value_id adam_rate(optimiser *o, double alpha, double beta) {
    onnx_compose *c = &o->c;
    berth_value_id one = onnx_like(c, o->rate, 1);
    berth_value_id a = onnx_make2(c, BERTH_OP_POW, onnx_like(c, o->rate, alpha), o->step);
    berth_value_id b = onnx_make2(c, BERTH_OP_POW, onnx_like(c, o->rate, beta), o->step);
    berth_value_id root = onnx_make1(c, BERTH_OP_SQRT, onnx_sub(c, one, b));
    berth_value_id rate = onnx_div(c, onnx_mul(c, o->rate, root), onnx_sub(c, one, a));
    berth_value_id later = onnx_make2(c, BERTH_OP_GREATER, o->step, onnx_like(c, o->rate, 0));
    return onnx_where(c, later, rate, o->rate);
}

berth_status onnx_build_adam(onnx_call *call) {
    optimiser o = begin_optimiser(call, 4);
    onnx_compose *c = &o.c;
    double alpha = onnx_call_float(call, "alpha", 0.9), beta = onnx_call_float(call, "beta", 0.999);
    berth_value_id rate = adam_rate(&o, alpha, beta);
    for (uint32_t i = 0; !c->status && i < o.count; ++i) {
        berth_value_id x = tensor_of(&o, 0, i), g = regular_gradient(&o, x, i);
        berth_value_id v =
            onnx_add(c, times(c, tensor_of(&o, 2, i), alpha), times(c, g, 1 - alpha));
        berth_value_id h =
            onnx_add(c, times(c, tensor_of(&o, 3, i), beta), times(c, onnx_mul(c, g, g), 1 - beta));
        berth_value_id root = onnx_make1(c, BERTH_OP_SQRT, h);
        root = onnx_add(c, root, onnx_like(c, root, onnx_call_float(call, "epsilon", 1e-6)));
        x = onnx_sub(c, x, onnx_div(c, onnx_mul(c, rate, v), root));
        give(&o, 0, i, times(c, x, 1 - onnx_call_float(call, "norm_coefficient_post", 0)));
        give(&o, 1, i, v);
        give(&o, 2, i, h);
    }
    return c->status;
}

berth_status onnx_build_momentum(onnx_call *call) {
    optimiser o = begin_optimiser(call, 3);
    onnx_compose *c = &o.c;
    const char *mode = onnx_call_string(call, "mode", "standard");
    double alpha = onnx_call_float(call, "alpha", 0), beta = onnx_call_float(call, "beta", 1);
    bool nesterov = strcmp(mode, "nesterov") == 0;
    if (!nesterov && strcmp(mode, "standard") != 0)
        onnx_compose_fail(c, BERTH_INVALID_ARGUMENT,
                          "mode is \"%.32s\", expected standard or nesterov", mode);
    berth_value_id later = onnx_make2(c, BERTH_OP_GREATER, o.step, onnx_like(c, o.rate, 0));
    berth_value_id share =
        onnx_where(c, later, onnx_like(c, o.rate, beta), onnx_like(c, o.rate, 1));
    for (uint32_t i = 0; !c->status && i < o.count; ++i) {
        berth_value_id x = tensor_of(&o, 0, i), g = regular_gradient(&o, x, i);
        berth_value_id v = onnx_add(c, times(c, tensor_of(&o, 2, i), alpha), onnx_mul(c, share, g));
        berth_value_id along = nesterov ? onnx_add(c, g, times(c, v, alpha)) : v;
        give(&o, 0, i, onnx_sub(c, x, onnx_mul(c, o.rate, along)));
        give(&o, 1, i, v);
    }
    return c->status;
}
