#include "planner/solve/problem/busy.h"

#include <string.h>

enum { BLOCK = 64 };

typedef struct interval {
    double start, end;
    uint32_t user;
} interval;

struct berth_solve__busy_block {
    double longest;  // at least as long as the gap before any of its intervals
    uint32_t count;
    interval list[BLOCK];
};

static double last_end(const berth_solve__busy_block *block) {
    return block->list[block->count - 1].end;
}

void berth_solve__busy_clear(berth_solve__busy *busy, berth_arena *arena) {
    busy->arena = arena;
    busy->count = 0;
}

// The first block with an interval that ends after `ready`.
static uint32_t first_block(const berth_solve__busy *busy, double ready) {
    uint32_t low = 0, high = busy->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (last_end(busy->blocks[middle]) > ready)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static uint32_t first_interval(const berth_solve__busy_block *block, double ready) {
    uint32_t low = 0, high = block->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (block->list[middle].end > ready)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

// No gap of the block is that long, however start + length is rounded.
static bool is_full(const berth_solve__busy_block *block, double length) {
    static const double rounding = 0x1p-50;
    return length > block->longest + rounding * block->list[block->count - 1].start;
}

// Moves *start behind the block's intervals from *at on, or to the first gap among them that is long enough: true.
// `whole`: *start is where the gap before the block begins.
static bool find_in(berth_solve__busy *busy, berth_solve__busy_block *block, double length,
                    bool whole, uint32_t *at, double *start) {
    double longest = 0, from = *start;
    if (is_full(block, length)) {
        *at = block->count;
        *start = last_end(block);
        return false;
    }
    uint32_t i = *at, count = block->count;
    for (; i < count && from + length > block->list[i].start; ++i) {
        double gap = block->list[i].start - from;
        longest = gap > longest ? gap : longest;
        from = block->list[i].end > from ? block->list[i].end : from;
    }
    busy->looked_at += i - *at;
    if (whole && i == count) block->longest = longest;
    *at = i;
    *start = from;
    return i < count;
}

double berth_solve__busy_find(berth_solve__busy *busy, double ready, double length,
                              berth_solve__gap *out) {
    uint32_t b = first_block(busy, ready), first = b;
    double start = ready;
    *out = (berth_solve__gap){.block = b, .behind = UINT32_MAX};
    for (; b < busy->count; ++b) {
        berth_solve__busy_block *block = busy->blocks[b];
        out->at = b == first ? first_interval(block, ready) : 0;
        busy->looked_at++;
        if (find_in(busy, block, length, b != first, &out->at, &start)) break;
    }
    if (b == busy->count && b > 0) {  // behind all
        --b;
        out->at = busy->blocks[b]->count;
    }
    out->block = b;
    if (start > ready) {
        const berth_solve__busy_block *before = busy->blocks[out->at > 0 ? b : b - 1];
        out->behind = before->list[out->at > 0 ? out->at - 1 : before->count - 1].user;
    }
    return start;
}

// Puts an empty block before the one at `at`.
static berth_solve__busy_block *add_block(berth_solve__busy *busy, uint32_t at) {
    if (busy->count == busy->room) {
        uint32_t room = busy->room < 4 ? 4 : 2 * busy->room;
        busy->blocks = berth_arena_grow(busy->arena, busy->blocks, busy->room * sizeof(void *),
                                        room * sizeof(void *));
        busy->room = room;
    }
    if (busy->count == busy->made)
        busy->blocks[busy->made++] = berth_arena_new(busy->arena, berth_solve__busy_block);
    berth_solve__busy_block *block = busy->blocks[busy->count];
    memmove(busy->blocks + at + 1, busy->blocks + at, (busy->count - at) * sizeof(void *));
    busy->blocks[at] = block;
    busy->count++;
    block->count = 0;
    block->longest = 0;
    return block;
}

// Room for one more at *block, *at.
static void make_room(berth_solve__busy *busy, uint32_t *block, uint32_t *at) {
    if (*block < busy->count && busy->blocks[*block]->count < BLOCK) return;
    berth_solve__busy_block *next = NULL;
    if (*block == busy->count || (*block + 1 == busy->count && *at == BLOCK)) {
        (void)add_block(busy, busy->count);
        *block = busy->count - 1;
        *at = 0;
        return;
    }
    next = add_block(busy, *block + 1);
    berth_solve__busy_block *full = busy->blocks[*block];
    next->longest = full->longest;
    next->count = full->count = BLOCK / 2;
    memcpy(next->list, full->list + BLOCK / 2, BLOCK / 2 * sizeof(interval));
    if (*at <= BLOCK / 2) return;
    *at -= BLOCK / 2;
    *block += 1;
}

void berth_solve__busy_take(berth_solve__busy *busy, const berth_solve__gap *gap, double start,
                            double end, uint32_t user) {
    uint32_t b = gap->block, at = gap->at;
    make_room(busy, &b, &at);
    berth_solve__busy_block *block = busy->blocks[b];
    double before = at > 0 ? block->list[at - 1].end : b > 0 ? last_end(busy->blocks[b - 1]) : 0;
    if (start - before > block->longest) block->longest = start - before;
    memmove(block->list + at + 1, block->list + at, (block->count - at) * sizeof(interval));
    block->list[at] = (interval){start, end, user};
    block->count++;
}
