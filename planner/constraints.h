// Equalities between the virtual devices of values and operations, solved by union-find.
//
// A node stands for a value, an operation or a result. Its class holds what is known of its device
// (a partial virtual device), the devices of the target that may be chosen, and, for functions, the
// nodes of parameters and results. Where a module names memory scopes, a node has a twin (the next
// id) that holds the scope alone, so that a value can share its device with one thing and its scope
// with another: an argument of a lowered call is on the call's device, in its buffer's scope.
// All run in the same solver. Union is by rank without path compression, so that a trail can
// undo it. Two classes unite where their devices join, part by part, and the target has a device
// that agrees with the result. Beside it a proof forest (Nieuwenhuis and Oliveras, "Proof-producing
// congruence closure", RTA 2005) keeps one edge with reason and location per union; the smaller
// tree is turned round, O(log n) amortised per union. Find is O(log n), memory linear in nodes and
// unions. Thread-compatible; lives in the arena given; inside berth_arena_try.
#ifndef BERTH_PLANNER_CONSTRAINTS_H_
#define BERTH_PLANNER_CONSTRAINTS_H_

#include "ir/module.h"
#include "target/target.h"

enum { BERTH_CONSTRAINT_PARTS = 4 };  // device type, virtual id, target, memory scope

// Why two nodes are equal. `text` is not copied.
typedef struct berth_constraint_reason {
    const char *text;
    berth_loc_id loc;
} berth_constraint_reason;

typedef struct berth_constraint_node {
    uint32_t parent;
    uint32_t rank;
    berth_device_id device;  // of the class, at its root
    uint32_t function;       // BERTH_NONE, or into functions
    bool first_order;        // a tensor, a tuple or a known device: a function here is all on it
    berth_bits allowed;      // devices of the target that may be chosen
    uint32_t source[BERTH_CONSTRAINT_PARTS];  // node that brought each set part
    uint32_t proof;                           // neighbour towards the root of the proof tree
    uint32_t proof_edge;
    uint32_t size;
    const char *why;  // of the class: the default that brought its device; NULL = none did
} berth_constraint_node;

typedef struct berth_constraint_function {
    uint32_t *nodes;  // parameters, then results
    uint32_t param_count;
    uint32_t count;
} berth_constraint_function;

typedef struct berth_constraint_edge {
    uint32_t a, b;
    berth_constraint_reason reason;
} berth_constraint_edge;

// Why a node that berth_constraints_fix made has its device.
typedef struct berth_constraint_origin {
    uint32_t node;
    berth_constraint_reason reason;
} berth_constraint_origin;

typedef struct berth_constraint_trail {
    uint32_t child, root, cut;
    berth_constraint_node saved;  // the root before
} berth_constraint_trail;

typedef struct berth_constraints {
    const berth_module *module;
    const berth_multi_target *target;
    berth_arena *arena;
    bool scoped;  // nodes have twins
    BERTH_VEC(berth_constraint_node) nodes;
    BERTH_VEC(berth_constraint_function) functions;
    BERTH_VEC(berth_constraint_edge) edges;
    BERTH_VEC(berth_constraint_trail) trail;
    BERTH_VEC(berth_constraint_edge) pending;
    BERTH_VEC(berth_constraint_origin) origins;  // by node, ascending
    BERTH_VEC(const berth_bits *) agreeing;      // per virtual device; NULL = not known yet
    berth_bits all;                              // devices of the target
    berth_constraint_edge conflict;              // the edge that failed
} berth_constraints;

// `scoped`: memory scopes occur (else naming one is a mistake of the caller's).
berth_constraints *berth_constraints_create(const berth_module *module,
                                            const berth_multi_target *target, berth_arena *arena,
                                            bool scoped);
uint32_t berth_constraints_node(berth_constraints *c);  // free
// A node that is a function of those parameters and results.
uint32_t berth_constraints_function(berth_constraints *c, const uint32_t *nodes,
                                    uint32_t param_count, uint32_t count);
uint32_t berth_constraints_find(const berth_constraints *c, uint32_t node);
berth_device_id berth_constraints_device(const berth_constraints *c, uint32_t node);
// Devices of the target that agree with a virtual device, perhaps partial, whatever its scope. Empty:
// the target has no such device.
berth_bits berth_constraints_agreeing(berth_constraints *c, berth_device_id device);
// Those that a node may still be on: they agree with what is known and can run what is there; where
// none can, those that agree. Never empty.
berth_bits berth_constraints_candidates(berth_constraints *c, uint32_t node);

// Equal, or an error with both chains of reasons (INVALID_ARGUMENT).
BERTH_MUST_USE berth_status berth_constraints_hard(berth_constraints *c, uint32_t a, uint32_t b,
                                                   berth_constraint_reason reason);
// The same device; scopes may differ.
BERTH_MUST_USE berth_status berth_constraints_hard_device(berth_constraints *c, uint32_t a,
                                                          uint32_t b,
                                                          berth_constraint_reason reason);
// The same scope; devices may differ.
BERTH_MUST_USE berth_status berth_constraints_hard_scope(berth_constraints *c, uint32_t a,
                                                         uint32_t b,
                                                         berth_constraint_reason reason);
// Equal where that is possible, else nothing changes and false. _device and _scope: only that part.
bool berth_constraints_soft(berth_constraints *c, uint32_t a, uint32_t b,
                            berth_constraint_reason reason);
bool berth_constraints_soft_device(berth_constraints *c, uint32_t a, uint32_t b,
                                   berth_constraint_reason reason);
bool berth_constraints_soft_scope(berth_constraints *c, uint32_t a, uint32_t b,
                                  berth_constraint_reason reason);
// The node's device is `device` (perhaps partial).
BERTH_MUST_USE berth_status berth_constraints_fix(berth_constraints *c, uint32_t node,
                                                  berth_device_id device,
                                                  berth_constraint_reason reason);
// The parts of `device` that the node's class has not got (virtual device default), where the
// target then has such a device; and in full: the first candidate, one that computes before one
// that only drives others. Never fails. `why` is not copied.
void berth_constraints_default(berth_constraints *c, uint32_t node, berth_device_id device,
                               const char *why);

// ---- private to the solver ----
void berth_constraints__prove(berth_constraints *c, uint32_t a, uint32_t b, uint32_t edge,
                              bool turn_a);
// "g (opencl:0), cpu:0": the target's devices, for messages.
const char *berth_constraints__devices_text(berth_arena *arena, const berth_multi_target *target);
// The error of c->conflict.
berth_status berth_constraints__explain(berth_constraints *c);

#endif  // BERTH_PLANNER_CONSTRAINTS_H_
