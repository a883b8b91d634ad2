// Programs whose devices work in one memory: no copies, and at every moment the side that touches
// bytes has them. A referee between session and drivers checks the latter, since on a machine whose
// "GPU" is the processor itself nothing else would notice.
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "devices/device.h"
#include "devices/registry.h"
#include "executor/session.h"
#include "tests/check.h"
#include "tests/executor/program_builder.h"
#include "tests/leaks.h"

static berth_arena *arena;

static void setup(void) {
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
}

static void teardown(void) {
    berth_arena_destroy(arena);
}

TestSuite(shared, .init = setup, .fini = teardown, .timeout = 120);

// ---- the referee ----

enum { max_ranges = 16, host_has = 0, both_read = 100 };  // else 1 + device

typedef struct range {
    unsigned char *begin;
    size_t size_bytes;
    unsigned char *holder;  // per byte
} range;

typedef struct referee {
    range ranges[max_ranges];
    int range_count;
    berth_driver *drivers[2];
    berth_device *devices[3];  // cpu:0, opencl:0, opencl:1
    berth_device_ops ops[3];
    const berth_device_ops *real[3];
    int hand_overs;
    bool refuse;
} referee;

static referee R;

static int index_of(const berth_device *device) {
    for (int i = 0; i < 3; ++i)
        if (R.devices[i] == device) return i;
    return -1;
}

// The holders of a buffer's bytes, NULL where it is not in shared memory.
static unsigned char *holders(const berth_buffer *buffer) {
    for (int i = 0; i < R.range_count && buffer->host; ++i) {
        const range *r = &R.ranges[i];
        unsigned char *host = buffer->host;
        if (host >= r->begin && host < r->begin + r->size_bytes)
            return r->holder + (host - r->begin);
    }
    return NULL;
}

static void check_held(const berth_buffer *buffer, int device, const char *label) {
    const unsigned char *holder = holders(buffer);
    for (uint64_t i = 0; holder && i < buffer->size_bytes; ++i)
        cr_assert(holder[i] == device || holder[i] == both_read,
                  "%s on device %d: byte %llu is with %d", label ? label : "?", device,
                  (unsigned long long)i, holder[i]);
}

static void hand_over(const berth_buffer *buffer, int from, int to) {
    unsigned char *holder = holders(buffer);
    cr_assert_not_null(holder);
    bool any = false;
    for (uint64_t i = 0; i < buffer->size_bytes; ++i) {
        // What all only read stays so, and what another device keeps is none of this one's
        // business.
        if (holder[i] == to || holder[i] == both_read ||
            (holder[i] != from && holder[i] != host_has))
            continue;
        cr_assert_eq(holder[i], from, "byte %llu goes from %d to %d, but %d has it",
                     (unsigned long long)i, from, to, holder[i]);
        holder[i] = (unsigned char)to;
        any = true;
    }
    R.hand_overs += any;
}

static void watch(const berth_command *command, int device) {
    int holder = device == 0 ? host_has : device;
    switch (command->kind) {
    case BERTH_COMMAND_COPY:
        check_held(command->copy.source, holder, command->label);
        check_held(command->copy.destination, holder, command->label);
        break;
    case BERTH_COMMAND_FILL: check_held(command->fill.buffer, holder, command->label); break;
    case BERTH_COMMAND_DISPATCH:
        for (uint32_t i = 0; i < command->dispatch.buffer_count; ++i)
            check_held(command->dispatch.buffers[i], holder, command->label);
        break;
    case BERTH_COMMAND_HOST_CALL: break;
    case BERTH_COMMAND_TO_DEVICE:
    case BERTH_COMMAND_TO_HOST:
        for (uint32_t i = 0; i < command->hand_over.buffer_count; ++i) {
            bool back = command->kind == BERTH_COMMAND_TO_HOST;
            int host = back && command->hand_over.read_only ? both_read : host_has;
            hand_over(command->hand_over.buffers[i], back ? device : host, back ? host : device);
        }
        break;
    }
}

