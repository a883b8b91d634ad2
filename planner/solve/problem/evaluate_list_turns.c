// Turns by list scheduling (Graham 1969): whenever a device or a link is free, it takes the task with the longest way to
// the end (the upward rank of Topcuoglu, Hariri and Wu, 2002, with the real times) among those that could
// start; equal ranks by index. O(tasks * (log tasks + devices)).
#include <math.h>

#include "planner/solve/problem/evaluate_list.h"

#define LOAD_ROUNDING 1e-11  // sums of the same figures in another order

typedef struct event {
    double time;
    uint32_t task;
} event;

typedef BERTH_VEC(uint32_t) task_heap;

struct list_turns {
    berth_arena *arena;
    uint32_t *waiting;  // [node_count] predecessors whose value is not there yet
    event *events;      // a heap
    uint32_t event_count;
    task_heap *ready;    // [2 * device_count]
    bool *busy;          // [2 * device_count]
    uint64_t *changed;   // bits of the resources that were freed, or have more ready tasks, since
                         // they were looked at
    double *since;       // [tasks] when it could have started
    uint32_t *ended;     // [2 * device_count] task that ended last there
    double *free_since;  // [2 * device_count] when it ended; 0 = none did
    double *to_spare;    // [2 * device_count] for how long it can stay without a task, if all is
                         // to end by the limit
    uint32_t finished_count;
    uint32_t ending;  // task that ends now, and the last of all at the end
    double now, limit;
    bool beyond;  // the end is beyond the limit
    list_schedule *out;
};

// ------------------------------------------------------------------------------------------------
// heaps

static bool task_before(const berth_solve__list *s, uint32_t a, uint32_t b) {
    double x = s->tasks[a].rank;
    double y = s->tasks[b].rank;
    return x > y || (x == y && a < b);
}

static bool event_before(const event *a, const event *b) {
    return a->time < b->time || (a->time == b->time && a->task < b->task);
}

static uint32_t words_of(const berth_place_problem *problem) {
    return (2 * problem->device_count + 63) / 64;
}

static void note_changed(list_turns *t, uint32_t resource) {
    t->changed[resource / 64] |= (uint64_t)1 << resource % 64;
}

static void push_ready(berth_solve__list *s, uint32_t resource, uint32_t index) {
    note_changed(s->turns, resource);
    task_heap *heap = &s->turns->ready[resource];
    berth_vec_push(s->turns->arena, heap, index);
    uint32_t at = heap->count - 1;
    for (; at > 0 && task_before(s, index, heap->data[(at - 1) / 2]); at = (at - 1) / 2)
        heap->data[at] = heap->data[(at - 1) / 2];
    heap->data[at] = index;
}

static uint32_t pop_ready(berth_solve__list *s, uint32_t resource) {
    task_heap *heap = &s->turns->ready[resource];
    uint32_t top = heap->data[0];
    uint32_t moved = heap->data[--heap->count];
    uint32_t at = 0;
    for (uint32_t child = 1; child < heap->count; child = 2 * at + 1) {
        if (child + 1 < heap->count && task_before(s, heap->data[child + 1], heap->data[child]))
            ++child;
        if (!task_before(s, heap->data[child], moved)) break;
        heap->data[at] = heap->data[child];
        at = child;
    }
    heap->data[at] = moved;
    return top;
}

static void push_event(list_turns *t, event e) {
    uint32_t at = t->event_count++;
    for (; at > 0 && event_before(&e, &t->events[(at - 1) / 2]); at = (at - 1) / 2)
        t->events[at] = t->events[(at - 1) / 2];
    t->events[at] = e;
}

static event pop_event(list_turns *t) {
    event top = t->events[0];
    event moved = t->events[--t->event_count];
    uint32_t at = 0;
    for (uint32_t child = 1; child < t->event_count; child = 2 * at + 1) {
        if (child + 1 < t->event_count && event_before(&t->events[child + 1], &t->events[child]))
            ++child;
        if (!event_before(&t->events[child], &moved)) break;
        t->events[at] = t->events[child];
        at = child;
    }
    t->events[at] = moved;
    return top;
}

// ------------------------------------------------------------------------------------------------
// running

static void start(berth_solve__list *s, uint32_t index) {
    list_turns *t = s->turns;
    const list_task *task = &s->tasks[index];
    if (t->now + task->rank > t->limit) t->beyond = true;
    if (task->resource != BERTH_PLACE_NONE) {
        t->busy[task->resource] = true;
        t->to_spare[task->resource] -= t->now - t->free_since[task->resource];
        if (t->to_spare[task->resource] < 0) t->beyond = true;
        if (t->since[index] < t->now) t->out->cause[index] = t->ended[task->resource];
    }
    t->out->start[index] = t->now;
    push_event(t, (event){t->now + task->length, index});
}

