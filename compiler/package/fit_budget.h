// Plans of memories that cannot hold all that a program has (private to compiler/).
//
// A memory that is over its budget is made to fit by three means, each where it is predicted to take the
// least time: constants are read again in every run (stream.h), values that wait while the memory is
// full leave for host memory and come back (spill.c), or are computed again when they are wanted
// (recompute.c).
#ifndef BERTH_COMPILER_PACKAGE_FIT_BUDGET_H_
#define BERTH_COMPILER_PACKAGE_FIT_BUDGET_H_

#include "compiler/package/stream.h"
#include "compiler/package/value_moves.h"

// Makes every memory with a budget of its own meet it. A memory without one is left as it is: that a
// device is too small is no wish to be slow. Lifetimes and the order of steps must be known; places
// are planned anew afterwards. Errors: OUT_OF_MEMORY when a memory cannot meet its budget: says the
// smallest that would do and what is live then.
BERTH_MUST_USE berth_status berth_packager__fit_budgets(berth_packager *packager);

// Plain C with one memory for values: computes values again that wait where most is live, one after another, as
// long as the memory of the device that is over its limit does not hold the plan. Constants are not read
// again there. Errors: as above.
BERTH_MUST_USE berth_status berth_packager__recompute_to_fit(berth_packager *packager);

// Plain C for a board with a store: constants that its flash has no room for are read from there. Before memory is
// planned. Errors: OUT_OF_MEMORY the store is too small.
BERTH_MUST_USE berth_status berth_packager__store_constants(berth_packager *packager);

// Adds to the packager's report.
void berth_packager__add_streamed(berth_packager *packager, const berth_memory_streamed *streamed);

// What the means change, so that another plan can be tried.
typedef struct berth_kept_state {
    berth_storage *storages;
    berth_program_tensor *tensors;
    uint32_t *storage_of;
    berth_program_constant *constants;
    berth_program_step *steps;
    berth_step_facts *facts;
    uint32_t storage_count, tensor_count, step_count;
} berth_kept_state;

void berth_packager__keep_state(const berth_packager *packager, berth_kept_state *out);
void berth_packager__restore_state(berth_packager *packager, const berth_kept_state *kept);

// Values that were moved or are computed again, and what that is predicted to take.
typedef struct berth_value_moves {
    uint32_t spilled_count, recomputed_count, recomputed_steps;
    uint64_t spilled_bytes, recomputed_bytes;
    double spilled_ns, recompute_ns;
} berth_value_moves;

// A place whose constants may be streamed.
typedef struct berth_streamer {
    berth_packager *p;
    berth_arena *arena;  // scratch
    uint32_t place;
    uint32_t device;  // the only one that works there
    uint32_t memory;
    bool *mixed;  // per storage: its uses are not all kernels of the device
    BERTH_VEC(berth_stream_weight) weights;
    BERTH_VEC(berth_stream_load) loads;
    uint64_t stays_bytes;  // of constants that cannot be streamed
    berth_value_moves moves;
    berth_stream_problem problem;
} berth_streamer;

// The problem of the place as its steps are now. The arena is the caller's to destroy.
void berth_streamer__init(berth_streamer *streamer, berth_packager *packager, uint32_t place,
                          const berth_value_moves *moves);
uint64_t berth_streamer__aligned(const berth_streamer *streamer, uint64_t bytes);
// Predicted time of bringing so many bytes into the memory.
double berth_streamer__load_ns(const berth_streamer *streamer, uint64_t bytes);
// What is there beside values and constants that can be streamed.
uint64_t berth_streamer__fixed_bytes(const berth_streamer *streamer);
// Reads what the problem says is not resident right before each of its uses.
void berth_streamer__read_others(berth_streamer *streamer, berth_memory_streamed *out_report);
// The fastest plan that fits; where none does, the one that needs the least, and *out_bytes is above
// the budget.
BERTH_MUST_USE berth_status berth_streamer__place(berth_streamer *streamer, uint64_t budget,
                                                  uint64_t *out_bytes,
                                                  berth_memory_streamed *out_report);

#endif  // BERTH_COMPILER_PACKAGE_FIT_BUDGET_H_
