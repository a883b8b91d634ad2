// Host tensors (<berth/tensor.h>): checks, memory in arenas, elements, texts.
#ifndef BERTH_BASE_TENSOR_H_
#define BERTH_BASE_TENSOR_H_

#include <berth/tensor.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/dtype.h"
#include "base/status.h"

// Product of dims; 1 for a scalar. The dims must have been checked (berth_shape_size_bytes).
int64_t berth_tensor_element_count(const berth_tensor *tensor);
bool berth_tensor_same_shape(const berth_tensor *a, const berth_tensor *b);

// Element count and bytes with overflow and sign checks. Errors: OUT_OF_RANGE (negative dim,
// overflow, rank).
BERTH_MUST_USE berth_status berth_shape_size_bytes(berth_dtype dtype, int rank, const int64_t *dims,
                                                   int64_t *out_element_count,
                                                   size_t *out_size_bytes);

// Whether what a caller made is a tensor at all: element type, rank and dims, and data where there
// are elements. Errors: INVALID_ARGUMENT.
BERTH_MUST_USE berth_status berth_tensor_check(const berth_tensor *tensor);

// A zeroed tensor in the arena; data is aligned to 64 bytes. Dims must be valid (checked sizes).
berth_tensor berth_tensor_create(berth_arena *arena, berth_dtype dtype, int rank,
                                 const int64_t *dims);
// The same, but for the zeros: for what is written as a whole right away.
berth_tensor berth_tensor_create_unset(berth_arena *arena, berth_dtype dtype, int rank,
                                       const int64_t *dims);

// Whether the data's address is a multiple of the element's size, as all that follows here needs;
// and the tensor with data of which that is so: itself, or a copy in the arena.
bool berth_tensor_is_aligned(const berth_tensor *tensor);
berth_tensor berth_tensor_align(berth_arena *arena, const berth_tensor *tensor);

// Element `index` (row-major) as double or int64 whatever the type; for shapes, attributes,
// printing and tests.
double berth_tensor_get_f64(const berth_tensor *tensor, int64_t index);
int64_t berth_tensor_get_i64(const berth_tensor *tensor, int64_t index);
void berth_tensor_set_f64(berth_tensor *tensor, int64_t index, double value);
void berth_tensor_set_i64(berth_tensor *tensor, int64_t index, int64_t value);

// Fills with seeded pseudo-random values that any model survives: floats in [-1, 1), integers in
// [0, 8), bools, strings of a few letters (static data). The same seed gives the same bits everywhere.
void berth_tensor_fill_random(berth_tensor *tensor, uint64_t seed);

// ---- strings (BERTH_DTYPE_STRING): elements are views of bytes that lie elsewhere

const berth_string *berth_tensor_strings(const berth_tensor *tensor);
bool berth_string_equal(berth_string a, berth_string b);
int berth_string_compare(berth_string a, berth_string b);  // by bytes, as memcmp
// The text up to its NUL, which must outlive the result; and one with a NUL in the arena.
berth_string berth_string_of(const char *text);
berth_string berth_string_copy(berth_arena *arena, berth_string string);
const char *berth_string_text(berth_arena *arena, berth_string string);
// A tensor of either kind in the arena, the bytes of strings with it.
berth_tensor berth_tensor_copy(berth_arena *arena, const berth_tensor *tensor);
// Bytes that copies of the strings take, those of equal neighbours counted once; 0 for numbers. Errors:
// OUT_OF_RANGE more than there can be.
BERTH_MUST_USE berth_status berth_tensor_string_bytes(const berth_tensor *tensor,
                                                      size_t *out_size_bytes);
// Copies the strings' bytes to `bytes`, of that size, and makes the elements of `to` (same count) views
// of these.
void berth_tensor_move_strings(const berth_tensor *from, berth_tensor *to, char *bytes);

// "f32[1,3,224,224]", for messages.
void berth_tensor_format_shape(const berth_tensor *tensor, char out[192]);

#endif  // BERTH_BASE_TENSOR_H_
