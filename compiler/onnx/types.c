// Types of graph inputs and outputs: symbols, and what the caller fixed (dimensions, bound inputs).
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "compiler/onnx/importer.h"
#include "compiler/passes/check.h"
#include "ir/dim.h"

const berth_input_binding *onnx_binding_of(const onnx_importer *im, const char *name) {
    for (uint32_t i = 0; im->options && i < im->options->input_count; ++i)
        if (strcmp(im->options->inputs[i].name, name) == 0) return &im->options->inputs[i];
    return NULL;
}

// Whether the value, or its shape, is looked at.
static bool uses_binding(const onnx_importer *im, const berth_input_binding *binding) {
    return !im->options->inputs_stay_open || binding->as_constant;
}

static const berth_dim_binding *dim_of(const onnx_importer *im, const char *name) {
    for (uint32_t i = 0; i < im->dims.count; ++i)
        if (strcmp(im->dims.data[i].name, name) == 0) return &im->dims.data[i];
    return NULL;
}

// Whether `node` asks operand `index` for its element type and nothing else.
static bool asks_type_alone(const onnx_node *node, uint32_t index) {
    return index == 1 && !*node->domain && strcmp(node->op_type, "CastLike") == 0;
}

// Whether an operation, or a result, has the values or the shape of the value of this name. Subgraphs
// that hide it behind a name of their own count as well; depth is bounded by the parser.
static bool reads_more_than_type(const onnx_graph *graph, const char *name) {
    for (uint32_t i = 0; i < graph->nodes.count; ++i) {
        const onnx_node *node = &graph->nodes.data[i];
        for (uint32_t k = 0; k < node->inputs.count; ++k)
            if (strcmp(node->inputs.data[k], name) == 0 && !asks_type_alone(node, k)) return true;
        for (uint32_t k = 0; k < node->attrs.count; ++k)
            if (node->attrs.data[k].graph && reads_more_than_type(node->attrs.data[k].graph, name))
                return true;
    }
    for (uint32_t i = 0; i < graph->outputs.count; ++i)
        if (strcmp(graph->outputs.data[i].name, name) == 0) return true;
    return false;
}

static berth_status bind_dim(onnx_importer *im, const char *input, const char *name,
                             int64_t extent) {
    const berth_dim_binding *bound = dim_of(im, name);
    if (!bound) {
        berth_vec_push(im->scratch, &im->dims, (berth_dim_binding){name, extent});
        if (input) berth_vec_push(im->scratch, &im->dim_inputs, input);
        return BERTH_OK;
    }
    if (bound->extent == extent) return BERTH_OK;
    if (!input)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "dimension %s is given twice, as %lld and as %lld", name,
                                 (long long)bound->extent, (long long)extent);
    if (bound < im->dims.data + im->given_dims)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "input \"%s\": dimension %s is %lld here, but is given as %lld",
                                 input, name, (long long)extent, (long long)bound->extent);
    const char *other = im->dim_inputs.data[bound - im->dims.data - im->given_dims];
    berth_log_message(im->options->log, BERTH_LOG_WARNING,
                      "%s: dimension %s is %lld in input \"%s\" and %lld in \"%s\"; every input "
                      "keeps its own",
                      im->file, name, (long long)extent, input, (long long)bound->extent, other);
    return BERTH_OK;
}

static bool fits_declared(const onnx_value *value, const berth_tensor *tensor) {
    if (value->dims.count != (uint32_t)tensor->rank) return false;
    for (int i = 0; i < tensor->rank; ++i)
        if (value->dims.data[i].known && value->dims.data[i].extent != tensor->dims[i])
            return false;
    return true;
}

