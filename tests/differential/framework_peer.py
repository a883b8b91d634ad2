#!/usr/bin/env python3
"""Small models as frameworks export them, in Berth and in ONNX Runtime: what differs, in which way of running.

    python3 -m pip install onnxruntime onnx numpy
    scripts/build.sh release
    tests/differential/framework_peer.py [CASE...] [--ways run,vm,verify,build,python,shim] [--target cpu] [--split SEED] [--keep FOLDER]

The cases are in framework_models.py, framework_forms.py and framework_flow.py: transformers with open dimensions, U-Nets, recurrent
stacks, detection heads, einsums, quantised, 16-bit and old-opset forms, control flow, empty tensors; CASE may have * and ?. Ways: `run`
and `vm` are `berth run` without and with --executor vm; `verify` takes all sets of inputs of a case at once; `build` runs a program that
`berth build` made; `python` and `shim` are berth.load and berth.onnxruntime. --split pins nodes to the devices of --target at random.
Each model, its inputs and what ONNX Runtime made of it stay in --keep. Ends with 1 when anything differed.

Not in the test run, which has no ONNX Runtime: for who changes operators, the importer, executors or the Python package.
"""
import argparse
import collections
import fnmatch
import logging
import multiprocessing
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort
from onnx import numpy_helper

import framework_flow  # noqa: F401, each adds its cases to those of framework_models
import framework_forms  # noqa: F401
import framework_models
from peer import BERTH, differs, use_package

ort.set_default_logger_severity(4)


def tolerance(name):
    """Relative to the largest finite magnitude of an output. 8-bit arithmetic may round half a step to either side."""
    return 1e-2 if name.startswith(('f16', 'quant')) else 2e-4


def first_difference(trial, i, got):
    for name, a, b in zip(trial.names, trial.expected[i], got):
        problem = differs(a, b, trial.slack)
        if problem:
            return '%s: %s' % (name, problem)
    return None


class Trial:
    """A case on disk: model.onnx and a folder of test data per set of inputs, with ONNX Runtime's results."""

    def __init__(self, name, folder):
        self.folder, self.slack = folder, tolerance(name)
        os.makedirs(folder, exist_ok=True)
        made = framework_models.CASES[name]()
        self.model, self.feeds = made[0], made[1]
        self.path = os.path.join(folder, 'model.onnx')
        if isinstance(self.model, str):  # a file that a tool wrote
            self.path = self.model
            self.model = onnx.load(self.path, load_external_data=False)
        else:
            onnx.save(self.model, self.path)
        self.names = [o.name for o in self.model.graph.output]
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads = 1
        session = ort.InferenceSession(self.path, options, providers=['CPUExecutionProvider'])
        self.expected = [session.run(None, feed) for feed in self.feeds]
        self.files = all(not isinstance(v, (list, type(None))) for values in self.expected for v in values) and all(
            isinstance(v, np.ndarray) for feed in self.feeds for v in feed.values())
        if self.files:
            self.write()

    def write(self):
        for i, (feed, values) in enumerate(zip(self.feeds, self.expected)):
            folder = os.path.join(self.folder, 'set_%d' % i)
            os.makedirs(folder, exist_ok=True)
            order = [x.name for x in self.model.graph.input]
            for kind, items in (('input', [(n, feed[n]) for n in order if n in feed]), ('output', zip(self.names, values))):
                for at, (name, value) in enumerate(items):
                    with open(os.path.join(folder, '%s_%d.pb' % (kind, at)), 'wb') as file:
                        file.write(numpy_helper.from_array(np.asarray(value), name).SerializeToString())

    def input_options(self, i):
        order = [x.name for x in self.model.graph.input if x.name in self.feeds[i]]
        return [o for at, name in enumerate(order) for o in ('--input', '%s=%s' % (name, os.path.join(self.folder, 'set_%d/input_%d.pb' % (i, at))))]


