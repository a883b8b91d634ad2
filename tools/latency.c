#include "tools/latency.h"

#include <math.h>
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
