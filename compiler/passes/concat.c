#include "compiler/passes/concat.h"

#include "ir/graph/op_params.h"
#include "ir/layout.h"

#define BERTH_PART_ALIGNMENT_BYTES                                                                 \
    64  // less than any device asks for: then no part can begin there

typedef struct finder {
    const berth_module *module;
    const berth_graph *inner;  // the primitive function
    const berth_op *op;        // its operation
} finder;

static const berth_type *type_of(const finder *f, berth_value_id value) {
    return berth_type_get(f->module, f->inner->values.data[value].type);
}

// Bytes from one index of `axis` to the next, when indices of `axis` (whole blocks of it) follow
// each other in memory without anything in between; 0 otherwise.
static int64_t stride_bytes(const finder *f, const berth_type *whole, int axis,
                            int64_t *out_block) {
    berth_layout layout;
    berth_status status =
        berth_layout_parse(berth_module_str(f->module, whole->layout), whole->rank, &layout);
    if (status) {
        berth_status_free(status);
        return 0;
    }
    *out_block = layout.total_block[axis];
    for (int i = 0; layout.outer[i] != axis; ++i) {
        int d = layout.outer[i];
        if (whole->dims[d] > layout.total_block[d]) return 0;
    }
    int64_t blocks = (whole->dims[axis] + *out_block - 1) / *out_block;
    if (blocks == 0) return 0;
    int64_t bytes = berth_layout_element_count(&layout, whole->dims) *
                    (int64_t)berth_dtype_size_bytes(whole->dtype);
    return bytes / blocks;
}

// A part is what the whole has from `start` on; false when its bytes are not in a row.
static bool place_part(const finder *f, const berth_type *whole, const berth_type *part, int axis,
                       int64_t start, bool is_last, int64_t *out_offset_bytes) {
    int64_t block = 1;
    int64_t stride = whole->rank > 0 ? stride_bytes(f, whole, axis, &block) : 0;
    if (stride == 0 || part->layout != whole->layout || part->dtype != whole->dtype ||
        part->rank != whole->rank)
        return false;
    for (int d = 0; d < whole->rank; ++d)
        if (d != axis && part->dims[d] != whole->dims[d]) return false;
    if (start % block || (part->dims[axis] % block && !is_last)) return false;
    *out_offset_bytes = start / block * stride;
    return true;
}

static bool find_axis(const finder *f, int rank, int *out_axis) {
    int64_t named = berth_attrs_int(f->module, &f->op->attrs, "axis", 0);
    berth_status status = berth_axis_resolve(named, rank, "axis", out_axis);
    bool found = !status;
    berth_status_ignore(status);
    return found;
}

static bool place_operands(const finder *f, int64_t *offsets) {
    const berth_type *whole = type_of(f, f->op->outputs[0]);
    int axis = 0;
    int64_t start = 0;
    if (!find_axis(f, whole->rank, &axis)) return false;
    for (uint32_t i = 0; i < f->op->input_count; ++i) {
        const berth_type *part = type_of(f, f->op->inputs[i]);
        if (!place_part(f, whole, part, axis, start, i + 1 == f->op->input_count, &offsets[i]))
            return false;
        start += part->dims[axis];
    }
    return true;
}

static bool place_results(const finder *f, int64_t *offsets) {
    const berth_type *whole = type_of(f, f->op->inputs[0]);
    int axis = 0;
    int64_t start = 0;
    if (!find_axis(f, whole->rank, &axis)) return false;
    for (uint32_t i = 0; i < f->op->output_count; ++i) {
        const berth_type *part = type_of(f, f->op->outputs[i]);
        if (!place_part(f, whole, part, axis, start, i + 1 == f->op->output_count, &offsets[i]))
            return false;
        start += part->dims[axis];
    }
    return true;
}

static const berth_tensor *constant_input(const finder *f, uint32_t input) {
    if (input >= f->op->input_count || f->op->inputs[input] == BERTH_NONE) return NULL;
    return berth_graph_constant_of(f->module, f->inner, f->op->inputs[input]);
}

