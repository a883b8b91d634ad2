#include "compiler/passes/simplify.h"

#include <math.h>
#include <string.h>

#include "compiler/passes/conv_taps.h"
#include "compiler/passes/einsum_order.h"
#include "compiler/passes/fourier.h"
#include "compiler/passes/repeat.h"
#include "compiler/passes/rewrite.h"
#include "compiler/passes/separable.h"
#include "compiler/passes/wide.h"
#include "ir/infer.h"
#include "ir/layout.h"

// A rule looks at one operation and replaces its results, or leaves it.
typedef berth_status (*rule)(berth_rewriter *r, berth_op_id id);

static berth_op op_at(const berth_rewriter *r, berth_op_id id) {
    return berth_graph_get(r->module, r->function)->ops.data[id];
}

static const berth_type *type_of(const berth_rewriter *r, berth_value_id value) {
    return berth_type_get(r->module,
                          berth_graph_get(r->module, r->function)->values.data[value].type);
}

static berth_loc_id fuse_locs(berth_rewriter *r, berth_loc_id a, berth_loc_id b) {
    return berth_loc_fuse(r->module, (berth_loc_id[]){a, b}, 2);
}

static bool same_type(const berth_rewriter *r, berth_value_id a, berth_value_id b) {
    const berth_graph *graph = berth_graph_get(r->module, r->function);
    return graph->values.data[a].type == graph->values.data[b].type;
}

static berth_status drop_identity(berth_rewriter *r, berth_op_id id) {
    berth_op op = op_at(r, id);
    berth_rewriter_replace(r, op.outputs[0], op.inputs[0]);
    return BERTH_OK;
}

// ---- per-channel factors into convolutions ------------------------------------------------------

// A constant that holds one value per channel of a rank-`rank` value (channels = dimension 1), or
// one for all; expanded to `channels` doubles in *out.
static bool per_channel(berth_rewriter *r, berth_value_id value, int rank, int64_t channels,
                        double **out) {
    const berth_tensor *tensor = berth_rewriter_raw_constant(r, value);
    if (!tensor || tensor->dtype != BERTH_DTYPE_F32 || tensor->rank > rank) return false;
    int64_t count = berth_tensor_element_count(tensor);
    if (count != 1) {
        int at = tensor->rank - (rank - 1);  // where dimension 1 of the value is in the constant
        if (count != channels || at < 0 || tensor->dims[at] != channels) return false;
    }
    tensor = berth_rewriter_constant(r, value);
    *out = berth_arena_new_array(r->module->arena, double, channels);
    for (int64_t c = 0; c < channels; ++c)
        (*out)[c] = berth_tensor_get_f64(tensor, count == 1 ? 0 : c);
    return true;
}

// Elements [first, first + count) of a raw constant times a factor, to the same place of `to`.
static void scale_floats(const berth_tensor *raw, int64_t first, int64_t count, double factor,
                         float *to) {
    enum { some = 256 };
    float part[some];
    for (int64_t i = 0; i < count; i += some) {
        int64_t left = count - i < some ? count - i : some;
        memcpy(part, (const float *)raw->data + first + i, (size_t)left * sizeof(float));
        for (int64_t k = 0; k < left; ++k) to[first + i + k] = (float)((double)part[k] * factor);
    }
}

