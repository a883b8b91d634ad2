#!/usr/bin/env python3
"""Static memory allocation on generated families of problems: how many are proven, with how many nodes, beside CP-SAT.

    scripts/build.sh release
    python3 -m pip install ortools                    # for the comparison; --no-peer leaves it out
    python3 bench/memory_families.py [--set look|held] [--family NAME]... [--count 12] [--seconds 10] [--no-peer]
    python3 bench/memory_families.py --write FOLDER   # the CSV files alone

Two sets of the same families from different seeds: `look` is for work on the solver, `held` only for measuring what that
work is worth elsewhere. Prints a JSON line per problem and a table at the end. Seconds are processor time of the one
process; CP-SAT runs with --workers threads (default 1: as much of the machine as Berth has).
"""
import argparse
import json
import math
import os
import random
import resource
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SEEDS = {'look': 1, 'held': 1000003}


# Every family returns rows of (lower, upper, size, alignment). `d` is a random.Random.

def mixed(d):
    """12 to 40 small buffers with alignments up to 8 in few steps of time."""
    times = d.randint(4, 10)
    rows = []
    for _ in range(d.randint(12, 40)):
        lower = d.randrange(times)
        rows.append((lower, min(times, lower + d.randint(1, 4)), d.randint(1, 4), 1 << d.randrange(4)))
    return rows


def aligned(d):
    """12 to 40 buffers of up to 200 bytes, alignments up to 64."""
    times = d.randint(5, 16)
    rows = []
    for _ in range(d.randint(12, 40)):
        lower = d.randrange(times)
        rows.append((lower, lower + d.randint(1, 6), d.randint(1, 200), 1 << d.randrange(7)))
    return rows


def pages(d):
    """Alignments of 1 to 4096 in the same memory."""
    times = d.randint(5, 12)
    rows = []
    for _ in range(d.randint(12, 32)):
        lower = d.randrange(times)
        alignment = 1 << d.choice([0, 3, 6, 8, 12])
        rows.append((lower, lower + d.randint(1, 5), d.randint(1, 3 * alignment + 64), alignment))
    return rows


def fill(d, times, capacity, length, size, misses):
    """Buffers at random places as long as the largest live sum stays within the capacity."""
    live = [0] * times
    rows = []
    while misses > 0:
        lower = d.randrange(times)
        upper = min(times, lower + length())
        need = size()
        if max(live[lower:upper]) + need > capacity:
            misses -= 1
            continue
        for t in range(lower, upper):
            live[t] += need
        rows.append((lower, upper, need, 1))
    return rows


def cut(d, times, height, count):
    """A full rectangle in guillotine cuts."""
    pieces = [[0, times, height]]
    while len(pieces) < count:
        piece = d.choice(pieces)
        along_time = d.random() < 0.5
        extent = piece[1] - piece[0] if along_time else piece[2]
        if extent < 2:
            continue
        at = d.randint(1, extent - 1)
        if along_time:
            pieces.append([piece[0] + at, piece[1], piece[2]])
            piece[1] = piece[0] + at
        else:
            pieces.append([piece[0], piece[1], piece[2] - at])
            piece[2] = at
    return [(a, b, s, 1) for a, b, s in pieces]


def fixed(d):
    """Two to four sizes, filled: the optimum is often above the largest live sum."""
    sizes = d.sample(range(2, 10), d.randint(2, 4))
    capacity = d.randint(2, 5) * max(sizes)
    return fill(d, d.randint(8, 30), capacity, lambda: d.randint(1, 9), lambda: d.choice(sizes), 200)


