// The order of the items for the dynamic program of pricing.h.
#include <math.h>
#include <string.h>

#include "planner/solve/bounds/pricing.h"

enum { MOST_HUBS = 6 };

// An item with what it would open when it was pushed; out of date where `opened` says otherwise.
typedef struct entry {
    int opened;
    uint32_t tie;  // by chance
    uint32_t item;
} entry;

typedef struct ordering {
    const berth_place_nets *nets;
    const uint32_t *hubs;   // [item_count] items of many nets first
    uint32_t hub_count;     // so many of them come first
    uint32_t *size;         // [nets] pins that are not hubs
    uint32_t *left;         // [nets] those of them not placed yet
    int *opened;            // [items] nets that the item would open, less those that it would close
    bool *placed;           // [items]
    BERTH_VEC(entry) heap;  // of items near to placed ones
    berth_arena *arena;
    uint32_t *order;
    uint64_t random;
    uint64_t work;
} ordering;

static bool comes_first(const entry *a, const entry *b) {
    return a->opened < b->opened || (a->opened == b->opened && a->tie < b->tie);
}

static void push(ordering *o, uint32_t item) {
    o->random = o->random * 6364136223846793005u + 1442695040888963407u;
    entry e = {o->opened[item], (uint32_t)(o->random >> 33), item};
    berth_vec_push(o->arena, &o->heap, e);
    entry *heap = o->heap.data;
    uint32_t at = o->heap.count - 1;
    for (; at > 0 && comes_first(&e, &heap[(at - 1) / 2]); at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = e;
    o->work++;
}

static entry pop(ordering *o) {
    entry *heap = o->heap.data;
    entry top = heap[0], moved = heap[--o->heap.count];
    uint32_t at = 0;
    for (uint32_t child = 1; child < o->heap.count; child = 2 * at + 1) {
        if (child + 1 < o->heap.count && comes_first(&heap[child + 1], &heap[child])) ++child;
        if (!comes_first(&heap[child], &moved)) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moved;
    return top;
}

// One of the near items that open fewest nets (or close most); BERTH_PLACE_NONE when none is near.
static uint32_t choose_next(ordering *o) {
    while (o->heap.count > 0) {
        entry e = pop(o);
        if (!o->placed[e.item] && o->opened[e.item] == e.opened) return e.item;
    }
    return BERTH_PLACE_NONE;
}

// Every pin of the net that is not placed opens one less.
static void change_pins(ordering *o, uint32_t net) {
    const berth_place_nets *nets = o->nets;
    for (uint32_t p = nets->pin_start[net]; p < nets->pin_start[net + 1]; ++p) {
        uint32_t item = nets->pins[p];
        if (o->placed[item]) continue;
        o->opened[item]--;
        push(o, item);
    }
    o->work += nets->pin_start[net + 1] - nets->pin_start[net];
}

static void place(ordering *o, uint32_t item) {
    const berth_place_nets *nets = o->nets;
    o->placed[item] = true;
    for (uint32_t e = nets->inet_start[item]; e < nets->inet_start[item + 1]; ++e) {
        uint32_t net = nets->inets[e];
        if (o->size[net] < 2) continue;
        bool first = o->left[net] == o->size[net];
        o->left[net]--;
        if (first) change_pins(o, net);              // it is open now
        if (o->left[net] == 1) change_pins(o, net);  // the last one closes it
    }
    o->work += 4;
}

static void begin(ordering *o) {
    const berth_place_nets *nets = o->nets;
    uint32_t n = nets->item_count;
    memset(o->placed, 0, n * sizeof(*o->placed));
    memset(o->opened, 0, n * sizeof(*o->opened));
    for (uint32_t i = 0; i < o->hub_count; ++i) {
        o->order[i] = o->hubs[i];
        o->placed[o->hubs[i]] = true;
    }
    for (uint32_t t = 0; t < nets->net_count; ++t) {
        uint32_t size = 0;
        for (uint32_t p = nets->pin_start[t]; p < nets->pin_start[t + 1]; ++p)
            size += !o->placed[nets->pins[p]];
        o->size[t] = o->left[t] = size;
        if (size < 2) continue;
        for (uint32_t p = nets->pin_start[t]; p < nets->pin_start[t + 1]; ++p)
            o->opened[nets->pins[p]]++;
    }
    o->heap.count = 0;
    o->work += n + nets->net_count;
}

// Returns the sum over positions of 2^hubs 3^(open nets): about the number of states.
static double order_from(ordering *o, uint32_t start, double give_up) {
    uint32_t n = o->nets->item_count;
    double sum = 0;
    int open = 0;
    uint32_t unseen = 0;
    begin(o);
    for (uint32_t position = o->hub_count; position < n && sum < give_up; ++position) {
        uint32_t item = position == o->hub_count && !o->placed[start] ? start : choose_next(o);
        if (item == BERTH_PLACE_NONE) {
            while (o->placed[unseen]) ++unseen;
            item = unseen;
        }
        open += o->opened[item];
        place(o, item);
        o->order[position] = item;
        sum += exp2(fmin(log2(3) * open + o->hub_count, 1000));
    }
    return sum;
}

// Items of many nets, those of the most first. Returns how many are worth being hubs.
static uint32_t list_hubs(const berth_place_nets *nets, uint32_t *out_hubs) {
    enum { LEAST_NETS = 6 };
    uint32_t count = 0;
    for (uint32_t i = 0; i < nets->item_count; ++i) {
        uint32_t own = nets->inet_start[i + 1] - nets->inet_start[i];
        if (own < LEAST_NETS) continue;
        uint32_t at = count < MOST_HUBS ? count++ : MOST_HUBS;
        for (; at > 0; --at) {
            uint32_t other = out_hubs[at - 1];
            if (nets->inet_start[other + 1] - nets->inet_start[other] >= own) break;
            if (at < MOST_HUBS) out_hubs[at] = other;
        }
        if (at < MOST_HUBS) out_hubs[at] = i;
    }
    return count;
}

bool berth_place__pricing_order(berth_arena *arena, const berth_place_nets *nets,
                                berth_place_search *search, uint32_t *out_order) {
    enum { WORK = 4 * 1000 * 1000, WORK_PER_NODE = 64, MOST = 400 };
    uint32_t n = nets->item_count;
    ordering o = {.nets = nets, .arena = berth_arena_create_child(arena)};
    o.left = berth_arena_new_array(o.arena, uint32_t, (size_t)nets->net_count + 1);
    o.opened = berth_arena_new_array(o.arena, int, (size_t)n + 1);
    o.placed = berth_arena_new_array(o.arena, bool, (size_t)n + 1);
    o.size = berth_arena_new_array(o.arena, uint32_t, (size_t)nets->net_count + 1);
    uint32_t hub_items[MOST_HUBS];
    uint32_t hubs = list_hubs(nets, hub_items);
    o.hubs = hub_items;
    o.order = berth_arena_new_array(o.arena, uint32_t, (size_t)n + 1);
    double best = INFINITY;
    uint64_t work = 0;
    bool stopped = false;
    for (uint32_t i = 0; i < MOST && work < WORK && !stopped; ++i) {
        // Starts spread over all items, however many of them there is time for.
        uint32_t start = (uint32_t)((double)n * fmod(i / (hubs + 1) * 0.6180339887498949, 1));
        o.hub_count = i % (hubs + 1);
        double sum = order_from(&o, start, best);
        stopped = search && berth_place_spent(search, 1 + o.work / WORK_PER_NODE);
        work += o.work;
        o.work = 0;
        if (sum >= best) continue;
        best = sum;
        memcpy(out_order, o.order, n * sizeof(*out_order));
    }
    berth_arena_destroy(o.arena);
    return !stopped;
}
