// A program run through a loader with faults (tests/faults/flaky_vulkan.c, flaky_libopencl.c), or on the emulated libcuda.
#ifndef BERTH_TESTS_TOOLKIT_LOADER_FAULTS_H_
#define BERTH_TESTS_TOOLKIT_LOADER_FAULTS_H_

#include "executor/session.h"

typedef struct faulty_work {
    berth_arena *arena;
    const berth_program *program;
} faulty_work;

// Two softmaxes in a row, the nodes "rows" and "again", for that target, as text.
faulty_work faulty_build(const char *target_text);

// What two runs say, with a fault in `variable` from the start on; "" where all went well, until the next call. The
// error's code in *out_code. `options`: NULL = defaults.
const char *faulty_outcome(const faulty_work *work, const char *variable, const char *fault,
                           const berth_session_options *options, berth_code *out_code);

#endif
