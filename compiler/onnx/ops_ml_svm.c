// Support vector machines of ai.onnx.ml: kernels with the support vectors, then sums of them. Names and signs
// are libsvm's, whose models these are (Chang and Lin, LIBSVM: a library for support vector machines).
#include <string.h>

#include "compiler/onnx/compose.h"
#include "compiler/onnx/ops.h"

typedef struct machine {
    onnx_compose *c;
    int64_t vectors, features;
    double gamma, coef0, degree;
    bool linear;  // no support vectors: the coefficients of each result
    const char *kernel;
    const onnx_attr *support, *coefficients, *rho;
} machine;

static berth_value_id table(onnx_compose *c, const double *values, int64_t rows, int64_t columns) {
    if (c->status) return BERTH_NONE;
    int64_t dims[2] = {rows, columns};
    berth_tensor tensor = berth_tensor_create(c->call->im->arena, BERTH_DTYPE_F32, 2, dims);
    for (int64_t i = 0; i < rows * columns; ++i) berth_tensor_set_f64(&tensor, i, values[i]);
    return onnx_call_literal(c->call, &tensor);
}

// `vectors` support vectors, which must divide the list; 0: a linear machine with so many results.
static machine read_machine(onnx_compose *c, int64_t vectors, int64_t results) {
    machine m = {.c = c,
                 .vectors = vectors ? vectors : results,
                 .linear = vectors == 0,
                 .kernel = onnx_call_string(c->call, "kernel_type", "LINEAR")};
    const onnx_attr *params = onnx_call_attr(c->call, "kernel_params");
    m.support = onnx_call_attr(c->call, "support_vectors");
    m.coefficients = onnx_call_attr(c->call, "coefficients");
    if (m.linear) m.support = m.coefficients;
    m.rho = onnx_call_attr(c->call, "rho");
    uint32_t count = params ? params->floats.count : 0;
    m.gamma = count > 0 ? params->floats.data[0] : 0;
    m.coef0 = count > 1 ? params->floats.data[1] : 0;
    m.degree = count > 2 ? params->floats.data[2] : 0;
    if (!m.coefficients || !m.rho || !m.rho->floats.count || !m.support || m.vectors < 1 ||
        m.support->floats.count % m.vectors || !m.support->floats.count)
        onnx_compose_fail(c, BERTH_INVALID_ARGUMENT,
                          "support_vectors, coefficients or rho do not fit each other");
    else
        m.features = m.support->floats.count / m.vectors;
    return m;
}

static berth_value_id input_rows(onnx_compose *c) {
    berth_value_id x = onnx_cast_to(c, onnx_compose_input(c, 0), BERTH_DTYPE_F32);
    return onnx_compose_want_rank(c, x, "the input", 1, 2) == 1 ? onnx_unsqueezed(c, x, 0) : x;
}

// (rows, vectors): the kernel of each row with each support vector.
static berth_value_id kernels(const machine *m) {
    onnx_compose *c = m->c;
    berth_value_id x = input_rows(c);
    if (c->status) return BERTH_NONE;
    berth_value_id v = table(c, m->support->floats.data, m->vectors, m->features);
    if (strcmp(m->kernel, "RBF") == 0) {
        berth_value_id far = onnx_sub(c, onnx_unsqueezed(c, x, 1), v);
        far = onnx_reduced(c, BERTH_OP_REDUCE_SUM_SQUARE, far, (int64_t[]){2}, 1, false);
        return onnx_make1(c, BERTH_OP_EXP, onnx_mul(c, far, onnx_like(c, far, -m->gamma)));
    }
    berth_value_id product =
        onnx_make2(c, BERTH_OP_MATMUL, x, onnx_transposed(c, v, (int64_t[]){1, 0}, 2));
    if (strcmp(m->kernel, "LINEAR") == 0) return product;
    product = onnx_mul(c, product, onnx_like(c, product, m->gamma));
    product = onnx_add(c, product, onnx_like(c, product, m->coef0));
    if (strcmp(m->kernel, "POLY") == 0)
        return onnx_make2(c, BERTH_OP_POW, product, onnx_like(c, product, m->degree));
    if (strcmp(m->kernel, "SIGMOID") == 0) return onnx_make1(c, BERTH_OP_TANH, product);
    onnx_compose_fail(c, BERTH_INVALID_ARGUMENT, "kernel_type \"%.32s\"", m->kernel);
    return BERTH_NONE;
}

