#!/usr/bin/env python3
"""A quantised (QDQ) network in integers: what its results are where each quantisation rounds the real value once.

    python3 bench/integer_oracle.py MODEL.onnx INPUT.npy [--scales f64] [-o RESULT.npy]

Products and sums of quantised values are computed exactly (integers in float64, below 2**53), biases too. What scales do is
computed in f32, the type that ONNX gives them, as its QLinearConv states it: the sum times x_scale * w_scale / y_scale, rounded
to the nearest, halves to the even. With `--scales f64` scales are multiplied, divided and rounded in float64: f32 differs
from that by one step where a value lies within its rounding of the middle between two steps, and through the layers
after it such a step travels on. Written from the operators' text alone: it shares nothing with what it judges. Operators:
those that convolutional classifiers have in QDQ form.
"""
import argparse
import math

import numpy as np
import onnx
from onnx import numpy_helper

LOWEST = {np.dtype(t): np.iinfo(t) for t in (np.int8, np.uint8, np.int16, np.uint16, np.int32)}


class Real:
    """A tensor of real values: `whole` (integers in float64) times `scale` (broadcast; of the type that scales are computed in)."""
    computed = np.float32

    def __init__(self, whole, scale=1.0):
        self.whole, self.scale = np.asarray(whole, np.float64), np.asarray(scale, self.computed)

    @property
    def is_plain(self):
        return self.scale.size == 1 and self.scale.reshape(()) == 1

    @property
    def value(self):
        return self.whole.astype(self.computed) * self.scale

    def plus(self, bias):
        """With a bias: in integers of the same scale, as integer operators take it, or where those are computed in float64, as it is."""
        if self.computed == np.float64:
            return Real(self.value + bias.value)
        return Real(self.whole + np.rint(bias.value.astype(np.float64) / self.scale), self.scale)


def along(values, axis, rank):
    """Per-axis values in the shape that broadcasts to a tensor of `rank`."""
    values = np.asarray(values)
    return values if values.size == 1 else values.reshape([-1 if i == axis % rank else 1 for i in range(rank)])


def quantize(x, scale, zero, axis=1):
    rank, info = x.whole.ndim, LOWEST[zero.dtype]
    scale, values = along(scale.astype(Real.computed), axis, rank), x.whole.astype(Real.computed)
    steps = values / scale if x.is_plain else values * (x.scale / scale)
    steps = np.rint(steps).astype(np.float64) + along(zero.astype(np.float64), axis, rank)
    return np.clip(steps, info.min, info.max).astype(zero.dtype)


def dequantize(q, scale, zero=None, axis=1):
    zero = np.zeros((), q.dtype) if zero is None else zero
    rank = q.ndim
    return Real(q.astype(np.float64) - along(zero.astype(np.float64), axis, rank), along(scale.astype(Real.computed), axis, rank))


def windows(x, kernel, strides, dilations, pads, fill):
    """[N,C,out...,kernel...] of x [N,C,H,W]."""
    padded = np.pad(x, [(0, 0), (0, 0)] + list(zip(pads[:2], pads[2:])), constant_values=fill)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    views = np.lib.stride_tricks.sliding_window_view(padded, reach, axis=(2, 3))
    return views[:, :, ::strides[0], ::strides[1], ::dilations[0], ::dilations[1]]


def frame(attributes, x, kernel):
    strides, dilations = attributes.get('strides', [1, 1]), attributes.get('dilations', [1, 1])
    pads = attributes.get('pads', [0, 0, 0, 0])
    if attributes.get('auto_pad', b'NOTSET') not in (b'NOTSET', b'VALID') or attributes.get('ceil_mode', 0):
        raise ValueError('auto_pad and ceil_mode are not implemented')
    return kernel, strides, dilations, pads


def conv(attributes, x, w, bias=None):
    groups, out = attributes.get('group', 1), []
    if x.scale.size != 1:
        raise ValueError('a convolution of values with more than one scale')
    taps = windows(x.whole, *frame(attributes, x, w.whole.shape[2:]), 0)
    inner, outer = w.whole.shape[1], w.whole.shape[0] // groups
    for g in range(groups):
        part = taps[:, g * inner:(g + 1) * inner]
        out.append(np.tensordot(part, w.whole[g * outer:(g + 1) * outer], axes=([1, 4, 5], [1, 2, 3])).transpose(0, 3, 1, 2))
    sums = Real(np.concatenate(out, axis=1), x.scale.reshape(()) * along(w.scale.reshape(-1), 1, 4))
    return sums if bias is None else sums.plus(Real(along(bias.whole, 1, 4), along(bias.scale, 1, 4)))


def gemm(attributes, a, b, c=None):
    if attributes.get('transA', 0) or attributes.get('alpha', 1) != 1 or attributes.get('beta', 1) != 1 or a.scale.size != 1:
        raise ValueError('Gemm with transA, alpha, beta, or a left operand of several scales is not implemented')
    columns = b.whole.T if attributes.get('transB', 0) else b.whole
    scale = b.scale.reshape(1, -1)  # one, or one per column
    sums = Real(a.whole @ columns, a.scale.reshape(()) * scale)
    return sums if c is None else sums.plus(c)


