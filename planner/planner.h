// The planner: decides on which device of a MultiTarget every operation of a module runs, and
// inserts the copies, in stages (berth_plan_stage_at; the table is in planner.c).
//
// After it, every operation's and value's `device` attribute is set, device_copy operations mark
// every change of device, and running it again changes nothing. docs/planner.md explains it with
// small examples.
#ifndef BERTH_PLANNER_PLANNER_H_
#define BERTH_PLANNER_PLANNER_H_

#include "base/log.h"
#include "ir/graph/graph.h"
#include "target/target.h"

// Where a predicted time comes from, the surest last.
typedef enum berth_cost_figure {
    BERTH_COST_NONE,      // nothing runs: views, shapes; or it is computed on the way of another
                          // operation, with which it is fused, and whose time holds it
    BERTH_COST_ANALYTIC,  // from the figures of the target
    BERTH_COST_MODELLED,  // of the same work's code, by a timing model of the device
    BERTH_COST_INTERPOLATED,  // from measured times of similar work on such a device
    BERTH_COST_MEASURED,      // of the same work on such a device
} berth_cost_figure;
const char *berth_cost_figure_name(berth_cost_figure figure);  // "measured"

// A stage of the planner.
typedef struct berth_plan_stage {
    const char *name;            // "place"
    const char *reads, *writes;  // for people: "the devices", "the module: copies, devices"
} berth_plan_stage;

// In the order in which they run, which is also that of docs/planner.md; NULL after the last.
const berth_plan_stage *berth_plan_stage_at(uint32_t index);

// A memory on a device's chip that an operation works in while it runs there.
typedef struct berth_plan_buffer {
    uint32_t memory;      // of the target
    uint64_t used_bytes;  // at most
} berth_plan_buffer;

// A kernel that computes one or several operations of @main at once, when all of their operands are there.
typedef struct berth_plan_kernel {
    berth_op_id op;    // most of the work
    berth_op_id last;  // whose result it makes
    double time_ns;
    double memory_ns;          // see berth_cost_model
    berth_cost_figure figure;  // where the time comes from
} berth_plan_kernel;

// What the planner asks the compiler about an operation on a device of the target: one interface for
// costs from figures and from measurements.
typedef struct berth_cost_model {
    // NULL when the device can run it, else why not (text in `arena`).
    const char *(*unsupported)(void *user, const berth_module *module, berth_func_id function,
                               berth_op_id op, uint32_t device, berth_arena *arena);
    // Predicted time of one execution, in nanoseconds.
    double (*time_ns)(void *user, const berth_module *module, berth_func_id function,
                      berth_op_id op, uint32_t device);
    void *user;
    // (optional) For how long of that time it would take all the bandwidth of its device's own
    // memory, in nanoseconds: what devices that share the memory cannot have twice.
    double (*memory_ns)(void *user, const berth_module *module, berth_func_id function,
                        berth_op_id op, uint32_t device);
    // (optional) Where that time comes from.
    berth_cost_figure (*figure)(void *user, const berth_module *module, berth_func_id function,
                                berth_op_id op, uint32_t device);
    // (optional) The kernels that would be made of @main with its operations on these devices (`devices`: of the
    // target, per operation), in `arena`; false = not known, and the times of operations stand for them.
    bool (*kernels)(void *user, const berth_module *module, berth_func_id main,
                    const uint32_t *devices, berth_arena *arena,
                    const berth_plan_kernel **out_kernels, uint32_t *out_count);
    // (optional) Time of a copy between the own memories of two devices, where it is known better
    // than from the target's links; false = it is not. Of 0 bytes between devices of one memory: until
    // the other has noticed that it may begin.
    bool (*copy_ns)(void *user, uint32_t from, uint32_t to, uint64_t size_bytes, double *out_ns);
    // (optional) How much longer a copy takes where kernels are at both of its ends, not the caller of the run.
    double (*between_kernels_ns)(void *user, uint32_t from, uint32_t to);
    // (optional) Whether the device runs the operation only together with `previous`, which makes
    // one of its operands: the two stay on one device, unless that is not what was asked for.
    bool (*only_after)(void *user, const berth_module *module, berth_func_id function,
                       berth_op_id op, uint32_t device, berth_op_id previous);
    // (optional) The memories on the device's chip that the operation takes; the number of them.
    uint32_t (*buffers)(void *user, const berth_module *module, berth_func_id function,
                        berth_op_id op, uint32_t device, berth_arena *arena,
                        berth_plan_buffer **out_buffers);
} berth_cost_model;

