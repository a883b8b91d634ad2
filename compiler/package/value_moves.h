// Values that are not kept where they wait (private to compiler/): they leave for host memory (spill.c),
// or are computed again when they are wanted (recompute.c). Both put steps into the program, after it
// is known which values share bytes; places are planned afterwards.
#ifndef BERTH_COMPILER_PACKAGE_VALUE_MOVES_H_
#define BERTH_COMPILER_PACKAGE_VALUE_MOVES_H_

#include "compiler/package/package.h"

// A value that is there at a step that does not use it.
typedef struct berth_waiting_value {
    uint32_t storage;  // a root: part of no other
    uint64_t size_bytes;
    uint32_t before,
        after;  // the last step that touches it before that one, the first one after it
} berth_waiting_value;

// The values that wait at a step in a place's workspace, in the arena. Returns how many.
uint32_t berth_packager__find_waiting(const berth_packager *packager, berth_arena *arena,
                                      uint32_t place, uint32_t step,
                                      berth_waiting_value **out_values);

// The storage that a tensor's bytes are part of in the end, and where they begin there.
uint32_t berth_packager__root_of(const berth_packager *packager, uint32_t tensor,
                                 uint64_t *out_offset);
uint32_t berth_packager__add_workspace(berth_packager *packager, uint32_t place,
                                       uint64_t size_bytes, uint32_t first_step,
                                       uint32_t last_step);
// A tensor as `tensor`, whose bytes are at the offset of another storage.
uint32_t berth_packager__move_tensor(berth_packager *packager, uint32_t tensor, uint32_t storage,
                                     uint64_t offset);
// The step works with the bytes of `storage` where it worked with those of `root`.
void berth_packager__rebind_step(berth_packager *packager, uint32_t step, uint32_t root,
                                 uint32_t storage);
// The name of the largest tensor with one that lives there; else "of STEP".
const char *berth_packager__name_of(const berth_packager *packager, uint32_t root, uint32_t step);
// Puts steps before step `at`; that one and all later ones move on, and so do the lifetimes.
void berth_packager__insert_steps(berth_packager *packager, uint32_t at,
                                  const berth_program_step *steps, const berth_step_facts *facts,
                                  uint32_t count);

typedef struct berth_spill_request {
    uint32_t device;  // that works in the place
    uint32_t peak_step;
    uint64_t room_bytes;
    const uint64_t *needed;  // per step: bytes of values and of constants that it reads
    const double *step_ns;   // per step
    double copy_ns;          // of the value, to or from the host
} berth_spill_request;

// Lets a value wait in host memory: a copy away after the last step that touches it before the peak,
// and one back ahead of the first step after it, on the device's queue for copies.
void berth_packager__spill(berth_packager *packager, const berth_waiting_value *value,
                           const berth_spill_request *request);

// How a waiting value is computed again, right before the step that wants it.
typedef struct berth_recomputation {
    berth_waiting_value value;
    const uint32_t *steps;  // that run again, in their order
    uint32_t step_count;
    const uint32_t *roots;  // storages that they write, each with a second one
    uint32_t root_count;
    const uint32_t *kept;  // storages that they read, which must live until then
    uint32_t kept_count;
    double ns;  // predicted, of these steps
} berth_recomputation;

// `depth`: how many operations may lie between the value and what is kept for it; fewer may do. False: it
// cannot be computed again, by steps of this device alone. What the result points to is in the arena.
bool berth_packager__find_recomputation(const berth_packager *packager, berth_arena *arena,
                                        uint32_t device, const berth_waiting_value *value,
                                        uint32_t depth, berth_recomputation *out);
void berth_packager__recompute(berth_packager *packager, const berth_recomputation *again);

#endif  // BERTH_COMPILER_PACKAGE_VALUE_MOVES_H_
