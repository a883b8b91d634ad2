// Timeline semaphores, on their own and between the host and queues.
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "devices/host_queue.h"
#include "tests/conformance/conformance.h"

CONFORMANCE(semaphore, host_values) {
    berth_semaphore *s = make_semaphore(f, 5);
    bool failed = true;
    cr_assert_eq(berth_semaphore_query(s, &failed), 5);
    cr_assert_not(failed);
    check_ok(berth_semaphore_wait(s, 0, 0));
    check_ok(berth_semaphore_wait(s, 5, 0));
    check_code(berth_semaphore_wait(s, 6, 0), BERTH_DEADLINE_EXCEEDED);
    check_code(berth_semaphore_wait(s, 6, 2000000), BERTH_DEADLINE_EXCEEDED);
    check_code(berth_semaphore_signal(s, 5), BERTH_INVALID_ARGUMENT);
    check_ok(berth_semaphore_signal(s, 900));
    check_ok(berth_semaphore_wait(s, 6, -1));
    cr_assert_eq(berth_semaphore_query(s, NULL), 900);
    berth_semaphore_retain(s);
    berth_semaphore_release(s);
    berth_semaphore_release(s);
    berth_semaphore_release(NULL);
}

CONFORMANCE(semaphore, failure_sticks) {
    berth_semaphore *s = make_semaphore(f, 1);
    berth_semaphore_fail(s, berth_status_make(BERTH_CANCELLED, "the first"));
    berth_semaphore_fail(s, berth_status_make(BERTH_IO, "the second"));
    bool failed = false;
    berth_semaphore_query(s, &failed);
    cr_assert(failed);
    for (uint64_t value = 0; value < 3; ++value) {
        berth_status status = berth_semaphore_wait(s, value, -1);
        cr_assert_eq(berth_status_code(status), BERTH_CANCELLED);
        cr_assert_str_eq(berth_status_message(status), "the first");
        berth_status_free(status);
    }
    check_code(berth_semaphore_signal(s, 7), BERTH_CANCELLED);
    berth_semaphore_release(s);
}

typedef struct notes {
    atomic_int reached, failed;
} notes;

static void take_note(berth_semaphore_link *link, bool failed) {
    notes *n = link->user;
    atomic_fetch_add(failed ? &n->failed : &n->reached, 1);
}

CONFORMANCE(semaphore, notify) {
    notes n = {0};
    berth_semaphore *s = make_semaphore(f, 1);
    berth_semaphore_link links[4] = {{.user = &n}, {.user = &n}, {.user = &n}, {.user = &n}};
    for (int i = 0; i < 4; ++i) links[i].reached = take_note;
    berth_semaphore_notify(s, 1, &links[0]);
    cr_assert_eq(n.reached, 1, "at once");
    berth_semaphore_notify(s, 3, &links[1]);
    berth_semaphore_notify(s, 2, &links[2]);
    berth_semaphore_notify(s, 9, &links[3]);
    check_ok(berth_semaphore_signal(s, 2));
    cr_assert_eq(n.reached, 2);
    check_ok(berth_semaphore_signal(s, 4));
    cr_assert_eq(n.reached, 3);
    cr_assert_eq(n.failed, 0);
    berth_semaphore_fail(s, berth_status_make(BERTH_CANCELLED, "stop"));
    cr_assert_eq(n.reached, 3);
    cr_assert_eq(n.failed, 1);
    berth_semaphore_notify(s, 1, &links[0]);
    cr_assert_eq(n.failed, 2);
    berth_semaphore_release(s);
}

static berth_status count_call(void *user) {
    atomic_fetch_add((atomic_int *)user, 1);
    return BERTH_OK;
}

static berth_status fail_call(void *user) {
    (void)user;
    return berth_status_make(BERTH_IO, "the call failed on purpose");
}

static berth_command call_command(berth_status (*call)(void *), void *user) {
    return (berth_command){.kind = BERTH_COMMAND_HOST_CALL,
                           .host_call = {.call = call, .user = user}};
}

static berth_status wait_call(void *user) {
    const berth_semaphore_point *point = user;
    return berth_semaphore_wait(point->semaphore, point->value, 5000000000);
}

