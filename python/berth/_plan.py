"""Plans: where a model's operations would run, and why."""

import collections
import ctypes
import html
from typing import Dict, List, NamedTuple, Optional, Tuple

from . import _native, _plan_records
from ._native import Handle, path_bytes, text


class Placement(NamedTuple):
    node: str
    op: str
    device: str
    reason: str


class Comparison(NamedTuple):
    """Two plans of a model side by side, `before` and `after`; printed, or shown by a notebook, it is a table."""

    moved: List[Tuple[str, Optional[str], Optional[str]]]  # operation, its devices; None: it is in one of the plans only
    seconds: Tuple[Optional[float], Optional[float]]  # predicted, of one request
    copied_bytes: Tuple[int, int]
    memory_bytes: Dict[str, Tuple[int, int]]  # {memory: used}; 0 where a plan uses none of it

    def rows(self):
        """(what, before, after), as texts."""
        def time(seconds):
            return "unknown" if seconds is None else f"{seconds * 1e3:.3f} ms"

        return [("predicted", *map(time, self.seconds)), ("copied", *(f"{size} bytes" for size in self.copied_bytes)),
                *((f"memory {name}", f"{one} bytes", f"{other} bytes") for name, (one, other) in self.memory_bytes.items()),
                *((name, one or "not there", other or "not there") for name, one, other in self.moved)]

    def __str__(self):
        return "\n".join("{:<40} {:<20} {}".format(*row) for row in self.rows())

    def _repr_html_(self):
        rows = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in self.rows())
        return f"<table><tr><th></th><th>before</th><th>after</th></tr>{rows}</table>"


class Plan:
    """Where a model's operations would run, when, and why; what is copied, and what lies in which memory. A notebook shows its
    predicted schedule.

    operations:  every operation, in the order of the model: its device and memory, its time in the predicted schedule, the
                 reason step by step, and what each other device would have cost
    copies:      each value that goes from one device to another; transfers: the same in the predicted schedule
    pools:       the program's allocations, with their lower bounds and what is live at the peak; memories: their sums
    value, unit: what the strategy minimised ("ns", "bytes", "of capacity"), with lower_bound, gap and is_proven; None where no
                 strategy did
    notes:       what was left out or assumed

    >>> import berth
    >>> plan = berth.plan("examples/digits/digits.onnx", target="cpu,opencl", dims={"batch": 1}, pins=["op:Gemm=opencl:0"])
    >>> plan.devices
    {'cpu:0': 8, 'opencl:0': 2}
    >>> gemm = next(operation for operation in plan.operations if operation.op == "Gemm")
    >>> gemm.device, gemm.memory, gemm.reason
    ('opencl:0', 'opencl:0', 'pinned: op:Gemm=opencl:0 (pin 1 of those given)')
    >>> [(copy.source, copy.destination) for copy in plan.copies]
    [('cpu:0', 'opencl:0'), ('opencl:0', 'cpu:0')]
    >>> sum(pool.size_bytes for pool in plan.pools) == sum(memory.used_bytes for memory in plan.memories)
    True
    >>> other = berth.plan("examples/digits/digits.onnx", target="cpu,opencl", dims={"batch": 1})
    >>> other.compare(plan).moved
    [('fc (Gemm)', 'cpu:0', 'opencl:0')]
    >>> plan.svg[:4], plan.memory_svg[:4]
    ('<svg', '<svg')
    """

    def __init__(self, compiler, model, folder=None):
        library = _native.compiler()
        if isinstance(model, (bytes, bytearray, memoryview)):
            data = bytes(model)
            held = Handle(library.berth_compiler_plan_memory, library.berth_plan_info_free, compiler.pointer, data, len(data),
                          path_bytes(folder) if folder else None)
        else:
            held = Handle(library.berth_compiler_plan_file, library.berth_plan_info_free, compiler.pointer, path_bytes(model))
        self._held = held
        pointer = held.pointer
        rows = [library.berth_plan_info_placement_at(pointer, i).contents
                for i in range(library.berth_plan_info_placement_count(pointer))]
        predicted_ns = library.berth_plan_info_predicted_ns(pointer)
        self.placements = [Placement(text(r.node), text(r.op), text(r.device), text(r.reason)) for r in rows]
        self.predicted_seconds = predicted_ns / 1e9 if predicted_ns > 0 else None  # of one request; None = unknown
        self.svg = text(library.berth_plan_info_svg(pointer))  # the predicted schedule
        self.dot = text(library.berth_plan_info_dot(pointer))  # the graph, for Graphviz
        self.operations = _plan_records.read(library, pointer, "operation")
        self.copies = _plan_records.read(library, pointer, "copy")
        self.transfers = _plan_records.read(library, pointer, "transfer")
        self.pools = _plan_records.read(library, pointer, "pool")
        self.memories = _plan_records.read(library, pointer, "memory")
        self._read_facts(library.berth_plan_info_facts(pointer).contents)

    def _read_facts(self, facts):
        self.model, self.target = text(facts.model), text(facts.target)  # the target as JSON
        self.strategy, self.found_by, self.objective = text(facts.strategy), text(facts.found_by), text(facts.objective)
        valued = facts.is_valued != 0
        self.unit = text(facts.unit) if valued else None
        self.value, self.lower_bound, self.gap = ((facts.value, facts.lower_bound, facts.gap) if valued else (None, None, None))
        self.is_proven = valued and facts.is_proven != 0
        self.notes = _plan_records.texts(facts.notes, facts.note_count)

    @property
    def memory_svg(self):
        """Where intermediate values lie, a panel for each workspace, as an SVG document."""
        svg = ctypes.c_void_p()
        _native.compiler().berth_plan_info_draw_memory(self._held.pointer, ctypes.byref(svg))
        return text(ctypes.cast(svg, ctypes.c_char_p).value)

    @property
    def devices(self):
        """{device: how many operations it would run}"""
        return dict(sorted(collections.Counter(p.device for p in self.placements).items()))

    def compare(self, other):
        """A Comparison: from this plan to the other one of the same model. Operations are told by their names."""
        def places(one):
            return {operation.name: operation.device for operation in one.operations}

        def used(one):
            return {memory.name: memory.used_bytes for memory in one.memories}

        before, after, first, second = places(self), places(other), used(self), used(other)
        moved = [(name, before.get(name), after.get(name)) for name in {**before, **after} if before.get(name) != after.get(name)]
        return Comparison(moved, (self.predicted_seconds, other.predicted_seconds),
                          (sum(copy.size_bytes for copy in self.copies), sum(copy.size_bytes for copy in other.copies)),
                          {name: (first.get(name, 0), second.get(name, 0)) for name in {**first, **second}})

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
