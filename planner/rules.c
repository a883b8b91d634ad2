// Stage hard: what every kind of expression demands (the table in docs/planner.md).
#include "ir/tensor/function.h"
#include "planner/stages.h"

static berth_use use(berth_use_kind kind, uint32_t node, const char *reason) {
    return (berth_use){.kind = kind, .node = node, .scope = BERTH_NONE, .reason = reason};
}

// The node of the scope of the buffer that an argument or a result of a lowered function is in.
static uint32_t buffer_scope(const berth_planner_state *state, berth_func_id callee,
                             uint32_t operands, uint32_t results, bool result, uint32_t index) {
    if (callee == BERTH_NONE || !state->functions[callee].scope) return BERTH_NONE;
    const berth_planner_buffers *buffers = state->functions[callee].buffers;
    const uint32_t *list = buffers->read.data;
    uint32_t count = buffers->read.count;
    if (result) {
        bool all = results > buffers->out.count;
        list = all ? buffers->written.data : buffers->out.data;
        count = all ? buffers->written.count : buffers->out.count;
    } else if (operands > count) {  // results among the operands
        list = NULL;
        count = berth_tfn_get(state->module, callee)->param_count;
    }
    if (index >= count) return BERTH_NONE;
    return state->functions[callee].scope[list ? list[index] : index];
}

static const berth_constraint_function *function_of(const berth_planner_state *state,
                                                    uint32_t node) {
    const berth_constraints *c = state->constraints;
    return &c->functions.data[c->nodes.data[node].function];
}

uint32_t berth_planner__result_scope(const berth_planner_state *state, berth_func_id function,
                                     berth_op_id id, uint32_t result) {
    const berth_planner_function *f = &state->functions[function];
    const berth_op *op = &f->graph->ops.data[id];
    if (op->kind == BERTH_OP_CALL)
        return buffer_scope(state, berth_planner__callee(state->module, op), op->input_count,
                            op->output_count, true, result);
    if (op->kind != BERTH_OP_CALL_VALUE || !state->constraints->scoped) return BERTH_NONE;
    const berth_constraint_function *called = function_of(state, f->extra[id]);
    return called->nodes[called->param_count + result];
}

// Parameters, then results of a graph function, as this call or reference sees it.
static const uint32_t *interface_of(const berth_planner_state *state,
                                    const berth_planner_function *f, berth_op_id id,
                                    berth_func_id callee) {
    if (f->copies && f->copies[id]) return f->copies[id];
    return state->functions[callee].interface;
}

static berth_use call_operand(const berth_planner_state *state, const berth_planner_function *f,
                              const berth_op *op, berth_op_id id, uint32_t operand) {
    uint32_t node = f->op[id];
    berth_func_id callee = berth_planner__callee(state->module, op);
    if (callee == BERTH_NONE) return use(BERTH_USE_FREE, node, "");
    const berth_planner_function *g = &state->functions[callee];
    if (!g->graph) {
        berth_use u = use(BERTH_USE_LOWERED, node, "operand of a call of a lowered function");
        u.scope = buffer_scope(state, callee, op->input_count, op->output_count, false, operand);
        return u;
    }
    const berth_region *root = &g->graph->regions.data[0];
    if (operand >= root->params.count) return use(BERTH_USE_FREE, node, "");
    bool stays = berth_planner__stays(state, g->graph, root->params.data[operand]);
    return use(stays ? BERTH_USE_HARD : BERTH_USE_SOFT, interface_of(state, f, id, callee)[operand],
               "argument and parameter of a call");
}

static berth_use loop_operand(const berth_planner_state *state, const berth_planner_function *f,
                              const berth_op *op, uint32_t operand) {
    if (operand < 2) return use(BERTH_USE_SOFT, state->host, "the host drives loops");
    const berth_region *body = &f->graph->regions.data[op->regions[0]];
    if (operand >= body->params.count) return use(BERTH_USE_FREE, state->host, "");
    berth_value_id param = body->params.data[operand];
    return use(berth_planner__stays(state, f->graph, param) ? BERTH_USE_HARD : BERTH_USE_SOFT,
               f->value[param], "initial value of a loop");
}

static const char *const operand_of[] = {
#define BERTH_GRAPH_OP(id, name, onnx, min_in, max_in, min_out, max_out, traits, host_operands,    \
                       shape_fn)                                                                   \
    "operand of " name,
#include "ir/graph/graph_ops.def"
#undef BERTH_GRAPH_OP
};

