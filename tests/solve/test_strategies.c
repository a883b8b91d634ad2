// Every strategy against brute force on random small problems; and what berth_place_solve promises.
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "tests/solve/random_placement.h"

static berth_arena *arena;

static void setup(void) {
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
}

static void teardown(void) {
    berth_arena_destroy(arena);
}

TestSuite(placement_strategies, .init = setup, .fini = teardown);

typedef struct setting {
    const char *name;
    berth_place_objective objective;
    bool contiguous;
    bool one_subgraph;
} setting;

static const setting settings[] = {
    {"throughput", BERTH_PLACE_THROUGHPUT, false, true},
    {"contiguous throughput", BERTH_PLACE_THROUGHPUT, true, true},
    {"latency of subgraphs", BERTH_PLACE_LATENCY, false, true},
    {"latency by list scheduling", BERTH_PLACE_LATENCY, false, false},
    {"memory", BERTH_PLACE_MEMORY, false, true},
};
enum { setting_count = sizeof(settings) / sizeof(settings[0]) };

static const random_shape shapes[] = {
    {5, 5, 3, 2, 2, false, false, false}, {6, 4, 3, 2, 2, true, false, false},
    {7, 5, 2, 3, 2, true, false, false},  {8, 4, 3, 2, 3, false, true, false},
    {7, 6, 2, 1, 3, false, true, false},  {6, 6, 4, 3, 1, false, false, true},
    {8, 6, 2, 2, 2, true, true, true},    {6, 6, 1, 1, 2, true, false, false},
    {1, 1, 0, 2, 1, false, false, false},
};
enum { shape_count = sizeof(shapes) / sizeof(shapes[0]), NODES = 20000 };

static berth_place_problem *make(uint64_t seed, random_shape shape, bool one_subgraph) {
    berth_place_problem *p = random_placement(arena, seed, shape);
    p->one_subgraph = one_subgraph;
    berth_status status = berth_place_problem_finish(arena, p);
    cr_assert_null(status, "%s", berth_status_message(status));
    return p;
}

// Values and bounds are sums in any order.
static bool below(double a, double b) {
    return a < b - 1e-6 * (1 + b);
}

typedef struct tally {
    int solved, optimal, proven, infeasible, not_found;
} tally;

static void check_one(const berth_place_problem *p, const setting *s, const char *strategy,
                      double optimum, const char *where, tally *t) {
    berth_place_options options = {.objective = s->objective,
                                   .contiguous = s->contiguous,
                                   .strategy = strategy,
                                   .node_budget = NODES};
    berth_place_answer answer;
    berth_status status = berth_place_solve(arena, p, &options, &answer);
    if (status) {
        bool none = berth_status_code(status) == BERTH_FAILED_PRECONDITION;
        cr_assert(none || berth_status_code(status) == BERTH_OUT_OF_RANGE, "%s: %s", where,
                  berth_status_message(status));
        if (none)
            cr_assert_eq(optimum, INFINITY, "%s: %s, but the optimum is %g", where,
                         berth_status_message(status), optimum);
        *(none ? &t->infeasible : &t->not_found) += 1;
        berth_status_free(status);
        return;
    }
    double value = answer.value.value;
    cr_assert(!below(value, optimum), "%s: %g is below the optimum %g", where, value, optimum);
    cr_assert(!below(optimum, answer.lower_bound), "%s: the bound %g is above the optimum %g",
              where, answer.lower_bound, optimum);
    if (answer.proven)
        cr_assert(!below(optimum, value), "%s: %g is not the optimum %g", where, value, optimum);
    if (s->objective != BERTH_PLACE_LATENCY || s->one_subgraph) {
        double literal = literal_value(p, s->objective, s->contiguous, answer.assignment);
        cr_assert_float_eq(literal, value, 1e-9, "%s: said %g, is %g", where, value, literal);
    }
    cr_assert(answer.reproducible);
    t->solved++;
    t->proven += answer.proven;
    t->optimal += !below(optimum, value);
}

