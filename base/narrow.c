#include "base/narrow.h"

#include <math.h>

// The 8-bit floats are those of Micikevicius et al., "FP8 Formats for Deep Learning" (2022; e4m3fn,
// e5m2), and Noune et al., "8-bit Numerical Formats for Deep Neural Networks" (2022; fnuz); e8m0 and
// e2m1 those of the OCP Microscaling Formats specification 1.0.
static const berth_narrow_type narrow_types[] = {
    {17, BERTH_DTYPE_U8, 8, 4, 3, 7, 0x7e, 0x7f, -1, false},     // float8e4m3fn
    {18, BERTH_DTYPE_U8, 8, 4, 3, 8, 0x7f, 0x80, -1, true},      // float8e4m3fnuz
    {19, BERTH_DTYPE_U8, 8, 5, 2, 15, 0x7b, 0x7e, 0x7c, false},  // float8e5m2
    {20, BERTH_DTYPE_U8, 8, 5, 2, 16, 0x7f, 0x80, -1, true},     // float8e5m2fnuz
    {21, BERTH_DTYPE_U8, 4, 0, 0, 0, 0, 0, 0, false},            // uint4
    {22, BERTH_DTYPE_I8, 4, 0, 0, 0, 0, 0, 0, false},            // int4
    {23, BERTH_DTYPE_U8, 4, 2, 1, 1, 0x7, 0x8, -1, false},       // float4e2m1
    {24, BERTH_DTYPE_U8, 8, 8, 0, 127, 0xfe, 0xff, -1, false},   // float8e8m0: no sign, no zero
    {25, BERTH_DTYPE_U8, 2, 0, 0, 0, 0, 0, 0, false},            // uint2
    {26, BERTH_DTYPE_I8, 2, 0, 0, 0, 0, 0, 0, false},            // int2
};

const berth_narrow_type *berth_narrow_type_of(int64_t onnx_type) {
    for (size_t i = 0; i < sizeof(narrow_types) / sizeof(narrow_types[0]); ++i)
        if (narrow_types[i].onnx == onnx_type) return &narrow_types[i];
    return NULL;
}

double berth_narrow_value(const berth_narrow_type *type, int code) {
    if (!type->exponent) return code;
    if (code == type->nan && type->bits == 8) return NAN;
    if (!type->mantissa) return ldexp(1, code - type->bias);
    int sign_bit = 1 << (type->exponent + type->mantissa), body = code & (sign_bit - 1);
    double sign = code & sign_bit ? -1 : 1;
    int exponent = body >> type->mantissa, rest = body & ((1 << type->mantissa) - 1);
    if (type->infinity >= 0 && body == type->infinity) return sign * (double)INFINITY;
    if (body > type->largest) return NAN;
    int significand = exponent ? rest | 1 << type->mantissa : rest;
    if (!exponent) exponent = 1;
    return sign * ldexp(significand, exponent - type->bias - type->mantissa);
}

void berth_narrow_unpack(const berth_narrow_type *type, const uint8_t *packed, int64_t count,
                         uint8_t *out) {
    int per_byte = 8 / type->bits, mask = (1 << type->bits) - 1, sign = 1 << (type->bits - 1);
    bool is_signed = type->dtype == BERTH_DTYPE_I8;
    for (int64_t i = 0; i < count; ++i) {
        int value = packed[i / per_byte] >> (int)(i % per_byte) * type->bits & mask;
        out[i] = (uint8_t)(is_signed && (value & sign) ? value - 2 * sign : value);
    }
}