// A bound tensor fits the declared type; its extents fix the symbols. The shape of an input that nothing
// reads is of no account: a model that declares a wrong one computes what it says all the same.
static berth_status bind_input(onnx_importer *im, const onnx_value *value,
                               const berth_tensor *tensor) {
    BERTH_TRY(berth_status_prefix(
        berth_shape_size_bytes(tensor->dtype, tensor->rank, tensor->dims, NULL, NULL),
        "input \"%s\"", value->name));
    berth_dtype declared = berth_storage_from_onnx(value->element);
    if (declared != tensor->dtype)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "input \"%s\" is %s, the tensor given is %s", value->name,
                                 berth_dtype_name(declared), berth_dtype_name(tensor->dtype));
    if (!value->has_shape) return BERTH_OK;
    if (!fits_declared(value, tensor) && !reads_more_than_type(&im->model.graph, value->name)) {
        berth_log_message(im->options->log, BERTH_LOG_WARNING,
                          "%s: input \"%s\": the tensor given has another shape than the model "
                          "declares; nothing reads its elements or its shape",
                          im->file, value->name);
        return BERTH_OK;
    }
    if (value->dims.count != (uint32_t)tensor->rank)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "input \"%s\" has %u dimensions, the tensor given %d", value->name,
                                 value->dims.count, tensor->rank);
    for (int i = 0; i < tensor->rank; ++i) {
        const onnx_dim *dim = &value->dims.data[i];
        if (dim->known && dim->extent != tensor->dims[i])
            return berth_status_make(
                BERTH_INVALID_ARGUMENT,
                "input \"%s\": dimension %d is %lld, the tensor given has %lld", value->name, i,
                (long long)dim->extent, (long long)tensor->dims[i]);
        if (!dim->known && *dim->param)
            BERTH_TRY(bind_dim(im, value->name, dim->param, tensor->dims[i]));
    }
    return BERTH_OK;
}

// "batch, width", or "none".
static const char *list_symbols(onnx_importer *im, const onnx_graph *graph) {
    berth_strbuf names = berth_strbuf_make(im->scratch);
    onnx_scope seen = {0};
    for (uint32_t i = 0; i < graph->inputs.count; ++i) {
        for (uint32_t d = 0; d < graph->inputs.data[i].dims.count; ++d) {
            const onnx_dim *dim = &graph->inputs.data[i].dims.data[d];
            berth_str_id name = berth_module_intern(im->module, dim->param);
            if (dim->known || !*dim->param || onnx_scope_find_here(&seen, name) != BERTH_NONE)
                continue;
            onnx_scope_add(im->scratch, &seen, name, 0);
            berth_strbuf_addf(&names, "%s%s", names.length ? ", " : "", dim->param);
        }
    }
    return names.length ? berth_strbuf_text(&names) : "none";
}

static bool has_symbol(const onnx_graph *graph, const char *name) {
    for (uint32_t i = 0; i < graph->inputs.count; ++i)
        for (uint32_t d = 0; d < graph->inputs.data[i].dims.count; ++d)
            if (!graph->inputs.data[i].dims.data[d].known &&
                strcmp(graph->inputs.data[i].dims.data[d].param, name) == 0)
                return true;
    return false;
}

// "INPUT.AXIS" (from 0), in the model's own words: what `--dim` may also say of a dimension that has
// a name. A name that is taken already stays the other dimension's.
void onnx_name_dims(onnx_importer *im, onnx_graph *graph) {
    for (uint32_t i = 0; i < graph->inputs.count; ++i) {
        onnx_value *value = &graph->inputs.data[i];
        for (uint32_t d = 0; d < value->dims.count; ++d) {
            if (value->dims.data[d].known || *value->dims.data[d].param) continue;
            const char *name = berth_arena_printf(im->arena, "%s.%u", value->name, d);
            if (!has_symbol(graph, name)) value->dims.data[d].param = name;
        }
    }
}

// The name of the dimension that "INPUT.AXIS" means; NULL when it means none.
static const char *name_of_axis(const onnx_graph *graph, const char *text) {
    const char *dot = strrchr(text, '.');
    char *end = NULL;
    unsigned long axis = dot ? strtoul(dot + 1, &end, 10) : 0;
    if (!dot || dot[1] < '0' || dot[1] > '9' || *end) return NULL;
    for (uint32_t i = 0; i < graph->inputs.count; ++i) {
        const onnx_value *value = &graph->inputs.data[i];
        bool named = strlen(value->name) == (size_t)(dot - text) &&
                     memcmp(value->name, text, (size_t)(dot - text)) == 0;
        if (named && axis < value->dims.count && !value->dims.data[axis].known)
            return value->dims.data[axis].param;
    }
    return NULL;
}

