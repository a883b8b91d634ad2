#include "planner/solve/latency/moves.h"

#include <string.h>

berth_solve__latency_moves *berth_solve__latency_moves_create(berth_arena *arena,
                                                              berth_solve__latency *latency,
                                                              uint64_t seed) {
    const berth_place_problem *problem = latency->problem;
    berth_solve__latency_moves *moves = berth_arena_new(arena, berth_solve__latency_moves);
    moves->latency = latency;
    moves->random = seed;
    moves->path_eighths = 4;
    for (uint32_t o = 0; o < BERTH_SOLVE__LATENCY_ORDERS; ++o) {
        moves->order[o] = berth_arena_new_array(arena, uint32_t, problem->node_count);
        moves->position[o] = berth_arena_new_array(arena, uint32_t, problem->node_count);
        berth_solve__latency_order(arena, problem, &moves->random, o, moves->order[o]);
        for (uint32_t i = 0; i < problem->node_count; ++i)
            moves->position[o][moves->order[o][i]] = i;
    }
    moves->path = berth_arena_new_array(arena, uint32_t, problem->node_count);
    moves->region = berth_arena_new_array(arena, uint32_t, problem->node_count);
    moves->marked = berth_arena_new_array(arena, uint32_t, problem->node_count);
    return moves;
}

void berth_solve__latency_moves_look(berth_solve__latency_moves *moves) {
    const berth_solve__latency *latency = moves->latency;
    moves->path_count = 0;
    uint32_t node = latency->last;
    while (node != BERTH_PLACE_NONE && moves->path_count < latency->problem->node_count) {
        moves->path[moves->path_count++] = node;
        node = latency->critical[node];
    }
}

static uint32_t below(berth_solve__latency_moves *moves, uint32_t count) {
    return berth_solve__random_below(&moves->random, count);
}

// A node: on the critical path in so many of eight cases.
static uint32_t pick_node(berth_solve__latency_moves *moves) {
    if (moves->path_count > 0 && below(moves, 8) < moves->path_eighths)
        return moves->path[below(moves, moves->path_count)];
    return below(moves, moves->latency->problem->node_count);
}

static uint32_t pick_neighbour(berth_solve__latency_moves *moves, uint32_t node) {
    const berth_place_problem *problem = moves->latency->problem;
    uint32_t before = problem->pred_start[node + 1] - problem->pred_start[node];
    uint32_t after = problem->succ_start[node + 1] - problem->succ_start[node];
    if (before + after == 0) return node;
    uint32_t i = below(moves, before + after);
    return i < before ? problem->pred[problem->pred_start[node] + i]
                      : problem->succ[problem->succ_start[node] + i - before];
}

static uint32_t pick_empty(berth_solve__latency_moves *moves) {
    const berth_solve__latency *latency = moves->latency;
    uint32_t devices = latency->problem->device_count, first = below(moves, devices);
    for (uint32_t i = 0; i < devices; ++i) {
        uint32_t d = (first + i) % devices;
        if (latency->single[d] && latency->count[d] == 0) return d;
    }
    return BERTH_PLACE_NONE;
}

static uint32_t pick_plain(berth_solve__latency_moves *moves) {
    const berth_solve__latency *latency = moves->latency;
    uint32_t devices = latency->problem->device_count, first = below(moves, devices);
    for (uint32_t i = 0; i < devices; ++i)
        if (!latency->single[(first + i) % devices]) return (first + i) % devices;
    return BERTH_PLACE_NONE;
}

static uint32_t pick_target(berth_solve__latency_moves *moves, uint32_t near) {
    uint32_t choice = below(moves, 8), target = BERTH_PLACE_NONE;
    if (choice == 0) target = pick_empty(moves);
    if (choice <= 2 && target == BERTH_PLACE_NONE) target = pick_plain(moves);
    if (choice == 3) target = below(moves, moves->latency->problem->device_count);
    return target != BERTH_PLACE_NONE ? target : moves->latency->device[near];
}

static bool put(berth_solve__latency_moves *moves, uint32_t node, uint32_t device) {
    return berth_solve__latency_move(moves->latency, moves->latency->problem->group[node], device);
}

static bool move_one(berth_solve__latency_moves *moves) {
    uint32_t node = pick_node(moves);
    return put(moves, node, pick_target(moves, pick_neighbour(moves, node)));
}

// A size of one to `most`, small ones more often (its logarithm is even).
static uint32_t pick_size(berth_solve__latency_moves *moves, uint32_t most) {
    double size = 1;
    while (size < most && below(moves, 3) != 0)
        size *= 1 + berth_solve__random_unit(&moves->random);
    return size < most ? (uint32_t)size : most;
}

// A connected region on one device moves.
static bool move_region(berth_solve__latency_moves *moves) {
    const berth_place_problem *problem = moves->latency->problem;
    uint32_t node = pick_node(moves), source = moves->latency->device[node], count = 0;
    uint32_t target = pick_target(moves, pick_neighbour(moves, node));
    uint32_t size = pick_size(moves, problem->node_count);
    moves->mark++;
    moves->marked[node] = moves->mark;
    moves->region[count++] = node;
    for (uint32_t tries = 0; tries < 3 * size && count < size; ++tries) {
        uint32_t next = pick_neighbour(moves, moves->region[below(moves, count)]);
        if (moves->marked[next] == moves->mark || moves->latency->device[next] != source) continue;
        moves->marked[next] = moves->mark;
        moves->region[count++] = next;
    }
    for (uint32_t i = 0; i < count; ++i)
        if (!put(moves, moves->region[i], target)) return false;
    return true;
}

