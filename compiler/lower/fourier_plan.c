#include <math.h>

#include "compiler/lower/fourier.h"
#include "ir/graph/op_params.h"

#define MOST 32   // terms of a sum: factors beyond are taken apart
#define LANES 16  // neighbours in the results of stage 0, where the length allows it

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
    int64_t rest = f->length;
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
    return true;
}

int64_t berth_fourier_rest(const berth_fourier *f, int stage) {
    int64_t rest = 1;
    for (int i = stage + 1; i < f->stages; ++i) rest *= f->factors[i];
    return rest;
}

void berth_fourier_table_dims(const berth_fourier *f, int stage, int64_t *out_dims) {
    int64_t factor = f->factors[stage];
    out_dims[0] = berth_fourier_rest(f, stage);
    out_dims[1] = stage == 0 ? f->parts : 2;
    out_dims[2] = out_dims[4] = factor;
    out_dims[3] = 2;
}

void berth_fourier_table(const berth_fourier *f, int stage, double *out) {
    int64_t dims[5];
    berth_fourier_table_dims(f, stage, dims);
    int64_t length = dims[0] * dims[2];  // of the transform that the stage begins
    double turn = (f->inverse ? 2 : -2) * 3.14159265358979323846 / (double)length;
    int64_t index[5];
    int64_t count = dims[0] * dims[1] * dims[2] * dims[3] * dims[4];
    for (int64_t i = 0; i < count; ++i) {
        int64_t left = i;
        for (int d = 4; d >= 0; --d) {
            index[d] = left % dims[d];
            left /= dims[d];
        }
        int64_t n = stage == 0 ? index[2] : index[4];
        int64_t k = stage == 0 ? index[4] : index[2];
        int64_t part = stage == 0 ? index[1] : index[3];
        int64_t result = stage == 0 ? index[3] : index[1];
        // (k * (n * rest + r)) mod length, exactly
        double angle = turn * (double)(k * (n * dims[0] + index[0]) % length);
        out[i] = part == result ? cos(angle) : result ? sin(angle) : -sin(angle);
    }
}
