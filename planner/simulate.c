#include "planner/simulate.h"

#include <math.h>
#include <stdbool.h>

// The next task of a queue.
typedef struct head {
    double ready_ns;     // INFINITY: it waits for a task that is not done, or there is none
    uint32_t waits_for;  // that task; NO_TASK
} head;
#define NO_TASK UINT32_MAX

// A session: the request that it runs.
typedef struct stream {
    uint32_t request;  // UINT32_MAX = none
    uint32_t left;     // tasks that are not done
    uint32_t *next;    // [queue] position in the queue's list
    head *heads;       // [queue] the task at that position
} stream;

// A task that runs. What is left of it is less by `rate` of the time that passes.
typedef struct running {
    stream *of;
    uint32_t task;
    double rate;     // 1, less where the memory has not enough bandwidth for all
    double left_ns;  // at `since_ns`, if it were alone
    double since_ns;
    double end_ns;  // if nothing begins or ends in its memory before
} running;

typedef struct simulation {
    const berth_sim_schedule *schedule;
    const berth_sim_load *load;
    berth_arena *arena;
    uint32_t *first;  // [queue + 1] into order
    uint32_t *order;  // tasks by queue
    stream *streams;
    uint32_t taken;    // requests that a stream has taken
    bool *taken_now;   // per resource
    running *running;  // [resource_count] those of now
    uint32_t running_count;
    double now_ns;
    double *busy_ns;         // per resource
    double *latency_ns;      // per request
    berth_sim_event *event;  // [request * task_count + task]; end_ns < 0 = not done yet
    double end_ns;
} simulation;

static berth_sim_event *event_of(const simulation *s, uint32_t request, uint32_t task) {
    return &s->event[(size_t)request * s->schedule->task_count + task];
}

static double arrival_ns(const simulation *s, uint32_t request) {
    return request * s->load->interval_ns;
}

static void sort_queues(simulation *s) {
    const berth_sim_schedule *schedule = s->schedule;
    s->first = berth_arena_new_array(s->arena, uint32_t, schedule->queue_count + 2);
    s->order = berth_arena_new_array(s->arena, uint32_t, schedule->task_count + 1);
    for (uint32_t t = 0; t < schedule->task_count; ++t) s->first[schedule->tasks[t].queue + 2]++;
    for (uint32_t q = 0; q < schedule->queue_count; ++q) s->first[q + 2] += s->first[q + 1];
    for (uint32_t t = 0; t < schedule->task_count; ++t)  // the starts move to the ends
        s->order[s->first[schedule->tasks[t].queue + 1]++] = t;
}

// When the head of a stream's queue is ready. What it waits for is done once and for all, so that this is
// asked again only when the task is done that it was found to wait for.
static void find_head(const simulation *s, stream *of, uint32_t queue) {
    head *h = &of->heads[queue];
    *h = (head){INFINITY, NO_TASK};
    if (of->request == UINT32_MAX || of->next[queue] == s->first[queue + 1]) return;
    uint32_t t = s->order[of->next[queue]];
    const berth_sim_task *task = &s->schedule->tasks[t];
    double ready = event_of(s, of->request, t)->start_ns;
    if (of->next[queue] > s->first[queue]) {
        h->waits_for = s->order[of->next[queue] - 1];
        double end = event_of(s, of->request, h->waits_for)->end_ns;
        if (end < 0) return;
        ready = fmax(ready, end + s->schedule->tasks[h->waits_for].waking_ns);
    }
    for (uint32_t i = 0; i < task->wait_count; ++i) {
        h->waits_for = task->waits[i];
        double end = event_of(s, of->request, h->waits_for)->end_ns;
        if (end < 0) return;
        bool other = s->schedule->tasks[h->waits_for].queue != queue;
        ready = fmax(ready, end + (other ? task->woken_ns : 0));
    }
    *h = (head){ready, NO_TASK};
}

// A stream begins its next request at `now` or when that arrives.
static void take_request(simulation *s, stream *of, double now_ns) {
    of->request = UINT32_MAX;
    for (uint32_t q = 0; q < s->schedule->queue_count; ++q)
        of->heads[q] = (head){INFINITY, NO_TASK};
    if (s->taken == s->load->requests) return;
    of->request = s->taken++;
    of->left = s->schedule->task_count;
    double start = fmax(now_ns, arrival_ns(s, of->request));
    for (uint32_t q = 0; q < s->schedule->queue_count; ++q) of->next[q] = s->first[q];
    for (uint32_t t = 0; t < s->schedule->task_count; ++t)
        *event_of(s, of->request, t) =
            (berth_sim_event){.request = of->request, .task = t, .start_ns = start, .end_ns = -1};
    for (uint32_t q = 0; q < s->schedule->queue_count; ++q) find_head(s, of, q);
}