static void check_strategy(const setting *s, const berth_place_strategy *strategy) {
    const char *name = strategy ? strategy->name : "auto";
    tally t = {0};
    int feasible = 0;
    for (int shape = 0; shape < shape_count; ++shape) {
        for (uint64_t seed = 1; seed <= 16; ++seed) {
            berth_arena_destroy(arena);
            setup();
            const berth_place_problem *p = make(seed, shapes[shape], s->one_subgraph);
            berth_place_options options = {.objective = s->objective, .contiguous = s->contiguous};
            if (strategy && !strategy->applies(p, &options)) continue;
            double optimum = brute_force_placement(arena, p, s->objective, s->contiguous);
            const char *where = berth_arena_printf(arena, "%s, %s, shape %d, seed %d", name,
                                                   s->name, shape, (int)seed);
            feasible += optimum < INFINITY;
            check_one(p, s, name, optimum, where, &t);
        }
    }
    if (feasible == 0) return;  // it does not apply
    fprintf(stderr,
            "%s, %s: %d feasible, %d solved, %d optimal, %d proven optimal, %d proven infeasible, "
            "%d not found\n",
            name, s->name, feasible, t.solved, t.optimal, t.proven, t.infeasible, t.not_found);
    if (!strategy) {
        cr_assert_geq(t.solved, feasible * 98 / 100);
        cr_assert_geq(t.optimal, feasible * 95 / 100);
    }
}

ParameterizedTestParameters(placement_strategies, against_brute_force) {
    static int indices[setting_count];
    for (int i = 0; i < setting_count; ++i) indices[i] = i;
    return cr_make_param_array(int, indices, setting_count);
}

ParameterizedTest(int *index, placement_strategies, against_brute_force) {
    const setting *s = &settings[*index];
    for (const berth_place_strategy *const *all = berth_place_strategies(); *all; ++all)
        check_strategy(s, *all);
    check_strategy(s, NULL);
}

// More placements than are simply tried one after another (4^9): `auto` still finds and proves the
// best, with the planner's budget, for every objective.
ParameterizedTestParameters(placement_strategies, exact_where_small) {
    static int indices[setting_count];
    for (int i = 0; i < setting_count; ++i) indices[i] = i;
    return cr_make_param_array(int, indices, setting_count);
}

static double optimum_by_evaluator(const berth_place_problem *p, const setting *s) {
    uint32_t at[64] = {0};
    double best = INFINITY;
    for (uint32_t last = 0; last < p->node_count;) {
        berth_arena *scratch = berth_arena_create_child(arena);
        berth_place_value value;
        berth_status status =
            berth_place_evaluate(scratch, p, s->objective, s->contiguous, at, &value);
        if (!status) best = fmin(best, value.value);
        berth_status_free(status);
        berth_arena_destroy(scratch);
        for (last = 0; last < p->node_count && ++at[last] == p->device_count; ++last) at[last] = 0;
    }
    return best;
}

ParameterizedTest(int *index, placement_strategies, exact_where_small) {
    const setting *s = &settings[*index];
    static const random_shape shape = {9, 9, 2, 3, 2, false, false, false};
    for (uint64_t seed = 1; seed <= 2; ++seed) {
        const berth_place_problem *p = make(seed, shape, s->one_subgraph);
        cr_assert_eq(p->device_count, 4);
        double optimum = optimum_by_evaluator(p, s);
        cr_assert_lt(optimum, INFINITY);
        berth_place_options options = {
            .objective = s->objective, .contiguous = s->contiguous, .node_budget = 300000};
        berth_place_answer answer;
        berth_status status = berth_place_solve(arena, p, &options, &answer);
        cr_assert_null(status, "%s: %s", s->name, berth_status_message(status));
        cr_assert_float_eq(answer.value.value, optimum, 1e-9, "%s, seed %d: %g, the optimum is %g",
                           s->name, (int)seed, answer.value.value, optimum);
        cr_assert(answer.proven, "%s, seed %d", s->name, (int)seed);
    }
}

