#include "compiler/passes/index_checks.h"

#include <string.h>

#include "ir/graph/op_params.h"
#include "planner/planner.h"
#include "target/virtual_device.h"

#define ATTR_CHECKS                                                                                \
    "index_checks"  // the results of main itself; then, per check, the numbers below
#define ATTR_NODES "index_check_nodes"
enum { at_source, at_from_end, at_width, at_extents };

enum { most_depth = 16 };  // of what is asked about where values come from

typedef struct checker {
    berth_module *module;
    berth_func_id main;
    const berth_multi_target *target;
    BERTH_VEC(int64_t) numbers;
    BERTH_VEC(berth_str_id) nodes;
} checker;

static berth_graph *graph_of(const checker *c) {
    return berth_graph_get(c->module, c->main);
}

static const berth_type *type_of(const checker *c, berth_value_id value) {
    return berth_type_get(c->module, graph_of(c)->values.data[value].type);
}

// The operation that makes a value; NULL: a parameter.
static const berth_op *maker_of(const checker *c, berth_value_id value) {
    berth_op_id id = graph_of(c)->values.data[value].op;
    return id == BERTH_NONE ? NULL : &graph_of(c)->ops.data[id];
}

// ---- what can be out of range -------------------------------------------------------------------

typedef struct interval {
    int64_t low, high;
} interval;

static const interval anything = {INT64_MIN, INT64_MAX};

static interval of_dtype(berth_dtype dtype) {
    switch (dtype) {
    case BERTH_DTYPE_BOOL: return (interval){0, 1};
    case BERTH_DTYPE_U8: return (interval){0, UINT8_MAX};
    case BERTH_DTYPE_I8: return (interval){INT8_MIN, INT8_MAX};
    case BERTH_DTYPE_U16: return (interval){0, UINT16_MAX};
    case BERTH_DTYPE_I16: return (interval){INT16_MIN, INT16_MAX};
    case BERTH_DTYPE_U32: return (interval){0, UINT32_MAX};
    default: return anything;
    }
}

static interval of_constant(const berth_tensor *tensor) {
    interval found = {INT64_MAX, INT64_MIN};
    int64_t count = berth_tensor_element_count(tensor);
    if (!berth_dtype_is_integer(tensor->dtype) || count > 4096) return anything;
    for (int64_t i = 0; i < count; ++i) {
        int64_t value = berth_tensor_get_i64(tensor, i);
        if (value < found.low) found.low = value;
        if (value > found.high) found.high = value;
    }
    return found;
}

static interval joined(interval a, interval b) {
    return (interval){a.low < b.low ? a.low : b.low, a.high > b.high ? a.high : b.high};
}

static interval met(interval a, interval b) {
    return (interval){a.low > b.low ? a.low : b.low, a.high < b.high ? a.high : b.high};
}

static interval interval_of(const checker *c, berth_value_id value, int depth);

static interval operand(const checker *c, const berth_op *op, uint32_t i, int depth) {
    if (i >= op->input_count || op->inputs[i] == BERTH_NONE) return anything;
    return interval_of(c, op->inputs[i], depth + 1);
}

// Indices along a dimension of the first operand; of non_zero, along any.
static interval of_positions(const checker *c, const berth_op *op, int64_t fallback) {
    const berth_type *type = type_of(c, op->inputs[0]);
    int axis = 0;
    int64_t most = 0;
    if (op->kind == BERTH_OP_NON_ZERO) {
        for (int d = 0; d < type->rank; ++d)
            if (type->dims[d] > most) most = type->dims[d];
        return (interval){0, most - 1};
    }
    int64_t given = berth_attrs_int(c->module, &op->attrs, "axis", fallback);
    berth_status status = berth_axis_resolve(given, type->rank, "axis", &axis);
    bool known = !status && type->rank > 0;
    berth_status_ignore(status);
    return known ? (interval){0, type->dims[axis] - 1} : anything;
}

