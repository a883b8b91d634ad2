#!/usr/bin/env python3
"""Whether `--strategy auto` pays: its plan, run, against the best of the others.

    python3 bench/auto_pays.py --costs costs.jsonl [--work FOLDER] [--berth build/release/berth] [--random N] [--rounds N] [--pairs N]
                               [--targets NAME;...] [--slice K/N] [STEP...] [--models MODEL...]

For each model (files, or folders with a model.onnx, each with its options: "net.onnx --dim N=1"; `@FILE` stands for the lines of a file;
without --models: all of ../shared/models with known shapes) and each target, programs are built by `auto`, by
`default`, with all on one device (for each device), and with N random placements. Programs that place alike are one. Steps,
all of them in this order where none is given; each leaves what it finds in FOLDER and goes on where it was interrupted:

    build      the programs
    measure    rounds of all programs of a case, one after the other; a program's time is the median of its rounds' medians
    confirm    auto and the two best of the others again, `--pairs N` rounds in turns: the fastest of twelve noisy figures is
               too fast, and what a shared machine does changes from minute to minute, so that only neighbours compare
    report     auto's time over the best of the others, a line per case, then a table; where a case is confirmed, the ratio is the
               median of its rounds' ratios, of the other that makes it largest

Only `measure` and `confirm` need a quiet machine; `--seconds N` ends each after about so long. `--costs` is what `berth calibrate` wrote for the
devices of the targets.
"""
import argparse
import json
import math
import os
import statistics
import sys
import tempfile
import time

from model_cases import models, part, plan, random_pins, run

TWO_OPENCL = {"POCL_DEVICES": "pthread pthread"}  # PoCL's two devices, as an application with two GPUs sees
# name: (target, devices that compute, environment, options of a run). A cpu device without a set of its own takes all cores unless
# the run says otherwise: then it would not be the machine that the plan is for.
TARGETS = {
    "cpu,opencl": ("cpu,opencl", ["cpu:0", "opencl:0"], {}, []),
    "two opencl": ("opencl,opencl", ["opencl:0", "opencl:1"], TWO_OPENCL, []),
    "two cpu, 1 thread each": ("cpu -cores=1 -cpuset=0,cpu -cores=1 -cpuset=1", ["cpu:0", "cpu:1"], {}, []),
    "cpu (1 thread),opencl": ("cpu -cores=1,opencl", ["cpu:0", "opencl:0"], {}, ["--threads", "1"]),
}


def placement(planned):
    return "\n".join(f"{operation['node']} {operation['device']}" for operation in planned["operations"])


def candidates(args, model, name):
    """(label, options) of each plan that is compared."""
    target, devices = TARGETS[name][:2]
    operations = plan(args.berth, model, target, args.costs)["operations"]
    out = [("auto", ["--strategy", "auto"]), ("default", [])]
    out += [(f"all on {device}", ["--pin", f"*={device}"]) for device in devices]
    return out + [(f"random {seed}", random_pins(operations, devices, seed)) for seed in range(args.random)]


def case_path(args, model, name):
    return os.path.join(args.work, f"{model[0]}@{name.replace(' ', '_')}")


def build(args, model, name):
    path = case_path(args, model, name)
    if os.path.exists(path + ".json"):
        return
    programs, seen = [], {}
    for label, options in candidates(args, model, name):
        try:
            planned = plan(args.berth, model, TARGETS[name][0], args.costs, options)
            program = f"{path}.{len(programs)}.berth"
            same = seen.setdefault(placement(planned), program)
            if same == program:
                run([args.berth, "build", model[1], *model[2], "--target", TARGETS[name][0], "--costs", args.costs, "--tuned", "none",
                     "-o", program, *options])
            programs.append({"label": label, "program": os.path.basename(same), "predicted_ms": planned["predicted_ms"]})
        except RuntimeError as error:
            print(f"{model[0]}, {name}, {label}: left out: {error}", file=sys.stderr)
    with open(path + ".json", "w") as out:
        json.dump(programs, out, indent=1)


def programs_of(args, model, name):
    path = case_path(args, model, name) + ".json"
    return json.load(open(path)) if os.path.exists(path) else []


def times_of(args, program):
    path = os.path.join(args.work, program + ".ms")
    return [float(line) for line in open(path)] if os.path.exists(path) else []


def median_of_run(args, program, name):
    report = json.loads(run([args.berth, "bench", os.path.join(args.work, program), *TARGETS[name][3], "--duration", args.duration,
                             "--format", "json"]))
    return report["latency_ms"]["p50"]


def measure(args, model, name):
    """False: the time is up."""
    programs = sorted({p["program"] for p in programs_of(args, model, name)})
    for count in range(1, args.rounds + 1):
        for program in programs:
            if len(times_of(args, program)) >= count:
                continue
            if time.monotonic() > args.end:
                return False
            with open(os.path.join(args.work, program + ".ms"), "a") as out:
                print(median_of_run(args, program, name), file=out)
    return True


