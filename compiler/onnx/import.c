#include "compiler/onnx/import.h"

#include <string.h>

#include "base/file.h"
#include "compiler/onnx/ops.h"
#include "compiler/passes/check.h"

#define MAX_CALL_DEPTH 32              // functions that call functions
#define VALUE_ABSENT (BERTH_NONE - 1)  // in a scope: an optional argument that the call leaves out

// ---- one node ----

static bool attr_fits(const onnx_attr *attr, char kind) {
    switch (kind) {
    case 'i':
    case 'd': return attr->type == ONNX_ATTR_INT;
    case 'f': return attr->type == ONNX_ATTR_FLOAT;
    case 's': return attr->type == ONNX_ATTR_STRING;
    case 'I': return attr->type == ONNX_ATTR_INTS || attr->type == ONNX_ATTR_UNDEFINED;
    case 'F': return attr->type == ONNX_ATTR_FLOATS || attr->type == ONNX_ATTR_UNDEFINED;
    case 'S': return attr->type == ONNX_ATTR_STRINGS || attr->type == ONNX_ATTR_UNDEFINED;
    case 't': return attr->type == ONNX_ATTR_TENSOR;
    case 'p': return attr->type == ONNX_ATTR_SPARSE_TENSOR;
    case 'g': return attr->type == ONNX_ATTR_GRAPH;
    case 'T': return attr->type == ONNX_ATTR_TYPE_PROTO;
    default: return false;
    }
}

// The entry of a row's attribute list with this name, or NULL.
static const char *find_in_row(const char *attrs, const char *name) {
    size_t length = strlen(name);
    for (const char *at = attrs; *at; at += strcspn(at, " "), at += *at == ' ') {
        const char *entry = at + (*at == '-' || *at == '!');
        if (strncmp(entry, name, length) == 0 && entry[length] == ':') return at;
    }
    return NULL;
}

static berth_status check_attrs(const onnx_call *call) {
    const onnx_node *node = call->node;
    for (uint32_t i = 0; i < node->attrs.count; ++i) {
        const onnx_attr *attr = &node->attrs.data[i];
        const char *entry = find_in_row(call->row->attrs, attr->name);
        if (!entry)
            return onnx_call_fail(call, BERTH_INVALID_ARGUMENT, "attribute \"%s\" is none of %s's",
                                  attr->name, node->op_type);
        if (!attr_fits(attr, entry[strcspn(entry, ":") + 1]))
            return onnx_call_fail(call, BERTH_INVALID_ARGUMENT,
                                  "attribute %s has another type than %s's", attr->name,
                                  node->op_type);
        for (uint32_t k = 0; k < i; ++k)
            if (strcmp(node->attrs.data[k].name, attr->name) == 0)
                return onnx_call_fail(call, BERTH_INVALID_ARGUMENT, "attribute %s is given twice",
                                      attr->name);
    }
    for (const char *at = call->row->attrs; *at; at += strcspn(at, " "), at += *at == ' ') {
        if (*at != '!') continue;
        const char *name = berth_arena_strndup(call->im->scratch, at + 1, strcspn(at + 1, ":"));
        if (!onnx_attr_find(node, name))
            return onnx_call_fail(call, BERTH_INVALID_ARGUMENT, "attribute %s is missing", name);
    }
    return BERTH_OK;
}

static const onnx_attr *find_default(const onnx_function *function, const char *name) {
    for (uint32_t i = 0; i < function->defaults.count; ++i)
        if (strcmp(function->defaults.data[i].name, name) == 0) return &function->defaults.data[i];
    return NULL;
}

