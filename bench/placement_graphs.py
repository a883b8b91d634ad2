#!/usr/bin/env python3
"""Writes placement problems made from the shapes of networks, for `berth place` and bench/bench_placement.py.

    python3 bench/placement_graphs.py OUT [--part look|held|large] [--only GLOB]

Times, sizes and transfers follow from operations and bytes of made-up networks (an accelerator of 10 Tflop/s and
400 GB/s behind a link of 12 GB/s, processor cores of 0.5 Tflop/s and 40 GB/s), with some noise; seeds are fixed, so
that OUT is the same every time. `look` is the part that the strategies may be tuned with. `held` has other seeds, sizes
and machines, and networks that `look` has not (dense blocks, experts, an encoder-decoder, random trees): it is for
measuring only. `large` has 1,000 to 50,000 nodes.
"""
import argparse
import fnmatch
import json
import os
import random

ACC_FLOPS, ACC_BYTES, CPU_FLOPS, CPU_BYTES, LINK_BYTES = 10e12, 400e9, 0.5e12, 40e9, 12e9


class Net:
    """A graph of operations: floating-point operations, bytes of the result and of the weights."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.ops, self.edges = [], []

    def add(self, flops, out_bytes, inputs=(), weight_bytes=0, host_only=False):
        v = len(self.ops)
        self.ops.append(dict(flops=flops, out=out_bytes, weight=weight_bytes, host=host_only, backward=False, colour=None))
        self.edges += [(u, v) for u in dict.fromkeys(inputs)]
        return v

    def matmul(self, x, rows, inner, cols):
        return self.add(2.0 * rows * inner * cols, 4.0 * rows * cols, [x], 4.0 * inner * cols)

    def map(self, inputs, count, flops_each=1.0):
        """Elementwise."""
        return self.add(flops_each * count, 4.0 * count, inputs)


def train(net):
    """Adds the backward pass: for each operation the gradient of its input, for each with weights also that of the
    weights and the update; all that touches the weights is of one colour."""
    count = len(net.ops)
    succ, pred = [[] for _ in range(count)], [[] for _ in range(count)]
    for u, v in net.edges:
        succ[u].append(v)
        pred[v].append(u)
    gradient = [None] * count
    for u in range(count - 1, -1, -1):  # operations are in topological order
        op = net.ops[u]
        arrives = [gradient[v] for v in succ[u]]
        kept = pred[u][:1] if op['flops'] > 2 * op['out'] else [u]  # the activation it needs again
        if not succ[u]:
            arrives, kept = [], [u]
        out = sum(net.ops[p]['out'] for p in pred[u][:1]) or op['out']
        g = net.add(op['flops'], out, arrives + kept)
        net.ops[g]['backward'] = True
        gradient[u] = g
        if op['weight']:
            w = net.add(op['flops'], op['weight'], arrives + kept)
            a = net.add(op['weight'] / 4 * 4, 0, [w])
            net.ops[w]['backward'] = net.ops[a]['backward'] = True
            for v in (u, g, w, a):
                net.ops[v]['colour'] = u
    return net


def problem(net, accelerators, cpus, room):
    """`room`: the accelerators' memory together, as a multiple of all sizes."""
    r = net.random
    nodes, total = [], 0
    for v, op in enumerate(net.ops):
        noise = r.uniform(0.85, 1.2)
        acc = 1e3 * (max(op['flops'] / ACC_FLOPS, op['out'] * 2 / ACC_BYTES) + 4e-6) * noise
        cpu = 1e3 * (max(op['flops'] / CPU_FLOPS, op['out'] * 2 / CPU_BYTES) + 1e-6) * r.uniform(0.8, 1.25)
        size = op['weight'] + (0 if op['backward'] else op['out'])
        total += size
        node = dict(id=v, cpuLatency=cpu, fpgaLatency=acc, size=size, supportedOnFpga=0 if op['host'] else 1,
                    isBackwardNode=1 if op['backward'] else 0)
        if op['colour'] is not None:
            node['colorClass'] = op['colour']
        nodes.append(node)
    edges = [dict(sourceId=u, destId=v, cost=1e3 * net.ops[u]['out'] / LINK_BYTES) for u, v in net.edges]
    return dict(maxSizePerFPGA=total * room / accelerators, maxFPGAs=accelerators, maxCPUs=cpus, nodes=nodes, edges=edges)