// ---- what runs ----------------------------------------------------------------------------------

static const berth_sim_task *task_of(const simulation *s, const running *r) {
    return &s->schedule->tasks[r->task];
}

// The part of a memory's bandwidth that a task takes if it gets all it wants.
static double demand_of(const simulation *s, const running *r, uint32_t memory) {
    const berth_sim_task *task = task_of(s, r);
    for (int i = 0; i < BERTH_SIM_USES; ++i)
        if (task->uses[i].memory == memory && task->uses[i].ns > 0)
            return fmin(task->uses[i].ns / task->ns, 1);
    return 0;
}

// The most that one task gets of a memory where all want more than there is: who wants less than
// an equal part gets that, and leaves the rest to the others (max-min fairness; Bertsekas and
// Gallager, "Data Networks", 1992, section 6.5.2). INFINITY: there is enough.
static double fair_part(const simulation *s, uint32_t memory) {
    double wanted = 0, part = 0;
    for (uint32_t i = 0; i < s->running_count; ++i) wanted += demand_of(s, &s->running[i], memory);
    if (wanted <= 1) return INFINITY;
    for (bool raised = true; raised;) {
        double modest = 0;
        uint32_t others = 0;
        for (uint32_t i = 0; i < s->running_count; ++i) {
            double demand = demand_of(s, &s->running[i], memory);
            if (demand <= part) modest += demand;
            others += demand > part;
        }
        double next = others ? (1 - modest) / others : part;
        raised = next > part;
        if (raised) part = next;
    }
    return part;
}

// How fast a task goes on: by the scarcest of its memories.
static double rate_of(const simulation *s, const running *r) {
    const berth_sim_task *task = task_of(s, r);
    double rate = 1;
    for (int i = 0; i < BERTH_SIM_USES; ++i) {
        if (!(task->uses[i].ns > 0)) continue;
        double part = fair_part(s, task->uses[i].memory);
        double demand = demand_of(s, r, task->uses[i].memory);
        if (demand > part) rate = fmin(rate, part / demand);
    }
    return rate;
}

static bool share_memory(const berth_sim_task *a, const berth_sim_task *b) {
    for (int i = 0; i < BERTH_SIM_USES; ++i)
        for (int k = 0; k < BERTH_SIM_USES; ++k)
            if (a->uses[i].ns > 0 && b->uses[k].ns > 0 && a->uses[i].memory == b->uses[k].memory)
                return true;
    return false;
}

// After the task has begun or ended: of all that share a memory with it.
static void set_rates(simulation *s, const berth_sim_task *changed) {
    for (uint32_t i = 0; i < s->running_count; ++i) {
        running *r = &s->running[i];
        if (!share_memory(task_of(s, r), changed)) continue;
        double rate = rate_of(s, r);
        if (rate == r->rate) continue;
        r->left_ns -= (s->now_ns - r->since_ns) * r->rate;
        r->since_ns = s->now_ns;
        r->rate = rate;
        r->end_ns = s->now_ns + fmax(r->left_ns, 0) / rate;
    }
}

static void start_task(simulation *s, stream *of, uint32_t queue, double start_ns) {
    uint32_t task = s->order[of->next[queue]++];
    const berth_sim_task *held = &s->schedule->tasks[task];
    s->now_ns = start_ns;
    event_of(s, of->request, task)->start_ns = start_ns;
    s->taken_now[held->resource] = true;
    find_head(s, of, queue);
    s->running[s->running_count++] = (running){.of = of,
                                               .task = task,
                                               .rate = 1,
                                               .left_ns = held->ns,
                                               .since_ns = start_ns,
                                               .end_ns = start_ns + held->ns};
    set_rates(s, held);
}

static void finish_task(simulation *s, uint32_t index) {
    running done = s->running[index];
    const berth_sim_task *task = task_of(s, &done);
    stream *of = done.of;
    berth_sim_event *event = event_of(s, of->request, done.task);
    s->running[index] = s->running[--s->running_count];
    s->now_ns = event->end_ns = done.end_ns;
    s->taken_now[task->resource] = false;
    s->busy_ns[task->resource] += event->end_ns - event->start_ns;
    if (event->end_ns > s->end_ns) s->end_ns = event->end_ns;
    double *latency = &s->latency_ns[of->request];
    *latency = fmax(*latency, event->end_ns - arrival_ns(s, of->request));
    set_rates(s, task);
    for (uint32_t q = 0; q < s->schedule->queue_count; ++q)
        if (of->heads[q].waits_for == done.task) find_head(s, of, q);
    if (--of->left == 0) take_request(s, of, s->now_ns);
}

