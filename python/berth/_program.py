"""Programs, sessions and the compiler, as objects over the C API."""

import ctypes
import os
import warnings
from typing import NamedTuple

import numpy as np

from . import _arrays, _device_memory, _native
from ._native import BerthError, Handle, path_bytes, run, text
from ._plan import Placement, Plan
from ._prepared import PreparedDynamic, PreparedRun


class Step(NamedTuple):
    """A step of the last run. Times in seconds; `start` counts from the beginning of the run."""

    name: str
    op: str
    device: str
    copied_bytes: int
    start: float
    duration: float


class ValueMemory(NamedTuple):
    """Host memory of values that come and go in runs of a model with control flow or shapes of the run (docs/vm.md)."""

    limit_bytes: int  # of reserved_bytes; 0: none
    reserved_bytes: int  # taken from the system
    most_reserved_bytes: int
    live_bytes: int  # of values, results that are held included
    most_live_bytes: int
    live_count: int  # blocks of values
    allocation_count: int  # such blocks so far
    system_count: int  # times that the system was asked for memory
    device_reserved_bytes: int  # for values in memories of other devices
    device_count: int  # times that these were asked for memory


class Device(NamedTuple):
    device: str  # as targets name it: "opencl:0"
    name: str
    vendor: str
    driver_version: str
    memory_bytes: int
    compute_units: int


class Driver(NamedTuple):
    kind: str
    description: str
    missing: str  # why it cannot work here; "" = it can
    lacking: str  # what is missing though it works, and devices that it leaves out, with the reasons; "" = nothing


def _device_list():
    return Handle(run.berth_device_list_create, run.berth_device_list_free)


def devices():
    """The devices of this machine."""
    held = _device_list()
    facts = [run.berth_device_list_at(held.pointer, i).contents
             for i in range(run.berth_device_list_count(held.pointer))]
    return [Device(text(f.device), text(f.name), text(f.vendor), text(f.driver_version), f.memory_bytes,
                   f.compute_units) for f in facts]


def drivers():
    """Berth's drivers, with why those that cannot work here cannot."""
    held = _device_list()
    facts = [run.berth_device_list_driver_at(held.pointer, i).contents
             for i in range(run.berth_device_list_driver_count(held.pointer))]
    return [Driver(text(f.kind), text(f.description), text(f.missing), text(f.lacking)) for f in facts]


def load_driver(path):
    """Loads a driver from a shared library for the rest of the process; gives the kind of device it serves."""
    kind = ctypes.c_char_p()
    run.berth_driver_load(path_bytes(path), ctypes.byref(kind))
    return text(kind.value)


def cache_folder():
    """Where compiled kernels are kept, as by the command: BERTH_CACHE_DIR, XDG_CACHE_HOME/berth, ~/.cache/berth."""
    own, general = os.environ.get("BERTH_CACHE_DIR"), os.environ.get("XDG_CACHE_HOME")
    if own:
        return own
    return os.path.join(general, "berth") if general else os.path.expanduser("~/.cache/berth")


