// Depth-first search: an item is placed at the bottom of a valley, or it does not lie there.
#include <string.h>

#include "base/clock.h"
#include "memory/exact_private.h"

enum {
    FAILED_WAYS = 2,
    // States of larger pieces hardly come again.
    REMEMBERED_CLIQUES = 4096,
};
#define NO_NODE UINT32_MAX
#define TRAIL_LIMIT ((uint32_t)1 << 25)
#define WORK_PER_CLOCK ((uint64_t)1 << 16)
#define WORK_PER_NODE 64

static bool known_failed(const exact_search *search, uint64_t key) {
    const uint64_t *slot = &search->failed[((key >> 20) & search->failed_mask) * FAILED_WAYS];
    return slot[0] == key || slot[1] == key;
}

static void remember_failed(exact_search *search, uint64_t key) {
    uint64_t *slot = &search->failed[((key >> 20) & search->failed_mask) * FAILED_WAYS];
    if (slot[0] == key) return;
    slot[1] = slot[0];
    slot[0] = key;
}

void berth_memory__exact_grow_table(exact_search *search, uint64_t slots) {
    uint64_t *old = search->failed;
    uint64_t old_words = old ? (search->failed_mask + 1) * FAILED_WAYS : 0;
    search->failed = berth_arena_new_array(search->arena, uint64_t, slots * FAILED_WAYS);
    search->failed_mask = slots - 1;
    for (uint64_t i = 0; i < old_words; ++i)
        if (old[i] != 0) remember_failed(search, old[i]);
}

static bool is_remembered(const exact_node *node) {
    return node->end - node->begin <= REMEMBERED_CLIQUES;
}

static uint64_t state_key(const exact_search *search, const exact_node *node) {
    uint64_t range = ((uint64_t)node->begin << 32 | node->end) * 0x9E3779B97F4A7C15u;
    return (search->hash ^ range ^ (range >> 31)) | 1;
}

static exact_node *top_node(exact_search *search) {
    return &search->nodes.data[search->nodes.count - 1];
}

static void add_piece(exact_search *search, uint32_t begin, uint32_t end, uint32_t parent) {
    if (search->rest[begin] == 0) return;
    exact_piece piece = {begin, end, parent, search->pending};
    berth_vec_push(search->arena, &search->pieces, piece);
    search->pending = search->pieces.count;
}

// What is left of cliques [begin, end) after a change within `changed`: pieces that no unplaced
// item connects. The first is solved first.
static void add_pieces(exact_search *search, uint32_t begin, uint32_t end, exact_reason changed,
                       uint32_t parent) {
    for (uint32_t c = changed.end - 1; c > changed.begin; --c) {
        if (search->crossing[c] != 0) continue;
        add_piece(search, c, end, parent);
        end = c;
    }
    add_piece(search, begin, end, parent);
}

// Begins with the next pending piece.
static void open_node(exact_search *search) {
    exact_piece piece = search->pieces.data[search->pending - 1];
    search->pending = piece.next;
    exact_node node = {.begin = piece.begin, .end = piece.end, .parent = piece.parent};
    bool same = piece.parent != NO_NODE && piece.parent + 1 == search->nodes.count &&
                search->nodes.data[piece.parent].begin == piece.begin &&
                search->nodes.data[piece.parent].end == piece.end;
    if (!same && is_remembered(&node))
        search->hash = berth_memory__exact_hash(search, piece.begin, piece.end);
    berth_vec_push(search->arena, &search->nodes, node);
}

// Next candidate at the floor of `clique` in rank order. There is one: the lowest item of a clique
// in a valley.
static uint32_t next_candidate(const exact_search *search, uint32_t clique) {
    const exact_part *part = search->part;
    uint32_t best = UINT32_MAX;
    for (uint32_t k = part->member_begin[clique]; k < part->member_begin[clique + 1]; ++k) {
        uint32_t i = search->members[k];
        if (!search->candidate[i]) continue;
        if (best == UINT32_MAX || search->rank[i] < search->rank[best]) best = i;
    }
    return best;
}

// Could everything between the floor and `item`, had it been placed higher, be moved on top of it?
static bool can_be_lifted(const exact_item *other, const exact_item *item) {
    return other->first >= item->first && other->end <= item->end &&
           (item->size & (other->alignment - 1)) == 0 &&
           other->latest + other->size >= item->latest + item->size;
}

// The item at the bottom of a valley has no completion there, because of search->failure. If it
// lay higher, and all that lies between were live only while it is, then the item and what is
// under it could change places: so something else, that cannot be lifted, is under it.
static bool exclude(exact_search *search, uint32_t item) {
    const exact_part *part = search->part;
    const exact_item *it = &part->items[item];
    exact_reason why = exact_reason_join(search->failure, search->why[item]);
    int64_t lowest = INT64_MAX / 2;
    exact_neighbors others = exact_neighbors_of(search, item);
    while (exact_next(&others)) {
        const exact_item *other = &part->items[others.other];
        int64_t offset = search->lowest[others.other];
        if (offset == EXACT_PLACED || can_be_lifted(other, it)) continue;
        if (offset + other->size < lowest) lowest = offset + other->size;
        why = exact_reason_join(why, search->why[others.other]);
        why = exact_reason_join(why, exact_item_range(other));
    }
    if (lowest <= search->lowest[item]) lowest = search->lowest[item] + 1;
    return berth_memory__exact_raise(search, item, lowest, why) &&
           berth_memory__exact_propagate(search);
}

