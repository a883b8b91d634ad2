"""More cases of compare_operators.py: operators that operator_cases.py leaves out, all element types that ONNX Runtime has for them, small
tensors, operands that are fed. Operators whose results have a shape that only the run knows (NonZero, Compress, Unique) are left out.

Elementwise operators have 256 x 1024 elements here, `small` ones 100, `one` 1. See operator_cases.py for what a case is.
"""
import numpy as np
from onnx import TensorProto

from operator_cases import Feed, case, floats, indices, ints, w, x

N = (256, 1024)
F16, F64, I8, U8, I32, I64 = np.float16, np.float64, np.int8, np.uint8, np.int32, np.int64


def of(dtype, *shape, low=-100, high=100):
    """A fed tensor of any element type."""
    dtype = np.dtype(dtype)
    if dtype.kind == 'f':
        return Feed(floats(*shape).astype(dtype))
    if dtype.kind == 'b':
        return Feed(floats(*shape) > 0)
    low = max(low, 0) if dtype.kind == 'u' else low
    return Feed(np.random.RandomState(sum(shape)).randint(low, high, shape).astype(dtype))


def positive(dtype, *shape):
    return Feed((np.abs(floats(*shape)) + .5).astype(dtype) if np.dtype(dtype).kind == 'f' else of(dtype, *shape, low=1, high=9).array)


def name_of(dtype):
    kind = np.dtype(dtype)
    return 'bool' if kind.kind == 'b' else '%s%d' % (kind.kind, 8 * kind.itemsize)


# ---- functions of one operand -------------------------------------------------------------------------------------------------
for kind in ('Atan', 'Asin', 'Acos', 'Tan', 'Sinh', 'Cosh', 'Asinh', 'Neg', 'Ceil', 'IsNaN', 'IsInf', 'Celu', 'Shrink', 'Softsign', 'ThresholdedRelu'):
    case('unary_%s' % kind.lower(), kind, [x(*N)])
case('unary_atanh', 'Atanh', [Feed(floats(*N) * np.float32(.95))])
case('unary_acosh', 'Acosh', [Feed(np.abs(floats(*N)) * 4 + 1)])
case('unary_not', 'Not', [of(bool, *N)])
case('unary_bitwise_not', 'BitwiseNot', [of(I32, *N)])
case('unary_identity', 'Identity', [x(*N)])
for kind in ('Exp', 'Log', 'Sqrt', 'Sigmoid', 'Tanh', 'Relu', 'Abs', 'Neg', 'Floor', 'Round', 'Sign', 'Reciprocal', 'Sin', 'Cos'):
    operand = positive if kind in ('Log', 'Sqrt') else of
    case('%s_f64' % kind.lower(), kind, [operand(F64, *N)])
for kind in ('Exp', 'Sigmoid', 'Tanh', 'Erf', 'Relu', 'Abs', 'Sqrt', 'Neg'):
    case('%s_f16' % kind.lower(), kind, [positive(F16, *N)])
for kind in ('Abs', 'Neg', 'Sign', 'Relu'):
    for dtype in (I8, I32) + ((I64,) if kind != 'Relu' else ()):
        case('%s_%s' % (kind.lower(), name_of(dtype)), kind, [of(dtype, *N)])
for kind in ('Relu', 'Sigmoid', 'Exp', 'Erf', 'Atan'):
    case('small_%s' % kind.lower(), kind, [x(100)])
    case('one_%s' % kind.lower(), kind, [x(1)])
# ---- functions of two ---------------------------------------------------------------------------------------------------------
for kind in ('Add', 'Mul', 'Sub', 'Div', 'Max', 'Min', 'Pow', 'Mod'):
    for dtype in (np.float32, F16, F64, I32, I64) + ((I8, U8) if kind in ('Max', 'Min', 'Mod', 'Add') else ()):
        more = dict(fmod=1) if kind == 'Mod' and np.dtype(dtype).kind == 'f' else {}
        second = of(dtype, *N, low=1, high=4) if kind == 'Pow' and np.dtype(dtype).kind == 'i' else positive(dtype, *N)
        first = positive(dtype, *N) if kind == 'Pow' else of(dtype, *N)
        case('%s_%s' % (kind.lower(), name_of(dtype)), kind, [first, second], **more)
