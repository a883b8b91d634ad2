// How a Fourier transform is taken apart, and the tables that its stages multiply by: shared by the
// pass that makes the tables (passes/fourier.c) and the lowering that reads them.
//
// A transform of length N = f R over n = n' R + r and k = k' + f k'' (Cooley and Tukey 1965) is
//   sum over r of W_R^(r k'') times  sum over n' of W_N^(k' (n' R + r)) x[n' R + r]
// so a stage multiplies by a matrix of f x f per r, twiddle factors included, and leaves transforms
// of length R over r, whose results for all k' lie beside each other. Complex numbers are pairs, a
// stage a sum over parts and n': table elements are +-cos and +-sin.
//   stage 0      table [R, parts, f, 2, f]   (r, part, n', part of the result, k')
//   stages after table [R, 2, f, 2, f]       (r, part of the result, k', part, n')
// of its own f and R. Complexity O(N * sum of factors) per line.
//
// Accuracy: a stage rounds its sums (of at most 32 terms, unless a factor is a larger prime) to the
// type of the signal. Over 16 random real signals in f32, the root mean square of the error over that
// of the spectrum is 1.6e-7 for N = 512, 1.5e-7 for 1000, 5.8e-7 for the prime 1009; sums in f64 that
// are rounded once have 2.5e-8, but half as many elements a vector and twice the bytes between stages,
// and ONNX Runtime has 4.2e-7, 8.4e-5 and 7.9e-5.
#ifndef BERTH_COMPILER_LOWER_FOURIER_H_
#define BERTH_COMPILER_LOWER_FOURIER_H_

#include "ir/graph/graph.h"

#define BERTH_FOURIER_MAX_STAGES 16

typedef struct berth_fourier {
    int64_t length;
    int64_t parts;  // of the input: 1 real, 2 complex
    bool inverse;
    bool hermitian;        // the input is the first half of a spectrum, the result real
    uint32_t first_table;  // operand of stage 0's table; there are `stages`, or none
    int stages;
    int64_t factors[BERTH_FOURIER_MAX_STAGES];
} berth_fourier;

// Of a dft or stft; false when the length is not known (a data-dependent operand, a symbolic
// extent).
bool berth_fourier_describe(const berth_module *module, const berth_graph *graph,
                            const berth_op *op, berth_fourier *out_fourier);

// R of a stage: the product of the factors after it.
int64_t berth_fourier_rest(const berth_fourier *fourier, int stage);
// Extents of a stage's table; 5 of them.
void berth_fourier_table_dims(const berth_fourier *fourier, int stage, int64_t *out_dims);
// The table of a stage in double precision, in `out`, of the extents above.
void berth_fourier_table(const berth_fourier *fourier, int stage, double *out);

#endif  // BERTH_COMPILER_LOWER_FOURIER_H_
