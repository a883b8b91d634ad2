// A module that tests build with builder calls and only plan.
#ifndef BERTH_TESTS_COMPILER_PLANNED_H_
#define BERTH_TESTS_COMPILER_PLANNED_H_

#include "ir/graph/graph.h"
#include "tests/check.h"

typedef struct fixture {
    berth_arena *arena;
    berth_module *module;
    berth_func_id main;
} fixture;

static inline fixture begin(void) {
    fixture f = {0};
    assert_ok(berth_arena_create(berth_allocator_system(), &f.arena));
    f.module = berth_module_create(f.arena, "test");
    f.main = berth_graph_create(f.module, "main", 0);
    return f;
}

#endif  // BERTH_TESTS_COMPILER_PLANNED_H_
