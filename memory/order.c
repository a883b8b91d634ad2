#include "memory/order.h"

#include <stdlib.h>
#include <string.h>

#include "memory/order_private.h"

// ---- the whole problem as lists -----------------------------------------------------------------

static berth_status bad(const char *what, uint32_t index, const char *wrong) {
    return berth_status_make(BERTH_INVALID_ARGUMENT, "order of operations: %s %u: %s", what, index,
                             wrong);
}

static berth_status check_buffers(const berth_memory_order_problem *p) {
    uint64_t total = 0;
    for (uint32_t b = 0; b < p->buffer_count; ++b) {
        const berth_memory_order_buffer *buffer = &p->buffers[b];
        if (buffer->user_count == 0) return bad("buffer", b, "no node touches it");
        for (uint32_t i = 0; i < buffer->user_count; ++i) {
            if (buffer->users[i] >= p->node_count) return bad("buffer", b, "a user is no node");
            if (i > 0 && buffer->users[i] <= buffer->users[i - 1])
                return bad("buffer", b, "its users do not ascend");
        }
        if (buffer->size_bytes > INT64_MAX - total) return bad("buffer", b, "the sizes overflow");
        total += buffer->size_bytes;
    }
    return BERTH_OK;
}

berth_status berth_order__check(const berth_memory_order_problem *p) {
    for (uint32_t i = 0; i < p->edge_count; ++i) {
        if (p->edges[i].after >= p->node_count) return bad("edge", i, "its end is no node");
        if (p->edges[i].before >= p->edges[i].after) return bad("edge", i, "it goes backwards");
    }
    BERTH_TRY(check_buffers(p));
    for (uint32_t i = 0; i < p->in_place_count; ++i) {
        const berth_memory_order_in_place *t = &p->in_place[i];
        if (t->node >= p->node_count || t->from >= p->buffer_count || t->to >= p->buffer_count)
            return bad("in-place pair", i, "its node or a buffer does not exist");
        if (t->from == t->to || p->buffers[t->from].size_bytes != p->buffers[t->to].size_bytes)
            return bad("in-place pair", i, "it needs two buffers of equal size");
        if (p->buffers[t->to].users[0] != t->node)
            return bad("in-place pair", i, "the node is not the first one to touch the result");
    }
    return BERTH_OK;
}

// Counting sort of pairs (key, value) into lists by key.
static order_lists make_lists(berth_arena *arena, uint32_t key_count, const uint32_t *keys,
                              const uint32_t *values, uint32_t count) {
    order_lists lists = {.first = berth_arena_new_array(arena, uint32_t, key_count + 2),
                         .items = berth_arena_new_array(arena, uint32_t, count)};
    for (uint32_t i = 0; i < count; ++i) lists.first[keys[i] + 2]++;
    for (uint32_t k = 2; k < key_count + 2; ++k) lists.first[k] += lists.first[k - 1];
    for (uint32_t i = 0; i < count; ++i) lists.items[lists.first[keys[i] + 1]++] = values[i];
    return lists;
}

typedef struct pair_list {
    BERTH_VEC(uint32_t) keys;
    BERTH_VEC(uint32_t) values;
} pair_list;

static void add_pair(berth_arena *arena, pair_list *list, uint32_t key, uint32_t value) {
    berth_vec_push(arena, &list->keys, key);
    berth_vec_push(arena, &list->values, value);
}

static order_lists lists_of(berth_arena *arena, uint32_t key_count, const pair_list *list) {
    return make_lists(arena, key_count, list->keys.data, list->values.data, list->keys.count);
}

