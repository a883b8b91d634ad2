// What the files that print calls of libraries share (private to compiler/libraries).
#ifndef BERTH_COMPILER_LIBRARIES_CODE_H_
#define BERTH_COMPILER_LIBRARIES_CODE_H_

#include "compiler/libraries/use.h"

// The grid of a product or a convolution: one dimension of the result in `groups` parts, each of whole
// units but for the last.
typedef enum berth_library_axis {
    BERTH_LIBRARY_BATCH,  // or images
    BERTH_LIBRARY_ROWS,
    BERTH_LIBRARY_COLUMNS,  // or channels
} berth_library_axis;

typedef struct berth_library_grid {
    berth_library_axis axis;
    int64_t extent, unit;
    int64_t groups;
} berth_library_grid;

// At most `parts` groups.
berth_library_grid berth_library__grid(const berth_library_use *use, int64_t parts);
// Where part i begins; that of `groups` is the end.
int64_t berth_library__part_begin(const berth_library_grid *grid, int64_t i);

berth_library_code berth_library__openblas(const berth_library_use *use,
                                           const berth_library_grid *grid, berth_arena *arena);
// layouts: of the operands, then of the result
berth_library_code berth_library__dnnl(const berth_library_use *use, const char *const *layouts,
                                       const berth_library_grid *grid, berth_arena *arena);

#endif  // BERTH_COMPILER_LIBRARIES_CODE_H_
