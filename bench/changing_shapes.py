#!/usr/bin/env python3
"""Streams of inputs whose shapes change, beside ONNX Runtime, with all first runs.

    PYTHONPATH=python python3 bench/changing_shapes.py [MODEL...] [--runs 40] [--threads 1] [--programs FOLDER [--only]] [--pause SECONDS] [--kept FOLDER]

For each model of ../shared/models below: --runs inputs of random shapes, the same for both, one after the other in one session
each, in turns. Kinds of sessions: one that compiles, with an empty cache of kernels; another one after it, for other
shapes, with what the first one left in the cache, and (--pause) that one again, once it had time to compile a program for many
shapes beside its runs, and a later one, which has that program from its first run on; and, with --programs, one of a program file, which is built (and kept in FOLDER)
for all these shapes (--only: nothing else). With --kept, one session alone, of
other shapes each time, with FOLDER as its cache: once there was time to compile (--pause, before it ends), a later process has what it kept. Loading is in none of the times. Printed are the time of the first run, the medians of runs at shapes
that are new and of those that came before, what the first run of a shape takes more than its later ones (the median), and the whole stream, divided by ONNX Runtime's.
"""
import argparse
import math
import os
import statistics
import tempfile
import time

import numpy as np
import onnxruntime

MODELS = "../shared/models"


def image(random, height, width):
    return {"x": random.random((1, 3, height, width), np.float32)}


def wave(random):
    count = 1600 * int(random.integers(3, 13))
    return {"waveforms": random.standard_normal((1, count)).astype(np.float32), "waveforms_lens": np.array([count])}


def voice(random):
    rate, batch = (16000, 8000)[random.integers(2)], int(random.integers(1, 4))
    return {"input": random.standard_normal((batch, 576 * rate // 16000)).astype(np.float32),
            "state": np.zeros((2, batch, 128), np.float32), "sr": np.array(rate)}


# Inputs of a run; of a program file: dimensions, and specialisations.
STREAMS = {
    "ppocr4_rec": (lambda r: image(r, 48, 8 * int(r.integers(12, 41))),
                   {"x.0": 1, "x.2": 48, "p2o.DynamicDimension.1": "8*a", "a": (12, 40)}, []),
    "ppocr4_det": (lambda r: image(r, 32 * int(r.integers(4, 9)), 32 * int(r.integers(4, 9))),
                   {"x.0": 1, "x.2": "32*a", "x.3": "32*b", "a": (4, 8), "b": (4, 8)}, []),
    "ppocr_cls": (lambda r: image(r, 48, 8 * int(r.integers(10, 25))), {"x.0": 1, "x.2": 48, "x.3": "8*a", "a": (10, 24)}, []),
    "magika": (lambda r: {"bytes": r.integers(0, 256, (int(r.integers(1, 9)), 2048)).astype(np.int32)}, {"unk__214": (1, 8)}, []),
    "wespeaker": (wave, {"batch_size": 1, "N": "1600*a", "a": (3, 12)}, []),
    "nemo80": (wave, {"batch_size": 1, "N": "1600*a", "a": (3, 12)}, []),
    "silero_vad": (voice, {}, [f"input.0={b},input.1={n},state.1={b}" for b in (1, 2, 3) for n in (576, 288)]),
    "silero_vad_op18_ifless": (voice, {}, [f"batch={b},sequence={n}" for b in (1, 2, 3) for n in (576, 288)]),
}


def timed(call, inputs):
    start = time.perf_counter()
    call(inputs)
    return time.perf_counter() - start


def stream(call, other, inputs):
    """Times of both, run by run in turns."""
    times = []
    for i, given in enumerate(inputs):
        pair = [None, None]
        for side in (i % 2, 1 - i % 2):
            pair[side] = timed((call, other)[side], given)
        times.append(pair)
    return times


def shapes_of(inputs):
    return tuple(sorted((name, array.shape) for name, array in inputs.items()))


def report(name, kind, inputs, times):
    seen, new, again = set(), [], []
    for given, pair in list(zip(inputs, times)):
        (again if shapes_of(given) in seen else new).append(pair)
        seen.add(shapes_of(given))

    def both(pairs):
        return "/".join(f"{statistics.median(p[side] for p in pairs) * 1e3:.2f}" if pairs else "-" for side in (0, 1))

    later = {}
    for given, pair in list(zip(inputs, times))[::-1]:
        later.setdefault(shapes_of(given), []).append(pair)
    extra = [[pairs[-1][side] - statistics.median(p[side] for p in pairs[:-1]) for side in (0, 1)]
             for pairs in later.values() if len(pairs) > 1 and pairs[-1] is not times[0]]

    total = [sum(pair[side] for pair in times) for side in (0, 1)]
    print(f"{name:24} {kind:14} first {both(times[:1])}, new {both(new[1:])}, again {both(again)}, "
          f"a new shape more than later {both(extra)} ms; {len(times)} runs at "
          f"{len(seen)} shapes {total[0] * 1e3:.0f}/{total[1] * 1e3:.0f} ms, ratio {total[0] / total[1]:.2f}", flush=True)
    return total[0] / total[1]


def program_of(berth, name, folder):
    path = os.path.join(folder, f"{name}.berth")
    if not os.path.exists(path):
        _, dims, specialisations = STREAMS[name]
        compiler = berth.Compiler(target="cpu", executor="vm")
        for dim, extent in dims.items():
            compiler.set_dim(dim, extent)
        for text in specialisations:
            compiler.add_specialisation(text)
        compiler.compile(f"{MODELS}/{name}/model.onnx").save(path)
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--programs", metavar="FOLDER")
    parser.add_argument("--only", action="store_true")
    parser.add_argument("--kept", metavar="FOLDER")
    parser.add_argument("--seed", type=int, default=1, help="of the shapes, with --kept")
    parser.add_argument("--pause", type=float, default=0, metavar="SECONDS")
    args = parser.parse_args()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = args.threads
    ratios = {}
    for name in args.models or STREAMS:
        make, model = STREAMS[name][0], f"{MODELS}/{name}/model.onnx"
        with tempfile.TemporaryDirectory() as cache:
            os.environ["BERTH_CACHE_DIR"] = os.path.abspath(args.kept) if args.kept else cache
            import berth
            if args.programs:
                os.makedirs(args.programs, exist_ok=True)
                program = program_of(berth, name, args.programs)
            kinds = [("empty cache", 1), ("kernels cached", 2)] + ([("after a pause", 4), ("program kept", 5)] if args.pause else [])
            kinds = [("its own process", args.seed)] if args.kept else kinds
            for kind, seed in kinds * (not args.only) + [("program", 3)] * bool(args.programs):
                if kind == "after a pause":
                    time.sleep(args.pause)
                else:
                    loaded = berth.load(program if kind == "program" else model, threads=args.threads,
                                        **({} if kind == "program" else {"target": "cpu"}))
                session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
                random = np.random.default_rng(seed)
                inputs = [make(random) for _ in range(args.runs)]
                times = stream(loaded.run, lambda given: session.run(None, given), inputs)
                ratios.setdefault(kind, []).append(report(name, kind, inputs, times))
                time.sleep(args.pause if args.kept else 0)
    for kind, values in ratios.items():
        mean = math.exp(statistics.mean(math.log(value) for value in values))
        print(f"{kind}: geometric mean {mean:.2f}, most {max(values):.2f}")


if __name__ == "__main__":
    main()