// The task that ends next (ties: the earlier request, then the earlier task); UINT32_MAX: none
// runs.
static uint32_t next_end(const simulation *s) {
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < s->running_count; ++i) {
        const running *r = &s->running[i], *b = &s->running[best == UINT32_MAX ? i : best];
        bool earlier = r->of->request < b->of->request ||
                       (r->of->request == b->of->request && r->task < b->task);
        if (best == UINT32_MAX || r->end_ns < b->end_ns || (r->end_ns == b->end_ns && earlier))
            best = i;
    }
    return best;
}

// The next beginning or end. Of all heads whose resource is free: the earliest start, then the
// oldest request, then the earlier task.
static bool step(simulation *s) {
    stream *best = NULL;
    uint32_t best_queue = 0;
    double best_start = INFINITY;
    for (uint32_t i = 0; i < s->load->streams; ++i)
        for (uint32_t q = 0; q < s->schedule->queue_count; ++q) {
            stream *of = &s->streams[i];
            double ready = of->heads[q].ready_ns;
            if (ready == INFINITY) continue;
            uint32_t task = s->order[of->next[q]];
            if (s->taken_now[s->schedule->tasks[task].resource]) continue;
            double start = fmax(ready, s->now_ns);
            bool before = start < best_start;
            if (start == best_start) {
                uint32_t other = s->order[best->next[best_queue]];
                before =
                    of->request < best->request || (of->request == best->request && task < other);
            }
            if (!before) continue;
            best = of;
            best_queue = q;
            best_start = start;
        }
    uint32_t ends = next_end(s);
    if (ends != UINT32_MAX && s->running[ends].end_ns <= best_start) {
        finish_task(s, ends);
        return true;
    }
    if (best) start_task(s, best, best_queue, best_start);
    return best != NULL;
}

static berth_status check(const berth_sim_schedule *schedule, const berth_sim_load *load) {
    if ((double)schedule->task_count * load->requests > BERTH_SIM_EVENT_LIMIT)
        return berth_status_make(BERTH_OUT_OF_RANGE,
                                 "%u requests of %u steps are more than %u events: simulate fewer "
                                 "requests",
                                 load->requests, schedule->task_count, BERTH_SIM_EVENT_LIMIT);
    for (uint32_t t = 0; t < schedule->task_count; ++t)
        for (uint32_t i = 0; i < schedule->tasks[t].wait_count; ++i)
            if (schedule->tasks[t].waits[i] >= t)
                return berth_status_make(BERTH_INVALID_ARGUMENT,
                                         "task %u waits for task %u, which is not before it", t,
                                         schedule->tasks[t].waits[i]);
    return BERTH_OK;
}

static berth_status run(void *user) {
    simulation *s = user;
    const berth_sim_schedule *schedule = s->schedule;
    size_t events = (size_t)schedule->task_count * s->load->requests;
    sort_queues(s);
    s->event = berth_arena_new_array(s->arena, berth_sim_event, events + 1);
    s->taken_now = berth_arena_new_array(s->arena, bool, schedule->resource_count + 1);
    s->running = berth_arena_new_array(s->arena, running, schedule->resource_count + 1);
    s->busy_ns = berth_arena_new_array(s->arena, double, schedule->resource_count + 1);
    s->latency_ns = berth_arena_new_array(s->arena, double, s->load->requests);
    s->streams = berth_arena_new_array(s->arena, stream, s->load->streams);
    for (uint32_t i = 0; i < s->load->streams; ++i) {
        s->streams[i].next = berth_arena_new_array(s->arena, uint32_t, schedule->queue_count + 1);
        s->streams[i].heads = berth_arena_new_array(s->arena, head, schedule->queue_count + 1);
        s->streams[i].request = UINT32_MAX;
        if (schedule->task_count) take_request(s, &s->streams[i], 0);
    }
    while (step(s)) continue;
    return BERTH_OK;
}

berth_status berth_simulate(berth_arena *arena, const berth_sim_schedule *schedule,
                            const berth_sim_load *load, berth_sim_result *out_result) {
    simulation s = {.schedule = schedule, .load = load, .arena = arena};
    BERTH_TRY(check(schedule, load));
    BERTH_TRY(berth_arena_try(arena, run, &s));
    *out_result = (berth_sim_result){.events = s.event,
                                     .event_count = schedule->task_count * load->requests,
                                     .latency_ns = s.latency_ns,
                                     .busy_ns = s.busy_ns,
                                     .end_ns = s.end_ns};
    return BERTH_OK;
}
