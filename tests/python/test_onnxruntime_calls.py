"""Calls of ONNX Runtime's API, beside ONNX Runtime itself where it is installed: the same value, or an error of the same class."""

import builtins
import importlib
import importlib.util
import os
import tempfile
import unittest
import warnings

import numpy as np

import berth.onnxruntime as ours

HERE = importlib.util.find_spec("onnxruntime") is not None and importlib.util.find_spec("onnx") is not None
if HERE:
    import onnxruntime as theirs
    from onnx import TensorProto, helper

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def model(element=None, shape=("n", 3), operator="Add"):
    element = TensorProto.FLOAT if element is None else element
    x, y = (helper.make_tensor_value_info(name, element, shape) for name in "xy")
    operands = ["x", "x"] if operator == "Add" else ["x"]
    graph = helper.make_graph([helper.make_node(operator, operands, ["y"])], "twice", [x], [y])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    made.ir_version = 8
    return made.SerializeToString()


def two_inputs():
    a, b, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in "aby")
    graph = helper.make_graph([helper.make_node("Sub", ["a", "b"], ["y"])], "minus", [a, b], [y])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    made.ir_version = 8
    return made.SerializeToString()


def session(api, options=None, **more):
    return api.InferenceSession(model(), options, providers=["CPUExecutionProvider"], **more)


def value(api, array=X):
    return api.OrtValue.ortvalue_from_numpy(array)


def set_of(api, kind, name, given):
    options = getattr(api, kind)()
    setattr(options, name, given)
    return getattr(options, name)


def run_bound(api, *steps):
    """The outputs of a run whose values are bound by `steps`: (method, arguments...)."""
    made = session(api)
    binding = made.io_binding()
    for name, *arguments in steps:
        getattr(binding, name)(*(argument(api) if callable(argument) else argument for argument in arguments))
    made.run_with_iobinding(binding)
    return binding.copy_outputs_to_cpu()


def entry(api, kind, add, get, key):
    options = getattr(api, kind)()
    getattr(options, add)("a", "1")
    return getattr(options, get)(key)


def terminated(api):
    options = api.RunOptions()
    options.terminate = True
    return session(api).run(None, {"x": X}, options)


def overridden(api):
    options = api.SessionOptions()
    options.add_free_dimension_override_by_name("n", 2)
    return session(api, options).get_inputs()[0].shape


def vectors(api):
    made = session(api)
    feed = api.capi.onnxruntime_pybind11_state.OrtValueVector()
    feed.push_back(value(api)._ortvalue)
    fetch = api.capi.onnxruntime_pybind11_state.OrtValueVector()
    made.run_with_ortvaluevector(api.RunOptions(), ["x"], feed, ["y"], fetch, [api.OrtDevice.make("cpu", 0)._get_c_device()])
    return fetch[0].numpy()


def sparse(api):
    made = api.SparseTensor.sparse_coo_from_numpy([3, 4], np.array([1, 2], np.float32), np.array([0, 7], np.int64),
                                                  api.OrtDevice.make("cpu", 0))
    return made.dense_shape(), made.values(), made.format() == api.OrtSparseFormat.ORT_SPARSE_COO, made.device_name(), \
        made.as_coo_view().indices()


def memory_info(api):
    info = api.OrtMemoryInfo("Cpu", api.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, api.OrtMemType.DEFAULT)
    return type(info).__name__


