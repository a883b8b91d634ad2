// The folder of compiled kernels behind toolchain.c (private to compiler/). One file per entry: an
// object (<key>.o), a shared object (<key>.so), what a compiler says of itself (<key>.version) or a
// program (<key>.program), followed by the 16 bytes of its hash, so that a damaged entry is noticed and made anew. Several
// processes may use one folder.
//
// What is in an entry runs. So the folder must be this user's (or root's) and nobody else's to
// write, and so must each folder above it be, so that nobody can put another in its place; an entry
// that another user owns or can write, that is a link, or that is larger than any we make is
// removed and not used. The folder is known by its descriptor from the check on.
#ifndef BERTH_COMPILER_TOOLCHAIN_CACHE_H_
#define BERTH_COMPILER_TOOLCHAIN_CACHE_H_

#include <stdbool.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/log.h"

#define BERTH_CACHE_ENTRY_LIMIT_BYTES (UINT64_C(256) << 20)

typedef struct berth_cache {
    int fd;  // -1 = no cache
    berth_log log;
} berth_cache;

typedef enum berth_cache_form {
    BERTH_CACHE_OBJECT,
    BERTH_CACHE_SHARED_OBJECT,
    BERTH_CACHE_VERSION,
    BERTH_CACHE_PROGRAM,
} berth_cache_form;

// Makes the folder where needed. No cache, with a warning in the log, when it cannot be made or
// written, or others can replace it. Errors: INVALID_ARGUMENT when others can write it.
BERTH_MUST_USE berth_status berth_cache__open(const char *folder, berth_log log,
                                              berth_cache *out_cache);
void berth_cache__close(berth_cache *cache);
// False when there is no such entry, or none that may be used; that one is removed. Marks the entry
// as used now. Errors: OUT_OF_MEMORY.
BERTH_MUST_USE berth_status berth_cache__load(const berth_cache *cache, berth_hash128 key,
                                              berth_cache_form form, berth_arena *arena,
                                              const void **out_data, uint64_t *out_size_bytes,
                                              bool *out_found);
BERTH_MUST_USE berth_status berth_cache__store(const berth_cache *cache, berth_hash128 key,
                                               berth_cache_form form, const void *data,
                                               size_t size_bytes);
// Removes what may not be used, then the least recently used entries until the rest fits (0 = 1
// GiB).
void berth_cache__evict(const berth_cache *cache, uint64_t limit_bytes);

#endif  // BERTH_COMPILER_TOOLCHAIN_CACHE_H_
