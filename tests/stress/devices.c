// Races in the thread pool, semaphores and host queues: many rounds of small work from several
// threads, results checked. A plain program, meant to run under the thread sanitizer.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "devices/cpu/thread_pool.h"
#include "devices/device.h"
#include "devices/host_queue.h"
#include "devices/internal.h"
#include "devices/registry.h"

static void check(bool condition, const char *what) {
    if (condition) return;
    fprintf(stderr, "stress_devices: %s\n", what);
    exit(1);
}

static void check_ok(berth_status status, const char *what) {
    if (!status) return;
    fprintf(stderr, "stress_devices: %s: %s\n", what, berth_status_message(status));
    exit(1);
}

// ---- thread pool ----

enum { CELLS = 300 };

typedef struct cells {
    int32_t plain[CELLS];  // no atomics: every index must be run by one thread only
    atomic_int_fast64_t sum;
} cells;

static void add(void *user, uint32_t thread, int64_t begin, int64_t end) {
    cells *c = user;
    (void)thread;
    for (int64_t i = begin; i < end; ++i) ++c->plain[i];
    atomic_fetch_add(&c->sum, end - begin);
}

static void stress_pool(uint32_t threads, int64_t spin_ns, int rounds) {
    berth_thread_pool *pool = NULL;
    berth_thread_pool_options options = {.thread_count = threads, .spin_ns = spin_ns};
    check_ok(berth_thread_pool_create(berth_allocator_system(), &options, &pool), "pool");
    static cells c;
    c = (cells){.sum = 0};
    int32_t expected[CELLS] = {0};
    int64_t total = 0;
    for (int round = 0; round < rounds; ++round) {
        int64_t count = round * 7 % (CELLS + 1);
        berth_thread_pool_run(pool, count, round % 3 * 15000, add, &c);
        total += count;
        for (int64_t i = 0; i < count; ++i) ++expected[i];
        check(atomic_load(&c.sum) == total, "the loop returned before all was done");
        check(c.plain[0] == expected[0] && c.plain[CELLS / 2] == expected[CELLS / 2],
              "an index was not run once");
        if (round % 64 == 0) usleep(200);  // long enough for the workers to fall asleep
    }
    for (int i = 0; i < CELLS; ++i) check(c.plain[i] == expected[i], "an index was not run once");
    berth_thread_pool_destroy(pool);
}

// ---- semaphores ----

enum { PLAYERS = 3, LINKS = 8 };

typedef struct player {
    berth_semaphore *mine, *next;
    uint64_t rounds;
    int64_t *ball;  // plain: the semaphores order every access
    pthread_t thread;
} player;

static void *play(void *user) {
    player *p = user;
    for (uint64_t round = 1; round <= p->rounds; ++round) {
        check_ok(berth_semaphore_wait(p->mine, round, -1), "wait");
        ++*p->ball;
        check_ok(berth_semaphore_signal(p->next, round), "signal");
    }
    berth_semaphore_release(p->mine);
    berth_semaphore_release(p->next);
    return NULL;
}

static void count_link(berth_semaphore_link *link, bool failed) {
    check(!failed, "a link failed");
    atomic_fetch_add((atomic_int *)link->user, 1);
}

static void stress_semaphores(uint64_t rounds) {
    berth_semaphore *ring[PLAYERS + 1];
    player players[PLAYERS];
    int64_t ball = 0;
    for (int i = 0; i <= PLAYERS; ++i)
        check_ok(berth_semaphore_create(berth_allocator_system(), 0, &ring[i]), "create");
    for (int i = 0; i < PLAYERS; ++i) {
        berth_semaphore_retain(ring[i]);
        berth_semaphore_retain(ring[i + 1]);
        players[i] = (player){ring[i], ring[i + 1], rounds, &ball, 0};
        check(pthread_create(&players[i].thread, NULL, play, &players[i]) == 0, "thread");
    }
    atomic_int reached = 0;
    for (uint64_t round = 1; round <= rounds; ++round) {
        berth_semaphore_link links[LINKS];
        for (int i = 0; i < LINKS; ++i) {
            links[i] = (berth_semaphore_link){.reached = count_link, .user = &reached};
            berth_semaphore_notify(ring[i % (PLAYERS + 1)], round, &links[i]);
        }
        check_ok(berth_semaphore_signal(ring[0], round), "start");
        check_ok(berth_semaphore_wait(ring[PLAYERS], round, -1), "end");
        while (atomic_load(&reached) != (int)round * LINKS) usleep(1);  // links before they go
        check(ball == (int64_t)round * PLAYERS, "somebody played out of turn");
    }
    for (int i = 0; i < PLAYERS; ++i) pthread_join(players[i].thread, NULL);
    for (int i = 0; i <= PLAYERS; ++i) berth_semaphore_release(ring[i]);
}

