#include "drivers/vta/driver/pool.h"

static const uint64_t page = 4096;

berth_status berth_vta_pool_take(berth_vta_pool *pool, uint64_t size_bytes,
                                 berth_vta_range *range) {
    uint64_t capacity = pool->memory.size_bytes;
    uint64_t wanted = size_bytes > capacity ? UINT64_MAX : (size_bytes + page - 1) / page * page;
    if (wanted == 0) wanted = page;
    pthread_mutex_lock(&pool->lock);
    berth_vta_range **at = &pool->first;
    uint64_t offset = 0;
    while (*at && (*at)->offset - offset < wanted) {
        offset = (*at)->offset + (*at)->size_bytes;
        at = &(*at)->next;
    }
    bool fits = wanted <= capacity && offset <= capacity - wanted;
    if (fits) {
        *range = (berth_vta_range){offset, wanted, *at};
        *at = range;
    }
    pthread_mutex_unlock(&pool->lock);
    if (fits) return BERTH_OK;
    return berth_status_make(BERTH_OUT_OF_MEMORY,
                             "no %llu bytes in one piece are left of the VTA's %llu",
                             (unsigned long long)size_bytes, (unsigned long long)capacity);
}

void berth_vta_pool_give(berth_vta_pool *pool, berth_vta_range *range) {
    if (range->size_bytes == 0) return;
    pthread_mutex_lock(&pool->lock);
    berth_vta_range **at = &pool->first;
    while (*at != range) at = &(*at)->next;
    *at = range->next;
    pthread_mutex_unlock(&pool->lock);
    range->size_bytes = 0;
}
