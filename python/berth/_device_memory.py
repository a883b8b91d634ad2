"""Tensors of other libraries, by DLPack, that NumPy does not take: in the memory of a GPU, copied to and from host memory; in host
memory, of a type that it lacks.

What `data` of a DLTensor is there says DLPack's dlpack.h: of kDLCUDA an address of CUDA's, in the primary context of the device;
of kDLOpenCL a cl_mem, in a context of its own. Of the other kinds of memory it says no more than an address of the vendor's
(kDLVulkan: neither the VkDevice nor a queue), so these are refused.

Copies are made by the vendor's library that the process loads, libcuda.so.1 or libOpenCL.so.1, on the calling thread, and are
complete when they return.
"""

import ctypes
import math
from ctypes import POINTER, byref, c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p

import numpy as np

from ._native import BerthError

CUDA, OPENCL = 2, 4  # DLDeviceType


class _DLTensor(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32), ("ndim", c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", POINTER(c_int64)),
                ("strides", POINTER(c_int64)), ("byte_offset", c_uint64)]


_VERSIONED_OFFSET = 32  # of the DLTensor in a DLManagedTensorVersioned: after version, manager, deleter and flags
_LETTERS = {0: "i", 1: "u", 2: "f", 4: "u", 6: "b"}  # DLDataTypeCode; bf16 as its bits, as everywhere in this package


class _Tensor:
    """What a capsule of __dlpack__ describes. It stays the producer's: nothing is taken over."""

    def __init__(self, value, kind):
        # 1: CUDA's default stream, behind which the producer puts what still has to be done to the tensor. OpenCL has no such
        # thing in DLPack: its work has to be done before.
        self._capsule = value.__dlpack__(stream=1) if kind == CUDA else value.__dlpack__()
        api = ctypes.pythonapi
        api.PyCapsule_GetName.restype, api.PyCapsule_GetName.argtypes = c_char_p, [ctypes.py_object]
        api.PyCapsule_GetPointer.restype, api.PyCapsule_GetPointer.argtypes = c_void_p, [ctypes.py_object, c_char_p]
        name = api.PyCapsule_GetName(self._capsule)
        address = api.PyCapsule_GetPointer(self._capsule, name)
        tensor = _DLTensor.from_address(address + (_VERSIONED_OFFSET if name == b"dltensor_versioned" else 0))
        self.data, self.offset, self.device = tensor.data or 0, tensor.byte_offset, tensor.device_id
        self.shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
        self.is_compact = not tensor.strides or self._are_compact([tensor.strides[i] for i in range(tensor.ndim)])
        known = tensor.code in _LETTERS and tensor.lanes == 1 and tensor.bits % 8 == 0
        self.dtype = np.dtype(f"{_LETTERS[tensor.code]}{tensor.bits // 8}") if known else None

    def _are_compact(self, strides):
        wanted = 1
        for extent, stride in zip(reversed(self.shape), reversed(strides)):
            if extent != 1 and stride != wanted:
                return 0 in self.shape
            wanted *= extent
        return True


def _check(result, function, library):
    if result != 0:
        raise BerthError("UNAVAILABLE", f"{function} of {library} fails with {result}, for a tensor that DLPack says is there")


def _library(name):
    try:
        return ctypes.CDLL(name)
    except OSError as error:
        raise BerthError("UNAVAILABLE", f"{name}, which a tensor's memory needs, cannot be loaded: {error}") from None


def _copy_cuda(tensor, host, size_bytes, to_host):
    library = _library("libcuda.so.1")

    def call(name, *arguments):
        _check(getattr(library, name)(*arguments), name, "libcuda.so.1")

    device, context = c_int(), c_void_p()
    address = c_uint64(tensor.data + tensor.offset)
    call("cuInit", c_uint32(0))
    call("cuDeviceGet", byref(device), c_int(tensor.device))
    call("cuDevicePrimaryCtxRetain", byref(context), device)
    try:
        call("cuCtxPushCurrent_v2", context)
        try:
            if to_host:
                call("cuMemcpyDtoH_v2", c_void_p(host), address, c_size_t(size_bytes))
            else:
                call("cuMemcpyHtoD_v2", address, c_void_p(host), c_size_t(size_bytes))
        finally:
            library.cuCtxPopCurrent_v2(byref(context))
    finally:
        library.cuDevicePrimaryCtxRelease_v2(device)


