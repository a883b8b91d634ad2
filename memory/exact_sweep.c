// Many waiting cliques at once. The items of their range, in order of lowest offset and greatest
// first, are added to all cliques they are in: the sums that the bound of every clique asks for
// come by in that order, and the inner loop runs over neighbouring cliques without a branch. Clique
// by clique the same costs a sort and an indirect look at every member.
#include <string.h>

#include "memory/exact_private.h"

// Sweeping a range costs about as much as looking at this part of its members one by one, and a
// look at every item of the part.
enum { SWEEP_SHARE = 4, SWEEP_LEAST = 4 };

typedef struct sweep_range {
    uint32_t begin, end;  // cliques
} sweep_range;

static sweep_range range_of(const exact_queue *queue) {
    sweep_range range = {UINT32_MAX, 0};
    for (uint32_t k = 0; k < queue->count; ++k) {
        if (queue->entries[k] < range.begin) range.begin = queue->entries[k];
        if (queue->entries[k] >= range.end) range.end = queue->entries[k] + 1;
    }
    return range;
}

bool berth_memory__exact_sweep_pays(const exact_search *search) {
    const exact_part *part = search->part;
    const exact_queue *queue = &search->clique_queue;
    if (part->cover || queue->count < SWEEP_LEAST) return false;
    uint64_t waiting = 0;
    for (uint32_t k = 0; k < queue->count; ++k)
        waiting +=
            part->member_begin[queue->entries[k] + 1] - part->member_begin[queue->entries[k]];
    if (waiting < part->item_count) return false;
    sweep_range range = range_of(queue);
    uint64_t members = part->member_begin[range.end] - part->member_begin[range.begin];
    return waiting > part->item_count + members / SWEEP_SHARE;
}

// The unplaced items of the range, greatest lowest offset first. The order changes little from one
// sweep to the next: it starts from that of the last one, in O(items + inversions).
static uint32_t sort_items(exact_search *search, sweep_range range) {
    const exact_part *part = search->part;
    exact_swept *swept = search->swept;
    uint32_t count = 0;
    for (uint32_t k = 0; k < part->item_count; ++k) {
        uint32_t item = search->sweep_order[k];
        int64_t lowest = search->lowest[item];
        if (lowest == EXACT_PLACED || part->items[item].first >= range.end ||
            part->items[item].end <= range.begin)
            continue;
        search->sweep_slot[count] = k;
        uint32_t at = count++;
        for (; at > 0 && swept[at - 1].lowest < lowest; --at) swept[at] = swept[at - 1];
        swept[at] = (exact_swept){lowest, item};
    }
    for (uint32_t k = 0; k < count; ++k) search->sweep_order[search->sweep_slot[k]] = swept[k].item;
    return count;
}

// Why the items up to number `last` do not fit above the lowest offset of that one: those of one
// clique in which they do not.
static bool fail_sweep(exact_search *search, sweep_range range, uint32_t last) {
    const exact_part *part = search->part;
    const exact_item *it = &part->items[search->swept[last].item];
    uint32_t clique = it->first > range.begin ? it->first : range.begin;
    while (search->swept[last].lowest + search->sweep_above[clique] <= part->capacity) ++clique;
    search->failure = EXACT_ALWAYS;
    for (uint32_t k = 0; k <= last; ++k) {
        uint32_t item = search->swept[k].item;
        if (part->items[item].first > clique || part->items[item].end <= clique) continue;
        search->failure = exact_reason_join(search->failure, search->why[item]);
        search->failure = exact_reason_join(search->failure, exact_item_range(&part->items[item]));
    }
    return false;
}

// Sums of the cliques that the item is in. False: more than `room` in one of them.
static bool add_item(int64_t *restrict above, int64_t *restrict low, uint32_t count, int64_t size,
                     int64_t lowest, int64_t room) {
    int64_t left = 0;  // negative as soon as one is
    for (uint32_t c = 0; c < count; ++c) {
        above[c] += size;
        low[c] = lowest;
        left |= room - above[c];
    }
    return left >= 0;
}

// Items that hang in a clique that waits are to be looked at again.
static void enqueue_hanging(exact_search *search, sweep_range range, uint32_t count) {
    uint32_t *waiting = search->sweep_waiting;  // cliques of the range before one
    waiting[range.begin] = 0;
    for (uint32_t c = range.begin; c < range.end; ++c)
        waiting[c + 1] = waiting[c] + (search->clique_queue.waiting[c] ? 1 : 0);
    for (uint32_t k = 0; k < count; ++k) {
        uint32_t item = search->swept[k].item;
        const exact_item *it = &search->part->items[item];
        uint32_t first = it->first > range.begin ? it->first : range.begin;
        uint32_t end = it->end < range.end ? it->end : range.end;
        if (!search->supported[item] && waiting[end] > waiting[first])
            berth_memory__exact_enqueue(&search->item_queue, item);
    }
}

bool berth_memory__exact_sweep(exact_search *search) {
    const exact_part *part = search->part;
    sweep_range range = range_of(&search->clique_queue);
    uint32_t cliques = range.end - range.begin;
    uint32_t count = sort_items(search, range);
    memset(search->sweep_above + range.begin, 0, cliques * sizeof(int64_t));
    memset(search->sweep_low + range.begin, 0, cliques * sizeof(int64_t));
    search->work += part->item_count + cliques;
    for (uint32_t k = 0; k < count; ++k) {
        const exact_item *it = &part->items[search->swept[k].item];
        uint32_t first = it->first > range.begin ? it->first : range.begin;
        uint32_t end = it->end < range.end ? it->end : range.end;
        int64_t lowest = search->swept[k].lowest;
        search->work += (end - first) / SWEEP_SHARE;
        if (!add_item(search->sweep_above + first, search->sweep_low + first, end - first, it->size,
                      lowest, part->capacity - lowest))
            return fail_sweep(search, range, k);
    }
    enqueue_hanging(search, range, count);
    for (uint32_t c = range.begin; c < range.end; ++c)
        if (search->sweep_low[c] > search->floor[c])
            berth_memory__exact_set_floor(search, c, search->sweep_low[c]);
    berth_memory__exact_empty_queue(&search->clique_queue);
    return true;
}
