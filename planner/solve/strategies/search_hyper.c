// Building, contracting and coarsening the search's hypergraph.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/solve/linear.h"
#include "planner/solve/strategies/search_private.h"

static int compare_units(const void *left, const void *right) {
    uint32_t a = *(const uint32_t *)left;
    uint32_t b = *(const uint32_t *)right;
    return a < b ? -1 : a > b;
}

// Sorts and drops repetitions.
static uint32_t unique_units(uint32_t *units, uint32_t count) {
    if (count == 0) return 0;
    qsort(units, count, sizeof(*units), compare_units);
    uint32_t kept = 1;
    for (uint32_t i = 1; i < count; ++i)
        if (units[i] != units[kept - 1]) units[kept++] = units[i];
    return kept;
}

// Nets under construction: equal pin sets are found through a hash table of chains.
typedef struct net_builder {
    place_hyper *hyper;
    uint32_t *head;  // [mask + 1] net + 1 of the bucket, 0 = empty
    uint32_t *next;  // [net limit]
    uint32_t mask;
} net_builder;

static void builder_open(berth_arena *arena, net_builder *builder, place_hyper *hyper,
                         uint32_t net_limit, uint32_t pin_limit) {
    uint32_t buckets = 16;
    while (buckets < net_limit) buckets *= 2;
    *builder = (net_builder){.hyper = hyper, .mask = buckets - 1};
    builder->head = berth_arena_new_array(arena, uint32_t, buckets);
    builder->next = berth_arena_new_array(arena, uint32_t, net_limit);
    hyper->cost = berth_arena_new_array(arena, double, (size_t)net_limit * hyper->kind_count);
    hyper->pin_start = berth_arena_new_array(arena, uint32_t, (size_t)net_limit + 1);
    hyper->pin = berth_arena_new_array(arena, uint32_t, pin_limit);
}

// The net's pins lie at pin[pin_start[net_count]...), `count` of them, with repetitions.
static void builder_add(net_builder *builder, uint32_t count, const double *cost) {
    place_hyper *hyper = builder->hyper;
    uint32_t begin = hyper->pin_start[hyper->net_count];
    uint32_t *pins = hyper->pin + begin;
    count = unique_units(pins, count);
    double total = 0;
    for (uint32_t k = 0; k < hyper->kind_count; ++k) total += cost[k];
    if (count < 2 || total <= 0) return;
    uint64_t hash = count;
    for (uint32_t i = 0; i < count; ++i) {
        hash = (hash ^ pins[i]) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 29;
    }
    uint32_t *head = &builder->head[hash & builder->mask];
    uint32_t net = hyper->net_count;
    for (uint32_t at = *head; at != 0; at = builder->next[at - 1]) {
        uint32_t old = hyper->pin_start[at - 1];
        if (hyper->pin_start[at] - old != count ||
            memcmp(hyper->pin + old, pins, count * sizeof(*pins)) != 0)
            continue;
        net = at - 1;
        break;
    }
    for (uint32_t k = 0; k < hyper->kind_count; ++k)
        hyper->cost[(size_t)net * hyper->kind_count + k] += cost[k];
    if (net != hyper->net_count) return;
    builder->next[net] = *head;
    *head = net + 1;
    hyper->pin_start[++hyper->net_count] = begin + count;
    hyper->pin_count = begin + count;
}

static void list_nets_of_units(berth_arena *arena, place_hyper *hyper) {
    uint32_t units = hyper->unit_count;
    hyper->net_start = berth_arena_new_array(arena, uint32_t, (size_t)units + 2);
    hyper->net = berth_arena_new_array(arena, uint32_t, hyper->pin_count);
    uint32_t *fill = hyper->net_start + 1;  // becomes net_start when all are filled
    for (uint32_t p = 0; p < hyper->pin_count; ++p)
        if (hyper->pin[p] + 1 < units) ++fill[hyper->pin[p] + 1];
    for (uint32_t u = 1; u < units; ++u) fill[u] += fill[u - 1];
    for (uint32_t n = 0; n < hyper->net_count; ++n)
        for (uint32_t p = hyper->pin_start[n]; p < hyper->pin_start[n + 1]; ++p)
            hyper->net[fill[hyper->pin[p]]++] = n;
}

