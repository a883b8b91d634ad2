#!/usr/bin/env python3
"""Random small networks (f32 and 8-bit, random_layers.py) as plain C on boards: what differs, with the seed and the folder that shows it.

    tests/bare/random_nets.py [--seed 1] [--count 20] [--layers 8] [--only m4,m55,...] [--keep FOLDER] [--jobs 1]

Every network runs as sources for a Cortex-M4 (speed and size) and a Cortex-M55 with Helium under qemu-system-arm, for aarch64, armv7 and
riscv64 under qemu-user, and natively with sanitizers, all with the project's warnings as errors. Compared: with the graph executor, to the bit
for 8-bit networks that end in integers; with the reference interpreter (the inputs as constants, folded) and ONNX Runtime within a slack. On
boards memory is painted: nothing beside the arena is written. Budgets: --memory sram=1 is refused and names the least; that least
builds and computes the same bytes; a byte less is refused and names the same least. Store: with 0 to 20,000 bytes more and hardly any flash, constants are read from a store, or a
limit is named, and in a few such steps one that is enough. The kinds with -two have values in two memories, those with -rolling rows that roll. Needs PyPI's onnxruntime, onnx and numpy and the cross
compilers. The last line counts; ends with 1 when anything differed.
"""
import argparse
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import numpy_helper

import random_layers

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), 'differential'))
from peer import BERTH, differs  # noqa: E402

WARNINGS = '-std=c99 -Wall -Wextra -Werror -pedantic'.split()
RAM = ['-DNET_RAM_ATTRIBUTE=__attribute__((section(".model")))', '-DNET_IN_DTCM_ATTRIBUTE=__attribute__((section(".fast_model")))']
# A little fast memory beside the board's own: values and private arrays are in both.
TWO = json.dumps({'devices': [{'name': 'mcu', 'target': {'kind': 'cpu', 'arch': 'cortex-m4'}}], 'memories': [
    {'name': 'sram', 'capacity_bytes': '4MiB', 'bandwidth_bytes_per_s': 1e8, 'reached_by': ['mcu']},
    {'name': 'dtcm', 'capacity_bytes': 1536, 'bandwidth_bytes_per_s': 8e8, 'reached_by': ['mcu']}]})
# target, further options of build, compiler with flags, what runs it (None: natively), the board's linker script
KINDS = {
    'm4': ('cpu -arch=cortex-m4', [], 'arm-none-eabi-gcc -Os -mcpu=cortex-m4 -mfpu=fpv4-sp-d16', 'mps2-an386', 'an386.ld'),
    'm4-size': ('cpu -arch=cortex-m4', ['--optimise', 'size'], 'arm-none-eabi-gcc -Os -mcpu=cortex-m4 -mfpu=fpv4-sp-d16', 'mps2-an386', 'an386.ld'),
    'm55': ('cpu -arch=cortex-m55 -features=mve', [], 'arm-none-eabi-gcc -Os -mcpu=cortex-m55 -mfpu=auto -DCLOCK_HZ=32000000u', 'mps3-an547', 'an547.ld'),
    'm55-rolling': ('cpu -arch=cortex-m55 -features=mve', ['--patches', 'rolling'],
                    'arm-none-eabi-gcc -Os -mcpu=cortex-m55 -mfpu=auto -DCLOCK_HZ=32000000u', 'mps3-an547', 'an547.ld'),
    'native-rolling': ('cpu -arch=cortex-m4', ['--patches', 'rolling'], 'gcc -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all', None, None),
    'native-size-rolling': ('cpu -arch=cortex-m4', ['--patches', 'rolling', '--optimise', 'size'],
                            'gcc -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all', None, None),
    'aarch64': ('cpu -arch=aarch64', [], 'aarch64-linux-gnu-gcc -O2 -static', 'qemu-aarch64-static', None),
    'armv7': ('cpu -arch=armv7', [], 'arm-linux-gnueabihf-gcc -O2 -static', 'qemu-arm-static', None),
    'riscv64': ('cpu -arch=riscv64', [], 'riscv64-linux-gnu-gcc -O2 -static', 'qemu-riscv64-static', None),
    'm4-two': (TWO, [], 'arm-none-eabi-gcc -Os -mcpu=cortex-m4 -mfpu=fpv4-sp-d16', 'mps2-an386', 'an386.ld'),
    'native-two': (TWO, [], 'gcc -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all', None, None),
    'native': ('cpu -arch=cortex-m4', [], 'gcc -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all', None, None),
}


def run(command, **options):
    return subprocess.run(command, capture_output=True, timeout=300, **options)


def last_line(done):
    text = (done.stderr or b'').decode(errors='replace').strip().splitlines()
    return text[-1] if text else 'exit status %d' % done.returncode


def check(done, what):
    if done.returncode:
        raise Wrong('%s: %s' % (what, last_line(done)))
    return done


class Wrong(Exception):
    pass


