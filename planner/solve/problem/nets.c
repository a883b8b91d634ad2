// The hypergraph of a placement problem.
#include "planner/solve/problem/nets.h"

#include <stdlib.h>
#include <string.h>

berth_place_sorts *berth_place__sorts(berth_arena *arena, const berth_place_problem *problem) {
    uint32_t n = problem->device_count;
    bool *pinned = berth_arena_new_array(arena, bool, n + 1);
    for (uint32_t v = 0; problem->pin && v < problem->node_count; ++v)
        if (problem->pin[v] != BERTH_PLACE_NONE) pinned[problem->pin[v]] = true;
    berth_place_sorts *sorts = berth_arena_new(arena, berth_place_sorts);
    sorts->kind = berth_arena_new_array(arena, uint32_t, n + 1);
    sorts->device_count = berth_arena_new_array(arena, uint32_t, n + 1);
    sorts->device_start = berth_arena_new_array(arena, uint32_t, n + 2);
    sorts->devices = berth_arena_new_array(arena, uint32_t, n + 1);
    sorts->of_device = berth_arena_new_array(arena, uint32_t, n + 1);
    uint32_t listed = 0;
    for (uint32_t pass = 0; pass < 2; ++pass) {
        for (uint32_t d = 0; d < n; ++d) {
            if (pinned[d] != (pass == 1)) continue;
            bool joins = pass == 0 && sorts->count > 0 &&
                         sorts->kind[sorts->count - 1] == problem->device_kind[d];
            if (!joins) {
                sorts->kind[sorts->count] = problem->device_kind[d];
                sorts->device_start[sorts->count++] = listed;
            }
            sorts->of_device[d] = sorts->count - 1;
            sorts->device_count[sorts->count - 1]++;
            sorts->devices[listed++] = d;
        }
    }
    sorts->device_start[sorts->count] = listed;
    return sorts;
}

static void sum_items(const berth_place_problem *problem, berth_place_nets *nets) {
    uint32_t kinds = problem->kind_count;
    for (uint32_t i = 0; i < nets->item_count; ++i) nets->pin[i] = BERTH_PLACE_NONE;
    for (uint32_t v = 0; v < problem->node_count; ++v) {
        uint32_t item = nets->item_of_group[problem->group[v]];
        for (uint32_t k = 0; k < kinds; ++k)
            nets->time[(size_t)item * kinds + k] += problem->time[(size_t)v * kinds + k];
        nets->size_bytes[item] += problem->size_bytes[v];
        uint32_t pin = problem->pin ? problem->pin[v] : BERTH_PLACE_NONE;
        if (pin == BERTH_PLACE_NONE) continue;
        if (nets->pin[item] != BERTH_PLACE_NONE && nets->pin[item] != pin)
            nets->contradiction = true;
        nets->pin[item] = pin;
    }
}

static int compare_ids(const void *left, const void *right) {
    uint32_t a = *(const uint32_t *)left;
    uint32_t b = *(const uint32_t *)right;
    return a < b ? -1 : a > b;
}

typedef struct raw_net {
    uint32_t node;
    uint32_t pin_count;
    const uint32_t *pins;
} raw_net;

static int compare_nets(const void *left, const void *right) {
    const raw_net *a = left;
    const raw_net *b = right;
    for (uint32_t i = 0; i < a->pin_count && i < b->pin_count; ++i)
        if (a->pins[i] != b->pins[i]) return a->pins[i] < b->pins[i] ? -1 : 1;
    if (a->pin_count != b->pin_count) return a->pin_count < b->pin_count ? -1 : 1;
    return a->node < b->node ? -1 : a->node > b->node;
}

// Distinct items of node u and its successors, ascending. Returns how many.
static uint32_t list_pins(const berth_place_problem *problem, const berth_place_nets *nets,
                          uint32_t u, uint32_t *out_pins) {
    uint32_t count = 0;
    out_pins[count++] = nets->item_of_group[problem->group[u]];
    for (uint32_t e = problem->succ_start[u]; e < problem->succ_start[u + 1]; ++e)
        out_pins[count++] = nets->item_of_group[problem->group[problem->succ[e]]];
    qsort(out_pins, count, sizeof(*out_pins), compare_ids);
    uint32_t kept = 1;
    for (uint32_t i = 1; i < count; ++i)
        if (out_pins[i] != out_pins[kept - 1]) out_pins[kept++] = out_pins[i];
    return kept;
}

static uint32_t list_raw_nets(const berth_place_problem *problem, const berth_place_nets *nets,
                              raw_net *out_raw, uint32_t *storage) {
    uint32_t kinds = problem->kind_count;
    uint32_t count = 0;
    for (uint32_t u = 0; u < problem->node_count; ++u) {
        double cost = 0;
        for (uint32_t k = 0; k < kinds; ++k) cost += problem->transfer[(size_t)u * kinds + k];
        if (!(cost > 0)) continue;
        uint32_t pins = list_pins(problem, nets, u, storage);
        if (pins < 2) continue;
        out_raw[count++] = (raw_net){.node = u, .pin_count = pins, .pins = storage};
        storage += pins;
    }
    qsort(out_raw, count, sizeof(*out_raw), compare_nets);
    return count;
}

static bool same_pins(const raw_net *a, const raw_net *b) {
    return a->pin_count == b->pin_count &&
           memcmp(a->pins, b->pins, a->pin_count * sizeof(*a->pins)) == 0;
}

