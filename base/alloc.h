// Allocators (<berth/allocator.h>), passed by value. Run-side objects allocate through the allocator given to their
// create function; the compile side uses arenas (arena.h) on top of one.
#ifndef BERTH_BASE_ALLOC_H_
#define BERTH_BASE_ALLOC_H_

#include <berth/allocator.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomics.h"

// malloc, realloc, free. Thread-safe.
berth_allocator berth_allocator_system(void);

void *berth_alloc(berth_allocator allocator, size_t size_bytes);  // uninitialised; NULL on failure
void *berth_calloc(berth_allocator allocator, size_t count,
                   size_t size_bytes);  // zeroed, overflow-checked
void *berth_resize(berth_allocator allocator, void *pointer, size_t old_size_bytes,
                   size_t new_size_bytes);
void berth_free(berth_allocator allocator, void *pointer, size_t size_bytes);

// Counts through to `base`; and fails the `fail_at`-th allocation from now on (1 = the next; 0 =
// never). Used by tests: "allocates nothing while running", "every failure point of create is
// clean". Thread-safe.
typedef struct berth_counting_allocator {
    berth_allocator base;
    atomic_int_fast64_t allocation_count;  // calls that allocated or grew
    atomic_int_fast64_t live_count;
    atomic_int_fast64_t live_bytes;
    atomic_int_fast64_t fail_at;  // 0 = never
} berth_counting_allocator;

void berth_counting_allocator_init(berth_counting_allocator *counting, berth_allocator base);
berth_allocator berth_counting_allocator_get(berth_counting_allocator *counting);

#endif  // BERTH_BASE_ALLOC_H_
