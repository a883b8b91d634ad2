// Searches for the order of a part: best-first over sets of finished nodes, and a beam.
#include <stdlib.h>
#include <string.h>

#include "memory/order_private.h"

// A set of finished nodes: what is live then depends on the set alone, the peak on the way to it.
typedef struct state {
    uint64_t peak_bytes;
    uint64_t live_bytes;
    uint32_t parent;
    uint32_t node;  // that was run last
    uint32_t depth;
    bool closed;
} state;

typedef struct heap_item {
    uint64_t peak_bytes;
    uint64_t live_bytes;
    uint32_t depth;
    uint32_t state;
} heap_item;

typedef struct explorer {
    const order_part *part;
    berth_arena *arena;
    uint32_t words;
    BERTH_VEC(state) states;
    uint64_t *sets;  // [state * words]
    size_t set_capacity;
    uint32_t *slots;  // open addressing, state + 1
    uint32_t mask;
    BERTH_VEC(heap_item) heap;
} explorer;

static uint64_t *set_of(const explorer *x, uint32_t index) {
    return x->sets + (size_t)index * x->words;
}

static uint32_t hash_set(const explorer *x, const uint64_t *set) {
    uint64_t hash = 0x9e3779b97f4a7c15u;
    for (uint32_t w = 0; w < x->words; ++w) {
        hash = (hash ^ set[w]) * 0xff51afd7ed558ccdu;
        hash ^= hash >> 32;
    }
    return (uint32_t)hash;
}

static uint32_t *find_slot(const explorer *x, const uint64_t *set) {
    for (uint32_t at = hash_set(x, set) & x->mask;; at = (at + 1) & x->mask) {
        uint32_t *slot = &x->slots[at];
        if (*slot == 0 || memcmp(set_of(x, *slot - 1), set, x->words * sizeof(*set)) == 0)
            return slot;
    }
}

static void grow_table(explorer *x) {
    x->mask = x->mask ? x->mask * 2 + 1 : 1023;
    x->slots = berth_arena_new_array(x->arena, uint32_t, (size_t)x->mask + 1);
    for (uint32_t i = 0; i < x->states.count; ++i) *find_slot(x, set_of(x, i)) = i + 1;
}

// The state of a set; a new one has the peak UINT64_MAX.
static uint32_t intern(explorer *x, const uint64_t *set) {
    if (x->states.count * 2 >= x->mask) grow_table(x);
    uint32_t *slot = find_slot(x, set);
    if (*slot) return *slot - 1;
    uint32_t index = x->states.count;
    if (((size_t)index + 1) * x->words > x->set_capacity) {
        size_t wanted = x->set_capacity ? x->set_capacity * 2 : (size_t)256 * x->words;
        x->sets = berth_arena_grow(x->arena, x->sets, x->set_capacity * sizeof(*x->sets),
                                   wanted * sizeof(*x->sets));
        x->set_capacity = wanted;
    }
    memcpy(set_of(x, index), set, x->words * sizeof(*set));
    berth_vec_push(x->arena, &x->states, (state){.peak_bytes = UINT64_MAX});
    *slot = index + 1;
    return index;
}

// ---- heap ---------------------------------------------------------------------------------------

// Lowest peak first; then the set with the most nodes, so that the first of equal peaks is
// finished.
static bool comes_first(const heap_item *a, const heap_item *b) {
    if (a->peak_bytes != b->peak_bytes) return a->peak_bytes < b->peak_bytes;
    if (a->depth != b->depth) return a->depth > b->depth;
    if (a->live_bytes != b->live_bytes) return a->live_bytes < b->live_bytes;
    return a->state < b->state;
}

static void push(explorer *x, uint32_t index) {
    const state *s = &x->states.data[index];
    heap_item item = {s->peak_bytes, s->live_bytes, s->depth, index};
    berth_vec_push(x->arena, &x->heap, item);
    uint32_t at = x->heap.count - 1;
    while (at > 0 && comes_first(&item, &x->heap.data[(at - 1) / 2])) {
        x->heap.data[at] = x->heap.data[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    x->heap.data[at] = item;
}

static heap_item pop(explorer *x) {
    heap_item top = x->heap.data[0];
    heap_item last = x->heap.data[--x->heap.count];
    uint32_t at = 0;
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= x->heap.count) break;
        if (child + 1 < x->heap.count &&
            comes_first(&x->heap.data[child + 1], &x->heap.data[child]))
            child++;
        if (!comes_first(&x->heap.data[child], &last)) break;
        x->heap.data[at] = x->heap.data[child];
        at = child;
    }
    if (x->heap.count > 0) x->heap.data[at] = last;
    return top;
}

