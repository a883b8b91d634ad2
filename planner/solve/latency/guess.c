#include "planner/solve/latency/guess.h"

#include <math.h>
#include <string.h>

enum { MOST_MOVED = 64 };

struct berth_solve__guess {
    const berth_place_problem *problem;
    const berth_solve__latency *latency;
    // Of the last look:
    double *done;          // [node_count] when it ended
    double *left;          // [node_count] from its start to the end of all, with all turns
    uint32_t *device;      // [node_count] where it was
    uint32_t *turns;       // [node_count] nodes of each device, in order of their ends
    uint32_t *turn_start;  // [device_count + 2] into turns
    uint32_t *order;       // [node_count] all nodes in that order
    // Of a guess:
    uint32_t *place;   // [node_count] in a topological order
    uint32_t *moved;   // [MOST_MOVED] nodes, predecessors first
    uint32_t *marked;  // [node_count] == stamp: is among them
    uint32_t stamp;
    double *head;      // [node_count] of moved ones: when they can start
    double *new_done;  // [node_count] of moved ones
    double *new_left;  // [node_count] of moved ones
};

berth_solve__guess *berth_solve__guess_create(berth_arena *arena,
                                              const berth_solve__latency *latency) {
    const berth_place_problem *problem = latency->problem;
    uint32_t nodes = problem->node_count;
    berth_solve__guess *g = berth_arena_new(arena, berth_solve__guess);
    g->problem = problem;
    g->latency = latency;
    g->done = berth_arena_new_array(arena, double, nodes);
    g->left = berth_arena_new_array(arena, double, nodes);
    g->device = berth_arena_new_array(arena, uint32_t, nodes);
    g->turns = berth_arena_new_array(arena, uint32_t, nodes);
    g->turn_start = berth_arena_new_array(arena, uint32_t, (size_t)problem->device_count + 2);
    g->order = berth_arena_new_array(arena, uint32_t, nodes);
    g->place = berth_arena_new_array(arena, uint32_t, nodes);
    g->moved = berth_arena_new_array(arena, uint32_t, MOST_MOVED);
    g->marked = berth_arena_new_array(arena, uint32_t, nodes);
    g->head = berth_arena_new_array(arena, double, nodes);
    g->new_done = berth_arena_new_array(arena, double, nodes);
    g->new_left = berth_arena_new_array(arena, double, nodes);
    for (uint32_t i = 0; i < nodes; ++i) g->place[problem->topological[i]] = i;
    return g;
}

static double time_on(const berth_solve__guess *g, uint32_t node, uint32_t device) {
    return g->problem
        ->time[(size_t)node * g->problem->kind_count + g->problem->device_kind[device]];
}

// Of the node's value, where links are free.
static double copy_time(const berth_solve__guess *g, uint32_t node, uint32_t from, uint32_t to) {
    if (from == to) return 0;
    const double *transfer = g->problem->transfer + (size_t)node * g->problem->kind_count;
    double time = transfer[g->problem->device_kind[from]] + transfer[g->problem->device_kind[to]];
    return g->problem->direct_ms ? fmin(time, berth_place_direct(g->problem, node, from, to))
                                 : time;
}

void berth_solve__guess_look(berth_solve__guess *g, berth_solve__list *list) {
    const berth_place_problem *problem = g->problem;
    uint32_t devices = problem->device_count;
    berth_solve__list_times(list, g->done, g->left, g->order);
    memcpy(g->device, g->latency->device, problem->node_count * sizeof(uint32_t));
    memset(g->turn_start, 0, ((size_t)devices + 2) * sizeof(uint32_t));
    for (uint32_t v = 0; v < problem->node_count; ++v) g->turn_start[g->device[v] + 2]++;
    for (uint32_t d = 0; d < devices; ++d) g->turn_start[d + 2] += g->turn_start[d + 1];
    for (uint32_t i = 0; i < problem->node_count; ++i)
        g->turns[g->turn_start[g->device[g->order[i]] + 1]++] = g->order[i];
}

