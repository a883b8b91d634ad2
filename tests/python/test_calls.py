"""Calls of a model that needs no conversion of its arrays take a short way (berth._prepared): it is taken where it may be, gives what
the long way gives, and its errors are the same."""

import os
import tempfile
import threading
import unittest
import unittest.mock

import numpy as np

import berth
import berth.onnxruntime as onnxruntime

DIGITS = "examples/digits/digits.onnx"


def images():
    return np.load("examples/digits/test_images.npy")


class ShortWay:
    """Counts the runs that went the short way."""

    def __enter__(self):
        self.taken = 0
        self._original = berth.Session._run_prepared

        def counted(session, arrays):
            results = self._original(session, arrays)
            self.taken += results is not None
            return results

        berth.Session._run_prepared = counted
        return self

    def __exit__(self, *_):
        berth.Session._run_prepared = self._original


class DynamicShortWay:
    """The same of models that run by parts."""

    def __enter__(self):
        self.taken = 0
        original = berth._prepared.PreparedDynamic.run

        def counted(prepared, *arguments):
            results = original(prepared, *arguments)
            self.taken += results is not None
            return results

        self._patch = unittest.mock.patch.object(berth._prepared.PreparedDynamic, "run", counted)
        self._patch.__enter__()
        return self

    def __exit__(self, *error):
        return self._patch.__exit__(*error)


class DynamicCalls(unittest.TestCase):
    # Doubled in each round. Small and large results, and a scalar; no program can be made of it.
    TEXT = b"""module "m"
graph @main(%n: i64[], %x: f32[N]) {
  %y, %rows = loop(%n, _, %x) (%i: i64[], %go: bool[], %c: f32[N]) {
    %d = add(%c, %c)
    return %go, %d, %d
  }
  %s = reduce_sum(%rows) {keepdims = 0}
  return %s, %y, %rows
}
"""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "m.txt")
        with open(self.path, "wb") as file:
            file.write(self.TEXT)

    def check(self, results, n, x):
        total, last, rows = results
        wanted = np.stack([x * np.float32(2 ** (i + 1)) for i in range(n)])
        np.testing.assert_array_equal(rows, wanted)
        np.testing.assert_array_equal(last, wanted[-1])
        np.testing.assert_allclose(total, wanted.sum(), rtol=1e-5)
        self.assertEqual(total.shape, ())

    def test_shapes_change_and_results_stay(self):
        model = berth.load(self.path)
        x = {length: np.arange(1, length + 1, dtype=np.float32) for length in (3, 8, 5000)}
        model(np.array(2), x[3])
        with DynamicShortWay() as way:
            cases = [(2, 3), (2, 5000), (1, 3), (3, 5000), (3, 8), (2, 3), (2, 3)]
            results = [model(np.array(n), x[length]) for n, length in cases]
            self.assertEqual(way.taken, len(cases))
            named = [model.run({"x": x[length], "n": np.array(n)}) for n, length in cases]
            self.assertEqual(way.taken, 2 * len(cases))
        for (n, length), result, by_name in zip(cases, results, named):
            self.check(result, n, x[length])  # each is still its own call's
            self.check(by_name.values(), n, x[length])

    def test_arrays_that_need_a_conversion(self):
        model, x = berth.load(self.path), np.arange(1, 7, dtype=np.float32)
        model(np.array(2), x)
        read_only = x.copy()
        read_only.flags.writeable = False
        with DynamicShortWay() as way:
            for n, array in ((2, x), (np.array(2), np.repeat(x, 2)[::2]), (np.array(2), read_only), (np.array(2), x.tolist())):
                self.check(model(n, array), 2, x)
            for wrong in (x.astype(np.float64), x.astype(">f4"), x.reshape(2, 3)):
                with self.assertRaises(berth.BerthError) as caught:
                    model(np.array(2), wrong)
                self.assertIn('"x"', caught.exception.message)
            with self.assertRaisesRegex(berth.BerthError, "missing"):
                model(np.array(2))
            self.assertEqual(way.taken, 3)  # by what the model made of them; not the array that is read-only
            self.check(model(np.array(2), x), 2, x)
            self.assertEqual(way.taken, 4)

    def test_a_shape_with_its_own_program_keeps_it(self):
        model, data = berth.load(DIGITS, cache_folder=None), images()
        expected = model(data[:1])
        model(data[:3])
        model(data[:4])
        with ShortWay() as own, DynamicShortWay() as shared:
            np.testing.assert_array_equal(model(data[:1]), expected)
            self.assertEqual((own.taken, shared.taken), (1, 0))
            model(data[:4])
            model(data[:4])
            self.assertEqual((own.taken, shared.taken), (1, 2))


