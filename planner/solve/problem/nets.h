// A placement problem under the throughput objective as a hypergraph: what has to stay together is
// one item, and what a cut costs is a net. The strategies for throughput work on it.
//
// A node's output is moved by every device that has the node or one of its successors, as soon as
// those are not all on one device. So node u is a net over the items of u and its successors, and
// load(d) = time of the items on d + cost of the nets that d shares with another device. Nets over
// the same items are one net with the sum of their costs.
#ifndef BERTH_PLANNER_SOLVE_PROBLEM_NETS_H_
#define BERTH_PLANNER_SOLVE_PROBLEM_NETS_H_

#include "planner/solve/problem/problem.h"

// Devices that cannot be told apart even with pins: those of a kind on which nothing is pinned, and
// each device with a pin by itself.
typedef struct berth_place_sorts {
    uint32_t count;
    uint32_t *kind;          // [count]
    uint32_t *device_count;  // [count] at least 1
    uint32_t *device_start;  // [count + 1] into devices
    uint32_t *devices;       // [device_count]
    uint32_t *of_device;     // [device_count] sort of each device
} berth_place_sorts;

// Immutable; arena memory.
typedef struct berth_place_nets {
    uint32_t kind_count;
    uint32_t item_count;
    uint32_t *item_of_group;  // [group_count of the problem]
    double *time;             // [item_count * kind_count]; INFINITY = unsupported
    double *size_bytes;       // [item_count]
    uint32_t *pin;            // [item_count] device, or BERTH_PLACE_NONE
    bool contradiction;       // an item has two pins: no placement keeps its groups together
    uint32_t net_count;
    double *cost;           // [net_count * kind_count]; not 0 for every kind
    uint32_t *pin_start;    // [net_count + 1] into pins
    uint32_t *pins;         // items of each net, ascending, at least 2
    uint32_t *inet_start;   // [item_count + 1] into inets
    uint32_t *inets;        // nets of each item, ascending
    uint32_t largest_item;  // most nets of one item
} berth_place_nets;

//   ownership: all in `arena`
berth_place_sorts *berth_place__sorts(berth_arena *arena, const berth_place_problem *problem);

// item_of_group: dense 0..item_count-1; NULL = each group is an item. Copied.
//   complexity: O(size log size) of the nets
berth_place_nets *berth_place__nets(berth_arena *arena, const berth_place_problem *problem,
                                    const uint32_t *item_of_group, uint32_t item_count);

// Device of each node from the device of each item.
void berth_place__nets_expand(const berth_place_problem *problem, const berth_place_nets *nets,
                              const uint32_t *device_of_item, uint32_t *out_assignment);

// Load of each device. O(pins + items).
//   out_load: [device_count]
void berth_place__nets_loads(const berth_place_problem *problem, const berth_place_nets *nets,
                             const uint32_t *device_of_item, double *out_load);

#endif  // BERTH_PLANNER_SOLVE_PROBLEM_NETS_H_
