// Seeded random modules for tests: graph functions with every kind of attribute, tuples, if, loop,
// calls and function references, tensor functions and external functions.
#ifndef BERTH_TESTS_IR_RANDOM_MODULE_H_
#define BERTH_TESTS_IR_RANDOM_MODULE_H_

#include "ir/module.h"

// Inside berth_arena_try of the arena. The same seed gives the same module.
berth_module *random_module(berth_arena *arena, uint64_t seed);

#endif  // BERTH_TESTS_IR_RANDOM_MODULE_H_
