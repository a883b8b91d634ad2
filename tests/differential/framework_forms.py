"""More cases of framework_peer.py: quantised, 16-bit, old and new forms of a model, control flow, empty and odd tensors."""
import os
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from framework_models import CASES, F32, I32, I64, MICROSOFT, Graph, case, conv, floats, kind, linear, listed, numbers, variants

FOLDER = os.path.join(tempfile.gettempdir(), 'berth_framework_forms')


# ---- quantised by ONNX Runtime's own tools

def small_network():
    g = Graph(20)
    x = g.input('x', ['n', 3, 12, 12])
    y = conv(g, x, 3, 8)
    z = conv(g, y, 8, 8, 3, None, group=8)
    y = g.add('Relu', g.add('Add', y, z))
    y = g.add('Concat', g.add('MaxPool', y, kernel_shape=[2, 2], strides=[2, 2]), g.add('AveragePool', z, kernel_shape=[2, 2], strides=[2, 2]), axis=1)
    y = g.add('Mul', y, g.add('Sigmoid', y))
    y = g.add('Resize', y, '', np.array([1, 1, 2, 2], F32), mode='nearest')
    y = conv(g, g.add('Pad', y, g.ints(0, 0, 1, 0, 0, 0, 0, 1), np.array(0, F32)), 16, 6, 3, 'LeakyRelu', strides=[2, 2], pads=[0] * 4)
    y = g.add('Reshape', g.add('GlobalAveragePool', y), g.ints(0, -1))
    y = g.add('Gemm', y, g.weight(9, 6), g.weight(9), transB=1)
    y = g.add('Softmax', g.add('Add', g.add('MatMul', g.add('Tanh', y), g.weight(9, 5)), g.weight(5)), axis=-1)
    g.output(y, shape=['n', 5])
    return g.model(13), [{'x': floats(i, n, 3, 12, 12)} for i, n in enumerate((1, 2, 1))]


def quantised(form, activation='QUInt8', weight='QInt8', **options):
    from onnxruntime import quantization as q
    os.makedirs(FOLDER, exist_ok=True)
    model, feeds = small_network()
    source, made = os.path.join(FOLDER, 'float.onnx'), os.path.join(FOLDER, 'made_%d.onnx' % os.getpid())
    onnx.save(model, source)
    if form == 'dynamic':
        q.quantize_dynamic(source, made, weight_type=getattr(q.QuantType, weight), **options)
    else:
        class Reader(q.CalibrationDataReader):
            def __init__(self):
                self.left = list(feeds)

            def get_next(self):
                return self.left.pop(0) if self.left else None
        extra = options.pop('extra', {})
        q.quantize_static(source, made, Reader(), quant_format=getattr(q.QuantFormat, form), activation_type=getattr(q.QuantType, activation),
                          weight_type=getattr(q.QuantType, weight), extra_options=extra, **options)
    return onnx.load(made), feeds


for _form in ('QDQ', 'QOperator'):
    for _a, _w in (('QUInt8', 'QInt8'), ('QUInt8', 'QUInt8'), ('QInt8', 'QInt8')):
        for _c in (False, True):
            for _r in (False, True):
                CASES['quant_%s_%s_%s%s%s' % (_form, _a[1:].lower(), _w[1:].lower(), '_channel' * _c, '_reduced' * _r)] = (
                    lambda f=_form, a=_a, w=_w, c=_c, r=_r: quantised(f, a, w, per_channel=c, reduce_range=r))
for _w in ('QInt8', 'QUInt8'):
    for _c in (False, True):
        CASES['quant_dynamic_%s%s' % (_w[1:].lower(), '_channel' * _c)] = lambda w=_w, c=_c: quantised('dynamic', weight=w, per_channel=c)
CASES['quant_QDQ_16'] = lambda: quantised('QDQ', 'QUInt16', 'QInt8')
CASES['quant_QDQ_s16'] = lambda: quantised('QDQ', 'QInt16', 'QInt8', extra={'ActivationSymmetric': True})
CASES['quant_QDQ_symmetric'] = lambda: quantised('QDQ', 'QInt8', 'QInt8', extra={'ActivationSymmetric': True, 'WeightSymmetric': True, 'QuantizeBias': False})
CASES['quant_QDQ_dedicated'] = lambda: quantised('QDQ', 'QUInt8', 'QInt8', extra={'DedicatedQDQPair': True, 'AddQDQPairToWeight': True})


