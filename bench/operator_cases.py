"""One-operator models at shapes of real models: the cases of compare_operators.py.

A case is (name, build): `build()` returns an onnx.ModelProto, its outputs without shapes, and {input name: array}. Weights are initializers, as in a trained
model; everything else is fed. `Feed` marks what is fed; plain arrays are initializers; None leaves an operand out.
"""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CASES = []


class Feed:
    def __init__(self, array):
        self.array = np.asarray(array)


def floats(*shape, seed=0):
    return np.random.RandomState(seed + sum(shape)).uniform(-1, 1, shape).astype(np.float32)


def x(*shape):
    return Feed(floats(*shape))


def w(*shape):
    return floats(*shape, seed=7) / np.float32(max(1, np.prod(shape[1:])) ** .5)


def ints(values):
    return np.array(values, np.int64)


def indices(count, extent):
    return Feed(np.random.RandomState(3).randint(0, extent, count).astype(np.int64))


def case(name, kind, operands, outputs=1, opset=18, domain='', result=TensorProto.FLOAT, **attrs):
    """Adds a model of one node `kind`; `operands` in order. `result`: element type of outputs that ONNX's inference cannot tell."""
    def build():
        feeds, initializers, names = {}, [], []
        for i, operand in enumerate(operands):
            names.append('' if operand is None else 'x%d' % i)
            if isinstance(operand, Feed):
                feeds['x%d' % i] = operand.array
            elif operand is not None:
                initializers.append(numpy_helper.from_array(np.asarray(operand), 'x%d' % i))
        results = ['y%d' % i for i in range(outputs)]
        node = helper.make_node(kind, names, results, name=name, domain=domain, **attrs)
        inputs = [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for k, a in feeds.items()]
        graph = helper.make_graph([node], name, inputs, [onnx.ValueInfoProto(name=r) for r in results], initializers)
        opsets = [helper.make_opsetid('', opset)] + [helper.make_opsetid(domain, 3 if domain == 'ai.onnx.ml' else 1)] * bool(domain)
        model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
        typed = onnx.shape_inference.infer_shapes(model, data_prop=True)
        for value in typed.graph.output:
            if not value.type.tensor_type.elem_type:  # inference knows no such operator
                value.type.tensor_type.elem_type = result
            value.type.tensor_type.ClearField('shape')
        return typed, feeds
    CASES.append((name, build))


# ---- convolutions -----------------------------------------------------------------------------------------------------------
case('conv_transpose_2x2_s2_ocr', 'ConvTranspose', [x(1, 24, 80, 80), w(24, 24, 2, 2), w(24)], strides=[2, 2])
case('conv_transpose_2x2_s2_to_1', 'ConvTranspose', [x(1, 24, 160, 160), w(24, 1, 2, 2), w(1)], strides=[2, 2])
case('conv_transpose_2x2_s2_unet', 'ConvTranspose', [x(1, 256, 32, 32), w(256, 128, 2, 2), w(128)], strides=[2, 2])
case('conv_transpose_4x4_s2_gan', 'ConvTranspose', [x(1, 128, 16, 16), w(128, 64, 4, 4)], strides=[2, 2], pads=[1, 1, 1, 1])
case('conv_transpose_3x3_s1', 'ConvTranspose', [x(1, 64, 28, 28), w(64, 64, 3, 3)], pads=[1, 1, 1, 1])
case('conv_transpose_3x3_s2', 'ConvTranspose', [x(1, 64, 28, 28), w(64, 32, 3, 3)], strides=[2, 2], pads=[1, 1, 1, 1],
     output_padding=[1, 1])