// Memory is so tight that few moves lead from one placement to another: the best of 15 nodes is
// still found.
Test(placement_strategies, list_scheduling_with_tight_memory) {
    enum { NODES_15 = 15 };
    random_shape shape = {NODES_15, NODES_15, 1, 1, 4, false, false, false};
    for (uint64_t seed = 1; seed <= 4; ++seed) {
        berth_place_problem *p = random_placement(arena, seed, shape);
        p->one_subgraph = false;
        double bytes = 0;
        for (uint32_t v = 0; v < NODES_15; ++v) {
            bytes += p->size_bytes[v];
            if (isinf(p->time[v])) p->time[v] = 5;
        }
        p->kinds[0].capacity_bytes = ceil(bytes / 4);
        cr_assert_null(berth_place_problem_finish(arena, p));
        berth_place_options options = {.objective = BERTH_PLACE_LATENCY, .node_budget = 2000000};
        berth_place_answer proven, searched;
        cr_assert_null(berth_place_solve(arena, p, &options, &proven));
        cr_assert(proven.proven, "seed %d", (int)seed);
        options.node_budget = 300000;
        options.strategy = "search";
        cr_assert_null(berth_place_solve(arena, p, &options, &searched));
        cr_assert_float_eq(searched.value.value, proven.value.value, 1e-9, "seed %d: %g, not %g",
                           (int)seed, searched.value.value, proven.value.value);
    }
}

// ------------------------------------------------------------------------------------------------
// bounds

typedef struct bound_run {
    berth_place_search search;
    const berth_place_strategy *strategy;
} bound_run;

static berth_status run_after_greedy(void *user) {
    bound_run *r = user;
    const berth_place_strategy *first = berth_place_strategies()[0];
    cr_assert_str_eq(first->name, "greedy");
    r->search.best = berth_arena_new_array(arena, uint32_t, r->search.problem->node_count);
    r->search.strategy = first->name;
    BERTH_TRY(first->run(&r->search));
    r->search.strategy = r->strategy->name;
    return r->strategy->run(&r->search);
}

// Strategies may rely on it that every group fits on some device: berth_place_solve sees to that.
static bool is_refused(const berth_place_problem *p) {
    berth_place_options options = {.strategy = "greedy"};
    berth_place_answer answer;
    berth_status status = berth_place_solve(arena, p, &options, &answer);
    bool refused = berth_status_code(status) == BERTH_FAILED_PRECONDITION;
    berth_status_free(status);
    return refused;
}

// What a strategy proves from where `greedy` leaves off (as it is in larger problems, where nothing
// can be enumerated) holds for the optimum. Returns whether it proved anything of use.
static bool check_bound(const berth_place_problem *p, const setting *s,
                        const berth_place_strategy *strategy, double optimum, const char *where) {
    berth_place_options options = {.objective = s->objective, .contiguous = s->contiguous};
    bound_run r = {.strategy = strategy};
    r.search = (berth_place_search){.problem = p,
                                    .options = &options,
                                    .arena = arena,
                                    .best_value = INFINITY,
                                    .best_strategy = "",
                                    .node_limit = NODES};
    berth_status status = berth_arena_try(arena, run_after_greedy, &r);
    cr_assert_null(status, "%s: %s", where, berth_status_message(status));
    cr_assert(!r.search.infeasible || optimum == INFINITY, "%s: not infeasible", where);
    if (r.search.best_value < INFINITY)
        cr_assert(!below(r.search.best_value, optimum), "%s: %g, the optimum is %g", where,
                  r.search.best_value, optimum);
    cr_assert(!below(optimum, r.search.lower_bound), "%s: the bound %.17g is above the optimum %g",
              where, r.search.lower_bound, optimum);
    return !below(r.search.lower_bound, optimum);
}

ParameterizedTestParameters(placement_strategies, bounds_hold) {
    static int indices[setting_count];
    for (int i = 0; i < setting_count; ++i) indices[i] = i;
    return cr_make_param_array(int, indices, setting_count);
}

