// Operations as text, run by the reference interpreter.
//
//   eval_case c = eval_begin();
//   eval_op(&c, "softmax", "f32[1,2] 0 0", "axis=1", &y, 1);
//   eval_expect(&y, eval_tensor(&c, "f32[1,2] 0.5 0.5"), 1e-6, "softmax");
//   eval_end(&c);
#ifndef BERTH_TESTS_EVAL_SUPPORT_H_
#define BERTH_TESTS_EVAL_SUPPORT_H_

#include "ir/eval.h"

#define EVAL_MAX_OPERANDS 32

typedef struct eval_case {
    berth_arena *arena;
    berth_module *module;
    berth_func_id main;
} eval_case;

eval_case eval_begin(void);
void eval_end(eval_case *c);

// "f32[2,3] 1 2 3 4 5 6": type, extents, values in row-major order (too few: the last one repeats);
// inf, -inf and nan are values. "f32[2,3] ?7": random values of seed 7. "string[2] 'a b' '\\x00'": strings,
// in which \xHH is a byte.
berth_tensor eval_tensor(eval_case *c, const char *text);
// Tensors separated by ';', "-" = left out. Returns how many.
uint32_t eval_tensors(eval_case *c, const char *text, berth_tensor out[EVAL_MAX_OPERANDS]);

// Attributes separated by spaces: axis=1, alpha=0.5 (a point makes a float), pads=[1,1], x={0.5,1},
// activations=<Relu,Tanh>, to=#f32, mode=linear.
void eval_set_attrs(eval_case *c, berth_attrs *attrs, const char *text);

// One operation on tensors; the status is the caller's.
berth_status eval_try(eval_case *c, berth_op_kind kind, const berth_tensor *inputs,
                      uint32_t input_count, const char *attrs, berth_tensor *outputs,
                      uint32_t output_count);
// The same by name and operand text; fails the test on an error.
void eval_op(eval_case *c, const char *name, const char *operands, const char *attrs,
             berth_tensor *outputs, uint32_t output_count);
// On operands that are tensors already; one result.
berth_tensor eval_on(eval_case *c, const char *name, const berth_tensor *inputs,
                     uint32_t input_count, const char *attrs);

// NULL when type, shape and values agree (|a - b| <= tolerance * (1 + |b|)); else what differs, in
// the case's arena.
const char *eval_differs(eval_case *c, const berth_tensor *got, const berth_tensor *expected,
                         double tolerance);
void eval_expect(eval_case *c, const berth_tensor *got, const berth_tensor *expected,
                 double tolerance, const char *what);

#endif  // BERTH_TESTS_EVAL_SUPPORT_H_
