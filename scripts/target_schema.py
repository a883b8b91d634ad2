#!/usr/bin/env python3
"""Writes target/target.schema.json and the tables of docs/target.md from target/kinds.def.

Run from anywhere after a change of kinds.def; the tests of target/ fail when the files are out of step.
"""
import json
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = (ROOT / "target/kinds.def").read_text()
DTYPES = re.findall(r'X\(\w+, "(\w+)"', (ROOT / "base/dtype.h").read_text())

KINDS = [(m[1], m[2]) for m in re.finditer(r'^KIND\(\w+, "([^"]+)", \w+, "([^"]+)"\)', TABLE, re.M)]
NAMES = [name for name, _ in KINDS]
OWNERS = {
    "K_ALL": NAMES,
    "K_CPU": ["cpu"],
    "K_CORES": ["cpu", "opencl"],
    "K_LIBRARIES": ["cpu", "cuda"],
    "K_GPU": ["opencl", "vulkan", "cuda"],
    "K_NOT_CPU": [name for name in NAMES if name != "cpu"],
    "K_VTA": ["vta"],
    "K_NPU": ["npu"],
}
ROW = re.compile(r'^(?:FIELD|ATTRIBUTE)\((\w+), (\w+), (\w+), ([^,]+), ([^,]+), "([^"]+)"\)', re.M)
ATTRIBUTES = [(m[1], m[2], m[3], float(m[4]), float(m[5]), m[6]) for m in ROW.finditer(TABLE)]


def whole_number(x):
    return int(x) if x == int(x) and x < 2**53 else x


def ref(name):
    return {"$ref": "#/$defs/" + name}


def attribute(name, kind, least, most, doc):
    span = {"minimum": whole_number(least), "maximum": whole_number(most)}
    schema = {
        "STRING": {"type": "string", "maxLength": 256},
        "WORD": ref("word"),
        "LIST": {"type": "array", "items": ref("word")},
        "BOOL": {"type": "boolean"},
        "FLOPS": {
            "type": "object",
            "propertyNames": {"enum": DTYPES},
            "additionalProperties": {"type": "number", **span},
        },
        "FLOAT": {"type": "number", **span},
        "INT": {"type": "integer", **span},
    }[kind]
    if kind == "INT" and name.endswith("_bytes"):
        schema = {"anyOf": [schema, ref("size")]}
    return {**schema, "description": doc}


def closed(required, properties):
    return {
        "type": "object",
        "required": required,
        "properties": properties,
        "additionalProperties": False,
    }


def any_of(*choices):
    return {"anyOf": list(choices)}


def list_of(name):
    return {"type": "array", "items": ref(name)}


def choice(names):
    return any_of({"enum": names}, closed(["kind"], {"kind": {"enum": names}}))


