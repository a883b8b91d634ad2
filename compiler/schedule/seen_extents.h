// Which loops of functions change from size to size, of a model that is compiled for many sizes. Where only the
// outermost loops of deep nests do (images of a batch), the tiles inside are those of every size, so that the best
// ones for them serve all (berth_tfn.same_tiles); where more changes, tiles take the forms that many sizes share, too.
//
//   berth_seen_extents *seen = berth_seen_extents_create(arena);   // in berth_arena_try
//   BERTH_TRY(berth_seen_extents_note(seen, scope, name, fn, &change));   // for every size, before it is scheduled
//   fn->same_tiles = change == BERTH_SEEN_OUTERMOST;   // and in each other case loops that keep their extent are known
//   berth_seen_extents_close(seen);                    // from here on, extents of loops are those of all that was noted
#ifndef BERTH_COMPILER_SCHEDULE_SEEN_EXTENTS_H_
#define BERTH_COMPILER_SCHEDULE_SEEN_EXTENTS_H_

#include "base/status.h"
#include "ir/tensor/function.h"

typedef struct berth_seen_extents berth_seen_extents;

// What changes of a function from size to size.
typedef enum berth_seen_change {
    BERTH_SEEN_NOTHING,
    BERTH_SEEN_OUTERMOST,  // outermost loops around at least three more that do not
    BERTH_SEEN_INNER,
} berth_seen_change;

// Lives in the arena, and what is noted, too. Inside berth_arena_try.
berth_seen_extents *berth_seen_extents_create(berth_arena *arena);

// Remembers the extents of the function's loops. *out_change: by all that was noted of functions of this scope and
// name with as many loops; the variables of loops that did not change keep their extent (berth_var_info). Once it is closed,
// variables have the extents of the sizes that were noted before (berth_var_info.extents, 256 at most), in the arena of `seen`.
//   errors:  OUT_OF_MEMORY
//   threads: one at a time
BERTH_MUST_USE berth_status berth_seen_extents_note(berth_seen_extents *seen, uint32_t scope,
                                                    const char *name, berth_tfn *fn,
                                                    berth_seen_change *out_change);

// Sizes that are noted later add no extents, so that schedules of all sizes choose by the same ones.
void berth_seen_extents_close(berth_seen_extents *seen);

#endif  // BERTH_COMPILER_SCHEDULE_SEEN_EXTENTS_H_
