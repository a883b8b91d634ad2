#include "compiler/passes/fold.h"

#include <string.h>

#include "ir/eval.h"
#include "ir/infer.h"

typedef struct folder {
    berth_module *module;
    berth_func_id function;
    uint64_t size_limit_bytes;
    BERTH_VEC(berth_value_id) map;  // value → what replaces it
    bool replaced;
} folder;

static berth_graph *graph_of(const folder *f) {
    return berth_graph_get(f->module, f->function);
}

static void extend(folder *f) {
    while (f->map.count < graph_of(f)->values.count) {
        berth_value_id next = f->map.count;
        berth_vec_push(f->module->arena, &f->map, next);
    }
}

static berth_value_id resolve(folder *f, berth_value_id value) {
    if (value == BERTH_NONE) return value;
    extend(f);
    while (f->map.data[value] != value) value = f->map.data[value];
    return value;
}

static void replace(folder *f, berth_value_id from, berth_value_id to) {
    extend(f);
    f->map.data[from] = to;
    f->replaced = true;
}

static void replace_by_constant(folder *f, berth_op_id id, uint32_t output,
                                const berth_tensor *tensor) {
    berth_op op = graph_of(f)->ops.data[id];
    berth_value_id value = berth_graph_insert_constant(f->module, f->function, id, tensor, op.loc);
    graph_of(f)->values.data[value].name = graph_of(f)->values.data[op.outputs[output]].name;
    replace(f, op.outputs[output], value);
}

// shape_of and size_of need the type only.
static bool fold_shape(folder *f, berth_op_id id) {
    berth_op op = graph_of(f)->ops.data[id];
    if (op.kind != BERTH_OP_SHAPE_OF && op.kind != BERTH_OP_SIZE_OF) return false;
    const berth_type *type = berth_type_get(f->module, graph_of(f)->values.data[op.inputs[0]].type);
    if (!berth_type_is_static(type)) return false;
    int64_t count = 1;
    for (int i = 0; i < type->rank; ++i) count *= type->dims[i];
    berth_tensor result;
    if (op.kind == BERTH_OP_SIZE_OF) {
        result = berth_tensor_create(f->module->arena, BERTH_DTYPE_I64, 0, NULL);
        ((int64_t *)result.data)[0] = count;
    } else {
        int64_t start = berth_attrs_int(f->module, &op.attrs, "start", 0);
        int64_t end = berth_attrs_int(f->module, &op.attrs, "end", type->rank);
        if (start < 0) start += type->rank;
        if (end < 0) end += type->rank;
        if (start < 0) start = 0;
        if (end > type->rank) end = type->rank;
        int64_t length = end > start ? end - start : 0;
        result = berth_tensor_create(f->module->arena, BERTH_DTYPE_I64, 1, &length);
        for (int64_t i = 0; i < length; ++i) ((int64_t *)result.data)[i] = type->dims[start + i];
    }
    replace_by_constant(f, id, 0, &result);
    return true;
}

static bool may_evaluate(const folder *f, const berth_op *op) {
    if (op->region_count > 0 || !berth_eval_supports(op->kind)) return false;
    if (berth_op_has(op->kind, BERTH_TRAIT_RANDOM) || berth_op_has(op->kind, BERTH_TRAIT_STRUCTURE))
        return false;
    uint64_t given = f->size_limit_bytes;
    for (uint32_t i = 0; i < op->input_count; ++i) {
        if (op->inputs[i] == BERTH_NONE) continue;
        const berth_tensor *constant =
            berth_graph_constant_of(f->module, graph_of(f), op->inputs[i]);
        if (!constant ||
            berth_type_get(f->module, graph_of(f)->values.data[op->inputs[i]].type)->layout)
            return false;
        if (berth_tensor_size_bytes(constant) > given) given = berth_tensor_size_bytes(constant);
    }
    for (uint32_t i = 0; i < op->output_count; ++i) {
        berth_type_id type = graph_of(f)->values.data[op->outputs[i]].type;
        if (berth_type_is_static(berth_type_get(f->module, type)) &&
            berth_type_size_bytes(f->module, type) > given)
            return false;
    }
    return true;
}

