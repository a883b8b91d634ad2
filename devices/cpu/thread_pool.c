#include "devices/cpu/thread_pool.h"

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "base/clock.h"
#include "devices/internal.h"
#include "devices/sync.h"

#define SPINS_PER_CLOCK 16
#define CALLER_SPIN_NS 50000
#define CHUNKS_PER_THREAD 8  // enough to even out threads that run at different speeds
#define GATE_CLOSED 0x80000000u
#define CACHE_LINE_BYTES 64

typedef struct worker {
    berth_thread_pool *pool;
    pthread_t thread;
    uint32_t index;
} worker;

// A loop is open while `gate` lacks the closed bit; workers enter by adding 1 to it. The fields of
// the loop change only while the gate is closed and nobody is inside. What different threads write
// lies on cache lines of its own.
struct berth_thread_pool {
    berth_allocator allocator;
    berth_aligned_block self;  // the pool itself
    berth_thread_pool_options options;
    uint32_t started_count;  // workers
    worker *workers;
    berth_thread_pool_body body;
    void *user;
    int64_t count;
    int64_t chunk;
    _Alignas(CACHE_LINE_BYTES) atomic_uint epoch;  // grows with every loop; futex of workers
    atomic_bool stopping;
    _Alignas(CACHE_LINE_BYTES) atomic_uint sleeper_count;
    _Alignas(CACHE_LINE_BYTES) atomic_uint gate;  // futex of the caller
    atomic_bool caller_sleeps;
    _Alignas(CACHE_LINE_BYTES) atomic_int_fast64_t next;  // first index that nobody has taken
};

static void run_chunks(berth_thread_pool *pool, uint32_t thread) {
    int64_t count = pool->count, chunk = pool->chunk;
    for (;;) {
        int64_t begin = atomic_fetch_add_explicit(&pool->next, chunk, memory_order_relaxed);
        if (begin >= count) return;
        pool->body(pool->user, thread, begin, begin + chunk < count ? begin + chunk : count);
    }
}

static bool enter(berth_thread_pool *pool) {
    unsigned gate = atomic_load(&pool->gate);
    while (!(gate & GATE_CLOSED))
        if (atomic_compare_exchange_weak(&pool->gate, &gate, gate + 1)) return true;
    return false;
}

static void leave(berth_thread_pool *pool) {
    unsigned left = atomic_fetch_sub(&pool->gate, 1) - 1;
    if (left == GATE_CLOSED && atomic_load(&pool->caller_sleeps))
        berth_devices__futex_wake(&pool->gate, 1);
}

// Returns the epoch that follows `seen`.
static unsigned wait_for_loop(berth_thread_pool *pool, unsigned seen) {
    int64_t end_ns = berth_clock_ns() + pool->options.spin_ns;
    do {
        for (int i = 0; i < SPINS_PER_CLOCK; ++i) {
            unsigned epoch = atomic_load_explicit(&pool->epoch, memory_order_acquire);
            if (epoch != seen) return epoch;
            berth_devices__spin_hint();
        }
    } while (berth_clock_ns() < end_ns);
    atomic_fetch_add(&pool->sleeper_count, 1);
    unsigned epoch;
    while ((epoch = atomic_load(&pool->epoch)) == seen)
        berth_devices__futex_wait(&pool->epoch, seen, -1);
    atomic_fetch_sub(&pool->sleeper_count, 1);
    return epoch;
}

static void *worker_main(void *user) {
    worker *self = user;
    berth_thread_pool *pool = self->pool;
    if (pool->options.bind) pool->options.bind(pool->options.bind_user, self->index);
    for (unsigned seen = 0;;) {
        seen = wait_for_loop(pool, seen);
        if (atomic_load(&pool->stopping)) return NULL;
        if (!enter(pool)) continue;
        run_chunks(pool, self->index);
        leave(pool);
    }
}

