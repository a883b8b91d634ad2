#!/usr/bin/env python3
"""Compares the importer's table of operators (compiler/onnx/rows.c) with ONNX's own definitions, as far as the Python
package onnx at hand knows them. Usage: check_opsets.py [--changes N]

Fails where an operator or an attribute is missing, a required attribute is not marked so, or the oldest opset that is
read starts no version of the operator. --changes N lists all versions made after opset N: what to read before raising
ONNX_MAX_OPSET."""
import pathlib
import re
import sys

try:
    from onnx import defs
except ImportError:
    print("BERTH-SKIPPED 1: no Python package onnx")
    sys.exit(0)

TRAINING = {"Gradient", "Momentum", "Adagrad", "Adam"}
# Of opsets 1 to 5, in compiler/onnx/old_forms.c: attributes that are renamed or dropped, and those that get a value there.
RENEWED = {"consumed_inputs", "paddings"}
FILLED = {("Concat", "axis"), ("LpPool", "kernel_shape")}


def read_rows():
    folder = pathlib.Path(__file__).parents[2] / "compiler" / "onnx"
    most = int(re.search(r"#define ONNX_MAX_OPSET (\d+)", (folder / "importer.h").read_text())[1])
    rows = {}
    for name, first, attrs in re.findall(r'\{"(\w+)", (\d+), \w+, "([^"]*)"\}', (folder / "rows.c").read_text()):
        rows[name] = (int(first), attrs.split())
    return rows, most


def versions_of(name, schemas, first, most):
    """The versions that opsets first to most see, oldest first."""
    own = sorted((s for s in schemas if s.name == name), key=lambda s: s.since_version)
    start = max([s.since_version for s in own if s.since_version <= first], default=own[0].since_version)
    return [s for s in own if start <= s.since_version <= most]


def problems_of(name, row, versions):
    first, attrs = row
    listed = {a.lstrip("-!").split(":")[0]: a for a in attrs}
    for version in versions:
        for attr in version.attributes:
            if attr not in listed and attr not in RENEWED:
                yield f"{name} of opset {version.since_version} has the attribute {attr}, which the table lacks"
    for attr, entry in listed.items():
        required = all(attr in v.attributes and v.attributes[attr].required for v in versions)
        if entry.startswith("!") and not required and (name, attr) not in FILLED:
            yield f"{name}: attribute {attr} need not be there"


def main():
    rows, most = read_rows()
    schemas = [s for s in defs.get_all_schemas_with_history() if s.domain == ""]
    if sys.argv[1:2] == ["--changes"]:
        for s in sorted(schemas, key=lambda s: (s.since_version, s.name)):
            if s.since_version > int(sys.argv[2]):
                print(s.since_version, s.name)
        return 0
    problems, count = [], 0
    for name in sorted({s.name for s in schemas if s.since_version <= most} - TRAINING):
        current = versions_of(name, schemas, most, most)
        if name not in rows:
            if not current[-1].deprecated:
                problems.append(f"{name} is not in the table")
            continue
        count += 1
        problems += problems_of(name, rows[name], versions_of(name, schemas, rows[name][0], most))
    for problem in problems:
        print(problem)
    print(f"{count} operators compared up to opset {min(most, defs.onnx_opset_version())} of {most}")
    return 1 if problems else 0


sys.exit(main())
