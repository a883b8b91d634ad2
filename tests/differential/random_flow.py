#!/usr/bin/env python3
"""Random models with open dimensions and control flow in Berth and in ONNX Runtime: what differs, with a model that shows it.

    python3 -m pip install onnxruntime onnx numpy
    scripts/build.sh release
    tests/differential/random_flow.py [--seed 1] [--count 100] [--nodes 8] [--target cpu] [--split] [--keep FOLDER]

A model has branches, loops, scans and sequences inside each other, that read values from outside, trip counts and conditions from
shapes and from data, and dimensions that only a run knows. Berth loads it once and runs it at several shapes, as applications do, and once more
the first; ONNX Runtime runs each, not optimised. --split pins nodes to the devices of --target at random. Where a result
differs, the shortest list of the model's nodes that still differs is written to --keep with its inputs. Ends with 1 when anything differed.

Not in the test run, which has no ONNX Runtime: see README.md beside this file.
"""
import argparse
import collections
import os
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

from peer import attempt, differs, use_package

F, I, B = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
DTYPES = {F: np.float32, I: np.int64, B: np.bool_}
Value = collections.namedtuple('Value', 'name type dims')  # dims: extents, or names of open ones


class Body:
    """The nodes of a graph, and the values that its operators may read: its own, and those around it."""

    def __init__(self, model, outer):
        self.model, self.rng, self.nodes, self.values = model, model.rng, [], list(outer)

    def node(self, op, inputs, type_, dims, **attrs):
        out = self.model.name()
        names = [v.name if isinstance(v, Value) else v for v in inputs]
        self.nodes.append(helper.make_node(op, names, [out], name='%s_%s' % (op, out), **attrs))
        return Value(out, type_, tuple(dims))

    def add(self, *args, **attrs):
        self.values.append(self.node(*args, **attrs))
        return self.values[-1]

    def constant(self, array):
        array = np.asarray(array)
        out = self.model.name()
        self.nodes.append(helper.make_node('Constant', [], [out], value=numpy_helper.from_array(array)))
        return Value(out, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)

    def pick(self, fits=lambda v: True):
        found = [v for v in self.values if v.type == F and fits(v)]
        if not found:
            return None
        return found[self.rng.integers(len(found))] if self.rng.random() < 0.5 else found[-1 - self.rng.integers(min(3, len(found)))]

    def weight(self, *shape):
        return self.constant((self.rng.integers(-64, 65, shape) / 64).astype(np.float32))

    def extent(self, value, axis):
        """A scalar: how long the value is there."""
        shape = self.node('Shape', [value], I, [len(value.dims)])
        return self.node('Gather', [shape, self.constant(np.int64(axis))], I, [])

    def count(self):
        """A trip count: known, of a shape, or of an input."""
        kind = self.rng.integers(3)
        value = self.pick(lambda v: v.dims)
        if kind == 0 or value is None:
            return self.constant(np.int64(self.rng.integers(0, 5)))
        if kind == 1:
            return self.node('Min', [self.extent(value, 0), self.constant(np.int64(6))], I, [])
        return Value('times', I, ())

    def condition(self):
        """A boolean scalar of a shape, of an input's values, or of an input. Of values, only exact ones: rounding decides nothing."""
        kind = self.rng.integers(3)
        if kind == 0:
            return self.node('Greater', [self.extent(Value('x', F, ('N', 4)), 0), self.constant(np.int64(self.rng.integers(1, 7)))], B, [])
        if kind == 1:
            total = self.node('ReduceSum', [Value('x', F, ('N', 4))], F, [], keepdims=0)
            return self.node('Less', [total, self.constant(np.float32(self.rng.integers(-8, 9)))], B, [])
        return Value('flag', B, ())


