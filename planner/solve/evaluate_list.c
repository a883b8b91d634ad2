// List scheduling (Graham 1969) of a placed graph with its copies. Whenever a device or a link is
// free, it takes the task with the longest way to the end (the upward rank of Topcuoglu, Hariri and
// Wu, 2002, with the real times) among those that could start; equal ranks by index. A value that
// is needed elsewhere is one task on its device's link (to host memory), then one task on the link
// of each device that needs it; or only the latter, where a link between the two is faster. Tasks
// of no length and nodes of concurrent kinds wait for nobody. O(tasks * (log tasks + devices)).
#include <math.h>

#include "planner/solve/evaluate_private.h"

typedef struct task {
    double length;
    double rank;        // longest way to the end, its own length included
    uint32_t resource;  // device, device_count + device for its link, or BERTH_PLACE_NONE
    uint32_t node;      // whose computation or whose value
    uint32_t reader;    // device that a read is for; BERTH_PLACE_NONE = a write
    bool direct;        // a read that waits for no write
} task;

typedef struct event {
    double time;
    uint32_t task;
} event;

typedef BERTH_VEC(uint32_t) task_heap;

typedef struct schedule {
    const berth_place_problem *problem;
    const uint32_t *assignment;
    berth_arena *scratch;
    BERTH_VEC(task) tasks;  // nodes, then each node's write and reads
    uint32_t *first_copy;   // [node_count + 1] the write of a node, followed by its reads
    uint32_t *waiting;      // [node_count] predecessors whose value is not there yet
    BERTH_VEC(event) events;
    task_heap *ready;  // [2 * device_count]
    bool *busy;        // [2 * device_count]
    double now;
    berth_place_value *out;
    berth_solve__copies *copies;  // NULL = not asked for
} schedule;

static double cost(const schedule *s, uint32_t node, uint32_t device) {
    return s->problem
        ->transfer[(size_t)node * s->problem->kind_count + s->problem->device_kind[device]];
}

// ------------------------------------------------------------------------------------------------
// tasks

static void add_copy(schedule *s, uint32_t u, double length, uint32_t device, uint32_t reader,
                     bool direct) {
    task t = {length, 0, s->problem->device_count + device, u, reader, direct};
    berth_vec_push(s->scratch, &s->tasks, t);
}

// The write comes first, if there is one.
static void add_copies(schedule *s, uint32_t u, bool *needs) {
    const berth_place_problem *problem = s->problem;
    uint32_t home = s->assignment[u];
    uint32_t write = s->tasks.count;
    s->first_copy[u] = write;
    for (uint32_t i = problem->succ_start[u]; i < problem->succ_start[u + 1]; ++i)
        needs[s->assignment[problem->succ[i]]] = true;
    needs[home] = false;
    for (uint32_t d = 0; d < problem->device_count; ++d) {
        if (!needs[d]) continue;
        if (berth_place_direct(problem, u, home, d) < cost(s, u, home) + cost(s, u, d)) continue;
        needs[d] = false;
        if (s->tasks.count == write)
            add_copy(s, u, cost(s, u, home), home, BERTH_PLACE_NONE, false);
        add_copy(s, u, cost(s, u, d), d, d, false);
    }
    for (uint32_t d = 0; d < problem->device_count; ++d) {
        if (needs[d]) add_copy(s, u, berth_place_direct(problem, u, home, d), d, d, true);
        needs[d] = false;
    }
}

