#!/usr/bin/env python3
"""`berth place` over a folder of placement problems, beside published results, as a table in markdown.

    scripts/build.sh release
    python3 bench/bench_placement.py ../shared/placement [--time-budget 10s | --nodes N] [--only GLOB] [--json FILE]

FOLDER/throughput/*.json are solved for throughput, without and with --contiguous, FOLDER/latency/*.json for latency; in
a folder without these two, each problem is solved for both. One process with one thread at a time; `CPU s` is processor
time, reading the file included (what the wall clock shows where nothing else runs), `MiB` peak resident memory. Every
answer is valued again by the few lines of Python below, which know nothing of Berth; one that is wrong ends the program
with status 1. The published figures are in bench/placement_published.csv.
"""
import argparse
import csv
import fnmatch
import json
import os
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Graph:
    """A problem as the definitions need it: times, successors, transfer costs."""

    def __init__(self, path):
        data = json.load(open(path))
        self.capacity, self.accelerators, self.cpus = data['maxSizePerFPGA'], data['maxFPGAs'], data['maxCPUs']
        self.nodes = {str(n['id']): n for n in data['nodes']}
        self.succ, self.pred, self.cost = ({v: set() for v in self.nodes}, {v: set() for v in self.nodes}, {})
        for e in data['edges']:
            u, v = str(e['sourceId']), str(e['destId'])
            self.succ[u].add(v)
            self.pred[v].add(u)
            self.cost[u] = e['cost']


def check_limits(g, at):
    assert set(at) == set(g.nodes)
    known = {'acc%d' % i for i in range(g.accelerators)} | {'cpu%d' % i for i in range(g.cpus)}
    size, colour = {}, {}
    for v, n in g.nodes.items():
        assert at[v] in known
        if at[v].startswith('acc'):
            assert n.get('supportedOnFpga', True)
            size[at[v]] = size.get(at[v], 0) + n['size']
        if n.get('colorClass') is not None:
            assert colour.setdefault(n['colorClass'], at[v]) == at[v]
    assert all(s <= g.capacity * (1 + 1e-9) for s in size.values())


def time_of(g, at, v):
    return g.nodes[v]['fpgaLatency' if at[v].startswith('acc') else 'cpuLatency']


def transfers(g, at, d):
    """What accelerator d reads and writes."""
    mine = [v for v in g.nodes if at[v] == d]
    reads = {u for v in mine for u in g.pred[v] if at[u] != d}
    writes = {v for v in mine if any(at[w] != d for w in g.succ[v])}
    return sum(g.cost[u] for u in reads) + sum(g.cost[v] for v in writes)


def throughput(g, at, contiguous):
    load = {}
    for v in g.nodes:
        load[at[v]] = load.get(at[v], 0) + time_of(g, at, v)
    if contiguous:
        forward = [v for v in g.nodes if not g.nodes[v].get('isBackwardNode')]
        before = {d: set() for d in load}
        for v in forward:
            before[at[v]] |= {at[u] for u in g.pred[v] if u in set(forward) and at[u] != at[v]}
        while before:
            first = [d for d in before if not before[d] & set(before)]
            assert first, 'not contiguous'
            del before[first[0]]
    return max(load[d] + (transfers(g, at, d) if d.startswith('acc') else 0) for d in load)


def latency(g, at):
    done = {}
    units = {}
    for v in g.nodes:
        units.setdefault(at[v] if at[v].startswith('acc') else 'node ' + v, []).append(v)
    while units:
        ready = None
        for name, members in units.items():
            inputs = {u for v in members for u in g.pred[v]} - set(members)
            if all(u in done for u in inputs):
                ready = name, members, inputs
                break
        assert ready, 'subgraphs wait for each other'
        name, members, inputs = ready
        end = max([done[u] for u in inputs], default=0) + sum(time_of(g, at, v) for v in members)
        end += transfers(g, at, name) if not name.startswith('node ') else 0
        done.update({v: end for v in members})
        del units[name]
    return max(done.values())