static berth_status evaluate(folder *f, berth_op_id id) {
    berth_op op = graph_of(f)->ops.data[id];
    berth_arena *arena = f->module->arena;
    berth_tensor *inputs = berth_arena_new_array(arena, berth_tensor, op.input_count + 1);
    berth_tensor *outputs = berth_arena_new_array(arena, berth_tensor, op.output_count + 1);
    for (uint32_t i = 0; i < op.input_count; ++i)
        if (op.inputs[i] != BERTH_NONE)
            inputs[i] = *berth_graph_constant_of(f->module, graph_of(f), op.inputs[i]);
    BERTH_TRY(berth_eval_op(f->module, f->function, id, inputs, outputs, arena));
    for (uint32_t i = 0; i < op.output_count; ++i) replace_by_constant(f, id, i, &outputs[i]);
    return BERTH_OK;
}

static berth_status fold_region(folder *f, berth_region_id region);

// An `if` whose condition is known: the branch's operations move in front of it.
static berth_status fold_if(folder *f, berth_op_id id, bool *out_folded) {
    berth_op op = graph_of(f)->ops.data[id];
    const berth_tensor *condition =
        op.kind == BERTH_OP_IF ? berth_graph_constant_of(f->module, graph_of(f), op.inputs[0])
                               : NULL;
    *out_folded = condition && op.region_count == 2 && berth_tensor_element_count(condition) == 1;
    if (!*out_folded) return BERTH_OK;
    berth_region_id branch_id = op.regions[berth_tensor_get_i64(condition, 0) ? 0 : 1];
    BERTH_TRY(fold_region(f, branch_id));
    berth_graph *graph = graph_of(f);
    berth_region *parent = &graph->regions.data[op.region];
    berth_region *branch = &graph->regions.data[branch_id];
    BERTH_VEC(berth_op_id) merged = {0};
    for (uint32_t i = 0; i < parent->ops.count; ++i) {
        if (parent->ops.data[i] == id)
            for (uint32_t j = 0; j < branch->ops.count; ++j) {
                graph->ops.data[branch->ops.data[j]].region = op.region;
                berth_vec_push(f->module->arena, &merged, branch->ops.data[j]);
            }
        berth_vec_push(f->module->arena, &merged, parent->ops.data[i]);
    }
    parent->ops.data = merged.data;
    parent->ops.count = merged.count;
    parent->ops.capacity = merged.capacity;
    for (uint32_t i = 0; i < op.output_count; ++i)
        replace(f, op.outputs[i], resolve(f, branch->results.data[i]));
    branch->ops.count = 0;
    branch->results.count = 0;
    return BERTH_OK;
}

static berth_status fold_op(folder *f, berth_op_id id) {
    berth_op *op = &graph_of(f)->ops.data[id];
    for (uint32_t i = 0; i < op->input_count; ++i) op->inputs[i] = resolve(f, op->inputs[i]);
    if (op->kind == BERTH_OP_CONSTANT) return BERTH_OK;
    bool folded = false;
    BERTH_TRY(fold_if(f, id, &folded));
    if (folded) return BERTH_OK;
    berth_op held = graph_of(f)->ops.data[id];
    for (uint32_t i = 0; i < held.region_count; ++i) BERTH_TRY(fold_region(f, held.regions[i]));
    BERTH_TRY(berth_infer_op(f->module, f->function, id));
    if (fold_shape(f, id)) return BERTH_OK;
    held = graph_of(f)->ops.data[id];
    return may_evaluate(f, &held) ? evaluate(f, id) : BERTH_OK;
}

static berth_status fold_region(folder *f, berth_region_id region) {
    uint32_t count = graph_of(f)->regions.data[region].ops.count;
    berth_op_id *order = berth_arena_copy(
        f->module->arena, graph_of(f)->regions.data[region].ops.data, count * sizeof(berth_op_id));
    for (uint32_t i = 0; i < count; ++i) BERTH_TRY(fold_op(f, order[i]));
    berth_region *held = &graph_of(f)->regions.data[region];
    for (uint32_t i = 0; i < held->results.count; ++i)
        held->results.data[i] = resolve(f, held->results.data[i]);
    return BERTH_OK;
}

berth_status berth_pass_fold(berth_module *module, berth_func_id function,
                             const berth_fold_options *options) {
    folder f = {.module = module, .function = function, .size_limit_bytes = (uint64_t)64 << 20};
    if (options && options->size_limit_bytes) f.size_limit_bytes = options->size_limit_bytes;
    BERTH_TRY(fold_region(&f, 0));
    extend(&f);
    if (f.replaced) berth_graph_replace_many(graph_of(&f), f.map.data);
    berth_graph_remove_dead(module, function);
    return BERTH_OK;
}
