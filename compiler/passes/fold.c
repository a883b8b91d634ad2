#include "compiler/passes/fold.h"

#include "compiler/passes/check.h"
#include "ir/eval.h"
#include "ir/infer.h"

#define DEFAULT_MAX_RESULT_BYTES ((uint64_t)64 << 20)
// A result above this that is many times its operands (a mask of tokens by tokens, of every batch) costs more to
// evaluate and to keep, for each shape, than a kernel that computes it where it is used.
#define MAX_GROWN_BYTES ((uint64_t)1 << 20)
#define MAX_GROWTH 8

typedef struct folder {
    berth_module *module;
    berth_func_id function;
    berth_graph *graph;
    uint64_t max_result_bytes;
    uint64_t max_grown_bytes;
    bool *weights;         // by value: see find_weights
    uint32_t value_count;  // when these were found
    bool keep_quantized;
    berth_log log;
    uint32_t wrong_declarations;
    BERTH_VEC(berth_value_id) map;  // replacements so far, by value
} folder;

// ---- replacements ----

static void extend_map(folder *f) {
    for (uint32_t i = f->map.count; i < f->graph->values.count; ++i)
        berth_vec_push(f->module->arena, &f->map, i);
}

static berth_value_id resolve(folder *f, berth_value_id value) {
    extend_map(f);
    while (value != BERTH_NONE && f->map.data[value] != value) value = f->map.data[value];
    return value;
}

static void replace(folder *f, berth_value_id from, berth_value_id to) {
    extend_map(f);
    to = resolve(f, to);
    if (from != to) f->map.data[from] = to;
}

// ---- constants ----

// Of which only the shape is looked at.
static const berth_tensor *constant_of(const folder *f, berth_value_id value) {
    return value == BERTH_NONE ? NULL : berth_graph_raw_constant_of(f->module, f->graph, value);
}

// Turns a one-result operation into a constant where it stands.
static void become_constant(folder *f, berth_op_id id, const berth_tensor *tensor) {
    berth_op *op = &f->graph->ops.data[id];
    const berth_tensor *held = berth_arena_copy(f->module->arena, tensor, sizeof(*tensor));
    op->kind = BERTH_OP_CONSTANT;
    op->input_count = 0;
    op->attrs.items.count = 0;
    berth_attrs_set(f->module, &op->attrs, "value",
                    (berth_attr){.kind = BERTH_ATTR_TENSOR, .tensor = held});
    f->graph->values.data[op->outputs[0]].type =
        berth_type_tensor(f->module, tensor->dtype, tensor->rank, tensor->dims);
}

static bool all_constant(const folder *f, const berth_op *op) {
    for (uint32_t i = 0; i < op->input_count; ++i)
        if (op->inputs[i] != BERTH_NONE && !constant_of(f, op->inputs[i])) return false;
    return true;
}

// Results must not be much larger than what they come from: a constant is stored, an operation is
// not.
static bool small_enough(const folder *f, const berth_op *op) {
    uint64_t read = 0;
    uint64_t written = 0;
    bool weights = false;
    for (uint32_t i = 0; i < op->input_count; ++i) {
        const berth_tensor *tensor = constant_of(f, op->inputs[i]);
        if (tensor) read += berth_tensor_size_bytes(tensor);
    }
    for (uint32_t i = 0; i < op->output_count; ++i) {
        berth_type_id type = f->graph->values.data[op->outputs[i]].type;
        weights |= op->outputs[i] < f->value_count && f->weights[op->outputs[i]];
        if (berth_type_is_static(berth_type_get(f->module, type)))
            written += berth_type_size_bytes(f->module, type);
    }
    if (!weights && written > f->max_grown_bytes && written / MAX_GROWTH > read) return false;
    return written <= f->max_result_bytes || written <= read;
}

