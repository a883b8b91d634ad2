// Blocks of elements that the C printer transposes in registers (c_moves.h), for schedules that make them.
#ifndef BERTH_COMPILER_CODEGEN_TRANSPOSE_BLOCK_H_
#define BERTH_COMPILER_CODEGEN_TRANSPOSE_BLOCK_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Whether there is a function for `side` x `side` elements of `size_bytes`.
bool berth_transpose_block_serves(int64_t side, size_t size_bytes);

#endif  // BERTH_COMPILER_CODEGEN_TRANSPOSE_BLOCK_H_
