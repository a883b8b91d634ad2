// The cpu driver's devices of some cores: where their work runs, and who waits for it how.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

#include "tests/conformance/conformance.h"

typedef struct pinned {
    berth_driver *driver;
    berth_device *device;
    berth_queue *queue;
    berth_semaphore *done;
    uint64_t value;
    pthread_t worker;   // who ran the last call
    cpu_set_t allowed;  // where that thread may be
} pinned;

static size_t processors[CPU_SETSIZE], processor_count;

static void find_processors(void) {
    cpu_set_t all;
    cr_assert_eq(sched_getaffinity(0, sizeof(all), &all), 0);
    processor_count = 0;
    for (size_t i = 0; i < CPU_SETSIZE; ++i)
        if (CPU_ISSET(i, &all)) processors[processor_count++] = i;
}

static void stay_on(size_t processor) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    cr_assert_eq(pthread_setaffinity_np(pthread_self(), sizeof(one), &one), 0);
}

// A device of the first processor that the test may use.
static void open_pinned(pinned *p) {
    char attributes[32];
    snprintf(attributes, sizeof(attributes), "cpuset=%zu", processors[0]);
    check_ok(berth_driver_open("cpu", berth_allocator_system(), &p->driver));
    check_ok(berth_device_open(p->driver, 0, &(berth_device_options){.attributes = attributes},
                               &p->device));
    check_ok(berth_queue_open(p->device, BERTH_QUEUE_COMPUTE, &p->queue));
    check_ok(berth_semaphore_create(berth_allocator_system(), 0, &p->done));
}

static void close_pinned(pinned *p) {
    berth_queue_destroy(p->queue);
    berth_semaphore_release(p->done);
    berth_device_close(p->device);
    berth_driver_close(p->driver);
}

static berth_status note_worker(void *user) {
    pinned *p = user;
    p->worker = pthread_self();
    return pthread_getaffinity_np(p->worker, sizeof(p->allowed), &p->allowed) == 0
               ? BERTH_OK
               : berth_status_make(BERTH_INTERNAL, "no affinity");
}

static void run_call(pinned *p) {
    berth_command command = {.kind = BERTH_COMMAND_HOST_CALL,
                             .host_call = {.call = note_worker, .user = p}};
    check_ok(submit(p->queue, &command, 1, NULL, 0, p->done, ++p->value));
    check_ok(berth_queue_wait(p->queue, (berth_semaphore_point){p->done, p->value}, -1));
}

Test(pinned, work_runs_on_the_caller_where_that_is_on_its_core, .timeout = 60) {
    pinned p = {0};
    find_processors();
    open_pinned(&p);
    stay_on(processors[0]);
    for (int i = 0; i < 3; ++i) {
        run_call(&p);
        cr_assert(pthread_equal(p.worker, pthread_self()));
    }
    close_pinned(&p);
}

Test(pinned, a_caller_elsewhere_is_never_bound, .timeout = 60) {
    pinned p = {0};
    find_processors();
    if (processor_count < 2) cr_skip_test("one processor");
    open_pinned(&p);
    for (int i = 0; i < 3;
         ++i) {  // back and forth: who has a thread already runs the next call here all the same
        stay_on(processors[processor_count - 1]);
        run_call(&p);
        cr_assert_not(pthread_equal(p.worker, pthread_self()));
        cr_assert_eq(CPU_COUNT(&p.allowed), 1);
        cr_assert(CPU_ISSET(processors[0], &p.allowed));
        stay_on(processors[0]);
        run_call(&p);
        cr_assert(pthread_equal(p.worker, pthread_self()));
    }
    cpu_set_t all;
    CPU_ZERO(&all);
    for (size_t i = 0; i < processor_count; ++i) CPU_SET(processors[i], &all);
    cr_assert_eq(pthread_setaffinity_np(pthread_self(), sizeof(all), &all), 0);
    run_call(&p);
    cpu_set_t after;
    cr_assert_eq(pthread_getaffinity_np(pthread_self(), sizeof(after), &after), 0);
    cr_assert(CPU_EQUAL(&all, &after));
    close_pinned(&p);
}
