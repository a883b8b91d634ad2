#include "tools/run_vm.h"

#include <string.h>

#include "artifact/file.h"
#include "base/clock.h"
#include "toolkit/tensor_file.h"
#include "toolkit/vm_session.h"
#include "tools/cli_model.h"
#include "tools/latency.h"
#include "tools/run_output.h"

typedef struct vm_run {
    const berth_run_vm *options;
    berth_arena *arena;
    berth_vm_session *session;
    const berth_vm_program *program;
    berth_vm_value **inputs;
    berth_vm_value **outputs;
    double *latency_ms;
} vm_run;

// ---- inputs -------------------------------------------------------------------------------------

static const berth_tensor *given_input(const vm_run *r, const char *name) {
    const berth_cli_values *given = r->options->values;
    for (uint32_t i = 0; i < given->input_count; ++i)
        if (strcmp(given->inputs[i].name, name) == 0) return &given->inputs[i].tensor;
    return NULL;
}

static berth_status check_given(const vm_run *r) {
    const berth_cli_values *given = r->options->values;
    for (uint32_t i = 0; i < given->input_count; ++i) {
        bool found = false;
        for (uint32_t k = 0; k < r->program->input_count; ++k)
            found |= strcmp(r->program->inputs[k].name, given->inputs[i].name) == 0;
        if (!found)
            return berth_status_make(BERTH_INVALID_ARGUMENT, "the model has no input \"%s\"",
                                     given->inputs[i].name);
    }
    return BERTH_OK;
}

// Random values; a batch of one where the model leaves it open.
static berth_status random_input(vm_run *r, const berth_vm_port *port, uint32_t index) {
    int64_t dims[BERTH_MAX_RANK];
    bool known = port->is_tensor && port->dtype && port->rank >= 0;
    for (int d = 0; known && d < port->rank; ++d) {
        dims[d] = port->dims[d] >= 0 ? port->dims[d] : 1;
        known = port->dims[d] >= 0 || (d == 0 && port->rank > 1);
    }
    if (!port->is_tensor)
        return berth_status_make(
            BERTH_UNSUPPORTED,
            "input \"%s\" is %s, which cannot be given here yet (`berth verify` "
            "reads it)",
            port->name, port->type);
    if (!known)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "input \"%s\" is %s: give it (--input %s=FILE), or its dimensions "
                                 "(--dim NAME=EXTENT)",
                                 port->name, port->type, port->name);
    if (port->rank > 0 && port->dims[0] < 0)
        berth_log_message(berth_cli_log(r->options->cli), BERTH_LOG_INFO,
                          "input \"%s\" (%s): run with a batch of 1; --input or --dim gives others",
                          port->name, port->type);
    BERTH_TRY(berth_vm_value_tensor(berth_allocator_system(), port->dtype, port->rank, dims,
                                    &r->inputs[index]));
    berth_tensor_fill_random(&r->inputs[index]->tensor, r->options->seed + index);
    return BERTH_OK;
}

static berth_status feed(vm_run *r) {
    BERTH_TRY(check_given(r));
    for (uint32_t i = 0; i < r->program->input_count; ++i) {
        const berth_vm_port *port = &r->program->inputs[i];
        const berth_tensor *given = given_input(r, port->name);
        BERTH_TRY(given ? berth_vm_value_borrow(berth_allocator_system(), given, &r->inputs[i])
                        : random_input(r, port, i));
    }
    return BERTH_OK;
}

// ---- outputs ------------------------------------------------------------------------------------

// Output `i` of the command line: its index and file.
static berth_status find_output(const vm_run *r, uint32_t i, uint32_t *out_index,
                                const char **out_path) {
    const char *text = r->options->outputs->data[i];
    const char *equals = strchr(text, '=');
    *out_path = equals + 1;
    for (*out_index = 0; *out_index < r->program->output_count; ++*out_index) {
        const char *name = r->program->outputs[*out_index].name;
        if (strlen(name) == (size_t)(equals - text) &&
            strncmp(name, text, (size_t)(equals - text)) == 0)
            return berth_tensor_file_check_name(*out_path);
    }
    return berth_status_make(BERTH_NOT_FOUND, "there is no output \"%.*s\"", (int)(equals - text),
                             text);
}

