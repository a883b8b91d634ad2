// Orders in which the candidates of a clique are tried.
#include <stdlib.h>

#include "memory/exact_private.h"

enum { ORDER_KEYS = 3 };

typedef struct order_entry {
    double keys[ORDER_KEYS];  // descending
    uint32_t item;
} order_entry;

static int compare_entries(const void *left, const void *right) {
    const order_entry *a = left;
    const order_entry *b = right;
    for (int k = 0; k < ORDER_KEYS; ++k)
        if (a->keys[k] != b->keys[k]) return a->keys[k] > b->keys[k] ? -1 : 1;
    return a->item < b->item ? -1 : a->item > b->item;
}

// W: duration; A: duration times size; T: largest live sum while it lives; Z: size. The first three
// orders are those of MiniMalloc.
static const char *const orders[] = {"WAT", "TAW", "TWA", "ZWA"};
enum { order_count = sizeof(orders) / sizeof(orders[0]) };
_Static_assert((int)order_count == (int)EXACT_ORDERS, "as many as the header says");

static double order_key(char letter, const exact_item *item, const berth_memory_interval *interval,
                        int64_t most) {
    double width = (double)interval->upper - (double)interval->lower;
    switch (letter) {
    case 'W': return width;
    case 'A': return width * (double)item->size;
    case 'T': return (double)most;
    default: return (double)item->size;
    }
}

// Every key is multiplied with a random factor of the item.
void berth_memory__exact_rank(berth_arena *arena, const exact_part *part,
                              const berth_memory_interval *intervals, uint32_t number, double noise,
                              uint64_t state, uint32_t *rank) {
    const char *order = orders[number % order_count];
    berth_arena *scratch = berth_arena_create_child(arena);
    order_entry *entries = berth_arena_new_array(scratch, order_entry, part->item_count);
    int64_t *live = berth_arena_new_array(scratch, int64_t, part->clique_count);
    for (uint32_t i = 0; i < part->item_count; ++i)
        for (uint32_t c = part->items[i].first; c < part->items[i].end; ++c)
            live[c] += part->items[i].size;
    for (uint32_t i = 0; i < part->item_count; ++i) {
        const exact_item *item = &part->items[i];
        int64_t most = 0;
        for (uint32_t c = item->first; c < item->end; ++c)
            if (live[c] > most) most = live[c];
        double factor = 1 + noise * (exact_random_fraction(&state) - 0.5);
        entries[i].item = i;
        for (int k = 0; k < ORDER_KEYS; ++k)
            entries[i].keys[k] = factor * order_key(order[k], item, &intervals[item->source], most);
    }
    qsort(entries, part->item_count, sizeof(*entries), compare_entries);
    for (uint32_t i = 0; i < part->item_count; ++i) rank[entries[i].item] = i;
    berth_arena_destroy(scratch);
}
