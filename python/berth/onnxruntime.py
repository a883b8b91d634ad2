"""The part of ONNX Runtime's Python API that applications use, over Berth.

    import berth.onnxruntime as onnxruntime
    session = onnxruntime.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
    outputs = session.run(None, {"x": x})

For packages that import `onnxruntime` themselves, call berth.onnxruntime.install() before they do.

Which devices are used is said by the provider "BerthExecutionProvider" with the option "target" (docs/target.md), or by
set_default_target. Options that choose between ways to compute (optimisation levels, arenas, logging) are taken and have
no effect.
"""

import enum
import os
import sys

import numpy as np

from . import _native, _onnx
from ._model import Model
from ._native import BerthError

__version__ = _native.run.berth_version().decode()

_PROVIDERS = ["BerthExecutionProvider", "CPUExecutionProvider"]
_TYPES = {"f32": "tensor(float)", "f64": "tensor(double)", "f16": "tensor(float16)", "bf16": "tensor(bfloat16)",
          "i8": "tensor(int8)", "i16": "tensor(int16)", "i32": "tensor(int32)", "i64": "tensor(int64)",
          "u8": "tensor(uint8)", "u16": "tensor(uint16)", "u32": "tensor(uint32)", "u64": "tensor(uint64)",
          "bool": "tensor(bool)", "string": "tensor(string)"}
_default_target = None


class Fail(Exception):
    """What could not be done; `code` is Berth's."""

    def __init__(self, error):
        super().__init__(str(error))
        self.code = getattr(error, "code", "INVALID_ARGUMENT")


class InvalidArgument(Fail):
    pass


class NoSuchFile(Fail):
    pass


class NotImplemented(Fail):  # its name there
    pass


def _raise(error):
    kinds = {"INVALID_ARGUMENT": InvalidArgument, "INCOMPATIBLE": InvalidArgument, "OUT_OF_RANGE": InvalidArgument,
             "NOT_FOUND": NoSuchFile, "UNSUPPORTED": NotImplemented}
    raise kinds.get(error.code, Fail)(error) from error


class GraphOptimizationLevel(enum.IntEnum):
    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class SessionOptions:
    """Of these, intra_op_num_threads, enable_profiling and add_free_dimension_override_by_name have an effect."""

    def __init__(self):
        self.intra_op_num_threads = 0
        self.inter_op_num_threads = 0
        self.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.execution_mode = ExecutionMode.ORT_SEQUENTIAL
        self.enable_profiling = False
        self.profile_file_prefix = "berth_profile"
        self.enable_cpu_mem_arena = True
        self.enable_mem_pattern = True
        self.enable_mem_reuse = True
        self.use_deterministic_compute = False
        self.log_severity_level = 2
        self.log_verbosity_level = 0
        self.logid = ""
        self.optimized_model_filepath = ""
        self._entries = {}
        self._dims = {}

    def add_session_config_entry(self, key, value):
        self._entries[key] = value

    def get_session_config_entry(self, key):
        return self._entries[key]

    def has_session_config_entry(self, key):
        return key in self._entries

    def add_free_dimension_override_by_name(self, name, extent):
        self._dims[name] = extent


class RunOptions:
    def __init__(self):
        self.log_severity_level = 2
        self.log_verbosity_level = 0
        self.logid = ""
        self.terminate = False
        self.only_execute_path_to_fetches = False
        self._entries = {}

    def add_run_config_entry(self, key, value):
        self._entries[key] = value


class NodeArg:
    def __init__(self, port):
        def extent(axis, value):  # names that the model does not have are none there
            made = isinstance(value, str) and (value == f"{port.name}.{axis}" or "(" in value)
            return None if made else value

        self.name = port.name
        self.shape = [extent(axis, value) for axis, value in enumerate(port.shape or ())]
        self.type = _TYPES.get(port.type, "")

    def __repr__(self):
        return f"NodeArg(name={self.name!r}, type={self.type!r}, shape={self.shape})"


class ModelMetadata:
    def __init__(self, facts):
        self.producer_name = facts["producer_name"]
        self.domain = facts["domain"]
        self.description = facts["description"]
        self.version = facts["version"]
        self.graph_name = facts["graph_name"]
        self.graph_description = facts["graph_description"]
        self.custom_metadata_map = facts["custom_metadata_map"]


