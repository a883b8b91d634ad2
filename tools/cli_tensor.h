// Tensor files into the command's arena.
#ifndef BERTH_TOOLS_CLI_TENSOR_H_
#define BERTH_TOOLS_CLI_TENSOR_H_

#include <berth/tensor.h>

#include "base/arena.h"

// The bytes of a tensor file (<berth/tensor_file.h>). In the arena, aligned to 64. Inside
// berth_arena_try. Errors: those of berth_tensor_parse.
BERTH_MUST_USE berth_status berth_cli_tensor_parse(berth_arena *arena, const void *data,
                                                   size_t size_bytes, berth_tensor *out_tensor);

#endif  // BERTH_TOOLS_CLI_TENSOR_H_
