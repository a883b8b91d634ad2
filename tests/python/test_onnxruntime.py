"""berth.onnxruntime: the names and rules of ONNX Runtime's API that applications rely on."""

import os
import subprocess
import sys
import tempfile
import threading
import unittest

import numpy as np

import berth.onnxruntime as onnxruntime
from test_berth import DIGITS, SHARED, data_sets, digits, needs_shared


def model_with_metadata():
    """y = x + x, with metadata, by the onnx package."""
    import onnx
    from onnx import TensorProto, helper
    x = helper.make_tensor_value_info("x", TensorProto.INT64, ["n", None])
    y = helper.make_tensor_value_info("y", TensorProto.INT64, ["n", None])
    graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "twice", [x], [y], doc_string="doubles")
    model = helper.make_model(graph, producer_name="a test", opset_imports=[helper.make_opsetid("", 13)])
    model.model_version, model.domain, model.doc_string, model.ir_version = 7, "org.example", "a model", 8
    helper.set_model_props(model, {"character": "a\nb", "empty": ""})
    onnx.checker.check_model(model)
    return model.SerializeToString()


def endless_model():
    """y = x + 1, as often as an int64 counts."""
    from onnx import TensorProto, helper
    value = helper.make_tensor_value_info
    body = helper.make_graph(
        [helper.make_node("Add", ["v", "one"], ["w"]), helper.make_node("Identity", ["c"], ["d"])], "body",
        [value("i", TensorProto.INT64, []), value("c", TensorProto.BOOL, []), value("v", TensorProto.FLOAT, [1])],
        [value("d", TensorProto.BOOL, []), value("w", TensorProto.FLOAT, [1])])
    graph = helper.make_graph([helper.make_node("Loop", ["most", "go", "x"], ["y"], body=body)], "endless",
                              [value("x", TensorProto.FLOAT, [1])], [value("y", TensorProto.FLOAT, [1])],
                              [helper.make_tensor("most", TensorProto.INT64, [], [2**62]),
                               helper.make_tensor("go", TensorProto.BOOL, [], [True]),
                               helper.make_tensor("one", TensorProto.FLOAT, [1], [1.0])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 8
    return model.SerializeToString()


def model_with_values(folder=None, version=8, with_nonzero=False):
    """y = (x w + b) c, where b is both an initializer and an input; or where that is not 0. With a folder: the values are in
    a file of their own there. Gives the model's bytes, or its path, and the values."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    values = {"w": np.arange(12, dtype=np.float32).reshape(3, 4), "b": np.ones(4, np.float32), "c": np.full(4, 2, np.float32)}
    last = "z" if with_nonzero else "y"
    nodes = [helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Add", ["m", "b"], ["s"]),
             helper.make_node("Mul", ["s", "c"], [last])]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 4])
    if with_nonzero:
        nodes.append(helper.make_node("NonZero", ["z"], ["y"]))
        output = helper.make_tensor_value_info("y", TensorProto.INT64, [2, "k"])
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3]),
              helper.make_tensor_value_info("b", TensorProto.FLOAT, [4])]
    graph = helper.make_graph(nodes, "g", inputs, [output], [numpy_helper.from_array(v, n) for n, v in values.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=version)
    if folder is None:
        return model.SerializeToString(), values
    path = os.path.join(folder, "model.onnx")
    onnx.save(model, path, save_as_external_data=True, location="values", size_threshold=0)
    return path, values


class Initializers(unittest.TestCase):
    """Values of the caller's in place of the model's, as ONNX Runtime 1.32 takes them."""

    x = np.arange(6, dtype=np.float32).reshape(2, 3)

    def expected(self, values, **others):
        v = {**values, **others}
        return (self.x @ v["w"] + v["b"]) * v["c"]

    def test_given_to_a_run(self):
        model, values = model_with_values()
        session = onnxruntime.InferenceSession(model)
        self.assertEqual([value.name for value in session.get_inputs()], ["x"])
        (value,) = session.get_overridable_initializers()
        self.assertEqual((value.name, value.type, value.shape), ("b", "tensor(float)", [4]))
        for b in (np.float32([5, 6, 7, 8]), np.float32([0, 0, 0, -1])):
            np.testing.assert_allclose(session.run(None, {"x": self.x, "b": b})[0], self.expected(values, b=b))
        np.testing.assert_allclose(session.run(None, {"x": self.x})[0], self.expected(values))
        for feed in ({"x": self.x, "w": values["w"]}, {"x": self.x, "b": np.ones(2, np.float32)}):
            with self.assertRaises(onnxruntime.InvalidArgument):
                session.run(None, feed)
        with self.assertRaises(ValueError):
            session.run(None, {"b": values["b"]})
        old, _ = model_with_values(version=3)  # whose inputs all initializers are
        self.assertEqual(onnxruntime.InferenceSession(old).get_overridable_initializers(), [])

    def test_given_where_shapes_follow_from_data(self):
        model, values = model_with_values(with_nonzero=True)
        session = onnxruntime.InferenceSession(model)
        for others in ({}, {"b": np.float32([5, 0, 7, 8])}, {}):
            wanted = np.array(np.nonzero(self.expected(values, **others)))
            np.testing.assert_array_equal(session.run(None, {"x": self.x, **others})[0], wanted)

    def test_given_to_a_session(self):
        model, values = model_with_values()
        options = onnxruntime.SessionOptions()
        options.add_initializer("w", onnxruntime.OrtValue.ortvalue_from_numpy(3 * values["w"]))
        session = onnxruntime.InferenceSession(model, options)
        np.testing.assert_allclose(session.run(None, {"x": self.x})[0], self.expected(values, w=3 * values["w"]))
        np.testing.assert_allclose(session.run(None, {"x": self.x, "b": values["c"]})[0],
                                   self.expected(values, w=3 * values["w"], b=values["c"]))
        with self.assertRaises(onnxruntime.InvalidArgument):
            options.add_initializer("w", onnxruntime.OrtValue.ortvalue_from_numpy(values["w"]))
        for wrong in (values["w"][:2], values["w"].astype(np.float64)):
            options = onnxruntime.SessionOptions()
            options.add_initializer("w", onnxruntime.OrtValue.ortvalue_from_numpy(wrong))
            with self.assertRaisesRegex(onnxruntime.InvalidArgument, r"f32\[3,4\]"):
                onnxruntime.InferenceSession(model, options).run(None, {"x": self.x})

    def test_in_place_of_a_file_that_is_not_there(self):
        with tempfile.TemporaryDirectory() as folder:
            path, values = model_with_values(folder)
            os.remove(os.path.join(folder, "values"))
            with self.assertRaises(Exception):
                onnxruntime.InferenceSession(path)
            options = onnxruntime.SessionOptions()
            options.add_external_initializers(list(values),
                                              [onnxruntime.OrtValue.ortvalue_from_numpy(v) for v in values.values()])
            session = onnxruntime.InferenceSession(path, options)
            np.testing.assert_allclose(session.run(None, {"x": self.x})[0], self.expected(values))


class Sessions(unittest.TestCase):
    def test_run(self):
        images, labels = digits()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        session = onnxruntime.InferenceSession(DIGITS, options, providers=["CUDAExecutionProvider", "CPUExecutionProvider"])
        self.assertEqual(session.get_providers(), ["CPUExecutionProvider"])
        (image,) = session.get_inputs()
        self.assertEqual((image.name, image.shape, image.type), ("image", ["batch", 1, 8, 8], "tensor(float)"))
        self.assertEqual([output.name for output in session.get_outputs()], ["probabilities"])
        for names in (None, [], ["probabilities"]):
            (scores,) = session.run(names, {"image": images})
            self.assertGreater((scores.argmax(axis=1) == labels).mean(), 0.9)
        value = onnxruntime.OrtValue.ortvalue_from_numpy(images[:1])
        (scores,) = session.run_with_ort_values(None, {"image": value})
        self.assertEqual(scores.numpy().argmax(), labels[0])

    def test_metadata(self):
        session = onnxruntime.InferenceSession(model_with_metadata())
        meta = session.get_modelmeta()
        self.assertEqual(meta.custom_metadata_map, {"character": "a\nb", "empty": ""})
        self.assertEqual((meta.producer_name, meta.graph_name, meta.domain), ("a test", "twice", "org.example"))
        self.assertEqual((meta.description, meta.graph_description, meta.version), ("a model", "doubles", 7))
        self.assertEqual(session.get_inputs()[0].shape, ["n", None])
        self.assertEqual(session.get_inputs()[0].type, "tensor(int64)")
        x = np.arange(6).reshape(2, 3)
        np.testing.assert_array_equal(session.run(["y"], {"x": x})[0], 2 * x)

    def test_errors(self):
        images, _ = digits()
        session = onnxruntime.InferenceSession(DIGITS)
        with self.assertRaisesRegex(onnxruntime.InvalidArgument, "nothing"):
            session.run(["nothing"], {"image": images})
        with self.assertRaisesRegex(onnxruntime.InvalidArgument, "x"):
            session.run(None, {"x": images})
        with self.assertRaisesRegex(onnxruntime.InvalidArgument, "image"):
            session.run(None, {})
        with self.assertRaises(onnxruntime.InvalidArgument):
            session.run(None, {"image": images.astype(np.float64)})
        with self.assertRaises(onnxruntime.NoSuchFile):
            onnxruntime.InferenceSession("no_such.onnx")
        with self.assertRaises(onnxruntime.InvalidArgument):
            onnxruntime.InferenceSession(b"")
        with self.assertRaises(onnxruntime.InvalidProtobuf):
            onnxruntime.InferenceSession(b"no model at all")
        with self.assertRaisesRegex(ValueError, "Required inputs .*image"):  # a ValueError there
            session.run(None, {})
        with self.assertRaises(TypeError):
            onnxruntime.InferenceSession(7)
        with self.assertRaisesRegex(onnxruntime.NotImplemented, "cuda"):
            onnxruntime.OrtValue.ortvalue_from_numpy(images, "cuda", 0)
        with self.assertRaises(onnxruntime.NotImplemented):
            onnxruntime.SessionOptions().register_custom_ops_library("custom.so")
        with self.assertWarnsRegex(RuntimeWarning, "optimised.onnx"):
            onnxruntime.SessionOptions().optimized_model_filepath = "optimised.onnx"
        for others in ([], ["CPUExecutionProvider"]):
            with self.assertWarnsRegex(UserWarning, "CUDAExecutionProvider"):
                session = onnxruntime.InferenceSession(DIGITS, providers=["CUDAExecutionProvider"] + others)
            self.assertEqual(session.get_providers(), ["CPUExecutionProvider"])

    def test_kinds_of_errors(self):
        """Classes as ONNX Runtime 1.32 has them: what an application's `except` clauses catch."""
        state = onnxruntime.capi.onnxruntime_pybind11_state  # with no import of its own, as there
        for kind in (state.InvalidArgument, state.NoSuchFile, state.InvalidProtobuf, state.InvalidGraph, state.NotImplemented):
            self.assertFalse(issubclass(kind, state.Fail), kind)
        binding = onnxruntime.InferenceSession(DIGITS).io_binding()
        options = onnxruntime.SessionOptions()
        for what in (lambda: binding.bind_cpu_input("nothing", np.zeros(1)), lambda: options.get_session_config_entry("nothing"),
                     lambda: onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros(1), "cuda", 0)):
            with self.assertRaises(RuntimeError):
                what()
        for options in (onnxruntime.SessionOptions(), onnxruntime.RunOptions()):
            with self.assertRaises(AttributeError):
                options.nonsense = 1
        self.assertEqual(str(onnxruntime.ExecutionMode.ORT_PARALLEL), "ExecutionMode.ORT_PARALLEL")
        import onnx
        from onnx import TensorProto, helper
        x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy")
        graph = helper.make_graph([helper.make_node("NoSuchOperator", ["x"], ["y"])], "g", [x], [y])
        with self.assertRaises(state.InvalidGraph):
            onnxruntime.InferenceSession(helper.make_model(graph).SerializeToString())

    def test_one_element_for_a_scalar(self):
        from onnx import TensorProto, helper
        x, s = (helper.make_tensor_value_info(name, TensorProto.INT64, dims) for name, dims in (("x", [3]), ("s", [])))
        y = helper.make_tensor_value_info("y", TensorProto.INT64, [3])
        graph = helper.make_graph([helper.make_node("Mul", ["x", "s"], ["y"])], "g", [x, s], [y])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
        session, x = onnxruntime.InferenceSession(model), np.arange(3)
        for scalar in (np.array(5), np.array([5]), np.array([[5]])):
            np.testing.assert_array_equal(session.run(None, {"x": x, "s": scalar})[0], [0, 5, 10])
        for wrong in (np.array([5, 6]), None):
            with self.assertRaises(onnxruntime.InvalidArgument):
                session.run(None, {"x": x, "s": wrong})

    def test_targets(self):
        provider = ("BerthExecutionProvider", {"target": "toaster"})
        with self.assertRaisesRegex(onnxruntime.InvalidArgument, "toaster"):
            onnxruntime.InferenceSession(DIGITS, providers=[provider]).run(None, {"image": digits()[0][:1]})
        onnxruntime.set_default_target("toaster")
        try:
            with self.assertRaisesRegex(onnxruntime.InvalidArgument, "toaster"):
                onnxruntime.InferenceSession(DIGITS).run(None, {"image": digits()[0][:1]})
        finally:
            onnxruntime.set_default_target(None)

    def test_bindings(self):
        images, _ = digits()
        session = onnxruntime.InferenceSession(DIGITS)
        (expected,) = session.run(None, {"image": images[:4]})
        binding = session.io_binding()
        with self.assertRaises(onnxruntime.InvalidArgument):
            session.run_with_iobinding(binding)  # nothing is bound
        binding.bind_cpu_input("image", images[:4])
        binding.bind_output("probabilities")
        session.run_with_iobinding(binding)
        np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], expected)
        self.assertEqual(binding.get_outputs()[0].shape(), [4, 10])

        image = np.ascontiguousarray(images[4:8])  # and memory by its address
        place = np.zeros((4, 10), np.float32)
        binding.bind_input("image", "cpu", 0, np.float32, image.shape, image.ctypes.data)
        binding.bind_output("probabilities", "cpu", 0, np.float32, place.shape, place.ctypes.data)
        session.run_with_iobinding(binding)
        np.testing.assert_array_equal(place, session.run(None, {"image": image})[0])

        value = onnxruntime.OrtValue.ortvalue_from_shape_and_type([4, 10], np.float32)
        binding.bind_ortvalue_input("image", onnxruntime.OrtValue.ortvalue_from_numpy(images[:4]))
        binding.bind_ortvalue_output("probabilities", value)
        session.run_with_iobinding(binding)
        np.testing.assert_array_equal(value.numpy(), expected)
        binding.bind_ortvalue_output("probabilities", onnxruntime.OrtValue.ortvalue_from_shape_and_type([1, 10], np.float32))
        with self.assertRaisesRegex(onnxruntime.InvalidArgument, "probabilities"):
            session.run_with_iobinding(binding)

    def test_values(self):
        array = np.arange(6, dtype=np.float32).reshape(2, 3)
        value = onnxruntime.OrtValue.ortvalue_from_numpy(array)
        self.assertEqual((value.data_type(), value.element_type(), value.shape(), value.device_name()),
                         ("tensor(float)", 1, [2, 3], "cpu"))
        self.assertEqual((value.data_ptr(), value.tensor_size_in_bytes()), (array.ctypes.data, 24))
        self.assertTrue(np.shares_memory(np.from_dlpack(value), array))
        value.update_inplace(array + 1)
        self.assertEqual(float(array[0, 0]), 1)  # the caller's own memory
        self.assertEqual(onnxruntime.OrtValue.ortvalue_from_shape_and_type([2], 7).numpy().dtype, np.int64)
        bits = onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(np.zeros(2, np.uint16), 16)
        self.assertEqual(bits.data_type(), "tensor(bfloat16)")
        self.assertEqual(onnxruntime.OrtValue([array]).data_type(), "seq(tensor(float))")

    def test_runs_that_do_not_wait(self):
        images, _ = digits()
        session = onnxruntime.InferenceSession(DIGITS)
        came, ended = [], threading.Event()

        def callback(results, data, error):
            came.append((results, data, error))
            ended.set()

        session.run_async(None, {"image": images[:1]}, callback, "mine")
        self.assertTrue(ended.wait(60))
        self.assertEqual(came[0][1:], ("mine", ""))
        np.testing.assert_array_equal(came[0][0][0], session.run(None, {"image": images[:1]})[0])

    def test_termination(self):
        options = onnxruntime.RunOptions()
        options.terminate = True
        session = onnxruntime.InferenceSession(endless_model())
        with self.assertRaisesRegex(onnxruntime.Fail, "terminate"):
            session.run(None, {"x": np.zeros(1, np.float32)}, options)
        options.terminate = False
        failed = []

        def work():
            try:
                session.run(None, {"x": np.zeros(1, np.float32)}, options)
            except onnxruntime.Fail as error:
                failed.append(error.code)

        thread = threading.Thread(target=work)
        thread.start()
        while not options._running:
            thread.join(0.01)
        while thread.is_alive():  # a run that has not quite begun is not ended
            options.terminate = True
            thread.join(0.05)
        self.assertEqual(failed, ["CANCELLED"])

    def test_declared_types(self):
        """Names of outputs' dimensions as the model has them, and types of what is no tensor."""
        import onnx
        from onnx import TensorProto, helper
        node = helper.make_node("SequenceConstruct", ["x", "x"], ["s"])
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", 2])
        s = helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)
        y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["lines", None])
        z = helper.make_tensor_value_info("z", TensorProto.FLOAT, [None, 4])
        graph = helper.make_graph([node, helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Relu", ["w"], ["z"])], "g",
                                  [x, helper.make_tensor_value_info("w", TensorProto.FLOAT, [None, -1])], [s, y, z])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
        model.ir_version = 8
        onnx.checker.check_model(model)
        session = onnxruntime.InferenceSession(model.SerializeToString())
        self.assertEqual([node.type for node in session.get_outputs()], ["seq(tensor(float))"] + ["tensor(float)"] * 2)
        self.assertEqual(session.get_inputs()[1].shape, [None, None])
        self.assertEqual(session.get_outputs()[1].shape, ["lines", 2])
        self.assertEqual(session.get_outputs()[2].shape, [None, 4])  # as declared; no name of Berth's for a dimension
        self.assertEqual(session.get_modelmeta().version, 2**63 - 1)  # ONNX Runtime's for a model that has none
        feed = {"x": np.zeros((3, 2), np.float32), "w": np.zeros((1, 4), np.float32)}
        feed = {name: onnxruntime.OrtValue.ortvalue_from_numpy(array) for name, array in feed.items()}
        (values,) = session.run_with_ort_values(["s"], feed)
        self.assertTrue(values.is_tensor_sequence())
        self.assertEqual(values.data_type(), "seq(tensor(float))")

    def test_install(self):
        """What packages import: the module, its parts, and their exceptions."""
        program = """
import onnxruntime, onnxruntime as ort, berth.onnxruntime, importlib.util
from onnxruntime import InferenceSession, get_available_providers
from onnxruntime.capi import _pybind_state as C
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument, NoSuchFile, InvalidProtobuf
from onnxruntime.capi.onnxruntime_inference_collection import OrtValue
assert onnxruntime is berth.onnxruntime and InferenceSession is berth.onnxruntime.InferenceSession
assert C.get_available_providers() == get_available_providers()
assert importlib.util.find_spec("onnxruntime")
try:
    InferenceSession("no_such.onnx")
except NoSuchFile as error:
    print(OrtValue is ort.OrtValue, sys.argv[1:])
"""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program.py")
            with open(path, "w", encoding="utf-8") as file:
                file.write("import sys\n" + program)
            outputs = [self.python("-m", "berth.onnxruntime", path, "one", "two"),
                       self.python("-c", "import sys, berth.onnxruntime; berth.onnxruntime.install(); sys.argv[1:] = ['one', 'two']\n" +
                                   program),
                       # without install(): parts are found by the package's path
                       self.python("-c", "import sys, berth.onnxruntime; sys.modules['onnxruntime'] = berth.onnxruntime; "
                                   "sys.argv[1:] = ['one', 'two']\n" + program)]
        for done in outputs:
            self.assertEqual((done.returncode, done.stdout), (0, "True ['one', 'two']\n"), done.stderr)
        self.assertEqual(self.python("-m", "berth.onnxruntime").returncode, 2)

    @staticmethod
    def python(*arguments):
        return subprocess.run([sys.executable, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    @needs_shared
    def test_recognition_of_text(self):
        """What OCR applications do: characters from the metadata, pictures of any width."""
        session = onnxruntime.InferenceSession(os.path.join(SHARED, "ppocr4_rec", "model.onnx"))
        characters = session.get_modelmeta().custom_metadata_map["character"].splitlines()
        widths = set()
        for (picture,), (expected,) in data_sets("ppocr4_rec"):
            (scores,) = session.run(None, {session.get_inputs()[0].name: picture})
            self.assertEqual(scores.shape[2], len(characters) + 2)  # and a blank at either end
            np.testing.assert_allclose(scores, expected, rtol=1e-3, atol=1e-4)
            widths.add(picture.shape[3])
        self.assertGreater(len(widths), 1)


if __name__ == "__main__":
    unittest.main()
