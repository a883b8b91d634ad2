// Placement problems as JSON, in the format of Tarnawski et al. (NeurIPS 2020), and answers as
// JSON.
//
//   maxSizePerFPGA (bytes per accelerator), maxFPGAs, maxCPUs, nodes[]: id (a whole number),
//   cpuLatency, fpgaLatency (unless it is not supported there), size, supportedOnFpga (true or 1 if
//   absent), isBackwardNode (false or 0 if absent), colorClass (a whole number or text, optional);
//   edges[]: sourceId, destId, cost.
//
// Kind 0 of the problem is "acc", kind 1 "cpu" (concurrent). A node's transfer cost is that of its
// out-edges, which must all say the same. Other fields are ignored.
#ifndef BERTH_PLANNER_SOLVE_PROBLEM_PROBLEM_FILE_H_
#define BERTH_PLANNER_SOLVE_PROBLEM_PROBLEM_FILE_H_

#include <stddef.h>

#include "base/limits.h"
#include "planner/solve/problem/problem.h"

// Parses JSON text; `name` starts the messages ("NAME:LINE:COLUMN: what" for syntax, "NAME:
// nodes[3].size: what" for fields).
//   limits:    of what is read; items are nodes and edges. NULL = the format's own
//   ownership: the problem lives in `arena` and does not refer to `text`
//   errors:    INVALID_ARGUMENT not JSON, a field missing or of the wrong type, a repeated id, an
//              edge to an unknown node, costs that differ, and those of berth_place_problem_finish;
//              OUT_OF_RANGE; OUT_OF_MEMORY
BERTH_MUST_USE berth_status berth_place_problem_parse(berth_arena *arena, const char *name,
                                                      const char *text, size_t length,
                                                      const berth_limits *limits,
                                                      berth_place_problem **out_problem);
// Reads and parses a file. Errors as above, and those of berth_file_read.
BERTH_MUST_USE berth_status berth_place_problem_read(berth_arena *arena, const char *path,
                                                     const berth_limits *limits,
                                                     berth_place_problem **out_problem);

// Reads an answer: {"assignment": {ID: DEVICE, ...}} (other fields are ignored) or just the inner
// object. DEVICE is a kind's name and the number of the device among its kind, "acc0".
//   *out_assignment: [node_count] in `arena`
//   errors: INVALID_ARGUMENT as above, or a node without a device; OUT_OF_MEMORY
BERTH_MUST_USE berth_status berth_place_answer_parse(berth_arena *arena, const char *name,
                                                     const char *text, size_t length,
                                                     const berth_place_problem *problem,
                                                     uint32_t **out_assignment);

// The name of a device in answers: "acc0".
const char *berth_place_device_name(berth_arena *arena, const berth_place_problem *problem,
                                    uint32_t device);

#endif  // BERTH_PLANNER_SOLVE_PROBLEM_PROBLEM_FILE_H_