for kind in ('Less', 'Equal', 'Greater', 'GreaterOrEqual', 'LessOrEqual'):
    for dtype in (np.float32, F64, I32, I64) + ((bool,) if kind == 'Equal' else ()):
        case('%s_%s' % (kind.lower(), name_of(dtype)), kind, [of(dtype, *N), of(dtype, *N)])
for kind in ('And', 'Or', 'Xor'):
    case('%s_bool' % kind.lower(), kind, [of(bool, *N), of(bool, *N)])
    case('bitwise_%s' % kind.lower(), 'Bitwise' + kind, [of(I32, *N), of(I32, *N)])
    case('%s_row' % kind.lower(), kind, [of(bool, *N), of(bool, N[1])])
case('bit_shift', 'BitShift', [of(np.uint64, *N), of(np.uint64, *N, high=9)], direction='LEFT')
for exponent in (2, 3, .5, -1, 2.5):
    case('pow_fed_%s' % str(exponent).replace('.', '_').replace('-', 'minus_'), 'Pow', [positive(np.float32, *N), Feed(np.float32([exponent]))])
case('pow_fed_row', 'Pow', [positive(np.float32, *N), positive(np.float32, N[1])])
case('pow_f32_i64', 'Pow', [x(*N), Feed(ints([2]))])
for kind in ('Add', 'Mul', 'Div', 'Max'):
    case('small_%s' % kind.lower(), kind, [x(100), positive(np.float32, 100)])
    case('one_%s' % kind.lower(), kind, [x(1), positive(np.float32, 1)])
    case('scalar_fed_%s' % kind.lower(), kind, [x(*N), positive(np.float32, 1)])
    case('rows_%s_i64' % kind.lower(), kind, [of(I64, *N), positive(I64, N[1])])
    case('middle_%s' % kind.lower(), kind, [x(16, 64, 256), positive(np.float32, 16, 1, 256)])
    case('odd_%s' % kind.lower(), kind, [x(7, 11, 13, 17), positive(np.float32, 7, 1, 13, 1)])
for dtype in (np.float32, F16, F64, I8, I32, I64):
    case('where_%s' % name_of(dtype), 'Where', [of(bool, *N), of(dtype, *N), of(dtype, *N)])
case('where_rows', 'Where', [of(bool, N[0], 1), x(*N), x(1)])
case('where_scalars', 'Where', [of(bool, *N), x(1), x(1)])
for kind in ('Min', 'Max', 'Sum', 'Mean'):
    case('%s_of_three' % kind.lower(), kind, [x(*N), x(*N), x(*N)])
case('prelu_row', 'PRelu', [x(*N), w(N[1]).ravel()])
case('clip_fed', 'Clip', [x(*N), Feed(np.float32(-.5)), Feed(np.float32(.5))])
case('clip_i64', 'Clip', [of(I64, *N), np.int64(-3), np.int64(30)])
case('clip_f16', 'Clip', [of(F16, *N), F16(-.5), F16(.5)])
# ---- element types ------------------------------------------------------------------------------------------------------------
TYPES = ((np.float32, TensorProto.FLOAT), (F16, TensorProto.FLOAT16), (F64, TensorProto.DOUBLE), (I8, TensorProto.INT8), (U8, TensorProto.UINT8),
         (I32, TensorProto.INT32), (I64, TensorProto.INT64), (bool, TensorProto.BOOL))
for source, _ in TYPES:
    for target, to in TYPES:
        if source != target:
            operand = positive(source, *N) if np.dtype(source).kind == 'f' else of(source, *N, low=0)  # what all types hold
            case('cast_%s_to_%s' % (name_of(source), name_of(target)), 'Cast', [operand], to=to)
