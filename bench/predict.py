#!/usr/bin/env python3
"""How far predicted times are from measured ones.

    python3 bench/predict.py [--berth build/release/berth] [--costs FILE | --calibrate] [--random N] [MODEL...]

For each model (without MODEL: those of ../shared/models that are there) and each target (cpu with 1 and 2
threads, opencl, and N random splits of cpu,opencl) `berth bench` runs the model; predicted is the plan's
time, measured the median latency. The splits are pins `*GLOB=DEVICE` drawn with a fixed seed. Prints a line
per case, then median and 90th percentile of |predicted / measured - 1| per target. `--costs none` is the
analytic model alone; `--calibrate` first runs `berth calibrate` (built-in shapes) for all targets, into a
temporary file: the models themselves are not measured then.
"""
import argparse
import glob
import json
import os
import random
import subprocess
import sys
import tempfile

MODELS = ["light_squeezenet", "light_shufflenet", "light_resnet50", "light_densenet121", "light_inception_v1",
          "mnist", "rfb320_nopost", "super_resolution", "ppocr_cls", "magika"]
CASES = [("cpu, 1 thread", "cpu -cores=1 -threads=1", ["--threads", "1"]), ("cpu, 2 threads", "cpu -cores=2 -threads=2", ["--threads", "2"]),
         ("opencl", "opencl,cpu", [])]


def berth(args, arguments):
    done = subprocess.run([args.berth, *arguments], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["no message"])[-1])
    return done.stdout


def bench(args, model, target, more, costs):
    report = json.loads(berth(args, ["bench", model, "--target", target, "--format", "json", "--duration", args.duration,
                                     "--costs", costs, *more]))
    return report["predicted_ms"], report["latency_ms"]["p50"]


def random_pins(args, model, target, seed, costs):
    """Half of the operations, in runs of a few beside each other, on either device."""
    plan = json.loads(berth(args, ["plan", model, "--target", target, "--format", "json", "--costs", costs]))
    draw, pins, device = random.Random(seed), [], "cpu:0"
    for operation in plan["operations"]:
        if draw.random() < 0.1:
            device = draw.choice(["cpu:0", "opencl:0"])
        node = operation["node"].split("+")[0]
        if node and not any(c in node for c in "*?=") and not operation["host_operation"]:
            pins += ["--pin", f"{node}={device}"]
    return pins


def quantile(values, q):
    return sorted(values)[round(q * (len(values) - 1))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--berth", default="build/release/berth")
    parser.add_argument("--costs", default="none")
    parser.add_argument("--calibrate", action="store_true")
    parser.add_argument("--random", type=int, default=1)
    parser.add_argument("--duration", default="1s")
    parser.add_argument("models", nargs="*")
    args = parser.parse_args()
    models = args.models
    if not models:
        found = [glob.glob(f"../shared/models/{name}/*.onnx") for name in MODELS]
        models = [paths[0] for paths in found if paths]
        if not models:
            sys.exit("predict.py: no models in ../shared/models: skipped")
    costs, folder = args.costs, tempfile.TemporaryDirectory()
    if args.calibrate:
        costs = os.path.join(folder.name, "costs.jsonl")
        for target in [case[1] for case in CASES]:
            berth(args, ["calibrate", "--target", target, "-o", costs, "--quiet"])
    errors = {}
    for model in models:
        name = os.path.basename(os.path.dirname(model)) or model
        cases = [(label, target, more) for label, target, more in CASES]
        cases += [("random splits", "cpu,opencl", seed) for seed in range(args.random)]
        for label, target, more in cases:
            try:
                if isinstance(more, int):
                    more = random_pins(args, model, target, more, costs)
                predicted, measured = bench(args, model, target, more, costs)
            except RuntimeError as error:
                print(f"{name:22} {label:16} left out: {error}", file=sys.stderr)
                continue
            errors.setdefault(label, []).append(abs(predicted / measured - 1))
            print(f"{name:22} {label:16} predicted {predicted:9.3f} ms  measured {measured:9.3f} ms  "
                  f"{predicted / measured - 1:+.0%}", flush=True)
    everything = [e for values in errors.values() for e in values]
    for label, values in [*errors.items(), ("all", everything)]:
        if values:
            print(f"{label:16} {len(values):3} cases: error median {quantile(values, 0.5):.0%}, "
                  f"p90 {quantile(values, 0.9):.0%}")


if __name__ == "__main__":
    main()
