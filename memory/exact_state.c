// State of a search node: placing, and what follows from it.
#include <string.h>

#include "memory/exact_private.h"

static int64_t align_up(int64_t value, int64_t alignment) {
    return alignment == 1 ? value : (value + alignment - 1) / alignment * alignment;
}

static bool raise(const exact_part *part, exact_frame *frame, uint32_t item, int64_t offset) {
    if (frame->lowest[item] >= offset) return true;
    frame->lowest[item] = align_up(offset, part->items[item].alignment);
    return frame->lowest[item] <= part->items[item].latest;
}

void berth_memory__exact_place(exact_search *search, exact_frame *frame, uint32_t item) {
    const exact_part *part = search->part;
    const exact_item *it = &part->items[item];
    int64_t offset = frame->lowest[item];
    int64_t top = offset + it->size;
    search->offsets[item] = offset;
    frame->lowest[item] = EXACT_PLACED;
    for (uint32_t c = it->first; c < it->end; ++c) {
        frame->floor[c] = frame->top[c] = top;
        frame->rest[c] -= it->size;
    }
    for (uint32_t k = part->neighbor_begin[item]; k < part->neighbor_begin[item + 1]; ++k) {
        uint32_t other = part->neighbors[k];
        if (frame->lowest[other] == EXACT_PLACED || frame->lowest[other] >= top) continue;
        frame->lowest[other] = align_up(top, part->items[other].alignment);
    }
}

// Lowest end of an unplaced item that `item` could rest on, outside of `clique` (UINT32_MAX:
// anywhere).
static int64_t next_support(const exact_part *part, const exact_frame *frame, uint32_t item,
                            uint32_t clique, const bool *except) {
    int64_t support = INT64_MAX / 2;
    for (uint32_t k = part->neighbor_begin[item]; k < part->neighbor_begin[item + 1]; ++k) {
        uint32_t other = part->neighbors[k];
        if (frame->lowest[other] == EXACT_PLACED || (except && except[other])) continue;
        const exact_item *o = &part->items[other];
        if (o->first <= clique && clique < o->end) continue;
        int64_t end = frame->lowest[other] + o->size;
        if (end < support) support = end;
    }
    return support;
}

// Raises the floor of a clique to `floor`, and its items. False: one of them is too high.
static bool raise_clique(const exact_part *part, exact_frame *frame, uint32_t clique,
                         int64_t floor) {
    frame->floor[clique] = floor;
    for (uint32_t k = part->member_begin[clique]; k < part->member_begin[clique + 1]; ++k) {
        uint32_t item = part->members[k];
        if (frame->lowest[item] != EXACT_PLACED && !raise(part, frame, item, floor)) return false;
    }
    return floor + frame->rest[clique] <= part->capacity;
}

bool berth_memory__exact_leave_gap(exact_search *search, exact_frame *frame, uint32_t clique) {
    const exact_part *part = search->part;
    int64_t floor = frame->floor[clique];
    int64_t next = INT64_MAX / 2;
    for (uint32_t k = part->member_begin[clique]; k < part->member_begin[clique + 1]; ++k) {
        uint32_t item = part->members[k];
        int64_t lowest = frame->lowest[item];
        if (lowest == EXACT_PLACED) continue;
        if (lowest == floor) lowest = next_support(part, frame, item, clique, NULL);
        if (lowest < next) next = lowest;
    }
    if (next + frame->rest[clique] > part->capacity) return false;
    return raise_clique(part, frame, clique, next);
}

void berth_memory__exact_find_runs(exact_search *search, const exact_frame *frame, uint32_t begin,
                                   uint32_t end) {
    uint32_t *run_end = search->run_end;
    run_end[end - 1] = end;
    for (uint32_t c = end - 1; c > begin; --c)
        run_end[c - 1] = frame->floor[c - 1] == frame->floor[c] ? run_end[c] : c;
}

static bool is_supported(const exact_part *part, const exact_frame *frame, uint32_t item) {
    const exact_item *it = &part->items[item];
    for (uint32_t c = it->first; c < it->end; ++c)
        if (align_up(frame->top[c], it->alignment) == frame->lowest[item]) return true;
    return false;
}

// Sorts the unplaced items of cliques [begin, end) by lowest offset, greatest first. The order
// changes little from one node to the next: it starts from that of the last call, in O(n +
// inversions).
static uint32_t sort_items(exact_search *search, const exact_frame *frame, uint32_t begin,
                           uint32_t end) {
    const exact_part *part = search->part;
    exact_sorted *sorted = search->sorted;
    uint32_t first = part->item_begin[begin];
    uint32_t last = part->item_begin[end];
    uint32_t count = 0;
    for (uint32_t k = 0; k < part->item_count; ++k) {
        uint32_t item = search->order[k];
        if (item < first || item >= last || frame->lowest[item] == EXACT_PLACED) continue;
        search->slot[count] = k;
        exact_sorted entry = {frame->lowest[item], item};
        uint32_t at = count++;
        for (; at > 0 && sorted[at - 1].lowest < entry.lowest; --at) sorted[at] = sorted[at - 1];
        sorted[at] = entry;
    }
    for (uint32_t k = 0; k < count; ++k) search->order[search->slot[k]] = sorted[k].item;
    return count;
}

