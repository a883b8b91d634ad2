// Functions of numbers for the SPIR-V generator, as helper functions of the module. SPIR-V's own
// exp, log, sin and pow may be wrong by more than Berth's tests allow (Vulkan specification,
// "Precision and Operation of SPIR-V Instructions": sin by 2^-11), so that only what is exact there
// (rounding, fma, square roots within an ulp or so) is taken from it.
#ifndef BERTH_COMPILER_CODEGEN_SPIRV_MATH_H_
#define BERTH_COMPILER_CODEGEN_SPIRV_MATH_H_

#include "compiler/codegen/spirv_builder.h"
#include "ir/tensor/function.h"

// `type` is F32 or F64; for NEG, ABS, ADD, SUB, MUL, MIN and MAX also F16. 0 = there is no such function.
uint32_t berth_spirv_float_unary(berth_spirv *m, berth_spirv_type type, berth_unary op, uint32_t a);
uint32_t berth_spirv_float_binary(berth_spirv *m, berth_spirv_type type, berth_binary op,
                                  uint32_t a, uint32_t b);
uint32_t berth_spirv_fma(berth_spirv *m, berth_spirv_type type, uint32_t a, uint32_t b, uint32_t c);
// x != x, by its bits: devices may drop comparisons of a number with itself.
uint32_t berth_spirv_is_nan(berth_spirv *m, berth_spirv_type type, uint32_t x);

// Integers of `dtype`, held in 32 or 64 bits: division by zero gives 0, shifts beyond the width 0
// or the sign.
uint32_t berth_spirv_int_binary(berth_spirv *m, berth_dtype dtype, berth_binary op, uint32_t a,
                                uint32_t b);
uint32_t berth_spirv_int_unary(berth_spirv *m, berth_dtype dtype, berth_unary op, uint32_t a);
// Low bits of a 32-bit value, extended again as the type says (8 and 16 bits; others as they are).
uint32_t berth_spirv_wrap(berth_spirv *m, berth_dtype dtype, uint32_t a);
// Truncates and saturates; NaN gives 0.
uint32_t berth_spirv_float_to_int(berth_spirv *m, berth_spirv_type from, berth_dtype to,
                                  uint32_t a);
// f16 and bf16 as their bits (in 32) and as f32; round = both ways.
uint32_t berth_spirv_half_to_float(berth_spirv *m, berth_dtype dtype, uint32_t bits);
uint32_t berth_spirv_float_to_half(berth_spirv *m, berth_dtype dtype, uint32_t x);

#endif  // BERTH_COMPILER_CODEGEN_SPIRV_MATH_H_