def berth_outputs(path, feeds, names, folder):
    command = [BERTH, 'run', path, '--target', 'cpu']
    for k, v in feeds.items():
        np.save(os.path.join(folder, k + '.npy'), v)
        command += ['--input', '%s=%s' % (k, os.path.join(folder, k + '.npy'))]
    for name in names:
        command += ['-o', '%s=%s' % (name, os.path.join(folder, 'got_%s.npy' % name))]
    check(run(command), 'graph executor' if feeds else 'interpreter')
    return [np.load(os.path.join(folder, 'got_%s.npy' % name)) for name in names]


def folded(model, feeds):
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.graph.input[:]
    copy.graph.initializer.extend(numpy_helper.from_array(v, k) for k, v in feeds.items())
    return copy


def write_sources(path, target, options, folder):
    return run([BERTH, 'build', path, '--target', target, '--runtime', 'bare', '--name', 'net', *options, '-o', folder])


def compile_and_run(kind, folder, given):
    """What the example writes."""
    _, _, compiler, runner, script = KINDS[kind]
    compiler = compiler.split()
    if not script:
        sources = [f for f in os.listdir(folder) if f.endswith('.c')]
        check(run(compiler + WARNINGS + ['-o', 'program', *sources, '-lm'], cwd=folder), kind + ' does not compile')
        return check(run([runner] * bool(runner) + ['./program'], cwd=folder, input=given), kind).stdout
    board = os.path.join(HERE, 'board')
    compiler += ['-mthumb', '-mfloat-abi=hard']
    check(run(compiler + WARNINGS + [*RAM, '-c', 'net.c', 'net_weights.c', 'main.c'], cwd=folder), kind + ' does not compile')
    check(run(compiler + ['-DMODEL_RUN=__wrap_net_run', '-DMODEL_REAL=__real_net_run', '-c', board + '/startup.c', board + '/measure.c'],
              cwd=folder), kind)
    check(run(compiler + ['-nostartfiles', '--specs=rdimon.specs', '-L', board, '-T', script, '-Wl,--wrap=net_run', '-o', 'net.elf', 'net.o',
                          'net_weights.o', 'main.o', 'startup.o', 'measure.o', '-lm'], cwd=folder), kind + ' does not link')
    done = check(run(['qemu-system-arm', '-M', runner, '-display', 'none', '-serial', 'none', '-monitor', 'none', '-semihosting-config',
                      'enable=on,target=native', '-kernel', 'net.elf'], cwd=folder, input=given), kind)
    if b'guards 1' not in done.stderr or b'guards 0' in done.stderr:
        raise Wrong('%s: written beside its memory: %s' % (kind, last_line(done)))
    return done.stdout


def split(raw, expected, kind):
    arrays, at = [], 0
    for value in expected:
        arrays.append(np.frombuffer(raw, value.dtype, value.size, at).reshape(value.shape) if at + value.nbytes <= len(raw) else None)
        at += value.nbytes
    if at != len(raw):
        raise Wrong('%s: %d bytes of outputs, expected %d' % (kind, len(raw), at))
    return arrays


