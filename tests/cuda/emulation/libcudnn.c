// A libcudnn for tests without a GPU: convolutions of plain maps of f32, computed when the stream comes to them, as cudnn.h
// (version 9) declares them. BERTH_EMULATION_FAIL (fault.h) makes functions fail.
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/emulation/fault.h"
#include "tests/cuda/emulation/library.h"

enum {
    NOT_INITIALIZED = 1001,
    BAD_PARAM = 2000,
    NOT_SUPPORTED = 3000,
    INTERNAL_ERROR = 4000,
    FAILED = 5000
};

extern int emulated_cudnn_puts;
int emulated_cudnn_puts;

typedef struct map {
    int n, c, h, w;
} map;

typedef struct window {
    int pad[2], stride[2], dilation[2], groups, math;
} window;

typedef struct choice {
    int algorithm, status;
    float time;
    size_t workspace_bytes;
    int determinism, math;
    int reserved[3];
} choice;

typedef struct context {
    void *stream;
} context;

typedef enum job_kind { CONVOLVE, ADD, RELU } job_kind;
typedef struct job {
    job_kind kind;
    map x_map, w_map, y_map;
    window window;
    const float *x, *w;
    float *y;
    void *workspace;
    size_t workspace_bytes;
} job;

#define BEGIN()                                                                                    \
    do {                                                                                           \
        int fault_ = (int)emulated_fault(__func__);                                                \
        if (fault_) return fault_;                                                                 \
    } while (0)

const char *cudnnGetErrorString(int status) {
    switch (status) {
    case NOT_INITIALIZED: return "CUDNN_STATUS_NOT_INITIALIZED";
    case BAD_PARAM: return "CUDNN_STATUS_BAD_PARAM";
    case NOT_SUPPORTED: return "CUDNN_STATUS_NOT_SUPPORTED";
    case INTERNAL_ERROR: return "CUDNN_STATUS_INTERNAL_ERROR";
    default: return "CUDNN_STATUS_EXECUTION_FAILED";
    }
}

int cudnnCreate(context **handle) {
    BEGIN();
    if (!emulated_has_context()) return NOT_INITIALIZED;
    *handle = calloc(1, sizeof(**handle));
    return 0;
}

int cudnnDestroy(context *handle) {
    free(handle);
    return 0;
}

int cudnnSetStream(context *handle, void *stream) {
    BEGIN();
    handle->stream = stream;
    return 0;
}

// ---- descriptions ----

int cudnnCreateTensorDescriptor(map **out) {
    BEGIN();
    *out = calloc(1, sizeof(**out));
    return 0;
}

int cudnnSetTensor4dDescriptor(map *m, int format, int type, int n, int c, int h, int w) {
    BEGIN();
    *m = (map){n, c, h, w};
    return format == 0 && type == 0 && n > 0 && c > 0 && h > 0 && w > 0 ? 0 : BAD_PARAM;
}

int cudnnDestroyTensorDescriptor(map *m) {
    free(m);
    return 0;
}

int cudnnCreateFilterDescriptor(map **out) {
    return cudnnCreateTensorDescriptor(out);
}

int cudnnSetFilter4dDescriptor(map *m, int type, int format, int k, int c, int h, int w) {
    return cudnnSetTensor4dDescriptor(m, format, type, k, c, h, w);
}

int cudnnDestroyFilterDescriptor(map *m) {
    return cudnnDestroyTensorDescriptor(m);
}

int cudnnCreateConvolutionDescriptor(window **out) {
    BEGIN();
    *out = calloc(1, sizeof(**out));
    (*out)->groups = 1;
    return 0;
}

int cudnnSetConvolution2dDescriptor(window *w, int pad_h, int pad_w, int stride_h, int stride_w,
                                    int dilation_h, int dilation_w, int mode, int type) {
    BEGIN();
    window made = {{pad_h, pad_w}, {stride_h, stride_w}, {dilation_h, dilation_w}, w->groups, 0};
    *w = made;
    return mode == 1 && type == 0 && pad_h >= 0 && pad_w >= 0 ? 0 : BAD_PARAM;
}

int cudnnSetConvolutionGroupCount(window *w, int groups) {
    BEGIN();
    w->groups = groups;
    return 0;
}

int cudnnSetConvolutionMathType(window *w, int math) {
    BEGIN();
    w->math = math;
    return math == 0 || math == 3 ? 0 : BAD_PARAM;
}

int cudnnDestroyConvolutionDescriptor(window *w) {
    free(w);
    return 0;
}

int cudnnCreateActivationDescriptor(int **out) {
    BEGIN();
    *out = calloc(1, sizeof(**out));
    return 0;
}

int cudnnSetActivationDescriptor(int *activation, int mode, int nans, double limit) {
    BEGIN();
    *activation = mode;
    return mode == 1 && nans == 1 && limit == 0 ? 0 : BAD_PARAM;
}

int cudnnDestroyActivationDescriptor(int *activation) {
    free(activation);
    return 0;
}

// ---- convolutions ----

static int extent(int input, int kernel, const window *w, int axis) {
    return (input + 2 * w->pad[axis] - w->dilation[axis] * (kernel - 1) - 1) / w->stride[axis] + 1;
}

static bool fits(const map *x, const map *f, const window *w, const map *y) {
    return x->n == y->n && f->n == y->c && f->c * w->groups == x->c && f->n % w->groups == 0 &&
           y->h == extent(x->h, f->h, w, 0) && y->w == extent(x->w, f->w, w, 1);
}

