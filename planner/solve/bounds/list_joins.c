#include "planner/solve/bounds/list_joins.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_NEAR = 256, LEAST_NEAR = 8, MOST_PLACES = 16 };
#define MOST_WORK ((uint64_t)6000000)

// A node that y depends on.
typedef struct near_node {
    uint32_t node;
    double elsewhere;   // y's least start when the node is not on its device
    double start, way;  // on its device: no earlier start, and no less from its end to y's start
    double time, bytes;
} near_node;

struct berth_place__joins {
    uint32_t most_near;   // nodes looked at for each node and place
    uint64_t join_count;  // of both directions
    uint32_t *position;   // [node_count] in the topological order
    double *nearest[2];   // [node_count] least tail (0) and head (1) over the places
    uint32_t *stamp;      // [node_count] == `now` when the node was met
    uint32_t *slot;       // [node_count] of a node that was taken; NONE = waits
    uint32_t now;
    uint32_t *heap;  // [node_count] nodes that wait, nearest first
    uint32_t heap_count;
    double *way;      // [(MOST_NEAR + 1) * states] longest way from a node's end to y's start
    near_node *near;  // [MOST_NEAR] that are looked at
    const near_node **by_start;  // [MOST_NEAR] of a set
};

// The node y at a place: what is looked at.
typedef struct look {
    berth_place__joins *joins;
    const berth_place__paths *paths;
    bool forth;
    uint32_t y, place;
    const uint32_t *before_start, *before, *after_start, *after;  // as seen from y, looking back
    const double *reach;  // [node_count * place_count] heads or tails
} look;

// States of a node: at each place, but not on y's device; and on y's device.
static uint32_t state_count(const look *l) {
    return l->paths->place_count + 1;
}

static uint32_t place_of(const look *l, uint32_t state) {
    return state < l->paths->place_count ? state : l->place;
}

static double time_at(const look *l, uint32_t node, uint32_t place) {
    const berth_place_problem *problem = l->paths->problem;
    return problem->time[(size_t)node * problem->kind_count + l->paths->kind[place]];
}

static double transfer_at(const look *l, uint32_t node, uint32_t place) {
    const berth_place_problem *problem = l->paths->problem;
    return problem->transfer[(size_t)node * problem->kind_count + l->paths->kind[place]];
}

static double direct_at(const look *l, uint32_t owner, uint32_t from, uint32_t to) {
    if (from == to && l->paths->count[from] < 2) return INFINITY;
    return berth_place_direct_kinds(l->paths->problem, owner, l->paths->kind[from],
                                    l->paths->kind[to]);
}

static bool may_be(const look *l, uint32_t node, uint32_t state) {
    const berth_place_problem *problem = l->paths->problem;
    uint32_t place = place_of(l, state);
    if (!l->paths->able[(size_t)problem->group[node] * l->paths->place_count + place]) return false;
    if (state == l->paths->place_count) return true;
    bool together = problem->group[node] == problem->group[l->y];
    return !together && (state != l->place || l->paths->count[state] > 1);
}

// ------------------------------------------------------------------------------------------------
// nodes, nearest first

// Nearer to y: later on all ways, so that a node comes after all between it and y.
static bool is_nearer(const look *l, uint32_t a, uint32_t b) {
    const double *nearest = l->joins->nearest[l->forth];
    if (nearest[a] != nearest[b]) return nearest[a] > nearest[b];
    bool later = l->joins->position[a] > l->joins->position[b];
    return later == l->forth;
}

static void push_near(look *l, uint32_t node) {
    berth_place__joins *j = l->joins;
    if (j->stamp[node] == j->now) return;
    j->stamp[node] = j->now;
    j->slot[node] = BERTH_PLACE_NONE;
    uint32_t at = j->heap_count++;
    for (; at > 0 && is_nearer(l, node, j->heap[(at - 1) / 2]); at = (at - 1) / 2)
        j->heap[at] = j->heap[(at - 1) / 2];
    j->heap[at] = node;
}

static uint32_t pop_near(look *l) {
    berth_place__joins *j = l->joins;
    uint32_t top = j->heap[0], moved = j->heap[--j->heap_count], at = 0;
    for (uint32_t child = 1; child < j->heap_count; child = 2 * at + 1) {
        if (child + 1 < j->heap_count && is_nearer(l, j->heap[child + 1], j->heap[child])) ++child;
        if (!is_nearer(l, j->heap[child], moved)) break;
        j->heap[at] = j->heap[child];
        at = child;
    }
    j->heap[at] = moved;
    return top;
}

static void push_before(look *l, uint32_t node) {
    for (uint32_t i = l->before_start[node]; i < l->before_start[node + 1]; ++i)
        push_near(l, l->before[i]);
}

