// Order, several queues, lifetimes, host calls, timings, allocations.
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/clock.h"
#include "tests/conformance/conformance.h"

CONFORMANCE(submit, order_in_one_queue) {
    enum { BYTES = 4096, STEPS = 60 };
    berth_buffer *a = make_buffer(f->devices[0], BYTES), *b = make_buffer(f->devices[0], BYTES);
    berth_semaphore *go = make_semaphore(f, 0), *done = make_semaphore(f, 0);
    berth_command commands[STEPS];
    for (int i = 0; i < STEPS; ++i)
        commands[i] =
            i % 2 ? copy_command(a, 0, b, 0, BYTES) : fill_command(a, 0, BYTES, (uint32_t)i, 1);
    // The first waits, the others have nothing to wait for but their place.
    for (int i = 0; i < STEPS; ++i)
        check_ok(submit(f->queues[0], &commands[i], 1, i ? NULL : go, 1,
                        i == STEPS - 1 ? done : NULL, 1));
    cr_assert_eq(berth_semaphore_query(done, NULL), 0);
    check_ok(berth_semaphore_signal(go, 1));
    check_ok(berth_semaphore_wait(done, 1, -1));
    unsigned char back[BYTES];
    read_buffer(b, back, BYTES);
    for (int i = 0; i < BYTES; ++i) cr_assert_eq(back[i], STEPS - 2);
    berth_semaphore_release(go);
    berth_semaphore_release(done);
    berth_buffer_free(a);
    berth_buffer_free(b);
}

// A timeline within one queue, all of it submitted before any of it can run.
CONFORMANCE(submit, chain_on_one_semaphore) {
    enum { STEPS = 50, BYTES = 64 };
    berth_buffer *buffer = make_buffer(f->devices[0], (STEPS + 1) * BYTES);
    berth_semaphore *line = make_semaphore(f, 0);
    berth_command commands[STEPS + 1];
    commands[0] = fill_command(buffer, 0, BYTES, 0xab, 1);
    for (uint32_t i = 1; i <= STEPS; ++i)
        commands[i] = copy_command(buffer, (i - 1) * BYTES, buffer, i * BYTES, BYTES);
    for (uint64_t i = 0; i <= STEPS; ++i)
        check_ok(submit(f->queues[0], &commands[i], 1, line, i + 1, line, i + 2));
    check_ok(berth_queue_flush(f->queues[0]));
    check_ok(berth_semaphore_signal(line, 1));
    check_ok(berth_semaphore_wait(line, STEPS + 2, -1));
    unsigned char back[(STEPS + 1) * BYTES];
    read_buffer(buffer, back, sizeof(back));
    for (size_t i = 0; i < sizeof(back); ++i) cr_assert_eq(back[i], 0xab);
    berth_semaphore_release(line);
    berth_buffer_free(buffer);
}

// A queue for copies: copies and fills there, nothing else, in order with what others signal.
CONFORMANCE(submit, transfer_queues_copy) {
    enum { BYTES = 4096 };
    berth_queue *transfer = NULL;
    check_ok(berth_queue_open(f->devices[0], BERTH_QUEUE_TRANSFER, &transfer));
    berth_buffer *a = make_buffer(f->devices[0], BYTES);
    berth_buffer *b = make_buffer(f->devices[0], BYTES);
    berth_semaphore *turn = make_semaphore(f, 0);
    const berth_command fill = {.kind = BERTH_COMMAND_FILL, .fill = {a, 0, BYTES, 0x11223344, 4}};
    const berth_command copy = copy_command(a, 0, b, 0, BYTES);
    check_ok(submit(transfer, &copy, 1, turn, 1, turn, 2));
    check_ok(submit(f->queues[0], &fill, 1, turn, 0, turn, 1));
    check_ok(berth_queue_flush(f->queues[0]));
    check_ok(berth_queue_flush(transfer));
    check_ok(berth_semaphore_wait(turn, 2, -1));
    uint32_t back[BYTES / 4];
    read_buffer(b, back, sizeof(back));
    for (int i = 0; i < BYTES / 4; ++i) cr_assert_eq(back[i], 0x11223344);
    const berth_command hand_over = {.kind = BERTH_COMMAND_TO_DEVICE};
    berth_status refused = berth_queue_run(transfer, &hand_over, 1);
    cr_assert_eq(berth_status_code(refused), BERTH_INCOMPATIBLE);
    berth_status_free(refused);
    berth_queue_destroy(transfer);
    berth_semaphore_release(turn);
    berth_buffer_free(a);
    berth_buffer_free(b);
}

