#include "memory/tlsf.h"

#include <stdbool.h>

#include "memory/hide.h"

enum {
    granule_bytes = 16,
    small_power = 9,  // blocks below 2^9 bytes: classes are 16 bytes apart
    class_bits = 5,
    flag_free = 1,
};

// Sizes are those of what follows the header, and multiples of 16: the lowest bit says whether it is free.
struct berth_tlsf_block {
    berth_tlsf_block *before;  // its neighbour in memory; NULL: the first of its region
    size_t size_and_flag;
    berth_tlsf_block *next, *previous;  // while it is free: of its class; else the caller's bytes
};

enum { header_bytes = 16 };  // `before` and the size: what a taken block has

// A region begins with this; its last block is an empty one that is never free.
struct berth_tlsf_region {
    berth_tlsf_region *next;
    size_t size_bytes;
};

static size_t size_of(const berth_tlsf_block *block) {
    return block->size_and_flag & ~(size_t)flag_free;
}

static bool is_free(const berth_tlsf_block *block) {
    return block->size_and_flag & flag_free;
}

static berth_tlsf_block *neighbour(berth_tlsf_block *block) {
    return (berth_tlsf_block *)((char *)block + header_bytes + size_of(block));
}

static berth_tlsf_block *first_of(berth_tlsf_region *region) {
    return (berth_tlsf_block *)((char *)region + sizeof(*region));
}

// ---- classes ------------------------------------------------------------------------------------

typedef struct place {
    uint32_t power, class;
} place;

// The class that a size is of: the largest whose blocks are no larger than it.
static place place_of(size_t size) {
    if (size < (size_t)1 << small_power) return (place){0, (uint32_t)(size / granule_bytes)};
    const uint32_t log = 63 - (uint32_t)__builtin_clzll(size);
    return (place){log - small_power + 1,
                   (uint32_t)(size >> (log - class_bits)) & (BERTH_TLSF_CLASSES - 1)};
}

// The least size whose class has only blocks of `size` and more.
static size_t round_up(size_t size) {
    if (size < (size_t)1 << small_power) return size;
    const uint32_t log = 63 - (uint32_t)__builtin_clzll(size);
    return size + (((size_t)1 << (log - class_bits)) - 1);
}

static void link_free(berth_tlsf *tlsf, berth_tlsf_block *block) {
    const place at = place_of(size_of(block));
    berth_tlsf_block **first = &tlsf->free[at.power][at.class];
    block->size_and_flag |= flag_free;
    block->previous = NULL;
    block->next = *first;
    if (*first) (*first)->previous = block;
    *first = block;
    tlsf->powers |= UINT32_C(1) << at.power;
    tlsf->classes[at.power] |= UINT32_C(1) << at.class;
}

static void unlink_free(berth_tlsf *tlsf, berth_tlsf_block *block) {
    const place at = place_of(size_of(block));
    block->size_and_flag &= ~(size_t)flag_free;
    if (block->next) block->next->previous = block->previous;
    if (block->previous) {
        block->previous->next = block->next;
        return;
    }
    tlsf->free[at.power][at.class] = block->next;
    if (block->next) return;
    tlsf->classes[at.power] &= ~(UINT32_C(1) << at.class);
    if (!tlsf->classes[at.power]) tlsf->powers &= ~(UINT32_C(1) << at.power);
}

// A free block of at least `size` bytes, from the classes whose blocks all are; NULL: there is none.
static berth_tlsf_block *find_free(const berth_tlsf *tlsf, size_t size) {
    const place at = place_of(round_up(size));
    uint32_t power = at.power;
    uint32_t classes = tlsf->classes[power] & (UINT32_MAX << at.class);
    if (!classes) {
        if (power + 1 >= BERTH_TLSF_POWERS) return NULL;
        const uint32_t powers = tlsf->powers & (UINT32_MAX << (power + 1));
        if (!powers) return NULL;
        power = (uint32_t)__builtin_ctz(powers);
        classes = tlsf->classes[power];
    }
    return tlsf->free[power][__builtin_ctz(classes)];
}

