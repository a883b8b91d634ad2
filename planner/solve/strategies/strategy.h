// Strategies: rows in the table of strategy.c, a file each beside it, with helpers.
// A name may have several rows, for different objectives and models; asked for by name, the first
// that applies runs. What they share (a budget, the best placement so far, the bound so far) is
// berth_place_search.
#ifndef BERTH_PLANNER_SOLVE_STRATEGIES_STRATEGY_H_
#define BERTH_PLANNER_SOLVE_STRATEGIES_STRATEGY_H_

#include "planner/solve/problem/evaluate.h"

typedef struct berth_place_search berth_place_search;

typedef struct berth_place_options {
    berth_place_objective objective;
    bool contiguous;       // throughput only
    const char *strategy;  // NULL = "auto"
    uint64_t node_budget;  // search nodes (a node: about a microsecond's work); 0 = the default
    int64_t deadline_ns;  // on berth_clock_ns; 0 = none, and the same problem gives the same answer
    // (optional) Called when a strategy starts and when the value or the bound gets better.
    void (*progress)(void *user, const berth_place_search *search);
    void *progress_user;
} berth_place_options;

#define BERTH_PLACE_DEFAULT_NODES ((uint64_t)8000000)

// Values that differ by less, relatively, are equal: sums of the same figures in another order.
#define BERTH_PLACE_EQUAL 1e-9

// The state of one solve. A strategy reports every better placement it finds and every better bound
// it proves, and returns when berth_place_spent says so.
struct berth_place_search {
    const berth_place_problem *problem;
    const berth_place_options *options;
    berth_arena *arena;         // for what outlives the strategy; scratch comes from child arenas
    uint32_t *best;             // [node_count] valid when best_value < INFINITY; NULL = only a
                                // bound is asked for
    double best_value;          // INFINITY = nothing found
    double lower_bound;         // proven, >= 0
    const char *best_strategy;  // static text: what found `best`
    const char *strategy;       // running now
    uint32_t round;             // of `auto`: how often the running strategy ran before; 0 elsewhere
    void *
        kept;  // of the running strategy, from its earlier rounds (memory of `arena`); NULL at first
    bool finished;        // set by a strategy: with the same best placement it has nothing to add
    uint64_t nodes;       // used
    uint64_t node_limit;  // of the running strategy
    int64_t deadline_ns;  // of the running strategy; 0 = none
    bool out_of_time;     // a deadline cut a strategy short
    bool infeasible;      // proven: no placement keeps the limits
};

typedef struct berth_place_strategy {
    const char *name;
    const char *doc;
    uint32_t auto_percent;   // of the budget that is left, what `auto` lets it use; 0 = never. The
                             // last one that applies may use all
    uint32_t again_percent;  // the same once all have run and budget is left: `auto` goes on with
                             // those that can do more (search->round, search->finished)
    // Whether it applies (objective, switches, size).
    bool (*applies)(const berth_place_problem *problem, const berth_place_options *options);
    // Every group fits on some device by itself: berth_place_solve has seen to that.
    berth_status (*run)(berth_place_search *search);
} berth_place_strategy;

// Adds a strategy for `auto` and for its name, before the last two of the table. It must live as long
// as the process; not while another thread solves. Errors: ALREADY_EXISTS, OUT_OF_RANGE.
BERTH_MUST_USE berth_status berth_place_strategy_register(const berth_place_strategy *strategy);

// NULL-terminated table.
const berth_place_strategy *const *berth_place_strategies(void);

// Counts `nodes` search nodes; true when the budget (nodes or time) is spent or the best placement
// is proven optimal. Looks at the clock only where there is a deadline.
bool berth_place_spent(berth_place_search *search, uint64_t nodes);

// A point of the running strategy's budget.
typedef struct berth_place_since {
    uint64_t nodes;
    int64_t ns;  // on berth_clock_ns; 0 where there is no deadline
} berth_place_since;

berth_place_since berth_place_now(const berth_place_search *search);

// Part of the running strategy's budget (nodes or time) left at that point that has been used since, 0 to 1.
double berth_place_used(const berth_place_search *search, berth_place_since since);

// Whether the best placement equals the proven bound (within BERTH_PLACE_EQUAL).
bool berth_place_proven(const berth_place_search *search);

// Offers a placement: checked and valued by berth_place_evaluate; kept when it is better than the
// best. Returns whether it was kept. A placement that breaks a limit is dropped (and an assertion
// fails: strategies offer only what they believe feasible).
bool berth_place_offer(berth_place_search *search, const uint32_t *assignment);
// Frees what an evaluation said of an assignment that breaks a limit; memory that ran out ends the
// search, which would find something else without it.
void berth_place_drop(const berth_place_search *search, berth_status status);

// Raises the proven bound.
void berth_place_bound(berth_place_search *search, double lower_bound);

#endif  // BERTH_PLANNER_SOLVE_STRATEGIES_STRATEGY_H_
