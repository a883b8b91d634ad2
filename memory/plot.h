// A picture of a solution: time to the right, memory upwards, one rectangle for every buffer, one
// panel for every pool.
#ifndef BERTH_MEMORY_PLOT_H_
#define BERTH_MEMORY_PLOT_H_

#include <stdint.h>

#include "base/str.h"
#include "memory/problem.h"

typedef struct berth_memory_plot_options {
    uint32_t width_px;               // of a panel; 0 = 1200
    uint32_t height_px;              // of a panel; 0 = 600
    const uint64_t *capacity_bytes;  // [pool_count] drawn as a line where it is not 0; NULL = none
    const char *title;               // NULL = none
} berth_memory_plot_options;

// Adds an SVG document. Times are drawn in order, equally spaced (lifetimes of real models differ
// by orders of magnitude); every rectangle has the buffer's id, lifetime, size and offset as its
// tooltip. The black line is the sum of sizes live at each time: no solution is lower than its
// peak. Inside berth_arena_try of the buffer's arena.
void berth_memory_plot(const berth_memory_problem *problem, const uint64_t *offsets,
                       const berth_memory_plot_options *options, berth_strbuf *out);

#endif  // BERTH_MEMORY_PLOT_H_
