// berth run: runs a model or a built program and reports results, times, copies and memory.
#include <berth/session.h>
#include <berth/tensor_file.h>
#include <berth/verify.h>
#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/str.h"
#include "tools/cli_compiler.h"
#include "tools/commands.h"
#include "tools/latency.h"
#include "tools/run_inputs.h"
#include "tools/run_output.h"
#include "tools/run_profile.h"
#include "tools/run_vm.h"

typedef struct run_command {
    berth_cli_model cli;
    berth_cli_strings models;
    bool shares;                // the workspace of several models
    berth_cli_strings outputs;  // NAME=FILE
    const char *require;
    const char *require_signature;
    const char *trace;
    uint64_t repeat, warmup, seed;
    berth_cli_words device_words;
    uint32_t threads;
    uint64_t value_memory;  // bytes; 0 = any
    bool profile;
} run_command;

typedef struct run_state {
    run_command command;
    struct run_state *together;  // of --share-workspace, one per model; NULL = it is one alone
    berth_compiler *compiler;
    berth_program *program;  // as it was compiled or opened
    uint32_t plan;           // of it that runs: 0, or a fallback's number
    berth_session *session;
    double *latency_ms;  // sorted after the runs
    berth_run_profile profile;
    berth_cli_values values;
} run_state;

enum {
    key_output = 'o',
    key_repeat = 'n',
    key_require = 0x200,
    key_require_signature,
    key_warmup,
    key_trace,
    key_threads,
    key_seed,
    key_profile,
    key_device_options,
    key_share,
    key_value_memory,
    key_state
};

static const struct argp_option options[] = {
    {"output", key_output, "NAME=FILE", 0, "Write an output to a .pb or .npy file; may be repeated",
     0},
    {"repeat", key_repeat, "N", 0, "Timed runs (default 1)", 0},
    {"warmup", key_warmup, "N", 0, "Runs before them that are not timed (default 0)", 0},
    {"trace", key_trace, "FILE", 0, "Write a trace of the last run for Perfetto (ui.perfetto.dev)",
     0},
    {"profile", key_profile, NULL, 0,
     "Show every kernel and copy, longest first: time (the mean over the timed runs), what its "
     "device waited for it, "
     "the share of the device's peak (target, f32), shape",
     0},
    {"require", key_require, "DEVICE,...", 0,
     "Fail when any operation runs elsewhere, or nothing on one of them", 0},
    {"require-signature", key_require_signature, "KEY", 0,
     "Run only a program that was signed with the key whose public half is in this file", 0},
    {"threads", key_threads, "N", 0, "CPU threads (default: the target's cores)", 0},
    {"device-options", key_device_options, "DEVICE=WORDS", 0, BERTH_CLI_DEVICE_OPTIONS, 0},
    {"state", key_state, "INPUT=OUTPUT", 0,
     BERTH_CLI_STATE
     ". Each run goes on from the one before; of a program file, those that it was built with",
     0},
    {"value-memory", key_value_memory, "BYTES", 0,
     "Most memory (also 512K, 64MiB) that values of a run take from the system where shapes or "
     "control flow are the run's: what loops carry, sequences, results (default: any)",
     0},
    {"seed", key_seed, "N", 0, "Seed of the random inputs (default 1)", 0},
    {"share-workspace", key_share, NULL, 0,
     "Several models, on the same devices and with one workspace of the largest one's size, one "
     "after another; their inputs are random",
     0},
    {0},
};

static void check_several(const run_command *command, struct argp_state *state) {
    if (command->models.count > 1 && !command->shares)
        berth_cli_wrong_usage(state, "only one model, or several with --share-workspace");
    const char *unfit = command->cli.inputs.count ? "--input"
                        : command->outputs.count  ? "--output"
                        : command->trace          ? "--trace"
                                                  : NULL;
    if (command->shares && unfit)
        berth_cli_wrong_usage(state, "%s is of one model, not of several with --share-workspace",
                              unfit);
}

