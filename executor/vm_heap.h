// Memory of a machine's runs: a pool (memory/pool.h) that values lie in, which results outlive, and lists that last as
// long as a call of the byte code.
//
//   BERTH_TRY(berth_vm_heap_open(&heap));
//   berth_vm_machine machine = {.allocator = berth_pool_allocator(heap.pool), .lists = &heap.lists, ...};
//   return berth_vm_heap_end_run(&heap, berth_vm_run(&machine, ...));
//   berth_vm_heap_close(&heap);
#ifndef BERTH_EXECUTOR_VM_HEAP_H_
#define BERTH_EXECUTOR_VM_HEAP_H_

#include "memory/bump.h"
#include "memory/pool.h"

// All zero = not open.
typedef struct berth_vm_heap {
    berth_pool *pool;
    berth_bump lists;
} berth_vm_heap;

// Errors: OUT_OF_MEMORY.
BERTH_MUST_USE berth_status berth_vm_heap_open(berth_vm_heap *heap);
void berth_vm_heap_close(berth_vm_heap *heap);  // all zero is fine

// After a run: what runs do not need goes back to the system. Takes the run's status and gives it back
// (berth_pool_say_refusal).
BERTH_MUST_USE berth_status berth_vm_heap_end_run(berth_vm_heap *heap, berth_status status);

#endif  // BERTH_EXECUTOR_VM_HEAP_H_
