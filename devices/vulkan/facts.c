// What is known of a physical device before it is opened.
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "devices/vulkan/matrices.h"

// Numbers of capabilities and execution modes: SPIR-V specification 1.5, sections 3.31 and 3.6.
enum {
    HAS_FLOAT64,
    HAS_INT64,
    HAS_STORAGE_8,
    HAS_STORAGE_16,
    HAS_SPECIAL_32,
    HAS_ADDRESSES,
    HAS_INT8,
    HAS_INT16,
    HAS_SUBGROUP_ARITHMETIC,
    HAS_FLOAT16,
    HAS_SPECIAL_16,
    HAS_ROUND_EVEN_16,
    HAS_DENORMALS_16,
    HAS_MATRICES = VULKAN_FEATURE_MATRICES,
};
const vulkan_feature berth_vulkan__features[VULKAN_FEATURE_COUNT] = {
    [HAS_FLOAT64] = {10, 0, 0},
    [HAS_INT64] = {11, 0, 0},
    [HAS_STORAGE_8] = {4448, 0, 0},
    [HAS_STORAGE_16] = {4433, 0, 0},
    [HAS_SPECIAL_32] = {4466, 4461, 32},
    [HAS_ADDRESSES] = {5347, 0, 0},
    [HAS_INT8] = {39, 0, 0},
    [HAS_INT16] = {22, 0, 0},
    [HAS_SUBGROUP_ARITHMETIC] = {63, 0, 0},
    [HAS_FLOAT16] = {9, 0, 0},
    [HAS_SPECIAL_16] = {4466, 4461, 16},
    [HAS_ROUND_EVEN_16] = {4467, 4462, 16},
    [HAS_DENORMALS_16] = {4464, 4459, 16},
    [HAS_MATRICES] = {6022, 0, 0},
};

// One behind the other, in their order.
static const char names[] = "shaderFloat64\0"
                            "shaderInt64\0"
                            "storageBuffer8BitAccess\0"
                            "storageBuffer16BitAccess\0"
                            "shaderSignedZeroInfNanPreserveFloat32\0"
                            "bufferDeviceAddress\0"
                            "shaderInt8\0"
                            "shaderInt16\0"
                            "subgroup arithmetic\0"
                            "shaderFloat16\0"
                            "shaderSignedZeroInfNanPreserveFloat16\0"
                            "shaderRoundingModeRTEFloat16\0"
                            "shaderDenormPreserveFloat16\0"
                            "cooperativeMatrix\0";

const char *berth_vulkan__feature_name(int feature) {
    return berth_devices__text_at(names, (size_t)feature);
}

static bool has_extension(const vulkan_api *api, VkPhysicalDevice physical, const char *name) {
    VkExtensionProperties list[512];
    uint32_t count = 512;
    VkResult result = api->vkEnumerateDeviceExtensionProperties(physical, NULL, &count, list);
    if (result != VK_SUCCESS && result != VK_INCOMPLETE) return false;
    for (uint32_t i = 0; i < count; ++i)
        if (strcmp(list[i].extensionName, name) == 0) return true;
    return false;
}

