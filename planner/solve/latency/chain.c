#include "planner/solve/latency/chain.h"

#include <math.h>
#include <string.h>

enum { MOST_KINDS = 8, MOST_STATES = 128, LEAST_PLACES = 3 };

typedef struct chain {
    const berth_place_problem *problem;
    uint32_t kind_count, kinds[MOST_KINDS];  // with one subgraph for each device
    uint32_t stride[MOST_KINDS];             // of a device of the kind in a state; 0 = not counted
    uint32_t state_count;                    // devices used, by kind
    double *plain_time;                      // [node_count] on a concurrent kind
    double *least_time;                      // [node_count]
    // The path:
    uint32_t *path;  // [path_length] nodes
    uint32_t path_length;
    bool *on_path;         // [node_count]
    uint32_t place_count;  // nodes of the path that are looked at; the first and the last are
    uint32_t *place;       // [place_count] node
    uint32_t *last;        // [node_count] place before it (or its own) that is nearest, NONE
    uint32_t *first;       // [node_count] place after it (or its own) that is nearest, place_count
    uint32_t *by_first;  // [node_count] nodes by `first`: those of place p are in first_start[p]..
    uint32_t *first_start;  // [place_count + 2]
    // Of the path's nodes since the place before, [place_count]: when all are by themselves, and
    // with a piece among them.
    double *between_plain, *between_least;
    // Done with the places before, [(place_count + 1) * state_count]: the last one in a piece
    // (which may hold what follows, up to the next place, as well), or by itself.
    double *piece, *plain;
    double *start;  // [the same] when a piece can begin there
    // Of the kind that is looked at, by `last`; of nodes whose `first` is not beyond the last place
    // of the piece:
    double *time, *bytes;    // [place_count]
    uint32_t *unable;        // [place_count] nodes that the kind does not support
    double *reads;           // [place_count + 1] what begins to be read (+) and ends (-)
    double *writes;          // [place_count]
    double *enter, *leave;   // [place_count] least transfer into a piece that begins (ends) there
    uint32_t *read_from;     // [node_count] place from which the node's value is read, so far
    uint32_t *writer_first;  // [node_count] place where the node's last reader stops being outside
    double *writer_cost;     // [node_count] of the node while that reader is outside
    uint32_t *by_writer;     // [node_count] nodes by writer_first
    uint32_t *writer_start;  // [place_count + 2]
} chain;

static double time_on(const chain *c, uint32_t node, uint32_t kind) {
    return c->problem->time[(size_t)node * c->problem->kind_count + kind];
}

static double transfer_on(const chain *c, uint32_t node, uint32_t kind) {
    return c->problem->transfer[(size_t)node * c->problem->kind_count + kind];
}

// ------------------------------------------------------------------------------------------------
// kinds and states

static bool number_states(chain *c) {
    const berth_place_problem *problem = c->problem;
    c->state_count = 1;
    for (uint32_t k = 0; k < problem->kind_count; ++k) {
        const berth_place_kind *kind = &problem->kinds[k];
        if (kind->concurrent || kind->device_count == 0) continue;
        if (c->kind_count == MOST_KINDS) return false;
        c->kinds[c->kind_count] = k;
        if (c->state_count * (kind->device_count + 1) <= MOST_STATES) {
            c->stride[c->kind_count] = c->state_count;
            c->state_count *= kind->device_count + 1;
        }
        c->kind_count++;
    }
    return true;
}

static void find_times(berth_arena *scratch, chain *c) {
    const berth_place_problem *problem = c->problem;
    c->plain_time = berth_arena_new_array(scratch, double, problem->node_count);
    c->least_time = berth_arena_new_array(scratch, double, problem->node_count);
    for (uint32_t v = 0; v < problem->node_count; ++v) {
        c->plain_time[v] = c->least_time[v] = INFINITY;
        for (uint32_t k = 0; k < problem->kind_count; ++k) {
            if (problem->kinds[k].device_count == 0 ||
                !berth_place_has_room(problem, problem->group[v], k))
                continue;
            c->least_time[v] = fmin(c->least_time[v], time_on(c, v, k));
            if (problem->kinds[k].concurrent)
                c->plain_time[v] = fmin(c->plain_time[v], time_on(c, v, k));
        }
    }
}

