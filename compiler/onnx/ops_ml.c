// Operators of ai.onnx.ml on numbers: scalers, encoders, linear models.
#include <string.h>

#include "compiler/onnx/compose.h"
#include "compiler/onnx/ops.h"

// The floats of an attribute as an f32 vector; BERTH_NONE when it is absent or empty.
static berth_value_id float_list(onnx_compose *c, const char *name) {
    const onnx_attr *attr = onnx_call_attr(c->call, name);
    if (c->status || !attr || !attr->floats.count) return BERTH_NONE;
    int64_t count = attr->floats.count;
    berth_tensor tensor = berth_tensor_create(c->call->im->arena, BERTH_DTYPE_F32, 1, &count);
    for (int64_t i = 0; i < count; ++i) berth_tensor_set_f64(&tensor, i, attr->floats.data[i]);
    return onnx_call_literal(c->call, &tensor);
}

static berth_value_id real_input(onnx_compose *c, uint32_t index) {
    return onnx_cast_to(c, onnx_compose_input(c, index), BERTH_DTYPE_F32);
}

// ---- elementwise ----

berth_status onnx_build_ml_scaler(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 1, 1);
    berth_value_id x = real_input(&c, 0);
    berth_value_id offset = float_list(&c, "offset"), scale = float_list(&c, "scale");
    if (offset != BERTH_NONE) x = onnx_sub(&c, x, offset);
    if (scale != BERTH_NONE) x = onnx_mul(&c, x, scale);
    onnx_compose_output(&c, 0, x);
    return c.status;
}

berth_status onnx_build_ml_binarizer(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 1, 1);
    berth_value_id x = onnx_compose_input(&c, 0);
    berth_value_id over = onnx_make2(&c, BERTH_OP_GREATER, x,
                                     onnx_like(&c, x, onnx_call_float(call, "threshold", 0)));
    onnx_compose_output(&c, 0, onnx_cast_to(&c, over, onnx_compose_dtype(&c, x)));
    return c.status;
}

// Rows over their largest element, the sum of magnitudes, or the root of the sum of squares; a row
// that would be divided by zero stays.
berth_status onnx_build_ml_normalizer(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 1, 1);
    const char *norm = onnx_call_string(call, "norm", "MAX");
    berth_value_id x = real_input(&c, 0);
    onnx_compose_want_rank(&c, x, "the input", 1, 2);
    berth_op_kind kind = strcmp(norm, "MAX") == 0  ? BERTH_OP_REDUCE_MAX
                         : strcmp(norm, "L1") == 0 ? BERTH_OP_REDUCE_L1
                                                   : BERTH_OP_REDUCE_L2;
    if (kind == BERTH_OP_REDUCE_L2 && strcmp(norm, "L2") != 0)
        onnx_compose_fail(&c, BERTH_INVALID_ARGUMENT, "norm is \"%.32s\", expected MAX, L1 or L2",
                          norm);
    berth_value_id length = onnx_reduced(&c, kind, x, (int64_t[]){-1}, 1, true);
    berth_value_id none = onnx_make2(&c, BERTH_OP_EQUAL, length, onnx_like(&c, x, 0));
    length = onnx_where(&c, none, onnx_like(&c, x, 1), length);
    onnx_compose_output(&c, 0, onnx_div(&c, x, length));
    return c.status;
}

// Elements that are the replaced value (NaN is NaN) become the imputed one, of their column or all.
berth_status onnx_build_ml_imputer(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 1, 1);
    berth_value_id x = onnx_compose_input(&c, 0);
    const onnx_attr *ints = onnx_call_attr(call, "imputed_value_int64s");
    bool whole = berth_dtype_is_integer(onnx_compose_dtype(&c, x));
    berth_value_id imputed = float_list(&c, "imputed_value_floats");
    if (whole) imputed = ints ? onnx_int_list(&c, ints->ints.data, ints->ints.count) : BERTH_NONE;
    if (imputed == BERTH_NONE)
        onnx_compose_fail(&c, BERTH_INVALID_ARGUMENT, "no imputed values of the input's type");
    double replaced = whole ? (double)onnx_call_int(call, "replaced_value_int64", 0)
                            : onnx_call_float(call, "replaced_value_float", 0);
    berth_value_id bad = replaced != replaced
                             ? onnx_make1(&c, BERTH_OP_IS_NAN, x)
                             : onnx_make2(&c, BERTH_OP_EQUAL, x, onnx_like(&c, x, replaced));
    if (!c.status) imputed = onnx_cast_to(&c, imputed, onnx_compose_dtype(&c, x));
    onnx_compose_output(&c, 0, onnx_where(&c, bad, imputed, x));
    return c.status;
}

