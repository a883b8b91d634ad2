// Problems whose optimum is known because it was there first (planted_placement.h): how far the search for
// latency by list scheduling stays above it.
#include <criterion/criterion.h>
#include <math.h>

#include "planner/solve/solve.h"
#include "tests/solve/planted_placement.h"

static berth_arena *arena;

static void setup(void) {
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
}

static void teardown(void) {
    berth_arena_destroy(arena);
}

TestSuite(planted, .init = setup, .fini = teardown);

static void run(berth_status (*body)(void *), void *user) {
    berth_status status = berth_arena_try(arena, body, user);
    cr_assert_null(status, "%s", berth_status_message(status));
}

// No bound is above the optimum, and nothing found is below it: what is planted is one.
static berth_status holds_body(void *user) {
    (void)user;
    for (int i = 0; i < 2 * PLANTED_SHAPES; ++i) {
        planted p;
        planted_shape shape = (planted_shape)(i / 2);
        BERTH_TRY(planted_placement(arena, shape, 60, 3, 0.4, (uint64_t)i + 1, &p));
        berth_place_options options = {.objective = BERTH_PLACE_LATENCY, .node_budget = 100000};
        berth_place_answer answer;
        BERTH_TRY(berth_place_solve(arena, p.problem, &options, &answer));
        const char *name = planted_shape_names[shape];
        cr_assert_geq(answer.value.value, p.optimum * (1 - 1e-9), "%s: %g", name, p.optimum);
        cr_assert_leq(answer.lower_bound, p.optimum * (1 + 1e-9), "%s: %g", name, p.optimum);
    }
    return BERTH_OK;
}

Test(planted, is_an_optimum) {
    run(holds_body, NULL);
}

// In per cent, the mean over all shapes of 600 nodes on four accelerators.
static double mean_excess(const char *strategy, double transfer, uint64_t budget) {
    double sum = 0;
    for (int i = 0; i < PLANTED_SHAPES; ++i) {
        planted p;
        berth_status status = planted_placement(arena, (planted_shape)i, 600, 4, transfer, 1, &p);
        cr_assert_null(status, "%s", berth_status_message(status));
        berth_place_options options = {
            .objective = BERTH_PLACE_LATENCY, .strategy = strategy, .node_budget = budget};
        berth_place_answer answer;
        status = berth_place_solve(arena, p.problem, &options, &answer);
        cr_assert_null(status, "%s", berth_status_message(status));
        sum += answer.value.value / p.optimum - 1;
    }
    return 100 * sum / PLANTED_SHAPES;
}

static berth_status search_body(void *user) {
    (void)user;
    double excess = mean_excess("auto", 0.3, 500000);
    cr_assert_lt(excess, 5.5, "%g %%", excess);
    return BERTH_OK;
}

// Where every move is valued by a schedule, the mean is 5.9 %.
Test(planted, search_stays_near_the_optimum) {
    run(search_body, NULL);
}

static berth_status prices_body(void *user) {
    (void)user;
    double excess = mean_excess("heft", 0.6, 1000000);
    cr_assert_lt(excess, 15, "%g %%", excess);
    return BERTH_OK;
}

// Copies are dear: where they have no price, and orders are not tried again, the mean is 17.9 %.
Test(planted, earliest_finish_times_pay_for_copies) {
    run(prices_body, NULL);
}
