#include <math.h>

#include "compiler/lower/fourier.h"
#include "ir/graph/op_params.h"

#define MOST 32                // terms of a sum: factors beyond are taken apart
#define LANES 16               // neighbours in the results of stage 0, where the length allows it
#define PRODUCTS 24            // multiply-adds that take as long as what a convolution does between
#define MOST_LENGTH (1 << 24)  // of a convolution: n^2 is exact, and the search for M short

// The divisor of n in [2, MOST] closest to its root from below, or else from above; n when there is
// none.
static int64_t middle_divisor(int64_t n) {
    int64_t best = n;
    for (int64_t d = 2; d <= MOST && d < n; ++d)
        if (n % d == 0 && (best == n || d * d <= n)) best = d;
    return best;
}

static int64_t largest_divisor(int64_t n) {
    for (int64_t d = MOST; d > 1; --d)
        if (n % d == 0) return d;
    return n;
}

// Vectors of results in stage 0: whole ones, or halves of them.
static int64_t first_factor(int64_t n) {
    if (n <= MOST) return n;
    for (int64_t lanes = LANES; lanes >= LANES / 2; lanes /= 2)
        if (n % lanes == 0) return lanes;
    return largest_divisor(n);
}

static void factorise(berth_fourier *f) {
    int64_t rest = f->convolution ? f->convolution : f->length;
    f->stages = 0;
    while (f->stages < BERTH_FOURIER_MAX_STAGES && (rest > 1 || f->stages == 0)) {
        int64_t factor = rest;
        if (f->stages == 0)
            factor = first_factor(rest);
        else if (f->stages + 1 < BERTH_FOURIER_MAX_STAGES && rest > MOST)
            factor = rest <= MOST * MOST ? middle_divisor(rest) : largest_divisor(rest);
        f->factors[f->stages++] = factor;
        rest /= factor;
    }
}

// Multiply-adds of the stages, for one element of a complex signal: the sum of the factors.
static int64_t terms_of(const berth_fourier *f) {
    int64_t terms = 0;
    for (int i = 0; i < f->stages; ++i) terms += f->factors[i];
    return terms;
}

static bool small_factors(const berth_fourier *f) {
    for (int i = 0; i < f->stages; ++i)
        if (f->factors[i] > MOST) return false;
    return true;
}

void berth_fourier_convolve(berth_dtype dtype, berth_fourier *f) {
    int64_t least = 2 * f->length - 1;
    double direct = (double)f->length * (double)terms_of(f) * (f->parts == 1 ? .5 : 1);
    double best = direct;
    if (small_factors(f) || f->length > MOST_LENGTH ||
        (dtype != BERTH_DTYPE_F32 && dtype != BERTH_DTYPE_F64))
        return;
    berth_fourier found = *f;
    for (int64_t m = (least + LANES - 1) / LANES * LANES; m <= least + least / 4; m += LANES) {
        berth_fourier one = *f;
        one.convolution = m;
        factorise(&one);
        // Two transforms, each with half of a stage left out, and three products by tables.
        double work = (double)m * ((double)(2 * terms_of(&one)) + PRODUCTS);
        if (!small_factors(&one) || work >= best) continue;
        best = work;
        found = one;
    }
    *f = found;
}

static const berth_type *type_of(const berth_module *module, const berth_graph *graph,
                                 const berth_op *op, uint32_t operand) {
    return berth_type_get(module, graph->values.data[op->inputs[operand]].type);
}

bool berth_fourier_describe(const berth_module *module, const berth_graph *graph,
                            const berth_op *op, berth_fourier *out) {
    const berth_type *x = type_of(module, graph, op, 0);
    bool framed = op->kind == BERTH_OP_STFT;
    uint32_t given = framed ? 3 : 1;
    int axis = 1;
    *out = (berth_fourier){.first_table = framed ? 4 : 2, .parts = 1};
    if (x->rank < 2) return false;
    if (!framed || x->rank == 3) out->parts = x->dims[x->rank - 1];
    if (!framed) {
        out->inverse = berth_attrs_int(module, &op->attrs, "inverse", 0) != 0;
        out->hermitian = out->inverse && berth_attrs_int(module, &op->attrs, "onesided", 0) != 0;
        berth_status status = berth_axis_resolve(berth_attrs_int(module, &op->attrs, "axis", 1),
                                                 x->rank, "axis", &axis);
        if (status) {
            berth_status_ignore(status);
            return false;
        }
    }
    out->length = out->hermitian ? 2 * (x->dims[axis] - 1) : x->dims[axis];
    if (framed && op->input_count > 2 && op->inputs[2] != BERTH_NONE)
        out->length = type_of(module, graph, op, 2)->dims[0];
    if (op->input_count > given && op->inputs[given] != BERTH_NONE) {
        const berth_tensor *length = berth_graph_constant_of(module, graph, op->inputs[given]);
        if (!length || berth_tensor_element_count(length) != 1) return false;
        out->length = berth_tensor_get_i64(length, 0);
    }
    bool along_parts = !framed && axis == x->rank - 1;
    if (out->length < 1 || along_parts || (out->parts != 1 && out->parts != 2)) return false;
    factorise(out);
    if (op->input_count > out->first_table) berth_fourier_convolve(x->dtype, out);
    return true;
}

int64_t berth_fourier_rest(const berth_fourier *f, int stage) {
    int64_t rest = 1;
    for (int i = stage + 1; i < f->stages; ++i) rest *= f->factors[i];
    return rest;
}

int64_t berth_fourier_terms(const berth_fourier *f, int stage) {
    int64_t rest = berth_fourier_rest(f, stage);
    bool padded = f->convolution && stage == 0;
    return padded ? (f->length + rest - 1) / rest : f->factors[stage];
}
