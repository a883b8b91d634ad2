// Verification (<berth/verify.h>).
#include <berth/verify.h>
#include <string.h>

#include "api/compile/compiler.h"
#include "toolkit/verify.h"
#include "toolkit/vm_session.h"

struct berth_verifier {
    berth_arena *arena;  // of this struct
    berth_compiler *compiler;
    const char *path;
    berth_verify_settings settings;
    berth_vm_session *vm_session;  // kept from folder to folder
};

struct berth_verification {
    berth_arena *arena;  // of this struct
    berth_verify_result result;
    berth_verification_facts facts;
    berth_verification_output *outputs;
};

// ---- verifiers ----------------------------------------------------------------------------------

typedef struct create_job {
    berth_arena *arena;
    berth_compiler *compiler;
    const char *path;
    const berth_verify_settings *settings;
    berth_verifier *verifier;
} create_job;

static berth_status make_verifier(void *user) {
    create_job *job = user;
    berth_verifier *verifier = berth_arena_new(job->arena, berth_verifier);
    verifier->arena = job->arena;
    verifier->compiler = job->compiler;
    verifier->path = berth_arena_strdup(job->arena, job->path);
    if (job->settings) memcpy(&verifier->settings, job->settings, job->settings->size_bytes);
    if (verifier->settings.require)
        verifier->settings.require = berth_arena_strdup(job->arena, verifier->settings.require);
    job->verifier = verifier;
    return BERTH_OK;
}

berth_status berth_verifier_create(berth_compiler *compiler, const char *path,
                                   const berth_verify_settings *settings,
                                   berth_verifier **out_verifier) {
    *out_verifier = NULL;
    if (settings &&
        (settings->size_bytes < sizeof(size_t) || settings->size_bytes > sizeof(*settings)))
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "berth_verify_settings.size_bytes is %zu; set it to "
                                 "sizeof(berth_verify_settings), %zu in this version",
                                 settings->size_bytes, sizeof(*settings));
    create_job job = {.compiler = compiler, .path = path, .settings = settings};
    BERTH_TRY(berth_arena_make(make_verifier, &job, &job.arena));
    *out_verifier = job.verifier;
    return BERTH_OK;
}

void berth_verifier_destroy(berth_verifier *verifier) {
    if (!verifier) return;
    berth_vm_session_close(verifier->vm_session);
    berth_arena_destroy(verifier->arena);
}

// ---- results ------------------------------------------------------------------------------------

typedef struct run_job {
    berth_arena *arena;
    berth_verifier *verifier;
    const char *folder;
    const char *reference_target;  // NULL = expected results are those of the folder
    berth_verify_options options;
    berth_verification *verification;
} run_job;

static void take_facts(berth_verification *v, uint32_t compared_count) {
    const berth_verify_result *result = &v->result;
    v->facts = (berth_verification_facts){.folder = result->folder,
                                          .pass = result->pass,
                                          .by_vm = result->by_vm,
                                          .computed_before = result->computed_before,
                                          .kernel_count = result->kernel_count,
                                          .host_operations = result->host_operations,
                                          .compared_count = compared_count};
    v->outputs = berth_arena_new_array(v->arena, berth_verification_output, result->output_count);
    for (uint32_t i = 0; i < result->output_count; ++i) {
        const berth_comparison *c = &result->outputs[i].comparison;
        v->outputs[i] = (berth_verification_output){.name = result->outputs[i].name,
                                                    .pass = c->pass,
                                                    .rtol = c->rtol,
                                                    .atol = c->atol,
                                                    .max_absolute_error = c->max_absolute_error,
                                                    .max_relative_error = c->max_relative_error,
                                                    .element_count = c->element_count,
                                                    .mismatch_count = c->mismatch_count,
                                                    .worst_index = c->worst_index,
                                                    .worst_got = c->worst_got,
                                                    .worst_expected = c->worst_expected};
    }
}

static berth_status run_verifier(void *user) {
    run_job *job = user;
    berth_verification *v = berth_arena_new(job->arena, berth_verification);
    const char *path = job->verifier->path;
    const char *folder = berth_arena_strdup(job->arena, job->folder);
    uint32_t compared = 0;
    v->arena = job->arena;
    if (job->reference_target)
        BERTH_TRY(berth_verify_per_op(job->arena, path, folder, job->reference_target,
                                      &job->options, &v->result, &compared));
    else
        BERTH_TRY(berth_verify_folder(job->arena, path, folder, &job->options, &v->result));
    take_facts(v, job->reference_target ? compared : v->result.output_count);
    job->verification = v;
    return BERTH_OK;
}

static berth_status run(run_job *job, berth_verification **out_result) {
    berth_verifier *verifier = job->verifier;
    const berth_verify_settings *settings = &verifier->settings;
    *out_result = NULL;
    job->options =
        (berth_verify_options){.vm_session = &verifier->vm_session,
                               .compare = {.rtol = settings->has_rtol ? settings->rtol : -1,
                                           .atol = settings->has_atol ? settings->atol : -1},
                               .thread_count = settings->thread_count,
                               .require_device = settings->require};
    BERTH_TRY(berth_api__compiler_options(verifier->compiler, &job->options.model));
    BERTH_TRY(berth_arena_make(run_verifier, job, &job->arena));
    *out_result = job->verification;
    return BERTH_OK;
}

berth_status berth_verifier_run(berth_verifier *verifier, const char *folder,
                                berth_verification **out_result) {
    run_job job = {.verifier = verifier, .folder = folder};
    return run(&job, out_result);
}

berth_status berth_verifier_run_per_op(berth_verifier *verifier, const char *folder,
                                       const char *reference_target,
                                       berth_verification **out_result) {
    run_job job = {.verifier = verifier, .folder = folder, .reference_target = reference_target};
    return run(&job, out_result);
}

void berth_verification_free(berth_verification *result) {
    if (result) berth_arena_destroy(result->arena);
}

const berth_verification_facts *berth_verification_facts_of(const berth_verification *result) {
    return &result->facts;
}

uint32_t berth_verification_output_count(const berth_verification *result) {
    return result->result.output_count;
}

uint32_t berth_verification_known_input_count(const berth_verification *result) {
    return result->result.known_input_count;
}

const berth_verification_output *berth_verification_output_at(const berth_verification *result,
                                                              uint32_t index) {
    return index < result->result.output_count ? &result->outputs[index] : NULL;
}

const char *berth_verification_known_input(const berth_verification *result, uint32_t index) {
    return index < result->result.known_input_count ? result->result.known_inputs[index] : NULL;
}

berth_status berth_program_check_devices(const berth_program *program, const char *devices) {
    return berth_program_require(program, devices, false);
}
