#include "devices/kept_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

enum { MAX_BYTES = 256 << 20 };

typedef struct header {
    char magic[8];  // "berthkpt"
    uint64_t version;
    berth_hash128 identity;
    uint64_t size_bytes;
    uint64_t reserved;
    berth_hash128 hash;
} header;

static header header_of(berth_hash128 identity, const void *data, size_t size_bytes) {
    header h;
    memset(&h, 0, sizeof(h));
    memcpy(h.magic, "berthkpt", sizeof(h.magic));
    h.version = 1;
    h.identity = identity;
    h.size_bytes = size_bytes;
    h.hash = berth_hash128_of(data, size_bytes);
    return h;
}

static bool is_private(int fd) {
    struct stat info;
    return fstat(fd, &info) == 0 && info.st_uid == geteuid() &&
           (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

int berth_kept_folder_open(const char *cache_folder, const char *name) {
    if (!cache_folder) return -1;
    int fd = open(cache_folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || !is_private(fd)) {
        if (fd >= 0) close(fd);
        return -1;
    }
    if (mkdirat(fd, name, 0700) != 0 && errno != EEXIST) {
        close(fd);
        return -1;
    }
    int inner = openat(fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    close(fd);
    if (inner >= 0 && is_private(inner)) return inner;
    if (inner >= 0) close(inner);
    return -1;
}

static bool read_all(int fd, void *data, size_t size_bytes) {
    unsigned char *at = data;
    while (size_bytes > 0) {
        ssize_t got = read(fd, at, size_bytes);
        if (got <= 0) return false;
        at += got;
        size_bytes -= (size_t)got;
    }
    return true;
}

// What the file holds behind its header; NULL: nothing to use.
static void *read_file(int fd, berth_hash128 identity, berth_allocator allocator,
                       size_t *out_bytes) {
    header found;
    if (!is_private(fd) || !read_all(fd, &found, sizeof(found))) return NULL;
    if (found.size_bytes == 0 || found.size_bytes > MAX_BYTES) return NULL;
    size_t size_bytes = (size_t)found.size_bytes;
    void *data = berth_alloc(allocator, size_bytes);
    if (!data) return NULL;
    if (read_all(fd, data, size_bytes)) {
        header wanted = header_of(identity, data, size_bytes);
        if (memcmp(&wanted, &found, sizeof(found)) == 0) {
            *out_bytes = size_bytes;
            return data;
        }
    }
    berth_free(allocator, data, size_bytes);
    return NULL;
}

void *berth_kept_file_read(int folder, const char *name, berth_hash128 identity,
                           berth_allocator allocator, size_t *out_bytes) {
    *out_bytes = 0;
    if (folder < 0) return NULL;
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) return NULL;
    void *data = read_file(fd, identity, allocator, out_bytes);
    close(fd);
    return data;
}

void berth_kept_file_write(int folder, const char *name, berth_hash128 identity, const void *data,
                           size_t size_bytes) {
    if (folder < 0 || size_bytes == 0 || size_bytes > MAX_BYTES) return;
    header h = header_of(identity, data, size_bytes);
    berth_file_part parts[] = {{&h, sizeof(h)}, {data, size_bytes}};
    berth_status_free(berth_file_write_parts_at(folder, name, 0600, parts, 2));
}
