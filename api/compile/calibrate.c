// Measured costs (<berth/calibrate.h>).
#include <berth/calibrate.h>
#include <string.h>

#include "api/compile/compiler.h"
#include "toolkit/calibrate.h"

struct berth_costs {
    berth_arena *arena;  // of this struct
    berth_cost_table *table;
};

typedef struct costs_job {
    berth_arena *arena;
    berth_costs *costs;
    const berth_costs *others;
    const char *path;
    berth_calibrate_options *options;
    const berth_calibrate_settings *settings;
} costs_job;

static berth_status make(void *user) {
    costs_job *job = user;
    job->costs = berth_arena_new(job->arena, berth_costs);
    job->costs->arena = job->arena;
    job->costs->table = berth_cost_table_create(job->arena);
    return BERTH_OK;
}

berth_status berth_costs_create(berth_costs **out_costs) {
    *out_costs = NULL;
    costs_job job = {.arena = NULL};
    BERTH_TRY(berth_arena_make(make, &job, &job.arena));
    *out_costs = job.costs;
    return BERTH_OK;
}

void berth_costs_destroy(berth_costs *costs) {
    if (costs) berth_arena_destroy(costs->arena);
}

static berth_status read(void *user) {
    const costs_job *job = user;
    return berth_cost_table_read(job->costs->table, job->path);
}

berth_status berth_costs_read(berth_costs *costs, const char *path) {
    costs_job job = {.costs = costs, .path = path};
    return berth_arena_try(costs->arena, read, &job);
}

static berth_status add_missing(void *user) {
    const costs_job *job = user;
    berth_cost_table_add_missing(job->costs->table, job->others->table);
    return BERTH_OK;
}

berth_status berth_costs_add_missing(berth_costs *costs, const berth_costs *others) {
    costs_job job = {.costs = costs, .others = others};
    return berth_arena_try(costs->arena, add_missing, &job);
}

static berth_status save(void *user) {
    const costs_job *job = user;
    return berth_cost_table_write(job->others->table, job->path);
}

berth_status berth_costs_save(const berth_costs *costs, const char *path) {
    costs_job job = {.others = costs, .path = path};
    return berth_arena_try(costs->arena, save, &job);
}

uint32_t berth_costs_count(const berth_costs *costs) {
    return berth_cost_table_count(costs->table);
}

static berth_status calibrate(void *user) {
    costs_job *job = user;
    uint32_t count = job->settings->device_word_count;
    berth_session_binding *bindings =
        berth_arena_new_array(job->costs->arena, berth_session_binding, count + 1);
    for (uint32_t i = 0; i < count; ++i)
        bindings[i] = (berth_session_binding){.name = job->settings->device_words[i].device,
                                              .attributes = job->settings->device_words[i].words};
    job->options->bindings = bindings;
    job->options->binding_count = count;
    return berth_calibrate(job->path, job->options, job->costs->table);
}

berth_status berth_compiler_calibrate(berth_compiler *compiler, const char *path,
                                      const berth_calibrate_settings *settings,
                                      berth_costs *costs) {
    berth_calibrate_settings wanted = {.size_bytes = 0};
    if (settings &&
        (settings->size_bytes < sizeof(size_t) || settings->size_bytes > sizeof(wanted)))
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "berth_calibrate_settings.size_bytes is %zu; set it to "
                                 "sizeof(berth_calibrate_settings), %zu in this version",
                                 settings->size_bytes, sizeof(wanted));
    if (settings) memcpy(&wanted, settings, settings->size_bytes);
    berth_calibrate_options options = {.duration_ns = wanted.duration_ns,
                                       .seed = wanted.seed,
                                       .by_model = wanted.by_model != 0,
                                       .progress = wanted.on_begin,
                                       .progress_user = wanted.user};
    BERTH_TRY(berth_api__compiler_options(compiler, &options.model));
    costs_job job = {.costs = costs, .path = path, .options = &options, .settings = &wanted};
    return berth_arena_try(costs->arena, calibrate, &job);
}
