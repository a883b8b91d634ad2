#include "memory/interval.h"

#include <stdbool.h>
#include <stdlib.h>

#include "memory/measure.h"
#include "memory/stack.h"

// The stacks of single cliques are looked at up to this many buffers, and sets of buffers.
enum { STACK_COUNT = 1024, STACK_STATES = 1 << 17, STACK_STATES_PER_CLIQUE = 1 << 14 };

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

berth_memory_span *berth_memory__make_spans(berth_arena *arena,
                                            const berth_memory_interval *intervals, uint32_t count,
                                            uint32_t *out_clique_count, bool *out_varied) {
    berth_memory_cliques cliques = berth_memory_find_cliques(arena, intervals, count);
    berth_memory_span *spans = berth_arena_new_array(arena, berth_memory_span, count);
    *out_varied = false;
    for (uint32_t i = 0; i < count; ++i) {
        uint64_t alignment = intervals[i].alignment_bytes;
        spans[i] = (berth_memory_span){intervals[i].size_bytes, alignment, cliques.first[i],
                                       cliques.end[i]};
        *out_varied |= alignment != intervals[0].alignment_bytes;
    }
    *out_clique_count = cliques.count;
    return spans;
}

uint32_t berth_memory__clique_spans(const berth_memory_span *spans, uint32_t count, uint32_t clique,
                                    berth_memory_span *out) {
    uint32_t members = 0;
    for (uint32_t i = 0; i < count; ++i) {
        if (spans[i].first > clique || spans[i].end <= clique) continue;
        if (members < BERTH_MEMORY_STACK_LIMIT) out[members] = spans[i];
        ++members;
    }
    return members;
}

// What the stacks of single cliques need, where they are few enough to be looked at.
static uint64_t stacks_bound(berth_arena *scratch, const berth_memory_span *spans, uint32_t count,
                             uint32_t clique_count, uint64_t bound) {
    berth_memory_span members[BERTH_MEMORY_STACK_LIMIT];
    uint32_t states = STACK_STATES;
    for (uint32_t c = 0; c < clique_count && states > 0; ++c) {
        uint32_t members_count = berth_memory__clique_spans(spans, count, c, members);
        if (members_count > BERTH_MEMORY_STACK_LIMIT) continue;
        uint32_t own = states < STACK_STATES_PER_CLIQUE ? states : STACK_STATES_PER_CLIQUE;
        states -= own;
        bound = berth_memory__stack_bound(scratch, members, members_count, bound, &own);
        states += own;
    }
    return bound;
}

static uint64_t aligned_bound(berth_arena *scratch, const berth_memory_interval *intervals,
                              uint32_t count, uint64_t bound) {
    uint32_t clique_count = 0;
    bool varied = false;
    berth_memory_span *spans =
        berth_memory__make_spans(scratch, intervals, count, &clique_count, &varied);
    berth_memory_measure most = {0};
    (void)berth_memory__find_measures(scratch, spans, count, clique_count, &most, 1);
    if (most.height > bound) bound = most.height;
    // With one alignment the measures say it all.
    if (!varied || count > STACK_COUNT) return bound;
    return stacks_bound(scratch, spans, count, clique_count, bound);
}

uint64_t berth_memory_lower_bound(berth_arena *arena, const berth_memory_interval *intervals,
                                  uint32_t count) {
    uint64_t bound = berth_memory_live_peak(arena, intervals, count).size_bytes;
    if (count == 0) return bound;
    berth_arena *scratch = berth_arena_create_child(arena);
    bound = aligned_bound(scratch, intervals, count, bound);
    berth_arena_destroy(scratch);
    return bound;
}
