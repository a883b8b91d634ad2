// The bound on latency (bound_latency.c) and the sets it is made of (bound_latency_sets.c). Private
// to planner/solve.
#ifndef BERTH_PLANNER_SOLVE_BOUNDS_BOUND_LATENCY_H_
#define BERTH_PLANNER_SOLVE_BOUNDS_BOUND_LATENCY_H_

#include "planner/solve/latency/cut.h"
#include "planner/solve/strategies/strategies.h"

enum { BERTH_SOLVE__BOUND_KINDS = 8 };

// The graph as one of the two directions sees it: forwards, bounds are on the time from the start
// to where a node is done; backwards, from where it begins to the end.
typedef struct berth_solve__view {
    bool backwards;
    const uint32_t *pred_start, *pred, *succ_start, *succ;  // as in problem.h, or the other way
    const uint32_t *edge_from, *edge_to;
    uint32_t *pred_edge, *succ_edge;  // [edge_count] edge of each entry of pred and succ
    uint32_t *order;                  // [node_count] predecessors first
    uint64_t *before;                 // [node_count * words] bit sets of ancestors
    double *apart;  // [edge_count * (chain + 1)] to where the source is done (backwards: from where
                    // it begins), when it is not in one subgraph with the target; INFINITY = never
} berth_solve__view;

typedef struct berth_solve__candidate {
    double reach;  // the largest t for which the node must be inside
    uint32_t node;
} berth_solve__candidate;

typedef struct berth_solve__stair {  // t from `after` to below `before`:
    double before, after;
    uint32_t count;  // the first nodes of the order are inside
} berth_solve__stair;

typedef struct berth_solve__bounder {
    berth_place_search *search;
    const berth_place_problem *problem;
    berth_solve__latency *latency;
    uint32_t chain;  // longest chain of subgraphs
    bool open_end;   // there are more devices than that
    uint32_t kind_count;
    berth_solve__latency_cut *cuts[BERTH_SOLVE__BOUND_KINDS];  // of kinds with one subgraph each
    uint64_t *bases[BERTH_SOLVE__BOUND_KINDS];   // bit sets of groups for each node: `base`
    bool *base_known[BERTH_SOLVE__BOUND_KINDS];  // [node_count]
    double all_bytes;
    double *plain_time;  // [node_count] on a concurrent kind
    double *least_time;  // [node_count] on any device
    berth_solve__view views[2];
    size_t words;
    double target;     // only placements below are looked for
    double tolerance;  // of t
    // The budget:
    berth_place_since since;
    double share;
    uint64_t work;
    bool stopped;
    // Where the passes are:
    double best_target;  // as it was set
    double finest;       // tolerance, of the target
    double proven;
    uint32_t pass, place;  // and the node in its order
    double pass_bound;     // so far
    // Of the pass:
    berth_solve__view *view;
    const double *opposite;  // `apart` of the other view
    double *plain;           // [node_count * (chain + 1)] done when by itself
    double *values;          // [degree * (chain + 1)] for the edges of a node
    bool *changes;           // [node_count * (chain + 1)] inputs' bounds differ from those of q - 1
    // Of the node:
    double *found;        // [degree] for its edges
    uint8_t *base;        // [group_count] sides, whoever is apart from it
    uint8_t *outside;     // [group_count] sides
    uint32_t *work_list;  // [node_count]
    berth_solve__candidate *heap;
    berth_solve__candidate *order;  // [node_count]
    uint32_t order_count;
    bool *visited;               // [node_count]
    bool *met;                   // [group_count] one of its nodes was visited
    berth_solve__stair *stairs;  // [node_count + 1]
    uint32_t stair_count;
    // Of the cut:
    uint32_t cut_node, cut_chain;
    double cut_before;  // inputs that are done then or later must be inside
} berth_solve__bounder;

static inline bool berth_solve__is_before(const berth_solve__view *view, size_t words,
                                          uint32_t ancestor, uint32_t node) {
    return view->before[node * words + ancestor / 64] >> (ancestor % 64) & 1;
}

static inline double *berth_solve__row(double *table, const berth_solve__bounder *b,
                                       uint32_t index) {
    return table + (size_t)index * (b->chain + 1);
}

// Chain length of what comes before a subgraph: the last column stands for any length when there
// are more devices than columns.
static inline uint32_t berth_solve__shorter(const berth_solve__bounder *b, uint32_t q) {
    return b->open_end && q == b->chain ? q : q - 1;
}

// Sets `base`: groups that cannot be in one subgraph with the node on the kind of that cut. False when
// the node itself cannot be there.
bool berth_solve__bound_base(berth_solve__bounder *b, uint32_t kind, uint32_t node);

// Sets `outside`: base, and what convexity puts outside together with `apart` (NONE: nobody).
void berth_solve__bound_outside(berth_solve__bounder *b, uint32_t node, uint32_t apart);

// Fills order and stairs: what must be inside together with the node, by t, when at most q
// subgraphs follow each other. What does not fit ends the stairs.
void berth_solve__bound_stairs(berth_solve__bounder *b, const berth_solve__latency_cut *cut,
                               uint32_t node, uint32_t q);

#endif  // BERTH_PLANNER_SOLVE_BOUNDS_BOUND_LATENCY_H_