@case
def quant_lstm_dynamic():
    """DynamicQuantizeLSTM and MatMulInteger, as quantize_dynamic writes them."""
    from onnxruntime import quantization as q
    from framework_models import recurrent
    os.makedirs(FOLDER, exist_ok=True)
    g = Graph(21)
    x = g.input('x', [5, 2, 6])
    y = recurrent(g, 'LSTM', x, 6, 8, 'bidirectional', state=False)
    z = g.add('Reshape', g.add('Transpose', y[0], perm=[0, 2, 1, 3]), g.ints(5, 2, 16))
    g.output(g.add('MatMul', z, g.weight(16, 3)))
    source, made = os.path.join(FOLDER, 'lstm.onnx'), os.path.join(FOLDER, 'lstm_made.onnx')
    onnx.save(g.model(13), source)
    q.quantize_dynamic(source, made, weight_type=q.QuantType.QInt8, reduce_range=True)  # else ONNX Runtime saturates on AVX2
    return onnx.load(made), [{'x': floats(3, 5, 2, 6)}]


@case
def quant_matmul_4bits():
    """MatMulNBits with zero points, as the 4-bit tool writes it."""
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
    g = Graph(22)
    x = g.input('x', ['b', 'n', 64])
    y = g.add('Relu', g.add('MatMul', x, g.weight(64, 48)))
    g.output(g.add('MatMul', y, g.weight(48, 20)))
    tool = MatMulNBitsQuantizer(g.model(18, 9), block_size=32, is_symmetric=False)
    tool.process()
    return tool.model.model, [{'x': floats(1, 1, 3, 64)}, {'x': floats(2, 2, 1, 64)}]


@case
def quant_blocked():
    """DequantizeLinear in blocks (opset 21), of int4, uint4, int8 and per axis; 16-bit outputs."""
    g = Graph(23)
    x = g.input('x', [3, 32])
    for dtype, low, high in ((TensorProto.INT4, -8, 8), (TensorProto.UINT4, 0, 16), (TensorProto.INT8, -128, 128)):
        name, zero = g.name('q'), g.name('z')
        g.initializers.append(helper.make_tensor(name, dtype, [32, 6], numbers(1, low, high, (192,), I32)))
        g.initializers.append(helper.make_tensor(zero, dtype, [4, 6], numbers(2, max(low, 0), 8, (24,), I32)))
        g.output(g.add('MatMul', x, g.add('DequantizeLinear', name, g.const(np.abs(g.weight(4, 6)) + F32(0.01)), zero, axis=0, block_size=8)))
    s = np.abs(g.weight(3, 4, scale=0.1)) + F32(0.01)
    g.output(g.add('QuantizeLinear', x, s, g.const(numbers(3, -5, 5, (3, 4), np.int8)), axis=1, block_size=8), np.int8)
    g.output(g.add('QuantizeLinear', x, np.abs(g.weight(32, scale=0.1)) + F32(0.01), axis=-1, output_dtype=TensorProto.INT16), np.int16)
    return g.model(21, 10), [{'x': floats(1, 3, 32)}]


# ---- 16-bit floats

def halved(model, keep_io):
    """As converters do: f16 weights and values; casts at the ends where inputs stay f32."""
    for x in model.graph.initializer:
        if x.data_type == TensorProto.FLOAT and x.name not in kept_float(model):
            x.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(x).astype(np.float16), x.name))
    ends = list(model.graph.input) + list(model.graph.output)
    nodes = list(model.graph.node)
    del model.graph.node[:]
    for n in nodes:
        for a in n.attribute:
            if n.op_type == 'Cast' and a.name == 'to' and a.i == TensorProto.FLOAT:
                a.i = TensorProto.FLOAT16
            if n.op_type == 'ConstantOfShape' and a.t.data_type == TensorProto.FLOAT:
                a.t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(a.t).astype(np.float16)))
    before, after = [], []
    for x in ends:
        if x.type.tensor_type.elem_type != TensorProto.FLOAT:
            continue
        if not keep_io:
            x.type.tensor_type.elem_type = TensorProto.FLOAT16
            continue
        first = x in list(model.graph.input)
        for n in nodes:
            for names in (n.input,) if first else (n.input, n.output):
                for i, name in enumerate(names):
                    if name == x.name:
                        names[i] = x.name + '_f16'
        (before if first else after).append(helper.make_node('Cast', [x.name if first else x.name + '_f16'], [x.name + '_f16' if first else x.name],
                                                             to=TensorProto.FLOAT16 if first else TensorProto.FLOAT))
    model.graph.node.extend(before + nodes + after)
    return model


