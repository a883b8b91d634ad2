#include "compiler/passes/inline.h"

#include <string.h>

#include "compiler/passes/check.h"
#include "ir/infer.h"

typedef struct replacement {
    berth_value_id from, to;
} replacement;

typedef struct inliner {
    berth_module *module;
    berth_func_id main;
    BERTH_VEC(replacement) replaced;  // results of calls
    berth_value_id *inner;            // per value of the function being copied: its value in main
} inliner;

static berth_func_id callee_of(const berth_module *module, const berth_op *op) {
    const berth_attr *callee =
        op->kind == BERTH_OP_CALL ? berth_attrs_find(module, &op->attrs, "callee") : NULL;
    if (!callee || callee->kind != BERTH_ATTR_FUNCTION) return BERTH_NONE;
    const berth_function *held = berth_module_function(module, callee->function);
    if (!berth_graph_get(module, callee->function)) return BERTH_NONE;
    return berth_attrs_int(module, &held->attrs, "primitive", 0) ? BERTH_NONE : callee->function;
}

static berth_value_id inner_of(const inliner *in, berth_value_id value) {
    return value == BERTH_NONE ? BERTH_NONE : in->inner[value];
}

static void copy_results(inliner *in, const berth_graph *from, const berth_op *op,
                         berth_op_id copy) {
    berth_graph *to = berth_graph_get(in->module, in->main);
    for (uint32_t i = 0; i < op->output_count; ++i) {
        const berth_value *value = &from->values.data[op->outputs[i]];
        berth_value_id made = to->ops.data[copy].outputs[i];
        to->values.data[made].name = value->name;
        to->values.data[made].device = value->device;
        if (berth_type_is_static(berth_type_get(in->module, value->type)))
            to->values.data[made].type = value->type;
        in->inner[op->outputs[i]] = made;
    }
}

static berth_status copy_op(inliner *in, berth_func_id callee, berth_op_id id) {
    const berth_graph *from = berth_graph_get(in->module, callee);
    const berth_op *op = &from->ops.data[id];
    if (op->region_count > 0) return berth_refuse_control_flow(in->module, op);
    berth_value_id *inputs = berth_arena_new_array(in->module->arena, berth_value_id,
                                                   op->input_count ? op->input_count : 1);
    for (uint32_t i = 0; i < op->input_count; ++i) inputs[i] = inner_of(in, op->inputs[i]);
    berth_op_id copy = berth_graph_add_op(in->module, in->main, 0, op->kind, inputs,
                                          op->input_count, op->output_count, op->loc);
    berth_op *made = &berth_graph_get(in->module, in->main)->ops.data[copy];
    made->device = op->device;
    for (uint32_t i = 0; i < op->attrs.items.count; ++i)
        berth_vec_push(in->module->arena, &made->attrs.items, op->attrs.items.data[i]);
    copy_results(in, from, op, copy);
    for (uint32_t i = 0; i < op->output_count; ++i)
        if (!berth_type_is_static(
                berth_type_get(in->module, from->values.data[op->outputs[i]].type)))
            return berth_infer_op(in->module, in->main, copy);
    return BERTH_OK;
}

static berth_status endless(void) {
    return berth_status_make(BERTH_UNSUPPORTED,
                             "calls nest more than %d deep, or a function calls itself",
                             BERTH_MAX_NESTING);
}

static berth_status too_many(const inliner *in, const berth_op *call) {
    return berth_status_make(
        BERTH_UNSUPPORTED,
        "%s: with the functions that it calls, @main has more than %d operations",
        berth_loc_describe(in->module, call->loc, in->module->arena), BERTH_INLINE_MAX_OPS);
}

static void replace_results(inliner *in) {
    berth_graph *graph = berth_graph_get(in->module, in->main);
    berth_value_id *map =
        berth_arena_new_array(in->module->arena, berth_value_id, graph->values.count + 1);
    for (uint32_t i = 0; i < graph->values.count; ++i) map[i] = i;
    for (uint32_t i = 0; i < in->replaced.count; ++i)
        map[in->replaced.data[i].from] = in->replaced.data[i].to;
    berth_graph_replace_many(graph, map);
}

// Arguments fit the parameters: the verifier and inference have checked the call.
static berth_status inline_call(inliner *in, berth_op_id id, berth_func_id callee) {
    berth_op call = berth_graph_get(in->module, in->main)->ops.data[id];
    const berth_graph *from = berth_graph_get(in->module, callee);
    berth_region root = from->regions.data[0];
    if (callee == in->main) return endless();
    if (berth_graph_get(in->module, in->main)->ops.count + root.ops.count > BERTH_INLINE_MAX_OPS)
        return too_many(in, &call);
    in->inner = berth_arena_new_array(in->module->arena, berth_value_id, from->values.count + 1);
    memset(in->inner, 0xff, from->values.count * sizeof(*in->inner));
    for (uint32_t i = 0; i < root.params.count && i < call.input_count; ++i)
        in->inner[root.params.data[i]] = call.inputs[i];
    for (uint32_t i = 0; i < root.ops.count; ++i) BERTH_TRY(copy_op(in, callee, root.ops.data[i]));
    for (uint32_t i = 0; i < call.output_count && i < root.results.count; ++i)
        berth_vec_push(in->module->arena, &in->replaced,
                       (replacement){call.outputs[i], inner_of(in, root.results.data[i])});
    berth_graph_get(in->module, in->main)->ops.data[id].region = BERTH_NONE;
    return BERTH_OK;
}

// The calls that main has, not those that come with them.
static berth_status inline_level(inliner *in, bool *out_some) {
    berth_graph *graph = berth_graph_get(in->module, in->main);
    uint32_t count = graph->regions.data[0].ops.count;
    *out_some = false;
    if (!count) return BERTH_OK;
    berth_op_id *ops =
        berth_arena_copy(in->module->arena, graph->regions.data[0].ops.data, count * sizeof(*ops));
    for (uint32_t i = 0; i < count; ++i)
        *out_some |= callee_of(in->module, &graph->ops.data[ops[i]]) != BERTH_NONE;
    if (!*out_some) return BERTH_OK;
    in->replaced.count = 0;
    graph->regions.data[0].ops.count = 0;
    for (uint32_t i = 0; i < count; ++i) {
        graph = berth_graph_get(in->module, in->main);
        berth_func_id callee = callee_of(in->module, &graph->ops.data[ops[i]]);
        if (callee == BERTH_NONE)
            berth_vec_push(in->module->arena, &graph->regions.data[0].ops, ops[i]);
        else
            BERTH_TRY(inline_call(in, ops[i], callee));
    }
    replace_results(in);
    return BERTH_OK;
}

berth_status berth_pass_inline_calls(berth_module *module, berth_func_id main) {
    inliner in = {.module = module, .main = main};
    bool some = true;
    for (int level = 0; level < BERTH_MAX_NESTING; ++level) {
        BERTH_TRY(inline_level(&in, &some));
        if (!some) return BERTH_OK;
    }
    return endless();
}
