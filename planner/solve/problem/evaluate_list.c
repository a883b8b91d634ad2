// List scheduling (Graham 1969) of a placed graph with its copies. Whenever a device or a link is
// free, it takes the task with the longest way to the end (the upward rank of Topcuoglu, Hariri and
// Wu, 2002, with the real times) among those that could start; equal ranks by index. A value that
// is needed elsewhere is one task on its device's link (to host memory), then one task on the link
// of each device that needs it; or only the latter, where a link between the two is faster. Tasks
// of no length and nodes of concurrent kinds wait for nobody. O(tasks * (log tasks + devices)).
#include <math.h>

#include "planner/solve/problem/evaluate_private.h"

#define LOAD_ROUNDING 1e-11  // sums of the same figures in another order

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

struct berth_solve__list {
    const berth_place_problem *problem;
    const uint32_t *assignment;
    berth_arena *arena;
    task *tasks;  // nodes, then each node's write and reads
    uint32_t task_count;
    uint32_t *first_copy;  // [node_count + 1] the write of a node, followed by its reads
    uint32_t *waiting;     // [node_count] predecessors whose value is not there yet
    uint32_t *readers;     // [device_count] that need a value from elsewhere, ascending
    bool *needs;           // [device_count] all false between uses
    double *rank_there;    // [device_count] largest rank of a value's readers; 0 between uses
    event *events;         // a heap
    uint32_t event_count;
    task_heap *ready;    // [2 * device_count]
    bool *busy;          // [2 * device_count]
    uint64_t *changed;   // bits of the resources that were freed, or have more ready tasks, since
                         // they were looked at
    double *shared;      // [berth_place_shared_count] sums
    uint32_t *cause;     // [tasks] whose end it waited for last; NONE = nobody's
    double *since;       // [tasks] when it could have started
    double *done;        // [node_count] when the node's computation ended
    uint32_t *ended;     // [2 * device_count] task that ended last there
    double *free_since;  // [2 * device_count] when it ended; 0 = none did
    double *to_spare;    // [2 * device_count] for how long it can stay without a task, if all is
                         // to end by the limit
    uint32_t *finished;  // [tasks] in the order of their ends
    uint32_t finished_count;
    double *left;          // [tasks] from the start to the end of all; filled by list_times
    double *left_of_next;  // [2 * device_count] that of the next turn; the same
    uint32_t ending;       // task that ends now, and the last of all at the end
    double now, limit;
    bool beyond;                  // the end is beyond the limit
    berth_place_value *out;       // NULL = only the value
    berth_solve__copies *copies;  // NULL = not asked for
};

static double cost(const berth_solve__list *s, uint32_t node, uint32_t device) {
    return s->problem
        ->transfer[(size_t)node * s->problem->kind_count + s->problem->device_kind[device]];
}

// ------------------------------------------------------------------------------------------------
// tasks

static void add_copy(berth_solve__list *s, uint32_t u, double length, uint32_t device,
                     uint32_t reader, bool direct) {
    uint32_t link = s->problem->bus && !direct ? s->problem->bus[device] : device;
    uint32_t resource = length == 0 ? BERTH_PLACE_NONE : s->problem->device_count + link;
    s->tasks[s->task_count++] = (task){length, 0, resource, u, reader, direct};
}

// The other devices that need node u's value.
static uint32_t list_readers(berth_solve__list *s, uint32_t u) {
    const berth_place_problem *problem = s->problem;
    uint32_t home = s->assignment[u], count = 0;
    for (uint32_t i = problem->succ_start[u]; i < problem->succ_start[u + 1]; ++i) {
        uint32_t d = s->assignment[problem->succ[i]];
        if (d == home || s->needs[d]) continue;
        s->needs[d] = true;
        uint32_t at = count++;
        for (; at > 0 && s->readers[at - 1] > d; --at) s->readers[at] = s->readers[at - 1];
        s->readers[at] = d;
    }
    for (uint32_t i = 0; i < count; ++i) s->needs[s->readers[i]] = false;
    return count;
}

