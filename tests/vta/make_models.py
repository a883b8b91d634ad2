#!/usr/bin/env python3
"""Writes small quantised ONNX models (QDQ form) for tests: make_models.py NAME FILE [SEED].

Scales are powers of two, so that every value between a QuantizeLinear and a DequantizeLinear is an
integer and there is one right answer. Weights are random and stand for nothing. Only the standard
library is needed; what is written is protocol buffers' wire format, field by field.
"""
import random
import struct
import sys

FLOAT, UINT8, INT8, INT32, INT64 = 1, 2, 3, 6, 7


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def data(field, value):
    if isinstance(value, str):
        value = value.encode()
    return varint(field << 3 | 2) + varint(len(value)) + value


def attribute(name, value):
    if isinstance(value, int):
        return data(5, data(1, name) + number(3, value) + number(20, 2))
    if isinstance(value, float):
        return data(5, data(1, name) + varint(2 << 3 | 5) + struct.pack("<f", value) + number(20, 1))
    return data(5, data(1, name) + b"".join(number(8, v) for v in value) + number(20, 7))


class Model:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.nodes, self.initializers, self.inputs, self.outputs = [], [], [], []
        self.count = 0

    def name(self, stem):
        self.count += 1
        return f"{stem}{self.count}"

    def constant(self, stem, kind, dims, values):
        code = {FLOAT: "f", UINT8: "B", INT8: "b", INT32: "i", INT64: "q"}[kind]
        name = self.name(stem)
        body = b"".join(number(1, d) for d in dims) + number(2, kind) + data(8, name)
        self.initializers.append(data(5, body + data(9, struct.pack(f"<{len(values)}{code}", *values))))
        return name

    def scalar(self, stem, kind, value):
        return self.constant(stem, kind, [], [value])

    def node(self, op, inputs, **attributes):
        out = self.name(op.lower())
        body = b"".join(data(1, i) for i in inputs) + data(2, out) + data(3, "node_" + out)
        body += data(4, op) + b"".join(attribute(k, v) for k, v in attributes.items())
        self.nodes.append(data(1, body))
        return out

    @staticmethod
    def value(name, kind, dims):
        shape = b"".join(data(1, number(1, d)) for d in dims)
        return data(1, name) + data(2, data(1, number(1, kind) + data(2, shape)))

    def input(self, dims, kind=FLOAT):
        self.inputs.append(data(11, self.value("x", kind, dims)))
        return "x"

    def output(self, name, dims, kind=FLOAT):
        self.outputs.append(data(12, self.value(name, kind, dims)))

    def write(self, path):
        graph = b"".join(self.nodes) + data(2, "quantised") + b"".join(self.initializers)
        graph += b"".join(self.inputs) + b"".join(self.outputs)
        opset = data(8, data(1, "") + number(2, 13))
        with open(path, "wb") as f:
            f.write(number(1, 8) + data(7, graph) + opset)

    # ---- quantised layers. A value is (name of the float, shift): its scale is 2^-shift. ----

    def quantize(self, x, shift, zero=0, kind=INT8):
        scale = self.scalar("scale", FLOAT, 2.0 ** -shift if not isinstance(shift, float) else shift)
        zero = self.scalar("zero", kind, zero)
        q = self.node("QuantizeLinear", [x, scale, zero])
        return self.node("DequantizeLinear", [q, scale, zero])

    def weights(self, dims, shift, low=-128, high=127):
        count = 1
        for d in dims:
            count *= d
        q = self.constant("w", INT8, dims, [self.random.randint(low, high) for _ in range(count)])
        scale = self.scalar("scale", FLOAT, 2.0 ** -shift if not isinstance(shift, float) else shift)
        return self.node("DequantizeLinear", [q, scale, self.scalar("zero", INT8, 0)])

    def bias(self, count, shift, most):
        q = self.constant("b", INT32, [count], [self.random.randint(-most, most) for _ in range(count)])
        return self.node("DequantizeLinear", [q, self.scalar("scale", FLOAT, 2.0 ** -shift),
                                              self.scalar("zero", INT32, 0)])

    def conv(self, x, channels, outputs, kernel=3, stride=1, pad=None, relu=True, shifts=(4, 7, 4),
             group=1, pads=None, strides=None, dilations=(1, 1)):
        pad = kernel // 2 if pad is None else pad
        in_shift, w_shift, out_shift = shifts
        reach = max(1, int(4 * 128 / (channels // group * kernel * kernel) ** 0.5))
        w = self.weights([outputs, channels // group, kernel, kernel], w_shift, -min(reach, 128), min(reach, 127))
        b = self.bias(outputs, in_shift + w_shift if not isinstance(w_shift, float) else 11, 2000)
        y = self.node("Conv", [x, w, b], strides=strides or [stride, stride],
                      pads=pads or [pad] * 4, kernel_shape=[kernel, kernel], group=group, dilations=list(dilations))
        if relu:
            y = self.node("Relu", [y])
        return self.quantize(y, out_shift)

    def dense(self, x, depth, outputs, shifts=(4, 7, 3)):
        reach = max(1, int(4 * 128 / depth ** 0.5))
        w = self.weights([outputs, depth], shifts[1], -min(reach, 128), min(reach, 127))
        y = self.node("Gemm", [x, w, self.bias(outputs, shifts[0] + shifts[1], 2000)], transB=1)
        return self.quantize(y, shifts[2])

    def add(self, a, b, shift, relu=True):
        y = self.node("Add", [a, b])
        return self.quantize(self.node("Relu", [y]) if relu else y, shift)


def conv(m, shape=(1, 16, 12, 12), outputs=32, **options):
    """One convolution between operations of the processor."""
    x = m.quantize(m.input(list(shape)), 4)
    y = m.conv(x, shape[1], outputs, **options)
    y = m.node("Sigmoid", [y])
    size = (shape[2] + options.get("stride", 1) - 1) // options.get("stride", 1)
    m.output(y, [shape[0], outputs, size, size])


def odd_scale(m):
    """Scales of one convolution are no powers of two, of the other they are."""
    x = m.quantize(m.input([1, 16, 8, 8]), 4)
    y = m.conv(x, 16, 16, shifts=(4, 0.0091, 4))
    y = m.conv(y, 16, 16)
    m.output(y, [1, 16, 8, 8])


def unsigned(m):
    """Activations of uint8: the matrix unit has signed lanes only."""
    x = m.quantize(m.input([1, 16, 8, 8]), 4, zero=0, kind=UINT8)
    m.output(m.conv(x, 16, 16), [1, 16, 8, 8])


def integer(m):
    """ConvInteger of uint8 with zero points, whose sums are scaled by a float: in the manner of dynamic quantisation."""
    x = m.input([1, 4, 9, 9])
    scale, zero = m.scalar("scale", FLOAT, 0.05), m.scalar("zero", UINT8, 113)
    q = m.node("QuantizeLinear", [x, scale, zero])
    w = m.constant("w", UINT8, [8, 4, 3, 3], [m.random.randint(0, 255) for _ in range(8 * 4 * 9)])
    y = m.node("ConvInteger", [q, w, zero, m.scalar("zero", UINT8, 125)], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    y = m.node("Mul", [m.node("Cast", [y], to=FLOAT), m.scalar("scale", FLOAT, 0.05 * 0.0078)])
    m.output(m.node("Relu", [y]), [1, 8, 9, 9])


def digits(m):
    """In the manner of LeNet: two convolutions with pooling, two dense layers, softmax."""
    x = m.quantize(m.input([1, 1, 28, 28]), 6)
    y = m.conv(x, 1, 16, kernel=5, shifts=(6, 7, 4))
    y = m.quantize(m.node("MaxPool", [y], kernel_shape=[2, 2], strides=[2, 2]), 4)
    y = m.conv(y, 16, 32)
    y = m.quantize(m.node("MaxPool", [y], kernel_shape=[2, 2], strides=[2, 2]), 4)
    y = m.node("Flatten", [y], axis=1)
    y = m.dense(y, 32 * 49, 64, shifts=(4, 7, 4))
    y = m.dense(y, 64, 10)
    m.output(m.node("Softmax", [y], axis=1), [1, 10])


def residual(m, blocks=((16, 1), (32, 2), (64, 2), (64, 2)), size=32, repeats=2):
    """In the manner of ResNet-18, for small images: a stem, residual blocks, the mean, a dense layer."""
    x = m.quantize(m.input([1, 3, size, size]), 5)
    channels = blocks[0][0]
    y = m.conv(x, 3, channels, shifts=(5, 7, 4))
    for outputs, first_stride in blocks:
        for r in range(repeats):
            stride = first_stride if r == 0 else 1
            left = m.conv(y, channels, outputs, stride=stride)
            left = m.conv(left, outputs, outputs, relu=False, shifts=(4, 7, 3))
            right = y
            if stride != 1 or channels != outputs:
                right = m.conv(y, channels, outputs, kernel=1, stride=stride, relu=False)
            y = m.add(left, right, 4)
            channels = outputs
            size = (size + stride - 1) // stride
    y = m.quantize(m.node("GlobalAveragePool", [y]), 5)
    y = m.node("Flatten", [y], axis=1)
    m.output(m.dense(y, channels, 10, shifts=(5, 7, 3)), [1, 10])


def mobile(m):
    """A depthwise convolution between two of 1 x 1."""
    x = m.quantize(m.input([1, 32, 14, 14]), 4)
    y = m.conv(x, 32, 64, kernel=1)
    y = m.conv(y, 64, 64, group=64)
    m.output(m.conv(y, 64, 32, kernel=1), [1, 32, 14, 14])


def branches(m):
    """Two branches concatenated, in blocks of 16 channels."""
    x = m.quantize(m.input([1, 16, 10, 10]), 4)
    a = m.conv(x, 16, 16)
    b = m.conv(x, 16, 32, kernel=1)
    y = m.quantize(m.node("Concat", [a, b], axis=1), 4)
    m.output(m.conv(y, 48, 16), [1, 16, 10, 10])


def joined(m):
    """Tensors that are joined and read by others, too, with a last one that fills no block."""
    x = m.quantize(m.input([1, 16, 7, 9]), 4)
    a = m.conv(x, 16, 32, relu=False)
    b = m.conv(a, 32, 64, kernel=1)
    c = m.conv(b, 64, 10)
    y = m.quantize(m.node("Relu", [m.node("Concat", [a, b, c], axis=1)]), 4)
    m.output(m.conv(y, 106, 16, kernel=1), [1, 16, 7, 9])


def padded(m):
    """Padding of its own, of one side more than of the other."""
    x = m.quantize(m.input([1, 16, 6, 7]), 4)
    y = m.conv(x, 16, 24, relu=False)
    pads = m.constant("pads", INT64, [8], [0, 0, 2, 0, 0, 0, 3, 1])
    y = m.quantize(m.node("Pad", [y, pads, m.scalar("fill", FLOAT, 0.0)]), 4)
    m.output(m.conv(y, 24, 16, kernel=1), [1, 16, 11, 8])


def addition(m, channels=24, size=(9, 7), shifts=((4, 3), (6, 5)), out=3, relu=True):
    """Convolutions whose results are added, with scales of their own; many sums are halves."""
    x = m.quantize(m.input([1, 16, *size]), 4)
    a = m.conv(x, 16, channels, relu=False, shifts=(4, 7, shifts[0][0]))
    b = m.conv(x, 16, channels, kernel=1, relu=False, shifts=(4, 7, shifts[0][1]))
    y = m.add(a, b, out, relu)
    m.output(m.node("Sigmoid", [y]), [1, channels, *size])


def pools(m, channels=24):
    """Maxima and means of several windows, also such as lie beyond the border."""
    x = m.quantize(m.input([1, 16, 21, 17]), 4)
    y = m.conv(x, 16, channels, relu=False)
    y = m.quantize(m.node("MaxPool", [y], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]), 4)
    y = m.quantize(m.node("AveragePool", [y], kernel_shape=[3, 3], strides=[1, 1],
                          pads=[1, 1, 1, 1], count_include_pad=1), 5)
    y = m.quantize(m.node("MaxPool", [y], kernel_shape=[2, 3], strides=[1, 2], pads=[0, 0, 0, 1]), 5)
    y = m.quantize(m.node("Relu", [m.node("AveragePool", [y], kernel_shape=[2, 2])]), 5)
    y = m.quantize(m.node("GlobalAveragePool", [y]), 6)
    y = m.node("Flatten", [y], axis=1)
    m.output(m.dense(y, channels, 10, shifts=(6, 7, 4)), [1, 10])


def slices(m):
    """Parts of the channels, beginning with a block: two of a split, one of a slice."""
    x = m.quantize(m.input([1, 16, 9, 7]), 4)
    y = m.conv(x, 16, 64)
    part = lambda begin, end: m.quantize(m.node(
        "Slice", [y, m.constant("from", INT64, [1], [begin]), m.constant("to", INT64, [1], [end]),
                  m.constant("axis", INT64, [1], [1])]), 4)
    a, b = m.conv(part(0, 32), 32, 32), m.conv(part(48, 64), 16, 32, kernel=1)
    y = m.add(a, b, 3, True)
    m.output(m.node("Sigmoid", [y]), [1, 32, 9, 7])


def end_pools(m):
    """Maxima and means whose last window goes beyond the end of its map, and before no beginning."""
    x = m.quantize(m.input([1, 16, 8, 16]), 4)
    y = m.conv(x, 16, 48, relu=False)
    y = m.quantize(m.node("MaxPool", [y], kernel_shape=[3, 3], strides=[2, 2], pads=[0, 0, 1, 1]), 4)
    y = m.quantize(m.node("AveragePool", [y], kernel_shape=[4, 4], strides=[2, 2], pads=[0, 0, 2, 2],
                          count_include_pad=1), 5)
    m.output(m.node("Sigmoid", [y]), [1, 48, 2, 4])


def dilated(m):
    """Windows with holes: alone, with strides, in groups; one that holes make larger than the map."""
    x = m.quantize(m.input([1, 16, 17, 14]), 4)
    y = m.conv(x, 16, 32, pads=[2, 3, 2, 3], dilations=[2, 3])
    y = m.conv(y, 32, 32, group=32, pads=[2, 2, 2, 2], dilations=[2, 2])
    y = m.conv(y, 32, 24, strides=[2, 1], pads=[1, 0, 2, 1], dilations=[3, 1])
    m.output(m.conv(y, 24, 16, pads=[9, 9, 9, 9], dilations=[9, 9]), [1, 16, 7, 13])


def global_max(m):
    x = m.quantize(m.input([1, 16, 6, 5]), 4)
    y = m.quantize(m.node("GlobalMaxPool", [m.conv(x, 16, 16, relu=False)]), 4)
    m.output(m.dense(m.node("Flatten", [y], axis=1), 16, 3), [1, 3])


def border_mean(m, size=4, **options):
    """Means at the border are over fewer elements than in the middle."""
    x = m.quantize(m.input([1, 16, 8, 8]), 4)
    y = m.conv(x, 16, 16)
    y = m.node("AveragePool", [y], kernel_shape=[3, 3], strides=[2, 2], **options)
    m.output(m.quantize(y, 4), [1, 16, size, size])


def grouped(m):
    """Groups of 4 channels, 20 channels each by itself, and the padding of another maker."""
    x = m.quantize(m.input([1, 16, 11, 12]), 4)
    y = m.conv(x, 16, 64, kernel=1)
    y = m.conv(y, 64, 32, group=16)
    y = m.conv(y, 32, 20, kernel=1)
    y = m.conv(y, 20, 20, group=20)
    y = m.node("Conv", [y, m.weights([16, 20, 3, 2], 7, -8, 8)], strides=[2, 1], pads=[0, 0, 1, 1],
               kernel_shape=[3, 2])
    m.output(m.quantize(y, 4), [1, 16, 5, 12])


MODELS = {
    "conv": conv,
    "conv1x1": lambda m: conv(m, (1, 32, 9, 7), 48, kernel=1),
    "conv_stride": lambda m: conv(m, (1, 16, 15, 15), 16, stride=2),
    "conv_even": lambda m: conv(m, (1, 16, 6, 6), 16, relu=False, shifts=(4, 1, 4)),
    "conv_channels": lambda m: conv(m, (1, 20, 11, 11), 10),
    "odd_scale": odd_scale,
    "unsigned": unsigned,
    "integer": integer,
    "digits": digits,
    "residual": residual,
    "residual_small": lambda m: residual(m, ((16, 1), (32, 2)), 16, 1),
    "mobile": mobile,
    "branches": branches,
    "joined": joined,
    "padded": padded,
    "addition": addition,
    "addition_even": lambda m: addition(m, 16, (8, 8), ((2, 2), ()), 1, False),
    "addition_wide": lambda m: addition(m, 40, (5, 13), ((1, 7), ()), 3),
    "addition_odd": lambda m: addition(m, 16, (6, 6), ((4, 0.21), ()), 3),
    "pools": pools,
    "slices": slices,
    "end_pools": end_pools,
    "dilated": dilated,
    "global_max": global_max,
    "border_mean": lambda m: border_mean(m, pads=[1, 1, 1, 1]),
    "ceil_mean": lambda m: border_mean(m, ceil_mode=1, count_include_pad=1),
    "grouped": grouped,
}


def main():
    if len(sys.argv) < 3 or sys.argv[1] not in MODELS:
        sys.exit("usage: make_models.py NAME FILE [SEED]\nnames: " + " ".join(MODELS))
    model = Model(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    MODELS[sys.argv[1]](model)
    model.write(sys.argv[2])


if __name__ == "__main__":
    main()