// ------------------------------------------------------------------------------------------------
// ways

// Raises the node's ways by those over `next`, which is nearer to y, or y itself.
static void raise_ways(const look *l, uint32_t node, uint32_t next, double *way) {
    uint32_t states = state_count(l), owner = l->forth ? node : next;
    const double *onward = &l->joins->way[(size_t)l->joins->slot[next] * states];
    double value[MOST_PLACES + 1], hub = INFINITY;
    for (uint32_t s = 0; s < states; ++s) {
        value[s] = onward[s];
        if (next != l->y) value[s] += time_at(l, next, place_of(l, s));
        if (next == l->y ? s + 1 < states : !may_be(l, next, s)) value[s] = INFINITY;
        hub = fmin(hub, value[s] + transfer_at(l, owner, place_of(l, s)));
    }
    for (uint32_t s = 0; s < states; ++s) {
        uint32_t here = place_of(l, s);
        double least = fmin(value[s], hub + transfer_at(l, owner, here));
        for (uint32_t t = 0; t < states && l->paths->problem->direct_ms; ++t) {
            uint32_t there = place_of(l, t);
            least = fmin(least, value[t] + (l->forth ? direct_at(l, owner, here, there)
                                                     : direct_at(l, owner, there, here)));
        }
        way[s] = fmax(way[s], least);
    }
}

// The least start of y when the node is not on its device.
static double least_elsewhere(const look *l, uint32_t node, const double *way) {
    double least = INFINITY;
    for (uint32_t s = 0; s < l->paths->place_count; ++s) {
        if (!may_be(l, node, s)) continue;
        double reach = l->reach[(size_t)node * l->paths->place_count + s];
        least = fmin(least, reach + time_at(l, node, s) + way[s]);
    }
    return least;
}

// ------------------------------------------------------------------------------------------------
// sets of nodes

// Nodes on y's device, of which the last was added last.
typedef struct together {
    double work, bytes, first, last_way;
    uint32_t count;  // in order of their starts in joins->by_start
} together;

// When they can all have run, and what follows the last of them: of those that start no earlier than any of
// them, at the earliest one after another.
static double end_of(const look *l, const together *set, bool all_starts) {
    double end = set->first + set->work + set->last_way, work = 0, way = INFINITY;
    for (uint32_t i = set->count; all_starts && i-- > 0;) {
        const near_node *n = l->joins->by_start[i];
        work += n->time;
        way = fmin(way, n->way);
        end = fmax(end, n->start + work + way);
    }
    return end;
}

static void add_to(const look *l, together *set, const near_node *n) {
    const near_node **by_start = l->joins->by_start;
    uint32_t at = set->count++;
    for (; at > 0 && by_start[at - 1]->start > n->start; --at) by_start[at] = by_start[at - 1];
    by_start[at] = n;
    set->work += n->time;
    set->bytes += n->bytes;
    set->first = fmin(set->first, n->start);
    set->last_way = fmin(set->last_way, n->way);
}

static int compare_elsewhere(const void *left, const void *right) {
    const near_node *a = left, *b = right;
    if (a->elsewhere != b->elsewhere) return a->elsewhere > b->elsewhere ? -1 : 1;
    return a->node < b->node ? -1 : a->node > b->node;
}

// If y starts earlier than any of them lets it from elsewhere, they are all on its device: dearest first.
static double try_sets(look *l, uint32_t count, double room, double known) {
    near_node *near = l->joins->near;
    together set = {.first = INFINITY, .last_way = INFINITY};
    qsort(near, count, sizeof(*near), compare_elsewhere);
    for (uint32_t i = 0; i < count && near[i].elsewhere > known; ++i) {
        add_to(l, &set, &near[i]);
        bool last = i + 1 == count || near[i + 1].elsewhere <= known;
        bool all_starts = last || (set.count & (set.count - 1)) == 0;
        double end = set.bytes > room ? INFINITY : end_of(l, &set, all_starts);
        known = fmax(known, fmin(near[i].elsewhere, end));
    }
    return known;
}

// Takes the nearest node that waits and finds its ways to y.
static double *take_near(look *l, uint32_t slot, uint32_t *out_node) {
    berth_place__joins *j = l->joins;
    uint32_t node = pop_near(l), states = state_count(l);
    double *way = &j->way[(size_t)slot * states];
    for (uint32_t s = 0; s < states; ++s) way[s] = 0;
    for (uint32_t i = l->after_start[node]; i < l->after_start[node + 1]; ++i) {
        uint32_t next = l->after[i];
        if (j->stamp[next] == j->now && j->slot[next] != BERTH_PLACE_NONE)
            raise_ways(l, node, next, way);
    }
    j->slot[node] = slot;
    *out_node = node;
    return way;
}

