// What the memory plan of real models gains from each of its parts, and what it costs: a row of a
// table per model, for the CPU. Nothing is compiled or run. The time is that of the whole packaging
// pass (sharing, order, offsets), the least of five.
//
//   bench_plan MODEL[,NAME=EXTENT...]...
//   bench_plan ../shared/models/mnist/model.onnx bert.onnx,batch=1,seq=128
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "toolkit/model.h"

enum { most_dims = 8, rounds = 5 };

static void note_time(void *user, const berth_pass *pass, const berth_module *module,
                      int64_t elapsed_ns) {
    int64_t *best_ns = user;
    (void)module;
    if (strcmp(pass->name, "package") == 0 && elapsed_ns < *best_ns) *best_ns = elapsed_ns;
}

static double kib(uint64_t bytes) {
    return (double)bytes / 1024.0;
}

static void print_row(const char *name, const berth_model *model, int64_t best_ns) {
    const berth_program *program = berth_model_program(model);
    const berth_memory_report *memory = berth_model_memory(model);
    uint64_t planned = 0;
    uint64_t bound = 0;
    for (uint32_t i = 0; i < program->pool_count; ++i) {
        if (program->pools[i].usage != BERTH_POOL_WORKSPACE) continue;
        planned += program->pools[i].size_bytes;
        bound += program->pools[i].lower_bound_bytes;
    }
    printf(
        "| %s | %u | %.1f | %.1f (%u) | %.1f (%u, %.1f) | %.1f | %.1f | %.1f | %.2f%% | %.1f |\n",
        name, program->step_count + memory->removed_steps, kib(memory->plain_bytes),
        kib(memory->in_place_bytes), memory->in_place_count, kib(memory->views_bytes),
        memory->removed_steps, kib(memory->removed_bytes), kib(memory->ordered_bytes), kib(planned),
        kib(bound), bound ? 100.0 * (double)(planned - bound) / (double)bound : 0.0,
        (double)best_ns / 1e6);
}

// "PATH,NAME=EXTENT,..." taken apart in place.
static uint32_t parse_dims(char *text, berth_dim_binding *dims) {
    uint32_t count = 0;
    char *at = strchr(text, ',');
    while (at && count < most_dims) {
        *at++ = 0;
        char *equals = strchr(at, '=');
        if (!equals) break;
        *equals = 0;
        dims[count++] = (berth_dim_binding){.name = at, .extent = strtoll(equals + 1, NULL, 10)};
        at = strchr(equals + 1, ',');
    }
    return count;
}

// The folder's name where the file is a "model.onnx".
static const char *short_name(char *path) {
    char *slash = strrchr(path, '/');
    if (!slash) return path;
    if (strcmp(slash + 1, "model.onnx") != 0) return slash + 1;
    *slash = 0;
    const char *folder = strrchr(path, '/');
    return folder ? folder + 1 : path;
}

static int measure(char *text) {
    berth_dim_binding dims[most_dims];
    berth_model_options options = {.target = "cpu"};
    int64_t best_ns = INT64_MAX;
    berth_pass_instrument instrument = {.after = note_time, .user = &best_ns};
    options.import.dim_count = parse_dims(text, dims);
    options.import.dims = dims;
    options.compile.plan_only = true;
    options.compile.instruments = &instrument;
    options.compile.instrument_count = 1;
    berth_model *model = NULL;
    for (int round = 0; round < rounds; ++round) {
        berth_model_destroy(model);
        model = NULL;
        berth_status status = berth_model_load(text, &options, &model);
        if (!status) continue;
        fprintf(stderr, "bench_plan: %s: %s\n", text, berth_status_message(status));
        berth_status_free(status);
        return 1;
    }
    print_row(short_name(text), model, best_ns);
    berth_model_destroy(model);
    return 0;
}

int main(int argc, char **argv) {
    int exit_status = 0;
    if (argc < 2) {
        fprintf(stderr, "usage: bench_plan MODEL[,NAME=EXTENT...]...\n");
        return 2;
    }
    printf(
        "| model | steps | each value alone | over operands | parts in wholes (steps less, KiB not "
        "copied) | ordered | no order below | planned | gap | ms |\n");
    printf("|---|---|---|---|---|---|---|---|---|---|\n");
    for (int i = 1; i < argc; ++i) exit_status |= measure(argv[i]);
    return exit_status;
}
