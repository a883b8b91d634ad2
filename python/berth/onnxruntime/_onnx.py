"""What an ONNX file says of itself: who made it, its metadata, and the types of its inputs and outputs. Tensors are stepped
over, not read."""

import mmap

from ._values import type_name

# Fields of onnx.proto's ModelProto, GraphProto and StringStringEntryProto.
_PRODUCER, _PRODUCER_VERSION, _DOMAIN, _VERSION, _DOC, _GRAPH, _METADATA = 2, 3, 4, 5, 6, 7, 14
_GRAPH_NAME, _GRAPH_DOC = 2, 10
_GRAPH_INPUT, _GRAPH_OUTPUT = 11, 12
_KEY, _VALUE = 1, 2
NO_VERSION = 2**63 - 1  # what ONNX Runtime says of models without one
# Of ValueInfoProto, TypeProto and what these consist of.
_INFO_NAME, _INFO_TYPE = 1, 2
_TENSOR, _SEQUENCE, _MAP, _SPARSE, _OPTIONAL = 1, 4, 5, 8, 9
_ELEMENT, _SHAPE = 1, 2  # of tensors; the element of sequences and optional values; key and value of maps
_DIM, _DIM_VALUE, _DIM_NAME = 1, 1, 2


class _Damaged(ValueError):
    pass


def _varint(data, at, end):
    value = shift = 0
    while at < end and shift < 64:
        byte = data[at]
        at += 1
        value |= (byte & 0x7f) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise _Damaged


def _fields(data, at, end):
    """(field, value) of a message: ints of varints, (begin, end) of what has a length."""
    while at < end:
        tag, at = _varint(data, at, end)
        field, wire = tag >> 3, tag & 7
        if wire == 0:
            value, at = _varint(data, at, end)
            yield field, value
        elif wire == 2:
            length, at = _varint(data, at, end)
            if length > end - at:
                raise _Damaged
            yield field, (at, at + length)
            at += length
        elif wire in (1, 5):
            at += 8 if wire == 1 else 4
        else:
            raise _Damaged


def _text(data, span):
    return bytes(data[span[0]:span[1]]).decode("utf-8", "replace")


def _texts(data, span, wanted):
    """{name: text} of a message's text fields; `wanted`: {field: name}."""
    found = {}
    for field, value in _fields(data, *span):
        if field in wanted and isinstance(value, tuple):
            found[wanted[field]] = _text(data, value)
    return found


def _dims(data, span):
    dims = []
    for field, dim in _fields(data, *span):
        if field == _DIM:
            extent = None
            for what, value in _fields(data, *dim):
                extent = value if what == _DIM_VALUE else _text(data, value) or None if what == _DIM_NAME else extent
            dims.append(None if isinstance(extent, int) and extent >= 2**63 else extent)  # negative: not known
    return dims


def _type(data, span):
    """("tensor(float)", [1, "n", None]); without a shape None."""
    for kind, value in _fields(data, *span):
        parts = dict(_fields(data, *value)) if isinstance(value, tuple) else {}
        if kind in (_TENSOR, _SPARSE):
            name = type_name(parts.get(_ELEMENT, 0))
            return (name if kind == _TENSOR else f"sparse_{name}", _dims(data, parts[_SHAPE]) if _SHAPE in parts else None)
        if kind == _MAP and 2 in parts:
            return f"map({type_name(parts.get(1, 0))[7:-1]},{_type(data, parts[2])[0]})", None
        if kind in (_SEQUENCE, _OPTIONAL) and _ELEMENT in parts:
            return f"{'seq' if kind == _SEQUENCE else 'optional'}({_type(data, parts[_ELEMENT])[0]})", None
    return "", None


def _value(data, span):
    parts = dict(_fields(data, *span))
    name = _text(data, parts[_INFO_NAME]) if _INFO_NAME in parts else ""
    return name, _type(data, parts[_INFO_TYPE]) if _INFO_TYPE in parts else ("", None)


def _read_graph(data, span, meta):
    texts = {_GRAPH_NAME: "graph_name", _GRAPH_DOC: "graph_description"}
    for field, value in _fields(data, *span):
        if field in texts:
            meta[texts[field]] = _text(data, value)
        elif field in (_GRAPH_INPUT, _GRAPH_OUTPUT):
            name, declared = _value(data, value)
            meta["inputs" if field == _GRAPH_INPUT else "outputs"][name] = declared


def _read(data):
    top = {_PRODUCER: "producer_name", _PRODUCER_VERSION: "producer_version", _DOMAIN: "domain", _DOC: "description"}
    meta = {"producer_name": "", "producer_version": "", "domain": "", "description": "", "version": NO_VERSION, "graph_name": "",
            "graph_description": "", "custom_metadata_map": {}, "inputs": {}, "outputs": {}, "is_whole": False}
    try:
        for field, value in _fields(data, 0, len(data)):
            if field in top and isinstance(value, tuple):
                meta[top[field]] = _text(data, value)
            elif field == _VERSION and isinstance(value, int):
                meta["version"] = value
            elif field == _GRAPH and isinstance(value, tuple):
                _read_graph(data, value, meta)
            elif field == _METADATA and isinstance(value, tuple):
                entry = _texts(data, value, {_KEY: "key", _VALUE: "value"})
                meta["custom_metadata_map"][entry.get("key", "")] = entry.get("value", "")
        meta["is_whole"] = True
    except (_Damaged, TypeError):  # TypeError: a number where a message should be, or the other way round
        pass  # what is readable before; the compiler says what is wrong with the model
    return meta


def _dim_names(meta):
    return {dim for ports in (meta["inputs"], meta["outputs"]) for _, shape in ports.values() for dim in shape or ()
            if isinstance(dim, str)}


def metadata(model):
    """Of a path or of bytes. "inputs" and "outputs" are {name: (type, shape)} as declared, "dim_names" the names in these
    shapes; "is_whole": it is a message."""
    if isinstance(model, (bytes, bytearray, memoryview)):
        meta = _read(memoryview(model))
    else:
        with open(model, "rb") as file:
            file.seek(0, 2)
            if file.tell() == 0:
                meta = _read(b"")
            else:
                with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                    meta = _read(data)
    meta["dim_names"] = _dim_names(meta)
    return meta
