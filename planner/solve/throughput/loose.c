// Loose items in the program over ideals. Each device takes those that suit it best, as if the
// others did not mind: a lower bound on what the loose items add to its load, and exact when every
// loose item is taken once.
#include <math.h>
#include <string.h>

#include "planner/solve/throughput/contiguous.h"

enum { CLUSTER_LIMIT = 6 };

// Loose items that share nets. All nets of a cluster have pins among its items and the blocks only.
typedef struct cluster {
    uint32_t item_count;
    uint32_t items[CLUSTER_LIMIT];
    uint32_t net_count;
    uint32_t *nets;
    uint32_t *masks;  // [net_count] the net's pins among the items
} cluster;

struct berth_place_loose {
    const berth_place_problem *problem;
    const berth_place_nets *nets;
    const berth_place_sorts *sorts;
    uint32_t cluster_count;
    cluster *clusters;
};

// Items from block_count on that share a net are in one cluster.
static void find_clusters(berth_arena *arena, const berth_place_blocks *blocks,
                          uint32_t *out_cluster) {
    const berth_place_nets *nets = blocks->nets;
    uint32_t *stack = berth_arena_new_array(arena, uint32_t, (size_t)nets->item_count + 1);
    for (uint32_t i = 0; i < nets->item_count; ++i) out_cluster[i] = BERTH_PLACE_NONE;
    for (uint32_t root = blocks->block_count; root < nets->item_count; ++root) {
        if (out_cluster[root] != BERTH_PLACE_NONE) continue;
        uint32_t depth = 0;
        out_cluster[root] = root;
        stack[depth++] = root;
        while (depth > 0) {
            uint32_t item = stack[--depth];
            for (uint32_t i = nets->inet_start[item]; i < nets->inet_start[item + 1]; ++i) {
                uint32_t net = nets->inets[i];
                for (uint32_t p = nets->pin_start[net]; p < nets->pin_start[net + 1]; ++p) {
                    uint32_t other = nets->pins[p];
                    if (other < blocks->block_count || out_cluster[other] != BERTH_PLACE_NONE)
                        continue;
                    out_cluster[other] = root;
                    stack[depth++] = other;
                }
            }
        }
    }
}

static void list_cluster_nets(berth_arena *arena, const berth_place_nets *nets, cluster *c) {
    uint32_t limit = 0;
    for (uint32_t i = 0; i < c->item_count; ++i)
        limit += nets->inet_start[c->items[i] + 1] - nets->inet_start[c->items[i]];
    c->nets = berth_arena_new_array(arena, uint32_t, (size_t)limit + 1);
    c->masks = berth_arena_new_array(arena, uint32_t, (size_t)limit + 1);
    for (uint32_t i = 0; i < c->item_count; ++i) {
        uint32_t item = c->items[i];
        for (uint32_t e = nets->inet_start[item]; e < nets->inet_start[item + 1]; ++e) {
            uint32_t at = 0;
            while (at < c->net_count && c->nets[at] != nets->inets[e]) ++at;
            if (at == c->net_count) c->nets[c->net_count++] = nets->inets[e];
            c->masks[at] |= 1u << i;
        }
    }
}

berth_place_loose *berth_place__loose(berth_arena *arena, const berth_place_problem *problem,
                                      const berth_place_blocks *blocks,
                                      const berth_place_sorts *sorts) {
    const berth_place_nets *nets = blocks->nets;
    berth_place_loose *loose = berth_arena_new(arena, berth_place_loose);
    loose->problem = problem;
    loose->nets = nets;
    loose->sorts = sorts;
    size_t n = (size_t)nets->item_count + 1;
    uint32_t *root = berth_arena_new_array(arena, uint32_t, n);
    uint32_t *members = berth_arena_new_array(arena, uint32_t, n);
    uint32_t *number = berth_arena_new_array(arena, uint32_t, n);
    find_clusters(arena, blocks, root);
    for (uint32_t i = blocks->block_count; i < nets->item_count; ++i) members[root[i]]++;
    loose->clusters =
        berth_arena_new_array(arena, cluster, (size_t)nets->item_count - blocks->block_count + 1);
    for (uint32_t i = blocks->block_count; i < nets->item_count; ++i) {
        if (members[root[i]] > CLUSTER_LIMIT) continue;  // adds nothing: valid, if weak
        if (root[i] == i) number[i] = loose->cluster_count++;
        cluster *c = &loose->clusters[number[root[i]]];
        c->items[c->item_count++] = i;
    }
    for (uint32_t c = 0; c < loose->cluster_count; ++c)
        list_cluster_nets(arena, nets, &loose->clusters[c]);
    return loose;
}

