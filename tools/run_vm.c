#include "tools/run_vm.h"

#include <berth/inspect.h>
#include <berth/tensor_file.h>
#include <string.h>

#include "base/clock.h"
#include "tools/latency.h"
#include "tools/run_output.h"
#include "tools/run_profile.h"
#include "tools/vm_inputs.h"

typedef struct vm_run {
    const berth_run_vm *options;
    berth_arena *arena;
    berth_dynamic *model;
    berth_vm_feed feed;
    berth_results *results;
    double *latency_ms;
    berth_run_profile profile;  // of --profile or --trace
    bool is_timed;              // a run is in progress that counts
    int64_t start_ns;           // of the run in progress
    int64_t own_ns;             // that recording took of it
    int64_t compile_ns;         // in all timed runs
    uint64_t untimed_count;     // blocks of values before the timed runs
    berth_status heard;         // the first failure of recording
} vm_run;

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

// The input whose next value this output is, where that is kept; UINT32_MAX: it is an output like others.
static uint32_t input_of_state(const vm_run *r, uint32_t output) {
    for (uint32_t i = 0; r->feed.keeps_states && i < berth_dynamic_input_count(r->model); ++i)
        if (berth_dynamic_state_output(r->model, i) == output) return i;
    return UINT32_MAX;
}

static void print_output(const vm_run *r, uint32_t output) {
    const char *name = berth_dynamic_output_name(r->model, output);
    const uint32_t input = input_of_state(r, output);
    if (input != UINT32_MAX) {
        berth_cli_print("output %s: state, kept for input %s\n", name,
                        berth_dynamic_input_name(r->model, input));
        return;
    }
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
    const uint32_t input = input_of_state(r, output);
    if (input != UINT32_MAX)
        return json_pack("{s:o, s:s, s:o}", "name", berth_cli_json_text(name), "kind", "state",
                         "input", berth_cli_json_text(berth_dynamic_input_name(r->model, input)));
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

static void hear(void *user, const berth_piece_facts *piece) {
    vm_run *r = user;
    if (!r->is_timed || r->heard) return;
    const int64_t before_ns = berth_clock_ns();
    const berth_run_profile_part part = {.session = piece->session,
                                         .name = piece->name,
                                         .op = piece->op,
                                         .duration_ns = piece->duration_ns,
                                         .target = piece->target,
                                         .start_ns = piece->start_ns - r->start_ns - r->own_ns};
    r->heard = berth_run_profile_add(&r->profile, &part);
    r->own_ns += berth_clock_ns() - before_ns;
}

static berth_status compiled_ns(const vm_run *r, int64_t *out_ns) {
    berth_dynamic_report report;
    BERTH_TRY(berth_dynamic_get_report(r->model, &report, sizeof(report)));
    *out_ns = report.compile_ns;
    return BERTH_OK;
}

static berth_status run_once(vm_run *r, double *out_ms) {
    int64_t compiled_before_ns = 0, compiled_after_ns = 0;
    if (r->results) BERTH_TRY(berth_vm_feed_next(&r->feed));
    berth_results_free(r->results);
    r->results = NULL;
    r->own_ns = 0;
    BERTH_TRY(compiled_ns(r, &compiled_before_ns));
    berth_run_profile_begin(&r->profile);
    r->start_ns = berth_clock_ns();
    BERTH_TRY(berth_dynamic_run(r->model, r->feed.inputs, berth_dynamic_input_count(r->model),
                                &r->results));
    const int64_t run_ns = berth_clock_ns() - r->start_ns - r->own_ns;
    *out_ms = (double)run_ns / 1e6;
    BERTH_TRY(r->heard);
    if (!r->is_timed) return BERTH_OK;
    BERTH_TRY(compiled_ns(r, &compiled_after_ns));
    r->compile_ns += compiled_after_ns - compiled_before_ns;
    berth_run_profile_end(&r->profile, run_ns);
    return BERTH_OK;
}

static berth_status run_all(vm_run *r) {
    const berth_run_vm *options = r->options;
    double warm_ms = 0;
    r->latency_ms = berth_arena_new_array(r->arena, double, options->repeat);
    if (options->profile || options->trace) {
        BERTH_TRY(berth_run_profile_open(&r->profile));
        r->profile.keeps_events = options->trace != NULL;
        berth_dynamic_listen(r->model, hear, r);
    }
    for (uint64_t i = 0; i < options->warmup; ++i) BERTH_TRY(run_once(r, &warm_ms));
    berth_dynamic_memory memory;
    BERTH_TRY(berth_dynamic_get_memory(r->model, &memory, sizeof(memory)));
    r->untimed_count = memory.allocation_count;
    r->is_timed = true;
    for (uint64_t i = 0; i < options->repeat; ++i) BERTH_TRY(run_once(r, &r->latency_ms[i]));
    berth_latency_sort(r->latency_ms, options->repeat);
    return BERTH_OK;
}

static double quantile(const vm_run *r, double q) {
    return berth_latency_quantile(r->latency_ms, r->options->repeat, q);
}

// Milliseconds of a run, the mean, that go into neither steps nor compiling: byte code, and what is between steps.
static double rest_ms(const vm_run *r) {
    const double runs = (double)r->profile.run_count;
    return (double)(r->profile.run_ns - r->compile_ns) / 1e6 / runs -
           berth_run_profile_busy_ms(&r->profile);
}

static double blocks_per_run(const vm_run *r, const berth_dynamic_memory *memory) {
    return (double)(memory->allocation_count - r->untimed_count) / (double)r->options->repeat;
}

static berth_status print_memory(const vm_run *r) {
    berth_dynamic_memory memory;
    BERTH_TRY(berth_dynamic_get_memory(r->model, &memory, sizeof(memory)));
    berth_cli_print(
        "profile: values had at most %llu bytes at a time, in %llu bytes that were taken from "
        "the system (%llu times); %.4g blocks of them per run\n",
        (unsigned long long)memory.most_live_bytes, (unsigned long long)memory.most_reserved_bytes,
        (unsigned long long)memory.system_count, blocks_per_run(r, &memory));
    if (memory.device_count)
        berth_cli_print("profile: values in memories of other devices have %llu bytes, which were "
                        "asked for %llu times\n",
                        (unsigned long long)memory.device_reserved_bytes,
                        (unsigned long long)memory.device_count);
    return BERTH_OK;
}

static berth_status memory_json(const vm_run *r, json_t **out_json) {
    berth_dynamic_memory memory;
    BERTH_TRY(berth_dynamic_get_memory(r->model, &memory, sizeof(memory)));
    *out_json =
        json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:f}", "device_reserved_bytes",
                  (json_int_t)memory.device_reserved_bytes, "device_count",
                  (json_int_t)memory.device_count, "limit_bytes", (json_int_t)memory.limit_bytes,
                  "most_live_bytes", (json_int_t)memory.most_live_bytes, "most_reserved_bytes",
                  (json_int_t)memory.most_reserved_bytes, "system_count",
                  (json_int_t)memory.system_count, "blocks_per_run", blocks_per_run(r, &memory));
    return BERTH_OK;
}

