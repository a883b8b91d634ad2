// NumPy's .npy form (numpy.lib.format, versions 1 to 3), private to the tensor files.
#ifndef BERTH_TOOLKIT_NPY_H_
#define BERTH_TOOLKIT_NPY_H_

#include "base/str.h"
#include "base/tensor.h"

bool berth_toolkit__npy_is(const void *data, size_t size_bytes);

// Little- and one-byte-ordered numbers and bools; Fortran order becomes row-major. Inside
// berth_arena_try.
BERTH_MUST_USE berth_status berth_toolkit__npy_parse(berth_arena *arena, const void *data,
                                                     size_t size_bytes, berth_tensor *out_tensor);

// The header; the tensor's bytes follow it in the file.
BERTH_MUST_USE berth_status berth_toolkit__npy_header(berth_strbuf *out,
                                                      const berth_tensor *tensor);

#endif  // BERTH_TOOLKIT_NPY_H_
