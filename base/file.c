#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"

static berth_status io_error(const char *what, const char *path) {
    return berth_status_make(errno == ENOENT ? BERTH_NOT_FOUND : BERTH_IO, "cannot %s \"%s\": %s",
                             what, path, strerror(errno));
}

// The size of an open regular file.
static berth_status size_of(int fd, const char *path, size_t *out_size_bytes) {
    struct stat info;
    if (fstat(fd, &info) != 0) return io_error("read", path);
    if (!S_ISREG(info.st_mode))
        return berth_status_make(BERTH_IO, "\"%s\" is not a regular file", path);
    *out_size_bytes = (size_t)info.st_size;
    return BERTH_OK;
}

static berth_status open_regular(const char *path, int *out_fd, size_t *out_size_bytes) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a FIFO must not block here
    if (fd < 0) return io_error("open", path);
    berth_status status = size_of(fd, path, out_size_bytes);
    if (status)
        close(fd);
    else
        *out_fd = fd;
    return status;
}

berth_status berth_file_map_open(const char *path, berth_mapping *out_mapping, int *out_fd) {
    *out_mapping = (berth_mapping){0};
    *out_fd = -1;
    int fd = -1;
    size_t size_bytes = 0;
    BERTH_TRY(open_regular(path, &fd, &size_bytes));
    berth_status status = BERTH_OK;
    if (size_bytes > 0) {
        void *data = mmap(NULL, size_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
        if (data == MAP_FAILED)
            status = io_error("map", path);
        else
            *out_mapping = (berth_mapping){data, size_bytes};
    }
    if (status)
        close(fd);
    else
        *out_fd = fd;
    return status;
}

berth_status berth_file_map(const char *path, berth_mapping *out_mapping) {
    int fd = -1;
    BERTH_TRY(berth_file_map_open(path, out_mapping, &fd));
    close(fd);
    return BERTH_OK;
}

berth_status berth_file_read_range(int fd, uint64_t offset_bytes, void *data, size_t size_bytes) {
    size_t done = 0;
    while (done < size_bytes) {
        ssize_t got =
            pread(fd, (char *)data + done, size_bytes - done, (off_t)(offset_bytes + done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return berth_status_make(BERTH_IO, "cannot read: %s", strerror(errno));
        if (got == 0) return berth_status_make(BERTH_IO, "the file became shorter");
        done += (size_t)got;
    }
    return BERTH_OK;
}

void berth_file_unmap(berth_mapping mapping) {
    if (!mapping.data) return;
    union {
        const void *constant;
        void *mutable_pointer;
    } data = {.constant = mapping.data};
    munmap(data.mutable_pointer, mapping.size_bytes);
}

void berth_file_drop_pages(berth_mapping mapping) {
    if (!mapping.data) return;
    union {
        const void *constant;
        void *mutable_pointer;
    } data = {.constant = mapping.data};
    (void)madvise(data.mutable_pointer, mapping.size_bytes,
                  MADV_DONTNEED);  // only advice: may fail
}

void berth_file_drop_range(berth_mapping mapping, const void *data, size_t size_bytes) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t first = (uintptr_t)mapping.data;
    uintptr_t begin = (uintptr_t)data;
    if (begin < first || begin - first > mapping.size_bytes ||
        size_bytes > mapping.size_bytes - (begin - first))
        return;
    uintptr_t end = (begin + size_bytes) & ~(page - 1);
    begin = (begin + page - 1) & ~(page - 1);
    if (begin < end) (void)madvise((void *)begin, end - begin, MADV_DONTNEED);
}

static berth_status read_all(int fd, const char *path, char *data, size_t size_bytes) {
    size_t done = 0;
    while (done < size_bytes) {
        ssize_t got = read(fd, data + done, size_bytes - done);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return io_error("read", path);
        if (got == 0)
            return berth_status_make(BERTH_IO, "\"%s\" became shorter while it was read", path);
        done += (size_t)got;
    }
    return BERTH_OK;
}

typedef struct read_call {
    berth_arena *arena;
    size_t size_bytes;
    char *data;
} read_call;

static berth_status allocate(void *user) {
    read_call *call = user;
    call->data = berth_arena_alloc_unset(call->arena, call->size_bytes, 128);
    return BERTH_OK;
}

berth_status berth_file_read_fd(berth_arena *arena, int fd, const char *name, size_t limit_bytes,
                                char **out_data, size_t *out_size_bytes) {
    *out_data = NULL;
    *out_size_bytes = 0;
    size_t size_bytes = 0;
    BERTH_TRY(size_of(fd, name, &size_bytes));
    if (size_bytes > limit_bytes || size_bytes == SIZE_MAX)
        return berth_status_make(BERTH_OUT_OF_RANGE, "\"%s\" has %zu bytes; at most %zu are read",
                                 name, size_bytes, limit_bytes);
    read_call call = {.arena = arena, .size_bytes = size_bytes + 1};
    BERTH_TRY(berth_arena_try(arena, allocate, &call));
    BERTH_TRY(read_all(fd, name, call.data, size_bytes));
    call.data[size_bytes] = 0;
    *out_data = call.data;
    *out_size_bytes = size_bytes;
    return BERTH_OK;
}

berth_status berth_file_read(berth_arena *arena, const char *path, size_t limit_bytes,
                             char **out_data, size_t *out_size_bytes) {
    *out_data = NULL;
    *out_size_bytes = 0;
    int fd = -1;
    size_t size_bytes = 0;
    BERTH_TRY(open_regular(path, &fd, &size_bytes));
    berth_status status =
        berth_file_read_fd(arena, fd, path, limit_bytes, out_data, out_size_bytes);
    close(fd);
    return status;
}

static berth_status write_all(int fd, const char *path, const char *data, size_t size_bytes) {
    while (size_bytes > 0) {
        ssize_t put = write(fd, data, size_bytes);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return io_error("write", path);
        data += put;
        size_bytes -= (size_t)put;
    }
    return BERTH_OK;
}

berth_status berth_file_write_fd(int fd, const char *name, const berth_file_part *parts,
                                 size_t count) {
    for (size_t i = 0; i < count; ++i)
        BERTH_TRY(write_all(fd, name, parts[i].data, parts[i].size_bytes));
    return BERTH_OK;
}

berth_status berth_file_write(const char *path, const void *data, size_t size_bytes) {
    return berth_file_write_parts(path, &(berth_file_part){data, size_bytes}, 1);
}

berth_status berth_file_write_parts(const char *path, const berth_file_part *parts, size_t count) {
    if (strcmp(path, "-") == 0)
        return berth_file_write_fd(STDOUT_FILENO, "standard output", parts, count);
    struct stat info;
    if (stat(path, &info) != 0 || S_ISREG(info.st_mode) || S_ISDIR(info.st_mode))
        return berth_file_write_parts_at(AT_FDCWD, path, 0666, parts, count);
    int fd = open(path, O_WRONLY | O_CLOEXEC);  // /dev/null, a pipe
    if (fd < 0) return io_error("write", path);
    berth_status status = berth_file_write_fd(fd, path, parts, count);
    close(fd);
    return status;
}

// Opens a new file called `name` (which ends in six letters to replace); -1 with errno.
static int open_new(int folder_fd, char *name, unsigned mode) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    char *tail = name + strlen(name) - 6;
    for (int attempt = 0; attempt < 100; ++attempt) {
        const int64_t seed[] = {berth_clock_ns(), getpid(), attempt};
        uint64_t random = berth_hash64(seed, sizeof(seed), 0);
        for (int i = 0; i < 6; ++i, random /= 36) tail[i] = letters[random % 36];
        int fd = openat(folder_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                        (mode_t)mode);
        if (fd >= 0 || errno != EEXIST) return fd;
    }
    return -1;
}

berth_status berth_file_write_parts_at(int folder_fd, const char *name, unsigned mode,
                                       const berth_file_part *parts, size_t count) {
    size_t length = strlen(name) + sizeof(".XXXXXX");
    char *temporary = malloc(length);
    if (!temporary) return berth_status_oom();
    snprintf(temporary, length, "%s.XXXXXX", name);
    berth_status status = BERTH_OK;
    int fd = open_new(folder_fd, temporary, mode);
    if (fd < 0) {
        status = io_error("write", name);
    } else {
        status = berth_file_write_fd(fd, name, parts, count);
        if (!status && fsync(fd) != 0) status = io_error("write", name);
        if (close(fd) != 0 && !status) status = io_error("write", name);
        if (!status && renameat(folder_fd, temporary, folder_fd, name) != 0)
            status = io_error("write", name);
        if (status) unlinkat(folder_fd, temporary, 0);
    }
    free(temporary);
    return status;
}

berth_status berth_file_make_folders(const char *path) {
    char *copy = strdup(path);
    if (!copy) return berth_status_oom();
    berth_status status = BERTH_OK;
    for (char *at = copy + 1;; ++at) {
        if (*at != '/' && *at != 0) continue;
        char held = *at;
        *at = 0;
        if (mkdir(copy, 0700) != 0 && errno != EEXIST) status = io_error("create folder", copy);
        *at = held;
        if (held == 0 || status) break;
    }
    struct stat info;
    if (!status && (stat(path, &info) != 0 || !S_ISDIR(info.st_mode)))
        status = berth_status_make(BERTH_IO, "\"%s\" is not a folder", path);
    free(copy);
    return status;
}

bool berth_file_exists(const char *path) {
    return access(path, F_OK) == 0;
}
