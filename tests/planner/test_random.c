// Properties of planning on random modules: uses are where values are, demands are met, planning
// again changes nothing, the same text gives the same plan, the values computed stay the same.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "ir/eval.h"
#include "ir/text.h"
#include "tests/planner/random_planned.h"
#include "tests/planner/support.h"

typedef struct results {
    berth_tensor tensors[2];
} results;

static results evaluate(const berth_module *module, uint64_t seed) {
    berth_arena *arena = module->arena;
    const int64_t dims[1] = {4};
    berth_tensor arguments[6];
    for (int i = 0; i < 3; ++i) {
        arguments[i] = berth_tensor_create(arena, BERTH_DTYPE_F32, 1, dims);
        for (uint64_t k = 0; k < 4; ++k)
            berth_tensor_set_f64(&arguments[i], (int64_t)k,
                                 (double)((seed * 7 + k * 5 + (uint64_t)i) % 11) - 5);
    }
    arguments[3] = berth_tensor_create(arena, BERTH_DTYPE_F32, 0, NULL);
    berth_tensor_set_f64(&arguments[3], 0, (double)(seed % 5) - 2);
    arguments[4] = berth_tensor_create(arena, BERTH_DTYPE_BOOL, 0, NULL);
    berth_tensor_set_i64(&arguments[4], 0, (int64_t)(seed & 1));
    arguments[5] = berth_tensor_create(arena, BERTH_DTYPE_I64, 0, NULL);
    berth_tensor_set_i64(&arguments[5], 0, 2);
    results out;
    require(berth_eval_function(module, berth_module_find_function(module, "main"), arguments, 6,
                                out.tensors, 2, arena));
    return out;
}

static berth_module *read_module(berth_arena *arena, const char *text) {
    berth_module *module = NULL;
    berth_status status = berth_module_parse(arena, text, strlen(text), "random", &module);
    cr_assert(!status, "%s in\n%s", berth_status_message(status), text);
    return module;
}

static void check_values(const berth_module *before, const berth_module *after, uint64_t seed) {
    results a = evaluate(before, seed), b = evaluate(after, seed);
    for (int i = 0; i < 2; ++i)
        cr_assert(memcmp(a.tensors[i].data, b.tensors[i].data, 16) == 0,
                  "seed %llu: result %d differs", (unsigned long long)seed, i);
}

// True when the module has a plan; a conflict is a plan that there is not.
static bool check_options(uint64_t seed, berth_plan_options options) {
    berth_arena *arena = new_arena();
    random_planned random;
    random_planned_make(arena, seed, &random);
    options.target = parse_target(arena, random.target);
    bool host_bound = options.host_bound;
    berth_module *module = read_module(arena, random.text);
    berth_plan *plan = NULL;
    berth_status status = plan_with(module, &options, &plan);
    bool planned = !status;
    cr_assert(planned || strstr(berth_status_message(status), "demanded twice") ||
                  strstr(berth_status_message(status), "no such device"),
              "seed %llu: %s\n%s", (unsigned long long)seed, berth_status_message(status),
              random.text);
    berth_status_free(status);
    if (planned) {
        const char *problem = planned_problem(module, options.target, host_bound);
        if (!problem && !host_bound) problem = demands_problem(module, &random);
        cr_assert_null(problem, "seed %llu: %s in\n%s\nplanned:\n%s", (unsigned long long)seed,
                       problem, random.text, print_module(module));
        const char *text = plan_again(module, &options);
        berth_module *other = read_module(arena, random.text);
        require(plan_with(other, &options, &plan));
        cr_assert_str_eq(print_module(other), text);
        check_values(read_module(arena, random.text), module, seed);
    }
    berth_arena_destroy(arena);
    return planned;
}

static bool check_seed(uint64_t seed, bool host_bound, uint32_t instances) {
    return check_options(
        seed, (berth_plan_options){.host_bound = host_bound, .max_instances = instances});
}

// BERTH_TEST_SEEDS: how many to try, 400 unless said.
static uint64_t seed_count(void) {
    const char *text = getenv("BERTH_TEST_SEEDS");
    return text ? strtoull(text, NULL, 10) : 400;
}

Test(planner, random_modules) {
    uint64_t count = seed_count(), planned = 0;
    for (uint64_t seed = 0; seed < count; ++seed) planned += check_seed(seed, seed % 3 == 2, 1);
    cr_log_info("%llu of %llu random modules have a plan", (unsigned long long)planned,
                (unsigned long long)count);
    cr_assert_gt(planned * 3, count, "only %llu of %llu have a plan", (unsigned long long)planned,
                 (unsigned long long)count);
}

// With instances, at least as many have a plan.
Test(planner, random_modules_with_instances) {
    uint64_t count = seed_count() / 4;
    for (uint64_t seed = 0; seed < count; ++seed) {
        bool planned = check_seed(seed, seed % 3 == 2, 1);
        bool specialised = check_seed(seed, seed % 3 == 2, 8);
        cr_assert(specialised || !planned, "seed %llu", (unsigned long long)seed);
    }
}

