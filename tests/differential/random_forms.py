#!/usr/bin/env python3
"""Random models in the forms that files have beside the newest one, in Berth and in ONNX Runtime.

    python3 -m pip install onnxruntime onnx numpy
    scripts/build.sh release
    tests/differential/random_forms.py [--seed 1] [--count 200] [--only NAME[,NAME]] [--target cpu] [--keep FOLDER]

Operators of opsets 1 to 6, with their broadcast, axis and consumed_inputs (ONNX Runtime, which has few of them, gets the same in today's form),
functions of the model, values in files of their own, quantised parts with types and axes mixed, numbers of 8 and 4 bits, strings, sequences and
optional values through branches and loops, scans of several states. Ends with 1 when anything differed or was refused. Not in the test run, which
has no ONNX Runtime: see README.md beside this file.
"""
import os

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from draws import F32, I8, I32, I64, U8, main

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def info(name, dtype=TensorProto.FLOAT, shape=None):
    return helper.make_tensor_value_info(name, dtype, shape)


def ints(d, *values):
    return d.const(np.array(values, I64))


CONSUMING = ('Abs Add BatchNormalization Ceil Clip Div Dropout Elu Exp Floor HardSigmoid InstanceNormalization LeakyRelu Log Max Mean Min Mul Neg PRelu '
             'Reciprocal Relu Reshape Selu Sigmoid Sqrt Sub Sum Tanh').split()


# -- opsets 1 to 6: the form of the time, and the same of today
def old(d, version, op, inputs, now, outputs=1, **attrs):
    """now(t): the names of today's results, of t's nodes."""
    if version < 6 and op in CONSUMING and d.chance():
        attrs['consumed_inputs'] = [0] * len(inputs)
    results = d.node(op, inputs, outputs, '', **attrs)
    d.opset, d.ir = version, d.choice(3, 4)
    t = d.beside(13)
    for made, wanted in zip(now(t), results):
        t.nodes.append(helper.make_node('Identity', [made], [wanted]))
    return results


def today(op, *inputs, outputs=1, **attrs):
    return lambda t: t.node(op, list(inputs), outputs, '', **attrs)


@case
def old_broadcast(d):
    """B along an axis of A, or at its end; operators of two."""
    op = d.choice('Add', 'Sub', 'Mul', 'Div', 'Pow', 'Less', 'Greater', 'Equal', 'And')
    dtype = {'And': np.bool_, 'Equal': I32}.get(op, F32)
    low, high = (1, 3) if dtype == I32 else (0.5, 2.0)
    dims = ['b', 's', 4, 3][:d.choice(2, 3, 4)]
    first = int(d.rng.integers(len(dims)))
    last = int(d.rng.integers(first, len(dims))) + 1
    part = dims[first:last] if d.chance(0.9) else []
    x, y = d.input(*dims, dtype=dtype, low=low, high=high), d.input(*part, dtype=dtype, low=low, high=high)
    attrs = dict(broadcast=1)
    if last < len(dims) and part or d.chance():
        attrs['axis'] = first if part else 0
    behind = len(dims) - last if part else 0

    def now(t):
        z = t.node('Unsqueeze', [y, ints(t, *range(len(part), len(part) + behind))], 1, '')[0] if behind else y
        return t.node(op, [x, z], 1, '')
    if op in ('Less', 'Greater', 'Equal', 'And'):
        version = d.choice(1, 6)
        return old(d, version, op, [x, y], now, **attrs)
    return old(d, d.choice(1, 5, 6), op, [x, y], now, **attrs)


@case
def old_unary(d):
    op = d.choice('Relu', 'Sigmoid', 'Tanh', 'Exp', 'Sqrt', 'Log', 'Abs', 'Neg', 'Floor', 'Ceil', 'Reciprocal', 'Elu', 'LeakyRelu', 'HardSigmoid', 'Selu',
                  'Clip', 'PRelu', 'Softplus', 'Softsign')
    x = d.input('b', 3, 's', low=0.2, high=3.0) if op in ('Sqrt', 'Log', 'Reciprocal') else d.input('b', 3, 's', low=-3.0, high=3.0)
    version, more = d.choice(1, 5, 6), {}
    if op in ('Elu', 'LeakyRelu', 'HardSigmoid'):
        more = d.some(alpha=0.3)
    if op == 'HardSigmoid':
        more.update(d.some(beta=0.4))
    if op == 'Selu':
        more = d.some(alpha=1.5, gamma=1.1)
    if op == 'Clip':
        more = d.some(min=-1.0, max=0.75)
        bounds = [t if t == '' else d.const(F32(t)) for t in (more.get('min', ''), more.get('max', ''))]
        return old(d, version, op, [x], today('Clip', x, *bounds), **more)
    if op == 'PRelu':
        slope = d.weight(*d.choice((3,), (1,)))
        return old(d, version, op, [x, slope], lambda t: t.node('PRelu', [x, t.node('Unsqueeze', [slope, ints(t, 1)], 1, '')[0]], 1, ''))
    return old(d, version, op, [x], today(op, x, **more), **more)


@case
def old_many(d):
    op = d.choice('Sum', 'Mean', 'Max', 'Min')
    xs = [d.input('b', 3, 's') for _ in range(d.choice(1, 2, 3))]
    return old(d, d.choice(1, 5, 6), op, xs, today(op, *xs))


