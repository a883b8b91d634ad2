"""Exceptions, options and values."""

from berth.onnxruntime import (DeviceReset, EngineError, EPFail, ExecutionMode, ExecutionOrder, Fail, GraphOptimizationLevel,
                               InvalidArgument, InvalidGraph, InvalidProtobuf, ModelLoadCanceled, ModelLoaded, ModelMetadata,
                               ModelRequiresCompilation, NodeArg, NoModel, NoSuchFile, NotFound, NotImplemented, OrtAllocatorType,
                               OrtArenaCfg, OrtDevice, OrtMemoryInfo, OrtMemType, OrtSparseFormat, OrtValue, OrtValueVector, RunOptions, RuntimeException, SessionOptions, get_all_providers,
                               get_available_providers, get_build_info, get_device, get_version_string,
                               set_default_logger_severity, set_default_logger_verbosity)

__all__ = ["DeviceReset", "EngineError", "EPFail", "ExecutionMode", "ExecutionOrder", "Fail", "GraphOptimizationLevel",
           "InvalidArgument", "InvalidGraph", "InvalidProtobuf", "ModelLoadCanceled", "ModelLoaded", "ModelMetadata",
           "ModelRequiresCompilation", "NodeArg", "NoModel", "NoSuchFile", "NotFound", "NotImplemented", "OrtAllocatorType",
           "OrtArenaCfg", "OrtDevice", "OrtMemoryInfo", "OrtMemType", "OrtSparseFormat", "OrtValue", "OrtValueVector", "RunOptions", "RuntimeException", "SessionOptions", "get_all_providers", "get_available_providers", "get_build_info",
           "get_device", "get_version_string", "set_default_logger_severity", "set_default_logger_verbosity"]
