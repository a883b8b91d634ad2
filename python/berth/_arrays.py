"""NumPy arrays and the C API's tensors."""

import ctypes
import functools
import math
from typing import NamedTuple, Optional, Tuple, Union

import numpy as np

from . import _device_memory, _native

# By the numbers of berth_dtype. bf16, which NumPy lacks, is given as its bits, and taken so or as an array
# of ml_dtypes.bfloat16.
_NAMES = {1: "float32", 2: "float64", 3: "float16", 4: "uint16", 5: "int8", 6: "int16", 7: "int32", 8: "int64",
          9: "uint8", 10: "uint16", 11: "uint32", 12: "uint64", 13: "bool", 14: "object"}
STRING = 14  # arrays of str, as ONNX Runtime gives and takes them; bytes that are no UTF-8 are surrogates ("surrogateescape")
_NUMPY = {number: np.dtype(name) for number, name in _NAMES.items()}
BF16 = 4
NONE = 0


class Port(NamedTuple):
    """An input or output. An open dimension of a model is its name (a str), or None where it has none."""

    name: str
    dtype: Optional[np.dtype]  # None = the model does not say
    shape: Optional[Tuple[Union[int, str, None], ...]]  # None = the model does not say
    type: str  # Berth's name of the element type: "f32", "bf16"

    @property
    def is_static(self):
        return self.shape is not None and all(isinstance(extent, int) for extent in self.shape)


@functools.lru_cache(maxsize=None)
def type_name(dtype):
    return _native.text(_native.run.berth_dtype_name(dtype))


def port_of(port):
    tensor = port.type
    shape = None if tensor.rank < 0 else tuple(None if extent < 0 else extent for extent in tensor.dims[:tensor.rank])
    return Port(_native.text(port.name), _NUMPY.get(tensor.dtype), shape, type_name(tensor.dtype))


def port_of_value(value):
    shape = None
    if value.rank >= 0:
        dims = [value.dims[i] for i in range(value.rank)]
        shape = tuple(dim.extent if dim.extent >= 0 else _native.text(dim.name) for dim in dims)
    return Port(_native.text(value.name), _NUMPY.get(value.dtype), shape, type_name(value.dtype))


def tensor_of(array, dtype):
    """A tensor over the array's data, which must be contiguous and stay alive. `dtype` is a berth_dtype. Of strings the
    tensor holds the data: copies of the struct (an array of tensors) do not, so it must stay alive as well."""
    tensor = _native.Tensor(dtype=dtype, rank=array.ndim)
    tensor.dims[:array.ndim] = array.shape
    if dtype == STRING:
        array = tensor.strings = _strings_of(array)
    tensor.data = address_of(array)
    return tensor


def address_of(array):
    """None of one without elements."""
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(array))
    except (TypeError, ValueError, BufferError):  # without elements, or not to be written, or of objects
        return array.ctypes.data if array.size else None


class _Strings(np.ndarray):
    """Address and length of each string; `text` has the bytes."""


def _encoded(item):
    if isinstance(item, str):
        return item.encode("utf-8", "surrogateescape")
    if isinstance(item, bytes):
        return item
    raise _native.BerthError("INCOMPATIBLE", f"an array of strings has {item!r} ({type(item).__name__}) among its elements")


def _strings_of(array):
    parts = [_encoded(item) for item in array.ravel().tolist()]
    strings = np.zeros((len(parts), 2), np.uintp).view(_Strings)
    text = np.frombuffer(b"".join(parts) or b"\0", np.uint8)
    strings[:, 1] = [len(part) for part in parts]
    strings[:, 0] = text.ctypes.data + np.cumsum(strings[:, 1]) - strings[:, 1]
    strings.text = text
    return strings


def _text_array(tensor, shape):
    count = int(np.prod(shape, dtype=np.int64))
    array = np.empty(count, object)
    if count:
        memory = (ctypes.c_size_t * (2 * count)).from_address(tensor.data)
        for i in range(count):
            length = memory[2 * i + 1]
            array[i] = ctypes.string_at(memory[2 * i], length).decode("utf-8", "surrogateescape") if length else ""
    return array.reshape(shape)


@functools.lru_cache(maxsize=None)
def _numbers():
    return {type_name(number): number for number in _NUMPY}


def dtype_number(port):
    return _numbers().get(port.type, NONE)


def dtype_number_of(array):
    """Of an array's own element type; its 16-bit words are u16, not bf16. NONE = Berth has no such type."""
    return next((number for number, dtype in _NUMPY.items() if dtype == array.dtype and number != BF16), NONE)


# DLDeviceType of the DLPack specification. The host reads the first four as its own memory.
_HOST_MEMORY = {1: "CPU", 3: "CUDAHost", 11: "ROCMHost", 13: "CUDAManaged"}
_DEVICE_MEMORY = {2: "CUDA", 4: "OpenCL", 7: "Vulkan", 8: "Metal", 9: "VPI", 10: "ROCM", 12: "ExtDev", 14: "OneAPI",
                  15: "WebGPU", 16: "Hexagon"}


