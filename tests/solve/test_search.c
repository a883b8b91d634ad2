// The search over placements without contiguity: its incremental loads against the definitions,
// what its merging and annealing promise, and brute force.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "planner/solve/strategies/search_private.h"
#include "planner/solve/strategies/strategies.h"
#include "tests/solve/random_placement.h"

static berth_arena *arena;

static void setup(void) {
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
}

static void teardown(void) {
    berth_arena_destroy(arena);
}

TestSuite(placement_search, .init = setup, .fini = teardown);

static berth_place_problem *make(uint64_t seed, random_shape shape) {
    berth_place_problem *p = random_placement(arena, seed, shape);
    berth_status status = berth_place_problem_finish(arena, p);
    cr_assert_null(status, "%s", berth_status_message(status));
    return p;
}

static const random_shape wide = {60, 40, 1, 3, 4, false, true, false};
static const random_shape dense = {40, 40, 4, 2, 3, false, false, false};
static const random_shape small = {8, 6, 2, 2, 2, true, true, false};
static const random_shape two_free = {8, 6,     2,    3,
                                      2, false, true, false};  // devices that pay nothing

// The loads of problem.h, read literally.
static void literal_loads(const berth_place_problem *p, const uint32_t *at, double *load) {
    for (uint32_t d = 0; d < p->device_count; ++d) {
        uint32_t k = p->device_kind[d];
        load[d] = 0;
        for (uint32_t u = 0; u < p->node_count; ++u) {
            bool here = false;
            bool elsewhere = false;
            for (uint32_t i = p->succ_start[u]; i < p->succ_start[u + 1]; ++i) {
                here = here || at[p->succ[i]] == d;
                elsewhere = elsewhere || at[p->succ[i]] != d;
            }
            if (at[u] == d) load[d] += p->time[u * p->kind_count + k];
            if (at[u] == d ? elsewhere : here) load[d] += p->transfer[u * p->kind_count + k];
        }
    }
}

static void check_loads(const berth_place_problem *p, const place_state *state) {
    uint32_t at[64];
    double load[BERTH_PLACE_DEVICE_LIMIT];
    double bytes[BERTH_PLACE_DEVICE_LIMIT] = {0};
    for (uint32_t v = 0; v < p->node_count; ++v) {
        at[v] = state->device[p->group[v]];
        bytes[at[v]] += p->size_bytes[v];
    }
    literal_loads(p, at, load);
    for (uint32_t d = 0; d < p->device_count; ++d) {
        cr_assert_float_eq(state->load[d], load[d], 1e-9);
        cr_assert_float_eq(state->memory[d], bytes[d], 1e-9);
    }
}

// Moves each unit to devices that support it, at random.
static void walk(const berth_place_problem *p, place_state *state, uint64_t *random) {
    const place_hyper *hyper = state->hyper;
    for (int i = 0; i < 300; ++i) {
        uint32_t unit = place_random_below(random, hyper->unit_count);
        uint32_t to = place_random_below(random, hyper->device_count);
        if (to == state->device[unit] || !berth_bits_has(hyper->allowed[unit], to)) continue;
        uint32_t from = state->device[unit];
        double from_load;
        double to_load;
        berth_place__state_try(state, unit, to, &from_load, &to_load);
        berth_place__state_move(state, unit, to);
        cr_assert_float_eq(state->load[from], from_load, 1e-9);
        cr_assert_float_eq(state->load[to], to_load, 1e-9);
        check_loads(p, state);
    }
}

// Spreads the units over what supports them; false when something is supported nowhere.
static bool spread(const place_hyper *hyper, uint32_t *device) {
    for (uint32_t u = 0; u < hyper->unit_count; ++u) {
        if (berth_bits_is_empty(hyper->allowed[u])) return false;
        device[u] = u % hyper->device_count;
        while (!berth_bits_has(hyper->allowed[u], device[u]))
            device[u] = (device[u] + 1) % hyper->device_count;
    }
    return true;
}