// ---- moves --------------------------------------------------------------------------------------

static bool is_ready(const order_part *part, const uint64_t *set, uint32_t node) {
    if (berth_order__has(set, node)) return false;
    for (uint32_t i = part->predecessors.first[node]; i < part->predecessors.first[node + 1]; ++i)
        if (!berth_order__has(set, part->predecessors.items[i])) return false;
    return true;
}

typedef struct choice {
    uint32_t node;
    order_move move;
} choice;

// The nodes that may run next. One that frees at least what it adds and does not raise the peak is
// the only choice: in every order that goes on from here it can be moved to the front, since what
// it adds only shrinks and what it frees only grows as more nodes are done.
static uint32_t list_choices(const order_part *part, const uint64_t *set, const state *from,
                             choice *out_choices) {
    uint32_t count = 0;
    for (uint32_t node = 0; node < part->node_count; ++node) {
        if (!is_ready(part, set, node)) continue;
        choice c = {node, berth_order__move(part, set, node, from->live_bytes)};
        if (c.move.during_bytes <= from->peak_bytes && c.move.after_bytes <= from->live_bytes) {
            out_choices[0] = c;
            return 1;
        }
        out_choices[count++] = c;
    }
    return count;
}

// Sets of a large part are large, and there are as many choices as nodes: no more than so many bytes of them are kept.
static uint32_t most_sets(const explorer *x) {
    enum { most_bytes = 1 << 25 };
    return most_bytes / (x->words * (uint32_t)sizeof(uint64_t)) + 1;
}

// What looking at one set counts as: its choices are listed by a walk over all nodes.
static uint64_t cost_of(const order_part *part) {
    enum { nodes = 1024 };
    return 1 + part->node_count / nodes;
}

static void read_order(const explorer *x, uint32_t index, uint32_t *out_order) {
    for (uint32_t at = index; x->states.data[at].depth > 0; at = x->states.data[at].parent)
        out_order[x->states.data[at].depth - 1] = x->states.data[at].node;
}

static void start(explorer *x, berth_arena *scratch, const order_part *part, uint64_t floor) {
    *x = (explorer){.part = part, .arena = scratch, .words = part->node_count / 64 + 1};
    uint64_t *empty = berth_arena_new_array(scratch, uint64_t, x->words);
    uint32_t first = intern(x, empty);
    x->states.data[first].peak_bytes = floor > part->begin_bytes ? floor : part->begin_bytes;
    x->states.data[first].live_bytes = part->begin_bytes;
}

// The state after a move when it is new or better than known; UINT32_MAX otherwise.
static uint32_t follow(explorer *x, uint32_t index, const choice *c, uint64_t *set) {
    const state from = x->states.data[index];
    uint64_t peak = c->move.during_bytes > from.peak_bytes ? c->move.during_bytes : from.peak_bytes;
    memcpy(set, set_of(x, index), x->words * sizeof(*set));
    berth_order__add(set, c->node);
    uint32_t next = intern(x, set);
    state *s = &x->states.data[next];
    if (s->peak_bytes <= peak) return UINT32_MAX;
    *s = (state){.peak_bytes = peak,
                 .live_bytes = c->move.after_bytes,
                 .parent = index,
                 .node = c->node,
                 .depth = from.depth + 1};
    return next;
}

