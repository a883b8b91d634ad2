// Propagation: what follows from a placement or a raised item. Works through queues of cliques and
// items that something changed in, so that a step costs what is near it, not the whole part.
#include "memory/exact_private.h"

static uint32_t dequeue(exact_queue *queue) {
    uint32_t entry = queue->entries[--queue->count];
    queue->waiting[entry] = false;
    return entry;
}

// Sorts the clique's items by lowest offset, greatest first, placed ones last. The order changes
// little from one call to the next: O(n + inversions).
static void sort_members(exact_search *search, uint32_t *members, uint32_t count) {
    for (uint32_t k = 1; k < count; ++k) {
        uint32_t item = members[k];
        int64_t lowest = search->lowest[item];
        uint32_t at = k;
        for (; at > 0 && search->lowest[members[at - 1]] < lowest; --at)
            members[at] = members[at - 1];
        members[at] = item;
    }
}

static bool fail_members(exact_search *search, const uint32_t *members, uint32_t count) {
    search->failure = EXACT_ALWAYS;
    for (uint32_t k = 0; k < count; ++k) {
        search->failure = exact_reason_join(search->failure, search->why[members[k]]);
        search->failure =
            exact_reason_join(search->failure, exact_item_range(&search->part->items[members[k]]));
    }
    return false;
}

// All items of the clique whose lowest offset is at least t must fit between t and the capacity,
// for every t: the bound of Jackson's rule for one machine with release times. With alignments
// also every measure's points between t and the capacity must be enough.
static bool clique_fits(exact_search *search, const uint32_t *members, uint32_t unplaced) {
    const exact_part *part = search->part;
    int64_t above = 0;
    exact_points covered = {0};
    for (uint32_t k = 0; k < unplaced; ++k) {
        uint32_t item = members[k];
        int64_t lowest = search->lowest[item];
        above += part->items[item].size;
        if (lowest + above > part->capacity) return fail_members(search, members, k + 1);
        if (!part->cover) continue;
        exact_points below;
        exact_add_points(&covered, &part->cover[item]);
        exact_all_points_below(part, lowest, &below);
        if (exact_points_lack(&covered, &below, &part->all_points))
            return fail_members(search, members, k + 1);
    }
    return true;
}

// A clique in which something changed: does it fit, and what is its floor?
static bool check_clique(exact_search *search, uint32_t clique) {
    const exact_part *part = search->part;
    uint32_t *members = search->members + part->member_begin[clique];
    uint32_t count = part->member_begin[clique + 1] - part->member_begin[clique];
    search->work += count;
    sort_members(search, members, count);
    while (count > 0 && search->lowest[members[count - 1]] == EXACT_PLACED) --count;
    if (count == 0) return true;
    if (!clique_fits(search, members, count)) return false;
    int64_t floor = search->lowest[members[count - 1]];
    if (floor > search->floor[clique]) berth_memory__exact_set_floor(search, clique, floor);
    for (uint32_t k = 0; k < count; ++k)
        if (!search->supported[members[k]])
            berth_memory__exact_enqueue(&search->item_queue, members[k]);
    return true;
}

static bool rests_on_placed(const exact_search *search, uint32_t item) {
    const exact_item *it = &search->part->items[item];
    for (uint32_t c = it->first; c < it->end; ++c)
        if (exact_align_up(search->top[c], it->alignment) == search->lowest[item]) return true;
    return false;
}

// A hanging item could be placed now but would rest on nothing: it rests, if at all, on another
// unplaced item. Lowest end of such an item that does not hang itself or that has `settled`.
enum { HANGING_NONE, HANGING_OPEN, HANGING_SETTLED };

static int64_t lowest_support(exact_search *search, uint32_t item) {
    int64_t support = INT64_MAX / 2;
    exact_neighbors others = exact_neighbors_of(search, item);
    while (exact_next(&others)) {
        uint32_t other = others.other;
        if (search->lowest[other] == EXACT_PLACED ||
            (!search->supported[other] && search->hanging_state[other] != HANGING_SETTLED))
            continue;
        int64_t end = search->lowest[other] + search->part->items[other].size;
        if (end < support) support = end;
    }
    search->work += others.member_count;
    return support;
}

// Adds an item to the hanging ones if nothing that does not hang can carry it where it is.
static void add_hanging(exact_search *search, uint32_t item, uint32_t *count) {
    int64_t support = lowest_support(search, item);
    bool open = support > search->lowest[item];
    search->hanging_state[item] = open ? HANGING_OPEN : HANGING_SETTLED;
    search->hanging[*count] = (exact_hanging){item, support, open};
    ++*count;
}

