// Compiled pipelines on disk, in the folder VULKAN of the kernel cache: one file per device and
// version of its driver. Vulkan wants to be given what it gave before, and nothing else: the file is
// taken only where it is the user's own and its header and hash are right. What cannot be read or
// written is not there: the cache saves time and nothing else.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "devices/vulkan/vulkan.h"

enum { MAX_BYTES = 256 << 20 };

typedef struct cache_header {
    char magic[8];  // "berthvkc"
    uint32_t version;
    uint32_t vendor_id;
    uint32_t device_id;
    uint8_t cache_id[VK_UUID_SIZE];
    uint32_t reserved;
    uint64_t size_bytes;
    berth_hash128 hash;
} cache_header;

static cache_header header_of(const vulkan_facts *facts, const void *data, size_t size_bytes) {
    cache_header header;
    memset(&header, 0, sizeof(header));
    memcpy(header.magic, "berthvkc", sizeof(header.magic));
    header.version = 1;
    header.vendor_id = facts->vendor_id;
    header.device_id = facts->device_id;
    memcpy(header.cache_id, facts->cache_id, VK_UUID_SIZE);
    header.size_bytes = size_bytes;
    header.hash = berth_hash128_of(data, size_bytes);
    return header;
}

static bool is_private(int fd) {
    struct stat info;
    return fstat(fd, &info) == 0 && info.st_uid == geteuid() &&
           (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// The folder, made where it is missing; -1: none that may be used.
static int open_folder(const char *folder) {
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || !is_private(fd)) {
        if (fd >= 0) close(fd);
        return -1;
    }
    if (mkdirat(fd, "vulkan", 0700) != 0 && errno != EEXIST) {
        close(fd);
        return -1;
    }
    int inner = openat(fd, "vulkan", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    close(fd);
    if (inner >= 0 && is_private(inner)) return inner;
    if (inner >= 0) close(inner);
    return -1;
}

static void file_name(const vulkan_facts *facts, char out[64]) {
    int length = snprintf(out, 64, "%08x-%08x-", facts->vendor_id, facts->device_id);
    for (uint32_t i = 0; i < VK_UUID_SIZE && length > 0 && length < 60; ++i)
        length += snprintf(out + length, 64 - (size_t)length, "%02x", facts->cache_id[i]);
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
static void *read_file(const vulkan_device *device, int fd, size_t *out_bytes) {
    cache_header header;
    if (!is_private(fd) || !read_all(fd, &header, sizeof(header))) return NULL;
    if (header.size_bytes == 0 || header.size_bytes > MAX_BYTES) return NULL;
    size_t size_bytes = (size_t)header.size_bytes;
    void *data = berth_alloc(device->base.allocator, size_bytes);
    if (!data) return NULL;
    if (read_all(fd, data, size_bytes)) {
        cache_header wanted = header_of(device->facts, data, size_bytes);
        if (memcmp(&wanted, &header, sizeof(header)) == 0) {
            *out_bytes = size_bytes;
            return data;
        }
    }
    berth_free(device->base.allocator, data, size_bytes);
    return NULL;
}

static void *load(const vulkan_device *device, size_t *out_bytes) {
    char name[64];
    *out_bytes = 0;
    if (device->cache_folder < 0) return NULL;
    file_name(device->facts, name);
    int fd = openat(device->cache_folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) return NULL;
    void *data = read_file(device, fd, out_bytes);
    close(fd);
    return data;
}

berth_status berth_vulkan__cache_open(vulkan_device *device, const char *folder) {
    device->cache_folder = folder ? open_folder(folder) : -1;
    size_t size_bytes = 0;
    void *data = load(device, &size_bytes);
    device->cache_hash = berth_hash64(data, size_bytes, 0);
    VkPipelineCacheCreateInfo info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO,
                                      .initialDataSize = size_bytes,
                                      .pInitialData = data};
    VkResult result = device->vk.vkCreatePipelineCache(device->handle, &info, NULL, &device->cache);
    berth_free(device->base.allocator, data, size_bytes);
    return berth_vulkan__check(result, "open the device");
}

static void save(const vulkan_device *device) {
    size_t size_bytes = 0;
    if (device->vk.vkGetPipelineCacheData(device->handle, device->cache, &size_bytes, NULL) !=
            VK_SUCCESS ||
        size_bytes == 0 || size_bytes > MAX_BYTES)
        return;
    void *data = berth_alloc(device->base.allocator, size_bytes);
    size_t got = size_bytes;
    if (data &&
        device->vk.vkGetPipelineCacheData(device->handle, device->cache, &got, data) ==
            VK_SUCCESS &&
        berth_hash64(data, got, 0) != device->cache_hash) {
        cache_header header = header_of(device->facts, data, got);
        berth_file_part parts[] = {{&header, sizeof(header)}, {data, got}};
        char name[64];
        file_name(device->facts, name);
        berth_status_free(berth_file_write_parts_at(device->cache_folder, name, 0600, parts, 2));
    }
    berth_free(device->base.allocator, data, size_bytes);
}

void berth_vulkan__cache_close(vulkan_device *device) {
    if (!device->cache) return;
    if (device->cache_folder >= 0) {
        save(device);
        close(device->cache_folder);
    }
    device->vk.vkDestroyPipelineCache(device->handle, device->cache, NULL);
}
