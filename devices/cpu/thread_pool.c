#include "devices/cpu/thread_pool.h"

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "base/clock.h"
#include "devices/internal.h"
#include "devices/sync.h"

#define SPINS_PER_CLOCK 16
#define LOOP_SPIN_NS 500000  // how long a thread looks for the end of a loop before it sleeps
#define BITES_OF_REST 4      // a thread takes this part of what a share has left,
#define BITES_OF_SHARE 16    // but not less than this part of the share
#define WAKE_AFTER_NS 20000  // about what waking a thread costs
#define WAKE_FANOUT 2        // threads that one thread wakes
#define ALONE_FACTOR 10      // see note_wait
#define ALONE_MOST_NS 500000000
#define GATE_CLOSED 0x80000000u
#define CACHE_LINE_BYTES 64

typedef struct worker {
    berth_thread_pool *pool;
    pthread_t thread;
    uint32_t index;
} worker;

// The iterations that belong to one thread: the first that nobody has taken, in the lower half; the
// loop that it is of, in the upper half. Of an older loop: none is taken yet. So nobody has to set
// up the shares of others when a loop begins.
typedef struct share {
    _Alignas(CACHE_LINE_BYTES) atomic_uint_fast64_t next;
} share;

// A loop is open while `gate` lacks the closed bit; workers enter by adding 1 to it. The fields of
// the loop change only while the gate is closed and nobody is inside. What a loop begins with is on
// one cache line; what different threads write while it runs lies on lines of its own.
struct berth_thread_pool {
    berth_allocator allocator;
    berth_aligned_block self;  // the pool itself and its shares
    berth_thread_pool_options options;
    berth_caller_threads callers;  // parallel_for NULL: workers
    uint32_t started_count;        // workers, or what takes their place
    worker *workers;
    share *shares;                                 // one per thread
    _Alignas(CACHE_LINE_BYTES) atomic_uint epoch;  // follows `loop`; futex of workers
    atomic_uint gate;                              // futex of the caller
    uint32_t loop;                                 // its number, never 0
    uint32_t unit_count;
    berth_thread_pool_body body;
    void *user;
    int64_t count;
    int64_t unit;  // iterations that shares count as one: 1, but for more than 2^31 of them
    atomic_bool stopping;
    atomic_bool caller_sleeps;
    _Alignas(CACHE_LINE_BYTES) atomic_uint sleeper_count;
    // Of the caller, while workers sleep:
    _Alignas(CACHE_LINE_BYTES) bool may_wake;
    int64_t alone_ns;     // what it worked without them, without a pause
    int64_t alone_at_ns;  // when that was counted last
    // Of the caller, where workers lose their cores to others:
    int64_t late_at_ns;      // when it last had to wait for such a worker
    int64_t alone_until_ns;  // until then it works alone
};

// ---- sharing out the work ----
//
// Every thread owns a run of neighbouring iterations: the same part of the range in every loop, so
// that it finds in its own cache what it wrote or read there in the loop before. A thread that is
// through with its own takes from others, which is how late, slow and interrupted threads are made
// up for. What is taken at once gets smaller towards the end of a share, so that all threads end at
// about the same time. (E. Markatos and T. LeBlanc, "Using processor affinity in loop scheduling on
// shared-memory multiprocessors", 1994, section 3.)

// Rounded up: the caller has its share even of a single iteration, since it is there already.
static uint32_t share_start(const berth_thread_pool *pool, uint32_t owner) {
    uint64_t threads = (uint64_t)pool->started_count + 1;
    return (uint32_t)((pool->unit_count * (uint64_t)owner + threads - 1) / threads);
}

static int64_t iteration(const berth_thread_pool *pool, uint32_t at) {
    int64_t i = at * pool->unit;
    return i < pool->count ? i : pool->count;
}

static void wake(berth_thread_pool *pool) {
    berth_devices__futex_wake(&pool->epoch, WAKE_FANOUT);
}

// The caller, while workers sleep. Waking one costs it some microseconds, and the worker comes
// later still: too much for a short run. So it wakes them when it has worked alone for as long, or
// is about to: at worst it has then spent twice what was necessary (the ski rental problem; A.
// Karlin et al., "Competitive randomized algorithms for nonuniform problems", 1994).
static void wake_when_worth_it(berth_thread_pool *pool, int64_t expected_ns) {
    int64_t now_ns = berth_clock_ns();
    pool->alone_ns += now_ns - pool->alone_at_ns;
    pool->alone_at_ns = now_ns;
    if (pool->alone_ns + expected_ns < WAKE_AFTER_NS) return;
    pool->alone_ns = 0;
    pool->may_wake = false;
    wake(pool);
}

