#include "toolkit/verify.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "artifact/file.h"
#include "artifact/vm.h"
#include "executor/session.h"
#include "toolkit/module_file.h"
#include "toolkit/tensor_file.h"
#include "toolkit/verify_vm.h"

// ---- test data ----------------------------------------------------------------------------------

typedef struct data_job {
    berth_arena *arena;
    const char *model_path;
    const berth_limits *limits;
    const char *folder;
    berth_test_data *data;
    bool may_lack;  // inputs
} data_job;

typedef struct io_names {
    const char **inputs;
    berth_dtype *input_dtypes;  // NONE = not known
    berth_dtype *output_dtypes;
    uint32_t input_count;
    const char **outputs;
    uint32_t output_count;
    const int64_t *input_kinds;  // berth_value_kind; NULL = all tensors
    const int64_t *output_kinds;
} io_names;

static void allocate_names(berth_arena *arena, io_names *names) {
    names->inputs = berth_arena_new_array(arena, const char *, names->input_count);
    names->input_dtypes = berth_arena_new_array(arena, berth_dtype, names->input_count);
    names->outputs = berth_arena_new_array(arena, const char *, names->output_count);
    names->output_dtypes = berth_arena_new_array(arena, berth_dtype, names->output_count);
}

// ONNX's own test data holds bf16 as uint16.
static void read_as(berth_tensor *tensor, berth_dtype wanted) {
    if (wanted == BERTH_DTYPE_BF16 && tensor->dtype == BERTH_DTYPE_U16)
        tensor->dtype = BERTH_DTYPE_BF16;
}

// Of byte code. Kinds only where not all are tensors.
static const int64_t *port_names(const berth_vm_port *ports, uint32_t count, berth_arena *arena,
                                 const char **names, berth_dtype *dtypes) {
    int64_t *kinds = berth_arena_new_array(arena, int64_t, count + 1);
    bool other = false;
    for (uint32_t i = 0; i < count; ++i) {
        names[i] = ports[i].name;
        dtypes[i] = ports[i].dtype;
        kinds[i] = ports[i].kind;
        other |= kinds[i] != BERTH_VALUE_TENSOR;
    }
    return other ? kinds : NULL;
}

static void code_names(const berth_vm_program *code, berth_arena *arena, io_names *names) {
    names->input_count = code->input_count;
    names->output_count = code->output_count;
    allocate_names(arena, names);
    names->input_kinds =
        port_names(code->inputs, code->input_count, arena, names->inputs, names->input_dtypes);
    names->output_kinds =
        port_names(code->outputs, code->output_count, arena, names->outputs, names->output_dtypes);
}

static void program_names(const berth_program *program, berth_arena *arena, io_names *names) {
    if (program->vm) {
        code_names(program->vm->code, arena, names);
        return;
    }
    names->input_count = program->input_count;
    names->output_count = program->output_count;
    allocate_names(arena, names);
    for (uint32_t i = 0; i < program->input_count; ++i) names->inputs[i] = program->inputs[i].name;
    for (uint32_t i = 0; i < program->output_count; ++i)
        names->outputs[i] = program->outputs[i].name;
}

static berth_dtype value_dtype(const berth_module *module, const berth_graph *graph,
                               berth_value_id value) {
    return berth_type_get(module, graph->values.data[value].type)->dtype;
}

static const int64_t *kinds_of(const berth_module *module, const char *name, uint32_t count) {
    uint32_t held = 0;
    berth_func_id main = berth_module_find_function(module, "main");
    const int64_t *kinds =
        berth_attrs_ints(module, &module->functions.data[main].attrs, name, &held);
    return held == count ? kinds : NULL;
}

static void module_names(const berth_module *module, berth_arena *arena, io_names *names) {
    berth_func_id main = berth_module_find_function(module, "main");
    const berth_graph *graph = berth_graph_get(module, main);
    const berth_region *root = &graph->regions.data[0];
    names->input_count = root->params.count;
    names->output_count = root->results.count;
    allocate_names(arena, names);
    names->input_kinds = kinds_of(module, "input_kinds", names->input_count);
    names->output_kinds = kinds_of(module, "output_kinds", names->output_count);
    for (uint32_t i = 0; i < root->params.count; ++i) {
        names->inputs[i] = berth_module_str(module, graph->values.data[root->params.data[i]].name);
        names->input_dtypes[i] = value_dtype(module, graph, root->params.data[i]);
    }
    for (uint32_t i = 0; i < root->results.count; ++i) {
        names->outputs[i] = berth_module_str(module, berth_graph_result_name(module, main, i));
        names->output_dtypes[i] = value_dtype(module, graph, root->results.data[i]);
    }
}

