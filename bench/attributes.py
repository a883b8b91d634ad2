#!/usr/bin/env python3
"""What other values of a target's attribute cost: models compiled with each, run in turns.

    python3 bench/attributes.py --attribute tile_rows=6,10,14,20 [--berth build/release/berth] [--target cpu] [--rounds N]
        [--runs N] [--threads N] MODEL...

The first value is what the others are compared with. Every round runs each program once more; of a round the median of its
runs counts, and of all rounds the least. Prints a table in Markdown: a row per model, milliseconds with the first value, and the
others' times over that (below 1: faster), then geometric means. Tuned kernels are not used: they have sizes of their own.
"""
import argparse
import json
import math
import os
import subprocess
import sys
import tempfile


def berth(args, arguments):
    done = subprocess.run([args.berth, *arguments], capture_output=True, text=True)
    if done.returncode:
        sys.exit((done.stderr.strip().splitlines() or ["no message"])[-1])
    return done.stdout


def name_of(model):
    folder = os.path.basename(os.path.dirname(os.path.abspath(model)))
    return folder if os.path.basename(model) == "model.onnx" else os.path.basename(model).rsplit(".", 1)[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attribute", required=True, metavar="NAME=VALUE,...")
    parser.add_argument("--berth", default="build/release/berth")
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    args = parser.parse_args()
    attribute, _, text = args.attribute.partition("=")
    values = text.split(",")
    ratios = {value: [] for value in values[1:]}
    print(f"| model | ms, {values[0]} | " + " | ".join(values[1:]) + " |\n|---|---:|" + "---:|" * len(ratios))
    with tempfile.TemporaryDirectory() as folder:
        for number, model in enumerate(args.models):
            programs = {value: os.path.join(folder, f"{number}_{value}.berth") for value in values}
            for value, path in programs.items():
                target = f"{args.target} -{attribute}={value}"
                berth(args, ["build", model, "--target", target, "--tuned", "none", "-q", "-o", path])
            best = dict.fromkeys(values, math.inf)
            for _ in range(args.rounds):
                for value, path in programs.items():
                    said = berth(args, ["bench", path, "-n", str(args.runs), "--threads", str(args.threads), "-q", "-f", "json"])
                    best[value] = min(best[value], json.loads(said)["latency_ms"]["p50"])
            for value in ratios:
                ratios[value].append(best[value] / best[values[0]])
            print(f"| {name_of(model)} | {best[values[0]]:.2f} | "
                  + " | ".join(f"{ratios[value][-1]:.3f}" for value in ratios) + " |", flush=True)
            for path in programs.values():
                os.unlink(path)
    means = [math.exp(sum(map(math.log, found)) / len(found)) for found in ratios.values()]
    print("| geometric mean | | " + " | ".join(f"{mean:.3f}" for mean in means) + " |")


if __name__ == "__main__":
    main()