static interval of_result(const checker *c, const berth_op *op, uint32_t result, int depth) {
    interval found = {INT64_MAX, INT64_MIN};
    switch (op->kind) {
    case BERTH_OP_ARG_MAX:
    case BERTH_OP_ARG_MIN: return of_positions(c, op, 0);
    case BERTH_OP_TOP_K: return result == 1 ? of_positions(c, op, -1) : operand(c, op, 0, depth);
    case BERTH_OP_NON_ZERO: return of_positions(c, op, 0);
    case BERTH_OP_CLIP: {
        interval least = operand(c, op, 1, depth), most = operand(c, op, 2, depth);
        interval clipped = met(operand(c, op, 0, depth), (interval){least.low, most.high});
        return least.high <= most.low ? clipped : anything;
    }
    case BERTH_OP_WHERE: return joined(operand(c, op, 1, depth), operand(c, op, 2, depth));
    case BERTH_OP_CONCAT:
        for (uint32_t i = 0; i < op->input_count; ++i)
            found = joined(found, operand(c, op, i, depth));
        return found;
    case BERTH_OP_DEVICE_COPY:
    case BERTH_OP_TRANSPOSE:
    case BERTH_OP_EXPAND:
    case BERTH_OP_TILE:
    case BERTH_OP_SLICE:
    case BERTH_OP_GATHER: return operand(c, op, 0, depth);
    default: break;
    }
    bool same = berth_op_has(op->kind, BERTH_TRAIT_VIEW) && op->kind != BERTH_OP_BIT_CAST;
    return same ? operand(c, op, 0, depth) : anything;
}

// Of the elements of a value. What is no integer may be anything.
static interval interval_of(const checker *c, berth_value_id value, int depth) {
    const berth_type *type = type_of(c, value);
    const berth_op *op = maker_of(c, value);
    interval found = of_dtype(type->dtype);
    if (!berth_dtype_is_integer(type->dtype) && type->dtype != BERTH_DTYPE_BOOL) return anything;
    if (!op || depth >= most_depth) return found;
    const berth_tensor *constant = berth_graph_raw_constant_of(c->module, graph_of(c), value);
    if (constant) constant = berth_graph_constant_of(c->module, graph_of(c), value);
    if (constant) return met(found, of_constant(constant));
    if (op->kind == BERTH_OP_CAST) {
        interval from = operand(c, op, 0, depth);
        return from.low >= found.low && from.high <= found.high ? from : found;
    }
    return met(found, of_result(c, op, graph_of(c)->values.data[value].index, depth));
}

// ---- what indexes what --------------------------------------------------------------------------

static bool by_axis(const checker *c, const berth_op *op, const berth_type *data,
                    berth_program_check *out) {
    int axis = 0;
    int64_t given = berth_attrs_int(c->module, &op->attrs, "axis", 0);
    berth_status status = berth_axis_resolve(given, data->rank, "axis", &axis);
    bool known = !status && data->rank > 0;
    berth_status_ignore(status);
    out->width = 1;
    if (known) out->extents[0] = data->dims[axis];
    return known;
}

static bool by_tuple(const berth_type *data, const berth_type *indices, int64_t first,
                     berth_program_check *out) {
    int64_t width = indices->rank > 0 ? indices->dims[indices->rank - 1] : 0;
    if (width < 1 || first < 0 || first + width > data->rank) return false;
    out->width = (uint32_t)width;
    for (int64_t k = 0; k < width; ++k) out->extents[k] = data->dims[first + k];
    return true;
}

static int64_t element_count(const berth_type *type) {
    int64_t count = 1;
    for (int d = 0; d < type->rank; ++d) count *= type->dims[d];
    return count;
}

// What an operation's operand `*out_operand` indexes; false: nothing, or it is not known.
static bool describe(const checker *c, const berth_op *op, uint32_t *out_operand,
                     berth_program_check *out) {
    *out = (berth_program_check){.from_end = true};
    *out_operand = 1;
    if (op->input_count < 2 || op->inputs[0] == BERTH_NONE || op->inputs[1] == BERTH_NONE ||
        berth_attrs_int(c->module, &op->attrs, BERTH_ATTR_IN_RANGE, 0))
        return false;
    const berth_type *data = type_of(c, op->inputs[0]), *indices = type_of(c, op->inputs[1]);
    switch (op->kind) {
    case BERTH_OP_GATHER:
    case BERTH_OP_GATHER_ELEMENTS:
    case BERTH_OP_SCATTER_ELEMENTS: return by_axis(c, op, data, out);
    case BERTH_OP_GATHER_ND:
        return by_tuple(data, indices, berth_attrs_int(c->module, &op->attrs, "batch_dims", 0),
                        out);
    case BERTH_OP_SCATTER_ND: return by_tuple(data, indices, 0, out);
    case BERTH_OP_ROI_ALIGN:
        *out_operand = 2;
        out->from_end = false;
        out->width = 1;
        out->extents[0] = data->dims[0];
        return op->input_count > 2;
    case BERTH_OP_MAX_UNPOOL:  // into an output of another size: places are not known from it
        out->from_end = false;
        out->width = 1;
        out->extents[0] = element_count(type_of(c, op->outputs[0]));
        return op->input_count < 3 || op->inputs[2] == BERTH_NONE;
    default: return false;
    }
}