case('conv_transpose_depthwise', 'ConvTranspose', [x(1, 64, 32, 32), w(64, 1, 4, 4)], strides=[2, 2], pads=[1, 1, 1, 1], group=64)
case('conv_transpose_1d_vocoder', 'ConvTranspose', [x(1, 256, 100), w(256, 128, 16), w(128)], strides=[8], pads=[4, 4])
case('conv_transpose_1d_last', 'ConvTranspose', [x(1, 64, 3200), w(64, 32, 4), w(32)], strides=[2], pads=[1, 1])
case('conv_transpose_dilated', 'ConvTranspose', [x(1, 32, 28, 28), w(32, 32, 3, 3)], dilations=[2, 2], pads=[2, 2, 2, 2])
case('conv_9x9', 'Conv', [x(1, 64, 56, 56), w(64, 64, 9, 9)], pads=[4, 4, 4, 4])
case('conv_9x9_first', 'Conv', [x(1, 3, 112, 112), w(32, 3, 9, 9), w(32)], pads=[4, 4, 4, 4])
case('conv_9x9_last', 'Conv', [x(1, 32, 112, 112), w(3, 32, 9, 9), w(3)], pads=[4, 4, 4, 4])
case('conv_9x9_ocr', 'Conv', [x(1, 96, 80, 80), w(24, 96, 9, 9)], pads=[4, 4, 4, 4])
case('conv_16x16_s16_patches', 'Conv', [x(1, 3, 224, 224), w(384, 3, 16, 16), w(384)], strides=[16, 16])
case('conv_3x3', 'Conv', [x(1, 64, 56, 56), w(64, 64, 3, 3), w(64)], pads=[1, 1, 1, 1])
case('conv_3x3_s2', 'Conv', [x(1, 64, 56, 56), w(128, 64, 3, 3), w(128)], strides=[2, 2], pads=[1, 1, 1, 1])
case('conv_3x3_odd_channels', 'Conv', [x(1, 30, 40, 40), w(50, 30, 3, 3), w(50)], pads=[1, 1, 1, 1])
case('conv_1x1', 'Conv', [x(1, 256, 28, 28), w(128, 256, 1, 1), w(128)])
case('conv_1x1_few_channels', 'Conv', [x(1, 24, 80, 80), w(96, 24, 1, 1), w(96)])
case('conv_5x1', 'Conv', [x(1, 128, 17, 17), w(128, 128, 7, 1), w(128)], pads=[3, 0, 3, 0])
case('conv_dilated_2', 'Conv', [x(1, 64, 32, 32), w(64, 64, 3, 3)], dilations=[2, 2], pads=[2, 2, 2, 2])
case('conv_dilated_12', 'Conv', [x(1, 128, 33, 33), w(64, 128, 3, 3)], dilations=[12, 12], pads=[12, 12, 12, 12])
case('conv_grouped_32', 'Conv', [x(1, 128, 28, 28), w(128, 4, 3, 3)], pads=[1, 1, 1, 1], group=32)
case('conv_grouped_8', 'Conv', [x(1, 128, 28, 28), w(128, 16, 1, 1)], group=8)
case('conv_grouped_3', 'Conv', [x(1, 240, 28, 28), w(240, 80, 1, 1)], group=3)
case('conv_depthwise_3x3', 'Conv', [x(1, 144, 56, 56), w(144, 1, 3, 3), w(144)], pads=[1, 1, 1, 1], group=144)
case('conv_depthwise_5x5_s2', 'Conv', [x(1, 96, 40, 40), w(96, 1, 5, 5), w(96)], pads=[2, 2, 2, 2], strides=[2, 2], group=96)
case('conv_depthwise_7x7', 'Conv', [x(1, 96, 56, 56), w(96, 1, 7, 7), w(96)], pads=[3, 3, 3, 3], group=96)
case('conv_depthwise_odd', 'Conv', [x(1, 30, 56, 56), w(30, 1, 3, 3), w(30)], pads=[1, 1, 1, 1], group=30)
case('conv_1d_first_whisper', 'Conv', [x(1, 80, 1500), w(256, 80, 3), w(256)], pads=[1, 1])
case('conv_1d_wav2vec', 'Conv', [x(1, 1, 16000), w(256, 1, 10)], strides=[5])
case('conv_1d_mid', 'Conv', [x(1, 128, 400), w(128, 128, 5), w(128)], pads=[2, 2])
case('conv_1d_dilated', 'Conv', [x(1, 64, 1000), w(64, 64, 3), w(64)], pads=[8, 8], dilations=[8])
case('conv_1d_depthwise', 'Conv', [x(1, 256, 200), w(256, 1, 31), w(256)], pads=[15, 15], group=256)
case('conv_1d_vad', 'Conv', [x(1, 129, 4), w(128, 129, 3), w(128)], pads=[1, 1])
case('conv_1d_stft_basis', 'Conv', [x(1, 1, 640), w(258, 1, 256)], strides=[128])
case('conv_3d', 'Conv', [x(1, 16, 8, 28, 28), w(32, 16, 3, 3, 3), w(32)], pads=[1] * 6)
case('conv_3x3_batch_8', 'Conv', [x(8, 32, 28, 28), w(64, 32, 3, 3), w(64)], pads=[1, 1, 1, 1])
case('conv_fed_weights', 'Conv', [x(1, 64, 28, 28), x(64, 64, 3, 3)], pads=[1, 1, 1, 1])
case('conv_depthwise_fed_weights', 'Conv', [x(1, 64, 28, 28), x(64, 1, 3, 3)], pads=[1, 1, 1, 1], group=64)
case('conv_transpose_4x4_to_3', 'ConvTranspose', [x(1, 64, 56, 56), w(64, 3, 4, 4)], strides=[2, 2], pads=[1, 1, 1, 1])
case('conv_transpose_istft', 'ConvTranspose', [x(1, 514, 60), w(514, 1, 512)], strides=[128])
# ---- spectra ----------------------------------------------------------------------------------------------------------------
case('stft_512', 'STFT', [x(1, 16512), ints(160), floats(512), ints(512)])
case('stft_400_whisper', 'STFT', [x(1, 16400), ints(160), floats(400)])
case('stft_1024_no_window', 'STFT', [x(1, 32768), ints(256), None, ints(1024)])
case('stft_complex', 'STFT', [x(1, 8192, 2), ints(128), floats(256)], onesided=0)
case('dft_512_frames', 'DFT', [x(1, 100, 512, 1)], axis=2, onesided=1)
case('dft_512_complex', 'DFT', [x(1, 64, 512, 2)], axis=2)
case('dft_400_inverse', 'DFT', [x(1, 64, 400, 2)], axis=2, inverse=1)
case('dft_4096', 'DFT', [x(1, 4, 4096, 1)], axis=2, onesided=1)
case('dft_axis_1', 'DFT', [x(1, 256, 64, 1)], axis=1)
case('dft_prime', 'DFT', [x(1, 32, 509, 1)], axis=2)
# ---- recurrent --------------------------------------------------------------------------------------------------------------
case('lstm_vad_1', 'LSTM', [x(1, 1, 128), w(1, 512, 128), w(1, 512, 128), w(1, 1024), None, x(1, 1, 128), x(1, 1, 128)], 3,
     hidden_size=128)