static void read_properties(const vulkan_api *api, vulkan_facts *facts) {
    VkPhysicalDeviceSubgroupSizeControlProperties sizes = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES};
    VkPhysicalDeviceExternalMemoryHostPropertiesEXT host = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT,
        .pNext = &sizes};
    VkPhysicalDeviceVulkan12Properties v12 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES, .pNext = &sizes};
    VkPhysicalDeviceVulkan11Properties v11 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES, .pNext = &v12};
    VkPhysicalDeviceProperties2 all = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                       .pNext = &v11};
    VkPhysicalDeviceShaderSMBuiltinsPropertiesNV nvidia = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV};
    VkPhysicalDeviceShaderCoreProperties2AMD amd = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_2_AMD};
    bool is_nvidia = has_extension(api, facts->physical, VK_NV_SHADER_SM_BUILTINS_EXTENSION_NAME);
    bool is_amd =
        has_extension(api, facts->physical, VK_AMD_SHADER_CORE_PROPERTIES_2_EXTENSION_NAME);
    bool imports = has_extension(api, facts->physical, VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME);
    if (imports) v12.pNext = &host;
    void *before = v12.pNext;
    nvidia.pNext = amd.pNext = before;
    if (is_nvidia) v12.pNext = &nvidia;
    if (is_amd) v12.pNext = &amd;
    api->vkGetPhysicalDeviceProperties2(facts->physical, &all);
    memcpy(facts->name, all.properties.deviceName, sizeof(facts->name));
    snprintf(facts->driver, sizeof(facts->driver), "%.48s %.64s", v12.driverName, v12.driverInfo);
    // Mesa ends loops there after as many rounds in all (LP_MAX_TGSI_LOOP_ITERATIONS), and says nothing.
    if (v12.driverID == VK_DRIVER_ID_MESA_LLVMPIPE) facts->max_rounds = 65535;
    facts->vendor_id = all.properties.vendorID;
    facts->device_id = all.properties.deviceID;
    facts->type = all.properties.deviceType;
    facts->limits = all.properties.limits;
    facts->compute_units = is_nvidia ? nvidia.shaderSMCount : amd.activeComputeUnitCount;
    if (facts->type == VK_PHYSICAL_DEVICE_TYPE_CPU)
        facts->compute_units = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
    facts->subgroup_size = v11.subgroupSize;
    facts->takes_subgroups = (sizes.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT) &&
                             sizes.minSubgroupSize <= VULKAN_MATRIX_SUBGROUP &&
                             sizes.maxSubgroupSize >= VULKAN_MATRIX_SUBGROUP;
    facts->max_allocation_bytes = v11.maxMemoryAllocationSize;
    facts->has[HAS_SUBGROUP_ARITHMETIC] =
        (v11.subgroupSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT) &&
        (v11.subgroupSupportedOperations & VK_SUBGROUP_FEATURE_ARITHMETIC_BIT);
    facts->has[HAS_SPECIAL_32] = v12.shaderSignedZeroInfNanPreserveFloat32;
    facts->has[HAS_SPECIAL_16] = v12.shaderSignedZeroInfNanPreserveFloat16;
    facts->has[HAS_ROUND_EVEN_16] = v12.shaderRoundingModeRTEFloat16;
    facts->has[HAS_DENORMALS_16] = v12.shaderDenormPreserveFloat16;
    memcpy(facts->device_uuid, v11.deviceUUID, VK_UUID_SIZE);
    memcpy(facts->cache_id, all.properties.pipelineCacheUUID, VK_UUID_SIZE);
    facts->pointer_alignment_bytes = imports ? host.minImportedHostPointerAlignment : 0;
}

static void read_features(const vulkan_api *api, vulkan_facts *facts) {
    vulkan_matrix_features matrices;
    berth_vulkan__want_matrices(&matrices, VK_FALSE);
    facts->features_1_2 = (VkPhysicalDeviceVulkan12Features){
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
        .pNext = &matrices.matrices};
    facts->features_1_1 = (VkPhysicalDeviceVulkan11Features){
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES,
        .pNext = &facts->features_1_2};
    VkPhysicalDeviceFeatures2 all = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                     .pNext = &facts->features_1_1};
    api->vkGetPhysicalDeviceFeatures2(facts->physical, &all);
    facts->features = all.features;
    berth_vulkan__list_features(facts);
    if (matrices.matrices.cooperativeMatrix && matrices.subgroups.subgroupSizeControl &&
        matrices.subgroups.computeFullSubgroups && facts->takes_subgroups &&
        facts->features_1_2.vulkanMemoryModel &&
        has_extension(api, facts->physical, VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME))
        facts->matrix_shapes = berth_vulkan__matrix_shapes(api, facts->physical);
    facts->has[HAS_MATRICES] = facts->matrix_shapes != 0;
}

void berth_vulkan__list_features(vulkan_facts *facts) {
    facts->has[HAS_FLOAT64] = facts->features.shaderFloat64;
    facts->has[HAS_INT64] = facts->features.shaderInt64;
    facts->has[HAS_STORAGE_8] = facts->features_1_2.storageBuffer8BitAccess;
    facts->has[HAS_STORAGE_16] = facts->features_1_1.storageBuffer16BitAccess;
    facts->has[HAS_ADDRESSES] = facts->features_1_2.bufferDeviceAddress;
    facts->has[HAS_INT8] = facts->features_1_2.shaderInt8;
    facts->has[HAS_INT16] = facts->features.shaderInt16;
    facts->has[HAS_FLOAT16] = facts->features_1_2.shaderFloat16;
}