// Attributes that refer to those of the function being inlined get their values; absent ones are
// dropped.
static berth_status resolve_attrs(onnx_importer *im, const onnx_node *node, onnx_node *out) {
    *out = *node;
    memset(&out->attrs, 0, sizeof(out->attrs));
    for (uint32_t i = 0; i < node->attrs.count; ++i) {
        onnx_attr attr = node->attrs.data[i];
        if (*attr.reference) {
            const char *name = attr.name;
            if (!im->frame)
                return berth_status_make(
                    BERTH_INVALID_ARGUMENT,
                    "%s: node \"%s\" refers to attribute \"%s\" of a function, but is in none",
                    im->file, node->name, attr.reference);
            const onnx_attr *value = onnx_attr_find(im->frame, attr.reference);
            if (!value) value = find_default(im->frame_function, attr.reference);
            if (!value) continue;
            attr = *value;
            attr.name = name;
            attr.reference = "";
        }
        berth_vec_push(im->scratch, &out->attrs, attr);
    }
    onnx_renew_attrs(im, out);
    return BERTH_OK;
}

static berth_value_id lookup(const onnx_importer *im, const char *name) {
    if (!*name) return BERTH_NONE;
    uint32_t value = onnx_scope_find(im->scope, berth_module_intern(im->module, name));
    return value == VALUE_ABSENT ? BERTH_NONE : value;
}

static void bind_outputs(onnx_importer *im, const onnx_node *node, const berth_value_id *outputs,
                         uint32_t count) {
    berth_graph *graph = berth_graph_get(im->module, im->function);
    if (count > node->outputs.count) count = node->outputs.count;
    berth_str_id *names = berth_arena_new_array(im->scratch, berth_str_id, count);
    berth_value_id *named = berth_arena_new_array(im->scratch, berth_value_id, count);
    for (uint32_t i = 0; i < count; ++i) {
        const char *text = node->outputs.data[i];
        named[i] = *text ? outputs[i] : BERTH_NONE;
        if (named[i] == BERTH_NONE) continue;
        names[i] = berth_module_intern(im->module, text);
        onnx_scope_add(im->scratch, im->scope, names[i], outputs[i]);
        berth_value *value = &graph->values.data[outputs[i]];
        if (!value->name)
            value->name = berth_module_intern(
                im->module, berth_arena_printf(im->scratch, "%s%s", im->prefix, text));
    }
    onnx_keep_declared(im, names, named, count);
}

// Builds nodes where `saved` did.
static void come_back(onnx_importer *im, const onnx_importer *saved) {
    im->region = saved->region;
    im->scope = saved->scope;
    im->opset = saved->opset;
    im->frame = saved->frame;
    im->frame_function = saved->frame_function;
    im->declared = saved->declared;
    im->prefix = saved->prefix;
    im->call_depth = saved->call_depth;
}

// ---- model-local functions ----

static const berth_limits *limits_of(const onnx_importer *im) {
    return im->options ? im->options->limits : NULL;
}

static berth_status inline_function(onnx_importer *im, const onnx_node *node,
                                    const onnx_function *function) {
    onnx_importer saved = *im;
    onnx_scope scope = {0};
    const uint64_t most_depth = berth_limits_depth(limits_of(im), MAX_CALL_DEPTH);
    if ((uint64_t)im->call_depth >= most_depth)
        return berth_status_make(BERTH_UNSUPPORTED,
                                 "%s: node \"%s\": functions call each other more than %d deep",
                                 im->file, node->name, (int)most_depth);
    if (node->inputs.count > function->inputs.count ||
        node->outputs.count > function->outputs.count)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "%s: node \"%s\" has more inputs or outputs than function %s",
                                 im->file, node->name, function->name);
    for (uint32_t i = 0; i < function->inputs.count; ++i) {
        berth_value_id value =
            i < node->inputs.count ? lookup(im, node->inputs.data[i]) : BERTH_NONE;
        onnx_scope_add(im->scratch, &scope,
                       berth_module_intern(im->module, function->inputs.data[i]),
                       value == BERTH_NONE ? VALUE_ABSENT : value);
    }
    int64_t opset = onnx_opset_version(&function->opsets, "");
    if (opset > ONNX_MAX_OPSET)
        return berth_status_make(
            BERTH_UNSUPPORTED, "%s: function %s uses opset %lld; opsets %d to %d are known",
            im->file, function->name, (long long)opset, ONNX_MIN_OPSET, ONNX_MAX_OPSET);
    if (opset) im->opset = opset;
    im->scope = &scope;
    im->frame = node;
    im->frame_function = function;
    im->declared = NULL;
    im->prefix = berth_arena_printf(im->scratch, "%s%s/", im->prefix, node->name);
    im->call_depth++;
    BERTH_TRY(onnx_build_nodes(im, &function->body));
    berth_value_id *outputs =
        berth_arena_new_array(im->scratch, berth_value_id, node->outputs.count);
    for (uint32_t i = 0; i < node->outputs.count; ++i) {
        outputs[i] = lookup(im, function->outputs.data[i]);
        if (outputs[i] == BERTH_NONE && *node->outputs.data[i])
            return berth_status_make(BERTH_INVALID_ARGUMENT,
                                     "%s: function %s does not make its output \"%s\"", im->file,
                                     function->name, function->outputs.data[i]);
    }
    come_back(im, &saved);
    bind_outputs(im, node, outputs, node->outputs.count);
    return BERTH_OK;
}

