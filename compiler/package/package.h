// Building a program from planned, lowered and printed functions (private to compiler/): steps.c makes storages, tensors
// and steps, share.c lets storages share bytes, order.c orders the steps, memory.c gives storages offsets, queues.c
// gives steps queues; package.c calls them one after another.
#ifndef BERTH_COMPILER_PACKAGE_PACKAGE_H_
#define BERTH_COMPILER_PACKAGE_PACKAGE_H_

#include "compiler/pipeline.h"
#include "memory/order.h"
#include "memory/order_pools.h"
#include "target/route_memo.h"

// Bytes that one or more tensors (views) live in.
typedef struct berth_storage {
    uint32_t place;    // the memory it is in (berth_packager__place)
    berth_bits users;  // devices of which a step works in it
    berth_pool_usage usage;
    uint64_t size_bytes;
    uint32_t into;  // another storage that it is a part of, BERTH_NO_INDEX: none
    uint64_t into_offset_bytes;
    uint32_t first_step, last_step;  // lifetime with its parts, inclusive (workspace)
    uint32_t pool;
    uint64_t offset_bytes;
} berth_storage;

// What the program does not keep of a step.
typedef struct berth_step_facts {
    const bool *written;        // per binding
    uint32_t unit;              // of a dispatch, BERTH_NO_INDEX for a copy
    const berth_work *work;     // of the call; NULL = not known
    const double *moved_bytes;  // per binding; NULL = each once
    double scratch_moved_bytes;
    bool removed;
    bool apart;  // a copy on a queue of its own
    bool
        held;  // a copy that begins after its device's steps before it, though it needs none of them
} berth_step_facts;

// Steps of one operation that only put tensors beside each other, or take them apart
// (passes/concat.h).
typedef struct berth_joint {
    uint32_t first_step;
    uint32_t step_count;
    bool gathers;    // the whole is its result
    uint32_t whole;  // tensors
    const uint32_t *parts;
    const int64_t *offsets;  // of the parts, bytes
    uint32_t part_count;
} berth_joint;

// At `step`, tensor `to` may be written over tensor `from` (in_place.h).
typedef struct berth_in_place_step {
    uint32_t step;
    uint32_t from;
    uint32_t to;
} berth_in_place_step;

typedef struct berth_packager {
    berth_module *module;
    berth_func_id main;
    berth_pipeline *pipeline;
    const berth_multi_target *target;
    berth_arena *arena;
    uint32_t *place_first;     // into place_storages, per place and one more
    uint32_t *place_storages;  // by place, ascending (berth_packager__index_places)
    berth_bits *keepers;       // per memory of the target: devices that keep their values there
    const char
        *direct_copy;     // a copy between devices of two kinds, of which none is the host: nothing
                          // runs it; NULL = none
    uint32_t *tensor_of;  // [value * place count + place]: tensor, BERTH_NO_INDEX = none yet
    BERTH_VEC(berth_storage) storages;
    BERTH_VEC(uint32_t) storage_of;  // per tensor
    BERTH_VEC(berth_program_tensor) tensors;
    BERTH_VEC(berth_program_constant) constants;
    BERTH_VEC(berth_program_pool) pools;
    BERTH_VEC(uint32_t) pool_place;  // per pool
    BERTH_VEC(berth_program_queue) queues;
    BERTH_VEC(berth_program_step) steps;
    BERTH_VEC(berth_step_facts) facts;  // per step
    BERTH_VEC(berth_program_kernel) kernels;
    BERTH_VEC(berth_joint) joints;
    BERTH_VEC(berth_in_place_step) in_place;  // in order of their steps
    berth_memory_report *report;
    berth_route_memo *routes;
    uint32_t scratch_memory;  // plain C: of the target, BERTH_NO_INDEX = the device's own
} berth_packager;

// Where storages live, while it is being decided: like the fields of berth_storage of these names.
typedef struct berth_sharing {
    uint32_t *into;
    uint64_t *offset_bytes;
    uint32_t *first_step, *last_step;  // of roots
    uint32_t *own_first_step;          // of the storage alone
} berth_sharing;

