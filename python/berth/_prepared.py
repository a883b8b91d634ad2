"""Runs whose tensors are made once: of a call, only the addresses of its arrays are new."""

import ctypes
import math
from ctypes import addressof, c_char

import numpy as np

from . import _arrays, _native

_COPIED_BYTES = 1 << 14  # of an output: up to here a copy costs less than another array for kernels to write

_MOST_KNOWN = 64  # tensors of results

# The functions alone, without a wrapper around their status. What they take is given as objects of ctypes, made once: arguments whose types
# are declared are converted with every call (half a microsecond for six).
_run_with = ctypes.CFUNCTYPE(ctypes.c_void_p)(("berth_session_run_with", _native.run))
_run_dynamic = ctypes.CFUNCTYPE(ctypes.c_void_p)(("berth_dynamic_run", _native.run))
# These take less time than other threads would need to begin.
_results_item = ctypes.PYFUNCTYPE(ctypes.c_void_p)(("berth_results_item", _native.run))
_results_free = ctypes.PYFUNCTYPE(None)(("berth_results_free", _native.run))
_TensorBytes = ctypes.c_char * ctypes.sizeof(_native.Tensor)


def _tensors(ports):
    """Their array, and its memory as words: [(index of the word of a tensor's address)]."""
    tensors = (_native.Tensor * max(len(ports), 1))()
    for tensor, port in zip(tensors, ports):
        tensor.dtype, tensor.rank = _arrays.dtype_number(port), len(port.shape)
        tensor.dims[:len(port.shape)] = port.shape
    word = ctypes.sizeof(ctypes.c_void_p)
    places = [(i * ctypes.sizeof(_native.Tensor) + _native.Tensor.data.offset) // word for i in range(len(ports))]
    return tensors, memoryview(tensors).cast("B").cast("N"), places


def _place(memory):
    return ctypes.c_void_p(addressof(memory))


def _has_numbers(port):
    """Of a type that arrays have as it is."""
    return port.dtype is not None and port.dtype != object and port.type != "bf16"


def _may_be_prepared(port):
    return port.is_static and _has_numbers(port) and 0 not in port.shape


class _Prepared:
    """For arrays of exactly these types and shapes; others are its caller's to convert. One thread at a time."""

    def __init__(self, pointer, inputs):
        self._pointer = ctypes.c_void_p(pointer.value)
        self._inputs, self._input_words, places = _tensors(inputs)
        self._wanted = [(place, port.dtype, tuple(port.shape)) for place, port in zip(places, inputs)]

    def _takes(self, arrays):
        """Whether they are as wanted; their addresses are the tensors' then."""
        if len(arrays) != len(self._wanted):
            return False
        words = self._input_words
        for array, (place, dtype, shape) in zip(arrays, self._wanted):
            if type(array) is not np.ndarray or array.dtype != dtype or array.shape != shape and not self._reshape(place, array):
                return False
            try:
                words[place] = addressof(c_char.from_buffer(array))
            except (TypeError, ValueError, BufferError):  # not contiguous, or not to be written
                return False
        return True

    def _reshape(self, place, array):
        """Whether another shape than the tensor's may be given; it is the tensor's then."""
        return False


class PreparedRun(_Prepared):
    """Of a session."""

    def __init__(self, program, pointer):
        inputs, outputs = program.inputs, program.outputs
        super().__init__(pointer, inputs)
        self._outputs, self._output_words, output_places = _tensors(outputs)
        self._small, self._large = [], []  # of small outputs the arrays that runs write; results are copies of these
        for place, port in zip(output_places, outputs):
            is_small = math.prod(port.shape) * port.dtype.itemsize <= _COPIED_BYTES
            self._small.append(_arrays.empty(port) if is_small else None)
            if is_small:
                self._output_words[place] = _arrays.address_of(self._small[-1])
            else:
                self._large.append((place, port))
        self._arguments = (self._pointer, _place(self._inputs), ctypes.c_uint32(len(inputs)), _place(self._outputs),
                           ctypes.c_uint32(len(outputs)), ctypes.c_int64(-1))

    @classmethod
    def of(cls, program, pointer):
        """None where arrays of some input or output always need a conversion."""
        ports = program.inputs + program.outputs
        return cls(program, pointer) if all(map(_may_be_prepared, ports)) else None

    def run(self, arrays):
        """New arrays, one for each output; None where an array is not as the program takes it."""
        if not self._takes(arrays):
            return None
        large = []
        for place, port in self._large:
            large.append(_arrays.empty(port))
            self._output_words[place] = addressof(c_char.from_buffer(large[-1]))
        status = _run_with(*self._arguments)
        if status:
            _native.check(status)
        large.reverse()
        return [large.pop() if own is None else own.copy() for own in self._small]


class PreparedDynamic(_Prepared):
    """Of a model that takes arrays of any shapes, whose results have shapes that only the run knows. Only of one whose results are
    all arrays of numbers, as one run gave them: that is a matter of their types, not of the run."""

    def __init__(self, pointer, inputs, output_count):
        super().__init__(pointer, [port._replace(shape=()) for port in inputs])
        self._results = ctypes.c_void_p()
        self._may_reshape = True
        self._first = ctypes.c_uint32(0)
        self._output_indices = [ctypes.c_uint32(index) for index in range(output_count)]
        self._arguments = (self._pointer, _place(self._inputs), ctypes.c_uint32(len(inputs)), _place(self._results))
        self._known = {}  # bytes of a small result's tensor: an array over the same memory, to copy while there is such a result

    @classmethod
    def of(cls, pointer, inputs, results):
        """`inputs`: a Port for each. False where an array of some input or output always needs a conversion."""
        numbers = all(map(_has_numbers, inputs)) and all(type(one) is np.ndarray and one.dtype != object for one in results)
        return cls(pointer, inputs, len(results)) if numbers else False

    def _reshape(self, place, array):
        if not self._may_reshape or array.ndim > _native.MAX_RANK:
            return False
        index = place * ctypes.sizeof(ctypes.c_void_p) // ctypes.sizeof(_native.Tensor)
        tensor = self._inputs[index]
        tensor.rank, tensor.dims[:array.ndim] = array.ndim, array.shape
        self._wanted[index] = (place, array.dtype, array.shape)
        return True

    def run(self, arrays, other_shapes=True):
        """New arrays, one for each output; None, and nothing has run, where an array needs a conversion, or has another shape than
        in the latest run and may not."""
        self._may_reshape = other_shapes
        if not self._takes(arrays):
            return None
        status = _run_dynamic(*self._arguments)
        if status:
            _native.check(status)
        pointer, owner, results = self._results, None, []
        try:
            for index in self._output_indices:
                tensor = _results_item(pointer, index, self._first)
                if tensor is None:  # an empty optional value
                    results.append(None)
                    continue
                known = self._known.get(_TensorBytes.from_address(tensor).raw)
                if known is None:
                    owner = owner or _native.Handle.of(pointer.value, _native.run.berth_results_free)
                    results.append(self._new(tensor, owner))
                else:
                    results.append(known.copy())
        finally:
            if owner is None:
                _results_free(pointer)
        return results

    def _new(self, tensor, results):
        record = _native.Tensor.from_address(tensor)
        known = _arrays.view_of(record, None)
        if known.nbytes > _COPIED_BYTES:
            return _arrays.view_of(record, results)
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[_TensorBytes.from_address(tensor).raw] = known
        return known.copy()
