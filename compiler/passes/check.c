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

// ---- control flow -------------------------------------------------------------------------------

berth_status berth_refuse_control_flow(const berth_module *module, const berth_op *op) {
    const char *where = berth_loc_describe(module, op->loc, module->arena);
    if (op->kind == BERTH_OP_IF)
        return berth_status_make(
            BERTH_UNSUPPORTED,
            "%s: the graph executor runs no control flow: a branch is chosen before the run, and "
            "this condition is not known then; give the values of the inputs that it depends on, "
            "or "
            "use executor vm",
            where);
    return berth_status_make(
        BERTH_UNSUPPORTED, "%s: the graph executor runs no control flow (executor vm does)", where);
}

// ---- strings ------------------------------------------------------------------------------------

static bool is_string(const berth_module *module, const berth_graph *graph, berth_value_id value) {
    return type_of(module, graph, value)->dtype == BERTH_DTYPE_STRING;
}

berth_status berth_refuse_strings(const berth_module *module, const berth_graph *graph) {
    static const char why[] =
        "strings and vocabularies are for executor vm, which has the host compute them: programs "
        "have tensors of numbers";
    const berth_region *root = &graph->regions.data[0];
    for (uint32_t i = 0; i < root->params.count; ++i)
        if (is_string(module, graph, root->params.data[i]))
            return berth_status_make(
                BERTH_UNSUPPORTED, "input \"%s\": %s",
                berth_module_str(module, graph->values.data[root->params.data[i]].name), why);
    for (uint32_t i = 0; i < root->ops.count; ++i) {
        const berth_op *op = &graph->ops.data[root->ops.data[i]];
        bool found = berth_op_has(op->kind, BERTH_TRAIT_INTERPRETED);
        for (uint32_t k = 0; k < op->output_count && op->kind != BERTH_OP_CONSTANT; ++k)
            found |= is_string(module, graph, op->outputs[k]);
        if (found)
            return berth_status_make(BERTH_UNSUPPORTED, "%s: %s",
                                     berth_loc_describe(module, op->loc, module->arena), why);
    }
    for (uint32_t i = 0; i < root->results.count; ++i)
        if (is_string(module, graph, root->results.data[i]))
            return berth_status_make(BERTH_UNSUPPORTED, "output %u: %s", i, why);
    return BERTH_OK;
}

// ---- declared shapes and types ------------------------------------------------------------------

static const char declared_name[] = "declared", declared_types_name[] = "declared_types";

static void append(berth_module *module, berth_op *op, const char *name, const int64_t *entries,
                   uint32_t count) {
    uint32_t before_count = 0;
    const int64_t *before = berth_attrs_ints(module, &op->attrs, name, &before_count);
    if (!count) return;
    int64_t *all = berth_arena_new_array(module->arena, int64_t, before_count + count);
    for (uint32_t i = 0; i < before_count; ++i) all[i] = before[i];
    for (uint32_t i = 0; i < count; ++i) all[before_count + i] = entries[i];
    berth_attrs_set_ints(module, &op->attrs, name, all, before_count + count);
}

void berth_declare_shapes(berth_module *module, berth_op *op, const int64_t *entries,
                          uint32_t count) {
    append(module, op, declared_name, entries, count);
}

void berth_declare_types(berth_module *module, berth_op *op, const int64_t *entries,
                         uint32_t count) {
    append(module, op, declared_types_name, entries, count);
}

static bool contradicts(const berth_type *type, int64_t rank, const int64_t *declared) {
    if (type->kind != BERTH_TYPE_TENSOR || type->rank < 0) return false;
    if (type->rank != rank) return true;
    for (int d = 0; d < type->rank; ++d) {
        bool known = declared[d] >= 0 && !berth_dim_is_symbol(type->dims[d]);
        if (known && declared[d] != type->dims[d]) return true;
    }
    return false;
}

static const char *shape_text(const berth_module *module, int64_t rank, const int64_t *declared) {
    berth_strbuf text = berth_strbuf_make(module->arena);
    berth_strbuf_add(&text, "[");
    for (int64_t d = 0; d < rank; ++d) {
        const char *separator = d ? "," : "";
        if (declared[d] < 0)
            berth_strbuf_addf(&text, "%s?", separator);
        else
            berth_strbuf_addf(&text, "%s%lld", separator, (long long)declared[d]);
    }
    berth_strbuf_add(&text, "]");
    return berth_strbuf_text(&text);
}

static void warn_of(const berth_module *module, const berth_graph *graph, berth_value_id value,
                    const char *declared, berth_log log) {
    const berth_value *held = &graph->values.data[value];
    berth_strbuf inferred = berth_strbuf_make(module->arena);
    berth_type_print(module, held->type, &inferred);
    berth_log_message(log, BERTH_LOG_WARNING,
                      "%s: result \"%s\" is declared %s, but what is computed is %s",
                      berth_loc_describe(module, graph->ops.data[held->op].loc, module->arena),
                      berth_module_str(module, held->name), declared, berth_strbuf_text(&inferred));
}

static uint32_t check_shapes(berth_module *module, berth_graph *graph, const berth_op *op,
                             uint32_t seen, berth_log log) {
    uint32_t count = 0, wrong = 0;
    const int64_t *all = berth_attrs_ints(module, &op->attrs, declared_name, &count);
    for (uint32_t at = 0; all && at + 2 <= count;) {
        const int64_t *entry = &all[at];
        if (entry[1] < 0 || entry[1] > count - at - 2)
            break;  // from a text: not as import writes it
        at += 2 + (uint32_t)entry[1];
        if (entry[0] < 0 || entry[0] >= op->output_count) continue;
        berth_value_id value = op->outputs[entry[0]];
        const berth_type *type = type_of(module, graph, value);
        if (!contradicts(type, entry[1], &entry[2])) continue;
        if (seen + wrong < BERTH_DECLARED_WARNINGS) {
            const char *shape = shape_text(module, entry[1], &entry[2]);
            warn_of(module, graph, value,
                    berth_arena_printf(module->arena, "with the shape %s", shape), log);
        }
        wrong++;
    }
    return wrong;
}

static uint32_t check_types(berth_module *module, berth_graph *graph, const berth_op *op,
                            uint32_t seen, berth_log log) {
    uint32_t count = 0, wrong = 0;
    const int64_t *all = berth_attrs_ints(module, &op->attrs, declared_types_name, &count);
    for (uint32_t at = 0; all && at + 2 <= count; at += 2) {
        const int64_t *entry = &all[at];
        if (entry[0] < 0 || entry[0] >= op->output_count || entry[1] <= 0 ||
            entry[1] > BERTH_DTYPE_STRING)
            continue;
        berth_value_id value = op->outputs[entry[0]];
        const berth_type *type = type_of(module, graph, value);
        if (type->kind != BERTH_TYPE_TENSOR || !type->dtype || type->dtype == entry[1]) continue;
        if (seen + wrong < BERTH_DECLARED_WARNINGS)
            warn_of(module, graph, value, berth_dtype_name((berth_dtype)entry[1]), log);
        wrong++;
    }
    return wrong;
}

uint32_t berth_check_declared(berth_module *module, berth_graph *graph, berth_op_id id,
                              uint32_t seen, berth_log log) {
    berth_op *op = &graph->ops.data[id];
    uint32_t wrong = check_shapes(module, graph, op, seen, log);
    wrong += check_types(module, graph, op, seen + wrong, log);
    berth_attrs_remove(module, &op->attrs, declared_name);
    berth_attrs_remove(module, &op->attrs, declared_types_name);
    return wrong;
}