// Who waits for a submission with a host call does not wait for those behind it, though all were ready at once.
CONFORMANCE(semaphore, host_calls_are_signalled_one_by_one) {
    berth_semaphore *go = make_semaphore(f, 0), *done = make_semaphore(f, 0);
    atomic_int calls = 0;
    berth_semaphore_point first = {done, 1}, second = {done, 2};
    berth_command commands[] = {call_command(count_call, &calls), call_command(wait_call, &first),
                                call_command(wait_call, &second)};
    for (uint64_t i = 0; i < 3; ++i)
        check_ok(submit(f->queues[0], &commands[i], 1, go, 1, done, i + 1));
    check_ok(berth_semaphore_signal(go, 1));
    check_ok(berth_semaphore_wait(done, 3, 20000000000));
    cr_expect_eq(calls, 1);
    berth_semaphore_release(go);
    berth_semaphore_release(done);
}

// Submit does not wait: the signal that lets the work go comes after it, from the same thread.
CONFORMANCE(semaphore, work_waits_for_the_host) {
    berth_semaphore *go = make_semaphore(f, 0), *done = make_semaphore(f, 0);
    atomic_int calls = 0;
    berth_command call = call_command(count_call, &calls);
    check_ok(submit(f->queues[0], &call, 1, go, 3, done, 1));
    check_ok(berth_semaphore_signal(go, 2));
    check_code(berth_semaphore_wait(done, 1, 3000000), BERTH_DEADLINE_EXCEEDED);
    cr_assert_eq(calls, 0);
    check_ok(berth_semaphore_signal(go, 3));
    check_ok(berth_semaphore_wait(done, 1, -1));
    cr_assert_eq(calls, 1);
    berth_semaphore_release(go);
    berth_semaphore_release(done);
}

// A failed wait fails the signals with the same words, and so on down the line; nothing runs.
CONFORMANCE(semaphore, failure_is_inherited) {
    for (int early = 0; early < 2; ++early) {
        berth_semaphore *go = make_semaphore(f, 0), *middle = make_semaphore(f, 0);
        berth_semaphore *end = make_semaphore(f, 0), *other = make_semaphore(f, 0);
        atomic_int calls = 0;
        berth_command call = call_command(count_call, &calls);
        if (early) berth_semaphore_fail(go, berth_status_make(BERTH_CANCELLED, "no more"));
        check_ok(submit(f->queues[0], &call, 1, go, 1, middle, 1));
        check_ok(submit(f->queues[1], &call, 1, middle, 1, end, 1));
        check_ok(submit(f->queues[0], NULL, 0, NULL, 0, other, 1));
        if (!early) berth_semaphore_fail(go, berth_status_make(BERTH_CANCELLED, "no more"));
        berth_status status = berth_semaphore_wait(end, 1, -1);
        cr_assert_eq(berth_status_code(status), BERTH_CANCELLED);
        cr_assert_not_null(strstr(berth_status_message(status), "no more"));
        berth_status_free(status);
        check_ok(berth_semaphore_wait(other, 1, -1));  // later work goes on
        cr_assert_eq(calls, 0);
        berth_semaphore_release(go);
        berth_semaphore_release(middle);
        berth_semaphore_release(end);
        berth_semaphore_release(other);
    }
}

// As above, where the second submission may already have been handed to the device.
CONFORMANCE(semaphore, failure_in_the_same_queue) {
    berth_buffer *buffer = make_buffer(f->devices[0], 64);
    berth_semaphore *first = make_semaphore(f, 0), *second = make_semaphore(f, 0);
    berth_semaphore *third = make_semaphore(f, 0);
    berth_command fails[] = {fill_command(buffer, 0, 64, 1, 1), call_command(fail_call, NULL)};
    berth_command fill = fill_command(buffer, 0, 64, 2, 1);
    check_ok(submit(f->queues[0], fails, 2, NULL, 0, first, 1));
    check_ok(submit(f->queues[0], &fill, 1, first, 1, second, 1));
    check_ok(submit(f->queues[0], &fill, 1, NULL, 0, third, 1));
    check_code(berth_semaphore_wait(second, 1, -1), BERTH_IO);
    check_code(berth_semaphore_wait(first, 1, -1), BERTH_IO);
    check_ok(berth_semaphore_wait(third, 1, -1));
    berth_semaphore_release(first);
    berth_semaphore_release(second);
    berth_semaphore_release(third);
    berth_buffer_free(buffer);
}

