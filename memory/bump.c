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

// The next chunk with room for so many bytes: one that is there, or a new one before those that are too small.
static bool next_chunk(berth_bump *bump, size_t size_bytes) {
    berth_bump_chunk **link = after(bump);
    if (!*link || (*link)->size_bytes < size_bytes) {
        const size_t size = size_bytes > chunk_bytes ? size_bytes : chunk_bytes;
        berth_bump_chunk *made = berth_alloc(bump->allocator, sizeof(*made) + size);
        if (!made) return false;
        *made = (berth_bump_chunk){*link, size};
        *link = made;
    }
    bump->current = *link;
    bump->used_bytes = 0;
    return true;
}

void *berth_bump_take(berth_bump *bump, size_t size_bytes) {
    if (size_bytes > SIZE_MAX / 2) return NULL;
    const size_t size = (size_bytes + alignment_bytes - 1) / alignment_bytes * alignment_bytes;
    if (!bump->current || size > bump->current->size_bytes - bump->used_bytes)
        if (!next_chunk(bump, size)) return NULL;
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
