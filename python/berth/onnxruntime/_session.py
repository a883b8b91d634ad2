"""InferenceSession."""

import os
import threading
import time
import warnings

import numpy as np

from .. import _native
from .._model import Model
from .._native import BerthError
from . import _errors, _onnx
from ._errors import InvalidArgument, InvalidProtobuf, MissingInput
from ._options import RunOptions, SessionOptions, checked
from ._others import host_memory
from ._values import IOBinding, OrtValue

_PROVIDERS = ["BerthExecutionProvider", "CPUExecutionProvider"]
_TYPES = {"f32": "tensor(float)", "f64": "tensor(double)", "f16": "tensor(float16)", "bf16": "tensor(bfloat16)",
          "i8": "tensor(int8)", "i16": "tensor(int16)", "i32": "tensor(int32)", "i64": "tensor(int64)",
          "u8": "tensor(uint8)", "u16": "tensor(uint16)", "u32": "tensor(uint32)", "u64": "tensor(uint64)",
          "bool": "tensor(bool)", "string": "tensor(string)"}
_default_target = None


def set_default_target(target):
    """The target of sessions whose providers say none; None = "cpu"."""
    global _default_target
    _default_target = target


def get_available_providers():
    return list(_PROVIDERS)


class NodeArg:
    """An input or output. `declared`: its type and shape as the model's file says them, or None; `names`: those of its
    dimensions, all that the model's file has."""

    def __init__(self, port, declared=None, names=()):
        def extent(axis, value):  # what Berth infers, then what the file says; names that only Berth has are none there
            said = declared[1][axis] if declared and declared[1] and axis < len(declared[1]) else None
            return value if isinstance(value, int) else said if said is not None else value if value in names else None

        self.name = port.name
        shape = port.shape if port.shape is not None else declared[1] if declared else None
        self.shape = [extent(axis, value) for axis, value in enumerate(shape or ())]
        self.type = _TYPES.get(port.type, "") or (declared[0] if declared else "")

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


def _read_providers(providers, provider_options):
    """Names, and {name: options}; providers are names or (name, options)."""
    names, options = [], {}
    wrong = provider_options and len(provider_options) != len(providers or [])
    if wrong or any(not isinstance(given, dict) for given in provider_options or []):
        warnings.warn("provider_options are not a dict for each of the providers; the processor is used, without options", UserWarning,
                      stacklevel=4)
        providers, provider_options = ["CPUExecutionProvider"], None
    for i, provider in enumerate(providers or []):
        name, given = provider if isinstance(provider, (tuple, list)) else (provider, {})
        if provider_options:
            given = provider_options[i] or given
        names.append(name)
        options[name] = {str(key): str(value) for key, value in dict(given).items()}
    others = [name for name in names if name not in _PROVIDERS]
    if others:
        warnings.warn(f"providers that are not here: {', '.join(map(str, others))}; there are {', '.join(_PROVIDERS)}. Another device "
                      "than the processor is a target of BerthExecutionProvider", UserWarning, stacklevel=4)
    return names, options


class Session:
    """What there is of a model that is ready to run."""

    def get_inputs(self):
        return self._nodes(self._model.inputs, "inputs")

    def get_outputs(self):
        return self._nodes(self._model.outputs, "outputs")

    def _nodes(self, ports, which):
        return [NodeArg(port, self._facts[which].get(port.name), self._facts["dim_names"]) for port in ports]

    def get_overridable_initializers(self):
        return self._nodes(self._model.overridable, "inputs")

    def get_providers(self):
        return list(self._provider_options)

    def set_providers(self, providers=None, provider_options=None):
        """Makes the session for them: models are compiled again when they are next run."""
        self._open(providers, provider_options)

    def get_provider_options(self):
        return {name: dict(options) for name, options in self._provider_options.items()}

    def get_session_options(self):
        return self._options

    def get_modelmeta(self):
        return ModelMetadata(self._facts)

    def get_input_memory_infos(self):
        return [host_memory() for _ in self._model.inputs]

    def get_output_memory_infos(self):
        return [host_memory() for _ in self._model.outputs]

    def get_tuning_results(self):
        """None: what is tuned is in the cache of compiled models (docs/tuning.md)."""
        return []

    def set_tuning_results(self, results, *, error_on_invalid=False):
        raise _errors.NotHere("results of another tuning")

    def set_ep_dynamic_options(self, options):
        raise _errors.NotHere("options of a provider while it runs")

    def disable_fallback(self):
        pass

    def enable_fallback(self):
        pass

    def io_binding(self):
        return IOBinding(self)

    def get_profiling_start_time_ns(self):
        return self._start_ns

    def end_profiling(self):
        """Writes a trace of the last run for Perfetto, if enable_profiling was set; gives its path."""
        path = f"{self._options.profile_file_prefix}_{os.getpid()}.json"
        if self._model.last_session is None or not self._options.enable_profiling:
            return ""
        try:
            self._model.last_session.write_trace(path)
        except BerthError as error:
            raise _errors.of(error) from error
        return path