case('lstm_128_seq_64', 'LSTM', [x(64, 1, 128), w(1, 512, 128), w(1, 512, 128), w(1, 1024)], 3, hidden_size=128)
case('lstm_bidirectional_ocr', 'LSTM', [x(40, 1, 256), w(2, 1024, 256), w(2, 1024, 256), w(2, 2048)], 3, hidden_size=256,
     direction='bidirectional')
case('lstm_batch_8', 'LSTM', [x(32, 8, 128), w(1, 1024, 128), w(1, 1024, 256), w(1, 2048)], 3, hidden_size=256)
case('lstm_reverse', 'LSTM', [x(30, 1, 64), w(1, 256, 64), w(1, 256, 64), w(1, 512)], 3, hidden_size=64, direction='reverse')
case('gru_nsnet', 'GRU', [x(100, 1, 400), w(1, 1200, 400), w(1, 1200, 400), w(1, 2400)], 2, hidden_size=400,
     linear_before_reset=1)
case('gru_bidirectional', 'GRU', [x(50, 2, 128), w(2, 384, 128), w(2, 384, 128), w(2, 768)], 2, hidden_size=128,
     direction='bidirectional', linear_before_reset=1)
case('gru_reset_first', 'GRU', [x(50, 1, 128), w(1, 384, 128), w(1, 384, 128), w(1, 768)], 2, hidden_size=128)
case('rnn_tanh', 'RNN', [x(50, 1, 128), w(1, 128, 128), w(1, 128, 128), w(1, 256)], 2, hidden_size=128)
case('rnn_batch_16', 'RNN', [x(20, 16, 100), w(1, 150, 100), w(1, 150, 150), w(1, 300)], 2, hidden_size=150)
# ---- resize -----------------------------------------------------------------------------------------------------------------
SCALES_2 = np.array([1, 1, 2, 2], np.float32)
HALF = np.array([1, 1, .5, .5], np.float32)
FPN = dict(coordinate_transformation_mode='asymmetric', nearest_mode='floor', mode='nearest')
case('resize_nearest_up_fpn', 'Resize', [x(1, 96, 40, 40), None, SCALES_2], **FPN)
case('resize_nearest_up_4', 'Resize', [x(1, 24, 40, 40), None, np.array([1, 1, 4, 4], np.float32)], **FPN)
case('resize_nearest_half_pixel', 'Resize', [x(1, 64, 40, 40), None, None, ints([1, 64, 67, 67])], mode='nearest')
case('resize_nearest_down', 'Resize', [x(1, 64, 80, 80), None, HALF], mode='nearest')
case('resize_linear_up', 'Resize', [x(1, 64, 40, 40), None, SCALES_2], mode='linear')
case('resize_linear_up_seg', 'Resize', [x(1, 21, 65, 65), None, None, ints([1, 21, 513, 513])], mode='linear',
     coordinate_transformation_mode='align_corners')