// ---- nodes of a graph ----

static berth_status check_outputs(const onnx_call *call) {
    for (uint32_t i = 0; i < call->output_count; ++i)
        if (call->outputs[i] == BERTH_NONE && *call->node->outputs.data[i])
            return onnx_call_fail(call, BERTH_INVALID_ARGUMENT, "%s has no output %u",
                                  call->node->op_type, i);
    return BERTH_OK;
}

static berth_status build_call(onnx_call *call) {
    onnx_importer *im = call->im;
    const onnx_node *node = call->node;
    const char *missing = onnx_missing_reason(node);
    if (missing)
        return onnx_call_fail(call, BERTH_UNSUPPORTED, "the operator cannot be imported (%s)",
                              missing);
    if (im->opset < call->row->first_opset)
        return onnx_call_fail(call, BERTH_UNSUPPORTED,
                              "%s of opset %lld (the oldest form read is that of opset %d)",
                              node->op_type, (long long)im->opset, call->row->first_opset);
    BERTH_TRY(check_attrs(call));
    call->inputs = berth_arena_new_array(im->scratch, berth_value_id, node->inputs.count + 1);
    for (uint32_t i = 0; i < node->inputs.count; ++i) {
        call->inputs[i] = lookup(im, node->inputs.data[i]);
        if (call->inputs[i] != BERTH_NONE) call->input_count = i + 1;
    }
    call->outputs = berth_arena_new_array(im->scratch, berth_value_id, node->outputs.count + 2);
    for (uint32_t i = 0; i < node->outputs.count + 2; ++i) call->outputs[i] = BERTH_NONE;
    for (uint32_t i = 0; i < node->outputs.count; ++i)
        if (*node->outputs.data[i]) call->output_count = i + 1;
    BERTH_TRY(onnx_check_narrow(call));
    BERTH_TRY(call->row->build(call));
    onnx_pass_narrow(call);
    return check_outputs(call);
}

// A node that cannot be imported is an error only where it runs: in a branch of an If, an operation
// takes its place that says so, should the branch be chosen.
//   kept: operations of the region before the node
static berth_status put_off(onnx_call *call, uint32_t kept, berth_status why) {
    onnx_importer *im = call->im;
    berth_graph *graph = berth_graph_get(im->module, im->function);
    berth_region *region = &graph->regions.data[im->region];
    for (uint32_t i = kept; i < region->ops.count; ++i)
        graph->ops.data[region->ops.data[i]].region = BERTH_NONE;
    region->ops.count = kept;
    call->output_count = call->node->outputs.count;
    berth_op_id op = berth_graph_add_op(im->module, im->function, im->region, BERTH_OP_NOT_IMPORTED,
                                        NULL, 0, call->output_count, call->loc);
    berth_attrs_set_string(im->module, onnx_call_op_attrs(call, op), "reason",
                           berth_status_message(why));
    berth_status_free(why);
    call->outputs = berth_arena_new_array(im->scratch, berth_value_id, call->output_count + 1);
    for (uint32_t i = 0; i < call->output_count; ++i)
        call->outputs[i] = onnx_call_result(call, op, i);
    return onnx_call_infer(call, op);
}