void berth_order__cut_part(berth_arena *arena, const berth_memory_order_problem *p, uint32_t first,
                           uint32_t end, order_part *out) {
    *out = (order_part){.node_count = end - first,
                        .sizes = berth_arena_new_array(arena, uint64_t, p->buffer_count),
                        .before = berth_arena_new_array(arena, bool, p->buffer_count),
                        .after = berth_arena_new_array(arena, bool, p->buffer_count)};
    uint32_t *local = berth_arena_new_array(arena, uint32_t, p->buffer_count);
    pair_list users = {0};
    pair_list touches = {0};
    for (uint32_t b = 0; b < p->buffer_count; ++b) {
        const berth_memory_order_buffer *buffer = &p->buffers[b];
        bool before = buffer->users[0] < first;
        bool after = buffer->users[buffer->user_count - 1] >= end;
        bool inside = false;
        local[b] = out->buffer_count;
        for (uint32_t i = 0; i < buffer->user_count; ++i) {
            if (buffer->users[i] < first || buffer->users[i] >= end) continue;
            inside = true;
            add_pair(arena, &users, out->buffer_count, buffer->users[i] - first);
            add_pair(arena, &touches, buffer->users[i] - first, out->buffer_count);
        }
        if (before && (inside || after)) out->begin_bytes += buffer->size_bytes;
        if (before && after && !inside) out->base_bytes += buffer->size_bytes;
        if (!inside) continue;
        out->sizes[out->buffer_count] = buffer->size_bytes;
        out->before[out->buffer_count] = before;
        out->after[out->buffer_count++] = after;
    }
    out->users = lists_of(arena, out->buffer_count, &users);
    out->touches = lists_of(arena, out->node_count, &touches);
    pair_list forwards = {0};
    pair_list backwards = {0};
    for (uint32_t i = 0; i < p->edge_count; ++i) {
        berth_memory_order_edge e = p->edges[i];
        if (e.before < first || e.after >= end) continue;
        add_pair(arena, &forwards, e.before - first, e.after - first);
        add_pair(arena, &backwards, e.after - first, e.before - first);
    }
    out->successors = lists_of(arena, out->node_count, &forwards);
    out->predecessors = lists_of(arena, out->node_count, &backwards);
    pair_list from = {0};
    pair_list to = {0};
    for (uint32_t i = 0; i < p->in_place_count; ++i) {
        berth_memory_order_in_place t = p->in_place[i];
        if (t.node < first || t.node >= end) continue;
        // A buffer that no node of the part touches cannot end here.
        uint32_t last = p->buffers[t.from].users[p->buffers[t.from].user_count - 1];
        if (last < first || last >= end) continue;
        add_pair(arena, &from, t.node - first, local[t.from]);
        add_pair(arena, &to, t.node - first, local[t.to]);
    }
    out->from = lists_of(arena, out->node_count, &from);
    out->to = lists_of(arena, out->node_count, &to).items;
}

// ---- nodes that have their place beside another one ---------------------------------------------

// Sources whose buffers only one other node touches run right before it: earlier, their buffers
// would be live longer, for nothing. Sinks that touch nothing that their only predecessor does not
// touch run right after it: they can only free.
typedef struct gluing {
    const berth_memory_order_problem *p;
    order_part whole;
    uint32_t *owner;  // per node: itself, or the node that it runs beside
    bool *before;     // per node: before its owner
    uint32_t *group;  // per node: number of its owner among the owners
    uint32_t group_count;
} gluing;

static uint32_t only_item(const order_lists *lists, uint32_t index) {
    if (lists->first[index] == lists->first[index + 1]) return UINT32_MAX;
    uint32_t item = lists->items[lists->first[index]];
    for (uint32_t i = lists->first[index]; i < lists->first[index + 1]; ++i)
        if (lists->items[i] != item) return UINT32_MAX;
    return item;
}

static bool list_has(const order_lists *lists, uint32_t index, uint32_t item) {
    for (uint32_t i = lists->first[index]; i < lists->first[index + 1]; ++i)
        if (lists->items[i] == item) return true;
    return false;
}

static bool is_empty(const order_lists *lists, uint32_t index) {
    return lists->first[index] == lists->first[index + 1];
}

static bool runs_before(const gluing *g, uint32_t node, uint32_t owner) {
    const order_part *w = &g->whole;
    for (uint32_t i = w->touches.first[node]; i < w->touches.first[node + 1]; ++i) {
        uint32_t b = w->touches.items[i];
        if (w->users.first[b + 1] - w->users.first[b] != 2 || !list_has(&w->users, b, owner))
            return false;
    }
    return is_empty(&w->from, node);
}

static bool runs_behind(const gluing *g, uint32_t node, uint32_t owner) {
    const order_part *w = &g->whole;
    for (uint32_t i = w->touches.first[node]; i < w->touches.first[node + 1]; ++i) {
        uint32_t b = w->touches.items[i];
        if (!list_has(&w->users, b, owner) || list_has(&w->from, owner, b)) return false;
    }
    return is_empty(&w->from, node);
}

