#include "toolkit/module_dims.h"

#include <stdio.h>
#include <string.h>

#include "ir/dim.h"
#include "ir/graph/graph.h"

typedef struct fixer {
    berth_module *module;
    berth_graph *graph;  // of @main
    const char *path;
    const berth_import_options *options;
    BERTH_VEC(berth_dim_binding) fixed;
} fixer;

static const berth_type *param_type(const fixer *f, uint32_t index) {
    berth_value_id value = f->graph->regions.data[0].params.data[index];
    return berth_type_get(f->module, f->graph->values.data[value].type);
}

static const char *param_name(const fixer *f, uint32_t index) {
    berth_value_id value = f->graph->regions.data[0].params.data[index];
    return berth_module_str(f->module, f->graph->values.data[value].name);
}

static uint32_t param_count(const fixer *f) {
    return f->graph->regions.data[0].params.count;
}

// The symbol, or NULL where a dimension has an extent, no name, or is an expression.
static const char *symbol_at(const fixer *f, uint32_t param, int d) {
    int64_t dim = param_type(f, param)->dims[d];
    if (dim == BERTH_DIM_UNKNOWN || !berth_dim_is_symbol(dim) ||
        berth_dim_is_expression(f->module, dim))
        return NULL;
    return berth_module_str(f->module, berth_dim_symbol_name(dim));
}

static bool has_symbol(const fixer *f, const char *name) {
    for (uint32_t p = 0; p < param_count(f); ++p)
        for (int d = 0; d < param_type(f, p)->rank; ++d) {
            const char *symbol = symbol_at(f, p, d);
            if (symbol && strcmp(symbol, name) == 0) return true;
        }
    return false;
}

// The symbol that a name means: itself, or "x.0", dimension 0 of parameter x; NULL: none.
static const char *symbol_of(const fixer *f, const char *name) {
    const char *point = strrchr(name, '.');
    if (has_symbol(f, name) || !point) return has_symbol(f, name) ? name : NULL;
    for (uint32_t p = 0; p < param_count(f); ++p) {
        const char *held = param_name(f, p);
        size_t length = (size_t)(point - name);
        if (strlen(held) != length || strncmp(held, name, length) != 0) continue;
        for (int d = 0; d < param_type(f, p)->rank; ++d) {
            char number[16];
            snprintf(number, sizeof(number), "%d", d);
            if (strcmp(number, point + 1) == 0) return symbol_at(f, p, d);
        }
    }
    return NULL;
}

static int64_t extent_of(void *user, const char *symbol) {
    const fixer *f = user;
    for (uint32_t i = 0; i < f->fixed.count; ++i)
        if (strcmp(f->fixed.data[i].name, symbol) == 0) return f->fixed.data[i].extent;
    return BERTH_DIM_UNKNOWN;
}

static berth_status fix(fixer *f, const char *name, int64_t extent) {
    int64_t before = extent_of(f, name);
    if (before != BERTH_DIM_UNKNOWN && before != extent)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "dimension %s is %lld and %lld", name,
                                 (long long)before, (long long)extent);
    berth_vec_push(f->module->arena, &f->fixed, ((berth_dim_binding){name, extent}));
    return BERTH_OK;
}

// ---- what is given ------------------------------------------------------------------------------

static berth_status no_such_dim(const fixer *f, const char *name) {
    berth_strbuf names = berth_strbuf_make(f->module->arena);
    for (uint32_t p = 0; p < param_count(f); ++p)
        for (int d = 0; d < param_type(f, p)->rank; ++d) {
            const char *symbol = symbol_at(f, p, d);
            if (symbol && !strstr(berth_strbuf_text(&names), symbol))
                berth_strbuf_addf(&names, "%s%s", names.length ? ", " : "", symbol);
        }
    return berth_status_make(BERTH_INVALID_ARGUMENT,
                             "%s has no symbolic dimension \"%s\"; its symbols are: %s", f->path,
                             name, names.length ? berth_strbuf_text(&names) : "none");
}

static berth_status fix_given(fixer *f) {
    for (uint32_t i = 0; i < f->options->dim_count; ++i) {
        const berth_dim_binding *dim = &f->options->dims[i];
        if (dim->extent < 0)
            return berth_status_make(BERTH_INVALID_ARGUMENT, "dimension %s cannot be %lld",
                                     dim->name, (long long)dim->extent);
        const char *symbol = symbol_of(f, dim->name);
        if (!symbol) return no_such_dim(f, dim->name);
        BERTH_TRY(fix(f, symbol, dim->extent));
    }
    return BERTH_OK;
}

static const berth_input_binding *input_of(const fixer *f, uint32_t param) {
    for (uint32_t i = 0; i < f->options->input_count; ++i)
        if (strcmp(f->options->inputs[i].name, param_name(f, param)) == 0)
            return &f->options->inputs[i];
    return NULL;
}

// What does not fit the parameter otherwise is refused where the inputs are set.
static berth_status fix_by_inputs(fixer *f) {
    for (uint32_t p = 0; p < param_count(f) && !f->options->inputs_stay_open; ++p) {
        const berth_input_binding *input = input_of(f, p);
        int rank = param_type(f, p)->rank;
        if (!input || input->as_constant || input->tensor.rank != rank) continue;
        for (int d = 0; d < rank; ++d) {
            const char *symbol = symbol_at(f, p, d);
            if (symbol)
                BERTH_TRY(berth_status_prefix(fix(f, symbol, input->tensor.dims[d]), "input \"%s\"",
                                              input->name));
        }
    }
    return BERTH_OK;
}

