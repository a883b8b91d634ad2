#include "base/parallel.h"

#include <signal.h>
#include <unistd.h>

static void work(berth_parallel *loop) {
    for (;;) {
        size_t index = atomic_fetch_add_explicit(&loop->next, 1, memory_order_relaxed);
        if (index >= loop->count) return;
        loop->body(loop->user, index);
    }
}

static void *run_helper(void *user) {
    work(user);
    return NULL;
}

// Signals stay with the threads of the program that uses this library.
static void start_helpers(berth_parallel *loop, uint32_t wanted) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (loop->helper_count < wanted &&
           pthread_create(&loop->helpers[loop->helper_count], NULL, run_helper, loop) == 0)
        loop->helper_count++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void berth_parallel_start(berth_parallel *loop, uint32_t helper_count, size_t count,
                          berth_parallel_body body, void *user) {
    loop->body = body;
    loop->user = user;
    loop->count = count;
    loop->helper_count = 0;
    atomic_store_explicit(&loop->next, 0, memory_order_relaxed);
    if (helper_count > count) helper_count = (uint32_t)count;
    if (helper_count > BERTH_PARALLEL_MAX_HELPERS) helper_count = BERTH_PARALLEL_MAX_HELPERS;
    if (helper_count) start_helpers(loop, helper_count);
}

void berth_parallel_finish(berth_parallel *loop) {
    work(loop);
    for (uint32_t i = 0; i < loop->helper_count; ++i) pthread_join(loop->helpers[i], NULL);
    loop->helper_count = 0;
}

uint32_t berth_core_count(void) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores > 0 ? (uint32_t)cores : 1;
}
