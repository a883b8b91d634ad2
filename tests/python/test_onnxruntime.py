"""berth.onnxruntime: the names and rules of ONNX Runtime's API that applications rely on."""

import os
import sys
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
        with self.assertRaises(onnxruntime.Fail):
            onnxruntime.InferenceSession(b"")

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

    def test_install(self):
        before = sys.modules.get("onnxruntime")
        onnxruntime.install()
        try:
            import onnxruntime as imported
            from onnxruntime import InferenceSession
            self.assertIs(imported, onnxruntime)
            self.assertIs(InferenceSession, onnxruntime.InferenceSession)
        finally:
            del sys.modules["onnxruntime"]
            if before is not None:
                sys.modules["onnxruntime"] = before

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