static bool has_weights(berth_op_kind kind) {
    return kind == BERTH_OP_CONV || kind == BERTH_OP_CONV_TRANSPOSE || kind == BERTH_OP_GEMM ||
           kind == BERTH_OP_MATMUL;
}

// Values that nothing but constants make and that convolutions and products take as weights: these are packed for their
// kernels once, which needs the bytes, however few they are made of.
static void find_weights(folder *f) {
    const berth_graph *graph = f->graph;
    const berth_region *body = &graph->regions.data[0];
    berth_arena *arena = f->module->arena;
    f->value_count = graph->values.count;
    f->weights = berth_arena_new_array(arena, bool, f->value_count + 1);
    bool *constant = berth_arena_new_array(arena, bool, f->value_count + 1);
    for (uint32_t i = 0; i < body->ops.count; ++i) {
        const berth_op *op = &graph->ops.data[body->ops.data[i]];
        bool all = !berth_op_has(op->kind, BERTH_TRAIT_RANDOM) && op->region_count == 0;
        for (uint32_t k = 0; k < op->input_count; ++k)
            all = all && (op->inputs[k] == BERTH_NONE || constant[op->inputs[k]]);
        for (uint32_t k = 0; k < op->output_count; ++k) constant[op->outputs[k]] = all;
    }
    for (uint32_t i = body->ops.count; i-- > 0;) {
        const berth_op *op = &graph->ops.data[body->ops.data[i]];
        bool wanted = false;
        for (uint32_t k = 0; k < op->output_count; ++k) wanted |= f->weights[op->outputs[k]];
        for (uint32_t k = 0; k < op->input_count; ++k)
            if (op->inputs[k] != BERTH_NONE && constant[op->inputs[k]])
                f->weights[op->inputs[k]] |= wanted || (has_weights(op->kind) && k == 1);
    }
}

// Where results have shapes that only values tell, what they come from is worth evaluating at any size: shapes
// become static.
static bool has_data_dependent_shapes(const berth_graph *graph) {
    for (uint32_t i = 0; i < graph->ops.count; ++i)
        if (berth_op_has(graph->ops.data[i].kind, BERTH_TRAIT_DATA_DEPENDENT)) return true;
    return false;
}

// Weights that another pass may want as integers (integers.h).
static bool kept_for_integers(const folder *f, const berth_op *op) {
    if (!f->keep_quantized || op->kind != BERTH_OP_DEQUANTIZE_LINEAR) return false;
    const berth_tensor *tensor = constant_of(f, op->inputs[0]);
    return tensor && tensor->rank >= 2 && berth_dtype_size_bytes(tensor->dtype) == 1;
}

static bool foldable(const folder *f, const berth_op *op) {
    uint32_t never = BERTH_TRAIT_STRUCTURE | BERTH_TRAIT_RANDOM;
    if (kept_for_integers(f, op)) return false;
    return !berth_op_has(op->kind, never) && berth_eval_supports(op->kind) &&
           op->output_count > 0 && all_constant(f, op) && small_enough(f, op);
}

// Sets *out_kept when the operation stays (the interpreter does not know this form of it).
static berth_status evaluate(folder *f, berth_op_id id, bool *out_kept) {
    berth_arena *arena = f->module->arena;
    const berth_op *op = &f->graph->ops.data[id];
    berth_tensor *inputs = berth_arena_new_array(arena, berth_tensor, op->input_count + 1);
    berth_tensor *outputs = berth_arena_new_array(arena, berth_tensor, op->output_count);
    for (uint32_t i = 0; i < op->input_count; ++i)
        if (op->inputs[i] != BERTH_NONE)
            inputs[i] = *berth_graph_constant_of(f->module, f->graph, op->inputs[i]);
    berth_status status = berth_eval_op(f->module, f->function, id, inputs, outputs, arena);
    *out_kept = status != BERTH_OK;
    if (berth_status_code(status) == BERTH_UNSUPPORTED) {
        berth_status_free(status);
        return BERTH_OK;
    }
    BERTH_TRY(status);
    if (op->output_count == 1) {
        become_constant(f, id, &outputs[0]);
        *out_kept = true;
        return BERTH_OK;
    }
    berth_op copy = *op;
    for (uint32_t i = 0; i < copy.output_count; ++i) {
        berth_value_id value =
            berth_graph_constant(f->module, f->function, copy.region, &outputs[i], copy.loc);
        f->graph->values.data[value].name = f->graph->values.data[copy.outputs[i]].name;
        replace(f, copy.outputs[i], value);
    }
    return BERTH_OK;
}

