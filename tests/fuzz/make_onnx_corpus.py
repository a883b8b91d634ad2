#!/usr/bin/python3
"""Makes the seed corpus of the ONNX importer's fuzz target: tests/fuzz/corpus/onnx_import/*.onnx.

Small models, one feature each, written with python3-onnx. Run it from anywhere; the output is deterministic.
"""
import os

from onnx import TensorProto, helper

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "onnx_import")


def info(name, dims, element=FLOAT):
    return helper.make_tensor_value_info(name, element, dims)


def ints(name, values):
    return helper.make_tensor(name, INT64, [len(values)], values)


def save(name, nodes, inputs, outputs, initializers=(), opset=13, functions=(), domains=()):
    graph = helper.make_graph(nodes, name, inputs, outputs, list(initializers))
    opsets = [helper.make_opsetid("", opset)] + [helper.make_opsetid(d, 1) for d in domains]
    model = helper.make_model(graph, opset_imports=opsets, functions=list(functions), ir_version=8)
    with open(os.path.join(OUT, name + ".onnx"), "wb") as file:
        file.write(model.SerializeToString(deterministic=True))


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs, outputs, name="n_" + outputs[0], **attributes)


def main():
    os.makedirs(OUT, exist_ok=True)
    weights = helper.make_tensor("w", FLOAT, [2, 1, 3, 3], [0.5] * 18)
    save("conv", [node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1], strides=[2, 2])], [info("x", [1, 1, 8, 8])],
         [info("y", None)], [weights])
    save("pool_ceil", [node("MaxPool", ["x"], ["y", "i"], kernel_shape=[3, 3], ceil_mode=1)],
         [info("x", [1, 1, 8, 8])], [info("y", None), info("i", None, INT64)])
    save("reshape_symbolic",
         [node("Shape", ["x"], ["s"]), node("Gather", ["s", "zero"], ["n"]),
          node("Unsqueeze", ["n", "zero1"], ["n1"]), node("Concat", ["n1", "rest"], ["shape"], axis=0),
          node("Reshape", ["x", "shape"], ["y"])],
         [info("x", ["N", 2, 3])], [info("y", None)],
         [helper.make_tensor("zero", INT64, [], [0]), ints("zero1", [0]), ints("rest", [-1])])
    save("slice_pad", [node("Slice", ["x", "b", "e", "a"], ["h"]), node("Pad", ["h", "p"], ["y"])],
         [info("x", [4, 4])], [info("y", None)],
         [ints("b", [1]), ints("e", [9]), ints("a", [-1]), ints("p", [0, 1, 0, 1])])
    save("old_axes", [node("Unsqueeze", ["x"], ["h"], axes=[0]), node("Squeeze", ["h"], ["g"], axes=[0]),
                      node("Slice", ["g"], ["y"], starts=[0], ends=[2])], [info("x", [4])], [info("y", None)], opset=9)
    save("old_broadcast", [node("Add", ["x", "b"], ["y"], broadcast=1, axis=1)],
         [info("x", [2, 3, 4]), info("b", [3])], [info("y", None)], opset=6)
    save("old_softmax", [node("Softmax", ["x"], ["y"], axis=1)], [info("x", ["N", 3, 4])], [info("y", None)], opset=11)
    save("dropout", [node("Dropout", ["x"], ["y", "m"])], [info("x", [2, 2])],
         [info("y", None), info("m", None, BOOL)])
    save("einsum", [node("Einsum", ["x", "x"], ["y"], equation="...ij,...jk->...ik")], [info("x", [2, 3, 3])],
         [info("y", None)])
    save("resize", [node("Resize", ["x", "", "s"], ["y"], mode="linear")], [info("x", [1, 1, 4, 4])],
         [info("y", None)], [helper.make_tensor("s", FLOAT, [4], [1, 1, 2, 2])])
    save("constants", [node("Constant", [], ["a"], value_ints=[1, 2]), node("Constant", [], ["b"], value_float=2.0),
                       node("ConstantOfShape", ["a"], ["c"]), node("Mul", ["c", "b"], ["y"])], [], [info("y", None)])
    branch = [helper.make_graph([node(op, ["x"], ["r" + op])], op, [], [info("r" + op, [2])])
              for op in ("Relu", "Neg")]
    save("if", [node("If", ["c"], ["y"], then_branch=branch[0], else_branch=branch[1])],
         [info("c", [], BOOL), info("x", [2])], [info("y", None)])
    body = helper.make_graph([node("Identity", ["go"], ["go2"]), node("Add", ["acc", "x"], ["acc2"]),
                              node("Identity", ["acc2"], ["scan"])], "body",
                             [info("i", [], INT64), info("go", [], BOOL), info("acc", [2])],
                             [info("go2", [], BOOL), info("acc2", [2]), info("scan", [2])])
    save("loop", [node("Loop", ["m", "", "x"], ["y", "z"], body=body)], [info("x", [2])],
         [info("y", None), info("z", None)], [helper.make_tensor("m", INT64, [], [3])])
    function = helper.make_function("own", "Twice", ["p"], ["q"], [node("Add", ["p", "p"], ["q"])],
                                    [helper.make_opsetid("", 13)])
    save("function", [helper.make_node("Twice", ["x"], ["y"], domain="own")], [info("x", [2])], [info("y", None)],
         functions=[function], domains=["own"])
    save("quantized", [node("QuantizeLinear", ["x", "s", "z"], ["q"]), node("DequantizeLinear", ["q", "s", "z"], ["y"])],
         [info("x", [2])], [info("y", None)],
         [helper.make_tensor("s", FLOAT, [], [0.1]), helper.make_tensor("z", TensorProto.UINT8, [], [3])])
    save("lstm", [node("LSTM", ["x", "w", "r"], ["", "h"], hidden_size=1)], [info("x", [2, 1, 1])], [info("h", None)],
         [helper.make_tensor("w", FLOAT, [1, 4, 1], [1] * 4), helper.make_tensor("r", FLOAT, [1, 4, 1], [1] * 4)])
    save("unsorted", [node("Relu", ["h"], ["y"]), node("Neg", ["x"], ["h"])], [info("x", [2])], [info("y", None)])


if __name__ == "__main__":
    main()