case('quantize_int8', 'QuantizeLinear', [x(*N), np.float32(.01), np.int8(3)])
case('quantize_fed', 'QuantizeLinear', [x(*N), Feed(np.float32(.01)), Feed(np.uint8(3))])
case('quantize_channels', 'QuantizeLinear', [x(1, 64, 56, 56), np.abs(w(64).ravel()) + np.float32(.01), np.zeros(64, np.int8)], axis=1)
case('dequantize_int8', 'DequantizeLinear', [of(I8, *N), np.float32(.01), np.int8(3)])
case('dequantize_int32', 'DequantizeLinear', [of(I32, *N), np.float32(.01)])
case('dequantize_fed', 'DequantizeLinear', [of(U8, *N), Feed(np.float32(.01)), Feed(np.uint8(3))])
case('dynamic_quantize', 'DynamicQuantizeLinear', [x(*N)], 3)
case('dynamic_quantize_768', 'DynamicQuantizeLinear', [x(1, 768)], 3)
# ---- reductions ---------------------------------------------------------------------------------------------------------------
for kind in ('Sum', 'Mean', 'Max', 'Min', 'Prod'):
    for dtype in (F64, I32, I64) + ((I8, U8) if kind in ('Max', 'Min') else ()):
        if kind != 'Prod' or dtype != F64:
            case('reduce_%s_%s' % (kind.lower(), name_of(dtype)), 'Reduce' + kind, [of(dtype, 512, 512), ints([1])])
            case('reduce_%s_first_%s' % (kind.lower(), name_of(dtype)), 'Reduce' + kind, [of(dtype, 512, 512), ints([0])])
for kind in ('L1', 'L2', 'LogSum', 'LogSumExp', 'SumSquare', 'Min', 'Prod'):
    for where, axes in (('last', [1]), ('first', [0]), ('all', [0, 1])):
        if (kind, where) != ('L2', 'last') and (kind, where) != ('Prod', 'last'):
            near_one = Feed(1 + floats(512, 512) / 1000)  # a product of others leaves the normal numbers
            case('reduce_%s_%s' % (kind.lower(), where), 'Reduce' + kind, [near_one if kind == 'Prod' else positive(np.float32, 512, 512), ints(axes)])
case('reduce_small', 'ReduceSum', [x(10, 10), ints([1])])
case('reduce_mean_f16', 'ReduceMean', [of(F16, 512, 512), ints([1])])
for dtype in (np.float32, F64, I32, I64, I8, U8):
    case('argmax_%s' % name_of(dtype), 'ArgMax', [of(dtype, 64, 512)], axis=-1)
    case('argmin_first_%s' % name_of(dtype), 'ArgMin', [of(dtype, 64, 512)], axis=0)
case('argmax_small', 'ArgMax', [x(1, 10)], axis=1)
case('hardmax', 'Hardmax', [x(256, 1000)])
case('hardmax_first', 'Hardmax', [x(256, 1000)], axis=0)
case('logsoftmax_channels', 'LogSoftmax', [x(1, 21, 128, 128)], axis=1)
case('softmax_f64', 'Softmax', [of(F64, 256, 1000)])
case('softmax_f16', 'Softmax', [of(F16, 256, 1000)])
case('softmax_ten', 'Softmax', [x(1, 10)])
for dtype in (np.float32, F64, I32, I64):
    case('cumsum_middle_%s' % name_of(dtype), 'CumSum', [of(dtype, 8, 128, 64), ints(1)])
