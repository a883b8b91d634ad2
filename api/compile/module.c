// Modules and passes (<berth/module.h>).
#include <berth/module.h>
#include <string.h>

#include "api/compile/compiler.h"
#include "base/str.h"
#include "compiler/decompose/decompose.h"
#include "compiler/package/kept_program.h"
#include "ir/emit_c.h"
#include "ir/json.h"
#include "ir/pass.h"
#include "ir/text.h"
#include "toolkit/module_file.h"

struct berth_module_info {
    berth_arena *arena;  // of this struct and the module
    berth_module *module;
    berth_multi_target *target;
    const char *strategy;
    berth_module_place *places;
    uint32_t place_count;
};

// ---- reading ------------------------------------------------------------------------------------

typedef struct read_job {
    berth_compiler *compiler;
    const char *path;
    berth_arena *arena;
    berth_module_info *info;
} read_job;

static berth_status parse_target(berth_arena *arena, const char *text, berth_target_options *wanted,
                                 berth_multi_target **out_target) {
    berth_machine_facts facts;
    BERTH_TRY(berth_machine_facts_for(arena, text, &facts));
    wanted->machine = &facts;
    return berth_target_parse(arena, text, wanted, out_target);
}

// For the target that is asked for, whose devices' names the module may use, or for its own.
static berth_status read(void *user) {
    read_job *job = user;
    berth_model_options options;
    berth_module_info *info = berth_arena_new(job->arena, berth_module_info);
    info->arena = job->arena;
    BERTH_TRY(berth_api__compiler_options(job->compiler, &options));
    options.import.default_batch = 0;
    if (options.target)
        BERTH_TRY(parse_target(job->arena, options.target, &options.target_options, &info->target));
    BERTH_TRY(
        berth_module_load(job->arena, job->path, &options.import, info->target, &info->module));
    job->info = info;
    if (info->target) return BERTH_OK;
    const char *own = berth_module_target(info->module);
    return parse_target(job->arena, own ? own : "cpu", &options.target_options, &info->target);
}

berth_status berth_compiler_read_module(berth_compiler *compiler, const char *path,
                                        berth_module_info **out_module) {
    read_job job = {.compiler = compiler, .path = path};
    *out_module = NULL;
    BERTH_TRY(berth_arena_make(read, &job, &job.arena));
    *out_module = job.info;
    return BERTH_OK;
}

void berth_module_info_free(berth_module_info *module) {
    if (module) berth_arena_destroy(module->arena);
}

// ---- passes -------------------------------------------------------------------------------------

int berth_compiler_pass_at(uint32_t index, const char **out_name, const char **out_text,
                           int *out_is_named) {
    const berth_pass *const *const lists[] = {berth_compile_passes(), berth_decompose_passes()};
    for (int named = 0; named < 2; ++named) {
        for (const berth_pass *const *pass = lists[named]; *pass; ++pass) {
            if (index-- > 0) continue;
            *out_name = (*pass)->name;
            *out_text = (*pass)->description;
            if (out_is_named) *out_is_named = named;
            return 1;
        }
    }
    return 0;
}

typedef struct passes_job {
    berth_module_info *info;
    const berth_pass_settings *settings;
    const char **names;  // NULL-terminated
    const berth_plan *plan;
    const char **short_names, **full_names;  // per virtual device, once printed
} passes_job;

static berth_status list_names(void *user) {
    passes_job *job = user;
    const berth_pass_settings *settings = job->settings;
    const char *name = NULL, *text = NULL;
    int is_named = 0;
    uint32_t count = settings->pass_count;
    if (!settings->passes) {
        count = 0;
        while (berth_compiler_pass_at(count, &name, &text, &is_named) && !is_named) ++count;
    }
    job->names = berth_arena_new_array(job->info->arena, const char *, count + 1);
    for (uint32_t i = 0; i < count; ++i) {
        if (!settings->passes && berth_compiler_pass_at(i, &name, &text, NULL))
            job->names[i] = name;
        else
            job->names[i] = berth_arena_strdup(job->info->arena, settings->passes[i]);
    }
    return BERTH_OK;
}

