"""Names of ONNX Runtime's API that few applications use: values beside tensors, descriptions of memory, settings of the
process. What Berth has nothing for is an error that says so when it is used, not when it is imported."""

import enum

import numpy as np

from ._errors import NO_ADAPTERS, LibraryFailed, NotHere
from ._options import checked
from ._values import OrtDevice, OrtValue, type_name, onnx_type


class OrtAllocatorType(enum.IntEnum):
    INVALID = -1
    ORT_DEVICE_ALLOCATOR = 0
    ORT_ARENA_ALLOCATOR = 1


class OrtMemType(enum.IntEnum):
    CPU_INPUT = -2
    CPU_OUTPUT = -1
    CPU = -1
    DEFAULT = 0


class OrtDeviceMemoryType(enum.IntEnum):
    DEFAULT = 0
    HOST_ACCESSIBLE = 5


class OrtSparseFormat(enum.IntEnum):
    ORT_SPARSE_UNDEFINED = 0
    ORT_SPARSE_COO = 1
    ORT_SPARSE_CSRC = 2
    ORT_SPARSE_BLOCK_SPARSE = 4


class OrtMemoryInfo:
    """Where values are: the host, whatever is asked for."""

    def __init__(self, name, allocator_type, device_id, mem_type):
        self.name = checked("name", name, str)
        self.allocator_type = checked("allocator_type", allocator_type, OrtAllocatorType)
        self.device_id = checked("device_id", device_id, int)
        self.mem_type = checked("mem_type", mem_type, OrtMemType)
        self.device_mem_type = OrtDeviceMemoryType.DEFAULT
        self.device_vendor_id = 0


def host_memory():
    return OrtMemoryInfo("Cpu", OrtAllocatorType.ORT_DEVICE_ALLOCATOR, 0, OrtMemType.DEFAULT)


class OrtArenaCfg:
    """Sizes of an arena, which Berth does not have: it plans a program's memory before it runs."""

    def __init__(self, *sizes, **named):
        names = ("max_mem", "arena_extend_strategy", "initial_chunk_size_bytes", "max_dead_bytes_per_chunk")
        (given,) = sizes if len(sizes) == 1 and isinstance(sizes[0], dict) else ({**dict(zip(names, sizes)), **named},)
        for name in (*names, "initial_growth_chunk_size_bytes", "max_power_of_two_extend_bytes"):
            setattr(self, name, given.get(name, 0 if name == "max_mem" else -1))


class SparseTensor:
    """A tensor of a few values in host memory. Programs take none: OrtValue.as_sparse_tensor is never there."""

    class _View:
        def __init__(self, **parts):
            for name, part in parts.items():
                setattr(self, name, lambda part=part: part)

    def __init__(self, kind, dense_shape, values, **parts):
        self._kind, self._shape, self._values, self._parts = kind, list(dense_shape), np.asarray(values), parts

    @classmethod
    def sparse_coo_from_numpy(cls, dense_shape, values, coo_indices, ort_device):
        checked("ort_device", ort_device, OrtDevice)
        return cls(OrtSparseFormat.ORT_SPARSE_COO, dense_shape, values, indices=np.asarray(coo_indices, np.int64))

    @classmethod
    def sparse_csr_from_numpy(cls, dense_shape, values, inner_indices, outer_indices, ort_device):
        checked("ort_device", ort_device, OrtDevice)
        return cls(OrtSparseFormat.ORT_SPARSE_CSRC, dense_shape, values, inner=np.asarray(inner_indices, np.int64),
                   outer=np.asarray(outer_indices, np.int64))

    def _view(self, kind):
        if self._kind != kind:
            raise NotHere(f"a sparse tensor of {self._kind.name}, not {kind.name}")
        return self._View(**self._parts)

    def as_coo_view(self):
        return self._view(OrtSparseFormat.ORT_SPARSE_COO)

    def as_csrc_view(self):
        return self._view(OrtSparseFormat.ORT_SPARSE_CSRC)

    def as_blocksparse_view(self):
        return self._view(OrtSparseFormat.ORT_SPARSE_BLOCK_SPARSE)

    def to_cuda(self, ort_device):
        raise NotHere("sparse tensors are in host memory here, and no program takes one: make the dense array")

    def values(self):
        return self._values

    def dense_shape(self):
        return list(self._shape)

    def format(self):
        return self._kind

    def data_type(self):
        return f"sparse_{type_name(onnx_type(self._values.dtype))}"

    def device_name(self):
        return "cpu"


class OrtValueVector(list):
    """Of run_with_ortvaluevector: a list of OrtValues."""

    push_back = list.append

    def reserve(self, count):
        pass

    def shrink_to_fit(self):
        pass


class LoraAdapter:
    def Load(self, path):
        raise NotHere(f"{path}: {NO_ADAPTERS}")


class AdapterFormat:
    @staticmethod
    def read_adapter(path):
        raise NotHere(f"{path}: {NO_ADAPTERS}")


class OrtCompileApiFlags(enum.IntFlag):
    NONE = 0
    ERROR_IF_NO_NODES_COMPILED = 1
    ERROR_IF_OUTPUT_FILE_EXISTS = 2


class ModelCompiler:
    def __init__(self, sess_options, input_model_path_or_bytes, *_arguments, **_others):
        raise NotHere("compiled models in ONNX files; berth.load(path).program().save(file) writes one of Berth's")


def copy_tensors(src, dst, stream=None):
    """Copies values into others of their shapes."""
    if len(src) != len(dst):
        raise NotHere(f"{len(src)} values to copy to {len(dst)}")
    for one, other in zip(src, dst):
        other.update_inplace(one.numpy())


def get_ep_devices():
    """None: which devices there are, berth.devices() says."""
    return []


def register_execution_provider_library(registration_name, library_path):
    raise LibraryFailed(f"execution providers of ONNX Runtime's ({library_path}); Berth's drivers: berth.load_driver")


def unregister_execution_provider_library(registration_name):
    raise LibraryFailed(f'no library was registered as "{registration_name}"')


def create_and_register_allocator(mem_info, arena_cfg=None):
    """Nothing: memory is planned for each program."""
    checked("mem_info", mem_info, OrtMemoryInfo)


def set_global_thread_pool_sizes(intra_op_num_threads=0, inter_op_num_threads=0):
    """Nothing: SessionOptions.intra_op_num_threads is what counts."""
    checked("intra_op_num_threads", intra_op_num_threads, int)
    checked("inter_op_num_threads", inter_op_num_threads, int)


def _severity(severity):
    if not 0 <= checked("severity", severity, int) <= 4:
        raise NotHere(f"severity {severity}: 0 to 4")


def set_default_logger_severity(severity):
    """Nothing: Berth logs nothing by itself."""
    _severity(severity)


def set_default_logger_callback(callback, severity=2):
    """Nothing: Berth logs nothing by itself."""
    _severity(severity)


def set_default_logger_verbosity(level):
    """Nothing: Berth logs nothing by itself."""
    checked("level", level, int)


def set_seed(seed):
    """Nothing: random numbers of models come from their own seeds."""
    checked("seed", seed, int)


def has_collective_ops():
    return False
