// Regions and rows of patches (private to compiler/passes/patches*.c).
#ifndef BERTH_COMPILER_PASSES_PATCHES_PRIVATE_H_
#define BERTH_COMPILER_PASSES_PATCHES_PRIVATE_H_

#include "compiler/passes/patches.h"
#include "ir/graph/op_params.h"

// Rows [first, end).
typedef struct berth_patch_rows {
    int64_t first, end;
} berth_patch_rows;

typedef struct berth_patcher {
    const berth_module *module;
    const berth_graph *graph;
    berth_func_id main;
    berth_arena *arena;
    uint32_t value_count;          // of the function before it is rewritten
    uint32_t *uses;                // per value
    const berth_op_id *only_user;  // per value: the last one of them
    // Of the region that was looked at last:
    bool *inside;  // per operation
    berth_op_id *ops;
    uint32_t op_count;
    berth_patch_rows *rows;  // per value: of the patch that was looked at last; {0, 0} = none
} berth_patcher;

berth_patcher berth_patches__begin(const berth_module *module, berth_func_id main,
                                   berth_arena *arena);

// Finds the region that ends with `cut`. False: there is none, or nothing in it has a halo or a stride.
bool berth_patches__find_region(berth_patcher *p, berth_value_id cut);
// The rows that each value of the region needs for rows [first, end) of the cut. False: a window that
// lies in the padding alone.
bool berth_patches__find_rows(berth_patcher *p, berth_value_id cut, berth_patch_rows rows);
// The rows of operand `operand` for rows of the result, and of a window how many rows of padding are before
// and behind them.
bool berth_patches__rows_of(const berth_patcher *p, const berth_op *op, uint32_t operand,
                            berth_patch_rows rows, berth_patch_rows *out_rows, int64_t out_pads[2]);
bool berth_patches__is_constant(const berth_patcher *p, berth_value_id value);
bool berth_patches__has_window(berth_op_kind kind);
// Of a window whose types are known.
bool berth_patches__window(const berth_patcher *p, const berth_op *op, berth_window *out_window);

// Rows of patch `index` of `count`: all but the last have the same number.
berth_patch_rows berth_patches__patch(int64_t height, uint32_t count, uint32_t index);
// Fewer patches than `count` where that many of equal height are not needed for all rows.
uint32_t berth_patches__count(int64_t height, uint32_t count);

static inline const berth_type *berth_patches__type(const berth_patcher *p, berth_value_id value) {
    return berth_type_get(p->module, p->graph->values.data[value].type);
}

// patches_estimate.c: the candidate that a region, the last one that was found, and a count are.
bool berth_patches__estimate(berth_patcher *p, berth_value_id cut, uint32_t count,
                             berth_patch_memory memory, berth_patch_candidate *out);

#endif  // BERTH_COMPILER_PASSES_PATCHES_PRIVATE_H_