case('cumsum_reverse', 'CumSum', [x(64, 1000), ints(1)], reverse=1, exclusive=1)
# ---- movement -----------------------------------------------------------------------------------------------------------------
for dtype in (U8, F16, np.float32, I64, F64):
    t = name_of(dtype)
    case('move_transpose_%s' % t, 'Transpose', [of(dtype, 300, 400)], perm=[1, 0])
    case('move_heads_%s' % t, 'Transpose', [of(dtype, 1, 128, 12, 64)], perm=[0, 2, 1, 3])
    case('move_concat_%s' % t, 'Concat', [of(dtype, 64, 100), of(dtype, 64, 28), of(dtype, 64, 128)], axis=1)
    case('move_split_%s' % t, 'Split', [of(dtype, 256, 1024), ints([256] * 4)], 4, axis=1)
    case('move_slice_%s' % t, 'Slice', [of(dtype, 256, 1000), ints([1]), ints([999]), ints([1]), ints([2])])
    case('move_pad_%s' % t, 'Pad', [of(dtype, 1, 16, 64, 64), ints([0, 0, 1, 1, 0, 0, 1, 1])])
    case('move_tile_%s' % t, 'Tile', [of(dtype, 64, 64), ints([8, 8])])
    case('move_expand_%s' % t, 'Expand', [of(dtype, 64, 1, 64), ints([64, 64, 64])])
    case('move_gather_%s' % t, 'Gather', [of(dtype, 1000, 64), indices((500,), 1000)])
    case('move_gather_last_%s' % t, 'Gather', [of(dtype, 512, 400), indices((100,), 400)], axis=1)
    case('move_gather_elements_%s' % t, 'GatherElements', [of(dtype, 300, 256), indices((300, 100), 256)], axis=1)
    case('move_gather_nd_%s' % t, 'GatherND', [of(dtype, 100, 100), Feed(np.random.RandomState(5).randint(0, 100, (3000, 2)).astype(I64))])
    case('move_scatter_elements_%s' % t, 'ScatterElements', [of(dtype, 256, 256), indices((256, 100), 256), of(dtype, 256, 100)], axis=1)
    if dtype != I64:
        case('move_depth_to_space_%s' % t, 'DepthToSpace', [of(dtype, 1, 64, 64, 64)], blocksize=2)
    if dtype not in (I64, F64):
        case('move_resize_%s' % t, 'Resize', [of(dtype, 1, 16, 64, 64), None, np.float32([1, 1, 2, 2])], mode='nearest',
             coordinate_transformation_mode='asymmetric', nearest_mode='floor')
    case('move_topk_%s' % t, 'TopK', [of(dtype, 64, 1000), ints([10])], 2)
    if dtype not in (U8, F64):
        case('move_one_hot_%s' % t, 'OneHot', [indices((2000,), 100), ints([100]), np.array([0, 1], dtype)])
    if dtype != U8:
        case('move_trilu_%s' % t, 'Trilu', [of(dtype, 512, 512)])