static void glue(berth_arena *arena, gluing *g) {
    const order_part *w = &g->whole;
    bool *owns = berth_arena_new_array(arena, bool, w->node_count);
    for (uint32_t node = 0; node < w->node_count; ++node) g->owner[node] = node;
    for (uint32_t node = 0; node < w->node_count; ++node) {
        uint32_t next = only_item(&w->successors, node);
        if (!is_empty(&w->predecessors, node) || next == UINT32_MAX || !runs_before(g, node, next))
            continue;
        g->owner[node] = next;
        g->before[node] = true;
        owns[next] = true;
    }
    for (uint32_t node = 0; node < w->node_count; ++node) {
        uint32_t previous = only_item(&w->predecessors, node);
        if (!is_empty(&w->successors, node) || previous == UINT32_MAX ||
            g->owner[previous] != previous || g->owner[node] != node || owns[node] ||
            !runs_behind(g, node, previous))
            continue;
        g->owner[node] = previous;
        owns[previous] = true;
    }
    for (uint32_t node = 0; node < w->node_count; ++node)
        if (g->owner[node] == node) g->group[node] = g->group_count++;
    for (uint32_t node = 0; node < w->node_count; ++node) g->group[node] = g->group[g->owner[node]];
}

static int compare_numbers(const void *left, const void *right) {
    uint32_t a = *(const uint32_t *)left;
    uint32_t b = *(const uint32_t *)right;
    return a < b ? -1 : a > b;
}

// The problem whose nodes are the groups.
static void group_problem(berth_arena *arena, const gluing *g, berth_memory_order_problem *out) {
    const berth_memory_order_problem *p = g->p;
    berth_memory_order_edge *edges =
        berth_arena_new_array(arena, berth_memory_order_edge, p->edge_count);
    *out = (berth_memory_order_problem){.node_count = g->group_count, .edges = edges};
    for (uint32_t i = 0; i < p->edge_count; ++i) {
        uint32_t before = g->group[p->edges[i].before];
        uint32_t after = g->group[p->edges[i].after];
        if (before != after) edges[out->edge_count++] = (berth_memory_order_edge){before, after};
    }
    berth_memory_order_buffer *buffers =
        berth_arena_new_array(arena, berth_memory_order_buffer, p->buffer_count);
    out->buffers = buffers;
    out->buffer_count = p->buffer_count;
    for (uint32_t b = 0; b < p->buffer_count; ++b) {
        uint32_t *users = berth_arena_new_array(arena, uint32_t, p->buffers[b].user_count);
        uint32_t count = 0;
        for (uint32_t i = 0; i < p->buffers[b].user_count; ++i)
            users[i] = g->group[p->buffers[b].users[i]];
        qsort(users, p->buffers[b].user_count, sizeof(*users), compare_numbers);
        for (uint32_t i = 0; i < p->buffers[b].user_count; ++i)
            if (count == 0 || users[count - 1] != users[i]) users[count++] = users[i];
        buffers[b] = (berth_memory_order_buffer){p->buffers[b].size_bytes, users, count};
    }
    berth_memory_order_in_place *in_place =
        berth_arena_new_array(arena, berth_memory_order_in_place, p->in_place_count);
    for (uint32_t i = 0; i < p->in_place_count; ++i) {
        in_place[i] = p->in_place[i];
        in_place[i].node = g->group[in_place[i].node];
    }
    out->in_place = in_place;
    out->in_place_count = p->in_place_count;
}

// ---- parts --------------------------------------------------------------------------------------

// ends[i] = true: group i comes after all groups before it and before all groups after it.
static bool *find_ends(berth_arena *arena, const berth_memory_order_problem *p) {
    uint32_t n = p->node_count;
    bool *ends = berth_arena_new_array(arena, bool, n);
    uint32_t *next = berth_arena_new_array(arena, uint32_t, n);      // nearest successor
    uint32_t *previous = berth_arena_new_array(arena, uint32_t, n);  // nearest predecessor + 1
    memset(next, 0xff, n * sizeof(*next));
    for (uint32_t i = 0; i < p->edge_count; ++i) {
        berth_memory_order_edge e = p->edges[i];
        if (e.after < next[e.before]) next[e.before] = e.after;
        if (e.before + 1 > previous[e.after]) previous[e.after] = e.before + 1;
    }
    uint32_t farthest = 0;
    for (uint32_t i = 0; i < n; ++i) {
        ends[i] = farthest <= i;  // every group before leads here
        if (next[i] > farthest) farthest = next[i];
    }
    uint32_t nearest = UINT32_MAX;
    for (uint32_t i = n; i-- > 0;) {
        ends[i] &= nearest >= i + 1;  // every later group comes from here
        if (previous[i] < nearest) nearest = previous[i];
    }
    return ends;
}

