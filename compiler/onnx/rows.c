// The operators of ONNX's main domain that the importer knows, in alphabetical order: oldest opset
// whose form it reads, builder, attributes of all versions. Attributes are "name:kind":
//   i int, f float, s string, I ints, F floats, S strings, t tensor, p sparse tensor, g graph, T type,
//   d element type !name: must be there    -name: read by the builder, not copied to the operation
//
// What opsets 1 to 5 say in attributes of other names or kinds is old_forms.c's. Every version of an operator from its oldest form to that of opset ONNX_MAX_OPSET is read; what
// changed between them is in the builders. tests/onnx/check_opsets.py compares this table with
// ONNX's own definitions: run it, and read what it lists, before raising ONNX_MAX_OPSET. From opset
// 23 to 28 most new versions only add element types. Others: mod of floats; range of f16 and bf16
// (computed in more precision, as its stash_type wants); space_to_depth's mode.
#include <pthread.h>
#include <string.h>

#include "compiler/onnx/ops.h"
#include "ir/extend.h"

// clang-format off
static const onnx_row rows[] = {
    {"Abs", 1, onnx_build_plain, ""},
    {"Acos", 7, onnx_build_plain, ""},
    {"Acosh", 9, onnx_build_plain, ""},
    {"Add", 1, onnx_build_arith, "-axis:i -broadcast:i"},
    {"AffineGrid", 20, onnx_build_affine_grid, "-align_corners:i"},
    {"And", 1, onnx_build_arith, "-axis:i -broadcast:i"},
    {"ArgMax", 1, onnx_build_plain, "axis:i keepdims:i select_last_index:i"},
    {"ArgMin", 1, onnx_build_plain, "axis:i keepdims:i select_last_index:i"},
    {"Asin", 7, onnx_build_plain, ""},
    {"Asinh", 9, onnx_build_plain, ""},
    {"Atan", 7, onnx_build_plain, ""},
    {"Atanh", 9, onnx_build_plain, ""},
    {"Attention", 23, onnx_build_attention, "-is_causal:i -kv_num_heads:i -left_window_size:i -q_num_heads:i -qk_matmul_output_mode:i -right_window_size:i -scale:f -softcap:f -softmax_precision:i"},
    {"AveragePool", 1, onnx_build_plain, "auto_pad:s ceil_mode:i count_include_pad:i dilations:I !kernel_shape:I pads:I strides:I"},
    {"BatchNormalization", 1, onnx_build_batch_normalization, "epsilon:f -is_test:i -momentum:f -spatial:i -training_mode:i"},
    {"Bernoulli", 15, onnx_build_bernoulli, "-dtype:i -seed:f"},
    {"BitCast", 26, onnx_build_bit_cast, "!to:i"},
    {"BitShift", 11, onnx_build_plain, "!direction:s"},
    {"BitwiseAnd", 18, onnx_build_plain, ""},
    {"BitwiseNot", 18, onnx_build_plain, ""},
    {"BitwiseOr", 18, onnx_build_plain, ""},
    {"BitwiseXor", 18, onnx_build_plain, ""},
    {"BlackmanWindow", 17, onnx_build_plain, "output_datatype:d periodic:i"},
    {"Cast", 1, onnx_build_cast, "-round_mode:s saturate:i !to:i"},
    {"CastLike", 15, onnx_build_cast_like, "-round_mode:s -saturate:i"},
    {"CausalConvWithState", 27, onnx_build_causal_conv, "-activation:s"},
    {"Ceil", 1, onnx_build_plain, ""},
    {"Celu", 12, onnx_build_plain, "alpha:f"},
    {"CenterCropPad", 18, onnx_build_center_crop_pad, "-axes:I"},
    {"Clip", 1, onnx_build_clip, "-max:f -min:f"},
    {"Col2Im", 18, onnx_build_col2im, "-dilations:I -pads:I -strides:I"},
    {"Compress", 9, onnx_build_compress, "axis:i"},
    {"Concat", 1, onnx_build_plain, "!axis:i"},
    {"ConcatFromSequence", 11, onnx_build_plain, "!axis:i new_axis:i"},
    {"Constant", 1, onnx_build_constant, "-sparse_value:p -value:t -value_float:f -value_floats:F -value_int:i -value_ints:I -value_string:s -value_strings:S"},
    {"ConstantOfShape", 9, onnx_build_plain, "value:t"},
    {"Conv", 1, onnx_build_plain, "auto_pad:s dilations:I group:i kernel_shape:I pads:I strides:I"},
    {"ConvInteger", 10, onnx_build_plain, "auto_pad:s dilations:I group:i kernel_shape:I pads:I strides:I"},
    {"ConvTranspose", 1, onnx_build_plain, "auto_pad:s dilations:I group:i kernel_shape:I output_padding:I output_shape:I pads:I strides:I"},
    {"Cos", 7, onnx_build_plain, ""},
    {"Cosh", 9, onnx_build_plain, ""},
    {"CumProd", 26, onnx_build_plain, "exclusive:i reverse:i"},
    {"CumSum", 11, onnx_build_plain, "exclusive:i reverse:i"},
    {"DFT", 17, onnx_build_dft, "-axis:i inverse:i onesided:i"},
    {"DeformConv", 19, onnx_build_deform_conv, "-dilations:I -group:i -kernel_shape:I -offset_group:i -pads:I -strides:I"},
    {"DepthToSpace", 1, onnx_build_plain, "!blocksize:i mode:s"},
    {"DequantizeLinear", 10, onnx_build_dequantize, "axis:i -block_size:i -output_dtype:i"},
    {"Det", 11, onnx_build_plain, ""},
    {"Div", 1, onnx_build_arith, "-axis:i -broadcast:i"},
    {"Dropout", 1, onnx_build_dropout, "-is_test:i -ratio:f -seed:i"},
    {"DynamicQuantizeLinear", 11, onnx_build_plain, ""},
    {"Einsum", 12, onnx_build_plain, "!equation:s"},
    {"Elu", 1, onnx_build_plain, "alpha:f"},
    {"Equal", 1, onnx_build_arith, "-axis:i -broadcast:i"},
    {"Erf", 9, onnx_build_plain, ""},
    {"Exp", 1, onnx_build_plain, ""},
    {"Expand", 8, onnx_build_plain, ""},
    {"EyeLike", 9, onnx_build_plain, "dtype:d k:i"},
    {"Flatten", 1, onnx_build_plain, "axis:i"},
    {"Floor", 1, onnx_build_plain, ""},
    {"GRU", 1, onnx_build_plain, "activation_alpha:F activation_beta:F activations:S clip:f direction:s hidden_size:i layout:i linear_before_reset:i -output_sequence:i"},
    {"Gather", 1, onnx_build_plain, "axis:i"},
    {"GatherElements", 11, onnx_build_plain, "axis:i"},
    {"GatherND", 11, onnx_build_plain, "batch_dims:i"},
    {"Gelu", 20, onnx_build_plain, "approximate:s"},
    {"Gemm", 1, onnx_build_plain, "alpha:f beta:f -broadcast:i transA:i transB:i"},
    {"GlobalAveragePool", 1, onnx_build_plain, ""},
    {"GlobalLpPool", 1, onnx_build_plain, "p:i"},
    {"GlobalMaxPool", 1, onnx_build_plain, ""},
    {"Greater", 1, onnx_build_arith, "-axis:i -broadcast:i"},
    {"GreaterOrEqual", 12, onnx_build_plain, ""},
    {"GridSample", 16, onnx_build_grid_sample, "align_corners:i -mode:s padding_mode:s"},
    {"GroupNormalization", 18, onnx_build_group_normalization, "epsilon:f !num_groups:i stash_type:i"},
    {"HammingWindow", 17, onnx_build_plain, "output_datatype:d periodic:i"},
    {"HannWindow", 17, onnx_build_plain, "output_datatype:d periodic:i"},
    {"HardSigmoid", 1, onnx_build_plain, "alpha:f beta:f"},
    {"HardSwish", 14, onnx_build_plain, ""},
    {"Hardmax", 1, onnx_build_softmax, "-axis:i"},
    {"Identity", 1, onnx_build_plain, ""},
    {"If", 1, onnx_build_if, "!else_branch:g !then_branch:g"},
    {"ImageDecoder", 20, onnx_build_plain, "pixel_format:s"},
    {"InstanceNormalization", 1, onnx_build_plain, "epsilon:f"},
    {"IsInf", 10, onnx_build_plain, "detect_negative:i detect_positive:i"},
    {"IsNaN", 9, onnx_build_plain, ""},
    {"LRN", 1, onnx_build_plain, "alpha:f beta:f bias:f !size:i"},
    {"LSTM", 1, onnx_build_plain, "activation_alpha:F activation_beta:F activations:S clip:f direction:s hidden_size:i input_forget:i layout:i -output_sequence:i"},
    {"LayerNormalization", 17, onnx_build_plain, "axis:i epsilon:f stash_type:i"},
    {"LeakyRelu", 1, onnx_build_plain, "alpha:f"},
    {"Less", 1, onnx_build_arith, "-axis:i -broadcast:i"},
    {"LessOrEqual", 12, onnx_build_plain, ""},
    {"LinearAttention", 27, onnx_build_linear_attention, "-chunk_size:i !kv_num_heads:i !q_num_heads:i -scale:f -update_rule:s"},
    {"Log", 1, onnx_build_plain, ""},
    {"LogSoftmax", 1, onnx_build_softmax, "-axis:i"},
    {"Loop", 1, onnx_build_loop, "!body:g"},
    {"LpNormalization", 1, onnx_build_plain, "axis:i p:i"},
    {"LpPool", 1, onnx_build_plain, "auto_pad:s ceil_mode:i dilations:I !kernel_shape:I p:i pads:I strides:I"},
    {"MatMul", 1, onnx_build_plain, ""},
    {"MatMulInteger", 10, onnx_build_plain, ""},
    {"Max", 1, onnx_build_plain, ""},
    {"MaxPool", 1, onnx_build_plain, "auto_pad:s ceil_mode:i dilations:I !kernel_shape:I pads:I storage_order:i strides:I"},
    {"MaxRoiPool", 1, onnx_build_plain, "!pooled_shape:I spatial_scale:f"},
    {"MaxUnpool", 9, onnx_build_plain, "!kernel_shape:I pads:I strides:I"},
    {"Mean", 1, onnx_build_plain, ""},
    {"MeanVarianceNormalization", 9, onnx_build_plain, "axes:I"},
    {"MelWeightMatrix", 17, onnx_build_plain, "output_datatype:d"},
    {"Min", 1, onnx_build_plain, ""},
    {"Mish", 18, onnx_build_plain, ""},
    {"Mod", 10, onnx_build_plain, "fmod:i"},
    {"Mul", 1, onnx_build_arith, "-axis:i -broadcast:i"},
    {"Multinomial", 7, onnx_build_multinomial, "-dtype:i -sample_size:i -seed:f"},
    {"Neg", 1, onnx_build_plain, ""},
    {"NegativeLogLikelihoodLoss", 12, onnx_build_likelihood_loss, "-ignore_index:i -reduction:s"},
    {"NonMaxSuppression", 10, onnx_build_plain, "center_point_box:i"},
    {"NonZero", 9, onnx_build_plain, ""},
    {"Not", 1, onnx_build_plain, ""},
    {"OneHot", 9, onnx_build_plain, "axis:i"},
    {"Optional", 15, onnx_build_optional, "-type:T"},
    {"OptionalGetElement", 15, onnx_build_optional_get, ""},
    {"OptionalHasElement", 15, onnx_build_plain, ""},
    {"Or", 1, onnx_build_arith, "-axis:i -broadcast:i"},
    {"PRelu", 1, onnx_build_prelu, ""},
    {"Pad", 1, onnx_build_pad, "mode:s -pads:I -value:f"},
    {"Pow", 1, onnx_build_arith, "-axis:i -broadcast:i"},
    {"QLinearConv", 10, onnx_build_plain, "auto_pad:s dilations:I group:i kernel_shape:I pads:I strides:I"},
    {"QLinearMatMul", 10, onnx_build_plain, ""},
    {"QuantizeLinear", 10, onnx_build_quantize, "axis:i -block_size:i -output_dtype:d -precision:i saturate:i"},
    {"RMSNormalization", 23, onnx_build_rms_normalization, "-axis:i -epsilon:f -stash_type:i"},
    {"RNN", 1, onnx_build_plain, "activation_alpha:F activation_beta:F activations:S clip:f direction:s hidden_size:i layout:i -output_sequence:i"},
    {"RandomNormal", 1, onnx_build_random, "-dtype:i -mean:f -scale:f -seed:f !shape:I"},
    {"RandomNormalLike", 1, onnx_build_random, "-dtype:i -mean:f -scale:f -seed:f"},
    {"RandomUniform", 1, onnx_build_random, "-dtype:i -high:f -low:f -seed:f !shape:I"},
    {"RandomUniformLike", 1, onnx_build_random, "-dtype:i -high:f -low:f -seed:f"},
    {"Range", 11, onnx_build_plain, "-stash_type:i"},
    {"Reciprocal", 1, onnx_build_plain, ""},
    {"ReduceL1", 1, onnx_build_reduce, "-axes:I keepdims:i noop_with_empty_axes:i"},
    {"ReduceL2", 1, onnx_build_reduce, "-axes:I keepdims:i noop_with_empty_axes:i"},
    {"ReduceLogSum", 1, onnx_build_reduce, "-axes:I keepdims:i noop_with_empty_axes:i"},
    {"ReduceLogSumExp", 1, onnx_build_reduce, "-axes:I keepdims:i noop_with_empty_axes:i"},
    {"ReduceMax", 1, onnx_build_reduce, "-axes:I keepdims:i noop_with_empty_axes:i"},
    {"ReduceMean", 1, onnx_build_reduce, "-axes:I keepdims:i noop_with_empty_axes:i"},
    {"ReduceMin", 1, onnx_build_reduce, "-axes:I keepdims:i noop_with_empty_axes:i"},
    {"ReduceProd", 1, onnx_build_reduce, "-axes:I keepdims:i noop_with_empty_axes:i"},
    {"ReduceSum", 1, onnx_build_reduce, "-axes:I keepdims:i noop_with_empty_axes:i"},
    {"ReduceSumSquare", 1, onnx_build_reduce, "-axes:I keepdims:i noop_with_empty_axes:i"},
    {"RegexFullMatch", 20, onnx_build_plain, "pattern:s"},
    {"Relu", 1, onnx_build_plain, ""},
    {"Reshape", 1, onnx_build_reshape, "allowzero:i -shape:I"},
    {"Resize", 10, onnx_build_resize, "antialias:i axes:I coordinate_transformation_mode:s cubic_coeff_a:f exclude_outside:i extrapolation_value:f keep_aspect_ratio_policy:s mode:s nearest_mode:s"},
    {"ReverseSequence", 10, onnx_build_plain, "batch_axis:i time_axis:i"},
    {"RoiAlign", 10, onnx_build_roi_align, "coordinate_transformation_mode:s mode:s output_height:i output_width:i sampling_ratio:i spatial_scale:f"},
    {"RotaryEmbedding", 23, onnx_build_rotary_embedding, "-interleaved:i -num_heads:i -rotary_embedding_dim:i"},
    {"Round", 11, onnx_build_plain, ""},
    {"STFT", 17, onnx_build_plain, "onesided:i"},
    {"Scan", 8, onnx_build_scan, "!body:g -directions:I !num_scan_inputs:i -scan_input_axes:I -scan_input_directions:I -scan_output_axes:I -scan_output_directions:I"},
    {"Scatter", 9, onnx_build_scatter, "axis:i"},
    {"ScatterElements", 11, onnx_build_plain, "axis:i reduction:s"},
    {"ScatterND", 11, onnx_build_plain, "reduction:s"},
    {"Selu", 1, onnx_build_plain, "alpha:f gamma:f"},
    {"SequenceAt", 11, onnx_build_plain, ""},
    {"SequenceConstruct", 11, onnx_build_sequence_construct, ""},
    {"SequenceEmpty", 11, onnx_build_sequence_empty, "-dtype:i"},
    {"SequenceErase", 11, onnx_build_plain, ""},
    {"SequenceInsert", 11, onnx_build_sequence_insert, ""},
    {"SequenceLength", 11, onnx_build_plain, ""},
    {"SequenceMap", 17, onnx_build_sequence_map, "!body:g"},
    {"Shape", 1, onnx_build_plain, "end:i start:i"},
    {"Shrink", 9, onnx_build_plain, "bias:f lambd:f"},
    {"Sigmoid", 1, onnx_build_plain, ""},
    {"Sign", 9, onnx_build_plain, ""},
    {"Sin", 7, onnx_build_plain, ""},
    {"Sinh", 9, onnx_build_plain, ""},
    {"Size", 1, onnx_build_plain, ""},
    {"Slice", 1, onnx_build_slice, "-axes:I -ends:I -starts:I"},
    {"Softmax", 1, onnx_build_softmax, "-axis:i"},
    {"SoftmaxCrossEntropyLoss", 12, onnx_build_cross_entropy, "-ignore_index:i -reduction:s"},
    {"Softplus", 1, onnx_build_plain, ""},
    {"Softsign", 1, onnx_build_plain, ""},
    {"SpaceToDepth", 1, onnx_build_plain, "!blocksize:i mode:s"},
    {"Split", 1, onnx_build_split, "axis:i -num_outputs:i -split:I"},
    {"SplitToSequence", 11, onnx_build_plain, "axis:i keepdims:i"},
    {"Sqrt", 1, onnx_build_plain, ""},
    {"Squeeze", 1, onnx_build_squeeze, "-axes:I"},
    {"StringConcat", 20, onnx_build_plain, ""},
    {"StringNormalizer", 10, onnx_build_plain, "case_change_action:s is_case_sensitive:i -locale:s stopwords:S"},
    {"StringSplit", 20, onnx_build_plain, "delimiter:s maxsplit:i"},
    {"Sub", 1, onnx_build_arith, "-axis:i -broadcast:i"},
    {"Sum", 1, onnx_build_plain, ""},
    {"SwiGLU", 28, onnx_build_swiglu, "-alpha:f"},
    {"Swish", 24, onnx_build_swish, "-alpha:f"},
    {"Tan", 7, onnx_build_plain, ""},
    {"Tanh", 1, onnx_build_plain, ""},
    {"TensorScatter", 24, onnx_build_tensor_scatter, "-axis:i -mode:s"},
    {"TfIdfVectorizer", 9, onnx_build_plain, "!max_gram_length:i !max_skip_count:i !min_gram_length:i !mode:s !ngram_counts:I !ngram_indexes:I pool_int64s:I pool_strings:S weights:F"},
    {"ThresholdedRelu", 1, onnx_build_plain, "alpha:f"},
    {"Tile", 1, onnx_build_tile, ""},
    {"TopK", 1, onnx_build_top_k, "axis:i -k:i largest:i sorted:i"},
    {"Transpose", 1, onnx_build_plain, "perm:I"},
    {"Trilu", 14, onnx_build_plain, "upper:i"},
    {"Unique", 11, onnx_build_plain, "axis:i sorted:i"},
    {"Unsqueeze", 1, onnx_build_squeeze, "-axes:I"},
    {"Upsample", 1, onnx_build_upsample, "-height_scale:f -mode:s -scales:F -width_scale:f"},
    {"Where", 9, onnx_build_plain, ""},
    {"Xor", 1, onnx_build_arith, "-axis:i -broadcast:i"},
};
// clang-format on

// Operators that plug-ins registered are read as they are.
static const onnx_row *registered_row(const onnx_node *node) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static onnx_row made[BERTH_EXTEND_MAX];
    berth_op_kind kind = berth_op_for_onnx(node->domain, node->op_type);
    if (kind == BERTH_OP_COUNT) return NULL;
    const berth_op_definition *definition = berth_op_definition_get(kind);
    onnx_row *row = &made[kind - BERTH_OP_FIRST_REGISTERED];
    pthread_mutex_lock(&lock);
    if (!row->op_type)
        *row = (onnx_row){definition->facts.onnx, 1, onnx_build_plain, definition->onnx_attrs};
    pthread_mutex_unlock(&lock);
    return row;
}

const onnx_row *onnx_row_find(const onnx_node *node) {
    if (*node->domain) {
        const onnx_row *row = registered_row(node);
        return row ? row : onnx_domain_row_find(node);
    }
    const char *op_type = node->op_type;
    size_t low = 0;
    size_t high = sizeof(rows) / sizeof(rows[0]);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(op_type, rows[middle].op_type);
        if (order == 0) return &rows[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return onnx_domain_row_find(node);
}