case('gather_elements_first', 'GatherElements', [x(300, 256), indices((100, 256), 300)], axis=0)
case('gather_elements_i32', 'GatherElements', [x(300, 256), Feed(indices((300, 100), 256).array.astype(I32))], axis=1)
case('gather_small', 'Gather', [x(100), indices((5,), 100)])
case('scatter_nd_add', 'ScatterND', [x(1000, 64), Feed(np.random.RandomState(5).randint(0, 1000, (2000, 1)).astype(I64)), x(2000, 64)], reduction='add')
case('scatter_elements_max', 'ScatterElements', [x(300, 256), indices((100, 256), 300), x(100, 256)], axis=0, reduction='max')
case('eye_like', 'EyeLike', [x(256, 256)])
case('reverse_sequence_batch', 'ReverseSequence', [x(16, 200, 64), Feed(np.full(16, 150, I64))], batch_axis=0, time_axis=1)
case('transpose_small', 'Transpose', [x(1, 3, 8, 8)], perm=[0, 2, 3, 1])
case('concat_small', 'Concat', [x(1, 4), x(1, 4)], axis=1)
case('pad_wrap', 'Pad', [x(1, 16, 64, 64), ints([0, 0, 3, 3, 0, 0, 3, 3])], mode='wrap', opset=19)
case('max_unpool', 'MaxUnpool', [x(1, 64, 28, 28), Feed((np.arange(64 * 28 * 28) * 4).reshape(1, 64, 28, 28).astype(I64))], kernel_shape=[2, 2], strides=[2, 2])
# ---- windows ------------------------------------------------------------------------------------------------------------------
case('max_pool_3d', 'MaxPool', [x(1, 16, 16, 32, 32)], kernel_shape=[2, 2, 2], strides=[2, 2, 2])
case('max_pool_u8', 'MaxPool', [of(U8, 1, 64, 56, 56)], kernel_shape=[3, 3], strides=[2, 2])
case('max_pool_f64', 'MaxPool', [of(F64, 1, 64, 56, 56)], kernel_shape=[3, 3], strides=[2, 2])
case('average_pool_3d', 'AveragePool', [x(1, 16, 16, 32, 32)], kernel_shape=[2, 2, 2], strides=[2, 2, 2])
case('average_pool_1d', 'AveragePool', [x(1, 64, 1000)], kernel_shape=[5], strides=[2])
case('average_pool_padded', 'AveragePool', [x(1, 32, 56, 56)], kernel_shape=[5, 5], pads=[2, 2, 2, 2], count_include_pad=1)
case('global_average_pool_1d', 'GlobalAveragePool', [x(1, 128, 400)])
case('conv_1d_small', 'Conv', [x(1, 16, 50), w(32, 16, 3), w(32)], pads=[1, 1])
case('conv_3d_depthwise', 'Conv', [x(1, 32, 8, 28, 28), w(32, 1, 3, 3, 3), w(32)], pads=[1] * 6, group=32)
case('conv_3d_first', 'Conv', [x(1, 3, 16, 56, 56), w(32, 3, 3, 7, 7), w(32)], pads=[1, 3, 3, 1, 3, 3], strides=[1, 2, 2])
case('conv_small', 'Conv', [x(1, 3, 8, 8), w(4, 3, 3, 3), w(4)])
case('conv_transpose_3d', 'ConvTranspose', [x(1, 16, 8, 14, 14), w(16, 8, 2, 2, 2)], strides=[2, 2, 2])
case('conv_integer', 'ConvInteger', [of(U8, 1, 32, 28, 28), of(I8, 32, 32, 3, 3).array, np.uint8(12)], pads=[1, 1, 1, 1])
case('qlinear_conv', 'QLinearConv', [of(U8, 1, 32, 28, 28), np.float32(.02), np.uint8(128), of(I8, 32, 32, 3, 3).array, np.float32(.01), np.int8(0),
                                     np.float32(.3), np.uint8(120)], pads=[1, 1, 1, 1])
case('resize_nearest_3d', 'Resize', [x(1, 8, 8, 28, 28), None, np.float32([1, 1, 2, 2, 2])], mode='nearest', coordinate_transformation_mode='asymmetric',
     nearest_mode='floor')
case('resize_linear_3d', 'Resize', [x(1, 8, 8, 28, 28), None, np.float32([1, 1, 2, 2, 2])], mode='linear')
case('resize_linear_u8', 'Resize', [of(U8, 1, 3, 240, 320), None, None, ints([1, 3, 112, 112])], mode='linear')
case('grid_sample_nearest', 'GridSample', [x(1, 32, 64, 64), x(1, 64, 64, 2)], mode='nearest')
case('grid_sample_cubic', 'GridSample', [x(1, 8, 64, 64), x(1, 64, 64, 2)], mode='bicubic')
case('grid_sample_3d', 'GridSample', [x(1, 8, 16, 16, 16), x(1, 16, 16, 16, 3)], mode='linear', opset=20)
case('roi_align_max', 'RoiAlign', [x(1, 64, 50, 50), Feed(np.sort(np.random.RandomState(1).uniform(0, 49, (50, 2, 2)), 1).reshape(50, 4)
                                                        .astype(np.float32)), ints([0] * 50)], output_height=7, output_width=7, sampling_ratio=2, mode='max')