static berth_use plain_operand(const berth_planner_state *state, const berth_planner_function *f,
                               const berth_op *op, berth_op_id id, uint32_t operand) {
    const berth_op_facts *facts = berth_op_facts_get(op->kind);
    if (facts->traits & BERTH_TRAIT_HOST) return use(BERTH_USE_FREE, f->op[id], "");
    if (operand < 32 && (facts->host_operands >> operand & 1u))
        return use(BERTH_USE_SOFT, state->host, "the host reads shapes, axes and sizes");
    bool registered = op->kind >= BERTH_OP_COUNT;  // ir/extend.h
    return use(BERTH_USE_SOFT, f->op[id],
               registered ? "operand of a plug-in's operation" : operand_of[op->kind]);
}

berth_use berth_planner__operand(const berth_planner_state *state, berth_func_id function,
                                 const berth_op *op, berth_op_id id, uint32_t operand) {
    const berth_planner_function *f = &state->functions[function];
    switch (op->kind) {
    case BERTH_OP_CONSTANT:
    case BERTH_OP_FUNC_REF: return use(BERTH_USE_FREE, f->op[id], "");
    case BERTH_OP_CALL: return call_operand(state, f, op, id, operand);
    case BERTH_OP_CALL_VALUE: {
        if (operand == 0) return use(BERTH_USE_HARD, f->extra[id], "function that is called");
        uint32_t param = function_of(state, f->extra[id])->nodes[operand - 1];
        bool stays = berth_planner__stays(state, f->graph, op->inputs[operand]);
        return use(stays ? BERTH_USE_HARD : BERTH_USE_SOFT, param,
                   "argument and parameter of a call");
    }
    case BERTH_OP_TUPLE: return use(BERTH_USE_HARD, f->value[op->outputs[0]], "field of the tuple");
    case BERTH_OP_TUPLE_GET:
        return use(BERTH_USE_HARD, f->value[op->outputs[0]], "projection of the tuple");
    case BERTH_OP_IF: return use(BERTH_USE_SOFT, state->host, "the host reads conditions");
    case BERTH_OP_LOOP: return loop_operand(state, f, op, operand);
    case BERTH_OP_ON_DEVICE: return use(BERTH_USE_HARD, f->extra[id], "annotated by on_device");
    case BERTH_OP_DEVICE_COPY: return use(BERTH_USE_HARD, f->extra[id], "source of device_copy");
    case BERTH_OP_ALLOC_TENSOR:
        if (operand == 0)
            return use(BERTH_USE_HARD, f->value[op->outputs[0]], "tensor in this storage");
        return plain_operand(state, f, op, id, operand);
    default: return plain_operand(state, f, op, id, operand);
    }
}

berth_use berth_planner__result(const berth_planner_state *state, berth_func_id function,
                                berth_region_id region, uint32_t result) {
    const berth_planner_function *f = &state->functions[function];
    berth_op_id parent = f->graph->regions.data[region].parent;
    if (parent == BERTH_NONE)
        return use(BERTH_USE_HARD, f->result[result], "result of the function");
    const berth_op *op = &f->graph->ops.data[parent];
    if (op->kind == BERTH_OP_LOOP) {
        if (result == 0) return use(BERTH_USE_SOFT, state->host, "the host reads conditions");
        result--;
    }
    if (result >= op->output_count) return use(BERTH_USE_FREE, f->op[parent], "");
    return use(BERTH_USE_HARD, f->value[op->outputs[result]],
               op->kind == BERTH_OP_LOOP ? "result of the loop's body" : "result of the branch");
}

// ---- hard constraints ---------------------------------------------------------------------------

static berth_device_id named_device(const berth_planner_state *state, const berth_op *op,
                                    const char *name) {
    const berth_attr *attr = berth_attrs_find(state->module, &op->attrs, name);
    if (attr && attr->kind == BERTH_ATTR_DEVICE) return attr->device;
    return 0;
}

static berth_status no_such_device(const berth_planner_state *state, berth_virtual_device device,
                                   berth_loc_id loc) {
    return berth_status_make(BERTH_INVALID_ARGUMENT, "%s: the target has no device %s; it has %s",
                             berth_loc_describe(state->module, loc, state->arena),
                             berth_virtual_device_name(state->arena, device),
                             berth_constraints__devices_text(state->arena, state->options->target));
}