class InferenceSession(Session):
    def __init__(self, path_or_bytes, sess_options=None, providers=None, provider_options=None, **_others):
        self._options = SessionOptions() if sess_options is None else checked("sess_options", sess_options, SessionOptions)
        is_path = isinstance(path_or_bytes, (str, os.PathLike))
        if not is_path and not isinstance(path_or_bytes, (bytes, bytearray, memoryview)):
            raise TypeError(f"Unable to load from type '{type(path_or_bytes)}'")
        self._model_path = os.fspath(path_or_bytes) if is_path else None
        self._model_bytes = None if is_path else path_or_bytes
        self._start_ns = time.perf_counter_ns()
        if self._options.has_providers() and not providers:
            providers = self._options._providers
        try:
            self._facts = _onnx.metadata(path_or_bytes)
        except IsADirectoryError as error:
            raise InvalidProtobuf(f"Load model from {self._model_path} failed: {error.strerror}") from error
        except OSError as error:
            raise _errors.NoSuchFile(f"Load model from {self._model_path} failed: {error.strerror}") from error
        self._open(providers, provider_options)

    def _open(self, providers, provider_options):
        names, options = _read_providers(providers, provider_options)
        self._provider_options = {name: options.get(name, {}) for name in _PROVIDERS if name in names or not names}
        if not self._provider_options:  # only ones that are not here, as of another machine: the processor serves
            self._provider_options = {"CPUExecutionProvider": {}}
        target = options.get("BerthExecutionProvider", {}).get("target", _default_target)
        source = self._model_path if self._model_bytes is None else self._model_bytes
        try:
            self._model = Model(source, target, dims=self._options._dims, threads=self._options.intra_op_num_threads,
                                profile=self._options.enable_profiling, initializers=self._options._initializers)
        except BerthError as error:
            damaged = error.code == "INVALID_ARGUMENT" and not self._facts["is_whole"]
            raise InvalidProtobuf(error) if damaged else _errors.of_loading(error) from error
        self._scalars = {port.name for port in self._model.inputs if port.shape == ()}
        self._output_places = {port.name: i for i, port in enumerate(self._model.outputs)}

    def _check_names(self, output_names, input_feed):
        outputs, inputs = ([port.name for port in ports] for ports in (self._model.outputs, self._model.inputs))
        missing = [name for name in inputs if name not in input_feed.keys()]
        if missing:
            raise MissingInput(f"Required inputs ({missing}) are missing from input feed ({list(input_feed)}).")
        if isinstance(output_names, (str, bytes)):
            raise TypeError(f"output_names is a list of names, not {output_names!r}")
        for name in output_names or []:
            if name not in outputs:
                raise InvalidArgument(f"Invalid output name: {name}; the outputs are {', '.join(outputs)}")
        may_be_given = {*inputs, *(port.name for port in self._model.overridable)}
        for name in input_feed:
            if name not in may_be_given:
                raise InvalidArgument(f"Invalid input name: {name}; the inputs are {', '.join(inputs)}")
        return output_names or outputs

    def run(self, output_names, input_feed, run_options=None):
        results = None if run_options is not None else self._run_again(output_names, input_feed)
        return self._run_checked(output_names, input_feed, run_options) if results is None else results

    def _run_again(self, output_names, input_feed):
        """On the program that ran latest; None, and nothing has run, where that is not what is asked for."""
        if type(input_feed) is not dict:
            return None
        if isinstance(output_names, str):
            return None
        try:
            places = [self._output_places[name] for name in output_names] if output_names else None
        except (KeyError, TypeError):  # what is wrong, _run_checked says
            return None
        try:
            results = self._model._run_again_named(input_feed)
        except BerthError as error:
            raise _errors.of_running(error) from error
        except ValueError as error:  # NumPy's, of what it makes no array of
            raise _errors.BadValue(error) from error
        return results if places is None or results is None else [results[place] for place in places]

    def _run_checked(self, output_names, input_feed, run_options):
        names = self._check_names(output_names, input_feed)
        if run_options is not None and checked("run_options", run_options, RunOptions) and run_options.terminate:
            raise _errors.Fail("Exiting due to terminate flag being set to true.")
        feed = {name: value._value if isinstance(value, OrtValue) else value for name, value in input_feed.items()}
        for name in self._scalars & feed.keys():
            if isinstance(feed[name], np.ndarray) and feed[name].size == 1:  # as ONNX Runtime takes it: [16000] for 16000
                feed[name] = feed[name].reshape(())
        try:
            results = self._model._run_named(feed, watch=run_options)
        except BerthError as error:
            raise _errors.of_running(error) from error
        except ValueError as error:  # NumPy's, of what it makes no array of
            raise _errors.BadValue(error) from error
        return [results[name] for name in names]

    def run_with_ort_values(self, output_names, input_dict_ort_values, run_options=None):
        feed = {name: value._get_c_value() for name, value in input_dict_ort_values.items()}
        return [OrtValue(value) for value in self.run(output_names, feed, run_options)]

    def run_with_ortvaluevector(self, run_options, feed_names, feeds, fetch_names, fetches, fetch_devices):
        """`fetches` gets the results, in place of what it has."""
        fetches[:] = self.run_with_ort_values(list(fetch_names), dict(zip(feed_names, feeds)), run_options)

    def run_with_iobinding(self, iobinding, run_options=None):
        iobinding._run(run_options)

    def run_async(self, output_names, input_feed, callback, user_data, run_options=None):
        """Returns at once; `callback(results, user_data, error)` is called on a thread of its own, with the results or
        with what went wrong ("" = nothing)."""
        self._check_names(output_names, input_feed)

        def work():
            try:
                results, failed = self.run(output_names, input_feed, run_options), ""
            except Exception as error:  # whatever it is, it is the callback's to know
                results, failed = [], str(error) or type(error).__name__
            callback(results, user_data, failed)

        threading.Thread(target=work).start()
