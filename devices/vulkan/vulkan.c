// The vulkan driver: every device of Vulkan 1.2 or later that computes, in the loader's order.
#include "devices/vulkan/matrices.h"
#include "devices/vulkan/record.h"

#include <stdio.h>
#include <string.h>

// ---- device ----

static void close_engines(vulkan_device *device) {
    for (uint32_t i = 0; i < device->compute_count; ++i)
        pthread_mutex_destroy(&device->compute[i].lock);
    for (uint32_t i = 0; i < device->transfer_count; ++i)
        pthread_mutex_destroy(&device->transfer[i].lock);
}

// All work of ours has ended, as the queues' destruction waits for it; drivers may still be about to let go of it. Mesa 22
// loses the points of a timeline that is destroyed before the thread that submits has let go of them. A caller's device is
// not waited for: it may run work of the caller's that does not end.
static void wait_for_engines(vulkan_device *device) {
    if (!device->is_callers) (void)device->vk.vkDeviceWaitIdle(device->handle);
}

static void vulkan_device_destroy(berth_device *base) {
    vulkan_device *device = (vulkan_device *)base;
    if (device->handle && device->vk.vkDestroyDevice) {
        bool is_lost = atomic_load(&device->is_lost);
        berth_vulkan__cache_close(device);
        if (!is_lost) wait_for_engines(device);
        berth_vulkan__free_timelines(device);
        // What is given up stays until the process ends, and so does what it was made from.
        if (is_lost)
            ((vulkan_driver *)base->driver)->instance = NULL;
        else if (!device->is_callers)
            device->vk.vkDestroyDevice(device->handle, NULL);
    }
    close_engines(device);
    pthread_mutex_destroy(&device->lock);
    berth_free(base->allocator, device, sizeof(*device));
}

static const berth_device_ops vulkan_device_ops = {
    .destroy = vulkan_device_destroy,
    .buffer_allocate = berth_vulkan__buffer_allocate,
    .buffer_view = berth_vulkan__buffer_view,
    .buffer_import = berth_vulkan__buffer_import,
    .buffer_free = berth_vulkan__buffer_free,
    .buffer_map = berth_vulkan__buffer_map,
    .buffer_unmap = berth_vulkan__buffer_unmap,
    .executable_load = berth_vulkan__executable_load,
    .executable_destroy = berth_vulkan__executable_destroy,
    .executable_find = berth_vulkan__executable_find,
    .queue_open = berth_vulkan__queue_open,
    .queue_reserve = berth_host_queue_reserve,
    .queue_submit = berth_host_queue_submit,
    .queue_destroy = berth_vulkan__queue_destroy,
    .list_prepare = berth_vulkan__list_prepare,
    .list_destroy = berth_vulkan__list_destroy,
};

static uint32_t queue_count(const vulkan_facts *facts, uint32_t family) {
    uint32_t count = facts->families[family].queueCount;
    return count < VULKAN_MAX_QUEUES ? count : VULKAN_MAX_QUEUES;
}

static void open_engines(vulkan_device *device, uint32_t family, vulkan_engine *engines,
                         uint32_t *out_count) {
    for (uint32_t i = 0; i < queue_count(device->facts, family); ++i) {
        engines[i].family = family;
        device->vk.vkGetDeviceQueue(device->handle, family, i, &engines[i].handle);
        pthread_mutex_init(&engines[i].lock, NULL);
        *out_count = i + 1;
    }
}

