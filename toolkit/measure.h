// How fast this machine's devices, memories and links are, for `berth target detect`.
//
// Every figure is of what programs of Berth do: kernels compiled by the system's C compiler for the
// device's target and run by the driver over its own threads; copies through the driver. About a
// second for each device.
#ifndef BERTH_TOOLKIT_MEASURE_H_
#define BERTH_TOOLKIT_MEASURE_H_

#include "base/log.h"
#include "target/describe.h"

typedef struct berth_measure_options {
    const char *cache_folder;  // of compiled kernels; NULL = none
    // (optional) What is being measured.
    void (*progress)(void *user, const char *what);
    void *user;
    berth_log log;  // what could not be measured, and why
} berth_measure_options;

// Fills description->cpus (by the groups of its topology) and ->devices (by those of its facts), which
// live in the arena. What cannot be measured is said and stays 0.
//   errors: OUT_OF_MEMORY
BERTH_MUST_USE berth_status berth_measure_machine(berth_arena *arena,
                                                  const berth_measure_options *options,
                                                  berth_machine_description *description);

#endif  // BERTH_TOOLKIT_MEASURE_H_