CONFORMANCE(submit, queues_take_turns) {
    enum { ROUNDS = 25, BYTES = 256 };
    berth_queue *queues[3] = {f->queues[0]};
    for (int i = 1; i < 3; ++i)
        check_ok(berth_queue_open(f->devices[0], BERTH_QUEUE_COMPUTE, &queues[i]));
    berth_buffer *buffers[3];
    for (int i = 0; i < 3; ++i) buffers[i] = make_buffer(f->devices[0], BYTES);
    berth_semaphore *turn = make_semaphore(f, 0);
    unsigned char start[BYTES], back[BYTES];
    for (int i = 0; i < BYTES; ++i) start[i] = (unsigned char)(255 - i);
    write_buffer(buffers[0], start, BYTES);
    berth_command commands[3];
    for (int i = 0; i < 3; ++i)
        commands[i] = copy_command(buffers[i], 0, buffers[(i + 1) % 3], 0, BYTES);
    for (uint64_t i = 0; i < ROUNDS * 3; ++i)
        check_ok(submit(queues[i % 3], &commands[i % 3], 1, turn, i, turn, i + 1));
    check_ok(berth_semaphore_wait(turn, ROUNDS * 3, -1));
    for (int i = 0; i < 3; ++i) {
        read_buffer(buffers[i], back, BYTES);
        cr_assert_arr_eq(back, start, BYTES);
        berth_buffer_free(buffers[i]);
        if (i) berth_queue_destroy(queues[i]);
    }
    berth_semaphore_release(turn);
}

typedef struct caller {
    pthread_t thread;
    int calls;
    unsigned char seen;
    berth_buffer *host;
} caller;

static berth_status look(void *user) {
    caller *c = user;
    c->thread = pthread_self();
    ++c->calls;
    c->seen = *(unsigned char *)berth_buffer_host(c->host);
    return BERTH_OK;
}

CONFORMANCE(submit, host_call_in_order) {
    berth_buffer *buffer = make_buffer(f->devices[0], 1000);
    caller c = {.host = make_buffer(f->host_device, 1000)};
    berth_command commands[] = {
        fill_command(buffer, 0, 1000, 9, 1),
        copy_command(buffer, 0, c.host, 0, 1000),
        {.kind = BERTH_COMMAND_HOST_CALL, .host_call = {.call = look, .user = &c}},
        fill_command(buffer, 0, 1000, 8, 1),
        copy_command(buffer, 0, c.host, 0, 1000)};
    check_ok(berth_queue_run(f->queues[0], commands, 5));
    cr_assert_eq(c.calls, 1);
    cr_assert_eq(c.seen, 9);
    cr_assert_eq(*(unsigned char *)berth_buffer_host(c.host), 8);
    // With `asynchronous`, and wherever submit must not block, on another thread.
    berth_semaphore *done = make_semaphore(f, 0);
    berth_semaphore_point signal = {done, 1};
    check_ok(berth_queue_submit(f->queues[0], &(berth_submission){.commands = commands,
                                                                  .command_count = 5,
                                                                  .signals = &signal,
                                                                  .signal_count = 1,
                                                                  .asynchronous = true}));
    check_ok(berth_semaphore_wait(done, 1, -1));
    cr_assert_eq(c.calls, 2);
    cr_assert_not(pthread_equal(c.thread, pthread_self()));
    berth_semaphore_release(done);
    berth_buffer_free(buffer);
    berth_buffer_free(c.host);
}

static berth_status fail_call(void *user) {
    (void)user;
    return berth_status_make(BERTH_IO, "on purpose");
}

