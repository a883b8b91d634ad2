// A lower bound on throughput, by prices for the items: if no device can have items of more than a
// certain price within a limit on its load (pricing.h), and the items' prices are more than that
// for all devices together, then no placement keeps the limit. The best prices are the dual of the
// linear program over all sets that a device can have (Gilmore and Gomory, 1961, for cutting
// stock), found by a bundle method (bundle.h).
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "planner/solve/bounds/load_bound.h"
#include "planner/solve/bounds/pricing.h"
#include "planner/solve/problem/bundle.h"
#include "planner/solve/problem/merge.h"
#include "planner/solve/strategies/strategies.h"

enum {
    LEAST_CELLS = 12 * 1000 * 1000,
    MOST_CELLS = 32 * 1000 * 1000,  // 8 bytes each
    CELLS_PER_NODE = 600,
    FIRST_GRAIN = 64,  // of the prices' sum, for each item
    FINEST_GRAIN = 100 * 1000,
    LOOKS = 32,  // a state costs as much as so many cells besides its own
    ITEM_LIMIT = 20000,
    LEAST_MOST = 200,     // what each state must have cells for
    STATE_LIMIT = 60000,  // of all sorts together
};

// Without a placement, what to refute: so many times the bound by weighted loads.
#define BLIND_FACTOR 1.5

typedef struct bound_run {
    berth_place_search *search;
    berth_arena *arena;
    const berth_place_nets *nets;
    const berth_place_sorts *sorts;
    berth_place_pricing **pricing;  // [sorts]
    uint32_t *order;                // [items] as the pricing decides on them
    uint32_t *by_states;            // [sorts] those with few states first
    uint32_t *sums;                 // [sorts] most that a device of the sort can have
    bool **has;                     // [sorts][items]
    berth_place_bundle *bundle;
    double *proof;  // [items] prices that proved the bound
    double *whole;  // [items] prices as whole numbers
    double *piece;  // [items]
    double total;   // of whole
    double limit;
    double grain;    // most that whole-number prices sum up to at the moment
    uint32_t cells;  // of the finest pricing at the moment
    uint64_t random;
    bool refuted;  // no placement keeps the limit
} bound_run;

// As few items as placements below the limit can have.
static void reduce(bound_run *run) {
    const berth_place_problem *problem = run->search->problem;
    berth_place_classes classes = berth_place__classes(run->arena, problem);
    uint32_t *partner = berth_arena_new_array(run->arena, uint32_t, (size_t)classes.count + 1);
    bool tied = false;
    for (;;) {
        run->nets = berth_place__nets(run->arena, problem, classes.of_group, classes.count);
        uint32_t merged = 0;
        if (!tied) merged = berth_place__merge_free(run->arena, problem, run->nets, NULL, partner);
        if (merged == 0) {
            tied = true;
            merged = berth_place__merge_tied(run->arena, problem, run->nets, run->limit, partner);
        }
        if (merged == 0) return;
        berth_place__merge_apply(run->arena, run->nets, partner, &classes);
        if (berth_place_spent(run->search, run->nets->item_count / 16)) {
            run->nets = berth_place__nets(run->arena, problem, classes.of_group, classes.count);
            return;
        }
    }
}

// False when the budget does not allow it.
static bool prepare_pricing(bound_run *run) {
    const berth_place_problem *problem = run->search->problem;
    uint32_t sorts = run->sorts->count;
    size_t items = run->nets->item_count;
    run->order = berth_arena_new_array(run->arena, uint32_t, items + 1);
    if (!berth_place__pricing_order(run->arena, run->nets, run->search, run->order)) return false;
    run->pricing = berth_arena_new_array(run->arena, berth_place_pricing *, (size_t)sorts + 1);
    run->by_states = berth_arena_new_array(run->arena, uint32_t, (size_t)sorts + 1);
    run->sums = berth_arena_new_array(run->arena, uint32_t, (size_t)sorts + 1);
    run->has = berth_arena_new_array(run->arena, bool *, (size_t)sorts + 1);
    run->whole = berth_arena_new_array(run->arena, double, items + 1);
    run->piece = berth_arena_new_array(run->arena, double, items + 1);
    for (uint32_t q = 0; q < sorts; ++q) {
        run->pricing[q] = berth_place__pricing(run->arena, problem, run->nets, run->sorts, q,
                                               run->order, STATE_LIMIT / sorts, run->search);
        if (!run->pricing[q]) return false;
        run->has[q] = berth_arena_new_array(run->arena, bool, items + 1);
        uint32_t states = berth_place__pricing_states(run->pricing[q]);
        uint32_t at = q;
        for (; at > 0; --at) {
            uint32_t other = run->by_states[at - 1];
            if (berth_place__pricing_states(run->pricing[other]) <= states) break;
            run->by_states[at] = other;
        }
        run->by_states[at] = q;
    }
    return true;
}

