// Calls of cuBLAS (cublasLt.h of the CUDA toolkit, versions 11 to 13; https://docs.nvidia.com/cuda/cublas, "Using the
// cuBLASLt API"): a product with what follows it, each problem's algorithm chosen when the program is opened. Handle and
// descriptions hold no memory of the device and no stream: both come with each call, so that a graph may capture it.
//
// cuBLAS counts columns first. A row-major Y = A * B is there, byte for byte, the product of the transposes in the other
// order: Yt = Bt * At. A bias is one number for each row of Yt, which is a column of Y.
#include "compiler/libraries/code.h"

static const berth_library_loading loading = {
    .name = "cuBLAS",
    .files = "libcublasLt.so.13\0libcublasLt.so.12\0libcublasLt.so.11\0",
    .declarations =
        "enum {\n"
#define CUBLAS(name, number) "    " #name " = " #number ",\n"
#include "compiler/libraries/nvidia.def"
        "};\n"
        "typedef struct choice {\n"
        "    uint64_t algorithm[8];\n"
        "    size_t workspace_bytes;\n"
        "    int status;\n"
        "    float waves;\n"
        "    int reserved[4];\n"
        "} choice;\n"
        "static int (*cublasLtCreate)(void **);\n"
        "static int (*cublasLtDestroy)(void *);\n"
        "static int (*cublasLtMatmulDescCreate)(void **, int, int);\n"
        "static int (*cublasLtMatmulDescSetAttribute)(void *, int, const void *, size_t);\n"
        "static int (*cublasLtMatmulDescDestroy)(void *);\n"
        "static int (*cublasLtMatrixLayoutCreate)(void **, int, uint64_t, uint64_t, int64_t);\n"
        "static int (*cublasLtMatrixLayoutSetAttribute)(void *, int, const void *, size_t);\n"
        "static int (*cublasLtMatrixLayoutDestroy)(void *);\n"
        "static int (*cublasLtMatmulPreferenceCreate)(void **);\n"
        "static int (*cublasLtMatmulPreferenceSetAttribute)(void *, int, const void *, size_t);\n"
        "static int (*cublasLtMatmulPreferenceDestroy)(void *);\n"
        "static int (*cublasLtMatmulAlgoGetHeuristic)(void *, void *, void *, void *, void *, void "
        "*, void *,\n"
        "                                             int, choice *, int *);\n"
        "static int (*cublasLtMatmul)(void *, void *, const void *, const void *, void *, const "
        "void *, void *,\n"
        "                             const void *, const void *, void *, void *, void *, const "
        "void *, void *,\n"
        "                             size_t, void *);\n",
    .functions = "cublasLtCreate\0cublasLtDestroy\0cublasLtMatmulDescCreate\0"
                 "cublasLtMatmulDescSetAttribute\0cublasLtMatmulDescDestroy\0"
                 "cublasLtMatrixLayoutCreate\0cublasLtMatrixLayoutSetAttribute\0"
                 "cublasLtMatrixLayoutDestroy\0cublasLtMatmulPreferenceCreate\0"
                 "cublasLtMatmulPreferenceSetAttribute\0cublasLtMatmulPreferenceDestroy\0"
                 "cublasLtMatmulAlgoGetHeuristic\0cublasLtMatmul\0",
    .status_start = "CUBLAS_STATUS_",
    .statuses = "1 NOT_INITIALIZED\0003 ALLOC_FAILED\0007 INVALID_VALUE\0008 ARCH_MISMATCH\0"
                "11 MAPPING_ERROR\00013 EXECUTION_FAILED\00014 INTERNAL_ERROR\00015 NOT_SUPPORTED\0"
                "16 LICENSE_ERROR\0"};

