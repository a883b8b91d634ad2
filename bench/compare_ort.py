#!/usr/bin/env python3
"""Berth against ONNX Runtime, on the CPU or a GPU: the same models, inputs and thread count, interleaved in one run.

    python3 -m pip install onnxruntime onnx numpy
    scripts/build.sh release
    python3 bench/compare_ort.py --models ../shared --threads 1,2 [--only GLOB[,GLOB]] [--rounds 5] [--slice 0.4] [--json FILE]

For every model: R rounds of (ONNX Runtime, Berth), each a separate stretch of runs after a warm-up; the figure is the median
over all runs. A model whose initializers are also graph inputs is given to ONNX Runtime both as shipped and with them
removed from the inputs, and the faster counts. Models whose shapes depend on their inputs run on the first of their data sets.
Prints a table, then the geometric mean of Berth's time over ONNX Runtime's and the largest ratio. Nothing is kept between
runs but the kernel cache.

On a GPU: --target cuda --provider CUDAExecutionProvider (the package onnxruntime-gpu), which scripts/gpu_check.sh runs where there is one.
"""
import argparse
import fnmatch
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime as ort
from onnx import numpy_helper

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BERTH = os.environ.get('BERTH', os.path.join(ROOT, 'build/release/berth'))
LIGHT = ['bvlc_alexnet', 'densenet121', 'inception_v1', 'inception_v2', 'resnet50', 'shufflenet', 'squeezenet', 'vgg19', 'zfnet512']
WITH_DATA = ['ppocr4_det', 'ppocr4_rec', 'ppocr_cls', 'magika', 'silero_vad', 'silero_vad_op18_ifless', 'wespeaker', 'nemo80'] + [
    'mlperf_tiny/' + name + kind for name in ('autoencoder', 'dscnn', 'mobilenetv1', 'resnet8') for kind in ('', '_int8')] + [
    'llm_tiny/f32', 'llm_tiny/int4']  # run with the inputs of their first data set: their shapes, or what they compute, depend on them


def collect(shared, folder):
    """[(name, model path, {dim: extent} or the folder of a data set, command that makes the model or None, tools)]; generated models
    go to `folder`."""
    tools, models = os.path.join(shared, 'tools'), os.path.join(shared, 'models')
    cases = []
    for name in ('mnist', 'mnist_quantized', 'super_resolution', 'tfl_helloworld', 'rfb320', 'rfb320_nopost'):
        cases.append((name, os.path.join(models, name, 'model.onnx'), {'batch_size': 1, 'batch': 1, 'N': 60, 'unk__6': 60}))
    for name in LIGHT:
        path = os.path.join(folder, 'light_%s.onnx' % name)
        cases.append(('light_' + name, path, {}, ['make_light_seeded.py', os.path.join(models, 'light_' + name, 'model.onnx'), path]))
    for name, extra in (('resnet50', {'batch': 1}), ('mobilenetv2', {'batch': 1}), ('bert', {'batch': 1, 'seq': 128})):
        path = os.path.join(folder, name + '.onnx')
        cases.append((name, path, extra, ['make_%s.py' % name, path]))
    return [(c[0], c[1], c[2], c[3] if len(c) > 3 else None, tools) for c in cases] + [
        (name.replace('/', '_'), os.path.join(models, name, 'model.onnx'), os.path.join(models, name, 'test_data_set_0'), None, tools)
        for name in WITH_DATA]


def generate(case):
    name, path, _, command, tools = case
    if command and not os.path.exists(path):
        subprocess.run(['/usr/bin/python3', os.path.join(tools, command[0])] + command[1:], check=True, stdout=subprocess.DEVNULL)


def inputs_of(model, dims, seed=1):
    rng, feeds, fixed = np.random.RandomState(seed), {}, {}
    known = {i.name for i in model.graph.initializer}
    types = {onnx.TensorProto.FLOAT: np.float32, onnx.TensorProto.INT64: np.int64, onnx.TensorProto.UINT8: np.uint8,
             onnx.TensorProto.INT32: np.int32}
    for value in model.graph.input:
        if value.name in known:
            continue
        shape = []
        for d in value.type.tensor_type.shape.dim:
            if d.HasField('dim_value'):
                shape.append(d.dim_value)
            else:
                fixed[d.dim_param] = dims.get(d.dim_param, 1)
                shape.append(fixed[d.dim_param])
        dtype = types[value.type.tensor_type.elem_type]
        feeds[value.name] = rng.uniform(-1, 1, shape).astype(dtype) if dtype == np.float32 else rng.randint(0, 2, shape).astype(dtype)
    return feeds, fixed


def inputs_of_data_set(model, data):
    known, feeds = {i.name for i in model.graph.initializer}, {}
    names = [value.name for value in model.graph.input if value.name not in known]
    for i, name in enumerate(names):
        with open(os.path.join(data, 'input_%d.pb' % i), 'rb') as file:
            feeds[name] = numpy_helper.to_array(onnx.TensorProto.FromString(file.read()))
    return feeds