typedef struct berth_plan_options {
    const berth_multi_target *target;  // its pins included
    berth_cost_model cost;
    const char *strategy;    // NULL = "default"; see berth_plan_strategy_at
    const char *objective;   // NULL = "latency"; "throughput", "memory"
    uint64_t node_budget;    // search nodes; 0 = BERTH_PLAN_DEFAULT_NODES
    int64_t time_budget_ns;  // 0 = none, and the same module gives the same plan
    // Per device of the target: room for values, kept free of constants; UINT64_MAX: only what is
    // held there goes there. NULL = as estimated.
    const uint64_t *reserve_bytes;
    // Fill berth_plan_entry.rejected and .chain, and find a bound for what the rules placed, which has 0 without.
    bool explain;
    // Instances of one function, with the places of parameters and results that calls want, where
    // that saves copies or where there is no plan otherwise: at most 8; 0, 1 = one signature each.
    uint32_t max_instances;
    // Parameters and results of `main` are in host memory, whatever the rules say: copies are
    // inserted at the borders. For execution.
    bool host_bound;
    // (optional) Called after every stage, to measure them.
    void (*after_stage)(void *user, const berth_plan_stage *stage);
    void *stage_user;
} berth_plan_options;

// Search nodes of a plan by default: well below a second for models of a few hundred operations.
#define BERTH_PLAN_DEFAULT_NODES ((uint64_t)300000)
// Modules with more operations are placed by the rules, without prediction of their overlap.
#define BERTH_PLAN_SEARCH_LIMIT 20000u
// Steps of berth_plan_entry.chain; of a longer one "and so on" stands for those before the last.
#define BERTH_PLAN_CHAIN_LIMIT 8u

// A device that an operation is not on.
typedef struct berth_plan_rejected {
    uint32_t device;  // of the target
    const char
        *reason;   // "unsupported: ...", "pinned: ...", "capacity: ...", "+0.31 ms: copies ..."
    double delta;  // what the plan's value would rise by (see berth_plan.unit); < 0: it would
                   // be better there; NAN = not possible or not known
} berth_plan_rejected;

// A library that could compute an operation in place of our kernels (compiler/libraries).
typedef struct berth_plan_library {
    const char *name;      // "dnnl"
    const char *computes;  // "matmul f32 [128,768]*[768,768], bias"
    // What was measured of it, and of our kernels for the same; < 0: nothing was.
    double time_ns, own_ns;
    double extra_ns;  // of passes over the result that our kernels would have been fused with
    bool chosen;
    const char *reason;  // "measured on this kind of device: ...", "libs_policy=always"
} berth_plan_library;

// Where one operation of `main` went and why.
typedef struct berth_plan_entry {
    berth_op_id op;  // as it was when planned (fusion removes it later)
    berth_loc_id loc;
    uint32_t device;     // of the target
    const char *reason;  // "pinned: ...", "default device", "with %x (operand ...): annotation ..."
    const char *const *chain;  // the same step by step, what decided it last; NULL unless asked for
    uint32_t chain_count;
    bool host_operation;
    double time_ns;              // predicted
    berth_cost_figure figure;    // where that comes from
    double start_ns;             // predicted, from the start of a request
    berth_plan_buffer *buffers;  // what it takes of the device's chip
    uint32_t buffer_count;
    berth_plan_rejected *rejected;  // the other devices, in order; NULL unless asked for
    uint32_t rejected_count;
    const berth_plan_library *libraries;  // of the target's libs that have the operation
    uint32_t library_count;
} berth_plan_entry;

typedef struct berth_plan_copy {
    berth_op_id op;       // the device_copy
    berth_op_id before;   // the operation that needs it first; BERTH_NONE = the function's results
    uint32_t from, to;    // devices
    uint64_t size_bytes;  // 0 = alias (both reach the memory)
    double time_ns;
    double bandwidth_bytes_per_s;  // of the narrowest link of its route in the target; 0 = alias
    const char *bus;               // the route's first, which its copies share; "" = none
    const char *value;             // its name
    const char *reason;            // "needed there by sub, ...", "on the way to npu:0"
} berth_plan_copy;

