// Reader of the protocol-buffer wire format over memory: zero-copy, never out of bounds, bounded in
// depth. It knows nothing of any schema; importers (ONNX models, tensor files) walk the fields they
// know and skip the rest.
//
//   berth_wire wire = berth_wire_make(data, size_bytes);
//   for (berth_wire_field field; berth_wire_next(&wire, &field);) {
//       switch (field.number) {
//       case 1: if (berth_wire_is(&wire, &field, BERTH_WIRE_VARINT)) version =
//       (int64_t)field.value; break; case 8: { berth_wire child = berth_wire_enter(&wire, &field);
//                 while (berth_wire_next(&child, &inner)) ...;
//                 BERTH_TRY(berth_wire_status(&child)); break; }
//       default: break;  // unknown fields are skipped
//       }
//   }
//   return berth_wire_status(&wire);
//
// An error sticks to its cursor: next returns false, and berth_wire_status says what is wrong at
// which byte of the whole message. Nothing is allocated except the status. A plain value;
// thread-compatible.
#ifndef BERTH_BASE_WIRE_H_
#define BERTH_BASE_WIRE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define BERTH_WIRE_MAX_DEPTH                                                                       \
    64  // nested messages; as deep as control flow in control flow will ever be

typedef enum berth_wire_type {
    BERTH_WIRE_VARINT = 0,
    BERTH_WIRE_FIXED64 = 1,
    BERTH_WIRE_BYTES = 2,  // text, bytes, a message or packed numbers
    BERTH_WIRE_FIXED32 = 5,
} berth_wire_type;

typedef struct berth_wire {
    const uint8_t *data;  // of this message
    size_t size_bytes;
    size_t at;            // next byte
    size_t base_offset;   // of `data` in the outermost message
    int depth;            // 0 = outermost
    const char *error;    // NULL while all is well; static text
    size_t error_offset;  // in the outermost message
} berth_wire;

typedef struct berth_wire_field {
    uint32_t number;
    berth_wire_type type;
    uint64_t value;  // VARINT, FIXED32, FIXED64: the bits (a signed int64 is a cast; a sint64 needs
                     // unzigzag)
    const uint8_t *data;  // BYTES: borrowed from the message, not NUL-terminated
    size_t size_bytes;
} berth_wire_field;

berth_wire berth_wire_make(const void *data, size_t size_bytes);

// Reads the next field. False at the end and on an error (berth_wire_status tells which).
bool berth_wire_next(berth_wire *wire, berth_wire_field *out_field);

// True when the field has this type; otherwise the cursor fails ("field 3 has another type than
// expected").
bool berth_wire_is(berth_wire *wire, const berth_wire_field *field, berth_wire_type type);

// A cursor over the message (or the packed numbers) that is the content of `field`, a field of
// `wire`. When the field is not BYTES or is nested too deeply, the new cursor has failed.
berth_wire berth_wire_enter(const berth_wire *wire, const berth_wire_field *field);

// Elements of a packed field (a cursor from berth_wire_enter). False at the end and on an error.
bool berth_wire_varint(berth_wire *wire, uint64_t *out_value);
bool berth_wire_fixed32(berth_wire *wire, uint32_t *out_value);
bool berth_wire_fixed64(berth_wire *wire, uint64_t *out_value);

// Makes the cursor fail (a schema rule was broken at the last field read). `error` must be static
// text.
void berth_wire_fail(berth_wire *wire, const char *error);

// OK, or INVALID_ARGUMENT "byte 123: the message ends in the middle of a number".
BERTH_MUST_USE berth_status berth_wire_status(const berth_wire *wire);

#endif  // BERTH_BASE_WIRE_H_
