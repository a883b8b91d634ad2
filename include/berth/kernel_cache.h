// The folder of compiled kernels that the compiler's option cache_folder names (libberth-compiler).
//
//   berth_kernel_cache *cache;
//   berth_status status = berth_kernel_cache_read("/var/cache/app", &cache);
//   for (uint32_t i = 0; !status && i < berth_kernel_cache_count(cache); ++i)
//       puts(berth_kernel_cache_at(cache, i)->name);
//   berth_kernel_cache_free(cache);
//
// Everything here is thread-safe; other processes may use the folder meanwhile. What was read does not change.
#ifndef BERTH_KERNEL_CACHE_H_
#define BERTH_KERNEL_CACHE_H_

#include <berth/status.h>
#include <stdint.h>

BERTH_BEGIN

typedef struct berth_kernel_cache berth_kernel_cache;

// A file of it. Later versions may add members at the end.
typedef struct berth_kernel_cache_entry {
    const char *name;     // of the file
    const char *what;     // "kernels of some functions", "all kernels of a program", "a program for
                          // many shapes", "unfinished"
    const char *machine;  // "x86_64", "aarch64", "arm"; "" = none of these
    uint64_t size_bytes;
    int64_t used_s;     // when it was used last, in seconds since 1970
    const char *fault;  // why it will not be used but removed; NULL = it may be used
} berth_kernel_cache_entry;

// Lists what is in the folder; one that does not exist is empty. Errors: IO; OUT_OF_MEMORY.
BERTH_API BERTH_MUST_USE berth_status berth_kernel_cache_read(const char *folder,
                                                              berth_kernel_cache **out_cache);
BERTH_API void berth_kernel_cache_free(berth_kernel_cache *cache);  // NULL is fine
BERTH_API uint32_t berth_kernel_cache_count(const berth_kernel_cache *cache);
// NULL when there is no such index.
BERTH_API const berth_kernel_cache_entry *berth_kernel_cache_at(const berth_kernel_cache *cache,
                                                                uint32_t index);

// Removes all entries, and says how many there were and their bytes (either may be NULL). Errors: IO.
BERTH_API BERTH_MUST_USE berth_status berth_kernel_cache_clear(const char *folder,
                                                               uint32_t *out_count,
                                                               uint64_t *out_size_bytes);

// Size above which the least recently used entries go by themselves, without the option cache_limit_bytes.
BERTH_API uint64_t berth_kernel_cache_default_limit_bytes(void);

BERTH_END

#endif  // BERTH_KERNEL_CACHE_H_
