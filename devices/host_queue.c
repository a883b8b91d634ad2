#include "devices/host_queue.h"

#include <sched.h>
#include <string.h>

#include "base/clock.h"
#include "devices/internal.h"
#include "devices/sync.h"

typedef enum entry_state { ENTRY_WAITING, ENTRY_STARTING, ENTRY_STARTED } entry_state;

struct berth_host_queue_entry {
    berth_host_queue_entry *next;
    berth_host_queue *queue;
    berth_semaphore_point *points;      // waits, then signals
    berth_semaphore_promise *promises;  // of the signals
    uint32_t promise_capacity;
    uint32_t promise_count;  // given
    atomic_uint users;       // of the promises
    uint32_t point_capacity;
    uint32_t command_capacity;  // of the record
    uint32_t wait_count;
    uint32_t signal_count;
    const berth_command *commands;
    uint32_t command_count;
    const berth_command_list *list;  // which keeps what the commands name; NULL = the entry does
    uint64_t age;
    bool calls_host;  // a command is a host call
    entry_state state;
    berth_status failure;  // of a wait or of start
    void *record;
};

// Under the lock.
static void count_started(berth_host_queue *queue, int change) {
    if (!queue->order) return;
    queue->started_count += (uint32_t)change;
    atomic_fetch_add(&queue->order->in_flight, (unsigned)change);
}

static void *prepared(const berth_command_list *list) {
    return list ? list->prepared : NULL;
}

static const berth_semaphore_point *entry_signals(const berth_host_queue_entry *entry) {
    return entry->points + entry->wait_count;
}

static void signal_all(const berth_semaphore_point *signals, uint32_t count, berth_status status) {
    for (uint32_t i = 0; i < count; ++i) {
        berth_status failure = status
                                   ? berth_status_clone(status)
                                   : berth_semaphore_signal(signals[i].semaphore, signals[i].value);
        if (failure) berth_semaphore_fail(signals[i].semaphore, failure);
    }
    berth_status_free(status);
}

// ---- entries (under the lock unless said otherwise) ----

static void entry_destroy(berth_host_queue *queue, berth_host_queue_entry *entry) {
    if (entry->record) {
        if (queue->ops->record_destroy) queue->ops->record_destroy(&queue->base, entry->record);
        berth_free(queue->allocator, entry->record, queue->ops->record_bytes);
    }
    berth_free(queue->allocator, entry->points, entry->point_capacity * sizeof(*entry->points));
    berth_free(queue->allocator, entry->promises,
               entry->promise_capacity * sizeof(*entry->promises));
    berth_free(queue->allocator, entry, sizeof(*entry));
}

static berth_host_queue_entry *entry_create(berth_host_queue *queue) {
    berth_host_queue_entry *entry = berth_calloc(queue->allocator, 1, sizeof(*entry));
    if (entry) entry->queue = queue;
    if (!entry || queue->ops->record_bytes == 0) return entry;
    entry->record = berth_calloc(queue->allocator, 1, queue->ops->record_bytes);
    if (entry->record) return entry;
    berth_free(queue->allocator, entry, sizeof(*entry));
    return NULL;
}

static berth_status grow_points(berth_host_queue *queue, berth_semaphore_point **points,
                                uint32_t *capacity) {
    if (queue->point_capacity <= *capacity) return BERTH_OK;
    berth_semaphore_point *grown =
        berth_resize(queue->allocator, *points, *capacity * sizeof(*grown),
                     queue->point_capacity * sizeof(*grown));
    if (!grown) return berth_status_oom();
    *points = grown;
    *capacity = queue->point_capacity;
    return BERTH_OK;
}

static berth_status grow_promises(berth_host_queue *queue, berth_host_queue_entry *entry) {
    if (!queue->domain || queue->point_capacity <= entry->promise_capacity) return BERTH_OK;
    berth_semaphore_promise *grown =
        berth_resize(queue->allocator, entry->promises, entry->promise_capacity * sizeof(*grown),
                     queue->point_capacity * sizeof(*grown));
    if (!grown) return berth_status_oom();
    entry->promises = grown;
    entry->promise_capacity = queue->point_capacity;
    return BERTH_OK;
}

