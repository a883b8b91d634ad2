"""Cases of compare_operators.py for batches, odd last axes and operators of transformers and quantised models, of which none of the other four
files has the like, chosen before they were measured; and Col2Im,
GatherBlockQuantized, convolutions with fed weights and more of RoiAlign. See operator_cases.py.
"""
import numpy as np

from operator_cases import Feed, case, indices, ints, w, x
from operator_types import F16, F64, I8, I32, I64, MS, U8, of

F32 = np.float32
Q = (np.float32(.02), np.uint8(128))
OUT = (np.float32(.3), np.uint8(120))
QMS = dict(result=2, **MS)  # outputs of u8


def bits(name, rows, depth, columns, count, block, zero=False):
    blocks = -(-depth // block)
    packed = of(U8, columns, blocks, block * count // 8, high=255).array
    zeros = [of(U8, columns, -(-blocks * count // 8), high=255).array] if zero else []
    case(name, 'MatMulNBits', [x(rows, depth), packed, np.abs(w(columns, blocks)).ravel()] + [z.ravel() for z in zeros], K=depth, N=columns, bits=count,
         block_size=block, **MS)


# ---- weights of few bits --------------------------------------------------------------------------------------------------------
bits('wide_bits_8_row', 1, 1024, 768, 8, 32)
bits('wide_bits_8_rows', 130, 512, 384, 8, 64)
bits('wide_bits_4_zero_row', 1, 768, 1000, 4, 32, zero=True)
bits('wide_bits_4_zero_rows', 77, 768, 333, 4, 128, zero=True)
bits('wide_bits_4_block_16', 5, 512, 512, 4, 16)
bits('wide_bits_4_narrow', 33, 640, 20, 4, 32)
bits('wide_bits_4_one_block', 9, 48, 100, 4, 64)
# ---- quantised ------------------------------------------------------------------------------------------------------------------
for name, channels, outputs, size, kernel, rest in (('wide_qconv_33_to_9', 33, 9, 28, 3, {}), ('wide_qconv_6_to_50', 6, 50, 33, 5, dict(pads=[2] * 4)),
                                                    ('wide_qconv_1x1_70', 70, 35, 17, 1, {}), ('wide_qconv_s2_12', 12, 24, 41, 3, dict(strides=[2, 2]))):
    case(name, 'QLinearConv', [of(U8, 2, channels, size, size), *Q, of(I8, outputs, channels, kernel, kernel).array, F32(.01), I8(0), *OUT], **rest)
case('wide_qconv_1d_odd', 'QLinearConv', [of(U8, 4, 21, 100), *Q, of(I8, 13, 21, 5).array, F32(.01), I8(0), *OUT], pads=[2, 2])
case('wide_qconv_depthwise_odd', 'QLinearConv', [of(U8, 2, 30, 28, 28), *Q, of(I8, 30, 1, 3, 3).array, F32(.01), I8(0), *OUT], pads=[1] * 4, group=30)
case('wide_qconv_i8', 'QLinearConv', [of(I8, 1, 40, 20, 20), F32(.02), I8(3), of(I8, 24, 40, 3, 3).array, F32(.01), I8(0), F32(.3), I8(-4)], pads=[1] * 4)
case('wide_conv_integer_odd', 'ConvInteger', [of(U8, 1, 21, 30, 30), of(U8, 10, 21, 3, 3).array, U8(7), U8(128)])
case('wide_qmatmul_odd', 'QLinearMatMul', [of(U8, 3, 33, 77), *Q, of(I8, 77, 45).array, F32(.01), I8(0), *OUT])
case('wide_qmatmul_columns', 'QLinearMatMul', [of(U8, 50, 96), *Q, of(I8, 96, 70).array, np.abs(w(70).ravel()) + F32(.01), np.zeros(70, I8), *OUT], opset=21)
case('wide_dynamic_matmul_odd', 'DynamicQuantizeMatMul', [x(7, 100), of(I8, 100, 77).array, F32([.01])], **MS)
case('wide_integer_to_float_odd', 'MatMulIntegerToFloat', [of(U8, 5, 77), of(I8, 77, 50).array, F32(.1), np.abs(w(50).ravel()), U8(7)], **MS)
case('wide_qlinear_add_column', 'QLinearAdd', [of(U8, 2, 30, 17, 19), *Q, of(U8, 30, 1, 1), *Q, *Q], **QMS)
case('wide_quantize_block', 'QuantizeLinear', [x(64, 96), np.abs(w(64, 3)) + F32(.01), np.zeros((64, 3), U8)], axis=1, block_size=32, opset=21)
case('wide_dequantize_block', 'DequantizeLinear', [of(U8, 64, 96), np.abs(w(64, 3)) + F32(.01), np.full((64, 3), 9, U8)], axis=1, block_size=32, opset=21)
case('wide_dequantize_rows_f16', 'DequantizeLinear', [of(I8, 33, 77), np.abs(w(33).ravel()).astype(F16) + F16(.01), np.zeros(33, I8)], axis=0, opset=21)
# ---- transformers ---------------------------------------------------------------------------------------------------------------
case('wide_group_query', 'GroupQueryAttention', [x(2, 16, 256), x(2, 16, 128), x(2, 16, 128), None, None, Feed(np.full(2, 15, I32)), Feed(np.array(16, I32))],
     3, num_heads=4, kv_num_heads=2, **MS)
case('wide_multi_head_batch', 'MultiHeadAttention', [x(3, 50, 192), x(3, 50, 192), x(3, 50, 192)], num_heads=3, **MS)
case('wide_multi_head_short', 'MultiHeadAttention', [x(4, 1, 256), x(4, 77, 256), x(4, 77, 256)], num_heads=8, **MS)
case('wide_attention_mask', 'Attention', [x(2, 33, 96), w(96, 288), w(288).ravel(), Feed(np.full((2, 33), 1, I32))], num_heads=4, **MS)
case('wide_rms_norm_odd', 'SimplifiedLayerNormalization', [x(3, 17, 99), w(99).ravel()], axis=-1, epsilon=1e-5)
case('wide_skip_rms_batch', 'SkipSimplifiedLayerNormalization', [x(2, 33, 200), x(2, 33, 200), w(200).ravel()], **MS)
case('wide_bias_softmax_odd', 'Softmax', [x(6, 12, 33, 33)], axis=-1)
case('wide_scores_odd', 'MatMul', [x(3, 8, 33, 40), x(3, 8, 40, 33)])
case('wide_values_odd', 'MatMul', [x(3, 8, 33, 33), x(3, 8, 33, 40)])
case('wide_mask_where', 'Where', [of(bool, 2, 1, 33, 33), x(2, 8, 33, 33), F32(-1e9)])
# ---- batches, odd sizes ---------------------------------------------------------------------------------------------------------
case('wide_conv_batch_odd', 'Conv', [x(3, 13, 25, 27), w(21, 13, 3, 3), w(21)], pads=[1] * 4)
case('wide_conv_3d_odd', 'Conv', [x(2, 5, 9, 15, 17), w(11, 5, 3, 3, 3)], pads=[1] * 6)
case('wide_conv_transpose_grouped', 'ConvTranspose', [x(2, 12, 15, 15), w(12, 3, 3, 3)], group=4, strides=[2, 2])
case('wide_conv_f16_odd', 'Conv', [of(F16, 2, 21, 19, 19), w(13, 21, 3, 3).astype(F16)], pads=[1] * 4)
case('wide_conv_depthwise_batch', 'Conv', [x(4, 37, 20, 20), w(37, 1, 5, 5)], pads=[2] * 4, group=37, strides=[2, 2])
case('wide_matmul_f64_batch', 'MatMul', [of(F64, 3, 17, 33), of(F64, 3, 33, 21)])
case('wide_gemm_trans_both', 'Gemm', [x(77, 33), x(50, 77), w(50).ravel()], transA=1, transB=1)
case('wide_lstm_batch_odd', 'LSTM', [x(12, 3, 21), w(1, 132, 21), w(1, 132, 33), w(1, 264)], 3, hidden_size=33)
case('wide_gru_batch_odd', 'GRU', [x(9, 5, 30), w(2, 75, 30), w(2, 75, 25), w(2, 150)], 2, hidden_size=25, direction='bidirectional')
case('wide_batch_instance_norm', 'InstanceNormalization', [x(5, 7, 33, 31), w(7).ravel(), w(7).ravel()])
case('wide_top_k_batch', 'TopK', [x(7, 31, 45), ints([4])], 2, axis=1)
case('wide_cumsum_batch', 'CumSum', [x(5, 33, 17), ints(1)])
case('wide_scatter_mul', 'ScatterElements', [x(50, 33), indices((20, 33), 50), x(20, 33)], axis=0, reduction='mul')
case('wide_grid_sample_batch', 'GridSample', [x(4, 7, 21, 23), x(4, 15, 17, 2)], padding_mode='border', align_corners=1)
case('wide_resize_batch', 'Resize', [x(4, 5, 21, 23), None, None, ints([4, 5, 47, 49])], mode='linear', coordinate_transformation_mode='align_corners')
case('wide_average_pool_dilated', 'AveragePool', [x(2, 11, 33, 35)], kernel_shape=[3, 3], dilations=[2, 2], opset=19)
case('wide_mod_negative_i64', 'Mod', [of(I64, 50, 77, low=-1000, high=1000), of(I64, 77, low=1, high=9)])
case('wide_reduce_batch_odd', 'ReduceMean', [x(6, 33, 45), ints([1])])
case('wide_arg_max_i32_odd', 'ArgMax', [of(I32, 40, 77)], axis=0)
# ---- columns to images ----------------------------------------------------------------------------------------------------------


def fold(name, batch, channels, image, block, stride=1, pad=0, dilation=1):
    windows = [(i + 2 * pad - dilation * (k - 1) - 1) // stride + 1 for i, k in zip(image, block)]
    case('col2im_' + name, 'Col2Im', [x(batch, channels * int(np.prod(block)), int(np.prod(windows))), ints(image), ints(block)], strides=[stride] * len(image),
         pads=[pad] * 2 * len(image), dilations=[dilation] * len(image))


fold('3x3', 1, 64, [56, 56], [3, 3], pad=1)
fold('3x3_s2_odd', 1, 32, [57, 55], [3, 3], 2, 1)
fold('4x4_s2', 1, 32, [64, 64], [4, 4], 2, 1)
fold('5x5_batch', 2, 8, [33, 35], [5, 5], pad=2)
fold('7x7', 1, 16, [56, 56], [7, 7], pad=3)
fold('11x11', 1, 8, [64, 64], [11, 11], pad=5)
fold('dilated', 1, 16, [40, 40], [3, 3], pad=2, dilation=2)
fold('dilated_s2', 1, 8, [40, 40], [3, 3], 2, 2, 2)
fold('patches_16', 1, 3, [224, 224], [16, 16], 16)
fold('line', 3, 64, [1000], [5], pad=2)
fold('volume', 1, 4, [8, 20, 20], [2, 3, 3], 2, 1)
case('col2im_overlap_add', 'Col2Im', [x(1, 512, 251), ints([1, 32512]), ints([1, 512])], strides=[1, 128])
# ---- regions --------------------------------------------------------------------------------------------------------------------


def regions(name, batch, channels, height, width, count, bins, **attributes):
    corners = np.sort(np.random.RandomState(1).uniform(0, 1, (count, 2, 2)), 1) * [width - 1, height - 1]
    case('roi_align_' + name, 'RoiAlign', [x(batch, channels, height, width), Feed(corners.reshape(count, 4).astype(F32)), ints([i % batch for i in range(count)])],
         output_height=bins, output_width=bins, **attributes)


regions('adaptive', 1, 256, 50, 50, 50, 7, sampling_ratio=0)
regions('adaptive_max', 1, 256, 50, 50, 50, 7, sampling_ratio=0, mode='max')
regions('pyramid', 1, 64, 100, 152, 100, 14, sampling_ratio=2)
regions('few_max', 1, 64, 50, 50, 13, 7, sampling_ratio=2, mode='max')
regions('one', 1, 64, 50, 50, 1, 7, sampling_ratio=2)
regions('odd', 2, 30, 33, 35, 20, 5, sampling_ratio=2)
regions('odd_max', 2, 30, 33, 35, 20, 5, sampling_ratio=2, mode='max')
# ---- rows of blocks -------------------------------------------------------------------------------------------------------------


def embedding(name, rows, size, bits, zero, *ids):
    blocks = -(-size // 32)
    more = [of(U8, rows, -(-blocks * bits // 8), high=255).array] if zero else []
    case('gather_block_' + name, 'GatherBlockQuantized', [of(U8, rows, size * bits // 8, high=255).array, indices(ids, rows), np.abs(w(rows, blocks))] + more,
         bits=bits, block_size=32, quantize_axis=1, **MS)


embedding('4_bits', 30000, 768, 4, False, 1, 128)
embedding('4_bits_zero', 30000, 768, 4, True, 1, 128)
embedding('8_bits_one', 30000, 1024, 8, False, 1, 1)
embedding('2_bits_odd', 5000, 100, 2, True, 3, 33)
# ---- convolutions with weights of the run ---------------------------------------------------------------------------------------
for name, data, weights, rest in (('s2', (1, 64, 56, 56), (128, 64, 3, 3), dict(strides=[2, 2])), ('1d', (1, 32, 400), (64, 32, 5), dict(pads=[2, 2])),
                                  ('3d', (1, 16, 8, 12, 12), (32, 16, 3, 3, 3), dict(pads=[1] * 6)), ('4x4', (1, 64, 4, 4), (64, 64, 3, 3), dict(pads=[1] * 4)),
                                  ('7x7', (1, 512, 7, 7), (512, 512, 3, 3), dict(pads=[1] * 4)), ('5x5', (4, 32, 14, 14), (64, 32, 5, 5), dict(pads=[2] * 4)),
                                  ('odd', (1, 24, 40, 40), (24, 24, 3, 3), dict(pads=[1] * 4)), ('row', (1, 512, 3, 4), (512, 512, 3, 3), {})):
    case('conv_fed_' + name, 'Conv', [x(*data), x(*weights)], **rest)
