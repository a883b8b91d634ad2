"""Models that are called with arrays: compiled per shapes of inputs, with a session per caller at once."""

import collections
import contextlib
import os
import re
import threading

import numpy as np

from . import _arrays
from ._native import BerthError
from ._program import Compiler, Dynamic, ModelInfo, Program, Session

_MAGIC = b"BERTHPRG"  # how program files begin
_SMALL_INPUT = 64  # elements of an integer input whose value may have to be compiled in
_MOST_SHAPES = 8  # kept where each is compiled for itself
_OWN_SHAPES = 1  # compiled for itself before others share code


class _Variant:
    """A program for certain shapes, and its sessions that nobody uses right now."""

    def __init__(self, program, constants):
        self.program = program
        self.constants = constants  # names of inputs whose values are compiled in
        self.free = []

    def take(self):
        """A session that nobody uses from now on but the caller, who puts it back; None where there is none. Any thread."""
        try:
            return self.free.pop()
        except IndexError:
            return None


def _fallback_options(fallback, options):
    """Target, pins and options of a fallback: a target, or {"target": ..., "pins": [...], ...}. Pins, host and budgets of memories
    are of the model's own target, and not for it."""
    own = {"target": fallback} if isinstance(fallback, str) else dict(fallback)
    if "target" not in own:
        raise BerthError("INVALID_ARGUMENT", f"a fallback is a target, or a dict with one, not {fallback!r}")
    kept = {name: value for name, value in options.items() if name not in ("host", "memory")}
    target, pins = own.pop("target"), own.pop("pins", ())
    return target, pins, {**kept, **own}


@contextlib.contextmanager
def _watched(watch, session):
    if watch is None:
        yield
        return
    watch._begin(session)
    try:
        yield
    finally:
        watch._end(session)


