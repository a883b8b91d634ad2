// A Vulkan loader whose devices have cooperative matrices: the one of the system, where modules are written out in plain
// instructions before the device gets them (tests/toolkit/vulkan_matrices.h). It is strict: a device that was not asked for all that
// such modules need, or a pipeline without whole subgroups of 32, is an error.
//
// Found in place of the system's by the folder that it lies in (LD_LIBRARY_PATH).
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#include "devices/vulkan/matrix_types.h"
#include "tests/toolkit/vulkan_matrices.h"

enum { most_names = 32, most_modules = 256, capability = 17, of_matrices = 6022 };

static PFN_vkEnumerateDeviceExtensionProperties real_vkEnumerateDeviceExtensionProperties;
static PFN_vkGetPhysicalDeviceFeatures2 real_vkGetPhysicalDeviceFeatures2;
static PFN_vkGetPhysicalDeviceProperties2 real_vkGetPhysicalDeviceProperties2;
static PFN_vkCreateDevice real_vkCreateDevice;
static PFN_vkCreateShaderModule real_vkCreateShaderModule;
static PFN_vkCreateComputePipelines real_vkCreateComputePipelines;
static PFN_vkGetDeviceProcAddr real_vkGetDeviceProcAddr;

static VkShaderModule modules[most_modules];  // with matrices
static unsigned module_count;
static bool is_enabled;

static VkResult refuse(const char *why) {
    fprintf(stderr, "matrix_vulkan: %s\n", why);
    return VK_ERROR_INITIALIZATION_FAILED;
}

static VkBaseOutStructure *find(void *chain, VkStructureType type) {
    VkBaseOutStructure *at = chain;
    while (at && at->sType != type) at = at->pNext;
    return at;
}

// ---- what devices say ---------------------------------------------------------------------------

static VKAPI_ATTR VkResult VKAPI_CALL fake_vkEnumerateDeviceExtensionProperties(
    VkPhysicalDevice device, const char *layer, uint32_t *count, VkExtensionProperties *list) {
    static const char *const more[] = {VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME,
                                       VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME};
    uint32_t room = list ? *count : 0;
    VkResult result = real_vkEnumerateDeviceExtensionProperties(device, layer, count, list);
    for (int i = 0; i < 2 && result == VK_SUCCESS; ++i) {
        if (list && *count >= room) return VK_INCOMPLETE;
        if (list) list[*count] = (VkExtensionProperties){.specVersion = 1};
        if (list) strcpy(list[*count].extensionName, more[i]);
        ++*count;
    }
    return result;
}

static VKAPI_ATTR void VKAPI_CALL
fake_vkGetPhysicalDeviceFeatures2(VkPhysicalDevice device, VkPhysicalDeviceFeatures2 *features) {
    real_vkGetPhysicalDeviceFeatures2(device, features);
    void *at = find(features, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR);
    if (at) ((VkPhysicalDeviceCooperativeMatrixFeaturesKHR *)at)->cooperativeMatrix = VK_TRUE;
}

static VKAPI_ATTR void VKAPI_CALL fake_vkGetPhysicalDeviceProperties2(
    VkPhysicalDevice device, VkPhysicalDeviceProperties2 *properties) {
    real_vkGetPhysicalDeviceProperties2(device, properties);
    VkPhysicalDeviceSubgroupSizeControlProperties *sizes = (void *)find(
        properties, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES);
    if (!sizes) return;
    sizes->maxSubgroupSize = 64;
    sizes->requiredSubgroupSizeStages = VK_SHADER_STAGE_COMPUTE_BIT;
}

static VKAPI_ATTR VkResult VKAPI_CALL fake_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR(
    VkPhysicalDevice device, uint32_t *count, VkCooperativeMatrixPropertiesKHR *list) {
    // Two that kernels do not use, and what NVIDIA's devices have: bytes of one signedness alone.
    static const struct {
        uint32_t terms;
        VkComponentTypeKHR operand, sum;
    } has[] = {
        {8, VK_COMPONENT_TYPE_FLOAT16_KHR, VK_COMPONENT_TYPE_FLOAT32_KHR},
        {16, VK_COMPONENT_TYPE_FLOAT16_KHR, VK_COMPONENT_TYPE_FLOAT32_KHR},
        {32, VK_COMPONENT_TYPE_SINT8_KHR, VK_COMPONENT_TYPE_SINT32_KHR},
        {64, VK_COMPONENT_TYPE_SINT8_KHR, VK_COMPONENT_TYPE_SINT32_KHR},
        {32, VK_COMPONENT_TYPE_UINT8_KHR, VK_COMPONENT_TYPE_UINT32_KHR},
    };
    enum { shapes = sizeof(has) / sizeof(has[0]) };
    (void)device;
    if (list && *count < shapes) return VK_INCOMPLETE;
    *count = shapes;
    for (int i = 0; list && i < shapes; ++i) {
        list[i].MSize = list[i].NSize = 16;
        list[i].KSize = has[i].terms;
        list[i].AType = list[i].BType = has[i].operand;
        list[i].CType = list[i].ResultType = has[i].sum;
        list[i].saturatingAccumulation = VK_FALSE;
        list[i].scope = VK_SCOPE_SUBGROUP_KHR;
    }
    return VK_SUCCESS;
}

// ---- what they are asked for --------------------------------------------------------------------

// Takes the structure out of a chain, which is the caller's and is not read afterwards.
static void unlink_from(void *chain, VkStructureType type) {
    for (VkBaseOutStructure *at = chain; at && at->pNext; at = at->pNext)
        if (at->pNext->sType == type) at->pNext = at->pNext->pNext;
}

