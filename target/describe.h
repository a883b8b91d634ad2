// A machine as a MultiTarget: from what hwloc and the drivers say of it, and what was measured there.
//
//   berth_machine_description description = {.topology = topology, .facts = &facts};
//   const char *text = NULL;
//   BERTH_TRY(berth_machine_describe(arena, &description, &text));   // a target file
//
// The text is canonical JSON, and with it a field "sources", which is no part of the target: for
// each of its figures, by its path, whether it was "measured", "reported" or "assumed", and how.
//
// A CPU device stands for the cores of one kind and one NUMA node; a NUMA node is a memory that the
// devices of its cores reach. Links between NUMA nodes, to devices and between devices follow.
#ifndef BERTH_TARGET_DESCRIBE_H_
#define BERTH_TARGET_DESCRIBE_H_

#include "target/target.h"
#include "target/topology.h"

// Of the cores of a group. 0 = not measured.
typedef struct berth_measured_cpu {
    double read_bytes_per_s;       // its own memory, all cores
    double core_read_bytes_per_s;  // its own memory, one core alone
    int64_t latency_ns;            // its own memory, one core, each load waits for the one before
    int64_t dispatch_ns;
    double flops[BERTH_DTYPE_COUNT];
} berth_measured_cpu;

// Of a driver's device. 0 = not measured.
typedef struct berth_measured_device {
    double memory_bytes_per_s;  // read and written by copies inside it
    double link_bytes_per_s;    // the slower of both directions
    int64_t link_latency_ns;
    int64_t dispatch_ns;
    double flops[BERTH_DTYPE_COUNT];
} berth_measured_device;

typedef struct berth_machine_description {
    const char *name;                      // NULL = made of what the machine is called
    const berth_topology *topology;        // of this machine or another
    const berth_machine_facts *facts;      // of this machine; NULL: it is another
    const berth_measured_cpu *cpus;        // by group (berth_topology_groups); NULL = none
    const berth_measured_device *devices;  // by facts->devices; NULL = none
} berth_machine_description;

// An entry point, as berth_target_parse. The text lives in the arena.
//   errors: INVALID_ARGUMENT what the machine is makes no valid target; OUT_OF_MEMORY
BERTH_MUST_USE berth_status berth_machine_describe(berth_arena *arena,
                                                   const berth_machine_description *description,
                                                   const char **out_text);

#endif  // BERTH_TARGET_DESCRIBE_H_
