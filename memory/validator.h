// Independent check of a solution: shares no code with the solvers.
#ifndef BERTH_MEMORY_VALIDATOR_H_
#define BERTH_MEMORY_VALIDATOR_H_

#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "memory/problem.h"

// Checks that every offset is a multiple of its alignment, that every buffer ends at or below the
// capacity of its pool, and that no two buffers of one pool that are live at one moment share a
// byte. Sweeps over time with the live buffers ordered by offset: O(n log n) for solutions that are
// right.
//   capacities_bytes: [pool_count] 0 = unlimited; NULL = all unlimited
//   out_heights:      [pool_count] greatest end of each pool; may be NULL
//   errors: FAILED_PRECONDITION the solution is wrong (the message names the buffers and how);
//   OUT_OF_MEMORY
BERTH_MUST_USE berth_status berth_memory_validate(berth_arena *arena,
                                                  const berth_memory_problem *problem,
                                                  const uint64_t *offsets,
                                                  const uint64_t *capacities_bytes,
                                                  uint64_t *out_heights);

// Largest sum of sizes live at one moment in `pool`, by a sweep of its own: a lower bound of any
// height.
uint64_t berth_memory_validate_lower_bound(berth_arena *arena, const berth_memory_problem *problem,
                                           uint32_t pool);

#endif  // BERTH_MEMORY_VALIDATOR_H_