static place_hyper *create_units(berth_arena *arena, uint32_t unit_count, uint32_t kind_count) {
    place_hyper *hyper = berth_arena_new(arena, place_hyper);
    hyper->unit_count = unit_count;
    hyper->kind_count = kind_count;
    hyper->time = berth_arena_new_array(arena, double, (size_t)unit_count *kind_count);
    hyper->size = berth_arena_new_array(arena, double, unit_count);
    hyper->allowed = berth_arena_new_array(arena, berth_bits, unit_count);
    return hyper;
}

typedef struct keyed {
    double key;
    uint32_t unit;
} keyed;

static int compare_keys(const void *left, const void *right) {
    const keyed *a = left;
    const keyed *b = right;
    if (a->key != b->key) return a->key < b->key ? -1 : 1;
    return a->unit < b->unit ? -1 : a->unit > b->unit;
}

// Sets an order of the units by their keys, which are sorted.
static void set_order(berth_arena *arena, place_hyper *hyper, uint32_t which, keyed *keys) {
    uint32_t units = hyper->unit_count;
    if (units > 1) qsort(keys, units, sizeof(*keys), compare_keys);
    hyper->order[which] = berth_arena_new_array(arena, uint32_t, units);
    hyper->rank[which] = berth_arena_new_array(arena, uint32_t, units);
    for (uint32_t i = 0; i < units; ++i) {
        hyper->order[which][i] = keys[i].unit;
        hyper->rank[which][keys[i].unit] = i;
    }
}

static void order_groups(berth_arena *arena, place_hyper *hyper,
                         const berth_place_problem *problem) {
    keyed *keys = berth_arena_new_array(arena, keyed, hyper->unit_count);
    for (uint32_t which = 0; which < PLACE_ORDERS; ++which) {
        berth_arena *scratch = berth_arena_create_child(arena);
        berth_solve__order order = berth_solve__order_groups(scratch, problem, true, which);
        for (uint32_t i = 0; i < hyper->unit_count; ++i) keys[i] = (keyed){i, order.groups[i]};
        set_order(arena, hyper, which, keys);
        berth_arena_destroy(scratch);
    }
}

// Merged units are where their parts are on average.
static void order_merged(berth_arena *arena, place_hyper *hyper, const place_hyper *fine,
                         const uint32_t *target) {
    keyed *keys = berth_arena_new_array(arena, keyed, hyper->unit_count);
    uint32_t *parts = berth_arena_new_array(arena, uint32_t, hyper->unit_count);
    for (uint32_t u = 0; u < fine->unit_count; ++u) parts[target[u]]++;
    for (uint32_t which = 0; which < PLACE_ORDERS; ++which) {
        for (uint32_t u = 0; u < hyper->unit_count; ++u) keys[u] = (keyed){0, u};
        for (uint32_t u = 0; u < fine->unit_count; ++u)
            keys[target[u]].key += (double)fine->rank[which][u] / parts[target[u]];
        set_order(arena, hyper, which, keys);
    }
}

// What a device's bytes are divided by under the objective MEMORY: its capacity where every device
// has one, else 1.
static double *memory_shares(berth_arena *arena, const berth_place_problem *problem) {
    double *share_of = berth_arena_new_array(arena, double, problem->kind_count);
    bool all_limited = true;
    for (uint32_t d = 0; d < problem->device_count; ++d)
        all_limited = all_limited && !isinf(problem->kinds[problem->device_kind[d]].capacity_bytes);
    for (uint32_t k = 0; k < problem->kind_count; ++k) {
        double capacity = problem->kinds[k].capacity_bytes;
        share_of[k] = all_limited && capacity > 0 ? capacity : 1;
    }
    return share_of;
}