// ---- queues ----

typedef struct sender {
    berth_device *device;
    berth_queue *queue;
    berth_semaphore *line;  // all senders' work is in one order over it
    berth_buffer *buffer;
    uint64_t index, senders, rounds;
    pthread_t thread;
} sender;

static berth_status bump(void *user) {
    ++*(int64_t *)user;
    return BERTH_OK;
}

// Sends every senders-th step of one long line; `asynchronous` mixes inline and deferred runs.
static void *send(void *user) {
    sender *s = user;
    int64_t *counter = berth_buffer_host(s->buffer);
    berth_command call = {.kind = BERTH_COMMAND_HOST_CALL,
                          .host_call = {.call = bump, .user = counter}};
    uint64_t last = 0;
    for (uint64_t step = s->index; step < s->rounds; step += s->senders) {
        berth_semaphore_point wait = {s->line, step}, signal = {s->line, step + 1};
        berth_submission submission = {.waits = &wait,
                                       .wait_count = 1,
                                       .commands = &call,
                                       .command_count = 1,
                                       .signals = &signal,
                                       .signal_count = 1,
                                       .asynchronous = step % 5 == 0};
        check_ok(berth_queue_submit(s->queue, &submission), "submit");
        last = step + 1;
        if (step % 11 == 0) check_ok(berth_semaphore_wait(s->line, last, -1), "wait");
    }
    check_ok(berth_semaphore_wait(s->line, last, -1), "wait");
    return NULL;
}

static void stress_queues(uint64_t rounds) {
    berth_driver *driver = NULL;
    berth_device *device = NULL;
    berth_semaphore *line = NULL;
    berth_buffer *buffer = NULL;
    check_ok(berth_driver_open("null", berth_allocator_system(), &driver), "driver");
    check_ok(berth_device_open(driver, 0, NULL, &device), "device");
    check_ok(berth_semaphore_create(berth_allocator_system(), 0, &line), "semaphore");
    check_ok(berth_buffer_allocate(device, 0, sizeof(int64_t), &buffer), "buffer");
    int64_t *counter = berth_buffer_host(buffer);
    *counter = 0;
    sender senders[PLAYERS];
    for (uint64_t i = 0; i < PLAYERS; ++i) {
        senders[i] = (sender){.device = device,
                              .line = line,
                              .buffer = buffer,
                              .index = i,
                              .senders = PLAYERS,
                              .rounds = rounds};
        check_ok(berth_queue_open(device, BERTH_QUEUE_COMPUTE, &senders[i].queue), "queue");
        check(pthread_create(&senders[i].thread, NULL, send, &senders[i]) == 0, "thread");
    }
    for (int i = 0; i < PLAYERS; ++i) {
        pthread_join(senders[i].thread, NULL);
        berth_queue_destroy(senders[i].queue);
    }
    check(*counter == (int64_t)rounds, "a step is missing");
    berth_buffer_free(buffer);
    berth_semaphore_release(line);
    berth_device_close(device);
    berth_driver_close(driver);
}

// ---- an asynchronous driver's queue, whose "device" works when it is waited for ----

static berth_status begin_fills(berth_queue *queue, const berth_command *commands, uint32_t count,
                                void *prepared, void *record) {
    (void)queue, (void)prepared;
    (void)commands;
    *(uint32_t *)record = count;
    return BERTH_OK;
}

