// Placement problems of any size whose optimum is known because it was there first: a perfect schedule, no
// accelerator ever idle, into which only edges are put that it keeps; then it is hidden. For latency by list
// scheduling.
//
// Nodes of the accelerators would take so long on the processor that with one of them there a path is longer
// than the schedule; so all of their work is done by the accelerators, which the schedule keeps busy from its
// beginning to its end: none is shorter. Tests and bench/bench_planted.c.
#ifndef BERTH_TESTS_SOLVE_PLANTED_PLACEMENT_H_
#define BERTH_TESTS_SOLVE_PLANTED_PLACEMENT_H_

#include "planner/solve/problem/problem.h"

typedef enum planted_shape {
    PLANTED_RANDOM,     // every node reads one to three that ended shortly before it
    PLANTED_CHAINS,     // every value has one reader at most, every node reads one at most
    PLANTED_LAYERS,     // nodes read those of the layer before
    PLANTED_OUT_TREE,   // every node reads one
    PLANTED_IN_TREE,    // every value has one reader
    PLANTED_FORK_JOIN,  // nodes read the last hub, hubs many nodes
    PLANTED_SHAPES
} planted_shape;

extern const char *const planted_shape_names[PLANTED_SHAPES];

typedef struct planted {
    berth_place_problem *problem;  // finished
    double optimum;
    uint32_t *assignment;  // [node_count] that has it, by berth_place_evaluate
} planted;

// nodes:        of the accelerators and, one of ten, of the processor alone
// accelerators: at least 1
// transfer:     a copy's time to or from host memory over a node's, in the mean
berth_status planted_placement(berth_arena *arena, planted_shape shape, uint32_t nodes,
                               uint32_t accelerators, double transfer, uint64_t seed,
                               planted *out_planted);

#endif  // BERTH_TESTS_SOLVE_PLANTED_PLACEMENT_H_
