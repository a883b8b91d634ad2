// Candidates of `berth tune`: decisions of one function, and the next ones to try (private to tune.c).
#ifndef BERTH_TOOLKIT_TUNE_SEARCH_H_
#define BERTH_TOOLKIT_TUNE_SEARCH_H_

#include "base/str.h"
#include "compiler/tuning/kernel_choice.h"

typedef struct berth_tune_kernel {
    const char *name;
    const char *target;
    berth_hash128 function;
    uint32_t nest_count;
    double share;  // of a run
    // What the policy decided, and the best that was found: of the policy too at first.
    const berth_nest_decisions *policy;
    const char *const *best;  // texts of what is given, per nest
    double best_ratio;        // of its time and the policy's
    const char *const *candidate;
    bool tries;      // `candidate` is new
    uint32_t next;   // of the alternatives that the policy names
    bool exhausted;  // nothing new was found to try
    berth_interner *tried;
} berth_tune_kernel;

// Sets the candidate: decisions that were not tried yet; false: there are none. `state`: of the random
// numbers.
bool berth_tune__propose(berth_arena *arena, berth_tune_kernel *kernel, uint64_t *state);

#endif  // BERTH_TOOLKIT_TUNE_SEARCH_H_
