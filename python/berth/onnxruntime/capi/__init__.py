"""Where applications import exceptions and classes of ONNX Runtime's from."""