// conv'(x) = conv(x) * scale[c] + shift[c], when op's operand `value` is a convolution used nowhere
// else.
static berth_status scale_conv(berth_rewriter *r, berth_op_id id, berth_value_id value,
                               const double *scale, const double *shift) {
    berth_arena *arena = r->module->arena;
    berth_op op = op_at(r, id);
    value = berth_rewriter_resolve(r, value);
    const berth_op *conv = berth_rewriter_def(r, value);
    if (!conv || conv->kind != BERTH_OP_CONV || berth_rewriter_uses(r, value) != 1 ||
        !berth_rewriter_may_join(r, conv->loc, op.loc))
        return BERTH_OK;
    const berth_tensor *weights = berth_rewriter_raw_constant(r, conv->inputs[1]);
    bool has_bias = conv->input_count > 2 && conv->inputs[2] != BERTH_NONE;
    const berth_tensor *bias = has_bias ? berth_rewriter_constant(r, conv->inputs[2]) : NULL;
    if (!weights || weights->dtype != BERTH_DTYPE_F32 || (has_bias && !bias)) return BERTH_OK;
    berth_op held = *conv;
    int64_t channels = weights->dims[0];
    int64_t per_output = channels ? berth_tensor_element_count(weights) / channels : 0;
    berth_tensor new_weights =
        berth_tensor_create_unset(arena, BERTH_DTYPE_F32, weights->rank, weights->dims);
    berth_tensor new_bias = berth_tensor_create(arena, BERTH_DTYPE_F32, 1, &channels);
    for (int64_t c = 0; c < channels; ++c) {
        scale_floats(weights, c * per_output, per_output, scale[c], new_weights.data);
        double old_bias = bias ? berth_tensor_get_f64(bias, c) : 0;
        berth_tensor_set_f64(&new_bias, c, old_bias * scale[c] + shift[c]);
    }
    berth_loc_id loc = fuse_locs(r, held.loc, op.loc);
    berth_value_id inputs[3] = {held.inputs[0],
                                berth_rewriter_insert_constant(r, id, &new_weights, loc),
                                berth_rewriter_insert_constant(r, id, &new_bias, loc)};
    berth_value_id result = BERTH_NONE;
    BERTH_TRY(berth_rewriter_insert(r, id, BERTH_OP_CONV, inputs, 3, &held.attrs, loc, &result));
    berth_rewriter_replace(r, op.outputs[0], result);
    return BERTH_OK;
}

static berth_value_id channel_constant(berth_rewriter *r, berth_op_id id, const berth_type *like,
                                       const double *values, berth_loc_id loc) {
    int64_t dims[BERTH_MAX_RANK];
    int64_t channels = like->dims[1];
    for (int i = 0; i < like->rank - 1; ++i) dims[i] = i == 0 ? channels : 1;
    berth_tensor tensor = berth_tensor_create(r->module->arena, like->dtype, like->rank - 1, dims);
    for (int64_t c = 0; c < channels; ++c) berth_tensor_set_f64(&tensor, c, values[c]);
    return berth_rewriter_insert_constant(r, id, &tensor, loc);
}

static berth_status fold_batch_norm(berth_rewriter *r, berth_op_id id) {
    berth_op op = op_at(r, id);
    const berth_type type = *type_of(r, op.outputs[0]);
    if ((type.dtype != BERTH_DTYPE_F32 && type.dtype != BERTH_DTYPE_F64) || type.rank < 2 ||
        berth_dim_is_symbol(type.dims[1]))
        return BERTH_OK;
    int64_t channels = type.dims[1];
    const berth_tensor *params[4];
    for (int i = 0; i < 4; ++i) {
        params[i] = berth_rewriter_constant(r, op.inputs[i + 1]);
        if (!params[i] || berth_tensor_element_count(params[i]) != channels) return BERTH_OK;
    }
    double epsilon = berth_attrs_float(r->module, &op.attrs, "epsilon", 1e-5);
    double *scale = berth_arena_new_array(r->module->arena, double, channels);
    double *shift = berth_arena_new_array(r->module->arena, double, channels);
    for (int64_t c = 0; c < channels; ++c) {
        scale[c] =
            berth_tensor_get_f64(params[0], c) / sqrt(berth_tensor_get_f64(params[3], c) + epsilon);
        shift[c] =
            berth_tensor_get_f64(params[1], c) - berth_tensor_get_f64(params[2], c) * scale[c];
    }
    BERTH_TRY(scale_conv(r, id, op.inputs[0], scale, shift));
    if (berth_rewriter_resolve(r, op.outputs[0]) != op.outputs[0]) return BERTH_OK;
    berth_value_id product = BERTH_NONE;
    berth_value_id sum = BERTH_NONE;
    berth_value_id factor = channel_constant(r, id, &type, scale, op.loc);
    berth_value_id offset = channel_constant(r, id, &type, shift, op.loc);
    BERTH_TRY(berth_rewriter_insert(r, id, BERTH_OP_MUL, (berth_value_id[]){op.inputs[0], factor},
                                    2, NULL, op.loc, &product));
    BERTH_TRY(berth_rewriter_insert(r, id, BERTH_OP_ADD, (berth_value_id[]){product, offset}, 2,
                                    NULL, op.loc, &sum));
    berth_rewriter_replace(r, op.outputs[0], sum);
    return BERTH_OK;
}