@case
def old_normalisation(d):
    x, c = d.input('b', 4, 's', 3), 4
    if d.chance(0.3):
        scale, bias = d.weight(c), d.weight(c)
        more = d.some(epsilon=1e-3)
        return old(d, d.choice(1, 5, 6), 'InstanceNormalization', [x, scale, bias], today('InstanceNormalization', x, scale, bias, **more), **more)
    parts = [d.weight(c), d.weight(c), d.weight(c), d.weight(c, low=0.5, high=2.0)]
    more, version = d.some(epsilon=1e-3, momentum=0.8), d.choice(1, 5, 6, 7, 8)
    attrs = dict(more, **({'is_test': 1} if version < 7 else {}), **(d.some(spatial=1) if version < 9 else {}))
    if version < 6:
        attrs['consumed_inputs'] = [0, 0, 0, 1, 1]
    results = d.node('BatchNormalization', [x] + parts, 1, '', **attrs)
    d.opset, d.ir = version, 3
    d.beside(13).nodes.append(helper.make_node('BatchNormalization', [x] + parts, results, **more))
    return results


@case
def old_dropout(d):
    x = d.input('b', 's', 4)
    version = d.choice(1, 6, 7, 10, 12)
    if version < 7:
        return old(d, version, 'Dropout', [x], today('Identity', x), ratio=0.3, is_test=1)
    d.opset, d.ir = version, 6
    mask = version >= 12 and d.chance()  # before, ONNX Runtime says that nothing is kept
    return d.node('Dropout', [x], 2 if mask else 1, '', **({} if version >= 12 else d.some(ratio=0.3)))


@case
def old_shape(d):
    """What is an operand today was an attribute."""
    op = d.choice('Reshape', 'Pad', 'Slice', 'Squeeze', 'Unsqueeze', 'Split', 'Concat', 'Tile', 'Cast', 'TopK', 'ReduceSum', 'ReduceMax', 'Upsample', 'ArgMax', 'Transpose',
                  'Flatten', 'Softmax')
    x = d.input('b', 4, 's', 3)
    if op == 'Reshape':
        shape = d.choice([0, -1], [-1, 12], [0, 2, 2, -1], [-1])
        return old(d, d.choice(1, 4), op, [x], today(op, x, ints(d, *shape)), shape=shape)
    if op == 'Pad':
        pads, mode = [0, 1, 0, 2, 0, 0, 0, 1], d.choice('constant', 'reflect', 'edge')
        version, value = d.choice(1, 2, 6), d.choice({}, {'value': 0.5})
        padded = today(op, x, ints(d, *pads), *([d.const(F32(0.5))] if value else []), mode=mode)
        return old(d, version, op, [x], padded, mode=mode, **{'paddings' if version == 1 else 'pads': pads}, **value)
    if op == 'Slice':
        starts, ends, axes = d.choice(([1], [3], [1]), ([0, -2], [1, 1000], [0, 3]), ([0, 1], [1, -1], None))
        now = today(op, x, ints(d, *starts), ints(d, *ends), *([ints(d, *axes)] if axes else []))
        return old(d, d.choice(1, 6), op, [x], now, starts=starts, ends=ends, **({'axes': axes} if axes else {}))
    if op == 'Squeeze':
        x = d.input('b', 1, 's', 1)
        return old(d, d.choice(1, 6), op, [x], today(op, x, ints(d, 1, 3)), axes=[1, 3])
    if op == 'Unsqueeze':
        axes = d.choice([0], [1, 3], [4])
        return old(d, d.choice(1, 6), op, [x], today(op, x, ints(d, *axes)), axes=axes)
    if op == 'Split':
        if d.chance(0.3):  # of opset 1: lengths may be an operand
            lengths = d.const(np.array([1, 3], F32))
            d.opset = 1
            return old(d, 1, op, [x, lengths], lambda t: t.node(op, [x, ints(t, 1, 3)], 2, '', axis=1), 2, axis=1)
        return old(d, d.choice(1, 2, 6), op, [x], lambda t: t.node(op, [x, ints(t, 3, 1)], 2, '', axis=1), 2, axis=1, split=[3, 1])
    if op == 'Concat':
        y = d.input('b', 4, 's', 3)
        return old(d, d.choice(1, 3), op, [x, y], today(op, x, y, axis=1), **({} if d.opset == 1 and d.chance() else {'axis': 1}))
    if op == 'Tile':
        if d.chance():
            return old(d, 1, op, [x, d.const(np.array([2], F32)), d.const(np.array([3], F32))], today(op, x, ints(d, 1, 1, 1, 2)))
        return old(d, 6, op, [x, ints(d, 1, 2, 1, 3)], today(op, x, ints(d, 1, 2, 1, 3)))
    if op == 'Cast':
        to = d.choice('INT32', 'DOUBLE', 'FLOAT16', 'UINT8', 'BOOL')
        x = d.input('b', 4, low=0.0, high=100.0)
        version = d.choice(1, 5, 6)
        return old(d, version, op, [x], today(op, x, to=getattr(TensorProto, to)), to=to if version < 6 else getattr(TensorProto, to))
    if op == 'TopK':
        return old(d, 1, op, [x], lambda t: t.node(op, [x, ints(t, 2)], 2, '', axis=1), 2, k=2, axis=1)
    if op in ('ReduceSum', 'ReduceMax'):
        axes, keep = d.choice([1], [1, 3], None), d.choice(0, 1)
        more = {'axes': axes} if axes else {}
        now = (lambda t: t.node(op, [x] + ([ints(t, *axes)] if axes else []), 1, '', keepdims=keep)) if op == 'ReduceSum' else today(op, x, keepdims=keep, **more)
        return old(d, d.choice(1, 6), op, [x], now, keepdims=keep, **more)
    if op == 'Upsample':
        mode, version = d.choice('nearest', 'bilinear'), d.choice(1, 7, 7)
        scales = [1.0, 1.0, 2.0, 3.0]
        new = today('Resize', x, '', d.const(np.array(scales, F32)), mode='nearest' if mode == 'nearest' else 'linear', coordinate_transformation_mode='asymmetric',
                    nearest_mode='floor')
        attrs = dict(height_scale=2.0, width_scale=3.0) if version == 1 else dict(scales=scales)
        return old(d, version, op, [x], new, mode=mode if version == 1 or mode == 'nearest' else 'linear', **attrs)
    if op == 'ArgMax':
        return old(d, d.choice(1, 6), op, [x], today(op, x, axis=1, keepdims=0), axis=1, keepdims=0)
    if op == 'Transpose':
        return old(d, d.choice(1, 6), op, [x], today(op, x))
    if op == 'Flatten':
        return old(d, d.choice(1, 6), op, [x], today(op, x, axis=2), axis=2)
    axis = d.choice(1, 2)

    def flat(t):
        rows = t.node('Flatten', [x], 1, '', axis=axis)[0]
        return t.node('Reshape', [t.node('Softmax', [rows], 1, '', axis=1)[0], t.node('Shape', [x], 1, '')[0]], 1, '')
    return old(d, d.choice(1, 6), op, [x], flat, axis=axis)


