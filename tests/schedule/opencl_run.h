// Runs a scheduled function on the first OpenCL device.
#ifndef BERTH_TESTS_SCHEDULE_OPENCL_RUN_H_
#define BERTH_TESTS_SCHEDULE_OPENCL_RUN_H_

#include "tests/schedule/support.h"

// False where there is no OpenCL device (a failure of the test where BERTH_REQUIRE_DRIVERS asks for
// opencl).
bool opencl_is_here(void);
// Prints, builds and runs all kernels of `fn`; the results replace the outputs in `buffers`.
berth_status opencl_run(bench_case *c);

#endif  // BERTH_TESTS_SCHEDULE_OPENCL_RUN_H_
