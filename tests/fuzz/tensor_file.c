// Tensor files (.pb and .npy): any bytes give a clear error or a tensor whose every element can be
// read.
#include <stdlib.h>

#include "toolkit/tensor_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    berth_arena *arena = NULL;
    if (berth_arena_create(berth_allocator_system(), &arena)) return 0;
    berth_tensor tensor;
    const char *name = NULL;
    berth_status status = berth_tensor_file_parse(arena, data, size, &tensor, &name);
    if (!status) {
        if (!name || tensor.dtype == BERTH_DTYPE_NONE) abort();
        volatile double sum = 0;
        int64_t count = berth_tensor_element_count(&tensor);
        if (count > 2 * (int64_t)size)
            abort();  // elements of four bits: no file has more than two for a byte
        for (int64_t i = 0; i < count; ++i) sum += berth_tensor_get_f64(&tensor, i);
        (void)sum;
    }
    berth_status_free(status);
    berth_arena_destroy(arena);
    return 0;
}