static void make_ready(berth_solve__list *s, uint32_t index) {
    s->turns->out->cause[index] = s->turns->ending;
    s->turns->since[index] = s->turns->now;
    if (s->tasks[index].resource == BERTH_PLACE_NONE)
        start(s, index);
    else
        push_ready(s, s->tasks[index].resource, index);
}

// The value of u has come to device d.
static void arrive(berth_solve__list *s, uint32_t u, uint32_t d) {
    const berth_place_problem *problem = s->problem;
    for (uint32_t i = problem->succ_start[u]; i < problem->succ_start[u + 1]; ++i) {
        uint32_t v = problem->succ[i];
        if (s->assignment[v] == d && --s->turns->waiting[v] == 0) make_ready(s, v);
    }
}

static void finish(berth_solve__list *s, uint32_t index) {
    list_turns *t = s->turns;
    list_task task = s->tasks[index];
    t->ending = index;
    t->out->finished[t->finished_count++] = index;
    if (task.resource != BERTH_PLACE_NONE) {
        t->busy[task.resource] = false;
        t->free_since[task.resource] = t->now;
        note_changed(t, task.resource);
        t->ended[task.resource] = index;
    }
    uint32_t write = s->first_copy[task.node];
    uint32_t end = s->first_copy[task.node + 1];
    if (list_is_node(s, index)) {
        arrive(s, task.node, s->assignment[task.node]);
        for (uint32_t i = write; i < end; ++i)
            if (s->tasks[i].direct || s->tasks[i].reader == BERTH_PLACE_NONE) make_ready(s, i);
    } else if (task.reader == BERTH_PLACE_NONE) {
        for (uint32_t i = write + 1; i < end; ++i)
            if (!s->tasks[i].direct) make_ready(s, i);
    } else {
        arrive(s, task.node, task.reader);
    }
}

// Gives each free resource that has something to do its next task.
static void start_ready(berth_solve__list *s) {
    list_turns *t = s->turns;
    for (uint32_t word = 0; word < words_of(s->problem); ++word)
        for (; t->changed[word] != 0; t->changed[word] &= t->changed[word] - 1) {
            uint32_t r = 64 * word + (uint32_t)__builtin_ctzll(t->changed[word]);
            if (!t->busy[r] && t->ready[r].count > 0) start(s, pop_ready(s, r));
        }
}

static void run(berth_solve__list *s) {
    list_turns *t = s->turns;
    for (uint32_t v = 0; v < s->problem->node_count; ++v)
        if (t->waiting[v] == 0) make_ready(s, v);
    while (!t->beyond) {
        start_ready(s);
        if (t->event_count == 0) break;
        t->now = t->events[0].time;
        while (t->event_count > 0 && t->events[0].time == t->now) finish(s, pop_event(t).task);
    }
}

list_turns *berth_solve__list_turns_create(berth_arena *arena, const berth_place_problem *problem,
                                           size_t tasks) {
    size_t resources = 2 * (size_t)problem->device_count;
    list_turns *t = berth_arena_new(arena, list_turns);
    t->arena = arena;
    t->waiting = berth_arena_new_array(arena, uint32_t, problem->node_count);
    t->events = berth_arena_new_array(arena, event, tasks);
    t->ready = berth_arena_new_array(arena, task_heap, resources);
    t->busy = berth_arena_new_array(arena, bool, resources);
    t->changed = berth_arena_new_array(arena, uint64_t, words_of(problem));
    t->since = berth_arena_new_array(arena, double, tasks);
    t->ended = berth_arena_new_array(arena, uint32_t, resources);
    t->free_since = berth_arena_new_array(arena, double, resources);
    t->to_spare = berth_arena_new_array(arena, double, resources);
    return t;
}

void berth_solve__list_take_turns(berth_solve__list *s, double limit, list_schedule *out) {
    const berth_place_problem *problem = s->problem;
    list_turns *t = s->turns;
    t->out = out;
    t->limit = limit;
    t->now = 0;
    t->beyond = false;
    t->ending = BERTH_PLACE_NONE;
    t->event_count = t->finished_count = 0;
    for (uint32_t r = 0; r < 2 * problem->device_count; ++r) {
        t->ready[r].count = 0;
        t->busy[r] = false;
        t->free_since[r] = 0;
        t->to_spare[r] = limit * (1 + LOAD_ROUNDING) - s->load[r];
    }
    for (uint32_t w = 0; w < words_of(problem); ++w) t->changed[w] = 0;
    for (uint32_t v = 0; v < problem->node_count; ++v)
        t->waiting[v] = problem->pred_start[v + 1] - problem->pred_start[v];
    run(s);
    out->end = t->beyond ? INFINITY : t->now;
    out->last = t->ending;
}
