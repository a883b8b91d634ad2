#include "executor/vm_grown.h"

#include <string.h>

// Of a storage, a tensor of bytes: copies, rows, bytes of a row.
enum { dim_outer, dim_rows, dim_bytes };

static bool fits(const berth_vm_value *before, const berth_program_tensor *made,
                 const berth_program_room *room) {
    berth_tensor wanted = {.dtype = made->dtype, .rank = made->rank};
    memcpy(wanted.dims, made->dims, sizeof(wanted.dims));
    wanted.dims[room->axis] = before->tensor.dims[room->axis];
    if (before->kind != BERTH_VM_VALUE_TENSOR || before->tensor.dtype != wanted.dtype ||
        !berth_tensor_same_shape(&before->tensor, &wanted) ||
        wanted.dims[room->axis] > made->dims[room->axis])
        return false;
    return !before->storage ||
           (before->storage->tensor.dims[dim_outer] == (int64_t)room->outer &&
            before->storage->tensor.dims[dim_bytes] == (int64_t)room->row_bytes);
}

static bool can_go_on(const berth_vm_value *before, const berth_program_room *room,
                      berth_vm_memory memory, int64_t rows) {
    const berth_vm_value *storage = before->storage;
    if (!storage || storage->row_count != rows ||
        storage->tensor.dims[dim_rows] != (int64_t)room->capacity)
        return false;
    if (!memory.device || !storage->buffer) return !memory.device && !storage->buffer;
    return storage->buffer->device == memory.device && storage->buffer->memory == memory.memory;
}

// The bytes of a storage, for the host to look at or, with `write_only`, to set.
static berth_status open_bytes(const berth_vm_value *storage, bool write_only, void **out_data) {
    *out_data = storage->tensor.data;
    if (!storage->buffer) return BERTH_OK;
    return berth_buffer_map(storage->buffer, 0, berth_tensor_size_bytes(&storage->tensor),
                            write_only, out_data);
}

static berth_status close_bytes(const berth_vm_value *storage, void *data) {
    return storage->buffer ? berth_buffer_unmap(storage->buffer, data) : BERTH_OK;
}

static void count_crossing(const berth_vm_value *storage, bool to_device, uint64_t bytes,
                           berth_vm_traffic *traffic) {
    if (!storage->buffer || bytes == 0) return;
    *(to_device ? &traffic->to_device_count : &traffic->to_host_count) += 1;
    *(to_device ? &traffic->to_device_bytes : &traffic->to_host_bytes) += bytes;
}

// All of it, with the `used` bytes of rows that each copy has so far, which are `from` bytes apart.
static berth_status fill_storage(const berth_vm_value *storage, const char *rows, size_t used,
                                 size_t from) {
    const size_t size = berth_tensor_size_bytes(&storage->tensor);
    const int64_t *dims = storage->tensor.dims;
    const size_t into = (size_t)(dims[dim_rows] * dims[dim_bytes]);
    void *data = NULL;
    if (size == 0) return BERTH_OK;
    BERTH_TRY(open_bytes(storage, true, &data));
    memset(data, 0, size);
    for (int64_t o = 0; o < dims[dim_outer] && used; ++o)
        memcpy((char *)data + (size_t)o * into, rows + (size_t)o * from, used);
    return close_bytes(storage, data);
}

static berth_status make_storage(berth_allocator allocator, const berth_program_room *room,
                                 berth_vm_memory memory, berth_vm_value **out_storage) {
    const int64_t dims[] = {(int64_t)room->outer, (int64_t)room->capacity,
                            (int64_t)room->row_bytes};
    if (memory.device)
        return berth_vm_value_on_device(allocator, memory, BERTH_DTYPE_U8, 3, dims, out_storage);
    return berth_vm_value_tensor(allocator, BERTH_DTYPE_U8, 3, dims, out_storage);
}

// The rows so far into memory of its own.
static berth_status copy_rows(berth_vm_value *before, const berth_program_room *room, int64_t rows,
                              const berth_vm_value *storage, berth_vm_traffic *traffic) {
    const size_t used = (size_t)rows * room->row_bytes;
    const berth_vm_value *old = before->storage;
    if (!old) {
        BERTH_TRY(berth_vm_value_to_host(before, traffic));
        return fill_storage(storage, before->tensor.data, used, used);
    }
    void *data = NULL;
    BERTH_TRY(open_bytes(old, false, &data));
    count_crossing(old, false, room->outer * used, traffic);
    berth_status status = fill_storage(
        storage, data, used, (size_t)(old->tensor.dims[dim_rows] * old->tensor.dims[dim_bytes]));
    berth_status end = close_bytes(old, data);
    if (!status) return end;
    berth_status_ignore(end);
    return status;
}

