// Constants as kernels want them: packed once for all operations that take the same constant so (the
// heads of a detector share weights, and so do the steps of an unrolled recurrence).
#include <string.h>

#include "base/hash.h"
#include "compiler/passes/layout_private.h"
#include "compiler/passes/winograd.h"

typedef berth_layout_pass pass;

struct berth_layout_packed {
    berth_tensor source;  // where its bytes are says which it is
    berth_str_id tag;
    int64_t tile;  // of a Winograd transform; 0 = a layout
    berth_device_id device;
    berth_value_id value;
    uint32_t next;  // + 1
};

static uint32_t *bucket_of(pass *p, const berth_tensor *source) {
    if (!p->buckets) {
        p->bucket_count = 64;
        while (p->bucket_count < graph_of(p)->ops.count) p->bucket_count *= 2;
        p->buckets = berth_arena_new_array(p->scratch, uint32_t, p->bucket_count);
    }
    uintptr_t address = (uintptr_t)source->data;
    return &p->buckets[berth_hash64(&address, sizeof(address), 0) & (p->bucket_count - 1)];
}

static bool same_tensor(const berth_tensor *a, const berth_tensor *b) {
    return a->data == b->data && a->dtype == b->dtype && a->rank == b->rank &&
           memcmp(a->dims, b->dims, (size_t)a->rank * sizeof(a->dims[0])) == 0;
}

// One that is packed already, for an operation before: operations are converted in their order.
static berth_value_id find(pass *p, const berth_layout_packed *wanted) {
    for (uint32_t at = *bucket_of(p, &wanted->source); at; at = p->packed.data[at - 1].next) {
        const berth_layout_packed *held = &p->packed.data[at - 1];
        if (same_tensor(&held->source, &wanted->source) && held->tag == wanted->tag &&
            held->tile == wanted->tile && held->device == wanted->device)
            return held->value;
    }
    return BERTH_NONE;
}

static berth_device_id device_at(const pass *p, berth_op_id position) {
    return graph_of(p)->values.data[graph_of(p)->ops.data[position].outputs[0]].device;
}

static void keep(pass *p, berth_layout_packed made) {
    uint32_t *bucket = bucket_of(p, &made.source);
    made.next = *bucket;
    berth_vec_push(p->scratch, &p->packed, made);
    *bucket = p->packed.count;
}

// A constant of packed elements before `position`.
static berth_value_id insert(pass *p, const berth_layout_packed *wanted, int64_t count, void *data,
                             berth_type_id type, berth_op_id position) {
    berth_tensor *literal = berth_layout__packed_literal(p, wanted->source.dtype, count, data);
    berth_loc_id loc = graph_of(p)->ops.data[position].loc;
    berth_layout_packed made = *wanted;
    made.value = berth_graph_insert_constant(p->module, p->main, position, literal, loc);
    graph_of(p)->values.data[made.value].type = type;
    graph_of(p)->values.data[made.value].device = wanted->device;
    keep(p, made);
    return made.value;
}

berth_tensor *berth_layout__packed_literal(pass *p, berth_dtype dtype, int64_t count, void *data) {
    berth_tensor *literal = berth_arena_new(p->module->arena, berth_tensor);
    *literal = (berth_tensor){.dtype = dtype, .rank = 1, .dims = {count}, .data = data};
    return literal;
}

berth_value_id berth_layout__packed_constant(pass *p, const berth_tensor *tensor, const char *tag,
                                             berth_op_id position) {
    berth_layout layout;
    berth_status status = berth_layout_parse(tag, tensor->rank, &layout);
    if (status) {
        berth_status_ignore(status);
        return BERTH_NONE;
    }
    berth_layout_packed wanted = {.source = *tensor,
                                  .tag = berth_module_intern(p->module, tag),
                                  .device = device_at(p, position)};
    berth_value_id held = find(p, &wanted);
    if (held != BERTH_NONE) return held;
    berth_type_id type =
        berth_type_tensor_layout(p->module, tensor->dtype, tensor->rank, tensor->dims, wanted.tag);
    return insert(p, &wanted, berth_layout_element_count(&layout, tensor->dims),
                  berth_packing_add_layout(p->packing, &layout, tensor), type, position);
}

berth_value_id berth_layout__winograd_constant(pass *p, const berth_tensor *weights, int64_t tile,
                                               const int64_t dims[3], berth_op_id position) {
    berth_layout_packed wanted = {.source = *weights,
                                  .tag = berth_module_intern(p->module, BERTH_WINOGRAD_WEIGHTS_TAG),
                                  .tile = tile,
                                  .device = device_at(p, position)};
    berth_value_id held = find(p, &wanted);
    if (held != BERTH_NONE) return held;
    berth_type_id type = berth_type_tensor_layout(p->module, BERTH_DTYPE_F32, 3, dims, wanted.tag);
    return insert(p, &wanted, (int64_t)(berth_winograd_size_bytes(weights, tile) / sizeof(float)),
                  berth_packing_add_winograd(p->packing, weights, tile), type, position);
}