void berth_order__best_first(berth_arena *scratch, const order_part *part, order_search *search) {
    explorer x;
    start(&x, scratch, part, search->floor_bytes);
    choice *choices = berth_arena_new_array(scratch, choice, part->node_count);
    uint64_t *set = berth_arena_new_array(scratch, uint64_t, x.words);
    const uint64_t cost = cost_of(part);
    push(&x, 0);
    search->found = false;
    search->bound_bytes = search->limit_bytes;  // when everything below the limit is looked at
    while (x.heap.count > 0) {
        heap_item item = pop(&x);
        state *s = &x.states.data[item.state];
        if (s->closed || s->peak_bytes != item.peak_bytes) continue;
        if (s->depth == part->node_count) {
            search->found = true;
            search->peak_bytes = search->bound_bytes = s->peak_bytes;
            read_order(&x, item.state, search->order);
            return;
        }
        if (search->states_left < cost || x.states.count >= most_sets(&x)) {
            search->bound_bytes = s->peak_bytes;
            return;
        }
        search->states_left -= cost;
        s->closed = true;
        uint32_t count = list_choices(part, set_of(&x, item.state), s, choices);
        for (uint32_t i = 0; i < count; ++i) {
            if (choices[i].move.during_bytes >= search->limit_bytes) continue;
            uint32_t next = follow(&x, item.state, &choices[i], set);
            if (next != UINT32_MAX) push(&x, next);
        }
    }
}

// ---- beam ---------------------------------------------------------------------------------------

// A set of the next level: one of this level, and what is run after it.
typedef struct successor {
    heap_item item;  // of it
    uint32_t from;
    choice made;
} successor;

typedef BERTH_VEC(successor) successor_list;

static int compare_successors(const void *left, const void *right) {
    const successor *a = left, *b = right;
    return comes_first(&a->item, &b->item) ? -1 : comes_first(&b->item, &a->item);
}

// About as many moves as the best-first search may make, however large the part is.
static uint32_t beam_width(const order_part *part) {
    uint64_t cost = (uint64_t)part->node_count * part->node_count + 1;
    uint64_t width = ((uint64_t)1 << 23) / cost;
    return width < 1 ? 1 : width > 64 ? 64 : (uint32_t)width;
}

// The best of the sets that may come next, each once: only these are made. Returns their number.
static uint32_t select_best(explorer *x, successor_list *list, uint32_t width, uint64_t *set,
                            uint32_t *out_level) {
    uint32_t count = 0;
    if (width == 1)
        for (uint32_t i = 1; i < list->count; ++i)
            if (comes_first(&list->data[i].item, &list->data[0].item))
                list->data[0] = list->data[i];
    if (width > 1 && list->count)
        qsort(list->data, list->count, sizeof(*list->data), compare_successors);
    for (uint32_t i = 0; i < list->count && count < width; ++i) {
        uint32_t next = follow(x, list->data[i].from, &list->data[i].made, set);
        if (next != UINT32_MAX) out_level[count++] = next;
    }
    list->count = 0;
    return count;
}

static void add_successors(explorer *x, uint32_t index, uint64_t limit_bytes, choice *choices,
                           berth_arena *scratch, successor_list *out) {
    const state from = x->states.data[index];
    uint32_t count = list_choices(x->part, set_of(x, index), &from, choices);
    for (uint32_t i = 0; i < count; ++i) {
        const order_move move = choices[i].move;
        if (move.during_bytes >= limit_bytes) continue;
        uint64_t peak = move.during_bytes > from.peak_bytes ? move.during_bytes : from.peak_bytes;
        heap_item item = {peak, move.after_bytes, from.depth + 1, out->count};
        berth_vec_push(scratch, out, (successor){.item = item, .from = index, .made = choices[i]});
    }
}

void berth_order__beam(berth_arena *scratch, const order_part *part, order_search *search) {
    enum { most_nodes = 8192 };  // it takes time in their square
    explorer x;
    search->found = false;
    if (part->node_count > most_nodes) return;
    start(&x, scratch, part, search->floor_bytes);
    successor_list list = {0};
    uint32_t width = beam_width(part);
    choice *choices = berth_arena_new_array(scratch, choice, part->node_count);
    uint64_t *set = berth_arena_new_array(scratch, uint64_t, x.words);
    uint32_t *level = berth_arena_new_array(scratch, uint32_t, width);
    uint32_t count = 1;
    for (uint32_t depth = 0; depth < part->node_count && count > 0; ++depth) {
        for (uint32_t k = 0; k < count; ++k)
            add_successors(&x, level[k], search->limit_bytes, choices, scratch, &list);
        count = select_best(&x, &list, width, set, level);
    }
    if (count == 0) return;
    search->found = true;
    search->peak_bytes = x.states.data[level[0]].peak_bytes;
    read_order(&x, level[0], search->order);
}
