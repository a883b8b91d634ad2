// Preloaded into a program: one call of the system fails, all others work.
//
//   LD_PRELOAD=libfail_at.so FAIL_KIND=memory FAIL_AT=17 FAIL_LOG=log berth run m.onnx
//
// FAIL_KIND  memory  malloc and its kin give NULL
//            files   open, read, write, fsync, rename, mmap, ... fail as a disk that breaks or is
//                    full would
//            helper  as memory, in forks of the process instead of the process itself
//            cut     the file that a mapping is of becomes empty right after (FAIL_AT: which mapping);
//                    files below FAIL_FOLDER alone
// FAIL_AT    the number of the call that fails, from 1; 0 or nothing: none
// FAIL_LOG   (optional) file that gets the number of calls there were, at the end
//
// Only the process that was started so counts (but for helper): forks of it and what they run do
// not.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum kind { KIND_NONE, KIND_MEMORY, KIND_FILES, KIND_HELPER, KIND_CUT };

static enum kind kind;
static long fail_at;
static pid_t process;
static const char *log_path;
static atomic_long calls;

__attribute__((constructor)) static void start(void) {
    const char *name = getenv("FAIL_KIND");
    const char *number = getenv("FAIL_AT");
    fail_at = number ? atol(number) : 0;
    log_path = getenv("FAIL_LOG");
    process = getpid();
    if (name && strcmp(name, "memory") == 0) kind = KIND_MEMORY;
    if (name && strcmp(name, "files") == 0) kind = KIND_FILES;
    if (name && strcmp(name, "helper") == 0) kind = KIND_HELPER;
    if (name && strcmp(name, "cut") == 0) kind = KIND_CUT;
}

// Whether this call, one of the given kind, is the one.
static bool is_it(enum kind which) {
    bool helper = kind == KIND_HELPER && which == KIND_MEMORY;
    if ((kind != which && !helper) || (getpid() == process) == helper) return false;
    return atomic_fetch_add(&calls, 1) + 1 == fail_at;
}

// Declares `real`, the function that this library stands in front of.
#define REAL(name)                                                                                 \
    __typeof__(&name) real;                                                                        \
    void *found = dlsym(RTLD_NEXT, #name);                                                         \
    memcpy(&real, &found, sizeof(real))

__attribute__((destructor)) static void end(void) {
    if (!log_path || getpid() != process) return;
    long count = atomic_load(&calls);
    kind = KIND_NONE;
    FILE *file = fopen(log_path, "w");
    if (!file) return;
    fprintf(file, "%ld\n", count);
    fclose(file);
}

// ---- memory -------------------------------------------------------------------------------------

// glibc's own names: dlsym itself allocates.
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *pointer, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

void *malloc(size_t size) {
    if (is_it(KIND_MEMORY)) return errno = ENOMEM, NULL;
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    if (is_it(KIND_MEMORY)) return errno = ENOMEM, NULL;
    return __libc_calloc(count, size);
}

void *realloc(void *pointer, size_t size) {
    if (is_it(KIND_MEMORY)) return errno = ENOMEM, NULL;
    return __libc_realloc(pointer, size);
}

void *memalign(size_t alignment, size_t size) {
    if (is_it(KIND_MEMORY)) return errno = ENOMEM, NULL;
    return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    return memalign(alignment, size);
}

int posix_memalign(void **out_pointer, size_t alignment, size_t size) {
    void *pointer = memalign(alignment, size);
    if (!pointer) return ENOMEM;
    *out_pointer = pointer;
    return 0;
}

// ---- files --------------------------------------------------------------------------------------

static mode_t mode_of(int flags, va_list arguments) {
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
}

int open(const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    if (is_it(KIND_FILES)) return errno = EMFILE, -1;
    REAL(open);
    return real(path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    if (is_it(KIND_FILES)) return errno = EMFILE, -1;
    REAL(openat);
    return real(folder, path, flags, mode);
}

FILE *fopen(const char *path, const char *mode) {
    if (is_it(KIND_FILES)) return errno = EMFILE, NULL;
    REAL(fopen);
    return real(path, mode);
}

ssize_t read(int fd, void *data, size_t size) {
    if (is_it(KIND_FILES)) return errno = EIO, -1;
    REAL(read);
    return real(fd, data, size);
}

ssize_t write(int fd, const void *data, size_t size) {
    if (is_it(KIND_FILES)) return errno = ENOSPC, -1;
    REAL(write);
    return real(fd, data, size);
}

int fsync(int fd) {
    if (is_it(KIND_FILES)) return errno = EIO, -1;
    REAL(fsync);
    return real(fd);
}

int close(int fd) {
    REAL(close);
    int result = real(fd);
    if (is_it(KIND_FILES)) return errno = EIO, -1;  // closed, as Linux does it
    return result;
}

int rename(const char *from, const char *to) {
    if (is_it(KIND_FILES)) return errno = EIO, -1;
    REAL(rename);
    return real(from, to);
}

int renameat(int from_folder, const char *from, int to_folder, const char *to) {
    if (is_it(KIND_FILES)) return errno = EIO, -1;
    REAL(renameat);
    return real(from_folder, from, to_folder, to);
}

int fstat(int fd, struct stat *info) {
    if (is_it(KIND_FILES)) return errno = EIO, -1;
    REAL(fstat);
    return real(fd, info);
}

char *mkdtemp(char *path) {
    if (is_it(KIND_FILES)) return errno = ENOSPC, NULL;
    REAL(mkdtemp);
    return real(path);
}

int memfd_create(const char *name, unsigned flags) {
    if (is_it(KIND_FILES)) return errno = EMFILE, -1;
    REAL(memfd_create);
    return real(name, flags);
}

// Whether a file lies in the folder whose files may be cut.
static bool is_ours(int fd) {
    char link[64], path[4096];
    const char *folder = getenv("FAIL_FOLDER");
    if (kind != KIND_CUT || !folder || strlen(folder) < 6) return false;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof(path) - 1);
    if (length < 0) return false;
    path[length] = 0;
    size_t folder_length = strlen(folder);
    return strncmp(path, folder, folder_length) == 0 && path[folder_length] == '/';
}

void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset) {
    REAL(mmap);
    if (fd < 0) return real(address, size, protection, flags, fd, offset);
    if (is_it(KIND_FILES)) return errno = ENOMEM, MAP_FAILED;
    void *data = real(address, size, protection, flags, fd, offset);
    if (is_ours(fd) && is_it(KIND_CUT)) {
        char path[64];
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        if (truncate(path, 0) != 0) abort();
    }
    return data;
}
