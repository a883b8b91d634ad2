// Atomic integers by the names of C11's <stdatomic.h>, also where a header of ours is read as C++.
#ifndef BERTH_BASE_ATOMICS_H_
#define BERTH_BASE_ATOMICS_H_

#ifdef __cplusplus
#include <atomic>
using std::atomic_int_fast64_t;
using std::atomic_uint;
using std::atomic_ullong;
#else
#include <stdatomic.h>
#endif

#endif  // BERTH_BASE_ATOMICS_H_
