// The folder of compiled kernels behind toolchain.c (private to compiler/). One file per entry,
// <key>.so: a shared object followed by the 16 bytes of its hash, so that a damaged entry is
// noticed and made anew. Several processes may use one folder.
#ifndef BERTH_COMPILER_TOOLCHAIN_CACHE_H_
#define BERTH_COMPILER_TOOLCHAIN_CACHE_H_

#include <stdbool.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/log.h"

// Makes the folder where needed. *out_usable = false, with a warning in the log, when it cannot be
// made or written. Errors: INVALID_ARGUMENT when others can write it.
BERTH_MUST_USE berth_status berth_cache__open(const char *folder, berth_log log, bool *out_usable);
// False when there is no such entry, or a damaged one. Marks the entry as used now.
bool berth_cache__load(const char *folder, berth_hash128 key, berth_arena *arena,
                       const void **out_data, uint64_t *out_size_bytes);
BERTH_MUST_USE berth_status berth_cache__store(const char *folder, berth_hash128 key,
                                               const void *data, size_t size_bytes);
// Removes the least recently used entries until the rest fits (0 = 1 GiB).
void berth_cache__evict(const char *folder, uint64_t limit_bytes);
// Removes a folder of files (no subfolders).
void berth_cache__remove_folder(const char *folder);

#endif  // BERTH_COMPILER_TOOLCHAIN_CACHE_H_
