"""Values in host memory, and the binding of a session's inputs and outputs to them."""

import ctypes
import warnings

import numpy as np

from ._errors import BadBinding, BadValue, InvalidArgument, NotHere
from ._options import checked

# Of onnx.proto's TensorProto.DataType. bf16, which NumPy lacks, is held as its bits.
_ONNX = {1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 8: "object", 9: "bool",
         10: "float16", 11: "float64", 12: "uint32", 13: "uint64", 16: "uint16"}
_ONNX_NAMES = {1: "float", 8: "string", 10: "float16", 11: "double", 16: "bfloat16"}
_BFLOAT16 = 16
# Where a result may be asked for and is in host memory all the same, as there on machines without such a device.
_ELSEWHERE = ("cann", "cuda", "dml", "gpu", "migraphx", "npu", "webgpu")


def type_name(onnx_type):
    """tensor(float) of 1"""
    return f"tensor({_ONNX_NAMES.get(onnx_type, _ONNX.get(onnx_type, onnx_type))})"


def onnx_type(dtype):
    if dtype.kind in "US":
        return 8
    for number, name in _ONNX.items():
        if np.dtype(name) == dtype:
            return number
    raise BadValue(f"an array of {dtype}, which is no type of ONNX")


def _dtype(element_type):
    """NumPy's, of one of NumPy's or a number of ONNX's."""
    if isinstance(element_type, int):
        if element_type not in _ONNX:
            raise BadValue(f"element type {element_type} of ONNX")
        return np.dtype(_ONNX[element_type])
    try:
        return np.dtype(element_type)
    except TypeError as error:
        raise BadValue(f"element type {element_type!r}") from error


def _check_device(device_type):
    if str(device_type).lower() != "cpu":
        raise NotHere(f'a value in the memory of "{device_type}": values are in host memory ("cpu"), and Berth copies them '
                       "to the devices of its plan")


def _array_at(address, shape, element_type):
    """An array over the caller's memory."""
    dtype = _dtype(element_type)
    size_bytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    if dtype == object or not size_bytes:
        return np.empty(tuple(shape), dtype)
    memory = (ctypes.c_uint8 * size_bytes).from_address(address)
    return np.frombuffer(memory, dtype).reshape(tuple(shape))


class OrtDevice:
    """The host."""

    def __init__(self, name="cpu", device_id=0):
        _check_device(checked("name", name, str))
        self._id = checked("device_id", device_id, int)

    def _get_c_device(self):
        return self

    @staticmethod
    def make(ort_device_name, device_id, vendor_id=-1):
        return OrtDevice(ort_device_name, device_id)

    @staticmethod
    def cpu():
        return 0

    @staticmethod
    def default_memory():
        return 0

    def device_id(self):
        return self._id

    def device_type(self):
        return 0

    def device_vendor_id(self):
        return 0

    def device_mem_type(self):
        return 0


class OrtValue:
    """A tensor in host memory, or what a run gave that is no tensor: a list or a dict."""

    def __init__(self, value, onnx_type=None):
        self._value = value
        self._type = onnx_type

    @classmethod
    def ortvalue_from_numpy(cls, numpy_obj, device_type="cpu", device_id=0, vendor_id=-1):
        _check_device(device_type)
        if not isinstance(numpy_obj, (np.ndarray, np.generic)) or numpy_obj.dtype.kind == "O":
            raise BadValue(f"an OrtValue of {type(numpy_obj).__name__}; NumPy arrays of numbers or texts make one")
        onnx_type(numpy_obj.dtype)
        return cls(numpy_obj)

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(cls, data, onnx_element_type):
        if _dtype(onnx_element_type).itemsize != data.dtype.itemsize:
            raise InvalidArgument(f"an array of {data.dtype} as {type_name(onnx_element_type)}")
        return cls(data.view(_dtype(onnx_element_type)), onnx_element_type)

    @classmethod
    def ortvalue_from_shape_and_type(cls, shape, element_type, device_type="cpu", device_id=0, vendor_id=-1):
        _check_device(device_type)
        if any(extent < 0 for extent in shape):
            raise BadValue(f"a value of shape {list(shape)}")
        return cls(np.zeros(tuple(shape), _dtype(element_type)), element_type if isinstance(element_type, int) else None)

    @classmethod
    def from_dlpack(cls, data):
        return cls(np.from_dlpack(data))

    def numpy(self):
        if not self.is_tensor():
            raise InvalidArgument(f"a value that is no tensor but {self.data_type()}")
        return self._value

    def to_dlpack(self):
        return self.numpy().__dlpack__()

    def data_ptr(self):
        return self.numpy().ctypes.data

    def data_type(self):
        if isinstance(self._value, (list, tuple)):
            return f"seq({OrtValue(self._value[0]).data_type()})" if self._value else "seq()"
        if isinstance(self._value, dict):
            key, value = next(iter(self._value.items()), (0, 0.0))
            return f"map({'string' if isinstance(key, str) else 'int64'},tensor({'int64' if isinstance(value, int) else 'float'}))"
        return type_name(self.element_type())

    def element_type(self):
        return self._type or onnx_type(self.numpy().dtype)

    def shape(self):
        return list(self.numpy().shape)

    def tensor_size_in_bytes(self):
        return self.numpy().nbytes

    def device_name(self):
        return "cpu"

    def has_value(self):
        return self._value is not None

    def is_tensor(self):
        return isinstance(self._value, (np.ndarray, np.generic))

    def is_sparse_tensor(self):
        return False

    def is_tensor_sequence(self):
        return isinstance(self._value, (list, tuple)) and all(isinstance(item, np.ndarray) for item in self._value)

    def update_inplace(self, data):
        place, data = self.numpy(), data.numpy() if isinstance(data, OrtValue) else data
        if data.dtype != place.dtype or data.shape != place.shape:
            raise BadValue(f"{data.dtype} {list(data.shape)} in place of {place.dtype} {list(place.shape)}")
        np.copyto(place, data)

    def as_sparse_tensor(self):
        raise BadValue("a value that is no sparse tensor")

    @staticmethod
    def ort_value_from_sparse_tensor(sparse_tensor):
        raise NotHere("no program takes sparse tensors here: give the dense array, as OrtValue.ortvalue_from_numpy has it")

    # What the values of OrtValueVector are there.
    @property
    def _ortvalue(self):
        return self

    def _get_c_value(self):
        return self

    def __array__(self, dtype=None, copy=None):
        array = self.numpy()
        return np.array(array, dtype=dtype) if copy else np.asarray(array, dtype=dtype)

    def __dlpack__(self, **keywords):
        return self.numpy().__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self.numpy().__dlpack_device__()


