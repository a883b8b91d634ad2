// Descriptions of tensors as DLPack has them. Its header is used where it is here (Debian: libdlpack-dev); else its structure
// stands here as its specification has it.
#include <berth/berth.h>
#include <criterion/criterion.h>
#include <stddef.h>

#if __has_include(<dlpack/dlpack.h>)
#include <dlpack/dlpack.h>
#else
typedef struct DLTensor {
    void *data;
    struct {
        int32_t device_type, device_id;
    } device;
    int32_t ndim;
    struct {
        uint8_t code, bits;
        uint16_t lanes;
    } dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} DLTensor;
#endif

_Static_assert(sizeof(berth_dlpack_tensor) == sizeof(DLTensor), "DLPack's structure");
_Static_assert(offsetof(berth_dlpack_tensor, code) == offsetof(DLTensor, dtype), "DLPack's type");
_Static_assert(offsetof(berth_dlpack_tensor, shape) == offsetof(DLTensor, shape), "its shape");

static DLTensor floats(float *data, int64_t *shape, int64_t *strides) {
    DLTensor tensor;
    memset(&tensor, 0, sizeof(tensor));
    tensor.data = data;
    tensor.device.device_type = 1;
    tensor.ndim = 2;
    tensor.dtype.code = 2;
    tensor.dtype.bits = 32;
    tensor.dtype.lanes = 1;
    tensor.shape = shape;
    tensor.strides = strides;
    return tensor;
}

Test(dlpack, a_tensor_where_it_is) {
    float data[8] = {0};
    int64_t shape[] = {2, 3}, strides[] = {3, 1};
    for (int with_strides = 0; with_strides < 2; ++with_strides) {
        DLTensor given = floats(data, shape, with_strides ? strides : NULL);
        given.byte_offset = 2 * sizeof(float);
        berth_tensor tensor;
        cr_assert_eq(berth_tensor_of_dlpack(&given, &tensor), BERTH_CODE_OK);
        cr_expect_eq(tensor.dtype, BERTH_DTYPE_F32);
        cr_expect(tensor.rank == 2 && tensor.dims[0] == 2 && tensor.dims[1] == 3);
        cr_expect_eq(tensor.data, data + 2);
    }
}

Test(dlpack, memory_of_hosts_and_of_devices) {
    float data[6] = {0};
    int64_t shape[] = {2, 3};
    DLTensor given = floats(data, shape, NULL);
    for (int type = 1; type <= 20; ++type) {
        const int is_host = type == 1 || type == 3 || type == 11 || type == 13;
        berth_tensor tensor;
        memcpy(&given.device, &type, sizeof(type));
        cr_expect_eq(berth_tensor_of_dlpack(&given, &tensor),
                     is_host ? BERTH_CODE_OK : BERTH_UNSUPPORTED, "DLDeviceType %d", type);
    }
}

Test(dlpack, what_is_not_taken) {
    float data[12] = {0};
    int64_t shape[] = {2, 3}, columns[] = {1, 2}, gaps[] = {4, 1}, any_of_one[] = {77, 1};
    int64_t none[] = {0, 3}, one_row[] = {1, 3};
    berth_tensor tensor;
    DLTensor given = floats(data, shape, columns);
    cr_expect_eq(berth_tensor_of_dlpack(&given, &tensor), BERTH_INCOMPATIBLE);
    given.strides = gaps;
    cr_expect_eq(berth_tensor_of_dlpack(&given, &tensor), BERTH_INCOMPATIBLE);
    given = floats(NULL, none, columns);  // nothing is there to be out of order
    cr_expect_eq(berth_tensor_of_dlpack(&given, &tensor), BERTH_CODE_OK);
    given = floats(data, one_row, any_of_one);
    cr_expect_eq(berth_tensor_of_dlpack(&given, &tensor), BERTH_CODE_OK);
    given.dtype.lanes = 4;
    cr_expect_eq(berth_tensor_of_dlpack(&given, &tensor), BERTH_UNSUPPORTED);
    given = floats(data, shape, NULL);
    given.dtype.code = 5;  // kDLComplex
    cr_expect_eq(berth_tensor_of_dlpack(&given, &tensor), BERTH_UNSUPPORTED);
    given = floats(data, shape, NULL);
    given.ndim = BERTH_MAX_RANK + 1;
    cr_expect_eq(berth_tensor_of_dlpack(&given, &tensor), BERTH_UNSUPPORTED);
}

Test(dlpack, every_type_there_and_back) {
    int64_t data[6] = {0};
    for (int dtype = BERTH_DTYPE_F32; dtype < BERTH_DTYPE_STRING; ++dtype) {
        berth_tensor tensor = {(berth_dtype)dtype, 2, {2, 3}, data}, again;
        DLTensor made;
        cr_assert_eq(berth_tensor_to_dlpack(&tensor, &made), BERTH_CODE_OK);
        cr_expect_eq(made.dtype.bits, 8 * berth_dtype_size_bytes(tensor.dtype));
        cr_expect(made.ndim == 2 && made.shape[1] == 3 && !made.strides && made.dtype.lanes == 1);
        cr_assert_eq(berth_tensor_of_dlpack(&made, &again), BERTH_CODE_OK);
        cr_expect_eq(again.dtype, tensor.dtype);
        cr_expect_eq(again.data, data);
    }
    berth_tensor strings = {BERTH_DTYPE_STRING, 0, {0}, data};
    DLTensor made;
    cr_expect_eq(berth_tensor_to_dlpack(&strings, &made), BERTH_UNSUPPORTED);
}
