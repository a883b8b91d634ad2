"""How long plans of large modules for many devices take: a generated model of cheap operations, each with operands
from the last 64 values, spread over GPUs by pins on the last two digits of their numbers, planned and
simulated (`berth simulate`: import, placement by the rules, copies, memory, queues, events, a line per step).

  python3 bench/scale.py                        # 100,000 operations on 64 and on 128 devices
  python3 bench/scale.py --operations 10000 --devices 64 1000
"""
import argparse
import json
import os
import random
import resource
import subprocess
import tempfile

import onnx
from onnx import TensorProto, helper


def write_model(path, operations):
    random.seed(1)
    nodes, names = [], ["x"]
    for i in range(operations):
        one = random.random() < 0.4
        kind = random.choice(["Relu", "Sigmoid", "Tanh", "Abs", "Neg"] if one else ["Add", "Mul", "Sub", "Max"])
        operands = [names[max(0, len(names) - 1 - random.randrange(64))] for _ in range(1 if one else 2)]
        names.append(f"v{i}")
        nodes.append(helper.make_node(kind, operands, [names[-1]], name=f"n{i}"))
    value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [64, 64])
    graph = helper.make_graph(nodes, "scale", [value("x")], [value(names[-1])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def write_machine(path, devices):
    gpus = devices - 1
    listed = [{"name": "host", "target": {"kind": "cpu"}}]
    listed += [{"name": f"d{i}", "target": {"kind": "opencl"}} for i in range(gpus)]
    pins = [{"match": f"n*{i:02}", "device": f"d{i * gpus // 100}"} for i in range(100)]
    with open(path, "w") as file:
        json.dump({"kind": "multi", "devices": listed, "host": "host", "pins": pins}, file)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--berth", default="build/release/berth")
    parser.add_argument("--operations", type=int, default=100000)
    parser.add_argument("--devices", type=int, nargs="+", default=[64, 128])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model, machine = os.path.join(folder, "model.onnx"), os.path.join(folder, "machine.json")
        write_model(model, options.operations)
        for devices in options.devices:
            write_machine(machine, devices)
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([options.berth, "simulate", model, "--target", machine, "--costs", "none", "--quiet"],
                           check=True, stdout=subprocess.DEVNULL)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            print(f"{options.operations} operations on {devices} devices: {seconds:.1f} s of processor time, "
                  f"at most {after.ru_maxrss / 1024:.0f} MiB so far")


if __name__ == "__main__":
    main()