// ---- columns ----

berth_status onnx_build_ml_array_feature_extractor(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 2, 2);
    berth_value_id x = onnx_compose_input(&c, 0);
    berth_value_id indices = onnx_reshaped(&c, onnx_compose_input(&c, 1), (int64_t[]){-1}, 1);
    if (onnx_compose_rank(&c, x) == 1) x = onnx_unsqueezed(&c, x, 0);
    onnx_compose_output(&c, 0, onnx_picked(&c, x, indices, -1));
    return c.status;
}

// Of a part (rows, columns) `wanted` columns: the first ones, or with zeros after them.
static berth_value_id as_wide(onnx_compose *c, berth_value_id part, int64_t wanted) {
    const int64_t has = onnx_compose_extent(c, part, 1);
    if (c->status || has == wanted) return part;
    if (wanted < 0 || wanted > INT32_MAX) {
        onnx_compose_fail(c, BERTH_INVALID_ARGUMENT, "inputdimensions has %lld", (long long)wanted);
        return BERTH_NONE;
    }
    if (has < wanted) {  // or it is not known
        berth_value_id operands[2] = {part, onnx_int_list(c, (int64_t[]){0, 0, 0, wanted}, 4)};
        part = onnx_make(c, BERTH_OP_PAD, operands, 2);
    }
    return onnx_sliced(c, part, 1, 0, wanted, 1);
}

berth_status onnx_build_ml_feature_vectorizer(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 1, UINT32_MAX);
    const onnx_attr *columns = onnx_call_attr(call, "inputdimensions");
    if (columns && columns->ints.count != call->input_count)
        onnx_compose_fail(&c, BERTH_INVALID_ARGUMENT,
                          "inputdimensions has %u entries for %u inputs", columns->ints.count,
                          call->input_count);
    berth_value_id *parts =
        berth_arena_new_array(call->im->scratch, berth_value_id, call->input_count + 1);
    for (uint32_t i = 0; i < call->input_count; ++i) {
        if (!onnx_call_has(call, i))
            onnx_compose_fail(&c, BERTH_INVALID_ARGUMENT, "input %u is missing", i);
        parts[i] = real_input(&c, i);
        if (onnx_compose_want_rank(&c, parts[i], "an input", 1, 2) == 1)
            parts[i] = onnx_unsqueezed(&c, parts[i], 1);
        if (columns && !c.status) parts[i] = as_wide(&c, parts[i], columns->ints.data[i]);
    }
    onnx_compose_output(&c, 0, onnx_concatenated(&c, parts, call->input_count, 1));
    return c.status;
}

// ---- encoders ----

// y, but a run fails where a row of it has no 1: what is missing is an index that is outside of a list
// of one element.
static berth_value_id of_known_categories(onnx_compose *c, berth_value_id y) {
    const int64_t last = -1;
    berth_value_id known = onnx_reduced(c, BERTH_OP_REDUCE_MAX, y, &last, 1, true);
    berth_value_id unknown = onnx_sub(c, onnx_like(c, known, 1), known);
    berth_value_id zero = onnx_reshaped(c, onnx_like(c, y, 0), (int64_t[]){1}, 1);
    return onnx_add(c, y, onnx_picked(c, zero, onnx_cast_to(c, unknown, BERTH_DTYPE_I64), 0));
}

berth_status onnx_build_ml_one_hot_encoder(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 1, 1);
    const onnx_attr *cats = onnx_call_attr(call, "cats_int64s");
    const onnx_attr *words = onnx_call_attr(call, "cats_strings");
    if (words && !words->strings.count) words = NULL;
    if (!words && (!cats || !cats->ints.count))
        onnx_compose_fail(&c, BERTH_INVALID_ARGUMENT, "there are no categories");
    if (c.status) return c.status;
    berth_value_id x = onnx_compose_input(&c, 0);
    if (!words) x = onnx_cast_to(&c, x, BERTH_DTYPE_I64);
    x = onnx_unsqueezed(&c, x, -1);
    x = onnx_make2(&c, BERTH_OP_EQUAL, x,
                   words ? onnx_string_list(&c, words)
                         : onnx_int_list(&c, cats->ints.data, cats->ints.count));
    x = onnx_cast_to(&c, x, BERTH_DTYPE_F32);
    if (!onnx_call_int(call, "zeros", 1)) x = of_known_categories(&c, x);
    onnx_compose_output(&c, 0, x);
    return c.status;
}

