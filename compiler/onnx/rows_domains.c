// Operators of other domains than ONNX's main one, as in rows.c: by domain, in any order.
#include <string.h>

#include "compiler/onnx/ops.h"

// clang-format off
static const onnx_row preview[] = {
    {"FlexAttention", 1, onnx_build_flex_attention, "-prob_mod:g -scale:f -score_mod:g -softmax_precision:i"},
};

static const onnx_row preview_training[] = {
    {"Adagrad", 1, onnx_build_adagrad, "-decay_factor:f -epsilon:f -norm_coefficient:f"},
    {"Adam", 1, onnx_build_adam, "-alpha:f -beta:f -epsilon:f -norm_coefficient:f -norm_coefficient_post:f"},
    {"Momentum", 1, onnx_build_momentum, "-alpha:f -beta:f -mode:s -norm_coefficient:f"},
};
// clang-format on

#define TABLE(name) name, sizeof(name) / sizeof((name)[0])
static const struct {
    const char *domain;
    const onnx_row *rows;
    size_t count;
} domains[] = {
    {"ai.onnx.preview", TABLE(preview)},
    {"ai.onnx.preview.training", TABLE(preview_training)},
};

const onnx_row *onnx_domain_row_find(const onnx_node *node) {
    for (size_t d = 0; d < sizeof(domains) / sizeof(domains[0]); ++d) {
        if (strcmp(domains[d].domain, node->domain) != 0) continue;
        for (size_t i = 0; i < domains[d].count; ++i)
            if (strcmp(domains[d].rows[i].op_type, node->op_type) == 0) return &domains[d].rows[i];
    }
    return NULL;
}
