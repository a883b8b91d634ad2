// Executables and dispatches; out of memory on every way through.
#include <pthread.h>
#include <stdint.h>

#if defined(__aarch64__)
#define BERTH_TEST_ARCH "aarch64"
#else
#define BERTH_TEST_ARCH "x86_64"
#endif

#include "tests/conformance/conformance.h"

enum { COUNT = 1003 };

static void fill_numbers(berth_buffer *buffer, int32_t *numbers) {
    for (int32_t i = 0; i < COUNT; ++i) numbers[i] = i * 17 - 4000;
    write_buffer(buffer, numbers, COUNT * sizeof(int32_t));
}

CONFORMANCE(dispatch, runs) {
    load_kernels(f);
    uint32_t scale = find_kernel(f, "scale", 2, 2), add_one = find_kernel(f, "add_one", 1, 1);
    int32_t numbers[COUNT], back[COUNT];
    berth_buffer *in = make_buffer(f->devices[0], sizeof(numbers));
    berth_buffer *out = make_buffer(f->devices[0], sizeof(numbers));
    fill_numbers(in, numbers);
    berth_buffer *buffers[] = {in, out};
    int64_t scale_constants[] = {-3, COUNT}, add_constants[] = {COUNT};
    berth_command commands[] = {dispatch_command(f, scale, buffers, 2, scale_constants, 2, COUNT),
                                dispatch_command(f, add_one, &out, 1, add_constants, 1, COUNT),
                                dispatch_command(f, add_one, &out, 1, add_constants, 1, COUNT),
                                dispatch_command(f, add_one, &out, 1, add_constants, 1, 0)};
    check_ok(berth_queue_run(f->queues[0], commands, 4));
    read_buffer(out, back, sizeof(back));
    for (int32_t i = 0; i < COUNT; ++i) cr_assert_eq(back[i], -3 * numbers[i] + i + 2);
    berth_buffer_free(in);
    berth_buffer_free(out);
}

CONFORMANCE(dispatch, runs_on_views) {
    load_kernels(f);
    uint32_t scale = find_kernel(f, "scale", 2, 2);
    uint32_t alignment = berth_device_get_info(f->devices[0])->memories[0].alignment_bytes;
    uint64_t half = (COUNT * sizeof(int32_t) + alignment - 1) / alignment * alignment;
    berth_buffer *root = make_buffer(f->devices[0], 2 * half + alignment), *views[2];
    check_ok(berth_buffer_view(root, alignment, COUNT * sizeof(int32_t), &views[0]));
    check_ok(berth_buffer_view(root, alignment + half, COUNT * sizeof(int32_t), &views[1]));
    int32_t numbers[COUNT], back[COUNT];
    fill_numbers(views[0], numbers);
    int64_t constants[] = {5, COUNT};
    berth_command command = dispatch_command(f, scale, views, 2, constants, 2, COUNT);
    check_ok(berth_queue_run(f->queues[0], &command, 1));
    read_buffer(views[1], back, sizeof(back));
    for (int32_t i = 0; i < COUNT; ++i) cr_assert_eq(back[i], 5 * numbers[i] + i);
    berth_buffer_free(views[0]);
    berth_buffer_free(views[1]);
    berth_buffer_free(root);
}

// Executables of one image may share its code: each works without the others.
CONFORMANCE(dispatch, runs_from_one_image_many_times) {
    load_kernels(f);
    berth_executable *first = f->executable;
    for (int i = 0; i < 3; ++i) {
        load_kernels(f);
        if (i < 2) berth_executable_destroy(f->executable);
    }
    berth_executable_destroy(first);
    uint32_t add_one = find_kernel(f, "add_one", 1, 1);
    int32_t numbers[COUNT], back[COUNT];
    berth_buffer *buffer = make_buffer(f->devices[0], sizeof(numbers));
    fill_numbers(buffer, numbers);
    int64_t constants[] = {COUNT};
    berth_command command = dispatch_command(f, add_one, &buffer, 1, constants, 1, COUNT);
    check_ok(berth_queue_run(f->queues[0], &command, 1));
    read_buffer(buffer, back, sizeof(back));
    for (int32_t i = 0; i < COUNT; ++i) cr_assert_eq(back[i], numbers[i] + 1);
    berth_buffer_free(buffer);
}

