// Literals of strings as bytes, for the serial forms of modules: of each element its length, 8 bytes
// little-endian, and its bytes.
#ifndef BERTH_IR_STRING_LITERAL_H_
#define BERTH_IR_STRING_LITERAL_H_

#include "base/str.h"
#include "base/tensor.h"

// Inside berth_arena_try of the buffer's arena.
void berth_string_literal_pack(const berth_tensor *tensor, berth_strbuf *out);
// Makes a tensor of that many strings in the arena; false where the bytes are not that.
bool berth_string_literal_unpack(berth_arena *arena, const void *data, size_t size_bytes, int rank,
                                 const int64_t *dims, berth_tensor *out_tensor);

#endif  // BERTH_IR_STRING_LITERAL_H_