CALLS = {
    # The session
    "run": lambda api: session(api).run(None, {"x": X}),
    "run, names": lambda api: session(api).run(["y"], {"x": X}),
    "run, positional names as a tuple": lambda api: session(api).run(("y",), {"x": X}),
    "run, no names": lambda api: session(api).run([], {"x": X}),
    "run, a list": lambda api: session(api).run(None, {"x": X.tolist()}),
    "run, a list of integers": lambda api: session(api).run(None, {"x": [[1, 2, 3]]}),
    "run, a number": lambda api: session(api).run(None, {"x": 1.0}),
    "run, an OrtValue": lambda api: session(api).run(None, {"x": value(api)}),
    "run, not contiguous": lambda api: session(api).run(None, {"x": np.asfortranarray(X)[::-1]}),
    "run, another type": lambda api: session(api).run(None, {"x": X.astype(np.float64)}),
    "run, integers": lambda api: session(api).run(None, {"x": X.astype(np.int64)}),
    "run, another rank": lambda api: session(api).run(None, {"x": X[0]}),
    "run, another extent": lambda api: session(api).run(None, {"x": X.T.copy()}),
    "run, None": lambda api: session(api).run(None, {"x": None}),
    "run, text": lambda api: session(api).run(None, {"x": "text"}),
    "run, no input": lambda api: session(api).run(None, {}),
    "run, one of two": lambda api: api.InferenceSession(two_inputs()).run(None, {"a": X[0]}),
    "run, another name": lambda api: session(api).run(None, {"z": X}),
    "run, one name more": lambda api: session(api).run(None, {"x": X, "z": X}),
    "run, another output": lambda api: session(api).run(["z"], {"x": X}),
    "run, a feed that is a list": lambda api: session(api).run(None, [X]),
    "run, a feed that is None": lambda api: session(api).run(None, None),
    "run, names that are a text": lambda api: session(api).run("y", {"x": X}),
    "run, no rows": lambda api: session(api).run(None, {"x": X[:0]}),
    "run, a name of another type": lambda api: session(api).run(None, {1: X}),
    "run, terminated": terminated,
    "run, options of another type": lambda api: session(api).run(None, {"x": X}, 3),
    "run, two inputs that do not fit": lambda api: api.InferenceSession(two_inputs()).run(None, {"a": X[0], "b": X[0][:2]}),
    "run, texts": lambda api: api.InferenceSession(model(TensorProto.STRING, operator="Identity")).run(None, {"x": np.array([["a", "b", "c"]])}),
    "run, texts as a list": lambda api: api.InferenceSession(model(TensorProto.STRING, operator="Identity")).run(None, {"x": [["a", "b", "c"]]}),
    "run_with_ort_values": lambda api: [v.numpy() for v in session(api).run_with_ort_values(["y"], {"x": value(api)})],
    "run_with_ort_values, None": lambda api: [v.numpy() for v in session(api).run_with_ort_values(None, {"x": value(api)})],
    "run_with_ort_values, an array": lambda api: session(api).run_with_ort_values(["y"], {"x": X}),
    "run_with_ort_values, another type": lambda api: session(api).run_with_ort_values(["y"], {"x": value(api, X.astype(np.int64))}),
    "get_inputs": lambda api: [(i.name, i.type, i.shape) for i in session(api).get_inputs()],
    "get_outputs": lambda api: [(i.name, i.type, i.shape) for i in session(api).get_outputs()],
    "str of an input": lambda api: str(session(api).get_inputs()[0]),
    "overrides": overridden,
    "providers": lambda api: "CPUExecutionProvider" in session(api).get_providers(),
    "provider options": lambda api: session(api).get_provider_options()["CPUExecutionProvider"],
    "set_providers": lambda api: session(api).set_providers(["CPUExecutionProvider"]),
    "get_session_options": lambda api: session(api).get_session_options().intra_op_num_threads,
    "profiling off": lambda api: session(api).end_profiling(),
    "profiling start": lambda api: type(session(api).get_profiling_start_time_ns()).__name__,
    "no tuning results": lambda api: session(api).get_tuning_results(),
    "set_ep_dynamic_options": lambda api: session(api).set_ep_dynamic_options({}),
    "memory of the inputs": lambda api: [type(i).__name__ for i in session(api).get_input_memory_infos()],
    "memory of the outputs": lambda api: [type(i).__name__ for i in session(api).get_output_memory_infos()],
    "run_with_ortvaluevector": vectors,
    # Opening
    "open, no file": lambda api: api.InferenceSession("no such file"),
    "open, a folder": lambda api: api.InferenceSession("/"),
    "open, no model": lambda api: api.InferenceSession(b"\x08no model"),
    "open, nothing": lambda api: api.InferenceSession(b""),
    "open, cut": lambda api: api.InferenceSession(model()[:40]),
    "open, a number": lambda api: api.InferenceSession(3),
    "open, None": lambda api: api.InferenceSession(None),
    "open, a bytearray": lambda api: api.InferenceSession(bytearray(model())).run(None, {"x": X}),
    "open, no arguments": lambda api: api.InferenceSession(),
    "open, options by name": lambda api: api.InferenceSession(model(), sess_options=api.SessionOptions()).run(None, {"x": X}),
    "open, path_or_bytes by name": lambda api: api.InferenceSession(path_or_bytes=model()).run(None, {"x": X}),
    "open, options of another type": lambda api: api.InferenceSession(model(), 3),
    "open, an unknown operator": lambda api: api.InferenceSession(model(operator="NoSuchOperator")),
    "open, providers that are a text": lambda api: api.InferenceSession(model(), providers="CPUExecutionProvider").run(None, {"x": X}),
    "open, a provider that is a number": lambda api: api.InferenceSession(model(), providers=[3]),
    "open, options of providers": lambda api: api.InferenceSession(model(), providers=[("CPUExecutionProvider", {"a": 1})]).run(None, {"x": X}),
    "open, options that are too many": lambda api: api.InferenceSession(model(), providers=["CPUExecutionProvider"], provider_options=[{}, {}]),
    "open, options without providers": lambda api: api.InferenceSession(model(), provider_options=[{}]),
    "open, options that are no dict": lambda api: api.InferenceSession(model(), providers=["CPUExecutionProvider"], provider_options=[3]),
    "open, a provider twice": lambda api: api.InferenceSession(model(), providers=["CPUExecutionProvider"] * 2).get_providers().count("CPUExecutionProvider"),
    "open, an unknown keyword": lambda api: api.InferenceSession(model(), no_such_keyword=1).run(None, {"x": X}),
    # Options
    **{f"{kind}.{name} = {given!r}": lambda api, kind=kind, name=name, given=given: set_of(api, kind, name, given)
       for kind, names in {
           "SessionOptions": {"intra_op_num_threads": (2, "2", 1.5, None), "inter_op_num_threads": (2, "2"), "log_severity_level": (3, "3"),
                              "enable_profiling": (True, 1, "yes"), "enable_mem_pattern": (False, 0), "logid": ("a", 1),
                              "profile_file_prefix": ("a", 1), "use_deterministic_compute": (True, None), "no_such_name": (1,)},
           "RunOptions": {"terminate": (True, 1, "yes"), "log_severity_level": (3, "3"), "logid": ("a", 1), "no_such_name": (1,)},
       }.items() for name, values in names.items() for given in values},
    "graph_optimization_level = 1": lambda api: set_of(api, "SessionOptions", "graph_optimization_level", 1),
    "graph_optimization_level": lambda api: str(set_of(api, "SessionOptions", "graph_optimization_level", api.GraphOptimizationLevel.ORT_ENABLE_BASIC)),
    "execution_mode = 1": lambda api: set_of(api, "SessionOptions", "execution_mode", 1),
    "default level": lambda api: str(api.SessionOptions().graph_optimization_level),
    "entry": lambda api: entry(api, "SessionOptions", "add_session_config_entry", "get_session_config_entry", "a"),
    "entry that is not there": lambda api: entry(api, "SessionOptions", "add_session_config_entry", "get_session_config_entry", "b"),
    "entry of a number": lambda api: api.SessionOptions().add_session_config_entry("a", 1),
    "run entry": lambda api: entry(api, "RunOptions", "add_run_config_entry", "get_run_config_entry", "a"),
    "run entry that is not there": lambda api: entry(api, "RunOptions", "add_run_config_entry", "get_run_config_entry", "b"),
    "run entry of a number": lambda api: api.RunOptions().add_run_config_entry("a", 1),
    "override of a text": lambda api: api.SessionOptions().add_free_dimension_override_by_name("n", "2"),
    "custom operators that are no file": lambda api: api.SessionOptions().register_custom_ops_library("no such file"),
    "add_initializer of a number": lambda api: api.SessionOptions().add_initializer("a", 3),
    "add_initializer of an array": lambda api: api.SessionOptions().add_initializer("a", X),
    "add_initializer": lambda api: api.SessionOptions().add_initializer("a", value(api)),
    # Values
    "OrtValue": lambda api: (value(api).numpy(), value(api).data_type(), value(api).shape(), value(api).element_type(), value(api).device_name(),
                             value(api).is_tensor(), value(api).has_value(), value(api).is_tensor_sequence(), value(api).is_sparse_tensor()),
    "OrtValue of a list": lambda api: value(api, [1.0, 2.0]).numpy(),
    "OrtValue of None": lambda api: value(api, None),
    "OrtValue of objects": lambda api: value(api, np.array([object()])),
    "OrtValue of complex": lambda api: value(api, np.zeros(2, np.complex64)).data_type(),
    "OrtValue of texts": lambda api: value(api, np.array(["a", "bc"])).numpy().tolist(),
    "OrtValue of a shape": lambda api: api.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32).shape(),
    "OrtValue of a shape and a number": lambda api: api.OrtValue.ortvalue_from_shape_and_type([2, 3], TensorProto.FLOAT).data_type(),
    "OrtValue of a negative shape": lambda api: api.OrtValue.ortvalue_from_shape_and_type([-1], np.float32),
    "OrtValue of an unknown type": lambda api: api.OrtValue.ortvalue_from_shape_and_type([1], "no such type"),
    "OrtValue of an unknown number": lambda api: api.OrtValue.ortvalue_from_shape_and_type([1], 99),
    "OrtValue of another device": lambda api: api.OrtValue.ortvalue_from_numpy(X, "cuda", 0),
    "OrtValue of an unknown device": lambda api: api.OrtValue.ortvalue_from_numpy(X, "no such device", 0),
    "OrtValue, bytes": lambda api: value(api).tensor_size_in_bytes(),
    "OrtValue, update": lambda api: (lambda v: (v.update_inplace(X + 1), v.numpy()))(value(api, X.copy()))[1],
    "OrtValue, update of another shape": lambda api: value(api, X.copy()).update_inplace(X[0]),
    "OrtValue, update of another type": lambda api: value(api, X.copy()).update_inplace(X.astype(np.int64)),
    "OrtValue, DLPack": lambda api: np.from_dlpack(value(api)),
    "OrtDevice": lambda api: (api.OrtDevice.make("cpu", 0).device_type(), api.OrtDevice.make("cpu", 0).device_id(), api.OrtDevice.cpu()),
    "OrtDevice of an unknown name": lambda api: api.OrtDevice.make("no such device", 0),
    "OrtDevice of a text": lambda api: api.OrtDevice.make("cpu", "0"),
    "SparseTensor": sparse,
    "OrtMemoryInfo": memory_info,
    # Bindings
    "binding": lambda api: run_bound(api, ("bind_cpu_input", "x", X), ("bind_output", "y")),
    "binding, values": lambda api: run_bound(api, ("bind_ortvalue_input", "x", value), ("bind_ortvalue_output", "y", lambda a: value(a, X.copy()))),
    "binding, an address": lambda api: run_bound(api, ("bind_input", "x", "cpu", 0, np.float32, (2, 3), X.ctypes.data), ("bind_output", "y", "cpu")),
    "binding, another input": lambda api: run_bound(api, ("bind_cpu_input", "z", X), ("bind_output", "y")),
    "binding, another output": lambda api: run_bound(api, ("bind_cpu_input", "x", X), ("bind_output", "z")),
    "binding, no input": lambda api: run_bound(api, ("bind_output", "y")),
    "binding, no output": lambda api: run_bound(api, ("bind_cpu_input", "x", X)),
    "binding, another type": lambda api: run_bound(api, ("bind_cpu_input", "x", X.astype(np.int64)), ("bind_output", "y")),
    "binding, a list": lambda api: run_bound(api, ("bind_cpu_input", "x", X.tolist()), ("bind_output", "y")),
    "binding, an array as a value": lambda api: run_bound(api, ("bind_ortvalue_input", "x", X), ("bind_output", "y")),
    "binding, an output of another shape": lambda api: run_bound(api, ("bind_cpu_input", "x", X), ("bind_ortvalue_output", "y", lambda a: value(a, X.T.copy()))),
    "binding, an output of another type": lambda api: run_bound(api, ("bind_cpu_input", "x", X), ("bind_ortvalue_output", "y", lambda a: value(a, X.astype(np.int64)))),
    "binding, another device": lambda api: run_bound(api, ("bind_cpu_input", "x", X), ("bind_output", "y", "cuda")),
    "binding, an address without a shape": lambda api: run_bound(api, ("bind_cpu_input", "x", X), ("bind_output", "y", "cpu", 0, np.float32, None, X.ctypes.data)),
    # The module
    "backend": lambda api: importlib.import_module(f"{api.__name__}.backend").run(model(), [X]),
    "backend, another device": lambda api: importlib.import_module(f"{api.__name__}.backend").prepare(model(), "no such device"),
    "device": lambda api: api.get_device(),
    "version is text": lambda api: type(api.get_version_string()).__name__,
    "set_default_logger_severity": lambda api: api.set_default_logger_severity(2),
    "set_default_logger_severity of a text": lambda api: api.set_default_logger_severity("2"),
    "set_default_logger_severity of 9": lambda api: api.set_default_logger_severity(9),
    "set_default_logger_verbosity": lambda api: api.set_default_logger_verbosity(0),
    "set_seed": lambda api: api.set_seed(1),
    "set_seed of a text": lambda api: api.set_seed("1"),
    "get_ep_devices": lambda api: type(api.get_ep_devices()).__name__,
    "register a library that is none": lambda api: api.register_execution_provider_library("a", "no such file"),
    "LoraAdapter that is no file": lambda api: api.LoraAdapter().Load("no such file"),
}


