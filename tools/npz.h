// NumPy's .npz: a zip archive of .npy files.
#ifndef BERTH_TOOLS_NPZ_H_
#define BERTH_TOOLS_NPZ_H_

#include "base/arena.h"
#include "base/tensor.h"

typedef struct berth_npz_array {
    const char *name;  // without .npy
    berth_tensor tensor;
} berth_npz_array;

bool berth_npz_is(const void *data, size_t size_bytes);  // begins as a zip archive

// Reads all arrays. Inside berth_arena_try of `arena`, where everything goes.
// Errors: INVALID_ARGUMENT no archive, a damaged one, or content that is no .npy; OUT_OF_RANGE more than
// 1024 arrays, or content beyond what its compressed bytes can hold; UNSUPPORTED a way to pack.
BERTH_MUST_USE berth_status berth_npz_read(berth_arena *arena, const void *data, size_t size_bytes,
                                           const berth_npz_array **out_arrays, uint32_t *out_count);

#endif  // BERTH_TOOLS_NPZ_H_
