// Reading a nest back (nest.h), in two parts: its loops and the linear functions in them
// (reader.c), what it computes (nest.c).
#ifndef BERTH_DRIVERS_VTA_COMPILER_READER_H_
#define BERTH_DRIVERS_VTA_COMPILER_READER_H_

#include "drivers/vta/compiler/nest.h"

enum { BERTH_VTA_MOST_LOOPS = 16, BERTH_VTA_MOST_TERMS = 2 };

// A linear function of the loops' variables.
typedef struct berth_vta_affine {
    int64_t by[BERTH_VTA_MOST_LOOPS];
    int64_t lane;  // times the place in a block of inputs, of operands of the matrix unit
    int64_t constant;
} berth_vta_affine;

typedef struct berth_vta_reader {
    const berth_tfn *fn;
    struct {
        berth_var var;
        int64_t extent;
    } loops[BERTH_VTA_MOST_LOOPS];
    int count;                        // loops over results, then those of the reduction
    int outer;                        // of results
    berth_stmt init, update, result;  // stores; init and update only where there is a reduction
    berth_buf acc;
    int64_t block;  // of the matrix unit that does the reduction; 0 = it does not
    int lane;       // then: the loop over the results of a block,
    int channels;   // and the one over the blocks of channels, which counts channels here
    bool own;       // lanes of operands are those of results: not an operand of the matrix unit
    berth_expr reduced;  // what a reduction goes over, but for products
    // What the result is before it is rounded: integers with scales.
    berth_expr terms[BERTH_VTA_MOST_TERMS];
    double numerators[BERTH_VTA_MOST_TERMS], denominators[BERTH_VTA_MOST_TERMS];
    int term_count;
    berth_vta_nest *out;
} berth_vta_reader;

static inline const berth_expr_node *berth_vta__expr(const berth_vta_reader *r, berth_expr id) {
    return berth_tfn_expr(r->fn, id);
}

BERTH_MUST_USE berth_status berth_vta__refuse(const char *what);

BERTH_MUST_USE berth_status berth_vta__open_loop(berth_vta_reader *r, const berth_stmt_node *loop);
// The loops and the statements in them.
BERTH_MUST_USE berth_status berth_vta__read_statements(berth_vta_reader *r, berth_stmt id);

// False: it is no number, no linear function.
bool berth_vta__constant(const berth_vta_reader *r, berth_expr id, double *out);
bool berth_vta__linear(const berth_vta_reader *r, berth_expr id, berth_vta_affine *out);
bool berth_vta__same(const berth_vta_reader *r, const berth_vta_affine *a,
                     const berth_vta_affine *b);
// Of a load; in the terms of the loop over channels, where an operand of the matrix unit has a block
// of them.
bool berth_vta__index_of(const berth_vta_reader *r, berth_expr load, int dim,
                         berth_vta_affine *out);
bool berth_vta__result_index(const berth_vta_reader *r, int dim, berth_vta_affine *out);

// ---- operands (operands.c) ----

// select(index < extent, value, 0) where the result is filled up to whole blocks: the value.
berth_expr berth_vta__without_fill(const berth_vta_reader *r, berth_expr id);
// The load of an 8-bit (or, for biases, 32-bit) element: casts and zero points of 0 around it.
bool berth_vta__load_of(const berth_vta_reader *r, berth_expr id, berth_expr *out);
// The load of an operand that is `fill` where the window is outside of the input.
bool berth_vta__padded_load(const berth_vta_reader *r, berth_expr id, double fill, berth_expr *out);
// n, c, h, w of input and output, and the window; its loops of channels, rows and columns, -1 = none.
BERTH_MUST_USE berth_status berth_vta__read_window(berth_vta_reader *r, berth_expr load,
                                                   int loops[3]);
// Each channel by itself: sums and maxima.
BERTH_MUST_USE berth_status berth_vta__read_own_window(berth_vta_reader *r, berth_expr load);
// Tensors side by side: r->terms[0].
BERTH_MUST_USE berth_status berth_vta__read_parts(berth_vta_reader *r);
// x[n,c+first,h,w]. False: it is something else.
bool berth_vta__read_slice(berth_vta_reader *r, berth_expr load);
// The operands of the matrix unit in `value`: a block of inputs, a block of weights.
BERTH_MUST_USE berth_status berth_vta__take_product(berth_vta_reader *r, berth_expr value,
                                                    berth_expr *out_x, berth_expr *out_w);
// w[o, c, i, j] with the loops of the window.
bool berth_vta__weights_fit(const berth_vta_reader *r, berth_expr load, const int *loops);

#endif  // BERTH_DRIVERS_VTA_COMPILER_READER_H_
