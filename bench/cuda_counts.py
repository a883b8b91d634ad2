#!/usr/bin/python3
"""What kernels for CUDA devices do, counted from their code on a machine without a GPU, beside the least possible.

Usage: cuda_counts.py [--build build/release] [--nvcc nvcc] [--quick]

Products are compiled by nvcc for sm_80 and sm_90, those of warpgroups (wgmma) for sm_90a (registers, shared memory, spills: what ptxas says), which gives the blocks that a
multiprocessor holds at once. They run in the emulation of the tests (tests/cuda/emulation), which counts what instructions of warps do:

  products   mma instructions, beside those that tiles of whole instructions need; a wgmma counts as those that do the same
  copied     bytes to shared memory by cp.async, beside what every block must read: its rows and columns, once; of these, those
             that come as a whole (cp.async.bulk): on sm_90a all of the constant weights of whole tiles
  ldmatrix   cycles for 8 rows of 16 bytes: 1 where all lie in different banks; of wgmma, for what it reads where it lies

f32 has no mma: the second alone. Convolutions are counted without what makes the blocks of channels that they read.

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
MACHINES = {"sm_80": (65536, 164 << 10, 64, 32), "sm_90": (65536, 228 << 10, 64, 32),
            "sm_90a": (65536, 228 << 10, 64, 32)}
ARCHITECTURES = {"sm_90": ("sm_80", "sm_90"), "sm_90a": ("sm_90a",)}  # of a target, what its kernels are compiled for
UNITS = 132  # of the device that tiles are chosen for

# name, rows, columns, terms, type; sizes that the emulation computes in seconds
PRODUCTS = [("f16 64x64x64", 64, 64, 64, "f16"), ("f16 256x512x256", 256, 512, 256, "f16"), ("f16 200x328x136", 200, 328, 136, "f16"),
            ("bf16 256x512x256", 256, 512, 256, "bf16"), ("f16 4096x4096x4096", 4096, 4096, 4096, "f16"),
            ("f32 64x64x64", 64, 64, 64, "f32"), ("f32 256x512x256", 256, 512, 256, "f32"), ("f32 4096x4096x4096", 4096, 4096, 4096, "f32")]
# name, map, channels read and made, window, step; f16, padded by half a window. As products: rows are channels, columns places of a plain result.
CONVOLUTIONS = [("f16 conv 16x16, 16 to 16 by 3x3", 16, 16, 16, 3, 1), ("f16 conv 32x32, 64 to 64 by 3x3", 32, 64, 64, 3, 1),
                ("f16 conv 32x32, 64 to 128 by 3x3 in steps of 2", 32, 64, 128, 3, 2), ("f16 conv 32x32, 64 to 256 by 1x1", 32, 64, 256, 1, 1)]
QUICK = ("f16 conv 16x16, 16 to 16 by 3x3", "f16 conv 32x32, 64 to 256 by 1x1", "f16 64x64x64", "f32 64x64x64")
# The same with constant weights.
WEIGHTED = [("f16 64x64x64, weights", 64, 64, 64, "f16"), ("f16 256x512x256, weights", 256, 512, 256, "f16")]
QUICK += (WEIGHTED[0][0],)
EMULATED = 1 << 27  # multiplications, of a product that is run
SIZES = {"f16": 2, "bf16": 2, "f32": 4}


def module(m, n, k, dtype, weights=False):
    if weights:
        values = ", ".join(str((j * 7 % 13 - 6) / 16) for j in range(n * k))
        return (f'module "product"\n\ngraph @main(%x: {dtype}[{m},{k}]) {{\n  %w = constant() {{value = {dtype}[{k},{n}] ({values})}}\n'
                f"  %y = matmul(%x, %w): {dtype}[{m},{n}]\n  return %y\n}}\n")
    return (f'module "product"\n\ngraph @main(%x: {dtype}[{m},{k}], %w: {dtype}[{k},{n}]) {{\n'
            f"  %y = matmul(%x, %w): {dtype}[{m},{n}]\n  return %y\n}}\n")


def convolution(size, inputs, outputs, window, step):
    """The text of two of them, the first of which makes the blocks that the second reads."""
    def weights(name, o, i, k):
        values = ", ".join(str((j * 7 % 13 - 6) / 16) for j in range(o * i * k * k))
        return f"  %{name} = constant() {{value = f16[{o},{i},{k},{k}] ({values})}}\n"
    pad = window // 2
    return (f'module "convolution"\n\ngraph @main(%x: f16[1,8,{size},{size}]) {{\n' + weights("v", inputs, 8, 1) +
            weights("w", outputs, inputs, window) + "  %b = conv(%x, %v, _)\n"
            f"  %y = conv(%b, %w, _) {{pads = [{pad}, {pad}, {pad}, {pad}], strides = [{step}, {step}]}}\n  return %y\n}}\n")


def inside(size, window, step):
    """Of the places of a window along one axis, over all of the map, those that are not padding."""
    places = [o * step + k - window // 2 for o in range(-(-size // step)) for k in range(window)]
    return sum(0 <= at < size for at in places) / len(places)


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
    with open(text) as file:  # more than a kernel may declare comes with the launch
        launched = re.findall(r"^ *// berth_declares_\w+/shared: (\d+)", file.read(), re.M)
    # Of several kernels, the most.
    registers = max(map(int, re.findall(r"Used (\d+) registers", said)))
    shared = max(map(int, re.findall(r"(\d+) bytes smem", said) + launched + ["0"]))
    spilled = max(map(int, re.findall(r"(\d+) bytes spill stores", said)))
    blocks, share = occupancy(machine, registers, shared, threads)
    print(f"    {machine}: {registers} registers, {shared} bytes of shared memory, {spilled} bytes spilled; {blocks} blocks of "
          f"{threads} threads at once, {100 * share:.0f} % of the warps")
    if "serialized" in said:  # products that wait for each other
        print(f"    {machine}: ptxas serialises products")
    return spilled == 0 and "serialized" not in said


def build(text, options, work):
    """The program of a module, its kernels' texts in a folder, and what its last kernel decided."""
    target = f"cuda -arch={options.arch} -compute_units={UNITS}"
    berth, path = os.path.join(options.build, "berth"), os.path.join(work, "module.txt")
    program, folder = os.path.join(work, "p.berth"), os.path.join(work, "p")
    with open(path, "w") as file:
        file.write(text)
    form = re.findall(r"form=(?:group_matrix|matrix|local)_tile.*", run([berth, "plan", path, "--target", target, "--why"]))[-1]
    run([berth, "build", path, "--target", target, "-o", program])
    run([berth, "inspect", program, f"--extract={folder}"])
    return program, os.path.join(folder, "image", "0.cu"), form


