// Cooperative matrices of a device (VK_KHR_cooperative_matrix), which kernels of 16 x 16 x 16 of f16 with sums in f32 use,
// in subgroups of 32 (compiler/codegen/spirv_matrix.h). Private to devices/vulkan.
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

// Whether a device with the extension has matrices of that shape.
bool berth_vulkan__has_matrix_shape(const vulkan_api *api, VkPhysicalDevice physical);
#pragma GCC visibility pop

#endif  // BERTH_DEVICES_VULKAN_MATRICES_H_