// shape_of and size_of need only the operand's type.
static bool fold_shape(folder *f, berth_op_id id) {
    const berth_op *op = &f->graph->ops.data[id];
    if (op->kind != BERTH_OP_SHAPE_OF && op->kind != BERTH_OP_SIZE_OF) return false;
    berth_type in = *berth_type_get(f->module, f->graph->values.data[op->inputs[0]].type);
    if (!berth_type_is_static(&in)) return false;
    berth_type out = *berth_type_get(f->module, f->graph->values.data[op->outputs[0]].type);
    berth_tensor tensor =
        berth_tensor_create(f->module->arena, BERTH_DTYPE_I64, out.rank, out.dims);
    if (op->kind == BERTH_OP_SHAPE_OF) {
        int64_t start = berth_attrs_int(f->module, &op->attrs, "start", 0);
        if (start < 0) start += in.rank;
        if (start < 0) start = 0;
        for (int64_t i = 0; i < out.dims[0]; ++i)
            berth_tensor_set_i64(&tensor, i, in.dims[start + i]);
    } else {
        int64_t count = 1;
        for (int i = 0; i < in.rank; ++i) count *= in.dims[i];  // static types have checked sizes
        berth_tensor_set_i64(&tensor, 0, count);
    }
    become_constant(f, id, &tensor);
    return true;
}

// ---- regions ----

static berth_status fold_ops(folder *f, berth_region_id region, const berth_op_id *ops,
                             uint32_t count);

// The region's list is made anew while its operations are visited, so that constants land before
// their uses.
static berth_status fold_region(folder *f, berth_region_id id) {
    berth_region *region = &f->graph->regions.data[id];
    uint32_t count = region->ops.count;
    const berth_op_id *ops =
        berth_arena_copy(f->module->arena, region->ops.data, count * sizeof(*ops));
    region->ops.count = 0;
    return fold_ops(f, id, ops, count);
}

static void keep(folder *f, berth_region_id region, berth_op_id op) {
    f->graph->ops.data[op].region = region;
    berth_vec_push(f->module->arena, &f->graph->regions.data[region].ops, op);
}

static void check_declared(folder *f, berth_op_id id) {
    f->wrong_declarations +=
        berth_check_declared(f->module, f->graph, id, f->wrong_declarations, f->log);
}

// `if` with a constant condition: the branch's operations move here, its results stand for the
// operation's.
static berth_status inline_branch(folder *f, berth_region_id region, berth_op_id id,
                                  bool condition) {
    berth_op op = f->graph->ops.data[id];
    berth_region branch = f->graph->regions.data[op.regions[condition ? 0 : 1]];
    berth_op_id *ops =
        berth_arena_copy(f->module->arena, branch.ops.data, branch.ops.count * sizeof(*ops));
    for (uint32_t r = 0; r < op.region_count; ++r)
        f->graph->regions.data[op.regions[r]].ops.count = 0;
    BERTH_TRY(fold_ops(f, region, ops, branch.ops.count));
    for (uint32_t i = 0; i < op.output_count && i < branch.results.count; ++i) {
        berth_value_id result = resolve(f, branch.results.data[i]);
        f->graph->values.data[op.outputs[i]].type = f->graph->values.data[result].type;
        replace(f, op.outputs[i], result);
    }
    check_declared(f, id);
    for (uint32_t r = 0; r < op.region_count; ++r)
        f->graph->regions.data[op.regions[r]].results.count = 0;
    f->graph->ops.data[id].region = BERTH_NONE;
    return BERTH_OK;
}