// False: they are too many.
static bool collect_moved(berth_solve__guess *g, uint32_t *out_count) {
    const berth_place_problem *problem = g->problem;
    uint32_t count = 0;
    if (++g->stamp == 0) {
        memset(g->marked, 0, problem->node_count * sizeof(uint32_t));
        g->stamp = 1;
    }
    for (uint32_t c = 0; c < g->latency->change_count; ++c) {
        uint32_t group = g->latency->changes[c].group;
        for (uint32_t i = problem->group_start[group]; i < problem->group_start[group + 1]; ++i) {
            if (count == MOST_MOVED) return false;
            uint32_t node = problem->group_nodes[i], at = count++;
            for (; at > 0 && g->place[g->moved[at - 1]] > g->place[node]; --at)
                g->moved[at] = g->moved[at - 1];
            g->moved[at] = node;
            g->marked[node] = g->stamp;
        }
    }
    *out_count = count;
    return true;
}

static bool is_moved(const berth_solve__guess *g, uint32_t node) {
    return g->marked[node] == g->stamp;
}

static double head_of(const berth_solve__guess *g, uint32_t node) {
    const berth_place_problem *problem = g->problem;
    const uint32_t *device = g->latency->device;
    double head = 0;
    for (uint32_t e = problem->pred_start[node]; e < problem->pred_start[node + 1]; ++e) {
        uint32_t u = problem->pred[e];
        double done = is_moved(g, u) ? g->new_done[u] : g->done[u];
        head = fmax(head, done + copy_time(g, u, device[u], device[node]));
    }
    return head;
}

static double tail_of(const berth_solve__guess *g, uint32_t node) {
    const berth_place_problem *problem = g->problem;
    const uint32_t *device = g->latency->device;
    double tail = 0;
    for (uint32_t e = problem->succ_start[node]; e < problem->succ_start[node + 1]; ++e) {
        uint32_t w = problem->succ[e];
        double left = is_moved(g, w) ? g->new_left[w] : g->left[w];
        tail = fmax(tail, copy_time(g, node, device[node], device[w]) + left);
    }
    return tail;
}

// When the node can start on a device that runs one at a time: after what runs when its values are
// there, and after what waits then and has more left. Raises what the node has left to that of the one
// whose turn is next.
static double take_turn(berth_solve__guess *g, uint32_t node, uint32_t device) {
    const uint32_t *turns = g->turns + g->turn_start[device];
    uint32_t count = g->turn_start[device + 1] - g->turn_start[device], low = 0, high = count;
    double start = g->head[node];
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (g->done[turns[middle]] > start)
            high = middle;
        else
            low = middle + 1;
    }
    for (; low < count; ++low) {
        uint32_t other = turns[low];
        if (is_moved(g, other)) continue;
        bool runs = g->done[other] - time_on(g, other, device) < g->head[node];
        if (!runs && g->left[other] < g->new_left[node]) break;
        start = fmax(start, g->done[other]);
    }
    if (low < count)
        g->new_left[node] = fmax(g->new_left[node], time_on(g, node, device) + g->left[turns[low]]);
    return start;
}

double berth_solve__guess_end(berth_solve__guess *g) {
    uint32_t count = 0;
    double most = 0;
    if (!collect_moved(g, &count)) return 0;
    for (uint32_t i = 0; i < count; ++i) {
        uint32_t node = g->moved[i];
        g->head[node] = head_of(g, node);
        g->new_done[node] = g->head[node] + time_on(g, node, g->latency->device[node]);
    }
    for (uint32_t i = count; i-- > 0;) {
        uint32_t node = g->moved[i], device = g->latency->device[node];
        g->new_left[node] = time_on(g, node, device) + tail_of(g, node);
        double start = g->head[node];
        if (g->latency->single[device]) start = take_turn(g, node, device);
        most = fmax(most, start + g->new_left[node]);
    }
    return most;
}
