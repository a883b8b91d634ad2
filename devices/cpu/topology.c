#define _GNU_SOURCE  // sched_getcpu, pthread_setaffinity_np
#include "devices/cpu/topology.h"

#include <linux/mempolicy.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "artifact/kernel_abi.h"
#include "devices/cpu/topology_ask.h"

#define LONG_BITS (8 * sizeof(unsigned long))

struct berth_cpu_topology {
    berth_allocator allocator;
    berth_cpu_machine machine;
};

berth_status berth_cpu_topology_load(berth_allocator allocator, berth_cpu_topology **out_topology) {
    *out_topology = NULL;
    berth_cpu_topology *topology = berth_calloc(allocator, 1, sizeof(*topology));
    if (!topology) return berth_status_oom();
    topology->allocator = allocator;
    berth_status status = berth_cpu__ask_machine(&topology->machine);
    if (status)
        berth_cpu_topology_destroy(topology);
    else
        *out_topology = topology;
    return status;
}

void berth_cpu_topology_destroy(berth_cpu_topology *topology) {
    if (topology) berth_free(topology->allocator, topology, sizeof(*topology));
}

uint32_t berth_cpu_topology_core_count(const berth_cpu_topology *topology) {
    return topology->machine.core_count;
}

static void describe_memory(const berth_cpu_topology *topology, uint32_t index,
                            berth_memory_info *memory) {
    if (index == 0)
        snprintf(memory->scope, sizeof(memory->scope), "global");
    else
        snprintf(memory->scope, sizeof(memory->scope), "numa:%u", index);
    memory->capacity_bytes = topology->machine.nodes[index].capacity_bytes;
    memory->alignment_bytes = BERTH_CPU_ALIGNMENT_BYTES;
    memory->host_visible = true;
}

void berth_cpu_topology_info(const berth_cpu_topology *topology, berth_device_info *out_info) {
    const berth_cpu_machine *machine = &topology->machine;
    memset(out_info, 0, sizeof(*out_info));
    snprintf(out_info->name, sizeof(out_info->name), "%.100s (%u core%s)",
             *machine->model ? machine->model : "CPU", machine->core_count,
             machine->core_count == 1 ? "" : "s");
    snprintf(out_info->vendor, sizeof(out_info->vendor), "%s", machine->vendor);
    snprintf(out_info->driver_version, sizeof(out_info->driver_version), "hwloc API %u.%u",
             machine->hwloc_version >> 16, (machine->hwloc_version >> 8) & 0xff);
    out_info->compute_units = machine->core_count;
    out_info->max_group_size = 1;
    memcpy(out_info->cache_bytes, machine->cache_bytes, sizeof(machine->cache_bytes));
    out_info->memory_count = machine->node_count;
    for (uint32_t i = 0; i < machine->node_count; ++i)
        describe_memory(topology, i, &out_info->memories[i]);
}

uint32_t berth_cpu_topology_processor(void) {
    int processor = sched_getcpu();
    return processor < 0 ? UINT32_MAX : (uint32_t)processor;
}

uint32_t berth_cpu_topology_core_of(const berth_cpu_topology *topology, uint32_t processor) {
    if (processor >= BERTH_CPU_MOST_PROCESSORS) return BERTH_CPU_NO_CORE;
    uint16_t core = topology->machine.core_of[processor];
    return core == BERTH_CPU_NO_PROCESSOR ? BERTH_CPU_NO_CORE : core;
}

void berth_cpu_topology_bind_thread(const berth_cpu_topology *topology, pthread_t thread,
                                    uint32_t core) {
    const berth_cpu_machine *machine = &topology->machine;
    if (!machine->here || core >= machine->core_count) return;
    uint16_t processor = machine->first_of[core];
    if (processor == BERTH_CPU_NO_PROCESSOR) return;
    union {
        unsigned long words[BERTH_CPU_MOST_PROCESSORS / LONG_BITS];
        cpu_set_t set;
    } one = {.words = {0}};
    one.words[processor / LONG_BITS] = 1ul << processor % LONG_BITS;
    // Best effort: an unbound thread is slower, not wrong.
    (void)pthread_setaffinity_np(thread, sizeof(one.words), &one.set);
}

// The pages that lie wholly in the range.
static size_t whole_pages(void *data, size_t size_bytes, void **out_start) {
    const uintptr_t page = 4096;
    uintptr_t begin = ((uintptr_t)data + page - 1) & ~(page - 1);
    uintptr_t end = ((uintptr_t)data + size_bytes) & ~(page - 1);
    *out_start = (unsigned char *)data + (begin - (uintptr_t)data);
    return end > begin ? end - begin : 0;
}

// `mode`: MPOL_PREFERRED with the node of a memory, or MPOL_DEFAULT.
static void set_policy(const berth_cpu_topology *topology, void *data, size_t size_bytes, int mode,
                       uint32_t memory) {
    const berth_cpu_machine *machine = &topology->machine;
    void *start = NULL;
    size_t bytes = whole_pages(data, size_bytes, &start);
    if (!machine->here || machine->node_count < 2 || memory >= machine->node_count || bytes == 0)
        return;
    enum { most_nodes = 1024 };
    unsigned long nodes[most_nodes / LONG_BITS] = {0};
    uint32_t node = machine->nodes[memory].os_index;
    if (node >= most_nodes) return;
    nodes[node / LONG_BITS] = 1ul << node % LONG_BITS;
    bool chosen = mode != MPOL_DEFAULT;
    // Best effort, as above; the capacity check is the system's when pages are touched.
    (void)syscall(SYS_mbind, start, bytes, mode, chosen ? nodes : NULL, chosen ? most_nodes : 0, 0);
}

void berth_cpu_topology_bind_range(const berth_cpu_topology *topology, void *data,
                                   size_t size_bytes, uint32_t memory) {
    set_policy(topology, data, size_bytes, MPOL_PREFERRED, memory);
}

void berth_cpu_topology_release_range(const berth_cpu_topology *topology, void *data,
                                      size_t size_bytes) {
    set_policy(topology, data, size_bytes, MPOL_DEFAULT, 0);
}
