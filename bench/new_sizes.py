#!/usr/bin/env python3
"""Shapes that change from run to run: what a new one costs, and kernels for several sizes beside exact ones.

    PYTHONPATH=python python3 bench/new_sizes.py MODEL SHAPE SHAPE...     shapes of the only input, as 1x3x48x320

Prints, for each shape in turn, the first run of a session that sees all of them (an empty kernel cache unless
--cache FOLDER), and then medians in turns: that session's kernels, and a program compiled for the shape alone.
"""
import argparse
import os
import statistics
import tempfile
import time


def timed(call, x):
    start = time.perf_counter()
    call(x)
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("shapes", nargs="+")
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--cache", help="folder of compiled kernels")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["BERTH_CACHE_DIR"] = args.cache or folder
        import numpy as np
        import berth

        exact = berth.load(args.model, target=args.target, threads=args.threads)
        several = berth.load(args.model, target=args.target, threads=args.threads)
        several._dynamic = several._load_dynamic()  # one session for all shapes, whatever the model needs
        random = np.random.default_rng(0)
        inputs = [random.random([int(n) for n in shape.split("x")], dtype=np.float32) for shape in args.shapes]
        firsts = [timed(several, x) for x in inputs]
        for shape, x, first in zip(args.shapes, inputs, firsts):
            exact(x)
            pairs = [(timed(several, x), timed(exact, x)) for _ in range(args.runs)]
            a, b = (statistics.median(column) * 1e3 for column in zip(*pairs))
            print(f"{shape}: first {first * 1e3:.0f} ms; several sizes {a:.2f} ms, exact {b:.2f} ms, ratio {a / b:.2f}", flush=True)


if __name__ == "__main__":
    main()
