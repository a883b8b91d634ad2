// Submissions to the queues of one device start one at a time, those of the oldest run first.
//
// Without it, requests that are at a device together take turns there kernel by kernel, so they leave it together
// as well, and the device that comes after has nothing to do until then. One after another, the first is there
// while the second is still here: what makes a pipeline of them.
//
//   berth_start_order_enter(&device->order, submission->age);   // waits
//   ... starts the submission, or runs its commands, with berth_start_order_give_way between two of them
//   berth_start_order_leave(&device->order);
//
// Thread-safe. Who is in may wait for what is under way, but for nothing that has to enter the same order. No
// call is made under its lock.
#ifndef BERTH_DEVICES_START_ORDER_H_
#define BERTH_DEVICES_START_ORDER_H_

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct berth_start_order_waiter berth_start_order_waiter;

typedef struct berth_start_order {
    pthread_mutex_t lock;             // of what follows
    bool busy;                        // somebody is in
    uint64_t age;                     // of who is in
    berth_start_order_waiter *first;  // by age, those of one age as they came
    atomic_uint_fast64_t oldest;      // its age; UINT64_MAX = nobody waits. Read without the lock
    atomic_uint in_flight;            // submissions of all queues that have started and not ended
} berth_start_order;

void berth_start_order_init(berth_start_order *order);
void berth_start_order_deinit(berth_start_order *order);
// Returns once the caller is in.
//   age: when the run of the submission began, on any clock; less comes first
void berth_start_order_enter(berth_start_order *order, uint64_t age);
// Lets in who is older than the caller, who is in, and returns when they have left.
void berth_start_order_give_way(berth_start_order *order);
void berth_start_order_leave(berth_start_order *order);

#endif  // BERTH_DEVICES_START_ORDER_H_
