// Which kernels the compiler would make of @main with its operations on given devices: a copy of the graph
// goes through the passes from layouts to fusion, and what they make of each operation is found
// again by its location. A cost model asks, because operations of a model are no kernels: what is
// fused into a convolution costs little beyond it, and a convolution may be three kernels. Nothing is fused
// where the device changes.
#ifndef BERTH_COMPILER_COST_KERNEL_GROUPS_H_
#define BERTH_COMPILER_COST_KERNEL_GROUPS_H_

#include "compiler/compile.h"
#include "compiler/cost/work.h"

typedef struct berth_kernel_group {
    berth_op_id op;  // of the graph: what most of the group's work is
    berth_op_id
        last;  // of the graph: whose result the group makes; it needs all operands of the group
    uint32_t device;  // of the target
    berth_work work;
    double constant_bytes;  // of work.bytes
} berth_kernel_group;

// Arena memory; ordered as they would run.
typedef struct berth_kernel_groups {
    const berth_kernel_group *data;
    uint32_t count;
} berth_kernel_groups;

// Beyond that many operations nobody asks (berth_plan_module searches no larger ones).
#define BERTH_KERNEL_GROUPS_LIMIT BERTH_PLAN_SEARCH_LIMIT

// False where a copy says nothing: control flow, calls, tuples, unknown shapes, too many operations,
// or passes that refuse the graph. `devices`: of the target, per operation of @main; those of constants, copies
// and host operations are not read. `options`: what decides on layouts and fusion, and the target.
// Inside berth_arena_try of `arena`, in which scratch memory goes when it is done.
bool berth_kernel_groups_find(const berth_module *module, berth_func_id main,
                              const uint32_t *devices, const berth_compile_options *options,
                              berth_arena *arena, berth_kernel_groups *out_groups);

#endif  // BERTH_COMPILER_COST_KERNEL_GROUPS_H_
