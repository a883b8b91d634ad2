// Arithmetic of dimensions. A dimension (ir/module.h) is an extent, or a symbol; the name of a symbol
// may be an expression over other symbols, in a canonical form, so that equal expressions are equal
// symbols: "=2*N+1", "=floordiv(H+1,2)". Shapes print them without the "=": f32[2*N+1,64].
//
//   expression  sums of products of integers, symbols, and
//               floordiv(a,b) mod(a,b) min(a,b) max(a,b) ceildiv(a,b)
//   symbols     letters, digits, '_' and '.', not beginning with a digit; other names in '...'
//
// The canonical form is a polynomial: terms sorted by degree, then by name; floordiv by a number
// holds what the number does not divide. Symbols stand for extents, which are not negative; divisors
// are positive. What would grow beyond some terms, or overflows, is BERTH_DIM_UNKNOWN ("?"), as is
// every operation on that. Functions that make dimensions intern names: inside berth_arena_try of the
// module's arena.
#ifndef BERTH_IR_DIM_H_
#define BERTH_IR_DIM_H_

#include "ir/module.h"

typedef enum berth_dim_op {
    BERTH_DIM_ADD,
    BERTH_DIM_SUB,
    BERTH_DIM_MUL,
    BERTH_DIM_FLOORDIV,  // b > 0
    BERTH_DIM_CEILDIV,   // b > 0
    BERTH_DIM_MOD,       // b > 0
    BERTH_DIM_MIN,
    BERTH_DIM_MAX,
} berth_dim_op;

int64_t berth_dim_combine(berth_module *module, berth_dim_op op, int64_t a, int64_t b);
// a * factor + summand; summand may be negative.
int64_t berth_dim_scale(berth_module *module, int64_t a, int64_t factor, int64_t summand);

// Whether a symbol is more than a name.
bool berth_dim_is_expression(const berth_module *module, int64_t dim);
// "2*N+1", "N", "12", "?".
void berth_dim_print(const berth_module *module, int64_t dim, berth_strbuf *out);
// Reads such a text, in any order and with spaces. Errors: INVALID_ARGUMENT.
BERTH_MUST_USE berth_status berth_dim_parse(berth_module *module, const char *text, size_t length,
                                            int64_t *out_dim);

// What symbols stand for: a dimension, or BERTH_DIM_UNKNOWN to keep the symbol.
typedef int64_t (*berth_dim_lookup)(void *user, const char *symbol);
// The dimension with its symbols replaced; an extent when all are.
int64_t berth_dim_substitute(berth_module *module, int64_t dim, berth_dim_lookup lookup,
                             void *user);

// The extent that a dimension is for given extents of its symbols, without a change of the module.
// False when a symbol has none (`lookup` gives BERTH_DIM_UNKNOWN), or the result is none. Inside
// berth_arena_try of `scratch`.
bool berth_dim_evaluate(const berth_module *module, int64_t dim, berth_dim_lookup lookup,
                        void *user, berth_arena *scratch, int64_t *out_extent);

// factor * symbol + summand, factor > 0: what an extent says of the symbol that it follows from.
typedef struct berth_dim_linear {
    const char *symbol;  // in the arena that was given
    int64_t factor, summand;
} berth_dim_linear;

// False where the dimension is of another form. A symbol is one, too. Inside berth_arena_try of `arena`.
bool berth_dim_read_linear(const berth_module *module, int64_t dim, berth_arena *arena,
                           berth_dim_linear *out);
// What the symbol is where the dimension has that extent; -1: no extent of it gives that.
int64_t berth_dim_linear_solve(const berth_dim_linear *linear, int64_t extent);

#endif  // BERTH_IR_DIM_H_
