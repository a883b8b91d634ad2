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
    // [time_name_count] of the times 0, 1, ...: "Conv_3"; NULL = none
    const char *const *time_names;
    uint32_t time_name_count;
} berth_memory_plot_options;

// Adds an SVG document. Times are drawn in order, equally spaced (lifetimes of real models differ
// by orders of magnitude); every rectangle has the buffer's id inside where there is room, and with
// its lifetime, size and offset as its tooltip. The black line is the sum of sizes live at each time:
// no solution is lower than its peak, which a red line marks. White behind, so that it can be read
// on dark pages, and scaled to the width it is given. Inside berth_arena_try of the buffer's arena.
void berth_memory_plot(const berth_memory_problem *problem, const uint64_t *offsets,
                       const berth_memory_plot_options *options, berth_strbuf *out);

#endif  // BERTH_MEMORY_PLOT_H_
