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
    uint32_t first;  // first clique, and one behind the last
    uint32_t end;
    uint32_t source;  // index of the caller's interval
    uint32_t twin;    // an identical item with a smaller index; its own index if there is none
    uint64_t hash;    // random word of the item
} exact_item;

// One independent part of the problem: no interval is live both in it and outside.
typedef struct exact_part {
    uint32_t item_count;
    uint32_t clique_count;
    exact_item *items;       // sorted by first clique
    uint32_t *item_begin;    // [clique_count + 1] items whose first clique is c: item_begin[c] ..
                             // item_begin[c + 1]
    uint32_t *member_begin;  // [clique_count + 1] into members
    uint32_t *members;       // items live in each clique; NULL when the part is too large to search
    uint32_t *neighbor_begin;  // [item_count + 1] into neighbors
    uint32_t *neighbors;       // items that are live together with each item
    int64_t capacity;
    int64_t unit_bytes;
    bool aligned;  // some alignment is not 1 unit
} exact_part;

// What a node of the search knows. Copied from a node to its children; depth d has its own.
typedef struct exact_frame {
    int64_t
        *lowest;  // [items] no completion of this node has the item below; PLACED when it is placed
    int64_t *floor;  // [cliques] no completion has an unplaced item of the clique below
    int64_t *top;    // [cliques] end of the placed items: what items can rest on
    int64_t *rest;   // [cliques] sum of the unplaced items' sizes
} exact_frame;

enum { EXACT_PLACED = -1, EXACT_ITEM_LIMIT = 4096 };

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

typedef struct exact_hanging {
    uint32_t item;
    int64_t offset;
} exact_hanging;

typedef struct exact_sorted {
    int64_t lowest;
    uint32_t item;
} exact_sorted;

typedef struct exact_search {
    const exact_part *part;
    berth_arena *arena;
    exact_frame *frames;   // [item_count + 1]
    uint32_t frame_count;  // allocated so far
    uint32_t *rank;        // [items] order in which candidates are tried
    int64_t *offsets;      // [items] the solution
    uint64_t *failed;      // hash table of states without completion; shared by the restarts
    uint64_t failed_mask;
    uint64_t nodes_left;  // of this restart
    uint64_t nodes;       // in all
    int64_t deadline_ns;  // 0 = none
    bool out_of_time;
    uint32_t *run_end;       // [cliques] scratch
    int32_t *cover;          // [cliques + 1] scratch
    exact_sorted *sorted;    // [items] scratch
    uint32_t *order;         // [items] all items, as they were sorted last
    uint32_t *slot;          // [items] scratch
    int64_t *above;          // [cliques] scratch
    int64_t *low;            // [cliques] scratch
    exact_hanging *hanging;  // [items] scratch
    bool *is_hanging;        // [items] scratch, false between uses
    exact_rule rule;
    bool from_end;  // of equal cliques the last
} exact_search;

// Splits a problem into independent parts, in units, with everything the search looks up. O(pairs
// live together).
exact_part *berth_memory__exact_parts(berth_arena *arena, const berth_memory_interval *intervals,
                                      uint32_t count, uint64_t capacity_bytes, uint32_t *out_count);

// Unit of each interval's part, in bytes: offsets of solutions worth looking at are multiples of
// it.
void berth_memory__exact_units(berth_arena *arena, const berth_memory_interval *intervals,
                               uint32_t count, uint64_t *out_units);

// Makes the table of failed states larger, and keeps what is in it. `slots` is a power of two.
void berth_memory__exact_grow_table(exact_search *search, uint64_t slots);

// Searches from the beginning until found, failed (proven) or stopped by nodes_left or the
// deadline.
exact_outcome berth_memory__exact_run(exact_search *search);

// Tightens lowest and floor of cliques [begin, end) until nothing changes. False: no completion.
bool berth_memory__exact_propagate(exact_search *search, exact_frame *frame, uint32_t begin,
                                   uint32_t end);

// Runs of equal floors: search->run_end[c] = end of the run that c is in.
void berth_memory__exact_find_runs(exact_search *search, const exact_frame *frame, uint32_t begin,
                                   uint32_t end);

// Places the item at its lowest offset. Does not propagate.
void berth_memory__exact_place(exact_search *search, exact_frame *frame, uint32_t item);

// Nothing unplaced covers the floor of `clique`: raises it. False: then no completion.
bool berth_memory__exact_leave_gap(exact_search *search, exact_frame *frame, uint32_t clique);

#endif  // BERTH_MEMORY_EXACT_PRIVATE_H_
