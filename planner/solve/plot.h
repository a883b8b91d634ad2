// A picture of a placement: a row for each device, time (or bytes) to the right. Who draws it:
// `berth place --format svg`.
#ifndef BERTH_PLANNER_SOLVE_PLOT_H_
#define BERTH_PLANNER_SOLVE_PLOT_H_

#include "base/str.h"
#include "planner/solve/solve.h"

typedef struct berth_place_plot_options {
    uint32_t width_px;  // of the drawing area; 0 = 900
    const char *title;  // NULL = none
    const char *unit;   // of times; NULL = "ms"
} berth_place_plot_options;

// Adds an SVG document. Throughput: the load of each device, what comes in, then its nodes, then
// what goes out. Latency: when each node (each subgraph with its transfers) runs; nodes that run at
// once on one device are below each other. Memory: bytes. Colours follow the order of the graph;
// the dashed lines are the value and the proven bound. Inside berth_arena_try of the buffer's
// arena.
void berth_place_plot(const berth_place_problem *problem, berth_place_objective objective,
                      const berth_place_answer *answer, const berth_place_plot_options *options,
                      berth_strbuf *out);

#endif  // BERTH_PLANNER_SOLVE_PLOT_H_