def command(arguments):
    done = subprocess.run([BERTH] + arguments, capture_output=True, text=True, errors='replace')
    if done.returncode == 0:
        return None
    lines = [x for x in (done.stderr + done.stdout).strip().splitlines() if x]
    wanted = [x for x in lines if 'error' in x or 'FAIL' in x] or lines[-1:]
    return 'exit status %d: %s' % (done.returncode, ' | '.join(wanted[:3]))


def run_set(trial, i, what, options):
    outputs = [os.path.join(trial.folder, 'got_%d_%d.pb' % (i, at)) for at in range(len(trial.names))]
    problem = command(['run', '-q', what] + options + trial.input_options(i) + [
        o for name, path in zip(trial.names, outputs) for o in ('-o', '%s=%s' % (name, path))])
    if problem:
        return problem
    got = [numpy_helper.to_array(onnx.load_tensor(path)) for path in outputs]
    return first_difference(trial, i, got)


def each_set(trial, function):
    for i in range(len(trial.feeds)):
        problem = function(i)
        if problem:
            return 'set %d: %s' % (i, problem)
    return None


def way_run(trial, options):
    return each_set(trial, lambda i: run_set(trial, i, trial.path, options)) if trial.files else None


def way_vm(trial, options):
    return each_set(trial, lambda i: run_set(trial, i, trial.path, options + ['--executor', 'vm'])) if trial.files else None


def atol(trial):
    """One for all outputs, since the command has no other; the largest of them decides."""
    sizes = [np.abs(v[np.isfinite(v)]).max(initial=0) for values in trial.expected for v in map(np.asarray, values) if v.dtype.kind == 'f']
    return trial.slack * (max(sizes, default=0) + 1e-3)


def way_verify(trial, options):
    if not trial.files:
        return None
    sets = [o for i in range(len(trial.feeds)) for o in ('--data', os.path.join(trial.folder, 'set_%d' % i))]
    return command(['verify', trial.path] + sets + options + ['--atol', str(atol(trial)), '--rtol', '0'])


def way_build(trial, options):
    def one(i):
        program = os.path.join(trial.folder, 'program_%d.berth' % i)
        problem = command(['build', '-q', trial.path, '-o', program] + options + trial.input_options(i))
        if problem:
            return None if 'control flow' in problem or 'depend' in problem or 'byte code' in problem else 'build: ' + problem
        return run_program(trial, i, program)
    return each_set(trial, one) if trial.files else None


def run_program(trial, i, program):
    """Inputs whose values were compiled in are no inputs of the program."""
    described = subprocess.run([BERTH, 'inspect', program, '--format', 'json'], capture_output=True, text=True).stdout
    given, pairs = [], trial.input_options(i)
    for flag, value in zip(pairs[::2], pairs[1::2]):
        if '"name": "%s"' % value.split('=')[0] in described or '"name":"%s"' % value.split('=')[0] in described:
            given += [flag, value]
    outputs = [os.path.join(trial.folder, 'got_%d_%d.pb' % (i, at)) for at in range(len(trial.names))]
    problem = command(['run', '-q', program] + given + [o for name, path in zip(trial.names, outputs) for o in ('-o', '%s=%s' % (name, path))])
    if problem:
        return problem
    return first_difference(trial, i, [numpy_helper.to_array(onnx.load_tensor(path)) for path in outputs])


def in_process(function):
    """What function() returns, from a process of its own, so that a crash is a finding."""
    queue = multiprocessing.SimpleQueue()

    def work():
        try:
            queue.put(function())
        except Exception as error:  # what users would see
            queue.put('%s: %s' % (type(error).__name__, error))
    process = multiprocessing.get_context('fork').Process(target=work)
    process.start()
    process.join()
    return queue.get() if not queue.empty() else 'crashed: exit status %s' % process.exitcode