static error_t parse(int key, char *arg, struct argp_state *state) {
    run_command *command = &((run_state *)state->input)->command;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &command->cli;
        command->cli.takes_bounds = true;
        return 0;
    case key_share: command->shares = true; return 0;
    case ARGP_KEY_ARG:
        berth_cli_push(&command->cli, &command->models, arg);
        return command->models.count > 1 ? 0 : ARGP_ERR_UNKNOWN;  // the first is taken as the model
    case ARGP_KEY_END: check_several(command, state); return 0;
    case key_output:
        if (!berth_cli_names_file(arg))
            berth_cli_wrong_usage(state, "--output takes NAME=FILE, not \"%s\"", arg);
        berth_cli_push(&command->cli, &command->outputs, arg);
        return 0;
    case key_repeat:
        command->repeat = berth_cli_number(state, "--repeat", arg, 1, 10000000);
        return 0;
    case key_warmup:
        command->warmup = berth_cli_number(state, "--warmup", arg, 0, 10000000);
        return 0;
    case key_state: berth_cli_take_state(state, &command->cli, arg); return 0;
    case key_seed: command->seed = berth_cli_number(state, "--seed", arg, 0, UINT64_MAX); return 0;
    case key_threads:
        command->threads = (uint32_t)berth_cli_number(state, "--threads", arg, 1, 1024);
        return 0;
    case key_value_memory:
        if (!berth_parse_bytes(arg, &command->value_memory) || command->value_memory == 0)
            berth_cli_wrong_usage(state, "--value-memory \"%s\": not a number of bytes from 1",
                                  arg);
        return 0;
    case key_trace: command->trace = arg; return 0;
    case key_profile: command->profile = true; return 0;
    case key_device_options:
        berth_cli_take_device_options(state, &command->cli, &command->device_words, arg);
        return 0;
    case key_require: command->require = arg; return 0;
    case key_require_signature: command->require_signature = arg; return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

// ---- inputs and runs ----------------------------------------------------------------------------

// The plan that runs. True: it is another one than before.
static bool follow_plan(run_state *s) {
    const uint32_t before = s->plan;
    s->plan = berth_session_plan(s->session, NULL);
    return s->plan != before;
}

static berth_status check_required(const run_state *s) {
    if (!s->command.require) return BERTH_OK;
    return berth_program_check_devices(
        s->plan ? berth_program_fallback(s->program, s->plan - 1) : s->program, s->command.require);
}

static void say_fallback(void *user, const char *message) {
    (void)user;
    berth_cli_message("warning", message);
}

// A plan has steps of its own.
static berth_status begin_profile(run_state *s) {
    if (!s->command.profile) return BERTH_OK;
    berth_run_profile_close(&s->profile);
    s->profile = (berth_run_profile){0};
    return berth_run_profile_open(&s->profile);
}

static berth_status add_to_profile(run_state *s) {
    if (!s->command.profile) return BERTH_OK;
    const berth_program *plan =
        s->plan ? berth_program_fallback(s->program, s->plan - 1) : s->program;
    const berth_run_profile_part part = {.session = s->session,
                                         .target = berth_program_target(plan)};
    berth_run_profile_begin(&s->profile);
    BERTH_TRY(berth_run_profile_add(&s->profile, &part));
    berth_run_profile_end(&s->profile, berth_session_run_ns(s->session));
    return BERTH_OK;
}

static berth_status run_all(run_state *s) {
    uint64_t repeat = s->command.repeat;
    s->latency_ms = berth_arena_new_array(s->command.cli.arena, double, repeat);
    for (uint64_t i = 0; i < s->command.warmup; ++i) BERTH_TRY(berth_session_run(s->session, -1));
    follow_plan(s);
    BERTH_TRY(begin_profile(s));
    for (uint64_t i = 0; i < repeat; ++i) {
        int64_t start_ns = berth_clock_ns();
        BERTH_TRY(berth_session_run(s->session, -1));
        s->latency_ms[i] = (double)(berth_clock_ns() - start_ns) / 1e6;
        if (follow_plan(s))  // a device was lost: the steps are others from here on
            BERTH_TRY(begin_profile(s));
        BERTH_TRY(add_to_profile(s));
    }
    berth_latency_sort(s->latency_ms, repeat);
    return BERTH_OK;
}

static double quantile(const run_state *s, double q) {
    return berth_latency_quantile(s->latency_ms, s->command.repeat, q);
}

// Output `i` of the command line: its name, index and file.
static berth_status find_output(run_state *s, uint32_t i, const char **out_name,
                                uint32_t *out_index, const char **out_path) {
    const char *text = s->command.outputs.data[i];
    const char *equals = strchr(text, '=');
    *out_name = berth_arena_strndup(s->command.cli.arena, text, (size_t)(equals - text));
    *out_path = equals + 1;
    return berth_session_find_output(s->session, *out_name, out_index);
}

// Wrong names and files that cannot be are found before the model runs.
static berth_status check_outputs(run_state *s) {
    for (uint32_t i = 0; i < s->command.outputs.count; ++i) {
        const char *name = NULL, *path = NULL;
        uint32_t index = 0;
        BERTH_TRY(find_output(s, i, &name, &index, &path));
        BERTH_TRY(berth_tensor_file_check_name(path));
    }
    return BERTH_OK;
}

static berth_status write_files(run_state *s) {
    for (uint32_t i = 0; i < s->command.outputs.count; ++i) {
        const char *name = NULL, *path = NULL;
        uint32_t index = 0;
        BERTH_TRY(find_output(s, i, &name, &index, &path));
        BERTH_TRY(berth_tensor_file_write(path, name, berth_session_output(s->session, index)));
    }
    return s->command.trace ? berth_session_write_trace(s->session, s->command.trace) : BERTH_OK;
}

// Timing every step takes command lists apart (CUDA's graphs, recorded command buffers), so a run
// whose times are not asked for goes without, as an application's does.
static bool times_steps(const run_state *s) {
    return s->command.profile || s->command.trace;
}

// ---- reports ------------------------------------------------------------------------------------

// By copies, per run.
static berth_status sum_copied(const run_state *s, uint64_t *out_bytes) {
    *out_bytes = 0;
    for (uint32_t i = 0; i < berth_session_step_count(s->session); ++i) {
        berth_step_facts step;
        BERTH_TRY(berth_session_get_step(s->session, i, &step, sizeof(step)));
        *out_bytes += step.copied_bytes;
    }
    return BERTH_OK;
}

static berth_status print_devices(const run_state *s) {
    char bytes[32];
    for (uint32_t d = 0; d < berth_session_device_count(s->session); ++d) {
        berth_session_device_facts device;
        BERTH_TRY(berth_session_get_device(s->session, d, &device, sizeof(device)));
        berth_format_bytes(device.memory_bytes, bytes);
        berth_cli_print("device %s (%s): %u kernels, %u copies", device.device,
                        device.physical_name, device.kernel_count, device.copy_count);
        if (times_steps(s)) berth_cli_print(", busy %.3f ms", (double)device.busy_ns / 1e6);
        berth_cli_print(", memory %s", bytes);
        berth_format_bytes(device.peak_bytes, bytes);
        berth_cli_print(", at most %s at once\n", bytes);
    }
    return BERTH_OK;
}

static berth_status print_text(run_state *s) {
    uint64_t copied_bytes = 0;
    char bytes[32];
    BERTH_TRY(sum_copied(s, &copied_bytes));
    for (uint32_t i = 0; i < berth_program_output_count(s->program); ++i)
        berth_run_output_print(berth_session_output_name(s->session, i),
                               berth_session_output(s->session, i));
    berth_cli_print(
        "latency: median %s ms, p90 %s ms, min %s ms over %llu runs\n",
        berth_latency_print(quantile(s, 0.5)).text, berth_latency_print(quantile(s, 0.9)).text,
        berth_latency_print(s->latency_ms[0]).text, (unsigned long long)s->command.repeat);
    berth_format_bytes(copied_bytes, bytes);
    berth_cli_print("copied per run: %s\n", bytes);
    BERTH_TRY(print_devices(s));
    if (s->command.profile) berth_run_profile_print(&s->profile);
    return BERTH_OK;
}

static berth_status devices_json(const run_state *s, json_t *devices) {
    for (uint32_t d = 0; d < berth_session_device_count(s->session); ++d) {
        berth_session_device_facts device;
        BERTH_TRY(berth_session_get_device(s->session, d, &device, sizeof(device)));
        json_t *name = berth_cli_json_text(device.device);
        json_t *facts = json_pack(
            "{s:i, s:i, s:I, s:I, s:o}", "kernels", (int)device.kernel_count, "copies",
            (int)device.copy_count, "memory_bytes", (json_int_t)device.memory_bytes, "peak_bytes",
            (json_int_t)device.peak_bytes, "physical", berth_cli_json_text(device.physical_name));
        if (times_steps(s))
            json_object_set_new(facts, "busy_ms", json_real((double)device.busy_ns / 1e6));
        json_object_set_new(devices, json_string_value(name), facts);
        json_decref(name);
    }
    return BERTH_OK;
}

static json_t *report_json(run_state *s, json_t *devices, uint64_t copied_bytes) {
    json_t *outputs = json_array();
    for (uint32_t i = 0; i < berth_program_output_count(s->program); ++i)
        json_array_append_new(outputs,
                              berth_run_output_json(berth_session_output_name(s->session, i),
                                                    berth_session_output(s->session, i)));
    json_t *latency = json_pack("{s:f, s:f, s:f}", "median", quantile(s, 0.5), "p90",
                                quantile(s, 0.9), "min", s->latency_ms[0]);
    const char *reason = NULL;
    uint32_t plan = berth_session_plan(s->session, &reason);
    json_t *json = json_pack("{s:o, s:o, s:I, s:o, s:I, s:O}", "model",
                             berth_cli_json_text(berth_program_name(s->program)), "latency_ms",
                             latency, "runs", (json_int_t)s->command.repeat, "outputs", outputs,
                             "copied_bytes", (json_int_t)copied_bytes, "devices", devices);
    if (plan)
        json_object_set_new(
            json, "fallback",
            json_pack("{s:i, s:o}", "number", (int)plan, "reason", berth_cli_json_text(reason)));
    if (s->command.profile)
        json_object_set_new(json, "profile", berth_run_profile_json(&s->profile));
    return json;
}

static berth_status make_json(run_state *s, json_t **out_json) {
    uint64_t copied_bytes = 0;
    BERTH_TRY(sum_copied(s, &copied_bytes));
    json_t *devices = json_object();
    berth_status status = devices_json(s, devices);
    if (!status) *out_json = report_json(s, devices, copied_bytes);
    json_decref(devices);
    return status;
}

static berth_status print_json(run_state *s) {
    json_t *json = NULL;
    BERTH_TRY(make_json(s, &json));
    berth_cli_print_json(json);
    return BERTH_OK;
}

static berth_session_settings settings_of(const run_state *s) {
    return (berth_session_settings){.size_bytes = sizeof(berth_session_settings),
                                    .thread_count = s->command.threads,
                                    .profile = times_steps(s),
                                    .cache_folder = berth_cli_driver_cache(&s->command.cli),
                                    .device_words = s->command.device_words.data,
                                    .device_word_count = s->command.device_words.count,
                                    .on_message = say_fallback};
}

static berth_status run_session(run_state *s) {
    follow_plan(s);
    BERTH_TRY(check_required(s));
    BERTH_TRY(check_outputs(s));
    BERTH_TRY(berth_run_inputs_feed(s->session, &s->values, s->command.seed));
    BERTH_TRY(run_all(s));
    return check_required(s);
}

static berth_status run_model(run_state *s) {
    if (berth_program_fallback_count(s->program) == 0) BERTH_TRY(check_required(s));
    const berth_session_settings settings = settings_of(s);
    BERTH_TRY(berth_session_create(s->program, &settings, &s->session));
    BERTH_TRY(run_session(s));
    berth_interrupt interrupt = berth_cli_interrupt(&s->command.cli);
    berth_interrupt_defer(interrupt, true);
    berth_status status = write_files(s);
    berth_interrupt_defer(interrupt, false);
    return status;
}

static berth_status run_by_vm(run_state *s) {
    const run_command *command = &s->command;
    berth_run_vm vm = {.cli = &s->command.cli,
                       .values = &s->values,
                       .compiler = s->compiler,
                       .outputs = &s->command.outputs,
                       .require = command->require,
                       .trace = command->trace,
                       .profile = command->profile,
                       .repeat = command->repeat,
                       .warmup = command->warmup,
                       .seed = command->seed,
                       .threads = command->threads,
                       .value_memory = command->value_memory};
    return berth_run_with_vm(&vm);
}

// ---- several models with one workspace ----------------------------------------------------------

static berth_status print_together(const run_state *s) {
    const uint32_t count = s->command.models.count;
    const uint64_t bytes = berth_session_common_workspace_bytes(s->together[0].session);
    char text[32];
    if (berth_cli_wants_json(&s->command.cli)) {
        json_t *models = json_array();
        berth_status status = BERTH_OK;
        for (uint32_t i = 0; i < count && !status; ++i) {
            json_t *model = NULL;
            status = make_json(&s->together[i], &model);
            if (!status) json_array_append_new(models, model);
        }
        if (!status)
            berth_cli_print_json(
                json_pack("{s:O, s:I}", "models", models, "workspace_bytes", (json_int_t)bytes));
        json_decref(models);
        return status;
    }
    for (uint32_t i = 0; i < count; ++i) {
        berth_cli_print("model %s\n", s->together[i].command.cli.model);
        BERTH_TRY(print_text(&s->together[i]));
    }
    berth_format_bytes(bytes, text);
    berth_cli_print("workspace of all: %s\n", text);
    return BERTH_OK;
}

static berth_status compile_one(run_state *s) {
    BERTH_TRY(berth_cli_compiler_of(&s->command.cli, &s->compiler, &s->values));
    BERTH_TRY(berth_compiler_set(s->compiler, "required_key", s->command.require_signature));
    BERTH_TRY(berth_status_prefix(
        berth_compiler_compile_file(s->compiler, s->command.cli.model, &s->program), "%s",
        s->command.cli.model));
    return berth_program_fallback_count(s->program) ? BERTH_OK : check_required(s);
}

static berth_status run_together(run_state *s) {
    berth_arena *arena = s->command.cli.arena;
    const uint32_t count = s->command.models.count;
    const run_state first = *s;
    berth_program **programs = berth_arena_array(arena, count, sizeof(berth_program *));
    berth_session **sessions = berth_arena_array(arena, count, sizeof(berth_session *));
    s->together = berth_arena_new_array(arena, run_state, count);
    for (uint32_t i = 0; i < count; ++i) {
        s->together[i] = first;
        s->together[i].command.cli.model = s->command.models.data[i];
        BERTH_TRY(compile_one(&s->together[i]));
        programs[i] = s->together[i].program;
    }
    const berth_session_settings settings = settings_of(s);
    BERTH_TRY(berth_session_create_together(programs, count, &settings, sessions));
    for (uint32_t i = 0; i < count; ++i) s->together[i].session = sessions[i];
    for (uint32_t i = 0; i < count; ++i)
        BERTH_TRY(
            berth_status_prefix(run_session(&s->together[i]), "%s", s->command.models.data[i]));
    return print_together(s);
}

static berth_status run(void *state) {
    run_state *s = state;
    bool json = berth_cli_wants_json(&s->command.cli);
    const char *executor = s->command.cli.executor;
    if (s->command.shares) return run_together(s);
    BERTH_TRY(berth_cli_compiler_of(&s->command.cli, &s->compiler, &s->values));
    BERTH_TRY(berth_compiler_set(s->compiler, "required_key", s->command.require_signature));
    BERTH_TRY(berth_compiler_set(s->compiler, "required_devices", s->command.require));
    if (s->command.cli.states.count ||
        (executor ? strcmp(executor, "vm") == 0 : s->command.cli.bounds.count > 0))
        return run_by_vm(s);
    berth_status status =
        berth_compiler_compile_file(s->compiler, s->command.cli.model, &s->program);
    if (status && berth_compiler_needs_dynamic(s->compiler) && !executor) {
        berth_status_free(status);
        return run_by_vm(s);
    }
    BERTH_TRY(status);
    berth_program_facts facts;
    BERTH_TRY(berth_program_get_facts(s->program, &facts, sizeof(facts)));
    if (strcmp(facts.executor, "vm") == 0) return run_by_vm(s);
    BERTH_TRY(run_model(s));
    return json ? print_json(s) : print_text(s);
}

static void end(void *state) {
    run_state *s = state;
    for (uint32_t i = 0; s->together && i < s->command.models.count; ++i) end(&s->together[i]);
    berth_run_profile_close(&s->profile);
    berth_session_destroy(s->session);
    berth_program_release(s->program);
    berth_compiler_destroy(s->compiler);
}

int berth_cmd_run(int argc, char **argv) {
    static const struct argp_child children[] = {{&berth_cli_model_argp, 0, NULL, 0}, {0}};
    static const berth_cli_command command = {
        .argp = {options, parse, "MODEL\nMODEL... --share-workspace",
                 "Runs MODEL (an ONNX file, a module as `berth opt` prints it, or a program made "
                 "by `berth "
                 "build`).\vInputs that are "
                 "not given are random, seeded, of the right shape. Each output's shape, range and "
                 "five largest elements are shown.",
                 children, NULL, NULL},
        .run = run,
        .end = end};
    run_state state = {.command = {.repeat = 1, .seed = 1}};
    return berth_cli_run(&command, &state, argc, argv);
}
