"""The C API (include/berth) through ctypes: prototypes, structures, and where the libraries are found."""

import ctypes
import os
from ctypes import POINTER, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p

MAX_RANK = 8
SONAME_VERSION = "0.1"


PROGRESS = ctypes.CFUNCTYPE(None, c_void_p, c_char_p, c_uint32, c_uint32)
MESSAGE = ctypes.CFUNCTYPE(None, c_void_p, c_char_p)
REQUEST_DONE = ctypes.CFUNCTYPE(None, c_void_p, c_void_p)


class Tensor(ctypes.Structure):
    _fields_ = [("dtype", c_int), ("rank", c_int), ("dims", c_int64 * MAX_RANK), ("data", c_void_p)]


class Port(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("type", Tensor)]


class Placement(ctypes.Structure):
    _fields_ = [("node", c_char_p), ("op", c_char_p), ("device", c_char_p), ("reason", c_char_p)]


class DimInfo(ctypes.Structure):
    _fields_ = [("extent", c_int64), ("name", c_char_p)]


class ValueInfo(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("dtype", c_int), ("rank", c_int), ("dims", POINTER(DimInfo))]


class DeviceFacts(ctypes.Structure):
    _fields_ = [("device", c_char_p), ("kind", c_char_p), ("ordinal", c_uint32), ("name", c_char_p),
                ("vendor", c_char_p), ("driver_version", c_char_p), ("memory_bytes", c_uint64),
                ("compute_units", c_uint32)]


class DriverFacts(ctypes.Structure):
    _fields_ = [("kind", c_char_p), ("description", c_char_p), ("missing", c_char_p), ("library", c_char_p),
                ("lacking", c_char_p)]


class DeviceChoice(ctypes.Structure):
    _fields_ = [("device", c_char_p), ("ordinal", c_uint32)]


class SessionSettings(ctypes.Structure):
    _fields_ = [("size_bytes", c_size_t), ("thread_count", c_uint32), ("profile", c_int),
                ("cache_folder", c_char_p), ("devices", POINTER(DeviceChoice)), ("device_count", c_uint32),
                ("allocator", c_void_p), ("on_message", MESSAGE), ("message_user", c_void_p), ("first_plan_only", c_int)]


class RunnerSettings(ctypes.Structure):
    _fields_ = [("size_bytes", c_size_t), ("at_once", c_uint32), ("most_waiting", c_uint32),
                ("session", POINTER(SessionSettings))]


class RequestCall(ctypes.Structure):
    _fields_ = [("size_bytes", c_size_t), ("inputs", POINTER(Tensor)), ("input_count", c_uint32),
                ("outputs", POINTER(Tensor)), ("output_count", c_uint32), ("timeout_ns", c_int64), ("done", REQUEST_DONE),
                ("user", c_void_p), ("to_take", c_int)]


class ProgramFacts(ctypes.Structure):
    _fields_ = [("kernel_count", c_uint32), ("step_count", c_uint32), ("constant_bytes", c_uint64), ("executor", c_char_p)]


class DynamicReport(ctypes.Structure):
    _fields_ = [("model", c_char_p), ("instructions", c_uint64), ("segment_runs", c_uint64), ("host_operations", c_uint64),
                ("host_data_operations", c_uint64), ("compiled_count", c_uint32), ("kernel_count", c_uint32),
                ("compile_ns", c_int64), ("exact_count", c_uint32), ("generic_count", c_uint32), ("reused_count", c_uint32),
                ("general_shape_count", c_uint32), ("general_run_count", c_uint64), ("general_refusal", c_char_p)]


class StepFacts(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("op", c_char_p), ("device", c_char_p), ("copied_bytes", c_uint64),
                ("start_ns", c_int64), ("duration_ns", c_int64)]


class DynamicMemory(ctypes.Structure):
    _fields_ = [(name, c_uint64) for name in ("limit_bytes", "reserved_bytes", "most_reserved_bytes", "live_bytes", "most_live_bytes",
                                              "live_count", "allocation_count", "system_count", "device_reserved_bytes",
                                              "device_count")]


class Remedy(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int), ("name", ctypes.c_char_p)]


_P = c_void_p  # a handle, or where one goes
_OUT = POINTER(c_void_p)

