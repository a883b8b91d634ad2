// What is known of a physical device before it is opened.
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "devices/vulkan/vulkan.h"

// Numbers of capabilities: SPIR-V specification 1.5, section 3.31.
const vulkan_feature berth_vulkan__features[VULKAN_FEATURE_COUNT] = {
    {10, "shaderFloat64"},
    {11, "shaderInt64"},
    {4448, "storageBuffer8BitAccess"},
    {4433, "storageBuffer16BitAccess"},
    {4466, "shaderSignedZeroInfNanPreserveFloat32"},
    {5347, "bufferDeviceAddress"},
    {39, "shaderInt8"},
    {22, "shaderInt16"},
    {63, "subgroup arithmetic"},
};

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
    VkPhysicalDeviceExternalMemoryHostPropertiesEXT host = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT};
    VkPhysicalDeviceVulkan12Properties v12 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES};
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
    facts->max_allocation_bytes = v11.maxMemoryAllocationSize;
    facts->has[8] = (v11.subgroupSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT) &&
                    (v11.subgroupSupportedOperations & VK_SUBGROUP_FEATURE_ARITHMETIC_BIT);
    facts->has[4] = v12.shaderSignedZeroInfNanPreserveFloat32;
    memcpy(facts->device_uuid, v11.deviceUUID, VK_UUID_SIZE);
    memcpy(facts->cache_id, all.properties.pipelineCacheUUID, VK_UUID_SIZE);
    facts->pointer_alignment_bytes = imports ? host.minImportedHostPointerAlignment : 0;
}

static void read_features(const vulkan_api *api, vulkan_facts *facts) {
    facts->features_1_2 = (VkPhysicalDeviceVulkan12Features){
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
    facts->features_1_1 = (VkPhysicalDeviceVulkan11Features){
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES,
        .pNext = &facts->features_1_2};
    VkPhysicalDeviceFeatures2 all = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                     .pNext = &facts->features_1_1};
    api->vkGetPhysicalDeviceFeatures2(facts->physical, &all);
    facts->features = all.features;
    berth_vulkan__list_features(facts);
}

void berth_vulkan__list_features(vulkan_facts *facts) {
    facts->has[0] = facts->features.shaderFloat64;
    facts->has[1] = facts->features.shaderInt64;
    facts->has[2] = facts->features_1_2.storageBuffer8BitAccess;
    facts->has[3] = facts->features_1_1.storageBuffer16BitAccess;
    facts->has[5] = facts->features_1_2.bufferDeviceAddress;
    facts->has[6] = facts->features_1_2.shaderInt8;
    facts->has[7] = facts->features.shaderInt16;
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
    size_t used = (size_t)snprintf(out, capacity, "subgroups of %u", facts->subgroup_size);
    for (int pass = 0; pass < 2; ++pass) {
        const char *before = pass == 0 ? "; " : "; lacks ";
        for (int i = 0; i < VULKAN_FEATURE_COUNT && used < capacity; ++i) {
            if (facts->has[i] != (pass == 0)) continue;
            used += (size_t)snprintf(out + used, capacity - used, "%s%s", before,
                                     berth_vulkan__features[i].name);
            before = ", ";
        }
    }
    if (used < capacity && facts->max_rounds)
        snprintf(out + used, capacity - used, "; ends loops after %u rounds", facts->max_rounds);
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
    if (facts->has[8])
        snprintf(out_info->kernel_features, sizeof(out_info->kernel_features),
                 "subgroup_arithmetic");
    out_info->lacks_f64 = !facts->features.shaderFloat64;
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
