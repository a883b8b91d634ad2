#!/usr/bin/env python3
"""Convolutions on matrix units of GPUs keep channels in blocks from one to the next, and compute what a processor computes.

Usage: conv_units.py BERTH EMULATION_FOLDER     (of CUDA, tests/cuda/emulation). Needs Python's own library alone.
"""

import os
import random
import re
import subprocess
import sys
import tempfile

from attention import differ, read_npy, write_npy

TARGET = "cuda -arch=sm_80"
HOPPER = "cuda -arch=sm_90a -compute_units=1"
CODES = {"f16": ("e", "<f2", 2e-2), "i32": ("i", "<i4", 0)}


class Model:
    """A graph as text: values are written as they are named, with their types inferred."""

    def __init__(self, kind, shape, seed):
        self.kind, self.shape, self.draw, self.lines = kind, shape, random.Random(seed), []

    def constant(self, name, dtype, dims):
        count = 1
        for d in dims:
            count *= d
        of = (lambda: self.draw.randint(-5, 5)) if dtype == "i8" else (lambda: round(self.draw.gauss(0, 1) / (count / dims[0]) ** 0.5, 3))
        self.lines.append(f"%{name} = constant() {{value = {dtype}[{','.join(map(str, dims))}] ({', '.join(str(of()) for _ in range(count))})}}")

    def conv(self, name, x, outputs, inputs, kernel, more="", zeros=()):
        self.constant(f"{name}_w", self.kind, (outputs, inputs, kernel, kernel))
        bias = "_"
        if self.kind == "f16":
            self.constant(f"{name}_b", self.kind, (outputs,))
            bias = f"%{name}_b"
        p = kernel // 2
        op = "conv" if self.kind == "f16" else "conv_integer"
        operands = f"%{x}, %{name}_w, {bias}" if self.kind == "f16" else ", ".join([f"%{x}, %{name}_w"] + ["_" if z == "_" else f"%{z}" for z in zeros])
        self.lines.append(f"%{name} = {op}({operands}) {{pads = [{p}, {p}, {p}, {p}]{more}}}")

    def op(self, name, kind, *operands, attributes=""):
        self.lines.append(f"%{name} = {kind}({', '.join('%' + o for o in operands)}) {attributes}")

    def text(self):
        kind = "u8" if self.kind == "i8" else self.kind
        return f'module "m"\ngraph @main(%x: {kind}[{",".join(map(str, self.shape))}]) {{\n' + "\n".join(self.lines) + "\nreturn %y\n}\n"


def network():
    """Plain input, 1 x 1 and 3 x 3, a residual, a pool, channels that stay apart, a concatenation; results are plain."""
    m = Model("f16", (2, 3, 14, 11), 1)
    m.conv("c0", "x", 16, 3, 3)
    m.op("r0", "relu", "c0")
    m.op("p0", "max_pool", "r0", attributes="{kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]}")
    m.conv("c1", "p0", 24, 16, 1)
    m.op("r1", "relu", "c1")
    m.conv("c2", "r1", 16, 24, 3)
    m.op("a2", "add", "c2", "p0")
    m.conv("c3", "a2", 16, 1, 3, ", group = 16")
    m.op("t3", "concat", "c3", "a2", attributes="{axis = 1}")
    m.conv("c4", "t3", 40, 32, 3, ", strides = [2, 2]")
    m.op("g4", "global_average_pool", "c4")
    m.op("y", "reshape", "g4", "shape")
    m.lines.insert(0, "%shape = constant() {value = i64[2] (2, 40)}")
    # All but x, and what is reshaped, is in blocks.
    return m, {"c0": True, "p0": True, "r1": True, "a2": True, "c3": True, "t3": True, "c4": True, "g4": True, "y": False}


def odd_channels():
    """12 channels fill no block: the second convolution reads them plain, and makes blocks for the third."""
    m = Model("f16", (1, 8, 9, 9), 2)
    m.conv("c0", "x", 12, 8, 3)
    m.conv("c1", "c0", 24, 12, 3)
    m.conv("y", "c1", 16, 24, 3)
    return m, {"c0": False, "c1": True, "y": False}


def integers():
    m = Model("i8", (1, 16, 10, 9), 3)
    m.conv("c0", "x", 32, 16, 3)
    m.op("a0", "add", "c0", "c0")
    m.op("y", "max_pool", "a0", attributes="{kernel_shape = [2, 2]}")
    return m, {"c0": True, "a0": True}