// Keys, values or the default of a label encoder: "keys_int64s", "keys_floats", "keys_strings"
// or "keys_tensor".
static berth_value_id labels(onnx_compose *c, const char *what) {
    static const char *const kinds[] = {"int64s", "floats", "strings", "tensor"};
    for (int i = 0; i < 4 && !c->status; ++i) {
        const char *name = berth_arena_printf(c->call->im->scratch, "%s_%s", what, kinds[i]);
        const onnx_attr *attr = onnx_call_attr(c->call, name);
        if (!attr) continue;
        if (i == 0) return onnx_int_list(c, attr->ints.data, attr->ints.count);
        if (i == 1) return float_list(c, name);
        if (i == 2) return onnx_string_list(c, attr);
        berth_tensor tensor;
        c->status = onnx_read_tensor(c->call->im, &attr->tensor, &tensor, NULL);
        return c->status ? BERTH_NONE : onnx_call_literal(c->call, &tensor);
    }
    onnx_compose_fail(c, BERTH_INVALID_ARGUMENT, "there are no %s", what);
    return BERTH_NONE;
}

berth_value_id onnx_ml_text(onnx_compose *c, const char *text) {
    berth_arena *arena = c->call->im->arena;
    if (c->status) return BERTH_NONE;
    berth_tensor tensor = berth_tensor_create(arena, BERTH_DTYPE_STRING, 0, NULL);
    *(berth_string *)tensor.data = berth_string_copy(arena, berth_string_of(text));
    return onnx_call_literal(c->call, &tensor);
}

static berth_value_id default_label(onnx_compose *c, berth_dtype dtype) {
    const onnx_attr *tensor = onnx_call_attr(c->call, "default_tensor");
    if (tensor) return onnx_cast_to(c, labels(c, "default"), dtype);
    if (dtype == BERTH_DTYPE_STRING)
        return onnx_ml_text(c, onnx_call_string(c->call, "default_string", "_Unused"));
    double value = berth_dtype_is_float(dtype)
                       ? onnx_call_float(c->call, "default_float", 0)
                       : (double)onnx_call_int(c->call, "default_int64", -1);
    return onnx_scalar(c, dtype, value);
}

berth_status onnx_build_ml_label_encoder(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 1, 1);
    berth_value_id x = onnx_compose_input(&c, 0);
    berth_value_id keys = labels(&c, "keys"), values = labels(&c, "values");
    keys = onnx_reshaped(&c, keys, (int64_t[]){-1}, 1);
    values = onnx_reshaped(&c, values, (int64_t[]){-1}, 1);
    int64_t count = onnx_compose_known_extent(&c, keys, "the keys", 0);
    if (!c.status && (count < 1 || count != onnx_compose_extent(&c, values, 0)))
        onnx_compose_fail(&c, BERTH_INVALID_ARGUMENT, "as many keys as values are needed");
    if (c.status) return c.status;
    berth_dtype dtype = onnx_compose_dtype(&c, values);
    if (dtype == BERTH_DTYPE_STRING || onnx_compose_dtype(&c, keys) == BERTH_DTYPE_STRING) {
        berth_value_id operands[4] = {x, keys, values, default_label(&c, dtype)};
        onnx_compose_output(&c, 0, onnx_make(&c, BERTH_OP_LOOKUP, operands, 4));
        return c.status;
    }
    x = onnx_unsqueezed(&c, x, -1);
    berth_value_id equal = onnx_make2(&c, BERTH_OP_EQUAL, x, keys);
    const bool newer = onnx_opset_version(&call->im->model.opsets, "ai.onnx.ml") >= 4;
    if (newer && berth_dtype_is_float(onnx_compose_dtype(&c, keys))) {  // NaN is a key since then
        berth_value_id none = onnx_make1(&c, BERTH_OP_IS_NAN, keys);
        none = onnx_make2(&c, BERTH_OP_AND, onnx_make1(&c, BERTH_OP_IS_NAN, x), none);
        equal = onnx_make2(&c, BERTH_OP_OR, equal, none);
    }
    equal = onnx_cast_to(&c, equal, BERTH_DTYPE_I32);
    berth_value_id found = onnx_reduced(&c, BERTH_OP_REDUCE_MAX, equal, (int64_t[]){-1}, 1, false);
    onnx_made first = onnx_start(&c, BERTH_OP_ARG_MAX, &equal, 1, 1);
    onnx_set_int(first, "axis", -1);
    onnx_set_int(first, "keepdims", 0);
    berth_value_id label = onnx_gathered(&c, values, onnx_finish(first), 0);
    found = onnx_cast_to(&c, found, BERTH_DTYPE_BOOL);
    onnx_compose_output(&c, 0, onnx_where(&c, found, label, default_label(&c, dtype)));
    return c.status;
}

