#include "memory/solve.h"

#include "memory/greedy.h"

typedef struct solve_call {
    berth_arena *arena;
    const berth_memory_problem *problem;
    const berth_memory_solve_options *options;
    berth_memory_solution *out;
} solve_call;

static uint64_t height_of(const berth_memory_interval *intervals, const uint64_t *offsets,
                          uint32_t count) {
    uint64_t height = 0;
    for (uint32_t i = 0; i < count; ++i)
        if (offsets[i] + intervals[i].size_bytes > height)
            height = offsets[i] + intervals[i].size_bytes;
    return height;
}

static berth_status fit_pool(berth_arena *scratch, const berth_memory_interval *intervals,
                             uint32_t count, berth_memory_budget *budget, uint64_t *offsets,
                             berth_memory_pool_solution *pool) {
    pool->verdict = BERTH_MEMORY_FITS;
    if (pool->height_bytes > pool->capacity_bytes) {
        pool->verdict = BERTH_MEMORY_CANNOT_FIT;
        if (pool->lower_bound_bytes <= pool->capacity_bytes)
            BERTH_TRY(berth_memory_exact_fit(scratch, intervals, count, pool->capacity_bytes,
                                             budget, offsets, &pool->verdict));
        if (pool->verdict == BERTH_MEMORY_FITS) {
            pool->strategy = "exact search";
            pool->height_bytes = height_of(intervals, offsets, count);
        } else if (pool->verdict == BERTH_MEMORY_CANNOT_FIT &&
                   pool->lower_bound_bytes <= pool->capacity_bytes) {
            pool->lower_bound_bytes = pool->capacity_bytes + 1;
        }
    }
    pool->proven = pool->verdict != BERTH_MEMORY_UNKNOWN;
    return BERTH_OK;
}

static berth_status minimize_pool(berth_arena *scratch, const berth_memory_interval *intervals,
                                  uint32_t count, berth_memory_budget *budget, uint64_t *offsets,
                                  berth_memory_pool_solution *pool) {
    pool->verdict = BERTH_MEMORY_FITS;
    uint64_t before = pool->height_bytes;
    if (pool->height_bytes > pool->lower_bound_bytes)
        BERTH_TRY(berth_memory_exact_minimize(scratch, intervals, count, budget, offsets,
                                              &pool->height_bytes, &pool->lower_bound_bytes));
    if (pool->height_bytes < before) pool->strategy = "exact search";
    pool->proven = pool->height_bytes == pool->lower_bound_bytes;
    return BERTH_OK;
}

static berth_status solve_pool(solve_call *call, berth_arena *scratch, uint32_t index,
                               berth_memory_budget *budget) {
    berth_memory_interval *intervals = NULL;
    uint32_t *indices = NULL;
    uint32_t count = berth_memory_problem_pool(scratch, call->problem, index, &intervals, &indices);
    uint64_t *offsets = berth_arena_new_array(scratch, uint64_t, count);
    berth_memory_pool_solution *pool = &call->out->pools[index];
    pool->capacity_bytes =
        call->options->capacities_bytes ? call->options->capacities_bytes[index] : 0;
    pool->lower_bound_bytes = berth_memory_lower_bound(scratch, intervals, count);
    pool->height_bytes =
        berth_memory_greedy_best(scratch, intervals, count, offsets, &pool->strategy);
    if (pool->capacity_bytes)
        BERTH_TRY(fit_pool(scratch, intervals, count, budget, offsets, pool));
    else
        BERTH_TRY(minimize_pool(scratch, intervals, count, budget, offsets, pool));
    for (uint32_t i = 0; i < count; ++i) call->out->offsets[indices[i]] = offsets[i];
    return BERTH_OK;
}

static berth_status solve_body(void *user) {
    solve_call *call = user;
    const berth_memory_problem *problem = call->problem;
    call->out->offsets = berth_arena_new_array(call->arena, uint64_t, problem->buffer_count);
    call->out->pools =
        berth_arena_new_array(call->arena, berth_memory_pool_solution, problem->pool_count);
    berth_memory_budget budget = {.node_limit = call->options->node_limit,
                                  .deadline_ns = call->options->deadline_ns};
    for (uint32_t p = 0; p < problem->pool_count; ++p) {
        berth_arena *scratch = berth_arena_create_child(call->arena);
        berth_status status = solve_pool(call, scratch, p, &budget);
        berth_arena_destroy(scratch);
        BERTH_TRY(status);
    }
    call->out->nodes = budget.nodes;
    return BERTH_OK;
}

berth_status berth_memory_solve(berth_arena *arena, const berth_memory_problem *problem,
                                const berth_memory_solve_options *options,
                                berth_memory_solution *out_solution) {
    *out_solution = (berth_memory_solution){0};
    solve_call call = {arena, problem, options, out_solution};
    return berth_arena_try(arena, solve_body, &call);
}
