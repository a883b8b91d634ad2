"""Other extents for the cases of compare_operators.py, drawn by a seed: shapes that nobody chose.

    model, feeds = vary(name, seed, model, feeds)

Every extent of a case, in a random order, becomes another one within 30 % (small ones: by one), wherever it stands: in operands, in attributes
and in operands that hold shapes. So do its multiples, where that is needed (4 x hidden_size). Then single extents change by themselves.
What ONNX Runtime refuses is taken back: it is the judge of which extents must agree. The same seed gives the same shapes.
"""
import random
import zlib

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper, numpy_helper

FIXED = ('axis', 'axes', 'pads', 'to', 'perm', 'opset', 'mode', 'batch_dims', 'block_size', 'bits')


def drawn(rng, extent):
    """Another extent of similar size, mostly one that fills no vector."""
    low, high = max(1, int(extent * .7)), max(extent + 1, int(extent * 1.3))
    return rng.choice([e for e in range(low, high + 1) if e != extent])


def of_size(array, shape):
    return np.resize(array, shape) if array.size else np.zeros(shape, array.dtype)


class Case:
    """A model taken apart: its operands as arrays, which of them are fed, and its nodes' integer attributes."""

    def __init__(self, model, feeds):
        self.model, self.fed = model, list(feeds)
        self.arrays = dict(feeds, **{i.name: numpy_helper.to_array(i) for i in model.graph.initializer})
        self.attributes = {(n, a.name): helper.get_attribute_value(a) for n, node in enumerate(model.graph.node) for a in node.attribute
                           if a.type in (onnx.AttributeProto.INT, onnx.AttributeProto.INTS) and a.name not in FIXED}

    def copy(self):
        other = object.__new__(Case)
        other.model, other.fed, other.arrays, other.attributes = self.model, self.fed, dict(self.arrays), dict(self.attributes)
        return other

    def shapes(self):
        return {name: array.shape for name, array in self.arrays.items()}

    def extents(self):
        return sorted({e for array in self.arrays.values() for e in array.shape if e > 1})

    def is_shape(self, name):
        array = self.arrays[name]
        return name not in self.fed and array.dtype == np.int64 and array.size <= 8

    def replaced(self, old, new, multiples, words):
        """`old` is `new` everywhere; with `multiples` so are 2 to 8 times of it, with `words` attributes and constant shapes, too."""
        other, scales = self.copy(), range(1, 9 if multiples else 2)
        swap = {old * s: new * s for s in scales}
        for name, array in self.arrays.items():
            if words and self.is_shape(name):
                other.arrays[name] = np.array([swap.get(int(v), v) for v in array.ravel()], array.dtype).reshape(array.shape)
            elif any(e in swap for e in array.shape):
                other.arrays[name] = of_size(array, tuple(swap.get(e, e) for e in array.shape))
        for key, value in self.attributes.items() if words else ():
            other.attributes[key] = [swap.get(v, v) for v in value] if isinstance(value, (list, tuple)) else swap.get(value, value)
        return other

    def resized(self, name, axis, new):
        other, shape = self.copy(), list(self.arrays[name].shape)
        shape[axis] = new
        other.arrays[name] = of_size(self.arrays[name], tuple(shape))
        return other

    def built(self):
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        del model.graph.value_info[:]
        for (n, name), value in self.attributes.items():
            for attribute in model.graph.node[n].attribute:
                if attribute.name == name:
                    attribute.CopyFrom(helper.make_attribute(name, value))
        for initializer in model.graph.initializer:
            initializer.CopyFrom(numpy_helper.from_array(self.arrays[initializer.name], initializer.name))
        for value in model.graph.input:
            value.CopyFrom(helper.make_tensor_value_info(value.name, helper.np_dtype_to_tensor_dtype(self.arrays[value.name].dtype), self.arrays[value.name].shape))
        return model, {name: self.arrays[name] for name in self.fed}

    def runs(self):
        """Whether ONNX Runtime runs it, and its results have elements."""
        model, feeds = self.built()
        options = ort.SessionOptions()
        options.log_severity_level, options.intra_op_num_threads = 4, 1
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL  # its rewritten forms check less
        try:
            onnx.shape_inference.infer_shapes(model, strict_mode=not any(node.domain for node in model.graph.node), data_prop=True)
            results = ort.InferenceSession(model.SerializeToString(), options, providers=['CPUExecutionProvider']).run(None, feeds)
        except Exception:  # the two libraries have no common class of errors
            return False
        return all(np.size(r) for r in results)


def vary(name, seed, model, feeds):
    rng = random.Random(zlib.crc32(name.encode()) + 1000003 * seed)
    now = Case(model, feeds)
    old = now.extents()
    rng.shuffle(old)
    for extent in old:
        new = drawn(rng, extent)
        if extent not in now.extents() or extent < 5 and rng.random() < .7:
            continue  # kernels and factors mostly stay
        for multiples, words in ((True, True), (False, True), (True, False), (False, False)):
            other = now.replaced(extent, new, multiples, words)
            if other.runs():
                now = other
                break
    for operand in sorted(now.arrays):
        for axis, extent in enumerate(now.arrays[operand].shape):
            new = drawn(rng, extent)
            if extent >= 8 and not now.is_shape(operand) and rng.random() < .5:  # no windows of 3 x 4
                other = now.resized(operand, axis, new)
                now = other if other.runs() else now
    return now.built()
