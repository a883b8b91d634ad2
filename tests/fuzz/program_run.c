// Any bytes as a program that is opened and run, on devices whose kernels touch all that the program
// declares: what berth_program_verify accepts reaches no byte outside of its buffers, writes no
// constant, and ends.
#include <stdlib.h>
#include <string.h>

#include "artifact/file_form.h"
#include "devices/device.h"
#include "devices/host_queue.h"
#include "devices/registry.h"
#include "executor/session.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_DEVICES = 4, MOST_KERNELS = 64 };
#define MOST_BYTES ((uint64_t)8 << 20)

// One device of a program: the template's, with the program's kind and scopes.
typedef struct toucher {
    berth_driver_ops driver_ops;
    berth_device_ops ops;
    berth_driver *driver;
    berth_device *device;
} toucher;

static const berth_program *program;  // of the input under way

static berth_status find(berth_executable *executable, const berth_program_kernel *kernel,
                         uint32_t *out_kernel) {
    (void)executable;
    *out_kernel = (uint32_t)(kernel - program->kernels);
    return BERTH_OK;
}

static void touch(berth_buffer *buffer, const berth_kernel_binding *declared) {
    volatile unsigned char *bytes = berth_buffer_host(buffer);
    if (declared->size_bytes > berth_buffer_size_bytes(buffer)) abort();
    unsigned char sum = 0;
    for (uint64_t i = 0; i < declared->size_bytes; ++i) {
        if (declared->access & BERTH_ACCESS_READ) sum = (unsigned char)(sum + bytes[i]);
        if (declared->access & BERTH_ACCESS_WRITE) bytes[i] = (unsigned char)(i + sum);
    }
}

static berth_status dispatch(berth_device *device, const berth_command *command) {
    (void)device;
    const berth_program_kernel *kernel = &program->kernels[command->dispatch.kernel];
    if (command->dispatch.buffer_count != kernel->binding_count) abort();
    for (uint32_t b = 0; b < kernel->binding_count; ++b)
        touch(command->dispatch.buffers[b], &kernel->bindings[b]);
    return BERTH_OK;
}

static berth_status start(berth_queue *queue, const berth_command *commands, uint32_t count,
                          void *prepared, void *record) {
    (void)prepared, (void)record;
    return berth_host_queue_run_commands(queue->device, NULL, commands, count, dispatch);
}

static berth_status queue_open(berth_device *device, berth_queue_kind kind,
                               berth_queue **out_queue) {
    (void)kind;
    static const berth_host_queue_ops ops = {.start = start};
    berth_host_queue *queue = berth_calloc(device->allocator, 1, sizeof(*queue));
    if (!queue) return berth_status_oom();
    berth_status status = berth_host_queue_init(queue, device, &ops);
    if (status)
        berth_free(device->allocator, queue, sizeof(*queue));
    else
        *out_queue = &queue->base;
    return status;
}

static void queue_destroy(berth_queue *base) {
    berth_host_queue *queue = (berth_host_queue *)base;
    berth_allocator allocator = base->device->allocator;
    berth_host_queue_deinit(queue);
    berth_free(allocator, queue, sizeof(*queue));
}

static void open_device(toucher *t, const char *kind) {
    if (berth_driver_open("null", berth_allocator_system(), &t->driver)) abort();
    t->driver_ops = *t->driver->ops;
    t->driver_ops.kind = kind;
    t->driver->ops = &t->driver_ops;
    if (berth_device_open(t->driver, 0, NULL, &t->device)) abort();
    t->ops = *t->device->ops;
    t->ops.executable_find = find;
    t->ops.queue_open = queue_open;
    t->ops.queue_destroy = queue_destroy;
    t->device->ops = &t->ops;
    t->device->info.memory_count = 2;
    t->device->info.memories[0].alignment_bytes = 1;  // whatever the program was planned for
    t->device->info.max_group_size = UINT32_MAX;
    t->device->info.memories[1] = t->device->info.memories[0];
    memcpy(t->device->info.memories[1].scope, "numa:0", sizeof("numa:0"));
}

static void run_program(berth_session_options *options) {
    berth_session *session = NULL;
    berth_status status = berth_session_open(berth_allocator_system(), program, options, &session);
    for (int run = 0; run < 2 && !status; ++run) {
        for (uint32_t i = 0; i < program->input_count; ++i) {
            const berth_tensor *input = berth_session_input(session, i);
            memset(input->data, run, berth_tensor_size_bytes(input));
        }
        status = berth_session_run(session, -1);
    }
    berth_session_close(session);
    berth_status_ignore(status);
}

static void open_and_run(void) {
    toucher devices[MOST_DEVICES];
    berth_session_binding bindings[MOST_DEVICES];
    for (uint32_t d = 0; d < program->device_count; ++d) {
        open_device(&devices[d], program->devices[d].kind);
        bindings[d] =
            (berth_session_binding){.name = program->devices[d].name, .device = devices[d].device};
    }
    berth_session_options options = {.bindings = bindings, .binding_count = program->device_count};
    run_program(&options);
    for (uint32_t d = 0; d < program->device_count; ++d) {
        berth_device_close(devices[d].device);
        berth_driver_close(devices[d].driver);
    }
}

static bool is_small(void) {
    uint64_t bytes = 0;
    if (program->device_count > MOST_DEVICES || program->kernel_count > MOST_KERNELS) return false;
    for (uint32_t i = 0; i < program->pool_count; ++i) {
        if (program->pools[i].size_bytes > MOST_BYTES) return false;
        bytes += program->pools[i].size_bytes;
    }
    return bytes <= MOST_BYTES && program->step_count <= 1000;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    berth_arena *arena = NULL;
    if (berth_arena_create(berth_allocator_system(), &arena)) return 0;
    berth_status status = berth_artifact__parse(arena, data, size, false, &program);
    if (!status && is_small()) open_and_run();
    berth_status_free(status);
    berth_arena_destroy(arena);
    return 0;
}