class Model:
    """A model or a program that is called with arrays.

        model = berth.load("digits.onnx", target="cpu")
        scores = model(images)                  # NumPy, or what speaks DLPack
        both = model.run({"image": images})     # outputs by name

    A model with open dimensions is compiled when it first sees a combination of shapes; the last `max_shapes` are kept.
    One with control flow, or with shapes that depend on data, runs by parts (docs/vm.md), on one thread at a time; outputs
    that are sequences are lists then.
    Any number of threads may call it: each call uses a session of its own, with memory of its own.

    With `states`, inputs that are outputs of the call before need not be given, and such outputs are not among the results:
        decoder = berth.load("decoder.onnx", dims={"batch": 1, "seq": 1, "past": (0, 127), "total": "past+1"},
                             states=["past_key_values.*=present.*"])
        logits = decoder.run({"input_ids": token, ...})["logits"]     # one call after the other
        decoder.reset()                                               # another text
    """

    def __init__(self, model, target=None, dims=None, constants=None, pins=(), max_shapes=None, threads=0, profile=False,
                 devices=None, folder=None, progress=None, message=None, fallbacks=(), states=None, initializers=None,
                 _as_inputs=(), **options):
        self._lock = threading.Lock()
        self._dynamic = None  # for all shapes: once the model needs it, or has seen several
        self._dynamic_lock = threading.Lock()
        self._dynamic_order = None
        self._latest = None  # what ran: the variant that is the last of _variants, or _dynamic
        self.last_session = None  # of the latest call: its steps, with profile=True
        self._variants = collections.OrderedDict()  # key -> _Variant, least recently used first
        self._max_shapes = max(1, _MOST_SHAPES if max_shapes is None else max_shapes)
        self._may_share = max_shapes is None and not (profile or devices or constants or fallbacks)
        self._spare_dynamic = None  # loaded, and used once shapes share code
        self._settings = {"threads": threads, "profile": profile, "devices": devices, "message": message}
        self._fallbacks = tuple(fallbacks)
        self._source, self._folder = model, folder
        self._compile_options = (target, dict(dims or {}), dict(constants or {}), tuple(pins), progress, message, options)
        self._initializers = dict(initializers or {})
        self._given_max_shapes = max_shapes
        self.overridable = []
        self._overridden = {}  # by names of initializers that calls give: a model that has these as inputs
        self._states = {}  # input: output
        self._program = _open_program(model, options.get("limits"))
        if self._program:
            if states not in (None, True, False):
                raise BerthError("INVALID_ARGUMENT", "a program has the states that it was built with: give states=True")
            self._check_no_compile_options()
        elif states:
            self._program = self._compile_with(states)
        if self._program:
            self.inputs, self.outputs = self._program.inputs, self._program.outputs
            self._input_names = [port.name for port in self.inputs]
            if self._program.executor == "vm":
                self._dynamic = self._program.load_dynamic(threads)
            if states:
                self._keep_states()
            return
        info = ModelInfo(model, folder, options.get("limits"), initializers)
        self._as_inputs = [port for port in info.overridable if port.name in _as_inputs]
        self.overridable = [port for port in info.overridable if port.name not in _as_inputs]
        self._all_inputs = info.inputs + self._as_inputs
        self._check_names(dims or {}, constants or {})
        self.inputs = [_with_dims(p, dims or {}) for p in self._all_inputs if p.name not in (constants or {})]
        self._input_names = [port.name for port in self.inputs]
        self.outputs = [_with_dims(p, dims or {}) for p in info.outputs]
        if any(isinstance(extent, (tuple, list, str)) for extent in (dims or {}).values()):
            self._dynamic = self._load_dynamic()  # one for all shapes within bounds
            return
        if all(port.is_static for port in self.inputs):
            try:
                variant = self._compile({port.name: port.shape for port in self.inputs}, {})
            except BerthError as error:
                self._dynamic_after(error)
                return
            self._variants[self._key([port.shape for port in self.inputs])] = variant
            self.outputs = variant.program.outputs
        elif self._may_share:
            self._take_kept()

    def _compile_with(self, states):
        """A program for all values within bounds, which keeps these states."""
        if states is True:
            raise BerthError("INVALID_ARGUMENT", 'states of a model are a list of "INPUT=OUTPUT", as "past.*=present.*"')
        compiler = self._compiler()
        for text in [states] if isinstance(states, str) else states:
            compiler.add_state(text)
        compiler.set("executor", "vm")
        return compiler.compile(self._source, self._folder)

    def _keep_states(self):
        if self._dynamic is None:
            raise BerthError("INVALID_ARGUMENT", "the program was built without states")
        self._states = self._dynamic.keep_states()
        self.outputs = [port for port in self.outputs if port.name not in self._states.values()]

    def reset(self):
        """Forgets all state: the next call begins anew."""
        with self._dynamic_lock:
            self._dynamic.reset_states()

    def state(self, name):
        """A copy of the state that the next call takes for this input; None before the first call."""
        if name not in self._states:
            raise BerthError("NOT_FOUND", f'no input "{name}" is state; there is {", ".join(sorted(self._states)) or "none"}')
        with self._dynamic_lock:
            return self._dynamic.state(name)

    @property
    def copied_bytes(self):
        """Bytes of state that the last call had to copy: 0 where it grew in place."""
        return self._dynamic.copied_bytes if self._states else 0

    @property
    def value_memory(self):
        """A ValueMemory where the model runs by parts, as one with control flow does; None before and for others."""
        return self._dynamic.memory if self._dynamic else None

    def limit_value_memory(self, limit_bytes):
        """Of what value_memory counts as reserved: calls that need more fail with OUT_OF_MEMORY. 0: no limit."""
        if self._dynamic is None:
            raise BerthError("UNSUPPORTED", "the model has one static plan for each shape: no values come and go in its runs")
        self._dynamic.limit_memory(limit_bytes)

    def _check_no_compile_options(self):
        target, dims, constants, pins, _, _, options = self._compile_options
        if target or dims or constants or pins or set(options) - {"limits"} or self._fallbacks or self._initializers:
            raise BerthError("INVALID_ARGUMENT", "a program is compiled already: target, dims, constants, initializers, pins and other "
                             "options of the compiler are for models")

    def _check_names(self, dims, constants):
        names = [port.name for port in self._all_inputs]
        for name in constants:
            if name not in names:
                raise BerthError("NOT_FOUND", f'the model has no input "{name}"; its inputs are: {", ".join(names)}')
        symbols = {extent for port in self._all_inputs for extent in port.shape or () if isinstance(extent, str)}
        axes = {f"{port.name}.{axis}" for port in self._all_inputs for axis in range(len(port.shape or ()))}
        # A symbol that dimensions follow from may be none of the model's: {"height": "32*a", "a": (1, 8)}.
        followed = {word for text in dims.values() if isinstance(text, str) for word in re.findall(r"[A-Za-z_][\w.]*", text)}
        for name in dims:
            if name not in symbols | axes | followed:
                raise BerthError("NOT_FOUND", f'the model has no open dimension "{name}"; it has: '
                                 f'{", ".join(sorted(symbols)) or "none"}')

    # ---- programs by shapes ----

    def _compiler(self, fallback=None):
        target, dims, _, pins, progress, message, options = self._compile_options
        if fallback is not None:
            target, pins, options = _fallback_options(fallback, options)
        compiler = Compiler(target=target, **options)
        if progress:
            compiler.on_progress(progress)
        if message:
            compiler.on_message(message)
        for pin in pins:
            compiler.add_pin(pin)
        for name, extent in dims.items():
            compiler.set_dim(name, extent)
        for name, value in self._initializers.items():
            compiler.set_initializer(name, value)
        return compiler

    def _compile(self, shapes, values):
        program = self._compile_for(shapes, values)
        if self._fallbacks:
            program = program.with_fallbacks(*[self._compile_for(shapes, values, target) for target in self._fallbacks])
        return _Variant(program, frozenset(values))

    def _compile_for(self, shapes, values, fallback=None):
        constants = self._compile_options[2]
        compiler = self._compiler(fallback)
        for port in self._all_inputs:
            if port.name in constants or port.name in values:
                compiler.set_constant(port, constants.get(port.name, values.get(port.name)))
            else:
                compiler.set_shape(port, shapes[port.name])
        return compiler.compile(self._source, self._folder)

    @staticmethod
    def _key(shapes, values=()):
        return tuple(tuple(shape) for shape in shapes), tuple(values)

    def _small_integers(self, arrays):
        """Inputs whose values may decide shapes or branches."""
        return {port.name: array for port, array in zip(self.inputs, arrays)
                if array.dtype.kind in "iub" and array.size <= _SMALL_INPUT}

    def _find(self, arrays):
        """The kept variant for these arrays, or None. With the lock."""
        shapes = [array.shape for array in arrays]
        values = [(name, array.tobytes()) for name, array in self._small_integers(arrays).items()]
        for key in (self._key(shapes), self._key(shapes, values)):
            if key in self._variants:
                self._variants.move_to_end(key)
                return self._variants[key]
        return None

    def _make(self, arrays):
        shapes = {port.name: array.shape for port, array in zip(self.inputs, arrays)}
        small = self._small_integers(arrays)
        values = []
        try:
            variant = self._compile(shapes, {})
        except BerthError as error:
            # Shapes or branches that depend on values: those of small integer inputs are compiled in.
            if not small or error.code not in ("INVALID_ARGUMENT", "UNSUPPORTED"):
                raise
            values = [(name, array.tobytes()) for name, array in small.items()]
            try:
                variant = self._compile(shapes, small)
            except BerthError:
                raise error from None
        return self._key([array.shape for array in arrays], values), variant

    def _load_dynamic(self, several_sizes=False):
        """For control flow and for shapes that depend on data: one for all shapes. `several_sizes`: kernels serve many from the first on."""
        compiler = self._compiler()
        if several_sizes:
            compiler.set("several_sizes", "on")
        constants = self._compile_options[2]
        for port in self._all_inputs:
            if port.name in constants:
                compiler.set_constant(port, constants[port.name])
        for port in self._as_inputs:
            compiler.set_shape(port, [0] * len(port.shape or ()))  # only that it is an input matters
        return compiler.load_dynamic(self._source, self._folder, self._settings["threads"])

    def _dynamic_after(self, error):
        """Where no program can be made of the model, what runs it all the same; or the error."""
        if error.code != "UNSUPPORTED" or self._fallbacks:
            raise error
        with self._lock:
            self._may_share = False  # it must
            if self._dynamic is None:
                try:
                    self._dynamic = self._spare_dynamic or self._load_dynamic()
                except BerthError:
                    raise error from None
        return self._dynamic

    def _share_code(self):
        """One for all shapes from here on, where the compiler's options allow it."""
        with self._lock:
            if self._dynamic is not None:
                return
            try:
                self._dynamic = self._spare_dynamic or self._load_dynamic(several_sizes=True)
            except BerthError as error:
                if error.code != "UNSUPPORTED":
                    raise
                self._may_share = False

    def _take_kept(self):
        """A program for many shapes that an earlier session kept: it serves the first run, too."""
        try:
            self._spare_dynamic = self._load_dynamic(several_sizes=True)
        except BerthError:
            return  # what compiles for the shapes says why, if it cannot either
        if self._spare_dynamic.has_kept_program():
            self._dynamic = self._spare_dynamic

    def _variant_for(self, arrays, own=False):
        """`own`: a program for these shapes, where the model can have one."""
        if self._program and self._dynamic is not None:
            return self._dynamic
        if self._program:
            with self._lock:
                return self._variants.setdefault(None, _Variant(self._program, frozenset()))
        with self._lock:
            variant = self._find(arrays)
        if variant:
            return variant
        own = own and self._may_share
        if self._may_share and not own and self._dynamic is None and len(self._variants) >= _OWN_SHAPES:
            self._share_code()
        if self._dynamic is not None and not own:
            return self._dynamic
        try:
            key, variant = self._make(arrays)  # without the lock: other shapes go on meanwhile
        except BerthError as error:
            return self._dynamic_after(error)
        with self._lock:
            variant = self._variants.setdefault(key, variant)
            self._variants.move_to_end(key)
            while len(self._variants) > self._max_shapes:
                self._variants.popitem(last=False)
        return variant

    # ---- running ----

    def _arrays(self, args, named):
        names = [port.name for port in self.inputs]
        for name in named:
            if name not in names:
                raise BerthError("NOT_FOUND", f'no input is named "{name}"; there is {", ".join(names) or "none"}')
            if name in names[:len(args)]:
                raise BerthError("INVALID_ARGUMENT", f'input "{name}" is given twice')
        missing = [name for name in names[len(args):] if name not in named and name not in self._states]
        if missing or len(args) > len(names):
            raise BerthError("INVALID_ARGUMENT", f'the inputs are {", ".join(names) or "none"}; ' +
                             (f'missing: {", ".join(missing)}' if missing else f"{len(args)} were given"))
        values = list(args) + [named.get(name) for name in names[len(args):]]
        return [None if value is None and port.name in self._states else _arrays.as_array(value, port)
                for value, port in zip(values, self.inputs)]

    def _with_inputs(self, names):
        """The model with these initializers as inputs besides its own."""
        with self._lock:
            found = self._overridden.get(names)
        if found is None:
            target, dims, constants, pins, progress, _, options = self._compile_options
            model = Model(self._source, target, dims, constants, pins, self._given_max_shapes, folder=self._folder,
                          progress=progress, fallbacks=self._fallbacks, initializers=self._initializers, _as_inputs=names,
                          **self._settings, **options)
            with self._lock:
                found = self._overridden.setdefault(names, model)
        return found

    def _given(self, args, named, timeout=None, watch=None):
        """Runs on the inputs given; those named may be of initializers."""
        if len(args) == 1 and isinstance(args[0], dict) and not named:
            args, named = (), args[0]
        names = frozenset(port.name for port in self.overridable if port.name in named)
        if not names:
            return self._run(self._arrays(args, named), timeout, watch)
        positional = [port.name for port in self.inputs][:len(args)]
        if len(positional) < len(args) or any(name in named for name in positional):
            self._arrays(args, named)  # says what is wrong
        model = self._with_inputs(names)
        results = model._run(model._arrays((), {**named, **dict(zip(positional, args))}), timeout, watch)
        self.last_session = model.last_session
        return results

    def _run(self, arrays, timeout=None, watch=None):
        variant = self._variant_for(arrays, own=timeout is not None)
        if isinstance(variant, Dynamic):
            results = self._run_dynamic(variant, arrays, watch)
            if not self._states:
                self._latest = variant
            return results
        session = variant.take() or Session(variant.program, **self._settings)
        by_name = dict(zip(self._input_names, arrays))
        wanted = [by_name[port.name] for port in variant.program.inputs]
        try:
            with _watched(watch, session):
                results = session.run(wanted, timeout=timeout)
        finally:
            variant.free.append(session)
        self.last_session = session
        if not variant.constants and [port.name for port in variant.program.inputs] == self._input_names:
            self._latest = variant
        return results

    def _run_dynamic(self, dynamic, arrays, watch=None):
        if self._dynamic_order is None:  # the places of its inputs among the model's
            places = [self._input_names.index(name) for name in dynamic.inputs]
            is_same = places == list(range(len(self.inputs)))
            self._dynamic_order = None if is_same else places, [self.inputs[place] for place in places]
        places, ports = self._dynamic_order
        wanted = [arrays[place] for place in places] if places else arrays
        with self._dynamic_lock, _watched(watch, dynamic):
            results = dynamic.run(wanted, ports)
        if not self._states:
            return results
        kept = set(self._states.values())
        return [result for name, result in zip(dynamic.outputs, results) if name not in kept]

    def _run_again(self, arrays):
        """On what ran latest. None, and nothing has run, where the arrays are not as it takes them."""
        latest = self._latest
        if latest is None:
            return None
        if latest is self._dynamic:
            places = self._dynamic_order[0]
            if places and len(arrays) == len(places):
                arrays = [arrays[place] for place in places]
            with self._dynamic_lock:
                return latest.run_prepared(arrays, other_shapes=not self._variants)  # one may be of these
        session = latest.take()
        if session is None:  # others run on all that there are
            return None
        try:
            results = session._run_prepared(arrays)
        finally:
            latest.free.append(session)
        if results is not None:
            self.last_session = session
        return results

    def _run_again_named(self, inputs):
        names = self._input_names
        return self._run_again(list(map(inputs.get, names))) if len(inputs) == len(names) else None

    def __call__(self, *args, timeout=None, **named):
        """Inputs by position, by name, or as one dict; by name also other values for initializers that the model lists among
        its inputs (`overridable`), for this call. Gives the output, or a tuple where the model has several."""
        results = self._run_again(args) if timeout is None and not named else None
        if results is None:
            results = self._given(args, named, timeout)
        return results[0] if len(results) == 1 else tuple(results)

    def run(self, inputs, timeout=None):
        """inputs: {name: array}. Gives {name: array}."""
        return self._run_named(inputs, timeout)

    def _run_named(self, inputs, timeout=None, watch=None):
        """`watch`: an object whose `_begin` and `_end` are called with what runs, and which may cancel that."""
        results = self._run_again_named(inputs) if timeout is None and watch is None else None
        if results is None:
            results = self._given((), dict(inputs), timeout, watch)
        return dict(zip([port.name for port in self.outputs], results))

    def program(self, *shapes):
        """The program for inputs of these shapes, compiled if need be; none where the model says them all."""
        if self._program:
            return self._program
        shapes = shapes or [port.shape for port in self.inputs]
        if len(shapes) != len(self.inputs) or not all(isinstance(n, int) for shape in shapes for n in shape):
            raise BerthError("INVALID_ARGUMENT", "give a shape of numbers for each of the inputs: " +
                             ", ".join(f"{port.name} {port.shape}" for port in self.inputs))
        arrays = [np.zeros(shape, port.dtype) for shape, port in zip(shapes, self.inputs)]
        variant = self._variant_for(arrays, own=True)
        if isinstance(variant, Dynamic):
            raise BerthError("UNSUPPORTED", "the model has control flow, or shapes that depend on data: it has no program")
        return variant.program

    def __repr__(self):
        inputs = ", ".join(f"{p.name}: {p.type}{list(p.shape) if p.shape is not None else ''}" for p in self.inputs)
        return f"<berth.Model ({inputs}) -> {', '.join(p.name for p in self.outputs)}>"


