// Which constants stay in a memory, and when the others are read: a search over plain data.
#include <stdlib.h>
#include <string.h>

#include "compiler/package/stream.h"

typedef struct chooser {
    berth_stream_problem *problem;
    uint64_t *used;               // per step: values and loads
    double *begin_ns, *ready_ns;  // per step
    uint32_t *order;              // of weights, for residence
    uint64_t resident_bytes;
} chooser;

static uint64_t most_used(const chooser *c) {
    uint64_t most = 0;
    for (uint32_t i = 0; i < c->problem->step_count; ++i)
        if (c->used[i] > most) most = c->used[i];
    return most;
}

static const berth_stream_weight *weight_of(const chooser *c, const berth_stream_load *load) {
    return &c->problem->weights[load->weight];
}

// Values, and every constant that is not resident while it is used.
static void count_needed(chooser *c) {
    const berth_stream_problem *problem = c->problem;
    memcpy(c->used, problem->live, problem->step_count * sizeof(*c->used));
    c->resident_bytes = 0;
    for (uint32_t w = 0; w < problem->weight_count; ++w)
        if (problem->weights[w].resident) c->resident_bytes += problem->weights[w].size_bytes;
    for (uint32_t k = 0; k < problem->load_count; ++k) {
        const berth_stream_load *load = &problem->loads[k];
        for (uint32_t i = load->first; i <= load->last && !weight_of(c, load)->resident; ++i)
            c->used[i] += weight_of(c, load)->size_bytes;
    }
}

// ---- which stay ---------------------------------------------------------------------------------

typedef enum preference { SMALLEST, LARGEST, FIRST, LAST, PREFERENCE_COUNT } preference;

typedef struct ranked {
    uint32_t loads;  // what reading it costs, as often as it is read
    double rank;
    uint32_t weight;
} ranked;

static int compare_ranked(const void *left, const void *right) {
    const ranked *a = left, *b = right;
    if (a->loads != b->loads) return a->loads > b->loads ? -1 : 1;
    if (a->rank != b->rank) return a->rank < b->rank ? -1 : 1;
    return (a->weight > b->weight) - (a->weight < b->weight);
}

static void rank_weights(chooser *c, preference preferred) {
    const berth_stream_problem *problem = c->problem;
    ranked *list = berth_arena_new_array(problem->arena, ranked, problem->weight_count);
    for (uint32_t w = 0; w < problem->weight_count; ++w) {
        const berth_stream_weight *weight = &problem->weights[w];
        double by_size = (double)weight->size_bytes, by_step = weight->first;
        double rank = preferred == SMALLEST  ? by_size
                      : preferred == LARGEST ? -by_size
                      : preferred == FIRST   ? by_step
                                             : -by_step;
        list[w] = (ranked){weight->load_count, rank, w};
    }
    if (problem->weight_count) qsort(list, problem->weight_count, sizeof(*list), compare_ranked);
    for (uint32_t w = 0; w < problem->weight_count; ++w) c->order[w] = list[w].weight;
}

// Lets constants stay in the order given, as long as they take at most `share` of the room and what is
// needed at any step still fits beside them. Those that do not fit are passed over; after some of
// these, more are not tried.
static void let_stay(chooser *c, double share) {
    enum { most_passed = 64 };
    berth_stream_problem *problem = c->problem;
    uint64_t limit = (uint64_t)((double)problem->room_bytes * share), passed = 0;
    for (uint32_t w = 0; w < problem->weight_count; ++w) problem->weights[w].resident = false;
    count_needed(c);
    uint64_t most = most_used(c), resident_bytes = 0;  // the first only as of the last count
    for (uint32_t k = 0; k < problem->weight_count && passed < most_passed; ++k) {
        berth_stream_weight *weight = &problem->weights[c->order[k]];
        uint64_t with = resident_bytes + weight->size_bytes;
        if (with > limit) {
            passed++;
            continue;
        }
        weight->resident = true;
        if (most + with > problem->room_bytes) {
            count_needed(c);
            most = most_used(c);
            weight->resident = most + with <= problem->room_bytes;
            passed += !weight->resident;
        }
        if (weight->resident) resident_bytes = with;
    }
    count_needed(c);
}

// ---- when the others are read -------------------------------------------------------------------

static double loads_ns(const chooser *c) {
    double ns = 0;
    for (uint32_t w = 0; w < c->problem->weight_count; ++w)
        if (!c->problem->weights[w].resident)
            ns += c->problem->weights[w].load_ns * c->problem->weights[w].load_count;
    return ns;
}

