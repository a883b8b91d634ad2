#include "compiler/package/latest_access.h"

#include <stdlib.h>

// Nodes of a complete binary tree in an array: the root is 1, the leaves begin at leaf_count.
typedef struct tree {
    uint32_t *below;  // per node: the latest time of any leaf below it
    uint32_t *whole;  // per node: the latest time that was recorded for all leaves below it
} tree;

struct berth_latest_access {
    berth_arena *arena;
    uint64_t *ends;  // of all ranges, ascending, each once; leaf i is [ends[i], ends[i + 1])
    uint32_t end_count;
    uint32_t leaf_count;       // a power of two
    tree *trees;               // [key * 2 + write]
    BERTH_VEC(uint32_t) keys;  // those with a tree
};

static int compare_numbers(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

berth_latest_access *berth_latest_access_create(berth_arena *arena, const berth_byte_range *ranges,
                                                uint32_t range_count, uint32_t key_count) {
    berth_latest_access *latest = berth_arena_new(arena, berth_latest_access);
    latest->arena = arena;
    latest->trees = berth_arena_new_array(arena, tree, (size_t)key_count * 2);
    latest->ends = berth_arena_new_array(arena, uint64_t, (size_t)range_count * 2);
    size_t count = 0;
    for (uint32_t i = 0; i < range_count; ++i) {
        latest->ends[count++] = ranges[i].begin_bytes;
        latest->ends[count++] = ranges[i].end_bytes;
    }
    if (count) qsort(latest->ends, count, sizeof(*latest->ends), compare_numbers);
    for (size_t i = 0; i < count; ++i)
        if (i == 0 || latest->ends[i] != latest->ends[latest->end_count - 1])
            latest->ends[latest->end_count++] = latest->ends[i];
    latest->leaf_count = 1;
    while (latest->leaf_count < latest->end_count) latest->leaf_count *= 2;
    return latest;
}

// The first leaf that begins at `at` or after it.
static uint32_t leaf_of(const berth_latest_access *latest, uint64_t at) {
    uint32_t low = 0;
    uint32_t high = latest->end_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (latest->ends[middle] < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static tree *tree_of(const berth_latest_access *latest, uint32_t key, bool write) {
    return &latest->trees[(size_t)key * 2 + write];
}

// The nodes above a leaf know its latest time.
static void tell_above(tree *t, uint32_t node, uint32_t time) {
    for (node /= 2; node > 0; node /= 2) t->below[node] = time;
}

void berth_latest_access_record(berth_latest_access *latest, uint32_t key, bool write,
                                berth_byte_range range, uint32_t time) {
    tree *t = tree_of(latest, key, write);
    uint32_t low = leaf_of(latest, range.begin_bytes) + latest->leaf_count;
    uint32_t high = leaf_of(latest, range.end_bytes) + latest->leaf_count;
    if (low >= high) return;
    if (!t->below) {
        if (!tree_of(latest, key, !write)->below) berth_vec_push(latest->arena, &latest->keys, key);
        t->below = berth_arena_new_array(latest->arena, uint32_t, (size_t)latest->leaf_count * 2);
        t->whole = berth_arena_new_array(latest->arena, uint32_t, (size_t)latest->leaf_count * 2);
    }
    tell_above(t, low, time);
    tell_above(t, high - 1, time);
    for (; low < high; low /= 2, high /= 2) {
        if (low & 1) {
            t->below[low] = t->whole[low] = time;
            low++;
        }
        if (high & 1) {
            high--;
            t->below[high] = t->whole[high] = time;
        }
    }
}

const uint32_t *berth_latest_access_keys(const berth_latest_access *latest, uint32_t *out_count) {
    *out_count = latest->keys.count;
    return latest->keys.data;
}

static uint32_t larger(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

// The latest time recorded for all leaves below a node above this one.
static uint32_t find_above(const tree *t, uint32_t node) {
    uint32_t time = 0;
    for (node /= 2; node > 0; node /= 2) time = larger(time, t->whole[node]);
    return time;
}

uint32_t berth_latest_access_find(const berth_latest_access *latest, uint32_t key, bool write,
                                  berth_byte_range range) {
    const tree *t = tree_of(latest, key, write);
    if (!t->below || range.begin_bytes >= range.end_bytes) return 0;
    uint32_t low = leaf_of(latest, range.begin_bytes) + latest->leaf_count;
    uint32_t high = leaf_of(latest, range.end_bytes) + latest->leaf_count;
    if (low >= high) return 0;
    uint32_t time = larger(find_above(t, low), find_above(t, high - 1));
    for (; low < high; low /= 2, high /= 2) {
        if (low & 1) time = larger(time, t->below[low++]);
        if (high & 1) time = larger(time, t->below[--high]);
    }
    return time;
}
