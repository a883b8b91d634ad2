// The exact search's own types. Only memory/exact*.c include this.
#ifndef BERTH_MEMORY_EXACT_PRIVATE_H_
#define BERTH_MEMORY_EXACT_PRIVATE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "memory/exact.h"
#include "memory/interval.h"

// Sizes, offsets and heights are in units: the greatest size that divides all of them.
typedef struct exact_item {
    int64_t size;
    int64_t alignment;
    int64_t latest;  // greatest offset
    uint32_t first;  // first clique, and one after the last
    uint32_t end;
    uint32_t source;  // index of the caller's interval
    uint32_t twin;    // an identical item with a smaller index; its own index if there is none
    uint64_t hash;    // random word of the item
} exact_item;

// The points residue, residue + period, ... of the memory. Items live together cover each at most
// once, and an item covers at least some of them wherever its alignment lets it be.
typedef struct exact_measure {
    int64_t period;  // 1 << shift
    uint32_t shift;
    int64_t residue;
} exact_measure;

enum { EXACT_MEASURES = 8 };

// A number of points of each measure; 0 for those that a part has not.
typedef struct exact_points {
    int64_t of[EXACT_MEASURES];
} exact_points;

// One independent part of the problem: no interval is live both in it and outside.
typedef struct exact_part {
    uint32_t item_count;
    uint32_t clique_count;
    exact_item *items;       // sorted by first clique
    uint32_t *item_begin;    // [clique_count + 1] items whose first clique is c: item_begin[c] ..
                             // item_begin[c + 1]
    uint32_t *member_begin;  // [clique_count + 1] into the members
    uint32_t *members;       // items live in each clique; NULL when the part is too large to search
    int64_t capacity;
    int64_t unit_bytes;
    uint64_t height_bytes;   // of the solution that the caller has; UINT64_MAX without one
    bool aligned;            // some alignment is not 1 unit
    uint32_t measure_count;  // 0 unless aligned
    exact_measure measures[EXACT_MEASURES];
    exact_points *cover;      // [items] points that an item covers at least; NULL without measures
    exact_points all_points;  // below the capacity
} exact_part;

enum { EXACT_PLACED = -1 };

// More items times cliques they are in than this are left to the heuristics: the search would
// need more than about a gigabyte.
#define EXACT_MEMBER_LIMIT ((uint64_t)1 << 24)

// The cliques that a fact was concluded from: it holds in every state whose placed items in these
// cliques are the same. Empty (begin > end): it holds always.
typedef struct exact_reason {
    uint32_t begin;
    uint32_t end;
} exact_reason;

#define EXACT_ALWAYS ((exact_reason){UINT32_MAX, 0})

// What is undone when the search goes back.
typedef enum exact_change_kind {
    EXACT_CHANGE_LOWEST,
    EXACT_CHANGE_PLACED,
    EXACT_CHANGE_SUPPORT,
    EXACT_CHANGE_FLOOR,
    EXACT_CHANGE_TOP,
} exact_change_kind;

typedef struct exact_change {
    int64_t old_value;
    exact_reason old_reason;
    exact_change_kind kind;
    uint32_t index;  // item or clique
} exact_change;

// Which clique to branch on, among those in valleys of the floor: least of ...
typedef enum exact_rule {
    EXACT_CHOICES_SLACK,  // choices, then slack (capacity less floor less unplaced sizes)
    EXACT_SLACK,
    EXACT_CHOICES_FLOOR,
    EXACT_FLOOR_SLACK,
    EXACT_FLOOR_CHOICES,
    EXACT_RULES,
} exact_rule;

typedef enum exact_outcome { EXACT_FOUND, EXACT_FAILED, EXACT_STOPPED } exact_outcome;

enum { EXACT_KEYS = 6 };

