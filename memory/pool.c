#include "memory/pool.h"

#include <pthread.h>
#include <string.h>

#include "memory/bump.h"
#include "memory/hide.h"
#include "memory/tlsf.h"

enum { class_bytes = 64, class_count = 16, small_bytes = class_bytes * class_count };
#define LEAST_REGION_BYTES ((size_t)256 << 10)
#define MOST_SPARE_BYTES ((size_t)64 << 20)  // of a region, beyond the block that it is taken for

typedef struct small_block small_block;
struct small_block {
    small_block *next;
};

struct berth_pool {
    berth_allocator allocator;
    pthread_mutex_t lock;
    bool closed;
    berth_bump small;                // memory of the size classes
    small_block *free[class_count];  // blocks that were given back
    uint64_t small_count;            // live ones
    berth_tlsf large;
    uint64_t said_count;             // of refused blocks, by berth_pool_say_refusal
    uint64_t run_bytes, runs_bytes;  // most live bytes: of the run in progress, of those before it
    berth_pool_facts facts;
};

// ---- what is taken from the system --------------------------------------------------------------

// Whoever calls these has the lock, has it again when they return, and not in between: the system may take its time.
static void *take_from_system(berth_pool *pool, size_t size_bytes) {
    berth_pool_facts *facts = &pool->facts;
    if (facts->limit_bytes && (facts->reserved_bytes > facts->limit_bytes ||
                               size_bytes > facts->limit_bytes - facts->reserved_bytes))
        return NULL;
    facts->reserved_bytes += size_bytes;
    pthread_mutex_unlock(&pool->lock);
    void *taken = berth_alloc(pool->allocator, size_bytes);
    pthread_mutex_lock(&pool->lock);
    if (!taken) {
        facts->reserved_bytes -= size_bytes;
        return NULL;
    }
    facts->system_count++;
    if (facts->reserved_bytes > facts->most_reserved_bytes)
        facts->most_reserved_bytes = facts->reserved_bytes;
    return taken;
}

// Not inlined: libberth is to stay small.
__attribute__((noinline)) static void give_to_system(berth_pool *pool, void *taken,
                                                     size_t size_bytes) {
    pool->facts.reserved_bytes -= size_bytes;
    pthread_mutex_unlock(&pool->lock);
    berth_free(pool->allocator, taken, size_bytes);
    pthread_mutex_lock(&pool->lock);
}

// As the allocator of `small`, which is given its memory before it asks, and never resizes.
static void *resize_reserved(void *state, void *pointer, size_t old_size_bytes,
                             size_t new_size_bytes) {
    if (!new_size_bytes) give_to_system(state, pointer, old_size_bytes);
    return NULL;
}

static void drop_empty_regions(berth_pool *pool, uint64_t keep_bytes) {
    while (pool->facts.reserved_bytes > keep_bytes) {
        size_t size_bytes = 0;
        void *region = berth_tlsf_remove_empty(&pool->large, &size_bytes);
        if (!region) return;
        give_to_system(pool, region, size_bytes);
    }
}

// Half as much as there is, so that growing needs take a few regions; where that is refused, what is needed, and
// where that is, too, once more without the regions that nothing is in.
static bool add_region(berth_pool *pool, size_t block_bytes) {
    const size_t needed = berth_tlsf_region_bytes(block_bytes);
    size_t spare = pool->facts.reserved_bytes / 2;
    if (!needed) return false;
    if (spare > MOST_SPARE_BYTES) spare = MOST_SPARE_BYTES;
    size_t size = needed > LEAST_REGION_BYTES ? needed : LEAST_REGION_BYTES;
    if (size < spare) size = spare;
    void *region = take_from_system(pool, size);
    if (!region) region = take_from_system(pool, size = needed);
    if (!region) {
        drop_empty_regions(pool, 0);
        region = take_from_system(pool, size);
    }
    if (!region) return false;
    berth_tlsf_add(&pool->large, region, size);
    return true;
}

// ---- blocks -------------------------------------------------------------------------------------

// Bytes of the blocks that so many are taken from.
static size_t class_of(size_t size_bytes) {
    return (size_bytes + class_bytes - 1) / class_bytes * class_bytes;
}

static void *take_small(berth_pool *pool, size_t size_bytes) {
    small_block **free = &pool->free[(size_bytes - 1) / class_bytes];
    const size_t size = class_of(size_bytes);
    small_block *block = *free;
    if (block) {
        *free = block->next;
    } else {
        const size_t need = berth_bump_need(&pool->small, size);
        void *memory = need ? take_from_system(pool, need) : NULL;
        if (memory) berth_bump_add(&pool->small, memory, need);
        block = berth_bump_take(&pool->small, size);
    }
    if (!block) return NULL;
    pool->small_count++;
    BERTH_MEMORY_SHOW(block, size);
    return block;
}

