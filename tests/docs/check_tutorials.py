#!/usr/bin/env python3
"""Does what docs/tutorials/*.md say, in an empty folder, and compares what every command prints.

Usage: check_tutorials.py BUILD_FOLDER [NAME...]

In a block ```console, "$ " begins a command, and what follows is what it prints; "..." stands for any text. A block after
<!-- file NAME --> is that file. Commands find an installation of the build, its libraries and its Python package.
"""
import doctest
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BLOCK = re.compile(r'(?:<!-- file (?P<file>\S+) -->\n)?```(?P<kind>\w*)\n(?P<text>.*?)^```$', re.M | re.S)


def python_with_numpy():
    for python in (shutil.which('python3'), '/usr/bin/python3'):
        if python and subprocess.run([python, '-c', 'import numpy'], stderr=subprocess.DEVNULL).returncode == 0:
            return python
    sys.exit('no python3 here has NumPy (Debian package python3-numpy)')


def environment(prefix, tools):
    os.mkdir(tools)
    with open(os.path.join(tools, 'python3'), 'w', encoding='utf-8') as file:
        file.write('#!/bin/sh\nexec %s "$@"\n' % python_with_numpy())
    os.chmod(os.path.join(tools, 'python3'), 0o755)
    [pc] = glob.glob(prefix + '/**/berth.pc', recursive=True)
    libraries = os.path.dirname(os.path.dirname(pc))
    return dict(os.environ, PATH='%s:%s/bin:%s' % (tools, prefix, os.environ['PATH']), PKG_CONFIG_PATH=os.path.dirname(pc),
                LD_LIBRARY_PATH=libraries, BERTH_LIBRARY_DIR=libraries, PYTHONPATH=os.path.join(ROOT, 'python'), LC_ALL='C')


def commands(text):
    """[(command, what it prints)]"""
    found = []
    for line in text.splitlines(keepends=True):
        if line.startswith('$ '):
            found.append([line[2:].rstrip('\n'), ''])
        else:
            found[-1][1] += line
    return found


def run_tutorial(path, env):
    """(commands run, failures)"""
    with open(path, encoding='utf-8') as file:
        text = file.read()
    checker, count, failures = doctest.OutputChecker(), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(os.path.join(ROOT, 'examples'), os.path.join(folder, 'examples'))
        for block in BLOCK.finditer(text):
            if block['file']:
                with open(os.path.join(folder, block['file']), 'w', encoding='utf-8') as file:
                    file.write(block['text'])
            for command, expected in commands(block['text']) if block['kind'] == 'console' else ():
                count += 1
                done = subprocess.run(['bash', '-c', 'set -o pipefail; ' + command], cwd=folder, env=env, text=True,
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
                refused = '2>&1 | head' in command  # what is shown to fail
                if not checker.check_output(expected, done.stdout, doctest.ELLIPSIS) or (done.returncode != 0) != refused:
                    failures += 1
                    print('%s: $ %s\nprints, with exit status %d:\n%sand not:\n%s' % (
                        os.path.basename(path), command, done.returncode, done.stdout, expected))
    return count, failures


def main():
    build, names = os.path.abspath(sys.argv[1]), sys.argv[2:]
    paths = sorted(glob.glob(os.path.join(ROOT, 'docs/tutorials/*.md')))
    if len(paths) < 3:
        sys.exit('the tutorials were not found')
    total = failed = 0
    with tempfile.TemporaryDirectory() as work:
        prefix = os.path.join(work, 'prefix')
        subprocess.run(['cmake', '--install', build, '--prefix', prefix], check=True, stdout=subprocess.DEVNULL)
        env = environment(prefix, os.path.join(work, 'tools'))
        for path in paths:
            if not names or os.path.splitext(os.path.basename(path))[0] in names:
                count, failures = run_tutorial(path, env)
                total, failed = total + count, failed + failures
    print('%d commands of the tutorials, %d failed' % (total, failed))
    sys.exit(1 if failed or not total else 0)


if __name__ == '__main__':
    main()
