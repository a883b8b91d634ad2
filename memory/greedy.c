// First-fit heuristics. By size with gaps: Pisarchyk and Lee 2020, "Efficient Memory Management for
// Deep Neural Net Inference", section 5 (they take the smallest gap; here the lowest, which leaves
// more in one piece above).
#include "memory/greedy.h"

#include <stdlib.h>
#include <string.h>

#include "memory/greedy_private.h"

typedef enum greedy_method { METHOD_GAPS, METHOD_STACK, METHOD_SKYLINE } greedy_method;

static const struct {
    const char *name;
    greedy_measure measure;
    greedy_method method;
} heuristics[] = {
    {"size gaps", GREEDY_SIZE, METHOD_GAPS},
    {"size stack", GREEDY_SIZE, METHOD_STACK},
    {"conflicts gaps", GREEDY_CONFLICTS, METHOD_GAPS},
    {"conflicts stack", GREEDY_CONFLICTS, METHOD_STACK},
    {"area gaps", GREEDY_AREA, METHOD_GAPS},
    {"area stack", GREEDY_AREA, METHOD_STACK},
    {"duration gaps", GREEDY_DURATION, METHOD_GAPS},
    {"duration stack", GREEDY_DURATION, METHOD_STACK},
    {"skyline duration", GREEDY_DURATION, METHOD_SKYLINE},
    {"skyline area", GREEDY_AREA, METHOD_SKYLINE},
    {"skyline size", GREEDY_SIZE, METHOD_SKYLINE},
};
enum { heuristic_count = sizeof(heuristics) / sizeof(heuristics[0]), FIRST_SKYLINE = 8 };

uint32_t berth_memory_greedy_count(void) {
    return heuristic_count;
}

const char *berth_memory_greedy_name(uint32_t heuristic) {
    return heuristic < heuristic_count ? heuristics[heuristic].name : "";
}

typedef struct ranked {
    double measure;
    uint32_t index;
} ranked;

