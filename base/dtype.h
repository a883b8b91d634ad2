// Element types of tensors, buffers and scalars.
#ifndef BERTH_BASE_DTYPE_H_
#define BERTH_BASE_DTYPE_H_

#include <berth/tensor.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// One row per type of numbers of <berth/tensor.h>: enum suffix, text name, size in bytes, class (f = float, i =
// signed, u = unsigned, b = bool).
#define BERTH_DTYPES(X)                                                                            \
    X(F32, "f32", 4, 'f')                                                                          \
    X(F64, "f64", 8, 'f')                                                                          \
    X(F16, "f16", 2, 'f')                                                                          \
    X(BF16, "bf16", 2, 'f')                                                                        \
    X(I8, "i8", 1, 'i')                                                                            \
    X(I16, "i16", 2, 'i')                                                                          \
    X(I32, "i32", 4, 'i')                                                                          \
    X(I64, "i64", 8, 'i')                                                                          \
    X(U8, "u8", 1, 'u')                                                                            \
    X(U16, "u16", 2, 'u')                                                                          \
    X(U32, "u32", 4, 'u')                                                                          \
    X(U64, "u64", 8, 'u')                                                                          \
    X(BOOL, "bool", 1, 'b')

// The types of numbers, which kernels, programs and devices have, are below it; strings are not.
#define BERTH_DTYPE_COUNT (BERTH_DTYPE_BOOL + 1)

bool berth_dtype_is_float(berth_dtype dtype);
bool berth_dtype_is_integer(berth_dtype dtype);  // signed or unsigned, not bool
bool berth_dtype_is_signed(berth_dtype dtype);   // float or signed integer

// Conversions of the 16-bit floats (round to nearest even).
float berth_f16_to_f32(uint16_t bits);
uint16_t berth_f32_to_f16(float value);
float berth_bf16_to_f32(uint16_t bits);
uint16_t berth_f32_to_bf16(float value);

#endif  // BERTH_BASE_DTYPE_H_
