#include "devices/start_order.h"

#include <stddef.h>

// On the stack of who waits.
struct berth_start_order_waiter {
    berth_start_order_waiter *next;
    uint64_t age;
    pthread_cond_t changed;
    bool called;
};

void berth_start_order_init(berth_start_order *order) {
    pthread_mutex_init(&order->lock, NULL);
    atomic_init(&order->oldest, UINT64_MAX);
}

void berth_start_order_deinit(berth_start_order *order) {
    pthread_mutex_destroy(&order->lock);
}

static void note_oldest(berth_start_order *order) {
    atomic_store_explicit(&order->oldest, order->first ? order->first->age : UINT64_MAX,
                          memory_order_relaxed);
}

// Under the lock, which it drops meanwhile.
static void wait_for_call(berth_start_order *order, uint64_t age) {
    berth_start_order_waiter self = {.age = age, .changed = PTHREAD_COND_INITIALIZER};
    berth_start_order_waiter **at = &order->first;
    while (*at && (*at)->age <= age) at = &(*at)->next;
    self.next = *at;
    *at = &self;
    note_oldest(order);
    while (!self.called) pthread_cond_wait(&self.changed, &order->lock);
    pthread_cond_destroy(&self.changed);
}

// Under the lock.
static void call_first(berth_start_order *order) {
    berth_start_order_waiter *waiter = order->first;
    order->busy = waiter != NULL;
    if (!waiter) return;
    order->first = waiter->next;
    order->age = waiter->age;
    note_oldest(order);
    waiter->called = true;
    pthread_cond_signal(&waiter->changed);
}

void berth_start_order_enter(berth_start_order *order, uint64_t age) {
    pthread_mutex_lock(&order->lock);
    if (order->busy) {
        wait_for_call(order, age);
    } else {
        order->busy = true;
        order->age = age;
    }
    pthread_mutex_unlock(&order->lock);
}

void berth_start_order_give_way(berth_start_order *order) {
    if (atomic_load_explicit(&order->oldest, memory_order_relaxed) >= order->age) return;
    pthread_mutex_lock(&order->lock);
    if (order->first && order->first->age < order->age) {
        const uint64_t age = order->age;
        call_first(order);
        wait_for_call(order, age);
    }
    pthread_mutex_unlock(&order->lock);
}

void berth_start_order_leave(berth_start_order *order) {
    pthread_mutex_lock(&order->lock);
    call_first(order);
    pthread_mutex_unlock(&order->lock);
}
