// The cpu driver: the cores that this process may use, and where there are several kinds of cores or
// NUMA nodes, those of each. A device's memories are the NUMA nodes, its own first. The device of all
// cores runs commands on the calling thread (with the pool's help) where it can; devices of a part of
// the cores do so on threads of their own, which are bound to these cores, unless the caller's happens to be on one
// of them.
#include "devices/cpu/cpu.h"

#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"

#define WORKER_SPIN_NS 20000
// How long a pinned device looks for what it waits for, and who waits for it: its cores are its own, and
// devices beside it are waited for again and again. A few times what it takes to wake a thread.
#define PINNED_LOOK_NS 200000
#define MOVE_INTERVAL_NS 1000000  // workers that make way for several callers would only move

// Large buffers start on pages, so that they can be put on a node; very large ones ask for huge
// pages.
#define PAGE_BYTES ((size_t)4096)
#define PAGED_BYTES ((uint64_t)64 << 10)
#define HUGE_PAGE_BYTES ((size_t)2 << 20)
#define HUGE_BYTES ((uint64_t)8 << 20)

typedef struct cpu_buffer {
    berth_buffer base;
    berth_aligned_block block;  // empty in views and imports
    size_t bound_bytes;         // on the node of base.memory
} cpu_buffer;

// ---- buffers ----

static berth_status make_buffer(berth_device *device, void *host, cpu_buffer **out_buffer) {
    cpu_buffer *buffer = berth_calloc(device->allocator, 1, sizeof(*buffer));
    if (!buffer) return berth_status_oom();
    buffer->base.host = host;
    *out_buffer = buffer;
    return BERTH_OK;
}

static berth_status cpu_buffer_allocate(berth_device *base, uint32_t memory, uint64_t size_bytes,
                                        berth_buffer **out_buffer) {
    const cpu_device *device = (const cpu_device *)base;
    size_t alignment = BERTH_DEFAULT_ALIGNMENT_BYTES;
    if (size_bytes >= PAGED_BYTES) alignment = PAGE_BYTES;
    if (size_bytes >= HUGE_BYTES) alignment = HUGE_PAGE_BYTES;
    cpu_buffer *buffer = NULL;
    BERTH_TRY(make_buffer(base, NULL, &buffer));
    berth_status status =
        berth_devices__aligned_alloc(base->allocator, size_bytes, alignment, &buffer->block);
    if (status) {
        berth_free(base->allocator, buffer, sizeof(*buffer));
        return status;
    }
    buffer->base.host = buffer->block.data;
#ifdef MADV_HUGEPAGE
    if (alignment == HUGE_PAGE_BYTES)  // a wish: fails where huge pages are off
        (void)madvise(buffer->base.host, size_bytes & ~(HUGE_PAGE_BYTES - 1), MADV_HUGEPAGE);
#endif
    if (alignment > BERTH_DEFAULT_ALIGNMENT_BYTES) {
        buffer->bound_bytes = (size_t)size_bytes;
        berth_cpu_topology_bind_range(device->topology, buffer->base.host, buffer->bound_bytes,
                                      device->part.memories[memory]);
    }
    *out_buffer = &buffer->base;
    return BERTH_OK;
}

static berth_status cpu_buffer_view(berth_buffer *root, uint64_t offset_bytes, uint64_t size_bytes,
                                    berth_buffer **out_view) {
    (void)size_bytes;
    cpu_buffer *view = NULL;
    BERTH_TRY(make_buffer(root->device, berth_devices__host_at(root, offset_bytes), &view));
    *out_view = &view->base;
    return BERTH_OK;
}

static berth_status cpu_buffer_import(berth_device *device, void *data, uint64_t size_bytes,
                                      berth_buffer **out_buffer) {
    (void)size_bytes;
    cpu_buffer *buffer = NULL;
    BERTH_TRY(make_buffer(device, data, &buffer));
    *out_buffer = &buffer->base;
    return BERTH_OK;
}

static void cpu_buffer_free(berth_buffer *base) {
    cpu_buffer *buffer = (cpu_buffer *)base;
    const cpu_device *device = (const cpu_device *)base->device;
    berth_allocator allocator = device->base.allocator;
    if (buffer->bound_bytes)
        berth_cpu_topology_release_range(device->topology, base->host, buffer->bound_bytes);
    berth_devices__aligned_free(allocator, &buffer->block);
    berth_free(allocator, buffer, sizeof(*buffer));
}

// ---- queues ----

typedef struct cpu_queue {
    berth_host_queue base;
} cpu_queue;

static berth_status cpu_queue_start(berth_queue *base, const berth_command *commands,
                                    uint32_t count, void *prepared, void *record) {
    (void)record;
    const cpu_queue *queue = (const cpu_queue *)base;
    if (prepared) return berth_cpu__list_run(base->device, queue->base.order, prepared);
    return berth_host_queue_run_commands(base->device, queue->base.order, commands, count,
                                         berth_cpu__dispatch);
}

static void cpu_queue_thread_begin(berth_queue *queue) {
    const cpu_device *device = (const cpu_device *)queue->device;
    if (device->part.pinned)
        berth_cpu_topology_bind_thread(device->topology, pthread_self(), device->part.cores[0]);
}

