// Prices, their search, and the bounds on throughput that they prove, against brute force.
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <math.h>
#include <string.h>

#include "planner/solve/bounds/pricing.h"
#include "planner/solve/problem/bundle.h"
#include "planner/solve/strategies/strategies.h"
#include "tests/solve/random_placement.h"

static berth_arena *arena;

static void setup(void) {
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
}

static void teardown(void) {
    berth_arena_destroy(arena);
}

TestSuite(placement_bound, .init = setup, .fini = teardown);

static const random_shape shapes[] = {
    {6, 6, 2, 2, 2, false, false, false}, {7, 7, 3, 2, 2, true, false, false},
    {9, 6, 3, 2, 3, false, true, false},  {8, 8, 2, 1, 3, false, true, false},
    {12, 6, 2, 3, 2, false, true, false}, {8, 6, 3, 3, 2, true, true, true},
    {7, 7, 1, 2, 2, false, true, true},   {10, 5, 2, 2, 4, true, true, false},
    {7, 7, 5, 2, 2, false, true, false},  {9, 9, 1, 1, 2, false, false, false},
};
enum { shape_count = sizeof(shapes) / sizeof(shapes[0]), SEEDS = 15 };

static berth_place_problem *make(uint64_t seed, random_shape shape) {
    berth_arena_destroy(arena);
    setup();
    berth_place_problem *p = random_placement(arena, seed, shape);
    berth_status status = berth_place_problem_finish(arena, p);
    cr_assert_null(status, "%s", berth_status_message(status));
    return p;
}

// ------------------------------------------------------------------------------------------------
// pricing

// The load of a device of the kind with the items in `set`; INFINITY when it may not have them.
static double load_of_set(const berth_place_problem *p, const berth_place_nets *nets,
                          const berth_place_sorts *sorts, uint32_t sort, uint32_t set) {
    uint32_t kind = sorts->kind[sort];
    double load = 0;
    for (uint32_t i = 0; i < nets->item_count; ++i) {
        bool here = set >> i & 1;
        bool pinned_here =
            nets->pin[i] != BERTH_PLACE_NONE && sorts->of_device[nets->pin[i]] == sort;
        if (!here && pinned_here) return INFINITY;
        if (!here) continue;
        if (nets->pin[i] != BERTH_PLACE_NONE && !pinned_here) return INFINITY;
        if (nets->size_bytes[i] > p->kinds[kind].capacity_bytes) return INFINITY;
        load += nets->time[i * nets->kind_count + kind];
    }
    for (uint32_t t = 0; t < nets->net_count; ++t) {
        uint32_t in = 0;
        for (uint32_t q = nets->pin_start[t]; q < nets->pin_start[t + 1]; ++q)
            in += set >> nets->pins[q] & 1;
        if (in > 0 && in < nets->pin_start[t + 1] - nets->pin_start[t])
            load += nets->cost[t * nets->kind_count + kind];
    }
    return load;
}

static double sum_of_set(const double *price, uint32_t items, uint32_t set) {
    double sum = 0;
    for (uint32_t i = 0; i < items; ++i)
        if (set >> i & 1) sum += price[i];
    return sum;
}

static void check_pricing(const berth_place_problem *p, uint64_t seed, const char *where) {
    const berth_place_nets *nets = berth_place__nets(arena, p, NULL, 0);
    const berth_place_sorts *sorts = berth_place__sorts(arena, p);
    uint32_t order[16];
    cr_assert(berth_place__pricing_order(arena, nets, NULL, order));
    for (uint32_t q = 0; q < sorts->count; ++q) {
        berth_place_pricing *pricing =
            berth_place__pricing(arena, p, nets, sorts, q, order, 100000, NULL);
        uint64_t state = seed * 31 + q;
        double price[16];
        for (uint32_t i = 0; i < nets->item_count; ++i)
            price[i] = (double)(placement_random(&state) % 50);
        double limit = (double)(placement_random(&state) % 80) / 4 + 1;
        uint32_t enough = (uint32_t)(placement_random(&state) % 60);
        double best = 0;
        double best_half = 0;
        for (uint32_t set = 0; set < 1u << nets->item_count; ++set) {
            double load = load_of_set(p, nets, sorts, q, set);
            double sum = sum_of_set(price, nets->item_count, set);
            if (load <= limit) best = fmax(best, sum);
            if (load <= limit / 2) best_half = fmax(best_half, sum);
        }
        double rough = berth_place__price_roughly(pricing, price, limit);
        cr_assert_geq(rough, best - 1e-9, "%s: %g is not a bound of %g", where, rough, best);
        bool has[16] = {false};
        uint32_t sum = berth_place__price(pricing, price, limit, enough, has);
        cr_assert_eq(sum, best >= enough ? best : 0, "%s: %u is not %g (enough %u)", where, sum,
                     best, enough);
        uint32_t half = berth_place__price_within(pricing, limit / 2);
        cr_assert_eq(half,
                     best_half >= enough ? best_half
                     : enough > 0        ? enough - 1
                                         : 0,
                     "%s: %u is not %g (enough %u)", where, half, best_half, enough);
        if (sum == 0) continue;
        uint32_t set = 0;
        for (uint32_t i = 0; i < nets->item_count; ++i) set |= (uint32_t)has[i] << i;
        cr_assert_eq(sum_of_set(price, nets->item_count, set), sum, "%s", where);
        cr_assert_leq(load_of_set(p, nets, sorts, q, set), limit, "%s", where);
    }
}

