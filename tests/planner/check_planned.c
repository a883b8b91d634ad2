// The independent check: reads a planned module, and nothing of the planner.
#include <string.h>

#include "ir/graph/graph.h"
#include "ir/tensor/function.h"
#include "tests/planner/random_planned.h"

typedef struct checker {
    const berth_module *module;
    const berth_multi_target *target;
    bool host_bound;
    berth_func_id main;
    berth_func_id function;
    const berth_graph *graph;
    uint64_t **functions;  // per function and value: the functions it may be
    const char *problem;
} checker;

static const char *value_name(const checker *c, berth_value_id id) {
    return berth_module_str(c->module, c->graph->values.data[id].name);
}

static void fail(checker *c, const berth_op *op, const char *what, berth_value_id value) {
    if (c->problem) return;
    c->problem = berth_arena_printf(
        c->module->arena, "@%s, %s: %s %%%s",
        berth_module_str(c->module, berth_module_function(c->module, c->function)->name),
        op ? berth_op_facts_get(op->kind)->name : "return", what,
        value == BERTH_NONE ? "" : value_name(c, value));
}

static uint32_t device_index(const checker *c, berth_device_id id) {
    return berth_plan_device_of(c->module, c->target, id);
}

static uint32_t place_of(const checker *c, berth_value_id id) {
    return device_index(c, c->graph->values.data[id].device);
}

static bool is_function(const checker *c, berth_value_id id) {
    return berth_type_get(c->module, c->graph->values.data[id].type)->kind == BERTH_TYPE_FUNCTION;
}

static void same(checker *c, const berth_op *op, berth_value_id a, berth_value_id b) {
    if (!is_function(c, a) && !is_function(c, b) && place_of(c, a) != place_of(c, b))
        fail(c, op, "is elsewhere than what it goes with:", a);
}

static void at(checker *c, const berth_op *op, berth_value_id value, uint32_t device) {
    if (value != BERTH_NONE && !is_function(c, value) && place_of(c, value) != device)
        fail(c, op, "is not where it is needed:", value);
}

// "" = any.
static const char *scope_of(const checker *c, berth_value_id id) {
    berth_device_id device = c->graph->values.data[id].device;
    const char *scope = berth_virtual_device_get(c->module->devices, device).memory_scope;
    return scope ? scope : "";
}

// ---- calls --------------------------------------------------------------------------------------

static berth_func_id callee_of(const checker *c, const berth_op *op) {
    const berth_attr *attr = berth_attrs_find(c->module, &op->attrs, "callee");
    return attr ? attr->function : BERTH_NONE;
}

static void check_callee(checker *c, const berth_op *op, berth_func_id callee, uint32_t skip) {
    const berth_graph *graph = berth_graph_get(c->module, callee);
    const berth_region *root = &graph->regions.data[0];
    for (uint32_t i = 0; i < root->params.count; ++i) {
        berth_value_id argument = op->inputs[i + skip];
        berth_device_id wanted = graph->values.data[root->params.data[i]].device;
        if (is_function(c, argument))
            c->functions[callee][root->params.data[i]] |= c->functions[c->function][argument];
        else
            at(c, op, argument, device_index(c, wanted));
    }
    for (uint32_t i = 0; i < root->results.count; ++i)
        at(c, op, op->outputs[i],
           device_index(c, graph->values.data[root->results.data[i]].device));
}

static void in_buffer(checker *c, const berth_op *op, const berth_tfn *fn, berth_value_id value,
                      uint32_t param) {
    berth_str_id demanded = fn->bufs.data[param].memory_scope;
    at(c, op, value, device_index(c, op->device));
    if (demanded && strcmp(scope_of(c, value), berth_module_str(c->module, demanded)) != 0)
        fail(c, op, "is not in its buffer's scope:", value);
}

// Operands and results of a tensor function: on the call's device, in the scopes of the buffers, of
// which `inout` ones are both.
static void check_lowered(checker *c, const berth_op *op, const berth_tfn *fn, uint32_t skip) {
    uint32_t operand = skip, result = 0, outs = 0;
    for (uint32_t i = 0; i < fn->param_count; ++i) outs += fn->bufs.data[i].role == BERTH_ROLE_OUT;
    for (uint32_t i = 0; i < fn->param_count; ++i) {
        berth_buf_role role = fn->bufs.data[i].role;
        if (role != BERTH_ROLE_OUT) in_buffer(c, op, fn, op->inputs[operand++], i);
        bool got = role == BERTH_ROLE_OUT || (role == BERTH_ROLE_INOUT && op->output_count > outs);
        if (got) in_buffer(c, op, fn, op->outputs[result++], i);
    }
}

static void check_callee_of(checker *c, const berth_op *op, berth_func_id callee, uint32_t skip) {
    const berth_tfn *fn = berth_tfn_get(c->module, callee);
    if (fn)
        check_lowered(c, op, fn, skip);
    else
        check_callee(c, op, callee, skip);
}

static void check_call(checker *c, const berth_op *op) {
    check_callee_of(c, op, callee_of(c, op), 0);
}

