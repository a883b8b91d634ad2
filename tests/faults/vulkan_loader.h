// The entry of a Vulkan loader that stands in front of the system's, REAL_VULKAN. Include it last: it calls
//
//   static PFN_vkVoidFunction replaced(const char *name, PFN_vkVoidFunction real);
//
// which gives the function in place of that one, or `real`.
#ifndef BERTH_TESTS_FAULTS_VULKAN_LOADER_H_
#define BERTH_TESTS_FAULTS_VULKAN_LOADER_H_

#include <dlfcn.h>
#include <string.h>

__attribute__((visibility("default"))) VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL
vkGetInstanceProcAddr(VkInstance instance, const char *name);

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vkGetInstanceProcAddr(VkInstance instance,
                                                               const char *name) {
    static PFN_vkGetInstanceProcAddr real;
    if (!real) {
        void *library = dlopen(REAL_VULKAN, RTLD_NOW | RTLD_LOCAL);
        void *address = library ? dlsym(library, "vkGetInstanceProcAddr") : NULL;
        if (!address) return NULL;
        memcpy(&real, &address, sizeof(real));
    }
    return replaced(name, real(instance, name));
}

#endif  // BERTH_TESTS_FAULTS_VULKAN_LOADER_H_