// The write comes first, if there is one, then reads from host memory, then those over links.
static void add_copies(berth_solve__list *s, uint32_t u) {
    const berth_place_problem *problem = s->problem;
    uint32_t home = s->assignment[u], count = list_readers(s, u);
    uint32_t write = s->task_count;
    s->first_copy[u] = write;
    for (int direct = 0; direct < 2; ++direct)
        for (uint32_t i = 0; i < count; ++i) {
            uint32_t d = s->readers[i];
            double straight = berth_place_direct(problem, u, home, d);
            bool goes_straight = straight < cost(s, u, home) + cost(s, u, d);
            if (goes_straight != (direct == 1)) continue;
            if (direct == 0 && s->task_count == write)
                add_copy(s, u, cost(s, u, home), home, BERTH_PLACE_NONE, false);
            add_copy(s, u, goes_straight ? straight : cost(s, u, d), d, d, goes_straight);
        }
}

static void build_tasks(berth_solve__list *s) {
    const berth_place_problem *problem = s->problem;
    for (uint32_t v = 0; v < problem->node_count; ++v) {
        uint32_t d = s->assignment[v];
        uint32_t kind = problem->device_kind[d];
        double length = problem->time[(size_t)v * problem->kind_count + kind];
        bool waits_for_nobody = problem->kinds[kind].concurrent || length == 0;
        uint32_t runs_on = problem->resource ? problem->resource[d] : d;
        if (waits_for_nobody) runs_on = BERTH_PLACE_NONE;
        s->tasks[v] = (task){length, 0, runs_on, v, BERTH_PLACE_NONE, false};
        s->waiting[v] = problem->pred_start[v + 1] - problem->pred_start[v];
    }
    s->task_count = problem->node_count;
    for (uint32_t u = 0; u < problem->node_count; ++u) add_copies(s, u);
    s->first_copy[problem->node_count] = s->task_count;
}

// The most that nodes and copies take of a memory or a bus.
static double add_shared_copies(berth_solve__list *s) {
    const berth_place_problem *problem = s->problem;
    bool any = problem->copy_ms || problem->direct_bus;
    for (uint32_t i = problem->node_count; any && i < s->task_count; ++i) {
        const task *t = &s->tasks[i];
        uint32_t home = s->assignment[t->node];
        bool from_home = t->direct || t->reader == BERTH_PLACE_NONE;
        berth_place_shared_copy(problem, t->node, from_home ? home : BERTH_PLACE_NONE, t->reader,
                                t->length, s->shared);
    }
    return berth_place_shared_most(problem, s->shared);
}

// Whether what every device and link has to do can be done by the limit.
static bool has_time(berth_solve__list *s) {
    uint32_t resources = 2 * s->problem->device_count;
    for (uint32_t r = 0; r < resources; ++r) s->to_spare[r] = s->limit * (1 + LOAD_ROUNDING);
    for (uint32_t i = 0; i < s->task_count; ++i)
        if (s->tasks[i].resource != BERTH_PLACE_NONE)
            s->to_spare[s->tasks[i].resource] -= s->tasks[i].length;
    for (uint32_t r = 0; r < resources; ++r)
        if (s->to_spare[r] < 0) return false;
    return true;
}

// Sets the ranks of u's copies; returns the longest way that its value goes.
static double rank_copies(berth_solve__list *s, uint32_t u) {
    uint32_t write = s->first_copy[u], end = s->first_copy[u + 1];
    double most = s->rank_there[s->assignment[u]], after = 0;
    for (uint32_t i = write; i < end; ++i) {
        task *read = &s->tasks[i];
        if (read->reader == BERTH_PLACE_NONE) continue;
        read->rank = read->length + s->rank_there[read->reader];
        if (read->direct)
            most = fmax(most, read->rank);
        else
            after = fmax(after, read->rank);
    }
    if (write < end && s->tasks[write].reader == BERTH_PLACE_NONE) {
        s->tasks[write].rank = s->tasks[write].length + after;
        most = fmax(most, s->tasks[write].rank);
    }
    return most;
}

// Returns the longest way through all.
static double rank_tasks(berth_solve__list *s) {
    const berth_place_problem *problem = s->problem;
    double longest = 0;
    for (uint32_t at = problem->node_count; at-- > 0;) {
        uint32_t u = problem->topological[at];
        uint32_t first = problem->succ_start[u], end = problem->succ_start[u + 1];
        for (uint32_t i = first; i < end; ++i) {
            double *there = &s->rank_there[s->assignment[problem->succ[i]]];
            *there = fmax(*there, s->tasks[problem->succ[i]].rank);
        }
        s->tasks[u].rank = s->tasks[u].length + rank_copies(s, u);
        longest = fmax(longest, s->tasks[u].rank);
        for (uint32_t i = first; i < end; ++i) s->rank_there[s->assignment[problem->succ[i]]] = 0;
    }
    return longest;
}

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

