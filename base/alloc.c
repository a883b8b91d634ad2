#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

static void *system_resize(void *state, void *pointer, size_t old_size_bytes,
                           size_t new_size_bytes) {
    (void)state;
    (void)old_size_bytes;
    if (new_size_bytes == 0) {
        free(pointer);
        return NULL;
    }
    return realloc(pointer, new_size_bytes);
}

berth_allocator berth_allocator_system(void) {
    return (berth_allocator){system_resize, NULL};
}

void *berth_alloc(berth_allocator allocator, size_t size_bytes) {
    return allocator.resize(allocator.state, NULL, 0, size_bytes ? size_bytes : 1);
}

void *berth_calloc(berth_allocator allocator, size_t count, size_t size_bytes) {
    size_t total = 0;
    if (__builtin_mul_overflow(count, size_bytes, &total)) return NULL;
    void *pointer = berth_alloc(allocator, total);
    if (pointer) memset(pointer, 0, total);
    return pointer;
}

void *berth_resize(berth_allocator allocator, void *pointer, size_t old_size_bytes,
                   size_t new_size_bytes) {
    return allocator.resize(allocator.state, pointer, old_size_bytes,
                            new_size_bytes ? new_size_bytes : 1);
}

void berth_free(berth_allocator allocator, void *pointer, size_t size_bytes) {
    if (pointer) (void)allocator.resize(allocator.state, pointer, size_bytes, 0);
}

static void *counting_resize(void *state, void *pointer, size_t old_size_bytes,
                             size_t new_size_bytes) {
    berth_counting_allocator *counting = state;
    if (new_size_bytes == 0) {
        if (pointer) {
            atomic_fetch_sub(&counting->live_count, 1);
            atomic_fetch_sub(&counting->live_bytes, (int_fast64_t)old_size_bytes);
        }
        return counting->base.resize(counting->base.state, pointer, old_size_bytes, 0);
    }
    int_fast64_t number = atomic_fetch_add(&counting->allocation_count, 1) + 1;
    int_fast64_t fail_at = atomic_load(&counting->fail_at);
    if (fail_at != 0 && number >= fail_at) return NULL;
    void *result =
        counting->base.resize(counting->base.state, pointer, old_size_bytes, new_size_bytes);
    if (!result) return NULL;
    if (!pointer) atomic_fetch_add(&counting->live_count, 1);
    atomic_fetch_add(&counting->live_bytes,
                     (int_fast64_t)new_size_bytes - (int_fast64_t)(pointer ? old_size_bytes : 0));
    return result;
}

void berth_counting_allocator_init(berth_counting_allocator *counting, berth_allocator base) {
    memset(counting, 0, sizeof(*counting));
    counting->base = base;
}

berth_allocator berth_counting_allocator_get(berth_counting_allocator *counting) {
    return (berth_allocator){counting_resize, counting};
}
