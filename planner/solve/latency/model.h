// The published latency model (problem.h, one_subgraph) for search: an assignment of whole groups
// to devices that can be changed, undone and valued in O(nodes + edges) without allocation. Private
// to planner/solve; shares no code with evaluate.h, which checks whatever is found with it.
//
//   berth_solve__latency *latency = berth_solve__latency_create(arena, problem);
//   berth_solve__latency_begin(latency);               // start of a move
//   if (berth_solve__latency_move(latency, group, device)) ...
//   double value = berth_solve__latency_value(latency, INFINITY);
//   berth_solve__latency_undo(latency);                // or keep: the next begin forgets the old
#ifndef BERTH_PLANNER_SOLVE_LATENCY_MODEL_H_
#define BERTH_PLANNER_SOLVE_LATENCY_MODEL_H_

#include "planner/solve/problem/problem.h"

typedef struct berth_solve__latency_change {
    uint32_t group, device;  // the device it left
} berth_solve__latency_change;

// Arrays are arena memory; thread-compatible. Times in the problem's unit.
typedef struct berth_solve__latency {
    const berth_place_problem *problem;
    bool *single;        // [device_count] holds one subgraph (its kind is not concurrent)
    uint32_t *device;    // [node_count] the assignment; all nodes of a group agree
    double *free_bytes;  // [device_count] negative while a move is under way only
    uint32_t *count;     // [device_count] nodes there
    uint32_t placed;     // nodes on a device
    double *tail;        // [node_count] longest path from the start of the node, each node at
                         // its smallest time
    bool *fits;          // [group_count * device_count] supported, pins kept, room in an empty
                         // device
    const double *group_bytes;  // [group_count] the problem's
    // The last value:
    double *done;        // [node_count]
    uint32_t *critical;  // [node_count] predecessor (or member's) that decided, or NONE
    double spread;       // sum of completions over devices with one subgraph and plain nodes
    uint32_t last;       // node with the largest completion
    // Private:
    uint32_t change_count;
    berth_solve__latency_change *changes;  // [group_count]
    uint32_t *changed;                     // [group_count] == move_number when in changes
    uint32_t move_number;
    uint32_t *need;   // [node_count + device_count] predecessors not yet done
    uint32_t *stack;  // [node_count + device_count]
    uint32_t *next;   // [node_count] list of the nodes of a device
    uint32_t *head;   // [device_count]
    uint32_t *seen;   // [device_count] stamps
    uint32_t stamp;
    double *load;    // [device_count]
    double *ready;   // [node_count + device_count]
    uint32_t *from;  // [node_count + device_count] who made it ready last
} berth_solve__latency;

// Starts with every group on no device (BERTH_PLACE_NONE): nodes there are valued as if they did
// not exist.
berth_solve__latency *berth_solve__latency_create(berth_arena *arena,
                                                  const berth_place_problem *problem);

void berth_solve__latency_begin(berth_solve__latency *latency);

// Puts a group on a device as part of the current move. False when the device can not take its
// nodes at all; capacities are looked at by berth_solve__latency_value.
bool berth_solve__latency_move(berth_solve__latency *latency, uint32_t group, uint32_t device);
// The same apart from moves, wherever it is: nothing is checked, nothing can be undone. The device
// may be BERTH_PLACE_NONE.
void berth_solve__latency_put(berth_solve__latency *latency, uint32_t group, uint32_t device);
void berth_solve__latency_undo(berth_solve__latency *latency);

// Completion of one sample; INFINITY when a capacity is exceeded, the subgraphs are not acyclic, or
// the value is sure to exceed `limit` (then `done`, `critical` and `last` are not to be used).
double berth_solve__latency_value(berth_solve__latency *latency, double limit);

// Takes over a whole assignment; false when a node is where it can not be.
bool berth_solve__latency_set(berth_solve__latency *latency, const uint32_t *assignment);

// xorshift64* (Vigna 2016); state must not be 0.
uint64_t berth_solve__random(uint64_t *state);
uint32_t berth_solve__random_below(uint64_t *state, uint32_t count);  // count > 0
double berth_solve__random_unit(uint64_t *state);                     // [0, 1)

#endif  // BERTH_PLANNER_SOLVE_LATENCY_MODEL_H_
