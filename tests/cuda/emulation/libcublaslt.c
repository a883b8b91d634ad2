// A libcublasLt for tests without a GPU: refuses what cublasLt.h (CUDA 13.0) does not allow, and computes when the stream
// comes to it. BERTH_EMULATION_FAIL (fault.h) makes functions fail with a cublasStatus_t.
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/emulation/fault.h"
#include "tests/cuda/emulation/library.h"

enum { INVALID = 7, FAILED = 13, NOT_SUPPORTED = 15 };
enum { COMPUTE_32F = 68, COMPUTE_FAST_TF32 = 77, COLUMNS_FIRST = 0 };

// How often products were put into a stream, and how often they were computed: a graph computes again what was put once.
extern int emulated_cublas_puts, emulated_cublas_products;
int emulated_cublas_puts, emulated_cublas_products;

typedef struct problem {
    int compute, scale, across_a, across_b;
    uint32_t epilogue;
    const void *bias;
} problem;

typedef struct layout {
    int type;
    uint64_t rows, columns;
    int64_t first;  // leading dimension
    int32_t count;
    int64_t stride;
} layout;

typedef struct preference {
    uint64_t workspace;
    uint32_t alignments[4];
} preference;

typedef struct choice {
    uint64_t algorithm[8];
    size_t workspace_bytes;
    int status;
    float waves;
    int reserved[4];
} choice;

typedef struct job {
    problem problem;
    layout a_layout, b_layout, c_layout, d_layout;
    const void *a, *b, *c;
    void *d, *workspace;
    size_t workspace_bytes;
    float alpha, beta;
} job;

#define BEGIN()                                                                                    \
    do {                                                                                           \
        int fault_ = (int)emulated_fault(__func__);                                                \
        if (fault_) return fault_;                                                                 \
    } while (0)

int cublasLtCreate(void **handle) {
    BEGIN();
    if (!emulated_has_context()) return 1;
    *handle = malloc(1);
    return 0;
}

int cublasLtDestroy(void *handle) {
    free(handle);
    return 0;
}

int cublasLtMatmulDescCreate(problem **out, int compute, int scale) {
    BEGIN();
    if ((compute != COMPUTE_32F && compute != COMPUTE_FAST_TF32) || scale != 0) return INVALID;
    *out = calloc(1, sizeof(**out));
    (*out)->compute = compute;
    (*out)->scale = scale;
    (*out)->epilogue = 1;
    return 0;
}

int cublasLtMatmulDescDestroy(problem *p) {
    free(p);
    return 0;
}

int cublasLtMatmulDescSetAttribute(problem *p, int attribute, const void *value, size_t bytes) {
    BEGIN();
    void *to = attribute == 3   ? (void *)&p->across_a
               : attribute == 4 ? (void *)&p->across_b
               : attribute == 7 ? (void *)&p->epilogue
               : attribute == 8 ? (void *)&p->bias
                                : NULL;
    if (!p || !to || bytes != (attribute == 8 ? sizeof(void *) : 4)) return INVALID;
    memcpy(to, value, bytes);
    return 0;
}

int cublasLtMatrixLayoutCreate(layout **out, int type, uint64_t rows, uint64_t columns,
                               int64_t first) {
    BEGIN();
    if ((type != 0 && type != 2 && type != 14) || !rows || !columns || first < (int64_t)rows)
        return INVALID;
    *out = calloc(1, sizeof(**out));
    **out = (layout){.type = type, .rows = rows, .columns = columns, .first = first, .count = 1};
    return 0;
}

int cublasLtMatrixLayoutDestroy(layout *l) {
    free(l);
    return 0;
}

int cublasLtMatrixLayoutSetAttribute(layout *l, int attribute, const void *value, size_t bytes) {
    BEGIN();
    if (!l || (attribute == 5 && bytes != 4) || (attribute == 6 && bytes != 8)) return INVALID;
    if (attribute == 5)
        memcpy(&l->count, value, bytes);
    else if (attribute == 6)
        memcpy(&l->stride, value, bytes);
    else
        return INVALID;
    return 0;
}

int cublasLtMatmulPreferenceCreate(preference **out) {
    BEGIN();
    *out = calloc(1, sizeof(**out));
    for (int i = 0; i < 4; ++i) (*out)->alignments[i] = 256;
    return 0;
}

int cublasLtMatmulPreferenceDestroy(preference *p) {
    free(p);
    return 0;
}

int cublasLtMatmulPreferenceSetAttribute(preference *p, int attribute, const void *value,
                                         size_t bytes) {
    BEGIN();
    if (attribute == 1 && bytes == 8)
        memcpy(&p->workspace, value, bytes);
    else if (attribute >= 5 && attribute <= 8 && bytes == 4)
        memcpy(&p->alignments[attribute - 5], value, bytes);
    else
        return INVALID;
    return 0;
}

// rows and columns of the operand as it is multiplied.
static uint64_t rows_of(const layout *l, int across) {
    return across ? l->columns : l->rows;
}

