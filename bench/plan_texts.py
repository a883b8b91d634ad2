#!/usr/bin/env python3
"""How long `berth opt --passes plan-devices` takes on texts of many operations, reading and printing included, and how that grows.

    python3 bench/plan_texts.py                        # 100,000 operations of every kind
    python3 bench/plan_texts.py --only chain,tuple --operations 10000 100000 1000000

Seconds are of the processor, in the command itself (user) and in the system for it.
"""
import argparse
import os
import random
import resource
import subprocess
import tempfile

TYPE = 'f32[64,64]'


def main_of(lines, results, params=f'%a: {TYPE}, %b: {TYPE}'):
    return [f'graph @main({params}) {{'] + ['  ' + line for line in lines] + ['  return ' + ', '.join(results), '}']


def chain(n):
    """Every operation reads the one before it."""
    lines = [f'%v{i} = add(%{f"v{i - 1}" if i else "a"}, %b)' for i in range(n)]
    return main_of(lines, [f'%v{n - 1}'])


def drawn(n, near=64, every=0):
    names, lines = ['a', 'b'], []
    for i in range(n):
        kind = random.choice(['add', 'mul', 'sub', 'relu', 'tanh'])
        pick = [f'%{random.choice(names[-near:] if near else names)}' for _ in range(1 if kind in ('relu', 'tanh') else 2)]
        lines.append(f'%v{i} = {kind}({", ".join(pick)})')
        names.append(f'v{i}')
        if every and i % every == 0:
            lines.append(f'%w{i} = on_device(%v{i}) {{device = {random.choice(["cpu:0", "opencl:0"])}}}')
            names[-1] = f'w{i}'
    return main_of(lines, ['%' + names[-1]])


def wide(n):
    """Half of them read one value, a chain reads their results."""
    half = n // 2
    lines = [f'%v{i} = tanh(%a)' for i in range(half)]
    lines += [f'%s{i} = add(%{f"s{i - 1}" if i else "b"}, %v{i})' for i in range(half)]
    return main_of(lines, [f'%s{half - 1}'])


def results(n):
    """All of them are results."""
    return main_of([f'%v{i} = tanh(%a)' for i in range(n)], [f'%v{i}' for i in range(n)])


def tuple_of(n):
    """All of them are fields of one tuple."""
    fields = ', '.join(f'%v{i}' for i in range(n))
    return main_of([f'%v{i} = tanh(%a)' for i in range(n)] + [f'%t = tuple({fields})', f'%r = tuple_get(%t) {{index = {n // 2}}}'], ['%r'])


def fields_of(n):
    """A third makes a tuple, a third reads its fields, a third adds them up."""
    third = n // 3
    lines = [f'%v{i} = tanh(%a)' for i in range(third)] + ['%t = tuple(' + ', '.join(f'%v{i}' for i in range(third)) + ')']
    for i in range(third):
        lines += [f'%g{i} = tuple_get(%t) {{index = {i}}}', f'%s{i} = add(%{f"s{i - 1}" if i else "b"}, %g{i})']
    return main_of(lines, [f'%s{third - 1}'])


def functions(n):
    """Functions of nine operations, each called once."""
    lines = []
    for i in range(n // 10):
        lines += [f'graph @f{i}(%x: {TYPE}) {{'] + [f'  %s{j} = neg(%{f"s{j - 1}" if j else "x"})' for j in range(9)] + ['  return %s8', '}']
    calls = [f'%v{i} = call @f{i}(%{f"v{i - 1}" if i else "a"})' for i in range(n // 10)]
    return lines + main_of(calls, [f'%v{n // 10 - 1}'])


def copies(n):
    """Every second one is an annotation, of both devices in turn."""
    lines, last = [], 'a'
    for i in range(n // 2):
        lines += [f'%v{i} = add(%{last}, %b)', f'%w{i} = on_device(%v{i}) {{device = {["cpu:0", "opencl:0"][i % 2]}}}']
        last = f'w{i}'
    return main_of(lines, ['%' + last])


def branches(n):
    """Ifs with an operation on either side."""
    lines, last = [], 'a'
    for i in range(n // 3):
        lines += [f'%v{i} = if(%c) {{', f'  %x{i} = neg(%{last})', f'  return %x{i}', '} else {', f'  %y{i} = tanh(%{last})', f'  return %y{i}', '}']
        last = f'v{i}'
    return main_of(lines, ['%' + last], f'%a: {TYPE}, %c: bool[]')


def constants(n):
    lines, last = [], 'a'
    for i in range(n // 2):
        lines += [f'%k{i} = constant() {{value = f32[4] ({i}, 1, 2, 3)}}', f'%v{i} = add(%{last}, %k{i})']
        last = f'v{i}'
    return main_of(lines, ['%' + last], '%a: f32[4]')


KINDS = {'chain': chain, 'near': drawn, 'anywhere': lambda n: drawn(n, 0), 'annotated': lambda n: drawn(n, 64, 10), 'wide': wide,
         'results': results, 'tuple': tuple_of, 'fields': fields_of, 'functions': functions, 'copies': copies,
         'branches': branches, 'constants': constants}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--berth', default='build/release/berth')
    parser.add_argument('--only', default=','.join(KINDS))
    parser.add_argument('--operations', type=int, nargs='+', default=[100000])
    parser.add_argument('--target', default='opencl,cpu')
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'text.txt')
        for kind in options.only.split(','):
            for count in options.operations:
                random.seed(2)
                with open(path, 'w') as file:
                    file.write('\n'.join(['module "m"'] + KINDS[kind](count)) + '\n')
                command = [options.berth, 'opt', path, '--passes', 'plan-devices', '--target', options.target]
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                print(f'{kind:10} {count:9,} operations: user {after.ru_utime - before.ru_utime:6.2f} s, '
                      f'system {after.ru_stime - before.ru_stime:5.2f} s', flush=True)


if __name__ == '__main__':
    main()