// The hanging items that the first may rest on, and so on.
static void collect_hanging(exact_search *search, uint32_t *count) {
    const exact_part *part = search->part;
    for (uint32_t h = 0; h < *count; ++h) {
        if (!search->hanging[h].open) continue;
        exact_neighbors others = exact_neighbors_of(search, search->hanging[h].item);
        while (exact_next(&others)) {
            uint32_t other = others.other;
            if (search->lowest[other] == EXACT_PLACED || search->supported[other]) continue;
            int64_t end = search->lowest[other] + part->items[other].size;
            if (end >= search->hanging[h].offset) continue;
            if (search->hanging_state[other] == HANGING_NONE) add_hanging(search, other, count);
            if (search->hanging_state[other] == HANGING_SETTLED && end < search->hanging[h].offset)
                search->hanging[h].offset = end;
        }
    }
}

// Everything that the hanging items' supports depend on.
static exact_reason hanging_reason(const exact_search *search, uint32_t count) {
    const exact_part *part = search->part;
    exact_reason why = EXACT_ALWAYS;
    for (uint32_t h = 0; h < count; ++h) {
        if (!search->hanging[h].open) continue;
        exact_neighbors others = exact_neighbors_of(search, search->hanging[h].item);
        while (exact_next(&others)) {
            if (search->lowest[others.other] == EXACT_PLACED) continue;
            why = exact_reason_join(why, search->why[others.other]);
            why = exact_reason_join(why, exact_item_range(&part->items[others.other]));
        }
        why = exact_reason_join(why, search->why[search->hanging[h].item]);
    }
    return why;
}

static bool live_together(const exact_item *a, const exact_item *b) {
    return a->first < b->end && b->first < a->end;
}

// Raises the hanging items to the lowest end they can rest on. They may rest on each other, but not
// in a circle: the lowest settles first, as in Dijkstra's shortest paths.
static bool raise_hanging(exact_search *search, uint32_t count) {
    const exact_part *part = search->part;
    exact_hanging *hanging = search->hanging;
    exact_reason why = hanging_reason(search, count);
    for (;;) {
        exact_hanging *low = NULL;
        for (uint32_t h = 0; h < count; ++h)
            if (hanging[h].open && (!low || hanging[h].offset < low->offset)) low = &hanging[h];
        if (!low) return true;
        low->open = false;
        if (low->offset > search->lowest[low->item] &&
            !berth_memory__exact_raise(search, low->item, low->offset, why))
            return false;
        int64_t top = search->lowest[low->item] + part->items[low->item].size;
        for (uint32_t h = 0; h < count; ++h)
            if (hanging[h].open && hanging[h].offset > top &&
                live_together(&part->items[low->item], &part->items[hanging[h].item]))
                hanging[h].offset =
                    top > search->lowest[hanging[h].item] ? top : search->lowest[hanging[h].item];
    }
}

static bool settle_item(exact_search *search, uint32_t item) {
    uint32_t count = 0;
    add_hanging(search, item, &count);
    bool fits = true;
    if (search->hanging[0].open) {
        collect_hanging(search, &count);
        fits = raise_hanging(search, count);
    }
    for (uint32_t h = 0; h < count; ++h)
        search->hanging_state[search->hanging[h].item] = HANGING_NONE;
    return fits;
}

// Items that were raised, or that something was placed beside: do they rest on anything?
static bool check_items(exact_search *search) {
    exact_queue *queue = &search->item_queue;
    uint32_t count = 0;
    for (uint32_t k = 0; k < queue->count; ++k) {
        uint32_t item = queue->entries[k];
        queue->waiting[item] = false;
        if (search->lowest[item] == EXACT_PLACED) continue;
        bool supported = rests_on_placed(search, item);
        if (supported != search->supported[item])
            berth_memory__exact_set_supported(search, item, supported);
        if (!supported) search->unsupported[count++] = item;
    }
    queue->count = 0;
    for (uint32_t k = 0; k < count; ++k)
        if (!settle_item(search, search->unsupported[k])) return false;
    return true;
}

bool berth_memory__exact_propagate(exact_search *search) {
    while (search->clique_queue.count > 0 || search->item_queue.count > 0) {
        if (berth_memory__exact_sweep_pays(search) && !berth_memory__exact_sweep(search))
            return false;
        while (search->clique_queue.count > 0)
            if (!check_clique(search, dequeue(&search->clique_queue))) return false;
        if (!check_items(search)) return false;
    }
    return true;
}
