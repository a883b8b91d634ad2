// Runs a scheduled function on the first device of a kind, OpenCL's first of all.
#ifndef BERTH_TESTS_SCHEDULE_OPENCL_RUN_H_
#define BERTH_TESTS_SCHEDULE_OPENCL_RUN_H_

#include "compiler/codegen/codegen.h"
#include "tests/schedule/support.h"

// False where there is no device of the kind (a failure of the test where BERTH_REQUIRE_DRIVERS asks
// for it).
bool device_is_here(const char *kind);
bool opencl_is_here(void);
// Prints, builds and runs all kernels of `fn`; the results replace the outputs in `buffers`.
berth_status device_run(bench_case *c, const berth_codegen *codegen);
berth_status opencl_run(bench_case *c);

#endif  // BERTH_TESTS_SCHEDULE_OPENCL_RUN_H_
