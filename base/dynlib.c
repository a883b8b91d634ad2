#define _GNU_SOURCE  // memfd_create
#include "base/dynlib.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct berth_dynlib {
    void *handle;
    int fd;  // of a library in memory, else -1
};

static berth_status wrap(void *handle, int fd, berth_dynlib **out_library) {
    berth_dynlib *library = malloc(sizeof(*library));
    if (!library) {
        dlclose(handle);
        return berth_status_oom();
    }
    library->handle = handle;
    library->fd = fd;
    *out_library = library;
    return BERTH_OK;
}

// Why the loader failed; NULL = memory ran out for that text, of which dlerror gives a part then:
// without what errno, which it sets, means.
static const char *loader_reason(void) {
    errno = 0;
    const char *reason = dlerror();
    if (!reason || errno == 0) return reason;
    const char *cause = strerror(errno);
    size_t length = strlen(reason), cause_length = strlen(cause);
    bool whole = length >= cause_length && strcmp(reason + length - cause_length, cause) == 0;
    return whole ? reason : NULL;
}

berth_status berth_dynlib_open(const char *const *names, berth_dynlib **out_library) {
    *out_library = NULL;
    char reasons[512] = "";
    for (; *names; ++names) {
        errno = 0;
        void *handle = dlopen(*names, RTLD_NOW | RTLD_LOCAL);
        if (handle) return wrap(handle, -1, out_library);
        const char *reason = errno == ENOMEM ? NULL : loader_reason();
        if (!reason) return berth_status_oom();
        size_t used = strlen(reasons);
        snprintf(reasons + used, sizeof(reasons) - used, "%s%s", used ? "; " : "", reason);
    }
    return berth_status_make(BERTH_UNAVAILABLE, "cannot load the library: %s", reasons);
}

berth_status berth_dynlib_open_memory(const void *data, size_t size_bytes, const char *label,
                                      berth_dynlib **out_library) {
    *out_library = NULL;
    int fd = memfd_create(label, MFD_CLOEXEC);
    if (fd < 0)
        return berth_status_make(BERTH_IO, "cannot hold library %s in memory: %s", label,
                                 strerror(errno));
    berth_status status = BERTH_OK;
    const char *at = data;
    while (size_bytes > 0 && !status) {
        ssize_t put = write(fd, at, size_bytes);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) {
            status = berth_status_make(BERTH_IO, "cannot hold library %s in memory: %s", label,
                                       strerror(errno));
        } else {
            at += put;
            size_bytes -= (size_t)put;
        }
    }
    if (!status) {
        char path[64];
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        const char *reason = handle ? NULL : dlerror();
        status = handle ? wrap(handle, fd, out_library)
                        : berth_status_make(BERTH_UNAVAILABLE, "cannot load library %s: %s", label,
                                            reason ? reason : "unknown reason");
    }
    // The file stays open as long as the library: the loader takes an equal path for the same
    // library, so the number must not be used again.
    if (status) close(fd);
    return status;
}

void *berth_dynlib_symbol(berth_dynlib *library, const char *name) {
    return dlsym(library->handle, name);
}

const char *berth_dynlib_find_functions(void *(*find)(void *user, const char *name), void *user,
                                        const char *names, void *table) {
    unsigned char *at = table;
    for (; *names; names += strlen(names) + 1, at += sizeof(void *)) {
        void *function = find(user, names);
        if (!function) return names;
        memcpy(at, &function, sizeof(function));  // POSIX: the same representation
    }
    return NULL;
}

void *berth_dynlib_find_in(void *library, const char *name) {
    return berth_dynlib_symbol(library, name);
}

void berth_dynlib_close(berth_dynlib *library) {
    if (!library) return;
    dlclose(library->handle);
    if (library->fd >= 0) close(library->fd);
    free(library);
}

void berth_dynlib_abandon(berth_dynlib *library) {
    free(library);
}
