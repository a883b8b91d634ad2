// Models of the virtual machine whose segments are compiled as they come (<berth/compile.h>).
#include "api/run/dynamic.h"
#include "api/compile/compiler.h"
#include "toolkit/vm_session.h"

typedef struct compiled_model {
    berth_arena *arena;  // of the copies of options
    berth_vm_session *session;
} compiled_model;

static berth_status run(void *state, berth_vm_value *const *inputs, berth_vm_value **outputs) {
    const compiled_model *model = state;
    return berth_vm_session_run(model->session, inputs, outputs);
}

static void cancel(void *state) {
    const compiled_model *model = state;
    berth_vm_session_cancel(model->session);
}

static void destroy(void *state) {
    compiled_model *model = state;
    berth_vm_session_close(model->session);
    berth_arena_destroy(model->arena);
    berth_free(berth_allocator_system(), model, sizeof(*model));
}

// ---- loading ------------------------------------------------------------------------------------

typedef struct load_job {
    berth_arena *arena;
    berth_model_options *options;
    const void *data;
    size_t size_bytes;
} load_job;

static const char *copy_text(const load_job *job, const char *text) {
    return text ? berth_arena_strdup(job->arena, text) : NULL;
}

// The session compiles later, when the compiler may be gone or have other options.
static berth_status copy_options(void *user) {
    load_job *job = user;
    berth_compile_options *compile = &job->options->compile;
    job->options->costs = copy_text(job, job->options->costs);
    job->options->tuned = copy_text(job, job->options->tuned);
    compile->strategy = copy_text(job, compile->strategy);
    compile->objective = copy_text(job, compile->objective);
    compile->patches = copy_text(job, compile->patches);
    compile->parallel = copy_text(job, compile->parallel);
    compile->cache_folder = copy_text(job, compile->cache_folder);
    compile->c_compiler = copy_text(job, compile->c_compiler);
    compile->search_path = copy_text(job, compile->search_path);
    compile->temporary_folder = copy_text(job, compile->temporary_folder);
    compile->log = (berth_log){.write = NULL};
    compile->progress = NULL;
    compile->interrupt = (berth_interrupt){.pending = NULL};
    if (!job->data) return BERTH_OK;
    job->data = berth_arena_copy(job->arena, job->data, job->size_bytes);
    return BERTH_OK;
}

static berth_status load(berth_compiler *compiler, const char *path, const void *data,
                         size_t size_bytes, const char *folder, uint32_t thread_count,
                         berth_dynamic **out_dynamic) {
    berth_model_options options;
    *out_dynamic = NULL;
    BERTH_TRY(berth_api__compiler_options(compiler, &options));
    static const berth_api__dynamic_ops ops = {run, cancel, destroy};
    compiled_model *model = berth_calloc(berth_allocator_system(), 1, sizeof(*model));
    if (!model) return berth_status_oom();
    berth_status status = berth_arena_create(berth_allocator_system(), &model->arena);
    load_job job = {
        .arena = model->arena, .options = &options, .data = data, .size_bytes = size_bytes};
    if (!status) status = berth_arena_try(model->arena, copy_options, &job);
    if (!status && data)
        status = berth_vm_session_open_memory(job.data, size_bytes, folder, &options, thread_count,
                                              &model->session);
    else if (!status)
        status = berth_vm_session_open(path, &options, thread_count, &model->session);
    if (!status)
        return berth_api__dynamic_make(&ops, model, berth_vm_session_program(model->session),
                                       out_dynamic);
    destroy(model);
    return status;
}

berth_status berth_compiler_load_dynamic_file(berth_compiler *compiler, const char *path,
                                              uint32_t thread_count, berth_dynamic **out_dynamic) {
    return load(compiler, path, NULL, 0, NULL, thread_count, out_dynamic);
}

berth_status berth_compiler_load_dynamic_memory(berth_compiler *compiler, const void *data,
                                                size_t size_bytes, const char *folder,
                                                uint32_t thread_count,
                                                berth_dynamic **out_dynamic) {
    static const char empty[1] = "";
    return load(compiler, NULL, data ? data : empty, size_bytes, folder, thread_count, out_dynamic);
}
