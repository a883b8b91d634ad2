"""Runs of a session whose tensors are made once: of a call, only the addresses of its arrays are new."""

import ctypes
from ctypes import addressof, c_char

import numpy as np

from . import _arrays, _native

_COPIED_BYTES = 1 << 14  # of an output: up to here a copy costs less than memory that is aligned for kernels

# The function alone, without a wrapper around its status.
_run_with = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_uint32,
                             ctypes.c_int64)(("berth_session_run_with", _native.run))


def _tensors(ports):
    """Their array, and its memory as words: [(index of the word of a tensor's address)]."""
    tensors = (_native.Tensor * max(len(ports), 1))()
    for tensor, port in zip(tensors, ports):
        tensor.dtype, tensor.rank = _arrays.dtype_number(port), len(port.shape)
        tensor.dims[:len(port.shape)] = port.shape
    word = ctypes.sizeof(ctypes.c_void_p)
    places = [(i * ctypes.sizeof(_native.Tensor) + _native.Tensor.data.offset) // word for i in range(len(ports))]
    return tensors, memoryview(tensors).cast("B").cast("N"), places


def _may_be_prepared(port):
    return port.is_static and port.dtype is not None and port.dtype != object and port.type != "bf16" and 0 not in port.shape


class PreparedRun:
    """For arrays of exactly a session's types and shapes; others are its caller's to convert. One thread at a time."""

    def __init__(self, program, pointer):
        self._pointer = pointer.value
        inputs, outputs = program.inputs, program.outputs
        self._inputs, self._input_words, input_places = _tensors(inputs)
        self._outputs, self._output_words, output_places = _tensors(outputs)
        self._wanted = list(zip(input_places, (port.dtype for port in inputs), (tuple(port.shape) for port in inputs)))
        self._made = list(zip(output_places, outputs, (tuple(port.shape) for port in outputs), (port.dtype for port in outputs),
                              (int(np.prod(port.shape)) * port.dtype.itemsize <= _COPIED_BYTES for port in outputs)))
        self._arguments = (self._pointer, addressof(self._inputs), len(inputs), addressof(self._outputs), len(outputs), -1)

    @classmethod
    def of(cls, program, pointer):
        """None where arrays of some input or output always need a conversion."""
        ports = program.inputs + program.outputs
        return cls(program, pointer) if all(map(_may_be_prepared, ports)) else None

    def run(self, arrays):
        """New arrays, one for each output; None where an array is not as the program takes it."""
        if len(arrays) != len(self._wanted):
            return None
        words = self._input_words
        for array, (place, dtype, shape) in zip(arrays, self._wanted):
            if type(array) is not np.ndarray or array.dtype != dtype or array.shape != shape:
                return None
            try:
                words[place] = addressof(c_char.from_buffer(array))
            except (TypeError, ValueError, BufferError):  # not contiguous, or not to be written
                return None
        words, results = self._output_words, []
        for place, port, shape, dtype, is_small in self._made:
            result = np.empty(shape, dtype) if is_small else _arrays.empty(port)
            words[place] = addressof(c_char.from_buffer(result))
            results.append(result)
        status = _run_with(*self._arguments)
        if status:
            _native.check(status)
        return results
