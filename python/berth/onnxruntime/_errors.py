"""The exceptions of ONNX Runtime's API."""


class Fail(Exception):
    """What could not be done; `code` is Berth's."""

    def __init__(self, error):
        super().__init__(str(error))
        self.code = getattr(error, "code", "INVALID_ARGUMENT")


class InvalidArgument(Fail):
    pass


class MissingInput(InvalidArgument, ValueError):
    """ONNX Runtime's own is a ValueError."""


class NoSuchFile(Fail):
    pass


class InvalidProtobuf(Fail):
    pass


class InvalidGraph(Fail):
    pass


class NotImplemented(Fail):  # its name there
    pass


# Those that Berth never raises, for applications that name them in `except`.
class NoModel(Fail):
    pass


class EngineError(Fail):
    pass


class RuntimeException(Fail):
    pass


class ModelLoaded(Fail):
    pass


class EPFail(Fail):
    pass


class NotFound(Fail):
    pass


class ModelLoadCanceled(Fail):
    pass


class ModelRequiresCompilation(Fail):
    pass


class DeviceReset(Fail):
    pass


def of(error):
    """The exception for a BerthError."""
    kinds = {"INVALID_ARGUMENT": InvalidArgument, "INCOMPATIBLE": InvalidArgument, "OUT_OF_RANGE": InvalidArgument,
             "NOT_FOUND": NoSuchFile, "UNSUPPORTED": NotImplemented}
    return kinds.get(error.code, Fail)(error)
