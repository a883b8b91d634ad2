// The cheapest subgraph that holds some groups and not some others: what one device at least spends
// on reading, computing and writing. A value is moved once when the node and its readers are not
// all inside, so the cost is a sum over groups plus a cut of a hypergraph, and its minimum a
// maximum flow (Lawler 1973, "Cutsets and partitions of hypergraphs"; Dinic 1970). Private to
// planner/solve.
#ifndef BERTH_PLANNER_SOLVE_LATENCY_CUT_H_
#define BERTH_PLANNER_SOLVE_LATENCY_CUT_H_

#include "planner/solve/latency/model.h"
#include "planner/solve/latency/network.h"

typedef enum berth_solve__side {
    BERTH_SOLVE__FREE,
    BERTH_SOLVE__INSIDE,
    BERTH_SOLVE__OUTSIDE,
} berth_solve__side;

// Thread-compatible; arena memory. The sink (outside) is the vertex after the groups.
typedef struct berth_solve__latency_cut {
    const berth_place_problem *problem;
    uint32_t kind;
    double *group_time;         // [group_count] sum of the times on the kind
    const double *group_bytes;  // [group_count]
    // To be set before berth_solve__latency_cut_value:
    uint8_t *side;     // [group_count] berth_solve__side
    uint8_t *needs;    // [edge_count] bit 0: the source inside needs the target inside; bit 1: the
                       // target inside needs the source inside
    double byte_cost;  // added per byte inside
    // After it:
    double inside_bytes;  // of the cheapest subgraph found, when the flow was not cut off
    // Private:
    berth_solve__network net;
    uint32_t *edge_arc;   // [edge_count] arc from source's to target's group; NONE within a group
    uint32_t *group_arc;  // [group_count] to the sink
} berth_solve__latency_cut;

// The kind's devices hold one subgraph each; groups they cannot take are to be OUTSIDE.
berth_solve__latency_cut *berth_solve__latency_cut_create(berth_arena *arena,
                                                          const berth_solve__latency *latency,
                                                          uint32_t kind);

// A lower bound of: reads, times and writes of any subgraph that keeps `side` and `needs`, plus
// byte_cost times its bytes; the minimum itself (up to rounding) unless it exceeds `enough`, where
// the search stops. INFINITY where sides and needs contradict each other.
//   out_work: arcs looked at are added
double berth_solve__latency_cut_value(berth_solve__latency_cut *cut, double enough,
                                      uint64_t *out_work);

#endif  // BERTH_PLANNER_SOLVE_LATENCY_CUT_H_
