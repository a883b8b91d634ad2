#!/usr/bin/env python3
"""Writes the node models of the Python package onnx at hand (model.onnx and test_data_set_0, as in Debian's
libonnx-testdata) to a folder, for `node_models --data`. Debian's own are older than opset 23; PyPI's onnx has newer ones.
Usage: make_node_models.py FOLDER [--from OPSET]   (only models of that opset or a newer one)"""
import pathlib
import sys

try:
    import numpy as np
    import onnx
    from onnx import numpy_helper
    from onnx.backend.test.case.node import collect_testcases
except ImportError as error:
    print(f"BERTH-SKIPPED 1: {error}")
    sys.exit(0)


def to_proto(value, info):
    """A value in the form that its graph input or output declares."""
    if isinstance(value, onnx.TensorProto):
        return value
    kind = info.type.WhichOneof("value")
    if kind == "sequence_type":
        return numpy_helper.from_list(value, info.name)
    if kind == "optional_type":
        return numpy_helper.from_optional(value, info.name)
    return numpy_helper.from_array(np.asarray(value), info.name)


def write(case, folder):
    data = folder / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(case.model.SerializeToString())
    inputs, outputs = case.data_sets[0]
    for prefix, values, infos in (("input", inputs, case.model.graph.input), ("output", outputs, case.model.graph.output)):
        for i, (value, info) in enumerate(zip(values, infos)):
            (data / f"{prefix}_{i}.pb").write_bytes(to_proto(value, info).SerializeToString())


def main():
    folder = pathlib.Path(sys.argv[1])
    least = int(sys.argv[3]) if sys.argv[2:3] == ["--from"] else 1
    count = 0
    for case in collect_testcases(None):
        opset = max((o.version for o in case.model.opset_import if o.domain == ""), default=1)
        if opset < least:
            continue
        try:
            write(case, folder / case.name)
        except Exception as error:  # values that this package itself cannot write
            print(f"{case.name}: {error}", file=sys.stderr)
            continue
        count += 1
    print(f"{count} models of onnx {onnx.__version__} in {folder}")


main()