class Model:
    def __init__(self, seed, node_count):
        self.rng, self.names, self.fresh = np.random.default_rng(seed), 0, 0
        self.inputs = [Value('x', F, ('N', 4)), Value('y', F, ('N', 'M')), Value('times', I, ()), Value('flag', B, ())]
        body = Body(self, self.inputs)
        for _ in range(node_count):
            draw(body, 0)
        self.nodes = body.nodes
        self.results = body.values[len(self.inputs):]

    def name(self):
        self.names += 1
        return 'v%d' % self.names

    def unknown(self):
        self.fresh += 1
        return 'u%d' % self.fresh

    def proto(self, results):
        """The model with these results, and only the nodes that they need."""
        needed, kept = {v.name for v in results}, []
        for node in reversed(self.nodes):
            if needed & set(node.output):
                kept.append(node)
                needed |= reads(node)
        inputs = [helper.make_tensor_value_info(v.name, v.type, v.dims) for v in self.inputs if v.name in needed]
        outputs = [helper.make_tensor_value_info(v.name, v.type, None) for v in results]
        graph = helper.make_graph(kept[::-1], 'random', inputs, outputs)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid('', 21)], ir_version=10)

    def feeds(self, rows, columns):
        quarter = lambda *shape: (self.rng.integers(-32, 33, shape) / 16).astype(np.float32)
        return {'x': quarter(rows, 4), 'y': quarter(rows, columns), 'times': np.asarray(self.rng.integers(0, 5)),
                'flag': np.asarray(self.rng.random() < 0.5)}


def reads(node):
    """Names that a node reads, those inside its graphs that come from outside included."""
    names = set(node.input)
    for attr in node.attribute:
        if attr.type == onnx.AttributeProto.GRAPH:
            made = {i.name for i in attr.g.input} | {o for n in attr.g.node for o in n.output}
            inner = {o.name for o in attr.g.output}.union(*(reads(n) for n in attr.g.node))
            names |= inner - made
    return names


# -- operators: each takes a body and a depth, and adds a value or gives None
def unary(b, depth):
    x = b.pick()
    return b.add(['Tanh', 'Relu', 'Neg', 'Abs', 'Sigmoid', 'Floor'][b.rng.integers(6)], [x], F, x.dims)


def binary(b, depth):
    x = b.pick()
    y = b.pick(lambda v: v.dims == x.dims or not v.dims)
    return b.add(['Add', 'Sub', 'Mul', 'Max', 'Min'][b.rng.integers(5)], [x, y or b.weight()], F, x.dims)


def product(b, depth):
    x = b.pick(lambda v: v.dims and isinstance(v.dims[-1], int))
    if x is None:
        return None
    wide = int(b.rng.choice([1, 3, 4, 8]))
    return b.add('MatMul', [x, b.weight(x.dims[-1], wide)], F, x.dims[:-1] + (wide,))


def both_products(b, depth):
    x = b.pick(lambda v: len(v.dims) == 2)
    y = x and b.pick(lambda v: len(v.dims) == 2 and v.dims[1] == x.dims[1])
    return y and b.add('MatMul', [x, b.node('Transpose', [y], F, y.dims[::-1])], F, (x.dims[0], y.dims[0]))


def transpose(b, depth):
    x = b.pick(lambda v: len(v.dims) > 1)
    perm = x and [int(i) for i in b.rng.permutation(len(x.dims))]
    return x and b.add('Transpose', [x], F, [x.dims[i] for i in perm], perm=perm)


def reduce(b, depth):
    x = b.pick(lambda v: v.dims)
    if x is None:
        return None
    axis, keep = int(b.rng.integers(len(x.dims))), int(b.rng.integers(2))
    open_ended = str(x.dims[axis]).startswith('u')  # it may be empty: sums only
    op = 'ReduceSum' if open_ended else ['ReduceSum', 'ReduceMax', 'ReduceMean'][b.rng.integers(3)]
    dims = [d for i, d in enumerate(x.dims) if i != axis] if not keep else [1 if i == axis else d for i, d in enumerate(x.dims)]
    return b.add(op, [x, b.constant(np.array([axis], np.int64))], F, dims, keepdims=keep)


def softmax(b, depth):
    x = b.pick(lambda v: v.dims and not str(v.dims[-1]).startswith('u'))
    return x and b.add('Softmax', [x], F, x.dims, axis=-1)


def concat(b, depth):
    x = b.pick(lambda v: v.dims)
    y = x and b.pick(lambda v: v.dims[1:] == x.dims[1:] and len(v.dims) == len(x.dims))
    return y and b.add('Concat', [x, y], F, (b.model.unknown(),) + x.dims[1:], axis=0)


def slice_(b, depth):
    x = b.pick(lambda v: v.dims)
    if x is None:
        return None
    axis = int(b.rng.integers(len(x.dims)))
    if isinstance(x.dims[axis], int):
        return None
    start, end, step = [(1, 1 << 40, 1), (0, -1, 1), (-1, -(1 << 40), -1), (0, 3, 1), (0, 1 << 40, 2)][b.rng.integers(5)]
    dims = [b.model.unknown() if i == axis else d for i, d in enumerate(x.dims)]
    return b.add('Slice', [x] + [b.constant(np.array([v], np.int64)) for v in (start, end, axis, step)], F, dims)


