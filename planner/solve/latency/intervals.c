#include "planner/solve/latency/intervals.h"

#include <math.h>
#include <string.h>

enum { MOST_STATES = 512, MOST_KINDS = 8, MOST_PREFIXES = 4 << 20 };

// The best placement of the units before a position that uses so many devices of each kind.
typedef struct prefix {
    double bound;     // completions, each with the shortest way to the end; INFINITY = none
    double finish;    // of the subgraph that ends here
    uint32_t start;   // position where the last step began
    uint32_t state;   // there
    uint32_t device;  // of the subgraph; NONE = one plain unit
    uint32_t kind;
} prefix;

typedef struct cutter {
    berth_place_search *search;
    const berth_place_problem *problem;
    const berth_solve__latency *latency;
    const berth_solve__units *units;
    const uint32_t *order;                   // of units
    uint32_t *position;                      // [node_count] of its unit
    uint32_t kind_count, kinds[MOST_KINDS];  // with one subgraph
    uint32_t stride[MOST_KINDS], room[MOST_KINDS];
    uint32_t state_count;
    uint32_t *pinned;  // [device_count] nodes pinned there
    uint32_t *plain;   // [node_count] device where it is by itself, NONE = nowhere
    prefix *prefixes;  // [(unit_count + 1) * state_count]
    double *done;      // [node_count] of the state that is lengthened
    uint32_t *read;    // [node_count] stamps
    uint32_t *left;    // [node_count] successors still outside
    uint32_t *open;    // [node_count] nodes of the subgraph with successors outside
    uint32_t stamp;
    uint32_t grain;  // cuts are at multiples of it
} cutter;

static double time_on(const cutter *c, uint32_t node, uint32_t kind) {
    return c->problem->time[(size_t)node * c->problem->kind_count + kind];
}

// States are counts of devices used, in mixed radix.
static bool number_states(cutter *c) {
    const berth_place_problem *problem = c->problem;
    c->state_count = 1;
    for (uint32_t n = 0; problem->pin && n < problem->node_count; ++n)
        if (problem->pin[n] != BERTH_PLACE_NONE) c->pinned[problem->pin[n]]++;
    for (uint32_t k = 0; k < problem->kind_count; ++k) {
        if (problem->kinds[k].concurrent || problem->kinds[k].device_count == 0) continue;
        if (c->kind_count == MOST_KINDS) return false;
        uint32_t first = berth_place_kind_first(problem, k), room = 0;
        for (uint32_t d = first; d < first + problem->kinds[k].device_count; ++d)
            room += c->pinned[d] == 0;
        c->kinds[c->kind_count] = k;
        c->room[c->kind_count] = room;
        c->stride[c->kind_count++] = c->state_count;
        c->state_count *= room + 1;
        if (c->state_count > MOST_STATES) return false;
    }
    return (uint64_t)c->units->graph->node_count * c->state_count <= MOST_PREFIXES;
}

static void choose_plain(cutter *c) {
    const berth_place_problem *problem = c->problem;
    for (uint32_t g = 0; g < problem->group_count; ++g) {
        uint32_t best = BERTH_PLACE_NONE;
        double least = INFINITY;
        for (uint32_t d = 0; d < problem->device_count; ++d) {
            if (c->latency->single[d] || !c->latency->fits[(size_t)g * problem->device_count + d] ||
                c->latency->group_bytes[g] > problem->kinds[problem->device_kind[d]].capacity_bytes)
                continue;
            double sum = 0;
            for (uint32_t i = problem->group_start[g]; i < problem->group_start[g + 1]; ++i)
                sum += time_on(c, problem->group_nodes[i], problem->device_kind[d]);
            if (sum >= least) continue;
            least = sum;
            best = d;
        }
        for (uint32_t i = problem->group_start[g]; i < problem->group_start[g + 1]; ++i)
            c->plain[problem->group_nodes[i]] = best;
    }
}

// Completions of all nodes before `at` in the placement that the prefix stands for.
static void replay(cutter *c, uint32_t at, uint32_t state) {
    const berth_place_problem *problem = c->problem;
    uint32_t steps = 0;
    uint32_t *trail = c->open;  // positions where steps end; free at this time
    uint32_t *trail_state = c->left;
    for (uint32_t p = at, s = state; p > 0;) {
        trail[steps] = p;
        trail_state[steps++] = s;
        const prefix *step = &c->prefixes[(size_t)p * c->state_count + s];
        p = step->start;
        s = step->state;
    }
    while (steps-- > 0) {
        const prefix *step =
            &c->prefixes[(size_t)trail[steps] * c->state_count + trail_state[steps]];
        for (uint32_t p = step->start; p < trail[steps]; ++p) {
            uint32_t unit = c->order[p];
            for (uint32_t i = c->units->start[unit]; i < c->units->start[unit + 1]; ++i) {
                uint32_t node = c->units->nodes[i];
                if (step->kind != BERTH_PLACE_NONE) {
                    c->done[node] = step->finish;
                    continue;
                }
                double ready = 0;
                for (uint32_t e = problem->pred_start[node]; e < problem->pred_start[node + 1]; ++e)
                    ready = fmax(ready, c->done[problem->pred[e]]);
                c->done[node] = ready + time_on(c, node, problem->device_kind[c->plain[node]]);
            }
        }
    }
}

