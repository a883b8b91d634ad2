// Structural rules of graph functions: arity, defined before used, one definition, regions.
#include <string.h>

#include "ir/dialect.h"
#include "ir/external.h"
#include "ir/graph/graph.h"
#include "ir/pass.h"
#include "ir/tensor/call.h"
#include "ir/verify_call.h"

typedef struct checker {
    const berth_module *module;
    const berth_graph *graph;
    const char *function;
    bool *defined;  // per value
    berth_arena *arena;
} checker;

static berth_status problem(const checker *c, berth_op_id op, const char *what) {
    const char *where = op == BERTH_NONE
                            ? "results"
                            : berth_loc_describe(c->module, c->graph->ops.data[op].loc, c->arena);
    return berth_status_make(BERTH_INVALID_ARGUMENT, "function @%s, %s: %s", c->function, where,
                             what);
}

static berth_status check_arity(const checker *c, berth_op_id id) {
    const berth_op *op = &c->graph->ops.data[id];
    const berth_op_facts *facts = berth_op_facts_get(op->kind);
    int inputs = (int)op->input_count;
    int outputs = (int)op->output_count;
    if (inputs < facts->min_inputs || (facts->max_inputs >= 0 && inputs > facts->max_inputs))
        return problem(c, id,
                       berth_arena_printf(c->arena, "%s has %d operands", facts->name, inputs));
    if (outputs < facts->min_outputs || (facts->max_outputs >= 0 && outputs > facts->max_outputs))
        return problem(c, id,
                       berth_arena_printf(c->arena, "%s has %d results", facts->name, outputs));
    return BERTH_OK;
}

// Whether an operand may be left out: those that the operator has as options, and a loop's trip
// count and condition. Of operators with any number of operands (calls, tuples, concat) none may.
static bool optional_operand(const berth_op *op, uint32_t operand) {
    const berth_op_facts *facts = berth_op_facts_get(op->kind);
    if (op->kind == BERTH_OP_LOOP) return operand < 2;
    return facts->max_inputs >= 0 && (int)operand >= facts->min_inputs;
}

// "argument 1 of the call of @f", "field 0 of the tuple", "operand 2 of add".
static const char *operand_name(const checker *c, const berth_op *op, uint32_t operand) {
    const berth_attr *callee = berth_attrs_find(c->module, &op->attrs, "callee");
    const berth_function *function = callee && callee->kind == BERTH_ATTR_FUNCTION
                                         ? berth_module_function(c->module, callee->function)
                                         : NULL;
    if (op->kind == BERTH_OP_CALL_VALUE && operand == 0) return "the function that is called";
    if (op->kind == BERTH_OP_CALL_VALUE)
        return berth_arena_printf(c->arena, "argument %u of the call", operand);
    if (op->kind == BERTH_OP_CALL && function)
        return berth_arena_printf(c->arena, "argument %u of the call of @%s", operand + 1,
                                  berth_module_str(c->module, function->name));
    if (op->kind == BERTH_OP_TUPLE)
        return berth_arena_printf(c->arena, "field %u of the tuple", operand);
    return berth_arena_printf(c->arena, "operand %u of %s", operand + 1,
                              berth_op_facts_get(op->kind)->name);
}

static berth_status check_operands(const checker *c, berth_op_id id) {
    const berth_op *op = &c->graph->ops.data[id];
    for (uint32_t i = 0; i < op->input_count; ++i) {
        berth_value_id value = op->inputs[i];
        if (value == BERTH_NONE) {
            if (optional_operand(op, i)) continue;
            return problem(c, id,
                           berth_arena_printf(c->arena, "%s is left out ('_'): it must be given",
                                              operand_name(c, op, i)));
        }
        if (value >= c->graph->values.count || !c->defined[value])
            return problem(
                c, id, berth_arena_printf(c->arena, "operand %u is used before it is defined", i));
    }
    return BERTH_OK;
}

// ---- rules of single operations -----------------------------------------------------------------

static const berth_type *type_of(const checker *c, berth_value_id value) {
    return berth_type_get(c->module, c->graph->values.data[value].type);
}

