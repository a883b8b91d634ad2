#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include "devices/library.h"
#include "tests/conformance/conformance.h"

// ---- expected failures: a body that fails comes back here instead of failing the test ----

static jmp_buf *expected_failure;

static void fail(const char *file, int line, const char *message) {
    if (expected_failure) longjmp(*expected_failure, 1);
    cr_assert_fail("%s:%d: %s", file, line, message);
}

void check_ok_at(berth_status status, const char *file, int line) {
    if (!status) return;
    char message[2000];
    snprintf(message, sizeof(message), "%s: %s", berth_code_name(berth_status_code(status)),
             berth_status_message(status));
    berth_status_free(status);
    fail(file, line, message);
}

void check_code_at(berth_status status, berth_code code, const char *file, int line) {
    char message[2000];
    snprintf(message, sizeof(message), "expected %s, got %s: %s", berth_code_name(code),
             berth_code_name(berth_status_code(status)), berth_status_message(status));
    bool same = berth_status_code(status) == code;
    bool has_message = berth_status_message(status)[0] != '\0';
    berth_status_free(status);
    if (!same) fail(file, line, message);
    cr_assert(has_message, "%s:%d: a failure without a message", file, line);
}

// ---- fixture ----

static bool is_required(const char *kind) {
    const char *list = getenv("BERTH_REQUIRE_DRIVERS");
    for (size_t length; list && *list; list += length + (list[length] == ',')) {
        length = strcspn(list, ",");
        if (strlen(kind) == length && strncmp(list, kind, length) == 0) return true;
    }
    return false;
}

static void unavailable(const conformance_driver *row, const char *reason) {
    if (is_required(row->kind))
        cr_assert_fail("%s is required (BERTH_REQUIRE_DRIVERS) but not available: %s", row->kind,
                       reason);
    cr_skip("%s is not available: %s", row->kind, reason);
}

static void open_driver(conformance_fixture *f) {
    const conformance_driver *row = f->row;
    if (row->environment[0]) setenv(row->environment[0], row->environment[1], 1);
    const char *loaded = NULL;
    if (row->library) check_ok(berth_driver_load(row->library, &loaded));
    if (row->library) cr_assert_str_eq(loaded, row->kind);
    berth_status status = berth_driver_open(row->kind, f->allocator, &f->driver);
    char reason[600] = "";
    if (status) {
        snprintf(reason, sizeof(reason), "%s", berth_status_message(status));
        berth_status_free(status);
    } else if (berth_driver_device_count(f->driver) < row->device_count) {
        snprintf(reason, sizeof(reason), "%u devices are needed", row->device_count);
        berth_driver_close(f->driver);
    }
    if (*reason) {
        berth_arena_destroy(f->arena);
        unavailable(row, reason);
    }
}

static void open_devices(conformance_fixture *f) {
    for (uint32_t i = 0; i < 2; ++i) {
        check_ok(berth_device_open(f->driver, i % f->row->device_count, &f->row->options,
                                   &f->devices[i]));
        check_ok(berth_queue_open(f->devices[i], BERTH_QUEUE_COMPUTE, &f->queues[i]));
    }
    check_ok(berth_driver_open("cpu", f->allocator, &f->host_driver));
    check_ok(berth_device_open(f->host_driver, 0, &(berth_device_options){.thread_count = 1},
                               &f->host_device));
}

static void close_all(conformance_fixture *f) {
    berth_executable_destroy(f->executable);
    for (uint32_t i = 0; i < 2; ++i) {
        berth_queue_destroy(f->queues[i]);
        berth_device_close(f->devices[i]);
    }
    berth_device_close(f->host_device);
    berth_driver_close(f->host_driver);
    berth_driver_close(f->driver);
    berth_arena_destroy(f->arena);
}

void conformance_run(int row, const char *name, void (*body)(conformance_fixture *f)) {
    const conformance_driver *driver = &conformance_drivers[row];
    const conformance_exception *unsupported = conformance_find(driver->unsupported, name);
    if (unsupported) cr_skip("unsupported by %s: %s", driver->name, unsupported->reason);
    static conformance_fixture fixture;  // static: a case may leave by longjmp
    conformance_fixture *f = &fixture;
    f->row = driver;
    berth_counting_allocator_init(&f->counting, berth_allocator_system());
    f->allocator = berth_counting_allocator_get(&f->counting);
    check_ok(berth_arena_create(f->allocator, &f->arena));
    open_driver(f);
    open_devices(f);
    if (conformance_find(driver->expected_failures, name)) {
        static jmp_buf jump;
        expected_failure = &jump;
        if (setjmp(jump) == 0) {
            body(f);
            expected_failure = NULL;
            cr_assert_fail("%s passes on %s: take it off the list of expected failures", name,
                           driver->name);
        }
        return;  // what the case held is lost with the process (a leak checker will say so)
    }
    body(f);
    close_all(f);
    cr_assert_eq(atomic_load(&f->counting.live_count), 0, "%lld allocations (%lld bytes) are left",
                 (long long)atomic_load(&f->counting.live_count),
                 (long long)atomic_load(&f->counting.live_bytes));
}