static const onnx_value *find_input(const onnx_graph *graph, const char *name) {
    for (uint32_t i = 0; i < graph->inputs.count; ++i)
        if (strcmp(graph->inputs.data[i].name, name) == 0) return &graph->inputs.data[i];
    return NULL;
}

static berth_status no_such_input(onnx_importer *im, const onnx_graph *graph, const char *name) {
    berth_strbuf names = berth_strbuf_make(im->scratch);
    for (uint32_t i = 0; i < graph->inputs.count && i < 20; ++i)
        if (onnx_scope_find_here(im->scope,
                                 berth_module_intern(im->module, graph->inputs.data[i].name)) ==
            BERTH_NONE)
            berth_strbuf_addf(&names, "%s\"%s\"", names.length ? ", " : "",
                              graph->inputs.data[i].name);
    return berth_status_make(BERTH_INVALID_ARGUMENT, "%s has no input \"%s\"; its inputs are: %s",
                             im->file, name, berth_strbuf_text(&names));
}

// Whether a dimension is the first one wherever inputs have it, and somewhere not the only one.
static bool is_batch_like(const onnx_graph *graph, const char *name) {
    bool among_others = false;
    for (uint32_t i = 0; i < graph->inputs.count; ++i) {
        const onnx_value *value = &graph->inputs.data[i];
        for (uint32_t d = 0; d < value->dims.count; ++d) {
            if (value->dims.data[d].known || strcmp(value->dims.data[d].param, name) != 0) continue;
            if (d > 0) return false;
            among_others |= value->dims.count > 1;
        }
    }
    return among_others;
}

// The name in the model of what `--dim` says; NULL: there is no such dimension.
static const char *symbol_of(const onnx_graph *graph, const char *text) {
    return has_symbol(graph, text) ? text : name_of_axis(graph, text);
}

static berth_status no_such_dim(onnx_importer *im, const onnx_graph *graph, const char *name) {
    return berth_status_make(BERTH_INVALID_ARGUMENT,
                             "%s has no symbolic dimension \"%s\"; its symbols are: %s", im->file,
                             name, list_symbols(im, graph));
}

typedef struct naming_job {
    const char *name;
    bool found;
} naming_job;

static int64_t find_name(void *user, const char *symbol) {
    naming_job *job = user;
    job->found |= strcmp(symbol, job->name) == 0;
    return BERTH_DIM_UNKNOWN;
}

// Whether it is no dimension of the model, but a symbol that some follow from ("a" where one is "32*a").
static bool is_free_symbol(const onnx_importer *im, const char *name) {
    naming_job job = {.name = name};
    if (symbol_of(&im->model.graph, name)) return false;
    for (uint32_t i = 0; i < im->options->relation_count && !job.found; ++i) {
        const char *text = im->options->relations[i].expression;
        int64_t dim = 0;
        berth_status status = berth_dim_parse(im->module, text, strlen(text), &dim);
        if (!status) (void)berth_dim_substitute(im->module, dim, find_name, &job);
        berth_status_ignore(status);  // check_relations says what is wrong
    }
    return job.found;
}

// As symbol_of, or what is_free_symbol says.
static const char *given_symbol(const onnx_importer *im, const char *text) {
    const char *held = symbol_of(&im->model.graph, text);
    return held || !is_free_symbol(im, text) ? held : text;
}

// What the dimension of this name follows from; NULL: nothing.
static const berth_dim_relation *relation_of(const onnx_importer *im, const char *name) {
    const onnx_graph *graph = &im->model.graph;
    for (uint32_t i = 0; im->options && i < im->options->relation_count; ++i) {
        const char *held = symbol_of(graph, im->options->relations[i].name);
        if (held && strcmp(held, name) == 0) return &im->options->relations[i];
    }
    return NULL;
}

