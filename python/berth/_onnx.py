"""What an ONNX file says of itself: who made it, and its metadata. Tensors are stepped over, not read."""

import mmap

# Fields of onnx.proto's ModelProto, GraphProto and StringStringEntryProto.
_PRODUCER, _PRODUCER_VERSION, _DOMAIN, _VERSION, _DOC, _GRAPH, _METADATA = 2, 3, 4, 5, 6, 7, 14
_GRAPH_NAME, _GRAPH_DOC = 2, 10
_KEY, _VALUE = 1, 2


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


def _read(data):
    top = {_PRODUCER: "producer_name", _PRODUCER_VERSION: "producer_version", _DOMAIN: "domain", _DOC: "description"}
    meta = {"producer_name": "", "producer_version": "", "domain": "", "description": "", "version": 0, "graph_name": "",
            "graph_description": "", "custom_metadata_map": {}}
    try:
        for field, value in _fields(data, 0, len(data)):
            if field in top and isinstance(value, tuple):
                meta[top[field]] = _text(data, value)
            elif field == _VERSION and isinstance(value, int):
                meta["version"] = value
            elif field == _GRAPH and isinstance(value, tuple):
                meta.update(_texts(data, value, {_GRAPH_NAME: "graph_name", _GRAPH_DOC: "graph_description"}))
            elif field == _METADATA and isinstance(value, tuple):
                entry = _texts(data, value, {_KEY: "key", _VALUE: "value"})
                meta["custom_metadata_map"][entry.get("key", "")] = entry.get("value", "")
    except _Damaged:
        pass  # what is readable before; the compiler says what is wrong with the model
    return meta


def metadata(model):
    """Of a path or of bytes."""
    if isinstance(model, (bytes, bytearray, memoryview)):
        return _read(memoryview(model))
    with open(model, "rb") as file:
        file.seek(0, 2)
        if file.tell() == 0:
            return _read(b"")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _read(data)
