"""The Python package against known answers: labels of examples/digits, and goldens of other implementations (../shared)."""

import ctypes
import gc
import glob
import json
import os
import pickle
import subprocess
import tempfile
import threading
import time
import unittest
import weakref

import numpy as np

import berth
from berth import _arrays

DIGITS = "examples/digits/digits.onnx"
SHARED = "../shared/models"


def digits():
    return np.load("examples/digits/test_images.npy"), np.load("examples/digits/test_labels.npy")


def read_pb(path):
    import onnx
    from onnx import numpy_helper
    with open(path, "rb") as file:
        return numpy_helper.to_array(onnx.TensorProto.FromString(file.read()))


def data_sets(name):
    """(inputs, outputs) of each set of a shared model."""
    for folder in sorted(glob.glob(f"{SHARED}/{name}/test_data_set_*")):
        yield tuple([read_pb(path) for path in sorted(glob.glob(f"{folder}/{kind}_*.pb"))] for kind in ("input", "output"))


try:
    import onnx as onnx_package
except ImportError:
    onnx_package = None

needs_onnx = unittest.skipUnless(onnx_package, "onnx of PyPI is not here")
needs_shared = unittest.skipUnless(os.path.isdir(SHARED), "../shared/models is not there")


class Fails:
    """with fails(self, "NOT_FOUND", "part"): the call raises BerthError of that code, with the part in its message."""

    def __init__(self, test, code, part=""):
        self.context, self.code, self.part, self.test = test.assertRaises(berth.BerthError), code, part, test

    def __enter__(self):
        return self.context.__enter__()

    def __exit__(self, *exception):
        done = self.context.__exit__(*exception)
        self.test.assertEqual(self.context.exception.code, self.code)
        self.test.assertIn(self.part, self.context.exception.message)
        return done


class Strings(unittest.TestCase):
    """A model of strings, written as a module; what comes of it is said by hand."""

    TEXT = b"""module "text"
graph @main(%x: string[N], %n: f32[N]) {
  %w = constant() {value = string[1] ("!")}
  %joined = string_concat(%x, %w)
  %size = size_of(%x)
  %table = concat(%n, %n) {axis = 0}
  %shape = constant() {value = i64[2] (-1, 2)}
  %rows = reshape(%table, %shape)
  %maps = zip_map(%rows) {keys = string[2] ("no", "yes")}
  return %joined, %size, %maps
}
"""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = os.path.join(folder.name, "text.txt")
        with open(path, "wb") as file:
            file.write(self.TEXT)
        self.model = berth.load(path)  # which reads it again when it first runs

    def test_results(self):
        words = np.array(["a", "gr\u00fcn", "", "nul\0inside"], object)
        joined, count, maps = self.model(words, np.array([1, 2, 3, 4], np.float32))
        self.assertEqual(joined.tolist(), ["a!", "gr\u00fcn!", "!", "nul\0inside!"])
        self.assertEqual(count, 4)
        self.assertEqual(maps, [{"no": 1.0, "yes": 2.0}, {"no": 3.0, "yes": 4.0}] * 2)

    def test_arrays_of_other_kinds(self):
        n = np.array([1, 2], np.float32)
        for words in (["a", "b"], np.array(["a", "b"]), np.array([b"a", b"b"], object)):
            self.assertEqual(self.model(words, n)[0].tolist(), ["a!", "b!"])
        self.assertEqual(self.model(np.array([b"\xff", "b"], object), n)[0].tolist(), ["\udcff!", "b!"])
        with Fails(self, "INCOMPATIBLE", "3 (int)"):
            self.model(np.array(["a", 3], object), n)
        with Fails(self, "INCOMPATIBLE", 'input "x" is string'):
            self.model(np.array([1, 2]), n)

    def test_is_no_program(self):
        with Fails(self, "UNSUPPORTED"):
            self.model.program((2,), (2,))


