#!/usr/bin/env python3
"""make_mobilenetv2.py OUT.onnx [WIDTH] [SIZE] [DATA]: MobileNetV2 with 8-bit weights, activations and inputs (QDQ form), seeded.

Default: width 0.35, 144 x 144 pixels, 1000 classes. Batch normalisation is folded, scales are those of the sums that the random
weights give. DATA: a folder for one input and what ONNX Runtime computes from it (needs onnxruntime)."""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

width = float(sys.argv[2]) if len(sys.argv) > 2 else 0.35
size = int(sys.argv[3]) if len(sys.argv) > 3 else 144
random = np.random.RandomState(7)
nodes, constants = [], []


def constant(value):
    name = "c%d" % len(constants)
    constants.append(numpy_helper.from_array(np.asarray(value), name))
    return name


def node(kind, *inputs, **attributes):
    out = "v%d" % len(nodes)
    nodes.append(helper.make_node(kind, list(inputs), [out], **attributes))
    return out


def requantise(x, scale, zero):
    scale, zero = constant(np.float32(scale)), constant(np.uint8(zero))
    return node("DequantizeLinear", node("QuantizeLinear", x, scale, zero), scale, zero)


def layer(x, x_scale, shape, relu, **attributes):
    """Convolution or Gemm: weights of a scale per output, a bias, and for `relu` the clip of the quantisation."""
    weights = random.randint(-127, 128, shape).astype(np.int8)
    fan = int(np.prod(shape[1:]))
    scales = (random.uniform(0.7, 1.3, shape[0]) * 2.4 / (127 * np.sqrt(fan))).astype(np.float32)
    bias = random.randint(-2000, 2000, shape[0]).astype(np.int32)
    w = node("DequantizeLinear", constant(weights), constant(scales), constant(np.zeros(shape[0], np.int8)), axis=0)
    b = node("DequantizeLinear", constant(bias), constant((scales * np.float32(x_scale)).astype(np.float32)),
             constant(np.zeros(shape[0], np.int32)), axis=0)
    y = node("Gemm" if len(shape) == 2 else "Conv", x, w, b, **attributes)
    if relu:
        y = node("Clip", y, constant(np.float32(0)), constant(np.float32(6)))
    scale, zero = (6 / 255, 0) if relu else (8 / 255, 128)
    return requantise(y, scale, zero), scale


def conv(x, x_scale, inputs, outputs, kernel, stride, relu=True, group=1):
    pad = kernel // 2
    return layer(x, x_scale, (outputs, inputs // group, kernel, kernel), relu, group=group, strides=[stride] * 2,
                 kernel_shape=[kernel] * 2, pads=[pad] * 4)


def channels(count):
    """Divisible by 8, as the reference rounds them."""
    scaled = count * width
    rounded = max(8, int(scaled + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * scaled else rounded


in_scale = 2 / 255
x = node("DequantizeLinear", "image", constant(np.float32(in_scale)), constant(np.uint8(128)))
c = channels(32)
x, s = conv(x, in_scale, 3, c, 3, 2)
for expand, outputs, repeat, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
    outputs = channels(outputs)
    for i in range(repeat):
        step, inner = stride if i == 0 else 1, c * expand
        y, t = conv(x, s, c, inner, 1, 1) if expand > 1 else (x, s)
        y, t = conv(y, t, inner, inner, 3, step, group=inner)
        y, t = conv(y, t, inner, outputs, 1, 1, relu=False)
        if step == 1 and c == outputs:
            y, t = requantise(node("Add", x, y), 12 / 255, 128), 12 / 255
        x, s, c = y, t, outputs
x, s = conv(x, s, c, max(1280, channels(1280)), 1, 1)
x = requantise(node("GlobalAveragePool", x), s, 0)
x, s = layer(node("Flatten", x), s, (1000, 1280), False, transB=1)
nodes[-1].output[0] = "scores"
graph = helper.make_graph(nodes, "mobilenetv2", [helper.make_tensor_value_info("image", TensorProto.UINT8, [1, 3, size, size])],
                          [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, 1000])], constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
onnx.checker.check_model(model)
onnx.save(model, sys.argv[1])
if len(sys.argv) > 4:
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    image = random.randint(0, 256, (1, 3, size, size)).astype(np.uint8)
    scores = onnxruntime.InferenceSession(sys.argv[1], options).run(None, {"image": image})[0]
    os.makedirs(sys.argv[4], exist_ok=True)
    image.tofile(os.path.join(sys.argv[4], "image.bin"))
    scores.tofile(os.path.join(sys.argv[4], "scores.bin"))