static berth_status fold_channel_arithmetic(berth_rewriter *r, berth_op_id id) {
    berth_op op = op_at(r, id);
    const berth_type *type = type_of(r, op.outputs[0]);
    if (type->dtype != BERTH_DTYPE_F32 || type->rank < 3 || berth_dim_is_symbol(type->dims[1]))
        return BERTH_OK;
    int64_t channels = type->dims[1];
    for (int side = 0; side < 2; ++side) {
        berth_value_id value = berth_rewriter_resolve(r, op.inputs[side]);
        double *constant = NULL;
        if (!same_type(r, value, op.outputs[0]) ||
            !per_channel(r, op.inputs[1 - side], type->rank, channels, &constant))
            continue;
        double *other = berth_arena_new_array(r->module->arena, double, channels);
        for (int64_t c = 0; c < channels; ++c) other[c] = op.kind == BERTH_OP_MUL ? 0 : 1;
        bool product = op.kind == BERTH_OP_MUL;
        return scale_conv(r, id, value, product ? constant : other, product ? other : constant);
    }
    return BERTH_OK;
}

// ---- gemm ---------------------------------------------------------------------------------------

// alpha * b, or of its transpose, as [k, n].
static berth_tensor right_operand(berth_arena *arena, const berth_tensor *b, bool transposed,
                                  double alpha) {
    int64_t dims[2] = {b->dims[transposed], b->dims[!transposed]};
    berth_tensor made = berth_tensor_create_unset(arena, BERTH_DTYPE_F32, 2, dims);
    if (transposed) {
        berth_layout layout;
        berth_status_ignore(berth_layout_parse("ba", 2, &layout));  // it is one
        berth_layout_pack(&layout, b, made.data);
    }
    if (!transposed || alpha != 1)
        scale_floats(transposed ? &made : b, 0, dims[0] * dims[1], alpha, made.data);
    return made;
}

// Gemms that share weights (the steps of an unrolled recurrence) share what becomes of them, too:
// operations are looked at in their order.
static berth_value_id make_right_operand(berth_rewriter *r, berth_op_id id, const berth_tensor *b,
                                         bool transposed, double alpha) {
    const berth_op op = op_at(r, id);
    berth_value_id source = berth_rewriter_resolve(r, op.inputs[1]);
    if (!r->right_operands) {
        r->right_operand_count = berth_graph_get(r->module, r->function)->values.count;
        r->right_operands =
            berth_arena_new_array(r->module->arena, berth_right_operand, r->right_operand_count);
    }
    berth_right_operand none = {0};
    berth_right_operand *made =
        source < r->right_operand_count ? &r->right_operands[source] : &none;
    if (made->value && made->transposed == transposed && made->alpha == alpha) return made->value;
    berth_tensor packed = right_operand(r->module->arena, b, transposed, alpha);
    *made = (berth_right_operand){berth_rewriter_insert_constant(r, id, &packed, op.loc),
                                  transposed, alpha};
    return made->value;
}

