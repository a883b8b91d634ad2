#include "compiler/toolchain_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "compiler/toolchain.h"

#define TRAILER_BYTES sizeof(berth_hash128)

// A folder that others can write could hand us anybody's code.
static berth_status check_folder(const char *folder) {
    struct stat info;
    if (stat(folder, &info) != 0)
        return berth_status_make(errno == ENOENT ? BERTH_NOT_FOUND : BERTH_IO,
                                 "cannot read \"%s\": %s", folder, strerror(errno));
    if (!S_ISDIR(info.st_mode))
        return berth_status_make(BERTH_INVALID_ARGUMENT, "\"%s\" is not a folder", folder);
    if ((info.st_mode & (S_IWGRP | S_IWOTH)) || (info.st_uid != geteuid() && info.st_uid != 0))
        return berth_status_make(
            BERTH_INVALID_ARGUMENT,
            "others can write the kernel cache \"%s\": change its mode to 0700 or name another",
            folder);
    return BERTH_OK;
}

berth_status berth_cache__open(const char *folder, berth_log log, bool *out_usable) {
    *out_usable = false;
    berth_status status = berth_file_exists(folder) ? BERTH_OK : berth_file_make_folders(folder);
    if (!status) {
        status = check_folder(folder);
        if (berth_status_code(status) == BERTH_INVALID_ARGUMENT) return status;
    }
    if (!status && access(folder, W_OK | X_OK) != 0)
        status = berth_status_make(BERTH_IO, "cannot write \"%s\": %s", folder, strerror(errno));
    *out_usable = !status;
    if (status)
        berth_log_message(log, BERTH_LOG_WARNING, "no kernel cache: %s",
                          berth_status_message(status));
    berth_status_free(status);
    return BERTH_OK;
}

static void entry_path(const char *folder, berth_hash128 key, char out[4096]) {
    char hex[33];
    berth_hash128_hex(key, hex);
    snprintf(out, 4096, "%s/%s.so", folder, hex);
}

bool berth_cache__load(const char *folder, berth_hash128 key, berth_arena *arena,
                       const void **out_data, uint64_t *out_size_bytes) {
    char path[4096];
    entry_path(folder, key, path);
    if (access(path, R_OK) != 0) return false;
    char *data = NULL;
    size_t size = 0;
    berth_status status = berth_file_read(arena, path, SIZE_MAX / 2, &data, &size);
    bool good = !status && size > TRAILER_BYTES;
    berth_status_free(status);
    if (good) {
        berth_hash128 hash = berth_hash128_of(data, size - TRAILER_BYTES);
        good = memcmp(data + size - TRAILER_BYTES, &hash, sizeof(hash)) == 0;
    }
    if (!good) {
        unlink(path);
        return false;
    }
    utimensat(AT_FDCWD, path, NULL, 0);
    *out_data = data;
    *out_size_bytes = size - TRAILER_BYTES;
    return true;
}

berth_status berth_cache__store(const char *folder, berth_hash128 key, const void *data,
                                size_t size_bytes) {
    char path[4096];
    entry_path(folder, key, path);
    berth_hash128 hash = berth_hash128_of(data, size_bytes);
    berth_file_part parts[] = {{data, size_bytes}, {&hash, sizeof(hash)}};
    return berth_file_write_parts(path, parts, 2);
}

// ---- listing
// --------------------------------------------------------------------------------------------------------

typedef struct entry {
    char name[64];
    uint64_t size_bytes;
    struct timespec used;
} entry;

// KEY.so, or KEY.so.XXXXXX: one that a killed process was writing.
static bool is_entry(const char *name) {
    size_t length = strlen(name);
    return (length == 35 || (length == 42 && name[35] == '.')) &&
           strspn(name, "0123456789abcdef") == 32 && strncmp(name + 32, ".so", 3) == 0;
}

// Entries of a folder, to be freed by the caller; NULL and 0 when it cannot be read.
static entry *list_entries(const char *folder, uint32_t *out_count) {
    *out_count = 0;
    DIR *dir = opendir(folder);
    if (!dir) return NULL;
    entry *entries = NULL;
    uint32_t capacity = 0;
    for (struct dirent *at = readdir(dir); at; at = readdir(dir)) {
        struct stat info;
        if (!is_entry(at->d_name) ||
            fstatat(dirfd(dir), at->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        if (*out_count == capacity) {
            capacity = capacity ? capacity * 2 : 64;
            entry *wider = realloc(entries, capacity * sizeof(*entries));
            if (!wider) break;
            entries = wider;
        }
        entry *e = &entries[(*out_count)++];
        memset(e, 0, sizeof(*e));
        memcpy(e->name, at->d_name, strlen(at->d_name) + 1);
        e->size_bytes = (uint64_t)info.st_size;
        e->used = info.st_mtim;
    }
    closedir(dir);
    return entries;
}

static int older_first(const void *a, const void *b) {
    const entry *x = a;
    const entry *y = b;
    if (x->used.tv_sec != y->used.tv_sec) return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
    if (x->used.tv_nsec != y->used.tv_nsec) return x->used.tv_nsec < y->used.tv_nsec ? -1 : 1;
    return strcmp(x->name, y->name);
}

static bool remove_entry(const char *folder, const entry *e) {
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s", folder, e->name);
    return unlink(path) == 0;
}

void berth_cache__evict(const char *folder, uint64_t limit_bytes) {
    if (limit_bytes == 0) limit_bytes = BERTH_CACHE_LIMIT_BYTES;
    uint32_t count = 0;
    entry *entries = list_entries(folder, &count);
    uint64_t total = 0;
    for (uint32_t i = 0; i < count; ++i) total += entries[i].size_bytes;
    if (total > limit_bytes) {
        qsort(entries, count, sizeof(*entries), older_first);
        for (uint32_t i = 0; i < count && total > limit_bytes; ++i)
            if (remove_entry(folder, &entries[i])) total -= entries[i].size_bytes;
    }
    free(entries);
}

static berth_status walk(const char *folder, bool clear, berth_cache_stats *out) {
    *out = (berth_cache_stats){0};
    berth_status status = check_folder(folder);
    if (berth_status_code(status) == BERTH_NOT_FOUND) {
        berth_status_free(status);
        return BERTH_OK;
    }
    if (status) return status;
    uint32_t count = 0;
    entry *entries = list_entries(folder, &count);
    for (uint32_t i = 0; i < count; ++i) {
        if (clear && !remove_entry(folder, &entries[i])) continue;
        out->entry_count++;
        out->size_bytes += entries[i].size_bytes;
    }
    free(entries);
    return BERTH_OK;
}

berth_status berth_toolchain_cache_stats(const char *folder, berth_cache_stats *out_stats) {
    return walk(folder, false, out_stats);
}

berth_status berth_toolchain_cache_clear(const char *folder, berth_cache_stats *out_removed) {
    return walk(folder, true, out_removed);
}

void berth_cache__remove_folder(const char *folder) {
    DIR *dir = opendir(folder);
    if (dir) {
        for (struct dirent *at = readdir(dir); at; at = readdir(dir))
            if (strcmp(at->d_name, ".") != 0 && strcmp(at->d_name, "..") != 0)
                unlinkat(dirfd(dir), at->d_name, 0);
        closedir(dir);
    }
    rmdir(folder);
}