def kept_float(model):
    return {n.input[i] for n in model.graph.node if n.op_type == 'Resize' for i in (1, 2) if i < len(n.input)}


def half_case(name, keep_io):
    made = CASES[name]()
    feeds = made[1] if keep_io else [{k: v.astype(np.float16) if v.dtype == F32 else v for k, v in f.items()} for f in made[1]]
    return halved(made[0], keep_io), feeds


for _name in ('bert', 'gpt_causal', 'swin_window', 'unet_static', 'mobile_blocks'):
    CASES['f16_' + _name] = lambda name=_name: half_case(name, True)
    CASES['f16_all_' + _name] = lambda name=_name: half_case(name, False)


@case
def bf16_casts():
    """bfloat16 as storage: weights and values are cast around f32 arithmetic."""
    g = Graph(24)
    x = g.input('x', [4, 16])
    w = g.name('w')
    g.initializers.append(helper.make_tensor(w, TensorProto.BFLOAT16, [16, 8], g.weight(16, 8).ravel()))
    y = g.add('MatMul', g.add('Cast', g.add('Cast', x, to=TensorProto.BFLOAT16), to=TensorProto.FLOAT), g.add('Cast', w, to=TensorProto.FLOAT))
    g.output(g.add('Cast', g.add('Cast', y, to=TensorProto.BFLOAT16), to=TensorProto.FLOAT))
    return g.model(19, 9), [{'x': floats(1, 4, 16)}]


@case
def f8_casts():
    g = Graph(25)
    x = g.input('x', [8, 9])
    for t in (TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E5M2, TensorProto.FLOAT8E4M3FNUZ, TensorProto.FLOAT8E5M2FNUZ):
        g.output(g.add('Cast', g.add('Cast', x, to=t), to=TensorProto.FLOAT))
        g.output(g.add('Cast', g.add('Cast', x, to=t, saturate=0), to=TensorProto.FLOAT))
    values = floats(1, 8, 9, low=-500, high=500)
    values[0] = [0, -0.0, np.inf, -np.inf, np.nan, 1e-9, 1e9, -1e-3, 0.4375]
    return g.model(19, 9), [{'x': values}]


@case
def casts():
    """From and to each type, of values that fit both."""
    g = Graph(26)
    types = [F32, np.float64, np.float16, np.int8, np.int16, I32, I64, np.uint8, np.uint16, np.uint32, np.uint64, np.bool_]
    feed = {}
    for i, a in enumerate(types):
        feed[g.input('x%d' % i, [2, 3], a)] = np.array([[0, 1, 2], [100, 7, 3]]).astype(a)
        for b in types:
            g.output(g.add('Cast', 'x%d' % i, to=kind(b)), b)
    return g.model(13), [feed]


# ---- the same model in the forms of opsets

