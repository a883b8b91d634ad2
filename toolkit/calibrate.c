#include "toolkit/calibrate.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "compiler/libraries/use.h"
#include "compiler/rules.h"
#include "executor/session.h"
#include "toolkit/calibrate_copies.h"
#include "toolkit/calibrate_libraries.h"
#include "toolkit/calibrate_shapes.h"
#include "toolkit/step_times.h"

enum { warm_up_runs = 2, fewest_runs = 5, most_runs = 200 };

typedef struct measurement {
    const berth_calibrate_options *options;
    const char *path;  // NULL = the built-in set
    berth_cost_table *table;
    berth_arena *arena;
    const berth_multi_target *target;  // of the caller
    const berth_model *model;          // on one device
    const berth_program *program;
    berth_session *session;
    double **ns;      // [step][run]
    double *step_ns;  // of the last run
    uint32_t runs;
    uint32_t modelled;  // kernels whose time a model said
} measurement;

// ---- what steps took ----------------------------------------------------------------------------

static void note_run(measurement *m, uint32_t run) {
    berth_step_times(m->program, m->session, m->arena, m->step_ns);
    for (uint32_t i = 0; i < m->program->step_count; ++i) m->ns[i][run] = m->step_ns[i];
}

// Steps of one call are one piece of work. External code is none that others could be measured by, and
// libraries are measured beside our kernels (calibrate_libraries.c).
static berth_status add_records(void *user) {
    measurement *m = user;
    const berth_program *program = m->program;
    const berth_work *const *works = berth_model_step_works(m->model);
    double *sum = berth_arena_new_array(m->arena, double, program->step_count);
    for (uint32_t i = 0; i < program->step_count; ++i) {
        double ns = berth_median(m->ns[i], m->runs);
        if (ns <= 0 || !works[i] || !*works[i]->key) continue;
        if (strcmp(works[i]->kind, BERTH_LIBRARY_COST_KIND) == 0) continue;
        uint32_t first = i;
        for (uint32_t k = i; k-- > 0 && i - k < 64;)
            if (works[k] == works[i]) first = k;
        sum[first] += ns;
    }
    for (uint32_t i = 0; i < program->step_count; ++i) {
        if (sum[i] <= 0) continue;
        const berth_target *on =
            berth_model_target(m->model)->devices[program->steps[i].device].target;
        berth_cost_record record = {.target = berth_target_culled(m->arena, on),
                                    .kind = works[i]->kind,
                                    .work = works[i]->planned_key ? works[i]->planned_key
                                                                  : works[i]->key,
                                    .flops = works[i]->flops,
                                    .bytes = works[i]->bytes,
                                    .ns = sum[i],
                                    .runs = m->runs};
        berth_cost_table_add(m->table, &record);
    }
    return BERTH_OK;
}

// ---- running ------------------------------------------------------------------------------------

static berth_status run_session(measurement *m) {
    enum { default_seconds = 2 };
    int64_t duration_ns = m->options->duration_ns;
    if (duration_ns <= 0) duration_ns = (int64_t)default_seconds * 1000000000;
    for (uint32_t i = 0; berth_session_input(m->session, i); ++i) {
        berth_tensor tensor = *berth_session_input(m->session, i);
        berth_tensor_fill_random(&tensor, m->options->seed + i);
    }
    m->ns = berth_arena_new_array(m->arena, double *, m->program->step_count + 1);
    m->step_ns = berth_arena_new_array(m->arena, double, m->program->step_count + 1);
    for (uint32_t i = 0; i < m->program->step_count; ++i)
        m->ns[i] = berth_arena_new_array(m->arena, double, most_runs);
    for (int i = 0; i < warm_up_runs; ++i) BERTH_TRY(berth_session_run(m->session, -1));
    int64_t start_ns = berth_clock_ns();
    for (m->runs = 0; m->runs < most_runs; ++m->runs) {
        if (m->runs >= fewest_runs && berth_clock_ns() - start_ns >= duration_ns) break;
        BERTH_TRY(berth_session_run(m->session, -1));
        note_run(m, m->runs);
    }
    return berth_arena_try(berth_cost_table_arena(m->table), add_records, m);
}

