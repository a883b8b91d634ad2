#!/usr/bin/python3
"""Runs commands of berth again and again, each time with one failing call of the system (fail_at.c).

Every run must end with status 0 and the whole right result, or with status 1 (2 while the command line is read) and
a message; never by a signal, a hang, or with status 0 and a result that lacks something.

Usage: fail_each.py BERTH LIBRARY [--every N] [--kind memory|files|helper|cut] [--only WORD] [--jobs N]
  --every N   only every N-th call (1, the default, is all of them), beginning at a place that changes with the command
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MODEL = "examples/digits/digits.onnx"
TIME_LIMIT_S = 120

# name, arguments, files that are results; {W} is a folder of the run's own, {S} one that all runs share.
COMMANDS = [
    ("run", ["run", MODEL, "--dim", "batch=1", "--cache-dir", "{S}/cache", "--quiet", "--output", "{OUT}={W}/y.npy",
             "--threads", "2"], ["y.npy"]),
    ("run_anew", ["run", MODEL, "--dim", "batch=1", "--no-cache", "--quiet", "--output", "{OUT}={W}/y.npy"], ["y.npy"]),
    ("run_program", ["run", "{S}/p.berth", "--quiet", "--output", "{OUT}={W}/y.npy"], ["y.npy"]),
    ("run_signed", ["run", "{S}/p.berth", "--require-signature", "{S}/k.pub", "--quiet", "--output", "{OUT}={W}/y.npy"],
     ["y.npy"]),
    ("build", ["build", MODEL, "--dim", "batch=1", "--cache-dir", "{W}/cache", "--sign", "{S}/k", "-o", "{W}/p.berth",
               "--quiet"], []),
    ("plan", ["plan", MODEL, "--dim", "batch=1", "--format", "json", "--quiet", "--target", "cpu"], None),
    ("plan_sweep", ["plan", MODEL, "--dim", "batch=1", "--memory-sweep", "--format", "svg", "--quiet"], None),
    ("run_budget", ["run", MODEL, "--dim", "batch=1", "--cache-dir", "{S}/cache", "--quiet", "--memory", "cpu=28KiB",
                    "--output", "{OUT}={W}/y.npy"], ["y.npy"]),
    ("plan_auto", ["plan", MODEL, "--dim", "batch=1", "--strategy", "auto", "--nodes", "1000", "--target", "cuda,cpu",
                   "--quiet"], None),
    ("explain", ["explain", MODEL, "--dim", "batch=1", "--nodes", "1000", "--target", "cpu", "--quiet"], None),
    ("simulate", ["simulate", MODEL, "--dim", "batch=1", "--target", "cpu", "--quiet", "-o", "{W}/s.svg"], ["s.svg"]),
    ("compare", ["plan", "--compare", "{S}/a.json", "{S}/b.json"], None),
    ("inspect", ["inspect", MODEL, "--format", "json"], None),
    ("inspect_program", ["inspect", "{S}/p.berth", "--format", "json"], None),
    ("opt", ["opt", MODEL, "--dim", "batch=1", "--passes", "all", "--format", "json", "--no-cache"], None),
    ("target", ["target", "show", "nvidia/jetson-nano", "--format", "json"], None),
    ("target_list", ["target", "list"], None),
    ("cache", ["cache", "list", "--cache-dir", "{S}/cache"], None),
    ("key", ["key", "create", "{W}/k"], []),
    ("memory", ["memory", "solve", "{S}/buffers.csv", "--minimize", "--nodes", "1000"], None),
    ("place", ["place", "{S}/place.json", "--strategy", "auto", "--nodes", "1000", "--format", "json"], None),
    ("usage", ["run", "--frobnicate", MODEL], None),
    ("value", ["run", MODEL, "--dim"], None),
    ("help", ["run", "--help"], None),
    ("short_help", ["place", "--usage"], None),
]

# Where files are cut they must be the run's own.
CUT_COMMANDS = [
    ("run_model", ["run", "{W}/m.onnx", "--dim", "batch=1", "--cache-dir", "{S}/cache", "--quiet", "--output",
                   "{OUT}={W}/y.npy"], ["y.npy"]),
    ("run_program", ["run", "{W}/p.berth", "--quiet", "--output", "{OUT}={W}/y.npy"], ["y.npy"]),
    ("run_signed", ["run", "{W}/p.berth", "--require-signature", "{S}/k.pub", "--quiet"], []),
    ("build", ["build", "{W}/m.onnx", "--dim", "batch=1", "--no-cache", "-o", "{W}/q.berth", "--quiet"], []),
    ("inspect", ["inspect", "{W}/m.onnx", "--format", "json"], None),
]
UNTOUCHED = {"cut": ("run_signed",)}  # commands without any such call
HELPED = ["run_program"]  # what asks a helper process; each does so in the same way
HELPER_CALLS = 4000  # of malloc in a helper process, at most

BUFFERS = "id,lower,upper,size\n" + "".join(f"b{i},{i % 7},{i % 7 + 3 + i % 3},{64 * (1 + i % 5)}\n" for i in range(40))
PLACE = ROOT / "tests/fuzz/corpus/placement_problem/chain.json"


class Case:
    def __init__(self, options, shared, name, arguments, results):
        self.options, self.shared, self.name, self.arguments, self.results = options, shared, name, arguments, results

    def run(self, at):
        """Exit status, standard output, message, contents of result files, number of calls."""
        with tempfile.TemporaryDirectory(prefix="berth-fault-") as folder:
            arguments = [a.replace("{W}", folder).replace("{S}", self.shared).replace("{OUT}", self.options.output_name)
                         for a in self.arguments]
            environment = {"PATH": os.environ["PATH"], "HOME": folder, "LD_PRELOAD": self.options.library,
                           "FAIL_KIND": self.options.kind, "FAIL_AT": str(at), "FAIL_LOG": folder + "/.calls",
                           "FAIL_FOLDER": folder, "TMPDIR": folder}
            if self.options.kind == "cut":
                shutil.copy(ROOT / MODEL, folder + "/m.onnx")
                shutil.copy(self.shared + "/p.berth", folder + "/p.berth")
            try:
                done = subprocess.run([self.options.berth, *arguments], env=environment, cwd=ROOT, capture_output=True,
                                      stdin=subprocess.DEVNULL, timeout=TIME_LIMIT_S)
                status, out, err = done.returncode, done.stdout, done.stderr
            except subprocess.TimeoutExpired:
                return "hang", b"", b"", {}, 0, []
            files = {name: pathlib.Path(folder, name).read_bytes() for name in self.results or []
                     if pathlib.Path(folder, name).exists()}
            try:
                calls = int(pathlib.Path(folder, ".calls").read_text())
            except (OSError, ValueError):
                calls = 0
            left = [p.name for p in pathlib.Path(folder).iterdir() if p.name.startswith("berth-")]
            out = re.sub(rb'[0-9.e-]+ s$|"seconds": [0-9.e-]+', b"TIME", out, flags=re.M)
            return status, out if self.results is None else b"", err, files, calls, left

    def measure(self):
        self.expected = self.run(0)
        return HELPER_CALLS if self.options.kind == "helper" else self.expected[4]

    def check(self, at):
        """None, or what is wrong with the run whose call `at` fails."""
        status, out, err, files, _, left = self.run(at)
        say = f"{self.options.kind} {self.name} {at}: "
        if status == "hang":
            return say + "does not end"
        if status < 0:
            return say + f"signal {-status}; " + err.decode(errors="replace")[-300:]
        if left:
            return say + f"left {left}"
        if status == self.expected[0]:
            if out != self.expected[1]:
                return say + f"status {status}, but another result ({len(out)} bytes instead of {len(self.expected[1])})"
            if files != self.expected[3]:
                return say + f"status {status}, but other files"
            return None
        if status not in (1, 2):
            return say + f"status {status}; " + err.decode(errors="replace")[-300:]
        if not err.strip() and self.options.kind != "files":  # its message may be what could not be written
            return say + f"status {status} without a message"
        return None


def prepare(options, shared):
    pathlib.Path(shared, "buffers.csv").write_text(BUFFERS)
    shutil.copy(PLACE, pathlib.Path(shared, "place.json"))
    berth = [options.berth]
    for name, strategy in (("a", "default"), ("b", "auto")):
        plan = [*berth, "plan", MODEL, "--dim", "batch=1", "--target", "cpu", "--strategy", strategy, "--costs", "none",
                "--format", "json", "--quiet"]
        with open(f"{shared}/{name}.json", "wb") as file:
            subprocess.run(plan, cwd=ROOT, stdout=file, check=True)
    subprocess.run(berth + ["key", "create", shared + "/k"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(berth + ["build", MODEL, "--dim", "batch=1", "--cache-dir", shared + "/cache", "--sign", shared + "/k",
                            "-o", shared + "/p.berth", "--quiet"], check=True, stdout=subprocess.DEVNULL, cwd=ROOT)
    shown = subprocess.run(berth + ["inspect", MODEL, "--format", "json"], check=True, capture_output=True, cwd=ROOT).stdout
    options.output_name = re.search(rb'"outputs": *\[\s*\{[^}]*?"name": *"([^"]*)"', shown, re.S).group(1).decode()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("berth")
    parser.add_argument("library")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--kind", default="memory", choices=["memory", "files", "helper", "cut"])
    parser.add_argument("--only")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    options.berth, options.library = os.path.abspath(options.berth), os.path.abspath(options.library)
    wrong = total = 0
    with tempfile.TemporaryDirectory(prefix="berth-faults-") as shared, \
            concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        prepare(options, shared)
        commands = CUT_COMMANDS if options.kind == "cut" else COMMANDS
        for index, (name, arguments, results) in enumerate(commands):
            if options.only and options.only != name or options.kind == "helper" and name not in HELPED:
                continue
            case = Case(options, shared, name, arguments, results)
            count = case.measure()
            if count == 0 and name not in UNTOUCHED.get(options.kind, ()):
                print(f"{options.kind} {name}: nothing was counted; is the library preloaded?")
                wrong += 1
            places = range(1 + index * 7 % options.every, count + 1, options.every)
            found = [text for text in pool.map(case.check, places) if text]
            print(f"{options.kind} {name}: {len(places)} of {count} calls failed once, {len(found)} wrong", flush=True)
            for text in found[:20]:
                print("  " + text)
            wrong += len(found)
            total += len(places)
    print(f"{total} runs, {wrong} wrong")
    return wrong > 0


sys.exit(main())
