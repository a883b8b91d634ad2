#!/usr/bin/env python3
"""Single operators beside ONNX Runtime on the CPU, worst first: the cases of operator_cases.py, operator_types.py, operator_shapes.py, operator_more.py and operator_wide.py.

    python3 -m pip install onnxruntime onnx numpy
    scripts/build.sh release
    python3 bench/compare_operators.py [--only GLOB[,GLOB]] [--threads 1] [--rounds 5] [--slice 0.1] [--target cpu] [--realtime] [--vary SEED] [--json FILE]

A round is (ONNX Runtime, Berth): a warm-up, then runs for about --slice seconds each; its ratio is the quotient of the two medians.
`ratio` is the median over the rounds, `ratio_min` the quotient of the two fastest runs of all rounds: on a machine that others use
the second is the steadier one. `diff` is the largest difference of an output element over that output's largest absolute value;
above --tolerance it is marked. --realtime times both at real-time priority (root only), so that other work does not cut in.
--vary gives every case other extents, drawn by the seed (operator_vary.py), and prints them with what is above 1.2. Rows are printed as they come and at the end in order, JSON lines go to --json with the machine's facts.
"""
import argparse
import fnmatch
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime as ort

import operator_cases
import operator_more  # noqa: F401  adds its cases
import operator_shapes  # noqa: F401  so does this
import operator_types  # noqa: F401  and this
import operator_vary
import operator_wide  # noqa: F401  and this

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BERTH = os.path.join(ROOT, 'build/release/berth')


class realtime:
    """Real-time priority for this process and those it starts."""

    def __init__(self, wanted):
        self.wanted = wanted

    def __enter__(self):
        if self.wanted:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))

    def __exit__(self, *_):
        if self.wanted:
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


class Peer:
    """ONNX Runtime with its inputs and outputs bound."""

    def __init__(self, path, feeds, outputs, threads):
        options = ort.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.log_severity_level = 3
        self.session = ort.InferenceSession(path, options, providers=['CPUExecutionProvider'])
        self.binding = self.session.io_binding()
        for name, array in feeds.items():
            self.binding.bind_cpu_input(name, array)
        for name in outputs:
            self.binding.bind_output(name, 'cpu')

    def times(self, seconds):
        """Milliseconds of each run."""
        run, clock, times = self.session.run_with_iobinding, time.perf_counter, []
        warm = clock() + .2 * seconds
        while clock() < warm:
            run(self.binding)
        end = clock() + seconds
        while len(times) < 5 or clock() < end:
            start = clock()
            run(self.binding)
            times.append(1e3 * (clock() - start))
        return times

    def results(self):
        self.session.run_with_iobinding(self.binding)
        return self.binding.copy_outputs_to_cpu()


