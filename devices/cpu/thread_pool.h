// Threads for parallel loops: one pool per cpu device; the caller takes part. Workers wait for the
// next loop by looking for a few microseconds, then sleep. A loop never waits for a worker that has
// not woken up yet: whoever is there does the work.
#ifndef BERTH_DEVICES_CPU_THREAD_POOL_H_
#define BERTH_DEVICES_CPU_THREAD_POOL_H_

#include <berth/threads.h>
#include <pthread.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/status.h"

#pragma GCC visibility push(hidden)  // of no library that links this one

typedef struct berth_thread_pool berth_thread_pool;

// A part of a loop: [begin, end). `thread` is 0 for the caller, 1 .. thread_count - 1 for workers.
typedef void (*berth_thread_pool_body)(void *user, uint32_t thread, int64_t begin, int64_t end);

typedef struct berth_thread_pool_options {
    uint32_t thread_count;  // with the caller; at least 1
    int64_t spin_ns;        // how long workers look before they sleep
    const berth_caller_threads
        *callers;  // the application's threads instead of workers; NULL = workers
} berth_thread_pool_options;

// Errors: OUT_OF_MEMORY; UNAVAILABLE threads do not start.
BERTH_MUST_USE berth_status berth_thread_pool_create(berth_allocator allocator,
                                                     const berth_thread_pool_options *options,
                                                     berth_thread_pool **out_pool);
void berth_thread_pool_destroy(berth_thread_pool *pool);  // NULL is fine

uint32_t berth_thread_pool_thread_count(const berth_thread_pool *pool);
// The system's handle of a worker: 1 .. thread_count - 1. For binding it. Not of the application's.
pthread_t berth_thread_pool_worker(const berth_thread_pool *pool, uint32_t thread);

// Calls body for disjoint ranges that cover [0, count), on any threads of the pool, and returns
// when all are done. Every thread begins with a part of the range that is its own, the same in all
// loops of one count, and then takes from the parts of others. Allocates nothing. Not reentrant,
// and one caller at a time.
// Threads that sleep are woken when the work is worth it: when the caller alone
// has worked for a while in this loop and those before it, or expects to. `expected_ns`: what one
// thread takes for the whole loop at least; 0 = not known.
void berth_thread_pool_run(berth_thread_pool *pool, int64_t count, int64_t expected_ns,
                           berth_thread_pool_body body, void *user);

#pragma GCC visibility pop

#endif  // BERTH_DEVICES_CPU_THREAD_POOL_H_
