#!/usr/bin/python3
"""What the kernels of whole models do on a CUDA device, counted from their code on a machine without a GPU, beside the floor.

Usage: cuda_model_counts.py [--build build/release] [--nvcc nvcc] [--disassembler nvdisasm] [--only NAME] [--list]

Models: resnet50 (batch 1 and 32), a layer of bert-base (128 tokens), a layer of a decoder (4096 wide, 11008 inside, batch 1), all in f16, and the
first three and a product in f32, with weights that are all alike. Each is built for an H200 (sm_90a, 132 multiprocessors), and its one image is compiled by nvcc. A line for each kernel with
a product; the rest are summed up:

  tile        results of a block; threads
  at once     blocks that a multiprocessor holds, by registers, shared memory and threads
  waves       blocks of the grid over those that all multiprocessors hold; the last wave of it is full only where this is a whole number
  products    multiplications that are issued over those that are needed (tiles that reach beyond the result or the sum)
  bytes       what blocks read (each its rows and columns of both operands, once) and write, over what lies in the operands and the result: 1 is the
              floor, and what is above 1 comes out of the L2 cache where that holds it
  multiply    of f32, with --disassembler (nvdisasm: of the toolkit, or PyPI's nvidia-cuda-nvdisasm): the share of the instructions of the loop
              over steps of a sum that multiply, of which a multiprocessor issues four at a time; and the time that the busiest multiprocessor
              takes to issue all, beside that for the multiplications alone, evenly over all (1.755 GHz): no wait is in these
  in flight   of a row times a matrix: bytes that the threads of a multiprocessor have asked for at once (8 terms each are unrolled)

--list: every kernel. Exit status 1 where registers spill.
"""
import argparse
import os
import re
import sys
import tempfile

from cuda_counts import UNITS, Tile, occupancy, run

MACHINE, TERMS = "sm_90a", 8
LANES, HERTZ = 128, 1.755e9  # f32 multiplications of a multiprocessor in a cycle (H100's white paper), and its clock
SIZES = {"f16": 2, "f32": 4, "i64": 8, "bool": 1}  # bytes


class Model:
    """A module as text."""

    def __init__(self, inputs, dtype):
        self.inputs, self.dtype, self.lines, self.count = inputs, dtype, [f"%z = constant() {{value = {dtype}[1] (0.01)}}"], 0

    def name(self):
        self.count += 1
        return f"v{self.count}"

    def op(self, kind, *operands, more=""):
        y = self.name()
        self.lines.append(f"%{y} = {kind}({', '.join(o if o == '_' else '%' + o for o in operands)}) {more}")
        return y

    def ints(self, *values):
        y = self.name()
        self.lines.append(f"%{y} = constant() {{value = i64[{len(values)}] ({', '.join(map(str, values))})}}")
        return y

    def weights(self, *dims):
        return self.op("expand", "z", self.ints(*dims))

    def text(self, y):
        of = ", ".join(f"%{n}: {self.dtype}[{','.join(map(str, d))}]" for n, d in self.inputs)
        return f'module "m"\n\ngraph @main({of}) {{\n' + "\n".join("  " + line for line in self.lines) + f"\n  return %{y}\n}}\n"


def resnet50(batch, dtype="f16"):
    m = Model([("x", (batch, 3, 224, 224))], dtype)

    def conv(x, outputs, inputs, window, step=1):
        p = window // 2
        return m.op("conv", x, m.weights(outputs, inputs, window, window), m.weights(outputs),
                    more=f"{{pads = [{p}, {p}, {p}, {p}], strides = [{step}, {step}]}}")
    x = m.op("relu", conv("x", 64, 3, 7, 2))
    x = m.op("max_pool", x, more="{kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]}")
    inputs = 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        width = 64 << stage
        for block in range(blocks):
            step = 2 if stage and not block else 1
            y = m.op("relu", conv(x, width, inputs, 1))
            y = m.op("relu", conv(y, width, width, 3, step))
            y = conv(y, 4 * width, width, 1)
            if not block:
                x = conv(x, 4 * width, inputs, 1, step)
            x, inputs = m.op("relu", m.op("add", y, x)), 4 * width
    x = m.op("reshape", m.op("global_average_pool", x), m.ints(batch, 2048))
    return m.text(m.op("add", m.op("matmul", x, m.weights(2048, 1000)), m.weights(1000)))