// Goes through the items from the latest lowest offset to the earliest. All items of a clique whose
// lowest offset is at least t must fit between t and the capacity. Leaves in search->low the least
// lowest offset of each clique.
static bool cliques_fit(exact_search *search, const exact_frame *frame, uint32_t begin,
                        uint32_t end) {
    const exact_part *part = search->part;
    int64_t *above = search->above;
    int64_t *low = search->low;
    memset(above + begin, 0, (end - begin) * sizeof(*above));
    uint32_t count = sort_items(search, frame, begin, end);
    for (uint32_t k = 0; k < count; ++k) {
        const exact_item *item = &part->items[search->sorted[k].item];
        int64_t lowest = search->sorted[k].lowest;
        int64_t most = 0;
        for (uint32_t c = item->first; c < item->end; ++c) {
            above[c] += item->size;
            low[c] = lowest;
            most = above[c] > most ? above[c] : most;
        }
        if (lowest + most > part->capacity) return false;
    }
    return true;
}

// Items that could be placed now but would rest on nothing: each rests, if at all, on another
// unplaced item. Returns how many there are (in search->hanging).
static uint32_t find_hanging(exact_search *search, const exact_frame *frame, uint32_t begin,
                             uint32_t end) {
    const exact_part *part = search->part;
    uint32_t count = 0;
    for (uint32_t i = part->item_begin[begin]; i < part->item_begin[end]; ++i)
        if (frame->lowest[i] != EXACT_PLACED && !is_supported(part, frame, i))
            search->hanging[count++] = (exact_hanging){.item = i};
    return count;
}

static bool live_together(const exact_item *a, const exact_item *b) {
    return a->first < b->end && b->first < a->end;
}

// Raises the hanging items to the lowest end they can rest on. They may rest on each other, but not
// in a circle: the lowest settles first, as in Dijkstra's shortest paths. O(hanging * (neighbours +
// hanging)).
static bool raise_hanging(exact_search *search, exact_frame *frame, uint32_t count, bool *changed) {
    const exact_part *part = search->part;
    exact_hanging *hanging = search->hanging;
    for (uint32_t h = 0; h < count; ++h) search->is_hanging[hanging[h].item] = true;
    for (uint32_t h = 0; h < count; ++h)
        hanging[h].offset =
            next_support(part, frame, hanging[h].item, UINT32_MAX, search->is_hanging);
    for (uint32_t h = 0; h < count; ++h) search->is_hanging[hanging[h].item] = false;
    for (uint32_t h = 0; h < count; ++h)
        if (hanging[h].offset < frame->lowest[hanging[h].item])
            hanging[h].offset = frame->lowest[hanging[h].item];
    for (; count > 0; --count) {
        uint32_t low = 0;
        for (uint32_t h = 1; h < count; ++h)
            if (hanging[h].offset < hanging[low].offset) low = h;
        uint32_t item = hanging[low].item;
        *changed |= frame->lowest[item] < hanging[low].offset;
        if (!raise(part, frame, item, hanging[low].offset)) return false;
        hanging[low] = hanging[count - 1];
        int64_t top = frame->lowest[item] + part->items[item].size;
        for (uint32_t h = 0; h + 1 < count; ++h)
            if (hanging[h].offset > top &&
                live_together(&part->items[item], &part->items[hanging[h].item]))
                hanging[h].offset =
                    top > frame->lowest[hanging[h].item] ? top : frame->lowest[hanging[h].item];
    }
    return true;
}

bool berth_memory__exact_propagate(exact_search *search, exact_frame *frame, uint32_t begin,
                                   uint32_t end) {
    const exact_part *part = search->part;
    for (uint32_t i = part->item_begin[begin]; i < part->item_begin[end]; ++i)
        if (frame->lowest[i] > part->items[i].latest) return false;
    for (bool changed = true; changed;) {
        uint32_t hanging = find_hanging(search, frame, begin, end);
        changed = false;
        if (!raise_hanging(search, frame, hanging, &changed)) return false;
        if (!cliques_fit(search, frame, begin, end)) return false;
        for (uint32_t c = begin; c < end; ++c) {
            if (frame->rest[c] == 0 || search->low[c] <= frame->floor[c]) continue;
            if (!raise_clique(part, frame, c, search->low[c])) return false;
            changed = true;
        }
    }
    return true;
}
