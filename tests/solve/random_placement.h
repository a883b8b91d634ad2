// Random small placement problems, and their worth by the definitions read literally: no code in
// common with planner/solve.
#ifndef BERTH_TESTS_SOLVE_RANDOM_PLACEMENT_H_
#define BERTH_TESTS_SOLVE_RANDOM_PLACEMENT_H_

#include "planner/solve/problem/problem.h"
#include "planner/solve/solve.h"

typedef struct random_shape {
    uint32_t nodes;       // up to 64; up to 8 groups for brute force
    uint32_t groups;      // nodes are thrown into so many; some may be empty
    uint32_t edges_in_8;  // of 8 pairs, so many have an edge
    uint32_t kinds;       // 1: accelerators; 2: and CPUs; 3: and another kind, with its own times
    uint32_t devices;     // of the first kind
    bool tight;           // little memory on the first kind
    bool training;        // some nodes are backward nodes
    bool pins;
} random_shape;

uint64_t placement_random(uint64_t *state);

// Times and transfers are multiples of 1/4, sizes whole: sums are exact. The third kind (if any)
// keeps values in host memory, but runs one node at a time.
berth_place_problem *random_placement(berth_arena *arena, uint64_t seed, random_shape shape);

// Nodes without names of their own, each a group, on so many accelerators and a processor; times, sizes and transfers are
// zero, and edges (room for `edges`) the caller's.
berth_place_problem *placement_of_nodes(berth_arena *arena, uint32_t nodes, size_t edges,
                                        uint32_t accelerators, double capacity);

// The value of a placement, INFINITY when it breaks a limit. Not for latency by list scheduling.
double literal_value(const berth_place_problem *problem, berth_place_objective objective,
                     bool contiguous, const uint32_t *assignment);

// The least value over all placements, INFINITY when none keeps the limits. Latency by list
// scheduling is valued by berth_place_evaluate, everything else by literal_value.
double brute_force_placement(berth_arena *arena, const berth_place_problem *problem,
                             berth_place_objective objective, bool contiguous);

#endif  // BERTH_TESTS_SOLVE_RANDOM_PLACEMENT_H_