class Program:
    """A model compiled for a target. Immutable; may be used from any thread.

    >>> import berth
    >>> program = berth.load("examples/digits/digits.onnx", target="cpu", dims={"batch": 1}).program()
    >>> program.inputs[0].name, program.inputs[0].shape, program.devices
    ('image', (1, 1, 8, 8), ['cpu:0'])
    >>> program.predicted_seconds > 0
    True
    """

    def __init__(self, handle):
        if not isinstance(handle, Handle):
            raise TypeError(f"berth.Program cannot be made of {type(handle).__name__!r}: berth.load(path) runs a model or a program "
                            "file; berth.Program.open(path) and berth.Program.from_bytes(data) open a program file without running "
                            "it, and berth.load(model).program() is the program of a model")
        self._handle = handle
        pointer = handle.pointer
        self.name = text(run.berth_program_name(pointer))
        self.target = text(run.berth_program_target(pointer))
        self.inputs = [_arrays.port_of(run.berth_program_input(pointer, i).contents)
                       for i in range(run.berth_program_input_count(pointer))]
        self.outputs = [_arrays.port_of(run.berth_program_output(pointer, i).contents)
                        for i in range(run.berth_program_output_count(pointer))]
        facts = _native.ProgramFacts()
        run.berth_program_get_facts(pointer, ctypes.byref(facts), ctypes.sizeof(facts))
        self.executor = text(facts.executor)  # "graph"; "vm": load_dynamic
        self.devices = [text(run.berth_program_device_name(pointer, i))
                        for i in range(run.berth_program_device_count(pointer))]

    @classmethod
    def open(cls, path, key=None, limits=None):
        """Opens a program file; with `key`, only if it is signed with the key whose public half is in that file; within `limits`
        (docs/limits.md): "bytes=64MiB,items=10000,time=5s"."""
        return cls(Handle(run.berth_program_open_limited, run.berth_program_release, path_bytes(path),
                          path_bytes(key) if key else None, limits.encode() if limits else None))

    @classmethod
    def from_bytes(cls, data, key=None, limits=None):
        """The bytes of a program file; `key` and `limits` as of `open`."""
        data = bytes(data)
        return cls(Handle(run.berth_program_open_memory_limited, run.berth_program_release, data, len(data),
                          path_bytes(key) if key else None, limits.encode() if limits else None))

    def save(self, path):
        run.berth_program_save(self._handle.pointer, path_bytes(path))

    def load_dynamic(self, threads=0):
        """Of a program of executor "vm" (`berth build` makes one where a model needs it): a Dynamic, which runs it for the
        shapes that it has code for."""
        return Dynamic(Handle(run.berth_program_load_dynamic, run.berth_dynamic_destroy, self._handle.pointer, threads))

    def with_fallbacks(self, *programs):
        """This program with others of the same model, for when a device of it is not here or lost: the first of them
        whose devices are runs then, and says so (Session). Saving keeps them.

        >>> import berth
        >>> def build(target):
        ...     return berth.load("examples/digits/digits.onnx", target=target, dims={"batch": 1}).program()
        >>> program = build("cpu,opencl").with_fallbacks(build("cpu"))
        >>> [fallback.devices for fallback in program.fallbacks]
        [['cpu:0']]
        """
        pointers = (ctypes.c_void_p * max(1, len(programs)))(*[p._handle.pointer for p in programs])
        return Program(Handle(run.berth_program_with_fallbacks, run.berth_program_release, self._handle.pointer, pointers,
                              len(programs)))

    @property
    def fallbacks(self):
        """Programs to open where this one cannot run."""
        pointer, found = self._handle.pointer, []
        for index in range(run.berth_program_fallback_count(pointer)):
            fallback = run.berth_program_fallback(pointer, index)
            run.berth_program_retain(fallback)
            found.append(Program(Handle.of(fallback, run.berth_program_release)))
        return found

    @property
    def placements(self):
        """Where every operation of the model runs, and why."""
        pointer = self._handle.pointer
        rows = [run.berth_program_placement_at(pointer, i).contents
                for i in range(run.berth_program_placement_count(pointer))]
        return [Placement(text(r.node), text(r.op), text(r.device), text(r.reason)) for r in rows]

    @property
    def predicted_seconds(self):
        """Time of one run as the cost model predicts it; None = unknown."""
        predicted_ns = run.berth_program_predicted_ns(self._handle.pointer)
        return predicted_ns / 1e9 if predicted_ns > 0 else None

    def session(self, **settings):
        return Session(self, **settings)

    def runner(self, **settings):
        """A Runner: any number of runs at the same time."""
        from ._runner import Runner
        return Runner(self, **settings)

    def __repr__(self):
        return f"<berth.Program {self.name!r} on {', '.join(self.devices)}>"


class PlanInUse(NamedTuple):
    number: int  # 0 = the program itself, i = its fallbacks[i - 1]
    reason: str  # why no earlier one runs; "" = it is the first


def plan_in_use(function, pointer):
    reason = ctypes.c_char_p()
    number = function(pointer, ctypes.byref(reason))
    return PlanInUse(number, text(reason.value))


def _warn(message):
    warnings.warn(message, RuntimeWarning, stacklevel=2)


def pointer_of(program):
    """The C API's handle of a Program."""
    if not isinstance(program, Program):
        raise TypeError(f"a berth.Program is needed, not {type(program).__name__!r}: berth.Program.open(path) opens a program file, "
                        "and berth.load(model).program() is the program of a model")
    return program._handle.pointer


