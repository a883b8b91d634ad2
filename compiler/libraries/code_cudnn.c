// Calls of cuDNN (cudnn.h, versions 8 and 9; https://docs.nvidia.com/deeplearning/cudnn, "cudnn_cnn_infer"): a convolution
// of plain maps with what follows it, its algorithm chosen when the program is opened, of those that the workspace has room for.
#include "compiler/libraries/code.h"

static const berth_library_loading loading = {
    .name = "cuDNN",
    .files = "libcudnn.so.9\0libcudnn.so.8\0",
    .declarations =
        "enum {\n"
#define CUDNN(name, number) "    " #name " = " #number ",\n"
#include "compiler/libraries/nvidia.def"
        "};\n"
        "typedef struct choice {\n"
        "    int algorithm, status;\n"
        "    float time;\n"
        "    size_t workspace_bytes;\n"
        "    int determinism, math_type;\n"
        "    int reserved[3];\n"
        "} choice;\n"
        "static const char *(*cudnnGetErrorString)(int);\n"
        "static int (*cudnnCreate)(void **);\n"
        "static int (*cudnnDestroy)(void *);\n"
        "static int (*cudnnSetStream)(void *, void *);\n"
        "static int (*cudnnCreateTensorDescriptor)(void **);\n"
        "static int (*cudnnSetTensor4dDescriptor)(void *, int, int, int, int, int, int);\n"
        "static int (*cudnnDestroyTensorDescriptor)(void *);\n"
        "static int (*cudnnCreateFilterDescriptor)(void **);\n"
        "static int (*cudnnSetFilter4dDescriptor)(void *, int, int, int, int, int, int);\n"
        "static int (*cudnnDestroyFilterDescriptor)(void *);\n"
        "static int (*cudnnCreateConvolutionDescriptor)(void **);\n"
        "static int (*cudnnSetConvolution2dDescriptor)(void *, int, int, int, int, int, int, int, "
        "int);\n"
        "static int (*cudnnSetConvolutionGroupCount)(void *, int);\n"
        "static int (*cudnnSetConvolutionMathType)(void *, int);\n"
        "static int (*cudnnDestroyConvolutionDescriptor)(void *);\n"
        "static int (*cudnnCreateActivationDescriptor)(void **);\n"
        "static int (*cudnnSetActivationDescriptor)(void *, int, int, double);\n"
        "static int (*cudnnDestroyActivationDescriptor)(void *);\n"
        "static int (*cudnnGetConvolutionForwardAlgorithm_v7)(void *, void *, void *, void *, void "
        "*, int, int *,\n"
        "                                                     choice *);\n"
        "static int (*cudnnConvolutionForward)(void *, const void *, void *, const void *, void *, "
        "const void *, void *,\n"
        "                                      int, void *, size_t, const void *, void *, void "
        "*);\n"
        "static int (*cudnnConvolutionBiasActivationForward)(void *, const void *, void *, const "
        "void *, void *,\n"
        "                                                    const void *, void *, int, void *, "
        "size_t, const void *,\n"
        "                                                    void *, const void *, void *, const "
        "void *, void *, void *,\n"
        "                                                    void *);\n"
        "static int (*cudnnAddTensor)(void *, const void *, void *, const void *, const void *, "
        "void *, void *);\n"
        "static int (*cudnnActivationForward)(void *, void *, const void *, void *, const void *, "
        "const void *, void *,\n"
        "                                     void *);\n",
    .functions =
        "cudnnGetErrorString\0cudnnCreate\0cudnnDestroy\0cudnnSetStream\0cudnnCreateTensorDescripto"
        "r\0"
        "cudnnSetTensor4dDescriptor\0cudnnDestroyTensorDescriptor\0cudnnCreateFilterDescriptor\0"
        "cudnnSetFilter4dDescriptor\0cudnnDestroyFilterDescriptor\0"
        "cudnnCreateConvolutionDescriptor\0cudnnSetConvolution2dDescriptor\0"
        "cudnnSetConvolutionGroupCount\0cudnnSetConvolutionMathType\0"
        "cudnnDestroyConvolutionDescriptor\0cudnnCreateActivationDescriptor\0"
        "cudnnSetActivationDescriptor\0cudnnDestroyActivationDescriptor\0"
        "cudnnGetConvolutionForwardAlgorithm_v7\0cudnnConvolutionForward\0"
        "cudnnConvolutionBiasActivationForward\0cudnnAddTensor\0cudnnActivationForward\0",
    .status_text = "cudnnGetErrorString"};  // numbers of version 9 are others than those of 8