static berth_status build_node(onnx_importer *im, const onnx_node *given) {
    onnx_node node;
    BERTH_TRY(berth_limit_item(&im->built_nodes));
    BERTH_TRY(resolve_attrs(im, given, &node));
    const onnx_function *function = onnx_find_function(im, &node);
    if (function) return inline_function(im, &node, function);
    const char *name = berth_arena_printf(im->scratch, "%s%s", im->prefix, node.name);
    onnx_call call = {.im = im,
                      .node = &node,
                      .row = onnx_row_find(&node),
                      .loc = berth_loc_node(im->module, im->file, name, node.op_type)};
    const onnx_importer saved = *im;
    const berth_graph *graph = berth_graph_get(im->module, im->function);
    uint32_t kept = graph->regions.data[im->region].ops.count;
    im->refused = NULL;
    berth_status status = build_call(&call);
    graph = berth_graph_get(im->module, im->function);
    if (status && im->refused == &node && berth_graph_is_conditional(graph, saved.region)) {
        come_back(im, &saved);
        status = put_off(&call, kept, status);
    }
    BERTH_TRY(status);
    bind_outputs(im, &node, call.outputs, call.output_count);
    return BERTH_OK;
}

berth_status onnx_build_nodes(onnx_importer *im, const onnx_graph *graph) {
    uint32_t *order = NULL;
    BERTH_TRY(onnx_sort_nodes(im, graph, &order));
    for (uint32_t i = 0; i < graph->nodes.count; ++i)
        BERTH_TRY(build_node(im, &graph->nodes.data[order[i]]));
    return BERTH_OK;
}

// ---- graphs ----

// Values of the graph's outputs; declared element types must be the ones made.
static berth_status find_outputs(onnx_importer *im, const onnx_graph *graph,
                                 berth_value_id *values) {
    for (uint32_t i = 0; i < graph->outputs.count; ++i) {
        const onnx_value *output = &graph->outputs.data[i];
        values[i] = lookup(im, output->name);
        if (values[i] == BERTH_NONE)
            return berth_status_make(BERTH_INVALID_ARGUMENT, "%s: output \"%s\" is made by no node",
                                     im->file, output->name);
        const berth_graph *held = berth_graph_get(im->module, im->function);
        const berth_type *type = berth_type_get(im->module, held->values.data[values[i]].type);
        if (output->kind == ONNX_VALUE_MAPS && type->kind == BERTH_TYPE_TENSOR)
            return berth_status_make(BERTH_INVALID_ARGUMENT,
                                     "%s: output \"%s\" is declared a sequence of maps, but is a "
                                     "tensor",
                                     im->file, output->name);
        berth_dtype declared =
            output->is_tensor ? berth_storage_from_onnx(output->element) : BERTH_DTYPE_NONE;
        if (declared && berth_narrow_type_of(output->element) != onnx_narrow_of(im, values[i]))
            return berth_status_make(BERTH_INVALID_ARGUMENT,
                                     "%s: output \"%s\" is declared %s, but is another type",
                                     im->file, output->name, onnx_element_name(output->element));
        if (declared && type->kind == BERTH_TYPE_TENSOR && type->dtype && type->dtype != declared)
            return berth_status_make(
                BERTH_INVALID_ARGUMENT, "%s: output \"%s\" is declared %s, but is %s", im->file,
                output->name, berth_dtype_name(declared), berth_dtype_name(type->dtype));
    }
    return BERTH_OK;
}

