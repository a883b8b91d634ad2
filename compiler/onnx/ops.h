// Builders of operators, by family; the table of operators names them (private to compiler/onnx).
#ifndef BERTH_COMPILER_ONNX_OPS_H_
#define BERTH_COMPILER_ONNX_OPS_H_

#include "compiler/onnx/importer.h"

BERTH_MUST_USE berth_status onnx_build_arith(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_affine(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_batch_normalization(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_cast(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_cast_like(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_optional(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_optional_get(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_scaled_tanh(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_scan(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_sequence_empty(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_sequence_map(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_clip(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_compress(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_constant(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_crop(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_dequantize(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_dft(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_dropout(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_grid_sample(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_group_normalization(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_if(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_image_scaler(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_loop(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_pad(onnx_call *call);
// One operation of the same name; inputs and attributes as they are.
BERTH_MUST_USE berth_status onnx_build_plain(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_parametric_softplus(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_prelu(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_quantize(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_reduce(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_reshape(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_resize(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_roi_align(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_scatter(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_slice(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_softmax(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_split(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_squeeze(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_tile(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_top_k(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_upsample(onnx_call *call);
// Written as several operations (compose.h).
BERTH_MUST_USE berth_status onnx_build_attention(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_causal_conv(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_rms_normalization(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_rotary_embedding(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_swiglu(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_swish(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_tensor_scatter(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_likelihood_loss(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_cross_entropy(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_bit_cast(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_linear_attention(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_center_crop_pad(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_affine_grid(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_deform_conv(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_col2im(onnx_call *call);
// Of onnx_build_dropout and onnx_build_batch_normalization, in training mode.
BERTH_MUST_USE berth_status onnx_build_dropout_training(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_batch_norm_training(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_random(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_bernoulli(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_multinomial(onnx_call *call);
// Of other domains (rows_domains.c).
BERTH_MUST_USE berth_status onnx_build_flex_attention(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_adagrad(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_adam(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_gradient(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_momentum(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_ms_attention(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_ms_dynamic_lstm(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_ms_dynamic_matmul(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_ms_embed_norm(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_ms_fused_conv(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_ms_fused_gemm(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_ms_fused_matmul(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_ms_gelu(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_ms_group_query_attention(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_ms_integer_to_float(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_ms_gather_block_quantized(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_ms_matmul_nbits(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_ms_multi_head_attention(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_ms_qattention(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_ms_qgemm(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_ms_qlinear_binary(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_ms_qlinear_concat(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_ms_qlinear_unary(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_ms_qlinear_where(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_ms_quick_gelu(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_ms_rotary_embedding(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_ms_simplified_norm(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_ms_skip_norm(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_ml_array_feature_extractor(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_ml_binarizer(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_ml_cast_map(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_ml_category_mapper(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_ml_dict_vectorizer(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_ml_zip_map(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_ml_feature_vectorizer(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_ml_imputer(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_ml_label_encoder(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_ml_linear_classifier(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_ml_linear_regressor(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_ml_normalizer(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_ml_one_hot_encoder(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_ml_scaler(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_ml_svm_classifier(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_ml_svm_regressor(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_ml_tree_ensemble(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_ml_tree_classifier(onnx_call *call);
BERTH_MUST_USE berth_status onnx_build_ml_tree_regressor(onnx_call *call);
#endif  // BERTH_COMPILER_ONNX_OPS_H_