// Asks for what kernels may use and the device has, and for nothing else.
static berth_status create_device(vulkan_device *device, const vulkan_api *api) {
    static const float priorities[VULKAN_MAX_QUEUES] = {1, 1, 1, 1};
    const vulkan_facts *facts = device->facts;
    bool copies_apart = facts->transfer_family != facts->compute_family;
    VkDeviceQueueCreateInfo queues[] = {{.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                         .queueFamilyIndex = facts->compute_family,
                                         .queueCount = queue_count(facts, facts->compute_family),
                                         .pQueuePriorities = priorities},
                                        {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                         .queueFamilyIndex = facts->transfer_family,
                                         .queueCount = queue_count(facts, facts->transfer_family),
                                         .pQueuePriorities = priorities}};
    bool matrices = facts->has[VULKAN_FEATURE_MATRICES];
    vulkan_matrix_features wanted;
    berth_vulkan__want_matrices(&wanted, VK_TRUE);
    VkPhysicalDeviceVulkan12Features v12 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
        .pNext = matrices ? &wanted.matrices : NULL,
        .vulkanMemoryModel = matrices,
        .storageBuffer8BitAccess = facts->features_1_2.storageBuffer8BitAccess,
        .shaderFloat16 = facts->features_1_2.shaderFloat16,
        .shaderInt8 = facts->features_1_2.shaderInt8,
        .bufferDeviceAddress = VK_TRUE,
        .timelineSemaphore = VK_TRUE};
    VkPhysicalDeviceVulkan11Features v11 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES,
        .pNext = &v12,
        .storageBuffer16BitAccess = facts->features_1_1.storageBuffer16BitAccess};
    VkPhysicalDeviceFeatures features = {.shaderFloat64 = facts->features.shaderFloat64,
                                         .shaderInt64 = facts->features.shaderInt64,
                                         .shaderInt16 = facts->features.shaderInt16};
    const char *extensions[3] = {VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME,
                                 VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME};
    uint32_t extension_count = matrices ? 2 : 0;
    if (facts->pointer_alignment_bytes)
        extensions[extension_count++] = VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME;
    VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                               .pNext = &v11,
                               .queueCreateInfoCount = copies_apart ? 2 : 1,
                               .pQueueCreateInfos = queues,
                               .enabledExtensionCount = extension_count,
                               .ppEnabledExtensionNames = extensions,
                               .pEnabledFeatures = &features};
    BERTH_TRY(berth_vulkan__check_on(
        device, api->vkCreateDevice(facts->physical, &info, NULL, &device->handle),
        "open the device"));
    BERTH_TRY(berth_vulkan__load_device(api, device->handle, &device->vk));
    open_engines(device, facts->compute_family, device->compute, &device->compute_count);
    if (copies_apart)
        open_engines(device, facts->transfer_family, device->transfer, &device->transfer_count);
    return BERTH_OK;
}

static berth_status vulkan_device_open(berth_driver *base, uint32_t ordinal,
                                       const berth_device_options *options,
                                       berth_device **out_device) {
    const vulkan_driver *driver = (const vulkan_driver *)base;
    vulkan_device *device = berth_calloc(base->allocator, 1, sizeof(*device));
    if (!device) return berth_status_oom();
    device->base.ops = &vulkan_device_ops;
    device->base.allocator = base->allocator;
    device->facts = &device->own_facts;
    device->cache_folder = -1;
    pthread_mutex_init(&device->lock, NULL);
    berth_status status =
        berth_devices__read_timeout("vulkan", options->attributes, &device->timeout_ns);
    if (!status && options->queue)
        status =
            berth_vulkan__use_callers(driver, options->queue, options->profile, device, &ordinal);
    else if (!status)
        device->own_facts = driver->facts[ordinal];
    device->own_facts.shared &= !options->own_memory;
    berth_vulkan__fill_info(device->facts, ordinal, &device->base.info);
    if (!status && !options->queue) status = create_device(device, &driver->api);
    if (!status) status = berth_vulkan__cache_open(device, options->cache_folder);
    if (status) {
        vulkan_device_destroy(&device->base);
        return status;
    }
    *out_device = &device->base;
    return BERTH_OK;
}

// ---- driver ----

static berth_status vulkan_device_info(berth_driver *base, uint32_t ordinal,
                                       berth_device_info *out_info) {
    berth_vulkan__fill_info(&((const vulkan_driver *)base)->facts[ordinal], ordinal, out_info);
    return BERTH_OK;
}

