// The placement problem of @main: what the solver (planner/solve/) sees of a module, and the way
// back. Private to planner/.
//
// Nodes: operations that compute (those of regions, too), parameters, results, results of
// operations with several, of branches and of loops, and host reads (a shape that an operation's
// host part needs). What only groups or annotates (tuple, tuple_get, on_device) vanishes: edges go
// through it. Groups are the classes of the hard constraints; with host_bound, parameters and
// results are pinned to the host, each alone. Times are in ms. Transfers go by host memory, over
// the cheapest routes, or (latency only) over direct links and shared memories. Identical devices
// are one kind. A value counts its constants once, where the first operation needs them.
//
// What the model leaves out: operations of a loop's body count once; a called function counts as
// the sum of its operations on the device of the call; direct links in throughput (copies take
// them, the prediction does not).
#ifndef BERTH_PLANNER_PLACEMENT_H_
#define BERTH_PLANNER_PLACEMENT_H_

#include "planner/solve/problem/evaluate.h"
#include "planner/stages.h"

typedef enum berth_placement_sort {
    BERTH_PLACEMENT_OP,         // index: operation
    BERTH_PLACEMENT_VALUE,      // index: value
    BERTH_PLACEMENT_RESULT,     // index: result of @main
    BERTH_PLACEMENT_HOST_READ,  // index: operation that needs it
} berth_placement_sort;

typedef struct berth_placement_node {
    berth_placement_sort sort;
    uint32_t index;
    bool border;   // in host memory, whatever the constraints say
    double bytes;  // of its value
    double constant_bytes;
} berth_placement_node;

// Arena memory of the caller; immutable after build, except for capacities.
typedef struct berth_placement {
    const berth_planner_state *state;  // constraints before soft edges
    berth_place_problem problem;
    berth_placement_node *nodes;  // [problem.node_count]
    uint32_t *node_of_op;         // per operation of @main, BERTH_NONE = has none
    uint32_t *target_device;      // [problem.device_count] device of the target
    uint32_t *solver_device;      // per device of the target
    bool impossible;              // a group that no device may hold: the rules' error says why
} berth_placement;

// Builds the problem of a state after its hard constraints, pins and support. Linear in the module
// times the number of devices, apart from sorting.
//   errors: those of berth_place_problem_finish
BERTH_MUST_USE berth_status berth_planner__placement_build(const berth_planner_state *state,
                                                           berth_arena *arena,
                                                           berth_placement **out_placement);
// Of the memory for a device's constants; 0 = no limit is known.
uint64_t berth_planner__constants_budget(const berth_multi_target *target, uint32_t device);
// Sets the capacities for constants: each memory's budget less `reserve_bytes` (per device of the
// target; NULL = none). Devices of one kind get the smallest of theirs.
void berth_planner__placement_capacity(berth_placement *placement, const uint64_t *reserve_bytes);
// The most bytes of values that are in each device's memory at once if nodes run in source order:
// an estimate of what the memory plan will need beside constants. Not counted: room that fusion
// saves.
//   out_bytes: per device of the target; the same for devices that share their memory
void berth_planner__placement_live(const berth_placement *placement, const uint32_t *given,
                                   berth_arena *scratch, uint64_t *out_bytes);
// Where a completely decided state puts the nodes: [node_count] devices of the solver. False when
// a node is not on a device of the target.
bool berth_planner__placement_read(const berth_placement *placement,
                                   const berth_planner_state *state, uint32_t *out_assignment);
// Decides the state's free classes as the assignment says.
BERTH_MUST_USE berth_status berth_planner__placement_fix(const berth_placement *placement,
                                                         berth_planner_state *state,
                                                         const uint32_t *assignment,
                                                         const char *reason);

// ---- between placement.c and placement_facts.c ----

// The node of the constraint system behind a node; BERTH_NONE for one at the border.
uint32_t berth_planner__placement_class(const berth_planner_state *state,
                                        const berth_placement_node *node);
// Fills times, transfers, kinds, groups and pins of a problem whose nodes and edges are there.
void berth_planner__placement_facts(berth_placement *placement, berth_arena *arena);

#endif  // BERTH_PLANNER_PLACEMENT_H_
