#include "planner/solve/linear.h"

#include <math.h>
#include <string.h>

// ------------------------------------------------------------------------------------------------
// the order

typedef struct ordering {
    const berth_place_problem *problem;
    bool forward_only;
    uint32_t variant;
    uint32_t *first;   // [group_count + 1] into next: the groups that an edge leads to
    uint32_t *next;    // [edge_count]
    uint32_t *cursor;  // [group_count] edges walked
    uint32_t *number;  // [group_count] when it was found; 0 = not yet
    uint32_t *lowest;  // [group_count] lowest number reachable
    bool *open;        // [group_count] on the stack of what has no block yet
    uint32_t *stack;   // [group_count]
    uint32_t *path;    // [group_count]
    uint32_t stack_count, path_count, found;
    uint32_t *block;  // [group_count] blocks in reverse order
    uint32_t block_count;
} ordering;

static bool binds(const ordering *o, uint32_t edge) {
    const berth_place_problem *problem = o->problem;
    uint32_t from = problem->edge_from[edge];
    uint32_t to = problem->edge_to[edge];
    if (problem->group[from] == problem->group[to]) return false;
    return !o->forward_only || (!problem->backward[from] && !problem->backward[to]);
}

static void collect_edges(ordering *o) {
    const berth_place_problem *problem = o->problem;
    for (uint32_t e = 0; e < problem->edge_count; ++e)
        if (binds(o, e)) o->first[problem->group[problem->edge_from[e]]]++;
    for (uint32_t g = 1; g <= problem->group_count; ++g) o->first[g] += o->first[g - 1];
    for (uint32_t i = 0; i < problem->edge_count; ++i) {
        uint32_t e = o->variant ? i : problem->edge_count - 1 - i;
        if (binds(o, e))
            o->next[--o->first[problem->group[problem->edge_from[e]]]] =
                problem->group[problem->edge_to[e]];
    }
}

static void enter(ordering *o, uint32_t group) {
    o->number[group] = o->lowest[group] = ++o->found;
    o->open[group] = true;
    o->stack[o->stack_count++] = group;
    o->path[o->path_count++] = group;
}

static void leave(ordering *o, uint32_t group) {
    o->path_count--;
    if (o->path_count > 0) {
        uint32_t parent = o->path[o->path_count - 1];
        if (o->lowest[group] < o->lowest[parent]) o->lowest[parent] = o->lowest[group];
    }
    if (o->lowest[group] != o->number[group]) return;
    uint32_t member = 0;
    do {
        member = o->stack[--o->stack_count];
        o->open[member] = false;
        o->block[member] = o->block_count;
    } while (member != group);
    o->block_count++;
}

// Strong components (Tarjan 1972) with the path as an array; they come out last first.
static void find_blocks(ordering *o, uint32_t root) {
    if (o->number[root]) return;
    enter(o, root);
    while (o->path_count > 0) {
        uint32_t group = o->path[o->path_count - 1];
        if (o->first[group] + o->cursor[group] == o->first[group + 1]) {
            leave(o, group);
            continue;
        }
        uint32_t to = o->next[o->first[group] + o->cursor[group]++];
        if (!o->number[to])
            enter(o, to);
        else if (o->open[to] && o->number[to] < o->lowest[group])
            o->lowest[group] = o->number[to];
    }
}

static void share_rank(uint32_t *rank, uint32_t a, uint32_t b) {
    if (rank[a] == UINT32_MAX)
        rank[a] = rank[b];
    else if (rank[b] == UINT32_MAX)
        rank[b] = rank[a];
}

// Groups that no edge binds (backward nodes alone) get the rank of a neighbour that has one: along
// the edges and against them. What is still open (rank UINT32_MAX) then goes last.
static void rank_loose(const ordering *o, uint32_t *rank) {
    const berth_place_problem *problem = o->problem;
    for (uint32_t pass = 0; pass < 4; ++pass)
        for (uint32_t i = 0; i < problem->node_count; ++i) {
            uint32_t at = pass % 2 ? problem->node_count - 1 - i : i;
            uint32_t v = problem->topological[at];
            for (uint32_t s = problem->succ_start[v]; s < problem->succ_start[v + 1]; ++s)
                share_rank(rank, problem->group[v], problem->group[problem->succ[s]]);
        }
}

