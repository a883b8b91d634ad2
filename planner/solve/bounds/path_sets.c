#include "planner/solve/bounds/path_sets.h"

#include <math.h>
#include <string.h>

#include "planner/solve/latency/gain.h"

enum {
    MOST_KINDS = 8,
    MOST_LOOKS = 2000,
    STEPS = 48,        // between looks
    FEWEST_LOOKS = 6,  // that the budget must be enough for, by what the first costs
    LOOK_EVERY = 20,   // looks, to see whether they gain
    RANGES = 32,
    TRIES = 6,   // prices for a range
    RECENT = 4,  // looks, whose gain shows what more would bring
    MOST_SETS = 192,
    MOST_PLACES = 8000000,  // for the sets' nodes and edges
    WORK_PER_NODE = 400,
};
static const double FIRST_BLUR = 0.1;  // of the smooth maximum, relative to the best value
static const double LEAST_BLUR = 5e-4;
static const double FIRST_SOFT = 0.3;  // of what is left of a node that is in no subgraph
static const double LEAST_SOFT = 0.02;
static const double FIRST_STEP = 30;         // of a step's part, 2 / (i + this)
static const double LATE = 3;                // later steps since a look count for more in the mean
static const double DRAW_BACK = 0.7;         // towards the best weights so far, before a look
static const double LEAST_LOAD = 1.0 / 256;  // of the best value, where the ranges begin
static const double STAND_IN = 10;  // times a device's time, for nodes that cannot be by themselves
static const double FIRST_TURN = 1;  // relative change of the price of memory
static const double LEAST_TURN = 0.03;
static const double TURN_LEFT = 0.95;   // after each look
static const double BYTE_SHARE = 0.1;   // of a gain, that all memory is to cost at first
static const double LEAST_GAIN = 1e-3;  // relative, of LOOK_EVERY looks, or of a price, to go on
static const double FIRST_PRICE = 0.3;  // of a unit of load
static const double LEAST_PRICE = 1e-6;
static const double ROUNDING = 1e-9;  // what the sums may be wrong by, relatively

typedef struct range {
    double least, most;  // loads
    double price;        // of a unit of load
    double byte_price;
    double turn;  // how much the byte price changes
    double gain;  // as it was looked at last
} range;

typedef struct side {  // a kind of devices with one subgraph each
    uint32_t kind;
    double devices, capacity;
    double *time;  // [group_count] INFINITY = not there
    berth_solve__gain *network;
    range ranges[RANGES];
    bool limited;  // not everything fits
} side;

typedef struct known_set {  // a subgraph that a look found
    uint32_t side, node_count, edge_count;
    uint32_t *nodes;  // in it
    uint32_t *edges;  // that enter it
    double load;
} known_set;

typedef berth_solve__path_sets setter;

typedef struct weights {
    double *flow;       // [node_count] of the paths through it
    double *worth;      // [node_count] flow times what counts of its time by itself
    double *edge_flow;  // [edge_count]
} weights;

struct berth_solve__path_sets {
    berth_place_search *search;
    const berth_place_problem *problem;
    berth_arena *arena;
    uint32_t side_count;
    side sides[MOST_KINDS];
    known_set sets[MOST_SETS];  // the last ones
    uint64_t set_count;         // ever; the last `set_limit` are kept
    uint32_t set_limit;
    uint32_t *pred_edge;  // [edge_count]
    double *plain;        // [node_count] time by itself
    // What the paths' lengths are made of: means over sets.
    double *covered;                     // [node_count] how often it is in one
    double *entry;                       // [edge_count] cost of entering
    double *begin;                       // [node_count] cost of beginning in one
    double *head, *most, *sum, *factor;  // [node_count] of the smooth maximum
    weights now, mean, best;  // of the last step, of those since the last look, and those of the
                              // best bound so far
    double blur, soft;
    // The budget:
    berth_place_since since;
    double limit;  // share that may be used
    uint64_t work;
    // Where it is:
    uint32_t looks;
    double known;           // the best value as it was first
    double proven;          // bound of the best weights
    double seen;            // the bound some looks ago
    double recent[RECENT];  // what was proven at the last looks
    bool ended;
};

// Nodes that cannot be by themselves get a time as if they could: that makes the bound no larger.
static void find_plain_times(setter *s) {
    const berth_place_problem *problem = s->problem;
    for (uint32_t v = 0; v < problem->node_count; ++v) {
        double plain = INFINITY, other = 0;
        for (uint32_t k = 0; k < problem->kind_count; ++k) {
            double time = problem->time[(size_t)v * problem->kind_count + k];
            if (isinf(time) || problem->kinds[k].device_count == 0) continue;
            if (problem->kinds[k].concurrent)
                plain = fmin(plain, time);
            else
                other = fmax(other, time);
        }
        s->plain[v] = isinf(plain) ? STAND_IN * other : plain;
    }
}