def emulate(program, options, work):
    counts = os.path.join(work, "counts")
    environment = dict(os.environ, LD_LIBRARY_PATH=os.path.join(os.path.abspath(options.build), "cuda_emulation"),
                       BERTH_EMULATION_COUNTS=counts, BERTH_CACHE_DIR=os.path.join(work, "cache"))
    run([os.path.join(options.build, "berth"), "run", program], env=environment)
    with open(counts) as file:
        got = json.loads(file.readline())
    os.remove(counts)
    return got


class Tile:
    """What a group computes."""

    def __init__(self, form, size):
        at = {d: int(v) for d, v in re.findall(r"(rows|columns|lanes|depth|group_rows|group_columns|stages|parts)=(\d+)", form)}
        self.units, self.of_groups = "matrix_tile" in form, "group_matrix_tile" in form
        self.threads = (32 if self.units else 1) * at["group_rows"] * at["group_columns"]
        self.rows, self.columns = at["rows"] * at["group_rows"], at.get("columns", 1) * at["group_columns"]
        if not self.units:
            self.columns *= at["lanes"]
        self.sums = self.rows * self.columns // self.threads  # of a thread
        if self.units:
            self.rows, self.columns = 16 * self.rows, 8 * self.columns
        self.depth, self.terms, self.size, self.parts = at["depth"], 32 // size, size, at.get("parts", 1)

    def least(self, m, n, k, share=1):
        """Instructions and bytes: every block reads its rows and its columns (of which `share` lie inside) once."""
        rows, columns, steps = -(-m // self.rows), -(-n // self.columns), self.parts * -(-(-(-k // self.parts)) // self.depth)
        products = rows * columns * (self.rows // 16) * (self.columns // 8) * steps * self.depth // self.terms
        return products, round(rows * columns * (self.rows + self.columns * share) * k * self.size)


    def bytes_of_columns(self, m, n, k):
        """What blocks read of whole tiles of columns."""
        return -(-m // self.rows) * n * k * self.size


def compiled_all(options, text, threads, work):
    return options.quick or all([compiled(options.nvcc, machine, text, threads, work) for machine in ARCHITECTURES[options.arch]])


def count(product, options, work):
    name, m, n, k, dtype = product
    weighted = product in WEIGHTED
    program, text, form = build(module(m, n, k, dtype, weighted), options, work)
    print(f"{name} ({options.arch}): {form}")
    tile = Tile(form, SIZES[dtype])
    fine = compiled_all(options, text, tile.threads, work)
    if m * n * k > EMULATED:
        return fine
    got = emulate(program, options, work)
    in_bulk = weighted and options.arch == "sm_90a"
    fine &= got["bulk_bytes"] == (tile.bytes_of_columns(m, n, k) if in_bulk else 0)
    return report(got, *tile.least(m, n, k), tile.units, 2 * m * n * k) and fine


def report(got, products, copied, units, operations):
    text = f"copied {got['copied_bytes']} bytes (least {copied}), {got['bulk_bytes']} as a whole; {operations / got['copied_bytes']:.0f} operations per copied byte"
    if not units:
        print(f"    {text}")
        return got["copied_bytes"] <= copied
    cycles = 8 * got["cycles"] / got["rows_loaded"]
    print(f"    products {got['products']} (least {products}), ldmatrix {cycles:.2f} cycles, {text}")
    return got["products"] == products and got["copied_bytes"] <= copied and cycles == 1


def count_convolution(case, options, work):
    """The second of two, less what a program of the first alone does; every byte of both operands comes by a copy of 16."""
    name, size, inputs, outputs, window, step = case
    text = convolution(size, inputs, outputs, window, step)
    first = text[:text.index("  %w = ")] + text[text.index("  %b = "):text.index("  %y = ")].replace("%b = ", "%y = ")
    before = emulate(build(first + "  return %y\n}\n", options, work)[0], options, work)
    program, code, form = build(text, options, work)
    print(f"{name} ({options.arch}): {form}")
    tile = Tile(form, 2)
    fine = compiled_all(options, code, tile.threads, work)
    both = emulate(program, options, work)
    places, k = (-(-size // step)) ** 2, inputs * window * window
    products, copied = tile.least(outputs, places, k, inside(size, window, step) ** 2)
    got = {what: both[what] - before[what] for what in both}
    fine &= got["copied_bytes"] == copied
    if options.arch == "sm_90a":  # rows are weights, of whole tiles
        weights = -(-places // tile.columns) * outputs * k * 2
        fine &= got["bulk_bytes"] in ((weights,) if window > 1 or step > 1 else (copied,)) or not tile.of_groups
    return report(got, products, copied, True, 2 * places * outputs * k) and fine


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--nvcc", default="/usr/local/cuda/bin/nvcc")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="", help="cases whose name has this")
    options = parser.parse_args()
    fine = True
    for options.arch in ARCHITECTURES:
        for which, cases in ((count, PRODUCTS + WEIGHTED), (count_convolution, CONVOLUTIONS)):
            for case in [c for c in cases if (c[0] in QUICK or not options.quick) and options.only in c[0]]:
                if options.arch == "sm_90a" and case[0].startswith("f32"):
                    continue  # no wgmma
                with tempfile.TemporaryDirectory() as work:
                    fine &= which(case, options, work)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
