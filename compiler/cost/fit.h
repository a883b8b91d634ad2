// Times of similar work as a function of what there is to do: a line through measured points, which
// predicts the points that were not measured.
//
//   ns = ns + flops * ns_per_flop + bytes * ns_per_byte        (no coefficient below 0)
//
// The coefficients are a launch's fixed cost and the reciprocals of the rates that this work
// reaches on this device: an efficiency of compute and one of bandwidth.
#ifndef BERTH_COMPILER_COST_FIT_H_
#define BERTH_COMPILER_COST_FIT_H_

#include <stdint.h>

typedef struct berth_cost_point {
    double flops, bytes;
    double ns;  // > 0
} berth_cost_point;

typedef struct berth_cost_line {
    double ns;
    double ns_per_flop;
    double ns_per_byte;
    uint32_t points;
} berth_cost_line;

// The line with the least sum of |relative error|, about: least squares with no coefficient below 0
// (Lawson and Hanson, "Solving Least Squares Problems", 1974, chapter 23; with three unknowns every
// set of them that may be positive is tried), weighted anew by the errors that are left (Holland and
// Welsch, "Robust regression using iteratively reweighted least-squares", 1977), so that single
// disturbed measurements do not turn it. O(points). All coefficients 0 for no points.
berth_cost_line berth_cost_fit(const berth_cost_point *points, uint32_t count);

double berth_cost_line_ns(const berth_cost_line *line, double flops, double bytes);

#endif  // BERTH_COMPILER_COST_FIT_H_
