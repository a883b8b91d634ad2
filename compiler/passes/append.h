// Caches that grow where they are. A decoder gives its cache and a row more: as a concatenation that would
// be a copy of all of it for every token. What the model's caller declared as state is `append` instead
// (compiler/vm/states.c), which knows the most rows that there will be ("capacity"). Its result gets the
// layout of a tensor of that many rows, so that rows keep their places while more come, and only the new
// rows are written: to memory that has the others already (artifact/program.h, `continues`).
//
//   append(%past: f32[1,2,10,16], %new: f32[1,2,1,16]) {axis = 2, capacity = 64} : f32[1,2,11,16]
//   append(%new: f32[1,2,1,16]) {axis = 2, at = 10, capacity = 64} : f32[1,2,11,16]{abCD64c16d}
//
// Whoever reads the result reads it in that layout, or a plain copy where it needs that.
#ifndef BERTH_COMPILER_PASSES_APPEND_H_
#define BERTH_COMPILER_PASSES_APPEND_H_

#include "ir/graph/graph.h"
#include "target/target.h"

// Attribute of a function: per result 1 + the number N of the input "inputN" that it continues, or 0.
#define BERTH_ATTR_CONTINUES "continues"

// Between layout and fuse. An `append` becomes a concatenation where its cache is no input that only it
// reads, its result is none of `main`, it is neither in the host's memory nor stays in a device's, or the rows are more than the
// capacity. Inside berth_arena_try of the module's arena. O(operations and values).
void berth_pass_append(berth_module *module, berth_func_id main, const berth_multi_target *target);

#endif  // BERTH_COMPILER_PASSES_APPEND_H_
