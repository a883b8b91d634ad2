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

// What an edge demands: bit 0: the source inside needs the target inside; bit 1: the target inside
// needs the source inside.
typedef uint8_t (*berth_solve__edge_needs)(const void *user, uint32_t edge);

// Thread-compatible; arena memory. The sink (outside) is the vertex after the groups.
typedef struct berth_solve__latency_cut {
    const berth_place_problem *problem;
    uint32_t kind;
    double *group_time;         // [group_count] sum of the times on the kind
    const double *group_bytes;  // [group_count]
    // To be set before berth_solve__latency_cut_value:
    uint8_t *side;     // [group_count] berth_solve__side
    uint32_t *inside;  // [inside_count] the groups whose side is INSIDE, each once
    uint32_t inside_count;
    berth_solve__edge_needs needs;  // asked for edges that flow can come to
    const void *needs_user;
    double byte_cost;  // added per byte inside
    // After it:
    double inside_bytes;  // of the cheapest subgraph found, when the flow was not cut off
    // Private:
    berth_solve__network net;
    uint32_t *group_arc;  // [group_count] to the sink
    uint32_t edges_from;  // the arcs from there on are pairs of edges:
    uint32_t *edge_of;    // [pairs] the edge; its first arc goes from source's to target's group
    uint64_t *opened;     // [vertex_count] the call that set the rooms of the vertex's arcs last
    uint64_t call;
    uint32_t reached;  // vertices in net.queue that have a level
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