class Network:
    def __init__(self, seed, layers, folder):
        self.integers = seed % 2 == 1
        self.folder = folder
        self.path = os.path.join(folder, 'model.onnx')
        self.model, self.feeds, self.expected = random_layers.make(seed, self.integers, layers)
        onnx.save(self.model, self.path)
        self.given = b''.join(v.tobytes() for v in self.feeds.values())
        self.by_integers = self.integers and all(n.op_type != 'Softmax' for n in self.model.graph.node)

    def compare(self, what, expected, got):
        for name, a, b in zip(self.expected, expected, got):
            # Sums of integers and those of floats differ where a half is rounded, and later layers spread it.
            problem = differs(a, b, 0.06 if self.integers else 2e-4, floor=1e-2)
            if not problem and self.integers and np.abs(a - b).mean() > 0.02 * (np.abs(a).max() + 1e-2):
                problem = 'far from it on average'
            if problem:
                raise Wrong('%s, %s: %s' % (what, name, problem))

    def reference(self):
        """What the graph executor computes, after it was compared with ONNX Runtime and the interpreter."""
        peer, names = list(self.expected.values()), list(self.expected)
        graph = berth_outputs(self.path, self.feeds, names, self.folder)
        self.compare('graph executor and ONNX Runtime', peer, graph)
        path = os.path.join(self.folder, 'folded.onnx')
        onnx.save(folded(self.model, self.feeds), path)
        self.evaluated = berth_outputs(path, {}, names, self.folder)
        self.compare('interpreter and ONNX Runtime', peer, self.evaluated)
        return graph

    def same(self, kind, graph, got):
        self.compare(kind + ' and the interpreter', self.evaluated, got)
        if self.by_integers and any(a.tobytes() != b.tobytes() for a, b in zip(graph, got)):
            raise Wrong('%s: other bits than the graph executor\'s' % kind)

    def build(self, kind, options=()):
        target, further, *_ = KINDS[kind]
        folder = os.path.join(self.folder, kind + ''.join(options).replace('=', '').replace('--', '-'))
        shutil.rmtree(folder, ignore_errors=True)
        return write_sources(self.path, target, [*further, *options], folder), folder

    def check_kind(self, kind, graph, options=()):
        done, folder = self.build(kind, options)
        check(done, kind + ' is not built ' + ' '.join(options))
        self.check_sram(kind, folder, options)
        raw = compile_and_run(kind, folder, self.given)
        self.same(kind + ' '.join(('', *options)), graph, split(raw, graph, kind))

    def check_sram(self, kind, folder, options):
        """All static memory, inputs and outputs are within the budget."""
        budget = next((int(re.match(r'sram=(\d+)', o).group(1)) for o in options if o.startswith('sram=')), None)
        if budget is None:
            return
        with open(os.path.join(folder, 'net.h')) as header:
            text = header.read()
        used = int(re.search(r'NET_RAM_BYTES (\d+)', text).group(1))
        other = re.search(r'NET_IN_DTCM_MEMORY_BYTES (\d+)', text)
        used -= int(other.group(1)) if other else 0
        used += sum(v.nbytes for v in [*self.feeds.values(), *self.expected.values()])
        if used > budget:
            raise Wrong('%s: %d bytes where %d were allowed' % (kind, used, budget))

    def named(self, kind, budgets):
        """(memory, bytes) of the refusal of these limits: what would do; None where they are built."""
        done, folder = self.build(kind, ('--memory', budgets))
        if not done.returncode:
            shutil.rmtree(folder)
            return None
        found = re.search(r'memory "(\w+)",? .*?needs [^(\n]*\((\d+) bytes\)', done.stderr.decode())
        if not found:
            raise Wrong('%s, %s: no least limit: %s' % (kind, budgets, last_line(done)))
        return found.group(1), int(found.group(2))

    def least(self, kind, bytes_):
        found = self.named(kind, 'sram=%d' % bytes_)
        return found and found[1]

    def check_budget(self, kind, graph):
        least = self.least(kind, 1)
        if least is None:
            raise Wrong('%s: code within one byte' % kind)
        self.check_kind(kind, graph, ('--memory', 'sram=%d' % least))
        less = self.least(kind, least - 1)
        if less != least:
            raise Wrong('%s: sram=1 names %d, sram=%d %s' % (kind, least, least - 1, 'names %d' % less if less else 'is built'))

    def check_store(self, kind, graph):
        """Constants in a store, with RAM for little of them: in pieces, or what flash must have is named."""
        least, checked = self.least(kind, 1), set()
        for more in (0, 200, 2000, 20000):
            for flash in (1, 500):
                limits = {'sram': least + more, 'flash': flash}
                for _ in range(5):
                    budgets = 'sram=%d,flash=%d,store=64MiB' % (limits['sram'], limits['flash'])
                    found = self.named(kind, budgets)
                    if not found:
                        break
                    limits[found[0]] = found[1]
                if budgets not in checked:
                    self.check_kind(kind, graph, ('--memory', budgets))
                checked.add(budgets)


def attempt(seed, options):
    folder = os.path.join(options.keep, str(seed))
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    problems = []
    try:
        network = Network(seed, options.layers, folder)
        graph = network.reference()
    except (Wrong, subprocess.TimeoutExpired) as wrong:
        return seed, [str(wrong)]
    kinds = options.only.split(',') if options.only else [*KINDS, 'budget', 'budget-two', 'store']
    for kind in kinds:
        try:
            if kind == 'store':
                network.check_store('native', graph)
            elif kind.startswith('budget'):
                network.check_budget('native' + kind[len('budget'):], graph)
            else:
                network.check_kind(kind, graph)
        except (Wrong, subprocess.TimeoutExpired) as wrong:
            problems.append(str(wrong))
    if not problems:
        shutil.rmtree(folder)
    return seed, problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--count', type=int, default=20)
    parser.add_argument('--layers', type=int, default=8)
    parser.add_argument('--only', help='%s, budget, budget-two, store' % ', '.join(KINDS))
    parser.add_argument('--keep', default=None, help='folder of what differs')
    parser.add_argument('--jobs', type=int, default=1)
    options = parser.parse_args()
    options.keep = options.keep or tempfile.mkdtemp(prefix='random_nets_')
    wrong = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for seed, problems in pool.map(lambda s: attempt(s, options), range(options.seed, options.seed + options.count)):
            for problem in problems:
                print('seed %d: %s (%s)' % (seed, problem, os.path.join(options.keep, str(seed))), flush=True)
            wrong += bool(problems)
    print('%d networks, %d with differences' % (options.count, wrong))
    sys.exit(wrong > 0)


if __name__ == '__main__':
    main()
