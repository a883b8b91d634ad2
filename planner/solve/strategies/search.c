// Throughput without contiguity, and memory: a memetic multilevel search.
//
// A round (search_round.c) coarsens the hypergraph by random matching along strong nets, and
// anneals the placement of the coarsest units, then of each finer level with less heat. It starts
// from nothing, or from two placements of the pool: units that either one parts stay apart, so both
// exist on every level, and the better one is where the annealing begins. Multilevel partitioning
// follows Karypis and Kumar (SIAM J. Sci. Comput. 20(1), 1998), rounds from two parents Sanders and
// Schulz (ALENEX 2012). How hot a round is and how sharp its norm are drawn at random: which is
// best differs between problems in which times rule and those in which transfers do.
#include <math.h>
#include <string.h>

#include "planner/solve/strategies/search_private.h"
#include "planner/solve/strategies/strategies.h"

enum {
    POOL = 8,
    FRESH_ROUNDS = 6,  // at first
    FRESH_PERIOD = 8,  // every eighth later
    IDLE_ROUNDS = 150  // before it gives up; and four times as long as it took to the best
};

typedef struct elite {
    uint32_t *device;  // [units of `base`]
    double value;
    uint32_t exponent_log2;  // that its round began with
} elite;

typedef struct searcher {
    berth_place_search *search;
    berth_arena *arena;
    place_hyper *base;  // units that must stay together for a better value are merged
    uint32_t *base_of;  // [group_count] unit of `base`
    double base_value;  // that the merging was for
    elite pool[POOL];
    uint32_t pool_count;
    uint64_t random;
    bool stopped;
    uint32_t *assignment;  // [node_count] scratch
    uint32_t *device;      // [group_count] scratch
} searcher;

static bool stop(void *user, uint64_t nodes) {
    searcher *s = user;
    s->stopped = berth_place_spent(s->search, nodes) || s->stopped;
    return s->stopped;
}

static void offer(searcher *s, const uint32_t *device, double value) {
    if (!(value < s->search->best_value)) return;
    const berth_place_problem *problem = s->search->problem;
    for (uint32_t v = 0; v < problem->node_count; ++v)
        s->assignment[v] = device[s->base_of[problem->group[v]]];
    (void)berth_place_offer(s->search, s->assignment);
}

static uint32_t random_exponent(searcher *s) {
    return 1 + place_random_below(&s->random, 4);
}

// The pool keeps the best of different values.
static void remember(searcher *s, const uint32_t *device, double value, uint32_t exponent_log2) {
    if (isinf(value)) return;
    uint32_t at = s->pool_count;
    for (uint32_t i = 0; i < s->pool_count; ++i)
        if (fabs(s->pool[i].value - value) <= BERTH_PLACE_EQUAL * value) at = i;
    if (at == POOL) {
        at = 0;
        for (uint32_t i = 1; i < POOL; ++i)
            if (s->pool[i].value > s->pool[at].value) at = i;
        if (s->pool[at].value <= value) return;
    }
    if (at == s->pool_count)
        s->pool[s->pool_count++].device =
            berth_arena_new_array(s->arena, uint32_t, s->base->unit_count);
    memcpy(s->pool[at].device, device, s->base->unit_count * sizeof(*device));
    s->pool[at].value = value;
    s->pool[at].exponent_log2 = exponent_log2;
}

// Merges what a value better than the best cannot part. Placements of the pool that do part it go.
static void rebase(searcher *s) {
    const berth_place_problem *problem = s->search->problem;
    s->base_value = s->search->best_value;
    for (;;) {
        uint32_t units = s->base->unit_count;
        uint32_t *target = berth_arena_new_array(s->arena, uint32_t, units);
        uint32_t left = berth_place__hyper_bind(s->arena, s->base, s->base_value, target);
        if (left == units) break;
        for (uint32_t g = 0; g < problem->group_count; ++g) s->base_of[g] = target[s->base_of[g]];
        s->base = berth_place__hyper_contract(s->arena, s->base, target, left);
        uint32_t kept = 0;
        for (uint32_t i = 0; i < s->pool_count; ++i) {
            elite *old = &s->pool[i];
            uint32_t *device = berth_arena_new_array(s->arena, uint32_t, left);
            bool fits = true;
            for (uint32_t u = 0; u < units; ++u) device[target[u]] = old->device[u];
            for (uint32_t u = 0; u < units; ++u) fits = fits && device[target[u]] == old->device[u];
            if (fits) s->pool[kept++] = (elite){device, old->value, old->exponent_log2};
        }
        s->pool_count = kept;
    }
}

