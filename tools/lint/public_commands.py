#!/usr/bin/env python3
"""The command uses the public interface: a file of tools/ sees, through whatever it includes, only include/berth, tools/ and
the utilities of base/ below, but for the files that internal_commands.txt names. Prints what breaks that; exit status 1 then.
The list only becomes shorter: a file in it that needs it no more, or that is gone, is said, too."""
import os
import re
import sys

os.chdir(os.path.join(os.path.dirname(__file__), "..", ".."))
# Texts, files, memory and clocks: no types of the library.
utilities = {f"base/{name}.h" for name in "alloc arena atomics axis clock dtype file interrupt status str tensor".split()}


def included(path, seen):
    """The files that `path` sees of this tree, by way of which."""
    for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', open(path, encoding="utf-8").read(), re.M):
        if name in seen or not os.path.exists(name):
            continue
        seen[name] = path
        included(name, seen)
    return seen


listed = [line.split("#")[0].strip() for line in open("tools/lint/internal_commands.txt", encoding="utf-8")]
listed = [line for line in listed if line]
wrong = 0
for file in sorted(os.path.join("tools", name) for name in os.listdir("tools") if name.endswith(".c")):
    seen = included(file, {})
    internal = sorted(name for name in seen if not name.startswith("tools/") and name not in utilities)
    if internal and file not in listed:
        print(f"lint: {file} sees {internal[0]} by way of {seen[internal[0]]}: commands use include/berth", file=sys.stderr)
        wrong += 1
    if not internal and file in listed:
        print(f"lint: {file} is in tools/lint/internal_commands.txt, and sees nothing internal: remove it there", file=sys.stderr)
        wrong += 1
for file in listed:
    if not os.path.exists(file):
        print(f"lint: {file} is in tools/lint/internal_commands.txt, and not there", file=sys.stderr)
        wrong += 1
sys.exit(1 if wrong else 0)