// An interval of one of the orders moves; what it meets of other subgraphs goes along.
static bool move_interval(berth_solve__latency_moves *moves) {
    const berth_place_problem *problem = moves->latency->problem;
    uint32_t o = below(moves, BERTH_SOLVE__LATENCY_ORDERS), node = pick_node(moves);
    uint32_t size = pick_size(moves, problem->node_count), first = moves->position[o][node];
    if (below(moves, 2) == 0) first = first + 1 >= size ? first + 1 - size : 0;
    uint32_t end = size < problem->node_count - first ? first + size : problem->node_count;
    uint32_t near = below(moves, 2) == 0 ? (first > 0 ? first - 1 : 0)
                                         : (end < problem->node_count ? end : end - 1);
    uint32_t target = pick_target(moves, moves->order[o][near]);
    for (uint32_t i = first; i < end; ++i)
        if (!put(moves, moves->order[o][i], target)) return false;
    return true;
}

// Gives the nodes of `device` from `cut` on (by order `o`) to `late`, those before it to `early`
// (NONE: they stay).
static bool split_device(berth_solve__latency_moves *moves, uint32_t device, uint32_t o,
                         uint32_t cut, uint32_t early, uint32_t late) {
    const berth_solve__latency *latency = moves->latency;
    for (uint32_t n = 0; n < latency->problem->node_count; ++n) {
        if (latency->device[n] != device) continue;
        uint32_t target = moves->position[o][n] < cut ? early : late;
        if (target != BERTH_PLACE_NONE && !put(moves, n, target)) return false;
    }
    return true;
}

static bool move_part(berth_solve__latency_moves *moves) {
    uint32_t node = pick_node(moves), device = moves->latency->device[node];
    uint32_t o = below(moves, BERTH_SOLVE__LATENCY_ORDERS);
    if (!moves->latency->single[device]) return false;
    uint32_t outside = node;  // leaves the device after some steps, most of the time
    for (uint32_t i = 0; i < 8 && moves->latency->device[outside] == device; ++i)
        outside = pick_neighbour(moves, outside);
    uint32_t target = pick_target(moves, outside), cut = moves->position[o][node];
    bool late = below(moves, 2) == 0;
    return split_device(moves, device, o, late ? cut : cut + 1, late ? BERTH_PLACE_NONE : target,
                        late ? target : BERTH_PLACE_NONE);
}

// Dissolves a subgraph into what is before and after it, and starts one somewhere else with its
// device.
static bool move_device(berth_solve__latency_moves *moves) {
    const berth_solve__latency *latency = moves->latency;
    const berth_place_problem *problem = latency->problem;
    uint32_t device = below(moves, problem->device_count), node = pick_node(moves);
    uint32_t o = below(moves, BERTH_SOLVE__LATENCY_ORDERS), cut = problem->node_count;
    if (!latency->single[device]) return false;
    uint32_t first = problem->node_count, last = 0;
    for (uint32_t n = 0; n < problem->node_count; ++n) {
        if (latency->device[n] != device) continue;
        uint32_t at = moves->position[o][n];
        first = at < first ? at : first;
        last = at > last ? at : last;
    }
    if (first <= last) {
        uint32_t plain = pick_plain(moves), choice = below(moves, 4);
        uint32_t early = first > 0 ? latency->device[moves->order[o][first - 1]] : plain;
        uint32_t late =
            last + 1 < problem->node_count ? latency->device[moves->order[o][last + 1]] : plain;
        if (choice == 0) early = plain;
        if (choice == 1) late = plain;
        if (choice == 2) early = late = plain;
        if (early == BERTH_PLACE_NONE || late == BERTH_PLACE_NONE) return false;
        cut = first + below(moves, last - first + 2);
        if (!split_device(moves, device, o, cut, early, late)) return false;
    }
    uint32_t begin = moves->position[o][node], size = pick_size(moves, problem->node_count);
    for (uint32_t i = begin; i < problem->node_count && i - begin < size; ++i)
        if (!put(moves, moves->order[o][i], device)) return false;
    return true;
}

// Two groups change places.
static bool exchange(berth_solve__latency_moves *moves) {
    const berth_solve__latency *latency = moves->latency;
    uint32_t one = pick_node(moves), other = below(moves, latency->problem->node_count);
    uint32_t here = latency->device[one], there = latency->device[other];
    return here != there && put(moves, one, there) && put(moves, other, here);
}

bool berth_solve__latency_moves_make(berth_solve__latency_moves *moves, uint32_t sort) {
    berth_solve__latency_begin(moves->latency);
    switch (sort) {
    case 0: return move_one(moves);
    case 1: return move_region(moves);
    case 2: return move_interval(moves);
    case 3: return move_part(moves);
    case 4: return move_device(moves);
    default: return exchange(moves);
    }
}
