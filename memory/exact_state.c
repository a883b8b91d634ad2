// State of the exact search: setting, and undoing.
#include <string.h>

#include "memory/exact_private.h"

void berth_memory__exact_enqueue(exact_queue *queue, uint32_t entry) {
    if (queue->waiting[entry]) return;
    queue->waiting[entry] = true;
    queue->entries[queue->count++] = entry;
}

void berth_memory__exact_empty_queue(exact_queue *queue) {
    for (uint32_t i = 0; i < queue->count; ++i) queue->waiting[queue->entries[i]] = false;
    queue->count = 0;
}

static uint64_t mix(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
    return hash ^ (hash >> 29);
}

// What the item adds to the hash of its piece. Unplaced items with their lowest offsets, and
// whether they rest on something there, are all that the future depends on: floors are the least
// of the lowest offsets, and no item can ever rest on what is placed anywhere else, since its
// lowest offset is at least the top of all placed items under it.
static uint64_t item_word(const exact_search *search, uint32_t item) {
    int64_t lowest = search->lowest[item];
    if (lowest == EXACT_PLACED) return 0;
    return mix(search->part->items[item].hash,
               ((uint64_t)lowest << 1) + (search->supported[item] ? 1 : 0));
}

uint64_t berth_memory__exact_hash(const exact_search *search, uint32_t begin, uint32_t end) {
    const exact_part *part = search->part;
    uint64_t hash = 0;
    for (uint32_t i = part->item_begin[begin]; i < part->item_begin[end]; ++i)
        hash ^= item_word(search, i);
    return hash;
}

static void record(exact_search *search, exact_change_kind kind, uint32_t index, int64_t old_value,
                   exact_reason old_reason) {
    exact_change change = {old_value, old_reason, kind, index};
    berth_vec_push(search->arena, &search->trail, change);
}

static void touch_item(exact_search *search, uint32_t item) {
    const exact_item *it = &search->part->items[item];
    for (uint32_t c = it->first; c < it->end; ++c) exact_touch(search, c);
}

static void put_lowest(exact_search *search, uint32_t item, int64_t lowest, exact_reason why) {
    search->hash ^= item_word(search, item);
    search->lowest[item] = lowest;
    search->why[item] = why;
    search->hash ^= item_word(search, item);
}

// The next of identical items, which are placed in this order. item_count: none.
static uint32_t next_twin(const exact_part *part, uint32_t item) {
    uint32_t next = item + 1;
    return next < part->item_count && part->items[next].twin == item ? next : part->item_count;
}

bool berth_memory__exact_raise(exact_search *search, uint32_t item, int64_t offset,
                               exact_reason why) {
    const exact_part *part = search->part;
    for (; item < part->item_count; item = next_twin(part, item)) {
        const exact_item *it = &part->items[item];
        if (search->lowest[item] == EXACT_PLACED || search->lowest[item] >= offset) break;
        offset = exact_align_up(offset, it->alignment);
        why = exact_reason_join(why, exact_item_range(it));
        record(search, EXACT_CHANGE_LOWEST, item, search->lowest[item], search->why[item]);
        put_lowest(search, item, offset, why);
        if (offset > it->latest) {
            search->failure = why;
            return false;
        }
        touch_item(search, item);
        berth_memory__exact_enqueue(&search->item_queue, item);
        for (uint32_t c = it->first; c < it->end; ++c)
            berth_memory__exact_enqueue(&search->clique_queue, c);
        offset += it->size;
    }
    return true;
}

void berth_memory__exact_set_floor(exact_search *search, uint32_t clique, int64_t floor) {
    record(search, EXACT_CHANGE_FLOOR, clique, search->floor[clique], EXACT_ALWAYS);
    search->floor[clique] = floor;
    exact_touch(search, clique);
}

void berth_memory__exact_set_supported(exact_search *search, uint32_t item, bool supported) {
    record(search, EXACT_CHANGE_SUPPORT, item, search->supported[item], EXACT_ALWAYS);
    search->hash ^= item_word(search, item);
    search->supported[item] = supported;
    search->hash ^= item_word(search, item);
}

static void set_top(exact_search *search, uint32_t clique, int64_t top) {
    record(search, EXACT_CHANGE_TOP, clique, search->top[clique], EXACT_ALWAYS);
    search->top[clique] = top;
}

bool berth_memory__exact_place(exact_search *search, uint32_t item) {
    const exact_part *part = search->part;
    const exact_item *it = &part->items[item];
    int64_t top = search->lowest[item] + it->size;
    search->offsets[item] = search->lowest[item];
    record(search, EXACT_CHANGE_PLACED, item, search->lowest[item], search->why[item]);
    put_lowest(search, item, EXACT_PLACED, search->why[item]);
    for (uint32_t c = it->first; c < it->end; ++c) {
        set_top(search, c, top);
        berth_memory__exact_set_floor(search, c, top);
        search->rest[c] -= it->size;
        if (c > it->first) search->crossing[c]--;
        berth_memory__exact_enqueue(&search->clique_queue, c);
    }
    exact_neighbors others = exact_neighbors_of(search, item);
    while (exact_next(&others)) {
        if (search->lowest[others.other] == EXACT_PLACED) continue;
        if (search->lowest[others.other] < top &&
            !berth_memory__exact_raise(search, others.other, top, exact_item_range(it)))
            return false;
        berth_memory__exact_enqueue(&search->item_queue, others.other);
    }
    return true;
}

