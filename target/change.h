// Changes of a MultiTarget that make another one: what a machine would be with one device more, a
// faster link, a larger memory. Who asks: `berth explain` (toolkit/what_if.h).
//
//   berth_target_change change = {.kind = BERTH_CHANGE_CAPACITY, .index = memory, .factor = 2};
//   berth_multi_target *larger;
//   BERTH_TRY(berth_multi_target_change(arena, target, &change, &larger));
#ifndef BERTH_TARGET_CHANGE_H_
#define BERTH_TARGET_CHANGE_H_

#include "target/target.h"

typedef enum berth_target_change_kind {
    BERTH_CHANGE_WITHOUT_PIN,     // index: of a pin
    BERTH_CHANGE_WITHOUT_DEVICE,  // index: of a device. A host stays, host_only. Memories that nobody
                                  // else reaches, their links and the device's pins go with it
    BERTH_CHANGE_TWIN,  // index: of a device, of which one more is added. Memories that only the device
                        // reaches are doubled with their links; in the others it works, too. Where
                        // it has links to devices of its kind, one to the twin is added
    BERTH_CHANGE_TO_MACHINE,  // index: of a machine, which is all that stays, with its host
    BERTH_CHANGE_LINKS,       // index: of a link; bandwidth times `factor`, also of those like it
    BERTH_CHANGE_BANDWIDTH,   // index: of a memory; bandwidth times `factor`, also of those like it
    BERTH_CHANGE_CAPACITY,    // the same, capacity and budget; whole alignments
} berth_target_change_kind;

typedef struct berth_target_change {
    berth_target_change_kind kind;
    uint32_t index;
    double factor;  // > 0; of the last three
} berth_target_change;

// Whether two memories are alike: scope, capacity, budget, bandwidth, latency, and the targets of the
// devices that reach them. Two links: bandwidth, latency, duplex, alike memories at their ends, in
// either order.
bool berth_multi_target_memories_alike(const berth_multi_target *target, uint32_t a, uint32_t b);
bool berth_multi_target_links_alike(const berth_multi_target *target, uint32_t a, uint32_t b);

// Makes the changed target. Devices, memories and links that stay keep their names, except that
// KIND:N counts anew among those that are left; what is new comes last.
//   ownership: lives in the arena, borrows nothing
//   errors:    INVALID_ARGUMENT there is no such pin, device, machine, link or memory, or the factor is none;
//              FAILED_PRECONDITION the result is no target: nothing would compute, too many devices
//              or memories; OUT_OF_MEMORY
// An entry point: not inside berth_arena_try.
BERTH_MUST_USE berth_status berth_multi_target_change(berth_arena *arena,
                                                      const berth_multi_target *target,
                                                      const berth_target_change *change,
                                                      berth_multi_target **out_target);

#endif  // BERTH_TARGET_CHANGE_H_