// A state in which an item is chosen: one piece of the part (cliques [begin, end), connected by
// unplaced items), and the choice that is being tried.
typedef struct exact_node {
    uint32_t begin;
    uint32_t end;
    uint32_t parent;   // the node whose choice led here; UINT32_MAX: none
    uint32_t pending;  // pieces to solve after this one (index + 1 into search->pieces), and how
    uint32_t piece_count;  // many there were
    uint32_t item;         // chosen
    size_t mark;           // length of the trail before it was placed
    uint64_t hash;         // of the piece, then
    uint32_t key_count;
    uint64_t keys[EXACT_KEYS];  // states of this node, which fail with it
} exact_node;

typedef struct exact_piece {
    uint32_t begin;
    uint32_t end;
    uint32_t parent;  // node
    uint32_t next;    // index + 1 of the next pending piece; 0: none
} exact_piece;

typedef struct exact_queue {
    uint32_t *entries;
    bool *waiting;
    uint32_t count;
} exact_queue;

typedef struct exact_hanging {
    uint32_t item;
    int64_t offset;  // least end that it can rest on
    bool open;       // what it rests on is not settled
} exact_hanging;

typedef struct exact_swept {
    int64_t lowest;
    uint32_t item;
} exact_swept;

typedef struct exact_search {
    const exact_part *part;
    berth_arena *arena;
    uint32_t *members;  // part->members, in the order in which they were sorted last

    // The state.
    int64_t *lowest;     // [items] no completion has the item below; EXACT_PLACED when it is placed
    exact_reason *why;   // [items] of lowest
    bool *supported;     // [items] at its lowest offset it rests on a placed item or on the ground
    int64_t *floor;      // [cliques] no completion has an unplaced item of the clique below
    int64_t *top;        // [cliques] end of the placed items: what items can rest on
    int64_t *rest;       // [cliques] sum of the unplaced items' sizes
    uint32_t *crossing;  // [cliques + 1] unplaced items that are live both before and in the clique
    uint64_t hash;       // of the unplaced items of the current piece
    int64_t *offsets;    // [items] of those that are placed
    BERTH_VEC(exact_change) trail;

    // Propagation.
    exact_queue clique_queue;
    exact_queue item_queue;
    exact_reason failure;    // why the last propagation failed
    exact_hanging *hanging;  // [items] scratch
    uint8_t *hanging_state;  // [items] scratch, 0 between uses
    uint32_t *unsupported;   // [items] scratch

    // Sweeps over many cliques (exact_sweep.c).
    uint32_t *sweep_order;    // [items] by lowest offset, greatest first, as of the last sweep
    uint32_t *sweep_slot;     // [items] scratch
    exact_swept *swept;       // [items] scratch
    int64_t *sweep_above;     // [cliques] scratch
    int64_t *sweep_low;       // [cliques] scratch
    uint32_t *sweep_waiting;  // [cliques + 1] scratch

    // Which clique to branch on: brought up to date when the next one is chosen.
    uint64_t *touched;  // a bit per clique: something changed
    uint64_t *rescore;  // a bit per clique
    bool *candidate;   // [items] can be placed now: its cliques all have its lowest offset as floor
    uint32_t *cover;   // [cliques] candidates
    bool *left_wall;   // [cliques] of the run of equal floors: what is to its left is higher
    bool *right_wall;  // [cliques]
    int64_t *score;    // [cliques] INT64_MAX: not to be chosen
    uint32_t *block_best;  // [blocks of 64 cliques] the clique of least score
    uint32_t *checked;     // [items] number of the last update that looked at it
    uint32_t update;
    exact_rule rule;
    bool from_end;   // of equal cliques the last
    uint32_t *rank;  // [items] order in which candidates are tried

    // The search tree.
    BERTH_VEC(exact_node) nodes;
    BERTH_VEC(exact_piece) pieces;
    uint32_t pending;  // first pending piece, index + 1
    uint64_t *failed;  // hash table of states without completion; shared by the restarts
    uint64_t failed_mask;
    uint64_t nodes_left;  // of this restart
    uint64_t node_count;  // in all
    uint64_t work;        // members looked at
    uint64_t next_clock;  // work at which the clock is looked at
    int64_t deadline_ns;  // 0 = none
    bool out_of_time;
} exact_search;