berth_status onnx_build_subgraph(onnx_importer *im, const onnx_graph *graph,
                                 berth_region_id region) {
    onnx_scope scope = {.parent = im->scope};
    onnx_scope *outer_scope = im->scope;
    berth_region_id outer_region = im->region;
    const onnx_scope *outer_declared = im->declared;
    im->scope = &scope;
    im->declared = NULL;
    im->region = region;
    BERTH_TRY(onnx_build_initializers(im, graph));
    for (uint32_t i = 0; i < graph->inputs.count; ++i) {
        const onnx_value *input = &graph->inputs.data[i];
        berth_str_id name = berth_module_intern(im->module, input->name);
        berth_type_id type = 0;
        if (onnx_scope_find_here(&scope, name) != BERTH_NONE)
            return berth_status_make(BERTH_INVALID_ARGUMENT,
                                     "%s: input \"%s\" of graph \"%s\" is declared twice", im->file,
                                     input->name, graph->name);
        if (input->is_tensor) BERTH_TRY(onnx_value_type(im, input, "input", &type));
        berth_value_id value =
            berth_graph_add_region_param(im->module, im->function, region, input->name, type);
        if (input->is_tensor) onnx_set_narrow(im, value, input->element);
        onnx_scope_add(im->scratch, &scope, name, value);
    }
    BERTH_TRY(onnx_build_nodes(im, graph));
    berth_value_id *results =
        berth_arena_new_array(im->scratch, berth_value_id, graph->outputs.count);
    BERTH_TRY(find_outputs(im, graph, results));
    berth_graph_set_region_results(im->module, im->function, region, results, graph->outputs.count);
    im->scope = outer_scope;
    im->region = outer_region;
    im->declared = outer_declared;
    return BERTH_OK;
}

berth_status onnx_inline_subgraph(onnx_call *call, const onnx_graph *graph,
                                  const berth_value_id *inputs, uint32_t input_count,
                                  berth_value_id *outputs, uint32_t output_count) {
    onnx_importer *im = call->im;
    const onnx_importer saved = *im;
    onnx_scope scope = {.parent = im->scope};
    if (graph->inputs.count != input_count || graph->outputs.count != output_count)
        return onnx_call_fail(call, BERTH_INVALID_ARGUMENT,
                              "graph \"%s\" has %u inputs and %u outputs, expected %u and %u",
                              graph->name, graph->inputs.count, graph->outputs.count, input_count,
                              output_count);
    im->scope = &scope;
    im->declared = NULL;
    im->prefix = berth_arena_printf(im->scratch, "%s%s/", im->prefix, call->node->name);
    BERTH_TRY(onnx_build_initializers(im, graph));
    for (uint32_t i = 0; i < input_count; ++i)
        onnx_scope_add(im->scratch, &scope,
                       berth_module_intern(im->module, graph->inputs.data[i].name), inputs[i]);
    BERTH_TRY(onnx_build_nodes(im, graph));
    BERTH_TRY(find_outputs(im, graph, outputs));
    come_back(im, &saved);
    return BERTH_OK;
}

static void set_output_names(onnx_importer *im, const onnx_graph *graph) {
    berth_str_id *names = berth_arena_new_array(im->arena, berth_str_id, graph->outputs.count);
    for (uint32_t i = 0; i < graph->outputs.count; ++i)
        names[i] = berth_module_intern(im->module, graph->outputs.data[i].name);
    berth_attrs_set(
        im->module, &berth_module_function(im->module, im->function)->attrs, "output_names",
        (berth_attr){.kind = BERTH_ATTR_STRINGS, .count = graph->outputs.count, .strings = names});
}

