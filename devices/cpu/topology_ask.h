// What hwloc knows of this machine, as plain data (private to devices/cpu). hwloc ends the process
// when memory runs out inside of it (2.9.0: an assertion, or a NULL pointer), so a helper process
// asks it (base/helper.h), once as long as the process may run on the same processors.
#ifndef BERTH_DEVICES_CPU_TOPOLOGY_ASK_H_
#define BERTH_DEVICES_CPU_TOPOLOGY_ASK_H_

#include "devices/driver.h"

#define BERTH_CPU_MOST_PROCESSORS 4096  // hardware threads; those with higher numbers are left out
#define BERTH_CPU_NO_PROCESSOR UINT16_MAX

typedef struct berth_cpu_node {
    uint64_t capacity_bytes;
    uint32_t os_index;
} berth_cpu_node;

typedef struct berth_cpu_machine {
    bool known;           // all below is filled in
    bool here;            // the machine that this process runs on: threads and memory can be bound
    uint32_t core_count;  // at least 1; cores that the process may use
    uint32_t node_count;  // at least 1
    berth_cpu_node nodes[BERTH_DEVICE_MAX_MEMORIES];
    uint64_t cache_bytes[3];  // as the first core sees them
    uint32_t hwloc_version;
    char model[128];
    char vendor[64];
    uint16_t core_of[BERTH_CPU_MOST_PROCESSORS];   // hardware thread: core, BERTH_CPU_NO_PROCESSOR
    uint16_t first_of[BERTH_CPU_MOST_PROCESSORS];  // core: its first hardware thread
} berth_cpu_machine;

// Fills in all of *out_machine.
//   errors:  UNAVAILABLE, OUT_OF_MEMORY
//   threads: thread-safe
BERTH_MUST_USE berth_status berth_cpu__ask_machine(berth_cpu_machine *out_machine);

#endif  // BERTH_DEVICES_CPU_TOPOLOGY_ASK_H_