// Memory of its own, with the rows so far.
static berth_status copy_storage(berth_vm_value *before, const berth_program_room *room,
                                 berth_vm_memory memory, int64_t rows, berth_vm_traffic *traffic,
                                 berth_vm_value **out_storage) {
    BERTH_TRY(make_storage(before->allocator, room, memory, out_storage));
    berth_vm_value *storage = *out_storage;
    storage->row_count = rows;
    berth_status status = copy_rows(before, room, rows, storage, traffic);
    if (status) {
        berth_vm_value_release(storage);
        *out_storage = NULL;
        return status;
    }
    count_crossing(storage, true, room->outer * (size_t)rows * room->row_bytes, traffic);
    return BERTH_OK;
}

berth_status berth_vm_grown_make(berth_vm_value *before, const berth_program_tensor *made,
                                 const berth_program_room *room, berth_vm_memory memory,
                                 berth_vm_traffic *traffic, uint64_t *copied_bytes,
                                 berth_vm_value **out_value) {
    *out_value = NULL;
    if (!fits(before, made, room))
        return berth_status_make(BERTH_INCOMPATIBLE, "what grows has other dimensions");
    const int64_t rows = before->tensor.dims[room->axis];
    berth_vm_value *storage = NULL;
    if (can_go_on(before, room, memory, rows)) {
        storage = berth_vm_value_retain(before->storage);
    } else {
        BERTH_TRY(copy_storage(before, room, memory, rows, traffic, &storage));
        *copied_bytes += room->outer * (size_t)rows * room->row_bytes;
    }
    berth_tensor tensor = {.dtype = made->dtype, .rank = made->rank, .data = storage->tensor.data};
    memcpy(tensor.dims, made->dims, sizeof(tensor.dims));
    berth_status status = berth_vm_value_borrow(before->allocator, &tensor, out_value);
    if (status) {
        berth_vm_value_release(storage);
        return status;
    }
    (*out_value)->storage = storage;
    return BERTH_OK;
}

// All rows of a tensor, in the memory that it grows in.
static int64_t rows_of(const berth_vm_value *value) {
    const berth_tensor *storage = &value->storage->tensor;
    return (int64_t)berth_tensor_size_bytes(&value->tensor) /
           (storage->dims[dim_outer] * storage->dims[dim_bytes]);
}

void berth_vm_grown_keep(berth_vm_value *value) {
    value->storage->row_count = rows_of(value);
}

// The rows of all copies, one after the other.
static void gather_rows(const berth_vm_value *grown, const void *data, void *out) {
    const int64_t *dims = grown->storage->tensor.dims;
    const size_t used = (size_t)(rows_of(grown) * dims[dim_bytes]);
    const size_t apart = (size_t)(dims[dim_rows] * dims[dim_bytes]);
    for (int64_t o = 0; o < dims[dim_outer] && used; ++o)
        memcpy((char *)out + (size_t)o * used, (const char *)data + (size_t)o * apart, used);
}

berth_status berth_vm_grown_to_dense(berth_vm_value **value, berth_vm_traffic *traffic) {
    const berth_vm_value *grown = *value;
    berth_vm_value *dense = NULL;
    void *data = NULL;
    if (!grown || !grown->storage) return BERTH_OK;
    BERTH_TRY(berth_vm_value_tensor(grown->allocator, grown->tensor.dtype, grown->tensor.rank,
                                    grown->tensor.dims, &dense));
    const size_t size = berth_tensor_size_bytes(&dense->tensor);
    berth_status status = size ? open_bytes(grown->storage, false, &data) : BERTH_OK;
    if (!status && size) {
        gather_rows(grown, data, dense->tensor.data);
        count_crossing(grown->storage, false, size, traffic);
        status = close_bytes(grown->storage, data);
    }
    if (status) {
        berth_vm_value_release(dense);
        return status;
    }
    berth_vm_value_release(*value);
    *value = dense;
    return BERTH_OK;
}
