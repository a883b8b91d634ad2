#define _GNU_SOURCE  // sched_getcpu
#include "devices/cpu/topology.h"

#include <hwloc.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "artifact/kernel_abi.h"

struct berth_cpu_topology {
    berth_allocator allocator;
    hwloc_topology_t hwloc;
    uint32_t core_count;
    uint32_t node_count;  // at most BERTH_DEVICE_MAX_MEMORIES
};

// Leaves out what the process may not run on (taskset, containers).
static void restrict_to_process(hwloc_topology_t hwloc) {
    hwloc_bitmap_t allowed = hwloc_bitmap_alloc();
    if (!allowed) return;
    if (hwloc_get_cpubind(hwloc, allowed, HWLOC_CPUBIND_PROCESS) == 0 &&
        !hwloc_bitmap_iszero(allowed))
        hwloc_topology_restrict(hwloc, allowed, 0);
    hwloc_bitmap_free(allowed);
}

static uint32_t count_of(hwloc_topology_t hwloc, hwloc_obj_type_t type) {
    int count = hwloc_get_nbobjs_by_type(hwloc, type);
    return count > 0 ? (uint32_t)count : 0;
}

berth_status berth_cpu_topology_load(berth_allocator allocator, berth_cpu_topology **out_topology) {
    *out_topology = NULL;
    berth_cpu_topology *topology = berth_calloc(allocator, 1, sizeof(*topology));
    if (!topology) return berth_status_oom();
    topology->allocator = allocator;
    if (hwloc_topology_init(&topology->hwloc) != 0) {
        berth_free(allocator, topology, sizeof(*topology));
        return berth_status_oom();
    }
    if (hwloc_topology_load(topology->hwloc) != 0) {
        berth_cpu_topology_destroy(topology);
        return berth_status_make(BERTH_UNAVAILABLE, "hwloc cannot read this machine's topology");
    }
    restrict_to_process(topology->hwloc);
    topology->core_count = count_of(topology->hwloc, HWLOC_OBJ_CORE);
    if (topology->core_count == 0) topology->core_count = count_of(topology->hwloc, HWLOC_OBJ_PU);
    if (topology->core_count == 0) topology->core_count = 1;
    topology->node_count = count_of(topology->hwloc, HWLOC_OBJ_NUMANODE);
    if (topology->node_count == 0) topology->node_count = 1;
    if (topology->node_count > BERTH_DEVICE_MAX_MEMORIES)
        topology->node_count = BERTH_DEVICE_MAX_MEMORIES;
    *out_topology = topology;
    return BERTH_OK;
}

void berth_cpu_topology_destroy(berth_cpu_topology *topology) {
    if (!topology) return;
    hwloc_topology_destroy(topology->hwloc);
    berth_free(topology->allocator, topology, sizeof(*topology));
}

uint32_t berth_cpu_topology_core_count(const berth_cpu_topology *topology) {
    return topology->core_count;
}

static const char *text_of(hwloc_topology_t hwloc, const char *key, const char *fallback) {
    hwloc_obj_t package = hwloc_get_obj_by_type(hwloc, HWLOC_OBJ_PACKAGE, 0);
    const char *text = package ? hwloc_obj_get_info_by_name(package, key) : NULL;
    return text && *text ? text : fallback;
}

static void describe_memory(const berth_cpu_topology *topology, uint32_t index,
                            berth_memory_info *memory) {
    hwloc_obj_t node = hwloc_get_obj_by_type(topology->hwloc, HWLOC_OBJ_NUMANODE, index);
    if (index == 0)
        snprintf(memory->scope, sizeof(memory->scope), "global");
    else
        snprintf(memory->scope, sizeof(memory->scope), "numa:%u", index);
    memory->capacity_bytes = node ? node->attr->numanode.local_memory : 0;
    memory->alignment_bytes = BERTH_CPU_ALIGNMENT_BYTES;
    memory->host_visible = true;
}

// Sizes as the first core sees them.
static void describe_caches(const berth_cpu_topology *topology, berth_device_info *info) {
    hwloc_obj_t object = hwloc_get_obj_by_type(topology->hwloc, HWLOC_OBJ_PU, 0);
    for (; object; object = object->parent) {
        if (!hwloc_obj_type_is_dcache(object->type)) continue;
        unsigned level = object->attr->cache.depth;
        if (level >= 1 && level <= 3) info->cache_bytes[level - 1] = object->attr->cache.size;
    }
}

