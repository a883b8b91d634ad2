from concurrent.futures import Future
from os import PathLike
from typing import Any, Callable, Collection, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np
from numpy.typing import NDArray

__version__: str
__all__ = ["BerthError", "Comparison", "Compiler", "Copy", "Device", "Driver", "LibraryChoice", "Memory", "Model",
           "ModelInfo", "Operation", "Placement", "Plan", "PlanInUse", "Pool", "PooledValue", "Port", "Program", "Rejection",
           "Request", "Runner", "Session", "Step", "Transfer", "ValueMemory", "cache_folder", "devices", "drivers", "load", "load_driver",
           "plan"]

_Path = Union[str, bytes, "PathLike[str]", "PathLike[bytes]"]
_Model = Union[_Path, bytes, bytearray, memoryview]
_Array = NDArray[Any]
_Extent = Union[int, Tuple[int, int], str]  # of a dimension; the least and the most of it; an expression
# NumPy arrays, what speaks DLPack or the buffer protocol, numbers, lists.
_Value = Any

class BerthError(RuntimeError):
    code: str
    message: str
    remedies: List[Tuple[str, str]]
    def __init__(self, code: str, message: str, remedies: Sequence[Tuple[str, str]] = ...) -> None: ...

class Port(NamedTuple):
    name: str
    dtype: Optional[np.dtype[Any]]
    shape: Optional[Tuple[Union[int, str, None], ...]]
    type: str
    @property
    def is_static(self) -> bool: ...

class Placement(NamedTuple):
    node: str
    op: str
    device: str
    reason: str

class Step(NamedTuple):
    name: str
    op: str
    device: str
    copied_bytes: int
    start: float
    duration: float

class Device(NamedTuple):
    device: str
    name: str
    vendor: str
    driver_version: str
    memory_bytes: int
    compute_units: int

class Driver(NamedTuple):
    kind: str
    description: str
    missing: str
    lacking: str

def devices() -> List[Device]: ...
def drivers() -> List[Driver]: ...
def load_driver(path: _Path) -> str: ...
def cache_folder() -> str: ...

class Rejection(NamedTuple):
    device: str
    reason: str
    delta: Optional[float]

class LibraryChoice(NamedTuple):
    library: str
    computes: str
    is_chosen: bool
    reason: str

class Operation(NamedTuple):
    node: str
    op: str
    name: str
    device: str
    memory: str
    reason: str
    chain: List[str]
    start: Optional[float]
    duration: Optional[float]
    cost: str
    is_on_host: bool
    rejections: List[Rejection]
    libraries: List[LibraryChoice]

class Copy(NamedTuple):
    source: str
    destination: str
    value: str
    reason: str
    size_bytes: int
    duration: float

class Transfer(NamedTuple):
    value: str
    device: str
    is_to_host: bool
    start: float
    duration: float

class PooledValue(NamedTuple):
    name: str
    size_bytes: int
    first_step: str
    last_step: str

class Pool(NamedTuple):
    device: str
    memory: str
    scope: str
    usage: str
    shared_with: List[str]
    size_bytes: int
    lower_bound_bytes: Optional[int]
    live_bytes: Optional[int]
    peak_step: Optional[str]
    strategy: Optional[str]
    values: List[PooledValue]

class Memory(NamedTuple):
    name: str
    used_bytes: int
    budget_bytes: Optional[int]

class Comparison(NamedTuple):
    moved: List[Tuple[str, Optional[str], Optional[str]]]
    seconds: Tuple[Optional[float], Optional[float]]
    copied_bytes: Tuple[int, int]
    memory_bytes: Dict[str, Tuple[int, int]]
    def rows(self) -> List[Tuple[str, str, str]]: ...
    def _repr_html_(self) -> str: ...

class Plan:
    placements: List[Placement]
    predicted_seconds: Optional[float]
    svg: str
    dot: str
    operations: List[Operation]
    copies: List[Copy]
    transfers: List[Transfer]
    pools: List[Pool]
    memories: List[Memory]
    model: str
    target: str
    strategy: str
    found_by: str
    objective: str
    unit: Optional[str]
    value: Optional[float]
    lower_bound: Optional[float]
    gap: Optional[float]
    is_proven: bool
    notes: List[str]
    def __init__(self, compiler: Any, model: _Model, folder: Optional[_Path] = None) -> None: ...
    @property
    def memory_svg(self) -> str: ...
    @property
    def devices(self) -> Dict[str, int]: ...
    def compare(self, other: Plan) -> Comparison: ...
    def _repr_svg_(self) -> str: ...

class Program:
    name: str
    executor: str
    target: str
    inputs: List[Port]
    outputs: List[Port]
    devices: List[str]
    def __init__(self, handle: Any) -> None: ...
    @classmethod
    def open(cls, path: _Path, key: Optional[_Path] = None, limits: Optional[str] = None) -> Program: ...
    @classmethod
    def from_bytes(cls, data: Union[bytes, bytearray, memoryview], key: Optional[_Path] = None,
                   limits: Optional[str] = None) -> Program: ...
    def save(self, path: _Path) -> None: ...
    def load_dynamic(self, threads: int = 0) -> Any: ...
    def with_fallbacks(self, *programs: Program) -> Program: ...
    @property
    def fallbacks(self) -> List[Program]: ...
    @property
    def placements(self) -> List[Placement]: ...
    @property
    def predicted_seconds(self) -> Optional[float]: ...
    def session(self, **settings: Any) -> Session: ...
    def runner(self, **settings: Any) -> Runner: ...

class PlanInUse(NamedTuple):
    number: int
    reason: str

