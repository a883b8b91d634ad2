#include "compiler/compile.h"

#include <string.h>

#include "compiler/decompose/decompose.h"
#include "compiler/package/kept_program.h"
#include "compiler/package/package.h"
#include "compiler/pipeline.h"

typedef struct job {
    berth_module *module;
    const berth_pass *const *passes;
    uint32_t pass_count;
    const berth_compile_options *options;
    berth_compile_result *result;
    berth_pipeline pipeline;
    bool whole;  // all passes, not some of the caller's choice
} job;

#ifdef NDEBUG
static const bool always_verify = false;
#else
static const bool always_verify = true;  // debug builds check the module after every pass
#endif

// Memories that were declared for devices and in which nothing is put; NULL = there are none.
static const char *note_unused_memories(const berth_multi_target *target, berth_arena *arena) {
    berth_strbuf names = berth_strbuf_make(arena);
    for (uint32_t m = 0; m < target->memory_count; ++m) {
        const berth_target_memory *memory = &target->memories[m];
        bool used = memory->implied || strcmp(memory->scope, "global") != 0 ||
                    berth_packager__takes_values(target, m);
        for (uint32_t d = 0; d < target->device_count; ++d)
            used |= target->devices[d].own_memory == m || target->devices[d].constant_memory == m;
        if (!used) berth_strbuf_addf(&names, "%s%s", names.length ? ", " : "", memory->name);
    }
    if (!names.length) return NULL;
    return berth_arena_printf(
        arena,
        "nothing is kept in the memory %s: a device works in the first global "
        "one that it reaches (\"holds\": \"constants\" has one take these)",
        berth_strbuf_text(&names));
}

// What a plan is not about, and the target it is made for.
static void note_devices_without_code(job *j, const berth_compile_options *planned) {
    berth_arena *arena = j->module->arena;
    j->pipeline.notes[0] = planned->note;
    j->pipeline.notes[1] = note_unused_memories(planned->target, arena);
    berth_pipeline__note_no_code(planned, arena, &j->pipeline.notes[2], &j->pipeline.notes[3]);
    if (j->pipeline.notes[2] && !planned->plan_only)
        berth_log_message(planned->log, BERTH_LOG_INFO, "%s", j->pipeline.notes[2]);
}

// The module says for what it is compiled. Once planned, it stays with that.
static berth_status record_target(berth_module *module, const berth_compile_options *options) {
    const berth_multi_target *target = options->target;
    const char *wanted = options->target_text ? options->target_text
                                              : berth_target_print_json(module->arena, target, 0);
    const char *held = berth_attrs_string(module, &module->attrs, BERTH_ATTR_TARGET, wanted);
    if (strcmp(held, wanted) != 0 && berth_module_has_run(module, BERTH_PASS_PLAN_DEVICES))
        return berth_status_make(BERTH_FAILED_PRECONDITION,
                                 "the module is planned for another target than %s",
                                 berth_target_print_short(module->arena, target));
    berth_attrs_set_string(module, &module->attrs, BERTH_ATTR_TARGET, wanted);
    return BERTH_OK;
}

// A program that the module keeps for this target needs no compiler.
static berth_status take_kept(job *j, bool *out_taken) {
    bool stale = false;
    const berth_program *kept = NULL;
    *out_taken = false;
    if (!j->whole || j->options->plan_only || j->options->stop_after) return BERTH_OK;
    BERTH_TRY(berth_module_kept_program(j->module, &kept, &stale));
    bool fits = kept && strcmp(kept->target_json, j->options->target->canonical) == 0;
    if (fits && j->options->keep_source && kept->attachment_count == 0) return BERTH_OK;
    if (fits) {
        j->pipeline.program = kept;
        *out_taken = true;
        berth_log_message(j->options->log, BERTH_LOG_INFO,
                          "the program that the module keeps is taken as it is: native code that "
                          "was made before");
    } else if (kept || stale) {
        berth_log_message(j->options->log, BERTH_LOG_INFO,
                          "the program that the module keeps is for %s: compiled anew",
                          stale ? "another state of it" : "another target");
    }
    return BERTH_OK;
}

static berth_status run_passes(void *user) {
    job *j = user;
    bool taken = false;
    BERTH_TRY(take_kept(j, &taken));
    if (taken) return BERTH_OK;
    BERTH_TRY(record_target(j->module, j->options));
    berth_compile_options planned = *j->options;
    note_devices_without_code(j, &planned);
    j->pipeline.options = &planned;
    berth_pass_context context = {.log = j->options->log,
                                  .instruments = j->options->instruments,
                                  .instrument_count = j->options->instrument_count,
                                  .verify = j->options->verify || always_verify,
                                  .stop_after = j->options->stop_after,
                                  .resume = j->options->resume,
                                  .rerun = j->whole && planned.plan_only ? BERTH_PASS_PLAN_DEVICES
                                                                         : NULL,
                                  .user = &j->pipeline};
    return berth_passes_run(j->module, j->passes, j->pass_count, &context);
}

