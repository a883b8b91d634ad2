"""More cases of compare_operators.py: the operators of the other two files at sizes that fit no vector, with broadcasts along every axis, at a
batch of 8, in element types that those leave out, and with 1 to 16 elements, where the call itself is the work. See operator_cases.py.
"""
import numpy as np
from onnx import TensorProto

from operator_cases import Feed, case, indices, ints, w, x
from operator_types import F16, F64, I8, I32, I64, U8, name_of, of, positive

F32 = np.float32


def weights(dtype, *shape):
    return w(*shape).astype(dtype)


# ---- 1 to 16 elements: the call is the work -------------------------------------------------------------------------------------
for kind in ('Tanh', 'Sqrt', 'Softplus', 'HardSwish', 'Sin', 'Log'):
    case('tiny_%s' % kind.lower(), kind, [positive(F32, 16)])
case('tiny_softmax', 'Softmax', [x(1, 5)])
case('tiny_log_softmax', 'LogSoftmax', [x(2, 8)])
case('tiny_layer_norm', 'LayerNormalization', [x(1, 16), w(16).ravel(), w(16).ravel()])
case('tiny_batch_norm', 'BatchNormalization', [x(1, 4, 2, 2), *(positive(F32, 4).array for _ in range(4))])
case('tiny_matmul', 'MatMul', [x(1, 16), w(16, 4)])
case('tiny_gemm', 'Gemm', [x(1, 4), w(4, 2), w(2).ravel()])
case('tiny_conv', 'Conv', [x(1, 1, 4, 4), w(1, 1, 3, 3), w(1)])
case('tiny_max_pool', 'MaxPool', [x(1, 1, 4, 4)], kernel_shape=[2, 2], strides=[2, 2])
case('tiny_global_average', 'GlobalAveragePool', [x(1, 4, 2, 2)])
case('tiny_lstm', 'LSTM', [x(1, 1, 4), w(1, 16, 4), w(1, 16, 4), w(1, 32)], 3, hidden_size=4)
case('tiny_gru', 'GRU', [x(1, 1, 4), w(1, 12, 4), w(1, 12, 4), w(1, 24)], 2, hidden_size=4)
case('tiny_concat', 'Concat', [x(1, 3), x(1, 5)], axis=1)
case('tiny_split', 'Split', [x(1, 16), ints([4] * 4)], 4, axis=1)
case('tiny_slice', 'Slice', [x(16), ints([2]), ints([14]), ints([0]), ints([3])])
case('tiny_gather', 'Gather', [x(16), indices((4,), 16)])
case('tiny_gather_nd', 'GatherND', [x(4, 4), Feed(ints([[0, 1], [3, 2]]))])
case('tiny_scatter_nd', 'ScatterND', [x(4, 4), Feed(ints([[0], [3]])), x(2, 4)])
case('tiny_transpose', 'Transpose', [x(4, 4)], perm=[1, 0])
case('tiny_reshape', 'Reshape', [x(4, 4), ints([2, 8])])
case('tiny_expand', 'Expand', [x(4, 1), ints([4, 4])])
case('tiny_tile', 'Tile', [x(2, 2), ints([2, 2])])
case('tiny_pad', 'Pad', [x(2, 2), ints([1, 1, 1, 1])])
case('tiny_top_k', 'TopK', [x(1, 16), ints([4])], 2)
case('tiny_argmax', 'ArgMax', [x(1, 16)], axis=1)
case('tiny_reduce_sum', 'ReduceSum', [x(4, 4), ints([1])])
case('tiny_reduce_all', 'ReduceMean', [x(16), ints([0])], keepdims=0)
case('tiny_cumsum', 'CumSum', [x(16), ints(0)])
case('tiny_where', 'Where', [of(bool, 16), x(16), x(16)])
case('tiny_clip', 'Clip', [x(16), np.float32(-.5), np.float32(.5)])
case('tiny_cast', 'Cast', [of(I64, 8)], to=TensorProto.FLOAT)
case('tiny_less', 'Less', [x(16), x(16)])
case('tiny_and', 'And', [of(bool, 16), of(bool, 16)])
case('tiny_quantize', 'QuantizeLinear', [x(16), np.float32(.01), np.uint8(3)])
case('tiny_dequantize', 'DequantizeLinear', [of(U8, 16), np.float32(.01), np.uint8(3)])
case('tiny_resize', 'Resize', [x(1, 1, 2, 2), None, np.float32([1, 1, 2, 2])], mode='linear')
case('tiny_einsum', 'Einsum', [x(4, 4), x(4, 4)], equation='ij,kj->ik')
case('tiny_one_hot', 'OneHot', [indices((4,), 4), ints([4]), np.array([0, 1], F32)])
case('tiny_add_i64', 'Add', [of(I64, 4), of(I64, 4)])
case('tiny_div_i64', 'Div', [of(I64, 4), positive(I64, 4)])
case('tiny_pow_f64', 'Pow', [positive(F64, 8), positive(F64, 8)])
# ---- sizes that fit no vector ---------------------------------------------------------------------------------------------------
for rows, columns in ((7, 13), (33, 65), (129, 257), (1, 1001), (1000, 3)):
    size = '%dx%d' % (rows, columns)
    case('softmax_%s' % size, 'Softmax', [x(rows, columns)])
    case('layer_norm_%s' % size, 'LayerNormalization', [x(rows, columns), w(columns).ravel(), w(columns).ravel()])
    case('reduce_mean_%s' % size, 'ReduceMean', [x(rows, columns), ints([1])])
    case('reduce_max_first_%s' % size, 'ReduceMax', [x(rows, columns), ints([0])])
    case('transpose_%s' % size, 'Transpose', [x(rows, columns)], perm=[1, 0])
    case('tanh_%s' % size, 'Tanh', [x(rows, columns)])
    case('add_row_%s' % size, 'Add', [x(rows, columns), x(columns)])
    case('mul_column_%s' % size, 'Mul', [x(rows, columns), x(rows, 1)])
    case('matmul_%s' % size, 'MatMul', [x(rows, columns), w(columns, 37)])
    case('matmul_fed_%s' % size, 'MatMul', [x(rows, columns), x(columns, 50)])
    case('argmax_%s' % size, 'ArgMax', [x(rows, columns)], axis=1)
    case('cumsum_%s' % size, 'CumSum', [x(rows, columns), ints(1)])
    case('concat_%s' % size, 'Concat', [x(rows, columns), x(rows, 5)], axis=1)
    case('quantize_%s' % size, 'QuantizeLinear', [x(rows, columns), np.float32(.01), np.uint8(3)])