// A device that the target has, in full where it is one device for certain.
static berth_status full_device(const berth_planner_state *state, berth_device_id id,
                                berth_loc_id loc, berth_device_id *out_id) {
    *out_id = id;
    if (!id) return BERTH_OK;
    berth_virtual_device device = berth_virtual_device_get(state->module->devices, id);
    if (berth_bits_is_empty(berth_constraints_agreeing(state->constraints, id)))
        return no_such_device(state, device, loc);
    if (device.device_type == BERTH_DEVICE_FREE) return BERTH_OK;
    uint32_t index = berth_multi_target_resolve(state->options->target, device);
    berth_virtual_device full = berth_multi_target_virtual_device(state->options->target, index);
    if (device.virtual_id != BERTH_VIRTUAL_ID_FREE || device.has_target) {
        full.memory_scope = device.memory_scope;
        *out_id = berth_virtual_device_intern(state->module->devices, full);
    }
    return BERTH_OK;
}

static berth_status fix(berth_planner_state *state, uint32_t node, berth_device_id id,
                        const char *text, berth_loc_id loc) {
    BERTH_TRY(full_device(state, id, loc, &id));
    return berth_constraints_fix(state->constraints, node, id,
                                 (berth_constraint_reason){text, loc});
}

static berth_status hard(berth_planner_state *state, uint32_t a, uint32_t b, const char *text,
                         berth_loc_id loc) {
    return berth_constraints_hard(state->constraints, a, b, (berth_constraint_reason){text, loc});
}

static berth_status annotation(berth_planner_state *state, berth_planner_function *f,
                               berth_op_id id) {
    const berth_op *op = &f->graph->ops.data[id];
    berth_value_id out = op->outputs[0];
    berth_device_id device = named_device(state, op, "device");
    if (!device) device = op->device;
    BERTH_TRY(fix(state, f->extra[id], device, "annotation on_device", op->loc));
    if (berth_planner__stays(state, f->graph, op->inputs[0]))
        return hard(state, f->value[op->inputs[0]], f->value[out], "a function is not copied",
                    op->loc);
    bool fixed = berth_attrs_int(state->module, &op->attrs, "fixed", 0) != 0;
    if (!fixed && !f->returned[out]) return BERTH_OK;
    return hard(state, f->extra[id], f->value[out],
                fixed ? "on_device with its context fixed" : "on_device as a function's result",
                op->loc);
}

// On the call's device; their scopes are soft (place.c).
static berth_status lowered_results(berth_planner_state *state, const berth_planner_function *f,
                                    berth_op_id id) {
    const berth_op *op = &f->graph->ops.data[id];
    for (uint32_t i = 0; i < op->output_count; ++i)
        BERTH_TRY(berth_constraints_hard_device(
            state->constraints, f->value[op->outputs[i]], f->op[id],
            (berth_constraint_reason){"result of a lowered function", op->loc}));
    return BERTH_OK;
}

// The scopes that a lowered function's buffers demand.
static berth_status lowered_scopes(berth_planner_state *state, berth_func_id function) {
    const berth_tfn *fn = berth_tfn_get(state->module, function);
    const berth_function *held = berth_module_function(state->module, function);
    for (uint32_t i = 0; i < fn->param_count; ++i) {
        if (!fn->bufs.data[i].memory_scope) continue;
        berth_virtual_device scope = BERTH_VIRTUAL_DEVICE_FREE;
        scope.memory_scope = berth_module_str(state->module, fn->bufs.data[i].memory_scope);
        const char *text =
            berth_arena_printf(state->arena, "buffer %%%s of @%s",
                               berth_module_str(state->module, fn->bufs.data[i].name),
                               berth_module_str(state->module, held->name));
        BERTH_TRY(berth_constraints_fix(state->constraints, state->functions[function].scope[i],
                                        berth_virtual_device_intern(state->module->devices, scope),
                                        (berth_constraint_reason){text, held->loc}));
    }
    return BERTH_OK;
}

// What is called is a function in the constraint system; where its results are made is soft in the
// scope (place.c), as for lowered functions, which it may be.
static berth_status call_value(berth_planner_state *state, const berth_planner_function *f,
                               berth_op_id id) {
    const berth_op *op = &f->graph->ops.data[id];
    const berth_constraint_function *called = function_of(state, f->extra[id]);
    berth_constraint_reason reason = {"result of a call", op->loc};
    for (uint32_t i = 0; i < op->output_count; ++i)
        BERTH_TRY(berth_constraints_hard_device(state->constraints, f->value[op->outputs[i]],
                                                called->nodes[called->param_count + i], reason));
    if (!op->output_count) return BERTH_OK;
    return berth_constraints_hard_device(state->constraints, f->op[id], f->value[op->outputs[0]],
                                         reason);
}