static berth_status read_names(data_job *job, io_names *names) {
    if (berth_program_is_file(job->model_path)) {
        const berth_program *program = NULL;
        BERTH_TRY(berth_program_read(job->arena, job->model_path, job->limits, &program));
        program_names(program, job->arena, names);
        return BERTH_OK;
    }
    const berth_import_options options = {.limits = job->limits};
    berth_module *module = NULL;
    BERTH_TRY(berth_module_load(job->arena, job->model_path, &options, NULL, &module));
    module_names(module, job->arena, names);
    return BERTH_OK;
}

// A tensor, or what else the kinds say.
static berth_status read_value(berth_arena *arena, const char *path, const int64_t *kinds,
                               uint32_t index, berth_test_value *out_value,
                               berth_tensor *out_tensor) {
    berth_value_kind kind = kinds ? (berth_value_kind)kinds[index] : BERTH_VALUE_TENSOR;
    if (kind != BERTH_VALUE_TENSOR) return berth_value_file_read(arena, path, kind, out_value);
    BERTH_TRY(berth_tensor_file_read(arena, path, out_tensor, NULL));
    *out_value = (berth_test_value){.present = true, .items = out_tensor, .item_count = 1};
    return BERTH_OK;
}

static berth_status read_data(void *user) {
    data_job *job = user;
    io_names names = {0};
    BERTH_TRY(read_names(job, &names));
    berth_input_binding *inputs =
        berth_arena_new_array(job->arena, berth_input_binding, names.input_count);
    berth_test_value *input_values =
        berth_arena_new_array(job->arena, berth_test_value, names.input_count + 1);
    uint32_t found = 0;
    for (uint32_t i = 0; i < names.input_count; ++i) {
        const char *path = berth_arena_printf(job->arena, "%s/input_%u.pb", job->folder, i);
        if (job->may_lack && access(path, F_OK) != 0) continue;
        berth_input_binding *input = &inputs[found];
        input->name = names.inputs[i];
        BERTH_TRY(read_value(job->arena, path, names.input_kinds, i, &input_values[found],
                             &input->tensor));
        read_as(&input->tensor, names.input_dtypes[i]);
        found++;
    }
    const char *more =
        berth_arena_printf(job->arena, "%s/input_%u.pb", job->folder, names.input_count);
    if (!berth_program_is_file(job->model_path) && access(more, F_OK) == 0)
        return berth_status_make(
            BERTH_INVALID_ARGUMENT,
            "\"%s\" is one input too many: the model has %u (values in place of "
            "its initializers are given by name, to a run)",
            more, names.input_count);
    berth_tensor *outputs = berth_arena_new_array(job->arena, berth_tensor, names.output_count);
    berth_test_value *output_values =
        berth_arena_new_array(job->arena, berth_test_value, names.output_count + 1);
    for (uint32_t i = 0; i < names.output_count; ++i) {
        const char *path = berth_arena_printf(job->arena, "%s/output_%u.pb", job->folder, i);
        BERTH_TRY(
            read_value(job->arena, path, names.output_kinds, i, &output_values[i], &outputs[i]));
        read_as(&outputs[i], names.output_dtypes[i]);
    }
    *job->data = (berth_test_data){.inputs = inputs,
                                   .input_count = found,
                                   .output_names = names.outputs,
                                   .outputs = outputs,
                                   .output_count = names.output_count};
    if (names.input_kinds || names.output_kinds) {
        job->data->input_values = input_values;
        job->data->output_values = output_values;
    }
    return BERTH_OK;
}

berth_status berth_test_data_read(berth_arena *arena, const char *model_path,
                                  const berth_limits *limits, const char *folder, bool may_lack,
                                  berth_test_data *out_data) {
    data_job job = {.arena = arena,
                    .model_path = model_path,
                    .limits = limits,
                    .folder = folder,
                    .may_lack = may_lack,
                    .data = out_data};
    return berth_arena_try(arena, read_data, &job);
}

// ---- running ------------------------------------------------------------------------------------

// Dispatches of a run on one device, or (BERTH_NO_INDEX) on all.
static uint32_t kernels_on(const berth_program *program, uint32_t device) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < program->step_count; ++i)
        count += program->steps[i].kind == BERTH_STEP_DISPATCH &&
                 (device == BERTH_NO_INDEX || program->steps[i].device == device);
    return count;
}

static bool is_name(const char *name, const char *text, size_t length) {
    return strncmp(name, text, length) == 0 && !name[length];
}