static void build_tasks(schedule *s) {
    const berth_place_problem *problem = s->problem;
    for (uint32_t v = 0; v < problem->node_count; ++v) {
        uint32_t d = s->assignment[v];
        uint32_t kind = problem->device_kind[d];
        task t = {problem->time[(size_t)v * problem->kind_count + kind],
                  0,
                  problem->kinds[kind].concurrent ? BERTH_PLACE_NONE : d,
                  v,
                  BERTH_PLACE_NONE,
                  false};
        berth_vec_push(s->scratch, &s->tasks, t);
        s->waiting[v] = problem->pred_start[v + 1] - problem->pred_start[v];
    }
    bool *needs = berth_arena_new_array(s->scratch, bool, problem->device_count);
    for (uint32_t u = 0; u < problem->node_count; ++u) add_copies(s, u, needs);
    s->first_copy[problem->node_count] = s->tasks.count;
    for (uint32_t i = 0; i < s->tasks.count; ++i)
        if (s->tasks.data[i].length == 0) s->tasks.data[i].resource = BERTH_PLACE_NONE;
}

// The largest rank among u's successors on device d.
static double rank_on(const schedule *s, uint32_t u, uint32_t d) {
    const berth_place_problem *problem = s->problem;
    double most = 0;
    for (uint32_t i = problem->succ_start[u]; i < problem->succ_start[u + 1]; ++i)
        if (s->assignment[problem->succ[i]] == d)
            most = fmax(most, s->tasks.data[problem->succ[i]].rank);
    return most;
}

static void rank_tasks(schedule *s) {
    const berth_place_problem *problem = s->problem;
    for (uint32_t at = problem->node_count; at-- > 0;) {
        uint32_t u = problem->topological[at];
        double most = rank_on(s, u, s->assignment[u]);
        uint32_t write = s->first_copy[u];
        uint32_t end = s->first_copy[u + 1];
        double after = 0;
        for (uint32_t i = write; i < end; ++i) {
            task *read = &s->tasks.data[i];
            if (read->reader == BERTH_PLACE_NONE) continue;
            read->rank = read->length + rank_on(s, u, read->reader);
            if (read->direct)
                most = fmax(most, read->rank);
            else
                after = fmax(after, read->rank);
        }
        if (write < end && s->tasks.data[write].reader == BERTH_PLACE_NONE) {
            s->tasks.data[write].rank = s->tasks.data[write].length + after;
            most = fmax(most, s->tasks.data[write].rank);
        }
        s->tasks.data[u].rank = s->tasks.data[u].length + most;
    }
}

// ------------------------------------------------------------------------------------------------
// heaps

static bool task_before(const schedule *s, uint32_t a, uint32_t b) {
    double x = s->tasks.data[a].rank;
    double y = s->tasks.data[b].rank;
    return x > y || (x == y && a < b);
}

static bool event_before(const event *a, const event *b) {
    return a->time < b->time || (a->time == b->time && a->task < b->task);
}

static void push_ready(schedule *s, uint32_t resource, uint32_t index) {
    task_heap *heap = &s->ready[resource];
    berth_vec_push(s->scratch, heap, index);
    uint32_t at = heap->count - 1;
    for (; at > 0 && task_before(s, index, heap->data[(at - 1) / 2]); at = (at - 1) / 2)
        heap->data[at] = heap->data[(at - 1) / 2];
    heap->data[at] = index;
}