// The target with another default device, as text.
static const char *target_on(const measurement *m, uint32_t device) {
    json_error_t error;
    json_t *json = json_loads(m->target->canonical, 0, &error);
    if (!json) berth_arena_fail(m->arena);
    json_object_set_new(json, "default_device", json_string(m->target->devices[device].name));
    json_object_del(json, "pins");
    char *text = json_dumps(json, JSON_SORT_KEYS);
    json_decref(json);
    if (!text) berth_arena_fail(m->arena);
    berth_arena_defer(m->arena, free, text);
    return text;
}

// ---- by a model of the device -------------------------------------------------------------------

// Below 0: there is no model of it.
static double modelled_ns(const measurement *m, const berth_program_step *step) {
    const berth_program_kernel *kernel = &m->program->kernels[step->kernel];
    const berth_target *on = berth_model_target(m->model)->devices[step->device].target;
    const berth_kind_rules *rules = berth_rules_find(on->kind);
    if (!rules || !rules->modelled_ns) return -1;
    return rules->modelled_ns(on, &m->program->executables[kernel->executable], kernel->entry);
}

static berth_status add_modelled(void *user) {
    measurement *m = user;
    const berth_work *const *works = berth_model_step_works(m->model);
    for (uint32_t i = 0; i < m->program->step_count; ++i) {
        const berth_program_step *step = &m->program->steps[i];
        const berth_target *on = berth_model_target(m->model)->devices[step->device].target;
        double ns = step->kind == BERTH_STEP_DISPATCH && works[i] ? modelled_ns(m, step) : -1;
        if (ns <= 0 || !works[i]->planned_key) continue;
        berth_cost_record record = {.target = berth_target_culled(m->arena, on),
                                    .kind = works[i]->kind,
                                    .work = works[i]->planned_key,
                                    .flops = works[i]->flops,
                                    .bytes = works[i]->bytes,
                                    .ns = ns,
                                    .runs = 1,
                                    .modelled = true};
        berth_cost_table_add(m->table, &record);
        m->modelled++;
    }
    return BERTH_OK;
}

static bool has_model(const measurement *m, uint32_t device) {
    const berth_kind_rules *rules = berth_rules_find(m->target->devices[device].target->kind);
    return rules && rules->modelled_ns;
}

// ---- devices ------------------------------------------------------------------------------------

static berth_status open_session(measurement *m) {
    const berth_target *host = m->target->devices[m->target->host].target;
    berth_session_options session_options = {.profile = true,
                                             .thread_count = (uint32_t)host->cores,
                                             .bindings = m->options->bindings,
                                             .binding_count = m->options->binding_count,
                                             .cache_folder =
                                                 m->options->model.compile.cache_folder};
    return berth_session_open(berth_allocator_system(), m->program, &session_options, &m->session);
}

static berth_status run_model(measurement *m) {
    BERTH_TRY(open_session(m));
    berth_status status = run_session(m);
    berth_session_close(m->session);
    return status;
}

static berth_model_options options_for(const measurement *m, uint32_t device) {
    berth_model_options model_options = m->options->model;
    model_options.target = target_on(m, device);
    model_options.target_options = (berth_target_options){0};
    model_options.compile.strategy = NULL;
    model_options.costs = NULL;
    model_options.only_these_inputs = true;
    return model_options;
}

static berth_status load_for(const measurement *m, uint32_t device, berth_model **out_model) {
    const berth_model_options model_options = options_for(m, device);
    if (m->path) return berth_model_load(m->path, &model_options, out_model);
    return berth_model_load_built(berth_toolkit__calibrate_shapes, NULL, "calibration",
                                  &model_options, out_model);
}