# name: result, arguments. A result of STATUS is checked: it becomes a BerthError.
STATUS = object()
RUN_SIDE = {
    "berth_version": (c_char_p, []),
    "berth_status_code": (c_int, [_P]),
    "berth_status_message": (c_char_p, [_P]),
    "berth_code_name": (c_char_p, [c_int]),
    "berth_status_free": (None, [_P]),
    "berth_status_remedy": (Remedy, [_P, c_size_t]),
    "berth_status_remedy_count": (c_size_t, [_P]),
    "berth_dtype_name": (c_char_p, [c_int]),
    "berth_device_list_create": (STATUS, [_OUT]),
    "berth_device_list_free": (None, [_P]),
    "berth_device_list_count": (c_uint32, [_P]),
    "berth_device_list_at": (POINTER(DeviceFacts), [_P, c_uint32]),
    "berth_device_list_driver_count": (c_uint32, [_P]),
    "berth_device_list_driver_at": (POINTER(DriverFacts), [_P, c_uint32]),
    "berth_driver_load": (STATUS, [c_char_p, POINTER(c_char_p)]),
    "berth_program_open_limited": (STATUS, [c_char_p, c_char_p, c_char_p, _OUT]),
    "berth_program_open_memory_limited": (STATUS, [c_char_p, c_size_t, c_char_p, c_char_p, _OUT]),
    "berth_program_save": (STATUS, [_P, c_char_p]),
    "berth_program_release": (None, [_P]),
    "berth_program_with_fallbacks": (STATUS, [_P, POINTER(c_void_p), c_uint32, _OUT]),
    "berth_program_fallback_count": (c_uint32, [_P]),
    "berth_program_fallback": (c_void_p, [_P, c_uint32]),
    "berth_program_retain": (None, [_P]),
    "berth_program_name": (c_char_p, [_P]),
    "berth_program_target": (c_char_p, [_P]),
    "berth_program_predicted_ns": (c_double, [_P]),
    "berth_program_input_count": (c_uint32, [_P]),
    "berth_program_output_count": (c_uint32, [_P]),
    "berth_program_input": (POINTER(Port), [_P, c_uint32]),
    "berth_program_output": (POINTER(Port), [_P, c_uint32]),
    "berth_program_device_count": (c_uint32, [_P]),
    "berth_program_device_name": (c_char_p, [_P, c_uint32]),
    "berth_program_placement_count": (c_uint32, [_P]),
    "berth_program_placement_at": (POINTER(Placement), [_P, c_uint32]),
    "berth_session_create": (STATUS, [_P, POINTER(SessionSettings), _OUT]),
    "berth_session_create_together": (STATUS, [POINTER(c_void_p), c_uint32, POINTER(SessionSettings), _OUT]),
    "berth_session_common_workspace_bytes": (c_uint64, [_P]),
    "berth_session_destroy": (None, [_P]),
    "berth_session_plan": (c_uint32, [_P, POINTER(c_char_p)]),
    "berth_session_input": (POINTER(Tensor), [_P, c_uint32]),
    "berth_session_output": (POINTER(Tensor), [_P, c_uint32]),
    "berth_session_run": (STATUS, [_P, c_int64]),
    "berth_session_run_with": (STATUS, [_P, POINTER(Tensor), c_uint32, POINTER(Tensor), c_uint32, c_int64]),
    "berth_session_cancel": (None, [_P]),
    "berth_session_step_count": (c_uint32, [_P]),
    "berth_session_get_step": (STATUS, [_P, c_uint32, POINTER(StepFacts), c_size_t]),
    "berth_session_write_trace": (STATUS, [_P, c_char_p]),
    "berth_runner_create": (STATUS, [_P, POINTER(RunnerSettings), _OUT]),
    "berth_runner_destroy": (None, [_P]),
    "berth_runner_plan": (c_uint32, [_P, POINTER(c_char_p)]),
    "berth_runner_submit": (STATUS, [_P, POINTER(RequestCall), _OUT]),
    "berth_request_cancel": (None, [_P]),
    "berth_request_code": (c_int, [_P]),
    "berth_request_message": (c_char_p, [_P]),
    "berth_request_release": (None, [_P]),
    "berth_program_get_facts": (STATUS, [_P, POINTER(ProgramFacts), c_size_t]),
    "berth_program_load_dynamic": (STATUS, [_P, c_uint32, _OUT]),
    "berth_dynamic_destroy": (None, [_P]),
    "berth_dynamic_input_count": (c_uint32, [_P]),
    "berth_dynamic_output_count": (c_uint32, [_P]),
    "berth_dynamic_input_name": (c_char_p, [_P, c_uint32]),
    "berth_dynamic_output_name": (c_char_p, [_P, c_uint32]),
    "berth_dynamic_run": (STATUS, [_P, POINTER(Tensor), c_uint32, _OUT]),
    "berth_dynamic_cancel": (None, [_P]),
    "berth_dynamic_state_output": (c_uint32, [_P, c_uint32]),
    "berth_dynamic_keep_states": (STATUS, [_P]),
    "berth_dynamic_reset_states": (None, [_P]),
    "berth_dynamic_get_state": (STATUS, [_P, c_uint32, _OUT]),
    "berth_dynamic_copied_bytes": (c_uint64, [_P]),
    "berth_dynamic_get_memory": (STATUS, [_P, POINTER(DynamicMemory), c_size_t]),
    "berth_dynamic_limit_memory": (None, [_P, c_uint64]),
    "berth_results_free": (None, [_P]),
    "berth_results_item_count": (c_uint32, [_P, c_uint32]),
    "berth_results_is_sequence": (c_int, [_P, c_uint32]),
    "berth_results_item": (POINTER(Tensor), [_P, c_uint32, c_uint32]),
    "berth_results_keys": (POINTER(Tensor), [_P, c_uint32, c_uint32]),
}
COMPILER = {
    "berth_compiler_read_model": (STATUS, [_P, c_char_p, _OUT]),
    "berth_compiler_parse_model": (STATUS, [_P, c_char_p, c_size_t, c_char_p, _OUT]),
    "berth_model_info_free": (None, [_P]),
    "berth_model_info_input_count": (c_uint32, [_P]),
    "berth_model_info_output_count": (c_uint32, [_P]),
    "berth_model_info_input": (POINTER(ValueInfo), [_P, c_uint32]),
    "berth_model_info_output": (POINTER(ValueInfo), [_P, c_uint32]),
    "berth_model_info_overridable_count": (c_uint32, [_P]),
    "berth_model_info_overridable": (POINTER(ValueInfo), [_P, c_uint32]),
    "berth_compiler_create": (STATUS, [_OUT]),
    "berth_compiler_destroy": (None, [_P]),
    "berth_compiler_set": (STATUS, [_P, c_char_p, c_char_p]),
    "berth_compiler_add_pin": (STATUS, [_P, c_char_p]),
    "berth_compiler_add_specialisation": (STATUS, [_P, c_char_p]),
    "berth_compiler_add_state": (STATUS, [_P, c_char_p]),
    "berth_compiler_set_dim": (STATUS, [_P, c_char_p, c_int64]),
    "berth_compiler_set_dim_expression": (STATUS, [_P, c_char_p, c_char_p]),
    "berth_compiler_set_dim_bounds": (STATUS, [_P, c_char_p, c_int64, c_int64]),
    "berth_compiler_set_input": (STATUS, [_P, c_char_p, POINTER(Tensor), c_int]),
    "berth_compiler_on_progress": (None, [_P, PROGRESS, _P]),
    "berth_compiler_on_message": (None, [_P, MESSAGE, _P]),
    "berth_compiler_compile_file": (STATUS, [_P, c_char_p, _OUT]),
    "berth_compiler_compile_memory": (STATUS, [_P, c_char_p, c_size_t, c_char_p, _OUT]),
    "berth_compiler_cancel": (None, [_P]),
    "berth_compiler_load_dynamic_file": (STATUS, [_P, c_char_p, c_uint32, _OUT]),
    "berth_compiler_load_dynamic_memory": (STATUS, [_P, c_char_p, c_size_t, c_char_p, c_uint32, _OUT]),
    "berth_dynamic_get_report": (STATUS, [_P, POINTER(DynamicReport), c_size_t]),
    "berth_compiler_plan_file": (STATUS, [_P, c_char_p, _OUT]),
    "berth_compiler_plan_memory": (STATUS, [_P, c_char_p, c_size_t, c_char_p, _OUT]),
    "berth_plan_info_free": (None, [_P]),
    "berth_plan_info_predicted_ns": (c_double, [_P]),
    "berth_plan_info_placement_count": (c_uint32, [_P]),
    "berth_plan_info_placement_at": (POINTER(Placement), [_P, c_uint32]),
    "berth_plan_info_svg": (c_char_p, [_P]),
    "berth_plan_info_dot": (c_char_p, [_P]),
    "berth_plan_info_draw_memory": (STATUS, [_P, _OUT]),
}


