#!/usr/bin/env python3
"""Throughput of models in two stages on two devices, with several requests at once, beside its bottleneck.

    scripts/build.sh release
    POCL_MAX_PTHREAD_COUNT=1 python3 bench/pipeline.py MODEL.onnx --devices cpu:0,opencl:0 --split 17
    POCL_DEVICES="pthread pthread" POCL_MAX_PTHREAD_COUNT=1 python3 bench/pipeline.py MODEL.onnx --devices opencl:0,opencl:1 --split 17

The first SPLIT operations run on the first device, the others on the second; without --split as many as are predicted to take
half of the time that one device takes for all. "busy_ms" is what each device works for one request
that runs alone (median of runs with a profile). Devices that the target says compute with the same thing ("resource": PoCL's
devices of one pool, or with all of the host's cores) take turns, so their times add up; the largest time is the bottleneck: no
pipeline can do more than one request in that time. "of_bottleneck" is the throughput of `berth bench --streams N --share` times the bottleneck: 1 = it never waits.
"predicted_per_s" is what `berth simulate` says of as many streams, by the cost model alone; with --costs FILE by what
`berth calibrate` has measured on each device (on its own, of the same model, with as many threads). On one machine
both devices must have cores of their own for this to mean anything: here one thread each.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BERTH = os.path.join(ROOT, 'build/release/berth')


def berth(*arguments):
    process = subprocess.run([BERTH, *arguments, '--quiet', '--format=json'], stdout=subprocess.PIPE)
    if process.returncode != 0:
        sys.exit('berth %s: exit status %d' % (arguments[0], process.returncode))
    return json.loads(process.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('models', nargs='+', metavar='model')
    parser.add_argument('--devices', default='cpu:0,opencl:0')
    parser.add_argument('--split', type=int, help='operations of the first stage')
    parser.add_argument('--dim', action='append', default=[])
    parser.add_argument('--streams', default='1,2,3,4')
    parser.add_argument('--count', type=int, default=100, help='requests of each stream')
    parser.add_argument('--costs', help='as `berth calibrate` writes them, for predictions')
    parser.add_argument('--rounds', type=int, default=3, help='the best of so many is taken')
    options = parser.parse_args()
    for model in options.models:
        measure(model, options)


def half(operations):
    """How many operations take half of the time of all, by the prediction."""
    times = [operation['time_us'] for operation in operations]
    return 1 + next(i for i in range(len(times)) if sum(times[:i + 1]) >= sum(times) / 2)


def measure(model, options):
    first, second = options.devices.split(',')
    kinds = [device.split(':')[0] for device in (first, second)]
    target = ['--target', 'cpu -cores=1,' + ('opencl' if 'cpu' in kinds else 'opencl,opencl')]
    for dim in options.dim:
        target += ['--dim', dim]
    plan = berth('plan', model, *target)
    nodes = [operation['node'] for operation in plan['operations']]
    split = options.split if options.split is not None else half(plan['operations'])
    # What each device computes with; one that says nothing, with something of its own.
    resources = {d['name']: d['target'].get('resource', 'host' if d['target']['kind'] == 'cpu' else None)
                 for d in plan['target']['devices']}
    for i, node in enumerate(nodes):
        target += ['--pin', '%s=%s' % (node, first if i < split else second)]
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, 'two_stages.berth')
        berth('build', model, *target, '-o', program)
        profiles = [berth('run', program, '--threads', '1', '--profile', '--repeat', '20')['devices'] for _ in range(5)]
        busy = {d: statistics.median(p[d]['busy_ms'] for p in profiles) for d in (first, second)}
        bottleneck_ms = sum(busy.values()) if resources[first] and resources[first] == resources[second] else max(busy.values())
        rows = []
        for streams in map(int, options.streams.split(',')):
            measured = [berth('bench', program, '--threads', '1', '--share', '--streams', str(streams), '--count', str(options.count))
                        ['throughput_per_s'] for _ in range(options.rounds)]
            simulated = berth('simulate', model, *target, '--streams', str(streams), '--requests', str(20 * streams),
                              *(['--costs', options.costs] if options.costs else []))
            rows.append({'streams': streams, 'throughput_per_s': round(max(measured), 1),
                         'of_bottleneck': round(max(measured) * bottleneck_ms / 1e3, 3),
                         'predicted_per_s': round(simulated['throughput_per_s'], 1)})
        print(json.dumps({'model': model, 'devices': options.devices, 'split': split, 'cores': os.cpu_count(),
                          'busy_ms': busy, 'resources': [resources[first], resources[second]], 'bottleneck_per_s': round(1e3 / bottleneck_ms, 1), 'rows': rows}), flush=True)


if __name__ == '__main__':
    main()