// Makes the entry as large as any submission may need.
static berth_status entry_fit(berth_host_queue *queue, berth_host_queue_entry *entry) {
    BERTH_TRY(grow_points(queue, &entry->points, &entry->point_capacity));
    BERTH_TRY(grow_promises(queue, entry));
    if (queue->command_capacity > entry->command_capacity && queue->ops->record_reserve) {
        BERTH_TRY(queue->ops->record_reserve(&queue->base, entry->record, queue->command_capacity));
        entry->command_capacity = queue->command_capacity;
    }
    return BERTH_OK;
}

// Raises what every entry must hold. Entries in flight are made larger when they come back.
static berth_status raise_capacities(berth_host_queue *queue, uint32_t point_count,
                                     uint32_t command_count) {
    if (point_count <= queue->point_capacity && command_count <= queue->command_capacity)
        return BERTH_OK;
    if (point_count > queue->point_capacity) queue->point_capacity = point_count;
    if (command_count > queue->command_capacity) queue->command_capacity = command_count;
    for (berth_host_queue_entry *entry = queue->unused; entry; entry = entry->next)
        BERTH_TRY(entry_fit(queue, entry));
    return BERTH_OK;
}

static bool has_host_call(const berth_submission *submission) {
    for (uint32_t i = 0; i < submission->command_count; ++i)
        if (submission->commands[i].kind == BERTH_COMMAND_HOST_CALL) return true;
    return false;
}

// Copies the submission into an entry at the end of the list and keeps alive what it names.
static berth_status append(berth_host_queue *queue, const berth_submission *submission,
                           entry_state state, berth_host_queue_entry **out_entry) {
    uint64_t point_count = (uint64_t)submission->wait_count + submission->signal_count;
    if (point_count > UINT32_MAX) return berth_status_oom();
    BERTH_TRY(raise_capacities(queue, (uint32_t)point_count, submission->command_count));
    berth_host_queue_entry *entry = queue->unused;
    if (entry)
        queue->unused = entry->next;
    else if (!(entry = entry_create(queue)))
        return berth_status_oom();
    berth_status status = entry_fit(queue, entry);
    if (status) {
        entry->next = queue->unused;
        queue->unused = entry;
        return status;
    }
    entry->next = NULL;
    entry->wait_count = submission->wait_count;
    entry->signal_count = submission->signal_count;
    entry->commands = submission->commands;
    entry->command_count = submission->command_count;
    entry->list = submission->list;
    entry->age = submission->age;
    entry->calls_host = has_host_call(submission);
    entry->state = state;
    entry->failure = BERTH_OK;
    if (submission->wait_count)
        memcpy(entry->points, submission->waits, submission->wait_count * sizeof(*entry->points));
    if (submission->signal_count)
        memcpy(entry->points + submission->wait_count, submission->signals,
               submission->signal_count * sizeof(*entry->points));
    for (uint32_t i = 0; i < point_count; ++i) berth_semaphore_retain(entry->points[i].semaphore);
    if (!entry->list) berth_devices__retain_commands(entry->commands, entry->command_count);
    if (queue->last)
        queue->last->next = entry;
    else
        queue->first = entry;
    queue->last = entry;
    if (state == ENTRY_STARTING) count_started(queue, 1);
    *out_entry = entry;
    return BERTH_OK;
}

// ---- promises: not under the lock ----

static void give_promises(berth_host_queue *queue, berth_host_queue_entry *entry) {
    if (!queue->domain || !queue->ops->is_native(&queue->base, entry->record)) return;
    for (uint32_t i = 0; i < entry->signal_count; ++i) {
        berth_semaphore_point signal = entry_signals(entry)[i];
        entry->promises[i] = (berth_semaphore_promise){
            .value = signal.value, .domain = queue->domain, .work = entry, .users = &entry->users};
        berth_semaphore_promise_add(signal.semaphore, &entry->promises[i]);
    }
    entry->promise_count = entry->signal_count;
}

// Users hold on to an entry while they tell their device to wait, no longer.
static void take_promises_back(berth_host_queue_entry *entry) {
    for (uint32_t i = 0; i < entry->promise_count; ++i)
        berth_semaphore_promise_remove(entry_signals(entry)[i].semaphore, &entry->promises[i]);
    entry->promise_count = 0;
    while (atomic_load(&entry->users)) sched_yield();
}

