#!/usr/bin/env python3
"""Networks of ONNX as .tflite files, with the same weights, so that TFLM can be measured on them. Nothing else uses this.

Usage: to_tflite.py convert FOLDER NETWORK INPUT       FOLDER: with model.onnx and test_data_set_0 (its first row)
       to_tflite.py compare FOLDER OUTPUT              OUTPUT: what TFLM computed of INPUT

PYTHONPATH has to hold the folders tensorflow/lite/python of tflite-micro (schema_py_generated) and python of flatbuffers.

convert writes the network and its test input, and prints how many kinds of operators it has and the C++ that tells
TFLM's resolver of them. Values are NHWC. Batch normalisation, biases and Relu are folded into the layer before, as
TensorFlow's converter does it. A network with QuantizeLinear and DequantizeLinear becomes one of int8 with the same
scales and zero points, with int8 inputs and outputs: the conversion at its ends is left out. Softmax of int8 has the one
output scale that TensorFlow Lite takes, 1/256.
compare exits with 1 where the output differs from the expected one by more than a step of int8 (and half a step, for the
rounding of what is expected; after Softmax, also what one step of its operand moves), or 1e-4 of f32 (of the largest
output, where that is above 1).
"""
import os
import sys

import numpy as np
import onnx
import onnx.numpy_helper as nh

SOFTMAX_SCALE, SOFTMAX_ZERO = 1 / 256, -128
# The resolver's functions. Of each operator TFLM has a form for int8 alone, which is smaller.
ADDED_BY = {"ADD": "AddAdd", "AVERAGE_POOL_2D": "AddAveragePool2D", "CONV_2D": "AddConv2D", "MAX_POOL_2D": "AddMaxPool2D",
            "DEPTHWISE_CONV_2D": "AddDepthwiseConv2D", "FULLY_CONNECTED": "AddFullyConnected", "SOFTMAX": "AddSoftmax"}


def test_tensor(folder, kind):
    tensor = onnx.TensorProto()
    tensor.ParseFromString(open(os.path.join(folder, "test_data_set_0", kind + "_0.pb"), "rb").read())
    return nh.to_array(tensor)


class Network:
    """An ONNX graph of batch 1, and what is asked of it."""

    def __init__(self, folder):
        model = onnx.load(os.path.join(folder, "model.onnx"))
        self.constants = {i.name: nh.to_array(i) for i in model.graph.initializer}
        for value in list(model.graph.input) + list(model.graph.output):
            for dim in value.type.tensor_type.shape.dim:
                if dim.dim_param:
                    dim.dim_value = 1
        graph = onnx.shape_inference.infer_shapes(model).graph
        self.nodes = list(graph.node)
        self.input = [i.name for i in graph.input if i.name not in self.constants][0]
        self.output = graph.output[0].name
        self.shapes = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim]
                       for v in list(graph.input) + list(graph.output) + list(graph.value_info)}
        self.readers = {}
        for node in self.nodes:
            for name in node.input:
                self.readers.setdefault(name, []).append(node)
        self.scales = {}  # of a constant: (per channel)
        for node in self.nodes:
            if node.op_type == "DequantizeLinear" and node.input[0] in self.constants:
                self.constants[node.output[0]] = self.constants[node.input[0]]
                self.scales[node.output[0]] = self.constants[node.input[1]]
            elif node.op_type == "Reshape" and node.input[0] in self.constants:
                self.constants[node.output[0]] = self.constants[node.input[0]].reshape(self.constants[node.input[1]])

    def reader(self, name):
        """The one node that reads a value, or None."""
        readers = self.readers.get(name, [])
        return readers[0] if len(readers) == 1 else None

    def quantised(self, name):
        """(scale, zero point) of a value that a QuantizeLinear reads, or None."""
        node = self.reader(name)
        if node is None or node.op_type != "QuantizeLinear":
            return None
        return float(self.constants[node.input[1]]), int(self.constants[node.input[2]])