// clang-format off
static const char *const body[] = {
    "static void *handle, *problem, *layout_a, *layout_b, *layout_y;\n",
    "static choice chosen;\n",
    "static char busy;  /* the bias is a part of the problem */\n",
    "\n",
    "static int make_layout(void **out, int rows, int columns, int64_t stride) {\n",
    "    int32_t count = batch;\n",
    "    int status = cublasLtMatrixLayoutCreate(out, element_type, (uint64_t)rows, (uint64_t)columns, rows);\n",
    "    if (status == 0 && batch > 1)\n",
    "        status = cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof(count));\n",
    "    if (status == 0 && batch > 1)\n",
    "        status = cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof(stride));\n",
    "    return status;\n",
    "}\n",
    "\n",
    "static int make_problem(void) {\n",
    "    int32_t across_a = transposed_b, across_b = transposed_a;\n",
    "    uint32_t epilogue = (has_relu ? CUBLASLT_EPILOGUE_RELU : 0) | (has_bias ? CUBLASLT_EPILOGUE_BIAS : 0);\n",
    "    const void *aligned = (const void *)256;  /* looked at, not followed */\n",
    "    int status = cublasLtMatmulDescCreate(&problem, compute_type, CUDA_R_32F);\n",
    "    if (status == 0) status = cublasLtMatmulDescSetAttribute(problem, CUBLASLT_MATMUL_DESC_TRANSA, &across_a, sizeof(across_a));\n",
    "    if (status == 0) status = cublasLtMatmulDescSetAttribute(problem, CUBLASLT_MATMUL_DESC_TRANSB, &across_b, sizeof(across_b));\n",
    "    if (status == 0 && epilogue)\n",
    "        status = cublasLtMatmulDescSetAttribute(problem, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof(epilogue));\n",
    "    if (status == 0 && has_bias)\n",
    "        status = cublasLtMatmulDescSetAttribute(problem, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &aligned, sizeof(aligned));\n",
    "    if (status == 0)\n",
    "        status = make_layout(&layout_a, transposed_b ? depth : columns, transposed_b ? columns : depth, batch_b);\n",
    "    if (status == 0)\n",
    "        status = make_layout(&layout_b, transposed_a ? rows : depth, transposed_a ? depth : rows, batch_a);\n",
    "    if (status == 0) status = make_layout(&layout_y, columns, rows, batch_y);\n",
    "    return status;\n",
    "}\n",
    "\n",
    "static int choose(int *out_count) {\n",
    "    void *preference = 0;\n",
    "    uint64_t most = workspace_bytes;\n",
    "    uint32_t alignment = 128;\n",
    "    int status = cublasLtMatmulPreferenceCreate(&preference);\n",
    "    if (status) return status;\n",
    "    status = cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof(most));\n",
    "    for (int i = 0; i < 4 && status == 0; ++i)  /* of the operands, what is added, and the result */\n",
    "        status = cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES + i, &alignment,\n",
    "                                                      sizeof(alignment));\n",
    "    if (status == 0)\n",
    "        status = cublasLtMatmulAlgoGetHeuristic(handle, problem, layout_a, layout_b, layout_y, layout_y, preference,\n",
    "                                                1, &chosen, out_count);\n",
    "    (void)cublasLtMatmulPreferenceDestroy(preference);\n",
    "    return status;\n",
    "}\n",
    "\n",
    "const char *berth_open(void);\n",
    "const char *berth_open(void) {\n",
    "    int count = 0;\n",
    "    const char *why = load();\n",
    "    if (!why) why = said(cublasLtCreate(&handle));\n",
    "    if (!why) why = said(make_problem());\n",
    "    if (!why) why = said(choose(&count));\n",
    "    if (!why && count < 1) why = \"cuBLAS has no algorithm for this product on this device\";\n",
    "    return why ? why : said(chosen.status);\n",
    "}\n",
    "\n",
    "__attribute__((destructor)) static void end(void) {\n",
    "    if (layout_y) (void)cublasLtMatrixLayoutDestroy(layout_y);\n",
    "    if (layout_b) (void)cublasLtMatrixLayoutDestroy(layout_b);\n",
    "    if (layout_a) (void)cublasLtMatrixLayoutDestroy(layout_a);\n",
    "    if (problem) (void)cublasLtMatmulDescDestroy(problem);\n",
    "    if (handle) (void)cublasLtDestroy(handle);\n",
    "}\n",
    "\n",
    "static const char *run(void *stream, const element *a, const element *b, const element *bias, const element *sum,\n",
    "                       element *y, void *workspace) {\n",
    "    const float one = 1, zero = 0;\n",
    "    int status = 0;\n",
    "    while (__atomic_test_and_set(&busy, __ATOMIC_ACQUIRE)) continue;\n",
    "    if (has_bias) status = cublasLtMatmulDescSetAttribute(problem, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof(bias));\n",
    "    if (status == 0)\n",
    "        status = cublasLtMatmul(handle, problem, &one, b, layout_a, a, layout_b, sum ? &one : &zero, sum ? sum : y,\n",
    "                                layout_y, y, layout_y, chosen.algorithm, workspace, workspace_bytes, stream);\n",
    "    __atomic_clear(&busy, __ATOMIC_RELEASE);\n",
    "    return said(status);\n",
    "}\n",
};
// clang-format on

// Sums of f16 and bf16 are f32, as ours are.
static void add_types(const berth_library_use *use, berth_strbuf *out) {
    bool wide = use->dtype == BERTH_DTYPE_F32;
    const char *type = wide ? "32F" : use->dtype == BERTH_DTYPE_F16 ? "16F" : "16BF";
    berth_strbuf_addf(out,
                      "typedef %s element;\nenum {\n    element_type = CUDA_R_%s,\n"
                      "    compute_type = CUBLAS_COMPUTE_32F%s,\n};\n",
                      wide ? "float" : "uint16_t", type, use->tf32 ? "_FAST_TF32" : "");
}

static void add_sizes(const berth_library_use *use, berth_strbuf *out) {
    const berth_library_product *p = &use->product;
    berth_strbuf_addf(out,
                      "enum {\n    batch = %lld, rows = %lld, depth = %lld, columns = %lld,\n"
                      "    transposed_a = %d, transposed_b = %d, has_bias = %d, has_relu = %d,\n"
                      "    workspace_bytes = %lld,\n};\n"
                      "static const int64_t batch_a = INT64_C(%lld), batch_b = INT64_C(%lld),\n"
                      "                     batch_y = INT64_C(%lld);\n",
                      (long long)p->batch, (long long)p->rows, (long long)p->depth,
                      (long long)p->columns, p->transposed_a, p->transposed_b, use->bias, use->relu,
                      (long long)use->workspace_bytes, (long long)(p->rows * p->depth),
                      (long long)(p->shared_b ? 0 : p->depth * p->columns),
                      (long long)(p->rows * p->columns));
}

berth_library_code berth_library__cublas(const berth_library_use *use, berth_arena *arena) {
    berth_strbuf out = berth_strbuf_make(arena);
    berth_library__add_loading(&loading, &out);
    add_types(use, &out);
    add_sizes(use, &out);
    for (size_t i = 0; i < sizeof(body) / sizeof(body[0]); ++i) berth_strbuf_add(&out, body[i]);
    return berth_library__stream_code(use, "element", &out);
}
