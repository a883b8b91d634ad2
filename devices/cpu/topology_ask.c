#define _GNU_SOURCE  // sched_getaffinity
#include "devices/cpu/topology_ask.h"

#include <hwloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/helper.h"

#define TIME_LIMIT_NS INT64_C(30000000000)

// Leaves out what the process may not run on (taskset, containers).
static void restrict_to_process(hwloc_topology_t hwloc, pid_t process) {
    hwloc_bitmap_t allowed = hwloc_bitmap_alloc();
    if (!allowed) return;
    if (hwloc_get_proc_cpubind(hwloc, process, allowed, 0) == 0 && !hwloc_bitmap_iszero(allowed))
        hwloc_topology_restrict(hwloc, allowed, 0);
    hwloc_bitmap_free(allowed);
}

static void copy_text(hwloc_topology_t hwloc, const char *key, char *out, size_t out_bytes) {
    hwloc_obj_t package = hwloc_get_obj_by_type(hwloc, HWLOC_OBJ_PACKAGE, 0);
    const char *text = package ? hwloc_obj_get_info_by_name(package, key) : NULL;
    snprintf(out, out_bytes, "%s", text ? text : "");
}

static uint32_t count_of(hwloc_topology_t hwloc, hwloc_obj_type_t type) {
    int count = hwloc_get_nbobjs_by_type(hwloc, type);
    return count > 0 ? (uint32_t)count : 0;
}

static void describe_cores(hwloc_topology_t hwloc, berth_cpu_machine *machine) {
    const hwloc_obj_type_t type =
        count_of(hwloc, HWLOC_OBJ_CORE) ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;  // none known: threads
    uint32_t count = count_of(hwloc, type);
    if (count > BERTH_CPU_MOST_PROCESSORS) count = BERTH_CPU_MOST_PROCESSORS;
    machine->core_count = count ? count : 1;
    memset(machine->core_of, 0xff, sizeof(machine->core_of));
    memset(machine->first_of, 0xff, sizeof(machine->first_of));
    for (uint32_t core = 0; core < count; ++core) {
        hwloc_obj_t object = hwloc_get_obj_by_type(hwloc, type, core);
        if (!object) continue;
        int processor = hwloc_bitmap_first(object->cpuset);
        if (processor >= 0 && processor < BERTH_CPU_MOST_PROCESSORS)
            machine->first_of[core] = (uint16_t)processor;
        for (; processor >= 0; processor = hwloc_bitmap_next(object->cpuset, processor))
            if (processor < BERTH_CPU_MOST_PROCESSORS) machine->core_of[processor] = (uint16_t)core;
    }
}

static void describe_nodes(hwloc_topology_t hwloc, berth_cpu_machine *machine) {
    machine->node_count = count_of(hwloc, HWLOC_OBJ_NUMANODE);
    if (machine->node_count == 0) machine->node_count = 1;
    if (machine->node_count > BERTH_DEVICE_MAX_MEMORIES)
        machine->node_count = BERTH_DEVICE_MAX_MEMORIES;
    for (uint32_t i = 0; i < machine->node_count; ++i) {
        hwloc_obj_t node = hwloc_get_obj_by_type(hwloc, HWLOC_OBJ_NUMANODE, i);
        if (!node) continue;
        machine->nodes[i].capacity_bytes = node->attr->numanode.local_memory;
        machine->nodes[i].os_index = node->os_index;
    }
}

static void describe_caches(hwloc_topology_t hwloc, berth_cpu_machine *machine) {
    hwloc_obj_t object = hwloc_get_obj_by_type(hwloc, HWLOC_OBJ_PU, 0);
    for (; object; object = object->parent) {
        if (!hwloc_obj_type_is_dcache(object->type)) continue;
        unsigned level = object->attr->cache.depth;
        if (level >= 1 && level <= 3) machine->cache_bytes[level - 1] = object->attr->cache.size;
    }
}

static void ask(const void *user, void *answer) {
    berth_cpu_machine *machine = answer;
    hwloc_topology_t hwloc = NULL;
    memset(machine, 0, sizeof(*machine));
    if (hwloc_topology_init(&hwloc) != 0) return;
    if (hwloc_topology_load(hwloc) != 0) {
        hwloc_topology_destroy(hwloc);
        return;
    }
    restrict_to_process(hwloc, *(const pid_t *)user);
    machine->here = hwloc_topology_is_thissystem(hwloc) == 1;
    machine->hwloc_version = hwloc_get_api_version();
    copy_text(hwloc, "CPUModel", machine->model, sizeof(machine->model));
    copy_text(hwloc, "CPUVendor", machine->vendor, sizeof(machine->vendor));
    describe_cores(hwloc, machine);
    describe_nodes(hwloc, machine);
    describe_caches(hwloc, machine);
    machine->known = true;
    hwloc_topology_destroy(hwloc);
}

static berth_status ask_now(berth_cpu_machine *out_machine) {
    const pid_t process = getpid();
#ifdef __SANITIZE_ADDRESS__
    // A fork of a process with threads may find this sanitizer's allocator locked for ever.
    ask(&process, out_machine);
#else
    BERTH_TRY(berth_helper_ask("this machine's topology", ask, &process, out_machine,
                               sizeof(*out_machine), TIME_LIMIT_NS));
#endif
    if (out_machine->known) return BERTH_OK;
    return berth_status_make(BERTH_UNAVAILABLE, "hwloc cannot read this machine's topology");
}

// The last answer, and the processors that the process might run on then: the rest of a machine
// does not change while a process runs.
static struct {
    pthread_mutex_t mutex;
    berth_cpu_machine machine;
    cpu_set_t allowed;
    bool allowed_known;
} last = {.mutex = PTHREAD_MUTEX_INITIALIZER};

berth_status berth_cpu__ask_machine(berth_cpu_machine *out_machine) {
    cpu_set_t allowed;
    bool allowed_known = sched_getaffinity(getpid(), sizeof(allowed), &allowed) == 0;
    berth_status status = BERTH_OK;
    pthread_mutex_lock(&last.mutex);
    if (!last.machine.known || !allowed_known || !last.allowed_known ||
        !CPU_EQUAL(&allowed, &last.allowed)) {
        status = ask_now(&last.machine);
        if (status) last.machine.known = false;
        last.allowed = allowed;
        last.allowed_known = allowed_known;
    }
    if (!status) *out_machine = last.machine;
    pthread_mutex_unlock(&last.mutex);
    return status;
}