CONFORMANCE(submit, failed_command) {
    berth_buffer *buffer = make_buffer(f->devices[0], 16);
    berth_command commands[] = {
        fill_command(buffer, 0, 16, 1, 1),
        {.kind = BERTH_COMMAND_HOST_CALL, .host_call = {.call = fail_call}, .label = "conv7"},
        fill_command(buffer, 0, 16, 2, 1)};
    berth_status status = berth_queue_run(f->queues[0], commands, 3);
    cr_assert_eq(berth_status_code(status), BERTH_IO);
    cr_assert_not_null(strstr(berth_status_message(status), "conv7"), "%s",
                       berth_status_message(status));
    berth_status_free(status);
    unsigned char back[16];
    read_buffer(buffer, back, 16);
    cr_assert_eq(back[0], 1, "what follows a failed command does not run");
    check_ok(berth_queue_run(f->queues[0], &commands[2], 1));  // the queue works on
    berth_buffer_free(buffer);
}

// Buffers, semaphores and queue go while work on them still waits.
CONFORMANCE(submit, release_in_flight) {
    enum { BYTES = 3000 };
    uint32_t alignment = berth_device_get_info(f->devices[0])->memories[0].alignment_bytes;
    berth_queue *queue = NULL;
    check_ok(berth_queue_open(f->devices[0], BERTH_QUEUE_COMPUTE, &queue));
    berth_buffer *a = make_buffer(f->devices[0], BYTES + alignment), *view = NULL;
    berth_buffer *b = make_buffer(f->devices[0], BYTES), *host = make_buffer(f->host_device, BYTES);
    check_ok(berth_buffer_view(a, alignment, BYTES, &view));
    berth_semaphore *go = make_semaphore(f, 0), *middle = make_semaphore(f, 0);
    berth_semaphore *done = make_semaphore(f, 0);
    berth_command first[] = {fill_command(view, 0, BYTES, 77, 1),
                             copy_command(view, 0, b, 0, BYTES)};
    berth_command second = copy_command(b, 0, host, 0, BYTES);
    check_ok(submit(queue, first, 2, go, 1, middle, 1));
    check_ok(submit(queue, &second, 1, middle, 1, done, 1));
    berth_buffer_free(a);
    berth_buffer_free(view);
    berth_buffer_free(b);
    berth_semaphore_release(middle);
    check_ok(berth_semaphore_signal(go, 1));
    berth_queue_destroy(queue);  // waits
    cr_assert_eq(berth_semaphore_query(done, NULL), 1);
    cr_assert_eq(((unsigned char *)berth_buffer_host(host))[BYTES - 1], 77);
    berth_semaphore_release(go);
    berth_semaphore_release(done);
    berth_buffer_free(host);
}

static void one_warm_round(conformance_fixture *f, const berth_command *commands, uint32_t count,
                           berth_semaphore *go, berth_semaphore *done, uint64_t *value) {
    uint64_t at = ++*value;
    check_ok(submit(f->queues[0], commands, count, go, at, done, 3 * at + 1));  // waits
    check_ok(submit(f->queues[0], commands, count, done, 3 * at + 1, done, 3 * at + 2));
    check_ok(berth_semaphore_signal(go, at));
    check_ok(berth_semaphore_wait(done, 3 * at + 2, -1));
    check_ok(submit(f->queues[0], commands, count, NULL, 0, done, 3 * at + 3));  // runs at once
    check_ok(berth_semaphore_wait(done, 3 * at + 3, -1));
}

CONFORMANCE(submit, allocates_nothing_once_warm) {
    berth_buffer *a = make_buffer(f->devices[0], 512), *b = make_buffer(f->devices[0], 512);
    berth_buffer *host = make_buffer(f->host_device, 512);
    berth_semaphore *go = make_semaphore(f, 0), *done = make_semaphore(f, 0);
    berth_command_timing timing[4];
    berth_command commands[] = {copy_command(host, 0, a, 0, 512), copy_command(a, 0, b, 0, 512),
                                fill_command(a, 0, 512, 0, 4), copy_command(b, 0, host, 0, 512)};
    for (int i = 0; i < 4; ++i) commands[i].timing = &timing[i];
    uint64_t value = 0;
    check_ok(berth_queue_reserve(f->queues[0], 2, 2, 4));
    for (int i = 0; i < 2; ++i) one_warm_round(f, commands, 4, go, done, &value);
    int64_t before = atomic_load(&f->counting.allocation_count);
    for (int i = 0; i < 50; ++i) one_warm_round(f, commands, 4, go, done, &value);
    cr_assert_eq(atomic_load(&f->counting.allocation_count), before, "%lld allocations",
                 (long long)(atomic_load(&f->counting.allocation_count) - before));
    berth_semaphore_release(go);
    berth_semaphore_release(done);
    berth_buffer_free(a);
    berth_buffer_free(b);
    berth_buffer_free(host);
}