static berth_status gemm_to_matmul(berth_rewriter *r, berth_op_id id) {
    berth_op op = op_at(r, id);
    const berth_tensor *b = berth_rewriter_raw_constant(r, op.inputs[1]);
    if (!b || b->dtype != BERTH_DTYPE_F32 || berth_attrs_int(r->module, &op.attrs, "transA", 0))
        return BERTH_OK;
    bool transposed = berth_attrs_int(r->module, &op.attrs, "transB", 0) != 0;
    double alpha = berth_attrs_float(r->module, &op.attrs, "alpha", 1);
    double beta = berth_attrs_float(r->module, &op.attrs, "beta", 1);
    bool has_c = op.input_count > 2 && op.inputs[2] != BERTH_NONE;
    const berth_tensor *c = has_c ? berth_rewriter_constant(r, op.inputs[2]) : NULL;
    if (has_c && beta != 1 && !c) return BERTH_OK;
    berth_value_id right = op.inputs[1];
    if (transposed || alpha != 1) right = make_right_operand(r, id, b, transposed, alpha);
    berth_value_id result = BERTH_NONE;
    BERTH_TRY(berth_rewriter_insert(r, id, BERTH_OP_MATMUL, (berth_value_id[]){op.inputs[0], right},
                                    2, NULL, op.loc, &result));
    if (has_c) {
        berth_value_id addend = op.inputs[2];
        if (beta != 1) {
            berth_tensor scaled = berth_tensor_create(r->module->arena, c->dtype, c->rank, c->dims);
            for (int64_t i = 0; i < berth_tensor_element_count(c); ++i)
                berth_tensor_set_f64(&scaled, i, berth_tensor_get_f64(c, i) * beta);
            addend = berth_rewriter_insert_constant(r, id, &scaled, op.loc);
        }
        BERTH_TRY(berth_rewriter_insert(r, id, BERTH_OP_ADD, (berth_value_id[]){result, addend}, 2,
                                        NULL, op.loc, &result));
    }
    berth_rewriter_replace(r, op.outputs[0], result);
    return BERTH_OK;
}

// ---- arithmetic ---------------------------------------------------------------------------------

static bool scalar_constant(berth_rewriter *r, berth_value_id value, double *out) {
    const berth_tensor *tensor = berth_rewriter_raw_constant(r, value);
    if (!tensor || berth_tensor_element_count(tensor) != 1) return false;
    tensor = berth_rewriter_constant(r, value);
    *out = berth_tensor_get_f64(tensor, 0);
    return true;
}

// x^2 as x * x, x^3 as x * x * x: rounded once and twice.
static berth_status small_power(berth_rewriter *r, berth_op_id id) {
    berth_op op = op_at(r, id);
    double exponent = 0;
    const berth_type *type = type_of(r, op.outputs[0]);
    if (!berth_dtype_is_float(type->dtype) || !scalar_constant(r, op.inputs[1], &exponent) ||
        (exponent != 2 && exponent != 3) || !same_type(r, op.inputs[0], op.outputs[0]))
        return BERTH_OK;
    berth_value_id result = BERTH_NONE;
    BERTH_TRY(berth_rewriter_insert(r, id, BERTH_OP_MUL,
                                    (berth_value_id[]){op.inputs[0], op.inputs[0]}, 2, NULL, op.loc,
                                    &result));
    if (exponent == 3)
        BERTH_TRY(berth_rewriter_insert(r, id, BERTH_OP_MUL,
                                        (berth_value_id[]){result, op.inputs[0]}, 2, NULL, op.loc,
                                        &result));
    berth_rewriter_replace(r, op.outputs[0], result);
    return BERTH_OK;
}

// x / 2^k is x * 2^-k, exactly.
static berth_status divide_by_power_of_two(berth_rewriter *r, berth_op_id id) {
    berth_op op = op_at(r, id);
    double divisor = 0;
    int exponent = 0;
    const berth_type *type = type_of(r, op.outputs[0]);
    if (type->dtype != BERTH_DTYPE_F32 || !scalar_constant(r, op.inputs[1], &divisor))
        return BERTH_OK;
    if (divisor == 0 || !isfinite(divisor) || frexp(divisor, &exponent) != copysign(0.5, divisor) ||
        exponent > 100 || exponent < -100)
        return BERTH_OK;
    const berth_tensor *old = berth_rewriter_constant(r, op.inputs[1]);
    berth_tensor inverse =
        berth_tensor_create(r->module->arena, BERTH_DTYPE_F32, old->rank, old->dims);
    berth_tensor_set_f64(&inverse, 0, 1 / divisor);
    berth_value_id result = BERTH_NONE;
    berth_value_id factor = berth_rewriter_insert_constant(r, id, &inverse, op.loc);
    BERTH_TRY(berth_rewriter_insert(r, id, BERTH_OP_MUL, (berth_value_id[]){op.inputs[0], factor},
                                    2, NULL, op.loc, &result));
    berth_rewriter_replace(r, op.outputs[0], result);
    return BERTH_OK;
}

