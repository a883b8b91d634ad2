// Discrete-event simulation of a planned schedule, on plain data: tasks in rows, on resources that do
// one thing at a time, and memories whose bandwidth those that run share. Knows nothing of modules or programs (toolkit/simulate.h fills it).
//
//   berth_sim_result result;
//   BERTH_TRY(berth_simulate(arena, &schedule, &load, &result));
#ifndef BERTH_PLANNER_SIMULATE_H_
#define BERTH_PLANNER_SIMULATE_H_

#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"

// Of a memory: for how long a task would take all of its bandwidth, which is what it reads and writes there
// over that. 0 = it takes nothing.
typedef struct berth_sim_use {
    uint32_t memory;
    double ns;
} berth_sim_use;

// Memories that a task works in: a copy's both ends.
enum { BERTH_SIM_USES = 2 };

// A step of one request.
typedef struct berth_sim_task {
    uint32_t queue;     // tasks of one queue run in their order
    uint32_t resource;  // that it takes for itself: what a device computes with, a link, a bus
    double ns;          // if nothing else runs
    berth_sim_use uses[BERTH_SIM_USES];  // of different memories
    const uint32_t *waits;               // earlier tasks that must be done
    uint32_t wait_count;
    // From the end of what it waits for in another queue until it can begin (a thread is woken).
    double woken_ns;
    // From its end until its queue goes on: those who wait for it are woken.
    double waking_ns;
} berth_sim_task;

// Borrowed.
typedef struct berth_sim_schedule {
    const berth_sim_task *tasks;  // in an order that queues and waits follow
    uint32_t task_count;
    uint32_t queue_count;
    uint32_t resource_count;
} berth_sim_schedule;

typedef struct berth_sim_load {
    uint32_t requests;   // > 0
    double interval_ns;  // between arrivals; 0 = all are there at the start
    uint32_t streams;    // sessions that each run one request at a time; > 0
} berth_sim_load;

// When a task ran.
typedef struct berth_sim_event {
    uint32_t request, task;
    double start_ns, end_ns;
} berth_sim_event;

// Arena memory.
typedef struct berth_sim_result {
    const berth_sim_event *events;  // by request, then in the order of the tasks
    uint32_t event_count;
    const double *latency_ns;  // per request: from its arrival to its last task's end
    const double *busy_ns;     // per resource
    double end_ns;             // of the last request
} berth_sim_result;

#define BERTH_SIM_EVENT_LIMIT 4000000u  // requests times tasks

// Whenever a resource is free, it takes of the tasks that are ready the one of the oldest request (ties: the earlier task), as
// the executor's devices do (docs/threading.md): a request's part on a device is not cut up by requests that came later, so that
// they leave it one after another. A stream takes the next request when it is done with one. Tasks that run in one memory and want more of its
// bandwidth than there is get equal parts, or what they want where that is less: each goes on as much slower, by the
// scarcer of its two memories. The same input gives the same result. O(events * (streams * queues + resources)).
//   errors: OUT_OF_RANGE more events than BERTH_SIM_EVENT_LIMIT; INVALID_ARGUMENT a wait for a later
//           task; OUT_OF_MEMORY
BERTH_MUST_USE berth_status berth_simulate(berth_arena *arena, const berth_sim_schedule *schedule,
                                           const berth_sim_load *load,
                                           berth_sim_result *out_result);

#endif  // BERTH_PLANNER_SIMULATE_H_
