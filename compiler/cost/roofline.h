// How long work takes at least by a target's figures alone: operations over the peak or bytes over the
// bandwidth, whichever is longer (Williams, Waterman and Patterson, "Roofline", 2009), plus a launch.
// Bytes that stay in a processor's caches between their writer and their reader come from there (the
// cache-aware form: Ilic, Pratas and Sousa, "Cache-aware Roofline model", 2014), and a processor runs
// on one core what would not gain from several.
#ifndef BERTH_COMPILER_COST_ROOFLINE_H_
#define BERTH_COMPILER_COST_ROOFLINE_H_

#include "compiler/cost/work.h"
#include "target/target.h"

// Bytes of constants: what work reads of them, and what a whole run does. They are still in a cache
// in the next run only where all of them fit.
typedef struct berth_cost_constants {
    double bytes;      // of work->bytes
    double run_bytes;  // 0 = unknown: `bytes`
} berth_cost_constants;

// Nanoseconds > 0 of work with flops or bytes, by what the device's kind usually reaches of its peaks.
double berth_cost_roofline_ns(const berth_multi_target *target, uint32_t device,
                              const berth_work *work, berth_cost_constants constants);

// For how long the work would take all the bandwidth of the device's own memory, in nanoseconds:
// bytes that its caches do not keep over that bandwidth. 0 = it takes nothing of it.
double berth_cost_memory_ns(const berth_multi_target *target, uint32_t device,
                            const berth_work *work, berth_cost_constants constants);

#endif  // BERTH_COMPILER_COST_ROOFLINE_H_