// clang-format off
static const char *const body[] = {
    "enum { MOST = 8 };\n",
    "static void *handle, *map_x, *map_y, *map_bias, *filter, *window, *activation;\n",
    "static choice chosen;\n",
    "static char busy;  /* the stream is a part of the handle */\n",
    "\n",
    "static int make_map(void **out, int n, int c, int h, int w) {\n",
    "    int status = cudnnCreateTensorDescriptor(out);\n",
    "    return status ? status : cudnnSetTensor4dDescriptor(*out, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, n, c, h, w);\n",
    "}\n",
    "\n",
    "static int make_problem(void) {\n",
    "    int status = make_map(&map_x, images, inputs, in_h, in_w);\n",
    "    if (status == 0) status = make_map(&map_y, images, outputs, out_h, out_w);\n",
    "    if (status == 0) status = make_map(&map_bias, 1, outputs, 1, 1);\n",
    "    if (status == 0) status = cudnnCreateFilterDescriptor(&filter);\n",
    "    if (status == 0)\n",
    "        status = cudnnSetFilter4dDescriptor(filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, outputs, inputs / group, kernel_h, kernel_w);\n",
    "    if (status == 0) status = cudnnCreateConvolutionDescriptor(&window);\n",
    "    if (status == 0)\n",
    "        status = cudnnSetConvolution2dDescriptor(window, pad_h, pad_w, stride_h, stride_w, dilation_h, dilation_w,\n",
    "                                                 CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT);\n",
    "    if (status == 0) status = cudnnSetConvolutionGroupCount(window, group);\n",
    "    if (status == 0) status = cudnnSetConvolutionMathType(window, tf32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH);\n",
    "    if (status == 0) status = cudnnCreateActivationDescriptor(&activation);\n",
    "    if (status == 0) status = cudnnSetActivationDescriptor(activation, CUDNN_ACTIVATION_RELU, CUDNN_PROPAGATE_NAN, 0);\n",
    "    return status;\n",
    "}\n",
    "\n",
    "/* They come with the fastest first. */\n",
    "static const char *choose(void) {\n",
    "    choice all[MOST];\n",
    "    int count = 0;\n",
    "    const char *why = said(cudnnGetConvolutionForwardAlgorithm_v7(handle, map_x, filter, window, map_y, MOST, &count, all));\n",
    "    if (why) return why;\n",
    "    for (int i = 0; i < count; ++i) {\n",
    "        if (all[i].status != 0 || all[i].workspace_bytes > workspace_bytes) continue;\n",
    "        chosen = all[i];\n",
    "        return 0;\n",
    "    }\n",
    "    return \"cuDNN has no algorithm for this convolution on this device\";\n",
    "}\n",
    "\n",
    "const char *berth_open(void);\n",
    "const char *berth_open(void) {\n",
    "    const char *why = load();\n",
    "    if (!why) why = said(cudnnCreate(&handle));\n",
    "    if (!why) why = said(make_problem());\n",
    "    return why ? why : choose();\n",
    "}\n",
    "\n",
    "__attribute__((destructor)) static void end(void) {\n",
    "    if (activation) (void)cudnnDestroyActivationDescriptor(activation);\n",
    "    if (window) (void)cudnnDestroyConvolutionDescriptor(window);\n",
    "    if (filter) (void)cudnnDestroyFilterDescriptor(filter);\n",
    "    if (map_bias) (void)cudnnDestroyTensorDescriptor(map_bias);\n",
    "    if (map_y) (void)cudnnDestroyTensorDescriptor(map_y);\n",
    "    if (map_x) (void)cudnnDestroyTensorDescriptor(map_x);\n",
    "    if (handle) (void)cudnnDestroy(handle);\n",
    "}\n",
    "\n",
    "static int put(const float *x, const float *w, const float *bias, const float *sum, float *y, void *workspace) {\n",
    "    const float one = 1, zero = 0;\n",
    "    if (bias && has_relu)  /* all in one */\n",
    "        return cudnnConvolutionBiasActivationForward(handle, &one, map_x, x, filter, w, window, chosen.algorithm,\n",
    "                                                     workspace, workspace_bytes, sum ? &one : &zero, map_y,\n",
    "                                                     sum ? sum : y, map_bias, bias, activation, map_y, y);\n",
    "    int status = cudnnConvolutionForward(handle, &one, map_x, x, filter, w, window, chosen.algorithm, workspace,\n",
    "                                         workspace_bytes, &zero, map_y, y);\n",
    "    if (status == 0 && bias) status = cudnnAddTensor(handle, &one, map_bias, bias, &one, map_y, y);\n",
    "    if (status == 0 && sum) status = cudnnAddTensor(handle, &one, map_y, sum, &one, map_y, y);\n",
    "    if (status == 0 && has_relu) status = cudnnActivationForward(handle, activation, &one, map_y, y, &zero, map_y, y);\n",
    "    return status;\n",
    "}\n",
    "\n",
    "static const char *run(void *stream, const float *x, const float *w, const float *bias, const float *sum, float *y,\n",
    "                       void *workspace) {\n",
    "    while (__atomic_test_and_set(&busy, __ATOMIC_ACQUIRE)) continue;\n",
    "    int status = cudnnSetStream(handle, stream);\n",
    "    if (status == 0) status = put(x, w, bias, sum, y, workspace);\n",
    "    __atomic_clear(&busy, __ATOMIC_RELEASE);\n",
    "    return said(status);\n",
    "}\n",
};
// clang-format on