// The largest bound of the sets tried, at least `known`. A node that may be elsewhere without making y later
// than that is in no set that is worth trying, and neither is what is only before it.
static double look_back(look *l, double known) {
    berth_place__joins *j = l->joins;
    uint32_t same = l->paths->place_count, count = 0, node = 0;
    double room = l->paths->problem->kinds[l->paths->kind[l->place]].capacity_bytes;
    j->now++;
    j->heap_count = 0;
    j->stamp[l->y] = j->now;
    j->slot[l->y] = 0;
    for (uint32_t s = 0; s <= same; ++s) j->way[s] = 0;
    push_before(l, l->y);
    for (uint32_t taken = 1; taken <= j->most_near && j->heap_count > 0; ++taken) {
        const double *way = take_near(l, taken, &node);
        double elsewhere = least_elsewhere(l, node, way);
        if (elsewhere <= known) continue;
        if (!may_be(l, node, same)) {
            known = elsewhere;
            continue;
        }
        double start = l->reach[(size_t)node * l->paths->place_count + l->place];
        j->near[count++] = (near_node){.node = node,
                                       .elsewhere = elsewhere,
                                       .start = start,
                                       .time = time_at(l, node, l->place),
                                       .way = way[same],
                                       .bytes = l->paths->problem->size_bytes[node]};
        push_before(l, node);
    }
    return try_sets(l, count, room, known);
}

void berth_place__joins_raise(berth_place__joins *joins, const berth_place__paths *paths,
                              uint32_t node, bool forth) {
    const berth_place_problem *problem = paths->problem;
    look l = {.joins = joins, .paths = paths, .forth = forth, .y = node};
    l.before_start = forth ? problem->pred_start : problem->succ_start;
    l.before = forth ? problem->pred : problem->succ;
    l.after_start = forth ? problem->succ_start : problem->pred_start;
    l.after = forth ? problem->succ : problem->pred;
    double *reach = forth ? paths->head : paths->tail;
    l.reach = reach;
    double *own = reach + (size_t)node * paths->place_count, least = INFINITY;
    bool joins_ways = l.before_start[node + 1] - l.before_start[node] > 1;
    for (uint32_t d = 0; d < paths->place_count; ++d) {
        if (!paths->able[(size_t)problem->group[node] * paths->place_count + d]) continue;
        l.place = d;
        if (joins_ways && !problem->kinds[paths->kind[d]].concurrent && own[d] < INFINITY)
            own[d] = look_back(&l, own[d]);
        least = fmin(least, own[d]);
    }
    joins->nearest[forth][node] = least;
}

uint64_t berth_place__joins_work(const berth_place__joins *joins) {
    return joins->join_count * joins->most_near;
}

berth_place__joins *berth_place__joins_create(berth_arena *arena, const berth_place__paths *paths) {
    const berth_place_problem *problem = paths->problem;
    if (paths->place_count > MOST_PLACES) return NULL;
    berth_place__joins *j = berth_arena_new(arena, berth_place__joins);
    for (uint32_t v = 0; v < problem->node_count; ++v)
        j->join_count += (uint64_t)(problem->pred_start[v + 1] - problem->pred_start[v] > 1) +
                         (uint64_t)(problem->succ_start[v + 1] - problem->succ_start[v] > 1);
    j->join_count *= paths->place_count;
    if (j->join_count == 0 || MOST_WORK / j->join_count < LEAST_NEAR) return NULL;
    uint64_t most = MOST_WORK / j->join_count;
    j->most_near = most < MOST_NEAR ? (uint32_t)most : MOST_NEAR;
    j->position = berth_arena_new_array(arena, uint32_t, problem->node_count);
    for (uint32_t i = 0; i < problem->node_count; ++i) j->position[problem->topological[i]] = i;
    for (int side = 0; side < 2; ++side)
        j->nearest[side] = berth_arena_new_array(arena, double, problem->node_count);
    j->stamp = berth_arena_new_array(arena, uint32_t, problem->node_count);
    j->slot = berth_arena_new_array(arena, uint32_t, problem->node_count);
    j->heap = berth_arena_new_array(arena, uint32_t, problem->node_count);
    j->way =
        berth_arena_new_array(arena, double, ((size_t)j->most_near + 1) * (paths->place_count + 1));
    j->near = berth_arena_new_array(arena, near_node, j->most_near);
    j->by_start = berth_arena_new_array(arena, const near_node *, j->most_near);
    return j;
}
