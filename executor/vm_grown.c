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

static bool can_go_on(const berth_vm_value *before, const berth_program_room *room, int64_t rows) {
    const berth_vm_value *storage = before->storage;
    return storage && storage->row_count == rows &&
           storage->tensor.dims[dim_rows] == (int64_t)room->capacity;
}

// Memory of its own, with the rows so far.
static berth_status copy_storage(const berth_vm_value *before, const berth_program_room *room,
                                 int64_t rows, uint64_t *copied_bytes,
                                 berth_vm_value **out_storage) {
    const int64_t dims[] = {(int64_t)room->outer, (int64_t)room->capacity,
                            (int64_t)room->row_bytes};
    const size_t used = (size_t)rows * room->row_bytes;
    const size_t into = room->capacity * room->row_bytes;
    const size_t from = before->storage ? (size_t)(before->storage->tensor.dims[dim_rows] *
                                                   before->storage->tensor.dims[dim_bytes])
                                        : used;
    BERTH_TRY(berth_vm_value_tensor(before->allocator, BERTH_DTYPE_U8, 3, dims, out_storage));
    berth_vm_value *storage = *out_storage;
    storage->row_count = rows;
    memset(storage->tensor.data, 0, berth_tensor_size_bytes(&storage->tensor));
    for (uint64_t o = 0; o < room->outer && used; ++o)
        memcpy((char *)storage->tensor.data + o * into,
               (const char *)before->tensor.data + o * from, used);
    *copied_bytes += room->outer * used;
    return BERTH_OK;
}

berth_status berth_vm_grown_make(const berth_vm_value *before, const berth_program_tensor *made,
                                 const berth_program_room *room, uint64_t *copied_bytes,
                                 berth_vm_value **out_value) {
    *out_value = NULL;
    if (!fits(before, made, room))
        return berth_status_make(BERTH_INCOMPATIBLE, "what grows has other dimensions");
    const int64_t rows = before->tensor.dims[room->axis];
    berth_vm_value *storage = NULL;
    if (can_go_on(before, room, rows))
        storage = berth_vm_value_retain(before->storage);
    else
        BERTH_TRY(copy_storage(before, room, rows, copied_bytes, &storage));
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

berth_status berth_vm_grown_to_dense(berth_vm_value **value) {
    const berth_vm_value *grown = *value;
    berth_vm_value *dense = NULL;
    if (!grown || !grown->storage) return BERTH_OK;
    const berth_tensor *storage = &grown->storage->tensor;
    BERTH_TRY(berth_vm_value_tensor(grown->allocator, grown->tensor.dtype, grown->tensor.rank,
                                    grown->tensor.dims, &dense));
    const size_t used = (size_t)(rows_of(grown) * storage->dims[dim_bytes]);
    const size_t apart = (size_t)(storage->dims[dim_rows] * storage->dims[dim_bytes]);
    for (int64_t o = 0; o < storage->dims[dim_outer] && used; ++o)
        memcpy((char *)dense->tensor.data + (size_t)o * used,
               (const char *)storage->data + (size_t)o * apart, used);
    berth_vm_value_release(*value);
    *value = dense;
    return BERTH_OK;
}