static uint64_t columns_of(const layout *l, int across) {
    return across ? l->rows : l->columns;
}

static bool fits(const problem *p, const layout *a, const layout *b, const layout *c,
                 const layout *d) {
    const layout *all[] = {a, b, c, d};
    for (int i = 0; i < 4; ++i)
        if (!all[i] || all[i]->type != a->type || all[i]->count != a->count) return false;
    bool types = p->compute == COMPUTE_32F || a->type == 0;
    bool known = (p->epilogue & ~6u) == 0 || p->epilogue == 1;
    return types && known && rows_of(a, p->across_a) == d->rows &&
           columns_of(b, p->across_b) == d->columns &&
           columns_of(a, p->across_a) == rows_of(b, p->across_b) && c->rows == d->rows &&
           c->columns == d->columns;
}

// A choice is for this problem alone.
static uint64_t name_of(const problem *p, const layout *a, const layout *b, const layout *d) {
    uint64_t parts[] = {(uint64_t)p->compute,
                        (uint64_t)p->across_a,
                        (uint64_t)p->across_b,
                        p->epilogue,
                        a->rows,
                        a->columns,
                        b->rows,
                        b->columns,
                        d->rows,
                        d->columns,
                        (uint64_t)a->type,
                        (uint64_t)d->count};
    uint64_t name = 1469598103934665603u;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); ++i)
        name = (name ^ parts[i]) * 1099511628211u;
    return name;
}

int cublasLtMatmulAlgoGetHeuristic(void *handle, const problem *p, const layout *a, const layout *b,
                                   const layout *c, const layout *d, const preference *wanted,
                                   int most, choice *out, int *count) {
    BEGIN();
    if (!handle || most < 1 || !fits(p, a, b, c, d) || ((p->epilogue & 4) && !p->bias))
        return INVALID;
    *count = 0;
    memset(out, 0, sizeof(*out));
    if (getenv("BERTH_EMULATION_NO_ALGORITHM")) return 0;
    out->algorithm[0] = name_of(p, a, b, d);
    out->workspace_bytes = (size_t)wanted->workspace;
    *count = 1;
    return 0;
}

static int64_t place(const layout *l, int across, uint64_t row, uint64_t column) {
    return across ? (int64_t)column + (int64_t)row * l->first
                  : (int64_t)row + (int64_t)column * l->first;
}

static void compute_one(const job *j, int64_t batch, uint64_t row, uint64_t column) {
    const problem *p = &j->problem;
    int type = j->d_layout.type;
    size_t bytes = emulated_element_bytes(type);
    const char *a = (const char *)j->a + (size_t)(batch * j->a_layout.stride) * bytes;
    const char *b = (const char *)j->b + (size_t)(batch * j->b_layout.stride) * bytes;
    double sum = 0;
    for (uint64_t i = 0; i < columns_of(&j->a_layout, p->across_a); ++i)
        sum += emulated_get(a, type, place(&j->a_layout, p->across_a, row, i)) *
               emulated_get(b, type, place(&j->b_layout, p->across_b, i, column));
    sum *= (double)j->alpha;
    int64_t at = batch * j->d_layout.stride + place(&j->d_layout, 0, row, column);
    if (j->beta != 0) sum += (double)j->beta * emulated_get(j->c, type, at);
    if (p->epilogue & 4) sum += emulated_get(p->bias, type, (int64_t)row);
    if ((p->epilogue & 2) && sum < 0) sum = 0;
    emulated_set(j->d, type, at, sum);
}

static void compute(void *user) {
    const job *j = user;
    memset(j->workspace, 0xee, j->workspace_bytes);  // it may do that
    for (int64_t n = 0; n < j->d_layout.count; ++n)
        for (uint64_t c = 0; c < j->d_layout.columns; ++c)
            for (uint64_t r = 0; r < j->d_layout.rows; ++r) compute_one(j, n, r, c);
    __atomic_add_fetch(&emulated_cublas_products, 1, __ATOMIC_SEQ_CST);
}

int cublasLtMatmul(void *handle, const problem *p, const float *alpha, const void *a,
                   const layout *al, const void *b, const layout *bl, const float *beta,
                   const void *c, const layout *cl, void *d, const layout *dl,
                   const uint64_t *algorithm, void *workspace, size_t workspace_bytes,
                   void *stream) {
    BEGIN();
    if (!handle || !stream || !a || !b || !c || !d || !emulated_has_context()) return INVALID;
    if (!fits(p, al, bl, cl, dl) || !algorithm || algorithm[0] != name_of(p, al, bl, dl))
        return INVALID;
    if (!workspace || (uintptr_t)workspace % 16) return INVALID;
    job j = {*p, *al, *bl, *cl, *dl, a, b, c, d, workspace, workspace_bytes, *alpha, *beta};
    __atomic_add_fetch(&emulated_cublas_puts, 1, __ATOMIC_SEQ_CST);
    return emulated_put(stream, compute, &j, sizeof(j)) ? 0 : FAILED;
}
