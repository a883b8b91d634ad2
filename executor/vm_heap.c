#include "executor/vm_heap.h"

berth_status berth_vm_heap_open(berth_vm_heap *heap) {
    *heap = (berth_vm_heap){.lists = {.allocator = berth_allocator_system()}};
    return berth_pool_create(berth_allocator_system(), &heap->pool);
}

void berth_vm_heap_close(berth_vm_heap *heap) {
    if (!heap->pool) return;
    berth_bump_close(&heap->lists);
    berth_pool_close(heap->pool);
    heap->pool = NULL;
}

berth_status berth_vm_heap_end_run(berth_vm_heap *heap, berth_status status) {
    berth_pool_end_run(heap->pool);
    return berth_pool_say_refusal(heap->pool, status);
}
