// Monotonic time in nanoseconds.
#ifndef BERTH_BASE_CLOCK_H_
#define BERTH_BASE_CLOCK_H_

#include <stdint.h>
#include <time.h>

static inline int64_t berth_clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

#endif  // BERTH_BASE_CLOCK_H_