// Per kind: all devices that are of another one.
static berth_bits *devices_apart(berth_arena *arena, const berth_place_problem *problem) {
    uint32_t word_count = berth_bits_word_count(problem->device_count);
    berth_bits *apart = berth_arena_new_array(arena, berth_bits, problem->kind_count);
    uint64_t *words = berth_arena_new_array(arena, uint64_t, word_count);
    for (uint32_t k = 0; k < problem->kind_count; ++k) {
        memset(words, 0, word_count * sizeof(*words));
        for (uint32_t d = 0; d < problem->device_count; ++d)
            if (problem->device_kind[d] != k) words[d / 64] |= (uint64_t)1 << d % 64;
        apart[k] = berth_bits_from_words(arena, words, word_count);
    }
    return apart;
}

static void fill_units(berth_arena *arena, place_hyper *hyper, const berth_place_problem *problem,
                       berth_place_objective objective) {
    uint32_t kinds = problem->kind_count;
    double *share_of = memory_shares(arena, problem);
    const berth_bits *apart = devices_apart(arena, problem);
    berth_bits all = berth_bits_below(arena, problem->device_count);
    for (uint32_t u = 0; u < hyper->unit_count; ++u) hyper->allowed[u] = all;
    for (uint32_t v = 0; v < problem->node_count; ++v) {
        uint32_t unit = problem->group[v];
        berth_bits *allowed = &hyper->allowed[unit];
        hyper->size[unit] += problem->size_bytes[v];
        if (problem->pin != NULL && problem->pin[v] != BERTH_PLACE_NONE)
            *allowed = berth_bits_and(arena, *allowed, berth_bits_of(arena, problem->pin[v]));
        for (uint32_t k = 0; k < kinds; ++k) {
            double time = problem->time[(size_t)v * kinds + k];
            if (isinf(time)) *allowed = berth_bits_and(arena, *allowed, apart[k]);
            if (objective == BERTH_PLACE_MEMORY)
                hyper->time[(size_t)unit * kinds + k] += problem->size_bytes[v] / share_of[k];
            else if (!isinf(time))
                hyper->time[(size_t)unit * kinds + k] += time;
        }
    }
}

place_hyper *berth_place__hyper_build(berth_arena *arena, const berth_place_problem *problem,
                                      berth_place_objective objective) {
    place_hyper *hyper = create_units(arena, problem->group_count, problem->kind_count);
    hyper->device_count = problem->device_count;
    hyper->device_kind = problem->device_kind;
    double *capacity = berth_arena_new_array(arena, double, problem->device_count);
    for (uint32_t d = 0; d < problem->device_count; ++d)
        capacity[d] = problem->kinds[problem->device_kind[d]].capacity_bytes;
    hyper->capacity = capacity;
    fill_units(arena, hyper, problem, objective);
    net_builder builder;
    builder_open(arena, &builder, hyper, problem->node_count,
                 problem->node_count + problem->edge_count);
    for (uint32_t v = 0; v < problem->node_count && objective != BERTH_PLACE_MEMORY; ++v) {
        uint32_t *pins = hyper->pin + hyper->pin_start[hyper->net_count];
        uint32_t count = 0;
        pins[count++] = problem->group[v];
        for (uint32_t e = problem->succ_start[v]; e < problem->succ_start[v + 1]; ++e)
            pins[count++] = problem->group[problem->succ[e]];
        builder_add(&builder, count, problem->transfer + (size_t)v * problem->kind_count);
    }
    list_nets_of_units(arena, hyper);
    order_groups(arena, hyper, problem);
    return hyper;
}

place_hyper *berth_place__hyper_contract(berth_arena *arena, const place_hyper *fine,
                                         const uint32_t *target, uint32_t unit_count) {
    place_hyper *hyper = create_units(arena, unit_count, fine->kind_count);
    hyper->device_count = fine->device_count;
    hyper->device_kind = fine->device_kind;
    hyper->capacity = fine->capacity;
    uint32_t kinds = fine->kind_count;
    berth_bits all = berth_bits_below(arena, fine->device_count);
    for (uint32_t u = 0; u < unit_count; ++u) hyper->allowed[u] = all;
    for (uint32_t u = 0; u < fine->unit_count; ++u) {
        uint32_t to = target[u];
        hyper->size[to] += fine->size[u];
        hyper->allowed[to] = berth_bits_and(arena, hyper->allowed[to], fine->allowed[u]);
        for (uint32_t k = 0; k < kinds; ++k)
            hyper->time[(size_t)to * kinds + k] += fine->time[(size_t)u * kinds + k];
    }
    net_builder builder;
    builder_open(arena, &builder, hyper, fine->net_count, fine->pin_count);
    for (uint32_t n = 0; n < fine->net_count; ++n) {
        uint32_t *pins = hyper->pin + hyper->pin_start[hyper->net_count];
        uint32_t count = 0;
        for (uint32_t p = fine->pin_start[n]; p < fine->pin_start[n + 1]; ++p)
            pins[count++] = target[fine->pin[p]];
        builder_add(&builder, count, fine->cost + (size_t)n * kinds);
    }
    list_nets_of_units(arena, hyper);
    order_merged(arena, hyper, fine, target);
    return hyper;
}

