#include "executor/vm_value.h"

#include <string.h>

#include "executor/workspaces.h"

enum { data_alignment = 64 };

static berth_status make(berth_allocator allocator, berth_vm_value_kind kind, size_t data_bytes,
                         berth_vm_value **out_value) {
    size_t size = sizeof(berth_vm_value) + data_alignment;
    *out_value = NULL;
    if (data_bytes > SIZE_MAX - size) return berth_status_oom();
    berth_vm_value *value = berth_alloc(allocator, size + data_bytes);
    if (!value) return berth_status_oom();
    *value = (berth_vm_value){
        .allocator = allocator, .references = 1, .kind = kind, .size_bytes = size + data_bytes};
    *out_value = value;
    return BERTH_OK;
}

// With so many bytes after the elements.
static berth_status make_tensor(berth_allocator allocator, berth_dtype dtype, int rank,
                                const int64_t *dims, size_t more, berth_vm_value **out_value) {
    size_t bytes = 0, all = 0;
    *out_value = NULL;
    BERTH_TRY(berth_shape_size_bytes(dtype, rank, dims, NULL, &bytes));
    if (__builtin_add_overflow(bytes, more, &all)) return berth_status_oom();
    BERTH_TRY(make(allocator, BERTH_VM_VALUE_TENSOR, all, out_value));
    berth_tensor *tensor = &(*out_value)->tensor;
    uintptr_t end = (uintptr_t)(*out_value + 1);
    uintptr_t data = (end + data_alignment - 1) / data_alignment * data_alignment;
    tensor->dtype = dtype;
    tensor->rank = rank;
    for (int d = 0; d < rank; ++d) tensor->dims[d] = dims[d];
    tensor->data = bytes ? (char *)(*out_value + 1) + (data - end) : NULL;
    return BERTH_OK;
}

berth_status berth_vm_value_tensor(berth_allocator allocator, berth_dtype dtype, int rank,
                                   const int64_t *dims, berth_vm_value **out_value) {
    return make_tensor(allocator, dtype, rank, dims, 0, out_value);
}

berth_status berth_vm_value_copy(berth_allocator allocator, const berth_tensor *tensor,
                                 berth_vm_value **out_value) {
    size_t size = berth_tensor_size_bytes(tensor), strings = 0;
    *out_value = NULL;
    BERTH_TRY(berth_tensor_string_bytes(tensor, &strings));
    BERTH_TRY(
        make_tensor(allocator, tensor->dtype, tensor->rank, tensor->dims, strings, out_value));
    if (size && tensor->dtype == BERTH_DTYPE_STRING)
        berth_tensor_move_strings(tensor, &(*out_value)->tensor,
                                  (char *)(*out_value)->tensor.data + size);
    else if (size)
        memcpy((*out_value)->tensor.data, tensor->data, size);
    return BERTH_OK;
}

berth_status berth_vm_value_borrow(berth_allocator allocator, const berth_tensor *tensor,
                                   berth_vm_value **out_value) {
    BERTH_TRY(make(allocator, BERTH_VM_VALUE_TENSOR, 0, out_value));
    (*out_value)->tensor = *tensor;
    return BERTH_OK;
}

berth_status berth_vm_value_own_strings(berth_vm_value **value) {
    berth_vm_value *own = NULL;
    if ((*value)->tensor.dtype != BERTH_DTYPE_STRING) return BERTH_OK;
    BERTH_TRY(berth_vm_value_copy((*value)->allocator, &(*value)->tensor, &own));
    berth_vm_value_release(*value);
    *value = own;
    return BERTH_OK;
}

berth_status berth_vm_value_map(berth_vm_value *keys, berth_vm_value *values,
                                berth_vm_value **out_value) {
    BERTH_TRY(make(keys->allocator, BERTH_VM_VALUE_MAP, 0, out_value));
    berth_status status = berth_vm_value_insert(*out_value, 0, keys);
    if (!status) status = berth_vm_value_insert(*out_value, 1, values);
    if (!status) return BERTH_OK;
    berth_vm_value_release(*out_value);
    *out_value = NULL;
    return status;
}