// ---- linear models ----

// A softmax of the scores that are not 0; those stay (nearly) 0, as ONNX Runtime has it.
static berth_value_id softmax_of_others(onnx_compose *c, berth_value_id scores) {
    berth_value_id most = onnx_reduced(c, BERTH_OP_REDUCE_MAX, scores, (int64_t[]){-1}, 1, true);
    berth_value_id none = onnx_make2(c, BERTH_OP_LESS_OR_EQUAL, onnx_make1(c, BERTH_OP_ABS, scores),
                                     onnx_like(c, scores, 1e-7));
    berth_value_id e = onnx_make1(c, BERTH_OP_EXP, onnx_sub(c, scores, most));
    berth_value_id kept = onnx_where(c, none, onnx_like(c, scores, 0), e);
    kept = onnx_reduced(c, BERTH_OP_REDUCE_SUM, kept, (int64_t[]){-1}, 1, true);
    berth_value_id zero =
        onnx_mul(c, scores, onnx_make1(c, BERTH_OP_EXP, onnx_make1(c, BERTH_OP_NEG, most)));
    return onnx_div(c, onnx_where(c, none, zero, e), kept);
}

// The quantile of the normal distribution, by the approximation that ONNX Runtime has: Winitzki, A handy
// approximation for the error function and its inverse (2008); its error is at most 0.002 of the result.
static berth_value_id probit(onnx_compose *c, berth_value_id p) {
    const double a = 0.147, pi = 3.14159265358979323846;
    berth_value_id one = onnx_like(c, p, 1);
    berth_value_id x = onnx_sub(c, onnx_mul(c, p, onnx_like(c, p, 2)), one);
    berth_value_id product = onnx_mul(c, onnx_sub(c, one, x), onnx_add(c, one, x));
    berth_value_id log = onnx_make1(c, BERTH_OP_LOG, product);
    berth_value_id v =
        onnx_add(c, onnx_mul(c, log, onnx_like(c, p, 0.5)), onnx_like(c, p, 2 / (pi * a)));
    berth_value_id inner = onnx_sub(c, onnx_mul(c, v, v), onnx_mul(c, log, onnx_like(c, p, 1 / a)));
    berth_value_id y = onnx_sub(c, onnx_make1(c, BERTH_OP_SQRT, inner), v);
    y = onnx_mul(c, onnx_make1(c, BERTH_OP_SQRT, y), onnx_like(c, p, 1.41421356237309504880));
    berth_value_id low = onnx_make2(c, BERTH_OP_LESS, x, onnx_like(c, p, 0));
    return onnx_where(c, low, onnx_make1(c, BERTH_OP_NEG, y), y);
}

berth_value_id onnx_ml_transformed(onnx_compose *c, berth_value_id scores, const char *how) {
    if (strcmp(how, "NONE") == 0) return scores;
    if (strcmp(how, "LOGISTIC") == 0) return onnx_make1(c, BERTH_OP_SIGMOID, scores);
    if (strcmp(how, "SOFTMAX") == 0) return onnx_softmax_along(c, BERTH_OP_SOFTMAX, scores, -1);
    if (strcmp(how, "SOFTMAX_ZERO") == 0) return softmax_of_others(c, scores);
    if (strcmp(how, "PROBIT") == 0) return probit(c, scores);
    onnx_compose_fail(c, BERTH_INVALID_ARGUMENT, "post_transform \"%.32s\"", how);
    return BERTH_NONE;
}

berth_value_id onnx_ml_regressed(onnx_compose *c, berth_value_id y, int64_t count,
                                 const char *how) {
    if (count != 1 || strcmp(how, "PROBIT") == 0) return onnx_ml_transformed(c, y, how);
    return y;
}

