// Values of the virtual machine: tensors in host memory or on a device (vm_place.h), maps, sequences of these, and nothing (an empty
// optional). The bytes of strings are in the allocation of their tensor, unless it is borrowed. Values are counted by their references and never change once somebody else may see
// them. Not thread-safe: the values of one run belong to one thread.
#ifndef BERTH_EXECUTOR_VM_VALUE_H_
#define BERTH_EXECUTOR_VM_VALUE_H_

#include "base/alloc.h"
#include "base/tensor.h"

typedef struct berth_buffer berth_buffer;
typedef struct berth_workspaces berth_workspaces;

typedef enum berth_vm_value_kind {
    BERTH_VM_VALUE_NOTHING,
    BERTH_VM_VALUE_TENSOR,
    BERTH_VM_VALUE_SEQUENCE,
    BERTH_VM_VALUE_MAP,  // two items: keys and values, vectors of as many elements
} berth_vm_value_kind;

typedef struct berth_vm_value berth_vm_value;
struct berth_vm_value {
    berth_allocator allocator;
    uint32_t references;
    berth_vm_value_kind kind;
    berth_tensor tensor;  // TENSOR: data lies after the struct, aligned to 64 bytes, or is borrowed
    berth_vm_value **items;  // SEQUENCE, MAP
    uint32_t item_count;
    uint32_t item_capacity;
    berth_vm_value
        *storage;       // of a tensor that grows (vm_grown.h): the memory that it lies in; or NULL
    int64_t row_count;  // of such memory: how many rows of it are somebody's
    berth_buffer *buffer;      // of a tensor: its bytes on a device, or NULL
    berth_workspaces *blocks;  // where they are from
    void *host;                // what `tensor.data` is where the bytes came from there, or NULL
    size_t size_bytes;         // of this allocation
};

// One reference, the caller's. Dims are checked. Data is not set. Errors: OUT_OF_RANGE, OUT_OF_MEMORY.
BERTH_MUST_USE berth_status berth_vm_value_tensor(berth_allocator allocator, berth_dtype dtype,
                                                  int rank, const int64_t *dims,
                                                  berth_vm_value **out_value);
// A copy of a tensor's data, the bytes of strings included. Errors: OUT_OF_MEMORY.
BERTH_MUST_USE berth_status berth_vm_value_copy(berth_allocator allocator,
                                                const berth_tensor *tensor,
                                                berth_vm_value **out_value);
// The tensor's own data, which must outlive the value. Errors: OUT_OF_MEMORY.
BERTH_MUST_USE berth_status berth_vm_value_borrow(berth_allocator allocator,
                                                  const berth_tensor *tensor,
                                                  berth_vm_value **out_value);
// Replaces a tensor of strings whose bytes are not its own by one that has them. The reference at *value
// stays the caller's. Errors: OUT_OF_MEMORY (*value is as it was).
BERTH_MUST_USE berth_status berth_vm_value_own_strings(berth_vm_value **value);
// A map of two tensors, of which it takes references of its own. Errors: OUT_OF_MEMORY.
BERTH_MUST_USE berth_status berth_vm_value_map(berth_vm_value *keys, berth_vm_value *values,
                                               berth_vm_value **out_value);
// An empty sequence; or nothing. Errors: OUT_OF_MEMORY.
BERTH_MUST_USE berth_status berth_vm_value_sequence(berth_allocator allocator,
                                                    berth_vm_value **out_value);
BERTH_MUST_USE berth_status berth_vm_value_nothing(berth_allocator allocator,
                                                   berth_vm_value **out_value);

// Replaces a value that borrows data, or a sequence that holds such values, by one with copies. The
// reference at *value stays the caller's. Errors: OUT_OF_MEMORY (*value is as it was).
BERTH_MUST_USE berth_status berth_vm_value_own(berth_vm_value **value);

berth_vm_value *berth_vm_value_retain(berth_vm_value *value);
void berth_vm_value_release(berth_vm_value *value);  // NULL is fine

// Puts a tensor or a map before `position` (<= item_count) of a sequence that nobody else sees; takes a
// reference of its own. Errors: UNSUPPORTED the element is neither; OUT_OF_MEMORY.
BERTH_MUST_USE berth_status berth_vm_value_insert(berth_vm_value *sequence, uint32_t position,
                                                  berth_vm_value *item);
// A new sequence with the same elements. Errors: OUT_OF_MEMORY.
BERTH_MUST_USE berth_status berth_vm_value_copy_sequence(const berth_vm_value *sequence,
                                                         berth_vm_value **out_value);

#endif  // BERTH_EXECUTOR_VM_VALUE_H_