static berth_status simplify_variadic(berth_rewriter *r, berth_op_id id) {
    berth_op op = op_at(r, id);
    if (op.input_count == 1) {
        berth_rewriter_replace(r, op.outputs[0], op.inputs[0]);
        return BERTH_OK;
    }
    if (op.kind != BERTH_OP_SUM) return berth_narrow_variadic(r, id);
    berth_value_id result = op.inputs[0];
    for (uint32_t i = 1; i < op.input_count; ++i)
        BERTH_TRY(berth_rewriter_insert(r, id, BERTH_OP_ADD,
                                        (berth_value_id[]){result, op.inputs[i]}, 2, NULL, op.loc,
                                        &result));
    berth_rewriter_replace(r, op.outputs[0], result);
    return BERTH_OK;
}

// ---- data movement ------------------------------------------------------------------------------

static berth_status join_transposes(berth_rewriter *r, berth_op_id id) {
    berth_op op = op_at(r, id);
    const berth_op *inner = berth_rewriter_def(r, op.inputs[0]);
    uint32_t outer_count = 0;
    uint32_t inner_count = 0;
    if (!inner || inner->kind != BERTH_OP_TRANSPOSE ||
        !berth_rewriter_may_join(r, inner->loc, op.loc))
        return BERTH_OK;
    const int64_t *outer_perm = berth_attrs_ints(r->module, &op.attrs, "perm", &outer_count);
    const int64_t *inner_perm = berth_attrs_ints(r->module, &inner->attrs, "perm", &inner_count);
    if (!outer_perm || !inner_perm || outer_count != inner_count || outer_count > BERTH_MAX_RANK)
        return BERTH_OK;
    int64_t perm[BERTH_MAX_RANK];
    bool identity = true;
    for (uint32_t i = 0; i < outer_count; ++i) {
        perm[i] = inner_perm[outer_perm[i]];
        identity &= perm[i] == (int64_t)i;
    }
    berth_value_id source = inner->inputs[0];
    berth_loc_id loc = fuse_locs(r, inner->loc, op.loc);
    if (identity) {
        berth_rewriter_replace(r, op.outputs[0], source);
        return BERTH_OK;
    }
    berth_attrs attrs = {0};
    berth_attrs_set_ints(r->module, &attrs, "perm", perm, outer_count);
    berth_value_id result = BERTH_NONE;
    BERTH_TRY(berth_rewriter_insert(r, id, BERTH_OP_TRANSPOSE, &source, 1, &attrs, loc, &result));
    berth_rewriter_replace(r, op.outputs[0], result);
    return BERTH_OK;
}

// Whether dimensions of one element alone change places: no element moves.
static bool moves_nothing(const berth_type *type, const int64_t *perm, uint32_t count) {
    int64_t last = -1;
    for (uint32_t i = 0; i < count; ++i) {
        if (type->dims[perm[i]] == 1) continue;
        if (perm[i] < last) return false;
        last = perm[i];
    }
    return true;
}

// For plain C a transpose that moves nothing is a view (of the batch of one in front of a recurrent operation). Other
// executors know transposes around products by their form, with one row, too (attention.h).
static berth_status simplify_transpose(berth_rewriter *r, berth_op_id id) {
    berth_op op = op_at(r, id);
    const berth_type *type = type_of(r, op.inputs[0]), *to = type_of(r, op.outputs[0]);
    uint32_t count = 0;
    const int64_t *perm = berth_attrs_ints(r->module, &op.attrs, "perm", &count);
    bool plain = r->target && r->target->executor == BERTH_EXECUTOR_AOT;
    if (!plain || !perm || count != (uint32_t)type->rank || !berth_type_is_static(type) ||
        !berth_type_is_static(to) || type->layout || to->layout ||
        !moves_nothing(type, perm, count))
        return join_transposes(r, id);
    int64_t dims[BERTH_MAX_RANK];
    for (uint32_t i = 0; i < count; ++i) dims[i] = type->dims[perm[i]];
    berth_value_id result = op.inputs[0];
    BERTH_TRY(berth_rewriter_reshape(r, id, type->rank, dims, op.loc, &result));
    berth_rewriter_replace(r, op.outputs[0], result);
    return BERTH_OK;
}

