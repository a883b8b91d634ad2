// How a call is divided among threads, and who prints it.
#include "compiler/libraries/code.h"

// The whole batch or all images are divided where there are enough; else the longer side of the
// matrices, or channels.
static void choose_axis(const berth_library_use *use, int64_t parts, berth_library_grid *grid) {
    enum { least_rows = 8, line = 16 };  // of a part; elements of a cache line
    const berth_library_product *p = &use->product;
    const berth_library_convolution *c = &use->convolution;
    bool conv = use->kind == BERTH_OP_CONV;
    *grid = (berth_library_grid){
        .axis = BERTH_LIBRARY_BATCH, .extent = conv ? c->images : p->batch, .unit = 1};
    if (grid->extent >= parts || (conv && grid->extent > 1)) return;
    if (conv)
        *grid = (berth_library_grid){BERTH_LIBRARY_COLUMNS, c->outputs, c->block, 0};
    else if (p->rows >= p->columns)
        *grid = (berth_library_grid){BERTH_LIBRARY_ROWS, p->rows, least_rows, 0};
    else
        *grid = (berth_library_grid){BERTH_LIBRARY_COLUMNS, p->columns, line, 0};
}

berth_library_grid berth_library__grid(const berth_library_use *use, int64_t parts) {
    berth_library_grid grid;
    choose_axis(use, parts, &grid);
    int64_t units = (grid.extent + grid.unit - 1) / grid.unit;
    grid.groups = units < parts ? units : parts;
    if (grid.groups < 1) grid.groups = 1;
    return grid;
}

int64_t berth_library__part_begin(const berth_library_grid *grid, int64_t i) {
    int64_t units = (grid->extent + grid->unit - 1) / grid->unit;
    int64_t begin = units * i / grid->groups * grid->unit;
    return begin < grid->extent ? begin : grid->extent;
}

berth_library_code berth_library_code_of(const berth_library_use *use, const char *const *layouts,
                                         int64_t parts, berth_arena *arena) {
    enum { most_parts = 1024 };
    if (use->library == BERTH_LIBRARY_CUBLAS) return berth_library__cublas(use, arena);
    if (use->library == BERTH_LIBRARY_CUDNN) return berth_library__cudnn(use, arena);
    berth_library_grid grid = berth_library__grid(use, parts < most_parts ? parts : most_parts);
    if (use->library == BERTH_LIBRARY_OPENBLAS) return berth_library__openblas(use, &grid, arena);
    return berth_library__dnnl(use, layouts, &grid, arena);
}
