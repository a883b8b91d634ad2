// The cache of compiled kernels (<berth/kernel_cache.h>).
#include <berth/kernel_cache.h>

#include "compiler/toolchain/toolchain.h"

struct berth_kernel_cache {
    berth_arena *arena;  // of this struct
    berth_kernel_cache_entry *entries;
    uint32_t count;
};

typedef struct read_job {
    berth_arena *arena;
    const char *folder;
    berth_kernel_cache *cache;
} read_job;

static berth_status read(void *user) {
    read_job *job = user;
    berth_cache_entry *entries = NULL;
    uint32_t count = 0;
    BERTH_TRY(berth_toolchain_cache_list(job->arena, job->folder, &entries, &count));
    job->cache = berth_arena_new(job->arena, berth_kernel_cache);
    job->cache->arena = job->arena;
    job->cache->count = count;
    job->cache->entries = berth_arena_new_array(job->arena, berth_kernel_cache_entry, count);
    for (uint32_t i = 0; i < count; ++i)
        job->cache->entries[i] = (berth_kernel_cache_entry){.name = entries[i].name,
                                                            .what = entries[i].what,
                                                            .machine = entries[i].machine,
                                                            .size_bytes = entries[i].size_bytes,
                                                            .used_s = entries[i].used_s,
                                                            .fault = entries[i].fault};
    return BERTH_OK;
}

berth_status berth_kernel_cache_read(const char *folder, berth_kernel_cache **out_cache) {
    *out_cache = NULL;
    read_job job = {.folder = folder};
    BERTH_TRY(berth_arena_make(read, &job, &job.arena));
    *out_cache = job.cache;
    return BERTH_OK;
}

void berth_kernel_cache_free(berth_kernel_cache *cache) {
    if (cache) berth_arena_destroy(cache->arena);
}

uint32_t berth_kernel_cache_count(const berth_kernel_cache *cache) {
    return cache->count;
}

const berth_kernel_cache_entry *berth_kernel_cache_at(const berth_kernel_cache *cache,
                                                      uint32_t index) {
    return index < cache->count ? &cache->entries[index] : NULL;
}

berth_status berth_kernel_cache_clear(const char *folder, uint32_t *out_count,
                                      uint64_t *out_size_bytes) {
    berth_cache_stats stats = {0};
    berth_status status = berth_toolchain_cache_clear(folder, &stats);
    if (out_count) *out_count = stats.entry_count;
    if (out_size_bytes) *out_size_bytes = stats.size_bytes;
    return status;
}

uint64_t berth_kernel_cache_default_limit_bytes(void) {
    return BERTH_CACHE_LIMIT_BYTES;
}