// The memories that the values of a place may be in, and what they wait for there.
typedef struct berth_packager_memories {
    const berth_memory_assign_pool *pools;  // that values may be in, by rising cost
    uint32_t pool_count;                    // fewer than two: there is nothing to choose
    double cost;                            // INFINITY: it does not fit
    bool optimal;                           // proven for this order of steps
} berth_packager_memories;

// Places: memories of the target, as storages are in them. A place below the number of devices is
// the own memory of that device, which stands for all that keep their values there: the host where
// it does, else the first cpu device, else the first device. The others are the memories of further
// scopes, by their index.
//
// The place of what is on `device` in memory scope `scope` (NULL or "global": its own memory; so is
// a scope that the target does not declare).
uint32_t berth_packager__place(const berth_packager *packager, uint32_t device, const char *scope);
uint32_t berth_packager__place_count(const berth_packager *packager);
// The device that allocates there.
uint32_t berth_packager__owner(const berth_packager *packager, uint32_t place);
// The memory of the target, for pools of this use.
uint32_t berth_packager__memory(const berth_packager *packager, uint32_t place,
                                berth_pool_usage usage);
// The devices that work there.
berth_bits berth_packager__workers(const berth_packager *packager, uint32_t place);

// Finds which devices keep their values in which memory: before anything else here.
void berth_packager__find_keepers(berth_packager *packager);

// Makes the tensors, steps and kernels of main, and the inputs, outputs and checks of `program`; a step's queue and a
// storage's offset come later. Errors: UNSUPPORTED, INTERNAL.
BERTH_MUST_USE berth_status berth_packager__make_steps(berth_packager *packager,
                                                       berth_program *program);

// Lists the storages of each place; again after storages were added.
void berth_packager__index_places(berth_packager *packager);

// Alignment of tensors there: what every device needs that works in it.
uint32_t berth_packager__alignment(const berth_packager *packager, uint32_t place);

// Number of bindings of a step.
uint32_t berth_packager__binding_count(const berth_packager *packager, uint32_t step);

// The storage that `storage` is a part of in the end; adds where it begins there to *offset.
uint32_t berth_packager__root(const berth_sharing *sharing, uint32_t storage, uint64_t *offset);

// Lets storages be the same bytes: parts and wholes (the steps between them are removed), results
// and operands that end there. Orders the steps of a single queue so that less is live at once.
// Sets into, first_step and last_step of storages. Errors: INTERNAL.
BERTH_MUST_USE berth_status berth_packager__share_memory(berth_packager *packager);

// lend.c: puts values into memory that something else has and does not use meanwhile, beginning where most is
// live at once: outputs that are written later (they belong to the caller, who has them in any case), and
// what is left of a storage in which values of different sizes follow each other. Sets `into`. Greedy: at
// most 256 values, each O(values at the peak x owners x log steps).
void berth_packager__lend(berth_packager *packager);

// order.c: the order of the steps that are not removed with the lowest peak
// (out_order->nodes are steps). nodes is NULL when several devices run them
// (berth_packager__order_beside).
BERTH_MUST_USE berth_status berth_packager__find_order(berth_packager *packager,
                                                       const berth_sharing *sharing,
                                                       berth_memory_order *out_order);

// Of a device with several memories: an order of the steps with which the values at `place` wait less
// (memory/order_pools.h). nodes, which are steps, is NULL where none that costs less than memories->cost was found.
BERTH_MUST_USE berth_status berth_packager__find_order_of_memories(
    berth_packager *packager, const berth_sharing *sharing, uint32_t place,
    const berth_packager_memories *memories, berth_memory_order_pools *out_order);

// Which steps come after which, by the bytes that they touch; none is removed. By storages, then by the earlier
// step. Arena memory.
const berth_memory_order_edge *berth_packager__find_dependencies(berth_packager *packager,
                                                                 const berth_sharing *sharing,
                                                                 berth_arena *arena,
                                                                 uint32_t *out_count);