def opset_form(version):
    """Squeeze, Unsqueeze, ReduceSum, Softmax, Dropout, Clip, Slice, Pad, Upsample or Resize, TopK, Split, BatchNormalization."""
    g = Graph(27)
    x = g.input('x', [2, 4, 6, 6])
    y = g.add('BatchNormalization', x, *(np.abs(g.weight(4, scale=1)) + F32(0.2) for _ in range(4)))
    if version >= 10:
        y = g.add('Slice', y, g.ints(1), g.ints(5), g.ints(3))
    else:
        y = g.add('Slice', y, starts=[1], ends=[5], axes=[3])
    y = g.add('Clip', y, np.array(-0.5, F32), np.array(2, F32)) if version >= 11 else g.add('Clip', y, min=-0.5, max=2.0)
    y = g.add('Pad', y, g.ints(0, 0, 1, 0, 0, 0, 0, 1), np.array(0.25, F32)) if version >= 11 else g.add('Pad', y, pads=[0, 0, 1, 0, 0, 0, 0, 1], value=0.25)
    if version >= 11:
        y = g.add('Resize', y, np.zeros(0, F32), np.array([1, 1, 2, 2], F32), mode='nearest', coordinate_transformation_mode='asymmetric', nearest_mode='floor')
    elif version >= 9:
        y = g.add('Resize' if version == 10 else 'Upsample', y, np.array([1, 1, 2, 2], F32), mode='nearest')
    else:
        y = g.add('Upsample', y, scales=[1.0, 1.0, 2.0, 2.0], mode='nearest')
    a, b = g.add('Split', y, g.ints(1, 3), axis=1, count=2) if version >= 13 else g.add('Split', y, split=[1, 3], axis=1, count=2)
    a = g.add('Squeeze', a, g.ints(1)) if version >= 13 else g.add('Squeeze', a, axes=[1])
    b = g.add('ReduceSum', b, g.ints(1), keepdims=0) if version >= 13 else g.add('ReduceSum', b, axes=[1], keepdims=0)
    b = g.add('ReduceMean', b, g.ints(-1)) if version >= 18 else g.add('ReduceMean', b, axes=[2 if version < 11 else -1])
    y = g.add('Dropout', g.add('Mul', a, b), *([np.array(0.3, F32), np.array(False)] if version >= 12 else []), **({} if version >= 12 else {'ratio': 0.3}))
    g.output(g.add('Softmax', y, axis=1))
    g.output(g.add('LogSoftmax', y))
    g.output(g.add('Hardmax', y))
    if version >= 10:
        values, at = g.add('TopK', y, g.ints(3), axis=1, count=2)
    else:
        values, at = g.add('TopK', y, k=3, axis=1, count=2)
    g.output(values)
    g.output(at, I64)
    y = g.add('Unsqueeze', y, g.ints(0, 4)) if version >= 13 else g.add('Unsqueeze', y, axes=[0, 4])
    g.output(g.add('Flatten', y, axis=2))
    g.output(g.add('ArgMax', y, axis=3, keepdims=0), I64)
    g.output(g.add('PRelu', g.add('Gather', y, np.array([1, 0], I64), axis=1), np.array(0.3, F32).reshape(1)))
    g.output(g.add('Cast', g.add('Expand', y, g.ints(2, 1, 1, 1, 1)) if version >= 8 else y, to=TensorProto.INT32), I32)
    return g.model(version, 3 if version < 9 else 8), [{'x': floats(1, 2, 4, 6, 6)}]


for _v in range(7, 24):
    CASES['opset_%d' % _v] = lambda v=_v: opset_form(v)


@case
def initializers_as_inputs():
    """Values for some of them in later sets, which `run` and `build` take and the other ways refuse (docs/vm.md)."""
    g = Graph(28)
    x = g.input('x', ['n', 4])
    w, b = g.const(g.weight(4, 3), 'W'), g.const(g.weight(3), 'B')
    g.input('W', [4, 3])
    g.input('B', [3])
    g.output(g.add('Relu', g.add('Gemm', x, w, b)))
    return g.model(9, 4), [{'x': floats(1, 2, 4)}, {'x': floats(2, 3, 4), 'W': floats(3, 4, 3)}, {'x': floats(2, 1, 4), 'B': floats(3, 3), 'W': floats(4, 4, 3)}]


@case
def external_data():
    g = Graph(29)
    x = g.input('x', ['n', 64])
    y = g.add('Relu', linear(g, x, 64, 300))
    g.output(linear(g, y, 300, 5))
    os.makedirs(os.path.join(FOLDER, 'external'), exist_ok=True)
    path = os.path.join(FOLDER, 'external', 'model.onnx')
    data = os.path.join(FOLDER, 'external', 'weights.bin')
    if os.path.exists(data):
        os.remove(data)
    onnx.save(g.model(), path, save_as_external_data=True, all_tensors_to_one_file=True, location='weights.bin', size_threshold=100)
    return path, [{'x': floats(1, 2, 64)}, {'x': floats(1, 1, 64)}]