class Models(unittest.TestCase):
    def test_what_would_help_is_data(self):
        with Fails(self, "UNSUPPORTED", "give the inputs, or their extents") as caught:
            berth.plan(DIGITS, target="cpu")
        self.assertEqual(caught.exception.remedies, [("dimension", "batch")])
        self.assertTrue(str(caught.exception).endswith(", as in dims={'batch': 1}"), str(caught.exception))
        again = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual((again.remedies, str(again)), (caught.exception.remedies, str(caught.exception)))
        with Fails(self, "NOT_FOUND") as caught:
            berth.plan("no such model.onnx", target="cpu")
        self.assertEqual(caught.exception.remedies, [])

    def test_plans(self):
        """Records against the command's, which reads the same plan by itself."""
        pin = "op:Gemm=opencl:0"
        plan = berth.plan(DIGITS, target="cpu,opencl", dims={"batch": 4}, pins=[pin])
        command = os.path.join(os.environ["BERTH_LIBRARY_DIR"], "berth")
        if os.path.exists(command):
            said = json.loads(subprocess.run([command, "plan", DIGITS, "--target", "cpu,opencl", "--dim", "batch=4", "--pin", pin,
                                              "--format=json"], stdout=subprocess.PIPE, check=True).stdout)
            self.assertEqual([(o.node, o.op, o.device) for o in plan.operations],
                             [(o["node"], o["op"], o["device"]) for o in said["operations"]])
            self.assertEqual([copy.size_bytes for copy in plan.copies], [copy["bytes"] for copy in said["copies"]])
        for operation in plan.operations:
            self.assertEqual([r.device for r in operation.rejections],
                             ["cpu:0" if operation.device == "opencl:0" else "opencl:0"])
        self.assertEqual([copy.size_bytes for copy in plan.copies], [4 * 128 * 4, 4 * 10 * 4])  # of the network's layers
        last = max(plan.operations, key=lambda operation: operation.start or 0)
        self.assertAlmostEqual(last.start + last.duration, plan.predicted_seconds, delta=1e-9)
        for pool in plan.pools:
            self.assertGreaterEqual(pool.size_bytes, pool.lower_bound_bytes or 0)
            self.assertEqual(pool.live_bytes is not None, pool.usage == "workspace")
            self.assertEqual(pool.live_bytes or 0, sum(value.size_bytes for value in pool.values))
        comparison = plan.compare(berth.plan(DIGITS, target="cpu", dims={"batch": 4}))
        self.assertEqual(comparison.moved, [("fc (Gemm)", "opencl:0", "cpu:0")])
        self.assertEqual(comparison.copied_bytes, (sum(copy.size_bytes for copy in plan.copies), 0))
        self.assertEqual(comparison.memory_bytes["opencl:0"][1], 0)
        self.assertIn("<td>opencl:0</td>", comparison._repr_html_())
        self.assertEqual(plan.compare(plan).moved, [])

    def test_digits(self):
        images, labels = digits()
        model = berth.load(DIGITS)
        self.assertEqual(model.inputs[0].shape, ("batch", 1, 8, 8))
        self.assertEqual((model.inputs[0].name, model.inputs[0].type), ("image", "f32"))
        scores = model(images)
        self.assertEqual(scores.shape, (360, 10))
        self.assertEqual(scores.dtype, np.float32)
        np.testing.assert_allclose(scores.sum(axis=1), 1, rtol=1e-5)  # a softmax
        self.assertGreater((scores.argmax(axis=1) == labels).mean(), 0.9)
        one = model(images[:1])  # another shape
        self.assertEqual(one.argmax(), labels[0])
        np.testing.assert_allclose(one[0], scores[0], rtol=1e-4, atol=1e-6)
        np.testing.assert_array_equal(model({"image": images[:1]}), one)
        np.testing.assert_array_equal(model(image=images[:1]), one)
        np.testing.assert_array_equal(model.run({"image": images[:1]})["probabilities"], one)

    def test_bounds(self):
        model = berth.load(DIGITS, dims={"batch": (2, 5)})
        shape = model.inputs[0].shape[1:]
        for batch in (2, 5):
            images = np.random.default_rng(batch).random((batch, *shape), np.float32)
            np.testing.assert_allclose(model(images), berth.load(DIGITS, dims={"batch": batch})(images), 1e-5, 1e-6)
        with self.assertRaisesRegex(berth.BerthError, "dimension 0 is 6, outside its bounds 2..5"):
            model(np.zeros((6, *shape), np.float32))
        with self.assertRaisesRegex(berth.BerthError, "hold no extent"):
            berth.load(DIGITS, dims={"batch": (5, 2)})
        with self.assertRaisesRegex(berth.BerthError, '"rows" is no symbol of'):
            berth.load(DIGITS, dims={"batch": "rows+1"})

    def test_a_dimension_is_a_multiple_of_a_symbol(self):
        model = berth.load(DIGITS, dims={"batch": "3*groups", "groups": (1, 2)})
        images, _ = digits()
        expected = berth.load(DIGITS, dims={"batch": 6})(images[:6])
        np.testing.assert_allclose(model(images[:6]), expected, 1e-5, 1e-6)
        with self.assertRaisesRegex(berth.BerthError, "dimension 0 is 4, which 3\\*groups is for no groups"):
            model(images[:4])
        with self.assertRaisesRegex(berth.BerthError, "outside its bounds 3..6"):
            model(images[:9])
        with self.assertRaisesRegex(berth.BerthError, "rows"):
            berth.load(DIGITS, dims={"batch": "3*groups", "groups": (1, 2), "rows": 2})

    def test_arrays_of_all_kinds(self):
        images, labels = digits()
        model = berth.load(DIGITS, dims={"batch": 1})
        self.assertEqual(model.inputs[0].shape, (1, 1, 8, 8))
        image = images[:1]
        expected = model(image)
        transposed = np.ascontiguousarray(image.transpose(3, 2, 1, 0)).transpose(3, 2, 1, 0)
        self.assertFalse(transposed.flags.c_contiguous)
        np.testing.assert_array_equal(model(transposed), expected)
        np.testing.assert_array_equal(model(image.tolist()), expected)
        shifted = np.frombuffer(b"\0" + image.tobytes(), np.uint8)[1:].view(np.float32).reshape(image.shape)
        self.assertNotEqual(shifted.ctypes.data % 4, 0)
        np.testing.assert_array_equal(model(shifted), expected)

        class Exporter:  # another library's tensor
            def __dlpack__(self, **keywords):
                return image.copy().__dlpack__(**keywords)

            def __dlpack_device__(self):
                return image.__dlpack_device__()

        if hasattr(np, "from_dlpack"):
            np.testing.assert_array_equal(model(Exporter()), expected)
            np.testing.assert_array_equal(np.from_dlpack(model(image)), expected)
        read_only = image.copy()
        read_only.flags.writeable = False
        np.testing.assert_array_equal(model(read_only), expected)

    def test_shapes_are_kept_least_recently_used(self):
        images, _ = digits()
        model = berth.load(DIGITS, max_shapes=2)
        compiled = []
        make = model._compile
        model._compile = lambda *arguments: compiled.append(1) or make(*arguments)
        for batch, count in ((1, 1), (2, 2), (1, 2), (3, 3), (1, 3), (2, 4)):  # 3 drops 2, not 1
            model(images[:batch])
            self.assertEqual(len(compiled), count, f"batch {batch}")

    def own_cache(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(gc.collect)  # before that: models write into it as long as they live
        return folder.name

    def test_many_shapes_share_code(self):
        images, _ = digits()
        model = berth.load(DIGITS, cache_folder=self.own_cache())  # where no earlier session kept a program
        compiled = []
        make = model._compile
        model._compile = lambda *arguments: compiled.append(1) or make(*arguments)
        alone = berth.load(DIGITS, max_shapes=8)
        for batch in (1, 2, 3, 5, 4, 1, 3):
            np.testing.assert_allclose(model(images[:batch]), alone(images[:batch]), rtol=1e-5, atol=1e-6)
        self.assertEqual(len(compiled), 1)
        model(images[:6], timeout=60)  # a session can be interrupted anywhere
        self.assertEqual(len(compiled), 2)
        self.assertEqual(model.program((7, 1, 8, 8)).inputs[0].shape, (7, 1, 8, 8))

    def test_a_later_model_takes_the_program_that_was_kept(self):
        images, _ = digits()
        folder = self.own_cache()
        model = berth.load(DIGITS, cache_folder=folder)
        for batch in (1, 2, 4, 8):  # one by itself, then three that share code
            model(images[:batch])
        end = time.monotonic() + 300
        while time.monotonic() < end and not glob.glob(f"{folder}/*.program"):
            time.sleep(0.1)
        later = berth.load(DIGITS, cache_folder=folder)
        later._compile = lambda *arguments: self.fail("nothing is to be compiled")
        later._load_dynamic = lambda *arguments, **options: self.fail("it is there when the model is loaded, not with its first call")
        alone = berth.load(DIGITS, max_shapes=8, cache_folder=folder)
        for batch in (6, 2):
            np.testing.assert_allclose(later(images[:batch]), alone(images[:batch]), rtol=1e-5, atol=1e-6)

    def test_results_are_the_callers(self):
        images, _ = digits()
        model = berth.load(DIGITS)
        first = model(images[:1])
        kept = first.copy()
        model(images[1:2])
        np.testing.assert_array_equal(first, kept)

    def test_threads(self):
        images, labels = digits()
        model = berth.load(DIGITS, threads=1)
        expected = model(images[:4])
        wrong = []

        def work(i):
            for _ in range(50):
                if not np.array_equal(model(images[:4]), expected):
                    wrong.append(i)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_constants(self):
        images, labels = digits()
        model = berth.load(DIGITS, constants={"image": images[:1]})
        self.assertEqual(model.inputs, [])
        self.assertEqual(model().argmax(), labels[0])

    def test_bytes_and_programs(self):
        images, labels = digits()
        with open(DIGITS, "rb") as file:
            model = berth.load(file.read(), dims={"batch": 1})
        self.assertEqual(model(images[:1]).argmax(), labels[0])
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "digits.berth")
            model.program().save(path)
            program = berth.load(path)
            self.assertEqual(program.inputs[0].shape, (1, 1, 8, 8))
            self.assertEqual(program(images[:1]).argmax(), labels[0])
            with open(path, "rb") as file:
                again = berth.load(file.read())
            self.assertEqual(again(images[:1]).argmax(), labels[0])
            with Fails(self, "INVALID_ARGUMENT", "compiled already"):
                berth.load(path, target="cpu")
            with Fails(self, "INCOMPATIBLE", "image"):
                program(images[:2])

    def test_programs_of_something_else(self):
        for make in (berth.Program, berth.Session, berth.Runner):
            with self.assertRaisesRegex(TypeError, r"'str'.*berth\.Program\.open\(path\)"):
                make("digits.berth")
        with self.assertRaisesRegex(TypeError, r"'str'.*berth\.load\(path\)"):
            berth.Program("digits.berth")
        with self.assertRaisesRegex(TypeError, "'Model'"):
            berth.Session(berth.load(DIGITS, target="cpu"))

    def test_errors(self):
        images, _ = digits()
        model = berth.load(DIGITS)
        with Fails(self, "INCOMPATIBLE", "float64"):
            model(images.astype(np.float64))
        with Fails(self, "NOT_FOUND", "image"):
            model(imgae=images)
        with Fails(self, "INVALID_ARGUMENT", "missing: image"):
            model()
        with Fails(self, "INVALID_ARGUMENT", "2 were given"):
            model(images, images)
        with Fails(self, "INVALID_ARGUMENT", "given twice"):
            model(images, image=images)
        with Fails(self, "INVALID_ARGUMENT", "image"):
            model(images[:, :, :4])  # dimension 2 is 8
        with Fails(self, "NOT_FOUND", "no_such.onnx"):
            berth.load("no_such.onnx")
        with Fails(self, "INVALID_ARGUMENT", "toaster"):
            berth.load(DIGITS, target="toaster", dims={"batch": 1})
        with Fails(self, "NOT_FOUND", "stratgey"):
            berth.load(DIGITS, dims={"batch": 1}, stratgey="auto")
        with Fails(self, "NOT_FOUND", "bacth"):
            berth.load(DIGITS, dims={"bacth": 1})
        with Fails(self, "NOT_FOUND", "imgae"):
            berth.load(DIGITS, constants={"imgae": images})
        with Fails(self, "INVALID_ARGUMENT"):
            berth.load(b"no model")
        error = berth.BerthError("NOT_FOUND", "no such file")
        self.assertEqual(pickle.loads(pickle.dumps(error)).code, "NOT_FOUND")

    def test_control_flow(self):
        text = ('module "m"\n'
                "graph @main(%x: f32[N], %limit: f32[]) {\n"
                "  %yes = constant() {value = bool[] (1)}\n"
                "  %y, %rows = loop(_, %yes, %x) (%i: i64[], %go: bool[], %c: f32[N]) {\n"
                "    %d = add(%c, %c)\n    %s = reduce_sum(%d) {keepdims = 0}\n"
                "    %more = less(%s, %limit)\n    return %more, %d, %d\n  }\n"
                "  return %y, %rows\n}\n")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.txt")
            with open(path, "w") as file:
                file.write(text)
            model = berth.load(path)
            for length, limit in ((3, 100), (5, 100), (3, 7), (3, 100)):
                x = np.arange(1, length + 1, dtype=np.float32)
                wanted, rows = x, []
                while not rows or wanted.sum() < limit:
                    wanted = wanted + wanted
                    rows.append(wanted)
                y, all_rows = model(x, np.float32(limit))
                np.testing.assert_array_equal(y, wanted)
                np.testing.assert_array_equal(all_rows, np.stack(rows))
            with Fails(self, "UNSUPPORTED", "it has no program"):
                model.program((3,), ())

    def test_memory_of_values(self):
        text = ('module "m"\n'
                "graph @main(%n: i64[], %x: f32[N]) {\n"
                "  %y = loop(%n, _, %x) (%i: i64[], %go: bool[], %c: f32[N]) {\n"
                "    %d = add(%c, %c)\n    return %go, %d\n  }\n"
                "  return %y\n}\n")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.txt")
            with open(path, "w") as file:
                file.write(text)
            model = berth.load(path)
            x = np.ones(100_000, np.float32)
            y = model(np.int64(3), x)
            before = model.value_memory
            self.assertGreaterEqual(before.live_bytes, x.nbytes)  # the result
            self.assertGreaterEqual(before.reserved_bytes, before.live_bytes)
            self.assertGreaterEqual(before.most_live_bytes, 2 * x.nbytes)  # what goes into a round, and what comes of it
            self.assertEqual((before.limit_bytes, before.device_reserved_bytes, before.device_count), (0, 0, 0))
            np.testing.assert_array_equal(y, 8 * x)
            del y
            gc.collect()
            self.assertLess(model.value_memory.live_bytes, x.nbytes)
            model(np.int64(3), x)
            self.assertEqual(model.value_memory.system_count, before.system_count)
            self.assertGreater(model.value_memory.allocation_count, before.allocation_count)
            limit = model.value_memory.reserved_bytes
            model.limit_value_memory(limit)
            with Fails(self, "OUT_OF_MEMORY", str(limit)):
                model(np.int64(3), np.ones(10_000_000, np.float32))
            np.testing.assert_array_equal(model(np.int64(1), x), 2 * x)
            fixed = berth.load(DIGITS, dims={"batch": 1})
            self.assertIsNone(fixed.value_memory)
            with Fails(self, "UNSUPPORTED"):
                fixed.limit_value_memory(1)

    @needs_shared
    def test_a_model_that_runs_by_parts_is_loaded_for_that_once(self):
        loads, load = [], berth.Compiler.load_dynamic
        self.addCleanup(setattr, berth.Compiler, "load_dynamic", load)
        berth.Compiler.load_dynamic = lambda self, *arguments: loads.append(arguments) or load(self, *arguments)
        model = berth.load(f"{SHARED}/control_flow/loop_early_exit/model.onnx", cache_folder=self.own_cache())
        for inputs, outputs in data_sets("control_flow/loop_early_exit"):
            results = model.run(dict(zip([port.name for port in model.inputs], inputs)))
            for got, wanted in zip(results.values(), outputs):
                np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)
        self.assertEqual(len(loads), 1)

    @needs_shared
    def test_calls_like_the_one_before(self):
        model = berth.load(f"{SHARED}/control_flow/nonzero_gather/model.onnx")
        rows = lambda first: np.array([[first, 2, 3, 4], [-1, -2, -3, -4]], np.float32)
        run = lambda x: model.run({"x": x, "limit": np.array(0, np.float32)})
        read_only = rows(1)
        read_only.flags.writeable = False
        first = run(rows(1))
        held = {name: value.copy() for name, value in first.items()}
        np.testing.assert_array_equal(first["rows"], [0])
        for x in (rows(1), read_only, np.repeat(rows(1), 2, axis=1)[:, ::2], rows(1).tolist()):
            for name, value in run(x).items():
                np.testing.assert_array_equal(value, held[name])
        np.testing.assert_array_equal(run(-rows(1))["rows"], [1])
        for name, value in first.items():  # the caller's, whatever comes after
            np.testing.assert_array_equal(value, held[name])
        with self.assertRaisesRegex(berth.BerthError, "float64"):
            run(rows(1).astype(np.float64))

    @needs_shared
    def test_control_flow_goldens(self):
        for name in ("loop_nested_if", "loop_zero_trips", "scan_two_directions", "optional", "nms_if_empty"):
            model = berth.load(f"{SHARED}/control_flow/{name}/model.onnx")
            for inputs, outputs in data_sets(f"control_flow/{name}"):
                results = model(*inputs)
                results = results if isinstance(results, tuple) else (results,)
                self.assertEqual(len(results), len(outputs))
                for result, expected in zip(results, outputs):
                    self.assertEqual(result.shape, expected.shape)
                    np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-4, err_msg=name)

    @needs_shared
    def test_goldens(self):
        for name in ("mnist", "mnist_quantized", "ppocr_cls", "magika", "silero_vad_op18_ifless", "silero_vad"):
            model = berth.load(f"{SHARED}/{name}/model.onnx")
            for inputs, outputs in data_sets(name):
                results = model(*inputs)
                results = results if isinstance(results, tuple) else (results,)
                self.assertEqual(len(results), len(outputs))
                for result, expected in zip(results, outputs):
                    np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-4, err_msg=name)