case('resize_linear_down', 'Resize', [x(1, 3, 480, 640), None, None, ints([1, 3, 224, 224])], mode='linear')
case('resize_linear_antialias', 'Resize', [x(1, 3, 480, 640), None, None, ints([1, 3, 224, 224])], mode='linear', antialias=1)
case('resize_cubic_up', 'Resize', [x(1, 3, 112, 112), None, SCALES_2], mode='cubic')
case('resize_cubic_down', 'Resize', [x(1, 3, 224, 224), None, HALF], mode='cubic')
case('resize_linear_1d', 'Resize', [x(1, 64, 500), None, np.array([1, 1, 2], np.float32)], mode='linear')
case('upsample_nearest_1d', 'Resize', [x(1, 64, 500), None, np.array([1, 1, 2], np.float32)], **FPN)
case('grid_sample_bilinear', 'GridSample', [x(1, 32, 64, 64), x(1, 64, 64, 2)])
case('roi_align', 'RoiAlign', [x(1, 256, 50, 50), Feed(np.sort(np.random.RandomState(1).uniform(0, 49, (50, 2, 2)), 1).reshape(50, 4)
                                                       .astype(np.float32)), ints([0] * 50)], output_height=7, output_width=7,
     sampling_ratio=2, spatial_scale=1.0)
# ---- addressing by data -----------------------------------------------------------------------------------------------------
case('gather_embedding', 'Gather', [w(30522, 384), indices((1, 128), 30522)])
case('gather_rows_wide', 'Gather', [x(1000, 256), indices((300,), 1000)])
case('gather_axis_1', 'Gather', [x(1, 1000, 64), indices((500,), 1000)], axis=1)
case('gather_last_axis', 'Gather', [x(512, 400), indices((100,), 400)], axis=1)
case('gather_scalars', 'Gather', [x(10000), indices((5000,), 10000)])
case('gather_elements', 'GatherElements', [x(1, 300, 256), indices((1, 300, 100), 256)], axis=2)
case('gather_nd_rows', 'GatherND', [x(100, 50, 64), Feed(np.random.RandomState(5).randint(0, 50, (500, 2)).astype(np.int64))])
case('gather_nd_scalars', 'GatherND', [x(100, 100), Feed(np.random.RandomState(5).randint(0, 100, (3000, 2)).astype(np.int64))])
case('scatter_nd_rows', 'ScatterND', [x(1000, 64), Feed(np.random.RandomState(5).permutation(1000)[:200].reshape(200, 1).astype(np.int64)),
                                      x(200, 64)])
case('scatter_nd_scalars', 'ScatterND', [x(200, 200), Feed(np.stack(np.unravel_index(np.random.RandomState(5).permutation(40000)[:5000],
                                                                                    (200, 200)), 1).astype(np.int64)), x(5000)])