def plain(found):
    """What is compared of a value."""
    if isinstance(found, np.ndarray):
        return [str(found.dtype) if found.dtype.kind not in "UO" else "text", list(found.shape), found.tolist()]
    if isinstance(found, (list, tuple)):
        return [plain(item) for item in found]
    return found if isinstance(found, (bool, int, float, str, dict, type(None))) else type(found).__name__


def outcome(call, api):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return None, plain(call(api))
        except Exception as error:
            return error, None


def is_like(error, expected):
    """Whether `except` clauses that take `expected`, of ONNX Runtime's, take `error`."""
    name = type(expected).__name__
    kind = getattr(ours.capi.onnxruntime_pybind11_state, name, None) or getattr(builtins, name, None)
    return kind is not None and isinstance(error, kind)


@unittest.skipUnless(HERE, "onnxruntime and onnx are not installed")
class Calls(unittest.TestCase):
    # Where Berth differs on purpose, and why.
    DIFFERENT = {
        "run, a number": "one is taken for an input without dimensions; for this one it is INVALID_ARGUMENT, RuntimeError there",
        "run, None": "an input that is missing is said before the model runs; there a node fails",
        "open, a bytearray": "bytes are bytes",
        "OrtValue of texts": "texts are values",
        "OrtValue, update of another type": "there the bytes are taken for numbers of the other type",
        "OrtDevice": "one class has the names of both of theirs",
    }

    def test_each_call_ends_as_there(self):
        theirs.set_default_logger_severity(4)
        with tempfile.TemporaryDirectory() as folder:
            here = os.getcwd()
            os.chdir(folder)
            try:
                for name, call in CALLS.items():
                    with self.subTest(name):
                        expected, value_there = outcome(call, theirs)
                        error, value_here = outcome(call, ours)
                        if name in self.DIFFERENT:
                            self.assertFalse(expected is None and error is None and value_here == value_there, f"{name} is as there now")
                            continue
                        if expected is None:
                            self.assertIsNone(error, f"{name}: {type(error).__name__} {error}, and nothing is wrong there")
                            self.assertEqual(value_here, value_there, name)
                        else:
                            self.assertIsNotNone(error, f"{name}: there it is {type(expected).__name__} {expected}")
                            self.assertTrue(is_like(error, expected), f"{name}: {type(error).__name__} {error}; there it is "
                                            f"{type(expected).__name__} {expected}")
            finally:
                os.chdir(here)