static int compare_ranked(const void *left, const void *right) {
    const ranked *a = left;
    const ranked *b = right;
    if (a->measure != b->measure) return a->measure > b->measure ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

static int compare_times(const void *left, const void *right) {
    int64_t a = *(const int64_t *)left;
    int64_t b = *(const int64_t *)right;
    return a < b ? -1 : a > b;
}

// Number of values below `limit` in a sorted array.
static uint32_t count_below(const int64_t *sorted, uint32_t count, int64_t limit) {
    uint32_t low = 0;
    uint32_t high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (sorted[middle] < limit)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// Intervals live together with each: those that start before it ends, less those that end before it
// starts. O(n log n)
static uint64_t count_conflicts(berth_arena *scratch, const berth_memory_interval *intervals,
                                uint32_t count, double *out_conflicts) {
    int64_t *starts = berth_arena_new_array(scratch, int64_t, count);
    int64_t *ends = berth_arena_new_array(scratch, int64_t, count);
    for (uint32_t i = 0; i < count; ++i) {
        starts[i] = intervals[i].lower;
        ends[i] = intervals[i].upper;
    }
    qsort(starts, count, sizeof(*starts), compare_times);
    qsort(ends, count, sizeof(*ends), compare_times);
    uint64_t total = 0;
    for (uint32_t i = 0; i < count; ++i) {
        uint32_t started = count_below(starts, count, intervals[i].upper);
        uint32_t ended = intervals[i].lower == INT64_MAX
                             ? count
                             : count_below(ends, count, intervals[i].lower + 1);
        uint32_t conflicts = started - ended - 1;
        if (out_conflicts) out_conflicts[i] = conflicts;
        total += conflicts;
    }
    return total / 2;
}

static double *measure_all(berth_arena *scratch, const berth_memory_interval *intervals,
                           uint32_t count, greedy_measure measure) {
    double *values = berth_arena_new_array(scratch, double, count);
    if (measure == GREEDY_CONFLICTS) (void)count_conflicts(scratch, intervals, count, values);
    for (uint32_t i = 0; i < count && measure != GREEDY_CONFLICTS; ++i) {
        double duration = (double)intervals[i].upper - (double)intervals[i].lower;
        double size = (double)intervals[i].size_bytes;
        values[i] = measure == GREEDY_SIZE   ? size
                    : measure == GREEDY_AREA ? size * duration
                                             : duration;
    }
    return values;
}

static uint32_t *sort_by(berth_arena *scratch, const double *measure, uint32_t count) {
    ranked *entries = berth_arena_new_array(scratch, ranked, count);
    uint32_t *order = berth_arena_new_array(scratch, uint32_t, count);
    for (uint32_t i = 0; i < count; ++i) entries[i] = (ranked){measure[i], i};
    qsort(entries, count, sizeof(*entries), compare_ranked);
    for (uint32_t i = 0; i < count; ++i) order[i] = entries[i].index;
    return order;
}

// Segment tree over cliques: highest end of what is placed. Range maximum and range raise, O(log n)
// each.
typedef struct height_tree {
    uint32_t leaves;   // power of two
    uint64_t *most;    // [2 * leaves] of the node's range
    uint64_t *raised;  // [2 * leaves] what the whole range was raised to
} height_tree;

static uint64_t tree_max(const height_tree *tree, uint32_t node, uint32_t low, uint32_t high,
                         uint32_t first, uint32_t end) {
    if (end <= low || high <= first) return 0;
    if (first <= low && high <= end) return tree->most[node];
    uint32_t middle = low + (high - low) / 2;
    uint64_t left = tree_max(tree, 2 * node, low, middle, first, end);
    uint64_t right = tree_max(tree, 2 * node + 1, middle, high, first, end);
    uint64_t most = left > right ? left : right;
    return most > tree->raised[node] ? most : tree->raised[node];
}

static void tree_raise(height_tree *tree, uint32_t node, uint32_t low, uint32_t high,
                       uint32_t first, uint32_t end, uint64_t height) {
    if (end <= low || high <= first) return;
    if (height > tree->most[node]) tree->most[node] = height;
    if (first <= low && high <= end) {
        if (height > tree->raised[node]) tree->raised[node] = height;
        return;
    }
    uint32_t middle = low + (high - low) / 2;
    tree_raise(tree, 2 * node, low, middle, first, end, height);
    tree_raise(tree, 2 * node + 1, middle, high, first, end, height);
}

static uint64_t stack(berth_arena *scratch, const berth_memory_interval *intervals, uint32_t count,
                      const uint32_t *order, uint64_t *out_offsets) {
    berth_memory_cliques cliques = berth_memory_find_cliques(scratch, intervals, count);
    height_tree tree = {.leaves = 1};
    while (tree.leaves < cliques.count) tree.leaves *= 2;
    tree.most = berth_arena_new_array(scratch, uint64_t, (size_t)tree.leaves * 2);
    tree.raised = berth_arena_new_array(scratch, uint64_t, (size_t)tree.leaves * 2);
    for (uint32_t k = 0; k < count; ++k) {
        uint32_t i = order[k];
        uint64_t below = tree_max(&tree, 1, 0, tree.leaves, cliques.first[i], cliques.end[i]);
        out_offsets[i] = berth_memory_align_up(below, intervals[i].alignment_bytes);
        tree_raise(&tree, 1, 0, tree.leaves, cliques.first[i], cliques.end[i],
                   out_offsets[i] + intervals[i].size_bytes);
    }
    return count ? tree.most[1] : 0;
}

typedef struct taken {
    uint64_t offset;
    uint64_t end;
} taken;

static int compare_taken(const void *left, const void *right) {
    const taken *a = left;
    const taken *b = right;
    return a->offset < b->offset ? -1 : a->offset > b->offset;
}

// Pairs live together, as lists of neighbours. Sweeps over starts in order of time.
typedef struct conflict_lists {
    uint32_t *begin;  // [count + 1] into others
    uint32_t *others;
} conflict_lists;

static conflict_lists list_conflicts(berth_arena *scratch, const berth_memory_interval *intervals,
                                     uint32_t count) {
    double *conflicts = berth_arena_new_array(scratch, double, count);
    double *starts = berth_arena_new_array(scratch, double, count);
    (void)count_conflicts(scratch, intervals, count, conflicts);
    conflict_lists lists = {.begin = berth_arena_new_array(scratch, uint32_t, (size_t)count + 1)};
    for (uint32_t i = 0; i < count; ++i) {
        lists.begin[i + 1] = lists.begin[i] + (uint32_t)conflicts[i];
        starts[i] = -(double)intervals[i].lower;
    }
    lists.others = berth_arena_new_array(scratch, uint32_t, lists.begin[count]);
    uint32_t *at = berth_arena_copy(scratch, lists.begin, ((size_t)count + 1) * sizeof(uint32_t));
    uint32_t *live = berth_arena_new_array(scratch, uint32_t, count);
    uint32_t *order = sort_by(scratch, starts, count);
    uint32_t live_count = 0;
    for (uint32_t k = 0; k < count; ++k) {
        uint32_t i = order[k];
        uint32_t kept = 0;
        for (uint32_t l = 0; l < live_count; ++l) {
            uint32_t other = live[l];
            if (intervals[other].upper <= intervals[i].lower) continue;
            live[kept++] = other;
            lists.others[at[i]++] = other;
            lists.others[at[other]++] = i;
        }
        live[kept] = i;
        live_count = kept + 1;
    }
    return lists;
}

static uint64_t lowest_gap(const taken *sorted, uint32_t count, uint64_t size, uint64_t alignment) {
    uint64_t offset = 0;
    for (uint32_t i = 0; i < count; ++i) {
        if (sorted[i].offset >= offset && sorted[i].offset - offset >= size) return offset;
        if (sorted[i].end > offset) offset = berth_memory_align_up(sorted[i].end, alignment);
    }
    return offset;
}

static uint64_t fill_gaps(berth_arena *scratch, const berth_memory_interval *intervals,
                          uint32_t count, const uint32_t *order, uint64_t *out_offsets) {
    conflict_lists lists = list_conflicts(scratch, intervals, count);
    taken *around = berth_arena_new_array(scratch, taken, count);
    bool *placed = berth_arena_new_array(scratch, bool, count);
    uint64_t height = 0;
    for (uint32_t k = 0; k < count; ++k) {
        uint32_t i = order[k];
        uint32_t found = 0;
        for (uint32_t l = lists.begin[i]; l < lists.begin[i + 1]; ++l) {
            uint32_t other = lists.others[l];
            if (placed[other])
                around[found++] =
                    (taken){out_offsets[other], out_offsets[other] + intervals[other].size_bytes};
        }
        qsort(around, found, sizeof(*around), compare_taken);
        out_offsets[i] =
            lowest_gap(around, found, intervals[i].size_bytes, intervals[i].alignment_bytes);
        placed[i] = true;
        uint64_t end = out_offsets[i] + intervals[i].size_bytes;
        if (end > height) height = end;
    }
    return height;
}

uint64_t berth_memory_greedy(berth_arena *arena, const berth_memory_interval *intervals,
                             uint32_t count, uint32_t heuristic, uint64_t *out_offsets) {
    if (heuristic >= heuristic_count) return UINT64_MAX;
    berth_arena *scratch = berth_arena_create_child(arena);
    uint64_t height = UINT64_MAX;
    greedy_method method = heuristics[heuristic].method;
    double *measure = measure_all(scratch, intervals, count, heuristics[heuristic].measure);
    if (method == METHOD_SKYLINE) {
        height = berth_memory__skyline(scratch, intervals, count, measure, out_offsets);
    } else if (method == METHOD_STACK) {
        height = stack(scratch, intervals, count, sort_by(scratch, measure, count), out_offsets);
    } else if (count_conflicts(scratch, intervals, count, NULL) <= BERTH_MEMORY_GREEDY_PAIR_LIMIT) {
        height =
            fill_gaps(scratch, intervals, count, sort_by(scratch, measure, count), out_offsets);
    }
    berth_arena_destroy(scratch);
    return height;
}

// Worth its time on a large problem.
static bool is_fast(uint32_t heuristic, uint64_t pairs) {
    if (heuristics[heuristic].method == METHOD_SKYLINE) return true;
    return heuristics[heuristic].method == METHOD_GAPS &&
           heuristics[heuristic].measure == GREEDY_SIZE &&
           pairs <= BERTH_MEMORY_GREEDY_PAIR_LIMIT / 4;
}

uint64_t berth_memory_greedy_best(berth_arena *arena, const berth_memory_interval *intervals,
                                  uint32_t count, uint64_t *out_offsets, const char **out_name) {
    berth_arena *scratch = berth_arena_create_child(arena);
    uint64_t *offsets = berth_arena_new_array(scratch, uint64_t, count);
    uint64_t bound = berth_memory_lower_bound(scratch, intervals, count);
    uint64_t pairs = count_conflicts(scratch, intervals, count, NULL);
    bool large = count > BERTH_MEMORY_GREEDY_FAST_COUNT || pairs > BERTH_MEMORY_GREEDY_FAST_PAIRS;
    uint64_t best = UINT64_MAX;
    *out_name = "";
    for (uint32_t k = 0; k < heuristic_count && best > bound; ++k) {
        // The skylines come first: they are fast and good.
        uint32_t h = (k + FIRST_SKYLINE) % heuristic_count;
        if (large && !is_fast(h, pairs)) continue;
        uint64_t height = berth_memory_greedy(scratch, intervals, count, h, offsets);
        if (height >= best) continue;
        best = height;
        *out_name = heuristics[h].name;
        if (count > 0) memcpy(out_offsets, offsets, count * sizeof(*offsets));
    }
    berth_arena_destroy(scratch);
    return best;
}
