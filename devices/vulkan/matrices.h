// Cooperative matrices of a device (VK_KHR_cooperative_matrix): 16 x 16 results of f16 with sums in f32, and of 8-bit integers,
// which kernels use in subgroups of 32 (compiler/codegen/spirv_matrix.h). Private to devices/vulkan.
#ifndef BERTH_DEVICES_VULKAN_MATRICES_H_
#define BERTH_DEVICES_VULKAN_MATRICES_H_

#include "devices/vulkan/vulkan.h"

// The features that such kernels need beside vulkanMemoryModel, as a chain of structures that begins with `matrices`.
typedef struct vulkan_matrix_features {
    VkPhysicalDeviceSubgroupSizeControlFeatures subgroups;
    VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrices;
} vulkan_matrix_features;

#pragma GCC visibility push(hidden)
// All of them wanted, or none yet.
void berth_vulkan__want_matrices(vulkan_matrix_features *out_features, VkBool32 wanted);

// The products of matrices that a device with the extension has, of those that kernels may use: a bit each.
uint32_t berth_vulkan__matrix_shapes(const vulkan_api *api, VkPhysicalDevice physical);

// A product as targets name it among their features, without "cooperative_"; NULL: there are no more.
const char *berth_vulkan__matrix_name(uint32_t shape);
bool berth_vulkan__has_matrices(const vulkan_facts *facts, const char *name);
#pragma GCC visibility pop

#endif  // BERTH_DEVICES_VULKAN_MATRICES_H_
