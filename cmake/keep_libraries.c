// Part of every program that is built with AddressSanitizer: what libraries of others load stays
// loaded. What such a library keeps in variables of its own until the process ends (Mesa's Vulkan
// drivers do on some processors) is no leak as long as the library is there; once it is unloaded, it
// looks like one, and cannot be told from ours.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // dladdr
#endif
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

// Whether the program, or a library of Berth, calls.
static int is_ours(const void *caller) {
    Dl_info program, other;
    uintptr_t own = (uintptr_t)&is_ours;
    if (!dladdr((const void *)own, &program) || !dladdr(caller, &other)) return 1;
    return program.dli_fbase == other.dli_fbase || strstr(other.dli_fname, "libberth");
}

int dlclose(void *handle) {
    void *symbol = dlsym(RTLD_NEXT, "dlclose");
    int (*next)(void *) = NULL;
    memcpy(&next, &symbol, sizeof(next));
    if (!next || !is_ours(__builtin_return_address(0))) return 0;
    return next(handle);
}