case('conv_odd_map', 'Conv', [x(1, 17, 31, 29), w(23, 17, 3, 3), w(23)], pads=[1, 1, 1, 1])
case('conv_1x1_odd', 'Conv', [x(1, 33, 15, 15), w(65, 33, 1, 1), w(65)])
case('conv_depthwise_odd_map', 'Conv', [x(1, 19, 35, 35), w(19, 1, 3, 3)], pads=[1, 1, 1, 1], group=19)
case('max_pool_odd', 'MaxPool', [x(1, 19, 35, 35)], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
case('average_pool_odd', 'AveragePool', [x(1, 19, 35, 35)], kernel_shape=[3, 3], strides=[2, 2])
case('resize_linear_odd', 'Resize', [x(1, 5, 31, 45), None, None, ints([1, 5, 50, 77])], mode='linear')
case('resize_nearest_odd', 'Resize', [x(1, 5, 31, 45), None, None, ints([1, 5, 62, 90])], mode='nearest')
case('instance_norm_odd', 'InstanceNormalization', [x(1, 19, 35, 35), w(19).ravel(), w(19).ravel()])
case('pad_odd', 'Pad', [x(1, 5, 31, 45), ints([0, 0, 1, 2, 0, 0, 3, 4])])
case('transpose_odd_heads', 'Transpose', [x(1, 77, 7, 33)], perm=[0, 2, 1, 3])
case('transpose_to_last', 'Transpose', [x(1, 3, 224, 224)], perm=[0, 2, 3, 1])
case('transpose_to_first', 'Transpose', [x(1, 224, 224, 3)], perm=[0, 3, 1, 2])
case('top_k_odd', 'TopK', [x(33, 777), ints([7])], 2)
case('gather_odd_rows', 'Gather', [x(333, 77), indices((111,), 333)])
case('einsum_odd', 'Einsum', [x(3, 17, 33), x(3, 33, 29)], equation='bij,bjk->bik')
# ---- broadcasts -----------------------------------------------------------------------------------------------------------------
for kind in ('Add', 'Sub', 'Mul', 'Div'):
    k = kind.lower()
    case('channels_%s' % k, kind, [x(1, 64, 56, 56), positive(F32, 64, 1, 1)])
    case('outer_%s' % k, kind, [x(512, 1), positive(F32, 1, 512)])
    case('rows_first_%s' % k, kind, [x(1024), positive(F32, 256, 1024)])
    case('last_%s' % k, kind, [x(64, 128, 32), positive(F32, 64, 128, 1)])
    case('outer_both_%s' % k, kind, [x(8, 1, 64, 1), positive(F32, 1, 16, 1, 64)])
case('less_row', 'Less', [x(256, 1024), x(1024)])
case('where_mask_heads', 'Where', [of(bool, 1, 1, 128, 128), x(1, 12, 128, 128), np.float32(-1e9)])
case('pow_rows', 'Pow', [positive(F32, 256, 1024), positive(F32, 256, 1)])
case('max_scalar_i64', 'Max', [of(I64, 256, 1024), np.int64(3)])
# ---- a batch of 8 ---------------------------------------------------------------------------------------------------------------
case('batch_conv_3x3', 'Conv', [x(8, 64, 28, 28), w(64, 64, 3, 3), w(64)], pads=[1, 1, 1, 1])
case('batch_conv_1x1', 'Conv', [x(8, 128, 14, 14), w(256, 128, 1, 1), w(256)])
case('batch_conv_depthwise', 'Conv', [x(8, 64, 28, 28), w(64, 1, 3, 3), w(64)], pads=[1, 1, 1, 1], group=64)
case('batch_conv_first', 'Conv', [x(8, 3, 64, 64), w(32, 3, 3, 3), w(32)], pads=[1, 1, 1, 1], strides=[2, 2])
case('batch_conv_transpose', 'ConvTranspose', [x(8, 32, 14, 14), w(32, 16, 2, 2)], strides=[2, 2])
case('batch_max_pool', 'MaxPool', [x(8, 64, 56, 56)], kernel_shape=[2, 2], strides=[2, 2])
case('batch_global_average', 'GlobalAveragePool', [x(8, 256, 7, 7)])
case('batch_matmul', 'MatMul', [x(8, 128, 64), x(8, 64, 128)])
case('batch_matmul_weights', 'MatMul', [x(8, 128, 256), w(256, 256)])
case('batch_gemm', 'Gemm', [x(8, 512), w(512, 1000), w(1000).ravel()])
case('batch_softmax', 'Softmax', [x(8, 12, 64, 64)])
case('batch_lstm', 'LSTM', [x(20, 8, 64), w(1, 256, 64), w(1, 256, 64), w(1, 512)], 3, hidden_size=64)
case('batch_resize', 'Resize', [x(8, 16, 32, 32), None, np.float32([1, 1, 2, 2])], mode='linear')
case('batch_group_norm', 'InstanceNormalization', [x(8, 32, 784), w(32).ravel(), w(32).ravel()])
case('batch_batch_norm', 'BatchNormalization', [x(8, 64, 28, 28), *(positive(F32, 64).array for _ in range(4))])
case('batch_layer_norm', 'LayerNormalization', [x(8, 64, 384), w(384).ravel(), w(384).ravel()])
case('batch_top_k', 'TopK', [x(8, 5000), ints([100])], 2)
case('batch_transpose', 'Transpose', [x(8, 64, 28, 28)], perm=[0, 2, 3, 1])
case('batch_argmax', 'ArgMax', [x(8, 21, 64, 64)], axis=1)
# ---- element types --------------------------------------------------------------------------------------------------------------
for kind in ('Sin', 'Cos', 'Ceil'):  # ONNX Runtime has few others of f64
    case('more_%s_f64' % kind.lower(), kind, [positive(F64, 256, 1024)])
for kind in ('Log', 'Floor', 'Round', 'Sign', 'Reciprocal', 'Sin', 'Softplus', 'LeakyRelu', 'HardSigmoid', 'Gelu'):
    case('more_%s_f16' % kind.lower(), kind, [positive(F16, 256, 1024)], opset=20)
case('tanh_f64_odd', 'Tanh', [of(F64, 33, 65)])
case('tanh_f64_wide', 'Tanh', [Feed(of(F64, 256, 1024).array * 20)])
case('exp_f64_wide', 'Exp', [Feed(of(F64, 256, 1024).array * 700)])
case('log_f64_wide', 'Log', [Feed(np.exp(of(F64, 256, 1024).array * 300))])
for dtype in (F64, F16):
    t = name_of(dtype)
    case('gemm_%s' % t, 'Gemm', [of(dtype, 64, 256), weights(dtype, 256, 128), weights(dtype, 128).ravel()])
    case('gemm_trans_b_%s' % t, 'Gemm', [of(dtype, 64, 256), weights(dtype, 128, 256), weights(dtype, 128).ravel()], transB=1)
    case('matmul_batch_%s' % t, 'MatMul', [of(dtype, 8, 64, 64), of(dtype, 8, 64, 64)])
    case('matmul_row_%s' % t, 'MatMul', [of(dtype, 1, 512), weights(dtype, 512, 512)])
    case('matmul_odd_%s' % t, 'MatMul', [of(dtype, 37, 53), of(dtype, 53, 41)])
    case('matmul_large_%s' % t, 'MatMul', [of(dtype, 256, 512), of(dtype, 512, 256)])
    case('batch_norm_%s' % t, 'BatchNormalization', [of(dtype, 1, 64, 28, 28), *(positive(dtype, 64).array for _ in range(4))])
    case('softmax_odd_%s' % t, 'Softmax', [of(dtype, 77, 133)])
    case('softmax_middle_%s' % t, 'Softmax', [of(dtype, 8, 64, 128)], axis=1)
    case('log_softmax_%s' % t, 'LogSoftmax', [of(dtype, 256, 100)])
    case('reduce_sum_all_%s' % t, 'ReduceSum', [of(dtype, 512, 512)])
    case('reduce_mean_odd_%s' % t, 'ReduceMean', [of(dtype, 77, 133), ints([1])])
    case('max_pool_2x2_%s' % t, 'MaxPool', [of(dtype, 1, 64, 56, 56)], kernel_shape=[2, 2], strides=[2, 2])
    case('clip_more_%s' % t, 'Clip', [of(dtype, 256, 1024), dtype(-.5), dtype(.5)])
    case('add_row_%s' % t, 'Add', [of(dtype, 256, 1000), of(dtype, 1000)])
    case('div_channels_%s' % t, 'Div', [of(dtype, 1, 64, 28, 28), positive(dtype, 64, 1, 1)])
    case('einsum_%s' % t, 'Einsum', [of(dtype, 32, 64), of(dtype, 48, 64)], equation='ij,kj->ik')
case('conv_f16', 'Conv', [of(F16, 1, 16, 28, 28), weights(F16, 32, 16, 3, 3), weights(F16, 32).ravel()], pads=[1, 1, 1, 1])
case('average_pool_f16', 'AveragePool', [of(F16, 1, 16, 28, 28)], kernel_shape=[3, 3])
case('resize_linear_f16', 'Resize', [of(F16, 1, 8, 28, 28), None, np.float32([1, 1, 2, 2])], mode='linear')
for dtype in (I64, I32, U8, I8, bool):
    t = name_of(dtype)
    if dtype != bool:
        case('equal_row_%s' % t, 'Equal', [of(dtype, 256, 1024), of(dtype, 1024)])
        case('reduce_max_all_%s' % t, 'ReduceMax', [of(dtype, 512, 512)])
        case('reduce_min_middle_%s' % t, 'ReduceMin', [of(dtype, 16, 64, 64), ints([1])])
        case('top_k_%s' % t, 'TopK', [of(dtype, 33, 777), ints([7])], 2)
    case('concat_odd_%s' % t, 'Concat', [of(dtype, 64, 33), of(dtype, 64, 77)], axis=1)
    case('slice_last_%s' % t, 'Slice', [of(dtype, 256, 1000), ints([3]), ints([777]), ints([1]), ints([1])])
    case('gather_columns_%s' % t, 'Gather', [of(dtype, 300, 200), indices((50,), 200)], axis=1)
    case('transpose_middle_%s' % t, 'Transpose', [of(dtype, 8, 33, 65)], perm=[0, 2, 1])
    case('expand_column_%s' % t, 'Expand', [of(dtype, 300, 1), ints([300, 200])])
    case('tile_odd_%s' % t, 'Tile', [of(dtype, 33, 7), ints([5, 11])])
for dtype in (I32, I64):
    t = name_of(dtype)
    for kind in ('Div', 'Mod'):
        case('%s_row_%s' % (kind.lower(), t), kind, [of(dtype, 256, 1024, high=100000), positive(dtype, 1024)])
        case('%s_scalar_fed_%s' % (kind.lower(), t), kind, [of(dtype, 256, 1024, high=100000), positive(dtype, 1)])
        case('%s_constant_%s' % (kind.lower(), t), kind, [of(dtype, 256, 1024, high=100000), dtype(7)])
    case('clip_scalars_%s' % t, 'Clip', [of(dtype, 256, 1024), dtype(-3), dtype(30)])
    case('cumsum_last_%s' % t, 'CumSum', [of(dtype, 64, 1000), ints(1)])
for kind in ('Div', 'Mod'):
    case('%s_u8_more' % kind.lower(), kind, [of(U8, 256, 1024), positive(U8, 256, 1024)])
    case('%s_u64' % kind.lower(), kind, [of(np.uint64, 256, 1024), positive(np.uint64, 256, 1024)])
# ---- quantised ------------------------------------------------------------------------------------------------------------------
Q = (np.float32(.02), np.uint8(128))
for rows, inner, columns in ((128, 768, 768), (128, 768, 3072), (1, 512, 512), (17, 65, 33), (256, 64, 256)):
    size = '%dx%dx%d' % (rows, inner, columns)
    case('matmul_integer_u8i8_%s' % size, 'MatMulInteger', [of(U8, rows, inner, high=255), of(I8, inner, columns).array])
    case('matmul_integer_i8i8_%s' % size, 'MatMulInteger', [of(I8, rows, inner), of(I8, inner, columns).array])
    case('qlinear_matmul_%s' % size, 'QLinearMatMul', [of(U8, rows, inner), *Q, of(I8, inner, columns).array, np.float32(.01), np.int8(0),
                                                       np.float32(.3), np.uint8(120)])
for name, size, weight, more in (('1x1', (1, 256, 14, 14), (256, 256, 1, 1), {}), ('3x3', (1, 64, 56, 56), (64, 64, 3, 3), dict(pads=[1] * 4)),
                                 ('3x3_s2', (1, 128, 28, 28), (256, 128, 3, 3), dict(pads=[1] * 4, strides=[2, 2])),
                                 ('first', (1, 3, 112, 112), (32, 3, 3, 3), dict(pads=[1] * 4, strides=[2, 2])),
                                 ('depthwise', (1, 96, 28, 28), (96, 1, 3, 3), dict(pads=[1] * 4, group=96))):
    case('qlinear_conv_%s' % name, 'QLinearConv', [of(U8, *size), *Q, of(I8, *weight).array, np.float32(.01), np.int8(0), np.float32(.3),
                                                   np.uint8(120), of(I32, weight[0]).array], **more)
MS = dict(domain='com.microsoft', result=TensorProto.UINT8)
case('qlinear_sigmoid_small', 'QLinearSigmoid', [of(U8, 1, 100), *Q, *Q], **MS)
case('qlinear_leaky_relu_odd', 'QLinearLeakyRelu', [of(U8, 1, 17, 31, 29), *Q, *Q], **MS)
case('qlinear_add_row', 'QLinearAdd', [of(U8, 64, 1000), *Q, of(U8, 1000), *Q, *Q], **MS)
