// A program of the executor "vm" (artifact/vm.h) from a module: byte code, and its segments compiled for the
// shapes that runs can reach, for certain values of what the inputs leave open. It runs without a compiler.
#ifndef BERTH_TOOLKIT_VM_BUILD_H_
#define BERTH_TOOLKIT_VM_BUILD_H_

#include "artifact/program.h"
#include "compiler/compile.h"

// `options->target` is what segments are compiled for; its executor is not looked at.
// `specialisations`: texts "NAME=NUMBER,...". A name is a dimension's (or INPUT.AXIS) or an integer input
// of one element. Numbers of different names hold together, and a name that comes again begins the next
// set: "N=1,N=128" are two of one, "N=1,M=2,N=8,M=9" two of two. "N=1..512" is each value within bounds, with each of
// other bounds of the set; programs that differ in numbers only become one then (compiler/vm/families.h).
// None: there is nothing left open.
// The program is in `arena`, in which `module` is too; rewrites the module. Not inside berth_arena_try.
// Errors: those of berth_vm_emit, berth_vm_walk and berth_compile; INVALID_ARGUMENT a specialisation that is
// none, or a dimension that is left open (with the option that fixes it).
BERTH_MUST_USE berth_status berth_vm_build(berth_arena *arena, berth_module *module,
                                           const berth_compile_options *options,
                                           const char *const *specialisations,
                                           uint32_t specialisation_count,
                                           const berth_program **out_program);

// The same for these shapes alone: `shapes[i]` has an element type and extents per input of the model, and no data; the
// largest come first. What is compiled for them shares kernels and becomes families, as with bounds. Errors: also CANCELLED
// (options->interrupt), between two shapes.
BERTH_MUST_USE berth_status berth_vm_build_shapes(berth_arena *arena, berth_module *module,
                                                  const berth_compile_options *options,
                                                  const berth_tensor *const *shapes, uint32_t count,
                                                  const berth_program **out_program);

// The names in specialisations, in `arena`. Texts that are none are left to berth_vm_build. Not inside
// berth_arena_try.
BERTH_MUST_USE berth_status berth_vm_build_names(berth_arena *arena,
                                                 const char *const *specialisations,
                                                 uint32_t specialisation_count,
                                                 const char *const **out_names,
                                                 uint32_t *out_count);

// Errors: UNSUPPORTED the target has a budget of a memory, which the executor vm does not keep.
BERTH_MUST_USE berth_status berth_vm_refuse_budgets(const berth_multi_target *target);

#endif  // BERTH_TOOLKIT_VM_BUILD_H_
