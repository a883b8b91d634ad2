// Stage nodes: the nodes of the constraint system.
#include "ir/tensor/function.h"
#include "planner/stages.h"

bool berth_planner__is_constant(const berth_graph *graph, berth_value_id value) {
    berth_op_id op = graph->values.data[value].op;
    return op != BERTH_NONE && graph->ops.data[op].kind == BERTH_OP_CONSTANT;
}

bool berth_planner__is_function(const berth_planner_state *state, const berth_graph *graph,
                                berth_value_id value) {
    const berth_value *held = &graph->values.data[value];
    if (berth_type_get(state->module, held->type)->kind == BERTH_TYPE_FUNCTION) return true;
    return held->op != BERTH_NONE && graph->ops.data[held->op].kind == BERTH_OP_FUNC_REF;
}

bool berth_planner__stays(const berth_planner_state *state, const berth_graph *graph,
                          berth_value_id value) {
    return berth_planner__is_function(state, graph, value) ||
           berth_type_get(state->module, graph->values.data[value].type)->holds_function;
}

berth_device_id berth_planner__device_id(const berth_planner_state *state, uint32_t device) {
    return berth_virtual_device_intern(
        state->module->devices, berth_multi_target_virtual_device(state->options->target, device));
}

uint32_t berth_planner__device_of(const berth_planner_state *state, uint32_t node) {
    return berth_plan_device_of(state->module, state->options->target,
                                berth_constraints_device(state->constraints, node));
}

berth_device_id berth_planner__in_scope(const berth_planner_state *state, uint32_t device,
                                        uint32_t scope) {
    berth_virtual_device_table *devices = state->module->devices;
    berth_device_id id = berth_constraints_device(state->constraints, device);
    berth_virtual_device there = berth_virtual_device_get(devices, id);
    there.memory_scope = NULL;
    if (scope != BERTH_NONE) {
        id = berth_constraints_device(state->constraints, scope);
        there.memory_scope = berth_virtual_device_get(devices, id).memory_scope;
    }
    return berth_virtual_device_intern(devices, there);
}

// An explicit stack: regions may nest deeply.
berth_op_id *berth_planner__order(const berth_planner_state *state, const berth_graph *graph,
                                  uint32_t *out_count) {
    typedef struct frame {
        berth_region_id region;
        uint32_t next;
    } frame;
    struct {
        BERTH_VEC(frame) items;
    } stack = {{0}};
    berth_op_id *order = berth_arena_new_array(state->arena, berth_op_id, graph->ops.count + 1);
    uint32_t count = 0;
    berth_vec_push(state->arena, &stack.items, (frame){0, 0});
    while (stack.items.count) {
        frame *top = &stack.items.data[stack.items.count - 1];
        const berth_region *region = &graph->regions.data[top->region];
        if (top->next == region->ops.count) {
            stack.items.count--;
            continue;
        }
        berth_op_id id = region->ops.data[top->next++];
        order[count++] = id;
        const berth_op *op = &graph->ops.data[id];
        for (uint32_t i = op->region_count; i-- > 0;)
            berth_vec_push(state->arena, &stack.items, (frame){op->regions[i], 0});
    }
    *out_count = count;
    return order;
}

// The text form numbers values without a name as it comes to their definitions.
static uint32_t *number_values(const berth_planner_state *state, const berth_planner_function *f) {
    const berth_graph *graph = f->graph;
    uint32_t *number = berth_arena_new_array(state->arena, uint32_t, graph->values.count + 1);
    uint32_t count = 0;
    for (uint32_t v = 0; v < graph->values.count; ++v) number[v] = BERTH_NONE;
    const berth_region *root = &graph->regions.data[0];
    for (uint32_t i = 0; i < root->params.count; ++i)
        if (!graph->values.data[root->params.data[i]].name) number[root->params.data[i]] = count++;
    for (uint32_t k = 0; k < f->order_count; ++k) {
        const berth_op *op = &graph->ops.data[f->order[k]];
        for (uint32_t i = 0; i < op->output_count; ++i)
            if (!graph->values.data[op->outputs[i]].name) number[op->outputs[i]] = count++;
        for (uint32_t r = 0; r < op->region_count; ++r) {
            const berth_region *region = &graph->regions.data[op->regions[r]];
            for (uint32_t i = 0; i < region->params.count; ++i)
                if (!graph->values.data[region->params.data[i]].name)
                    number[region->params.data[i]] = count++;
        }
    }
    return number;
}

const char *berth_planner__value_name(const berth_planner_state *state,
                                      const berth_planner_function *f, berth_value_id value) {
    const berth_graph *graph = f->graph;
    while (value >= f->value_count && graph->values.data[value].op != BERTH_NONE) {
        const berth_op *op = &graph->ops.data[graph->values.data[value].op];
        if (op->kind != BERTH_OP_DEVICE_COPY) break;
        value = op->inputs[0];
    }
    berth_str_id name = graph->values.data[value].name;
    if (name) return berth_module_str(state->module, name);
    if (value >= f->value_count || f->number[value] == BERTH_NONE) return "?";
    return berth_arena_printf(state->arena, "%u", f->number[value]);
}