// Simulates kernels and loads. With `ahead`, every load is moved before its use as far as there is
// room, and no further than the queue of loads can use. Returns the time of all.
static double schedule_loads(chooser *c, bool ahead) {
    berth_stream_problem *problem = c->problem;
    uint64_t room = problem->room_bytes - c->resident_bytes;
    uint32_t done = 0, least_start = 0;  // steps whose begin is known; loads keep their order
    double loads_end_ns = 0, now_ns = 0;
    memset(c->ready_ns, 0, (problem->step_count + 1) * sizeof(*c->ready_ns));
    for (uint32_t k = 0; k <= problem->load_count; ++k) {
        berth_stream_load *load = k < problem->load_count ? &problem->loads[k] : NULL;
        if (load && weight_of(c, load)->resident) continue;
        for (uint32_t end = load ? load->first : problem->step_count; done < end; ++done) {
            c->begin_ns[done] = now_ns > c->ready_ns[done] ? now_ns : c->ready_ns[done];
            now_ns = c->begin_ns[done] + problem->step_ns[done];
        }
        if (!load) break;
        uint64_t size_bytes = weight_of(c, load)->size_bytes;
        uint32_t start = load->first;
        double start_ns = now_ns;
        while (ahead && start > least_start && start_ns > loads_end_ns &&
               c->used[start - 1] + size_bytes <= room) {
            c->used[--start] += size_bytes;
            start_ns = start ? c->begin_ns[start - 1] + problem->step_ns[start - 1] : 0;
        }
        load->start = least_start = start;
        loads_end_ns =
            (start_ns > loads_end_ns ? start_ns : loads_end_ns) + weight_of(c, load)->load_ns;
        if (c->ready_ns[load->first] < loads_end_ns) c->ready_ns[load->first] = loads_end_ns;
    }
    return now_ns + problem->burden * loads_ns(c);
}

static chooser make_chooser(berth_stream_problem *problem) {
    uint32_t steps = problem->step_count + 1;
    return (chooser){.problem = problem,
                     .used = berth_arena_new_array(problem->arena, uint64_t, steps),
                     .begin_ns = berth_arena_new_array(problem->arena, double, steps),
                     .ready_ns = berth_arena_new_array(problem->arena, double, steps),
                     .order =
                         berth_arena_new_array(problem->arena, uint32_t, problem->weight_count)};
}

uint64_t *berth_stream_needed(const berth_stream_problem *problem) {
    uint64_t *needed = berth_arena_new_array(problem->arena, uint64_t, problem->step_count + 1);
    memcpy(needed, problem->live, problem->step_count * sizeof(*needed));
    for (uint32_t k = 0; k < problem->load_count; ++k)
        for (uint32_t i = problem->loads[k].first; i <= problem->loads[k].last; ++i)
            needed[i] += problem->weights[problem->loads[k].weight].size_bytes;
    return needed;
}

double berth_stream_choose_least(berth_stream_problem *problem) {
    chooser c = make_chooser(problem);
    for (uint32_t w = 0; w < problem->weight_count; ++w) problem->weights[w].resident = false;
    count_needed(&c);
    return schedule_loads(&c, false);
}

bool berth_stream_choose(berth_stream_problem *problem, double *out_ns) {
    enum { parts = 16 };  // of the room, for constants that stay
    static const double nearly = 1.01;
    chooser c = make_chooser(problem);
    double best_ns = -1, best_loads_ns = 0, best_share = 0;
    int best = 0;
    for (int preferred = 0; preferred < PREFERENCE_COUNT; ++preferred) {
        rank_weights(&c, (preference)preferred);
        for (int part = 0; part <= parts; ++part) {
            let_stay(&c, (double)part / parts);
            if (most_used(&c) + c.resident_bytes > problem->room_bytes) continue;
            double ns = schedule_loads(&c, true), read_ns = loads_ns(&c);
            bool better = best_ns < 0 || ns * nearly < best_ns ||
                          (ns < best_ns * nearly && read_ns < best_loads_ns);
            if (!better) continue;
            best_ns = ns;
            best_loads_ns = read_ns;
            best = preferred;
            best_share = (double)part / parts;
        }
    }
    if (best_ns < 0) return false;
    rank_weights(&c, (preference)best);
    let_stay(&c, best_share);
    *out_ns = schedule_loads(&c, true);
    return true;
}