static inline exact_reason exact_reason_join(exact_reason a, exact_reason b) {
    return (exact_reason){a.begin < b.begin ? a.begin : b.begin, a.end > b.end ? a.end : b.end};
}

static inline exact_reason exact_item_range(const exact_item *item) {
    return (exact_reason){item->first, item->end};
}

static inline int64_t exact_align_up(int64_t value, int64_t alignment) {
    return (value + alignment - 1) & ~(alignment - 1);
}

// Splits a problem into independent parts, in units, with everything the search looks up.
// `offsets` is a solution that the caller has, or NULL. O(intervals times the cliques they are in).
exact_part *berth_memory__exact_parts(berth_arena *arena, const berth_memory_interval *intervals,
                                      uint32_t count, uint64_t capacity_bytes,
                                      const uint64_t *offsets, uint32_t *out_count);

// Unit of each interval's part, in bytes: offsets of solutions worth looking at are multiples of
// it.
void berth_memory__exact_units(berth_arena *arena, const berth_memory_interval *intervals,
                               uint32_t count, uint64_t *out_units);

// What restarts follow in place of a rule and an order of their turn (exact_follow.c).
typedef struct exact_guide {
    const uint64_t *offsets;  // of a solution that is somewhat too high, in bytes, by interval
    const uint64_t *other;    // and of another one, or NULL
    uint64_t random;          // state of the random numbers, not 0; goes on from call to call
} exact_guide;

// Like berth_memory_exact_fit. Parts that fit in `known` (offsets, or NULL) stay as they are there.
//   guide: NULL: rules and orders in turn, and the search that learns; otherwise restarts that follow it
//   pair: of a branching rule and an order, where the restarts begin; becomes the one that found the
//   solution, or the one after the last that was used (without a guide)
//   out_exhausted: more nodes or time would not change the verdict
BERTH_MUST_USE berth_status berth_memory__exact_fit(
    berth_arena *arena, const berth_memory_interval *intervals, uint32_t count,
    uint64_t capacity_bytes, const uint64_t *known, exact_guide *guide, berth_memory_budget *budget,
    uint64_t *out_offsets, berth_memory_verdict *out_verdict, uint32_t *pair, bool *out_exhausted);

// xorshift64* (Vigna 2016). `state` is not 0.
static inline uint64_t exact_random(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545F4914F6CDD1Du;
}

static inline double exact_random_fraction(uint64_t *state) {  // in [0, 1)
    return (double)(exact_random(state) >> 11) * 0x1p-53;
}

// Order number `number` (modulo EXACT_ORDERS) of the part's items: ranks from 0. Random factors
// from 1 - noise / 2 to 1 + noise / 2, from the seed `state`, make restarts differ.
enum { EXACT_ORDERS = 4 };
void berth_memory__exact_rank(berth_arena *arena, const exact_part *part,
                              const berth_memory_interval *intervals, uint32_t number, double noise,
                              uint64_t state, uint32_t *rank);

// Sets the rule, the order and the nodes of a restart that follows the guide.
void berth_memory__exact_follow(exact_search *search, exact_guide *guide);

// The search of one part. Lives in `arena`.
exact_search *berth_memory__exact_search_create(berth_arena *arena, const exact_part *part,
                                                int64_t deadline_ns);

// Makes the table of failed states larger, and keeps what is in it. `slots` is a power of two.
void berth_memory__exact_grow_table(exact_search *search, uint64_t slots);

// Searches from the beginning until found (search->offsets), failed (proven) or stopped by
// nodes_left or the deadline.
exact_outcome berth_memory__exact_run(exact_search *search);

// --- State (exact_state.c) ---

// The state before anything is placed, with all cliques waiting for propagation.
void berth_memory__exact_reset(exact_search *search);

// Places the item at its lowest offset. False: no completion (search->failure). Does not propagate.
bool berth_memory__exact_place(exact_search *search, uint32_t item);