// Extents that are fixed lie within the bounds; dimensions that are not stay open.
static berth_status check_bounds(onnx_importer *im, const onnx_graph *graph) {
    berth_strbuf text = berth_strbuf_make(im->scratch);
    for (uint32_t i = 0; i < im->options->bounds_count; ++i) {
        const berth_dim_bounds *bounds = &im->options->bounds[i];
        const char *name = given_symbol(im, bounds->name);
        const berth_dim_binding *fixed = name ? dim_of(im, name) : NULL;
        if (!name) return no_such_dim(im, graph, bounds->name);
        if (relation_of(im, name))
            return berth_status_make(
                BERTH_INVALID_ARGUMENT,
                "dimension %s follows from others: it has no bounds of its own", bounds->name);
        if (bounds->least < 0 || bounds->least > bounds->most)
            return berth_status_make(
                BERTH_INVALID_ARGUMENT, "dimension %s: the bounds %lld..%lld hold no extent",
                bounds->name, (long long)bounds->least, (long long)bounds->most);
        if (fixed && (fixed->extent < bounds->least || fixed->extent > bounds->most))
            return berth_status_make(BERTH_INVALID_ARGUMENT,
                                     "dimension %s is %lld, outside its bounds %lld..%lld",
                                     bounds->name, (long long)fixed->extent,
                                     (long long)bounds->least, (long long)bounds->most);
        if (!fixed && im->options->bounds_at_most)
            berth_vec_push(im->scratch, &im->dims, (berth_dim_binding){name, bounds->most});
        berth_strbuf_addf(&text, "%s%s=%lld..%lld", i ? "," : "", name, (long long)bounds->least,
                          (long long)bounds->most);
    }
    if (text.length)
        berth_attrs_set_string(im->module, &berth_module_function(im->module, im->function)->attrs,
                               "bounds", berth_strbuf_text(&text));
    return BERTH_OK;
}

typedef struct relation_job {
    onnx_importer *im;
    const char *missing;  // a symbol that is none of the model's, or follows from others itself
    bool is_free;         // some symbol is no dimension, and has no extent yet
} relation_job;

static bool has_bounds(const onnx_importer *im, const onnx_graph *graph, const char *name);

static int64_t find_extent(void *user, const char *symbol) {
    relation_job *job = user;
    const berth_dim_binding *bound = dim_of(job->im, symbol);
    const bool is_dimension = has_symbol(&job->im->model.graph, symbol);
    if (relation_of(job->im, symbol) ||
        (!is_dimension && !bound && !has_bounds(job->im, &job->im->model.graph, symbol)))
        job->missing = symbol;
    job->is_free |= !is_dimension && !bound;
    return bound ? bound->extent : BERTH_DIM_UNKNOWN;
}

// With the extents that are fixed by now.
static berth_status dim_of_relation(onnx_importer *im, const berth_dim_relation *relation,
                                    int64_t *out_dim) {
    relation_job job = {.im = im};
    const char *text = relation->expression;
    BERTH_TRY(berth_status_prefix(berth_dim_parse(im->module, text, strlen(text), out_dim),
                                  "dimension %s=%s", relation->name, text));
    *out_dim = berth_dim_substitute(im->module, *out_dim, find_extent, &job);
    if (job.missing)
        return berth_status_make(
            BERTH_INVALID_ARGUMENT,
            "dimension %s=%s: \"%s\" is no symbol of %s that can be given, and has no bounds of "
            "its own; these are: %s",
            relation->name, text, job.missing, im->file, list_symbols(im, &im->model.graph));
    berth_dim_linear linear;
    if (job.is_free && !berth_dim_read_linear(im->module, *out_dim, im->arena, &linear))
        return berth_status_make(
            BERTH_INVALID_ARGUMENT,
            "dimension %s=%s: what follows from a symbol that is no dimension of %s is a number "
            "times that symbol, and perhaps a number: 32*a, 2*a+1",
            relation->name, text, im->file);
    if (*out_dim != BERTH_DIM_UNKNOWN) return BERTH_OK;
    return berth_status_make(BERTH_INVALID_ARGUMENT, "dimension %s=%s is no extent", relation->name,
                             text);
}

