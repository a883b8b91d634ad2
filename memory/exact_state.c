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
                            uint32_t clique) {
    int64_t support = INT64_MAX / 2;
    for (uint32_t k = part->neighbor_begin[item]; k < part->neighbor_begin[item + 1]; ++k) {
        uint32_t other = part->neighbors[k];
        if (frame->lowest[other] == EXACT_PLACED) continue;
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
        if (lowest == floor) lowest = next_support(part, frame, item, clique);
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

static bool is_flat(const exact_search *search, const exact_frame *frame, uint32_t item) {
    const exact_item *it = &search->part->items[item];
    return frame->floor[it->first] == frame->lowest[item] && search->run_end[it->first] >= it->end;
}

static bool is_supported(const exact_part *part, const exact_frame *frame, uint32_t item) {
    const exact_item *it = &part->items[item];
    for (uint32_t c = it->first; c < it->end; ++c)
        if (align_up(frame->top[c], it->alignment) == frame->lowest[item]) return true;
    return false;
}

// Items released at their lowest offsets, one after another: where does the last end at the
// earliest?
static bool clique_fits(exact_search *search, const exact_frame *frame, uint32_t clique) {
    const exact_part *part = search->part;
    int64_t *sorted = search->sorted;
    uint32_t count = 0;
    for (uint32_t k = part->member_begin[clique]; k < part->member_begin[clique + 1]; ++k) {
        uint32_t item = part->members[k];
        int64_t lowest = frame->lowest[item];
        if (lowest == EXACT_PLACED || lowest == frame->floor[clique]) continue;
        uint32_t at = count++;
        for (; at > 0 && sorted[2 * at - 2] < lowest; --at) {
            sorted[2 * at] = sorted[2 * at - 2];
            sorted[2 * at + 1] = sorted[2 * at - 1];
        }
        sorted[2 * at] = lowest;
        sorted[2 * at + 1] = part->items[item].size;
    }
    int64_t above = 0;  // sizes of the items released latest
    for (uint32_t i = 0; i < count; ++i) {
        above += sorted[2 * i + 1];
        if (sorted[2 * i] + above > part->capacity) return false;
    }
    return true;
}

bool berth_memory__exact_propagate(exact_search *search, exact_frame *frame, uint32_t begin,
                                   uint32_t end) {
    const exact_part *part = search->part;
    for (bool changed = true; changed;) {
        changed = false;
        berth_memory__exact_find_runs(search, frame, begin, end);
        for (uint32_t i = part->item_begin[begin]; i < part->item_begin[end]; ++i) {
            if (frame->lowest[i] == EXACT_PLACED) continue;
            if (frame->lowest[i] > part->items[i].latest) return false;
            if (!is_flat(search, frame, i) || is_supported(part, frame, i)) continue;
            if (!raise(part, frame, i, next_support(part, frame, i, UINT32_MAX))) return false;
            changed = true;
        }
        for (uint32_t c = begin; c < end; ++c) {
            if (frame->rest[c] == 0) continue;
            if (frame->floor[c] + frame->rest[c] > part->capacity) return false;
            int64_t lowest = INT64_MAX;
            for (uint32_t k = part->member_begin[c]; k < part->member_begin[c + 1]; ++k) {
                int64_t value = frame->lowest[part->members[k]];
                if (value != EXACT_PLACED && value < lowest) lowest = value;
                if (lowest == frame->floor[c]) break;
            }
            if (lowest == frame->floor[c]) continue;
            if (!raise_clique(part, frame, c, lowest)) return false;
            changed = true;
        }
    }
    for (uint32_t c = begin; c < end; ++c)
        if (frame->rest[c] != 0 && !clique_fits(search, frame, c)) return false;
    return true;
}