// Whether the calling thread is on one of the device's cores just now.
static bool is_here(const cpu_device *device) {
    if (!device->part.pinned) return true;
    uint32_t core = berth_cpu_topology_core_of(device->topology, berth_cpu_topology_processor());
    for (uint32_t i = 0; i < device->part.core_count; ++i)
        if (device->part.cores[i] == core) return true;
    return false;
}

// The caller's own thread may be on any core: elsewhere, a pinned device works on the queue's.
static berth_status cpu_queue_submit(berth_queue *queue, const berth_submission *submission) {
    berth_submission own = *submission;
    own.asynchronous = submission->asynchronous || !is_here((const cpu_device *)queue->device);
    return berth_host_queue_submit(queue, &own);
}

// Who is on the device's own cores would only keep it from working.
static int64_t cpu_queue_look_ns(berth_queue *queue) {
    return is_here((const cpu_device *)queue->device) ? 0 : PINNED_LOOK_NS;
}

static const berth_host_queue_ops cpu_queue_ops = {.start = cpu_queue_start,
                                                   .thread_begin = cpu_queue_thread_begin};

static berth_status cpu_queue_open(berth_device *device, berth_queue_kind kind,
                                   berth_queue **out_queue) {
    cpu_queue *queue = berth_calloc(device->allocator, 1, sizeof(*queue));
    if (!queue) return berth_status_oom();
    berth_status status = berth_host_queue_init(&queue->base, device, &cpu_queue_ops);
    if (status) {
        berth_free(device->allocator, queue, sizeof(*queue));
        return status;
    }
    if (kind == BERTH_QUEUE_COMPUTE) queue->base.order = &((cpu_device *)device)->order;
    if (((const cpu_device *)device)->part.pinned) queue->base.look_ns = PINNED_LOOK_NS;
    *out_queue = &queue->base.base;
    return BERTH_OK;
}

static void cpu_queue_destroy(berth_queue *base) {
    cpu_queue *queue = (cpu_queue *)base;
    berth_allocator allocator = base->device->allocator;
    berth_host_queue_deinit(&queue->base);
    berth_free(allocator, queue, sizeof(*queue));
}

// ---- device ----

static void cpu_device_destroy(berth_device *base) {
    cpu_device *device = (cpu_device *)base;
    berth_allocator allocator = base->allocator;
    berth_thread_pool_destroy(device->pool);
    for (uint32_t i = 0; device->scratch && i < device->thread_count; ++i)
        berth_devices__aligned_free(allocator, &device->scratch[i]);
    berth_free(allocator, device->scratch, device->thread_count * sizeof(*device->scratch));
    berth_free(allocator, device->cores, device->thread_count * sizeof(*device->cores));
    berth_cpu_part_end(device->topology, &device->part);
    pthread_mutex_destroy(&device->run_lock);
    berth_start_order_deinit(&device->order);
    pthread_mutex_destroy(&device->library_lock);
    berth_free(allocator, device, sizeof(*device));
}

static const berth_device_ops cpu_device_ops = {
    .destroy = cpu_device_destroy,
    .buffer_allocate = cpu_buffer_allocate,
    .buffer_view = cpu_buffer_view,
    .buffer_import = cpu_buffer_import,
    .buffer_free = cpu_buffer_free,
    .executable_load = berth_cpu__executable_load,
    .executable_destroy = berth_cpu__executable_destroy,
    .executable_find = berth_cpu__executable_find,
    .queue_open = cpu_queue_open,
    .queue_reserve = berth_host_queue_reserve,
    .queue_submit = cpu_queue_submit,
    .queue_look_ns = cpu_queue_look_ns,
    .queue_destroy = cpu_queue_destroy,
    .list_prepare = berth_cpu__list_prepare,
    .list_update = berth_cpu__list_update,
    .list_destroy = berth_cpu__list_destroy,
};

// ---- threads ----

// The caller's own thread is never bound, since it is not ours, and may come to run on any core. A
// worker bound to the same one would work only while the caller does not: it changes places.
void berth_cpu__make_way(cpu_device *device) {
    uint32_t processor = berth_cpu_topology_processor();
    if (!device->cores || processor == device->caller_processor) return;
    int64_t now_ns = berth_clock_ns();
    if (now_ns < device->next_move_ns) return;
    device->next_move_ns = now_ns + MOVE_INTERVAL_NS;
    device->caller_processor = processor;
    uint32_t core = berth_cpu_topology_core_of(device->topology, processor);
    if (core == BERTH_CPU_NO_CORE || core == device->cores[0]) return;
    for (uint32_t i = 1; i < device->thread_count; ++i) {
        if (device->cores[i] != core) continue;
        device->cores[i] = device->cores[0];
        berth_cpu_topology_bind_thread(device->topology, berth_thread_pool_worker(device->pool, i),
                                       device->cores[i]);
    }
    device->cores[0] = core;
}