// Takes the best placement that others found into the pool, when the merged units allow it.
static void adopt_best(searcher *s) {
    if (isinf(s->search->best_value)) return;
    const berth_place_problem *problem = s->search->problem;
    for (uint32_t v = 0; v < problem->node_count; ++v)
        s->device[s->base_of[problem->group[v]]] = s->search->best[v];
    for (uint32_t v = 0; v < problem->node_count; ++v)
        if (s->device[s->base_of[problem->group[v]]] != s->search->best[v]) return;
    remember(s, s->device, s->search->best_value, random_exponent(s));
}

static void run_round(searcher *s, berth_arena *arena, place_round round, uint32_t exponent_log2) {
    uint32_t middle = exponent_log2 + 1 + place_random_below(&s->random, 2);
    double share = 1.0 / (1.0 + 4.0 * place_random_below(&s->random, 1024) / 1024);
    round.weight_limit =
        s->search->best_value < INFINITY ? share * s->search->best_value : INFINITY;
    round.hyper = s->base;
    round.exponent_log2[0] = exponent_log2;
    round.exponent_log2[1] = middle;
    round.exponent_log2[2] = middle + 1 + place_random_below(&s->random, 2);
    round.stop = stop;
    round.stop_user = s;
    round.random = place_random(&s->random);
    round.device = s->device;
    double value = berth_place__round(arena, &round);
    offer(s, s->device, value);
    remember(s, s->device, value, exponent_log2);
}

static void fresh_round(searcher *s, berth_arena *arena) {
    double heat = 0.08 * pow(0.5, place_random_below(&s->random, 4));
    run_round(s, arena, (place_round){.heat = heat}, random_exponent(s));
}

static void combining_round(searcher *s, berth_arena *arena) {
    uint32_t units = s->base->unit_count;
    const elite *one = &s->pool[place_random_below(&s->random, s->pool_count)];
    const elite *two = &s->pool[place_random_below(&s->random, s->pool_count)];
    const elite *better = one->value <= two->value ? one : two;
    uint32_t *part = berth_arena_new_array(arena, uint32_t, units);
    for (uint32_t u = 0; u < units; ++u)
        part[u] = one->device[u] * s->base->device_count + two->device[u];
    double heat = 0.005 * pow(0.5, place_random_below(&s->random, 5));
    place_round round = {.heat = heat, .part = part, .start = better->device};
    bool inherits = place_random(&s->random) % 2 == 0;
    run_round(s, arena, round, inherits ? better->exponent_log2 : random_exponent(s));
}

static bool prepare(searcher *s) {
    const berth_place_problem *problem = s->search->problem;
    s->base = berth_place__hyper_build(s->arena, problem, s->search->options->objective);
    for (uint32_t g = 0; g < problem->group_count; ++g)
        if (berth_bits_is_empty(s->base->allowed[g])) return false;
    s->base_of = berth_arena_new_array(s->arena, uint32_t, problem->group_count);
    s->device = berth_arena_new_array(s->arena, uint32_t, problem->group_count);
    s->assignment = berth_arena_new_array(s->arena, uint32_t, problem->node_count);
    for (uint32_t g = 0; g < problem->group_count; ++g) s->base_of[g] = g;
    rebase(s);
    adopt_best(s);
    return true;
}

static berth_status run(berth_place_search *search) {
    searcher s = {.search = search, .random = 1 + search->round};
    s.arena = berth_arena_create_child(search->arena);
    s.stopped = !prepare(&s);
    uint32_t improved = 0;  // the last round that found something better
    for (uint32_t round = 0; !s.stopped && round < IDLE_ROUNDS + 4 * improved; ++round) {
        double before = search->best_value;
        berth_arena *arena = berth_arena_create_child(s.arena);
        if (round < FRESH_ROUNDS || s.pool_count == 0 || round % FRESH_PERIOD == 0)
            fresh_round(&s, arena);
        else
            combining_round(&s, arena);
        berth_arena_destroy(arena);
        if (search->best_value < before) improved = round;
        if (search->best_value < 0.99 * s.base_value) rebase(&s);
    }
    berth_arena_destroy(s.arena);
    return BERTH_OK;
}

static bool applies(const berth_place_problem *problem, const berth_place_options *options) {
    return !options->contiguous && options->objective != BERTH_PLACE_LATENCY &&
           problem->device_count > 1 && problem->group_count > 0;
}

const berth_place_strategy berth_place__search = {
    .name = "search",
    .doc = "multilevel annealing with a pool of placements; throughput, memory",
    .auto_percent = 50,
    .again_percent = 50,
    .applies = applies,
    .run = run,
};
