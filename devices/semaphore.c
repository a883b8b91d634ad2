// Host timeline semaphores. The value is one atomic: signalling and looking take no lock while
// nobody sleeps and no link waits. Sleepers wait on a sequence number that moves with every change
// they may care about; links and the failure are behind a lock that is never held over a call.
#include "devices/semaphore.h"

#include <inttypes.h>
#include <limits.h>
#include <pthread.h>

#include "base/clock.h"
#include "devices/sync.h"

// Waiters look this long before they sleep: about what a sleep and wake-up cost.
#define SPIN_NS 5000

struct berth_semaphore {
    berth_allocator allocator;
    atomic_uint reference_count;
    atomic_uint sequence;  // futex word
    atomic_uint sleeper_count;
    atomic_uint link_count;
    atomic_uint_fast64_t value;
    atomic_bool failed;
    pthread_mutex_t lock;  // of what follows
    berth_semaphore_link *links;
    berth_semaphore_promise *promises;
    berth_status failure;
};

berth_status berth_semaphore_create(berth_allocator allocator, uint64_t initial_value,
                                    berth_semaphore **out_semaphore) {
    *out_semaphore = NULL;
    berth_semaphore *semaphore = berth_calloc(allocator, 1, sizeof(*semaphore));
    if (!semaphore) return berth_status_oom();
    if (pthread_mutex_init(&semaphore->lock, NULL) != 0) {
        berth_free(allocator, semaphore, sizeof(*semaphore));
        return berth_status_oom();
    }
    semaphore->allocator = allocator;
    atomic_init(&semaphore->reference_count, 1);
    atomic_init(&semaphore->value, initial_value);
    *out_semaphore = semaphore;
    return BERTH_OK;
}

void berth_semaphore_retain(berth_semaphore *semaphore) {
    atomic_fetch_add_explicit(&semaphore->reference_count, 1, memory_order_relaxed);
}

void berth_semaphore_release(berth_semaphore *semaphore) {
    if (!semaphore ||
        atomic_fetch_sub_explicit(&semaphore->reference_count, 1, memory_order_acq_rel) != 1)
        return;
    berth_status_free(semaphore->failure);
    pthread_mutex_destroy(&semaphore->lock);
    berth_free(semaphore->allocator, semaphore, sizeof(*semaphore));
}

uint64_t berth_semaphore_query(berth_semaphore *semaphore, bool *out_failed) {
    if (out_failed) *out_failed = atomic_load_explicit(&semaphore->failed, memory_order_acquire);
    return atomic_load_explicit(&semaphore->value, memory_order_acquire);
}

static void wake_sleepers(berth_semaphore *semaphore) {
    if (atomic_load(&semaphore->sleeper_count) == 0) return;
    atomic_fetch_add(&semaphore->sequence, 1);
    berth_devices__futex_wake(&semaphore->sequence, INT_MAX);
}

// After a change of value or failure: wakes sleepers and calls the links it concerns.
static void publish(berth_semaphore *semaphore) {
    wake_sleepers(semaphore);
    if (atomic_load(&semaphore->link_count) == 0) return;
    berth_semaphore_link *due = NULL;
    berth_semaphore_link **due_end = &due;
    pthread_mutex_lock(&semaphore->lock);
    bool failed = atomic_load(&semaphore->failed);
    uint64_t value = atomic_load(&semaphore->value);
    for (berth_semaphore_link **at = &semaphore->links; *at;) {
        berth_semaphore_link *link = *at;
        if (failed || link->value <= value) {
            *at = link->next;
            link->next = NULL;
            *due_end = link;
            due_end = &link->next;
            atomic_fetch_sub(&semaphore->link_count, 1);
        } else {
            at = &link->next;
        }
    }
    pthread_mutex_unlock(&semaphore->lock);
    while (due) {
        berth_semaphore_link *next = due->next;  // the link may be gone after the call
        due->reached(due, failed);
        due = next;
    }
}

static berth_status copy_failure(berth_semaphore *semaphore) {
    pthread_mutex_lock(&semaphore->lock);
    berth_status copy = berth_status_clone(semaphore->failure);
    pthread_mutex_unlock(&semaphore->lock);
    return copy;
}

berth_status berth_semaphore_signal(berth_semaphore *semaphore, uint64_t value) {
    uint64_t current = atomic_load(&semaphore->value);
    do {
        if (atomic_load(&semaphore->failed)) return copy_failure(semaphore);
        if (value <= current)
            return berth_status_make(BERTH_INVALID_ARGUMENT,
                                     "a semaphore at %" PRIu64 " cannot be signalled to %" PRIu64
                                     ": it only grows",
                                     current, value);
    } while (!atomic_compare_exchange_weak(&semaphore->value, &current, value));
    publish(semaphore);
    return BERTH_OK;
}

void berth_semaphore_fail(berth_semaphore *semaphore, berth_status failure) {
    if (!failure)
        failure = berth_status_make(BERTH_INTERNAL, "a semaphore was failed without a reason");
    pthread_mutex_lock(&semaphore->lock);
    bool first = !semaphore->failure;
    if (first) {
        semaphore->failure = failure;
        atomic_store(&semaphore->failed, true);
    }
    pthread_mutex_unlock(&semaphore->lock);
    if (first)
        publish(semaphore);
    else
        berth_status_free(failure);
}

static bool settled(berth_semaphore *semaphore, uint64_t value) {
    return atomic_load(&semaphore->value) >= value || atomic_load(&semaphore->failed);
}