class IOBinding:
    """Inputs and outputs of later runs (InferenceSession.run_with_iobinding). Inputs are read when the run begins; what is
    written in place of an output is a copy of the result."""

    def __init__(self, session):
        self._session = session
        self._inputs, self._outputs, self._results = {}, {}, []

    def _check_input(self, name):
        if name not in [node.name for node in self._session.get_inputs()]:
            raise BadBinding(f'no input is named "{name}"')

    def bind_cpu_input(self, name, arr_on_cpu):
        self._check_input(name)
        if not isinstance(arr_on_cpu, np.ndarray):
            raise BadBinding(f'input "{name}" is an array, not {type(arr_on_cpu).__name__}')
        self._inputs[name] = arr_on_cpu

    def bind_input(self, name, device_type, device_id, element_type, shape, buffer_ptr):
        _check_device(device_type)
        self._check_input(name)
        self._inputs[name] = _array_at(buffer_ptr, shape, element_type)

    def bind_ortvalue_input(self, name, ortvalue):
        self._check_input(name)
        if not isinstance(ortvalue, OrtValue):
            raise AttributeError(f"input \"{name}\" is an OrtValue, not {type(ortvalue).__name__}: bind_cpu_input takes arrays")
        self._inputs[name] = ortvalue

    def bind_output(self, name, device_type="cpu", device_id=0, element_type=None, shape=None, buffer_ptr=None):
        """Without `buffer_ptr` the result of each run is a new value."""
        if buffer_ptr is not None or str(device_type).lower() not in _ELSEWHERE:
            _check_device(device_type)
        else:
            warnings.warn(f'output "{name}" is in host memory, not of "{device_type}"', RuntimeWarning, stacklevel=2)
        if name not in [node.name for node in self._session.get_outputs()]:
            raise BadBinding(f'no output is named "{name}"')
        if buffer_ptr is not None and (element_type is None or shape is None):
            raise ValueError("`element_type` and `shape` are to be provided if pre-allocated memory is provided")
        self._outputs[name] = None if buffer_ptr is None else OrtValue(_array_at(buffer_ptr, shape, element_type))

    def bind_ortvalue_output(self, name, ortvalue):
        self.bind_output(name)
        self._outputs[name] = ortvalue

    def synchronize_inputs(self):
        pass

    def synchronize_outputs(self):
        pass

    def get_outputs(self):
        return list(self._results)

    get_outputs_as_ortvaluevector = get_outputs

    def copy_outputs_to_cpu(self):
        return [value._value for value in self._results]

    def clear_binding_inputs(self):
        self._inputs.clear()

    def clear_binding_outputs(self):
        self._outputs.clear()
        self._results = []

    def _run(self, run_options):
        if not self._outputs:
            raise BadBinding("no output is bound: bind_output")
        missing = [node.name for node in self._session.get_inputs() if node.name not in self._inputs]
        if missing:
            raise BadBinding(f"inputs that are not bound: {', '.join(missing)}")
        try:
            results = self._session.run(list(self._outputs), self._inputs, run_options)
        except InvalidArgument as error:
            raise BadBinding(error) from error
        self._results = []
        for (name, bound), result in zip(self._outputs.items(), results):
            if bound is None:
                self._results.append(OrtValue(result))
                continue
            place = bound.numpy()
            if place.shape != result.shape or place.dtype != result.dtype:
                raise BadBinding(f'output "{name}" is {result.dtype} {list(result.shape)}; what is bound to it is '
                                      f"{place.dtype} {list(place.shape)}")
            np.copyto(place, result)
            self._results.append(bound)
