// What the tests of the toolchain share: a folder of their own, compilers that are scripts, and one
// call that compiles.
#ifndef BERTH_TESTS_SCHEDULE_TOOLCHAIN_CASE_H_
#define BERTH_TESTS_SCHEDULE_TOOLCHAIN_CASE_H_

#include "compiler/toolchain/toolchain.h"
#include "tests/schedule/support.h"

typedef struct toolchain_case {
    bench_case base;
    berth_arena *arena;
    char *folder;                     // removed with all in it
    berth_toolchain_options options;  // target cpu, no cache
} toolchain_case;

toolchain_case toolchain_case_open(void);
void toolchain_case_close(toolchain_case *c);

// A path in the case's folder; made as a folder where `make` is set.
char *toolchain_case_path(toolchain_case *c, const char *name, bool make);
void toolchain_case_write(toolchain_case *c, const char *path, const char *text);
// An executable script.
void toolchain_case_script(toolchain_case *c, const char *path, const char *text);
// Kernels in the cache folder of the options; the first one's path.
uint32_t toolchain_case_entries(toolchain_case *c, char **out_first);

// Compiles `count` functions f0, f1, ... that return 42, 43, ... The status is the caller's.
berth_status toolchain_case_compile(toolchain_case *c, uint32_t count, berth_toolchain_unit *units,
                                    berth_toolchain_image *out_image);
// The same with one unit that must succeed: whether all came from the cache.
bool toolchain_case_cached(toolchain_case *c);

#endif  // BERTH_TESTS_SCHEDULE_TOOLCHAIN_CASE_H_