class SessionSettings:
    """How a program is opened, with what has to stay alive."""

    def __init__(self, threads, profile, devices, cache, message, fallbacks):
        choices = [_native.DeviceChoice(name.encode(), ordinal) for name, ordinal in (devices or {}).items()]
        array = (_native.DeviceChoice * max(len(choices), 1))(*choices)
        tell = message or _warn
        self._callback = _native.MESSAGE(lambda _, said: tell(text(said)))
        self.record = _native.SessionSettings(
            size_bytes=ctypes.sizeof(_native.SessionSettings), thread_count=threads, profile=1 if profile else 0,
            cache_folder=path_bytes(cache or cache_folder()), devices=array, device_count=len(choices),
            on_message=self._callback, first_plan_only=0 if fallbacks else 1)


_NOT_YET = object()


class Session:
    """A program opened on this machine's devices. One thread at a time uses it, `cancel` excepted.

    threads: of the processor; 0 = as many as its target has cores
    profile: record times of steps (`steps`, `write_trace`)
    devices: {device of the program: ordinal of this machine's device of that kind}
    message: function(text), told when a fallback of the program is used; by default it is a RuntimeWarning
    fallbacks: False = none; a device that is not here or lost is a BerthError UNAVAILABLE

    >>> import berth
    >>> session = berth.load("examples/digits/digits.onnx", target="cpu", dims={"batch": 1}).program().session(threads=1)
    >>> session.input(0)[...] = 0.5                 # the session's own memory: nothing is copied
    >>> [scores] = session.run()
    >>> scores.shape, round(float(scores.sum()), 3)     # probabilities
    ((1, 10), 1.0)
    """

    _prepared = _NOT_YET

    def __init__(self, program, threads=0, profile=False, devices=None, cache=None, message=None, fallbacks=True):
        self.program = program
        self._settings = SessionSettings(threads, profile, devices, cache, message, fallbacks)
        self._handle = Handle(run.berth_session_create, run.berth_session_destroy, pointer_of(program),
                              ctypes.byref(self._settings.record))

    @classmethod
    def together(cls, programs, threads=0, profile=False, devices=None, cache=None, message=None, fallbacks=True):
        """Sessions of several programs that run in turns: on the same devices and threads, and with one workspace of the
        largest one's size. A run waits for that of another one.

        >>> import berth
        >>> programs = [berth.load("examples/digits/digits.onnx", target="cpu", dims={"batch": n}).program() for n in (1, 8)]
        >>> sessions = berth.Session.together(programs)
        >>> sessions[0].common_workspace_bytes == sessions[1].common_workspace_bytes
        True
        """
        programs = list(programs)
        settings = SessionSettings(threads, profile, devices, cache, message, fallbacks)
        pointers = (ctypes.c_void_p * max(len(programs), 1))(*[pointer_of(program) for program in programs])
        opened = (ctypes.c_void_p * max(len(programs), 1))()
        run.berth_session_create_together(pointers, len(programs), ctypes.byref(settings.record),
                                          ctypes.cast(opened, ctypes.POINTER(ctypes.c_void_p)))
        return [cls._of(program, settings, pointer) for program, pointer in zip(programs, opened)]

    @classmethod
    def _of(cls, program, settings, pointer):
        session = cls.__new__(cls)
        session.program, session._settings = program, settings
        session._handle = Handle.of(pointer, run.berth_session_destroy)
        return session

    @property
    def common_workspace_bytes(self):
        """Of workspace that it has with others (`together`); 0 = it was opened by itself."""
        return run.berth_session_common_workspace_bytes(self._handle.pointer)

    @property
    def plan(self):
        """Which plan runs, and why no earlier one: (0, "") for the program itself."""
        return plan_in_use(run.berth_session_plan, self._handle.pointer)

    def input(self, index):
        """The session's own memory of an input, as an array to write into: then nothing is copied. It keeps the
        session; do not touch it during a run."""
        return _arrays.view_of(run.berth_session_input(self._handle.pointer, index).contents, self._handle)

    def output(self, index):
        """The same of an output: pass it to `run` in `out` to have the result there. The next such run overwrites it."""
        return _arrays.view_of(run.berth_session_output(self._handle.pointer, index).contents, self._handle)

    def run(self, inputs=None, out=None, timeout=None):
        """Runs once. `inputs`: values in the program's order; None = as the session's own memory has them. Gives the
        outputs as new arrays, or fills those of `out` (contiguous, of the right types and shapes): arrays, or tensors in the memory
        of a GPU that speak DLPack (kDLCUDA, kDLOpenCL), which get a copy."""
        timeout_ns = -1 if timeout is None else int(timeout * 1e9)
        program = self.program
        if inputs is not None and out is None and timeout is None:
            results = self._run_prepared(inputs)
            if results is not None:
                return results
        if inputs is None:
            inputs = [self.input(i) for i in range(len(program.inputs))]
        inputs = [_arrays.as_array(value, port) for value, port in zip(inputs, program.inputs)] + list(
            inputs[len(program.inputs):])
        if out is None:
            out = [_arrays.empty(port) for port in program.outputs]
        arrays, copies = _arrays.places(out, program.outputs)
        _arrays.check_out(arrays, program.outputs)
        run.berth_session_run_with(self._handle.pointer, _arrays.tensors_of(inputs, program.inputs), len(inputs),
                                   _arrays.tensors_of(arrays, program.outputs), len(arrays), timeout_ns)
        for copy in copies:
            _device_memory.write(*copy)
        return out

    def _run_prepared(self, inputs):
        """As `run`, for arrays that need no conversion: of the program's types and shapes, contiguous, and writable. None, and
        nothing has run, where one is not so."""
        if self._prepared is _NOT_YET:
            self._prepared = PreparedRun.of(self.program, self._handle.pointer)
        return self._prepared.run(inputs) if self._prepared else None

    def cancel(self):
        """Makes a run on another thread end with BerthError CANCELLED."""
        run.berth_session_cancel(self._handle.pointer)

    @property
    def steps(self):
        """The steps of the last run, of a session with profile=True."""
        steps, pointer = [], self._handle.pointer
        for i in range(run.berth_session_step_count(pointer)):
            facts = _native.StepFacts()
            run.berth_session_get_step(pointer, i, ctypes.byref(facts), ctypes.sizeof(facts))
            steps.append(Step(text(facts.name), text(facts.op), text(facts.device), facts.copied_bytes,
                              facts.start_ns / 1e9, facts.duration_ns / 1e9))
        return steps

    def write_trace(self, path):
        """The last run as a trace for Perfetto (ui.perfetto.dev); needs profile=True."""
        run.berth_session_write_trace(self._handle.pointer, path_bytes(path))