def hats(d):
    """Forward and backward passes, also nested: what step i makes lives until its mirror image, with work beside it."""
    rows = []
    start = 0
    for _ in range(d.randint(1, 3)):
        n = d.randint(8, 24)
        for i in range(n):
            rows.append((start + i, start + 2 * n - i, d.randint(1, 60), 1))
            for _ in range(d.randint(1, 2)):
                at = start + d.randrange(2 * n - 2)
                rows.append((at, at + d.randint(1, 6), d.randint(20, 200), 1))
        start += d.randint(n // 2, 2 * n)
    return rows


def network(d):
    """Branches that run interleaved, and skips: sizes of activations, alignment 64."""
    n = d.randint(40, 160)
    width = d.randint(1, 6)
    sizes = [d.choice([7, 14, 28, 56]) ** 2 * d.choice([16, 24, 32, 64, 96, 128]) for _ in range(12)]
    rows = []
    for i in range(n):
        far = d.random() < 0.15
        length = d.randint(8, 40) if far else d.randint(1, 2 * width)
        rows.append((i, i + 1 + length, d.choice(sizes[i * 8 // n:i * 8 // n + 5]), 64))
    return rows


def strips(d):
    """A full rectangle in guillotine cuts, of which some pieces are gone: fits its height, with a little room."""
    height = d.choice([200, 1000, 5000])
    rows = cut(d, d.randint(30, 120), height, d.randint(40, 300))
    gone = d.choice([0, 0.02, 0.05, 0.1]) * len(rows)
    return d.sample(rows, len(rows) - int(gone))


def minimalloc(d):
    """As the published challenging problems: cut from a square of 1024 blocks and thinned, or sizes and lifetimes of one kind."""
    if d.random() < 0.6:
        rows = cut(d, 1024, 1024, d.randint(150, 420))
        gone = d.choice([0.01, 0.03, 0.1, 0.2])
        rows = [row for row in rows if d.random() > gone]
    else:
        size, length = d.randint(40, 80), d.randint(24, 40)
        rows = fill(d, 1024, 1024, lambda: max(8, int(d.gauss(length, length / 4))),
                    lambda: max(24, int(d.gauss(size, size / 4))), d.randint(1, 30))
    return [(a, b, s * 1024, 1) for a, b, s, _ in rows]


def gaps(d):
    """Few large buffers per moment in chains, filled: the optimum is above the largest live sum."""
    largest = d.choice([9, 30, 100])
    times = d.randint(8, 30)
    return fill(d, times, d.randint(2 * largest, 5 * largest), lambda: d.randint(1, max(2, times // 3)),
                lambda: d.randint(largest // 3, largest), 100)


def large(d):
    """4,200 to 30,000 buffers with short lifetimes in one connected part."""
    rows = []
    longest = d.choice([10, 30, 60])
    for i in range(d.randint(4200, 30000)):
        length = d.randint(1, 40 * longest) if d.random() < 0.01 else d.randint(1, longest)
        rows.append((i, i + length, d.randint(1, 1000), 1))
    return rows


FAMILIES = {f.__name__: f for f in [mixed, aligned, pages, fixed, hats, network, strips, minimalloc, gaps, large]}


def problems(which, families, count):
    for name in families:
        for number in range(count):
            seed = SEEDS[which] + number
            yield f'{name}.{which}.{number}', name, FAMILIES[name](random.Random(f'{name} {seed}'))


def write_csv(path, rows):
    with open(path, 'w') as file:
        file.write('id,lower,upper,size,alignment\n')
        for i, row in enumerate(rows):
            file.write(f'{i},{row[0]},{row[1]},{row[2]},{row[3]}\n')


def run_berth(berth, path, seconds, nodes):
    limit = ['--nodes', str(nodes)] if nodes else ['--time-budget', f'{int(seconds * 1000)}ms']
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([berth, 'memory', 'solve', path, '--minimize', '--format', 'json'] + limit,
                          capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise SystemExit(f'{path}: {done.stderr}')
    result = json.loads(done.stdout)
    return {'height': result['height'], 'bound': result['lower_bound'], 'proven': result['proven'],
            'nodes': result['nodes'], 'seconds': round(after.ru_utime - before.ru_utime, 3)}


def run_peer(rows, seconds, workers):
    """CP-SAT on the usual model: a rectangle per buffer, no two overlap; offsets in units of their alignment."""
    from ortools.sat.python import cp_model
    model = cp_model.CpModel()
    total = sum(size + alignment for _, _, size, alignment in rows)
    height = model.new_int_var(max(size for _, _, size, _ in rows), total, 'height')
    times, places, offsets = [], [], []
    for i, (lower, upper, size, alignment) in enumerate(rows):
        slot = model.new_int_var(0, total // alignment, f's{i}')
        offset = alignment * slot
        offsets.append(offset)
        model.add(offset + size <= height)
        times.append(model.new_fixed_size_interval_var(lower, upper - lower, f't{i}'))
        places.append(model.new_fixed_size_interval_var(offset, size, f'p{i}'))
    model.add_no_overlap_2d(times, places)
    model.add_cumulative(times, [row[2] for row in rows], height)
    model.minimize(height)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = workers
    start = time.process_time()
    status = solver.solve(model)
    found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    return {'height': int(solver.objective_value) if found else None, 'bound': math.ceil(solver.best_objective_bound),
            'proven': status == cp_model.OPTIMAL, 'seconds': round(time.process_time() - start, 3)}


def largest_live(rows):
    events = sorted([(lower, 1, size) for lower, _, size, _ in rows] + [(upper, 0, -size) for _, upper, size, _ in rows])
    live = most = 0
    for _, _, change in events:
        live += change
        most = max(most, live)
    return most


def table(results, peer):
    print(f'{"family":<12}{"problems":>9}{"proven":>8}{"gap %":>8}{"nodes":>12}{"seconds":>9}' +
          (f'{"CP-SAT":>8}{"gap %":>8}{"seconds":>9}' if peer else ''))
    for name in list(dict.fromkeys(r['family'] for r in results)) + ['all']:
        rows = [r for r in results if name in (r['family'], 'all')]
        best = [min(r['berth']['height'], (r.get('peer') or {}).get('height') or 1 << 62) for r in rows]
        gap = 100 * sum(r['berth']['height'] / r['berth']['bound'] - 1 for r in rows) / len(rows)
        line = (f'{name:<12}{len(rows):>9}{sum(r["berth"]["proven"] for r in rows):>8}{gap:>8.2f}'
                f'{sum(r["berth"]["nodes"] for r in rows):>12}{sum(r["berth"]["seconds"] for r in rows):>9.1f}')
        if peer:
            over = 100 * sum((r['peer']['height'] or math.inf) / r['peer']['bound'] - 1 for r in rows) / len(rows)
            line += (f'{sum(r["peer"]["proven"] for r in rows):>8}{over:>8.2f}'
                     f'{sum(r["peer"]["seconds"] for r in rows):>9.1f}')
        worse = sum(r['berth']['height'] > b for r, b in zip(rows, best))
        print(line + (f'   {worse} higher than the other' if worse else ''))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--set', choices=SEEDS, default='look')
    parser.add_argument('--family', action='append', choices=FAMILIES, metavar='NAME', help=', '.join(FAMILIES))
    parser.add_argument('--count', type=int, default=12, help='problems of each family')
    parser.add_argument('--seconds', type=float, default=10)
    parser.add_argument('--nodes', type=int, help='a node budget in place of --seconds')
    parser.add_argument('--workers', type=int, default=1)
    parser.add_argument('--berth', default=os.path.join(ROOT, 'build/release/berth'))
    parser.add_argument('--no-peer', action='store_true')
    parser.add_argument('--write', metavar='FOLDER')
    options = parser.parse_args()
    families = options.family or list(FAMILIES)
    results = []
    with tempfile.TemporaryDirectory() as scratch:
        for name, family, rows in problems(options.set, families, options.count):
            path = os.path.join(options.write or scratch, name + '.csv')
            os.makedirs(os.path.dirname(path), exist_ok=True)
            write_csv(path, rows)
            if options.write:
                continue
            result = {'problem': name, 'family': family, 'buffers': len(rows), 'live': largest_live(rows),
                      'berth': run_berth(options.berth, path, options.seconds, options.nodes)}
            if not options.no_peer:
                result['peer'] = run_peer(rows, options.seconds, options.workers)
            results.append(result)
            print(json.dumps(result), flush=True)
    if results:
        table(results, not options.no_peer)
    return 0


if __name__ == '__main__':
    sys.exit(main())