static void offer_prefix(cutter *c, uint32_t at, uint32_t state, prefix step) {
    prefix *known = &c->prefixes[(size_t)at * c->state_count + state];
    if (step.bound < known->bound) *known = step;
}

// Takes one more unit into the step, each of its nodes by itself. False: it has no device for that.
static bool take_plain(cutter *c, prefix *step, uint32_t unit) {
    const berth_place_problem *problem = c->problem;
    for (uint32_t i = c->units->start[unit]; i < c->units->start[unit + 1]; ++i) {
        uint32_t node = c->units->nodes[i];
        if (c->plain[node] == BERTH_PLACE_NONE) return false;
        double ready = 0, after = 0;
        for (uint32_t e = problem->pred_start[node]; e < problem->pred_start[node + 1]; ++e)
            ready = fmax(ready, c->done[problem->pred[e]]);
        for (uint32_t e = problem->succ_start[node]; e < problem->succ_start[node + 1]; ++e)
            after = fmax(after, c->latency->tail[problem->succ[e]]);
        c->done[node] = ready + time_on(c, node, problem->device_kind[c->plain[node]]);
        step->bound = fmax(step->bound, c->done[node] + after);
    }
    return true;
}

static void extend_plain(cutter *c, uint32_t at, uint32_t state) {
    uint32_t count = c->units->graph->node_count;
    uint32_t end = c->grain < count - at ? at + c->grain : count;
    prefix step = {.bound = c->prefixes[(size_t)at * c->state_count + state].bound,
                   .start = at,
                   .state = state,
                   .device = BERTH_PLACE_NONE,
                   .kind = BERTH_PLACE_NONE};
    for (uint32_t p = at; p < end; ++p)
        if (!take_plain(c, &step, c->order[p])) return;
    offer_prefix(c, end, state, step);
}

typedef struct segment {
    uint32_t kind, begin;  // position of its first unit
    double start, load, writes, bytes;
    uint32_t open_count;
    uint32_t pin, pin_count;  // device its nodes are pinned to
} segment;

// Takes one more node into the segment. False when no longer segment can hold it either.
static bool take_node(cutter *c, segment *s, uint32_t node) {
    const berth_place_problem *problem = c->problem;
    double time = time_on(c, node, s->kind);
    s->bytes += problem->size_bytes[node];
    if (isinf(time) || s->bytes > problem->kinds[s->kind].capacity_bytes) return false;
    uint32_t pin = problem->pin ? problem->pin[node] : BERTH_PLACE_NONE;
    if (pin != BERTH_PLACE_NONE) {
        if (problem->device_kind[pin] != s->kind) return false;
        if (s->pin != BERTH_PLACE_NONE && s->pin != pin) return false;
        s->pin = pin;
        s->pin_count++;
    }
    s->load += time;
    for (uint32_t e = problem->pred_start[node]; e < problem->pred_start[node + 1]; ++e) {
        uint32_t pred = problem->pred[e];
        double transfer = problem->transfer[(size_t)pred * problem->kind_count + s->kind];
        if (c->position[pred] >= s->begin) {
            if (--c->left[pred] == 0) s->writes -= transfer;
        } else if (c->read[pred] != c->stamp) {
            c->read[pred] = c->stamp;
            s->load += transfer;
            s->start = fmax(s->start, c->done[pred]);
        }
    }
    c->left[node] = problem->succ_start[node + 1] - problem->succ_start[node];
    if (c->left[node] > 0) {
        s->writes += problem->transfer[(size_t)node * problem->kind_count + s->kind];
        c->open[s->open_count++] = node;
    }
    return true;
}

// Longest shortest way from what the segment feeds outside.
static double way_after(cutter *c, segment *s, uint32_t end) {
    const berth_place_problem *problem = c->problem;
    double most = 0;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->open_count; ++i) {
        uint32_t node = c->open[i];
        if (c->left[node] == 0) continue;
        c->open[kept++] = node;
        for (uint32_t e = problem->succ_start[node]; e < problem->succ_start[node + 1]; ++e)
            if (c->position[problem->succ[e]] >= end)
                most = fmax(most, c->latency->tail[problem->succ[e]]);
    }
    s->open_count = kept;
    return most;
}

