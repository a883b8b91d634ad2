// The system's C compiler as a back end: generated C → ELF shared objects, several compilers at
// once, through a cache on disk.
//
//   berth_toolchain_options options = {.target = target, .cache_folder = folder};
//   berth_toolchain_unit units[] = {{.label = "k0", .source = text}};
//   BERTH_TRY(berth_toolchain_compile(&options, arena, units, 1));
//   // units[0].image and .image_size_bytes are the shared object
//
// The compiler is started without a shell; its temporary folder is removed whatever happens. A
// cache entry's key is the hash of source, flags and the compiler's own identity (path, size, time
// of change, version text). Entries are written atomically; the least recently used go when the
// folder exceeds its limit.
#ifndef BERTH_COMPILER_TOOLCHAIN_H_
#define BERTH_COMPILER_TOOLCHAIN_H_

#include "base/arena.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "target/target.h"

#define BERTH_CACHE_LIMIT_BYTES (UINT64_C(1) << 30)  // unless another limit is given

typedef struct berth_toolchain_options {
    const berth_target *target;  // kind cpu: instruction set flags
    const char *c_compiler;   // name or path; NULL = the first of cc, gcc, clang on `search_path`
    const char *search_path;  // folders separated by ':'; NULL = /usr/local/bin:/usr/bin:/bin
    const char *temporary_folder;  // NULL = /tmp
    const char *cache_folder;      // NULL = no cache; made when it is missing
    uint64_t cache_limit_bytes;    // 0 = 1 GiB
    uint32_t jobs;                 // compilers at once; 0 = online cores
    berth_log log;                 // warnings: a cache that cannot be written
    void (*progress)(void *user, uint32_t done, uint32_t total);  // (optional) units done
    void *progress_user;
    berth_interrupt interrupt;  // (optional) signals wait until the temporary folder is gone
} berth_toolchain_options;

typedef struct berth_toolchain_unit {
    const char *label;   // for messages
    const char *source;  // a complete C file
    const void *image;   // out: shared object, in the arena
    uint64_t image_size_bytes;
    bool cached;  // out: came from the cache
} berth_toolchain_unit;

// Compiles `count` units; equal sources are compiled once. May be called inside berth_arena_try of
// `arena`.
//   errors: UNAVAILABLE no compiler (the message says what to install); INVALID_ARGUMENT a cache
//   folder that others can
//           write; INTERNAL the compiler rejected a source (its message is included); IO temporary
//           files; CANCELLED `interrupt` has one pending
BERTH_MUST_USE berth_status berth_toolchain_compile(const berth_toolchain_options *options,
                                                    berth_arena *arena, berth_toolchain_unit *units,
                                                    uint32_t count);

// What code compiled with these flags needs of a processor: its architecture and features by the
// target's names, separated by spaces ("x86_64 avx2 fma").
const char *berth_toolchain_needs(const berth_target *target, berth_arena *arena);

// Flags for a target, as one text ("-O3 -mavx2 ..."): part of the cache key, shown by reports.
const char *berth_toolchain_flags(const berth_target *target, berth_arena *arena);

// The cache: entries and bytes, and removal of all entries. A folder that does not exist is empty.
// Errors: IO, INVALID_ARGUMENT (others can write the folder).
typedef struct berth_cache_stats {
    uint32_t entry_count;
    uint64_t size_bytes;
} berth_cache_stats;
BERTH_MUST_USE berth_status berth_toolchain_cache_stats(const char *folder,
                                                        berth_cache_stats *out_stats);
BERTH_MUST_USE berth_status berth_toolchain_cache_clear(const char *folder,
                                                        berth_cache_stats *out_removed);

#endif  // BERTH_COMPILER_TOOLCHAIN_H_
