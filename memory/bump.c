#include "memory/bump.h"

#include <stdbool.h>
#include <stdint.h>

enum { chunk_bytes = 16384, alignment_bytes = 16 };

struct berth_bump_chunk {
    berth_bump_chunk *next;
    size_t size_bytes;  // of what follows the header
};

static char *bytes_of(berth_bump_chunk *chunk) {
    return (char *)(chunk + 1);
}

static berth_bump_chunk **after(berth_bump *bump) {
    return bump->current ? &bump->current->next : &bump->first;
}

static size_t padded(size_t size_bytes) {
    return (size_bytes + alignment_bytes - 1) / alignment_bytes * alignment_bytes;
}

static bool has_room(const berth_bump *bump, size_t size) {
    return bump->current && size <= bump->current->size_bytes - bump->used_bytes;
}

size_t berth_bump_need(berth_bump *bump, size_t size_bytes) {
    const size_t size = padded(size_bytes);
    const berth_bump_chunk *next = *after(bump);
    if (has_room(bump, size) || (next && next->size_bytes >= size)) return 0;
    return sizeof(*next) + (size > chunk_bytes ? size : chunk_bytes);
}

void berth_bump_add(berth_bump *bump, void *memory, size_t size_bytes) {
    berth_bump_chunk **link = after(bump), *made = memory;
    *made = (berth_bump_chunk){*link, size_bytes - sizeof(*made)};
    *link = made;
}

void *berth_bump_take(berth_bump *bump, size_t size_bytes) {
    if (size_bytes > SIZE_MAX / 2) return NULL;
    const size_t size = padded(size_bytes), need = berth_bump_need(bump, size);
    if (need) {
        void *memory = berth_alloc(bump->allocator, need);
        if (!memory) return NULL;
        berth_bump_add(bump, memory, need);
    }
    if (!has_room(bump, size)) {
        bump->current = *after(bump);
        bump->used_bytes = 0;
    }
    void *taken = bytes_of(bump->current) + bump->used_bytes;
    bump->used_bytes += size;
    return taken;
}

berth_bump_mark berth_bump_at(const berth_bump *bump) {
    return (berth_bump_mark){bump->current, bump->used_bytes};
}

void berth_bump_back(berth_bump *bump, berth_bump_mark mark) {
    bump->current = mark.chunk;
    bump->used_bytes = mark.used_bytes;
}

void berth_bump_close(berth_bump *bump) {
    for (berth_bump_chunk *next; bump->first; bump->first = next) {
        next = bump->first->next;
        berth_free(bump->allocator, bump->first, sizeof(*bump->first) + bump->first->size_bytes);
    }
    bump->current = NULL;
    bump->used_bytes = 0;
}