case('affine_grid', 'AffineGrid', [x(2, 2, 3), ints([2, 3, 64, 64])], opset=20)
case('deform_conv', 'DeformConv', [x(1, 32, 28, 28), w(32, 32, 3, 3), x(1, 18, 28, 28)], pads=[1, 1, 1, 1], opset=19)
# ---- normalisations -----------------------------------------------------------------------------------------------------------
case('mean_variance', 'MeanVarianceNormalization', [x(1, 64, 56, 56)])
case('layer_norm_f64', 'LayerNormalization', [of(F64, 196, 768), w(768).ravel().astype(F64), w(768).ravel().astype(F64)])
case('layer_norm_f16', 'LayerNormalization', [of(F16, 196, 768), w(768).ravel().astype(F16), w(768).ravel().astype(F16)])
case('layer_norm_one_row', 'LayerNormalization', [x(1, 768), w(768).ravel(), w(768).ravel()])
case('lp_norm_first', 'LpNormalization', [x(256, 1000)], axis=0)
case('lp_norm_1', 'LpNormalization', [x(256, 1000)], axis=1, p=1)
case('global_lp_pool', 'GlobalLpPool', [x(1, 256, 14, 14)])
case('rms_norm', 'RMSNormalization', [x(196, 768), w(768).ravel()], opset=23)
case('dropout', 'Dropout', [x(*N)])
case('det', 'Det', [x(64, 8, 8)])
case('negative_log_likelihood', 'NegativeLogLikelihoodLoss', [x(256, 100), indices((256,), 100)])
case('softmax_cross_entropy', 'SoftmaxCrossEntropyLoss', [x(256, 100), indices((256,), 100)])
# ---- matrices -----------------------------------------------------------------------------------------------------------------
case('matmul_one_row_fed', 'MatMul', [x(1, 1024), x(1024, 1024)])
case('matmul_four_rows_fed', 'MatMul', [x(4, 512), x(512, 512)])
case('matmul_vector_fed', 'MatMul', [x(512), x(512, 700)])
case('matmul_column_fed', 'MatMul', [x(700, 512), x(512, 1)])
case('matmul_small', 'MatMul', [x(4, 4), x(4, 4)])
case('matmul_small_16', 'MatMul', [x(16, 16), w(16, 16)])
case('matmul_batch_small', 'MatMul', [x(64, 8, 16), x(64, 16, 8)])
case('matmul_large', 'MatMul', [x(512, 512), x(512, 512)])
case('matmul_f64', 'MatMul', [of(F64, 128, 256), of(F64, 256, 128)])
case('matmul_f64_weights', 'MatMul', [of(F64, 128, 256), w(256, 128).astype(F64)])
case('matmul_f16', 'MatMul', [of(F16, 128, 256), w(256, 128).astype(F16)])
case('matmul_i32', 'MatMul', [of(I32, 64, 128), of(I32, 128, 64)])
case('matmul_i64', 'MatMul', [of(I64, 64, 128), of(I64, 128, 64)])
case('gemm_one_row_fed', 'Gemm', [x(1, 512), x(512, 512), x(512)], transB=1)
case('gemm_small', 'Gemm', [x(1, 10), w(10, 10), w(10).ravel()])
for signed, dtype in (('u8i8', I8), ('u8u8', U8)):
    case('matmul_integer_%s' % signed, 'MatMulInteger', [of(U8, 64, 256, high=255), of(dtype, 256, 256).array])
    case('matmul_integer_%s_fed' % signed, 'MatMulInteger', [of(U8, 64, 256, high=255), of(dtype, 256, 256)])
    case('matmul_integer_%s_zero' % signed, 'MatMulInteger', [of(U8, 64, 256, high=255), of(dtype, 256, 256), Feed(np.uint8(5)), Feed(np.array(3, dtype))])
case('matmul_integer_i8i8_fed', 'MatMulInteger', [of(I8, 64, 256), of(I8, 256, 256)])
case('matmul_integer_one_row', 'MatMulInteger', [of(U8, 1, 768, high=255), of(I8, 768, 768).array, np.uint8(7)])
case('matmul_integer_one_row_fed', 'MatMulInteger', [of(U8, 1, 768, high=255), of(I8, 768, 768)])
case('qlinear_matmul', 'QLinearMatMul', [of(U8, 64, 256), np.float32(.02), np.uint8(128), of(I8, 256, 256).array, np.float32(.01), np.int8(0),
                                         np.float32(.3), np.uint8(120)])