def _with_dims(port, dims):
    """The port with dimensions that the caller fixes, by name or as INPUT.AXIS."""
    if port.shape is None:
        return port
    fixed = {name: extent for name, extent in dims.items() if not isinstance(extent, (tuple, list, str))}
    shape = tuple(fixed.get(extent, fixed.get(f"{port.name}.{axis}", extent)) if isinstance(extent, str) else extent
                  for axis, extent in enumerate(port.shape))
    return port._replace(shape=shape)


def _open_program(model, limits=None):
    """The program, where `model` is a program, or a file or bytes that hold one; None for models."""
    if isinstance(model, Program):
        return model
    if isinstance(model, (bytes, bytearray, memoryview)):
        if bytes(model[:len(_MAGIC)]) != _MAGIC:
            return None
        return Program.from_bytes(model, limits=limits)
    try:
        with open(model, "rb") as file:
            is_program = file.read(len(_MAGIC)) == _MAGIC
    except FileNotFoundError:
        raise BerthError("NOT_FOUND", f'cannot open "{os.fspath(model)}": no such file') from None
    except OSError as error:
        raise BerthError("IO", f'cannot open "{os.fspath(model)}": {error.strerror}') from None
    return Program.open(model, limits=limits) if is_program else None


def load(model, target=None, **options):
    """Loads a model (ONNX, or a module as `berth opt` prints it) or a program made by `berth build`.

    model:      a path, or bytes
    target:     what machine to compile for (docs/target.md): "cpu", "cpu,opencl", "local", ...
    dims:       {dimension: extent}, by name or as "INPUT.AXIS": fixed before anything is compiled. (least, most): one model
                for all extents within these bounds, and for no others. "past+1": it follows from other dimensions
    constants:  {input: value} to compile in; the model has no such inputs then
    initializers:  {name: value} in place of the values that the model's file has, of the same types and shapes
    pins:       ["PATTERN=DEVICE"]: where nodes run
    max_shapes: compile each combination of input shapes for itself, and keep this many; else from the third on all share
                code, and a new one costs no run of the C compiler, mostly
    states:     ["INPUT=OUTPUT", ...]: inputs that are outputs of the call before, and are kept (Model); "past.*=present.*" is
                one for each text that the * stands for. Of a program that was built with states: True
    threads:    of the processor per session; 0 = as many as its target has cores
    progress, message: functions called while compiling
    limits:     of what is read, "bytes=64MiB,items=10000,depth=50,time=5s" (docs/limits.md); for who does not trust a file
    others:     options of the compiler (include/berth/compile.h): strategy, objective, jobs, ...
    """
    return Model(model, target, **options)
