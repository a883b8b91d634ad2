// List scheduling for a search: limits, the times of a schedule, and guesses without one
// (planner/solve/latency/guess.h).
#include <criterion/criterion.h>
#include <math.h>

#include "planner/solve/latency/guess.h"
#include "planner/solve/problem/evaluate_list.h"
#include "tests/solve/random_placement.h"

static berth_arena *arena;

static void setup(void) {
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
}

static void teardown(void) {
    berth_arena_destroy(arena);
}

TestSuite(list_schedule, .init = setup, .fini = teardown);

static void run(berth_status (*body)(void *), void *user) {
    berth_status status = berth_arena_try(arena, body, user);
    cr_assert_null(status, "%s", berth_status_message(status));
}

// Three accelerators, a processor and, for odd seeds, another kind; every node runs everywhere.
static berth_place_problem *make(uint64_t seed) {
    random_shape shape = {60, 60, 1, seed % 2 ? 3 : 2, 3, false, false, false};
    berth_place_problem *p = random_placement(arena, seed, shape);
    p->one_subgraph = false;
    for (uint32_t i = 0; i < p->node_count * p->kind_count; ++i)
        if (isinf(p->time[i])) p->time[i] = 4;
    return p;
}

static void place_anywhere(const berth_place_problem *p, uint64_t *random, uint32_t *at) {
    for (uint32_t g = 0; g < p->group_count; ++g) {
        uint32_t device = (uint32_t)(placement_random(random) % p->device_count);
        for (uint32_t i = p->group_start[g]; i < p->group_start[g + 1]; ++i)
            at[p->group_nodes[i]] = device;
    }
}

// A value is given up for a limit exactly where it is above it: what devices and links have to do, and
// for how long they had nothing, says so early, never wrongly.
static berth_status limits_body(void *user) {
    (void)user;
    for (uint64_t seed = 1; seed <= 100; ++seed) {
        berth_place_problem *p = make(seed);
        BERTH_TRY(berth_place_problem_finish(arena, p));
        berth_solve__list *list = berth_solve__list_create(arena, p);
        uint32_t *at = berth_arena_new_array(arena, uint32_t, p->node_count);
        place_anywhere(p, &seed, at);
        double value = berth_solve__list_value(list, at, INFINITY, NULL, NULL);
        cr_assert_eq(berth_solve__list_value(list, at, value, NULL, NULL), value);
        for (double share = 0.1; share < 1; share += 0.1)
            cr_assert_eq(berth_solve__list_value(list, at, share * value, NULL, NULL), INFINITY);
        cr_assert_eq(berth_solve__list_value(list, at, value - 1e-6, NULL, NULL), INFINITY);
    }
    return BERTH_OK;
}

Test(list_schedule, gives_up_exactly_above_the_limit) {
    run(limits_body, NULL);
}

// Until a node starts and from there on takes the value at most, and just that for what the end waited
// for; nodes end in the order that is told.
static berth_status times_body(void *user) {
    (void)user;
    for (uint64_t seed = 1; seed <= 100; ++seed) {
        berth_place_problem *p = make(seed);
        BERTH_TRY(berth_place_problem_finish(arena, p));
        uint32_t nodes = p->node_count;
        berth_solve__list *list = berth_solve__list_create(arena, p);
        uint32_t *at = berth_arena_new_array(arena, uint32_t, nodes);
        uint32_t *order = berth_arena_new_array(arena, uint32_t, nodes);
        double *done = berth_arena_new_array(arena, double, nodes);
        double *left = berth_arena_new_array(arena, double, nodes);
        place_anywhere(p, &seed, at);
        double value = berth_solve__list_value(list, at, INFINITY, NULL, NULL);
        berth_solve__list_times(list, done, left, order);
        double most = 0, most_critical = 0;
        for (uint32_t v = 0; v < nodes; ++v) {
            size_t cell = (size_t)v * p->kind_count + p->device_kind[at[v]];
            most = fmax(most, done[v] - p->time[cell] + left[v]);
        }
        cr_assert_float_eq(most, value, 1e-9 * value, "%g %g", most, value);
        uint32_t *path = berth_arena_new_array(arena, uint32_t, nodes);
        uint32_t count = berth_solve__list_critical(list, path);
        for (uint32_t i = 0; i < count; ++i) {
            size_t cell = (size_t)path[i] * p->kind_count + p->device_kind[at[path[i]]];
            most_critical = fmax(most_critical, done[path[i]] - p->time[cell] + left[path[i]]);
        }
        cr_assert_float_eq(most_critical, value, 1e-9 * value, "%g %g", most_critical, value);
        for (uint32_t i = 1; i < nodes; ++i) cr_assert_leq(done[order[i - 1]], done[order[i]]);
    }
    return BERTH_OK;
}

