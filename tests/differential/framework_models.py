"""What framework_peer.py compares: small models in the forms in which frameworks and converters write them.

A case is a function that returns (model, [inputs, ...]): a ModelProto and one or more sets of inputs by name, which may differ in shape.
"""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CASES = {}
F32, I64, I32 = np.float32, np.int64, np.int32
MICROSOFT = 'com.microsoft'


def case(function):
    CASES[function.__name__] = function
    return function


def variants(**named):
    """One case per keyword: NAME_KEY, called with the value's entries as keywords."""
    def add(function):
        for key, options in named.items():
            CASES['%s_%s' % (function.__name__, key)] = lambda options=options: function(**options)
        return function
    return add


def kind(dtype):
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


class Graph:
    """A graph that is written from front to back. Arrays among the operands become initializers."""

    def __init__(self, seed=1):
        self.rng = np.random.RandomState(seed)
        self.nodes, self.inputs, self.outputs, self.initializers, self.infos, self.functions = [], [], [], [], [], []
        self.count = 0

    def name(self, prefix):
        self.count += 1
        return '%s_%d' % (prefix, self.count)

    def input(self, name, shape, dtype=F32):
        self.inputs.append(helper.make_tensor_value_info(name, kind(dtype), shape))
        return name

    def const(self, array, name=None):
        name = name or self.name('w')
        self.initializers.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def operand(self, value):
        return value if isinstance(value, str) else self.const(value)

    def weight(self, *shape, scale=None, dtype=F32):
        scale = scale if scale is not None else 1 / np.sqrt(max(1, int(np.prod(shape[1:]))))
        return (self.rng.uniform(-1, 1, shape) * scale).astype(dtype)

    def add(self, op, *operands, count=1, domain='', **attrs):
        names = [self.name(op.lower()) for _ in range(count)]
        self.nodes.append(helper.make_node(op, [self.operand(v) for v in operands], names, name='/%s_%d' % (op, len(self.nodes)),
                                           domain=domain, **attrs))
        return names[0] if count == 1 else names

    def ints(self, *values):
        return np.array(values, I64)

    def output(self, name, dtype=F32, shape=None):
        self.outputs.append(helper.make_tensor_value_info(name, kind(dtype), shape))

    def graph(self, name='g'):
        return helper.make_graph(self.nodes, name, self.inputs, self.outputs, self.initializers)

    def model(self, opset=17, ir=8, extra=()):
        opsets = [helper.make_opsetid('', opset)] + [helper.make_opsetid(d, v) for d, v in extra]
        return helper.make_model(self.graph(), opset_imports=opsets, ir_version=ir, functions=self.functions, producer_name='pytorch')


def body(build, captured=()):
    """A graph for a branch or a loop: build(graph) declares its inputs and outputs."""
    g = Graph(seed=3)
    g.count = 1000 + 1000 * len(captured)
    build(g)
    return g.graph('body')


def floats(seed, *shape, low=-1, high=1):
    return np.random.RandomState(seed).uniform(low, high, shape).astype(F32)


def numbers(seed, low, high, shape, dtype=I64):
    return np.random.RandomState(seed).randint(low, high, shape).astype(dtype)


# ---- transformers

def linear(g, x, n, m, bias=True):
    y = g.add('MatMul', x, g.weight(n, m))
    return g.add('Add', g.const(g.weight(m, scale=0.1)), y) if bias else y


def dim(g, x, axis):
    """Extent of an axis as PyTorch exports x.size(axis): Shape, Gather by a scalar."""
    return g.add('Gather', g.add('Shape', x), np.array(axis, I64), axis=0)


def listed(g, *values):
    parts = [g.add('Unsqueeze', v, g.ints(0)) if isinstance(v, str) else np.array([v], I64) for v in values]
    return g.add('Concat', *parts, axis=0)


def layer_norm_parts(g, x, width):
    mean = g.add('ReduceMean', x, axes=[-1], keepdims=1)
    d = g.add('Sub', x, mean)
    var = g.add('ReduceMean', g.add('Pow', d, np.array(2, F32)), axes=[-1], keepdims=1)
    y = g.add('Div', d, g.add('Sqrt', g.add('Add', var, np.array(1e-5, F32))))
    return g.add('Add', g.add('Mul', y, g.weight(width, scale=1)), g.weight(width, scale=0.1))