def transformer(seed, layers, hidden, rows, heads=8, vocabulary=20000):
    net = Net(seed)
    tokens = net.add(0, 8.0 * rows, host_only=True)
    x = net.add(rows * hidden, 4.0 * rows * hidden, [tokens], 4.0 * vocabulary * hidden)
    mask = net.map([tokens], rows * rows)

    def norm(x):
        mean = net.map([x], rows)
        d = net.map([x, mean], rows * hidden)
        v = net.map([d], rows, hidden)
        n = net.map([d, v], rows * hidden, 2)
        return net.map([n], rows * hidden, 2)

    for _ in range(layers):
        parts = []
        for _ in range(3):
            p = net.matmul(x, rows, hidden, hidden)
            p = net.map([p], rows * hidden)
            parts.append(net.map([net.map([p], rows * hidden)], rows * hidden))
        q, k, v = parts
        s = net.add(2.0 * rows * rows * hidden, 4.0 * rows * rows * heads, [q, k])
        s = net.map([s], rows * rows * heads)
        s = net.map([s, mask], rows * rows * heads)
        s = net.map([s], rows * rows * heads, 6)
        c = net.add(2.0 * rows * rows * hidden, 4.0 * rows * hidden, [s, v])
        c = net.map([c], rows * hidden)
        c = net.map([net.matmul(c, rows, hidden, hidden)], rows * hidden)
        x = norm(net.map([c, x], rows * hidden))
        f = net.map([net.matmul(x, rows, hidden, 4 * hidden)], rows * hidden * 4)
        f = net.map([f], rows * hidden * 4, 8)
        f = net.map([net.matmul(f, rows, 4 * hidden, hidden)], rows * hidden)
        x = norm(net.map([f, x], rows * hidden))
    net.map([net.matmul(x, 1, hidden, vocabulary)], vocabulary, 5)
    return net


def lstm_stack(seed, layers, steps, hidden, batch=32, attention=True):
    """Encoder and decoder of LSTM layers in `steps` blocks of time, the first encoder layer both ways (GNMT)."""
    net = Net(seed)

    def cell(inputs):
        return net.add(16.0 * batch * hidden * hidden, 4.0 * batch * hidden, inputs, 32.0 * hidden * hidden / steps)

    def stack(xs, layers):
        for layer in range(layers):
            state, out = None, []
            for x in xs:
                state = cell([x] + ([state] if state is not None else []))
                out.append(state if layer < 2 else net.map([state, x], batch * hidden))
            xs = out
        return xs

    def embed(words):
        return [net.add(batch * hidden, 4.0 * batch * hidden, [words], 4.0 * 20000 * hidden / steps)
                for _ in range(steps)]

    xs = embed(net.add(0, 8.0 * batch * steps, host_only=True))
    forth, back = stack(xs, 1), stack(xs[::-1], 1)[::-1]
    xs = stack([net.map([a, b], batch * hidden) for a, b in zip(forth, back)], layers - 1)
    memory = net.add(batch * hidden * steps, 4.0 * batch * hidden * steps, xs)
    ys = stack(embed(net.add(0, 8.0 * batch * steps, host_only=True)), 1)
    if attention:
        ys = [net.add(4.0 * batch * hidden * steps, 4.0 * batch * hidden, [y, memory]) for y in ys]
    for y in stack(ys, layers - 1):
        y = net.add(2.0 * batch * hidden * 20000, 4.0 * batch * 200, [y], 4.0 * 20000 * hidden / steps)
        net.map([y], batch * 200, 5)
    return net


def conv(net, x, side, inputs, outputs, kernel=3):
    c = net.add(2.0 * side * side * inputs * outputs * kernel * kernel, 4.0 * side * side * outputs, [x],
                4.0 * inputs * outputs * kernel * kernel)
    n = net.map([c], side * side * outputs, 2)
    return net.map([n], side * side * outputs)


