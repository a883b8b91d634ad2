#include "devices/library.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dynlib.h"
#include "devices/loaded.h"

enum { MOST_LIBRARIES = 16, MOST_KIND_BYTES = 31 };

typedef struct loaded_driver {
    char path[PATH_MAX];  // real
    const berth_driver_ops *ops;
} loaded_driver;

// Entries are written once, before `count` says that they are there, and never change.
static struct {
    pthread_mutex_t mutex;
    atomic_uint count;
    loaded_driver *items[MOST_LIBRARIES];
} loaded = {.mutex = PTHREAD_MUTEX_INITIALIZER};

uint32_t berth_devices__loaded_count(void) {
    return atomic_load(&loaded.count);
}

const berth_driver_ops *berth_devices__loaded_at(uint32_t index, const char **out_path) {
    *out_path = loaded.items[index]->path;
    return loaded.items[index]->ops;
}

static bool is_kind(const char *text) {
    if (!text || *text < 'a' || *text > 'z') return false;
    size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_");
    return text[length] == '\0' && length <= MOST_KIND_BYTES;
}

static berth_status check_library(const char *path, const berth_driver_library *library) {
    if (!library)
        return berth_status_make(BERTH_INCOMPATIBLE,
                                 "%s is no driver: it does not export %s (devices/library.h)", path,
                                 BERTH_DRIVER_LIBRARY_SYMBOL);
    if (library->interface_version != BERTH_DRIVER_INTERFACE ||
        library->driver_bytes != sizeof(berth_driver_ops) ||
        library->device_bytes != sizeof(berth_device_ops) ||
        library->info_bytes != sizeof(berth_device_info) ||
        library->command_bytes != sizeof(berth_command))
        return berth_status_make(
            BERTH_INCOMPATIBLE,
            "%s was built for version %u of the driver interface (or for other "
            "headers of it); this is version %u: build it again with the "
            "headers installed here",
            path, library->interface_version, BERTH_DRIVER_INTERFACE);
    const berth_driver_ops *ops = library->driver;
    if (!ops || !is_kind(ops->kind))
        return berth_status_make(BERTH_INCOMPATIBLE,
                                 "%s serves no kind of device: a kind is a word of a-z, 0-9 and _, "
                                 "%d characters at most",
                                 path, MOST_KIND_BYTES);
    if (!ops->description || !ops->open || !ops->close || !ops->device_count || !ops->device_info ||
        !ops->device_open)
        return berth_status_make(
            BERTH_INCOMPATIBLE,
            "%s: the driver for %s devices lacks its description, open, close, "
            "device_count, device_info or device_open",
            path, ops->kind);
    return BERTH_OK;
}

static berth_status add(const char *path, const berth_driver_ops *ops) {
    uint32_t count = atomic_load(&loaded.count);
    for (uint32_t i = 0; i < count; ++i)
        if (strcmp(loaded.items[i]->ops->kind, ops->kind) == 0)
            return berth_status_make(BERTH_ALREADY_EXISTS,
                                     "%s is for %s devices, and so is %s, which is loaded already",
                                     path, ops->kind, loaded.items[i]->path);
    loaded_driver *item = calloc(1, sizeof(*item));
    if (!item) return berth_status_oom();
    snprintf(item->path, sizeof(item->path), "%s", path);
    item->ops = ops;
    loaded.items[count] = item;
    atomic_store(&loaded.count, count + 1);
    return BERTH_OK;
}

static berth_status load(const char *path, const char **out_kind) {
    uint32_t count = atomic_load(&loaded.count);
    for (uint32_t i = 0; i < count; ++i) {
        if (strcmp(loaded.items[i]->path, path) != 0) continue;
        *out_kind = loaded.items[i]->ops->kind;
        return BERTH_OK;
    }
    if (count == MOST_LIBRARIES)
        return berth_status_make(BERTH_OUT_OF_RANGE, "%s: only %d drivers can be loaded", path,
                                 MOST_LIBRARIES);
    berth_dynlib *library = NULL;
    BERTH_TRY(berth_dynlib_open((const char *const[]){path, NULL}, &library));
    const berth_driver_library *found = berth_dynlib_symbol(library, BERTH_DRIVER_LIBRARY_SYMBOL);
    berth_status status = check_library(path, found);
    if (!status) status = add(path, found->driver);
    if (status) {
        berth_dynlib_close(library);
        return status;
    }
    *out_kind = found->driver->kind;
    berth_dynlib_abandon(library);
    return BERTH_OK;
}

berth_status berth_driver_load(const char *path, const char **out_kind) {
    char real[PATH_MAX];
    *out_kind = NULL;
    if (!realpath(path, real))
        return berth_status_make(errno == ENOMEM ? BERTH_OUT_OF_MEMORY : BERTH_NOT_FOUND,
                                 "cannot load the driver %s: %s", path, strerror(errno));
    pthread_mutex_lock(&loaded.mutex);
    berth_status status = load(real, out_kind);
    pthread_mutex_unlock(&loaded.mutex);
    return status;
}
