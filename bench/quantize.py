#!/usr/bin/env python3
"""Accuracy of `berth quantize` beside ONNX Runtime's static quantisation, on the same data.

    python3 -m pip install onnxruntime onnx numpy scikit-learn sympy
    scripts/build.sh release
    python3 bench/quantize.py

Two networks for scikit-learn's handwritten digits: the one of examples/digits, and a dense one that is trained here (64-64-48-32-10).
256 training images calibrate, 360 others are what is measured. All models run in ONNX Runtime. A line says what is right of the test
images, how much less that is than of the float model, and the outputs' signal over noise in dB.
"""
import os
import subprocess
import tempfile

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
from onnxruntime import quantization
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BERTH = os.path.join(ROOT, 'build/release/berth')
TRAINING, CALIBRATION, BATCH = 1437, 256, 32
OURS = ['', '--per-channel', '--method minmax', '--method entropy', '--method percentile', '--scales power-of-two', '--target vta,cpu']
METHODS = quantization.CalibrationMethod
THEIRS = {'minmax': {}, 'minmax, per channel': {'per_channel': True}, 'entropy': {'calibrate_method': METHODS.Entropy},
          'percentile': {'calibrate_method': METHODS.Percentile}}


class Batches(quantization.CalibrationDataReader):
    def __init__(self, name, images):
        self.feeds = iter([{name: images[i:i + BATCH]} for i in range(0, len(images), BATCH)])

    def get_next(self):
        return next(self.feeds, None)


def dense_network(images, labels, path):
    trained = MLPClassifier((64, 48, 32), max_iter=400, random_state=1).fit(images, labels)
    constants, nodes, value = [], [], 'x'
    for i, (weights, bias) in enumerate(zip(trained.coefs_, trained.intercepts_)):
        constants += [numpy_helper.from_array(weights.astype(np.float32), f'w{i}'), numpy_helper.from_array(bias.astype(np.float32), f'b{i}')]
        nodes.append(helper.make_node('Gemm', [value, f'w{i}', f'b{i}'], [f'sum{i}'], name=f'dense{i}'))
        value = f'sum{i}'
        if i + 1 < len(trained.coefs_):
            nodes.append(helper.make_node('Relu', [value], [f'relu{i}']))
            value = f'relu{i}'
    tensor = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, 'dense', [tensor('x', TensorProto.FLOAT, ['n', 64])],
                              [tensor(value, TensorProto.FLOAT, ['n', 10])], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 13)], ir_version=8), path)


def run(path, images):
    session = ort.InferenceSession(path, providers=['CPUExecutionProvider'])
    return session.run(None, {session.get_inputs()[0].name: images})[0]


def compare(title, path, images, labels, exact):
    got = run(path, images)
    right, before = (got.argmax(1) == labels).mean(), (exact.argmax(1) == labels).mean()
    noise = 10 * np.log10((exact ** 2).sum() / ((exact - got) ** 2).sum())
    print(f'  {title:34s} {100 * right:6.2f} %  drop {100 * (before - right):5.2f} %  {noise:5.1f} dB', flush=True)


def measure(name, path, shape, folder):
    digits = load_digits()
    images, labels = (digits.images / 16).astype(np.float32).reshape(shape), digits.target
    calibration, test, right = images[:CALIBRATION], images[TRAINING:], labels[TRAINING:]
    sets, out = os.path.join(folder, name), os.path.join(folder, 'quantized.onnx')
    os.makedirs(sets)
    for i in range(0, CALIBRATION, BATCH):
        np.save(os.path.join(sets, f'{i // BATCH}.npy'), calibration[i:i + BATCH])
    exact = run(path, test)
    print(name)
    print(f'  float {100 * (exact.argmax(1) == right).mean():.2f} %')
    for options in OURS:
        subprocess.run([BERTH, 'quantize', path, '--calibrate', sets, '-q', '-o', out, *options.split()], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        compare(f'berth {options or "(no options)"}', out, test, right, exact)
    for title, options in THEIRS.items():
        source = ort.InferenceSession(path, providers=['CPUExecutionProvider']).get_inputs()[0].name
        quantization.quantize_static(path, out, Batches(source, calibration), quant_format=quantization.QuantFormat.QDQ,
                                     activation_type=quantization.QuantType.QUInt8, weight_type=quantization.QuantType.QInt8, **options)
        compare(f'onnxruntime {title}', out, test, right, exact)


def main():
    digits = load_digits()
    with tempfile.TemporaryDirectory() as folder:
        dense = os.path.join(folder, 'dense.onnx')
        dense_network((digits.images / 16).reshape(-1, 64)[:TRAINING], digits.target[:TRAINING], dense)
        measure('digits', os.path.join(ROOT, 'examples/digits/digits.onnx'), (-1, 1, 8, 8), folder)
        measure('dense', dense, (-1, 64), folder)


if __name__ == '__main__':
    main()
