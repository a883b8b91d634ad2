// The system's C compiler as a back end: generated C → one ELF shared object, several compilers at
// once, through a cache on disk.
//
//   berth_toolchain_options options = {.target = target, .cache_folder = folder};
//   berth_toolchain_unit units[] = {{.label = "k0", .source = text}, {.label = "k1", ...}};
//   berth_toolchain_image image;
//   BERTH_TRY(berth_toolchain_compile(&options, arena, units, 2, &image));
//   // image.data, image.size_bytes: a shared object with the functions of all units
//
// The compiler is looked up in a table (find.c) and started without a shell, in a temporary folder
// that is removed whatever happens; one that takes too long is killed with its children. Small parts
// of C files share a compiler (join.h).
//
// A cache entry's key is the hash of source, flags and the compiler's own identity (version text,
// path, size, time of change). The version is asked for once and kept in the cache, until the
// compiler's file changes in any way; what hands on to another compiler (a script, ccache) is asked
// every time. Entries are written atomically; the least recently used go when the folder exceeds its
// limit.
#ifndef BERTH_COMPILER_TOOLCHAIN_TOOLCHAIN_H_
#define BERTH_COMPILER_TOOLCHAIN_TOOLCHAIN_H_

#include "base/arena.h"
#include "base/hash.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "target/target.h"

#define BERTH_CACHE_LIMIT_BYTES (UINT64_C(1) << 30)  // unless another limit is given
#define BERTH_COMPILER_TIME_LIMIT_NS INT64_C(600000000000)

typedef struct berth_toolchain_options {
    const berth_target *target;  // kind cpu: instruction set flags
    const char *c_compiler;   // name or path; NULL = the first of cc, gcc, clang on `search_path`
    const char *search_path;  // folders separated by ':', those that are absolute count; NULL =
                              // /usr/local/bin:/usr/bin:/bin
    const char *temporary_folder;  // NULL = /tmp
    const char *cache_folder;      // NULL = no cache; made when it is missing
    uint64_t cache_limit_bytes;    // 0 = 1 GiB
    uint32_t jobs;                 // compilers at once; 0 = online cores
    int64_t time_limit_ns;         // of one compiler; 0 = BERTH_COMPILER_TIME_LIMIT_NS
    bool
        foreign;  // sources that people wrote: what their compiler suspects is shown where they are
                  // rejected, wrong pointers are errors, and so are symbols that nothing defines
    // (optional) Makes a C file of parts, which may be several units' one after the other; `library` is the hash of all that it
    // may add. Called where a cache has not what would be compiled.
    const char *(*complete)(const char *parts, berth_arena *arena);
    berth_hash128 library;
    berth_log log;  // warnings: a cache that cannot be written
    void (*progress)(void *user, uint32_t done, uint32_t total);  // (optional) units done
    void *progress_user;
    berth_interrupt interrupt;  // (optional) signals wait until the temporary folder is gone
} berth_toolchain_options;

// Object code that is linked with what is compiled.
typedef struct berth_object_code {
    const void *data;
    uint64_t size_bytes;
} berth_object_code;

typedef struct berth_toolchain_unit {
    const char *label;   // for messages
    const char *source;  // a complete C file, unless:
    bool is_part;        // it lacks what options->complete puts in front of it, and may be compiled
                         // together with others
    const berth_object_code *objects;
    uint32_t object_count;
    bool cached;  // out: came from the cache
} berth_toolchain_unit;

typedef struct berth_toolchain_image {
    const void *data;  // shared object, in the arena
    uint64_t size_bytes;
    bool cached;  // nothing was compiled or linked
} berth_toolchain_image;

// Compiles `count` units, at least 1, and links them; functions of different sources have different
// names, and so has all else in parts. Equal sources are compiled once. May be called inside
// berth_arena_try of `arena`.
//   errors: UNAVAILABLE no compiler (the message says what to install); INVALID_ARGUMENT a cache
//   folder that others can
//           write; INTERNAL the compiler rejected a source (its message is included); IO temporary
//           files; CANCELLED `interrupt` has one pending; DEADLINE_EXCEEDED a compiler hangs
BERTH_MUST_USE berth_status berth_toolchain_compile(const berth_toolchain_options *options,
                                                    berth_arena *arena, berth_toolchain_unit *units,
                                                    uint32_t count,
                                                    berth_toolchain_image *out_image);

// What a compilation's options say to the toolchain, for a target of kind cpu; `options` must stay.
// In codegen/c.c.
struct berth_compile_options;
berth_toolchain_options berth_codegen_toolchain(const struct berth_compile_options *options,
                                                const berth_target *target);

// What code compiled with these flags needs of a processor: its architecture and features by the
// target's names, separated by spaces ("x86_64 avx2 fma"). Compilers use the matrix unit (amx-*) only where they are told
// to: `matrix_unit` says whether the code does.
const char *berth_toolchain_needs(const berth_target *target, bool matrix_unit, berth_arena *arena);

// Flags for a target, as one text ("-O3 -mavx2 ..."): part of the cache key, shown by reports.
const char *berth_toolchain_flags(const berth_target *target, berth_arena *arena);

// A program that is kept among the kernels, under their rules (cache.h says which): whoever has the key gives bytes that
// are like code. find: *out_data is NULL where there is none that may be used; else in `arena`, aligned to 128 bytes.
// keep: what is larger than an entry may be is not kept; the least recently used entries go (limit_bytes 0 = 1 GiB).
// Thread-safe, also beside other processes. Errors: INVALID_ARGUMENT others can write the folder; IO; OUT_OF_MEMORY.
BERTH_MUST_USE berth_status berth_toolchain_cache_find_program(const char *folder, berth_log log,
                                                               berth_hash128 key,
                                                               berth_arena *arena,
                                                               const void **out_data,
                                                               uint64_t *out_size_bytes);
BERTH_MUST_USE berth_status berth_toolchain_cache_keep_program(const char *folder, berth_log log,
                                                               berth_hash128 key, const void *data,
                                                               size_t size_bytes,
                                                               uint64_t limit_bytes);

// The cache: entries and bytes, and removal of all entries. A folder that does not exist is empty.
// Errors: IO, INVALID_ARGUMENT (others can write the folder).
typedef struct berth_cache_stats {
    uint32_t entry_count;
    uint64_t size_bytes;
} berth_cache_stats;
BERTH_MUST_USE berth_status berth_toolchain_cache_stats(const char *folder,
                                                        berth_cache_stats *out_stats);
typedef struct berth_cache_entry {
    const char *name;     // of the file
    const char *what;     // "kernels of some functions", "all kernels of a program", "a program for
                          // many shapes", "unfinished"
    const char *machine;  // of the ELF: "x86_64", "aarch64", "arm"; "" = none of these
    uint64_t size_bytes;
    int64_t used_s;     // when it was used last, since 1970
    const char *fault;  // why it will not be used but removed; NULL = it may be used
} berth_cache_entry;
// The most recently used first. Inside berth_arena_try. Errors as above.
BERTH_MUST_USE berth_status berth_toolchain_cache_list(berth_arena *arena, const char *folder,
                                                       berth_cache_entry **out_entries,
                                                       uint32_t *out_count);
BERTH_MUST_USE berth_status berth_toolchain_cache_clear(const char *folder,
                                                        berth_cache_stats *out_removed);

#endif  // BERTH_COMPILER_TOOLCHAIN_TOOLCHAIN_H_
