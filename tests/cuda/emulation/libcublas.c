// A libcublas for the test of bench/cublas_products.c: says whether the product is asked for as cublas_api.h has it, and
// computes nothing.
#include <stddef.h>

int cublasCreate_v2(void **handle) {
    static int here;
    *handle = &here;
    return 0;
}

int cublasSetStream_v2(void *handle, void *stream) {
    return handle && stream ? 0 : 1;
}

int cublasGemmEx(void *handle, int across_a, int across_b, int m, int n, int k, const float *alpha,
                 const void *a, int a_type, int lda, const void *b, int b_type, int ldb,
                 const float *beta, void *c, int c_type, int ldc, int compute, int algorithm) {
    enum { r_32f = 0, r_16f = 2, r_16bf = 14, compute_32f = 68, invalid = 7 };
    if (!handle || across_a || across_b || !a || !b || !c || *alpha != 1 || *beta != 0)
        return invalid;
    if (lda != m || ldb != k || ldc != m || n < 1 || compute != compute_32f || algorithm != -1)
        return invalid;
    if (a_type != b_type || a_type != c_type) return invalid;
    return a_type == r_32f || a_type == r_16f || a_type == r_16bf ? 0 : invalid;
}