static berth_status fold_with_regions(folder *f, berth_region_id region, berth_op_id id) {
    const berth_tensor *condition = NULL;
    const berth_op *op = &f->graph->ops.data[id];
    if (op->kind == BERTH_OP_IF && op->inputs[0] != BERTH_NONE)
        condition = berth_graph_constant_of(f->module, f->graph, op->inputs[0]);
    if (condition && berth_tensor_element_count(condition) == 1 &&
        f->graph->ops.data[id].region_count == 2)
        return inline_branch(f, region, id, berth_tensor_get_i64(condition, 0) != 0);
    BERTH_TRY(berth_infer_op(f->module, f->function, id));  // types of the regions' parameters
    for (uint32_t r = 0; r < f->graph->ops.data[id].region_count; ++r)
        BERTH_TRY(fold_region(f, f->graph->ops.data[id].regions[r]));
    keep(f, region, id);
    for (uint32_t r = 0; r < f->graph->ops.data[id].region_count; ++r) {
        berth_region *held = &f->graph->regions.data[f->graph->ops.data[id].regions[r]];
        for (uint32_t i = 0; i < held->results.count; ++i)
            held->results.data[i] = resolve(f, held->results.data[i]);
    }
    BERTH_TRY(berth_infer_op(f->module, f->function, id));
    check_declared(f, id);
    return BERTH_OK;
}

static berth_status fold_op(folder *f, berth_region_id region, berth_op_id id) {
    berth_op *op = &f->graph->ops.data[id];
    bool kept = true;
    op->region = region;
    for (uint32_t i = 0; i < op->input_count; ++i) op->inputs[i] = resolve(f, op->inputs[i]);
    if (op->region_count) return fold_with_regions(f, region, id);
    BERTH_TRY(berth_infer_op(f->module, f->function, id));
    BERTH_TRY(berth_graph_excuse(f->graph, region, berth_check_indices(f->module, f->graph, id)));
    check_declared(f, id);
    if (!fold_shape(f, id) && foldable(f, op))
        BERTH_TRY(berth_graph_excuse(f->graph, region, evaluate(f, id, &kept)));
    if (kept)
        keep(f, region, id);
    else
        f->graph->ops.data[id].region = BERTH_NONE;
    return BERTH_OK;
}

static berth_status fold_ops(folder *f, berth_region_id region, const berth_op_id *ops,
                             uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) BERTH_TRY(fold_op(f, region, ops[i]));
    return BERTH_OK;
}

berth_status berth_pass_fold(berth_module *module, berth_func_id function,
                             const berth_fold_options *options) {
    folder f = {.module = module, .function = function, .graph = berth_graph_get(module, function)};
    if (!f.graph)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "function %u is not a graph function",
                                 function);
    f.max_result_bytes =
        options && options->max_result_bytes ? options->max_result_bytes : DEFAULT_MAX_RESULT_BYTES;
    f.max_grown_bytes = has_data_dependent_shapes(f.graph) ? f.max_result_bytes : MAX_GROWN_BYTES;
    if (options) {
        f.log = options->log;
        f.keep_quantized = options->keep_quantized;
    }
    find_weights(&f);
    BERTH_TRY(fold_region(&f, 0));
    if (f.wrong_declarations > BERTH_DECLARED_WARNINGS)
        berth_log_message(f.log, BERTH_LOG_WARNING,
                          "%u more results have another shape or type than the model declares",
                          f.wrong_declarations - BERTH_DECLARED_WARNINGS);
    extend_map(&f);
    berth_graph_replace_many(f.graph, f.map.data);
    if (!options || !options->keep_dead) berth_graph_remove_dead(module, function);
    return BERTH_OK;
}