Test(list_schedule, times_add_up_to_the_value) {
    run(times_body, NULL);
}

static bool is_serial(const berth_place_problem *p, uint32_t device) {
    return !p->kinds[p->device_kind[device]].concurrent;
}

// When u's value is on the device: its own end there, else the end of a copy to it.
static double arrival(const berth_place_problem *p, const uint32_t *at,
                      const berth_place_value *value, const berth_place_copy *copies,
                      uint32_t count, uint32_t u, uint32_t device) {
    double in_host = value->node_done[u], there = INFINITY;
    if (at[u] == device) return value->node_done[u];
    if (p->transfer[(size_t)u * p->kind_count + p->device_kind[at[u]]] > 0) in_host = INFINITY;
    for (uint32_t c = 0; c < count; ++c)
        if (copies[c].node == u && copies[c].to == BERTH_PLACE_NONE) in_host = copies[c].end;
    if (p->transfer[(size_t)u * p->kind_count + p->device_kind[device]] == 0) return in_host;
    for (uint32_t c = 0; c < count; ++c) {
        if (copies[c].node != u || copies[c].to != device) continue;
        cr_expect_geq(copies[c].start, in_host);
        there = copies[c].end;
    }
    return there;
}

static void check_schedule(const berth_place_problem *p, const uint32_t *at,
                           const berth_place_value *value, const berth_place_copy *copies,
                           uint32_t count) {
    double end = 0;
    for (uint32_t v = 0; v < p->node_count; ++v) {
        double time = p->time[(size_t)v * p->kind_count + p->device_kind[at[v]]];
        cr_expect_eq(value->node_done[v], value->node_start[v] + time);
        end = fmax(end, value->node_done[v]);
        for (uint32_t w = 0; w < v; ++w)
            if (at[v] == at[w] && is_serial(p, at[v]) &&
                value->node_done[w] > value->node_start[w] && time > 0)
                cr_expect(value->node_start[v] >= value->node_done[w] ||
                          value->node_start[w] >= value->node_done[v]);
        for (uint32_t e = p->pred_start[v]; e < p->pred_start[v + 1]; ++e)
            cr_expect_geq(value->node_start[v],
                          arrival(p, at, value, copies, count, p->pred[e], at[v]));
    }
    for (uint32_t c = 0; c < count; ++c) {
        cr_expect_geq(copies[c].start, value->node_done[copies[c].node]);
        cr_expect(c == 0 || copies[c - 1].start <= copies[c].start);
        for (uint32_t d = 0; d < c; ++d)
            if (copies[c].link == copies[d].link)
                cr_expect(copies[c].start >= copies[d].end || copies[d].start >= copies[c].end);
    }
    cr_expect_eq(end, value->value);
}

