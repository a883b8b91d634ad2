#include "base/wire_writer.h"

#include <string.h>

void berth_wire_put_varint(berth_strbuf *out, uint64_t value) {
    do {
        char byte = (char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        berth_strbuf_add_n(out, &byte, 1);
        value >>= 7;
    } while (value);
}

void berth_wire_put_tag(berth_strbuf *out, uint32_t number, berth_wire_type type) {
    berth_wire_put_varint(out, (uint64_t)number << 3 | (uint64_t)type);
}

void berth_wire_put_int(berth_strbuf *out, uint32_t number, int64_t value) {
    berth_wire_put_tag(out, number, BERTH_WIRE_VARINT);
    berth_wire_put_varint(out, (uint64_t)value);
}

void berth_wire_put_float(berth_strbuf *out, uint32_t number, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    berth_wire_put_tag(out, number, BERTH_WIRE_FIXED32);
    for (int i = 0; i < 4; ++i) {
        char byte = (char)(bits >> (8 * i) & 0xff);
        berth_strbuf_add_n(out, &byte, 1);
    }
}

void berth_wire_put_bytes(berth_strbuf *out, uint32_t number, const void *data, size_t size_bytes) {
    berth_wire_put_tag(out, number, BERTH_WIRE_BYTES);
    berth_wire_put_varint(out, size_bytes);
    if (size_bytes) berth_strbuf_add_n(out, data, size_bytes);
}

void berth_wire_put_text(berth_strbuf *out, uint32_t number, const char *text) {
    berth_wire_put_bytes(out, number, text, strlen(text));
}