def expand(b, depth):
    """A row or a scalar as often as another value is long."""
    x = b.pick(lambda v: len(v.dims) < 2)
    y = b.pick(lambda v: v.dims)
    if x is None or y is None:
        return None
    rows = b.node('Unsqueeze', [b.extent(y, 0), b.constant(np.array([0], np.int64))], I, [1])
    shape = b.node('Concat', [rows, b.node('Shape', [x], I, [len(x.dims)])], I, [1 + len(x.dims)], axis=0)
    return b.add('Expand', [x, shape], F, (y.dims[0],) + x.dims)


def numbers(b, depth):
    y = b.pick(lambda v: v.dims)
    if y is None:
        return None
    ends = [b.constant(np.int64(0)), b.extent(y, 0), b.constant(np.int64(1))]
    return b.add('Cast', [b.node('Range', ends, I, [y.dims[0]])], F, [y.dims[0]], to=F)


def positive(b, depth):
    """The rows that a condition on data keeps."""
    x = b.pick(lambda v: v.dims)
    if x is None:
        return None
    first = b.node('Slice', [Value('x', F, ('N', 4))] + [b.constant(np.array([v], np.int64)) for v in (0, 1, 1)], F, ['N', 1])
    flat = b.node('Reshape', [first, b.constant(np.array([-1], np.int64))], F, ['N'])
    keep = b.node('Greater', [flat, b.weight()], B, ['N'])
    if x.dims[0] == 'N' and b.rng.random() < 0.5:
        return b.add('Compress', [x, keep], F, (b.model.unknown(),) + x.dims[1:], axis=0)
    places = b.node('Reshape', [b.node('NonZero', [keep], I, [1, 'k']), b.constant(np.array([-1], np.int64))], I, ['k'])
    base = x if x.dims[0] == 'N' else Value('y', F, ('N', 'M'))
    return b.add('Gather', [base, places], F, (b.model.unknown(),) + base.dims[1:], axis=0)


def graph_of(body, name, inputs, results, shaped=False):
    """A graph for an attribute; a result is a name of its own, since it may be a value from outside."""
    outs = [body.node('Identity', [r], r.type, r.dims) for r in results]
    infos = lambda values, typed: [helper.make_tensor_value_info(v.name, v.type, typed(v)) for v in values]
    return helper.make_graph(body.nodes, name, infos(inputs, lambda v: v.dims if not v.dims else None), infos(outs, lambda v: v.dims if shaped else None))


def inside(b, depth, inputs=()):
    body = Body(b.model, b.values + list(inputs))
    for _ in range(b.rng.integers(1, 4)):
        draw(body, depth + 1)
    return body


def branch(b, depth):
    condition = b.condition()
    first, second = inside(b, depth), inside(b, depth)
    x = first.pick()
    y = second.pick(lambda v: len(v.dims) == len(x.dims))
    if y is None:
        return None
    dims = [p if p == q else b.model.unknown() for p, q in zip(x.dims, y.dims)]
    return b.add('If', [condition], F, dims, then_branch=graph_of(first, 'then', [], [x]), else_branch=graph_of(second, 'else', [], [y]))


def loop(b, depth):
    start = b.pick()
    count, times = b.model.name(), b.count()
    i, go, state = Value(count, I, ()), Value(b.model.name(), B, ()), Value(b.model.name(), F, start.dims)
    body = inside(b, depth, [state])
    grows = bool(start.dims) and b.rng.random() < 0.3
    if grows:
        row = body.node('Slice', [state] + [body.constant(np.array([v], np.int64)) for v in (0, 1, 0)], F, start.dims)
        next_state = body.node('Concat', [state, row], F, start.dims, axis=0)
    else:
        same = body.pick(lambda v: v.dims == state.dims)
        next_state = body.node('Tanh', [body.node('Add', [state, same], F, state.dims)], F, state.dims)
    goes_on = go if b.rng.random() < 0.5 else body.node('Less', [i, body.constant(np.int64(b.rng.integers(1, 5)))], B, [])
    each = body.pick(lambda v: not any(str(d).startswith('u') for d in v.dims)) or state
    scanned = not grows and b.rng.random() < 0.5
    results = [goes_on, next_state] + ([each] if scanned else [])
    graph = graph_of(body, 'body', [i, go, state], results)
    dims = (b.model.unknown(),) + start.dims[1:] if grows else start.dims
    outs = [b.model.name() for _ in results[1:]]
    true = b.constant(np.bool_(True))
    b.nodes.append(helper.make_node('Loop', [times.name, true.name if b.rng.random() < 0.7 else '', start.name], outs, name='Loop_%s' % outs[0], body=graph))
    made = [Value(outs[0], F, dims)] + ([Value(outs[1], F, (b.model.unknown(),) + each.dims)] if scanned else [])
    b.values += made
    return made[0]


