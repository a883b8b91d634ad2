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