// Of whichever way to take turns is better: nothing runs twice at once, or before what it needs is there; and each of the
// two is better somewhere.
static berth_status schedules_body(void *user) {
    (void)user;
    uint32_t turns_better = 0, gaps_better = 0;
    for (uint64_t seed = 1; seed <= 100; ++seed) {
        berth_place_problem *p = make(seed);
        for (uint32_t k = 0; k < p->kind_count; ++k) p->kinds[k].capacity_bytes = INFINITY;
        BERTH_TRY(berth_place_problem_finish(arena, p));
        uint32_t *at = berth_arena_new_array(arena, uint32_t, p->node_count);
        uint64_t random = seed;
        place_anywhere(p, &random, at);
        berth_place_value value;
        berth_place_copy *copies = NULL;
        uint32_t count = 0;
        BERTH_TRY(berth_place_schedule(arena, p, at, &value, &copies, &count));
        check_schedule(p, at, &value, copies, count);
        berth_solve__list *list = berth_solve__list_create(arena, p);
        double shared_ms = 0;
        list->assignment = at;
        cr_assert(berth_solve__list_build(list, INFINITY, &shared_ms));
        berth_solve__list_take_turns(list, INFINITY, &list->by_turns);
        berth_solve__list_fill_gaps(list, INFINITY, &list->by_gaps);
        cr_expect_eq(value.value, fmin(list->by_turns.end, list->by_gaps.end));
        turns_better += list->by_turns.end < list->by_gaps.end;
        gaps_better += list->by_gaps.end < list->by_turns.end;
    }
    cr_expect_gt(turns_better, 0);
    cr_expect_gt(gaps_better, 0);
    return BERTH_OK;
}

Test(list_schedule, nothing_runs_before_its_turn) {
    run(schedules_body, NULL);
}

typedef struct guesses {
    uint32_t worse,
        worse_seen;  // moves whose schedule ends later, and those of them that are guessed
    uint32_t good, good_lost;  // the others, and those of them that would be dropped
} guesses;

static void guess_one(const berth_place_problem *p, uint64_t seed, guesses *out) {
    berth_solve__list *list = berth_solve__list_create(arena, p);
    berth_solve__latency *latency = berth_solve__latency_create(arena, p);
    berth_solve__guess *guess = berth_solve__guess_create(arena, latency);
    uint32_t *at = berth_arena_new_array(arena, uint32_t, p->node_count);
    place_anywhere(p, &seed, at);
    cr_assert(berth_solve__latency_set(latency, at));
    double value = berth_solve__list_value(list, latency->device, INFINITY, NULL, NULL);
    berth_solve__guess_look(guess, list);
    for (int i = 0; i < 200; ++i) {
        berth_solve__latency_begin(latency);
        for (int moves = 0; moves <= i % 2; ++moves)
            (void)berth_solve__latency_move(latency,
                                            (uint32_t)(placement_random(&seed) % p->group_count),
                                            (uint32_t)(placement_random(&seed) % p->device_count));
        bool drop = berth_solve__guess_end(guess) > value;
        double next = berth_solve__list_value(list, latency->device, INFINITY, NULL, NULL);
        berth_solve__latency_undo(latency);
        *(next > value ? &out->worse : &out->good) += 1;
        if (drop) *(next > value ? &out->worse_seen : &out->good_lost) += 1;
    }
}

static berth_status guesses_body(void *user) {
    (void)user;
    guesses sums = {0};
    for (uint64_t seed = 1; seed <= 40; ++seed) {
        berth_place_problem *p = make(seed);
        BERTH_TRY(berth_place_problem_finish(arena, p));
        guess_one(p, seed, &sums);
    }
    cr_assert_gt(sums.worse, 500);
    cr_assert_gt(sums.good, 500);
    double seen = (double)sums.worse_seen / sums.worse, lost = (double)sums.good_lost / sums.good;
    cr_assert(seen > 0.5 && lost < seen / 2, "%g of those that end later, %g of the others", seen,
              lost);
    return BERTH_OK;
}

// Of the moves that end later most would be dropped unvalued, of the others far fewer: chance would drop
// as many of both. (Placements are random ones here, where much is in the way of much.)
Test(list_schedule, guesses_tell_most_moves_apart) {
    run(guesses_body, NULL);
}
