// Regions and areas of patches (private to compiler/passes/patches*.c).
#ifndef BERTH_COMPILER_PASSES_PATCHES_PRIVATE_H_
#define BERTH_COMPILER_PASSES_PATCHES_PRIVATE_H_

#include "compiler/passes/patches.h"
#include "ir/graph/op_params.h"

enum { berth_patch_axes = 2, berth_patch_first_axis = 2 };  // rows and columns: dimensions 2 and 3

// Rows or columns [first, end).
typedef struct berth_patch_range {
    int64_t first, end;
} berth_patch_range;

typedef struct berth_patch_area {
    berth_patch_range axes[berth_patch_axes];
} berth_patch_area;

// How many patches there are along each axis.
typedef struct berth_patch_grid {
    uint32_t counts[berth_patch_axes];
} berth_patch_grid;

typedef struct berth_patcher {
    const berth_module *module;
    const berth_graph *graph;
    berth_func_id main;
    berth_arena *arena;
    uint32_t value_count;          // of the function before it is rewritten
    uint32_t *uses;                // per value
    const berth_op_id *only_user;  // per value: the last one of them
    const double *flops;           // per operation
    // Of the region that was looked at last:
    bool cuts_axis[berth_patch_axes];  // along the others everything is whole
    bool *inside;                      // per operation
    berth_op_id *ops;
    uint32_t op_count;
    berth_patch_area *areas;  // per value: of the patch that was looked at last; ends of 0 = none
} berth_patcher;

berth_patcher berth_patches__begin(const berth_module *module, berth_func_id main,
                                   berth_arena *arena);

// Finds the region that ends with `cut` and begins after `after` (BERTH_NONE = as early as it can). False: there is none
// that the grid could divide, it does not use `after`, or nothing in it has a halo or a stride.
bool berth_patches__find_region(berth_patcher *p, berth_value_id after, berth_value_id cut,
                                berth_patch_grid grid);
// The area that each value of the region needs for an area of the cut. False: a window that lies in the
// padding alone.
bool berth_patches__find_areas(berth_patcher *p, berth_value_id cut, berth_patch_area area);
// The area of operand `operand` for an area of the result, and of a window how much padding is before it
// (pads[axis]) and behind it (pads[axes + axis]).
bool berth_patches__area_of(const berth_patcher *p, const berth_op *op, uint32_t operand,
                            berth_patch_area area, berth_patch_area *out_area,
                            int64_t out_pads[2 * berth_patch_axes]);
bool berth_patches__is_constant(const berth_patcher *p, berth_value_id value);
bool berth_patches__has_window(berth_op_kind kind);
bool berth_patches__is_image(const berth_patcher *p, berth_value_id value);
bool berth_patches__made_inside(const berth_patcher *p, berth_value_id value);
bool berth_patches__same_area(berth_patch_area a, berth_patch_area b);

// All of a value. Of one that is no image, one row and one column.
berth_patch_area berth_patches__whole(const berth_patcher *p, berth_value_id value);
// Of the cut: patch `index` of a grid, row after row. All but the last of an axis have the same extent.
berth_patch_area berth_patches__patch(const berth_patcher *p, berth_value_id cut,
                                      berth_patch_grid grid, uint32_t index);
// Fewer patches where that many of equal extent are not needed for all of an axis.
berth_patch_grid berth_patches__trim(const berth_patcher *p, berth_value_id cut,
                                     berth_patch_grid grid);

static inline const berth_type *berth_patches__type(const berth_patcher *p, berth_value_id value) {
    return berth_type_get(p->module, p->graph->values.data[value].type);
}

static inline int64_t berth_patches__extent(berth_patch_area area, int axis) {
    return area.axes[axis].end - area.axes[axis].first;
}

// patches_estimate.c: the candidate that a region, the last one that was found, and a grid are. `cut` BERTH_NONE = without
// patches. *out_peak (optional): the operation with the peak.
bool berth_patches__estimate(berth_patcher *p, berth_value_id cut, berth_patch_grid grid,
                             berth_patch_memory memory, berth_patch_candidate *out,
                             berth_op_id *out_peak);

// patches_choose.c: the region and the grid that a choice names. Errors as berth_pass_patches.
BERTH_MUST_USE berth_status berth_patches__find_choice(berth_patcher *p,
                                                       const berth_patch_choice *choice,
                                                       berth_value_id *out_after,
                                                       berth_value_id *out_cut,
                                                       berth_patch_grid *out_grid);

#endif  // BERTH_COMPILER_PASSES_PATCHES_PRIVATE_H_
