#include "devices/vulkan/matrices.h"

#include <string.h>

void berth_vulkan__want_matrices(vulkan_matrix_features *out_features, VkBool32 wanted) {
    *out_features = (vulkan_matrix_features){
        .subgroups = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES,
                      .subgroupSizeControl = wanted,
                      .computeFullSubgroups = wanted},
        .matrices = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR,
                     .pNext = &out_features->subgroups,
                     .cooperativeMatrix = wanted}};
}

bool berth_vulkan__has_matrix_shape(const vulkan_api *api, VkPhysicalDevice physical) {
    // From MSize on: 16 x 16 x 16, types of A, B, C and the result, not saturating, by a subgroup.
    static const uint32_t wanted[] = {16,
                                      16,
                                      16,
                                      VK_COMPONENT_TYPE_FLOAT16_KHR,
                                      VK_COMPONENT_TYPE_FLOAT16_KHR,
                                      VK_COMPONENT_TYPE_FLOAT32_KHR,
                                      VK_COMPONENT_TYPE_FLOAT32_KHR,
                                      VK_FALSE,
                                      VK_SCOPE_SUBGROUP_KHR};
    enum { most = 64 };
    VkCooperativeMatrixPropertiesKHR list[most];
    uint32_t count = most;
    for (uint32_t i = 0; i < most; ++i) {
        list[i].sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR;
        list[i].pNext = NULL;
    }
    PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR get =
        (PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR)api->vkGetInstanceProcAddr(
            api->instance, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR");
    if (!get || get(physical, &count, list) < 0) return false;
    while (count-- > 0)
        if (memcmp(&list[count].MSize, wanted, sizeof(wanted)) == 0) return true;
    return false;
}
