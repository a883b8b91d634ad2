// Threads of the caller, for the kernels of processor devices (berth_session_settings).
//
//   static void for_all(void *user, uint32_t count, void (*part)(void *data, uint32_t index), void *data) {
//       my_pool_run(user, count, part, data);
//   }
//   const berth_caller_threads threads = {sizeof(threads), 8, for_all, my_pool};
//   settings.threads = &threads;
#ifndef BERTH_THREADS_H_
#define BERTH_THREADS_H_

#include <berth/version.h>
#include <stddef.h>
#include <stdint.h>

BERTH_BEGIN

// Zero everything, set size_bytes, then the rest. Later versions may add members at the end.
typedef struct berth_caller_threads {
    size_t size_bytes;  // sizeof(berth_caller_threads)
    uint32_t
        thread_count;  // parts that a kernel is divided into; as many as may run at the same time
    // Calls part(data, i) once for every i < count, on any threads, in any order, at the same time or one
    // after another, and returns when all have returned; then their writes are seen by its caller, as they
    // see what that wrote before. count <= thread_count. Parts neither block nor call back. It is called by
    // the thread that runs a session, by threads of Berth's that wait for another device or a limit of time,
    // and by those of runners: by several at once where there are several sessions or cpu devices.
    void (*parallel_for)(void *user, uint32_t count, void (*part)(void *data, uint32_t index),
                         void *data);
    void *user;
} berth_caller_threads;

BERTH_END

#endif  // BERTH_THREADS_H_
