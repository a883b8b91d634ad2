// What the memory of the devices of a kind holds, as linear limits, and prices for it. Private to
// planner/solve.
//
// In every placement the sizes on the devices of a kind are no more than their capacities together.
// Nor are other figures f(size): where no set of groups that fits into one device has a sum of f above
// 1, all of the kind's have one of at most its number of devices. The rounded-down multiples of Fekete
// and Schepers ("New classes of fast lower bounds for bin packing problems", 2001; also Martello and
// Toth 1990) are such: of what is larger than half a device, each device holds one. A group's figure
// is shared among its nodes by size.
//
// For given costs of the nodes on the kinds, a price on each limit gives a bound on the least cost of all
// placements (Lagrange; Everett 1963): the sum of what each node costs where it is cheapest with
// prices, less the prices of all room. One limit's best price is that of a fractional knapsack (Dantzig
// 1957), found by selection in linear time (Balas and Zemel 1980); several take turns.
#ifndef BERTH_PLANNER_SOLVE_BOUNDS_MEMORY_LIMITS_H_
#define BERTH_PLANNER_SOLVE_BOUNDS_MEMORY_LIMITS_H_

#include "planner/solve/problem/problem.h"

typedef struct berth_place__memory_limit {
    uint32_t kind;
    double room;   // of all devices of the kind
    double *size;  // [node_count] of a node there
    double price;  // of a unit, as it was chosen last
} berth_place__memory_limit;

// Thread-compatible; arena memory.
typedef struct berth_place__memory {
    const berth_place_problem *problem;
    uint32_t limit_count;  // those that all nodes together would exceed
    berth_place__memory_limit *limits;
    // Private:
    double *ratio;     // [node_count] of the nodes that are looked at: what a unit is worth
    uint32_t *node;    // [node_count]
    uint32_t *chosen;  // [node_count] by one limit
} berth_place__memory;

// A node that is partly on another kind than the chosen one: it is the last that fits there.
typedef struct berth_place__split {
    uint32_t node;  // BERTH_PLACE_NONE = there is none
    uint32_t kind;
    double share;  // of it on `kind`
} berth_place__split;

berth_place__memory *berth_place__memory_create(berth_arena *arena,
                                                const berth_place_problem *problem);

// A bound on the sum of the nodes' costs over all placements that keep the limits; INFINITY when a node is
// able nowhere. O(nodes * kinds) for each limit, on average.
//   cost:       [node_count * kind_count] INFINITY = not there; prices are added to it
//   out_chosen: [node_count] kinds that cost least and, split aside, keep the last limit that has a price
//               (all limits, where it is the only one)
double berth_place__memory_choose(berth_place__memory *memory, double *cost, uint32_t *out_chosen,
                                  berth_place__split *out_split);

// Whether some limit is exceeded by the nodes that have no other kind.
//   able: [node_count * kind_count]
bool berth_place__memory_exceeded(const berth_place__memory *memory, const bool *able);

#endif  // BERTH_PLANNER_SOLVE_BOUNDS_MEMORY_LIMITS_H_