// Constants are being packed until all is done, also when memory ran out on the way.
static berth_status run_job(job *j) {
    j->pipeline = (berth_pipeline){.explain = j->whole && j->options->plan_only,
                                   .options = j->options,
                                   .known = {.inputs = j->options->known_inputs,
                                             .input_count = j->options->known_input_count}};
    berth_status status = berth_arena_try(j->module->arena, run_passes, j);
    berth_packing_finish(j->pipeline.packing);
    j->result->plan = j->pipeline.plan;
    j->result->program = j->pipeline.program;
    j->result->memory = j->pipeline.memory;
    j->result->known_uses = j->pipeline.known.used.data;
    j->result->known_use_count = j->pipeline.known.used.count;
    j->result->step_works = j->pipeline.step_works;
    j->result->patch_candidates = j->pipeline.patch_candidates;
    j->result->patch_candidate_count = j->pipeline.patch_candidate_count;
    j->result->step_choices = j->pipeline.step_choices;
    j->result->choices = j->pipeline.choices.items.data;
    j->result->choice_count = j->pipeline.choices.items.count;
    j->result->over_device = j->pipeline.over_device;
    j->result->over_memory = j->pipeline.over_memory;
    // Memory may run out here after a plan that exceeds a memory, while a smaller one is sought.
    j->result->over_bytes = status == berth_status_oom() ? 0 : j->pipeline.over_bytes;
    return status;
}

// Sources for one processor are what the executor aot has.
static berth_status check_executor(const berth_multi_target *target) {
    const char *name = berth_executor_kind_name(target->executor);
    if (target->executor == BERTH_EXECUTOR_GRAPH) return BERTH_OK;
    if (target->executor != BERTH_EXECUTOR_AOT)
        return berth_status_make(
            BERTH_UNSUPPORTED,
            "executor \"%s\" compiles the parts of a model, for running and for a file; this "
            "needs one program of the whole, which executors \"%s\" and \"%s\" make",
            name, berth_executor_kind_name(BERTH_EXECUTOR_GRAPH),
            berth_executor_kind_name(BERTH_EXECUTOR_AOT));
    for (uint32_t d = 0; d < target->device_count; ++d)
        if (target->device_count > 1 || !berth_device_kind_is_host(target->devices[d].target->kind))
            return berth_status_make(
                BERTH_UNSUPPORTED,
                "executor \"%s\" makes C for a single processor, and the target "
                "has %u device%s, among them %s; give a target of one cpu",
                name, target->device_count, target->device_count == 1 ? "" : "s",
                target->devices[d].name);
    return BERTH_OK;
}

berth_status berth_compile(berth_module *module, const berth_compile_options *options,
                           berth_compile_result *out_result) {
    *out_result = (berth_compile_result){0};
    const berth_multi_target *target = options->target;
    if (!options->plan_only) {
        BERTH_TRY(check_executor(target));
        BERTH_TRY(berth_pipeline__refuse_described(target));
    }
    if (options->expose_values && berth_module_has_run(module, BERTH_PASS_PLAN_DEVICES))
        return berth_status_make(BERTH_FAILED_PRECONDITION,
                                 "the values of a planned module cannot be made outputs");
    if (options->plan_only && berth_module_has_run(module, BERTH_PASS_LAYOUT))
        return berth_status_make(BERTH_FAILED_PRECONDITION,
                                 "the module is compiled beyond its plan (its attribute \"passes\" "
                                 "says how far): plan it as it was before");
    berth_compile_options resumed = *options;
    resumed.resume = true;
    job j = {.module = module,
             .passes = berth_compile_passes(),
             .options = &resumed,
             .result = out_result,
             .whole = true};
    while (j.passes[j.pass_count]) j.pass_count++;
    return run_job(&j);
}

// The pass of that name; the names of all where there is none.
static berth_status find_pass(berth_module *module, const char *name, const berth_pass **out_pass) {
    const berth_pass *const *const lists[] = {berth_compile_passes(), berth_decompose_passes()};
    berth_strbuf names = berth_strbuf_make(module->arena);
    for (size_t l = 0; l < sizeof(lists) / sizeof(lists[0]); ++l)
        for (const berth_pass *const *pass = lists[l]; *pass; ++pass) {
            *out_pass = *pass;
            if (strcmp((*pass)->name, name) == 0) return BERTH_OK;
            berth_strbuf_addf(&names, "%s%s", names.length ? ", " : "", (*pass)->name);
        }
    return berth_status_make(BERTH_NOT_FOUND, "unknown pass \"%s\"; there are %s", name,
                             berth_strbuf_text(&names));
}

berth_status berth_compile_run_passes(berth_module *module, const char *const *names,
                                      const berth_compile_options *options,
                                      berth_compile_result *out_result) {
    *out_result = (berth_compile_result){0};
    enum { most = 256 };
    const berth_pass *passes[most];
    job j = {.module = module, .passes = passes, .options = options, .result = out_result};
    for (; *names; ++names) {
        const berth_pass *found = NULL;
        BERTH_TRY(find_pass(module, *names, &found));
        if (j.pass_count == most)
            return berth_status_make(BERTH_OUT_OF_RANGE, "at most %d passes", (int)most);
        passes[j.pass_count++] = found;
    }
    return run_job(&j);
}