class ModelInfo:
    """What a model takes and gives, before it is compiled. `model`: a path, or an ONNX model's bytes. `limits`: of what is read
    (docs/limits.md). `initializers`: {name: value} in place of the model's own."""

    def __init__(self, model, folder=None, limits=None, initializers=None):
        library, compiler = _native.compiler(), Compiler(limits=limits)
        for name, value in (initializers or {}).items():
            compiler.set_initializer(name, value)
        if isinstance(model, (bytes, bytearray, memoryview)):
            data = bytes(model)
            held = Handle(compiler._bound(library.berth_compiler_parse_model), library.berth_model_info_free, data,
                          len(data), path_bytes(folder) if folder else None)
        else:
            held = Handle(compiler._bound(library.berth_compiler_read_model), library.berth_model_info_free,
                          path_bytes(model))
        pointer = held.pointer
        self.inputs = [_arrays.port_of_value(library.berth_model_info_input(pointer, i).contents)
                       for i in range(library.berth_model_info_input_count(pointer))]
        self.outputs = [_arrays.port_of_value(library.berth_model_info_output(pointer, i).contents)
                        for i in range(library.berth_model_info_output_count(pointer))]
        self.overridable = [_arrays.port_of_value(library.berth_model_info_overridable(pointer, i).contents)
                            for i in range(library.berth_model_info_overridable_count(pointer))]


