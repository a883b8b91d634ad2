"""Models, of ../shared/models or of your own, and placements of them: what predict.py and auto_pays.py run.

A model is (name, path, options): the options make its shapes known. `models(names)` lists those that are there: a name is a file, or a folder
with a `model.onnx`, and in the same word the options of `berth` that make its shapes known: "folder/net.onnx --dim N=1".
"""
import glob
import json
import os
import random
import shlex
import subprocess

SHAPES = {
    "nemo80": ["--dim", "N=16000"], "wespeaker": ["--dim", "N=16000"],
    "ppocr4_det": ["--shape", "x=1x3x320x320"], "ppocr4_rec": ["--shape", "x=1x3x48x320"],
    "ppocr_cls": ["--shape", "x=1x3x48x192"],
    "silero_vad": ["--shape", "input=1x576", "--shape", "state=2x1x128"],
    "silero_vad_op18_ifless": ["--shape", "input=1x576", "--shape", "state=2x1x128"],
}
FOLDERS = ["light_*", "mlperf_tiny/*", "mnist", "mnist_quantized", "rfb320", "rfb320_nopost", "super_resolution", "magika",
           "ppocr*", "silero_vad*", "tfl_helloworld"]


def name_of(path, known):
    """Of its folder where the file is only called "model", else its own; another one where that is taken."""
    stem, folder = os.path.splitext(os.path.basename(path))[0], os.path.basename(os.path.dirname(os.path.abspath(path)))
    name = folder if stem == "model" else stem
    others = sum(name in (k, k.rsplit("~", 1)[0]) for k in known)
    return f"{name}~{others + 1}" if others else name


def models(names, root="../shared/models"):
    """Of files and folders that are named, or of all in `root`."""
    words = [shlex.split(n) for n in names]
    if not names:
        words = [[p] for f in FOLDERS for p in sorted(glob.glob(os.path.join(root, f, "model.onnx")))]
    out = []
    for path, *options in words:
        path = os.path.join(path, "model.onnx") if os.path.isdir(path) else path
        name = name_of(path, [model[0] for model in out])
        out.append((name, path, options or (SHAPES.get(name, []) if os.path.basename(path) == "model.onnx" else [])))
    return out


def run(command):
    """What it writes to stdout. RuntimeError: the last line of stderr."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["no message"])[-1])
    return done.stdout


def plan(berth, model, target, costs, options=()):
    """What `berth plan` says, as JSON."""
    return json.loads(run([berth, "plan", model[1], *model[2], "--target", target, "--costs", costs, "--format", "json",
                           "--tuned", "none", *options]))


def random_pins(operations, devices, seed):
    """Operations of a plan in runs of about ten beside each other, each run on a device that is drawn. The same seed draws
    the same placement."""
    draw, pins = random.Random(seed), {}
    device = draw.choice(devices)
    for operation in operations:
        if draw.random() < 0.1:
            device = draw.choice(devices)
        node = operation["node"].split("+")[0]
        if node and not any(c in node for c in "*?=") and not operation["host_operation"]:
            pins.setdefault(node, device)  # one node may have become several operations
    return [word for node, device in pins.items() for word in ("--pin", f"{node}={device}")]


def part(items, text):
    """Every N-th of the items, from the K-th on: "K/N"."""
    k, n = (int(x) for x in text.split("/"))
    return items[k - 1::n]
