// berth bench: latency and throughput of a model or a built program.
#include <berth/dynamic.h>
#include <berth/session.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "base/tensor.h"
#include "tools/bench_picture.h"
#include "tools/cli_compiler.h"
#include "tools/commands.h"
#include "tools/latency.h"
#include "tools/run_inputs.h"
#include "tools/vm_inputs.h"

typedef struct bench_command {
    berth_cli_model cli;
    int64_t duration_ns;
    uint64_t count;  // runs of each stream; 0 = for the duration
    uint64_t warmup, seed;
    uint32_t threads, streams;
    bool share;
} bench_command;

struct bench_state;

// One request after another, in a session of its own.
typedef struct stream {
    struct bench_state *bench;
    berth_session *session;
    berth_dynamic *dynamic;  // of byte code, instead
    berth_vm_feed feed;      // what it is given
    pthread_t thread;
    bool started;
    double *latency_ms;
    uint64_t count, capacity;
    int64_t end_ns;
    berth_status status;
} stream;

typedef struct bench_state {
    bench_command command;
    berth_compiler *compiler;
    berth_cli_values values;
    berth_program *program;
    stream *streams;
    atomic_uint ready;         // streams that are warm
    atomic_bool stop;          // a stream failed
    _Atomic int64_t start_ns;  // 0 = not yet
    double load_ms, open_ms, wall_ms;
    double *latency_ms;  // of all streams, sorted
    uint64_t count;
} bench_state;

enum {
    key_count = 'n',
    key_duration = 0x200,
    key_warmup,
    key_threads,
    key_streams,
    key_share,
    key_seed,
    key_batch,
    key_state,
    most_streams = 256,
};