static berth_status watched_submit(berth_queue *queue, const berth_submission *submission) {
    int device = index_of(queue->device);
    for (uint32_t i = 0; i < submission->command_count; ++i)
        watch(&submission->commands[i], device);
    return R.real[device]->queue_submit(queue, submission);
}

static void remember(void *host, uint64_t size_bytes) {
    cr_assert_lt(R.range_count, max_ranges);
    R.ranges[R.range_count++] =
        (range){host, (size_t)size_bytes, berth_arena_alloc(arena, (size_t)size_bytes)};
    memset(R.ranges[R.range_count - 1].holder, host_has, (size_t)size_bytes);
}

static berth_status watched_share(berth_device *device, uint64_t size_bytes,
                                  berth_buffer **out_buffer) {
    if (R.refuse) return berth_status_make(BERTH_UNSUPPORTED, "this device has memory of its own");
    BERTH_TRY(R.real[index_of(device)]->buffer_share(device, size_bytes, out_buffer));
    remember((*out_buffer)->host, size_bytes);
    return BERTH_OK;
}

// Opens the devices with the referee in between. The second OpenCL device of a program may be the
// first one again.
static void open_referee(void) {
    setenv("POCL_DEVICES", "pthread pthread", 1);
    memset(&R, 0, sizeof(R));
    berth_status status = berth_driver_open("opencl", berth_allocator_system(), &R.drivers[1]);
    const char *required = getenv("BERTH_REQUIRE_DRIVERS");
    bool enough = !status && berth_driver_device_count(R.drivers[1]) >= 2;
    if (!enough && required && strstr(required, "opencl"))
        cr_assert_fail("two OpenCL devices are required: %s", berth_status_message(status));
    berth_status_free(status);
    if (!enough) cr_skip("skipped: this needs two OpenCL devices");
    assert_ok(berth_driver_open("cpu", berth_allocator_system(), &R.drivers[0]));
    for (int i = 0; i < 3; ++i) {
        assert_ok(berth_device_open(R.drivers[i > 0], i == 2, NULL, &R.devices[i]));
        R.real[i] = R.devices[i]->ops;
        R.ops[i] = *R.real[i];
        R.ops[i].queue_submit = watched_submit;
        if (i > 0) R.ops[i].buffer_share = watched_share;
        R.devices[i]->ops = &R.ops[i];
    }
}

static void close_referee(void) {
    for (int i = 0; i < 3; ++i) {
        R.devices[i]->ops = R.real[i];
        berth_device_close(R.devices[i]);
    }
    for (int i = 0; i < 2; ++i) berth_driver_close(R.drivers[i]);
}

static berth_status open_session(const berth_program *program, bool one_gpu,
                                 berth_session **out_session) {
    berth_session_binding bindings[3] = {
        {.name = "cpu:0", .device = R.devices[0]},
        {.name = "opencl:0", .device = R.devices[1]},
        {.name = "opencl:1", .device = R.devices[one_gpu ? 1 : 2]}};
    return berth_session_open(
        berth_allocator_system(), program,
        &(berth_session_options){.bindings = bindings, .binding_count = program->device_count},
        out_session);
}

enum { count = 200 };

static uint64_t copied_bytes(berth_session *session) {
    berth_session_report report;
    berth_session_get_report(session, &report);
    return report.copied_bytes;
}

// ---- fixed programs ----