// Closes the loop and waits for the workers inside.
static void close_loop(berth_thread_pool *pool) {
    unsigned gate = atomic_fetch_or(&pool->gate, GATE_CLOSED) | GATE_CLOSED;
    int64_t end_ns = 0;
    for (unsigned i = 0; gate != GATE_CLOSED; gate = atomic_load(&pool->gate)) {
        berth_devices__spin_hint();
        if (++i % SPINS_PER_CLOCK != 0) continue;
        int64_t now_ns = berth_clock_ns();
        if (end_ns == 0) end_ns = now_ns + CALLER_SPIN_NS;
        if (now_ns < end_ns) continue;
        atomic_store(&pool->caller_sleeps, true);
        gate = atomic_load(&pool->gate);
        if (gate != GATE_CLOSED) berth_devices__futex_wait(&pool->gate, gate, -1);
        atomic_store(&pool->caller_sleeps, false);
    }
}

// Sets up the next loop for the workers and wakes as many as it has work for.
static void announce(berth_thread_pool *pool, unsigned gate, int64_t chunk_count) {
    atomic_store(&pool->gate, gate);
    atomic_fetch_add(&pool->epoch, 1);
    if (atomic_load(&pool->sleeper_count) != 0)
        berth_devices__futex_wake(&pool->epoch,
                                  chunk_count < INT_MAX ? (int)chunk_count - 1 : INT_MAX);
}

void berth_thread_pool_run(berth_thread_pool *pool, int64_t count, berth_thread_pool_body body,
                           void *user) {
    if (count <= 0) return;
    uint32_t threads = pool->started_count + 1;
    if (threads == 1 || count == 1) {
        body(user, 0, 0, count);
        return;
    }
    int64_t wanted = (int64_t)threads * CHUNKS_PER_THREAD;
    pool->body = body;
    pool->user = user;
    pool->count = count;
    pool->chunk = count > wanted ? (count + wanted - 1) / wanted : 1;
    atomic_store_explicit(&pool->next, 0, memory_order_relaxed);
    announce(pool, 0, (count + pool->chunk - 1) / pool->chunk);
    run_chunks(pool, 0);
    close_loop(pool);
}

uint32_t berth_thread_pool_thread_count(const berth_thread_pool *pool) {
    return pool->started_count + 1;
}

void berth_thread_pool_destroy(berth_thread_pool *pool) {
    if (!pool) return;
    atomic_store(&pool->stopping, true);
    announce(pool, GATE_CLOSED, INT_MAX);
    for (uint32_t i = 0; i < pool->started_count; ++i) pthread_join(pool->workers[i].thread, NULL);
    berth_free(pool->allocator, pool->workers, pool->options.thread_count * sizeof(worker));
    berth_aligned_block self = pool->self;
    berth_devices__aligned_free(pool->allocator, &self);
}

berth_status berth_thread_pool_create(berth_allocator allocator,
                                      const berth_thread_pool_options *options,
                                      berth_thread_pool **out_pool) {
    *out_pool = NULL;
    if (options->thread_count == 0 || options->thread_count >= GATE_CLOSED)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "a pool of %u threads",
                                 options->thread_count);
    berth_aligned_block block;
    BERTH_TRY(berth_devices__aligned_alloc(allocator, sizeof(berth_thread_pool), CACHE_LINE_BYTES,
                                           &block));
    berth_thread_pool *pool = memset(block.data, 0, sizeof(*pool));
    pool->self = block;
    pool->allocator = allocator;
    pool->options = *options;
    atomic_init(&pool->gate, GATE_CLOSED);
    pool->workers = berth_calloc(allocator, options->thread_count, sizeof(worker));
    if (!pool->workers) {
        berth_devices__aligned_free(allocator, &block);
        return berth_status_oom();
    }
    for (uint32_t i = 1; i < options->thread_count; ++i) {
        worker *next = &pool->workers[i - 1];
        *next = (worker){.pool = pool, .index = i};
        int error = pthread_create(&next->thread, NULL, worker_main, next);
        if (error) {
            berth_thread_pool_destroy(pool);
            return berth_status_make(BERTH_UNAVAILABLE, "cannot start thread %u of %u: %s", i,
                                     options->thread_count, strerror(error));
        }
        pool->started_count = i;
    }
    *out_pool = pool;
    return BERTH_OK;
}
