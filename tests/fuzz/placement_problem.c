// Any bytes as a placement problem in JSON: parsing says no or gives a problem; small ones are
// solved with few nodes for every objective, and the evaluator is the oracle.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "planner/solve/plot.h"
#include "planner/solve/problem/problem_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SOLVED_NODES = 40, NODES = 2000 };

static void require(bool condition, const char *what, berth_status status) {
    if (condition) return;
    fprintf(stderr, "%s: %s\n", what, berth_status_message(status));
    abort();
}

static void check_order(const berth_place_problem *problem) {
    uint32_t n = problem->node_count;
    uint32_t *position = calloc((size_t)n + 1, sizeof(*position));
    if (!position) return;
    for (uint32_t i = 0; i < n; ++i) position[problem->topological[i]] = i + 1;
    for (uint32_t e = 0; e < problem->edge_count; ++e)
        require(position[problem->edge_from[e]] < position[problem->edge_to[e]], "order", NULL);
    for (uint32_t v = 0; v < n; ++v)
        require(position[v] > 0 && problem->group[v] < problem->group_count, "lists", NULL);
    free(position);
}

static void solve(berth_arena *arena, const berth_place_problem *problem,
                  berth_place_objective objective, bool contiguous) {
    berth_place_options options = {
        .objective = objective, .contiguous = contiguous, .node_budget = NODES};
    berth_place_answer answer;
    berth_status status = berth_place_solve(arena, problem, &options, &answer);
    if (status) {
        berth_code code = berth_status_code(status);
        require(code == BERTH_FAILED_PRECONDITION || code == BERTH_OUT_OF_RANGE, "solving", status);
        berth_status_free(status);
        return;
    }
    double value = answer.value.value;
    require(isfinite(value) && value >= 0 && answer.lower_bound <= value, "value", NULL);
    require(answer.lower_bound >= 0 && answer.gap >= 0 && answer.gap <= 1, "bound", NULL);
    berth_place_value again;
    status = berth_place_evaluate(arena, problem, objective, contiguous, answer.assignment, &again);
    require(!status && again.value == value, "evaluating again", status);
    berth_strbuf picture = berth_strbuf_make(arena);
    berth_place_plot_options plot = {0};
    berth_place_plot(problem, objective, &answer, &plot, &picture);
}

typedef struct run {
    berth_arena *arena;
    const uint8_t *data;
    size_t size;
} run;

static berth_status run_one(void *user) {
    run *r = user;
    berth_place_problem *problem = NULL;
    berth_status status =
        berth_place_problem_parse(r->arena, "fuzz", (const char *)r->data, r->size, NULL, &problem);
    if (status) {
        require(berth_status_message(status)[0] != 0, "empty message", NULL);
        return status;
    }
    check_order(problem);
    if (problem->node_count > SOLVED_NODES || problem->device_count > 8) return BERTH_OK;
    solve(r->arena, problem, BERTH_PLACE_THROUGHPUT, false);
    solve(r->arena, problem, BERTH_PLACE_THROUGHPUT, true);
    solve(r->arena, problem, BERTH_PLACE_LATENCY, false);
    solve(r->arena, problem, BERTH_PLACE_MEMORY, false);
    problem->one_subgraph = false;
    solve(r->arena, problem, BERTH_PLACE_LATENCY, false);
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