// order_beside.c: an order of the steps of several devices in which they are predicted to end earlier (a
// list of their indices); NULL: none was found, or there is one device. No step is removed. Sets `held` of
// copies that nothing waits for: a queue of copies would begin them at once, and a copy that is needed
// soon after would wait for the link.
// By insertion or by turns, whichever ends earlier.
// O(edges + steps * log steps) and, for each step, the gaps of its device and link that are too short for it.
const uint32_t *berth_packager__order_beside(berth_packager *packager,
                                             const berth_sharing *sharing);

// What a copy on a queue of its own costs besides: two more batches, and a wait between queues on
// either side. An estimate.
static const double berth_packager_queue_switch_ns = 20000;

// queues.c: marks the copies that can go on beside enough work of their device (apart), and
// lets their bytes live as long as that takes.
void berth_packager__choose_transfers(berth_packager *packager);

// queues.c: where devices share a memory, what one is predicted to use while another begins
// something that need not come after it lives that much longer. Their bytes are then not the same:
// the other would wait for bytes alone. Returns whether anything does.
bool berth_packager__keep_beside(berth_packager *packager);

// Sets pool and offset of every storage and tensor, makes the pools. Errors: OUT_OF_MEMORY when a
// memory's capacity or budget is exceeded (names the largest tensors live at the peak and the
// smallest capacity that would do).
BERTH_MUST_USE berth_status berth_packager__plan_memory(berth_packager *packager);

// assign.c: plain C for a device with several memories for values: puts some of the workspace at `place`, its
// own memory, into the others (place of the storages, scratch_memory), so that most moved bytes are in the
// fast ones (memory/assign.h). Inputs, outputs and constants are placed already.
BERTH_MUST_USE berth_status berth_packager__assign_memories(berth_packager *packager,
                                                            uint32_t place);
// What assignment the workspace at `place` would get, with its lifetimes as they are. Moves nothing.
BERTH_MUST_USE berth_status berth_packager__weigh_memories(berth_packager *packager, uint32_t place,
                                                           berth_packager_memories *out);
// memory.c: the same before anything is placed.
BERTH_MUST_USE berth_status berth_packager__find_memories(berth_packager *packager, uint32_t place,
                                                          berth_packager_memories *out);
// Whether a memory of the target takes values beside those of own memories: plain C, where its device reaches it.
bool berth_packager__takes_values(const berth_multi_target *target, uint32_t memory);

// What all pools of a memory need, and kernels beside them.
uint64_t berth_packager__used_bytes(const berth_packager *packager, uint32_t memory);

// What the memory of a place needs, with all that is in it placed for the moment. Errors: those of
// memory/plan.h.
BERTH_MUST_USE berth_status berth_packager__measure_place(berth_packager *packager, uint32_t place,
                                                          uint64_t *out_bytes);

// Bytes that kernels of the devices there keep for each thread, for all threads of the target.
uint64_t berth_packager__scratch_bytes(const berth_packager *packager, uint32_t memory);

// A constant's name; packed weights have none, and are known by who reads them.
const char *berth_packager__constant_name(const berth_packager *packager, uint32_t tensor);

// Predicted time of a kernel's step, by the target's peaks (plain C: by the cost model); 0 for copies.
double berth_packager__kernel_ns(const berth_packager *packager, uint32_t step);
// The same by the cost model, of operands of this type: with what launching takes.
double berth_packager__work_ns(const berth_packager *packager, uint32_t step, berth_dtype dtype);
// That of a copy's step, over the cheapest route; 0 where there is none. *out_way: of the first link
// (berth_multi_target_link_way), BERTH_NO_INDEX = none.
double berth_packager__copy_ns(const berth_packager *packager, uint32_t step, uint32_t *out_way);

// Sets the queue of every step: every device that runs steps has one, and another for the copies that
// are apart. Then the waits: a step waits for steps of other queues that write what it reads, or
// use what it writes; and, in pools that devices of other kinds share with the host, for all that
// use the same bytes (artifact/program.h, pools).
BERTH_MUST_USE berth_status berth_packager__order_queues(berth_packager *packager);

#endif  // BERTH_COMPILER_PACKAGE_PACKAGE_H_
