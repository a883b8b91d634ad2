// Latency of one sample by list scheduling (problem.h, one_subgraph = false): HEFT, "heterogeneous
// earliest finish time" (Topcuoglu, Hariri and Wu 2002), with several weights for the ranks (Zhao
// and Sakellariou 2003: none is best for all graphs). Copies take turns on the devices' links, as
// they do in a schedule, or wait for nobody. A device is as good as the end of the node there, or as
// that end and the shortest way on from there (as in PEFT; Arabnejad and Barbosa 2014), which paths
// over copies give for all nodes (list_bound.h). Where not everything fits, what comes first would
// take all memory that is worth having; so bytes there cost time, at several prices (Everett 1963); so may
// time on devices that run one node at a time, and on links. At last with other prices and in the order
// of the best schedule so far, again and again.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/solve/bounds/list_bound.h"
#include "planner/solve/latency/model.h"
#include "planner/solve/problem/busy.h"
#include "planner/solve/problem/evaluate_private.h"
#include "planner/solve/problem/nets.h"
#include "planner/solve/strategies/strategies.h"

enum { WEIGHTS = 3, LEAST = 1, PRICES = 9, MOST_IDLE = 100 };
static const double TURNS_SHARE = 0.1;     // of the budget that is left, for prices of turns
static const double VARIANTS_SHARE = 0.2;  // the same, for variants
#define MOST_ARRIVALS ((uint64_t)1 << 23)  // nodes times devices, where links are looked at

typedef struct heft {
    berth_place_search *search;
    const berth_place_problem *problem;
    const berth_solve__latency *latency;  // which device can take which group
    double *rank;                         // [node_count] upward rank
    uint32_t *order;                      // [node_count] by rank, greatest first
    uint32_t *at;                         // [node_count] device, NONE = not yet
    double *done;                         // [node_count]
    const berth_place__paths *ahead;      // ways on from the places; NULL = not looked at
    uint32_t *place;                      // [device_count] of those
    double *in_host;                      // [node_count] when its value is there; NAN = not yet
    double *there;       // [node_count * device_count] the same on the devices; NULL = links are
                         // not looked at
    double *free_bytes;  // [device_count]
    double price;        // of a byte on a device that cannot hold everything, in the unit of times
    uint32_t runs;       // that were finished
    double turn_price;   // of time on a device that runs one node at a time, in that time
    double link_price;   // of time of copies, where links are looked at
    double all_bytes;    // of all groups
    berth_solve__busy *busy;  // [2 * device_count] of what runs one node at a time; links are last
    berth_arena *arena;
} heft;

// When the nodes of the best placement run.
typedef struct schedule_times {
    berth_solve__list *list;
    double *done, *left;  // [node_count]
    uint64_t random;
} schedule_times;

bool berth_place__is_list_latency(const berth_place_problem *problem,
                                  const berth_place_options *options) {
    return options->objective == BERTH_PLACE_LATENCY && !problem->one_subgraph &&
           problem->device_count > 0 && problem->node_count > 0;
}

static double transfer(const heft *h, uint32_t node, uint32_t device) {
    return h->problem
        ->transfer[(size_t)node * h->problem->kind_count + h->problem->device_kind[device]];
}

static double time_on(const heft *h, uint32_t node, uint32_t device) {
    return h->problem
        ->time[(size_t)node * h->problem->kind_count + h->problem->device_kind[device]];
}

static bool fits(const heft *h, uint32_t group, uint32_t device) {
    return h->latency->fits[(size_t)group * h->problem->device_count + device];
}

// A node's time and transfer over the devices that can take it: mean, smallest or largest.
static void weigh(const heft *h, uint32_t node, uint32_t weight, double *out_time,
                  double *out_transfer) {
    double count = 0, sums[2] = {0}, least[2] = {INFINITY, INFINITY}, most[2] = {0};
    for (uint32_t d = 0; d < h->problem->device_count; ++d) {
        if (!fits(h, h->problem->group[node], d)) continue;
        double figures[2] = {time_on(h, node, d), transfer(h, node, d)};
        count++;
        for (int i = 0; i < 2; ++i) {
            sums[i] += figures[i];
            least[i] = fmin(least[i], figures[i]);
            most[i] = fmax(most[i], figures[i]);
        }
    }
    if (count == 0) least[0] = least[1] = 0;
    *out_time = weight == 0 ? sums[0] / fmax(count, 1) : weight == 1 ? least[0] : most[0];
    *out_transfer = weight == 0 ? sums[1] / fmax(count, 1) : weight == 1 ? least[1] : most[1];
}

