// Bounds of offsets in the search that learns: what follows from the order of items in cliques, and
// its explanations.
#include <string.h>

#include "memory/learn_private.h"

// --- Explanations ---

static void pick_literal(learn_search *search, learn_literal literal, learn_words *out) {
    uint32_t pair = literal >> 1;
    if (search->levels[pair] == 0 || search->picked[pair] == search->stamp) return;
    search->picked[pair] = search->stamp;
    learn_push(search, out, literal);
}

static void need_bound(learn_search *search, learn_side side, uint32_t item, int64_t value,
                       uint32_t before) {
    learn_need need = {2 * item + side, before, value};
    if (value > 0) berth_vec_push(search->arena, &search->needs, need);
}

// The least value from `value` on that the item's alignment allows on that side.
static int64_t round_up(const exact_part *part, learn_side side, uint32_t item, int64_t value) {
    const exact_item *it = &part->items[item];
    int64_t residue = side == LEARN_BELOW ? 0 : part->capacity - it->size;
    return value + ((residue - value) & (it->alignment - 1));
}

// The first bound of the owner that was at least as great.
static learn_bound *find_bound(learn_search *search, const learn_need *need) {
    uint32_t index = search->current[need->owner];
    while (index >= need->before) index = search->bounds.data[index].previous;
    for (;;) {
        learn_bound *bound = &search->bounds.data[index];
        if (bound->previous == LEARN_NONE ||
            search->bounds.data[bound->previous].value < need->value)
            return bound;
        index = bound->previous;
    }
}

// Turns search->needs into literals.
static void explain_needs(learn_search *search, learn_words *out) {
    const exact_part *part = search->part;
    uint32_t root = search->level_marks.count ? search->level_marks.data[0].bounds : UINT32_MAX;
    while (search->needs.count > 0) {
        learn_need need = search->needs.data[--search->needs.count];
        learn_bound *bound = find_bound(search, &need);
        uint32_t index = (uint32_t)(bound - search->bounds.data);
        if (index < root) continue;  // it holds always
        if (bound->stamp == search->stamp && bound->explained >= need.value) continue;
        bound->stamp = search->stamp;
        bound->explained = need.value;
        learn_side side = (learn_side)(need.owner & 1);
        uint32_t item = need.owner >> 1;
        int64_t distance = bound->distance;
        if (bound->measure == LEARN_NONE)  // as little as rounds up to what is needed
            distance = round_up(part, side, item, need.value) - part->items[item].alignment + 1 -
                       bound->total;
        for (uint32_t k = 0; k < bound->from_count; ++k) {
            uint32_t near = search->from.data[bound->from_begin + k];
            pick_literal(search, learn_on_side(search, side, near, item), out);
            need_bound(search, side, near, distance, index);
        }
    }
}

static void begin_explanation(learn_search *search) {
    search->stamp++;
    search->needs.count = 0;
}

// No room: the items' bounds (each at least `below`, and `above`) leave too little between them.
static bool conflict_of_items(learn_search *search, const uint32_t *items, uint32_t count,
                              int64_t below, int64_t above) {
    begin_explanation(search);
    search->conflict.count = 0;
    for (uint32_t k = 0; k < count; ++k) {
        need_bound(search, LEARN_BELOW, items[k], below, search->bounds.count);
        need_bound(search, LEARN_ABOVE, items[k], above, search->bounds.count);
    }
    explain_needs(search, &search->conflict);
    return false;
}

static int64_t value_before(const learn_search *search, learn_side side, uint32_t item,
                            uint32_t before) {
    uint32_t index = search->current[2 * (size_t)item + side];
    while (index >= before) index = search->bounds.data[index].previous;
    return search->bounds.data[index].value;
}

// `low` is below `high` since there is no room for the other order: above `high` for `low`.
static void explain_room(learn_search *search, learn_literal literal, uint32_t before,
                         learn_words *out) {
    uint32_t low = learn_low(search, literal);
    uint32_t high = learn_high(search, literal);
    int64_t room =
        search->part->capacity - search->part->items[low].size - search->part->items[high].size;
    int64_t below = value_before(search, LEARN_BELOW, high, before);
    need_bound(search, LEARN_BELOW, high, below, before);
    need_bound(search, LEARN_ABOVE, low, room + 1 - below, before);
    explain_needs(search, out);
}

