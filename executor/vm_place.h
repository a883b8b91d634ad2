// Values on devices: what a segment leaves in a device's memory is read there by the next one that uses it
// there, without a copy by way of the host. A value whose only bytes are on a device has no `tensor.data`; one
// that is needed elsewhere gets a copy, which it keeps, so that a value that does not change crosses once.
//
//   BERTH_TRY(berth_vm_value_to_device(value, device, 0, &traffic, &buffer));   // buffer lives with the value
#ifndef BERTH_EXECUTOR_VM_PLACE_H_
#define BERTH_EXECUTOR_VM_PLACE_H_

#include "devices/device.h"
#include "executor/vm_value.h"
#include "executor/workspaces.h"

// Values that crossed between the host's memory and a device's.
typedef struct berth_vm_traffic {
    uint64_t to_device_count, to_device_bytes;
    uint64_t to_host_count, to_host_bytes;
} berth_vm_traffic;

// A memory of an open device; `device` NULL: the host's.
typedef struct berth_vm_memory {
    berth_device *device;
    uint32_t memory;
    berth_workspaces *blocks;  // where values get their bytes from
} berth_vm_memory;

// A tensor in memory of a device. Its bytes are not set. Errors: OUT_OF_RANGE, OUT_OF_MEMORY; those of the
// device.
BERTH_MUST_USE berth_status berth_vm_value_on_device(berth_allocator allocator,
                                                     berth_vm_memory memory, berth_dtype dtype,
                                                     int rank, const int64_t *dims,
                                                     berth_vm_value **out_value);
// Gives a tensor bytes in host memory, if it has none (no grown one: vm_grown.h). Errors: OUT_OF_MEMORY; those
// of the device.
BERTH_MUST_USE berth_status berth_vm_value_to_host(berth_vm_value *value,
                                                   berth_vm_traffic *traffic);
// The tensor's bytes in that memory, which the value keeps. Errors: OUT_OF_MEMORY; those of the device.
BERTH_MUST_USE berth_status berth_vm_value_to_device(berth_vm_value *value, berth_vm_memory memory,
                                                     berth_vm_traffic *traffic,
                                                     berth_buffer **out_buffer);
// Gives up the bytes on a device of a tensor that has them in host memory, too, and those of the elements of a
// sequence: before the device is closed. NULL is fine.
void berth_vm_value_leave_device(berth_vm_value *value);

#endif  // BERTH_EXECUTOR_VM_PLACE_H_