// Of what kinds the values are, where they are not all tensors: an attribute of the function.
static void set_kinds(onnx_importer *im, const char *name, const onnx_value *values, uint32_t count,
                      const onnx_scope *fixed) {
    int64_t *kinds = berth_arena_new_array(im->arena, int64_t, count + 1);
    uint32_t kept = 0;
    bool all_tensors = true;
    for (uint32_t i = 0; i < count; ++i) {
        berth_str_id value = berth_module_intern(im->module, values[i].name);
        if (fixed && onnx_scope_find_here(fixed, value) != BERTH_NONE) continue;
        all_tensors &= values[i].kind == ONNX_VALUE_TENSOR;
        kinds[kept++] = values[i].kind;
    }
    if (!all_tensors)
        berth_attrs_set_ints(im->module, &berth_module_function(im->module, im->function)->attrs,
                             name, kinds, kept);
}

static berth_status build_main(onnx_importer *im) {
    const onnx_graph *graph = &im->model.graph;
    onnx_scope scope = {0}, declared = {0};
    im->scope = &scope;
    im->prefix = "";
    onnx_collect_declared(im, graph, &declared);
    BERTH_TRY(onnx_build_initializers(im, graph));
    onnx_name_dims(im, &im->model.graph);
    BERTH_TRY(onnx_collect_dims(im, graph, &scope));
    set_kinds(im, "input_kinds", graph->inputs.data, graph->inputs.count, &scope);
    set_kinds(im, "output_kinds", graph->outputs.data, graph->outputs.count, NULL);
    BERTH_TRY(onnx_collect_overridables(im, graph));
    BERTH_TRY(onnx_build_inputs(im, graph));
    BERTH_TRY(onnx_build_nodes(im, graph));
    berth_value_id *results =
        berth_arena_new_array(im->scratch, berth_value_id, graph->outputs.count);
    BERTH_TRY(find_outputs(im, graph, results));
    onnx_scope seen = {0};
    for (uint32_t i = 0; i < graph->outputs.count; ++i) {
        berth_str_id name = berth_module_intern(im->module, graph->outputs.data[i].name);
        if (onnx_scope_find_here(&seen, name) != BERTH_NONE)
            return berth_status_make(BERTH_INVALID_ARGUMENT, "%s: output \"%s\" is declared twice",
                                     im->file, graph->outputs.data[i].name);
        onnx_scope_add(im->scratch, &seen, name, i);
    }
    berth_graph_set_results(im->module, im->function, results, graph->outputs.count);
    set_output_names(im, graph);
    return BERTH_OK;
}

// ---- entry points ----

typedef struct import_request {
    berth_arena *arena;
    const void *data;
    size_t size_bytes;
    const char *path;  // to map; NULL: data is given
    const char *name;
    const char *folder;
    const berth_import_options *options;
    berth_module *module;
} import_request;

static berth_status check_model(onnx_importer *im) {
    im->opset = onnx_opset_version(&im->model.opsets, "");
    if (!im->model.has_graph)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "%s is not an ONNX model: it holds no graph", im->file);
    if (!im->model.graph.outputs.count)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "%s: the graph has no outputs", im->file);
    if (im->opset == 0 && im->model.opsets.count == 0)
        im->opset = 1;  // IR versions 1 and 2 do not say
    if (im->opset == 0)
        im->opset = ONNX_MAX_OPSET;  // only functions and other domains: unsupported.c lists those
    if (im->opset < ONNX_MIN_OPSET || im->opset > ONNX_MAX_OPSET)
        return berth_status_make(BERTH_UNSUPPORTED, "%s uses opset %lld; opsets %d to %d are known",
                                 im->file, (long long)im->opset, ONNX_MIN_OPSET, ONNX_MAX_OPSET);
    onnx_index_functions(im);
    BERTH_TRY(onnx_check_operators(im));
    for (uint32_t i = 0; i < im->model.graph.outputs.count; ++i) {
        const onnx_value *output = &im->model.graph.outputs.data[i];
        if (output->kind == ONNX_VALUE_OTHER || output->kind == ONNX_VALUE_MAP)
            return berth_status_make(BERTH_UNSUPPORTED,
                                     "%s: output \"%s\" is a map, a sparse tensor or a sequence of "
                                     "sequences, which are not supported",
                                     im->file, output->name);
    }
    return BERTH_OK;
}

