// Kernels on the cpu device: shared objects loaded from memory, run over the thread pool.
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "devices/cpu/cpu.h"

// Waking or feeding another thread costs about half a microsecond, more across caches. A kernel
// whose estimate is below SERIAL_LIMIT_NS (at the rates of one slow core) runs on the calling
// thread alone. One that may be too short, by its estimate, is timed there in its first runs.
#define SERIAL_LIMIT_NS 2000.0
#define SERIAL_FLOPS_PER_NS 2.0
#define SERIAL_BYTES_PER_NS 8.0
#define FAST_FLOPS_PER_NS 100.0
#define FAST_BYTES_PER_NS 50.0
#define TRIAL_LIMIT_NS 50000.0
#define TRIAL_COUNT 3
#define PARALLEL_LEAST_NS 3000

#define SCRATCH_ALIGNMENT_BYTES 64

berth_status berth_cpu__executable_load(berth_device *device, const berth_executable_image *image,
                                        berth_executable **out_executable) {
    if (strcmp(image->format, BERTH_FORMAT_CPU_ELF) != 0)
        return berth_status_make(BERTH_INCOMPATIBLE, "cpu devices load \"%s\" images, not \"%s\"",
                                 BERTH_FORMAT_CPU_ELF, image->format);
    BERTH_TRY(berth_cpu__isa_check((cpu_device *)device, image->options));
    cpu_executable *executable = berth_calloc(device->allocator, 1, sizeof(*executable));
    if (!executable) return berth_status_oom();
    berth_status status = berth_cpu__library_open((cpu_device *)device, image->data,
                                                  (size_t)image->size_bytes, &executable->code);
    if (status) {
        berth_free(device->allocator, executable, sizeof(*executable));
        return status;
    }
    executable->host.library = berth_cpu__library_code(executable->code);
    status = berth_devices__import(&executable->host, device->allocator);
    if (status) {
        berth_cpu__library_close((cpu_device *)device, executable->code);
        berth_free(device->allocator, executable, sizeof(*executable));
        return status;
    }
    *out_executable = &executable->base;
    return BERTH_OK;
}

void berth_cpu__executable_destroy(berth_executable *base) {
    cpu_executable *executable = (cpu_executable *)base;
    berth_allocator allocator = base->device->allocator;
    berth_cpu__library_close((cpu_device *)base->device, executable->code);
    berth_devices__import_end(&executable->host, allocator);
    berth_free(allocator, executable->kernels, executable->kernel_capacity * sizeof(cpu_kernel));
    berth_free(allocator, executable, sizeof(*executable));
}

static berth_status reserve_kernel(cpu_executable *executable) {
    cpu_kernel *kernels = berth_devices__reserve_one(
        executable->base.device->allocator, executable->kernels, executable->kernel_count,
        &executable->kernel_capacity, sizeof(*kernels));
    if (!kernels) return berth_status_oom();
    executable->kernels = kernels;
    return BERTH_OK;
}

static void choose_threads(cpu_kernel *found, const berth_program_kernel *kernel) {
    double estimate_ns = kernel->flops / SERIAL_FLOPS_PER_NS;
    double memory_ns = kernel->bytes / SERIAL_BYTES_PER_NS;
    if (memory_ns > estimate_ns) estimate_ns = memory_ns;
    bool known = estimate_ns > 0;
    found->serial = known && estimate_ns < SERIAL_LIMIT_NS;
    if (!found->serial && known && estimate_ns < TRIAL_LIMIT_NS) found->trials_left = TRIAL_COUNT;
    found->least_ns = INT64_MAX;
    double fast_ns = kernel->flops / FAST_FLOPS_PER_NS + kernel->bytes / FAST_BYTES_PER_NS;
    found->expected_ns = fast_ns < 1e9 ? (int64_t)fast_ns : 1000000000;
}

berth_status berth_cpu__executable_find(berth_executable *base, const berth_program_kernel *kernel,
                                        uint32_t *out_kernel) {
    cpu_executable *executable = (cpu_executable *)base;
    berth_cpu_kernel function = NULL;
    BERTH_TRY(berth_devices__find_function(&executable->host, "cpu", base->device->allocator,
                                           kernel, &function));
    BERTH_TRY(reserve_kernel(executable));
    BERTH_TRY(berth_cpu__reserve_scratch((cpu_device *)base->device, kernel->scratch_bytes));
    cpu_kernel *found = &executable->kernels[executable->kernel_count];
    *found = (cpu_kernel){.function = function, .scratch_bytes = kernel->scratch_bytes};
    choose_threads(found, kernel);
    *out_kernel = executable->kernel_count++;
    return BERTH_OK;
}

