// The static schedule: small cases by hand, and on random programs the promise that every wait of
// the program holds.
#include <criterion/criterion.h>
#include <string.h>

#include "executor/schedule.h"

static berth_arena *arena;

static void setup(void) {
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
}

static void teardown(void) {
    berth_arena_destroy(arena);
}

TestSuite(schedule, .init = setup, .fini = teardown);

typedef struct row {
    uint32_t queue;
    uint32_t waits[3];
    uint32_t wait_count;
} row;

static berth_program make_program(const row *rows, uint32_t count, uint32_t queue_count) {
    berth_program_step *steps = berth_arena_new_array(arena, berth_program_step, count);
    for (uint32_t i = 0; i < count; ++i) {
        steps[i].queue = rows[i].queue;
        steps[i].waits = rows[i].waits;
        steps[i].wait_count = rows[i].wait_count;
    }
    return (berth_program){.steps = steps, .step_count = count, .queue_count = queue_count};
}

Test(schedule, one_queue_is_one_batch) {
    static const row rows[4];
    berth_program program = make_program(rows, 4, 2);
    berth_schedule schedule = berth_schedule_make(arena, &program);
    cr_assert_eq(schedule.batch_count, 1);
    cr_assert_eq(schedule.batches[0].step_count, 4);
    cr_assert_eq(schedule.batches[0].wait_count, 0);
    cr_assert_eq(schedule.values[0], 1);
    cr_assert_eq(schedule.values[1], 0);
}

Test(schedule, no_steps_no_batches) {
    berth_program program = make_program(NULL, 0, 1);
    berth_schedule schedule = berth_schedule_make(arena, &program);
    cr_assert_eq(schedule.batch_count, 0);
    cr_assert_eq(schedule.values[0], 0);
}

// cpu a b | gpu c(waits b) d | cpu e | cpu f(waits d) g: e is cut from a b by the signal, and from
// f g by the wait.
Test(schedule, cuts_only_where_queues_meet) {
    static const row rows[] = {
        {.queue = 0}, {.queue = 0}, {.queue = 1, .waits = {1}, .wait_count = 1},
        {.queue = 1}, {.queue = 0}, {.queue = 0, .waits = {3}, .wait_count = 1},
        {.queue = 0}};
    berth_program program = make_program(rows, 7, 2);
    berth_schedule s = berth_schedule_make(arena, &program);
    cr_assert_eq(s.batch_count, 4);
    static const uint32_t queues[] = {0, 1, 0, 0}, counts[] = {2, 2, 1, 2}, values[] = {1, 1, 2, 3};
    for (uint32_t i = 0; i < 4; ++i) {
        cr_assert_eq(s.batches[i].queue, queues[i]);
        cr_assert_eq(s.batches[i].step_count, counts[i]);
        cr_assert_eq(s.batches[i].value, values[i]);
        cr_assert_eq(s.batches[i].wait_count, i % 2);
    }
    cr_assert(s.batches[1].waits[0].queue == 0 && s.batches[1].waits[0].value == 1);
    cr_assert(s.batches[3].waits[0].queue == 1 && s.batches[3].waits[0].value == 1);
}

// The second wait for step 0 or an older one is covered by the first; so is a wait beside a newer
// one on its queue.
Test(schedule, drops_waits_that_earlier_ones_cover) {
    static const row rows[] = {{.queue = 0},
                               {.queue = 0},
                               {.queue = 1, .waits = {0, 1}, .wait_count = 2},
                               {.queue = 1, .waits = {0}, .wait_count = 1},
                               {.queue = 1, .waits = {1}, .wait_count = 1}};
    berth_program program = make_program(rows, 5, 2);
    berth_schedule s = berth_schedule_make(arena, &program);
    cr_assert_eq(s.batch_count, 2);
    cr_assert_eq(s.batches[0].step_count, 2);
    cr_assert_eq(s.batches[1].step_count, 3);
    cr_assert_eq(s.batches[1].wait_count, 1);
}

static uint32_t next_random(uint64_t *state, uint32_t limit) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33) % limit;
}

static const row *random_rows(uint64_t seed, uint32_t count, uint32_t queue_count) {
    row *rows = berth_arena_new_array(arena, row, count);
    uint64_t state = seed;
    for (uint32_t i = 0; i < count; ++i) {
        rows[i].queue = next_random(&state, queue_count);
        for (uint32_t w = 0; i && w < 3; ++w) {
            uint32_t earlier = next_random(&state, i);
            if (next_random(&state, 3) == 0 && rows[earlier].queue != rows[i].queue)
                rows[i].waits[rows[i].wait_count++] = earlier;
        }
    }
    return rows;
}

// Runs the batches the slowest way the waits allow: a batch completes only when its queue and waits
// force it to. `done[q]` is what queue q must have reached for batch `b` to begin; every wait of
// its steps must be inside.
static void check_waits(const berth_program *program, const berth_schedule *s) {
    uint32_t *batch_of = berth_arena_new_array(arena, uint32_t, program->step_count);
    uint32_t seen = 0;
    for (uint32_t b = 0; b < s->batch_count; ++b)
        for (uint32_t i = 0; i < s->batches[b].step_count; ++i, ++seen)
            batch_of[s->batches[b].steps[i]] = b;
    cr_assert_eq(seen, program->step_count);
    uint32_t queues = program->queue_count;
    uint32_t *begun =
        berth_arena_new_array(arena, uint32_t, s->batch_count * queues);  // known when b begins
    uint32_t *last = berth_arena_new_array(arena, uint32_t, queues);      // newest batch + 1
    for (uint32_t b = 0; b < s->batch_count; ++b) {
        const berth_schedule_batch *batch = &s->batches[b];
        uint32_t *known = &begun[b * queues];
        cr_assert(b == 0 || batch->steps[0] > s->batches[b - 1].steps[0]);
        if (last[batch->queue])
            memcpy(known, &begun[(last[batch->queue] - 1) * queues], queues * sizeof(*known));
        cr_assert_eq(batch->value,
                     last[batch->queue] ? s->batches[last[batch->queue] - 1].value + 1 : 1);
        known[batch->queue] = batch->value - 1;
        for (uint32_t w = 0; w < batch->wait_count; ++w) {
            cr_assert_neq(batch->waits[w].queue, batch->queue);
            cr_assert(last[batch->waits[w].queue] &&
                      s->batches[last[batch->waits[w].queue] - 1].value >= batch->waits[w].value);
            if (batch->waits[w].value > known[batch->waits[w].queue])
                known[batch->waits[w].queue] = batch->waits[w].value;
        }
        last[batch->queue] = b + 1;
        for (uint32_t i = 0; i < batch->step_count; ++i) {
            const berth_program_step *step = &program->steps[batch->steps[i]];
            cr_assert_eq(step->queue, batch->queue);
            cr_assert(i == 0 || batch->steps[i] > batch->steps[i - 1]);
            for (uint32_t w = 0; w < step->wait_count; ++w) {
                const berth_schedule_batch *other = &s->batches[batch_of[step->waits[w]]];
                cr_assert_leq(other->value, known[other->queue],
                              "step %u does not wait for step %u", batch->steps[i], step->waits[w]);
            }
        }
    }
}

Test(schedule, random_programs_keep_every_wait) {
    for (uint64_t seed = 1; seed <= 300; ++seed) {
        uint32_t queue_count = 1 + (uint32_t)(seed % 4);
        uint32_t count = (uint32_t)(seed % 60);
        berth_program program =
            make_program(random_rows(seed, count, queue_count), count, queue_count);
        berth_schedule schedule = berth_schedule_make(arena, &program);
        check_waits(&program, &schedule);
    }
}
