// Which operations the libraries of a target compute: those for which a library was measured to be
// faster than our kernels, on such a device and for the same shape (private to compiler/;
// docs/libraries.md).
#ifndef BERTH_COMPILER_LIBRARIES_CHOOSE_H_
#define BERTH_COMPILER_LIBRARIES_CHOOSE_H_

#include "compiler/compile.h"
#include "compiler/libraries/use.h"

// Of an operation: the library that computes it. Set by the plan, read by the pass layout.
#define BERTH_ATTR_LIBRARY "library"

// Takes back what an earlier plan chose.
void berth_libraries_forget(berth_module *module, berth_func_id main);
// Chooses for the operations of a planned @main, whose entries say then what was compared. Inside
// berth_arena_try.
//   errors: INVALID_ARGUMENT libs of a device names no library of its kind, or libs_policy no policy
BERTH_MUST_USE berth_status berth_libraries_choose(berth_module *module, berth_func_id main,
                                                   const berth_compile_options *options,
                                                   berth_plan *plan);

// The times of operations of @main on one device (of options->target), where a library would compute them
// that was measured: the same choice, before placement. `devices`: where each operation would be; a call whose
// operations are not all on the device is none. Others stay as they are.
void berth_libraries_times(const berth_module *module, berth_func_id main, uint32_t device,
                           const uint32_t *devices, const berth_compile_options *options,
                           berth_arena *scratch, double *ns, berth_cost_figure *figures);

// Per operation of a graph that was planned for the target: the library that computes it, on its own or in
// the same call as an operation before it (bias, sum, relu). Sets these of `names`, one per operation,
// and leaves the others.
void berth_libraries_taken(const berth_module *module, berth_func_id function,
                           const berth_multi_target *target, berth_arena *arena,
                           const char **names);

// What could be measured, each kind of use once: for every library of the target's devices.
typedef struct berth_library_candidate {
    berth_library_use use;
    uint32_t device;
    const char *key;
} berth_library_candidate;
uint32_t berth_libraries_candidates(const berth_module *module, berth_func_id main,
                                    const berth_multi_target *target, berth_arena *arena,
                                    berth_library_candidate **out_candidates);

#endif  // BERTH_COMPILER_LIBRARIES_CHOOSE_H_