class Session:
    program: Program
    def __init__(self, program: Program, threads: int = 0, profile: bool = False, devices: Optional[Mapping[str, int]] = None,
                 cache: Optional[_Path] = None, message: Optional[Callable[[str], object]] = None,
                 fallbacks: bool = True) -> None: ...
    @classmethod
    def together(cls, programs: Iterable[Program], threads: int = 0, profile: bool = False,
                 devices: Optional[Mapping[str, int]] = None, cache: Optional[_Path] = None,
                 message: Optional[Callable[[str], object]] = None, fallbacks: bool = True) -> List["Session"]: ...
    @property
    def common_workspace_bytes(self) -> int: ...
    @property
    def plan(self) -> PlanInUse: ...
    def input(self, index: int) -> _Array: ...
    def output(self, index: int) -> _Array: ...
    def run(self, inputs: Optional[Sequence[_Value]] = None, out: Optional[List[Any]] = None,
            timeout: Optional[float] = None) -> List[_Array]: ...
    def cancel(self) -> None: ...
    @property
    def steps(self) -> List[Step]: ...
    def write_trace(self, path: _Path) -> None: ...

class Request(Future[List[_Array]]):
    def __init__(self, runner: Runner, inputs: List[_Array], out: List[_Array]) -> None: ...
    def cancel(self) -> bool: ...

class Runner:
    program: Program
    def __init__(self, program: Program, at_once: int = 0, most_waiting: int = 0, threads: int = 0,
                 devices: Optional[Mapping[str, int]] = None, cache: Optional[_Path] = None,
                 message: Optional[Callable[[str], object]] = None, fallbacks: bool = True) -> None: ...
    def submit(self, inputs: Sequence[_Value], out: Optional[List[_Array]] = None,
               timeout: Optional[float] = None, done: Optional[Callable[[Request], object]] = None) -> Request: ...
    def map(self, inputs: Iterable[Sequence[_Value]], timeout: Optional[float] = None) -> List[List[_Array]]: ...
    @property
    def plan(self) -> PlanInUse: ...
    def close(self) -> None: ...
    def __enter__(self) -> Runner: ...
    def __exit__(self, *_: Any) -> None: ...

class ModelInfo:
    inputs: List[Port]
    outputs: List[Port]
    overridable: List[Port]
    def __init__(self, model: _Model, folder: Optional[_Path] = None, limits: Optional[str] = None,
                 initializers: Optional[Mapping[str, _Value]] = None) -> None: ...

class Compiler:
    def __init__(self, **options: Any) -> None: ...
    def set(self, option: str, value: Any) -> None: ...
    def add_pin(self, pin: str) -> None: ...
    def add_specialisation(self, text: str) -> None: ...
    def add_state(self, text: str) -> None: ...
    def set_dim(self, name: str, extent: _Extent) -> None: ...
    def set_shape(self, port: Port, shape: Sequence[int]) -> None: ...
    def set_constant(self, port: Port, value: _Value) -> None: ...
    def set_initializer(self, name: str, value: _Value) -> None: ...
    def on_progress(self, function: Callable[[str, int, int], object]) -> None: ...
    def on_message(self, function: Callable[[str], object]) -> None: ...
    def compile(self, model: _Model, folder: Optional[_Path] = None) -> Program: ...
    def plan(self, model: _Model, folder: Optional[_Path] = None) -> Plan: ...
    def load_dynamic(self, model: _Model, folder: Optional[_Path] = None, threads: int = 0) -> Any: ...
    def cancel(self) -> None: ...

class ValueMemory(NamedTuple):
    limit_bytes: int
    reserved_bytes: int
    most_reserved_bytes: int
    live_bytes: int
    most_live_bytes: int
    live_count: int
    allocation_count: int
    system_count: int
    device_reserved_bytes: int
    device_count: int

class Model:
    inputs: List[Port]
    outputs: List[Port]
    overridable: List[Port]
    last_session: Optional[Session]
    def __init__(self, model: Union[_Model, Program], target: Optional[str] = None, dims: Optional[Mapping[str, _Extent]] = None,
                 constants: Optional[Mapping[str, _Value]] = None, pins: Sequence[str] = (), max_shapes: Optional[int] = None,
                 threads: int = 0, profile: bool = False, devices: Optional[Mapping[str, int]] = None,
                 folder: Optional[_Path] = None, progress: Optional[Callable[[str, int, int], object]] = None,
                 message: Optional[Callable[[str], object]] = None, fallbacks: Sequence[Union[str, Mapping[str, Any]]] = (),
                 states: Union[None, bool, str, Sequence[str]] = None, initializers: Optional[Mapping[str, _Value]] = None,
                 _as_inputs: Collection[str] = (), **options: Any) -> None: ...
    @property
    def copied_bytes(self) -> int: ...
    @property
    def value_memory(self) -> Optional[ValueMemory]: ...
    def limit_value_memory(self, limit_bytes: int) -> None: ...
    def reset(self) -> None: ...
    def state(self, name: str) -> Any: ...
    # One output; a tuple where the model has several.
    def __call__(self, *args: _Value, timeout: Optional[float] = None, **named: _Value) -> Any: ...
    def run(self, inputs: Mapping[str, _Value], timeout: Optional[float] = None) -> Dict[str, Any]: ...
    def program(self, *shapes: Sequence[int]) -> Program: ...

def load(model: Union[_Model, Program], target: Optional[str] = None, **options: Any) -> Model: ...
def plan(model: _Model, target: Optional[str] = None, dims: Optional[Mapping[str, _Extent]] = None, pins: Sequence[str] = (),
         folder: Optional[_Path] = None, **options: Any) -> Plan: ...
