#!/usr/bin/env python3
"""How far predicted times are from measured ones.

    python3 bench/predict.py [--work FOLDER] [--berth build/release/berth] [--random N] [STEP...] [--models MODEL...]

For each model (files, or folders with a model.onnx, each with its options: "net.onnx --dim N=1"; `@FILE` stands for the lines of a file;
without --models: all of ../shared/models with known shapes) and each target (cpu with 1 and 2 threads,
opencl, and N random splits of cpu,opencl) the predicted time of a plan is compared with the median latency of its program.
Steps, all of them in this order where none is given; each leaves what it finds in FOLDER:

    build      a program of every case
    calibrate  `berth calibrate`: the built-in shapes to FOLDER/shapes.jsonl, then these and the models to FOLDER/models.jsonl
    measure    runs the programs (`berth bench`); once more with each call, and the least median counts
    report     predicts by the target's figures alone, by shapes.jsonl and by models.jsonl; prints a line per case, then median
               and 90th percentile of |predicted / measured - 1| per target

Only `calibrate` and `measure` need a quiet machine. `--slice K/N` takes every N-th model, for machines that are quiet for a
short while only. Splits are pins drawn with fixed seeds: none of them is calibrated, only each whole model on each device.
"""
import argparse
import json
import os
import sys
import tempfile

from model_cases import models, part, plan, random_pins, run

CASES = [("cpu, 1 thread", "cpu -cores=1 -threads=1", 1), ("cpu, 2 threads", "cpu -cores=2 -threads=2", 2),
         ("opencl", "opencl,cpu", 2)]
SPLIT = "cpu,opencl"


def cases_of(args, model):
    """(label, target, options, threads, program) of each."""
    stem = os.path.join(args.work, model[0])
    out = [(label, target, [], threads, f"{stem}.{i}.berth") for i, (label, target, threads) in enumerate(CASES)]
    if args.random:
        try:
            operations = plan(args.berth, model, SPLIT, "none")["operations"]
        except RuntimeError as error:  # such as control flow, which the virtual machine runs
            print(f"{model[0]}: left out: {error}", file=sys.stderr)
            return []
        for seed in range(args.random):
            out.append(("random splits", SPLIT, random_pins(operations, ["cpu:0", "opencl:0"], seed), 2, f"{stem}.s{seed}.berth"))
    return out


def build(args, model):
    for label, target, options, _, program in cases_of(args, model):
        if os.path.exists(program):
            continue
        try:
            run([args.berth, "build", model[1], *model[2], "--target", target, "--costs", "none", "--tuned", "none", "-o", program,
                 *options])
        except RuntimeError as error:
            print(f"{model[0]}, {label}: left out: {error}", file=sys.stderr)


def calibrate(args, model):
    for _, target, _ in CASES:
        try:
            run([args.berth, "calibrate", model[1], *model[2], "--target", target, "--duration", args.duration, "-o",
                 os.path.join(args.work, "models.jsonl"), "--quiet"])
        except RuntimeError as error:
            print(f"{model[0]}: not calibrated: {error}", file=sys.stderr)


def calibrate_shapes(args):
    shapes, both = (os.path.join(args.work, name) for name in ("shapes.jsonl", "models.jsonl"))
    for _, target, _ in CASES:
        run([args.berth, "calibrate", "--target", target, "-o", shapes, "--quiet"])
    run([args.berth, "calibrate", "--merge", shapes, *([both] if os.path.exists(both) else []), "-o", both])


def measure(args, model):
    for _, _, _, threads, program in cases_of(args, model):
        if not os.path.exists(program):
            continue
        try:
            report = json.loads(run([args.berth, "bench", program, "--threads", str(threads), "--duration", args.duration,
                                     "--format", "json"]))
        except RuntimeError as error:
            print(f"{program}: {error}", file=sys.stderr)
            continue
        with open(program + ".ms", "a") as out:
            print(report["latency_ms"]["p50"], file=out)


def quantile(values, q):
    return sorted(values)[round(q * (len(values) - 1))]


def figures(args):
    """{"analytic": costs, ...} of what is there."""
    found = {"analytic": "none"}
    for name in ("shapes", "models"):
        path = os.path.join(args.work, name + ".jsonl")
        if os.path.exists(path):
            found[name] = path
    return found


def report(args, chosen):
    errors, rows = {}, []
    for model in chosen:
        for label, target, options, _, program in cases_of(args, model):
            if not os.path.exists(program + ".ms"):
                continue
            measured = min(float(line) for line in open(program + ".ms"))
            line = f"{model[0]:24} {label:15} measured {measured:9.3f} ms "
            for name, costs in figures(args).items():
                predicted = plan(args.berth, model, target, costs, options)["predicted_ms"]
                errors.setdefault(label, {}).setdefault(name, []).append(abs(predicted / measured - 1))
                line += f" {name} {predicted:9.3f} ({predicted / measured - 1:+.0%})"
                rows.append({"model": model[0], "case": label, "by": name, "predicted_ms": predicted, "measured_ms": measured,
                             "program": os.path.basename(program)})
            print(line, flush=True)
    with open(os.path.join(args.work, "report.json"), "w") as out:
        json.dump(rows, out, indent=1)
    names = list(figures(args))
    errors["all"] = {n: [e for values in errors.values() for e in values.get(n, [])] for n in names}
    print("\n| \\|predicted / measured - 1\\|: median, p90 | cases | " + " | ".join(names) + " |\n|---|---:|" + "---:|" * len(names))
    for label, values in errors.items():
        cells = [f"{quantile(values[n], 0.5):.0%}, {quantile(values[n], 0.9):.0%}" for n in names if values.get(n)]
        print(f"| {label} | {len(values.get('analytic', []))} | " + " | ".join(cells) + " |")


def main():
    parser = argparse.ArgumentParser(fromfile_prefix_chars="@", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work")
    parser.add_argument("--berth", default="build/release/berth")
    parser.add_argument("--random", type=int, default=3)
    parser.add_argument("--duration", default="300ms")
    parser.add_argument("--slice", default="1/1")
    parser.add_argument("--models", nargs="*", default=[])
    parser.add_argument("steps", nargs="*", metavar="STEP")
    args = parser.parse_args()
    steps = args.steps or ["build", "calibrate", "measure", "report"]
    unknown = set(steps) - {"build", "calibrate", "measure", "report"}
    if unknown:
        parser.error(f"no step {unknown.pop()}: build, calibrate, measure, report")
    if not args.work and args.steps:
        parser.error("single steps need --work FOLDER")
    folder = None if args.work else tempfile.TemporaryDirectory()
    args.work = args.work or folder.name
    os.makedirs(args.work, exist_ok=True)
    every = models(args.models)
    if not every:
        sys.exit("predict.py: no models in ../shared/models: skipped")
    chosen = part(every, args.slice)
    for step in steps:
        if step == "calibrate" and chosen[0] == every[0]:
            calibrate_shapes(args)
        if step == "report":
            report(args, chosen)
        for model in chosen if step != "report" else []:
            {"build": build, "calibrate": calibrate, "measure": measure}[step](args, model)


if __name__ == "__main__":
    main()