Test(placement_bound, pricing_against_all_sets) {
    for (int shape = 0; shape < shape_count; ++shape) {
        for (uint64_t seed = 1; seed <= SEEDS; ++seed) {
            const berth_place_problem *p = make(seed + 500, shapes[shape]);
            check_pricing(p, seed,
                          berth_arena_printf(arena, "shape %d, seed %d", shape, (int)seed));
        }
    }
}

// A node that reads more values than a state has room for, each of another node: once it is decided
// where it is, the others know nothing but that. With it a device would have to read what it does not
// compute, 35 in all; without it each value computed there costs 1 + 1, so that 12 pay for six.
Test(placement_bound, prices_a_node_of_many_values) {
    enum { VALUES = 35, NODES = VALUES + 1, STATE_LIMIT = 2 * NODES + 2 };
    berth_place_problem *p = placement_of_nodes(arena, NODES, VALUES, 2, INFINITY);
    for (uint32_t v = 0; v < VALUES; ++v) {
        p->time[v * p->kind_count] = 1;
        p->transfer[v * p->kind_count] = 1;
        p->edge_from[v] = v;
        p->edge_to[v] = VALUES;
    }
    p->edge_count = VALUES;
    berth_status status = berth_place_problem_finish(arena, p);
    cr_assert_null(status, "%s", berth_status_message(status));
    const berth_place_nets *nets = berth_place__nets(arena, p, NULL, 0);
    const berth_place_sorts *sorts = berth_place__sorts(arena, p);
    uint32_t order[NODES];
    cr_assert(berth_place__pricing_order(arena, nets, NULL, order));
    berth_place_pricing *pricing =
        berth_place__pricing(arena, p, nets, sorts, 0, order, STATE_LIMIT, NULL);
    cr_assert_not_null(pricing);
    double price[NODES];
    for (uint32_t v = 0; v < NODES; ++v) price[v] = v < VALUES ? 3 : 0;
    bool has[NODES];
    cr_assert_eq(berth_place__price(pricing, price, 12, 0, has), 18);
}

// ------------------------------------------------------------------------------------------------
// the bundle method

// min over columns of a game's payoffs: rock, paper, scissors with stakes 1, 2, 3 for winning with
// them. The row player's best mix is (1/2, 1/3, 1/6) by hand: then every column pays 0.
Test(placement_bound, bundle_solves_a_game) {
    static const double pieces[3][3] = {{0, 2, -1}, {-2, 0, 3}, {1, -3, 0}};
    static const double start[3] = {0.2, 0.2, 0.6};
    berth_place_bundle *bundle = berth_place__bundle(arena, 3, start);
    double best = -INFINITY;
    for (int step = 0; step < 200; ++step) {
        const double *y = berth_place__bundle_prices(bundle);
        cr_assert_float_eq(y[0] + y[1] + y[2], 1, 1e-9);
        double value = INFINITY;
        const double *worst = NULL;
        for (int i = 0; i < 3; ++i) {
            double one = pieces[i][0] * y[0] + pieces[i][1] * y[1] + pieces[i][2] * y[2];
            if (one >= value) continue;
            value = one;
            worst = pieces[i];
        }
        cr_assert_leq(value, 1e-12);  // the game is fair: nobody can do better than 0
        best = fmax(best, value);
        berth_place__bundle_step(bundle, value, worst);
    }
    cr_assert_gt(best, -1e-4);
}

// ------------------------------------------------------------------------------------------------
// bounds

typedef struct bound_call {
    berth_place_search search;
} bound_call;

static berth_status run_bound(void *user) {
    return berth_place__bound.run(&((bound_call *)user)->search);
}