bool berth_require_has(const char *devices, const char *name) {
    for (size_t length = 0; devices; devices = devices[length] ? devices + length + 1 : NULL) {
        length = strcspn(devices, ",");
        if (is_name(name, devices, length)) return true;
    }
    return false;
}

// Marks the devices of a list "A,B" in `out_wanted`, an entry per device.
static berth_status read_required(const berth_program *program, const char *list,
                                  bool *out_wanted) {
    char names[512] = "";
    size_t used = 0;
    for (uint32_t d = 0; d < program->device_count && used < sizeof(names); ++d)
        used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", d ? ", " : "",
                                 program->devices[d].name);
    for (size_t length = 0; list; list = list[length] ? list + length + 1 : NULL) {
        length = strcspn(list, ",");
        uint32_t d = 0;
        while (d < program->device_count && !is_name(program->devices[d].name, list, length)) ++d;
        if (d == program->device_count)
            return berth_status_make(
                BERTH_UNAVAILABLE,
                "the target has no device \"%.*s\", which is required; it has %s",
                (int)(length < 200 ? length : 200), list, names);
        out_wanted[d] = true;
    }
    return BERTH_OK;
}

static berth_status check_required(const berth_program *program, const char *devices,
                                   bool kernels_optional, bool *wanted) {
    BERTH_TRY(read_required(program, devices, wanted));
    for (uint32_t i = 0; i < program->placement_count; ++i) {
        const berth_program_placement *placement = &program->placements[i];
        if (wanted[placement->device] || placement->host_operation) continue;
        return berth_status_make(
            BERTH_UNAVAILABLE, "node \"%s\" (%s) runs on %s, not on %s as required: %s",
            placement->node, placement->op, program->devices[placement->device].name, devices,
            placement->reason);
    }
    for (uint32_t d = 0; d < program->device_count && !kernels_optional; ++d)
        if (wanted[d] && kernels_on(program, d) == 0)
            return berth_status_make(BERTH_UNAVAILABLE,
                                     "no kernel runs on %s, which is required: all results "
                                     "were computed before the run or elsewhere, or are parts of "
                                     "the inputs",
                                     program->devices[d].name);
    return BERTH_OK;
}

berth_status berth_program_require(const berth_program *program, const char *devices,
                                   bool kernels_optional) {
    for (uint32_t i = 0; program->vm && i < program->vm->variant_count; ++i)
        if (program->vm->variants[i].program)
            BERTH_TRY(berth_program_require(program->vm->variants[i].program, devices, true));
    if (program->vm) return BERTH_OK;
    berth_allocator allocator = berth_allocator_system();
    bool *wanted = berth_calloc(allocator, program->device_count + 1, sizeof(*wanted));
    if (!wanted) return berth_status_oom();
    berth_status status = check_required(program, devices, kernels_optional, wanted);
    berth_free(allocator, wanted, (program->device_count + 1) * sizeof(*wanted));
    return status;
}

typedef struct verify_job {
    berth_arena *arena;
    const berth_test_data *data;
    const berth_verify_options *options;
    const berth_model *model;
    berth_verify_result *result;
} verify_job;

static berth_status feed(const verify_job *job, berth_session *session) {
    const berth_program *program = berth_model_program(job->model);
    for (uint32_t i = 0; i < program->input_count; ++i) {
        for (uint32_t j = 0; j < job->data->input_count; ++j)
            if (strcmp(job->data->inputs[j].name, program->inputs[i].name) == 0)
                BERTH_TRY(berth_session_set_input(session, program->inputs[i].name,
                                                  &job->data->inputs[j].tensor));
    }
    return BERTH_OK;
}

static bool only_copies_constants(const berth_program *program, berth_arena *arena) {
    bool *constant = berth_arena_new_array(arena, bool, program->tensor_count + 1);
    for (uint32_t i = 0; i < program->constant_count; ++i)
        constant[program->constants[i].tensor] = true;
    for (uint32_t i = 0; i < program->step_count; ++i) {
        const berth_program_step *step = &program->steps[i];
        if (step->kind != BERTH_STEP_COPY || !constant[step->bindings[0]]) return false;
        constant[step->bindings[1]] = true;
    }
    return true;
}

// What the program computes, and what was computed before.
static void describe_program(const verify_job *job) {
    berth_verify_result *result = job->result;
    const berth_known_use *uses = berth_model_known_uses(job->model, &result->known_input_count);
    const char **names = berth_arena_new_array(job->arena, const char *, result->known_input_count);
    for (uint32_t i = 0; i < result->known_input_count; ++i)
        names[i] = berth_arena_strdup(job->arena, uses[i].input);
    result->known_inputs = names;
    const berth_program *program = berth_model_program(job->model);
    result->kernel_count = kernels_on(program, BERTH_NO_INDEX);
    result->computed_before = only_copies_constants(program, job->arena);
}

