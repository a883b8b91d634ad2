// The subgraph that gains most: a set of groups, each with what it gains inside (or loses), less what the
// values at the set's border cost to move, and what it costs to be entered by an edge. The best set is
// the source side of a minimum cut (Picard 1976, "Maximal closure of a graph"; of a hypergraph as in
// latency/cut.h; Dinic 1970). Private to planner/solve.
#ifndef BERTH_PLANNER_SOLVE_LATENCY_GAIN_H_
#define BERTH_PLANNER_SOLVE_LATENCY_GAIN_H_

#include "planner/solve/latency/network.h"

// Thread-compatible; arena memory.
typedef struct berth_solve__gain {
    const berth_place_problem *problem;
    uint32_t kind;
    // To be set before berth_solve__gain_best:
    double *gain;   // [group_count] of having it inside; -INFINITY = it cannot be
    double *enter;  // [edge_count, as in problem->edge_from] cost of the target inside and the
                    // source not
    double transfer_cost;  // of a unit of time that values at the border take
    // After it:
    bool *inside;  // [group_count] of the best set
    // Private:
    berth_solve__network net;
    uint32_t *edge_arc;  // [edge_count] arc from target's to source's group; NONE within a group
    double *supply;      // [net.vertex_count] not yet sent
    double *demand;      // [net.vertex_count] not yet met
} berth_solve__gain;

berth_solve__gain *berth_solve__gain_create(berth_arena *arena, const berth_place_problem *problem,
                                            uint32_t kind);

// What no set gains more than, and `inside`, which gains that up to rounding. The empty set gains 0.
//   out_work: arcs looked at are added
double berth_solve__gain_best(berth_solve__gain *gain, uint64_t *out_work);

#endif  // BERTH_PLANNER_SOLVE_LATENCY_GAIN_H_