typedef struct ranked {
    double rank;
    uint32_t place;  // in a topological order: equal ranks keep it
    uint32_t node;
} ranked;

static int compare_ranked(const void *left, const void *right) {
    const ranked *a = left;
    const ranked *b = right;
    if (a->rank != b->rank) return a->rank > b->rank ? -1 : 1;
    return a->place < b->place ? -1 : a->place > b->place;
}

// Orders the nodes by their ranks.
static void sort_nodes(heft *h) {
    const berth_place_problem *problem = h->problem;
    berth_arena *scratch = berth_arena_create_child(h->arena);
    ranked *list = berth_arena_new_array(scratch, ranked, problem->node_count);
    for (uint32_t i = 0; i < problem->node_count; ++i) {
        uint32_t node = problem->topological[i];
        list[i] = (ranked){h->rank[node], i, node};
    }
    qsort(list, problem->node_count, sizeof(*list), compare_ranked);
    for (uint32_t i = 0; i < problem->node_count; ++i) h->order[i] = list[i].node;
    berth_arena_destroy(scratch);
}

static void rank_nodes(heft *h, uint32_t weight) {
    const berth_place_problem *problem = h->problem;
    for (uint32_t i = problem->node_count; i-- > 0;) {
        uint32_t node = problem->topological[i];
        double time = 0, copy = 0, after = 0;
        weigh(h, node, weight, &time, &copy);
        for (uint32_t s = problem->succ_start[node]; s < problem->succ_start[node + 1]; ++s)
            after = fmax(after, copy + h->rank[problem->succ[s]]);
        h->rank[node] = time + after;
    }
    sort_nodes(h);
}

// By what was left from the node's start on when the best placement was scheduled, turns included (as
// forward and backward passes do; Li and Willis 1992), and by chance up to `noise` of it more.
static void rank_by_schedule(heft *h, schedule_times *t, double noise) {
    const berth_place_problem *problem = h->problem;
    (void)berth_place_spent(h->search, (problem->node_count + problem->edge_count) / 16);
    double end = berth_solve__list_value(t->list, h->search->best, INFINITY, NULL, NULL);
    if (isinf(end)) return;
    berth_solve__list_times(t->list, t->done, t->left, h->order);
    for (uint32_t i = problem->node_count; i-- > 0;) {
        uint32_t node = problem->topological[i];
        double rank = t->left[node] * (1 + noise * berth_solve__random_unit(&t->random));
        for (uint32_t s = problem->succ_start[node]; s < problem->succ_start[node + 1]; ++s)
            rank = fmax(rank, h->rank[problem->succ[s]]);
        h->rank[node] = rank;
    }
    sort_nodes(h);
}

// Any number at a time.
static bool is_free(const heft *h, uint32_t resource) {
    return resource < h->problem->device_count &&
           h->problem->kinds[h->problem->device_kind[resource]].concurrent;
}

// The earliest start of `length` in a gap (the paper's insertion).
static double earliest(const heft *h, uint32_t resource, double ready, double length,
                       berth_solve__gap *out) {
    if (is_free(h, resource)) return ready;
    return berth_solve__busy_find(&h->busy[resource], ready, length, out);
}

static void occupy(const heft *h, uint32_t resource, const berth_solve__gap *gap, double start,
                   double end) {
    if (!is_free(h, resource))
        berth_solve__busy_take(&h->busy[resource], gap, start, end, BERTH_PLACE_NONE);
}

// When a copy on the device's link ends that is ready then; it takes its turn where `keep`.
static double copy_on(heft *h, uint32_t device, double ready, double length, bool keep) {
    if (length == 0) return ready;
    uint32_t link = h->problem->device_count + device;
    berth_solve__gap gap;
    double start = earliest(h, link, ready, length, &gap);
    if (keep) occupy(h, link, &gap, start, start + length);
    return start + length;
}