def rivals(args, model, name):
    """auto's program and the two best others that place differently."""
    for _, _, programs, times, _ in rows_of(args, [model], [name]):
        auto = programs["auto"]["program"]
        others = {p["program"]: times[label] for label, p in programs.items() if p["program"] != auto}
        return [auto] + sorted(others, key=others.get)[:2]
    return []


def rounds_of(args, model, name):
    path = case_path(args, model, name) + ".pairs"
    return [json.loads(line) for line in open(path)] if os.path.exists(path) else []


def confirm(args, model, name):
    """False: the time is up."""
    programs = rivals(args, model, name)
    if len(programs) < 2:
        return True
    for count in range(len(rounds_of(args, model, name)), args.pairs):
        if time.monotonic() > args.end:
            return False
        order = programs if count % 2 == 0 else programs[::-1]
        times = {program: median_of_run(args, program, name) for program in order}
        with open(case_path(args, model, name) + ".pairs", "a") as out:
            print(json.dumps([[program, times[program]] for program in programs]), file=out)
    return True


def confirmed(args, model, name):
    """The median ratio over the rounds, of the rival that makes it largest; None: not confirmed."""
    rounds = rounds_of(args, model, name)
    if not rounds:
        return None
    ratios = [statistics.median(r[0][1] / r[i][1] for r in rounds) for i in range(1, len(rounds[0]))]
    return max(ratios)


def rows_of(args, chosen, names=None):
    for name in names or args.targets:
        for model in chosen:
            programs = programs_of(args, model, name)
            times = {p["label"]: statistics.median(times_of(args, p["program"]) or [math.nan]) for p in programs}
            if "auto" not in times or len(times) < 2 or any(math.isnan(t) for t in times.values()):
                continue
            best = min((label for label in times if label != "auto"), key=times.get)
            yield name, model, {p["label"]: p for p in programs}, times, best


def report(args, chosen):
    ratios, single = {}, {}
    for name, model, programs, times, best in rows_of(args, chosen):
        ratio = confirmed(args, model, name) or times["auto"] / times[best]
        ratios.setdefault(name, []).append(ratio)
        one = min(t for label, t in times.items() if label.startswith("all on "))
        single.setdefault(name, []).append(times["auto"] / one)
        print(f"{model[0]:20} {name:22} auto {times['auto']:9.3f} ms (predicted {programs['auto']['predicted_ms']:9.3f}), best {times[best]:9.3f} ms "
              f"(predicted {programs[best]['predicted_ms']:9.3f}, {best}): {ratio:.2f}{'  <<' if ratio > 1.05 else ''}")
    print("\n| target | models | auto / best of the others: geometric mean | worst | over 1.05 | auto / best single device: geometric mean |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, values in ratios.items():
        print(f"| {name} | {len(values)} | {statistics.geometric_mean(values):.2f} | {max(values):.2f} | "
              f"{sum(v > 1.05 for v in values)} | {statistics.geometric_mean(single[name]):.2f} |")


def main():
    parser = argparse.ArgumentParser(fromfile_prefix_chars="@", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work")
    parser.add_argument("--berth", default="build/release/berth")
    parser.add_argument("--costs", default="none")
    parser.add_argument("--random", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--duration", default="100ms")
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("--targets", default=";".join(TARGETS), help='separated by ";"')
    parser.add_argument("--slice", default="1/1")
    parser.add_argument("--models", nargs="+", default=[])
    parser.add_argument("steps", nargs="*", metavar="STEP")
    args = parser.parse_args()
    args.work = args.work or tempfile.mkdtemp()
    args.targets = args.targets.split(";")
    os.makedirs(args.work, exist_ok=True)
    steps = args.steps or ["build", "measure", "confirm", "report"]
    if any(s not in ("build", "measure", "confirm", "report") for s in steps) or any(t not in TARGETS for t in args.targets):
        parser.error(f"steps are build, measure, confirm and report; targets are {'; '.join(TARGETS)}")
    chosen = part(models(args.models), args.slice)
    if not chosen:
        sys.exit("auto_pays.py: no models in ../shared/models: skipped")
    for step in steps:
        args.end = time.monotonic() + args.seconds
        if step == "report":
            report(args, chosen)
            continue
        for name in args.targets:
            os.environ.update(TARGETS[name][2])
            for model in chosen:
                try:
                    if step == "build":
                        build(args, model, name)
                    elif not (measure if step == "measure" else confirm)(args, model, name):
                        return
                except RuntimeError as error:
                    print(f"{model[0]}, {name}: left out: {error}", file=sys.stderr)
            for variable in TARGETS[name][2]:
                del os.environ[variable]


if __name__ == "__main__":
    main()