static const char *short_name(const passes_job *job, berth_device_id id) {
    berth_module *module = job->info->module;
    if (!id) return NULL;
    berth_virtual_device device = berth_virtual_device_get(module->devices, id);
    device.has_target = false;
    if (!job->short_names[id])
        job->short_names[id] = berth_virtual_device_name(module->arena, device);
    return job->short_names[id];
}

static const char *device_name(const passes_job *job, berth_device_id id) {
    if (!id) return NULL;
    if (!job->full_names[id])
        job->full_names[id] = berth_virtual_device_print(job->info->module->devices, id);
    return job->full_names[id];
}

static berth_module_place place_of(const passes_job *job, const berth_plan_place *place) {
    berth_module *module = job->info->module;
    static const char *const kinds[] = {"parameter", "operation", "copy", "result"};
    const bool copy = place->kind == BERTH_PLAN_COPY;
    return (berth_module_place){
        .function = berth_module_str(module, berth_module_function(module, place->function)->name),
        .kind = kinds[place->kind],
        .index = place->index,
        .operation = place->operation,
        .value = place->value,
        .device = device_name(job, place->device),
        .device_name = short_name(job, place->device),
        .from = copy ? device_name(job, place->from) : NULL,
        .from_name = copy ? short_name(job, place->from) : NULL,
        .size_bytes = copy ? place->size_bytes : 0,
        .reason = place->reason,
        .location = place->loc ? berth_loc_describe(module, place->loc, module->arena) : NULL};
}

static berth_status make_places(void *user) {
    passes_job *job = user;
    berth_module_info *info = job->info;
    uint32_t devices = berth_virtual_device_count(info->module->devices);
    job->short_names = berth_arena_new_array(info->arena, const char *, devices);
    job->full_names = berth_arena_new_array(info->arena, const char *, devices);
    info->strategy = job->plan->strategy;
    info->place_count = job->plan->place_count;
    info->places = berth_arena_new_array(info->arena, berth_module_place, info->place_count + 1);
    for (uint32_t i = 0; i < info->place_count; ++i)
        info->places[i] = place_of(job, &job->plan->places[i]);
    return BERTH_OK;
}

static void after_pass(void *user, const berth_pass *pass, const berth_module *module,
                       int64_t elapsed_ns) {
    const passes_job *job = user;
    (void)module;
    if (job->settings->on_pass)
        job->settings->on_pass(job->settings->user, job->info, pass->name, elapsed_ns);
}

static berth_status run_passes(berth_compiler *compiler, passes_job *job,
                               berth_compile_result *result) {
    berth_module_info *info = job->info;
    berth_model_options options;
    BERTH_TRY(berth_api__compiler_options(compiler, &options));
    BERTH_TRY(berth_arena_try(info->arena, list_names, job));
    const berth_pass_instrument instrument = {after_pass, job};
    options.compile.target = info->target;
    options.compile.max_instances = job->settings->instances;
    options.compile.verify = true;
    options.compile.instruments = &instrument;
    options.compile.instrument_count = 1;
    options.compile.plan_only = !job->settings->keep_program;
    options.compile.resume = !job->settings->passes;
    return berth_compile_run_passes(info->module, job->names, &options.compile, result);
}

typedef struct keeper {
    berth_module *module;
    const berth_program *program;
} keeper;

static berth_status keep_program(void *user) {
    const keeper *k = user;
    return berth_module_keep_program(k->module, k->program);
}

static berth_status read_settings(const berth_pass_settings *given, berth_pass_settings *out) {
    *out = (berth_pass_settings){.size_bytes = sizeof(*out)};
    if (!given) return BERTH_OK;
    if (given->size_bytes < sizeof(size_t) || given->size_bytes > sizeof(*out))
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "berth_pass_settings.size_bytes is %zu; set it to "
                                 "sizeof(berth_pass_settings), %zu in this version",
                                 given->size_bytes, sizeof(*out));
    memcpy(out, given, given->size_bytes);
    if (out->instances > 8)
        return berth_status_make(BERTH_OUT_OF_RANGE, "%u instances of a function: 8 at most",
                                 out->instances);
    if (out->keep_program && out->passes)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "a program is kept after all passes: name none");
    return BERTH_OK;
}