class OfDevice:
    """Another library's tensor that says it is in the memory of such a device (a DLDeviceType), whatever it is."""

    def __init__(self, array, kind):
        self.array, self.kind = array, kind

    def __dlpack_device__(self):
        return self.kind, 0

    def __dlpack__(self, **keywords):
        capsule = self.array.__dlpack__()
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        ctypes.c_int32.from_address(pointer(capsule, b"dltensor") + 8).value = self.kind  # after the data's address
        return capsule


@unittest.skipUnless(hasattr(np, "from_dlpack"), "this NumPy has no from_dlpack")
class DLPack(unittest.TestCase):
    @unittest.skipUnless(hasattr(np, "from_dlpack"), "this NumPy has no from_dlpack")
    def test_what_cannot_be_read_is_an_error_that_names_the_input(self):
        class Refusing:
            dtype = "some.type"

            def __dlpack_device__(self):
                return 1, 0

            def __dlpack__(self, **keywords):
                raise RuntimeError("use tensor.detach()")

        with self.assertRaisesRegex(berth.BerthError, 'input "image".*some.type.*detach') as caught:
            berth.load(DIGITS, dims={"batch": 1})(Refusing())
        self.assertEqual(caught.exception.code, "INCOMPATIBLE")

    def test_memory_that_the_host_reads(self):
        images, _ = digits()
        model = berth.load(DIGITS, target="cpu", dims={"batch": 1})
        image = images[:1].copy()
        expected = model(image)
        for kind in (1, 3, 11, 13):  # kDLCPU, kDLCUDAHost, kDLROCMHost, kDLCUDAManaged
            np.testing.assert_array_equal(model(OfDevice(image, kind)), expected)
        for kind, name in ((7, "kDLVulkan"), (10, "kDLROCM"), (99, "kDL99")):
            with Fails(self, "UNSUPPORTED", f"({name})"):
                model(OfDevice(image, kind))

    def test_no_copy(self):
        session = berth.load(DIGITS, target="cpu", dims={"batch": 1}).program().session()
        for kind in (1, 3):
            again = _arrays.as_array(OfDevice(session.input(0), kind), session.program.inputs[0])
            self.assertEqual(again.ctypes.data, session.input(0).ctypes.data)


