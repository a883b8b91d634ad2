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

// `timeout_ns` after `start_ns`; INT64_MAX, which never comes, where there is no limit (< 0) or the
// sum is beyond all time.
static inline int64_t berth_clock_deadline_ns(int64_t start_ns, int64_t timeout_ns) {
    return timeout_ns < 0 || timeout_ns > INT64_MAX - start_ns ? INT64_MAX : start_ns + timeout_ns;
}

#endif  // BERTH_BASE_CLOCK_H_