static uint32_t find_root(uint32_t *parent, uint32_t unit) {
    while (parent[unit] != unit) unit = parent[unit] = parent[parent[unit]];
    return unit;
}

// Dense numbers of the roots, in order of the first unit of each.
static uint32_t number_roots(uint32_t *parent, uint32_t count, uint32_t *target) {
    uint32_t roots = 0;
    for (uint32_t u = 0; u < count; ++u) target[u] = UINT32_MAX;
    for (uint32_t u = 0; u < count; ++u) {
        uint32_t root = find_root(parent, u);
        if (target[root] == UINT32_MAX) target[root] = roots++;
        if (root != u) target[u] = target[root];
    }
    return roots;
}

// Least load that some device has when the net is cut: its cost and the least time of a pin there.
// 0 when the net can be cut for nothing (between devices of kinds that do not pay).
static double cut_load(const place_hyper *hyper, uint32_t net) {
    const double *cost = hyper->cost + (size_t)net * hyper->kind_count;
    uint32_t free_devices = 0;
    double least = INFINITY;
    for (uint32_t d = 0; d < hyper->device_count; ++d) {
        uint32_t kind = hyper->device_kind[d];
        double pin_time = INFINITY;
        for (uint32_t p = hyper->pin_start[net]; p < hyper->pin_start[net + 1]; ++p) {
            uint32_t unit = hyper->pin[p];
            if (!berth_bits_has(hyper->allowed[unit], d)) continue;
            pin_time = fmin(pin_time, hyper->time[(size_t)unit * hyper->kind_count + kind]);
        }
        if (cost[kind] > 0)
            least = fmin(least, cost[kind] + pin_time);
        else if (!isinf(pin_time))
            ++free_devices;
    }
    return free_devices > 1 ? 0 : least;
}

// Joins the pins of a net, unless nothing supports them together: then no placement is below the
// value, and any merging is as good as another.
static void join_pins(berth_arena *arena, const place_hyper *hyper, uint32_t net, uint32_t *parent,
                      berth_bits *allowed) {
    uint32_t begin = hyper->pin_start[net];
    uint32_t end = hyper->pin_start[net + 1];
    berth_bits common = allowed[find_root(parent, hyper->pin[begin])];
    for (uint32_t p = begin + 1; p < end; ++p)
        common = berth_bits_and(arena, common, allowed[find_root(parent, hyper->pin[p])]);
    if (berth_bits_is_empty(common)) return;
    uint32_t root = find_root(parent, hyper->pin[begin]);
    for (uint32_t p = begin + 1; p < end; ++p) parent[find_root(parent, hyper->pin[p])] = root;
    allowed[root] = common;
}

uint32_t berth_place__hyper_bind(berth_arena *arena, const place_hyper *hyper, double value,
                                 uint32_t *target) {
    uint32_t units = hyper->unit_count;
    uint32_t *parent = berth_arena_new_array(arena, uint32_t, units);
    berth_bits *allowed = berth_arena_copy(arena, hyper->allowed, units * sizeof(*allowed));
    for (uint32_t u = 0; u < units; ++u) parent[u] = u;
    for (uint32_t n = 0; n < hyper->net_count; ++n)
        if (cut_load(hyper, n) >= value) join_pins(arena, hyper, n, parent, allowed);
    return number_roots(parent, units, target);
}

