#!/usr/bin/python3
"""Writes a decoder with random weights: layers of causal attention and of two products, as in GPT-2 without embeddings.

Usage: make_decoder.py OUT.onnx [--layers 12] [--width 512] [--heads 8] [--rows 32]
Needs python3-onnx and python3-numpy. The same arguments give the same file.
"""
import argparse

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Graph:
    def __init__(self):
        self.random = np.random.default_rng(1)
        self.nodes, self.constants = [], []

    def constant(self, name, array):
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def weights(self, name, *shape):
        return self.constant(name, (self.random.standard_normal(shape) * 0.02).astype(np.float32))

    def op(self, kind, inputs, name, **attributes):
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name


def add_norm(graph, x, name, width):
    return graph.op("LayerNormalization", [x, graph.weights(name + "_scale", width), graph.weights(name + "_bias", width)],
                    name)


def add_attention(graph, x, p, width):
    parts = {}
    for part in "qkv":
        y = graph.op("MatMul", [x, graph.weights(p + "w" + part, width, width)], p + part)
        y = graph.op("Reshape", [y, "by_head"], p + part + "_heads")
        parts[part] = graph.op("Transpose", [y], p + part + "_t", perm=[0, 2, 3, 1] if part == "k" else [0, 2, 1, 3])
    y = graph.op("MatMul", [parts["q"], parts["k"]], p + "scores")
    y = graph.op("Mul", [y, "scale"], p + "scaled")
    y = graph.op("Add", [y, "mask"], p + "masked")
    y = graph.op("Softmax", [y], p + "softmax", axis=-1)
    y = graph.op("MatMul", [y, parts["v"]], p + "mixed")
    y = graph.op("Transpose", [y], p + "mixed_t", perm=[0, 2, 1, 3])
    y = graph.op("Reshape", [y, "whole"], p + "joined")
    return graph.op("MatMul", [y, graph.weights(p + "wo", width, width)], p + "out")


def add_layer(graph, x, layer, width):
    p = f"l{layer}_"
    y = add_attention(graph, add_norm(graph, x, p + "norm1", width), p, width)
    x = graph.op("Add", [x, y], p + "sum1")
    y = add_norm(graph, x, p + "norm2", width)
    y = graph.op("MatMul", [y, graph.weights(p + "up_w", width, 4 * width)], p + "up")
    y = graph.op("Relu", [y], p + "relu")
    y = graph.op("MatMul", [y, graph.weights(p + "down_w", 4 * width, width)], p + "down")
    return graph.op("Add", [x, y], p + "sum2")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--rows", type=int, default=32)
    arguments = parser.parse_args()
    width, heads, rows = arguments.width, arguments.heads, arguments.rows
    graph = Graph()
    graph.constant("by_head", np.array([0, 0, heads, width // heads], np.int64))
    graph.constant("whole", np.array([0, 0, width], np.int64))
    graph.constant("mask", np.triu(np.full((1, 1, rows, rows), -1e9, np.float32), 1))
    graph.constant("scale", np.array((width // heads) ** -0.5, np.float32))
    x = "x"
    for layer in range(arguments.layers):
        x = add_layer(graph, x, layer, width)
    graph.nodes[-1].output[0] = "y"
    shape = [1, rows, width]
    model = helper.make_model(helper.make_graph(graph.nodes, "decoder",
                                                [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                                                [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
                                                graph.constants), opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.save(model, arguments.out)


if __name__ == "__main__":
    main()
