// Any bytes as a CSV problem: parsing says no or gives a problem; small ones are solved with few
// nodes, and the validator is the oracle.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "memory/problem.h"
#include "memory/solve.h"
#include "memory/validator.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SOLVED_BUFFERS = 64, NODES = 300 };

static void require(bool condition, const char *what, berth_status status) {
    if (condition) return;
    fprintf(stderr, "%s: %s\n", what, berth_status_message(status));
    abort();
}

// Writing and reading back gives the same intervals.
static berth_status round_trip(void *user) {
    const berth_memory_problem *problem = user;
    berth_arena *arena = NULL;
    BERTH_TRY(berth_arena_create(berth_allocator_system(), &arena));
    berth_strbuf text = berth_strbuf_make(arena);
    berth_memory_problem_write(problem, problem->offsets, &text);
    berth_memory_problem *back = NULL;
    berth_status status = berth_memory_problem_parse(arena, "back", berth_strbuf_text(&text),
                                                     text.length, NULL, &back);
    require(!status && back->buffer_count == problem->buffer_count, "reading back", status);
    for (uint32_t i = 0; i < problem->buffer_count; ++i)
        require(back->intervals[i].size_bytes == problem->intervals[i].size_bytes &&
                    back->pools[i] == problem->pools[i],
                "row changed", NULL);
    berth_arena_destroy(arena);
    return BERTH_OK;
}

static void solve(berth_arena *arena, const berth_memory_problem *problem) {
    berth_memory_solution least;
    berth_memory_solve_options options = {.node_limit = NODES};
    berth_status status = berth_memory_solve(arena, problem, &options, &least);
    require(!status, "minimising", status);
    status = berth_memory_validate(arena, problem, least.offsets, NULL, NULL);
    require(!status, "minimised solution", status);
    uint64_t *capacities = berth_arena_new_array(arena, uint64_t, problem->pool_count);
    for (uint32_t p = 0; p < problem->pool_count; ++p) {
        require(least.pools[p].height_bytes >= least.pools[p].lower_bound_bytes,
                "bound above height", NULL);
        capacities[p] = least.pools[p].lower_bound_bytes;
    }
    berth_memory_solution fitted;
    options.capacities_bytes = capacities;
    status = berth_memory_solve(arena, problem, &options, &fitted);
    require(!status, "fitting", status);
    for (uint32_t p = 0; p < problem->pool_count; ++p) {
        bool optimal = least.pools[p].proven;
        if (fitted.pools[p].verdict != BERTH_MEMORY_FITS) capacities[p] = 0;
        require(!optimal || fitted.pools[p].verdict != BERTH_MEMORY_CANNOT_FIT, "optimum refuted",
                NULL);
    }
    status = berth_memory_validate(arena, problem, fitted.offsets, capacities, NULL);
    require(!status, "fitted solution", status);
}

typedef struct run {
    berth_arena *arena;
    const uint8_t *data;
    size_t size;
} run;

static berth_status run_one(void *user) {
    run *r = user;
    berth_memory_problem *problem = NULL;
    berth_status status = berth_memory_problem_parse(r->arena, "fuzz", (const char *)r->data,
                                                     r->size, NULL, &problem);
    if (status) {
        require(berth_status_message(status)[0] != 0, "empty message", NULL);
        return status;
    }
    BERTH_TRY(round_trip(problem));
    if (problem->buffer_count <= SOLVED_BUFFERS) solve(r->arena, problem);
    return BERTH_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    berth_arena *arena = NULL;
    berth_status status = berth_arena_create(berth_allocator_system(), &arena);
    if (status) {
        berth_status_free(status);
        return 0;
    }
    run r = {arena, data, size};
    berth_status_ignore(berth_arena_try(arena, run_one, &r));
    berth_arena_destroy(arena);
    return 0;
}