// ---- blocks -------------------------------------------------------------------------------------

// So large that a free block has room for its two links.
static size_t usable(size_t size_bytes) {
    if (size_bytes < granule_bytes) return granule_bytes;
    return (size_bytes + granule_bytes - 1) / granule_bytes * granule_bytes;
}

// Cuts a block that is in no list down to `size`, if a block is left of it, which becomes free.
static void cut(berth_tlsf *tlsf, berth_tlsf_block *block, size_t size) {
    const size_t whole = size_of(block);
    if (whole - size < header_bytes + granule_bytes) return;
    block->size_and_flag = size;
    berth_tlsf_block *rest = neighbour(block);
    BERTH_MEMORY_SHOW(rest, sizeof(*rest));
    rest->before = block;
    rest->size_and_flag = whole - size - header_bytes;
    neighbour(rest)->before = rest;
    link_free(tlsf, rest);
}

void *berth_tlsf_take(berth_tlsf *tlsf, size_t size_bytes) {
    if (size_bytes > BERTH_TLSF_MOST_BYTES) return NULL;
    const size_t size = usable(size_bytes);
    berth_tlsf_block *block = find_free(tlsf, size);
    if (!block) return NULL;
    unlink_free(tlsf, block);
    cut(tlsf, block, size);
    BERTH_MEMORY_SHOW((char *)block + header_bytes, size_of(block));
    return (char *)block + header_bytes;
}

// Adds the bytes of the neighbour, which is in no list, to a block.
static void join(berth_tlsf_block *block, const berth_tlsf_block *next) {
    block->size_and_flag += header_bytes + size_of(next);
    neighbour(block)->before = block;
}

void berth_tlsf_give(berth_tlsf *tlsf, void *taken) {
    berth_tlsf_block *block = (berth_tlsf_block *)((char *)taken - header_bytes);
    berth_tlsf_block *next = neighbour(block), *before = block->before;
    BERTH_MEMORY_HIDE(block + 1, size_of(block) - granule_bytes);
    if (is_free(next)) {
        unlink_free(tlsf, next);
        join(block, next);
    }
    if (before && is_free(before)) {
        unlink_free(tlsf, before);
        join(before, block);
        block = before;
    }
    link_free(tlsf, block);
}

size_t berth_tlsf_size(const void *taken) {
    return size_of((const berth_tlsf_block *)((const char *)taken - header_bytes));
}

// ---- regions ------------------------------------------------------------------------------------

size_t berth_tlsf_region_bytes(size_t block_bytes) {
    if (block_bytes > BERTH_TLSF_MOST_BYTES) return 0;
    return sizeof(berth_tlsf_region) + 2 * header_bytes + usable(round_up(usable(block_bytes)));
}

void berth_tlsf_add(berth_tlsf *tlsf, void *memory, size_t size_bytes) {
    const size_t size = size_bytes / granule_bytes * granule_bytes;
    berth_tlsf_region *region = memory;
    *region = (berth_tlsf_region){tlsf->regions, size_bytes};
    tlsf->regions = region;
    berth_tlsf_block *first = first_of(region);
    first->before = NULL;
    first->size_and_flag = size - sizeof(*region) - 2 * header_bytes;
    berth_tlsf_block *last = neighbour(first);
    last->before = first;
    last->size_and_flag = 0;
    link_free(tlsf, first);
}

void *berth_tlsf_remove_empty(berth_tlsf *tlsf, size_t *out_size_bytes) {
    for (berth_tlsf_region **link = &tlsf->regions; *link; link = &(*link)->next) {
        berth_tlsf_region *region = *link;
        berth_tlsf_block *first = first_of(region);
        if (!is_free(first) || size_of(neighbour(first)) != 0) continue;
        unlink_free(tlsf, first);
        *link = region->next;
        *out_size_bytes = region->size_bytes;
        BERTH_MEMORY_SHOW(region, region->size_bytes);
        return region;
    }
    return NULL;
}
