// Several queues of one device: one submission at a time, that of the oldest run first.
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "devices/host_queue.h"
#include "tests/conformance/conformance.h"

// ---- the order by itself ------------------------------------------------------------------------

typedef struct member {
    berth_start_order *order;
    uint64_t age;
    atomic_uint *clock;
    unsigned place;  // among those who were in, from 0
} member;

static void *enter_and_leave(void *user) {
    member *m = user;
    berth_start_order_enter(m->order, m->age);
    m->place = atomic_fetch_add(m->clock, 1);
    berth_start_order_leave(m->order);
    return NULL;
}

static uint64_t oldest(berth_start_order *order) {
    return atomic_load(&order->oldest);
}

Test(start_order, the_oldest_comes_first, .timeout = 60) {
    enum { COUNT = 4 };
    static const uint64_t ages[COUNT] = {40, 30, 20, 10};  // the youngest asks first
    berth_start_order order = {0};
    berth_start_order_init(&order);
    atomic_uint clock = 0;
    member members[COUNT];
    pthread_t threads[COUNT];
    berth_start_order_enter(&order, 25);
    for (int i = 0; i < COUNT; ++i) {
        members[i] = (member){&order, ages[i], &clock, 99};
        cr_assert_eq(pthread_create(&threads[i], NULL, enter_and_leave, &members[i]), 0);
        while (oldest(&order) != ages[i]) sched_yield();
    }
    berth_start_order_give_way(&order);  // to 10 and 20, who are older
    cr_assert_eq(atomic_load(&clock), 2);
    berth_start_order_give_way(&order);
    cr_assert_eq(atomic_load(&clock), 2, "the others are younger");
    berth_start_order_leave(&order);
    for (int i = 0; i < COUNT; ++i) pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < COUNT; ++i) cr_assert_eq(members[i].place, COUNT - 1 - i);
    cr_assert_eq(oldest(&order), UINT64_MAX);
    cr_assert_not(order.busy);
    berth_start_order_deinit(&order);
}

// ---- queues -------------------------------------------------------------------------------------

// NULL: the row's driver has none.
static berth_start_order *order_of(const conformance_fixture *f) {
    const bool has_one = strcmp(f->row->kind, "cpu") == 0 || strcmp(f->row->kind, "opencl") == 0;
    if (f->row->library || !has_one) return NULL;
    berth_start_order *order = ((berth_host_queue *)f->queues[0])->order;
    cr_assert_not_null(order);
    return order;
}

typedef struct script {
    atomic_bool inside, gate;
    atomic_uint length;
    char text[4];
} script;

static berth_status wait_inside(void *user) {
    script *s = user;
    atomic_store(&s->inside, true);
    while (!atomic_load(&s->gate)) sched_yield();
    return BERTH_OK;
}

#define WRITER(name, letter)                                                                       \
    static berth_status name(void *user) {                                                         \
        script *s = user;                                                                          \
        s->text[atomic_fetch_add(&s->length, 1)] = letter;                                         \
        return BERTH_OK;                                                                           \
    }
WRITER(write_old, 'o')
WRITER(write_middle, 'm')
WRITER(write_young, 'y')

static void submit_of_age(berth_queue *queue, const berth_command *commands, uint32_t count,
                          uint64_t age, berth_semaphore *done) {
    const berth_semaphore_point signal = {done, 1};
    check_ok(berth_queue_submit(queue, &(berth_submission){.commands = commands,
                                                           .command_count = count,
                                                           .signals = &signal,
                                                           .signal_count = 1,
                                                           .asynchronous = true,
                                                           .age = age}));
}

// While a run is at its first step, an older and a younger one come: the older goes between two of its steps,
// the younger after the last.
CONFORMANCE(order, older_runs_come_between_steps) {
    berth_start_order *order = order_of(f);
    if (!order) return;
    script s = {0};
    berth_queue *queues[3];
    berth_semaphore *done[3];
    for (int i = 0; i < 3; ++i) {
        check_ok(berth_queue_open(f->devices[0], BERTH_QUEUE_COMPUTE, &queues[i]));
        done[i] = make_semaphore(f, 0);
    }
    const berth_command middle[2] = {
        {.kind = BERTH_COMMAND_HOST_CALL, .host_call = {wait_inside, &s}},
        {.kind = BERTH_COMMAND_HOST_CALL, .host_call = {write_middle, &s}}};
    const berth_command young = {.kind = BERTH_COMMAND_HOST_CALL, .host_call = {write_young, &s}};
    const berth_command old = {.kind = BERTH_COMMAND_HOST_CALL, .host_call = {write_old, &s}};
    submit_of_age(queues[0], middle, 2, 20, done[0]);
    while (!atomic_load(&s.inside)) sched_yield();
    submit_of_age(queues[1], &young, 1, 30, done[1]);
    while (oldest(order) != 30) sched_yield();
    submit_of_age(queues[2], &old, 1, 10, done[2]);
    while (oldest(order) != 10) sched_yield();
    atomic_store(&s.gate, true);
    for (int i = 0; i < 3; ++i) {
        check_ok(berth_semaphore_wait(done[i], 1, -1));
        berth_semaphore_release(done[i]);
        berth_queue_destroy(queues[i]);
    }
    cr_assert_str_eq(s.text, "omy");
}

// Two submissions of the same kind to two queues of an OpenCL device: all of the first, then the second.
CONFORMANCE(order, devices_do_not_take_turns_by_command) {
    if (!order_of(f) || strcmp(f->row->kind, "opencl") != 0) return;
    enum { COUNT = 12, BYTES = 4 << 20 };
    berth_device *device = NULL;
    check_ok(berth_device_open(f->driver, 0, &(berth_device_options){.profile = true}, &device));
    berth_buffer *buffer = make_buffer(device, BYTES);
    berth_command commands[2][COUNT];
    berth_command_timing timings[2][COUNT];
    berth_queue *queues[2];
    berth_semaphore *done[2];
    for (int q = 0; q < 2; ++q) {
        check_ok(berth_queue_open(device, BERTH_QUEUE_COMPUTE, &queues[q]));
        done[q] = make_semaphore(f, 0);
        for (int i = 0; i < COUNT; ++i) {
            commands[q][i] = fill_command(buffer, 0, BYTES, (uint32_t)i, 4);
            commands[q][i].timing = &timings[q][i];
        }
    }
    for (uint64_t q = 0; q < 2; ++q) submit_of_age(queues[q], commands[q], COUNT, q, done[q]);
    for (int q = 0; q < 2; ++q) check_ok(berth_semaphore_wait(done[q], 1, -1));
    // The device's clock is tied to the host's once a submission, give or take an enqueue.
    const int64_t step_ns = (timings[0][COUNT - 1].end_ns - timings[0][0].start_ns) / COUNT;
    cr_assert_gt(timings[1][0].start_ns, timings[0][COUNT - 1].end_ns - 3 * step_ns);
    for (int q = 0; q < 2; ++q) {
        berth_semaphore_release(done[q]);
        berth_queue_destroy(queues[q]);
    }
    berth_buffer_free(buffer);
    berth_device_close(device);
}
