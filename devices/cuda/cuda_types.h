// The part of the ABI of NVIDIA's driver and of NVRTC that is used here, so that neither needs to be
// installed where Berth is built. Source: cuda.h and nvrtc.h of the CUDA toolkit, whose declarations
// tests/cuda/test_abi.c compares with these where a toolkit is installed.
#ifndef BERTH_DEVICES_CUDA_CUDA_TYPES_H_
#define BERTH_DEVICES_CUDA_CUDA_TYPES_H_

#include <stddef.h>

typedef unsigned int cuda_result;         // CUresult
typedef int cuda_device_id;               // CUdevice
typedef unsigned long long cuda_address;  // CUdeviceptr
typedef struct CUctx_st *cuda_context;
typedef struct CUmod_st *cuda_module;
typedef struct CUfunc_st *cuda_function;
typedef struct CUstream_st *cuda_stream;
typedef struct CUevent_st *cuda_event;
typedef struct CUgraph_st *cuda_graph;
typedef struct CUgraphExec_st *cuda_graph_exec;
typedef unsigned int cuda_enum;  // enumerations without negative values

typedef unsigned int nvrtc_result;  // nvrtcResult
typedef struct _nvrtcProgram *nvrtc_program;

#define CUDA_OK 0u

// Results that are told apart: NAME, value, the code of the status.
#define CUDA_RESULTS(X)                                                                            \
    X(CUDA_ERROR_INVALID_VALUE, 1, INTERNAL)                                                       \
    X(CUDA_ERROR_OUT_OF_MEMORY, 2, OUT_OF_MEMORY)                                                  \
    X(CUDA_ERROR_NOT_INITIALIZED, 3, UNAVAILABLE)                                                  \
    X(CUDA_ERROR_DEINITIALIZED, 4, UNAVAILABLE)                                                    \
    X(CUDA_ERROR_STUB_LIBRARY, 34, UNAVAILABLE)                                                    \
    X(CUDA_ERROR_NO_DEVICE, 100, UNAVAILABLE)                                                      \
    X(CUDA_ERROR_INVALID_DEVICE, 101, UNAVAILABLE)                                                 \
    X(CUDA_ERROR_INVALID_IMAGE, 200, INVALID_ARGUMENT)                                             \
    X(CUDA_ERROR_INVALID_CONTEXT, 201, INTERNAL)                                                   \
    X(CUDA_ERROR_NO_BINARY_FOR_GPU, 209, INCOMPATIBLE)                                             \
    X(CUDA_ERROR_INVALID_PTX, 218, INVALID_ARGUMENT)                                               \
    X(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, 222, INCOMPATIBLE)                                       \
    X(CUDA_ERROR_NOT_FOUND, 500, NOT_FOUND)                                                        \
    X(CUDA_ERROR_NOT_READY, 600, INTERNAL)                                                         \
    X(CUDA_ERROR_ILLEGAL_ADDRESS, 700, UNAVAILABLE)                                                \
    X(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, 701, OUT_OF_MEMORY)                                      \
    X(CUDA_ERROR_LAUNCH_TIMEOUT, 702, UNAVAILABLE)                                                 \
    X(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, 704, INTERNAL)                                       \
    X(CUDA_ERROR_MISALIGNED_ADDRESS, 716, UNAVAILABLE)                                             \
    X(CUDA_ERROR_LAUNCH_FAILED, 719, UNAVAILABLE)                                                  \
    X(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, 803, UNAVAILABLE)                                         \
    X(CUDA_ERROR_UNKNOWN, 999, UNAVAILABLE)
#define CUDA_RESULT_VALUE(name, value, code) BERTH_##name = value,
enum { CUDA_RESULTS(CUDA_RESULT_VALUE) };

// CUdevice_attribute
#define CUDA_ATTRIBUTES(X)                                                                         \
    X(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1)                                                \
    X(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 8)                                          \
    X(CU_DEVICE_ATTRIBUTE_WARP_SIZE, 10)                                                           \
    X(CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 13)                                                          \
    X(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16)                                                \
    X(CU_DEVICE_ATTRIBUTE_INTEGRATED, 18)                                                          \
    X(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 36)                                                   \
    X(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 37)                                             \
    X(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 38)                                                       \
    X(CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 40)                                                  \
    X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75)                                            \
    X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76)                                            \
    X(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97)
#define CUDA_ATTRIBUTE_VALUE(name, value) BERTH_##name = value,
enum { CUDA_ATTRIBUTES(CUDA_ATTRIBUTE_VALUE) };

// CUstream_flags, CUevent_flags, CUstreamCaptureMode, CU_MEMHOSTALLOC_*, CUfunction_attribute, CUjit_option
#define CUDA_CONSTANTS(X)                                                                          \
    X(CU_STREAM_NON_BLOCKING, 1)                                                                   \
    X(CU_EVENT_DISABLE_TIMING, 2)                                                                  \
    X(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, 1)                                                      \
    X(CU_MEMHOSTALLOC_PORTABLE, 1)                                                                 \
    X(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0)                                                  \
    X(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 8)                                          \
    X(CU_JIT_ERROR_LOG_BUFFER, 5)                                                                  \
    X(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, 6)
#define CUDA_CONSTANT_VALUE(name, value) BERTH_##name = value,
enum { CUDA_CONSTANTS(CUDA_CONSTANT_VALUE) };

// nvrtcResult
// X(name, value, code of Berth)
#define NVRTC_RESULTS(X)                                                                           \
    X(NVRTC_ERROR_OUT_OF_MEMORY, 1, OUT_OF_MEMORY)                                                 \
    X(NVRTC_ERROR_PROGRAM_CREATION_FAILURE, 2, INTERNAL)                                           \
    X(NVRTC_ERROR_INVALID_OPTION, 5, INTERNAL)                                                     \
    X(NVRTC_ERROR_COMPILATION, 6, INVALID_ARGUMENT)                                                \
    X(NVRTC_ERROR_BUILTIN_OPERATION_FAILURE, 7, UNAVAILABLE)                                       \
    X(NVRTC_ERROR_INTERNAL_ERROR, 11, INTERNAL)

enum {
#define NVRTC_RESULT(name, value, code) BERTH_##name = value,
    NVRTC_RESULTS(NVRTC_RESULT)
#undef NVRTC_RESULT
};

#endif  // BERTH_DEVICES_CUDA_CUDA_TYPES_H_
