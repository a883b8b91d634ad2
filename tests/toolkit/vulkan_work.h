// Programs for Vulkan that tests build from text, look into and run beside the reference interpreter.
#ifndef BERTH_TESTS_TOOLKIT_VULKAN_WORK_H_
#define BERTH_TESTS_TOOLKIT_VULKAN_WORK_H_

#include "artifact/program.h"
#include "base/tensor.h"
#include "ir/module.h"

typedef struct vulkan_work {
    berth_arena *arena;
    berth_module *module;
    const berth_program *program;
    berth_func_id main;
} vulkan_work;

// Whether there is a device; fails where BERTH_REQUIRE_DRIVERS wants one.
bool vulkan_is_here(void);

// A module compiled for a target in its short form. Whoever builds destroys the arena.
vulkan_work vulkan_build(const char *text, const char *short_form);

// The largest difference from the reference interpreter, relative to 1 + |expected|, over all
// results; every input is filled by `fill`. Destroys the arena.
double vulkan_compare(vulkan_work w, const char *text,
                      void (*fill)(berth_tensor *tensor, uint32_t index));

// How many instructions of the kernels of a program `counts` (artifact/kernel_abi.h: modules in a row, each
// behind the number of its words). `half` is the id of the type of f16 in the module, 0 without.
int vulkan_count(const berth_program *program, bool (*counts)(const uint32_t *at, uint32_t half));

#endif  // BERTH_TESTS_TOOLKIT_VULKAN_WORK_H_