typedef struct part_record {
    uint32_t first, end;
    uint64_t source_bytes;
    uint64_t bound_bytes;
    uint64_t peak_bytes;
    bool tried;
} part_record;

typedef struct solver {
    berth_arena *scratch;
    berth_memory_order_problem p;  // of the groups
    BERTH_VEC(part_record) parts;
    uint32_t *order;  // of the groups
    uint64_t states_left;
} solver;

// Live bytes at every group in the given order.
static uint64_t *live_at_groups(solver *s) {
    order_part whole;
    berth_order__cut_part(s->scratch, &s->p, 0, s->p.node_count, &whole);
    uint64_t *live_at = berth_arena_new_array(s->scratch, uint64_t, s->p.node_count);
    uint64_t *done = berth_arena_new_array(s->scratch, uint64_t, s->p.node_count / 64 + 1);
    uint64_t live = 0;
    for (uint32_t i = 0; i < s->p.node_count; ++i) {
        order_move move = berth_order__move(&whole, done, i, live);
        live_at[i] = move.during_bytes;
        live = move.after_bytes;
        berth_order__add(done, i);
    }
    return live_at;
}

static uint64_t bound_of(solver *s, uint32_t first, uint32_t end) {
    berth_arena *arena = berth_arena_create_child(s->scratch);
    order_part part;
    berth_order__cut_part(arena, &s->p, first, end, &part);
    uint64_t bound = berth_order__bound(arena, &part);
    berth_arena_destroy(arena);
    return bound;
}

static void measure_parts(solver *s) {
    const bool *ends = find_ends(s->scratch, &s->p);
    const uint64_t *live_at = live_at_groups(s);
    part_record record = {0};
    for (uint32_t i = 0; i < s->p.node_count; ++i) {
        if (live_at[i] > record.source_bytes) record.source_bytes = live_at[i];
        if (!ends[i] && i + 1 < s->p.node_count) continue;
        record.end = i + 1;
        bool fixed = record.end - record.first <= (ends[i] ? 2u : 1u);
        record.peak_bytes = record.source_bytes;
        record.bound_bytes = fixed ? record.source_bytes : bound_of(s, record.first, record.end);
        berth_vec_push(s->scratch, &s->parts, record);
        record = (part_record){.first = i + 1};
    }
}

static uint64_t highest_bound(const solver *s) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < s->parts.count; ++i)
        if (s->parts.data[i].bound_bytes > bytes) bytes = s->parts.data[i].bound_bytes;
    return bytes;
}

static void solve_part(solver *s, part_record *record, uint64_t floor_bytes) {
    berth_arena *arena = berth_arena_create_child(s->scratch);
    order_part part;
    berth_order__cut_part(arena, &s->p, record->first, record->end, &part);
    uint32_t *order = berth_arena_new_array(arena, uint32_t, part.node_count);
    order_search search = {.floor_bytes = floor_bytes,
                           .limit_bytes = record->peak_bytes,
                           .states_left = s->states_left,
                           .order = order};
    berth_order__best_first(arena, &part, &search);
    s->states_left = search.states_left;
    if (search.bound_bytes > record->bound_bytes) record->bound_bytes = search.bound_bytes;
    if (!search.found && search.bound_bytes < search.limit_bytes)
        berth_order__beam(arena, &part, &search);
    if (search.found) {
        record->peak_bytes = search.peak_bytes;
        for (uint32_t i = 0; i < part.node_count; ++i)
            s->order[record->first + i] = record->first + order[i];
    }
    berth_arena_destroy(arena);
}