// ------------------------------------------------------------------------------------------------
// one set of prices

// Whole-number prices, as fine as the cells allow; the bundle's become the same. What one item is
// rounded up the next ones in the order are rounded down: sets of items that follow each other, as
// most sets with little to send are, have their sums within 1 of the exact ones.
static void round_prices(bound_run *run) {
    double *prices = berth_place__bundle_prices(run->bundle);
    uint32_t items = run->nets->item_count;
    double scale = run->grain;
    uint32_t states = 0;
    for (uint32_t q = 0; q < run->sorts->count; ++q)
        states += berth_place__pricing_states(run->pricing[q]);
    for (uint32_t q = 0; q < run->sorts->count; ++q) {
        double share = berth_place__price_roughly(run->pricing[q], prices, run->limit);
        double most = fmax(run->cells / states, LEAST_MOST) - 2;
        scale = fmin(scale, most / (1.05 * share + 1e-12));
    }
    run->random = run->random * 6364136223846793005u + 1442695040888963407u;
    double sum = (double)(run->random >> 40) * 0x1p-24;
    run->total = 0;
    for (uint32_t i = 0; i < items; ++i) {
        double before = floor(sum);
        sum += prices[run->order[i]] * scale;
        run->whole[run->order[i]] = floor(sum) - before;
        run->total += run->whole[run->order[i]];
    }
    if (!(run->total > 0)) run->whole[0] = run->total = 1;
    for (uint32_t i = 0; i < items; ++i) prices[i] = run->whole[i] / run->total;
}

// Most that the devices of all sorts can have within a limit, from the last prices.
static double sum_within(const bound_run *run, double limit) {
    double sum = 0;
    for (uint32_t q = 0; q < run->sorts->count; ++q)
        sum +=
            (double)run->sorts->device_count[q] * berth_place__price_within(run->pricing[q], limit);
    return sum;
}

// The largest limit that the last prices refute.
static void raise_bound(bound_run *run) {
    enum { STEPS = 40 };
    double low = run->search->lower_bound;
    double high = run->limit;
    if (sum_within(run, low + (high - low) * 1e-4) >= run->total) return;
    for (int step = 0; step < STEPS; ++step) {
        double middle = (low + high) / 2;
        if (sum_within(run, middle) < run->total) {
            low = middle;
        } else {
            high = middle;
        }
    }
    berth_place_bound(run->search, low);
    memcpy(run->proof, berth_place__bundle_prices(run->bundle),
           run->nets->item_count * sizeof(*run->proof));
}

// Returns the value of the prices: what is missing for a proof, negative.
static double price_all(bound_run *run) {
    round_prices(run);
    uint32_t sorts = run->sorts->count;
    double left = run->total;
    uint64_t work = 0;
    for (uint32_t i = 0; i < sorts; ++i) {
        uint32_t q = run->by_states[i];
        double count = run->sorts->device_count[q];
        double need = i + 1 == sorts ? ceil(left / count) : 0;
        uint32_t enough = need > 0 ? (uint32_t)need : 0;
        run->sums[q] =
            berth_place__price(run->pricing[q], run->whole, run->limit, enough, run->has[q]);
        work += berth_place__pricing_work(run->pricing[q]) +
                (uint64_t)LOOKS * berth_place__pricing_states(run->pricing[q]);
        left -= count * run->sums[q];
        run->refuted = i + 1 == sorts && run->sums[q] == 0 && left > 0;
    }
    berth_place_spent(run->search, 1 + work / CELLS_PER_NODE);
    for (uint32_t v = 0; v < run->nets->item_count; ++v) {
        run->piece[v] = 1;
        for (uint32_t q = 0; q < sorts; ++q)
            if (run->sums[q] > 0 && run->has[q][v]) run->piece[v] -= run->sorts->device_count[q];
    }
    return left / run->total;
}

// ------------------------------------------------------------------------------------------------

static uint64_t nodes_left(const berth_place_search *search) {
    return search->node_limit > search->nodes ? search->node_limit - search->nodes : 0;
}

