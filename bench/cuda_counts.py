#!/usr/bin/python3
"""What kernels for CUDA devices do, counted from their code on a machine without a GPU, beside the least possible.

Usage: cuda_counts.py [--build build/release] [--nvcc nvcc] [--quick]

Products are compiled by nvcc for sm_80 and sm_90 (registers, shared memory, spills: what ptxas says), which gives the blocks that a
multiprocessor holds at once. They run in the emulation of the tests (tests/cuda/emulation), which counts what instructions of warps do:

  products   mma instructions, beside those that tiles of whole instructions need
  copied     bytes to shared memory by cp.async, beside what every block must read: its rows and columns, once
  ldmatrix   cycles for 8 rows of 16 bytes: 1 where all lie in different banks

f32 has no mma: the second alone.

--quick: the smallest products, without nvcc. Exit status 1 where bank conflicts, spills, or more than the least are found.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

# Of a multiprocessor: registers, bytes of shared memory, warps, blocks (CUDA C++ Programming Guide, "Technical Specifications per
# Compute Capability"); every block takes 1 KiB of shared memory beside its own.
MACHINES = {"sm_80": (65536, 164 << 10, 64, 32), "sm_90": (65536, 228 << 10, 64, 32)}
UNITS = 132  # of the device that tiles are chosen for

# name, rows, columns, terms, type; sizes that the emulation computes in seconds
PRODUCTS = [("f16 64x64x64", 64, 64, 64, "f16"), ("f16 256x512x256", 256, 512, 256, "f16"), ("f16 200x328x136", 200, 328, 136, "f16"),
            ("bf16 256x512x256", 256, 512, 256, "bf16"), ("f16 4096x4096x4096", 4096, 4096, 4096, "f16"),
            ("f32 64x64x64", 64, 64, 64, "f32"), ("f32 256x512x256", 256, 512, 256, "f32"), ("f32 4096x4096x4096", 4096, 4096, 4096, "f32")]
QUICK = ("f16 64x64x64", "f32 64x64x64")
EMULATED = 1 << 27  # multiplications, of a product that is run
SIZES = {"f16": 2, "bf16": 2, "f32": 4}


def module(m, n, k, dtype):
    return (f'module "product"\n\ngraph @main(%x: {dtype}[{m},{k}], %w: {dtype}[{k},{n}]) {{\n'
            f"  %y = matmul(%x, %w): {dtype}[{m},{n}]\n  return %y\n}}\n")


def run(command, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    if done.returncode:
        sys.exit(f"cuda_counts.py: {' '.join(command)}: {done.stderr.strip()[-500:]}")
    return done.stdout + done.stderr


def occupancy(machine, registers, shared, threads):
    all_registers, all_shared, all_warps, most = MACHINES[machine]
    warps = threads // 32
    by_registers = all_registers // (-(-registers * 32 // 256) * 256 * warps)
    blocks = min(by_registers, all_shared // (shared + 1024), all_warps // warps, most)
    return blocks, blocks * warps / all_warps


def compiled(nvcc, machine, text, threads, work):
    said = run([nvcc, f"-arch={machine}", "-std=c++17", "-w", "-cubin", "-Xptxas", "-v", "-o", os.path.join(work, "cubin"), text])
    registers = int(re.search(r"Used (\d+) registers", said)[1])
    declared = re.search(r"(\d+) bytes smem", said)
    shared = int(declared[1]) if declared else 0
    with open(text) as file:  # more than a kernel may declare comes with the launch
        shared += sum(int(number) for number in re.findall(r"^ *// berth_declares_\w+/shared: (\d+)", file.read(), re.M))
    spilled = int(re.search(r"(\d+) bytes spill stores", said)[1])
    blocks, share = occupancy(machine, registers, shared, threads)
    print(f"    {machine}: {registers} registers, {shared} bytes of shared memory, {spilled} bytes spilled; {blocks} blocks of "
          f"{threads} threads at once, {100 * share:.0f} % of the warps")
    return spilled == 0


def count(product, options, work):
    name, m, n, k, dtype = product
    target = f"cuda -arch=sm_90 -compute_units={UNITS}"
    berth = os.path.join(options.build, "berth")
    path, counts = os.path.join(work, "module.txt"), os.path.join(work, "counts")
    with open(path, "w") as file:
        file.write(module(m, n, k, dtype))
    why = run([berth, "plan", path, "--target", target, "--why"])
    form = re.search(r"form=(matrix|local)_tile.*", why)[0]
    tile = {d: int(v) for d, v in re.findall(r"(rows|columns|lanes|depth|group_rows|group_columns|stages)=(\d+)", form)}
    print(f"{name}: {form}")
    program, folder = os.path.join(work, "p.berth"), os.path.join(work, "p")
    run([berth, "build", path, "--target", target, "-o", program])
    run([berth, "inspect", program, f"--extract={folder}"])
    fine = True
    units = form.startswith("form=matrix_tile")
    threads = (32 if units else 1) * tile["group_rows"] * tile["group_columns"]
    if not options.quick:
        for machine in MACHINES:
            fine &= compiled(options.nvcc, machine, os.path.join(folder, "image", "0.cu"), threads, work)
    if m * n * k > EMULATED:
        return fine
    environment = dict(os.environ, LD_LIBRARY_PATH=os.path.join(os.path.abspath(options.build), "cuda_emulation"),
                       BERTH_EMULATION_COUNTS=counts, BERTH_CACHE_DIR=os.path.join(work, "cache"))
    run([berth, "run", program], env=environment)
    with open(counts) as file:
        got = json.loads(file.readline())
    size = SIZES[dtype]
    rows, columns = tile["rows"] * tile["group_rows"], tile["columns" if units else "lanes"] * tile["group_columns"]
    if units:
        rows, columns = 16 * rows, 8 * columns
    blocks = -(-m // rows) * -(-n // columns)
    steps = -(-k // tile["depth"])
    terms = 32 // size
    least = blocks * (rows // 16) * (columns // 8) * steps * tile["depth"] // terms
    bytes_least = blocks * (rows + columns) * k * size
    operations = f"{2 * m * n * k / got['copied_bytes']:.0f} operations per copied byte"
    if not units:
        print(f"    copied {got['copied_bytes']} bytes (least {bytes_least}); {operations}")
        return fine and got["copied_bytes"] <= bytes_least
    cycles = 8 * got["cycles"] / got["rows_loaded"]
    print(f"    products {got['products']} (least {least}), copied {got['copied_bytes']} bytes (least {bytes_least}), "
          f"ldmatrix {cycles:.2f} cycles; {operations}")
    return fine and got["products"] == least and got["copied_bytes"] <= bytes_least and cycles == 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--nvcc", default="/usr/local/cuda/bin/nvcc")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    fine = True
    for product in [p for p in PRODUCTS if p[0] in QUICK or not options.quick]:
        with tempfile.TemporaryDirectory() as work:
            fine &= count(product, options, work)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