static void add_side(berth_arena *arena, setter *s, uint32_t kind, double value) {
    const berth_place_problem *problem = s->problem;
    side *d = &s->sides[s->side_count++];
    d->kind = kind;
    d->devices = problem->kinds[kind].device_count;
    d->capacity = problem->kinds[kind].capacity_bytes;
    d->network = berth_solve__gain_create(arena, problem, kind);
    d->time = berth_arena_new_array(arena, double, problem->group_count);
    double bytes = 0;
    for (uint32_t v = 0; v < problem->node_count; ++v) {
        d->time[problem->group[v]] += problem->time[(size_t)v * problem->kind_count + kind];
        bytes += problem->size_bytes[v];
    }
    d->limited = bytes > d->capacity;
    double ratio = pow(1 / LEAST_LOAD, 1.0 / (RANGES - 1)), load = value * LEAST_LOAD;
    for (uint32_t j = 0; j < RANGES; ++j, load *= ratio)
        d->ranges[j] = (range){.least = j > 0 ? d->ranges[j - 1].most : 0,
                               .most = load * (1 + ROUNDING),
                               .price = FIRST_PRICE,
                               .turn = FIRST_TURN};
}

static weights new_weights(berth_arena *arena, const berth_place_problem *problem) {
    return (weights){.flow = berth_arena_new_array(arena, double, problem->node_count),
                     .worth = berth_arena_new_array(arena, double, problem->node_count),
                     .edge_flow = berth_arena_new_array(arena, double, problem->edge_count)};
}

// False where no kind of device holds one subgraph, or too many do.
static bool create(berth_arena *arena, setter *s, berth_place_search *search) {
    const berth_place_problem *problem = search->problem;
    uint32_t nodes = problem->node_count, edges = problem->edge_count;
    *s = (setter){.search = search, .problem = problem, .arena = arena};
    s->known = search->best_value;
    s->proven = -INFINITY;
    s->set_limit = MOST_PLACES / (nodes + edges + 1);
    if (s->set_limit < MOST_KINDS) s->set_limit = MOST_KINDS;
    if (s->set_limit > MOST_SETS) s->set_limit = MOST_SETS;
    s->plain = berth_arena_new_array(arena, double, nodes);
    s->covered = berth_arena_new_array(arena, double, nodes);
    s->entry = berth_arena_new_array(arena, double, edges);
    s->begin = berth_arena_new_array(arena, double, nodes);
    s->head = berth_arena_new_array(arena, double, nodes);
    s->most = berth_arena_new_array(arena, double, nodes);
    s->sum = berth_arena_new_array(arena, double, nodes);
    s->factor = berth_arena_new_array(arena, double, nodes);
    s->now = new_weights(arena, problem);
    s->mean = new_weights(arena, problem);
    s->best = new_weights(arena, problem);
    s->pred_edge = berth_arena_new_array(arena, uint32_t, edges);
    uint32_t *at = berth_arena_copy(arena, problem->pred_start, (nodes + 1) * sizeof(uint32_t));
    for (uint32_t e = 0; e < edges; ++e) s->pred_edge[at[problem->edge_to[e]]++] = e;
    find_plain_times(s);
    for (uint32_t k = 0; k < problem->kind_count; ++k) {
        if (problem->kinds[k].concurrent || problem->kinds[k].device_count == 0) continue;
        if (s->side_count == MOST_KINDS) return false;
        add_side(arena, s, k, search->best_value);
    }
    return s->side_count > 0;
}

// Takes the work off the budget; false where the share of it, or all, is used.
static bool pay(setter *s) {
    bool spent = berth_place_spent(s->search, s->work / WORK_PER_NODE);
    s->work %= WORK_PER_NODE;
    return !spent && berth_place_used(s->search, s->since) <= s->limit;
}

static bool begins(const setter *s, uint32_t node) {
    return s->problem->pred_start[node] == s->problem->pred_start[node + 1];
}

static bool enters(const setter *s, const bool *inside, uint32_t edge) {
    const berth_place_problem *problem = s->problem;
    return inside[problem->group[problem->edge_to[edge]]] &&
           !inside[problem->group[problem->edge_from[edge]]];
}

// ------------------------------------------------------------------------------------------------
// weights of the paths

