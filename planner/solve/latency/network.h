// Flow networks over the groups of a placement problem: what it costs that values lie at the border of a set of
// groups is a cut of a hypergraph (Lawler 1973, "Cutsets and partitions of hypergraphs"). latency/cut.h and
// latency/gain.h send flows through them (Dinic 1970). Private to planner/solve.
//
//   berth_solve__network_begin(arena, &n, problem, kind, groups + 1, groups);  // the sink, and arcs to it
//   arc = berth_solve__network_add_pair(&n, group, groups, cost, 0);
//   berth_solve__network_add_values(&n);
//   berth_solve__network_end(&n);
#ifndef BERTH_PLANNER_SOLVE_LATENCY_NETWORK_H_
#define BERTH_PLANNER_SOLVE_LATENCY_NETWORK_H_

#include "planner/solve/problem/problem.h"

#define BERTH_SOLVE__UNLIMITED 1e300  // a capacity

// Thread-compatible; arena memory. Vertices are the groups, those of the owner after them, and two for each
// value with more than two groups at it. Arc 2i + 1 is the reverse of arc 2i.
typedef struct berth_solve__network {
    berth_arena *arena;
    const berth_place_problem *problem;
    uint32_t kind;  // of devices, whose transfers cost
    uint32_t vertex_count, arc_count;
    uint32_t *head;  // [arc_count] vertex it goes to
    double *base;    // [arc_count] capacity
    uint32_t *tail;  // [arc_count] vertex it leaves
    // Since the end:
    uint32_t *first;   // [vertex_count + 1] into arcs
    uint32_t *arcs;    // [arc_count] by the vertex they leave
    double *room;      // [arc_count] residual capacity
    uint32_t *level;   // [vertex_count] distance from the sources
    uint32_t *next;    // [vertex_count] position in `arcs`
    uint32_t *queue;   // [vertex_count]
    uint32_t *path;    // [vertex_count] arcs
    double tolerance;  // capacities below count as none
} berth_solve__network;

// `vertices`: groups and the owner's; `pairs`: of arcs that it adds besides one for each edge at most.
void berth_solve__network_begin(berth_arena *arena, berth_solve__network *network,
                                const berth_place_problem *problem, uint32_t kind,
                                uint32_t vertices, size_t pairs);
// An arc and its reverse with capacities `there` and `back`. Returns the first.
uint32_t berth_solve__network_add_pair(berth_solve__network *network, uint32_t from, uint32_t to,
                                       double there, double back);
// Arcs that cut a value's transfer where not all groups at it are on one side.
void berth_solve__network_add_values(berth_solve__network *network);
void berth_solve__network_end(berth_solve__network *network);

// Sends `amount` along the first `depth` arcs of the path; returns how many are before the first that is
// full now.
uint32_t berth_solve__network_send(berth_solve__network *network, uint32_t depth, double amount);

#endif  // BERTH_PLANNER_SOLVE_LATENCY_NETWORK_H_