// ------------------------------------------------------------------------------------------------
// the path

// What a path is long by.
typedef enum measure { BY_TIME, BY_NODES, BY_TRANSFERS, MEASURES } measure;

static double length_of(const chain *c, uint32_t node, measure by) {
    switch (by) {
    case BY_TIME: return c->least_time[node];
    case BY_NODES: return 1;
    default: return c->least_time[node] + transfer_on(c, node, c->kinds[0]);
    }
}

static void find_path(berth_arena *scratch, chain *c, measure by) {
    const berth_place_problem *problem = c->problem;
    uint32_t n = problem->node_count, start = 0;
    double *way = berth_arena_new_array(scratch, double, n);  // to the end
    uint32_t *next = berth_arena_new_array(scratch, uint32_t, n);
    for (uint32_t i = n; i-- > 0;) {
        uint32_t v = problem->topological[i];
        next[v] = BERTH_PLACE_NONE;
        double after = -1;
        for (uint32_t s = problem->succ_start[v]; s < problem->succ_start[v + 1]; ++s) {
            if (way[problem->succ[s]] <= after) continue;
            after = way[problem->succ[s]];
            next[v] = problem->succ[s];
        }
        way[v] = length_of(c, v, by) + fmax(after, 0);
        if (i + 1 == n || way[v] > way[start]) start = v;
    }
    c->path_length = 0;
    memset(c->on_path, 0, n * sizeof(bool));
    for (uint32_t v = start; v != BERTH_PLACE_NONE; v = next[v]) {
        c->path[c->path_length++] = v;
        c->on_path[v] = true;
    }
}

// Evenly along the path.
static void choose_places(chain *c, uint32_t most) {
    c->place_count = c->path_length < most ? c->path_length : most;
    for (uint32_t p = 0; p < c->place_count; ++p) {
        uint64_t at =
            c->place_count > 1 ? (uint64_t)p * (c->path_length - 1) / (c->place_count - 1) : 0;
        c->place[p] = c->path[at];
    }
}

static void sort_by(const uint32_t *key, uint32_t count, uint32_t keys, uint32_t *start,
                    uint32_t *list) {
    memset(start, 0, ((size_t)keys + 1) * sizeof(*start));
    for (uint32_t i = 0; i < count; ++i) start[key[i] + 1]++;
    for (uint32_t k = 0; k < keys; ++k) start[k + 1] += start[k];
    for (uint32_t i = count; i-- > 0;) list[--start[key[i] + 1]] = i;
    for (uint32_t k = 0; k < keys; ++k) start[k] = start[k + 1];
    start[keys] = count;
}

// Nearest places before and after each node.
static void surround(chain *c) {
    const berth_place_problem *problem = c->problem;
    uint32_t n = problem->node_count;
    for (uint32_t v = 0; v < n; ++v) {
        c->last[v] = BERTH_PLACE_NONE;
        c->first[v] = c->place_count;
    }
    for (uint32_t p = 0; p < c->place_count; ++p) c->last[c->place[p]] = c->first[c->place[p]] = p;
    for (uint32_t i = 0; i < n; ++i) {
        uint32_t v = problem->topological[i];
        for (uint32_t e = problem->pred_start[v]; e < problem->pred_start[v + 1]; ++e) {
            uint32_t before = c->last[problem->pred[e]];
            if (before != BERTH_PLACE_NONE &&
                (c->last[v] == BERTH_PLACE_NONE || before > c->last[v]))
                c->last[v] = before;
        }
    }
    for (uint32_t i = n; i-- > 0;) {
        uint32_t v = problem->topological[i];
        for (uint32_t e = problem->succ_start[v]; e < problem->succ_start[v + 1]; ++e)
            if (c->first[problem->succ[e]] < c->first[v]) c->first[v] = c->first[problem->succ[e]];
    }
    sort_by(c->first, n, c->place_count + 1, c->first_start, c->by_first);
}

// ------------------------------------------------------------------------------------------------
// what pieces cost

static bool is_place(const chain *c, uint32_t node) {
    return c->last[node] != BERTH_PLACE_NONE && c->last[node] == c->first[node];
}