@case
def old_layers(d):
    op = d.choice('Gemm', 'Conv', 'MaxPool', 'AveragePool', 'GlobalLpPool', 'LpPool', 'LRN', 'MatMul')
    if op == 'Gemm':
        turned, c = d.choice(0, 1), d.choice((5,), (1, 5), (1,))
        x, w, b = d.input('b', 6), d.weight(*((5, 6) if turned else (6, 5))), d.weight(*c)
        more = dict(transB=turned, **d.some(alpha=0.5, beta=2.0))
        return old(d, d.choice(1, 6), op, [x, w, b], today(op, x, w, b, **more), broadcast=1, **more)
    x = d.input('b', 4, 's', 9)
    if op == 'Conv':
        more = d.choice(dict(pads=[1, 1, 1, 1]), dict(auto_pad='SAME_UPPER', strides=[1, 2]), dict(auto_pad='SAME_LOWER'))
        w, b = d.weight(6, 4, 3, 3), d.weight(6)
        return old(d, d.choice(1, 6), op, [x, w, b], today(op, x, w, b, **more), **more)
    if op in ('MaxPool', 'AveragePool'):
        more = dict(kernel_shape=[1, 3], **d.choice({}, dict(strides=[1, 2]), dict(pads=[0, 1, 0, 1])))
        return old(d, d.choice(1, 6), op, [x], today(op, x, **more), **more)
    if op == 'GlobalLpPool':
        version = d.choice(1, 2)
        return old(d, version, op, [x], today(op, x, p=2), **d.some(p=2.0 if version == 1 else 2))
    if op == 'LpPool':
        return old(d, 2, op, [x], today(op, x, p=2, kernel_shape=[1, 3]), p=2, kernel_shape=[1, 3])
    if op == 'LRN':
        return old(d, d.choice(1, 6), op, [x], today(op, x, size=3, alpha=0.2), size=3, alpha=0.2)
    w = d.weight(9, 5)
    return old(d, d.choice(1, 6), op, [x, w], today(op, x, w))


@case
def experimental(d):
    """Operators that ONNX took out again, which ONNX Runtime keeps."""
    d.opset, d.ir = d.choice(1, 6, 7, 8), 3
    x, op = d.input('b', 3, 't', 9), d.choice('Affine', 'ImageScaler', 'ScaledTanh', 'ParametricSoftplus', 'ThresholdedRelu', 'Crop')
    if op == 'Crop':
        attrs = dict(border=[1, 1, 2, 1], **d.some(scale=[2, 3]))
    elif op == 'ImageScaler':
        attrs = dict(scale=0.5, bias=[0.1, -0.2, 0.3])
    else:
        attrs = dict(alpha=0.7, **({} if op == 'ThresholdedRelu' else {'beta': 0.4}))
    return d.node(op, [x], 1, '', **attrs)


@case
def recurrent_1(d):
    """Recurrent layers of opset 1 to 7, with what opset 7 took away."""
    op, gates = d.choice(('RNN', 1), ('GRU', 3), ('LSTM', 4))
    version, hidden, ways = d.choice(1, 3, 6, 7) if op == 'GRU' else d.choice(1, 6, 7), 5, d.choice(1, 2)
    x = d.input('s', 'b', 4)
    w = [d.weight(ways, gates * hidden, 4), d.weight(ways, gates * hidden, hidden), d.weight(ways, 2 * gates * hidden)]
    more = dict(hidden_size=hidden, direction='bidirectional' if ways == 2 else d.choice('forward', 'reverse'), **d.some(clip=0.8))
    if op == 'GRU' and version >= 3:
        more.update(d.some(linear_before_reset=1))
    return old(d, version, op, [x, *w], lambda t: t.node(op, [x, *w], 2, '', **more), 2, **more, **({'output_sequence': 1} if version < 7 else {}))


# -- functions of the model
def with_reference(node, attribute, name, kind):
    made = node.attribute.add()
    made.name, made.ref_attr_name, made.type = attribute, name, kind
    return node