def scan(b, depth):
    x = b.pick(lambda v: v.dims and not str(v.dims[0]).startswith('u'))
    start = x and b.pick(lambda v: not any(str(d).startswith('u') for d in v.dims))
    if start is None:
        return None
    state, row = Value(b.model.name(), F, start.dims), Value(b.model.name(), F, x.dims[1:])
    body = inside(b, depth, [state, row])
    same = body.pick(lambda v: v.dims == state.dims)
    next_state = body.node('Tanh', [body.node('Sub', [state, same], F, state.dims)], F, state.dims)
    each = body.pick(lambda v: not any(str(d).startswith('u') for d in v.dims)) or row
    outs = [b.model.name(), b.model.name()]
    b.nodes.append(helper.make_node('Scan', [start.name, x.name], outs, name='Scan_%s' % outs[0], num_scan_inputs=1,
                                    body=graph_of(body, 'body', [state, row], [next_state, each], True),
                                    scan_input_directions=[int(b.rng.integers(2))]))
    b.values += [Value(outs[0], F, start.dims), Value(outs[1], F, (x.dims[0],) + each.dims)]
    return b.values[-1]


def sequence(b, depth):
    """Values of unequal lengths in a sequence, one taken out, the others joined."""
    x = b.pick(lambda v: v.dims)
    y = x and b.pick(lambda v: v.dims[1:] == x.dims[1:] and len(v.dims) == len(x.dims))
    if y is None:
        return None
    made = b.node('SequenceConstruct', [x, y, x], F, [])
    less = b.node('SequenceErase', [made, b.constant(np.int64(b.rng.integers(-3, 3)))], F, [])
    return b.add('ConcatFromSequence', [less], F, (b.model.unknown(),) + x.dims[1:], axis=0)


PLAIN = [unary, binary, binary, product, both_products, transpose, reduce, softmax, concat, slice_, expand, numbers, positive]
FLOW = [branch, loop, scan, sequence]


def draw(body, depth):
    flow = depth < 3 and body.rng.random() < (0.4 if depth == 0 else 0.25)
    kinds = FLOW if flow else PLAIN
    return kinds[body.rng.integers(len(kinds))](body, depth)