def heads_of(g, x, batch, length, heads, size):
    return g.add('Transpose', g.add('Reshape', x, listed(g, batch, length, heads, size)), perm=[0, 2, 1, 3])


def gelu_parts(g, x):
    y = g.add('Add', g.add('Erf', g.add('Div', x, np.array(np.sqrt(2), F32))), np.array(1, F32))
    return g.add('Mul', g.add('Mul', x, y), np.array(0.5, F32))


def encoder_layer(g, x, mask, width, heads):
    batch, length, size = dim(g, x, 0), dim(g, x, 1), width // heads
    q, k, v = (heads_of(g, linear(g, x, width, width), batch, length, heads, size) for _ in range(3))
    scores = g.add('MatMul', q, g.add('Transpose', k, perm=[0, 1, 3, 2]))
    scores = g.add('Div', scores, np.array(np.sqrt(size), F32))
    scores = g.add('Add', scores, mask)
    y = g.add('MatMul', g.add('Softmax', scores, axis=-1), v)
    y = g.add('Reshape', g.add('Transpose', y, perm=[0, 2, 1, 3]), listed(g, batch, length, width))
    x = layer_norm_parts(g, g.add('Add', linear(g, y, width, width), x), width)
    y = linear(g, gelu_parts(g, linear(g, x, width, 2 * width)), 2 * width, width)
    return layer_norm_parts(g, g.add('Add', y, x), width)


