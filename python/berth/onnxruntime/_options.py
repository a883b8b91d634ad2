"""Options of sessions and of runs."""

import enum
import operator
import threading
import warnings

from ._errors import BadBinding, BadValue, InvalidArgument, LibraryFailed
from ._errors import NO_ADAPTERS, NotImplemented as NotThere


class _Choice(enum.IntEnum):
    __str__ = enum.Enum.__str__  # "ExecutionMode.ORT_PARALLEL", as there
    __format__ = enum.Enum.__format__


class GraphOptimizationLevel(_Choice):
    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(_Choice):
    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(_Choice):
    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


def checked(name, value, kind):
    """`value` as pybind11 takes it for `kind`; a TypeError otherwise."""
    if kind is bool and (value is None or hasattr(type(value), "__bool__")):
        return bool(value)
    if kind is int and not isinstance(value, enum.Enum) and hasattr(type(value), "__index__"):
        return operator.index(value)
    if kind not in (bool, int) and isinstance(value, kind):
        return value
    raise TypeError(f"{name} is {kind.__name__}, not {type(value).__name__} {value!r}")


def _option(name, kind):
    place = f"_{name}"
    return property(lambda self: getattr(self, place), lambda self, value: setattr(self, place, checked(name, value, kind)))


def _entry(entries, key):
    if key not in entries:
        raise BadBinding(f'no entry "{key}" was added')
    return entries[key]


class SessionOptions:
    """Of these, intra_op_num_threads, enable_profiling, add_provider, add_initializer, add_external_initializers and
    add_free_dimension_override_by_name have an effect.
    What would change results or write files and is not there is an error or a warning; so is a name that is none there."""

    __slots__ = ("_intra_op_num_threads", "_inter_op_num_threads", "_graph_optimization_level", "_execution_mode",
                 "_execution_order", "_enable_profiling", "_profile_file_prefix", "_enable_cpu_mem_arena", "_enable_mem_pattern",
                 "_enable_mem_reuse", "_use_deterministic_compute", "_use_per_session_threads", "_log_severity_level",
                 "_log_verbosity_level", "_logid", "_optimized_model_filepath", "_entries", "_dims", "_providers",
                 "_initializers")

    intra_op_num_threads = _option("intra_op_num_threads", int)
    inter_op_num_threads = _option("inter_op_num_threads", int)
    graph_optimization_level = _option("graph_optimization_level", GraphOptimizationLevel)
    execution_mode = _option("execution_mode", ExecutionMode)
    execution_order = _option("execution_order", ExecutionOrder)
    enable_profiling = _option("enable_profiling", bool)
    profile_file_prefix = _option("profile_file_prefix", str)
    enable_cpu_mem_arena = _option("enable_cpu_mem_arena", bool)
    enable_mem_pattern = _option("enable_mem_pattern", bool)
    enable_mem_reuse = _option("enable_mem_reuse", bool)
    use_deterministic_compute = _option("use_deterministic_compute", bool)
    use_per_session_threads = _option("use_per_session_threads", bool)
    log_severity_level = _option("log_severity_level", int)
    log_verbosity_level = _option("log_verbosity_level", int)
    logid = _option("logid", str)

    def __init__(self):
        self.intra_op_num_threads = 0
        self.inter_op_num_threads = 0
        self.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.execution_mode = ExecutionMode.ORT_SEQUENTIAL
        self.execution_order = ExecutionOrder.DEFAULT
        self.enable_profiling = False
        self.profile_file_prefix = "berth_profile"
        self.enable_cpu_mem_arena = True
        self.enable_mem_pattern = True
        self.enable_mem_reuse = True
        self.use_deterministic_compute = False
        self.use_per_session_threads = True
        self.log_severity_level = 2
        self.log_verbosity_level = 0
        self.logid = ""
        self._optimized_model_filepath = ""
        self._entries = {}
        self._dims = {}
        self._providers = []
        self._initializers = {}

    @property
    def optimized_model_filepath(self):
        return self._optimized_model_filepath

    @optimized_model_filepath.setter
    def optimized_model_filepath(self, path):
        if path:
            warnings.warn(f"Berth writes no ONNX file of the optimised model; {path} is not written", RuntimeWarning,
                          stacklevel=2)
        self._optimized_model_filepath = path

    def add_session_config_entry(self, key, value):
        self._entries[checked("key", key, str)] = checked("value", value, str)

    def get_session_config_entry(self, key):
        return _entry(self._entries, key)

    def has_session_config_entry(self, key):
        return key in self._entries

    def add_free_dimension_override_by_name(self, name, extent):
        self._dims[checked("name", name, str)] = checked("extent", extent, int)

    def add_free_dimension_override_by_denotation(self, denotation, extent):
        raise NotThere(f'dimensions by denotation ("{denotation}"); give them by name: add_free_dimension_override_by_name')

    def add_external_initializers_from_files_in_memory(self, *_arguments):
        raise NotThere("files of initializers in memory; give the values: add_external_initializers")

    def add_provider_for_devices(self, *_arguments):
        raise NotThere("providers by device; BerthExecutionProvider takes a target")

    def set_provider_selection_policy(self, _policy):
        """Nothing: Berth's planner chooses among the devices of the target."""

    def set_load_cancellation_flag(self, _value):
        """Nothing: opening a session compiles nothing yet."""

    def add_provider(self, name, options=None):
        self._providers.append((name, dict(options or {})))

    def has_providers(self):
        return bool(self._providers)

    def add_initializer(self, name, value):
        """An OrtValue in place of what the model's file has for this initializer, of its type and shape."""
        if name in self._initializers:
            raise InvalidArgument(f'an OrtValue for the initializer "{name}" has been added already')
        if not hasattr(value, "_value"):
            raise BadValue(f'the initializer "{name}" is an OrtValue, not {type(value).__name__}')
        self._initializers[name] = value._value

    def add_external_initializers(self, names, values):
        """The same for initializers whose values are in files of their own, which need not be there then."""
        if len(names) != len(values):
            raise InvalidArgument(f"{len(names)} names of initializers, and {len(values)} values")
        for name, value in zip(names, values):
            self.add_initializer(name, value)

    def register_custom_ops_library(self, path):
        raise LibraryFailed(f"custom operators of ONNX Runtime's ({path})")