static bool find_families(vulkan_facts *facts) {
    facts->compute_family = UINT32_MAX;
    for (uint32_t i = 0; i < facts->family_count; ++i) {
        bool computes = facts->families[i].queueFlags & VK_QUEUE_COMPUTE_BIT;
        bool draws = facts->families[i].queueFlags & VK_QUEUE_GRAPHICS_BIT;
        // One that only computes has queues that run beside the screen's.
        if (computes && (facts->compute_family == UINT32_MAX || !draws)) facts->compute_family = i;
    }
    facts->transfer_family = facts->compute_family;
    for (uint32_t i = 0; i < facts->family_count; ++i)
        if ((facts->families[i].queueFlags & VK_QUEUE_TRANSFER_BIT) &&
            !(facts->families[i].queueFlags & (VK_QUEUE_COMPUTE_BIT | VK_QUEUE_GRAPHICS_BIT)))
            facts->transfer_family = i;
    return facts->compute_family != UINT32_MAX;
}

// The type with all of `wanted` that comes first: drivers list the fastest first.
static uint32_t find_type(const vulkan_facts *facts, VkMemoryPropertyFlags wanted) {
    for (uint32_t i = 0; i < facts->memories.memoryTypeCount; ++i)
        if ((facts->memories.memoryTypes[i].propertyFlags & wanted) == wanted) return i;
    return UINT32_MAX;
}