ParameterizedTest(int *index, placement_strategies, bounds_hold) {
    const setting *s = &settings[*index];
    for (const berth_place_strategy *const *all = berth_place_strategies() + 1; *all; ++all) {
        int checked = 0;
        int tight = 0;
        for (int shape = 0; shape < shape_count; ++shape) {
            for (uint64_t seed = 100; seed < 116; ++seed) {
                berth_arena_destroy(arena);
                setup();
                const berth_place_problem *p = make(seed, shapes[shape], s->one_subgraph);
                berth_place_options options = {.objective = s->objective,
                                               .contiguous = s->contiguous};
                if (!(*all)->applies(p, &options) || is_refused(p)) continue;
                double optimum = brute_force_placement(arena, p, s->objective, s->contiguous);
                const char *where = berth_arena_printf(arena, "%s, %s, shape %d, seed %d",
                                                       (*all)->name, s->name, shape, (int)seed);
                tight += check_bound(p, s, *all, optimum, where);
                ++checked;
            }
        }
        if (checked)
            fprintf(stderr, "%s, %s: bound of %d problems, tight for %d\n", (*all)->name, s->name,
                    checked, tight);
    }
}

// ------------------------------------------------------------------------------------------------
// larger problems

static const random_shape larger[] = {
    {60, 40, 1, 3, 3, false, true, true},
    {50, 50, 1, 3, 2, false, false, false},
    {64, 20, 2, 2, 4, false, true, false},
    {40, 40, 0, 1, 4, true, false, false},
};

// Kinds with their own times and transfers, pins, groups: too many placements to enumerate, so that
// every strategy has its turn. Answers are what they say; bounds are below them.
Test(placement_strategies, larger_problems) {
    int solved = 0;
    for (size_t shape = 0; shape < sizeof(larger) / sizeof(larger[0]); ++shape)
        for (uint64_t seed = 1; seed <= 2; ++seed)
            for (int i = 0; i < setting_count; ++i) {
                berth_arena_destroy(arena);
                setup();
                const setting *s = &settings[i];
                berth_place_problem *p = random_placement(arena, seed, larger[shape]);
                p->one_subgraph = s->one_subgraph;
                p->kinds[0].capacity_bytes *= 2;
                cr_assert_null(berth_place_problem_finish(arena, p));
                berth_place_options options = {
                    .objective = s->objective, .contiguous = s->contiguous, .node_budget = NODES};
                berth_place_answer answer;
                berth_status status = berth_place_solve(arena, p, &options, &answer);
                berth_code code = berth_status_code(status);
                cr_assert(!status || code == BERTH_FAILED_PRECONDITION ||
                              code == BERTH_OUT_OF_RANGE,
                          "%s, shape %zu, seed %d: %s", s->name, shape, (int)seed,
                          berth_status_message(status));
                berth_status_free(status);
                if (code != BERTH_CODE_OK) continue;
                ++solved;
                cr_assert_leq(answer.lower_bound, answer.value.value);
                if (s->objective == BERTH_PLACE_LATENCY && !s->one_subgraph) continue;
                double literal = literal_value(p, s->objective, s->contiguous, answer.assignment);
                cr_assert_float_eq(literal, answer.value.value, 1e-9);
            }
    cr_assert_geq(solved, 20);
}

// ------------------------------------------------------------------------------------------------
// budgets

static const random_shape large = {60, 40, 1, 2, 3, false, true, false};

Test(placement_strategies, node_budgets_are_reproducible) {
    for (int i = 0; i < setting_count; ++i) {
        const berth_place_problem *p = make(5, large, settings[i].one_subgraph);
        for (uint64_t nodes = 1; nodes <= 100000; nodes *= 100) {
            berth_place_options options = {.objective = settings[i].objective,
                                           .contiguous = settings[i].contiguous,
                                           .node_budget = nodes};
            berth_place_answer first;
            berth_place_answer second;
            cr_assert_null(berth_place_solve(arena, p, &options, &first));
            cr_assert_null(berth_place_solve(arena, p, &options, &second));
            cr_assert(first.reproducible);
            cr_assert_eq(first.nodes, second.nodes);
            cr_assert_eq(first.value.value, second.value.value);
            cr_assert_eq(first.lower_bound, second.lower_bound);
            cr_assert_eq(memcmp(first.assignment, second.assignment,
                                p->node_count * sizeof(*first.assignment)),
                         0);
        }
    }
}