// ---- classes: one decision for each pair of them ----

typedef struct pairs {
    int64_t classes, count;
    const int64_t *sizes;  // support vectors per class
} pairs;

// (vectors, pairs): a decision between classes i < j is a sum over the support vectors of both.
static berth_value_id decision_weights(const machine *m, const pairs *p) {
    double *weights =
        berth_arena_new_array(m->c->call->im->scratch, double, (size_t)(m->vectors * p->count) + 1);
    const double *given = m->coefficients->floats.data;
    int64_t vector = 0;
    for (int64_t of = 0; of < p->classes; ++of) {
        for (int64_t n = 0; n < p->sizes[of]; ++n, ++vector) {
            int64_t pair = 0;
            for (int64_t i = 0; i < p->classes; ++i)
                for (int64_t j = i + 1; j < p->classes; ++j, ++pair) {
                    int64_t row = of == i ? j - 1 : i;
                    if (of == i || of == j)
                        weights[vector * p->count + pair] = given[row * m->vectors + vector];
                }
        }
    }
    return table(m->c, weights, m->vectors, p->count);
}

// A positive decision is a vote for the first class of its pair, others are for the second.
static berth_value_id most_votes(onnx_compose *c, const pairs *p, berth_value_id decisions) {
    size_t size = (size_t)(p->count * p->classes) + 1;
    double *for_first = berth_arena_new_array(c->call->im->scratch, double, size);
    double *second = berth_arena_new_array(c->call->im->scratch, double, (size_t)p->classes + 1);
    int64_t pair = 0;
    for (int64_t i = 0; i < p->classes; ++i)
        for (int64_t j = i + 1; j < p->classes; ++j, ++pair) {
            for_first[pair * p->classes + i] = 1;
            for_first[pair * p->classes + j] = -1;
            second[j]++;
        }
    berth_value_id positive =
        onnx_make2(c, BERTH_OP_GREATER, decisions, onnx_like(c, decisions, 0));
    positive = onnx_cast_to(c, positive, BERTH_DTYPE_F32);
    berth_value_id votes =
        onnx_make2(c, BERTH_OP_MATMUL, positive, table(c, for_first, p->count, p->classes));
    return onnx_add(c, votes, table(c, second, 1, p->classes));
}

static berth_value_id label_of(onnx_compose *c, berth_value_id names, berth_value_id scores) {
    onnx_made best = onnx_start(c, BERTH_OP_ARG_MAX, &scores, 1, 1);
    onnx_set_int(best, "axis", 1);
    onnx_set_int(best, "keepdims", 0);
    return onnx_gathered(c, names, onnx_finish(best), 0);
}

static pairs read_pairs(onnx_compose *c, int64_t classes, int64_t *out_vectors) {
    const onnx_attr *sizes = onnx_call_attr(c->call, "vectors_per_class");
    pairs p = {.classes = classes, .count = classes * (classes - 1) / 2};
    *out_vectors = 0;
    if (!sizes || sizes->ints.count == 0) return p;  // a linear machine
    if (classes < 2 || classes > 1 << 12 || sizes->ints.count != classes)
        onnx_compose_fail(c, BERTH_INVALID_ARGUMENT,
                          "vectors_per_class has not one entry per class");
    for (int64_t i = 0; !c->status && i < classes; ++i) {
        if (sizes->ints.data[i] < 0 || sizes->ints.data[i] > 1 << 24)
            onnx_compose_fail(c, BERTH_INVALID_ARGUMENT, "vectors_per_class is out of range");
        *out_vectors += sizes->ints.data[i];
    }
    if (!c->status) p.sizes = sizes->ints.data;
    return p;
}