try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None


class OfBfloat16:
    """Another library's tensor of bf16, which NumPy does not take through DLPack."""

    def __init__(self, bits):
        self.bits = bits

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **keywords):
        capsule = self.bits.__dlpack__()
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        ctypes.c_uint8.from_address(pointer(capsule, b"dltensor") + 20).value = 4  # kDLBfloat, after data, device and ndim
        return capsule


@needs_onnx
class Bfloat16(unittest.TestCase):
    BITS = np.array([[0x3F80, 0xC000, 0x3F00]], np.uint16)  # 1, -2, 0.5
    TWICE = np.array([[0x4000, 0xC080, 0x3F80]], np.uint16)  # 2, -4, 1

    def setUp(self):
        from onnx import TensorProto, helper
        x, y = (helper.make_tensor_value_info(name, TensorProto.BFLOAT16, [1, 3]) for name in "xy")
        graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "twice", [x], [y])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        self.model = berth.load(model.SerializeToString())

    def test_bits(self):
        for _ in range(2):
            np.testing.assert_array_equal(self.model(self.BITS), self.TWICE)

    @unittest.skipUnless(ml_dtypes, "ml_dtypes of PyPI is not here")
    def test_ml_dtypes(self):
        given = np.array([[1, -2, 0.5]], ml_dtypes.bfloat16)
        np.testing.assert_array_equal(self.model(given), self.TWICE)
        self.assertEqual(self.model(given).view(ml_dtypes.bfloat16).astype(np.float32).tolist(), [[2, -4, 1]])
        self.assertEqual(_arrays.as_array(given, self.model.inputs[0]).ctypes.data, given.ctypes.data)

    @unittest.skipUnless(hasattr(np, "from_dlpack"), "this NumPy has no from_dlpack")
    def test_dlpack(self):
        given = OfBfloat16(self.BITS.copy())
        np.testing.assert_array_equal(self.model(given), self.TWICE)
        self.assertEqual(_arrays.as_array(given, self.model.inputs[0]).ctypes.data, given.bits.ctypes.data)
        with Fails(self, "INCOMPATIBLE", "not contiguous"):
            self.model(OfBfloat16(np.repeat(self.BITS, 2, axis=1)[:, ::2]))

    @unittest.skipUnless(ml_dtypes, "ml_dtypes of PyPI is not here")
    def test_narrow_types(self):
        from onnx import TensorProto, helper
        ports = [helper.make_tensor_value_info("x", TensorProto.FLOAT8E4M3FN, [3]), helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])]
        graph = helper.make_graph([helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT)], "cast", ports[:1], ports[1:])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
        model, given = berth.load(model.SerializeToString()), np.array([1, -2, 0.5], ml_dtypes.float8_e4m3fn)
        with Fails(self, "INCOMPATIBLE", ".view(uint8)"):
            model(given)
        self.assertEqual(model(given.view(np.uint8)).tolist(), [1, -2, 0.5])

    def test_none(self):
        with Fails(self, "INVALID_ARGUMENT", '"x" is None'):
            self.model(None)
        with Fails(self, "INVALID_ARGUMENT", '"x" is None'):
            self.model.run({"x": None})

    def test_other_types(self):
        for dtype in (np.float32, np.float16, np.int16):
            with Fails(self, "INCOMPATIBLE", "ml_dtypes.bfloat16"):
                self.model(np.ones((1, 3), dtype))


