#include <stddef.h>
#include <string.h>

#include "devices/vulkan/vulkan.h"

static const char global_symbols[] =
#define GLOBAL(name) #name "\0"
#include "devices/vulkan/vulkan_symbols.def"
    ;
static const char instance_symbols[] =
#define INSTANCE(name) #name "\0"
#include "devices/vulkan/vulkan_symbols.def"
    ;
static const char device_symbols[] =
#define DEVICE(name) #name "\0"
#include "devices/vulkan/vulkan_symbols.def"
    ;
static const char optional_symbols[] =
#define OPTIONAL(name) #name "\0"
#include "devices/vulkan/vulkan_symbols.def"
    ;
#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static berth_status missing(const char *name) {
    if (!name) return BERTH_OK;
    return berth_status_make(BERTH_UNAVAILABLE, "libvulkan has no %s: it is older than Vulkan 1.2",
                             name);
}

typedef struct finder {
    const vulkan_api *api;
    VkInstance instance;
    VkDevice device;  // NULL = functions of the instance
} finder;

static void *find(void *user, const char *name) {
    const finder *f = user;
    PFN_vkVoidFunction function = f->device ? f->api->vkGetDeviceProcAddr(f->device, name)
                                            : f->api->vkGetInstanceProcAddr(f->instance, name);
    void *address = NULL;
    memcpy(&address, &function, sizeof(address));
    return address;
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
    finder f = {.api = out_api};
    return missing(
        berth_dynlib_find_functions(find, &f, global_symbols, &out_api->vkCreateInstance));
}

berth_status berth_vulkan__load_instance(vulkan_api *api, VkInstance instance) {
    finder f = {.api = api, .instance = instance};
    api->instance = instance;
    return missing(
        berth_dynlib_find_functions(find, &f, instance_symbols, &api->vkDestroyInstance));
}

berth_status berth_vulkan__load_device(const vulkan_api *api, VkDevice device,
                                       vulkan_functions *out_functions) {
    finder f = {.api = api, .device = device};
    BERTH_TRY(missing(
        berth_dynlib_find_functions(find, &f, device_symbols, &out_functions->vkDestroyDevice)));
    (void)berth_dynlib_find_functions(find, &f, optional_symbols,
                                      &out_functions->vkGetMemoryHostPointerPropertiesEXT);
    return BERTH_OK;
}

static const struct {
    VkResult result;
    berth_code code;
} errors[] = {{VK_ERROR_OUT_OF_HOST_MEMORY, BERTH_OUT_OF_MEMORY},
              {VK_ERROR_OUT_OF_DEVICE_MEMORY, BERTH_OUT_OF_MEMORY},
              {VK_ERROR_OUT_OF_POOL_MEMORY, BERTH_OUT_OF_MEMORY},
              {VK_ERROR_TOO_MANY_OBJECTS, BERTH_OUT_OF_MEMORY},
              {VK_ERROR_MEMORY_MAP_FAILED, BERTH_OUT_OF_MEMORY},
              {VK_ERROR_DEVICE_LOST, BERTH_UNAVAILABLE},
              {VK_ERROR_INITIALIZATION_FAILED, BERTH_UNAVAILABLE},
              {VK_ERROR_INCOMPATIBLE_DRIVER, BERTH_UNAVAILABLE},
              {VK_ERROR_FEATURE_NOT_PRESENT, BERTH_UNSUPPORTED},
              {VK_ERROR_EXTENSION_NOT_PRESENT, BERTH_UNSUPPORTED},
              {VK_ERROR_INVALID_EXTERNAL_HANDLE, BERTH_UNSUPPORTED}};

// In their order, without "VK_ERROR_".
static const char error_texts[] =
    "OUT_OF_HOST_MEMORY\0"
    "OUT_OF_DEVICE_MEMORY\0"
    "OUT_OF_POOL_MEMORY\0"
    "TOO_MANY_OBJECTS\0"
    "MEMORY_MAP_FAILED\0"
    "DEVICE_LOST: the device has stopped, and everything on it is gone\0"
    "INITIALIZATION_FAILED\0"
    "INCOMPATIBLE_DRIVER: no driver is installed (Debian: mesa-vulkan-drivers, or the GPU "
    "vendor's)\0"
    "FEATURE_NOT_PRESENT\0"
    "EXTENSION_NOT_PRESENT\0"
    "INVALID_EXTERNAL_HANDLE\0";

berth_status berth_vulkan__check(VkResult result, const char *what) {
    if (result == VK_SUCCESS) return BERTH_OK;
    for (size_t i = 0; i < COUNT(errors); ++i)
        if (errors[i].result == result)
            return berth_status_make(errors[i].code, "%s: Vulkan says VK_ERROR_%s", what,
                                     berth_devices__text_at(error_texts, i));
    return berth_status_make(BERTH_UNAVAILABLE, "%s: Vulkan error %d", what, (int)result);
}

berth_status berth_vulkan__check_on(const vulkan_device *device, VkResult result,
                                    const char *what) {
    if (result == VK_SUCCESS) return BERTH_OK;
    if (result == VK_NOT_READY) return berth_devices__given_up(&device->base, what);
    if (result == VK_TIMEOUT)
        return berth_devices__no_answer(&device->base, what, device->timeout_ns);
    return berth_status_prefix(berth_vulkan__check(result, what), "vulkan device %u (%s)",
                               device->base.info.ordinal, device->base.info.name);
}
