// Skyline heuristic: the lowest part of the skyline (tops over time) takes the unplaced interval
// with the greatest measure among those that are live only there; when there is none, the part
// rises to its lower neighbour. After the best-fit heuristic of Sekiyama, Imai, Negishi, Imai and
// Doi 2018 ("Profile-guided memory optimization for deep neural networks", arXiv 1804.10001,
// section 4), which takes the longest. The interval to take is found in a k-d tree over (first
// clique, last clique) with the greatest measure in every node.
#include <stdbool.h>
#include <stdlib.h>

#include "memory/greedy_private.h"

#define NONE UINT32_MAX

typedef struct tree_node {
    uint32_t low_first, high_first;  // bounds of first cliques below this node
    uint32_t low_end, high_end;
    uint32_t best;  // unplaced interval of the greatest measure; NONE
    uint32_t parent;
} tree_node;

enum { LEAF_SIZE = 8 };

typedef struct interval_tree {
    const berth_memory_cliques *cliques;
    const double *measure;
    uint32_t *order;    // intervals, leaf by leaf
    uint32_t *leaf_of;  // node of each interval
    bool *placed;
    tree_node *nodes;  // heap order: children of n are 2n + 1 and 2n + 2
    uint32_t node_count;
    uint32_t first_leaf;
} interval_tree;

typedef struct keyed {
    uint32_t key;
    uint32_t index;
} keyed;

static void swap(keyed *a, keyed *b) {
    keyed c = *a;
    *a = *b;
    *b = c;
}

static bool before(keyed a, keyed b) {
    return a.key != b.key ? a.key < b.key : a.index < b.index;
}

// Quickselect (Hoare): puts the `nth` smallest at its place. The pivot is the middle one, O(n) on
// what comes up here.
static void select_nth(keyed *items, uint32_t count, uint32_t nth) {
    uint32_t low = 0;
    uint32_t high = count;
    while (high - low > 1) {
        swap(&items[low + (high - low) / 2], &items[high - 1]);
        keyed pivot = items[high - 1];
        uint32_t split = low;
        for (uint32_t i = low; i + 1 < high; ++i)
            if (before(items[i], pivot)) swap(&items[i], &items[split++]);
        swap(&items[split], &items[high - 1]);
        if (split == nth) return;
        if (split < nth)
            low = split + 1;
        else
            high = split;
    }
}

static uint32_t better(const interval_tree *tree, uint32_t a, uint32_t b) {
    if (a == NONE || b == NONE) return a == NONE ? b : a;
    if (tree->measure[a] != tree->measure[b]) return tree->measure[a] > tree->measure[b] ? a : b;
    return a < b ? a : b;
}

static void build_leaf(interval_tree *tree, uint32_t node, const keyed *items, uint32_t at,
                       uint32_t count) {
    tree_node *n = &tree->nodes[node];
    *n = (tree_node){UINT32_MAX, 0, UINT32_MAX, 0, NONE, node == 0 ? NONE : (node - 1) / 2};
    for (uint32_t i = 0; i < count; ++i) {
        uint32_t index = items[i].index;
        uint32_t first = tree->cliques->first[index];
        uint32_t end = tree->cliques->end[index];
        tree->order[at + i] = index;
        tree->leaf_of[index] = node;
        if (first < n->low_first) n->low_first = first;
        if (first > n->high_first) n->high_first = first;
        if (end < n->low_end) n->low_end = end;
        if (end > n->high_end) n->high_end = end;
        n->best = better(tree, n->best, index);
    }
}

static void join_children(interval_tree *tree, uint32_t node) {
    const tree_node *a = &tree->nodes[2 * node + 1];
    const tree_node *b = &tree->nodes[2 * node + 2];
    tree->nodes[node] = (tree_node){
        a->low_first < b->low_first ? a->low_first : b->low_first,
        a->high_first > b->high_first ? a->high_first : b->high_first,
        a->low_end < b->low_end ? a->low_end : b->low_end,
        a->high_end > b->high_end ? a->high_end : b->high_end,
        better(tree, a->best, b->best),
        node == 0 ? NONE : (node - 1) / 2,
    };
}

typedef struct range {
    uint32_t at;
    uint32_t count;
} range;