static void check_call_value(checker *c, const berth_op *op) {
    uint64_t set = c->functions[c->function][op->inputs[0]];
    for (berth_func_id f = 0; f < c->module->functions.count && f < 64; ++f)
        if (set >> f & 1) check_callee_of(c, op, f, 1);
}

// Which functions a projection may give: those of the fields.
static uint64_t field_functions(const checker *c, const berth_op *get) {
    berth_op_id made = c->graph->values.data[get->inputs[0]].op;
    if (made == BERTH_NONE || c->graph->ops.data[made].kind != BERTH_OP_TUPLE) return 0;
    int64_t index = berth_attrs_int(c->module, &get->attrs, "index", 0);
    return c->functions[c->function][c->graph->ops.data[made].inputs[index]];
}

// ---- operations ---------------------------------------------------------------------------------

static void check_copy(checker *c, const berth_op *op) {
    const berth_attr *source = berth_attrs_find(c->module, &op->attrs, "source");
    if (!source) {
        fail(c, op, "has no source:", op->outputs[0]);
        return;
    }
    uint32_t from = device_index(c, source->device), to = device_index(c, op->device);
    at(c, op, op->inputs[0], from);
    at(c, op, op->outputs[0], to);
    bool scopes = strcmp(scope_of(c, op->inputs[0]), scope_of(c, op->outputs[0])) != 0;
    if (from == to && !scopes) fail(c, op, "has equal ends:", op->outputs[0]);
    berth_op_id made = c->graph->values.data[op->inputs[0]].op;
    if (made != BERTH_NONE && c->graph->ops.data[made].kind == BERTH_OP_CONSTANT)
        fail(c, op, "copies a constant:", op->inputs[0]);
    berth_target_route route;
    if (from == BERTH_NO_INDEX || to == BERTH_NO_INDEX ||
        berth_multi_target_share_memory(c->target, from, to, NULL))
        return;
    if (!berth_multi_target_route(c->target, c->module->arena, c->target->devices[from].own_memory,
                                  c->target->devices[to].own_memory, 16, &route) ||
        route.hop_count != 1)
        fail(c, op, "is not one hop:", op->outputs[0]);
}

static void check_if(checker *c, const berth_op *op) {
    at(c, op, op->inputs[0], c->target->host);
    for (uint32_t r = 0; r < 2; ++r)
        for (uint32_t i = 0; i < op->output_count; ++i)
            same(c, op, c->graph->regions.data[op->regions[r]].results.data[i], op->outputs[i]);
}

static void check_loop(checker *c, const berth_op *op) {
    const berth_region *body = &c->graph->regions.data[op->regions[0]];
    for (uint32_t i = 0; i < 2; ++i) {
        at(c, op, op->inputs[i], c->target->host);
        at(c, op, body->params.data[i], c->target->host);
    }
    at(c, op, body->results.data[0], c->target->host);
    for (uint32_t i = 2; i < op->input_count; ++i) {
        same(c, op, op->inputs[i], body->params.data[i]);
        same(c, op, body->params.data[i], op->outputs[i - 2]);
    }
    for (uint32_t i = 0; i < op->output_count; ++i)
        same(c, op, body->results.data[i + 1], op->outputs[i]);
}

static void check_plain(checker *c, const berth_op *op) {
    const berth_op_facts *facts = berth_op_facts_get(op->kind);
    uint32_t here = device_index(c, op->device);
    if (here == BERTH_NO_INDEX) fail(c, op, "has no device:", op->outputs[0]);
    if ((facts->traits & BERTH_TRAIT_HOST) && here != c->target->host)
        fail(c, op, "is not on the host:", op->outputs[0]);
    for (uint32_t i = 0; i < op->output_count; ++i) at(c, op, op->outputs[i], here);
    for (uint32_t i = 0; i < op->input_count; ++i) {
        if (facts->traits & BERTH_TRAIT_HOST) continue;  // reads no data
        bool host = i < 32 && (facts->host_operands >> i & 1);
        at(c, op, op->inputs[i], host ? c->target->host : here);
        const char *scope = berth_virtual_device_get(c->module->devices, op->device).memory_scope;
        if (scope && !host && strcmp(scope_of(c, op->inputs[i]), scope) != 0)
            fail(c, op, "is not in the operation's scope:", op->inputs[i]);
    }
}

static void check_op(checker *c, const berth_op *op) {
    uint64_t *functions = c->functions[c->function];
    switch (op->kind) {
    case BERTH_OP_CONSTANT: at(c, op, op->outputs[0], device_index(c, op->device)); break;
    case BERTH_OP_FUNC_REF: functions[op->outputs[0]] |= (uint64_t)1 << callee_of(c, op); break;
    case BERTH_OP_CALL: check_call(c, op); break;
    case BERTH_OP_CALL_VALUE: check_call_value(c, op); break;
    case BERTH_OP_TUPLE:
        for (uint32_t i = 0; i < op->input_count; ++i) same(c, op, op->inputs[i], op->outputs[0]);
        break;
    case BERTH_OP_TUPLE_GET:
        same(c, op, op->inputs[0], op->outputs[0]);
        functions[op->outputs[0]] |= field_functions(c, op);
        break;
    case BERTH_OP_IF: check_if(c, op); break;
    case BERTH_OP_LOOP: check_loop(c, op); break;
    case BERTH_OP_ON_DEVICE: fail(c, op, "is left:", op->outputs[0]); break;
    case BERTH_OP_DEVICE_COPY: check_copy(c, op); break;
    default: check_plain(c, op); break;
    }
}

