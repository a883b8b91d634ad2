#!/usr/bin/env python3
"""Whose fault a gap of `berth place` for latency is, the search's or the bound's: small problems of the families of
placement_families.py, solved exactly.

    scripts/build.sh release
    python3 bench/placement_attribution.py [--sizes 14,18] [--seeds 1,2,3] [--models published,list]

A row for each family and model, over the problems whose optimum `auto` proves: by how much `search` ends above the optimum
(mean and largest), and by how much the bound of `bound`, which tries no placements one by one, is below it. At these sizes
nothing else is between value and bound. Of larger ones, bench/bench_planted.c knows the optimum of some.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import placement_families as families


def solve(options, path, model, strategy, nodes):
    answer = path[:-5] + '.answer'
    command = [options.berth, 'place', path, '--objective', 'latency', '--strategy', strategy, '--nodes', str(nodes)]
    command += ['--model', 'list'] if model == 'list' else []
    subprocess.run(command + ['--format', 'json', '--output', answer], check=True, stdout=subprocess.DEVNULL)
    return json.load(open(answer))


def look(options, family, machine, model, path):
    """(value over the optimum, bound under it) in per cent, of every problem that is proven."""
    found, missed = [], 0
    for size in options.sizes.split(','):
        for seed in options.seeds.split(','):
            problem = families.make(family, machine, int(size), int(seed))
            if len(problem['nodes']) > int(size) + 2:
                continue  # smaller than the family's smallest
            with open(path, 'w') as f:
                json.dump(problem, f)
            exact = solve(options, path, model, 'auto', options.nodes)
            if not exact['proven']:
                missed += 1
                continue
            value = solve(options, path, model, 'search', options.search)['value']
            bound = solve(options, path, model, 'bound', options.search)['lower_bound']
            found.append((100 * (value / exact['value'] - 1), 100 * (1 - bound / exact['value'])))
    return found, missed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--berth', default=os.path.join(families.ROOT, 'build', 'release', 'berth'))
    parser.add_argument('--sizes', default='14,18')
    parser.add_argument('--seeds', default='1,2,3')
    parser.add_argument('--models', default='published,list')
    parser.add_argument('--nodes', type=int, default=20000000, help='search nodes for the optimum')
    parser.add_argument('--search', type=int, default=500000, help='search nodes for what is compared with it')
    options = parser.parse_args()
    print('| problem | model | proven | search over optimum %: mean | largest | bound under optimum %: mean | largest |')
    print('|---|---|---:|---:|---:|---:|---:|')
    with tempfile.TemporaryDirectory() as folder:
        for index, family in enumerate(families.FAMILIES):
            machine = list(families.MACHINES)[index % len(families.MACHINES)]
            for model in options.models.split(','):
                found, missed = look(options, family, machine, model, os.path.join(folder, 'p.json'))
                if not found:
                    continue
                over, under = [f[0] for f in found], [f[1] for f in found]
                print('| %s_%s | %s | %d of %d | %.1f | %.1f | %.1f | %.1f |' % (
                    family.__name__, machine, model, len(found), len(found) + missed, sum(over) / len(over), max(over),
                    sum(under) / len(under), max(under)), flush=True)


if __name__ == '__main__':
    sys.exit(main())