static double along(const setter *s, uint32_t p) {
    return s->head[s->problem->pred[p]] + s->entry[s->pred_edge[p]];
}

// Heads, and the smooth maximum over the paths: the weights of their ends.
static void look_forwards(setter *s) {
    const berth_place_problem *problem = s->problem;
    double largest = 0, all = 0;
    for (uint32_t i = 0; i < problem->node_count; ++i) {
        uint32_t v = problem->topological[i];
        uint32_t first = problem->pred_start[v], end = problem->pred_start[v + 1];
        double most = first == end ? s->begin[v] : 0, sum = 0;
        for (uint32_t e = first; e < end; ++e) most = fmax(most, along(s, e));
        for (uint32_t e = first; e < end; ++e) sum += exp((along(s, e) - most) / s->blur);
        s->most[v] = most;
        s->sum[v] = sum;
        double rest = (1 - s->covered[v]) / s->soft;
        s->factor[v] = 1 / (1 + exp(-rest));
        double left = s->soft * (rest > 0 ? rest + log1p(exp(-rest)) : log1p(exp(rest)));
        s->head[v] = s->plain[v] * left + most + (sum > 1 ? s->blur * log(sum) : 0);
        largest = fmax(largest, s->head[v]);
    }
    for (uint32_t v = 0; v < problem->node_count; ++v) {
        bool ends = problem->succ_start[v + 1] == problem->succ_start[v];
        s->now.flow[v] = ends ? exp((s->head[v] - largest) / s->blur) : 0;
        all += s->now.flow[v];
    }
    for (uint32_t v = 0; v < problem->node_count; ++v) s->now.flow[v] /= all;
}

// Weights of nodes and edges.
static void look_backwards(setter *s) {
    const berth_place_problem *problem = s->problem;
    for (uint32_t i = problem->node_count; i-- > 0;) {
        uint32_t v = problem->topological[i];
        for (uint32_t e = problem->pred_start[v]; e < problem->pred_start[v + 1]; ++e) {
            double flow = s->now.flow[v] * exp((along(s, e) - s->most[v]) / s->blur) / s->sum[v];
            s->now.edge_flow[s->pred_edge[e]] = flow;
            s->now.flow[problem->pred[e]] += flow;
        }
        s->now.worth[v] = s->now.flow[v] * s->plain[v] * s->factor[v];
    }
}

// Moves `to` towards `from`: a mean of weights is weights as well.
static void draw(const berth_place_problem *problem, weights *to, const weights *from,
                 double part) {
    for (uint32_t v = 0; v < problem->node_count; ++v) {
        to->flow[v] += part * (from->flow[v] - to->flow[v]);
        to->worth[v] += part * (from->worth[v] - to->worth[v]);
    }
    for (uint32_t e = 0; e < problem->edge_count; ++e)
        to->edge_flow[e] += part * (from->edge_flow[e] - to->edge_flow[e]);
}

// ------------------------------------------------------------------------------------------------
// subgraphs

static double gain_of(const setter *s, const known_set *set, const weights *w) {
    double gain = 0, entered = 0;
    for (uint32_t i = 0; i < set->node_count; ++i) {
        uint32_t v = set->nodes[i];
        gain += w->worth[v];
        if (begins(s, v)) entered += w->flow[v];
    }
    for (uint32_t i = 0; i < set->edge_count; ++i) entered += w->edge_flow[set->edges[i]];
    return gain - entered * set->load;
}

// In place of the one that was found first, where there are enough. One that gains nothing makes way
// for the next.
static void keep_set(setter *s, uint32_t at, const bool *inside, double load) {
    const berth_place_problem *problem = s->problem;
    known_set *set = &s->sets[s->set_count % s->set_limit];
    if (!set->nodes) {
        set->nodes = berth_arena_new_array(s->arena, uint32_t, problem->node_count);
        set->edges = berth_arena_new_array(s->arena, uint32_t, problem->edge_count);
    }
    set->side = at;
    set->load = load;
    set->node_count = set->edge_count = 0;
    for (uint32_t v = 0; v < problem->node_count; ++v)
        if (inside[problem->group[v]]) set->nodes[set->node_count++] = v;
    for (uint32_t e = 0; e < problem->edge_count; ++e)
        if (enters(s, inside, e)) set->edges[set->edge_count++] = e;
    if (gain_of(s, set, &s->mean) > 0) s->set_count++;
}

