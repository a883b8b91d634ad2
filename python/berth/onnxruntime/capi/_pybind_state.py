"""The same as onnxruntime_pybind11_state."""

from berth.onnxruntime.capi.onnxruntime_pybind11_state import *
from berth.onnxruntime.capi.onnxruntime_pybind11_state import __all__ as __all__