Test(placement_search, moves_keep_the_loads) {
    const random_shape shapes[] = {wide, dense, small};
    uint64_t random = 7;
    int walks = 0;
    for (uint64_t seed = 1; seed <= 24; ++seed) {
        const berth_place_problem *p = make(seed, shapes[seed % 3]);
        const place_hyper *hyper = berth_place__hyper_build(arena, p, BERTH_PLACE_THROUGHPUT);
        uint32_t device[64];
        if (!spread(hyper, device)) continue;
        place_state *state = berth_place__state_create(arena, hyper);
        berth_place__state_set(state, device);
        check_loads(p, state);
        walk(p, state, &random);
        ++walks;
    }
    cr_assert_geq(walks, 12);
}

// A placement of merged units has the loads of the same placement of the units.
Test(placement_search, contracting_keeps_the_loads) {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
        const berth_place_problem *p = make(seed, dense);
        const place_hyper *fine = berth_place__hyper_build(arena, p, BERTH_PLACE_THROUGHPUT);
        uint64_t random = seed;
        uint32_t target[64];
        uint32_t part[64];
        for (uint32_t u = 0; u < fine->unit_count; ++u) part[u] = u % 2;
        uint32_t count =
            berth_place__hyper_match(arena, fine, part, fine->unit_count / 2, 1e9, &random, target);
        cr_assert_lt(count, fine->unit_count);
        const place_hyper *coarse = berth_place__hyper_contract(arena, fine, target, count);
        uint32_t coarse_device[64];
        uint32_t fine_device[64];
        if (!spread(coarse, coarse_device)) cr_assert_fail("no device for a merged unit");
        for (uint32_t u = 0; u < fine->unit_count; ++u) {
            fine_device[u] = coarse_device[target[u]];
            for (uint32_t w = 0; w < u; ++w)
                cr_assert(target[u] != target[w] || part[u] == part[w]);
        }
        place_state *one = berth_place__state_create(arena, fine);
        place_state *two = berth_place__state_create(arena, coarse);
        berth_place__state_set(one, fine_device);
        berth_place__state_set(two, coarse_device);
        for (uint32_t d = 0; d < p->device_count; ++d)
            cr_assert_float_eq(one->load[d], two->load[d], 1e-9);
    }
}

// What is bound together for a value is together in every placement below it: brute force over the
// placements of small problems.
typedef struct enumeration {
    const place_hyper *hyper;
    place_state *state;
    uint32_t device[64];
    const uint32_t *target;
    double value;
    int below;
} enumeration;

static void enumerate(enumeration *e) {
    uint32_t units = e->hyper->unit_count;
    uint32_t devices = e->hyper->device_count;
    memset(e->device, 0, sizeof(e->device));
    for (uint32_t at = 0; at < units;) {
        bool allowed = true;
        for (uint32_t u = 0; u < units; ++u)
            allowed = allowed && berth_bits_has(e->hyper->allowed[u], e->device[u]);
        if (allowed) {
            berth_place__state_set(e->state, e->device);
            if (berth_place__state_value(e->state) < e->value) {
                ++e->below;
                for (uint32_t u = 0; u < units; ++u)
                    for (uint32_t w = 0; w < u; ++w)
                        cr_assert(e->target[u] != e->target[w] || e->device[u] == e->device[w]);
            }
        }
        for (at = 0; at < units && ++e->device[at] == devices; ++at) e->device[at] = 0;
    }
}

Test(placement_search, binding_loses_nothing_better) {
    int below = 0;
    int bound = 0;
    for (uint64_t seed = 1; seed <= 200; ++seed) {
        berth_place_problem *p = make(seed, seed % 2 == 0 ? small : two_free);
        for (uint32_t v = 0; v < p->node_count; ++v) p->transfer[v * p->kind_count] *= 4;
        double optimum = brute_force_placement(arena, p, BERTH_PLACE_THROUGHPUT, false);
        if (isinf(optimum)) continue;
        enumeration e = {.hyper = berth_place__hyper_build(arena, p, BERTH_PLACE_THROUGHPUT)};
        uint32_t target[64];
        e.state = berth_place__state_create(arena, e.hyper);
        e.target = target;
        e.value = optimum * 1.1 + 0.125;
        bound += berth_place__hyper_bind(arena, e.hyper, e.value, target) < e.hyper->unit_count;
        enumerate(&e);
        below += e.below;
    }
    cr_assert_gt(below, 20);
    cr_assert_gt(bound, 5);
}

