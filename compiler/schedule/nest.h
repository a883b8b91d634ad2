// Loop nests taken apart: what the transformations of schedules work on. A nest is a list of
// perfectly nested loops with constant extents around a body; a reduction is a body of the form
// that lowering gives to matrix products, convolutions and pools. Transformations change the list
// and substitute in the body; berth_nest_emit puts the loops back.
//
//   berth_nest nest;
//   if (berth_nest_parse(fn, stmt, &nest)) {
//       BERTH_TRY(berth_schedule_split(fn, &nest, 1, 8));      // j -> j_o, j_i
//       BERTH_TRY(berth_schedule_reorder(fn, &nest, 1, 0));    // j_o outermost
//       stmt = berth_nest_emit(fn, &nest);
//   }
//
// All need a berth_tfn that only one thread builds; errors are FAILED_PRECONDITION with the reason.
#ifndef BERTH_COMPILER_SCHEDULE_NEST_H_
#define BERTH_COMPILER_SCHEDULE_NEST_H_

#include "compiler/schedule/decisions.h"
#include "compiler/schedule/linear.h"
#include "ir/tensor/intrinsic.h"

#define BERTH_NEST_MAX_LOOPS 16

typedef struct berth_nest_loop {
    berth_var var;
    int64_t extent;
    berth_loop_kind kind;
} berth_nest_loop;

typedef struct berth_nest {
    berth_nest_loop loops[BERTH_NEST_MAX_LOOPS];  // outermost first
    int count;
    berth_stmt body;
} berth_nest;

// acc = init; for the loops of `loops`: acc = update; then `epilogue` (which reads acc).
typedef struct berth_reduction {
    berth_buf acc;  // rank-0 register
    berth_expr init;
    berth_nest loops;  // body: the one store to acc
    berth_expr update;
    berth_stmt epilogue[8];
    int epilogue_count;
} berth_reduction;

// Takes loops off `stmt` as long as each holds nothing but the next one. False when there is no
// loop.
bool berth_nest_parse(const berth_tfn *fn, berth_stmt stmt, berth_nest *out_nest);
berth_stmt berth_nest_emit(berth_tfn *fn,
                           const berth_nest *nest);  // loops [first, count) around the body
bool berth_reduction_parse(const berth_tfn *fn, berth_stmt body, berth_reduction *out_reduction);
berth_stmt berth_reduction_emit(berth_tfn *fn, const berth_reduction *reduction);
// Adds the loops of a nest that is not in the function's body (any more, or yet).
berth_ranges berth_ranges_with(const berth_tfn *fn, const berth_ranges *ranges,
                               const berth_nest *nest);

// i = i_o * factor + i_i. The factor must divide the extent.
BERTH_MUST_USE berth_status berth_schedule_split(berth_tfn *fn, berth_nest *nest, int loop,
                                                 int64_t factor);
// The variable of a loop counts from `first`: i = i' + first.
void berth_nest_shift(berth_tfn *fn, berth_nest *nest, int loop, int64_t first);
// Loops `loop` and loop + 1 become one.
BERTH_MUST_USE berth_status berth_schedule_fuse(berth_tfn *fn, berth_nest *nest, int loop);
// Moves loop `from` to position `to`. Its iterations must be independent of each other: it is parallel, or no
// iteration of the nest reads what another writes. (Iterations that share one of a parallel loop keep their order.)
BERTH_MUST_USE berth_status berth_schedule_reorder(berth_tfn *fn, berth_nest *nest, int from,
                                                   int to);
// [0, at) in *nest, the rest (a copy with its own body) in *out_rest.
BERTH_MUST_USE berth_status berth_schedule_peel(berth_tfn *fn, berth_nest *nest, int loop,
                                                int64_t at, berth_nest *out_rest);
// Replaces a loop by copies of the body. At most 64 iterations.
BERTH_MUST_USE berth_status berth_schedule_unroll(berth_tfn *fn, berth_nest *nest, int loop);
// Marks a loop parallel. Iterations must be independent.
BERTH_MUST_USE berth_status berth_schedule_parallel(berth_tfn *fn, berth_nest *nest, int loop);

// True when no iteration of the nest reads what another writes: buffers that the body stores to are
// either allocated in it or never loaded in it.
bool berth_nest_is_independent(const berth_tfn *fn, const berth_nest *nest);

// Schedules the loop nests of a function one by one: `schedule` returns what a nest becomes (a
// sequence of parallel loops: several nests), 0 = it stays. Nests whose iterations depend on each
// other stay. fn->decisions (NULL = none are given, and nobody looks at those that are made) has an
// entry per nest. Errors: UNSUPPORTED for symbolic dimensions; INVALID_ARGUMENT a given decision that
// is not possible; those of transformations, but for the answer that they do not fit.
typedef berth_stmt (*berth_schedule_nest_fn)(berth_tfn *fn, const berth_nest *nest,
                                             const void *user);