// The least transfer of the path's nodes from each place (or itself) to before the next.
static void find_crossings(chain *c, uint32_t kind) {
    uint32_t p = 0;
    for (uint32_t i = 0; i < c->place_count; ++i) c->leave[i] = INFINITY;
    for (uint32_t i = 0; i < c->path_length; ++i) {
        if (p + 1 < c->place_count && c->place[p + 1] == c->path[i]) ++p;
        c->leave[p] = fmin(c->leave[p], transfer_on(c, c->path[i], kind));
    }
    c->enter[0] = 0;
    for (uint32_t i = 1; i < c->place_count; ++i) c->enter[i] = c->leave[i - 1];
    c->leave[c->place_count - 1] = 0;  // the path ends there
}

// Of each node that a piece may hold, the reader that is outside for longest. Either it is inside
// as well (its time, of which every value it reads has a share), or the value is written.
static void find_writers(chain *c, uint32_t kind) {
    const berth_place_problem *problem = c->problem;
    for (uint32_t u = 0; u < problem->node_count; ++u) {
        uint32_t latest = 0;
        double cost = 0, transfer = transfer_on(c, u, kind);
        for (uint32_t e = problem->succ_start[u]; e < problem->succ_start[u + 1]; ++e) {
            uint32_t w = problem->succ[e];
            double share =
                time_on(c, w, kind) / (problem->pred_start[w + 1] - problem->pred_start[w]);
            double here = is_place(c, w) ? transfer : fmin(transfer, share);
            if (c->first[w] < latest || (c->first[w] == latest && here <= cost)) continue;
            latest = c->first[w];
            cost = here;
        }
        bool counts = !c->on_path[u] || is_place(c, u);
        c->writer_first[u] = counts && latest > c->first[u] ? latest : c->first[u];
        c->writer_cost[u] = counts && c->last[u] != BERTH_PLACE_NONE ? cost : 0;
    }
    sort_by(c->writer_first, problem->node_count, c->place_count + 1, c->writer_start,
            c->by_writer);
}

// u's value is read by pieces that hold v and begin at v's place or before, but after u: there it
// is outside. (Or it is inside too, which costs its time; a place of the path is not.)
static void add_read(chain *c, uint32_t u, uint32_t v, uint32_t kind) {
    uint32_t from = c->read_from[u];  // NONE: from the beginning
    uint32_t to = c->last[v];
    if (c->on_path[u] && !is_place(c, u)) return;
    double cost = transfer_on(c, u, kind);
    if (is_place(c, u)) {
        if (from == BERTH_PLACE_NONE) from = c->last[u] + 1;  // just after it: it enters
    } else {
        cost = fmin(cost, time_on(c, u, kind));
        if (from == BERTH_PLACE_NONE)
            from = c->last[u] == BERTH_PLACE_NONE ? UINT32_MAX : c->last[u];
    }
    uint32_t begin = from == UINT32_MAX ? 0 : from + 1;  // first place with the cost
    if (to == BERTH_PLACE_NONE || to < begin) return;
    c->reads[to] += cost;
    if (begin > 0) c->reads[begin - 1] -= cost;
    c->read_from[u] = to;
}

// Takes up the nodes whose first place after them is `place`.
static void take_up(chain *c, uint32_t place, uint32_t kind) {
    const berth_place_problem *problem = c->problem;
    for (uint32_t i = c->first_start[place]; i < c->first_start[place + 1]; ++i) {
        uint32_t v = c->by_first[i], last = c->last[v];
        if (last == BERTH_PLACE_NONE) continue;
        double time = time_on(c, v, kind);
        c->bytes[last] += problem->size_bytes[v];
        if (isinf(time))
            c->unable[last]++;
        else
            c->time[last] += time;
        for (uint32_t e = problem->pred_start[v]; e < problem->pred_start[v + 1]; ++e)
            add_read(c, problem->pred[e], v, kind);
    }
}