void berth_cpu_topology_info(const berth_cpu_topology *topology, berth_device_info *out_info) {
    memset(out_info, 0, sizeof(*out_info));
    snprintf(out_info->name, sizeof(out_info->name), "%.100s (%u core%s)",
             text_of(topology->hwloc, "CPUModel", "CPU"), topology->core_count,
             topology->core_count == 1 ? "" : "s");
    snprintf(out_info->vendor, sizeof(out_info->vendor), "%s",
             text_of(topology->hwloc, "CPUVendor", ""));
    unsigned version = hwloc_get_api_version();
    snprintf(out_info->driver_version, sizeof(out_info->driver_version), "hwloc API %u.%u",
             version >> 16, (version >> 8) & 0xff);
    out_info->compute_units = topology->core_count;
    out_info->max_group_size = 1;
    describe_caches(topology, out_info);
    out_info->memory_count = topology->node_count;
    for (uint32_t i = 0; i < topology->node_count; ++i)
        describe_memory(topology, i, &out_info->memories[i]);
}

static hwloc_obj_t core_at(const berth_cpu_topology *topology, uint32_t core) {
    hwloc_obj_t object = hwloc_get_obj_by_type(topology->hwloc, HWLOC_OBJ_CORE, core);
    return object ? object : hwloc_get_obj_by_type(topology->hwloc, HWLOC_OBJ_PU, core);
}

uint32_t berth_cpu_topology_processor(void) {
    int processor = sched_getcpu();
    return processor < 0 ? UINT32_MAX : (uint32_t)processor;
}

uint32_t berth_cpu_topology_core_of(const berth_cpu_topology *topology, uint32_t processor) {
    for (uint32_t core = 0; core < topology->core_count; ++core) {
        hwloc_obj_t object = core_at(topology, core);
        if (object && hwloc_bitmap_isset(object->cpuset, processor)) return core;
    }
    return BERTH_CPU_NO_CORE;
}

void berth_cpu_topology_bind_thread(const berth_cpu_topology *topology, pthread_t thread,
                                    uint32_t core) {
    hwloc_obj_t object = core_at(topology, core);
    hwloc_bitmap_t set = object ? hwloc_bitmap_dup(object->cpuset) : NULL;
    if (!set) return;
    hwloc_bitmap_singlify(set);
    // Best effort: an unbound thread is slower, not wrong.
    (void)hwloc_set_thread_cpubind(topology->hwloc, thread, set, 0);
    hwloc_bitmap_free(set);
}

// The pages that lie wholly in the range.
static size_t whole_pages(void *data, size_t size_bytes, void **out_start) {
    const uintptr_t page = 4096;
    uintptr_t begin = ((uintptr_t)data + page - 1) & ~(page - 1);
    uintptr_t end = ((uintptr_t)data + size_bytes) & ~(page - 1);
    *out_start = (unsigned char *)data + (begin - (uintptr_t)data);
    return end > begin ? end - begin : 0;
}

static void set_policy(const berth_cpu_topology *topology, void *data, size_t size_bytes,
                       uint32_t memory, hwloc_membind_policy_t policy) {
    hwloc_obj_t node = hwloc_get_obj_by_type(topology->hwloc, HWLOC_OBJ_NUMANODE, memory);
    void *start = NULL;
    size_t bytes = whole_pages(data, size_bytes, &start);
    if (topology->node_count < 2 || !node || bytes == 0) return;
    // Best effort, as above; the capacity check is the system's when pages are touched.
    (void)hwloc_set_area_membind(topology->hwloc, start, bytes, node->nodeset, policy,
                                 HWLOC_MEMBIND_BYNODESET);
}

void berth_cpu_topology_bind_range(const berth_cpu_topology *topology, void *data,
                                   size_t size_bytes, uint32_t memory) {
    set_policy(topology, data, size_bytes, memory, HWLOC_MEMBIND_BIND);
}

void berth_cpu_topology_release_range(const berth_cpu_topology *topology, void *data,
                                      size_t size_bytes) {
    set_policy(topology, data, size_bytes, 0, HWLOC_MEMBIND_DEFAULT);
}