def pool(attributes, x):
    taps = windows(x.whole, *frame(attributes, x, attributes['kernel_shape']), -math.inf)
    return Real(taps.max(axis=(4, 5)), x.scale)


def average(attributes, x):
    if any(attributes.get('pads', [])):
        raise ValueError('AveragePool with a border is not implemented')
    taps = windows(x.whole, *frame(attributes, x, attributes['kernel_shape']), 0)
    return Real(taps.mean(axis=(4, 5)), x.scale)


def softmax(x, axis):
    powers = np.exp(x.value - x.value.max(axis=axis, keepdims=True))
    return Real(powers / powers.sum(axis=axis, keepdims=True))


def mean(x, axes, keep):
    count = math.prod(x.whole.shape[a] for a in axes)
    return Real(x.whole.sum(axis=axes, keepdims=keep) / count, x.scale.reshape(()))


def clip(x, low=None, high=None):
    return Real(np.clip(x.value, None if low is None else low.value, None if high is None else high.value))


def relu(x):
    return Real(np.maximum(x.whole, 0), x.scale)


def apply(node, attributes, xs):
    op = node.op_type
    if op == 'QuantizeLinear':
        return quantize(xs[0], xs[1].value, xs[2], attributes.get('axis', 1))
    if op == 'DequantizeLinear':
        return dequantize(xs[0], xs[1].value, *xs[2:], axis=attributes.get('axis', 1))
    plain = {'Conv': lambda: conv(attributes, *xs), 'Gemm': lambda: gemm(attributes, *xs), 'MatMul': lambda: gemm({}, *xs),
             'Add': lambda: Real(xs[0].value + xs[1].value), 'Relu': lambda: relu(xs[0]), 'Clip': lambda: clip(*xs),
             'MaxPool': lambda: pool(attributes, xs[0]), 'AveragePool': lambda: average(attributes, xs[0]),
             'Softmax': lambda: softmax(xs[0], attributes.get('axis', -1)), 'GlobalAveragePool': lambda: mean(xs[0], (2, 3), True),
             'Flatten': lambda: Real(xs[0].whole.reshape(xs[0].whole.shape[0], -1), xs[0].scale.reshape(-1)[0])}
    if op in ('Reshape', 'ReduceMean'):
        given = [int(v) for v in xs[1].value] if len(xs) > 1 else list(attributes['axes'])
        return Real(xs[0].whole.reshape(given), xs[0].scale) if op == 'Reshape' else \
            mean(xs[0], tuple(given), bool(attributes.get('keepdims', 1)))
    if op not in plain:
        raise ValueError('operator %s is not implemented here' % op)
    return plain[op]()


def compute(path, feeds, see, scales):
    """The values by name; see(name, value) may put another in place of one that was computed. `scales`: "f32" or "f64"."""
    Real.computed = {'f32': np.float32, 'f64': np.float64}[scales]
    graph = onnx.load(path).graph
    values = {name: Real(x) for name, x in feeds.items()}
    for tensor in graph.initializer:
        x = numpy_helper.to_array(tensor)
        values[tensor.name] = x if x.dtype in LOWEST else Real(x)
    for node in graph.node:
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        result = apply(node, attributes, [values[name] if name else None for name in node.input])
        values[node.output[0]] = see(node.output[0], result)
    return values


def run(path, feeds, scales='f32'):
    """The outputs, as floats (or integers, where the network ends in them)."""
    values = compute(path, feeds, lambda name, value: value, scales)
    results = [values[output.name] for output in onnx.load(path).graph.output]
    return [r.value if isinstance(r, Real) else r for r in results]


def layers(path, feeds, given, scales='f32'):
    """How far `given` ({name: integers}, results of QuantizeLinear) are from what the operators before them give for the given ones
    before: (steps at most, largest share of elements of one that differ, one element not counted, its name). Each layer by itself."""
    seen = []

    def see(name, value):
        if name not in given:
            return value
        steps = np.abs(value.astype(np.int64) - given[name])
        seen.append((max(0, int((steps > 0).sum()) - 1) / steps.size, int(steps.max()), name))
        return given[name]

    compute(path, feeds, see, scales)
    share, _, name = max(seen)
    return max(steps for _, steps, _ in seen), share, name


def end(path, feeds, given, scales='f32'):
    """How far the last of `given` is from the one that all of the network before it gives, computed here, in steps at most."""
    last = [name for node in onnx.load(path).graph.node for name in node.output if name in given][-1]
    values = compute(path, feeds, lambda name, value: value, scales)
    return int(np.abs(values[last].astype(np.int64) - given[last]).max())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('model')
    parser.add_argument('input')
    parser.add_argument('--scales', choices=['f32', 'f64'], default='f32')
    parser.add_argument('-o', '--output')
    args = parser.parse_args()
    given = {i.name for i in onnx.load(args.model).graph.input} - {t.name for t in onnx.load(args.model).graph.initializer}
    result = run(args.model, {given.pop(): np.load(args.input)}, args.scales)[0]
    if args.output:
        np.save(args.output, result)
    else:
        print(result)


if __name__ == '__main__':
    main()
