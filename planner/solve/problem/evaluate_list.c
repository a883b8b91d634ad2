// Latency of a placed graph with its copies by list scheduling: the better of two ways to take turns on devices and links
// (evaluate_list.h). Neither is better for every graph: one leaves nothing idle that has something to do,
// the other lets it wait for what is urgent. Tasks of no length and nodes of concurrent kinds wait for nobody.
#include "planner/solve/problem/evaluate_list.h"

#include <math.h>
#include <stdlib.h>

static list_schedule new_schedule(berth_arena *arena, size_t tasks) {
    return (list_schedule){.start = berth_arena_new_array(arena, double, tasks),
                           .cause = berth_arena_new_array(arena, uint32_t, tasks),
                           .finished = berth_arena_new_array(arena, uint32_t, tasks)};
}

berth_solve__list *berth_solve__list_create(berth_arena *arena,
                                            const berth_place_problem *problem) {
    uint32_t nodes = problem->node_count, devices = problem->device_count;
    // A node has a write at most, and a read for each of its edges.
    size_t tasks = 2 * (size_t)nodes + problem->edge_count;
    berth_solve__list *s = berth_arena_new(arena, berth_solve__list);
    s->problem = problem;
    s->arena = arena;
    s->tasks = berth_arena_new_array(arena, list_task, tasks);
    s->first_copy = berth_arena_new_array(arena, uint32_t, (size_t)nodes + 1);
    s->readers = berth_arena_new_array(arena, uint32_t, devices);
    s->needs = berth_arena_new_array(arena, bool, devices);
    s->rank_there = berth_arena_new_array(arena, double, devices);
    s->shared = berth_arena_new_array(arena, double, berth_place_shared_count(problem) + 1);
    s->load = berth_arena_new_array(arena, double, 2 * (size_t)devices);
    s->turns = berth_solve__list_turns_create(arena, problem, tasks);
    s->gaps = berth_solve__list_gaps_create(arena, problem, tasks);
    s->by_turns = new_schedule(arena, tasks);
    s->by_gaps = new_schedule(arena, tasks);
    s->left = berth_arena_new_array(arena, double, tasks);
    s->left_of_next = berth_arena_new_array(arena, double, 2 * (size_t)devices);
    return s;
}

static void note_copy(const berth_solve__list *s, uint32_t index, berth_solve__copies *copies) {
    const list_task *t = &s->tasks[index];
    uint32_t home = s->assignment[t->node];
    bool writes = t->reader == BERTH_PLACE_NONE;
    double start = s->best->start[index];
    berth_place_copy copy = {.node = t->node,
                             .link = writes ? home : t->reader,
                             .from = writes || t->direct ? home : BERTH_PLACE_NONE,
                             .to = t->reader,
                             .start = start,
                             .end = start + t->length};
    berth_vec_push(copies->arena, &copies->list, copy);
}

static int compare_copies(const void *left, const void *right) {
    const berth_place_copy *a = left, *b = right;
    if (a->start != b->start) return a->start < b->start ? -1 : 1;
    if (a->node != b->node) return a->node < b->node ? -1 : 1;
    return a->link < b->link ? -1 : a->link > b->link;
}

static void report(const berth_solve__list *s, berth_place_value *out,
                   berth_solve__copies *copies) {
    for (uint32_t v = 0; out && v < s->problem->node_count; ++v) {
        out->node_start[v] = s->best->start[v];
        out->node_done[v] = list_end_of(s, s->best, v);
        out->device_load[s->assignment[v]] += s->tasks[v].length;
    }
    for (uint32_t i = s->problem->node_count; copies && i < s->task_count; ++i)
        if (s->tasks[i].length > 0) note_copy(s, i, copies);
    if (copies && copies->list.count > 1)
        qsort(copies->list.data, copies->list.count, sizeof(*copies->list.data), compare_copies);
}

double berth_solve__list_value(berth_solve__list *s, const uint32_t *assignment, double limit,
                               berth_place_value *out, berth_solve__copies *copies) {
    double shared_ms = 0;
    s->assignment = assignment;
    if (!berth_solve__list_build(s, limit, &shared_ms)) return INFINITY;
    berth_solve__list_take_turns(s, limit, &s->by_turns);
    s->best = &s->by_turns;
    // Nothing ends before the longest way does, or what the busiest has to do.
    if (s->best->end > fmax(s->longest_way, s->most_load) && s->best->end > shared_ms) {
        berth_solve__list_fill_gaps(s, fmin(limit, s->best->end), &s->by_gaps);
        if (s->by_gaps.end < s->best->end) s->best = &s->by_gaps;
    }
    if (isinf(s->best->end)) return INFINITY;
    report(s, out, copies);
    return fmax(s->best->end, shared_ms);
}

uint32_t berth_solve__list_critical(const berth_solve__list *s, uint32_t *nodes) {
    uint32_t count = 0;
    for (uint32_t index = s->best->last; index != BERTH_PLACE_NONE; index = s->best->cause[index]) {
        uint32_t node = s->tasks[index].node;
        if (count < s->problem->node_count && (count == 0 || nodes[count - 1] != node))
            nodes[count++] = node;
    }
    return count;
}

// Whose start the end of a task lets come: the value's readers on the same device for a computation or a
// read, and its copies for a computation or a write. The most that any of them has left.
static double left_after(const berth_solve__list *s, uint32_t index) {
    const berth_place_problem *problem = s->problem;
    const list_task *t = &s->tasks[index];
    bool computes = list_is_node(s, index);
    uint32_t u = t->node, there = computes ? s->assignment[u] : t->reader;
    double most = 0;
    for (uint32_t i = problem->succ_start[u];
         there != BERTH_PLACE_NONE && i < problem->succ_start[u + 1]; ++i)
        if (s->assignment[problem->succ[i]] == there) most = fmax(most, s->left[problem->succ[i]]);
    if (!computes && there != BERTH_PLACE_NONE) return most;
    for (uint32_t c = s->first_copy[u]; c < s->first_copy[u + 1]; ++c) {
        bool first = s->tasks[c].direct || s->tasks[c].reader == BERTH_PLACE_NONE;
        if (first == computes) most = fmax(most, s->left[c]);
    }
    return most;
}

void berth_solve__list_times(berth_solve__list *s, double *done, double *left, uint32_t *order) {
    uint32_t nodes = s->problem->node_count, at = nodes;
    if (s->best == &s->by_gaps) berth_solve__list_sort_ends(s, s->best);
    for (uint32_t r = 0; r < 2 * s->problem->device_count; ++r) s->left_of_next[r] = 0;
    for (uint32_t i = s->task_count; i-- > 0;) {
        uint32_t index = s->best->finished[i], resource = s->tasks[index].resource;
        double after = left_after(s, index);
        if (resource != BERTH_PLACE_NONE) after = fmax(after, s->left_of_next[resource]);
        s->left[index] = s->tasks[index].length + after;
        if (resource != BERTH_PLACE_NONE) s->left_of_next[resource] = s->left[index];
        if (index < nodes) order[--at] = index;
    }
    for (uint32_t v = 0; v < nodes; ++v) {
        done[v] = list_end_of(s, s->best, v);
        left[v] = s->left[v];
    }
}