static bool is_loose(const ordering *o, uint32_t group) {
    const berth_place_problem *problem = o->problem;
    for (uint32_t i = problem->group_start[group]; i < problem->group_start[group + 1]; ++i)
        if (!problem->backward[problem->group_nodes[i]]) return false;
    return o->forward_only;
}

// Lists the groups by rank, blocks together.
static berth_solve__order list_blocks(berth_arena *arena, const ordering *o) {
    uint32_t groups = o->problem->group_count;
    berth_solve__order out = {0};
    uint32_t *rank = berth_arena_new_array(arena, uint32_t, groups);
    uint32_t *start = berth_arena_new_array(arena, uint32_t, (size_t)o->block_count + 2);
    for (uint32_t g = 0; g < groups; ++g)
        rank[g] = is_loose(o, g) ? UINT32_MAX : o->block_count - 1 - o->block[g];
    rank_loose(o, rank);
    for (uint32_t g = 0; g < groups; ++g) {
        if (rank[g] == UINT32_MAX) rank[g] = o->block_count;
        start[rank[g]]++;
    }
    for (uint32_t r = 1; r <= o->block_count + 1; ++r) start[r] += start[r - 1];
    out.groups = berth_arena_new_array(arena, uint32_t, groups);
    out.block_start = berth_arena_new_array(arena, uint32_t, (size_t)groups + 1);
    for (uint32_t loose = 2; loose-- > 0;)  // filled from the end: loose groups after the block
        for (uint32_t g = groups; g-- > 0;)
            if (is_loose(o, g) == (loose == 1)) out.groups[--start[rank[g]]] = g;
    for (uint32_t i = 0; i < groups; ++i) {
        uint32_t g = out.groups[i];
        bool joins = i > 0 && !is_loose(o, g) && o->block[g] == o->block[out.groups[i - 1]];
        if (!joins) out.block_start[out.block_count++] = i;
    }
    out.block_start[out.block_count] = groups;
    return out;
}

berth_solve__order berth_solve__order_groups(berth_arena *arena, const berth_place_problem *problem,
                                             bool forward_only, uint32_t variant) {
    uint32_t groups = problem->group_count;
    ordering o = {.problem = problem, .forward_only = forward_only, .variant = variant};
    o.first = berth_arena_new_array(arena, uint32_t, (size_t)groups + 1);
    o.next = berth_arena_new_array(arena, uint32_t, problem->edge_count);
    o.cursor = berth_arena_new_array(arena, uint32_t, groups);
    o.number = berth_arena_new_array(arena, uint32_t, groups);
    o.lowest = berth_arena_new_array(arena, uint32_t, groups);
    o.open = berth_arena_new_array(arena, bool, groups);
    o.stack = berth_arena_new_array(arena, uint32_t, groups);
    o.path = berth_arena_new_array(arena, uint32_t, groups);
    o.block = berth_arena_new_array(arena, uint32_t, groups);
    collect_edges(&o);
    for (uint32_t i = 0; i < problem->node_count; ++i) {
        uint32_t at = variant ? i : problem->node_count - 1 - i;
        find_blocks(&o, problem->group[problem->topological[at]]);
    }
    return list_blocks(arena, &o);
}

// ------------------------------------------------------------------------------------------------
// the load of a segment, grown block by block

enum { MOST_KINDS = 8, MOST_STATES = 4096, MOST_PIECES = 1500 };

typedef struct segment {
    const berth_place_problem *problem;
    uint32_t *inside;   // [node_count] stamp of the segment that holds the node
    uint32_t *read;     // [node_count] stamp of the segment that reads it
    uint32_t *outside;  // [node_count] successors outside, of nodes inside
    uint32_t stamp;
    double bytes;
    double load[MOST_KINDS];  // INFINITY = unsupported
} segment;

