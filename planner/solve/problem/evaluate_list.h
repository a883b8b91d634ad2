// The schedules of list scheduling, in parts (private to planner/solve/problem): what is to be done
// (evaluate_list_tasks.c), two ways to take turns (evaluate_list_turns.c, evaluate_list_gaps.c), and what a search asks
// of the better one (evaluate_list.c).
#ifndef BERTH_PLANNER_SOLVE_PROBLEM_EVALUATE_LIST_H_
#define BERTH_PLANNER_SOLVE_PROBLEM_EVALUATE_LIST_H_

#include "planner/solve/problem/evaluate_private.h"

typedef struct list_task {
    double length;
    double rank;        // longest way to the end, its own length included
    uint32_t resource;  // device, device_count + device for its link, or BERTH_PLACE_NONE
    uint32_t node;      // whose computation or whose value
    uint32_t reader;    // device that a read is for; BERTH_PLACE_NONE = a write
    bool direct;        // a read that waits for no write
} list_task;

// When everything is done.
typedef struct list_schedule {
    double end;       // INFINITY: later than the limit, and the rest says nothing
    double *start;    // [tasks]
    uint32_t *cause;  // [tasks] whose end it waited for last; NONE = nobody's
    // [tasks] in the order of their ends, each after what it needs; of by_gaps where list_sort_ends was called
    uint32_t *finished;
    uint32_t last;  // task that ends last; NONE = there is none
} list_schedule;

typedef struct list_turns list_turns;
typedef struct list_gaps list_gaps;

struct berth_solve__list {
    const berth_place_problem *problem;
    const uint32_t *assignment;
    berth_arena *arena;
    list_task *tasks;  // nodes, then each node's write and reads
    uint32_t task_count;
    uint32_t *first_copy;  // [node_count + 1] the write of a node, followed by its reads
    uint32_t *readers;     // [device_count] that need a value from elsewhere, ascending
    bool *needs;           // [device_count] all false between uses
    double *rank_there;    // [device_count] largest rank of a value's readers; 0 between uses
    double *shared;        // [berth_place_shared_count] sums
    double *load;          // [2 * device_count] time of the tasks
    double longest_way;    // through all tasks
    double most_load;
    list_turns *turns;
    list_gaps *gaps;
    list_schedule by_turns, by_gaps;
    list_schedule *best;   // of the last value
    double *left;          // [tasks] from the start to the end of all; filled by list_times
    double *left_of_next;  // [2 * device_count] that of the next turn; the same
};

static inline bool list_is_node(const berth_solve__list *s, uint32_t index) {
    return index < s->problem->node_count;
}

static inline double list_end_of(const berth_solve__list *s, const list_schedule *schedule,
                                 uint32_t index) {
    return schedule->start[index] + s->tasks[index].length;
}

// ---- evaluate_list_tasks.c

// The tasks of s->assignment with their ranks, loads and longest way. False: what devices, links or memories have to do
// in sum, or one way, takes longer than `limit`. *out_shared_ms: what is shared takes at least that.
bool berth_solve__list_build(berth_solve__list *s, double limit, double *out_shared_ms);

// ---- evaluate_list_turns.c: whenever a device or a link is free, it takes one that could start.

list_turns *berth_solve__list_turns_create(berth_arena *arena, const berth_place_problem *problem,
                                           size_t tasks);
void berth_solve__list_take_turns(berth_solve__list *s, double limit, list_schedule *out);

// ---- evaluate_list_gaps.c: one after another, each into the first gap that is long enough.

list_gaps *berth_solve__list_gaps_create(berth_arena *arena, const berth_place_problem *problem,
                                         size_t tasks);
void berth_solve__list_fill_gaps(berth_solve__list *s, double limit, list_schedule *out);
// Of the last schedule that was made so.
void berth_solve__list_sort_ends(berth_solve__list *s, list_schedule *schedule);

#endif  // BERTH_PLANNER_SOLVE_PROBLEM_EVALUATE_LIST_H_
