// Private to target/topology: hwloc's answers as plain data, made in a helper process.
#ifndef BERTH_TARGET_TOPOLOGY_READ_H_
#define BERTH_TARGET_TOPOLOGY_READ_H_

#include <hwloc.h>

#include "target/topology.h"

// ask.c: this machine as it is now (here.c keeps the answer). `devices`: those on its buses, too.
BERTH_MUST_USE berth_status berth_topology__ask(bool devices, berth_topology *out_topology);
// Fills in all but `here`.
void berth_topology__describe(hwloc_topology_t hwloc, berth_topology *out);
// devices.c: devices and the links between them; nodes are there already.
void berth_topology__describe_devices(hwloc_topology_t hwloc, berth_topology *out);
// Index of the node that an object is near to (0 where nothing says).
uint16_t berth_topology__node_near(hwloc_topology_t hwloc, const berth_topology *topology,
                                   hwloc_obj_t object);

#endif  // BERTH_TARGET_TOPOLOGY_READ_H_
