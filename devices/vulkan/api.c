#include <stddef.h>
#include <string.h>

#include "devices/vulkan/vulkan.h"

typedef struct symbol {
    const char *name;
    size_t offset_bytes;
} symbol;

static const symbol global_symbols[] = {
#define GLOBAL(name) {#name, offsetof(vulkan_api, name)},
#include "devices/vulkan/vulkan_symbols.def"
};
static const symbol instance_symbols[] = {
#define INSTANCE(name) {#name, offsetof(vulkan_api, name)},
#include "devices/vulkan/vulkan_symbols.def"
};
static const symbol device_symbols[] = {
#define DEVICE(name) {#name, offsetof(vulkan_functions, name)},
#include "devices/vulkan/vulkan_symbols.def"
};
static const symbol optional_symbols[] = {
#define OPTIONAL(name) {#name, offsetof(vulkan_functions, name)},
#include "devices/vulkan/vulkan_symbols.def"
};
#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static berth_status missing(const char *name) {
    return berth_status_make(BERTH_UNAVAILABLE, "libvulkan has no %s: it is older than Vulkan 1.2",
                             name);
}

static void set(void *table, const symbol *at, PFN_vkVoidFunction function) {
    memcpy((unsigned char *)table + at->offset_bytes, &function, sizeof(function));
}

static berth_status load_table(vulkan_api *api, VkInstance instance, const symbol *table,
                               size_t count) {
    for (size_t i = 0; i < count; ++i) {
        PFN_vkVoidFunction function = api->vkGetInstanceProcAddr(instance, table[i].name);
        if (!function) return missing(table[i].name);
        set(api, &table[i], function);
    }
    return BERTH_OK;
}

berth_status berth_vulkan__api_load(vulkan_api *out_api) {
    static const char *const names[] = {"libvulkan.so.1", "libvulkan.so", NULL};
    memset(out_api, 0, sizeof(*out_api));
    berth_status status = berth_dynlib_open(names, &out_api->library);
    if (status)
        return berth_status_prefix(status,
                                   "there is no Vulkan loader (Debian: libvulkan1, and a driver "
                                   "such as mesa-vulkan-drivers)");
    void *address = berth_dynlib_symbol(out_api->library, "vkGetInstanceProcAddr");
    if (!address) return missing("vkGetInstanceProcAddr");
    memcpy(&out_api->vkGetInstanceProcAddr, &address, sizeof(address));
    return load_table(out_api, NULL, global_symbols, COUNT(global_symbols));
}

berth_status berth_vulkan__load_instance(vulkan_api *api, VkInstance instance) {
    return load_table(api, instance, instance_symbols, COUNT(instance_symbols));
}

berth_status berth_vulkan__load_device(const vulkan_api *api, VkDevice device,
                                       vulkan_functions *out_functions) {
    for (size_t i = 0; i < COUNT(device_symbols); ++i) {
        PFN_vkVoidFunction function = api->vkGetDeviceProcAddr(device, device_symbols[i].name);
        if (!function) return missing(device_symbols[i].name);
        set(out_functions, &device_symbols[i], function);
    }
    for (size_t i = 0; i < COUNT(optional_symbols); ++i)
        set(out_functions, &optional_symbols[i],
            api->vkGetDeviceProcAddr(device, optional_symbols[i].name));
    return BERTH_OK;
}

typedef struct error_fact {
    VkResult result;
    berth_code code;
    const char *text;
} error_fact;

static const error_fact errors[] = {
    {VK_TIMEOUT, BERTH_DEADLINE_EXCEEDED, "the device has not answered in time"},
    {VK_ERROR_OUT_OF_HOST_MEMORY, BERTH_OUT_OF_MEMORY, "VK_ERROR_OUT_OF_HOST_MEMORY"},
    {VK_ERROR_OUT_OF_DEVICE_MEMORY, BERTH_OUT_OF_MEMORY, "VK_ERROR_OUT_OF_DEVICE_MEMORY"},
    {VK_ERROR_OUT_OF_POOL_MEMORY, BERTH_OUT_OF_MEMORY, "VK_ERROR_OUT_OF_POOL_MEMORY"},
    {VK_ERROR_TOO_MANY_OBJECTS, BERTH_OUT_OF_MEMORY, "VK_ERROR_TOO_MANY_OBJECTS"},
    {VK_ERROR_MEMORY_MAP_FAILED, BERTH_OUT_OF_MEMORY, "VK_ERROR_MEMORY_MAP_FAILED"},
    {VK_ERROR_DEVICE_LOST, BERTH_UNAVAILABLE,
     "VK_ERROR_DEVICE_LOST: the device has stopped, and everything on it is gone"},
    {VK_ERROR_INITIALIZATION_FAILED, BERTH_UNAVAILABLE, "VK_ERROR_INITIALIZATION_FAILED"},
    {VK_ERROR_INCOMPATIBLE_DRIVER, BERTH_UNAVAILABLE,
     "VK_ERROR_INCOMPATIBLE_DRIVER: no driver is installed (Debian: mesa-vulkan-drivers, or the "
     "GPU vendor's)"},
    {VK_ERROR_FEATURE_NOT_PRESENT, BERTH_UNSUPPORTED, "VK_ERROR_FEATURE_NOT_PRESENT"},
    {VK_ERROR_EXTENSION_NOT_PRESENT, BERTH_UNSUPPORTED, "VK_ERROR_EXTENSION_NOT_PRESENT"},
    {VK_ERROR_INVALID_EXTERNAL_HANDLE, BERTH_UNSUPPORTED, "VK_ERROR_INVALID_EXTERNAL_HANDLE"},
};

berth_status berth_vulkan__check(VkResult result, const char *what) {
    if (result == VK_SUCCESS) return BERTH_OK;
    for (size_t i = 0; i < COUNT(errors); ++i)
        if (errors[i].result == result)
            return berth_status_make(errors[i].code, "%s: Vulkan says %s", what, errors[i].text);
    return berth_status_make(BERTH_UNAVAILABLE, "%s: Vulkan error %d", what, (int)result);
}
