#define _GNU_SOURCE  // sched_getcpu, pthread_setaffinity_np
#include "devices/cpu/topology.h"

#include <linux/mempolicy.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "devices/cpu/topology_private.h"

#define LONG_BITS (8 * sizeof(unsigned long))

berth_status berth_cpu_topology_load(berth_allocator allocator, berth_cpu_topology **out_topology) {
    *out_topology = NULL;
    berth_cpu_topology *topology = berth_calloc(allocator, 1, sizeof(*topology));
    if (!topology) return berth_status_oom();
    topology->allocator = allocator;
    berth_status status = berth_topology_here(false, &topology->machine);
    if (status) {
        berth_cpu_topology_destroy(topology);
        return status;
    }
    topology->group_count = berth_topology_groups(&topology->machine, topology->groups);
    *out_topology = topology;
    return BERTH_OK;
}

void berth_cpu_topology_destroy(berth_cpu_topology *topology) {
    if (topology) berth_free(topology->allocator, topology, sizeof(*topology));
}

uint32_t berth_cpu_topology_core_count(const berth_cpu_topology *topology) {
    return topology->machine.core_count;
}

uint32_t berth_cpu_topology_processor(void) {
    int processor = sched_getcpu();
    return processor < 0 ? UINT32_MAX : (uint32_t)processor;
}

uint32_t berth_cpu_topology_core_of(const berth_cpu_topology *topology, uint32_t processor) {
    if (processor >= BERTH_TOPOLOGY_MAX_PROCESSORS) return BERTH_CPU_NO_CORE;
    uint16_t core = topology->machine.core_of[processor];
    return core == BERTH_TOPOLOGY_NONE ? BERTH_CPU_NO_CORE : core;
}

void berth_cpu_topology_bind_thread(const berth_cpu_topology *topology, pthread_t thread,
                                    uint32_t core) {
    const berth_topology *machine = &topology->machine;
    if (!machine->here || core >= machine->core_count) return;
    uint16_t processor = machine->cores[core].first;
    if (processor == BERTH_TOPOLOGY_NONE) return;
    union {
        unsigned long words[BERTH_TOPOLOGY_MAX_PROCESSORS / LONG_BITS];
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

// `mode`: MPOL_PREFERRED with a node, or MPOL_DEFAULT.
static void set_policy(const berth_cpu_topology *topology, void *data, size_t size_bytes, int mode,
                       uint32_t index) {
    const berth_topology *machine = &topology->machine;
    void *start = NULL;
    size_t bytes = whole_pages(data, size_bytes, &start);
    if (!machine->here || machine->node_count < 2 || index >= machine->node_count || bytes == 0)
        return;
    enum { most_nodes = 1024 };
    unsigned long nodes[most_nodes / LONG_BITS] = {0};
    uint32_t node = machine->nodes[index].os_index;
    if (node >= most_nodes) return;
    nodes[node / LONG_BITS] = 1ul << node % LONG_BITS;
    bool chosen = mode != MPOL_DEFAULT;
    // Best effort, as above; the capacity check is the system's when pages are touched.
    (void)syscall(SYS_mbind, start, bytes, mode, chosen ? nodes : NULL, chosen ? most_nodes : 0, 0);
}

void berth_cpu_topology_bind_range(const berth_cpu_topology *topology, void *data,
                                   size_t size_bytes, uint32_t node) {
    set_policy(topology, data, size_bytes, MPOL_PREFERRED, node);
}

void berth_cpu_topology_release_range(const berth_cpu_topology *topology, void *data,
                                      size_t size_bytes) {
    set_policy(topology, data, size_bytes, MPOL_DEFAULT, 0);
}