class BerthError(RuntimeError):
    """What a call of the C API reports.

    code:    its name: "NOT_FOUND", "UNSUPPORTED", ... (include/berth/status.h)
    message: what is wrong, where, and what to do
    remedies: what would help, [(kind, name)]: kind "dimension" (give the input dimension `name` an extent), "input",
              or "look" (at the "tags" of targets, the model's "operations", a "plan", a "simulation")
    """

    def __init__(self, code, message, remedies=()):
        dims = ", ".join(f"{name!r}: 1" for kind, name in remedies if kind == "dimension")
        super().__init__(f"{code}: {message}" + (f", as in dims={{{dims}}}" if dims else ""))
        self.code = code
        self.message = message
        self.remedies = list(remedies)

    def __reduce__(self):
        return type(self), (self.code, self.message, self.remedies)


_REMEDIES = {1: "dimension", 2: "input", 3: "look"}


def _remedies(status):
    found = (run.berth_status_remedy(status, i) for i in range(run.berth_status_remedy_count(status)))
    return [(_REMEDIES[one.kind], text(one.name)) for one in found if one.kind in _REMEDIES]


def check(status):
    """Raises what a status says, which must not be 0."""
    code = run.berth_code_name(run.berth_status_code(status)).decode()
    message = run.berth_status_message(status).decode("utf-8", "replace")
    remedies = _remedies(status)
    run.berth_status_free(status)
    raise BerthError(code, message, remedies)