// Whether the device has nothing to do but for this queue. Where it has, what waits for another device must not be
// started yet: all that starts later comes after it. What the device itself has begun may be waited for at any time.
static bool is_alone(const berth_host_queue *queue) {
    return !queue->order || atomic_load(&queue->order->in_flight) == queue->started_count;
}

static bool is_promised(const berth_host_queue *queue, berth_semaphore_point point) {
    atomic_uint *users = NULL;
    if (!queue->domain) return false;
    const berth_host_queue_entry *other =
        berth_semaphore_promised(point.semaphore, point.value, queue->domain, &users);
    if (!other) return false;
    bool is_here = other->queue->base.device == queue->base.device;
    atomic_fetch_sub(users, 1);
    return is_here || is_alone(queue);
}

// Has the device wait for what others promise. False: nobody does any more, or the device cannot.
static bool wait_natively(berth_host_queue *queue, berth_semaphore_point point) {
    atomic_uint *users = NULL;
    berth_host_queue_entry *other =
        berth_semaphore_promised(point.semaphore, point.value, queue->domain, &users);
    if (!other) return false;
    bool done = other->queue == queue ||
                queue->ops->wait_native(&queue->base, &other->queue->base, other->record);
    if (done && other->queue != queue) atomic_fetch_add(&queue->native_wait_count, 1);
    atomic_fetch_sub(users, 1);
    return done;
}

// Not under the lock; the queue's thread only. The entry is free for the next submission before
// anybody hears of the end of this one; so those who wait for one submission before they make the
// next never need a second entry.
static void complete(berth_host_queue *queue, berth_host_queue_entry *entry, berth_status status) {
    take_promises_back(entry);
    // Commands first: after a signal, the caller may have dropped them.
    if (!entry->list) berth_devices__release_commands(entry->commands, entry->command_count);
    pthread_mutex_lock(&queue->lock);
    berth_semaphore_point *points = entry->points;
    uint32_t capacity = entry->point_capacity;
    uint32_t wait_count = entry->wait_count, signal_count = entry->signal_count;
    entry->points = queue->spare_points;
    entry->point_capacity = queue->spare_point_capacity;
    queue->first = entry->next;
    if (!queue->first) queue->last = NULL;
    count_started(queue, -1);
    entry->next = queue->unused;
    queue->unused = entry;
    berth_status_ignore(entry_fit(queue, entry));  // append tries again
    // A synchronous queue must not run and signal the next submission before this one's signals.
    if (!queue->ops->finish) queue->starting = true;
    pthread_mutex_unlock(&queue->lock);
    signal_all(points + wait_count, signal_count, status);
    for (uint32_t i = 0; i < wait_count + signal_count; ++i)
        berth_semaphore_release(points[i].semaphore);
    pthread_mutex_lock(&queue->lock);
    if (!queue->ops->finish) queue->starting = false;
    queue->spare_points = points;
    queue->spare_point_capacity = capacity;
    pthread_mutex_unlock(&queue->lock);
}

// ---- waits ----

// Whether a started entry will reach the point; the vendor's queue then keeps the order.
static bool covered(const berth_host_queue *queue, berth_semaphore_point point) {
    if (!queue->ops->finish) return false;
    for (const berth_host_queue_entry *entry = queue->first; entry && entry->state == ENTRY_STARTED;
         entry = entry->next) {
        const berth_semaphore_point *signals = entry_signals(entry);
        for (uint32_t i = 0; i < entry->signal_count; ++i)
            if (signals[i].semaphore == point.semaphore && signals[i].value >= point.value)
                return true;
    }
    return false;
}

// Whether the commands may start as far as the waits go. A failed wait is ready too.
static bool ready(const berth_host_queue *queue, const berth_semaphore_point *waits,
                  uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
        bool failed = false;
        uint64_t value = berth_semaphore_query(waits[i].semaphore, &failed);
        if (!failed && value < waits[i].value && !covered(queue, waits[i]) &&
            !is_promised(queue, waits[i]))
            return false;
    }
    return true;
}

