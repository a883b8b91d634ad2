// Narrow element types of ONNX: those that are kept as bytes, for there is no arithmetic on them.
//
//   const berth_narrow_type *type = berth_narrow_type_of(17);  // float8e4m3fn
//   double value = berth_narrow_value(type, 0x38);             // 1.0
//
// Floats of 8 and 4 bits are kept as their codes (u8), integers of 4 and 2 bits as their values (u8,
// i8). Files pack those of fewer than 8 bits, the first element in the lowest bits; tensors do not.
#ifndef BERTH_BASE_NARROW_H_
#define BERTH_BASE_NARROW_H_

#include "base/dtype.h"

typedef struct berth_narrow_type {
    int32_t onnx;
    berth_dtype dtype;  // of the tensor
    int bits;
    // Floats: exponent and mantissa bits; 0 for integers. An exponent e of a normal number stands for
    // 2^(e - bias); `largest` is the greatest finite code without its sign, `nan` and `infinity` are
    // codes of what is stored for them, -1 = there is none (float4e2m1 has no NaN: minus zero is
    // stored). `unsigned_zero`: the code of minus zero is that of NaN.
    int exponent, mantissa, bias;
    int largest, nan, infinity;
    bool unsigned_zero;
} berth_narrow_type;
// NULL for element types that are no narrow ones.
const berth_narrow_type *berth_narrow_type_of(int64_t onnx_type);
// The value of a code of a narrow float, or of an integer as it is kept.
double berth_narrow_value(const berth_narrow_type *type, int code);
// Elements in packed form to one byte each: `packed` has (count * bits + 7) / 8 bytes.
void berth_narrow_unpack(const berth_narrow_type *type, const uint8_t *packed, int64_t count,
                         uint8_t *out);

#endif  // BERTH_BASE_NARROW_H_
