// Placement problems as JSON, in the format of Tarnawski et al. (NeurIPS 2020), and answers as
// JSON.
//
//   maxSizePerFPGA (bytes per accelerator), maxFPGAs, maxCPUs, nodes[]: id, cpuLatency,
//   fpgaLatency, size, supportedOnFpga, isBackwardNode, colorClass (optional); edges[]: sourceId,
//   destId, cost.
//
// Kind 0 of the problem is "acc", kind 1 "cpu". A node's transfer cost is that of its out-edges,
// which must all say the same. Other fields are ignored.
#ifndef BERTH_PLANNER_SOLVE_PROBLEM_FILE_H_
#define BERTH_PLANNER_SOLVE_PROBLEM_FILE_H_

#include <stddef.h>

#include "planner/solve/problem.h"

// Parses JSON text; `name` starts the messages ("NAME:LINE:COLUMN: what" for syntax, "NAME:
// nodes[3].size: what" for fields).
//   errors: INVALID_ARGUMENT, OUT_OF_RANGE, OUT_OF_MEMORY
BERTH_MUST_USE berth_status berth_place_problem_parse(berth_arena *arena, const char *name,
                                                      const char *text, size_t length,
                                                      berth_place_problem **out_problem);
BERTH_MUST_USE berth_status berth_place_problem_read(berth_arena *arena, const char *path,
                                                     berth_place_problem **out_problem);

#endif  // BERTH_PLANNER_SOLVE_PROBLEM_FILE_H_
