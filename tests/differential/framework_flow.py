"""More cases of framework_peer.py: branches, loops, scans, sequences, optional values, and operators that exporters write rarely."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

from framework_models import F32, I32, I64, Graph, case, conv, dim, floats, kind, linear, listed, numbers


def inner(prefix, build, outer):
    """A graph for a branch or a loop, with names of its own: build(graph)."""
    g = Graph(outer.rng.randint(1 << 30))
    outer.count += 1000
    g.count = outer.count
    build(g)
    return g.graph(prefix)


def sequence_info(name, dtype=F32):
    return helper.make_tensor_sequence_value_info(name, kind(dtype), None)


@case
def branches():
    """If in If, of values and of shapes; branches that give other shapes, outer values, constants."""
    g = Graph(40)
    x, flag = g.input('x', ['n', 4]), g.input('flag', [], np.bool_)
    total = g.add('ReduceSum', x, keepdims=0)
    w = g.const(g.weight(4, 4), 'W')

    def deep(b):
        big = b.add('Greater', total, np.array(5, F32))
        yes = inner('most', lambda c: c.output(c.add('MatMul', x, w)), b)
        no = inner('least', lambda c: c.output(c.add('Neg', x)), b)
        b.output(b.add('Relu', b.add('If', big, then_branch=yes, else_branch=no)))
        b.output(b.add('Shape', x), I64)

    def flat(b):
        b.output(b.add('Slice', x, b.ints(0), b.ints(1), b.ints(0)))
        b.output(b.add('Identity', b.ints(7, 7)), I64)
    y, s = g.add('If', flag, then_branch=inner('then', deep, g), else_branch=inner('else', flat, g), count=2)
    g.output(g.add('Mul', y, np.array(2, F32)))
    g.output(s, I64)
    positive = g.add('Greater', total, np.array(0, F32))
    z = g.add('If', positive, then_branch=inner('a', lambda b: b.output(b.add('Reshape', x, b.ints(-1))), g),
              else_branch=inner('b', lambda b: b.output(b.add('ReduceMax', x, axes=[1], keepdims=0)), g))
    g.output(z)
    return g.model(13), [{'x': floats(i, n, 4) + F32(o), 'flag': np.array(f)} for i, (n, o, f) in enumerate(((2, 0, True), (3, 2, True), (1, -1, False), (5, 1, False)))]


@case
def loops():
    """A counted one with scan outputs, a while, a nest whose inner loop has no iteration at first."""
    g = Graph(41)
    x, n = g.input('x', ['b', 3]), g.input('n', [], I64)

    def counted(b):
        i, go, c = b.input('i%d' % b.count, [], I64), b.input('go%d' % b.count, [], np.bool_), b.input('c%d' % b.count, None)
        y = b.add('Add', b.add('MatMul', c, b.const(b.weight(3, 3))), x)
        b.output(b.add('Identity', go), np.bool_)
        b.output(y)
        b.output(b.add('ReduceSum', y, b.ints(1), keepdims=0))
        b.output(b.add('Mul', i, np.array(2, I64)), I64)
    y, rows, twice = g.add('Loop', n, np.array(True), x, body=inner('counted', counted, g), count=3)
    g.output(y)
    g.output(rows)
    g.output(twice, I64)

    def until(b):
        b.input('i%d' % b.count, [], I64)
        b.input('go%d' % b.count, [], np.bool_)
        c = b.input('c%d' % b.count, None)
        d = b.add('Mul', c, np.array(1.5, F32))
        b.output(b.add('Less', b.add('ReduceMax', b.add('Abs', d), keepdims=0), np.array(10, F32)), np.bool_)
        b.output(d)
    g.output(g.add('Loop', '', np.array(True), x, body=inner('until', until, g)))

    def growing(b):
        i = b.input('i%d' % b.count, [], I64)
        go, c = b.input('go%d' % b.count, [], np.bool_), b.input('c%d' % b.count, None)
        at = b.count

        def inside(d):
            j = d.input('j%d' % at, [], I64)
            again, s = d.input('again%d' % at, [], np.bool_), d.input('s%d' % at, None)
            d.output(d.add('Identity', again), np.bool_)
            d.output(d.add('Add', s, d.add('Cast', d.add('Mul', i, j), to=TensorProto.FLOAT)))
        row = b.add('Loop', i, np.array(True), x, body=inner('inside', inside, b))
        b.output(b.add('Identity', go), np.bool_)
        b.output(b.add('Concat', c, row, axis=0))
    g.output(g.add('Loop', n, np.array(True), x, body=inner('growing', growing, g)))
    return g.model(13), [{'x': floats(i, b, 3), 'n': np.array(k, I64)} for i, (b, k) in enumerate(((2, 3), (1, 2), (3, 5), (2, 1)))]


@case
def scans():
    """Forward and backward, over other axes, with two states."""
    g = Graph(42)
    x, h = g.input('x', ['t', 2, 3]), g.input('h', [2, 4])

    def step(b):
        s, k, v = b.input('s', [2, 4]), b.input('k', [2, 4]), b.input('v', [2, 3])
        y = b.add('Tanh', b.add('Add', b.add('MatMul', v, b.const(b.weight(3, 4))), b.add('MatMul', s, b.const(b.weight(4, 4)))))
        b.output(y)
        b.output(b.add('Add', k, y))
        b.output(b.add('Mul', y, np.array(2, F32)))
        b.output(b.add('ReduceSum', y, keepdims=0))
    for options in ({}, dict(scan_input_directions=[1], scan_output_directions=[0, 1])):
        for o in g.add('Scan', h, h, x, body=inner('step', step, g), num_scan_inputs=1, count=4, **options):
            g.output(o)
    turned = g.add('Transpose', x, perm=[1, 2, 0])
    for o in g.add('Scan', h, h, turned, body=inner('step', step, g), num_scan_inputs=1, count=4, scan_input_axes=[2], scan_output_axes=[1, 0]):
        g.output(o)
    return g.model(16), [{'x': floats(t, t, 2, 3), 'h': floats(9, 2, 4)} for t in (4, 1, 7)]


@case
def sequences():
    """Split to a sequence, grown in a loop, read, joined; lengths known only in the run."""
    g = Graph(43)
    x, at = g.input('x', ['n', 4]), g.input('at', [], I64)
    parts = g.add('SplitToSequence', x, np.array(2, I64), axis=0)
    g.output(g.add('SequenceLength', parts), I64)
    g.output(g.add('SequenceAt', parts, at))
    g.output(g.add('ConcatFromSequence', g.add('SequenceInsert', parts, x, np.array(0, I64)), axis=0))
    g.output(g.add('ConcatFromSequence', g.add('SequenceErase', g.add('SequenceInsert', parts, x), at), axis=0))
    rows = g.add('SplitToSequence', x, axis=0, keepdims=0)
    g.output(g.add('ConcatFromSequence', rows, axis=0, new_axis=1))
    pair = g.add('SequenceConstruct', x, g.add('Neg', x))
    g.output(g.add('ConcatFromSequence', pair, axis=-1))
    empty = g.add('SequenceEmpty')

    def grow(b):
        i, go = b.input('i', [], I64), b.input('go', [], np.bool_)
        b.inputs.append(sequence_info('grown'))
        row = b.add('Gather', x, i)
        name = b.add('SequenceInsert', 'grown', b.add('Mul', row, b.add('Cast', i, to=TensorProto.FLOAT)))
        b.output(b.add('Identity', go), np.bool_)
        b.outputs.append(sequence_info(name))
    made = g.add('Loop', g.add('Gather', g.add('Shape', x), np.array(0, I64)), np.array(True), empty, body=inner('grow', grow, g))
    g.output(g.add('ConcatFromSequence', made, axis=0, new_axis=1))
    g.outputs.append(sequence_info(made))
    return g.model(13), [{'x': floats(n, n, 4), 'at': np.array(a, I64)} for n, a in ((4, 0), (5, -1), (1, 0), (8, 2))]


@case
def beam_search_step():
    """TopK, Gather of caches by beams, Where of finished ones, Mod and Div of indices."""
    g = Graph(44)
    logits, scores = g.input('logits', ['bk', 30]), g.input('scores', ['b', 'k'])
    cache, done = g.input('cache', ['bk', 2, 't', 4]), g.input('done', ['b', 'k'], np.bool_)
    b, k = dim(g, scores, 0), dim(g, scores, 1)
    p = g.add('Reshape', g.add('LogSoftmax', logits, axis=-1), listed(g, b, k, 30))
    p = g.add('Where', g.add('Unsqueeze', done, g.ints(2)), np.array(-1e9, F32), p)
    both = g.add('Reshape', g.add('Add', p, g.add('Unsqueeze', scores, g.ints(2))), listed(g, b, -1))
    best, at = g.add('TopK', both, g.add('Unsqueeze', k, g.ints(0)), axis=1, count=2)
    beam, token = g.add('Div', at, np.array(30, I64)), g.add('Mod', at, np.array(30, I64))
    row = g.add('Add', beam, g.add('Mul', g.add('Unsqueeze', g.add('Range', np.array(0, I64), b, np.array(1, I64)), g.ints(1)), k))
    g.output(best)
    g.output(token, I64)
    g.output(g.add('Gather', cache, g.add('Reshape', row, g.ints(-1)), axis=0))
    g.output(g.add('Or', g.add('GatherElements', done, beam, axis=1), g.add('Equal', token, np.array(2, I64))), np.bool_)
    return g.model(13), [{'logits': floats(i, n * m, 30, low=-3, high=3), 'scores': floats(i, n, m), 'cache': floats(i, n * m, 2, t, 4),
                          'done': numbers(i, 0, 2, (n, m)).astype(np.bool_)} for i, (n, m, t) in enumerate(((1, 3, 2), (2, 4, 5), (1, 1, 1)))]


@case
def detection_post():
    """As detectors end: NonZero of scores over a threshold, GatherND, NonMaxSuppression per class, TopK of a computed count, Compress, Unique."""
    g = Graph(45)
    boxes, scores = g.input('boxes', ['n', 4]), g.input('scores', ['n', 3])
    keep = g.add('NonZero', g.add('Greater', scores, np.array(0.3, F32)))
    pairs = g.add('Transpose', keep, perm=[1, 0])
    value = g.add('GatherND', scores, pairs)
    g.output(value)
    picked = g.add('Gather', boxes, g.add('Squeeze', g.add('Slice', keep, g.ints(0), g.ints(1), g.ints(0)), g.ints(0)))
    shifted = g.add('Add', picked, g.add('Mul', g.add('Cast', g.add('Slice', pairs, g.ints(1), g.ints(2), g.ints(1)), to=TensorProto.FLOAT), np.array(100, F32)))
    count = g.add('Min', g.add('Shape', value), g.ints(3))
    top, at = g.add('TopK', value, count, count=2)
    g.output(top)
    g.output(g.add('Gather', shifted, at))
    nms = g.add('NonMaxSuppression', g.add('Unsqueeze', shifted, g.ints(0)), g.add('Unsqueeze', value, g.ints(0, 1)), g.ints(4), np.array([0.5], F32))
    g.output(nms, I64)
    g.output(g.add('Compress', boxes, g.add('Greater', g.add('ReduceMax', scores, axes=[1], keepdims=0), np.array(0.5, F32)), axis=0))
    for o, t in zip(g.add('Unique', g.add('Squeeze', g.add('Slice', keep, g.ints(1), g.ints(2), g.ints(0)), g.ints(0)), sorted=1, count=4), (I64,) * 4):
        g.output(o, t)
    def corners(i, n):
        a = floats(i, n, 4, low=0, high=10)
        a[:, 2:] = a[:, :2] + np.abs(a[:, 2:])
        return a
    return g.model(13), [{'boxes': corners(n, n), 'scores': floats(n, n, 3, low=0, high=s)} for n, s in ((6, 1), (1, 1), (20, 0.8), (5, 0.2))]


@case
def audio_front():
    """STFT with a window, a mel product, log, per-utterance norms; DFT both ways."""
    g = Graph(46)
    x = g.input('signal', [1, 'samples'])
    window = np.hanning(64).astype(F32)
    s = g.add('STFT', g.add('Unsqueeze', x, g.ints(2)), np.array(32, I64), g.const(window), np.array(64, I64), onesided=1)
    power = g.add('ReduceSum', g.add('Mul', s, s), g.ints(3), keepdims=0)
    mel = g.add('MatMul', power, np.abs(g.weight(33, 10)))
    y = g.add('Log', g.add('Add', mel, np.array(1e-6, F32)))
    mean = g.add('ReduceMean', y, g.ints(1), keepdims=1)
    centred = g.add('Sub', y, mean)
    g.output(g.add('Div', centred, g.add('Add', g.add('Sqrt', g.add('ReduceMean', g.add('Mul', centred, centred), g.ints(1))), np.array(1e-5, F32))))
    g.output(g.add('Transpose', y, perm=[0, 2, 1]))
    g.output(g.add('DFT', g.add('Unsqueeze', x, g.ints(2)), '', np.array(1, I64), onesided=1))
    return g.model(20, 9), [{'signal': floats(n, 1, n)} for n in (256, 160, 999)]


@case
def newer_operators():
    """Attention, RotaryEmbedding, RMSNormalization, Swish of opsets 23 and 24; GroupNormalization, Mish, BitwiseAnd, Col2Im, CenterCropPad."""
    g = Graph(47)
    q, k, mask = g.input('q', [2, 3, 'n', 8]), g.input('k', [2, 1, 'm', 8]), g.input('mask', ['n', 'm'], np.bool_)
    g.output(g.add('Attention', q, k, k))
    g.output(g.add('Attention', q, k, k, mask, softcap=2.0, scale=0.3))
    g.output(g.add('Attention', q, k, k, is_causal=1))
    g.output(g.add('RMSNormalization', q, g.weight(8, scale=1), axis=-1))
    g.output(g.add('GroupNormalization', q, g.weight(3), g.weight(3), num_groups=3))
    g.output(g.add('Mish', q))
    g.output(g.add('Gelu', q, approximate='tanh'))
    g.output(g.add('CenterCropPad', q, g.ints(5, 4), axes=[2, 3]))
    cos, sin = floats(1, 64, 4), floats(2, 64, 4)
    ids = g.add('Expand', g.add('Unsqueeze', g.add('Range', np.array(0, I64), dim(g, q, 2), np.array(1, I64)), g.ints(0)), listed(g, 2, dim(g, q, 2)))
    g.output(g.add('RotaryEmbedding', q, cos, sin, ids))
    return g.model(23, 11), [{'q': floats(n, 2, 3, n, 8), 'k': floats(m, 2, 1, m, 8), 'mask': numbers(n, 0, 2, (n, m)).astype(np.bool_) | (np.arange(m) == 0)}
                             for n, m in ((4, 4), (1, 6), (5, 7))]


@case
def scatters():
    """ScatterElements and ScatterND with every reduction, negative indices, and updates that come of values."""
    g = Graph(48)
    x, at = g.input('x', ['n', 5]), g.input('at', ['m', 2], I64)
    u = g.input('u', ['m', 2])
    for reduction in ('none', 'add', 'mul', 'max', 'min'):
        if reduction != 'none':
            g.output(g.add('ScatterElements', x, at, u, axis=1, reduction=reduction))
        rows = g.add('Slice', at, g.ints(0), g.ints(1), g.ints(1))
        wide = g.add('Expand', g.add('Slice', u, g.ints(0), g.ints(1), g.ints(1)), listed(g, dim(g, u, 0), 5))
        if reduction != 'none':
            g.output(g.add('ScatterND', x, rows, wide, reduction=reduction))
    g.output(g.add('GatherND', x, g.add('Slice', at, g.ints(0), g.ints(1), g.ints(1))))
    g.output(g.add('GatherElements', x, at, axis=1))
    g.output(g.add('OneHot', g.add('Reshape', at, g.ints(-1)), np.array(5, I64), np.array([-1, 2], F32), axis=0))
    g.output(g.add('Trilu', x, np.array(1, I64), upper=0))
    g.output(g.add('EyeLike', x, k=-1))
    g.output(g.add('ReverseSequence', x, g.add('ConstantOfShape', g.add('Slice', g.add('Shape', x), g.ints(0), g.ints(1)), value=numpy_helper.from_array(np.array([3], I64))),
                   batch_axis=0, time_axis=1))
    return g.model(18), [{'x': floats(n, n, 5), 'at': numbers(m, -n, n, (m, 2)), 'u': floats(m, m, 2)} for n, m in ((3, 2), (4, 4), (1, 1))]


@case
def image_front():
    """uint8 pictures, NHWC: Cast, Transpose, Resize of several kinds to computed sizes, Crop, normalise; ArgMax back to uint8."""
    g = Graph(49)
    x = g.input('picture', [1, 'h', 'w', 3], np.uint8)
    y = g.add('Transpose', g.add('Cast', x, to=TensorProto.FLOAT), perm=[0, 3, 1, 2])
    y = g.add('Div', g.add('Sub', y, np.array([120, 115, 100], F32).reshape(1, 3, 1, 1)), np.array(58, F32))
    for mode, way, more in (('linear', 'half_pixel', {}), ('linear', 'pytorch_half_pixel', {}), ('cubic', 'half_pixel', dict(cubic_coeff_a=-0.5)),
                            ('cubic', 'align_corners', {}), ('nearest', 'half_pixel', dict(nearest_mode='round_prefer_floor')), ('linear', 'half_pixel', dict(antialias=1))):
        z = g.add('Resize', y, '', '', g.ints(1, 3, 7, 9), mode=mode, coordinate_transformation_mode=way, **more)
        g.output(z)
    z = conv(g, z, 3, 5)
    g.output(g.add('Cast', g.add('ArgMax', z, axis=1, keepdims=0), to=TensorProto.UINT8), np.uint8)
    g.output(g.add('Resize', y, '', np.array([1.5, 0.7], F32), axes=[2, 3], mode='linear'))
    g.output(g.add('SpaceToDepth', g.add('Slice', y, g.ints(0, 0), g.ints(4, 4), g.ints(2, 3)), blocksize=2))
    g.output(g.add('DepthToSpace', g.add('Concat', y, y, y, y, axis=1), blocksize=2, mode='CRD'))
    g.output(g.add('LpPool', y, kernel_shape=[2, 3], p=2, strides=[2, 1]))
    g.output(g.add('LRN', y, size=3, alpha=0.1))
    g.output(g.add('MeanVarianceNormalization', y))
    g.output(g.add('GlobalMaxPool', y))
    return g.model(18), [{'picture': numbers(h, 0, 256, (1, h, w, 3), np.uint8)} for h, w in ((8, 10), (5, 4), (17, 30))]


@case
def integers():
    """Arithmetic of every integer type, with wrap-around; comparisons, shifts, Mod by sign, Pow."""
    g = Graph(50)
    feed = {}
    for i, t in enumerate((np.int8, np.uint8, np.int16, np.uint16, I32, I64, np.uint32, np.uint64)):
        low = 0 if np.dtype(t).kind == 'u' else -20
        feed[g.input('a%d' % i, ['n', 5], t)] = numbers(i, low, 21, (3, 5), t)
        feed[g.input('b%d' % i, [5], t)] = numbers(i + 9, 1, 6, (5,), t)
        a, b = 'a%d' % i, 'b%d' % i
        for op in ('Add', 'Sub', 'Mul', 'Div', 'Mod', 'BitwiseXor', 'BitwiseAnd') + (('Max', 'Min') if np.dtype(t).itemsize >= 4 else ()):
            g.output(g.add(op, a, b), t)
        g.output(g.add('BitwiseNot', a), t)
        g.output(g.add('Less', a, b), np.bool_)
        g.output(g.add('Equal', a, b), np.bool_)
        if low == 0:
            g.output(g.add('BitShift', a, b, direction='LEFT'), t)
        if t in (I32, I64):
            for op in ('ReduceSum', 'ReduceProd', 'ReduceMax'):
                g.output(g.add(op, b if op == 'ReduceProd' else a, *([g.ints(1)] if op == 'ReduceSum' else []), ), t)
            g.output(g.add('Abs', a), t)
            g.output(g.add('Clip', a, np.array(-3, t), np.array(9, t)), t)
            g.output(g.add('CumSum', a, np.array(1, I32)), t)
            g.output(g.add('TopK', a, g.ints(2), count=2)[0], t)
            g.output(g.add('Pow', a, g.const(np.array(2, t))), t)
            g.output(g.add('Mod', a, b, fmod=1), t)
    return g.model(18), [feed]