static berth_status call_graph(berth_planner_state *state, const berth_planner_function *f,
                               berth_op_id id, berth_func_id callee) {
    const berth_op *op = &f->graph->ops.data[id];
    const berth_region *root = &state->functions[callee].graph->regions.data[0];
    const uint32_t *results = interface_of(state, f, id, callee) + root->params.count;
    for (uint32_t i = 0; i < op->output_count && i < root->results.count; ++i)
        BERTH_TRY(hard(state, f->value[op->outputs[i]], results[i], "result of a call", op->loc));
    if (!op->output_count) return BERTH_OK;
    return hard(state, f->op[id], f->value[op->outputs[0]], "result of a call", op->loc);
}

static berth_status call(berth_planner_state *state, const berth_planner_function *f,
                         berth_op_id id) {
    const berth_op *op = &f->graph->ops.data[id];
    berth_func_id callee = berth_planner__callee(state->module, op);
    if (op->kind == BERTH_OP_CALL_VALUE)
        BERTH_TRY(call_value(state, f, id));
    else if (callee == BERTH_NONE || !state->functions[callee].graph)
        return lowered_results(state, f, id);
    else
        BERTH_TRY(call_graph(state, f, id, callee));
    if (op->output_count) return BERTH_OK;
    return fix(state, f->op[id], berth_planner__device_id(state, state->options->target->host),
               "the host makes calls", op->loc);
}

// All of a lowered function is on one device, in the scopes of its buffers.
static berth_status lowered_reference(berth_planner_state *state, const berth_planner_function *f,
                                      berth_op_id id, berth_func_id callee) {
    const berth_op *op = &f->graph->ops.data[id];
    const berth_constraint_function *held = function_of(state, f->extra[id]);
    berth_constraint_reason reason = {"buffer of a lowered function", op->loc};
    uint32_t params = held->param_count, results = held->count - params;
    for (uint32_t i = 0; i < held->count; ++i) {
        uint32_t node = held->nodes[i];
        uint32_t scope =
            buffer_scope(state, callee, params, results, i >= params, i >= params ? i - params : i);
        BERTH_TRY(berth_constraints_hard_device(state->constraints, held->nodes[0], node, reason));
        if (scope != BERTH_NONE)
            BERTH_TRY(berth_constraints_hard_scope(state->constraints, node, scope, reason));
    }
    return hard(state, f->value[op->outputs[0]], f->extra[id], "reference to the function",
                op->loc);
}

static berth_status reference(berth_planner_state *state, const berth_planner_function *f,
                              berth_op_id id) {
    const berth_op *op = &f->graph->ops.data[id];
    berth_func_id callee = berth_planner__callee(state->module, op);
    if (callee == BERTH_NONE) return BERTH_OK;
    if (state->functions[callee].graph)
        return hard(state, f->value[op->outputs[0]],
                    f->extra[id] == BERTH_NONE ? state->functions[callee].self : f->extra[id],
                    "reference to the function", op->loc);
    return f->extra[id] == BERTH_NONE ? BERTH_OK : lowered_reference(state, f, id, callee);
}