class Dynamic:
    """A program of byte code, or a model whose parts are compiled when they first see new shapes (include/berth/dynamic.h).
    One thread at a time."""

    def __init__(self, handle):
        self._handle = handle
        pointer = handle.pointer
        self.inputs = [text(run.berth_dynamic_input_name(pointer, i))
                       for i in range(run.berth_dynamic_input_count(pointer))]
        self.outputs = [text(run.berth_dynamic_output_name(pointer, i))
                        for i in range(run.berth_dynamic_output_count(pointer))]
        self._prepared = None  # until a run; False: it cannot be

    def run(self, arrays, ports):
        """One result per output: an array, a dict for a map, a list of these for a sequence, None for an empty optional
        value. An array that is None is state, which is kept (keep_states). `ports`: the model's, of these inputs."""
        prepared = self.run_prepared(arrays)
        if prepared is not None:
            return prepared
        held = [_native.Tensor() if array is None else _arrays.tensor_of(array, _arrays.dtype_number(port))
                for array, port in zip(arrays, ports)]
        tensors = (_native.Tensor * max(1, len(arrays)))(*held)
        results = Handle(run.berth_dynamic_run, run.berth_results_free, self._handle.pointer, tensors, len(arrays))
        del held  # until here
        pointer, values = results.pointer, []
        for index in range(len(self.outputs)):
            items = [self._item(results, index, k) for k in range(run.berth_results_item_count(pointer, index))]
            if run.berth_results_is_sequence(pointer, index):
                values.append(items)
            else:
                values.append(items[0] if items else None)
        if self._prepared is None:
            self._prepared = PreparedDynamic.of(self._handle.pointer, ports, values)
        return values

    def run_prepared(self, arrays, other_shapes=True):
        """As `run`, from the second run on, for arrays that need no conversion, and have the latest shapes or may have others.
        None, and nothing has run, where one is not so."""
        return self._prepared.run(arrays, other_shapes) if self._prepared else None

    @staticmethod
    def _item(results, index, item):
        value = _arrays.view_of(run.berth_results_item(results.pointer, index, item).contents, results)
        keys = run.berth_results_keys(results.pointer, index, item)
        return dict(zip(_arrays.view_of(keys.contents, results).tolist(), value.tolist())) if keys else value

    def has_kept_program(self):
        """Of a model that was just loaded: whether it has a program for many shapes that an earlier session kept (docs/vm.md)."""
        report = _native.DynamicReport()
        _native.compiler().berth_dynamic_get_report(self._handle.pointer, ctypes.byref(report), ctypes.sizeof(report))
        return report.general_shape_count > 0

    def cancel(self):
        """Makes a run on another thread end with BerthError CANCELLED."""
        run.berth_dynamic_cancel(self._handle.pointer)

    def keep_states(self):
        """From here on. Gives {input: output} of what is state."""
        run.berth_dynamic_keep_states(self._handle.pointer)
        outputs = [run.berth_dynamic_state_output(self._handle.pointer, i) for i in range(len(self.inputs))]
        return {name: self.outputs[k] for name, k in zip(self.inputs, outputs) if k < len(self.outputs)}

    def reset_states(self):
        run.berth_dynamic_reset_states(self._handle.pointer)

    def state(self, name):
        """A copy of what is kept for an input; None before the first run."""
        index = self.inputs.index(name)
        results = Handle(lambda out: run.berth_dynamic_get_state(self._handle.pointer, index, out), run.berth_results_free)
        return self._item(results, 0, 0) if run.berth_results_item_count(results.pointer, 0) else None

    @property
    def copied_bytes(self):
        """Of state, that the last run had to copy."""
        return run.berth_dynamic_copied_bytes(self._handle.pointer)

    @property
    def memory(self):
        """A ValueMemory."""
        facts = _native.DynamicMemory()
        run.berth_dynamic_get_memory(self._handle.pointer, ctypes.byref(facts), ctypes.sizeof(facts))
        return ValueMemory(*(getattr(facts, name) for name in ValueMemory._fields))

    def limit_memory(self, limit_bytes):
        """Runs that need more for their values fail with OUT_OF_MEMORY; 0: no limit."""
        run.berth_dynamic_limit_memory(self._handle.pointer, limit_bytes)


