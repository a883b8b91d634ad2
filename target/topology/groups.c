// Groups of cores, and sets of hardware threads as text.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target/topology.h"

bool berth_topology_group_has(const berth_topology *topology, const berth_topology_group *group,
                              uint32_t core) {
    return topology->cores[core].node == group->node && topology->cores[core].kind == group->kind;
}

static int by_place(const void *a, const void *b) {
    const berth_topology_group *x = a, *y = b;
    if (x->node != y->node) return x->node < y->node ? -1 : 1;
    return x->kind < y->kind ? -1 : x->kind > y->kind;
}

static uint32_t count_l3(const berth_topology *topology, const berth_topology_group *group) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < topology->core_count; ++i) {
        uint16_t l3 = topology->cores[i].l3;
        bool counted = l3 == BERTH_TOPOLOGY_NONE || !berth_topology_group_has(topology, group, i);
        for (uint32_t k = i;
             k-- > 0 && !counted && i - k < 512;)  // cores of a cache are neighbours
            counted = topology->cores[k].l3 == l3 && berth_topology_group_has(topology, group, k);
        count += !counted;
    }
    return count;
}

uint32_t berth_topology_groups(const berth_topology *topology,
                               berth_topology_group groups[BERTH_TOPOLOGY_MAX_GROUPS]) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < topology->core_count; ++i) {
        uint32_t at = 0;
        while (at < count && !berth_topology_group_has(topology, &groups[at], i)) ++at;
        if (at == count) {
            if (count == BERTH_TOPOLOGY_MAX_GROUPS) continue;
            groups[count++] = (berth_topology_group){.node = topology->cores[i].node,
                                                     .kind = topology->cores[i].kind};
        }
        groups[at].core_count++;
        groups[at].thread_count += topology->cores[i].threads;
    }
    qsort(groups, count, sizeof(groups[0]), by_place);
    for (uint32_t i = 0; i < count; ++i) groups[i].l3_count = count_l3(topology, &groups[i]);
    return count;
}

void berth_processor_set_add(berth_processor_set *set, uint32_t processor) {
    if (processor < BERTH_TOPOLOGY_MAX_PROCESSORS)
        set->bits[processor / 64] |= (uint64_t)1 << processor % 64;
}

bool berth_processor_set_has(const berth_processor_set *set, uint32_t processor) {
    return processor < BERTH_TOPOLOGY_MAX_PROCESSORS &&
           (set->bits[processor / 64] >> processor % 64 & 1);
}

uint32_t berth_processor_set_count(const berth_processor_set *set) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < BERTH_TOPOLOGY_MAX_PROCESSORS / 64; ++i)
        count += (uint32_t)__builtin_popcountll(set->bits[i]);
    return count;
}

// A number at *at, which moves past it.
static bool read_number(const char **at, uint32_t *out) {
    if (**at < '0' || **at > '9') return false;
    uint32_t value = 0;
    for (; **at >= '0' && **at <= '9'; ++*at) {
        value = value * 10 + (uint32_t)(**at - '0');
        if (value >= BERTH_TOPOLOGY_MAX_PROCESSORS) return false;
    }
    *out = value;
    return true;
}

bool berth_processor_set_add_word(berth_processor_set *set, const char *word) {
    uint32_t first = 0, last = 0;
    if (!read_number(&word, &first)) return false;
    last = first;
    if (*word == '-') {
        ++word;
        if (!read_number(&word, &last)) return false;
    }
    if (*word || last < first) return false;
    for (uint32_t i = first; i <= last; ++i) berth_processor_set_add(set, i);
    return true;
}

bool berth_processor_set_print(const berth_processor_set *set, char *out, size_t out_bytes) {
    size_t used = 0;
    if (out_bytes) *out = 0;
    for (uint32_t i = 0; i < BERTH_TOPOLOGY_MAX_PROCESSORS; ++i) {
        if (!berth_processor_set_has(set, i)) continue;
        uint32_t last = i;
        while (berth_processor_set_has(set, last + 1)) ++last;
        char word[32];
        int length = last == i ? snprintf(word, sizeof(word), "%s%u", used ? "," : "", i)
                               : snprintf(word, sizeof(word), "%s%u-%u", used ? "," : "", i, last);
        if (used + (size_t)length + 1 > out_bytes) return false;
        memcpy(out + used, word, (size_t)length + 1);
        used += (size_t)length;
        i = last;
    }
    return true;
}

berth_processor_set berth_topology_group_processors(const berth_topology *topology,
                                                    const berth_topology_group *group) {
    berth_processor_set set = {{0}};
    for (uint32_t i = 0; i < BERTH_TOPOLOGY_MAX_PROCESSORS; ++i) {
        uint16_t core = topology->core_of[i];
        if (core != BERTH_TOPOLOGY_NONE && berth_topology_group_has(topology, group, core))
            berth_processor_set_add(&set, i);
    }
    return set;
}