@case
def local_functions():
    """Functions of the model: with attributes (given and by default), calling each other, with optional inputs, with an If inside."""
    g = Graph(30)
    x = g.input('x', ['n', 6])
    def node(op, ins, outs, domain='', **attrs):
        return helper.make_node(op, ins, outs, domain=domain, **attrs)
    def by_ref(n, name, ref, kind):
        a = n.attribute.add()
        a.name, a.ref_attr_name, a.type = name, ref, kind
        return n
    opsets = [helper.make_opsetid('', 17), helper.make_opsetid('mine', 1)]
    leaky = by_ref(node('LeakyRelu', ['a'], ['b']), 'alpha', 'slope', onnx.AttributeProto.FLOAT)
    total = by_ref(node('Softmax', ['b'], ['c']), 'axis', 'axis', onnx.AttributeProto.INT)
    g.functions.append(helper.make_function('mine', 'Act', ['a'], ['c'], [leaky, total], opsets, attributes=['axis'],
                                            attribute_protos=[helper.make_attribute('slope', 0.3)]))
    inner = [node('MatMul', ['x', 'w'], ['m']), node('Add', ['m', 'b'], ['s']), node('Act', ['s'], ['y'], 'mine', axis=1, slope=0.125), node('Act', ['m'], ['z'], 'mine', axis=0)]
    g.functions.append(helper.make_function('mine', 'Dense', ['x', 'w', 'b'], ['y', 'z'], inner, opsets))
    branch = lambda op: helper.make_graph([node(op, ['p'], ['q_' + op])], op, [], [helper.make_tensor_value_info('q_' + op, TensorProto.FLOAT, None)])
    choose = [node('ReduceSum', ['p'], ['t'], keepdims=0), node('Constant', [], ['zero'], value_float=0.0), node('Greater', ['t', 'zero'], ['c']),
              node('If', ['c'], ['q'], then_branch=branch('Neg'), else_branch=branch('Exp'))]
    g.functions.append(helper.make_function('mine', 'Choose', ['p'], ['q'], choose, opsets))
    y, z = g.add('Dense', x, g.weight(6, 5), g.weight(5), count=2, domain='mine')
    y2, z2 = g.add('Dense', y, g.weight(5, 4), g.weight(4), count=2, domain='mine')
    for o in (z, y2, z2):
        g.output(o)
    g.output(g.add('Choose', g.add('Sub', y2, np.array(0.3, F32)), domain='mine'))
    g.output(g.add('Choose', x, domain='mine'))
    return g.model(17, 8, [('mine', 1)]), [{'x': floats(i, n, 6)} for i, n in enumerate((1, 4, 2))]


# ---- empty, scalar, long

@case
def empty_tensors():
    """Extents of 0 by every way that a model may get there."""
    g = Graph(31)
    x = g.input('x', ['n', 4, 'm'])
    for op in ('Relu', 'Exp', 'Softmax'):
        g.output(g.add(op, x))
    g.output(g.add('Concat', x, x, axis=2))
    g.output(g.add('Transpose', x, perm=[2, 0, 1]))
    g.output(g.add('ReduceSum', x, g.ints(2), keepdims=0))
    g.output(g.add('ReduceSum', x, keepdims=0))
    g.output(g.add('ReduceProd', x, axes=[0], keepdims=1))
    g.output(g.add('MatMul', g.add('Transpose', x, perm=[0, 2, 1]), x))
    g.output(g.add('MatMul', x, g.add('Transpose', x, perm=[0, 2, 1])))
    g.output(g.add('Pad', x, g.ints(0, 1, 1, 1, 0, 0), np.array(2, F32)))
    g.output(g.add('Gather', x, np.zeros((0, 2), I64), axis=1))
    g.output(g.add('Slice', x, g.ints(2), g.ints(2), g.ints(1)))
    g.output(g.add('Shape', x), I64)
    g.output(g.add('Size', x), I64)
    g.output(g.add('Expand', g.add('Unsqueeze', x, g.ints(0)), g.ints(2, 1, 1, 1)))
    g.output(g.add('Tile', x, g.ints(2, 1, 3)))
    g.output(g.add('Where', g.add('Greater', x, np.array(0, F32)), x, np.array(1, F32)))
    g.output(g.add('NonZero', x), I64)
    g.output(g.add('CumSum', x, np.array(2, I64)))
    g.output(g.add('Cast', x, to=TensorProto.INT8), np.int8)
    g.output(g.add('Split', x, axis=1, count=2)[1])
    g.output(g.add('ScatterND', x, np.zeros((0, 1), I64), g.add('Slice', x, g.ints(0), g.ints(0), g.ints(0))))
    g.output(g.add('LayerNormalization', g.add('Transpose', x, perm=[0, 2, 1]), g.weight(4)))
    g.output(g.add('Add', x, np.ones((4, 1), F32)))
    g.output(g.add('Flatten', x, axis=2))
    return g.model(17), [{'x': floats(1, 2, 4, 3)}, {'x': floats(1, 0, 4, 3)}, {'x': floats(1, 2, 4, 0)}, {'x': floats(1, 1, 4, 1)}]