static berth_status check_outputs(const vm_run *r) {
    for (uint32_t i = 0; i < r->options->outputs->count; ++i) {
        uint32_t index = 0;
        const char *path = NULL;
        BERTH_TRY(find_output(r, i, &index, &path));
    }
    return BERTH_OK;
}

static berth_status write_files(const vm_run *r) {
    for (uint32_t i = 0; i < r->options->outputs->count; ++i) {
        uint32_t index = 0;
        const char *path = NULL;
        BERTH_TRY(find_output(r, i, &index, &path));
        const char *name = r->program->outputs[index].name;
        if (r->outputs[index]->kind != BERTH_VM_VALUE_TENSOR)
            return berth_status_make(BERTH_UNSUPPORTED, "output \"%s\" is no tensor", name);
        BERTH_TRY(berth_tensor_file_write(path, name, &r->outputs[index]->tensor));
    }
    return BERTH_OK;
}

static void print_value(const vm_run *r, const char *name, const berth_vm_value *value) {
    static const char *const words[] = {"tensors", "maps"};
    if (value->kind == BERTH_VM_VALUE_TENSOR) berth_run_output_print(name, &value->tensor);
    if (value->kind == BERTH_VM_VALUE_NOTHING) berth_cli_print("output %s: nothing\n", name);
    if (value->kind == BERTH_VM_VALUE_MAP) {
        berth_run_output_print(berth_arena_printf(r->arena, "%s, keys", name),
                               &value->items[0]->tensor);
        berth_run_output_print(berth_arena_printf(r->arena, "%s, values", name),
                               &value->items[1]->tensor);
    }
    if (value->kind != BERTH_VM_VALUE_SEQUENCE) return;
    bool maps = value->item_count && value->items[0]->kind == BERTH_VM_VALUE_MAP;
    berth_cli_print("output %s: a sequence of %u %s\n", name, value->item_count, words[maps]);
    for (uint32_t i = 0; i < value->item_count; ++i)
        print_value(r, berth_arena_printf(r->arena, "%s[%u]", name, i), value->items[i]);
}

static json_t *value_json(const char *name, const berth_vm_value *value) {
    if (value->kind == BERTH_VM_VALUE_TENSOR) return berth_run_output_json(name, &value->tensor);
    json_t *items = json_array();
    for (uint32_t i = 0; i < value->item_count; ++i)
        json_array_append_new(items, value_json(name, value->items[i]));
    const char *kind = value->kind == BERTH_VM_VALUE_SEQUENCE ? "sequence"
                       : value->kind == BERTH_VM_VALUE_MAP    ? "map"  // keys, then values
                                                              : "nothing";
    return json_pack("{s:o, s:s, s:o}", "name", berth_cli_json_text(name), "kind", kind, "items",
                     items);
}

// ---- runs ---------------------------------------------------------------------------------------

static void release_outputs(vm_run *r) {
    for (uint32_t i = 0; i < r->program->output_count; ++i) {
        berth_vm_value_release(r->outputs[i]);
        r->outputs[i] = NULL;
    }
}

static berth_status run_all(vm_run *r) {
    uint64_t warmup = r->options->warmup;
    r->latency_ms = berth_arena_new_array(r->arena, double, r->options->repeat);
    for (uint64_t i = 0; i < warmup + r->options->repeat; ++i) {
        release_outputs(r);
        int64_t start_ns = berth_clock_ns();
        BERTH_TRY(berth_vm_session_run(r->session, r->inputs, r->outputs));
        if (i >= warmup) r->latency_ms[i - warmup] = (double)(berth_clock_ns() - start_ns) / 1e6;
    }
    berth_latency_sort(r->latency_ms, r->options->repeat);
    return BERTH_OK;
}

static double quantile(const vm_run *r, double q) {
    return berth_latency_quantile(r->latency_ms, r->options->repeat, q);
}