static void add_sizes(const berth_library_use *use, berth_strbuf *out) {
    const berth_library_convolution *c = &use->convolution;
    const berth_window *w = &c->window;
    berth_strbuf_addf(
        out,
        "enum {\n    images = %lld, inputs = %lld, outputs = %lld, in_h = %lld, in_w = %lld,\n"
        "    out_h = %lld, out_w = %lld, kernel_h = %lld, kernel_w = %lld,\n",
        (long long)c->images, (long long)c->inputs, (long long)c->outputs, (long long)w->input[0],
        (long long)w->input[1], (long long)w->output[0], (long long)w->output[1],
        (long long)w->kernel[0], (long long)w->kernel[1]);
    berth_strbuf_addf(
        out,
        "    pad_h = %lld, pad_w = %lld, stride_h = %lld, stride_w = %lld,\n"
        "    dilation_h = %lld, dilation_w = %lld, group = %lld, has_relu = %d, tf32 = %d,\n"
        "    workspace_bytes = %lld,\n};\n",
        (long long)w->pads_begin[0], (long long)w->pads_begin[1], (long long)w->strides[0],
        (long long)w->strides[1], (long long)w->dilations[0], (long long)w->dilations[1],
        (long long)w->group, use->relu, use->tf32, (long long)use->workspace_bytes);
}

berth_library_code berth_library__cudnn(const berth_library_use *use, berth_arena *arena) {
    berth_strbuf out = berth_strbuf_make(arena);
    berth_library__add_loading(&loading, &out);
    add_sizes(use, &out);
    for (size_t i = 0; i < sizeof(body) / sizeof(body[0]); ++i) berth_strbuf_add(&out, body[i]);
    return berth_library__stream_code(use, "float", &out);
}
