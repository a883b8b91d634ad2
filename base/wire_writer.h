// Writer of the protocol-buffer wire format (base/wire.h reads it): fields appended to a growing buffer.
// A message inside another is written into a buffer of its own first, then added as bytes.
#ifndef BERTH_BASE_WIRE_WRITER_H_
#define BERTH_BASE_WIRE_WRITER_H_

#include "base/str.h"
#include "base/wire.h"

void berth_wire_put_varint(berth_strbuf *out, uint64_t value);  // no tag: packed numbers, lengths
void berth_wire_put_tag(berth_strbuf *out, uint32_t number, berth_wire_type type);
void berth_wire_put_int(berth_strbuf *out, uint32_t number, int64_t value);
void berth_wire_put_float(berth_strbuf *out, uint32_t number, float value);
void berth_wire_put_bytes(berth_strbuf *out, uint32_t number, const void *data, size_t size_bytes);
void berth_wire_put_text(berth_strbuf *out, uint32_t number, const char *text);

#endif  // BERTH_BASE_WIRE_WRITER_H_
