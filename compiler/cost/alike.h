// Operations that are alike: of one kind, with the same attributes, types and places of operands and results, none of which
// is a constant. What one of them takes, and whether it can be lowered, is true of all, and large modules have few kinds.
#ifndef BERTH_COMPILER_COST_ALIKE_H_
#define BERTH_COMPILER_COST_ALIKE_H_

#include "compiler/cost/work.h"

typedef struct berth_alike_facts {
    bool lowers;             // berth_lower_check had nothing against one of them
    const berth_work *work;  // NULL = not asked for yet
} berth_alike_facts;

typedef struct berth_alike {
    berth_arena *arena;
    const berth_module *module;  // whose types and names the keys are of
    berth_interner *keys;
    BERTH_VEC(berth_alike_facts) facts;
} berth_alike;

// What is known of all operations like this one, to be read and filled; good until the next call. NULL: there may be none
// like it. Inside berth_arena_try.
berth_alike_facts *berth_alike_find(berth_alike *alike, const berth_module *module,
                                    const berth_graph *graph, berth_op_id op);

#endif  // BERTH_COMPILER_COST_ALIKE_H_