def inception(seed, blocks, batch=8):
    net = Net(seed)
    side, channels = 149, 32
    x = net.add(0, 4.0 * 299 * 299 * 3 * batch, host_only=True)
    x = conv(net, x, side, 3, channels)
    for b in range(blocks):
        if b % 3 == 0 and side > 8:
            side, channels = side // 2, channels * 2
            x = net.map([x], side * side * channels)
        quarter, ways = max(channels // 4, 8), []
        for way in range(net.random.randint(3, 5)):
            y = conv(net, x, side, channels, quarter, 1)
            for _ in range(way):
                y = conv(net, y, side, quarter, quarter, net.random.choice([1, 3, 3, 5]))
            ways.append(y)
        ways.append(conv(net, net.map([x], side * side * channels, 9), side, channels, quarter, 1))
        channels = quarter * len(ways)
        x = net.map(ways, side * side * channels)
    x = net.map([x], channels)
    net.map([net.matmul(x, 1, channels, 1000)], 1000, 5)
    return net


def residual(seed, blocks):
    """Chains with connections over 2 or 3 operations."""
    net = Net(seed)
    side, channels = 56, 64
    x = net.add(0, 4.0 * 224 * 224 * 3, host_only=True)
    x = conv(net, x, side, 3, channels, 7)
    for b in range(blocks):
        if b and b % max(blocks // 4, 1) == 0 and side > 7:
            side, channels = side // 2, channels * 2
            x = conv(net, x, side, channels // 2, channels, 1)
        y = x
        for _ in range(net.random.randint(2, 3)):
            y = conv(net, y, side, channels, channels)
        x = net.map([net.map([x, y], side * side * channels)], side * side * channels)
    net.map([net.matmul(x, 1, channels, 1000)], 1000, 5)
    return net


def layered(seed, layers, width, degree=2.0):
    """Random layered graphs: nodes of a layer read nodes of the one before, now and then of an older one."""
    net = Net(seed)
    r = net.random
    old, before = [], []
    for layer in range(layers):
        now = []
        for _ in range(r.randint(max(1, width // 2), width)):
            inputs = []
            if before:
                inputs = [r.choice(before) for _ in range(1 + int(r.expovariate(1 / max(degree - 1, 0.1))))]
                if r.random() < 0.1:
                    inputs.append(r.choice(old))
            now.append(net.add(10 ** r.uniform(6.5, 9.5), 10 ** r.uniform(3.5, 6.5), inputs[:8],
                               10 ** r.uniform(4, 7) if r.random() < 0.5 else 0))
        old += now
        before = now
    return net


def dense(seed, blocks, depth):
    """Every operation of a block reads all before it there."""
    net = Net(seed)
    side, channels, growth = 56, 64, 32
    x = net.add(0, 4.0 * 224 * 224 * 3, host_only=True)
    x = conv(net, x, side, 3, channels, 7)
    for _ in range(blocks):
        have = [x]
        for _ in range(depth):
            joined = net.map(have, side * side * channels)
            have.append(conv(net, conv(net, joined, side, channels, 4 * growth, 1), side, 4 * growth, growth))
            channels += growth
        channels //= 2
        x = conv(net, net.map(have, side * side * channels), side, channels * 2, channels, 1)
        side = max(side // 2, 7)
    net.matmul(x, 1, channels, 1000)
    return net


def experts(seed, layers, ways, hidden=512, rows=256):
    net = Net(seed)
    x = net.map([net.add(0, 8.0 * rows, host_only=True)], rows * hidden)
    for _ in range(layers):
        gate = net.matmul(x, rows, hidden, ways)
        outs = []
        for _ in range(ways):
            share = net.map([x, gate], rows * hidden // 2)
            y = net.map([net.matmul(share, rows // 2, hidden, 4 * hidden)], rows * hidden * 2, 8)
            outs.append(net.matmul(y, rows // 2, 4 * hidden, hidden))
        x = net.map([net.map(outs, rows * hidden), x], rows * hidden, 4)
    net.matmul(x, rows, hidden, 1000)
    return net


def hourglass(seed, depth, each):
    """An encoder and a decoder with connections between levels of one size (U-Net)."""
    net = Net(seed)
    side, channels, kept = 128, 32, []
    x = net.add(0, 4.0 * 256 * 256 * 3, host_only=True)
    for _ in range(depth):
        for _ in range(each):
            x = conv(net, x, side, channels, channels)
        kept.append((x, side, channels))
        side, channels = side // 2, channels * 2
        x = conv(net, x, side, channels // 2, channels)
    for y, side, channels in reversed(kept):
        x = net.map([conv(net, x, side, channels * 2, channels, 1), y], side * side * channels * 2)
        for _ in range(each):
            x = conv(net, x, side, channels * 2 if _ == 0 else channels, channels)
    net.map([x], side * side)
    return net


def tree(seed, count):
    """A random tree towards one result, with some edges across."""
    net = Net(seed)
    r = net.random
    free = []
    for _ in range(count):
        take = [free.pop(r.randrange(len(free))) for _ in range(min(len(free), r.choice([0, 0, 1, 1, 1, 2, 2, 3])))]
        if r.random() < 0.05 and net.ops:
            take.append(r.randrange(len(net.ops)))
        free.append(net.add(10 ** r.uniform(7, 9.5), 10 ** r.uniform(4, 6.5), take, 10 ** r.uniform(4, 7)))
    net.map(free[:64], 1000)
    return net


def look():
    yield 'transformer2_infer', problem(transformer(1, 2, 512, 256), 3, 1, 3)
    yield 'transformer6_infer', problem(transformer(2, 6, 768, 384), 4, 8, 1.6)
    yield 'transformer12_infer', problem(transformer(3, 12, 768, 128), 6, 1, 8)
    yield 'transformer3_train', problem(train(transformer(4, 3, 512, 256)), 3, 1, 4)
    yield 'transformer12_train', problem(train(transformer(5, 12, 1024, 256)), 6, 1, 3)
    yield 'lstm4_infer', problem(lstm_stack(6, 4, 6, 1024), 6, 1, 5)
    yield 'lstm8_infer', problem(lstm_stack(7, 8, 10, 1024), 4, 8, 1.5)
    yield 'lstm4_train', problem(train(lstm_stack(8, 4, 5, 512)), 4, 1, 3)
    yield 'inception6_infer', problem(inception(9, 6), 4, 8, 1.5)
    yield 'inception11_infer', problem(inception(10, 11), 8, 1, 6)
    yield 'inception6_train', problem(train(inception(11, 6)), 4, 1, 3)
    yield 'layered10x8', problem(layered(12, 10, 8), 4, 2, 1.5)
    yield 'layered30x20', problem(layered(13, 30, 20, 1.5), 6, 1, 3)
    yield 'residual16_infer', problem(residual(14, 16), 6, 8, 1.4)
    yield 'residual16_train', problem(train(residual(15, 16)), 4, 1, 3)


def held():
    yield 'transformer4_infer', problem(transformer(101, 4, 1024, 128, 16), 5, 4, 1.3)
    yield 'transformer12_infer', problem(transformer(102, 12, 512, 512), 8, 1, 4)
    yield 'transformer12_train', problem(train(transformer(103, 12, 768, 384)), 4, 1, 6)
    yield 'transformer5_train', problem(train(transformer(104, 5, 640, 192)), 6, 1, 1.5)
    yield 'lstm6_infer', problem(lstm_stack(105, 6, 8, 768), 5, 1, 4)
    yield 'lstm5_infer', problem(lstm_stack(106, 5, 12, 1024, 64), 6, 4, 1.3)
    yield 'lstm6_train', problem(train(lstm_stack(107, 6, 6, 1024)), 6, 1, 3)
    yield 'inception9_infer', problem(inception(108, 9), 6, 8, 1.3)
    yield 'inception9_train', problem(train(inception(109, 9)), 6, 1, 3)
    yield 'layered15x12', problem(layered(110, 15, 12), 5, 1, 2)
    yield 'layered40x10', problem(layered(111, 40, 10, 2.5), 4, 4, 1.4)
    yield 'residual24_infer', problem(residual(112, 24), 4, 4, 1.5)
    yield 'dense_infer', problem(dense(113, 4, 8), 4, 1, 3)
    yield 'dense_latency', problem(dense(114, 3, 10), 6, 4, 1.4)
    yield 'experts_infer', problem(experts(115, 6, 8), 8, 1, 2)
    yield 'experts_train', problem(train(experts(116, 4, 6)), 4, 1, 3)
    yield 'hourglass_infer', problem(hourglass(117, 4, 3), 4, 4, 1.5)
    yield 'hourglass_train', problem(train(hourglass(118, 4, 2)), 4, 1, 3)
    yield 'tree300', problem(tree(119, 300), 6, 2, 1.5)


def large():
    for n, layers in ((1000, 26), (5000, 130), (20000, 520), (50000, 1300)):
        yield 'transformer_%d' % n, problem(transformer(200 + layers, layers, 512, 128), 8, 4, 1.6)
    for n, layers, width in ((1000, 100, 13), (5000, 300, 22), (20000, 800, 33), (50000, 1300, 51)):
        yield 'layered_%d' % n, problem(layered(300 + layers, layers, width, 1.6), 6, 2, 1.6)
    for n, blocks in ((1000, 18), (5000, 90), (20000, 360), (50000, 900)):
        yield 'inception_%d' % n, problem(inception(400 + blocks, blocks), 8, 4, 1.5)
    for n, steps in ((1000, 36), (5000, 185), (20000, 740)):
        yield 'lstm_%d' % n, problem(lstm_stack(500 + steps, 8, steps, 256), 6, 2, 1.6)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('out')
    parser.add_argument('--part', choices=['look', 'held', 'large'], default='look')
    parser.add_argument('--only', default='*')
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    for name, data in {'look': look, 'held': held, 'large': large}[options.part]():
        if not fnmatch.fnmatch(name, options.only):
            continue
        with open(os.path.join(options.out, name + '.json'), 'w') as file:
            json.dump(data, file)
        print('%-24s %6d nodes %6d edges' % (name, len(data['nodes']), len(data['edges'])))


if __name__ == '__main__':
    main()
