// What a kernel has to do, apart from the device that does it: the key under which measured times
// are kept, and the figures from which the others are predicted.
//
//   berth_work work = berth_work_of_primitive(module, function, arena);
//   // work.key: "conv{strides=[1,1]}(f32[1,64,56,56]:aBcd16b,f32[64,64,3,3]:ABcd16b16a);relu(%0)"
#ifndef BERTH_COMPILER_COST_WORK_H_
#define BERTH_COMPILER_COST_WORK_H_

#include "ir/graph/graph.h"

// Immutable; arena memory.
typedef struct berth_work {
    const char *key;    // operators with attributes, shapes, element types and layouts of a fused
                        // chain; no names: equal keys are equal work
    const char *kind;   // similar work, whose times are fitted together: "conv.depthwise", "matmul"
    berth_dtype dtype;  // of the first operand: which of a device's peaks is the limit
    double flops;       // multiply-adds count as two
    double bytes;       // read and written at least once
    double given_ns;    // what the rules of the device's kind say (compiler/rules.h); 0 = nothing
    // (optional) Key of the one operation that those rules gave it for: what plans ask by.
    const char *planned_key;
} berth_work;

// Floating-point (or integer) operations and bytes that one execution of an operation takes at
// least.
typedef struct berth_op_work {
    double flops;
    double bytes;
} berth_op_work;
berth_op_work berth_op_work_of(const berth_module *module, berth_func_id function, berth_op_id op);

// Of a primitive function (passes/fuse.h) before it is lowered. Inside berth_arena_try of `arena`.
berth_work berth_work_of_primitive(const berth_module *module, berth_func_id function,
                                   berth_arena *arena);
// Of one operation of a graph as if it were such a function alone.
berth_work berth_work_of_op(const berth_module *module, berth_func_id function, berth_op_id op,
                            berth_arena *arena);
// The operation of a primitive function with most of the work: what is fused to it comes with it.
// BERTH_NONE for a function without operations.
berth_op_id berth_work_anchor_of(const berth_module *module, berth_func_id function);

// Works per operation of @main, for the calls of primitive functions that are not lowered yet; NULL
// elsewhere. [operations of @main]
berth_work *const *berth_works_of_main(const berth_module *module, berth_func_id main,
                                       berth_arena *arena);

#endif  // BERTH_COMPILER_COST_WORK_H_
