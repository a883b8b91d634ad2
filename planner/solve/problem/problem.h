// The placement problem on plain data: nodes with a time per kind of device, values that cost
// something to move, devices with a capacity. No IR: `berth place` fills it from a file, the
// planner from a module, and the strategies (strategy.h) and the independent check (evaluate.h)
// see nothing else. docs/placement.md explains it.
//
// Devices of one kind are interchangeable (same times, same transfers, same capacity). Host memory
// is the hub of all transfers: moving node u's output between a device of kind k and host memory
// takes transfer[u * kind_count + k]; 0 for kinds that compute in host memory (a CPU).
//
// Throughput (smallest largest load; ms per sample, pipelined):
//   load(d) = sum of time(v) of its nodes
//           + sum of transfer(u) over u on d with at least one successor on another device, once
//           each
//           + sum of transfer(u) over u elsewhere with at least one successor on d, once each
//   `contiguous`: the devices can be ordered so that the forward nodes of the first i are closed
//   under predecessors, for every i.
// Latency (smallest completion of one sample), depending on `one_subgraph`:
//   true (the published model): a node on a device of a `concurrent` kind is done at
//   max done(predecessors) + time; the nodes on any other device are one subgraph S that starts
//   when all its outside predecessors are done, reads them (transfer each, once), computes all,
//   and writes those with a successor outside: all of S is done at once. S must be convex, and the
//   relation between subgraphs acyclic (graph with each S contracted is acyclic).
//   false (the planner's model): nodes run one at a time on each device (any number at a time on a
//   concurrent kind), ordered by list scheduling (evaluate_list.h); a value needed elsewhere goes to host memory once
//   and from there to each device that needs it once; these copies run beside computation, one at a
//   time on a device's link.
// Hard limits: sum of sizes on a device <= capacity; times of INFINITY (unsupported); groups whole;
// pins.
#ifndef BERTH_PLANNER_SOLVE_PROBLEM_PROBLEM_H_
#define BERTH_PLANNER_SOLVE_PROBLEM_PROBLEM_H_

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"

#define BERTH_PLACE_NONE UINT32_MAX
#define BERTH_PLACE_NODE_LIMIT ((uint32_t)1 << 20)
#define BERTH_PLACE_DEVICE_LIMIT 4096u
#define BERTH_PLACE_PAIR_LIMIT                                                                     \
    ((uint64_t)1 << 26)                // nodes times devices: strategies keep rows of these
#define BERTH_PLACE_FIGURE_LIMIT 1e18  // of a time, a transfer or a size: sums stay exact enough

// Devices that cannot be told apart.
typedef struct berth_place_kind {
    const char *name;       // "acc", "cpu"; device i of the kind is "NAMEi" in a file's answer
    uint32_t device_count;  // may be 0
    double capacity_bytes;  // INFINITY = no limit
    bool concurrent;        // any number of its nodes run at once (latency)
} berth_place_kind;

