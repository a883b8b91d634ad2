#!/usr/bin/env python3
"""Writes models of real size without weights to FOLDER: resnet50.onnx, bert.onnx, decoder7b.onnx. Their weights are external
data in a file without content (holes), so that nothing of them is stored, and planning reads nothing. Prints a JSON line each:
the bytes of its weights and the floating-point operations of its products and convolutions.
Usage: make_shapes.py FOLDER"""
import json
import pathlib
import sys

import numpy as np
from onnx import TensorProto, helper, numpy_helper

ALIGNMENT = 4096  # of external data: pages


class Graph:
    """Nodes, inputs and weights of a model; `flops` counts two for each multiplication and addition."""

    def __init__(self, name, dtype):
        self.name, self.dtype = name, dtype
        self.nodes, self.constants, self.inputs, self.outputs = [], [], [], []
        self.weight_bytes = self.file_bytes = self.flops = 0

    def weight(self, *shape):
        size = 2 if self.dtype == TensorProto.FLOAT16 else 4
        for extent in shape:
            size *= extent
        tensor = TensorProto(name=f"w{len(self.constants)}", data_type=self.dtype, dims=shape,
                             data_location=TensorProto.EXTERNAL)
        for key, value in (("location", f"{self.name}.weights"), ("offset", self.file_bytes), ("length", size)):
            tensor.external_data.add(key=key, value=str(value))
        self.weight_bytes += size
        self.file_bytes += -(-size // ALIGNMENT) * ALIGNMENT
        self.constants.append(tensor)
        return tensor.name

    def constant(self, values, dtype=None):
        dtype = dtype or (np.float16 if self.dtype == TensorProto.FLOAT16 else np.float32)
        self.constants.append(numpy_helper.from_array(np.array(values, dtype), f"c{len(self.constants)}"))
        return self.constants[-1].name

    def value(self, name, shape, dtype=None):
        return helper.make_tensor_value_info(name, dtype or self.dtype, shape)

    def op(self, kind, *inputs, out=None, **attributes):
        name = f"{kind.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [out or name], name=name, **attributes))
        return out or name

    def linear(self, x, rows, width, to, bias=False):
        self.flops += 2 * rows * width * to
        y = self.op("MatMul", x, self.weight(width, to))
        return self.op("Add", y, self.weight(to)) if bias else y

    def save(self, folder):
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
        (folder / f"{self.name}.onnx").write_bytes(model.SerializeToString())
        with open(folder / f"{self.name}.weights", "wb") as file:
            file.truncate(self.file_bytes)
        print(json.dumps({"model": self.name, "weight_bytes": self.weight_bytes, "flops": self.flops}))


def resnet50():
    """He and others, "Deep residual learning for image recognition" (2016), table 1."""
    g = Graph("resnet50", TensorProto.FLOAT)
    g.inputs.append(g.value("image", [1, 3, 224, 224]))

    def conv(x, channels, to, size, kernel, stride=1, relu=True):
        out = size // stride
        g.flops += 2 * out * out * to * channels * kernel * kernel
        y = g.op("Conv", x, g.weight(to, channels, kernel, kernel), g.weight(to), kernel_shape=[kernel] * 2,
                 strides=[stride] * 2, pads=[kernel // 2] * 4)
        return g.op("Relu", y) if relu else y

    x = conv("image", 3, 64, 224, 7, 2)
    x = g.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    channels, size = 64, 56
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            step = stride if block == 0 else 1
            y = conv(x, channels, width, size, 1)
            y = conv(y, width, width, size, 3, step)
            y = conv(y, width, 4 * width, size // step, 1, relu=False)
            short = conv(x, channels, 4 * width, size, 1, step, relu=False) if block == 0 else x
            x = g.op("Relu", g.op("Add", y, short))
            channels, size = 4 * width, size // step
    x = g.op("Flatten", g.op("GlobalAveragePool", x))
    g.op("Identity", g.linear(x, 1, 2048, 1000, bias=True), out="logits")
    g.outputs.append(g.value("logits", [1, 1000]))
    return g


def attention(g, q, k, v, heads, rows, keys, size):
    """q, k, v: [1, heads, rows or keys, size]; the result is [1, rows, heads * size]."""
    g.flops += 4 * heads * rows * keys * size
    scores = g.op("Mul", g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2])), g.constant(size**-0.5))
    mixed = g.op("MatMul", g.op("Softmax", scores, axis=-1), v)
    return g.op("Reshape", g.op("Transpose", mixed, perm=[0, 2, 1, 3]), g.constant([1, rows, heads * size], np.int64))


def heads_of(g, x, rows, heads, size):
    return g.op("Transpose", g.op("Reshape", x, g.constant([1, rows, heads, size], np.int64)), perm=[0, 2, 1, 3])


def bert(layers=12, width=768, rows=128, words=30522):
    """Devlin and others, "BERT" (2019), the base model; without the word of a sentence's type."""
    g = Graph("bert", TensorProto.FLOAT)
    heads, size = width // 64, 64
    g.inputs.append(g.value("ids", [1, rows], TensorProto.INT64))

    def norm(x):
        centred = g.op("Sub", x, g.op("ReduceMean", x, axes=[-1], keepdims=1))
        variance = g.op("ReduceMean", g.op("Mul", centred, centred), axes=[-1], keepdims=1)
        scaled = g.op("Div", centred, g.op("Sqrt", g.op("Add", variance, g.constant(1e-5))))
        return g.op("Add", g.op("Mul", scaled, g.weight(width)), g.weight(width))

    x = norm(g.op("Add", g.op("Gather", g.weight(words, width), "ids"), g.weight(rows, width)))
    for _ in range(layers):
        q, k, v = (heads_of(g, g.linear(x, rows, width, width, bias=True), rows, heads, size) for _ in range(3))
        mixed = attention(g, q, k, v, heads, rows, rows, size)
        x = norm(g.op("Add", x, g.linear(mixed, rows, width, width, bias=True)))
        y = g.linear(x, rows, width, 4 * width, bias=True)
        y = g.op("Mul", y, g.op("Sigmoid", g.op("Mul", y, g.constant(1.702))))
        x = norm(g.op("Add", x, g.linear(y, rows, 4 * width, width, bias=True)))
    g.op("Identity", x, out="states")
    g.outputs.append(g.value("states", [1, rows, width]))
    return g


def decoder7b(layers=32, width=4096, hidden=11008, words=32000, past=1024):
    """One token of Touvron and others, "LLaMA" (2023), the model of 7 billion parameters, after `past` others; without the
    rotation of positions."""
    g = Graph("decoder7b", TensorProto.FLOAT16)
    heads, size = width // 128, 128
    g.inputs.append(g.value("ids", [1, 1], TensorProto.INT64))

    def norm(x):
        mean = g.op("ReduceMean", g.op("Mul", x, x), axes=[-1], keepdims=1)
        return g.op("Mul", g.op("Div", x, g.op("Sqrt", g.op("Add", mean, g.constant(1e-5)))), g.weight(width))

    x = g.op("Gather", g.weight(words, width), "ids")
    for layer in range(layers):
        y = norm(x)
        q, k, v = (heads_of(g, g.linear(y, 1, width, width), 1, heads, size) for _ in range(3))
        for name, new in (("key", k), ("value", v)):
            g.inputs.append(g.value(f"past.{layer}.{name}", [1, heads, past, size]))
            g.outputs.append(g.value(f"present.{layer}.{name}", [1, heads, past + 1, size]))
            g.op("Concat", f"past.{layer}.{name}", new, out=f"present.{layer}.{name}", axis=2)
        mixed = attention(g, q, f"present.{layer}.key", f"present.{layer}.value", heads, 1, past + 1, size)
        x = g.op("Add", x, g.linear(mixed, 1, width, width))
        y = norm(x)
        gate, up = g.linear(y, 1, width, hidden), g.linear(y, 1, width, hidden)
        y = g.op("Mul", g.op("Mul", gate, g.op("Sigmoid", gate)), up)
        x = g.op("Add", x, g.linear(y, 1, hidden, width))
    g.op("Identity", g.linear(norm(x), 1, width, words), out="logits")
    g.outputs.append(g.value("logits", [1, 1, words]))
    return g


if len(sys.argv) != 2:
    sys.exit(__doc__)
target = pathlib.Path(sys.argv[1])
target.mkdir(parents=True, exist_ok=True)
for model in (resnet50(), bert(), decoder7b()):
    model.save(target)