static bool find_memories(vulkan_facts *facts) {
    const VkMemoryPropertyFlags coherent =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    const VkMemoryPropertyFlags cached = coherent | VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
    uint32_t both = find_type(facts, cached | VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
    facts->host_memory = find_type(facts, cached);
    if (facts->host_memory == UINT32_MAX) facts->host_memory = find_type(facts, coherent);
    facts->device_memory = find_type(facts, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
    // Discrete GPUs may show a window into their memory: that is no host memory.
    facts->shared = both != UINT32_MAX && (facts->type == VK_PHYSICAL_DEVICE_TYPE_CPU ||
                                           facts->type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU);
    if (facts->shared) facts->device_memory = facts->host_memory = both;
    return facts->host_memory != UINT32_MAX && facts->device_memory != UINT32_MAX;
}

void berth_vulkan__read_facts(const vulkan_api *api, VkPhysicalDevice physical,
                              vulkan_facts *out_facts, const char **out_reason) {
    VkPhysicalDeviceProperties2 first = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
    memset(out_facts, 0, sizeof(*out_facts));
    out_facts->physical = physical;
    api->vkGetPhysicalDeviceProperties2(physical, &first);
    memcpy(out_facts->name, first.properties.deviceName, sizeof(out_facts->name));
    out_facts->api_version = first.properties.apiVersion;
    *out_reason = "it has no Vulkan 1.2";
    if (out_facts->api_version < VK_API_VERSION_1_2) return;
    read_properties(api, out_facts);
    read_features(api, out_facts);
    api->vkGetPhysicalDeviceMemoryProperties(physical, &out_facts->memories);
    out_facts->family_count = VULKAN_MAX_FAMILIES;
    api->vkGetPhysicalDeviceQueueFamilyProperties(physical, &out_facts->family_count,
                                                  out_facts->families);
    *out_reason = "it has no timeline semaphores";
    if (!out_facts->features_1_2.timelineSemaphore) return;
    *out_reason = "it has no buffer device addresses";
    if (!out_facts->features_1_2.bufferDeviceAddress) return;
    *out_reason = "it has no queue for compute shaders";
    if (!find_families(out_facts)) return;
    *out_reason = "it has no memory that the host sees";
    if (!find_memories(out_facts)) return;
    *out_reason = NULL;
}

static const char *vendor_name(uint32_t id) {
    switch (id) {
    case 0x1002: return "AMD";
    case 0x1010: return "Imagination";
    case 0x106b: return "Apple";
    case 0x10de: return "NVIDIA";
    case 0x13b5: return "ARM";
    case 0x14e4: return "Broadcom";
    case 0x5143: return "Qualcomm";
    case 0x8086: return "Intel";
    case VK_VENDOR_ID_MESA: return "Mesa";
    default: return "";
    }
}

static uint64_t heap_bytes(const vulkan_facts *facts, uint32_t type) {
    return facts->memories.memoryHeaps[facts->memories.memoryTypes[type].heapIndex].size;
}

// "subgroups of 8; shaderFloat64, ...; lacks shaderInt16"
static void describe_features(const vulkan_facts *facts, char *out, size_t capacity) {
    snprintf(out, capacity, "subgroups of %u", facts->subgroup_size);
    berth_devices__put_features(out, capacity, names, facts->has);
    size_t used = strlen(out);
    if (facts->max_rounds)
        snprintf(out + used, capacity - used, "; ends loops after %u rounds", facts->max_rounds);
}

// Features of targets. f16 is computed with where it rounds as f16 does elsewhere.
static void list_kernel_features(const vulkan_facts *facts, char *out, size_t capacity) {
    const bool *has = facts->has;
    bool float16 = has[HAS_FLOAT16] && has[HAS_STORAGE_16] && has[HAS_INT16] &&
                   has[HAS_SPECIAL_16] && has[HAS_ROUND_EVEN_16];
    bool bytes = has[HAS_STORAGE_8] && has[HAS_INT8];
    size_t used = (size_t)snprintf(
        out, capacity, "%s%s%s", has[HAS_SUBGROUP_ARITHMETIC] ? ",subgroup_arithmetic" : "",
        float16 ? ",float16" : "", float16 && has[HAS_DENORMALS_16] ? ",float16_denormals" : "");
    const char *feature = NULL;
    for (uint32_t i = 0; (feature = berth_vulkan__matrix_name(i)); ++i)
        if (facts->matrix_shapes >> i & 1 && (i == 0 ? float16 : bytes) &&
            used + strlen(",cooperative_") + strlen(feature) <
                capacity)  // the first ones are wanted most
            used += (size_t)snprintf(out + used, capacity - used, ",cooperative_%s", feature);
    memmove(out, out + (out[0] == ','), strlen(out + (out[0] == ',')) + 1);
}

void berth_vulkan__fill_info(const vulkan_facts *facts, uint32_t ordinal,
                             berth_device_info *out_info) {
    memset(out_info, 0, sizeof(*out_info));
    snprintf(out_info->name, sizeof(out_info->name), "%.127s", facts->name);
    snprintf(out_info->vendor, sizeof(out_info->vendor), "%s", vendor_name(facts->vendor_id));
    snprintf(out_info->driver_version, sizeof(out_info->driver_version), "Vulkan %u.%u, %.100s",
             VK_API_VERSION_MAJOR(facts->api_version), VK_API_VERSION_MINOR(facts->api_version),
             facts->driver);
    out_info->ordinal = ordinal;
    out_info->compute_units = facts->compute_units ? facts->compute_units : 1;
    describe_features(facts, out_info->features, sizeof(out_info->features));
    out_info->is_cpu = facts->type == VK_PHYSICAL_DEVICE_TYPE_CPU;
    list_kernel_features(facts, out_info->kernel_features, sizeof(out_info->kernel_features));
    const bool *has = facts->has;
    out_info->lacks_i64 = !has[HAS_INT64];
    out_info->lacks_f64 =
        !has[HAS_FLOAT64] || out_info->lacks_i64;  // functions of f64 look at bits
    out_info->lacks_8bit = !has[HAS_STORAGE_8] || !has[HAS_INT8];
    out_info->lacks_16bit = !has[HAS_STORAGE_16] || !has[HAS_INT16];
    out_info->max_group_size = facts->limits.maxComputeWorkGroupInvocations;
    out_info->local_memory_bytes = facts->limits.maxComputeSharedMemorySize;
    out_info->memory_count = facts->shared ? 1 : 2;
    out_info->memories[0] =
        (berth_memory_info){.scope = "global",
                            .capacity_bytes = heap_bytes(facts, facts->device_memory),
                            .alignment_bytes = BERTH_DEFAULT_ALIGNMENT_BYTES,
                            .host_visible = facts->shared};
    if (facts->shared) return;
    out_info->memories[1] =
        (berth_memory_info){.scope = "host",
                            .capacity_bytes = heap_bytes(facts, facts->host_memory),
                            .alignment_bytes = BERTH_DEFAULT_ALIGNMENT_BYTES,
                            .host_visible = true};
}
