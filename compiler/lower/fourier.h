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
// A length whose stages would be long sums (large prime factors) becomes a cyclic convolution of a
// length M that has only small ones, at least twice as long (Bluestein 1970): n k is half of
// n^2 + k^2 - (k - n)^2, so with w[n] = e^(-+ pi i n^2 / N)
//   X[k] = w[k] sum over n of (x[n] w[n]) conj(w[k - n])
// which is two transforms of length M in stages, the second of conjugated numbers in place of an
// inverse one. After the tables of the stages come
//   chirp     table [2, N]   (part, n)   w
//   spectrum  table [2, M]   (part, k)   the transform of conj(w[|n|]), over M
//
// Accuracy: a stage rounds its sums (of at most 32 terms, unless a factor is a larger prime) to the
// type of the signal. Over 16 random real signals in f32, the root mean square of the error over that
// of the spectrum is 1.6e-7 for N = 512, 1.5e-7 for 1000, 5.8e-7 for the prime 1009 as one sum; sums in f64 that
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
    int64_t factors[BERTH_FOURIER_MAX_STAGES];  // of the length, or of the convolution's
    int64_t convolution;                        // M, or 0: the stages are of the length itself
} berth_fourier;

#define BERTH_FOURIER_MAX_TABLES (BERTH_FOURIER_MAX_STAGES + 2)

// Of a dft or stft; false when the length is not known (a data-dependent operand, a symbolic
// extent). A convolution needs its tables: an operation without any has `convolution` 0.
bool berth_fourier_describe(const berth_module *module, const berth_graph *graph,
                            const berth_op *op, berth_fourier *out_fourier);
// The same as a convolution, where that is less work: what tables are to be made for.
void berth_fourier_convolve(berth_dtype dtype, berth_fourier *fourier);
// Operands after first_table: those of the stages and, of a convolution, two more.
uint32_t berth_fourier_table_count(const berth_fourier *fourier);
// Terms of the sums of a stage: the first stage of a convolution reads zeros beyond.
int64_t berth_fourier_terms(const berth_fourier *fourier, int stage);

// R of a stage: the product of the factors after it.
int64_t berth_fourier_rest(const berth_fourier *fourier, int stage);
// Extents of a table, at most 5; returns how many.
int berth_fourier_table_dims(const berth_fourier *fourier, uint32_t table, int64_t *out_dims);
// A table in double precision, of the extents above; inside berth_arena_try.
double *berth_fourier_table(const berth_fourier *fourier, uint32_t table, berth_arena *arena);

#endif  // BERTH_COMPILER_LOWER_FOURIER_H_
