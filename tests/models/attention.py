#!/usr/bin/env python3
"""Attention as one kernel on devices with work-groups, beside what a processor computes in several kernels.

Usage: attention.py BERTH [EMULATION_FOLDER]     (of CUDA, tests/cuda/emulation). Needs Python's own library alone.
"""

import math
import os
import random
import struct
import subprocess
import sys
import tempfile

TARGETS = ["opencl -subgroup_size=32 -host=cpu", "vulkan", "cuda -arch=sm_80"]
# Batch, heads, queries, keys, terms, columns; element type; masked, keys transposed, relu after it; batch of keys
CASES = [
    (2, 2, 1, 300, 64, 48, "f32", True, True, False, 2),
    (1, 3, 37, 130, 16, 40, "f32", True, True, True, 1),
    (1, 2, 9, 20, 8, 33, "f64", True, True, False, 1),
    (1, 2, 33, 100, 24, 24, "f16", True, True, False, 1),
    (1, 2, 1, 500, 64, 64, "f16", False, True, False, 1),
]
CODES = {"f16": ("e", "<f2", 2e-2), "f32": ("f", "<f4", 2e-5), "f64": ("d", "<f8", 1e-12)}


def module(case):
    batch, heads, rows, keys, depth, columns, t, masked, across, relu, key_batch = case
    kt = f"{t}[{key_batch},{heads},{depth},{keys}]"
    k = f"{t}[{key_batch},{heads},{keys},{depth}]" if across else kt
    scores, result = f"{t}[{batch},{heads},{rows},{keys}]", f"{t}[{batch},{heads},{rows},{columns}]"
    lines = [f'module "attention" graph @main(%q: {t}[{batch},{heads},{rows},{depth}], %k: {k},'
             f' %v: {t}[{key_batch},{heads},{keys},{columns}], %m: {t}[{batch},1,{rows},{keys}]) {{']
    if across:
        lines.append(f"%t = transpose(%k) {{perm = [0, 1, 3, 2]}}: {kt}")
    lines.append(f"%s = matmul(%q, {'%t' if across else '%k'}): {scores} %c = tanh(%s): {scores}")
    lines.append(f"%a = add(%m, %c): {scores}" if masked else f"%a = sub(%c, %m): {scores}")
    lines.append(f"%p = softmax(%a): {scores} %y = matmul(%p, %v): {result}")
    lines.append(f"%z = relu(%y): {result} return %z }}" if relu else "return %y }")
    return "\n".join(lines) + "\n"


def write_npy(path, descr, shape, values, code):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(struct.pack(f"<{len(values)}{code}", *values))


def read_npy(path, code):
    with open(path, "rb") as file:
        data = file.read()
    start = 10 + struct.unpack("<H", data[8:10])[0]
    return [x[0] for x in struct.iter_unpack("<" + code, data[start:])]


def write_inputs(work, case, draw):
    batch, heads, rows, keys, depth, columns, t, masked, across, _, key_batch = case
    code, descr, _ = CODES[t]
    shapes = {"q": (batch, heads, rows, depth),
              "k": (key_batch, heads, keys, depth) if across else (key_batch, heads, depth, keys),
              "v": (key_batch, heads, keys, columns), "m": (batch, 1, rows, keys)}
    for name, shape in shapes.items():
        values = [draw.gauss(0, 1) for _ in range(math.prod(shape))]
        if name == "m" and masked:  # the first half of all keys in some rows, none left in the third row
            values = [-math.inf if draw.random() < 0.3 or (i // keys % 4 == 0 and i % keys < keys // 2)
                      or (i // keys == 2) else v for i, v in enumerate(values)]
            values[keys - 1] = 0.0
        write_npy(f"{work}/{name}.npy", descr, shape, values, code)


def run(berth, work, target, name, environment):
    done = subprocess.run([berth, "run", f"{work}/m.txt", "--target", target, "--quiet", "-o", f"{name}={work}/o.npy"]
                          + [x for n in "qkvm" for x in ("--input", f"{n}={work}/{n}.npy")],
                          capture_output=True, text=True, env=environment)
    return done.stderr.strip() if done.returncode else None


def differ(expected, got, limit):
    for e, g in zip(expected, got):
        if math.isnan(e) != math.isnan(g) or (not math.isnan(e) and abs(e - g) > limit * (1 + abs(e))):
            return f"{g} for {e}"
    return None if len(expected) == len(got) else "another number of results"


def check_plan(berth, work, target, environment):
    plan = subprocess.run([berth, "plan", f"{work}/m.txt", "--target", target, "--why"], capture_output=True,
                          text=True, env=environment).stdout.splitlines()
    kernels = [i for i, line in enumerate(plan) if line.startswith("kernel ")]
    if len(kernels) != 1 or "_attention" not in plan[kernels[0]]:
        return "not one kernel: " + "; ".join(plan[i] for i in kernels)
    return None if "form=group_rows" in plan[kernels[0] + 1] else plan[kernels[0] + 1].strip()


def main():
    berth, failed, skipped = sys.argv[1], 0, 0
    emulated = dict(os.environ, LD_LIBRARY_PATH=sys.argv[2]) if len(sys.argv) > 2 else None
    with tempfile.TemporaryDirectory() as work:
        for index, case in enumerate(CASES):
            code, _, limit = CODES[case[6]]
            name = "z" if case[9] else "y"
            write_inputs(work, case, random.Random(index))
            with open(f"{work}/m.txt", "w") as file:
                file.write(module(case))
            problem = run(berth, work, "cpu", name, None)
            if problem:
                print(f"FAILED {case} on cpu: {problem}")
                failed = 1
                continue
            expected = read_npy(f"{work}/o.npy", code)
            for target in TARGETS:
                environment = emulated if target.startswith("cuda") else None
                if target.startswith("cuda") and not emulated:
                    skipped += 1
                    continue
                problem = (check_plan(berth, work, target, environment) or run(berth, work, target, name, environment)
                           or differ(expected, read_npy(f"{work}/o.npy", code), limit))
                if problem:
                    print(f"FAILED {case} on {target}: {problem}")
                    failed = 1
    if skipped:
        print(f"BERTH-SKIPPED {skipped}: there is no emulation of CUDA")
    return failed


if __name__ == "__main__":
    sys.exit(main())