class RunOptions:
    """`terminate` ends runs that use these options, those on other threads as well."""

    __slots__ = ("_log_severity_level", "_log_verbosity_level", "_logid", "_only_execute_path_to_fetches", "_terminate", "_entries",
                 "_lock", "_running")

    log_severity_level = _option("log_severity_level", int)
    log_verbosity_level = _option("log_verbosity_level", int)
    logid = _option("logid", str)
    only_execute_path_to_fetches = _option("only_execute_path_to_fetches", bool)

    def __init__(self):
        self.log_severity_level = 2
        self.log_verbosity_level = 0
        self.logid = ""
        self.only_execute_path_to_fetches = False
        self._terminate = False
        self._entries = {}
        self._lock = threading.Lock()
        self._running = []

    @property
    def terminate(self):
        return self._terminate

    @terminate.setter
    def terminate(self, value):
        with self._lock:
            self._terminate = checked("terminate", value, bool)
            running = list(self._running) if self._terminate else []
        for session in running:
            session.cancel()

    def add_run_config_entry(self, key, value):
        self._entries[checked("key", key, str)] = checked("value", value, str)

    def get_run_config_entry(self, key):
        return _entry(self._entries, key)

    def add_active_adapter(self, adapter):
        raise NotThere(NO_ADAPTERS)

    def _begin(self, session):
        """A session (berth.Session or what is cancelled like one) begins to run."""
        with self._lock:
            self._running.append(session)

    def _end(self, session):
        with self._lock:
            self._running.remove(session)
