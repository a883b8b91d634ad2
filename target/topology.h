// What hwloc knows of a machine, as plain data: cores, memories, distances, devices on its buses;
// this machine, or another one from an XML export of hwloc (`lstopo machine.xml`). The cpu driver
// binds threads and memory by it, `berth target detect` and targets that are XML files describe
// machines by it.
//
//   berth_topology *topology = NULL;
//   BERTH_TRY(berth_topology_read(arena, text, length, &topology));     // an export
//   berth_topology_group groups[BERTH_TOPOLOGY_MAX_GROUPS];
//   uint32_t count = berth_topology_groups(topology, groups);           // a CPU device each
//
// hwloc ends the process when memory runs out inside of it (2.9.0: an assertion, or a NULL pointer),
// and exports may be hostile: a helper process asks it (base/helper.h).
#ifndef BERTH_TARGET_TOPOLOGY_H_
#define BERTH_TARGET_TOPOLOGY_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"

// What is beyond these is left out; `left_out` says so.
#define BERTH_TOPOLOGY_MAX_PROCESSORS                                                              \
    4096  // hardware threads; those with higher numbers are left out
#define BERTH_TOPOLOGY_MAX_NODES 64
#define BERTH_TOPOLOGY_MAX_KINDS 8
#define BERTH_TOPOLOGY_MAX_DEVICES 64
#define BERTH_TOPOLOGY_MAX_GROUPS 64
#define BERTH_TOPOLOGY_NONE UINT16_MAX

typedef struct berth_topology_core {
    uint16_t first;    // its first hardware thread
    uint16_t threads;  // how many it has
    uint16_t kind;     // index into kinds
    uint16_t node;     // index of the memory that is its own
    uint16_t l3;       // which last-level cache, NONE = none
} berth_topology_core;

// A kind of core, the fastest first; one where all are alike.
typedef struct berth_topology_kind {
    char name[32];     // "IntelCore", as hwloc has it; "" = not said
    int64_t clock_hz;  // 0 = not said
    int64_t
        cache_bytes[3];  // data caches of level 1 to 3 as one core sees them; 0 = none or not said
    int64_t cache_line_bytes;
} berth_topology_kind;

// A NUMA node.
typedef struct berth_topology_node {
    char kind[16];  // "DRAM", "MCDRAM", "HBM", "CXL-DRAM", as hwloc has it; "" = not said
    uint32_t os_index;
    uint64_t capacity_bytes;         // 0 = not said
    uint64_t bandwidth_bytes_per_s;  // from the nearest cores; 0 = not said
    uint64_t latency_ns;             // 0 = not said
    uint16_t home;                   // the node whose cores are nearest; itself where cores have it
                                     // as their own
} berth_topology_node;

// A device that may compute, found on a bus or by its name in the system.
typedef struct berth_topology_device {
    char kind[8];               // of target: "cuda", "opencl"
    char name[32];              // as the system calls it: "cuda0", "nvml3", or the PCI address
    char model[96];             // "Tesla V100-SXM3-32GB"; "" = not said
    char bus[32];               // of the host bridge that it shares with others
    uint16_t node;              // memory that it is near to
    uint64_t link_bytes_per_s;  // of its slot; 0 = not said
    uint64_t memory_bytes;      // 0 = not said, as all that follow
    int64_t compute_units;
    int64_t local_memory_bytes;
    int64_t l2_bytes;
    int64_t clock_hz;
} berth_topology_device;

// Immutable after build.
typedef struct berth_topology {
    bool known;     // all below is filled in
    bool here;      // the machine that this process runs on: threads and memory can be bound
    bool left_out;  // there is more than the limits allow
    uint32_t hwloc_version;
    char arch[32];
    char model[128];
    char vendor[64];
    char product[128];    // of the whole machine, "" = not said
    uint32_t core_count;  // at least 1; of this machine: cores that the process may use
    uint32_t package_count;
    berth_topology_core cores[BERTH_TOPOLOGY_MAX_PROCESSORS];
    uint16_t core_of[BERTH_TOPOLOGY_MAX_PROCESSORS];  // hardware thread: core, NONE
    uint32_t kind_count;                              // at least 1
    berth_topology_kind kinds[BERTH_TOPOLOGY_MAX_KINDS];
    uint32_t node_count;  // at least 1
    berth_topology_node nodes[BERTH_TOPOLOGY_MAX_NODES];
    // As firmware has them, 10 = a node to itself; 0 = not said.
    uint16_t node_distance[BERTH_TOPOLOGY_MAX_NODES][BERTH_TOPOLOGY_MAX_NODES];
    uint32_t device_count;
    berth_topology_device devices[BERTH_TOPOLOGY_MAX_DEVICES];
    // Links between devices (NVLink, xGMI), one direction; 0 = none that is known.
    uint64_t device_link_bytes_per_s[BERTH_TOPOLOGY_MAX_DEVICES][BERTH_TOPOLOGY_MAX_DEVICES];
} berth_topology;

// Fills in all of *out_topology for the cores that this process may use. hwloc is asked once as long
// as the process may run on the same processors. `devices`: those on its buses, too (slower).
//   errors:  UNAVAILABLE, OUT_OF_MEMORY
//   threads: thread-safe
BERTH_MUST_USE berth_status berth_topology_here(bool devices, berth_topology *out_topology);

// Reads an XML export of hwloc 1 or 2, NUL-terminated after its `length` bytes. Inside
// berth_arena_try.
//   errors: INVALID_ARGUMENT it is none, is of hwloc 3, or asks for too much; OUT_OF_MEMORY;
//           UNAVAILABLE there is no helper process
BERTH_MUST_USE berth_status berth_topology_read(berth_arena *arena, const char *text, size_t length,
                                                berth_topology **out_topology);
// Whether a text looks like an export: for better messages than a JSON parser has.
bool berth_topology_is_xml(const char *text, size_t length);

// Cores of one kind with one memory: what a CPU device is made of.
typedef struct berth_topology_group {
    uint16_t node;
    uint16_t kind;
    uint32_t core_count;
    uint32_t thread_count;
    uint32_t l3_count;  // last-level caches of these cores
} berth_topology_group;

// By memory, then the fastest kind first; more than the limit are not listed. The number of groups.
uint32_t berth_topology_groups(const berth_topology *topology,
                               berth_topology_group groups[BERTH_TOPOLOGY_MAX_GROUPS]);
bool berth_topology_group_has(const berth_topology *topology, const berth_topology_group *group,
                              uint32_t core);

// A set of hardware threads, and how targets and drivers write it: "0-3,8".
typedef struct berth_processor_set {
    uint64_t bits[BERTH_TOPOLOGY_MAX_PROCESSORS / 64];
} berth_processor_set;

void berth_processor_set_add(berth_processor_set *set, uint32_t processor);
bool berth_processor_set_has(const berth_processor_set *set, uint32_t processor);
uint32_t berth_processor_set_count(const berth_processor_set *set);
// Adds what a word says: "5", "0-3". False: it says something else, or a number that is too high.
bool berth_processor_set_add_word(berth_processor_set *set, const char *word);
// Words of ranges, separated by commas, as much as fits; true = all.
bool berth_processor_set_print(const berth_processor_set *set, char *out, size_t out_bytes);
// The hardware threads of a group's cores.
berth_processor_set berth_topology_group_processors(const berth_topology *topology,
                                                    const berth_topology_group *group);

#endif  // BERTH_TARGET_TOPOLOGY_H_
