// ONNX TensorProto messages (onnx.proto3, fields 1..14) to host tensors: tensor files and the
// initializers of models. Numeric element types in every way ONNX stores them (raw_data and the
// typed fields, packed or not), and strings (string_data).
#ifndef BERTH_BASE_TENSOR_PROTO_H_
#define BERTH_BASE_TENSOR_PROTO_H_

#include "base/narrow.h"
#include "base/tensor.h"
#include "base/wire.h"

typedef struct berth_tensor_proto {
    berth_tensor tensor;   // data is NULL when the content is external
    int32_t element;       // ONNX's number of its element type
    const char *name;      // "" when there is none; in the arena
    bool external;         // the content is in another file:
    const char *location;  // its path as written, in the arena
    uint64_t offset_bytes;
    uint64_t length_bytes;  // 0 = not said
} berth_tensor_proto;

// Parses one message; call inside berth_arena_try of `arena`.
//   ownership: with `borrow`, raw data and the bytes of strings stay where it is, aligned or not (berth_tensor_align); it
//              must then outlive the tensor and must not be written. Otherwise the content is
//              copied into the arena, aligned to 64 bytes
//   errors:    INVALID_ARGUMENT broken message, wrong number of elements, an element that does not
//   fit its type;
//              UNSUPPORTED complex element types, and those that are unknown here
BERTH_MUST_USE berth_status berth_tensor_proto_parse(berth_arena *arena, berth_wire wire,
                                                     bool borrow, berth_tensor_proto *out_proto);

// ONNX's number of an element type (TensorProto.DataType) and back; 0 and NONE when there is none.
int32_t berth_dtype_to_onnx(berth_dtype dtype);
berth_dtype berth_dtype_from_onnx(int64_t onnx_type);
// What tensors of an ONNX type hold: its own element type, or bytes (base/narrow.h); NONE when
// there is none.
berth_dtype berth_storage_from_onnx(int64_t onnx_type);

#endif  // BERTH_BASE_TENSOR_PROTO_H_