// A value on its way in the predicted schedule of one request, beside computation.
typedef struct berth_plan_transfer {
    uint32_t device;  // whose link is busy
    bool to_host;     // else to the device
    const char *value;
    double start_ns;
    double time_ns;
} berth_plan_transfer;

// Where anything of the module is, and why: the whole plan, of all functions.
typedef enum berth_plan_place_kind {
    BERTH_PLAN_PARAM,   // index: among the function's parameters
    BERTH_PLAN_OP,      // index: operation, of any region
    BERTH_PLAN_COPY,    // index: the device_copy; from `from`
    BERTH_PLAN_RESULT,  // index: among the function's results
} berth_plan_place_kind;

typedef struct berth_plan_place {
    berth_func_id function;
    berth_plan_place_kind kind;
    uint32_t index;
    const char *operation;   // "add"; NULL for parameters and results
    const char *value;       // name of parameter, operation's first result, result; "" = none
    berth_loc_id loc;        // of operations
    berth_device_id device;  // in full; 0 = a function, which is in several places
    berth_device_id from;    // COPY
    uint64_t size_bytes;     // COPY: 0 = alias
    const char *reason;
} berth_plan_place;

typedef struct berth_plan {
    berth_plan_entry *entries;  // in source order
    uint32_t entry_count;
    berth_plan_copy *copies;
    uint32_t copy_count;
    berth_plan_transfer *transfers;  // in the order of their starts
    uint32_t transfer_count;
    berth_plan_place *places;  // by function, in source order
    uint32_t place_count;
    const char *strategy;  // "auto"
    const char *found_by;  // what found the placement: "heft", "default", ...
    double
        predicted_ns;  // of one request: the end of the predicted schedule of the kernels that are made
    // (berth_cost_model.kernels), copies beside computation; where `valued` is not
    // set, one after the other

    // The placement as the solver values it (planner/placement.h), the same for every strategy: each kernel at
    // its longest operation, fused as if all ran on that device.
    bool valued;            // false: no cost model, or too large a module
    const char *objective;  // "latency", "throughput", "memory"
    const char *unit;       // of value and bound: "ns", "bytes" or "of capacity"
    double value;
    double lower_bound;  // proven: no placement is below it, in the model
    double gap;          // (value - lower_bound) / value; 0 = optimal in the model
    bool proven;         // optimal in the model
    bool reproducible;   // false: the time budget ended the search
    uint64_t search_nodes;
    const char **notes;  // what was left out, or assumed: what the figures are not about
    uint32_t note_count;
    const char **warnings;  // pins that match only what was folded away, operations that the
                            // default device cannot run, ...
    uint32_t warning_count;
} berth_plan;

// Plans function `main` (and what it calls) of the module in place. The plan lives in the module's
// arena. Errors: INVALID_ARGUMENT (a pin that matches nothing, contradicting pins), UNSUPPORTED (an
// operation no allowed device can run: all of them listed), conflicts with both chains of reasons.
// Inside berth_arena_try.
BERTH_MUST_USE berth_status berth_plan_module(berth_module *module,
                                              const berth_plan_options *options,
                                              berth_plan **out_plan);

// For a model that is planned in parts: looks here, in the whole, for what the pins of the target match.
// They are marked (in a copy, in `arena`), so that a part in which one matches nothing is no error.
// Errors: INVALID_ARGUMENT naming a pin of the caller that matches no node. Inside berth_arena_try of `arena`.
BERTH_MUST_USE berth_status berth_plan_check_pins(const berth_module *module,
                                                  berth_multi_target *target, berth_log log,
                                                  berth_arena *arena);

// Adds a note (borrowed) to a plan of `arena`. Inside berth_arena_try.
void berth_plan_add_note(berth_plan *plan, berth_arena *arena, const char *note);

// The strategies: name and one line about each; false after the last.
bool berth_plan_strategy_at(uint32_t index, const char **out_name, const char **out_doc);

// Device of the target that an operation was placed on (after planning), or BERTH_NO_INDEX.
uint32_t berth_plan_device_of(const berth_module *module, const berth_multi_target *target,
                              berth_device_id device);

// Whether pins of the target put operations of these locations on different devices: the two must not
// become one. Target NULL: no pins.
bool berth_planner_pinned_apart(const berth_module *module, berth_arena *arena,
                                const berth_multi_target *target, berth_loc_id a, berth_loc_id b);

#endif  // BERTH_PLANNER_PLANNER_H_
