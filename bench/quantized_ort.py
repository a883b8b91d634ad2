#!/usr/bin/env python3
"""Quantised networks against ONNX Runtime on the CPU, interleaved in one run.

    python3 -m pip install onnxruntime onnx numpy
    scripts/build.sh release
    python3 bench/quantized_ort.py --models ../shared [--only GLOB] [--threads 1,2] [--rounds 5] [--keep FOLDER]

Makes ResNet-50 and MobileNetV2 in QDQ form with onnxruntime.quantization from the generators of `--models` (calibrated with
random data): activations u8 or i8, weights i8, a scale per channel or per tensor. For every model and number of threads:
medians of the times of one request, the processor time of one (which other work on the machine changes less), and how far
the results are apart on one input, in steps of the last quantisation: from integers with scales in f32 (integer_oracle.py), each
layer by itself and at the end; from integers with scales in float64; from ONNX Runtime's integers, and from the same model as
ONNX Runtime computes it in floats, node by node; last, how far ONNX Runtime's integers are from the oracle's. The network in f32
is measured beside them.
"""
import argparse
import fnmatch
import os
import resource
import statistics
import subprocess
import tempfile
import time

import numpy as np
import onnx
import onnxruntime as ort
from onnxruntime import quantization

import compare_ort
import integer_oracle

BERTH = os.path.join(compare_ort.ROOT, 'build/release/berth')
FORMS = {'u8i8_channel': ('QUInt8', True), 'u8i8_tensor': ('QUInt8', False), 'i8i8_channel': ('QInt8', True), 'i8i8_tensor': ('QInt8', False)}


class Calibration(quantization.CalibrationDataReader):
    def __init__(self, name, count):
        rng = np.random.RandomState(3)
        self.feeds = iter([{name: rng.uniform(-1, 1, (1, 3, 224, 224)).astype(np.float32)} for _ in range(count)])

    def get_next(self):
        return next(self.feeds, None)


def make(shared, folder, name, form):
    """The network in f32 (form None) or quantised, made where it is not there yet."""
    real = os.path.join(folder, name + '.onnx')
    if not os.path.exists(real):
        tool = os.path.join(shared, 'tools', 'make_%s.py' % name)
        subprocess.run(['/usr/bin/python3', tool, real], check=True, stdout=subprocess.DEVNULL)
    if not form:
        return real
    quantized = os.path.join(folder, '%s_%s.onnx' % (name, form))
    if not os.path.exists(quantized):
        prepared = os.path.join(folder, name + '_prepared.onnx')
        if not os.path.exists(prepared):
            quantization.shape_inference.quant_pre_process(real, prepared, skip_symbolic_shape=True)
        reader = Calibration(onnx.load(real, load_external_data=False).graph.input[0].name, 4)
        activations, per_channel = FORMS[form]
        quantization.quantize_static(prepared, quantized, reader, quant_format=quantization.QuantFormat.QDQ, per_channel=per_channel,
                                     activation_type=getattr(quantization.QuantType, activations), weight_type=quantization.QuantType.QInt8)
    return quantized


def build(path, folder):
    program = os.path.join(folder, os.path.basename(path)[:-5] + '.berth')
    command = [BERTH, 'build', path, '--target', 'cpu', '--dim', 'batch=1', '-o', program, '--quiet']
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return program


def berth_cpu_ms(command, count):
    """Processor time of `count` more requests of the same command, one."""
    spent = []
    for repeat in (1, 1 + count):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command + ['--repeat', str(repeat), '--warmup', '1'], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return (spent[1] - spent[0]) * 1e3 / count


def ort_cpu_ms(session, feeds, count):
    start = time.process_time()
    for _ in range(count):
        session.run(None, feeds)
    return (time.process_time() - start) * 1e3 / count


def in_floats(path, feeds):
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    return ort.InferenceSession(path, options, providers=['CPUExecutionProvider']).run(None, feeds)[0]