// Long kernels in flight while everything they use is given up.
CONFORMANCE(dispatch, runs_after_release) {
    load_kernels(f);
    uint32_t spin = find_kernel(f, "spin", 1, 2);
    berth_buffer *buffer = make_buffer(f->devices[0], 64 * sizeof(int32_t));
    berth_buffer *host = make_buffer(f->host_device, 64 * sizeof(int32_t));
    berth_semaphore *go = make_semaphore(f, 0), *done = make_semaphore(f, 0);
    int64_t constants[] = {64, 200001};
    berth_command commands[] = {fill_command(buffer, 0, 64 * sizeof(int32_t), 1, 4),
                                dispatch_command(f, spin, &buffer, 1, constants, 2, 64),
                                copy_command(buffer, 0, host, 0, 64 * sizeof(int32_t))};
    check_ok(submit(f->queues[0], commands, 3, go, 1, done, 1));
    berth_executable_destroy(f->executable);
    f->executable = NULL;
    berth_buffer *mine = buffer;  // `buffer` is what the command points to
    berth_buffer_free(mine);
    check_ok(berth_semaphore_signal(go, 1));
    check_ok(berth_semaphore_wait(done, 1, -1));
    uint32_t expected = 1;
    for (int i = 0; i < 200001; ++i) expected = expected * 3 + 1;
    const uint32_t *values = berth_buffer_host(host);
    for (int i = 0; i < 64; ++i) cr_assert_eq(values[i], expected);
    berth_semaphore_release(go);
    berth_semaphore_release(done);
    berth_buffer_free(host);
}

enum { ADDS = 60 };

typedef struct adder {
    berth_queue *queue;
    const berth_command *command;
    pthread_t thread;
    berth_status status;
} adder;

static void *add_many(void *user) {
    adder *a = user;
    for (int i = 0; i < ADDS && !a->status; ++i)
        a->status = berth_queue_run(a->queue, a->command, 1);
    return NULL;
}

// One kernel on two queues of the device at the same time, with different arguments.
CONFORMANCE(dispatch, runs_on_two_queues) {
    load_kernels(f);
    uint32_t add_one = find_kernel(f, "add_one", 1, 1);
    berth_queue *second = NULL;
    check_ok(berth_queue_open(f->devices[0], BERTH_QUEUE_COMPUTE, &second));
    adder adders[2] = {{.queue = f->queues[0]}, {.queue = second}};
    berth_buffer *buffers[2];
    berth_command commands[2];
    int64_t constants[] = {COUNT};
    int32_t numbers[COUNT], back[COUNT];
    for (int i = 0; i < 2; ++i) {
        buffers[i] = make_buffer(f->devices[0], sizeof(numbers));
        fill_numbers(buffers[i], numbers);
        commands[i] = dispatch_command(f, add_one, &buffers[i], 1, constants, 1, COUNT);
        adders[i].command = &commands[i];
        cr_assert_eq(pthread_create(&adders[i].thread, NULL, add_many, &adders[i]), 0);
    }
    for (int i = 0; i < 2; ++i) pthread_join(adders[i].thread, NULL);
    berth_queue_destroy(second);
    for (int i = 0; i < 2; ++i) {
        check_ok(adders[i].status);
        read_buffer(buffers[i], back, sizeof(back));
        for (int k = 0; k < COUNT; ++k) cr_assert_eq(back[k], numbers[k] + ADDS);
        berth_buffer_free(buffers[i]);
    }
}

// A driver that runs no kernels says so when a dispatch is carried out, and its queue works on.
CONFORMANCE(dispatch, says_when_unsupported) {
    load_kernels(f);
    uint32_t add_one = find_kernel(f, "add_one", 1, 1);
    berth_buffer *buffer = make_buffer(f->devices[0], COUNT * sizeof(int32_t));
    int64_t constants[] = {COUNT};
    berth_command commands[] = {fill_command(buffer, 0, COUNT * sizeof(int32_t), 7, 4),
                                dispatch_command(f, add_one, &buffer, 1, constants, 1, COUNT)};
    bool runs = !conformance_find(f->row->unsupported, "dispatch__runs");
    berth_status status = berth_queue_run(f->queues[0], commands, 2);
    cr_assert_eq(berth_status_code(status), runs ? BERTH_CODE_OK : BERTH_UNSUPPORTED, "%s",
                 berth_status_message(status));
    berth_status_free(status);
    int32_t back[COUNT];
    read_buffer(buffer, back, sizeof(back));
    cr_assert_eq(back[COUNT - 1], runs ? 8 : 7);
    check_ok(berth_queue_run(f->queues[0], commands, 1));
    berth_buffer_free(buffer);
}

