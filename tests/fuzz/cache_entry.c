// Any bytes as an entry of the folder of compiled kernels: it is used only if it ends in the hash of
// what it holds, and then it gives just that.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "compiler/toolchain/cache.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[] = "/tmp/berth-fuzz-cache-XXXXXX";

static void remove_folder(void) {
    char path[256];
    snprintf(path, sizeof(path), "rm -rf %s", folder);
    if (system(path) != 0) fprintf(stderr, "%s is left\n", folder);
}

static void open_cache(berth_cache *cache) {
    static bool made;
    if (!made) {
        if (!mkdtemp(folder) || atexit(remove_folder) != 0) abort();
        made = true;
    }
    if (berth_cache__open(folder, (berth_log){0}, cache) || cache->fd < 0) abort();
}

static berth_status load(void *user) {
    const berth_file_part *given = user;
    berth_arena *arena = NULL;
    berth_cache cache;
    BERTH_TRY(berth_arena_create(berth_allocator_system(), &arena));
    open_cache(&cache);
    const berth_hash128 key = berth_hash128_of("key", 3);
    char hex[33], path[256];
    berth_hash128_hex(key, hex);
    snprintf(path, sizeof(path), "%s/%s.o", folder, hex);
    berth_status status = berth_file_write(path, given->data, given->size_bytes);
    const void *data = NULL;
    uint64_t size_bytes = 0;
    bool found = false;
    if (!status)
        status =
            berth_cache__load(&cache, key, BERTH_CACHE_OBJECT, arena, &data, &size_bytes, &found);
    if (!status && found) {
        berth_hash128 hash = berth_hash128_of(data, (size_t)size_bytes);
        const uint8_t *trailer = (const uint8_t *)given->data + size_bytes;
        if (size_bytes + sizeof(hash) != given->size_bytes ||
            memcmp(trailer, &hash, sizeof(hash)) != 0)
            abort();
    }
    berth_cache__close(&cache);
    berth_arena_destroy(arena);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    berth_file_part plain = {.data = data, .size_bytes = size};
    berth_status_ignore(load(&plain));
    // The same with the hash that it should have.
    berth_hash128 hash = berth_hash128_of(data, size);
    uint8_t *whole = malloc(size + sizeof(hash));
    if (!whole) return 0;
    memcpy(whole, data, size);
    memcpy(whole + size, &hash, sizeof(hash));
    berth_file_part good = {.data = whole, .size_bytes = size + sizeof(hash)};
    berth_status_ignore(load(&good));
    free(whole);
    return 0;
}