berth_status onnx_build_ml_svm_classifier(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 1, 1);
    int64_t classes = 0, vectors = 0;
    berth_value_id names =
        onnx_ml_class_names(&c, "classlabels_ints", "classlabels_strings", &classes);
    const onnx_attr *a = onnx_call_attr(call, "prob_a"), *b = onnx_call_attr(call, "prob_b");
    bool sure = a && a->floats.count > 0, two = classes == 2;
    const char *how = onnx_call_string(call, "post_transform", "NONE");
    pairs p = read_pairs(&c, classes, &vectors);
    machine m = read_machine(&c, vectors, classes);
    if (c.status) return c.status;
    if (m.linear) {
        berth_value_id of_classes = kernels(&m);
        of_classes = onnx_add(&c, of_classes, onnx_like(&c, of_classes, m.rho->floats.data[0]));
        onnx_compose_output(&c, 0, label_of(&c, names, of_classes));
        onnx_compose_output(&c, 1, onnx_ml_transformed(&c, of_classes, how));
        return c.status;
    }
    if (m.coefficients->floats.count != (classes - 1) * vectors || m.rho->floats.count != p.count)
        onnx_compose_fail(&c, BERTH_INVALID_ARGUMENT, "coefficients or rho have another length");
    if (sure && !two)
        onnx_compose_fail(&c, BERTH_UNSUPPORTED, "probabilities of more than two classes");
    if (sure && (!b || b->floats.count != a->floats.count))
        onnx_compose_fail(&c, BERTH_INVALID_ARGUMENT, "prob_a and prob_b differ in length");
    if (c.status) return c.status;
    berth_value_id y = onnx_make2(&c, BERTH_OP_MATMUL, kernels(&m), decision_weights(&m, &p));
    y = onnx_add(&c, y, table(&c, m.rho->floats.data, 1, p.count));
    berth_value_id scores = y, judged = most_votes(&c, &p, y);
    if (sure) {  // 1 / (1 + exp(a y + b)) is the first class's
        berth_value_id z = onnx_mul(&c, y, onnx_like(&c, y, a->floats.data[0]));
        z = onnx_add(&c, z, onnx_like(&c, y, b->floats.data[0]));
        berth_value_id both[2] = {onnx_make1(&c, BERTH_OP_NEG, z), z};
        scores = onnx_make1(&c, BERTH_OP_SIGMOID, onnx_concatenated(&c, both, 2, 1));
        judged = scores;
        scores = onnx_ml_transformed(&c, scores, how);
    } else if (two) {
        scores = onnx_ml_both_scores(&c, y, strcmp(how, "NONE") != 0, how);
    } else {
        scores = onnx_ml_transformed(&c, scores, how);
    }
    onnx_compose_output(&c, 0, label_of(&c, names, judged));
    onnx_compose_output(&c, 1, scores);
    return c.status;
}

// ---- a number ----

berth_status onnx_build_ml_svm_regressor(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 1, 1);
    int64_t vectors = onnx_call_int(call, "n_supports", 0);
    machine m = read_machine(&c, vectors, 1);
    if (c.status) return c.status;
    if (!m.linear && m.coefficients->floats.count != vectors)
        onnx_compose_fail(&c, BERTH_INVALID_ARGUMENT, "coefficients have another length");
    if (c.status) return c.status;  // post_transform is of no account, as in ONNX Runtime
    berth_value_id y = kernels(&m);
    if (!m.linear)
        y = onnx_make2(&c, BERTH_OP_MATMUL, y, table(&c, m.coefficients->floats.data, vectors, 1));
    y = onnx_add(&c, y, onnx_like(&c, y, m.rho->floats.data[0]));
    if (onnx_call_int(call, "one_class", 0)) {
        berth_value_id inside = onnx_make2(&c, BERTH_OP_GREATER, y, onnx_like(&c, y, 0));
        y = onnx_where(&c, inside, onnx_like(&c, y, 1), onnx_like(&c, y, -1));
    }
    onnx_compose_output(&c, 0, y);
    return c.status;
}
