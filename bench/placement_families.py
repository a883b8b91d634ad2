#!/usr/bin/env python3
"""`berth place` for latency over families of seeded random problems, at several budgets: how near the short ones come.

    scripts/build.sh release
    python3 bench/placement_families.py [--seed 1] [--sizes 300,2000] [--budgets 3s,10s] [--models published,list]
                                        [--only GLOB] [--keep DIR]

A row for each problem and budget: value, proven bound, gap, and by how much the value is above the best that any budget of the
row's problem found (`over`); at the end the median and the worst of each budget and the most seconds. The
families share nothing with bench/placement_graphs.py, and no strategy was chosen by them alone: another --seed makes other
problems of each. Every answer is checked by `berth place --check`, those of the published model by the lines of Python of
bench_placement.py as well.
"""
import argparse
import fnmatch
import json
import math
import os
import random
import resource
import subprocess
import sys
import tempfile
import time

import bench_placement

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def layered(r, count):
    """Layers of random width, edges between neighbours and a few further on."""
    layers, edges, v = [], [], 0
    while v < count:
        width = min(r.randint(2, max(3, int(count ** 0.5))), count - v)
        layers.append(list(range(v, v + width)))
        v += width
    for i in range(1, len(layers)):
        for v in layers[i]:
            edges += [(u, v) for u in r.sample(layers[i - 1], min(len(layers[i - 1]), r.choice([1, 1, 2, 3])))]
            if r.random() < 0.1:
                edges.append((r.choice(layers[r.randrange(i)]), v))
    return edges