case('scatter_elements', 'ScatterElements', [x(300, 256), indices((100, 256), 300), x(100, 256)], axis=0)
case('scatter_elements_add', 'ScatterElements', [x(3000, 64), indices((4000, 64), 3000), x(4000, 64)], axis=0, reduction='add')
case('one_hot', 'OneHot', [indices((1, 512), 1000), ints(1000), np.array([0, 1], np.float32)])
case('topk_5_of_1000', 'TopK', [x(1, 1000), ints([5])], 2)
case('topk_5_of_1000_batch', 'TopK', [x(64, 1000), ints([5])], 2)
case('topk_300_of_8400', 'TopK', [x(1, 8400), ints([300])], 2)
case('topk_1000_of_20000', 'TopK', [x(1, 20000), ints([1000])], 2)
case('topk_sort_1000', 'TopK', [x(8, 1000), ints([1000])], 2)
case('topk_1_vocabulary', 'TopK', [x(4, 50000), ints([1])], 2)
case('topk_axis_1', 'TopK', [x(1, 80, 400), ints([10])], 2, axis=1)
case('argmax_vocabulary', 'ArgMax', [x(40, 6625)], axis=-1, keepdims=0)
case('argmax_channels', 'ArgMax', [x(1, 21, 128, 128)], axis=1)
case('argmax_wide', 'ArgMax', [x(1, 151936)], axis=-1)
case('argmin_int64', 'ArgMin', [Feed(np.random.RandomState(1).randint(-9, 9, (64, 512)).astype(np.int64))], axis=-1)
case('cumsum_last', 'CumSum', [x(64, 1000), ints(1)])
case('cumsum_first', 'CumSum', [x(1000, 64), ints(0)])
case('cumsum_int64', 'CumSum', [Feed(np.random.RandomState(1).randint(0, 2, (8, 512)).astype(np.int64)), ints(1)])
case('nonmax_like_compare', 'Greater', [x(1, 80, 8400), np.float32([.5])])
# ---- reductions -------------------------------------------------------------------------------------------------------------
for mode, kind in (('sum', 'ReduceSum'), ('mean', 'ReduceMean'), ('max', 'ReduceMax')):
    case('reduce_%s_last' % mode, kind, [x(512, 768), ints([1])])
    case('reduce_%s_first' % mode, kind, [x(512, 768), ints([0])])
    case('reduce_%s_middle' % mode, kind, [x(8, 128, 384), ints([1])])
    case('reduce_%s_spatial' % mode, kind, [x(1, 256, 28, 28), ints([2, 3])])
    case('reduce_%s_channels' % mode, kind, [x(1, 256, 28, 28), ints([1])])
    case('reduce_%s_outer_and_inner' % mode, kind, [x(32, 64, 128), ints([0, 2])])
    case('reduce_%s_all' % mode, kind, [x(64, 64, 64), ints([0, 1, 2])])