static const struct argp_option options[] = {
    {"duration", key_duration, "TIME", 0, "Measure for so long, such as 500ms, 10s (default: 3s)",
     0},
    {"count", key_count, "N", 0, "Measure N runs of each stream instead", 0},
    {"warmup", key_warmup, "N", 0, "Runs of each stream before them (default 3)", 0},
    {"streams", key_streams, "N", 0,
     "Requests at once, each in a session of its own (default 1): throughput under load", 0},
    {"share", key_share, NULL, 0,
     "Streams share devices, threads, code and constants, as an application's requests do; what "
     "one computes on one device overlaps what another does on the next",
     0},
    {"threads", key_threads, "N", 0,
     "CPU threads of each stream, with --share of all (default: the target's cores)", 0},
    {"batch", key_batch, "N", 0,
     "The first dimension of every input that leaves it open is N; throughput is of inputs, too",
     0},
    {"state", key_state, "INPUT=OUTPUT", 0,
     BERTH_CLI_STATE ". Each run goes on from the one before, and begins anew where its bounds are "
                     "reached; of a program file, those that it was built with",
     0},
    {"seed", key_seed, "N", 0, "Seed of the random inputs (default 1)", 0},
    {"format", BERTH_CLI_KEY_FORMAT, "text|json|svg", 0, "Output (default: text)", 4},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state) {
    bench_command *command = &((bench_state *)state->input)->command;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &command->cli;
        command->cli.takes_bounds = true;
        return 0;
    case BERTH_CLI_KEY_FORMAT: berth_cli_take_format(&command->cli, arg, state); return 0;
    case key_duration:
        if (!berth_parse_time(arg, &command->duration_ns))
            berth_cli_wrong_usage(
                state, "--duration takes a time such as 500ms, 10s or 2m, not \"%s\"", arg);
        return 0;
    case ARGP_KEY_END: return 0;
    case key_count: command->count = berth_cli_number(state, "--count", arg, 1, 10000000); return 0;
    case key_warmup:
        command->warmup = berth_cli_number(state, "--warmup", arg, 0, 10000000);
        return 0;
    case key_threads:
        command->threads = (uint32_t)berth_cli_number(state, "--threads", arg, 1, 1024);
        return 0;
    case key_streams:
        command->streams = (uint32_t)berth_cli_number(state, "--streams", arg, 1, most_streams);
        return 0;
    case key_batch:
        command->cli.batch = (uint32_t)berth_cli_number(state, "--batch", arg, 1, 1 << 20);
        return 0;
    case key_share: command->share = true; return 0;
    case key_state: berth_cli_take_state(state, &command->cli, arg); return 0;
    case key_seed: command->seed = berth_cli_number(state, "--seed", arg, 0, UINT64_MAX); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

// ---- streams ------------------------------------------------------------------------------------

static berth_status note_latency(stream *s, double ms) {
    if (s->count == s->capacity) {
        uint64_t capacity = s->capacity ? 2 * s->capacity : 1024;
        double *grown = realloc(s->latency_ms, capacity * sizeof(double));
        if (!grown) return berth_status_oom();
        s->latency_ms = grown;
        s->capacity = capacity;
    }
    s->latency_ms[s->count++] = ms;
    return BERTH_OK;
}

static berth_status run_once(stream *s) {
    if (!s->dynamic) return berth_session_run(s->session, -1);
    berth_results *results = NULL;
    BERTH_TRY(berth_dynamic_run(s->dynamic, s->feed.inputs, berth_dynamic_input_count(s->dynamic),
                                &results));
    berth_results_free(results);
    return BERTH_OK;
}

static berth_status measure(stream *s, int64_t start_ns) {
    const bench_command *command = &s->bench->command;
    int64_t deadline_ns = berth_clock_deadline_ns(start_ns, command->duration_ns);
    int64_t before_ns = berth_clock_ns();
    do {
        BERTH_TRY(run_once(s));
        int64_t after_ns = berth_clock_ns();
        BERTH_TRY(note_latency(s, (double)(after_ns - before_ns) / 1e6));
        s->end_ns = before_ns = after_ns;
        if (!s->dynamic) continue;
        BERTH_TRY(berth_vm_feed_next(&s->feed));
        before_ns = berth_clock_ns();
    } while (!atomic_load(&s->bench->stop) &&
             (command->count ? s->count < command->count : before_ns < deadline_ns));
    return BERTH_OK;
}

// All streams are warm before any is measured.
static berth_status run_stream(stream *s) {
    bench_state *bench = s->bench;
    berth_status status = BERTH_OK;
    for (uint64_t i = 0; i < bench->command.warmup && !status; ++i) {
        status = run_once(s);
        if (!status && s->dynamic) status = berth_vm_feed_next(&s->feed);
    }
    if (status) atomic_store(&bench->stop, true);
    if (atomic_fetch_add(&bench->ready, 1) + 1 == bench->command.streams)
        atomic_store(&bench->start_ns, berth_clock_ns());
    int64_t start_ns = 0;
    while ((start_ns = atomic_load(&bench->start_ns)) == 0 && !atomic_load(&bench->stop)) {
        const struct timespec pause = {.tv_nsec = 20000};
        nanosleep(&pause, NULL);
    }
    if (atomic_load(&bench->stop)) return status;
    status = measure(s, start_ns);
    if (status) atomic_store(&bench->stop, true);
    return status;
}

static void *stream_main(void *user) {
    stream *s = user;
    s->status = run_stream(s);
    return NULL;
}

static berth_status start_streams(bench_state *s) {
    for (uint32_t i = 0; i < s->command.streams; ++i) {
        if (pthread_create(&s->streams[i].thread, NULL, stream_main, &s->streams[i]) != 0) {
            atomic_store(&s->stop, true);
            return berth_status_make(BERTH_OUT_OF_MEMORY,
                                     "the system gives no thread for stream %u", i);
        }
        s->streams[i].started = true;
    }
    return BERTH_OK;
}

static berth_status run_streams(bench_state *s) {
    berth_status status = start_streams(s);
    int64_t end_ns = 0;
    for (uint32_t i = 0; i < s->command.streams; ++i) {
        stream *each = &s->streams[i];
        if (!each->started) continue;
        pthread_join(each->thread, NULL);
        if (!status)
            status = each->status;
        else
            berth_status_free(each->status);
        if (each->end_ns > end_ns) end_ns = each->end_ns;
        s->count += each->count;
    }
    BERTH_TRY(status);
    s->wall_ms = (double)(end_ns - atomic_load(&s->start_ns)) / 1e6;
    s->latency_ms = berth_arena_new_array(s->command.cli.arena, double, s->count);
    uint64_t at = 0;
    for (uint32_t i = 0; i < s->command.streams; ++i)
        for (uint64_t j = 0; j < s->streams[i].count; ++j)
            s->latency_ms[at++] = s->streams[i].latency_ms[j];
    berth_latency_sort(s->latency_ms, s->count);
    return BERTH_OK;
}

// Of byte code: a program's, or of a model that is compiled as it runs, in the runs to warm up.
static berth_status open_dynamic(bench_state *s) {
    if (s->command.share)
        return berth_status_make(BERTH_UNSUPPORTED,
                                 "--share is of sessions, and the virtual machine runs this model");
    s->streams = berth_arena_new_array(s->command.cli.arena, stream, s->command.streams);
    int64_t before_ns = berth_clock_ns();
    for (uint32_t i = 0; i < s->command.streams; ++i) {
        stream *each = &s->streams[i];
        each->bench = s;
        if (s->program)
            BERTH_TRY(berth_program_load_dynamic(s->program, s->command.threads, &each->dynamic));
        else
            BERTH_TRY(berth_compiler_load_dynamic_file(s->compiler, s->command.cli.model,
                                                       s->command.threads, &each->dynamic));
        if (i == 0) s->open_ms = (double)(berth_clock_ns() - before_ns) / 1e6;
        BERTH_TRY(berth_vm_feed_open(&s->command.cli, each->dynamic, &s->values, s->command.seed,
                                     &each->feed));
    }
    return BERTH_OK;
}

static berth_status open_streams(bench_state *s) {
    if (!s->program) return open_dynamic(s);
    berth_program_facts facts;
    BERTH_TRY(berth_program_get_facts(s->program, &facts, sizeof(facts)));
    if (strcmp(facts.executor, "vm") == 0) return open_dynamic(s);
    berth_session_settings settings = {.size_bytes = sizeof(settings),
                                       .thread_count = s->command.threads,
                                       .cache_folder = berth_cli_driver_cache(&s->command.cli),
                                       .first_plan_only = 1};
    s->streams = berth_arena_new_array(s->command.cli.arena, stream, s->command.streams);
    int64_t before_ns = berth_clock_ns();
    for (uint32_t i = 0; i < s->command.streams; ++i) {
        s->streams[i].bench = s;
        BERTH_TRY(berth_session_create(s->program, &settings, &s->streams[i].session));
        if (i == 0) s->open_ms = (double)(berth_clock_ns() - before_ns) / 1e6;
        if (s->command.share) settings.share = s->streams[0].session;
        BERTH_TRY(berth_run_inputs_feed(s->streams[i].session, &s->values, s->command.seed));
    }
    return BERTH_OK;
}

// ---- results ------------------------------------------------------------------------------------

static double mean_ms(const bench_state *s) {
    double sum = 0;
    for (uint64_t i = 0; i < s->count; ++i) sum += s->latency_ms[i];
    return sum / (double)s->count;
}

static double quantile(const bench_state *s, double q) {
    return berth_latency_quantile(s->latency_ms, s->count, q);
}

static double throughput(const bench_state *s) {
    return s->wall_ms > 0 ? (double)s->count / s->wall_ms * 1e3 : 0;
}

static double predicted_ns(const bench_state *s) {
    return s->program ? berth_program_predicted_ns(s->program) : 0;
}

static const char *name_of(const bench_state *s) {
    return s->program ? berth_program_name(s->program) : s->command.cli.model;
}

// A prediction is for the cores that the target has, whatever threads it ran on.
static void print_predicted(const bench_state *s) {
    const uint32_t threads = s->command.threads;
    if (predicted_ns(s) <= 0) {
        berth_cli_print("predicted: %s\n", s->program ? "the program does not say"
                                                      : "nothing, it is compiled as it runs");
        return;
    }
    berth_cli_print("predicted: %s ms", berth_latency_print(predicted_ns(s) / 1e6).text);
    if (threads > 0)
        berth_cli_print(" on the target's cores; p50 on %u thread%s", threads,
                        threads == 1 ? "" : "s");
    else
        berth_cli_print("; p50");
    berth_cli_print(" is %.2f times that\n", quantile(s, 0.5) * 1e6 / predicted_ns(s));
}

static void print_text(const bench_state *s) {
    const bench_command *command = &s->command;
    const char *kind = !s->program                                 ? "looked at"
                       : berth_program_file_is(command->cli.model) ? "loaded"
                                                                   : "compiled";
    berth_cli_print("%s in %.1f ms, opened in %.1f ms\n", kind, s->load_ms, s->open_ms);
    berth_cli_print(
        "latency: p50 %s ms, p90 %s ms, p99 %s ms, mean %s ms, min %s ms, max %s ms\n",
        berth_latency_print(quantile(s, 0.5)).text, berth_latency_print(quantile(s, 0.9)).text,
        berth_latency_print(quantile(s, 0.99)).text, berth_latency_print(mean_ms(s)).text,
        berth_latency_print(quantile(s, 0)).text, berth_latency_print(quantile(s, 1)).text);
    berth_cli_print("throughput: %.2f runs/s: %llu run%s of %u stream%s in %.3f s, after %llu to "
                    "warm up each\n",
                    throughput(s), (unsigned long long)s->count, s->count == 1 ? "" : "s",
                    command->streams, command->streams == 1 ? "" : "s", s->wall_ms / 1e3,
                    (unsigned long long)command->warmup);
    if (command->cli.batch > 0)
        berth_cli_print("batch: %u inputs a run, %.2f inputs/s\n", command->cli.batch,
                        throughput(s) * command->cli.batch);
    print_predicted(s);
}

static json_t *report_json(const bench_state *s) {
    double predicted = predicted_ns(s);
    json_t *latency = json_pack("{s:f, s:f, s:f, s:f, s:f, s:f}", "p50", quantile(s, 0.5), "p90",
                                quantile(s, 0.9), "p99", quantile(s, 0.99), "mean", mean_ms(s),
                                "min", quantile(s, 0), "max", quantile(s, 1));
    json_t *devices = json_array();
    for (uint32_t i = 0; s->program && i < berth_program_device_count(s->program); ++i)
        json_array_append_new(devices,
                              berth_cli_json_text(berth_program_device_name(s->program, i)));
    json_t *json =
        json_pack("{s:o, s:o, s:f, s:f, s:o, s:f, s:I, s:I, s:i, s:b, s:i, s:f}", "model",
                  berth_cli_json_text(name_of(s)), "devices", devices, "load_ms", s->load_ms,
                  "open_ms", s->open_ms, "latency_ms", latency, "throughput_per_s", throughput(s),
                  "runs", (json_int_t)s->count, "warmup", (json_int_t)s->command.warmup, "streams",
                  (int)s->command.streams, "shared", s->command.share, "threads",
                  (int)s->command.threads, "wall_ms", s->wall_ms);
    if (s->command.cli.batch > 0) {
        json_object_set_new(json, "batch", json_integer(s->command.cli.batch));
        json_object_set_new(json, "inputs_per_s", json_real(throughput(s) * s->command.cli.batch));
    }
    json_object_set_new(json, "predicted_ms",
                        predicted > 0 ? json_real(predicted / 1e6) : json_null());
    json_object_set_new(json, "measured_over_predicted",
                        predicted > 0 ? json_real(quantile(s, 0.5) * 1e6 / predicted)
                                      : json_null());
    return json;
}

static void print_picture(const bench_state *s) {
    berth_strbuf text = berth_strbuf_make(s->command.cli.arena);
    const berth_bench_facts facts = {.model = name_of(s),
                                     .latency_ms = s->latency_ms,
                                     .count = s->count,
                                     .throughput_per_s = throughput(s),
                                     .streams = s->command.streams,
                                     .predicted_ms = predicted_ns(s) / 1e6};
    berth_bench_draw(&facts, &text);
    fputs(berth_strbuf_text(&text), stdout);
}

// Where no program can be made before the runs, `program` stays NULL.
static berth_status compile(bench_state *s) {
    berth_status status =
        berth_compiler_compile_file(s->compiler, s->command.cli.model, &s->program);
    const char *executor = s->command.cli.executor;
    if (!status || !berth_compiler_needs_dynamic(s->compiler) ||
        (executor && strcmp(executor, "vm") != 0))
        return status;
    berth_status_free(status);
    s->program = NULL;
    return BERTH_OK;
}

static berth_status run(void *state) {
    bench_state *s = state;
    BERTH_TRY(berth_cli_compiler_of(&s->command.cli, &s->compiler, &s->values));
    int64_t before_ns = berth_clock_ns();
    BERTH_TRY(compile(s));
    s->load_ms = (double)(berth_clock_ns() - before_ns) / 1e6;
    BERTH_TRY(open_streams(s));
    BERTH_TRY(run_streams(s));
    const char *format = s->command.cli.format ? s->command.cli.format : "text";
    if (strcmp(format, "json") == 0)
        berth_cli_print_json(report_json(s));
    else if (strcmp(format, "svg") == 0)
        print_picture(s);
    else
        print_text(s);
    return BERTH_OK;
}

static void end(void *state) {
    bench_state *s = state;
    for (uint32_t i = s->streams ? s->command.streams : 0; i-- > 0;) {  // the first is shared
        berth_session_destroy(s->streams[i].session);
        berth_vm_feed_close(&s->streams[i].feed);
        berth_dynamic_destroy(s->streams[i].dynamic);
        free(s->streams[i].latency_ms);
    }
    berth_program_release(s->program);
    berth_compiler_destroy(s->compiler);
}

int berth_cmd_bench(int argc, char **argv) {
    enum { default_seconds = 3 };
    static const struct argp_child children[] = {{&berth_cli_model_argp_no_format, 0, NULL, 0},
                                                 {0}};
    static const berth_cli_command command = {
        .argp = {options, parse, "MODEL",
                 "Measures MODEL (an ONNX file, a module as `berth opt` prints it, or a program "
                 "made by `berth build`): latency, throughput and load time, and what the cost "
                 "model predicted.\vInputs that are not given are random, seeded, of the right "
                 "shape. Load time is that of the first stream. --format=svg draws the latencies "
                 "of all runs.",
                 children, NULL, NULL},
        .run = run,
        .end = end};
    bench_state state = {.command = {.duration_ns = (int64_t)default_seconds * 1000000000,
                                     .warmup = 3,
                                     .seed = 1,
                                     .streams = 1}};
    return berth_cli_run(&command, &state, argc, argv);
}
