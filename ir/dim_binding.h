// What the symbols of a callee stand for in one call: each gets its extent where it first stands alone as a dimension of an
// argument; expressions are computed from these.
//
//   berth_dim_bindings at_call = {.module = module, .arena = arena};
//   if (!berth_dim_bind(&at_call, wanted, given)) ...           // it stands for another extent already
//   berth_dim_evaluate(module, dim, berth_dim_bound, &at_call, arena, &extent);
#ifndef BERTH_IR_DIM_BINDING_H_
#define BERTH_IR_DIM_BINDING_H_

#include "base/arena.h"
#include "ir/module.h"

typedef struct berth_dim_binding {
    int64_t symbol;
    int64_t extent;  // or a dimension of the caller's
} berth_dim_binding;

typedef struct berth_dim_bindings {
    const berth_module *module;
    berth_arena *arena;
    BERTH_VEC(berth_dim_binding) list;  // in the order in which symbols appeared
    bool missed;                        // berth_dim_bound was asked for a symbol that has none
} berth_dim_bindings;

// Of a dimension that is no symbol, or whose extent is not known, nothing is learned. False: the symbol stands for something
// else. Inside berth_arena_try of the arena.
bool berth_dim_bind(berth_dim_bindings *bindings, int64_t dim, int64_t extent);

// For berth_dim_evaluate and berth_dim_substitute; `bindings` is of this type. BERTH_DIM_UNKNOWN: nothing is bound to it.
int64_t berth_dim_bound(void *bindings, const char *symbol);

#endif  // BERTH_IR_DIM_BINDING_H_
