// Memory plans that many sizes share. A program that is compiled again for smaller sizes, with the same
// steps and lifetimes, keeps the places that its values had: then one plan is valid for all these sizes,
// since bytes that did not overlap do not when they are fewer.
//
//   options.plans = berth_memory_plans_create(arena);   // of berth_compile, any number of times
#ifndef BERTH_COMPILER_PACKAGE_PLANS_H_
#define BERTH_COMPILER_PACKAGE_PLANS_H_

#include "base/arena.h"

struct berth_packager;
typedef struct berth_memory_plans berth_memory_plans;

// Lives as long as the arena. Inside berth_arena_try.
berth_memory_plans *berth_memory_plans_create(berth_arena *arena);

// ---- for memory.c -------------------------------------------------------------------------------

// Gives the storages that have no place yet, and pools, as an earlier program has them. False: there is none
// like it with sizes as large.
bool berth_memory_plans_recall(berth_memory_plans *plans, struct berth_packager *packager);
// Keeps what was planned. Without memory for it the next program is planned again.
void berth_memory_plans_keep(berth_memory_plans *plans, const struct berth_packager *packager);

#endif  // BERTH_COMPILER_PACKAGE_PLANS_H_