berth_value_id onnx_ml_both_scores(onnx_compose *c, berth_value_id y, bool shares,
                                   const char *how) {
    const bool logistic = strcmp(how, "LOGISTIC") == 0;
    if (strcmp(how, "PROBIT") == 0)
        onnx_compose_fail(c, BERTH_UNSUPPORTED, "post_transform \"PROBIT\" of one score");
    berth_value_id other =
        shares && !logistic ? onnx_sub(c, onnx_like(c, y, 1), y) : onnx_make1(c, BERTH_OP_NEG, y);
    berth_value_id scores = onnx_concatenated(c, (berth_value_id[]){other, y}, 2, 1);
    return logistic ? onnx_make1(c, BERTH_OP_SIGMOID, scores) : scores;
}

// x (rows, features) times the coefficients of `count` results, plus the intercepts.
static berth_value_id linear(onnx_compose *c, int64_t count) {
    berth_value_id x = real_input(c, 0), weights = float_list(c, "coefficients");
    berth_value_id bias = float_list(c, "intercepts");
    if (weights == BERTH_NONE || count < 1)
        onnx_compose_fail(c, BERTH_INVALID_ARGUMENT, "no coefficients, or none to compute");
    if (onnx_compose_want_rank(c, x, "the input", 1, 2) == 1) x = onnx_unsqueezed(c, x, 0);
    weights = onnx_reshaped(c, weights, (int64_t[]){count, -1}, 2);
    weights = onnx_transposed(c, weights, (int64_t[]){1, 0}, 2);
    berth_value_id y = onnx_make2(c, BERTH_OP_MATMUL, x, weights);
    return bias == BERTH_NONE ? y : onnx_add(c, y, bias);
}

berth_status onnx_build_ml_linear_regressor(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 1, 1);
    int64_t targets = onnx_call_int(call, "targets", 1);
    berth_value_id y = linear(&c, targets);
    y = onnx_ml_regressed(&c, y, targets, onnx_call_string(call, "post_transform", "NONE"));
    onnx_compose_output(&c, 0, y);
    return c.status;
}

berth_value_id onnx_ml_class_names(onnx_compose *c, const char *ints, const char *strings,
                                   int64_t *out_count) {
    const onnx_attr *numbers = onnx_call_attr(c->call, ints);
    const onnx_attr *words = onnx_call_attr(c->call, strings);
    *out_count = 0;
    if (words && words->strings.count) {
        *out_count = words->strings.count;
        return onnx_string_list(c, words);
    }
    if (numbers && numbers->ints.count) {
        *out_count = numbers->ints.count;
        return onnx_int_list(c, numbers->ints.data, numbers->ints.count);
    }
    onnx_compose_fail(c, BERTH_INVALID_ARGUMENT, "there are no classes: %s or %s", ints, strings);
    return BERTH_NONE;
}

// The label of the highest score, and the scores. Of two classes there may be the score of the second alone.
berth_status onnx_build_ml_linear_classifier(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 1, 1);
    const onnx_attr *intercepts = onnx_call_attr(call, "intercepts");
    int64_t count = 0;
    berth_value_id names =
        onnx_ml_class_names(&c, "classlabels_ints", "classlabels_strings", &count);
    const char *how = onnx_call_string(call, "post_transform", "NONE");
    const bool one = count == 2 && intercepts && intercepts->floats.count == 1;
    if (!c.status && !one && (!intercepts || intercepts->floats.count != count))
        onnx_compose_fail(&c, BERTH_UNSUPPORTED, "other than one intercept per class");
    if (c.status) return c.status;
    berth_value_id y = linear(&c, one ? 1 : count);
    if (one) {
        berth_value_id second = onnx_make2(&c, BERTH_OP_GREATER, y, onnx_like(&c, y, 0));
        second = onnx_cast_to(&c, onnx_squeezed(&c, second, 1), BERTH_DTYPE_I64);
        onnx_compose_output(&c, 0, onnx_gathered(&c, names, second, 0));
        onnx_compose_output(&c, 1, onnx_ml_both_scores(&c, y, true, how));
        return c.status;
    }
    onnx_made best = onnx_start(&c, BERTH_OP_ARG_MAX, &y, 1, 1);
    onnx_set_int(best, "axis", 1);
    onnx_set_int(best, "keepdims", 0);
    berth_value_id label = onnx_finish(best);
    onnx_compose_output(&c, 0, onnx_gathered(&c, names, label, 0));
    onnx_compose_output(&c, 1, onnx_ml_transformed(&c, y, how));
    return c.status;
}