// With a thread for every core, each worker has one of its own. Fewer threads go where the system
// sees fit: other processes' pools would choose the same cores. A pinned device's threads are bound
// however many there are.
static berth_status bind_workers(cpu_device *device) {
    device->cores =
        berth_calloc(device->base.allocator, device->thread_count, sizeof(*device->cores));
    if (!device->cores) return berth_status_oom();
    for (uint32_t i = 0; i < device->thread_count; ++i)
        device->cores[i] = device->part.cores[i % device->part.core_count];
    for (uint32_t i = 1; i < device->thread_count; ++i)
        berth_cpu_topology_bind_thread(device->topology, berth_thread_pool_worker(device->pool, i),
                                       device->cores[i]);
    return BERTH_OK;
}

static berth_status open_threads(cpu_device *device) {
    berth_allocator allocator = device->base.allocator;
    device->scratch = berth_calloc(allocator, device->thread_count, sizeof(*device->scratch));
    if (!device->scratch) return berth_status_oom();
    if (device->thread_count == 1) return BERTH_OK;
    uint32_t cores = device->part.core_count;
    berth_thread_pool_options options = {.thread_count = device->thread_count,
                                         .spin_ns = WORKER_SPIN_NS,
                                         .callers = device->base.options.threads};
    // More threads than cores: looking would keep others from working.
    if (device->thread_count > cores) options.spin_ns = 0;
    BERTH_TRY(berth_thread_pool_create(allocator, &options, &device->pool));
    if (options.callers) return BERTH_OK;
    bool bind = device->thread_count == cores || device->part.pinned;
    return bind ? bind_workers(device) : BERTH_OK;
}

#define MAX_THREADS 1024

static berth_status cpu_device_open(berth_driver *base, uint32_t ordinal,
                                    const berth_device_options *options,
                                    berth_device **out_device) {
    cpu_driver *driver = (cpu_driver *)base;
    uint32_t thread_count =
        options->threads ? options->threads->thread_count : options->thread_count;
    if (thread_count > MAX_THREADS)
        return berth_status_make(BERTH_OUT_OF_RANGE, "%u threads: at most %d are possible",
                                 thread_count, MAX_THREADS);
    cpu_device *device = berth_calloc(base->allocator, 1, sizeof(*device));
    if (!device) return berth_status_oom();
    device->base.ops = &cpu_device_ops;
    device->base.allocator = base->allocator;
    device->topology = driver->topology;
    berth_status status =
        berth_cpu_part_choose(driver->topology, ordinal, options->attributes, &device->part);
    if (status) {
        berth_free(base->allocator, device, sizeof(*device));
        return status;
    }
    // What the caller asks for is no fact of the device.
    if (thread_count) device->part.thread_count = device->part.core_count;
    berth_cpu_part_info(driver->topology, &device->part, &device->base.info);
    device->base.info.ordinal = ordinal;
    device->thread_count = thread_count ? thread_count : device->part.thread_count;
    device->base.options.threads = options->threads;
    device->caller_processor = UINT32_MAX;
    berth_start_order_init(&device->order);
    pthread_mutex_init(&device->run_lock, NULL);
    pthread_mutex_init(&device->library_lock, NULL);
    status = open_threads(device);
    if (status) {
        cpu_device_destroy(&device->base);
        return status;
    }
    *out_device = &device->base;
    return BERTH_OK;
}

// ---- driver ----

static berth_status cpu_open(berth_allocator allocator, berth_driver **out_driver) {
    cpu_driver *driver = berth_calloc(allocator, 1, sizeof(*driver));
    if (!driver) return berth_status_oom();
    driver->base.allocator = allocator;
    berth_status status = berth_cpu_topology_load(allocator, &driver->topology);
    if (status) {
        berth_free(allocator, driver, sizeof(*driver));
        return status;
    }
    *out_driver = &driver->base;
    return BERTH_OK;
}

static void cpu_close(berth_driver *base) {
    cpu_driver *driver = (cpu_driver *)base;
    berth_cpu_topology_destroy(driver->topology);
    berth_free(base->allocator, driver, sizeof(*driver));
}

static uint32_t cpu_device_count(berth_driver *driver) {
    return berth_cpu_topology_part_count(((cpu_driver *)driver)->topology);
}

static berth_status cpu_device_info(berth_driver *base, uint32_t ordinal,
                                    berth_device_info *out_info) {
    const berth_cpu_topology *topology = ((cpu_driver *)base)->topology;
    berth_cpu_part part;
    BERTH_TRY(berth_cpu_part_choose(topology, ordinal, NULL, &part));
    berth_cpu_part_info(topology, &part, out_info);
    out_info->ordinal = ordinal;
    berth_cpu_part_end(topology, &part);
    return BERTH_OK;
}

extern const berth_driver_ops berth_devices__cpu_driver;
const berth_driver_ops berth_devices__cpu_driver = {
    .kind = "cpu",
    .description = "processor cores of this machine (hwloc, one thread pool)",
    .is_host = true,
    .open = cpu_open,
    .close = cpu_close,
    .device_count = cpu_device_count,
    .device_info = cpu_device_info,
    .device_open = cpu_device_open,
};
