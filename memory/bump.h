// Memory that is taken piece by piece and given back all at once, down to a mark: lists that live as long as a
// call, small blocks that a pool divides. Taking a piece is an addition. What was given back stays for the next.
//
//   berth_bump bump = {.allocator = allocator};
//   berth_bump_mark mark = berth_bump_at(&bump);
//   void **list = berth_bump_take(&bump, count * sizeof(*list));   // NULL: out of memory
//   berth_bump_back(&bump, mark);
//   berth_bump_close(&bump);
//
// Thread-compatible.
#ifndef BERTH_MEMORY_BUMP_H_
#define BERTH_MEMORY_BUMP_H_

#include <stddef.h>

#include "base/alloc.h"

typedef struct berth_bump_chunk berth_bump_chunk;

// All zero but for the allocator = nothing is taken.
typedef struct berth_bump {
    berth_allocator allocator;
    berth_bump_chunk *first, *current;  // in the order in which they were filled
    size_t used_bytes;                  // of the current one
} berth_bump;

typedef struct berth_bump_mark {
    berth_bump_chunk *chunk;
    size_t used_bytes;
} berth_bump_mark;

// Aligned to 16 bytes; not set. NULL: out of memory.
void *berth_bump_take(berth_bump *bump, size_t size_bytes);
// Bytes of memory that taking so many (at most SIZE_MAX / 2) will ask the allocator for; 0: it will not ask.
size_t berth_bump_need(berth_bump *bump, size_t size_bytes);
// So many bytes of memory of the allocator, for what is taken next.
void berth_bump_add(berth_bump *bump, void *memory, size_t size_bytes);
berth_bump_mark berth_bump_at(const berth_bump *bump);
// All that was taken since the mark is free again. Marks are given back in the reverse of their order.
void berth_bump_back(berth_bump *bump, berth_bump_mark mark);
void berth_bump_close(berth_bump *bump);  // gives all memory back to the allocator

#endif  // BERTH_MEMORY_BUMP_H_
