// A parallel loop that may go on in the background: helpers take indices while its owner does
// something else; finishing takes part in what is left, and waits. Threads live for one loop only,
// so this is for milliseconds of work (packing weights), not for kernels.
//
//   berth_parallel loop = {0};
//   berth_parallel_start(&loop, 1, count, body, user);   // one helper beside the caller
//   ...                                                  // anything that does not need the result
//   berth_parallel_finish(&loop);
//
// Thread-compatible: one thread starts and finishes a loop.
#ifndef BERTH_BASE_PARALLEL_H_
#define BERTH_BASE_PARALLEL_H_

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define BERTH_PARALLEL_MAX_HELPERS 15

// Work number `index` of a loop. Must not fail, and must not touch an arena: other indices run on
// other threads at the same time.
typedef void (*berth_parallel_body)(void *user, size_t index);

typedef struct berth_parallel {  // zero-initialised; private
    berth_parallel_body body;
    void *user;
    size_t count;
    atomic_size_t next;
    uint32_t helper_count;
    pthread_t helpers[BERTH_PARALLEL_MAX_HELPERS];
} berth_parallel;

// Calls body(user, i) for every i in [0, count), in increasing order of their beginnings, on at
// most `helper_count` threads of their own (0: all is left to berth_parallel_finish). Returns at
// once. Threads that do not start are done without; nothing can fail. The loop's record stays where
// it is until it is finished. Allocates nothing itself.
void berth_parallel_start(berth_parallel *loop, uint32_t helper_count, size_t count,
                          berth_parallel_body body, void *user);
// Does what is left on the calling thread, and returns when all is done. Again: nothing to do.
void berth_parallel_finish(berth_parallel *loop);

// Processor cores that are online; at least 1.
uint32_t berth_core_count(void);

#endif  // BERTH_BASE_PARALLEL_H_
