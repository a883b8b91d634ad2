#include "tools/run_vm.h"

#include <berth/inspect.h>
#include <berth/tensor_file.h>
#include <string.h>

#include "base/clock.h"
#include "base/tensor.h"
#include "tools/latency.h"
#include "tools/run_output.h"

typedef struct vm_run {
    const berth_run_vm *options;
    berth_arena *arena;
    berth_dynamic *model;
    berth_tensor *inputs;
    berth_results *results;
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
        for (uint32_t k = 0; k < berth_dynamic_input_count(r->model); ++k)
            found |= strcmp(berth_dynamic_input_name(r->model, k), given->inputs[i].name) == 0;
        if (!found)
            return berth_status_make(BERTH_INVALID_ARGUMENT, "the model has no input \"%s\"",
                                     given->inputs[i].name);
    }
    return BERTH_OK;
}

// The extent of an open dimension for random values: the most of its bounds, else 1 for what looks like the
// batch; -1: it must be given.
static int64_t extent_of(const berth_dynamic_port *port, int d) {
    if (port->dims[d] >= 0) return port->dims[d];
    if (port->least[d] || port->most[d]) return port->most[d];
    return d == 0 && port->rank > 1 ? 1 : -1;
}

// Random values.
static berth_status random_input(vm_run *r, const berth_dynamic_port *port, uint32_t index) {
    int64_t dims[BERTH_MAX_RANK];
    bool known = port->is_tensor && port->dtype && port->rank >= 0;
    bool by_bounds = false, assumed = false;
    for (int d = 0; known && d < port->rank; ++d) {
        dims[d] = extent_of(port, d);
        known = dims[d] >= 0;
        by_bounds |= port->least[d] || port->most[d];
        assumed |= port->dims[d] < 0;
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
    if (by_bounds)
        berth_cli_level_message(
            r->options->cli, BERTH_MESSAGE_NOTE,
            berth_arena_printf(r->arena,
                               "input \"%s\" (%s): run with the most of its bounds; --input gives "
                               "others",
                               port->name, port->type));
    else if (assumed)
        berth_cli_level_message(
            r->options->cli, BERTH_MESSAGE_NOTE,
            berth_arena_printf(
                r->arena, "input \"%s\" (%s): run with a batch of 1; %s gives others", port->name,
                port->type,
                berth_program_file_is(r->options->cli->model) ? "--input" : "--input or --dim"));
    r->inputs[index] = berth_tensor_create(r->arena, port->dtype, port->rank, dims);
    berth_tensor_fill_random(&r->inputs[index], r->options->seed + index);
    return BERTH_OK;
}

static berth_status feed(vm_run *r) {
    BERTH_TRY(check_given(r));
    for (uint32_t i = 0; i < berth_dynamic_input_count(r->model); ++i) {
        berth_dynamic_port port;
        BERTH_TRY(berth_dynamic_get_input(r->model, i, &port, sizeof(port)));
        const berth_tensor *given = given_input(r, port.name);
        if (given)
            r->inputs[i] = *given;
        else
            BERTH_TRY(random_input(r, &port, i));
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
    for (*out_index = 0; *out_index < berth_dynamic_output_count(r->model); ++*out_index) {
        const char *name = berth_dynamic_output_name(r->model, *out_index);
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
        const char *name = berth_dynamic_output_name(r->model, index);
        if (berth_results_is_sequence(r->results, index) ||
            !berth_results_item_count(r->results, index) ||
            berth_results_keys(r->results, index, 0))
            return berth_status_make(BERTH_UNSUPPORTED, "output \"%s\" is no tensor", name);
        BERTH_TRY(berth_tensor_file_write(path, name, berth_results_item(r->results, index, 0)));
    }
    return BERTH_OK;
}

// A tensor, or a map: keys, then values.
static void print_item(const vm_run *r, const char *name, uint32_t output, uint32_t item) {
    const berth_tensor *keys = berth_results_keys(r->results, output, item);
    if (keys) berth_run_output_print(berth_arena_printf(r->arena, "%s, keys", name), keys);
    berth_run_output_print(keys ? berth_arena_printf(r->arena, "%s, values", name) : name,
                           berth_results_item(r->results, output, item));
}

static void print_output(const vm_run *r, uint32_t output) {
    const char *name = berth_dynamic_output_name(r->model, output);
    const uint32_t count = berth_results_item_count(r->results, output);
    const bool sequence = berth_results_is_sequence(r->results, output) != 0;
    if (!sequence && count) print_item(r, name, output, 0);
    if (!sequence && !count) berth_cli_print("output %s: nothing\n", name);
    if (!sequence) return;
    berth_cli_print("output %s: a sequence of %u %s\n", name, count,
                    count && berth_results_keys(r->results, output, 0) ? "maps" : "tensors");
    for (uint32_t i = 0; i < count; ++i)
        print_item(r, berth_arena_printf(r->arena, "%s[%u]", name, i), output, i);
}

static json_t *item_json(const vm_run *r, const char *name, uint32_t output, uint32_t item) {
    const berth_tensor *keys = berth_results_keys(r->results, output, item);
    json_t *values = berth_run_output_json(name, berth_results_item(r->results, output, item));
    if (!keys) return values;
    return json_pack("{s:o, s:s, s:[o, o]}", "name", berth_cli_json_text(name), "kind", "map",
                     "items", berth_run_output_json(name, keys), values);
}

static json_t *output_json(const vm_run *r, uint32_t output) {
    const char *name = berth_dynamic_output_name(r->model, output);
    const uint32_t count = berth_results_item_count(r->results, output);
    const bool sequence = berth_results_is_sequence(r->results, output) != 0;
    if (!sequence && count) return item_json(r, name, output, 0);
    json_t *items = json_array();
    for (uint32_t i = 0; i < count; ++i)
        json_array_append_new(items, item_json(r, name, output, i));
    return json_pack("{s:o, s:s, s:o}", "name", berth_cli_json_text(name), "kind",
                     sequence ? "sequence" : "nothing", "items", items);
}

// ---- runs ---------------------------------------------------------------------------------------

static berth_status run_all(vm_run *r) {
    uint64_t warmup = r->options->warmup;
    r->latency_ms = berth_arena_new_array(r->arena, double, r->options->repeat);
    for (uint64_t i = 0; i < warmup + r->options->repeat; ++i) {
        berth_results_free(r->results);
        r->results = NULL;
        int64_t start_ns = berth_clock_ns();
        BERTH_TRY(berth_dynamic_run(r->model, r->inputs, berth_dynamic_input_count(r->model),
                                    &r->results));
        if (i >= warmup) r->latency_ms[i - warmup] = (double)(berth_clock_ns() - start_ns) / 1e6;
    }
    berth_latency_sort(r->latency_ms, r->options->repeat);
    return BERTH_OK;
}

static double quantile(const vm_run *r, double q) {
    return berth_latency_quantile(r->latency_ms, r->options->repeat, q);
}

static berth_status print_text(const vm_run *r) {
    berth_dynamic_report report;
    BERTH_TRY(berth_dynamic_get_report(r->model, &report, sizeof(report)));
    for (uint32_t i = 0; i < berth_dynamic_output_count(r->model); ++i) print_output(r, i);
    berth_cli_print("latency: median %.3f ms, p90 %.3f ms, min %.3f ms over %llu runs\n",
                    quantile(r, 0.5), quantile(r, 0.9), r->latency_ms[0],
                    (unsigned long long)r->options->repeat);
    berth_cli_print("executor vm: %llu instructions, %llu segments run on the devices, %llu "
                    "operations on the host (%llu of them on data), per run\n",
                    (unsigned long long)report.instructions,
                    (unsigned long long)report.segment_runs,
                    (unsigned long long)report.host_operations,
                    (unsigned long long)report.host_data_operations);
    if (berth_program_file_is(r->options->cli->model)) {
        berth_cli_print("compiled: nothing, the program has %u kernels\n", report.kernel_count);
        return BERTH_OK;
    }
    berth_cli_print(
        "compiled: %u segments for the shapes seen, %u kernels, in %.3f s; %u functions "
        "for their shapes, %u for several, %u used again\n",
        report.compiled_count, report.kernel_count, (double)report.compile_ns / 1e9,
        report.exact_count, report.generic_count, report.reused_count);
    return BERTH_OK;
}

static berth_status print_json(const vm_run *r) {
    berth_dynamic_report report;
    BERTH_TRY(berth_dynamic_get_report(r->model, &report, sizeof(report)));
    json_t *outputs = json_array();
    for (uint32_t i = 0; i < berth_dynamic_output_count(r->model); ++i)
        json_array_append_new(outputs, output_json(r, i));
    json_t *latency = json_pack("{s:f, s:f, s:f}", "median", quantile(r, 0.5), "p90",
                                quantile(r, 0.9), "min", r->latency_ms[0]);
    json_t *vm =
        json_pack("{s:I, s:I, s:I, s:I, s:i, s:i, s:f, s:i, s:i, s:i}", "instructions",
                  (json_int_t)report.instructions, "segments", (json_int_t)report.segment_runs,
                  "host_operations", (json_int_t)report.host_operations, "host_data_operations",
                  (json_int_t)report.host_data_operations, "compiled", (int)report.compiled_count,
                  "kernels", (int)report.kernel_count, "compile_s", (double)report.compile_ns / 1e9,
                  "functions_exact", (int)report.exact_count, "functions_generic",
                  (int)report.generic_count, "functions_reused", (int)report.reused_count);
    berth_cli_print_json(json_pack("{s:o, s:s, s:o, s:I, s:o, s:o}", "model",
                                   berth_cli_json_text(report.model), "executor", "vm",
                                   "latency_ms", latency, "runs", (json_int_t)r->options->repeat,
                                   "outputs", outputs, "vm", vm));
    return BERTH_OK;
}

static berth_status run_session(vm_run *r) {
    BERTH_TRY(check_outputs(r));
    BERTH_TRY(feed(r));
    BERTH_TRY(run_all(r));
    if (r->options->require) BERTH_TRY(berth_dynamic_check_devices(r->model, r->options->require));
    BERTH_TRY(write_files(r));
    return berth_cli_wants_json(r->options->cli) ? print_json(r) : print_text(r);
}

berth_status berth_run_with_vm(const berth_run_vm *options) {
    vm_run r = {.options = options, .arena = options->cli->arena};
    BERTH_TRY(berth_compiler_load_dynamic_file(options->compiler, options->cli->model,
                                               options->threads, &r.model));
    r.inputs = berth_arena_new_array(r.arena, berth_tensor, berth_dynamic_input_count(r.model) + 1);
    berth_status status = berth_dynamic_follow(r.model, options->compiler);
    if (!status) status = run_session(&r);
    berth_results_free(r.results);
    berth_dynamic_destroy(r.model);
    return status;
}
