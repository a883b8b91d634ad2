// Operators of other domains than ONNX's main one, as in rows.c: by domain, in any order. The domain ""
// is for operators that ONNX Runtime's tools put there and ONNX does not know, or no more.
#include <string.h>

#include "compiler/onnx/ops.h"

// clang-format off
static const onnx_row main_domain[] = {
    {"Affine", 1, onnx_build_affine, "-alpha:f -beta:f"},
    {"Crop", 1, onnx_build_crop, "!border:I -scale:I"},
    {"ImageScaler", 1, onnx_build_image_scaler, "!bias:F -scale:f"},
    {"ParametricSoftplus", 1, onnx_build_parametric_softplus, "!alpha:f !beta:f"},
    {"ScaledTanh", 1, onnx_build_scaled_tanh, "!alpha:f !beta:f"},
    {"SimplifiedLayerNormalization", 1, onnx_build_ms_simplified_norm, "-axis:i -epsilon:f -stash_type:i"},
};

static const onnx_row preview[] = {
    {"FlexAttention", 1, onnx_build_flex_attention, "-prob_mod:g -scale:f -score_mod:g -softmax_precision:i"},
};

static const onnx_row preview_training[] = {
    {"Adagrad", 1, onnx_build_adagrad, "-decay_factor:f -epsilon:f -norm_coefficient:f"},
    {"Adam", 1, onnx_build_adam, "-alpha:f -beta:f -epsilon:f -norm_coefficient:f -norm_coefficient_post:f"},
    {"Gradient", 1, onnx_build_gradient, "!xs:S !y:s -zs:S"},
    {"Momentum", 1, onnx_build_momentum, "-alpha:f -beta:f -mode:s -norm_coefficient:f"},
};
static const onnx_row microsoft[] = {
    {"Attention", 1, onnx_build_ms_attention, "-do_rotary:i -mask_filter_value:f !num_heads:i -past_present_share_buffer:i -qkv_hidden_sizes:I -rotary_embedding_dim:i -scale:f -unidirectional:i"},
    {"BiasGelu", 1, onnx_build_ms_gelu, ""},
    {"DequantizeLinear", 1, onnx_build_dequantize, "axis:i -block_size:i"},
    {"DynamicQuantizeLSTM", 1, onnx_build_ms_dynamic_lstm, "activation_alpha:F activation_beta:F activations:S clip:f direction:s hidden_size:i input_forget:i"},
    {"DynamicQuantizeMatMul", 1, onnx_build_ms_dynamic_matmul, ""},
    {"EmbedLayerNormalization", 1, onnx_build_ms_embed_norm, "-epsilon:f -mask_index_type:i"},
    {"FastGelu", 1, onnx_build_ms_gelu, ""},
    {"FusedConv", 1, onnx_build_ms_fused_conv, "-activation:s -activation_params:F auto_pad:s dilations:I group:i kernel_shape:I pads:I strides:I"},
    {"FusedGemm", 1, onnx_build_ms_fused_gemm, "-activation:s -activation_alpha:f -activation_beta:f -activation_gamma:f alpha:f beta:f transA:i transB:i"},
    {"FusedMatMul", 1, onnx_build_ms_fused_matmul, "-alpha:f -transA:i -transB:i -transBatchA:i -transBatchB:i"},
    {"GatherBlockQuantized", 1, onnx_build_ms_gather_block_quantized, "-bits:i -block_size:i -gather_axis:i -quantize_axis:i"},
    {"Gelu", 1, onnx_build_ms_gelu, ""},
    {"GroupQueryAttention", 1, onnx_build_ms_group_query_attention, "-do_rotary:i -k_quant_type:s -kv_cache_bit_width:i !kv_num_heads:i -local_window_size:i !num_heads:i -qk_output:i -rotary_interleaved:i -scale:f -smooth_softmax:i -softcap:f -v_quant_type:s"},
    {"MatMulIntegerToFloat", 1, onnx_build_ms_integer_to_float, ""},
    {"MatMulNBits", 1, onnx_build_ms_matmul_nbits, "!K:i !N:i -accuracy_level:i -bits:i !block_size:i -weight_prepacked:i"},
    {"MultiHeadAttention", 1, onnx_build_ms_multi_head_attention, "-mask_filter_value:f !num_heads:i -scale:f -unidirectional:i"},
    {"QAttention", 1, onnx_build_ms_qattention, "-do_rotary:i -mask_filter_value:f !num_heads:i -past_present_share_buffer:i -scale:f -unidirectional:i"},
    {"QGemm", 1, onnx_build_ms_qgemm, "-alpha:f -transA:i -transB:i"},
    {"QLinearAdd", 1, onnx_build_ms_qlinear_binary, ""},
    {"QLinearAveragePool", 1, onnx_build_ms_qlinear_unary, "auto_pad:s ceil_mode:i -channels_last:i count_include_pad:i !kernel_shape:I pads:I strides:I"},
    {"QLinearConcat", 1, onnx_build_ms_qlinear_concat, "!axis:i"},
    {"QLinearGlobalAveragePool", 1, onnx_build_ms_qlinear_unary, "-channels_last:i"},
    {"QLinearLeakyRelu", 1, onnx_build_ms_qlinear_unary, "alpha:f"},
    {"QLinearMul", 1, onnx_build_ms_qlinear_binary, ""},
    {"QLinearSigmoid", 1, onnx_build_ms_qlinear_unary, ""},
    {"QLinearSoftmax", 1, onnx_build_ms_qlinear_unary, "axis:i -opset:i"},
    {"QLinearWhere", 1, onnx_build_ms_qlinear_where, ""},
    {"QuantizeLinear", 1, onnx_build_quantize, "axis:i -block_size:i"},
    {"QuickGelu", 1, onnx_build_ms_quick_gelu, "-alpha:f"},
    {"RotaryEmbedding", 1, onnx_build_ms_rotary_embedding, "-interleaved:i -is_packed_batching:i -num_heads:i -rotary_embedding_dim:i -scale:f"},
    {"SkipLayerNormalization", 1, onnx_build_ms_skip_norm, "-epsilon:f"},
    {"SkipSimplifiedLayerNormalization", 1, onnx_build_ms_skip_norm, "-epsilon:f"},
    {"SimplifiedLayerNormalization", 1, onnx_build_ms_simplified_norm, "-axis:i -epsilon:f -stash_type:i"},
};
static const onnx_row ml[] = {
    {"ArrayFeatureExtractor", 1, onnx_build_ml_array_feature_extractor, ""},
    {"Binarizer", 1, onnx_build_ml_binarizer, "-threshold:f"},
    {"CastMap", 1, onnx_build_ml_cast_map, "-cast_to:s -map_form:s -max_map:i"},
    {"CategoryMapper", 1, onnx_build_ml_category_mapper, "-cats_int64s:I -cats_strings:S -default_int64:i -default_string:s"},
    {"DictVectorizer", 1, onnx_build_ml_dict_vectorizer, "-int64_vocabulary:I -string_vocabulary:S"},
    {"FeatureVectorizer", 1, onnx_build_ml_feature_vectorizer, "-inputdimensions:I"},
    {"Imputer", 1, onnx_build_ml_imputer, "-imputed_value_floats:F -imputed_value_int64s:I -replaced_value_float:f -replaced_value_int64:i"},
    {"LabelEncoder", 1, onnx_build_ml_label_encoder, "-default_float:f -default_int64:i -default_string:s -default_tensor:t -keys_floats:F -keys_int64s:I -keys_strings:S -keys_tensor:t -values_floats:F -values_int64s:I -values_strings:S -values_tensor:t"},
    {"LinearClassifier", 1, onnx_build_ml_linear_classifier, "-classlabels_ints:I -classlabels_strings:S -coefficients:F -intercepts:F -multi_class:i -post_transform:s"},
    {"LinearRegressor", 1, onnx_build_ml_linear_regressor, "-coefficients:F -intercepts:F -post_transform:s -targets:i"},
    {"Normalizer", 1, onnx_build_ml_normalizer, "-norm:s"},
    {"OneHotEncoder", 1, onnx_build_ml_one_hot_encoder, "-cats_int64s:I -cats_strings:S -zeros:i"},
    {"Scaler", 1, onnx_build_ml_scaler, "-offset:F -scale:F"},
    {"SVMClassifier", 1, onnx_build_ml_svm_classifier, "-classlabels_ints:I -classlabels_strings:S -coefficients:F -kernel_params:F -kernel_type:s -post_transform:s -prob_a:F -prob_b:F -rho:F -support_vectors:F -vectors_per_class:I"},
    {"SVMRegressor", 1, onnx_build_ml_svm_regressor, "-coefficients:F -kernel_params:F -kernel_type:s -n_supports:i -one_class:i -post_transform:s -rho:F -support_vectors:F"},
    {"TreeEnsemble", 1, onnx_build_ml_tree_ensemble, "-aggregate_function:i -leaf_targetids:I -leaf_weights:t -membership_values:t -n_targets:i -nodes_falseleafs:I -nodes_falsenodeids:I -nodes_featureids:I -nodes_hitrates:t -nodes_missing_value_tracks_true:I -nodes_modes:t -nodes_splits:t -nodes_trueleafs:I -nodes_truenodeids:I -post_transform:i -tree_roots:I"},
    {"TreeEnsembleClassifier", 1, onnx_build_ml_tree_classifier, "-base_values:F -base_values_as_tensor:t -class_ids:I -class_nodeids:I -class_treeids:I -class_weights:F -class_weights_as_tensor:t -classlabels_int64s:I -classlabels_strings:S -nodes_falsenodeids:I -nodes_featureids:I -nodes_hitrates:F -nodes_hitrates_as_tensor:t -nodes_missing_value_tracks_true:I -nodes_modes:S -nodes_nodeids:I -nodes_treeids:I -nodes_truenodeids:I -nodes_values:F -nodes_values_as_tensor:t -post_transform:s"},
    {"TreeEnsembleRegressor", 1, onnx_build_ml_tree_regressor, "-aggregate_function:s -base_values:F -base_values_as_tensor:t -n_targets:i -nodes_falsenodeids:I -nodes_featureids:I -nodes_hitrates:F -nodes_hitrates_as_tensor:t -nodes_missing_value_tracks_true:I -nodes_modes:S -nodes_nodeids:I -nodes_treeids:I -nodes_truenodeids:I -nodes_values:F -nodes_values_as_tensor:t -post_transform:s -target_ids:I -target_nodeids:I -target_treeids:I -target_weights:F -target_weights_as_tensor:t"},
    {"ZipMap", 1, onnx_build_ml_zip_map, "-classlabels_int64s:I -classlabels_strings:S"},
};
// clang-format on

#define TABLE(name) name, sizeof(name) / sizeof((name)[0])
static const struct {
    const char *domain;
    const onnx_row *rows;
    size_t count;
} domains[] = {
    {"", TABLE(main_domain)},
    {"ai.onnx.preview", TABLE(preview)},
    {"ai.onnx.preview.training", TABLE(preview_training)},
    {"ai.onnx.ml", TABLE(ml)},
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