static double solve(const berth_place_problem *p, berth_place_objective objective,
                    uint64_t node_budget, berth_place_answer *out) {
    berth_place_options options = {
        .objective = objective, .strategy = "search", .node_budget = node_budget};
    berth_status status = berth_place_solve(arena, p, &options, out);
    if (!status) return out->value.value;
    cr_assert(berth_status_code(status) == BERTH_OUT_OF_RANGE ||
                  berth_status_code(status) == BERTH_FAILED_PRECONDITION,
              "%s", berth_status_message(status));
    berth_status_free(status);
    return INFINITY;
}

// Every two neighbours of a chain have a device in common, but not all three: whatever the value,
// they are not merged into what no device supports.
Test(placement_search, binding_needs_a_device) {
    berth_place_problem *p = berth_arena_new(arena, berth_place_problem);
    static const double time[] = {1, 1, INFINITY, INFINITY, 1, 1, 1, INFINITY, 1};
    static const double transfer[] = {5, 5, 5, 5, 5, 5, 0, 0, 0};
    static const char *const names[] = {"n0", "n1", "n2", "a", "b", "c"};
    p->node_count = 3;
    p->kind_count = 3;
    p->edge_count = 2;
    p->kinds = berth_arena_new_array(arena, berth_place_kind, 3);
    p->node_names = berth_arena_copy(arena, names, 3 * sizeof(*names));
    p->time = berth_arena_copy(arena, time, sizeof(time));
    p->transfer = berth_arena_copy(arena, transfer, sizeof(transfer));
    p->size_bytes = berth_arena_new_array(arena, double, 3);
    p->group = berth_arena_new_array(arena, uint32_t, 3);
    p->backward = berth_arena_new_array(arena, bool, 3);
    p->edge_from = berth_arena_new_array(arena, uint32_t, 2);
    p->edge_to = berth_arena_new_array(arena, uint32_t, 2);
    for (uint32_t i = 0; i < 3; ++i) {
        p->kinds[i] = (berth_place_kind){names[3 + i], 1, INFINITY, false};
        p->group[i] = i;
    }
    for (uint32_t e = 0; e < 2; ++e) {
        p->edge_from[e] = e;
        p->edge_to[e] = e + 1;
    }
    cr_assert_null(berth_place_problem_finish(arena, p));
    const place_hyper *hyper = berth_place__hyper_build(arena, p, BERTH_PLACE_THROUGHPUT);
    uint32_t target[3];
    uint32_t count = berth_place__hyper_bind(arena, hyper, 1, target);
    cr_assert_eq(count, 2);
    const place_hyper *bound = berth_place__hyper_contract(arena, hyper, target, count);
    for (uint32_t u = 0; u < count; ++u) cr_assert(!berth_bits_is_empty(bound->allowed[u]));
    berth_place_answer answer;  // two on one device, and one value moved: 1 + 1 + 5
    cr_assert_eq(solve(p, BERTH_PLACE_THROUGHPUT, 2000, &answer), 7);
}

static bool count_down(void *user, uint64_t nodes) {
    uint64_t *left = user;
    *left -= nodes < *left ? nodes : *left;
    return *left == 0;
}

// A round from a placement is never worse than it, whenever the budget ends.
Test(placement_search, rounds_keep_their_start) {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
        const berth_place_problem *p = make(seed, dense);
        const place_hyper *hyper = berth_place__hyper_build(arena, p, BERTH_PLACE_THROUGHPUT);
        uint32_t start[64];
        uint32_t device[64];
        if (!spread(hyper, start)) continue;
        place_state *state = berth_place__state_create(arena, hyper);
        berth_place__state_set(state, start);
        for (uint64_t budget = 1; budget <= 10000; budget *= 10) {
            uint64_t left = budget;
            place_round round = {.hyper = hyper,
                                 .part = start,
                                 .start = start,
                                 .heat = 0.1,
                                 .weight_limit = 20,
                                 .exponent_log2 = {1, 3, 5},
                                 .stop = count_down,
                                 .stop_user = &left,
                                 .random = seed,
                                 .device = device};
            double value = berth_place__round(arena, &round);
            cr_assert_leq(value, berth_place__state_value(state) + 1e-9);
            berth_place__state_set(state, device);
            cr_assert_float_eq(value, berth_place__state_value(state), 1e-9);
            berth_place__state_set(state, start);
        }
    }
}

