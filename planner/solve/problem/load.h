// The load of one device while items are added to it and ruled out one by one, with the part of it
// that can no longer become less. Undoing is exact: sums are saved and put back, not subtracted.
#ifndef BERTH_PLANNER_SOLVE_PROBLEM_LOAD_H_
#define BERTH_PLANNER_SOLVE_PROBLEM_LOAD_H_

#include "planner/solve/problem/nets.h"

// Items are on the device, out (surely elsewhere) or undecided. Thread-compatible; arena memory.
typedef struct berth_place_load {
    const berth_place_problem *problem;
    const berth_place_nets *nets;
    const berth_place_sorts *sorts;
    uint32_t *whole;     // [nets] pins that count: those of items below the limit
    uint32_t *in;        // [nets] pins on the device
    uint32_t *out;       // [nets] pins out
    uint32_t sum_count;  // 3 * kinds + 1
    double *sums;        // size; then for each kind time, cost of nets with pins here and out, cost
                         // of nets with pins here and undecided ones only
    uint32_t *unable;    // [kinds] items on the device that the kind does not support
    uint32_t *pinned;    // [sorts] items on the device that are pinned to the sort
    uint32_t pinned_total;
} berth_place_load;

// Items item_limit and above are as if they were not there: their pins do not count.
berth_place_load *berth_place__load(berth_arena *arena, const berth_place_problem *problem,
                                    const berth_place_nets *nets, const berth_place_sorts *sorts,
                                    uint32_t item_limit);

// Nothing on the device, nothing out.
void berth_place__load_clear(berth_place_load *load);

// An undecided item goes onto the device, or out.
void berth_place__load_add(berth_place_load *load, uint32_t item);
void berth_place__load_rule_out(berth_place_load *load, uint32_t item);

// The opposite; `saved` is load->sums [sum_count] of before.
void berth_place__load_undo_add(berth_place_load *load, uint32_t item, const double *saved);
void berth_place__load_undo_rule_out(berth_place_load *load, uint32_t item, const double *saved);

// Load if everything undecided were elsewhere.
static inline double berth_place__load_value(const berth_place_load *load, uint32_t sort) {
    const double *of_kind = &load->sums[1 + 3 * load->sorts->kind[sort]];
    return of_kind[0] + of_kind[1] + of_kind[2];
}

// No decision on the undecided items makes the load less.
static inline double berth_place__load_floor(const berth_place_load *load, uint32_t sort) {
    const double *of_kind = &load->sums[1 + 3 * load->sorts->kind[sort]];
    return of_kind[0] + of_kind[1];
}

// Whether a device of the sort may have the items: support, pins, capacity.
static inline bool berth_place__load_allowed(const berth_place_load *load, uint32_t sort) {
    uint32_t kind = load->sorts->kind[sort];
    return load->unable[kind] == 0 && load->pinned[sort] == load->pinned_total &&
           load->sums[0] <= load->problem->kinds[kind].capacity_bytes;
}

#endif  // BERTH_PLANNER_SOLVE_PROBLEM_LOAD_H_