// The part with the highest peak first, until that is one which cannot be lowered.
static void solve_parts(solver *s) {
    for (;;) {
        part_record *top = NULL;
        for (uint32_t i = 0; i < s->parts.count; ++i)
            if (!top || s->parts.data[i].peak_bytes > top->peak_bytes) top = &s->parts.data[i];
        uint64_t floor_bytes = highest_bound(s);
        if (!top || top->tried || top->peak_bytes <= floor_bytes) return;
        top->tried = true;
        solve_part(s, top, floor_bytes);
    }
}

static void expand_order(berth_arena *arena, const gluing *g, const uint32_t *order,
                         uint32_t *out_nodes) {
    uint32_t n = g->p->node_count;
    pair_list members = {0};
    for (int place = 0; place < 3; ++place)
        for (uint32_t node = 0; node < n; ++node) {
            int own = g->owner[node] == node ? 1 : g->before[node] ? 0 : 2;
            if (own == place) add_pair(arena, &members, g->group[node], node);
        }
    order_lists lists = lists_of(arena, g->group_count, &members);
    uint32_t count = 0;
    for (uint32_t i = 0; i < g->group_count; ++i)
        for (uint32_t k = lists.first[order[i]]; k < lists.first[order[i] + 1]; ++k)
            out_nodes[count++] = lists.items[k];
}

// ---- entry --------------------------------------------------------------------------------------

uint64_t berth_memory_order_peak(berth_arena *arena, const berth_memory_order_problem *problem,
                                 const uint32_t *nodes) {
    berth_arena *scratch = berth_arena_create_child(arena);
    order_part whole;
    berth_order__cut_part(scratch, problem, 0, problem->node_count, &whole);
    uint64_t *done = berth_arena_new_array(scratch, uint64_t, problem->node_count / 64 + 1);
    uint64_t peak = 0;
    uint64_t live = 0;
    for (uint32_t i = 0; i < problem->node_count; ++i) {
        order_move move = berth_order__move(&whole, done, nodes[i], live);
        if (move.during_bytes > peak) peak = move.during_bytes;
        live = move.after_bytes;
        berth_order__add(done, nodes[i]);
    }
    berth_arena_destroy(scratch);
    return peak;
}

static void solve(berth_arena *scratch, const berth_memory_order_problem *problem,
                  uint64_t state_budget, berth_memory_order *out) {
    uint32_t n = problem->node_count;
    gluing g = {.p = problem,
                .owner = berth_arena_new_array(scratch, uint32_t, n),
                .before = berth_arena_new_array(scratch, bool, n),
                .group = berth_arena_new_array(scratch, uint32_t, n)};
    berth_order__cut_part(scratch, problem, 0, n, &g.whole);
    out->source_bytes = berth_order__source_peak(scratch, &g.whole);
    out->peak_bytes = out->source_bytes;
    for (uint32_t i = 0; i < n; ++i) out->nodes[i] = i;
    glue(scratch, &g);
    solver s = {.scratch = scratch, .states_left = state_budget};
    group_problem(scratch, &g, &s.p);
    s.order = berth_arena_new_array(scratch, uint32_t, g.group_count);
    for (uint32_t i = 0; i < g.group_count; ++i) s.order[i] = i;
    measure_parts(&s);
    solve_parts(&s);
    out->lower_bound_bytes = highest_bound(&s);
    out->states = state_budget - s.states_left;
    uint32_t *nodes = berth_arena_new_array(scratch, uint32_t, n);
    expand_order(scratch, &g, s.order, nodes);
    uint64_t peak = berth_memory_order_peak(scratch, problem, nodes);
    if (peak < out->source_bytes) {
        memcpy(out->nodes, nodes, n * sizeof(*nodes));
        out->peak_bytes = peak;
    }
    out->proven = out->peak_bytes <= out->lower_bound_bytes;
}

berth_status berth_memory_order_solve(berth_arena *arena, const berth_memory_order_problem *problem,
                                      uint64_t state_budget, berth_memory_order *out_order) {
    *out_order = (berth_memory_order){.proven = true};
    BERTH_TRY(berth_order__check(problem));
    out_order->nodes = berth_arena_new_array(arena, uint32_t, problem->node_count);
    if (problem->node_count == 0) return BERTH_OK;
    berth_arena *scratch = berth_arena_create_child(arena);
    solve(scratch, problem, state_budget ? state_budget : BERTH_MEMORY_ORDER_DEFAULT_STATES,
          out_order);
    berth_arena_destroy(scratch);
    return BERTH_OK;
}
