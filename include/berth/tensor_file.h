// Files of one tensor: ONNX TensorProto (.pb, as in ONNX test data) and NumPy (.npy) (libberth-compiler).
//
//   berth_tensor *image;
//   berth_status status = berth_tensor_read("image.npy", &image);
//   if (!status) status = berth_tensor_file_write("copy.pb", "image", image);
//   berth_tensor_free(image);
//
// Everything here is thread-safe.
#ifndef BERTH_TENSOR_FILE_H_
#define BERTH_TENSOR_FILE_H_

#include <berth/status.h>
#include <berth/tensor.h>
#include <stddef.h>

BERTH_BEGIN

// Reads a tensor file, or the bytes of one; which form it is shows in its first bytes. Data is aligned to
// 64 bytes.
//   ownership: the caller frees the tensor, and its data with it
//   errors:    NOT_FOUND, IO, INVALID_ARGUMENT, UNSUPPORTED; those of a file name it
BERTH_API BERTH_MUST_USE berth_status berth_tensor_read(const char *path,
                                                        berth_tensor **out_tensor);
BERTH_API BERTH_MUST_USE berth_status berth_tensor_parse(const void *data, size_t size_bytes,
                                                         berth_tensor **out_tensor);
BERTH_API void berth_tensor_free(berth_tensor *tensor);  // of these two; NULL is fine

// Writes a tensor file, complete or not at all; the path's ending says which form: ".pb" or ".npy".
// `name` goes into a .pb file; NULL = none. Errors: INVALID_ARGUMENT another ending; UNSUPPORTED
// bf16 as .npy; IO.
BERTH_API BERTH_MUST_USE berth_status berth_tensor_file_write(const char *path, const char *name,
                                                              const berth_tensor *tensor);
// Whether that would take the path's ending.
BERTH_API BERTH_MUST_USE berth_status berth_tensor_file_check_name(const char *path);

BERTH_END

#endif  // BERTH_TENSOR_FILE_H_