CONFORMANCE(submit, timings_on_the_host_clock) {
    enum { BYTES = 1 << 20, SLACK_NS = 2000000 };
    berth_buffer *a = make_buffer(f->devices[0], BYTES), *b = make_buffer(f->devices[0], BYTES);
    berth_command_timing timing[3] = {{-1, -1}, {-1, -1}, {-1, -1}};
    berth_command commands[] = {fill_command(a, 0, BYTES, 3, 1), copy_command(a, 0, b, 0, BYTES),
                                fill_command(a, 0, BYTES, 4, 1)};
    for (int i = 0; i < 3; ++i) commands[i].timing = &timing[i];
    int64_t before = berth_clock_ns();
    check_ok(berth_queue_run(f->queues[0], commands, 3));
    int64_t after = berth_clock_ns();
    for (int i = 0; i < 3; ++i) {
        if (!f->row->options.profile) {
            cr_assert_eq(timing[i].start_ns, -1, "nothing is written without the option");
            continue;
        }
        cr_assert(timing[i].start_ns >= before - SLACK_NS && timing[i].end_ns <= after + SLACK_NS,
                  "command %d: %lld .. %lld is not in %lld .. %lld", i,
                  (long long)timing[i].start_ns, (long long)timing[i].end_ns, (long long)before,
                  (long long)after);
        cr_assert_lt(timing[i].start_ns, timing[i].end_ns);
        if (i) cr_assert_geq(timing[i].start_ns, timing[i - 1].end_ns);
    }
    berth_buffer_free(a);
    berth_buffer_free(b);
}

enum { THREADS = 3, PER_THREAD = 40, CELLS = 16 };

typedef struct submitter {
    conformance_fixture *f;
    berth_buffer *buffer;
    uint64_t offset_bytes;
    berth_semaphore *done;
    pthread_t thread;
    int errors;
} submitter;

static void *submit_many(void *user) {
    submitter *s = user;
    berth_command commands[PER_THREAD];
    for (uint32_t i = 0; i < PER_THREAD; ++i) {
        commands[i] = fill_command(s->buffer, s->offset_bytes, CELLS, i, 1);
        berth_status status =
            submit(s->f->queues[0], &commands[i], 1, s->done, i, s->done, (uint64_t)i + 1);
        if (status) ++s->errors;
        berth_status_free(status);
    }
    berth_status status = berth_semaphore_wait(s->done, PER_THREAD, -1);
    if (status) ++s->errors;
    berth_status_free(status);
    return NULL;
}

CONFORMANCE(submit, from_several_threads) {
    berth_buffer *buffer = make_buffer(f->devices[0], THREADS * CELLS);
    submitter all[THREADS];
    for (uint64_t i = 0; i < THREADS; ++i) {
        all[i] = (submitter){
            .f = f, .buffer = buffer, .offset_bytes = i * CELLS, .done = make_semaphore(f, 0)};
        cr_assert_eq(pthread_create(&all[i].thread, NULL, submit_many, &all[i]), 0);
    }
    for (int i = 0; i < THREADS; ++i) {
        pthread_join(all[i].thread, NULL);
        cr_assert_eq(all[i].errors, 0);
        berth_semaphore_release(all[i].done);
    }
    unsigned char back[THREADS * CELLS];
    read_buffer(buffer, back, sizeof(back));
    for (size_t i = 0; i < sizeof(back); ++i) cr_assert_eq(back[i], PER_THREAD - 1);
    berth_buffer_free(buffer);
}
