// Greedy by size with best-fit gaps (Pisarchyk and Lee 2020, "Efficient Memory Management for Deep
// Neural Net Inference", section 5): buffers in order of decreasing size, each into the smallest
// gap between the placed buffers it overlaps in time. O(n²).
#include "memory/plan.h"

#include <stdbool.h>
#include <stdlib.h>

typedef struct placed {
    uint32_t index;
    uint64_t offset;
} placed;

typedef struct order_entry {
    uint64_t size_bytes;
    uint32_t index;
} order_entry;

static int by_size(const void *a, const void *b) {
    const order_entry *x = a;
    const order_entry *y = b;
    if (x->size_bytes != y->size_bytes) return x->size_bytes < y->size_bytes ? 1 : -1;
    return (x->index > y->index) - (x->index < y->index);
}

static uint64_t align_up(uint64_t value, uint64_t alignment) {
    return (value + alignment - 1) & ~(alignment - 1);
}

static bool overlap(const berth_memory_plan_buffer *a, const berth_memory_plan_buffer *b) {
    return a->pool == b->pool && a->first_use_step <= b->last_use_step &&
           b->first_use_step <= a->last_use_step;
}

// Best gap for `buffer` among `done` (sorted by offset).
static uint64_t best_fit(const berth_memory_plan_buffer *buffers,
                         const berth_memory_plan_buffer *buffer, const placed *done,
                         uint32_t done_count) {
    uint64_t end = 0;
    uint64_t best = UINT64_MAX;
    uint64_t best_gap = UINT64_MAX;
    for (uint32_t i = 0; i < done_count; ++i) {
        const berth_memory_plan_buffer *other = &buffers[done[i].index];
        if (!overlap(buffer, other)) continue;
        uint64_t start = align_up(end, buffer->alignment_bytes);
        if (done[i].offset >= start && done[i].offset - start >= buffer->size_bytes &&
            done[i].offset - start < best_gap) {
            best = start;
            best_gap = done[i].offset - start;
        }
        uint64_t other_end = done[i].offset + other->size_bytes;
        if (other_end > end) end = other_end;
    }
    return best != UINT64_MAX ? best : align_up(end, buffer->alignment_bytes);
}

static void insert_sorted(placed *done, uint32_t count, placed entry) {
    uint32_t at = count;
    while (at > 0 && done[at - 1].offset > entry.offset) {
        done[at] = done[at - 1];
        at--;
    }
    done[at] = entry;
}

static berth_status check(const berth_memory_plan_buffer *buffers, uint32_t count,
                          uint32_t pool_count) {
    for (uint32_t i = 0; i < count; ++i) {
        const berth_memory_plan_buffer *b = &buffers[i];
        bool power = b->alignment_bytes && (b->alignment_bytes & (b->alignment_bytes - 1)) == 0;
        if (b->first_use_step > b->last_use_step || b->size_bytes == 0 ||
            b->size_bytes > (uint64_t)1 << 48 || !power || b->pool >= pool_count)
            return berth_status_make(BERTH_INVALID_ARGUMENT,
                                     "buffer %u of the memory plan is malformed", i);
    }
    return BERTH_OK;
}

static void lower_bounds(berth_arena *scratch, const berth_memory_plan_buffer *buffers,
                         uint32_t count, berth_memory_plan_pool *pools, uint32_t pool_count) {
    uint32_t steps = 0;
    for (uint32_t i = 0; i < count; ++i)
        if (buffers[i].last_use_step + 1 > steps) steps = buffers[i].last_use_step + 1;
    int64_t *change = berth_arena_new_array(scratch, int64_t, steps + 1);
    for (uint32_t p = 0; p < pool_count; ++p) {
        for (uint32_t s = 0; s <= steps; ++s) change[s] = 0;
        for (uint32_t i = 0; i < count; ++i) {
            if (buffers[i].pool != p) continue;
            change[buffers[i].first_use_step] += (int64_t)buffers[i].size_bytes;
            change[buffers[i].last_use_step + 1] -= (int64_t)buffers[i].size_bytes;
        }
        int64_t live = 0;
        for (uint32_t s = 0; s < steps; ++s) {
            live += change[s];
            if ((uint64_t)live <= pools[p].lower_bound_bytes) continue;
            pools[p].lower_bound_bytes = (uint64_t)live;
            pools[p].peak_step = s;
        }
    }
}

berth_status berth_memory_plan_solve(berth_arena *scratch, const berth_memory_plan_buffer *buffers,
                                     uint32_t buffer_count, berth_memory_plan_pool *pools,
                                     uint32_t pool_count, uint64_t node_budget,
                                     uint64_t *out_offsets) {
    (void)node_budget;  // the greedy plan is the only one yet
    BERTH_TRY(check(buffers, buffer_count, pool_count));
    for (uint32_t p = 0; p < pool_count; ++p)
        pools[p] = (berth_memory_plan_pool){.capacity_bytes = pools[p].capacity_bytes};
    lower_bounds(scratch, buffers, buffer_count, pools, pool_count);
    order_entry *order = berth_arena_new_array(scratch, order_entry, buffer_count + 1);
    placed *done = berth_arena_new_array(scratch, placed, buffer_count + 1);
    for (uint32_t i = 0; i < buffer_count; ++i) order[i] = (order_entry){buffers[i].size_bytes, i};
    qsort(order, buffer_count, sizeof(*order), by_size);
    for (uint32_t i = 0; i < buffer_count; ++i) {
        const berth_memory_plan_buffer *buffer = &buffers[order[i].index];
        uint64_t offset = best_fit(buffers, buffer, done, i);
        out_offsets[order[i].index] = offset;
        insert_sorted(done, i, (placed){order[i].index, offset});
        berth_memory_plan_pool *pool = &pools[buffer->pool];
        if (offset + buffer->size_bytes > pool->peak_bytes)
            pool->peak_bytes = offset + buffer->size_bytes;
    }
    for (uint32_t p = 0; p < pool_count; ++p)
        if (pools[p].capacity_bytes && pools[p].peak_bytes > pools[p].capacity_bytes)
            return berth_status_make(BERTH_OUT_OF_MEMORY,
                                     "pool %u needs %llu bytes; its capacity is %llu", p,
                                     (unsigned long long)pools[p].peak_bytes,
                                     (unsigned long long)pools[p].capacity_bytes);
    return BERTH_OK;
}
