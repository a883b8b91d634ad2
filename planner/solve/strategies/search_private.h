// The throughput search's own types. Only planner/solve/search_*.c, strategy_search.c and their
// test include this.
//
// The problem as hypergraph partitioning: a *unit* is what moves as a whole (a group, or several
// groups merged), a *net* is a value that costs something to move, over the units of its node and
// of its successors. A device pays a net's cost when the net has a pin on it and another one
// elsewhere; that is the load of problem.h exactly.
#ifndef BERTH_PLANNER_SOLVE_STRATEGIES_SEARCH_PRIVATE_H_
#define BERTH_PLANNER_SOLVE_STRATEGIES_SEARCH_PRIVATE_H_

#include "base/bits.h"
#include "planner/solve/strategies/strategy.h"

enum { PLACE_ORDERS = 2 };  // depth first, one way round and the other

// Immutable after build or contract; arena memory.
typedef struct place_hyper {
    uint32_t unit_count;
    uint32_t net_count;
    uint32_t pin_count;
    uint32_t device_count;
    uint32_t kind_count;
    const uint32_t *device_kind;    // [device_count]
    const double *capacity;         // [device_count] bytes
    double *time;                   // [unit_count * kind_count]; 0 where not allowed
    double *size;                   // [unit_count] bytes
    berth_bits *allowed;            // [unit_count] devices that it may be on
    double *cost;                   // [net_count * kind_count]
    uint32_t *pin_start;            // [net_count + 1] into pin
    uint32_t *pin;                  // [pin_count] units of a net, ascending; at least 2
    uint32_t *net_start;            // [unit_count + 1] into net
    uint32_t *net;                  // [pin_count] nets of a unit
    uint32_t *order[PLACE_ORDERS];  // [unit_count] units as they follow each other in the graph
    uint32_t *rank[PLACE_ORDERS];   // [unit_count] the inverse
} place_hyper;

// Units of a problem are its groups. For the objective MEMORY times are sizes and there are no
// nets.
place_hyper *berth_place__hyper_build(berth_arena *arena, const berth_place_problem *problem,
                                      berth_place_objective objective);

// Merges the units u of equal target[u] (dense, below unit_count); equal nets become one.
// O(pins log pins per net).
place_hyper *berth_place__hyper_contract(berth_arena *arena, const place_hyper *fine,
                                         const uint32_t *target, uint32_t unit_count);

// Merges units that no placement with a value below `value` can part. Writes the dense targets and
// returns how many there are.
uint32_t berth_place__hyper_bind(berth_arena *arena, const place_hyper *hyper, double value,
                                 uint32_t *target);

// splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
static inline uint64_t place_random(uint64_t *state) {
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

// Below `count`, which is not 0.
static inline uint32_t place_random_below(uint64_t *state, uint32_t count) {
    return (uint32_t)(((place_random(state) >> 32) * count) >> 32);
}

// On the device that is best for it; 0 when there is none.
double berth_place__hyper_least_time(const place_hyper *hyper, uint32_t unit);

// Merges units with strong nets in pairs, in random order, until `wanted` are left or nothing fits.
// Units in different `part`s (NULL = all in one) stay apart. Writes the dense targets and returns
// how many there are.
uint32_t berth_place__hyper_match(berth_arena *arena, const place_hyper *hyper,
                                  const uint32_t *part, uint32_t wanted, double weight_limit,
                                  uint64_t *random, uint32_t *target);

// A placement of units, with what a move changes.
typedef struct place_state {
    const place_hyper *hyper;
    uint32_t *device;  // [unit_count]
    uint32_t *count;   // [net_count * device_count] pins of a net on a device
    uint32_t *span;    // [net_count] devices with a pin
    double *load;      // [device_count]
    double *memory;    // [device_count] bytes
} place_state;

place_state *berth_place__state_create(berth_arena *arena, const place_hyper *hyper);

// Takes over a placement and computes everything anew (rounding of moves is gone).
void berth_place__state_set(place_state *state, const uint32_t *device);

// The loads of unit's device and of device `to` after the move; no other load changes.
void berth_place__state_try(const place_state *state, uint32_t unit, uint32_t to,
                            double *out_from_load, double *out_to_load);
void berth_place__state_move(place_state *state, uint32_t unit, uint32_t to);

// The same with what berth_place__state_try said.
void berth_place__state_put(place_state *state, uint32_t unit, uint32_t to, double from_load,
                            double to_load);

// Largest load; INFINITY when a capacity is exceeded.
double berth_place__state_value(const place_state *state);

// Asked with the search nodes just used: whether to end.
typedef bool place_stop(void *user, uint64_t nodes);

// What one annealing does.
typedef struct place_anneal_options {
    double heat_start;  // accepted worsening, relative to the norm of the loads
    double heat_end;
    uint32_t steps;             // temperatures
    uint64_t moves_per_step;    // tried moves
    uint32_t exponent_log2[2];  // the norm's exponent is 2 to this, at the start and at the end
    place_stop *stop;           // asked every few thousand moves
    void *stop_user;
} place_anneal_options;

typedef struct place_anneal {
    place_state *state;
    uint32_t *best;     // [unit_count] best feasible placement so far
    double best_value;  // INFINITY = none
    uint64_t random;
} place_anneal;

// Simulated annealing from state->device.
void berth_place__anneal(place_anneal *anneal, const place_anneal_options *options);

// One round of the multilevel search.
typedef struct place_round {
    const place_hyper *hyper;
    const uint32_t *part;   // [unit_count] units of different parts are never merged; NULL
    const uint32_t *start;  // [unit_count] a placement that no part crosses; NULL = a random one
    double heat;            // of the coarsest level
    double weight_limit;    // no merged unit takes longer on the best device for it
    uint32_t exponent_log2[3];  // at the start, at the end of coarser levels, at the end
    place_stop *stop;
    void *stop_user;
    uint64_t random;
    uint32_t *device;  // [unit_count] out
} place_round;

// Returns the value, INFINITY when a capacity is exceeded.
double berth_place__round(berth_arena *arena, place_round *round);

#endif  // BERTH_PLANNER_SOLVE_STRATEGIES_SEARCH_PRIVATE_H_