CONFORMANCE(semaphore, several_waits_and_signals) {
    berth_semaphore *a = make_semaphore(f, 0), *b = make_semaphore(f, 0);
    berth_semaphore *c = make_semaphore(f, 0), *d = make_semaphore(f, 0);
    berth_semaphore_point waits[] = {{a, 1}, {b, 2}}, signals[] = {{c, 10}, {d, 20}};
    berth_submission submission = {
        .waits = waits, .wait_count = 2, .signals = signals, .signal_count = 2};
    check_ok(berth_queue_submit(f->queues[0], &submission));
    memset(waits, 0, sizeof(waits));  // borrowed until submit returned, no longer
    memset(signals, 0, sizeof(signals));
    check_ok(berth_semaphore_signal(b, 2));
    check_code(berth_semaphore_wait(c, 10, 2000000), BERTH_DEADLINE_EXCEEDED);
    check_ok(berth_semaphore_signal(a, 1));
    check_ok(berth_semaphore_wait(c, 10, -1));
    check_ok(berth_semaphore_wait(d, 20, -1));
    cr_assert_eq(berth_semaphore_query(d, NULL), 20);
    berth_semaphore_release(a);
    berth_semaphore_release(b);
    berth_semaphore_release(c);
    berth_semaphore_release(d);
}

CONFORMANCE(semaphore, bad_arguments) {
    berth_semaphore *s = make_semaphore(f, 4);
    check_code(submit(f->queues[0], NULL, 0, NULL, 0, s, 4), BERTH_INVALID_ARGUMENT);
    berth_semaphore_point nothing = {NULL, 1};
    berth_submission submission = {.waits = &nothing, .wait_count = 1};
    check_code(berth_queue_submit(f->queues[0], &submission), BERTH_INVALID_ARGUMENT);
    submission = (berth_submission){.signals = &nothing, .signal_count = 1};
    check_code(berth_queue_submit(f->queues[0], &submission), BERTH_INVALID_ARGUMENT);
    submission = (berth_submission){.command_count = 1};
    check_code(berth_queue_submit(f->queues[0], &submission), BERTH_INVALID_ARGUMENT);
    berth_semaphore_release(s);
}

// ---- threads ----

enum { THREADS = 4, ROUNDS = 100 };

typedef struct worker {
    conformance_fixture *f;
    berth_semaphore *mine, *next;
    berth_buffer *buffer;
    berth_queue *queue;  // of its own: in one queue, a wait holds up all that is submitted later
    pthread_t thread;
    int errors;
} worker;

// Passes a token round: each thread waits for its own semaphore, has the device do something, and
// the device signals the next thread's.
static void *pass_on(void *user) {
    worker *w = user;
    berth_command fill = fill_command(w->buffer, 0, 16, 1, 4);
    for (uint64_t round = 1; round <= ROUNDS; ++round) {
        berth_status status = round % 2 ? berth_semaphore_wait(w->mine, round, -1) : BERTH_OK;
        if (!status) status = submit(w->queue, &fill, 1, w->mine, round, w->next, round);
        if (status) ++w->errors;
        berth_status_free(status);
    }
    // The command must stay until the last signal.
    berth_status status = berth_semaphore_wait(w->next, ROUNDS, -1);
    if (status) ++w->errors;
    berth_status_free(status);
    return NULL;
}

CONFORMANCE(semaphore, threads_pass_a_token) {
    berth_buffer *buffer = make_buffer(f->devices[0], 16);
    berth_semaphore *ring[THREADS + 1];
    for (int i = 0; i <= THREADS; ++i) ring[i] = make_semaphore(f, 0);
    worker workers[THREADS];
    for (int i = 0; i < THREADS; ++i) {
        workers[i] = (worker){.f = f, .mine = ring[i], .next = ring[i + 1], .buffer = buffer};
        check_ok(berth_queue_open(f->devices[0], BERTH_QUEUE_COMPUTE, &workers[i].queue));
        cr_assert_eq(pthread_create(&workers[i].thread, NULL, pass_on, &workers[i]), 0);
    }
    for (uint64_t round = 1; round <= ROUNDS; ++round) {
        check_ok(berth_semaphore_signal(ring[0], round));
        if (round % 3 == 0) check_ok(berth_semaphore_wait(ring[THREADS], round / 2, -1));
    }
    check_ok(berth_semaphore_wait(ring[THREADS], ROUNDS, -1));
    for (int i = 0; i < THREADS; ++i) {
        pthread_join(workers[i].thread, NULL);
        cr_assert_eq(workers[i].errors, 0);
        berth_queue_destroy(workers[i].queue);
    }
    for (int i = 0; i <= THREADS; ++i) berth_semaphore_release(ring[i]);
    berth_buffer_free(buffer);
}