@case
def bert():
    g = Graph()
    ids, mask = g.input('input_ids', ['batch', 'sequence'], I64), g.input('attention_mask', ['batch', 'sequence'], I64)
    length = dim(g, ids, 1)
    m = g.add('Unsqueeze', g.add('Unsqueeze', mask, g.ints(1)), g.ints(2))
    m = g.add('Mul', g.add('Sub', np.array(1, F32), g.add('Cast', m, to=TensorProto.FLOAT)), np.array(np.finfo(F32).min, F32))
    positions = g.add('Slice', np.arange(64, dtype=I64)[None], g.ints(0), g.add('Unsqueeze', length, g.ints(0)), g.ints(1), g.ints(1))
    x = g.add('Add', g.add('Gather', g.weight(30, 16, scale=1), ids), g.add('Gather', g.weight(64, 16, scale=1), positions))
    x = layer_norm_parts(g, x, 16)
    for _ in range(2):
        x = encoder_layer(g, x, m, 16, 4)
    first = g.add('Gather', x, np.array(0, I64), axis=1)
    g.output(x, shape=['batch', 'sequence', 16])
    g.output(g.add('Tanh', g.add('Gemm', first, g.weight(16, 16), g.weight(16), transB=1)))
    def feed(b, n):
        mask = np.ones((b, n), I64)
        mask[0, n - n // 3:] = 0
        return {'input_ids': numbers(n, 0, 30, (b, n)), 'attention_mask': mask}
    return g.model(14), [feed(1, 7), feed(2, 12), feed(3, 1), feed(1, 33)]


@case
def gpt_causal():
    """A causal mask from shapes: Range, Less, Where, Expand and ConstantOfShape; rotary codes from cos and sin; keys of before."""
    g = Graph(2)
    ids = g.input('input_ids', ['batch', 'sequence'], I64)
    past_k = g.input('past.0.key', ['batch', 2, 'past', 8])
    past_v = g.input('past.0.value', ['batch', 2, 'past', 8])
    batch, length, before = dim(g, ids, 0), dim(g, ids, 1), dim(g, past_k, 2)
    total = g.add('Add', length, before)
    positions = g.add('Range', before, total, np.array(1, I64))
    x = g.add('Gather', g.weight(20, 16, scale=1), ids)
    inv = (1 / 100 ** (np.arange(0, 8, 2) / 8)).astype(F32)
    angle = g.add('MatMul', g.add('Unsqueeze', g.add('Cast', positions, to=TensorProto.FLOAT), g.ints(1)), inv[None])
    both = g.add('Concat', angle, angle, axis=-1)
    cos, sin = g.add('Cos', both), g.add('Sin', both)

    def rotate(t):
        a = g.add('Slice', t, g.ints(0), g.ints(4), g.ints(3), g.ints(1))
        b = g.add('Slice', t, g.ints(4), g.ints(np.iinfo(I64).max), g.ints(3), g.ints(1))
        return g.add('Add', g.add('Mul', t, cos), g.add('Mul', g.add('Concat', g.add('Neg', b), a, axis=-1), sin))

    square = g.add('Mul', x, x)
    rms = g.add('Sqrt', g.add('Add', g.add('ReduceMean', square, axes=[-1], keepdims=1), np.array(1e-6, F32)))
    h = g.add('Mul', g.add('Div', x, rms), g.weight(16, scale=1))
    q = rotate(heads_of(g, linear(g, h, 16, 32, False), batch, length, 4, 8))
    k = rotate(heads_of(g, linear(g, h, 16, 16, False), batch, length, 2, 8))
    v = heads_of(g, linear(g, h, 16, 16, False), batch, length, 2, 8)
    k, v = g.add('Concat', past_k, k, axis=2), g.add('Concat', past_v, v, axis=2)
    g.output(k)
    g.output(v)

    def repeat(t):
        t = g.add('Unsqueeze', t, g.ints(2))
        t = g.add('Expand', t, listed(g, batch, 2, 2, total, 8))
        return g.add('Reshape', t, listed(g, batch, 4, total, 8))

    row = g.add('Unsqueeze', positions, g.ints(1))
    column = g.add('Unsqueeze', g.add('Range', np.array(0, I64), total, np.array(1, I64)), g.ints(0))
    hidden = g.add('Less', row, column)
    zeros = g.add('ConstantOfShape', listed(g, length, total), value=numpy_helper.from_array(np.zeros(1, F32)))
    mask = g.add('Where', hidden, np.array(np.finfo(F32).min, F32), zeros)
    mask = g.add('Expand', g.add('Unsqueeze', mask, g.ints(0, 1)), listed(g, batch, 1, length, total))
    scores = g.add('Mul', g.add('MatMul', q, g.add('Transpose', repeat(k), perm=[0, 1, 3, 2])), np.array(8 ** -0.5, F32))
    p = g.add('Softmax', g.add('Add', scores, mask), axis=-1)
    y = g.add('Reshape', g.add('Transpose', g.add('MatMul', p, repeat(v)), perm=[0, 2, 1, 3]), listed(g, batch, length, -1))
    x = g.add('Add', x, linear(g, y, 32, 16, False))
    gate = linear(g, x, 16, 24, False)
    x = g.add('Add', x, linear(g, g.add('Mul', g.add('Mul', gate, g.add('Sigmoid', gate)), linear(g, x, 16, 24, False)), 24, 16, False))
    last = g.add('Slice', x, g.ints(-1), g.ints(np.iinfo(I64).max), g.ints(1), g.ints(1))
    logits = linear(g, last, 16, 20, False)
    g.output(logits)
    g.output(g.add('ArgMax', logits, axis=-1, keepdims=0), I64)
    def feed(b, n, p):
        return {'input_ids': numbers(n, 0, 20, (b, n)), 'past.0.key': floats(p, b, 2, p, 8), 'past.0.value': floats(p + 1, b, 2, p, 8)}
    return g.model(17), [feed(1, 5, 0), feed(1, 1, 5), feed(1, 1, 6), feed(2, 3, 4), feed(1, 1, 7), feed(2, 9, 0)]


@case
def relative_positions():
    """T5's buckets: Range, Abs, Log, Min, Where over computed positions; then Gather of a table."""
    g = Graph(3)
    ids = g.input('ids', [1, 'n'], I64)
    n = dim(g, ids, 1)
    r = g.add('Range', np.array(0, I64), n, np.array(1, I64))
    rel = g.add('Sub', g.add('Unsqueeze', r, g.ints(0)), g.add('Unsqueeze', r, g.ints(1)))
    positive = g.add('Mul', g.add('Cast', g.add('Greater', rel, np.array(0, I64)), to=TensorProto.INT64), np.array(16, I64))
    size = g.add('Abs', rel)
    exact = g.add('Less', size, np.array(8, I64))
    large = g.add('Log', g.add('Div', g.add('Cast', size, to=TensorProto.FLOAT), np.array(8, F32)))
    large = g.add('Mul', g.add('Div', large, np.array(np.log(16), F32)), np.array(8, F32))
    large = g.add('Add', g.add('Cast', large, to=TensorProto.INT64), np.array(8, I64))
    large = g.add('Min', large, g.add('ConstantOfShape', g.add('Shape', large), value=numpy_helper.from_array(np.array([15], I64))))
    bucket = g.add('Add', positive, g.add('Where', exact, size, large))
    bias = g.add('Transpose', g.add('Gather', g.weight(32, 4, scale=1), bucket), perm=[2, 0, 1])
    g.output(g.add('Unsqueeze', bias, g.ints(0)))
    return g.model(14), [{'ids': np.zeros((1, k), I64)} for k in (4, 9, 40, 1)]


@case
def swin_window():
    """Roll by Slice and Concat, windows by Reshape and Transpose, a mask made by ScatterND."""
    g = Graph(4)
    x = g.input('x', [2, 8, 8, 12])
    for axis in (1, 2):
        x = g.add('Concat', g.add('Slice', x, g.ints(2), g.ints(2 ** 31), g.ints(axis)), g.add('Slice', x, g.ints(0), g.ints(2), g.ints(axis)), axis=axis)
    x = g.add('Transpose', g.add('Reshape', x, g.ints(2, 2, 4, 2, 4, 12)), perm=[0, 1, 3, 2, 4, 5])
    x = g.add('Reshape', x, g.ints(-1, 16, 12))
    qkv = g.add('Transpose', g.add('Reshape', linear(g, x, 12, 36), g.ints(8, 16, 3, 3, 4)), perm=[2, 0, 3, 1, 4])
    q, k, v = (g.add('Gather', qkv, np.array(i, I64), axis=0) for i in range(3))
    s = g.add('MatMul', g.add('Mul', q, np.array(0.5, F32)), g.add('Transpose', k, perm=[0, 1, 3, 2]))
    index = numbers(5, 0, 49, (256,))
    s = g.add('Add', s, g.add('Unsqueeze', g.add('Transpose', g.add('Reshape', g.add('Gather', g.weight(49, 3), index), g.ints(16, 16, 3)), perm=[2, 0, 1]), g.ints(0)))
    hide = (numbers(6, 0, 2, (4, 16, 16)) * -100).astype(F32)
    s = g.add('Add', g.add('Reshape', s, g.ints(2, 4, 3, 16, 16)), g.add('Unsqueeze', hide, g.ints(0, 2)))
    s = g.add('Softmax', g.add('Reshape', s, g.ints(-1, 3, 16, 16)), axis=-1)
    y = g.add('Reshape', g.add('Transpose', g.add('MatMul', s, v), perm=[0, 2, 1, 3]), g.ints(8, 16, 12))
    y = g.add('Reshape', g.add('Transpose', g.add('Reshape', y, g.ints(2, 2, 2, 4, 4, 12)), perm=[0, 1, 3, 2, 4, 5]), g.ints(2, 8, 8, 12))
    g.output(y)
    return g.model(15), [{'x': floats(7, 2, 8, 8, 12)}]


# ---- convolutions

def conv(g, x, n, m, k=3, act='Relu', **attrs):
    attrs = {'kernel_shape': [k, k], 'pads': [k // 2] * 4, **attrs}
    y = g.add('Conv', x, g.weight(m, n // attrs.get('group', 1), k, k), g.weight(m, scale=0.1), **attrs)
    return g.add(act, y) if act else y


def batch_norm(g, x, n):
    return g.add('BatchNormalization', x, g.weight(n, scale=1), g.weight(n), g.weight(n), np.abs(g.weight(n, scale=1)) + F32(0.5), epsilon=1e-3)


@variants(static=dict(dynamic=False), dynamic=dict(dynamic=True))
def unet(dynamic):
    g = Graph(5)
    x = first = g.input('image', ['n', 3, 'h', 'w'] if dynamic else [1, 3, 16, 24])
    kept, width = [], 3
    for m in (8, 16):
        x = conv(g, conv(g, x, width, m), m, m)
        kept.append((x, m))
        x = g.add('MaxPool', x, kernel_shape=[2, 2], strides=[2, 2])
        width = m
    x = conv(g, x, width, 2 * width)
    width *= 2
    for up, (skip, m) in enumerate(reversed(kept)):
        if up:
            size = g.add('Slice', g.add('Shape', skip), g.ints(2), g.ints(4), g.ints(0))
            sizes = g.add('Concat', g.add('Slice', g.add('Shape', x), g.ints(0), g.ints(2), g.ints(0)), size, axis=0)
            x = g.add('Resize', x, '', '', sizes, mode='linear', coordinate_transformation_mode='align_corners')
            x = conv(g, x, width, m, 1, None)
        else:
            x = g.add('ConvTranspose', x, g.weight(width, m, 2, 2), g.weight(m), kernel_shape=[2, 2], strides=[2, 2])
        x = conv(g, g.add('Concat', skip, x, axis=1), 2 * m, m)
        width = m
    g.output(g.add('Sigmoid', conv(g, x, width, 1, 1, None)))
    sizes = [(1, 16, 24), (2, 8, 8), (1, 20, 12)] if dynamic else [(1, 16, 24)]
    return g.model(13), [{'image': floats(n + h + w, n, 3, h, w)} for n, h, w in sizes]


@case
def mobile_blocks():
    """Inverted residuals with squeeze-and-excite, hard swish; BatchNormalization left as it is; Clip as relu6."""
    g = Graph(6)
    x = g.input('x', ['batch', 3, 32, 32])
    x = batch_norm(g, conv(g, x, 3, 8, 3, None, strides=[2, 2]), 8)
    x = g.add('HardSwish', x)
    for stride in (1, 2):
        y = g.add('Clip', batch_norm(g, conv(g, x, 8, 24, 1, None), 24), np.array(0, F32), np.array(6, F32))
        y = batch_norm(g, conv(g, y, 24, 24, 5, None, group=24, strides=[stride, stride]), 24)
        s = g.add('GlobalAveragePool', y)
        s = g.add('HardSigmoid', conv(g, conv(g, s, 24, 6, 1), 6, 24, 1, None), alpha=1 / 6)
        y = batch_norm(g, conv(g, g.add('Mul', s, y), 24, 8, 1, None), 8)
        x = g.add('Add', x, y) if stride == 1 else y
    x = g.add('Reshape', g.add('ReduceMean', x, axes=[2, 3], keepdims=0), g.ints(0, -1))
    g.output(g.add('LogSoftmax', g.add('Gemm', x, g.weight(10, 8), g.weight(10), transB=1), axis=1))
    return g.model(14), [{'x': floats(n, n, 3, 32, 32)} for n in (1, 3)]


@case
def yolo():
    """A head with anchors and NonMaxSuppression, whose boxes are gathered."""
    g = Graph(7)
    x = g.input('images', ['batch', 3, 'height', 'width'])
    x = conv(g, x, 3, 8, 3, None, strides=[2, 2])
    x = g.add('Mul', x, g.add('Sigmoid', x))
    pooled = [x]
    for _ in range(2):
        pooled.append(g.add('MaxPool', pooled[-1], kernel_shape=[5, 5], pads=[2] * 4, strides=[1, 1]))
    x = g.add('Concat', *pooled, axis=1)
    x = g.add('Resize', x, '', np.array([1, 1, 2, 2], F32), mode='nearest', coordinate_transformation_mode='asymmetric', nearest_mode='floor')
    x = conv(g, x, 24, 14, 1, None, strides=[2, 2])
    batch, h, w = dim(g, x, 0), dim(g, x, 2), dim(g, x, 3)
    x = g.add('Transpose', g.add('Reshape', x, listed(g, batch, 2, 7, h, w)), perm=[0, 1, 3, 4, 2])
    x = g.add('Sigmoid', x)
    xy, wh, rest = g.add('Split', x, g.ints(2, 2, 3), axis=4, count=3)
    ys = g.add('Expand', g.add('Unsqueeze', g.add('Range', np.array(0, I64), h, np.array(1, I64)), g.ints(1)), listed(g, h, w))
    xs = g.add('Expand', g.add('Unsqueeze', g.add('Range', np.array(0, I64), w, np.array(1, I64)), g.ints(0)), listed(g, h, w))
    grid = g.add('Cast', g.add('Concat', g.add('Unsqueeze', xs, g.ints(-1)), g.add('Unsqueeze', ys, g.ints(-1)), axis=-1), to=TensorProto.FLOAT)
    xy = g.add('Mul', g.add('Add', g.add('Sub', g.add('Mul', xy, np.array(2, F32)), np.array(0.5, F32)), grid), np.array(2, F32))
    wh = g.add('Mul', g.add('Pow', g.add('Mul', wh, np.array(2, F32)), np.array(2, F32)), np.array([[5, 6], [9, 8]], F32).reshape(1, 2, 1, 1, 2))
    flat = g.add('Reshape', g.add('Concat', xy, wh, rest, axis=-1), listed(g, batch, -1, 7))
    boxes = g.add('Slice', flat, g.ints(0), g.ints(4), g.ints(2))
    scores = g.add('Mul', g.add('Slice', flat, g.ints(5), g.ints(7), g.ints(2)), g.add('Slice', flat, g.ints(4), g.ints(5), g.ints(2)))
    chosen = g.add('NonMaxSuppression', boxes, g.add('Transpose', scores, perm=[0, 2, 1]), np.array([5], I64), np.array([0.45], F32),
                   np.array([0.2], F32), center_point_box=1)
    g.output(chosen, I64)
    pick = g.add('Gather', chosen, g.ints(0, 2), axis=1)
    g.output(g.add('GatherND', boxes, pick))
    g.output(g.add('Cast', g.add('Gather', chosen, np.array(1, I64), axis=1), to=TensorProto.INT32), I32)
    return g.model(15), [{'images': floats(h + w, b, 3, h, w)} for b, h, w in ((1, 16, 16), (2, 12, 20), (1, 8, 8))]


@case
def gan_decoder():
    """ConvTranspose with output padding, groups, dilations, odd strides; InstanceNormalization; PRelu; Pad reflect."""
    g = Graph(8)
    x = g.input('z', [2, 6])
    x = g.add('Reshape', linear(g, x, 6, 8 * 3 * 5), g.ints(2, 8, 3, 5))
    x = g.add('ConvTranspose', x, g.weight(8, 4, 4, 3), kernel_shape=[4, 3], strides=[2, 3], pads=[1, 0, 1, 1], output_padding=[1, 2], group=2)
    x = g.add('PRelu', g.add('InstanceNormalization', x, g.weight(8, scale=1), g.weight(8)), g.weight(8, 1, 1))
    x = g.add('ConvTranspose', x, g.weight(8, 8, 3, 3), g.weight(8), kernel_shape=[3, 3], dilations=[2, 1], auto_pad='SAME_UPPER', strides=[2, 2])
    x = g.add('LeakyRelu', x, alpha=0.2)
    x = g.add('ConvTranspose', x, g.weight(8, 1, 3, 3), group=8, strides=[1, 2], output_shape=[15, 59], kernel_shape=[3, 3])
    x = g.add('Pad', x, np.array([0, 0, 2, 1, 0, 0, 1, 2], I64), mode='reflect')
    g.output(g.add('Tanh', conv(g, x, 8, 3, 3, None)))
    return g.model(11), [{'z': floats(1, 2, 6)}]


@case
def deform_and_sample():
    g = Graph(9)
    x, flow = g.input('x', ['n', 4, 'h', 'w']), g.input('grid', ['n', 'gh', 'gw', 2])
    off = conv(g, x, 4, 2 * 9 * 2, 3, None)
    mask = g.add('Sigmoid', conv(g, x, 4, 18, 3, None))
    y = g.add('DeformConv', x, g.weight(6, 4, 3, 3), off, g.weight(6), mask, kernel_shape=[3, 3], pads=[1] * 4, offset_group=2)
    outs = [g.add('GridSample', y, flow, mode=mode, padding_mode=pad, align_corners=a)
            for mode, pad, a in (('linear', 'zeros', 0), ('cubic', 'border', 1), ('nearest', 'reflection', 0), ('linear', 'reflection', 1))]
    for o in [y] + outs:
        g.output(o)
    return g.model(22, 10), [{'x': floats(h, 1, 4, h, w), 'grid': floats(w, 1, 3, 5, 2, low=-1.4, high=1.4)} for h, w in ((6, 7), (4, 9))]


@case
def affine_3d():
    g = Graph(10)
    x, t = g.input('x', [2, 3, 4, 5, 6]), g.input('theta', [2, 3, 4])
    g.output(g.add('GridSample', x, g.add('AffineGrid', t, g.ints(2, 3, 3, 4, 5), align_corners=1), mode='linear', align_corners=1))
    g.output(g.add('MaxPool', g.add('Conv', x, g.weight(4, 3, 2, 3, 3), pads=[0, 1, 1, 1, 1, 1]), kernel_shape=[2, 2, 2], ceil_mode=1, strides=[2, 2, 2]))
    g.output(g.add('AveragePool', x, kernel_shape=[3, 2, 3], pads=[1, 0, 1, 1, 1, 1], count_include_pad=1, ceil_mode=1, strides=[2, 1, 2]))
    g.output(g.add('ConvTranspose', x, g.weight(3, 2, 2, 2, 3), strides=[2, 1, 2]))
    return g.model(20, 9), [{'x': floats(1, 2, 3, 4, 5, 6), 'theta': floats(2, 2, 3, 4)}]


@case
def conv_1d_audio():
    """Dilated causal convolutions (WaveNet), gated; a transposed one; a long signal."""
    g = Graph(11)
    x = g.input('audio', [1, 1, 'samples'])
    x = g.add('Conv', x, g.weight(8, 1, 1))
    for d in (1, 2, 4, 8):
        p = g.add('Pad', x, g.ints(0, 0, 2 * d, 0, 0, 0), np.array(0, F32))
        y = g.add('Conv', p, g.weight(16, 8, 3), g.weight(16), dilations=[d], kernel_shape=[3])
        a, b = g.add('Split', y, axis=1, count=2)
        x = g.add('Add', x, g.add('Conv', g.add('Mul', g.add('Tanh', a), g.add('Sigmoid', b)), g.weight(8, 8, 1)))
    g.output(x)
    g.output(g.add('ConvTranspose', x, g.weight(8, 1, 16), strides=[8], pads=[4, 4]))
    g.output(g.add('AveragePool', x, kernel_shape=[25], strides=[10], ceil_mode=1))
    return g.model(13), [{'audio': floats(n, 1, 1, n)} for n in (100, 30, 5000, 77)]


# ---- recurrent

def recurrent(g, op, x, n, hidden, direction='forward', lengths='', bias=True, state=True, **attrs):
    gates, d = {'LSTM': 4, 'GRU': 3, 'RNN': 1}[op], 2 if direction == 'bidirectional' else 1
    operands = [x, g.weight(d, gates * hidden, n), g.weight(d, gates * hidden, hidden), g.weight(d, 2 * gates * hidden) if bias else '', lengths]
    if state:
        operands += state
    return g.add(op, *operands, hidden_size=hidden, direction=direction, count=3 if op == 'LSTM' else 2, **attrs)


@variants(lstm=dict(op='LSTM'), gru=dict(op='GRU'), rnn=dict(op='RNN'), lstm_lengths=dict(op='LSTM', lengths=True), gru_lengths=dict(op='GRU', lengths=True),
          rnn_lengths=dict(op='RNN', lengths=True), gru_before=dict(op='GRU', linear_before_reset=1), gru_before_lengths=dict(op='GRU', linear_before_reset=1, lengths=True),
          lstm_clip=dict(op='LSTM', clip=0.4), lstm_forget=dict(op='LSTM', input_forget=1), lstm_acts=dict(op='LSTM', activations=['HardSigmoid', 'Softsign', 'LeakyRelu'] * 2, activation_alpha=[0.3, 0.1] * 2, activation_beta=[0.4] * 2))
def stack(op, lengths=False, **attrs):
    """Two layers, the first in both directions, as PyTorch writes them: Transpose and Reshape between, states from shapes."""
    g = Graph(12)
    x = g.input('x', ['time', 'batch', 5])
    n = g.input('lengths', ['batch'], I32) if lengths else ''
    batch = dim(g, x, 1)
    zero = g.add('Expand', np.zeros((2, 1, 6), F32), listed(g, 2, batch, 6))
    more = {'peephole': [g.weight(2, 18)]} if op == 'LSTM' and attrs else {}
    state = [zero] + ([zero] if op == 'LSTM' else []) + more.get('peephole', [])
    y = recurrent(g, op, x, 5, 6, 'bidirectional', n, state=state, **attrs)
    g.output(y[1])
    if op == 'LSTM':
        g.output(y[2])
    z = g.add('Reshape', g.add('Transpose', y[0], perm=[0, 2, 1, 3]), g.ints(0, 0, -1))
    attrs = {k: v[:len(v) // 2] if isinstance(v, list) else v for k, v in attrs.items()}
    y = recurrent(g, op, z, 12, 7, 'reverse' if lengths else 'forward', n, bias=False, state=False, **attrs)
    z = g.add('Squeeze', y[0], g.ints(1))
    g.output(z)
    g.output(g.add('Gather', z, np.array(-1, I64), axis=0))
    feeds = []
    for t, b in ((6, 3), (1, 1), (9, 2)):
        feed = {'x': floats(t, t, b, 5)}
        if lengths:
            feed['lengths'] = np.array([t, max(1, t - 2), 1][:b], I32)
        feeds.append(feed)
    return g.model(14), feeds


@case
def lstm_layout():
    g = Graph(13)
    x = g.input('x', [3, 4, 5])
    y = recurrent(g, 'LSTM', x, 5, 8, 'bidirectional', numbers(2, 1, 4, (4,), I32), state=[g.weight(2, 4, 8)] * 2)
    for o in y:
        g.output(o)
    z = recurrent(g, 'GRU', x, 5, 4, state=False)
    g.output(z[0])
    return g.model(14), [{'x': floats(1, 3, 4, 5)}]


# ---- einsum and products

EQUATIONS = ['bhqd,bhkd->bhqk', 'bhqk,bhkd->bqhd', 'i,j->ij', 'ij,jk', 'ij->ji', 'ii->i', 'ii', '...ij,...jk->...ik', 'bij,bjk,bkl->bil', 'i,i', 'ij,kj->ik',
             'abc,cd->abd', 'bld,hd->blh', 'ibnd,jbnd->bnij', 'ijk->', 'i->i', 'b...d,d->b...', 'nchw,ck->nkhw', 'ij,ij->ij', 'ij,i->ij', '...i->...', 'ab,cd->acbd',
             'abcd->dcba', 'bhwc,hkc->bhwk', 'iij->ij', 'ijj,j->i', 'i...,...->i...', ' i j , j k -> i k ']


def _einsum(equation):
    g = Graph(14)
    sizes = {c: 2 + (ord(c) * 7) % 5 for c in 'abcdefghijklmnopqrstuvwxyz'}
    feeds = {}
    for at, term in enumerate(equation.split('->')[0].split(',')):
        term = term.replace(' ', '')
        shape = []
        for part in term.replace('...', '.'):
            shape += [3, 2] if part == '.' else [sizes[part]]
        feeds[g.input('x%d' % at, ['d%d_%d' % (at, i) for i in range(len(shape))] if at % 2 else shape)] = floats(at + 1, *shape)
    g.output(g.add('Einsum', *feeds, equation=equation))
    return g.model(12), [feeds]


for _at, _equation in enumerate(EQUATIONS):
    CASES['einsum_%d' % _at] = lambda equation=_equation: _einsum(equation)


@case
def matmul_shapes():
    g = Graph(15)
    feeds = {}
    pairs = [((3,), (3,)), ((3,), (3, 4)), ((2, 3), (3,)), ((5, 1, 2, 3), (4, 3, 2)), ((2, 3, 0), (2, 0, 4)), ((0, 3), (3, 2)), ((3,), (2, 3, 4)), ((2, 2, 3), (3,)),
             ((1, 300), (300, 1)), ((17, 1), (1, 33)), ((2, 0, 3), (3, 4)), ((4, 513), (513, 129))]
    for i, (a, b) in enumerate(pairs):
        feeds['a%d' % i], feeds['b%d' % i] = floats(i, *a), floats(i + 50, *b)
        g.output(g.add('MatMul', g.input('a%d' % i, a), g.input('b%d' % i, b)))
    for i, (ta, tb, c) in enumerate([(0, 0, (5,)), (1, 0, (4, 1)), (0, 1, ()), (1, 1, (1, 5)), (1, 1, None)]):
        names = [g.input('g%d' % i, (3, 4) if ta else (4, 3)), g.input('h%d' % i, (5, 3) if tb else (3, 5))]
        feeds[names[0]], feeds[names[1]] = floats(i, *((3, 4) if ta else (4, 3))), floats(i, *((5, 3) if tb else (3, 5)))
        if c is not None:
            names.append(g.input('c%d' % i, c))
            feeds[names[2]] = floats(9, *c)
        g.output(g.add('Gemm', *names, transA=ta, transB=tb, alpha=0.5, beta=2.0))
    for i, dtype in enumerate((I32, I64, np.uint32, np.uint64, np.float64)):
        a, b = g.input('ia%d' % i, (3, 4), dtype), g.input('ib%d' % i, (4, 5), dtype)
        feeds[a], feeds[b] = numbers(i, 0, 2 ** 20, (3, 4), dtype), numbers(i, 0, 2 ** 20, (4, 5), dtype)
        g.output(g.add('MatMul', a, b), dtype)
    return g.model(13), [feeds]
