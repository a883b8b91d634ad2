#include "compiler/toolchain/cache.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "compiler/toolchain/toolchain.h"

#define TRAILER_BYTES sizeof(berth_hash128)

// ---- who can write ------------------------------------------------------------------------------

static bool is_ours(const struct stat *info) {
    return info->st_uid == geteuid() || info->st_uid == 0;
}

static bool others_write(const struct stat *info) {
    return info->st_mode & (S_IWGRP | S_IWOTH);
}

// A folder that others can write could hand us anybody's code.
static berth_status check_folder(const char *folder, const struct stat *info) {
    if (!S_ISDIR(info->st_mode))
        return berth_status_make(BERTH_INVALID_ARGUMENT, "\"%s\" is not a folder", folder);
    if (others_write(info) || !is_ours(info))
        return berth_status_make(
            BERTH_INVALID_ARGUMENT,
            "others can write the kernel cache \"%s\": change its mode to 0700 or name another",
            folder);
    return BERTH_OK;
}

// Whoever can rename in a folder above can put another folder in the place of this one. Where the
// folder has the sticky bit (as /tmp has), only owners rename.
static berth_status check_parents(const char *folder) {
    char *path = realpath(folder, NULL);
    if (!path && errno == ENOMEM) return berth_status_oom();
    if (!path)
        return berth_status_make(BERTH_IO, "cannot read \"%s\": %s", folder, strerror(errno));
    berth_status status = BERTH_OK;
    for (char *end = strrchr(path, '/'); end && !status; end = strrchr(path, '/')) {
        end[end == path] = 0;  // keeps the root's own slash
        struct stat info;
        if (stat(path, &info) != 0)
            status = berth_status_make(BERTH_IO, "cannot read \"%s\": %s", path, strerror(errno));
        else if (!is_ours(&info) || (others_write(&info) && !(info.st_mode & S_ISVTX)))
            status = berth_status_make(
                BERTH_INVALID_ARGUMENT,
                "others can replace \"%s\", because they can write \"%s\" above it", folder, path);
        if (end == path) break;
    }
    free(path);
    return status;
}

// ---- opening ------------------------------------------------------------------------------------

static berth_status io_error(const char *what, const char *name) {
    return berth_status_make(errno == ENOENT ? BERTH_NOT_FOUND : BERTH_IO, "cannot %s \"%s\": %s",
                             what, name, strerror(errno));
}

