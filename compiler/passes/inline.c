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

// ---- what can become part of main

typedef struct survey {
    const berth_module *module;
    uint64_t *sizes;   // per function: operations with those of what it calls; 0 = not known yet
    uint32_t *levels;  // per function: calls below each other
} survey;

static berth_status endless(void) {
    return berth_status_make(BERTH_UNSUPPORTED,
                             "calls nest more than %d deep, or a function calls itself",
                             BERTH_MAX_NESTING);
}

static berth_status too_many(const berth_module *module, const berth_op *call) {
    return berth_status_make(
        BERTH_UNSUPPORTED,
        "%s: with the functions that it calls, @main has more than %d operations",
        berth_loc_describe(module, call->loc, module->arena), BERTH_INLINE_MAX_OPS);
}

static berth_status survey_function(survey *s, berth_func_id function, int depth) {
    const berth_graph *graph = berth_graph_get(s->module, function);
    const berth_region *root = &graph->regions.data[0];
    uint64_t size = 1;
    uint32_t levels = 0;
    for (uint32_t i = 0; i < root->ops.count; ++i) {
        const berth_op *op = &graph->ops.data[root->ops.data[i]];
        berth_func_id callee = callee_of(s->module, op);
        if (depth > 0 && op->region_count > 0) return berth_refuse_control_flow(s->module, op);
        size += 1;
        if (callee == BERTH_NONE) continue;
        if (depth >= BERTH_MAX_NESTING) return endless();
        if (!s->sizes[callee]) BERTH_TRY(survey_function(s, callee, depth + 1));
        if (s->levels[callee] >= levels) levels = s->levels[callee] + 1;
        size += s->sizes[callee];
        if (size > BERTH_INLINE_MAX_OPS) return too_many(s->module, op);
    }
    if (levels > BERTH_MAX_NESTING) return endless();
    s->sizes[function] = size;
    s->levels[function] = levels;
    return BERTH_OK;
}

berth_status berth_pass_check_calls(const berth_module *module, berth_func_id main) {
    uint32_t count = module->functions.count;
    survey s = {.module = module,
                .sizes = berth_arena_new_array(module->arena, uint64_t, count),
                .levels = berth_arena_new_array(module->arena, uint32_t, count)};
    memset(s.sizes, 0, count * sizeof(*s.sizes));
    memset(s.levels, 0, count * sizeof(*s.levels));
    return survey_function(&s, main, 0);
}

// ---- inlining

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

static void replace_results(inliner *in) {
    berth_graph *graph = berth_graph_get(in->module, in->main);
    berth_value_id *map =
        berth_arena_new_array(in->module->arena, berth_value_id, graph->values.count + 1);
    for (uint32_t i = 0; i < graph->values.count; ++i) map[i] = i;
    for (uint32_t i = 0; i < in->replaced.count; ++i)
        map[in->replaced.data[i].from] = in->replaced.data[i].to;
    berth_graph_replace_many(graph, map);
}

// `kind`: on_device or device_copy.
static berth_value_id add_placed(inliner *in, berth_op_kind kind, berth_value_id value,
                                 berth_device_id device, berth_loc_id loc) {
    berth_op_id id = berth_graph_add_op(in->module, in->main, 0, kind, &value, 1, 1, loc);
    berth_graph *graph = berth_graph_get(in->module, in->main);
    berth_value_id made = graph->ops.data[id].outputs[0];
    graph->ops.data[id].device = device;
    graph->values.data[made].device = device;
    graph->values.data[made].type = graph->values.data[value].type;
    return made;
}

static berth_device_id device_attr(const berth_module *module, const berth_op *op,
                                   const char *name) {
    const berth_attr *attr = berth_attrs_find(module, &op->attrs, name);
    return attr && attr->kind == BERTH_ATTR_DEVICE ? attr->device : 0;
}

// Where a function wants a parameter: by its annotation, or by an operation in the function that says
// where its operand is. 0 = anywhere.
static berth_device_id device_of_parameter(const berth_module *module, const berth_graph *graph,
                                           berth_value_id parameter) {
    berth_device_id device = graph->values.data[parameter].device;
    const berth_region *root = &graph->regions.data[0];
    if (berth_type_get(module, graph->values.data[parameter].type)->kind != BERTH_TYPE_TENSOR)
        return 0;  // a function is not copied
    for (uint32_t i = 0; i < root->ops.count && !device; ++i) {
        const berth_op *op = &graph->ops.data[root->ops.data[i]];
        bool annotates = op->kind == BERTH_OP_ON_DEVICE;
        if ((!annotates && op->kind != BERTH_OP_DEVICE_COPY) || op->inputs[0] != parameter)
            continue;
        device = device_attr(module, op, annotates ? "device" : "source");
        if (!device && annotates) device = op->device;
    }
    return device;
}

// As the planner has it for calls: a parameter is at its device, and what is given is copied there
// if it is elsewhere.
static berth_value_id argument(inliner *in, const berth_graph *from, const berth_op *call,
                               uint32_t index) {
    berth_value_id value = call->inputs[index];
    if (value == BERTH_NONE) return value;
    berth_device_id device =
        device_of_parameter(in->module, from, from->regions.data[0].params.data[index]);
    berth_device_id now = berth_graph_get(in->module, in->main)->values.data[value].device;
    return device && device != now ? add_placed(in, BERTH_OP_DEVICE_COPY, value, device, call->loc)
                                   : value;
}

// A call that is annotated has its results there: what makes them is there, a parameter that is
// returned comes there.
static berth_value_id result(inliner *in, const berth_graph *from, const berth_op *call,
                             berth_value_id returned) {
    berth_value_id value = inner_of(in, returned);
    if (value == BERTH_NONE || !call->device) return value;
    if (berth_graph_get(in->module, in->main)->values.data[value].device == call->device)
        return value;
    bool made = from->values.data[returned].op != BERTH_NONE;
    return add_placed(in, made ? BERTH_OP_ON_DEVICE : BERTH_OP_DEVICE_COPY, value, call->device,
                      call->loc);
}

// Arguments fit the parameters: the verifier and inference have checked the call.
static berth_status inline_call(inliner *in, berth_op_id id, berth_func_id callee) {
    berth_op call = berth_graph_get(in->module, in->main)->ops.data[id];
    const berth_graph *from = berth_graph_get(in->module, callee);
    berth_region root = from->regions.data[0];
    in->inner = berth_arena_new_array(in->module->arena, berth_value_id, from->values.count + 1);
    memset(in->inner, 0xff, from->values.count * sizeof(*in->inner));
    for (uint32_t i = 0; i < root.params.count && i < call.input_count; ++i)
        in->inner[root.params.data[i]] = argument(in, from, &call, i);
    for (uint32_t i = 0; i < root.ops.count; ++i) BERTH_TRY(copy_op(in, callee, root.ops.data[i]));
    for (uint32_t i = 0; i < call.output_count && i < root.results.count; ++i)
        berth_vec_push(
            in->module->arena, &in->replaced,
            (replacement){call.outputs[i], result(in, from, &call, root.results.data[i])});
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
    BERTH_TRY(berth_pass_check_calls(module, main));
    for (bool some = true; some;) BERTH_TRY(inline_level(&in, &some));
    return BERTH_OK;
}
