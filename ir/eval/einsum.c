// einsum: the equation of ONNX Einsum (numpy's subscripts with "...", repeated and implicit
// labels).
#include <ctype.h>
#include <string.h>

#include "ir/eval/internal.h"

#define MAX_OPERANDS 16
#define MAX_LABELS 64

// Labels are bytes: letters, and 1..BERTH_MAX_RANK for the dimensions of "..." (counted from the
// right, the last one is 1).
typedef struct einsum {
    unsigned char terms[MAX_OPERANDS + 1][BERTH_MAX_RANK];  // the last: result
    int ranks[MAX_OPERANDS + 1];
    int64_t extents[256];  // of labels, 0 = not there yet (see known)
    bool known[256];
    int ellipsis_rank;
    bool has_arrow;
} einsum;

static berth_status bad_equation(const char *equation) {
    return berth_status_make(BERTH_INVALID_ARGUMENT, "equation \"%s\" does not fit the operands",
                             equation);
}

// Reads one term up to ',', '-' or the end; `rank` = of the operand or -1 for the result.
static bool read_term(einsum *e, const char **text, int term, int rank) {
    unsigned char before[BERTH_MAX_RANK], after[BERTH_MAX_RANK];
    int before_count = 0, after_count = 0;
    bool dots = false;
    for (; **text && **text != ',' && **text != '-'; ++*text) {
        if (**text == ' ') continue;
        if (strncmp(*text, "...", 3) == 0) {
            if (dots) return false;
            dots = true;
            *text += 2;
            continue;
        }
        if (!isalpha((unsigned char)**text) || before_count + after_count >= BERTH_MAX_RANK)
            return false;
        if (dots)
            after[after_count++] = (unsigned char)**text;
        else
            before[before_count++] = (unsigned char)**text;
    }
    int extra = rank < 0 ? (dots ? e->ellipsis_rank : 0) : rank - before_count - after_count;
    if (extra < 0 || (extra > 0 && !dots) || before_count + after_count + extra > BERTH_MAX_RANK)
        return false;
    if (dots && extra > e->ellipsis_rank) e->ellipsis_rank = extra;
    int at = 0;
    for (int i = 0; i < before_count; ++i) e->terms[term][at++] = before[i];
    for (int i = extra; i > 0; --i) e->terms[term][at++] = (unsigned char)i;
    for (int i = 0; i < after_count; ++i) e->terms[term][at++] = after[i];
    e->ranks[term] = at;
    return true;
}

// Without an arrow: "..." first, then the labels that occur once, in alphabetical order.
static bool implicit_result(einsum *e, int operands) {
    int uses[256] = {0}, at = 0;
    unsigned char *result = e->terms[operands];
    for (int k = 0; k < operands; ++k)
        for (int i = 0; i < e->ranks[k]; ++i) uses[e->terms[k][i]]++;
    for (int i = e->ellipsis_rank; i > 0; --i) result[at++] = (unsigned char)i;
    for (int c = 'A'; c <= 'z'; ++c) {
        if (uses[c] != 1) continue;
        if (at == BERTH_MAX_RANK) return false;
        result[at++] = (unsigned char)c;
    }
    e->ranks[operands] = at;
    return true;
}

static berth_status parse(berth_eval_context *ctx, const char *equation, einsum *e) {
    int operands = (int)ctx->op->input_count;
    const char *text = equation;
    for (int k = 0; k < operands; ++k) {
        if (!read_term(e, &text, k, ctx->inputs[k].rank)) return bad_equation(equation);
        for (int i = 0; i < e->ranks[k]; ++i) {
            unsigned char label = e->terms[k][i];
            int64_t extent = ctx->inputs[k].dims[i];
            bool widen = !e->known[label] || e->extents[label] == 1;
            if (!widen && extent != 1 && extent != e->extents[label]) return bad_equation(equation);
            if (widen) e->extents[label] = extent;
            e->known[label] = true;
        }
        if (k + 1 < operands && *text++ != ',') return bad_equation(equation);
    }
    if (*text == '-') {
        if (text[1] != '>') return bad_equation(equation);
        text += 2;
        if (!read_term(e, &text, operands, -1) || *text) return bad_equation(equation);
    } else if (*text || !implicit_result(e, operands)) {
        return bad_equation(equation);
    }
    bool seen[256] = {false};
    for (int i = 0; i < e->ranks[operands]; ++i) {
        unsigned char label = e->terms[operands][i];
        if (!e->known[label] || seen[label]) return bad_equation(equation);
        seen[label] = true;
    }
    return BERTH_OK;
}

// Loop nest over all labels, those of the result first.
typedef struct nest {
    int count;
    int64_t extents[MAX_LABELS];
    int64_t strides[MAX_OPERANDS][MAX_LABELS];
} nest;

static bool plan_nest(const berth_eval_context *ctx, const einsum *e, int operands, nest *n) {
    int place[256];
    for (int i = 0; i < 256; ++i) place[i] = -1;
    for (int term = operands, step = 0; step <= operands; term = step++) {
        for (int i = 0; i < e->ranks[term]; ++i) {
            unsigned char label = e->terms[term][i];
            if (place[label] >= 0) continue;
            if (n->count == MAX_LABELS) return false;
            n->extents[n->count] = e->extents[label];
            place[label] = n->count++;
        }
    }
    for (int k = 0; k < operands; ++k) {
        int64_t strides[BERTH_MAX_RANK];
        berth_eval__strides(&ctx->inputs[k], strides);
        for (int i = 0; i < e->ranks[k]; ++i)
            if (ctx->inputs[k].dims[i] != 1) n->strides[k][place[e->terms[k][i]]] += strides[i];
    }
    return true;
}

// O(product of all labels' extents).
static void contract(berth_eval_context *ctx, const nest *n, int operands, int64_t out_count,
                     int64_t inner) {
    int64_t index[MAX_LABELS] = {0};
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
    if (operands > MAX_OPERANDS)
        return berth_status_make(BERTH_UNSUPPORTED, "%d operands are more than %d", operands,
                                 MAX_OPERANDS);
    einsum *e = berth_arena_new(ctx->scratch, einsum);
    nest *n = berth_arena_new(ctx->scratch, nest);
    BERTH_TRY(parse(ctx, equation, e));
    if (!plan_nest(ctx, e, operands, n)) return bad_equation(equation);
    int rank = e->ranks[operands];
    for (int i = 0; i < rank; ++i) dims[i] = e->extents[e->terms[operands][i]];
    BERTH_TRY(berth_eval__output(ctx, 0, ctx->inputs[0].dtype, rank, dims));
    contract(ctx, n, operands, berth_tensor_element_count(&ctx->outputs[0]),
             berth_eval__product(n->extents, rank, n->count));
    return BERTH_OK;
}
