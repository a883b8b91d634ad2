// Operations of @main moved into functions that it calls (private to compiler/decompose).
#ifndef BERTH_COMPILER_DECOMPOSE_PARTS_H_
#define BERTH_COMPILER_DECOMPOSE_PARTS_H_

#include "ir/graph/graph.h"
#include "target/target.h"

// Of a function: with which backend it is compiled, if not by the code generator of its kind of device
// (docs/decompose.md).
#define BERTH_ATTR_BACKEND "backend"

typedef struct berth_decompose_part {
    const char *name;     // of the function, before it is made unique
    const char *device;   // of the target: its attribute "target"
    const char *backend;  // its attribute "backend"; NULL = none
} berth_decompose_part;

typedef struct berth_decompose_parting {
    const berth_op_id *order;  // main's operations anew; those of a part stand together
    uint32_t count;
    const uint32_t *part;  // per operation of main, by its id; BERTH_NONE = it stays
    const berth_decompose_part *parts;
} berth_decompose_parting;

// Everything that a part needs stands before it in `order`. Constants are made again in each function
// that needs them. Parts whose results nobody reads go away. O(operations and operands).
void berth_decompose__move_out(berth_module *module, berth_func_id main,
                               const berth_decompose_parting *parting, berth_arena *scratch);

// The index of the target's device that an operation of `main` computes on; BERTH_NONE: what only the
// host does, or main itself. Errors as berth_decompose_devices.
BERTH_MUST_USE berth_status berth_decompose__device_of(const berth_module *module,
                                                       const berth_op *op,
                                                       const berth_multi_target *target,
                                                       uint32_t *out_device);

// "main_cpu_0_2" of "cpu:0" and 2
const char *berth_decompose__name(const berth_module *module, berth_func_id main, const char *what,
                                  uint32_t number, berth_arena *arena);

// Per operation of a function whose operations have devices: the backend that takes it, NULL =
// its device's own code generator. A library that computes it, alone or in the same call as an
// operation before it; the kind of its device where that has rules of its own (compiler/rules.h). In
// `arena`.
const char **berth_decompose__backends(const berth_module *module, berth_func_id function,
                                       const berth_multi_target *target, berth_arena *arena);

#endif  // BERTH_COMPILER_DECOMPOSE_PARTS_H_
