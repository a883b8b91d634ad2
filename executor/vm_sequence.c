#include "executor/vm_sequence.h"

#include <string.h>

berth_status berth_vm__number(const berth_vm_value *value, const char *what, int64_t *out_number) {
    *out_number = 0;
    if (!value || value->kind != BERTH_VM_VALUE_TENSOR ||
        berth_tensor_element_count(&value->tensor) != 1)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "%s is not a tensor of one element", what);
    *out_number = berth_tensor_get_i64(&value->tensor, 0);
    return BERTH_OK;
}

berth_status berth_vm__need_sequence(const berth_vm_value *value) {
    if (value && value->kind == BERTH_VM_VALUE_SEQUENCE) return BERTH_OK;
    return berth_status_make(BERTH_INVALID_ARGUMENT, "a value is not a sequence");
}

// A position counted from the start; `limit` = one past the last that is allowed.
static berth_status position_of(const berth_vm_value *sequence, const berth_vm_value *position,
                                uint32_t limit, uint32_t *out) {
    int64_t number = 0;
    BERTH_TRY(berth_vm__number(position, "the position", &number));
    int64_t at = number < 0 ? number + (int64_t)sequence->item_count : number;
    if (at < 0 || at >= (int64_t)limit)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "position %lld is outside a sequence of %u elements",
                                 (long long)number, sequence->item_count);
    *out = (uint32_t)at;
    return BERTH_OK;
}

berth_status berth_vm__insert(const berth_vm_value *sequence, berth_vm_value *item,
                              const berth_vm_value *position, berth_vm_value **out) {
    *out = NULL;
    BERTH_TRY(berth_vm__need_sequence(sequence));
    uint32_t at = sequence->item_count;
    if (position) BERTH_TRY(position_of(sequence, position, sequence->item_count + 1, &at));
    BERTH_TRY(berth_vm_value_copy_sequence(sequence, out));
    berth_status status = berth_vm_value_insert(*out, at, item);
    if (!status) return BERTH_OK;
    berth_vm_value_release(*out);
    *out = NULL;
    return status;
}

berth_status berth_vm__erase(const berth_vm_value *sequence, const berth_vm_value *position,
                             berth_vm_value **out) {
    *out = NULL;
    BERTH_TRY(berth_vm__need_sequence(sequence));
    if (!position && sequence->item_count == 0)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "an empty sequence has no last element");
    uint32_t at = sequence->item_count - 1;
    if (position) BERTH_TRY(position_of(sequence, position, sequence->item_count, &at));
    BERTH_TRY(berth_vm_value_sequence(sequence->allocator, out));
    berth_status status = BERTH_OK;
    for (uint32_t i = 0; i < sequence->item_count && !status; ++i)
        if (i != at) status = berth_vm_value_insert(*out, (*out)->item_count, sequence->items[i]);
    if (!status) return BERTH_OK;
    berth_vm_value_release(*out);
    *out = NULL;
    return status;
}

berth_status berth_vm__at(const berth_vm_value *sequence, const berth_vm_value *position,
                          berth_vm_value **out) {
    uint32_t at = 0;
    *out = NULL;
    BERTH_TRY(berth_vm__need_sequence(sequence));
    BERTH_TRY(position_of(sequence, position, sequence->item_count, &at));
    *out = berth_vm_value_retain(sequence->items[at]);
    return BERTH_OK;
}

// ---- joining and splitting ----------------------------------------------------------------------

static int64_t product(const int64_t *dims, int from, int to) {
    int64_t result = 1;
    for (int d = from; d < to; ++d) result *= dims[d];
    return result;
}

static berth_status check_axis(int64_t axis, int rank, int *out_axis) {
    int64_t counted = axis < 0 ? axis + rank : axis;
    if (counted < 0 || counted >= rank)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "axis %lld of tensors of rank %d",
                                 (long long)axis, rank);
    *out_axis = (int)counted;
    return BERTH_OK;
}

// Whether an element can stand beside the first one: equal but for the joined axis (-1 = none).
static berth_status check_item(const berth_vm_value *item, const berth_tensor *first, int axis) {
    bool fits = item->kind == BERTH_VM_VALUE_TENSOR && item->tensor.dtype == first->dtype &&
                item->tensor.rank == first->rank;
    for (int d = 0; fits && d < first->rank; ++d)
        fits = d == axis || item->tensor.dims[d] == first->dims[d];
    if (fits) return BERTH_OK;
    return berth_status_make(BERTH_INVALID_ARGUMENT,
                             "the elements of a sequence that are joined differ in type or shape");
}

