#!/usr/bin/env python3
"""Writes small float ONNX models and inputs for tests of `berth quantize`: make_float_models.py NAME FOLDER [typed|external]

FOLDER/m.onnx and FOLDER/data/*.npy. Weights are random and stand for nothing. Only the standard library is
needed (tests/vta/make_models.py writes the wire format).
"""
import os
import random
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "vta"))
from make_models import FLOAT, INT64, attribute, data, number  # noqa: E402


def text_attribute(name, value):
    return data(5, data(1, name) + data(4, value) + number(20, 3))


class Model:
    def __init__(self, opset, ir_version=8, seed=1, storage=""):
        self.storage, self.beside = storage, b""  # where floats are: raw_data, typed or external
        self.opset, self.ir_version, self.random = opset, ir_version, random.Random(seed)
        self.nodes, self.initializers, self.inputs, self.outputs = [], [], [], []
        self.names = 0

    def constant(self, dims, values, kind=FLOAT):
        self.names += 1
        name = f"c{self.names}"
        code = {FLOAT: "f", INT64: "q"}[kind]
        body = b"".join(number(1, d) for d in dims) + number(2, kind) + data(8, name)
        raw = struct.pack(f"<{len(values)}{code}", *values)
        if kind == FLOAT and self.storage == "typed":
            body += data(4, raw)
        elif kind == FLOAT and self.storage == "external":
            place = {"location": "w.bin", "offset": str(len(self.beside)), "length": str(len(raw))}
            body += b"".join(data(13, data(1, k) + data(2, v)) for k, v in place.items()) + number(14, 1)
            self.beside += raw
        else:
            body += data(9, raw)
        self.initializers.append(data(5, body))
        if self.ir_version < 4:  # constants are inputs, too
            self.inputs.append(data(11, self.value(name, dims, kind)))
        return name

    def weights(self, *dims, scale=1.0):
        count = 1
        for d in dims:
            count *= d
        return self.constant(dims, [self.random.gauss(0, scale / (count / dims[0]) ** 0.5) for _ in range(count)])

    def vector(self, count, low=-0.5, high=0.5):
        return self.constant([count], [self.random.uniform(low, high) for _ in range(count)])

    def node(self, op, inputs, outputs=1, **attributes):
        self.names += 1
        outs = [f"{op.lower()}{self.names}_{i}" for i in range(outputs)]
        body = b"".join(data(1, i) for i in inputs) + b"".join(data(2, o) for o in outs)
        body += data(3, f"n{self.names}") + data(4, op)
        for name, value in attributes.items():
            body += text_attribute(name, value) if isinstance(value, str) else attribute(name, value)
        self.nodes.append(data(1, body))
        return outs[0] if outputs == 1 else outs

    @staticmethod
    def value(name, dims, kind=FLOAT):
        shape = b"".join(data(1, data(2, d) if isinstance(d, str) else number(1, d)) for d in dims)
        return data(1, name) + data(2, data(1, number(1, kind) + data(2, shape)))

    def input(self, dims, name="x"):
        self.inputs.append(data(11, self.value(name, dims)))
        return name

    def output(self, name, dims):
        self.outputs.append(data(12, self.value(name, dims)))

    def write(self, path):
        graph = b"".join(self.nodes) + data(2, "float") + b"".join(self.initializers)
        graph += b"".join(self.inputs) + b"".join(self.outputs)
        with open(path, "wb") as f:
            f.write(number(1, self.ir_version) + data(7, graph) + data(8, data(1, "") + number(2, self.opset)))
        if self.beside:
            with open(os.path.join(os.path.dirname(path), "w.bin"), "wb") as f:
                f.write(self.beside)

    def batch_norm(self, x, channels):
        return self.node("BatchNormalization",
                         [x, self.vector(channels, 0.5, 2), self.vector(channels), self.vector(channels),
                          self.vector(channels, 0.3, 3)], epsilon=1e-3)


def write_npy(path, dims, values):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {tuple(dims)!r}, }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        f.write(struct.pack(f"<{len(values)}f", *values))


def residual(m):
    """Batch norms, a residual addition, pooling, a dense layer with factors."""
    x = m.input(["n", 3, 10, 10])
    a = m.node("Relu", [m.batch_norm(m.node("Conv", [x, m.weights(8, 3, 3, 3)], pads=[1, 1, 1, 1]), 8)])
    b = m.batch_norm(m.node("Conv", [a, m.weights(8, 8, 3, 3), m.vector(8)], pads=[1, 1, 1, 1]), 8)
    y = m.node("Relu", [m.node("Sum", [b, a])])
    y = m.node("Flatten", [m.node("GlobalAveragePool", [y])])
    y = m.node("Gemm", [y, m.weights(8, 5, scale=3), m.vector(5)], alpha=0.5, beta=2.0)
    m.output(y, ["n", 5])
    return [3, 10, 10]


def old(m):
    """Operators whose attributes became inputs since, all at version 9 and IR version 3."""
    x = m.input(["n", 2, 8, 8])
    y = m.node("Pad", [x], pads=[0, 0, 1, 1, 0, 0, 1, 1], mode="constant", value=0.25)
    y = m.node("Conv", [y, m.weights(6, 2, 3, 3)])
    y = m.node("Clip", [m.node("Add", [y, m.constant([6, 1, 1], [0.1 * i for i in range(6)])])], min=0.0, max=1.0)
    y = m.node("Slice", [y], starts=[1, 0], ends=[5, 7], axes=[1, 2])
    a, b = m.node("Split", [y], outputs=2, axis=1, split=[1, 3])
    y = m.node("Mul", [m.node("ReduceSum", [b], axes=[1], keepdims=1), a])
    y = m.node("Conv", [m.node("Dropout", [y], ratio=0.4), m.weights(4, 1, 3, 3), m.vector(4)])
    y = m.node("Squeeze", [m.node("ReduceMax", [y], axes=[2, 3], keepdims=1)], axes=[2, 3])
    y = m.node("Add", [m.node("MatMul", [y, m.weights(4, 7)]), m.vector(7)])
    y = m.node("Softmax", [m.node("Mul", [y, m.constant([], [4.0])])])
    m.output(y, ["n", 7])
    return [2, 8, 8]


