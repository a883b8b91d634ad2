#!/usr/bin/env python3
"""Every C file as the preset "fuzz" compiles it, by Clang, without code: what GCC takes and Clang refuses would otherwise
first be seen when somebody fuzzes. Usage: check_clang.py SOURCES"""
import concurrent.futures, json, os, shlex, shutil, subprocess, sys, tempfile

def main():
    sources = sys.argv[1]
    if not shutil.which('clang'):
        sys.exit('clang is missing: scripts/install_deps.sh installs it')
    with tempfile.TemporaryDirectory(prefix='berth-clang-') as build:
        made = subprocess.run(['cmake', '--preset', 'fuzz', '-B', build, '-DCMAKE_EXPORT_COMPILE_COMMANDS=ON'], cwd=sources,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if made.returncode:
            sys.exit(made.stdout)
        entries = {}
        for entry in json.load(open(os.path.join(build, 'compile_commands.json'))):
            if not entry['file'].startswith(build):  # what a build writes is not there yet
                entries.setdefault(entry['file'], entry)

        def check(entry):
            words = shlex.split(entry['command'])
            at = words.index('-o')
            del words[at:at + 2]
            words = [w for w in words if w not in ('-c', '-g') and not w.startswith('-M')]
            words = words[next(i for i, w in enumerate(words) if os.path.basename(w).startswith('clang')):]
            done = subprocess.run(words + ['-fsyntax-only'], cwd=entry['directory'], capture_output=True, text=True)
            missing_build_file = f"'{build}" in done.stderr and 'file not found' in done.stderr
            return None if done.returncode == 0 or missing_build_file else done.stderr

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 2) as pool:
            faults = [f for f in pool.map(check, entries.values()) if f]
    for fault in faults:
        print(fault[:2000])
    print(f'{len(entries)} files compiled by clang, {len(faults)} refused')
    if faults or len(entries) < 400:
        sys.exit(1)

main()
