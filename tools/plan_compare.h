// `berth plan --compare`: what differs between two plans that `berth plan --format=json` wrote.
#ifndef BERTH_TOOLS_PLAN_COMPARE_H_
#define BERTH_TOOLS_PLAN_COMPARE_H_

#include <stdbool.h>

#include "base/arena.h"
#include "base/status.h"

// Prints predictions, devices, copies, memories and operations of both, and what moved. Operations
// are the same where node, operator and the number among such agree.
//   errors: IO; INVALID_ARGUMENT a file is no plan, with the field that is missing or wrong
// Inside berth_arena_try.
BERTH_MUST_USE berth_status berth_plan_compare(berth_arena *arena, const char *a, const char *b,
                                               bool json);

#endif  // BERTH_TOOLS_PLAN_COMPARE_H_