// Fine prices matter more than many: few whole numbers for each item are all noise. So the cells are
// as many as leave some passes.
static void look_roughly(bound_run *run) {
    enum { PASSES = 32, NS_PER_NODE = 1000 };
    const berth_place_search *search = run->search;
    double nodes = (double)nodes_left(search);
    if (search->deadline_ns != 0)
        nodes = fmin(nodes, (double)(search->deadline_ns - berth_clock_ns()) / NS_PER_NODE);
    double cells = nodes * CELLS_PER_NODE / PASSES;
    run->cells = (uint32_t)fmax(LEAST_CELLS, fmin(cells, MOST_CELLS));
    run->grain = fmin((double)FIRST_GRAIN * run->nets->item_count, FINEST_GRAIN);
}

// Finer prices from now on; false when there are none.
static bool look_closer(bound_run *run) {
    enum { FACTOR = 4 };
    bool grain_rules = run->total > 0.9 * run->grain;  // not the cells
    if (grain_rules ? run->grain == FINEST_GRAIN : run->cells == MOST_CELLS) return false;
    if (grain_rules)
        run->grain = fmin(run->grain * FACTOR, FINEST_GRAIN);
    else
        run->cells = run->cells * FACTOR < MOST_CELLS ? run->cells * FACTOR : MOST_CELLS;
    return true;
}

// Looks for prices that refute the limit, with up to so many nodes. Raises the bound on the way.
static void refute(bound_run *run, uint64_t nodes) {
    enum { PATIENCE = 40 };
    uint64_t end = run->search->nodes + nodes;
    double best = -INFINITY;
    int stuck = 0;
    while (!berth_place_spent(run->search, 0) && run->search->nodes < end) {
        double value = price_all(run);
        if (run->refuted) {
            berth_place_bound(run->search, run->limit);
            return;
        }
        raise_bound(run);
        double hope = berth_place__bundle_step(run->bundle, value, run->piece);
        if (value > best + 1e-3 * fabs(value)) {
            best = value;
            stuck = 0;
            continue;
        }
        if (++stuck < PATIENCE && hope > 1e-5) continue;
        stuck = 0;
        if (!look_closer(run)) return;
        berth_place__bundle_widen(run->bundle);
    }
}

// The limit to refute is the best value first (most often it is the optimum, and the bound is as
// good), then halfway down to the bound, and so on.
static void bisect(bound_run *run) {
    berth_place_search *search = run->search;
    double failed = run->limit;
    for (;;) {
        uint64_t nodes = nodes_left(search) / 4 * 3;
        refute(run, nodes);
        if (!run->refuted) failed = run->limit;
        if (berth_place_spent(search, 1)) return;
        search->finished = failed - search->lower_bound < 1e-5 * failed;
        if (search->finished) return;
        run->limit = (search->lower_bound + failed) / 2;
        berth_place__bundle_restart(run->bundle, run->proof);
    }
}

static bool applies(const berth_place_problem *problem, const berth_place_options *options) {
    return options->objective == BERTH_PLACE_THROUGHPUT && problem->group_count <= ITEM_LIMIT &&
           problem->device_count > 0;
}

static berth_status run(berth_place_search *search) {
    bound_run run = {.search = search, .arena = berth_arena_create_child(search->arena)};
    run.limit = search->best_value * (1 - BERTH_PLACE_EQUAL / 4);
    run.sorts = berth_place__sorts(run.arena, search->problem);
    reduce(&run);
    double weight[BERTH_PLACE_DEVICE_LIMIT];
    uint32_t items = run.nets->item_count;
    double *share = berth_arena_new_array(run.arena, double, (size_t)items + 1);
    double bound = berth_place__weigh_loads(search->problem, run.nets, weight, share);
    if (!isfinite(run.limit)) run.limit = BLIND_FACTOR * bound;
    // (What was merged holds below the limit only.)
    if (isfinite(run.limit)) berth_place_bound(search, fmin(bound, run.limit));
    if (bound > 0 && bound < run.limit) {
        for (uint32_t i = 0; i < items; ++i) share[i] /= bound;
        run.proof = share;
        if (prepare_pricing(&run)) {
            look_roughly(&run);
            run.bundle = berth_place__bundle(run.arena, items, share);
            bisect(&run);
        }
    }
    berth_arena_destroy(run.arena);
    return BERTH_OK;
}

const berth_place_strategy berth_place__bound = {
    .name = "bound",
    .doc = "lower bounds by prices of items; throughput",
    .auto_percent = 100,
    .again_percent = 50,
    .applies = applies,
    .run = run,
};
