"""Requests in flight (berth.Runner), and plans for when a device is not here or lost, from Python."""

import asyncio
import concurrent.futures
import gc
import os
import subprocess
import sys
import tempfile
import threading
import unittest
import weakref

import numpy as np

import berth
from test_berth import DIGITS, Fails as fails, digits

BUILD = os.environ["BERTH_LIBRARY_DIR"]


def program(target="cpu", batch=1):
    return berth.load(DIGITS, target=target, dims={"batch": batch}).program()


class Blocked:
    """A runner whose one thread is held up, in the callback of a request, until the block ends."""

    def __init__(self, **settings):
        self.runner = program().runner(at_once=1, **settings)
        self.go, self.inside = threading.Event(), threading.Event()

    def __enter__(self):
        images, _ = digits()
        self.runner.submit([images[:1]], done=self._hold)
        self.inside.wait(60)
        return self.runner

    def _hold(self, _):
        self.inside.set()
        self.go.wait(60)

    def __exit__(self, *_):
        self.go.set()
        self.runner.close()


class Runners(unittest.TestCase):
    def test_results(self):
        images, labels = digits()
        with program().runner(at_once=3, threads=1) as runner:
            requests = [runner.submit([images[i:i + 1]]) for i in range(100)]
            found = [int(request.result(60)[0].argmax()) for request in requests]
            expected = berth.load(DIGITS, target="cpu")(images[:100]).argmax(axis=1).tolist()
            self.assertEqual(found, expected)
            self.assertGreater(sum(int(a == b) for a, b in zip(found, labels)), 90)
            self.assertEqual(len(runner.map([[images[i:i + 1]] for i in range(5)])), 5)
            self.assertEqual(tuple(runner.plan), (0, ""))

    def test_they_are_futures(self):
        images, _ = digits()
        with program().runner() as runner:
            done, waiting = concurrent.futures.wait([runner.submit([images[:1]]) for _ in range(8)], 60)
            self.assertEqual((len(done), len(waiting)), (8, 0))

            async def run():
                return await asyncio.wrap_future(runner.submit([images[:1]]))

            self.assertEqual(asyncio.run(run())[0].shape, (1, 10))
            called = threading.Event()
            runner.submit([images[:1]]).add_done_callback(lambda request: called.set())
            self.assertTrue(called.wait(60))

    def test_outputs_of_the_caller(self):
        images, _ = digits()
        out = np.zeros((1, 10), np.float32)
        with program().runner() as runner:
            [result] = runner.submit([images[:1]], out=[out]).result(60)
            self.assertIs(result, out)
            self.assertAlmostEqual(float(out.sum()), 1, 4)
            with fails(self, "INVALID_ARGUMENT", "float32"):
                runner.submit([images[:1]], out=[np.zeros((1, 10))])
            with fails(self, "INCOMPATIBLE", "image"):
                runner.submit([images[:2]])
            with fails(self, "INVALID_ARGUMENT"):
                runner.submit([])

    def test_cancel_and_limits(self):
        images, _ = digits()
        blocked = Blocked()
        with blocked as runner:
            late = runner.submit([images[:1]], timeout=0.001)
            waiting = runner.submit([images[:1]])
            self.assertTrue(waiting.cancel())
            self.assertTrue(waiting.cancelled())
            with self.assertRaises(concurrent.futures.CancelledError):
                waiting.result(60)
            with self.assertRaises(concurrent.futures.TimeoutError):
                late.result(0.05)
            blocked.go.set()  # closing the runner before it has its turn would cancel it
            self.assertEqual(late.exception(60).code, "DEADLINE_EXCEEDED")
        self.assertFalse(late.cancel())

    def test_a_queue_that_is_full(self):
        images, _ = digits()
        with Blocked(most_waiting=1) as runner:
            with fails(self, "OUT_OF_RANGE"):
                for _ in range(3):
                    runner.submit([images[:1]])

    def test_closing(self):
        images, _ = digits()
        with Blocked() as runner:
            requests = [runner.submit([images[:1]]) for _ in range(5)]
            closer = threading.Thread(target=runner.close)
            closer.start()
            concurrent.futures.wait(requests, 60)
            self.assertTrue(all(request.cancelled() for request in requests))
            self.assertTrue(closer.is_alive())  # waits for the one that is held up
        closer.join()
        with fails(self, "FAILED_PRECONDITION", "closed"):
            runner.submit([images[:1]])
        runner.close()
        # One that nobody holds any more ends its requests, then goes: from whatever thread.
        runner = program().runner(at_once=1)
        gone, request = weakref.ref(runner), runner.submit([images[:1]])
        del runner
        self.assertEqual(request.result(60)[0].shape, (1, 10))
        for _ in range(200):
            gc.collect()
            if gone() is None:
                break
            threading.Event().wait(0.01)
        self.assertIsNone(gone())

    def test_many_threads(self):
        images, _ = digits()
        expected = berth.load(DIGITS, target="cpu")(images[:8])
        wrong = []

        def use(runner, which):
            for _ in range(30):
                [scores] = runner.submit([images[which:which + 1]]).result(60)
                if not np.allclose(scores[0], expected[which], atol=1e-6):
                    wrong.append(which)

        with program().runner(at_once=2) as runner:
            threads = [threading.Thread(target=use, args=(runner, i)) for i in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(wrong, [])


# In a process of its own, since a driver stays loaded: the device is not there, or is lost after some runs.
USE = '''
import sys, warnings
import numpy as np
import berth
berth.load_driver(sys.argv[1])
images = np.load("examples/digits/test_images.npy")
program = berth.Program.open(sys.argv[2])
expected = program.fallbacks[0].session().run([images[:1]])[0]
said = []
session = program.session(message=said.append)
for _ in range(8):
    assert np.allclose(session.run([images[:1]])[0], expected, atol=1e-5)
assert session.plan.number == 1 and "a fault of the test" in session.plan.reason, session.plan
assert len(said) == 1 and "fallback 1" in said[0] and session.plan.reason in said[0], said
del session  # faults are counted from the first open device on
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    with program.runner(at_once=2) as runner:
        for [scores] in runner.map([[images[:1]]] * 40):
            assert np.allclose(scores, expected, atol=1e-5)
        plan = runner.plan
assert plan.number == 1, plan
assert [w.category for w in caught] == [RuntimeWarning], caught
try:
    session = program.session(fallbacks=False)
    for _ in range(30):
        session.run([images[:1]])
except berth.BerthError as error:
    assert error.code == "UNAVAILABLE", error
else:
    raise AssertionError("no error")
print("ok")
'''


class Fallbacks(unittest.TestCase):
    def use(self, fault, value):
        driver = os.path.join(BUILD, "tests", "flaky_opencl.so")
        if not os.path.exists(driver) or not any(d.device == "opencl:0" for d in berth.devices()):
            self.skipTest("no opencl device, or no driver with faults")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "digits.berth")
            model = berth.load(DIGITS, target="cpu,opencl", dims={"batch": 1}, pins=["op:Conv=opencl:0"], fallbacks=["cpu"])
            model.program().save(path)
            done = subprocess.run([sys.executable, "-c", USE, driver, path], env=dict(os.environ, **{fault: value}),
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, "ok\n"), done.stderr)

    def test_a_device_that_is_not_here(self):
        self.use("FLAKY_ABSENT", "1")

    def test_a_device_that_is_lost(self):
        self.use("FLAKY_LOSE_AFTER", "7")

    def test_programs(self):
        first, second = program("cpu"), program("cpu")
        both = first.with_fallbacks(second, second)
        del first, second
        self.assertEqual(len(both.fallbacks), 2)
        fallback = both.fallbacks[1]
        del both
        self.assertEqual(fallback.session().run([digits()[0][:1]])[0].shape, (1, 10))
        with fails(self, "INVALID_ARGUMENT", "inputs[0]"):
            fallback.with_fallbacks(program(batch=2))


if __name__ == "__main__":
    unittest.main()