// A deadline that has passed still gives an answer, and says that it may differ next time.
Test(placement_strategies, deadlines_end_the_search) {
    for (int i = 0; i < setting_count; ++i) {
        const berth_place_problem *p = make(6, large, settings[i].one_subgraph);
        berth_place_options options = {.objective = settings[i].objective,
                                       .contiguous = settings[i].contiguous,
                                       .deadline_ns = berth_clock_ns() - 1};
        berth_place_answer answer;
        berth_status status = berth_place_solve(arena, p, &options, &answer);
        cr_assert_null(status, "%s: %s", settings[i].name, berth_status_message(status));
        cr_assert(answer.proven || !answer.reproducible);
    }
}

// In layers of 12 nodes, each with up to 3 readers in the next layer.
static berth_place_problem *layers(uint32_t count, bool one_subgraph) {
    enum { WIDTH = 12, READERS = 3 };
    uint64_t state = 7;
    random_shape none = {1, 1, 0, 2, 6, false, false, false};
    berth_place_problem *p = random_placement(arena, 1, none);
    uint32_t n = count * WIDTH;
    p->one_subgraph = one_subgraph;
    p->node_count = n;
    p->node_names = berth_arena_new_array(arena, const char *, n);
    p->time = berth_arena_new_array(arena, double, (size_t)n * 2);
    p->transfer = berth_arena_new_array(arena, double, (size_t)n * 2);
    p->size_bytes = berth_arena_new_array(arena, double, n);
    p->group = berth_arena_new_array(arena, uint32_t, n);
    p->backward = berth_arena_new_array(arena, bool, n);
    p->edge_from = berth_arena_new_array(arena, uint32_t, (size_t)n * READERS);
    p->edge_to = berth_arena_new_array(arena, uint32_t, (size_t)n * READERS);
    for (uint32_t v = 0; v < n; ++v) {
        p->node_names[v] = berth_arena_printf(arena, "n%u", v);
        p->time[2 * v] = 1 + (double)(placement_random(&state) % 16);
        p->time[2 * v + 1] = 20 * p->time[2 * v];
        p->transfer[2 * v] = (double)(placement_random(&state) % 8) / 4;
        p->size_bytes[v] = 1;
        p->group[v] = v;
        for (uint32_t i = 0; i < READERS && v + WIDTH < n; ++i) {
            p->edge_from[p->edge_count] = v;
            p->edge_to[p->edge_count++] =
                v - v % WIDTH + WIDTH + (uint32_t)(placement_random(&state) % WIDTH);
        }
    }
    p->kinds[0].capacity_bytes = n / 4;
    berth_status status = berth_place_problem_finish(arena, p);
    cr_assert_null(status, "%s", berth_status_message(status));
    return p;
}

// Every stage of every strategy looks at the clock: with the time over before it begins, each ends
// after what is linear in the problem. (Processor time, and much more of it than is needed:
// building the states of `bound` alone took 12 s.)
Test(placement_strategies, no_stage_runs_on_without_budget) {
    for (int i = 0; i < setting_count; ++i) {
        berth_arena_destroy(arena);
        setup();
        const berth_place_problem *p = layers(100, settings[i].one_subgraph);
        berth_place_options options = {.objective = settings[i].objective,
                                       .contiguous = settings[i].contiguous};
        for (const berth_place_strategy *const *all = berth_place_strategies(); *all; ++all) {
            if (!(*all)->applies(p, &options)) continue;
            options.strategy = (*all)->name;
            options.deadline_ns = berth_clock_ns() - 1;
            clock_t start = clock();
            berth_place_answer answer;
            berth_status_free(berth_place_solve(arena, p, &options, &answer));
            double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
            cr_assert_lt(seconds, 3, "%s, %s: %g s", settings[i].name, (*all)->name, seconds);
        }
    }
}

// ------------------------------------------------------------------------------------------------
// what is asked wrongly, and what cannot be

static void expect_status(const berth_place_problem *p, berth_place_options options,
                          berth_code code, const char *message) {
    berth_place_answer answer;
    berth_status status = berth_place_solve(arena, p, &options, &answer);
    cr_assert_eq(berth_status_code(status), code, "%s", berth_status_message(status));
    cr_assert(strstr(berth_status_message(status), message), "%s", berth_status_message(status));
    cr_assert_null(answer.assignment);
    berth_status_free(status);
}