static void extend_segment(cutter *c, uint32_t at, uint32_t state, uint32_t kind_index) {
    uint32_t used = state / c->stride[kind_index] % (c->room[kind_index] + 1);
    segment s = {.kind = c->kinds[kind_index], .begin = at, .pin = BERTH_PLACE_NONE};
    double bound = c->prefixes[(size_t)at * c->state_count + state].bound;
    uint64_t work = 0;
    c->stamp++;
    for (uint32_t end = at; end < c->units->graph->node_count;) {
        uint32_t unit = c->order[end++];
        for (uint32_t i = c->units->start[unit]; i < c->units->start[unit + 1]; ++i) {
            if (take_node(c, &s, c->units->nodes[i])) continue;
            (void)berth_place_spent(c->search, work / 128);
            return;
        }
        work += 2;
        if (end % c->grain != 0 && end != c->units->graph->node_count) continue;
        work += s.open_count;
        double finish = s.start + s.load + s.writes;
        prefix step = {.bound = fmax(bound, finish + way_after(c, &s, end)),
                       .finish = finish,
                       .start = at,
                       .state = state,
                       .device = s.pin,
                       .kind = s.kind};
        if (s.pin != BERTH_PLACE_NONE) {
            if (s.pin_count == c->pinned[s.pin]) offer_prefix(c, end, state, step);
        } else if (used < c->room[kind_index]) {
            offer_prefix(c, end, state + c->stride[kind_index], step);
        }
    }
    (void)berth_place_spent(c->search, work / 128);
}

// Writes down the placement that ends in the best state; unpinned subgraphs take free devices.
static bool write_assignment(cutter *c, uint32_t *assignment) {
    const berth_place_problem *problem = c->problem;
    uint32_t at = c->units->graph->node_count, state = 0;
    const prefix *ends = &c->prefixes[(size_t)at * c->state_count];
    for (uint32_t s = 1; s < c->state_count; ++s)
        if (ends[s].bound < ends[state].bound) state = s;
    if (isinf(ends[state].bound)) return false;
    uint32_t next[MOST_KINDS];
    for (uint32_t k = 0; k < c->kind_count; ++k)
        next[k] = berth_place_kind_first(problem, c->kinds[k]);
    while (at > 0) {
        const prefix *step = &c->prefixes[(size_t)at * c->state_count + state];
        uint32_t device = step->device;
        for (uint32_t k = 0; k < c->kind_count; ++k) {
            if (step->kind != c->kinds[k] || device != BERTH_PLACE_NONE) continue;
            while (c->pinned[next[k]] > 0) next[k]++;
            device = next[k]++;
        }
        for (uint32_t p = step->start; p < at; ++p)
            for (uint32_t i = c->units->start[c->order[p]]; i < c->units->start[c->order[p] + 1];
                 ++i) {
                uint32_t node = c->units->nodes[i];
                assignment[node] = step->kind == BERTH_PLACE_NONE ? c->plain[node] : device;
            }
        at = step->start;
        state = step->state;
    }
    return true;
}

static bool fill_prefixes(cutter *c) {
    uint32_t count = c->units->graph->node_count;
    for (size_t i = 0; i < ((size_t)count + 1) * c->state_count; ++i)
        c->prefixes[i].bound = INFINITY;
    c->prefixes[0] = (prefix){.bound = 0, .kind = BERTH_PLACE_NONE};
    for (uint32_t at = 0; at < count; at += c->grain)
        for (uint32_t state = 0; state < c->state_count; ++state) {
            if (isinf(c->prefixes[(size_t)at * c->state_count + state].bound)) continue;
            replay(c, at, state);
            extend_plain(c, at, state);
            for (uint32_t k = 0; k < c->kind_count; ++k) extend_segment(c, at, state, k);
            if (berth_place_spent(c->search, 1 + at / 256)) return false;
        }
    return true;
}

bool berth_solve__latency_intervals(berth_place_search *search, const berth_solve__latency *latency,
                                    const berth_solve__units *units, const uint32_t *order,
                                    uint32_t places, uint32_t *assignment) {
    const berth_place_problem *problem = search->problem;
    berth_arena *scratch = berth_arena_create_child(search->arena);
    cutter c = {
        .search = search, .problem = problem, .latency = latency, .units = units, .order = order};
    uint32_t nodes = problem->node_count;
    c.position = berth_arena_new_array(scratch, uint32_t, nodes);
    c.pinned = berth_arena_new_array(scratch, uint32_t, problem->device_count);
    c.plain = berth_arena_new_array(scratch, uint32_t, nodes);
    c.done = berth_arena_new_array(scratch, double, nodes);
    c.read = berth_arena_new_array(scratch, uint32_t, nodes);
    c.left = berth_arena_new_array(scratch, uint32_t, (size_t)nodes + 1);
    c.open = berth_arena_new_array(scratch, uint32_t, (size_t)nodes + 1);
    for (uint32_t p = 0; p < units->graph->node_count; ++p)
        for (uint32_t i = units->start[order[p]]; i < units->start[order[p] + 1]; ++i)
            c.position[units->nodes[i]] = p;
    bool found = number_states(&c);
    c.grain = units->graph->node_count / places + 1;
    if (found) {
        choose_plain(&c);
        c.prefixes = berth_arena_new_array(scratch, prefix,
                                           ((size_t)units->graph->node_count + 1) * c.state_count);
        found = fill_prefixes(&c) && write_assignment(&c, assignment);
    }
    berth_arena_destroy(scratch);
    return found;
}