// The operation's own domain and its results.
static berth_status own_domain(berth_planner_state *state, berth_planner_function *f,
                               berth_op_id id) {
    const berth_op *op = &f->graph->ops.data[id];
    berth_device_id host = berth_planner__device_id(state, state->options->target->host);
    switch (op->kind) {
    case BERTH_OP_CONSTANT: return BERTH_OK;
    case BERTH_OP_ON_DEVICE: return annotation(state, f, id);
    case BERTH_OP_CALL:
    case BERTH_OP_CALL_VALUE: BERTH_TRY(call(state, f, id)); break;
    case BERTH_OP_FUNC_REF: return reference(state, f, id);
    case BERTH_OP_IF: return fix(state, f->op[id], host, "the host drives branches", op->loc);
    case BERTH_OP_LOOP: {
        const berth_region *body = &f->graph->regions.data[op->regions[0]];
        for (uint32_t i = 0; i < body->params.count; ++i) {
            uint32_t param = f->value[body->params.data[i]];
            if (i < 2)
                BERTH_TRY(fix(state, param, host, "the host counts iterations", op->loc));
            else if (i - 2 < op->output_count)
                BERTH_TRY(hard(state, param, f->value[op->outputs[i - 2]],
                               "carried value and result of the loop", op->loc));
        }
        return fix(state, f->op[id], host, "the host drives loops", op->loc);
    }
    case BERTH_OP_DEVICE_COPY:
        BERTH_TRY(fix(state, f->extra[id], named_device(state, op, "source"),
                      "source of device_copy", op->loc));
        BERTH_TRY(
            hard(state, f->op[id], f->value[op->outputs[0]], "result of device_copy", op->loc));
        break;
    default:
        for (uint32_t i = 0; i < op->output_count; ++i)
            BERTH_TRY(hard(state, f->op[id], f->value[op->outputs[i]], "result of the operation",
                           op->loc));
        if (op->kind == BERTH_OP_ALLOC_STORAGE)
            BERTH_TRY(fix(state, f->op[id], named_device(state, op, "device"),
                          "storage allocated here", op->loc));
        if (!berth_op_has(op->kind, BERTH_TRAIT_HOST)) break;
        BERTH_TRY(fix(state, f->op[id], host, "host operation: reads shapes, not data", op->loc));
        f->reason[id] = "host operation: reads shapes, not data";
    }
    if (!op->device) return BERTH_OK;
    if (!f->reason[id]) f->reason[id] = "placed here";
    return fix(state, f->op[id], op->device, "placed here", op->loc);
}

static berth_status hard_use(berth_planner_state *state, const berth_planner_function *f,
                             berth_use u, berth_value_id value, berth_loc_id loc) {
    if (u.kind != BERTH_USE_HARD || value == BERTH_NONE) return BERTH_OK;
    if (berth_planner__is_constant(f->graph, value)) return BERTH_OK;  // cloned where it is used
    return hard(state, f->value[value], u.node, u.reason, loc);
}

berth_status berth_planner__hard_function(berth_planner_state *state, berth_func_id function) {
    berth_planner_function *f = &state->functions[function];
    for (uint32_t v = 0; v < f->graph->values.count; ++v) {
        const berth_value *value = &f->graph->values.data[v];
        if (!berth_planner__is_function(state, f->graph, v))
            state->constraints->nodes.data[f->value[v]].first_order = true;
        if (!value->device) continue;
        berth_loc_id loc = value->op == BERTH_NONE
                               ? berth_module_function(state->module, function)->loc
                               : f->graph->ops.data[value->op].loc;
        BERTH_TRY(fix(state, f->value[v], value->device,
                      berth_arena_printf(state->arena, "%%%s is placed here",
                                         berth_planner__value_name(state, f, v)),
                      loc));
    }
    for (uint32_t k = 0; k < f->order_count; ++k) {
        const berth_op *op = &f->graph->ops.data[f->order[k]];
        BERTH_TRY(own_domain(state, f, f->order[k]));
        for (uint32_t i = 0; i < op->input_count; ++i)
            BERTH_TRY(hard_use(state, f,
                               berth_planner__operand(state, function, op, f->order[k], i),
                               op->inputs[i], op->loc));
        for (uint32_t r = 0; r < op->region_count; ++r) {
            const berth_region *region = &f->graph->regions.data[op->regions[r]];
            for (uint32_t i = 0; i < region->results.count; ++i)
                BERTH_TRY(hard_use(state, f,
                                   berth_planner__result(state, function, op->regions[r], i),
                                   region->results.data[i], op->loc));
        }
    }
    const berth_region *root = &f->graph->regions.data[0];
    for (uint32_t i = 0; i < root->results.count; ++i)
        BERTH_TRY(hard_use(state, f, berth_planner__result(state, function, 0, i),
                           root->results.data[i],
                           berth_module_function(state->module, function)->loc));
    return BERTH_OK;
}

berth_status berth_planner__hard_start(berth_planner_state *state) {
    BERTH_TRY(fix(state, state->host, berth_planner__device_id(state, state->options->target->host),
                  "the host", 0));
    for (uint32_t i = 0; i < state->module->functions.count; ++i)
        if (state->functions[i].scope) BERTH_TRY(lowered_scopes(state, i));
    return BERTH_OK;
}

berth_status berth_planner__hard(berth_planner_state *state) {
    BERTH_TRY(berth_planner__hard_start(state));
    for (uint32_t i = 0; i < state->module->functions.count; ++i)
        if (state->functions[i].graph) BERTH_TRY(berth_planner__hard_function(state, i));
    return BERTH_OK;
}