static berth_status check_constant(const checker *c, berth_op_id id) {
    const berth_op *op = &c->graph->ops.data[id];
    const berth_attr *value = berth_attrs_find(c->module, &op->attrs, "value");
    if (!value || value->kind != BERTH_ATTR_TENSOR)
        return problem(c, id, "a constant has no literal in its attribute value");
    const berth_type *type = type_of(c, op->outputs[0]);
    if (type->kind == BERTH_TYPE_UNKNOWN) return BERTH_OK;
    const berth_tensor *literal = value->tensor;
    bool same = type->kind == BERTH_TYPE_TENSOR && type->dtype == literal->dtype;
    if (same && type->layout && berth_type_is_static(type)) {  // as it lies in memory
        uint64_t size_bytes =
            berth_type_size_bytes(c->module, c->graph->values.data[op->outputs[0]].type);
        return literal->rank == 1 && berth_tensor_size_bytes(literal) == size_bytes
                   ? BERTH_OK
                   : problem(c, id,
                             "the literal of a constant with a layout is a list of all its "
                             "elements as they lie in memory, padding included");
    }
    same = same && type->rank == literal->rank;
    for (int i = 0; same && i < type->rank; ++i) same = type->dims[i] == literal->dims[i];
    return same ? BERTH_OK : problem(c, id, "the type of a constant is not that of its literal");
}

static berth_status check_callee(const checker *c, berth_op_id id) {
    const berth_op *op = &c->graph->ops.data[id];
    const berth_attr *callee = berth_attrs_find(c->module, &op->attrs, "callee");
    if (!callee || callee->kind != BERTH_ATTR_FUNCTION)
        return problem(c, id, "the attribute callee (a function) is missing");
    const berth_function *function = berth_module_function(c->module, callee->function);
    if (!function || function->removed) return problem(c, id, "its callee does not exist");
    if (op->kind == BERTH_OP_FUNC_REF) return BERTH_OK;
    const char *what = berth_verify__call(c->module, c->graph, op, c->arena);
    return what ? problem(c, id, what) : BERTH_OK;
}

static berth_status check_count(const checker *c, berth_op_id id, const char *what, uint32_t wanted,
                                uint32_t given) {
    if (wanted == given) return BERTH_OK;
    return problem(c, id,
                   berth_arena_printf(c->arena, "the function that is called has %u %s, not %u",
                                      wanted, what, given));
}

// Whoever reads the call must know how many parameters and results there are.
static berth_status check_call_value(const checker *c, berth_op_id id) {
    const berth_op *op = &c->graph->ops.data[id];
    const berth_type *type = type_of(c, op->inputs[0]);
    if (type->kind != BERTH_TYPE_FUNCTION)
        return problem(c, id,
                       "what is called is not known to be a function: write its type behind the "
                       "value, as in %f: fn(f32[4])->(f32[4])");
    BERTH_TRY(check_count(c, id, "parameters", type->param_count, op->input_count - 1));
    return check_count(c, id, "results", type->field_count - type->param_count, op->output_count);
}

// A function is no data: a copy of it would be on a device without anything having gone there.
static berth_status check_copy(const checker *c, berth_op_id id) {
    const berth_op *op = &c->graph->ops.data[id];
    const berth_attr *source = berth_attrs_find(c->module, &op->attrs, "source");
    if (source && source->kind != BERTH_ATTR_DEVICE)
        return problem(c, id, "its attribute source is no device");
    if (!berth_type_get(c->module, c->graph->values.data[op->inputs[0]].type)->holds_function)
        return BERTH_OK;
    return problem(c, id,
                   "a function, or a tuple that holds one, cannot be copied: it is no data. "
                   "on_device says where a function computes, copies of its arguments and results "
                   "bring the data there");
}

static berth_status check_tuple_get(const checker *c, berth_op_id id) {
    const berth_op *op = &c->graph->ops.data[id];
    const berth_type *type = type_of(c, op->inputs[0]);
    int64_t index = berth_attrs_int(c->module, &op->attrs, "index", 0);
    if (type->kind == BERTH_TYPE_UNKNOWN) return BERTH_OK;
    if (type->kind != BERTH_TYPE_TUPLE) return problem(c, id, "its operand is no tuple");
    return index >= 0 && index < type->field_count
               ? BERTH_OK
               : problem(c, id, "its index is not that of a field of the tuple");
}

static berth_status check_regions_of(const checker *c, berth_op_id id) {
    const berth_op *op = &c->graph->ops.data[id];
    uint32_t wanted = op->kind == BERTH_OP_IF ? 2 : op->kind == BERTH_OP_LOOP ? 1 : 0;
    if (op->region_count != wanted)
        return problem(
            c, id,
            berth_arena_printf(c->arena, "it has %u regions, not %u", op->region_count, wanted));
    for (uint32_t i = 0; i < wanted; ++i) {
        const berth_region *region = &c->graph->regions.data[op->regions[i]];
        bool loop = op->kind == BERTH_OP_LOOP;  // the condition comes first among its results
        if (region->parent != id) return problem(c, id, "a region does not name it as its parent");
        if (region->results.count != op->output_count + loop)
            return problem(c, id, "a region has another number of results");
        if (region->params.count != (loop ? op->input_count : 0))
            return problem(c, id, "a region has another number of parameters");
    }
    return BERTH_OK;
}

