#include "executor/vm_place.h"

#include <string.h>

berth_status berth_vm_value_on_device(berth_allocator allocator, berth_vm_memory memory,
                                      berth_dtype dtype, int rank, const int64_t *dims,
                                      berth_vm_value **out_value) {
    berth_tensor tensor = {.dtype = dtype, .rank = rank};
    size_t bytes = 0;
    *out_value = NULL;
    BERTH_TRY(berth_shape_size_bytes(dtype, rank, dims, NULL, &bytes));
    for (int d = 0; d < rank; ++d) tensor.dims[d] = dims[d];
    BERTH_TRY(berth_vm_value_borrow(allocator, &tensor, out_value));
    (*out_value)->blocks = memory.blocks;
    berth_status status = berth_workspaces_take(memory.blocks, memory.device, memory.memory, bytes,
                                                &(*out_value)->buffer);
    if (!status) return BERTH_OK;
    berth_vm_value_release(*out_value);
    *out_value = NULL;
    return status;
}

static berth_status copy_from(berth_buffer *buffer, void *to, size_t size_bytes) {
    void *data = NULL;
    BERTH_TRY(berth_buffer_map(buffer, 0, size_bytes, false, &data));
    memcpy(to, data, size_bytes);
    return berth_buffer_unmap(buffer, data);
}

static berth_status copy_into(berth_buffer *buffer, const void *from, size_t size_bytes) {
    void *data = NULL;
    BERTH_TRY(berth_buffer_map(buffer, 0, size_bytes, true, &data));
    memcpy(data, from, size_bytes);
    return berth_buffer_unmap(buffer, data);
}

berth_status berth_vm_value_to_host(berth_vm_value *value, berth_vm_traffic *traffic) {
    if (value->kind != BERTH_VM_VALUE_TENSOR || !value->buffer || value->tensor.data)
        return BERTH_OK;
    size_t size_bytes = berth_tensor_size_bytes(&value->tensor);
    if (size_bytes == 0) return BERTH_OK;
    void *host = berth_alloc(value->allocator, size_bytes);
    if (!host) return berth_status_oom();
    berth_status status = copy_from(value->buffer, host, size_bytes);
    if (status) {
        berth_free(value->allocator, host, size_bytes);
        return status;
    }
    value->host = value->tensor.data = host;
    traffic->to_host_count++;
    traffic->to_host_bytes += size_bytes;
    return BERTH_OK;
}

berth_status berth_vm_value_to_device(berth_vm_value *value, berth_vm_memory memory,
                                      berth_vm_traffic *traffic, berth_buffer **out_buffer) {
    berth_buffer *made = NULL;
    *out_buffer = value->buffer;
    if (value->buffer && value->buffer->device == memory.device &&
        value->buffer->memory == memory.memory)
        return BERTH_OK;
    *out_buffer = NULL;
    BERTH_TRY(berth_vm_value_to_host(value, traffic));
    size_t size_bytes = berth_tensor_size_bytes(&value->tensor);
    BERTH_TRY(
        berth_workspaces_take(memory.blocks, memory.device, memory.memory, size_bytes, &made));
    berth_status status = size_bytes ? copy_into(made, value->tensor.data, size_bytes) : BERTH_OK;
    if (status) {
        berth_workspaces_give(memory.blocks, made);
        return status;
    }
    berth_workspaces_give(value->blocks, value->buffer);
    value->blocks = memory.blocks;
    *out_buffer = value->buffer = made;
    traffic->to_device_count++;
    traffic->to_device_bytes += size_bytes;
    return BERTH_OK;
}

void berth_vm_value_leave_device(berth_vm_value *value) {
    if (!value) return;
    for (uint32_t i = 0; i < value->item_count; ++i) berth_vm_value_leave_device(value->items[i]);
    if (value->kind != BERTH_VM_VALUE_TENSOR || !value->buffer) return;
    if (!value->tensor.data && berth_tensor_size_bytes(&value->tensor)) return;
    berth_workspaces_give(value->blocks, value->buffer);
    value->buffer = NULL;
}
