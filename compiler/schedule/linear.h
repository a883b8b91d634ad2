// Index expressions as linear forms: constant + sum of coefficient * atom, where an atom is a
// variable or an expression that is not linear (a quotient, a gathered index). What schedules and
// printers ask: where does an access land in memory, with which stride does it move along a loop,
// is an index in range. Floor quotients and remainders are split by the ranges of what they are
// made of: (8*a + b) / 8 = a for b in [0, 8).
#ifndef BERTH_COMPILER_SCHEDULE_LINEAR_H_
#define BERTH_COMPILER_SCHEDULE_LINEAR_H_

#include "ir/tensor/function.h"
#include "ir/tensor/range.h"

#define BERTH_LINEAR_MAX_TERMS 24

typedef struct berth_linear_term {
    berth_expr atom;
    int64_t coefficient;  // never 0
} berth_linear_term;

typedef struct berth_linear {
    int count;
    berth_linear_term terms[BERTH_LINEAR_MAX_TERMS];
    int64_t constant;
} berth_linear;

berth_range berth_linear_range(const berth_tfn *fn, const berth_ranges *ranges,
                               const berth_linear *form);

// The form of a scalar index expression. Adds nodes to `fn` where a quotient has to be split. A
// form that would exceed BERTH_LINEAR_MAX_TERMS is one atom.
berth_linear berth_linear_of(berth_tfn *fn, const berth_ranges *ranges, berth_expr id);
berth_expr berth_linear_expr(berth_tfn *fn, const berth_linear *form);  // back to an expression

// Position of an access in its buffer's storage, in elements. A RAMP index counts as its first
// lane.
berth_linear berth_linear_access(berth_tfn *fn, const berth_ranges *ranges, berth_buf buf,
                                 const berth_expr *indices, int count);

// Whether two forms differ by a constant alone, which is b - a.
bool berth_linear_distance(const berth_tfn *fn, const berth_linear *a, const berth_linear *b,
                           int64_t *out_distance);

// How a form moves when `var` grows by one. *out_linear = false: not by a constant step.
int64_t berth_linear_stride(const berth_tfn *fn, const berth_linear *form, berth_var var,
                            bool *out_linear);

// The largest block by which a position takes a variable apart: k of (… var …) / k or % k in one of
// its terms; 0 = none.
int64_t berth_linear_block(const berth_tfn *fn, const berth_linear *form, berth_var var);

bool berth_tfn_uses_var(const berth_tfn *fn, berth_expr id, berth_var var);
bool berth_tfn_expr_equal(const berth_tfn *fn, berth_expr a, berth_expr b);

#endif  // BERTH_COMPILER_SCHEDULE_LINEAR_H_