static void build(interval_tree *tree, keyed *items, range *ranges, uint32_t count) {
    ranges[0] = (range){0, count};
    for (uint32_t node = 0, level_end = 1, by_end = 0; node < tree->node_count; ++node) {
        if (node == level_end) {
            level_end = 2 * level_end + 1;
            by_end = !by_end;
        }
        range r = ranges[node];
        if (node >= tree->first_leaf) {
            build_leaf(tree, node, items + r.at, r.at, r.count);
            continue;
        }
        for (uint32_t i = r.at; i < r.at + r.count; ++i) {
            uint32_t index = items[i].index;
            items[i].key = by_end ? tree->cliques->end[index] : tree->cliques->first[index];
        }
        uint32_t half = r.count / 2;
        if (half > 0) select_nth(items + r.at, r.count, half);
        ranges[2 * node + 1] = (range){r.at, half};
        ranges[2 * node + 2] = (range){r.at + half, r.count - half};
    }
    for (uint32_t node = tree->first_leaf; node-- > 0;) join_children(tree, node);
}

// Unplaced interval of the greatest measure inside cliques [begin, end), if better than `best`.
static uint32_t find_best(const interval_tree *tree, const range *leaf_ranges, uint32_t node,
                          uint32_t begin, uint32_t end, uint32_t best) {
    const tree_node *n = &tree->nodes[node];
    if (n->best == NONE || n->high_first < begin || n->low_end > end) return best;
    if (better(tree, best, n->best) == best) return best;
    if (n->low_first >= begin && n->high_end <= end) return n->best;
    if (node < tree->first_leaf) {
        best = find_best(tree, leaf_ranges, 2 * node + 1, begin, end, best);
        return find_best(tree, leaf_ranges, 2 * node + 2, begin, end, best);
    }
    range r = leaf_ranges[node];
    for (uint32_t i = r.at; i < r.at + r.count; ++i) {
        uint32_t index = tree->order[i];
        if (tree->placed[index] || tree->cliques->first[index] < begin ||
            tree->cliques->end[index] > end)
            continue;
        best = better(tree, best, index);
    }
    return best;
}

static void remove_interval(interval_tree *tree, const range *leaf_ranges, uint32_t index) {
    tree->placed[index] = true;
    uint32_t node = tree->leaf_of[index];
    if (tree->nodes[node].best != index) return;
    uint32_t best = NONE;
    range r = leaf_ranges[node];
    for (uint32_t i = r.at; i < r.at + r.count; ++i)
        if (!tree->placed[tree->order[i]]) best = better(tree, best, tree->order[i]);
    tree->nodes[node].best = best;
    while (node != 0) {
        node = (node - 1) / 2;
        if (tree->nodes[node].best != index) return;
        tree->nodes[node].best =
            better(tree, tree->nodes[2 * node + 1].best, tree->nodes[2 * node + 2].best);
    }
}

// The skyline: segments of equal height, linked in order of time, with a heap of the lowest.
typedef struct segment {
    uint32_t begin, end;  // cliques
    uint64_t height;
    uint32_t before, after;  // NONE at the ends
    uint32_t heap_at;
} segment;

typedef struct skyline {
    segment *segments;
    uint32_t used;
    uint32_t free_list;  // by `after`
    uint32_t *heap;
    uint32_t heap_count;
} skyline;

static bool lower(const skyline *sky, uint32_t a, uint32_t b) {
    const segment *x = &sky->segments[a];
    const segment *y = &sky->segments[b];
    return x->height != y->height ? x->height < y->height : x->begin < y->begin;
}

static void heap_put(skyline *sky, uint32_t at, uint32_t id) {
    sky->heap[at] = id;
    sky->segments[id].heap_at = at;
}

static void heap_fix(skyline *sky, uint32_t at) {
    uint32_t id = sky->heap[at];
    while (at > 0 && lower(sky, id, sky->heap[(at - 1) / 2])) {
        heap_put(sky, at, sky->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= sky->heap_count) break;
        if (child + 1 < sky->heap_count && lower(sky, sky->heap[child + 1], sky->heap[child]))
            ++child;
        if (!lower(sky, sky->heap[child], id)) break;
        heap_put(sky, at, sky->heap[child]);
        at = child;
    }
    heap_put(sky, at, id);
}

static uint32_t add_segment(skyline *sky, segment value) {
    uint32_t id = sky->free_list;
    if (id != NONE)
        sky->free_list = sky->segments[id].after;
    else
        id = sky->used++;
    sky->segments[id] = value;
    if (value.before != NONE) sky->segments[value.before].after = id;
    if (value.after != NONE) sky->segments[value.after].before = id;
    heap_put(sky, sky->heap_count++, id);
    heap_fix(sky, sky->heap_count - 1);
    return id;
}