// Writes of nodes that are inside from `place` on (a place itself: from the next on, it leaves).
static void change_writes(chain *c, uint32_t place) {
    for (uint32_t i = c->first_start[place]; i < c->first_start[place + 1]; ++i) {
        uint32_t u = c->by_first[i];
        if (is_place(c, u) || c->last[u] == BERTH_PLACE_NONE) continue;
        if (c->writer_first[u] > place) c->writes[c->last[u]] += c->writer_cost[u];
    }
    if (place > 0) {
        uint32_t u = c->place[place - 1];
        if (c->writer_first[u] > place) c->writes[place - 1] += c->writer_cost[u];
    }
    for (uint32_t i = c->writer_start[place]; i < c->writer_start[place + 1]; ++i) {
        uint32_t u = c->by_writer[i];
        bool was_added =
            c->last[u] != BERTH_PLACE_NONE && place > c->first[u] + (is_place(c, u) ? 1 : 0);
        if (was_added) c->writes[c->last[u]] -= c->writer_cost[u];
    }
}

// When a piece can begin at a place. What lies between it and a node by itself before it may belong
// to the piece.
static double piece_start(const chain *c, uint32_t place, uint32_t state) {
    size_t at = (size_t)place * c->state_count + state;
    return fmin(c->piece[at], c->plain[at] + c->between_least[place]);
}

// When a node by itself can begin there. What lies between it and another one before it is by
// itself as well, unless it takes a device.
static double plain_start(const chain *c, uint32_t place, uint32_t state) {
    size_t row = (size_t)place * c->state_count;
    double start = fmin(c->piece[row + state], c->plain[row + state] + c->between_plain[place]);
    for (uint32_t k = 0; k < c->kind_count; ++k) {
        uint32_t stride = c->stride[k], devices = c->problem->kinds[c->kinds[k]].device_count;
        if (stride && state / stride % (devices + 1) == 0) continue;
        start = fmin(start, c->plain[row + state - stride] + c->between_least[place]);
    }
    return start;
}

// Pieces from `begin` on, with the nodes taken up, that end before `end`.
static void relax(chain *c, uint32_t begin, uint32_t end, uint32_t kind_index, double cost) {
    const double *before = c->start + (size_t)begin * c->state_count;
    double *after = c->piece + (size_t)end * c->state_count;
    uint32_t stride = c->stride[kind_index];
    uint32_t devices = c->problem->kinds[c->kinds[kind_index]].device_count;
    for (uint32_t s = 0; s < c->state_count; ++s) {
        if (stride && s / stride % (devices + 1) == devices) continue;
        after[s + stride] = fmin(after[s + stride], before[s] + cost);
    }
}

static void extend(chain *c, uint32_t place, uint32_t kind_index) {
    double capacity = c->problem->kinds[c->kinds[kind_index]].capacity_bytes * (1 + 1e-9);
    double time = 0, bytes = 0, reads = 0, writes = 0;
    for (uint32_t begin = place + 1; begin-- > 0;) {
        time += c->time[begin];
        bytes += c->bytes[begin];
        reads += c->reads[begin];
        writes += c->writes[begin];
        if (c->unable[begin] > 0 || bytes > capacity) return;
        double cost = c->enter[begin] + fmax(reads, 0) + time + fmax(writes, 0) + c->leave[place];
        relax(c, begin, place + 1, kind_index, cost);
    }
}

// ------------------------------------------------------------------------------------------------

// What a place leaves behind for the next kind.
typedef struct kind_state {
    double *time, *bytes, *reads, *writes, *enter, *leave;
    uint32_t *unable, *read_from, *writer_first, *by_writer, *writer_start;
    double *writer_cost;
} kind_state;

static void use_kind(chain *c, const kind_state *k) {
    c->time = k->time;
    c->bytes = k->bytes;
    c->reads = k->reads;
    c->writes = k->writes;
    c->enter = k->enter;
    c->leave = k->leave;
    c->unable = k->unable;
    c->read_from = k->read_from;
    c->writer_first = k->writer_first;
    c->by_writer = k->by_writer;
    c->writer_start = k->writer_start;
    c->writer_cost = k->writer_cost;
}