// When pred's value is on the device, if its last copy starts no earlier than `after`.
static double arrival(heft *h, uint32_t pred, uint32_t device, double after, bool keep) {
    uint32_t home = h->at[pred];
    double write = transfer(h, pred, home), read = transfer(h, pred, device);
    double straight = berth_place_direct(h->problem, pred, home, device), done = h->done[pred];
    if (home == device) return done;
    if (!h->there) return done + fmin(write + read, straight);
    double *known = &h->there[(size_t)pred * h->problem->device_count + device];
    if (!isnan(*known)) return *known;
    double end = 0;
    if (straight < write + read) {
        end = copy_on(h, device, fmax(done, after), straight, keep);
    } else {
        double in_host = h->in_host[pred];
        if (isnan(in_host)) in_host = copy_on(h, home, done, write, keep);
        if (keep) h->in_host[pred] = in_host;
        end = copy_on(h, device, fmax(in_host, after), read, keep);
    }
    if (keep) *known = end;
    return end;
}

// When all values that `node` reads can be on the device.
static double ready_on(heft *h, uint32_t node, uint32_t device, bool keep) {
    const berth_place_problem *problem = h->problem;
    double ready = 0, copied = 0;
    for (uint32_t p = problem->pred_start[node]; p < problem->pred_start[node + 1]; ++p) {
        uint32_t pred = problem->pred[p];
        // Reads that are not kept yet follow each other.
        double there = arrival(h, pred, device, keep || !h->there ? 0 : copied, keep);
        if (h->at[pred] != device) copied = fmax(copied, there);
        ready = fmax(ready, there);
    }
    return ready;
}

// What the rest of the group loses on the device against its best one.
static double regret(const heft *h, uint32_t node, uint32_t device) {
    const berth_place_problem *problem = h->problem;
    uint32_t group = problem->group[node];
    double lost = 0;
    for (uint32_t i = problem->group_start[group]; i < problem->group_start[group + 1]; ++i) {
        uint32_t other = problem->group_nodes[i];
        if (other == node) continue;
        double least = INFINITY;
        for (uint32_t d = 0; d < problem->device_count; ++d)
            if (fits(h, group, d)) least = fmin(least, time_on(h, other, d));
        lost += time_on(h, other, device) - least;
    }
    return lost;
}

static bool is_tight(const heft *h, uint32_t device) {
    return h->problem->kinds[h->problem->device_kind[device]].capacity_bytes < h->all_bytes;
}

static double price_of(const heft *h, uint32_t node, uint32_t device) {
    double price = is_free(h, device) ? 0 : h->turn_price * time_on(h, node, device);
    if (is_tight(h, device)) price += h->price * h->latency->group_bytes[h->problem->group[node]];
    return price;
}

// Time of the copies that the node's values still need to be on the device.
static double copies_to(const heft *h, uint32_t node, uint32_t device) {
    const berth_place_problem *problem = h->problem;
    double sum = 0;
    for (uint32_t p = problem->pred_start[node]; p < problem->pred_start[node + 1]; ++p) {
        uint32_t pred = problem->pred[p], home = h->at[pred];
        if (home == device || !isnan(h->there[(size_t)pred * problem->device_count + device]))
            continue;
        double write = isnan(h->in_host[pred]) ? transfer(h, pred, home) : 0;
        sum += fmin(write + transfer(h, pred, device),
                    berth_place_direct(problem, pred, home, device));
    }
    return sum;
}

static bool place_node(heft *h, uint32_t node) {
    const berth_place_problem *problem = h->problem;
    uint32_t group = problem->group[node], best = h->at[node];
    berth_solve__gap gap;
    double best_score = INFINITY;
    for (uint32_t d = 0; d < problem->device_count; ++d) {
        if (h->at[node] != BERTH_PLACE_NONE && h->at[node] != d) continue;
        if (h->at[node] == BERTH_PLACE_NONE &&
            (!fits(h, group, d) || h->latency->group_bytes[group] > h->free_bytes[d]))
            continue;
        double time = time_on(h, node, d);
        double score = earliest(h, d, ready_on(h, node, d, false), time, &gap) + time;
        if (h->at[node] == BERTH_PLACE_NONE) score += regret(h, node, d) + price_of(h, node, d);
        if (h->there && h->link_price > 0) score += h->link_price * copies_to(h, node, d);
        if (h->ahead) score += h->ahead->tail[(size_t)node * h->ahead->place_count + h->place[d]];
        if (score >= best_score) continue;
        best = d;
        best_score = score;
    }
    if (best == BERTH_PLACE_NONE) return false;
    if (h->at[node] == BERTH_PLACE_NONE) {
        h->free_bytes[best] -= h->latency->group_bytes[group];
        for (uint32_t i = problem->group_start[group]; i < problem->group_start[group + 1]; ++i)
            h->at[problem->group_nodes[i]] = best;
    }
    double time = time_on(h, node, best);
    double start = earliest(h, best, ready_on(h, node, best, true), time, &gap);
    h->done[node] = start + time;
    occupy(h, best, &gap, start, h->done[node]);
    return true;
}