case('reduce_l2_last', 'ReduceL2', [x(512, 256), ints([1])])
case('reduce_prod_last', 'ReduceProd', [x(512, 256), ints([1])])
case('reduce_log_sum_exp', 'ReduceLogSumExp', [x(128, 1000), ints([1])])
case('reduce_sum_int64', 'ReduceSum', [Feed(np.random.RandomState(1).randint(0, 9, (256, 512)).astype(np.int64)), ints([1])])
case('reduce_short_rows', 'ReduceSum', [x(20000, 4), ints([1])])
# ---- movement ---------------------------------------------------------------------------------------------------------------
case('transpose_2d', 'Transpose', [x(768, 768)], perm=[1, 0])
case('transpose_nchw_to_nhwc', 'Transpose', [x(1, 64, 56, 56)], perm=[0, 2, 3, 1])
case('transpose_nhwc_to_nchw', 'Transpose', [x(1, 224, 224, 3)], perm=[0, 3, 1, 2])
case('transpose_heads', 'Transpose', [x(1, 128, 12, 64)], perm=[0, 2, 1, 3])
case('transpose_keys', 'Transpose', [x(1, 128, 12, 64)], perm=[0, 2, 3, 1])
case('transpose_last_two', 'Transpose', [x(12, 128, 64)], perm=[0, 2, 1])
case('transpose_outer', 'Transpose', [x(40, 1, 6625)], perm=[1, 0, 2])
case('transpose_6d_window', 'Transpose', [x(1, 8, 7, 8, 7, 96)], perm=[0, 1, 3, 2, 4, 5])
case('transpose_reverse_4d', 'Transpose', [x(8, 24, 32, 40)], perm=[3, 2, 1, 0])
case('transpose_detections', 'Transpose', [x(1, 84, 8400)], perm=[0, 2, 1])
case('transpose_int64', 'Transpose', [Feed(np.arange(300 * 400, dtype=np.int64).reshape(300, 400))], perm=[1, 0])
case('transpose_uint8_image', 'Transpose', [Feed((np.arange(480 * 640 * 3) % 251).astype(np.uint8).reshape(1, 480, 640, 3))], perm=[0, 3, 1, 2])
case('depth_to_space', 'DepthToSpace', [x(1, 36, 112, 112)], blocksize=2, mode='CRD')
case('space_to_depth', 'SpaceToDepth', [x(1, 3, 224, 224)], blocksize=2)
case('pad_constant', 'Pad', [x(1, 64, 56, 56), ints([0, 0, 1, 1, 0, 0, 1, 1])])
case('pad_reflect', 'Pad', [x(1, 32, 64, 64), ints([0, 0, 3, 3, 0, 0, 3, 3])], mode='reflect')
case('pad_reflect_wave', 'Pad', [x(1, 16000), ints([0, 256, 0, 256])], mode='reflect')
case('pad_edge', 'Pad', [x(1, 32, 64, 64), ints([0, 0, 2, 2, 0, 0, 2, 2])], mode='edge')
case('pad_channels', 'Pad', [x(1, 30, 56, 56), ints([0, 1, 0, 0, 0, 1, 0, 0])])
case('concat_channels', 'Concat', [x(1, 64, 40, 40), x(1, 128, 40, 40)], axis=1)
case('concat_last', 'Concat', [x(400, 64), x(400, 32)], axis=1)
case('concat_cache', 'Concat', [x(1, 12, 127, 64), x(1, 12, 1, 64)], axis=2)
case('concat_narrow', 'Concat', [x(8400, 2), x(8400, 2), x(8400, 1)], axis=1)
case('split_last', 'Split', [x(128, 2304), ints([768, 768, 768])], 3, axis=1)
case('split_channels', 'Split', [x(1, 128, 40, 40), ints([64, 64])], 2, axis=1)
case('slice_rows', 'Slice', [x(1, 64, 80, 80), ints([0, 0]), ints([40, 80]), ints([2, 3])])
case('slice_step', 'Slice', [x(1, 3, 320, 320), ints([0, 1]), ints([320, 320]), ints([2, 3]), ints([2, 2])])
case('slice_last', 'Slice', [x(8400, 85), ints([5]), ints([85]), ints([1])])
case('slice_reverse', 'Slice', [x(512, 512), ints([-1]), ints([-1000]), ints([1]), ints([-1])])
case('tile', 'Tile', [x(1, 1, 128, 64), ints([1, 12, 1, 1])])
case('tile_rows', 'Tile', [x(64, 64), ints([8, 8])])
case('expand', 'Expand', [x(1, 1, 1, 512), ints([1, 12, 128, 512])])
case('expand_last', 'Expand', [x(512, 1), ints([512, 512])])
case('trilu', 'Trilu', [x(12, 256, 256)], upper=0)
case('reverse_sequence', 'ReverseSequence', [x(100, 4, 64), ints([100, 80, 50, 7])])
# ---- elementwise ------------------------------------------------------------------------------------------------------------
case('add_same', 'Add', [x(1, 64, 56, 56), x(1, 64, 56, 56)])
case('add_bias_last', 'Add', [x(128, 768), w(768).ravel()])
case('add_channels', 'Add', [x(1, 256, 28, 28), Feed(floats(1, 256, 1, 1))])
case('mul_spatial_mask', 'Mul', [x(1, 256, 28, 28), x(1, 1, 28, 28)])
case('add_both_ways', 'Add', [x(512, 1), x(1, 512)])
case('add_attention_mask', 'Add', [x(1, 12, 128, 128), x(1, 1, 1, 128)])
case('sub_rows', 'Sub', [x(512, 768), x(512, 1)])
case('div_same', 'Div', [x(512, 768), Feed(np.abs(floats(512, 768)) + 1)])
case('mul_scalar', 'Mul', [x(512, 768), np.float32(.125)])
case('where_same', 'Where', [Feed(floats(512, 768) > 0), x(512, 768), x(512, 768)])
case('where_mask', 'Where', [Feed(floats(1, 1, 128, 128) > 0), x(1, 12, 128, 128), np.float32(-1e9)])
case('equal_int64', 'Equal', [Feed(np.arange(65536, dtype=np.int64) % 5), ints(3)])
case('cast_f32_i64', 'Cast', [x(512, 512)], to=TensorProto.INT64)
case('cast_u8_f32', 'Cast', [Feed(np.arange(480 * 640 * 3, dtype=np.int64).astype(np.uint8).reshape(1, 480, 640, 3))], to=TensorProto.FLOAT)
case('cast_i64_f32', 'Cast', [Feed(np.arange(512 * 512, dtype=np.int64).reshape(512, 512))], to=TensorProto.FLOAT)
case('cast_f32_f16', 'Cast', [x(512, 512)], to=TensorProto.FLOAT16)
case('add_int64', 'Add', [Feed(np.arange(65536, dtype=np.int64)), Feed(np.arange(65536, dtype=np.int64))])
for kind in ('Relu', 'Sigmoid', 'Tanh', 'Exp', 'Log', 'Sqrt', 'Erf', 'Sin', 'Cos', 'HardSwish', 'HardSigmoid', 'Softplus', 'Elu', 'Floor',
             'Reciprocal', 'Abs', 'LeakyRelu', 'Selu', 'Mish', 'Round', 'Sign'):
    case('unary_%s' % kind.lower(), kind, [Feed(np.abs(floats(256, 768)) + np.float32(.1)) if kind in ('Log', 'Sqrt') else x(256, 768)])
