// Models of the virtual machine (<berth/dynamic.h>).
#include <berth/dynamic.h>

#include "api/compile/compiler.h"
#include "toolkit/vm_session.h"

struct berth_dynamic {
    berth_arena *arena;  // of the copies of options
    berth_vm_session *session;
};

struct berth_results {
    uint32_t count;
    berth_vm_value **values;
};

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
    berth_dynamic *dynamic = berth_calloc(berth_allocator_system(), 1, sizeof(*dynamic));
    if (!dynamic) return berth_status_oom();
    berth_status status = berth_arena_create(berth_allocator_system(), &dynamic->arena);
    load_job job = {
        .arena = dynamic->arena, .options = &options, .data = data, .size_bytes = size_bytes};
    if (!status) status = berth_arena_try(dynamic->arena, copy_options, &job);
    if (!status && data)
        status = berth_vm_session_open_memory(job.data, size_bytes, folder, &options, thread_count,
                                              &dynamic->session);
    else if (!status)
        status = berth_vm_session_open(path, &options, thread_count, &dynamic->session);
    if (status)
        berth_dynamic_destroy(dynamic);
    else
        *out_dynamic = dynamic;
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

void berth_dynamic_destroy(berth_dynamic *dynamic) {
    if (!dynamic) return;
    berth_vm_session_close(dynamic->session);
    berth_arena_destroy(dynamic->arena);
    berth_free(berth_allocator_system(), dynamic, sizeof(*dynamic));
}

// ---- names --------------------------------------------------------------------------------------

uint32_t berth_dynamic_input_count(const berth_dynamic *dynamic) {
    return berth_vm_session_program(dynamic->session)->input_count;
}

uint32_t berth_dynamic_output_count(const berth_dynamic *dynamic) {
    return berth_vm_session_program(dynamic->session)->output_count;
}

const char *berth_dynamic_input_name(const berth_dynamic *dynamic, uint32_t index) {
    const berth_vm_program *program = berth_vm_session_program(dynamic->session);
    return index < program->input_count ? program->inputs[index].name : NULL;
}

const char *berth_dynamic_output_name(const berth_dynamic *dynamic, uint32_t index) {
    const berth_vm_program *program = berth_vm_session_program(dynamic->session);
    return index < program->output_count ? program->outputs[index].name : NULL;
}

// ---- running ------------------------------------------------------------------------------------

static berth_status bind_inputs(const berth_dynamic *dynamic, const berth_tensor *inputs,
                                uint32_t count, berth_vm_value **values) {
    for (uint32_t i = 0; i < count; ++i) {
        BERTH_TRY(berth_status_prefix(berth_tensor_check(&inputs[i]), "input \"%s\"",
                                      berth_dynamic_input_name(dynamic, i)));
        BERTH_TRY(berth_vm_value_borrow(berth_allocator_system(), &inputs[i], &values[i]));
    }
    return BERTH_OK;
}

static berth_status make_results(uint32_t count, berth_results **out_results) {
    berth_results *results = berth_calloc(berth_allocator_system(), 1, sizeof(*results));
    *out_results = results;
    if (!results) return berth_status_oom();
    results->count = count;
    results->values =
        berth_calloc(berth_allocator_system(), (size_t)count + 1, sizeof(*results->values));
    return results->values ? BERTH_OK : berth_status_oom();
}

static berth_status run(berth_dynamic *dynamic, const berth_tensor *inputs, uint32_t count,
                        berth_results *results) {
    size_t size = ((size_t)count + 1) * sizeof(berth_vm_value *);
    berth_vm_value **values = berth_calloc(berth_allocator_system(), 1, size);
    if (!values) return berth_status_oom();
    berth_status status = bind_inputs(dynamic, inputs, count, values);
    if (!status) status = berth_vm_session_run(dynamic->session, values, results->values);
    for (uint32_t i = 0; i < count; ++i) berth_vm_value_release(values[i]);
    berth_free(berth_allocator_system(), values, size);
    return status;
}

// Results may be an input or a constant of the model, unchanged.
static berth_status own_values(berth_results *results) {
    for (uint32_t i = 0; i < results->count; ++i)
        BERTH_TRY(berth_vm_value_own(&results->values[i]));
    return BERTH_OK;
}

berth_status berth_dynamic_run(berth_dynamic *dynamic, const berth_tensor *inputs,
                               uint32_t input_count, berth_results **out_results) {
    *out_results = NULL;
    uint32_t wanted = berth_dynamic_input_count(dynamic);
    if (input_count != wanted)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "%u inputs were given, the model has %u",
                                 input_count, wanted);
    berth_results *results = NULL;
    berth_status status = make_results(berth_dynamic_output_count(dynamic), &results);
    if (!status) status = run(dynamic, inputs, input_count, results);
    if (!status) status = own_values(results);
    if (status)
        berth_results_free(results);
    else
        *out_results = results;
    return status;
}

void berth_dynamic_cancel(berth_dynamic *dynamic) {
    berth_vm_session_cancel(dynamic->session);
}

void berth_results_free(berth_results *results) {
    if (!results) return;
    for (uint32_t i = 0; results->values && i < results->count; ++i)
        berth_vm_value_release(results->values[i]);
    berth_free(berth_allocator_system(), results->values,
               ((size_t)results->count + 1) * sizeof(*results->values));
    berth_free(berth_allocator_system(), results, sizeof(*results));
}

static const berth_vm_value *value_at(const berth_results *results, uint32_t index) {
    return index < results->count ? results->values[index] : NULL;
}

int berth_results_is_sequence(const berth_results *results, uint32_t index) {
    const berth_vm_value *value = value_at(results, index);
    return value && value->kind == BERTH_VM_VALUE_SEQUENCE;
}

uint32_t berth_results_item_count(const berth_results *results, uint32_t index) {
    const berth_vm_value *value = value_at(results, index);
    if (!value) return 0;
    return value->kind == BERTH_VM_VALUE_SEQUENCE ? value->item_count
                                                  : value->kind != BERTH_VM_VALUE_NOTHING;
}

static const berth_vm_value *item_at(const berth_results *results, uint32_t index, uint32_t item) {
    const berth_vm_value *value = value_at(results, index);
    if (item >= berth_results_item_count(results, index)) return NULL;
    return value->kind == BERTH_VM_VALUE_SEQUENCE ? value->items[item] : value;
}

const berth_tensor *berth_results_item(const berth_results *results, uint32_t index,
                                       uint32_t item) {
    const berth_vm_value *value = item_at(results, index, item);
    if (!value) return NULL;
    return value->kind == BERTH_VM_VALUE_MAP ? &value->items[1]->tensor : &value->tensor;
}

const berth_tensor *berth_results_keys(const berth_results *results, uint32_t index,
                                       uint32_t item) {
    const berth_vm_value *value = item_at(results, index, item);
    return value && value->kind == BERTH_VM_VALUE_MAP ? &value->items[0]->tensor : NULL;
}