static berth_status open_folder(const char *folder, int *out_fd) {
    int fd = open(folder, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return io_error("read", folder);
    struct stat info;
    berth_status status =
        fstat(fd, &info) == 0 ? check_folder(folder, &info) : io_error("read", folder);
    if (status)
        close(fd);
    else
        *out_fd = fd;
    return status;
}

// The warning that goes on without a cache, or an error.
static berth_status go_without(berth_status status, berth_log log) {
    if (berth_status_code(status) == BERTH_OUT_OF_MEMORY) return status;
    berth_log_message(log, BERTH_LOG_WARNING, "no kernel cache: %s", berth_status_message(status));
    berth_status_free(status);
    return BERTH_OK;
}

berth_status berth_cache__open(const char *folder, berth_log log, berth_cache *out_cache) {
    *out_cache = (berth_cache){.fd = -1, .log = log};
    int fd = -1;
    berth_status status = berth_file_exists(folder) ? BERTH_OK : berth_file_make_folders(folder);
    if (!status) {
        status = open_folder(folder, &fd);
        if (berth_status_code(status) == BERTH_INVALID_ARGUMENT) return status;
    }
    if (!status) status = check_parents(folder);
    if (!status && access(folder, W_OK | X_OK) != 0) status = io_error("write", folder);
    if (status) {
        if (fd >= 0) close(fd);
        return go_without(status, log);
    }
    out_cache->fd = fd;
    return BERTH_OK;
}

void berth_cache__close(berth_cache *cache) {
    if (cache->fd >= 0) close(cache->fd);
    cache->fd = -1;
}

// ---- entries ------------------------------------------------------------------------------------

static const struct {
    const char *tail;  // after the key
    const char *what;
} forms[] = {
    [BERTH_CACHE_OBJECT] = {".o", "kernels of some functions"},
    [BERTH_CACHE_SHARED_OBJECT] = {".so", "all kernels of a program"},
    [BERTH_CACHE_VERSION] = {".version", "what a compiler says of itself"},
    [BERTH_CACHE_PROGRAM] = {".program", "a program for many shapes"},
};
enum { form_count = sizeof(forms) / sizeof(forms[0]) };

typedef struct entry_name {
    char text[48];
} entry_name;

static entry_name name_of(berth_hash128 key, berth_cache_form form) {
    entry_name name;
    char hex[33];
    berth_hash128_hex(key, hex);
    snprintf(name.text, sizeof(name.text), "%s%s", hex, forms[form].tail);
    return name;
}

// Why an entry may not be used; NULL = it may.
static const char *fault_of(const struct stat *info) {
    if (!S_ISREG(info->st_mode)) return "it is no regular file";
    if (!is_ours(info)) return "it belongs to another user";
    if (others_write(info)) return "others can write it";
    if (info->st_size < 0 || (uint64_t)info->st_size > BERTH_CACHE_ENTRY_LIMIT_BYTES)
        return "it is larger than any entry";
    return NULL;
}

static void discard(const berth_cache *cache, const char *name, const char *fault) {
    bool removed = unlinkat(cache->fd, name, 0) == 0;
    berth_log_message(cache->log, BERTH_LOG_WARNING, "kernel cache: entry %s is %s: %s", name,
                      removed ? "removed and made anew" : "not used, and cannot be removed", fault);
}

// Reads the entry behind `fd`. *out_fault: why it may not be used.
static berth_status read_entry(int fd, const char *name, berth_arena *arena, char **out_data,
                               size_t *out_size_bytes, const char **out_fault) {
    struct stat info;
    *out_fault = fstat(fd, &info) == 0 ? fault_of(&info) : "it cannot be read";
    if (*out_fault) return BERTH_OK;
    size_t size = 0;
    berth_status status =
        berth_file_read_fd(arena, fd, name, BERTH_CACHE_ENTRY_LIMIT_BYTES, out_data, &size);
    if (berth_status_code(status) == BERTH_OUT_OF_MEMORY) return status;
    if (status || size <= TRAILER_BYTES) {
        berth_status_free(status);
        *out_fault = "it is cut";
        return BERTH_OK;
    }
    *out_size_bytes = size - TRAILER_BYTES;
    berth_hash128 hash = berth_hash128_of(*out_data, *out_size_bytes);
    if (memcmp(*out_data + *out_size_bytes, &hash, sizeof(hash)) != 0) *out_fault = "it is damaged";
    return BERTH_OK;
}

berth_status berth_cache__load(const berth_cache *cache, berth_hash128 key, berth_cache_form form,
                               berth_arena *arena, const void **out_data, uint64_t *out_size_bytes,
                               bool *out_found) {
    *out_found = false;
    if (cache->fd < 0) return BERTH_OK;
    entry_name name = name_of(key, form);
    int fd = openat(cache->fd, name.text, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        if (errno != ENOENT) discard(cache, name.text, strerror(errno));
        return BERTH_OK;
    }
    char *data = NULL;
    size_t size_bytes = 0;
    const char *fault = NULL;
    berth_status status = read_entry(fd, name.text, arena, &data, &size_bytes, &fault);
    if (!status && !fault) futimens(fd, NULL);
    close(fd);
    if (status) return status;
    if (fault) {
        discard(cache, name.text, fault);
        return BERTH_OK;
    }
    *out_data = data;
    *out_size_bytes = size_bytes;
    *out_found = true;
    return BERTH_OK;
}

berth_status berth_cache__store(const berth_cache *cache, berth_hash128 key, berth_cache_form form,
                                const void *data, size_t size_bytes) {
    entry_name name = name_of(key, form);
    berth_hash128 hash = berth_hash128_of(data, size_bytes);
    berth_file_part parts[] = {{data, size_bytes}, {&hash, sizeof(hash)}};
    return berth_file_write_parts_at(cache->fd, name.text, 0600, parts, 2);
}

berth_status berth_toolchain_cache_find_program(const char *folder, berth_log log,
                                                berth_hash128 key, berth_arena *arena,
                                                const void **out_data, uint64_t *out_size_bytes) {
    berth_cache cache;
    bool found = false;
    *out_data = NULL;
    *out_size_bytes = 0;
    if (!berth_file_exists(folder)) return BERTH_OK;
    BERTH_TRY(berth_cache__open(folder, log, &cache));
    berth_status status = berth_cache__load(&cache, key, BERTH_CACHE_PROGRAM, arena, out_data,
                                            out_size_bytes, &found);
    berth_cache__close(&cache);
    return status;
}

berth_status berth_toolchain_cache_keep_program(const char *folder, berth_log log,
                                                berth_hash128 key, const void *data,
                                                size_t size_bytes, uint64_t limit_bytes) {
    berth_cache cache;
    if (size_bytes > BERTH_CACHE_ENTRY_LIMIT_BYTES - TRAILER_BYTES) return BERTH_OK;
    BERTH_TRY(berth_cache__open(folder, log, &cache));
    if (cache.fd < 0) return BERTH_OK;
    berth_status status = berth_cache__store(&cache, key, BERTH_CACHE_PROGRAM, data, size_bytes);
    if (!status) berth_cache__evict(&cache, limit_bytes);
    berth_cache__close(&cache);
    return status;
}

// ---- listing ------------------------------------------------------------------------------------

typedef struct entry {
    char name[56];
    uint64_t size_bytes;
    struct timespec used;
    const char *fault;  // why it may not be used; NULL = it may
} entry;

// KEY.o and its like, and these with .XXXXXX: what a killed process was writing.
static bool is_entry(const char *name) {
    if (strspn(name, "0123456789abcdef") != 32) return false;
    const char *tail = name + 32;
    for (int i = 0; i < form_count; ++i) {
        size_t length = strlen(forms[i].tail);
        if (strncmp(tail, forms[i].tail, length) != 0) continue;
        if (tail[length] == 0 || (tail[length] == '.' && strlen(tail + length) == 7)) return true;
    }
    return false;
}

static berth_status add_entry(int fd, const char *name, entry **entries, uint32_t *count,
                              uint32_t *capacity) {
    struct stat info;
    if (!is_entry(name) || fstatat(fd, name, &info, AT_SYMLINK_NOFOLLOW) != 0) return BERTH_OK;
    if (*count == *capacity) {
        uint32_t wanted = *capacity ? *capacity * 2 : 64;
        entry *wider = realloc(*entries, wanted * sizeof(**entries));
        if (!wider) return berth_status_oom();
        *entries = wider;
        *capacity = wanted;
    }
    entry *e = &(*entries)[(*count)++];
    memset(e, 0, sizeof(*e));
    memcpy(e->name, name, strlen(name) + 1);
    e->size_bytes = info.st_size > 0 ? (uint64_t)info.st_size : 0;
    e->used = info.st_mtim;
    e->fault = fault_of(&info);
    return BERTH_OK;
}

// Entries of a folder, to be freed by the caller, after errors too. `fd` stays open.
static berth_status list_entries(int fd, entry **out_entries, uint32_t *out_count) {
    *out_entries = NULL;
    *out_count = 0;
    int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = again >= 0 ? fdopendir(again) : NULL;
    if (!dir) {
        berth_status status =
            errno == ENOMEM ? berth_status_oom() : io_error("read", "the kernel cache");
        if (again >= 0) close(again);
        return status;
    }
    uint32_t capacity = 0;
    berth_status status = BERTH_OK;
    for (struct dirent *at = readdir(dir); at && !status; at = readdir(dir))
        status = add_entry(fd, at->d_name, out_entries, out_count, &capacity);
    closedir(dir);
    return status;
}

static int older_first(const void *a, const void *b) {
    const entry *x = a;
    const entry *y = b;
    if (!x->fault != !y->fault) return x->fault ? -1 : 1;
    if (x->used.tv_sec != y->used.tv_sec) return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
    if (x->used.tv_nsec != y->used.tv_nsec) return x->used.tv_nsec < y->used.tv_nsec ? -1 : 1;
    return strcmp(x->name, y->name);
}

void berth_cache__evict(const berth_cache *cache, uint64_t limit_bytes) {
    if (cache->fd < 0) return;
    if (limit_bytes == 0) limit_bytes = BERTH_CACHE_LIMIT_BYTES;
    uint32_t count = 0;
    entry *entries = NULL;
    // What cannot be listed stays; the next compilation comes here again.
    berth_status_ignore(list_entries(cache->fd, &entries, &count));
    uint64_t total = 0;
    for (uint32_t i = 0; i < count; ++i) total += entries[i].size_bytes;
    if (count) qsort(entries, count, sizeof(*entries), older_first);
    for (uint32_t i = 0; i < count && (total > limit_bytes || entries[i].fault); ++i)
        if (unlinkat(cache->fd, entries[i].name, 0) == 0) total -= entries[i].size_bytes;
    free(entries);
}

static berth_status walk(const char *folder, bool clear, berth_cache_stats *out) {
    *out = (berth_cache_stats){0};
    int fd = -1;
    berth_status status = open_folder(folder, &fd);
    if (berth_status_code(status) == BERTH_NOT_FOUND) {
        berth_status_free(status);
        return BERTH_OK;
    }
    if (status) return status;
    uint32_t count = 0;
    entry *entries = NULL;
    status = list_entries(fd, &entries, &count);
    for (uint32_t i = 0; i < count && !status; ++i) {
        if (clear && unlinkat(fd, entries[i].name, 0) != 0) continue;
        out->entry_count++;
        out->size_bytes += entries[i].size_bytes;
    }
    free(entries);
    close(fd);
    return status;
}

// ELF header (System V ABI): e_machine. An entry that is gone meanwhile, or is no ELF file, has none.
static berth_status find_machine(int fd, const char *name, const char **out_machine) {
    unsigned char header[20];
    *out_machine = "";
    int file = openat(fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) return errno == ENOENT ? BERTH_OK : io_error("read", name);
    ssize_t length = read(file, header, sizeof(header));
    berth_status status = length < 0 ? io_error("read", name) : BERTH_OK;
    close(file);
    if (length != (ssize_t)sizeof(header) || memcmp(header, "\177ELF", 4) != 0) return status;
    switch (header[18] | header[19] << 8) {
    case EM_X86_64: *out_machine = "x86_64"; break;
    case EM_AARCH64: *out_machine = "aarch64"; break;
    case EM_ARM: *out_machine = "arm"; break;
    default: break;
    }
    return status;
}

static void close_fd(void *fd) {
    close((int)(intptr_t)fd);
}

static const char *what_is(const char *name) {
    for (int i = 0; i < form_count; ++i)
        if (strcmp(strchr(name, '.'), forms[i].tail) == 0) return forms[i].what;
    return "unfinished";
}

berth_status berth_toolchain_cache_list(berth_arena *arena, const char *folder,
                                        berth_cache_entry **out_entries, uint32_t *out_count) {
    *out_entries = NULL;
    *out_count = 0;
    int fd = -1;
    berth_status status = open_folder(folder, &fd);
    if (berth_status_code(status) == BERTH_NOT_FOUND) {
        berth_status_free(status);
        return BERTH_OK;
    }
    if (status) return status;
    uint32_t count = 0;
    entry *entries = NULL;
    status = list_entries(fd, &entries, &count);
    berth_arena *scratch = berth_arena_create_child(arena);
    berth_arena_defer(scratch, free, entries);
    berth_arena_defer(scratch, close_fd, (void *)(intptr_t)fd);
    if (status) return status;
    if (count) qsort(entries, count, sizeof(*entries), older_first);
    *out_entries = berth_arena_new_array(arena, berth_cache_entry, count);
    *out_count = count;
    for (uint32_t i = 0; i < count && !status; ++i) {
        const entry *e = &entries[count - 1 - i];
        const char *machine = "";
        if (!e->fault) status = find_machine(fd, e->name, &machine);
        (*out_entries)[i] = (berth_cache_entry){.name = berth_arena_strdup(arena, e->name),
                                                .what = what_is(e->name),
                                                .machine = machine,
                                                .size_bytes = e->size_bytes,
                                                .used_s = e->used.tv_sec,
                                                .fault = e->fault};
    }
    berth_arena_destroy(scratch);
    return status;
}

berth_status berth_toolchain_cache_stats(const char *folder, berth_cache_stats *out_stats) {
    return walk(folder, false, out_stats);
}

berth_status berth_toolchain_cache_clear(const char *folder, berth_cache_stats *out_removed) {
    return walk(folder, true, out_removed);
}