void berth_memory__learn_explain(learn_search *search, learn_literal literal, learn_reason reason,
                                 learn_words *out) {
    begin_explanation(search);
    if (reason.kind == LEARN_BOUNDS) explain_room(search, literal, reason.index, out);
    if (reason.kind == LEARN_TRANSITIVE) {
        pick_literal(search, learn_below(search, learn_low(search, literal), reason.index), out);
        pick_literal(search, learn_below(search, reason.index, learn_high(search, literal)), out);
    }
    if (reason.kind == LEARN_CLAUSE) {
        const learn_clause *clause = &search->clauses.data[reason.index];
        for (uint32_t k = 0; k < clause->count; ++k) {
            learn_literal other = search->clause_literals.data[clause->begin + k];
            if (other != literal) pick_literal(search, other ^ 1, out);
        }
    }
}

// --- Propagation ---

static bool raise_bound(learn_search *search, learn_bound bound) {
    uint32_t item = bound.owner >> 1;
    const exact_item *it = &search->part->items[item];
    bound.previous = search->current[bound.owner];
    search->current[bound.owner] = search->bounds.count;
    berth_vec_push(search->arena, &search->bounds, bound);
    int64_t below = learn_value(search, LEARN_BELOW, item);
    int64_t above = learn_value(search, LEARN_ABOVE, item);
    int64_t excess = below + it->size + above - search->part->capacity;
    if (excess > 0) return conflict_of_items(search, &item, 1, below, above - (excess - 1));
    berth_memory__exact_enqueue(&search->items, item);
    for (uint32_t c = it->first; c < it->end; ++c) berth_memory__exact_enqueue(&search->cliques, c);
    // Those for which the item is on this side.
    learn_side side = (learn_side)(bound.owner & 1);
    for (uint32_t k = search->neighbor_begin[item]; k < search->neighbor_begin[item + 1]; ++k)
        if (learn_is_on_side(search, side, item, search->neighbors[k]))
            berth_memory__exact_enqueue(&search->owners, 2 * search->neighbors[k] + side);
    return true;
}

static void sort_members(const learn_search *search, learn_side side, uint32_t *members,
                         uint32_t count) {
    for (uint32_t k = 1; k < count; ++k) {
        uint32_t item = members[k];
        int64_t value = learn_value(search, side, item);
        uint32_t at = k;
        for (; at > 0 && learn_value(search, side, members[at - 1]) < value; --at)
            members[at] = members[at - 1];
        members[at] = item;
    }
}

// Items that are all at least `below` above the ground and end at least `above` under the capacity
// must fit between. members: the greatest BELOW first, as search->below.
static bool check_window(learn_search *search, const uint32_t *members, uint32_t count,
                         int64_t above) {
    const exact_part *part = search->part;
    int64_t size = 0;
    exact_points points = {0};
    exact_points end = {0};
    uint32_t inside = 0;
    if (part->cover) exact_all_points_below(part, part->capacity - above, &end);
    for (uint32_t k = 0; k < count; ++k) {
        uint32_t item = members[k];
        if (learn_value(search, LEARN_ABOVE, item) < above) continue;
        search->scratch[inside++] = item;
        int64_t below = learn_value(search, LEARN_BELOW, item);
        size += part->items[item].size;
        int64_t excess = below + size + above - part->capacity;
        if (excess > 0)
            return conflict_of_items(search, search->scratch, inside, below - (excess - 1), above);
        if (!part->cover) continue;
        exact_add_points(&points, &part->cover[item]);
        if (exact_points_lack(&points, &search->below[k], &end))
            return conflict_of_items(search, search->scratch, inside, below, above);
    }
    return true;
}

// Least distance of an item that has `points` points of a measure on one side, from items that are
// at least `distance` away.
static int64_t behind_points(const exact_part *part, const exact_measure *measure, learn_side side,
                             int64_t distance, int64_t points) {
    if (side == LEARN_BELOW)
        return measure->residue +
               (exact_points_below(measure, distance) + points - 1) * measure->period + 1;
    int64_t left = exact_points_below(measure, part->capacity - distance) - points;
    return part->capacity - (measure->residue + left * measure->period);
}