static void print_text(const vm_run *r) {
    berth_vm_report report;
    berth_vm_session_get_report(r->session, &report);
    for (uint32_t i = 0; i < r->program->output_count; ++i)
        print_value(r, r->program->outputs[i].name, r->outputs[i]);
    berth_cli_print("latency: median %.3f ms, p90 %.3f ms, min %.3f ms over %llu runs\n",
                    quantile(r, 0.5), quantile(r, 0.9), r->latency_ms[0],
                    (unsigned long long)r->options->repeat);
    berth_cli_print("executor vm: %llu instructions, %llu segments run on the devices, %llu "
                    "operations on the host (%llu of them on data), per run\n",
                    (unsigned long long)report.instructions,
                    (unsigned long long)report.segment_runs,
                    (unsigned long long)report.host_operations,
                    (unsigned long long)report.host_data_operations);
    if (berth_program_is_file(r->options->cli->model)) {
        berth_cli_print("compiled: nothing, the program has %u kernels\n", report.kernel_count);
        return;
    }
    berth_cli_print(
        "compiled: %u segments for the shapes seen, %u kernels, in %.3f s; %u functions "
        "for their shapes, %u for several, %u used again\n",
        report.compiled_count, report.kernel_count, (double)report.compile_ns / 1e9,
        report.kernels.exact_count, report.kernels.generic_count, report.kernels.reused_count);
}

static json_t *report_json(const vm_run *r) {
    berth_vm_report report;
    berth_vm_session_get_report(r->session, &report);
    json_t *outputs = json_array();
    for (uint32_t i = 0; i < r->program->output_count; ++i)
        json_array_append_new(outputs, value_json(r->program->outputs[i].name, r->outputs[i]));
    json_t *latency = json_pack("{s:f, s:f, s:f}", "median", quantile(r, 0.5), "p90",
                                quantile(r, 0.9), "min", r->latency_ms[0]);
    json_t *vm = json_pack(
        "{s:I, s:I, s:I, s:I, s:i, s:i, s:f, s:i, s:i, s:i}", "instructions",
        (json_int_t)report.instructions, "segments", (json_int_t)report.segment_runs,
        "host_operations", (json_int_t)report.host_operations, "host_data_operations",
        (json_int_t)report.host_data_operations, "compiled", (int)report.compiled_count, "kernels",
        (int)report.kernel_count, "compile_s", (double)report.compile_ns / 1e9, "functions_exact",
        (int)report.kernels.exact_count, "functions_generic", (int)report.kernels.generic_count,
        "functions_reused", (int)report.kernels.reused_count);
    return json_pack("{s:o, s:s, s:o, s:I, s:o, s:o}", "model",
                     berth_cli_json_text(r->program->name), "executor", "vm", "latency_ms", latency,
                     "runs", (json_int_t)r->options->repeat, "outputs", outputs, "vm", vm);
}

static berth_status run_session(vm_run *r) {
    BERTH_TRY(check_outputs(r));
    BERTH_TRY(feed(r));
    BERTH_TRY(run_all(r));
    if (r->options->require) BERTH_TRY(berth_vm_session_require(r->session, r->options->require));
    BERTH_TRY(write_files(r));
    if (berth_cli_wants_json(r->options->cli))
        berth_cli_print_json(report_json(r));
    else
        print_text(r);
    return BERTH_OK;
}

berth_status berth_run_with_vm(const berth_run_vm *options) {
    vm_run r = {.options = options, .arena = options->cli->arena};
    berth_model_options model;
    berth_public_key key;
    BERTH_TRY(berth_cli_model_options(options->cli, false, &model));
    if (options->key) {
        BERTH_TRY(berth_public_key_read(options->key, &key));
        model.required_key = &key;
    }
    BERTH_TRY(berth_vm_session_open(options->cli->model, &model, options->threads, &r.session));
    r.program = berth_vm_session_program(r.session);
    r.inputs = berth_arena_new_array(r.arena, berth_vm_value *, r.program->input_count + 1);
    r.outputs = berth_arena_new_array(r.arena, berth_vm_value *, r.program->output_count + 1);
    berth_status status = run_session(&r);
    release_outputs(&r);
    for (uint32_t i = 0; i < r.program->input_count; ++i) berth_vm_value_release(r.inputs[i]);
    berth_vm_session_close(r.session);
    return status;
}
