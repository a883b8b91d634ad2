"""The part of ONNX Runtime's Python API that applications use, over Berth.

    import berth.onnxruntime as onnxruntime
    session = onnxruntime.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
    outputs = session.run(None, {"x": x})

For packages that import `onnxruntime` themselves, call berth.onnxruntime.install() before they do, or run the whole program with
`python -m berth.onnxruntime program.py` (or `-m module`).

Which devices are used is said by the provider "BerthExecutionProvider" with the option "target" (docs/target.md), or by
set_default_target. Options that choose between ways to compute (optimisation levels, arenas, logging) are taken and have
no effect. Values are in host memory.
"""

import importlib
import sys

from .. import _native
from ._errors import (DeviceReset, EngineError, EPFail, Fail, InvalidArgument, InvalidGraph, InvalidProtobuf, ModelLoadCanceled,
                      ModelLoaded, ModelRequiresCompilation, NoModel, NoSuchFile, NotFound, NotImplemented, RuntimeException)
from ._options import ExecutionMode, ExecutionOrder, GraphOptimizationLevel, RunOptions, SessionOptions
from ._session import InferenceSession, ModelMetadata, NodeArg, Session, get_available_providers, set_default_target
from ._others import (AdapterFormat, LoraAdapter, ModelCompiler, OrtAllocatorType, OrtArenaCfg, OrtCompileApiFlags, OrtDeviceMemoryType,
                      OrtMemoryInfo, OrtMemType, OrtSparseFormat, OrtValueVector, SparseTensor, copy_tensors,
                      create_and_register_allocator, get_ep_devices, has_collective_ops, register_execution_provider_library,
                      set_default_logger_callback, set_default_logger_severity, set_default_logger_verbosity,
                      set_global_thread_pool_sizes, set_seed, unregister_execution_provider_library)
from ._values import IOBinding, OrtDevice, OrtValue

__version__ = "1.24.0"  # of the API of ONNX Runtime's that this follows: applications compare it
berth_version = _native.run.berth_version().decode()


def get_all_providers():
    return get_available_providers()


def get_device():
    return "CPU"


def get_version_string():
    return __version__


def get_build_info():
    return f"Berth {berth_version}, with the API of ONNX Runtime {__version__}"


def print_debug_info():
    print(get_build_info())


def preload_dlls(cuda=True, cudnn=True, msvc=True, directory=None):
    """Does nothing: Berth's drivers find their libraries themselves."""


def disable_telemetry_events():
    pass


def enable_telemetry_events():
    pass


# Submodules of the package there, found without an import of their own.
capi = importlib.import_module(".capi", __name__)
for _name in ("onnxruntime_pybind11_state", "_pybind_state", "onnxruntime_inference_collection", "onnxruntime_validation"):
    importlib.import_module(f".capi.{_name}", __name__)


def install():
    """Makes `import onnxruntime` give this module, in this process, from now on."""
    sys.modules["onnxruntime"] = sys.modules[__name__]
    for name, module in list(sys.modules.items()):
        if name.startswith((f"{__name__}.capi", f"{__name__}.backend")):
            sys.modules["onnxruntime" + name[len(__name__):]] = module
