// What the emulated cuBLAS and cuDNN share. They compute on the host, when the stream reaches them.
#ifndef BERTH_TESTS_CUDA_EMULATION_LIBRARY_H_
#define BERTH_TESTS_CUDA_EMULATION_LIBRARY_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Whether a context of the emulated libcuda is current.
bool emulated_has_context(void);
// Puts a call into the stream, with a copy of `data`, which stays. False: libcuda refuses.
bool emulated_put(void *stream, void (*function)(void *), const void *data, size_t bytes);

// Elements by cudaDataType: 0 f32, 2 f16, 14 bf16, 3 i8, 10 i32.
size_t emulated_element_bytes(int type);
double emulated_get(const void *data, int type, int64_t index);
void emulated_set(void *data, int type, int64_t index, double value);

#endif  // BERTH_TESTS_CUDA_EMULATION_LIBRARY_H_