// One dimension cut, forwards and without gaps.
static bool place_slice(const finder *f, int64_t *offset) {
    const berth_type *whole = type_of(f, f->op->inputs[0]);
    const berth_type *part = type_of(f, f->op->outputs[0]);
    const berth_tensor *starts = constant_input(f, 1);
    const berth_tensor *axes = constant_input(f, 3);
    const berth_tensor *steps = constant_input(f, 4);
    if (!starts || part->rank != whole->rank || (f->op->input_count > 3 && !axes) ||
        (f->op->input_count > 4 && !steps))
        return false;
    int cut = 0;
    int64_t first = 0;
    for (int64_t i = 0; i < berth_tensor_element_count(starts); ++i) {
        int axis = 0;
        int64_t named = axes ? berth_tensor_get_i64(axes, i) : i;
        berth_status status = berth_axis_resolve(named, whole->rank, "axis", &axis);
        if (status) {
            berth_status_free(status);
            return false;
        }
        if (steps && berth_tensor_get_i64(steps, i) != 1) return false;
        if (part->dims[axis] == whole->dims[axis]) continue;
        int64_t start = berth_tensor_get_i64(starts, i);
        cut = axis;
        first = start < 0 ? start + whole->dims[axis] : start;
        if (first < 0) first = 0;
    }
    bool is_last = first + part->dims[cut] == whole->dims[cut];
    return place_part(f, whole, part, cut, first, is_last, offset);
}

// Its parameters must be the operation's data operands, in order.
static bool same_operands(const finder *f, const berth_op *call, uint32_t count) {
    const berth_region *root = &f->inner->regions.data[0];
    if (call->input_count != count || root->params.count != count) return false;
    for (uint32_t i = 0; i < count; ++i)
        if (f->op->inputs[i] != root->params.data[i]) return false;
    return root->results.count == f->op->output_count;
}

static const berth_op *only_op(const berth_graph *graph) {
    const berth_op *only = NULL;
    const berth_region *root = &graph->regions.data[0];
    for (uint32_t i = 0; i < root->ops.count; ++i) {
        const berth_op *op = &graph->ops.data[root->ops.data[i]];
        if (op->kind == BERTH_OP_CONSTANT) continue;
        if (only) return NULL;
        only = op;
    }
    return only;
}

bool berth_concat_is_free(const berth_module *module, const berth_graph *graph, const berth_op *op,
                          berth_arena *scratch) {
    finder f = {.module = module, .inner = graph, .op = op};
    int64_t *offsets = berth_arena_new_array(scratch, int64_t, op->input_count);
    if (!place_operands(&f, offsets)) return false;
    for (uint32_t i = 0; i < op->input_count; ++i) {
        berth_op_id producer = graph->values.data[op->inputs[i]].op;
        if (producer == BERTH_NONE || graph->ops.data[producer].kind == BERTH_OP_CONSTANT ||
            offsets[i] % BERTH_PART_ALIGNMENT_BYTES != 0)
            return false;
        for (uint32_t k = 0; k < i; ++k)
            if (op->inputs[k] == op->inputs[i]) return false;
    }
    return true;
}

static void mark(berth_module *module, berth_func_id main, berth_op_id call, const char *name,
                 const int64_t *offsets, uint32_t count) {
    berth_op *op = &berth_graph_get(module, main)->ops.data[call];
    berth_attrs_set_ints(module, &op->attrs, name, offsets, count);
}

berth_status berth_pass_find_parts(berth_module *module, berth_func_id main) {
    const berth_region *root = &berth_graph_get(module, main)->regions.data[0];
    for (uint32_t i = 0; i < root->ops.count; ++i) {
        berth_op_id id = root->ops.data[i];
        const berth_op *call = &berth_graph_get(module, main)->ops.data[id];
        if (call->kind != BERTH_OP_CALL) continue;
        const berth_attr *callee = berth_attrs_find(module, &call->attrs, "callee");
        finder f = {.module = module};
        f.inner = callee ? berth_graph_get(module, callee->function) : NULL;
        f.op = f.inner ? only_op(f.inner) : NULL;
        if (!f.op) continue;
        uint32_t most = f.op->input_count + f.op->output_count;
        int64_t *offsets = berth_arena_new_array(module->arena, int64_t, most);
        if (f.op->kind == BERTH_OP_CONCAT && same_operands(&f, call, f.op->input_count) &&
            place_operands(&f, offsets))
            mark(module, main, id, BERTH_ATTR_PARTS_AT, offsets, f.op->input_count);
        if (f.op->kind == BERTH_OP_SPLIT && same_operands(&f, call, 1) &&
            place_results(&f, offsets))
            mark(module, main, id, BERTH_ATTR_SLICES_AT, offsets, f.op->output_count);
        if (f.op->kind == BERTH_OP_SLICE && same_operands(&f, call, 1) && place_slice(&f, offsets))
            mark(module, main, id, BERTH_ATTR_SLICES_AT, offsets, 1);
    }
    return BERTH_OK;
}