static berth_status check_rules(const checker *c, berth_op_id id) {
    const berth_op *op = &c->graph->ops.data[id];
    const berth_attr *device = berth_attrs_find(c->module, &op->attrs, "device");
    BERTH_TRY(check_regions_of(c, id));
    switch (op->kind) {
    case BERTH_OP_CONSTANT: return check_constant(c, id);
    case BERTH_OP_CALL:
    case BERTH_OP_FUNC_REF: return check_callee(c, id);
    case BERTH_OP_CALL_VALUE: return check_call_value(c, id);
    case BERTH_OP_TUPLE_GET: return check_tuple_get(c, id);
    case BERTH_OP_ON_DEVICE:
    case BERTH_OP_DEVICE_COPY:
        if (device && device->kind != BERTH_ATTR_DEVICE)
            return problem(c, id, "its attribute device is no device");
        return op->kind == BERTH_OP_DEVICE_COPY ? check_copy(c, id) : BERTH_OK;
    default: return BERTH_OK;
    }
}

static berth_status check_region(checker *c, berth_region_id region_id);

static berth_status check_op(checker *c, berth_op_id id, berth_region_id region) {
    if (id >= c->graph->ops.count) return problem(c, BERTH_NONE, "an operation id is out of range");
    const berth_op *op = &c->graph->ops.data[id];
    if (op->region != region) return problem(c, id, "it is listed in a region that is not its own");
    BERTH_TRY(check_arity(c, id));
    BERTH_TRY(check_operands(c, id));
    BERTH_TRY(check_rules(c, id));
    for (uint32_t i = 0; i < op->region_count; ++i) BERTH_TRY(check_region(c, op->regions[i]));
    for (uint32_t i = 0; i < op->output_count; ++i) {
        const berth_value *value = &c->graph->values.data[op->outputs[i]];
        if (value->op != id || value->index != i)
            return problem(c, id, "a result does not name it as its definition");
        c->defined[op->outputs[i]] = true;
    }
    return BERTH_OK;
}

static berth_status check_region(checker *c, berth_region_id region_id) {
    const berth_region *region = &c->graph->regions.data[region_id];
    for (uint32_t i = 0; i < region->params.count; ++i) c->defined[region->params.data[i]] = true;
    for (uint32_t i = 0; i < region->ops.count; ++i)
        BERTH_TRY(check_op(c, region->ops.data[i], region_id));
    for (uint32_t i = 0; i < region->results.count; ++i) {
        berth_value_id value = region->results.data[i];
        if (value >= c->graph->values.count || !c->defined[value])
            return problem(
                c, region->parent,
                berth_arena_printf(c->arena, "result %u is not defined in its region", i));
    }
    if (region_id == 0) return BERTH_OK;
    // Outside, its values cannot be seen.
    for (uint32_t i = 0; i < region->params.count; ++i) c->defined[region->params.data[i]] = false;
    for (uint32_t i = 0; i < region->ops.count; ++i) {
        const berth_op *op = &c->graph->ops.data[region->ops.data[i]];
        for (uint32_t j = 0; j < op->output_count; ++j) c->defined[op->outputs[j]] = false;
    }
    return BERTH_OK;
}

berth_status berth_module_verify(const berth_module *module) {
    berth_arena *arena = berth_arena_create_child(module->arena);
    berth_status status = BERTH_OK;
    for (uint32_t i = 0; i < module->functions.count && !status; ++i) {
        const berth_function *function = &module->functions.data[i];
        if (function->removed) continue;
        if (function->dialect != &berth_dialect_graph) {
            if (function->dialect->verify) status = function->dialect->verify(module, i);
            continue;
        }
        const berth_graph *graph = function->body;
        checker c = {.module = module,
                     .graph = graph,
                     .function = berth_module_str(module, function->name),
                     .defined = berth_arena_new_array(arena, bool, graph->values.count),
                     .arena = arena};
        status = check_region(&c, 0);
    }
    if (!status) status = berth_tfn_check_call_nesting(module);
    berth_arena_destroy(arena);
    return status;
}