// ---- helpers ----

berth_buffer *make_buffer(berth_device *device, uint64_t size_bytes) {
    berth_buffer *buffer = NULL;
    check_ok(berth_buffer_allocate(device, 0, size_bytes, &buffer));
    return buffer;
}

void write_buffer(berth_buffer *buffer, const void *data, uint64_t size_bytes) {
    void *mapped = NULL;
    check_ok(berth_buffer_map(buffer, 0, size_bytes, true, &mapped));
    memcpy(mapped, data, size_bytes);
    check_ok(berth_buffer_unmap(buffer, mapped));
}

void read_buffer(berth_buffer *buffer, void *data, uint64_t size_bytes) {
    void *mapped = NULL;
    check_ok(berth_buffer_map(buffer, 0, size_bytes, false, &mapped));
    memcpy(data, mapped, size_bytes);
    check_ok(berth_buffer_unmap(buffer, mapped));
}

berth_semaphore *make_semaphore(conformance_fixture *f, uint64_t value) {
    berth_semaphore *semaphore = NULL;
    check_ok(berth_semaphore_create(f->allocator, value, &semaphore));
    return semaphore;
}

berth_command copy_command(berth_buffer *source, uint64_t source_offset_bytes,
                           berth_buffer *destination, uint64_t destination_offset_bytes,
                           uint64_t size_bytes) {
    return (berth_command){.kind = BERTH_COMMAND_COPY,
                           .copy = {.source = source,
                                    .destination = destination,
                                    .source_offset_bytes = source_offset_bytes,
                                    .destination_offset_bytes = destination_offset_bytes,
                                    .size_bytes = size_bytes}};
}

berth_command fill_command(berth_buffer *buffer, uint64_t offset_bytes, uint64_t size_bytes,
                           uint32_t pattern, uint32_t pattern_bytes) {
    return (berth_command){.kind = BERTH_COMMAND_FILL,
                           .fill = {.buffer = buffer,
                                    .offset_bytes = offset_bytes,
                                    .size_bytes = size_bytes,
                                    .pattern = pattern,
                                    .pattern_bytes = pattern_bytes}};
}

berth_command hand_over_command(berth_command_kind kind, berth_buffer *const *buffers,
                                uint32_t count) {
    return (berth_command){.kind = kind, .hand_over = {.buffers = buffers, .buffer_count = count}};
}

berth_status submit(berth_queue *queue, const berth_command *commands, uint32_t count,
                    berth_semaphore *wait, uint64_t wait_value, berth_semaphore *signal,
                    uint64_t signal_value) {
    berth_semaphore_point waits = {.semaphore = wait, .value = wait_value};
    berth_semaphore_point signals = {.semaphore = signal, .value = signal_value};
    berth_submission submission = {.waits = &waits,
                                   .wait_count = wait != NULL,
                                   .commands = commands,
                                   .command_count = count,
                                   .signals = &signals,
                                   .signal_count = signal != NULL};
    return berth_queue_submit(queue, &submission);
}

void load_kernels(conformance_fixture *f) {
    berth_executable_image image = {
        .device_kind = f->row->kind, .format = f->row->format, .options = ""};
    f->row->kernel_image(f->arena, &image);
    check_ok(berth_executable_load(f->devices[0], &image, &f->executable));
}

uint32_t find_kernel(conformance_fixture *f, const char *entry, uint32_t bindings,
                     uint32_t constants) {
    uint32_t kernel = 0;
    bool is_cpu = strcmp(f->row->kind, "cpu") == 0;
    check_ok(berth_executable_find(
        f->executable,
        &(berth_program_kernel){.entry = entry,
                                .binding_count = bindings,
                                .constant_count = constants,
                                .scratch_bytes = is_cpu ? SCALE_SCRATCH_BYTES : 0},
        &kernel));
    return kernel;
}

berth_command dispatch_command(conformance_fixture *f, uint32_t kernel,
                               berth_buffer *const *buffers, uint32_t buffer_count,
                               const int64_t *constants, uint32_t constant_count, uint32_t count) {
    uint32_t size = f->row->group_size;
    return (berth_command){.kind = BERTH_COMMAND_DISPATCH,
                           .dispatch = {.executable = f->executable,
                                        .kernel = kernel,
                                        .buffers = buffers,
                                        .buffer_count = buffer_count,
                                        .constants = constants,
                                        .constant_count = constant_count,
                                        .groups = {(count + size - 1) / size, 1, 1},
                                        .group_size = {size, 1, 1}}};
}
