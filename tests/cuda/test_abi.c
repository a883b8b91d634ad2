// The declarations of devices/cuda/cuda_types.h and cuda_symbols.def are those of NVIDIA's headers.
// Mostly checked while it compiles, where the headers are installed.
#include <criterion/criterion.h>

#include "devices/cuda/cuda_types.h"

#if defined(BERTH_CUDA_HEADERS)
#include <cuda.h>
#include <nvrtc.h>

// Enumerations without negative values are compatible with unsigned int. In C a parameter list of
// prototypes is compared as a whole.
#define CHECK(name, result, parameters)                                                            \
    _Static_assert(__builtin_types_compatible_p(__typeof__(&name), result(*) parameters), #name);
#define CUDA(name, parameters) CHECK(name, cuda_result, parameters)
#define CUDA_NEWER(name, parameters) CHECK(name, cuda_result, parameters)
#define NVRTC(name, parameters) CHECK(name, nvrtc_result, parameters)
#include "devices/cuda/cuda_symbols.def"

#define RESULT(name, value, code) _Static_assert((int)name == value, #name);
CUDA_RESULTS(RESULT)
#define CONSTANT(name, value) _Static_assert((int)name == value, #name);
CUDA_ATTRIBUTES(CONSTANT)
CUDA_CONSTANTS(CONSTANT)
_Static_assert((int)NVRTC_ERROR_INVALID_OPTION == BERTH_NVRTC_ERROR_INVALID_OPTION, "");
_Static_assert((int)NVRTC_ERROR_COMPILATION == BERTH_NVRTC_ERROR_COMPILATION, "");

// What calls of NVIDIA's other libraries name (compiler/libraries).
#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#include <stddef.h>
#define CUBLAS(name, number) _Static_assert((int)name == number, #name);
#include "compiler/libraries/nvidia.def"
_Static_assert(offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize) == 64, "");
_Static_assert(offsetof(cublasLtMatmulHeuristicResult_t, state) == 72, "");
_Static_assert(sizeof(cublasLtMatmulHeuristicResult_t) == 96, "");
#endif
#if __has_include(<cudnn.h>)
#include <cudnn.h>
#define CUDNN(name, number) _Static_assert((int)name == number, #name);
#include "compiler/libraries/nvidia.def"
_Static_assert(offsetof(cudnnConvolutionFwdAlgoPerf_t, memory) == 16, "");
_Static_assert(sizeof(cudnnConvolutionFwdAlgoPerf_t) == 48, "");
#endif

Test(cuda_abi, headers_agree) {
    cr_expect_eq(sizeof(CUdeviceptr), sizeof(cuda_address));
}
#else
Test(cuda_abi, headers_agree) {
    cr_skip("cuda.h and nvrtc.h are not installed");
}
#endif
