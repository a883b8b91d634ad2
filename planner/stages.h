// What the planner's stages hand to each other (private to planner/).
#ifndef BERTH_PLANNER_STAGES_H_
#define BERTH_PLANNER_STAGES_H_

#include "planner/constraints.h"
#include "planner/planner.h"
#include "target/route_memo.h"

// Nodes of the constraint system for one function; NULL arrays for what is no graph.
typedef struct berth_planner_function {
    berth_graph *graph;  // NULL: not planned
    uint32_t *value;     // per value
    uint32_t *op;        // per operation
    uint32_t *extra;   // per operation: the device an on_device or device_copy names, the function
                       // that a call_value calls or a func_ref of a lowered function is; BERTH_NONE
                       // for others
    uint32_t *result;  // per result of the function
    uint32_t *interface;  // parameters, then results
    uint32_t **copies;    // per operation: the interface of what it calls or refers to, where that
                          // is apart from all others (polymorphic.c); NULL: the function's own
    uint32_t self;        // the function as a value
    uint32_t *scope;      // lowered functions: per parameter, the scope of its buffer; else NULL
    struct berth_planner_buffers *buffers;  // with `scope`: what calls read and write
    bool *returned;                         // per value: a result of the function
    const char **reason;  // per operation: why it is where it is; NULL = follows from others
    bool *loose;          // per operation: where it runs says nothing about its neighbours
    berth_bits *able;     // per operation: devices of the target that can run it
    const char **cannot;  // per operation: why the default device cannot run it; NULL = it can
    berth_op_id *order;   // all operations, those of regions after their owner
    uint32_t order_count;
    uint32_t *number;  // per value without a name: how many such are defined before it, as the text
                       // form numbers them; BERTH_NONE: it is nowhere
    uint32_t value_count, op_count, result_count;  // when the nodes were made
} berth_planner_function;

typedef struct berth_planner_choice berth_planner_choice;

typedef struct berth_planner_state {
    berth_module *module;
    berth_func_id main;
    const berth_plan_options *options;
    berth_arena *arena;
    berth_constraints *constraints;
    berth_planner_function *functions;  // per function of the module
    uint32_t host;                      // a node on the host
    const berth_func_id *behind;  // per function: whose soft edges come just before its own; itself
                                  // = in the order of the module. NULL = all are in that
    BERTH_VEC(const char *) warnings;
    bool *pinned;            // per pin of the target: it matched an operation
    uint32_t unable_count;   // operations that the default device cannot run, gone elsewhere
    const char *unable_why;  // of the first
    bool changed;  // a device or scope was decided, or a copy made, that the module did not have
    berth_planner_choice *choice;  // choice.c; NULL = placed by the rules, without a prediction
    berth_op_id *ops;              // of main's root region, before copies were made
    uint32_t op_count;
    berth_plan *plan;          // report.c
    berth_route_memo *routes;  // NULL = none are kept
} berth_planner_state;

// Parameters of a lowered function: those that calls pass and those that they get. An `inout` is
// both; where calls pass all parameters, or get only the `out` ones, these are meant.
typedef struct berth_planner_buffers {
    BERTH_VEC(uint32_t) read;     // in, inout
    BERTH_VEC(uint32_t) written;  // out, inout
    BERTH_VEC(uint32_t) out;
} berth_planner_buffers;

// What a use of a value demands of its place.
typedef enum berth_use_kind {
    BERTH_USE_FREE,     // any place will do (reads metadata, or is no tensor)
    BERTH_USE_HARD,     // `node`
    BERTH_USE_SOFT,     // `node`, a copy may be made
    BERTH_USE_LOWERED,  // the device of `node` in the scope of the node `scope`; a copy may be made
} berth_use_kind;

typedef struct berth_use {
    berth_use_kind kind;
    uint32_t node;
    uint32_t scope;  // BERTH_NONE: any
    const char *reason;
} berth_use;

berth_use berth_planner__operand(const berth_planner_state *state, berth_func_id function,
                                 const berth_op *op, berth_op_id id, uint32_t operand);
berth_use berth_planner__result(const berth_planner_state *state, berth_func_id function,
                                berth_region_id region, uint32_t result);
// All operations in source order, those of regions after their owner.
berth_op_id *berth_planner__order(const berth_planner_state *state, const berth_graph *graph,
                                  uint32_t *out_count);
bool berth_planner__is_constant(const berth_graph *graph, berth_value_id value);
bool berth_planner__is_function(const berth_planner_state *state, const berth_graph *graph,
                                berth_value_id value);
// A function or a tuple that holds one: no data, so that nothing copies it.
bool berth_planner__stays(const berth_planner_state *state, const berth_graph *graph,
                          berth_value_id value);
// "x", or "7" as the module's text calls a value without a name; a copy is called as what it copies.
const char *berth_planner__value_name(const berth_planner_state *state,
                                      const berth_planner_function *f, berth_value_id value);
berth_device_id berth_planner__device_id(const berth_planner_state *state, uint32_t device);
// Device of the target that a node stands on; BERTH_NO_INDEX = not decided.
uint32_t berth_planner__device_of(const berth_planner_state *state, uint32_t node);
// The node of the scope in which a call's result is made, whatever its users want: that of a lowered
// function's buffer, or of the result of a function that is a value. BERTH_NONE where there is none.
uint32_t berth_planner__result_scope(const berth_planner_state *state, berth_func_id function,
                                     berth_op_id op, uint32_t result);