class Compiler:
    """Options, and a model to compile with them. Options are those of berth_compiler_set (include/berth/compile.h).

    >>> import berth
    >>> compiler = berth.Compiler(target="cpu")
    >>> compiler.set("no_such_option", 1)
    Traceback (most recent call last):
    berth._native.BerthError: NOT_FOUND: ...
    """

    def __init__(self, **options):
        library = _native.compiler()
        self._handle = Handle(library.berth_compiler_create, library.berth_compiler_destroy)
        self._callbacks = []
        defaults = {"search_path": os.environ.get("PATH"), "cache_folder": cache_folder()}
        for name, value in {**defaults, **options}.items():
            self.set(name, value)

    def set(self, option, value):
        encoded = None if value is None else os.fsencode(str(value))
        _native.compiler().berth_compiler_set(self._handle.pointer, option.encode(), encoded)

    def add_pin(self, pin):
        _native.compiler().berth_compiler_add_pin(self._handle.pointer, pin.encode())

    def add_specialisation(self, text):
        """For executor "vm": values of open dimensions and of inputs that are one integer, "N=1,N=8" or "N=1..8"."""
        _native.compiler().berth_compiler_add_specialisation(self._handle.pointer, text.encode())

    def add_state(self, text):
        """For executor "vm": an input whose value is an output of the run before, "past.*=present.*"."""
        _native.compiler().berth_compiler_add_state(self._handle.pointer, text.encode())

    def set_dim(self, name, extent):
        """`extent`: a number, the least and the most that it may be, or an expression: "past+1"."""
        if isinstance(extent, str):
            _native.compiler().berth_compiler_set_dim_expression(self._handle.pointer, name.encode(), extent.encode())
        elif isinstance(extent, (tuple, list)):
            _native.compiler().berth_compiler_set_dim_bounds(self._handle.pointer, name.encode(), *extent)
        else:
            _native.compiler().berth_compiler_set_dim(self._handle.pointer, name.encode(), extent)

    def set_shape(self, port, shape):
        """Gives an input (of ModelInfo.inputs) a shape; makes an initializer (of ModelInfo.overridable) an input."""
        tensor = _native.Tensor(dtype=_arrays.dtype_number(port), rank=len(shape))
        if len(shape) > _native.MAX_RANK:
            raise BerthError("UNSUPPORTED", f'input "{port.name}" has {len(shape)} dimensions; at most {_native.MAX_RANK}')
        tensor.dims[:len(shape)] = shape
        self._set_input(port.name, tensor, 0)

    def set_constant(self, port, value):
        """Compiles an input's value in: the program has no such input then."""
        array = _arrays.as_array(value, port)
        self._set_input(port.name, _arrays.tensor_of(array, _arrays.dtype_number(port)), 1)

    def set_initializer(self, name, value):
        """Another value for an initializer, of its type and shape. The model's own is not read."""
        array = _arrays.as_array(value, _arrays.Port(name, None, None, "of an initializer"))
        if array.dtype.kind in "US":
            array = array.astype(object)
        dtype = _arrays.dtype_number_of(array)
        if dtype == _arrays.NONE:
            raise BerthError("INCOMPATIBLE", f'initializer "{name}": there is no element type {array.dtype}')
        self._set_input(name, _arrays.tensor_of(array, dtype), 1)

    def _set_input(self, name, tensor, constant):
        _native.compiler().berth_compiler_set_input(self._handle.pointer, name.encode(), ctypes.byref(tensor), constant)

    def on_progress(self, function):
        """function(what, done, total), from the thread that compiles."""
        callback = _native.PROGRESS(lambda _, what, done, total: function(text(what), done, total))
        self._callbacks.append(callback)
        _native.compiler().berth_compiler_on_progress(self._handle.pointer, callback, None)

    def on_message(self, function):
        """function(message), for notes and warnings."""
        callback = _native.MESSAGE(lambda _, message: function(text(message)))
        self._callbacks.append(callback)
        _native.compiler().berth_compiler_on_message(self._handle.pointer, callback, None)

    def compile(self, model, folder=None):
        """`model`: a path, or an ONNX model's bytes, whose external data is in `folder`."""
        library = _native.compiler()
        if isinstance(model, (bytes, bytearray, memoryview)):
            data = bytes(model)
            return Program(Handle(self._bound(library.berth_compiler_compile_memory), run.berth_program_release, data,
                                  len(data), path_bytes(folder) if folder else None))
        return Program(Handle(self._bound(library.berth_compiler_compile_file), run.berth_program_release, path_bytes(model)))

    def plan(self, model, folder=None):
        """A Plan of the model: where its operations would run, and why. Compiles no kernels."""
        return Plan(self._handle, model, folder)

    def load_dynamic(self, model, folder=None, threads=0):
        """A model whose shapes or control flow only the run knows; see Dynamic."""
        library = _native.compiler()
        if isinstance(model, (bytes, bytearray, memoryview)):
            data = bytes(model)
            return Dynamic(Handle(self._bound(library.berth_compiler_load_dynamic_memory), run.berth_dynamic_destroy,
                                  data, len(data), path_bytes(folder) if folder else None, threads))
        return Dynamic(Handle(self._bound(library.berth_compiler_load_dynamic_file), run.berth_dynamic_destroy,
                              path_bytes(model), threads))

    def _bound(self, function):
        return lambda *arguments: function(self._handle.pointer, *arguments)

    def cancel(self):
        """Makes a compilation on another thread end with BerthError CANCELLED."""
        _native.compiler().berth_compiler_cancel(self._handle.pointer)
