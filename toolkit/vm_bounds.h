// Bounds of shapes that a session chooses by what it saw (toolkit/vm_general.h says how): extents of axes as numbers times
// symbols. Pure arithmetic; a shape is a row of all extents of all inputs, one after the other.
#ifndef BERTH_TOOLKIT_VM_BOUNDS_H_
#define BERTH_TOOLKIT_VM_BOUNDS_H_

#include "base/arena.h"

// summand + factor * symbol, or a fixed extent.
typedef struct berth_vm_bounds_axis {
    uint32_t symbol;  // UINT32_MAX = fixed
    int64_t factor, summand;
} berth_vm_bounds_axis;

typedef struct berth_vm_bounds {
    const berth_vm_bounds_axis *axes;
    uint32_t axis_count;
    struct berth_vm_bounds_symbol {
        int64_t least, most;
    } * symbols;
    uint32_t symbol_count;
    uint64_t shape_count;  // of all combinations; 0 = there are none to choose, or too many
    uint32_t level;        // of BERTH_VM_BOUNDS_LEVELS, the widest first
} berth_vm_bounds;

// How far bounds go beyond what was seen, and for how many shapes: the first level that has few enough of them is taken.
// Of one symbol alone, twice the next power of two and half of that below, and then only the latter, up to 32; from one power to the other,
// and what was seen, up to few_shapes; and both again, up to most_shapes.
#define BERTH_VM_BOUNDS_LEVELS 6u

typedef struct berth_vm_bounds_seen {
    const int64_t *const *rows;  // that differ, two at least
    uint32_t count, axis_count;
    const int64_t *least, *most;  // per axis: what the model allows; `most` 0 = no end
    uint64_t few_shapes, most_shapes;
    uint32_t first_level;  // wider ones are not asked for
} berth_vm_bounds_seen;

// In `arena`, inside berth_arena_try of it. O(rows * axes * symbols).
berth_vm_bounds berth_vm_bounds_choose(const berth_vm_bounds_seen *seen, berth_arena *arena);
// Whether they go beyond what was seen.
bool berth_vm_bounds_level_is_wide(uint32_t level);
bool berth_vm_bounds_hold(const berth_vm_bounds *bounds, const int64_t *row);
// Shape `number` of shape_count, the largest first.
void berth_vm_bounds_shape(const berth_vm_bounds *bounds, uint64_t number, int64_t *row);

#endif  // BERTH_TOOLKIT_VM_BOUNDS_H_