case('unary_gelu', 'Gelu', [x(256, 768)], opset=20)
case('clip_0_6', 'Clip', [x(1, 96, 56, 56), np.float32(0), np.float32(6)])
case('pow_2', 'Pow', [x(512, 768), np.float32(2)])
case('pow_3', 'Pow', [x(512, 768), np.float32(3)])
case('pow_half', 'Pow', [Feed(np.abs(floats(512, 768)) + 1), np.float32(.3)])
case('mod_int64', 'Mod', [Feed(np.arange(65536, dtype=np.int64)), ints(7)])
case('prelu_channels', 'PRelu', [x(1, 64, 56, 56), w(64, 1, 1)])
case('max_of_two', 'Max', [x(512, 768), x(512, 768)])
case('quantize', 'QuantizeLinear', [x(1, 64, 56, 56), np.float32(.01), np.uint8(128)])
case('dequantize', 'DequantizeLinear', [Feed((np.arange(64 * 56 * 56) % 256).astype(np.uint8).reshape(1, 64, 56, 56)), np.float32(.01), np.uint8(128)])
case('dequantize_channels', 'DequantizeLinear', [Feed((np.arange(64 * 56 * 56) % 256).astype(np.uint8).reshape(1, 64, 56, 56)), np.abs(w(64).ravel()),
                                                 np.zeros(64, np.uint8)], axis=1)