// Copies one element to its place: `at` rows of the axis come before it.
static void place(berth_tensor *out, int axis, int64_t at, const berth_tensor *item,
                  int64_t extent) {
    size_t element = berth_dtype_size_bytes(out->dtype);
    size_t inner = (size_t)product(out->dims, axis + 1, out->rank) * element;
    int64_t outer = product(out->dims, 0, axis);
    size_t row = (size_t)extent * inner;
    if (row == 0) return;
    for (int64_t i = 0; i < outer; ++i)
        memcpy((char *)out->data + ((size_t)(i * out->dims[axis] + at)) * inner,
               (const char *)item->data + (size_t)i * row, row);
}

// A new value is made of elements of others, which may go before it.
static berth_status own_strings(berth_vm_value **out) {
    berth_status status = berth_vm_value_own_strings(out);
    if (!status) return BERTH_OK;
    berth_vm_value_release(*out);
    *out = NULL;
    return status;
}

berth_status berth_vm__join(berth_allocator allocator, const berth_vm_value *sequence, int64_t axis,
                            bool new_axis, const berth_tensor *empty, berth_vm_value **out) {
    *out = NULL;
    BERTH_TRY(berth_vm__need_sequence(sequence));
    if (sequence->item_count == 0) {
        if (empty) return berth_vm_value_copy(allocator, empty, out);
        return berth_status_make(BERTH_INVALID_ARGUMENT, "an empty sequence cannot be joined");
    }
    if (sequence->items[0]->kind != BERTH_VM_VALUE_TENSOR)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "only sequences of tensors can be joined");
    const berth_tensor *first = &sequence->items[0]->tensor;
    int rank = first->rank + new_axis, at_axis = 0;
    if (rank > BERTH_MAX_RANK)
        return berth_status_make(BERTH_UNSUPPORTED, "tensors of more than %d dimensions",
                                 BERTH_MAX_RANK);
    BERTH_TRY(check_axis(axis, rank, &at_axis));
    int64_t dims[BERTH_MAX_RANK] = {0}, total = 0;
    for (uint32_t i = 0; i < sequence->item_count; ++i) {
        BERTH_TRY(check_item(sequence->items[i], first, new_axis ? -1 : at_axis));
        total += new_axis ? 1 : sequence->items[i]->tensor.dims[at_axis];
    }
    for (int d = 0, from = 0; d < rank; ++d)
        dims[d] = d == at_axis ? total : first->dims[new_axis ? from++ : d];
    BERTH_TRY(berth_vm_value_tensor(allocator, first->dtype, rank, dims, out));
    int64_t at = 0;
    for (uint32_t i = 0; i < sequence->item_count; ++i) {
        const berth_tensor *item = &sequence->items[i]->tensor;
        int64_t extent = new_axis ? 1 : item->dims[at_axis];
        place(&(*out)->tensor, at_axis, at, item, extent);
        at += extent;
    }
    return own_strings(out);
}

// Rows [at, at + extent) of the axis as a tensor of their own.
static berth_status cut(berth_allocator allocator, const berth_tensor *tensor, int axis, int64_t at,
                        int64_t extent, bool keep_axis, berth_vm_value **out) {
    int64_t dims[BERTH_MAX_RANK] = {0};
    int rank = 0;
    for (int d = 0; d < tensor->rank; ++d)
        if (d != axis || keep_axis) dims[rank++] = d == axis ? extent : tensor->dims[d];
    BERTH_TRY(berth_vm_value_tensor(allocator, tensor->dtype, rank, dims, out));
    size_t inner = (size_t)product(tensor->dims, axis + 1, tensor->rank) *
                   berth_dtype_size_bytes(tensor->dtype);
    int64_t outer = product(tensor->dims, 0, axis);
    size_t row = (size_t)extent * inner;
    for (int64_t i = 0; i < outer && row; ++i)
        memcpy((char *)(*out)->tensor.data + (size_t)i * row,
               (const char *)tensor->data + (size_t)(i * tensor->dims[axis] + at) * inner, row);
    return own_strings(out);
}

// Extent of part `index` that begins at `at`; the parts end where the axis does.
static berth_status part_extent(const berth_vm_value *sizes, int64_t index, int64_t at,
                                int64_t whole, int64_t *out_extent) {
    *out_extent = 1;
    if (!sizes) return BERTH_OK;
    const berth_tensor *tensor = &sizes->tensor;
    if (sizes->kind != BERTH_VM_VALUE_TENSOR || tensor->rank > 1)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "the sizes of parts are not a vector");
    bool scalar = tensor->rank == 0;
    if (!scalar && index >= tensor->dims[0])
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "the parts have %lld of %lld rows of the axis", (long long)at,
                                 (long long)whole);
    *out_extent = berth_tensor_get_i64(tensor, scalar ? 0 : index);
    if (scalar && *out_extent > whole - at) *out_extent = whole - at;
    if (*out_extent < scalar || *out_extent > whole - at)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "a part of %lld rows at row %lld of %lld",
                                 (long long)*out_extent, (long long)at, (long long)whole);
    return BERTH_OK;
}

