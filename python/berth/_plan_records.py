"""What a plan consists of (include/berth/plan.h): the C structures, and the tuples that Python gives of them. Times are seconds,
sizes bytes."""

import ctypes
import math
from ctypes import POINTER, c_char_p, c_double, c_int, c_uint32, c_uint64
from typing import List, NamedTuple, Optional

from ._native import text


class Rejection(NamedTuple):
    """A device that an operation is not on."""

    device: str
    reason: str
    delta: Optional[float]  # by what the plan's value would rise, in its unit; None = not known


class LibraryChoice(NamedTuple):
    """A library's kernel that could compute an operation."""

    library: str
    computes: str
    is_chosen: bool
    reason: str


class Operation(NamedTuple):
    node: str
    op: str
    name: str
    device: str
    memory: str  # that its results are in
    reason: str
    chain: List[str]  # the reason step by step
    start: Optional[float]  # in the predicted schedule; None: no time of its own
    duration: Optional[float]
    cost: str  # where the time comes from: "measured", "analytic", ...
    is_on_host: bool  # computed by the host's interpreter (shapes)
    rejections: List[Rejection]
    libraries: List[LibraryChoice]


class Copy(NamedTuple):
    source: str
    destination: str
    value: str
    reason: str
    size_bytes: int  # 0: the devices share the memory
    duration: float


class Transfer(NamedTuple):
    """A copy in the predicted schedule."""

    value: str
    device: str  # whose link is busy
    is_to_host: bool
    start: float
    duration: float


class PooledValue(NamedTuple):
    name: str
    size_bytes: int
    first_step: str
    last_step: str


class Pool(NamedTuple):
    """An allocation of the program."""

    device: str
    memory: str
    scope: str
    usage: str  # "workspace", "constants", "io", "store"
    shared_with: List[str]  # other devices that reach it
    size_bytes: int
    lower_bound_bytes: Optional[int]  # None = unknown
    live_bytes: Optional[int]  # of a workspace: the largest sum of values live at one step
    peak_step: Optional[str]
    strategy: Optional[str]
    values: List[PooledValue]  # live there, largest first


class Memory(NamedTuple):
    name: str
    used_bytes: int
    budget_bytes: Optional[int]  # None = no limit is known


class _Device(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("is_host_only", c_int)]


class _Memory(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("used_bytes", c_uint64), ("budget_bytes", c_uint64)]


class _Rejection(ctypes.Structure):
    _fields_ = [("device", c_char_p), ("reason", c_char_p), ("delta", c_double)]


class _Library(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("computes", c_char_p), ("is_chosen", c_int), ("reason", c_char_p), ("time_ns", c_double),
                ("own_ns", c_double), ("extra_ns", c_double)]


class _Operation(ctypes.Structure):
    _fields_ = [("node", c_char_p), ("op", c_char_p), ("name", c_char_p), ("device", c_char_p), ("memory", c_char_p),
                ("reason", c_char_p), ("chain", POINTER(c_char_p)), ("start_ns", c_double), ("time_ns", c_double),
                ("cost", c_char_p), ("has_time", c_int), ("is_on_host", c_int), ("rejections", POINTER(_Rejection)),
                ("libraries", POINTER(_Library)), ("buffers", ctypes.c_void_p), ("chain_count", c_uint32),
                ("rejection_count", c_uint32), ("library_count", c_uint32), ("buffer_count", c_uint32)]


class _Copy(ctypes.Structure):
    _fields_ = [("source", c_char_p), ("destination", c_char_p), ("value", c_char_p), ("reason", c_char_p),
                ("size_bytes", c_uint64), ("time_ns", c_double)]


class _Transfer(ctypes.Structure):
    _fields_ = [("value", c_char_p), ("device", c_char_p), ("is_to_host", c_int), ("start_ns", c_double), ("time_ns", c_double)]


class _Value(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("size_bytes", c_uint64), ("first_step", c_char_p), ("last_step", c_char_p)]