static berth_status import_mapped(onnx_importer *im, import_request *request) {
    if (!request->size_bytes)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "%s is empty", im->file);
    const berth_limits *limits = limits_of(im);
    BERTH_TRY(berth_limits_check_bytes(limits, im->file, request->size_bytes, 0));
    im->built_nodes =
        berth_limits_watch(limits, im->file, "nodes after inlining functions", ONNX_MAX_NODES);
    berth_status status = onnx_model_parse(im->scratch, im->file, request->data,
                                           request->size_bytes, limits, &im->model);
    if (berth_status_code(status) != BERTH_OUT_OF_RANGE)
        status = berth_status_prefix(status, "%s is not a readable ONNX model", im->file);
    BERTH_TRY(status);
    im->module = berth_module_create(im->arena, request->name);
    BERTH_TRY(check_model(im));
    im->function =
        berth_graph_create(im->module, "main", berth_loc_node(im->module, im->file, "", ""));
    BERTH_TRY(build_main(im));
    request->module = im->module;
    return BERTH_OK;
}

static void unmap(void *pointer) {
    berth_mapping *mapping = pointer;
    berth_file_unmap(*mapping);
}

static berth_status import_body(void *user) {
    import_request *request = user;
    if (request->path) {
        berth_mapping *mapping = berth_arena_new(request->arena, berth_mapping);
        berth_arena_defer(request->arena, unmap,
                          mapping);  // before mapping: deferring may run out of memory
        BERTH_TRY(berth_file_map(request->path, mapping));
        request->data = mapping->data;
        request->size_bytes = mapping->size_bytes;
    }
    onnx_importer im = {.arena = request->arena,
                        .scratch = berth_arena_create_child(request->arena),
                        .options = request->options,
                        .file = request->name,
                        .folder = request->folder};
    berth_status status = import_mapped(&im, request);
    if (!status && request->path)
        berth_vec_push(request->arena, &request->module->sources,
                       (berth_mapping){request->data, request->size_bytes});
    for (uint32_t i = 0; !status && i < im.mapped.count; ++i)
        berth_vec_push(request->arena, &request->module->sources,
                       (berth_mapping){im.mapped.data[i].data, im.mapped.data[i].size_bytes});
    berth_arena_destroy(im.scratch);
    return status;
}

berth_status berth_onnx_import_memory(berth_arena *arena, const void *data, size_t size_bytes,
                                      const char *name, const char *folder,
                                      const berth_import_options *options,
                                      berth_module **out_module) {
    import_request request = {.arena = arena,
                              .data = data,
                              .size_bytes = size_bytes,
                              .name = name,
                              .folder = folder,
                              .options = options};
    *out_module = NULL;
    BERTH_TRY(berth_arena_try(arena, import_body, &request));
    *out_module = request.module;
    return BERTH_OK;
}

typedef struct path_request {
    berth_arena *arena;
    const char *path;
    char *folder;
} path_request;

static berth_status split_folder(void *user) {
    path_request *request = user;
    const char *slash = strrchr(request->path, '/');
    if (!slash)
        request->folder = berth_arena_strdup(request->arena, ".");
    else
        request->folder =
            berth_arena_strndup(request->arena, request->path,
                                slash == request->path ? 1 : (size_t)(slash - request->path));
    return BERTH_OK;
}

berth_status berth_onnx_import(berth_arena *arena, const char *path,
                               const berth_import_options *options, berth_module **out_module) {
    path_request split = {.arena = arena, .path = path};
    *out_module = NULL;
    BERTH_TRY(berth_arena_try(arena, split_folder, &split));
    import_request request = {
        .arena = arena, .path = path, .name = path, .folder = split.folder, .options = options};
    BERTH_TRY(berth_arena_try(arena, import_body, &request));
    *out_module = request.module;
    return BERTH_OK;
}
