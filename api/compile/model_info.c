// What a model takes and gives (<berth/model.h>).
#include <berth/model.h>
#include <string.h>

#include "api/compile/compiler.h"
#include "base/str.h"
#include "ir/dim.h"
#include "ir/external.h"
#include "ir/graph/graph.h"
#include "toolkit/module_file.h"

struct berth_model_info {
    berth_arena *arena;  // of this struct
    berth_value_info *inputs;
    uint32_t input_count;
    berth_value_info *outputs;
    uint32_t output_count;
    berth_value_info *overridables;
    uint32_t overridable_count;
    berth_model_facts facts;
    berth_node_info *nodes;
    uint32_t node_count;
    berth_external_info *externals;
    uint32_t external_count;
};

typedef struct info_job {
    berth_arena *arena;
    const berth_module *module;
    const berth_import_overridables *overridables;
    berth_model_info *info;
} info_job;

static berth_dim_info dim_info(const info_job *job, int64_t dim) {
    if (dim == BERTH_DIM_UNKNOWN) return (berth_dim_info){-1, NULL};
    if (!berth_dim_is_symbol(dim)) return (berth_dim_info){dim, NULL};
    berth_strbuf text = berth_strbuf_make(job->arena);
    berth_dim_print(job->module, dim, &text);
    return (berth_dim_info){-1, berth_strbuf_text(&text)};
}

static const char *type_text(const info_job *job, berth_type_id type) {
    berth_strbuf text = berth_strbuf_make(job->arena);
    berth_type_print(job->module, type, &text);
    return berth_strbuf_text(&text);
}

static berth_value_info value_info(const info_job *job, berth_str_id name, berth_type_id type_id) {
    const berth_type *type = berth_type_get(job->module, type_id);
    berth_value_info info = {
        .name = berth_arena_strdup(job->arena, berth_module_str(job->module, name)),
        .dtype = type->dtype,
        .rank = type->kind == BERTH_TYPE_TENSOR ? type->rank : -1,
        .type = type_text(job, type_id)};
    if (info.rank <= 0) return info;
    berth_dim_info *dims = berth_arena_new_array(job->arena, berth_dim_info, info.rank);
    for (int d = 0; d < info.rank; ++d) dims[d] = dim_info(job, type->dims[d]);
    info.dims = dims;
    return info;
}

static const char *kept(const info_job *job, berth_str_id text) {
    return berth_arena_strdup(job->arena, berth_module_str(job->module, text));
}

// Nodes are those of the model: one location per node, whatever the importer made of it.
static void make_nodes(const info_job *job) {
    const berth_module *module = job->module;
    berth_model_info *info = job->info;
    info->nodes = berth_arena_new_array(job->arena, berth_node_info, module->locs.count + 1);
    for (uint32_t i = 0; i < module->locs.count; ++i) {
        const berth_loc *loc = &module->locs.data[i];
        if (!loc->op_type || loc->part_count) continue;
        if (strcmp(berth_module_str(module, loc->op_type), "initializer") == 0) continue;
        info->nodes[info->node_count++] =
            (berth_node_info){kept(job, loc->node), kept(job, loc->op_type)};
    }
}

static void make_facts(const info_job *job, const berth_graph *graph) {
    const berth_module *module = job->module;
    berth_model_info *info = job->info;
    info->facts.name = kept(job, module->name);
    for (uint32_t i = 0; i < graph->values.count; ++i) {
        const berth_tensor *tensor = berth_graph_raw_constant_of(module, graph, i);
        if (!tensor) continue;
        info->facts.weight_count++;
        info->facts.weight_bytes += berth_tensor_size_bytes(tensor);
    }
    info->externals =
        berth_arena_new_array(job->arena, berth_external_info, module->functions.count + 1);
    for (berth_func_id i = 0; i < module->functions.count; ++i) {
        const berth_external *external = berth_external_get(module, i);
        if (!external) continue;
        info->externals[info->external_count++] = (berth_external_info){
            kept(job, module->functions.data[i].name), kept(job, external->language)};
    }
}

static berth_status make_info(void *user) {
    info_job *job = user;
    berth_func_id main = berth_module_find_function(job->module, "main");
    if (main == BERTH_NONE)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "the module has no function @main");
    const berth_graph *graph = berth_graph_get(job->module, main);
    const berth_region *root = &graph->regions.data[0];
    berth_model_info *info = job->info = berth_arena_new(job->arena, berth_model_info);
    info->arena = job->arena;
    info->inputs = berth_arena_new_array(job->arena, berth_value_info, root->params.count);
    info->outputs = berth_arena_new_array(job->arena, berth_value_info, root->results.count);
    for (; info->input_count < root->params.count; ++info->input_count) {
        const berth_value *value = &graph->values.data[root->params.data[info->input_count]];
        info->inputs[info->input_count] = value_info(job, value->name, value->type);
    }
    for (; info->output_count < root->results.count; ++info->output_count) {
        uint32_t i = info->output_count;
        info->outputs[i] = value_info(job, berth_graph_result_name(job->module, main, i),
                                      graph->values.data[root->results.data[i]].type);
    }
    const berth_import_overridables *overridables = job->overridables;
    info->overridables =
        berth_arena_new_array(job->arena, berth_value_info, overridables->count + 1);
    for (uint32_t i = 0; i < overridables->count; ++i)
        info->overridables[info->overridable_count++] =
            value_info(job, overridables->names[i], overridables->types[i]);
    make_nodes(job);
    make_facts(job, graph);
    return BERTH_OK;
}

