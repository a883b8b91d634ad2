// Memory for values that come and go while a program runs, and whose sizes only the run knows. Blocks up to 1 KiB
// are of size classes, 64 bytes apart, whose memory is taken from the system 16 KiB at a time (bump.h); larger ones
// lie in regions (tlsf.h). What is given back is there for the next block, also in the next run, so that a run like
// the one before asks the system for nothing and finds memory that is warm. What runs no longer need goes back to
// the system when a run ends.
//
//   BERTH_TRY(berth_pool_create(berth_allocator_system(), &pool));
//   berth_pool_set_limit(pool, 64 << 20);
//   void *block = berth_alloc(berth_pool_allocator(pool), size_bytes);   // as of any allocator
//   berth_pool_end_run(pool);
//   berth_pool_close(pool);      // it goes with its last block
//
// Thread-safe: results that the application has are given back by whichever thread frees them.
#ifndef BERTH_MEMORY_POOL_H_
#define BERTH_MEMORY_POOL_H_

#include "base/alloc.h"
#include "base/status.h"

typedef struct berth_pool berth_pool;

typedef struct berth_pool_facts {
    uint64_t limit_bytes;                          // of reserved_bytes; 0 = none
    uint64_t reserved_bytes, most_reserved_bytes;  // taken from the system: now, and at most
    uint64_t live_bytes, most_live_bytes;          // of blocks, as asked for: now, and at most
    uint64_t live_count;                           // blocks now
    uint64_t allocation_count;                     // blocks so far
    uint64_t system_count;                         // times that the system was asked for memory
    uint64_t refused_count, refused_bytes;         // blocks the limit refused; the last one's size
} berth_pool_facts;

// `allocator` is asked by any thread that uses the pool, never under its lock. Errors: OUT_OF_MEMORY.
BERTH_MUST_USE berth_status berth_pool_create(berth_allocator allocator, berth_pool **out_pool);
// No more blocks are asked for; those there are stay. NULL is fine.
void berth_pool_close(berth_pool *pool);
// Its blocks are aligned to 16 bytes, and may be given back after the pool was closed.
berth_allocator berth_pool_allocator(berth_pool *pool);

// From here on a block for which more than that must be taken from the system is refused (NULL); 0 = none is. What
// was taken before stays.
void berth_pool_set_limit(berth_pool *pool, uint64_t limit_bytes);
// Gives regions without a block back to the system, where more is reserved than twice what the last runs had live at
// a time. What they had counts an eighth less with each run.
void berth_pool_end_run(berth_pool *pool);
// Takes the status of what used the pool and gives it back: OUT_OF_MEMORY says which limit refused a block, if one
// did since the last call.
BERTH_MUST_USE berth_status berth_pool_say_refusal(berth_pool *pool, berth_status status);
void berth_pool_get_facts(berth_pool *pool, berth_pool_facts *out_facts);

#endif  // BERTH_MEMORY_POOL_H_
