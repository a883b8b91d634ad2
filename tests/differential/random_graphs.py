#!/usr/bin/env python3
"""Random small graphs in Berth and in ONNX Runtime: what differs, with the seed and a model of one node that shows it.

    python3 -m pip install onnxruntime onnx numpy
    scripts/build.sh release
    tests/differential/random_graphs.py [--seed 1] [--count 200] [--nodes 4] [--only OP[,OP]] [--target cpu] [--mode both] [--keep FOLDER]

A graph is up to --nodes random operators with random attributes, each on values before it or on new inputs. ONNX Runtime
makes it, node by node and unoptimised: what it refuses is not in the graph. Berth runs it twice: `run` with inputs (kernels), `fold` with the inputs
as constants (what the compiler computes itself). Where a result differs, the first node that differs on the values that ONNX Runtime
gave it is written to --keep as a model of its own, with the commands to see it. Ends with 1 when anything differed.

Not in the test run, which has no ONNX Runtime: for who changes operators, kernels or folding. See README.md beside this file.
"""
import argparse
import collections
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper, numpy_helper

import random_operators
from peer import BERTH, differs

ort.set_default_logger_severity(4)

Node = collections.namedtuple('Node', 'op inputs outputs attrs')


def type_of(array):
    return helper.np_dtype_to_tensor_dtype(array.dtype)


def model_of(nodes, feeds, constants, outputs, typed=None):
    """outputs: {name: value that ONNX Runtime gave}, for element types; shapes are left out."""
    made = [helper.make_node(n.op, n.inputs, n.outputs, name='%s_%d' % (n.op, i), **n.attrs) for i, n in enumerate(nodes)]
    inputs = [helper.make_tensor_value_info(k, type_of(v), v.shape) for k, v in feeds.items()]
    initializers = [numpy_helper.from_array(v, k) for k, v in constants.items()]
    results = [helper.make_tensor_value_info(k, type_of(v), None) if v is not None else onnx.ValueInfoProto(name=k) for k, v in outputs.items()]
    graph = helper.make_graph(made, 'random', inputs, results, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid('', 21)], ir_version=10)


def peer(nodes, feeds, constants, names):
    """The values of `names` by ONNX Runtime; None when it refuses."""
    model = model_of(nodes, feeds, constants, {name: None for name in names})
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    try:
        session = ort.InferenceSession(model.SerializeToString(), options, providers=['CPUExecutionProvider'])
        return session.run(names, feeds)
    except Exception:
        return None


class Graph:
    """A random graph with the values that ONNX Runtime gives; what random_operators.py draws from."""

    def __init__(self, seed, node_count, only):
        self.rng = np.random.RandomState(seed)
        self.nodes, self.feeds, self.constants, self.values = [], {}, {}, {}
        names = [n for n in random_operators.OPERATORS if not only or n in only]
        for _ in range(20 * node_count):
            if len(self.nodes) == node_count:
                break
            self.try_node(names[self.rng.randint(len(names))])

    def try_node(self, name):
        kept = dict(self.feeds), dict(self.constants), dict(self.values)
        self.used = []
        drawn = random_operators.OPERATORS[name](self)
        if drawn is not None:
            op, inputs, attrs, count = drawn
            outputs = ['v%d_%d' % (len(self.values), i) for i in range(count)]
            node = Node(op, inputs, outputs, attrs)
            local = {k: self.values[k] for k in inputs if k and k in self.values}
            results = peer([node], {k: v for k, v in local.items() if k not in self.constants},
                           {k: v for k, v in local.items() if k in self.constants}, outputs)
            if results is not None and all(r.size <= 1 << 16 for r in results):
                self.nodes.append(node)
                self.values.update(zip(outputs, results))
                return
        self.feeds, self.constants, self.values = kept

    # -- what operators draw from
    def feed(self, array):
        name = 'x%d' % len(self.values)
        self.feeds[name] = self.values[name] = np.asarray(array)
        return name

    def const(self, array):
        name = 'c%d' % len(self.values)
        self.constants[name] = self.values[name] = np.asarray(array)
        return name

    def shape(self, rank=None):
        rank = self.rng.randint(1, 5) if rank is None else rank
        return tuple(int(self.rng.choice([1, 2, 3, 4, 5, 7, 8, 9, 16, 17])) for _ in range(rank)) if rank else ()

    def array(self, dtype, shape, low=-4, high=4):
        dtype = np.dtype(dtype)
        if dtype == np.bool_:
            return self.rng.rand(*shape) < 0.5 if shape else np.bool_(self.rng.rand() < 0.5)
        if dtype.kind in 'iu':
            info = np.iinfo(dtype)
            return self.rng.randint(max(low, info.min), min(high, info.max) + 1, shape).astype(dtype)
        return (self.rng.randint(int(low * 256), int(high * 256) + 1, shape) / 256).astype(dtype)

    def value(self, dtype=np.float32, rank=None, least=1):
        """A value of the graph that fits, or a new input."""
        fits = [k for k, v in self.values.items() if k not in self.constants and v.dtype == np.dtype(dtype)
                and (v.ndim == rank if rank is not None else v.ndim >= least) and v.size]
        if fits and self.rng.rand() < 0.6:
            return fits[self.rng.randint(len(fits))]
        return self.feed(self.array(dtype, self.shape(self.rng.randint(least, 5) if rank is None else rank)))


