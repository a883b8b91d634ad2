#include "target/route_memo.h"

enum { entry_count = 4096 };

typedef struct entry {
    uint32_t from, to;
    uint64_t size_bytes;
    bool found;
    berth_target_route route;
} entry;

struct berth_route_memo {
    berth_arena *arena;
    const berth_multi_target *target;
    entry *entries[entry_count];  // NULL = nobody asked yet
};

berth_route_memo *berth_route_memo_create(berth_arena *arena, const berth_multi_target *target) {
    berth_route_memo *memo = berth_arena_new(arena, berth_route_memo);
    memo->arena = arena;
    memo->target = target;
    return memo;
}

// Multiplicative hashing (Knuth, "The Art of Computer Programming", volume 3, section 6.4).
static uint32_t place_of(uint32_t from, uint32_t to, uint64_t size_bytes) {
    const uint64_t golden = 0x9e3779b97f4a7c15u;
    uint64_t key = (((uint64_t)from << 32 | to) * golden) ^ size_bytes;
    return (uint32_t)(key * golden >> 52);
}

bool berth_route_memo_get(berth_route_memo *memo, uint32_t from, uint32_t to, uint64_t size_bytes,
                          berth_target_route *out_route) {
    entry **at = &memo->entries[place_of(from, to, size_bytes)];
    if (!*at || (*at)->from != from || (*at)->to != to || (*at)->size_bytes != size_bytes) {
        if (!*at) *at = berth_arena_new(memo->arena, entry);
        **at = (entry){.from = from, .to = to, .size_bytes = size_bytes};
        (*at)->found = berth_multi_target_route(memo->target, memo->arena, from, to, size_bytes,
                                                &(*at)->route);
    }
    *out_route = (*at)->route;
    return (*at)->found;
}