static void add_transfer(segment *s, uint32_t node, double sign) {
    for (uint32_t k = 0; k < s->problem->kind_count; ++k)
        s->load[k] += sign * s->problem->transfer[(size_t)node * s->problem->kind_count + k];
}

static void add_node(segment *s, uint32_t v) {
    const berth_place_problem *problem = s->problem;
    for (uint32_t k = 0; k < problem->kind_count; ++k)
        s->load[k] += problem->time[(size_t)v * problem->kind_count + k];
    s->bytes += problem->size_bytes[v];
    s->inside[v] = s->stamp;
    if (s->read[v] == s->stamp) add_transfer(s, v, -1);
    s->outside[v] = 0;
    for (uint32_t i = problem->succ_start[v]; i < problem->succ_start[v + 1]; ++i)
        s->outside[v] += s->inside[problem->succ[i]] != s->stamp;
    if (s->outside[v] > 0) add_transfer(s, v, 1);
    for (uint32_t i = problem->pred_start[v]; i < problem->pred_start[v + 1]; ++i) {
        uint32_t u = problem->pred[i];
        if (s->inside[u] == s->stamp) {
            if (--s->outside[u] == 0) add_transfer(s, u, -1);
        } else if (s->read[u] != s->stamp) {
            s->read[u] = s->stamp;
            add_transfer(s, u, 1);
        }
    }
}

// ------------------------------------------------------------------------------------------------
// the cut

typedef struct cell {
    double value;
    uint32_t from;   // piece where the last segment starts
    uint16_t kind;   // its kind
    uint16_t state;  // before it
} cell;

typedef struct cut {
    const berth_place_problem *problem;
    const berth_solve__order *order;
    bool sum;
    uint32_t *piece_start;  // [piece_count + 1] into order->groups
    uint32_t piece_count;
    uint32_t state_count;
    uint32_t stride[MOST_KINDS];  // of a device of the kind in a state's number
    cell *cells;                  // [(piece_count + 1) * state_count]
} cut;

static bool takes_device(const cut *c, uint32_t kind) {
    return !(c->sum && c->problem->kinds[kind].concurrent);
}

// As many pieces as keep the table's work near a second's; neighbouring blocks merge where there
// are more.
static void make_pieces(berth_arena *scratch, cut *c) {
    const berth_place_problem *problem = c->problem;
    double work = (double)c->state_count * problem->kind_count;
    double limit = fmin(MOST_PIECES, sqrt(3e8 / work));
    limit = fmin(limit, 1e8 / ((double)problem->node_count + problem->edge_count + 1));
    uint32_t most =
        limit > 2 * BERTH_PLACE_DEVICE_LIMIT ? (uint32_t)limit : 2 * BERTH_PLACE_DEVICE_LIMIT;
    uint32_t blocks = c->order->block_count;
    uint32_t each = blocks / most + 1;
    c->piece_start = berth_arena_new_array(scratch, uint32_t, (size_t)blocks + 1);
    for (uint32_t b = 0; b < blocks; b += each)
        c->piece_start[c->piece_count++] = c->order->block_start[b];
    c->piece_start[c->piece_count] = problem->group_count;
}

static bool make_states(cut *c) {
    c->state_count = 1;
    if (c->problem->kind_count > MOST_KINDS) return false;
    for (uint32_t k = 0; k < c->problem->kind_count; ++k) {
        c->stride[k] = c->state_count;
        if (!takes_device(c, k)) continue;
        c->state_count *= c->problem->kinds[k].device_count + 1;
        if (c->state_count > MOST_STATES) return false;
    }
    return true;
}

