// Times of runs, for `berth run` and `berth bench`.
#ifndef BERTH_TOOLS_LATENCY_H_
#define BERTH_TOOLS_LATENCY_H_

#include <stdint.h>

void berth_latency_sort(double *times, uint64_t count);
// The time at `q` (0 to 1) of sorted times, the nearest one; count > 0.
double berth_latency_quantile(const double *sorted, uint64_t count, double q);

// Milliseconds in print, by value: three decimals, more where that would be less than three digits ("0.00125").
typedef struct berth_latency_text {
    char text[24];
} berth_latency_text;
berth_latency_text berth_latency_print(double ms);

#endif  // BERTH_TOOLS_LATENCY_H_