class _Pool(ctypes.Structure):
    _fields_ = [("device", c_char_p), ("memory", c_char_p), ("scope", c_char_p), ("usage", c_char_p),
                ("shared_with", POINTER(c_char_p)), ("shared_with_count", c_uint32), ("size_bytes", c_uint64),
                ("lower_bound_bytes", c_uint64), ("is_workspace_known", c_int), ("live_bytes", c_uint64),
                ("made_bytes", c_uint64), ("padding_bytes", c_uint64), ("peak_step", c_char_p), ("strategy", c_char_p),
                ("values", POINTER(_Value)), ("value_count", c_uint32)]


class Facts(ctypes.Structure):
    _fields_ = [("model", c_char_p), ("target", c_char_p), ("target_name", c_char_p), ("devices", c_char_p),
                ("strategy", c_char_p), ("found_by", c_char_p), ("default_device", c_char_p), ("predicted_ns", c_double),
                ("objective", c_char_p), ("is_valued", c_int), ("unit", c_char_p), ("value", c_double),
                ("lower_bound", c_double), ("gap", c_double), ("is_proven", c_int), ("value_text", c_char_p),
                ("is_reproducible", c_int), ("search_nodes", c_uint64), ("notes", POINTER(c_char_p)), ("note_count", c_uint32)]


def texts(array, count):
    return [text(array[i]) for i in range(count)]


def _operation(o):
    rejections = [Rejection(text(r.device), text(r.reason), None if math.isnan(r.delta) else r.delta)
                  for r in o.rejections[:o.rejection_count]]
    libraries = [LibraryChoice(text(one.name), text(one.computes), bool(one.is_chosen), text(one.reason))
                 for one in o.libraries[:o.library_count]]
    return Operation(text(o.node), text(o.op), text(o.name), text(o.device), text(o.memory), text(o.reason),
                     texts(o.chain, o.chain_count), o.start_ns / 1e9 if o.has_time else None,
                     o.time_ns / 1e9 if o.has_time else None, text(o.cost), bool(o.is_on_host), rejections, libraries)


def _copy(c):
    return Copy(text(c.source), text(c.destination), text(c.value), text(c.reason), c.size_bytes, c.time_ns / 1e9)


def _transfer(t):
    return Transfer(text(t.value), text(t.device), bool(t.is_to_host), t.start_ns / 1e9, t.time_ns / 1e9)


def _pool(p):
    known = p.is_workspace_known != 0
    values = [PooledValue(text(v.name), v.size_bytes, text(v.first_step), text(v.last_step)) for v in p.values[:p.value_count]]
    return Pool(text(p.device), text(p.memory), text(p.scope), text(p.usage), texts(p.shared_with, p.shared_with_count),
                p.size_bytes, p.lower_bound_bytes or None, p.live_bytes if known else None,
                text(p.peak_step) if known else None, text(p.strategy) if known else None, values)


def _memory(m):
    return Memory(text(m.name), m.used_bytes, m.budget_bytes or None)


# By the name in berth_plan_info_NAME: the structure, and what makes a tuple of it.
KINDS = {"memory": (_Memory, _memory), "operation": (_Operation, _operation), "copy": (_Copy, _copy),
         "transfer": (_Transfer, _transfer), "pool": (_Pool, _pool), "device": (_Device, lambda d: text(d.name))}


def prototypes():
    """For _native.COMPILER."""
    table = {"berth_plan_info_facts": (POINTER(Facts), [ctypes.c_void_p])}
    for name, (structure, _) in KINDS.items():
        table[f"berth_plan_info_{name}_count"] = (c_uint32, [ctypes.c_void_p])
        table[f"berth_plan_info_{name}"] = (POINTER(structure), [ctypes.c_void_p, c_uint32])
    return table


def read(library, pointer, name):
    """All of a plan's things of that name."""
    count, at = getattr(library, f"berth_plan_info_{name}_count"), getattr(library, f"berth_plan_info_{name}")
    return [KINDS[name][1](at(pointer, i).contents) for i in range(count(pointer))]