double berth_place__hyper_least_time(const place_hyper *hyper, uint32_t unit) {
    double least = INFINITY;
    for (uint32_t d = 0; d < hyper->device_count; ++d)
        if (berth_bits_has(hyper->allowed[unit], d))
            least =
                fmin(least, hyper->time[(size_t)unit * hyper->kind_count + hyper->device_kind[d]]);
    return isinf(least) ? 0 : least;
}

static double net_weight(const place_hyper *hyper, uint32_t net) {
    double most = 0;
    for (uint32_t k = 0; k < hyper->kind_count; ++k)
        most = fmax(most, hyper->cost[(size_t)net * hyper->kind_count + k]);
    return most / (hyper->pin_start[net + 1] - hyper->pin_start[net] - 1);
}

typedef struct matching {
    const place_hyper *hyper;
    const uint32_t *part;
    double weight_limit;
    uint32_t *mate;   // [unit_count] UINT32_MAX = free
    double *weight;   // [unit_count] least time
    double *rating;   // [unit_count] scratch, 0 between uses
    uint32_t *rated;  // [unit_count] scratch
} matching;

// The partner with the strongest nets in common per weight, blurred by chance so that every
// coarsening is another.
static uint32_t best_mate(matching *m, uint32_t unit, uint64_t *random) {
    const place_hyper *hyper = m->hyper;
    uint32_t rated = 0;
    for (uint32_t i = hyper->net_start[unit]; i < hyper->net_start[unit + 1]; ++i) {
        uint32_t net = hyper->net[i];
        double weight = net_weight(hyper, net);
        for (uint32_t p = hyper->pin_start[net]; p < hyper->pin_start[net + 1]; ++p) {
            uint32_t other = hyper->pin[p];
            if (m->rating[other] == 0) m->rated[rated++] = other;
            m->rating[other] += weight;
        }
    }
    uint32_t best = UINT32_MAX;
    double best_rating = 0;
    for (uint32_t i = 0; i < rated; ++i) {
        uint32_t other = m->rated[i];
        double rating = m->rating[other];
        m->rating[other] = 0;
        double together = m->weight[unit] + m->weight[other];
        if (other == unit || m->mate[other] != UINT32_MAX || together > m->weight_limit ||
            !berth_bits_meet(hyper->allowed[unit], hyper->allowed[other]) ||
            (m->part != NULL && m->part[unit] != m->part[other]))
            continue;
        rating *= 1 + (double)(place_random(random) >> 48) / 32768;
        rating /= together + 0.02 * m->weight_limit;
        if (rating <= best_rating) continue;
        best_rating = rating;
        best = other;
    }
    return best;
}

uint32_t berth_place__hyper_match(berth_arena *arena, const place_hyper *hyper,
                                  const uint32_t *part, uint32_t wanted, double weight_limit,
                                  uint64_t *random, uint32_t *target) {
    uint32_t units = hyper->unit_count;
    matching m = {.hyper = hyper, .part = part, .weight_limit = weight_limit};
    m.mate = berth_arena_new_array(arena, uint32_t, units);
    m.weight = berth_arena_new_array(arena, double, units);
    m.rating = berth_arena_new_array(arena, double, units);
    m.rated = berth_arena_new_array(arena, uint32_t, units);
    uint32_t *order = berth_arena_new_array(arena, uint32_t, units);
    uint32_t *parent = berth_arena_new_array(arena, uint32_t, units);
    for (uint32_t u = 0; u < units; ++u) {
        m.mate[u] = UINT32_MAX;
        m.weight[u] = berth_place__hyper_least_time(hyper, u);
        parent[u] = u;
        uint32_t at = place_random_below(random, u + 1);
        order[u] = order[at];
        order[at] = u;
    }
    uint32_t left = units;
    for (uint32_t i = 0; i < units && left > wanted; ++i) {
        uint32_t unit = order[i];
        if (m.mate[unit] != UINT32_MAX) continue;
        uint32_t mate = best_mate(&m, unit, random);
        if (mate == UINT32_MAX) continue;
        m.mate[unit] = mate;
        m.mate[mate] = unit;
        parent[mate] = unit;
        --left;
    }
    return number_roots(parent, units, target);
}