@case
def scalars():
    g = Graph(32)
    a, b, i, t = g.input('a', []), g.input('b', [1]), g.input('i', [], I64), g.input('t', [3, 5])
    g.output(g.add('Add', a, b))
    g.output(g.add('Mul', a, a))
    g.output(g.add('Gather', t, i, axis=1))
    g.output(g.add('Gather', g.add('Gather', t, i), i))
    g.output(g.add('Reshape', b, np.zeros(0, I64)))
    g.output(g.add('Squeeze', b))
    g.output(g.add('Unsqueeze', a, g.ints(0, 1)))
    g.output(g.add('ReduceMax', t, keepdims=0))
    g.output(g.add('ReduceMax', a, keepdims=0))
    g.output(g.add('Shape', a), I64)
    g.output(g.add('Concat', b, g.add('Reshape', a, g.ints(1)), axis=0))
    g.output(g.add('Expand', a, g.ints(2, 3)))
    g.output(g.add('Range', np.array(0, I64), i, np.array(1, I64)), I64)
    g.output(g.add('OneHot', g.add('Reshape', i, g.ints(1)), np.array(4, I64), np.array([0, 1], F32)))
    g.output(g.add('Where', g.add('Less', a, b), a, t))
    g.output(g.add('Clip', t, g.add('Neg', a), a))
    g.output(g.add('Identity', a))
    g.output(g.add('ConstantOfShape', np.zeros(0, I64), value=numpy_helper.from_array(np.array([7], I32))), I32)
    g.output(g.add('TopK', t, g.add('Reshape', i, g.ints(1)), count=2)[0])
    g.output(g.add('Transpose', a))
    g.output(g.add('Flatten', b, axis=0))
    feeds = [{'a': np.float32(0.5), 'b': np.array([x], F32), 'i': np.array(n, I64), 't': floats(n, 3, 5)} for n, x in ((2, 3), (1, -1), (0, 0.5))]
    return g.model(13), [{k: np.asarray(v) for k, v in f.items()} for f in feeds]


@case
def long_vectors():
    g = Graph(33)
    x = g.input('x', ['n'])
    n = g.add('Shape', x)
    g.output(g.add('ReduceSum', x, keepdims=0))
    g.output(g.add('CumSum', x, np.array(0, I64), exclusive=1, reverse=1))
    g.output(g.add('ArgMax', x, axis=0), I64)
    g.output(g.add('TopK', x, g.ints(5), count=2)[1], I64)
    g.output(g.add('Slice', x, g.ints(-1), g.ints(-2 ** 63), g.ints(0), g.ints(-3)))
    g.output(g.add('Softmax', x, axis=0))
    g.output(g.add('Gather', x, g.ints(0, -1, 4), axis=0))
    g.output(g.add('Sub', g.add('ReduceMax', x), g.add('ReduceMin', x)))
    y = g.add('Reshape', x, g.ints(1, 1, -1))
    g.output(g.add('MaxPool', y, kernel_shape=[1000], strides=[333], ceil_mode=1))
    g.output(g.add('Conv', y, g.weight(2, 1, 101), strides=[7], pads=[50, 50]))
    g.output(g.add('Expand', np.array([1], I64), n), I64)
    return g.model(13), [{'x': floats(n, n)} for n in (1000, 300007, 4099)]


@case
def many_dimensions():
    g = Graph(34)
    x = g.input('x', [2, 1, 3, 1, 2, 2, 1, 2])
    g.output(g.add('Transpose', x, perm=[7, 0, 5, 2, 6, 4, 1, 3]))
    g.output(g.add('ReduceMean', x, axes=[0, 2, -1]))
    g.output(g.add('Add', x, floats(2, 1, 4, 1, 5, 2, 1, 3, 1)))
    g.output(g.add('Softmax', x, axis=4))
    g.output(g.add('Gather', x, np.array(1, I64), axis=4))
    g.output(g.add('Squeeze', x, g.ints(1, 3, 6)))
    g.output(g.add('Slice', x, g.ints(-1, 0), g.ints(-4, 2), g.ints(2, 5), g.ints(-1, 1)))
    return g.model(13), [{'x': floats(1, 2, 1, 3, 1, 2, 2, 1, 2)}]
