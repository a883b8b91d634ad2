// Times of runs, for `berth run` and `berth bench`.
#ifndef BERTH_TOOLS_LATENCY_H_
#define BERTH_TOOLS_LATENCY_H_

#include <stdint.h>

void berth_latency_sort(double *times, uint64_t count);
// The time at `q` (0 to 1) of sorted times, the nearest one; count > 0.
double berth_latency_quantile(const double *sorted, uint64_t count, double q);

#endif  // BERTH_TOOLS_LATENCY_H_