// ---- waits that the device does itself ----

// A row of submissions that goes back and forth between two queues of a device, all of it submitted while the
// first, which takes long, is under way: the host waits for none of them.
static void back_and_forth(conformance_fixture *f, uint64_t bytes, uint32_t *out_native,
                           uint32_t *out_host) {
    enum { STEPS = 12 };
    berth_queue *queues[2] = {f->queues[0], NULL};
    check_ok(berth_queue_open(f->devices[0], BERTH_QUEUE_COMPUTE, &queues[1]));
    berth_buffer *large[2] = {make_buffer(f->devices[0], bytes), make_buffer(f->devices[0], bytes)};
    berth_buffer *small = make_buffer(f->devices[0], 4 * (STEPS + 1));
    berth_semaphore *line = make_semaphore(f, 0);
    berth_command slow[8], copies[STEPS];
    for (uint32_t i = 0; i < 7; ++i)
        slow[i] = copy_command(large[i % 2], 0, large[(i + 1) % 2], 0, bytes);
    slow[7] = fill_command(small, 0, 4, 0x600df00d, 4);
    for (uint32_t i = 0; i < STEPS; ++i)
        copies[i] = copy_command(small, 4 * i, small, 4 * (i + 1), 4);
    check_ok(submit(queues[1], slow, 8, NULL, 0, line, 1));
    for (uint32_t i = 0; i < STEPS; ++i)
        check_ok(submit(queues[i % 2], &copies[i], 1, line, i + 1, line, i + 2));
    check_ok(berth_semaphore_wait(line, STEPS + 1, -1));
    uint32_t back[STEPS + 1];
    read_buffer(small, back, sizeof(back));
    for (int i = 0; i <= STEPS; ++i) cr_assert_eq(back[i], 0x600df00d, "step %d", i);
    *out_native = *out_host = 0;
    for (int q = 0; q < 2; ++q) {
        const berth_host_queue *queue = (const berth_host_queue *)queues[q];
        *out_native += atomic_load(&queue->native_wait_count);
        *out_host += atomic_load(&queue->host_wait_count);
    }
    berth_queue_destroy(queues[1]);
    berth_semaphore_release(line);
    for (int i = 0; i < 2; ++i) berth_buffer_free(large[i]);
    berth_buffer_free(small);
}

// A machine that is busy may let the first submission end too early: then it takes longer the next time.
CONFORMANCE(semaphore, waits_are_the_devices_own) {
    uint32_t native = 0, host = 0;
    bool own = ((const berth_host_queue *)f->queues[0])->domain != NULL;
    for (uint64_t bytes = 4 << 20; bytes <= 64 << 20 && native < 12; bytes *= 2) {
        back_and_forth(f, bytes, &native, &host);
        if (!own) break;
        cr_assert_eq(host, 0);
    }
    cr_assert_eq(native, own ? 12 : 0);
}

// Submitted the other way round: what waits comes first, and goes to the device when that it waits for does.
CONFORMANCE(semaphore, waits_follow_promises) {
    berth_queue *other = NULL;
    check_ok(berth_queue_open(f->devices[0], BERTH_QUEUE_COMPUTE, &other));
    berth_buffer *a = make_buffer(f->devices[0], 64), *b = make_buffer(f->devices[0], 64);
    berth_semaphore *line = make_semaphore(f, 0), *gate = make_semaphore(f, 0);
    berth_command fill = fill_command(a, 0, 64, 0x77, 1), copy = copy_command(a, 0, b, 0, 64);
    check_ok(submit(other, &copy, 1, line, 1, line, 2));
    check_ok(submit(f->queues[0], &fill, 1, gate, 1, line, 1));
    check_ok(berth_semaphore_signal(gate, 1));
    check_ok(berth_semaphore_wait(line, 2, -1));
    unsigned char back[64];
    read_buffer(b, back, 64);
    for (int i = 0; i < 64; ++i) cr_assert_eq(back[i], 0x77);
    berth_queue_destroy(other);
    berth_semaphore_release(line);
    berth_semaphore_release(gate);
    berth_buffer_free(a);
    berth_buffer_free(b);
}
