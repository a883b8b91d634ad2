#include "ir/tensor/interpreter_call.h"

#include <string.h>

#include "ir/tensor/interpreter.h"

// The callee's own buffer for a region.
typedef struct copied_region {
    const berth_interpreted_region *region;
    const berth_buf_info *buf;    // that it is a part of
    const berth_buf_info *param;  // that it is in the callee
    berth_layout layout;          // of that
    unsigned char *data;
} copied_region;

static size_t element_bytes(const berth_buf_info *buf) {
    return berth_dtype_size_bytes(buf->dtype) * (buf->lanes > 1 ? buf->lanes : 1);
}

static void copy(const copied_region *c, bool back) {
    const berth_tfn_region *region = c->region->is;
    size_t size = element_bytes(c->buf);
    int64_t at[BERTH_MAX_RANK] = {0}, whole[BERTH_MAX_RANK], count = 1;
    for (int d = 0; d < c->param->rank; ++d) count *= c->param->dims[d];
    for (int64_t n = 0; n < count; ++n) {
        for (int d = 0, k = 0; d < c->buf->rank; ++d)
            whole[d] =
                c->region->starts[d] + (region->extents[d] == BERTH_REGION_POINT ? 0 : at[k++]);
        int64_t own = berth_layout_offset(&c->layout, c->param->dims, at);
        int64_t outer = berth_layout_offset(c->region->layout, c->buf->dims, whole);
        unsigned char *mine = c->data + (size_t)own * size;
        unsigned char *theirs = c->region->storage + (size_t)outer * size;
        memcpy(back ? theirs : mine, back ? mine : theirs, size);
        for (int d = c->param->rank - 1; d >= 0 && ++at[d] == c->param->dims[d]; --d) at[d] = 0;
    }
}

// The shape of the parameter, inside the buffer.
static berth_status check_region(const berth_tfn *fn, const copied_region *c) {
    const char *name = berth_module_str(fn->module, c->buf->name);
    int rank = 0;
    bool fits = true;
    for (int d = 0; d < c->buf->rank; ++d) {
        bool point = c->region->is->extents[d] == BERTH_REGION_POINT;
        int64_t extent = point ? 1 : c->region->is->extents[d];
        int64_t start = c->region->starts[d];
        if (start < 0 || start > c->buf->dims[d] - extent)
            return berth_status_make(BERTH_OUT_OF_RANGE,
                                     "%s: %lld elements from %lld on are handed over, of dimension "
                                     "%d, which has %lld",
                                     name, (long long)extent, (long long)start, d,
                                     (long long)c->buf->dims[d]);
        if (point) continue;
        fits = fits && rank < c->param->rank && c->param->dims[rank] == extent;
        rank++;
    }
    if (fits && rank == c->param->rank && element_bytes(c->buf) == element_bytes(c->param))
        return BERTH_OK;
    return berth_status_make(BERTH_INVALID_ARGUMENT, "%s: handed over as another type", name);
}

static berth_status hand_over(const berth_tfn *fn, copied_region *c, berth_arena *scratch) {
    BERTH_TRY(check_region(fn, c));
    BERTH_TRY(berth_layout_parse(berth_module_str(fn->module, c->param->layout), c->param->rank,
                                 &c->layout));
    size_t bytes = (size_t)berth_layout_element_count(&c->layout, c->param->dims);
    c->data = berth_arena_alloc(scratch, bytes * element_bytes(c->param) + 1);
    copy(c, false);
    return BERTH_OK;
}

berth_status berth_tfn__interpret_call(const berth_tfn *fn, const berth_stmt_node *call,
                                       const berth_interpreted_region *regions,
                                       berth_arena *scratch) {
    const berth_tfn *callee = berth_tfn_get(fn->module, call->callee);
    if (!callee)
        return berth_status_make(BERTH_UNSUPPORTED,
                                 "a call of code in another language, which is not interpreted");
    if (callee->param_count != call->count)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "a call with %u arguments in place of %u",
                                 call->count, callee->param_count);
    copied_region *copies = berth_arena_new_array(scratch, copied_region, call->count + 1);
    void **buffers = berth_arena_new_array(scratch, void *, call->count + 1);
    for (uint32_t i = 0; i < call->count; ++i) {
        copies[i] = (copied_region){.region = &regions[i],
                                    .buf = &fn->bufs.data[regions[i].is->buf],
                                    .param = &callee->bufs.data[i]};
        BERTH_TRY(hand_over(fn, &copies[i], scratch));
        buffers[i] = copies[i].data;
    }
    BERTH_TRY(berth_tfn_interpret(callee, buffers, scratch));
    for (uint32_t i = 0; i < call->count; ++i)
        if (copies[i].param->role != BERTH_ROLE_IN) copy(&copies[i], true);
    return BERTH_OK;
}