// The bound when the best placement so far has the value.
static double bound_within(const berth_place_problem *p, double value, uint64_t nodes) {
    berth_place_options options = {.objective = BERTH_PLACE_THROUGHPUT};
    bound_call call = {{.problem = p,
                        .options = &options,
                        .arena = arena,
                        .best_value = value,
                        .strategy = "bound",
                        .node_limit = nodes}};
    berth_status status = berth_arena_try(arena, run_bound, &call);
    cr_assert_null(status, "%s", berth_status_message(status));
    return call.search.lower_bound;
}

static double bound_below(const berth_place_problem *p, double value) {
    return bound_within(p, value, 4000);
}

ParameterizedTestParameters(placement_bound, is_below_the_optimum) {
    static int indices[shape_count];
    for (int i = 0; i < shape_count; ++i) indices[i] = i;
    return cr_make_param_array(int, indices, shape_count);
}

ParameterizedTest(int *index, placement_bound, is_below_the_optimum) {
    int tight = 0;
    int feasible = 0;
    for (uint64_t seed = 1; seed <= SEEDS; ++seed) {
        const berth_place_problem *p = make(seed + 7000, shapes[*index]);
        double optimum = brute_force_placement(arena, p, BERTH_PLACE_THROUGHPUT, false);
        if (optimum == INFINITY || optimum == 0) continue;
        feasible++;
        static const double factors[] = {1, 1.001, 1.2, 3, INFINITY};
        for (int f = 0; f < 5; ++f) {
            double bound = bound_below(p, optimum * factors[f]);
            cr_assert_leq(bound, optimum * (1 + 1e-9),
                          "shape %d, seed %d, factor %g: %.12g > %.12g", *index, (int)seed,
                          factors[f], bound, optimum);
            tight += f == 0 && bound >= optimum * (1 - 1e-9);
        }
    }
    // A linear program over whole sets: often, but not always, the optimum itself.
    cr_assert_gt(tight, feasible / 4, "%d of %d", tight, feasible);
}

// 25 equal items for 6 devices: one has 5 of them, whatever the mean says.
Test(placement_bound, counts_whole_items) {
    enum { N = 25 };
    berth_place_problem *p = berth_arena_new(arena, berth_place_problem);
    berth_place_kind kind = {"acc", 6, INFINITY, false};
    p->node_count = N;
    p->kind_count = 1;
    p->kinds = &kind;
    p->node_names = berth_arena_new_array(arena, const char *, N);
    p->time = berth_arena_new_array(arena, double, N);
    p->transfer = berth_arena_new_array(arena, double, N);
    p->size_bytes = berth_arena_new_array(arena, double, N);
    p->group = berth_arena_new_array(arena, uint32_t, N);
    p->backward = berth_arena_new_array(arena, bool, N);
    for (uint32_t v = 0; v < N; ++v) {
        p->node_names[v] = berth_arena_printf(arena, "n%u", v);
        p->time[v] = 3;
        p->group[v] = v;
    }
    berth_status status = berth_place_problem_finish(arena, p);
    cr_assert_null(status, "%s", berth_status_message(status));
    cr_assert_float_eq(bound_below(p, 15), 15, 1e-6);
    cr_assert_float_eq(bound_below(p, 20), 15, 1e-3);
}

// Chains of operations of which each sends a value to one node on the processor, as the layers of a
// network send the gradients of what all share. Each of the twelve values leaves an accelerator, so
// that the accelerators' loads are 12 * (10 + 1) together at the least, however chains are cut.
Test(placement_bound, sees_values_that_all_send_to_one_node) {
    enum { CHAINS = 12, LENGTH = 10, NODES = CHAINS * LENGTH + 1, ACCELERATORS = 4 };
    berth_place_problem *p =
        placement_of_nodes(arena, NODES, CHAINS * LENGTH, ACCELERATORS, INFINITY);
    p->pin = berth_arena_new_array(arena, uint32_t, NODES);
    for (uint32_t v = 0; v < NODES; ++v) {
        bool last = v % LENGTH == LENGTH - 1;
        p->pin[v] = BERTH_PLACE_NONE;
        p->time[v * p->kind_count] = 1;
        p->time[v * p->kind_count + 1] = INFINITY;
        p->transfer[v * p->kind_count] = last ? 1 : 0.4;
        if (v + 1 == NODES) continue;
        p->edge_from[p->edge_count] = v;
        p->edge_to[p->edge_count++] = last ? NODES - 1 : v + 1;
    }
    p->pin[NODES - 1] = ACCELERATORS;
    p->time[(NODES - 1) * p->kind_count + 1] = 0;
    berth_status status = berth_place_problem_finish(arena, p);
    cr_assert_null(status, "%s", berth_status_message(status));
    cr_assert_geq(bound_within(p, 40, 200000), 33 * 0.99);
}
