// Tuned kernels (<berth/tune.h>).
#include "toolkit/tune.h"

#include <berth/tune.h>
#include <string.h>

#include "api/compile/compiler.h"

struct berth_tuned {
    berth_arena *arena;
    berth_tuned_table *table;
};

typedef struct tuned_job {
    berth_arena *arena;
    berth_tuned *tuned;
} tuned_job;

static berth_status create(void *user) {
    tuned_job *job = user;
    job->tuned = berth_arena_new(job->arena, berth_tuned);
    job->tuned->arena = job->arena;
    job->tuned->table = berth_tuned_table_create(job->arena);
    return BERTH_OK;
}

berth_status berth_tuned_create(berth_tuned **out_tuned) {
    *out_tuned = NULL;
    tuned_job job = {.arena = NULL};
    BERTH_TRY(berth_arena_make(create, &job, &job.arena));
    *out_tuned = job.tuned;
    return BERTH_OK;
}

void berth_tuned_destroy(berth_tuned *tuned) {
    if (tuned) berth_arena_destroy(tuned->arena);
}

berth_status berth_tuned_read(berth_tuned *tuned, const char *path) {
    return berth_tuned_table_read(tuned->table, path);
}

berth_status berth_tuned_save(const berth_tuned *tuned, const char *path) {
    return berth_tuned_table_write(tuned->table, path);
}

uint32_t berth_tuned_count(const berth_tuned *tuned) {
    return berth_tuned_table_count(tuned->table);
}

typedef struct copy_job {
    berth_tuned_table *to;
    const berth_tuned_table *from;
} copy_job;

static berth_status copy(void *user) {
    const copy_job *job = user;
    for (uint32_t i = 0; i < berth_tuned_table_count(job->from); ++i)
        berth_tuned_table_add(job->to, berth_tuned_table_at(job->from, i));
    return BERTH_OK;
}

typedef struct tune_job {
    const char *path;
    const berth_tune_options *options;
    berth_tuned_table *table;
} tune_job;

static berth_status run_tuner(void *user) {
    const tune_job *job = user;
    return berth_tune(job->path, job->options, job->table);
}

// The tuner's records go to a table of its own first, so that an error leaves `tuned` as it is.
static berth_status tune(const char *path, const berth_tune_options *options, berth_tuned *tuned) {
    berth_tuned *found = NULL;
    BERTH_TRY(berth_tuned_create(&found));
    tune_job tuner = {.path = path, .options = options, .table = found->table};
    berth_status status = berth_arena_try(found->arena, run_tuner, &tuner);
    copy_job job = {.to = tuned->table, .from = found->table};
    if (!status) status = berth_arena_try(tuned->arena, copy, &job);
    berth_tuned_destroy(found);
    return status;
}

berth_status berth_compiler_tune(berth_compiler *compiler, const char *path,
                                 const berth_tune_settings *settings, berth_tuned *tuned) {
    berth_tune_settings wanted = {.size_bytes = 0};
    if (settings &&
        (settings->size_bytes < sizeof(size_t) || settings->size_bytes > sizeof(wanted)))
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "berth_tune_settings.size_bytes is %zu; set it to "
                                 "sizeof(berth_tune_settings), %zu in this version",
                                 settings->size_bytes, sizeof(wanted));
    if (settings) memcpy(&wanted, settings, settings->size_bytes);
    berth_tune_options options = {.duration_ns = wanted.duration_ns,
                                  .seed = wanted.seed,
                                  .trials = wanted.trials,
                                  .progress = wanted.on_progress,
                                  .progress_user = wanted.user};
    BERTH_TRY(berth_api__compiler_options(compiler, &options.model));
    return tune(path, &options, tuned);
}
