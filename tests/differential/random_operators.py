"""What random_graphs.py draws: an operator with random operands and attributes, as (operator, operand names, attributes, results).

Every function takes the graph that is being made (its `value`, `feed`, `const`, `array`, `shape` and `rng`) and may return None.
"""
import numpy as np
from onnx import numpy_helper

OPERATORS = {}
F32, I64 = np.float32, np.int64


def operator(*names):
    def add(function):
        for name in names:
            OPERATORS[name] = lambda g, name=name: function(g, name)
        return function
    return add


def choice(g, *values):
    return values[g.rng.randint(len(values))]


def some(g, **attrs):
    """Each attribute, or not: defaults are tried, too."""
    return {k: v for k, v in attrs.items() if g.rng.rand() < 0.6}


def like(g, name, **limits):
    """An operand that broadcasts with `name`: some extents 1, some leading ones left out."""
    held = g.values[name]
    shape = [1 if g.rng.rand() < 0.3 else d for d in held.shape][g.rng.randint(0, held.ndim + 1):]
    return g.feed(g.array(held.dtype, tuple(shape), **limits))


def axis_of(g, name):
    rank = g.values[name].ndim
    return int(g.rng.randint(-rank, rank))


@operator('Abs', 'Neg', 'Relu', 'Sigmoid', 'Tanh', 'Erf', 'Softplus', 'Softsign', 'Exp', 'Sign', 'Ceil', 'Floor', 'Round', 'Sin', 'Cos', 'Tan', 'Atan',
          'Sinh', 'Cosh', 'Asinh', 'HardSwish', 'Identity', 'Mish', 'Sqrt', 'Log', 'Reciprocal', 'Asin', 'Acos', 'Acosh', 'Atanh', 'IsNaN')
def unary(g, op):
    return op, [g.value()], {}, 1


@operator('Elu', 'LeakyRelu', 'Celu', 'ThresholdedRelu')
def with_alpha(g, op):
    return op, [g.value()], some(g, alpha=float(choice(g, 0.25, 0.5, 1.5))), 1


@operator('HardSigmoid', 'Selu', 'Shrink', 'Gelu')
def with_more(g, op):
    attrs = {'HardSigmoid': dict(alpha=0.3, beta=0.25), 'Selu': dict(alpha=0.5, gamma=2.0), 'Shrink': dict(lambd=1.25, bias=0.5),
             'Gelu': dict(approximate='tanh')}[op]
    return op, [g.value()], some(g, **attrs), 1


@operator('IsInf')
def is_inf(g, op):
    return op, [g.value()], some(g, detect_negative=0, detect_positive=0), 1


@operator('Add', 'Sub', 'Mul', 'Div', 'Min', 'Max', 'Less', 'Greater', 'LessOrEqual', 'GreaterOrEqual', 'Equal')
def binary(g, op):
    dtype = choice(g, F32, F32, F32, np.int32, I64)
    a = g.value(dtype)
    limits = dict(low=1, high=7) if op == 'Div' else {}
    operands = [a, like(g, a, **limits)]
    return op, operands if op == 'Div' or g.rng.rand() < 0.5 else operands[::-1], {}, 1


@operator('Mod')
def mod(g, op):
    dtype = choice(g, F32, np.int32, I64, np.int8, np.uint8)
    a = g.value(dtype)
    fmod = 1 if dtype == F32 or g.rng.rand() < 0.4 else 0
    return op, [a, like(g, a, low=1, high=6)], dict(fmod=fmod), 1