static void drop_segment(skyline *sky, uint32_t id) {
    segment *s = &sky->segments[id];
    if (s->before != NONE) sky->segments[s->before].after = s->after;
    if (s->after != NONE) sky->segments[s->after].before = s->before;
    uint32_t at = s->heap_at;
    uint32_t last = sky->heap[--sky->heap_count];
    if (at < sky->heap_count) {
        heap_put(sky, at, last);
        heap_fix(sky, at);
    }
    s->after = sky->free_list;
    sky->free_list = id;
}

static void merge_with_neighbors(skyline *sky, uint32_t id) {
    segment *s = &sky->segments[id];
    if (s->before != NONE && sky->segments[s->before].height == s->height) {
        s->begin = sky->segments[s->before].begin;
        drop_segment(sky, s->before);
    }
    if (s->after != NONE && sky->segments[s->after].height == s->height) {
        s->end = sky->segments[s->after].end;
        drop_segment(sky, s->after);
    }
    heap_fix(sky, s->heap_at);
}

static void raise_lowest(skyline *sky, uint32_t id) {
    segment *s = &sky->segments[id];
    uint64_t height = UINT64_MAX;
    if (s->before != NONE) height = sky->segments[s->before].height;
    if (s->after != NONE && sky->segments[s->after].height < height)
        height = sky->segments[s->after].height;
    s->height = height;
    merge_with_neighbors(sky, id);
}

// Covers [first, end) of segment `id` up to `height`.
static void cover(skyline *sky, uint32_t id, uint32_t first, uint32_t end, uint64_t height) {
    segment old = sky->segments[id];
    if (old.begin < first)
        add_segment(sky, (segment){old.begin, first, old.height, old.before, id, 0});
    if (end < old.end) add_segment(sky, (segment){end, old.end, old.height, id, old.after, 0});
    segment *s = &sky->segments[id];
    s->begin = first;
    s->end = end;
    s->height = height;
    merge_with_neighbors(sky, id);
}

uint64_t berth_memory__skyline(berth_arena *scratch, const berth_memory_interval *intervals,
                               uint32_t count, const double *measure, uint64_t *out_offsets) {
    if (count == 0) return 0;
    berth_memory_cliques cliques = berth_memory_find_cliques(scratch, intervals, count);
    interval_tree tree = {.cliques = &cliques, .measure = measure};
    uint32_t leaves = 1;
    while ((uint64_t)leaves * LEAF_SIZE < count) leaves *= 2;
    tree.first_leaf = leaves - 1;
    tree.node_count = 2 * leaves - 1;
    tree.order = berth_arena_new_array(scratch, uint32_t, count);
    tree.leaf_of = berth_arena_new_array(scratch, uint32_t, count);
    tree.placed = berth_arena_new_array(scratch, bool, count);
    tree.nodes = berth_arena_new_array(scratch, tree_node, tree.node_count);
    range *ranges = berth_arena_new_array(scratch, range, tree.node_count);
    keyed *items = berth_arena_new_array(scratch, keyed, count);
    for (uint32_t i = 0; i < count; ++i) items[i].index = i;
    build(&tree, items, ranges, count);

    size_t most_segments = (size_t)cliques.count + 2;
    skyline sky = {.segments = berth_arena_new_array(scratch, segment, most_segments),
                   .free_list = NONE,
                   .heap = berth_arena_new_array(scratch, uint32_t, most_segments)};
    add_segment(&sky, (segment){0, cliques.count, 0, NONE, NONE, 0});
    uint64_t height = 0;
    for (uint32_t done = 0; done < count;) {
        uint32_t low = sky.heap[0];
        const segment *s = &sky.segments[low];
        uint32_t index = find_best(&tree, ranges, 0, s->begin, s->end, NONE);
        if (index == NONE) {
            raise_lowest(&sky, low);
            continue;
        }
        out_offsets[index] = berth_memory_align_up(s->height, intervals[index].alignment_bytes);
        uint64_t end = out_offsets[index] + intervals[index].size_bytes;
        if (end > height) height = end;
        cover(&sky, low, cliques.first[index], cliques.end[index], end);
        remove_interval(&tree, ranges, index);
        done++;
    }
    return height;
}