static berth_status measure_on(measurement *m, uint32_t device) {
    berth_model *model = NULL;
    const char *what = m->path ? m->path : "built-in shapes";
    if (m->options->progress)
        m->options->progress(
            m->options->progress_user,
            berth_arena_printf(m->arena, "%s on %s", what, m->target->devices[device].name));
    BERTH_TRY(load_for(m, device, &model));
    m->model = model;
    m->program = berth_model_program(model);
    m->modelled = 0;
    berth_status status = BERTH_OK;
    if (!berth_model_step_works(model))
        status = berth_status_make(BERTH_INVALID_ARGUMENT,
                                   "\"%s\" is a built program, which says nothing of the work in "
                                   "it: give the model",
                                   what);
    if (!status) status = berth_arena_try(berth_cost_table_arena(m->table), add_modelled, m);
    if (!status && m->modelled == 0 && m->options->by_model)
        status = berth_status_make(BERTH_UNSUPPORTED,
                                   "nothing of \"%s\" runs on \"%s\", so that its timing model "
                                   "has nothing to say",
                                   what, m->target->devices[device].name);
    if (!status && m->modelled == 0) status = run_model(m);
    berth_model_destroy(model);
    return status;
}

static berth_status measure_copy(measurement *m, uint32_t device, int64_t count) {
    const berth_model_options model_options = options_for(m, device);
    berth_model *model = NULL;
    BERTH_TRY(berth_model_load_built(berth_toolkit__calibrate_copy_module, &count, "copies",
                                     &model_options, &model));
    m->program = berth_model_program(model);
    berth_status status = open_session(m);
    if (!status) {
        status = berth_toolkit__calibrate_copy(m->program, m->session,
                                               m->target->devices[m->target->host].target,
                                               m->target->devices[device].target, m->table);
        berth_session_close(m->session);
    }
    berth_model_destroy(model);
    return status;
}

// Copies between the host and a device with a memory of its own; of another one how long it takes to
// hand over to it.
static berth_status measure_copies(measurement *m, uint32_t device) {
    static const int64_t counts[] = {1, 256, 4096, 32768, 262144, 2097152};
    const berth_target_device *devices = m->target->devices;
    uint32_t host = m->target->host;
    if (device == host ||
        berth_toolkit__has_copies(m->arena, m->table, devices[host].target, devices[device].target))
        return BERTH_OK;
    bool shared = berth_multi_target_share_memory(m->target, device, host, NULL);
    // Work that takes a while: who waits for it sleeps meanwhile.
    if (shared) return measure_copy(m, device, 262144);
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); ++i)
        BERTH_TRY(measure_copy(m, device, counts[i]));
    return BERTH_OK;
}

static berth_status run(void *user) {
    measurement *m = user;
    const char *text = m->options->model.target ? m->options->model.target : "cpu";
    berth_machine_facts facts;
    berth_multi_target *target = NULL;
    BERTH_TRY(berth_machine_facts_for(m->arena, text, &facts));
    berth_target_options target_options = m->options->model.target_options;
    target_options.machine = &facts;
    BERTH_TRY(berth_target_parse(m->arena, text, &target_options, &target));
    m->target = target;
    uint32_t asked = 0;
    for (uint32_t d = 0; d < target->device_count; ++d) {
        if (target->devices[d].host_only || (m->options->by_model && !has_model(m, d))) continue;
        BERTH_TRY(measure_on(m, d));
        if (!has_model(m, d)) BERTH_TRY(measure_copies(m, d));
        asked++;
    }
    if (!m->options->by_model)
        return berth_toolkit__calibrate_libraries(m->path, m->options, target, m->arena, m->table);
    if (asked) return BERTH_OK;
    return berth_status_make(BERTH_UNSUPPORTED,
                             "no device of the target has a timing model; the plug-in of its "
                             "kind, where there is one, is not loaded");
}

berth_status berth_calibrate(const char *path, const berth_calibrate_options *options,
                             berth_cost_table *table) {
    measurement m = {.options = options, .path = path, .table = table};
    return berth_arena_scratch(run, &m, &m.arena);
}
