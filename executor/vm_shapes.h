// Members of families that ran (artifact/family.h), as they were opened: found by their values, the latest ones
// kept. The first one of a family that has a program stays, since others share its code.
#ifndef BERTH_EXECUTOR_VM_SHAPES_H_
#define BERTH_EXECUTOR_VM_SHAPES_H_

#include "artifact/family.h"
#include "executor/session.h"

// A variant that ran, or none of whose program was needed yet.
typedef struct berth_vm_opened {
    berth_session *session;
    berth_tensor *room;  // of a run: inputs and outputs of its program
} berth_vm_opened;

typedef struct berth_vm_shape berth_vm_shape;
struct berth_vm_shape {
    berth_vm_shape *next;           // of those with the same hash
    berth_vm_shape *newer, *older;  // of its kind: used later, and before
    uint32_t family;
    int64_t values[BERTH_FAMILY_VARIABLES];  // those that the family has not are 0
    berth_arena *arena;
    berth_vm_variant variant;  // in the arena
    berth_vm_opened opened;    // its room in the arena
};

enum {
    BERTH_VM_SHAPE_BUCKETS = 512,
    BERTH_VM_SHAPES_KEPT = 64,
    // With results alone, of which every piece of a decoder's counting has one per length.
    BERTH_VM_SHAPE_RESULTS_KEPT = 256,
};

// All zero but for `firsts` (NULLs, one per family): there are none.
typedef struct berth_vm_shapes {
    berth_vm_shape *buckets[BERTH_VM_SHAPE_BUCKETS];
    struct {
        berth_vm_shape *newest, *oldest;
        uint32_t count;
    } kinds[2];  // with results alone, with a program
    berth_vm_shape **firsts;
} berth_vm_shapes;

// NULL: there is none. It counts as used now.
berth_vm_shape *berth_vm_shapes_find(berth_vm_shapes *shapes, uint32_t family,
                                     const int64_t *values);
// One that was not there before, and is the list's from here on; where there are too many of its kind, the one
// that was not used for longest goes.
void berth_vm_shapes_add(berth_vm_shapes *shapes, berth_vm_shape *made);
// The session that code is shared with; NULL: none.
berth_session *berth_vm_shapes_base(const berth_vm_shapes *shapes, uint32_t family,
                                    const berth_program *program);
void berth_vm_shape_close(berth_vm_shape *shape);
void berth_vm_shapes_close(berth_vm_shapes *shapes);

#endif  // BERTH_EXECUTOR_VM_SHAPES_H_
