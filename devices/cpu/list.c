// Command lists on the cpu device: a row of steps with the addresses that their kernels get, so that a run
// looks at no buffer any more. A list has the kernels of its executables as they were loaded, to learn by itself
// how many threads each pays for: sessions that share an executable have other sizes.
#include <string.h>

#include "devices/cpu/cpu.h"

typedef struct ready_step {
    const berth_command *command;  // of a copy, fill or host call; NULL = a kernel:
    cpu_kernel *kernel;
    uint32_t groups;
    void **buffers;
    const int64_t *constants;
} ready_step;

// The kernels of an executable.
typedef struct own_kernels {
    struct own_kernels *next;
    const cpu_executable *executable;
    uint32_t count;
    cpu_kernel kernels[];
} own_kernels;

typedef struct ready_list {
    size_t size_bytes;  // of the whole allocation
    uint32_t count;
    own_kernels *kernels;  // the one used last first
    const berth_command *commands;
    void **buffers;  // of all steps, after them
    ready_step steps[];
} ready_list;

static size_t own_bytes(uint32_t kernel_count) {
    return sizeof(own_kernels) + kernel_count * sizeof(cpu_kernel);
}

static berth_status own_kernel(ready_list *ready, const cpu_executable *executable, uint32_t kernel,
                               cpu_kernel **out_kernel) {
    own_kernels **at = &ready->kernels;
    while (*at && (*at)->executable != executable) at = &(*at)->next;
    own_kernels *own = *at;
    if (own) {
        *at = own->next;
    } else {
        own = berth_alloc(executable->base.device->allocator, own_bytes(executable->kernel_count));
        if (!own) return berth_status_oom();
        own->executable = executable;
        own->count = executable->kernel_count;
        memcpy(own->kernels, executable->kernels, own->count * sizeof(cpu_kernel));
    }
    own->next = ready->kernels;
    ready->kernels = own;
    *out_kernel = &own->kernels[kernel];
    return BERTH_OK;
}

static berth_status make_step(ready_list *ready, const berth_command *command, void **buffers,
                              ready_step *step) {
    if (command->kind != BERTH_COMMAND_DISPATCH) {
        step->command = command;
        return BERTH_OK;
    }
    cpu_kernel *kernel = NULL;
    BERTH_TRY(berth_cpu__check_grid(command));
    BERTH_TRY(own_kernel(ready, (const cpu_executable *)command->dispatch.executable,
                         command->dispatch.kernel, &kernel));
    *step = (ready_step){.kernel = kernel,
                         .groups = command->dispatch.groups[0],
                         .buffers = buffers,
                         .constants = command->dispatch.constants};
    return BERTH_OK;
}

static void free_list(berth_allocator allocator, ready_list *ready) {
    for (own_kernels *next; ready->kernels; ready->kernels = next) {
        next = ready->kernels->next;
        berth_free(allocator, ready->kernels, own_bytes(ready->kernels->count));
    }
    berth_free(allocator, ready, ready->size_bytes);
}

berth_status berth_cpu__list_prepare(berth_command_list *list) {
    size_t buffer_count = 0, step_bytes = sizeof(ready_list);
    for (uint32_t i = 0; i < list->command_count; ++i)
        if (list->commands[i].kind == BERTH_COMMAND_DISPATCH)
            buffer_count += list->commands[i].dispatch.buffer_count;
    step_bytes += list->command_count * sizeof(ready_step);
    size_t size_bytes = step_bytes + buffer_count * sizeof(void *);
    ready_list *ready = berth_calloc(list->device->allocator, 1, size_bytes);
    if (!ready) return berth_status_oom();
    ready->size_bytes = size_bytes;
    ready->count = list->command_count;
    ready->commands = list->commands;
    ready->buffers = (void **)((unsigned char *)ready + step_bytes);
    void **buffers = ready->buffers;
    for (uint32_t i = 0; i < ready->count; ++i) {
        berth_status status = make_step(ready, &list->commands[i], buffers, &ready->steps[i]);
        if (status) {
            free_list(list->device->allocator, ready);
            const char *label = list->commands[i].label;
            return label ? berth_status_prefix(status, "%s", label) : status;
        }
        if (list->commands[i].kind == BERTH_COMMAND_DISPATCH)
            buffers += list->commands[i].dispatch.buffer_count;
    }
    list->prepared = ready;
    berth_cpu__list_update(list);
    return BERTH_OK;
}

void berth_cpu__list_update(berth_command_list *list) {
    ready_list *ready = list->prepared;
    void **next = ready->buffers;
    for (uint32_t i = 0; i < ready->count; ++i) {
        const berth_command *command = &ready->commands[i];
        for (uint32_t b = 0; !ready->steps[i].command && b < command->dispatch.buffer_count; ++b)
            *next++ = command->dispatch.buffers[b]->host;
    }
}

void berth_cpu__list_destroy(berth_command_list *list) {
    free_list(list->device->allocator, list->prepared);
}

berth_status berth_cpu__list_run(berth_device *base, berth_start_order *order,
                                 const void *prepared) {
    const ready_list *ready = prepared;
    for (uint32_t i = 0; i < ready->count; ++i) {
        const ready_step *step = &ready->steps[i];
        if (order && i > 0) berth_start_order_give_way(order);
        if (step->command)
            BERTH_TRY(berth_host_queue_run_commands(base, NULL, step->command, 1, NULL));
        else
            berth_cpu__run_kernel((cpu_device *)base, step->kernel, step->buffers, step->constants,
                                  step->groups);
    }
    return BERTH_OK;
}