def berth_results(model, feeds, names, target, folder):
    """({name: array}, None), or (None, what Berth said)."""
    path = os.path.join(folder, 'model.onnx')
    onnx.save(model, path)
    command = [BERTH, 'run', path, '--target', target]
    for k, v in feeds.items():
        np.save(os.path.join(folder, k + '.npy'), v)
        command += ['--input', '%s=%s' % (k, os.path.join(folder, k + '.npy'))]
    for name in names:
        command += ['-o', '%s=%s' % (name, os.path.join(folder, 'got_%s.npy' % name))]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return None, (done.stderr.strip().splitlines() or ['exit status %d' % done.returncode])[-1]
    return {name: np.load(os.path.join(folder, 'got_%s.npy' % name)) for name in names}, None


def attempt(nodes, feeds, constants, expected, folding, target, folder):
    """None, or ('refused' or 'differs', text)."""
    if folding:
        feeds, constants = {}, {**constants, **feeds}
    model = model_of(nodes, feeds, constants, expected)
    got, problem = berth_results(model, feeds, list(expected), target, folder)
    if problem:
        return 'refused', problem
    for name, value in expected.items():
        problem = differs(value, got[name], 2e-4, floor=1)
        if problem:
            return 'differs', '%s: %s' % (name, problem)
    return None


def leaves(graph):
    read = {name for node in graph.nodes for name in node.inputs}
    return {name: graph.values[name] for node in graph.nodes for name in node.outputs if name not in read}


def smallest(graph, folding, target, folder):
    """The first node that differs on ONNX Runtime's values: (nodes, feeds, constants, expected)."""
    for node in graph.nodes:
        feeds = {k: graph.values[k] for k in node.inputs if k and k not in graph.constants}
        constants = {k: graph.constants[k] for k in node.inputs if k in graph.constants}
        expected = {name: graph.values[name] for name in node.outputs}
        if attempt([node], feeds, constants, expected, folding, target, folder):
            return [node], feeds, constants, expected
    return graph.nodes, graph.feeds, graph.constants, leaves(graph)


def report(seed, graph, folding, options):
    folder = os.path.join(options.keep, '%d_%s' % (seed, 'fold' if folding else 'run'))
    os.makedirs(folder, exist_ok=True)
    nodes, feeds, constants, expected = smallest(graph, folding, options.target, folder)
    found = attempt(nodes, feeds, constants, expected, folding, options.target, folder)
    for name, value in expected.items():
        np.save(os.path.join(folder, 'expected_%s.npy' % name), value)
    print('seed %d, %s: %s' % (seed, 'folded' if folding else 'run', ' '.join(found) if found else 'only in the whole graph'))
    for node in nodes:
        operands = ', '.join('%s %s%s' % (k, graph.values[k].dtype, list(graph.values[k].shape)) if k else '-' for k in node.inputs)
        print('    %s(%s) %s -> %s' % (node.op, operands, node.attrs, ', '.join(node.outputs)))
    print('    %s run %s %s' % (os.path.relpath(BERTH), os.path.join(folder, 'model.onnx'),
                                ' '.join('--input %s=%s' % (k, os.path.join(folder, k + '.npy')) for k in (() if folding else feeds))), flush=True)
    return found[0] if found else 'differs'


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--seed', type=int, default=1, help='the first one; each graph has the next')
    parser.add_argument('--count', type=int, default=200)
    parser.add_argument('--nodes', type=int, default=4, help='most operators of a graph')
    parser.add_argument('--only', help='operators, separated by commas')
    parser.add_argument('--target', default='cpu')
    parser.add_argument('--mode', choices=['run', 'fold', 'both'], default='both')
    parser.add_argument('--keep', default=os.path.join(tempfile.gettempdir(), 'berth_random_graphs'), help='folder of what differs')
    options = parser.parse_args()
    only = options.only.split(',') if options.only else None
    counts = collections.Counter()
    for seed in range(options.seed, options.seed + options.count):
        graph = Graph(seed, 1 + seed % options.nodes, only)
        if not graph.nodes:
            continue
        counts['graphs'] += 1
        counts['nodes'] += len(graph.nodes)
        for folding in (False, True):
            if options.mode not in ('both', 'fold' if folding else 'run'):
                continue
            with tempfile.TemporaryDirectory() as folder:
                found = attempt(graph.nodes, graph.feeds, graph.constants, leaves(graph), folding, options.target, folder)
            if found:
                counts[report(seed, graph, folding, options)] += 1
    print('%d graphs of %d nodes: %d differ, %d are refused' % (counts['graphs'], counts['nodes'], counts['differs'], counts['refused']))
    sys.exit(1 if counts['differs'] else 0)


main()
