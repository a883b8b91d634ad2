// One operator case as text, lowered and interpreted beside the reference interpreter.
//
//   "conv | f32[1,3,8,8]{aBcd8b} f32[4,3,3,3] - | pads=1,1,1,1 auto_pad=NOTSET alpha=0.5 |
//   {aBcd8b}"
//
// Fields: operation | operands | attributes | results (optional; "-" = unused result, "{tag}" or
// "." = a result with that layout). Operands: type[dims]{layout}, random values; "=a,b,..." =
// constant of these values; "!" = constant of random values; "~a,b,..." = parameter with these
// values; "-" = left out. Attributes: integers, lists of integers, floats (with a point) or words.
#ifndef BERTH_TESTS_LOWER_OP_CASE_H_
#define BERTH_TESTS_LOWER_OP_CASE_H_

#include "compiler/lower/lower.h"
#include "target/target.h"

// NULL when the lowered function computes what berth_eval_op does; else what differs, in `arena`.
//   target: when not NULL, the function is scheduled for it before it runs
const char *op_case_run(const char *text, const berth_target *target, berth_arena *arena);

// The same within a tolerance, relative to 1 + |expected| (0: the same numbers, and of NaN that it
// is one). What fails begins with "build:", "lower:", "eval:" or "interpret:".
const char *op_case_compare(const char *text, const berth_target *target, double tolerance,
                            berth_arena *arena);

// Builds the function of a case only: @main, with the operands that are no constants as parameters.
berth_status op_case_build(const char *text, berth_module *module, berth_func_id *out_function);

// The same; out_given[i] are the values that the case gives to parameter i (dtype NONE = any will
// do), for up to 10.
berth_status op_case_build_given(const char *text, berth_module *module,
                                 berth_func_id *out_function, berth_tensor *out_given);

// NULL when `got` is `expected` within a tolerance as above, or what differs.
const char *op_case_differ(const berth_tensor *expected, const berth_tensor *got, uint32_t result,
                           double tolerance, berth_arena *arena);

// Lowers `function` and compares with berth_eval_op on random parameters (`seed`). Types may have
// layouts.
const char *compare_function(berth_module *module, berth_func_id function,
                             const berth_tensor *given, const berth_target *target, uint64_t seed,
                             double tolerance, berth_arena *arena);

// The scheduled function of a case. Errors: what build, lowering or the schedule says.
berth_status op_case_schedule(const char *text, const berth_target *target, berth_arena *arena,
                              const berth_tfn **out_fn);
// Where it is set, what compares runs scheduled functions through it in place of the interpreter:
// buffers by parameter.
typedef berth_status (*op_case_runner)(const berth_tfn *fn, void *const *buffers,
                                       berth_arena *arena);
void op_case_set_runner(op_case_runner runner);

// Calls body with the default device of a target in short form.
void with_target(const char *text, void (*body)(const berth_target *target));

#endif  // BERTH_TESTS_LOWER_OP_CASE_H_