@case
def functions(d):
    """Functions that call each other, with attributes handed on, with defaults and without, some of one name and several overloads."""
    A, mine = onnx.AttributeProto, 'mine'
    opsets = [helper.make_opsetid('', 18), helper.make_opsetid(mine, 1)]
    node = helper.make_node
    overloads = d.chance(0.4)
    d.opset, d.ir, d.domains = 18, 10 if overloads else 8, {mine: 1}
    kinds = [('LeakyRelu', 'alpha', A.FLOAT, 0.25), ('Softmax', 'axis', A.INT, 1), ('ReduceSum', 'keepdims', A.INT, 1), ('Elu', 'alpha', A.FLOAT, 0.5),
             ('Concat', 'axis', A.INT, 1), ('Transpose', 'perm', A.INTS, [0, 2, 1])]
    made, names = [], []
    for i in range(d.choice(2, 3, 4)):
        op, attribute, kind, default = kinds[d.rng.integers(len(kinds))]
        inputs = ['a', 'b'] if op == 'Concat' else ['a']
        inner = [node('Add', ['a', 'b'], ['h'])] if d.chance() else [node('Mul', ['b', 'a'], ['h'])]
        first = with_reference(node(op, ['h', 'a'] if op == 'Concat' else ['h'], ['m']), attribute, 'p', kind)
        if op == 'ReduceSum' or op == 'Concat' or op == 'Transpose':  # back to the extents of a
            inner += [first, node('ReduceMean', ['m'], ['r'], keepdims=0), node('Add', ['a', 'r'], ['n'])]
        else:
            inner += [first, node('Identity', ['m'], ['n'])]
        before = [n for n in names if n[3] == kind]
        if before and d.chance():  # hands its attribute on
            called = before[d.rng.integers(len(before))]
            inner.append(with_reference(node(called[0], ['n', 'b'], ['o', 'unused'], domain=mine, **({'overload': called[1]} if called[1] else {})), 'p', 'p', kind))
        elif names and d.chance() and names[-1][4]:
            called = names[-1]
            inner.append(node(called[0], ['n', 'b'], ['o', 'unused'], domain=mine, **({'overload': called[1]} if called[1] else {})))
        else:
            inner.append(node('Neg', ['n'], ['o']))
        inner.append(node('Sub', ['n', 'o'], ['second']))
        has_default = d.chance()
        name, overload = ('F', 'o%d' % i) if overloads else ('F%d' % i, '')
        function = helper.make_function(mine, name, ['a', 'b'], ['o', 'second'], inner, opsets, attributes=[] if has_default else ['p'],
                                        attribute_protos=[helper.make_attribute('p', default)] if has_default else [])
        if overload:
            function.overload = overload
        made.append(function)
        names.append((name, overload, default, kind, has_default))
    d.functions = made
    x, y = d.input('b', 's', 4), d.input('b', 's', 4)
    results = []
    for name, overload, default, _, has_default in names:
        attrs = {} if has_default and d.chance() else {'p': default}
        outs = d.node(name, [x, y], 2, mine, **attrs)
        if overload:
            d.nodes[-1].overload = overload
        x = outs[1]
        results += outs
    if overloads:  # which ONNX Runtime has not: there, the names say it
        t = d.beside(18)
        t.ir, t.domains = 10, d.domains
        t.functions = [onnx.FunctionProto.FromString(f.SerializeToString()) for f in made]
        t.nodes = [onnx.NodeProto.FromString(n.SerializeToString()) for n in d.nodes]
        for function in t.functions:
            function.name, function.overload = function.name + function.overload, ''
        for n in t.nodes + [n for function in t.functions for n in function.node]:
            n.op_type, n.overload = n.op_type + n.overload, ''
    return results


# -- values in files of their own
@case
def external(d):
    inner, columns = d.choice(16, 100), d.choice(7, 64)
    w = d.weight(inner, columns, dtype=d.choice(F32, np.float16))
    x = d.input('b', 's', inner, dtype=d.constants[w].dtype)
    y, = d.node('MatMul', [x, w], 1, '')
    y, = d.node('Add', [y, d.weight(columns, dtype=d.constants[w].dtype)], 1, '')
    y, = d.node('Gather', [y, d.const(np.array([1, 0, 2], d.choice(I32, I64)))], 1, '', axis=2)
    one, threshold, attributes = d.chance(), d.choice(0, 64, 1024), d.chance()

    def save(proto, path):
        copy = onnx.ModelProto.FromString(proto.SerializeToString())
        onnx.save(copy, path, save_as_external_data=True, all_tensors_to_one_file=one, location='weights of it.bin' if one else None,
                  size_threshold=threshold, convert_attribute=attributes)
    d.save = save
    return [y]


# -- quantised parts
LIMITS = {U8: (0, 255), I8: (-128, 127), np.uint16: (0, 65535), np.int16: (-32768, 32767)}


