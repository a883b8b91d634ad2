// Loops of plain C in vectors of four numbers of 32 bits, or of 16 or 8 where all are bytes, for cores with Helium (MVE): a loop that a
// schedule marked as one (BERTH_LOOP_VECTOR) and whose only statement is a store becomes
//
//   #if BERTH_MVE
//     for (int32_t v = 0; v < 8; v += 4)
//       vstrbq_u32(b4 + v, ...vmulq_n_f32(vcvtq_f32_s32(vldrwq_s32(b6 + v)), b3[i])...);
//   #else
//     ...
//   #endif
//
// What is left of a loop that is no multiple of four is a vector with a mask, or the loop's own statement for one.
// It computes the same bits as the loop in C99 that it has beside it.
#ifndef BERTH_COMPILER_CODEGEN_C_PLAIN_VECTORS_H_
#define BERTH_COMPILER_CODEGEN_C_PLAIN_VECTORS_H_

#include "compiler/codegen/c_family.h"

// Prints the form of vectors up to and with #else; the caller prints the loop and, when this returned
// true, #endif. False: nothing was printed, the loop has no such form.
bool berth_c_plain_open_vectors(berth_c_printer *p, const berth_stmt_node *loop);

// The functions that it calls.
extern const char berth_c_plain_vector_functions[];

#endif  // BERTH_COMPILER_CODEGEN_C_PLAIN_VECTORS_H_