static void run_share(berth_thread_pool *pool, uint32_t owner, uint32_t thread) {
    atomic_uint_fast64_t *next = &pool->shares[owner].next;
    uint32_t loop = pool->loop;
    uint32_t first = share_start(pool, owner);
    uint32_t end = share_start(pool, owner + 1);
    uint32_t least = (end - first + BITES_OF_SHARE - 1) / BITES_OF_SHARE;
    uint64_t seen = atomic_load_explicit(next, memory_order_relaxed);
    for (;;) {
        uint32_t at = (uint32_t)(seen >> 32) == loop ? (uint32_t)seen : first;
        if (at >= end) return;
        uint32_t bite = (end - at) / BITES_OF_REST > least ? (end - at) / BITES_OF_REST : least;
        uint32_t after = bite < end - at ? at + bite : end;
        if (!atomic_compare_exchange_weak_explicit(next, &seen, (uint64_t)loop << 32 | after,
                                                   memory_order_relaxed, memory_order_relaxed))
            continue;
        pool->body(pool->user, thread, iteration(pool, at), iteration(pool, after));
        if (thread == 0 && pool->may_wake) wake_when_worth_it(pool, 0);
        seen = atomic_load_explicit(next, memory_order_relaxed);
    }
}

static void run_shares(berth_thread_pool *pool, uint32_t thread) {
    uint32_t threads = pool->started_count + 1;
    for (uint32_t i = 0; i < threads; ++i)
        run_share(pool, thread + i < threads ? thread + i : thread + i - threads, thread);
}

// ---- loops ----

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

// Looks for the epoch that follows `seen`: while the loop that this thread has left goes on, since
// the next one often comes right after it, and spin_ns longer. Returns `seen` where none came.
static unsigned look_for_loop(berth_thread_pool *pool, unsigned seen) {
    int64_t now_ns = berth_clock_ns();
    int64_t last_ns = now_ns + LOOP_SPIN_NS;
    int64_t end_ns = now_ns + pool->options.spin_ns;
    do {
        for (int i = 0; i < SPINS_PER_CLOCK; ++i) {
            unsigned epoch = atomic_load_explicit(&pool->epoch, memory_order_acquire);
            if (epoch != seen) return epoch;
            berth_devices__spin_hint();
        }
        now_ns = berth_clock_ns();
        bool open = !(atomic_load_explicit(&pool->gate, memory_order_relaxed) & GATE_CLOSED);
        if (open && now_ns < last_ns) end_ns = now_ns + pool->options.spin_ns;
    } while (now_ns < end_ns);
    return seen;
}

// Returns the epoch that follows `seen`.
static unsigned wait_for_loop(berth_thread_pool *pool, unsigned seen) {
    unsigned epoch = look_for_loop(pool, seen);
    if (epoch != seen) return epoch;
    atomic_fetch_add(&pool->sleeper_count, 1);
    while ((epoch = atomic_load(&pool->epoch)) == seen)
        berth_devices__futex_wait(&pool->epoch, seen, -1);
    atomic_fetch_sub(&pool->sleeper_count, 1);
    return epoch;
}

// Inside a loop that has work for more threads than are awake.
static void wake_others(berth_thread_pool *pool) {
    uint32_t sleeper_count = atomic_load_explicit(&pool->sleeper_count, memory_order_relaxed);
    if (sleeper_count && pool->unit_count > pool->started_count + 1 - sleeper_count) wake(pool);
}

static void *worker_main(void *user) {
    worker *self = user;
    berth_thread_pool *pool = self->pool;
    for (unsigned seen = 0;;) {
        seen = wait_for_loop(pool, seen);
        if (atomic_load(&pool->stopping)) return NULL;
        if (!enter(pool)) continue;
        wake_others(pool);
        run_shares(pool, self->index);  // of this loop or, for a late worker, of one after it
        leave(pool);
    }
}

// A worker whose core does something else holds up the caller, for milliseconds where other
// programs want the cores. The caller has waited longer than the loop takes it alone: when that
// happens again and again, it works alone for ten times as long as it waited, so that a machine
// that is busy costs little more than to have one thread.
static void note_wait(berth_thread_pool *pool, int64_t start_ns, int64_t wait_ns, int64_t now_ns) {
    int64_t alone_ns = (wait_ns - start_ns) * pool->started_count;
    int64_t waited_ns = now_ns - wait_ns;
    if (waited_ns < LOOP_SPIN_NS || waited_ns < alone_ns) return;
    int64_t pause_ns =
        ALONE_FACTOR * waited_ns < ALONE_MOST_NS ? ALONE_FACTOR * waited_ns : ALONE_MOST_NS;
    bool again = pool->late_at_ns && now_ns - pool->late_at_ns < pause_ns;
    if (again) pool->alone_until_ns = now_ns + pause_ns;
    pool->late_at_ns = again ? pool->alone_until_ns : now_ns;
}