static bool is_touched(const cluster *c, const berth_place_load *load) {
    for (uint32_t t = 0; t < c->net_count; ++t)
        if (load->in[c->nets[t]] > 0) return true;
    return false;
}

// Members of the cluster that a device of the sort can have.
static uint32_t able_mask(const berth_place_loose *loose, const cluster *c, uint32_t sort) {
    uint32_t kind = loose->sorts->kind[sort];
    uint32_t mask = 0;
    for (uint32_t i = 0; i < c->item_count; ++i) {
        uint32_t item = c->items[i];
        uint32_t pin = loose->nets->pin[item];
        if (isinf(loose->nets->time[(size_t)item * loose->nets->kind_count + kind])) continue;
        if (pin != BERTH_PLACE_NONE && loose->sorts->of_device[pin] != sort) continue;
        mask |= 1u << i;
    }
    return mask;
}

// What the cluster adds when the device has `chosen` of it. A net that the blocks alone make the
// device pay is in load's sums already.
static double cost_of(const berth_place_loose *loose, const cluster *c,
                      const berth_place_load *load, uint32_t kind, uint32_t chosen) {
    uint32_t kinds = loose->nets->kind_count;
    double cost = 0;
    for (uint32_t i = 0; i < c->item_count; ++i)
        if (chosen >> i & 1) cost += loose->nets->time[(size_t)c->items[i] * kinds + kind];
    for (uint32_t t = 0; t < c->net_count; ++t) {
        uint32_t net = c->nets[t];
        uint32_t in = load->in[net];
        uint32_t whole = load->whole[net];
        uint32_t here = chosen & c->masks[t];
        bool cut = in == 0 ? here != 0 && (whole > 0 || here != c->masks[t])
                           : in == whole && here != c->masks[t];
        if (cut) cost += loose->nets->cost[(size_t)net * kinds + kind];
    }
    return cost;
}

static uint32_t choose(const berth_place_loose *loose, const cluster *c,
                       const berth_place_load *load, uint32_t sort, double *out_cost) {
    uint32_t kind = loose->sorts->kind[sort];
    uint32_t able = able_mask(loose, c, sort);
    uint32_t best = 0;
    *out_cost = cost_of(loose, c, load, kind, 0);
    for (uint32_t chosen = able; chosen != 0; chosen = (chosen - 1) & able) {
        double cost = cost_of(loose, c, load, kind, chosen);
        if (cost >= *out_cost) continue;
        *out_cost = cost;
        best = chosen;
    }
    return best;
}

double berth_place__loose_extra(const berth_place_loose *loose, const berth_place_load *load,
                                uint32_t sort) {
    double extra = 0;
    for (uint32_t i = 0; i < loose->cluster_count; ++i) {
        const cluster *c = &loose->clusters[i];
        if (!is_touched(c, load)) continue;
        double cost;
        choose(loose, c, load, sort, &cost);
        extra += cost;
    }
    return extra;
}

void berth_place__loose_choose(const berth_place_loose *loose, const berth_place_load *load,
                               uint32_t sort, bool *out_has) {
    memset(out_has, 0, loose->nets->item_count * sizeof(*out_has));
    for (uint32_t i = 0; i < loose->cluster_count; ++i) {
        const cluster *c = &loose->clusters[i];
        if (!is_touched(c, load)) continue;
        double cost;
        uint32_t chosen = choose(loose, c, load, sort, &cost);
        for (uint32_t m = 0; m < c->item_count; ++m) out_has[c->items[m]] = chosen >> m & 1;
    }
}