static void unplace(exact_search *search, const exact_change *change) {
    const exact_item *it = &search->part->items[change->index];
    put_lowest(search, change->index, change->old_value, change->old_reason);
    for (uint32_t c = it->first; c < it->end; ++c) {
        search->rest[c] += it->size;
        if (c > it->first) search->crossing[c]++;
    }
    touch_item(search, change->index);
}

void berth_memory__exact_undo(exact_search *search, size_t length) {
    berth_memory__exact_empty_queue(&search->clique_queue);
    berth_memory__exact_empty_queue(&search->item_queue);
    while (search->trail.count > length) {
        const exact_change *change = &search->trail.data[--search->trail.count];
        switch (change->kind) {
        case EXACT_CHANGE_LOWEST:
            put_lowest(search, change->index, change->old_value, change->old_reason);
            touch_item(search, change->index);
            break;
        case EXACT_CHANGE_PLACED: unplace(search, change); break;
        case EXACT_CHANGE_SUPPORT: search->supported[change->index] = change->old_value != 0; break;
        case EXACT_CHANGE_FLOOR:
            search->floor[change->index] = change->old_value;
            exact_touch(search, change->index);
            break;
        case EXACT_CHANGE_TOP: search->top[change->index] = change->old_value; break;
        }
    }
}

// Twins after the first cannot be at the ground: items lie in their order.
static void reset_items(exact_search *search) {
    const exact_part *part = search->part;
    for (uint32_t i = 0; i < part->item_count; ++i) {
        const exact_item *it = &part->items[i];
        search->lowest[i] = 0;
        search->why[i] = EXACT_ALWAYS;
        search->supported[i] = true;
        for (uint32_t c = it->first; c < it->end; ++c) {
            search->rest[c] += it->size;
            if (c > it->first) search->crossing[c]++;
        }
    }
}

static exact_queue make_queue(berth_arena *arena, uint32_t size) {
    return (exact_queue){.entries = berth_arena_new_array(arena, uint32_t, size),
                         .waiting = berth_arena_new_array(arena, bool, size)};
}

static void make_item_arrays(exact_search *search, uint32_t n) {
    berth_arena *arena = search->arena;
    search->lowest = berth_arena_new_array(arena, int64_t, n);
    search->why = berth_arena_new_array(arena, exact_reason, n);
    search->supported = berth_arena_new_array(arena, bool, n);
    search->offsets = berth_arena_new_array(arena, int64_t, n);
    search->item_queue = make_queue(arena, n);
    search->hanging = berth_arena_new_array(arena, exact_hanging, n);
    search->hanging_state = berth_arena_new_array(arena, uint8_t, n);
    search->unsupported = berth_arena_new_array(arena, uint32_t, n);
    search->candidate = berth_arena_new_array(arena, bool, n);
    search->checked = berth_arena_new_array(arena, uint32_t, n);
    search->rank = berth_arena_new_array(arena, uint32_t, n);
    search->sweep_slot = berth_arena_new_array(arena, uint32_t, n);
    search->swept = berth_arena_new_array(arena, exact_swept, n);
    search->sweep_order = berth_arena_new_array(arena, uint32_t, n);
    for (uint32_t i = 0; i < n; ++i) search->sweep_order[i] = i;
}

static void make_clique_arrays(exact_search *search, uint32_t m) {
    berth_arena *arena = search->arena;
    size_t blocks = ((size_t)m + 63) / 64;
    search->floor = berth_arena_new_array(arena, int64_t, m);
    search->top = berth_arena_new_array(arena, int64_t, m);
    search->rest = berth_arena_new_array(arena, int64_t, m);
    search->crossing = berth_arena_new_array(arena, uint32_t, (size_t)m + 1);
    search->clique_queue = make_queue(arena, m);
    search->touched = berth_arena_new_array(arena, uint64_t, blocks);
    search->rescore = berth_arena_new_array(arena, uint64_t, blocks);
    search->cover = berth_arena_new_array(arena, uint32_t, m);
    search->left_wall = berth_arena_new_array(arena, bool, m);
    search->right_wall = berth_arena_new_array(arena, bool, m);
    search->score = berth_arena_new_array(arena, int64_t, m);
    search->sweep_above = berth_arena_new_array(arena, int64_t, m);
    search->sweep_low = berth_arena_new_array(arena, int64_t, m);
    search->sweep_waiting = berth_arena_new_array(arena, uint32_t, (size_t)m + 1);
    search->block_best = berth_arena_new_array(arena, uint32_t, blocks);
}

exact_search *berth_memory__exact_search_create(berth_arena *arena, const exact_part *part,
                                                int64_t deadline_ns) {
    exact_search *search = berth_arena_new(arena, exact_search);
    *search = (exact_search){.part = part, .arena = arena, .deadline_ns = deadline_ns};
    search->members = berth_arena_copy(arena, part->members,
                                       part->member_begin[part->clique_count] * sizeof(uint32_t));
    make_item_arrays(search, part->item_count);
    make_clique_arrays(search, part->clique_count);
    return search;
}

void berth_memory__exact_reset(exact_search *search) {
    const exact_part *part = search->part;
    uint32_t m = part->clique_count;
    search->trail.count = 0;
    berth_memory__exact_undo(search, 0);
    memset(search->floor, 0, m * sizeof(*search->floor));
    memset(search->top, 0, m * sizeof(*search->top));
    memset(search->rest, 0, m * sizeof(*search->rest));
    memset(search->crossing, 0, ((size_t)m + 1) * sizeof(*search->crossing));
    reset_items(search);
    for (uint32_t c = 0; c < m; ++c) berth_memory__exact_enqueue(&search->clique_queue, c);
}
