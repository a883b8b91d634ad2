#include "tools/latency.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

void berth_latency_sort(double *times, uint64_t count) {
    if (count) qsort(times, count, sizeof(double), compare_doubles);
}

double berth_latency_quantile(const double *sorted, uint64_t count, double q) {
    return sorted[(uint64_t)llround(q * (double)(count - 1))];
}

berth_latency_text berth_latency_print(double ms) {
    berth_latency_text out;
    int decimals = 3;
    for (double edge = 0.1; ms > 0 && ms < edge && decimals < 6; edge /= 10) ++decimals;
    snprintf(out.text, sizeof(out.text), "%.*f", decimals, ms);
    return out;
}
