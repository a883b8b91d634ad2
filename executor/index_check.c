// Indices that a run had, looked at by the host once its steps are done (artifact/program.h,
// berth_program_check).
#include "executor/session_private.h"

// A block is looked at without branches first, and one by one where one may be out of range.
enum { block_elements = 256 };

static bool is_outside(int64_t index, int64_t low, int64_t high) {
    return index < low || index >= high;
}

// Whether one of a block may be outside of [low, last]: a difference is negative then, or wraps, which it may do for one
// that is not. The count of a whole block is known, so that compilers make vectors of the loop.
static bool may_be_outside_64(const int64_t *data, int64_t low, int64_t last) {
    uint64_t any = 0;
    for (int i = 0; i < block_elements; ++i)
        any |= ((uint64_t)data[i] - (uint64_t)low) | ((uint64_t)last - (uint64_t)data[i]);
    return any >> 63 != 0;
}

static bool may_be_outside_32(const int32_t *data, int32_t low, int32_t last) {
    uint32_t any = 0;
    for (int i = 0; i < block_elements; ++i)
        any |= ((uint32_t)data[i] - (uint32_t)low) | ((uint32_t)last - (uint32_t)data[i]);
    return any >> 31 != 0;
}

// Of a whole block of indices of one dimension.
static bool is_suspect(const berth_tensor *indices, int64_t first, int64_t low, int64_t last) {
    if (indices->dtype == BERTH_DTYPE_I64)
        return may_be_outside_64((const int64_t *)indices->data + first, low, last);
    if (indices->dtype != BERTH_DTYPE_I32) return true;
    return may_be_outside_32((const int32_t *)indices->data + first,
                             low < INT32_MIN ? INT32_MIN : (int32_t)low,
                             last > INT32_MAX ? INT32_MAX : (int32_t)last);
}

static berth_status check_range(const berth_program_check *check, const berth_tensor *indices,
                                int64_t first, int64_t count) {
    for (int64_t i = first; i < first + count; ++i) {
        int64_t high = check->extents[i % check->width], low = check->from_end ? -high : 0;
        int64_t index = berth_tensor_get_i64(indices, i);
        if (is_outside(index, low, high))
            return berth_status_make(BERTH_OUT_OF_RANGE,
                                     "%s: element %lld of its indices is %lld, outside of [%lld, "
                                     "%lld)",
                                     check->node, (long long)i, (long long)index, (long long)low,
                                     (long long)high);
    }
    return BERTH_OK;
}

static berth_status check_indices(const berth_program_check *check, const berth_tensor *indices) {
    int64_t count = berth_tensor_element_count(indices);
    int64_t high = check->extents[0], low = check->from_end ? -high : 0;
    for (int64_t at = 0; at < count; at += block_elements) {
        int64_t block = count - at < block_elements ? count - at : block_elements;
        if (check->width > 1 || block < block_elements || is_suspect(indices, at, low, high - 1))
            BERTH_TRY(check_range(check, indices, at, block));
    }
    return BERTH_OK;
}

berth_status berth_executor__check_indices(const berth_session *session) {
    const berth_program *program = session->program;
    for (uint32_t i = 0; i < program->check_count; ++i) {
        const berth_program_check *check = &program->checks[i];
        const berth_program_tensor *tensor = &program->tensors[check->tensor];
        berth_tensor indices = {.dtype = tensor->dtype, .rank = tensor->rank};
        for (int d = 0; d < tensor->rank; ++d) indices.dims[d] = tensor->dims[d];
        indices.data = berth_buffer_host(session->tensors[check->tensor]);
        if (indices.data) BERTH_TRY(check_indices(check, &indices));
    }
    return BERTH_OK;
}
