// berth simulate: a model's schedule on the machine that a target describes, which may be absent.
#include <berth/simulate.h>
#include <stdlib.h>

#include "base/str.h"
#include "tools/cli_compiler.h"
#include "tools/commands.h"

typedef struct simulate_command {
    berth_cli_model cli;
    const char *trace;
    const char *output;
    uint32_t requests, streams;
    double rate;  // per second; 0 = all at once
    berth_compiler *compiler;
    berth_simulation_info *simulation;
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

static double quantile_ms(const berth_simulation_info *s, double q) {
    return berth_simulation_info_latency_ns(s, q) / 1e6;
}

static double end_ms(const berth_simulation_info *s) {
    return berth_simulation_info_end_ns(s) / 1e6;
}

static double throughput(const berth_simulation_info *s) {
    double end_ns = berth_simulation_info_end_ns(s);
    return end_ns > 0 ? berth_simulation_info_request_count(s) / end_ns * 1e9 : 0;
}

static double utilisation(const berth_simulation_info *s, uint32_t resource) {
    double end_ns = berth_simulation_info_end_ns(s);
    return end_ns > 0 ? berth_simulation_info_resource(s, resource)->busy_ns / end_ns : 0;
}

// ---- text ---------------------------------------------------------------------------------------

static berth_status print_timeline(const berth_simulation_info *s) {
    berth_cli_print("%12s %12s  %-24s step (operators), of the first request\n", "start us", "us",
                    "on");
    for (uint32_t i = 0; i < berth_simulation_info_event_count(s); ++i) {
        berth_simulation_event event;
        BERTH_TRY(berth_simulation_info_get_event(s, i, &event, sizeof(event)));
        if (event.request > 0) break;
        berth_cli_print("%12.1f %12.1f  %-24s %s (%s)\n", event.start_ns / 1e3,
                        (event.end_ns - event.start_ns) / 1e3, event.resource, event.step,
                        event.op);
    }
    return BERTH_OK;
}

static void print_memory(const berth_simulation_memory *memory) {
    char bytes[32], capacity[32];
    if (memory->size_bytes <= 0) return;
    berth_format_bytes_f64(memory->size_bytes, bytes);
    berth_format_bytes(memory->capacity_bytes, capacity);
    berth_cli_print("memory %s: %s%s%s", memory->name, bytes, memory->capacity_bytes ? " of " : "",
                    memory->capacity_bytes ? capacity : "");
    if (memory->peak_bytes > 0) {
        berth_format_bytes_f64(memory->peak_bytes, bytes);
        berth_cli_print(", intermediate values: at most %s, at %.3f ms", bytes,
                        memory->peak_ns / 1e6);
    }
    berth_cli_print("\n");
}

static berth_status print_text(const berth_simulation_info *s) {
    BERTH_TRY(print_timeline(s));
    berth_cli_print("%u requests, %u streams: %.3f ms, %.2f requests per second\n",
                    berth_simulation_info_request_count(s), berth_simulation_info_stream_count(s),
                    end_ms(s), throughput(s));
    berth_cli_print("latency: p50 %.3f ms, p90 %.3f ms, p99 %.3f ms\n", quantile_ms(s, 0.5),
                    quantile_ms(s, 0.9), quantile_ms(s, 0.99));
    for (uint32_t r = 0; r < berth_simulation_info_resource_count(s); ++r) {
        const berth_simulation_resource *resource = berth_simulation_info_resource(s, r);
        if (resource->busy_ns > 0)
            berth_cli_print("busy %5.1f%%  %s\n", 100 * utilisation(s, r), resource->name);
    }
    for (uint32_t m = 0; m < berth_simulation_info_memory_count(s); ++m)
        print_memory(berth_simulation_info_memory(s, m));
    return BERTH_OK;
}

// ---- JSON ---------------------------------------------------------------------------------------

static berth_status events_json(const berth_simulation_info *s, json_t *list) {
    for (uint32_t i = 0; i < berth_simulation_info_event_count(s); ++i) {
        berth_simulation_event event;
        BERTH_TRY(berth_simulation_info_get_event(s, i, &event, sizeof(event)));
        json_array_append_new(
            list, json_pack("{s:i, s:o, s:o, s:s, s:o, s:b, s:f, s:f}", "request",
                            (int)event.request, "step", berth_cli_json_text(event.step), "op",
                            berth_cli_json_text(event.op), "device", event.device, "on",
                            berth_cli_json_text(event.resource), "copy", event.is_copy, "start_us",
                            event.start_ns / 1e3, "end_us", event.end_ns / 1e3));
    }
    return BERTH_OK;
}

static json_t *memory_json(const berth_simulation_memory *memory) {
    json_t *json =
        json_pack("{s:o, s:f, s:I}", "name", berth_cli_json_text(memory->name), "bytes",
                  memory->size_bytes, "capacity_bytes", (json_int_t)memory->capacity_bytes);
    if (!memory->is_followed) return json;
    json_object_set_new(json, "fixed_bytes", json_real(memory->fixed_bytes));
    json_object_set_new(json, "peak_bytes", json_real(memory->peak_bytes));
    json_object_set_new(json, "peak_ms", json_real(memory->peak_ns / 1e6));
    return json;
}

static berth_status print_json(const berth_simulation_info *s) {
    json_t *busy = json_array(), *memory = json_array(), *events = json_array();
    for (uint32_t r = 0; r < berth_simulation_info_resource_count(s); ++r) {
        const berth_simulation_resource *resource = berth_simulation_info_resource(s, r);
        if (resource->busy_ns > 0)
            json_array_append_new(busy, json_pack("{s:o, s:f, s:f}", "name",
                                                  berth_cli_json_text(resource->name), "busy_ms",
                                                  resource->busy_ns / 1e6, "utilisation",
                                                  utilisation(s, r)));
    }
    for (uint32_t m = 0; m < berth_simulation_info_memory_count(s); ++m)
        json_array_append_new(memory, memory_json(berth_simulation_info_memory(s, m)));
    json_t *latency = json_pack("{s:f, s:f, s:f}", "p50", quantile_ms(s, 0.5), "p90",
                                quantile_ms(s, 0.9), "p99", quantile_ms(s, 0.99));
    berth_status status = events_json(s, events);
    json_t *json = json_pack("{s:o, s:i, s:i, s:f, s:f, s:o, s:o, s:o, s:o}", "model",
                             berth_cli_json_text(berth_simulation_info_name(s)), "requests",
                             (int)berth_simulation_info_request_count(s), "streams",
                             (int)berth_simulation_info_stream_count(s), "total_ms", end_ms(s),
                             "throughput_per_s", throughput(s), "latency_ms", latency, "resources",
                             busy, "memories", memory, "events", events);
    if (status)
        json_decref(json);
    else
        berth_cli_print_json(json);
    return status;
}

// ---- the command --------------------------------------------------------------------------------

static berth_status run(void *state) {
    simulate_command *command = state;
    enum { many = 100 };
    bool json = berth_cli_wants_json(&command->cli);
    berth_simulation_load load = {.size_bytes = sizeof(load),
                                  .requests = command->requests,
                                  .streams = command->streams,
                                  .requests_per_s = command->rate};
    if (!load.requests && command->rate > 0) load.requests = many;
    BERTH_TRY(berth_cli_compiler(&command->cli, true, &command->compiler));
    BERTH_TRY(berth_compiler_simulate_file(command->compiler, command->cli.model, &load,
                                           &command->simulation));
    if (command->trace)
        BERTH_TRY(berth_simulation_info_write_trace(command->simulation, command->trace));
    if (command->output)
        BERTH_TRY(berth_simulation_info_write_svg(command->simulation, command->output));
    return json ? print_json(command->simulation) : print_text(command->simulation);
}

static void end(void *state) {
    simulate_command *command = state;
    berth_simulation_info_free(command->simulation);
    berth_compiler_destroy(command->compiler);
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