berth_status berth_cpu__reserve_scratch(cpu_device *device, size_t size_bytes) {
    berth_status status = BERTH_OK;
    pthread_mutex_lock(&device->run_lock);
    if (size_bytes > device->scratch_bytes) {
        for (uint32_t i = 0; i < device->thread_count && !status; ++i) {
            size_t old_bytes = device->scratch[i].data ? device->scratch_bytes : 0;
            berth_aligned_block block;
            status = berth_devices__aligned_alloc(device->base.allocator, size_bytes,
                                                  SCRATCH_ALIGNMENT_BYTES, &block);
            if (status) break;  // what was replaced is larger than scratch_bytes says: harmless
            berth_devices__count_memory(&device->base, size_bytes, 0);
            berth_devices__aligned_free(device->base.allocator, &device->scratch[i]);
            berth_devices__count_memory(&device->base, 0, old_bytes);
            device->scratch[i] = block;
        }
        if (!status) device->scratch_bytes = size_bytes;
    }
    pthread_mutex_unlock(&device->run_lock);
    return status;
}

typedef struct dispatch_state {
    const cpu_device *device;
    const cpu_kernel *kernel;
    void *const *buffers;
    const int64_t *constants;
} dispatch_state;

static void run_part(void *user, uint32_t thread, int64_t begin, int64_t end) {
    const dispatch_state *state = user;
    void *scratch = state->kernel->scratch_bytes ? state->device->scratch[thread].data : NULL;
    state->kernel->function(state->buffers, state->constants, begin, end, scratch);
}

static void try_alone(cpu_kernel *kernel, dispatch_state *state, int64_t groups) {
    int64_t start_ns = berth_clock_ns();
    run_part(state, 0, 0, groups);
    int64_t time_ns = berth_clock_ns() - start_ns;
    if (time_ns < kernel->least_ns) kernel->least_ns = time_ns;
    if (--kernel->trials_left == 0) kernel->serial = kernel->least_ns < PARALLEL_LEAST_NS;
}

berth_status berth_cpu__check_grid(const berth_command *command) {
    const uint32_t *groups = command->dispatch.groups;
    if (groups[1] <= 1 && groups[2] <= 1) return BERTH_OK;
    return berth_status_make(BERTH_INVALID_ARGUMENT,
                             "dispatch: cpu kernels have a flat grid, not %u x %u x %u", groups[0],
                             groups[1], groups[2]);
}

void berth_cpu__run_kernel(cpu_device *device, cpu_kernel *kernel, void *const *buffers,
                           const int64_t *constants, int64_t groups) {
    dispatch_state state = {
        .device = device, .kernel = kernel, .buffers = buffers, .constants = constants};
    if (groups == 0) return;
    pthread_mutex_lock(&device->run_lock);
    if (!device->pool || kernel->serial || groups == 1) {
        run_part(&state, 0, 0, groups);
    } else if (kernel->trials_left) {
        try_alone(kernel, &state, groups);
    } else {
        berth_cpu__make_way(device);
        berth_thread_pool_run(device->pool, groups, kernel->expected_ns, run_part, &state);
    }
    pthread_mutex_unlock(&device->run_lock);
}

berth_status berth_cpu__dispatch(berth_device *base, const berth_command *command) {
    cpu_executable *executable = (cpu_executable *)command->dispatch.executable;
    BERTH_TRY(berth_cpu__check_grid(command));
    void *buffers[BERTH_DEVICE_MAX_BINDINGS];
    for (uint32_t i = 0; i < command->dispatch.buffer_count; ++i)
        buffers[i] = command->dispatch.buffers[i]->host;
    berth_cpu__run_kernel((cpu_device *)base, &executable->kernels[command->dispatch.kernel],
                          buffers, command->dispatch.constants, command->dispatch.groups[0]);
    return BERTH_OK;
}
