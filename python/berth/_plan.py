"""Plans: where a model's operations would run, and why."""

import collections
from typing import NamedTuple

from . import _native
from ._native import Handle, path_bytes, text


class Placement(NamedTuple):
    node: str
    op: str
    device: str
    reason: str


class Plan:
    """Where a model's operations would run. A notebook shows its predicted schedule.

    >>> import berth
    >>> plan = berth.plan("examples/digits/digits.onnx", target="cpu,opencl", dims={"batch": 1}, pins=["op:Gemm=opencl:0"])
    >>> plan.devices
    {'cpu:0': 8, 'opencl:0': 2}
    >>> next(p for p in plan.placements if p.op == "Gemm").device
    'opencl:0'
    >>> plan.svg[:4]
    '<svg'
    """

    def __init__(self, compiler, model, folder=None):
        library = _native.compiler()
        if isinstance(model, (bytes, bytearray, memoryview)):
            data = bytes(model)
            held = Handle(library.berth_compiler_plan_memory, library.berth_plan_info_free, compiler.pointer, data, len(data),
                          path_bytes(folder) if folder else None)
        else:
            held = Handle(library.berth_compiler_plan_file, library.berth_plan_info_free, compiler.pointer, path_bytes(model))
        pointer = held.pointer
        rows = [library.berth_plan_info_placement_at(pointer, i).contents
                for i in range(library.berth_plan_info_placement_count(pointer))]
        predicted_ns = library.berth_plan_info_predicted_ns(pointer)
        self.placements = [Placement(text(r.node), text(r.op), text(r.device), text(r.reason)) for r in rows]
        self.predicted_seconds = predicted_ns / 1e9 if predicted_ns > 0 else None  # of one request; None = unknown
        self.svg = text(library.berth_plan_info_svg(pointer))  # the predicted schedule
        self.dot = text(library.berth_plan_info_dot(pointer))  # the graph, for Graphviz

    @property
    def devices(self):
        """{device: how many operations it would run}"""
        return dict(sorted(collections.Counter(p.device for p in self.placements).items()))

    def _repr_svg_(self):
        return self.svg

    def __repr__(self):
        counts = ", ".join(f"{device}: {count}" for device, count in self.devices.items())
        predicted = "" if self.predicted_seconds is None else f"; {self.predicted_seconds * 1e3:.3f} ms predicted"
        return f"<berth.Plan ({counts}){predicted}>"


def plan(model, target=None, dims=None, pins=(), folder=None, **options):
    """Plans a model (a path, or an ONNX model's bytes). Arguments as of `berth.load`."""
    from ._program import Compiler
    compiler = Compiler(target=target, **options)
    for pin in pins:
        compiler.add_pin(pin)
    for name, extent in (dims or {}).items():
        compiler.set_dim(name, extent)
    return compiler.plan(model, folder)
