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
    berth_pool_facts facts;
    berth_pool_end_run(heap->pool);
    berth_pool_get_facts(heap->pool, &facts);
    const bool refused = facts.limit_bytes && facts.refused_count > heap->refused_count;
    heap->refused_count = facts.refused_count;
    if (!refused || !status || berth_status_code(status) != BERTH_OUT_OF_MEMORY) return status;
    berth_status_free(status);
    return berth_status_make(
        BERTH_OUT_OF_MEMORY,
        "the values of the run need more memory than their limit of %llu bytes: there was no "
        "room for one of %llu bytes. Raise the limit, or give smaller inputs",
        (unsigned long long)facts.limit_bytes, (unsigned long long)facts.refused_bytes);
}