try:
    import torch
except ImportError:
    torch = None


@unittest.skipUnless(torch and hasattr(np, "from_dlpack"), "PyTorch is not here (torch of PyPI, Debian's python3-torch), or NumPy has no from_dlpack")
class PyTorch(unittest.TestCase):
    """PyTorch's tensors in and out, where they are: by address."""

    def test_in_and_out(self):
        images, _ = digits()
        model = berth.load(DIGITS, target="cpu", dims={"batch": 1})
        expected = model(images[:1])
        got = model(torch.from_numpy(images[:1].copy()))
        np.testing.assert_array_equal(got, expected)
        scores = torch.from_dlpack(got)
        self.assertEqual(scores.data_ptr(), got.ctypes.data)
        self.assertEqual(scores.argmax().item(), expected.argmax())
        with Fails(self, "INCOMPATIBLE", "float64"):
            model(torch.from_numpy(images[:1]).double())

    def test_no_copy(self):
        images, _ = digits()
        session = berth.load(DIGITS, target="cpu", dims={"batch": 1}).program().session()
        port = session.program.inputs[0]
        image = torch.from_numpy(images[:1].copy())
        self.assertEqual(_arrays.as_array(image, port).ctypes.data, image.data_ptr())
        # The session's own memory as a tensor: what PyTorch writes there is the input, what it reads the output.
        inside = torch.from_dlpack(session.input(0))
        self.assertEqual(inside.data_ptr(), session.input(0).ctypes.data)
        inside.copy_(image)
        session.run(out=[session.output(0)])
        scores = torch.from_dlpack(session.output(0))
        self.assertEqual(scores.data_ptr(), session.output(0).ctypes.data)
        expected = berth.load(DIGITS, target="cpu", dims={"batch": 1})(images[:1])
        np.testing.assert_array_equal(scores.numpy(), expected)
        # Strided ones are copied once, and right.
        wide = torch.zeros(1, 1, 8, 16)
        wide[..., ::2] = image
        np.testing.assert_array_equal(_arrays.as_array(wide[..., ::2], port), images[:1])