CONFORMANCE(dispatch, bad_arguments) {
    load_kernels(f);
    uint32_t scale = find_kernel(f, "scale", 2, 2);
    berth_buffer *a = make_buffer(f->devices[0], 64), *b = make_buffer(f->devices[0], 64);
    berth_buffer *host = make_buffer(f->host_device, 64);
    berth_buffer *good[] = {a, b}, *missing[] = {a, NULL}, *foreign[] = {a, host};
    int64_t constants[] = {1, 16};
    berth_command right = dispatch_command(f, scale, good, 2, constants, 2, 16), cases[9];
    for (int i = 0; i < 9; ++i) cases[i] = right;
    cases[0].dispatch.executable = NULL;
    cases[1].dispatch.kernel = scale + 1;
    cases[2].dispatch.buffer_count = 1;
    cases[3].dispatch.constant_count = 3;
    cases[4].dispatch.buffers = missing;
    cases[5].dispatch.buffers = foreign;
    cases[6].dispatch.constants = NULL;
    cases[7].dispatch.group_size[1] = 0;
    cases[8].dispatch.group_size[2] = UINT32_MAX;
    static const berth_code codes[] = {
        BERTH_INVALID_ARGUMENT, BERTH_OUT_OF_RANGE,     BERTH_INCOMPATIBLE,
        BERTH_INCOMPATIBLE,     BERTH_INVALID_ARGUMENT, BERTH_INCOMPATIBLE,
        BERTH_INVALID_ARGUMENT, BERTH_OUT_OF_RANGE,     BERTH_OUT_OF_RANGE};
    for (int i = 0; i < 9; ++i) {
        berth_status status = berth_queue_run(f->queues[0], &cases[i], 1);
        cr_assert_eq(berth_status_code(status), codes[i], "case %d: %s", i,
                     berth_status_message(status));
        berth_status_free(status);
    }
    berth_buffer_free(a);
    berth_buffer_free(b);
    berth_buffer_free(host);
}

CONFORMANCE(dispatch, unknown_entry) {
    load_kernels(f);
    uint32_t kernel = 0;
    berth_program_kernel unknown = {.entry = "no_such_kernel", .binding_count = 1};
    check_code(berth_executable_find(f->executable, &unknown, &kernel), BERTH_NOT_FOUND);
    unknown.entry = "";
    check_code(berth_executable_find(f->executable, &unknown, &kernel), BERTH_INVALID_ARGUMENT);
    unknown.entry = "add_one";
    uint32_t most = berth_device_get_info(f->devices[0])->max_bindings;
    unknown.binding_count = (most ? most : BERTH_DEVICE_MAX_BINDINGS) + 1;
    check_code(berth_executable_find(f->executable, &unknown, &kernel), BERTH_OUT_OF_RANGE);
}

CONFORMANCE(dispatch, wrong_image) {
    berth_executable *executable = NULL;
    berth_executable_image image = {.device_kind = "abacus",
                                    .format = f->row->format,
                                    .options = "",
                                    .data = "x",
                                    .size_bytes = 1};
    check_code(berth_executable_load(f->devices[0], &image, &executable), BERTH_INCOMPATIBLE);
    image.device_kind = f->row->kind;
    image.format = NULL;
    check_code(berth_executable_load(f->devices[0], &image, &executable), BERTH_INVALID_ARGUMENT);
    image.format = f->row->format;
    image.data = NULL;
    check_code(berth_executable_load(f->devices[0], &image, &executable), BERTH_INVALID_ARGUMENT);
    cr_assert_null(executable);
}

// What does not load or build says why; OpenCL's message has the build log.
CONFORMANCE(dispatch, broken_image) {
    berth_executable *executable = NULL;
    berth_executable_image image = {.device_kind = f->row->kind,
                                    .format = f->row->format,
                                    .options = "",
                                    .data = f->row->broken_image,
                                    .size_bytes = strlen(f->row->broken_image)};
    berth_status status = berth_executable_load(f->devices[0], &image, &executable);
    cr_assert_eq(berth_status_code(status), BERTH_INVALID_ARGUMENT, "%s",
                 berth_status_message(status));
    cr_assert_null(executable);
    if (strstr(f->row->broken_image, "undeclared_name"))
        cr_assert_not_null(strstr(berth_status_message(status), "undeclared_name"), "%s",
                           berth_status_message(status));
    berth_status_free(status);
    image.format = "tea-leaves";
    check_code(berth_executable_load(f->devices[0], &image, &executable), BERTH_INCOMPATIBLE);
}

