// berth simulate: a model's schedule on the machine that a target describes, which may be absent.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "toolkit/simulate.h"
#include "tools/cli_model.h"
#include "tools/commands.h"
#include "tools/latency.h"

typedef struct simulate_command {
    berth_cli_model cli;
    const char *trace;
    const char *output;
    uint32_t requests, streams;
    double rate;  // per second; 0 = all at once
    berth_model *model;
    berth_simulation simulation;
} simulate_command;

enum { key_output = 'o', key_requests = 'n', key_rate = 0x700, key_streams, key_trace };

static const struct argp_option options[] = {
    {"requests", key_requests, "N", 0, "Requests, one after the other (default 1)", 0},
    {"rate", key_rate, "R", 0,
     "Requests come at this rate per second, evenly, and wait where they must (default: all are "
     "there at the start; with --rate 100 requests)",
     0},
    {"streams", key_streams, "N", 0, "Sessions, each running one request at a time (default 1)", 0},
    {"trace", key_trace, "FILE", 0, "Write a trace for Perfetto (ui.perfetto.dev)", 0},
    {"output", key_output, "FILE.svg", 0, "Draw the timeline", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state) {
    simulate_command *command = state->input;
    char *end = NULL;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &command->cli; return 0;
    case key_requests:
        command->requests = (uint32_t)berth_cli_number(state, "--requests", arg, 1, 1000000);
        return 0;
    case key_streams:
        command->streams = (uint32_t)berth_cli_number(state, "--streams", arg, 1, 64);
        return 0;
    case key_rate:
        command->rate = strtod(arg, &end);
        if (end == arg || *end || !(command->rate > 0) || command->rate > 1e9)
            berth_cli_wrong_usage(
                state, "--rate takes requests per second, such as 30 or 0.5, not \"%s\"", arg);
        return 0;
    case key_trace: command->trace = arg; return 0;
    case key_output: command->output = arg; return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static double quantile_ms(const berth_simulation *s, double q) {
    return berth_latency_quantile(s->sorted_latency_ns, s->load.requests, q) / 1e6;
}

static double throughput(const berth_simulation *s) {
    return s->result.end_ns > 0 ? s->load.requests / s->result.end_ns * 1e9 : 0;
}

static double utilisation(const berth_simulation *s, uint32_t resource) {
    return s->result.end_ns > 0 ? s->result.busy_ns[resource] / s->result.end_ns : 0;
}

// ---- text ---------------------------------------------------------------------------------------

static void print_timeline(const berth_simulation *s) {
    const berth_program *program = berth_model_program(s->model);
    berth_cli_print("%12s %12s  %-24s step (operators), of the first request\n", "start us", "us",
                    "on");
    for (uint32_t i = 0; i < program->step_count; ++i) {
        const berth_sim_event *event = &s->result.events[i];
        berth_cli_print("%12.1f %12.1f  %-24s %s (%s)\n", event->start_ns / 1e3,
                        (event->end_ns - event->start_ns) / 1e3, s->resources[s->tasks[i].resource],
                        program->steps[i].name, program->steps[i].op);
    }
}

static void print_peak(const berth_simulation *s, uint32_t memory) {
    char bytes[32];
    if (s->memories && s->memories[memory].count) {
        berth_format_bytes_f64(s->memories[memory].peak_bytes, bytes);
        berth_cli_print(", intermediate values: at most %s, at %.3f ms", bytes,
                        s->memories[memory].peak_ns / 1e6);
    }
    berth_cli_print("\n");
}

static void print_text(const berth_simulation *s) {
    const berth_multi_target *target = berth_model_target(s->model);
    print_timeline(s);
    berth_cli_print("%u requests, %u streams: %.3f ms, %.2f requests per second\n",
                    s->load.requests, s->load.streams, s->result.end_ns / 1e6, throughput(s));
    berth_cli_print("latency: p50 %.3f ms, p90 %.3f ms, p99 %.3f ms\n", quantile_ms(s, 0.5),
                    quantile_ms(s, 0.9), quantile_ms(s, 0.99));
    for (uint32_t r = 0; r < s->resource_count; ++r)
        if (s->result.busy_ns[r] > 0)
            berth_cli_print("busy %5.1f%%  %s\n", 100 * utilisation(s, r), s->resources[r]);
    for (uint32_t m = 0; m < target->memory_count; ++m) {
        char bytes[32], capacity[32];
        if (s->memory_bytes[m] <= 0) continue;
        berth_format_bytes_f64(s->memory_bytes[m], bytes);
        berth_format_bytes(target->memories[m].capacity_bytes, capacity);
        berth_cli_print("memory %s: %s%s%s", target->memories[m].name, bytes,
                        target->memories[m].capacity_bytes ? " of " : "",
                        target->memories[m].capacity_bytes ? capacity : "");
        print_peak(s, m);
    }
}

// ---- JSON ---------------------------------------------------------------------------------------

static json_t *events_json(const berth_simulation *s) {
    const berth_program *program = berth_model_program(s->model);
    json_t *list = json_array();
    for (uint32_t i = 0; i < s->result.event_count; ++i) {
        const berth_sim_event *event = &s->result.events[i];
        const berth_program_step *step = &program->steps[event->task];
        json_array_append_new(
            list,
            json_pack("{s:i, s:o, s:o, s:s, s:o, s:b, s:f, s:f}", "request", (int)event->request,
                      "step", berth_cli_json_text(step->name), "op", berth_cli_json_text(step->op),
                      "device", program->devices[step->device].name, "on",
                      berth_cli_json_text(s->resources[s->tasks[event->task].resource]), "copy",
                      step->kind == BERTH_STEP_COPY, "start_us", event->start_ns / 1e3, "end_us",
                      event->end_ns / 1e3));
    }
    return list;
}

static json_t *memory_json(const berth_simulation *s, uint32_t m) {
    const berth_target_memory *memory = &berth_model_target(s->model)->memories[m];
    json_t *json =
        json_pack("{s:o, s:f, s:I}", "name", berth_cli_json_text(memory->name), "bytes",
                  s->memory_bytes[m], "capacity_bytes", (json_int_t)memory->capacity_bytes);
    if (!s->memories) return json;
    json_object_set_new(json, "fixed_bytes", json_real(s->memories[m].fixed_bytes));
    json_object_set_new(json, "peak_bytes", json_real(s->memories[m].peak_bytes));
    json_object_set_new(json, "peak_ms", json_real(s->memories[m].peak_ns / 1e6));
    return json;
}

static json_t *report_json(const berth_simulation *s) {
    const berth_multi_target *target = berth_model_target(s->model);
    json_t *busy = json_array(), *memory = json_array();
    for (uint32_t r = 0; r < s->resource_count; ++r)
        if (s->result.busy_ns[r] > 0)
            json_array_append_new(busy, json_pack("{s:o, s:f, s:f}", "name",
                                                  berth_cli_json_text(s->resources[r]), "busy_ms",
                                                  s->result.busy_ns[r] / 1e6, "utilisation",
                                                  utilisation(s, r)));
    for (uint32_t m = 0; m < target->memory_count; ++m)
        json_array_append_new(memory, memory_json(s, m));
    json_t *latency = json_pack("{s:f, s:f, s:f}", "p50", quantile_ms(s, 0.5), "p90",
                                quantile_ms(s, 0.9), "p99", quantile_ms(s, 0.99));
    return json_pack("{s:o, s:i, s:i, s:f, s:f, s:o, s:o, s:o, s:o}", "model",
                     berth_cli_json_text(berth_model_program(s->model)->name), "requests",
                     (int)s->load.requests, "streams", (int)s->load.streams, "total_ms",
                     s->result.end_ns / 1e6, "throughput_per_s", throughput(s), "latency_ms",
                     latency, "resources", busy, "memories", memory, "events", events_json(s));
}

// ---- the command --------------------------------------------------------------------------------

static berth_status write_files(simulate_command *command) {
    berth_arena *arena = command->cli.arena;
    if (command->trace)
        BERTH_TRY(berth_simulation_write_trace(arena, &command->simulation, command->trace));
    if (!command->output) return BERTH_OK;
    berth_strbuf picture = berth_strbuf_make(arena);
    berth_simulation_draw(&command->simulation, &picture);
    return berth_file_write(command->output, picture.data, picture.length);
}

static berth_status run(void *state) {
    simulate_command *command = state;
    enum { many = 100 };
    berth_model_options model_options;
    bool json = berth_cli_wants_json(&command->cli);
    BERTH_TRY(berth_cli_model_options(&command->cli, true, &model_options));
    model_options.only_these_inputs = true;
    model_options.compile.plan_only = true;
    BERTH_TRY(berth_model_load(command->cli.model, &model_options, &command->model));
    berth_sim_load load = {.requests = command->requests, .streams = command->streams};
    if (!load.requests) load.requests = command->rate > 0 ? many : 1;
    if (command->rate > 0) load.interval_ns = 1e9 / command->rate;
    BERTH_TRY(
        berth_model_simulate(command->cli.arena, command->model, &load, &command->simulation));
    BERTH_TRY(write_files(command));
    if (json)
        berth_cli_print_json(report_json(&command->simulation));
    else
        print_text(&command->simulation);
    return BERTH_OK;
}

static void end(void *state) {
    berth_model_destroy(((simulate_command *)state)->model);
}

int berth_cmd_simulate(int argc, char **argv) {
    static const struct argp_child children[] = {{&berth_cli_model_argp, 0, NULL, 0}, {0}};
    static const berth_cli_command command = {
        .argp =
            {options, parse, "MODEL",
             "Shows how MODEL would run on the machine that the target describes: its schedule "
             "as discrete events, with predicted times. The machine need not be here.\v"
             "Devices that share what they compute with, links of one bus and requests wait for "
             "each other. Memory is that of the sessions' pools, which stay for as long as they "
             "are open.",
             children, NULL, NULL},
        .run = run,
        .end = end};
    simulate_command state = {.streams = 1};
    return berth_cli_run(&command, &state, argc, argv);
}
