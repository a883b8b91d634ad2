// einsum: the equation of ONNX Einsum (numpy's subscripts with "...", repeated and implicit
// labels).
#include "ir/graph/einsum.h"
#include "ir/eval/internal.h"

static berth_status bad_equation(const char *equation) {
    return berth_status_make(BERTH_INVALID_ARGUMENT, "equation \"%s\" does not fit the operands",
                             equation);
}

// `extents`: of labels.
static berth_status parse(berth_eval_context *ctx, const char *equation, berth_einsum *e,
                          int64_t *extents) {
    int operands = (int)ctx->op->input_count;
    int ranks[BERTH_EINSUM_MAX_OPERANDS];
    const int64_t *dims[BERTH_EINSUM_MAX_OPERANDS];
    for (int k = 0; k < operands; ++k) {
        ranks[k] = ctx->inputs[k].rank;
        dims[k] = ctx->inputs[k].dims;
    }
    bool fits =
        berth_einsum_parse(equation, operands, ranks, e) && berth_einsum_extents(e, dims, extents);
    return fits ? BERTH_OK : bad_equation(equation);
}

// Loop nest over all labels, those of the result first.
typedef struct nest {
    int count;
    int64_t extents[BERTH_EINSUM_MAX_LABELS];
    int64_t strides[BERTH_EINSUM_MAX_OPERANDS][BERTH_EINSUM_MAX_LABELS];
} nest;

static void plan_nest(const berth_eval_context *ctx, const berth_einsum *e, const int64_t *extents,
                      nest *n) {
    int place[BERTH_EINSUM_MAX_LABELS];
    int operands = e->operands;
    for (int i = 0; i < BERTH_EINSUM_MAX_LABELS; ++i) place[i] = -1;
    for (int term = operands, step = 0; step <= operands; term = step++) {
        for (int i = 0; i < e->ranks[term]; ++i) {
            int label = e->terms[term][i];
            if (place[label] >= 0) continue;
            n->extents[n->count] = extents[label];
            place[label] = n->count++;
        }
    }
    for (int k = 0; k < operands; ++k) {
        int64_t strides[BERTH_MAX_RANK];
        berth_eval__strides(&ctx->inputs[k], strides);
        for (int i = 0; i < e->ranks[k]; ++i)
            if (ctx->inputs[k].dims[i] != 1) n->strides[k][place[e->terms[k][i]]] += strides[i];
    }
}

// O(product of all labels' extents).
static void contract(berth_eval_context *ctx, const nest *n, int operands, int64_t out_count,
                     int64_t inner) {
    int64_t index[BERTH_EINSUM_MAX_LABELS] = {0};
    berth_tensor *out = &ctx->outputs[0];
    bool is_float = berth_dtype_is_float(out->dtype);
    for (int64_t i = 0; i < out_count; ++i) {
        double sum = 0;
        uint64_t integer_sum = 0;
        for (int64_t j = 0; j < inner; ++j) {
            double product = 1;
            uint64_t integer_product = 1;
            for (int k = 0; k < operands; ++k) {
                int64_t from = 0;
                for (int d = 0; d < n->count; ++d) from += index[d] * n->strides[k][d];
                if (is_float)
                    product *= berth_tensor_get_f64(&ctx->inputs[k], from);
                else
                    integer_product *= (uint64_t)berth_tensor_get_i64(&ctx->inputs[k], from);
            }
            sum += product;
            integer_sum += integer_product;
            berth_eval__next(index, n->extents, n->count);
        }
        if (is_float)
            berth_eval__set_f64(out, i, sum);
        else
            berth_tensor_set_i64(out, i, (int64_t)integer_sum);
    }
}

berth_status berth_eval__einsum(berth_eval_context *ctx) {
    const char *equation = berth_eval__string(ctx, "equation", "");
    int operands = (int)ctx->op->input_count;
    int64_t dims[BERTH_MAX_RANK];
    int64_t extents[BERTH_EINSUM_MAX_LABELS];
    if (operands > BERTH_EINSUM_MAX_OPERANDS)
        return berth_status_make(BERTH_UNSUPPORTED, "%d operands are more than %d", operands,
                                 BERTH_EINSUM_MAX_OPERANDS);
    berth_einsum *e = berth_arena_new(ctx->scratch, berth_einsum);
    nest *n = berth_arena_new(ctx->scratch, nest);
    BERTH_TRY(parse(ctx, equation, e, extents));
    plan_nest(ctx, e, extents, n);
    int rank = e->ranks[operands];
    for (int i = 0; i < rank; ++i) dims[i] = extents[e->terms[operands][i]];
    BERTH_TRY(berth_eval__output(ctx, 0, ctx->inputs[0].dtype, rank, dims));
    contract(ctx, n, operands, berth_tensor_element_count(&ctx->outputs[0]),
             berth_eval__product(n->extents, rank, n->count));
    return BERTH_OK;
}