// A greater bound than the best so far?
static void compare_bound(const exact_part *part, learn_bound *best, int64_t value,
                          int64_t distance, int64_t total, uint32_t measure, uint32_t near_count) {
    value = round_up(part, (learn_side)(best->owner & 1), best->owner >> 1, value);
    if (value <= best->value) return;
    best->value = value;
    best->distance = distance;
    best->total = total;
    best->measure = measure;
    best->from_count = near_count;
}

// Bound of one item from all in a clique that are known to be on one side of it.
static bool push_item(learn_search *search, uint32_t owner, uint32_t clique) {
    const exact_part *part = search->part;
    learn_side side = (learn_side)(owner & 1);
    const uint32_t *members = search->members[side] + part->member_begin[clique];
    uint32_t count = part->member_begin[clique + 1] - part->member_begin[clique];
    learn_bound best = {.owner = owner, .value = learn_value(search, side, owner >> 1)};
    int64_t size = 0;
    int64_t distance = INT64_MAX;
    exact_points points = {0};
    uint32_t *near = search->scratch;
    uint32_t near_count = 0;
    for (uint32_t k = 0; k < count; ++k) {
        uint32_t other = members[k];
        if (!learn_is_on_side(search, side, other, owner >> 1)) continue;
        near[near_count++] = other;
        // Bounds that were raised since the members were sorted may be greater than those before.
        int64_t own = learn_value(search, side, other);
        if (own < distance) distance = own;
        size += part->items[other].size;
        compare_bound(part, &best, distance + size, distance, size, LEARN_NONE, near_count);
        if (!part->cover) continue;
        exact_add_points(&points, &part->cover[other]);
        for (uint32_t m = 0; m < part->measure_count; ++m) {
            if (points.of[m] == 0) continue;
            int64_t value = behind_points(part, &part->measures[m], side, distance, points.of[m]);
            if (value > best.value)
                compare_bound(part, &best, value, distance, points.of[m], m, near_count);
        }
    }
    if (best.from_count == 0) return true;
    best.from_begin = search->from.count;
    for (uint32_t k = 0; k < best.from_count; ++k) learn_push(search, &search->from, near[k]);
    return raise_bound(search, best);
}

static bool push_owner(learn_search *search, uint32_t owner) {
    const exact_item *item = &search->part->items[owner >> 1];
    for (uint32_t c = item->first; c < item->end; ++c) {
        search->work += search->part->member_begin[c + 1] - search->part->member_begin[c];
        if (!push_item(search, owner, c)) return false;
    }
    return true;
}

static bool check_clique(learn_search *search, uint32_t clique) {
    const exact_part *part = search->part;
    uint32_t begin = part->member_begin[clique];
    uint32_t count = part->member_begin[clique + 1] - begin;
    sort_members(search, LEARN_BELOW, search->members[LEARN_BELOW] + begin, count);
    sort_members(search, LEARN_ABOVE, search->members[LEARN_ABOVE] + begin, count);
    for (uint32_t k = 0; k < count && part->cover; ++k)
        exact_all_points_below(
            part, learn_value(search, LEARN_BELOW, search->members[LEARN_BELOW][begin + k]),
            &search->below[k]);
    int64_t last = -1;
    for (uint32_t k = 0; k < count; ++k) {
        int64_t above = learn_value(search, LEARN_ABOVE, search->members[LEARN_ABOVE][begin + k]);
        if (above == last) continue;
        last = above;
        search->work += count;
        if (!check_window(search, search->members[LEARN_BELOW] + begin, count, above)) return false;
    }
    return true;
}

// Pairs of an item with changed bounds: is there room for both orders?
static bool check_item(learn_search *search, uint32_t item) {
    const exact_part *part = search->part;
    int64_t below = learn_value(search, LEARN_BELOW, item);
    int64_t above = learn_value(search, LEARN_ABOVE, item);
    for (uint32_t k = search->neighbor_begin[item]; k < search->neighbor_begin[item + 1]; ++k) {
        uint32_t other = search->neighbors[k];
        int64_t room = part->capacity - part->items[item].size - part->items[other].size;
        learn_literal under = learn_below(search, item, other);
        learn_reason reason = {LEARN_BOUNDS, search->bounds.count};
        if (below + learn_value(search, LEARN_ABOVE, other) > room &&
            !berth_memory__learn_assign(search, under ^ 1, reason))
            return false;
        if (above + learn_value(search, LEARN_BELOW, other) > room &&
            !berth_memory__learn_assign(search, under, reason))
            return false;
    }
    return true;
}