static berth_status add_parts(berth_allocator allocator, const berth_tensor *tensor,
                              const berth_vm_value *sizes, int axis, bool keep_axis,
                              berth_vm_value *sequence) {
    int64_t whole = tensor->dims[axis], at = 0;
    bool listed = sizes && sizes->kind == BERTH_VM_VALUE_TENSOR && sizes->tensor.rank == 1;
    int64_t parts = listed ? sizes->tensor.dims[0] : INT64_MAX;
    for (int64_t i = 0; at < whole || (listed && i < parts); ++i) {
        int64_t extent = 0;
        berth_vm_value *part = NULL;
        BERTH_TRY(part_extent(sizes, i, at, whole, &extent));
        BERTH_TRY(cut(allocator, tensor, axis, at, extent, keep_axis || sizes, &part));
        berth_status status = berth_vm_value_insert(sequence, sequence->item_count, part);
        berth_vm_value_release(part);
        BERTH_TRY(status);
        at += extent;
    }
    return BERTH_OK;
}

berth_status berth_vm__split(berth_allocator allocator, const berth_vm_value *value,
                             const berth_vm_value *sizes, int64_t axis, bool keep_axis,
                             berth_vm_value **out) {
    int at_axis = 0;
    *out = NULL;
    if (!value || value->kind != BERTH_VM_VALUE_TENSOR)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "only a tensor can be split");
    BERTH_TRY(check_axis(axis, value->tensor.rank, &at_axis));
    BERTH_TRY(berth_vm_value_sequence(allocator, out));
    berth_status status = add_parts(allocator, &value->tensor, sizes, at_axis, keep_axis, *out);
    if (!status) return BERTH_OK;
    berth_vm_value_release(*out);
    *out = NULL;
    return status;
}

// ---- maps ---------------------------------------------------------------------------------------

static berth_status add_row(const berth_tensor *scores, int64_t row, berth_vm_value *keys,
                            berth_vm_value *sequence) {
    berth_vm_value *values = NULL, *map = NULL;
    int64_t width = keys->tensor.dims[0];
    BERTH_TRY(berth_vm_value_tensor(sequence->allocator, scores->dtype, 1, &width, &values));
    size_t size = berth_tensor_size_bytes(&values->tensor);
    if (size) memcpy(values->tensor.data, (const char *)scores->data + (size_t)row * size, size);
    berth_status status = berth_vm_value_own_strings(&values);
    if (!status) status = berth_vm_value_map(keys, values, &map);
    if (!status) status = berth_vm_value_insert(sequence, sequence->item_count, map);
    berth_vm_value_release(map);
    berth_vm_value_release(values);
    return status;
}

berth_status berth_vm__zip(berth_allocator allocator, const berth_vm_value *value,
                           const berth_tensor *keys, berth_vm_value **out) {
    berth_vm_value *held = NULL;
    *out = NULL;
    if (value->kind != BERTH_VM_VALUE_TENSOR || value->tensor.rank < 1 || value->tensor.rank > 2 ||
        keys->rank != 1)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "maps are made of one row or several");
    const berth_tensor *scores = &value->tensor;
    int64_t rows = scores->rank == 2 ? scores->dims[0] : 1;
    if (scores->dims[scores->rank - 1] != keys->dims[0])
        return berth_status_make(BERTH_INVALID_ARGUMENT, "rows of %lld values for %lld keys",
                                 (long long)scores->dims[scores->rank - 1],
                                 (long long)keys->dims[0]);
    BERTH_TRY(berth_vm_value_copy(allocator, keys, &held));
    berth_status status = berth_vm_value_sequence(allocator, out);
    for (int64_t row = 0; row < rows && !status; ++row) status = add_row(scores, row, held, *out);
    berth_vm_value_release(held);
    if (!status) return BERTH_OK;
    berth_vm_value_release(*out);
    *out = NULL;
    return status;
}

berth_status berth_vm__map_part(const berth_vm_value *map, bool keys, berth_vm_value **out) {
    *out = NULL;
    if (!map || map->kind != BERTH_VM_VALUE_MAP)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "a value is not a map");
    *out = berth_vm_value_retain(map->items[keys ? 0 : 1]);
    return BERTH_OK;
}