static void print_profile(vm_run *r) {
    berth_run_profile_print(&r->profile);
    const double runs = (double)r->profile.run_count;
    uint64_t count = 0;
    for (uint32_t i = 0; i < r->profile.step_count; ++i) count += r->profile.steps[i].count;
    berth_cli_print("profile: besides, %.3f ms compiling, %.3f ms the runtime, per run of %.4g "
                    "steps\n",
                    (double)r->compile_ns / 1e6 / runs, rest_ms(r), (double)count / runs);
}

static berth_status print_text(vm_run *r) {
    berth_dynamic_report report;
    BERTH_TRY(berth_dynamic_get_report(r->model, &report, sizeof(report)));
    for (uint32_t i = 0; i < berth_dynamic_output_count(r->model); ++i) print_output(r, i);
    berth_cli_print(
        "latency: median %s ms, p90 %s ms, min %s ms over %llu runs\n",
        berth_latency_print(quantile(r, 0.5)).text, berth_latency_print(quantile(r, 0.9)).text,
        berth_latency_print(r->latency_ms[0]).text, (unsigned long long)r->options->repeat);
    berth_cli_print("executor vm: %llu instructions, %llu segments run on the devices, %llu "
                    "operations on the host (%llu of them on data), per run\n",
                    (unsigned long long)report.instructions,
                    (unsigned long long)report.segment_runs,
                    (unsigned long long)report.host_operations,
                    (unsigned long long)report.host_data_operations);
    if (r->options->profile) {
        print_profile(r);
        BERTH_TRY(print_memory(r));
    }
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

static berth_status print_json(vm_run *r) {
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
    json_t *json =
        json_pack("{s:o, s:s, s:o, s:I, s:o, s:o}", "model", berth_cli_json_text(report.model),
                  "executor", "vm", "latency_ms", latency, "runs", (json_int_t)r->options->repeat,
                  "outputs", outputs, "vm", vm);
    if (r->options->profile) {
        json_t *memory = NULL;
        BERTH_TRY(memory_json(r, &memory));
        json_object_set_new(vm, "values", memory);
        json_object_set_new(vm, "compile_ms_per_run",
                            json_real((double)r->compile_ns / 1e6 / (double)r->profile.run_count));
        json_object_set_new(vm, "runtime_ms_per_run", json_real(rest_ms(r)));
        json_object_set_new(json, "profile", berth_run_profile_json(&r->profile));
    }
    berth_cli_print_json(json);
    return BERTH_OK;
}

static berth_status run_session(vm_run *r) {
    BERTH_TRY(check_outputs(r));
    BERTH_TRY(berth_vm_feed_open(r->options->cli, r->model, r->options->values, r->options->seed,
                                 &r->feed));
    BERTH_TRY(run_all(r));
    if (r->options->require) BERTH_TRY(berth_dynamic_check_devices(r->model, r->options->require));
    BERTH_TRY(write_files(r));
    if (r->options->trace)
        BERTH_TRY(
            berth_run_profile_write_trace(&r->profile, r->options->cli->model, r->options->trace));
    return berth_cli_wants_json(r->options->cli) ? print_json(r) : print_text(r);
}

berth_status berth_run_with_vm(const berth_run_vm *options) {
    vm_run r = {.options = options, .arena = options->cli->arena};
    BERTH_TRY(berth_compiler_load_dynamic_file(options->compiler, options->cli->model,
                                               options->threads, &r.model));
    berth_dynamic_limit_memory(r.model, options->value_memory);
    berth_status status = berth_dynamic_follow(r.model, options->compiler);
    if (!status) status = run_session(&r);
    berth_run_profile_close(&r.profile);
    berth_vm_feed_close(&r.feed);
    berth_results_free(r.results);
    berth_dynamic_destroy(r.model);
    return status;
}
