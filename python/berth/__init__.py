"""Berth: runs ONNX models across the devices of a machine.

>>> import berth
>>> model = berth.load("digits.onnx", target="cpu")     # doctest: +SKIP
>>> scores = model(image)                               # doctest: +SKIP

`berth.load` takes models and programs; `berth.Compiler`, `berth.Program` and `berth.Session` are the steps one by one;
`berth.Runner` is for many runs at the same time;
`berth.onnxruntime` has the names that applications of ONNX Runtime use.
"""

from ._arrays import Port
from ._model import Model, load
from ._native import BerthError
from ._native import run as _run
from ._plan import Comparison, plan
from ._plan_records import Copy, LibraryChoice, Memory, Operation, Pool, PooledValue, Rejection, Transfer
from ._program import (Compiler, Device, Driver, ModelInfo, Placement, Plan, PlanInUse, Program, Session, Step, ValueMemory,
                       cache_folder, devices, drivers, load_driver)
from ._runner import Request, Runner

__version__ = _run.berth_version().decode()
__all__ = ["BerthError", "Comparison", "Compiler", "Copy", "Device", "Driver", "LibraryChoice", "Memory", "Model",
           "ModelInfo", "Operation", "Placement", "Plan", "PlanInUse", "Pool", "PooledValue", "Port", "Program", "Rejection",
           "Request", "Runner", "Session", "Step", "Transfer", "ValueMemory", "cache_folder", "devices", "drivers", "load", "load_driver",
           "plan"]