// Immutable after berth_place_problem_finish; arena memory. Times and costs are in one unit,
// milliseconds in files. All figures are finite and >= 0 except where INFINITY is named.
typedef struct berth_place_problem {
    uint32_t node_count;
    const char **node_names;  // [node_count] as in the file (an id); unique
    double *time;             // [node_count * kind_count]; INFINITY = unsupported
    double *transfer;         // [node_count * kind_count]
    double *size_bytes;       // [node_count]
    uint32_t *group;      // [node_count] nodes of a group share a device; dense 0..group_count-1
    uint32_t *pin;        // [node_count] device, or BERTH_PLACE_NONE; NULL = no pins; finish
                          // gives a node's pin to its whole group
    bool *backward;       // [node_count] of a training graph: not bound by `contiguous`
    uint32_t edge_count;  // no repeated edges, no edge from a node to itself, no cycle
    uint32_t *edge_from;  // [edge_count]
    uint32_t *edge_to;    // [edge_count]
    uint32_t kind_count;
    berth_place_kind *kinds;  // [kind_count]
    bool one_subgraph;        // latency: see above
    // Links between devices, for latency by list scheduling only (elsewhere all goes by host
    // memory); all NULL = none. Node u's output goes straight from a device of kind k to another of
    // kind l in direct_ms[k * kind_count + l] + value_bytes[u] * direct_ms_per_byte[...], INFINITY
    // = not at all; taken where it is faster, on the reader's link.
    double *direct_ms;           // [kind_count * kind_count]
    double *direct_ms_per_byte;  // [kind_count * kind_count]
    double *value_bytes;         // [node_count]

    // Devices that compute with the same thing (processor cores behind two interfaces): in latency by
    // list scheduling they run one node at a time together, in throughput their loads add up. The
    // first device of each such set, itself for the others; NULL = none. Bounds that know nothing of
    // it hold as well.
    uint32_t *resource;  // [device_count]

    // Devices whose transfers to and from host memory go over one link: in latency by list scheduling
    // one at a time, in throughput they add up. As `resource` is.
    uint32_t *bus;  // [device_count]

    // Memories whose bandwidth several devices share. For how long a node would take all of its
    // memory's, at most its time: together they cannot take less than the sum, whatever runs beside
    // what. The latency by list scheduling and the largest load are no less than any memory's sum.
    // Both NULL = none. Bounds that know nothing of it hold as well.
    double *memory_ms;  // [node_count * kind_count]
    uint32_t *memory;   // [device_count] the first device of its memory
    // The same of a copy of the node's value, at the end that is a device of the kind; at the other, where
    // that is host memory, as for the device `hub`, which computes there. NULL = copies take nothing of
    // what is counted in memory_ms.
    double *copy_ms;  // [node_count * kind_count]
    uint32_t hub;

    // Direct links that are one bus, by its number: below device_count the one that transfers between
    // host memory and that device go over (`bus`), others below device_count + direct_bus_count; NONE =
    // the link is no bus. The latency by list scheduling is no less than what a bus has to move in sum.
    uint32_t *direct_bus;  // [kind_count * kind_count] NULL = none
    uint32_t direct_bus_count;

    // Set by berth_place_problem_finish:
    uint32_t group_count;
    uint32_t device_count;  // all kinds' devices: those of kind 0 first
    uint32_t *device_kind;  // [device_count]
    uint32_t *succ_start;   // [node_count + 1] into succ
    uint32_t *succ;         // [edge_count]
    uint32_t *pred_start;   // [node_count + 1] into pred
    uint32_t *pred;         // [edge_count]
    uint32_t *topological;  // [node_count] nodes, predecessors first; ties by index
    uint32_t *group_start;  // [group_count + 1] into group_nodes
    uint32_t *group_nodes;  // [node_count] in order of index
    double *group_bytes;    // [group_count]
} berth_place_problem;

// Checks what the caller filled in (all pointers in `arena`), drops repeated edges and builds the
// rest. O(nodes + edges) apart from sorting.
//   errors: INVALID_ARGUMENT a cycle (named), an index out of range, a negative or NaN figure, a
//   pin that contradicts its group's; OUT_OF_RANGE too many nodes or devices, a figure beyond
//   BERTH_PLACE_FIGURE_LIMIT; OUT_OF_MEMORY
BERTH_MUST_USE berth_status berth_place_problem_finish(berth_arena *arena,
                                                       berth_place_problem *problem);

// Whether a device of the kind holds the group when nothing else is there.
bool berth_place_has_room(const berth_place_problem *problem, uint32_t group, uint32_t kind);

// Time to move the node's output straight from one device to another; INFINITY = no such link.
double berth_place_direct(const berth_place_problem *problem, uint32_t node, uint32_t from,
                          uint32_t to);
// The same from a device of one kind to another device of a kind.
double berth_place_direct_kinds(const berth_place_problem *problem, uint32_t node,
                                uint32_t from_kind, uint32_t to_kind);

// What of memories and buses is shared, in sum: begins with what the nodes take (sums:
// [berth_place_shared_count]), then each copy is added, and the largest sum is asked for.
//   from, to: devices; BERTH_PLACE_NONE = host memory
//   ms: that the copy takes of its link
uint32_t berth_place_shared_count(const berth_place_problem *problem);
void berth_place_shared_nodes(const berth_place_problem *problem, const uint32_t *assignment,
                              double *sums);
void berth_place_shared_copy(const berth_place_problem *problem, uint32_t node, uint32_t from,
                             uint32_t to, double ms, double *sums);
double berth_place_shared_most(const berth_place_problem *problem, const double *sums);

// First device of a kind.
uint32_t berth_place_kind_first(const berth_place_problem *problem, uint32_t kind);

#endif  // BERTH_PLANNER_SOLVE_PROBLEM_PROBLEM_H_
