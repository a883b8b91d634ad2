// The devices of this machine, as Berth's drivers find them.
//
//   berth_device_list *list;
//   berth_status status = berth_device_list_create(&list);
//   for (uint32_t i = 0; i < berth_device_list_count(list); ++i)
//       printf("%s  %s\n", berth_device_list_at(list, i)->device, berth_device_list_at(list, i)->name);
//   berth_device_list_free(list);
#ifndef BERTH_DEVICE_H_
#define BERTH_DEVICE_H_

#include <berth/status.h>
#include <stdint.h>

BERTH_BEGIN

// A memory that a device works in. Later versions may add members at the end.
typedef struct berth_memory_facts {
    const char *scope;         // "global", "numa:1"
    uint64_t capacity_bytes;   // 0 = unknown
    uint32_t alignment_bytes;  // of what is allocated there
    int host_visible;          // not 0: it is host memory, read and written without copies
} berth_memory_facts;

// A device. Later versions may add members at the end.
typedef struct berth_device_facts {
    const char *device;           // "opencl:0", as targets and sessions name it
    const char *kind;             // "opencl"
    uint32_t ordinal;             // among the devices of its kind
    const char *name;             // "NVIDIA H200"
    const char *vendor;           // "" = unknown, here and below
    const char *driver_version;   //
    uint64_t memory_bytes;        // of its first memory; 0 = unknown
    uint32_t compute_units;       // cores, or what the driver counts
    const char *features;         // what kernels may use, and what is lacking, for people
    uint64_t max_group_size;      // of work items; 0 = unknown or no such thing, here and below
    uint64_t local_memory_bytes;  // of a group
    uint64_t cache_bytes[3];      // data caches of level 1 to 3 that one core uses
    int shares_host_memory;       // not 0: its buffers can be the host's
    const berth_memory_facts *const *memories;  // [memory_count]
    uint32_t memory_count;
    uint32_t max_bindings;  // buffers of one kernel
} berth_device_facts;

// A driver, with or without a device here. Later versions may add members at the end.
typedef struct berth_driver_facts {
    const char *kind;         // "vulkan"
    const char *description;  // one line
    const char
        *missing;  // why it cannot work here ("libvulkan.so.1: cannot open ..."); "" = it can
    const char *library;  // the file that it was loaded from; "" = built in
    // What is missing though it works (a compiler of kernels), devices that it leaves out and why; "" = nothing.
    const char *lacking;
} berth_driver_facts;

typedef struct berth_device_list berth_device_list;

// Asks every driver. Opens none of the devices, though some drivers take a second to answer.
//   ownership: the caller frees the list, and with it all that berth_..._at gave
//   errors:    OUT_OF_MEMORY
//   threads:   thread-safe; a list does not change
BERTH_API BERTH_MUST_USE berth_status berth_device_list_create(berth_device_list **out_list);
BERTH_API void berth_device_list_free(berth_device_list *list);  // NULL is fine

BERTH_API uint32_t berth_device_list_count(const berth_device_list *list);
// NULL when there is no such index.
BERTH_API const berth_device_facts *berth_device_list_at(const berth_device_list *list,
                                                         uint32_t index);
BERTH_API uint32_t berth_device_list_driver_count(const berth_device_list *list);
BERTH_API const berth_driver_facts *berth_device_list_driver_at(const berth_device_list *list,
                                                                uint32_t index);

// Loads a driver from a shared library (docs/add_driver.md) for the rest of the process, in place of a
// built-in one of its kind. It is native code and runs with the process's rights.
//   ownership: *out_kind, the kind of device it serves, lives as long as the process
//   errors:    NOT_FOUND; UNAVAILABLE it does not load; INCOMPATIBLE it is none, or one for another
//              version; ALREADY_EXISTS another library serves that kind
//   threads:   thread-safe
BERTH_API BERTH_MUST_USE berth_status berth_driver_load(const char *path, const char **out_kind);

BERTH_END

#endif  // BERTH_DEVICE_H_