// What a new literal means for other pairs, and the items to look at.
static bool check_order(learn_search *search, learn_literal literal) {
    const exact_part *part = search->part;
    uint32_t low = learn_low(search, literal);
    uint32_t high = learn_high(search, literal);
    uint32_t n = part->item_count;
    for (uint32_t k = search->neighbor_begin[high]; k < search->neighbor_begin[high + 1]; ++k) {
        uint32_t top = search->neighbors[k];
        if (search->pair_of[(size_t)low * n + top] == LEARN_NONE ||
            !learn_is_on_side(search, LEARN_ABOVE, top, high))
            continue;
        if (!berth_memory__learn_assign(search, learn_below(search, low, top),
                                        (learn_reason){LEARN_TRANSITIVE, high}))
            return false;
    }
    for (uint32_t k = search->neighbor_begin[low]; k < search->neighbor_begin[low + 1]; ++k) {
        uint32_t bottom = search->neighbors[k];
        if (search->pair_of[(size_t)bottom * n + high] == LEARN_NONE ||
            !learn_is_on_side(search, LEARN_BELOW, bottom, low))
            continue;
        if (!berth_memory__learn_assign(search, learn_below(search, bottom, high),
                                        (learn_reason){LEARN_TRANSITIVE, low}))
            return false;
    }
    berth_memory__exact_enqueue(&search->owners, 2 * high + LEARN_BELOW);
    berth_memory__exact_enqueue(&search->owners, 2 * low + LEARN_ABOVE);
    return true;
}

static uint32_t dequeue(exact_queue *queue) {
    uint32_t entry = queue->entries[--queue->count];
    queue->waiting[entry] = false;
    return entry;
}

bool berth_memory__learn_propagate_bounds(learn_search *search) {
    while (search->clauses_seen == search->trail.count) {
        if (search->order_seen < search->trail.count) {
            if (!check_order(search, search->trail.data[search->order_seen++])) return false;
        } else if (search->items.count > 0) {
            if (!check_item(search, dequeue(&search->items))) return false;
        } else if (search->cliques.count > 0) {
            if (!check_clique(search, dequeue(&search->cliques))) return false;
        } else if (search->owners.count > 0) {
            if (!push_owner(search, dequeue(&search->owners))) return false;
        } else {
            break;
        }
    }
    return true;
}

static void empty_queue(exact_queue *queue) {
    for (uint32_t i = 0; i < queue->count; ++i) queue->waiting[queue->entries[i]] = false;
    queue->count = 0;
}

void berth_memory__learn_undo_bounds(learn_search *search, const learn_level *level) {
    empty_queue(&search->items);
    empty_queue(&search->cliques);
    empty_queue(&search->owners);
    while (search->bounds.count > level->bounds) {
        const learn_bound *bound = &search->bounds.data[--search->bounds.count];
        search->current[bound->owner] = bound->previous;
    }
    search->from.count = level->from;
}

void berth_memory__learn_make_bounds(learn_search *search) {
    const exact_part *part = search->part;
    for (uint32_t i = 0; i < part->item_count; ++i) {
        const exact_item *item = &part->items[i];
        for (uint32_t side = 0; side < 2; ++side) {
            learn_bound bound = {.previous = LEARN_NONE, .owner = 2 * i + side};
            if (side == LEARN_ABOVE)
                bound.value = round_up(part, LEARN_ABOVE, i,
                                       part->capacity - item->size - item->latest > 0
                                           ? part->capacity - item->size - item->latest
                                           : 0);
            search->current[bound.owner] = search->bounds.count;
            berth_vec_push(search->arena, &search->bounds, bound);
        }
    }
    for (uint32_t c = 0; c < part->clique_count; ++c)
        berth_memory__exact_enqueue(&search->cliques, c);
}