static berth_status failure_of(const berth_semaphore_point *waits, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
        bool failed = false;
        berth_semaphore_query(waits[i].semaphore, &failed);
        if (failed) return berth_semaphore_wait(waits[i].semaphore, waits[i].value, 0);
    }
    return BERTH_OK;
}

// ---- submit ----

// Under the lock: the thread looks at the list again.
static void tell_thread(berth_host_queue *queue) {
    atomic_fetch_add(&queue->news, 1);
    pthread_cond_broadcast(&queue->changed);
}

// The driver's start, when it is the run's turn at the device. What the submission waits for may have failed until then.
static berth_status start_in_order(berth_host_queue *queue, const berth_submission *submission,
                                   void *record) {
    if (queue->order) berth_start_order_enter(queue->order, submission->age);
    berth_status status = failure_of(submission->waits, submission->wait_count);
    if (!status)
        status = queue->ops->start(&queue->base, submission->commands, submission->command_count,
                                   prepared(submission->list), record);
    if (queue->order) berth_start_order_leave(queue->order);
    return status;
}

// Synchronous: run here and now. The order of signals is that of submit: nobody starts meanwhile.
static void run_inline(berth_host_queue *queue, const berth_submission *submission) {
    berth_status status = start_in_order(queue, submission, NULL);
    signal_all(submission->signals, submission->signal_count, status);
    pthread_mutex_lock(&queue->lock);
    queue->starting = false;
    if (queue->first || queue->stopping) tell_thread(queue);
    pthread_mutex_unlock(&queue->lock);
}

// What the entry waits for is reached, or the vendor's queue comes after it. That which was promised may have
// ended since: then its signal is on its way.
static void order_after_waits(berth_host_queue *queue, const berth_host_queue_entry *entry) {
    for (uint32_t i = 0; i < entry->wait_count && queue->domain; ++i) {
        berth_semaphore_point wait = entry->points[i];
        bool failed = false;
        if (berth_semaphore_query(wait.semaphore, &failed) >= wait.value || failed) continue;
        pthread_mutex_lock(&queue->lock);
        bool in_order = covered(queue, wait);
        pthread_mutex_unlock(&queue->lock);
        if (!in_order && !wait_natively(queue, wait))
            berth_status_ignore(berth_semaphore_wait(wait.semaphore, wait.value, -1));
    }
}

// Not under the lock; `starting` is set and the entry is STARTING. Afterwards it is STARTED.
static void start_entry(berth_host_queue *queue, berth_host_queue_entry *entry) {
    order_after_waits(queue, entry);
    berth_status failure = start_in_order(queue,
                                          &(berth_submission){.waits = entry->points,
                                                              .wait_count = entry->wait_count,
                                                              .commands = entry->commands,
                                                              .command_count = entry->command_count,
                                                              .list = entry->list,
                                                              .age = entry->age},
                                          entry->record);
    if (!failure) give_promises(queue, entry);
    pthread_mutex_lock(&queue->lock);
    entry->failure = failure;
    entry->state = ENTRY_STARTED;
    queue->starting = false;
    tell_thread(queue);
    pthread_mutex_unlock(&queue->lock);
}

static void *thread_main(void *user);

// What is not done at once needs the thread; many queues (one per program that is kept for a shape) never
// have anything else. Under the lock.
static berth_status need_thread(berth_host_queue *queue) {
    if (queue->has_thread) return BERTH_OK;
    int error = pthread_create(&queue->thread, NULL, thread_main, queue);
    queue->has_thread = error == 0;
    if (error == 0) return BERTH_OK;
    return berth_status_make(BERTH_UNAVAILABLE, "cannot start the thread of a queue: %s",
                             strerror(error));
}

