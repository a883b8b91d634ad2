#!/usr/bin/env python3
"""Headers that include each other in a circle. Run from the root of the tree; exit status 1 when there are some."""
import pathlib
import re
import sys

INCLUDE = re.compile(r'^#include ["<]([^">]+)[">]', re.M)


def headers():
    for path in pathlib.Path(".").rglob("*.h"):
        if path.parts[0] not in ("build", ".git"):
            name = str(path)
            yield name.removeprefix("include/"), INCLUDE.findall(path.read_text())


def circles(graph):
    """Paths from a header back to itself, each circle once: depth first, a header under work that is met again."""
    state, path, found = {}, [], []

    def visit(name):
        state[name] = "open"
        path.append(name)
        for other in graph.get(name, ()):
            if state.get(other) == "open":
                found.append(path[path.index(other):] + [other])
            elif other not in state:
                visit(other)
        path.pop()
        state[name] = "done"

    for name in sorted(graph):
        if name not in state:
            visit(name)
    return found


found = circles(dict(headers()))
for circle in found:
    print("lint: includes in a circle: " + " -> ".join(circle), file=sys.stderr)
sys.exit(bool(found))