// Calls of tensor functions with scopes: true when the module has a plan.
static bool check_lowered_seed(uint64_t seed) {
    berth_arena *arena = new_arena();
    const char *text = random_lowered_make(arena, seed);
    berth_plan_options options = {.target = parse_target(arena, target_gch),
                                  .host_bound = seed % 3 == 2};
    berth_module *module = read_module(arena, text);
    berth_plan *plan = NULL;
    berth_status status = plan_with(module, &options, &plan);
    bool planned = !status;
    cr_assert(planned || strstr(berth_status_message(status), "demanded twice"),
              "seed %llu: %s\n%s", (unsigned long long)seed, berth_status_message(status), text);
    berth_status_free(status);
    if (planned) {
        const char *problem = planned_problem(module, options.target, options.host_bound);
        cr_assert_null(problem, "seed %llu: %s in\n%s\nplanned:\n%s", (unsigned long long)seed,
                       problem, text, print_module(module));
        (void)plan_again(module, &options);
    }
    berth_arena_destroy(arena);
    return planned;
}

Test(planner, random_lowered_modules) {
    uint64_t count = seed_count(), planned = 0;
    for (uint64_t seed = 0; seed < count; ++seed) planned += check_lowered_seed(seed);
    cr_log_info("%llu of %llu lowered modules have a plan", (unsigned long long)planned,
                (unsigned long long)count);
    cr_assert_gt(planned * 3, count);
}

static double some_time_ns(void *user, const berth_module *module, berth_func_id function,
                           berth_op_id op, uint32_t device) {
    (void)user;
    (void)module;
    return 1e3 * (1 + (op * 2654435761u + function * 40503u + device * 97u) % 61);
}

// Where a search decides what the demands leave free, plans are no less right.
Test(planner, random_modules_by_strategy) {
    static const char *const objectives[] = {"latency", "throughput", "memory"};
    static const char *const strategies[] = {"auto", "greedy"};
    uint64_t count = seed_count() / 4;
    for (uint64_t seed = 0; seed < count; ++seed) {
        bool planned = check_seed(seed, seed % 3 == 2, 1);
        berth_plan_options options = {.cost = {.time_ns = some_time_ns},
                                      .strategy = strategies[seed / 3 % 2],
                                      .objective = objectives[seed % 3],
                                      .node_budget = 5000,
                                      .host_bound = seed % 3 == 2,
                                      .explain = true};
        cr_assert_eq(check_options(seed, options), planned, "seed %llu", (unsigned long long)seed);
    }
}

// A strategy finds nothing left to decide in a module that is planned, whoever planned it: each one
// in turn, on the modules that the rules or another strategy have planned.
static void check_every_strategy(uint64_t seed) {
    static const struct {
        const char *strategy, *objective;
    } runs[] = {{NULL, NULL},          {"dp", "latency"},    {"heft", "latency"},
                {"search", "latency"}, {"dp", "throughput"}, {"search", "throughput"},
                {"greedy", "memory"},  {"auto", "latency"},  {"auto", "throughput"}};
    enum { run_count = sizeof(runs) / sizeof(runs[0]) };
    berth_arena *arena = new_arena();
    random_planned random;
    random_planned_make(arena, seed, &random);
    berth_module *module = read_module(arena, random.text);
    const char *text = NULL;
    for (uint64_t i = 0; i < run_count; ++i) {
        uint64_t run = (i + seed) % run_count;
        berth_plan_options options = {.target = parse_target(arena, random.target),
                                      .cost = {.time_ns = some_time_ns},
                                      .strategy = runs[run].strategy,
                                      .objective = runs[run].objective,
                                      .node_budget = 2000,
                                      .host_bound = seed % 3 == 2,
                                      .max_instances = seed % 2 ? 8 : 1};
        berth_plan *plan = NULL;
        berth_status status = plan_with(module, &options, &plan);
        bool planned = !status;
        bool applies = planned || !strstr(berth_status_message(status), "does not apply");
        cr_assert(planned || !applies || !text, "seed %llu, %s: %s", (unsigned long long)seed,
                  runs[run].strategy, berth_status_message(status));
        berth_status_free(status);
        if (!applies) continue;
        if (!planned) break;  // demands that contradict each other
        const char *now = print_module(module);
        if (text)
            cr_assert_str_eq(now, text, "seed %llu: %s for %s changed\n%s\nto\n%s",
                             (unsigned long long)seed, runs[run].strategy, runs[run].objective,
                             text, now);
        text = now;
    }
    berth_arena_destroy(arena);
}

Test(planner, planned_modules_stay_whatever_the_strategy) {
    for (uint64_t seed = 0; seed < seed_count() / 4; ++seed) check_every_strategy(seed);
}
