// Initializers: constants of a graph, or what the caller gives in their place.
#include <string.h>

#include "compiler/onnx/importer.h"

static bool is_graph_input(const onnx_graph *graph, const char *name) {
    for (uint32_t i = 0; i < graph->inputs.count; ++i)
        if (strcmp(graph->inputs.data[i].name, name) == 0) return true;
    return false;
}

// What the caller gives in place of the initializer of the main graph; NULL = nothing.
static const berth_input_binding *given_for(const onnx_importer *im, const onnx_graph *graph,
                                            const char *name) {
    return graph == &im->model.graph ? onnx_binding_of(im, name) : NULL;
}

// A value in place of an initializer that is no input: of its type and shape, since nodes need not
// work with another.
static berth_status take_constant(onnx_importer *im, const char *name,
                                  const berth_input_binding *given, berth_tensor *tensor) {
    const berth_tensor *value = &given->tensor;
    if (!given->as_constant)
        return berth_status_make(
            BERTH_INVALID_ARGUMENT,
            "%s: initializer \"%s\" is not among the model's inputs, so it can "
            "have another value only as a constant",
            im->file, name);
    BERTH_TRY(berth_status_prefix(berth_tensor_check(value), "initializer \"%s\"", name));
    bool fits = value->dtype == tensor->dtype && value->rank == tensor->rank;
    for (int d = 0; fits && d < value->rank; ++d) fits = value->dims[d] == tensor->dims[d];
    if (!fits) {
        berth_strbuf wanted = berth_strbuf_make(im->scratch), is = berth_strbuf_make(im->scratch);
        berth_shape_print(im->module, tensor->rank, tensor->dims, 0, &wanted);
        berth_shape_print(im->module, value->rank, value->dims, 0, &is);
        return berth_status_make(
            BERTH_INVALID_ARGUMENT, "%s: initializer \"%s\" is %s%s, the tensor given is %s%s",
            im->file, name, berth_dtype_name(tensor->dtype), berth_strbuf_text(&wanted),
            berth_dtype_name(value->dtype), berth_strbuf_text(&is));
    }
    *tensor = berth_tensor_copy(im->arena, value);
    return BERTH_OK;
}

static berth_status add_initializer(onnx_importer *im, const char *name,
                                    const berth_tensor *tensor) {
    berth_str_id id = berth_module_intern(im->module, name);
    if (!*name)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "%s: an initializer has no name",
                                 im->file);
    if (onnx_scope_find_here(im->scope, id) != BERTH_NONE)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "%s: initializer \"%s\" is given twice",
                                 im->file, name);
    berth_loc_id loc = berth_loc_node(im->module, im->file, name, "initializer");
    berth_value_id value = berth_graph_constant(im->module, im->function, im->region, tensor, loc);
    berth_graph_get(im->module, im->function)->values.data[value].name = id;
    onnx_set_narrow(im, value, im->element_read);
    onnx_scope_add(im->scratch, im->scope, id, value);
    return BERTH_OK;
}

static berth_status build_one(onnx_importer *im, const onnx_graph *graph, const char *name,
                              berth_tensor *tensor) {
    const berth_input_binding *given = given_for(im, graph, name);
    if (given && is_graph_input(graph, name)) {
        onnx_scope_add(im->scratch, &im->replaced, berth_module_intern(im->module, name), 0);
        return BERTH_OK;
    }
    if (given) BERTH_TRY(take_constant(im, name, given, tensor));
    return add_initializer(im, name, tensor);
}

berth_status onnx_build_initializers(onnx_importer *im, const onnx_graph *graph) {
    for (uint32_t i = 0; i < graph->initializers.count; ++i) {
        berth_tensor_proto proto;
        berth_tensor tensor;
        BERTH_TRY(onnx_parse_tensor(im, &graph->initializers.data[i], &proto));
        tensor = proto.tensor;
        if (!given_for(im, graph, proto.name)) BERTH_TRY(onnx_read_content(im, &proto, &tensor));
        BERTH_TRY(build_one(im, graph, proto.name, &tensor));
    }
    for (uint32_t i = 0; i < graph->sparse_initializers.count; ++i) {
        berth_tensor tensor;
        const char *name = "";
        BERTH_TRY(onnx_read_sparse_tensor(im, &graph->sparse_initializers.data[i], &tensor, &name));
        BERTH_TRY(build_one(im, graph, name, &tensor));
    }
    return BERTH_OK;
}

bool onnx_is_replaced(const onnx_importer *im, const char *name) {
    return onnx_scope_find_here(&im->replaced, berth_module_intern(im->module, name)) != BERTH_NONE;
}

berth_status onnx_collect_overridables(onnx_importer *im, const onnx_graph *graph) {
    const int64_t first_version = 4;  // of ONNX's format; before, every initializer is an input
    berth_import_overridables *found = im->options ? im->options->overridables : NULL;
    if (!found) return BERTH_OK;
    *found = (berth_import_overridables){
        .names = berth_arena_new_array(im->arena, berth_str_id, graph->inputs.count + 1),
        .types = berth_arena_new_array(im->arena, berth_type_id, graph->inputs.count + 1)};
    if (im->model.ir_version < first_version) return BERTH_OK;
    for (uint32_t i = 0; i < graph->inputs.count; ++i) {
        const onnx_value *value = &graph->inputs.data[i];
        berth_str_id name = berth_module_intern(im->module, value->name);
        if (onnx_scope_find_here(im->scope, name) == BERTH_NONE &&
            !onnx_is_replaced(im, value->name))
            continue;
        BERTH_TRY(onnx_value_type(im, value, "input", &found->types[found->count]));
        found->names[found->count++] = name;
    }
    return BERTH_OK;
}
