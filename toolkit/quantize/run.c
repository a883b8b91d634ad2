#include "toolkit/quantize/run.h"

#include <string.h>

#include "toolkit/vm_session.h"

struct berth_quantize__runner {
    berth_vm_session *session;
    const berth_vm_program *program;
    berth_vm_value **inputs;
    berth_vm_value **outputs;
};

static void release(berth_vm_value **values, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
        berth_vm_value_release(values[i]);
        values[i] = NULL;
    }
}

void berth_quantize__runner_close(berth_quantize__runner *runner) {
    if (!runner->session) return;
    release(runner->inputs, runner->program->input_count);
    release(runner->outputs, runner->program->output_count);
    berth_vm_session_close(runner->session);
    runner->session = NULL;
}

static void close_runner(void *pointer) {
    berth_quantize__runner_close(pointer);
}

berth_status berth_quantize__runner_open(berth_arena *arena, berth_onnx_edit *model,
                                         const berth_quantize_options *options,
                                         berth_quantize__runner **out_runner) {
    berth_onnx_bytes bytes;
    berth_quantize__runner *runner = berth_arena_new(arena, berth_quantize__runner);
    *out_runner = runner;
    BERTH_TRY(berth_onnx_edit_write(arena, model, &bytes));
    runner->inputs = berth_arena_new_array(arena, berth_vm_value *, model->inputs.count + 1);
    runner->outputs = berth_arena_new_array(arena, berth_vm_value *, model->outputs.count + 1);
    berth_arena_defer(arena, close_runner, runner);
    BERTH_TRY(berth_vm_session_open_memory(bytes.data, bytes.size_bytes, NULL, &options->model,
                                           options->thread_count, &runner->session));
    runner->program = berth_vm_session_program(runner->session);
    if (runner->program->input_count <= model->inputs.count &&
        runner->program->output_count == model->outputs.count)
        return BERTH_OK;
    return berth_status_make(BERTH_INTERNAL, "the model runs with other inputs and outputs");
}

static berth_status bind(berth_quantize__runner *runner, const berth_quantize__data *data,
                         const berth_tensor *inputs) {
    for (uint32_t i = 0; i < runner->program->input_count; ++i) {
        const char *name = runner->program->inputs[i].name;
        uint32_t at = 0;
        while (at < data->input_count && strcmp(data->inputs[at], name) != 0) ++at;
        if (at == data->input_count)
            return berth_status_make(BERTH_NOT_FOUND, "there is no data for input \"%s\"", name);
        BERTH_TRY(berth_vm_value_borrow(berth_allocator_system(), &inputs[at], &runner->inputs[i]));
    }
    return BERTH_OK;
}

berth_status berth_quantize__runner_run(berth_quantize__runner *runner,
                                        const berth_quantize__data *data,
                                        const berth_tensor *inputs) {
    release(runner->outputs, runner->program->output_count);
    berth_status status = bind(runner, data, inputs);
    if (!status) status = berth_vm_session_run(runner->session, runner->inputs, runner->outputs);
    for (uint32_t i = 0; i < runner->program->output_count && !status; ++i)
        status = berth_vm_value_own(&runner->outputs[i]);  // the inputs' data may be what it has
    release(runner->inputs, runner->program->input_count);
    return status;
}

const berth_tensor *berth_quantize__runner_output(const berth_quantize__runner *runner,
                                                  uint32_t index) {
    const berth_vm_value *value = runner->outputs[index];
    return value && value->kind == BERTH_VM_VALUE_TENSOR ? &value->tensor : NULL;
}

berth_status berth_quantize__run_all(berth_arena *arena, const berth_quantize__data *data,
                                     const berth_quantize_options *options, const char *what,
                                     berth_quantize__runner *const *runners, uint32_t runner_count,
                                     uint32_t set_count, berth_quantize__visit *visit, void *user) {
    for (uint32_t set = 0; set < set_count; ++set) {
        berth_arena *scratch = berth_arena_create_child(arena);
        berth_tensor *inputs = berth_arena_new_array(scratch, berth_tensor, data->input_count);
        berth_status status = berth_quantize__data_read(scratch, data, set, inputs);
        for (uint32_t r = 0; r < runner_count && !status; ++r)
            status = berth_quantize__runner_run(runners[r], data, inputs);
        if (!status) status = visit(user, scratch, set);
        berth_arena_destroy(scratch);
        BERTH_TRY(berth_status_prefix(status, "data set \"%s\"", data->sets[set].name));
        if (options->progress) options->progress(options->progress_user, what, set + 1, set_count);
    }
    return BERTH_OK;
}
