#include "toolkit/verify_vm.h"

#include <string.h>

#include "toolkit/vm_session.h"

static bool asks_for(const berth_verify_options *options, berth_executor_kind kind) {
    const char *executor = options->model.target_options.executor;
    return executor && strcmp(executor, berth_executor_kind_name(kind)) == 0;
}

bool berth_verify__wants_vm(const berth_verify_options *options) {
    bool kept = options->vm_session && *options->vm_session;
    bool for_many = options->model.import.bounds_count && !options->model.target_options.executor;
    return kept || for_many || options->model.state_count || asks_for(options, BERTH_EXECUTOR_VM);
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
    berth_vm_runner *states;  // that keeps them; NULL: all inputs are given
} vm_job;

static berth_status bind_sequence(const berth_test_value *given, berth_vm_value **out) {
    BERTH_TRY(berth_vm_value_sequence(berth_allocator_system(), out));
    for (uint32_t i = 0; i < given->item_count; ++i) {
        berth_vm_value *item = NULL;
        BERTH_TRY(berth_vm_value_borrow(berth_allocator_system(), &given->items[i], &item));
        berth_status status = berth_vm_value_insert(*out, i, item);
        berth_vm_value_release(item);
        BERTH_TRY(status);
    }
    return BERTH_OK;
}

// A reference in *out even after an error, where one was made.
static berth_status bind_value(const berth_test_value *given, berth_vm_value **out) {
    if (!given->present) return berth_vm_value_nothing(berth_allocator_system(), out);
    if (given->kind == BERTH_VALUE_SEQUENCE || given->kind == BERTH_VALUE_OPTIONAL_SEQUENCE)
        return bind_sequence(given, out);
    return berth_vm_value_borrow(berth_allocator_system(), &given->items[0], out);
}

static berth_status bind_inputs(vm_job *job) {
    const berth_vm_program *program = berth_vm_session_program(job->session);
    for (uint32_t i = 0; i < job->input_count; ++i) {
        uint32_t at = 0;
        while (at < job->data->input_count &&
               strcmp(job->data->inputs[at].name, program->inputs[i].name) != 0)
            at++;
        if (at == job->data->input_count && program->inputs[i].state && job->states)
            continue;  // what the set before left
        if (at == job->data->input_count)
            return berth_status_make(BERTH_NOT_FOUND, "there is no data for input \"%s\"",
                                     program->inputs[i].name);
        berth_test_value tensor = {
            .present = true, .items = &job->data->inputs[at].tensor, .item_count = 1};
        BERTH_TRY(bind_value(job->data->input_values ? &job->data->input_values[at] : &tensor,
                             &job->inputs[i]));
    }
    return BERTH_OK;
}

static berth_status different(const char *got, const char *expected) {
    return berth_status_make(BERTH_INCOMPATIBLE, "the run gives %s, expected is %s", got, expected);
}

// The worst of the elements' comparisons stands for a sequence.
static berth_status compare_items(const vm_job *job, const berth_vm_value *got,
                                  const berth_test_value *expected, berth_comparison *out) {
    for (uint32_t i = 0; i < expected->item_count; ++i) {
        berth_comparison comparison;
        if (got->items[i]->kind != BERTH_VM_VALUE_TENSOR) return different("maps", "tensors");
        BERTH_TRY(berth_compare(&got->items[i]->tensor, &expected->items[i], &job->options->compare,
                                &comparison));
        if (i == 0 || !comparison.pass ||
            (out->pass && comparison.max_absolute_error > out->max_absolute_error))
            *out = comparison;
    }
    out->pass |= expected->item_count == 0;
    return BERTH_OK;
}

static berth_status compare_value(const vm_job *job, const berth_vm_value *got,
                                  const berth_test_value *expected, berth_comparison *out) {
    bool sequence =
        expected->kind == BERTH_VALUE_SEQUENCE || expected->kind == BERTH_VALUE_OPTIONAL_SEQUENCE;
    *out = (berth_comparison){.pass = false};
    if (!expected->present || got->kind == BERTH_VM_VALUE_NOTHING) {
        out->pass = !expected->present && got->kind == BERTH_VM_VALUE_NOTHING;
        if (out->pass) return BERTH_OK;
        return expected->present ? different("nothing", "a value")
                                 : different("a value", "nothing");
    }
    if (!sequence && got->kind == BERTH_VM_VALUE_TENSOR)
        return berth_compare(&got->tensor, &expected->items[0], &job->options->compare, out);
    if (!sequence || got->kind != BERTH_VM_VALUE_SEQUENCE)
        return sequence ? different("a tensor", "a sequence") : different("a sequence", "a tensor");
    if (got->item_count != expected->item_count)
        return berth_status_make(BERTH_INCOMPATIBLE,
                                 "the run gives a sequence of %u elements, expected are %u",
                                 got->item_count, expected->item_count);
    return compare_items(job, got, expected, out);
}

static berth_status compare_output(vm_job *job, uint32_t i) {
    berth_verify_output *output = &job->result->outputs[i];
    output->name = job->data->output_names[i];
    berth_test_value tensor = {.present = true, .items = &job->data->outputs[i], .item_count = 1};
    const berth_test_value *expected =
        job->data->output_values ? &job->data->output_values[i] : &tensor;
    BERTH_TRY(compare_value(job, job->outputs[i], expected, &output->comparison));
    job->result->pass &= output->comparison.pass;
    return BERTH_OK;
}

// Outputs that are state stay where they are: what is held for their inputs is what they are.
static berth_status take_states(vm_job *job) {
    const berth_vm_program *program = berth_vm_session_program(job->session);
    for (uint32_t i = 0; i < job->input_count && job->states; ++i)
        if (program->inputs[i].state)
            BERTH_TRY(berth_vm_runner_get_state(job->states, i,
                                                &job->outputs[program->inputs[i].state - 1]));
    return BERTH_OK;
}

static berth_status run_and_compare(vm_job *job) {
    if (job->options->model.state_count) {
        job->states = berth_vm_session_runner(job->session);
        BERTH_TRY(berth_vm_runner_keep_states(job->states));
    }
    BERTH_TRY(bind_inputs(job));
    BERTH_TRY(berth_vm_session_run(job->session, job->inputs, job->outputs));
    BERTH_TRY(take_states(job));
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
    job->result->host_operations = report.host_data_operations;
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
    berth_model_options model = options->model;
    model.required_devices = options->require_device;
    model.general_program = BERTH_GENERAL_TAKEN;
    if (!*held) BERTH_TRY(berth_vm_session_open(model_path, &model, options->thread_count, held));
    vm_job job = {
        .arena = arena, .session = *held, .data = data, .options = options, .result = result};
    berth_status status = berth_arena_try(arena, run_job, &job);
    berth_vm_session_close(own);
    return status;
}
