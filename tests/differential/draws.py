"""What random_fused.py and random_forms.py share: a case draws nodes, constants and inputs; its model runs in both at three sizes."""
import argparse
import collections
import os
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper, numpy_helper

from peer import attempt, differs, use_package

F32, I32, I64, U8, I8 = np.float32, np.int32, np.int64, np.uint8, np.int8
MICROSOFT = 'com.microsoft'
SIZES = [dict(b=2, s=5, p=3, t=7), dict(b=1, s=1, p=9, t=4), dict(b=3, s=8, p=1, t=6)]  # batch, length, past, length of keys


class Draw:
    """What a case draws from: constants, and inputs whose extents are numbers or names of SIZES."""

    def __init__(self, seed):
        self.rng, self.constants, self.inputs, self.nodes = np.random.default_rng(seed), {}, {}, []
        self.opset, self.ir, self.functions, self.domains = 21, 10, [], {MICROSOFT: 1}
        self.prefix = 'y'  # of names
        self.twin = None  # another Draw with the same results, for a form that ONNX Runtime has not
        self.save = onnx.save  # how Berth gets it
        self.quantum = False  # floats that were quantised: rounding that is seen moves a few, each by little

    def beside(self, opset):
        """The twin, with the same constants and inputs; its nodes are to be made."""
        self.twin = Draw(0)
        self.twin.rng, self.twin.constants, self.twin.inputs, self.twin.opset, self.twin.prefix = self.rng, self.constants, self.inputs, opset, 't'
        return self.twin

    def chance(self, p=0.5):
        return bool(self.rng.random() < p)

    def choice(self, *values):
        return values[self.rng.integers(len(values))]

    def array(self, dtype, shape, low=-1.0, high=1.0):
        if np.dtype(dtype) == np.bool_:
            return self.rng.random(shape) < 0.5
        if np.dtype(dtype).kind in 'iu':
            return self.rng.integers(int(low), int(high) + 1, shape).astype(dtype)
        return self.rng.uniform(low, high, shape).astype(dtype)

    def const(self, array):
        name = 'c%d' % len(self.constants)
        self.constants[name] = np.asarray(array)
        return name

    def weight(self, *shape, dtype=F32, low=-1.0, high=1.0):
        return self.const(self.array(dtype, shape, low, high))

    def input(self, *dims, dtype=F32, low=-1.0, high=1.0, made=None):
        """made: its values for a size, where random ones will not do."""
        name = 'x%d' % len(self.inputs)
        self.inputs[name] = (dtype, dims, low, high, made)
        return name

    def node(self, op, inputs, outputs=1, domain=MICROSOFT, **attrs):
        names = ['%s%d_%d' % (self.prefix, len(self.nodes), i) for i in range(outputs)]
        while inputs and not inputs[-1]:
            inputs = inputs[:-1]
        self.nodes.append(helper.make_node(op, inputs, names, name='%s_%d' % (op, len(self.nodes)), domain=domain, **attrs))
        return names

    def some(self, **attrs):
        return {k: v for k, v in attrs.items() if self.chance()}

    def feeds(self):
        def extent(d, size):
            return d if isinstance(d, int) else sum(size[part] for part in d.split('+'))
        return [{name: made(size) if made else self.array(dtype, [extent(d, size) for d in dims], low, high)
                 for name, (dtype, dims, low, high, made) in self.inputs.items()} for size in SIZES]

    def model(self, results):
        open_dims = lambda dims: [d if isinstance(d, int) else d.replace('+', '_and_') for d in dims]
        infos = [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(np.dtype(v[0])), open_dims(v[1])) for k, v in self.inputs.items()]
        kept = [onnx.TensorProto.FromString(v.SerializeToString()) if isinstance(v, onnx.TensorProto) else numpy_helper.from_array(v, k)
                for k, v in self.constants.items()]
        if self.ir < 4:  # initializers were inputs as well
            infos += [helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in kept]
        graph = helper.make_graph(self.nodes, 'fused', infos, [onnx.ValueInfoProto(name=r) for r in results], kept)
        opsets = [helper.make_opsetid(*pair) for pair in (('', self.opset), *self.domains.items())]
        return helper.make_model(graph, opset_imports=opsets, ir_version=self.ir, functions=self.functions)


