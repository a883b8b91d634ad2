#!/usr/bin/env python3
"""Our kernels beside OpenBLAS and oneDNN, for the products and convolutions of models.

    python3 bench/libraries.py [--berth build/release/berth] [--libs openblas,dnnl] [--cores N] [--duration 2s]
        [--rounds N] MODEL...

`berth calibrate` runs each operation as a small program of our kernels and as one that calls the library, in turn, on
the same threads; then `berth plan` says what was measured. With several rounds the least of each counts. Prints a table in Markdown: a row per shape, times in
microseconds, library / Berth (below 1: the library is faster), then geometric means. Not in the times: passes that our
kernels take with them and a library does not, which the plan adds.
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


def measure(args, model, target):
    """The operations of the model's plan by new measurements."""
    with tempfile.TemporaryDirectory() as folder:
        costs = os.path.join(folder, "costs.jsonl")
        berth(args, ["calibrate", model, "--target", target, "-q", "--duration", args.duration, "-o", costs])
        return json.loads(berth(args, ["plan", model, "--target", target, "-q", "--costs", costs, "--format=json"]))["operations"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--berth", default="build/release/berth")
    parser.add_argument("--libs", default="openblas,dnnl")
    parser.add_argument("--cores", type=int)
    parser.add_argument("--duration", default="2s")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    args = parser.parse_args()
    target = f"cpu -libs={args.libs}" + (f" -cores={args.cores} -threads={args.cores}" if args.cores else "")
    libs = args.libs.split(",")
    ratios = {lib: [] for lib in libs}
    print("| model | operation | times | Berth us | " + " | ".join(f"{lib} us | ratio" for lib in libs) + " |")
    print("|---|---|---:|---:|" + "---:|---:|" * len(libs))
    for model in args.models:
        rows, count = {}, {}
        for turn in range(args.rounds):
            for operation in measure(args, model, target):
                for library in operation["libraries"]:
                    if "time_us" in library:
                        held = rows.setdefault(library["computes"], {}).setdefault(library["name"], library)
                        for time in ("time_us", "own_us"):
                            held[time] = min(held[time], library[time])
                if operation["libraries"] and turn == 0:
                    key = operation["libraries"][0]["computes"]
                    count[key] = count.get(key, 0) + 1
        name = os.path.basename(os.path.dirname(os.path.abspath(model))) if model.endswith("model.onnx") \
            else os.path.basename(model).rsplit(".", 1)[0]
        for key, found in rows.items():
            own = min(library["own_us"] for library in found.values())
            cells = []
            for lib in libs:
                if lib in found:
                    ratio = found[lib]["time_us"] / own
                    ratios[lib].append(ratio)
                    cells.append(f"{found[lib]['time_us']:.0f} | {ratio:.2f}")
                else:
                    cells.append("- | -")
            print(f"| {name} | {key} | {count.get(key, 0)} | {own:.0f} | " + " | ".join(cells) + " |", flush=True)
    for lib, values in ratios.items():
        if values:
            print(f"\n{lib} / Berth over {len(values)} shapes: geometric mean "
                  f"{math.exp(sum(map(math.log, values)) / len(values)):.2f}")


if __name__ == "__main__":
    main()
