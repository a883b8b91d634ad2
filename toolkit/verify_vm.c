#include "toolkit/verify_vm.h"

#include <string.h>

#include "toolkit/vm_session.h"

static bool asks_for(const berth_verify_options *options, berth_executor_kind kind) {
    const char *executor = options->model.target_options.executor;
    return executor && strcmp(executor, berth_executor_kind_name(kind)) == 0;
}

bool berth_verify__wants_vm(const berth_verify_options *options) {
    bool kept = options->vm_session && *options->vm_session;
    return kept || asks_for(options, BERTH_EXECUTOR_VM);
}

bool berth_verify__may_use_vm(const berth_verify_options *options) {
    return !asks_for(options, BERTH_EXECUTOR_GRAPH);
}

typedef struct vm_job {
    berth_arena *arena;
    berth_vm_session *session;
    const berth_test_data *data;
    const berth_verify_options *options;
    berth_verify_result *result;
    berth_vm_value **inputs;
    berth_vm_value **outputs;
    uint32_t input_count, output_count;
} vm_job;

static berth_status bind_inputs(vm_job *job) {
    const berth_vm_program *program = berth_vm_session_program(job->session);
    for (uint32_t i = 0; i < job->input_count; ++i) {
        const berth_tensor *given = NULL;
        for (uint32_t k = 0; k < job->data->input_count; ++k)
            if (strcmp(job->data->inputs[k].name, program->inputs[i].name) == 0)
                given = &job->data->inputs[k].tensor;
        if (!given)
            return berth_status_make(BERTH_NOT_FOUND, "there is no data for input \"%s\"",
                                     program->inputs[i].name);
        BERTH_TRY(berth_vm_value_borrow(berth_allocator_system(), given, &job->inputs[i]));
    }
    return BERTH_OK;
}

static berth_status compare_output(vm_job *job, uint32_t i) {
    berth_verify_output *output = &job->result->outputs[i];
    output->name = job->data->output_names[i];
    if (job->outputs[i]->kind != BERTH_VM_VALUE_TENSOR)
        return berth_status_make(BERTH_UNSUPPORTED, "it is no tensor");
    BERTH_TRY(berth_compare(&job->outputs[i]->tensor, &job->data->outputs[i],
                            &job->options->compare, &output->comparison));
    job->result->pass &= output->comparison.pass;
    return BERTH_OK;
}

static berth_status run_and_compare(vm_job *job) {
    BERTH_TRY(bind_inputs(job));
    BERTH_TRY(berth_vm_session_run(job->session, job->inputs, job->outputs));
    if (job->options->require_device)
        BERTH_TRY(berth_vm_session_require(job->session, job->options->require_device));
    job->result->pass = true;
    job->result->output_count = job->data->output_count;
    job->result->outputs =
        berth_arena_new_array(job->arena, berth_verify_output, job->data->output_count);
    for (uint32_t i = 0; i < job->data->output_count && i < job->output_count; ++i)
        BERTH_TRY(berth_status_prefix(compare_output(job, i), "output \"%s\"",
                                      job->data->output_names[i]));
    berth_vm_report report;
    berth_vm_session_get_report(job->session, &report);
    job->result->kernel_count = report.kernel_count;
    job->result->by_vm = true;
    return BERTH_OK;
}

static berth_status run_job(void *user) {
    vm_job *job = user;
    const berth_vm_program *program = berth_vm_session_program(job->session);
    job->input_count = program->input_count;
    job->output_count = program->output_count;
    job->inputs = berth_arena_new_array(job->arena, berth_vm_value *, job->input_count + 1);
    job->outputs = berth_arena_new_array(job->arena, berth_vm_value *, job->output_count + 1);
    berth_status status = run_and_compare(job);
    for (uint32_t i = 0; i < job->input_count; ++i) berth_vm_value_release(job->inputs[i]);
    for (uint32_t i = 0; i < job->output_count; ++i) berth_vm_value_release(job->outputs[i]);
    return status;
}

berth_status berth_verify__by_vm(berth_arena *arena, const char *model_path,
                                 const berth_test_data *data, const berth_verify_options *options,
                                 berth_verify_result *result) {
    berth_vm_session *own = NULL;
    berth_vm_session **held = options->vm_session ? options->vm_session : &own;
    if (!*held)
        BERTH_TRY(berth_vm_session_open(model_path, &options->model, options->thread_count, held));
    vm_job job = {
        .arena = arena, .session = *held, .data = data, .options = options, .result = result};
    berth_status status = berth_arena_try(arena, run_job, &job);
    berth_vm_session_close(own);
    return status;
}