// No completion has the item below `offset`, because of `why` (and the item's own cliques).
// False: then no completion (search->failure says why). Does not propagate.
bool berth_memory__exact_raise(exact_search *search, uint32_t item, int64_t offset,
                               exact_reason why);

void berth_memory__exact_set_floor(exact_search *search, uint32_t clique, int64_t floor);
void berth_memory__exact_set_supported(exact_search *search, uint32_t item, bool supported);

// Undoes what changed since the trail had `length` entries. Also forgets what waits for
// propagation.
void berth_memory__exact_undo(exact_search *search, size_t length);

// Hash of the unplaced items of a piece.
uint64_t berth_memory__exact_hash(const exact_search *search, uint32_t begin, uint32_t end);

void berth_memory__exact_enqueue(exact_queue *queue, uint32_t entry);
void berth_memory__exact_empty_queue(exact_queue *queue);

// Items that are live together with one, in turn:
//   exact_neighbors it = exact_neighbors_of(search, item);
//   while (exact_next(&it)) ... it.other ...
typedef struct exact_neighbors {
    const uint32_t *members;  // of the item's first clique
    uint32_t at, member_count;
    uint32_t later, later_end;  // items that start after it
    uint32_t item, other;
} exact_neighbors;

static inline exact_neighbors exact_neighbors_of(const exact_search *search, uint32_t item) {
    const exact_part *part = search->part;
    const exact_item *it = &part->items[item];
    uint32_t begin = part->member_begin[it->first];
    return (exact_neighbors){.members = search->members + begin,
                             .member_count = part->member_begin[it->first + 1] - begin,
                             .later = part->item_begin[it->first + 1],
                             .later_end = part->item_begin[it->end],
                             .item = item};
}

static inline bool exact_next(exact_neighbors *it) {
    while (it->at < it->member_count) {
        it->other = it->members[it->at++];
        if (it->other != it->item) return true;
    }
    if (it->later >= it->later_end) return false;
    it->other = it->later++;
    return true;
}

// --- Propagation (exact_propagate.c) ---

// Draws all conclusions from what changed. False: no completion (search->failure).
bool berth_memory__exact_propagate(exact_search *search);

// The cliques that wait are checked together. False: no completion (search->failure).
bool berth_memory__exact_sweep(exact_search *search);
// Whether that costs less than one by one.
bool berth_memory__exact_sweep_pays(const exact_search *search);

// --- Choice (exact_choose.c) ---

// Everything is to be looked at again: after a reset, or for another rule.
void berth_memory__exact_touch_all(exact_search *search);

// The clique of a piece to branch on: in a valley of the floor, so that every item at its floor
// can be placed now.
uint32_t berth_memory__exact_choose_clique(exact_search *search, uint32_t begin, uint32_t end);

static inline int64_t exact_points_below(const exact_measure *measure, int64_t offset) {
    return offset > measure->residue
               ? (offset - measure->residue + measure->period - 1) >> measure->shift
               : 0;
}

static inline void exact_all_points_below(const exact_part *part, int64_t offset,
                                          exact_points *out) {
    for (uint32_t m = 0; m < EXACT_MEASURES; ++m)
        out->of[m] = exact_points_below(&part->measures[m], offset);
}

static inline void exact_add_points(exact_points *sum, const exact_points *points) {
    for (uint32_t m = 0; m < EXACT_MEASURES; ++m) sum->of[m] += points->of[m];
}

// Are so many points in [begin, end) too few for `points` of some measure?
static inline bool exact_points_lack(const exact_points *points, const exact_points *below_begin,
                                     const exact_points *below_end) {
    int64_t lack = 0;  // negative as soon as some are
    for (uint32_t m = 0; m < EXACT_MEASURES; ++m)
        lack |= below_end->of[m] - below_begin->of[m] - points->of[m];
    return lack < 0;
}

static inline void exact_touch(exact_search *search, uint32_t clique) {
    search->touched[clique >> 6] |= (uint64_t)1 << (clique & 63);
}

#endif  // BERTH_MEMORY_EXACT_PRIVATE_H_
