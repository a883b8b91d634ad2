// Preloaded into a command: allocation number $BERTH_FAIL_MALLOC of the process fails, once.
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

void *__libc_malloc(size_t size_bytes);
void *__libc_calloc(size_t count, size_t size_bytes);
void *__libc_realloc(void *memory, size_t size_bytes);

static atomic_long left = -1;

__attribute__((constructor)) static void start(void) {
    const char *number = getenv("BERTH_FAIL_MALLOC");
    if (number) atomic_store(&left, strtol(number, NULL, 10));
}

static int fails(void) {
    if (atomic_load(&left) < 0 || atomic_fetch_sub(&left, 1) != 1) return 0;
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t size_bytes) {
    return fails() ? NULL : __libc_malloc(size_bytes);
}

void *calloc(size_t count, size_t size_bytes) {
    return fails() ? NULL : __libc_calloc(count, size_bytes);
}

void *realloc(void *memory, size_t size_bytes) {
    return fails() ? NULL : __libc_realloc(memory, size_bytes);
}
