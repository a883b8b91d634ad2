// Timeline semaphores: a 64-bit value that only grows, and a failure that sticks. Waiters inherit
// the failure. Signalled by queues and by the host alike; shared by reference count. Thread-safe.
#ifndef BERTH_DEVICES_SEMAPHORE_H_
#define BERTH_DEVICES_SEMAPHORE_H_

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/atomics.h"
#include "base/status.h"

typedef struct berth_semaphore berth_semaphore;

typedef struct berth_semaphore_point {
    berth_semaphore *semaphore;
    uint64_t value;
} berth_semaphore_point;

BERTH_MUST_USE berth_status berth_semaphore_create(berth_allocator allocator,
                                                   uint64_t initial_value,
                                                   berth_semaphore **out_semaphore);
void berth_semaphore_retain(berth_semaphore *semaphore);
void berth_semaphore_release(berth_semaphore *semaphore);

// Current value, without waiting. When it failed, *out_failed is set (may be NULL).
uint64_t berth_semaphore_query(berth_semaphore *semaphore, bool *out_failed);

// Raises the value; a value not above the current one is INVALID_ARGUMENT.
BERTH_MUST_USE berth_status berth_semaphore_signal(berth_semaphore *semaphore, uint64_t value);

// Fails it for good; takes ownership of `failure`. The first failure is kept.
void berth_semaphore_fail(berth_semaphore *semaphore, berth_status failure);

// Waits until value >= `value`. timeout_ns < 0 = forever, 0 = just look.
// Errors: DEADLINE_EXCEEDED; a copy of the failure when the semaphore failed.
BERTH_MUST_USE berth_status berth_semaphore_wait(berth_semaphore *semaphore, uint64_t value,
                                                 int64_t timeout_ns);
// The same, looking for look_ns before it sleeps; at least as long as a sleep and wake-up cost.
BERTH_MUST_USE berth_status berth_semaphore_look_and_wait(berth_semaphore *semaphore,
                                                          uint64_t value, int64_t look_ns,
                                                          int64_t timeout_ns);

// Calls `reached` once, when the value is reached or the semaphore failed: at once on this thread,
// or later on the signalling thread (never under a lock). `link` is caller-owned storage that must
// live until then: no allocation.
typedef struct berth_semaphore_link {
    struct berth_semaphore_link *next;
    uint64_t value;
    void (*reached)(struct berth_semaphore_link *link, bool failed);
    void *user;
} berth_semaphore_link;
void berth_semaphore_notify(berth_semaphore *semaphore, uint64_t value, berth_semaphore_link *link);

// ---- payload of a device ----
//
// Work that a device has been given will reach a value by itself, without the host. Until the host signals
// that, the semaphore carries a promise of it: queues that share its `domain` make their own device wait for
// that work (devices/host_queue.h). Storage is the caller's, as above.
typedef struct berth_semaphore_promise {
    struct berth_semaphore_promise *next;
    uint64_t value;
    const void *domain;
    void *work;          // what waits for it need to know
    atomic_uint *users;  // counts those who have found it and not let go of it
} berth_semaphore_promise;
void berth_semaphore_promise_add(berth_semaphore *semaphore, berth_semaphore_promise *promise);
// Nobody finds it any more.
void berth_semaphore_promise_remove(berth_semaphore *semaphore, berth_semaphore_promise *promise);
// The work that will reach the value, as one more of its users; NULL = nobody promises that.
void *berth_semaphore_promised(berth_semaphore *semaphore, uint64_t value, const void *domain,
                               atomic_uint **out_users);
// Waits until the value is reached or promised to the domain, or the semaphore failed. Looks for
// look_ns before it sleeps; at least as long as a sleep and wake-up cost.
void berth_semaphore_wait_promised(berth_semaphore *semaphore, uint64_t value, const void *domain,
                                   int64_t look_ns);

#endif  // BERTH_DEVICES_SEMAPHORE_H_