berth_status berth_host_queue_submit(berth_queue *base, const berth_submission *submission) {
    berth_host_queue *queue = (berth_host_queue *)base;
    bool synchronous = !queue->ops->finish;
    bool here = synchronous ? !submission->asynchronous : !has_host_call(submission);
    pthread_mutex_lock(&queue->lock);
    here = here && !queue->starting && (!queue->last || queue->last->state == ENTRY_STARTED) &&
           (!synchronous || !queue->first) &&
           ready(queue, submission->waits, submission->wait_count);
    if (here && synchronous) {
        queue->starting = true;
        pthread_mutex_unlock(&queue->lock);
        run_inline(queue, submission);
        return BERTH_OK;
    }
    berth_host_queue_entry *entry = NULL;
    berth_status status = need_thread(queue);
    if (!status) status = append(queue, submission, here ? ENTRY_STARTING : ENTRY_WAITING, &entry);
    if (!status && here) queue->starting = true;
    if (!status && !here) tell_thread(queue);
    pthread_mutex_unlock(&queue->lock);
    if (!status && here) start_entry(queue, entry);
    return status;
}

berth_status berth_host_queue_reserve(berth_queue *base, uint32_t submission_count,
                                      uint32_t command_count, uint32_t point_count) {
    berth_host_queue *queue = (berth_host_queue *)base;
    pthread_mutex_lock(&queue->lock);
    berth_status status = raise_capacities(queue, point_count, command_count);
    if (!status) status = grow_points(queue, &queue->spare_points, &queue->spare_point_capacity);
    uint32_t have = 0;
    for (berth_host_queue_entry *entry = queue->unused; entry; entry = entry->next) ++have;
    for (; !status && have < submission_count; ++have) {
        berth_host_queue_entry *entry = entry_create(queue);
        if (!entry) {
            status = berth_status_oom();
            break;
        }
        entry->next = queue->unused;
        queue->unused = entry;
        status = entry_fit(queue, entry);
    }
    pthread_mutex_unlock(&queue->lock);
    return status;
}

// ---- the thread ----

// Starts waiting entries, from the first, while their waits are ready; a synchronous queue only the
// very first. Host calls run within a start: it comes when nothing before them is left to be signalled. Under the
// lock, which it drops around starts.
static void start_ready(berth_host_queue *queue) {
    for (;;) {
        berth_host_queue_entry *entry = queue->first;
        while (entry && entry->state == ENTRY_STARTED) entry = entry->next;
        if (!entry || entry->state != ENTRY_WAITING || queue->starting ||
            ((!queue->ops->finish || entry->calls_host) && entry != queue->first) ||
            !ready(queue, entry->points, entry->wait_count))
            return;
        entry->state = ENTRY_STARTING;
        count_started(queue, 1);
        queue->starting = true;
        pthread_mutex_unlock(&queue->lock);
        start_entry(queue, entry);
        pthread_mutex_lock(&queue->lock);
    }
}

// The first entry is WAITING and not ready: waits for its semaphores one by one. Failures are
// looked at when it starts.
static void wait_for(berth_host_queue *queue, const berth_host_queue_entry *entry,
                     const void *domain) {
    for (uint32_t i = 0; i < entry->wait_count; ++i) {
        berth_semaphore_point wait = entry->points[i];
        if (berth_semaphore_query(wait.semaphore, NULL) < wait.value)
            atomic_fetch_add(&queue->host_wait_count, 1);
        berth_semaphore_wait_promised(wait.semaphore, wait.value, domain, queue->look_ns);
    }
}

// What the entry waited for on the device, or by its place in the queue, may have failed: that comes first.
static void finish_first(berth_host_queue *queue, berth_host_queue_entry *entry) {
    berth_status status = entry->failure;
    if (!status && queue->ops->finish) {
        status =
            queue->ops->finish(&queue->base, entry->commands, entry->command_count, entry->record);
        berth_status before = BERTH_OK;
        for (uint32_t i = 0; i < entry->wait_count && !before; ++i)
            before = berth_semaphore_wait(entry->points[i].semaphore, entry->points[i].value, -1);
        if (before) {
            berth_status_free(status);
            status = before;
        }
    }
    complete(queue, entry, status);
}

static void look_for_news(berth_host_queue *queue, unsigned seen) {
    int64_t end_ns = berth_clock_ns() + queue->look_ns;
    do {
        for (int i = 0; i < SPINS_PER_CLOCK; ++i) {
            if (atomic_load(&queue->news) != seen) return;
            berth_devices__spin_hint();
        }
    } while (berth_clock_ns() < end_ns);
}

