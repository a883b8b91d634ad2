// Device placement on plain data (libberth-compiler): nodes of a graph, with a time on each kind of device and
// a cost to move their results, are given devices. No model is needed; docs/placement.md says what is
// computed and proven.
//
//   berth_placement_problem *problem;          // or berth_placement_problem_read("graph.json", &problem)
//   const double slow[] = {1, 8}, fast[] = {5, 2}, move[] = {0.1, 0};
//   berth_status status = berth_placement_problem_create(&problem);
//   if (!status) status = berth_placement_problem_add_kind(problem, "acc", 2, 16e9, 0);
//   if (!status) status = berth_placement_problem_add_kind(problem, "cpu", 1, INFINITY, 1);
//   if (!status) status = berth_placement_problem_add_node(problem, "conv", slow, move, 4096);
//   if (!status) status = berth_placement_problem_add_node(problem, "topk", fast, move, 0);
//   if (!status) status = berth_placement_problem_add_edge(problem, 0, 1);
//   if (!status) status = berth_placement_problem_solve(problem, NULL);
//   if (!status) printf("topk on device %u\n", berth_placement_problem_node(problem, 1)->device);
//   berth_placement_problem_destroy(problem);
//
// A problem is used by one thread at a time; texts and facts that it gives live until it changes.
#ifndef BERTH_PLACEMENT_H_
#define BERTH_PLACEMENT_H_

#include <berth/status.h>
#include <stddef.h>
#include <stdint.h>

BERTH_BEGIN

typedef struct berth_placement_problem berth_placement_problem;

#define BERTH_NO_DEVICE UINT32_MAX

// What is to be small. Numbers do not change.
typedef enum berth_placement_objective {
    BERTH_PLACEMENT_THROUGHPUT = 0,  // the largest load of a device per sample, ms
    BERTH_PLACEMENT_LATENCY = 1,     // the time until one sample is done, ms
    BERTH_PLACEMENT_MEMORY =
        2  // the largest sum of sizes on a device, as a share of its capacity where
           // every device has one, else bytes
} berth_placement_objective;

// ---- the problem ----

// An empty problem, or one from a file in the format of Tarnawski et al. (NeurIPS 2020), or from such text;
// `name` starts the messages about it. Kind 0 of such a problem is "acc", kind 1 "cpu".
//   ownership: the caller destroys it; nothing given is kept
//   errors:    NOT_FOUND, IO; INVALID_ARGUMENT and OUT_OF_RANGE say where and what
BERTH_API BERTH_MUST_USE berth_status
berth_placement_problem_create(berth_placement_problem **out_problem);
BERTH_API BERTH_MUST_USE berth_status
berth_placement_problem_read(const char *path, berth_placement_problem **out_problem);
// From a file within limits ("bytes=1MiB,items=10000,depth=10,time=5s"; docs/limits.md; items are nodes and edges).
// Errors: as those of reading; OUT_OF_RANGE a limit is met; INVALID_ARGUMENT `limits` is no such text.
BERTH_API BERTH_MUST_USE berth_status berth_placement_problem_read_limited(
    const char *path, const char *limits, berth_placement_problem **out_problem);
BERTH_API BERTH_MUST_USE berth_status berth_placement_problem_parse(
    const char *name, const char *text, size_t length, berth_placement_problem **out_problem);
BERTH_API void berth_placement_problem_destroy(berth_placement_problem *problem);  // NULL is fine

// These four make a problem that was created empty, kinds first; indices are in the order of adding. What
// contradicts (a cycle, a negative time) is said when it is solved.
// Errors: FAILED_PRECONDITION kinds after nodes, or after the problem was read or solved.

// Devices that cannot be told apart, each with a capacity (INFINITY = no limit). `concurrent` not 0: any number of
// its nodes run at once, and it works in host memory (a processor).
BERTH_API BERTH_MUST_USE berth_status
berth_placement_problem_add_kind(berth_placement_problem *problem, const char *name,
                                 uint32_t device_count, double capacity_bytes, int concurrent);
// A node: time_ms[kind], INFINITY where it cannot run; transfer_ms[kind], what its result takes between a device
// of the kind and host memory; and what it keeps on its device.
BERTH_API BERTH_MUST_USE berth_status berth_placement_problem_add_node(
    berth_placement_problem *problem, const char *name, const double *time_ms,
    const double *transfer_ms, double size_bytes);
// Node `to` needs the result of `from`. Errors: OUT_OF_RANGE no such node.
BERTH_API BERTH_MUST_USE berth_status
berth_placement_problem_add_edge(berth_placement_problem *problem, uint32_t from, uint32_t to);
// The node stays on that device: kind 0's devices come first, then kind 1's. Errors: OUT_OF_RANGE.
BERTH_API BERTH_MUST_USE berth_status berth_placement_problem_pin(berth_placement_problem *problem,
                                                                  uint32_t node, uint32_t device);

