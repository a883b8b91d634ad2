// What hwloc says about this machine: cores that the process may use, NUMA memories, binding.
#ifndef BERTH_DEVICES_CPU_TOPOLOGY_H_
#define BERTH_DEVICES_CPU_TOPOLOGY_H_

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "devices/driver.h"
#include "target/topology.h"

#pragma GCC visibility push(hidden)  // of no library that links this one

typedef struct berth_cpu_topology berth_cpu_topology;

// Cores outside the process's affinity mask are left out. Immutable, thread-safe.
BERTH_MUST_USE berth_status berth_cpu_topology_load(berth_allocator allocator,
                                                    berth_cpu_topology **out_topology);
void berth_cpu_topology_destroy(berth_cpu_topology *topology);  // NULL is fine

uint32_t berth_cpu_topology_core_count(const berth_cpu_topology *topology);

// ---- devices: all cores, or a part of them ----

#define BERTH_CPU_NO_CORE UINT32_MAX

// The cores and memories of one device.
typedef struct berth_cpu_part {
    bool pinned;            // its threads keep to these cores
    uint32_t core_count;    // at least 1
    uint16_t *cores;        // indices, core_count of them
    uint32_t wanted_count;  // cores that were asked for; more than core_count where fewer are here
    uint32_t thread_count;  // at least 1: as many as there are cores, or as were asked for
    uint32_t memory_count;  // NUMA nodes, its own first
    uint16_t memories[BERTH_DEVICE_MAX_MEMORIES];
} berth_cpu_part;

// All cores; then, where there are several, each group of cores of one kind and one memory.
uint32_t berth_cpu_topology_part_count(const berth_cpu_topology *topology);

// What device `ordinal` is made of. `attributes` choose among its cores:
//   cpuset=0-3,8        these hardware threads; those that are not here are left out
//   share=1 cores=4,2   the second of two devices that share them out, which want so many cores each.
//                       Groups of cores are not divided where each device can have one of its own.
//   threads=2           any of the cores, and no more threads than this
// NULL or "" = all of them.
//   ownership: berth_cpu_part_end frees it
//   errors:    INVALID_ARGUMENT, NOT_FOUND none of the processors is here, or there are more devices
//              than cores; OUT_OF_MEMORY
BERTH_MUST_USE berth_status berth_cpu_part_choose(const berth_cpu_topology *topology,
                                                  uint32_t ordinal, const char *attributes,
                                                  berth_cpu_part *out_part);
void berth_cpu_part_end(const berth_cpu_topology *topology, berth_cpu_part *part);

// Name, cores and one memory per NUMA node: "global", "numa:1", ...
void berth_cpu_part_info(const berth_cpu_topology *topology, const berth_cpu_part *part,
                         berth_device_info *out_info);

// ---- binding ----

// Hardware thread that the calling thread runs on just now, UINT32_MAX where the system does not
// say; some nanoseconds.
uint32_t berth_cpu_topology_processor(void);
// Core of a hardware thread; BERTH_CPU_NO_CORE for one that the process may not use.
uint32_t berth_cpu_topology_core_of(const berth_cpu_topology *topology, uint32_t processor);
// Binds a thread to a core (its first hardware thread), where the system allows it.
void berth_cpu_topology_bind_thread(const berth_cpu_topology *topology, pthread_t thread,
                                    uint32_t core);
// Puts the whole pages of a range on a NUMA node; nothing to do on machines with one node. Undo with
// `release` before the range is freed.
void berth_cpu_topology_bind_range(const berth_cpu_topology *topology, void *data,
                                   size_t size_bytes, uint32_t node);
void berth_cpu_topology_release_range(const berth_cpu_topology *topology, void *data,
                                      size_t size_bytes);

#pragma GCC visibility pop

#endif  // BERTH_DEVICES_CPU_TOPOLOGY_H_
