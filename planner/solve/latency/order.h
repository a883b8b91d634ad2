// Topological orders for the latency searches, of nodes and of units. Private to planner/solve.
#ifndef BERTH_PLANNER_SOLVE_LATENCY_ORDER_H_
#define BERTH_PLANNER_SOLVE_LATENCY_ORDER_H_

#include "planner/solve/latency/model.h"

// A topological order, [node_count]. Flavour 0: depth first; 1: layers; others: depth first with
// random turns.
void berth_solve__latency_order(berth_arena *arena, const berth_place_problem *problem,
                                uint64_t *random, uint32_t flavour, uint32_t *order);

// Groups that depend on each other in a circle make one unit; the graph of the units has no cycle.
typedef struct berth_solve__units {
    berth_place_problem *graph;  // nodes are units; only the lists of the graph are meaningful
    uint32_t *start;             // [unit_count + 1] into nodes
    uint32_t *nodes;             // [node_count] of each unit, predecessors first
    uint32_t *unit;              // [node_count]
} berth_solve__units;

BERTH_MUST_USE berth_status berth_solve__units_build(berth_arena *arena,
                                                     const berth_place_problem *problem,
                                                     berth_solve__units *out_units);

// The units in bands of equal weight (by the longest path to them), and in each band first those
// that later bands need: what nothing later waits for can run beside the next band. [unit_count]
//   weight: of each unit
void berth_solve__units_order_bands(berth_arena *arena, const berth_solve__units *units,
                                    const double *weight, uint32_t bands, uint32_t *order);

// An order of the units in which the latency's placement (just valued) runs: subgraphs stay in one
// piece, and what has time to spare stands somewhere within it. [unit_count].
void berth_solve__units_order_like(berth_arena *arena, const berth_solve__units *units,
                                   const berth_solve__latency *latency, uint64_t *random,
                                   uint32_t *order);

#endif  // BERTH_PLANNER_SOLVE_LATENCY_ORDER_H_