static const known_set *best_set(const setter *s, uint32_t at) {
    const known_set *best = NULL;
    double most = 0;
    for (uint32_t i = 0; i < s->set_limit && i < s->set_count; ++i) {
        double gain = s->sets[i].side == at ? gain_of(s, &s->sets[i], &s->now) : 0;
        if (gain <= most) continue;
        most = gain;
        best = &s->sets[i];
    }
    return best;
}

// Makes `part` of the paths' lengths what the sets that gain most make of them.
static void mix(setter *s, double part) {
    const berth_place_problem *problem = s->problem;
    for (uint32_t v = 0; v < problem->node_count; ++v) {
        s->covered[v] *= 1 - part;
        s->begin[v] *= 1 - part;
    }
    for (uint32_t e = 0; e < problem->edge_count; ++e) s->entry[e] *= 1 - part;
    for (uint32_t at = 0; at < s->side_count; ++at) {
        const known_set *best = best_set(s, at);
        double more = part * s->sides[at].devices;
        for (uint32_t i = 0; best && i < best->node_count; ++i) {
            uint32_t v = best->nodes[i];
            s->covered[v] += more;
            if (begins(s, v)) s->begin[v] += more * best->load;
        }
        for (uint32_t i = 0; best && i < best->edge_count; ++i)
            s->entry[best->edges[i]] += more * best->load;
    }
}

// Steps over the sets that are known; s->mean is the mean of their weights.
static void take_steps(setter *s, uint32_t look) {
    const berth_place_problem *problem = s->problem;
    for (uint32_t i = 0; i < STEPS; ++i) {
        double step = (double)look * STEPS + i + 1;
        s->blur = fmax(FIRST_BLUR / sqrt(step), LEAST_BLUR) * s->search->best_value;
        s->soft = fmax(FIRST_SOFT / sqrt(step), LEAST_SOFT);
        look_forwards(s);
        look_backwards(s);
        draw(problem, &s->mean, &s->now, LATE / (i + LATE));
        mix(s, 2.0 / (step + FIRST_STEP));
        s->work += 8 * ((uint64_t)problem->node_count + problem->edge_count);
    }
}

// ------------------------------------------------------------------------------------------------
// what a subgraph gains

typedef struct look {
    double gain;         // what no set of the range gains more than
    double load, bytes;  // of that set
    double plain;        // what it gains apart from the price of its load
} look;

// Of the set that was found last.
static double load_of(const side *d, const berth_place_problem *problem, double *out_bytes) {
    const bool *inside = d->network->inside;
    double load = 0;
    *out_bytes = 0;
    for (uint32_t g = 0; g < problem->group_count; ++g) {
        if (!inside[g]) continue;
        load += d->time[g];
        *out_bytes += problem->group_bytes[g];
    }
    for (uint32_t u = 0; u < problem->node_count; ++u) {
        bool here = inside[problem->group[u]], split = false;
        for (uint32_t i = problem->succ_start[u]; i < problem->succ_start[u + 1] && !split; ++i)
            split = inside[problem->group[problem->succ[i]]] != here;
        if (split) load += problem->transfer[(size_t)u * problem->kind_count + d->kind];
    }
    return load;
}

static look look_once(setter *s, side *d, const range *r) {
    const berth_place_problem *problem = s->problem;
    berth_solve__gain *network = d->network;
    memset(network->gain, 0, problem->group_count * sizeof(double));
    for (uint32_t v = 0; v < problem->node_count; ++v)
        network->gain[problem->group[v]] +=
            s->mean.worth[v] - (begins(s, v) ? r->least * s->mean.flow[v] : 0);
    for (uint32_t g = 0; g < problem->group_count; ++g) {
        double cost = r->price * d->time[g] + r->byte_price * problem->group_bytes[g];
        network->gain[g] = isinf(d->time[g]) ? -INFINITY : network->gain[g] - cost;
    }
    for (uint32_t e = 0; e < problem->edge_count; ++e)
        network->enter[e] = r->least * s->mean.edge_flow[e];
    network->transfer_cost = r->price;
    s->work += problem->edge_count / 2;
    look l;
    double best = berth_solve__gain_best(network, &s->work);
    l.gain = best + r->price * r->most + (d->limited ? r->byte_price * d->capacity : 0);
    l.load = load_of(d, problem, &l.bytes);
    l.plain = best + r->price * l.load;
    return l;
}

static void turn_byte_price(const side *d, range *r, const look *l) {
    if (l->bytes <= d->capacity)
        r->byte_price /= 1 + r->turn;
    else if (r->byte_price == 0)
        r->byte_price = BYTE_SHARE * l->gain / d->capacity;
    else
        r->byte_price *= 1 + r->turn;
    r->turn = fmax(r->turn * TURN_LEFT, LEAST_TURN);
}