class Fallbacks(unittest.TestCase):
    def test_pins_and_budgets_of_their_own(self):
        here = {"target": "cpu", "pins": ["op:Conv=cpu:0"], "memory": "cpu=1MiB"}
        program = berth.load(DIGITS, target="cpu,opencl", dims={"batch": 1}, pins=["op:Conv=opencl:0"], memory="opencl:0=1MiB",
                             fallbacks=[here, "cpu"]).program()
        reasons = [[p.reason for p in fallback.placements if p.op == "Conv"] for fallback in program.fallbacks]
        self.assertTrue(all("pin" in reason for reason in reasons[0]) and len(reasons[0]) == 2, reasons)
        self.assertFalse(any("pin" in reason for reason in reasons[1]), reasons)
        with Fails(self, "INVALID_ARGUMENT", "a target, or a dict with one"):
            berth.load(DIGITS, target="cpu", dims={"batch": 1}, fallbacks=[{"pins": []}]).program()


class Programs(unittest.TestCase):
    def test_placements_and_steps(self):
        images, labels = digits()
        compiler = berth.Compiler(target="cpu")
        seen = []
        compiler.on_progress(lambda what, done, total: seen.append((what, done, total)))
        compiler.set_dim("batch", 1)
        program = compiler.compile(DIGITS)
        self.assertTrue(seen and all(what and done <= total for what, done, total in seen))
        self.assertEqual(program.devices, ["cpu:0"])
        convolutions = [p for p in program.placements if p.op == "Conv"]
        self.assertEqual([p.node for p in convolutions], ["conv1", "conv2"])
        self.assertTrue(all(p.device == "cpu:0" and p.reason for p in convolutions))
        self.assertGreater(program.predicted_seconds, 0)
        session = program.session(profile=True, threads=1)
        session.input(0)[...] = images[:1]
        out = [np.zeros((1, 10), np.float32)]
        self.assertIs(session.run(out=out), out)
        self.assertEqual(out[0].argmax(), labels[0])
        session.run(out=[session.output(0)])
        np.testing.assert_array_equal(session.output(0), out[0])
        self.assertTrue(all(step.duration >= 0 and step.device == "cpu:0" for step in session.steps))
        self.assertIn("conv1", " ".join(step.name for step in session.steps))
        with tempfile.TemporaryDirectory() as folder:
            session.write_trace(os.path.join(folder, "trace.json"))
            self.assertGreater(os.path.getsize(os.path.join(folder, "trace.json")), 0)
        with Fails(self, "INVALID_ARGUMENT", "probabilities"):
            session.run(out=[np.zeros((1, 10), np.float64)])
        with Fails(self, "INCOMPATIBLE", "probabilities"):
            session.run(out=[np.zeros((2, 10), np.float32)])
        with Fails(self, "INVALID_ARGUMENT", "1 input"):
            session.run([images[:1], images[:1]])

    def test_results_are_written_in_place(self):
        images, labels = digits()
        images, count = np.concatenate([images, images]), 512  # results of 20 KiB
        session = berth.load(DIGITS, dims={"batch": count}).program().session()
        session.output(0)[...] = -1
        (scores,) = session.run([images[:count]])
        self.assertEqual(scores[0].argmax(), labels[0])
        self.assertTrue((session.output(0) == -1).all())  # the session's own memory was not needed

    def test_sessions_with_one_workspace(self):
        images, labels = digits()
        programs = [berth.load(DIGITS, dims={"batch": n}).program() for n in (1, 8)]
        small, large = berth.Session.together(programs)
        self.assertGreater(small.common_workspace_bytes, 0)
        self.assertEqual(small.common_workspace_bytes, berth.Session.together(programs[1:])[0].common_workspace_bytes)
        self.assertEqual(programs[0].session().common_workspace_bytes, 0)
        (many,), (one,) = large.run([images[:8]]), small.run([images[:1]])
        self.assertEqual(list(many.argmax(1)) + list(one.argmax(1)), list(labels[:8]) + [labels[0]])
        del small
        gc.collect()
        self.assertTrue((large.run([images[:8]])[0] == many).all())
        with Fails(self, "INVALID_ARGUMENT", "no program"):
            berth.Session.together([])

    def test_memory_views_keep_their_session(self):
        images, labels = digits()
        session = berth.load(DIGITS, dims={"batch": 1}).program().session()
        view, handle = session.output(0), weakref.ref(session._handle)
        session.run([images[:1]], out=[view])
        del session
        gc.collect()
        self.assertIsNotNone(handle())
        self.assertEqual(view.argmax(), labels[0])
        del view
        gc.collect()
        self.assertIsNone(handle())

    def test_devices(self):
        self.assertIn("cpu:0", [device.device for device in berth.devices()])
        kinds = {driver.kind: driver.missing for driver in berth.drivers()}
        self.assertEqual(kinds["cpu"], "")
        program = berth.load(DIGITS, dims={"batch": 1}).program()
        with Fails(self, "UNAVAILABLE", "cpu"):
            program.session(devices={"cpu:0": 9})

    def test_cancelled_progress(self):
        compiler = berth.Compiler(cache_folder=None)
        compiler.set_dim("batch", 1)
        compiler.on_progress(lambda *_: compiler.cancel())
        with Fails(self, "CANCELLED"):
            compiler.compile(DIGITS)

    def test_messages_name_no_option_of_the_command(self):
        for options in ({"memory": "zzz=1MiB"}, {"memory": "x"}, {"host": "toaster"}, {"executor": "q"}, {"runtime": "q"},
                        {"pins": ["x"]}, {"pins": ["op:Conv=opencl:7"]}):
            with Fails(self, "INVALID_ARGUMENT", next(iter(options)).rstrip("s")) as caught:
                berth.plan(DIGITS, dims={"batch": 1}, **options)
            self.assertNotIn("--", caught.exception.message)
        plan = berth.plan(DIGITS, dims={"batch": 1}, pins=["op:Conv=cpu:0"])
        reasons = {operation.op: operation.reason for operation in plan.operations}
        self.assertEqual(reasons["Conv"], "pinned: op:Conv=cpu:0 (pin 1 of those given)")

    def test_limits(self):
        """Of models and programs, from files and from memory: what is read first is read within them."""
        with open(DIGITS, "rb") as file:
            data = file.read()
        for model in (DIGITS, data):
            for make in (berth.load, berth.plan, lambda model, limits: berth.ModelInfo(model, limits=limits)):
                with Fails(self, "OUT_OF_RANGE", "items=1"):
                    make(model, limits="items=1")
        with Fails(self, "INVALID_ARGUMENT", "limits are"):
            berth.load(DIGITS, limits="size=1")
        program = berth.load(DIGITS, dims={"batch": 1}, limits="bytes=1MiB,time=5m").program()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "digits.berth")
            program.save(path)
            with Fails(self, "OUT_OF_RANGE", "bytes=1024"):
                berth.load(path, limits="bytes=1KiB")
            with Fails(self, "OUT_OF_RANGE", "items=1"):
                berth.Program.open(path, limits="items=1")
            images, labels = digits()
            self.assertEqual(berth.load(path, limits="bytes=1MiB")(images[:1]).argmax(), labels[0])
            with open(path, "rb") as file, Fails(self, "OUT_OF_RANGE", "bytes=1024"):
                berth.load(file.read(), limits="bytes=1KiB")

    def test_states(self):
        """A cache that the model keeps, beside one that the caller passes on."""
        text = '''module "m"
graph @main(%past: f32[2,past,3], %row: f32[2,1,3]) {bounds = "past=0..5"} {
  %present = concat(%past, %row) {axis = 1}
  %axis = constant() {value = i64[1] (1)}: i64[1]
  %y = reduce_sum(%present, %axis) {keepdims = 0}
  return %y, %present
}
'''
        rows = np.arange(36, dtype=np.float32).reshape(6, 2, 1, 3)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.txt")
            with open(path, "w") as file:
                file.write(text)
            model = berth.load(path, states=["past=present"])
            self.assertEqual([port.name for port in model.outputs], ["y"])
            self.assertIsNone(model.state("past"))
            for count in (6, 2):
                model.reset()
                for i in range(count):
                    np.testing.assert_array_equal(model(row=rows[i]), rows[:i + 1].sum(0)[:, 0])
                    self.assertEqual(model.copied_bytes, 0)
                np.testing.assert_array_equal(model.state("past"), np.concatenate(rows[:count], 1))
            whole = np.concatenate(rows[:3], 1)
            np.testing.assert_array_equal(model.run({"past": whole, "row": rows[3]})["y"], rows[:4].sum(0)[:, 0])
            self.assertEqual(model.copied_bytes, whole.nbytes)
            with Fails(self, "NOT_FOUND", "row"):
                model.state("row")
            with Fails(self, "INVALID_ARGUMENT", "row"):
                model.run({"past": whole})

    def test_two_devices(self):
        if "opencl:0" not in [device.device for device in berth.devices()]:
            self.skipTest("no OpenCL device")
        images, labels = digits()
        model = berth.load(DIGITS, target="cpu,opencl", pins=["op:Conv=opencl:0"], dims={"batch": 8})
        placed = {p.op: p.device for p in model.program().placements}
        self.assertEqual((placed["Conv"], placed["Softmax"]), ("opencl:0", "cpu:0"))
        np.testing.assert_allclose(model(images[:8]), berth.load(DIGITS)(images[:8]), rtol=1e-3, atol=1e-5)


if __name__ == "__main__":
    unittest.main()