// Looks for look_ns, or until `deadline_ns`. Does not yield: to another process of the core, even one of
// low priority, that would be a time slice, where a thread that sleeps is woken at once.
static bool look(berth_semaphore *semaphore, uint64_t value, int64_t look_ns, int64_t deadline_ns) {
    int64_t end_ns = berth_clock_ns() + look_ns;
    if (end_ns > deadline_ns) end_ns = deadline_ns;
    do {
        for (int i = 0; i < SPINS_PER_CLOCK; ++i) {
            if (settled(semaphore, value)) return true;
            berth_devices__spin_hint();
        }
    } while (berth_clock_ns() < end_ns);
    return false;
}

static bool sleep_until(berth_semaphore *semaphore, uint64_t value, int64_t deadline_ns) {
    atomic_fetch_add(&semaphore->sleeper_count, 1);
    bool done;
    for (;;) {
        unsigned seen = atomic_load(&semaphore->sequence);
        done = settled(semaphore, value);
        if (done) break;
        int64_t left_ns = -1;
        if (deadline_ns != INT64_MAX) {
            left_ns = deadline_ns - berth_clock_ns();
            if (left_ns <= 0) break;
        }
        berth_devices__futex_wait(&semaphore->sequence, seen, left_ns);
    }
    atomic_fetch_sub(&semaphore->sleeper_count, 1);
    return done;
}

berth_status berth_semaphore_wait(berth_semaphore *semaphore, uint64_t value, int64_t timeout_ns) {
    return berth_semaphore_look_and_wait(semaphore, value, SPIN_NS, timeout_ns);
}

berth_status berth_semaphore_look_and_wait(berth_semaphore *semaphore, uint64_t value,
                                           int64_t look_ns, int64_t timeout_ns) {
    bool done = settled(semaphore, value);
    if (!done && timeout_ns != 0) {
        int64_t now_ns = berth_clock_ns();
        int64_t deadline_ns = berth_clock_deadline_ns(now_ns, timeout_ns);
        done = look(semaphore, value, look_ns > SPIN_NS ? look_ns : SPIN_NS, deadline_ns) ||
               sleep_until(semaphore, value, deadline_ns);
    }
    if (!done)
        return berth_status_make(BERTH_DEADLINE_EXCEEDED,
                                 "the semaphore is at %" PRIu64 ", not at %" PRIu64
                                 ", after %" PRId64 " ns",
                                 (uint64_t)atomic_load(&semaphore->value), value, timeout_ns);
    return atomic_load(&semaphore->failed) ? copy_failure(semaphore) : BERTH_OK;
}

void berth_semaphore_notify(berth_semaphore *semaphore, uint64_t value,
                            berth_semaphore_link *link) {
    link->value = value;
    pthread_mutex_lock(&semaphore->lock);
    // Counted before the value is looked at: a signal that misses the link is seen here.
    atomic_fetch_add(&semaphore->link_count, 1);
    bool done = settled(semaphore, value);
    if (done) {
        atomic_fetch_sub(&semaphore->link_count, 1);
    } else {
        link->next = semaphore->links;
        semaphore->links = link;
    }
    pthread_mutex_unlock(&semaphore->lock);
    if (done) link->reached(link, atomic_load(&semaphore->failed));
}

// ---- promises ----

void berth_semaphore_promise_add(berth_semaphore *semaphore, berth_semaphore_promise *promise) {
    pthread_mutex_lock(&semaphore->lock);
    promise->next = semaphore->promises;
    semaphore->promises = promise;
    pthread_mutex_unlock(&semaphore->lock);
    wake_sleepers(semaphore);
}

void berth_semaphore_promise_remove(berth_semaphore *semaphore, berth_semaphore_promise *promise) {
    pthread_mutex_lock(&semaphore->lock);
    berth_semaphore_promise **at = &semaphore->promises;
    while (*at && *at != promise) at = &(*at)->next;
    if (*at) *at = promise->next;
    pthread_mutex_unlock(&semaphore->lock);
}

void *berth_semaphore_promised(berth_semaphore *semaphore, uint64_t value, const void *domain,
                               atomic_uint **out_users) {
    pthread_mutex_lock(&semaphore->lock);
    const berth_semaphore_promise *promise = semaphore->promises;
    while (promise && (promise->value < value || promise->domain != domain))
        promise = promise->next;
    if (promise) atomic_fetch_add(*out_users = promise->users, 1);
    void *work = promise ? promise->work : NULL;
    pthread_mutex_unlock(&semaphore->lock);
    return work;
}

void berth_semaphore_wait_promised(berth_semaphore *semaphore, uint64_t value, const void *domain,
                                   int64_t look_ns) {
    if (look(semaphore, value, look_ns > SPIN_NS ? look_ns : SPIN_NS, INT64_MAX)) return;
    atomic_fetch_add(&semaphore->sleeper_count, 1);
    for (;;) {
        unsigned seen = atomic_load(&semaphore->sequence);
        atomic_uint *users = NULL;
        if (settled(semaphore, value)) break;
        if (domain && berth_semaphore_promised(semaphore, value, domain, &users)) {
            atomic_fetch_sub(users, 1);
            break;
        }
        berth_devices__futex_wait(&semaphore->sequence, seen, -1);
    }
    atomic_fetch_sub(&semaphore->sleeper_count, 1);
}
