"""Runs a program whose `import onnxruntime` gives Berth: python -m berth.onnxruntime [-t TARGET] (program.py | -m module) [arguments]"""

import os
import runpy
import sys

import berth.onnxruntime

USAGE = """usage: python -m berth.onnxruntime [-t TARGET] (PROGRAM.py | -m MODULE) [ARGUMENT...]
Runs a Python program in which `import onnxruntime` gives berth.onnxruntime; -t: on which devices (docs/target.md)"""


def main(arguments):
    if arguments[:1] == ["-t"] and len(arguments) > 2:
        berth.onnxruntime.set_default_target(arguments[1])
        arguments = arguments[2:]
    if arguments[:1] in (["-h"], ["--help"]):
        print(USAGE)
        return 0
    is_module = arguments[:1] == ["-m"]
    if is_module:
        arguments = arguments[1:]
    if not arguments or arguments[0].startswith("-"):
        print(USAGE, file=sys.stderr)
        return 2
    berth.onnxruntime.install()
    sys.argv = arguments
    if is_module:
        sys.path.insert(0, os.getcwd())
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
        runpy.run_path(arguments[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
