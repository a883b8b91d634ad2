// Shared by memory/order*.c.
#ifndef BERTH_MEMORY_ORDER_PRIVATE_H_
#define BERTH_MEMORY_ORDER_PRIVATE_H_

#include "memory/order.h"

// Lists of numbers per index: items[first[i] .. first[i + 1]).
typedef struct order_lists {
    uint32_t *first;
    uint32_t *items;
} order_lists;

// A part of the problem: what is before it is done, what is after it is not.
typedef struct order_part {
    uint32_t node_count;
    order_lists successors;
    order_lists predecessors;
    uint32_t buffer_count;  // touched in the part
    uint64_t *sizes;
    bool *before;          // a node before the part touches it
    bool *after;           // a node after the part touches it
    order_lists users;     // per buffer
    order_lists touches;   // per node
    order_lists from;      // per node: pairs in place, from buffer from.items[i]
    uint32_t *to;          // to buffer to[i]
    uint64_t base_bytes;   // live all the time, touched by no node of the part
    uint64_t begin_bytes;  // live when the part begins
} order_part;

typedef struct order_move {
    uint64_t during_bytes;  // live while the node runs
    uint64_t after_bytes;   // live once it is done
} order_move;

static inline bool berth_order__has(const uint64_t *set, uint32_t i) {
    return set[i / 64] >> (i % 64) & 1u;
}

static inline void berth_order__add(uint64_t *set, uint32_t i) {
    set[i / 64] |= (uint64_t)1 << (i % 64);
}

// Whether the problem is as memory/order.h says. Errors: INVALID_ARGUMENT.
BERTH_MUST_USE berth_status berth_order__check(const berth_memory_order_problem *problem);
// Cuts nodes [first, end) out of the problem: what is before is done, what is after is not.
void berth_order__cut_part(berth_arena *arena, const berth_memory_order_problem *problem,
                           uint32_t first, uint32_t end, order_part *out);
// What running `node` after the set `done` does, with `live_bytes` live in between.
order_move berth_order__move(const order_part *part, const uint64_t *done, uint32_t node,
                             uint64_t live_bytes);
// Peak of the part's own order 0, 1, 2, ...
uint64_t berth_order__source_peak(berth_arena *scratch, const order_part *part);
// No order of the part has a lower peak: for every node, what its ancestors leave for it and its
// descendants.
uint64_t berth_order__bound(berth_arena *scratch, const order_part *part);

typedef struct order_search {
    uint64_t floor_bytes;  // peaks up to this one are all as good
    uint64_t limit_bytes;  // only peaks below are of interest
    uint64_t states_left;
    uint32_t *order;  // out, when found
    bool found;
    uint64_t peak_bytes;   // of the order found, at least floor_bytes
    uint64_t bound_bytes;  // out: no order has a peak below (at least floor_bytes)
} order_search;

// Best-first search; stops when states_left is used up.
void berth_order__best_first(berth_arena *scratch, const order_part *part, order_search *search);
// Level by level with a few of the best sets.
void berth_order__beam(berth_arena *scratch, const order_part *part, order_search *search);

#endif  // BERTH_MEMORY_ORDER_PRIVATE_H_