// The device of one node in the scope of another (BERTH_NONE = none).
berth_device_id berth_planner__in_scope(const berth_planner_state *state, uint32_t device,
                                        uint32_t scope);

// ---- calls and copies of functions (clone.c) ----
berth_func_id berth_planner__callee(const berth_module *module, const berth_op *op);
void berth_planner__set_callee(berth_module *module, berth_op *op, berth_func_id callee);
// A copy of a graph function, after all others, under the same name with a suffix. The graph's
// vectors of other functions stay where they are; the module's functions move.
berth_func_id berth_planner__clone(berth_module *module, berth_func_id function);

// ---- memories and routes (routes.c) ----
// The memory where a value on this device, in its scope, lives.
uint32_t berth_planner__memory(const berth_planner_state *state, berth_device_id id);
// Whether a change from a to b is an alias: both reach the memory.
bool berth_planner__shared(const berth_planner_state *state, berth_device_id a, berth_device_id b);
// Bytes of a static tensor, of a tuple the sum of its fields; 0 where it is not known.
uint64_t berth_planner__size_bytes(const berth_planner_state *state, berth_type_id type);
// Time of a copy between the own memories of two devices of the target: as the cost model knows it,
// else over the cheapest route. False: there is no way.
// The cheapest route between two memories of the target (berth_multi_target_route).
bool berth_planner__route(const berth_planner_state *state, uint32_t from, uint32_t to,
                          uint64_t size_bytes, berth_target_route *out_route);

bool berth_planner__transfer_ns(const berth_planner_state *state, uint32_t from, uint32_t to,
                                uint64_t size_bytes, double *out_ns);
// The same with the routes from `from`'s own memory for this size, where they are found already.
bool berth_planner__known_ns(const berth_planner_state *state, uint32_t from, uint32_t to,
                             uint64_t size_bytes, const berth_target_routes *routes,
                             double *out_ns);
// Bytes that a change from a to b moves, and the time by the cheapest route.
// The first bus on the route of a copy, "" = none, and the bandwidth of its narrowest hop, 0 = it moves
// nothing.
const char *berth_planner__bus_of(const berth_planner_state *state, berth_device_id a,
                                  berth_device_id b, uint64_t size_bytes,
                                  double *out_bandwidth_bytes_per_s);

uint64_t berth_planner__copy_cost(const berth_planner_state *state, berth_device_id a,
                                  berth_device_id b, berth_type_id type, double *out_time_ns);

// ---- reports ----
// Why every node is where it is: made once (reasons.c), after the defaults.
typedef struct berth_planner_reasons berth_planner_reasons;
berth_planner_reasons *berth_planner__reasons(const berth_planner_state *state);
const char *berth_planner__why(const berth_planner_reasons *reasons, uint32_t node);
// The same step by step: what a thing is with, what that is with, and at last what decides it. At most
// BERTH_PLAN_CHAIN_LIMIT steps.
const char *const *berth_planner__chain(const berth_planner_reasons *reasons, uint32_t node,
                                        uint32_t *out_count);
// What was decided (report.c). `ops`: those of main's root region before copies were made.
berth_plan *berth_planner__report(berth_planner_state *state, const berth_op_id *ops,
                                  uint32_t op_count);

// ---- stages (planner.c has the table, with their names and their order) ----
// project (project.c): tuple_get(on_device(t)) becomes on_device(tuple_get(t)).
void berth_planner__project(berth_module *module);
// border (border.c): calls of @main within the module, which is bound to the host, go to a copy.
void berth_planner__separate_border(berth_module *module, berth_func_id main);
// specialise (specialise.c): instances of functions, where more than one are allowed.
berth_status berth_planner__specialise(berth_planner_state *state);
// nodes (nodes.c): one per value, operation and result.
void berth_planner__nodes(berth_planner_state *state);
// hard (rules.c), pins (pins.c), and support (place.c): what operators cannot do.
berth_status berth_planner__hard(berth_planner_state *state);
// Parts of hard and pins: what is of no graph function, then each graph function.
berth_status berth_planner__hard_start(berth_planner_state *state);
berth_status berth_planner__hard_function(berth_planner_state *state, berth_func_id function);
berth_status berth_planner__pins(berth_planner_state *state);
berth_status berth_planner__pin_function(berth_planner_state *state, berth_func_id function);
berth_status berth_planner__support(berth_planner_state *state);
// Whether memory scopes occur, in what was read or in lowered functions (planner.c).
bool berth_planner__names_scopes(const berth_module *module);
// From nodes to support (planner.c).
berth_status berth_planner__constrain(berth_planner_state *state);
// choose (choice.c): what a strategy decides. place (place.c), the rules: what the default device
// cannot run, soft edges in source order, defaults.
berth_status berth_planner__choose(berth_planner_state *state);
berth_status berth_planner__place(berth_planner_state *state);
// copies (copies.c): inserts device_copy operations and records devices.
berth_status berth_planner__copies(berth_planner_state *state);
// value (choice.c, rejected.c): what the strategies' model says of the result, in `state->plan`.
berth_status berth_planner__value(berth_planner_state *state);

#endif  // BERTH_PLANNER_STAGES_H_