static uint32_t vulkan_device_count(berth_driver *driver) {
    return ((vulkan_driver *)driver)->count;
}

static berth_status create_instance(vulkan_driver *driver) {
    uint32_t version = 0;
    if (driver->api.vkEnumerateInstanceVersion(&version) != VK_SUCCESS ||
        version < VK_API_VERSION_1_2)
        return berth_status_make(BERTH_UNAVAILABLE, "the Vulkan loader is older than Vulkan 1.2");
    VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                     .pApplicationName = "berth",
                                     .pEngineName = "berth",
                                     .apiVersion = VK_API_VERSION_1_2};
    VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                 .pApplicationInfo = &application};
    BERTH_TRY(berth_vulkan__check(driver->api.vkCreateInstance(&info, NULL, &driver->instance),
                                  "the Vulkan loader is here but opens nothing"));
    return berth_vulkan__load_instance(&driver->api, driver->instance);
}

static berth_status enumerate(vulkan_driver *driver) {
    VkPhysicalDevice physical[VULKAN_MAX_DEVICES];
    uint32_t count = VULKAN_MAX_DEVICES;
    VkResult result = driver->api.vkEnumeratePhysicalDevices(driver->instance, &count, physical);
    if (result != VK_INCOMPLETE) BERTH_TRY(berth_vulkan__check(result, "list the devices"));
    driver->facts =
        berth_calloc(driver->base.allocator, VULKAN_MAX_DEVICES, sizeof(*driver->facts));
    if (!driver->facts) return berth_status_oom();
    driver->base.lacking = driver->left_out;
    for (uint32_t i = 0; i < count; ++i) {
        vulkan_facts *facts = &driver->facts[driver->count];
        const char *refused = NULL;
        berth_vulkan__read_facts(&driver->api, physical[i], facts, &refused);
        size_t used = strlen(driver->left_out);
        if (refused)
            snprintf(driver->left_out + used, sizeof(driver->left_out) - used,
                     "%s%s is here, but %s", used ? "; " : "", facts->name, refused);
        else
            driver->count++;
    }
    if (driver->count > 0) return BERTH_OK;
    if (*driver->left_out) return berth_status_make(BERTH_UNAVAILABLE, "%s", driver->left_out);
    return berth_status_make(BERTH_UNAVAILABLE, "the Vulkan loader is here, but no device (Debian: "
                                                "mesa-vulkan-drivers, or the GPU vendor's driver)");
}

static void vulkan_close(berth_driver *base) {
    vulkan_driver *driver = (vulkan_driver *)base;
    if (driver->instance && driver->api.vkDestroyInstance)
        driver->api.vkDestroyInstance(driver->instance, NULL);
    berth_free(base->allocator, driver->facts, VULKAN_MAX_DEVICES * sizeof(*driver->facts));
    berth_dynlib_abandon(driver->api.library);  // drivers keep threads of their own
    berth_free(base->allocator, driver, sizeof(*driver));
}

static berth_status vulkan_open(berth_allocator allocator, berth_driver **out_driver) {
    vulkan_driver *driver = berth_calloc(allocator, 1, sizeof(*driver));
    if (!driver) return berth_status_oom();
    driver->base.allocator = allocator;
    berth_status status = berth_vulkan__api_load(&driver->api);
    if (!status) status = create_instance(driver);
    if (!status) status = enumerate(driver);
    if (status) {
        vulkan_close(&driver->base);
        return status;
    }
    *out_driver = &driver->base;
    return BERTH_OK;
}

extern const berth_driver_ops berth_devices__vulkan_driver;
const berth_driver_ops berth_devices__vulkan_driver = {
    .kind = "vulkan",
    .takes_queue = true,
    .description = "Vulkan 1.2 devices that compute (libvulkan, loaded at run time)",
    .open = vulkan_open,
    .close = vulkan_close,
    .device_count = vulkan_device_count,
    .device_info = vulkan_device_info,
    .device_open = vulkan_device_open,
};