// Closes the loop and waits for the workers inside.
static void close_loop(berth_thread_pool *pool, int64_t start_ns) {
    unsigned gate = atomic_fetch_or(&pool->gate, GATE_CLOSED) | GATE_CLOSED;
    int64_t wait_ns = 0, now_ns = 0;
    for (unsigned i = 0; gate != GATE_CLOSED; gate = atomic_load(&pool->gate)) {
        berth_devices__spin_hint();
        if (++i % SPINS_PER_CLOCK != 0) continue;
        now_ns = berth_clock_ns();
        if (wait_ns == 0) wait_ns = now_ns;
        if (now_ns < wait_ns + (pool->options.spin_ns ? LOOP_SPIN_NS : 0)) continue;
        atomic_store(&pool->caller_sleeps, true);
        gate = atomic_load(&pool->gate);
        if (gate != GATE_CLOSED) berth_devices__futex_wait(&pool->gate, gate, -1);
        atomic_store(&pool->caller_sleeps, false);
        now_ns = berth_clock_ns();
    }
    if (now_ns > wait_ns + LOOP_SPIN_NS) note_wait(pool, start_ns, wait_ns, now_ns);
}

// Numbers the next loop. 0 is what shares begin with.
static void count_loop(berth_thread_pool *pool) {
    if (++pool->loop != 0) return;
    for (uint32_t i = 0; i <= pool->started_count; ++i)  // all numbers are used up: from the start
        atomic_store_explicit(&pool->shares[i].next, 0, memory_order_relaxed);
    pool->loop = 1;
}

// Opens the next loop to the workers that are awake.
static void announce(berth_thread_pool *pool) {
    atomic_store_explicit(&pool->gate, 0, memory_order_release);
    atomic_fetch_add(&pool->epoch, 1);
}

static void look_for_sleepers(berth_thread_pool *pool, int64_t expected_ns) {
    pool->may_wake = atomic_load(&pool->sleeper_count) != 0;
    if (!pool->may_wake) return;
    int64_t now_ns = berth_clock_ns();
    if (now_ns - pool->alone_at_ns > pool->options.spin_ns) pool->alone_ns = 0;
    pool->alone_at_ns = now_ns;
    wake_when_worth_it(pool, expected_ns);
}

static void run_callers_part(void *pool, uint32_t thread) {
    run_shares(pool, thread);
}

void berth_thread_pool_run(berth_thread_pool *pool, int64_t count, int64_t expected_ns,
                           berth_thread_pool_body body, void *user) {
    if (count <= 0) return;
    uint32_t threads = pool->started_count + 1;
    int64_t start_ns = threads > 1 && count > 1 ? berth_clock_ns() : 0;
    if (start_ns < pool->alone_until_ns || threads == 1 || count == 1) {
        body(user, 0, 0, count);
        return;
    }
    pool->body = body;
    pool->user = user;
    pool->count = count;
    pool->unit = 1 + count / INT32_MAX;
    pool->unit_count = (uint32_t)((count + pool->unit - 1) / pool->unit);
    count_loop(pool);
    if (pool->callers.parallel_for) {
        pool->callers.parallel_for(pool->callers.user, threads, run_callers_part, pool);
        return;
    }
    announce(pool);
    look_for_sleepers(pool, expected_ns);
    run_shares(pool, 0);
    close_loop(pool, start_ns);
}

uint32_t berth_thread_pool_thread_count(const berth_thread_pool *pool) {
    return pool->started_count + 1;
}

pthread_t berth_thread_pool_worker(const berth_thread_pool *pool, uint32_t thread) {
    return pool->workers[thread - 1].thread;
}

void berth_thread_pool_destroy(berth_thread_pool *pool) {
    if (!pool) return;
    atomic_store(&pool->stopping, true);
    atomic_fetch_add(&pool->epoch, 1);
    berth_devices__futex_wake(&pool->epoch, INT_MAX);
    for (uint32_t i = 0; pool->workers && i < pool->started_count; ++i)
        pthread_join(pool->workers[i].thread, NULL);
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
    size_t bytes = sizeof(berth_thread_pool) + options->thread_count * sizeof(share);
    BERTH_TRY(berth_devices__aligned_alloc(allocator, bytes, CACHE_LINE_BYTES, &block));
    berth_thread_pool *pool = memset(block.data, 0, bytes);
    pool->shares = (share *)(void *)(pool + 1);
    pool->self = block;
    pool->allocator = allocator;
    pool->options = *options;
    atomic_init(&pool->gate, GATE_CLOSED);
    if (options->callers) {
        pool->callers = *options->callers;
        pool->started_count = options->thread_count - 1;
        *out_pool = pool;
        return BERTH_OK;
    }
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
