// Models of the virtual machine whose segments are compiled as they come (<berth/compile.h>).
#include <berth/inspect.h>
#include <string.h>

#include "api/compile/compiler.h"
#include "api/run/dynamic.h"
#include "base/str.h"
#include "compiler/vm/families.h"
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

static void watch(void *state, berth_vm_watch watch) {
    const compiled_model *model = state;
    berth_vm_session_watch(model->session, watch);
}

static berth_vm_runner *runner(void *state) {
    const compiled_model *model = state;
    return berth_vm_session_runner(model->session);
}

static berth_pool *pool(void *state) {
    const compiled_model *model = state;
    return berth_vm_session_pool(model->session);
}

static const berth_api__dynamic_ops ops = {run, cancel, destroy, runner, watch, pool};

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
    compile->progress = NULL;
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
    options.general_program = BERTH_GENERAL_MADE;
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
        berth_vm_session_follow(model->session, (berth_log){.write = NULL},
                                (berth_interrupt){.pending = NULL});
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

// ---- what is behind it --------------------------------------------------------------------------

static berth_status compiled(const berth_dynamic *dynamic, const compiled_model **out_model) {
    *out_model = dynamic->state;
    if (dynamic->ops == &ops) return BERTH_OK;
    return berth_status_make(BERTH_INVALID_ARGUMENT,
                             "the model was loaded without a compiler: "
                             "berth_compiler_load_dynamic_file loads programs, too");
}

berth_status berth_dynamic_follow(berth_dynamic *dynamic, berth_compiler *compiler) {
    const compiled_model *model = NULL;
    berth_log log = {.write = NULL};
    berth_interrupt interrupt = {.pending = NULL};
    BERTH_TRY(compiled(dynamic, &model));
    if (compiler) berth_api__compiler_listeners(compiler, &log, &interrupt);
    berth_vm_session_follow(model->session, log, interrupt);
    return BERTH_OK;
}

berth_status berth_dynamic_check_devices(const berth_dynamic *dynamic, const char *devices) {
    const compiled_model *model = NULL;
    BERTH_TRY(compiled(dynamic, &model));
    return berth_vm_session_require(model->session, devices);
}

berth_status berth_dynamic_get_report(const berth_dynamic *dynamic,
                                      berth_dynamic_report *out_report, size_t size_bytes) {
    const compiled_model *model = NULL;
    berth_vm_report report;
    BERTH_TRY(compiled(dynamic, &model));
    berth_vm_session_get_report(model->session, &report);
    const berth_dynamic_report facts = {.model = dynamic->code->name,
                                        .instructions = report.instructions,
                                        .segment_runs = report.segment_runs,
                                        .host_operations = report.host_operations,
                                        .host_data_operations = report.host_data_operations,
                                        .compiled_count = report.compiled_count,
                                        .kernel_count = report.kernel_count,
                                        .compile_ns = report.compile_ns,
                                        .exact_count = report.kernels.exact_count,
                                        .generic_count = report.kernels.generic_count,
                                        .reused_count = report.kernels.reused_count,
                                        .general_shape_count = report.general.shape_count,
                                        .general_run_count = report.general.run_count,
                                        .general_refusal = report.general.refusal};
    if (size_bytes < sizeof(facts.model) || size_bytes > sizeof(facts))
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "a report has %zu bytes in this version, not %zu", sizeof(facts),
                                 size_bytes);
    memcpy(out_report, &facts, size_bytes);
    return BERTH_OK;
}

berth_status berth_dynamic_get_input(const berth_dynamic *dynamic, uint32_t index,
                                     berth_dynamic_port *out_port, size_t size_bytes) {
    if (index >= dynamic->code->input_count)
        return berth_status_make(BERTH_OUT_OF_RANGE, "input %u of %u", index,
                                 dynamic->code->input_count);
    const berth_vm_port *port = &dynamic->code->inputs[index];
    berth_dynamic_port facts = {.name = port->name,
                                .type = port->type,
                                .is_tensor = port->is_tensor,
                                .dtype = port->dtype,
                                .rank = port->rank};
    memcpy(facts.dims, port->dims, sizeof(facts.dims));
    memcpy(facts.least, port->least, sizeof(facts.least));
    memcpy(facts.most, port->most, sizeof(facts.most));
    if (size_bytes < sizeof(facts.name) || size_bytes > sizeof(facts))
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "an input has %zu bytes in this version, not %zu", sizeof(facts),
                                 size_bytes);
    memcpy(out_port, &facts, size_bytes);
    return BERTH_OK;
}

typedef struct print_job {
    berth_arena *arena;
    const berth_vm_program *code;
    const berth_vm_body *body;  // NULL = nothing is compiled yet
    const char *text;
} print_job;

static berth_status print(void *user) {
    print_job *job = user;
    berth_strbuf text = berth_strbuf_make(job->arena);
    berth_vm_print(job->code, &text);
    for (uint32_t i = 0; job->body && i < job->body->family_count; ++i) {
        berth_strbuf_addf(&text, "numbers of variant %u\n", job->body->families[i].variant);
        berth_vm_family_print(&job->body->families[i], true, &text);
    }
    job->text = berth_strbuf_text(&text);
    return BERTH_OK;
}

berth_status berth_dynamic_code(const berth_dynamic *dynamic, const char **out_text) {
    const compiled_model *model = NULL;
    *out_text = NULL;
    BERTH_TRY(compiled(dynamic, &model));
    print_job job = {.arena = model->arena,
                     .code = dynamic->code,
                     .body = berth_vm_session_body(model->session)};
    BERTH_TRY(berth_arena_try(model->arena, print, &job));
    *out_text = job.text;
    return BERTH_OK;
}