def zero_points():
    """Of inputs (constant, and one that the run finds), of weights in one number and one per output; padding is the zero point. A product, too."""
    m = Model("i8", (1, 16, 11, 9), 4)
    m.lines += ["%z = constant() {value = u8[] (121)}", "%s = constant() {value = f32[] (2500.0)}",
                f"%wz = constant() {{value = i8[24] ({', '.join(str(i % 7 - 3) for i in range(24))})}}", "%one = constant() {value = i8[] (1)}"]
    m.conv("c0", "x", 48, 16, 3, zeros=("z", "_"))
    m.lines += ["%f0 = cast(%c0) {to = f32}", "%q0 = quantize_linear(%f0, %s, %z)"]
    m.conv("c1", "q0", 24, 48, 3, ", strides = [2, 2]", zeros=("z", "wz"))
    m.lines += ["%f1 = cast(%c1) {to = f32}", "%q1, %s1, %z1 = dynamic_quantize_linear(%f1)"]
    m.constant("c2_w", "i8", (32, 24, 1, 1))
    m.lines += ["%c2 = conv_integer(%q1, %c2_w, %z1, %one)", "%f2 = cast(%c2) {to = f32}", "%q2 = quantize_linear(%f2, %s, %z)",
                "%shape = constant() {value = i64[2] (32, 30)}", "%t2 = reshape(%q2, %shape)"]
    m.constant("w", "i8", (30, 20))
    m.lines.append("%y = matmul_integer(%t2, %w, %z, %one)")
    return m, {"q0": True, "c1": False}


def forms(berth, path, target, emulated):
    """Kernel by kernel: its name, and the forms that its schedule chose."""
    done = subprocess.run([berth, "plan", path, "--target", target, "--why"], capture_output=True, text=True, env=emulated)
    kernels = re.split(r"^kernel +(\w+)", done.stdout, flags=re.M)[1:]
    return [(name, re.findall(r"form=(\w+)", text)) for name, text in zip(kernels[::2], kernels[1::2])]


def layouts(berth, path, target, emulated):
    done = subprocess.run([berth, "opt", path, "--target", target, "--passes", "all", "--print-after", "layout"], capture_output=True,
                          text=True, env=emulated)
    if done.returncode:
        sys.exit(f"FAILED berth opt: {done.stderr.strip()[-500:]}")
    text = re.sub(r"\n {4,}", " ", done.stdout)
    return {name: "{aBcd" in kind for name, kind in re.findall(r"^ *%(\w+) = (?!constant).*?: (\w+\[[^ ]*)", text, re.M)}


def main():
    berth, emulated, failed = sys.argv[1], dict(os.environ, LD_LIBRARY_PATH=sys.argv[2]), 0
    with tempfile.TemporaryDirectory() as work:
        for make, targets in ((network, [TARGET, HOPPER]), (odd_channels, [TARGET]), (integers, [TARGET]), (zero_points, [TARGET, HOPPER])):
            (model, expected), path = make(), f"{work}/m.txt"
            with open(path, "w") as file:
                file.write(model.text())
            count = model.shape[0] * model.shape[1] * model.shape[2] * model.shape[3]
            if model.kind == "f16":
                write_npy(f"{work}/x.npy", "<f2", model.shape, [model.draw.gauss(0, 1) for _ in range(count)], "e")
            else:
                write_npy(f"{work}/x.npy", "|u1", model.shape, [model.draw.randint(0, 9) for _ in range(count)], "B")
            found = layouts(berth, path, TARGET, emulated)
            for name, blocked in expected.items():
                if found.get(name) is not blocked:
                    print(f"FAILED {make.__name__}: %{name} is {'not ' if blocked else ''}in blocks: {found}")
                    failed = 1
            if any(layouts(berth, path, "cuda -arch=sm_75", emulated).values()):
                print(f"FAILED {make.__name__}: blocks on a device without matrix units")
                failed = 1
            for name, chosen in forms(berth, path, TARGET, emulated):
                if make is zero_points and "integer" in name and not any("matrix_tile" in form for form in chosen):
                    print(f"FAILED {make.__name__}: {name} is not on matrix units: {chosen}")
                    failed = 1
            if make is zero_points and not any("pad_conv_integer" in name for name, _ in forms(berth, path, TARGET, emulated)):
                print(f"FAILED {make.__name__}: padding is a map of its own")
                failed = 1
            results = []
            code, _, limit = CODES["f16" if model.kind == "f16" else "i32"]
            for target, environment in [("cpu", None)] + [(target, emulated) for target in targets]:
                done = subprocess.run([berth, "run", path, "--target", target, "--quiet", "--input", f"x={work}/x.npy", "-o", f"y={work}/y.npy"],
                                      capture_output=True, text=True, env=environment)
                if done.returncode:
                    sys.exit(f"FAILED {make.__name__} on {target}: {done.stderr.strip()[-800:]}")
                results.append(read_npy(f"{work}/y.npy", code))
            for target, result in zip(targets, results[1:]):
                problem = differ(results[0], result, limit)
                if problem:
                    print(f"FAILED {make.__name__} for {target}: {problem}")
                    failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