def random_pins(trial, target, seed):
    random, devices = np.random.RandomState(seed), [d + ':0' for d in target.split(',')]
    return [o for n in trial.model.graph.node if n.name and n.op_type not in ('Constant', 'If', 'Loop', 'Scan') and random.rand() < 0.5
            for o in ('--pin', '%s=%s' % (n.name, devices[random.randint(len(devices))]))]


def target_of(options):
    return options[options.index('--target') + 1] if '--target' in options else None


def way_python(trial, options):
    def work():
        use_package()
        import berth
        model = berth.load(trial.path, target=target_of(options))
        def one(i):
            got = model.run(trial.feeds[i])
            return first_difference(trial, i, [got[name] for name in trial.names])
        return each_set(trial, one) or each_set(trial, one)
    return in_process(work)


def way_shim(trial, options):
    def work():
        use_package()
        import berth.onnxruntime as shim
        session = shim.InferenceSession(trial.path, providers=[('BerthExecutionProvider', {'target': target_of(options) or 'cpu'})])
        peer = ort.InferenceSession(trial.path, providers=['CPUExecutionProvider'])
        for mine, theirs in ((session.get_inputs(), peer.get_inputs()), (session.get_outputs(), peer.get_outputs())):
            for a, b in zip(mine, theirs):
                if (a.name, a.type) != (b.name, b.type):
                    return 'described as %s, not %s' % (a, b)
            if len(mine) != len(theirs):
                return 'has %d ports, not %d' % (len(mine), len(theirs))
        if [a.shape for a in session.get_inputs()] != [b.shape for b in peer.get_inputs()]:
            return 'input shapes are %s, not %s' % ([a.shape for a in session.get_inputs()], [b.shape for b in peer.get_inputs()])
        def one(i):
            return first_difference(trial, i, session.run(None, trial.feeds[i]))
        return each_set(trial, one)
    return in_process(work)


WAYS = {'run': way_run, 'vm': way_vm, 'verify': way_verify, 'build': way_build, 'python': way_python, 'shim': way_shim}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('cases', nargs='*', metavar='CASE', help='names, with * and ? (default: all)')
    parser.add_argument('--ways', default=','.join(WAYS), help='of running, separated by commas (default: all)')
    parser.add_argument('--target', help='a target of the machine (default: cpu)')
    parser.add_argument('--split', type=int, metavar='SEED', help='pin nodes to devices of --target (separated by commas) at random')
    parser.add_argument('--option', action='append', default=[], help='one more word of the command for `berth run`; may be repeated')
    parser.add_argument('--list', action='store_true', help='names of the cases')
    parser.add_argument('--keep', default=os.path.join(tempfile.gettempdir(), 'berth_framework_peer'), help='folder of models and results')
    options = parser.parse_args()
    logging.disable(logging.WARNING)  # of the quantisation tool
    wanted = [n for n in framework_models.CASES if not options.cases or any(fnmatch.fnmatch(n, p) for p in options.cases)]
    if options.list:
        print('\n'.join(wanted))
        return
    counts = collections.Counter()
    more = (['--target', options.target] if options.target else []) + options.option
    for name in wanted:
        try:
            trial = Trial(name, os.path.join(options.keep, name))
        except Exception as error:
            print('%s: no case, ONNX Runtime says: %s' % (name, str(error)[:300]), flush=True)
            counts['no case'] += 1
            continue
        counts['cases'] += 1
        pins = random_pins(trial, options.target, options.split) if options.split is not None else []
        for way in options.ways.split(','):
            problem = WAYS[way](trial, more + pins)
            if pins and problem and 'is demanded twice' in problem:
                continue  # nodes that became one operation have pins to two devices
            counts['runs'] += 1
            if problem:
                counts['differ'] += 1
                print('%s, %s: %s' % (name, way, problem), flush=True)
    print('%d cases, %d ways in all: %d differ; %d cases that ONNX Runtime refuses' % (counts['cases'], counts['runs'], counts['differ'], counts['no case']))
    sys.exit(1 if counts['differ'] else 0)


if __name__ == '__main__':
    main()