// Dimensions that follow from others, and are fixed all the same, have the extent that follows.
static berth_status check_relations(onnx_importer *im, const onnx_graph *graph) {
    for (uint32_t i = 0; i < im->options->relation_count; ++i) {
        const berth_dim_relation *relation = &im->options->relations[i];
        const char *name = symbol_of(graph, relation->name);
        const berth_dim_binding *fixed = name ? dim_of(im, name) : NULL;
        int64_t dim = 0;
        if (!name) return no_such_dim(im, graph, relation->name);
        BERTH_TRY(dim_of_relation(im, relation, &dim));
        if (fixed && dim >= 0 && fixed->extent != dim)
            return berth_status_make(
                BERTH_INVALID_ARGUMENT, "dimension %s is %lld, but %s=%s makes it %lld", name,
                (long long)fixed->extent, relation->name, relation->expression, (long long)dim);
    }
    return BERTH_OK;
}

static bool has_bounds(const onnx_importer *im, const onnx_graph *graph, const char *name) {
    for (uint32_t i = 0; i < im->options->bounds_count; ++i) {
        const char *text = im->options->bounds[i].name, *held = symbol_of(graph, text);
        if (strcmp(held ? held : text, name) == 0) return true;
    }
    return false;
}

static bool is_left_open(const onnx_importer *im, const onnx_graph *graph, const char *name) {
    if (has_bounds(im, graph, name) || relation_of(im, name)) return true;
    for (uint32_t i = 0; i < im->options->open_dim_count; ++i) {
        const char *open = symbol_of(graph, im->options->open_dims[i]);
        if (open && strcmp(open, name) == 0) return true;
    }
    return false;
}

static void default_batches(onnx_importer *im, const onnx_graph *graph, const onnx_scope *fixed) {
    for (uint32_t i = 0; i < graph->inputs.count; ++i) {
        const onnx_value *value = &graph->inputs.data[i];
        const onnx_dim *dim = value->dims.count ? &value->dims.data[0] : NULL;
        if (!dim || dim->known || !*dim->param || dim_of(im, dim->param) ||
            onnx_binding_of(im, value->name) || !is_batch_like(graph, dim->param) ||
            is_left_open(im, graph, dim->param) ||
            onnx_scope_find_here(fixed, berth_module_intern(im->module, value->name)) != BERTH_NONE)
            continue;
        berth_vec_push(im->scratch, &im->dims,
                       (berth_dim_binding){dim->param, im->options->default_batch});
        berth_log_message(im->options->log, BERTH_LOG_INFO,
                          "dimension %s of the inputs is taken as %lld", dim->param,
                          (long long)im->options->default_batch);
    }
}

// Initializers must be in im->scope already: an input with an initializer is not an input.
berth_status onnx_collect_dims(onnx_importer *im, const onnx_graph *graph,
                               const onnx_scope *fixed) {
    if (!im->options) return BERTH_OK;
    for (uint32_t i = 0; i < im->options->dim_count; ++i) {
        const berth_dim_binding *dim = &im->options->dims[i];
        if (dim->extent < 0)
            return berth_status_make(BERTH_INVALID_ARGUMENT, "dimension %s cannot be %lld",
                                     dim->name, (long long)dim->extent);
        const char *name = given_symbol(im, dim->name);
        if (!name) return no_such_dim(im, graph, dim->name);
        BERTH_TRY(bind_dim(im, NULL, name, dim->extent));
    }
    im->given_dims = im->dims.count;
    for (uint32_t i = 0; i < im->options->input_count; ++i) {
        const berth_input_binding *input = &im->options->inputs[i];
        const onnx_value *value = find_input(graph, input->name);
        if (!uses_binding(im, input)) continue;
        bool is_constant =
            onnx_scope_find_here(fixed, berth_module_intern(im->module, input->name)) != BERTH_NONE;
        if (is_constant && input->as_constant && !value) continue;  // an initializer has its value
        if (!value || is_constant) return no_such_input(im, graph, input->name);
        BERTH_TRY(bind_input(im, value, &input->tensor));
    }
    if (im->options->default_batch > 0) default_batches(im, graph, fixed);
    BERTH_TRY(check_bounds(im, graph));
    return check_relations(im, graph);
}