case('qlinear_matmul_fed', 'QLinearMatMul', [of(U8, 64, 256), np.float32(.02), np.uint8(128), of(I8, 256, 256), np.float32(.01), np.int8(0),
                                             np.float32(.3), np.uint8(120)])
case('einsum_batch', 'Einsum', [x(8, 64, 64), x(8, 64, 64)], equation='bij,bkj->bik')
case('einsum_three', 'Einsum', [x(32, 32), x(32, 32), x(32, 32)], equation='ij,jk,kl->il')
case('einsum_sum', 'Einsum', [x(256, 256)], equation='ij->i')
# ---- recurrent, small ---------------------------------------------------------------------------------------------------------
case('lstm_small', 'LSTM', [x(10, 1, 16), w(1, 64, 16), w(1, 64, 16), w(1, 128)], 3, hidden_size=16)
case('lstm_fed_weights', 'LSTM', [x(10, 1, 64), x(1, 256, 64), x(1, 256, 64)], 3, hidden_size=64)
case('lstm_peepholes', 'LSTM', [x(20, 2, 64), w(1, 256, 64), w(1, 256, 64), w(1, 512), None, None, None, w(1, 192)], 3, hidden_size=64)
case('gru_small', 'GRU', [x(10, 1, 16), w(1, 48, 16), w(1, 48, 16), w(1, 96)], 2, hidden_size=16)
case('gru_batch_16', 'GRU', [x(20, 16, 64), w(1, 384, 64), w(1, 384, 128), w(1, 768)], 2, hidden_size=128, linear_before_reset=1)
# ---- attention, com.microsoft -------------------------------------------------------------------------------------------------
MS = dict(domain='com.microsoft')
case('attention', 'Attention', [x(1, 12, 128, 64), x(1, 12, 128, 64), x(1, 12, 128, 64)], opset=23)
case('attention_grouped', 'Attention', [x(1, 12, 128, 64), x(1, 4, 128, 64), x(1, 4, 128, 64)], opset=23, is_causal=1)
case('ms_attention', 'Attention', [x(1, 128, 384), w(384, 1152), w(1152).ravel()], num_heads=6, **MS)
case('ms_multi_head', 'MultiHeadAttention', [x(1, 128, 384), x(1, 128, 384), x(1, 128, 384)], num_heads=6, **MS)
case('ms_rotary', 'RotaryEmbedding', [x(1, 12, 128, 64), Feed(np.arange(128, dtype=I64).reshape(1, 128)), w(128, 32), w(128, 32)], **MS)
case('ms_skip_layer_norm', 'SkipLayerNormalization', [x(1, 128, 768), x(1, 128, 768), w(768).ravel(), w(768).ravel(), w(768).ravel()], **MS)
case('ms_skip_simplified', 'SkipSimplifiedLayerNormalization', [x(1, 128, 768), x(1, 128, 768), w(768).ravel()], **MS)
case('ms_gelu', 'Gelu', [x(*N)], **MS)
case('ms_fast_gelu', 'FastGelu', [x(*N), w(N[1]).ravel()], **MS)
case('ms_bias_gelu', 'BiasGelu', [x(*N), w(N[1]).ravel()], **MS)
case('ms_quick_gelu', 'QuickGelu', [x(*N)], **MS)
case('ms_fused_matmul', 'FusedMatMul', [x(64, 256), x(128, 256)], transB=1, alpha=.125, **MS)
case('ms_fused_gemm', 'FusedGemm', [x(64, 256), w(256, 256), w(256).ravel()], activation='Relu', **MS)
case('ms_fused_conv', 'FusedConv', [x(1, 32, 28, 28), w(32, 32, 3, 3), w(32)], pads=[1, 1, 1, 1], activation='Relu', **MS)
case('ms_dynamic_quantize_matmul', 'DynamicQuantizeMatMul', [x(64, 256), of(I8, 256, 256).array, np.float32([.01])], **MS)
case('ms_dynamic_quantize_matmul_row', 'DynamicQuantizeMatMul', [x(1, 768), of(I8, 768, 768).array, np.float32([.01])], **MS)
case('ms_matmul_integer_to_float', 'MatMulIntegerToFloat', [of(U8, 64, 256), of(I8, 256, 256).array, np.float32(.1), np.float32([.01]), np.uint8(7)], **MS)
case('ms_matmul_4_bits', 'MatMulNBits', [x(1, 1024), of(U8, 1024, 32, 16, high=255).array, np.abs(w(1024, 32)).ravel()], K=1024, N=1024, bits=4,
     block_size=32, **MS)