Test(placement_search, finds_what_brute_force_finds) {
    const random_shape shapes[] = {{8, 8, 2, 2, 2, false, false, false},
                                   {8, 8, 3, 1, 4, false, false, false},
                                   {10, 7, 2, 3, 2, true, true, false},
                                   {12, 8, 2, 2, 3, true, false, true},
                                   {8, 8, 1, 1, 3, true, false, false}};
    const berth_place_objective objectives[] = {BERTH_PLACE_THROUGHPUT, BERTH_PLACE_MEMORY};
    int feasible = 0;
    int optimal = 0;
    for (uint64_t seed = 101; seed <= 150; ++seed) {
        const berth_place_problem *p = make(seed, shapes[seed % 5]);
        berth_place_objective objective = objectives[seed / 5 % 2];
        double optimum = brute_force_placement(arena, p, objective, false);
        berth_place_answer answer;
        double value = solve(p, objective, 50000, &answer);
        cr_assert_geq(value, optimum - 1e-9);
        feasible += !isinf(optimum);
        optimal += !isinf(optimum) && value <= optimum + 1e-9;
    }
    fprintf(stderr, "%d of %d feasible problems solved to optimality\n", optimal, feasible);
    cr_assert_geq(feasible, 25);
    cr_assert_geq(optimal * 100, feasible * 95);
}

// Three chains between which nothing moves, in parts that sum up to the same: the search has to
// find the partition into equal sums (times 1..6 three times over on three devices: 21 each),
// although every transfer inside a chain would cost a device more than it gains.
Test(placement_search, keeps_chains_whole) {
    berth_place_problem *p = berth_arena_new(arena, berth_place_problem);
    uint32_t n = 18;
    p->node_count = n;
    p->kind_count = 1;
    p->kinds = berth_arena_new(arena, berth_place_kind);
    p->kinds[0] = (berth_place_kind){"acc", 3, INFINITY, false};
    p->node_names = berth_arena_new_array(arena, const char *, n);
    p->time = berth_arena_new_array(arena, double, n);
    p->transfer = berth_arena_new_array(arena, double, n);
    p->size_bytes = berth_arena_new_array(arena, double, n);
    p->group = berth_arena_new_array(arena, uint32_t, n);
    p->backward = berth_arena_new_array(arena, bool, n);
    p->edge_from = berth_arena_new_array(arena, uint32_t, n);
    p->edge_to = berth_arena_new_array(arena, uint32_t, n);
    for (uint32_t v = 0; v < n; ++v) {
        p->node_names[v] = berth_arena_printf(arena, "n%u", v);
        p->time[v] = 1 + v / 3;
        p->transfer[v] = 10;
        p->group[v] = v;
        if (v + 3 >= n) continue;
        p->edge_from[p->edge_count] = v;
        p->edge_to[p->edge_count++] = v + 3;
    }
    cr_assert_null(berth_place_problem_finish(arena, p));
    berth_place_answer answer;
    cr_assert_float_eq(solve(p, BERTH_PLACE_THROUGHPUT, 20000, &answer), 21, 1e-9);
    for (uint32_t v = 3; v < n; ++v) cr_assert_eq(answer.assignment[v], answer.assignment[v - 3]);
}

// More nodes continue the same search: never worse, and the same every time.
Test(placement_search, budgets_only_help) {
    const berth_place_problem *p = make(3, wide);
    double before = INFINITY;
    for (uint64_t nodes = 100; nodes <= 1000000; nodes *= 100) {
        berth_place_answer first;
        berth_place_answer second;
        double value = solve(p, BERTH_PLACE_THROUGHPUT, nodes, &first);
        cr_assert_eq(value, solve(p, BERTH_PLACE_THROUGHPUT, nodes, &second));
        cr_assert_leq(value, before);
        cr_assert_leq(first.nodes, nodes + nodes / 10 + 100);
        if (!isinf(value))
            cr_assert_eq(
                memcmp(first.assignment, second.assignment, p->node_count * sizeof(uint32_t)), 0);
        before = value;
    }
    cr_assert_lt(before, INFINITY);
}