// Copies of one value to one device: one, over all copies of copies. Few per function.
static void check_once(checker *c) {
    const berth_graph *graph = c->graph;
    berth_value_id *root =
        berth_arena_new_array(c->module->arena, berth_value_id, graph->values.count + 1);
    for (uint32_t v = 0; v < graph->values.count; ++v) root[v] = v;
    for (int pass = 0; pass < 8; ++pass)  // through chains of copies
        for (uint32_t i = 0; i < graph->ops.count; ++i)
            if (graph->ops.data[i].region != BERTH_NONE &&
                graph->ops.data[i].kind == BERTH_OP_DEVICE_COPY)
                root[graph->ops.data[i].outputs[0]] = root[graph->ops.data[i].inputs[0]];
    for (uint32_t i = 0; i < graph->ops.count; ++i) {
        const berth_op *a = &graph->ops.data[i];
        if (a->region == BERTH_NONE || a->kind != BERTH_OP_DEVICE_COPY) continue;
        if (graph->values.data[root[a->outputs[0]]].device == a->device)
            fail(c, a, "goes back to where it came from:", a->outputs[0]);
        for (uint32_t k = 0; k < i; ++k) {
            const berth_op *b = &graph->ops.data[k];
            if (b->region != BERTH_NONE && b->kind == BERTH_OP_DEVICE_COPY &&
                b->device == a->device && root[b->outputs[0]] == root[a->outputs[0]])
                fail(c, a, "is copied twice:", a->outputs[0]);
        }
    }
}

static void check_border(checker *c) {
    const berth_region *root = &c->graph->regions.data[0];
    for (uint32_t i = 0; i < root->params.count; ++i)
        if (!is_function(c, root->params.data[i]) &&
            place_of(c, root->params.data[i]) == BERTH_NO_INDEX)
            fail(c, NULL, "has no device:", root->params.data[i]);
    if (!c->host_bound || c->function != c->main) return;
    for (uint32_t i = 0; i < root->params.count; ++i)
        at(c, NULL, root->params.data[i], c->target->host);
    for (uint32_t i = 0; i < root->results.count; ++i)
        at(c, NULL, root->results.data[i], c->target->host);
}

const char *planned_problem(const berth_module *module, const berth_multi_target *target,
                            bool host_bound) {
    uint32_t count = module->functions.count;
    checker c = {.module = module,
                 .target = target,
                 .host_bound = host_bound,
                 .main = berth_module_find_function(module, "main"),
                 .functions = berth_arena_new_array(module->arena, uint64_t *, count + 1)};
    for (uint32_t i = 0; i < count; ++i)
        if (berth_graph_get(module, i))
            c.functions[i] = berth_arena_new_array(module->arena, uint64_t,
                                                   berth_graph_get(module, i)->values.count + 1);
    // Callers after callees in the text; what they hand over must be known first. Instances of
    // functions are at the end: twice is enough for what the generator makes.
    for (uint32_t round = 0; round < 2; ++round) {
        for (uint32_t i = count; i-- > 0;) {
            c.function = i;
            c.graph = berth_graph_get(module, i);
            if (!c.graph) continue;
            for (uint32_t k = 0; k < c.graph->ops.count; ++k)
                if (c.graph->ops.data[k].region != BERTH_NONE) check_op(&c, &c.graph->ops.data[k]);
            check_once(&c);
            check_border(&c);
        }
    }
    return c.problem;
}

// ---- demands ------------------------------------------------------------------------------------

// Whether a device agrees with a partial one written as "KIND[:N]".
static bool agrees(const berth_module *module, berth_device_id id, const char *wanted) {
    berth_virtual_device have = berth_virtual_device_get(module->devices, id), want;
    berth_status status = berth_virtual_device_from_name(module->arena, wanted, &want);
    if (status) return berth_status_free(status), false;
    return (want.device_type == BERTH_DEVICE_FREE || want.device_type == have.device_type) &&
           (want.virtual_id == BERTH_VIRTUAL_ID_FREE || want.virtual_id == have.virtual_id);
}

const char *demands_problem(const berth_module *module, const random_planned *random) {
    for (uint32_t i = 0; i < random->demands.count; ++i) {
        const random_demand *d = &random->demands.data[i];
        const berth_graph *graph =
            berth_graph_get(module, berth_module_find_function(module, d->function));
        for (uint32_t v = 0; v < graph->values.count; ++v) {
            const berth_value *value = &graph->values.data[v];
            if (strcmp(berth_module_str(module, value->name), d->name) != 0) continue;
            if (!agrees(module, value->device, d->device))
                return berth_arena_printf(module->arena, "@%s: %%%s is not on %s", d->function,
                                          d->name, d->device);
            break;  // copies come later
        }
    }
    return NULL;
}
