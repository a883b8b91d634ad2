// What stage copies knows of one function's copies (private to planner/): copies.c finds them, weave.c
// writes them into the graph.
#ifndef BERTH_PLANNER_COPIER_H_
#define BERTH_PLANNER_COPIER_H_

#include "planner/stages.h"

// A value at one more place.
typedef struct berth_copier_held {
    berth_value_id value;    // that is copied or cloned
    berth_device_id device;  // where to
    berth_device_id from;
    uint32_t next;           // of the same root
    berth_region_id region;  // of the copy
    berth_op_id before;      // BERTH_NONE = end of the region; of a written copy that stays: itself
    berth_value_id result;
    uint32_t source;  // held copied from, BERTH_NONE = the value itself
    berth_op_id op;   // a device_copy that was written out; BERTH_NONE: to be made
    bool moved;       // written, but needed earlier than where it is
} berth_copier_held;

typedef struct berth_copier_patch {
    berth_value_id *slot_of_op;  // NULL: a region's result
    berth_region_id region;
    uint32_t index;
    uint32_t held;
} berth_copier_patch;

// Devices in full, by id: found once. 0 = not yet.
typedef struct berth_copier_devices {
    BERTH_VEC(berth_device_id) full;
} berth_copier_devices;

typedef struct berth_copier {
    berth_planner_state *state;
    berth_func_id function;
    berth_planner_function *f;
    uint32_t value_count;   // before copies are made
    uint32_t *first;        // per value: its held ones
    berth_value_id *alias;  // per value: what stands for it once annotations are gone
    uint32_t *copy;        // per value: the held one that it is the result of; BERTH_NONE = no copy
    berth_value_id *root;  // per value: what it is a copy of, over all copies; itself
    uint32_t *position;    // per operation: in source order
    uint32_t *owner;       // per operation made or moved: its held
    uint32_t *depth;       // per region
    berth_copier_devices *devices;
    BERTH_VEC(berth_copier_held) held;
    BERTH_VEC(berth_copier_patch) patches;
} berth_copier;

berth_device_id berth_copier__complete(const berth_copier *c, berth_device_id id);
berth_device_id berth_copier__node_device(const berth_copier *c, uint32_t node);
berth_device_id berth_copier__host(const berth_copier *c);
bool berth_copier__on_host_border(const berth_copier *c);
// Where the value is made; constants: 0 until their first user is known.
berth_device_id berth_copier__home(const berth_copier *c, berth_value_id value);

// Finds what must be copied where; drops annotations and copies with equal ends.
void berth_copier__find(berth_copier *c);
// Makes the copies and records every device as an attribute.
void berth_copier__weave(berth_copier *c);

#endif  // BERTH_PLANNER_COPIER_H_