def layers_apart(path, feeds, file, folder):
    """How far a quantised result is at most from the oracle's of our own results before it, in steps."""
    model, every = onnx.load(path), os.path.join(folder, 'every.onnx')
    kinds = {t.name: t.data_type for t in model.graph.initializer}
    names = {n.output[0]: kinds[n.input[2]] for n in model.graph.node if n.op_type == 'QuantizeLinear'}
    model.graph.output.extend(onnx.helper.make_tensor_value_info(name, kind, None) for name, kind in names.items())
    onnx.save(model, every)
    files = {name: os.path.join(folder, 'y%d.npy' % i) for i, name in enumerate(names)}
    command = [BERTH, 'run', every, '--quiet', '--dim', 'batch=1', '--input', '%s=%s' % (next(iter(feeds)), file)]
    for name, result in files.items():
        command += ['--output', '%s=%s' % (name, result)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return integer_oracle.layers(path, feeds, {name: np.load(result) for name, result in files.items()})[0]


def apart(program, session, path, feeds, file, folder):
    """Largest differences in steps: a layer of ours from the oracle, the result from it, from it with scales in float64, from ONNX
    Runtime's integers and from its floats; its integers from the oracle."""
    name, output, result = session.get_inputs()[0].name, session.get_outputs()[0].name, os.path.join(folder, 'y.npy')
    command = [BERTH, 'run', program, '--quiet', '--threads', '1', '--input', '%s=%s' % (name, file), '--output', '%s=%s' % (output, result)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    got, floats, theirs = np.load(result), in_floats(path, feeds), session.run(None, feeds)[0]
    oracle, double = (integer_oracle.run(path, feeds, scales)[0] for scales in ('f32', 'f64'))
    step = np.diff(np.unique(floats)).min()
    pairs = (got, oracle), (got, double), (got, theirs), (got, floats), (theirs, oracle)
    return [layers_apart(path, feeds, file, folder)] + [np.abs(a - b).max() / step for a, b in pairs]


def measure(path, form, threads, rounds, folder):
    program, session = build(path, folder), compare_ort.open_ort(path, threads, 'CPUExecutionProvider')
    name = session.get_inputs()[0].name
    feeds, file = {name: np.random.RandomState(11).uniform(-1, 1, (1, 3, 224, 224)).astype(np.float32)}, os.path.join(folder, 'x.npy')
    np.save(file, feeds[name])
    command = [BERTH, 'run', program, '--quiet', '--threads', str(threads), '--input', '%s=%s' % (name, file)]
    runs = int(min(100, max(3, 200 / max(compare_ort.time_ort(session, feeds, 1), 0.01))))
    rows = [(compare_ort.time_ort(session, feeds, runs), compare_ort.time_berth(program, {name: file}, threads, runs),
             ort_cpu_ms(session, feeds, runs), berth_cpu_ms(command, runs)) for _ in range(rounds)]
    theirs, ours, their_cpu, our_cpu = (statistics.median(column) for column in zip(*rows))
    steps = '%9.2f %9.2f %9.2f %9.2f %9.2f %9.2f' % tuple(apart(program, session, path, feeds, file, folder)) if form else ''
    print('%-26s %7d %9.2f %9.2f %7.3f %9.2f %9.2f %7.3f %s' % (os.path.basename(path)[:-5], threads, theirs, ours, ours / theirs,
                                                              their_cpu, our_cpu, our_cpu / their_cpu, steps), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--models', required=True, help='folder with tools/make_resnet50.py and make_mobilenetv2.py')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--threads', default='1,2')
    parser.add_argument('--only', default='*', help='glob on NAME or NAME_FORM: %s' % ', '.join(FORMS))
    parser.add_argument('--keep', help='folder for generated models (kept); default: a temporary one')
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.keep or temporary
        os.makedirs(folder, exist_ok=True)
        print('%-26s %7s %9s %9s %7s %9s %9s %7s %9s %9s %9s %9s %9s %9s' % ('model', 'threads', 'ORT ms', 'Berth ms', 'ratio', 'ORT cpu', 'Berth cpu',
                                                           'ratio', 'layer', 'oracle', 'f64', 'ORT int', 'floats', 'ORT:oracle'))
        for name in ('resnet50', 'mobilenetv2'):
            for form in [None] + list(FORMS):
                if not fnmatch.fnmatch('%s_%s' % (name, form) if form else name, args.only):
                    continue
                path = make(args.models, folder, name, form)
                for threads in args.threads.split(','):
                    measure(path, form, int(threads), args.rounds, folder)


if __name__ == '__main__':
    main()