class Calls(unittest.TestCase):
    def test_names_of_element_types_are_asked_for_once(self):
        model, data = berth.load(DIGITS, dims={"batch": (2, 5)}), images()
        wanted = model(data[:2])
        with unittest.mock.patch.object(berth._native.run, "berth_dtype_name", side_effect=AssertionError("asked again")):
            np.testing.assert_array_equal(model(data[:2]), wanted)
            self.assertEqual(len(model(data[:5])), 5)

    def test_each_call_has_its_own_results(self):
        model, data = berth.load(DIGITS), images()
        labels = np.load("examples/digits/test_labels.npy")
        with ShortWay() as way:
            results = [model(data[i:i + 1]) for i in range(20)]
            named = [model.run({"image": data[i:i + 1]})["probabilities"] for i in range(20)]
        self.assertEqual(way.taken, 40)
        batch = model(data[:20])
        for i in range(20):
            np.testing.assert_allclose(results[i][0], batch[i], rtol=1e-5, atol=1e-7)
            np.testing.assert_array_equal(results[i], named[i])
        self.assertGreater(sum(int(result.argmax()) == label for result, label in zip(results, labels)), 17)

    def test_arrays_that_need_a_conversion(self):
        model, data = berth.load(DIGITS), images()
        expected = model(data[:1])
        read_only = data[:1].copy()
        read_only.flags.writeable = False
        turned = np.ascontiguousarray(data[:1].transpose(3, 2, 1, 0)).transpose(3, 2, 1, 0)
        self.assertFalse(turned.flags.c_contiguous)
        for array in (read_only, turned, data[:1].tolist()):
            np.testing.assert_array_equal(model(array), expected)
        with ShortWay() as way:
            for wrong in (data[:1].astype(np.float64), data[:1].astype(">f4"), data[:1].reshape(1, 8, 8)):
                with self.assertRaises(berth.BerthError) as caught:
                    model(wrong)
                self.assertIn("image", caught.exception.message)
            np.testing.assert_array_equal(model(image=data[:1]), expected)
            self.assertEqual(way.taken, 1)  # of the array that is named: by the session, when the model has found it

    def test_shapes_in_turns(self):
        model, data = berth.load(DIGITS, max_shapes=2), images()
        expected = {n: model(data[:n]) for n in (1, 2)}
        for n in (1, 2, 2, 1, 1, 2):
            np.testing.assert_array_equal(model(data[:n]), expected[n])
        model(data[:3])  # takes the place of 1, which is longest ago
        compiled = []
        model = berth.load(DIGITS, max_shapes=2, progress=lambda what, done, total: compiled.append(what))
        for n in (1, 2, 1, 1, 1, 3):
            model(data[:n])
        del compiled[:]
        model(data[:1])
        self.assertEqual(compiled, [])  # it was used later than 2
        model(data[:2])
        self.assertNotEqual(compiled, [])

    def test_cancelled(self):
        model, data = berth.load(DIGITS), images()
        expected = model(data[:1])
        model.last_session.cancel()
        with ShortWay() as way:
            with self.assertRaises(berth.BerthError) as caught:
                model(data[:1])
            self.assertEqual(caught.exception.code, "CANCELLED")
            np.testing.assert_array_equal(model(data[:1]), expected)
            self.assertEqual(way.taken, 1)

    def test_threads(self):
        model, data = berth.load(DIGITS, threads=1), images()
        expected = [model(data[i:i + 1]) for i in range(8)]
        wrong = []

        def work(i):
            for k in range(200):
                if not np.array_equal(model(data[i:i + 1]), expected[i]):
                    wrong.append((i, k))

        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_session(self):
        data = images()
        session = berth.load(DIGITS, dims={"batch": 1}).program().session(threads=1)
        own = np.empty((1, 10), np.float32)
        session.run([data[:1]], out=[own])
        with ShortWay() as way:
            [scores] = session.run([data[:1]])
        self.assertEqual(way.taken, 1)
        np.testing.assert_array_equal(scores, own)
        for wrong in ([], [data[:1], data[:1]], [data[:2]]):
            with self.assertRaises(berth.BerthError):
                session.run(wrong)


class InferenceSessions(unittest.TestCase):
    def test_names(self):
        session, data = onnxruntime.InferenceSession(DIGITS), images()
        [expected] = session.run(None, {"image": data[:1]})
        with ShortWay() as way:
            for names in (None, [], ["probabilities"], ["probabilities", "probabilities"]):
                results = session.run(names, {"image": data[:1]})
                self.assertEqual(len(results), len(names or [1]))
                for result in results:
                    np.testing.assert_array_equal(result, expected)
            self.assertEqual(way.taken, 4)
            for names, feed in ((["scores"], {"image": data[:1]}), (None, {}), (None, {"picture": data[:1]}),
                                (None, {"image": data[:1], "picture": data[:1]})):
                with self.assertRaises((onnxruntime.capi.onnxruntime_pybind11_state.InvalidArgument, ValueError)):
                    session.run(names, feed)
            self.assertEqual(way.taken, 4)

    def test_other_providers(self):
        session, data = onnxruntime.InferenceSession(DIGITS), images()
        [expected] = session.run(None, {"image": data[:1]})
        session.set_providers(["CPUExecutionProvider"])
        for _ in range(2):
            np.testing.assert_array_equal(session.run(["probabilities"], {"image": data[:1]})[0], expected)


if __name__ == "__main__":
    unittest.main()