// Looks at a range until it is sure to gain no more than `enough`, or its price is right: that of the
// intersection of the best lines, as a set's gain is linear in it.
static double look_at_range(setter *s, uint32_t at, range *r, double enough) {
    side *d = &s->sides[at];
    double gain = INFINITY;
    look low = {0}, high = {0};
    bool has_low = false, has_high = false;
    for (int tries = 0; tries < TRIES; ++tries) {
        look l = look_once(s, d, r);
        double before = gain;
        gain = fmin(gain, l.gain);
        if (l.gain > enough && l.bytes <= d->capacity) keep_set(s, at, d->network->inside, l.load);
        if (d->limited && tries == 0) turn_byte_price(d, r, &l);
        if (gain <= enough || (tries > 1 && gain > before * (1 - LEAST_GAIN))) break;
        bool over = l.load > r->most;
        *(over ? &low : &high) = l;
        *(over ? &has_low : &has_high) = true;
        if (has_low && has_high)
            r->price = fmax(0, (low.plain - high.plain) / (low.load - high.load));
        else if (r->price == 0)
            break;
        else
            r->price *= has_low ? 2 : 0.5;
        if (r->price < LEAST_PRICE && !has_low) r->price = 0;
    }
    r->gain = gain;
    return gain;
}

// The most that the subgraphs gain together; INFINITY where the budget does not last.
static double look_at_sides(setter *s) {
    double sum = 0;
    for (uint32_t at = 0; at < s->side_count; ++at) {
        side *d = &s->sides[at];
        double best = 0;
        bool seen[RANGES] = {false};
        for (uint32_t i = 0; i < RANGES; ++i) {  // those first that gained most
            uint32_t next = RANGES;
            for (uint32_t j = 0; j < RANGES; ++j)
                if (!seen[j] && (next == RANGES || d->ranges[j].gain > d->ranges[next].gain))
                    next = j;
            seen[next] = true;
            best = fmax(best, look_at_range(s, at, &d->ranges[next], best));
            if (!pay(s)) return INFINITY;
        }
        sum += d->devices * best;
    }
    return sum;
}

// ------------------------------------------------------------------------------------------------
// all together

// Whether the rest of the share, with looks that gain as much as the last ones, comes to less than what
// is proven anyway: looks gain less and less. Or whether the last looks gained little.
static bool is_over(setter *s, uint32_t first, double share) {
    uint32_t here = s->looks - first;  // looks before, with this share
    double before = s->recent[s->looks % RECENT];
    s->recent[s->looks % RECENT] = s->proven;
    if (here >= RECENT) {
        double each = berth_place_used(s->search, s->since) / (here + 1);
        double hope = s->proven + (s->proven - before) / RECENT * fmax(0, share / each - here - 1);
        if (hope < s->search->lower_bound) return true;
    }
    if (s->looks % LOOK_EVERY != LOOK_EVERY - 1) return false;
    if (s->proven <= s->seen * (1 + LEAST_GAIN)) return true;
    s->seen = s->proven;
    return false;
}

static void climb(setter *s, double share) {
    const berth_place_problem *problem = s->problem;
    uint32_t first = s->looks;
    s->since = berth_place_now(s->search);
    for (; s->looks < MOST_LOOKS; ++s->looks) {
        s->limit = s->looks == 0 ? share / FEWEST_LOOKS : share;
        take_steps(s, s->looks);
        if (s->looks > 0) draw(problem, &s->mean, &s->best, DRAW_BACK);
        double bound = -look_at_sides(s);
        for (uint32_t v = 0; v < problem->node_count; ++v) bound += s->mean.worth[v];
        if (bound == -INFINITY) return;
        if (bound > s->proven) draw(problem, &s->best, &s->mean, 1);
        s->proven = fmax(s->proven, bound);
        if (is_over(s, first, share)) break;
    }
    s->ended = true;
}

berth_solve__path_sets *berth_place__path_sets_create(berth_arena *arena,
                                                      berth_place_search *search) {
    if (isinf(search->best_value) || !(search->best_value > 0)) return NULL;
    setter *s = berth_arena_new(arena, setter);
    return create(arena, s, search) ? s : NULL;
}

void berth_place__path_sets_bound(berth_solve__path_sets *s, double share) {
    if (s->ended) return;
    climb(s, share);
    // Sets of a larger load than the value that was known were not looked at.
    if (s->proven > 0) berth_place_bound(s->search, fmin(s->proven * (1 - ROUNDING), s->known));
}