Test(placement_strategies, errors) {
    random_shape shape = {5, 5, 3, 2, 2, false, false, false};
    berth_place_problem *p = make(1, shape, true);
    expect_status(p, (berth_place_options){.strategy = "gredy"}, BERTH_INVALID_ARGUMENT,
                  "unknown strategy \"gredy\" (did you mean \"greedy\"?); there are auto, greedy");
    expect_status(p, (berth_place_options){.objective = BERTH_PLACE_LATENCY, .contiguous = true},
                  BERTH_INVALID_ARGUMENT, "only");
    p->size_bytes[2] = 1000;
    p->time[2 * 2 + 1] = INFINITY;
    expect_status(p, (berth_place_options){0}, BERTH_FAILED_PRECONDITION,
                  "no device can hold node n2");
}

// Three nodes of 2 bytes each and two devices of 3 bytes: each fits, but not all.
Test(placement_strategies, infeasible_together) {
    random_shape shape = {3, 3, 0, 1, 2, false, false, false};
    berth_place_problem *p = make(1, shape, true);
    for (uint32_t v = 0; v < 3; ++v) {
        p->size_bytes[v] = 2;
        p->time[v] = 1;
    }
    p->kinds[0].capacity_bytes = 3;
    berth_place_answer answer;
    berth_place_options options = {.objective = BERTH_PLACE_THROUGHPUT};
    berth_status status = berth_place_solve(arena, p, &options, &answer);
    cr_assert(berth_status_code(status) == BERTH_FAILED_PRECONDITION ||
                  berth_status_code(status) == BERTH_OUT_OF_RANGE,
              "%s", berth_status_message(status));
    cr_assert(strstr(berth_status_message(status), "no placement"));
    berth_status_free(status);
}

Test(placement_strategies, no_nodes_and_no_devices) {
    random_shape shape = {1, 1, 0, 2, 1, false, false, false};
    berth_place_problem *p = random_placement(arena, 1, shape);
    p->node_count = 0;
    cr_assert_null(berth_place_problem_finish(arena, p));
    for (int i = 0; i < setting_count; ++i) {
        berth_place_options options = {.objective = settings[i].objective,
                                       .contiguous = settings[i].contiguous};
        berth_place_answer answer;
        berth_status status = berth_place_solve(arena, p, &options, &answer);
        cr_assert_null(status, "%s", berth_status_message(status));
        cr_assert_eq(answer.value.value, 0);
        cr_assert(answer.proven);
    }
    p = random_placement(arena, 1, shape);
    p->kinds[0].device_count = p->kinds[1].device_count = 0;
    cr_assert_null(berth_place_problem_finish(arena, p));
    expect_status(p, (berth_place_options){0}, BERTH_FAILED_PRECONDITION, "no device can hold");
}

// Whatever allocation fails, solving says so and leaks nothing.
Test(placement_strategies, every_allocation_may_fail) {
    random_shape shape = {20, 15, 2, 3, 2, false, true, false};
    for (int i = 0; i < setting_count; ++i) {
        bool done = false;
        for (int64_t at = 1; !done; at += 1 + at / 8) {
            berth_counting_allocator counting;
            berth_counting_allocator_init(&counting, berth_allocator_system());
            berth_arena *failing = NULL;
            cr_assert_null(berth_arena_create(berth_counting_allocator_get(&counting), &failing));
            berth_place_problem *p = random_placement(failing, 3, shape);
            p->one_subgraph = settings[i].one_subgraph;
            cr_assert_null(berth_place_problem_finish(failing, p));
            berth_place_options options = {.objective = settings[i].objective,
                                           .contiguous = settings[i].contiguous,
                                           .node_budget = 500};
            berth_place_answer answer;
            atomic_store(&counting.fail_at, atomic_load(&counting.allocation_count) + at);
            berth_status status = berth_place_solve(failing, p, &options, &answer);
            done = !status;
            cr_assert(done || berth_status_code(status) == BERTH_OUT_OF_MEMORY, "%s: %s",
                      settings[i].name, berth_status_message(status));
            berth_status_free(status);
            berth_arena_destroy(failing);
            cr_assert_eq(atomic_load(&counting.live_bytes), 0, "failing allocation %lld leaks",
                         (long long)at);
            cr_assert_lt(at, 100000000);
        }
    }
}
