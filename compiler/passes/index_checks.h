// What a run must look at before its results are good: the indices of operations that pick elements by
// values that only the run knows.
//
// Kernels clamp such indices, so that they stay inside their buffers; ONNX has an index outside of its
// dimension be an error. The pass gives the host each list of indices that may be out of range: one that
// is an input of @main is there anyway; another becomes one more result of @main, after its own, with a
// copy to the host where another device makes it. Packaging makes berth_program_check records of them
// (artifact/program.h), and a session reads these once, after the steps of a run. Indices that cannot be
// out of range (of top_k, arg_max, clip, a narrow type, ...) are left out, and constant ones were checked
// before (check.h). Programs for the executor "aot" have no checks.
//
// Runs on main once layouts are chosen, before groups are fused: what it needs is then a value of its own.
#ifndef BERTH_COMPILER_PASSES_INDEX_CHECKS_H_
#define BERTH_COMPILER_PASSES_INDEX_CHECKS_H_

#include "artifact/program.h"
#include "ir/graph/graph.h"
#include "target/target.h"

// Of a gather that a composition of import made: none of its indices is out of range.
#define BERTH_ATTR_IN_RANGE "in_range"

// Inside berth_arena_try of the module's arena. O(operations).
void berth_pass_check_indices(berth_module *module, berth_func_id main,
                              const berth_multi_target *target);

// What the pass left with main.
typedef struct berth_index_checks {
    uint32_t result_count;  // of main without those that it added
    uint32_t count;
    const berth_program_check *checks;  // `tensor` is that of no program yet, but
    const int64_t *sources;             // per check: a result of main, or -1 - parameter
} berth_index_checks;

// In `arena`. Without the pass, none. Errors: INVALID_ARGUMENT the attributes, which came from a text,
// are of no checks.
BERTH_MUST_USE berth_status berth_index_checks_of(const berth_module *module, berth_func_id main,
                                                  berth_arena *arena, berth_index_checks *out);

#endif  // BERTH_COMPILER_PASSES_INDEX_CHECKS_H_
