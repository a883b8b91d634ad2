// Random modules to plan, and an independent check of what planning made of them.
#ifndef BERTH_TESTS_PLANNER_RANDOM_PLANNED_H_
#define BERTH_TESTS_PLANNER_RANDOM_PLANNED_H_

#include "planner/planner.h"

// A demand that planning must meet: the value called `name` of the function called `function` is on
// `device` (as written, perhaps partial).
typedef struct random_demand {
    const char *function;
    const char *name;
    const char *device;
} random_demand;

typedef struct random_planned {
    const char *target;  // JSON
    const char *text;    // functions, higher-order arguments, tuples, if, loop, annotations, copies
    BERTH_VEC(random_demand) demands;
} random_planned;

// The same for the same seed. @main takes f32[4] three times, f32[], bool[] and i64[], and gives
// two f32[4].
void random_planned_make(berth_arena *arena, uint64_t seed, random_planned *out);

// A module of calls of tensor functions; @main gives two values.
const char *random_lowered_make(berth_arena *arena, uint64_t seed);

// NULL when every use of every value in the planned module is where the module says it is, else
// what is wrong. Knows nothing of the planner but its rules.
const char *planned_problem(const berth_module *module, const berth_multi_target *target,
                            bool host_bound);
// NULL when the demands are met.
const char *demands_problem(const berth_module *module, const random_planned *random);

#endif  // BERTH_TESTS_PLANNER_RANDOM_PLANNED_H_