berth_status berth_vm_value_sequence(berth_allocator allocator, berth_vm_value **out_value) {
    return make(allocator, BERTH_VM_VALUE_SEQUENCE, 0, out_value);
}

berth_status berth_vm_value_nothing(berth_allocator allocator, berth_vm_value **out_value) {
    return make(allocator, BERTH_VM_VALUE_NOTHING, 0, out_value);
}

berth_vm_value *berth_vm_value_retain(berth_vm_value *value) {
    value->references++;
    return value;
}

void berth_vm_value_release(berth_vm_value *value) {
    if (!value || --value->references > 0) return;
    berth_vm_value_release(value->storage);
    berth_workspaces_give(value->blocks, value->buffer);
    if (value->host)
        berth_free(value->allocator, value->host, berth_tensor_size_bytes(&value->tensor));
    for (uint32_t i = 0; i < value->item_count; ++i) berth_vm_value_release(value->items[i]);
    berth_free(value->allocator, value->items, value->item_capacity * sizeof(*value->items));
    berth_free(value->allocator, value, value->size_bytes);
}

berth_status berth_vm_value_insert(berth_vm_value *sequence, uint32_t position,
                                   berth_vm_value *item) {
    if (item->kind != BERTH_VM_VALUE_TENSOR && item->kind != BERTH_VM_VALUE_MAP)
        return berth_status_make(BERTH_UNSUPPORTED, "a sequence holds tensors and maps only");
    if (sequence->item_count == sequence->item_capacity) {
        uint32_t capacity = sequence->item_capacity ? 2 * sequence->item_capacity : 4;
        if (capacity < sequence->item_capacity) return berth_status_oom();
        berth_vm_value **items =
            berth_resize(sequence->allocator, sequence->items,
                         sequence->item_capacity * sizeof(*items), capacity * sizeof(*items));
        if (!items) return berth_status_oom();
        sequence->items = items;
        sequence->item_capacity = capacity;
    }
    memmove(sequence->items + position + 1, sequence->items + position,
            (sequence->item_count - position) * sizeof(*sequence->items));
    sequence->items[position] = berth_vm_value_retain(item);
    sequence->item_count++;
    return BERTH_OK;
}

berth_status berth_vm_value_copy_sequence(const berth_vm_value *sequence,
                                          berth_vm_value **out_value) {
    BERTH_TRY(berth_vm_value_sequence(sequence->allocator, out_value));
    berth_status status = BERTH_OK;
    for (uint32_t i = 0; i < sequence->item_count && !status; ++i)
        status = berth_vm_value_insert(*out_value, i, sequence->items[i]);
    if (status) {
        berth_vm_value_release(*out_value);
        *out_value = NULL;
    }
    return status;
}

// ---- borrowed data ------------------------------------------------------------------------------

static bool borrows(const berth_vm_value *value) {
    const char *data = value->tensor.data;
    const char *begin = (const char *)value;
    if (value->kind == BERTH_VM_VALUE_TENSOR)
        return data && data != value->host && (data < begin || data >= begin + value->size_bytes);
    for (uint32_t i = 0; i < value->item_count; ++i)
        if (borrows(value->items[i])) return true;
    return false;
}

static berth_status copy_items(const berth_vm_value *from, berth_vm_value *to) {
    for (uint32_t i = 0; i < from->item_count; ++i) {
        berth_vm_value *item = berth_vm_value_retain(from->items[i]);
        berth_status status = berth_vm_value_own(&item);
        if (!status) status = berth_vm_value_insert(to, i, item);
        berth_vm_value_release(item);
        BERTH_TRY(status);
    }
    return BERTH_OK;
}

berth_status berth_vm_value_own(berth_vm_value **value) {
    berth_vm_value *held = *value, *own = NULL;
    if (!borrows(held)) return BERTH_OK;
    if (held->kind == BERTH_VM_VALUE_TENSOR) {
        BERTH_TRY(berth_vm_value_copy(held->allocator, &held->tensor, &own));
    } else {
        BERTH_TRY(make(held->allocator, held->kind, 0, &own));
        berth_status status = copy_items(held, own);
        if (status) {
            berth_vm_value_release(own);
            return status;
        }
    }
    berth_vm_value_release(held);
    *value = own;
    return BERTH_OK;
}