// ---- solving ----

// How far the search is: whenever a strategy begins, or a better placement or bound is known.
typedef struct berth_placement_progress {
    const char *strategy;  // that runs; "" = none yet
    double value;          // of the best placement; INFINITY = none yet
    double lower_bound;    // proven
} berth_placement_progress;

// Zero everything, set size_bytes, then what should not be the default. Later versions may add members at
// the end.
typedef struct berth_placement_settings {
    size_t size_bytes;  // sizeof(berth_placement_settings)
    berth_placement_objective objective;
    int contiguous;  // throughput: only where the devices have an order that the edges follow
    int one_node_at_a_time;  // latency: a device runs a node at a time, as the planner of models has it; 0: an
                             // accelerator runs one subgraph, the published model
    const char *strategy;  // NULL = "auto" (berth_placement_strategy_at)
    uint64_t
        node_budget;  // search nodes, the same answer every time; 0 = 8000000, or without limit where there
                      // is a time
    int64_t time_budget_ns;  // 0 = none
    void (*progress)(void *user, const berth_placement_progress *progress);
    void *progress_user;
} berth_placement_settings;

// Places the nodes; NULL = defaults.
//   errors: INVALID_ARGUMENT the problem, a setting or a strategy that does not apply; FAILED_PRECONDITION proven
//           that no placement keeps the limits; OUT_OF_RANGE none was found within the budget
BERTH_API BERTH_MUST_USE berth_status berth_placement_problem_solve(
    berth_placement_problem *problem, const berth_placement_settings *settings);
// Takes a placement from a file instead, as `berth place --format json` writes it, and values it. Of the settings the
// first three members are looked at. Errors: FAILED_PRECONDITION it breaks a limit (names it).
BERTH_API BERTH_MUST_USE berth_status berth_placement_problem_check(
    berth_placement_problem *problem, const char *path, const berth_placement_settings *settings);

// Strategies: name and one line about each; 0 after the last. Some names have several rows, for other
// objectives.
BERTH_API int berth_placement_strategy_at(uint32_t index, const char **out_name,
                                          const char **out_text);

// ---- the answer ----

// Later versions may add members at the end.
typedef struct berth_placement_answer {
    double value;  // of the objective
    double
        lower_bound;   // proven: no placement is below it; 0 after a check, as is all that follows
    double gap;        // (value - lower_bound) / value; 0 = optimal
    int proven;        // value and bound are the same
    int reproducible;  // not 0: no time ran out, the answer is the same every time
    int is_share;      // objective memory: the value is a share of the capacity, not bytes
    const char *strategy;  // what found it; "" after a check
    uint64_t node_count;   // search nodes used
} berth_placement_answer;

// A device. Later versions may add members at the end.
typedef struct berth_placement_device {
    const char *name;       // "acc0"
    double capacity_bytes;  // INFINITY = no limit
    double load;  // throughput: ms per sample; latency: ms busy; memory: bytes; 0 while not placed
    double size_bytes;  // of its nodes
    uint32_t node_count;
} berth_placement_device;

// A node. Later versions may add members at the end.
typedef struct berth_placement_node {
    const char *name;
    uint32_t device;  // BERTH_NO_DEVICE while not placed
} berth_placement_node;

// NULL while nothing is placed.
BERTH_API const berth_placement_answer *
berth_placement_problem_answer(const berth_placement_problem *problem);
// Devices are known once the problem was read or solved.
BERTH_API uint32_t berth_placement_problem_device_count(const berth_placement_problem *problem);
BERTH_API uint32_t berth_placement_problem_node_count(const berth_placement_problem *problem);
BERTH_API uint32_t berth_placement_problem_edge_count(const berth_placement_problem *problem);
// Nodes that must share a device count as one; 0 before the problem was read or solved.
BERTH_API uint32_t berth_placement_problem_group_count(const berth_placement_problem *problem);
// NULL when there is no such index, or the problem was neither read nor solved.
BERTH_API const berth_placement_device *
berth_placement_problem_device(const berth_placement_problem *problem, uint32_t index);
BERTH_API const berth_placement_node *
berth_placement_problem_node(const berth_placement_problem *problem, uint32_t index);

// The placement as an SVG document, a row for each device. `title` may be NULL. Errors: FAILED_PRECONDITION nothing
// is placed.
BERTH_API BERTH_MUST_USE berth_status berth_placement_problem_draw(berth_placement_problem *problem,
                                                                   const char *title,
                                                                   const char **out_svg);

BERTH_END

#endif  // BERTH_PLACEMENT_H_
