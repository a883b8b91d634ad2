// Symbols of dimensions in a run: what they are, and whether dimensions that follow from them agree.
#ifndef BERTH_TOOLKIT_VM_SYMBOLS_H_
#define BERTH_TOOLKIT_VM_SYMBOLS_H_

#include "base/arena.h"
#include "base/status.h"
#include "base/tensor.h"
#include "executor/vm_value.h"
#include "ir/module.h"

// Symbols of the dimensions of @main's inputs, with what they are in a run, and those that dimensions are a number times
// of ("a" of "32*a").
typedef struct berth_vm_symbol {
    const char *name;  // borrowed from the module, or in the arena
    int64_t extent;
} berth_vm_symbol;

typedef struct berth_vm_symbols {
    berth_vm_symbol *data;
    uint32_t count, capacity;
} berth_vm_symbols;

// Of a run with these inputs, one per parameter of @main. Inside berth_arena_try of `arena`.
berth_vm_symbols berth_vm_symbols_of(const berth_module *module, berth_vm_value *const *inputs,
                                     berth_arena *arena);

// The extent of a symbol; BERTH_DIM_UNKNOWN where it is none of them. For berth_dim_evaluate.
int64_t berth_vm_symbols_find(void *symbols, const char *name);

// Whether dimensions of @main's inputs follow from others (`total` is `past+1`).
bool berth_vm_has_relations(const berth_module *module);

// INCOMPATIBLE where a dimension that follows from others is not what they make it; the message names the input, the
// dimension and both extents. `inputs` as above. Nothing is checked where a symbol's extent cannot be told.
BERTH_MUST_USE berth_status berth_vm_check_relations(const berth_module *module,
                                                     berth_vm_value *const *inputs);

#endif  // BERTH_TOOLKIT_VM_SYMBOLS_H_
