#!/usr/bin/env python3
"""Quantised networks against ONNX Runtime on the CPU, one thread, interleaved in one run.

    python3 -m pip install onnxruntime onnx numpy
    scripts/build.sh release
    python3 bench/quantized_ort.py --models ../shared [--only GLOB] [--rounds 7] [--keep FOLDER]

Makes ResNet-50 and MobileNetV2 in QDQ form with onnxruntime.quantization (u8 activations, i8 weights per channel; the
calibration data is random) from the generators of `--models`, compares both results on one input in steps of the last
quantisation, and prints medians of the times. The network in f32 is measured beside it.
"""
import argparse
import fnmatch
import os
import statistics
import subprocess
import tempfile

import numpy as np
import onnx
from onnxruntime import quantization

import compare_ort


class Calibration(quantization.CalibrationDataReader):
    def __init__(self, name, count):
        rng = np.random.RandomState(3)
        self.feeds = iter([{name: rng.uniform(-1, 1, (1, 3, 224, 224)).astype(np.float32)} for _ in range(count)])

    def get_next(self):
        return next(self.feeds, None)


def make(shared, folder, name):
    real, quantized = os.path.join(folder, name + '.onnx'), os.path.join(folder, name + '_qdq.onnx')
    if not os.path.exists(real):
        tool = os.path.join(shared, 'tools', 'make_%s.py' % name)
        subprocess.run(['/usr/bin/python3', tool, real], check=True, stdout=subprocess.DEVNULL)
    if not os.path.exists(quantized):
        prepared = os.path.join(folder, name + '_prepared.onnx')
        quantization.shape_inference.quant_pre_process(real, prepared, skip_symbolic_shape=True)
        reader = Calibration(onnx.load(real, load_external_data=False).graph.input[0].name, 4)
        quantization.quantize_static(prepared, quantized, reader, quant_format=quantization.QuantFormat.QDQ,
                                     per_channel=True, activation_type=quantization.QuantType.QUInt8,
                                     weight_type=quantization.QuantType.QInt8)
    return real, quantized


def build(path, folder):
    program = os.path.join(folder, os.path.basename(path)[:-5] + '.berth')
    command = [os.path.join(compare_ort.ROOT, 'build/release/berth'), 'build', path, '--target', 'cpu', '--dim', 'batch=1', '-o', program, '--quiet']
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return program


def results(program, file, name, output, folder):
    result = os.path.join(folder, 'y.npy')
    command = [os.path.join(compare_ort.ROOT, 'build/release/berth'), 'run', program, '--quiet', '--threads', '1',
               '--input', '%s=%s' % (name, file), '--output', '%s=%s' % (output, result)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return np.load(result)


def measure(path, folder, rounds):
    """Medians over rounds of both, the sizes of constants, and how far the results are apart."""
    program, session = build(path, folder), compare_ort.open_ort(path, 1)
    name = session.get_inputs()[0].name
    x = np.random.RandomState(11).uniform(-1, 1, (1, 3, 224, 224)).astype(np.float32)
    file = os.path.join(folder, 'x.npy')
    np.save(file, x)
    expected = session.run(None, {name: x})[0]
    runs = int(min(200, max(3, 300 / max(compare_ort.time_ort(session, {name: x}, 1), 0.01))))
    theirs, ours = [], []
    for _ in range(rounds):
        theirs.append(compare_ort.time_ort(session, {name: x}, runs))
        ours.append(compare_ort.time_berth(program, {name: file}, 1, runs))
    return statistics.median(theirs), statistics.median(ours), np.abs(results(program, file, name, session.get_outputs()[0].name, folder) - expected), expected


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--models', required=True, help='folder with models/ and tools/')
    parser.add_argument('--rounds', type=int, default=7)
    parser.add_argument('--only', default='*', help='glob on the model name')
    parser.add_argument('--keep', help='folder for generated models (kept); default: a temporary one')
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.keep or temporary
        os.makedirs(folder, exist_ok=True)
        print('%-18s %10s %10s %8s   %s' % ('model', 'ORT ms', 'Berth ms', 'ratio', 'largest difference, in steps of the last quantisation'))
        for name in ('resnet50', 'mobilenetv2'):
            if not fnmatch.fnmatch(name, args.only):
                continue
            for path in make(args.models, folder, name):
                theirs, ours, difference, expected = measure(path, folder, args.rounds)
                values = np.unique(expected)
                step = np.diff(values).min() if path.endswith('_qdq.onnx') and values.size > 1 else 1
                print('%-18s %10.3f %10.3f %8.3f   %.3g (mean %.3g, range %.3g)' % (
                      os.path.basename(path)[:-5], theirs, ours, ours / theirs, difference.max() / step, difference.mean() / step,
                      (expected.max() - expected.min()) / step), flush=True)


if __name__ == '__main__':
    main()