// The first wants more memory than there is, the second fails.
int cudnnGetConvolutionForwardAlgorithm_v7(context *handle, const map *x, const map *f,
                                           const window *w, const map *y, int most, int *count,
                                           choice *out) {
    BEGIN();
    if (!handle || most < 3 || !fits(x, f, w, y)) return BAD_PARAM;
    memset(out, 0, 3 * sizeof(*out));
    out[0].workspace_bytes = (size_t)1 << 40;
    out[1].status = FAILED;
    out[2].algorithm = 1;
    out[2].workspace_bytes = 4096;
    *count = 3;
    return 0;
}

static float convolve_one(const job *j, int n, int k, int row, int column) {
    const map *x = &j->x_map, *f = &j->w_map;
    int first = k / (f->n / j->window.groups) * f->c;
    double sum = 0;
    for (int c = 0; c < f->c; ++c)
        for (int r = 0; r < f->h; ++r)
            for (int s = 0; s < f->w; ++s) {
                int h = row * j->window.stride[0] - j->window.pad[0] + r * j->window.dilation[0];
                int w = column * j->window.stride[1] - j->window.pad[1] + s * j->window.dilation[1];
                if (h < 0 || h >= x->h || w < 0 || w >= x->w) continue;
                sum += (double)j->x[((n * x->c + first + c) * x->h + h) * x->w + w] *
                       (double)j->w[((k * f->c + c) * f->h + r) * f->w + s];
            }
    return (float)sum;
}

static void run(void *user) {
    const job *j = user;
    const map *y = &j->y_map;
    bool per_channel = j->x_map.h == 1 && j->x_map.w == 1 && j->x_map.n == 1;
    if (j->kind == CONVOLVE) memset(j->workspace, 0xee, j->workspace_bytes);
    for (int n = 0; n < y->n; ++n)
        for (int c = 0; c < y->c; ++c)
            for (int h = 0; h < y->h; ++h)
                for (int w = 0; w < y->w; ++w) {
                    int at = ((n * y->c + c) * y->h + h) * y->w + w;
                    if (j->kind == CONVOLVE) j->y[at] = convolve_one(j, n, c, h, w);
                    if (j->kind == ADD) j->y[at] += j->x[per_channel ? c : at];
                    if (j->kind == RELU && j->y[at] < 0) j->y[at] = 0;
                }
}

static int put(const context *handle, const job *j) {
    return emulated_put(handle->stream, run, j, sizeof(*j)) ? 0 : FAILED;
}

int cudnnConvolutionForward(context *handle, const float *alpha, const map *x_map, const float *x,
                            const map *w_map, const float *w, const window *window, int algorithm,
                            void *workspace, size_t bytes, const float *beta, const map *y_map,
                            float *y) {
    BEGIN();
    if (*alpha != 1 || *beta != 0 || algorithm != 1 || !workspace || bytes < 4096) return BAD_PARAM;
    if (!handle->stream || !fits(x_map, w_map, window, y_map)) return BAD_PARAM;
    job j = {CONVOLVE, *x_map, *w_map, *y_map, *window, x, w, y, workspace, bytes};
    __atomic_add_fetch(&emulated_cudnn_puts, 1, __ATOMIC_SEQ_CST);
    return put(handle, &j);
}

int cudnnAddTensor(context *handle, const float *alpha, const map *x_map, const float *x,
                   const float *beta, const map *y_map, float *y) {
    BEGIN();
    bool same = memcmp(x_map, y_map, sizeof(*x_map)) == 0;
    bool per_channel = x_map->n == 1 && x_map->c == y_map->c && x_map->h == 1 && x_map->w == 1;
    if (*alpha != 1 || *beta != 1 || (!same && !per_channel)) return BAD_PARAM;
    job j = {.kind = ADD, .x_map = *x_map, .y_map = *y_map, .x = x, .y = y};
    return put(handle, &j);
}

int cudnnActivationForward(context *handle, const int *activation, const float *alpha,
                           const map *x_map, const float *x, const float *beta, const map *y_map,
                           float *y) {
    BEGIN();
    if (*activation != 1 || *alpha != 1 || *beta != 0 || x != y) return BAD_PARAM;
    job j = {.kind = RELU, .x_map = *x_map, .y_map = *y_map, .x = x, .y = y};
    return put(handle, &j);
}

int cudnnConvolutionBiasActivationForward(context *handle, const float *alpha, const map *x_map,
                                          const float *x, const map *w_map, const float *w,
                                          const window *window, int algorithm, void *workspace,
                                          size_t bytes, const float *beta, const map *z_map,
                                          const float *z, const map *bias_map, const float *bias,
                                          const int *activation, const map *y_map, float *y) {
    const float one = 1, zero = 0;
    BEGIN();
    if (!bias || !z || memcmp(z_map, y_map, sizeof(*z_map)) != 0) return BAD_PARAM;
    int status = cudnnConvolutionForward(handle, alpha, x_map, x, w_map, w, window, algorithm,
                                         workspace, bytes, &zero, y_map, y);
    if (status == 0) status = cudnnAddTensor(handle, &one, bias_map, bias, &one, y_map, y);
    if (status == 0 && *beta != 0) status = cudnnAddTensor(handle, beta, z_map, z, &one, y_map, y);
    return status ? status
                  : cudnnActivationForward(handle, activation, &one, y_map, y, &zero, y_map, y);
}