def _from_dlpack(value, port):
    kind = int(value.__dlpack_device__()[0]) if hasattr(value, "__dlpack_device__") else 1
    if _device_memory.kind_of(value) is not None:
        return _device_memory.read(value, f'input "{port.name}"')
    if kind not in _HOST_MEMORY:
        raise _native.BerthError("UNSUPPORTED", f'input "{port.name}" is in the memory of a device '
                                 f'(kDL{_DEVICE_MEMORY.get(kind, kind)}); those of kDLCUDA and kDLOpenCL are read, others not: '
                                 "copy it to host memory first (PyTorch: .cpu())")
    try:  # NumPy has no bf16 to take a tensor as
        return _device_memory.view(value, kind, f'input "{port.name}"') if port.type == "bf16" else np.from_dlpack(value)
    except _native.BerthError:
        raise
    except (BufferError, RuntimeError, TypeError, ValueError) as error:  # NumPy's, or the other library's
        raise _native.BerthError("INCOMPATIBLE", f'input "{port.name}" is {port.type}; the {type(value).__name__} of '
                                 f"{getattr(value, 'dtype', 'unknown type')} given cannot be read: {error}") from error


def _conversion(value, port):
    """What makes an array of another type one for the port."""
    if port.type == "bf16":
        return "convert it with .astype(ml_dtypes.bfloat16), or give its bits as uint16"
    if value.dtype.name.startswith(("float8", "float4")):  # a port of such a type is u8
        return f"if the model's input is of that type, give its codes: .view({port.dtype})"
    return f"convert it with .astype({port.dtype})"


def as_array(value, port):
    """The value as a contiguous array of the port's element type. Without a copy where it is one already; other
    libraries' tensors come through DLPack. Python numbers and lists are converted, arrays of another type are not."""
    if value is None:  # of which NumPy makes a NaN
        raise _native.BerthError("INVALID_ARGUMENT", f'input "{port.name}" is None, where an array is expected')
    if not isinstance(value, np.ndarray):
        if hasattr(value, "__dlpack__") and hasattr(np, "from_dlpack"):
            value = _from_dlpack(value, port)
        elif hasattr(value, "__array__"):
            value = np.asarray(value)
        else:
            value = np.asarray(value, dtype=port.dtype)
    if port.type == "bf16" and value.dtype.name == "bfloat16":  # of the package ml_dtypes
        value = value.view(port.dtype)
    if port.dtype == object and value.dtype.kind in "US":
        value = value.astype(object)
    if port.dtype is not None and value.dtype != port.dtype:
        raise _native.BerthError("INCOMPATIBLE", f'input "{port.name}" is {port.type}, but an array of {value.dtype} was '
                                 f"given; {_conversion(value, port)}")
    return value if value.flags.c_contiguous else np.ascontiguousarray(value).reshape(value.shape)


def tensors_of(arrays, ports):
    """As many as there are arrays, for ctypes; those that no port is for are left empty."""
    tensors = (_native.Tensor * max(len(arrays), 1))()
    for i, array in enumerate(arrays[:len(ports)]):
        tensors[i] = tensor_of(array, dtype_number(ports[i]))
    return tensors


def places(out, ports):
    """Arrays for a run to fill, and [(array, tensor)] to copy then: tensors of `out` that are in the memory of a device."""
    arrays, copies = list(out), []
    for i, port in enumerate(ports[:len(arrays)]):
        if not isinstance(arrays[i], np.ndarray) and _device_memory.kind_of(arrays[i]) is not None:
            copies.append((empty(port), arrays[i], f'output "{port.name}"'))
            arrays[i] = copies[-1][0]
    return arrays, copies


def check_out(arrays, ports):
    for array, port in zip(arrays, ports):
        if not isinstance(array, np.ndarray) or array.dtype != port.dtype or not array.flags.c_contiguous or \
                not array.flags.writeable:
            raise _native.BerthError("INVALID_ARGUMENT", f'output "{port.name}" takes a contiguous array of {port.dtype}')


def empty(port):
    """A new array for an output, aligned so that kernels can write it in place (berth_session_run_with)."""
    alignment = 128
    memory = np.empty(math.prod(port.shape) * port.dtype.itemsize + alignment, np.uint8)
    start = -ctypes.addressof(ctypes.c_char.from_buffer(memory)) % alignment
    return np.ndarray(port.shape, port.dtype, memory, start)


def shape_and_type(tensor):
    return tuple(tensor.dims[:tensor.rank]), _NUMPY[tensor.dtype]


def view_of(tensor, owner):
    """An array over memory of the C API. It keeps `owner` alive. Of strings a copy."""
    shape, dtype = shape_and_type(tensor)
    if tensor.dtype == STRING:
        return _text_array(tensor, shape)
    size_bytes = math.prod(shape) * dtype.itemsize
    if size_bytes == 0:
        return np.empty(shape, dtype)
    memory = (ctypes.c_uint8 * size_bytes).from_address(tensor.data)
    memory._owner = owner  # ctypes objects take attributes; the array keeps its memory object
    return np.ndarray(shape, dtype, memory)
