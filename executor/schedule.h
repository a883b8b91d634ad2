// Static schedule of a program: its steps cut into batches, one submission each. Made once when a
// session opens.
//
// A queue runs its steps in order; between queues there are timeline semaphores, one per queue.
// Steps of one queue that follow each other form a batch, cut only where a step waits for another
// queue (the batch begins there) or another queue waits for a step (the batch ends there). The n-th
// batch of a queue (from 1) brings the queue's timeline to n within a run. Waits that an earlier
// wait of the same queue already covers are dropped.
#ifndef BERTH_EXECUTOR_SCHEDULE_H_
#define BERTH_EXECUTOR_SCHEDULE_H_

#include "artifact/program.h"

typedef struct berth_schedule_wait {
    uint32_t queue;  // of the program
    uint32_t value;  // of its timeline within the run
} berth_schedule_wait;

typedef struct berth_schedule_batch {
    uint32_t queue;         // of the program
    uint32_t value;         // the queue's timeline reaches it after this batch
    const uint32_t *steps;  // indices into the program's steps, ascending
    uint32_t step_count;
    const berth_schedule_wait *waits;  // on other queues
    uint32_t wait_count;
} berth_schedule_batch;

typedef struct berth_schedule {
    const berth_schedule_batch *batches;  // ordered by first step: every wait is for an earlier one
    uint32_t batch_count;
    const uint32_t *values;  // per queue: its timeline after a run; 0 = no steps
} berth_schedule;

// Makes the schedule of a verified program in the arena, inside berth_arena_try.
// O(steps + waits + queues²).
berth_schedule berth_schedule_make(berth_arena *arena, const berth_program *program);

#endif  // BERTH_EXECUTOR_SCHEDULE_H_
