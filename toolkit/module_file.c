#include "toolkit/module_file.h"

#include <string.h>

#include "artifact/file.h"
#include "base/file.h"
#include "compiler/package/kept_program.h"
#include "ir/json.h"
#include "ir/pass.h"
#include "ir/text.h"
#include "toolkit/external_files.h"
#include "toolkit/module_dims.h"

static berth_module_form form_of(const berth_mapping *file) {
    const char *text = (const char *)file->data;
    static const char *const starts[] = {"module", "graph", "tensor", "external", "//"};
    if (file->size_bytes > 0 && text[0] == '{') return BERTH_MODULE_JSON;
    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); ++i) {
        size_t wanted = strlen(starts[i]);
        if (file->size_bytes >= wanted && memcmp(text, starts[i], wanted) == 0)
            return BERTH_MODULE_TEXT;
    }
    return BERTH_MODULE_ONNX;
}

berth_status berth_module_form_of(const char *path, berth_module_form *out_form) {
    berth_mapping mapping;
    BERTH_TRY(berth_file_map(path, &mapping));
    *out_form = form_of(&mapping);
    berth_file_unmap(mapping);
    return BERTH_OK;
}

typedef struct finish_job {
    berth_module *module;
    const char *path;
    const berth_import_options *options;  // or NULL
} finish_job;

static berth_status finish(void *user) {
    const finish_job *job = user;
    BERTH_TRY(berth_external_files_read(job->module, job->path));
    return job->options ? berth_module_fix_dims(job->module, job->path, job->options) : BERTH_OK;
}

static berth_status read_mapped(berth_arena *arena, const char *path, const berth_mapping *mapping,
                                berth_module_form form, const berth_multi_target *target,
                                const berth_import_options *options, berth_module **out_module) {
    const berth_limits *limits = options ? options->limits : NULL;
    const char *text = (const char *)mapping->data;
    static const berth_opaque_ops *const opaque[] = {&berth_kept_program_ops, NULL};
    berth_dialect_registry registry = {.target = target, .opaque_ops = opaque, .limits = limits};
    if (form == BERTH_MODULE_JSON)
        BERTH_TRY(berth_module_from_json_text(arena, text, mapping->size_bytes, path, &registry,
                                              out_module));
    else
        BERTH_TRY(
            berth_module_parse_with(arena, text, mapping->size_bytes, path, &registry, out_module));
    finish_job job = {*out_module, path, options};
    BERTH_TRY(berth_arena_try(arena, finish, &job));
    return berth_module_verify(*out_module);
}

berth_status berth_module_load(berth_arena *arena, const char *path,
                               const berth_import_options *options,
                               const berth_multi_target *target, berth_module **out_module) {
    *out_module = NULL;
    if (berth_program_is_file(path))
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "\"%s\" is a built program, which holds no module: give the model",
                                 path);
    berth_mapping mapping;
    BERTH_TRY(berth_file_map(path, &mapping));
    berth_module_form form = form_of(&mapping);
    berth_status status = BERTH_OK;
    if (form != BERTH_MODULE_ONNX)
        status = read_mapped(arena, path, &mapping, form, target, options, out_module);
    berth_file_unmap(mapping);
    return form == BERTH_MODULE_ONNX ? berth_onnx_import(arena, path, options, out_module) : status;
}

const char *berth_module_target(const berth_module *module) {
    return berth_attrs_string(module, &module->attrs, "target", NULL);
}
