// Contiguous placements: devices in an order in which the forward nodes of the first i are closed
// under predecessors. Only planner/solve/contiguous*.c and strategy_dp.c include this.
//
// Forward nodes that have to be on one device (a class, or classes that a cycle of forward edges
// ties together) are a block; what each device has is then the difference of two ideals of the
// graph of blocks (Tarnawski et al., NeurIPS 2020, section 5). Classes of backward nodes only are
// loose: they can be anywhere. The program over ideals underestimates what they cost (each device
// has the loose items that suit it best); one for which that matters becomes a block without edges.
#ifndef BERTH_PLANNER_SOLVE_THROUGHPUT_CONTIGUOUS_H_
#define BERTH_PLANNER_SOLVE_THROUGHPUT_CONTIGUOUS_H_

#include "planner/solve/problem/ideals.h"
#include "planner/solve/problem/load.h"
#include "planner/solve/problem/merge.h"
#include "planner/solve/problem/nets.h"
#include "planner/solve/strategies/strategy.h"

enum { BERTH_PLACE_STATE_LIMIT = 1024 };

// Items 0..block_count-1 are the blocks, predecessors first; the others are loose.
typedef struct berth_place_blocks {
    uint32_t block_count;
    berth_place_dag dag;     // of the blocks
    berth_place_nets *nets;  // of all items
} berth_place_blocks;

// What loose items add to the load of a device at the least.
typedef struct berth_place_loose berth_place_loose;

berth_place_loose *berth_place__loose(berth_arena *arena, const berth_place_problem *problem,
                                      const berth_place_blocks *blocks,
                                      const berth_place_sorts *sorts);

// At least what the loose items add to the load of a device of the sort that has exactly the blocks
// in `load`.
double berth_place__loose_extra(const berth_place_loose *loose, const berth_place_load *load,
                                uint32_t sort);

// Same, and flags the loose items that the device would have. out_has: [item_count]
void berth_place__loose_choose(const berth_place_loose *loose, const berth_place_load *load,
                               uint32_t sort, bool *out_has);

// How a chain of devices is searched. A state says how many devices of each sort it has used.
typedef struct berth_place_chain {
    berth_place_search *search;
    const berth_place_blocks *blocks;
    const berth_place_sorts *sorts;
    const berth_place_loose *loose;
    uint32_t state_count;  // product over sorts of devices + 1; the last has used all
    uint32_t *stride;      // [sorts] this much further a device of the sort is used too
    double *room;          // [states] weights of the devices not used, together
    double *floor;         // [items] least weighted load (load_bound.h)
    double bound;          // sum of floor
} berth_place_chain;

// A chain of blocks on devices: part p has items[start[p] .. start[p + 1]) on a device of sort[p].
typedef struct berth_place_parts {
    uint32_t count;
    uint32_t *start;  // [device_count + 1]
    uint32_t *sort;   // [device_count]
    uint32_t *items;  // [item_count]
} berth_place_parts;

// is_vertex: [group_count] loose groups to be blocks nevertheless, without edges.
//   ownership: in `arena`
berth_place_blocks *berth_place__blocks(berth_arena *arena, const berth_place_problem *problem,
                                        const berth_place_classes *classes, const bool *is_vertex);

// NULL when there are more than BERTH_PLACE_STATE_LIMIT states.
berth_place_chain *berth_place__chain(berth_arena *arena, berth_place_search *search,
                                      const berth_place_blocks *blocks,
                                      const berth_place_sorts *sorts);

// Device is left in the state for one more of the sort.
static inline bool berth_place__chain_has(const berth_place_chain *chain, uint32_t state,
                                          uint32_t sort) {
    return state / chain->stride[sort] % (chain->sorts->device_count[sort] + 1) <
           chain->sorts->device_count[sort];
}

// Best placement whose parts are consecutive in `order` (all items, loose ones too). Value below
// `limit`, or INFINITY.
//   complexity: O(items^2 (nets of an item + states sorts)), less for small limits
double berth_place__chain_in_order(berth_arena *arena, const berth_place_chain *chain,
                                   const uint32_t *order, double limit,
                                   berth_place_parts *out_parts);

typedef enum berth_place_outcome {
    BERTH_PLACE_FOUND,
    BERTH_PLACE_NONE_BELOW,  // proven: no contiguous placement of the blocks is below the limit
    BERTH_PLACE_STOPPED,     // out of budget
} berth_place_outcome;

// Best placement of the blocks below `limit`, loose items underestimated.
//   complexity: O(pairs of ideals that a device of load < limit lies between)
berth_place_outcome berth_place__chain_of_ideals(berth_arena *arena, const berth_place_chain *chain,
                                                 const berth_place_ideals *ideals, double limit,
                                                 double *out_value, berth_place_parts *out_parts);

#endif  // BERTH_PLANNER_SOLVE_THROUGHPUT_CONTIGUOUS_H_
