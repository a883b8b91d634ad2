#!/usr/bin/env python3
"""A recurrent model over sequences beside ONNX Runtime: silero_vad (spectrum, convolutions, LSTM) at 16 kHz.

    python3 -m pip install onnxruntime onnx numpy
    scripts/build.sh release
    python3 bench/sequence_ort.py ../shared/models/silero_vad_op18_ifless/model.onnx [--sizes 1x576,512x576] [--threads 1] [--rounds 5] [--realtime]

A size is ROWSxSAMPLES: 1x576 is one call for a chunk, as a stream is served; 512x576 are the chunks of a recording as one batch;
1x65600 is a long sequence. A round is (ONNX Runtime,
Berth); the ratio is the quotient of the fastest runs of all rounds, below 1 where Berth is faster. Both sides get the same inputs,
and the largest difference of their outputs is printed.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

from compare_operators import BERTH, Peer, difference, realtime

class Program:
    """The model, run by the command, which compiles it before and keeps the kernels for the next call."""

    def __init__(self, model, feeds, folder, threads):
        self.model, self.threads, self.folder, self.inputs = model, str(threads), folder, []
        for name, array in feeds.items():
            file = os.path.join(folder, name + '.npy')
            np.save(file, array)
            self.inputs += ['--input', '%s=%s' % (name, file)]

    @staticmethod
    def call(arguments):
        result = subprocess.run([BERTH] + arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if result.returncode:
            sys.exit('berth %s: %s' % (arguments[0], result.stderr.strip()))
        return result.stdout

    def run(self, repeat, more=()):
        return json.loads(self.call(['run', self.model, '--format=json', '--quiet', '--threads', self.threads, '--warmup', '3',
                                     '--repeat', str(repeat)] + self.inputs + list(more)))['latency_ms']

    def results(self, names):
        files = [os.path.join(self.folder, 'out_%s.npy' % n) for n in names]
        self.run(1, [part for n, f in zip(names, files) for part in ('--output', '%s=%s' % (n, f))])
        return [np.load(f) for f in files]


def measure(args, size):
    rows, samples = map(int, size.split('x'))
    random = np.random.RandomState(1)
    feeds = {'input': random.uniform(-.3, .3, (rows, samples)).astype(np.float32),
             'state': random.uniform(-1, 1, (2, rows, 128)).astype(np.float32), 'sr': np.array(16000, dtype=np.int64)}
    names = ['output', 'stateN']
    with tempfile.TemporaryDirectory() as folder:
        peer = Peer(args.model, feeds, names, args.threads)
        berth = Program(args.model, feeds, folder, args.threads)
        diff = difference(berth.results(names), peer.results())
        repeat = max(5, int(1e3 * args.slice / max(berth.run(3)['min'], 1e-3)))
        ours, theirs = [], []
        for _ in range(args.rounds):
            with realtime(args.realtime):
                theirs.append(min(peer.times(args.slice)))
                ours.append(berth.run(repeat)['min'])
    print('%-10s %10.4f %10.4f %8.3f  %8.2g' % (size, min(ours), min(theirs), min(ours) / min(theirs), diff), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('model')
    parser.add_argument('--sizes', default='1x576,1x4160,1x65600,32x576,512x576', help='ROWSxSAMPLES')
    parser.add_argument('--threads', type=int, default=1)
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--slice', type=float, default=.1, help='seconds of runs per figure')
    parser.add_argument('--realtime', action='store_true', help='real-time priority (root only)')
    args = parser.parse_args()
    print('%-10s %10s %10s %8s  %8s' % ('', 'Berth ms', 'ORT ms', 'ratio', 'diff'))
    for size in args.sizes.split(','):
        measure(args, size)


if __name__ == '__main__':
    main()
