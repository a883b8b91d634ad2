#!/usr/bin/python3
"""Control flow across two devices: every model of ../shared/models/control_flow with its operations pinned to two devices, on two
processors and on a processor and OpenCL.

    two_devices.py BERTH [CASE...]

Every node gets a name, and number i of them goes to the device that digit d of i (in base 2) says, for each digit d: so every two
operations of a model are on different devices in one of the splits. In each split all data sets must give the expected outputs
(`berth verify`). Profiles of their runs say what ran where: in at least one split of a model kernels must have run on both
devices, those of branches, bodies and functions alone where the model has any, and with OpenCL values must have been copied from
device to device.
Models for which that cannot be are below, with the reason; that, too, is checked.
Exit status 1 when one fails; what is not there is counted as skipped.
"""

import collections
import concurrent.futures
import glob
import json
import os
import subprocess
import sys
import tempfile

MODELS = "../shared/models/control_flow"
DEVICES = {"cpu,cpu": ("cpu:0", "cpu:1"), "cpu,opencl": ("cpu:0", "opencl:0")}
# No kernel runs on any device.
NO_KERNELS = {
    "function_in_loop": "all of it is arithmetic on one integer: the host does it",
    "sequence_io": "it hands over tensors of a sequence",
    "sequence_ops": "it puts tensors into sequences and takes them out",
    "split_to_sequence": "it cuts tensors and puts the parts into sequences",
    "sequence_in_loop": "what is cut out depends on the counter of the loop: the host does it",
    "unique": "the shape of what is unique depends on data: the host does it",
}
# One kernel in all, which each device runs in some split.
ONE_KERNEL = {"if_guard": "one branch transposes, the other takes no rows"}


def graphs(model):
    """(nodes, whether they are of a branch, a body or a function) of every graph."""
    import onnx
    found = [(model.graph.node, False)] + [(function.node, True) for function in model.functions]
    for nodes, _ in found:
        for node in nodes:
            for attribute in node.attribute:
                if attribute.type == onnx.AttributeProto.GRAPH:
                    found.append((attribute.g.node, True))
    return found


def name_nodes(source, path):
    """Writes a copy of the model in which each node has its own name. Gives the names, and those of inner graphs."""
    import onnx
    model = onnx.load(source)
    calls = {function.name for function in model.functions}  # nothing is left of them that a pin could match
    names, inner = [], set()
    for nodes, is_inner in graphs(model):
        for node in nodes:
            if node.op_type in calls:
                continue
            node.name = f"node{len(names):03}"
            names.append(node.name)
            if is_inner:
                inner.add(node.name)
    onnx.save(model, path)
    return names, inner


class Ran:
    """What the runs of one split did: kernels of each device, of inner graphs where there are any, and copies."""

    def __init__(self):
        self.kernels, self.copies = collections.Counter(), 0

    def add(self, profile, inner):
        for step in profile:
            if step["device"] == "host":
                continue
            if step["copy"]:
                self.copies += step["count"]
            elif not inner or any(name in step["step"] for name in inner):
                self.kernels[step["device"]] += step["count"]


def call(berth, words):
    done = subprocess.run([berth] + words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError((done.stderr + done.stdout).strip()[-300:])
    return done.stdout


def sets_of(case):
    return sorted(glob.glob(f"{MODELS}/{case}/test_data_set_*"))


def profile(berth, case, path, options, inner):
    ran = Ran()
    if case == "sequence_io":  # `berth run` takes no sequences
        return ran
    for folder in sets_of(case):
        inputs = [word for file in sorted(glob.glob(f"{folder}/input_*.pb")) for word in ("--input", file)]
        ran.add(json.loads(call(berth, ["run", path, "--profile", "--format", "json"] + options + inputs))["profile"], inner)
    return ran


def splits(names):
    for digit in range(max(1, (len(names) - 1).bit_length())):
        yield [index >> digit & 1 for index in range(len(names))]


def problem_of(case, target, results):
    """What is wrong with what ran in splits of a model; None where nothing is."""
    if case in ONE_KERNEL:
        used = {device for ran in results for device in ran.kernels}
        return None if used == set(DEVICES[target]) else f"kernels ran on {sorted(used)} only"
    both = [ran for ran in results if len(ran.kernels) == 2]
    if case in NO_KERNELS:
        return "kernels ran on devices: it belongs to the others" if any(ran.kernels for ran in results) else None
    if not both:
        return "no split has kernels on both devices"
    if target == "cpu,opencl" and not any(ran.copies for ran in both):
        return "no value was copied from device to device"
    return None


def check(berth, case, target):
    devices, results, problem = DEVICES[target], [], "no split"
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/model.onnx"
        names, inner = name_nodes(f"{MODELS}/{case}/model.onnx", path)
        for split in splits(names):
            pins = [f"*{name}={devices[device]}" for name, device in zip(names, split)]
            options = ["--target", target, "--executor", "vm"] + [word for pin in pins for word in ("--pin", pin)]
            try:
                call(berth, ["verify", path, "--quiet"] + options + [word for data in sets_of(case) for word in ("--data", data)])
                if problem or case in NO_KERNELS:
                    results.append(profile(berth, case, path, options, inner))
                    problem = problem_of(case, target, results)
            except RuntimeError as error:
                return f"FAILS {case} on {target}: {error}"
    return f"FAILS {case} on {target}: {problem}" if problem else None


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
    berth = os.path.abspath(sys.argv[1])
    try:
        import onnx  # noqa: F401
    except ImportError:
        print("BERTH-SKIPPED 1: no package onnx is here")
        return 0
    if not os.path.isdir(MODELS):
        print("BERTH-SKIPPED 1: ../shared/models is not there")
        return 0
    jobs = [(case, target) for case in sys.argv[2:] or sorted(os.listdir(MODELS)) for target in DEVICES]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        failures = [text for text in pool.map(lambda job: check(berth, *job), jobs) if text]
    print("\n".join(failures + [f"BERTH-TABLE two devices: {len(jobs) - len(failures)} of {len(jobs)} models pass"]))
    return 1 if failures else 0


sys.exit(main())
