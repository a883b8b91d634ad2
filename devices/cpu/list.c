// Command lists on the cpu device: a row of steps with the addresses that their kernels get, so that a run
// looks at no buffer any more.
#include "devices/cpu/cpu.h"

typedef struct ready_step {
    const berth_command *command;  // of a copy, fill or host call; NULL = a kernel:
    cpu_executable *executable;
    uint32_t kernel;
    uint32_t groups;
    void **buffers;
    const int64_t *constants;
} ready_step;

typedef struct ready_list {
    size_t size_bytes;  // of the whole allocation
    uint32_t count;
    const berth_command *commands;
    void **buffers;  // of all steps, after them
    ready_step steps[];
} ready_list;

static berth_status make_step(const berth_command *command, void **buffers, ready_step *step) {
    if (command->kind != BERTH_COMMAND_DISPATCH) {
        step->command = command;
        return BERTH_OK;
    }
    BERTH_TRY(berth_cpu__check_grid(command));
    *step = (ready_step){.executable = (cpu_executable *)command->dispatch.executable,
                         .kernel = command->dispatch.kernel,
                         .groups = command->dispatch.groups[0],
                         .buffers = buffers,
                         .constants = command->dispatch.constants};
    return BERTH_OK;
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
        berth_status status = make_step(&list->commands[i], buffers, &ready->steps[i]);
        if (status) {
            berth_free(list->device->allocator, ready, size_bytes);
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
    ready_list *ready = list->prepared;
    berth_free(list->device->allocator, ready, ready->size_bytes);
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
            berth_cpu__run_kernel((cpu_device *)base, &step->executable->kernels[step->kernel],
                                  step->buffers, step->constants, step->groups);
    }
    return BERTH_OK;
}
