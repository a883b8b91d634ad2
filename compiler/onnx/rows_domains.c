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
static const onnx_row microsoft[] = {
    {"Attention", 1, onnx_build_ms_attention, "-do_rotary:i -mask_filter_value:f !num_heads:i -past_present_share_buffer:i -qkv_hidden_sizes:I -rotary_embedding_dim:i -scale:f -unidirectional:i"},
    {"BiasGelu", 1, onnx_build_ms_gelu, ""},
    {"DequantizeLinear", 1, onnx_build_dequantize, "axis:i -block_size:i"},
    {"DynamicQuantizeMatMul", 1, onnx_build_ms_dynamic_matmul, ""},
    {"EmbedLayerNormalization", 1, onnx_build_ms_embed_norm, "-epsilon:f -mask_index_type:i"},
    {"FastGelu", 1, onnx_build_ms_gelu, ""},
    {"FusedConv", 1, onnx_build_ms_fused_conv, "-activation:s -activation_params:F auto_pad:s dilations:I group:i kernel_shape:I pads:I strides:I"},
    {"FusedGemm", 1, onnx_build_ms_fused_gemm, "-activation:s -activation_alpha:f -activation_beta:f -activation_gamma:f alpha:f beta:f transA:i transB:i"},
    {"FusedMatMul", 1, onnx_build_ms_fused_matmul, "-alpha:f -transA:i -transB:i -transBatchA:i -transBatchB:i"},
    {"Gelu", 1, onnx_build_ms_gelu, ""},
    {"GroupQueryAttention", 1, onnx_build_ms_group_query_attention, "-do_rotary:i -k_quant_type:s -kv_cache_bit_width:i !kv_num_heads:i -local_window_size:i !num_heads:i -qk_output:i -rotary_interleaved:i -scale:f -smooth_softmax:i -softcap:f -v_quant_type:s"},
    {"MatMulIntegerToFloat", 1, onnx_build_ms_integer_to_float, ""},
    {"MatMulNBits", 1, onnx_build_ms_matmul_nbits, "!K:i !N:i -accuracy_level:i -bits:i !block_size:i -weight_prepacked:i"},
    {"MultiHeadAttention", 1, onnx_build_ms_multi_head_attention, "-mask_filter_value:f !num_heads:i -scale:f -unidirectional:i"},
    {"QAttention", 1, onnx_build_ms_qattention, "-do_rotary:i -mask_filter_value:f !num_heads:i -past_present_share_buffer:i -scale:f -unidirectional:i"},
    {"QLinearAdd", 1, onnx_build_ms_qlinear_binary, ""},
    {"QLinearAveragePool", 1, onnx_build_ms_qlinear_unary, "auto_pad:s ceil_mode:i -channels_last:i count_include_pad:i !kernel_shape:I pads:I strides:I"},
    {"QLinearConcat", 1, onnx_build_ms_qlinear_concat, "!axis:i"},
    {"QLinearGlobalAveragePool", 1, onnx_build_ms_qlinear_unary, "-channels_last:i"},
    {"QLinearLeakyRelu", 1, onnx_build_ms_qlinear_unary, "alpha:f"},
    {"QLinearMul", 1, onnx_build_ms_qlinear_binary, ""},
    {"QLinearSigmoid", 1, onnx_build_ms_qlinear_unary, ""},
    {"QLinearSoftmax", 1, onnx_build_ms_qlinear_unary, "axis:i -opset:i"},
    {"QuantizeLinear", 1, onnx_build_quantize, "axis:i -block_size:i"},
    {"QuickGelu", 1, onnx_build_ms_quick_gelu, "-alpha:f"},
    {"RotaryEmbedding", 1, onnx_build_ms_rotary_embedding, "-interleaved:i -is_packed_batching:i -num_heads:i -rotary_embedding_dim:i -scale:f"},
    {"SkipLayerNormalization", 1, onnx_build_ms_skip_norm, "-epsilon:f"},
    {"SkipSimplifiedLayerNormalization", 1, onnx_build_ms_skip_norm, "-epsilon:f"},
    {"SimplifiedLayerNormalization", 1, onnx_build_ms_simplified_norm, "-axis:i -epsilon:f -stash_type:i"},
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
    {"com.microsoft", TABLE(microsoft)},
};

const onnx_row *onnx_domain_row_find(const onnx_node *node) {
    for (size_t d = 0; d < sizeof(domains) / sizeof(domains[0]); ++d) {
        if (strcmp(domains[d].domain, node->domain) != 0) continue;
        for (size_t i = 0; i < domains[d].count; ++i)
            if (strcmp(domains[d].rows[i].op_type, node->op_type) == 0) return &domains[d].rows[i];
    }
    return NULL;
}
