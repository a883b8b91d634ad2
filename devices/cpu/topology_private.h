// Private to devices/cpu: what is behind berth_cpu_topology.
#ifndef BERTH_DEVICES_CPU_TOPOLOGY_PRIVATE_H_
#define BERTH_DEVICES_CPU_TOPOLOGY_PRIVATE_H_

#include "devices/cpu/topology.h"

#pragma GCC visibility push(hidden)  // of no library that links this one

struct berth_cpu_topology {
    berth_allocator allocator;
    berth_topology machine;
    berth_topology_group groups[BERTH_TOPOLOGY_MAX_GROUPS];
    uint32_t group_count;
};

#pragma GCC visibility pop

#endif  // BERTH_DEVICES_CPU_TOPOLOGY_PRIVATE_H_
