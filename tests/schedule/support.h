// Plain definitions like those lowering makes, random data, and running functions by interpreter
// and by compiler.
#ifndef BERTH_TESTS_SCHEDULE_SUPPORT_H_
#define BERTH_TESTS_SCHEDULE_SUPPORT_H_

#include "compiler/codegen/codegen.h"
#include "compiler/schedule/nest.h"
#include "compiler/schedule/schedule.h"
#include "compiler/toolchain/toolchain.h"
#include "ir/tensor/interpreter.h"

#define SUPPORT_MAX_BUFFERS 12

// The state of one test case. Everything lives in the arena.
typedef struct bench_case {
    berth_arena *arena;
    berth_module *module;
    berth_tfn *fn;
    void *buffers[SUPPORT_MAX_BUFFERS];  // inputs random in [-1, 1); outputs filled with NaN
    int64_t element_counts[SUPPORT_MAX_BUFFERS];
} bench_case;

bench_case support_case_create(void);
// The one tensor function of a module in text form (docs/ir.md).
bench_case support_case_parse(const char *text);
void support_case_destroy(bench_case *c);
berth_buf support_param(bench_case *c, const char *name, int rank, const int64_t *dims,
                        const char *layout, berth_buf_role role);
// Floats in [-1, 1), integers of 8 and 16 bits anywhere in their range and often at its ends.
void support_fill(bench_case *c, uint64_t seed);
size_t support_buffer_bytes(const bench_case *c, berth_buf buf);

// y[i, j] = max(sum_k x[i, k] w[k, j] + bias[j], 0); w in the given layout.
void support_build_matmul(bench_case *c, int64_t m, int64_t k, int64_t n, const char *w_layout);

typedef struct conv_shape {
    int64_t ic, oc, oh, ow, kh, kw, stride;  // input is exactly as large as needed
    const char *x_layout, *w_layout, *y_layout;
    bool depthwise;
} conv_shape;
void support_build_conv(bench_case *c, const conv_shape *shape);

// Runs by interpreter into fresh outputs; the results replace the outputs in `buffers`.
berth_status support_interpret(bench_case *c);
// Prints, compiles, loads and runs all kernels of `fn` with random group ranges. `strict`: with the
// project's warnings.
berth_status support_run_compiled(bench_case *c, const berth_target *target, bool strict);
const berth_target *support_target(berth_arena *arena, const char *text);  // "local" = this machine
// Largest |a - b| over max(1, |b|); NaN where one is NaN and the other is not counts as infinite.
double support_difference(const float *a, const float *b, int64_t count);

#endif  // BERTH_TESTS_SCHEDULE_SUPPORT_H_
