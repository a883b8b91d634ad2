#!/usr/bin/env python3
"""How long until a model is ready to run, and how much memory its process takes at most, beside ONNX Runtime.

    scripts/build.sh release
    python3 -m pip install onnxruntime onnx numpy        # for the comparison; --no-ort leaves it out
    python3 bench/start_time.py MODEL.onnx [--target cpu] [--dim NAME=EXTENT]... [--rounds 7] [--no-ort]

Every row is a process of its own that gets ready and runs the model once; medians over the rounds. "ready" is the time of
the whole process without that one run. Rows: cold (an empty kernel cache, one round), cached (kernels compiled before),
program (a file of `berth build`), ORT (session made by Python, whose own start is taken off). "cpu" is the processor time of
the whole process, with its one run and, for ORT, Python: other processes beside it change it less than they change "ready".
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BERTH = os.path.join(ROOT, 'build/release/berth')
ORT = '''
import sys, time, json
import numpy as np
import onnxruntime as ort
loaded = time.perf_counter()
options = ort.SessionOptions()
options.log_severity_level = 3
options.intra_op_num_threads = int(sys.argv[2])
session = ort.InferenceSession(sys.argv[1], options, providers=['CPUExecutionProvider'])
ready = time.perf_counter()
dims = json.loads(sys.argv[3])
types = {'tensor(float)': np.float32, 'tensor(int64)': np.int64, 'tensor(int32)': np.int32, 'tensor(uint8)': np.uint8}
feeds = {i.name: np.ones([d if isinstance(d, int) else dims.get(d, 1) for d in i.shape], types[i.type]) for i in session.get_inputs()}
session.run(None, feeds)
print(json.dumps({'ready_s': ready - loaded}))
'''


def run(command):
    """(standard output, wall seconds, peak resident MB, processor seconds) of a process."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    out = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit('%s: exit status %d' % (' '.join(command), process.returncode))
    return out, time.perf_counter() - start, usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime


def berth(model, options):
    out, wall_s, rss_mb, cpu_s = run([BERTH, 'run', model, '--format=json', '--quiet', '--repeat', '1'] + options)
    return wall_s - json.loads(out)['latency_ms']['median'] / 1e3, rss_mb, cpu_s


def ort(model, threads, dims):
    out, _, rss_mb, cpu_s = run([sys.executable, '-c', ORT, model, str(threads), json.dumps(dims)])
    return json.loads(out)['ready_s'], rss_mb, cpu_s


def show(name, samples):
    medians = tuple(statistics.median(s[i] for s in samples) for i in range(3))
    print('%-10s ready %8.3f s   peak %7.1f MB   cpu %8.3f s' % ((name,) + medians), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('model')
    parser.add_argument('--target', default='cpu')
    parser.add_argument('--threads', type=int, default=os.cpu_count())
    parser.add_argument('--dim', action='append', default=[], metavar='NAME=EXTENT')
    parser.add_argument('--rounds', type=int, default=7)
    parser.add_argument('--no-ort', action='store_true')
    args = parser.parse_args()
    fixed = sum((['--dim', d] for d in args.dim), [])
    threads = ['--threads', str(args.threads)]
    print('load of the machine before: %.1f' % os.getloadavg()[0], flush=True)
    with tempfile.TemporaryDirectory() as folder:
        cache = ['--cache-dir', os.path.join(folder, 'cache')]
        compiled = ['--target', args.target] + fixed + cache
        show('cold', [berth(args.model, compiled + threads)])
        show('cached', [berth(args.model, compiled + threads) for _ in range(args.rounds)])
        program = os.path.join(folder, 'model.berth')
        run([BERTH, 'build', args.model, '-o', program, '--quiet'] + compiled)
        show('program', [berth(program, threads) for _ in range(args.rounds)])
    if not args.no_ort:
        dims = {d.split('=')[0]: int(d.split('=')[1]) for d in args.dim}
        show('ORT', [ort(args.model, args.threads, dims) for _ in range(args.rounds)])


if __name__ == '__main__':
    main()
