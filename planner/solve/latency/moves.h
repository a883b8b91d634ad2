// Moves of the latency search: changes of a placement that keep subgraphs in one piece more often
// than not. Private to planner/solve.
#ifndef BERTH_PLANNER_SOLVE_LATENCY_MOVES_H_
#define BERTH_PLANNER_SOLVE_LATENCY_MOVES_H_

#include "planner/solve/latency/order.h"

enum { BERTH_SOLVE__LATENCY_ORDERS = 4, BERTH_SOLVE__LATENCY_MOVES = 6 };

typedef struct berth_solve__latency_moves {
    berth_solve__latency *latency;
    uint64_t random;                                  // state
    uint32_t *order[BERTH_SOLVE__LATENCY_ORDERS];     // [node_count] topological orders
    uint32_t *position[BERTH_SOLVE__LATENCY_ORDERS];  // [node_count] inverse
    uint32_t *path;                                   // [node_count] critical nodes
    uint32_t path_count;
    uint32_t path_eighths;  // of the nodes that are picked, how many of eight are critical
    uint32_t *region;       // [node_count]
    uint32_t *marked;       // [node_count] stamps
    uint32_t mark;
} berth_solve__latency_moves;

berth_solve__latency_moves *
berth_solve__latency_moves_create(berth_arena *arena, berth_solve__latency *latency, uint64_t seed);

// Reads the critical path of the last value.
void berth_solve__latency_moves_look(berth_solve__latency_moves *moves);

// Begins and makes one random move of the given sort; false when it came to nothing.
bool berth_solve__latency_moves_make(berth_solve__latency_moves *moves, uint32_t sort);

#endif  // BERTH_PLANNER_SOLVE_LATENCY_MOVES_H_