_CL_MEM_CONTEXT, _CL_CONTEXT_DEVICES, _CL_TRUE = 0x1106, 0x1081, 1
_MOST_CL_DEVICES = 64


def _copy_opencl(tensor, host, size_bytes, to_host):
    library = _library("libOpenCL.so.1")
    library.clCreateCommandQueue.restype = c_void_p
    memory, context, failed = c_void_p(tensor.data), c_void_p(), c_int32()
    devices = (c_void_p * _MOST_CL_DEVICES)()
    _check(library.clGetMemObjectInfo(memory, c_uint32(_CL_MEM_CONTEXT), c_size_t(8), byref(context), None),
           "clGetMemObjectInfo", "libOpenCL.so.1")
    _check(library.clGetContextInfo(context, c_uint32(_CL_CONTEXT_DEVICES), c_size_t(ctypes.sizeof(devices)), devices, None),
           "clGetContextInfo", "libOpenCL.so.1")
    queue = c_void_p(library.clCreateCommandQueue(context, c_void_p(devices[0]), c_uint64(0), byref(failed)))
    _check(failed.value, "clCreateCommandQueue", "libOpenCL.so.1")
    name = "clEnqueueReadBuffer" if to_host else "clEnqueueWriteBuffer"
    try:
        _check(getattr(library, name)(queue, memory, c_uint32(_CL_TRUE), c_size_t(tensor.offset), c_size_t(size_bytes),
                                      c_void_p(host), c_uint32(0), None, None), name, "libOpenCL.so.1")
    finally:
        library.clReleaseCommandQueue(queue)


_COPY = {CUDA: _copy_cuda, OPENCL: _copy_opencl}


def kind_of(value):
    """CUDA or OPENCL where the value is there, else None."""
    kind = int(value.__dlpack_device__()[0]) if hasattr(value, "__dlpack_device__") else None
    return kind if kind in _COPY else None


def _tensor(value, kind, what):
    tensor = _Tensor(value, kind)
    if tensor.dtype is None or not tensor.is_compact:
        raise BerthError("INCOMPATIBLE", f"{what} is not contiguous, or of a type that NumPy lacks; contiguous ones of one number per "
                         "element are taken")
    return tensor


def read(value, what):
    """A new array with what the tensor holds. `what` it is stands in messages."""
    kind = kind_of(value)
    tensor = _tensor(value, kind, what)
    array = np.empty(tensor.shape, tensor.dtype)
    if array.size:
        _COPY[kind](tensor, array.ctypes.data, array.nbytes, True)
    return array


def view(value, kind, what):
    """An array over a tensor in memory that the host reads (a DLDeviceType), for types that NumPy does not take itself. It keeps the
    tensor."""
    tensor = _tensor(value, kind, what)
    size_bytes = math.prod(tensor.shape) * tensor.dtype.itemsize
    if not size_bytes:
        return np.empty(tensor.shape, tensor.dtype)
    memory = (ctypes.c_uint8 * size_bytes).from_address(tensor.data + tensor.offset)
    memory._owner = tensor
    return np.frombuffer(memory, tensor.dtype).reshape(tensor.shape)


def write(array, value, what):
    """Copies a contiguous array into the tensor, which is of its type and shape."""
    kind = kind_of(value)
    tensor = _tensor(value, kind, what)
    if (tensor.dtype, tensor.shape) != (array.dtype, array.shape):
        raise BerthError("INCOMPATIBLE", f"{what} is {array.dtype}{list(array.shape)}, but the tensor given for it is {tensor.dtype}"
                         f"{list(tensor.shape)}")
    if array.size:
        _COPY[kind](tensor, array.ctypes.data, array.nbytes, False)