// Drops the last node, which has no completion. False: nothing is left to try.
static bool fail_node(exact_search *search) {
    const exact_node *node = top_node(search);
    for (uint32_t k = 0; k < node->key_count; ++k) remember_failed(search, node->keys[k]);
    if (node->parent == NO_NODE) return false;
    search->nodes.count = node->parent + 1;
    return true;
}

// The choice of the last node has no completion, because of search->failure: goes back to a node
// whose choice that depends on, and excludes it there.
static bool retract(exact_search *search) {
    for (;;) {
        const exact_node *node = top_node(search);
        berth_memory__exact_undo(search, node->mark);
        search->hash = node->hash;
        search->pending = node->pending;
        search->pieces.count = node->piece_count;
        const exact_item *item = &search->part->items[node->item];
        bool depends = search->failure.begin < item->end && item->first < search->failure.end;
        if (depends && exclude(search, node->item)) return true;
        if (!fail_node(search)) return false;
    }
}

// Why a state is as it is that is known to have no completion.
static exact_reason state_reason(const exact_search *search, const exact_node *node) {
    const exact_part *part = search->part;
    exact_reason why = {node->begin, node->end};
    for (uint32_t i = part->item_begin[node->begin]; i < part->item_begin[node->end]; ++i)
        if (search->lowest[i] != EXACT_PLACED) why = exact_reason_join(why, search->why[i]);
    return why;
}

static bool out_of_budget(exact_search *search) {
    if (search->nodes_left == 0 || search->trail.count > TRAIL_LIMIT) return true;
    search->nodes_left--;
    search->node_count++;
    search->work += WORK_PER_NODE;
    if (search->deadline_ns && search->work >= search->next_clock) {
        search->next_clock = search->work + WORK_PER_CLOCK;
        search->out_of_time = berth_clock_ns() > search->deadline_ns;
    }
    return search->out_of_time;
}

typedef enum choice { CHOICE_PLACED, CHOICE_RETRACTED, CHOICE_NONE } choice;

// Places the next item of the last node, or goes back to a node that has another choice.
static choice choose(exact_search *search) {
    exact_node *node = top_node(search);
    if (is_remembered(node)) {
        uint64_t key = state_key(search, node);
        if (known_failed(search, key)) {
            search->failure = state_reason(search, node);
            return fail_node(search) && retract(search) ? CHOICE_RETRACTED : CHOICE_NONE;
        }
        if (node->key_count < EXACT_KEYS) node->keys[node->key_count++] = key;
    }
    uint32_t clique = berth_memory__exact_choose_clique(search, node->begin, node->end);
    node->item = next_candidate(search, clique);
    node->mark = search->trail.count;
    node->hash = search->hash;
    node->pending = search->pending;
    node->piece_count = search->pieces.count;
    exact_reason range = exact_item_range(&search->part->items[node->item]);
    if (!berth_memory__exact_place(search, node->item) || !berth_memory__exact_propagate(search))
        return retract(search) ? CHOICE_RETRACTED : CHOICE_NONE;
    add_pieces(search, node->begin, node->end, range, search->nodes.count - 1);
    return CHOICE_PLACED;
}

// Propagates what holds before anything is placed. Of identical items each lies above the one
// before.
static bool begin(exact_search *search) {
    const exact_part *part = search->part;
    berth_memory__exact_reset(search);
    for (uint32_t i = 0; i < part->item_count; ++i) {
        const exact_item *item = &part->items[i];
        if (item->latest < 0) return false;
        if (item->twin != i &&
            !berth_memory__exact_raise(search, i, search->lowest[item->twin] + part->items[i].size,
                                       EXACT_ALWAYS))
            return false;
    }
    return berth_memory__exact_propagate(search);
}

exact_outcome berth_memory__exact_run(exact_search *search) {
    if (!begin(search)) return EXACT_FAILED;
    berth_memory__exact_touch_all(search);
    search->nodes.count = search->pieces.count = 0;
    search->pending = 0;
    exact_reason all = {0, search->part->clique_count};
    add_pieces(search, 0, search->part->clique_count, all, NO_NODE);
    open_node(search);
    for (;;) {
        if (out_of_budget(search)) return EXACT_STOPPED;
        choice made = choose(search);
        if (made == CHOICE_NONE) return EXACT_FAILED;
        if (made == CHOICE_RETRACTED) continue;
        if (search->pending == 0) return EXACT_FOUND;
        open_node(search);
    }
}