# -- comparing
def expected_of(proto, feeds):
    """What ONNX Runtime gives, or None: it refuses some models, as where a body is empty of rows."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    try:
        session = ort.InferenceSession(proto.SerializeToString(), options, providers=['CPUExecutionProvider'])
        return [session.run(None, {i.name: f[i.name] for i in proto.graph.input}) for f in feeds]
    except Exception:
        return None


NO_FILE = 'no program file'
ROWS, COLUMNS = (1, 5), (2, 7)  # all that the feeds have


def load(berth, path, proto, options, pins):
    """As --how says. None: this form of the model is not made, for a documented reason."""
    used = {d.dim_param for i in proto.graph.input for d in i.type.tensor_type.shape.dim}
    dims = {name: bounds for name, bounds in (('N', ROWS), ('M', COLUMNS)) if name in used}
    if options.how == 'session':
        return berth.load(path, target=options.target, pins=pins)
    if options.how == 'bounds':
        return berth.load(path, target=options.target, pins=pins, dims=dims)
    compiler = berth.Compiler(target=options.target, executor='vm')
    for pin in pins:
        compiler.add_pin(pin)
    for name, bounds in dims.items():
        compiler.set_dim(name, bounds)
    try:
        return berth.load(compiler.compile(path))
    except berth.BerthError as error:
        if error.code != 'UNSUPPORTED' and 'specialisation' not in str(error):
            raise
        return None  # shapes or rounds that data decides


def compare(proto, feeds, expected, options, seed, sink):
    """In a process of its own: what a crash would end. Puts None, or what differs."""
    berth = use_package()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'model.onnx')
        onnx.save(proto, path)
        try:
            pins = ()
            if options.split:
                rng, devices = np.random.default_rng(seed), options.devices
                pins = ['%s=%s' % (n.name, devices[rng.integers(len(devices))]) for n in proto.graph.node if n.name]
            model = load(berth, path, proto, options, pins)
            if model is None:
                return sink.put(NO_FILE)
            for at, (feed, wanted) in enumerate(zip(feeds, expected)):
                got = model({i.name: feed[i.name] for i in proto.graph.input})
                got = list(got.values()) if isinstance(got, dict) else got if isinstance(got, (list, tuple)) else [got]
                for name, a, b in zip((o.name for o in proto.graph.output), wanted, got):
                    if isinstance(a, np.ndarray) and a.shape == (0,) == np.shape(b)[:1]:
                        continue  # what a loop without a round collected: ONNX does not say of which shape
                    problem = differs(a, b, 2e-4, floor=1)
                    if problem:
                        return sink.put('run %d, %s: %s' % (at, name, problem))
            sink.put(None)
        except berth.BerthError as error:
            sink.put('refused: %s' % error)


def shorten(model, feeds, options, seed):
    """The first result of the model that differs alone; (model, expected values, what differs)."""
    for value in model.results:
        proto = model.proto([value])
        expected = expected_of(proto, feeds)
        found = expected and attempt(compare, options.limit, proto, feeds, expected, options, seed)
        if found and found != NO_FILE:
            return proto, expected, found
    return None


def keep(proto, feeds, expected, folder):
    os.makedirs(folder, exist_ok=True)
    onnx.save(proto, os.path.join(folder, 'model.onnx'))
    for at, (feed, values) in enumerate(zip(feeds, expected)):
        data = os.path.join(folder, 'test_data_set_%d' % at)
        os.makedirs(data, exist_ok=True)
        for kind, names, arrays in (('input', [i.name for i in proto.graph.input], [feed[i.name] for i in proto.graph.input]),
                                    ('output', [o.name for o in proto.graph.output], values)):
            for i, (name, array) in enumerate(zip(names, arrays)):
                with open(os.path.join(data, '%s_%d.pb' % (kind, i)), 'wb') as file:
                    file.write(numpy_helper.from_array(np.asarray(array), name).SerializeToString())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--seed', type=int, default=1, help='the first one; each model has the next')
    parser.add_argument('--count', type=int, default=100)
    parser.add_argument('--nodes', type=int, default=8, help='operators of a model, those inside others not counted')
    parser.add_argument('--target', default='cpu')
    parser.add_argument('--split', action='store_true', help='pin nodes to the devices of --target at random')
    parser.add_argument('--how', default='session', choices=['session', 'bounds', 'program'],
                        help='a session as it comes, one with bounds, or a program file for all shapes within bounds')
    parser.add_argument('--limit', type=int, default=120, help='seconds for a model')
    parser.add_argument('--keep', default=os.path.join(tempfile.gettempdir(), 'berth_random_flow'), help='folder of what differs')
    options = parser.parse_args()
    options.devices = [name + ':0' for name in options.target.split(',')]
    counts = collections.Counter()
    for seed in range(options.seed, options.seed + options.count):
        model = Model(seed, options.nodes)
        feeds = [model.feeds(rows, columns) for rows, columns in ((3, 2), (5, 7), (1, 4))]
        feeds.append(feeds[0])
        proto = model.proto(model.results)
        expected = expected_of(proto, feeds)
        counts['refused by ONNX Runtime' if expected is None else 'compared'] += 1
        found = expected and attempt(compare, options.limit, proto, feeds, expected, options, seed)
        if found == NO_FILE:
            counts['of no program file'] += 1
        elif found:
            proto, expected, found = shorten(model, feeds, options, seed) or (proto, expected, found + ' (only as a whole)')
            counts['refused' if found.startswith('refused') else 'differ'] += 1
            folder = os.path.join(options.keep, str(seed))
            keep(proto, feeds, expected, folder)
            print('seed %d: %s\n    %d nodes: berth verify %s --data %s' % (seed, found[:600], len(proto.graph.node), os.path.join(folder, 'model.onnx'), folder), flush=True)
    print(', '.join('%s: %d' % item for item in counts.items()))
    sys.exit(1 if counts['differ'] else 0)


if __name__ == '__main__':
    main()