// A view of a view reads through; one that changes nothing vanishes.
static berth_status join_views(berth_rewriter *r, berth_op_id id) {
    berth_op op = op_at(r, id);
    berth_value_id source = berth_rewriter_resolve(r, op.inputs[0]);
    const berth_op *inner = berth_rewriter_def(r, source);
    if (inner && berth_op_has(inner->kind, BERTH_TRAIT_VIEW)) source = inner->inputs[0];
    if (same_type(r, source, op.outputs[0])) berth_rewriter_replace(r, op.outputs[0], source);
    return BERTH_OK;
}

static rule rule_for(berth_op_kind kind) {
    switch (kind) {
    case BERTH_OP_IDENTITY: return drop_identity;
    case BERTH_OP_BATCH_NORMALIZATION: return fold_batch_norm;
    case BERTH_OP_MUL:
    case BERTH_OP_ADD: return fold_channel_arithmetic;
    case BERTH_OP_CONV: return berth_drop_conv_taps;
    case BERTH_OP_GEMM: return gemm_to_matmul;
    case BERTH_OP_MATMUL: return berth_join_repeated;
    case BERTH_OP_POW: return small_power;
    case BERTH_OP_DIV: return divide_by_power_of_two;
    case BERTH_OP_SUM:
    case BERTH_OP_MIN:
    case BERTH_OP_MAX:
    case BERTH_OP_MEAN: return simplify_variadic;
    case BERTH_OP_CONCAT: return berth_narrow_concat;
    case BERTH_OP_SPLIT: return berth_narrow_split;
    case BERTH_OP_EINSUM: return berth_order_einsum;
    case BERTH_OP_DFT:
    case BERTH_OP_STFT: return berth_add_fourier_tables;
    case BERTH_OP_RESIZE: return berth_split_resize;
    case BERTH_OP_TRANSPOSE: return simplify_transpose;
    case BERTH_OP_RESHAPE:
    case BERTH_OP_FLATTEN:
    case BERTH_OP_SQUEEZE:
    case BERTH_OP_UNSQUEEZE: return join_views;
    default: return NULL;
    }
}

static berth_status simplify_op(berth_rewriter *r, berth_op_id id) {
    berth_op op = op_at(r, id);
    rule apply = rule_for(op.kind);
    if (apply) BERTH_TRY(apply(r, id));
    bool is_left =
        op.output_count == 1 && berth_rewriter_resolve(r, op.outputs[0]) == op.outputs[0];
    if (is_left && berth_op_has(op.kind, BERTH_TRAIT_ELEMENTWISE))
        BERTH_TRY(berth_move_before_reshape(r, id));
    return BERTH_OK;
}

berth_status berth_simplify(berth_module *module, berth_func_id main,
                            const berth_multi_target *target) {
    enum {
        most_rounds = 8
    };  // chains such as conv, scale, shift, batch norm need one round a link
    for (int round = 0; round < most_rounds; ++round) {
        berth_rewriter r;
        berth_rewriter_begin(&r, module, main);
        r.target = target;
        const berth_graph *graph = berth_graph_get(module, main);
        uint32_t count = graph->regions.data[0].ops.count;
        berth_op_id *order = berth_arena_copy(module->arena, graph->regions.data[0].ops.data,
                                              count * sizeof(berth_op_id));
        for (uint32_t i = 0; i < count; ++i) BERTH_TRY(simplify_op(&r, order[i]));
        berth_rewriter_finish(&r);
        if (!r.changed) break;
    }
    // Folding read the model's weights to make new ones; few of the old pages are needed again.
    berth_module_drop_source_pages(module);
    return BERTH_OK;
}