def random_dag(r, count):
    """Every node reads a few of the nodes shortly before it."""
    reach = max(4, count // 10)
    return [(u, v) for v in range(1, count)
            for u in r.sample(range(max(0, v - reach), v), min(v, r.choice([1, 1, 2, 2, 3])))]


def series_parallel(r, count):
    """Edges replaced by two in series or by two beside each other."""
    edges, nodes = [(0, 1)], 2
    while nodes < count:
        u, v = edges.pop(r.randrange(len(edges)))
        if r.random() < 0.5:
            edges += [(u, nodes), (nodes, v)]
            nodes += 1
        else:
            edges += [(u, nodes), (nodes, v), (u, nodes + 1), (nodes + 1, v)]
            nodes += 2
    return edges


def grid(r, count):
    """A wavefront: steps times layers of an unrolled recurrent network."""
    height = max(2, min(12, int(count ** 0.5) // 2))
    width = count // height
    at = lambda i, j: j * height + i
    return [(at(i, j), at(i + 1, j)) for i in range(height - 1) for j in range(width)] + \
           [(at(i, j), at(i, j + 1)) for i in range(height) for j in range(width - 1)]


def out_tree(r, count):
    return [(r.randrange(max(0, v - max(3, count // 8)), v), v) for v in range(1, count)]


def in_tree(r, count):
    return [(count - 1 - v, count - 1 - u) for u, v in out_tree(r, count)]


def fork_join(r, count):
    """Stages one after another, each some chains beside each other."""
    edges, end, v = [], 0, 1
    while v < count - 3:
        ways, depth = r.randint(2, 12), r.randint(1, 8)
        lasts = []
        for _ in range(ways):
            last = end
            for _ in range(depth):
                if v >= count - 2:
                    break
                edges.append((last, v))
                last, v = v, v + 1
            if last != end:
                lasts.append(last)
        edges += [(u, v) for u in lasts]
        end, v = v, v + 1
    return edges


def wide(r, count):
    """Much that does not depend on each other: short chains between a source and a sink."""
    edges = []
    for v in range(1, count - 1, 4):
        chain = [0] + list(range(v, min(v + 4, count - 1))) + [count - 1]
        edges += list(zip(chain, chain[1:]))
    return edges


def narrow(r, count):
    """Two or three long chains that meet now and then."""
    ways = r.choice([2, 3])
    edges = [(v - ways, v) for v in range(ways, count)]
    return edges + [(v, v + 1 + r.randrange(ways)) for v in range(0, count - ways - 1) if r.random() < 0.06]


def encoder_decoder(r, count):
    """Two stacks of recurrent layers; each step of the second reads the end of every chain of the first (attention)."""
    layers = 4
    steps = max(2, count // (2 * layers + 1))
    edges = [(i * steps + j, (i + 1) * steps + j) for i in range(2 * layers - 1) for j in range(steps)]
    edges += [(i * steps + j, i * steps + j + 1) for i in range(2 * layers) for j in range(steps - 1)]
    return edges + [((layers - 1) * steps + j, layers * steps + r.randrange(steps)) for j in range(steps)]


def attention_blocks(r, count):
    """Blocks of several heads, residuals around them; one block (24 or 40 nodes) at least."""
    edges, x, v = [], 0, 1
    while v == 1 or v < count - 40:
        heads = r.choice([4, 8])
        ends = []
        for _ in range(heads):
            edges += [(x, v), (x, v + 1), (v, v + 2), (v + 1, v + 2), (v + 2, v + 3)]
            ends.append(v + 3)
            v += 4
        edges += [(u, v) for u in ends] + [(x, v)]
        edges += [(v, v + 1), (v + 1, v + 2), (v + 2, v + 3), (v, v + 3)]
        x, v = v + 3, v + 4
    return edges


FAMILIES = [layered, random_dag, series_parallel, grid, out_tree, in_tree, fork_join, wide, narrow, encoder_decoder,
            attention_blocks]

# What machines and costs may look like: accelerators, their memory as a multiple of all sizes, the processor's time over
# an accelerator's (smallest, largest), a transfer's time over a node's.
MACHINES = {
    'plain': (4, 8.0, 3, 10, 0.3),
    'mixed_speeds': (4, 8.0, 0.4, 12, 0.3),
    'small_memory': (6, 0.7, 3, 10, 0.3),
    'heavy_links': (4, 8.0, 4, 8, 3.0),
}


def make(family, machine, count, seed):
    """A problem as a dictionary of the file format."""
    r = random.Random('%s/%s/%d/%d' % (family.__name__, machine, count, seed))
    edges = sorted(set((u, v) for u, v in family(r, count) if u != v))
    count = 1 + max((v for e in edges for v in e), default=count - 1)
    accelerators, room, least, most, link = MACHINES[machine]
    nodes, cost, total = [], [], 0.0
    for v in range(count):
        acc = math.exp(r.gauss(0, 0.8))
        ratio = math.exp(r.uniform(math.log(least), math.log(most)))
        size = math.exp(r.gauss(0, 1)) * 1e6
        total += size
        nodes.append(dict(id=v, cpuLatency=acc * ratio, fpgaLatency=acc, size=size, isBackwardNode=0,
                          supportedOnFpga=0 if r.random() < 0.01 else 1))
        cost.append(link * math.exp(r.gauss(0, 0.8)))
    return dict(maxSizePerFPGA=total * room / accelerators, maxFPGAs=accelerators, maxCPUs=1, nodes=nodes,
                edges=[dict(sourceId=u, destId=v, cost=cost[u]) for u, v in edges])


def place(berth, path, model, budget):
    answer = path[:-5] + '.answer'
    command = [berth, 'place', path, '--objective', 'latency'] + (['--model', 'list'] if model == 'list' else [])
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command + ['--nodes' if budget.isdigit() else '--time-budget', budget, '--format', 'json', '--output', answer], check=True,
                   stdout=subprocess.DEVNULL)
    wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command + ['--check', answer], check=True, stdout=subprocess.DEVNULL)
    found = json.load(open(answer))
    if model == 'published':
        graph = bench_placement.Graph(path)
        bench_placement.check_limits(graph, found['assignment'])
        again = bench_placement.latency(graph, found['assignment'])
        assert abs(again - found['value']) <= 1e-6 * again, (path, again, found['value'])
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return dict(value=found['value'], bound=found['lower_bound'], gap=100 * found['gap'], cpu=cpu, wall=wall,
                strategy=found['strategy'])


def problems(options, folder):
    for size in options.sizes.split(','):
        for index, family in enumerate(FAMILIES):
            for machine in MACHINES if options.all_machines else [list(MACHINES)[index % len(MACHINES)]]:
                name = '%s_%s_%s' % (family.__name__, machine, size)
                if not fnmatch.fnmatch(name, options.only):
                    continue
                path = os.path.join(folder, name + '.json')
                with open(path, 'w') as f:
                    json.dump(make(family, machine, int(size), options.seed), f)
                yield name, path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--berth', default=os.path.join(ROOT, 'build', 'release', 'berth'))
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--sizes', default='300,2000')
    parser.add_argument('--budgets', default='3s,10s', help='times (3s) or search nodes (2000000), with commas between')
    parser.add_argument('--models', default='published,list')
    parser.add_argument('--only', default='*', help='pattern of names FAMILY_MACHINE_SIZE')
    parser.add_argument('--all-machines', action='store_true', help='each family on each machine, not on one of them')
    parser.add_argument('--keep', help='folder for the problems and answers')
    parser.add_argument('--json', help='also write the rows here')
    options = parser.parse_args()
    budgets, rows = options.budgets.split(','), []
    print('| problem | model | budget | value | bound | gap % | over % | by |\n|---|---|---:|---:|---:|---:|---:|---|')
    with tempfile.TemporaryDirectory() as folder:
        folder = options.keep or folder
        os.makedirs(folder, exist_ok=True)
        for name, path in problems(options, folder):
            for model in options.models.split(','):
                found = [place(options.berth, path, model, b) for b in budgets]
                best = min(f['value'] for f in found)
                for budget, f in zip(budgets, found):
                    f.update(name=name, model=model, budget=budget, over=100 * (f['value'] / best - 1))
                    rows.append(f)
                    print('| %s | %s | %s | %.5g | %.5g | %.2f | %.2f | %s |' % (
                        name, model, budget, f['value'], f['bound'], f['gap'], f['over'], f['strategy']), flush=True)
    if options.json:
        with open(options.json, 'w') as f:
            json.dump(rows, f, indent=1)
    print('\n| model | budget | median gap % | worst gap % | median over % | worst over % | most CPU s | most wall s |')
    print('|---|---:|---:|---:|---:|---:|---:|---:|')
    for model in options.models.split(','):
        for budget in budgets:
            of = [r for r in rows if r['model'] == model and r['budget'] == budget]
            if not of:
                continue
            mid = lambda key: sorted(r[key] for r in of)[len(of) // 2]
            print('| %s | %s | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f |' % (
                model, budget, mid('gap'), max(r['gap'] for r in of), mid('over'), max(r['over'] for r in of),
                max(r['cpu'] for r in of), max(r['wall'] for r in of)))


if __name__ == '__main__':
    sys.exit(main())
