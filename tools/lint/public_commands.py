#!/usr/bin/env python3
"""The command uses the public interface: a file of tools/ sees, through whatever it includes, only include/berth, tools/ and
the utilities below. Prints what breaks that; exit status 1 then."""
import os
import re
import sys

os.chdir(os.path.join(os.path.dirname(__file__), "..", ".."))
# Texts, files, pictures, memory, clocks and limits: no types of the library.
utilities = {f"base/{name}.h" for name in "alloc arena atomics axis clock dtype file interrupt limits status str tensor trace".split()} | {"image/image.h"}


def included(path, seen):
    """The files that `path` sees of this tree, by way of which."""
    for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', open(path, encoding="utf-8").read(), re.M):
        if name in seen or not os.path.exists(name):
            continue
        seen[name] = path
        included(name, seen)
    return seen


wrong = 0
for file in sorted(os.path.join("tools", name) for name in os.listdir("tools") if name.endswith((".c", ".h"))):
    seen = included(file, {})
    for name in sorted(name for name in seen if not name.startswith("tools/") and name not in utilities)[:1]:
        print(f"lint: {file} sees {name} by way of {seen[name]}: commands use include/berth", file=sys.stderr)
        wrong += 1
sys.exit(1 if wrong else 0)
