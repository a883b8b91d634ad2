// How far `auto` stays above the optimum where it is known (tests/solve/planted_placement.h), by list
// scheduling: what is missing there is the search's fault. A row of a table for each shape and size; values
// are the same on every machine.
//
//   bench_planted [NODES_OF_SEARCH [SEED [SIZE...]]]      # 4000000 1 100 300 2000
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "planner/solve/solve.h"
#include "tests/solve/planted_placement.h"

typedef struct row {
    planted_shape shape;
    uint32_t size;
    uint64_t budget, seed;
    double transfer;
    berth_arena *arena;
} row;

static berth_status print_row(void *user) {
    const row *r = user;
    planted p;
    BERTH_TRY(planted_placement(r->arena, r->shape, r->size, 4, r->transfer, r->seed, &p));
    berth_place_options options = {.objective = BERTH_PLACE_LATENCY, .node_budget = r->budget};
    berth_place_answer answer;
    BERTH_TRY(berth_place_solve(r->arena, p.problem, &options, &answer));
    printf("| %s | %u | %u | %g | %.6g | %.6g | %.2f | %.2f |\n", planted_shape_names[r->shape],
           r->size, p.problem->edge_count, r->transfer, p.optimum, answer.value.value,
           100 * (answer.value.value / p.optimum - 1), 100 * (1 - answer.lower_bound / p.optimum));
    fflush(stdout);
    return BERTH_OK;
}

int main(int argc, char **argv) {
    static const uint32_t usual[] = {100, 300, 2000};
    static const double transfers[] = {0.1, 0.5};
    row r = {.budget = 4000000, .seed = 1};
    if (argc > 1) r.budget = strtoull(argv[1], NULL, 10);
    if (argc > 2) r.seed = strtoull(argv[2], NULL, 10);
    int sizes = argc > 3 ? argc - 3 : 3;
    printf("| shape | nodes | edges | transfer | optimum | value | value over it %% | bound under "
           "it %% |\n"
           "|---|---:|---:|---:|---:|---:|---:|---:|\n");
    for (int i = 0; i < 2 * sizes * PLANTED_SHAPES; ++i) {
        int size = i / 2 / PLANTED_SHAPES;
        r.size = argc > 3 ? (uint32_t)strtoul(argv[3 + size], NULL, 10) : usual[size];
        r.shape = (planted_shape)(i / 2 % PLANTED_SHAPES);
        r.transfer = transfers[i % 2];
        berth_status status = berth_arena_create(berth_allocator_system(), &r.arena);
        if (!status) status = berth_arena_try(r.arena, print_row, &r);
        if (status) {
            fprintf(stderr, "bench_planted: %s\n", berth_status_message(status));
            return 1;
        }
        berth_arena_destroy(r.arena);
    }
    return 0;
}