def definitions():
    text = {"type": "string"}
    size = any_of({"type": "integer", "minimum": 1, "maximum": 10**18}, ref("size"))
    rate = {"type": "number", "minimum": 1, "maximum": 10**18}
    delay = {"type": "integer", "minimum": 0, "maximum": 10**12}
    alignment = {"type": "integer", "minimum": 1, "maximum": 1 << 30, "description": "a power of two"}
    defs = {
        "name": {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_.+:/@-]{0,63}$"},
        "word": {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_.+-]{0,63}$"},
        "size": {"type": "string", "pattern": "^[0-9]+(\\.[0-9]+)? *(B|KiB|MiB|GiB|TiB)$"},
    }
    host = any_of(text, {**ref("cpu"), "unevaluatedProperties": False})
    for kind, doc in KINDS:
        properties = {"kind": {"const": kind}}
        for name, type_, owners, least, most, what in ATTRIBUTES:
            if kind in OWNERS[owners]:
                properties[name] = attribute(name, type_, least, most, what)
        properties["host"] = host
        defs[kind] = {
            "type": "object",
            "description": doc,
            "required": ["kind"],
            "properties": properties,
        }
    alone = [{**ref(kind), "unevaluatedProperties": False} for kind in NAMES]
    defs["device_target"] = any_of({**text, "description": "a tag or a short form"}, *alone)
    entry = {
        "name": ref("name"),
        "target": ref("device_target"),
        "host_only": {"type": "boolean"},
        "machine": ref("name"),
    }
    defs["device"] = any_of(text, closed(["target"], entry))
    defs["memory"] = closed(
        ["name", "capacity_bytes", "reached_by"],
        {
            "name": ref("name"),
            "scope": ref("name"),
            "capacity_bytes": size,
            "bandwidth_bytes_per_s": rate,
            "latency_ns": delay,
            "alignment_bytes": alignment,
            "reached_by": {"type": "array", "minItems": 1, "items": text},
            "implied": {"type": "boolean"},
            "holds": {"enum": ["everything", "constants"]},
        },
    )
    defs["link"] = closed(
        ["from", "to"],
        {
            "from": text,
            "to": text,
            "bandwidth_bytes_per_s": rate,
            "latency_ns": delay,
            "duplex": {"type": "boolean"},
            "bus": ref("name"),
        },
    )
    defs["pin"] = closed(["match", "device"], {"match": {**text, "minLength": 1}, "device": text})
    defs["machine"] = closed(
        ["name"],
        {"name": ref("name"), "host": text, "target": any_of(text, ref("multi"), ref("single"))},
    )
    defs["whole"] = {
        "properties": {
            "name": ref("name"),
            "executor": choice(["graph", "vm", "aot"]),
            "runtime": choice(["hosted", "bare"]),
            "pins": list_of("pin"),
            "budgets": {"type": "object", "additionalProperties": size},
            "description": text,
            "sources": any_of(text, {"type": "object", "additionalProperties": text}),
        }
    }
    defs["single"] = {
        "allOf": [ref("whole"), any_of(*[ref(kind) for kind in NAMES])],
        "unevaluatedProperties": False,
    }
    defs["multi"] = {
        "type": "object",
        "allOf": [ref("whole"), any_of({"required": ["devices"]}, {"required": ["machines"]})],
        "properties": {
            "kind": {"const": "multi"},
            "devices": {"type": "array", "minItems": 1, "maxItems": 63, "items": ref("device")},
            "default_device": text,
            "host": host,
            "machines": list_of("machine"),
            "memories": list_of("memory"),
            "links": list_of("link"),
        },
        "unevaluatedProperties": False,
    }
    return defs


def write_schema():
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Berth target",
        "description": "The JSON notation of targets, see docs/target.md. The parser checks more than "
        "a schema can: names that must exist, memories that must be connected, hosts that must agree.",
        "anyOf": [ref("multi"), ref("single")],
        "$defs": definitions(),
    }
    path = ROOT / "target/target.schema.json"
    path.write_text(json.dumps(schema, indent=1) + "\n")


def tables():
    types = {
        "STRING": "string",
        "WORD": "word",
        "LIST": "list of words",
        "INT": "integer",
        "FLOAT": "number",
        "BOOL": "true or false",
        "FLOPS": "object",
    }
    who = {"K_ALL": "all", "K_NOT_CPU": "all but cpu"}
    lines = ["| kind | what it is |", "|---|---|"]
    lines += [f"| `{kind}` | {doc} |" for kind, doc in KINDS]
    lines += ["", "| attribute | type | kinds | what it says |", "|---|---|---|---|"]
    for name, type_, owners, _, _, doc in ATTRIBUTES:
        kinds = who.get(owners) or ", ".join(OWNERS[owners])
        lines.append(f"| `{name}` | {types[type_]} | {kinds} | {doc} |")
    return "\n".join(lines)


def write_docs():
    path = ROOT / "docs/target.md"
    begin, end = "<!-- kinds.def begin -->\n", "\n<!-- kinds.def end -->"
    text = path.read_text()
    head, rest = text.split(begin)
    path.write_text(head + begin + tables() + end + rest.split(end)[1])


write_schema()
write_docs()
