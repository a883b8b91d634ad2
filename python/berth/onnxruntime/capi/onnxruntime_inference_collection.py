"""Sessions and values."""

from berth.onnxruntime import InferenceSession, IOBinding, OrtDevice, OrtValue
from berth.onnxruntime._session import Session

__all__ = ["InferenceSession", "IOBinding", "OrtDevice", "OrtValue", "Session"]