class OrtValue:
    """A value in host memory."""

    def __init__(self, array):
        self._array = array

    @staticmethod
    def ortvalue_from_numpy(array, device_type="cpu", device_id=0):
        return OrtValue(array)

    def numpy(self):
        return self._array

    def shape(self):
        return list(self._array.shape)

    def device_name(self):
        return "cpu"

    def is_tensor(self):
        return True

    def __dlpack__(self, **keywords):
        return self._array.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


def set_default_target(target):
    """The target of sessions whose providers say none; None = "cpu"."""
    global _default_target
    _default_target = target


def get_available_providers():
    return list(_PROVIDERS)


def get_all_providers():
    return list(_PROVIDERS)


def get_device():
    return "CPU"


def set_default_logger_severity(_severity):
    pass


def set_default_logger_verbosity(_verbosity):
    pass


def disable_telemetry_events():
    pass


def enable_telemetry_events():
    pass


def set_seed(_seed):
    pass


def _read_providers(providers, provider_options):
    """Names, and {name: options}; providers are names or (name, options)."""
    names, options = [], {}
    for i, provider in enumerate(providers or []):
        name, given = provider if isinstance(provider, (tuple, list)) else (provider, {})
        if provider_options and i < len(provider_options):
            given = provider_options[i] or given
        names.append(name)
        options[name] = {str(key): str(value) for key, value in dict(given).items()}
    return names, options


class InferenceSession:
    def __init__(self, path_or_bytes, sess_options=None, providers=None, provider_options=None, **_others):
        names, options = _read_providers(providers, provider_options)
        self._options = sess_options or SessionOptions()
        self._provider_options = {name: options.get(name, {}) for name in _PROVIDERS if name in names or not names}
        if not self._provider_options:  # only ones that are not here, as of another machine: the processor serves
            self._provider_options = {"CPUExecutionProvider": {}}
        self._model_bytes = path_or_bytes if isinstance(path_or_bytes, (bytes, bytearray, memoryview)) else None
        self._model_path = None if self._model_bytes is not None else os.fspath(path_or_bytes)
        target = options.get("BerthExecutionProvider", {}).get("target", _default_target)
        try:
            self._model = Model(path_or_bytes, target, dims=self._options._dims,
                                threads=self._options.intra_op_num_threads, profile=self._options.enable_profiling)
        except BerthError as error:
            _raise(error)

    def get_inputs(self):
        return [NodeArg(port) for port in self._model.inputs]

    def get_outputs(self):
        return [NodeArg(port) for port in self._model.outputs]

    def get_overridable_initializers(self):
        return []

    def get_providers(self):
        return list(self._provider_options)

    def set_providers(self, providers=None, provider_options=None):
        """Does nothing: a session keeps the devices that it was made for."""

    def get_provider_options(self):
        return {name: dict(options) for name, options in self._provider_options.items()}

    def get_session_options(self):
        return self._options

    def get_modelmeta(self):
        return ModelMetadata(_onnx.metadata(self._model_bytes if self._model_bytes is not None else self._model_path))

    def disable_fallback(self):
        pass

    def enable_fallback(self):
        pass

    def run(self, output_names, input_feed, run_options=None):
        names = [port.name for port in self._model.outputs]
        for name in output_names or []:
            if name not in names:
                raise InvalidArgument(f"Invalid output name: {name}; the outputs are {', '.join(names)}")
        feed = {name: value.numpy() if isinstance(value, OrtValue) else value for name, value in input_feed.items()}
        try:
            results = self._model.run(feed)
        except BerthError as error:
            if error.code == "NOT_FOUND":  # of a name
                raise InvalidArgument(error) from error
            _raise(error)
        return [results[name] for name in output_names or names]

    def run_with_ort_values(self, output_names, input_feed, run_options=None):
        return [OrtValue(np.asarray(value)) for value in self.run(output_names, input_feed, run_options)]

    def end_profiling(self):
        """Writes a trace of the last run for Perfetto, if enable_profiling was set; gives its path."""
        path = f"{self._options.profile_file_prefix}_{os.getpid()}.json"
        if self._model.last_session is None or not self._options.enable_profiling:
            return ""
        try:
            self._model.last_session.write_trace(path)
        except BerthError as error:
            _raise(error)
        return path


def install():
    """Makes `import onnxruntime` give this module, in this process, from now on."""
    sys.modules["onnxruntime"] = sys.modules[__name__]
