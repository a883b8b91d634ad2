// The second exact search: over which of two buffers that are live together is below. It learns a
// clause from every conflict. Only memory/learn*.c and memory/exact.c include this.
//
// A variable is a pair of items that are live together; a literal says which of them is below.
// Bounds of offsets follow from literals; conflicts are explained by literals, and the clauses
// learned from them make the search go back to where it can matter.
//
//   learn_search *search = berth_memory__learn_create(arena, part, hint, deadline_ns);
//   exact_outcome outcome = berth_memory__learn_run(search, &nodes_left);   // may go on later
#ifndef BERTH_MEMORY_LEARN_PRIVATE_H_
#define BERTH_MEMORY_LEARN_PRIVATE_H_

#include "memory/exact_private.h"

// literal 2 v: the first item of pair v is below the second; 2 v + 1: the second is below.
typedef uint32_t learn_literal;

#define LEARN_NONE UINT32_MAX
enum { LEARN_PAIR_LIMIT = 1 << 14, LEARN_ITEM_LIMIT = 1024 };

// Bounds have two sides: BELOW is how far an item is at least from the ground, ABOVE how far its
// end is at least from the capacity. What holds for one holds for the other upside down.
typedef enum learn_side { LEARN_BELOW, LEARN_ABOVE } learn_side;

// A bound that became greater, and why: the items `from` are all on that side of the item, at
// least `distance` away, and take `total`: the sum of their sizes (measure LEARN_NONE), or so many
// points of a measure.
typedef struct learn_bound {
    int64_t value;
    int64_t distance;
    int64_t total;
    uint32_t measure;
    uint32_t from_begin;  // into search->from
    uint32_t from_count;  // 0: it holds always
    uint32_t previous;    // the bound before, of the same item and side
    uint32_t owner;       // 2 item + side
    uint32_t stamp;       // the explanation that used it last,
    int64_t explained;    // and the greatest value it needed
} learn_bound;

typedef enum learn_reason_kind {
    LEARN_DECIDED,
    LEARN_CLAUSE,      // index: of the clause
    LEARN_BOUNDS,      // no room for the other order; index: number of bounds then
    LEARN_TRANSITIVE,  // index: the item in between
} learn_reason_kind;

typedef struct learn_reason {
    learn_reason_kind kind;
    uint32_t index;
} learn_reason;

typedef struct learn_clause {
    uint32_t begin;  // into search->clause_literals; the first two are watched
    uint32_t count;
    float activity;
} learn_clause;

typedef struct learn_watch {
    uint32_t clause;
    uint32_t next;  // index + 1
} learn_watch;

typedef struct learn_level {
    uint32_t trail;  // lengths before the level
    uint32_t bounds;
    uint32_t from;
} learn_level;

// A bound that an explanation needs: `owner` was at least `value` when there were `before` bounds.
typedef struct learn_need {
    uint32_t owner;
    uint32_t before;
    int64_t value;
} learn_need;

typedef struct learn_words {
    uint32_t *data;
    uint32_t count;
    uint32_t capacity;
} learn_words;

typedef struct learn_search {
    const exact_part *part;
    berth_arena *arena;
    int64_t deadline_ns;
    bool out_of_time;
    bool failed;       // proven: no solution
    int64_t *offsets;  // [items] the solution

    // Pairs.
    uint32_t pair_count;
    uint32_t *pair_items;      // [2 * pair_count]
    uint32_t *pair_of;         // [items * items] LEARN_NONE: not live together
    uint32_t *neighbor_begin;  // [items + 1]
    uint32_t *neighbors;       // items live together with each

    // Assignment.
    int8_t *values;    // [pairs] 1: the first literal is true, -1: the second, 0: open
    int8_t *sides;     // [items * items] where the second item is of the first: 1 + side; 0: open
    uint32_t *levels;  // [pairs]
    learn_reason *reasons;  // [pairs]
    learn_words trail;      // true literals in order
    uint32_t clauses_seen;  // literals of the trail that clauses were looked at for
    uint32_t order_seen;    // ... and the order of items
    BERTH_VEC(learn_level) level_marks;

    // Bounds.
    BERTH_VEC(learn_bound) bounds;
    learn_words from;
    uint32_t *current;     // [2 items] the latest bound
    uint32_t *members[2];  // of the cliques, by the bounds of a side, greatest first
    exact_queue cliques;   // in which bounds changed
    exact_queue items;     // whose bounds changed
    exact_queue owners;    // 2 item + side: something on that side of the item changed
    uint32_t *scratch;     // [items]
    exact_points *below;   // [items] scratch

    // Conflicts.
    learn_words conflict;     // true literals that cannot be together
    learn_words antecedents;  // of the literal that is being explained
    BERTH_VEC(learn_need) needs;
    uint32_t stamp;
    uint32_t *picked;  // [pairs] the explanation that has the pair's literal already
    bool *marked;      // [pairs]
    learn_words learned;

    // Clauses.
    BERTH_VEC(learn_clause) clauses;
    learn_words clause_literals;
    BERTH_VEC(learn_watch) watches;
    uint32_t *watch_heads;  // [2 pairs] index + 1
    float clause_step;
    uint32_t clause_limit;

    // Decisions.
    double *activity;  // [pairs]
    double activity_step;
    uint32_t *heap;     // pairs by activity: all open ones
    uint32_t *heap_at;  // [pairs] index + 1; 0: not in it
    uint32_t heap_count;
    int8_t *phases;  // [pairs] value to try first
    uint32_t restart_count;
    uint64_t conflicts_left;  // of this restart
    uint64_t work;            // members looked at
    uint64_t next_clock;      // work at which the clock is looked at
} learn_search;

