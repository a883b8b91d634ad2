// Inputs and outputs that stay on the device that uses them. The planner has all of @main's in the host's memory,
// with copies at the border. Where the parts of a model hand values to each other (byte code: what a loop carries,
// states), one that a device alone reads is an input in that device's memory instead, and one that it makes an
// output there, so that nothing is copied between two parts on one device:
//
//   main(%x: f32[4,8] @ cpu:0) { %0 = device_copy(%x) @ opencl:0; %1 = exp(%0) @ opencl:0; return device_copy(%1) @ cpu:0 }
//   main(%x: f32[4,8] @ opencl:0) { %1 = exp(%x) @ opencl:0; return %1 }
//
// Integers and truth values stay with the host, which looks at them: counters, conditions, shapes, indices.
#ifndef BERTH_COMPILER_PASSES_RESIDENT_H_
#define BERTH_COMPILER_PASSES_RESIDENT_H_

#include "ir/graph/graph.h"
#include "target/target.h"

// Attribute of a function, 1: its parameters and results are where their values' devices say.
#define BERTH_ATTR_RESIDENT "resident"

// After inlining, before `append`. Does nothing where devices have memories beside their own (scopes are planned
// later, with the border at the host). Inside berth_arena_try of the module's arena. O(operations and values).
void berth_pass_resident(berth_module *module, berth_func_id main,
                         const berth_multi_target *target);

#endif  // BERTH_COMPILER_PASSES_RESIDENT_H_
