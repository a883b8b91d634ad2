#include "executor/schedule.h"

#include <stdlib.h>

typedef BERTH_VEC(berth_schedule_wait) wait_list;

typedef struct open_batch {
    BERTH_VEC(uint32_t) steps;
    wait_list waits;
} open_batch;

typedef struct scheduler {
    berth_arena *arena;
    const berth_program *program;
    uint32_t *known;   // [queue][other]: 1 + the newest step of `other` that `queue` has waited for
    bool *waited_for;  // per step: another queue waits for it
    uint32_t **needed;  // per step: its waits that are not covered yet, as steps
    uint32_t *needed_count;
    open_batch *open;    // per queue
    uint32_t *values;    // per queue: batches closed so far
    uint32_t *batch_of;  // per step: value of the timeline after it, once its batch is closed
    BERTH_VEC(berth_schedule_batch) batches;
} scheduler;

// Waits of a step that earlier waits of the same queue do not cover; of several on one queue the
// newest.
static void find_needed_waits(scheduler *s, uint32_t i) {
    const berth_program_step *step = &s->program->steps[i];
    uint32_t *known = s->known + (size_t)step->queue * s->program->queue_count;
    for (uint32_t w = 0; w < step->wait_count; ++w) {
        uint32_t *seen = &known[s->program->steps[step->waits[w]].queue];
        if (step->waits[w] + 1 > *seen)
            *seen = step->waits[w] + 1;
        else
            continue;
        if (!s->needed[i])
            s->needed[i] = berth_arena_new_array(s->arena, uint32_t, step->wait_count);
        uint32_t count = 0;  // replaces an older wait on the same queue
        for (uint32_t n = 0; n < s->needed_count[i]; ++n)
            if (s->program->steps[s->needed[i][n]].queue != s->program->steps[step->waits[w]].queue)
                s->needed[i][count++] = s->needed[i][n];
        s->needed[i][count++] = step->waits[w];
        s->needed_count[i] = count;
    }
    for (uint32_t n = 0; n < s->needed_count[i]; ++n) s->waited_for[s->needed[i][n]] = true;
}

static void close_batch(scheduler *s, uint32_t queue) {
    open_batch *open = &s->open[queue];
    if (open->steps.count == 0) return;
    berth_schedule_batch batch = {.queue = queue,
                                  .value = ++s->values[queue],
                                  .steps = open->steps.data,
                                  .step_count = open->steps.count,
                                  .waits = open->waits.data,
                                  .wait_count = open->waits.count};
    for (uint32_t i = 0; i < batch.step_count; ++i) s->batch_of[batch.steps[i]] = batch.value;
    berth_vec_push(s->arena, &s->batches, batch);
    *open = (open_batch){0};
}

static void add_step(scheduler *s, uint32_t i) {
    uint32_t queue = s->program->steps[i].queue;
    if (s->needed_count[i]) close_batch(s, queue);
    open_batch *open = &s->open[queue];
    for (uint32_t n = 0; n < s->needed_count[i]; ++n) {
        uint32_t other = s->needed[i][n];  // it ended its batch, which is closed
        berth_vec_push(s->arena, &open->waits,
                       (berth_schedule_wait){s->program->steps[other].queue, s->batch_of[other]});
    }
    berth_vec_push(s->arena, &open->steps, i);
    if (s->waited_for[i]) close_batch(s, queue);
}

static int compare_batches(const void *a, const void *b) {
    const berth_schedule_batch *x = a;
    const berth_schedule_batch *y = b;
    return (x->steps[0] > y->steps[0]) - (x->steps[0] < y->steps[0]);
}

berth_schedule berth_schedule_make(berth_arena *arena, const berth_program *program) {
    scheduler s = {.arena = arena, .program = program};
    uint32_t queues = program->queue_count;
    uint32_t steps = program->step_count;
    s.known = berth_arena_array(arena, (size_t)queues * queues, sizeof(uint32_t));
    s.waited_for = berth_arena_new_array(arena, bool, steps);
    s.needed = berth_arena_new_array(arena, uint32_t *, steps);
    s.needed_count = berth_arena_new_array(arena, uint32_t, steps);
    s.open = berth_arena_new_array(arena, open_batch, queues);
    s.values = berth_arena_new_array(arena, uint32_t, queues);
    s.batch_of = berth_arena_new_array(arena, uint32_t, steps);
    for (uint32_t i = 0; i < steps; ++i) find_needed_waits(&s, i);
    for (uint32_t i = 0; i < steps; ++i) add_step(&s, i);
    for (uint32_t q = 0; q < queues; ++q) close_batch(&s, q);
    if (s.batches.count)
        qsort(s.batches.data, s.batches.count, sizeof(*s.batches.data), compare_batches);
    return (berth_schedule){
        .batches = s.batches.data, .batch_count = s.batches.count, .values = s.values};
}
