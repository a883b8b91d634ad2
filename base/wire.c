// Wire format: https://protobuf.dev/programming-guides/encoding/
#include "base/wire.h"

berth_wire berth_wire_make(const void *data, size_t size_bytes) {
    return (berth_wire){.data = data, .size_bytes = size_bytes};
}

static bool fail_at(berth_wire *wire, size_t at, const char *error) {
    if (!wire->error) {
        wire->error = error;
        wire->error_offset = wire->base_offset + at;
    }
    return false;
}

void berth_wire_fail(berth_wire *wire, const char *error) {
    fail_at(wire, wire->at, error);
}

static bool read_varint(berth_wire *wire, uint64_t *out_value) {
    size_t start = wire->at;
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (wire->at >= wire->size_bytes)
            return fail_at(wire, start, "the message ends in the middle of a number");
        uint8_t byte = wire->data[wire->at++];
        if (shift == 63 && byte > 1) break;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *out_value = value;
            return true;
        }
    }
    return fail_at(wire, start, "a number is longer than 64 bits");
}

static bool read_fixed(berth_wire *wire, unsigned size_bytes, uint64_t *out_value) {
    if (wire->size_bytes - wire->at < size_bytes)
        return fail_at(wire, wire->at, "the message ends in the middle of a number");
    uint64_t value = 0;
    for (unsigned i = 0; i < size_bytes; ++i)
        value |= (uint64_t)wire->data[wire->at + i] << (8 * i);
    wire->at += size_bytes;
    *out_value = value;
    return true;
}

static bool read_bytes(berth_wire *wire, berth_wire_field *field) {
    size_t start = wire->at;
    uint64_t length = 0;
    if (!read_varint(wire, &length)) return false;
    if (length > wire->size_bytes - wire->at)
        return fail_at(wire, start, "a field is longer than the message that holds it");
    field->data = wire->data + wire->at;
    field->size_bytes = (size_t)length;
    wire->at += (size_t)length;
    return true;
}

bool berth_wire_next(berth_wire *wire, berth_wire_field *out_field) {
    *out_field = (berth_wire_field){0};
    if (wire->error || wire->at >= wire->size_bytes) return false;
    size_t start = wire->at;
    uint64_t tag = 0;
    if (!read_varint(wire, &tag)) return false;
    if (tag >> 3 == 0 || tag >> 3 > 0x1fffffff)
        return fail_at(wire, start, "a field number is outside 1..536870911");
    out_field->number = (uint32_t)(tag >> 3);
    out_field->type = (berth_wire_type)(tag & 7);
    switch (out_field->type) {
    case BERTH_WIRE_VARINT: return read_varint(wire, &out_field->value);
    case BERTH_WIRE_FIXED64: return read_fixed(wire, 8, &out_field->value);
    case BERTH_WIRE_FIXED32: return read_fixed(wire, 4, &out_field->value);
    case BERTH_WIRE_BYTES: return read_bytes(wire, out_field);
    }
    return fail_at(wire, start, "a field has an unknown wire type");
}

bool berth_wire_is(berth_wire *wire, const berth_wire_field *field, berth_wire_type type) {
    return field->type == type || fail_at(wire, wire->at, "a field has another type than expected");
}

berth_wire berth_wire_enter(const berth_wire *wire, const berth_wire_field *field) {
    berth_wire child = berth_wire_make(field->data, field->size_bytes);
    child.depth = wire->depth + 1;
    if (field->type != BERTH_WIRE_BYTES) {
        child.base_offset = wire->base_offset + wire->at;
        fail_at(&child, 0, "a field has another type than expected");
        return child;
    }
    child.base_offset = wire->base_offset + (size_t)(field->data - wire->data);
    if (child.depth > BERTH_WIRE_MAX_DEPTH) fail_at(&child, 0, "messages are nested too deeply");
    return child;
}

bool berth_wire_varint(berth_wire *wire, uint64_t *out_value) {
    *out_value = 0;
    return !wire->error && wire->at < wire->size_bytes && read_varint(wire, out_value);
}

bool berth_wire_fixed32(berth_wire *wire, uint32_t *out_value) {
    uint64_t value = 0;
    *out_value = 0;
    if (wire->error || wire->at >= wire->size_bytes || !read_fixed(wire, 4, &value)) return false;
    *out_value = (uint32_t)value;
    return true;
}

bool berth_wire_fixed64(berth_wire *wire, uint64_t *out_value) {
    *out_value = 0;
    return !wire->error && wire->at < wire->size_bytes && read_fixed(wire, 8, out_value);
}

berth_status berth_wire_status(const berth_wire *wire) {
    if (!wire->error) return BERTH_OK;
    return berth_status_make(BERTH_INVALID_ARGUMENT, "byte %zu: %s", wire->error_offset,
                             wire->error);
}
