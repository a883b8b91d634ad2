// The queue most drivers need: order, waits, signals, failures, lifetimes. A driver supplies one or
// two functions on plain command lists:
//
//   synchronous   (cpu, null)    start runs the commands; finish is NULL
//   asynchronous  (opencl, ...)  start hands them to the vendor's in-order queue, finish waits for
//                                them; later submissions are started meanwhile
//
// A submission that can start does so inside submit, without an allocation or a change of thread.
// Else it waits in a list for the queue's thread, which waits for its semaphores. In an
// asynchronous queue, a wait for a signal of an earlier, started submission of the same queue needs
// no waiting: the vendor's queue keeps the order. List entries are reused.
//
// Where another queue's started submission will signal what this one waits for, and both share a domain, the
// device is made to wait (wait_native) and the host does not.
#ifndef BERTH_DEVICES_HOST_QUEUE_H_
#define BERTH_DEVICES_HOST_QUEUE_H_

#include <pthread.h>

#include "devices/driver.h"
#include "devices/start_order.h"

typedef struct berth_host_queue_ops {
    // Runs or starts the commands in order. Called by one thread at a time. On failure nothing of
    // this submission may still be running. `record` (asynchronous) is the driver's memory of this
    // submission, record_bytes long, zeroed when first used and then reused. `prepared` is that of the
    // command list, NULL = the commands are new or nothing was prepared.
    berth_status (*start)(berth_queue *queue, const berth_command *commands, uint32_t count,
                          void *prepared, void *record);
    // Waits for what start began; fills timings. In order of start, on the queue's thread; may run
    // beside a later start.
    berth_status (*finish)(berth_queue *queue, const berth_command *commands, uint32_t count,
                           void *record);
    size_t record_bytes;
    // (optional) Makes room in a record for a submission of command_count commands, before start.
    // Under the queue's lock: allocates and does nothing else.
    berth_status (*record_reserve)(berth_queue *queue, void *record, uint32_t command_count);
    void (*record_destroy)(berth_queue *queue, void *record);
    // (optional, both or none) Whether other queues can wait for what `record` began, until its next start.
    bool (*is_native)(berth_queue *queue, const void *record);
    // What is started from now on comes after what the record of another queue of the domain began. False:
    // it cannot be had, the host waits. Called by the thread that starts.
    bool (*wait_native)(berth_queue *queue, berth_queue *other, const void *record);
    // (optional) The first that the queue's own thread does, before it starts anything.
    void (*thread_begin)(berth_queue *queue);
} berth_host_queue_ops;

typedef struct berth_host_queue_entry berth_host_queue_entry;

// Embed as the first member of the driver's queue.
typedef struct berth_host_queue {
    berth_queue base;
    const berth_host_queue_ops *ops;
    const void
        *domain;  // (driver, where it has wait_native) queues with the same can wait for each other
    berth_start_order
        *order;  // (driver) of the device's queues that wait for their turn; NULL = none
    int64_t
        look_ns;  // (driver) how long its thread looks for what it waits for before it sleeps, and after
                  // a submission for the next one
    berth_allocator allocator;
    atomic_uint native_wait_count, host_wait_count;  // so far, of other queues and the host
    atomic_uint news;  // grows with all that the thread may be waiting for a change of
    pthread_t thread;  // once something was submitted that was not done at once
    bool has_thread;
    pthread_mutex_t lock;  // of what follows
    pthread_cond_t changed;
    berth_host_queue_entry *first, *last;  // submissions in order
    berth_host_queue_entry *unused;
    berth_semaphore_point *spare_points;  // swapped with those of the entry that is completed
    uint32_t spare_point_capacity;
    uint32_t point_capacity;    // every entry is made as large as the largest submission so far,
    uint32_t command_capacity;  // or as reserved
    uint32_t started_count;     // submissions that have started and not ended
    bool starting;              // a thread is in ops->start, or about to signal in order
    bool stopping;
} berth_host_queue;

// Fills `queue`; its thread starts with the first submission that is not done at once. The driver's own
// members must be ready before.
BERTH_MUST_USE berth_status berth_host_queue_init(berth_host_queue *queue, berth_device *device,
                                                  const berth_host_queue_ops *ops);
// Waits for submitted work and ends the thread. The caller frees the struct.
void berth_host_queue_deinit(berth_host_queue *queue);
// A driver's queue_reserve.
BERTH_MUST_USE berth_status berth_host_queue_reserve(berth_queue *queue, uint32_t submission_count,
                                                     uint32_t command_count, uint32_t point_count);
// A driver's queue_submit.
BERTH_MUST_USE berth_status berth_host_queue_submit(berth_queue *queue,
                                                    const berth_submission *submission);

// A synchronous driver's start: copies, fills and calls on host memory, with timings; `dispatch`
// runs one dispatch command. `order`: older runs come between the commands, of who is in; NULL = there is none.
BERTH_MUST_USE berth_status berth_host_queue_run_commands(
    berth_device *device, berth_start_order *order, const berth_command *commands, uint32_t count,
    berth_status (*dispatch)(berth_device *device, const berth_command *command));

#endif  // BERTH_DEVICES_HOST_QUEUE_H_