// y = 2 * x + (3 * x + c), z = c + x: x and the constant c are read on both devices.
static const berth_program *make_diamond(bool share) {
    builder *b = builder_create(arena, "diamond");
    uint32_t cpu = builder_device(b, "cpu", 0), gpu = builder_device(b, "opencl", 0);
    if (share) builder_share(b, cpu, 1u << gpu);
    float values[count];
    for (int i = 0; i < count; ++i) values[i] = (float)i / 2;
    uint32_t c = builder_constant(b, cpu, values, count);
    uint32_t x = builder_input(b, cpu, "x", count);
    uint32_t y = builder_output(b, cpu, "y", count), z = builder_output(b, cpu, "z", count);
    uint32_t twice = builder_tensor(b, cpu, count), thrice = builder_tensor(b, cpu, count);
    uint32_t sum = builder_tensor(b, cpu, count);
    uint32_t x_gpu = x, c_gpu = c, thrice_gpu = thrice, sum_gpu = sum;
    if (!share) {
        x_gpu = builder_tensor(b, gpu, count);
        c_gpu = builder_constant(b, gpu, values, count);
        thrice_gpu = builder_tensor(b, gpu, count);
        sum_gpu = builder_tensor(b, gpu, count);
        builder_copy(b, gpu, x, x_gpu);
    }
    builder_dispatch(b, gpu, "scale", (uint32_t[]){x_gpu, thrice_gpu}, 2, 3);
    builder_dispatch(b, cpu, "scale", (uint32_t[]){x, twice}, 2, 2);
    builder_dispatch(b, gpu, "add", (uint32_t[]){thrice_gpu, c_gpu, sum_gpu}, 3, 0);
    if (!share) builder_copy(b, gpu, sum_gpu, sum);
    builder_dispatch(b, cpu, "add", (uint32_t[]){twice, sum, y}, 3, 0);
    builder_dispatch(b, cpu, "add", (uint32_t[]){c, x, z}, 3, 0);
    return builder_finish(b, NULL);
}

static void check_diamond(berth_session *session, int run) {
    float *x = berth_session_input(session, 0)->data;
    for (int i = 0; i < count; ++i) x[i] = (float)(i * run);
    assert_ok(berth_session_run(session, -1));
    const float *y = berth_session_output(session, 0)->data;
    const float *z = berth_session_output(session, 1)->data;
    for (int i = 0; i < count; ++i) {
        cr_assert_eq(y[i], (float)(5 * i * run) + (float)i / 2);
        cr_assert_eq(z[i], (float)i / 2 + (float)(i * run));
    }
}

Test(shared, nothing_is_copied) {
    open_referee();
    for (int share = 0; share < 2; ++share) {
        R.hand_overs = 0;
        berth_session *session = NULL;
        assert_ok(open_session(make_diamond(share), false, &session));
        for (int run = 1; run < 30; ++run) check_diamond(session, run);
        cr_assert_eq(copied_bytes(session), share ? 0 : 2 * count * sizeof(float));
        cr_assert_eq(R.hand_overs > 0, share);
        berth_session_close(session);
    }
    close_referee();
}

// GCC 12's LeakSanitizer faults at the end of this one, on the thread-local variables of PoCL's
// libraries (tests/conformance/test_library.c); what is left is counted here in any case.
Test(shared, running_allocates_nothing) {
    leave_leaks();
    setenv("POCL_DEVICES", "pthread", 1);
    berth_counting_allocator counting;
    berth_counting_allocator_init(&counting, berth_allocator_system());
    berth_session *session = NULL;
    berth_status status = berth_session_open(berth_counting_allocator_get(&counting),
                                             make_diamond(true), NULL, &session);
    if (berth_status_code(status) == BERTH_UNAVAILABLE) {
        berth_status_free(status);
        cr_skip("skipped: this needs OpenCL");
    }
    assert_ok(status);
    int64_t opened = atomic_load(&counting.allocation_count);
    for (int run = 0; run < 30; ++run) check_diamond(session, run);
    cr_assert_eq(atomic_load(&counting.allocation_count), opened);
    berth_session_close(session);
    cr_assert_eq(atomic_load(&counting.live_count), 0);
}

// Every allocation of opening fails once: a clear status and nothing left.
Test(shared, out_of_memory_while_opening) {
    setenv("POCL_DEVICES", "pthread", 1);
    const berth_program *program = make_diamond(true);
    for (int64_t at = 1;; ++at) {
        berth_counting_allocator counting;
        berth_counting_allocator_init(&counting, berth_allocator_system());
        counting.fail_at = at;
        berth_session *session = NULL;
        berth_status status =
            berth_session_open(berth_counting_allocator_get(&counting), program, NULL, &session);
        bool opened = !status;
        bool absent = berth_status_code(status) == BERTH_UNAVAILABLE;
        if (!opened && !absent) cr_assert_eq(berth_status_code(status), BERTH_OUT_OF_MEMORY);
        berth_status_free(status);
        if (absent) cr_skip("skipped: this needs OpenCL");
        berth_session_close(session);
        cr_assert_eq(atomic_load(&counting.live_count), 0);
        if (opened) break;
        cr_assert_lt(at, 10000);
    }
}