// Places the nodes in their order. Whether that is better than the best.
static bool place_all(heft *h) {
    const berth_place_problem *problem = h->problem;
    for (uint32_t n = 0; n < problem->node_count; ++n) h->at[n] = BERTH_PLACE_NONE;
    for (uint32_t d = 0; d < problem->device_count; ++d) {
        h->free_bytes[d] = problem->kinds[problem->device_kind[d]].capacity_bytes;
        berth_solve__busy_clear(&h->busy[d], h->arena);
        berth_solve__busy_clear(&h->busy[problem->device_count + d], h->arena);
    }
    for (uint32_t n = 0; n < problem->node_count && h->there; ++n) {
        h->in_host[n] = NAN;
        for (uint32_t d = 0; d < problem->device_count; ++d)
            h->there[(size_t)n * problem->device_count + d] = NAN;
    }
    for (uint32_t i = 0; i < problem->node_count; ++i) {
        if (!place_node(h, h->order[i])) return false;
        // The first one is finished whatever it takes.
        if (berth_place_spent(h->search, 1 + problem->device_count / 8) && h->runs > 0)
            return false;
    }
    ++h->runs;
    return berth_place_offer(h->search, h->at);
}

static void schedule(heft *h, uint32_t weight) {
    rank_nodes(h, weight);
    (void)place_all(h);
}

static heft *heft_create(berth_place_search *search, berth_arena *arena,
                         const berth_solve__latency *latency) {
    uint32_t nodes = search->problem->node_count, devices = search->problem->device_count;
    heft *h = berth_arena_new(arena, heft);
    h->search = search;
    h->problem = search->problem;
    h->latency = latency;
    h->arena = arena;
    for (uint32_t g = 0; g < search->problem->group_count; ++g)
        h->all_bytes += latency->group_bytes[g];
    h->rank = berth_arena_new_array(arena, double, nodes);
    h->order = berth_arena_new_array(arena, uint32_t, nodes);
    h->at = berth_arena_new_array(arena, uint32_t, nodes);
    h->done = berth_arena_new_array(arena, double, nodes);
    h->in_host = berth_arena_new_array(arena, double, nodes);
    h->free_bytes = berth_arena_new_array(arena, double, devices);
    h->busy = berth_arena_new_array(arena, berth_solve__busy, 2 * (size_t)devices);
    return h;
}

// What a byte gains on average where its group is fastest against where it is slowest: prices are about
// as large.
static double usual_price(const heft *h) {
    const berth_place_problem *problem = h->problem;
    double gained = 0;
    for (uint32_t v = 0; v < problem->node_count; ++v) {
        double least = INFINITY, most = 0;
        for (uint32_t d = 0; d < problem->device_count; ++d) {
            if (!fits(h, problem->group[v], d)) continue;
            least = fmin(least, time_on(h, v, d));
            most = fmax(most, time_on(h, v, d));
        }
        gained += fmax(0, most - least);
    }
    return h->all_bytes > 0 ? gained / h->all_bytes : 0;
}

// With memory for a price, from high to low.
static void schedule_at_prices(heft *h, const berth_place__paths *ahead) {
    bool tight = false;
    for (uint32_t d = 0; d < h->problem->device_count; ++d) tight |= is_tight(h, d);
    double usual = usual_price(h);
    for (uint32_t i = 0; tight && usual > 0 && i < PRICES; ++i) {
        h->price = usual * ldexp(1, 3 - (int)i);
        for (int looks = 0; looks < 2 && !berth_place_spent(h->search, 1); ++looks) {
            h->ahead = looks ? ahead : NULL;
            schedule(h, 0);
        }
    }
    h->price = 0;
}

