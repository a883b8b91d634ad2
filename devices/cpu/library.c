// Loaded code: executables of equal images share it, as loading takes far longer than what a session for
// one more shape does otherwise. Not where code imports symbols, which it keeps in its own memory.
#include "artifact/kernel_abi.h"
#include "base/hash.h"
#include "devices/cpu/cpu.h"

struct cpu_library {
    cpu_library *next;
    berth_hash128 image;
    berth_dynlib *loaded;
    uint32_t users;
    bool is_shared;  // in the device's list
};

static cpu_library *find(const cpu_device *device, berth_hash128 image) {
    for (cpu_library *l = device->libraries; l; l = l->next)
        if (berth_hash128_equal(l->image, image)) return l;
    return NULL;
}

static berth_status load(cpu_device *device, berth_hash128 image, const void *data,
                         size_t size_bytes, cpu_library **out_library) {
    cpu_library *made = berth_calloc(device->base.allocator, 1, sizeof(*made));
    if (!made) return berth_status_oom();
    berth_status status =
        berth_dynlib_open_memory(data, size_bytes, "berth-kernels", &made->loaded);
    if (status) {
        berth_free(device->base.allocator, made, sizeof(*made));
        berth_status result = berth_status_make(
            BERTH_INVALID_ARGUMENT, "cpu kernels do not load: %s", berth_status_message(status));
        berth_status_free(status);
        return result;
    }
    made->image = image;
    made->is_shared = !berth_dynlib_symbol(made->loaded, BERTH_IMPORTS_SYMBOL);
    if (made->is_shared) {
        made->next = device->libraries;
        device->libraries = made;
    }
    *out_library = made;
    return BERTH_OK;
}

berth_status berth_cpu__library_open(cpu_device *device, const void *data, size_t size_bytes,
                                     cpu_library **out_library) {
    berth_hash128 image = berth_hash128_of(data, size_bytes);
    berth_status status = BERTH_OK;
    pthread_mutex_lock(&device->library_lock);
    *out_library = find(device, image);
    if (!*out_library) status = load(device, image, data, size_bytes, out_library);
    if (!status) (*out_library)->users++;
    pthread_mutex_unlock(&device->library_lock);
    return status;
}

berth_dynlib *berth_cpu__library_code(const cpu_library *library) {
    return library->loaded;
}

void berth_cpu__library_close(cpu_device *device, cpu_library *library) {
    pthread_mutex_lock(&device->library_lock);
    bool last = --library->users == 0;
    cpu_library **at = &device->libraries;
    while (last && library->is_shared && *at != library) at = &(*at)->next;
    if (last && library->is_shared) *at = library->next;
    pthread_mutex_unlock(&device->library_lock);
    if (!last) return;
    berth_dynlib_close(library->loaded);
    berth_free(device->base.allocator, library, sizeof(*library));
}