Test(shared, a_device_that_cannot_share_is_an_error) {
    open_referee();
    R.refuse = true;
    berth_session *session = NULL;
    berth_status status = open_session(make_diamond(true), false, &session);
    cr_assert_not_null(strstr(berth_status_message(status), "this device has memory of its own"));
    assert_fails(status, BERTH_UNSUPPORTED, "memory that \"cpu:0\" and \"opencl:0\" share");
    cr_assert_null(session);
    close_referee();
}

Test(shared, devices_share_only_what_the_host_reaches) {
    open_referee();
    builder *b = builder_create(arena, "apart");
    uint32_t cpu = builder_device(b, "cpu", 0), first = builder_device(b, "opencl", 0);
    uint32_t second = builder_device(b, "opencl", 1);
    builder_share(b, first, 1u << second);
    uint32_t x = builder_input(b, cpu, "x", count), y = builder_output(b, cpu, "y", count);
    uint32_t middle = builder_tensor(b, first, count), end = builder_tensor(b, first, count);
    builder_copy(b, first, x, middle);
    builder_dispatch(b, second, "scale", (uint32_t[]){middle, end}, 2, 7);
    builder_copy(b, first, end, y);
    const berth_program *program = builder_finish(b, NULL);
    berth_session *session = NULL;
    assert_fails(open_session(program, false, &session), BERTH_UNSUPPORTED, "not with the host");
    // Two virtual devices on one physical device have one memory anyway.
    assert_ok(open_session(program, true, &session));
    float *in = berth_session_input(session, 0)->data;
    for (int i = 0; i < count; ++i) in[i] = (float)i;
    assert_ok(berth_session_run(session, -1));
    for (int i = 0; i < count; ++i)
        cr_assert_eq(((const float *)berth_session_output(session, 0)->data)[i], (float)(7 * i));
    berth_session_close(session);
    close_referee();
}

// A run that ends too early, or is cancelled, leaves memory that the next run can work with.
Test(shared, runs_again_after_a_timeout) {
    open_referee();
    builder *b = builder_create(arena, "late");
    uint32_t cpu = builder_device(b, "cpu", 0), gpu = builder_device(b, "opencl", 0);
    builder_share(b, cpu, 1u << gpu);
    uint32_t x = builder_input(b, cpu, "x", count), y = builder_output(b, cpu, "y", count);
    uint32_t first = builder_tensor(b, cpu, count), second = builder_tensor(b, cpu, count);
    builder_dispatch(b, gpu, "scale", (uint32_t[]){x, first}, 2, 3);
    builder_dispatch(b, cpu, "sleep", (uint32_t[]){first, second}, 2, 60);
    builder_dispatch(b, gpu, "scale", (uint32_t[]){second, y}, 2, 5);
    berth_session *session = NULL;
    assert_ok(open_session(builder_finish(b, NULL), false, &session));
    for (int run = 0; run < 3; ++run) {
        float *in = berth_session_input(session, 0)->data;
        for (int i = 0; i < count; ++i) in[i] = (float)(i + run);
        berth_status status = berth_session_run(session, 10000000);
        cr_assert_eq(berth_status_code(status), BERTH_DEADLINE_EXCEEDED);
        berth_status_free(status);
        assert_ok(berth_session_run(session, -1));
        const float *out = berth_session_output(session, 0)->data;
        for (int i = 0; i < count; ++i) cr_assert_eq(out[i], (float)(15 * (i + run)));
    }
    berth_session_close(session);
    close_referee();
}

// ---- random programs ----