def attributes(node):
    return {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}


def padding(node, size, result, schema):
    """SAME or VALID, where the pads are TensorFlow's."""
    a = attributes(node)
    window, strides = a["kernel_shape"], a["strides"]
    if a.get("auto_pad", b"NOTSET") == b"SAME_UPPER":
        return schema.Padding.SAME
    pads = a.get("pads", [0, 0, 0, 0])
    if not any(pads):
        return schema.Padding.VALID
    for i in (0, 1):
        total = max((result[i] - 1) * strides[i] + window[i] - size[i], 0)
        if [pads[i], pads[i + 2]] != [total // 2, total - total // 2]:
            sys.exit(f"{node.name or node.op_type}: pads {pads} are not TensorFlow's")
    return schema.Padding.SAME


class Writer:
    """The .tflite model of a network."""

    def __init__(self, net):
        import schema_py_generated as schema
        self.net, self.schema = net, schema
        self.buffers = [schema.BufferT()]  # the first one is empty: of what has no data
        self.tensors, self.operators, self.codes, self.of = [], [], [], {}
        self.flattened = {}  # a value, with the channels, rows and columns that it had
        self.folded = set()  # values of operators that are in the layer before them

    def tensor(self, shape, kind, data=None, scale=None, zero=0, axis=0):
        s = self.schema
        t = s.TensorT()
        t.shape, t.type = [int(d) for d in shape], getattr(s.TensorType, kind)
        if data is not None:
            t.buffer = len(self.buffers)
            buffer = s.BufferT()
            buffer.data = np.frombuffer(np.ascontiguousarray(data).tobytes(), np.uint8)
            self.buffers.append(buffer)
        if scale is not None:
            q = s.QuantizationParametersT()
            q.scale = [float(v) for v in np.atleast_1d(scale)]
            q.zeroPoint, q.quantizedDimension = [int(zero)] * len(q.scale), axis
            t.quantization = q
        self.tensors.append(t)
        return len(self.tensors) - 1

    def value(self, name, quantised):
        """A tensor for an activation, NHWC."""
        shape = self.net.shapes[name]
        if len(shape) == 4:
            shape = [shape[0], shape[2], shape[3], shape[1]]
        if quantised is None:
            return self.tensor(shape, "FLOAT32")
        return self.tensor(shape, "INT8", scale=quantised[0], zero=quantised[1])

    def operator(self, kind, options, inputs, outputs, version):
        s = self.schema
        if (kind, version) not in self.codes:
            self.codes.append((kind, version))
        o = s.OperatorT()
        o.opcodeIndex, o.inputs, o.outputs = self.codes.index((kind, version)), inputs, outputs
        name = type(options).__name__[:-1]
        o.builtinOptionsType, o.builtinOptions = getattr(s.BuiltinOptions, name), options
        self.operators.append(o)

    def finish(self, inputs, outputs):
        import flatbuffers
        s = self.schema
        model, graph = s.ModelT(), s.SubGraphT()
        graph.tensors, graph.operators, graph.inputs, graph.outputs = self.tensors, self.operators, inputs, outputs
        model.version, model.subgraphs, model.buffers, model.operatorCodes = 3, [graph], self.buffers, []
        for kind, version in self.codes:
            code = s.OperatorCodeT()
            code.builtinCode = getattr(s.BuiltinOperator, kind)
            code.deprecatedBuiltinCode, code.version = min(code.builtinCode, 127), version
            model.operatorCodes.append(code)
        builder = flatbuffers.Builder(1 << 20)
        builder.Finish(model.Pack(builder), b"TFL3")
        return bytes(builder.Output())


def fold(w, name, weights, bias):
    """Adds, batch normalisation and Relu after a layer: (name of the last value, weights, bias, whether Relu). Output channels are first."""
    net, relu = w.net, False
    while (node := net.reader(name)) is not None and not relu:
        if node.op_type == "Add" and any(i in net.constants for i in node.input):
            bias = bias + net.constants[[i for i in node.input if i in net.constants][0]].reshape(-1)
        elif node.op_type == "BatchNormalization":
            scale, shift, mean, variance = (net.constants[i].astype(np.float64) for i in node.input[1:])
            factor = scale / np.sqrt(variance + attributes(node)["epsilon"])
            weights = weights * factor.reshape([-1] + [1] * (weights.ndim - 1))
            bias = (bias - mean) * factor + shift
        elif node.op_type == "Relu":
            relu = True
        else:
            break
        name = node.output[0]
        w.folded.add(name)
    return name, weights, bias, relu


def add_layer(w, node):
    """Conv, Gemm or MatMul, and what is folded into it."""
    net, s, a = w.net, w.schema, attributes(node)
    source, weights = node.input[0], net.constants[node.input[1]]
    if node.op_type == "MatMul" or node.op_type == "Gemm" and not a.get("transB"):
        weights = weights.T
    channels = weights.shape[0]
    bias = net.constants[node.input[2]] if len(node.input) > 2 else np.zeros(channels)
    scale = net.scales.get(node.input[1])
    name, weights, bias, relu = fold(w, node.output[0], weights, bias)
    of_source, depthwise = net.shapes[source], a.get("group", 1) > 1
    if node.op_type == "Conv":
        if depthwise and a["group"] != of_source[1]:
            sys.exit(f"{node.output[0]}: groups of several channels")
        weights = weights.transpose((1, 2, 3, 0) if depthwise else (0, 2, 3, 1))
        o = s.DepthwiseConv2DOptionsT() if depthwise else s.Conv2DOptionsT()
        o.padding = padding(node, of_source[2:], net.shapes[node.output[0]][2:], s)
        o.strideH, o.strideW = a["strides"]
        o.dilationHFactor = o.dilationWFactor = 1
        if depthwise:
            o.depthMultiplier = 1
        kind = "DEPTHWISE_CONV_2D" if depthwise else "CONV_2D"
    else:
        flat = w.flattened.get(source)
        if flat and flat[1] * flat[2] > 1:  # rows were in the order of NCHW
            weights = weights.reshape([channels] + flat).transpose(0, 2, 3, 1).reshape(channels, -1)
        o, kind = s.FullyConnectedOptionsT(), "FULLY_CONNECTED"
    if relu:
        o.fusedActivationFunction = s.ActivationFunctionType.RELU
    quantised = net.quantised(name)
    tensors = [w.of[source]]
    if quantised is None:
        tensors += [w.tensor(weights.shape, "FLOAT32", weights.astype(np.float32)), w.tensor([channels], "FLOAT32", bias.astype(np.float32))]
    else:
        step = w.tensors[w.of[source]].quantization.scale[0]
        tensors += [w.tensor(weights.shape, "INT8", weights.astype(np.int8), scale, axis=3 if depthwise else 0),
                    w.tensor([channels], "INT32", bias.astype(np.int32), np.float64(step) * scale)]
    w.of[name] = w.value(name, quantised)
    w.operator(kind, o, tensors, [w.of[name]], 1 if quantised is None else 3)


def add_other(w, node):
    """Pools, sums and Softmax."""
    net, s, a = w.net, w.schema, attributes(node)
    name, sources = node.output[0], [w.of[i] for i in node.input]
    after = net.reader(name)
    if node.op_type in ("AveragePool", "MaxPool"):
        o, kind = s.Pool2DOptionsT(), node.op_type[:-4].upper() + "_POOL_2D"
        o.filterHeight, o.filterWidth = a["kernel_shape"]
        o.strideH, o.strideW = a["strides"]
        o.padding = padding(node, net.shapes[node.input[0]][2:], net.shapes[name][2:], s)
    elif node.op_type == "Add":
        o, kind = s.AddOptionsT(), "ADD"
        if after is not None and after.op_type == "Relu":
            o.fusedActivationFunction, name = s.ActivationFunctionType.RELU, after.output[0]
            w.folded.add(name)
    elif node.op_type == "Softmax":
        o, kind = s.SoftmaxOptionsT(), "SOFTMAX"
        o.beta = 1.0
    else:
        sys.exit(f"{node.op_type}: not among the operators that are converted")
    quantised = net.quantised(name)
    if quantised and kind == "SOFTMAX":
        quantised = SOFTMAX_SCALE, SOFTMAX_ZERO
    w.of[name] = w.value(name, quantised)
    w.operator(kind, o, sources, [w.of[name]], 1 if quantised is None else 2)


def convert(net):
    """The model's bytes and its operators' names."""
    w = Writer(net)
    w.of[net.input] = w.value(net.input, net.quantised(net.input))
    for node in net.nodes:
        source, name = node.input[0], node.output[0]
        if name in net.constants or name in w.folded or source in net.constants:
            continue
        if node.op_type in ("QuantizeLinear", "DequantizeLinear"):
            w.of[name] = w.of[source]
            if source in w.flattened:
                w.flattened[name] = w.flattened[source]
        elif node.op_type in ("Flatten", "Reshape"):  # a product takes its operand as it is
            w.of[name] = w.of[source]
            w.flattened[name] = net.shapes[source][1:]
        elif node.op_type in ("Conv", "Gemm", "MatMul"):
            add_layer(w, node)
        else:
            add_other(w, node)
    return w.finish([w.of[net.input]], [w.of[net.output]]), [kind for kind, _ in w.codes]


def convert_to(folder, network, test_input):
    net = Network(folder)
    data, kinds = convert(net)
    open(network, "wb").write(data)
    x, quantised = test_tensor(folder, "input")[:1], net.quantised(net.input)
    if x.ndim == 4:
        x = x.transpose(0, 2, 3, 1)
    if quantised:
        x = np.clip(np.rint(x / np.float32(quantised[0])) + quantised[1], -128, 127).astype(np.int8)
    open(test_input, "wb").write(np.ascontiguousarray(x).tobytes())
    form = "_INT8()" if quantised else "()"
    print(len(kinds), "".join(f"resolver.{ADDED_BY[kind]}(tflite::Register_{kind}{form});" for kind in sorted(kinds)))


def compare(folder, output):
    net, expected = Network(folder), test_tensor(folder, "output")[:1].reshape(-1)
    last = next(n for n in net.nodes if net.output in n.output)
    if last.op_type != "DequantizeLinear":
        difference = float(np.abs(np.fromfile(output, np.float32) - expected).max() / max(1, np.abs(expected).max()))
        print(f"largest difference {difference:.1e}")
        return not difference <= 1e-4
    made = {name: node for node in net.nodes for name in node.output}
    step, zero = float(net.constants[last.input[1]]), int(net.constants[last.input[2]])
    node, moved = made[made[last.input[0]].input[0]], 0  # what the last QuantizeLinear reads
    if node.op_type == "Softmax":
        step, zero = SOFTMAX_SCALE, SOFTMAX_ZERO
        # d softmax / d its own operand = p (1 - p): what a step of that moves
        moved = float(net.constants[made[node.input[0]].input[1]]) * expected * (1 - expected) / step
    values = (np.fromfile(output, np.int8).astype(np.float64) - zero) * step
    steps = np.abs(values - expected) / step
    print(f"largest difference {steps.max():.2f} steps, on average {steps.mean():.2f}")
    return not (steps <= 1.5 + np.max(moved)).all()


if __name__ == "__main__":
    if len(sys.argv) == 5 and sys.argv[1] == "convert":
        convert_to(*sys.argv[2:])
    elif len(sys.argv) == 4 and sys.argv[1] == "compare":
        sys.exit(int(compare(*sys.argv[2:])))
    else:
        sys.stderr.write(__doc__)
        sys.exit(2)
