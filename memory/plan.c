#include "memory/plan.h"

#include <stdbool.h>
#include <stdlib.h>

#include "memory/exact.h"
#include "memory/greedy.h"

static berth_status check_buffers(const berth_memory_plan_buffer *buffers, uint32_t count,
                                  uint32_t pool_count) {
    for (uint32_t i = 0; i < count; ++i) {
        const berth_memory_plan_buffer *b = &buffers[i];
        const char *wrong = NULL;
        if (b->first_use_step > b->last_use_step) wrong = "its first step is behind its last";
        if (b->size_bytes == 0) wrong = "its size is 0";
        if (b->alignment_bytes == 0 || (b->alignment_bytes & (b->alignment_bytes - 1)) != 0)
            wrong = "its alignment is not a power of two";
        if (b->pool >= pool_count) wrong = "its pool does not exist";
        if (wrong)
            return berth_status_make(BERTH_INVALID_ARGUMENT, "buffer %u of the memory plan: %s", i,
                                     wrong);
    }
    return BERTH_OK;
}

typedef struct pool_problem {
    berth_memory_interval *intervals;
    uint32_t *indices;  // of the buffers
    uint64_t *offsets;
    uint32_t count;
} pool_problem;

static pool_problem collect(berth_arena *scratch, const berth_memory_plan_buffer *buffers,
                            uint32_t count, uint32_t pool) {
    pool_problem p = {0};
    for (uint32_t i = 0; i < count; ++i) p.count += buffers[i].pool == pool;
    p.intervals = berth_arena_new_array(scratch, berth_memory_interval, p.count);
    p.indices = berth_arena_new_array(scratch, uint32_t, p.count);
    p.offsets = berth_arena_new_array(scratch, uint64_t, p.count);
    uint32_t at = 0;
    for (uint32_t i = 0; i < count; ++i) {
        if (buffers[i].pool != pool) continue;
        p.intervals[at] = (berth_memory_interval){
            buffers[i].first_use_step, (int64_t)buffers[i].last_use_step + 1, buffers[i].size_bytes,
            buffers[i].alignment_bytes};
        p.indices[at++] = i;
    }
    return p;
}

// A node looks at every interval in every clique it is in; too few nodes to place everything once
// are no use.
static uint64_t default_nodes(berth_arena *scratch, const pool_problem *p) {
    berth_memory_cliques cliques = berth_memory_find_cliques(scratch, p->intervals, p->count);
    uint64_t work = berth_memory_membership(&cliques, p->count) + p->count;
    uint64_t nodes = BERTH_MEMORY_PLAN_DEFAULT_WORK / work;
    if (nodes > BERTH_MEMORY_PLAN_DEFAULT_NODES) nodes = BERTH_MEMORY_PLAN_DEFAULT_NODES;
    return nodes < p->count / 4 ? 0 : nodes;
}

static berth_status solve_pool(berth_arena *scratch, const berth_memory_plan_buffer *buffers,
                               uint32_t buffer_count, uint32_t index, uint64_t node_budget,
                               berth_memory_plan_pool *pool, uint64_t *out_offsets) {
    pool_problem p = collect(scratch, buffers, buffer_count, index);
    *pool = (berth_memory_plan_pool){.capacity_bytes = pool->capacity_bytes, .strategy = "empty"};
    if (p.count == 0) return BERTH_OK;
    if (berth_memory_total(p.intervals, p.count) == UINT64_MAX)
        return berth_status_make(BERTH_OUT_OF_RANGE,
                                 "pool %u of the memory plan: the sum of sizes is above %llu",
                                 index, (unsigned long long)BERTH_MEMORY_TOTAL_LIMIT_BYTES);
    berth_memory_peak peak = berth_memory_live_peak(scratch, p.intervals, p.count);
    pool->live_bytes = peak.size_bytes;
    pool->lower_bound_bytes = berth_memory_lower_bound(scratch, p.intervals, p.count);
    pool->peak_step = (uint32_t)peak.time;
    pool->peak_bytes =
        berth_memory_greedy_best(scratch, p.intervals, p.count, p.offsets, &pool->strategy);
    uint64_t nodes = node_budget ? node_budget : default_nodes(scratch, &p);
    if (pool->peak_bytes > pool->lower_bound_bytes && nodes > 0) {
        uint64_t greedy_bytes = pool->peak_bytes;
        berth_memory_budget budget = {.node_limit = nodes};
        BERTH_TRY(berth_memory_exact_minimize(scratch, p.intervals, p.count, &budget, p.offsets,
                                              &pool->peak_bytes, &pool->lower_bound_bytes));
        if (pool->peak_bytes < greedy_bytes) pool->strategy = "exact search";
    }
    for (uint32_t i = 0; i < p.count; ++i) out_offsets[p.indices[i]] = p.offsets[i];
    return BERTH_OK;
}

berth_status berth_memory_plan_solve(berth_arena *scratch, const berth_memory_plan_buffer *buffers,
                                     uint32_t buffer_count, berth_memory_plan_pool *pools,
                                     uint32_t pool_count, uint64_t node_budget,
                                     uint64_t *out_offsets) {
    BERTH_TRY(check_buffers(buffers, buffer_count, pool_count));
    for (uint32_t p = 0; p < pool_count; ++p) {
        berth_arena *child = berth_arena_create_child(scratch);
        berth_status status =
            solve_pool(child, buffers, buffer_count, p, node_budget, &pools[p], out_offsets);
        berth_arena_destroy(child);
        BERTH_TRY(status);
    }
    for (uint32_t p = 0; p < pool_count; ++p) {
        const berth_memory_plan_pool *pool = &pools[p];
        if (pool->capacity_bytes == 0 || pool->peak_bytes <= pool->capacity_bytes) continue;
        return berth_status_make(
            BERTH_OUT_OF_MEMORY, "pool %u needs %llu bytes, its capacity is %llu (%s %llu)", p,
            (unsigned long long)pool->peak_bytes, (unsigned long long)pool->capacity_bytes,
            pool->lower_bound_bytes > pool->capacity_bytes ? "proven: no plan needs less than"
                                                           : "not proven: plans may go down to",
            (unsigned long long)pool->lower_bound_bytes);
    }
    return BERTH_OK;
}

typedef struct sized {
    uint64_t size_bytes;
    uint32_t index;
} sized;

static int compare_sized(const void *left, const void *right) {
    const sized *a = left;
    const sized *b = right;
    if (a->size_bytes != b->size_bytes) return a->size_bytes > b->size_bytes ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

uint32_t berth_memory_plan_live(berth_arena *arena, const berth_memory_plan_buffer *buffers,
                                uint32_t buffer_count, uint32_t pool, uint32_t step,
                                uint32_t **out_indices) {
    sized *live = berth_arena_new_array(arena, sized, buffer_count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < buffer_count; ++i) {
        const berth_memory_plan_buffer *b = &buffers[i];
        if (b->pool == pool && b->first_use_step <= step && step <= b->last_use_step)
            live[count++] = (sized){b->size_bytes, i};
    }
    if (count > 0) qsort(live, count, sizeof(*live), compare_sized);
    *out_indices = berth_arena_new_array(arena, uint32_t, count);
    for (uint32_t i = 0; i < count; ++i) (*out_indices)[i] = live[i].index;
    return count;
}