static uint32_t *make_nodes(berth_planner_state *state, uint32_t count) {
    uint32_t *nodes = berth_arena_new_array(state->arena, uint32_t, count + 1);
    for (uint32_t i = 0; i < count; ++i) nodes[i] = berth_constraints_node(state->constraints);
    return nodes;
}

static void make_function(berth_planner_state *state, berth_planner_function *f) {
    const berth_region *root = &f->graph->regions.data[0];
    f->value = make_nodes(state, f->graph->values.count);
    f->op = make_nodes(state, f->graph->ops.count);
    f->result = make_nodes(state, root->results.count);
    f->extra = berth_arena_new_array(state->arena, uint32_t, f->graph->ops.count + 1);
    for (uint32_t i = 0; i < f->graph->ops.count; ++i) f->extra[i] = BERTH_NONE;
    f->reason = berth_arena_new_array(state->arena, const char *, f->graph->ops.count + 1);
    f->loose = berth_arena_new_array(state->arena, bool, f->graph->ops.count + 1);
    uint32_t count = root->params.count + root->results.count;
    uint32_t *nodes = berth_arena_new_array(state->arena, uint32_t, count + 1);
    for (uint32_t i = 0; i < root->params.count; ++i) nodes[i] = f->value[root->params.data[i]];
    for (uint32_t i = 0; i < root->results.count; ++i) nodes[root->params.count + i] = f->result[i];
    f->interface = nodes;
    f->self = berth_constraints_function(state->constraints, nodes, root->params.count, count);
    f->returned = berth_arena_new_array(state->arena, bool, f->graph->values.count + 1);
    for (uint32_t i = 0; i < root->results.count; ++i) f->returned[root->results.data[i]] = true;
    f->order = berth_planner__order(state, f->graph, &f->order_count);
    f->number = number_values(state, f);
    f->value_count = f->graph->values.count;
    f->op_count = f->graph->ops.count;
    f->result_count = root->results.count;
}

static void make_extra_function(berth_planner_state *state, berth_planner_function *f,
                                berth_op_id id, uint32_t params, uint32_t results) {
    uint32_t *nodes = make_nodes(state, params + results);
    f->extra[id] = berth_constraints_function(state->constraints, nodes, params, params + results);
}

// A lowered function is on the device of whoever calls it: every reference is a function of its own.
static void make_reference(berth_planner_state *state, berth_planner_function *f, berth_op_id id) {
    const berth_op *op = &f->graph->ops.data[id];
    berth_func_id callee = berth_planner__callee(state->module, op);
    const berth_type *type =
        berth_type_get(state->module, f->graph->values.data[op->outputs[0]].type);
    if (callee == BERTH_NONE || berth_graph_get(state->module, callee) ||
        type->kind != BERTH_TYPE_FUNCTION)
        return;
    make_extra_function(state, f, id, type->param_count, type->field_count - type->param_count);
}

static void make_extra(berth_planner_state *state, berth_planner_function *f, berth_op_id id) {
    const berth_op *op = &f->graph->ops.data[id];
    switch (op->kind) {
    case BERTH_OP_CALL_VALUE:
        make_extra_function(state, f, id, op->input_count - 1, op->output_count);
        break;
    case BERTH_OP_FUNC_REF: make_reference(state, f, id); break;
    case BERTH_OP_ON_DEVICE:
    case BERTH_OP_DEVICE_COPY: f->extra[id] = berth_constraints_node(state->constraints); break;
    default: break;
    }
}

static berth_planner_buffers *sort_buffers(berth_arena *arena, const berth_tfn *fn) {
    berth_planner_buffers *buffers = berth_arena_new(arena, berth_planner_buffers);
    for (uint32_t i = 0; i < fn->param_count; ++i) {
        berth_buf_role role = fn->bufs.data[i].role;
        if (role != BERTH_ROLE_OUT) berth_vec_push(arena, &buffers->read, i);
        if (role != BERTH_ROLE_IN) berth_vec_push(arena, &buffers->written, i);
        if (role == BERTH_ROLE_OUT) berth_vec_push(arena, &buffers->out, i);
    }
    return buffers;
}

void berth_planner__nodes(berth_planner_state *state) {
    berth_module *module = state->module;
    state->functions =
        berth_arena_new_array(state->arena, berth_planner_function, module->functions.count + 1);
    state->host = berth_constraints_node(state->constraints);
    for (uint32_t i = 0; i < module->functions.count; ++i) {
        if (module->functions.data[i].removed) continue;
        const berth_tfn *fn = berth_tfn_get(module, i);
        if (fn && state->constraints->scoped) {
            state->functions[i].scope = make_nodes(state, fn->param_count);
            state->functions[i].buffers = sort_buffers(state->arena, fn);
        }
        if (!berth_graph_get(module, i)) continue;
        berth_planner_function *f = &state->functions[i];
        f->graph = berth_graph_get(module, i);
        make_function(state, f);
        for (uint32_t k = 0; k < f->order_count; ++k) make_extra(state, f, f->order[k]);
    }
}