@operator('Pow')
def power(g, op):
    if g.rng.rand() < 0.5:
        return op, [g.value(), g.const(g.array(F32, ()) // 1)], {}, 1
    return op, [g.feed(g.array(F32, g.shape(), low=0.25, high=3)), g.feed(g.array(F32, ()))], {}, 1


@operator('BitShift')
def bit_shift(g, op):
    a = g.value(choice(g, np.uint8, np.uint32, np.uint64))
    return op, [a, like(g, a, low=0, high=7)], dict(direction=choice(g, 'LEFT', 'RIGHT')), 1


@operator('BitwiseAnd', 'BitwiseOr', 'BitwiseXor')
def bitwise(g, op):
    a = g.value(choice(g, np.int8, np.uint16, np.int32, I64), least=1)
    return op, [a, like(g, a)], {}, 1


@operator('And', 'Or', 'Xor')
def logical(g, op):
    a = g.value(np.bool_)
    return op, [a, like(g, a)], {}, 1


@operator('Where')
def where(g, op):
    a = g.value()
    shape = g.values[like(g, a)].shape
    return op, [g.feed(g.array(np.bool_, shape) if shape else np.array(True)), a, like(g, a)], {}, 1


@operator('Clip')
def clip(g, op):
    low, high = g.const(np.array(choice(g, -1, -0.5, 2), F32)), g.const(np.array(choice(g, 1, 0.5), F32))
    return op, [g.value(), choice(g, low, ''), high] if g.rng.rand() < 0.7 else [g.value(), low], {}, 1


@operator('PRelu')
def prelu(g, op):
    a = g.value()
    return op, [a, like(g, a)], {}, 1


@operator('Cast')
def cast(g, op):
    a = g.value(choice(g, F32, np.int32, np.uint8, np.bool_, np.float64))
    return op, [a], dict(to=int(choice(g, 1, 6, 7, 9, 10, 11))), 1


@operator('Sum', 'Mean')
def variadic(g, op):
    a = g.value()
    return op, [a] + [like(g, a) for _ in range(g.rng.randint(0, 3))], {}, 1


@operator('ReduceSum', 'ReduceMean', 'ReduceMax', 'ReduceMin', 'ReduceProd', 'ReduceL1', 'ReduceL2', 'ReduceSumSquare', 'ReduceLogSumExp', 'ReduceLogSum')
def reduce(g, op):
    a = g.feed(g.array(F32, g.shape(), low=0.5)) if op == 'ReduceLogSum' else g.value()
    if op == 'ReduceProd' and g.values[a].size > 64:
        return None  # overflows in f32 on the way, not in f64
    rank = g.values[a].ndim
    axes = g.rng.permutation(rank)[:g.rng.randint(0, rank + 1)] - rank * g.rng.randint(2)
    operands = [a, g.const(axes.astype(I64))] if g.rng.rand() < 0.8 else [a]
    return op, operands, some(g, keepdims=0, noop_with_empty_axes=1), 1


@operator('ArgMax', 'ArgMin')
def arg(g, op):
    a = g.value(choice(g, F32, np.int32))
    if np.isnan(g.values[a]).any():
        return None  # a NaN in front wins in ONNX Runtime, one elsewhere does not; here none does
    return op, [a], some(g, axis=axis_of(g, a), keepdims=0, select_last_index=1), 1


@operator('TopK')
def top_k(g, op):
    a = g.value(choice(g, F32, I64))
    axis = axis_of(g, a)
    k = g.rng.randint(1, g.values[a].shape[axis] + 1)
    return op, [a, g.const(np.array([k], I64))], dict(axis=axis, **some(g, largest=0)), 2


@operator('CumSum')
def cumsum(g, op):
    a = g.value(choice(g, F32, np.int32))
    return op, [a, g.const(np.array(axis_of(g, a), I64))], some(g, exclusive=1, reverse=1), 1


@operator('Softmax', 'LogSoftmax', 'Hardmax')
def softmax(g, op):
    a = g.value()
    return op, [a], some(g, axis=axis_of(g, a)), 1


@operator('LayerNormalization')
def layer_norm(g, op):
    a = g.value()
    axis = axis_of(g, a)
    shape = g.values[a].shape[axis:]
    return op, [a, g.feed(g.array(F32, shape))] + ([g.feed(g.array(F32, shape))] if g.rng.rand() < 0.5 else []), dict(axis=axis, epsilon=0.01), 1


@operator('InstanceNormalization', 'LRN', 'LpNormalization', 'MeanVarianceNormalization')
def normalisation(g, op):
    a = g.value(rank=4)
    channels = g.values[a].shape[1]
    if op == 'InstanceNormalization':
        return op, [a, g.feed(g.array(F32, (channels,))), g.feed(g.array(F32, (channels,)))], dict(epsilon=0.1), 1
    attrs = {'LRN': dict(size=int(choice(g, 1, 3, 5)), **some(g, alpha=0.5, beta=0.5, bias=2.0)), 'LpNormalization': dict(axis=axis_of(g, a), p=choice(g, 1, 2))}
    return op, [a], attrs.get(op, {}), 1


@operator('BatchNormalization')
def batch_norm(g, op):
    a = g.value(least=2)
    channels = g.values[a].shape[1]
    return op, [a] + [g.const(g.array(F32, (channels,), low=low)) for low in (-4, -4, -4, 0.5)], some(g, epsilon=0.01), 1


@operator('Transpose')
def transpose(g, op):
    a = g.value(choice(g, F32, I64))
    return op, [a], some(g, perm=[int(i) for i in g.rng.permutation(g.values[a].ndim)]), 1


@operator('Reshape')
def reshape(g, op):
    a = g.value()
    shape = list(g.values[a].shape)
    g.rng.shuffle(shape)
    cut = g.rng.randint(len(shape) + 1)
    shape = shape[:cut] + [int(np.prod(shape[cut:]))]
    if g.rng.rand() < 0.5:
        shape[g.rng.randint(len(shape))] = -1
    return op, [a, g.const(np.array(shape, I64))], {}, 1


@operator('Flatten')
def flatten(g, op):
    a = g.value()
    return op, [a], some(g, axis=axis_of(g, a)), 1


@operator('Expand')
def expand(g, op):
    a = g.value()
    shape = [d if d != 1 else int(g.rng.randint(1, 5)) for d in g.values[a].shape]
    return op, [a, g.const(np.array([1] * g.rng.randint(2) + shape, I64))], {}, 1


@operator('Tile')
def tile(g, op):
    a = g.value()
    return op, [a, g.const(g.rng.randint(1, 4, g.values[a].ndim).astype(I64))], {}, 1


@operator('Concat')
def concat(g, op):
    a = g.value()
    axis = axis_of(g, a)
    others = []
    for _ in range(g.rng.randint(1, 4)):
        shape = list(g.values[a].shape)
        shape[axis] = int(g.rng.randint(1, 9))
        others.append(g.feed(g.array(F32, tuple(shape))))
    return op, others + [a], dict(axis=axis), 1


@operator('Split')
def split(g, op):
    a = g.value()
    axis = axis_of(g, a)
    extent = g.values[a].shape[axis]
    count = int(g.rng.randint(1, min(extent, 4) + 1))
    if g.rng.rand() < 0.5:
        return op, [a], dict(axis=axis, num_outputs=count), count
    cuts = np.sort(g.rng.randint(0, extent + 1, count - 1))
    sizes = np.diff(np.concatenate([[0], cuts, [extent]])).astype(I64)
    return op, [a, g.const(sizes)], dict(axis=axis), count


@operator('Slice')
def cut(g, op):
    a = g.value()
    rank = g.values[a].ndim
    axes = g.rng.permutation(rank)[:g.rng.randint(1, rank + 1)]
    steps = g.rng.choice([-5, -2, -1, 1, 1, 2, 3], len(axes))
    # Not INT_MAX as the end of a negative step: empty by ONNX's text, ONNX Runtime takes it for "to the first element".
    ends = [choice(g, int(g.rng.randint(-20, 20)), -2**31, -2**63, *((2**31 - 1, 2**63 - 1) if step > 0 else ())) for step in steps]
    operands = [g.rng.randint(-20, 20, len(axes)), np.array(ends), axes, steps]
    return op, [a] + [g.const(o.astype(I64)) for o in operands], {}, 1


@operator('Pad')
def pad(g, op):
    a = g.value()
    rank = g.values[a].ndim
    mode = choice(g, 'constant', 'edge', 'reflect', 'wrap')
    low = -1 if mode == 'constant' else 0
    operands = [a, g.const(g.rng.randint(low, 3, 2 * rank).astype(I64))] + ([g.const(np.array(1.5, F32))] if g.rng.rand() < 0.5 else [])
    return op, operands, dict(mode=mode), 1


@operator('Gather', 'GatherElements')
def gather(g, op):
    a = g.value()
    axis = axis_of(g, a)
    extent = g.values[a].shape[axis]
    shape = g.shape(g.rng.randint(0, 3)) if op == 'Gather' else tuple(g.rng.randint(1, d + 1) for d in g.values[a].shape)
    return op, [a, g.feed(g.rng.randint(-extent, extent, shape).astype(I64) if shape else np.array(extent - 1, I64))], dict(axis=axis), 1


@operator('GatherND')
def gather_nd(g, op):
    a = g.value(least=2)
    shape = g.values[a].shape
    rows = [g.rng.randint(-d, d, 3) for d in shape[:g.rng.randint(1, len(shape) + 1)]]
    return op, [a, g.feed(np.stack(rows, axis=1).astype(I64))], {}, 1


@operator('ScatterElements', 'ScatterND')
def scatter(g, op):
    a = g.value(least=2)
    shape = g.values[a].shape
    reduction = choice(g, 'none', 'add', 'mul', 'max', 'min')
    if op == 'ScatterND':  # one index per row: no two updates of one element
        rows = g.rng.permutation(shape[0])[:g.rng.randint(1, shape[0] + 1)]
        return op, [a, g.feed(rows[:, None].astype(I64)), g.feed(g.array(F32, (len(rows),) + shape[1:]))], dict(reduction=reduction), 1
    rows = np.argsort(g.rng.rand(*shape), axis=0).astype(I64)
    return op, [a, g.feed(rows), g.feed(g.array(F32, shape))], dict(axis=0, reduction=reduction), 1


@operator('OneHot')
def one_hot(g, op):
    rank = g.rng.randint(1, 3)
    return op, [g.feed(g.rng.randint(-6, 6, g.shape(rank)).astype(I64)), g.const(np.array(g.rng.randint(1, 6), I64)),
                g.const(np.array([-1, 2.5], F32))], dict(axis=int(g.rng.randint(-rank - 1, rank + 1))), 1


@operator('Trilu')
def trilu(g, op):
    return op, [g.value(least=2), g.const(np.array(g.rng.randint(-4, 5), I64))], some(g, upper=0), 1


@operator('DepthToSpace', 'SpaceToDepth')
def space(g, op):
    shape = (2, 8, 3, 5) if op == 'DepthToSpace' else (2, 3, 4, 6)
    return op, [g.feed(g.array(F32, shape))], dict(blocksize=2, **(some(g, mode='CRD') if op == 'DepthToSpace' else {})), 1


@operator('ReverseSequence')
def reverse(g, op):
    a = g.value(least=2)
    n, m = g.values[a].shape[:2]
    return op, [a, g.feed(g.rng.randint(1, n + 1, m).astype(I64))], dict(time_axis=0, batch_axis=1), 1


@operator('MatMul')
def matmul(g, op):
    a = g.value(least=1)
    held = g.values[a].shape
    shape = choice(g, (held[-1],), (held[-1], int(choice(g, 1, 3, 8, 17, 33))))
    if len(held) > 2 and len(shape) == 2 and g.rng.rand() < 0.4:
        shape = held[:-2] + shape
    return op, [a, choice(g, g.feed, g.const)(g.array(F32, shape, -1, 1))], {}, 1


@operator('Gemm')
def gemm(g, op):
    m, k, n = g.shape(3)
    ta, tb = g.rng.randint(2, size=2)
    operands = [g.feed(g.array(F32, (k, m) if ta else (m, k))), g.const(g.array(F32, (n, k) if tb else (k, n), -1, 1))]
    if g.rng.rand() < 0.7:
        operands.append(g.feed(g.array(F32, choice(g, (n,), (m, 1), (m, n), (1,), ()))))
    return op, operands, dict(transA=int(ta), transB=int(tb), **some(g, alpha=0.5, beta=2.0)), 1


def window(g, spatial, strides=True):
    attrs = {}
    if g.rng.rand() < 0.4:
        attrs['auto_pad'] = choice(g, 'SAME_UPPER', 'SAME_LOWER', 'VALID')
    else:
        attrs.update(some(g, pads=[int(i) for i in g.rng.randint(0, 2, 2 * spatial)]))
        attrs.update(some(g, dilations=[int(i) for i in g.rng.randint(1, 3, spatial)]))
    attrs.update(some(g, strides=[int(i) for i in g.rng.randint(1, 4, spatial)]))
    return attrs


@operator('Conv', 'ConvTranspose')
def conv(g, op):
    spatial = g.rng.randint(1, 3)
    group = int(choice(g, 1, 1, 2, 4))
    own, made = (int(choice(g, 1, 2, 3, 8, 16)) for _ in range(2))
    kernel = tuple(int(i) for i in g.rng.randint(1, 4, spatial))
    a = g.feed(g.array(F32, (int(g.rng.randint(1, 3)), own * group) + tuple(int(i) for i in g.rng.randint(4, 14, spatial))))
    shape = (made * group, own) if op == 'Conv' else (own * group, made)
    operands = [a, choice(g, g.const, g.const, g.feed)(g.array(F32, shape + kernel, -1, 1))]
    if g.rng.rand() < 0.5:
        operands.append(g.const(g.array(F32, (made * group,))))
    return op, operands, dict(group=group, **window(g, spatial)), 1


@operator('MaxPool', 'AveragePool', 'LpPool')
def pool(g, op):
    spatial = g.rng.randint(1, 3)
    a = g.feed(g.array(F32, g.shape(2) + tuple(int(i) for i in g.rng.randint(4, 14, spatial))))
    attrs = dict(kernel_shape=[int(i) for i in g.rng.randint(1, 4, spatial)], **window(g, spatial), **some(g, ceil_mode=1))
    if op == 'AveragePool':
        attrs.update(some(g, count_include_pad=1))
    if op == 'LpPool':
        attrs.update(some(g, p=int(choice(g, 1, 2, 3))))
    return op, [a], attrs, 2 if op == 'MaxPool' and g.rng.rand() < 0.3 else 1


@operator('GlobalAveragePool', 'GlobalMaxPool', 'GlobalLpPool')
def global_pool(g, op):
    return op, [g.value(least=3)], {}, 1


@operator('Resize')
def resize(g, op):
    a = g.value(rank=4)
    scales = np.array([1, 1] + [choice(g, 0.5, 0.75, 1, 1.5, 2, 3) for _ in range(2)], F32)
    mode = choice(g, 'nearest', 'linear', 'cubic')
    if (np.array(g.values[a].shape) * scales % 1).any():
        scales[2:] = 2  # for align_corners ONNX Runtime rounds extent * scale, ONNX's text and test data do not
    attrs = dict(mode=mode, coordinate_transformation_mode=choice(g, 'half_pixel', 'asymmetric', 'align_corners', 'pytorch_half_pixel', 'half_pixel_symmetric'))
    if mode == 'nearest':
        attrs.update(some(g, nearest_mode=choice(g, 'round_prefer_floor', 'round_prefer_ceil', 'floor', 'ceil')))
    if mode == 'cubic':
        attrs.update(some(g, cubic_coeff_a=-0.5, exclude_outside=1))
    if mode != 'nearest':
        attrs.update(some(g, antialias=1) if g.rng.rand() < 0.4 else {})
    if g.rng.rand() < 0.4:
        sizes = (np.array(g.values[a].shape) * scales).astype(I64) + 1
        sizes[:2] = g.values[a].shape[:2]
        return op, [a, '', '', g.const(sizes)], attrs, 1
    return op, [a, '', g.const(scales)], attrs, 1


@operator('GridSample')
def grid_sample(g, op):
    a = g.value(rank=4)
    n = g.values[a].shape[0]
    attrs = some(g, mode=choice(g, 'linear', 'nearest', 'cubic'), padding_mode=choice(g, 'zeros', 'border', 'reflection'), align_corners=1)
    return op, [a, g.feed(g.array(F32, (n, 3, 4, 2), -1.5, 1.5))], attrs, 1


@operator('QuantizeLinear', 'DynamicQuantizeLinear')
def quantize(g, op):
    if op == 'DynamicQuantizeLinear':
        return op, [g.value()], {}, 3
    zero = g.const(np.array(3, choice(g, np.uint8, np.int8)))
    return op, [g.value(), g.const(np.array(choice(g, 0.5, 0.03125), F32)), zero], {}, 1


@operator('DequantizeLinear')
def dequantize(g, op):
    a = g.value(choice(g, np.uint8, np.int8))
    return op, [a, g.const(np.array(0.25, F32)), g.const(np.array(2, g.values[a].dtype))], {}, 1


@operator('Einsum')
def einsum(g, op):
    i, j, k = g.shape(3)
    equation = choice(g, 'ij,jk->ik', 'ij,jk->ki', 'ij,jk->', 'ij,jk->ijk')
    return op, [g.feed(g.array(F32, (i, j))), g.feed(g.array(F32, (j, k)))], dict(equation=equation), 1


@operator('RNN', 'GRU', 'LSTM')
def recurrent(g, op):
    gates = {'RNN': 1, 'GRU': 3, 'LSTM': 4}[op]
    steps, batch, size, hidden = g.shape(4)
    direction = choice(g, 'forward', 'reverse', 'bidirectional')
    count = 2 if direction == 'bidirectional' else 1
    operands = [g.feed(g.array(F32, (steps, batch, size), -1, 1)), g.const(g.array(F32, (count, gates * hidden, size), -1, 1)),
                g.const(g.array(F32, (count, gates * hidden, hidden), -0.5, 0.5))]
    if g.rng.rand() < 0.6:
        operands.append(g.const(g.array(F32, (count, 2 * gates * hidden), -1, 1)))
        if g.rng.rand() < 0.5:
            operands.append(g.feed(g.rng.randint(1, steps + 1, batch).astype(np.int32)))
    attrs = dict(hidden_size=hidden, direction=direction, **(some(g, linear_before_reset=1) if op == 'GRU' else {}))
    return op, operands, attrs, 3 if op == 'LSTM' else 2


@operator('DFT')
def dft(g, op):
    n = int(g.rng.randint(2, 40))
    onesided = g.rng.rand() < 0.4
    a = g.feed(g.array(F32, (2, n, 1 if onesided else choice(g, 1, 2))))
    return op, [a, '', g.const(np.array(1, I64))], dict(onesided=1) if onesided else some(g, inverse=1), 1


@operator('STFT')
def stft(g, op):
    frame = int(choice(g, 8, 16, 20))
    a = g.feed(g.array(F32, (2, int(g.rng.randint(40, 90)), 1)))
    return op, [a, g.const(np.array(int(g.rng.randint(1, 9)), I64)), g.const(g.array(F32, (frame,))), g.const(np.array(frame, I64))], some(g, onesided=0), 1


@operator('NonZero', 'Shape', 'Size')
def of_shape(g, op):
    return op, [g.value()], {}, 1


@operator('Range')
def number_range(g, op):
    dtype = choice(g, I64, F32)
    return op, [g.const(np.array(v, dtype)) for v in (g.rng.randint(-5, 5), g.rng.randint(-20, 20), choice(g, 1, 2, -1, -3))], {}, 1


@operator('BitwiseNot', 'Not')
def inverted(g, op):
    return op, [g.value(np.bool_ if op == 'Not' else choice(g, np.int32, np.uint8, I64, np.int8))], {}, 1


@operator('Squeeze', 'Unsqueeze')
def ones(g, op):
    shape = list(g.shape(int(g.rng.randint(1, 4))))
    at = sorted(int(i) for i in g.rng.choice(len(shape) + 1, 1 + g.rng.randint(0, 2), replace=False))
    if op == 'Unsqueeze':
        return op, [g.value(), g.const(np.array(at[:1], I64))], {}, 1
    for i in at:
        shape.insert(i, 1)
    axes = [i - len(shape) if g.rng.rand() < 0.5 else i for i in at]
    return op, [g.feed(g.array(F32, tuple(shape)))] + ([g.const(np.array(axes, I64))] if g.rng.rand() < 0.7 else []), {}, 1


@operator('EyeLike')
def eye(g, op):
    return op, [g.value(rank=2)], some(g, k=int(g.rng.randint(-6, 7)), dtype=int(choice(g, 1, 6, 7, 11))), 1


@operator('ConstantOfShape')
def filled(g, op):
    value = numpy_helper.from_array(np.array([3], choice(g, F32, I64, np.uint8, np.int8, np.float64)))
    return op, [g.const(np.array(g.shape(int(g.rng.randint(1, 4))), I64))], some(g, value=value), 1


@operator('Det')
def determinant(g, op):
    n = int(g.rng.randint(1, 6))
    return op, [g.feed(g.array(F32, g.shape(int(g.rng.randint(0, 3))) + (n, n)))], {}, 1


@operator('GroupNormalization')
def group_norm(g, op):
    groups = int(g.rng.randint(1, 5))
    channels = groups * int(g.rng.randint(1, 4))
    a = g.feed(g.array(F32, (int(g.rng.randint(1, 3)), channels) + g.shape(int(g.rng.randint(1, 4)))))
    return op, [a, g.const(g.array(F32, (channels,))), g.const(g.array(F32, (channels,)))], dict(num_groups=groups, **some(g, epsilon=0.01)), 1


@operator('ConvInteger')
def conv_integer(g, op):
    spatial, group = int(g.rng.randint(1, 3)), int(choice(g, 1, 1, 2, 3))
    kernel = tuple(int(i) for i in g.rng.randint(1, 4, spatial))
    dtype = choice(g, np.uint8, np.int8)
    extents = tuple(int(k + g.rng.randint(4, 9)) for k in kernel)
    a = g.feed(g.array(dtype, (2, 2 * group) + extents, -100, 100))
    w = g.const(g.array(choice(g, np.uint8, np.int8), (3 * group, 2) + kernel, -100, 100))
    zeros = [g.const(np.array(5, dtype)), g.const(np.array(2, g.values[w].dtype))][:g.rng.randint(0, 3)]
    return op, [a, w] + zeros, dict(group=group, **window(g, spatial)), 1


@operator('MatMulInteger', 'QLinearMatMul')
def matmul_integer(g, op):
    m, k, n = g.shape(3)
    lead = choice(g, (), (2,), (3, 1))
    types = choice(g, np.uint8, np.int8), choice(g, np.uint8, np.int8)
    a, b = g.feed(g.array(types[0], lead + (m, k), -100, 100)), g.const(g.array(types[1], (k, n), -100, 100))
    zeros = [np.array(3, types[0]), g.array(types[1], (n,), -9, 9) if g.rng.rand() < 0.5 else np.array(-1 if types[1] == np.int8 else 1, types[1])]
    if op == 'MatMulInteger':
        return op, [a, b] + [g.const(z) for z in zeros][:g.rng.randint(0, 3)], {}, 1
    scale = np.full(zeros[1].shape, 0.0625, F32)
    return op, [a, g.const(np.array(0.03125, F32)), g.const(zeros[0]), b, g.const(scale), g.const(zeros[1]), g.const(np.array(1.5, F32)),
                g.const(np.array(7, types[0]))], {}, 1


@operator('RoiAlign', 'MaxRoiPool')
def roi(g, op):
    a = g.feed(g.array(F32, (2, 3, int(g.rng.randint(4, 12)), int(g.rng.randint(4, 12)))))
    count = int(g.rng.randint(1, 5))
    corner, extent = g.array(F32, (count, 2), -1, 8), g.array(F32, (count, 2), 0, 9)
    boxes = np.concatenate([corner, corner + extent], 1)
    scale = float(choice(g, 1.0, 0.5, 0.25))
    if op == 'MaxRoiPool':
        boxes = np.concatenate([g.rng.randint(0, 2, (count, 1)).astype(F32), np.abs(np.round(boxes))], 1)
        return op, [a, g.feed(boxes)], dict(pooled_shape=[int(v) for v in g.rng.randint(1, 5, 2)], **some(g, spatial_scale=scale)), 1
    attrs = some(g, output_height=int(g.rng.randint(1, 5)), output_width=int(g.rng.randint(1, 5)), sampling_ratio=int(g.rng.randint(0, 4)),
                 spatial_scale=scale, mode=choice(g, 'avg', 'max'), coordinate_transformation_mode=choice(g, 'half_pixel', 'output_half_pixel'))
    return op, [a, g.feed(boxes), g.feed(g.rng.randint(0, 2, count).astype(I64))], attrs, 1


@operator('MaxUnpool')
def unpool(g, op):
    h, w = (int(v) for v in g.rng.randint(1, 5, 2))
    places = np.stack([np.sort(g.rng.choice(4 * h * w, h * w, replace=False)) + 4 * h * w * i for i in range(6)])
    a = g.feed(g.array(F32, (2, 3, h, w)))
    return op, [a, g.feed(places.reshape(2, 3, h, w).astype(I64))], dict(kernel_shape=[2, 2], strides=[2, 2]), 1


@operator('NonMaxSuppression')
def suppression(g, op):
    count = int(g.rng.randint(1, 12))
    centre = int(g.rng.randint(0, 2))  # then extents follow, which are not negative
    boxes = g.array(F32, (2, count, 4), 0 if centre else -2, 6)
    operands = [g.feed(boxes), g.feed(g.array(F32, (2, 3, count), 0, 1))]
    limits = [np.array([g.rng.randint(0, 6)], I64), np.array([choice(g, 0.0, 0.3, 0.5, 1.0)], F32), np.array([choice(g, 0.0, 0.4)], F32)]
    return op, operands + [g.const(v) for v in limits[:g.rng.randint(0, 4)]], dict(center_point_box=1) if centre else {}, 1


@operator('Unique')
def unique(g, op):
    a = g.feed(g.array(choice(g, F32, I64), g.shape(int(g.rng.randint(1, 4))), -2, 2))
    return op, [a], some(g, sorted=int(g.rng.randint(0, 2)), axis=axis_of(g, a)), 4


@operator('Compress')
def compress(g, op):
    a = g.value()
    attrs = some(g, axis=axis_of(g, a))
    extent = g.values[a].shape[attrs['axis']] if attrs else g.values[a].size
    return op, [a, g.feed(g.rng.rand(int(g.rng.randint(1, extent + 1))) < 0.5)], attrs, 1


@operator('HannWindow', 'HammingWindow', 'BlackmanWindow')
def windowing(g, op):
    return op, [g.const(np.array(g.rng.randint(1, 40), choice(g, I64, np.int32)))], some(g, periodic=int(g.rng.randint(0, 2))), 1


@operator('MelWeightMatrix')
def mel(g, op):
    bins, length = int(g.rng.randint(1, 12)), int(choice(g, 16, 64, 101))
    values = (bins, I64), (length, I64), (8000, I64), (choice(g, 0.0, 100.0), F32), (choice(g, 2000.0, 4000.0), F32)
    return op, [g.const(np.array(v, t)) for v, t in values], {}, 1


@operator('Col2Im')
def col2im(g, op):
    attrs, kernel = window(g, 2), [int(i) for i in g.rng.randint(1, 4, 2)]
    shape = [int(k + g.rng.randint(2, 6)) for k in kernel]
    d, s, p = attrs.get('dilations', [1, 1]), attrs.get('strides', [1, 1]), attrs.get('pads', [0] * 4)
    blocks = [(shape[i] + p[i] + p[i + 2] - d[i] * (kernel[i] - 1) - 1) // s[i] + 1 for i in range(2)]
    if min(blocks) < 1:
        return None
    a = g.feed(g.array(F32, (2, 3 * kernel[0] * kernel[1], blocks[0] * blocks[1])))
    attrs = {k: v for k, v in attrs.items() if k in ('dilations', 'strides', 'pads')}
    return op, [a, g.const(np.array(shape, I64)), g.const(np.array(kernel, I64))], attrs, 1


@operator('CenterCropPad')
def crop(g, op):
    a = g.value(least=2)
    axes = sorted(int(i) for i in g.rng.choice(g.values[a].ndim, 2, replace=False))
    return op, [a, g.const(g.rng.randint(1, 12, 2).astype(I64))], dict(axes=axes), 1


@operator('AffineGrid')
def affine(g, op):
    spatial = int(g.rng.randint(2, 4))
    shape = np.array((2, 3) + g.shape(spatial), I64)
    one = 1 in shape[2:]  # where corners of one point are is not said, and differs from peer to peer
    return op, [g.feed(g.array(F32, (2, spatial, spatial + 1))), g.const(shape)], {} if one else some(g, align_corners=1), 1


@operator('NegativeLogLikelihoodLoss', 'SoftmaxCrossEntropyLoss')
def loss(g, op):
    n, c = (int(v) for v in g.rng.randint(1, 6, 2))
    rest = g.shape(int(g.rng.randint(0, 3)))
    operands = [g.feed(g.array(F32, (n, c) + rest)), g.feed(g.rng.randint(0, c, (n,) + rest).astype(choice(g, I64, np.int32)))]
    if g.rng.rand() < 0.5:
        operands.append(g.const(g.array(F32, (c,), 0.25, 2)))
    return op, operands, some(g, reduction=choice(g, 'none', 'sum', 'mean'), ignore_index=int(g.rng.randint(-1, c))), 1


@operator('QuantizeLinear ', 'DequantizeLinear ')  # with a scale per index of an axis, or per block
def quantize_parts(g, op):
    op = op.strip()
    a_type = F32 if op == 'QuantizeLinear' else choice(g, np.uint8, np.int8)
    a = g.feed(g.array(a_type, tuple(2 * d for d in g.shape(int(g.rng.randint(1, 4))))))
    held = g.values[a]
    axis = axis_of(g, a)
    shape, attrs = (held.shape[axis],), dict(axis=axis)
    if g.rng.rand() < 0.5:
        attrs['block_size'] = 2
        shape = tuple(d // 2 if i == axis % held.ndim else d for i, d in enumerate(held.shape))
    q = a_type if op == 'DequantizeLinear' else choice(g, np.uint8, np.int8)
    scale = g.const((2.0 ** -g.rng.randint(0, 6, shape)).astype(F32))
    return op, [a, scale] + ([g.const(g.array(q, shape, 0, 9))] if g.rng.rand() < 0.8 else []), attrs, 1
