// Compiled kernels of tests: in the folder of the whole test run ($BERTH_CACHE_DIR; scripts/test.sh has one for its release and
// its debug build, so that the latter compiles none of them again), else in a temporary one.
#ifndef BERTH_TESTS_KERNEL_CACHE_H_
#define BERTH_TESTS_KERNEL_CACHE_H_

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "compiler/toolchain/toolchain.h"

typedef struct kernel_cache {
    const char *folder;
    char own[40];  // "" = it is the test run's
} kernel_cache;

static inline void kernel_cache_open(kernel_cache *cache) {
    cache->own[0] = '\0';
    cache->folder = getenv("BERTH_CACHE_DIR");
    if (cache->folder && cache->folder[0]) return;
    snprintf(cache->own, sizeof(cache->own), "/tmp/berth-test-kernels-XXXXXX");
    cr_assert_not_null(mkdtemp(cache->own));
    cache->folder = cache->own;
}

static inline void kernel_cache_close(kernel_cache *cache) {
    berth_cache_stats stats;
    if (!cache->own[0]) return;
    berth_status_ignore(berth_toolchain_cache_clear(cache->own, &stats));
    remove(cache->own);
}

#endif  // BERTH_TESTS_KERNEL_CACHE_H_