case('ms_matmul_4_bits_large', 'MatMulNBits', [x(1, 4096), of(U8, 4096, 128, 16, high=255).array, np.abs(w(4096, 128)).ravel()], K=4096, N=4096, bits=4,
     block_size=32, **MS)
case('ms_matmul_4_bits_many_rows', 'MatMulNBits', [x(512, 1024), of(U8, 1024, 32, 16, high=255).array, np.abs(w(1024, 32)).ravel()], K=1024, N=1024, bits=4,
     block_size=32, **MS)
case('ms_matmul_4_bits_part_block', 'MatMulNBits', [x(100, 1000), of(U8, 1000, 32, 16, high=255).array, np.abs(w(1000, 32)).ravel()], K=1000, N=1000, bits=4,
     block_size=32, **MS)
case('ms_matmul_4_bits_part_block_row', 'MatMulNBits', [x(1, 1000), of(U8, 1000, 32, 16, high=255).array, np.abs(w(1000, 32)).ravel()], K=1000, N=1000, bits=4,
     block_size=32, **MS)
case('ms_matmul_4_bits_rows', 'MatMulNBits', [x(64, 512), of(U8, 512, 16, 16, high=255).array, np.abs(w(512, 16)).ravel()], K=512, N=512, bits=4,
     block_size=32, **MS)
Q = (np.float32(.02), np.uint8(128))
for kind in ('Add', 'Mul'):
    case('ms_qlinear_%s' % kind.lower(), 'QLinear' + kind, [of(U8, 1, 64, 56, 56), *Q, of(U8, 1, 64, 56, 56), *Q, *Q], result=TensorProto.UINT8, **MS)
for kind in ('LeakyRelu', 'Sigmoid'):
    case('ms_qlinear_%s' % kind.lower(), 'QLinear' + kind, [of(U8, 1, 64, 56, 56), *Q, *Q], result=TensorProto.UINT8, **MS)
case('ms_qlinear_global_pool', 'QLinearGlobalAveragePool', [of(U8, 1, 256, 14, 14), *Q, *Q], result=TensorProto.UINT8, **MS)
case('ms_qlinear_average_pool', 'QLinearAveragePool', [of(U8, 1, 64, 28, 28), *Q, *Q], kernel_shape=[3, 3], strides=[2, 2], result=TensorProto.UINT8, **MS)
case('ms_qlinear_concat', 'QLinearConcat', [*Q, of(U8, 1, 64, 28, 28), *Q, of(U8, 1, 32, 28, 28), np.float32(.03), np.uint8(120)], axis=1,
     result=TensorProto.UINT8, **MS)
case('ms_qgemm', 'QGemm', [of(U8, 64, 256), *Q, of(I8, 256, 256).array, np.float32([.01]), np.int8([0]), np.zeros(256, I32), np.float32(.3), np.uint8(120)],
     result=TensorProto.UINT8, **MS)
# ---- tables of numbers (ai.onnx.ml) -------------------------------------------------------------------------------------------
ML = dict(domain='ai.onnx.ml')
case('ml_scaler', 'Scaler', [x(256, 64)], offset=[.5] * 64, scale=[2.] * 64, **ML)
case('ml_normalizer', 'Normalizer', [x(256, 64)], norm='L2', **ML)
case('ml_linear', 'LinearRegressor', [x(256, 64)], coefficients=[.1] * 64, intercepts=[.5], targets=1, **ML)