// With turns for a price, looking ahead and at links or not.
static void schedule_at_turn_prices(heft *h, const berth_place__paths *ahead) {
    static const double prices[] = {0.3, 0.1, 1, 2, 0.5, 4, 1.5, 0.7};
    const berth_place_since since = berth_place_now(h->search);
    double *there = h->there;
    for (uint32_t i = 0; i < 4 * sizeof(prices) / sizeof(*prices); ++i) {
        if (berth_place_used(h->search, since) > TURNS_SHARE || berth_place_spent(h->search, 1))
            break;
        h->turn_price = prices[i / 4];
        h->ahead = i % 2 ? ahead : NULL;
        h->there = i / 2 % 2 ? there : NULL;
        schedule(h, LEAST);
    }
    h->turn_price = 0;
    h->there = there;
}

typedef struct variant {
    double turn_price, link_price, noise;
    double byte_price;  // in what a byte gains on average
    bool ahead, by_schedule;
} variant;

// What was best so far, with some of it changed.
static variant vary(const variant *best, uint64_t *random) {
    static const double prices[] = {0, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 4};
    enum { PRICES_OF = sizeof(prices) / sizeof(*prices) };
    variant v = *best;
    uint32_t change = berth_solve__random_below(random, 16);
    if (change & 1) v.turn_price = prices[berth_solve__random_below(random, PRICES_OF)];
    if (change & 2) v.link_price = prices[berth_solve__random_below(random, PRICES_OF)];
    if (change & 8) v.byte_price = prices[berth_solve__random_below(random, PRICES_OF)];
    if (change & 4) v.ahead = berth_solve__random_below(random, 2) == 0;
    v.by_schedule = berth_solve__random_below(random, 4) != 0;
    v.noise = 0.2 * berth_solve__random_unit(random) * berth_solve__random_unit(random);
    return v;
}

// Again and again by other prices and orders, as long as it gets better now and then.
static void schedule_variants(heft *h, berth_arena *scratch, const berth_place__paths *ahead) {
    berth_place_search *search = h->search;
    const berth_place_since since = berth_place_now(search);
    uint32_t nodes = h->problem->node_count, idle = 0;
    schedule_times times = {.list = berth_solve__list_create(scratch, h->problem),
                            .done = berth_arena_new_array(scratch, double, nodes),
                            .left = berth_arena_new_array(scratch, double, nodes),
                            .random = 88172645463325252u};
    variant best = {.link_price = 0.3};
    double usual = usual_price(h);
    for (; h->there && idle < MOST_IDLE && !berth_place_spent(search, 1); ++idle) {
        if (search->best_value == INFINITY || berth_place_used(search, since) > VARIANTS_SHARE)
            break;
        variant v = vary(&best, &times.random);
        h->turn_price = v.turn_price;
        h->link_price = v.link_price;
        h->price = v.byte_price * usual;
        h->ahead = v.ahead ? ahead : NULL;
        if (v.by_schedule)
            rank_by_schedule(h, &times, v.noise);
        else
            rank_nodes(h, LEAST);
        if (!place_all(h)) continue;
        best = v;
        idle = 0;
    }
    h->turn_price = h->link_price = h->price = 0;
}

static berth_status run(berth_place_search *search) {
    berth_arena *scratch = berth_arena_create_child(search->arena);
    heft *h = heft_create(search, scratch, berth_solve__latency_create(scratch, search->problem));
    const berth_place_problem *problem = search->problem;
    uint64_t arrivals = (uint64_t)problem->node_count * problem->device_count;
    berth_place__paths *ahead = berth_place__paths_create(scratch, problem, false);
    (void)berth_place__paths_bound(ahead);
    h->place = berth_place__sorts(scratch, problem)->of_device;
    for (int links = 0; links < 2 && (!links || arrivals <= MOST_ARRIVALS); ++links) {
        if (links) h->there = berth_arena_new_array(scratch, double, arrivals);
        for (uint32_t i = 0; i < 2 * WEIGHTS; ++i) {
            h->ahead = i < WEIGHTS ? NULL : ahead;
            if (h->runs == 0 || !berth_place_spent(search, 1)) schedule(h, i % WEIGHTS);
        }
    }
    schedule_at_prices(h, ahead);
    schedule_at_turn_prices(h, ahead);
    schedule_variants(h, scratch, ahead);
    berth_arena_destroy(scratch);
    return BERTH_OK;
}

const berth_place_strategy berth_place__heft = {
    .name = "heft",
    .doc = "earliest finish time by upward rank; latency by list scheduling",
    .auto_percent = 100,
    .applies = berth_place__is_list_latency,
    .run = run,
};