static kind_state make_kind(berth_arena *scratch, const chain *c) {
    uint32_t n = c->problem->node_count;
    size_t places = (size_t)c->place_count + 2;
    kind_state k;
    k.time = berth_arena_new_array(scratch, double, places);
    k.bytes = berth_arena_new_array(scratch, double, places);
    k.reads = berth_arena_new_array(scratch, double, places);
    k.writes = berth_arena_new_array(scratch, double, places);
    k.enter = berth_arena_new_array(scratch, double, places);
    k.leave = berth_arena_new_array(scratch, double, places);
    k.unable = berth_arena_new_array(scratch, uint32_t, places);
    k.read_from = berth_arena_new_array(scratch, uint32_t, n);
    k.writer_first = berth_arena_new_array(scratch, uint32_t, n);
    k.writer_cost = berth_arena_new_array(scratch, double, n);
    k.by_writer = berth_arena_new_array(scratch, uint32_t, n);
    k.writer_start = berth_arena_new_array(scratch, uint32_t, places);
    memset(k.read_from, 0xff, n * sizeof(uint32_t));
    return k;
}

static double bound_path(berth_arena *scratch, chain *c) {
    kind_state kinds[MOST_KINDS];
    surround(c);
    size_t cells = ((size_t)c->place_count + 1) * c->state_count;
    c->piece = berth_arena_new_array(scratch, double, cells);
    c->plain = berth_arena_new_array(scratch, double, cells);
    for (size_t i = 0; i < cells; ++i) c->piece[i] = c->plain[i] = INFINITY;
    c->piece[0] = 0;
    c->start = berth_arena_new_array(scratch, double, cells);
    c->between_plain = berth_arena_new_array(scratch, double, (size_t)c->place_count + 1);
    c->between_least = berth_arena_new_array(scratch, double, (size_t)c->place_count + 1);
    for (uint32_t i = 0, p = 0; i < c->path_length; ++i) {
        if (is_place(c, c->path[i])) {
            p++;
            continue;
        }
        c->between_plain[p] += c->plain_time[c->path[i]];
        c->between_least[p] += c->least_time[c->path[i]];
    }
    for (uint32_t k = 0; k < c->kind_count; ++k) {
        kinds[k] = make_kind(scratch, c);
        use_kind(c, &kinds[k]);
        find_crossings(c, c->kinds[k]);
        find_writers(c, c->kinds[k]);
    }
    for (uint32_t place = 0; place < c->place_count; ++place) {
        for (uint32_t s = 0; s < c->state_count; ++s) {
            size_t at = (size_t)place * c->state_count + s;
            c->start[at] = piece_start(c, place, s);
            c->plain[at + c->state_count] =
                plain_start(c, place, s) + c->plain_time[c->place[place]];
        }
        for (uint32_t k = 0; k < c->kind_count; ++k) {
            use_kind(c, &kinds[k]);
            take_up(c, place, c->kinds[k]);
            change_writes(c, place);
            extend(c, place, k);
        }
    }
    double least = INFINITY;
    for (uint32_t s = 0; s < c->state_count; ++s)
        least = fmin(least, piece_start(c, c->place_count, s));
    return least;
}

double berth_solve__latency_chain_bound(berth_arena *scratch, const berth_place_problem *problem,
                                        uint64_t cells) {
    chain c = {.problem = problem};
    if (problem->node_count == 0 || !number_states(&c) || c.kind_count == 0) return 0;
    find_times(scratch, &c);
    uint32_t n = problem->node_count;
    double places = sqrt((double)cells / ((double)c.state_count * c.kind_count * MEASURES));
    uint32_t most = places < LEAST_PLACES ? LEAST_PLACES : places < n ? (uint32_t)places : n;
    c.path = berth_arena_new_array(scratch, uint32_t, n);
    c.on_path = berth_arena_new_array(scratch, bool, n);
    c.place = berth_arena_new_array(scratch, uint32_t, n);
    c.last = berth_arena_new_array(scratch, uint32_t, n);
    c.first = berth_arena_new_array(scratch, uint32_t, n);
    c.by_first = berth_arena_new_array(scratch, uint32_t, n);
    c.first_start = berth_arena_new_array(scratch, uint32_t, (size_t)n + 2);
    double bound = 0;
    for (int by = 0; by < MEASURES; ++by) {
        berth_arena *arena = berth_arena_create_child(scratch);
        find_path(arena, &c, (measure)by);
        choose_places(&c, most);
        bound = fmax(bound, bound_path(arena, &c));
        berth_arena_destroy(arena);
    }
    return bound;
}