static inline void learn_push(learn_search *search, learn_words *words, uint32_t word) {
    berth_vec_push(search->arena, words, word);
}

// The literal that says that `low` is below `high`, which are live together.
static inline learn_literal learn_below(const learn_search *search, uint32_t low, uint32_t high) {
    uint32_t pair = search->pair_of[(size_t)low * search->part->item_count + high];
    return 2 * pair + (search->pair_items[2 * (size_t)pair] != low);
}

static inline learn_literal learn_on_side(const learn_search *search, learn_side side,
                                          uint32_t near, uint32_t item) {
    return side == LEARN_BELOW ? learn_below(search, near, item) : learn_below(search, item, near);
}

static inline uint32_t learn_low(const learn_search *search, learn_literal literal) {
    return search->pair_items[literal];
}

static inline uint32_t learn_high(const learn_search *search, learn_literal literal) {
    return search->pair_items[literal ^ 1];
}

static inline bool learn_is_true(const learn_search *search, learn_literal literal) {
    return search->values[literal >> 1] == (literal & 1 ? -1 : 1);
}

static inline bool learn_is_false(const learn_search *search, learn_literal literal) {
    return search->values[literal >> 1] == (literal & 1 ? 1 : -1);
}

// Is `other` known to be on that side of `item`?
static inline bool learn_is_on_side(const learn_search *search, learn_side side, uint32_t other,
                                    uint32_t item) {
    return search->sides[(size_t)item * search->part->item_count + other] == 1 + (int8_t)side;
}

static inline int64_t learn_value(const learn_search *search, learn_side side, uint32_t item) {
    return search->bounds.data[search->current[2 * (size_t)item + side]].value;
}

// NULL when the part has too many pairs. `hint`: offsets in units whose order is tried first, or
// NULL.
learn_search *berth_memory__learn_create(berth_arena *arena, const exact_part *part,
                                         const int64_t *hint, int64_t deadline_ns);

// Searches until found (search->offsets), failed (proven), or stopped by the nodes (decisions) or
// the deadline; a later call goes on.
exact_outcome berth_memory__learn_run(learn_search *search, uint64_t *nodes_left);

// --- Assignment (learn.c) ---

// Makes a literal true. False: it is false already (search->conflict).
bool berth_memory__learn_assign(learn_search *search, learn_literal literal, learn_reason reason);

// --- Bounds (learn_bounds.c) ---

void berth_memory__learn_make_bounds(learn_search *search);

// Draws all conclusions from literals about bounds, and back. False: search->conflict.
bool berth_memory__learn_propagate_bounds(learn_search *search);

// Bounds back to the state before a level.
void berth_memory__learn_undo_bounds(learn_search *search, const learn_level *level);

// Adds the true literals that a literal with such a reason follows from.
void berth_memory__learn_explain(learn_search *search, learn_literal literal, learn_reason reason,
                                 learn_words *out);

// --- Clauses (learn_clauses.c) ---

// Conclusions from clauses for the literals that are new on the trail. False: search->conflict.
bool berth_memory__learn_propagate_clauses(learn_search *search);

// Learns from search->conflict, goes back, and makes the learned literal true. False: there is no
// solution.
bool berth_memory__learn_resolve(learn_search *search);

// Goes back to a level.
void berth_memory__learn_backtrack(learn_search *search, uint32_t level);

// At level 0: drops the clauses that were used least.
void berth_memory__learn_reduce(learn_search *search);

// --- Order of decisions (learn.c) ---

void berth_memory__learn_bump(learn_search *search, uint32_t pair);
void berth_memory__learn_reopen(learn_search *search, uint32_t pair);

#endif  // BERTH_MEMORY_LEARN_PRIVATE_H_
