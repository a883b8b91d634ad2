"""The type stubs: the same names and arguments as the package itself (stubtest), and of use to a type checker (mypy)."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest

PACKAGE = os.path.abspath("python")
# Lines with "wrong" are errors, the others are none.
USE = '''
import berth
import berth.onnxruntime as onnxruntime
import numpy as np

model = berth.load("m.onnx", target="cpu", dims={"batch": 1})
result: float = model.run({"image": np.zeros(3)})["scores"]
program = model.program()
names: list[str] = [port.name for port in program.inputs]
session = program.session(threads=1)
session.input(0)[...] = 1
with program.runner(at_once=2) as runner:
    first: float = runner.submit([np.zeros(3)], timeout=1.5).result(timeout=2)[0].max()
reason: str = program.with_fallbacks(program).session(message=print).plan.reason
total = sum(step.duration for step in session.steps) + 0.5
try:
    picture: str = berth.plan("m.onnx", pins=["*=cpu:0"])._repr_svg_()
except berth.BerthError as error:
    code: str = error.code
outputs = onnxruntime.InferenceSession("m.onnx", providers=["CPUExecutionProvider"]).run(None, {"x": np.zeros(3)})
wrong1: int = program.name
wrong2 = berth.load()
wrong3 = session.run(timeout="soon")
wrong6 = runner.submit([], timeout="soon")
wrong4 = model.no_such_name
wrong5: str = berth.devices()[0].memory_bytes
'''


def environment():
    return dict(os.environ, MYPYPATH=PACKAGE, PYTHONPATH=PACKAGE)


@unittest.skipUnless(shutil.which("stubtest") and shutil.which("mypy"), "mypy is not here (Debian package mypy)")
class Types(unittest.TestCase):
    def check(self, *command):
        with tempfile.TemporaryDirectory() as cache:
            return subprocess.run(command, cwd=cache, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True)

    def test_stubs_are_as_the_package(self):
        done = self.check("stubtest", "berth", "--allowlist", os.path.abspath("tests/python/stubs_allowed.txt"),
                          "--ignore-unused-allowlist")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("no issues found", done.stdout)

    def test_use(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "use.py")
            with open(path, "w", encoding="utf-8") as file:
                file.write(USE)
            done = self.check("mypy", "--strict", path)
        errors = {int(line) for line in re.findall(r"use\.py:(\d+): error", done.stdout)}
        wrong = {number for number, line in enumerate(USE.split("\n"), 1) if line.startswith("wrong")}
        self.assertEqual(errors, wrong, done.stdout)


if __name__ == "__main__":
    unittest.main()