def pair(d, x, dtype, channels=None, axis=1):
    """QuantizeLinear and DequantizeLinear."""
    low, high = LIMITS[dtype]
    shape = () if channels is None else (channels,)
    wide = 20000 if dtype in (np.uint16, np.int16) else 80
    scale = d.const((d.rng.uniform(1.0, 3.0, shape) / wide).astype(F32))
    middle = (low + high + 1) // 2
    zero = d.const(d.rng.integers(middle - wide // 10, middle + wide // 10 + 1, shape).astype(dtype))
    q, = d.node('QuantizeLinear', [x, scale, zero], 1, '', **({} if channels is None else {'axis': axis}))
    return d.node('DequantizeLinear', [q, scale, zero], 1, '', **({} if channels is None else {'axis': axis}))[0]


def quantised_weight(d, shape, axis=None):
    dtype = d.choice(I8, I8, U8)
    per = () if axis is None else (shape[axis],)
    low, high = LIMITS[dtype]
    w = d.weight(*shape, dtype=dtype, low=low, high=high)
    scale = d.const(d.rng.uniform(0.002, 0.01, per).astype(F32))
    zero = '' if dtype == I8 and d.chance(0.4) else d.const(np.zeros(per, dtype) if dtype == I8 else d.rng.integers(100, 150, per).astype(dtype))
    return d.node('DequantizeLinear', [w, scale, zero], 1, '', **({} if axis is None else {'axis': axis}))[0]


@case
def qdq_chain(d):
    """What quantisers write around convolutions, products and what is between them."""
    d.opset = d.choice(13, 19, 21)
    types = [U8, I8] if d.opset < 21 else [U8, I8, np.uint16, np.int16]
    mixed = d.chance(0.3)
    dtype = types[d.rng.integers(len(types))]
    kind = lambda: types[d.rng.integers(len(types))] if mixed else dtype
    channels = d.choice(3, 8, 16)
    x = pair(d, d.input('b', channels, 't', 6, low=-2.0, high=2.0), kind())
    for _ in range(d.choice(1, 2, 3, 4)):
        op = d.choice('Conv', 'Conv', 'Relu', 'MaxPool', 'AveragePool', 'Add', 'Mul', 'Concat', 'Sigmoid', 'Transpose', 'Resize', 'Clip', 'Softmax', 'LeakyRelu', 'Split', 'Pad')
        if op == 'Conv':
            depthwise, outputs = d.chance(0.3), d.choice(4, 8)
            outputs = channels if depthwise else outputs
            w = quantised_weight(d, (outputs, 1 if depthwise else channels, 3, 3), d.choice(None, 0))
            bias = []
            if d.chance():
                b = d.weight(outputs, dtype=I32, low=-2000, high=2000)
                bias = [d.node('DequantizeLinear', [b, d.const(F32(0.0005))], 1, '')[0]]
            x, = d.node('Conv', [x, w, *bias], 1, '', pads=[1, 1, 1, 1], group=channels if depthwise else 1)
            channels = outputs
            if d.chance(0.3):
                x, = d.node('Relu', [x], 1, '')
        elif op in ('Add', 'Mul'):
            other = pair(d, d.weight(channels, 1, 1, low=-2.0, high=2.0) if d.chance() else x, kind())
            x, = d.node(op, [x, other], 1, '')
        elif op == 'Concat':
            x, = d.node('Concat', [x, pair(d, x, kind())], 1, '', axis=1)
            channels *= 2
        elif op in ('MaxPool', 'AveragePool'):
            x, = d.node(op, [x], 1, '', kernel_shape=[3, 3], pads=[1, 1, 1, 1])
        elif op == 'Transpose':
            x, = d.node(op, [x], 1, '', perm=[0, 1, 3, 2])
        elif op == 'Resize':
            x, = d.node(op, [x, '', d.const(np.array([1, 1, 2, 2], F32))], 1, '', mode=d.choice('nearest', 'linear'))
        elif op == 'Clip':
            x, = d.node(op, [x, d.const(F32(0)), d.const(F32(1.5))], 1, '')
        elif op == 'Softmax':
            x, = d.node(op, [x], 1, '', axis=d.choice(1, -1))
        elif op == 'Split':
            if channels % 2:
                continue
            x, _ = d.node(op, [x, ints(d, channels // 2, channels // 2)], 2, '', axis=1)
            channels //= 2
        elif op == 'Pad':
            x, = d.node(op, [x, ints(d, 0, 0, 1, 0, 0, 0, 0, 1), d.const(F32(0.25))], 1, '')
        else:
            x, = d.node(op, [x], 1, '', **({'alpha': 0.2} if op == 'LeakyRelu' else {}))
        x = pair(d, x, kind())
    d.quantum = True
    if d.chance(0.4):
        x, = d.node('GlobalAveragePool', [x], 1, '')
        x = pair(d, x, kind())
        x, = d.node('Flatten', [x], 1, '')
        x, = d.node('Gemm', [x, quantised_weight(d, (5, channels), d.choice(None, 0)), d.weight(5)], 1, '', transB=1)
        x = pair(d, x, kind())
    return [x]


@case
def qdq_matmul(d):
    d.opset = d.choice(13, 21)
    types = [U8, I8] if d.opset < 21 else [U8, I8, np.uint16, np.int16]
    inner = d.choice(8, 33)
    x = pair(d, d.input('b', 's', inner, low=-2.0, high=2.0), types[d.rng.integers(len(types))])
    for _ in range(d.choice(1, 2)):
        columns = d.choice(6, 16)
        x, = d.node('MatMul', [x, quantised_weight(d, (inner, columns), d.choice(None, 1))], 1, '')
        inner = columns
        if d.chance():
            x = pair(d, x, types[d.rng.integers(len(types))])
        x, = d.node('Add', [x, d.weight(columns)], 1, '')
        x = pair(d, x, types[d.rng.integers(len(types))], *((columns, 2) if d.chance(0.3) else ()))
        if d.chance(0.3):
            turned = pair(d, d.node('Transpose', [x], 1, '', perm=[0, 2, 1])[0], types[d.rng.integers(len(types))])
            scores, = d.node('MatMul', [x, turned], 1, '')
            scores = pair(d, d.node('Softmax', [scores], 1, '', axis=-1)[0], U8)
            x, = d.node('MatMul', [scores, x], 1, '')
    d.quantum = True
    return [x]


@case
def few_bits(d):
    """int4, uint4 and 8-bit floats: kept, moved, cast, dequantised per tensor, per axis and in blocks."""
    d.opset = d.choice(21, 23)
    kind = d.choice('INT4', 'UINT4', 'FLOAT8E4M3FN', 'FLOAT8E5M2', 'FLOAT8E4M3FNUZ', 'FLOAT8E5M2FNUZ')
    dtype, rows, columns = getattr(TensorProto, kind), d.choice(4, 8, 6), d.choice(6, 9)
    if kind.startswith('F'):
        values = d.rng.uniform(-20, 20, rows * columns)
    else:
        values = d.rng.integers(0 if kind[0] == 'U' else -8, 16 if kind[0] == 'U' else 8, rows * columns)
    name = 'few'
    d.constants[name] = helper.make_tensor(name, dtype, [rows, columns], values)
    w, moved = name, d.choice('', '', 'Transpose', 'Reshape', 'Slice')
    if kind.startswith('F') and moved == 'Transpose':
        moved = ''
    if moved == 'Transpose':
        w, = d.node('Transpose', [w], 1, '', perm=[1, 0])
        rows, columns = columns, rows
    elif moved == 'Reshape':
        w, = d.node('Reshape', [w, ints(d, rows // 2, columns * 2)], 1, '')
        rows, columns = rows // 2, columns * 2
    form = d.choice('tensor', 'axis', 'blocks', 'cast')
    if form == 'cast':
        y, = d.node('Cast', [w], 1, '', to=TensorProto.FLOAT)
    else:
        shape = {'tensor': (), 'axis': (columns,), 'blocks': (rows // 2, columns)}[form]
        if form == 'blocks' and rows % 2:
            return None
        attrs = {'tensor': {}, 'axis': {'axis': 1}, 'blocks': {'axis': 0, 'block_size': 2}}[form]
        y, = d.node('DequantizeLinear', [w, d.const(d.rng.uniform(0.1, 1, shape).astype(F32))], 1, '', **attrs)
    x = d.input('b', 's', rows)
    z, = d.node('MatMul', [x, y], 1, '')
    if kind.startswith('F') and d.chance():
        through, = d.node('Cast', [z], 1, '', to=dtype, **d.choice({}, {'saturate': 0}))
        return d.node('Cast', [through], 1, '', to=TensorProto.FLOAT)
    if not kind.startswith('F') and d.chance():
        zero = 'few_zero'
        d.constants[zero] = helper.make_tensor(zero, dtype, [], [3])
        q, = d.node('QuantizeLinear', [z, d.const(F32(0.7)), zero], 1, '')
        return d.node('DequantizeLinear', [q, d.const(F32(0.7)), zero], 1, '')
    return [z]


# -- strings, sequences and optional values in branches and loops
WORDS = np.array(['', 'a', 'b', 'ab', 'a b', 'Monday', 'x,y,,z', '12', 'é', '日本', 'aaa'], object)


def words(d, *dims):
    name = 'x%d' % len(d.inputs)
    extent = lambda size: [n if isinstance(n, int) else size[n] for n in dims]
    d.inputs[name] = (object, dims, 0, 0, lambda size: WORDS[d.rng.integers(0, len(WORDS), extent(size))])
    return name


def flag(d):
    return d.input(dtype=np.bool_, made=lambda size: np.asarray(bool(d.rng.integers(2))))


def graph(nodes, results, inputs=(), dtype=TensorProto.FLOAT):
    outs = [r if isinstance(r, onnx.ValueInfoProto) else info(r, dtype) for r in results]
    return helper.make_graph(nodes, 'inner', list(inputs), outs)


def text_step(d, x, tag):
    """(nodes, result): one operator on strings."""
    node, out = helper.make_node, 'w' + tag
    return d.choice(([node('StringConcat', [x, x], [out])], out), ([node('Identity', [x], [out])], out),
                    ([node('StringConcat', [x, 'suffix'], [out])], out),
                    ([node('Constant', [], ['i' + tag], value=numpy_helper.from_array(np.array([0], I64))), node('Gather', [x, 'i' + tag], [out])], out))


@case
def strings_in_branches(d):
    x, c, S = words(d, 's'), flag(d), TensorProto.STRING
    d.constants['suffix'] = helper.make_tensor('suffix', S, [1], [b'-end'])
    a, b = text_step(d, x, 'a'), text_step(d, x, 'b')
    y, = d.node('If', [c], 1, '', then_branch=graph(*[a[0], [a[1]]], dtype=S), else_branch=graph(b[0], [b[1]], dtype=S))
    results = [y]
    follow = d.choice('equal', 'match', 'split', 'label', 'length', 'unique', 'loop')
    if follow == 'equal':
        results += d.node('Equal', [y, x], 1, '')
    elif follow == 'match':
        m, = d.node('RegexFullMatch', [y], 1, '', pattern='a.*')
        results += d.node('Where', [m, y, x], 1, '')
    elif follow == 'split':
        results += d.node('StringSplit', [y], 2, '', **d.choice({}, {'delimiter': ','}, {'delimiter': 'a', 'maxsplit': 1}))
    elif follow == 'label':
        d.domains['ai.onnx.ml'] = 4
        results += d.node('LabelEncoder', [y], 1, 'ai.onnx.ml', keys_strings=['a', 'b', 'ab'], values_int64s=[1, 2, 3], default_int64=-1)
    elif follow == 'unique':
        results += d.node('Unique', [y], 3, '', sorted=1)
    elif follow == 'loop':
        body = helper.make_graph([helper.make_node('StringConcat', ['state', 'suffix'], ['next']), helper.make_node('Identity', ['go'], ['on'])], 'body',
                                 [info('i', TensorProto.INT64, []), info('go', TensorProto.BOOL, []), info('state', S)],
                                 [info('on', TensorProto.BOOL, []), info('next', S)])
        times = d.input(dtype=I64, made=lambda size: np.asarray(d.rng.integers(0, 4)))
        results += d.node('Loop', [times, '', y], 1, '', body=body)
    else:
        results += d.node('Shape', [y], 1, '')
    return results


@case
def branches_of_unequal_ranks(d):
    """Each branch gives another rank; what is behind does with any."""
    x, c = d.input('b', 's', 4), flag(d)
    forms = [[helper.make_node('Identity', [x], ['o'])], [helper.make_node('Flatten', [x], ['o'], axis=1)],
             [helper.make_node('ReduceSum', [x], ['o'], keepdims=0)], [helper.make_node('Transpose', [x], ['o'], perm=[2, 0, 1])],
             [helper.make_node('Shape', [x], ['e']), helper.make_node('ConstantOfShape', ['e'], ['o'])],
             [helper.make_node('Unsqueeze', [x, 'first'], ['o'])]]
    d.constants['first'] = np.array([0], I64)
    a, b = (forms[i] for i in d.rng.permutation(len(forms))[:2])
    y, = d.node('If', [c], 1, '', then_branch=graph(a, ['o']), else_branch=graph(b, ['o']))
    how = d.choice('flat', 'shape', 'size', 'relu', 'sum', 'itself')
    if how == 'flat':
        return d.node('Reshape', [y, ints(d, -1)], 1, '')
    return [y] if how == 'itself' else d.node({'shape': 'Shape', 'size': 'Size', 'relu': 'Relu', 'sum': 'ReduceSum'}[how], [y], 1, '')


@case
def scans(d):
    """Several states, several things to go through, each in its direction and along its axis."""
    states, through = d.choice(1, 2, 3), d.choice(1, 2)
    wide = d.choice(3, 5)
    xs, directions, axes = [], [], []
    for i in range(through):
        axes.append(d.choice(0, 1))
        xs.append(d.input(*(['s', wide] if axes[-1] == 0 else [wide, 's'])))
        directions.append(d.choice(0, 1))
    starts = [d.input(wide) for _ in range(states)]
    nodes, node = [], helper.make_node
    state, rows = ['st%d' % i for i in range(states)], ['r%d' % i for i in range(through)]
    total = rows[0]
    for i, name in enumerate(state + rows[1:]):
        nodes.append(node(d.choice('Add', 'Mul', 'Sub', 'Max'), [total, name], ['t%d' % i]))
        total = 't%d' % i
    for i in range(states):
        nodes.append(node('Tanh', [total if i == 0 else state[i - 1]], ['n%d' % i]) if d.chance(0.7) else node('Identity', [state[i]], ['n%d' % i]))
    outs = d.choice(1, 2)
    nodes += [node('Neg', [total], ['o0'])] + [node('ReduceSum', [total], ['o1'], keepdims=0)] * (outs - 1)
    results = ['n%d' % i for i in range(states)] + ['o%d' % i for i in range(outs)]
    shapes = [[wide]] * states + [[wide], []][:outs]
    body = helper.make_graph(nodes, 'body', [info(s, shape=[wide]) for s in state + rows], [info(r, shape=s) for r, s in zip(results, shapes)])
    attrs = dict(num_scan_inputs=through, scan_input_directions=directions, scan_input_axes=axes, scan_output_directions=[d.choice(0, 1) for _ in range(outs)])
    if d.chance():
        attrs['scan_output_axes'] = [d.choice(0, 1, -1)] + [0] * (outs - 1)
    return d.node('Scan', starts + xs, states + outs, '', body=body, **attrs)


@case
def sequences(d):
    """Tensors of unequal extents: made, put in, taken out, split, mapped and joined, in a loop or not."""
    x, y = d.input('b', 's', 4), d.input('t', 4)
    made, = d.node('SequenceConstruct', [x, y, x] if d.chance() else [y], 1, '')
    for _ in range(d.choice(0, 1, 2)):
        at = d.const(np.asarray(d.rng.integers(0, 2), I64))
        made, = d.node('SequenceInsert', [made, d.choice(x, y), *([at] if d.chance() else [])], 1, '')
    how = d.choice('itself', 'at', 'length', 'erase', 'split', 'map', 'loop', 'if')
    if how == 'at':
        return d.node('SequenceAt', [made, d.const(np.asarray(-1, I64))], 1, '')
    if how == 'length':
        return d.node('SequenceLength', [made], 1, '')
    if how == 'erase':
        return d.node('SequenceErase', [made], 1, '') + d.node('SequenceLength', [made], 1, '')
    if how == 'split':
        parts, = d.node('SplitToSequence', [y] + ([d.const(np.asarray(2, I64))] if d.chance() else []), 1, '', axis=0, **d.some(keepdims=0))
        return [parts] + d.node('SequenceLength', [parts], 1, '')
    sequence = onnx.ValueInfoProto(name='so', type=helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, None)))
    if how == 'map':
        body = helper.make_graph([helper.make_node('ReduceMax', ['e'], ['f'], keepdims=0)], 'body', [info('e')], [info('f')])
        return d.node('SequenceMap', [made], 1, '', body=body)
    if how == 'loop':
        state = onnx.ValueInfoProto(name='si', type=sequence.type)
        body = helper.make_graph([helper.make_node('Identity', ['go'], ['on']), helper.make_node('SequenceAt', ['si', 'i'], ['e']),
                                  helper.make_node('Neg', ['e'], ['f']), helper.make_node('SequenceInsert', ['si', 'f'], ['so'])], 'body',
                                 [info('i', TensorProto.INT64, []), info('go', TensorProto.BOOL, []), state], [info('on', TensorProto.BOOL, []), sequence])
        length, = d.node('SequenceLength', [made], 1, '')
        return d.node('Loop', [length, '', made], 1, '', body=body)
    if how == 'if':
        then = helper.make_graph([helper.make_node('Identity', [made], ['so'])], 'then', [], [sequence])
        other = helper.make_graph([helper.make_node('SequenceInsert', [made, y], ['so'])], 'else', [], [sequence])
        return d.node('If', [flag(d)], 1, '', then_branch=then, else_branch=other)
    return [made]


@case
def optionals(d):
    x, c = d.input('b', 's', 4), flag(d)
    tensor = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    result = onnx.ValueInfoProto(name='o', type=helper.make_optional_type_proto(tensor))
    some = helper.make_graph([helper.make_node('Optional', [x], ['o'])], 'then', [], [result])
    none = helper.make_graph([helper.make_node('Optional', [], ['o'], type=tensor)], 'else', [], [result])
    y, = d.node('If', [c], 1, '', then_branch=some, else_branch=none)
    has, = d.node('OptionalHasElement', [y], 1, '')
    got = graph([helper.make_node('OptionalGetElement', [y], ['g'])], ['g'])
    zero = graph([helper.make_node('Mul', [x, x], ['g'])], ['g'])
    z, = d.node('If', [has], 1, '', then_branch=got, else_branch=zero)
    return [has, z]


@case
def empty(d):
    """Extents of 0, where a size says so, into what reduces, joins, moves and multiplies."""
    none = lambda size: 0 if size['b'] == 2 else size['b']
    x = d.input('n', 's', 4, made=lambda size: d.array(F32, (none(size), size['s'], 4)))
    op = d.choice('ReduceSum', 'MatMul', 'Concat', 'Softmax', 'Gemm', 'Conv', 'LayerNormalization', 'Gather', 'Transpose', 'Where', 'ScatterND', 'TopK', 'NonZero', 'Pad', 'Loop',
                  'CumSum', 'Reshape', 'ArgMax', 'BatchNormalization', 'Resize', 'Tile', 'Einsum', 'Unique')
    if op == 'ReduceSum':
        return d.node(d.choice('ReduceSum', 'ReduceProd', 'ReduceL2'), [x, ints(d, d.choice(0, 1))], 1, '')
    if op == 'MatMul':
        return d.node(op, [x, d.weight(4, 3)], 1, '')
    if op == 'Concat':
        return d.node(op, [x, x], 1, '', axis=d.choice(0, 1, 2))
    if op in ('Softmax', 'CumSum'):
        return d.node(op, [x] + ([d.const(np.asarray(1, I64))] if op == 'CumSum' else []), 1, '')
    if op == 'Gemm':
        flat, = d.node('Reshape', [x, ints(d, -1, 4)], 1, '')
        return d.node(op, [flat, d.weight(4, 3), d.weight(3)], 1, '')
    if op == 'Conv':
        turned, = d.node('Transpose', [x], 1, '', perm=[0, 2, 1])
        return d.node(op, [turned, d.weight(5, 4, 1), d.weight(5)], 1, '')
    if op == 'LayerNormalization':
        return d.node(op, [x, d.weight(4), d.weight(4)], 1, '')
    if op == 'Gather':
        return d.node(op, [x, d.const(np.zeros((0, 2), I64))], 1, '', axis=2)
    if op == 'Transpose':
        return d.node(op, [x], 1, '', perm=[2, 0, 1])
    if op == 'Where':
        c, = d.node('Greater', [x, d.const(F32(0))], 1, '')
        return d.node(op, [c, x, d.weight(4)], 1, '')
    if op == 'ScatterND':
        return d.node(op, [d.weight(3, 4), d.const(np.zeros((0, 1), I64)), d.const(np.zeros((0, 4), F32))], 1, '') + [x]
    if op == 'TopK':
        return d.node(op, [x, ints(d, 2)], 2, '', axis=2)
    if op in ('NonZero', 'Unique'):
        return d.node(op, [x], 1, '')
    if op == 'Pad':
        return d.node(op, [x, ints(d, 1, 0, 0, 0, 1, 0)], 1, '')
    if op == 'Reshape':
        return d.node(op, [x, ints(d, 0, -1)] if d.chance() else [x, ints(d, -1, 2)], 1, '')
    if op == 'ArgMax':
        return d.node(op, [x], 1, '', axis=2)
    if op == 'BatchNormalization':
        turned, = d.node('Transpose', [x], 1, '', perm=[0, 2, 1])
        return d.node(op, [turned, d.weight(4), d.weight(4), d.weight(4), d.weight(4, low=0.5, high=2)], 1, '')
    if op == 'Resize':
        return d.node(op, [x, '', d.const(np.array([1, 2, 1], F32))], 1, '', mode='nearest')
    if op == 'Tile':
        return d.node(op, [x, ints(d, 1, 2, d.choice(0, 2))], 1, '')
    if op == 'Einsum':
        return d.node(op, [x, d.weight(4, 3)], 1, '', equation='bij,jk->bik')
    body = helper.make_graph([helper.make_node('Identity', ['go'], ['on']), helper.make_node('Add', ['v', 'v'], ['w']), helper.make_node('Gather', [x, 'i'], ['row'])], 'body',
                             [info('i', TensorProto.INT64, []), info('go', TensorProto.BOOL, []), info('v', shape=[4])],
                             [info('on', TensorProto.BOOL, []), info('w', shape=[4]), info('row', shape=[None, 4])])
    rows, = d.node('Gather', [d.node('Shape', [x], 1, '')[0], d.const(np.asarray(0, I64))], 1, '')
    return d.node(op, [rows, '', d.weight(4)], 1, '', body=body)


if __name__ == '__main__':
    main(CASES, __doc__, 'berth_random_forms')
