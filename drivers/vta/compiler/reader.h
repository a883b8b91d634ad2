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

#endif  // BERTH_DRIVERS_VTA_COMPILER_READER_H_