// A tensor like `own` in memory that is aligned as its elements are, and no better.
static berth_tensor barely_aligned(berth_arena *arena, const berth_tensor *own) {
    enum { line_bytes = 64 };
    size_t size_bytes = berth_tensor_size_bytes(own),
           shift_bytes = berth_dtype_size_bytes(own->dtype);
    berth_tensor tensor = *own;
    uint8_t *memory = berth_arena_alloc_aligned(arena, size_bytes + shift_bytes, line_bytes);
    tensor.data = memory + shift_bytes;
    return tensor;
}

static berth_status compare_each(const verify_job *job, const berth_tensor *outputs) {
    berth_verify_result *result = job->result;
    for (uint32_t i = 0; i < result->output_count; ++i) {
        result->outputs[i].name = job->data->output_names[i];
        berth_status status = berth_compare(&outputs[i], &job->data->outputs[i],
                                            &job->options->compare, &result->outputs[i].comparison);
        BERTH_TRY(berth_status_prefix(status, "output \"%s\"", job->data->output_names[i]));
        result->pass &= result->outputs[i].comparison.pass;
    }
    return BERTH_OK;
}

// The same inputs once more, on memory of the caller's for all that goes in and out.
static berth_status compare_on_callers_memory(const verify_job *job, berth_session *session) {
    const berth_program *program = berth_model_program(job->model);
    berth_tensor *inputs = berth_arena_new_array(job->arena, berth_tensor, program->input_count);
    berth_tensor *outputs = berth_arena_new_array(job->arena, berth_tensor, program->output_count);
    for (uint32_t i = 0; i < program->input_count; ++i) {
        const berth_tensor *own = berth_session_input(session, i);
        inputs[i] = barely_aligned(job->arena, own);
        if (own->data) memcpy(inputs[i].data, own->data, berth_tensor_size_bytes(own));
    }
    for (uint32_t i = 0; i < program->output_count; ++i)
        outputs[i] = barely_aligned(job->arena, berth_session_output(session, i));
    BERTH_TRY(berth_session_run_with(session, inputs, program->input_count, outputs,
                                     program->output_count, -1));
    return compare_each(job, outputs);
}

static berth_status compare_outputs(void *user) {
    verify_job *job = user;
    const berth_program *program = berth_model_program(job->model);
    describe_program(job);
    if (job->options->require_device)
        BERTH_TRY(berth_program_require(program, job->options->require_device,
                                        job->options->kernels_optional));
    berth_session *session = NULL;
    berth_session_options session_options = {.thread_count = job->options->thread_count,
                                             .cache_folder =
                                                 job->options->model.compile.cache_folder,
                                             .first_plan_only = true};
    BERTH_TRY(berth_session_open(berth_allocator_system(), program, &session_options, &session));
    berth_status status = feed(job, session);
    if (!status) status = berth_session_run(session, -1);
    berth_verify_result *result = job->result;
    result->pass = true;
    result->output_count = job->data->output_count;
    result->outputs = berth_arena_new_array(job->arena, berth_verify_output, result->output_count);
    if (!status) status = compare_each(job, berth_session_output(session, 0));
    if (!status && result->pass && job->options->on_callers_memory)
        status = compare_on_callers_memory(job, session);
    berth_session_close(session);
    return status;
}

berth_status berth_verify_folder(berth_arena *arena, const char *model_path, const char *folder,
                                 const berth_verify_options *options,
                                 berth_verify_result *out_result) {
    *out_result = (berth_verify_result){.folder = folder};
    berth_test_data data;
    BERTH_TRY(berth_test_data_read(arena, model_path, options->model.import.limits, folder,
                                   options->model.state_count > 0, &data));
    if (data.input_values && !berth_verify__may_use_vm(options))
        return berth_status_make(BERTH_UNSUPPORTED,
                                 "inputs or outputs are sequences or optional values, which the "
                                 "graph executor does not have (executor vm does)");
    if (berth_verify__wants_vm(options) || data.input_values)
        return berth_verify__by_vm(arena, model_path, &data, options, out_result);
    bool needs_vm = false;
    berth_model_options model_options = options->model;
    model_options.import.inputs = data.inputs;
    model_options.import.input_count = data.input_count;
    model_options.only_these_inputs = true;
    model_options.needs_vm = &needs_vm;
    berth_model *model = NULL;
    berth_status loaded = berth_model_load(model_path, &model_options, &model);
    if (loaded && needs_vm && berth_verify__may_use_vm(options)) {
        berth_status_free(loaded);
        return berth_verify__by_vm(arena, model_path, &data, options, out_result);
    }
    BERTH_TRY(loaded);
    if (berth_model_program(model)->vm) {
        berth_model_destroy(model);
        return berth_verify__by_vm(arena, model_path, &data, options, out_result);
    }
    verify_job job = {
        .arena = arena, .data = &data, .options = options, .model = model, .result = out_result};
    berth_status status = berth_arena_try(arena, compare_outputs, &job);
    berth_model_destroy(model);
    return berth_status_prefix(status, "\"%s\"", folder);
}