// Code for another processor is refused by name, before it can run into an illegal instruction.
CONFORMANCE(dispatch, other_processors) {
    static const char *const needs[][2] = {
        {"x86_65 sse3", "x86_65"}, {"z80", "z80"}, {BERTH_TEST_ARCH " quux9 frob", "quux9, frob"}};
    if (strcmp(f->row->format, BERTH_FORMAT_CPU_ELF) != 0) return;  // others ask their compiler
    for (size_t i = 0; i < sizeof(needs) / sizeof(needs[0]); ++i) {
        berth_executable *executable = NULL;
        berth_executable_image image = {.device_kind = f->row->kind,
                                        .format = f->row->format,
                                        .options = needs[i][0],
                                        .data = "x",
                                        .size_bytes = 1};
        berth_status status = berth_executable_load(f->devices[0], &image, &executable);
        cr_assert_eq(berth_status_code(status), BERTH_INCOMPATIBLE, "%s",
                     berth_status_message(status));
        cr_assert_not_null(strstr(berth_status_message(status), needs[i][1]), "%s",
                           berth_status_message(status));
        cr_assert_null(executable);
        berth_status_free(status);
    }
}

// ---- out of memory ----

typedef struct attempt {
    berth_driver *driver;
    berth_device *device;
    berth_queue *queue;
    berth_buffer *buffer, *view;
    berth_executable *executable;
    berth_semaphore *go, *done;
    berth_command commands[2];
    berth_command_list *list;
} attempt;

// Opens everything there is and has a waiting submission go through it.
static berth_status try_all(conformance_fixture *f, berth_allocator allocator,
                            const berth_executable_image *image, attempt *a) {
    BERTH_TRY(berth_driver_open(f->row->kind, allocator, &a->driver));
    BERTH_TRY(berth_device_open(a->driver, 0, &f->row->options, &a->device));
    BERTH_TRY(berth_queue_open(a->device, BERTH_QUEUE_COMPUTE, &a->queue));
    BERTH_TRY(berth_buffer_allocate(a->device, 0, 100000, &a->buffer));
    BERTH_TRY(berth_buffer_view(a->buffer, 0, 64, &a->view));
    BERTH_TRY(berth_executable_load(a->device, image, &a->executable));
    uint32_t kernel = 0;
    bool is_cpu = strcmp(f->row->kind, "cpu") == 0;
    BERTH_TRY(berth_executable_find(a->executable,
                                    &(berth_program_kernel){.entry = "add_one",
                                                            .binding_count = 1,
                                                            .constant_count = 1,
                                                            .scratch_bytes = is_cpu ? 4096 : 0},
                                    &kernel));
    BERTH_TRY(berth_semaphore_create(allocator, 0, &a->go));
    BERTH_TRY(berth_semaphore_create(allocator, 0, &a->done));
    a->commands[0] = fill_command(a->buffer, 0, 100000, 1, 1);
    a->commands[1] = fill_command(a->view, 0, 64, 2, 1);
    BERTH_TRY(berth_queue_prepare(a->queue, a->commands, 2, &a->list));
    berth_status status = submit(a->queue, a->commands, 2, a->go, 1, a->done, 1);
    BERTH_TRY(berth_semaphore_signal(a->go, 1));
    if (!status) status = berth_semaphore_wait(a->done, 1, -1);
    return status;
}

static void close_attempt(attempt *a) {
    berth_queue_destroy(a->queue);
    berth_command_list_destroy(a->list);
    berth_semaphore_release(a->go);
    berth_semaphore_release(a->done);
    berth_executable_destroy(a->executable);
    berth_buffer_free(a->view);
    berth_buffer_free(a->buffer);
    berth_device_close(a->device);
    berth_driver_close(a->driver);
}

CONFORMANCE(memory_out, every_allocation_may_fail) {
    berth_executable_image image = {
        .device_kind = f->row->kind, .format = f->row->format, .options = ""};
    f->row->kernel_image(f->arena, &image);
    berth_counting_allocator failing;
    for (int64_t fail_at = 1;; ++fail_at) {
        cr_assert_lt(fail_at, 200);
        berth_counting_allocator_init(&failing, berth_allocator_system());
        atomic_store(&failing.fail_at, fail_at);
        attempt a = {0};
        berth_status status = try_all(f, berth_counting_allocator_get(&failing), &image, &a);
        close_attempt(&a);
        cr_assert_eq(atomic_load(&failing.live_count), 0, "allocation %lld fails: %lld are left",
                     (long long)fail_at, (long long)atomic_load(&failing.live_count));
        if (!status) {
            cr_assert_gt(fail_at, 5, "it allocates through its allocator");
            return;
        }
        check_code(status, BERTH_OUT_OF_MEMORY);
    }
}