static bool is_all_there(const VkDeviceCreateInfo *info, bool has_name, bool has_sizes) {
    const VkPhysicalDeviceCooperativeMatrixFeaturesKHR *matrices =
        (const void *)find((void *)(uintptr_t)info->pNext,
                           VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR);
    const VkPhysicalDeviceSubgroupSizeControlFeatures *sizes =
        (const void *)find((void *)(uintptr_t)info->pNext,
                           VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES);
    const VkPhysicalDeviceVulkan12Features *v12 = (const void *)find(
        (void *)(uintptr_t)info->pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES);
    return has_name && has_sizes && matrices && matrices->cooperativeMatrix && sizes &&
           sizes->subgroupSizeControl && sizes->computeFullSubgroups && v12 &&
           v12->vulkanMemoryModel;
}

static VKAPI_ATTR VkResult VKAPI_CALL fake_vkCreateDevice(VkPhysicalDevice physical,
                                                          const VkDeviceCreateInfo *info,
                                                          const VkAllocationCallbacks *allocator,
                                                          VkDevice *out) {
    VkDeviceCreateInfo plain = *info;
    const char *names[most_names];
    bool has_name = false, has_sizes = false;
    plain.enabledExtensionCount = 0;
    plain.ppEnabledExtensionNames = names;
    for (uint32_t i = 0; i < info->enabledExtensionCount && i < most_names; ++i) {
        const char *name = info->ppEnabledExtensionNames[i];
        bool is_it = strcmp(name, VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME) == 0;
        has_name |= is_it;
        has_sizes |= strcmp(name, VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME) == 0;
        if (!is_it) names[plain.enabledExtensionCount++] = name;
    }
    is_enabled = is_all_there(info, has_name, has_sizes);
    unlink_from((void *)(uintptr_t)info->pNext,
                VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR);
    return real_vkCreateDevice(physical, &plain, allocator, out);
}

static bool has_matrices(const uint32_t *words, size_t count) {
    for (size_t i = 5; i < count && (words[i] & 0xffff) == capability; i += words[i] >> 16)
        if (words[i + 1] == of_matrices) return true;
    return false;
}

static VKAPI_ATTR VkResult VKAPI_CALL
fake_vkCreateShaderModule(VkDevice device, const VkShaderModuleCreateInfo *info,
                          const VkAllocationCallbacks *allocator, VkShaderModule *out) {
    if (!has_matrices(info->pCode, info->codeSize / 4))
        return real_vkCreateShaderModule(device, info, allocator, out);
    if (!is_enabled) return refuse("the device was not asked for what matrices need");
    berth_arena *arena = NULL;
    berth_status status = berth_arena_create(berth_allocator_system(), &arena);
    if (status) abort();
    VkShaderModuleCreateInfo plain = *info;
    uint32_t count = 0;
    plain.pCode =
        vulkan_matrices_module(arena, info->pCode, (uint32_t)(info->codeSize / 4), &count);
    plain.codeSize = 4 * (size_t)count;
    VkResult result = real_vkCreateShaderModule(device, &plain, allocator, out);
    if (result == VK_SUCCESS) modules[module_count++ % most_modules] = *out;
    berth_arena_destroy(arena);
    return result;
}

static bool is_of_matrices(VkShaderModule module) {
    for (unsigned i = 0; i < module_count && i < most_modules; ++i)
        if (modules[i] == module) return true;
    return false;
}

static VKAPI_ATTR VkResult VKAPI_CALL fake_vkCreateComputePipelines(
    VkDevice device, VkPipelineCache cache, uint32_t count, const VkComputePipelineCreateInfo *info,
    const VkAllocationCallbacks *allocator, VkPipeline *out) {
    VkComputePipelineCreateInfo plain = *info;
    const VkPipelineShaderStageRequiredSubgroupSizeCreateInfo *size = info->stage.pNext;
    if (count != 1) return refuse("several pipelines at once");
    bool whole = info->stage.flags & VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
    if (is_of_matrices(info->stage.module) != (size && size->requiredSubgroupSize == 32 && whole))
        return refuse("whole subgroups of 32 are for kernels with matrices, and for them alone");
    plain.stage.pNext = NULL;
    plain.stage.flags = 0;
    return real_vkCreateComputePipelines(device, cache, 1, &plain, allocator, out);
}

// ---- functions by name --------------------------------------------------------------------------

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL fake_vkGetDeviceProcAddr(VkDevice device,
                                                                         const char *name);

static PFN_vkVoidFunction replaced(const char *name, PFN_vkVoidFunction real) {
    if (strcmp(name, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR") == 0)
        return (PFN_vkVoidFunction)fake_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR;
#define FAKE(known)                                                                                \
    if (real && strcmp(name, #known) == 0) {                                                       \
        real_##known = (PFN_##known)real;                                                          \
        return (PFN_vkVoidFunction)fake_##known;                                                   \
    }
    FAKE(vkEnumerateDeviceExtensionProperties)
    FAKE(vkGetPhysicalDeviceFeatures2)
    FAKE(vkGetPhysicalDeviceProperties2)
    FAKE(vkCreateDevice)
    FAKE(vkCreateShaderModule)
    FAKE(vkCreateComputePipelines)
    FAKE(vkGetDeviceProcAddr)
#undef FAKE
    return real;
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL fake_vkGetDeviceProcAddr(VkDevice device,
                                                                         const char *name) {
    return replaced(name, real_vkGetDeviceProcAddr(device, name));
}

#include "tests/faults/vulkan_loader.h"