static void merge_nets(berth_arena *arena, const berth_place_problem *problem,
                       berth_place_nets *nets, const raw_net *raw, uint32_t raw_count,
                       uint32_t pin_limit) {
    uint32_t kinds = problem->kind_count;
    nets->cost = berth_arena_new_array(arena, double, (size_t)raw_count *kinds + 1);
    nets->pin_start = berth_arena_new_array(arena, uint32_t, (size_t)raw_count + 1);
    nets->pins = berth_arena_new_array(arena, uint32_t, (size_t)pin_limit + 1);
    uint32_t pins = 0;
    for (uint32_t r = 0; r < raw_count; ++r) {
        if (r == 0 || !same_pins(&raw[r], &raw[r - 1])) {
            for (uint32_t i = 0; i < raw[r].pin_count; ++i) nets->pins[pins++] = raw[r].pins[i];
            nets->pin_start[++nets->net_count] = pins;
        }
        for (uint32_t k = 0; k < kinds; ++k)
            nets->cost[(size_t)(nets->net_count - 1) * kinds + k] +=
                problem->transfer[(size_t)raw[r].node * kinds + k];
    }
}

static void list_nets_of_items(berth_arena *arena, berth_place_nets *nets) {
    uint32_t n = nets->item_count;
    uint32_t pins = nets->pin_start[nets->net_count];
    nets->inet_start = berth_arena_new_array(arena, uint32_t, (size_t)n + 2);
    nets->inets = berth_arena_new_array(arena, uint32_t, (size_t)pins + 1);
    for (uint32_t p = 0; p < pins; ++p) nets->inet_start[nets->pins[p] + 2]++;
    for (uint32_t i = 0; i < n; ++i) {
        if (nets->inet_start[i + 2] > nets->largest_item)
            nets->largest_item = nets->inet_start[i + 2];
        nets->inet_start[i + 2] += nets->inet_start[i + 1];
    }
    for (uint32_t t = 0; t < nets->net_count; ++t)
        for (uint32_t p = nets->pin_start[t]; p < nets->pin_start[t + 1]; ++p)
            nets->inets[nets->inet_start[nets->pins[p] + 1]++] = t;
}

berth_place_nets *berth_place__nets(berth_arena *arena, const berth_place_problem *problem,
                                    const uint32_t *item_of_group, uint32_t item_count) {
    berth_place_nets *nets = berth_arena_new(arena, berth_place_nets);
    nets->kind_count = problem->kind_count;
    nets->item_count = item_of_group ? item_count : problem->group_count;
    nets->item_of_group = berth_arena_new_array(arena, uint32_t, (size_t)problem->group_count + 1);
    for (uint32_t g = 0; g < problem->group_count; ++g)
        nets->item_of_group[g] = item_of_group ? item_of_group[g] : g;
    nets->time =
        berth_arena_new_array(arena, double, (size_t)nets->item_count * nets->kind_count + 1);
    nets->size_bytes = berth_arena_new_array(arena, double, (size_t)nets->item_count + 1);
    nets->pin = berth_arena_new_array(arena, uint32_t, (size_t)nets->item_count + 1);
    sum_items(problem, nets);

    berth_arena *scratch = berth_arena_create_child(arena);
    uint32_t pin_limit = problem->edge_count + problem->node_count;
    raw_net *raw = berth_arena_new_array(scratch, raw_net, (size_t)problem->node_count + 1);
    uint32_t *storage = berth_arena_new_array(scratch, uint32_t, (size_t)pin_limit + 1);
    uint32_t raw_count = list_raw_nets(problem, nets, raw, storage);
    merge_nets(arena, problem, nets, raw, raw_count, pin_limit);
    berth_arena_destroy(scratch);
    list_nets_of_items(arena, nets);
    return nets;
}

void berth_place__nets_expand(const berth_place_problem *problem, const berth_place_nets *nets,
                              const uint32_t *device_of_item, uint32_t *out_assignment) {
    for (uint32_t v = 0; v < problem->node_count; ++v)
        out_assignment[v] = device_of_item[nets->item_of_group[problem->group[v]]];
}

void berth_place__nets_loads(const berth_place_problem *problem, const berth_place_nets *nets,
                             const uint32_t *device_of_item, double *out_load) {
    uint32_t kinds = nets->kind_count;
    for (uint32_t d = 0; d < problem->device_count; ++d) out_load[d] = 0;
    for (uint32_t i = 0; i < nets->item_count; ++i) {
        uint32_t device = device_of_item[i];
        out_load[device] += nets->time[(size_t)i * kinds + problem->device_kind[device]];
    }
    for (uint32_t t = 0; t < nets->net_count; ++t) {
        const uint32_t *pins = nets->pins + nets->pin_start[t];
        uint32_t count = nets->pin_start[t + 1] - nets->pin_start[t], alike = 0;
        while (alike < count && device_of_item[pins[alike]] == device_of_item[pins[0]]) ++alike;
        if (alike == count) continue;  // on one device
        // 64 devices at a time.
        for (uint32_t first = 0; first < problem->device_count; first += 64) {
            uint64_t span = 0;
            for (uint32_t p = 0; p < count; ++p)
                if (device_of_item[pins[p]] - first < 64)
                    span |= (uint64_t)1 << (device_of_item[pins[p]] - first);
            for (; span; span &= span - 1) {
                uint32_t d = first + (uint32_t)__builtin_ctzll(span);
                out_load[d] += nets->cost[(size_t)t * kinds + problem->device_kind[d]];
            }
        }
    }
}