// xorshift64*: Marsaglia 2003, Vigna 2016.
static uint32_t pick(uint64_t *state, uint32_t bound) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (uint32_t)(*state * 2685821657736338717u >> 33) % bound;
}

enum { tensor_count = 9, step_count = 40 };  // input, constant, two outputs, others

// Random steps on a cpu and two OpenCL devices over shared tensors, which are written again and
// again; `expected` is carried along. Whole numbers below 2^24 keep sums exact.
static const berth_program *make_random(uint64_t *random, uint32_t gpus, float (*expected)[count]) {
    builder *b = builder_create(arena, "random");
    uint32_t devices[3], tensors[tensor_count];
    devices[0] = builder_device(b, "cpu", 0);
    for (uint32_t g = 0; g < gpus; ++g) devices[g + 1] = builder_device(b, "opencl", g);
    builder_share(b, devices[0], gpus == 2 ? 6 : 2);
    for (int i = 0; i < count; ++i) {
        expected[0][i] = (float)i;
        expected[1][i] = (float)(count - i);
    }
    tensors[0] = builder_input(b, devices[0], "x", count);
    tensors[1] = builder_constant(b, devices[0], expected[1], count);
    tensors[2] = builder_output(b, devices[0], "y", count);
    tensors[3] = builder_output(b, devices[0], "z", count);
    for (int t = 4; t < tensor_count; ++t) tensors[t] = builder_tensor(b, devices[0], count);
    for (int s = 0; s < step_count; ++s) {
        // The first steps fill every tensor; then any result over any but input and constant.
        uint32_t known = s < tensor_count - 2 ? (uint32_t)s + 2 : tensor_count;
        uint32_t to = s < tensor_count - 2 ? known : 2 + pick(random, tensor_count - 2);
        uint32_t from[2] = {pick(random, known), pick(random, known)};
        while (from[0] == to) from[0] = pick(random, known);
        while (from[1] == to || from[1] == from[0]) from[1] = pick(random, known);
        uint32_t device = devices[pick(random, gpus + 1)];
        bool add = pick(random, 2);
        for (int i = 0; i < count; ++i)
            expected[to][i] =
                add ? expected[from[0]][i] + expected[from[1]][i] : -expected[from[0]][i];
        bool large = false;
        for (int i = 0; i < count; ++i) large = large || fabsf(expected[to][i]) > 1e6f;
        if (large) {  // small again
            add = false;
            for (int i = 0; i < count; ++i) expected[to][i] = -expected[from[0] = 1][i];
        }
        if (add)
            builder_dispatch(b, device, "add",
                             (uint32_t[]){tensors[from[0]], tensors[from[1]], tensors[to]}, 3, 0);
        else
            builder_dispatch(b, device, "scale", (uint32_t[]){tensors[from[0]], tensors[to]}, 2,
                             -1);
    }
    return builder_finish(b, NULL);
}

Test(shared, random_programs) {
    open_referee();
    static float expected[tensor_count][count];
    for (uint64_t seed = 1; seed <= 40; ++seed) {
        uint64_t random = seed * 0x9e3779b97f4a7c15u;
        uint32_t gpus = 1 + (uint32_t)(seed % 2);
        const berth_program *program = make_random(&random, gpus, expected);
        R.range_count = 0;
        berth_session *session = NULL;
        assert_ok(open_session(program, seed % 4 == 1, &session));
        for (int run = 0; run < 3; ++run) {
            memcpy(berth_session_input(session, 0)->data, expected[0], sizeof(expected[0]));
            assert_ok(berth_session_run(session, -1));
            for (uint32_t o = 0; o < 2; ++o) {
                const float *got = berth_session_output(session, o)->data;
                for (int i = 0; i < count; ++i)
                    cr_assert_eq(got[i], expected[2 + o][i], "seed %llu, output %u, item %d",
                                 (unsigned long long)seed, o, i);
            }
        }
        cr_assert_eq(copied_bytes(session), 0);
        berth_session_close(session);
    }
    close_referee();
}
