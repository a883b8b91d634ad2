#!/usr/bin/env python3
"""BERT with dynamically quantised products against ONNX Runtime: how far apart the results are, and the time of a run.

    python3 -m pip install onnxruntime onnx numpy
    scripts/build.sh release
    python3 bench/dynamic_bert.py --models ../shared [--layers 1,2,12] [--rounds 5] [--keep FOLDER]

Makes BERT-base encoders of some numbers of layers with the generator of `--models`, and quantises them with ONNX Runtime's
`quantize_dynamic` (weights i8, activations u8 in each run). One sequence of 128, one thread. Distances are the largest
difference of two results over the largest value of the f32 network's. ONNX Runtime stands twice, with all and with none of
its optimisations: both compute what the model says, but sums in another order are another last bit, which may round an
activation to its other neighbour, and every layer takes such steps further. So the distance of the two says how near two right
implementations can be expected to come.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnxruntime as ort
from onnxruntime import quantization

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
os.environ.setdefault('BERTH_LIBRARY_DIR', os.path.join(ROOT, 'build', 'release'))
sys.path.insert(0, os.path.join(ROOT, 'python'))
import berth  # noqa: E402

VOCABULARY, LENGTH = 1000, 128


def make(shared, folder, layers):
    """The paths of the network in f32 and of the quantised one, made where they are not there yet."""
    real, quantized = (os.path.join(folder, 'bert_%d%s.onnx' % (layers, form)) for form in ('', '_i8'))
    if not os.path.exists(real):
        subprocess.run(['/usr/bin/python3', os.path.join(shared, 'tools', 'make_bert.py'), real, '--layers', str(layers),
                        '--vocab', str(VOCABULARY)], check=True, stdout=subprocess.DEVNULL)
    if not os.path.exists(quantized):
        quantization.quantize_dynamic(real, quantized, weight_type=quantization.QuantType.QInt8)
    return real, quantized


def onnxruntime_run(model, feed, level=ort.GraphOptimizationLevel.ORT_ENABLE_ALL):
    options = ort.SessionOptions()
    options.graph_optimization_level = level
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = ort.InferenceSession(model, options, providers=['CPUExecutionProvider'])
    return lambda: session.run(None, feed)[0]


def berth_run(model, feed):
    loaded = berth.load(model, dims={'batch': 1, 'seq': LENGTH}, threads=1)
    return lambda: loaded.run(feed)['last_hidden_state']


def times(runs, rounds):
    """The median of each in milliseconds, in turns."""
    taken = [[] for _ in runs]
    for _ in range(rounds):
        for place, run in zip(taken, runs):
            start = time.perf_counter()
            run()
            place.append(1000 * (time.perf_counter() - start))
    return [statistics.median(each) for each in taken]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--models', required=True, help='the folder whose tools/ has make_bert.py')
    parser.add_argument('--layers', default='1,2,12')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--keep', help='a folder for the models (default: a temporary one)')
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        compare(arguments, arguments.keep or temporary)


def compare(arguments, folder):
    """Prints a row of the table for each number of layers."""
    ids = np.random.default_rng(5).integers(0, VOCABULARY, (1, LENGTH))
    feed = {'input_ids': ids, 'attention_mask': np.ones_like(ids), 'token_type_ids': np.zeros_like(ids)}
    print('| layers | Berth, f32 | ORT, f32 | Berth, ORT | ORT, ORT without optimisations | ORT ms | Berth ms | ratio |\n'
          '|---|---|---|---|---|---|---|---|')
    for layers in (int(word) for word in arguments.layers.split(',')):
        real, quantized = make(arguments.models, folder, layers)
        exact = onnxruntime_run(real, feed)()
        plain = onnxruntime_run(quantized, feed, ort.GraphOptimizationLevel.ORT_DISABLE_ALL)()
        runs = onnxruntime_run(quantized, feed), berth_run(quantized, feed)
        theirs, ours = runs[0](), runs[1]()
        apart = ['%.4f' % (np.abs(a - b).max() / np.abs(exact).max())
                 for a, b in ((ours, exact), (theirs, exact), (ours, theirs), (theirs, plain))]
        theirs_ms, ours_ms = times(runs, arguments.rounds)
        print('| %d | %s | %.1f | %.1f | %.2f |' % (layers, ' | '.join(apart), theirs_ms, ours_ms, ours_ms / theirs_ms), flush=True)


if __name__ == '__main__':
    main()