def solve(args, path, objective, contiguous):
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, 'answer.json')
        command = [args.berth, 'place', path, '--objective', objective, '--format', 'json', '--output', out, '--quiet']
        command += ['--nodes', args.nodes] if args.nodes else ['--time-budget', args.time_budget]
        command += ['--contiguous'] if contiguous else []
        start = time.monotonic()
        process = subprocess.Popen(command)
        _, status, usage = os.wait4(process.pid, 0)
        if status != 0:
            raise SystemExit('%s: status %d' % (' '.join(command), status))
        answer = json.load(open(out))
    answer['seconds'], answer['mebibytes'] = time.monotonic() - start, usage.ru_maxrss / 1024
    answer['cpu_seconds'] = usage.ru_utime + usage.ru_stime
    graph = Graph(path)
    check_limits(graph, answer['assignment'])
    value = latency(graph, answer['assignment']) if objective == 'latency' else \
        throughput(graph, answer['assignment'], contiguous)
    if abs(value - answer['value']) > 1e-9 * value:
        raise SystemExit('%s: says %r, is %r' % (path, answer['value'], value))
    return answer


def published():
    rows = csv.DictReader(line for line in open(os.path.join(ROOT, 'bench', 'placement_published.csv'))
                          if not line.startswith('#'))
    return {(r['objective'], r['graph']): r for r in rows}


def figure(value):
    return '%.5g' % value


def cells(answer):
    gap = '0' if answer['proven'] else '%.2f' % (100 * answer['gap'])
    return [figure(answer['value']), figure(answer['lower_bound']), gap, '%.1f' % answer['cpu_seconds'],
            '%.0f' % answer['mebibytes']]


def known(row, *names):
    if not row:
        return '–'
    texts = [row[n] or '–' for n in names]
    return texts[0] + (' [%s]' % texts[1] if len(texts) > 1 and texts[1] != '–' else '')


def print_table(heads, rows):
    print('| ' + ' | '.join(heads) + ' |')
    print('|---' + '|---:' * (len(heads) - 1) + '|')
    for row in rows:
        print('| ' + ' | '.join(row) + ' |')
    print(flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('folder')
    parser.add_argument('--berth', default=os.path.join(ROOT, 'build', 'release', 'berth'))
    parser.add_argument('--time-budget', default='10s')
    parser.add_argument('--nodes', help='instead of a time: search nodes, for the same answers every time')
    parser.add_argument('--only', default='*', help='names of problems, such as "operator_*"')
    parser.add_argument('--json', help='also write every figure here')
    args = parser.parse_args()
    both = not any(os.path.isdir(os.path.join(args.folder, o)) for o in ('throughput', 'latency'))
    facts, results = published(), []
    for objective in ('throughput', 'latency'):
        folder = args.folder if both else os.path.join(args.folder, objective)
        rows, runs = [], (False, True) if objective == 'throughput' else (False,)
        for name in sorted(os.listdir(folder) if os.path.isdir(folder) else []):
            graph = name[:-5]
            if not name.endswith('.json') or not fnmatch.fnmatch(graph, args.only):
                continue
            row = facts.get((objective, graph))
            line = [graph]
            for contiguous in runs:
                answer = solve(args, os.path.join(folder, name), objective, contiguous)
                results.append(dict(answer, graph=graph, contiguous=contiguous))
                line += cells(answer) + [known(row, *(('published',) if contiguous else ('best', 'best_bound')))]
                print('%s %s%s: %s' % (graph, objective, ' contiguous' if contiguous else '', ' '.join(cells(answer))),
                      file=sys.stderr, flush=True)
            rows.append(line + [known(row, 'bound')] + ([known(row, 'published')] if len(runs) == 1 else []))
        shared = ['value', 'bound', 'gap %', 'CPU s', 'MiB']
        if objective == 'throughput':
            print_table(['throughput, ms'] + shared + ['best known [bound]'] + ['contiguous'] + shared[1:] +
                        ['published DP', 'relaxation'], rows)
        else:
            print_table(['latency, ms'] + shared + ['best known', 'critical path', 'published greedy'], rows)
    if args.json:
        with open(args.json, 'w') as out:
            json.dump(results, out, indent=1)


if __name__ == '__main__':
    main()