const char *onnx_element_name(int64_t element) {
    static const char *const names[] = {
        "undefined",      "float",      "uint8",          "int8",       "uint16",    "int16",
        "int32",          "int64",      "string",         "bool",       "float16",   "double",
        "uint32",         "uint64",     "complex64",      "complex128", "bfloat16",  "float8e4m3fn",
        "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "uint4",      "int4",      "float4e2m1",
        "float8e8m0",     "uint2",      "int2",           "float6e2m3", "float6e3m2"};
    bool known = element >= 0 && element < (int64_t)(sizeof(names) / sizeof(names[0]));
    return known ? names[element] : "unknown";
}

berth_status onnx_value_type(onnx_importer *im, const onnx_value *value, const char *what,
                             berth_type_id *out_type) {
    int64_t dims[BERTH_MAX_RANK];
    *out_type = 0;
    if (!value->is_tensor && value->kind != ONNX_VALUE_TENSOR && value->kind != ONNX_VALUE_OTHER)
        return BERTH_OK;  // a sequence or an optional value: no type
    if (!value->is_tensor)
        return berth_status_make(
            BERTH_UNSUPPORTED,
            "%s: %s \"%s\" is neither a tensor nor a sequence of tensors: maps, sparse tensors "
            "and sequences of sequences are not supported",
            im->file, what, value->name);
    berth_dtype dtype = berth_storage_from_onnx(value->element);
    if (dtype == BERTH_DTYPE_NONE)
        return berth_status_make(
            BERTH_UNSUPPORTED, "%s: %s \"%s\" has element type %lld of ONNX (%s)", im->file, what,
            value->name, (long long)value->element, onnx_element_name(value->element));
    if (!value->has_shape) {
        *out_type = berth_type_tensor(im->module, dtype, -1, NULL);
        return BERTH_OK;
    }
    if (value->dims.count > BERTH_MAX_RANK)
        return berth_status_make(BERTH_UNSUPPORTED, "%s: %s \"%s\" has %u dimensions (at most %d)",
                                 im->file, what, value->name, value->dims.count, BERTH_MAX_RANK);
    for (uint32_t i = 0; i < value->dims.count; ++i) {
        const onnx_dim *dim = &value->dims.data[i];
        const berth_dim_binding *bound = dim->known ? NULL : dim_of(im, dim->param);
        if (dim->known)
            dims[i] = dim->extent;
        else if (bound)
            dims[i] = bound->extent;
        else if (relation_of(im, dim->param))
            BERTH_TRY(dim_of_relation(im, relation_of(im, dim->param), &dims[i]));
        else
            dims[i] = *dim->param ? berth_dim_symbol(berth_module_intern(im->module, dim->param))
                                  : BERTH_DIM_UNKNOWN;
    }
    *out_type = berth_type_tensor(im->module, dtype, (int)value->dims.count, dims);
    const berth_type *type = berth_type_get(im->module, *out_type);
    if (!berth_type_is_static(type)) return BERTH_OK;
    return berth_status_prefix(berth_shape_size_bytes(dtype, type->rank, type->dims, NULL, NULL),
                               "%s: %s \"%s\"", im->file, what, value->name);
}