static void extend(cut *c, uint32_t from, uint32_t to, const segment *s) {
    for (uint32_t k = 0; k < c->problem->kind_count; ++k) {
        const berth_place_kind *kind = &c->problem->kinds[k];
        if (kind->device_count == 0 || s->load[k] == INFINITY || s->bytes > kind->capacity_bytes)
            continue;
        double load = fmax(s->load[k], 0);
        uint32_t step = takes_device(c, k) ? c->stride[k] : 0;
        for (uint32_t state = 0; state < c->state_count; ++state) {
            const cell *before = &c->cells[(size_t)from * c->state_count + state];
            if (before->value == INFINITY) continue;
            if (step && state / step % (kind->device_count + 1) == kind->device_count) continue;
            double value = c->sum ? before->value + load : fmax(before->value, load);
            cell *after = &c->cells[(size_t)to * c->state_count + state + step];
            if (value < after->value) *after = (cell){value, from, (uint16_t)k, (uint16_t)state};
        }
    }
}

// Sums say little of latency, for which others cut orders by times: of the budget that is left, the most
// that this may take there.
static const double SUM_SHARE = 0.1;

static bool fill_cells(berth_place_search *search, berth_arena *scratch, cut *c) {
    const berth_place_problem *problem = c->problem;
    segment s = {.problem = problem};
    s.inside = berth_arena_new_array(scratch, uint32_t, problem->node_count);
    s.read = berth_arena_new_array(scratch, uint32_t, problem->node_count);
    s.outside = berth_arena_new_array(scratch, uint32_t, problem->node_count);
    const berth_place_since since = berth_place_now(search);
    for (uint32_t from = 0; from < c->piece_count; ++from) {
        s.stamp++;
        s.bytes = 0;
        memset(s.load, 0, sizeof(s.load));
        for (uint32_t to = from + 1; to <= c->piece_count; ++to) {
            for (uint32_t i = c->piece_start[to - 1]; i < c->piece_start[to]; ++i) {
                uint32_t g = c->order->groups[i];
                for (uint32_t m = problem->group_start[g]; m < problem->group_start[g + 1]; ++m)
                    add_node(&s, problem->group_nodes[m]);
            }
            extend(c, from, to, &s);
        }
        if (berth_place_spent(search, 1 + (problem->node_count + problem->edge_count) / 32))
            return false;
        if (c->sum && berth_place_used(search, since) > SUM_SHARE) return false;
    }
    return true;
}

static bool read_cut(const cut *c, uint32_t *assignment) {
    const berth_place_problem *problem = c->problem;
    uint32_t state = 0;
    for (uint32_t i = 1; i < c->state_count; ++i)
        if (c->cells[(size_t)c->piece_count * c->state_count + i].value <
            c->cells[(size_t)c->piece_count * c->state_count + state].value)
            state = i;
    for (uint32_t to = c->piece_count; to > 0;) {
        const cell *at = &c->cells[(size_t)to * c->state_count + state];
        if (at->value == INFINITY) return false;
        uint32_t used = takes_device(c, at->kind) ? at->state / c->stride[at->kind] %
                                                        (problem->kinds[at->kind].device_count + 1)
                                                  : 0;
        uint32_t device = berth_place_kind_first(problem, at->kind) + used;
        for (uint32_t i = c->piece_start[at->from]; i < c->piece_start[to]; ++i) {
            uint32_t g = c->order->groups[i];
            for (uint32_t m = problem->group_start[g]; m < problem->group_start[g + 1]; ++m)
                assignment[problem->group_nodes[m]] = device;
        }
        to = at->from;
        state = at->state;
    }
    return true;
}

bool berth_solve__cut_order(berth_place_search *search, const berth_solve__order *order, bool sum,
                            uint32_t *assignment) {
    berth_arena *scratch = berth_arena_create_child(search->arena);
    cut c = {.problem = search->problem, .order = order, .sum = sum};
    bool found = make_states(&c);
    if (found) {
        make_pieces(scratch, &c);
        size_t count = ((size_t)c.piece_count + 1) * c.state_count;
        c.cells = berth_arena_new_array(scratch, cell, count);
        for (size_t i = 1; i < count; ++i) c.cells[i].value = INFINITY;
        found = fill_cells(search, scratch, &c) && read_cut(&c, assignment);
    }
    berth_arena_destroy(scratch);
    return found;
}
