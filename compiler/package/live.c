#include "compiler/package/live.h"

// Nodes of a complete binary tree in an array: the root is 1, the leaves begin at leaf_count.
struct berth_live {
    uint32_t leaf_count;  // a power of two
    int64_t *whole;       // per node: what was added to all leaves below it
    int64_t *most;        // per node: of the leaves below it, with what was added from here on
};

berth_live *berth_live_create(berth_arena *arena, uint32_t step_count) {
    berth_live *live = berth_arena_new(arena, berth_live);
    live->leaf_count = 1;
    while (live->leaf_count < step_count) live->leaf_count *= 2;
    live->whole = berth_arena_new_array(arena, int64_t, (size_t)live->leaf_count * 2);
    live->most = berth_arena_new_array(arena, int64_t, (size_t)live->leaf_count * 2);
    return live;
}

static void add_below(berth_live *live, uint32_t node, int64_t bytes) {
    live->whole[node] += bytes;
    live->most[node] += bytes;
}

static void update_above(berth_live *live, uint32_t leaf) {
    for (uint32_t node = leaf / 2; node > 0; node /= 2) {
        int64_t left = live->most[2 * node], right = live->most[2 * node + 1];
        live->most[node] = live->whole[node] + (left > right ? left : right);
    }
}

void berth_live_add(berth_live *live, uint32_t first_step, uint32_t last_step, int64_t bytes) {
    uint32_t left = live->leaf_count + first_step, right = live->leaf_count + last_step;
    for (uint32_t from = left, end = right + 1; from < end; from /= 2, end /= 2) {
        if (from % 2 == 1) add_below(live, from++, bytes);
        if (end % 2 == 1) add_below(live, --end, bytes);
    }
    update_above(live, left);
    update_above(live, right);
}

uint64_t berth_live_peak(const berth_live *live) {
    return (uint64_t)live->most[1];
}

uint32_t berth_live_peak_step(const berth_live *live) {
    uint32_t node = 1;
    while (node < live->leaf_count)
        node = 2 * node + (live->most[2 * node] < live->most[2 * node + 1]);
    return node - live->leaf_count;
}