// Waits for a submission, or until the one that starts elsewhere is through: looks a while, once after each
// submission, then sleeps. Under the lock, which it drops while it looks.
static void wait_for_news(berth_host_queue *queue, bool *looked) {
    if (*looked || queue->look_ns == 0) {
        pthread_cond_wait(&queue->changed, &queue->lock);
        return;
    }
    *looked = true;
    unsigned seen = atomic_load(&queue->news);
    pthread_mutex_unlock(&queue->lock);
    look_for_news(queue, seen);
    pthread_mutex_lock(&queue->lock);
}

static void *thread_main(void *user) {
    berth_host_queue *queue = user;
    bool looked = true;
    if (queue->ops->thread_begin) queue->ops->thread_begin(&queue->base);
    pthread_mutex_lock(&queue->lock);
    for (;;) {
        berth_host_queue_entry *first = queue->first;
        if ((!first && queue->stopping && !queue->starting)) break;
        if (!first || (first->state != ENTRY_STARTED && queue->starting)) {
            wait_for_news(queue, &looked);
            continue;
        }
        if (first->state == ENTRY_WAITING) {
            const void *domain = is_alone(queue) ? queue->domain : NULL;
            pthread_mutex_unlock(&queue->lock);
            wait_for(queue, first, domain);
            pthread_mutex_lock(&queue->lock);
        }
        start_ready(queue);
        if (first->state != ENTRY_STARTED) continue;
        pthread_mutex_unlock(&queue->lock);
        finish_first(queue, first);
        looked = false;
        pthread_mutex_lock(&queue->lock);
    }
    pthread_mutex_unlock(&queue->lock);
    return NULL;
}

berth_status berth_host_queue_init(berth_host_queue *queue, berth_device *device,
                                   const berth_host_queue_ops *ops) {
    queue->base.device = device;
    queue->ops = ops;
    queue->allocator = device->allocator;
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->changed, NULL);
    return BERTH_OK;
}

void berth_host_queue_deinit(berth_host_queue *queue) {
    pthread_mutex_lock(&queue->lock);
    queue->stopping = true;
    tell_thread(queue);
    bool has_thread = queue->has_thread;
    while (!has_thread && queue->starting) pthread_cond_wait(&queue->changed, &queue->lock);
    pthread_mutex_unlock(&queue->lock);
    if (has_thread) pthread_join(queue->thread, NULL);
    while (queue->unused) {
        berth_host_queue_entry *next = queue->unused->next;
        entry_destroy(queue, queue->unused);
        queue->unused = next;
    }
    berth_free(queue->allocator, queue->spare_points,
               queue->spare_point_capacity * sizeof(*queue->spare_points));
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->lock);
}

// ---- commands on host memory ----

static berth_status run_command(berth_device *device, const berth_command *command,
                                berth_status (*dispatch)(berth_device *, const berth_command *)) {
    switch (command->kind) {
    case BERTH_COMMAND_COPY: berth_devices__host_copy(command); return BERTH_OK;
    case BERTH_COMMAND_FILL: berth_devices__host_fill(command); return BERTH_OK;
    case BERTH_COMMAND_DISPATCH: return dispatch(device, command);
    case BERTH_COMMAND_HOST_CALL: return command->host_call.call(command->host_call.user);
    case BERTH_COMMAND_TO_DEVICE:
    case BERTH_COMMAND_TO_HOST: return BERTH_OK;  // both may touch the bytes at any time
    }
    return BERTH_OK;
}

berth_status berth_host_queue_run_commands(berth_device *device, berth_start_order *order,
                                           const berth_command *commands, uint32_t count,
                                           berth_status (*dispatch)(berth_device *,
                                                                    const berth_command *)) {
    bool profile = device->options.profile;
    for (uint32_t i = 0; i < count; ++i) {
        if (order && i > 0) berth_start_order_give_way(order);
        berth_command_timing *timing = profile ? commands[i].timing : NULL;
        if (timing) timing->start_ns = berth_clock_ns();
        berth_status status = run_command(device, &commands[i], dispatch);
        if (status && commands[i].label)
            return berth_status_prefix(status, "%s", commands[i].label);
        if (status) return status;
        if (timing) timing->end_ns = berth_clock_ns();
    }
    return BERTH_OK;
}
