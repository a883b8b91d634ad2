// External functions as kernels (private to compiler/): who can run one, what a call of it costs, and
// the source that calls it. docs/external.md says how the code is called.
#ifndef BERTH_COMPILER_EXTERNAL_H_
#define BERTH_COMPILER_EXTERNAL_H_

#include "compiler/codegen/codegen.h"
#include "ir/external.h"
#include "ir/graph/graph.h"
#include "target/target.h"

// Why devices of this kind do not run the function; NULL = they do.
const char *berth_external_refusal(const berth_module *module, berth_func_id function,
                                   berth_device_kind kind, berth_arena *arena);

// Why kernels on devices of this kind cannot call the function (docs/external.md, Calls inside tensor
// functions); NULL = they can. A tensor function: why one that it calls cannot be called.
const char *berth_external_call_refusal(const berth_module *module, berth_func_id function,
                                        berth_device_kind kind, berth_arena *arena);
// What the text of a kernel needs before it calls functions: sources with their places for the compiler's
// messages, declarations of object code, the table of symbols in shared libraries.
void berth_external_add_callees(const berth_module *module, const berth_func_id *functions,
                                uint32_t count, berth_arena *arena, berth_strbuf *out);
// What stands before the parenthesis where such a kernel calls `functions[index]`.
const char *berth_external_callee(const berth_module *module, const berth_func_id *functions,
                                  uint32_t index, berth_arena *arena);
// Whether the function is known to kernels by its own symbol, which then only one of them may have.
bool berth_external_has_symbol(const berth_module *module, berth_func_id function);
// The object code of a function, data NULL = it has none.
berth_object_code berth_external_object(const berth_module *module, berth_func_id function);
// "@f with @halve, language "c"", where the tensor function @f calls external code; else NULL.
const char *berth_external_label_of_calls(const berth_module *module, const berth_tfn *fn,
                                          berth_arena *arena);

// The external function that an operation calls, or BERTH_NONE.
berth_func_id berth_external_called(const berth_module *module, const berth_op *op);

// The operators that an operation stands for, and whose library computes them where it is a call of a
// function with the attribute "library": "Conv+Relu by dnnl". As long as the module, or in the arena.
const char *berth_external_operators(const berth_module *module, const berth_op *op,
                                     berth_arena *arena);

// Attributes of the function that say what a call costs; where they are missing, the figures stay.
//   flops = 2.0e9, bytes = 3.0e6, time_ns = 1.5e5 (by which the others do not count)
void berth_external_cost(const berth_module *module, berth_func_id function, double *flops,
                         double *bytes, double *time_ns);

typedef struct berth_external_code {
    berth_codegen_result code;  // one kernel, whose buffers are operands, then results, by number
    const char *label;          // "@gelu, language \"c\""
    bool of_host;               // C of the host of a device of another kind, whose queues it fills
} berth_external_code;

// The code of one call in `graph`, whose operands and results have static types. `entry`: the
// kernel's name where the language leaves it open. Inside berth_arena_try.
// Errors: UNSUPPORTED, INVALID_ARGUMENT, FAILED_PRECONDITION, each naming the function.
BERTH_MUST_USE berth_status berth_external_print(const berth_module *module,
                                                 const berth_graph *graph, const berth_op *call,
                                                 const char *entry, berth_external_code *out_code);

#endif  // BERTH_COMPILER_EXTERNAL_H_
