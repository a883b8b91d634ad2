#include "compiler/passes/known.h"

#include <string.h>

#include "compiler/cost/work.h"
#include "compiler/onnx/import.h"

static const double most_work = 1e8;  // operations of the interpreter: seconds

typedef struct search {
    berth_module *module;
    berth_func_id function;
    berth_graph *graph;
    berth_known_inputs *known;
    berth_op_id *reason;       // per value: the operation that must know it; BERTH_NONE = none must
    berth_value_id *constant;  // per value: a known input's constant once it is made
    bool changed;
} search;

static const berth_input_binding *binding_of(const search *s, berth_value_id value) {
    const berth_region *root = &s->graph->regions.data[0];
    const berth_value *held = &s->graph->values.data[value];
    if (held->op != BERTH_NONE) return NULL;
    for (uint32_t i = 0; i < s->known->input_count; ++i)
        if (strcmp(berth_module_str(s->module, held->name), s->known->inputs[i].name) == 0)
            for (uint32_t k = 0; k < root->params.count; ++k)
                if (root->params.data[k] == value) return &s->known->inputs[i];
    return NULL;
}

static bool is_static(const search *s, berth_value_id value) {
    const berth_type *type = berth_type_get(s->module, s->graph->values.data[value].type);
    return type->kind > BERTH_TYPE_TENSOR || berth_type_is_static(type);
}

static bool is_host_operand(const berth_op *op, uint32_t operand) {
    if (op->kind == BERTH_OP_IF) return true;
    return operand < 32 && berth_op_facts_get(op->kind)->host_operands >> operand & 1u;
}

// The values of all operands decide a shape: their own shapes and its host operands are known, the
// shape of a result is not.
static bool shaped_by_values(const search *s, const berth_op *op) {
    bool unknown = false;
    if (op->region_count || berth_op_has(op->kind, BERTH_TRAIT_STRUCTURE)) return false;
    for (uint32_t i = 0; i < op->input_count; ++i) {
        berth_value_id value = op->inputs[i];
        if (value == BERTH_NONE) continue;
        if (!is_static(s, value)) return false;
        if (is_host_operand(op, i) && !berth_graph_raw_constant_of(s->module, s->graph, value))
            return false;
    }
    for (uint32_t i = 0; i < op->output_count; ++i) unknown |= !is_static(s, op->outputs[i]);
    return unknown;
}

// Visits operations against their order: what is needed of their results shows first.
static void mark(search *s, berth_op_id id) {
    const berth_op *op = &s->graph->ops.data[id];
    berth_op_id reason = BERTH_NONE;
    for (uint32_t i = 0; i < op->output_count && reason == BERTH_NONE; ++i)
        reason = s->reason[op->outputs[i]];
    if (berth_op_has(op->kind, BERTH_TRAIT_HOST) || op->region_count) reason = BERTH_NONE;
    bool shapes = reason == BERTH_NONE && shaped_by_values(s, op);
    for (uint32_t i = 0; i < op->input_count; ++i) {
        berth_value_id value = op->inputs[i];
        if (value == BERTH_NONE || s->reason[value] != BERTH_NONE) continue;
        if (reason != BERTH_NONE || shapes || is_host_operand(op, i))
            s->reason[value] = reason != BERTH_NONE ? reason : id;
    }
}

// Work to compute what one reason needs would be shared with other reasons; all are counted
// together.
static double work_of(const search *s) {
    const berth_region *root = &s->graph->regions.data[0];
    double work = 0;
    for (uint32_t i = 0; i < root->ops.count; ++i) {
        const berth_op *op = &s->graph->ops.data[root->ops.data[i]];
        for (uint32_t k = 0; k < op->output_count; ++k) {
            if (s->reason[op->outputs[k]] == BERTH_NONE) continue;
            work += berth_op_work_of(s->module, s->function, root->ops.data[i]).flops;
            break;
        }
    }
    return work;
}

static void remember_use(search *s, const berth_input_binding *input, berth_op_id reason) {
    berth_arena *arena = s->module->arena;
    for (uint32_t i = 0; i < s->known->used.count; ++i)
        if (strcmp(s->known->used.data[i].input, input->name) == 0) return;
    berth_known_use use = {
        .input = berth_arena_strdup(arena, input->name),
        .reason = berth_loc_describe(s->module, s->graph->ops.data[reason].loc, arena)};
    berth_vec_push(arena, &s->known->used, use);
}

// The constant of a known input, made before the first operation that reads it.
static berth_value_id constant_for(search *s, berth_value_id param, berth_op_id position) {
    const berth_input_binding *input = binding_of(s, param);
    if (!input || s->constant[param] != BERTH_NONE) return s->constant[param];
    berth_tensor copy = berth_tensor_copy(s->module->arena, &input->tensor);
    s->constant[param] = berth_graph_insert_constant(s->module, s->function, position, &copy, 0);
    remember_use(s, input, s->reason[param]);
    return s->constant[param];
}

static void replace_operands(search *s, berth_op_id id, uint32_t old_values) {
    bool needed = false;
    const berth_op *op = &s->graph->ops.data[id];
    for (uint32_t i = 0; i < op->output_count; ++i)
        needed |= s->reason[op->outputs[i]] != BERTH_NONE;
    if (op->region_count || berth_op_has(op->kind, BERTH_TRAIT_HOST)) needed = false;
    bool shapes = shaped_by_values(s, op);
    for (uint32_t i = 0; i < s->graph->ops.data[id].input_count; ++i) {
        op = &s->graph->ops.data[id];
        berth_value_id value = op->inputs[i];
        if (value == BERTH_NONE || value >= old_values || s->reason[value] == BERTH_NONE) continue;
        if (!needed && !shapes && !is_host_operand(op, i)) continue;
        berth_value_id constant = constant_for(s, value, id);
        if (constant == BERTH_NONE) continue;
        s->graph->ops.data[id].inputs[i] = constant;
        s->changed = true;
    }
}

void berth_pass_use_known_inputs(berth_module *module, berth_func_id function,
                                 berth_known_inputs *known, bool *out_changed) {
    *out_changed = false;
    if (!known || known->input_count == 0) return;
    search s = {.module = module,
                .function = function,
                .graph = berth_graph_get(module, function),
                .known = known};
    uint32_t values = s.graph->values.count;
    s.reason = berth_arena_new_array(module->arena, berth_op_id, values);
    s.constant = berth_arena_new_array(module->arena, berth_value_id, values);
    for (uint32_t i = 0; i < values; ++i) s.reason[i] = s.constant[i] = BERTH_NONE;
    const berth_region *root = &s.graph->regions.data[0];
    for (uint32_t i = root->ops.count; i-- > 0;) mark(&s, root->ops.data[i]);
    if (work_of(&s) > most_work) return;
    uint32_t count = root->ops.count;
    const berth_op_id *ops =
        berth_arena_copy(module->arena, root->ops.data, count * sizeof(*root->ops.data));
    for (uint32_t i = 0; i < count; ++i) replace_operands(&s, ops[i], values);
    *out_changed = s.changed;
}
