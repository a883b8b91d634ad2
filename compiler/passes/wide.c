#include "compiler/passes/wide.h"

#include "compiler/passes/bindings.h"
#include "ir/graph/op_params.h"

static berth_op op_at(const berth_rewriter *r, berth_op_id id) {
    return berth_graph_get(r->module, r->function)->ops.data[id];
}

static const berth_type *type_of(const berth_rewriter *r, berth_value_id value) {
    return berth_type_get(r->module,
                          berth_graph_get(r->module, r->function)->values.data[value].type);
}

// At most `usual`, and so few that the other side of the operation is a buffer, too, and workspace.
static uint32_t width_of(const berth_rewriter *r, uint32_t usual) {
    enum { others = 2 };
    uint32_t most = berth_bindings_least(r->target) - others;
    return most < usual ? most : usual;
}

// op(a, b, c, d, ...) = op(op(a, b), op(c, d), ...) with groups of `width`.
static berth_status in_groups(berth_rewriter *r, berth_op_id id, uint32_t width) {
    berth_op op = op_at(r, id);
    uint32_t count = (op.input_count + width - 1) / width;
    berth_value_id *groups = berth_arena_new_array(r->module->arena, berth_value_id, count);
    berth_value_id result = BERTH_NONE;
    for (uint32_t g = 0; g < count; ++g) {
        uint32_t first = g * width;
        uint32_t size = op.input_count - first < width ? op.input_count - first : width;
        BERTH_TRY(berth_rewriter_insert(r, id, op.kind, op.inputs + first, size, &op.attrs, op.loc,
                                        &groups[g]));
    }
    BERTH_TRY(berth_rewriter_insert(r, id, op.kind, groups, count, &op.attrs, op.loc, &result));
    berth_rewriter_replace(r, op.outputs[0], result);
    return BERTH_OK;
}

static berth_status mean_by_sum(berth_rewriter *r, berth_op_id id) {
    berth_op op = op_at(r, id);
    berth_value_id result = BERTH_NONE;
    BERTH_TRY(berth_rewriter_insert(r, id, BERTH_OP_SUM, op.inputs, op.input_count, NULL, op.loc,
                                    &result));
    berth_tensor number =
        berth_tensor_create(r->module->arena, type_of(r, op.outputs[0])->dtype, 0, NULL);
    berth_tensor_set_f64(&number, 0, op.input_count);
    berth_value_id inputs[2] = {result, berth_rewriter_insert_constant(r, id, &number, op.loc)};
    BERTH_TRY(berth_rewriter_insert(r, id, BERTH_OP_DIV, inputs, 2, NULL, op.loc, &result));
    berth_rewriter_replace(r, op.outputs[0], result);
    return BERTH_OK;
}

berth_status berth_narrow_variadic(berth_rewriter *r, berth_op_id id) {
    berth_op op = op_at(r, id);
    uint32_t width = width_of(r, BERTH_WIDE_VARIADIC);
    if (op.input_count <= width) return BERTH_OK;
    if (op.kind != BERTH_OP_MEAN) return in_groups(r, id, width);
    return berth_dtype_is_float(type_of(r, op.outputs[0])->dtype) ? mean_by_sum(r, id) : BERTH_OK;
}

berth_status berth_narrow_concat(berth_rewriter *r, berth_op_id id) {
    uint32_t width = width_of(r, BERTH_WIDE_PARTS);
    return op_at(r, id).input_count <= width ? BERTH_OK : in_groups(r, id, width);
}

// Inserts a split of `value` into parts of the given sizes.
static berth_status insert_split(berth_rewriter *r, berth_op_id id, const berth_op *like,
                                 berth_value_id value, const int64_t *sizes, uint32_t count,
                                 berth_op_id *out_op) {
    int64_t dims[1] = {count};
    berth_tensor tensor = berth_tensor_create(r->module->arena, BERTH_DTYPE_I64, 1, dims);
    for (uint32_t i = 0; i < count; ++i) berth_tensor_set_i64(&tensor, i, sizes[i]);
    berth_value_id inputs[2] = {value, berth_rewriter_insert_constant(r, id, &tensor, like->loc)};
    return berth_rewriter_insert_op(r, id, BERTH_OP_SPLIT, inputs, 2, count, &like->attrs,
                                    like->loc, out_op);
}

berth_status berth_narrow_split(berth_rewriter *r, berth_op_id id) {
    berth_op op = op_at(r, id);
    uint32_t parts = op.output_count;
    uint32_t width = width_of(r, BERTH_WIDE_PARTS);
    if (parts <= width) return BERTH_OK;
    int axis = 0;
    BERTH_TRY(berth_axis_resolve(berth_attrs_int(r->module, &op.attrs, "axis", 0),
                                 type_of(r, op.inputs[0])->rank, "axis", &axis));
    uint32_t count = (parts + width - 1) / width;
    int64_t *sizes = berth_arena_new_array(r->module->arena, int64_t, parts);
    int64_t *totals = berth_arena_new_array(r->module->arena, int64_t, count);
    for (uint32_t i = 0; i < parts; ++i) {
        const berth_type *part = type_of(r, op.outputs[i]);
        if (part->rank <= axis || part->dims[axis] < 0) return BERTH_OK;  // not known
        sizes[i] = part->dims[axis];
        totals[i / width] += sizes[i];
    }
    berth_op_id outer = BERTH_NONE;
    BERTH_TRY(insert_split(r, id, &op, op.inputs[0], totals, count, &outer));
    for (uint32_t g = 0; g < count; ++g) {
        uint32_t first = g * width;
        uint32_t size = parts - first < width ? parts - first : width;
        berth_op_id inner = BERTH_NONE;
        BERTH_TRY(
            insert_split(r, id, &op, op_at(r, outer).outputs[g], sizes + first, size, &inner));
        for (uint32_t i = 0; i < size; ++i)
            berth_rewriter_replace(r, op.outputs[first + i], op_at(r, inner).outputs[i]);
    }
    return BERTH_OK;
}