BERTH_MUST_USE berth_status berth_schedule_nests(berth_tfn *fn, berth_schedule_nest_fn schedule,
                                                 const void *user);
// The same, and `dependent` is given nests whose iterations depend on each other: only those of one iteration of the
// parallel loops do, and they keep their order.
BERTH_MUST_USE berth_status berth_schedule_nests_with(berth_tfn *fn,
                                                      berth_schedule_nest_fn schedule,
                                                      berth_schedule_nest_fn dependent,
                                                      const void *user);
uint32_t berth_schedule_nest_count(const berth_tfn *fn);

// Replaces one variable in an expression or statement.
berth_expr berth_replace_var(berth_tfn *fn, berth_expr id, berth_var var, berth_expr with);
berth_stmt berth_replace_var_stmt(berth_tfn *fn, berth_stmt id, berth_var var, berth_expr with);

// Rebuilds an expression with loads replaced: `replace` returns the new expression for a load (its
// indices already rewritten), or 0 to keep it.
typedef berth_expr (*berth_replace_load_fn)(berth_tfn *fn, berth_expr load, void *user);
berth_expr berth_replace_loads(berth_tfn *fn, berth_expr id, berth_replace_load_fn replace,
                               void *user);

// ---- vectors ------------------------------------------------------------------------------------

// Whether vectors of such elements can be loaded, stored and cast.
bool berth_dtype_has_vectors(berth_dtype dtype);

// The value in `lanes` iterations of `var` at once, var counting from 0 (its other parts are in
// other variables); 0 when that cannot be expressed: an access that jumps unevenly, a type without
// vectors, a load under a varying condition.
//   acc, marker: loads of `acc` become the vector `marker`; BERTH_NONE and 0 = none
berth_expr berth_vectorize_expr(berth_tfn *fn, berth_expr id, berth_var var, uint16_t lanes,
                                berth_buf acc, berth_expr marker);
berth_stmt berth_vectorize_store(berth_tfn *fn, berth_stmt store, berth_var var, uint16_t lanes,
                                 berth_buf acc, berth_expr marker);
// The same with sums, differences and products of f64 in vectors, too: of register tiles on processor cores, whose
// code generator has these and no more.
berth_expr berth_vectorize_tile_expr(berth_tfn *fn, berth_expr id, berth_var var, uint16_t lanes,
                                     berth_buf acc, berth_expr marker);
// `ranges` knows the variables around the store: conditions on indices become masks then, and what lies in its buffer
// is loaded whatever they say.
berth_stmt berth_vectorize_tile_store(berth_tfn *fn, berth_stmt store, const berth_ranges *ranges,
                                      berth_var var, uint16_t lanes, berth_buf acc,
                                      berth_expr marker);
// Whether the loads of a value read next to each other in memory what iterations of `var` read one
// after the other, or stay at one element. `ranges` must have `var`.
bool berth_loads_are_contiguous(berth_tfn *fn, const berth_ranges *ranges, berth_expr value,
                                berth_var var);
// The same for all that a store loads, and it writes next to each other.
bool berth_store_is_contiguous(berth_tfn *fn, const berth_ranges *ranges, berth_stmt store,
                               berth_var var);
// The loop at `loop` must be innermost, with extent `lanes`, and hold only stores (independent of
// each other).
BERTH_MUST_USE berth_status berth_schedule_vectorize(berth_tfn *fn, berth_nest *nest);
// The same for a language that has vectors of f64.
BERTH_MUST_USE berth_status berth_schedule_vectorize_wide(berth_tfn *fn, berth_nest *nest);

// ---- register tiles -----------------------------------------------------------------------------

// The last `tile_loops` loops of the nest become a tile of accumulators in registers: acc[tile];
// init; reduction outermost; tile unrolled; epilogue. The last one has `lanes` iterations and
// becomes vectors (lanes 1: scalars).
//   valid: columns (last two tile loops together) that exist; the rest is computed, but the
//   epilogue leaves it out.
//          0 = all
BERTH_MUST_USE berth_status berth_schedule_register_tile(berth_tfn *fn, berth_nest *nest,
                                                         int tile_loops, uint16_t lanes,
                                                         int64_t valid);
// The same with an intrinsic as the step of the reduction (tensorize.h): the last tile loop has as
// many iterations as its result has lanes, the innermost loop of the reduction its depth.
BERTH_MUST_USE berth_status berth_schedule_intrinsic_tile(berth_tfn *fn, berth_nest *nest,
                                                          int tile_loops, berth_intrinsic id,
                                                          int64_t valid);
// The same with an intrinsic of a matrix unit: a multiple of 16 rows, 16 lanes, and a sum whose last loops are of
// 16 and of 4 terms. Sums start at 0 and go through memory into the epilogue.
BERTH_MUST_USE berth_status berth_schedule_unit_tile(berth_tfn *fn, berth_nest *nest,
                                                     int tile_loops, berth_intrinsic id,
                                                     int64_t valid);

#endif  // BERTH_COMPILER_SCHEDULE_NEST_H_