static void note_changed(berth_solve__list *s, uint32_t resource) {
    s->changed[resource / 64] |= (uint64_t)1 << resource % 64;
}

static void push_ready(berth_solve__list *s, uint32_t resource, uint32_t index) {
    note_changed(s, resource);
    task_heap *heap = &s->ready[resource];
    berth_vec_push(s->arena, heap, index);
    uint32_t at = heap->count - 1;
    for (; at > 0 && task_before(s, index, heap->data[(at - 1) / 2]); at = (at - 1) / 2)
        heap->data[at] = heap->data[(at - 1) / 2];
    heap->data[at] = index;
}

static uint32_t pop_ready(berth_solve__list *s, uint32_t resource) {
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

static void push_event(berth_solve__list *s, event e) {
    uint32_t at = s->event_count++;
    for (; at > 0 && event_before(&e, &s->events[(at - 1) / 2]); at = (at - 1) / 2)
        s->events[at] = s->events[(at - 1) / 2];
    s->events[at] = e;
}

static event pop_event(berth_solve__list *s) {
    event top = s->events[0];
    event moved = s->events[--s->event_count];
    uint32_t at = 0;
    for (uint32_t child = 1; child < s->event_count; child = 2 * at + 1) {
        if (child + 1 < s->event_count && event_before(&s->events[child + 1], &s->events[child]))
            ++child;
        if (!event_before(&s->events[child], &moved)) break;
        s->events[at] = s->events[child];
        at = child;
    }
    s->events[at] = moved;
    return top;
}

// ------------------------------------------------------------------------------------------------
// running

static void note_copy(const berth_solve__list *s, const task *t) {
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

static void start(berth_solve__list *s, uint32_t index) {
    const task *t = &s->tasks[index];
    if (s->now + t->rank > s->limit) s->beyond = true;
    if (t->resource != BERTH_PLACE_NONE) {
        s->busy[t->resource] = true;
        s->to_spare[t->resource] -= s->now - s->free_since[t->resource];
        if (s->to_spare[t->resource] < 0) s->beyond = true;
        if (s->since[index] < s->now) s->cause[index] = s->ended[t->resource];
    }
    if (s->out && index < s->problem->node_count) {
        s->out->node_start[index] = s->now;
        s->out->node_done[index] = s->now + t->length;
        s->out->device_load[s->assignment[index]] += t->length;
    } else if (s->copies && index >= s->problem->node_count && t->length > 0) {
        note_copy(s, t);
    }
    push_event(s, (event){s->now + t->length, index});
}

static void make_ready(berth_solve__list *s, uint32_t index) {
    s->cause[index] = s->ending;
    s->since[index] = s->now;
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
        if (s->assignment[v] == d && --s->waiting[v] == 0) make_ready(s, v);
    }
}

static void finish(berth_solve__list *s, uint32_t index) {
    task t = s->tasks[index];
    s->ending = index;
    s->finished[s->finished_count++] = index;
    if (t.resource != BERTH_PLACE_NONE) {
        s->busy[t.resource] = false;
        s->free_since[t.resource] = s->now;
        note_changed(s, t.resource);
        s->ended[t.resource] = index;
    }
    uint32_t write = s->first_copy[t.node];
    uint32_t end = s->first_copy[t.node + 1];
    if (index < s->problem->node_count) {
        s->done[index] = s->now;
        arrive(s, t.node, s->assignment[t.node]);
        for (uint32_t i = write; i < end; ++i)
            if (s->tasks[i].direct || s->tasks[i].reader == BERTH_PLACE_NONE) make_ready(s, i);
    } else if (t.reader == BERTH_PLACE_NONE) {
        for (uint32_t i = write + 1; i < end; ++i)
            if (!s->tasks[i].direct) make_ready(s, i);
    } else {
        arrive(s, t.node, t.reader);
    }
}

// Gives each free resource that has something to do its next task.
static void start_ready(berth_solve__list *s) {
    for (uint32_t word = 0; word < words_of(s->problem); ++word)
        for (; s->changed[word] != 0; s->changed[word] &= s->changed[word] - 1) {
            uint32_t r = 64 * word + (uint32_t)__builtin_ctzll(s->changed[word]);
            if (!s->busy[r] && s->ready[r].count > 0) start(s, pop_ready(s, r));
        }
}

static void run(berth_solve__list *s) {
    for (uint32_t v = 0; v < s->problem->node_count; ++v)
        if (s->waiting[v] == 0) make_ready(s, v);
    while (!s->beyond) {
        start_ready(s);
        if (s->event_count == 0) break;
        s->now = s->events[0].time;
        while (s->event_count > 0 && s->events[0].time == s->now) finish(s, pop_event(s).task);
    }
}

berth_solve__list *berth_solve__list_create(berth_arena *arena,
                                            const berth_place_problem *problem) {
    uint32_t nodes = problem->node_count, devices = problem->device_count;
    // A node has a write at most, and a read for each of its edges.
    size_t tasks = 2 * (size_t)nodes + problem->edge_count;
    berth_solve__list *s = berth_arena_new(arena, berth_solve__list);
    s->problem = problem;
    s->arena = arena;
    s->tasks = berth_arena_new_array(arena, task, tasks);
    s->first_copy = berth_arena_new_array(arena, uint32_t, (size_t)nodes + 1);
    s->waiting = berth_arena_new_array(arena, uint32_t, nodes);
    s->readers = berth_arena_new_array(arena, uint32_t, devices);
    s->needs = berth_arena_new_array(arena, bool, devices);
    s->rank_there = berth_arena_new_array(arena, double, devices);
    s->events = berth_arena_new_array(arena, event, tasks);
    s->ready = berth_arena_new_array(arena, task_heap, 2 * (size_t)devices);
    s->busy = berth_arena_new_array(arena, bool, 2 * (size_t)devices);
    s->changed = berth_arena_new_array(arena, uint64_t, words_of(problem));
    s->shared = berth_arena_new_array(arena, double, berth_place_shared_count(problem) + 1);
    s->cause = berth_arena_new_array(arena, uint32_t, tasks);
    s->since = berth_arena_new_array(arena, double, tasks);
    s->left = berth_arena_new_array(arena, double, tasks);
    s->left_of_next = berth_arena_new_array(arena, double, 2 * (size_t)devices);
    s->finished = berth_arena_new_array(arena, uint32_t, tasks);
    s->done = berth_arena_new_array(arena, double, nodes);
    s->ended = berth_arena_new_array(arena, uint32_t, 2 * (size_t)devices);
    s->free_since = berth_arena_new_array(arena, double, 2 * (size_t)devices);
    s->to_spare = berth_arena_new_array(arena, double, 2 * (size_t)devices);
    return s;
}

double berth_solve__list_value(berth_solve__list *s, const uint32_t *assignment, double limit,
                               berth_place_value *out, berth_solve__copies *copies) {
    s->assignment = assignment;
    s->out = out;
    s->copies = copies;
    s->limit = limit;
    s->now = 0;
    s->beyond = false;
    s->ending = BERTH_PLACE_NONE;
    s->event_count = s->finished_count = 0;
    for (uint32_t r = 0; r < 2 * s->problem->device_count; ++r) {
        s->ready[r].count = 0;
        s->busy[r] = false;
        s->free_since[r] = 0;
    }
    for (uint32_t w = 0; w < words_of(s->problem); ++w) s->changed[w] = 0;
    berth_place_shared_nodes(s->problem, assignment, s->shared);
    if (berth_place_shared_most(s->problem, s->shared) > limit) return INFINITY;
    build_tasks(s);
    double shared_ms = add_shared_copies(s);
    if (shared_ms > limit) return INFINITY;
    if (!has_time(s) || rank_tasks(s) > limit) return INFINITY;
    run(s);
    return s->beyond ? INFINITY : fmax(s->now, shared_ms);
}

uint32_t berth_solve__list_critical(const berth_solve__list *s, uint32_t *nodes) {
    uint32_t count = 0;
    for (uint32_t index = s->ending; index != BERTH_PLACE_NONE; index = s->cause[index]) {
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
    const task *t = &s->tasks[index];
    bool computes = index < problem->node_count;
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
    for (uint32_t r = 0; r < 2 * s->problem->device_count; ++r) s->left_of_next[r] = 0;
    for (uint32_t i = s->finished_count; i-- > 0;) {
        uint32_t index = s->finished[i], resource = s->tasks[index].resource;
        double after = left_after(s, index);
        if (resource != BERTH_PLACE_NONE) after = fmax(after, s->left_of_next[resource]);
        s->left[index] = s->tasks[index].length + after;
        if (resource != BERTH_PLACE_NONE) s->left_of_next[resource] = s->left[index];
        if (index < nodes) order[--at] = index;
    }
    for (uint32_t v = 0; v < nodes; ++v) {
        done[v] = s->done[v];
        left[v] = s->left[v];
    }
}