// Takes over `status`, of reading the module into `scratch`, and `scratch`.
static berth_status info_of(berth_status status, berth_arena *scratch, const berth_module *module,
                            const berth_import_overridables *overridables,
                            berth_model_info **out_info) {
    info_job job = {.module = module, .overridables = overridables};
    if (!status) status = berth_arena_make(make_info, &job, &job.arena);
    if (!status) *out_info = job.info;
    berth_arena_destroy(scratch);
    return status;
}

static berth_status read_file(const char *path, berth_import_options options,
                              berth_model_info **out_info) {
    berth_arena *scratch = NULL;
    berth_module *module = NULL;
    berth_import_overridables overridables = {.count = 0};
    options.overridables = &overridables;
    BERTH_TRY(berth_arena_create(berth_allocator_system(), &scratch));
    berth_status status = berth_module_load(scratch, path, &options, NULL, &module);
    return info_of(status, scratch, module, &overridables, out_info);
}

berth_status berth_model_info_read(const char *path, berth_model_info **out_info) {
    *out_info = NULL;
    return read_file(path, (berth_import_options){.dims = NULL}, out_info);
}

static berth_status reading_options(berth_compiler *compiler, berth_model_options *options) {
    BERTH_TRY(berth_api__compiler_options(compiler, options));
    options->import.default_batch = 0;  // the model as it is
    return BERTH_OK;
}

berth_status berth_compiler_read_model(berth_compiler *compiler, const char *path,
                                       berth_model_info **out_info) {
    berth_model_options options;
    *out_info = NULL;
    BERTH_TRY(reading_options(compiler, &options));
    return read_file(path, options.import, out_info);
}

static berth_status read_memory(const void *data, size_t size_bytes, const char *folder,
                                berth_import_options options, berth_model_info **out_info) {
    berth_arena *scratch = NULL;
    berth_module *module = NULL;
    berth_import_overridables overridables = {.count = 0};
    options.overridables = &overridables;
    BERTH_TRY(berth_arena_create(berth_allocator_system(), &scratch));
    berth_status status = berth_onnx_import_memory(scratch, data, size_bytes, "the model in memory",
                                                   folder, &options, &module);
    return info_of(status, scratch, module, &overridables, out_info);
}

berth_status berth_model_info_parse(const void *data, size_t size_bytes, const char *folder,
                                    berth_model_info **out_info) {
    *out_info = NULL;
    return read_memory(data, size_bytes, folder, (berth_import_options){.dims = NULL}, out_info);
}

berth_status berth_compiler_parse_model(berth_compiler *compiler, const void *data,
                                        size_t size_bytes, const char *folder,
                                        berth_model_info **out_info) {
    berth_model_options options;
    *out_info = NULL;
    BERTH_TRY(reading_options(compiler, &options));
    return read_memory(data, size_bytes, folder, options.import, out_info);
}

void berth_model_info_free(berth_model_info *info) {
    if (info) berth_arena_destroy(info->arena);
}

uint32_t berth_model_info_input_count(const berth_model_info *info) {
    return info->input_count;
}

uint32_t berth_model_info_output_count(const berth_model_info *info) {
    return info->output_count;
}

const berth_value_info *berth_model_info_input(const berth_model_info *info, uint32_t index) {
    return index < info->input_count ? &info->inputs[index] : NULL;
}

const berth_value_info *berth_model_info_output(const berth_model_info *info, uint32_t index) {
    return index < info->output_count ? &info->outputs[index] : NULL;
}

uint32_t berth_model_info_overridable_count(const berth_model_info *info) {
    return info->overridable_count;
}

const berth_value_info *berth_model_info_overridable(const berth_model_info *info, uint32_t index) {
    return index < info->overridable_count ? &info->overridables[index] : NULL;
}

const berth_model_facts *berth_model_info_facts(const berth_model_info *info) {
    return &info->facts;
}

uint32_t berth_model_info_node_count(const berth_model_info *info) {
    return info->node_count;
}

uint32_t berth_model_info_external_count(const berth_model_info *info) {
    return info->external_count;
}

const berth_node_info *berth_model_info_node(const berth_model_info *info, uint32_t index) {
    return index < info->node_count ? &info->nodes[index] : NULL;
}

const berth_external_info *berth_model_info_external(const berth_model_info *info, uint32_t index) {
    return index < info->external_count ? &info->externals[index] : NULL;
}
