// Kernels for Vulkan through spirv-val (spirv-tools).
#ifndef BERTH_TESTS_LOWER_SPIRV_CHECK_H_
#define BERTH_TESTS_LOWER_SPIRV_CHECK_H_

#include "ir/tensor/function.h"
#include "target/target.h"

// Prints the function as SPIR-V for `target` and has every module of it validated. NULL when all are valid, or
// the printer refuses the function; else what is wrong, in `arena`. Without spirv-val nothing is
// checked, which is a failure where BERTH_REQUIRE_DRIVERS asks for vulkan.
const char *spirv_check(const berth_tfn *fn, const berth_target *target, berth_arena *arena);

#endif  // BERTH_TESTS_LOWER_SPIRV_CHECK_H_