# ---- normalisations ---------------------------------------------------------------------------------------------------------
case('softmax_attention', 'Softmax', [x(1, 12, 128, 128)], axis=-1)
case('softmax_classes', 'Softmax', [x(40, 6625)], axis=-1)
case('softmax_channels', 'Softmax', [x(1, 21, 128, 128)], axis=1)
case('softmax_first', 'Softmax', [x(128, 512)], axis=0)
case('softmax_middle', 'Softmax', [x(8, 64, 128)], axis=1)
case('softmax_short_rows', 'Softmax', [x(1, 8400, 4, 16)], axis=3)
case('softmax_pairs', 'Softmax', [x(1, 4420, 2)], axis=2)
case('softmax_odd', 'Softmax', [x(12, 197, 197)], axis=-1)
case('log_softmax', 'LogSoftmax', [x(64, 1000)], axis=-1)
case('layer_norm_768', 'LayerNormalization', [x(1, 128, 768), w(768).ravel(), w(768).ravel()])
case('layer_norm_96', 'LayerNormalization', [x(3136, 96), w(96).ravel(), w(96).ravel()])
case('layer_norm_40', 'LayerNormalization', [x(1000, 40), w(40).ravel(), w(40).ravel()])
case('instance_norm', 'InstanceNormalization', [x(1, 64, 64, 64), w(64).ravel(), w(64).ravel()])
case('instance_norm_1d', 'InstanceNormalization', [x(1, 80, 1000), w(80).ravel(), w(80).ravel()])
case('group_norm', 'GroupNormalization', [x(1, 64, 32, 32), w(64).ravel(), w(64).ravel()], num_groups=8, opset=21)
case('batch_norm', 'BatchNormalization', [x(1, 64, 56, 56), w(64).ravel(), w(64).ravel(), w(64).ravel(), np.abs(w(64).ravel())])
case('lrn', 'LRN', [x(1, 64, 56, 56)], size=5)
case('lp_norm', 'LpNormalization', [x(64, 512)], axis=-1)
# ---- matrices ---------------------------------------------------------------------------------------------------------------
case('matmul_weights', 'MatMul', [x(128, 768), w(768, 768)])
case('matmul_one_row', 'MatMul', [x(1, 768), w(768, 3072)])
case('matmul_vector', 'MatMul', [x(768), w(768, 768)])
case('matmul_two_rows', 'MatMul', [x(2, 512), w(512, 2000)])
case('matmul_one_column', 'MatMul', [x(4096, 256), w(256, 1)])
case('matmul_few_columns', 'MatMul', [x(1000, 256), w(256, 10)])
case('matmul_few_columns_fed', 'MatMul', [x(300, 256), x(256, 7)])
case('matmul_odd', 'MatMul', [x(65, 100), w(100, 130)])
case('matmul_small_k', 'MatMul', [x(4096, 8), w(8, 64)])
case('matmul_scores', 'MatMul', [x(1, 12, 128, 64), x(1, 12, 64, 128)])
case('matmul_values', 'MatMul', [x(1, 12, 128, 128), x(1, 12, 128, 64)])
case('matmul_decode', 'MatMul', [x(1, 12, 1, 64), x(1, 12, 64, 512)])
case('matmul_decode_values', 'MatMul', [x(1, 12, 1, 512), x(1, 12, 512, 64)])
case('matmul_batch_broadcast', 'MatMul', [x(16, 64, 64), x(64, 64)])
case('matmul_ocr_vocabulary', 'MatMul', [x(1, 40, 120), w(120, 6625)])
case('matmul_both_fed', 'MatMul', [x(256, 256), x(256, 256)])
case('gemm_trans_b_fed', 'Gemm', [x(128, 256), x(200, 256)], transB=1)
case('gemm_trans_a_fed', 'Gemm', [x(256, 128), x(256, 200)], transA=1)
case('gemm_bias', 'Gemm', [x(1, 2048), w(1000, 2048), w(1000).ravel()], transB=1)
case('einsum_scores', 'Einsum', [x(1, 12, 128, 64), x(1, 12, 128, 64)], equation='bhid,bhjd->bhij')
case('einsum_values', 'Einsum', [x(1, 12, 128, 128), x(1, 12, 128, 64)], equation='bhij,bhjd->bhid')
case('einsum_heads', 'Einsum', [x(1, 128, 12, 64), x(12, 64, 256)], equation='blhd,hde->ble')
case('einsum_outer', 'Einsum', [x(64), x(512)], equation='i,j->ij')
case('einsum_diagonal_sum', 'Einsum', [x(64, 64, 64)], equation='bii->b')
# ---- pools ------------------------------------------------------------------------------------------------------------------
case('max_pool_2x2', 'MaxPool', [x(1, 64, 56, 56)], kernel_shape=[2, 2], strides=[2, 2])
case('max_pool_3x3_s2', 'MaxPool', [x(1, 64, 112, 112)], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
case('max_pool_5x5_sppf', 'MaxPool', [x(1, 128, 20, 20)], kernel_shape=[5, 5], pads=[2, 2, 2, 2])
case('max_pool_13x13', 'MaxPool', [x(1, 128, 20, 20)], kernel_shape=[13, 13], pads=[6, 6, 6, 6])
case('max_pool_one_channel', 'MaxPool', [x(1, 1, 300, 400)], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
case('max_pool_heat_map', 'MaxPool', [x(1, 1, 128, 128)], kernel_shape=[7, 7], pads=[3, 3, 3, 3])
case('max_pool_indices', 'MaxPool', [x(1, 64, 56, 56)], 2, kernel_shape=[2, 2], strides=[2, 2])
case('max_pool_1d', 'MaxPool', [x(1, 64, 1000)], kernel_shape=[3], strides=[2], pads=[1, 1])
case('average_pool_3x3', 'AveragePool', [x(1, 96, 28, 28)], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
case('average_pool_large', 'AveragePool', [x(1, 64, 56, 56)], kernel_shape=[14, 14], strides=[14, 14])
case('average_pool_25x25', 'AveragePool', [x(1, 32, 64, 64)], kernel_shape=[25, 25], strides=[5, 5])
case('average_pool_odd_channels', 'AveragePool', [x(1, 30, 56, 56)], kernel_shape=[3, 3], strides=[2, 2])
case('global_average_pool', 'GlobalAveragePool', [x(1, 512, 14, 14)])
case('global_max_pool', 'GlobalMaxPool', [x(1, 512, 14, 14)])
case('lp_pool', 'LpPool', [x(1, 32, 56, 56)], kernel_shape=[3, 3], strides=[2, 2])