def upsample(m):
    """An operator that there is no longer."""
    x = m.input(["n", 2, 4, 4])
    y = m.node("Upsample", [m.node("Conv", [x, m.weights(2, 2, 1, 1)]), m.constant([4], [1.0, 1.0, 2.0, 2.0])],
               mode="nearest")
    m.output(y, ["n", 2, 8, 8])
    return [2, 4, 4]


def uneven(m):
    """Channels of very different reach between a convolution and depthwise ones."""
    x = m.input(["n", 4, 12, 12])
    reach = [4.0 ** (i % 5 - 2) for i in range(16)]
    flat = [m.random.gauss(0, 0.3) * reach[i // 36] for i in range(16 * 36)]
    y = m.node("Relu", [m.node("Conv", [x, m.constant([16, 4, 3, 3], flat), m.vector(16)])])
    flat = [m.random.gauss(0, 0.3) / reach[i // 9] for i in range(16 * 9)]
    y = m.node("Relu", [m.node("Conv", [y, m.constant([16, 1, 3, 3], flat), m.vector(16)], group=16)])
    y = m.node("Conv", [y, m.weights(6, 16, 1, 1), m.vector(6)])
    m.output(m.node("GlobalAveragePool", [y]), ["n", 6, 1, 1])
    return [4, 12, 12]


def two_inputs(m):
    """Products of two activations and of weights."""
    x, z = m.input(["n", 6, 8]), m.input(["n", 8, 6], "z")
    y = m.node("MatMul", [m.node("MatMul", [x, z]), m.weights(6, 4)])
    m.output(m.node("Sigmoid", [y]), ["n", 6, 4])
    return None


def decoder(m):
    """A convolution to half the size and transposed ones back to it, with a batch norm and, last, in groups."""
    y = m.node("Relu", [m.node("Conv", [m.input(["n", 3, 8, 8]), m.weights(8, 3, 3, 3), m.vector(8)], pads=[1] * 4,
                               strides=[2, 2])])
    y = m.node("ConvTranspose", [y, m.weights(8, 6, 2, 2), m.vector(6)], strides=[2, 2])
    y = m.node("BatchNormalization", [y, m.vector(6, 0.5, 2), m.vector(6), m.vector(6), m.vector(6, 0.5, 2)])
    y = m.node("Relu", [y])
    m.output(m.node("ConvTranspose", [y, m.weights(6, 1, 3, 3)], pads=[1] * 4, group=2), ["n", 2, 8, 8])
    return [3, 8, 8]


def branch(m):
    """A convolution, and one in either branch of an If."""
    y = m.node("Relu", [m.node("Conv", [m.input(["n", 3, 6, 6]), m.weights(4, 3, 3, 3), m.vector(4)], pads=[1] * 4)])
    sides = []
    for side in ("then", "else"):
        inner = data(1, y) + data(1, m.weights(2, 4, 1, 1)) + data(2, side) + data(3, "inner_" + side) + data(4, "Conv")
        graph = data(1, inner) + data(2, side) + data(12, m.value(side, ["n", 2, 6, 6]))
        sides.append(data(5, data(1, side + "_branch") + data(6, graph) + number(20, 5)))
    many = m.node("ReduceMax", [y], keepdims=0)
    condition = m.node("Greater", [many, m.constant([], [1e6])])
    m.nodes.append(data(1, data(1, condition) + data(2, "chosen") + data(3, "if") + data(4, "If") + b"".join(sides)))
    m.output("chosen", ["n", 2, 6, 6])
    return [3, 6, 6]


def no_layers(m):
    m.output(m.node("Relu", [m.input(["n", 4])]), ["n", 4])
    return [4]


MODELS = {"residual": (residual, 13, 8), "old": (old, 9, 3), "upsample": (upsample, 9, 4),
          "ancient": (no_layers, 6, 3), "uneven": (uneven, 13, 8), "two_inputs": (two_inputs, 13, 8),
          "decoder": (decoder, 13, 8), "branch": (branch, 13, 8), "no_layers": (no_layers, 13, 8)}


def main():
    name, folder = sys.argv[1:3]
    make, opset, ir_version = MODELS[name]
    m = Model(opset, ir_version, seed=sum(name.encode()), storage=sys.argv[3] if len(sys.argv) > 3 else "")
    dims = make(m)
    m.write(os.path.join(folder, "m.onnx"))
    sets = os.path.join(folder, "data")
    os.makedirs(sets, exist_ok=True)
    source = random.Random(3)

    def write(path, shape):
        count = 1
        for d in shape:
            count *= d
        write_npy(path, shape, [source.uniform(-1, 1) for _ in range(count)])

    for i, rows in enumerate([4, 1, 3]):
        if dims:
            write(os.path.join(sets, f"{i}.npy"), [rows] + dims)
            continue
        inner = os.path.join(sets, f"set{i}")
        os.makedirs(inner, exist_ok=True)
        write(os.path.join(inner, "input_0.npy"), [rows, 6, 8])
        write(os.path.join(inner, "z.npy"), [rows, 8, 6])


if __name__ == "__main__":
    main()
