// Cooperative matrices for devices without them: SPIR-V modules whose matrix instructions are written out in plain
// ones. What a module says stays as it is otherwise: pointers, strides, layouts, shapes, barriers.
//
// Every work-item holds the sums of its subgroup whole, as arrays, and computes all of them. Subgroups are 32 work-items
// by their number in the group, but count from the last one: which subgroup has which work-items is a device's choice, and
// a kernel may not depend on it.
//   See SPV_KHR_cooperative_matrix for what the instructions mean.
#ifndef BERTH_TESTS_TOOLKIT_VULKAN_MATRICES_H_
#define BERTH_TESTS_TOOLKIT_VULKAN_MATRICES_H_

#include "artifact/program.h"
#include "base/arena.h"

// A copy of the program, in the arena, with all its Vulkan images written out so. Aborts, and says why, where a module has
// another form than Berth's.
const berth_program *vulkan_matrices_write_out(berth_arena *arena, const berth_program *program);

// A module, as words, without the word for its length. *out_count: their number.
const uint32_t *vulkan_matrices_module(berth_arena *arena, const uint32_t *words, uint32_t count,
                                       uint32_t *out_count);

#endif  // BERTH_TESTS_TOOLKIT_VULKAN_MATRICES_H_