def _check(status, _function, _arguments):
    if status:
        check(status)


def _declare(library, table):
    for name, (result, arguments) in table.items():
        function = getattr(library, name)
        function.argtypes = arguments
        function.restype = c_void_p if result is STATUS else result
        if result is STATUS:
            function.errcheck = _check


def _places(name):
    """Where a library may be, in order: BERTH_LIBRARY_DIR, this package, the system's folders."""
    file = f"lib{name}.so.{SONAME_VERSION}"
    given = os.environ.get("BERTH_LIBRARY_DIR")
    if given:
        return [os.path.join(given, file)]
    return [os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib", file), file]


def _load(name, mode):
    reasons = []
    for place in _places(name):
        try:
            return ctypes.CDLL(place, mode=mode)
        except OSError as error:
            reasons.append(str(error))
    raise ImportError(f"lib{name}.so.{SONAME_VERSION} cannot be loaded ({'; '.join(reasons)}); install Berth, or set "
                      "BERTH_LIBRARY_DIR to the folder that has it")


# The private symbols of libberth are for libberth-compiler and for drivers from shared libraries: global.
run = _load("berth", ctypes.RTLD_GLOBAL)
_declare(run, RUN_SIDE)
_compiler = None


def compiler():
    """libberth-compiler, loaded when first needed: programs run without it."""
    global _compiler
    if _compiler is None:
        from . import _plan_records
        library = _load("berth-compiler", ctypes.RTLD_GLOBAL)
        _declare(library, COMPILER)
        _declare(library, _plan_records.prototypes())
        _compiler = library
    return _compiler


class Handle:
    """A handle of the C API that is freed with this object. `free` is the function that does it."""

    def __init__(self, create, free, *arguments):
        self.pointer = c_void_p()
        self.free = free
        create(*arguments, ctypes.byref(self.pointer))

    @classmethod
    def of(cls, pointer, free):
        """Of a handle that there is: a number."""
        handle = cls.__new__(cls)
        handle.pointer, handle.free = c_void_p(pointer), free
        return handle

    def __del__(self):
        if getattr(self, "pointer", None):
            self.free(self.pointer)
            self.pointer = None


def path_bytes(path):
    return os.fsencode(path)


def text(value):
    """A C string that may be NULL."""
    return None if value is None else value.decode("utf-8", "replace")