// Once none is live, all of their memory may be divided anew.
static void give_small(berth_pool *pool, void *taken, size_t size_bytes) {
    small_block *block = taken, **free = &pool->free[(size_bytes - 1) / class_bytes];
    block->next = *free;
    *free = block;
    BERTH_MEMORY_HIDE(block + 1, class_of(size_bytes) - sizeof(*block));
    if (--pool->small_count > 0) return;
    memset(pool->free, 0, sizeof(pool->free));
    berth_bump_back(&pool->small, (berth_bump_mark){0});
}

static void *take(berth_pool *pool, size_t size_bytes) {
    berth_pool_facts *facts = &pool->facts;
    void *taken = NULL;
    if (size_bytes <= small_bytes) {
        taken = take_small(pool, size_bytes);
    } else {
        taken = berth_tlsf_take(&pool->large, size_bytes);
        if (!taken && add_region(pool, size_bytes))
            taken = berth_tlsf_take(&pool->large, size_bytes);
    }
    if (!taken) {
        facts->refused_count++;
        facts->refused_bytes = size_bytes;
        return NULL;
    }
    facts->allocation_count++;
    facts->live_count++;
    facts->live_bytes += size_bytes;
    if (facts->live_bytes > facts->most_live_bytes) facts->most_live_bytes = facts->live_bytes;
    if (facts->live_bytes > pool->run_bytes) pool->run_bytes = facts->live_bytes;
    return taken;
}

static void give(berth_pool *pool, void *taken, size_t size_bytes) {
    pool->facts.live_count--;
    pool->facts.live_bytes -= size_bytes;
    if (size_bytes <= small_bytes)
        give_small(pool, taken, size_bytes);
    else
        berth_tlsf_give(&pool->large, taken);
}

// ---- the pool -----------------------------------------------------------------------------------

static void destroy(berth_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    berth_bump_close(&pool->small);
    drop_empty_regions(pool, 0);
    pthread_mutex_unlock(&pool->lock);
    pthread_mutex_destroy(&pool->lock);
    berth_free(pool->allocator, pool, sizeof(*pool));
}

static void *resize(void *state, void *pointer, size_t old_size_bytes, size_t new_size_bytes) {
    berth_pool *pool = state;
    pthread_mutex_lock(&pool->lock);
    void *made = new_size_bytes ? take(pool, new_size_bytes) : NULL;
    if (made && pointer)
        memcpy(made, pointer, old_size_bytes < new_size_bytes ? old_size_bytes : new_size_bytes);
    if (pointer && (made || !new_size_bytes)) give(pool, pointer, old_size_bytes);
    const bool gone = pool->closed && pool->facts.live_count == 0;
    pthread_mutex_unlock(&pool->lock);
    if (gone) destroy(pool);
    return made;
}

berth_status berth_pool_create(berth_allocator allocator, berth_pool **out_pool) {
    berth_pool *pool = berth_calloc(allocator, 1, sizeof(*pool));
    *out_pool = pool;
    if (!pool) return berth_status_oom();
    pool->allocator = allocator;
    pool->small.allocator = (berth_allocator){resize_reserved, pool};
    pthread_mutex_init(&pool->lock, NULL);  // does not fail on Linux
    return BERTH_OK;
}

void berth_pool_close(berth_pool *pool) {
    if (!pool) return;
    pthread_mutex_lock(&pool->lock);
    pool->closed = true;
    const bool gone = pool->facts.live_count == 0;
    pthread_mutex_unlock(&pool->lock);
    if (gone) destroy(pool);
}

berth_allocator berth_pool_allocator(berth_pool *pool) {
    return (berth_allocator){resize, pool};
}

void berth_pool_set_limit(berth_pool *pool, uint64_t limit_bytes) {
    pthread_mutex_lock(&pool->lock);
    pool->facts.limit_bytes = limit_bytes;
    pthread_mutex_unlock(&pool->lock);
}

void berth_pool_end_run(berth_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    const uint64_t before = pool->runs_bytes - pool->runs_bytes / 8;
    pool->runs_bytes = pool->run_bytes > before ? pool->run_bytes : before;
    pool->run_bytes = pool->facts.live_bytes;
    drop_empty_regions(pool, 2 * pool->runs_bytes + LEAST_REGION_BYTES);
    pthread_mutex_unlock(&pool->lock);
}

berth_status berth_pool_say_refusal(berth_pool *pool, berth_status status) {
    berth_pool_facts facts;
    berth_pool_get_facts(pool, &facts);
    const bool refused = facts.limit_bytes && facts.refused_count > pool->said_count;
    pool->said_count = facts.refused_count;
    if (!refused || berth_status_code(status) != BERTH_OUT_OF_MEMORY) return status;
    berth_status_free(status);
    return berth_status_make(
        BERTH_OUT_OF_MEMORY,
        "values of the run need more memory than their limit of %llu bytes: no room for one of "
        "%llu bytes. Raise the limit, or give smaller inputs",
        (unsigned long long)facts.limit_bytes, (unsigned long long)facts.refused_bytes);
}

void berth_pool_get_facts(berth_pool *pool, berth_pool_facts *out_facts) {
    pthread_mutex_lock(&pool->lock);
    *out_facts = pool->facts;
    pthread_mutex_unlock(&pool->lock);
}
