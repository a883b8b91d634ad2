// The load of one device, item by item.
#include "planner/solve/problem/load.h"

#include <math.h>
#include <string.h>

berth_place_load *berth_place__load(berth_arena *arena, const berth_place_problem *problem,
                                    const berth_place_nets *nets, const berth_place_sorts *sorts,
                                    uint32_t item_limit) {
    berth_place_load *load = berth_arena_new(arena, berth_place_load);
    load->problem = problem;
    load->nets = nets;
    load->sorts = sorts;
    load->whole = berth_arena_new_array(arena, uint32_t, (size_t)nets->net_count + 1);
    load->in = berth_arena_new_array(arena, uint32_t, (size_t)nets->net_count + 1);
    load->out = berth_arena_new_array(arena, uint32_t, (size_t)nets->net_count + 1);
    load->sum_count = 3 * nets->kind_count + 1;
    load->sums = berth_arena_new_array(arena, double, load->sum_count);
    load->unable = berth_arena_new_array(arena, uint32_t, (size_t)nets->kind_count + 1);
    load->pinned = berth_arena_new_array(arena, uint32_t, (size_t)sorts->count + 1);
    for (uint32_t t = 0; t < nets->net_count; ++t)
        for (uint32_t p = nets->pin_start[t]; p < nets->pin_start[t + 1]; ++p)
            load->whole[t] += nets->pins[p] < item_limit;
    return load;
}

void berth_place__load_clear(berth_place_load *load) {
    uint32_t nets = load->nets->net_count;
    memset(load->in, 0, nets * sizeof(*load->in));
    memset(load->out, 0, nets * sizeof(*load->out));
    memset(load->sums, 0, load->sum_count * sizeof(*load->sums));
    memset(load->unable, 0, load->nets->kind_count * sizeof(*load->unable));
    memset(load->pinned, 0, load->sorts->count * sizeof(*load->pinned));
    load->pinned_total = 0;
}

// Adds the net's cost to sums[which of the three] of each kind.
static void add_cost(berth_place_load *load, uint32_t net, uint32_t which, double sign) {
    uint32_t kinds = load->nets->kind_count;
    const double *cost = &load->nets->cost[(size_t)net * kinds];
    for (uint32_t k = 0; k < kinds; ++k) load->sums[1 + 3 * k + which] += sign * cost[k];
}

void berth_place__load_add(berth_place_load *load, uint32_t item) {
    const berth_place_nets *nets = load->nets;
    uint32_t kinds = nets->kind_count;
    load->sums[0] += nets->size_bytes[item];
    for (uint32_t k = 0; k < kinds; ++k) {
        double time = nets->time[(size_t)item * kinds + k];
        if (isinf(time)) {
            load->unable[k]++;
        } else {
            load->sums[1 + 3 * k] += time;
        }
    }
    if (nets->pin[item] != BERTH_PLACE_NONE) {
        load->pinned[load->sorts->of_device[nets->pin[item]]]++;
        load->pinned_total++;
    }
    for (uint32_t i = nets->inet_start[item]; i < nets->inet_start[item + 1]; ++i) {
        uint32_t net = nets->inets[i];
        uint32_t in = ++load->in[net];
        uint32_t undecided = load->whole[net] - in - load->out[net];
        if (in == 1) {
            if (load->out[net] > 0) {
                add_cost(load, net, 1, 1);
            } else if (undecided > 0) {
                add_cost(load, net, 2, 1);
            }
        } else if (undecided == 0 && load->out[net] == 0) {
            add_cost(load, net, 2, -1);
        }
    }
}

void berth_place__load_undo_add(berth_place_load *load, uint32_t item, const double *saved) {
    const berth_place_nets *nets = load->nets;
    for (uint32_t k = 0; k < nets->kind_count; ++k)
        if (isinf(nets->time[(size_t)item * nets->kind_count + k])) load->unable[k]--;
    if (nets->pin[item] != BERTH_PLACE_NONE) {
        load->pinned[load->sorts->of_device[nets->pin[item]]]--;
        load->pinned_total--;
    }
    for (uint32_t i = nets->inet_start[item]; i < nets->inet_start[item + 1]; ++i)
        load->in[nets->inets[i]]--;
    memcpy(load->sums, saved, load->sum_count * sizeof(*saved));
}

void berth_place__load_rule_out(berth_place_load *load, uint32_t item) {
    const berth_place_nets *nets = load->nets;
    for (uint32_t i = nets->inet_start[item]; i < nets->inet_start[item + 1]; ++i) {
        uint32_t net = nets->inets[i];
        if (++load->out[net] == 1 && load->in[net] > 0) {
            add_cost(load, net, 2, -1);
            add_cost(load, net, 1, 1);
        }
    }
}

void berth_place__load_undo_rule_out(berth_place_load *load, uint32_t item, const double *saved) {
    const berth_place_nets *nets = load->nets;
    for (uint32_t i = nets->inet_start[item]; i < nets->inet_start[item + 1]; ++i)
        load->out[nets->inets[i]]--;
    memcpy(load->sums, saved, load->sum_count * sizeof(*saved));
}
