// Host tensors: element type, shape, and dense row-major data in host memory.
//
//   float pixels[64];
//   berth_tensor image = {BERTH_DTYPE_F32, 4, {1, 1, 8, 8}, pixels};
//
// A plain value: copying the struct shares the data, which stays its owner's.
#ifndef BERTH_TENSOR_H_
#define BERTH_TENSOR_H_

#include <berth/version.h>
#include <stddef.h>
#include <stdint.h>

BERTH_BEGIN

// Numbers do not change; later versions may add some. Elements have the byte order of the machine;
// BOOL is one byte, 0 or 1.
typedef enum berth_dtype {
    BERTH_DTYPE_NONE = 0,
    BERTH_DTYPE_F32 = 1,
    BERTH_DTYPE_F64 = 2,
    BERTH_DTYPE_F16 = 3,
    BERTH_DTYPE_BF16 = 4,
    BERTH_DTYPE_I8 = 5,
    BERTH_DTYPE_I16 = 6,
    BERTH_DTYPE_I32 = 7,
    BERTH_DTYPE_I64 = 8,
    BERTH_DTYPE_U8 = 9,
    BERTH_DTYPE_U16 = 10,
    BERTH_DTYPE_U32 = 11,
    BERTH_DTYPE_U64 = 12,
    BERTH_DTYPE_BOOL = 13,
    BERTH_DTYPE_STRING = 14  // elements are berth_string; on the host only, never on a device
} berth_dtype;

// An element of a tensor of strings: any bytes, which no NUL ends. `data` may be NULL where `length` is 0.
// The bytes are not the tensor's: they belong to whoever owns its data, stay as long as that, and may be
// shared by several elements. Of a tensor that a function borrows, the bytes are borrowed with it.
typedef struct berth_string {
    const char *data;
    size_t length;
} berth_string;

#define BERTH_MAX_RANK 8

typedef struct berth_tensor {
    berth_dtype dtype;
    int rank;                      // 0 = scalar
    int64_t dims[BERTH_MAX_RANK];  // elements per dimension, >= 0
    void *data;                    // berth_tensor_size_bytes bytes; NULL when there are none
} berth_tensor;

// All functions here are thread-safe.
BERTH_API size_t berth_dtype_size_bytes(berth_dtype dtype);     // 0 for NONE
BERTH_API const char *berth_dtype_name(berth_dtype dtype);      // "f32"; "none"
BERTH_API berth_dtype berth_dtype_from_name(const char *name);  // NONE when unknown

// Bytes of the tensor's data. Its dims are those of a tensor that there is: nothing is checked.
BERTH_API size_t berth_tensor_size_bytes(const berth_tensor *tensor);

BERTH_END

#endif  // BERTH_TENSOR_H_
