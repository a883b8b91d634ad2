#!/usr/bin/python3
"""Quantised networks against integers (bench/integer_oracle.py), every layer by itself and all together.

    tests/models/check_integers.py build/release/berth [COUNT]     (with Debian's python3-numpy and python3-onnx)

COUNT random convolutional networks in QDQ form (residual sums, depthwise and strided convolutions, pools, products; activations
u8 and i8, weights with a scale per channel or per tensor), and the int8 models of ../shared/models where they are. A layer by itself and the
network's result may be one step off: where values are added or averaged, f32 rounds as the order of the operations has it; of a
layer only in a few places in a thousand.
"""
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, 'bench'))
import integer_oracle  # noqa: E402

MOST_OFF = 2e-3  # of the elements of a layer


class Network:
    def __init__(self, seed):
        self.rng = np.random.RandomState(seed)
        self.nodes, self.constants, self.count = [], [], 0
        self.signed, self.per_channel = self.rng.rand() < 0.5, self.rng.rand() < 0.5
        self.kind = np.int8 if self.signed else np.uint8

    def name(self, what):
        self.count += 1
        return '%s_%d' % (what, self.count)

    def constant(self, value):
        self.constants.append(numpy_helper.from_array(value, self.name('c')))
        return self.constants[-1].name

    def node(self, op, inputs, **attributes):
        out = self.name(op.lower())
        self.nodes.append(helper.make_node(op, inputs, [out], **attributes))
        return out

    def quantized(self, x, scale, zero=None):
        """x through a quantisation with this scale; (name, scale)."""
        if zero is None:
            zero = self.rng.randint(-20, 20) if self.signed else self.rng.randint(100, 156)
        parameters = [self.constant(np.float32(scale)), self.constant(np.array(zero, self.kind))]
        return self.node('DequantizeLinear', [self.node('QuantizeLinear', [x] + parameters)] + parameters), np.float32(scale)

    def weights(self, shape, scale):
        count = shape[0] if self.per_channel else 1
        scales = np.exp(self.rng.uniform(-6, -4, count)).astype(np.float32)
        raw = self.rng.randint(-127, 128, shape).astype(np.int8)
        held = scales if self.per_channel else scales[0]
        zeros = np.zeros(held.shape, np.int8)
        w = self.node('DequantizeLinear', [self.constant(raw), self.constant(held), self.constant(zeros)], axis=0)
        bias = self.rng.randint(-2000, 2000, shape[0]).astype(np.int32)
        bias_scales = (held * scale).astype(np.float32)
        b = self.node('DequantizeLinear', [self.constant(bias), self.constant(bias_scales),
                                           self.constant(np.zeros(held.shape, np.int32))], axis=0)
        return w, b, float(scales.max())

    def conv(self, x, channels, out, kernel, stride, depthwise):
        name, scale = x
        shape = [channels, 1, kernel, kernel] if depthwise else [out, channels, kernel, kernel]
        w, b, largest = self.weights(shape, scale)
        y = self.node('Conv', [name, w, b], kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[kernel // 2] * 4,
                      group=channels if depthwise else 1)
        if self.rng.rand() < 0.5:
            y = self.node('Relu', [y])
        spread = scale * largest * 73 * 73 * np.sqrt(np.prod(shape[1:]))
        return self.quantized(y, spread * 3 / 127)

    def model(self):
        channels, size = int(self.rng.choice([3, 8])), int(self.rng.randint(9, 24))
        shape = [1, channels, size, size]
        x = self.quantized('x', 2.0 / 255)
        for _ in range(self.rng.randint(2, 6)):
            kind = self.rng.randint(4)
            kernel, stride = int(self.rng.choice([1, 3])), int(self.rng.choice([1, 1, 2]))
            if kind == 0:
                x = self.conv(x, channels, channels, kernel, stride, True)
            elif kind == 1:
                y = self.conv(x, channels, channels, kernel, 1, False)
                x = self.quantized(self.node('Add', [x[0], y[0]]), np.hypot(x[1], y[1]))
            elif kind == 2 and size > 8:
                x = self.node('MaxPool', [x[0]], kernel_shape=[2, 2], strides=[2, 2]), x[1]
                x = self.quantized(x[0], x[1])
            else:
                out = int(self.rng.choice([5, 16, 33]))
                x, channels = self.conv(x, channels, out, kernel, stride, False), out
        x = self.quantized(self.node('GlobalAveragePool', [x[0]]), x[1] / 3)
        flat = self.node('Flatten', [x[0]])
        w, b, largest = self.weights([10, channels], x[1])
        y = self.node('Gemm', [flat, w, b], transB=1)
        self.quantized(y, x[1] * largest * 73 * 73 * np.sqrt(channels) * 3 / 127)
        self.nodes[-1].output[0] = 'y'
        graph = helper.make_graph(self.nodes, 'quantised', [helper.make_tensor_value_info('x', TensorProto.FLOAT, shape)],
                                  [helper.make_tensor_value_info('y', TensorProto.FLOAT, [1, 10])], self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid('', 13)], ir_version=8)


def check(berth, model, label, folder, seed):
    kinds = {t.name: t.data_type for t in model.graph.initializer}
    held = set(kinds)
    given = next(i for i in model.graph.input if i.name not in held)
    shape = [d.dim_value or 1 for d in given.type.tensor_type.shape.dim]
    x = np.random.RandomState(seed).uniform(-1, 1, shape).astype(np.float32)
    plain, every, file = (os.path.join(folder, name) for name in ('plain.onnx', 'every.onnx', 'x.npy'))
    onnx.save(model, plain)
    names = {n.output[0]: kinds[n.input[2]] for n in model.graph.node if n.op_type == 'QuantizeLinear'}
    model.graph.output.extend(helper.make_tensor_value_info(name, kind, None) for name, kind in names.items())
    onnx.save(model, every)
    np.save(file, x)
    files = {name: os.path.join(folder, 'y%d.npy' % i) for i, name in enumerate(names)}
    command = [berth, 'run', every, '--quiet', '--input', '%s=%s' % (given.name, file)]
    for name, result in files.items():
        command += ['--output', '%s=%s' % (name, result)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    feeds, made = {given.name: x}, {name: np.load(path) for name, path in files.items()}
    worst, share, layer = integer_oracle.layers(plain, feeds, made)
    off = integer_oracle.end(plain, feeds, made)
    fine = worst <= 1 and share <= MOST_OFF and off <= 1
    if not fine:
        print('%s: a layer is %d steps off, %.3f %% of its elements: %s; the result %d' % (label, worst, 100 * share, layer, off))
    return fine, len(names)


def main():
    berth, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 12
    shared = os.path.join(ROOT, '..', 'shared', 'models', 'mlperf_tiny')
    real = sorted(name for name in os.listdir(shared) if name.endswith('_int8')) if os.path.isdir(shared) else []
    failed = layers = 0
    with tempfile.TemporaryDirectory() as folder:
        models = [('seed %d' % seed, Network(seed).model()) for seed in range(count)]
        models += [(name, onnx.load(os.path.join(shared, name, 'model.onnx'))) for name in real]
        for seed, (label, model) in enumerate(models):
            fine, made = check(berth, model, label, folder, seed)
            failed += not fine
            layers += made
    print('%d networks, %d quantised results: %d failed' % (count + len(real), layers, failed))
    return 1 if failed or not layers else 0


if __name__ == '__main__':
    sys.exit(main())
