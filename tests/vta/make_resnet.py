#!/usr/bin/env python3
"""Writes a quantised ResNet-18 with what it must give: make_resnet.py FOLDER [--size 224] [--width 64]
[--classes 1000] [--seed 1]; or compares arrays: make_resnet.py --same A.npy B.npy.

FOLDER gets resnet.onnx (QDQ form, scales are powers of two, weights are random and stand for nothing),
x.npy and expected.npy. What is expected is computed here, in integers: sums of products, shifts with
halves to even, bounds of 8 bits. Scales are chosen from these numbers as a calibration would, so that
few values saturate. With NumPy the products take seconds, without it minutes at full size.
"""
import argparse
import operator
import os
import struct
import sys

from make_models import INT8, INT32, FLOAT, Model

try:
    import numpy
except ImportError:
    numpy = None


def products(patches, rows):
    """For each row of weights its products with each patch."""
    if numpy:
        exact = numpy.asarray(rows, numpy.float64) @ numpy.asarray(patches, numpy.float64).T
        return [[int(v) for v in line] for line in exact]  # below 2^53
    return [[sum(map(operator.mul, patch, row)) for patch in patches] for row in rows]


def nearest(value, divisor):
    """value / divisor as the nearest integer, the even one of two."""
    whole, rest = divmod(value, divisor)
    return whole + (2 * rest > divisor or (2 * rest == divisor and whole % 2))


def bounded(value, low=-128):
    return max(low, min(127, value))


def scaled(value, shift, low=-128):
    """value * 2^-shift, which for shifts below 0 is a multiple."""
    return bounded(nearest(value, 1 << shift) if shift > 0 else value << -shift, low)


