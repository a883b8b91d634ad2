// Tensor files (<berth/tensor_file.h>, where writing is declared) into arenas.
#ifndef BERTH_TOOLKIT_TENSOR_FILE_H_
#define BERTH_TOOLKIT_TENSOR_FILE_H_

#include <berth/tensor_file.h>

#include "base/tensor.h"

// Reads a tensor file; which form it is shows in its first bytes. Everything lives in `arena`; data
// is aligned to 64. `out_name`: the tensor's name in the file, "" when it has none (.npy never
// has); may be NULL. Errors: NOT_FOUND, IO, INVALID_ARGUMENT, UNSUPPORTED, all naming the path.
BERTH_MUST_USE berth_status berth_tensor_file_read(berth_arena *arena, const char *path,
                                                   berth_tensor *out_tensor, const char **out_name);

// The same from memory.
BERTH_MUST_USE berth_status berth_tensor_file_parse(berth_arena *arena, const void *data,
                                                    size_t size_bytes, berth_tensor *out_tensor,
                                                    const char **out_name);

#endif  // BERTH_TOOLKIT_TENSOR_FILE_H_
