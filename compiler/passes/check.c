#include "compiler/passes/check.h"

static const berth_type *type_of(const berth_module *module, const berth_graph *graph,
                                 berth_value_id value) {
    return berth_type_get(module, value == BERTH_NONE ? 0 : graph->values.data[value].type);
}

// ---- indices ------------------------------------------------------------------------------------

static berth_status out_of_range(const berth_module *module, const berth_op *op, int64_t index,
                                 int dim, int64_t extent) {
    return berth_status_make(BERTH_INVALID_ARGUMENT,
                             "%s: index %lld is outside dimension %d of its data, which has the "
                             "extent %lld",
                             berth_loc_describe(module, op->loc, module->arena), (long long)index,
                             dim, (long long)extent);
}

static bool outside(int64_t index, int64_t extent) {
    return extent >= 0 && (index < -extent || index >= extent);
}

// All indices pick from one dimension.
static berth_status check_axis(const berth_module *module, const berth_op *op,
                               const berth_type *data, const berth_tensor *indices) {
    int64_t axis = berth_attrs_int(module, &op->attrs, "axis", 0);
    if (axis < 0) axis += data->rank;
    if (axis < 0 || axis >= data->rank) return BERTH_OK;  // inference says so
    int64_t extent = data->dims[axis];
    if (berth_dim_is_symbol(extent)) return BERTH_OK;
    int64_t count = berth_tensor_element_count(indices);
    for (int64_t i = 0; i < count; ++i) {
        int64_t index = berth_tensor_get_i64(indices, i);
        if (outside(index, extent)) return out_of_range(module, op, index, (int)axis, extent);
    }
    return BERTH_OK;
}

// The last dimension of the indices holds one index per dimension from `first` on.
static berth_status check_tuples(const berth_module *module, const berth_op *op,
                                 const berth_type *data, const berth_tensor *indices,
                                 int64_t first) {
    int64_t each = indices->rank > 0 ? indices->dims[indices->rank - 1] : 0;
    if (each <= 0 || first < 0 || first + each > data->rank) return BERTH_OK;
    int64_t count = berth_tensor_element_count(indices);
    for (int64_t i = 0; i < count; ++i) {
        int64_t dim = first + i % each;
        int64_t extent = data->dims[dim];
        int64_t index = berth_tensor_get_i64(indices, i);
        if (!berth_dim_is_symbol(extent) && outside(index, extent))
            return out_of_range(module, op, index, (int)dim, extent);
    }
    return BERTH_OK;
}

berth_status berth_check_indices(const berth_module *module, const berth_graph *graph,
                                 berth_op_id id) {
    const berth_op *op = &graph->ops.data[id];
    bool by_axis = op->kind == BERTH_OP_GATHER || op->kind == BERTH_OP_GATHER_ELEMENTS ||
                   op->kind == BERTH_OP_SCATTER_ELEMENTS;
    bool by_tuple = op->kind == BERTH_OP_GATHER_ND || op->kind == BERTH_OP_SCATTER_ND;
    if ((!by_axis && !by_tuple) || op->input_count < 2 || op->inputs[1] == BERTH_NONE)
        return BERTH_OK;
    const berth_tensor *indices = berth_graph_constant_of(module, graph, op->inputs[1]);
    const berth_type *data = type_of(module, graph, op->inputs[0]);
    if (!indices || data->kind != BERTH_TYPE_TENSOR || data->rank < 0) return BERTH_OK;
    if (by_axis) return check_axis(module, op, data, indices);
    int64_t first =
        op->kind == BERTH_OP_GATHER_ND ? berth_attrs_int(module, &op->attrs, "batch_dims", 0) : 0;
    return check_tuples(module, op, data, indices, first);
}

// ---- declared outputs ---------------------------------------------------------------------------

static bool contradicts(const berth_type *type, const int64_t *declared) {
    if (type->kind != BERTH_TYPE_TENSOR || type->rank < 0 || declared[0] < 0) return false;
    if (type->rank != declared[0]) return true;
    for (int d = 0; d < type->rank; ++d) {
        bool known = declared[1 + d] >= 0 && !berth_dim_is_symbol(type->dims[d]);
        if (known && declared[1 + d] != type->dims[d]) return true;
    }
    return false;
}

static const char *shape_text(const berth_module *module, const int64_t *declared) {
    berth_strbuf text = berth_strbuf_make(module->arena);
    berth_strbuf_add(&text, "[");
    for (int64_t d = 0; d < declared[0]; ++d) {
        const char *separator = d ? "," : "";
        if (declared[1 + d] < 0)
            berth_strbuf_addf(&text, "%s?", separator);
        else
            berth_strbuf_addf(&text, "%s%lld", separator, (long long)declared[1 + d]);
    }
    berth_strbuf_add(&text, "]");
    return berth_strbuf_text(&text);
}

static berth_status check_output(const berth_module *module, const berth_graph *graph,
                                 berth_value_id value, const int64_t *declared) {
    const berth_value *held = &graph->values.data[value];
    if (!contradicts(berth_type_get(module, held->type), declared)) return BERTH_OK;
    berth_strbuf inferred = berth_strbuf_make(module->arena);
    berth_type_print(module, held->type, &inferred);
    const char *where = "the model";
    if (held->op != BERTH_NONE)
        where = berth_loc_describe(module, graph->ops.data[held->op].loc, module->arena);
    return berth_status_make(
        BERTH_INVALID_ARGUMENT,
        "%s: output \"%s\" is declared with the shape %s, but what is computed "
        "is %s; correct the declaration, or leave its extents symbolic",
        where, berth_module_str(module, held->name), shape_text(module, declared),
        berth_strbuf_text(&inferred));
}

berth_status berth_check_declared_outputs(berth_module *module, berth_func_id main) {
    berth_attrs *attrs = &berth_module_function(module, main)->attrs;
    uint32_t count = 0;
    const int64_t *declared = berth_attrs_ints(module, attrs, BERTH_ATTR_OUTPUT_DIMS, &count);
    const berth_graph *graph = berth_graph_get(module, main);
    const berth_region *root = &graph->regions.data[0];
    uint32_t at = 0;
    for (uint32_t i = 0; declared && i < root->results.count && at < count; ++i) {
        uint32_t rank = declared[at] > 0 ? (uint32_t)declared[at] : 0;
        if (rank > BERTH_MAX_RANK || at + 1 + rank > count) break;
        BERTH_TRY(check_output(module, graph, root->results.data[i], &declared[at]));
        at += 1 + rank;
    }
    if (declared) berth_attrs_remove(module, attrs, BERTH_ATTR_OUTPUT_DIMS);
    return BERTH_OK;
}