static uint32_t pop_ready(schedule *s, uint32_t resource) {
    task_heap *heap = &s->ready[resource];
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

static void push_event(schedule *s, event e) {
    berth_vec_push(s->scratch, &s->events, e);
    uint32_t at = s->events.count - 1;
    for (; at > 0 && event_before(&e, &s->events.data[(at - 1) / 2]); at = (at - 1) / 2)
        s->events.data[at] = s->events.data[(at - 1) / 2];
    s->events.data[at] = e;
}

static event pop_event(schedule *s) {
    event top = s->events.data[0];
    event moved = s->events.data[--s->events.count];
    uint32_t at = 0;
    for (uint32_t child = 1; child < s->events.count; child = 2 * at + 1) {
        if (child + 1 < s->events.count &&
            event_before(&s->events.data[child + 1], &s->events.data[child]))
            ++child;
        if (!event_before(&s->events.data[child], &moved)) break;
        s->events.data[at] = s->events.data[child];
        at = child;
    }
    s->events.data[at] = moved;
    return top;
}

// ------------------------------------------------------------------------------------------------
// running

static void note_copy(const schedule *s, const task *t) {
    uint32_t home = s->assignment[t->node];
    bool writes = t->reader == BERTH_PLACE_NONE;
    berth_place_copy copy = {.node = t->node,
                             .link = writes ? home : t->reader,
                             .from = writes || t->direct ? home : BERTH_PLACE_NONE,
                             .to = t->reader,
                             .start = s->now,
                             .end = s->now + t->length};
    berth_vec_push(s->copies->arena, &s->copies->list, copy);
}

static void start(schedule *s, uint32_t index) {
    const task *t = &s->tasks.data[index];
    if (t->resource != BERTH_PLACE_NONE) s->busy[t->resource] = true;
    if (index < s->problem->node_count) {
        s->out->node_start[index] = s->now;
        s->out->node_done[index] = s->now + t->length;
        s->out->device_load[s->assignment[index]] += t->length;
    } else if (s->copies && t->length > 0) {
        note_copy(s, t);
    }
    push_event(s, (event){s->now + t->length, index});
}

static void make_ready(schedule *s, uint32_t index) {
    if (s->tasks.data[index].resource == BERTH_PLACE_NONE)
        start(s, index);
    else
        push_ready(s, s->tasks.data[index].resource, index);
}

// The value of u has come to device d.
static void arrive(schedule *s, uint32_t u, uint32_t d) {
    const berth_place_problem *problem = s->problem;
    for (uint32_t i = problem->succ_start[u]; i < problem->succ_start[u + 1]; ++i) {
        uint32_t v = problem->succ[i];
        if (s->assignment[v] == d && --s->waiting[v] == 0) make_ready(s, v);
    }
}

static void finish(schedule *s, uint32_t index) {
    task t = s->tasks.data[index];
    if (t.resource != BERTH_PLACE_NONE) s->busy[t.resource] = false;
    uint32_t write = s->first_copy[t.node];
    uint32_t end = s->first_copy[t.node + 1];
    if (index < s->problem->node_count) {
        arrive(s, t.node, s->assignment[t.node]);
        for (uint32_t i = write; i < end; ++i)
            if (s->tasks.data[i].direct || s->tasks.data[i].reader == BERTH_PLACE_NONE)
                make_ready(s, i);
    } else if (t.reader == BERTH_PLACE_NONE) {
        for (uint32_t i = write + 1; i < end; ++i)
            if (!s->tasks.data[i].direct) make_ready(s, i);
    } else {
        arrive(s, t.node, t.reader);
    }
}

void berth_solve__evaluate_list(berth_arena *scratch, const berth_place_problem *problem,
                                const uint32_t *assignment, berth_place_value *out,
                                berth_solve__copies *copies) {
    uint32_t resources = 2 * problem->device_count;
    schedule s = {.problem = problem,
                  .assignment = assignment,
                  .scratch = scratch,
                  .out = out,
                  .copies = copies};
    s.first_copy = berth_arena_new_array(scratch, uint32_t, (size_t)problem->node_count + 1);
    s.waiting = berth_arena_new_array(scratch, uint32_t, problem->node_count);
    s.ready = berth_arena_new_array(scratch, task_heap, resources);
    s.busy = berth_arena_new_array(scratch, bool, resources);
    build_tasks(&s);
    rank_tasks(&s);
    for (uint32_t v = 0; v < problem->node_count; ++v)
        if (s.waiting[v] == 0) make_ready(&s, v);
    for (;;) {
        for (uint32_t r = 0; r < resources; ++r)
            if (!s.busy[r] && s.ready[r].count > 0) start(&s, pop_ready(&s, r));
        if (s.events.count == 0) break;
        s.now = s.events.data[0].time;
        while (s.events.count > 0 && s.events.data[0].time == s.now) finish(&s, pop_event(&s).task);
    }
    out->value = s.now;
}