static bool can_fail(const checker *c, berth_value_id indices, const berth_program_check *check) {
    interval possible = interval_of(c, indices, 0);
    if (possible.low > possible.high) return false;  // there are none
    for (uint32_t k = 0; k < check->width; ++k)
        if (possible.high >= check->extents[k] ||
            possible.low < (check->from_end ? -check->extents[k] : 0))
            return true;
    return false;
}

// ---- giving them to the host --------------------------------------------------------------------

// Where the same integers in the same order come from.
static berth_value_id origin_of(const checker *c, berth_value_id value) {
    for (;;) {
        const berth_op *op = maker_of(c, value);
        if (!op) return value;
        bool same = op->kind == BERTH_OP_DEVICE_COPY ||
                    (berth_op_has(op->kind, BERTH_TRAIT_VIEW) && op->kind != BERTH_OP_BIT_CAST);
        if (op->kind == BERTH_OP_CAST) {
            berth_dtype from = type_of(c, op->inputs[0])->dtype, to = type_of(c, value)->dtype;
            same = to == BERTH_DTYPE_I64 && (from == BERTH_DTYPE_I32 || from == BERTH_DTYPE_U32);
        }
        if (!same) return value;
        value = op->inputs[0];
    }
}

static berth_value_id on_host(checker *c, berth_value_id value) {
    berth_graph *graph = graph_of(c);
    berth_op_id id = graph->values.data[value].op;
    berth_device_id from = graph->ops.data[id].device;
    if (berth_plan_device_of(c->module, c->target, from) == c->target->host) return value;
    berth_device_id host = berth_virtual_device_intern(
        c->module->devices, berth_multi_target_virtual_device(c->target, c->target->host));
    berth_op_id copy = berth_graph_add_op(c->module, c->main, 0, BERTH_OP_DEVICE_COPY, &value, 1, 1,
                                          graph->ops.data[id].loc);
    berth_op *op = &graph->ops.data[copy];
    berth_value *made = &graph->values.data[op->outputs[0]];
    made->type = graph->values.data[value].type;
    made->name = graph->values.data[value].name;
    made->device = op->device = host;
    berth_attrs_set(c->module, &op->attrs, "source",
                    (berth_attr){.kind = BERTH_ATTR_DEVICE, .device = from});
    return op->outputs[0];
}

// The number by which a check knows its indices: -1 - parameter, or a result, made here if it is none yet.
static int64_t source_of(checker *c, berth_value_id indices) {
    berth_value_id value = origin_of(c, indices);
    if (!maker_of(c, value)) return -1 - (int64_t)graph_of(c)->values.data[value].index;
    berth_region *root = &graph_of(c)->regions.data[0];
    for (uint32_t i = 0; i < root->results.count; ++i)
        if (origin_of(c, root->results.data[i]) == value) return i;
    berth_value_id result = on_host(c, value);
    root = &graph_of(c)->regions.data[0];
    berth_vec_push(c->module->arena, &root->results, result);
    return root->results.count - 1;
}

static bool has_check(const checker *c, const int64_t *row, uint32_t count) {
    for (uint32_t at = 1; at < c->numbers.count;
         at += at_extents + (uint32_t)c->numbers.data[at + at_width])
        if (memcmp(&c->numbers.data[at], row, count * sizeof(*row)) == 0) return true;
    return false;
}

