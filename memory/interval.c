#include "memory/interval.h"

#include <stdbool.h>
#include <stdlib.h>

typedef struct event {
    int64_t time;
    uint32_t interval;
    bool starts;
} event;

// Ends come before starts of the same time: intervals are half-open. Then by index, so that the
// order is one order.
static int compare_events(const void *left, const void *right) {
    const event *a = left;
    const event *b = right;
    if (a->time != b->time) return a->time < b->time ? -1 : 1;
    if (a->starts != b->starts) return a->starts ? 1 : -1;
    return a->interval < b->interval ? -1 : a->interval > b->interval;
}

static event *make_events(berth_arena *arena, const berth_memory_interval *intervals,
                          uint32_t count) {
    event *events = berth_arena_new_array(arena, event, (size_t)count * 2);
    for (uint32_t i = 0; i < count; ++i) {
        events[2 * (size_t)i] = (event){intervals[i].lower, i, true};
        events[2 * (size_t)i + 1] = (event){intervals[i].upper, i, false};
    }
    qsort(events, (size_t)count * 2, sizeof(*events), compare_events);
    return events;
}

uint64_t berth_memory_total(const berth_memory_interval *intervals, uint32_t count) {
    uint64_t total = 0;
    for (uint32_t i = 0; i < count; ++i) {
        uint64_t size = intervals[i].size_bytes;
        uint64_t padding = intervals[i].alignment_bytes - 1;
        if (size > BERTH_MEMORY_TOTAL_LIMIT_BYTES || padding > BERTH_MEMORY_TOTAL_LIMIT_BYTES ||
            total + size + padding > BERTH_MEMORY_TOTAL_LIMIT_BYTES)
            return UINT64_MAX;
        total += size + padding;
    }
    return total;
}

berth_memory_peak berth_memory_live_peak(berth_arena *arena, const berth_memory_interval *intervals,
                                         uint32_t count) {
    berth_memory_peak peak = {0, 0};
    if (count == 0) return peak;
    berth_arena *scratch = berth_arena_create_child(arena);
    event *events = make_events(scratch, intervals, count);
    uint64_t live = 0;
    for (size_t i = 0; i < (size_t)count * 2; ++i) {
        uint64_t size = intervals[events[i].interval].size_bytes;
        live = events[i].starts ? live + size : live - size;
        if (live > peak.size_bytes) peak = (berth_memory_peak){live, events[i].time};
    }
    berth_arena_destroy(scratch);
    return peak;
}

berth_memory_cliques berth_memory_find_cliques(berth_arena *arena,
                                               const berth_memory_interval *intervals,
                                               uint32_t count) {
    berth_memory_cliques cliques = {
        0,
        berth_arena_new_array(arena, uint32_t, count),
        berth_arena_new_array(arena, uint32_t, count),
    };
    if (count == 0) return cliques;
    berth_arena *scratch = berth_arena_create_child(arena);
    event *events = make_events(scratch, intervals, count);
    bool open = false;  // something started since the last clique was closed
    for (size_t i = 0; i < (size_t)count * 2; ++i) {
        if (events[i].starts) {
            cliques.first[events[i].interval] = cliques.count;
            open = true;
        } else {
            if (open) cliques.count++;
            open = false;
            cliques.end[events[i].interval] = cliques.count;
        }
    }
    berth_arena_destroy(scratch);
    return cliques;
}

uint64_t berth_memory_membership(const berth_memory_cliques *cliques, uint32_t interval_count) {
    uint64_t members = 0;
    for (uint32_t i = 0; i < interval_count; ++i) members += cliques->end[i] - cliques->first[i];
    return members;
}

// Above it the padding of the topmost interval is taken to be as large as it can be.
#define MEMBER_LIMIT ((uint64_t)1 << 24)

static uint64_t rounded_bound(berth_arena *scratch, const berth_memory_interval *intervals,
                              uint32_t count, uint64_t least) {
    berth_memory_cliques cliques = berth_memory_find_cliques(scratch, intervals, count);
    bool exact = berth_memory_membership(&cliques, count) <= MEMBER_LIMIT;
    uint64_t *change = berth_arena_new_array(scratch, uint64_t, (size_t)cliques.count + 1);
    uint64_t *padding = berth_arena_new_array(scratch, uint64_t, cliques.count);
    for (uint32_t i = 0; i < count; ++i) {
        uint64_t rounded = berth_memory_align_up(intervals[i].size_bytes, least);
        uint64_t own = rounded - intervals[i].size_bytes;
        change[cliques.first[i]] += rounded;
        change[cliques.end[i]] -= rounded;  // wraps, and is summed back below
        uint32_t end = exact ? cliques.end[i] : cliques.first[i];
        for (uint32_t c = cliques.first[i]; c < end; ++c)
            if (own > padding[c]) padding[c] = own;
    }
    uint64_t live = 0;
    uint64_t bound = 0;
    for (uint32_t c = 0; c < cliques.count; ++c) {
        live += change[c];
        uint64_t own = exact ? padding[c] : least - 1;
        if (live > own && live - own > bound) bound = live - own;
    }
    return bound;
}

uint64_t berth_memory_lower_bound(berth_arena *arena, const berth_memory_interval *intervals,
                                  uint32_t count) {
    uint64_t bound = berth_memory_live_peak(arena, intervals, count).size_bytes;
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < count; ++i)
        if (intervals[i].alignment_bytes < least) least = intervals[i].alignment_bytes;
    if (count == 0 || least == 1) return bound;
    berth_arena *scratch = berth_arena_create_child(arena);
    uint64_t rounded = rounded_bound(scratch, intervals, count, least);
    berth_arena_destroy(scratch);
    return rounded > bound ? rounded : bound;
}
