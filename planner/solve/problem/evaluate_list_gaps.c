// Turns by insertion: one task after another, those with the longest way to the end first, each into the first gap of
// its device or link that is long enough, whatever was given later times before it (HEFT with the devices given:
// Topcuoglu, Hariri and Wu 2002). A device may so wait for what is urgent, where list scheduling gives it what is not. Programs
// order the steps of several devices in the better of both ways (compiler/package/order_beside.c). O(tasks * log tasks) and the search for gaps (busy.h).
#include <math.h>

#include "planner/solve/problem/busy.h"
#include "planner/solve/problem/evaluate_list.h"

typedef struct sorted {
    double key;
    uint32_t task;
} sorted;

struct list_gaps {
    berth_arena *arena;
    sorted *order;            // [tasks] as they are put
    sorted *other, *spare;    // [tasks] scratch
    double *ready;            // [tasks] when what it needs is there
    berth_solve__busy *busy;  // [2 * device_count] of devices and links
};

// Least keys first, equal ones as they were: runs of a few by insertion, then merged. (With the comparison in place, as
// sorting is most of a schedule.) Returns where the result is.
static sorted *sort_stably(sorted *from, sorted *to, uint32_t count) {
    enum { RUN = 8 };
    for (uint32_t i = 1; i < count; ++i) {
        sorted one = from[i];
        uint32_t at = i, first = i / RUN * RUN;
        for (; at > first && from[at - 1].key > one.key; --at) from[at] = from[at - 1];
        from[at] = one;
    }
    for (uint64_t width = RUN; width < count; width *= 2) {
        for (uint64_t begin = 0; begin < count; begin += 2 * width) {
            uint64_t middle = begin + width < count ? begin + width : count;
            uint64_t end = middle + width < count ? middle + width : count;
            uint64_t a = begin, b = middle;
            for (uint64_t at = begin; at < end; ++at)
                to[at] =
                    a < middle && (b == end || from[a].key <= from[b].key) ? from[a++] : from[b++];
        }
        sorted *swap = from;
        from = to;
        to = swap;
    }
    return from;
}

// Longest ways first. What a task needs has a way that is no shorter; of equal ones nodes keep a topological order, each
// before its write, and that before its reads.
static void sort_tasks(const berth_solve__list *s) {
    const berth_place_problem *problem = s->problem;
    list_gaps *g = s->gaps;
    uint32_t count = 0;
    for (uint32_t i = 0; i < problem->node_count; ++i) {
        uint32_t u = problem->topological[i];
        g->order[count++] = (sorted){-s->tasks[u].rank, u};
        for (uint32_t c = s->first_copy[u]; c < s->first_copy[u + 1]; ++c)
            g->order[count++] = (sorted){-s->tasks[c].rank, c};
    }
    sorted *order = sort_stably(g->order, g->other, count);
    g->other = order == g->order ? g->other : g->order;
    g->order = order;
}

static void arrive(const berth_solve__list *s, list_schedule *out, uint32_t index, uint32_t cause,
                   double time) {
    if (out->cause[index] != BERTH_PLACE_NONE && time <= s->gaps->ready[index]) return;
    s->gaps->ready[index] = time;
    out->cause[index] = cause;
}

// Those who wait for the task's end.
static void tell_readers(const berth_solve__list *s, list_schedule *out, uint32_t index) {
    const berth_place_problem *problem = s->problem;
    const list_task *task = &s->tasks[index];
    bool computes = list_is_node(s, index);
    uint32_t u = task->node, there = computes ? s->assignment[u] : task->reader;
    double end = list_end_of(s, out, index);
    for (uint32_t i = problem->succ_start[u];
         there != BERTH_PLACE_NONE && i < problem->succ_start[u + 1]; ++i)
        if (s->assignment[problem->succ[i]] == there) arrive(s, out, problem->succ[i], index, end);
    if (!computes && there != BERTH_PLACE_NONE) return;
    for (uint32_t c = s->first_copy[u]; c < s->first_copy[u + 1]; ++c) {
        bool first = s->tasks[c].direct || s->tasks[c].reader == BERTH_PLACE_NONE;
        if (first == computes) arrive(s, out, c, index, end);
    }
}

static void put(const berth_solve__list *s, list_schedule *out, uint32_t index) {
    list_gaps *g = s->gaps;
    const list_task *task = &s->tasks[index];
    out->start[index] = g->ready[index];
    if (task->resource == BERTH_PLACE_NONE) return;
    berth_solve__busy *busy = &g->busy[task->resource];
    berth_solve__gap gap;
    out->start[index] = berth_solve__busy_find(busy, g->ready[index], task->length, &gap);
    if (gap.behind != BERTH_PLACE_NONE) out->cause[index] = gap.behind;
    berth_solve__busy_take(busy, &gap, out->start[index], list_end_of(s, out, index), index);
}

void berth_solve__list_sort_ends(berth_solve__list *s, list_schedule *schedule) {
    list_gaps *g = s->gaps;
    for (uint32_t k = 0; k < s->task_count; ++k) {
        uint32_t index = g->order[k].task;
        g->other[k] = (sorted){list_end_of(s, schedule, index), index};
    }
    const sorted *ends = sort_stably(g->other, g->spare, s->task_count);
    for (uint32_t k = 0; k < s->task_count; ++k) schedule->finished[k] = ends[k].task;
}

list_gaps *berth_solve__list_gaps_create(berth_arena *arena, const berth_place_problem *problem,
                                         size_t tasks) {
    list_gaps *g = berth_arena_new(arena, list_gaps);
    g->arena = arena;
    g->order = berth_arena_new_array(arena, sorted, tasks);
    g->other = berth_arena_new_array(arena, sorted, tasks);
    g->spare = berth_arena_new_array(arena, sorted, tasks);
    g->ready = berth_arena_new_array(arena, double, tasks);
    g->busy = berth_arena_new_array(arena, berth_solve__busy, 2 * (size_t)problem->device_count);
    return g;
}

void berth_solve__list_fill_gaps(berth_solve__list *s, double limit, list_schedule *out) {
    list_gaps *g = s->gaps;
    out->end = INFINITY;
    out->last = BERTH_PLACE_NONE;
    for (uint32_t r = 0; r < 2 * s->problem->device_count; ++r)
        berth_solve__busy_clear(&g->busy[r], g->arena);
    for (uint32_t i = 0; i < s->task_count; ++i) {
        g->ready[i] = 0;
        out->cause[i] = BERTH_PLACE_NONE;
    }
    sort_tasks(s);
    double end = 0;
    for (uint32_t k = 0; k < s->task_count; ++k) {
        uint32_t index = g->order[k].task;
        put(s, out, index);
        if (out->start[index] + s->tasks[index].rank > limit) return;
        if (list_end_of(s, out, index) >= end) {
            end = list_end_of(s, out, index);
            out->last = index;
        }
        tell_readers(s, out, index);
    }
    if (end <= limit) out->end = end;
}