// Bounds of dimensions that stay open are kept in attribute "bounds" of @main.
static berth_status keep_bounds(fixer *f, berth_attrs *attrs) {
    berth_strbuf text = berth_strbuf_make(f->module->arena);
    for (uint32_t i = 0; i < f->options->bounds_count; ++i) {
        const berth_dim_bounds *bounds = &f->options->bounds[i];
        const char *symbol = symbol_of(f, bounds->name);
        if (!symbol) return no_such_dim(f, bounds->name);
        int64_t extent = extent_of(f, symbol);
        if (bounds->least < 0 || bounds->most < bounds->least)
            return berth_status_make(
                BERTH_INVALID_ARGUMENT, "dimension %s: the bounds %lld..%lld hold no extent",
                bounds->name, (long long)bounds->least, (long long)bounds->most);
        if (extent != BERTH_DIM_UNKNOWN && (extent < bounds->least || extent > bounds->most))
            return berth_status_make(
                BERTH_INVALID_ARGUMENT, "dimension %s is %lld, outside its bounds %lld..%lld",
                bounds->name, (long long)extent, (long long)bounds->least, (long long)bounds->most);
        if (extent == BERTH_DIM_UNKNOWN && f->options->bounds_at_most)
            BERTH_TRY(fix(f, symbol, bounds->most));
        berth_strbuf_addf(&text, "%s%s=%lld..%lld", text.length ? "," : "", symbol,
                          (long long)bounds->least, (long long)bounds->most);
    }
    if (text.length) berth_attrs_set_string(f->module, attrs, "bounds", berth_strbuf_text(&text));
    return BERTH_OK;
}

// ---- the batch ----------------------------------------------------------------------------------

// As import.h says of ONNX models.
static bool is_batch_like(const fixer *f, const char *name) {
    bool among_others = false;
    for (uint32_t p = 0; p < param_count(f); ++p) {
        int rank = param_type(f, p)->rank;
        for (int d = 0; d < rank; ++d) {
            const char *symbol = symbol_at(f, p, d);
            if (!symbol || strcmp(symbol, name) != 0) continue;
            if (d > 0) return false;
            among_others |= rank > 1;
        }
    }
    return among_others;
}

static bool is_left_open(const fixer *f, const char *name) {
    for (uint32_t i = 0; i < f->options->open_dim_count; ++i) {
        const char *open = symbol_of(f, f->options->open_dims[i]);
        if (open && strcmp(open, name) == 0) return true;
    }
    return false;
}

static berth_status fix_batches(fixer *f, const berth_attrs *attrs) {
    if (f->options->default_batch <= 0 || berth_attrs_find(f->module, attrs, "bounds"))
        return BERTH_OK;
    for (uint32_t p = 0; p < param_count(f); ++p) {
        const char *symbol = param_type(f, p)->rank > 0 ? symbol_at(f, p, 0) : NULL;
        if (!symbol || extent_of(f, symbol) != BERTH_DIM_UNKNOWN || !is_batch_like(f, symbol) ||
            is_left_open(f, symbol))
            continue;
        BERTH_TRY(fix(f, symbol, f->options->default_batch));
        berth_log_message(f->options->log, BERTH_LOG_INFO,
                          "dimension %s of the inputs is taken as %lld", symbol,
                          (long long)f->options->default_batch);
    }
    return BERTH_OK;
}

// ---- types --------------------------------------------------------------------------------------

static void replace(fixer *f) {
    for (uint32_t v = 0; v < f->graph->values.count; ++v) {
        berth_value *value = &f->graph->values.data[v];
        const berth_type *held = berth_type_get(f->module, value->type);
        if (held->kind != BERTH_TYPE_TENSOR || berth_type_is_static(held)) continue;
        berth_type type = *held;
        for (int d = 0; d < type.rank; ++d)
            type.dims[d] = berth_dim_substitute(f->module, type.dims[d], extent_of, f);
        value->type =
            berth_type_tensor_layout(f->module, type.dtype, type.rank, type.dims, type.layout);
    }
}

berth_status berth_module_fix_dims(berth_module *module, const char *path,
                                   const berth_import_options *options) {
    if (options->relation_count)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "%s is a module: relations of dimensions are given when an ONNX "
                                 "model is imported",
                                 path);
    berth_func_id main = berth_module_find_function(module, "main");
    berth_graph *graph = main == BERTH_NONE ? NULL : berth_graph_get(module, main);
    if (!graph) return BERTH_OK;
    fixer f = {.module = module, .graph = graph, .path = path, .options = options};
    BERTH_TRY(fix_given(&f));
    BERTH_TRY(fix_by_inputs(&f));
    BERTH_TRY(keep_bounds(&f, &berth_module_function(module, main)->attrs));
    BERTH_TRY(fix_batches(&f, &berth_module_function(module, main)->attrs));
    if (!f.fixed.count) return BERTH_OK;
    replace(&f);
    return BERTH_OK;
}