def product(size=4096):
    m = Model([("x", (size, size))], "f32")
    return m.text(m.op("matmul", "x", m.weights(size, size)))


def bert_layer(dtype="f16", tokens=128, width=768, heads=12):
    m = Model([("x", (1, tokens, width))], dtype)

    def dense(x, inputs, outputs):
        return m.op("add", m.op("matmul", x, m.weights(inputs, outputs)), m.weights(outputs))

    def split(x, order):
        x = m.op("reshape", x, m.ints(1, tokens, heads, width // heads))
        return m.op("transpose", x, more=f"{{perm = {order}}}")
    q, k, v = (split(dense("x", width, width), order) for order in ("[0, 2, 1, 3]", "[0, 2, 3, 1]", "[0, 2, 1, 3]"))
    a = m.op("matmul", m.op("softmax", m.op("mul", m.op("matmul", q, k), "z")), v)
    a = m.op("reshape", m.op("transpose", a, more="{perm = [0, 2, 1, 3]}"), m.ints(1, tokens, width))
    x = m.op("add", dense(a, width, width), "x")
    y = m.op("add", dense(m.op("gelu", dense(x, width, 4 * width)), 4 * width, width), x)
    return m.text(y)


def decoder_layer(width=4096, inside=11008, vocabulary=32000):
    m = Model([("x", (1, width)), ("h", (1, inside))], "f16")
    qkv = m.op("matmul", "x", m.weights(width, 3 * width))
    o = m.op("matmul", "x", m.weights(width, width))
    up = m.op("matmul", "x", m.weights(width, 2 * inside))
    down = m.op("matmul", "h", m.weights(inside, width))
    head = m.op("matmul", "x", m.weights(width, vocabulary))
    return m.text(m.op("concat", qkv, o, up, down, head, more="{axis = 1}"))


MODELS = {"resnet50, batch 1": lambda: resnet50(1), "resnet50, batch 32": lambda: resnet50(32), "bert-base, a layer": bert_layer,
          "decoder, a layer": decoder_layer, "resnet50 in f32, batch 1": lambda: resnet50(1, "f32"),
          "resnet50 in f32, batch 32": lambda: resnet50(32, "f32"), "bert-base in f32, a layer": lambda: bert_layer("f32"),
          "product in f32, 4096 x 4096 x 4096": product}


class Kernel:
    """One tensor function of the module after its schedule: name, parameters as (dims, type, direction), decisions."""

    def __init__(self, text):
        head = text[:text.index("decisions")]
        self.name = re.match(r"tensor @(\S+)\.\d+\.cuda\(", head).group(1)
        self.params = [([int(d) for d in dims.split(",") if d], dtype, way) for dtype, dims, way in
                       re.findall(r"%\S+: (\w+)\[([\d,]*)\](?:\{\w+\})? (in|out|inout)\b", head)]
        self.forms = re.findall(r'"(form=[^"]*)"', text[len(head):])
        self.nests = 0

    def bytes(self):
        return sum(size(p) for p in self.params)

    def product(self):
        """Rows, columns, terms; None where the function has none: weights are the second operand, their terms the sum."""
        y = self.params[-1][0]
        if "conv" in self.name:
            w = self.params[1][0]
            return count(y) // w[0], w[0], count(w[1:])
        if "matmul" in self.name and len(self.params) > 2:
            x, w = self.params[0][0], self.params[1][0]
            return count(x[:-1]) if len(w) == 2 else x[-2], w[-1], w[-2]
        return None


def count(dims):
    all_of = 1
    for d in dims:
        all_of *= d
    return all_of


def size(param):
    return count(param[0]) * SIZES[param[1]]


def built(text, options, work):
    """Kernels, and of the image by entry: registers, bytes of shared memory, spills, blocks, threads."""
    berth, path = os.path.join(options.build, "berth"), os.path.join(work, "module.txt")
    with open(path, "w") as file:
        file.write(text)
    target = ["--target", f"cuda -arch={MACHINE} -compute_units={UNITS}"]
    listed = run([berth, "opt", path] + target + ["--passes", "all", "--print-after", "schedule"])
    kernels, seen = [], set()
    for part in re.split(r"(?m)^(?=tensor @)", listed)[1:]:
        if "decisions" in part and part.split("(")[0] not in seen:
            seen.add(part.split("(")[0])
            kernels.append(Kernel(part))
    program, folder = os.path.join(work, "p.berth"), os.path.join(work, "p")
    run([berth, "build", path] + target + ["-o", program])
    run([berth, "inspect", program, f"--extract={folder}"])
    code = os.path.join(folder, "image", "0.cu")
    said = run([options.nvcc, f"-arch={MACHINE}", "-std=c++17", "-w", "-cubin", "-Xptxas", "-v", "-o", os.path.join(work, "cubin"), code])
    facts = {entry: [int(registers), 0, int(spilled)] for entry, spilled, registers in
             re.findall(r"entry function '(\w+)'.*?(\d+) bytes spill stores.*?Used (\d+) registers", said, re.S)}
    for entry, shared in re.findall(r"entry function '(\w+)'(?:(?!entry function).)*?(\d+) bytes smem", said, re.S):
        facts[entry][1] = int(shared)
    with open(code) as file:
        source = file.read()
    for entry, shared in re.findall(r"berth_declares_(\w+)/shared: (\d+)", source):
        facts[entry][1] = int(shared)
    for entry, x, y, z, a, b, c in re.findall(r"berth_declares_(\w+): groups (\d+) (\d+) (\d+) of (\d+) (\d+) (\d+)", source):
        facts[entry] += [int(x) * int(y) * int(z), int(a) * int(b) * int(c)]
    return kernels, facts


def loop_share(code, tile):
    """Of the loop over steps, in a disassembly: multiplications over all instructions. None where there is no such loop."""
    labels, lines, loops = {}, [], []
    for line in code.split("\n"):
        label = re.match(r"(\.L_x_\d+):", line)
        if label:
            labels[label.group(1)] = len(lines)
        found = re.match(r"\s*/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+ )?(.*?);", line)
        if found:
            back = re.match(r"BRA.*`\((\.L_x_\d+)\)", found.group(1))
            if back and labels.get(back.group(1), len(lines)) < len(lines):
                loops.append((labels[back.group(1)], len(lines)))
            lines.append(found.group(1).startswith("FFMA"))
    loops = [(a, b) for a, b in loops if sum(lines[a:b]) >= tile.sums]
    if not loops:
        return None
    first, last = max(loops, key=lambda loop: loop[1] - loop[0])
    # Loops inside of it, over the terms of a step where these are not unrolled, come round as often as the step has terms.
    inside = [(a, b) for a, b in loops if (a, b) != (first, last) and first <= a and b <= last]
    if not inside:
        return sum(lines[first:last + 1]) / (last + 1 - first)
    length, products = sum(b + 1 - a for a, b in inside), sum(sum(lines[a:b + 1]) for a, b in inside)
    needed = len(inside) * tile.sums * tile.depth
    return needed / (last + 1 - first - length + length * needed / products)


def disassembled(options, work):
    if not options.disassembler:
        return {}
    text = run([options.disassembler, "-c", os.path.join(work, "cubin")])
    return {re.match(r"\w+", part).group(): part for part in re.split(r"(?m)^\s*\.section\s+\.text\.", text)[1:]}


def multiply(kernel, tile, fact, code):
    """What is issued, in text, and the seconds of it and of the multiplications alone."""
    rows, columns, terms = kernel.product()
    share = loop_share(code, tile) if code else None
    if not share:
        return "", (0, 0)
    blocks, threads = fact[3:5]
    each = threads * tile.sums * -(-(-(-terms // tile.parts)) // tile.depth) * tile.depth
    issued = -(-blocks // UNITS) * each / share / LANES / HERTZ
    least = rows * columns * terms * batch_of(kernel) / UNITS / LANES / HERTZ
    return f", multiply {100 * share:3.0f} %, {1e6 * issued:6.1f} us of {1e6 * least:6.1f}", (issued, least)


def describe(kernel, fact, code=None):
    registers, shared, spilled, blocks, threads = fact
    at_once, share = occupancy(MACHINE, registers, shared, threads)
    rows, columns, terms = kernel.product()
    text = f"{kernel.name:28.28} {rows:>6} x {columns:>5} x {terms:>5}  "
    waves = f"{registers:>3} registers, {shared / 1024:5.1f} KiB, {at_once:>2} at once ({100 * share:3.0f} %), {blocks:>5} blocks, {blocks / (UNITS * at_once):5.2f} waves"
    form, of = kernel.forms[0], SIZES[kernel.params[0][1]]
    if "tile" not in form:
        here = min(at_once, -(-blocks // UNITS)) * threads
        return text + f"{form.split()[0][5:]:>12}, {threads:>4} threads; {waves}; in flight {here * TERMS * of / 1024:4.1f} KiB", (0, 0)
    tile = Tile(form, of)
    issued = blocks * tile.rows * tile.columns * -(-(-(-terms // tile.parts)) // tile.depth) * tile.depth
    read = blocks * (tile.rows + tile.columns) * terms / tile.parts * of
    first = size(kernel.params[0]) + size(kernel.params[1])
    all_of = (read + kernel.bytes() - first) / kernel.bytes()
    issue, seconds = multiply(kernel, tile, fact, code)
    return text + (f"{tile.rows:>4} x {tile.columns:<3}, {tile.threads:>4} threads; {waves}; products {issued / (rows * columns * terms * batch_of(kernel)):4.2f}, "
                   f"bytes {all_of:5.2f}" + issue), seconds


def batch_of(kernel):
    """Products that lie beside each other in one function."""
    w = kernel.params[1][0]
    return 1 if "conv" in kernel.name else count(w[:-2])


def show(name, text, options):
    with tempfile.TemporaryDirectory() as work:
        kernels, facts = built(text, options, work)
        codes = disassembled(options, work)
    entries = sorted(facts, key=lambda e: [int(n) for n in re.findall(r"\d+", e)])
    units = [[e for e in entries if e.startswith(f"u{i}_")] for i in range(len(kernels))]
    if sum(map(len, units)) != len(entries) or not all(units):
        sys.exit(f"cuda_model_counts.py: {name}: {len(kernels)} functions and {len(entries)} kernels do not match")
    print(f"{name}: {len(kernels)} functions, {len(entries)} kernels")
    issued = least = 0
    for kernel, unit in zip(kernels, units):
        if kernel.product():
            line, seconds = describe(kernel, facts[unit[0]], codes.get(unit[0]))
            issued, least = issued + seconds[0], least + seconds[1]
            print("  " + line)
        elif options.list:
            print(f"  {kernel.name:28.28} {kernel.forms[0]}")
    if issued:
        print(f"  multiplications, each kernel once: {1e6 * issued:.0f} us to issue, {1e6 * least:.0f} us at the least")
    spilled = [e for e in entries if facts[e][2]]
    if spilled:
        print(f"  registers spill in {', '.join(spilled)}")
    return not spilled


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--nvcc", default="/usr/local/cuda/bin/nvcc")
    parser.add_argument("--disassembler", help="nvdisasm, for what f32 kernels issue")
    parser.add_argument("--only", default="", help="models whose name has this")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    return 0 if all([show(name, make(), options) for name, make in MODELS.items() if options.only in name]) else 1


if __name__ == "__main__":
    sys.exit(main())
