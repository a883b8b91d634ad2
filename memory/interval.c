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