def without_weight_inputs(path, folder, name):
    """The model with its initializers taken off the graph inputs, or None when none is there."""
    model = onnx.load(path)
    names = {i.name for i in model.graph.initializer}
    keep = [i for i in model.graph.input if i.name not in names]
    if len(keep) == len(model.graph.input):
        return None
    del model.graph.input[:]
    model.graph.input.extend(keep)
    model.ir_version = max(model.ir_version, 4)
    fixed = os.path.join(folder, name + '.fixed.onnx')
    onnx.save(model, fixed)
    return fixed


def open_ort(path, threads, provider):
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = ort.InferenceSession(path, options, providers=[provider])
    if session.get_providers()[0] != provider:  # it goes on with the CPU where it cannot load one
        sys.exit('ONNX Runtime has no %s here, only %s' % (provider, ', '.join(session.get_providers())))
    return session


def time_ort(session, feeds, runs):
    for _ in range(max(1, runs // 5)):
        session.run(None, feeds)
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        session.run(None, feeds)
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def time_berth(program, files, threads, runs, target=()):
    """`program`: a program file, or with `target` a model."""
    command = [BERTH, 'run', program, '--format=json', '--quiet', '--repeat', str(runs), '--warmup', str(max(1, runs // 5)),
               '--threads', str(threads), *target]
    for name, file in files.items():
        command += ['--input', '%s=%s' % (name, file)]
    result = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    return json.loads(result.stdout)['latency_ms']['median']


def measure(case, threads, rounds, seconds, folder, on, provider):
    name, path, dims, _, _ = case
    generate(case)
    model = onnx.load(path)
    with_data = isinstance(dims, str)
    feeds, fixed = (inputs_of_data_set(model, dims), {}) if with_data else inputs_of(model, dims)
    files = {}
    for i, (key, array) in enumerate(feeds.items()):
        files[key] = os.path.join(folder, 'input_%d.npy' % i)
        np.save(files[key], array)
    program, target = os.path.join(folder, name + '.berth'), []
    start = time.perf_counter()
    if with_data:
        program, target = path, ['--target', on]
        time_berth(program, files, threads, 1, target)
    else:
        command = [BERTH, 'build', path, '--target', on, '-o', program, '--quiet']
        for key, value in fixed.items():
            command += ['--dim', '%s=%d' % (key, value)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    build_s = time.perf_counter() - start
    shipped = open_ort(path, threads, provider)
    fixed_path = without_weight_inputs(path, folder, name)
    stripped = open_ort(fixed_path, threads, provider) if fixed_path else None
    once = time_ort(shipped, feeds, 1)
    runs = int(min(2000, max(3, 1e3 * seconds / max(once, 0.01))))
    a, b, c = [], [], []
    for _ in range(rounds):
        a.append(time_ort(shipped, feeds, runs))
        c.append(time_berth(program, files, threads, runs, target))
        if stripped:
            b.append(time_ort(stripped, feeds, runs))
    ort_ms = min(statistics.median(a), statistics.median(b) if b else math.inf)
    berth_ms = statistics.median(c)
    return {'model': name, 'threads': threads, 'ort_shipped_ms': round(statistics.median(a), 4),
            'ort_fixed_ms': round(statistics.median(b), 4) if b else None, 'berth_ms': round(berth_ms, 4),
            'ratio': round(berth_ms / ort_ms, 4), 'build_s': round(build_s, 2)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--models', required=True, help='folder with models/ and tools/')
    parser.add_argument('--threads', default='1,2')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--slice', type=float, default=.4, help='seconds of runs per figure')
    parser.add_argument('--only', default='*', help='globs on the model name, separated by commas')
    parser.add_argument('--json', help='also write the rows here, as JSON lines')
    parser.add_argument('--work', help='folder for generated models (kept); default: a temporary one')
    parser.add_argument('--target', default='cpu', help="Berth's (default: cpu)")
    parser.add_argument('--provider', default='CPUExecutionProvider', help="ONNX Runtime's (default: CPUExecutionProvider)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.work or temporary
        os.makedirs(folder, exist_ok=True)
        rows = []
        print('%-22s %7s %12s %12s %12s %8s' % ('model', 'threads', 'ORT shipped', 'ORT fixed', 'Berth ms', 'ratio'))
        for case in collect(args.models, folder):
            if not any(fnmatch.fnmatch(case[0], glob) for glob in args.only.split(',')):
                continue
            for threads in (int(t) for t in args.threads.split(',')):
                try:
                    row = measure(case, threads, args.rounds, args.slice, folder, args.target, args.provider)
                except subprocess.CalledProcessError as error:
                    print('%-22s %7d failed: %s' % (case[0], threads, error), file=sys.stderr)
                    continue
                rows.append(row)
                print('%-22s %7d %12.3f %12s %12.3f %8.3f' % (row['model'], threads, row['ort_shipped_ms'],
                      row['ort_fixed_ms'] or '-', row['berth_ms'], row['ratio']), flush=True)
        if args.json:
            with open(args.json, 'w') as file:
                file.writelines(json.dumps(r) + '\n' for r in rows)
        for threads in sorted({r['threads'] for r in rows}):
            ratios = [r['ratio'] for r in rows if r['threads'] == threads]
            print('threads %d: geometric mean %.3f, largest %.3f over %d models' % (
                threads, math.exp(sum(map(math.log, ratios)) / len(ratios)), max(ratios), len(ratios)))


if __name__ == '__main__':
    main()