// ---- operation by operation ---------------------------------------------------------------------

typedef struct per_op_job {
    verify_job side[2];  // the target, the reference
    uint32_t compared;
} per_op_job;

static berth_status compare_sessions(per_op_job *job, berth_session *const sessions[2]) {
    const berth_program *program = berth_model_program(job->side[0].model);
    berth_verify_result *result = job->side[0].result;
    result->pass = true;
    for (uint32_t i = 0; i < program->output_count && result->pass; ++i) {
        berth_comparison comparison;
        BERTH_TRY(berth_compare(berth_session_output(sessions[0], i),
                                berth_session_output(sessions[1], i),
                                &job->side[0].options->compare, &comparison));
        job->compared++;
        if (comparison.pass) continue;
        result->pass = false;
        result->output_count = 1;
        result->outputs = berth_arena_new(job->side[0].arena, berth_verify_output);
        result->outputs[0].name = berth_arena_strdup(job->side[0].arena, program->outputs[i].name);
        result->outputs[0].comparison = comparison;
    }
    return BERTH_OK;
}

static berth_status run_both(void *user) {
    per_op_job *job = user;
    berth_session *sessions[2] = {NULL, NULL};
    berth_status status = BERTH_OK;
    for (int i = 0; i < 2 && !status; ++i) {
        berth_session_options options = {.thread_count = job->side[i].options->thread_count,
                                         .first_plan_only = true};
        status =
            berth_session_open(berth_allocator_system(), berth_model_program(job->side[i].model),
                               &options, &sessions[i]);
        if (!status) status = feed(&job->side[i], sessions[i]);
        if (!status) status = berth_session_run(sessions[i], -1);
    }
    describe_program(&job->side[0]);
    if (!status && berth_model_program(job->side[0].model)->output_count !=
                       berth_model_program(job->side[1].model)->output_count)
        status =
            berth_status_make(BERTH_INTERNAL, "the two programs keep different numbers of results");
    if (!status) status = compare_sessions(job, sessions);
    berth_session_close(sessions[0]);
    berth_session_close(sessions[1]);
    return status;
}

berth_status berth_verify_per_op(berth_arena *arena, const char *model_path, const char *folder,
                                 const char *reference_target, const berth_verify_options *options,
                                 berth_verify_result *out_result, uint32_t *out_compared) {
    *out_result = (berth_verify_result){.folder = folder};
    *out_compared = 0;
    if (berth_program_is_file(model_path))
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "\"%s\" is a built program, which keeps no results between its "
                                 "operations: give the model",
                                 model_path);
    berth_test_data data;
    BERTH_TRY(berth_test_data_read(arena, model_path, options->model.import.limits, folder, false,
                                   &data));
    berth_model_options model_options = options->model;
    model_options.import.inputs = data.inputs;
    model_options.import.input_count = data.input_count;
    model_options.only_these_inputs = true;
    model_options.compile.expose_values = true;
    berth_model *models[2] = {NULL, NULL};
    berth_status status = berth_model_load(model_path, &model_options, &models[0]);
    model_options.target = reference_target;
    model_options.target_options =
        (berth_target_options){.tag_folder = model_options.target_options.tag_folder};
    if (!status) status = berth_model_load(model_path, &model_options, &models[1]);
    if (berth_status_code(status) == BERTH_UNSUPPORTED)
        status = berth_status_prefix(
            status, "operations are compared one by one in programs of the graph executor");
    per_op_job job = {0};
    for (int i = 0; i < 2; ++i)
        job.side[i] = (verify_job){.arena = arena,
                                   .data = &data,
                                   .options = options,
                                   .model = models[i],
                                   .result = out_result};
    if (!status) status = berth_arena_try(arena, run_both, &job);
    *out_compared = job.compared;
    berth_model_destroy(models[0]);
    berth_model_destroy(models[1]);
    return status;
}
