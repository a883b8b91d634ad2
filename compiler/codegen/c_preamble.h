// Helper functions of generated C: types, casts, integer rules, and elementary functions that
// compilers can vectorise.
#ifndef BERTH_COMPILER_CODEGEN_C_PREAMBLE_H_
#define BERTH_COMPILER_CODEGEN_C_PREAMBLE_H_

#include "base/hash.h"
#include "base/str.h"

// A file of C: `code` of the C printer, behind what all code begins with and the helper functions that it uses (c_helpers.h).
// Texts of several functions may be one code. Inside berth_arena_try. O(code).
const char *berth_c_complete(const char *code, berth_arena *arena);
// Of all that berth_c_complete takes from.
berth_hash128 berth_c_library_hash(berth_arena *arena);

// The scalar helpers alone, for any language of the C family. The language defines before them:
// BERTH_FN, the intN_t types and their limits, BERTH_INF_F32, BERTH_NAN_F32, BERTH_HAS_F64 where it
// has double, berth_float_of_bits, berth_bits_of_float and the __builtin_* functions used.
void berth_c_preamble_shared(berth_strbuf *out);
// Those two of these, for languages with memcpy.
void berth_c_preamble_bits(berth_strbuf *out);
// c_preamble_vectors.c: vectors of these numbers of lanes.
void berth_c_preamble_vectors(const int *lanes, uint32_t count, berth_strbuf *out);
// c_preamble_exp.c: BERTH_EXP_PARTS and BERTH_EXP_AND, which define exp, tanh, sigmoid and erf of vectors; part of
// berth_c_preamble_vectors.
extern const char berth_c_preamble_exp[];
// c_preamble_circle.c: tangent, arc functions, hyperbolic functions and their inverses of f32; parts of
// the library.
extern const char berth_c_preamble_circle[];
extern const char berth_c_preamble_hyperbola[];
// c_preamble_integers.c: arithmetic of integers and casts of floats to them; parts of berth_c_preamble_shared.
// With BERTH_FLOAT_DIVISION divisions of up to 32 bits are those of floats, which vectors have.
extern const char berth_c_preamble_integers[];
extern const char berth_c_preamble_casts[];
// Sums of products of narrow numbers in vectors; part of the library.
extern const char berth_c_preamble_narrow[];
// c_preamble_f64.c: exp, log, tanh, sigmoid, sine and cosine of f64; parts of the library.
extern const char berth_c_preamble_f64[];
extern const char berth_c_preamble_turn_f64[];
// cuda_preamble.c: all that generated CUDA C needs.
void berth_cuda_preamble(berth_strbuf *out);

#endif  // BERTH_COMPILER_CODEGEN_C_PREAMBLE_H_