class NotThere(unittest.TestCase):
    def test_quantization_says_what_to_do(self):
        with self.assertRaisesRegex(ImportError, "berth quantize"):
            importlib.import_module("berth.onnxruntime.quantization")

    def test_names_are_errors_when_used(self):
        sparse = ours.SparseTensor.sparse_coo_from_numpy([3, 4], np.ones(2, np.float32), np.array([0, 7]),
                                                         ours.OrtDevice.make("cpu", 0))
        for words, use in (
                ("a: .*among the inputs of run", lambda: ours.LoraAdapter().Load("a")),
                ("a: .*among the inputs of run", lambda: ours.AdapterFormat.read_adapter("a")),
                ("among the inputs of run", lambda: ours.RunOptions().add_active_adapter(None)),
                ("give the dense array", lambda: ours.OrtValue.ort_value_from_sparse_tensor(sparse)),
                ("make the dense array", lambda: sparse.to_cuda(None)),
                (r"program\(\)\.save\(", lambda: ours.ModelCompiler(None, "a")),
                ("berth", lambda: ours.register_execution_provider_library("a", "b"))):
            with self.assertRaisesRegex(ours.NotImplemented, words):
                use()

    @unittest.skipUnless(HERE, "onnxruntime and onnx are not here")
    def test_tensors_of_an_adapter_are_inputs(self):  # what the error says to do
        model = helper.make_graph(
            [helper.make_node("Add", ["x", "lora"], ["y"])], "g",
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in ("x", "lora")],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])],
            [helper.make_tensor("lora", TensorProto.FLOAT, [3], [0, 0, 0])])
        session = ours.InferenceSession(helper.make_model(model, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
                                        .SerializeToString())
        x = np.ones(3, np.float32)
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], x)
        np.testing.assert_array_equal(session.run(None, {"x": x, "lora": 4 * x})[0], 5 * x)


if __name__ == "__main__":
    unittest.main()