static berth_status finish_fills(berth_queue *queue, const berth_command *commands, uint32_t count,
                                 void *record) {
    (void)queue;
    check(*(uint32_t *)record == count, "a record of another submission");
    for (uint32_t i = 0; i < count; ++i) berth_devices__host_fill(&commands[i]);
    return BERTH_OK;
}

static const berth_host_queue_ops lazy_ops = {
    .start = begin_fills, .finish = finish_fills, .record_bytes = sizeof(uint32_t)};

typedef struct filler {
    berth_queue *queue;
    berth_semaphore *line, *gate;
    berth_buffer *buffer;
    uint64_t rounds;
    pthread_t thread;
} filler;

// Chains over one semaphore of its own; every seventh submission also waits for the host's gate.
static void *send_fills(void *user) {
    filler *w = user;
    berth_command *fills = calloc(w->rounds, sizeof(*fills));
    check(fills != NULL, "no memory");
    for (uint64_t step = 0; step < w->rounds; ++step) {
        fills[step] = (berth_command){.kind = BERTH_COMMAND_FILL,
                                      .fill = {.buffer = w->buffer,
                                               .size_bytes = 64,
                                               .pattern = (uint32_t)step,
                                               .pattern_bytes = 4}};
        berth_semaphore_point waits[] = {{w->line, step}, {w->gate, step}};
        berth_semaphore_point signal = {w->line, step + 1};
        berth_submission submission = {.waits = waits,
                                       .wait_count = step % 7 == 0 ? 2 : 1,
                                       .commands = &fills[step],
                                       .command_count = 1,
                                       .signals = &signal,
                                       .signal_count = 1};
        check_ok(berth_host_queue_submit(w->queue, &submission), "submit");
        if (step % 50 == 49) check_ok(berth_semaphore_wait(w->line, step, -1), "wait");
    }
    check_ok(berth_semaphore_wait(w->line, w->rounds, -1), "wait");
    check(*(uint32_t *)berth_buffer_host(w->buffer) == w->rounds - 1, "fills out of order");
    free(fills);
    return NULL;
}

static void stress_asynchronous_queue(uint64_t rounds) {
    berth_driver *driver = NULL;
    berth_device *device = NULL;
    berth_semaphore *gate = NULL;
    check_ok(berth_driver_open("null", berth_allocator_system(), &driver), "driver");
    check_ok(berth_device_open(driver, 0, NULL, &device), "device");
    check_ok(berth_semaphore_create(berth_allocator_system(), 0, &gate), "semaphore");
    static berth_host_queue queue;
    check_ok(berth_host_queue_init(&queue, device, &lazy_ops), "queue");
    filler fillers[2];
    for (int i = 0; i < 2; ++i) {
        fillers[i] = (filler){.queue = &queue.base, .gate = gate, .rounds = rounds};
        check_ok(berth_buffer_allocate(device, 0, 64, &fillers[i].buffer), "buffer");
        check_ok(berth_semaphore_create(berth_allocator_system(), 0, &fillers[i].line), "line");
    }
    for (int i = 0; i < 2; ++i)
        check(pthread_create(&fillers[i].thread, NULL, send_fills, &fillers[i]) == 0, "thread");
    for (uint64_t step = 1; step < rounds; ++step) {
        check_ok(berth_semaphore_signal(gate, step), "gate");
        if (step % 40 == 0) usleep(100);
    }
    for (int i = 0; i < 2; ++i) {
        pthread_join(fillers[i].thread, NULL);
        berth_buffer_free(fillers[i].buffer);
        berth_semaphore_release(fillers[i].line);
    }
    berth_host_queue_deinit(&queue);
    berth_semaphore_release(gate);
    berth_device_close(device);
    berth_driver_close(driver);
}

int main(void) {
    for (uint32_t threads = 1; threads <= 4; ++threads) {
        stress_pool(threads, 20000, 2000);
        stress_pool(threads, 0, 500);
    }
    stress_semaphores(2000);
    stress_queues(6000);
    stress_asynchronous_queue(3000);
    puts("stress_devices: ok");
    return 0;
}
