#!/usr/bin/env python3
"""What a call from Python costs, beside ONNX Runtime: models so small that the call is most of it.

    scripts/build.sh release
    python3 -m pip install onnxruntime onnx numpy
    BERTH_LIBRARY_DIR=build/release PYTHONPATH=python python3 bench/python_calls.py [--rounds 15] [--calls 500] [--threads 1]

Rows: ONNX Runtime's InferenceSession.run, berth.onnxruntime's InferenceSession.run, and model(x). They take turns, round by
round; medians over the rounds. A JSON line for each model, times in microseconds.
"""
import argparse
import json
import os
import statistics
import time

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

import berth
import berth.onnxruntime

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def relu(*shape):
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in "xy")
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "relu", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


def models():
    with open(os.path.join(ROOT, "examples/digits/digits.onnx"), "rb") as file:
        digits = file.read()
    images = np.load(os.path.join(ROOT, "examples/digits/test_images.npy"))
    row = np.linspace(-1, 1, 65536, dtype=np.float32).reshape(1, 65536)
    return [("Relu of 16 elements", relu(1, 16), [row[:, :16].copy()]),
            ("Relu of 16 elements, after other shapes", relu("N", 16), [np.repeat(row[:, :16], n, 0) for n in (5, 3, 1)]),
            ("Relu of 65536 elements", relu(1, 65536), [row]),
            ("digits, a batch of 1", digits, [images[:1]]),
            ("digits, a batch of 1, after other shapes", digits, [images[:5], images[:3], images[:1]])]


def open_session(module, model, threads):
    options = module.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    return module.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def time_of(call, count):
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count * 1e6


def measure(model, inputs, options):
    """Times of the last input."""
    theirs, ours = (open_session(module, model, options.threads) for module in (onnxruntime, berth.onnxruntime))
    loaded = berth.load(model, threads=options.threads)
    name = ours.get_inputs()[0].name
    calls = {"onnxruntime": lambda: theirs.run(None, {name: x})[0], "berth.onnxruntime": lambda: ours.run(None, {name: x})[0],
             "model(x)": lambda: loaded(x)}
    for x in inputs:
        expected = calls["onnxruntime"]()
        for what, call in calls.items():
            np.testing.assert_allclose(call(), expected, rtol=1e-4, atol=1e-6, err_msg=what)
    times = {what: [] for what in calls}
    for _ in range(options.rounds):
        for what, call in calls.items():
            times[what].append(time_of(call, options.calls))
    return {what: round(statistics.median(values), 2) for what, values in times.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", type=int, default=500)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    for name, model, inputs in models():
        row = measure(model, inputs, options)
        print(json.dumps({"model": name, "threads": options.threads, "call_us": row, "onnxruntime_version": onnxruntime.__version__,
                          "onnx_version": onnx.__version__, "numpy_version": np.__version__}), flush=True)


if __name__ == "__main__":
    main()