class Berth:
    def __init__(self, path, feeds, folder, threads, target):
        self.program, self.folder, self.threads = os.path.join(folder, 'model.berth'), folder, threads
        self.inputs = []
        for name, array in feeds.items():
            file = os.path.join(folder, name + '.npy')
            np.save(file, array)
            self.inputs += ['--input', '%s=%s' % (name, file)]
        self.call(['build', path, '--target', target, '-o', self.program, '--quiet'])

    def call(self, arguments):
        result = subprocess.run([BERTH] + arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if result.returncode:
            raise RuntimeError(result.stderr.strip()[:300])
        return result.stdout

    def run(self, repeat, warmup, outputs=()):
        arguments = ['run', self.program, '--format=json', '--quiet', '--threads', str(self.threads),
                     '--repeat', str(repeat), '--warmup', str(warmup)]
        for name, file in outputs:
            arguments += ['--output', '%s=%s' % (name, file)]
        return json.loads(self.call(arguments + self.inputs))['latency_ms']

    def calibrate(self, seconds):
        self.repeat = int(min(20000, max(3, 1e3 * seconds / max(self.run(1, 1)['median'], 1e-3))))

    def latency(self):
        return self.run(self.repeat, max(1, self.repeat // 5))

    def results(self, outputs):
        files = [(name, os.path.join(self.folder, 'out_%s.npy' % name)) for name in outputs]
        self.run(1, 0, files)
        return [np.load(file) for _, file in files]


def difference(ours, theirs):
    worst = 0.0
    for a, b in zip(ours, theirs):
        if a.shape != b.shape:
            return math.inf
        a, b = a.astype(np.float64), b.astype(np.float64)
        scale = np.abs(b[np.isfinite(b)]).max(initial=0) or 1.0
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        worst = max(worst, float(np.where(same, 0, np.abs(a - b)).max(initial=0)) / scale)
    return worst


def measure(name, build, args):
    row = {'operator': name, 'threads': args.threads}
    with tempfile.TemporaryDirectory() as folder:
        model, feeds = build()
        if args.vary is not None:
            model, feeds = operator_vary.vary(name, args.vary, model, feeds)
            row['shapes'] = operator_vary.Case(model, feeds).shapes()
        path = os.path.join(folder, 'model.onnx')
        onnx.save(model, path)
        outputs = [o.name for o in model.graph.output]
        try:
            peer = Peer(path, feeds, outputs, args.threads)
            theirs = peer.results()
        except Exception as error:
            return dict(row, failed='onnxruntime: ' + str(error).splitlines()[0][:200])
        try:
            start = time.perf_counter()
            berth = Berth(path, feeds, folder, args.threads, args.target)
            row['build_s'] = round(time.perf_counter() - start, 2)
            row['diff'] = float('%.2g' % difference(berth.results(outputs), theirs))
            berth.calibrate(args.slice)
        except RuntimeError as error:
            return dict(row, failed=str(error))
        ratios, ours_ms, theirs_ms, ours_min, theirs_min = [], [], [], [], []
        for _ in range(args.rounds):
            with realtime(args.realtime):
                times = peer.times(args.slice)
                latency = berth.latency()
            theirs_ms.append(statistics.median(times))
            theirs_min.append(min(times))
            ours_ms.append(latency['median'])
            ours_min.append(latency['min'])
            ratios.append(ours_ms[-1] / theirs_ms[-1])
    return dict(row, berth_ms=round(statistics.median(ours_ms), 5), ort_ms=round(statistics.median(theirs_ms), 5),
                ratio=round(statistics.median(ratios), 3), ratio_min=round(min(ours_min) / min(theirs_min), 3))


def line(row, tolerance):
    if 'failed' in row:
        return '%-28s failed: %s' % (row['operator'], row['failed'])
    mark = ' !' if row['diff'] > tolerance else ''
    if 'shapes' in row and row['ratio_min'] > 1.2:
        mark += '  ' + ' '.join('x'.join(map(str, s)) or '1' for s in row['shapes'].values())
    return '%-28s %10.4f %10.4f %8.3f %8.3f  %8.2g%s' % (row['operator'], row['berth_ms'], row['ort_ms'], row['ratio'], row['ratio_min'],
                                                         row['diff'], mark)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--only', default='*', help='globs on the names, separated by commas')
    parser.add_argument('--threads', type=int, default=1)
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--slice', type=float, default=.1, help='seconds of runs per figure')
    parser.add_argument('--target', default='cpu')
    parser.add_argument('--realtime', action='store_true')
    parser.add_argument('--tolerance', type=float, default=1e-4)
    parser.add_argument('--vary', type=int, metavar='SEED', help='other extents, drawn by this seed')
    parser.add_argument('--json', help='also write the rows here, as JSON lines, worst first')
    args = parser.parse_args()
    rows, header = [], '%-28s %10s %10s %8s %8s  %8s' % ('operator', 'Berth ms', 'ORT ms', 'ratio', 'of min', 'diff')
    print(header)
    for name, build in operator_cases.CASES:
        if not any(fnmatch.fnmatch(name, glob) for glob in args.only.split(',')):
            continue
        rows.append(measure(name, build, args))
        print(line(rows[-1], args.tolerance), flush=True)
    rows.sort(key=lambda r: -r.get('ratio_min', math.inf))
    print('\nworst first\n' + header)
    for row in rows:
        print(line(row, args.tolerance))
    good = [r['ratio_min'] for r in rows if 'ratio_min' in r]
    if good:
        print('%d operators: geometric mean %.3f, largest %.3f, above 1.2: %d' % (
            len(good), math.exp(sum(map(math.log, good)) / len(good)), max(good), sum(r > 1.2 for r in good)))
    if args.json:
        facts = {'machine': platform.processor() or platform.machine(), 'cores': os.cpu_count(), 'target': args.target,
                 'onnxruntime': ort.__version__}
        with open(args.json, 'w') as file:
            file.writelines(json.dumps(dict(row, **facts)) + '\n' for row in rows)


if __name__ == '__main__':
    main()
