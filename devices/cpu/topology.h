// What hwloc says about this machine: cores that the process may use, NUMA memories, binding.
#ifndef BERTH_DEVICES_CPU_TOPOLOGY_H_
#define BERTH_DEVICES_CPU_TOPOLOGY_H_

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "devices/driver.h"

typedef struct berth_cpu_topology berth_cpu_topology;

// Cores outside the process's affinity mask are left out. Immutable, thread-safe.
BERTH_MUST_USE berth_status berth_cpu_topology_load(berth_allocator allocator,
                                                    berth_cpu_topology **out_topology);
void berth_cpu_topology_destroy(berth_cpu_topology *topology);  // NULL is fine

uint32_t berth_cpu_topology_core_count(const berth_cpu_topology *topology);
// Name, cores and one memory per NUMA node: "global", "numa:1", ...
void berth_cpu_topology_info(const berth_cpu_topology *topology, berth_device_info *out_info);

#define BERTH_CPU_NO_CORE UINT32_MAX

// Hardware thread that the calling thread runs on just now, UINT32_MAX where the system does not
// say; some nanoseconds.
uint32_t berth_cpu_topology_processor(void);
// Core of a hardware thread; BERTH_CPU_NO_CORE for one that the process may not use.
uint32_t berth_cpu_topology_core_of(const berth_cpu_topology *topology, uint32_t processor);
// Binds a thread to a core (its first hardware thread), where the system allows it.
void berth_cpu_topology_bind_thread(const berth_cpu_topology *topology, pthread_t thread,
                                    uint32_t core);
// Puts the whole pages of a range on the NUMA node of memory `memory`; nothing to do on machines
// with one node. Undo with `release` before the range is freed.
void berth_cpu_topology_bind_range(const berth_cpu_topology *topology, void *data,
                                   size_t size_bytes, uint32_t memory);
void berth_cpu_topology_release_range(const berth_cpu_topology *topology, void *data,
                                      size_t size_bytes);

#endif  // BERTH_DEVICES_CPU_TOPOLOGY_H_
