"""The backend of the ONNX standard: prepare(model).run(inputs), run(model, inputs)."""

import os

from berth.onnxruntime import InferenceSession, RunOptions, SessionOptions

__all__ = ["is_compatible", "prepare", "run", "supports_device"]


class BackendRep:
    """A model that is ready."""

    def __init__(self, session):
        self._session = session

    def run(self, inputs, **options):
        """`inputs`: a list in the order of the model's inputs, a dict, or the only one. Gives the list of the outputs."""
        chosen = RunOptions()
        for name, value in options.items():
            if hasattr(chosen, name):
                setattr(chosen, name, value)
        names = [node.name for node in self._session.get_inputs()]
        if isinstance(inputs, list):
            inputs = dict(zip(names, inputs))
        elif not isinstance(inputs, dict):
            if len(names) != 1:
                raise RuntimeError(f"the model has {len(names)} inputs: {', '.join(names)}")
            inputs = {names[0]: inputs}
        return self._session.run(None, inputs, chosen)


def supports_device(device):
    return device == "CPU"


def is_compatible(model, device=None, **_options):
    return device is None or supports_device(device)


def prepare(model, device=None, **options):
    """`model`: a path, bytes, an onnx.ModelProto, or an InferenceSession."""
    if isinstance(model, BackendRep):
        return model
    if not is_compatible(model, device):
        raise RuntimeError(f"Incompatible device expected '{device}', got 'CPU'")
    if not isinstance(model, InferenceSession):
        chosen = SessionOptions()
        for name, value in options.items():
            if hasattr(chosen, name):
                setattr(chosen, name, value)
        model = InferenceSession(model if isinstance(model, (str, bytes, os.PathLike)) else model.SerializeToString(), chosen)
    return BackendRep(model)


def run(model, inputs, device=None, **options):
    return prepare(model, device, **options).run(inputs)
