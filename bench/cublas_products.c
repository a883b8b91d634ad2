// What cuBLAS takes for a matrix product, for scripts/gpu_check.sh: milliseconds on the device, the median of 20.
// Usage: cublas_products ROWS COLUMNS TERMS f16|bf16|f32
// Needs NVIDIA's driver and libcublas (CUDA 11 or newer) where it runs, and nothing where it is built; 3: one is not there.
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "devices/cuda/cuda_types.h"

enum { NOT_THERE = 3, WARM = 3, RUNS = 20 };

#define CUDA(name, parameters) static cuda_result(*name) parameters;
#include "devices/cuda/cuda_symbols.def"

// cublas_v2.h, cublas_api.h and library_types.h of the CUDA toolkit.
typedef struct cublasContext *cublas_handle;
static int (*cublasCreate_v2)(cublas_handle *handle);
static int (*cublasSetStream_v2)(cublas_handle handle, cuda_stream stream);
static int (*cublasGemmEx)(cublas_handle handle, int across_a, int across_b, int m, int n, int k,
                           const void *alpha, const void *a, int a_type, int lda, const void *b,
                           int b_type, int ldb, const void *beta, void *c, int c_type, int ldc,
                           int compute, int algorithm);
enum { COMPUTE_32F = 68, GEMM_DEFAULT = -1 };

typedef struct element {
    const char *name;
    int type;  // cudaDataType
    size_t bytes;
} element;
static const element elements[] = {{"f16", 2, 2}, {"bf16", 14, 2}, {"f32", 0, 4}};

static void check(bool fine, const char *what) {
    if (fine) return;
    fprintf(stderr, "cublas_products: %s failed\n", what);
    exit(1);
}

static void *open_first(const char *const *names) {
    for (; *names; ++names) {
        void *library = dlopen(*names, RTLD_NOW);
        if (library) return library;
    }
    return NULL;
}

// ISO C has no conversion of a pointer to an object to one to a function.
static void find(void *library, const char *name, void *out) {
    void *symbol = dlsym(library, name);
    check(symbol != NULL, name);
    memcpy(out, &symbol, sizeof(symbol));
}

static void load(void) {
    static const char *const driver[] = {"libcuda.so.1", NULL};
    static const char *const cublas[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11",
                                         "libcublas.so", NULL};
    void *cuda = open_first(driver), *blas = open_first(cublas);
    if (!cuda || !blas) {
        fprintf(stderr, "cublas_products: there is no %s\n", cuda ? "libcublas" : "libcuda.so.1");
        exit(NOT_THERE);
    }
#define CUDA(name, parameters) find(cuda, #name, &name);
#include "devices/cuda/cuda_symbols.def"
    find(blas, "cublasCreate_v2", &cublasCreate_v2);
    find(blas, "cublasSetStream_v2", &cublasSetStream_v2);
    find(blas, "cublasGemmEx", &cublasGemmEx);
}

static int compare(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static cuda_stream open_device(void) {
    cuda_device_id device = 0;
    cuda_context context = NULL;
    cuda_stream stream = NULL;
    check(cuInit(0) == CUDA_OK, "cuInit");
    check(cuDeviceGet(&device, 0) == CUDA_OK, "cuDeviceGet");
    check(cuDevicePrimaryCtxRetain(&context, device) == CUDA_OK, "cuDevicePrimaryCtxRetain");
    check(cuCtxPushCurrent_v2(context) == CUDA_OK, "cuCtxPushCurrent");
    check(cuStreamCreate(&stream, BERTH_CU_STREAM_NON_BLOCKING) == CUDA_OK, "cuStreamCreate");
    return stream;
}

static void *allocate(cuda_stream stream, size_t bytes) {
    cuda_address address = 0;
    check(cuMemAlloc_v2(&address, bytes) == CUDA_OK, "cuMemAlloc");
    check(cuMemsetD8Async(address, 0x11, bytes, stream) == CUDA_OK, "cuMemsetD8Async");
    return (void *)(uintptr_t)address;
}

int main(int argc, char **argv) {
    const element *type = NULL;
    int size[3] = {0};
    for (int i = 0; i < 3 && argc == 5; ++i) size[i] = atoi(argv[1 + i]);
    for (size_t i = 0; i < sizeof(elements) / sizeof(*elements) && argc == 5; ++i)
        if (strcmp(argv[4], elements[i].name) == 0) type = &elements[i];
    if (!type || size[0] < 1 || size[1] < 1 || size[2] < 1) {
        fprintf(stderr, "Usage: cublas_products ROWS COLUMNS TERMS f16|bf16|f32\n");
        return 2;
    }
    int rows = size[0], columns = size[1], terms = size[2];
    load();
    cuda_stream stream = open_device();
    cublas_handle handle = NULL;
    check(cublasCreate_v2(&handle) == 0, "cublasCreate");
    check(cublasSetStream_v2(handle, stream) == 0, "cublasSetStream");
    void *a = allocate(stream, (size_t)rows * (size_t)terms * type->bytes);
    void *b = allocate(stream, (size_t)terms * (size_t)columns * type->bytes);
    void *c = allocate(stream, (size_t)rows * (size_t)columns * type->bytes);
    cuda_event from = NULL, to = NULL;
    check(cuEventCreate(&from, 0) == CUDA_OK && cuEventCreate(&to, 0) == CUDA_OK, "cuEventCreate");
    float times[RUNS], one = 1, zero = 0;
    for (int i = -WARM; i < RUNS; ++i) {
        cuda_result reached = BERTH_CUDA_ERROR_NOT_READY;
        check(cuEventRecord(from, stream) == CUDA_OK, "cuEventRecord");
        // cuBLAS counts columns first: the product of the operands' transposes, in the other order.
        check(cublasGemmEx(handle, 0, 0, columns, rows, terms, &one, b, type->type, columns, a,
                           type->type, terms, &zero, c, type->type, columns, COMPUTE_32F,
                           GEMM_DEFAULT) == 0,
              "cublasGemmEx");
        check(cuEventRecord(to, stream) == CUDA_OK, "cuEventRecord");
        while (reached == BERTH_CUDA_ERROR_NOT_READY) reached = cuEventQuery(to);
        check(reached == CUDA_OK, "the product");
        check(cuEventElapsedTime(i < 0 ? times : times + i, from, to) == CUDA_OK,
              "cuEventElapsedTime");
    }
    qsort(times, RUNS, sizeof(*times), compare);
    printf("%.4f\n", (double)times[RUNS / 2]);
    return 0;
}