berth_status berth_compiler_run_passes(berth_compiler *compiler, berth_module_info *module,
                                       const berth_pass_settings *settings) {
    berth_pass_settings wanted;
    berth_compile_result result = {.program = NULL};
    passes_job job = {.info = module, .settings = &wanted};
    BERTH_TRY(read_settings(settings, &wanted));
    BERTH_TRY(run_passes(compiler, &job, &result));
    keeper keeping = {module->module, result.program};
    if (wanted.keep_program)
        BERTH_TRY(berth_arena_try(module->module->arena, keep_program, &keeping));
    job.plan = result.plan;
    return job.plan ? berth_arena_try(module->module->arena, make_places, &job) : BERTH_OK;
}

// ---- machines -----------------------------------------------------------------------------------

typedef struct machine_job {
    berth_module_info *info;
    const char *name;
    uint32_t machine;
} machine_job;

static berth_status find_machine(void *user) {
    machine_job *job = user;
    const berth_multi_target *target = job->info->target;
    berth_strbuf names = berth_strbuf_make(job->info->arena);
    for (job->machine = 0; job->machine < target->machine_count; ++job->machine) {
        const char *own = target->machines[job->machine].name;
        if (strcmp(own, job->name) == 0) return BERTH_OK;
        berth_strbuf_addf(&names, "%s%s", names.length ? ", " : "", own);
    }
    return berth_status_make(BERTH_NOT_FOUND, "machine \"%s\": %s%s", job->name,
                             target->machine_count > 1 ? "the target's machines are "
                                                       : "the target is one machine",
                             berth_strbuf_text(&names));
}

berth_status berth_module_info_leave_machine(berth_module_info *module, const char *machine) {
    machine_job job = {.info = module, .name = machine};
    berth_multi_target *own = NULL;
    BERTH_TRY(berth_arena_try(module->arena, find_machine, &job));
    berth_func_id main = berth_module_find_function(module->module, "main");
    if (!berth_module_has_run(module->module, "inline-calls") ||
        berth_module_has_run(module->module, "layout"))
        return berth_status_make(BERTH_FAILED_PRECONDITION,
                                 "machine \"%s\": a planned module is taken apart: let the passes "
                                 "end with plan-devices,inline-calls",
                                 machine);
    BERTH_TRY(berth_decompose_machine(module->module, main, module->target, job.machine, &own));
    return berth_module_verify(module->module);
}

// ---- writing ------------------------------------------------------------------------------------

typedef struct write_job {
    berth_module_info *info;
    berth_module_as form;
    const char *function;
    const char *text;
} write_job;

static berth_status write(void *user) {
    write_job *job = user;
    const berth_module *module = job->info->module;
    berth_strbuf text = berth_strbuf_make(job->info->arena);
    switch (job->form) {
    case BERTH_MODULE_AS_TEXT: berth_module_print(module, &text); break;
    case BERTH_MODULE_AS_C: BERTH_TRY(berth_module_to_c(module, job->function, &text)); break;
    case BERTH_MODULE_AS_JSON:
        return berth_module_to_json_text(job->info->arena, module, 2, &job->text);
    default:
        return berth_status_make(BERTH_INVALID_ARGUMENT, "%d is no form of a module",
                                 (int)job->form);
    }
    job->text = berth_strbuf_text(&text);
    return BERTH_OK;
}

berth_status berth_module_info_write(berth_module_info *module, berth_module_as form,
                                     const char *function, const char **out_text) {
    write_job job = {.info = module, .form = form, .function = function};
    *out_text = NULL;
    BERTH_TRY(berth_arena_try(module->arena, write, &job));
    *out_text = job.text;
    return BERTH_OK;
}

const char *berth_module_info_strategy(const berth_module_info *module) {
    return module->strategy;
}

uint32_t berth_module_info_place_count(const berth_module_info *module) {
    return module->place_count;
}

const berth_module_place *berth_module_info_place(const berth_module_info *module, uint32_t index) {
    return index < module->place_count ? &module->places[index] : NULL;
}
