"""The exceptions of ONNX Runtime's API. As there, none of the first ones is another one's base, so that `except` clauses pick the same."""


class _Error(Exception):
    """What could not be done; `code` is Berth's."""

    def __init__(self, error):
        super().__init__(str(error))
        self.code = getattr(error, "code", "INVALID_ARGUMENT")


class Fail(_Error):
    pass


class InvalidArgument(_Error):
    pass


class NoSuchFile(_Error):
    pass


class InvalidProtobuf(_Error):
    pass


class InvalidGraph(_Error):
    pass


class NotImplemented(_Error):  # its name there
    pass


# Those that are several things there, depending on what was asked.
class MissingInput(InvalidArgument, ValueError):
    """An input that a run needs: a ValueError there."""


class BadBinding(InvalidArgument, RuntimeError):
    """Names and settings that are not there: a RuntimeError there."""


class UnknownOperator(NotImplemented, InvalidGraph):
    """A model with operators that are not known: InvalidGraph there, if nobody knows them."""


class NotHere(NotImplemented, RuntimeError):
    """What there is nothing for here, and memory of a device that is not there: a RuntimeError there."""


NO_ADAPTERS = ("adapters are not read here: give the adapter's tensors by name among the inputs of run (they are the model's "
               "overridable initializers), or merge them into the model")


class BadValue(InvalidArgument, RuntimeError, ValueError):
    """What no value can be made of, and what fits no binding: a RuntimeError there."""


class DoesNotFit(Fail, InvalidArgument):
    """Extents that a node finds not to fit: Fail there, from the node."""


class LibraryFailed(Fail, NotImplemented):
    """A library of ONNX Runtime's: Fail there, for one that cannot be loaded."""


# Those that Berth never raises, for applications that name them in `except`.
class NoModel(_Error):
    pass


class EngineError(_Error):
    pass


class RuntimeException(_Error):
    pass


class ModelLoaded(_Error):
    pass


class EPFail(_Error):
    pass


class NotFound(_Error):
    pass


class ModelLoadCanceled(_Error):
    pass


class ModelRequiresCompilation(_Error):
    pass


class DeviceReset(_Error):
    pass


def of(error):
    """The exception for a BerthError."""
    kinds = {"INVALID_ARGUMENT": InvalidArgument, "INCOMPATIBLE": InvalidArgument, "OUT_OF_RANGE": InvalidArgument,
             "NOT_FOUND": NoSuchFile, "UNSUPPORTED": NotImplemented}
    return kinds.get(error.code, Fail)(error)


def of_running(error):
    """The exception for a BerthError of a run: what the inputs are not is InvalidArgument, what a node finds is Fail."""
    from_node = error.code == "INCOMPATIBLE" and getattr(error, "message", "").startswith("node ")
    return DoesNotFit(error) if from_node else of(error)


def of_loading(error):
    """The exception for a BerthError about a model that is being opened."""
    return UnknownOperator(error) if error.code == "UNSUPPORTED" else of(error)