static void add_check(checker *c, berth_op_id id) {
    berth_program_check check;
    uint32_t operand = 0, count = at_extents;
    if (!describe(c, &graph_of(c)->ops.data[id], &operand, &check)) return;
    berth_value_id indices = graph_of(c)->ops.data[id].inputs[operand];
    berth_value_id origin = origin_of(c, indices);
    const berth_type *type = type_of(c, origin);
    if (berth_graph_raw_constant_of(c->module, graph_of(c), origin) || type->layout ||
        !berth_dtype_is_integer(type->dtype) || !can_fail(c, indices, &check))
        return;
    int64_t row[at_extents + BERTH_MAX_RANK] = {source_of(c, indices), check.from_end, check.width};
    for (uint32_t k = 0; k < check.width; ++k) row[count++] = check.extents[k];
    if (has_check(c, row, count)) return;
    for (uint32_t k = 0; k < count; ++k) berth_vec_push(c->module->arena, &c->numbers, row[k]);
    const char *node =
        berth_loc_describe(c->module, graph_of(c)->ops.data[id].loc, c->module->arena);
    berth_vec_push(c->module->arena, &c->nodes, berth_module_intern(c->module, node));
}

void berth_pass_check_indices(berth_module *module, berth_func_id main,
                              const berth_multi_target *target) {
    checker c = {.module = module, .main = main, .target = target};
    const berth_region *root = &graph_of(&c)->regions.data[0];
    berth_attrs *attrs = &berth_module_function(module, main)->attrs;
    if (target->executor == BERTH_EXECUTOR_AOT || berth_attrs_find(module, attrs, ATTR_CHECKS))
        return;
    berth_vec_push(module->arena, &c.numbers, root->results.count);
    for (uint32_t i = 0, count = root->ops.count; i < count; ++i)
        add_check(&c, graph_of(&c)->regions.data[0].ops.data[i]);
    if (!c.nodes.count) return;
    berth_attrs_set_ints(module, attrs, ATTR_CHECKS, c.numbers.data, c.numbers.count);
    berth_attrs_set(
        module, attrs, ATTR_NODES,
        (berth_attr){.kind = BERTH_ATTR_STRINGS, .count = c.nodes.count, .strings = c.nodes.data});
}

// ---- reading them -------------------------------------------------------------------------------

// False: the numbers are of no check.
static bool read_check(const berth_region *root, const int64_t *numbers, uint32_t count,
                       berth_program_check *out) {
    if (count < at_extents) return false;
    int64_t source = numbers[at_source], width = numbers[at_width];
    bool there = source < 0 ? -1 - source < (int64_t)root->params.count
                            : source < (int64_t)root->results.count;
    if (!there || width < 1 || width > BERTH_MAX_RANK || count - at_extents < width) return false;
    *out = (berth_program_check){.from_end = numbers[at_from_end] != 0, .width = (uint32_t)width};
    for (int64_t k = 0; k < width; ++k) out->extents[k] = numbers[at_extents + k];
    return true;
}

berth_status berth_index_checks_of(const berth_module *module, berth_func_id main,
                                   berth_arena *arena, berth_index_checks *out) {
    const berth_region *root = &berth_graph_get(module, main)->regions.data[0];
    const berth_attrs *attrs = &berth_module_function(module, main)->attrs;
    uint32_t count = 0, at = 1;
    const int64_t *numbers = berth_attrs_ints(module, attrs, ATTR_CHECKS, &count);
    const berth_attr *nodes = berth_attrs_find(module, attrs, ATTR_NODES);
    *out = (berth_index_checks){.result_count = root->results.count};
    if (!numbers || count == 0) return BERTH_OK;
    bool fits = nodes && nodes->kind == BERTH_ATTR_STRINGS && numbers[0] >= 0 &&
                numbers[0] <= root->results.count;
    uint32_t most = fits ? nodes->count : 0;
    berth_program_check *checks = berth_arena_new_array(arena, berth_program_check, most + 1);
    int64_t *sources = berth_arena_new_array(arena, int64_t, most + 1);
    for (; fits && out->count < most; ++out->count) {
        fits = read_check(root, numbers + at, count - at, &checks[out->count]);
        if (!fits) break;
        checks[out->count].node = berth_module_str(module, nodes->strings[out->count]);
        sources[out->count] = numbers[at + at_source];
        at += at_extents + checks[out->count].width;
    }
    if (!fits || at != count)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "@main: \"" ATTR_CHECKS "\" is of no checks");
    out->result_count = (uint32_t)numbers[0];
    out->checks = checks;
    out->sources = sources;
    return BERTH_OK;
}