def fitting_shift(sums, least=0):
    """The shift after which the largest of `sums` just fits 8 bits, but for a few."""
    amounts = sorted(abs(v) for row in sums for v in row)
    most, shift = amounts[len(amounts) * 999 // 1000], least
    while most >> shift > 127:
        shift += 1
    return shift


class Map:
    """A quantised tensor: its float's name in the model, log2 of 1 / scale, and its integers by channel."""

    def __init__(self, name, shift, rows, height, width):
        self.name, self.shift, self.rows, self.height, self.width = name, shift, rows, height, width

    def patches(self, kernel, stride, pad, channels, outside=0):
        """Per output pixel the window's integers of these channels, one channel after the other."""
        lines = []
        for c in channels:
            row = self.rows[c]
            lines.append([[outside] * (self.width + 2 * pad) for _ in range(pad)] + [
                [outside] * pad + row[y * self.width:(y + 1) * self.width] + [outside] * pad
                for y in range(self.height)
            ] + [[outside] * (self.width + 2 * pad) for _ in range(pad)])
        height = (self.height + 2 * pad - kernel) // stride + 1
        width = (self.width + 2 * pad - kernel) // stride + 1
        out = [[v for plane in lines for k in range(kernel)
                for v in plane[y * stride + k][x * stride:x * stride + kernel]]
               for y in range(height) for x in range(width)]
        return out, height, width


class Exact(Model):
    """Layers that also compute their results."""

    def start(self, channels, size, shift=6):
        count = channels * size * size
        # Every other number lies halfway between two integers.
        halves = [self.random.randint(-255, 254) for _ in range(count)]
        self.values = [h * 2.0 ** -(shift + 1) for h in halves]
        integers = [bounded(nearest(h, 2)) for h in halves]
        rows = [integers[c * size * size:(c + 1) * size * size] for c in range(channels)]
        x = self.quantize(self.input([1, channels, size, size]), shift)
        return Map(x, shift, rows, size, size)

    def layer(self, x, outputs, kernel=1, stride=1, relu=True, dense=False):
        depth, pad, w_shift = len(x.rows), kernel // 2, 7
        most = min(127, max(2, int(400 / (depth * kernel * kernel) ** 0.5)))
        count = depth * kernel * kernel
        rows = [[self.random.randint(-most, most) for _ in range(count)] for _ in range(outputs)]
        flat = [v for row in rows for v in row]
        dims = [outputs, depth] if dense else [outputs, depth, kernel, kernel]
        w = self.node("DequantizeLinear", [self.constant("w", INT8, dims, flat),
                                           self.scalar("scale", FLOAT, 2.0 ** -w_shift),
                                           self.scalar("zero", INT8, 0)])
        bias = [self.random.randint(-500, 500) for _ in range(outputs)]
        b = self.node("DequantizeLinear", [self.constant("b", INT32, [outputs], bias),
                                           self.scalar("scale", FLOAT, 2.0 ** -(x.shift + w_shift)),
                                           self.scalar("zero", INT32, 0)])
        patches, height, width = x.patches(kernel, stride, pad, range(depth))
        sums = [[v + bias[o] for v in line] for o, line in enumerate(products(patches, rows))]
        shift = fitting_shift(sums)
        if dense:
            y = self.node("Gemm", [x.name, w, b], transB=1)
        else:
            y = self.node("Conv", [x.name, w, b], kernel_shape=[kernel, kernel],
                          strides=[stride, stride], pads=[pad] * 4)
        if relu:
            y = self.node("Relu", [y])
        out = x.shift + w_shift - shift
        low = 0 if relu else -128
        return Map(self.quantize(y, out), out, [[scaled(v, shift, low) for v in row] for row in sums],
                   height, width)

    def add_maps(self, a, b):
        fine = max(a.shift, b.shift)
        sums = [[(p << fine - a.shift) + (q << fine - b.shift) for p, q in zip(r, s)]
                for r, s in zip(a.rows, b.rows)]
        shift = fitting_shift(sums)
        y = self.quantize(self.node("Relu", [self.node("Add", [a.name, b.name])]), fine - shift)
        return Map(y, fine - shift, [[scaled(v, shift, 0) for v in row] for row in sums], a.height,
                   a.width)

    def max_pool(self, x, kernel, stride, pad):
        y = self.node("MaxPool", [x.name], kernel_shape=[kernel] * 2, strides=[stride] * 2,
                      pads=[pad] * 4)
        rows = []
        for c in range(len(x.rows)):
            patches, height, width = x.patches(kernel, stride, pad, [c], -128)
            rows.append([max(p) for p in patches])
        return Map(self.quantize(y, x.shift), x.shift, rows, height, width)

    def mean(self, x):
        sums = [[sum(row)] for row in x.rows]
        count = x.height * x.width
        # As fine as the largest mean allows.
        finer = 0
        while finer < 3 and max(abs(s[0]) for s in sums) * 2 ** (finer + 1) < 120 * count:
            finer += 1
        y = self.quantize(self.node("GlobalAveragePool", [x.name]), x.shift + finer)
        rows = [[bounded(nearest(s[0] << finer, count))] for s in sums]
        return Map(y, x.shift + finer, rows, 1, 1)


def resnet18(m, size, width, classes):
    y = m.layer(m.start(3, size), width, kernel=7, stride=2)
    y = m.max_pool(y, 3, 2, 1)
    for stage in range(4):
        outputs = width << stage
        for block in range(2):
            stride = 2 if stage > 0 and block == 0 else 1
            left = m.layer(y, outputs, kernel=3, stride=stride)
            left = m.layer(left, outputs, kernel=3, relu=False)
            right = y if stride == 1 else m.layer(y, outputs, stride=stride, relu=False)
            y = m.add_maps(left, right)
    y = m.mean(y)
    y.name = m.node("Flatten", [y.name], axis=1)
    y = m.layer(y, classes, relu=False, dense=True)
    m.output(y.name, [1, classes])
    return [row[0] * 2.0 ** -y.shift for row in y.rows]


def write_array(path, dims, values):
    shape = ", ".join(str(d) for d in dims)
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({shape}), }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode())
        f.write(struct.pack(f"<{len(values)}f", *values))


def read_array(path):
    with open(path, "rb") as f:
        data = f.read()
    return data[10 + struct.unpack("<H", data[8:10])[0]:]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--same", nargs=2)
    options = parser.parse_args()
    if options.same:
        sys.exit(read_array(options.same[0]) != read_array(options.same[1]))
    if not options.folder:
        parser.error("a folder to write to")
    m = Exact(options.seed)
    expected = resnet18(m, options.size, options.width, options.classes)
    m.write(os.path.join(options.folder, "resnet.onnx"))
    size = options.size
    write_array(os.path.join(options.folder, "x.npy"), [1, 3, size, size], m.values)
    write_array(os.path.join(options.folder, "expected.npy"), [1, options.classes], expected)
    levels = len(set(expected))
    print(f"{len(m.nodes)} nodes, {levels} different results")


if __name__ == "__main__":
    main()