berth_status onnx_build_inputs(onnx_importer *im, const onnx_graph *graph) {
    for (uint32_t i = 0; i < graph->inputs.count; ++i) {
        const onnx_value *value = &graph->inputs.data[i];
        berth_str_id name = berth_module_intern(im->module, value->name);
        const berth_input_binding *binding = onnx_binding_of(im, value->name);
        if (binding && !uses_binding(im, binding)) binding = NULL;
        berth_type_id type = 0;
        if (onnx_scope_find_here(im->scope, name) !=
            BERTH_NONE) {  // an initializer, or a second input of that name
            for (uint32_t k = 0; k < i; ++k)
                if (strcmp(graph->inputs.data[k].name, value->name) == 0)
                    return berth_status_make(BERTH_INVALID_ARGUMENT,
                                             "%s: input \"%s\" is declared twice", im->file,
                                             value->name);
            continue;
        }
        BERTH_TRY(onnx_value_type(im, value, "input", &type));
        if (binding && !binding->as_constant)
            type = berth_type_tensor(im->module, binding->tensor.dtype, binding->tensor.rank,
                                     binding->tensor.dims);
        berth_value_id id = 0;
        if (binding && binding->as_constant) {
            BERTH_TRY(berth_status_prefix(berth_tensor_check(&binding->tensor), "input \"%s\"",
                                          value->name));
            berth_tensor copy = berth_tensor_copy(im->arena, &binding->tensor);
            id = berth_graph_constant(im->module, im->function, 0, &copy, 0);
        } else {
            id = berth_graph_add_param(im->module, im->function, value->name, type);
        }
        berth_graph_get(im->module, im->function)->values.data[id].name = name;
        onnx_set_narrow(im, id, value->element);
        onnx_scope_add(im->scratch, im->scope, name, id);
    }
    return BERTH_OK;
}

// ---- what the model says of the shapes and types inside -----------------------------------------

static void add_declared(onnx_importer *im, onnx_scope *declared, const onnx_value *value) {
    if (!value->is_tensor) return;
    onnx_scope_add(im->scratch, declared, berth_module_intern(im->module, value->name),
                   im->declared_values.count);
    berth_vec_push(im->scratch, &im->declared_values, value);
}

void onnx_collect_declared(onnx_importer *im, const onnx_graph *graph, onnx_scope *declared) {
    for (uint32_t i = 0; i < graph->value_infos.count; ++i)
        add_declared(im, declared, &graph->value_infos.data[i]);
    for (uint32_t i = 0; i < graph->outputs.count; ++i)
        add_declared(im, declared, &graph->outputs.data[i]);
    im->declared = declared;
}

typedef BERTH_VEC(int64_t) onnx_declared;

// An extent of 0 is what some exporters write for "not known".
static void keep_one(onnx_importer *im, const onnx_value *said, uint32_t result,
                     onnx_declared *shapes, onnx_declared *types) {
    const berth_dtype dtype = berth_storage_from_onnx(said->element);
    if (dtype) {
        berth_vec_push(im->scratch, types, result);
        berth_vec_push(im->scratch, types, dtype);
    }
    if (!said->has_shape || said->dims.count > BERTH_MAX_RANK) return;
    berth_vec_push(im->scratch, shapes, result);
    berth_vec_push(im->scratch, shapes, said->dims.count);
    for (uint32_t d = 0; d < said->dims.count; ++d) {
        const onnx_dim *dim = &said->dims.data[d];
        berth_vec_push(im->scratch, shapes, dim->known && dim->extent > 0 ? dim->extent : -1);
    }
}

void onnx_keep_declared(onnx_importer *im, const berth_str_id *names, const berth_value_id *values,
                        uint32_t count) {
    berth_graph *graph = berth_graph_get(im->module, im->function);
    onnx_declared shapes = {0}, types = {0};
    for (uint32_t i = 0; im->declared && i < count; ++i) {
        if (values[i] == BERTH_NONE || graph->values.data[values[i]].op == BERTH_NONE) continue;
        const berth_value *value = &graph->values.data[values[i]];
        const uint32_t index = onnx_scope_find_here(im->declared, names[i]);
        if (index != BERTH_NONE)
            keep_one(im, im->declared_values.data[index], value->index, &shapes, &types);
        bool more = i + 1 < count && values[i + 1] != BERTH_NONE &&
                    graph->values.data[values[i + 1]].op == value->op;
        if (more) continue;
        berth_declare_shapes(im->module, &graph->ops.data[value->op], shapes.data, shapes.count);
        berth_declare_types(im->module, &graph->ops.data[value->op], types.data, types.count);
        shapes.count = types.count = 0;
    }
}