def expected_of(proto, feeds):
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    try:
        session = ort.InferenceSession(proto.SerializeToString(), options, providers=['CPUExecutionProvider'])
        return [session.run(None, feed) for feed in feeds]
    except Exception:
        return None


def near(a, b, quantum=False):
    """As `differs`; quantised results may be one number apart: rounding that is seen. quantum: one in 50 floats, by a twentieth."""
    if isinstance(a, list) or a is None:
        return differs(a, b, 2e-4)
    b = np.asarray(b)
    if quantum and a.shape == b.shape:
        far = np.abs(a - b) > 2e-4 * (np.abs(a).max(initial=0) + 1)
        if far.sum() <= 1 + a.size // 50 and not differs(a, b, 0.05):
            return None
    if a.dtype.kind in 'iu' and a.dtype == b.dtype and a.shape == b.shape and a.dtype.itemsize < 4:
        return None if np.abs(a.astype(np.int64) - b.astype(np.int64)).max(initial=0) <= 1 else differs(a, b, 2e-4)
    return differs(a, b, 2e-4)


def compare(proto, feeds, expected, target, save, quantum, sink):
    """In a process of its own: what a crash would end. Puts None, or what differs."""
    berth = use_package()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'model.onnx')
        save(proto, path)
        try:
            model = berth.load(path, target=target)
            for at, (feed, wanted) in enumerate(zip(feeds, expected)):
                got = model(feed)
                got = list(got.values()) if isinstance(got, dict) else got if isinstance(got, (list, tuple)) and len(wanted) > 1 else [got]
                for name, a, b in zip((o.name for o in proto.graph.output), wanted, got):
                    problem = near(a, b, quantum)
                    if problem:
                        return sink.put('run %d, %s: %s' % (at, name, problem))
            sink.put(None)
        except berth.BerthError as error:
            sink.put('refused: %s' % error)


def main(cases, what, folder):
    """`cases`: functions of a Draw that give the results' names, or None: this one is left out."""
    parser = argparse.ArgumentParser(description=what.splitlines()[0])
    parser.add_argument('--seed', type=int, default=1, help='the first one; each model has the next')
    parser.add_argument('--count', type=int, default=200)
    parser.add_argument('--only', help='cases, separated by commas: ' + ', '.join(cases))
    parser.add_argument('--target', default='cpu')
    parser.add_argument('--limit', type=int, default=120, help='seconds for a model')
    parser.add_argument('--keep', default=os.path.join(tempfile.gettempdir(), folder), help='folder of what differs')
    options = parser.parse_args()
    names, counts = options.only.split(',') if options.only else list(cases), collections.Counter()
    for seed in range(options.seed, options.seed + options.count):
        name, d = names[seed % len(names)], Draw(seed)
        results = cases[name](d)
        if not results:
            continue
        proto, feeds = d.model(results), d.feeds()
        feeds.append(feeds[0])
        expected = expected_of(d.twin.model(results) if d.twin else proto, feeds)
        counts['refused by ONNX Runtime' if expected is None else 'compared'] += 1
        found = expected and attempt(compare, options.limit, proto, feeds, expected, options.target, d.save, d.quantum)
        if found:
            counts['refused' if found.startswith('refused') else 'differ'] += 1
            os.makedirs(options.keep, exist_ok=True)
            onnx.save(proto, os.path.join(options.keep, '%d.onnx' % seed))
            print('seed %d, %s: %s' % (seed, name, found[:400]), flush=True)
            shapes = {k: list(v.shape) for k, v in feeds[0].items()} | {k: list(getattr(v, 'shape', '?')) for k, v in d.constants.items()}
            for node in proto.graph.node:
                given = ', '.join('%s%s' % (i or '-', shapes.get(i, '')) for i in node.input)
                attrs = {a.name: helper.get_attribute_value(a) for a in node.attribute if a.type not in (a.TENSOR, a.GRAPH)}
                print('    %s(%s) %s' % (node.op_type, given, attrs or ''), flush=True)
    print(', '.join('%s: %d' % item for item in counts.items()))
    sys.exit(1 if counts['differ'] + counts['refused'] else 0)

