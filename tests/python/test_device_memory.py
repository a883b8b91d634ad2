"""Tensors in the memory of OpenCL's and CUDA's devices, in and out by DLPack. They are made here by the vendors' own interfaces,
so nothing of Berth's makes what Berth reads. CUDA is the emulated one of tests/cuda."""

import ctypes
import os
import subprocess
import sys
import unittest
from ctypes import byref, c_int, c_int32, c_size_t, c_uint32, c_uint64, c_void_p

import numpy as np

import berth
from test_berth import DIGITS, Fails, digits

CUDA, OPENCL = 2, 4
OFFSET = 256  # bytes in front of the tensor in its memory


class DLTensor(ctypes.Structure):
    """As dlpack.h has it, with the rest of DLManagedTensor."""

    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32), ("ndim", c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", c_uint64), ("manager_ctx", c_void_p), ("deleter", c_void_p)]


class Tensor:
    """f32 of `shape` at OFFSET of memory `data`."""

    def __init__(self, kind, data, shape, strides=None, bits=32):
        self.kind, self.streams = kind, []
        self.shape = (ctypes.c_int64 * len(shape))(*shape)
        self.strides = (ctypes.c_int64 * len(shape))(*strides) if strides else None
        self.record = DLTensor(data, kind, 0, len(shape), 2, bits, 1, self.shape, self.strides, OFFSET, None, None)

    def __dlpack_device__(self):
        return self.kind, 0

    def __dlpack__(self, stream=None):
        self.streams.append(stream)
        make = ctypes.pythonapi.PyCapsule_New
        make.restype, make.argtypes = ctypes.py_object, [c_void_p, ctypes.c_char_p, c_void_p]
        return make(ctypes.addressof(self.record), b"dltensor", None)


class OpenCL:
    kind = OPENCL

    def __init__(self):
        self.library = ctypes.CDLL("libOpenCL.so.1")
        for name in ("clCreateContext", "clCreateCommandQueue", "clCreateBuffer"):
            getattr(self.library, name).restype = c_void_p
        platforms, device, failed = (c_void_p * 8)(), c_void_p(), c_int32()
        self.library.clGetPlatformIDs(c_uint32(8), platforms, None)
        for platform in platforms:  # the first that has a device
            if platform and self.library.clGetDeviceIDs(c_void_p(platform), c_uint64(0xFFFFFFFF), c_uint32(1), byref(device), None) == 0:
                break
        self.context = c_void_p(self.library.clCreateContext(None, c_uint32(1), byref(device), None, None, byref(failed)))
        assert failed.value == 0
        self.queue = c_void_p(self.library.clCreateCommandQueue(self.context, device, c_uint64(0), byref(failed)))
        assert failed.value == 0

    def memory(self, size_bytes):
        return self.library.clCreateBuffer(self.context, c_uint64(1), c_size_t(size_bytes), None, None)

    def _move(self, function, memory, array):
        failed = function(self.queue, c_void_p(memory), c_uint32(1), c_size_t(OFFSET), c_size_t(array.nbytes),
                          c_void_p(array.ctypes.data), c_uint32(0), None, None)
        assert failed == 0

    def put(self, memory, array):
        self._move(self.library.clEnqueueWriteBuffer, memory, array)

    def get(self, memory, array):
        self._move(self.library.clEnqueueReadBuffer, memory, array)


class Cuda:
    kind = CUDA

    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")
        context = c_void_p()
        assert self.library.cuInit(0) == 0
        assert self.library.cuDevicePrimaryCtxRetain(byref(context), c_int(0)) == 0
        assert self.library.cuCtxPushCurrent_v2(context) == 0

    def memory(self, size_bytes):
        address = c_uint64()
        assert self.library.cuMemAlloc_v2(byref(address), c_size_t(size_bytes)) == 0
        return address.value

    def put(self, memory, array):
        assert self.library.cuMemcpyHtoD_v2(c_uint64(memory + OFFSET), c_void_p(array.ctypes.data), c_size_t(array.nbytes)) == 0

    def get(self, memory, array):
        assert self.library.cuMemcpyDtoH_v2(c_void_p(array.ctypes.data), c_uint64(memory + OFFSET), c_size_t(array.nbytes)) == 0


def in_and_out(test, vendor):
    images, _ = digits()
    image = np.ascontiguousarray(images[5:6])
    model = berth.load(DIGITS, target="cpu", dims={"batch": 1})
    expected = model(image)
    there, scores = vendor.memory(OFFSET + image.nbytes), vendor.memory(OFFSET + expected.nbytes)
    vendor.put(there, image)
    tensor = Tensor(vendor.kind, there, image.shape)
    np.testing.assert_array_equal(model(tensor), expected)
    test.assertEqual(tensor.streams, [1 if vendor.kind == CUDA else None])
    out = Tensor(vendor.kind, scores, expected.shape)
    got = model.program().session().run([tensor], out=[out])
    test.assertIs(got[0], out)
    found = np.zeros_like(expected)
    vendor.get(scores, found)
    np.testing.assert_array_equal(found, expected)
    with model.program().runner(at_once=1) as runner:
        np.testing.assert_array_equal(runner.submit([tensor]).result()[0], expected)
    session = model.program().session()
    for wrong, message in ((Tensor(vendor.kind, there, (1, 1, 8, 8), (64, 64, 1, 8)), "not contiguous"),
                           (Tensor(vendor.kind, there, (1, 1, 4, 8), bits=64), "f32")):
        with Fails(test, "INCOMPATIBLE", message):
            session.run([wrong])
    with Fails(test, "INCOMPATIBLE", "[1, 5]"):
        session.run([image], out=[Tensor(vendor.kind, scores, (1, 5))])


class DeviceMemory(unittest.TestCase):
    def test_opencl(self):
        if "opencl:0" not in [device.device for device in berth.devices()]:
            self.skipTest("no OpenCL device")
        in_and_out(self, OpenCL())

    def test_cuda(self):
        """In a process of its own, which loads the emulated libcuda."""
        emulation = os.path.join(os.environ.get("BERTH_LIBRARY_DIR", ""), "cuda_emulation")
        if not os.path.exists(os.path.join(emulation, "libcuda.so.1")):
            self.skipTest("the emulated libcuda is not built")
        program = "import unittest, test_device_memory as t; t.in_and_out(unittest.TestCase(), t.Cuda())"
        subprocess.run([sys.executable, "-c", program], check=True, env={**os.environ, "LD_LIBRARY_PATH": emulation})


if __name__ == "__main__":
    unittest.main()
