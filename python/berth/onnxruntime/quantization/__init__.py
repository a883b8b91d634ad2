"""Not here: ONNX Runtime's tools that quantise ONNX files. Models that they have quantised run."""

raise ImportError("berth.onnxruntime has no quantization: quantise with onnxruntime.quantization where ONNX Runtime is installed and run "
                  "the result here, or with `berth quantize`", name=__name__)
