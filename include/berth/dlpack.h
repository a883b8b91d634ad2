// DLPack's tensors as Berth's and back: what describes them, not their data. For use with DLPack's own header
// (https://github.com/dmlc/dlpack), which may be included before or after this one, or not at all.
//
//   berth_tensor image;
//   if (berth_tensor_of_dlpack(&managed->dl_tensor, &image) == BERTH_CODE_OK)
//       status = berth_session_run_with(session, &image, 1, &scores, 1, -1);   // reads its data where it is
//   managed->deleter(managed);                                               // once nothing uses it any more
//
// Inputs and outputs are host memory, so tensors are taken whose data the host reads. Of a tensor elsewhere (kDLCUDA,
// kDLOpenCL, kDLVulkan, ...) the caller makes a copy in host memory first, in its own queue or stream; the Python
// package does that itself for the first two.
#ifndef BERTH_DLPACK_H_
#define BERTH_DLPACK_H_

#include <berth/status.h>
#include <berth/tensor.h>
#include <stdint.h>
#include <string.h>

BERTH_BEGIN

// The bytes of DLPack's DLTensor: the same in all its versions from 0.2 to 1.x.
typedef struct berth_dlpack_tensor {
    void *data;
    int32_t device_type;  // DLDeviceType
    int32_t device_id;
    int32_t ndim;
    uint8_t code;  // DLDataTypeCode
    uint8_t bits;
    uint16_t lanes;
    int64_t *shape;    // [ndim]
    int64_t *strides;  // [ndim], in elements; NULL = row-major without gaps
    uint64_t byte_offset;
} berth_dlpack_tensor;

// Rows of the element types both have: DLDataTypeCode, bits, berth_dtype. One of each where the last is NONE.
static inline void berth_dlpack_type(int row, int *out_code, int *out_bits,
                                     berth_dtype *out_dtype) {
    static const struct {
        uint8_t code, bits;
        berth_dtype dtype;
    } rows[] = {{2, 32, BERTH_DTYPE_F32},  {2, 64, BERTH_DTYPE_F64}, {2, 16, BERTH_DTYPE_F16},
                {4, 16, BERTH_DTYPE_BF16}, {0, 8, BERTH_DTYPE_I8},   {0, 16, BERTH_DTYPE_I16},
                {0, 32, BERTH_DTYPE_I32},  {0, 64, BERTH_DTYPE_I64}, {1, 8, BERTH_DTYPE_U8},
                {1, 16, BERTH_DTYPE_U16},  {1, 32, BERTH_DTYPE_U32}, {1, 64, BERTH_DTYPE_U64},
                {6, 8, BERTH_DTYPE_BOOL},  {0, 0, BERTH_DTYPE_NONE}};
    *out_code = rows[row].code;
    *out_bits = rows[row].bits;
    *out_dtype = rows[row].dtype;
}

// What a DLTensor describes; `dl_tensor` points to one. The data stays its owner's and has to outlive the use of the tensor.
//   errors:  UNSUPPORTED the data is in memory of a device that the host does not read (device_type says where), of a
//            type that Berth lacks, or of more than BERTH_MAX_RANK dimensions; INCOMPATIBLE it is not row-major
//            without gaps (make it contiguous)
//   threads: thread-safe
static inline berth_code berth_tensor_of_dlpack(const void *dl_tensor, berth_tensor *out_tensor) {
    berth_dlpack_tensor given;
    int64_t stride = 1;
    int code = 0, bits = 0, is_compact = 1, is_empty = 0;
    berth_dtype dtype = BERTH_DTYPE_F32;
    memset(out_tensor, 0, sizeof(*out_tensor));
    memcpy(&given, dl_tensor, sizeof(given));
    // kDLCPU, kDLCUDAHost, kDLROCMHost (pinned) and kDLCUDAManaged
    if (given.device_type != 1 && given.device_type != 3 && given.device_type != 11 &&
        given.device_type != 13)
        return BERTH_UNSUPPORTED;
    for (int row = 0; dtype != BERTH_DTYPE_NONE; ++row) {
        berth_dlpack_type(row, &code, &bits, &dtype);
        if (code == given.code && bits == given.bits) break;
    }
    if (dtype == BERTH_DTYPE_NONE || given.lanes != 1 || given.ndim < 0 ||
        given.ndim > BERTH_MAX_RANK)
        return BERTH_UNSUPPORTED;
    for (int d = given.ndim - 1; d >= 0; --d) {
        if (given.strides && given.shape[d] != 1 && given.strides[d] != stride) is_compact = 0;
        if (given.shape[d] == 0) is_empty = 1;
        stride *= given.shape[d];
        out_tensor->dims[d] = given.shape[d];
    }
    if (!is_compact && !is_empty) return BERTH_INCOMPATIBLE;
    out_tensor->dtype = dtype;
    out_tensor->rank = given.ndim;
    out_tensor->data = given.data ? (char *)given.data + given.byte_offset : NULL;
    return BERTH_CODE_OK;
}

// A DLTensor over a tensor's data, on the processor (kDLCPU): of an output, of berth_session_input, ...; `out_dl_tensor` points to
// one. Its shape is that of `tensor`, which it has to live as long as. Errors: UNSUPPORTED strings, which DLPack lacks.
static inline berth_code berth_tensor_to_dlpack(berth_tensor *tensor, void *out_dl_tensor) {
    berth_dlpack_tensor made;
    int code = 0, bits = 0;
    berth_dtype dtype = BERTH_DTYPE_F32;
    memset(&made, 0, sizeof(made));
    for (int row = 0; dtype != BERTH_DTYPE_NONE; ++row) {
        berth_dlpack_type(row, &code, &bits, &dtype);
        if (dtype == tensor->dtype) break;
    }
    if (dtype == BERTH_DTYPE_NONE) return BERTH_UNSUPPORTED;
    made.data = tensor->data;
    made.device_type = 1;
    made.ndim = tensor->rank;
    made.code = (uint8_t)code;
    made.bits = (uint8_t)bits;
    made.lanes = 1;
    made.shape = tensor->dims;
    memcpy(out_dl_tensor, &made, sizeof(made));
    return BERTH_CODE_OK;
}

BERTH_END

#endif  // BERTH_DLPACK_H_
